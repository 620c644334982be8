/* text_grammar.c: grammars against a naive recognizer of their own syntax trees: what is refused, what a mask allows token by token,
 * where a text may end; GBNF as it is written; JSON against the JSON reader; attacks on time and memory; refused allocations. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "unit/alphabet.h"
#include "unit/fixture.h"

#include "base/json.h"
#include "base/random.h"
#include "base/text.h"
#include "text/matcher.h"

/* ---- a vocabulary: all bytes, tokens given, one control token, one end token ---- */

/* Sanitizers and emulation take ten times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEFT_EMULATED)
enum { N_TREES = 300, N_COMPARED = 60, N_DOCUMENTS = 3000 };
#else
enum { N_TREES = 1500, N_COMPARED = 350, N_DOCUMENTS = 20000 };
#endif

enum { CONTROL = 256, END = 257, FIRST = 258, MAX_TOKENS = 512 };

typedef struct vocab {
    char text[MAX_TOKENS][16]; /* bytes that tokens from FIRST on stand for */
    int n;
    weft__tokenizer *tok;
    weft__token_trie *trie;
} vocab;

static const char *token_bytes(const vocab *v, int id, size_t *n, char one[1])
{
    if (id < 256) {
        *one = (char)id;
        *n = 1;
        return one;
    }
    *n = strlen(v->text[id]);
    return v->text[id];
}

static void vocab_open(vocab *v)
{
    static weft__slice tokens[MAX_TOKENS];
    static int32_t types[MAX_TOKENS];
    weft__text spelled[MAX_TOKENS] = {0};
    weft__vocab_spec spec;
    for (int i = 0; i < v->n; i++) {
        char one[1];
        size_t n;
        const char *s = token_bytes(v, i, &n, one);
        if (i == CONTROL) weft__text_puts(&spelled[i], "<ctl>");
        else if (i == END) weft__text_puts(&spelled[i], "<end>");
        else
            for (size_t k = 0; k < n; k++) weft__text_put_utf8(&spelled[i], alphabet_of((unsigned char)s[k]));
        tokens[i] = (weft__slice){spelled[i].data, spelled[i].len};
        types[i] = i == CONTROL || i == END ? WEFT__TOKEN_CONTROL : WEFT__TOKEN_NORMAL;
    }
    weft__vocab_spec_init(&spec);
    spec.model = WEFT__SLICE("gpt2");
    spec.pre = WEFT__SLICE("llama-bpe");
    spec.tokens = tokens;
    spec.types = types;
    spec.n_tokens = spec.n_types = (size_t)v->n;
    spec.merges = &(weft__merge_pair){WEFT__SLICE("a"), WEFT__SLICE("b")}; /* BPE wants one */
    spec.n_merges = 1;
    spec.eos = END;
    assert_int_equal(weft__tokenizer_create(&spec, &v->tok, NULL), WEFT_OK);
    assert_int_equal(weft__token_trie_create(v->tok, &v->trie, NULL), WEFT_OK);
    for (int i = 0; i < v->n; i++) weft__text_free(&spelled[i]);
}

static void vocab_close(vocab *v)
{
    weft__token_trie_release(&v->trie);
    weft__tokenizer_destroy(&v->tok);
}

/* Bytes only, or with random tokens made of what the random grammars are made of, cut anywhere. */
static void vocab_make(vocab *v, uint64_t seed, int n_random)
{
    static const char parts[] = "aabbc\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80""abca";
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    v->n = FIRST;
    memset(v->text, 0, sizeof v->text);
    for (int i = 0; i < n_random; i++) {
        size_t n = 1 + weft__rng_below(&rng, 6), at = weft__rng_below(&rng, sizeof parts - 1 - n);
        memcpy(v->text[v->n++], parts + at, n);
    }
    vocab_open(v);
}

/* ---- short ways to grammars and texts ---- */

static weft_status gbnf(const char *source, size_t n, weft__automaton **out, weft_error *err)
{
    weft__gram *g = weft__gram_create();
    if (!g) return weft_fail(err, WEFT_NO_MEMORY, "no memory");
    int32_t root = weft__gbnf_read(g, source, n);
    weft_status st = weft__gram_compile(g, root, WEFT__GRAMMAR_DEPTH, out, err);
    weft__gram_destroy(&g);
    return st;
}

static weft__grammar *grammar(const char *source, const vocab *v)
{
    weft__automaton *a;
    weft__grammar *g;
    weft_error err = {0};
    if (gbnf(source, strlen(source), &a, &err)) fail_msg("%s\n%s", source, err.message);
    assert_int_equal(weft__grammar_create(a, v->trie, &g, NULL), WEFT_OK);
    return g;
}

static weft__grammar *json_grammar(const vocab *v)
{
    weft__automaton *a;
    weft__grammar *g;
    weft__gram *rules = weft__gram_create();
    weft_error err = {0};
    int32_t root = weft__json_rules(rules);
    if (weft__gram_compile(rules, root, WEFT__JSON_DEPTH - 1, &a, &err)) fail_msg("%s", err.message);
    weft__gram_destroy(&rules);
    assert_int_equal(weft__grammar_create(a, v->trie, &g, NULL), WEFT_OK);
    return g;
}

/* -1: refused at some byte; else what complete says at the end. */
static int follow(weft__grammar *g, const char *s, size_t n)
{
    weft__matcher *m;
    int result = 0;
    assert_int_equal(weft__matcher_create(g, &m, NULL), WEFT_OK);
    for (size_t i = 0; i < n && result >= 0; i++)
        if (weft__matcher_accept(m, (unsigned char)s[i], NULL)) result = -1;
    if (result >= 0) result = weft__matcher_complete(m);
    weft__matcher_destroy(&m);
    return result;
}

/* ---- random grammars, and a recognizer that tries everything ---- */

enum { LITERAL, CLASS, SEQ, ALT, REPEAT, REF, MAX_NODES = 200, MAX_RULES = 5 };

typedef struct node {
    int kind, n, item[4]; /* REF: item[0] is the rule */
    int min, max;         /* max -1: none */
    char text[16];
    uint32_t lo[3], hi[3];
    int negated;
} node;

