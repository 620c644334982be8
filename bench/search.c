// SPDX-License-Identifier: Apache-2.0
/* search.c: what searches take, and what they find (make bench-search).
 *
 * Usage: bench_search [--vectors N] [--dims D] [--texts N]
 *        bench_search --bm25 QUERY < TEXTS    the score of each line for the words of QUERY, as rank_bm25 has it
 *
 * Vectors lie in clusters of about a hundred, with something in common to all; queries are none of them. A row for
 * exact searches and one for those by codes: recall of the ten nearest by 32-bit products, median and 99th percentile
 * of one thread's milliseconds, bytes for an entry. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/random.h"
#include "search/search.h"

enum { K = 10, QUERIES = 100 };

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void put_times(double *ms)
{
    qsort(ms, QUERIES, sizeof *ms, by_value);
    printf(" %.3f | %.3f |", ms[QUERIES / 2], ms[QUERIES * 99 / 100]);
}

/* ---- vectors ---- */

static void draw(weft__rng *rng, const float *centers, int n_centers, int dims, float *x)
{
    const float *c = centers + weft__rng_below(rng, (uint64_t)n_centers) * (size_t)dims;
    double square = 0;
    for (int i = 0; i < dims; i++) {
        x[i] = (float)(c[i] + 0.6 * weft__rng_normal(rng) + 0.5);
        square += (double)x[i] * x[i];
    }
    for (int i = 0; i < dims; i++) x[i] = (float)(x[i] / sqrt(square));
}

/* The ten nearest by products of 32 bits. */
static void nearest(const float *all, int n, int dims, const float *x, weft__search_top *top)
{
    for (int e = 0; e < n; e++) {
        float sums[8] = {0};
        const float *y = all + (size_t)e * (size_t)dims;
        for (int i = 0; i + 8 <= dims; i += 8)
            for (int j = 0; j < 8; j++) sums[j] += x[i + j] * y[i + j];
        double sum = 0;
        for (int j = 0; j < 8; j++) sum += sums[j];
        for (int i = dims / 8 * 8; i < dims; i++) sum += x[i] * y[i];
        weft__search_offer(top, (uint64_t)e, sum);
    }
}

static int vectors(int n, int dims)
{
    const int n_centers = n / 100 + 1;
    float *all = malloc(sizeof *all * (size_t)n * (size_t)dims), *q = malloc(sizeof *q * QUERIES * (size_t)dims);
    float *centers = malloc(sizeof *centers * (size_t)n_centers * (size_t)dims);
    static weft__search_hit right[QUERIES][K];
    static double ms[2][QUERIES];
    size_t candidates, n_right[2] = {0};
    weft__search_vectors *v;
    weft__rng rng;
    if (!all || !q || !centers || weft__search_vectors_new(dims, weft__tier_mask(), &v, NULL)) return 1;
    weft__rng_seed(&rng, 1);
    for (int i = 0; i < n_centers * dims; i++) centers[i] = (float)weft__rng_normal(&rng);
    for (int e = 0; e < n; e++) draw(&rng, centers, n_centers, dims, all + (size_t)e * (size_t)dims);
    for (int i = 0; i < QUERIES; i++) draw(&rng, centers, n_centers, dims, q + i * dims);
    const uint64_t from = weft__clock_ns();
    for (int e = 0; e < n; e++)
        if (weft__search_vectors_add(v, (uint64_t)e, all + (size_t)e * (size_t)dims, NULL)) return 1;
    const double built = (double)(weft__clock_ns() - from) / 1e9;
    if (weft__search_vectors_tune(v, K, 0.99, &candidates, NULL)) return 1;
    for (int i = 0; i < QUERIES; i++) {
        weft__search_top top = {.hits = right[i], .most = K};
        nearest(all, n, dims, q + i * dims, &top);
    }
    for (int exact = 1; exact >= 0; exact--)
        for (int i = 0; i < QUERIES; i++) {
            weft__search_hit hits[K];
            weft__search_top top = {.hits = hits, .most = K};
            const uint64_t begin = weft__clock_ns();
            if (weft__search_vectors_find(v, q + i * dims, exact, &top, NULL)) return 1;
            ms[exact][i] = (double)(weft__clock_ns() - begin) / 1e6;
            for (size_t a = 0; a < top.n; a++)
                for (int b = 0; b < K; b++) n_right[exact] += hits[a].id == right[i][b].id;
        }
    for (int exact = 1; exact >= 0; exact--) {
        if (exact) printf("| %d x %d, 8 bits |", n, dims);
        else if (candidates) printf("| the same, codes, then %zu in 8 bits |", candidates);
        else printf("| the same, codes: not enough found, so all in 8 bits |");
        printf(" %.3f |", (double)n_right[exact] / QUERIES / K);
        put_times(ms[exact]);
        printf(" %.0f | %.1f |\n", (double)weft__search_vectors_bytes(v) / n, built);
    }
    weft__search_vectors_free(&v);
    free(all), free(q), free(centers);
    return 0;
}

