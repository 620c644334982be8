// SPDX-License-Identifier: Apache-2.0
/* vectors.c: vectors in 8 bits, searched whole by the engine's kernel for Q8_0, or among those whose codes of signs are
 * nearest (search.h). One thread.
 *
 * Layout: blocks of PANELS panels, as the kernel reads them (kernels.h); the rows of the last panel are kept as Q8_0
 * until it is full, and packed before it is read. Codes stand entry after entry, words of 64 dimensions each. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "kernels/kernels.h"
#include "quant/encode.h"
#include "quant/quant.h"
#include "search/codes.h"
#include "search/map.h"
#include "search/search.h"

enum {
    PANELS = 256,
    SAMPLES = 64,
    TOGETHER = 16, /* queries of samples that read the entries once */
    UNIT = 32      /* dimensions of a block of Q8_0 */
};

struct weft__search_vectors {
    int dims;
    int64_t k; /* dims, rounded up */
    const weft__matmul *mm;
    size_t panel_bytes, row_bytes;
    uint8_t **blocks; /* [n_blocks] of PANELS panels */
    size_t n_blocks, cap_blocks;
    uint8_t *rows; /* [panel_rows][row_bytes], of the last panel */
    int is_packed; /* those, as far as there are any */
    uint64_t *ids;
    unsigned char *is_there;
    size_t n, cap_ids, cap_there, n_there;
    weft__search_map places;
    /* codes */
    double *sum;                             /* [dims], of the first WEFT__SEARCH_CENTER */
    float *first;                            /* [WEFT__SEARCH_CENTER][dims], until they have codes; then NULL */
    float *center;                           /* [dims]; NULL before */
    uint64_t *codes;                         /* [n][n_words] */
    size_t n_words, cap_codes, n_candidates; /* n_candidates 0: searches are exact */
    float *samples;                          /* [n_samples][dims], of all that came */
    size_t n_samples;
    weft__rng rng;
    /* of a search */
    float *x, *out; /* [k], [TOGETHER][PANELS * panel_rows] */
    void *act;      /* TOGETHER rows */
    uint64_t *code; /* [n_words] */
};

static weft_status vectors_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for an index of vectors");
}

/* ---- life ---- */

void weft__search_vectors_free(weft__search_vectors **p)
{
    weft__search_vectors *v = *p;
    if (!v) return;
    *p = NULL;
    for (size_t i = 0; i < v->n_blocks; i++) weft__free(v->blocks[i]);
    weft__search_map_free(&v->places);
    void *all[] = {v->blocks, v->rows,    v->ids, v->is_there, v->sum, v->first, v->center,
                   v->codes,  v->samples, v->x,   v->out,      v->act, v->code};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) weft__free(all[i]);
    weft__free(v);
}

weft_status weft__search_vectors_new(int dims, uint32_t tiers, weft__search_vectors **out, weft_error *err)
{
    *out = NULL;
    if (dims < 1 || dims > WEFT__SEARCH_DIMS)
        return weft_fail(err, WEFT_ARGUMENT, "an index of vectors has 1 to %d dimensions, not %d", WEFT__SEARCH_DIMS,
                         dims);
    weft__search_vectors *v = weft__alloc_zero(1, sizeof *v);
    if (!v) return vectors_no_memory(err);
    v->dims = dims;
    v->k = (dims + UNIT - 1) / UNIT * UNIT;
    v->mm = weft__matmul_find(WEFT_Q8_0, tiers);
    v->row_bytes = weft__quant_row_bytes(WEFT_Q8_0, v->k);
    v->panel_bytes = v->mm->panel_bytes ? v->mm->panel_bytes(v->k) : v->row_bytes;
    v->n_words = ((size_t)dims + 63) / 64;
    weft__rng_seed(&v->rng, 1);
    const size_t d = (size_t)dims;
    v->rows = weft__alloc((size_t)v->mm->panel_rows * v->row_bytes);
    v->sum = weft__alloc_zero(d, sizeof *v->sum);
    v->first = weft__alloc_array(WEFT__SEARCH_CENTER * d, sizeof *v->first);
    v->samples = weft__alloc_array(SAMPLES * d, sizeof *v->samples);
    v->x = weft__alloc_zero((size_t)v->k, sizeof *v->x);
    v->out = weft__alloc_array((size_t)TOGETHER * PANELS * (size_t)v->mm->panel_rows, sizeof *v->out);
    v->act = weft__alloc_aligned(64, v->mm->act->bytes(v->k, TOGETHER));
    v->code = weft__alloc_array(v->n_words, sizeof *v->code);
    *out = v;
    if (v->rows && v->sum && v->first && v->samples && v->x && v->out && v->act && v->code) return WEFT_OK;
    weft__search_vectors_free(out);
    return vectors_no_memory(err);
}

