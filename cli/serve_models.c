// SPDX-License-Identifier: Apache-2.0
/* serve_models.c: see serve_models.h. */
#include "serve_models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "draft.h"
#include "known.h"
#include "kv_type.h"
#include "spec.h"
#include "prompt.h"
#include "provider.h"
#include "serve_config.h"
#include "threads.h"

/* -1: none of these. */
static int32_t swap_of(const char *name)
{
    static const char *const names[] = {"auto", "off", "always"};
    for (int32_t i = 0; i < 3; i++)
        if (!strcmp(name, names[i])) return i;
    return -1;
}

/* What a model and its engine are made with. */
static weft_status settle(struct serve_options *o, int32_t n_threads, weft_error *err)
{
    weft_engine_params *e = &o->engine;
    size_t n = 0;
    if (o->server.memory) { /* the server gives it more as there is room */
        e->kv_bytes = 1;
        if (!o->adapter_mb) o->adapter_mb = (int32_t)(o->server.memory >> 24) + 1;
    }
    if (strcmp(o->adapter_type, "auto")) e->adapter_dtype = (uint32_t)weft_dtype_from_name(o->adapter_type);
    e->adapter_bytes = (uint64_t)o->adapter_mb << 20;
    e->kv_dtype = kv_type_of(o->kv_type);
    e->kv_types = o->kv_list;
    e->n_kv_types = o->kv_types ? kv_types_of(o->kv_types, o->kv_list, WEFT_KV_TYPES_MAX - 1, NULL, 0) : 0;
    e->spec = spec_of(o->spec);
    e->store_bytes = (uint64_t)o->store_mb << 20;
    e->swap = swap_of(o->swap);
    e->swap_bytes = (uint64_t)o->swap_mb << 20;
    e->n_kv_tokens = o->kv_tokens;
    weft_model_params_default(&o->opened);
    o->opened.n_threads = n_threads;
    o->opened.n_ctx = e->n_ctx;
    o->opened.rope = o->rope.params;
    o->opened.provider = provider_given;
    o->opened.renew_plan = !o->check;
    o->opened.outline = e->rehearsal = o->check;
    return o->template_file ? read_text(o->template_file, &o->template, &n, err) : WEFT_OK;
}

/* The options that a model may have of its own, as they are written into `to` instead of `from`. */
static void table_of(const command_spec *spec, const struct serve_options *from, struct serve_options *to,
                     option_spec *out, size_t room)
{
    size_t n = 0;
    for (const option_spec *o = spec->options; o->name && n + 1 < room; o++) {
        if (!serve_config_of_a_model(o->name)) continue;
        out[n] = *o;
        out[n++].out = (char *)to + ((const char *)o->out - (const char *)from);
    }
    out[n] = (option_spec){0};
}

/* The line goes before a model, a model before the server. */
static weft_status read_options(const command_spec *spec, const struct serve_options *given, struct serve_options *own,
                                const weft__config_model *m, weft_error *err)
{
    option_spec table[32];
    const command_spec to = {.name = spec->name, .options = table};
    char why[300];
    table_of(spec, given, own, table, sizeof table / sizeof *table);
    for (size_t i = 0; i < m->options.n; i++) {
        const weft__config_setting *s = &m->options.items[i];
        if (options_given(spec, s->name) || options_set(&to, s->name, s->values, s->n, 0, why, sizeof why)) continue;
        return weft_fail(err, WEFT_ARGUMENT, "models.%s: %s", m->name, why);
    }
    if (!rope_options_check(spec->name, &own->rope))
        return weft_fail(err, WEFT_ARGUMENT, "models.%s: its rope options are not right", m->name);
    return WEFT_OK;
}

static weft_status read_adapters(struct serve_options *own, const weft__config_model *m, weft_error *err)
{
    own->own_adapters = weft__alloc_zero(m->n_adapters + 1, sizeof *own->own_adapters);
    if (!own->own_adapters) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the adapters of %s", m->name);
    for (size_t i = 0; i < m->n_adapters; i++) {
        const weft__config_adapter *a = &m->adapters[i];
        own->own_adapters[i] =
            (weft_server_adapter){.name = a->name, .path = a->path, .scale = isnan(a->scale) ? 1 : (float)a->scale};
    }
    return WEFT_OK;
}

/* "": none, whatever the command's own model has. draft: the model that guesses; NULL: none, as that of the command is
 * its own model's alone. */
static void open_with(weft_server_source *source, struct serve_options *o, const char *draft)
{
    source->draft = draft;
    source->model_params = &o->opened;
    source->engine_params = &o->engine;
    if (!draft) o->engine.spec = draft_spec(o->engine.spec, NULL);
    source->chat_template = o->template ? o->template : "";
    source->adapter_dir = o->server.adapter_dir ? o->server.adapter_dir : "";
    source->idle_unload_s = o->server.idle_unload_s;
}

