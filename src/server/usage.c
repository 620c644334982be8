// SPDX-License-Identifier: Apache-2.0
/* usage.c: what was asked for and used, by key and by adapters, for /metrics. Any thread.
 *
 * Invariant: the labels that there ever are have a bound: KEYS of them, and of each key ADAPTERS, whatever names it
 * gives to its adapters; all further ones are "(other)", which is no name. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "server/server.h"

enum { KEYS = 256, ADAPTERS = 8 };

struct weft__server_usage_row {
    char key[32], adapters[WEFT__API_ADAPTERS_SHOWN];
    weft__server_used used;
};

static const char other[] = "(other)";

void weft__server_usage_begin(weft__server_usage *u)
{
    pthread_mutex_init(&u->lock, NULL);
}

void weft__server_usage_free(weft__server_usage *u)
{
    weft__free(u->rows);
    pthread_mutex_destroy(&u->lock);
}

/* With the lock: the row of exactly these; NULL: there is none. *n_of_key: rows of the key. */
static struct weft__server_usage_row *usage_find(weft__server_usage *u, const char *key, const char *adapters,
                                                 int *n_of_key)
{
    *n_of_key = 0;
    for (size_t i = 0; i < u->n; i++) {
        struct weft__server_usage_row *row = &u->rows[i];
        if (strcmp(row->key, key)) continue;
        if (!strcmp(row->adapters, adapters)) return row;
        ++*n_of_key;
    }
    return NULL;
}

/* With the lock: the row that these count to, a new one where there is room for it. NULL: no memory. */
static struct weft__server_usage_row *row_of(weft__server_usage *u, const char *key, const char *adapters)
{
    int n_of_key;
    struct weft__server_usage_row *row = usage_find(u, key, adapters, &n_of_key);
    if (row) return row;
    if (!n_of_key && u->n_keys >= KEYS && strcmp(key, other)) return row_of(u, other, other);
    if (n_of_key >= ADAPTERS && strcmp(adapters, other)) return row_of(u, key, other);
    if (!weft__grow(&u->rows, &u->capacity, u->n + 1, sizeof *u->rows)) return NULL;
    row = &u->rows[u->n++];
    u->n_keys += !n_of_key;
    *row = (struct weft__server_usage_row){0};
    strncpy(row->key, key, sizeof row->key - 1);
    strncpy(row->adapters, adapters, sizeof row->adapters - 1);
    return row;
}

void weft__server_usage_add(weft__server_usage *u, size_t *place, const char *key, const char *adapters,
                            const weft__server_used *used)
{
    pthread_mutex_lock(&u->lock);
    struct weft__server_usage_row *row = *place ? &u->rows[*place - 1] : row_of(u, key, adapters);
    if (row) {
        *place = (size_t)(row - u->rows) + 1;
        row->used.requests += used->requests;
        row->used.prompt_tokens += used->prompt_tokens;
        row->used.cached_tokens += used->cached_tokens;
        row->used.generated_tokens += used->generated_tokens;
    }
    pthread_mutex_unlock(&u->lock);
}

static void usage_put(const weft__server_usage *u, const char *key, const char *name, const char *help, size_t offset,
                      weft__strbuf *out)
{
    weft__strbuf_printf(out, "# HELP %s %s\n# TYPE %s counter\n", name, help, name);
    for (size_t i = 0; i < u->n; i++) {
        const struct weft__server_usage_row *row = &u->rows[i];
        uint64_t value;
        if (*key && strcmp(row->key, key)) continue;
        memcpy(&value, (const char *)&row->used + offset, sizeof value);
        weft__strbuf_printf(out, "%s{key=\"%s\",adapter=\"%s\"} %llu\n", name, row->key, row->adapters,
                            (unsigned long long)value);
    }
}

void weft__server_usage_write(weft__server_usage *u, const char *key, weft__strbuf *out)
{
    pthread_mutex_lock(&u->lock);
    usage_put(u, key, "weft_key_requests_total", "Answers that ended, by key and adapters.",
              offsetof(weft__server_used, requests), out);
    usage_put(u, key, "weft_key_prompt_tokens_total", "Tokens of their prompts.",
              offsetof(weft__server_used, prompt_tokens), out);
    usage_put(u, key, "weft_key_cached_tokens_total", "Tokens of those that were there already.",
              offsetof(weft__server_used, cached_tokens), out);
    usage_put(u, key, "weft_key_generated_tokens_total", "Tokens generated for them.",
              offsetof(weft__server_used, generated_tokens), out);
    pthread_mutex_unlock(&u->lock);
}
