// SPDX-License-Identifier: Apache-2.0
/* public_task.c: tasks as programs have them (weft/eval.h); task.c reads them. */
#include <math.h>
#include <string.h>

#include "base/params.h"
#include "eval/task.h"

void(weft_task_params_default)(weft_task_params *p)
{
    *p = (weft_task_params){.size = sizeof *p, .n_fewshot = -1, .temperature = -1};
}

void weft_task_params_init(weft_task_params *params, uint32_t size)
{
    weft_task_params own;
    (weft_task_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_task_params), params, size, &own);
}

weft_status weft_task_open(const char *path, const weft_task_params *params, weft_task **out, weft_error *err)
{
    weft_task_params p;
    weft_task_params_default(&p);
    *out = NULL;
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_task_params), &p, params, err);
    if (st) return st;
    const char *wrong = p.n_fewshot < -1                                                         ? "n_fewshot"
                        : p.repeats < 0                                                          ? "repeats"
                        : p.max_tokens < 0                                                       ? "max_tokens"
                        : !isfinite(p.temperature) || (p.temperature < 0 && p.temperature != -1) ? "temperature"
                                                                                                 : NULL;
    if (wrong) return weft_fail(err, WEFT_ARGUMENT, "weft_task_open: %s is out of range", wrong);
    weft__eval_task_options to = {.form = p.form,
                                  .data = p.data,
                                  .n_fewshot = p.n_fewshot,
                                  .repeats = p.repeats,
                                  .max_tokens = p.max_tokens,
                                  .temperature = p.temperature};
    while (p.data && p.data[to.n_data]) to.n_data++;
    return weft__eval_task_open(path, &to, out, err);
}

void weft_task_close(weft_task **task)
{
    if (task) weft__eval_task_free(task);
}

weft_status weft_task_describe(const weft_task *t, weft_task_info *out, weft_error *err)
{
    const weft_task_info own = {.size = sizeof own,
                                .output = (int32_t)t->output,
                                .name = t->name,
                                .version = t->version,
                                .n_documents = (int64_t)t->docs.n,
                                .n_fewshot = t->n_fewshot,
                                .repeats = t->repeats,
                                .max_tokens = t->generation.max_tokens,
                                .judged_elsewhere = t->predictions != WEFT__EVAL_NO_PREDICTIONS};
    return weft__params_write(WEFT__PARAMS_TYPE(weft_task_info), out, &own, err);
}

/* What the header calls them is what they are here. */
_Static_assert((int)WEFT_TASK_GENERATE == (int)WEFT__EVAL_GENERATE &&
                   (int)WEFT_TASK_LOGLIKELIHOOD == (int)WEFT__EVAL_LOGLIKELIHOOD &&
                   (int)WEFT_TASK_ROLLING == (int)WEFT__EVAL_ROLLING && (int)WEFT_TASK_CHOICE == (int)WEFT__EVAL_CHOICE,
               "weft_task_output and weft__eval_output are the same");