/* ---- words ---- */

static int words(int n)
{
    static double ms[QUERIES];
    weft__search_words *w;
    weft__rng rng;
    char text[512];
    if (weft__search_words_new(NULL, &w, NULL)) return 1;
    weft__rng_seed(&rng, 2);
    const uint64_t from = weft__clock_ns();
    for (int e = 0; e < n; e++) { /* 30 words each, frequent ones more often */
        int at = 0;
        for (int k = 0; k < 30; k++)
            at += snprintf(text + at, sizeof text - (size_t)at, "w%d ", (int)pow(30000, weft__rng_double(&rng)));
        if (weft__search_words_add(w, (uint64_t)e, text, (size_t)at, NULL)) return 1;
    }
    const double built = (double)(weft__clock_ns() - from) / 1e9;
    for (int i = 0; i < QUERIES; i++) {
        weft__search_hit hits[K];
        weft__search_top top = {.hits = hits, .most = K};
        int at = 0;
        for (int k = 0; k < 6; k++)
            at += snprintf(text + at, sizeof text - (size_t)at, "w%d ", (int)pow(30000, weft__rng_double(&rng)));
        const uint64_t begin = weft__clock_ns();
        if (weft__search_words_find(w, text, (size_t)at, &top, NULL)) return 1;
        ms[i] = (double)(weft__clock_ns() - begin) / 1e6;
    }
    printf("| %d texts of 30 words, queries of 6 | |", n);
    put_times(ms);
    printf(" | %.1f |\n", built);
    weft__search_words_free(&w);
    return 0;
}

/* Two lists of all that may be asked for. */
static int fused(void)
{
    static weft__search_hit lists[2][WEFT__SEARCH_HITS];
    static double ms[QUERIES];
    const weft__search_hit *const both[] = {lists[0], lists[1]};
    const size_t n[] = {WEFT__SEARCH_HITS, WEFT__SEARCH_HITS};
    weft__rng rng;
    weft__rng_seed(&rng, 3);
    for (int i = 0; i < QUERIES; i++) {
        weft__search_hit hits[K];
        weft__search_top top = {.hits = hits, .most = K};
        for (int l = 0; l < 2; l++)
            for (int k = 0; k < WEFT__SEARCH_HITS; k++)
                lists[l][k].id = (uint64_t)k * 1000 + weft__rng_below(&rng, 1000) * (uint64_t)l;
        const uint64_t begin = weft__clock_ns();
        if (weft__search_fuse(both, n, 2, &top, NULL)) return 1;
        ms[i] = (double)(weft__clock_ns() - begin) / 1e6;
    }
    printf("| two lists of %d, fused | |", WEFT__SEARCH_HITS);
    put_times(ms);
    printf(" | |\n");
    return 0;
}

static int bm25(const char *query)
{
    const weft__search_words_params p = {.k1 = 1.5, .b = 0.75, .floor = 0.25};
    static double scores[WEFT__SEARCH_HITS];
    static weft__search_hit hits[WEFT__SEARCH_HITS];
    weft__search_top top = {.hits = hits, .most = WEFT__SEARCH_HITS};
    weft__search_words *w;
    char line[4096];
    uint64_t n = 0;
    if (weft__search_words_new(&p, &w, NULL)) return 1;
    while (n < WEFT__SEARCH_HITS && fgets(line, sizeof line, stdin))
        if (weft__search_words_add(w, n++, line, strlen(line), NULL)) return 1;
    if (weft__search_words_find(w, query, strlen(query), &top, NULL)) return 1;
    for (size_t i = 0; i < top.n; i++) scores[hits[i].id] = hits[i].score;
    for (uint64_t i = 0; i < n; i++) printf("%.17g\n", scores[i]);
    weft__search_words_free(&w);
    return 0;
}

int main(int argc, char **argv)
{
    int n = 100000, dims = 768, texts = 100000;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--bm25")) return bm25(argv[i + 1]);
        if (!strcmp(argv[i], "--vectors")) n = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--dims")) dims = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--texts")) texts = atoi(argv[i + 1]);
        else return fprintf(stderr, "bench_search: there is no %s\n", argv[i]), 2;
    }
    if (n < 100 || n > WEFT__SEARCH_MOST || dims < 1 || dims > WEFT__SEARCH_DIMS || texts < 1 ||
        texts > WEFT__SEARCH_MOST)
        return fprintf(stderr, "bench_search: 100 to %d vectors, 1 to %d dimensions\n", WEFT__SEARCH_MOST,
                       WEFT__SEARCH_DIMS),
               2;
    printf("| what | recall@10 | ms | 99th | bytes | built, s |\n| --- | ---: | ---: | ---: | ---: | ---: |\n");
    return vectors(n, dims) || words(texts) || fused();
}
