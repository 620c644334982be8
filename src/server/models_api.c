// SPDX-License-Identifier: Apache-2.0
/* models_api.c: the endpoints about models: what there is and where it stands, as OpenAI lists it and llama.cpp's
 * router tells it, and loading and unloading as that has them. Workers. */
#include <stdio.h>
#include <string.h>

#include "api/objects.h"
#include "server/learned.h"
#include "server/models.h"
#include "server/router.h"
#include "server/rules.h"

/* Its other names stand in its entry, unless it is shown by one of them. */
static const char *const *aliases_of(const weft__server_model *m, const char *name)
{
    return strcmp(name, m->name) ? NULL : (const char *const *)m->aliases.items;
}

/* With the lock. Paths are for admins: they tell how the machine's disk is laid out. */
static void put_state(const weft__server_model *m, const weft__server_caller *who, const char *name, weft__strbuf *out)
{
    /* one that failed is not there, as the router has it; the fault says the rest */
    static const char *const values[] = {[WEFT__SERVER_UNLOADED] = "unloaded",  [WEFT__SERVER_WANTED] = "loading",
                                         [WEFT__SERVER_LOADING] = "loading",    [WEFT__SERVER_LOADED] = "loaded",
                                         [WEFT__SERVER_UNLOADING] = "unloaded", [WEFT__SERVER_FAILED] = "unloaded"};
    const int is_there = m->state == WEFT__SERVER_LOADED;
    const weft__api_model_state state = {.value = values[m->state],
                                         .path = who->is_admin ? m->path : NULL,
                                         .progress = (double)m->permille / 1000,
                                         .fault = m->state == WEFT__SERVER_FAILED ? m->fault.message : NULL,
                                         .is_pinned = m->is_pinned || !m->path,
                                         .n_bytes = is_there ? m->reserved + m->kv_allowed + m->adapters_more : 0};
    /* what it is belongs to the loader while it comes and goes */
    weft__api_put_model_state(out, name, aliases_of(m, name), m->server->began, is_there ? m->n_vocab : 0,
                              is_there ? m->prompt_model.n_ctx : 0, is_there ? &m->info : NULL, &state);
}

static void put_model(weft__server_model *m, const weft__server_caller *who, const char *name, weft__strbuf *out)
{
    weft__server_models *all = &m->server->models;
    if (!all->are_several) {
        weft__api_put_model(out, name, aliases_of(m, name), m->server->began, m->n_vocab, m->prompt_model.n_ctx,
                            &m->info);
        return;
    }
    pthread_mutex_lock(&all->lock);
    put_state(m, who, name, out);
    pthread_mutex_unlock(&all->lock);
}

/* Whose versions are told of: the key's or, without keys, those of the argument `user`, as requests name themselves. */
static void tenant_of_models(const weft_server *s, const weft__http_request *r, const weft__server_caller *who,
                             char tenant[64])
{
    const char *user = weft__http_query(r, "user");
    snprintf(tenant, 64, "%s", who->tenant);
    if (!s->wants_keys && user && *user && weft__server_tenant_of_user(user, tenant, NULL)) *tenant = 0;
}

void weft__server_models_list(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    const weft__api_error none = {0};
    char tenant[64];
    tenant_of_models(s, r, who, tenant);
    weft__api_put_models_begin(&out);
    for (size_t i = 0; i < s->models.n; i++) {
        weft__server_model *m = s->models.items[i];
        const int may = weft__server_may_use_model(who, m->name);
        if (may) put_model(m, who, m->name, &out);
        for (char **a = m->aliases.items; !may && *a; a++) /* a key may know it by an alias alone */
            if (strcmp(*a, "*") && weft__server_may_use_model(who, *a)) put_model(m, who, *a, &out);
        if (!may || !weft__server_model_hold_loaded(m)) continue;
        weft__server_learned_put_model(m, tenant, NULL, &out);
        weft__server_adapters_put_models(m, who, &out);
        weft__server_model_look_away(&m);
    }
    weft__server_presets_put(s->models.first ? s->models.first : s->models.items[0], who, &out);
    weft__server_router_put_model(s, &out);
    weft__api_put_models_end(&out);
    weft__server_reply_end(r, &out, &none);
}

static int put_adapter(weft__server_model *m, const weft__server_caller *who, const char *name, weft__strbuf *out)
{
    char named[WEFT__API_ADAPTER_NAME];
    weft_engine_adapter adapter = {.size = sizeof adapter};
    if (!weft__server_model_hold_loaded(m)) return 0;
    weft__server_adapter_of_model(m, who, name, named);
    const int found = *named && !weft_engine_adapter_find(m->engine, named, &adapter, NULL);
    if (found) weft__server_adapter_put_model(m, who, &adapter, out);
    weft__server_model_look_away(&m);
    return found;
}