typedef struct tree {
    node nodes[MAX_NODES];
    int n, n_rules, rule[MAX_RULES];
} tree;

static const uint32_t letters[] = {'a', 'b', 'c', 0xE9, 0x4E2D, 0x1F600};

static int random_node(tree *t, weft__rng *rng, int depth)
{
    int at = t->n++;
    node *x = &t->nodes[at];
    int kind = (int)weft__rng_below(rng, depth > 0 && t->n < MAX_NODES - 20 ? 8 : 2);
    *x = (node){.kind = kind < 2 ? kind : kind == 2 || kind == 6 ? SEQ : kind == 3 ? ALT : kind == 4 ? REPEAT : REF};
    if (x->kind == LITERAL) {
        for (uint64_t i = weft__rng_below(rng, 3); i > 0; i--) {
            size_t n = strlen(x->text);
            x->text[n + weft__utf8_encode(letters[weft__rng_below(rng, 6)], x->text + n)] = 0;
        }
    } else if (x->kind == CLASS) {
        x->n = 1 + (int)weft__rng_below(rng, 3);
        x->negated = weft__rng_below(rng, 4) == 0;
        for (int i = 0; i < x->n; i++) {
            x->lo[i] = letters[weft__rng_below(rng, 6)];
            x->hi[i] = x->lo[i] + (uint32_t)(weft__rng_below(rng, 2) ? 0 : weft__rng_below(rng, x->lo[i] < 128 ? 3 : 5000));
            if (x->lo[i] < 0xD800 && x->hi[i] >= 0xD800) x->hi[i] = 0xD7FF;
        }
    } else if (x->kind == REPEAT) {
        static const int bounds[][2] = {{0, -1}, {1, -1}, {0, 1}, {2, 2}, {1, 3}, {2, -1}, {0, 0}};
        uint64_t which = weft__rng_below(rng, 7);
        x->min = bounds[which][0];
        x->max = bounds[which][1];
        x->n = 1;
        int item = random_node(t, rng, depth - 1);
        t->nodes[at].item[0] = item;
    } else if (x->kind == REF) {
        x->item[0] = (int)weft__rng_below(rng, (uint64_t)t->n_rules);
    } else {
        int n = x->n = 1 + (int)weft__rng_below(rng, 3);
        for (int i = 0; i < n; i++) {
            int item = random_node(t, rng, depth - 1);
            t->nodes[at].item[i] = item;
        }
    }
    return at;
}

static void random_tree(tree *t, weft__rng *rng)
{
    memset(t, 0, sizeof *t);
    t->n_rules = 1 + (int)weft__rng_below(rng, MAX_RULES);
    for (int r = 0; r < t->n_rules; r++) t->rule[r] = random_node(t, rng, 3);
}

static void write_char(weft__text *out, uint32_t cp)
{
    if (cp < 128) weft__text_put_utf8(out, cp);
    else weft__text_printf(out, cp > 0xFFFF ? "\\U%08X" : "\\u%04x", cp);
}

static void write_node(const tree *t, int at, weft__text *out)
{
    const node *x = &t->nodes[at];
    if (x->kind == LITERAL) {
        weft__text_printf(out, "\"%s\"", x->text);
    } else if (x->kind == CLASS) {
        weft__text_puts(out, x->negated ? "[^" : "[");
        for (int i = 0; i < x->n; i++) {
            write_char(out, x->lo[i]);
            if (x->hi[i] == x->lo[i]) continue;
            weft__text_putc(out, '-');
            write_char(out, x->hi[i]);
        }
        weft__text_putc(out, ']');
    } else if (x->kind == REF) {
        if (x->item[0]) weft__text_printf(out, "r%d", x->item[0]);
        else weft__text_puts(out, "root");
    } else {
        weft__text_puts(out, "( ");
        for (int i = 0; i < x->n; i++) {
            if (i) weft__text_puts(out, x->kind == ALT ? " | " : " ");
            write_node(t, x->item[i], out);
        }
        weft__text_puts(out, " )");
        if (x->kind == REPEAT && x->max < 0 && x->min < 2) weft__text_putc(out, x->min ? '+' : '*');
        else if (x->kind == REPEAT && x->max == x->min) weft__text_printf(out, "{%d}", x->min);
        else if (x->kind == REPEAT && x->max < 0) weft__text_printf(out, "{%d,}", x->min);
        else if (x->kind == REPEAT) weft__text_printf(out, "{%d,%d}", x->min, x->max);
    }
}

static void write_tree(const tree *t, weft__text *out)
{
    for (int r = 0; r < t->n_rules; r++) {
        if (r) weft__text_printf(out, "r%d ::= ", r);
        else weft__text_puts(out, "root ::= ");
        write_node(t, t->rule[r], out);
        weft__text_puts(out, " # rule\n");
    }
}

/* Whether a node has a property, given which rules have it. */
static int empty_possible(const tree *t, int at, const int *rules)
{
    const node *x = &t->nodes[at];
    int all = 1, one = 0;
    if (x->kind == LITERAL) return x->text[0] == 0;
    if (x->kind == CLASS) return 0;
    if (x->kind == REF) return rules[x->item[0]];
    for (int i = 0; i < x->n; i++) {
        int has = empty_possible(t, x->item[i], rules);
        all &= has;
        one |= has;
    }
    return x->kind == ALT ? one : x->kind == SEQ ? all : x->min == 0 || all;
}

static int productive(const tree *t, int at, const int *rules)
{
    const node *x = &t->nodes[at];
    int all = 1, one = 0;
    if (x->kind == LITERAL || x->kind == CLASS) return 1;
    if (x->kind == REF) return rules[x->item[0]];
    for (int i = 0; i < x->n; i++) {
        int has = productive(t, x->item[i], rules);
        all &= has;
        one |= has;
    }
    return x->kind == ALT ? one : x->kind == SEQ ? all : x->min == 0 || all;
}

/* Adds the rules that may come first. */
static void firsts(const tree *t, int at, const int *nullable, int *out)
{
    const node *x = &t->nodes[at];
    if (x->kind == REF) out[x->item[0]] = 1;
    if (x->kind == REPEAT && x->max == 0) return;
    for (int i = 0; i < x->n && x->kind >= SEQ && x->kind <= REPEAT; i++) {
        firsts(t, x->item[i], nullable, out);
        if (x->kind == SEQ && !empty_possible(t, x->item[i], nullable)) break;
    }
}

