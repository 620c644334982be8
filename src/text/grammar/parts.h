// SPDX-License-Identifier: Apache-2.0
/* parts.h: what the files of the grammar compiler share: the rules as built, the automaton of one rule before it is
 * made deterministic, and the result. */
#ifndef WEFT_TEXT_GRAMMAR_PARTS_H
#define WEFT_TEXT_GRAMMAR_PARTS_H

#include "text/grammar/grammar.h"
#include "text/strings.h"

typedef enum weft__gram_kind {
    WEFT__GRAM_TEXT,    /* a: where in bytes, b: how many */
    WEFT__GRAM_CLASS,   /* a: where in ranges, b: how many; sorted, disjoint */
    WEFT__GRAM_SEQ,     /* a: where in items, b: how many */
    WEFT__GRAM_ALT,     /* the same */
    WEFT__GRAM_REPEAT,  /* a: min, b: max, item */
    WEFT__GRAM_REF,     /* a: rule, b: the next reference to the same rule */
    WEFT__GRAM_MACHINE, /* a: its first state in machine_states, b: how many */
    WEFT__GRAM_WITHOUT, /* a: where in bytes, b: how many; item: the class of all characters but those */
    WEFT__GRAM_MARK     /* a: one of those below, b: 1, item */
} weft__gram_kind;

/* What an expression is to a search (pattern.h); for a grammar they say nothing. */
enum {
    WEFT__GRAM_MARK_FIRST, /* it begins the text */
    WEFT__GRAM_MARK_LAST,  /* and ends it */
    WEFT__GRAM_MARK_LAZY,  /* a repetition of as few as can be */
    WEFT__GRAM_MARK_GROUP  /* and its number, from 1 on */
};

typedef struct weft__gram_node {
    uint32_t a, b;
    int32_t item;
    int32_t parent; /* a node, -1: none yet, -2 - r: rule r's body */
    int32_t line;
    uint16_t nesting;
    uint8_t kind, nullable;
} weft__gram_node;

#define WEFT__GRAM_NONE UINT32_MAX

typedef struct weft__gram_rule_def {
    int32_t body;          /* -1: undefined */
    int32_t line, mention; /* of the definition, and of the first mention */
    int32_t origin;        /* 1 and its number among the origins; 0: none */
    uint32_t refs;         /* first reference to it, or WEFT__GRAM_NONE */
    int call, copied;      /* 1: not to be inlined; to be, whatever its size */
} weft__gram_rule_def;

typedef struct weft__gram_edge {
    int32_t to;
    uint8_t lo, hi;
} weft__gram_edge;

/* A state of an automaton that is an expression. Its edges, whose ends are counted from the first of its states, go on
 * to where the next state's begin. */
typedef struct weft__gram_machine_node {
    uint32_t edge;
    int accept;
} weft__gram_machine_node;

struct weft__gram {
    weft_error err; /* status 0: no failure so far */
    int32_t line;
    const weft__tok *tok; /* NULL: no tokens can be named */
    weft__strings names;  /* of the rules */
    weft__strings origins;
    int32_t origin; /* of rules that are defined now, as theirs */
    char apart;     /* what rules are told apart by, of those of the same name before; 0: there are none */
    weft__gram_rule_def *rules;
    size_t n_rules, rules_capacity;
    weft__gram_node *nodes;
    size_t n_nodes, nodes_capacity;
    int32_t *items;
    size_t n_items, items_capacity;
    weft__gram_range *ranges;
    size_t n_ranges, ranges_capacity;
    char *bytes;
    size_t n_bytes, bytes_capacity;
    weft__gram_machine_node *machine_states;
    size_t n_machine_states, machine_states_capacity;
    weft__gram_edge *machine_edges;
    size_t n_machine_edges, machine_edges_capacity;
    size_t n_product; /* states of products that were looked at */
};

/* Automata as expressions: each state and its edges, then the last n of them as an expression. From the first every
 * other is reached, and from each a text ends. */
void weft__gram_machine_state(weft__gram *g, int accept, const weft__gram_edge *edges, size_t n);
int32_t weft__gram_machine(weft__gram *g, size_t n);
int32_t weft__gram_mark(weft__gram *g, int32_t item, uint32_t mark);
/* Where the edges of a state end. */
static inline uint32_t weft__gram_machine_end(const weft__gram *g, size_t state)
{
    return state + 1 < g->n_machine_states ? g->machine_states[state + 1].edge : (uint32_t)g->n_machine_edges;
}

/* ---- label.c ---- */

/* A rule of a schema has its place there for a name, a JSON pointer that begins with '#'. Of several at one place, or
 * of those that a long place is cut to, all have this byte and what tells them apart behind it. */
#define WEFT__GRAM_SAME_PLACE 0xFF

/* What a rule is called. */
typedef struct weft__gram_rule_name {
    const char *name, *origin; /* origin: NULL or terminated */
    size_t n;                  /* bytes of the name */
    int line;                  /* 0: none */
} weft__gram_rule_name;

struct weft__gram_automaton;
weft__gram_rule_name weft__gram_name_of(const weft__gram *g, int32_t rule);
weft__gram_rule_name weft__gram_automaton_name(const struct weft__gram_automaton *a, int32_t rule);

int weft__gram_is_of_schema(weft__gram_rule_name x);

