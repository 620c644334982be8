// SPDX-License-Identifier: Apache-2.0
/* plan_parts.h: what plan_file.c and plan_write.c share: the header and the names of the keys; private to this room. */
#ifndef WEFT_FORMAT_PLAN_PARTS_H
#define WEFT_FORMAT_PLAN_PARTS_H

#include "format/plan_file.h"

#define WEFT__PLAN_FILE_MAGIC "WEFTPLAN"
#define WEFT__PLAN_FILE_ORDER 0x01020304u

enum {
    WEFT__PLAN_FILE_DATA_ALIGN = 4096,
    WEFT__PLAN_FILE_IMAGE_ALIGN = 2 << 20,
    WEFT__PLAN_FILE_TENSOR_ALIGN = 64,
    WEFT__PLAN_FILE_NUMBERS =
        7 /* of a tensor: type, number of dimensions, the four, place in the data (UINT64_MAX: none) */
};

typedef struct weft__plan_file_header {
    char magic[8];
    uint32_t version, order;
    uint64_t meta_bytes, data_bytes, image_bytes;
    uint64_t file_bytes; /* of the whole, which follows from the others */
    uint64_t meta_hash, data_hash, image_hash;
    uint64_t reserved[6]; /* 0 */
    uint64_t hash;        /* of the header before it */
} weft__plan_file_header;

WEFT_STATIC_ASSERT(sizeof(weft__plan_file_header) == 128, "the header of a plan file");

#define WEFT__PLAN_FILE_PROVIDER "weft.plan.provider"
#define WEFT__PLAN_FILE_MADE_BY "weft.plan.made_by"
#define WEFT__PLAN_FILE_LAYOUT "weft.plan.layout"
#define WEFT__PLAN_FILE_WEIGHTS "weft.plan.weights"
#define WEFT__PLAN_FILE_OFFSETS "weft.plan.image_offsets"
#define WEFT__PLAN_FILE_NAMES "weft.plan.tensor_names"
#define WEFT__PLAN_FILE_TENSORS "weft.plan.tensors"
#define WEFT__PLAN_FILE_SOURCE "weft.plan.source"
#define WEFT__PLAN_FILE_SOURCE_BYTES "weft.plan.source_bytes"
#define WEFT__PLAN_FILE_SOURCE_TIME "weft.plan.source_time_ns"
#define WEFT__PLAN_FILE_SOURCE_PRE "weft.plan.source_pre_tokenizer"
#define WEFT__PLAN_FILE_KEEPS "weft.plan.keeps_weights"

/* Where the data and the image begin, and the end, of a header's sizes. 0: too large to be counted. */
int weft__plan_file_places(const weft__plan_file_header *h, uint64_t *data, uint64_t *image, uint64_t *end);

#endif