static weft_status add_own(const command_spec *spec, struct serve_options *o, const struct serve_options *common,
                           const weft__config_model *m, weft_error *err)
{
    struct serve_options *own = weft__alloc(sizeof *own);
    if (!own) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the settings of %s", m->name);
    *own = *common;
    own->template = NULL;
    own->draft = NULL;
    own->next = o->next;
    o->next = own;
    weft_status st = read_options(spec, o, own, m, err);
    if (!st) st = settle(own, o->opened.n_threads, err);
    if (!st && own->draft && !strcmp(own->draft, "auto"))
        st = weft_fail(err, WEFT_ARGUMENT, "models.%s: draft: auto is for the command's own model; name one", m->name);
    if (!st && own->draft && !draft_check(spec->name, own->draft, own->spec))
        st = weft_fail(err, WEFT_ARGUMENT, "models.%s: its draft options are not right", m->name);
    if (!st) st = read_adapters(own, m, err);
    if (!st) st = served_models_add(&o->sources, m->name, m->path, m->pinned, err);
    if (st) return st;
    weft_server_source *source = &o->sources.items[o->sources.n - 1];
    open_with(source, own, own->draft ? known_model_of(own->draft) : NULL);
    source->adapters = own->own_adapters;
    source->n_adapters = (int32_t)m->n_adapters;
    return WEFT_OK;
}

weft_status serve_models_find(const command_spec *spec, struct serve_options *o, struct serve_options *common,
                              const char *path, weft_error *err)
{
    const int32_t n_threads = threads_to_use(o->threads);
    weft_status st = settle(o, n_threads, err);
    if (!st && !rope_options_check(spec->name, &common->rope))
        st = weft_fail(err, WEFT_ARGUMENT, "the server's rope options are not right");
    for (size_t i = 1; o->config && i < o->config->n_models && !st; i++) /* the first is the command's */
        st = add_own(spec, o, common, &o->config->models[i], err);
    const int32_t n_own = o->sources.n;
    if (!st) st = settle(common, n_threads, err);
    if (!st) st = served_models_find(&o->sources, &o->models, &o->folders, !path && !o->config, err);
    if (!st) st = served_models_pin(&o->sources, &o->pins, err);
    for (int32_t i = n_own; i < o->sources.n && !st; i++) open_with(&o->sources.items[i], common, NULL);
    o->opened.share_threads = o->sources.n > 0 || o->draft;
    o->server.chat_template = o->template;
    o->server.model_params = &o->opened;
    o->server.engine_params = &o->engine;
    o->server.sources = o->sources.items;
    o->server.n_sources = o->sources.n;
    return st;
}

/* As the server does when a request asks for it (src/server/loader.c). */
static weft_status rehearse_one(const weft_server_source *source, weft_error *err)
{
    char path[4096];
    weft_model *model = NULL;
    weft_engine *engine = NULL;
    weft_server *server = NULL;
    weft_server_params p;
    weft_server_params_default(&p);
    p.port = -1;
    p.chat_template = *source->chat_template ? source->chat_template : NULL;
    weft_status st = weft_resolve_model(source->path, path, sizeof path, err);
    if (!st) st = weft_model_open(path, source->model_params, &model, err);
    if (!st) st = weft_engine_new(model, source->engine_params, &engine, err);
    for (int32_t i = 0; i < source->n_adapters && !st; i++)
        st = weft_engine_adapter_add(engine, source->adapters[i].name, source->adapters[i].path,
                                     source->adapters[i].scale, 0, err);
    if (!st) st = weft_server_new(model, engine, &p, &server, err);
    weft_server_free(&server);
    weft_engine_free(&engine);
    weft_model_close(&model);
    return st;
}

weft_status serve_models_rehearse(const struct serve_options *o, weft_error *err)
{
    weft_status st = WEFT_OK;
    const int32_t n_named = (o->config && o->config->n_models ? (int32_t)o->config->n_models - 1 : 0) + o->models.n;
    for (int32_t i = 0; i < n_named && i < o->sources.n && !st; i++) {
        const weft_server_source *s = &o->sources.items[i];
        if ((st = rehearse_one(s, err))) weft_fail_within(err, st, "the model '%s'", s->name);
    }
    return st;
}

void serve_models_free(struct serve_options *o, struct serve_options *common)
{
    for (struct serve_options *own = o->next, *next; own; own = next) {
        next = own->next;
        free(own->template);
        weft__free(own->own_adapters);
        weft__free(own);
    }
    o->next = NULL;
    free(o->template);
    free(common->template);
    o->template = common->template = NULL;
    served_models_free(&o->sources);
}
