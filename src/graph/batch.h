// SPDX-License-Identifier: Apache-2.0
/* batch.h: a step's rows, put together one by one: the columns that weft_rows points to, and room for hidden rows.
 *
 * A sequence is added first, then its rows, in order of position; both in the order in which the step has them. Nothing
 * is allocated after init. Owner: one thread at a time; what it holds is borrowed by the step that runs it. */
#ifndef WEFT_GRAPH_BATCH_H
#define WEFT_GRAPH_BATCH_H

#include "weft/graph.h"

typedef struct weft__graph_batch {
    weft_rows rows; /* of the step, as it stands */
    int32_t max_rows;
    float *hidden; /* [max_rows, width] for the rows of output [width, R], or NULL; the caller's to bind and read */
    /* The columns, [max_rows] each; rows points to them. */
    int32_t *token, *pos, *seq, *adapter;
    uint8_t *want;
    weft_seq_view *views;
    int32_t *pool;       /* of a sequence */
    int32_t *adapter_of; /* of a sequence: index into adapters, or -1 */
    weft_adapter **adapters;
} weft__graph_batch;

/* For steps of up to max_rows rows, which are 1 or more; width 0: without hidden rows. WEFT_NO_MEMORY, and then *b is
 * as after free. */
weft_status weft__graph_batch_init(weft__graph_batch *b, int32_t max_rows, int64_t width, weft_error *err);
/* Bytes that it takes then. */
uint64_t weft__graph_batch_bytes(int32_t max_rows, int64_t width);
/* A zeroed batch may be freed, too. */
void weft__graph_batch_free(weft__graph_batch *b);
/* No rows, no sequences, no adapters. */
void weft__graph_batch_clear(weft__graph_batch *b);
/* A sequence of at least one row that will follow: what the view points to outlives the step. adapter: of all its rows,
 * or NULL. Returns its index in the step. At most max_rows sequences. */
int32_t weft__graph_batch_add_sequence(weft__graph_batch *b, weft_seq_view view, weft_adapter *adapter);
/* The sequence that was added last has its pages in that one of n_pools pools. Of a step either every sequence is told,
 * with the same number, or none: then there is one pool. */
void weft__graph_batch_set_pool(weft__graph_batch *b, int32_t pool, int32_t n_pools);
/* A row of the sequence that was added last. want: bits of weft_want. At most max_rows rows. */
void weft__graph_batch_add_row(weft__graph_batch *b, int32_t token, int32_t pos, unsigned want);

#endif