/* Into out, which is returned: in a sentence "rule 'x' (line 3)" or "#/items of the schema"; in front of a message
 * "grammar: rule 'x' (line 3)" or "schema: #/items", with its origin; and the same as the first words of one, which for
 * a schema end with a colon. */
#define WEFT__GRAM_LABEL 384
const char *weft__gram_label(weft__gram_rule_name x, char out[WEFT__GRAM_LABEL]);
const char *weft__gram_place(weft__gram_rule_name x, char out[WEFT__GRAM_LABEL]);
const char *weft__gram_subject(weft__gram_rule_name x, char out[WEFT__GRAM_LABEL]);

/* Rules that are defined from now on belong to the schema of this origin, as "tools[3].function.parameters"; NULL: to
 * none. At most 100 bytes. */
void weft__gram_origin(weft__gram *g, const char *origin);

/* Every rule is defined, fulfilled by some finite text and not left-recursive. Sets `nullable` of all nodes. */
weft_status weft__gram_check(weft__gram *g, weft_error *err);

/* Which rules are called and which are inlined where they are mentioned. */
typedef struct weft__gram_plan {
    uint8_t *called;   /* [n_rules] */
    uint32_t *size;    /* [n_rules] states when inlined, about */
    uint16_t *nesting; /* [n_rules] expressions within expressions when inlined */
} weft__gram_plan;

/* The rule whose body contains the node; -1: none does. */
int32_t weft__gram_rule_around(const weft__gram *g, int32_t node);
/* Also refuses repetitions that are too large to be written out. */
weft_status weft__gram_plan_make(const weft__gram *g, int32_t root, weft__gram_plan *plan, weft_error *err);
void weft__gram_plan_free(weft__gram_plan *plan);

/* One rule as an automaton with empty edges. State 0 is its start. */
enum { WEFT__GRAM_NFA_EMPTY, WEFT__GRAM_NFA_BYTE, WEFT__GRAM_NFA_CALL, WEFT__GRAM_NFA_MARK };
typedef struct weft__gram_nfa_edge {
    int32_t next; /* of the same state, preferred to this one; -1: none is */
    int32_t to;
    int32_t rule;         /* or the mark */
    uint8_t kind, lo, hi; /* of a mark: hi 1: what is marked ends here */
} weft__gram_nfa_edge;

typedef struct weft__gram_nfa {
    int32_t *first; /* [n] first edge, -1: none */
    size_t n, capacity;
    weft__gram_nfa_edge *edges;
    size_t n_edges, edges_capacity;
    int32_t end;
} weft__gram_nfa;

/* Replaces what nfa holds. WEFT_LIMIT when it becomes too large. */
weft_status weft__gram_nfa_build(const weft__gram *g, const weft__gram_plan *plan, int32_t rule, weft__gram_nfa *nfa,
                                 weft_error *err);
void weft__gram_nfa_free(weft__gram_nfa *nfa);

typedef struct weft__gram_call_edge {
    int32_t rule, to;
} weft__gram_call_edge;

enum {
    WEFT__GRAM_STATE_ACCEPT = 1, /* the rule may end here */
    WEFT__GRAM_STATE_LAST = 2,   /* ... and must */
    WEFT__GRAM_STATE_PLAIN = 4,  /* it may not, and nothing is called: all that leads on are bytes */
};
typedef struct weft__gram_state {
    uint32_t edge, call; /* the first; the end is the next state's first */
    int32_t rule;
    uint8_t flags;
} weft__gram_state;

struct weft__gram_automaton {
    weft__gram_state *states; /* [n_states + 1] */
    size_t n_states, states_capacity;
    weft__gram_edge *edges; /* of a state in order of lo; overlapping where the rule could not be made deterministic */
    size_t n_edges, edges_capacity;
    weft__gram_call_edge *calls;
    size_t n_calls, calls_capacity;
    int32_t root;
    uint32_t depth;
    size_t n_rules;
    int32_t *starts;     /* [n_rules] of those that are called; others -1 */
    int32_t *lines;      /* [n_rules] */
    int32_t *of_origin;  /* [n_rules] as rules have it */
    weft__strings names; /* of the rules */
    weft__strings origins;
};

/* weft__gram_compile with a budget of the caller's, as below; what is left of it comes back. */
weft_status weft__gram_compile_within(weft__gram *g, int32_t root, uint32_t depth, size_t budget[2],
                                      weft__gram_automaton **out, weft_error *err);

/* Appends the rule's states, the start first, to a (without the closing state). budget[0] is the work that may still be
 * spent on making rules deterministic, beside what each has for its size; a rule that needs more keeps its alternatives
 * side by side, which takes from budget[1]. */
weft_status weft__gram_automaton_add(weft__gram_automaton *a, const weft__gram_nfa *nfa, int32_t rule, size_t budget[2],
                                     weft_error *err);

/* regex_read.c: bytes of `?<name>` at s, which is behind a '(' of the expression from `begin` on; 0: there is none.
 * *why: it is refused. */
size_t weft__gram_regex_name(const char *begin, const char *s, const char *end, const char **why);
/* Of `{1F600}` at *s, which is moved behind it. 0: it is no code point. */
int weft__gram_regex_code_point(const char **s, const char *end, uint32_t *cp);

#endif
