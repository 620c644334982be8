// SPDX-License-Identifier: Apache-2.0
/* text_grammar_large.c: masks of grammars for data, over vocabularies of 512 and of 128 k tokens, are what a recognizer
 * says that tries everything, token by token: strings whose ends nobody knows, bounded lengths, characters cut off; and
 * strings of every length that tokens have. */
#include "unit/grammar_world.h"
#include "unit/naive_grammar.h"
#include "unit/real_texts.h"

enum { N_SMALL = 512, LONGEST = 63 /* bytes of a text with a token: naive_grammar.h */ };

typedef struct world {
    const weft__tok *tok;
    weft__gram_trie *trie;
    uint64_t *bits; /* [n_tokens / 64 + 1] */
} world;

static void world_open(world *w, const weft__tok *tok)
{
    w->tok = tok;
    assert_int_equal(weft__gram_trie_create(tok, &w->trie, NULL), WEFT_OK);
    assert_non_null(w->bits = weft__alloc_array((size_t)w->trie->n_tokens / 64 + 1, sizeof *w->bits));
}

static void world_close(world *w)
{
    weft__free(w->bits);
    weft__gram_trie_release(&w->trie);
}

/* What the recognizer says of a token behind text[0..n), which goes on with a byte as `first` has it; -1: it cannot. */
static int expected(const world *w, const tree *t, char *text, int n, int32_t id, const int first[256], int here)
{
    weft__tok_slice piece = weft__tok_piece_of(w->tok, id);
    if (weft__tok_is_end(w->tok, id)) return here >> 1;
    if (w->trie->node_of[id] == WEFT__GRAM_TRIE_NONE || weft__gram_trie_is_control(w->tok, id)) return 0;
    if (first[(unsigned char)piece.data[0]] == 0) return 0;
    if (n + (int)piece.len > LONGEST) return -1;
    memcpy(text + n, piece.data, piece.len);
    int is = naively(t, text, n + (int)piece.len);
    return is < 0 ? -1 : is & 1;
}

/* Of every token at one place. Returns how many were compared. */
static long compare_place(const world *w, const tree *t, const char *source, char *text, int n)
{
    int first[256], here = naively(t, text, n);
    long compared = 0;
    if (here < 0) return 0;
    for (int byte = 0; byte < 256; byte++) {
        text[n] = (char)byte;
        int is = naively(t, text, n + 1);
        first[byte] = is < 0 ? 1 : is & 1;
    }
    for (int32_t id = 0; id < w->trie->n_tokens; id++) {
        int want = expected(w, t, text, n, id, first, here);
        if (want < 0) continue;
        compared++;
        if (bit(w->bits, id) != want) {
            weft__tok_slice piece = weft__tok_piece_of(w->tok, id);
            fail_msg("%s\nafter '%.*s' token %d '%.*s': %d, expected %d", source, n, text, id, (int)piece.len,
                     piece.data, bit(w->bits, id), want);
        }
    }
    return compared;
}

/* One of the tokens that the mask allows, of few bytes; -1: there is none. */
static int32_t draw(const world *w, weft__rng *rng)
{
    int32_t chosen = -1;
    uint64_t n = 0;
    for (int32_t id = 0; id < w->trie->n_tokens; id++)
        if (bit(w->bits, id) && !weft__tok_is_end(w->tok, id) && weft__tok_piece_of(w->tok, id).len <= 6 &&
            weft__rng_below(rng, ++n) == 0)
            chosen = id;
    return chosen;
}

/* Along a random text; places where few tokens are allowed are passed over but for one in `every`. Returns how many
 * places were compared, at most `most`. */
static int follow_and_compare(const world *w, const tree *t, const char *source, weft__gram_tables *g, weft__rng *rng,
                              int every, int most)
{
    char text[128];
    weft__gram_matcher *m;
    int n_places = 0, n = 0;
    assert_int_equal(weft__gram_matcher_create(g, &m, NULL), WEFT_OK);
    while (n < 24 && n_places < most && !weft__gram_matcher_mask(m, w->bits, NULL)) {
        int32_t n_allowed = 0, next = draw(w, rng);
        for (int32_t id = 0; id < w->trie->n_tokens; id++) n_allowed += bit(w->bits, id);
        if ((n_allowed > w->trie->n_tokens / 8 || weft__rng_below(rng, (uint64_t)every) == 0) &&
            compare_place(w, t, source, text, n) > w->trie->n_tokens / 2)
            n_places++;
        if (next < 0) break;
        weft__tok_slice piece = weft__tok_piece_of(w->tok, next);
        memcpy(text + n, piece.data, piece.len);
        n += (int)piece.len;
        assert_int_equal(weft__gram_matcher_accept(m, next, NULL), WEFT_OK);
    }
    weft__gram_matcher_destroy(&m);
    return n_places;
}

/* Random grammars until so many places were compared, a few of each. */
static void sweep(const world *w, int every, int places, int of_one)
{
    static tree t;
    weft__rng rng;
    int done = 0;
    for (uint64_t tried = 0; done < places; tried++) {
        weft__strbuf source = {0};
        weft__gram_automaton *a = NULL;
        weft__gram_tables *g = NULL;
        assert_true(tried < 10000);
        weft__rng_seed(&rng, claims_seed() + tried);
        random_tree(&t, &rng, 1);
        write_tree(&t, &source);
        weft__strbuf_putc(&source, 0);
        if (!gbnf(source.data, source.len - 1, &a, NULL)) {
            assert_int_equal(weft__gram_tables_create(a, w->trie, &g, NULL), WEFT_OK);
            int most = places - done < of_one ? places - done : of_one;
            done += follow_and_compare(w, &t, source.data, g, &rng, every, most);
            weft__gram_tables_release(&g);
        }
        weft__strbuf_free(&source);
    }
}

