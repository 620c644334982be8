// SPDX-License-Identifier: Apache-2.0
/* adapters.c: adapters over HTTP: which ones a request means, and whose they are (its model's name, or llama.cpp's
 * "lora" field, or the scales that were set for all), and the endpoints that list, load and unload them. Workers; the
 * engine's store has its own locks.
 *
 * Invariant: a file that a client names is loaded only from beneath the folder that the operator gave for it. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/objects.h"
#include "server/learned.h"
#include "server/rules.h"

/* All adapters in order of their numbers, a page at a time; zero-initialise. What comes or goes meanwhile is seen or
 * not. */
enum { PAGE = 8 };
typedef struct adapter_walk {
    weft_engine_adapter page[PAGE];
    int32_t first, at, n; /* first: number from which on the next page begins; page[at..n) is still to be seen */
    int ended;
} adapter_walk;

/* The next one, valid until the call after; NULL behind the last. */
static const weft_engine_adapter *walk_next(const weft__server_model *m, adapter_walk *w)
{
    if (w->at == w->n && !w->ended) {
        int32_t n = weft_engine_adapters(m->engine, w->first, w->page, PAGE);
        w->ended = n <= PAGE;
        w->at = 0;
        w->n = n < PAGE ? n : PAGE;
        if (!w->ended) w->first = w->page[PAGE - 1].index + 1;
    }
    return w->at < w->n ? &w->page[w->at++] : NULL;
}

/* ---- whose an adapter is ---- */

enum { OWNER = WEFT__API_MAX_TENANT + 1 /* bytes of "key-0123456789ab." */, OWN_MAX = 48 /* of a key */ };

/* Where keys are wanted, what a key loads is known to the engine by a name that begins with its tenant. 1: it is such a
 * name. */
static int is_own(const weft__server_model *m, const char *name)
{
    return m->server->wants_keys && !strncmp(name, "key-", 4) &&
           strspn(name + 4, "0123456789abcdef") == WEFT__API_MAX_TENANT - 4 && name[WEFT__API_MAX_TENANT] == '.';
}

static int is_owner(const char *tenant, const char *name)
{
    return strlen(tenant) == WEFT__API_MAX_TENANT && !strncmp(tenant, name, WEFT__API_MAX_TENANT);
}

/* Is it there for this tenant? */
static int is_visible(const weft__server_model *m, const char *tenant, const char *name)
{
    const int is_version = weft__server_learned_may(m, tenant, name);
    return is_version >= 0 ? is_version : !is_own(m, name) || is_owner(tenant, name);
}

/* As its tenant calls it. To others, admins, all of it is its name. */
static const char *shown_name(const weft__server_model *m, const char *tenant, const char *name)
{
    return is_own(m, name) && is_owner(tenant, name) ? name + OWNER : name;
}

/* Is it there for this caller, and may it be used? */
static int may_see(const weft__server_model *m, const weft__server_caller *who, const char *name)
{
    if (!is_visible(m, who->tenant, name)) return 0;
    return weft__server_learned_is_name(name) || weft__server_may_use_adapter(who, shown_name(m, who->tenant, name));
}

/* The engine's name of what a tenant calls so: its own, or what was published. 0: there is none. */
static int find_name(const weft__server_model *m, const char *tenant, const char *name,
                     char out[WEFT__API_ADAPTER_NAME])
{
    weft_engine_adapter a = {.size = sizeof a};
    if (weft__server_learned_is_name(name)) return 0; /* those are looked for by learned.c */
    int n = snprintf(out, WEFT__API_ADAPTER_NAME, "%s.%s", tenant, name);
    if (*tenant && n < WEFT__API_ADAPTER_NAME && !weft_engine_adapter_find(m->engine, out, &a, NULL)) return 1;
    n = snprintf(out, WEFT__API_ADAPTER_NAME, "%s", name);
    return n < WEFT__API_ADAPTER_NAME && !is_own(m, name) && !weft_engine_adapter_find(m->engine, name, &a, NULL);
}

