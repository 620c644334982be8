/* candidates.c: lazily sorted candidates: a heap gives up its largest only as far as a filter asks, so that a vocabulary of 128 k
 * costs one pass and a few dozen sift-downs.
 *
 * The sorted part stands at the front; the heap occupies [n_sorted, n) in reverse (its root is the last item), so that taking the
 * root and appending it to the sorted part are both local. */
#include "sample/candidates.h"

#include <math.h>

static int before(weft__candidate a, weft__candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Heap index h lies at items[n - 1 - h]. */
static void sift_down(weft__candidates *c, int32_t size, int32_t h)
{
    weft__candidate *last = c->items + c->n - 1;
    weft__candidate moving = *(last - h);
    for (int64_t child; (child = 2 * (int64_t)h + 1) < size; h = (int32_t)child) {
        if (child + 1 < size && before(*(last - child - 1), *(last - child))) child++;
        if (!before(*(last - child), moving)) break;
        *(last - h) = *(last - child);
    }
    *(last - h) = moving;
}

void weft__candidates_fill(weft__candidates *c, weft__candidate *items, const float *logits, int32_t n)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++)
        if (logits[i] > -INFINITY) items[kept++] = (weft__candidate){logits[i], i}; /* false for NaN too */
    *c = (weft__candidates){items, kept, 0};
    for (int32_t h = kept / 2 - 1; h >= 0; h--) sift_down(c, kept, h);
}

weft__candidate weft__candidates_at(weft__candidates *c, int32_t i)
{
    while (c->n_sorted <= i) {
        int32_t size = c->n - c->n_sorted;
        weft__candidate *last = c->items + c->n - 1, *end = c->items + c->n_sorted;
        weft__candidate root = *last;
        *last = *end; /* the last leaf takes the root's place, and its slot becomes the end of the sorted part */
        *end = root;
        c->n_sorted++;
        if (size > 2) sift_down(c, size - 1, 0);
    }
    return c->items[i];
}

/* After this only the k largest are left, all sorted. */
static void keep_first(weft__candidates *c, int32_t k)
{
    weft__candidates_at(c, k - 1);
    c->n = c->n_sorted = k;
}

void weft__candidates_top_k(weft__candidates *c, int32_t k)
{
    if (k > 0 && k < c->n) keep_first(c, k);
}

/* Weight of a logit against the largest, for softmax sums; +infinity takes all. */
static double weight(float logit, float largest, float temperature)
{
    return logit == largest ? 1.0 : exp(((double)logit - largest) / temperature);
}

void weft__candidates_top_p(weft__candidates *c, float p)
{
    if (!(p < 1.0f) || c->n < 2) return;
    float largest = weft__candidates_at(c, 0).logit;
    double total = 0, sum = 0;
    for (int32_t i = 0; i < c->n; i++) total += weight(c->items[i].logit, largest, 1.0f);
    for (int32_t i = 0; i < c->n; i++) {
        sum += weight(weft__candidates_at(c, i).logit, largest, 1.0f);
        if (sum >= p * total) {
            keep_first(c, i + 1);
            return;
        }
    }
}

void weft__candidates_min_p(weft__candidates *c, float p)
{
    if (!(p > 0.0f) || c->n < 2) return;
    float largest = weft__candidates_at(c, 0).logit;
    int32_t k = 1;
    while (k < c->n && weight(weft__candidates_at(c, k).logit, largest, 1.0f) >= p) k++;
    keep_first(c, k);
}

int32_t weft__candidates_draw(weft__candidates *c, float temperature, double u)
{
    float largest = weft__candidates_at(c, 0).logit;
    double total = 0, sum = 0;
    for (int32_t i = 0; i < c->n; i++) total += weight(c->items[i].logit, largest, temperature);
    for (int32_t i = 0; i < c->n; i++) {
        weft__candidate item = weft__candidates_at(c, i);
        sum += weight(item.logit, largest, temperature);
        if (u * total < sum) return item.id;
    }
    return weft__candidates_at(c, 0).id; /* rounding only: u is below 1 */
}
