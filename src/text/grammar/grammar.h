// SPDX-License-Identifier: Apache-2.0
/* grammar.h: grammars that constrain what a model writes, from rules to an automaton over bytes.
 *
 * A grammar is a set of named rules over expressions. It is put together by the functions below, node by node: GBNF
 * text and the built-in JSON grammar are two callers of them, and whatever else describes a language (a JSON Schema)
 * can be a third. Compiling checks all rules, then turns each into a deterministic automaton over UTF-8 bytes whose
 * edges are byte ranges and calls of other rules. Rules that do not recurse are inlined, so that only true recursion
 * needs a stack (run.h). Invariant of a compiled grammar: from every state some text completes it, and no text sends it
 * through a cycle of calls that consumes nothing. It is immutable: threads may share it. */
#ifndef WEFT_TEXT_GRAMMAR_H
#define WEFT_TEXT_GRAMMAR_H

#include <stddef.h>
#include <stdint.h>

#include "text/tokenizer/tokenizer.h"
#include "weft/error.h"

/* What is beyond these is refused with WEFT_LIMIT, by rule and line. */
enum {
    WEFT__GRAM_MAX_SOURCE = 1 << 20, /* bytes of GBNF */
    WEFT__GRAM_MAX_RULES = 1 << 14,
    WEFT__GRAM_MAX_NODES = 1 << 20,  /* expressions; as many bytes of literals and ranges of classes */
    WEFT__GRAM_MAX_NESTING = 128,    /* expressions within expressions */
    WEFT__GRAM_MAX_STATES = 1 << 17, /* of the automaton, with repetitions written out */
    WEFT__GRAM_MAX_EDGES = 1 << 20,
    WEFT__GRAM_MAX_NAME = 256,  /* bytes of a rule's name */
    WEFT__GRAM_DEPTH = 1 << 16, /* rules within rules while matching, tail calls not counted */
    WEFT__GRAM_JSON_DEPTH = 256 /* objects and arrays within each other, for the built-in JSON grammar */
};

/* A grammar under construction; belongs to one thread. The first failure is kept, makes what follows do nothing, and
 * comes out of weft__gram_compile: so that builders need not check each step. */
typedef struct weft__gram weft__gram;

/* NULL when there is no memory. */
weft__gram *weft__gram_create(void);
void weft__gram_destroy(weft__gram **g);
/* The vocabulary whose tokens the grammar may name; without it there are none. It outlives the building. */
void weft__gram_vocabulary(weft__gram *g, const weft__tok *tok);
/* The line that the nodes and mentions made from now on are attributed to, for messages; 0: none. */
void weft__gram_line(weft__gram *g, int line);
/* Records a failure, for builders with checks of their own. */
void weft__gram_fail(weft__gram *g, weft_status status, const char *format, ...) WEFT_PRINTF(3, 4);
weft_status weft__gram_failed(const weft__gram *g); /* 0: not yet */
/* Puts a place in front of the message of a failure, if there is one and its message does not begin with `prefix`; the
 * word "grammar" there makes room for it. */
void weft__gram_within(weft__gram *g, const char *prefix, const char *place);

/* The number of the rule of that name, which is made when it is new. */
int32_t weft__gram_rule(weft__gram *g, const char *name, size_t n);
/* Names that are given from now on are those of other rules than before. Once, or twice. */
void weft__gram_apart(weft__gram *g);
/* Defines a rule; one definition each. */
void weft__gram_define(weft__gram *g, int32_t rule, int32_t body);
int weft__gram_defined(const weft__gram *g, int32_t rule);
/* Fails, unless something failed before, where the rule that a grammar begins with has no definition. */
void weft__gram_check_first(weft__gram *g, int32_t rule);
size_t weft__gram_n_rules(const weft__gram *g);
/* Uses of the rule stay calls, which count for the depth; otherwise the compiler chooses. Best for a rule that is part
 * of every cycle and ends in few ways: what is inlined into others costs less while matching. */
void weft__gram_call(weft__gram *g, int32_t rule);
/* Uses of the rule are copies of it wherever that can be: best for what is small and ends anywhere within a token, as a
 * character does. */
