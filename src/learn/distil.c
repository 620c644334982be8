// SPDX-License-Identifier: Apache-2.0
/* distil.c: see distil.h. */
#include "learn/distil.h"

#include "base/alloc.h"

enum { TOP = 64 /* tokens of a distribution */ };

struct weft__distil {
    weft__train_teacher *teacher;
    int32_t max_rows;
    int32_t *target; /* [max_rows] */
};

weft_status weft__distil_open(const char *teacher, const char *pupil, int32_t longest, int32_t max_rows,
                              int32_t n_threads, weft__distil **out, weft_error *err)
{
    weft__distil *d = *out = weft__alloc_zero(1, sizeof *d);
    if (d) d->target = weft__alloc_array((size_t)max_rows, sizeof *d->target);
    weft_status st = d && d->target ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a teacher");
    if (!st) st = weft__train_teacher_open(teacher, pupil, longest, max_rows, TOP, n_threads, &d->teacher, err);
    if (st) weft__distil_close(out);
    else d->max_rows = max_rows;
    return st;
}

void weft__distil_close(weft__distil **pd)
{
    weft__distil *d = pd ? *pd : NULL;
    if (!d) return;
    weft__train_teacher_close(&d->teacher);
    weft__free(d->target);
    weft__free(d);
    *pd = NULL;
}

/* Texts that are held to the base alone, of weight 0, are not asked for; they count as they do without a teacher. */
weft_status weft__distil_soften(void *distil, weft__train_batch *b, weft_error *err)
{
    weft__distil *d = distil;
    weft__train_batch asked = *b;
    int32_t n_asked = 0, n_held = 0;
    if (b->n_rows > d->max_rows)
        return weft_fail(err, WEFT_LIMIT, "a teacher is asked for %d rows, more than %d", b->n_rows, d->max_rows);
    for (int32_t r = 0; r < b->n_rows; r++) {
        const int learned = b->target[r] >= 0;
        d->target[r] = learned && b->weight[r] > 0 ? b->target[r] : -1;
        n_asked += d->target[r] >= 0;
        n_held += learned && b->weight[r] == 0;
    }
    asked.target = d->target;
    if (!n_asked) return WEFT_OK;
    const weft_status st = weft__train_teacher_tell(d->teacher, &asked, err);
    b->top = asked.top;
    b->weight = asked.weight;
    b->count = asked.count + n_held;
    return st;
}