/* "adapter" or "base:adapter". The model's own names come first, so that no adapter takes one of them over. */
void weft__server_adapter_of_model(const weft__server_model *m, const weft__server_caller *who, const char *model,
                                   char out[WEFT__API_ADAPTER_NAME])
{
    const char *colon = strrchr(model, ':');
    const int may_be = *model && !weft__server_is_model_name(m, model);
    int found = may_be && find_name(m, who->tenant, model, out);
    if (may_be && !found && colon && find_name(m, who->tenant, colon + 1, out)) {
        size_t n = (size_t)(colon - model);
        found = strlen(m->name) == n && !strncmp(model, m->name, n);
        for (char **name = m->aliases.items; name && *name && !found; name++)
            found = !strcmp(*name, "*") || (strlen(*name) == n && !strncmp(model, *name, n));
    }
    if (!found || !may_see(m, who, out)) out[0] = 0;
}

static int by_index(const weft__server_model *m, int64_t id, weft_engine_adapter *out)
{
    out->size = sizeof *out;
    return id >= 0 && id <= INT32_MAX && weft_engine_adapters(m->engine, (int32_t)id, out, 1) > 0 && out->index == id;
}

/* All of them must be there, for this tenant. */
static int check_listed(const weft__server_model *m, const char *tenant, const weft__api_adapter_scale *loras, int n,
                        weft__api_error *error)
{
    weft_engine_adapter a;
    for (int i = 0; i < n; i++)
        if (!by_index(m, loras[i].id, &a) || !is_visible(m, tenant, a.name))
            return weft__api_error_set(error, 400, "lora", "'lora' has id %lld, which no adapter has",
                                       (long long)loras[i].id);
    return 1;
}

int weft__server_adapters_allowed(const weft__server_model *m, const weft__server_caller *who,
                                  const weft__api_params *params, weft__api_error *error)
{
    weft_engine_adapter a;
    for (int i = 0; who->member && i < params->n_loras; i++)
        if (by_index(m, params->loras[i].id, &a) && !may_see(m, who, a.name))
            return weft__api_error_set(error, 400, "lora", "'lora' has id %lld, which no adapter has",
                                       (long long)params->loras[i].id);
    return 1;
}

/* What is wrong with a file that the server has is no error of the request, unless it brings a scale that the values
 * cannot have. */
static int faults_file(const weft__server_model *m, const weft_request_adapter *adapters, int n, weft_status st)
{
    weft_engine_adapter a = {.size = sizeof a};
    int all_there = 1, scaled = 0;
    for (int i = 0; i < n; i++) {
        scaled |= !isnan(adapters[i].scale);
        if (adapters[i].name) all_there &= !weft_engine_adapter_find(m->engine, adapters[i].name, &a, NULL);
    }
    return st == WEFT_FORMAT || st == WEFT_UNSUPPORTED || (st == WEFT_NOT_FOUND && all_there) ||
           (st == WEFT_ARGUMENT && !scaled);
}

/* By their names or their numbers; shown is filled when they are taken. out NULL: they are only asked for ahead. */
static int adapters_take(weft__server_model *m, const char *tenant, const weft_request_adapter *adapters, int n,
                         int *ready, weft_engine_lease **out, char shown[WEFT__API_ADAPTERS_SHOWN],
                         weft__api_error *error)
{
    weft_error err = {0};
    weft_engine_adapter a;
    size_t at = 0;
    if (!out) {
        weft_engine_adapters_ahead(m->engine, adapters, n);
        return 1;
    }
    shown[0] = 0;
    for (int i = 0; i < n; i++) {
        const char *name = adapters[i].name ? adapters[i].name : by_index(m, adapters[i].index, &a) ? a.name : "";
        int more =
            snprintf(shown + at, WEFT__API_ADAPTERS_SHOWN - at, "%s%s", at ? "+" : "", shown_name(m, tenant, name));
        at = at + (size_t)more < WEFT__API_ADAPTERS_SHOWN ? at + (size_t)more : WEFT__API_ADAPTERS_SHOWN - 1;
    }
    weft_status st = ready ? weft_engine_lease_ready(m->engine, adapters, n, ready, out, &err)
                           : weft_engine_lease_new(m->engine, adapters, n, out, &err);
    if (!st) return 1;
    if (faults_file(m, adapters, n, st)) st = WEFT_IO;
    if (st == WEFT_LIMIT) st = WEFT_NO_MEMORY; /* of adapters: it is the server's */
    weft__api_error_of(error, st, err.message);
    return 0;
}