/* 1 when no rule is left-recursive and all can be fulfilled. */
static int is_sound(const tree *t)
{
    int nullable[MAX_RULES] = {0}, fine[MAX_RULES] = {0}, first[MAX_RULES][MAX_RULES] = {0};
    for (int round = 0; round < MAX_RULES; round++) {
        for (int r = 0; r < t->n_rules; r++) {
            nullable[r] = empty_possible(t, t->rule[r], nullable);
            fine[r] = productive(t, t->rule[r], fine);
        }
    }
    for (int r = 0; r < t->n_rules; r++) {
        if (!fine[r]) return 0;
        firsts(t, t->rule[r], nullable, first[r]);
    }
    for (int k = 0; k < t->n_rules; k++)
        for (int i = 0; i < t->n_rules; i++)
            for (int j = 0; j < t->n_rules; j++) first[i][j] |= first[i][k] && first[k][j];
    for (int r = 0; r < t->n_rules; r++)
        if (first[r][r]) return 0;
    return 1;
}

typedef struct naive {
    const tree *t;
    const char *s;
    int n;
    int open; /* some way wanted more than there was */
    long steps;
} naive;

static int in_class(const node *x, uint32_t cp)
{
    int in = 0;
    for (int i = 0; i < x->n; i++) in |= cp >= x->lo[i] && cp <= x->hi[i];
    return in != x->negated && !(cp >= 0xD800 && cp < 0xE000) && cp <= 0x10FFFF;
}

/* 1 when some character of the class begins with these bytes, which are none. */
static int could_begin(const node *x, const char *s, int n)
{
    int length = weft__utf8_length((unsigned char)s[0]);
    char want[4];
    if (length <= n) return 0;
    uint32_t base = 0;
    for (int i = 0; i < length; i++) base = base << (i ? 6 : 0) | (i >= n ? 0 : (unsigned char)s[i] & (i ? 0x3F : 0xFF >> (length + 1)));
    for (uint32_t rest = 0; rest < (uint32_t)1 << (6 * (length - n)); rest++)
        if (in_class(x, base + rest) && weft__utf8_encode(base + rest, want) == (size_t)length && !memcmp(want, s, (size_t)n)) return 1;
    return 0;
}

/* The positions at which the node may end when it begins at one of `from` (bits). */
static uint64_t ends(naive *q, int at, uint64_t from)
{
    const node *x = &q->t->nodes[at];
    uint64_t out = 0;
    if (!from || ++q->steps > 200000) return 0;
    if (x->kind == REF) return ends(q, q->t->rule[x->item[0]], from);
    if (x->kind == ALT) {
        for (int i = 0; i < x->n; i++) out |= ends(q, x->item[i], from);
        return out;
    }
    if (x->kind == SEQ) {
        for (int i = 0; i < x->n; i++) from = ends(q, x->item[i], from);
        return from;
    }
    if (x->kind == REPEAT) {
        uint64_t now = from, seen = x->min == 0 ? from : 0, before;
        for (int i = 1; x->max < 0 ? i <= 70 : i <= x->max; i++) {
            before = now;
            now = ends(q, x->item[0], now);
            if (i >= x->min) seen |= now;
            if (!now || (x->max < 0 && now == before && i >= x->min)) break;
        }
        return seen;
    }
    for (int p = 0; p <= q->n; p++) {
        int left = q->n - p;
        if (!(from >> p & 1)) continue;
        if (x->kind == LITERAL) {
            int n = (int)strlen(x->text), same = n < left ? n : left;
            if (memcmp(q->s + p, x->text, (size_t)same)) continue;
            if (n <= left) out |= (uint64_t)1 << (p + n);
            else q->open = 1;
        } else if (left == 0) {
            q->open = 1;
        } else {
            uint32_t cp;
            int bad = 0;
            size_t n = weft__utf8_decode(q->s + p, (size_t)left, &cp, &bad);
            if (!bad && in_class(x, cp)) out |= (uint64_t)1 << (p + (int)n);
            if (bad && could_begin(x, q->s + p, left)) q->open = 1;
        }
    }
    return out;
}

/* 1 when s[0..n) begins a text of the grammar, 2 when it is one, 3 both; -1: it takes too long to say. */
static int naively(const tree *t, const char *s, int n)
{
    naive q = {t, s, n, 0, 0};
    uint64_t e = ends(&q, t->rule[0], 1);
    int whole = (int)(e >> n & 1);
    return q.steps > 200000 ? -1 : (q.open || whole) + 2 * whole;
}

static int bit(const uint64_t *bits, int i)
{
    return (int)(bits[i / 64] >> (i % 64) & 1);
}

/* Follows a random text; at each place every token's bit is what the recognizer says of the text with its bytes. */
static int compare_masks(const tree *t, const char *source, weft__grammar *g, const vocab *v, weft__rng *rng)
{
    uint64_t bits[MAX_TOKENS / 64 + 1];
    char text[64];
    int n = 0, compared = 0;
    weft__matcher *m;
    assert_int_equal(weft__matcher_create(g, &m, NULL), WEFT_OK);
    while (n < 10) {
        int n_allowed = 0, chosen = -1, here = naively(t, text, n);
        if (here < 0) break;
        weft_status st = weft__matcher_mask(m, bits, NULL);
        for (int id = 0; id < v->n; id++) {
            char one[1];
            size_t len;
            const char *piece = token_bytes(v, id, &len, one);
            memcpy(text + n, piece, len);
            int expected = id == CONTROL ? 0 : id == END ? here >> 1 : naively(t, text, n + (int)len);
            if (expected < 0) goto done;
            expected = id == END ? expected : expected & 1;
            if (bit(bits, id) != expected)
                fail_msg("%s\nafter '%.*s' token %d '%.*s': %d, expected %d", source, n, text, id, (int)len, piece, bit(bits, id), expected);
            compared++;
            if (id != END && expected && weft__rng_below(rng, (uint64_t)++n_allowed) == 0) chosen = id;
        }
        assert_int_equal(st, n_allowed || here >> 1 ? WEFT_OK : WEFT_STATE);
        assert_int_equal(weft__matcher_complete(m), here >> 1 ? 2 - (n_allowed > 0) : 0);
        for (int id = 0; id < v->n; id += 7) /* what is not allowed is refused, and changes nothing */
            if (id != END && !bit(bits, id)) assert_int_equal(weft__matcher_accept(m, id, NULL), WEFT_ARGUMENT);
        if (chosen < 0) break;
        char one[1];
        size_t len;
        const char *piece = token_bytes(v, chosen, &len, one);
        memcpy(text + n, piece, len);
        n += (int)len;
        assert_int_equal(weft__matcher_accept(m, chosen, NULL), WEFT_OK);
    }
done:
    weft__matcher_destroy(&m);
    return compared;
}

