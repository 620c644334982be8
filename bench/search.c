// SPDX-License-Identifier: Apache-2.0
/* search.c: what searches take, and what they find (make bench-search).
 *
 * Usage: bench_search [--vectors N] [--dims D] [--noise X] [--texts N]
 *        bench_search --bm25 QUERY < TEXTS    the score of each line for the words of QUERY, as rank_bm25 has it
 *        bench_search --rank WEIGHT < TEXTS   for bench/recall: what each query finds by words, by vectors less their
 *                                             mean, by both fused by rank, and by scores (a cosine counts WEIGHT
 *                                             times). TEXTS: a line "N Q D", N texts and Q queries, each a line, and
 *                                             their vectors, [N + Q][D] of 32 bits
 *
 * Vectors lie in clusters of about a hundred, as far from the middle as the noise says (of what the middles are apart;
 * 0.6), with something in common to all; queries are none of them. Rows, in turns on one thread: reading as many bytes,
 * exact searches, and those by codes with several counts of candidates: recall of the ten nearest by 32-bit products,
 * median and 99th percentile of milliseconds of processor time, bytes for an entry. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/random.h"
#include "kernels/kernels.h"
#include "search/search.h"

enum { K = 10, QUERIES = 100 };

/* Of this thread's own time: others may take turns on its core. */
static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

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

static void draw(weft__rng *rng, const float *centers, int n_centers, int dims, double noise, float *x)
{
    const float *c = centers + weft__rng_below(rng, (uint64_t)n_centers) * (size_t)dims;
    double square = 0;
    for (int i = 0; i < dims; i++) {
        x[i] = (float)(c[i] + noise * weft__rng_normal(rng) + 0.5);
        square += (double)x[i] * x[i];
    }
    for (int i = 0; i < dims; i++) x[i] = (float)(x[i] / sqrt(square));
}

/* Of each query the ten nearest by products of 32 bits. */
static void nearest(const float *all, int n, int dims, const float *q, weft__search_hit (*right)[K])
{
    static weft__search_top tops[QUERIES];
    for (int i = 0; i < QUERIES; i++) tops[i] = (weft__search_top){.hits = right[i], .most = K};
    for (int e = 0; e < n; e++)
        for (int i = 0; i < QUERIES; i++) {
            float sums[16] = {0};
            const float *x = q + i * dims, *y = all + (size_t)e * (size_t)dims;
            double sum = 0;
            for (int d = 0; d + 16 <= dims; d += 16)
                for (int j = 0; j < 16; j++) sums[j] += x[d + j] * y[d + j];
            for (int j = 0; j < 16; j++) sum += sums[j];
            for (int d = dims / 16 * 16; d < dims; d++) sum += x[d] * y[d];
            weft__search_offer(&tops[i], (uint64_t)e, sum);
        }
}

/* Milliseconds in which one thread reads as many bytes as an exact search does. */
static double read_once(const float *all, int n, int dims, uint64_t *kept)
{
    weft__peak_kernels peak;
    weft__peak_kernels_get(weft__tier_mask(), &peak);
    const uint64_t from = now_ns();
    *kept += peak.read(all, (size_t)n * ((size_t)(dims + 31) / 32 * 34));
    return (double)(now_ns() - from) / 1e6;
}

/* Ways of searching: 0 reads alone, 1 is exact, the others look at `candidates` by codes first. */
enum { WAYS = 8 };
typedef struct way {
    size_t candidates, n_right;
    double ms[QUERIES];
} way;

static int measure(weft__search_vectors *v, const float *all, int n, int dims, const float *q,
                   weft__search_hit (*right)[K], way *ways)
{
    uint64_t kept = 0;
    for (int i = 0; i < QUERIES; i++) /* in turns: others may take of the memory's speed */
        for (int w = 0; w < WAYS; w++) {
            weft__search_hit hits[K];
            weft__search_top top = {.hits = hits, .most = K};
            if (!w) {
                ways[w].ms[i] = read_once(all, n, dims, &kept);
                continue;
            }
            weft__search_vectors_settle(v, ways[w].candidates);
            const uint64_t begin = now_ns();
            if (weft__search_vectors_find(v, q + i * dims, w == 1, &top, NULL)) return 1;
            ways[w].ms[i] = (double)(now_ns() - begin) / 1e6;
            for (size_t a = 0; a < top.n; a++)
                for (int b = 0; b < K; b++) ways[w].n_right += hits[a].id == right[i][b].id;
        }
    return kept == 1;
}