/* By number: one that is unloaded, and its name loaded again, is another then. */
static int take_listed(weft__server_model *m, const char *tenant, const weft__api_adapter_scale *loras, int n,
                       int *ready, weft_engine_lease **out, char shown[WEFT__API_ADAPTERS_SHOWN],
                       weft__api_error *error)
{
    weft_request_adapter adapters[WEFT__API_MAX_LORAS] = {{0}};
    for (int i = 0; i < n; i++) adapters[i] = (weft_request_adapter){NULL, (float)loras[i].scale, (int32_t)loras[i].id};
    return adapters_take(m, tenant, adapters, n, ready, out, shown, error);
}

/* Those whose scales were set for all. Which were unloaded since change nothing. */
static int take_set(weft__server_model *m, int *ready, weft_engine_lease **out, char shown[WEFT__API_ADAPTERS_SHOWN],
                    weft__api_error *error)
{
    for (;;) {
        weft__api_adapter_scale set[WEFT__API_MAX_LORAS];
        weft_engine_adapter a;
        int n = 0;
        pthread_mutex_lock(&m->loras_lock);
        for (int i = 0; i < m->n_loras; i++)
            if (by_index(m, m->loras[i].id, &a)) set[n++] = m->loras[i];
        pthread_mutex_unlock(&m->loras_lock);
        if (take_listed(m, "", set, n, ready, out, shown, error)) return 1;
        if (check_listed(m, "", set, n, &(weft__api_error){0}))
            return 0; /* it was not for one that was just unloaded */
        *error = (weft__api_error){0};
    }
}

/* A version that was learned, which the engine has from its first use on. */
static int take_version(weft__server_model *m, const char *tenant, const char *name, int *ready,
                        weft_engine_lease **out, char shown[WEFT__API_ADAPTERS_SHOWN], weft__api_error *error)
{
    const weft_request_adapter one = {name, NAN, 0};
    weft_error err = {0};
    if (!out) return adapters_take(m, tenant, &one, 1, ready, out, shown, error);
    const weft_status st = weft__server_learned_want(m, tenant, name, ready, &err);
    if (st) weft__api_error_of(error, st == WEFT_NOT_FOUND ? st : WEFT_IO, err.message);
    if (st || (ready && !*ready)) return !st;
    const int ok = adapters_take(m, tenant, &one, 1, ready, out, shown, error);
    weft__server_learned_leave(m, name);
    return ok;
}

static int scales_are_set(weft__server_model *m)
{
    pthread_mutex_lock(&m->loras_lock);
    const int n = m->n_loras;
    pthread_mutex_unlock(&m->loras_lock);
    return n > 0;
}

/* A model that is named is meant, with what was learned over it of this tenant: whatever was set for requests that name
 * none. */
int weft__server_adapters_lease(weft__server_model *m, const weft__api_params *params, const char *tenant, int *ready,
                                weft_engine_lease **out, char shown[WEFT__API_ADAPTERS_SHOWN], weft__api_error *error)
{
    const weft_request_adapter one = {params->adapter, NAN, 0};
    char version[WEFT__API_ADAPTER_NAME];
    if (*params->adapter && params->lora_given)
        return weft__api_error_set(error, 400, "lora", "'lora' and a 'model' that is an adapter exclude each other");
    if (weft__server_learned_is_name(params->adapter))
        return take_version(m, tenant, params->adapter, ready, out, shown, error);
    if (*params->adapter) return adapters_take(m, tenant, &one, 1, ready, out, shown, error);
    if (params->lora_given)
        return check_listed(m, tenant, params->loras, params->n_loras, error) &&
               take_listed(m, tenant, params->loras, params->n_loras, ready, out, shown, error);
    const int is_named = params->model && *params->model;
    if ((is_named || !scales_are_set(m)) && weft__server_learned_meant(m, params, tenant, version)) {
        if (take_version(m, tenant, version, ready, out, shown, error)) return 1;
        const int may_pass = error->status == 429 || error->status == 503;
        if (may_pass && weft__server_learned_may(m, tenant, version)) return 0;
        *error = (weft__api_error){0}; /* its file is bad, or it was forgotten meanwhile: the base answers */
    }
    if (is_named) return take_listed(m, tenant, NULL, 0, ready, out, shown, error);
    return take_set(m, ready, out, shown, error);
}