static void masks_are_what_a_naive_recognizer_says(void **state)
{
    (void)state;
    static vocab v;
    static tree t;
    weft__rng rng;
    int n_sound = 0, n_refused = 0;
    long compared = 0;
    vocab_make(&v, 3, 80);
    for (uint64_t seed = 0; seed < N_TREES; seed++) {
        weft__text source = {0};
        weft__automaton *a = NULL;
        weft_error err = {0};
        weft__rng_seed(&rng, seed);
        random_tree(&t, &rng);
        write_tree(&t, &source);
        weft_status st = gbnf(source.data, source.len, &a, &err);
        if (st != (is_sound(&t) ? WEFT_OK : WEFT_ARGUMENT)) fail_msg("%s\n%d: %s", source.data, st, err.message);
        if (st) {
            n_refused++;
        } else if (n_sound++ < N_COMPARED) {
            weft__grammar *g;
            assert_int_equal(weft__grammar_create(a, v.trie, &g, NULL), WEFT_OK);
            for (int i = 0; i < 2; i++) compared += compare_masks(&t, source.data, g, &v, &rng);
            weft__grammar_release(&g);
        } else {
            weft__automaton_destroy(&a);
        }
        weft__text_free(&source);
    }
    assert_true(n_sound > N_TREES / 5 && n_refused > N_TREES / 15);
    assert_true(compared > 286 * N_COMPARED);
    vocab_close(&v);
}

/* ---- GBNF as it is written ---- */

static void gbnf_reads_what_it_says(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        const char *whole[4], *not[6];
    } cases[] = {
        {"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"y", "yesno", "No", "", "noo"}},
        {"# list\nroot ::= item (\",\" item)* # items\nitem ::=\n  [a-z]+ |\n  [0-9]{2,3}\n", {"a", "ab,12,c", "123"}, {"1", "1234", "a,", ",a", "A"}},
        {"root ::= (\n \"a\"\n | \"b\"\n){2} end\nend ::= \"!\"?", {"ab", "ba!", "aa"}, {"a", "aba", "ab!!"}},
        {"root ::= \"a\"\n  | \"b\"\n\nother ::= \"c\"", {"a", "b"}, {"c", "ab"}},
        {"root ::= \"\\x41\\u00e9\\U0001F600\\n\\t\\\\\\\"\\[\\]\"", {"A\xC3\xA9\xF0\x9F\x98\x80\n\t\\\"[]"}, {"A", "a"}},
        {"root ::= [^a-c\\]\"]{3}", {"xyz", "\xC3\xA9\n ", "[-^"}, {"xya", "x]z", "x\"z", "xy", "wxyz"}},
        {"root ::= [a+z-]+", {"a-z", "--+"}, {"b"}},
        {"root ::= . .", {"ab", "\n\xE4\xB8\xAD"}, {"a", "abc", "\xE4\xB8"}},
        {"root ::= a-b_1 \"\" a-b_1*\na-b_1 ::= \"x\"{1,}", {"x", "xxx"}, {"", "y"}},
        {"root ::= \"a\"{0} \"b\"{3} \"c\"{2,}", {"bbbcc", "bbbcccc"}, {"abbbcc", "bbcc", "bbbc"}},
        {"root ::= \"ab\"* \"c\"+?", {"abab", "c", "ababccc", ""}, {"aba", "abb"}},
        {"root ::= paren\nparen ::= \"(\" paren* \")\"", {"()", "(()())"}, {"(", "())", "()()"}},
        {"root::=x\r\nx::=\"1\"\r\n", {"1"}, {"2"}},
        {"root ::= | \"a\"", {"", "a"}, {"aa"}},
        {"root ::= r \"b\"\nr ::= (\"a\" r \"c\")?", {"b", "acb", "aaccb"}, {"", "a", "ab", "aacb"}}, /* a call that may be empty */
    };
    static vocab v;
    vocab_make(&v, 1, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__grammar *g = grammar(cases[i].source, &v);
        for (int k = 0; k < 4 && cases[i].whole[k]; k++)
            if (follow(g, cases[i].whole[k], strlen(cases[i].whole[k])) < 1) fail_msg("%s\nmust allow '%s'", cases[i].source, cases[i].whole[k]);
        for (int k = 0; k < 6 && cases[i].not[k]; k++)
            if (follow(g, cases[i].not[k], strlen(cases[i].not[k])) > 0) fail_msg("%s\nmust not allow '%s'", cases[i].source, cases[i].not[k]);
        weft__grammar_release(&g);
    }
    vocab_close(&v);
}