void weft__gram_inline(weft__gram *g, int32_t rule);

/* Expressions. Each becomes part of one other at most: what is needed twice is a rule. Numbers handed out after a
 * failure may be given to these functions, to no effect. */
typedef struct weft__gram_range {
    uint32_t lo, hi; /* code points, both included */
} weft__gram_range;

int32_t weft__gram_text(weft__gram *g, const char *s, size_t n); /* UTF-8; n = 0: the empty text */
int32_t weft__gram_class(weft__gram *g, const weft__gram_range *ranges, size_t n,
                         int negated);                                 /* one character; never a surrogate */
int32_t weft__gram_seq(weft__gram *g, const int32_t *items, size_t n); /* one after the other */
int32_t weft__gram_alt(weft__gram *g, const int32_t *items, size_t n); /* n >= 1: one of them */
int32_t weft__gram_repeat(weft__gram *g, int32_t item, uint32_t min, uint32_t max); /* max UINT32_MAX: no limit */

/* Expressions that are collected; zero-initialise, free items with weft__free. */
typedef struct weft__gram_list {
    int32_t *items;
    size_t n, capacity;
} weft__gram_list;
/* 0 after a failure. */
int weft__gram_push(weft__gram *g, weft__gram_list *list, int32_t node);
/* Those from `first` on as one, which leave the list. */
int32_t weft__gram_seq_from(weft__gram *g, weft__gram_list *list, size_t first);
int32_t weft__gram_alt_from(weft__gram *g, weft__gram_list *list, size_t first);

int32_t weft__gram_ref(weft__gram *g, int32_t rule);
/* 1 when the expression is a use of the rule, and nothing else. */
int weft__gram_is_ref(const weft__gram *g, int32_t x, int32_t rule);
/* A control token as such, which no text stands for; of other tokens the text, in whatever tokens it comes. Fails with
 * WEFT_ARGUMENT for an id that there is not, and for one that ends generation, which comes by itself where the grammar
 * may end; WEFT_UNSUPPORTED for part of a character. */
int32_t weft__gram_token(weft__gram *g, int32_t id);
/* The id of the token spelled so, or -1. */
int32_t weft__gram_find(const weft__gram *g, const char *s, size_t n);
/* A marker, in which control tokens that are spelled stand for themselves; those that end generation fail as above. */
int32_t weft__gram_marker(weft__gram *g, const char *s, size_t n);
/* The longest control token, or one that ends generation, that s[0..n) begins with: its id, or -1. *length: its
 * bytes. */
int32_t weft__gram_control_at(const weft__gram *g, const char *s, size_t n, size_t *length);
/* Any text of characters that has s[0..n) nowhere in it, which has no beginning that is its end, too. */
int32_t weft__gram_without(weft__gram *g, const char *s, size_t n);
/* Takes a character out of the classes that stand in the rule's own expression, but for those of it alone. */
void weft__gram_exclude(weft__gram *g, int32_t rule, uint32_t c);

typedef struct weft__gram_automaton weft__gram_automaton;

/* Checks and compiles the language of rule `root`. At most `depth` calls lie within each other while matching. Fails
 * with WEFT_ARGUMENT, naming rule and line: a rule that is undefined, left-recursive, or that no finite text fulfils;
 * WEFT_LIMIT; WEFT_NO_MEMORY; or with what the builder met before. The grammar may be destroyed or compiled again
 * afterwards. */
weft_status weft__gram_compile(weft__gram *g, int32_t root, uint32_t depth, weft__gram_automaton **out,
                               weft_error *err);
void weft__gram_automaton_destroy(weft__gram_automaton **a);
/* Bytes that it holds. */
size_t weft__gram_automaton_bytes(const weft__gram_automaton *a);

/* Reads GBNF into g and stores the rule `root`. The dialect of llama.cpp (grammars/README.md there): rules `name ::=
 * ...`, `|`, groups, "literals", [classes] and [^negated] ones, `.`, `* + ? {m} {m,} {m,n}`, tokens `<[ID]>` and
 * `<spelling>`, escapes \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH (code points), `#` comments. Failures stay in
 * g. */
