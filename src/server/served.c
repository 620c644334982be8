// SPDX-License-Identifier: Apache-2.0
/* served.c: a model as it is served: with the engine that runs it, what requests must know of it, and what is kept for
 * them. Invariant: what _open sets is there before the first request holds the model, and stays while one does; what
 * changes has a lock of its own. _open and _shut: one thread. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "server/models.h"

/* ---- lists ---- */

void weft__server_strings_free(weft__server_strings *s)
{
    for (char **p = s->items; p && *p; p++) weft__free(*p);
    weft__free(s->items);
    s->items = NULL;
}

weft_status weft__server_strings_copy(const char *const *list, weft__server_strings *out, weft_error *err)
{
    size_t n = 0;
    while (list && list[n]) n++;
    out->items = weft__alloc_zero(n + 1, sizeof *out->items);
    for (size_t i = 0; out->items && i < n; i++)
        if (!(out->items[i] = weft__strdup(list[i]))) weft__server_strings_free(out);
    return out->items ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for the server's settings");
}

/* ---- what the model says ---- */

/* The JSON of a metadata value, or NULL. */
static char *meta_json(const weft_file *file, const char *key)
{
    for (int64_t i = 0; file && i < weft_file_n_meta(file); i++) {
        weft_meta_info info;
        size_t n = 0;
        if (weft_file_meta(file, i, &info, NULL) || strcmp(info.key, key)) continue;
        if (weft_file_meta_json(file, i, 1, NULL, 0, &n, NULL)) return NULL;
        char *text = weft__alloc(n + 1);
        if (text && !weft_file_meta_json(file, i, 1, text, n + 1, &n, NULL)) return text;
        weft__free(text);
        return NULL;
    }
    return NULL;
}

static char *meta_string(const weft_file *file, const char *key)
{
    char *json = meta_json(file, key), *out = NULL;
    weft__json *v = NULL;
    const char *s;
    size_t n;
    if (json && !weft__json_parse(json, strlen(json), &v, NULL) && weft__json_string(v, &s, &n))
        out = weft__strndup(s, n);
    weft__json_free(&v);
    weft__free(json);
    return out;
}

static void special_token(const weft__server_model *m, const char *key, char *out, size_t capacity)
{
    char *json = meta_json(weft_model_file(m->model), key);
    weft__json *v = NULL;
    int64_t id;
    size_t n;
    if (json && !weft__json_parse(json, strlen(json), &v, NULL) && weft__json_int(v, &id) && id >= 0 &&
        id < m->n_vocab) {
        const char *piece = weft_token_piece(m->prompt_model.tokenizer, (int32_t)id, &n);
        snprintf(out, capacity, "%.*s", (int)n, piece ? piece : "");
    }
    weft__json_free(&v);
    weft__free(json);
}

/* The model's own template may be one that we cannot read: a client that chats is told then. One that was given must
 * be right. */
static weft_status open_chat(weft__server_model *m, const char *source, weft_error *err)
{
    weft_error why = {0};
    weft_status st = weft_chat_open(m->model, source, source ? strlen(source) : 0, &m->prompt_model.chat, &why);
    if (st == WEFT_NO_MEMORY || (st && source)) return weft_fail(err, st, "%s", why.message);
    if (st) m->prompt_model.chat_fault = weft__strdup(why.message);
    size_t n;
    m->chat_source = st ? meta_string(weft_model_file(m->model), "tokenizer.chat_template")
                        : weft__strdup(weft_chat_source(m->prompt_model.chat, &n));
    if (!st) st = weft_chat_open_for_tools(m->model, m->prompt_model.chat, &m->prompt_model.tool_chat, &why);
    else return WEFT_OK;
    if (st == WEFT_NO_MEMORY) return weft_fail(err, st, "%s", why.message);
    if (st) m->prompt_model.tool_fault = weft__strdup(why.message);
    return WEFT_OK;
}

