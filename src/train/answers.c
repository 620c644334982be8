// SPDX-License-Identifier: Apache-2.0
/* answers.c: see answers.h. */
#include "train/answers.h"

#include <string.h>

#include "base/alloc.h"

static weft_status answers_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for answers");
}

/* ---- those of records ---- */

/* Clears the marks of a batch's texts, the first of which is text `at`, where a token is not the likeliest. */
static void mark_wrong(const weft__train_batch *b, const int32_t *likeliest, size_t at, uint8_t *right)
{
    for (int32_t r = 0; r < b->n_rows; r++)
        if (b->target[r] >= 0 && b->target[r] != likeliest[r]) right[at + (size_t)b->segment[r]] = 0;
}

weft_status weft__train_answers_of(weft__trainer *t, weft__dataset *d, uint8_t *right, int64_t *n, weft_error *err)
{
    const size_t n_texts = weft__dataset_n_texts(d);
    weft__train_batch b;
    int32_t *likeliest = NULL;
    size_t room = 0;
    weft_status st = weft__dataset_seek(d, (weft__dataset_cursor){0, 0}, err);
    memset(right, 1, n_texts);
    for (size_t at = 0; !st && weft__dataset_position(d).epoch == 0;) {
        st = weft__dataset_next(d, &b, err);
        if (!st) st = weft__trainer_loss(t, &b, 1, NULL, NULL, err);
        if (!st && !weft__grow(&likeliest, &room, (size_t)b.n_rows, sizeof *likeliest)) st = answers_no_memory(err);
        if (st) break;
        weft__trainer_likeliest(t, likeliest);
        mark_wrong(&b, likeliest, at, right);
        at += (size_t)b.segment[b.n_rows - 1] + 1;
    }
    *n = 0;
    for (size_t i = 0; i < n_texts; i++) *n += right[i];
    weft__free(likeliest);
    weft_error why;
    if (weft__dataset_seek(d, (weft__dataset_cursor){0, 0}, &why) && !st)
        st = weft_fail(err, (weft_status)why.status, "%s", why.message);
    return st;
}

/* ---- going on ---- */

/* Columns of a batch of n rows, of which the last alone is asked for. */
struct asked {
    int32_t *segment, *target, *likeliest;
    size_t room;
};

static int ask(struct asked *a, size_t n)
{
    size_t rooms[3] = {a->room, a->room, a->room};
    if (!weft__grow(&a->segment, &rooms[0], n, sizeof *a->segment) ||
        !weft__grow(&a->target, &rooms[1], n, sizeof *a->target) ||
        !weft__grow(&a->likeliest, &rooms[2], n, sizeof *a->likeliest))
        return 0;
    a->room = n;
    for (size_t i = 0; i < n; i++) {
        a->segment[i] = 0;
        a->target[i] = i + 1 < n ? -1 : 0; /* any: which is the likeliest does not depend on it */
    }
    return 1;
}

weft_status weft__train_go_on(weft__trainer *t, const weft__tok *tok, weft__tok_ids *ids, int32_t n_more,
                              weft_error *err)
{
    weft__trainer_info info;
    struct asked a = {0};
    weft_status st = WEFT_OK;
    weft__trainer_describe(t, &info);
    if (!ids->n || ids->n > (size_t)info.n_ctx)
        st = weft_fail(err, WEFT_ARGUMENT, "a prompt of %zu tokens; texts of this training have 1 to %d", ids->n,
                       info.n_ctx);
    for (int32_t i = 0; !st && i < n_more && ids->n <= (size_t)info.n_ctx; i++) {
        if (!ask(&a, ids->n) || !weft__grow(&ids->data, &ids->capacity, ids->n + 1, sizeof *ids->data))
            st = answers_no_memory(err);
        const weft__train_batch b = {(int32_t)ids->n, ids->data, a.segment, a.target, NULL};
        if (!st) st = weft__trainer_loss(t, &b, 1, NULL, NULL, err);
        if (st) break;
        weft__trainer_likeliest(t, a.likeliest);
        const int32_t next = a.likeliest[ids->n - 1];
        if (weft__tok_is_end(tok, next)) break;
        ids->data[ids->n++] = next;
    }
    weft__free(a.likeliest);
    weft__free(a.target);
    weft__free(a.segment);
    return st;
}