/* ---- listing ---- */

enum { ADAPTERS_NAMED = 8, ADAPTERS_NAMED_BYTES = 180 };

void weft__server_adapter_put_model(const weft__server_model *m, const weft__server_caller *who,
                                    const weft_engine_adapter *a, weft__strbuf *out)
{
    weft__api_put_adapter_model(out, shown_name(m, who->tenant, a->name), m->name, m->server->began, a);
}

void weft__server_adapters_put_models(const weft__server_model *m, const weft__server_caller *who, weft__strbuf *out)
{
    const weft_engine_adapter *a;
    adapter_walk w = {0};
    while ((a = walk_next(m, &w)))
        if (!weft__server_learned_is_name(a->name) && may_see(m, who, a->name))
            weft__server_adapter_put_model(m, who, a, out);
}

void weft__server_adapters_name(const weft__server_model *m, const weft__server_caller *who, char *out, size_t room)
{
    const weft_engine_adapter *a;
    adapter_walk w = {0};
    char names[ADAPTERS_NAMED_BYTES] = "";
    size_t at = 0;
    int n = 0, n_named = 0;
    while ((a = walk_next(m, &w))) {
        const char *name = shown_name(m, who->tenant, a->name);
        if (weft__server_learned_is_name(a->name) || !may_see(m, who, a->name)) continue;
        if (n_named == n && n < ADAPTERS_NAMED && at + strlen(name) + sizeof "', '" <= sizeof names) {
            at += (size_t)snprintf(names + at, sizeof names - at, "%s'%s'", n ? ", " : "", name);
            n_named++;
        }
        n++;
    }
    if (!n) snprintf(out, room, "%s", "");
    else if (!n_named) snprintf(out, room, " and %d adapters", n);
    else if (n_named < n) snprintf(out, room, " and the adapters %s and %d more", names, n - n_named);
    else snprintf(out, room, " and the adapter%s %s", n > 1 ? "s" : "", names);
}

static float set_scale(const weft__server_model *m, int32_t id)
{
    float scale = 0;
    pthread_mutex_lock(&((weft__server_model *)(uintptr_t)m)->loras_lock);
    for (int i = 0; i < m->n_loras; i++)
        if (m->loras[i].id == id) scale = (float)m->loras[i].scale;
    pthread_mutex_unlock(&((weft__server_model *)(uintptr_t)m)->loras_lock);
    return scale;
}

/* A client asks for what is in its folder by its path within it; of what the operator named, the last part of the path
 * is enough to be told apart. room: bytes of out. */
static void shown_path(const weft__server_model *m, const char *path, char *out, size_t room)
{
    size_t n;
    const char *last = weft__path_last(path, &n);
    if (weft__server_adapters_within(m, path)) snprintf(out, room, "%s", path + strlen(m->settings.adapter_dir) + 1);
    else snprintf(out, room, "%.*s", (int)n, last);
}

/* How many requests use one that was published is about others, too. */
static void put_entry(const weft__server_model *m, const weft__server_caller *who, const weft_engine_adapter *a,
                      weft__strbuf *out)
{
    char path[sizeof a->path];
    const int is_version = weft__server_learned_is_name(a->name);
    const int mine = is_version ? may_see(m, who, a->name) : is_own(m, a->name) && is_owner(who->tenant, a->name);
    const int sees_all = who->is_admin && (m->server->wants_keys || !is_version); /* without keys all may be admins */
    if (!sees_all && !may_see(m, who, a->name)) return;
    shown_path(m, a->path, path, sizeof path);
    weft__api_put_adapter(out,
                          &(weft__api_adapter){.adapter = a,
                                               .name = shown_name(m, who->tenant, a->name),
                                               .path = path,
                                               .scale = set_scale(m, a->index),
                                               .published = !is_version && !is_own(m, a->name),
                                               .hides_requests = m->server->wants_keys && !who->is_admin && !mine});
}