static weft_status learn(weft__server_model *m, weft_error *err)
{
    weft_engine_stats stats = {.size = sizeof stats};
    m->info.size = sizeof m->info;
    weft_status st = weft_model_describe(m->model, &m->info, err);
    if (!st && m->server->learn) weft_model_fingerprint(m->model, m->fingerprint);
    if (st) return st;
    m->prompt_model.tokenizer = weft_model_tokenizer(m->model);
    if (!m->prompt_model.tokenizer)
        return weft_fail(err, WEFT_UNSUPPORTED, "%s: a model without a tokenizer cannot be served", m->info.name);
    m->n_vocab = m->info.n_vocab; /* ids that the model knows; the vocabulary may have names for fewer */
    m->prompt_model.longest_token = 1;
    for (int32_t i = 0; i < m->n_vocab; i++) {
        size_t n = 0;
        weft_token_bytes(m->prompt_model.tokenizer, i, &n);
        if ((int64_t)n > m->prompt_model.longest_token) m->prompt_model.longest_token = (int64_t)n;
    }
    weft_engine_get_stats(m->engine, &stats);
    m->prompt_model.n_ctx = stats.n_ctx;
    m->n_slots = stats.n_slots;
    m->max_requests = stats.max_requests;
    special_token(m, "tokenizer.ggml.bos_token_id", m->bos, sizeof m->bos);
    special_token(m, "tokenizer.ggml.eos_token_id", m->eos, sizeof m->eos);
    return WEFT_OK;
}

/* ---- life ---- */

weft_status weft__server_model_new(weft_server *s, const char *name, const char *path, const char *const *aliases,
                                   weft__server_model **out, weft_error *err)
{
    weft__server_model *m = *out = weft__alloc_zero(1, sizeof *m);
    if (!m) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    m->server = s;
    pthread_mutex_init(&m->loras_lock, NULL);
    pthread_mutex_init(&m->slots.lock, NULL);
    pthread_mutex_init(&m->templates_lock, NULL);
    weft__server_grammar_cache_begin(&m->grammar_cache, WEFT__SERVER_GRAMMAR_BYTES);
    weft__server_metrics_begin(&m->metrics);
    weft_status st = weft__server_strings_copy(aliases, &m->aliases, err);
    if (st) return st;
    const char *first = m->aliases.items[0];
    snprintf(m->name, sizeof m->name, "%s", first && strcmp(first, "*") ? first : name ? name : "");
    if (path && !(m->path = weft__strdup(path))) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    return WEFT_OK;
}

weft_status weft__server_model_open(weft__server_model *m, weft_model *model, weft_engine *engine, int has_keys,
                                    weft_error *err)
{
    m->model = model;
    m->engine = engine;
    weft_status st = learn(m, err);
    if (!st) st = open_chat(m, m->settings.chat_template, err);
    if (st) return st;
    if (!*m->name) snprintf(m->name, sizeof m->name, "%s", m->info.name);
    m->slots.have_owners = has_keys;
    st = weft__server_slots_begin(&m->slots, m->n_slots, m->prompt_model.n_ctx, err);
    return st ? st : weft__server_events_begin(&m->events, m->engine, err);
}

void weft__server_model_shut(weft__server_model *m)
{
    weft__server_events_end(&m->events);
    m->events = (weft__server_events){0};
    weft__server_templates_end(m);
    weft__server_grammar_cache_clear(&m->grammar_cache);
    weft__server_slots_free(&m->slots);
    weft_chat_close(&m->prompt_model.tool_chat);
    weft_chat_close(&m->prompt_model.chat);
    weft__free(m->prompt_model.tool_fault);
    weft__free(m->prompt_model.chat_fault);
    weft__free(m->chat_source);
    m->prompt_model = (weft__api_prompt_model){0};
    m->chat_source = NULL;
    m->model = NULL;
    m->engine = NULL;
}

void weft__server_model_free(weft__server_model **p)
{
    weft__server_model *m = *p;
    if (!m) return;
    *p = NULL;
    weft__server_model_shut(m);
    weft__server_grammar_cache_end(&m->grammar_cache);
    weft__server_strings_free(&m->aliases);
    weft__server_settings_free(&m->settings);
    weft__free(m->kept);
    weft__free(m->path);
    pthread_mutex_destroy(&m->templates_lock);
    pthread_mutex_destroy(&m->slots.lock);
    pthread_mutex_destroy(&m->loras_lock);
    weft__free(m);
}

int weft__server_is_model_name(const weft__server_model *m, const char *name)
{
    if (!strcmp(name, m->name)) return 1;
    for (char **a = m->aliases.items; a && *a; a++)
        if (!strcmp(*a, name)) return 1;
    return 0;
}