static void what_cannot_work_is_refused_by_name_and_line(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        weft_status status;
        const char *message[3];
    } cases[] = {
        {"", WEFT_ARGUMENT, {"'root'", "not defined"}},
        {"main ::= \"a\"", WEFT_ARGUMENT, {"'root'", "not defined"}},
        {"root ::= \"a\"\nx ::= \"b\" |\n  missing", WEFT_ARGUMENT, {"'missing'", "line 3", "not defined"}},
        {"root ::= \"a\"\nroot ::= \"b\"", WEFT_ARGUMENT, {"line 2", "'root'", "again"}},
        {"root ::= \"a\"\n\nx ::= x \"b\" | \"c\"", WEFT_ARGUMENT, {"'x'", "line 3", "left-recursive"}},
        {"root ::= a\na ::= \"\"? b\nb ::= a \"x\" | \"y\"", WEFT_ARGUMENT, {"left-recursive", "'a' (line 2)", "'b' (line 3)"}},
        {"root ::= (\" \"* root)*", WEFT_ARGUMENT, {"'root'", "line 1", "left-recursive"}},
        {"root ::= \"a\" | x\nx ::= \"b\" y\ny ::= \"c\" x", WEFT_ARGUMENT, {"'x'", "line 2", "no finite text"}},
        {"root ::= [^\\x00-\\U0010FFFF]", WEFT_ARGUMENT, {"line 1", "no character"}},
        {"root ::= []", WEFT_ARGUMENT, {"line 1", "empty character class"}},
        {"root ::= [a", WEFT_ARGUMENT, {"line 1", "closing ']'"}},
        {"root ::= \"a", WEFT_ARGUMENT, {"line 1", "closing '\"'"}},
        {"root ::= (\"a\"\n\n", WEFT_ARGUMENT, {"line 1", "closing ')'"}},
        {"root ::= [z-a]", WEFT_ARGUMENT, {"line 1", "U+007A down to U+0061"}},
        {"root ::= \"\\q\"", WEFT_ARGUMENT, {"line 1", "unknown escape"}},
        {"root ::= \"\\u12\"", WEFT_ARGUMENT, {"line 1", "hexadecimal"}},
        {"root ::= \"\\uD800\"", WEFT_ARGUMENT, {"line 1", "U+D800"}},
        {"root ::= \"\\U00110000\"", WEFT_ARGUMENT, {"line 1", "U+110000"}},
        {"root ::= * \"a\"", WEFT_ARGUMENT, {"line 1", "nothing to be repeated"}},
        {"root ::= \"a\"{}", WEFT_ARGUMENT, {"line 1", "number"}},
        {"root ::= \"a\"{2", WEFT_ARGUMENT, {"line 1", "'}'"}},
        {"root ::= \"a\"{3,2}", WEFT_ARGUMENT, {"line 1", "{3,2}"}},
        {"root ::= \"a\"{99999999999999999999}", WEFT_LIMIT, {"line 1", "repetition"}},
        {"root ::= \"a\" )", WEFT_ARGUMENT, {"line 1", "')'"}},
        {"root = \"a\"", WEFT_ARGUMENT, {"line 1", "'::='"}},
        {"root ::= \"a\"\n<think>", WEFT_ARGUMENT, {"line 2", "'::='"}},
        {"root ::= <think>", WEFT_UNSUPPORTED, {"line 1", "tokens"}},
        {"root ::= \"\xFF\"", WEFT_ARGUMENT, {"line 1", "UTF-8"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__automaton *a;
        weft_error err = {0};
        weft_status st = gbnf(cases[i].source, strlen(cases[i].source), &a, &err);
        assert_null(a);
        if (st != cases[i].status) fail_msg("%s\n%d: %s", cases[i].source, st, err.message);
        for (int k = 0; k < 3 && cases[i].message[k]; k++)
            if (!strstr(err.message, cases[i].message[k])) fail_msg("%s\n'%s' lacks '%s'", cases[i].source, err.message, cases[i].message[k]);
    }
}

/* ---- JSON ---- */

static void json_takes_what_the_standard_allows(void **state)
{
    (void)state;
    static const char *const yes[] = {
        "{}", " \n\t\r{ }", "{\"a\":1}", "{ \"a\" : [ ] , \"b\" : { } }", "{\"\":-0.5e+10}", "{\"a\":[1,2.25,-3,0,1E5,true,false,null,\"x\"]}",
        "{\"\\u00e9\\uD83D\\uDE00\\n\\/\\\"\\\\\":\"\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\x7F\"}", "{\"a\":[[[{\"b\":{}}]]]}", "{\"a\":\"\\ud7FF\\uE000\"}",
        "{\"a\":12345678901234567890.12345678901234567890e-123}"};
    static const char *const no[] = {
        "[]", "1", "\"a\"", "{} ", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}", "{a:1}", "{'a':1}", "{\"a\":01}", "{\"a\":1.}", "{\"a\":.5}",
        "{\"a\":+1}", "{\"a\":1e}", "{\"a\":-}", "{\"a\":NaN}", "{\"a\":tru}", "{\"a\":[1,]}", "{\"a\":[}", "{\"a\":\"\n\"}", "{\"a\":\"\t\"}",
        "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "{\"a\":\"\\uD800\"}", "{\"a\":\"\\uDC00\"}", "{\"a\":\"\\uD83D\\u0041\"}", "{\"a\":\"\\uDC00\\uDC00\"}",
        "{\"a\":\"\\uD83Dx\"}", "{\"a\":\"\xED\xA0\x80\"}", "{\"a\":\"\xC0\x80\"}", "{\"a\":\"\xFF\"}", "{\"a\":1}}", "{\"a\" 1}", "{\"a\":1 \"b\":2}",
        "{\"a\":12345678901234567890123}"};
    static vocab v;
    vocab_make(&v, 1, 0);
    weft__grammar *g = json_grammar(&v);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (follow(g, yes[i], strlen(yes[i])) != 2) fail_msg("must allow %s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (follow(g, no[i], strlen(no[i])) > 0) fail_msg("must not allow %s", no[i]);
    weft__grammar_release(&g);
    vocab_close(&v);
}

/* Random bytes changed, left out and doubled in a document: the grammar and the reader agree. */
static void json_agrees_with_the_reader(void **state)
{
    (void)state;
    static const char seed_text[] = "{\"a\\u10e9\": [1, -2.5e3, true, null, \"\xC3\xA9\\n\"], \"b\": {\"c\": {}, \"d\": [[], false]}, \"e\": 0}";
    static const char spice[] = "{}[]\",:\\u0123456789.eE+-tfn \n\xC3\xA9";
    static vocab v;
    weft__rng rng;
    int n_good = 0;
    vocab_make(&v, 1, 0);
    weft__grammar *g = json_grammar(&v);
    for (uint64_t seed = 0; seed < N_DOCUMENTS; seed++) {
        char s[2 * sizeof seed_text];
        size_t n = sizeof seed_text - 1;
        weft__json *doc = NULL;
        weft__rng_seed(&rng, seed);
        memcpy(s, seed_text, n);
        for (uint64_t k = 1 + weft__rng_below(&rng, 3); k > 0; k--) {
            size_t at = weft__rng_below(&rng, n);
            uint64_t what = weft__rng_below(&rng, 3);
            if (what == 0) {
                s[at] = spice[weft__rng_below(&rng, sizeof spice - 1)];
            } else if (what == 1) {
                memmove(s + at, s + at + 1, --n - at);
            } else {
                memmove(s + at + 1, s + at, n++ - at);
            }
        }
        weft_error err = {0};
        int expected = !weft__json_parse(s, n, &doc, &err) && s[n - 1] == '}' && memchr("{ \n", s[0], 3);
        /* Beyond the grammar: keys that occur twice or contain NUL, numbers that are too large. */
        if (strstr(err.message, "duplicate") || strstr(err.message, "overflow") || strstr(err.message, "too big") || strstr(err.message, "NUL")) continue;
        if (expected != (follow(g, s, n) == 2)) fail_msg("%.*s: the reader says %d", (int)n, s, expected);
        n_good += expected;
        weft__json_free(&doc);
    }
    assert_true(n_good > N_DOCUMENTS / 40 && n_good < N_DOCUMENTS / 20 * 19);
    weft__grammar_release(&g);
    vocab_close(&v);
}

static void json_has_a_depth_and_never_gets_stuck(void **state)
{
    (void)state;
    static vocab v;
    uint64_t bits[MAX_TOKENS / 64 + 1];
    vocab_make(&v, 1, 0);
    strcpy(v.text[v.n++], "[[[[[[[");
    strcpy(v.text[v.n++], "[[");
    strcpy(v.text[v.n++], "[1");
    vocab_close(&v);
    vocab_open(&v);
    weft__grammar *g = json_grammar(&v);
    weft__matcher *m;
    assert_int_equal(weft__matcher_create(g, &m, NULL), WEFT_OK);
    for (const char *s = "{\"a\":"; *s; s++) assert_int_equal(weft__matcher_accept(m, (unsigned char)*s, NULL), WEFT_OK);
    for (int depth = 2; depth <= WEFT__JSON_DEPTH; depth++) {
        assert_int_equal(weft__matcher_mask(m, bits, NULL), WEFT_OK);
        int left = WEFT__JSON_DEPTH - depth + 1; /* arrays that may still begin */
        assert_int_equal(bit(bits, FIRST), left >= 7);
        assert_int_equal(bit(bits, FIRST + 1), left >= 2);
        assert_int_equal(bit(bits, FIRST + 2), left >= 1);
        assert_int_equal(weft__matcher_accept(m, '[', NULL), WEFT_OK);
    }
    assert_int_equal(weft__matcher_mask(m, bits, NULL), WEFT_OK);
    assert_true(!bit(bits, '[') && !bit(bits, '{') && bit(bits, '1') && bit(bits, '"') && bit(bits, ']'));
    assert_int_equal(weft__matcher_accept(m, '[', NULL), WEFT_ARGUMENT);
    for (int depth = WEFT__JSON_DEPTH; depth > 1; depth--) assert_int_equal(weft__matcher_accept(m, ']', NULL), WEFT_OK);
    assert_int_equal(weft__matcher_accept(m, '}', NULL), WEFT_OK);
    assert_int_equal(weft__matcher_complete(m), 2);
    weft__matcher_destroy(&m);
    weft__grammar_release(&g);
    vocab_close(&v);
}

/* ---- ends ---- */

static void ends_and_control_tokens(void **state)
{
    (void)state;
    static vocab v;
    uint64_t bits[MAX_TOKENS / 64 + 1];
    weft_error err = {0};
    vocab_make(&v, 1, 0);
    weft__grammar *g = grammar("root ::= \"<ctl>\" \"<end>\"?", &v);
    weft__matcher *m, *other;
    assert_int_equal(weft__matcher_create(g, &m, NULL), WEFT_OK);
    weft__grammar_release(&g); /* the matcher keeps it */
    assert_int_equal(weft__matcher_mask(m, bits, NULL), WEFT_OK);
    assert_true(bit(bits, '<') && !bit(bits, CONTROL) && !bit(bits, END));
    assert_int_equal(weft__matcher_accept(m, CONTROL, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__matcher_accept(m, END, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__matcher_accept(m, v.n, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__matcher_accept(m, -1, NULL), WEFT_ARGUMENT);
    for (const char *s = "<ctl>"; *s; s++) assert_int_equal(weft__matcher_accept(m, *s, NULL), WEFT_OK);
    assert_int_equal(weft__matcher_copy(m, &other, NULL), WEFT_OK);
    assert_int_equal(weft__matcher_accept(m, END, NULL), WEFT_OK);
    assert_int_equal(weft__matcher_complete(m), 2);
    assert_int_equal(weft__matcher_mask(m, bits, &err), WEFT_STATE);
    assert_int_equal(weft__matcher_accept(m, '<', NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__matcher_complete(other), 1); /* the copy went its own way */
    for (const char *s = "<end>"; *s; s++) assert_int_equal(weft__matcher_accept(other, *s, NULL), WEFT_OK);
    assert_int_equal(weft__matcher_complete(other), 2);
    weft__matcher_destroy(&other);
    weft__matcher_destroy(&m);
    vocab_close(&v);
}

/* A vocabulary that cannot spell what the grammar wants is an error that names the place, never a mask without a token. */
static void fails_closed(void **state)
{
    (void)state;
    weft__slice tokens[] = {WEFT__SLICE("<unk>"), WEFT__SLICE("<s>"), WEFT__SLICE("</s>"), WEFT__SLICE("a"), WEFT__SLICE("b")};
    int32_t types[] = {WEFT__TOKEN_UNKNOWN, WEFT__TOKEN_CONTROL, WEFT__TOKEN_CONTROL, WEFT__TOKEN_NORMAL, WEFT__TOKEN_NORMAL};
    float scores[5] = {0};
    weft__vocab_spec spec;
    vocab v;
    uint64_t bits[1];
    weft_error err = {0};
    weft__vocab_spec_init(&spec);
    spec.model = WEFT__SLICE("llama");
    spec.tokens = tokens;
    spec.types = types;
    spec.scores = scores;
    spec.n_tokens = spec.n_types = spec.n_scores = 5;
    assert_int_equal(weft__tokenizer_create(&spec, &v.tok, NULL), WEFT_OK);
    assert_int_equal(weft__token_trie_create(v.tok, &v.trie, NULL), WEFT_OK);
    weft__grammar *g = grammar("root ::= \"ab\" rest\n\nrest ::= \"c\" rest \"c\" | \"c\"", &v);
    weft__matcher *m;
    assert_int_equal(weft__matcher_create(g, &m, NULL), WEFT_OK);
    assert_int_equal(weft__matcher_accept(m, 3, NULL), WEFT_OK);
    assert_int_equal(weft__matcher_mask(m, bits, NULL), WEFT_OK);
    assert_int_equal(bits[0], 1 << 4);
    assert_int_equal(weft__matcher_accept(m, 4, NULL), WEFT_OK);
    assert_int_equal(weft__matcher_mask(m, bits, &err), WEFT_STATE);
    assert_int_equal(bits[0], 0);
    assert_non_null(strstr(err.message, "at byte 2"));
    assert_non_null(strstr(err.message, "rule 'rest' (line 3)"));
    weft__matcher_destroy(&m);
    weft__grammar_release(&g);
    vocab_close(&v);
}

/* ---- attacks ---- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t largest_block, total_bytes;
static int count_bytes(void *arg, size_t n)
{
    (void)arg;
    if (n > largest_block) largest_block = n;
    total_bytes += n;
    return 1;
}

/* `times` copies of a text. */
static void repeat(weft__text *out, const char *s, int times)
{
    for (int i = 0; i < times; i++) weft__text_puts(out, s);
}

/* Compiles, and follows a text with a mask at each byte; time and blocks of memory stay small whatever comes of it. */
static weft_status attack(const char *name, const weft__text *source, const char *text, const vocab *v)
{
    static uint64_t bits[MAX_TOKENS / 64 + 1];
    weft__automaton *a = NULL;
    weft__grammar *g = NULL;
    weft__matcher *m = NULL;
    double start = seconds();
    largest_block = 0;
    weft__alloc_set_gate(count_bytes, NULL);
    weft_status st = gbnf(source->data, source->len, &a, NULL);
    if (!st) st = weft__grammar_create(a, v->trie, &g, NULL);
    if (!st) st = weft__matcher_create(g, &m, NULL);
    for (; !st && *text; text++) {
        st = weft__matcher_mask(m, bits, NULL);
        if (!st) st = weft__matcher_accept(m, (unsigned char)*text, NULL);
    }
    weft__matcher_destroy(&m);
    weft__grammar_release(&g);
    weft__alloc_set_gate(NULL, NULL);
    print_message("  %s: %.2f s\n", name, seconds() - start);
    if (seconds() - start > 20 || largest_block > (size_t)128 << 20) fail_msg("%s: %.1f s, a block of %zu bytes", name, seconds() - start, largest_block);
    return st;
}

static void attacks_meet_a_limit(void **state)
{
    (void)state;
    static vocab v;
    weft__text s = {0}, text = {0};
    vocab_make(&v, 1, 30);

    weft__text_puts(&s, "root ::= ");
    repeat(&s, "(", 20);
    weft__text_puts(&s, "\"a\"");
    repeat(&s, "{0,99})", 20);
    assert_int_equal(attack("nested quantifiers", &s, "", &v), WEFT_LIMIT);

    s.len = 0;
    weft__text_puts(&s, "root ::= ");
    repeat(&s, "(", 40);
    weft__text_puts(&s, "\"a\"");
    repeat(&s, "*)+", 40);
    assert_int_equal(attack("nested stars", &s, "aaaaaaaaaa", &v), WEFT_OK);

    s.len = 0;
    weft__text_puts(&s, "root ::= \"");
    repeat(&s, "0123456789", 1 << 20);
    weft__text_puts(&s, "\"");
    assert_int_equal(attack("10 MB", &s, "", &v), WEFT_LIMIT);

    s.len = 0;
    weft__text_puts(&s, "root ::= ");
    repeat(&s, "(", 100000);
    assert_int_equal(attack("nested groups", &s, "", &v), WEFT_LIMIT);

    s.len = 0; /* each rule is twice the one before it */
    weft__text_puts(&s, "root ::= r0\n");
    for (int i = 0; i < 60; i++) weft__text_printf(&s, "r%d ::= r%d r%d\n", i, i + 1, i + 1);
    weft__text_puts(&s, "r60 ::= \"a\" | \"b\"\n");
    assert_int_equal(attack("doubling rules", &s, "abababababab", &v), WEFT_OK);

    s.len = 0; /* a chain of names */
    weft__text_puts(&s, "root ::= r0\n");
    for (int i = 0; i < 16000; i++) weft__text_printf(&s, "r%d ::= r%d\n", i, i + 1);
    weft__text_puts(&s, "r16000 ::= \"a\"\n");
    assert_int_equal(attack("a chain", &s, "a", &v), WEFT_OK);

    s.len = 0;
    weft__text_puts(&s, "root ::= \"a\"\n");
    for (int i = 0; i < 20000; i++) weft__text_printf(&s, "r%d ::= \"a\"\n", i);
    assert_int_equal(attack("many rules", &s, "", &v), WEFT_LIMIT);

    s.len = 0; /* a deterministic automaton would need 2^40 states */
    weft__text_puts(&s, "root ::= [ab]* \"a\" [ab]{40}");
    repeat(&text, "ab", 100);
    assert_int_equal(attack("subsets", &s, text.data, &v), WEFT_OK);

    s.len = 0; /* 2^n stacks; derivations without number */
    weft__text_puts(&s, "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\"");
    text.len = 0;
    repeat(&text, "a", 300);
    assert_int_equal(attack("stacks", &s, text.data, &v), WEFT_OK);
    s.len = 0;
    weft__text_puts(&s, "root ::= \"a\" root root | \"a\" root root root | \"a\"");
    text.len = 0;
    repeat(&text, "a", 150);
    weft_status st = attack("derivations", &s, text.data, &v);
    assert_true(st == WEFT_OK || st == WEFT_LIMIT);
    s.len = 0;
    weft__text_puts(&s, "root ::= x{0,300}\nx ::= \"a\"{0,200} \"b\"?");
    st = attack("ambiguous repetition", &s, text.data, &v);
    assert_true(st == WEFT_OK || st == WEFT_LIMIT);

    s.len = 0;
    weft__text_puts(&s, "root ::= ");
    repeat(&s, "r|", 250000);
    weft__text_puts(&s, "r\nr ::= \"a\" r \"a\" | \"a\"");
    st = attack("alternatives", &s, "aaa", &v);
    assert_true(st == WEFT_OK || st == WEFT_LIMIT);
    weft__text_free(&s);
    weft__text_free(&text);
    vocab_close(&v);
}

/* A text without end: lists by right recursion and by repetition, and braces that open and close, in memory that does not grow. */
static void long_texts_need_no_more_memory(void **state)
{
    (void)state;
    static const char *const sources[] = {"root ::= \"a\" root | \"b\" root | \"!\"", "root ::= (\"a\" | \"b\" | x)* \"!\"\nx ::= \"(\" x* \")\"",
                                          "root ::= x root | \"!\"\nx ::= \"a\" | \"b\" | \"(\" x x \")\""};
    static vocab v;
    vocab_make(&v, 1, 0);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        weft__grammar *g = grammar(sources[i], &v);
        weft__matcher *m, *copy;
        size_t early = 0;
        assert_int_equal(weft__matcher_create(g, &m, NULL), WEFT_OK);
        for (int k = 0; k < 100000; k++) {
            const char *s = i && k % 3 == 0 ? "(" : i && k % 3 == 1 ? "ab)" : "ab";
            if (i == 1 && k % 3 == 1) s = ")";
            for (; *s; s++) assert_int_equal(weft__matcher_accept(m, *s, NULL), WEFT_OK);
            if (k != 1000 && k != 99999) continue;
            total_bytes = 0;
            weft__alloc_set_gate(count_bytes, NULL);
            assert_int_equal(weft__matcher_copy(m, &copy, NULL), WEFT_OK);
            weft__alloc_set_gate(NULL, NULL);
            weft__matcher_destroy(&copy);
            if (k == 1000) early = total_bytes;
        }
        assert_true(total_bytes < early + 100000);
        weft__matcher_destroy(&m);
        weft__grammar_release(&g);
    }
    vocab_close(&v);
}

/* ---- memory and threads ---- */

struct everything {
    const vocab *v;
    int json;
};

static int use_everything(void *arg)
{
    static const char source[] = "root ::= (item | \"x\"{2,40})* (\"[\" root \"]\")? # c\nitem ::= \"(\" item* \")\" | [^a-c\\n\xE4\xB8\xAD]+ \"b\"";
    const struct everything *e = arg;
    weft__token_trie *trie = NULL;
    weft__automaton *a = NULL;
    weft__grammar *g = NULL;
    weft__matcher *m = NULL, *copy = NULL;
    uint64_t bits[MAX_TOKENS / 64 + 1];
    weft__gram *rules = weft__gram_create();
    if (!rules) return 0;
    int32_t root = e->json ? weft__json_rules(rules) : weft__gbnf_read(rules, source, sizeof source - 1);
    weft_status st = weft__gram_compile(rules, root, 100, &a, NULL);
    weft__gram_destroy(&rules);
    if (!st) st = weft__token_trie_create(e->v->tok, &trie, NULL);
    if (st) weft__automaton_destroy(&a);
    else st = weft__grammar_create(a, trie, &g, NULL);
    weft__token_trie_release(&trie);
    if (!st) st = weft__matcher_create(g, &m, NULL);
    for (const char *s = e->json ? "{\"a\":[[{" : "((db"; !st && *s; s++) {
        if (!(st = weft__matcher_mask(m, bits, NULL))) st = weft__matcher_accept(m, (unsigned char)*s, NULL);
    }
    if (!st) st = weft__matcher_copy(m, &copy, NULL);
    weft__matcher_destroy(&copy);
    weft__matcher_destroy(&m);
    weft__grammar_release(&g);
    return st == WEFT_OK;
}

static void refused_allocations_leave_nothing(void **state)
{
    (void)state;
    static vocab v;
#if defined(__SANITIZE_THREAD__) || defined(WEFT_EMULATED)
    enum { KINDS = 1 }; /* the JSON grammar is compiled hundreds of times, which takes minutes there and finds what it finds elsewhere */
#else
    enum { KINDS = 2 };
#endif
    vocab_make(&v, 1, 20);
    for (int json = 0; json < KINDS; json++) assert_true(fail_each(use_everything, &(struct everything){&v, json}) > 30);
    vocab_close(&v);
}

static void *follow_json(void *arg)
{
    static const char text[] = "{\"a\": [1, \"b\", {\"c\": null}]}";
    return (void *)(intptr_t)follow(arg, text, sizeof text - 1);
}

static void threads_share_a_grammar(void **state)
{
    (void)state;
    static vocab v;
    pthread_t threads[4];
    void *result;
    vocab_make(&v, 5, 80);
    weft__grammar *g = json_grammar(&v);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, follow_json, g), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_int_equal((intptr_t)result, 2);
    }
    weft__grammar_release(&g);
    vocab_close(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_are_what_a_naive_recognizer_says),
        cmocka_unit_test(gbnf_reads_what_it_says),
        cmocka_unit_test(what_cannot_work_is_refused_by_name_and_line),
        cmocka_unit_test(json_takes_what_the_standard_allows),
        cmocka_unit_test(json_agrees_with_the_reader),
        cmocka_unit_test(json_has_a_depth_and_never_gets_stuck),
        cmocka_unit_test(ends_and_control_tokens),
        cmocka_unit_test(fails_closed),
        cmocka_unit_test(attacks_meet_a_limit),
        cmocka_unit_test(long_texts_need_no_more_memory),
        cmocka_unit_test(refused_allocations_leave_nothing),
        cmocka_unit_test(threads_share_a_grammar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
