// SPDX-License-Identifier: Apache-2.0
/* text_grammar_masks.c: random grammars against a naive recognizer of their own syntax trees, which tries everything:
 * what is refused as unsound, what a mask allows token by token, where a text may end. And near the limit of depth,
 * against what accept takes. */
#include "unit/grammar_world.h"

/* Trees that are written and compiled, and grammars whose masks are compared. */
#define N_TREES CLAIMS_REPEATED(CLAIMS_SWEPT(400, 1500), 300, 75)
#define N_COMPARED CLAIMS_REPEATED(CLAIMS_SWEPT(90, 350), 60, 12)

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
    if (x->kind == LITERAL && weft__rng_below(rng, 8) == 0) {
        strcpy(x->text, CONTROL_BYTES);
        x->n = (int)weft__rng_below(rng, 2); /* by its number */
    } else if (x->kind == LITERAL) {
        for (uint64_t i = weft__rng_below(rng, 3); i > 0; i--) {
            size_t n = strlen(x->text);
            x->text[n + weft__utf8_encode(letters[weft__rng_below(rng, 6)], x->text + n)] = 0;
        }
    } else if (x->kind == CLASS) {
        x->n = 1 + (int)weft__rng_below(rng, 3);
        x->negated = weft__rng_below(rng, 4) == 0;
        for (int i = 0; i < x->n; i++) {
            x->lo[i] = letters[weft__rng_below(rng, 6)];
            x->hi[i] =
                x->lo[i] + (uint32_t)(weft__rng_below(rng, 2) ? 0 : weft__rng_below(rng, x->lo[i] < 128 ? 3 : 5000));
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

static void write_char(weft__strbuf *out, uint32_t cp)
{
    if (cp < 128) weft__strbuf_put_utf8(out, cp);
    else weft__strbuf_printf(out, cp > 0xFFFF ? "\\U%08X" : "\\u%04x", cp);
}

static void write_node(const tree *t, int at, weft__strbuf *out)
{
    const node *x = &t->nodes[at];
    if (x->kind == LITERAL && x->text[0] == '\xFF') {
        weft__strbuf_puts(out, x->n ? "<[256]>" : "<ctl>");
    } else if (x->kind == LITERAL) {
        weft__strbuf_printf(out, "\"%s\"", x->text);
    } else if (x->kind == CLASS) {
        weft__strbuf_puts(out, x->negated ? "[^" : "[");
        for (int i = 0; i < x->n; i++) {
            write_char(out, x->lo[i]);
            if (x->hi[i] == x->lo[i]) continue;
            weft__strbuf_putc(out, '-');
            write_char(out, x->hi[i]);
        }
        weft__strbuf_putc(out, ']');
    } else if (x->kind == REF) {
        if (x->item[0]) weft__strbuf_printf(out, "r%d", x->item[0]);
        else weft__strbuf_puts(out, "root");
    } else {
        weft__strbuf_puts(out, "( ");
        for (int i = 0; i < x->n; i++) {
            if (i) weft__strbuf_puts(out, x->kind == ALT ? " | " : " ");
            write_node(t, x->item[i], out);
        }
        weft__strbuf_puts(out, " )");
        if (x->kind == REPEAT && x->max < 0 && x->min < 2) weft__strbuf_putc(out, x->min ? '+' : '*');
        else if (x->kind == REPEAT && x->max == x->min) weft__strbuf_printf(out, "{%d}", x->min);
        else if (x->kind == REPEAT && x->max < 0) weft__strbuf_printf(out, "{%d,}", x->min);
        else if (x->kind == REPEAT) weft__strbuf_printf(out, "{%d,%d}", x->min, x->max);
    }
}

static void write_tree(const tree *t, weft__strbuf *out)
{
    for (int r = 0; r < t->n_rules; r++) {
        if (r) weft__strbuf_printf(out, "r%d ::= ", r);
        else weft__strbuf_puts(out, "root ::= ");
        write_node(t, t->rule[r], out);
        weft__strbuf_puts(out, " # rule\n");
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
    for (int i = 0; i < length; i++)
        base = base << (i ? 6 : 0) | (i >= n ? 0 : (unsigned char)s[i] & (i ? 0x3F : 0xFF >> (length + 1)));
    for (uint32_t rest = 0; rest < (uint32_t)1 << (6 * (length - n)); rest++)
        if (in_class(x, base + rest) && weft__utf8_encode(base + rest, want) == (size_t)length &&
            !memcmp(want, s, (size_t)n))
            return 1;
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

/* Follows a random text; at each place every token's bit is what the recognizer says of the text with its bytes. */
static int compare_masks(const tree *t, const char *source, weft__gram_tables *g, const vocab *v, weft__rng *rng)
{
    uint64_t bits[MAX_TOKENS / 64 + 1];
    char text[64];
    int n = 0, compared = 0;
    weft__gram_matcher *m;
    assert_int_equal(weft__gram_matcher_create(g, &m, NULL), WEFT_OK);
    while (n < 10) {
        int n_allowed = 0, chosen = -1, here = naively(t, text, n);
        if (here < 0) break;
        weft_status st = weft__gram_matcher_mask(m, bits, NULL);
        for (int id = 0; id < v->n; id++) {
            char one[1];
            size_t len;
            const char *piece = token_bytes(v, id, &len, one);
            memcpy(text + n, piece, len);
            int expected = id == 0xFF ? 0 : id == END ? here >> 1 : naively(t, text, n + (int)len);
            if (expected < 0) goto done;
            expected = id == END ? expected : expected & 1;
            if (bit(bits, id) != expected)
                fail_msg("%s\nafter '%.*s' token %d '%.*s': %d, expected %d", source, n, text, id, (int)len, piece,
                         bit(bits, id), expected);
            compared++;
            if (id != END && expected && weft__rng_below(rng, (uint64_t)++n_allowed) == 0) chosen = id;
        }
        assert_int_equal(st, n_allowed || here >> 1 ? WEFT_OK : WEFT_STATE);
        assert_int_equal(weft__gram_matcher_complete(m), here >> 1 ? 2 - (n_allowed > 0) : 0);
        for (int id = 0; id < v->n; id += 7) /* what is not allowed is refused, and changes nothing */
            if (id != END && !bit(bits, id)) assert_int_equal(weft__gram_matcher_accept(m, id, NULL), WEFT_ARGUMENT);
        if (chosen < 0) break;
        char one[1];
        size_t len;
        const char *piece = token_bytes(v, chosen, &len, one);
        memcpy(text + n, piece, len);
        n += (int)len;
        assert_int_equal(weft__gram_matcher_accept(m, chosen, NULL), WEFT_OK);
    }
done:
    weft__gram_matcher_destroy(&m);
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
    for (uint64_t tried = 0; tried < (uint64_t)N_TREES; tried++) {
        const uint64_t seed = claims_seed() + tried;
        weft__strbuf source = {0};
        weft__gram_automaton *a = NULL;
        weft_error err = {0};
        weft__rng_seed(&rng, seed);
        random_tree(&t, &rng);
        write_tree(&t, &source);
        weft_status st = gbnf_over(v.tok, source.data, source.len, WEFT__GRAM_DEPTH, &a, &err);
        if (st != (is_sound(&t) ? WEFT_OK : WEFT_ARGUMENT)) fail_msg("%s\n%d: %s", source.data, st, err.message);
        if (st) {
            n_refused++;
        } else if (n_sound++ < N_COMPARED) {
            weft__gram_tables *g;
            assert_int_equal(weft__gram_tables_create(a, v.trie, &g, NULL), WEFT_OK);
            for (int i = 0; i < 2; i++) compared += compare_masks(&t, source.data, g, &v, &rng);
            weft__gram_tables_release(&g);
        } else {
            weft__gram_automaton_destroy(&a);
        }
        weft__strbuf_free(&source);
    }
    assert_true(n_sound > N_TREES / 5 && n_refused > N_TREES / 15);
    assert_true(compared > 286 * N_COMPARED);
    vocab_close(&v);
}

/* ---- near the limit of depth ---- */

/* Along a random text a mask is what accept takes, token by token, and nothing that is not allowed without the limit.
 * Returns how many tokens the limit left out. */
static int compare_accepts(weft__gram_tables *g, weft__gram_tables *unlimited, const char *source, const vocab *v,
                           weft__rng *rng)
{
    uint64_t bits[MAX_TOKENS / 64 + 1], all[MAX_TOKENS / 64 + 1];
    int n_left_out = 0;
    weft__gram_matcher *m, *free_m, *copy;
    if (weft__gram_matcher_create(g, &m, NULL)) return 0;
    assert_int_equal(weft__gram_matcher_create(unlimited, &free_m, NULL), WEFT_OK);
    for (int at = 0, chosen = 0; at < 14 && chosen >= 0; at++) {
        int n_allowed = 0;
        chosen = -1;
        weft_status mask = weft__gram_matcher_mask(m, bits, NULL),
                    free_mask = weft__gram_matcher_mask(free_m, all, NULL);
        if (mask == WEFT_LIMIT || free_mask == WEFT_LIMIT) break;
        for (int id = 0; id < v->n; id++) {
            assert_int_equal(weft__gram_matcher_copy(m, &copy, NULL), WEFT_OK);
            weft_status st = weft__gram_matcher_accept(copy, id, NULL);
            weft__gram_matcher_destroy(&copy);
            if (bit(bits, id) != (st == WEFT_OK) || bit(bits, id) > bit(all, id))
                fail_msg("%s\nafter %d tokens, token %d: mask %d, accept %d, without the limit %d", source, at, id,
                         bit(bits, id), st == WEFT_OK, bit(all, id));
            n_left_out += bit(all, id) - bit(bits, id);
            if (st == WEFT_OK && id != END && weft__rng_below(rng, (uint64_t)++n_allowed) == 0) chosen = id;
        }
        if (chosen < 0) break;
        assert_int_equal(weft__gram_matcher_accept(m, chosen, NULL), WEFT_OK);
        assert_int_equal(weft__gram_matcher_accept(free_m, chosen, NULL), WEFT_OK);
    }
    weft__gram_matcher_destroy(&free_m);
    weft__gram_matcher_destroy(&m);
    return n_left_out;
}

static int compare_depths(const char *source, const vocab *v, uint32_t most, weft__rng *rng)
{
    weft__gram_automaton *a;
    weft__gram_tables *unlimited, *g;
    int n_left_out = 0;
    if (gbnf(source, strlen(source), &a, NULL)) return 0;
    assert_int_equal(weft__gram_tables_create(a, v->trie, &unlimited, NULL), WEFT_OK);
    for (uint32_t depth = 1; depth <= most; depth++) {
        assert_int_equal(gbnf_of_depth(source, strlen(source), depth, &a, NULL), WEFT_OK);
        assert_int_equal(weft__gram_tables_create(a, v->trie, &g, NULL), WEFT_OK);
        for (int i = 0; i < 3; i++) n_left_out += compare_accepts(g, unlimited, source, v, rng);
        weft__gram_tables_release(&g);
    }
    weft__gram_tables_release(&unlimited);
    return n_left_out;
}

static void masks_near_the_limit_of_depth_are_what_accept_takes(void **state)
{
    (void)state;
    /* Readings side by side of which one nests and the other does not, with calls in common. */
    static const char *const both[] = {
        "root ::= a | b\na ::= \"a\" a \"c\" | \"b\" x \"c\"\nb ::= \"a\" b | \"b\" x \"a\"\n"
        "x ::= y \"c\" x | y \"b\"\ny ::= \"b\" y \"b\" | \"a\"",
        "root ::= \"a\" root \"b\" | \"a\" root root | [a-c]",
        "root ::= \"a\" root \"a\" | \"a\" x \"b\" | \"a\" root x | [bc]\nx ::= y root | y x \"c\"\ny ::= \"b\" y "
        "\"a\" | \"b\"",
    };
    static vocab v;
    static tree t;
    weft__rng rng;
    int n_left_out = 0;
    vocab_make(&v, 3, 60);
    weft__rng_seed(&rng, 1);
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        for (int k = 0; k < CLAIMS_REPEATED(20, 5, 2); k++) n_left_out += compare_depths(both[i], &v, 8, &rng);
    for (uint64_t tried = 0; tried < (uint64_t)N_TREES; tried++) {
        const uint64_t seed = claims_seed() + tried;
        weft__strbuf source = {0};
        weft__rng_seed(&rng, seed);
        random_tree(&t, &rng);
        write_tree(&t, &source);
        n_left_out += compare_depths(source.data, &v, 4, &rng);
        weft__strbuf_free(&source);
    }
    print_message("  %d tokens left out\n", n_left_out);
    assert_true(n_left_out > 100);
    vocab_close(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_are_what_a_naive_recognizer_says),
        cmocka_unit_test(masks_near_the_limit_of_depth_are_what_accept_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