/* ---- endpoints ---- */

/* What is there for all, an admin alone changes. */
static int may_change_all(const weft__server_caller *who, const char *field, const char *what, weft__api_error *error)
{
    if (who->is_admin) return 1;
    return weft__api_error_set(
        error, 403, field,
        "%s changes what others get; it wants an admin's key (--admin-key, or 'admin' behind a key in "
        "--api-key-file), or without keys a caller on the server's machine, through no proxy",
        what);
}

/* Whose it is alone changes no one else's answers. */
static int all_published(const weft__server_model *m, const weft__api_adapter_scale *loras, int n,
                         weft__api_error *error)
{
    weft_engine_adapter a;
    for (int i = 0; i < n; i++)
        if (by_index(m, loras[i].id, &a) && weft__server_learned_is_name(a.name))
            return weft__api_error_set(error, 400, "lora", "the adapter with id %lld was learned of one caller alone",
                                       (long long)loras[i].id);
        else if (by_index(m, loras[i].id, &a) && is_own(m, a.name))
            return weft__api_error_set(error, 400, "lora",
                                       "the adapter with id %lld is a key's own; load it with 'publish' first",
                                       (long long)loras[i].id);
    return 1;
}

/* POST: the scales of requests that name no adapter; those not listed are 0. */
static void set_scales(weft__server_model *m, const weft__server_caller *who, const char *body, size_t n,
                       weft__strbuf *out, weft__api_error *error)
{
    weft__json *root = NULL;
    weft__api_params params = {0};
    if (!may_change_all(who, NULL, "setting adapters for all", error) || !weft__api_body_parse(body, n, &root, error))
        return;
    if (weft__api_read_adapter_scales(&params, "lora", root, error) &&
        check_listed(m, who->tenant, params.loras, params.n_loras, error) &&
        all_published(m, params.loras, params.n_loras, error)) {
        pthread_mutex_lock(&m->loras_lock);
        memcpy(m->loras, params.loras, sizeof m->loras);
        m->n_loras = params.n_loras;
        pthread_mutex_unlock(&m->loras_lock);
        weft__api_put_success(out);
    }
    weft__json_free(&root);
}

void weft__server_adapters_endpoint(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    size_t n;
    const char *body = weft__http_body(r, &n);
    if (!strcmp(weft__http_method(r), "POST")) {
        set_scales(m, who, body, n, &out, &error);
    } else {
        const weft_engine_adapter *a;
        adapter_walk w = {0};
        weft__strbuf_putc(&out, '[');
        while ((a = walk_next(m, &w))) put_entry(m, who, a, &out);
        weft__strbuf_putc(&out, ']');
    }
    weft__server_reply_end(r, &out, &error);
}

/* Without a folder for clients, what the operator loaded stays as it is. */
static int may_change(const weft__server_model *m, const char *field, weft__api_error *error)
{
    if (m->settings.adapter_dir) return 1;
    return weft__api_error_set(
        error, 403, field,
        "this server loads and unloads no adapters while it runs; its operator can allow a folder (--adapter-dir)");
}

/* The file that a client means: beneath the folder for it, links followed. 0 with the error filled. */
static int place_of(const weft__server_model *m, const char *path, char out[PATH_MAX], weft__api_error *error)
{
    char joined[PATH_MAX];
    if (!may_change(m, "lora_path", error)) return 0;
    if (path[0] == '/' || strchr(path, '\\') || !strcmp(path, "..") || !strncmp(path, "../", 3) ||
        strstr(path, "/../") || (strlen(path) >= 3 && !strcmp(path + strlen(path) - 3, "/..")) ||
        (size_t)snprintf(joined, sizeof joined, "%s/%s", m->settings.adapter_dir, path) >= sizeof joined)
        return weft__api_error_set(error, 400, "lora_path",
                                   "'lora_path' must be a path within the server's folder for adapters");
    if (!realpath(joined, out)) {
        if (errno == ENOENT || errno == ENOTDIR)
            return weft__api_error_set(error, 404, "lora_path", "there is no adapter '%.200s' in the server's folder",
                                       path);
        return weft__api_error_set(error, 400, "lora_path", "'lora_path': %s", strerror(errno));
    }
    if (!weft__server_adapters_within(m, out) || !weft__server_adapters_members_within(m, out))
        return weft__api_error_set(error, 400, "lora_path",
                                   "'lora_path' must be a path within the server's folder for adapters");
    return 1;
}

