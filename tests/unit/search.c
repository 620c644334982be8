// SPDX-License-Identifier: Apache-2.0
/* search.c: what is found by words has the scores of BM25 computed by hand, whatever came and went; what is found
 * by vectors is what all products find; codes of signs find 99 of 100 of it or are not used; fusion adds ranks. */
#include "unit/fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/random.h"
#include "search/search.h"

/* ---- words ---- */

static const char *const texts[] = {"the fox lives in the old mill",
                                    "a badger, a BADGER and a fox",
                                    "",
                                    "Honey cakes! honey; cakes honey.",
                                    "the the the the the",
                                    "zwölf Füchse",
                                    "x1 x2 x3 mill",
                                    "fox"};
enum { TEXTS = sizeof texts / sizeof *texts, WORDS = 16 };

static int words_of(const char *text, char out[WORDS][32])
{
    int n = 0;
    for (const char *s = text; *s;) {
        int k = 0;
        while (*s && !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *s) &&
               (unsigned char)*s < 0x80)
            s++;
        for (; *s && (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *s) ||
                      (unsigned char)*s >= 0x80);
             s++)
            out[n][k++] = *s >= 'A' && *s <= 'Z' ? (char)(*s + 32) : *s;
        out[n][k] = 0;
        if (k) n++;
    }
    return n;
}

static int count_of(const char *text, const char *word)
{
    char words[WORDS][32];
    int n = 0;
    for (int i = words_of(text, words); i-- > 0;) n += !strcmp(words[i], word);
    return n;
}

/* By the formula, from the texts alone. */
static double score_by_hand(const char *query, const char *text, unsigned there)
{
    char words[WORDS][32], own[WORDS][32];
    double score = 0, length = 0, n_all = 0;
    for (int t = 0; t < TEXTS; t++)
        if (there >> t & 1) length += words_of(texts[t], own), n_all++;
    const int n = words_of(query, words), n_own = words_of(text, own);
    for (int i = 0; i < n; i++) {
        double df = 0;
        for (int t = 0; t < TEXTS; t++) df += (there >> t & 1) && count_of(texts[t], words[i]);
        const double tf = count_of(text, words[i]);
        score +=
            log(1 + (n_all - df + 0.5) / (df + 0.5)) * tf * 2.5 / (tf + 1.5 * (0.25 + 0.75 * n_own / (length / n_all)));
    }
    return score;
}

static void check_words(weft__search_words *w, unsigned there)
{
    static const char *const queries[] = {"fox",    "the old mill", "badger fox", "HONEY honey",
                                          "Füchse", "nobody",       "x2 the"};
    for (size_t q = 0; q < sizeof queries / sizeof *queries; q++) {
        weft__search_hit hits[TEXTS];
        weft__search_top top = {.hits = hits, .most = TEXTS};
        size_t want = 0;
        assert_int_equal(weft__search_words_find(w, queries[q], strlen(queries[q]), &top, NULL), WEFT_OK);
        for (int t = 0; t < TEXTS; t++) want += (there >> t & 1) && score_by_hand(queries[q], texts[t], there) > 0;
        assert_int_equal(top.n, want);
        for (size_t i = 0; i < top.n; i++) {
            assert_true(there >> (hits[i].id - 100) & 1);
            assert_float_equal(hits[i].score, score_by_hand(queries[q], texts[hits[i].id - 100], there), 1e-9);
            if (i)
                assert_true(hits[i].score < hits[i - 1].score ||
                            (hits[i].score == hits[i - 1].score && hits[i].id > hits[i - 1].id));
        }
    }
}

static void words_are_bm25(void **state)
{
    weft__search_words *w;
    unsigned there = 0;
    (void)state;
    assert_int_equal(weft__search_words_new(NULL, &w, NULL), WEFT_OK);
    for (int t = TEXTS - 1; t >= 0; t--) {
        assert_int_equal(weft__search_words_add(w, 100 + (uint64_t)t, texts[t], strlen(texts[t]), NULL), WEFT_OK);
        check_words(w, there |= 1u << t);
    }
    assert_int_equal(weft__search_words_add(w, 103, "again", 5, NULL), WEFT_ARGUMENT);
    for (int t = 1; t < TEXTS; t += 2) {
        assert_true(weft__search_words_remove(w, 100 + (uint64_t)t));
        assert_false(weft__search_words_remove(w, 100 + (uint64_t)t));
        check_words(w, there &= ~(1u << t));
    }
    assert_int_equal(weft__search_words_count(w), TEXTS / 2);
    for (int t = 1; t < TEXTS; t += 2) {
        assert_int_equal(weft__search_words_add(w, 100 + (uint64_t)t, texts[t], strlen(texts[t]), NULL), WEFT_OK);
        check_words(w, there |= 1u << t);
    }
    weft__search_words_free(&w);
}