int32_t weft__gram_read_gbnf(weft__gram *g, const char *source, size_t n);
/* Reads Lark-like EBNF into g and stores the rule `start`: rules in lower and terminals in upper case, "strings" (with
 * i behind them in any case of ASCII), "a".."z", /regular expressions/ with the flags i and s, ( ) [ ] | ? * + ~n
 * ~n..m, -> names, comments, %ignore, %import of the library `common`. It is read without a lexer, as Lark's
 * dynamic_complete is: what terminals can be told apart by is what surrounds them. Ignored texts may stand behind each
 * terminal. Rules may be left-recursive in themselves. Failures stay in g. */
int32_t weft__gram_read_lark(weft__gram *g, const char *source, size_t n);
/* The texts of a JSON array of strings. Failures name the place as a JSON pointer. */
int32_t weft__gram_read_choices(weft__gram *g, const char *source, size_t n);

/* ---- regular expressions ---- */

enum {
    WEFT__GRAM_REGEX_QUOTED = 1,   /* as the inside of a JSON string; uses the rule `char` (weft__gram_json_parts) */
    WEFT__GRAM_REGEX_WHOLE = 2,    /* matches all of a text; otherwise some part of it, as JSON Schema has it */
    WEFT__GRAM_REGEX_WIDE = 4,     /* what any reader of expressions matches; otherwise what all of them do */
    WEFT__GRAM_REGEX_ANY_CASE = 8, /* of the letters of ASCII */
    WEFT__GRAM_REGEX_DOT_ALL = 16, /* `.` is any character */
    WEFT__GRAM_REGEX_MARKED = 32   /* for a search (pattern.h): groups, anchors and what is lazy are marked, nothing
                                    * stands around; \d, \w and \s are of ASCII */
};

typedef struct weft__gram_regex_facts {
    uint32_t min, max; /* characters that match at least and at most */
    const char *why;   /* what is not taken; NULL: nothing, but g may have failed */
    size_t at;         /* bytes before it, or a few more */
} weft__gram_regex_facts;

/* ECMA-262 without look-around, references, word boundaries, Unicode classes; anchors at the ends only. -1 with
 * out->why, or after a failure of g. */
int32_t weft__gram_regex(weft__gram *g, const char *s, size_t n, unsigned flags, weft__gram_regex_facts *out);
/* The same of at most `most` characters: what is repeated without an end has as many as there is room for, and as
 * some ten thousand states hold, each such repetition the same number. Where that is not to be had, out->max is above
 * `most`, and it is the same as without. */
int32_t weft__gram_regex_bounded(weft__gram *g, const char *s, size_t n, unsigned flags, uint32_t most,
                                 weft__gram_regex_facts *out);
/* Texts that match all of an expression, as the rule that is returned. Failures stay in g. */
int32_t weft__gram_read_regex(weft__gram *g, const char *source, size_t n);

/* ---- JSON ---- */

/* Any JSON object (RFC 8259), for response_format json_object. So that a model cannot lose itself and every parser
 * takes the result: at most WEFT__GRAM_JSON_DEPTH deep, no white space in front and behind, a space or a line break
 * with its indent at most where values or members begin and lists end, a space at most behind a colon, 18 digits before
 * a decimal point and 20 behind it, exponents below 200. Surrogates are escaped in pairs only. Returns the root. */
int32_t weft__gram_json_object(weft__gram *g);
/* Any JSON value, within the same bounds. */
int32_t weft__gram_json_value(weft__gram *g);
/* Defines the rules of JSON for builders: value, object, array, string, char (one of a string), which is one of plain
 * or behind a backslash one of escaped, or \uXXXX; number, `ws`, the white space behind [ { and , and before ] }, and
 * `gap`, that behind a colon. */
void weft__gram_json_parts(weft__gram *g);
/* What follows the backslash in a string. */
int32_t weft__gram_json_escape(weft__gram *g);
/* Reads a JSON Schema into g and returns the root: values that are valid, written with their members in the schema's
 * order, other members behind them, without white space in front, and within a space or a line break with its indent
 * at most. Failures name their place as a JSON pointer. */
int32_t weft__gram_read_schema(weft__gram *g, const char *source, size_t n);

#endif