static void report_ways(way *ways, int n, int dims, double bytes, double built, double tuned, size_t chosen)
{
    for (int w = 0; w < WAYS; w++) {
        if (w == 0) printf("| as many bytes, read once | |");
        else if (w == 1) printf("| %d x %d, 8 bits |", n, dims);
        else
            printf("| codes, then %zu in 8 bits%s |", ways[w].candidates,
                   ways[w].candidates == chosen ? " (chosen)" : "");
        if (w) printf(" %.3f |", (double)ways[w].n_right / QUERIES / K);
        put_times(ways[w].ms);
        if (w == 1) printf(" %.0f | %.1f |\n", bytes, built);
        else if (w == 2) printf(" | %.1f to choose |\n", tuned);
        else printf(" | |\n");
    }
    if (!chosen) printf("| no count is chosen: searches stay exact | | | | | |\n");
}

static int vectors(int n, int dims, double noise)
{
    const int n_centers = n / 100 + 1;
    float *all = weft__alloc_aligned(64, sizeof *all * (size_t)n * (size_t)dims);
    float *q = malloc(sizeof *q * QUERIES * (size_t)dims);
    float *centers = malloc(sizeof *centers * (size_t)n_centers * (size_t)dims);
    static weft__search_hit right[QUERIES][K];
    static way ways[WAYS];
    size_t chosen;
    weft__search_vectors *v;
    weft__rng rng;
    if (!all || !q || !centers || weft__search_vectors_new(dims, weft__tier_mask(), &v, NULL)) return 1;
    weft__rng_seed(&rng, 1);
    for (int i = 0; i < n_centers * dims; i++) centers[i] = (float)weft__rng_normal(&rng);
    for (int e = 0; e < n; e++) draw(&rng, centers, n_centers, dims, noise, all + (size_t)e * (size_t)dims);
    for (int i = 0; i < QUERIES; i++) draw(&rng, centers, n_centers, dims, noise, q + i * dims);
    const uint64_t from = now_ns();
    for (int e = 0; e < n; e++)
        if (weft__search_vectors_add(v, (uint64_t)e, all + (size_t)e * (size_t)dims, NULL)) return 1;
    const uint64_t built = now_ns();
    if (weft__search_vectors_tune(v, K, 0.99, &chosen, NULL)) return 1;
    const uint64_t tuned = now_ns();
    nearest(all, n, dims, q, right);
    for (int w = 2; w < WAYS; w++) ways[w].candidates = (size_t)K << w << (w > 5 ? w - 5 : 0);
    if (measure(v, all, n, dims, q, right, ways)) return 1;
    report_ways(ways, n, dims, (double)weft__search_vectors_bytes(v) / n, (double)(built - from) / 1e9,
                (double)(tuned - built) / 1e9, chosen);
    weft__search_vectors_free(&v);
    weft__free(all);
    free(q), free(centers);
    return 0;
}

/* ---- words ---- */

/* Bytes of memory that the process has. */
static double resident(void)
{
    long pages = 0, all = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &all, &pages) != 2) pages = 0;
    if (f) fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* Frequent ones more often. */
static size_t some_words(weft__rng *rng, int n, char *out, size_t room)
{
    int at = 0;
    for (int k = 0; k < n; k++)
        at += snprintf(out + at, room - (size_t)at, "w%d ", (int)pow(30000, weft__rng_double(rng)));
    return (size_t)at;
}

