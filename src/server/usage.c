/* usage.c: what was asked for and used, by key and by adapters, for /metrics. Any thread.
 *
 * Invariant: the labels that there ever are have a bound: KEYS of them, and of each key ADAPTERS, whatever names it gives to its adapters; all
 * further ones are "(other)", which is no name. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "server/server.h"

enum { KEYS = 256, ADAPTERS = 8 };

struct weft__usage_row {
    char key[32], adapters[WEFT__ADAPTERS_SHOWN];
    weft__used used;
};

static const char other[] = "(other)";

void weft__usage_begin(weft__usage *u)
{
    pthread_mutex_init(&u->lock, NULL);
}

void weft__usage_free(weft__usage *u)
{
    weft__free(u->rows);
    pthread_mutex_destroy(&u->lock);
}

/* With the lock: the row of exactly these; NULL: there is none. *n_of_key: rows of the key. */
static struct weft__usage_row *find(weft__usage *u, const char *key, const char *adapters, int *n_of_key)
{
    *n_of_key = 0;
    for (size_t i = 0; i < u->n; i++) {
        struct weft__usage_row *row = &u->rows[i];
        if (strcmp(row->key, key)) continue;
        if (!strcmp(row->adapters, adapters)) return row;
        ++*n_of_key;
    }
    return NULL;
}

/* With the lock: the row that these count to, a new one where there is room for it. NULL: no memory. */
static struct weft__usage_row *row_of(weft__usage *u, const char *key, const char *adapters)
{
    int n_of_key;
    struct weft__usage_row *row = find(u, key, adapters, &n_of_key);
    if (row) return row;
    if (!n_of_key && u->n_keys >= KEYS && strcmp(key, other)) return row_of(u, other, other);
    if (n_of_key >= ADAPTERS && strcmp(adapters, other)) return row_of(u, key, other);
    if (!weft__grow(&u->rows, &u->capacity, u->n + 1, sizeof *u->rows)) return NULL;
    row = &u->rows[u->n++];
    u->n_keys += !n_of_key;
    *row = (struct weft__usage_row){0};
    strncpy(row->key, key, sizeof row->key - 1);
    strncpy(row->adapters, adapters, sizeof row->adapters - 1);
    return row;
}

void weft__usage_add(weft__usage *u, size_t *place, const char *key, const char *adapters, const weft__used *used)
{
    pthread_mutex_lock(&u->lock);
    struct weft__usage_row *row = *place ? &u->rows[*place - 1] : row_of(u, key, adapters);
    if (row) {
        *place = (size_t)(row - u->rows) + 1;
        row->used.requests += used->requests;
        row->used.prompt_tokens += used->prompt_tokens;
        row->used.cached_tokens += used->cached_tokens;
        row->used.generated_tokens += used->generated_tokens;
    }
    pthread_mutex_unlock(&u->lock);
}

static void put(const weft__usage *u, const char *key, const char *name, const char *help, size_t offset, weft__text *out)
{
    weft__text_printf(out, "# HELP %s %s\n# TYPE %s counter\n", name, help, name);
    for (size_t i = 0; i < u->n; i++) {
        const struct weft__usage_row *row = &u->rows[i];
        uint64_t value;
        if (*key && strcmp(row->key, key)) continue;
        memcpy(&value, (const char *)&row->used + offset, sizeof value);
        weft__text_printf(out, "%s{key=\"%s\",adapter=\"%s\"} %llu\n", name, row->key, row->adapters, (unsigned long long)value);
    }
}

void weft__usage_write(weft__usage *u, const char *key, weft__text *out)
{
    pthread_mutex_lock(&u->lock);
    put(u, key, "weft_key_requests_total", "Answers that ended, by key and adapters.", offsetof(weft__used, requests), out);
    put(u, key, "weft_key_prompt_tokens_total", "Tokens of their prompts.", offsetof(weft__used, prompt_tokens), out);
    put(u, key, "weft_key_cached_tokens_total", "Tokens of those that were there already.", offsetof(weft__used, cached_tokens),
        out);
    put(u, key, "weft_key_generated_tokens_total", "Tokens generated for them.", offsetof(weft__used, generated_tokens), out);
    pthread_mutex_unlock(&u->lock);
}
