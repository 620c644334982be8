// SPDX-License-Identifier: Apache-2.0
/* prefix.c: the sorted prefix index (prefix.h). No state of its own. */
#include "text/tokenizer/prefix.h"

#include <string.h>

#include "base/alloc.h"

/* qsort has no argument for the strings, so a heap sort of our own: n log n, in place, no memory. */
static int compare(const weft__strings *st, int32_t a, int32_t b)
{
    size_t na = weft__strings_len(st, (size_t)a), nb = weft__strings_len(st, (size_t)b);
    int c = memcmp(weft__strings_data(st, (size_t)a), weft__strings_data(st, (size_t)b), na < nb ? na : nb);
    if (c) return c;
    if (na != nb) return na < nb ? -1 : 1;
    return a < b ? -1 : a > b;
}

static void sift_down(const weft__strings *st, int32_t *ids, size_t i, size_t n)
{
    int32_t moved = ids[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && compare(st, ids[child + 1], ids[child]) > 0) child++;
        if (compare(st, ids[child], moved) <= 0) break;
        ids[i] = ids[child];
    }
    ids[i] = moved;
}

static void sort(const weft__strings *st, int32_t *ids, size_t n)
{
    for (size_t i = n / 2; i-- > 0;) sift_down(st, ids, i, n);
    for (size_t last = n; last-- > 1;) {
        int32_t greatest = ids[0];
        ids[0] = ids[last];
        ids[last] = greatest;
        sift_down(st, ids, 0, last);
    }
}

static int equal(const weft__strings *st, int32_t a, int32_t b)
{
    size_t n = weft__strings_len(st, (size_t)a);
    return n == weft__strings_len(st, (size_t)b) &&
           !memcmp(weft__strings_data(st, (size_t)a), weft__strings_data(st, (size_t)b), n);
}

void weft__tok_prefix_build(weft__tok_prefix_index *index, const weft__strings *st, int32_t *ids, size_t n)
{
    sort(st, ids, n);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (!weft__strings_len(st, (size_t)ids[i])) continue;
        if (kept && equal(st, ids[kept - 1], ids[i])) continue;
        ids[kept++] = ids[i];
    }
    index->strings = st;
    index->ids = ids;
    index->n = kept;
    size_t at = 0;
    for (int c = 0; c < 256; c++) {
        index->root[c] = (uint32_t)at;
        while (at < kept && (unsigned char)*weft__strings_data(st, (size_t)ids[at]) == c) at++;
    }
    index->root[256] = (uint32_t)kept;
}

void weft__tok_prefix_free(weft__tok_prefix_index *index)
{
    weft__free(index->ids);
    memset(index, 0, sizeof *index);
}

/* The first of ids[lo..hi), all longer than depth or ending there, whose byte at depth is at least c; one that ends
 * there comes before all others. */
static size_t lower(const weft__tok_prefix_index *index, size_t lo, size_t hi, size_t depth, int c)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2, id = (size_t)index->ids[mid];
        int byte = weft__strings_len(index->strings, id) > depth
                       ? (unsigned char)weft__strings_data(index->strings, id)[depth]
                       : -1;
        if (byte < c) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

int weft__tok_prefix_step(const weft__tok_prefix_index *index, weft__tok_prefix_walk *walk, unsigned char c,
                          int32_t *id)
{
    *id = -1;
    if (walk->depth == 0) {
        walk->lo = index->root[c];
        walk->hi = index->root[c + 1];
    } else {
        walk->lo = lower(index, walk->lo, walk->hi, walk->depth, c);
        walk->hi = lower(index, walk->lo, walk->hi, walk->depth, c + 1);
    }
    if (walk->lo == walk->hi) return 0;
    walk->depth++;
    if (weft__strings_len(index->strings, (size_t)index->ids[walk->lo]) == walk->depth) *id = index->ids[walk->lo];
    return 1;
}

int32_t weft__tok_prefix_longest(const weft__tok_prefix_index *index, const char *s, size_t n, size_t *len)
{
    int32_t best = -1, id;
    if (!index->n) return -1;
    weft__tok_prefix_walk walk = weft__tok_prefix_start(index);
    for (size_t i = 0; i < n && weft__tok_prefix_step(index, &walk, (unsigned char)s[i], &id); i++) {
        if (id >= 0) {
            best = id;
            *len = i + 1;
        }
    }
    return best;
}
