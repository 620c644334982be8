// SPDX-License-Identifier: Apache-2.0
/* candidates.c: lazily sorted candidates, so that a vocabulary of 128 k costs a few passes that vectorize.
 *
 * Logits are counted into buckets by their distance from the largest. Buckets are loaded as far as a filter asks, a few
 * hundred candidates at a time, and a heap gives these up in order. The sorted part stands at the front; the heap
 * occupies [n_sorted, n_loaded) in reverse (its root is the last item), so that taking the root and appending it to the
 * sorted part are both local. Everything loaded comes before everything that is not: a bucket holds a range of
 * logits. */
#include "sample/candidates.h"

#include <math.h>
#include <string.h>

enum { LANES = 8, BLOCK = 512 /* weights at once */, LOAD = 256 /* candidates at once, at least */ };

static const float PER_UNIT = 32; /* buckets to one unit of logit */

/* Of a logit that is neither NaN nor -infinity. Grows as the logit falls; what is 32 or more below the largest shares
 * the last. */
static int32_t bucket_of(float logit, float largest)
{
    float distance = logit == largest ? 0 : (largest - logit) * PER_UNIT;
    return distance < WEFT__SAMPLE_BUCKETS - 1 ? (int32_t)distance : WEFT__SAMPLE_BUCKETS - 1;
}

/* ---- softmax weights ---- */

/* exp(x), x <= 0, to two units in the last place, by a polynomial: without branches, so that compilers vectorize it,
 * and the same on every machine. From -87 down it is 0, and so it is for NaN. e^f on [-ln(2)/2, ln(2)/2]: minimax
 * coefficients near 1/k!. */