size_t weft__search_vectors_count(const weft__search_vectors *v)
{
    return v->n_there;
}

uint64_t weft__search_vectors_bytes(const weft__search_vectors *v)
{
    return (uint64_t)v->n_blocks * PANELS * v->panel_bytes + v->cap_codes * sizeof *v->codes +
           v->cap_ids * sizeof *v->ids + v->cap_there + v->places.size * sizeof *v->places.cells;
}

/* ---- adding and removing ---- */

/* v->x becomes x of length 1. 0: it has none. */
static int take_direction(weft__search_vectors *v, const float *x)
{
    double square = 0;
    for (int i = 0; i < v->dims; i++) square += (double)x[i] * x[i];
    if (!(square > 0) || !isfinite(square)) return 0;
    const double by = 1 / sqrt(square);
    for (int i = 0; i < v->dims; i++) v->x[i] = (float)(x[i] * by);
    return 1;
}

static void put_code(const weft__search_vectors *v, const float *x, uint64_t *code)
{
    memset(code, 0, v->n_words * sizeof *code);
    for (int i = 0; i < v->dims; i++) code[i / 64] |= (uint64_t)(x[i] > v->center[i]) << i % 64;
}

/* Room for one more; 0: no memory, and nothing that counts has changed. */
static int make_room_for_one(weft__search_vectors *v)
{
    const size_t rows = (size_t)PANELS * (size_t)v->mm->panel_rows;
    if (!weft__search_map_room(&v->places) || !weft__grow(&v->ids, &v->cap_ids, v->n + 1, sizeof *v->ids) ||
        !weft__grow(&v->is_there, &v->cap_there, v->n + 1, sizeof *v->is_there) ||
        !weft__grow(&v->codes, &v->cap_codes, (v->n + 1) * v->n_words, sizeof *v->codes))
        return 0;
    if (v->n < v->n_blocks * rows) return 1;
    if (!weft__grow(&v->blocks, &v->cap_blocks, v->n_blocks + 1, sizeof *v->blocks)) return 0;
    uint8_t *block = weft__alloc_aligned(64, PANELS * v->panel_bytes);
    if (!block) return 0;
    v->blocks[v->n_blocks++] = block;
    return 1;
}

/* The first ones wait for their codes until it is known what they have in common. */
static int settle_center(weft__search_vectors *v)
{
    const size_t d = (size_t)v->dims;
    const int is_last = v->n + 1 == WEFT__SEARCH_CENTER;
    if (is_last && !(v->center = weft__alloc_array(d, sizeof *v->center))) return 0;
    memcpy(v->first + v->n * d, v->x, d * sizeof *v->x);
    for (size_t i = 0; i < d; i++) v->sum[i] += v->x[i];
    if (!is_last) return 1;
    for (size_t i = 0; i < d; i++) v->center[i] = (float)(v->sum[i] / WEFT__SEARCH_CENTER);
    for (size_t e = 0; e < WEFT__SEARCH_CENTER; e++) put_code(v, v->first + e * d, v->codes + e * v->n_words);
    weft__free(v->first);
    v->first = NULL;
    return 1;
}

/* Each of all that came is among the samples with the same chance (Vitter 1985). */
static void sample(weft__search_vectors *v)
{
    const uint64_t at = v->n < SAMPLES ? v->n : weft__rng_below(&v->rng, v->n + 1);
    if (at >= SAMPLES) return;
    memcpy(v->samples + at * (size_t)v->dims, v->x, (size_t)v->dims * sizeof *v->x);
    if (v->n_samples < SAMPLES) v->n_samples++;
}

/* The rows of panel `panel`, the last one, of which there are n. */
static void pack_panel(weft__search_vectors *v, size_t panel, size_t n)
{
    uint8_t *to = v->blocks[panel / PANELS] + panel % PANELS * v->panel_bytes;
    if (v->mm->panel_bytes) weft__matmul_pack(v->mm, v->rows, v->row_bytes, (int)n, v->k, to);
    else memcpy(to, v->rows, v->row_bytes); /* used as it lies */
}

