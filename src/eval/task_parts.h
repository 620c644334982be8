// SPDX-License-Identifier: Apache-2.0
/* task_parts.h: the parts of a task file that are lists of their own (task_lists.c); v NULL: it is not there. What is
 * wrong is told to the reader. */
#ifndef WEFT_EVAL_TASK_PARTS_H
#define WEFT_EVAL_TASK_PARTS_H

#include "config/reader.h"
#include "eval/task.h"

void weft__eval_read_generation(weft__config_reader *r, const weft__config_node *v, weft__eval_task *t);
void weft__eval_read_filters(weft__config_reader *r, const weft__config_node *v, weft__eval_task *t);
void weft__eval_read_metrics(weft__config_reader *r, const weft__config_node *v, weft__eval_task *t);

#endif
