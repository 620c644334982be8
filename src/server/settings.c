// SPDX-License-Identifier: Apache-2.0
/* settings.c: what each model of a server is opened with: the server's settings, or its own (server.h). Constant once
 * they are read, at the start. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/params.h"
#include "server/models.h"

/* Of the memory, for the adapters of each model where nothing else is said. */
enum { ADAPTERS_PART = 16 };

static weft_status no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the server's settings");
}

static weft_status read_params(weft__server_settings *s, const weft_model_params *model,
                               const weft_engine_params *engine, weft_error *err)
{
    weft_status st = WEFT_OK;
    weft_model_params_default(&s->model);
    weft_engine_params_default(&s->engine);
    if (model) st = weft__params_read(WEFT__PARAMS_TYPE(weft_model_params), &s->model, model, err);
    if (!st && engine) st = weft__params_read(WEFT__PARAMS_TYPE(weft_engine_params), &s->engine, engine, err);
    return st;
}

/* A text of its own, or else the server's; "": none. */
static const char *choose_text(const char *own, const char *common)
{
    const char *text = own ? own : common;
    return text && *text ? text : NULL;
}

static weft_status find_folder(const char *path, char **out, weft_error *err)
{
    char real[PATH_MAX];
    if (!realpath(path, real)) return weft_fail(err, WEFT_IO, "--adapter-dir %s: %s", path, strerror(errno));
    *out = weft__strdup(real);
    return *out ? WEFT_OK : no_memory(err);
}

static weft_status copy_adapters(weft__server_settings *s, const weft_server_source *source, weft_error *err)
{
    if (source->n_adapters <= 0) return WEFT_OK;
    s->adapters = weft__alloc_zero((size_t)source->n_adapters, sizeof *s->adapters);
    if (!s->adapters) return no_memory(err);
    s->n_adapters = (size_t)source->n_adapters;
    for (size_t i = 0; i < s->n_adapters; i++) {
        const weft_server_adapter *a = &source->adapters[i];
        s->adapters[i].scale = a->scale;
        s->adapters[i].name = weft__strdup(a->name);
        s->adapters[i].path = weft__strdup(a->path);
        if (!s->adapters[i].name || !s->adapters[i].path) return no_memory(err);
    }
    return WEFT_OK;
}

weft_status weft__server_settings_read(weft__server_model *m, const weft_server_params *p,
                                       const weft_server_source *source, weft_error *err)
{
    static const weft_server_source none = {0};
    weft__server_settings *s = &m->settings;
    if (!source) source = &none;
    if (source->idle_unload_s < 0 || source->idle_unload_s > 31536000)
        return weft_fail(err, WEFT_ARGUMENT, "%s: idle_unload_s %d: must be from 0 (the server's) to 31536000",
                         source->name, source->idle_unload_s);
    weft_status st = read_params(s, source->model_params ? source->model_params : p->model_params,
                                 source->engine_params ? source->engine_params : p->engine_params, err);
    const char *template = choose_text(source->chat_template, p->chat_template);
    const char *folder = choose_text(source->adapter_dir, p->adapter_dir);
    if (!st && template && !(s->chat_template = weft__strdup(template))) st = no_memory(err);
    if (!st && source->draft && !(s->draft = weft__strdup(source->draft))) st = no_memory(err);
    if (!st && folder) st = find_folder(folder, &s->adapter_dir, err);
    if (!st) st = copy_adapters(s, source, err);
    if (p->memory && !s->engine.adapter_bytes) s->engine.adapter_bytes = p->memory / ADAPTERS_PART;
    m->idle_ns = (uint64_t)(source->idle_unload_s ? source->idle_unload_s : p->idle_unload_s) * 1000000000u;
    m->keep_ns = m->idle_ns ? m->idle_ns : UINT64_MAX;
    return st;
}

void weft__server_settings_free(weft__server_settings *s)
{
    for (size_t i = 0; i < s->n_adapters; i++) {
        weft__free(s->adapters[i].name);
        weft__free(s->adapters[i].path);
    }
    weft__free(s->adapters);
    weft__free(s->adapter_dir);
    weft__free(s->chat_template);
    weft__free(s->draft);
    *s = (weft__server_settings){0};
}

weft_status weft__server_adapters_add(weft__server_model *m, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (size_t i = 0; i < m->settings.n_adapters && !st; i++) {
        const struct weft__server_own_adapter *a = &m->settings.adapters[i];
        st = weft_engine_adapter_add(m->engine, a->name, a->path, a->scale, 0, err);
        if (st) weft_fail_within(err, st, "adapter '%s'", a->name);
    }
    return st ? st : weft__server_adapters_check_names(m, err);
}