/* v->x into the place of the next entry. */
static void put_row(weft__search_vectors *v)
{
    const size_t rows = (size_t)v->mm->panel_rows, in_panel = v->n % rows;
    weft__quant_nearest_q8_0(v->x, v->rows + in_panel * v->row_bytes, v->k);
    v->is_packed = in_panel + 1 == rows;
    if (v->is_packed) pack_panel(v, v->n / rows, rows);
}

/* Before a search. */
static void pack_the_last(weft__search_vectors *v)
{
    const size_t rows = (size_t)v->mm->panel_rows;
    if (v->n && !v->is_packed) pack_panel(v, v->n / rows, v->n % rows);
    v->is_packed = 1;
}

weft_status weft__search_vectors_add(weft__search_vectors *v, uint64_t id, const float *x, weft_error *err)
{
    if (weft__search_map_get(&v->places, id) >= 0)
        return weft_fail(err, WEFT_ARGUMENT, "the index of vectors has an entry %llu", (unsigned long long)id);
    if (v->n >= WEFT__SEARCH_MOST)
        return weft_fail(err, WEFT_LIMIT, "an index of vectors has at most %d entries", WEFT__SEARCH_MOST);
    if (!take_direction(v, x)) return weft_fail(err, WEFT_ARGUMENT, "a vector without a length, or not finite");
    if (!make_room_for_one(v)) return vectors_no_memory(err);
    if (v->first && !settle_center(v)) return vectors_no_memory(err);
    if (v->center) put_code(v, v->x, v->codes + v->n * v->n_words);
    sample(v);
    put_row(v);
    weft__search_map_put(&v->places, id, (int64_t)v->n);
    v->ids[v->n] = id;
    v->is_there[v->n++] = 1;
    v->n_there++;
    return WEFT_OK;
}

int weft__search_vectors_remove(weft__search_vectors *v, uint64_t id)
{
    const int64_t at = weft__search_map_get(&v->places, id);
    if (at < 0) return 0;
    v->is_there[at] = 0;
    v->n_there--;
    weft__search_map_remove(&v->places, id);
    return 1;
}

/* ---- finding ---- */

/* Cosines of m prepared queries with n_rows entries of panels, into v->out[m][n_rows]. */
static void multiply(weft__search_vectors *v, const uint8_t *panels, int64_t n_rows, int64_t m)
{
    const weft__product p = {.panels = panels,
                             .stride = v->panel_bytes,
                             .n_out = n_rows,
                             .k = v->k,
                             .act = v->act,
                             .m = m,
                             .out = v->out,
                             .ldo = n_rows};
    weft__matmul_run(v->mm, &p, NULL);
}

static void offer_rows(const weft__search_vectors *v, size_t first, size_t n, const float *scores,
                       weft__search_top *top)
{
    for (size_t i = 0; i < n; i++) {
        if (top->n && top->n == top->most && !(scores[i] >= top->hits[top->n - 1].score)) continue; /* nearly all */
        if (v->is_there[first + i]) weft__search_offer(top, v->ids[first + i], scores[i]);
    }
}

/* To each of m queries, prepared, its own. */
static void find_all(weft__search_vectors *v, weft__search_top *tops, size_t m)
{
    const size_t rows = (size_t)PANELS * (size_t)v->mm->panel_rows;
    for (size_t b = 0; b * rows < v->n; b++) {
        const size_t n = v->n - b * rows < rows ? v->n - b * rows : rows;
        multiply(v, v->blocks[b], (int64_t)n, (int64_t)m);
        for (size_t i = 0; i < m; i++) offer_rows(v, b * rows, n, v->out + i * n, &tops[i]);
    }
}

/* The panels of `n` entries in rising order, each multiplied once; of their other entries nothing is offered. */
static void offer_entries(weft__search_vectors *v, const uint32_t *entries, size_t n, weft__search_top *top)
{
    const size_t rows = (size_t)v->mm->panel_rows;
    size_t there = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        const size_t panel = entries[i] / rows, left = v->n - panel * rows;
        if (panel != there)
            multiply(v, v->blocks[panel / PANELS] + panel % PANELS * v->panel_bytes,
                     (int64_t)(left < rows ? left : rows), 1);
        there = panel;
        weft__search_offer(top, v->ids[entries[i]], v->out[entries[i] % rows]);
    }
}