/* ---- strings that count their characters ---- */

static int add_node(tree *t, node x)
{
    t->nodes[t->n] = x;
    return t->n++;
}

/* A quoted string of at most so many characters or escapes, and what follows it. */
static int add_string(tree *t, node class, int min, int max, const char *behind)
{
    node open = {.kind = LITERAL, .text = "\""}, escape = {.kind = LITERAL, .text = "\\n"}, end = {.kind = LITERAL};
    snprintf(end.text, sizeof end.text, "\"%s", behind);
    class.kind = CLASS;
    int one = add_node(t, class), other = add_node(t, escape);
    int both = add_node(t, (node){.kind = ALT, .n = 2, .item = {one, other}});
    int many = add_node(t, (node){.kind = REPEAT, .n = 1, .item = {both}, .min = min, .max = max});
    int first = add_node(t, open), last = add_node(t, end);
    return add_node(t, (node){.kind = SEQ, .n = 3, .item = {first, many, last}});
}

/* Strings of every length from one character on, alone and two side by side, of the same characters or of others. */
static void count_and_compare(const world *w, int longest, int step, int every, int of_one)
{
    static const node classes[] = {{.n = 3, .lo = {0, '"', '\\'}, .hi = {31, '"', '\\'}, .negated = 1},
                                   {.n = 2, .lo = {'a', ' '}, .hi = {'z', ' '}},
                                   {.n = 2, .lo = {'a', 0x80}, .hi = {'z', 0x10FFFF}}};
    static tree t;
    weft__rng rng;
    for (int max = 1, i = 0; max <= longest; max += step, i++) {
        weft__strbuf source = {0};
        weft__gram_automaton *a = NULL;
        weft__gram_tables *g = NULL;
        int strings[2], n_places = 0;
        memset(&t, 0, sizeof t);
        weft__rng_seed(&rng, claims_seed() + (uint64_t)max);
        strings[0] = add_string(&t, classes[0], i & 1 ? max / 2 : 0, max, ", ");
        strings[1] = add_string(&t, classes[i % 3], 0, 1 + (int)weft__rng_below(&rng, (uint64_t)max), "}");
        t.n_rules = 1;
        t.rule[0] = i % 4 ? add_node(&t, (node){.kind = ALT, .n = 2, .item = {strings[0], strings[1]}}) : strings[0];
        write_tree(&t, &source);
        assert_int_equal(gbnf(source.data, source.len, &a, NULL), WEFT_OK);
        assert_int_equal(weft__gram_tables_create(a, w->trie, &g, NULL), WEFT_OK);
        for (int tries = 0; tries < 20 && !n_places; tries++)
            n_places = follow_and_compare(w, &t, source.data, g, &rng, every, of_one);
        assert_true(n_places > 0);
        weft__gram_tables_release(&g);
        weft__strbuf_free(&source);
    }
}

static void masks_over_512_tokens(void **state)
{
    (void)state;
    static const char parts[] =
        "\": \", {\"a\": true, \"the\": \"\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\", [1.5, -20]}\n  \\n abc 0123456789 "
        "the_of and\"}, {\"x\\\"y\xC3\xA9t\xC3\xA9\": 77.12e5}\t";
    static vocab v;
    weft__rng rng;
    world w;
    weft__rng_seed(&rng, 5);
    memset(&v, 0, sizeof v);
    for (v.n = FIRST; v.n < N_SMALL; v.n++) {
        size_t n = 1 + weft__rng_below(&rng, 9), at = weft__rng_below(&rng, sizeof parts - 1 - n);
        memcpy(v.text[v.n], parts + at, n);
    }
    vocab_open(&v);
    world_open(&w, v.tok);
    assert_int_equal(w.trie->n_tokens, N_SMALL);
    sweep(&w, 2, CLAIMS_REPEATED(CLAIMS_SWEPT(800, 8000), 150, 30), 8);
    count_and_compare(&w, 32, CLAIMS_REPEATED(1, 3, 7), 1, 24);
    world_close(&w);
    vocab_close(&v);
}

static void masks_over_128k_tokens(const char *name)
{
    large l;
    world w;
    weft__tok *tok = NULL;
    large_open(&l, name);
    l.spec.eos = 0;
    assert_int_equal(weft__tok_create(&l.spec, &tok, NULL), WEFT_OK);
    world_open(&w, tok);
    assert_int_equal(w.trie->n_tokens, N_TOKENS);
    sweep(&w, 12, CLAIMS_REPEATED(CLAIMS_SWEPT(10, 300), 2, 1), 2);
    count_and_compare(&w, 26, CLAIMS_REPEATED(CLAIMS_SWEPT(5, 1), 13, 25), 3, CLAIMS_SWEPT(1, 8));
    world_close(&w);
    weft__tok_destroy(&tok);
    large_close(&l);
}

static void masks_over_words(void **state)
{
    (void)state;
    masks_over_128k_tokens("models/alderbrook.gguf");
}

static void masks_over_a_real_vocabulary(void **state)
{
    (void)state;
    masks_over_128k_tokens("deepseek-llm");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest own[] = {cmocka_unit_test(masks_over_512_tokens), cmocka_unit_test(masks_over_words)},
                            material[] = {cmocka_unit_test(masks_over_a_real_vocabulary)};
    (void)argv;
    return claims_status(argc > 1 ? cmocka_run_group_tests(material, NULL, NULL)
                                  : cmocka_run_group_tests(own, NULL, NULL));
}