/* Okapi's idf, as rank_bm25 0.2.2 computes it: BM25Okapi(...).get_scores(["fox", "the"]) of these texts, by words. */
static void words_with_a_floor(void **state)
{
    static const char *const few[] = {"the fox", "the badger the", "the mill fox fox", "owl"};
    static const double want[] = {0.0931096549876048, 0.11373125642781257, 0.06671636695962234};
    const weft__search_words_params p = {.k1 = 1.5, .b = 0.75, .floor = 0.25};
    weft__search_hit hits[4];
    weft__search_top top = {.hits = hits, .most = 4};
    weft__search_words *w;
    (void)state;
    assert_int_equal(weft__search_words_new(&p, &w, NULL), WEFT_OK);
    for (int i = 0; i < 4; i++) weft__search_words_add(w, (uint64_t)i, few[i], strlen(few[i]), NULL);
    assert_int_equal(weft__search_words_find(w, "fox the", 7, &top, NULL), WEFT_OK);
    assert_int_equal(top.n, 3);
    for (int i = 0; i < 3; i++) assert_float_equal(hits[i].score, want[hits[i].id], 1e-12);
    weft__search_words_free(&w);
}

/* Of many that came and went the index keeps what is there, and finds it as an index that never had the others. */
static void places_come_back(void **state)
{
    enum { N = 6000 };
    weft__search_words *w, *fresh;
    weft__rng rng;
    char text[64];
    (void)state;
    weft__rng_seed(&rng, 5);
    assert_int_equal(weft__search_words_new(NULL, &w, NULL), WEFT_OK);
    assert_int_equal(weft__search_words_new(NULL, &fresh, NULL), WEFT_OK);
    for (uint64_t i = 0; i < N; i++) {
        const int n = snprintf(text, sizeof text, "w%d w%d w%d", (int)weft__rng_below(&rng, 50),
                               (int)weft__rng_below(&rng, 500), (int)weft__rng_below(&rng, 5000));
        assert_int_equal(weft__search_words_add(w, i, text, (size_t)n, NULL), WEFT_OK);
        if (i % 10 == 3) assert_int_equal(weft__search_words_add(fresh, i, text, (size_t)n, NULL), WEFT_OK);
    }
    for (uint64_t i = 0; i < N; i++)
        if (i % 10 != 3) assert_true(weft__search_words_remove(w, i));
    for (int q = 0; q < 60; q++) {
        weft__search_hit a[20], b[20];
        weft__search_top of_w = {.hits = a, .most = 20}, of_fresh = {.hits = b, .most = 20};
        const int n = snprintf(text, sizeof text, "w%d w%d", q, q * 7);
        weft__search_words_find(w, text, (size_t)n, &of_w, NULL);
        weft__search_words_find(fresh, text, (size_t)n, &of_fresh, NULL);
        assert_int_equal(of_w.n, of_fresh.n);
        for (size_t i = 0; i < of_w.n; i++) {
            assert_int_equal(a[i].id, b[i].id);
            assert_float_equal(a[i].score, b[i].score, 1e-12);
        }
    }
    weft__search_words_free(&w);
    weft__search_words_free(&fresh);
}

static int is_odd(void *arg, uint64_t id)
{
    (void)arg;
    return id % 2 == 1;
}

static size_t frequent_words(weft__rng *rng, int n, char *out, size_t room)
{
    int at = 0;
    for (int k = 0; k < n; k++)
        at += snprintf(out + at, room - (size_t)at, "w%d ", (int)pow(3000, weft__rng_double(rng)));
    return (size_t)at;
}

/* The few best are those of all that are asked for at once, to the bit: words that most entries have are not read for
 * entries that cannot come among them. */