static weft_status find_among(weft__search_vectors *v, size_t n_candidates, weft__search_top *top, weft_error *err)
{
    uint32_t *nearest = weft__alloc_array(n_candidates, sizeof *nearest);
    size_t n = 0;
    put_code(v, v->x, v->code);
    const int ok = nearest && weft__search_codes_nearest(v->codes, v->n_words, v->n, v->code, v->is_there, n_candidates,
                                                         nearest, &n);
    if (ok) offer_entries(v, nearest, n, top);
    weft__free(nearest);
    return ok ? WEFT_OK : vectors_no_memory(err);
}

weft_status weft__search_vectors_find(weft__search_vectors *v, const float *x, int exact, weft__search_top *top,
                                      weft_error *err)
{
    if (!take_direction(v, x)) return weft_fail(err, WEFT_ARGUMENT, "a vector without a length, or not finite");
    weft__act_put_row(v->mm->act, v->x, v->k, 0, 1, v->act);
    pack_the_last(v);
    if (!exact && !top->filter && v->n_candidates && v->n_candidates < v->n_there)
        return find_among(v, v->n_candidates, top, err);
    find_all(v, top, 1);
    return WEFT_OK;
}

/* ---- how many candidates do ---- */

/* Of n samples from the first-th on: how many entries the codes put before each of their k nearest, into ranks[n][k]
 * (SIZE_MAX where there are fewer). A sample finds itself, which proves nothing: the first of k + 1 does not count. */
static int rank_nearest(weft__search_vectors *v, size_t first, size_t n, size_t k, size_t *ranks)
{
    weft__search_hit *hits = weft__alloc_array(n * (k + 1), sizeof *hits);
    uint32_t *places = weft__alloc_array(k + 1, sizeof *places);
    weft__search_top tops[TOGETHER];
    int ok = hits && places;
    for (size_t i = 0; ok && i < n; i++) {
        memcpy(v->x, v->samples + (first + i) * (size_t)v->dims, (size_t)v->dims * sizeof *v->x);
        weft__act_put_row(v->mm->act, v->x, v->k, (int64_t)i, (int64_t)n, v->act);
        tops[i] = (weft__search_top){.hits = hits + i * (k + 1), .most = k + 1};
    }
    if (ok) find_all(v, tops, n);
    for (size_t i = 0; ok && i < n; i++) {
        const size_t n_found = tops[i].n ? tops[i].n - 1 : 0;
        for (size_t h = 0; h < n_found; h++)
            places[h] = (uint32_t)weft__search_map_get(&v->places, tops[i].hits[h + 1].id);
        for (size_t h = 0; h < k; h++) ranks[i * k + h] = SIZE_MAX;
        put_code(v, v->samples + (first + i) * (size_t)v->dims, v->code);
        ok = weft__search_codes_rank(v->codes, v->n_words, v->n, v->code, v->is_there, places, n_found, ranks + i * k);
    }
    weft__free(places);
    weft__free(hits);
    return ok;
}

static double share_within(const size_t *ranks, size_t n, size_t most)
{
    size_t within = 0, all = 0;
    for (size_t i = 0; i < n; i++) within += ranks[i] < most, all += ranks[i] != SIZE_MAX;
    return all ? (double)within / (double)all : 0;
}

weft_status weft__search_vectors_tune(weft__search_vectors *v, size_t k, double recall, size_t *candidates,
                                      weft_error *err)
{
    const size_t n_samples = v->n_samples;
    *candidates = v->n_candidates = 0;
    if (!v->center || 4 * k >= v->n_there / 4) return WEFT_OK;
    size_t *ranks = weft__alloc_array(n_samples * k, sizeof *ranks);
    int ok = ranks != NULL;
    pack_the_last(v);
    for (size_t i = 0; i < n_samples && ok; i += TOGETHER)
        ok = rank_nearest(v, i, n_samples - i < TOGETHER ? n_samples - i : TOGETHER, k, ranks + i * k);
    for (size_t n = 4 * k; ok && n < v->n_there / 4 && !v->n_candidates; n *= 2)
        if (share_within(ranks, n_samples * k, n) >= recall) v->n_candidates = n;
    *candidates = v->n_candidates;
    weft__free(ranks);
    return ok ? WEFT_OK : vectors_no_memory(err);
}

void weft__search_vectors_settle(weft__search_vectors *v, size_t candidates)
{
    v->n_candidates = candidates;
}
