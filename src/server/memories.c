// SPDX-License-Identifier: Apache-2.0
/* memories.c: memories over HTTP, and in prompts (memories.h). Workers; a change waits for the store's writer. */
#include "server/memories.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/aside.h"
#include "server/learn.h"

enum { RETRY_S = 60 /* where too many are put */ };

/* ---- life ---- */

weft_status weft__server_memories_begin(weft_server *s, const weft_server_params *p, weft_error *err)
{
    s->memory_embed = p->memory_embed;
    if (p->memory_embed && !p->memories)
        return weft_fail(err, WEFT_ARGUMENT,
                         "--memory-embed: there are no memories to be embedded; give --memories, too");
    if (!p->memories) return WEFT_OK;
    if (!s->learn)
        return weft_fail(err, WEFT_ARGUMENT, "memories are kept in the folder of --learn DIR, and there is none");
    if (p->memory_embed && (p->n_sources > 0 || p->memory))
        return weft_fail(
            err, WEFT_ARGUMENT,
            "--memory-embed is for one model that stays loaded, and %s; leave it out, and memories are found by words",
            p->n_sources > 0 ? "several are served" : "--memory may unload it");
    return weft__memory_new(s->learn, &s->memories, err);
}

void weft__server_memories_end(weft_server *s)
{
    weft__memory_free(&s->memories);
}

void weft__server_memories_learn(weft_server *s, const char *tenant, int64_t event)
{
    weft_error err = {0};
    int64_t number;
    if (s->memories && weft__memory_learn(s->memories, tenant, event, &number, &err))
        weft__log(WEFT__LOG_WARN, "a memory of feedback is lost: %s", err.message);
}

void weft__server_memories_forget(weft_server *s, const char *tenant)
{
    if (s->memories) weft__memory_forget(s->memories, tenant);
}

/* ---- in prompts ---- */

static int is_users(const weft__json *message, const char **text, size_t *n)
{
    return weft__json_is(weft__json_get(message, "role"), "user") &&
           weft__json_string(weft__json_get(message, "content"), text, n);
}

static int absent(weft__api_error *error, const char *field)
{
    return weft__api_error_set(error, 501, field,
                               "this server keeps no memories; weft serve --learn DIR --memories does");
}

/* The first that the chat's user says; 0: nothing. */
static int question_of(const weft__api_params *params, const char **text, size_t *n)
{
    const size_t n_messages = weft__json_size(params->flat);
    size_t at = 0;
    while (at < n_messages && !is_users(weft__json_at(params->flat, at), text, n)) at++;
    return at < n_messages;
}

/* One of zeros was not made. */
static void count_vectors(weft_server *s, const weft__memory_lack *lack, const float *vectors, int dims)
{
    for (size_t i = 0; i < lack->n; i++) {
        const float *x = vectors + i * (size_t)dims;
        int d = 0;
        while (d < dims && x[d] == 0) d++;
        s->n_memory_vectors[!lack->texts[i].number] += d < dims;
    }
}

static void embed_lack(const weft__server_aside *a, const weft__memory_lack *lack)
{
    weft__server_aside_text texts[WEFT__MEMORY_LACKING];
    int dims;
    for (size_t i = 0; i < lack->n; i++) texts[i] = (weft__server_aside_text){lack->texts[i].text, lack->texts[i].n};
    float *vectors = weft__server_aside_embed(a, texts, lack->n, &dims);
    if (vectors) count_vectors(a->m->server, lack, vectors, dims);
    if (vectors) weft__memory_attach(a->m->server->memories, a->tenant, lack, vectors, dims);
    weft__free(vectors);
}

void weft__server_memories_embed(weft__server_model *m, weft__http_request *r, const weft__server_caller *who,
                                 const char *tenant, const weft__api_params *params)
{
    weft_server *s = m->server;
    weft__server_aside aside = {.m = m, .who = who, .tenant = tenant};
    weft__memory_lack lack;
    weft__api_error ignored = {0};
    const char *text = NULL;
    size_t n = 0;
    if (!s->memory_embed || !s->memories || !params->memory || !question_of(params, &text, &n)) return;
    if (weft__memory_lacking(s->memories, tenant, text, n, &lack, NULL)) return;
    (void)weft__http_body(r, &aside.n_body);
    if (lack.n && weft__server_disk_enter(s, r, NULL, &ignored)) {
        embed_lack(&aside, &lack);
        weft__server_disk_leave(s, r);
    }
    weft__memory_lack_free(&lack);
}

int weft__server_memories_block(weft_server *s, const char *tenant, const weft__api_params *params, size_t room,
                                weft__strbuf *out, weft__memory_told *told, weft__api_error *error)
{
    const char *text = NULL;
    size_t n_text = 0;
    told->n = 0;
    if (!params->memory) return 1;
    if (!s->memories) return absent(error, "memory");
    const size_t before = out->len;
    const int is_asked = question_of(params, &text, &n_text);
    if (is_asked && before) weft__strbuf_puts(out, "\n\n");
    /* a store that fails costs memories, not answers */
    if (!is_asked ||
        weft__memory_block(s->memories, tenant, text, n_text, weft__clock_unix_ms(), room, out, told, NULL) || !told->n)
        told->n = 0, out->len = before;
    return 1;
}

void weft__server_memories_put_metrics(const weft_server *s, weft__strbuf *out)
{
    if (!s->memory_embed) return;
    weft__strbuf_printf(out,
                        "# HELP weft_memory_embeddings_total Embeddings computed to find memories by: of memories, and "
                        "of what was asked.\n"
                        "# TYPE weft_memory_embeddings_total counter\n"
                        "weft_memory_embeddings_total{of=\"memory\"} %llu\n"
                        "weft_memory_embeddings_total{of=\"question\"} %llu\n",
                        (unsigned long long)s->n_memory_vectors[0], (unsigned long long)s->n_memory_vectors[1]);
}

