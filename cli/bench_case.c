// SPDX-License-Identifier: Apache-2.0
/* bench_case.c: the sessions that a measurement runs on (bench.h). */
#include <stdlib.h>

#include "bench.h"
#include "engine/fill.h"
#include "kv_type.h"

weft_status bench_case_open(bench_case *c, weft_model *model, const bench_options *o, int32_t n, int32_t n_ctx,
                            weft_error *err)
{
    weft_session_params params;
    weft_model_info info = {.size = sizeof info};
    *c = (bench_case){.model = model, .fill = o->fill};
    weft_status st = weft_model_describe(model, &info, err);
    if (st) return st;
    weft_session_params_default(&params);
    params.kv_dtype = kv_type_of(o->kv_type);
    params.n_ctx = n_ctx;
    c->n_vocab = info.n_vocab;
    c->tokens = malloc((size_t)n_ctx * sizeof *c->tokens);
    c->logits = malloc((size_t)n * (size_t)info.n_vocab * sizeof *c->logits);
    if (!c->tokens || !c->logits) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %d tokens", n_ctx);
    for (int32_t i = 0; i < n_ctx; i++) c->tokens[i] = (int32_t)((int64_t)i * 7919 % info.n_vocab);
    for (int32_t i = 0; i < LIST_MAX; i++) c->next[i] = i % info.n_vocab;
    if ((st = weft_session_new_group(model, &params, n, c->sessions, err))) return st;
    c->n = n;
    return WEFT_OK;
}

void bench_case_close(bench_case *c)
{
    for (int32_t i = 0; i < c->n; i++) weft_session_free(&c->sessions[i]);
    free(c->logits);
    free(c->tokens);
    *c = (bench_case){0};
}

weft_status bench_case_depth(bench_case *c, int32_t depth, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < c->n && !st; i++) {
        if (weft_session_trim(c->sessions[i], depth) == depth) continue;
        weft_session_trim(c->sessions[i], 0); /* too few, or a window has moved on */
        st = c->fill ? weft__engine_session_fill(c->sessions[i], c->tokens, depth, BENCH_FILL, err)
                     : weft_session_eval(c->sessions[i], c->tokens, depth, 0, NULL, err);
    }
    return st;
}

weft_status bench_case_prompt(bench_case *c, int32_t n, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < c->n && n > 0 && !st; i++)
        st = weft_session_eval(c->sessions[i], c->tokens, n, 0, c->logits + (size_t)i * (size_t)c->n_vocab, err);
    return st;
}

weft_status bench_case_generate(bench_case *c, int32_t n, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t g = 0; g < n && !st; g++) {
        st = c->n == 1 ? weft_session_eval(c->sessions[0], c->next, 1, 0, c->logits, err)
                       : weft_session_eval_group(c->sessions, c->next, c->n, c->logits, err);
        for (int32_t i = 0; i < c->n; i++) c->next[i] = (int32_t)(((int64_t)c->next[i] * 31 + 7) % c->n_vocab);
    }
    return st;
}