static void few_are_the_best_of_many(void **state)
{
    enum { N = 1000, QUERIES = CLAIMS_REPEATED(400, 100, 30) };
    static weft__search_hit all[N], few[8];
    weft__search_words *w;
    weft__rng rng;
    char text[256];
    (void)state;
    weft__rng_seed(&rng, 17);
    assert_int_equal(weft__search_words_new(NULL, &w, NULL), WEFT_OK);
    for (uint64_t e = 0; e < N; e++) {
        const size_t n = frequent_words(&rng, 3 + (int)weft__rng_below(&rng, 20), text, sizeof text);
        assert_int_equal(weft__search_words_add(w, e, text, n, NULL), WEFT_OK);
    }
    for (uint64_t e = 0; e < N; e += 11) assert_true(weft__search_words_remove(w, e));
    for (int q = 0; q < QUERIES; q++) {
        const size_t n = frequent_words(&rng, 1 + q % 7, text, sizeof text), most = 1 + (size_t)q % 8;
        weft__search_top of_all = {.hits = all, .most = N, .filter = q % 3 ? NULL : is_odd};
        weft__search_top of_few = {.hits = few, .most = most, .filter = of_all.filter};
        assert_int_equal(weft__search_words_find(w, text, n, &of_all, NULL), WEFT_OK);
        assert_int_equal(weft__search_words_find(w, text, n, &of_few, NULL), WEFT_OK);
        assert_int_equal(of_few.n, of_all.n < most ? of_all.n : most);
        for (size_t i = 0; i < of_few.n; i++) {
            assert_int_equal(few[i].id, all[i].id);
            assert_true(few[i].score == all[i].score);
        }
    }
    weft__search_words_free(&w);
}

/* ---- vectors ---- */

/* `spread` small: entries lie in clusters, as texts do. */
static void fill(weft__rng *rng, float *x, int n, int dims, int clusters, double spread)
{
    float *centers = malloc(sizeof *centers * (size_t)(clusters * dims));
    for (int i = 0; i < clusters * dims; i++) centers[i] = (float)weft__rng_normal(rng);
    for (int e = 0; e < n; e++)
        for (int i = 0, c = (int)weft__rng_below(rng, (uint64_t)clusters); i < dims; i++)
            x[(size_t)e * (size_t)dims + (size_t)i] =
                (float)(centers[c * dims + i] + spread * weft__rng_normal(rng) + 0.5 /* all have that in common */);
    free(centers);
}

static double cosine(const float *a, const float *b, int n)
{
    double ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < n; i++) ab += (double)a[i] * b[i], aa += (double)a[i] * a[i], bb += (double)b[i] * b[i];
    return ab / sqrt(aa * bb);
}

/* Each that is found has its cosine, within what 8 bits round, and none is better that is not: of any count of
 * dimensions, after removals, with a filter. */
static void vectors_are_exact(void **state)
{
    static const int dims[] = {1, 3, 32, 100, 256};
    enum { N = CLAIMS_REPEATED(700, 300, 100), K = 10 };
    weft__rng rng;
    (void)state;
    weft__rng_seed(&rng, 9);
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        const int n_dims = dims[d];
        const double within = 0.012;
        float *x = malloc(sizeof *x * (size_t)(N * n_dims));
        weft__search_vectors *v;
        fill(&rng, x, N, n_dims, 20, 0.5);
        assert_int_equal(weft__search_vectors_new(n_dims, weft__tier_mask(), &v, NULL), WEFT_OK);
        for (int e = 0; e < N; e++)
            assert_int_equal(weft__search_vectors_add(v, 1000 + (uint64_t)e, x + e * n_dims, NULL), WEFT_OK);
        for (int e = 0; e < N; e += 3) assert_true(weft__search_vectors_remove(v, 1000 + (uint64_t)e));
        for (int q = 0; q < 40; q++) {
            weft__search_hit hits[K];
            weft__search_top top = {.hits = hits, .most = K, .filter = q % 2 ? is_odd : NULL};
            int better = 0;
            assert_int_equal(weft__search_vectors_find(v, x + q * n_dims, 0, &top, NULL), WEFT_OK);
            assert_int_equal(top.n, K);
            for (int i = 0; i < K; i++) {
                const int e = (int)hits[i].id - 1000;
                assert_true(e % 3 != 0 && (!top.filter || hits[i].id % 2));
                assert_true(fabs(hits[i].score - cosine(x + q * n_dims, x + e * n_dims, n_dims)) < within);
                if (i) assert_true(hits[i].score <= hits[i - 1].score);
            }
            for (int e = 0; e < N; e++)
                better += e % 3 && (!top.filter || e % 2) &&
                          cosine(x + q * n_dims, x + e * n_dims, n_dims) > hits[K - 1].score + within;
            assert_true(better <= K);
        }
        weft__search_vectors_free(&v);
        free(x);
    }
}