static void put_loaded(const weft__server_model *m, const char *tenant, const char *name, weft__strbuf *out)
{
    weft_engine_adapter a = {.size = sizeof a};
    int there = !weft_engine_adapter_find(m->engine, name, &a, NULL); /* or it was unloaded meanwhile */
    weft__api_put_adapter_loaded(out, shown_name(m, tenant, name), there ? &a : NULL);
}

/* The model's own names always mean the model. A name is looked at before its file: what is found wrong later is the
 * file's error. */
static int name_is_free(const weft__server_model *m, const char *name, weft__api_error *error)
{
    weft_error err = {0};
    if (weft_engine_adapter_check_name(name, &err))
        return weft__api_error_set(error, 400, "lora_name", "%s", err.message);
    if (weft__server_learned_is_name(name))
        return weft__api_error_set(error, 400, "lora_name",
                                   "'%.100s' is a name as versions have that were learned ('@'); give it another",
                                   name);
    return !weft__server_is_model_name(m, name)
               ? 1
               : weft__api_error_set(error, 400, "lora_name",
                                     "'%.128s' is the model's own name; give the adapter another", name);
}

weft_status weft__server_adapters_check_names(const weft__server_model *m, weft_error *err)
{
    const weft_engine_adapter *a;
    adapter_walk w = {0};
    while ((a = walk_next(m, &w)))
        if (weft__server_is_model_name(m, a->name) || is_own(m, a->name) || weft__server_learned_is_name(a->name))
            return weft_fail(err, WEFT_ARGUMENT, "adapter '%s' has a name %s; give it another", a->name,
                             is_own(m, a->name)                      ? "as a key's own ones have"
                             : weft__server_learned_is_name(a->name) ? "as versions have that were learned ('@')"
                                                                     : "of the model itself");
    return WEFT_OK;
}

/* ---- by clients ---- */

/* How many are a tenant's own. */
static int count_own(const weft__server_model *m, const char *tenant)
{
    const weft_engine_adapter *a;
    adapter_walk w = {0};
    int n = 0;
    while ((a = walk_next(m, &w))) n += is_own(m, a->name) && is_owner(tenant, a->name);
    return n;
}

/* What a key loads is its own, unless an admin publishes it. Without keys there is no owner. name:
 * of the engine. */
static int name_of_load(const weft__server_model *m, const weft__server_caller *who, const weft__api_params *params,
                        char name[WEFT__API_ADAPTER_NAME], weft__api_error *error)
{
    weft_engine_adapter a = {.size = sizeof a};
    if (!name_is_free(m, params->lora_name, error)) return 0;
    if (!weft__server_may_use_adapter(who, params->lora_name))
        return weft__api_error_set(error, 403, "lora_name", "this key may have no adapter '%.128s'", params->lora_name);
    if (params->publish || !*who->tenant) {
        snprintf(name, WEFT__API_ADAPTER_NAME, "%s", params->lora_name);
        if (is_own(m, name))
            return weft__api_error_set(error, 400, "lora_name", "'%.100s' is a name as a key's own adapters have",
                                       params->lora_name);
        return may_change_all(who, *who->tenant ? "publish" : NULL, "an adapter for all", error);
    }
    if (snprintf(name, WEFT__API_ADAPTER_NAME, "%s.%s", who->tenant, params->lora_name) >= WEFT__API_ADAPTER_NAME)
        return weft__api_error_set(error, 400, "lora_name",
                                   "'lora_name' must have at most %d bytes where keys are wanted",
                                   WEFT__API_ADAPTER_NAME - 1 - OWNER);
    if (weft_engine_adapter_find(m->engine, name, &a, NULL) && count_own(m, who->tenant) >= OWN_MAX)
        return weft__api_error_set(error, 400, "lora_name", "a key may have %d adapters of its own; unload one first",
                                   OWN_MAX);
    return 1;
}

