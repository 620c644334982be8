// SPDX-License-Identifier: Apache-2.0
/* limits.c: see limits.h. */
#include "server/limits.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

static uint64_t real_ms(void)
{
    return weft__clock_ns() / 1000000;
}

void weft__server_limits_begin(weft__server_limits *l)
{
    pthread_mutex_init(&l->lock, NULL);
    l->now_ms = real_ms;
}

void weft__server_limits_end(weft__server_limits *l)
{
    pthread_mutex_destroy(&l->lock);
}

/* ---- buckets ---- */

enum { UNIT = 60000 /* of a level, in one of what is counted: a bucket gains per_minute units in each ms */ };
enum { MINUTE_MS = 60000 };

static void bucket_fill(weft__server_bucket *b, uint64_t now_ms)
{
    if (!b->per_minute || now_ms <= b->at_ms) return;
    const int64_t full = b->per_minute * UNIT, lacks = full - b->level;
    const uint64_t gone = now_ms - b->at_ms, needs = (uint64_t)(lacks / b->per_minute + (lacks % b->per_minute != 0));
    b->level = gone >= needs ? full : b->level + (int64_t)gone * b->per_minute;
    b->at_ms = now_ms;
}

/* Milliseconds until n may be taken; 0: now. */
static uint64_t bucket_wait(const weft__server_bucket *b, int64_t n)
{
    if (!b->per_minute) return 0;
    const int64_t want = (n < b->per_minute ? n : b->per_minute) * UNIT, lacks = want - b->level;
    return lacks <= 0 ? 0 : (uint64_t)(lacks / b->per_minute + (lacks % b->per_minute != 0));
}

static void bucket_take(weft__server_bucket *b, int64_t n)
{
    const int64_t full = b->per_minute * UNIT, least = INT64_MIN / 4;
    int64_t units, level;
    if (!b->per_minute) return;
    if (__builtin_mul_overflow(n, (int64_t)UNIT, &units) || __builtin_sub_overflow(b->level, units, &level))
        level = n > 0 ? least : full;
    b->level = level > full ? full : level < least ? least : level;
}

static void bucket_set(weft__server_bucket *b, int64_t per_minute, uint64_t now_ms)
{
    bucket_fill(b, now_ms);
    const int is_new = !b->per_minute;
    b->per_minute = per_minute;
    if (is_new || b->level > per_minute * UNIT) b->level = per_minute * UNIT;
    b->at_ms = now_ms;
}

/* ---- accounts ---- */

weft__server_account *weft__server_account_new(int level, const char *name)
{
    weft__server_account *a = weft__alloc_zero(1, sizeof *a);
    if (!a) return NULL;
    a->level = level;
    a->refs = 1;
    snprintf(a->name, sizeof a->name, "%s", name);
    return a;
}

weft__server_account *weft__server_account_hold(weft__server_limits *l, weft__server_account *a)
{
    pthread_mutex_lock(&l->lock);
    a->refs++;
    pthread_mutex_unlock(&l->lock);
    return a;
}

void weft__server_account_release(weft__server_limits *l, weft__server_account **a)
{
    if (!*a) return;
    pthread_mutex_lock(&l->lock);
    const int last = --(*a)->refs == 0;
    pthread_mutex_unlock(&l->lock);
    if (last) weft__free(*a);
    *a = NULL;
}

void weft__server_account_set(weft__server_limits *l, weft__server_account *a, int64_t requests_per_minute,
                              int64_t tokens_per_minute, int64_t at_once)
{
    pthread_mutex_lock(&l->lock);
    const uint64_t now = l->now_ms();
    bucket_set(&a->buckets[WEFT__SERVER_REQUESTS], requests_per_minute, now);
    bucket_set(&a->buckets[WEFT__SERVER_TOKENS], tokens_per_minute, now);
    a->most_at_once = at_once;
    pthread_mutex_unlock(&l->lock);
}

/* With the lock: milliseconds until the limit has room. */
static uint64_t account_wait(const weft__server_account *a, weft__server_limit limit, int64_t n_prompt)
{
    switch (limit) {
    case WEFT__SERVER_REQUESTS: return bucket_wait(&a->buckets[limit], 1);
    case WEFT__SERVER_TOKENS: return bucket_wait(&a->buckets[limit], n_prompt > 0 ? n_prompt : 1);
    default: return a->most_at_once && a->at_once >= a->most_at_once;
    }
}