static inline float exp_negative(float x)
{
    float bounded = x > -87.0f ? x : -87.0f;
    float t = bounded * 1.44269504f, n = (float)(int32_t)(t - 0.5f); /* nearest: t <= 0 */
    float f = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;     /* ln 2 in two parts */
    float p =
        1.0f +
        f * (1.0f + f * (0.5f + f * (0.16666667f + f * (0.041666530f + f * (0.0083333311f + f * 0.0013981999f)))));
    uint32_t bits = (uint32_t)((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    float y = p * power;
    return x > -87.0f ? y : 0.0f;
}

/* Weight of a logit against the largest; +infinity takes all. NaN weighs nothing. */
static inline float weight(float logit, float largest, float temperature)
{
    float x = (logit - largest) / temperature;
    return exp_negative(logit == largest ? 0.0f : x);
}

/* Sum of the weights of all in play; in a fixed order whatever is loaded. */
static double total_weight(const weft__sample_candidates *c, float temperature)
{
    double total = 0;
    if (c->n == c->n_sorted) {
        for (int32_t i = 0; i < c->n; i++) total += (double)weight(c->items[i].logit, c->largest, temperature);
        return total;
    }
    for (int32_t begin = 0; begin < c->n_logits; begin += BLOCK) {
        float w[BLOCK], largest = c->largest;
        int32_t n = c->n_logits - begin < BLOCK ? c->n_logits - begin : BLOCK;
        const float *logits = c->logits + begin;
        for (int32_t i = 0; i < n; i++) w[i] = weight(logits[i], largest, temperature);
        memset(w + n, 0, (size_t)(BLOCK - n) * sizeof *w);
        double lanes[LANES] = {0};
        for (int32_t i = 0; i < BLOCK; i += LANES)
            for (int k = 0; k < LANES; k++) lanes[k] += (double)w[i + k];
        for (int k = 0; k < LANES; k++) total += lanes[k];
    }
    return total;
}

float weft__sample_part(const float *logits, int32_t n, int32_t token)
{
    const weft__sample_candidates all = {
        .logits = logits, .n_logits = n, .largest = weft__sample_largest_logit(logits, n), .n = n, .n_sorted = -1};
    const double total = total_weight(&all, 1);
    return total > 0 ? (float)((double)weight(logits[token], all.largest, 1) / total) : 0;
}

/* ---- order ---- */

static int before(weft__sample_candidate a, weft__sample_candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Heap index h lies at items[n_loaded - 1 - h]. */
static void sift_down(weft__sample_candidates *c, int32_t size, int32_t h)
{
    weft__sample_candidate *last = c->items + c->n_loaded - 1;
    weft__sample_candidate moving = *(last - h);
    for (int64_t child; (child = 2 * (int64_t)h + 1) < size; h = (int32_t)child) {
        if (child + 1 < size && before(*(last - child - 1), *(last - child))) child++;
        if (!before(*(last - child), moving)) break;
        *(last - h) = *(last - child);
    }
    *(last - h) = moving;
}

float weft__sample_largest_logit(const float *logits, int32_t n)
{
    float lanes[LANES], largest = -INFINITY;
    int32_t i = 0;
    for (int k = 0; k < LANES; k++) lanes[k] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lanes[k] = logits[i + k] > lanes[k] ? logits[i + k] : lanes[k]; /* false for NaN */
    for (; i < n; i++) lanes[0] = logits[i] > lanes[0] ? logits[i] : lanes[0];
    for (int k = 0; k < LANES; k++) largest = lanes[k] > largest ? lanes[k] : largest;
    return largest;
}

/* Counts logits into buckets. The numbers of the buckets are computed by a loop that vectorizes; two tables in turn,
 * since those next to each other often share a bucket and would wait for one another. */
static void count_block(weft__sample_candidates *c, int32_t *other, const float *logits, int32_t n)
{
    int32_t bucket[BLOCK], n_out = 0;
    float largest = c->largest;
    for (int32_t i = 0; i < n; i++) {
        float scaled = (largest - logits[i]) * PER_UNIT, distance = logits[i] == largest ? 0.0f : scaled;
        bucket[i] =
            (int32_t)(distance < (float)(WEFT__SAMPLE_BUCKETS - 1) ? distance : (float)(WEFT__SAMPLE_BUCKETS - 1));
        n_out += !(logits[i] > -INFINITY); /* NaN too */
    }
    c->n += n - n_out;
    if (n_out > 0) {
        for (int32_t i = 0; i < n; i++) c->in_bucket[bucket[i]] += logits[i] > -INFINITY;
        return;
    }
    for (int32_t i = 0; i + 1 < n; i += 2) {
        c->in_bucket[bucket[i]]++;
        other[bucket[i + 1]]++;
    }
    if (n % 2) c->in_bucket[bucket[n - 1]]++;
}

void weft__sample_candidates_fill(weft__sample_candidates *c, weft__sample_candidate *items, const float *logits,
                                  int32_t n)
{
    int32_t other[WEFT__SAMPLE_BUCKETS] = {0};
    *c = (weft__sample_candidates){
        .logits = logits, .n_logits = n, .largest = weft__sample_largest_logit(logits, n), .items = items};
    for (int32_t i = 0; i < n; i += BLOCK) count_block(c, other, logits + i, n - i < BLOCK ? n - i : BLOCK);
    for (int32_t i = 0; i < WEFT__SAMPLE_BUCKETS; i++) c->in_bucket[i] += other[i];
}

/* The first of logits [from, n) that is at least low, or n. */
static int32_t next_above(const float *logits, int32_t from, int32_t n, float low)
{
    for (; from + LANES * 2 <= n; from += LANES * 2) {
        int any = 0;
        for (int k = 0; k < LANES * 2; k++) any |= logits[from + k] >= low;
        if (any) break;
    }
    while (from < n && !(logits[from] >= low)) from++;
    return from;
}

/* The heap is empty: loads the next buckets, as many as make LOAD candidates or as many as were loaded before. */
static void candidates_load(weft__sample_candidates *c)
{
    int32_t first = c->next_bucket, n = 0, wanted = c->n_loaded > LOAD ? c->n_loaded : LOAD;
    while (c->next_bucket < WEFT__SAMPLE_BUCKETS && n < wanted) n += c->in_bucket[c->next_bucket++];
    /* Only what lies between these is looked at closely: the bounds of the range, with room for rounding. */
    float low =
        c->next_bucket == WEFT__SAMPLE_BUCKETS ? -INFINITY : c->largest - ((float)c->next_bucket + 1) / PER_UNIT;
    weft__sample_candidate *end = c->items + c->n_loaded;
    for (int32_t i = 0; n > 0; i++) {
        i = next_above(c->logits, i, c->n_logits, low);
        if (c->logits[i] == -INFINITY) continue;
        int32_t bucket = bucket_of(c->logits[i], c->largest);
        if (bucket < first || bucket >= c->next_bucket) continue;
        *end++ = (weft__sample_candidate){c->logits[i], i};
        n--;
    }
    c->n_loaded = (int32_t)(end - c->items);
    int32_t size = c->n_loaded - c->n_sorted;
    for (int32_t h = size / 2 - 1; h >= 0; h--) sift_down(c, size, h);
}

weft__sample_candidate weft__sample_candidates_at(weft__sample_candidates *c, int32_t i)
{
    while (c->n_sorted <= i) {
        if (c->n_sorted == c->n_loaded) candidates_load(c);
        int32_t size = c->n_loaded - c->n_sorted;
        weft__sample_candidate *last = c->items + c->n_loaded - 1, *end = c->items + c->n_sorted;
        weft__sample_candidate root = *last;
        *last = *end; /* the last leaf takes the root's place, and its slot becomes the end of the sorted part */
        *end = root;
        c->n_sorted++;
        if (size > 2) sift_down(c, size - 1, 0);
    }
    return c->items[i];
}

/* ---- filters ---- */

/* After this only the k largest are left, all sorted. */
static void keep_first(weft__sample_candidates *c, int32_t k)
{
    weft__sample_candidates_at(c, k - 1);
    c->n = c->n_sorted = c->n_loaded = k;
}

void weft__sample_candidates_top_k(weft__sample_candidates *c, int32_t k)
{
    if (k > 0 && k < c->n) keep_first(c, k);
}

void weft__sample_candidates_top_p(weft__sample_candidates *c, float p)
{
    if (!(p < 1.0f) || c->n < 2) return;
    double total = total_weight(c, 1.0f), sum = 0;
    for (int32_t i = 0; i < c->n; i++) {
        sum += (double)weight(weft__sample_candidates_at(c, i).logit, c->largest, 1.0f);
        if (sum >= (double)p * total) {
            keep_first(c, i + 1);
            return;
        }
    }
}

void weft__sample_candidates_min_p(weft__sample_candidates *c, float p)
{
    if (!(p > 0.0f) || c->n < 2) return;
    int32_t k = 1;
    while (k < c->n && weight(weft__sample_candidates_at(c, k).logit, c->largest, 1.0f) >= p) k++;
    keep_first(c, k);
}

int32_t weft__sample_candidates_draw(weft__sample_candidates *c, float temperature, double u)
{
    double total = total_weight(c, temperature), sum = 0;
    for (int32_t i = 0; i < c->n; i++) {
        weft__sample_candidate item = weft__sample_candidates_at(c, i);
        sum += (double)weight(item.logit, c->largest, temperature);
        if (u * total < sum) return item.id;
    }
    return weft__sample_candidates_at(c, 0).id; /* rounding only: u is below 1 */
}