/* What is found does not depend on how many others there are, the order in which they came, or searches in between. */
static void order_does_not_matter(void **state)
{
    enum { N = 300, D = 64 };
    static float x[N * D];
    weft__search_vectors *a, *b;
    weft__rng rng;
    (void)state;
    weft__rng_seed(&rng, 11);
    fill(&rng, x, N, D, 9, 0.4);
    weft__search_vectors_new(D, weft__tier_mask(), &a, NULL);
    weft__search_vectors_new(D, weft__tier_mask(), &b, NULL);
    for (int e = 0; e < N; e++) weft__search_vectors_add(a, (uint64_t)e, x + e * D, NULL);
    for (int e = N; e-- > 0;) {
        weft__search_hit hit;
        weft__search_top top = {.hits = &hit, .most = 1};
        weft__search_vectors_add(b, (uint64_t)e, x + e * D, NULL);
        weft__search_vectors_find(b, x + e * D, 1, &top, NULL);
        assert_int_equal(hit.id, e);
    }
    for (int q = 0; q < 20; q++) {
        weft__search_hit ha[5], hb[5];
        weft__search_top ta = {.hits = ha, .most = 5}, tb = {.hits = hb, .most = 5};
        weft__search_vectors_find(a, x + q * D, 1, &ta, NULL);
        weft__search_vectors_find(b, x + q * D, 1, &tb, NULL);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(ha[i].id, hb[i].id);
            assert_true(ha[i].score == hb[i].score);
        }
    }
    weft__search_vectors_free(&a);
    weft__search_vectors_free(&b);
}

/* Where codes are used, queries that are none of the entries find 98 of 100 of what all products find (99 of the
 * samples do); where signs say nothing (vectors that differ in length alone, few entries), searches stay exact. */
static void codes_find_the_same(void **state)
{
    enum { N = CLAIMS_REPEATED(6000, 3000, 1500), D = 128, K = 10, Q = 50 };
    float *x = malloc(sizeof *x * (N + Q) * D);
    weft__search_vectors *v;
    weft__rng rng;
    size_t candidates = 1, right = 0;
    (void)state;
    weft__rng_seed(&rng, 13);
    fill(&rng, x, N + Q, D, 40, 0.7);
    weft__search_vectors_new(D, weft__tier_mask(), &v, NULL);
    for (int e = 0; e < 100; e++) weft__search_vectors_add(v, (uint64_t)e, x + e * D, NULL);
    assert_int_equal(weft__search_vectors_tune(v, K, 0.99, &candidates, NULL), WEFT_OK);
    assert_int_equal(candidates, 0);
    for (int e = 100; e < N; e++) weft__search_vectors_add(v, (uint64_t)e, x + e * D, NULL);
    for (int e = 0; e < N; e += 7) weft__search_vectors_remove(v, (uint64_t)e);
    assert_int_equal(weft__search_vectors_tune(v, K, 0.99, &candidates, NULL), WEFT_OK);
    assert_true(candidates >= 4 * K && candidates < N / 4);
    for (int q = N; q < N + Q; q++) {
        weft__search_hit exact[K], among[K];
        weft__search_top a = {.hits = exact, .most = K}, b = {.hits = among, .most = K};
        weft__search_vectors_find(v, x + q * D, 1, &a, NULL);
        weft__search_vectors_find(v, x + q * D, 0, &b, NULL);
        for (int i = 0; i < K; i++)
            for (int k = 0; k < K; k++)
                if (exact[i].id == among[k].id) {
                    assert_true(exact[i].score == among[k].score);
                    right++;
                }
    }
    assert_true(right >= Q * K * 98 / 100);
    /* a recall that nothing reaches */
    assert_int_equal(weft__search_vectors_tune(v, K, 1.01, &candidates, NULL), WEFT_OK);
    assert_int_equal(candidates, 0);
    weft__search_vectors_free(&v);
    free(x);
}

static void vectors_are_refused(void **state)
{
    weft__search_vectors *v;
    weft_error err;
    const float zero[2] = {0, 0}, strange[2] = {1, NAN}, huge[2] = {INFINITY, 1}, good[2] = {3, 4};
    weft__search_hit hit;
    weft__search_top top = {.hits = &hit, .most = 1};
    (void)state;
    assert_int_equal(weft__search_vectors_new(0, 1, &v, &err), WEFT_ARGUMENT);
    assert_int_equal(weft__search_vectors_new(WEFT__SEARCH_DIMS + 1, 1, &v, &err), WEFT_ARGUMENT);
    assert_int_equal(weft__search_vectors_new(2, 1, &v, &err), WEFT_OK);
    assert_int_equal(weft__search_vectors_find(v, good, 1, &top, &err), WEFT_OK);
    assert_int_equal(top.n, 0);
    assert_int_equal(weft__search_vectors_add(v, 1, zero, &err), WEFT_ARGUMENT);
    assert_int_equal(weft__search_vectors_add(v, 1, strange, &err), WEFT_ARGUMENT);
    assert_int_equal(weft__search_vectors_add(v, 1, huge, &err), WEFT_ARGUMENT);
    assert_int_equal(weft__search_vectors_add(v, 1, good, &err), WEFT_OK);
    assert_int_equal(weft__search_vectors_add(v, 1, good, &err), WEFT_ARGUMENT);
    assert_int_equal(weft__search_vectors_find(v, strange, 1, &top, &err), WEFT_ARGUMENT);
    assert_int_equal(weft__search_vectors_count(v), 1);
    weft__search_vectors_free(&v);
}