static void refusal_of(weft__server_account *a, weft__server_limit limit, uint64_t now, uint64_t wait_ms,
                       weft__server_refusal *why)
{
    a->n_refused[limit]++;
    a->spared_ms = now + MINUTE_MS;
    why->level = a->level;
    why->limit = limit;
    why->most = limit == WEFT__SERVER_AT_ONCE ? a->most_at_once : a->buckets[limit].per_minute;
    memcpy(why->name, a->name, sizeof why->name);
    const uint64_t s = wait_ms / 1000 + (wait_ms % 1000 != 0);
    why->retry_s = s > INT32_MAX ? INT32_MAX : (int)s;
}

int weft__server_limits_enter(weft__server_limits *l, const weft__server_chain *c, int64_t n_prompt,
                              weft__server_refusal *why)
{
    weft__server_account *full = NULL;
    weft__server_limit limit = WEFT__SERVER_LIMITS;
    uint64_t longest = 0;
    pthread_mutex_lock(&l->lock);
    const uint64_t now = l->now_ms();
    for (int i = 0; i < c->n; i++) {
        weft__server_account *a = c->items[i];
        for (int k = 0; k < WEFT__SERVER_AT_ONCE; k++) bucket_fill(&a->buckets[k], now);
        for (int k = 0; k < WEFT__SERVER_LIMITS; k++) {
            const uint64_t wait = account_wait(a, (weft__server_limit)k, n_prompt);
            if (wait <= longest) continue;
            longest = wait;
            limit = (weft__server_limit)k;
            full = a;
        }
    }
    if (full) refusal_of(full, limit, now, longest, why);
    for (int i = 0; i < c->n && !full; i++) {
        bucket_take(&c->items[i]->buckets[WEFT__SERVER_REQUESTS], 1);
        bucket_take(&c->items[i]->buckets[WEFT__SERVER_TOKENS], n_prompt);
        c->items[i]->at_once++;
    }
    pthread_mutex_unlock(&l->lock);
    return !full;
}

void weft__server_limits_leave(weft__server_limits *l, const weft__server_chain *c, int64_t n_back)
{
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < c->n; i++) {
        weft__server_account *a = c->items[i];
        a->at_once--;
        a->n_requests += n_back < 0;
        if (n_back < 0) continue;
        bucket_take(&a->buckets[WEFT__SERVER_REQUESTS], -1);
        bucket_take(&a->buckets[WEFT__SERVER_TOKENS], -n_back);
    }
    pthread_mutex_unlock(&l->lock);
}

/* With the lock. Who was refused and comes again as soon as he is told to may not find what he waits for taken by what
 * is computed aside. */
static int has_room_aside(const weft__server_account *a, uint64_t now, int64_t n)
{
    const weft__server_bucket *tokens = &a->buckets[WEFT__SERVER_TOKENS];
    return now >= a->spared_ms && !account_wait(a, WEFT__SERVER_REQUESTS, 0) &&
           !account_wait(a, WEFT__SERVER_AT_ONCE, 0) && (!tokens->per_minute || tokens->level / UNIT >= n);
}

int weft__server_limits_enter_aside(weft__server_limits *l, const weft__server_chain *c, int64_t n, int64_t n_prompt)
{
    int room = 1;
    pthread_mutex_lock(&l->lock);
    const uint64_t now = l->now_ms();
    for (int i = 0; i < c->n; i++) {
        weft__server_account *a = c->items[i];
        for (int k = 0; k < WEFT__SERVER_AT_ONCE; k++) bucket_fill(&a->buckets[k], now);
        room &= has_room_aside(a, now, n + n_prompt);
    }
    for (int i = 0; i < c->n && room; i++) {
        bucket_take(&c->items[i]->buckets[WEFT__SERVER_TOKENS], n);
        c->items[i]->at_once++;
    }
    pthread_mutex_unlock(&l->lock);
    return room;
}