static int words(int n)
{
    static double ms[QUERIES];
    weft__search_words *w;
    weft__rng rng;
    char text[512];
    if (weft__search_words_new(NULL, &w, NULL)) return 1;
    weft__rng_seed(&rng, 2);
    const double before = resident();
    uint64_t built = 0;
    for (int e = 0; e < n; e++) {
        const size_t bytes = some_words(&rng, 30, text, sizeof text);
        const uint64_t from = now_ns();
        if (weft__search_words_add(w, (uint64_t)e, text, bytes, NULL)) return 1;
        built += now_ns() - from;
    }
    for (int i = 0; i < QUERIES; i++) {
        weft__search_hit hits[K];
        weft__search_top top = {.hits = hits, .most = K};
        const size_t bytes = some_words(&rng, 6, text, sizeof text);
        const uint64_t begin = now_ns();
        if (weft__search_words_find(w, text, bytes, &top, NULL)) return 1;
        ms[i] = (double)(now_ns() - begin) / 1e6;
    }
    printf("| %d texts of 30 words, queries of 6 | |", n);
    put_times(ms);
    printf(" %.0f | %.1f |\n", (resident() - before) / n, (double)built / 1e9);
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
        const uint64_t begin = now_ns();
        if (weft__search_fuse(both, n, 2, &top, NULL)) return 1;
        ms[i] = (double)(now_ns() - begin) / 1e6;
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

/* ---- what is found ---- */

/* Entries with these texts and vectors, numbered from 0. */
typedef struct ranked {
    weft__search_words *words;
    weft__search_vectors *vectors;
    double weight; /* of a cosine */
} ranked;

static void put_hits(const weft__search_top *top)
{
    for (size_t i = 0; i < top->n && i < K; i++)
        printf("%s%d:%.9g", i ? " " : "", (int)top->hits[i].id, top->hits[i].score);
    printf("\n");
}

static int rank_query(const ranked *r, const char *query, const float *x)
{
    static weft__search_hit lists[2][WEFT__SEARCH_HITS], best[2][K];
    weft__search_top by_words = {.hits = lists[0], .most = WEFT__SEARCH_HITS},
                     by_vectors = {.hits = lists[1], .most = WEFT__SEARCH_HITS}, by_rank = {.hits = best[0], .most = K},
                     by_score = {.hits = best[1], .most = K};
    const weft__search_hit *const found[] = {lists[0], lists[1]};
    const double weights[] = {1, r->weight};
    if (weft__search_words_find(r->words, query, strlen(query), &by_words, NULL) ||
        weft__search_vectors_find(r->vectors, x, 1, &by_vectors, NULL))
        return 1;
    const size_t n[] = {by_words.n, by_vectors.n},
                 first[] = {by_words.n < K ? by_words.n : K, by_vectors.n < K ? by_vectors.n : K};
    if (weft__search_fuse(found, first, 2, &by_rank, NULL) || weft__search_sum(found, n, weights, 2, &by_score, NULL))
        return 1;
    put_hits(&by_words);
    put_hits(&by_vectors);
    put_hits(&by_rank);
    put_hits(&by_score);
    return 0;
}

/* Less the mean of the first n of all. */
static void center(float *x, int n, int all, int dims)
{
    for (int d = 0; d < dims; d++) {
        double sum = 0;
        for (int i = 0; i < n; i++) sum += x[(size_t)i * (size_t)dims + (size_t)d];
        for (int i = 0; i < all; i++) x[(size_t)i * (size_t)dims + (size_t)d] -= (float)(sum / n);
    }
}

static int rank_all(int n, int n_queries, int dims, double weight)
{
    ranked r = {.weight = weight};
    const int all = n + n_queries;
    char **lines = calloc((size_t)all, sizeof *lines);
    float *x = malloc(sizeof *x * (size_t)all * (size_t)dims);
    size_t room;
    int rc = !lines || !x || weft__search_words_new(NULL, &r.words, NULL) ||
             weft__search_vectors_new(dims, weft__tier_mask(), &r.vectors, NULL);
    for (int i = 0; !rc && i < all; i++) rc = getline(&lines[i], (room = 0, &room), stdin) < 0;
    rc = rc || fread(x, sizeof *x * (size_t)dims, (size_t)all, stdin) != (size_t)all;
    if (!rc) center(x, n, all, dims);
    for (int i = 0; !rc && i < n; i++)
        rc = weft__search_words_add(r.words, (uint64_t)i, lines[i], strlen(lines[i]), NULL) ||
             weft__search_vectors_add(r.vectors, (uint64_t)i, x + (size_t)i * (size_t)dims, NULL);
    for (int i = n; !rc && i < all; i++) rc = rank_query(&r, lines[i], x + (size_t)i * (size_t)dims);
    weft__search_words_free(&r.words);
    weft__search_vectors_free(&r.vectors);
    for (int i = 0; lines && i < all; i++) free(lines[i]);
    free(lines), free(x);
    return rc;
}

static int rank(const char *weight)
{
    char line[64];
    int n = 0, n_queries = 0, dims = 0;
    if (!fgets(line, sizeof line, stdin) || sscanf(line, "%d %d %d", &n, &n_queries, &dims) != 3 || n < 2 ||
        n > WEFT__SEARCH_HITS || n_queries < 1 || n_queries > WEFT__SEARCH_MOST || dims < 1 || dims > WEFT__SEARCH_DIMS)
        return fprintf(stderr, "bench_search: --rank wants numbers of texts, queries and dimensions\n"), 2;
    return rank_all(n, n_queries, dims, strtod(weight, NULL));
}

int main(int argc, char **argv)
{
    int n = 100000, dims = 768, texts = 100000;
    double noise = 0.6;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--bm25")) return bm25(argv[i + 1]);
        if (!strcmp(argv[i], "--rank")) return rank(argv[i + 1]);
        if (!strcmp(argv[i], "--vectors")) n = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--dims")) dims = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--noise")) noise = atof(argv[i + 1]);
        else if (!strcmp(argv[i], "--texts")) texts = atoi(argv[i + 1]);
        else return fprintf(stderr, "bench_search: there is no %s\n", argv[i]), 2;
    }
    if (n < 100 || n > WEFT__SEARCH_MOST || dims < 1 || dims > WEFT__SEARCH_DIMS || texts < 1 ||
        texts > WEFT__SEARCH_MOST)
        return fprintf(stderr, "bench_search: 100 to %d vectors, 1 to %d dimensions\n", WEFT__SEARCH_MOST,
                       WEFT__SEARCH_DIMS),
               2;
    printf("| what | recall@10 | ms | 99th | bytes | built, s |\n| --- | ---: | ---: | ---: | ---: | ---: |\n");
    return vectors(n, dims, noise) || words(texts) || fused();
}