/* ---- over HTTP ---- */

static void put_memory_text(weft__strbuf *out, const char *name, const char *text)
{
    weft__strbuf_printf(out, ",\"%s\":", name);
    weft__json_write_string(out, text ? text : "", text ? strlen(text) : 0);
}

static void put_memory(weft__strbuf *out, const weft__learn_memory *m)
{
    weft__strbuf_printf(out, "{\"id\":%lld,\"object\":\"memory\"", (long long)m->number);
    put_memory_text(out, "kind", m->kind);
    put_memory_text(out, "key", m->key);
    put_memory_text(out, "text", m->text);
    put_memory_text(out, "source", m->source);
    weft__strbuf_printf(
        out, ",\"created_ms\":%lld,\"valid_from_ms\":%lld,\"valid_to_ms\":%lld,\"wins\":%lld,\"losses\":%lld}",
        (long long)m->time_ms, (long long)m->valid_from_ms, (long long)m->valid_to_ms, (long long)m->wins,
        (long long)m->losses);
}

static int list_one(void *arg, const weft__learn_memory *m)
{
    weft__strbuf *out = arg;
    if (out->data[out->len - 1] == '}') weft__strbuf_putc(out, ',');
    put_memory(out, m);
    return out->failed;
}

static int set_of_status(weft__api_error *error, weft_status st, const char *message)
{
    weft__api_error_of(error, st, message);
    if (st == WEFT_NOT_FOUND) error->status = 404;
    if (st == WEFT_IO) error->status = 503;
    return 0;
}

/* Whose they are: the key's or, without keys, those of the argument `user`, as requests name themselves. */
static int tenant_of_memories(const weft_server *s, const weft__http_request *r, const weft__server_caller *who,
                              char tenant[64], weft__api_error *error)
{
    if (!s->memories) return absent(error, NULL);
    return weft__server_learn_arguments(r, "user", NULL, error) &&
           weft__server_learn_tenant(s, who, weft__http_query(r, "user"), tenant, error);
}

static int list(weft_server *s, const char *tenant, weft__strbuf *out, weft__api_error *error)
{
    weft_error err = {0};
    weft__strbuf_puts(out, "{\"object\":\"list\",\"data\":[");
    const weft_status st = weft__learn_memories(s->learn, tenant, list_one, out, &err);
    weft__strbuf_puts(out, "]}");
    return !st || set_of_status(error, st, err.message);
}

static int put_one(weft_server *s, weft__http_request *r, const char *tenant, weft__strbuf *out, weft__api_error *error)
{
    weft__api_params a = {0};
    weft_error err = {0};
    size_t n;
    const char *body = weft__http_body(r, &n);
    int ok = weft__api_params_parse(&weft__api_table_memories, 1, body, n, &a, error);
    const int64_t now = weft__clock_unix_ms();
    weft__learn_memory m = {.number = a.memory_id,
                            .tenant = tenant,
                            .kind = a.memory_kind,
                            .key = a.memory_key ? a.memory_key : "",
                            .text = a.memory_text,
                            .source = "",
                            .time_ms = now,
                            .valid_from_ms = a.valid_from_ms ? a.valid_from_ms : now,
                            .valid_to_ms = a.valid_to_ms};
    if (ok && !weft__memory_may_put(s->memories, tenant, s->memories_per_hour, now)) {
        ok = weft__api_error_set(error, 429, NULL, "%lld memories were put within an hour, the most that one may",
                                 (long long)s->memories_per_hour);
        error->retry_s = RETRY_S;
    }
    if (ok) {
        const weft_status st = weft__memory_put(s->memories, &m, &m.number, &err);
        ok = !st || set_of_status(error, st, err.message);
    }
    if (ok) put_memory(out, &m);
    weft__api_params_free(&a);
    return ok;
}

void weft__server_memories_endpoint(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    char tenant[64];
    if (tenant_of_memories(s, r, who, tenant, &error) && weft__server_disk_enter(s, r, NULL, &error)) {
        if (!strcmp(weft__http_method(r), "POST")) put_one(s, r, tenant, &out, &error);
        else list(s, tenant, &out, &error);
        weft__server_disk_leave(s, r);
    }
    weft__server_reply_end(r, &out, &error);
}

static void drop(weft_server *s, const char *tenant, int64_t number, weft__strbuf *out, weft__api_error *error)
{
    weft_error err = {0};
    const weft_status st = weft__memory_drop(s->memories, tenant, number, &err);
    if (st) set_of_status(error, st, err.message);
    else weft__strbuf_printf(out, "{\"id\":%lld,\"object\":\"memory\",\"deleted\":true}", (long long)number);
}

void weft__server_memories_one(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    char tenant[64];
    const char *part = weft__http_path(r) + strlen("/v1/memories/");
    const size_t n = strlen(part);
    const int64_t number = n && n < 16 && strspn(part, "0123456789") == n ? strtoll(part, NULL, 10) : 0;
    int ok = tenant_of_memories(s, r, who, tenant, &error);
    if (ok && !number) ok = weft__api_error_set(&error, 404, NULL, "there is no memory of that id");
    if (ok && weft__server_disk_enter(s, r, NULL, &error)) {
        drop(s, tenant, number, &out, &error);
        weft__server_disk_leave(s, r);
    }
    weft__server_reply_end(r, &out, &error);
}
