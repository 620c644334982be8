// SPDX-License-Identifier: Apache-2.0
/* text_grammar_masks.c: random grammars against a naive recognizer of their own syntax trees, which tries everything:
 * what is refused as unsound, what a mask allows token by token, where a text may end. And which bytes are forced; and
 * near the limit of depth, against what accept takes. */
#include "unit/grammar_world.h"
#include "unit/naive_grammar.h"

/* Trees that are written and compiled, and grammars whose masks are compared. */
#define N_TREES CLAIMS_REPEATED(CLAIMS_SWEPT(400, 1500), 150, 75)
#define N_COMPARED CLAIMS_REPEATED(CLAIMS_SWEPT(90, 350), 30, 12)

/* What was forced at run_from has come, as far as the text goes. */
static void check_forced(const char *source, const char *text, int n, const char *run, int run_from, int n_run)
{
    const int n_since = n - run_from < n_run ? n - run_from : n_run;
    if (memcmp(text + run_from, run, (size_t)n_since))
        fail_msg("%s\n'%.*s', where '%.*s' was forced", source, n - run_from, text + run_from, n_run, run);
}

/* Follows a random text; at each place every token's bit is what the recognizer says of the text with its bytes. */
static int compare_masks(const tree *t, const char *source, weft__gram_tables *g, const vocab *v, weft__rng *rng)
{
    uint64_t bits[MAX_TOKENS / 64 + 1];
    char text[64], run[8];
    int n = 0, compared = 0, run_from = 0, n_run = 0;
    weft__gram_matcher *m;
    assert_int_equal(weft__gram_matcher_create(g, &m, NULL), WEFT_OK);
    while (n < 10) {
        int n_allowed = 0, n_bytes = 0, chosen = -1, here = naively(t, text, n);
        if (here < 0) break;
        check_forced(source, text, n, run, run_from, n_run);
        n_run = (int)weft__gram_matcher_forced(m, run, sizeof run);
        run_from = n;
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
            n_bytes += expected && id <= CONTROL;
            if (id != END && expected && weft__rng_below(rng, (uint64_t)++n_allowed) == 0) chosen = id;
        }
        assert_int_equal(st, n_allowed || here >> 1 ? WEFT_OK : WEFT_STATE);
        if ((n_run > 0) != (n_bytes == 1 && !(here >> 1)))
            fail_msg("%s\nafter '%.*s' %d bytes are allowed, %d are forced", source, n, text, n_bytes, n_run);
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
        random_tree(&t, &rng, 0);
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
        for (int k = 0; k < CLAIMS_REPEATED(20, CLAIMS_SWEPT(2, 5), 2); k++)
            n_left_out += compare_depths(both[i], &v, 8, &rng);
    for (uint64_t tried = 0; tried < (uint64_t)N_TREES; tried++) {
        const uint64_t seed = claims_seed() + tried;
        weft__strbuf source = {0};
        weft__rng_seed(&rng, seed);
        random_tree(&t, &rng, 0);
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
