// SPDX-License-Identifier: Apache-2.0
/* Tables that states share: how many are made while a text of bounded length is written does not depend on the bound,
 * and what they allow is what each token by itself says. */
#include "unit/grammar_world.h"

#include "text/grammar/matcher_parts.h"

/* Characters of one byte and of several, those that JSON escapes, a minimum, two bounds beside and within each other,
 * and one whose states go through calls. */
static const char *const sources[] = {
    "root ::= \"\\\"\" [^\"\\\\]{0,%d} \"\\\"\"",
    "root ::= ([a-c] | \"\\\\\" [abn\\\\]){3,%d} \"c\" [b\xC3\xA9]?",
    "root ::= [\xC3\xA9-\xE4\xB8\xAD a-b]{%d} [ab]{0,%d} \"c\"",
    "root ::= \"[\" ([^b\\\\] | \"\\\\\" more){0,%d} \"b\"\nmore ::= \"a\" | \"c\" more",
    "root ::= \"a\" list \"b\"\nlist ::= \"b\" [^b]{0,%d} (\",\" list | \"c\")",
};
enum { N_SOURCES = sizeof sources / sizeof *sources };

static weft__gram_tables *bounded(const char *source, int bound, const vocab *v)
{
    char text[256];
    snprintf(text, sizeof text, source, bound, bound / 2);
    return grammar(text, v);
}

static size_t n_tables(const weft__gram_tables *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->a->n_states; i++) n += atomic_load(&g->tables[i]) != NULL;
    return n;
}

/* Of the tokens that may come next one of text, of several letters if need be; -1: none. */
static int choose_token(const vocab *v, const uint64_t *bits, weft__rng *rng)
{
    int chosen = -1, n = 0;
    for (int id = 0; id < v->n; id++) {
        const int long_enough = id >= FIRST || id == 'a' || id == 'b';
        if (bit(bits, id) && long_enough && weft__rng_below(rng, (uint64_t)++n) == 0) chosen = id;
    }
    for (int id = 0; id < v->n && chosen < 0; id++)
        if (bit(bits, id) && id != END) chosen = id;
    return chosen;
}

/* Writes a text to its end, or `most` tokens of it. Each mask is compared with what is accepted when `compare`. */
static void write_text(weft__gram_tables *g, const vocab *v, weft__rng *rng, int most, int compare)
{
    uint64_t bits[MAX_TOKENS / 64 + 1];
    weft__gram_matcher *m;
    assert_int_equal(weft__gram_matcher_create(g, &m, NULL), WEFT_OK);
    for (int i = 0; i < most && weft__gram_matcher_complete(m) < 2; i++) {
        assert_int_equal(weft__gram_matcher_mask(m, bits, NULL), WEFT_OK);
        for (int id = 0; id < v->n && compare; id++) {
            weft__gram_matcher *copy;
            if (id >= 128 && id < CONTROL && id % 8) continue;
            assert_int_equal(weft__gram_matcher_copy(m, &copy, NULL), WEFT_OK);
            int taken = weft__gram_matcher_accept(copy, id, NULL) == WEFT_OK;
            if (taken != bit(bits, id)) fail_msg("step %d, token %d: %d, expected %d", i, id, bit(bits, id), taken);
            weft__gram_matcher_destroy(&copy);
        }
        int id = choose_token(v, bits, rng);
        if (id < 0) break;
        assert_int_equal(weft__gram_matcher_accept(m, id, NULL), WEFT_OK);
    }
    weft__gram_matcher_destroy(&m);
}

static void tables_allow_what_is_accepted(void **state)
{
    (void)state;
    static vocab v;
    weft__rng rng;
    weft__rng_seed(&rng, claims_seed());
    vocab_make(&v, 7, 60);
    for (int i = 0; i < N_SOURCES; i++) {
        for (int bound = 3; bound < 100; bound = bound < 12 ? bound + 3 : 3 * bound) {
            weft__gram_tables *g = bounded(sources[i], bound, &v);
            for (int k = 0; k < CLAIMS_REPEATED(3, 2, 1); k++) write_text(g, &v, &rng, 60, 1);
            weft__gram_tables_release(&g);
        }
    }
    vocab_close(&v);
}

static void no_more_tables_for_a_higher_bound(void **state)
{
    (void)state;
    static vocab v;
    weft__rng rng;
    vocab_make(&v, 7, 60);
    for (int i = 0; i < N_SOURCES; i++) {
        size_t n[2];
        for (int k = 0; k < 2; k++) {
            weft__gram_tables *g = bounded(sources[i], k ? 1600 : 200, &v);
            for (int text = 0; text < 4; text++) {
                weft__rng_seed(&rng, (uint64_t)text);
                write_text(g, &v, &rng, 1500, 0);
            }
            n[k] = n_tables(g);
            weft__gram_tables_release(&g);
        }
        if (n[1] > n[0] + 4) fail_msg("%s: %zu tables, with the bound eight times as high %zu", sources[i], n[0], n[1]);
    }
    vocab_close(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_allow_what_is_accepted),
        cmocka_unit_test(no_more_tables_for_a_higher_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