void weft__server_limits_leave_aside(weft__server_limits *l, const weft__server_chain *c, int64_t n, int64_t n_read)
{
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < c->n; i++) {
        weft__server_account *a = c->items[i];
        a->at_once--;
        a->n_prompt += (uint64_t)n_read;
        bucket_take(&a->buckets[WEFT__SERVER_TOKENS], n_read - n);
    }
    pthread_mutex_unlock(&l->lock);
}

void weft__server_limits_use(weft__server_limits *l, const weft__server_chain *c, uint64_t n_read, uint64_t n_generated)
{
    if (!c->n) return;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < c->n; i++) {
        c->items[i]->n_prompt += n_read;
        c->items[i]->n_generated += n_generated;
        bucket_take(&c->items[i]->buckets[WEFT__SERVER_TOKENS], (int64_t)n_generated);
    }
    pthread_mutex_unlock(&l->lock);
}

/* ---- /metrics ---- */

enum { SHOWN = 256 /* of a level */ };

static const char *const level_names[] = {"key", "team", "organisation"};

typedef struct account_metric {
    const char *name, *help, *type, *labels; /* labels: more of them */
    uint64_t (*value)(const weft__server_account *a);
} account_metric;

static uint64_t of_requests(const weft__server_account *a)
{
    return a->n_requests;
}

static uint64_t of_prompt(const weft__server_account *a)
{
    return a->n_prompt;
}

static uint64_t of_generated(const weft__server_account *a)
{
    return a->n_generated;
}

static uint64_t of_running(const weft__server_account *a)
{
    return (uint64_t)a->at_once;
}

static uint64_t of_refused_requests(const weft__server_account *a)
{
    return a->n_refused[WEFT__SERVER_REQUESTS];
}

static uint64_t of_refused_tokens(const weft__server_account *a)
{
    return a->n_refused[WEFT__SERVER_TOKENS];
}

static uint64_t of_refused_at_once(const weft__server_account *a)
{
    return a->n_refused[WEFT__SERVER_AT_ONCE];
}

static const char refused[] = "Requests that a limit of the account refused.";
static const account_metric metrics[] = {
    {"weft_account_requests_total", "Requests that ran, by key, team and organisation.", "counter", "", of_requests},
    {"weft_account_prompt_tokens_total", "Tokens of their prompts.", "counter", "", of_prompt},
    {"weft_account_generated_tokens_total", "Tokens generated for them.", "counter", "", of_generated},
    {"weft_account_running", "Requests that are answered now.", "gauge", "", of_running},
    {"weft_account_refused_total", refused, "counter", ",limit=\"requests-per-minute\"", of_refused_requests},
    {"weft_account_refused_total", NULL, "counter", ",limit=\"tokens-per-minute\"", of_refused_tokens},
    {"weft_account_refused_total", NULL, "counter", ",limit=\"concurrent\"", of_refused_at_once},
};

static void put_metric(const account_metric *m, weft__server_account *const *accounts, size_t n, weft__strbuf *out)
{
    uint64_t others[WEFT__SERVER_LEVELS] = {0};
    int shown[WEFT__SERVER_LEVELS] = {0};
    if (m->help) weft__strbuf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, m->type);
    for (size_t i = 0; i < n; i++) {
        const weft__server_account *a = accounts[i];
        if (shown[a->level]++ < SHOWN)
            weft__strbuf_printf(out, "%s{level=\"%s\",name=\"%s\"%s} %llu\n", m->name, level_names[a->level], a->name,
                                m->labels, (unsigned long long)m->value(a));
        else others[a->level] += m->value(a);
    }
    for (int level = 0; level < WEFT__SERVER_LEVELS; level++)
        if (shown[level] > SHOWN)
            weft__strbuf_printf(out, "%s{level=\"%s\",name=\"(other)\"%s} %llu\n", m->name, level_names[level],
                                m->labels, (unsigned long long)others[level]);
}

void weft__server_accounts_write(weft__server_limits *l, weft__server_account *const *accounts, size_t n,
                                 weft__strbuf *out)
{
    if (!n) return;
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) put_metric(&metrics[i], accounts, n, out);
    pthread_mutex_unlock(&l->lock);
}
