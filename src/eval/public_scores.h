// SPDX-License-Identifier: Apache-2.0
/* public_scores.h: what stands behind a weft_scores: a report, with what its texts need. One thread per object. */
#ifndef WEFT_EVAL_PUBLIC_SCORES_H
#define WEFT_EVAL_PUBLIC_SCORES_H

#include "eval/report.h"
#include "weft/eval.h"

struct weft_scores {
    weft__eval_report report;
    weft__strbuf text; /* what weft_scores_write gave last */
    char model[128];
};

/* An empty one for a run of the task over the model of that name. */
weft_status weft__eval_scores_new(const weft_task *task, const char *model, const weft_eval_params *params,
                                  weft_scores **out, weft_error *err);

#endif