/* The name can be used, and the scale is finite: the form saw to it. */
static void adapters_load(weft__server_model *m, const weft__server_caller *who, const weft__api_params *params,
                          const char *name, const char *place, weft__strbuf *out, weft__api_error *error)
{
    weft_error err = {0};
    weft_status st = weft_engine_adapter_add(
        m->engine, name, place, (float)params->scale,
        WEFT_ADAPTER_DISCREET | (params->load_inplace ? (uint32_t)WEFT_ADAPTER_REPLACE : 0), &err);
    weft__api_hide_tenants(err.message, who->tenant);
    if (st == WEFT_EXISTS)
        weft__api_error_set(error, 400, "lora_name",
                            "there is an adapter '%s' already; unload it first, or set 'load_inplace'",
                            params->lora_name);
    else if (st == WEFT_STATE) weft__api_error_set(error, 400, "lora_name", "%s", err.message);
    else if (st == WEFT_NO_MEMORY || st == WEFT_INTERNAL || st == WEFT_IO) weft__api_error_of(error, st, err.message);
    else if (st) weft__api_error_set(error, 400, "lora_path", "%s", err.message);
    else put_loaded(m, who->tenant, name, out);
}

void weft__server_adapter_load(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    weft__api_params params = {0};
    char place[PATH_MAX], name[WEFT__API_ADAPTER_NAME];
    size_t n;
    const char *body = weft__http_body(r, &n);
    if (weft__api_params_parse(&weft__api_table_load_adapter, m->n_vocab, body, n, &params, &error) &&
        name_of_load(m, who, &params, name, &error) && place_of(m, params.lora_path, place, &error) &&
        weft__server_disk_enter(m->server, r, NULL, &error)) {
        adapters_load(m, who, &params, name, place, &out, &error);
        weft__server_disk_leave(m->server, r);
    }
    weft__api_params_free(&params);
    weft__server_reply_end(r, &out, &error);
}

/* The engine's name of what this caller may unload: its own, or for an admin what was published, and by its full name
 * that of another key. */
static int name_of_unload(const weft__server_model *m, const weft__server_caller *who, const char *given,
                          char name[WEFT__API_ADAPTER_NAME], weft__api_error *error)
{
    weft_engine_adapter a = {.size = sizeof a};
    int found = find_name(m, who->tenant, given, name);
    if (!found && who->is_admin && is_own(m, given)) {
        snprintf(name, WEFT__API_ADAPTER_NAME, "%s", given);
        found = !weft_engine_adapter_find(m->engine, name, &a, NULL);
    }
    if (!found) return weft__api_error_set(error, 404, "lora_name", "there is no adapter '%.128s'", given);
    return is_own(m, name) || may_change_all(who, "lora_name", "unloading an adapter that is there for all", error);
}

void weft__server_adapter_unload(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    weft__api_params params = {0};
    weft_error err = {0};
    char name[WEFT__API_ADAPTER_NAME];
    size_t n;
    const char *body = weft__http_body(r, &n);
    if (weft__api_params_parse(&weft__api_table_unload_adapter, m->n_vocab, body, n, &params, &error) &&
        may_change(m, "lora_name", &error) && name_of_unload(m, who, params.lora_name, name, &error)) {
        if (weft_engine_adapter_remove(m->engine, name, &err))
            weft__api_error_set(&error, 404, "lora_name", "there is no adapter '%.128s'", params.lora_name);
        else weft__api_put_ok(&out);
    }
    weft__api_params_free(&params);
    weft__server_reply_end(r, &out, &error);
}

void weft__server_adapters_forget(weft__server_model *m)
{
    const weft_engine_adapter *a;
    adapter_walk w = {0};
    while ((a = walk_next(m, &w))) {
        char tenant[WEFT__API_MAX_TENANT + 1];
        if (!is_own(m, a->name)) continue;
        snprintf(tenant, sizeof tenant, "%.*s", WEFT__API_MAX_TENANT, a->name);
        if (!weft__server_keys_have(&m->server->rules->keys, tenant))
            weft_engine_adapter_remove(m->engine, a->name, NULL);
    }
}