/* ---- both ---- */

static void fusion_adds_reciprocal_ranks(void **state)
{
    const weft__search_hit words[] = {{7, 9.5}, {3, 4}, {5, 1}}, vectors[] = {{3, 0.9}, {8, 0.8}, {7, 0.1}};
    const weft__search_hit *const lists[] = {words, vectors};
    const size_t n[] = {3, 3};
    weft__search_hit hits[3];
    weft__search_top top = {.hits = hits, .most = 3};
    (void)state;
    assert_int_equal(weft__search_fuse(lists, n, 2, &top, NULL), WEFT_OK);
    assert_int_equal(top.n, 3);
    assert_int_equal(hits[0].id, 3);
    assert_float_equal(hits[0].score, 1.0 / 62 + 1.0 / 61, 1e-12);
    assert_int_equal(hits[1].id, 7);
    assert_float_equal(hits[1].score, 1.0 / 61 + 1.0 / 63, 1e-12);
    assert_int_equal(hits[2].id, 8);
}

/* An id that a list has not has 0 there: what is far from everything comes behind that of which nothing is known. */
static void a_sum_adds_scores_by_their_weights(void **state)
{
    const weft__search_hit words[] = {{7, 2}, {5, 1}}, vectors[] = {{3, 0.5}, {7, -0.25}, {5, 0.125}};
    const weft__search_hit *const lists[] = {words, vectors};
    const size_t n[] = {2, 3};
    const double weights[] = {1, 4}, sums[] = {2, 1.5, 1};
    const uint64_t ids[] = {3, 5, 7}; /* 4 * 0.5 before 1 + 4 * 0.125 before 2 - 4 * 0.25 */
    weft__search_hit hits[3];
    weft__search_top top = {.hits = hits, .most = 3};
    (void)state;
    assert_int_equal(weft__search_sum(lists, n, weights, 2, &top, NULL), WEFT_OK);
    assert_int_equal(top.n, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hits[i].id, ids[i]);
        assert_float_equal(hits[i].score, sums[i], 1e-12);
    }
}

static int one_life(void *arg)
{
    static const float x[40] = {1, 2, 3, 4, 5};
    weft__search_words *w = NULL;
    weft__search_vectors *v = NULL;
    weft__search_hit hits[4], both[4];
    weft__search_top top = {.hits = hits, .most = 4}, fused = {.hits = both, .most = 4};
    const weft__search_hit *const lists[] = {hits, hits};
    (void)arg;
    int ok = !weft__search_words_new(NULL, &w, NULL);
    for (uint64_t i = 0; i < 3 && ok; i++) {
        const size_t before = weft__search_words_count(w);
        ok = !weft__search_words_add(w, i, texts[i], strlen(texts[i]), NULL);
        assert_int_equal(weft__search_words_count(w), before + (size_t)ok);
    }
    ok = ok && !weft__search_words_find(w, "fox", 3, &top, NULL) && !weft__search_vectors_new(5, 1, &v, NULL);
    for (uint64_t i = 0; i < 300 && ok; i++) ok = !weft__search_vectors_add(v, i, x + i % 5, NULL);
    const size_t n[] = {top.n, top.n};
    size_t candidates;
    ok = ok && !weft__search_vectors_tune(v, 2, 0.5, &candidates, NULL) &&
         !weft__search_vectors_find(v, x, 0, &top, NULL) && !weft__search_fuse(lists, n, 2, &fused, NULL);
    weft__search_words_free(&w);
    weft__search_vectors_free(&v);
    return ok;
}

static void without_memory(void **state)
{
    (void)state;
    assert_true(fail_some(one_life, NULL, 5) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_bm25),
        cmocka_unit_test(words_with_a_floor),
        cmocka_unit_test(places_come_back),
        cmocka_unit_test(few_are_the_best_of_many),
        cmocka_unit_test(vectors_are_exact),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(codes_find_the_same),
        cmocka_unit_test(vectors_are_refused),
        cmocka_unit_test(a_sum_adds_scores_by_their_weights),
        cmocka_unit_test(fusion_adds_reciprocal_ranks),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
