// SPDX-License-Identifier: Apache-2.0
/* params.h: what learns, by name; for the files of this room. */
#ifndef WEFT_TRAIN_PARAMS_H
#define WEFT_TRAIN_PARAMS_H

#include "train/parts.h"

/* Index of a parameter, or -1. */
int32_t weft__train_param_find(const weft__trainer *t, const char *name);
/* The row of its file's tensor with which weight w begins. */
int64_t weft__train_param_row(const weft__trainer *t, weft_weight_id w);
/* The pair on the file's tensor `name`, or on the matrix of a node; -1: none. */
int32_t weft__train_lora_find(const weft__trainer *t, const char *name);
int32_t weft__train_lora_of(const weft__trainer *t, const weft_node *node);

#endif
