// SPDX-License-Identifier: Apache-2.0
/* limits.h: what organisations, teams and keys may use, and what they have used.
 *
 * Rates are buckets that hold a minute's worth and fill as time goes by, in whole numbers. What a request generates is
 * known only later: it is taken all the same, and what was taken too early is waited for by the next ones. Any thread:
 * one lock is over all accounts. */
#ifndef WEFT_SERVER_LIMITS_H
#define WEFT_SERVER_LIMITS_H

#include <pthread.h>
#include <stdint.h>

#include "base/text.h"

enum { WEFT__SERVER_LEVELS = 3 /* key, team, organisation */, WEFT__SERVER_ACCOUNT_NAME = 64 };
typedef enum weft__server_limit {
    WEFT__SERVER_REQUESTS,
    WEFT__SERVER_TOKENS,
    WEFT__SERVER_AT_ONCE,
    WEFT__SERVER_LIMITS
} weft__server_limit;

typedef struct weft__server_bucket {
    int64_t per_minute; /* 0: no limit */
    int64_t level;      /* of what may be used now, 60,000ths; below 0: what was used too early */
    uint64_t at_ms;     /* when it had that level */
} weft__server_bucket;

typedef struct weft__server_account {
    int level; /* 0: a key's, 1: a team's, 2: an organisation's */
    char name[WEFT__SERVER_ACCOUNT_NAME];
    int refs;
    weft__server_bucket buckets[WEFT__SERVER_AT_ONCE];
    int64_t most_at_once, at_once; /* most 0: no limit */
    uint64_t n_requests, n_prompt, n_generated, n_refused[WEFT__SERVER_LIMITS];
    uint64_t spared_ms; /* until then nothing is computed aside, as it refused a request */
} weft__server_account;

/* Those that a request counts to: the key's, its team's, its organisation's. */
typedef struct weft__server_chain {
    weft__server_account *items[WEFT__SERVER_LEVELS];
    int n;
} weft__server_chain;

typedef struct weft__server_limits {
    pthread_mutex_t lock;
    uint64_t (*now_ms)(void); /* a clock that never goes back; asked with the lock */
} weft__server_limits;

void weft__server_limits_begin(weft__server_limits *l);
void weft__server_limits_end(weft__server_limits *l);

/* Without limits and with nothing used, one reference; NULL: no memory. */
weft__server_account *weft__server_account_new(int level, const char *name);
weft__server_account *weft__server_account_hold(weft__server_limits *l, weft__server_account *a);
void weft__server_account_release(weft__server_limits *l, weft__server_account **a);
/* Numbers 0: none. A limit that is new begins with a full bucket; what was used up stays so. */
void weft__server_account_set(weft__server_limits *l, weft__server_account *a, int64_t requests_per_minute,
                              int64_t tokens_per_minute, int64_t at_once);

typedef struct weft__server_refusal {
    int level;
    char name[WEFT__SERVER_ACCOUNT_NAME];
    weft__server_limit limit;
    int64_t most;
    int retry_s; /* until all levels have room, as far as is known */
} weft__server_refusal;

/* A request with a prompt of n_prompt tokens begins: 1, and it counts at each level; or 0, it counts at none, and why
 * names the limit that lasts longest. A prompt of more than a bucket holds begins when that is full. */
int weft__server_limits_enter(weft__server_limits *l, const weft__server_chain *c, int64_t n_prompt,
                              weft__server_refusal *why);
/* It has ended. n_back: tokens of its prompt that are given back, and with them the request, since it never ran; -1: it
 * ran. */
void weft__server_limits_leave(weft__server_limits *l, const weft__server_chain *c, int64_t n_back);
/* Before a request begins, something of n tokens is to be computed for it, which it can do without. 1: each level has
 * room for that and then for the request, of n_prompt tokens at most, and has refused none for a minute: it runs, and
 * its tokens are taken. 0: nothing counts, as a refusal neither. */
int weft__server_limits_enter_aside(weft__server_limits *l, const weft__server_chain *c, int64_t n, int64_t n_prompt);
/* It has ended; n_read of its tokens were computed, which the account has as those of prompts, and the others are given
 * back. */
void weft__server_limits_leave_aside(weft__server_limits *l, const weft__server_chain *c, int64_t n, int64_t n_read);
/* Tokens of its prompt that were read, for the account alone; and those that it generated. */
void weft__server_limits_use(weft__server_limits *l, const weft__server_chain *c, uint64_t n_read,
                             uint64_t n_generated);

/* Counters of accounts[0..n), in Prometheus' format; of as many of a level as have room, and the others together. */
void weft__server_accounts_write(weft__server_limits *l, weft__server_account *const *accounts, size_t n,
                                 weft__strbuf *out);

#endif
