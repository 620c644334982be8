// SPDX-License-Identifier: Apache-2.0
/* data_parts.h: what data.c and data_read.c share: the dataset itself. */
#ifndef WEFT_TRAIN_DATA_PARTS_H
#define WEFT_TRAIN_DATA_PARTS_H

#include "train/data.h"

/* Row i sees token at + i and predicts token at + i + 1. Segments of one long text share the token between them. */
typedef struct weft__dataset_segment {
    size_t at;
    uint32_t n_rows;
    float weight; /* of its record */
    float reward; /* rewards: of its record */
} weft__dataset_segment;

struct weft__dataset {
    const weft__train_renderer *renderer;
    weft__dataset_options options;
    weft__dataset_totals counts;
    weft__train_rendered all; /* the tokens of all documents, one behind the other */
    weft__dataset_segment *segments;
    size_t n_segments, segments_capacity;
    size_t *groups; /* contrasts: [n_groups] the first segment of each record */
    size_t n_groups, groups_capacity;
    size_t n_own; /* segments that are no neighbours, where `mixes` */
    int mixes;
    double ratio;
    weft__dataset_totals own; /* counts when neighbours began */
    float record_weight;      /* of the record that is being read */
    float record_reward;
    int counts_rows; /* weft__dataset_weigh was called */
    int weighted;    /* some segment has another weight than 1 */
    weft__dataset_cursor position;
    uint32_t *order; /* [ordered] of epoch `ordered_epoch` */
    uint32_t *turns; /* [neighbours] in the order of their turns */
    size_t ordered;
    uint64_t ordered_epoch;
    int32_t *token, *segment, *target, *group; /* [max_rows] the batch that was handed out */
    float *weight;                             /* [max_rows] */
};

/* Makes a segment of tokens [at, at + n), unless nothing of it is learned. */
weft_status weft__dataset_put_segment(weft__dataset *d, size_t at, size_t n, weft_error *err);

#endif
