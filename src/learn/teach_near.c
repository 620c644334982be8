// SPDX-License-Identifier: Apache-2.0
/* teach_near.c: see teach_near.h. */
#include "learn/teach_near.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* A prompt's tokens in order. */
typedef struct bag {
    int32_t *id; /* [n] */
    int32_t n;
} bag;

typedef struct likeness {
    double share;
    size_t of;
} likeness;

static int by_id(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int by_share(const void *a, const void *b)
{
    const likeness *x = a, *y = b;
    if (x->share != y->share) return x->share > y->share ? -1 : 1;
    return (x->of > y->of) - (x->of < y->of);
}

static int open_bag(bag *b, const weft__teach_text *x)
{
    b->n = x->n_prompt;
    b->id = weft__alloc_array((size_t)b->n + 1, sizeof *b->id);
    if (!b->id) return 0;
    if (b->n) memcpy(b->id, x->ids, (size_t)b->n * sizeof *b->id);
    if (b->n > 1) qsort(b->id, (size_t)b->n, sizeof *b->id, by_id);
    return 1;
}

static double share_of(const bag *a, const bag *b)
{
    int32_t i = 0, j = 0, common = 0;
    while (i < a->n && j < b->n) {
        const int32_t x = a->id[i], y = b->id[j];
        common += x == y;
        i += x <= y;
        j += y <= x;
    }
    return a->n + b->n ? 2.0 * common / (a->n + b->n) : 0;
}

weft_status weft__teach_nearest(const weft__teach_text *taught, size_t m, const weft__teach_text *texts, size_t n,
                                size_t most, uint8_t *near, weft_error *err)
{
    bag *bags = weft__alloc_zero(m + 1, sizeof *bags), one = {0};
    likeness *all = weft__alloc_array(n + 1, sizeof *all);
    int ok = bags && all;
    for (size_t i = 0; ok && i < m; i++) ok = open_bag(&bags[i], &taught[i]);
    for (size_t i = 0; ok && i < n; i++) {
        all[i] = (likeness){0, i};
        ok = open_bag(&one, &texts[i]);
        for (size_t k = 0; ok && k < m; k++) {
            const double share = share_of(&bags[k], &one);
            if (share > all[i].share) all[i].share = share;
        }
        weft__free(one.id);
    }
    if (ok && n > 1) qsort(all, n, sizeof *all, by_share);
    for (size_t i = 0; ok && i < n && i < most; i++) near[all[i].of] = 1;
    for (size_t i = 0; bags && i < m; i++) weft__free(bags[i].id);
    weft__free(bags);
    weft__free(all);
    return ok ? WEFT_OK : weft__teach_no_memory(err);
}