/* What the model's, an adapter's or a version's name is of; nothing where the tenant has none that is called so. */
static void put_meant(weft__server_model *m, const weft__server_caller *who, const char *tenant, const char *name,
                      weft__strbuf *out)
{
    if (weft__server_learned_model(m->server, name)) weft__server_learned_put_model(m, tenant, name, out);
    else if (weft__server_is_model_name(m, name)) put_model(m, who, name, out);
    else if (put_adapter(m, who, name, out)) return;
    else if (weft__server_learned_is_lineage(m, tenant, name)) weft__server_learned_put_model(m, tenant, name, out);
    else if (weft__server_takes_any_name(m)) put_model(m, who, name, out);
}

static void refuse_absent(weft__server_model *m, const weft__server_caller *who, const char *tenant, const char *name,
                          weft__api_error *error)
{
    char versions[256];
    weft__server_models_absent(m->server, who, name, error);
    weft__server_learned_name_versions(m, tenant, name, versions, sizeof versions);
    const size_t n = strlen(error->message);
    snprintf(error->message + n, sizeof error->message - n, "%s", versions);
}

void weft__server_models_show(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    const char *name = weft__http_path(r) + strlen("/v1/models/");
    char tenant[64];
    const weft__config_preset *preset = weft__server_preset_find(who->rules, name);
    const int is_router = s->router && !strcmp(name, WEFT__SERVER_AUTO);
    weft__server_model *m = is_router ? NULL : weft__server_models_which(s, who, name, &error);
    tenant_of_models(s, r, who, tenant);
    if (is_router) weft__server_router_put_model(s, &out);
    else if (m && preset) weft__api_put_preset_model(&out, name, preset->base ? preset->base : m->name, s->began);
    else if (m) put_meant(m, who, tenant, name, &out);
    if (m && !out.len && !out.failed) refuse_absent(m, who, tenant, name, &error);
    weft__server_reply_end(r, &out, &error);
}

/* The model that the body names, by a preset or an adapter, too, for an admin: what is there for all, no other loads or
 * ends. NULL: refused. */
static weft__server_model *named(weft_server *s, weft__http_request *r, const weft__server_caller *who,
                                 const weft__api_table *form, weft__api_error *error)
{
    weft__api_params params = {0};
    weft__server_model *m = NULL;
    size_t n;
    const char *body = weft__http_body(r, &n);
    if (!who->is_admin)
        weft__api_error_set(
            error, 403, NULL,
            "loading and unloading models changes what others get; it wants an admin's key (--admin-key), "
            "or without keys a caller on the server's machine, through no proxy");
    else if (weft__api_params_parse(form, 1, body, n, &params, error))
        m = weft__server_models_which(s, who, params.model, error);
    weft__api_params_free(&params);
    return m;
}

void weft__server_models_load(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    weft__server_model *m = named(s, r, who, &weft__api_table_load_model, &error);
    pthread_mutex_lock(&s->models.lock);
    if (m && m->state == WEFT__SERVER_LOADED && m->closing != 2)
        weft__api_error_set(&error, 400, "model", "the model '%s' is loaded already", m->name);
    else if (m && !weft__server_loader_want(s, m))
        weft__api_error_set(&error, 400, "model", "the model '%s' is being loaded already", m->name);
    pthread_mutex_unlock(&s->models.lock);
    if (!error.status) weft__api_put_success(&out);
    weft__server_reply_end(r, &out, &error);
}

void weft__server_models_unload(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    const weft_error why = {WEFT_CANCELLED, "it was unloaded before it was there"};
    weft__server_model *m = named(s, r, who, &weft__api_table_unload_model, &error);
    pthread_mutex_lock(&s->models.lock);
    if (m && (!m->path || m->is_pinned)) {
        weft__api_error_set(&error, 400, "model", "the model '%s' is pinned; it stays", m->name);
    } else if (m && m->state == WEFT__SERVER_LOADED) {
        weft__server_loader_close(s, m);
    } else if (m && (m->state == WEFT__SERVER_LOADING || m->state == WEFT__SERVER_WANTED)) {
        weft__server_loader_cancel(s, m);
        weft__server_models_refuse(s, m, &why);
    } else if (m) {
        weft__api_error_set(&error, 400, "model", "the model '%s' is not loaded", m->name);
    }
    pthread_mutex_unlock(&s->models.lock);
    if (!error.status) weft__api_put_success(&out);
    weft__server_reply_end(r, &out, &error);
}
