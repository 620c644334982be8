// SPDX-License-Identifier: Apache-2.0
/* eval_engine.c: see eval_engine.h. */
#include "eval_engine.h"

#include "terminal.h"

int eval_engine_check(const char *command, eval_engine_options *o)
{
    return rope_options_check(command, &o->rope) && adapter_options_parse(command, &o->adapters, o->adapter);
}

weft_status eval_engine_open(eval_engine *e, const eval_engine_options *o, const char *path, weft_error *err)
{
    weft_engine_params p;
    e->info.size = sizeof e->info;
    weft_status st = open_shown(path, o->threads, o->n_ctx, &o->rope.params, &e->model, err);
    if (!st) st = weft_model_describe(e->model, &e->info, err);
    if (st) return st;
    weft_engine_params_default(&p);
    e->n_ctx = o->n_ctx ? o->n_ctx : e->info.n_ctx_max < o->usual_ctx ? e->info.n_ctx_max : o->usual_ctx;
    p.kv_dtype = kv_type_of(o->kv_type);
    p.n_slots = o->slots ? o->slots : o->usual_slots;
    p.n_ctx = e->n_ctx;
    p.max_queue = o->queue;
    p.spec = o->spec;
    st = weft_engine_new(e->model, &p, &e->engine, err);
    for (int i = 0; i < o->adapters.n && !st; i++) {
        const struct adapter_option *one = &o->adapter[i];
        st = weft_engine_adapter_add(e->engine, one->name, one->path, one->scale, 0, err);
        e->adapters[i] = (weft_request_adapter){.name = one->name, .scale = one->scale};
    }
    return st;
}

void eval_engine_free(eval_engine *e)
{
    weft_engine_free(&e->engine);
    weft_model_close(&e->model);
}
