// SPDX-License-Identifier: Apache-2.0
/* public_eval.c: tasks over an engine, and their prompts to look at, as programs have them (weft/eval.h); run.c does
 * the work. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/params.h"
#include "eval/eval.h"
#include "eval/public_scores.h"
#include "eval/tokens.h"

void(weft_eval_params_default)(weft_eval_params *p)
{
    *p = (weft_eval_params){.size = sizeof *p, .seed = 1234, .fewshot_seed = 1234};
}

void weft_eval_params_init(weft_eval_params *params, uint32_t size)
{
    weft_eval_params own;
    (weft_eval_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_eval_params), params, size, &own);
}

/* What a call has beside its parameters; released by asking_free. */
typedef struct asking {
    weft_eval_params p;
    weft_engine *engine;
    weft_model *model;
    weft_engine_lease *lease;
    weft_chat *chat;
    weft__strbuf adapters_id;
    weft_model_info info;
} asking;

static void asking_free(asking *a)
{
    weft_chat_close(&a->chat);
    if (a->lease) weft_engine_lease_free(a->engine, &a->lease);
    weft__strbuf_free(&a->adapters_id);
}

/* "ID:SCALE,ID:SCALE": the content of the stack, whatever it is called. */
static weft_status name_adapters(asking *a, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < a->p.n_adapters && !st; i++) {
        const weft_request_adapter *one = &a->p.adapters[i];
        weft_engine_adapter is = {.size = sizeof is};
        if (one->name) st = weft_engine_adapter_find(a->engine, one->name, &is, err);
        else if (weft_engine_adapters(a->engine, one->index, &is, 1) < 1 || is.index != one->index)
            st = weft_fail(err, WEFT_NOT_FOUND, "there is no adapter of index %d", one->index);
        weft__strbuf_printf(&a->adapters_id, "%s%s:%.9g", i ? "," : "", is.id,
                            (double)(isnan(one->scale) ? is.scale : one->scale));
    }
    if (!st && a->adapters_id.failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the names of adapters");
    return st;
}

static weft_status asking_begin(asking *a, weft_engine *engine, const weft_task *task, const weft_eval_params *params,
                                weft_error *err)
{
    weft_eval_params_default(&a->p);
    a->engine = engine;
    a->model = weft_engine_model(engine);
    a->info.size = sizeof a->info;
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_eval_params), &a->p, params, err);
    if (st) return st;
    const char *wrong = a->p.limit < 0                                               ? "limit is negative"
                        : a->p.n_adapters < 0 || (a->p.n_adapters && !a->p.adapters) ? "n_adapters is wrong"
                        : a->p.multiturn && !a->p.chat                               ? "multiturn is about chat"
                        : a->p.predictions && !task->predictions ? "predictions are of tasks that are judged elsewhere"
                                                                 : NULL;
    if (wrong) return weft_fail(err, WEFT_ARGUMENT, "weft_eval: %s", wrong);
    st = weft_model_describe(a->model, &a->info, err);
    /* Taken once: what the names stand for may change while the task runs. */
    if (!st && a->p.n_adapters) st = weft_engine_lease_new(engine, a->p.adapters, a->p.n_adapters, &a->lease, err);
    if (!st) st = name_adapters(a, err);
    if (!st && a->p.chat) st = weft_chat_open(a->model, NULL, 0, &a->chat, err);
    return st;
}

static weft__eval_params params_of(const asking *a)
{
    const weft_eval_params *p = &a->p;
    weft__eval_params to;
    weft__eval_params_default(&to);
    to.model = a->model;
    to.engine = a->engine;
    to.lease = a->lease;
    to.adapters_id = a->adapters_id.data ? a->adapters_id.data : "";
    to.style = (weft__eval_style){a->chat, p->multiturn, p->system};
    to.no_bos = p->no_bos;
    to.limit = (size_t)p->limit;
    to.seed = p->seed;
    to.fewshot_seed = p->fewshot_seed;
    to.samples = p->samples;
    to.predictions = p->predictions;
    to.label = a->info.name;
    to.progress = p->progress;
    to.progress_arg = p->progress_arg;
    return to;
}

weft_status weft_eval_task(weft_engine *engine, const weft_task *task, const weft_eval_params *params,
                           weft_scores **out, weft_error *err)
{
    asking a = {0};
    *out = NULL;
    weft_status st = asking_begin(&a, engine, task, params, err);
    if (!st) st = weft__eval_scores_new(task, a.info.name, &a.p, out, err);
    if (!st) {
        const weft__eval_params to = params_of(&a);
        st = weft__eval_run(task, &to, &(*out)->report, err);
    }
    asking_free(&a);
    if (st) weft_scores_free(out);
    return st;
}

/* The prompts of document i; *ended: no more are wanted. */
static weft_status show_document(const asking *a, const weft__eval_shots *shots, const weft__eval_tokens *tokens,
                                 size_t i, weft_eval_show_fn show, void *arg, int *ended, weft_error *err)
{
    const weft__eval_style style = {a->chat, a->p.multiturn, a->p.system};
    weft__eval_asks asks = {0};
    weft__eval_passes passes = {0};
    weft_status st = weft__eval_ask_make(shots, &style, i, &asks, err);
    if (!st) st = weft__eval_tokens_of(tokens, shots->task, &asks, &passes, err);
    for (size_t k = 0; !st && !*ended && k < passes.n; k++) {
        const weft__eval_pass *pass = &passes.items[k];
        const weft__eval_ask *ask = &asks.items[pass->ask];
        const weft_eval_shown shown = {.size = sizeof shown,
                                       .n_tokens = pass->n,
                                       .n_scored = pass->to - pass->from,
                                       .document = (int64_t)i,
                                       .context = ask->context.data ? ask->context.data : "",
                                       .n_context = ask->context.len,
                                       .continuation = ask->continuation.data ? ask->continuation.data : "",
                                       .n_continuation = ask->continuation.len};
        *ended = show(arg, &shown);
    }
    weft__eval_passes_free(&passes);
    weft__eval_asks_free(&asks);
    return st;
}

weft_status weft_eval_show(weft_engine *engine, const weft_task *task, const weft_eval_params *params, int64_t n,
                           weft_eval_show_fn show, void *arg, weft_error *err)
{
    asking a = {0};
    weft__eval_shots shots = {0};
    weft__eval_tokens tokens;
    weft_engine_stats stats = {.size = sizeof stats};
    int ended = 0;
    weft_engine_get_stats(engine, &stats);
    weft_status st = asking_begin(&a, engine, task, params, err);
    if (!st) st = weft__eval_tokens_begin(&tokens, a.model, stats.n_ctx, a.p.no_bos, err);
    if (!st) st = weft__eval_shots_begin(&shots, task, a.p.fewshot_seed, err);
    for (size_t i = 0; !st && !ended && i < task->docs.n && (int64_t)i < n; i++) {
        st = weft__eval_shots_next(&shots, i, err);
        if (!st) st = show_document(&a, &shots, &tokens, i, show, arg, &ended, err);
    }
    weft__eval_shots_free(&shots);
    asking_free(&a);
    return st;
}
