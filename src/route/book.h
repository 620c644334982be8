// SPDX-License-Identifier: Apache-2.0
/* book.h: the routers of all tenants: each learns from its own answers alone, and keeps a log from which it can be made
 * again (book.c, line.c).
 *
 * Invariants: nothing that one tenant is told of reaches another's choices. With a path each tenant has a file there,
 * with a line for each choice and reward in the order in which they came (weft__route_line); a file that is replayed
 * gives the router that wrote it. A disk that takes no line costs lines, never choices. Any thread. */
#ifndef WEFT_ROUTE_BOOK_H
#define WEFT_ROUTE_BOOK_H

#include "base/text.h"
#include "route/route.h"

enum {
    WEFT__ROUTE_NAME = 129,    /* bytes of an arm's name, with its NUL */
    WEFT__ROUTE_ID = 64,       /* of an answer's */
    WEFT__ROUTE_PENDING = 256, /* answers of a tenant that may still be rewarded; the oldest go */
    WEFT__ROUTE_TENANTS =
        1024,                /* in memory; those that asked least recently are closed, and read again from their logs */
    WEFT__ROUTE_LINE = 8192, /* bytes of a log's line */
    WEFT__ROUTE_LOG_MOST = 8 << 20 /* bytes of a log; when it is read, or grows beyond it, the older half goes */
};

/* ---- lines of a log (line.c) ---- */

typedef struct weft__route_line {
    int is_reward;
    char id[WEFT__ROUTE_ID]; /* of the answer; of a choice "" until its line is written */
    uint64_t n;              /* the rest but reward: of a choice */
    char arm[WEFT__ROUTE_NAME];
    double propensity;
    float x[WEFT__ROUTE_DIMS];
    double reward;
} weft__route_line;

/* {"n":3,"id":"chatcmpl-1","arm":"pirate","p":0.99,"x":{"0":1,"9":-0.5}} or {"id":"chatcmpl-1","reward":1}, and the
 * end of a line. A failure shows in out->failed. */
void weft__route_line_write(const weft__route_line *line, weft__strbuf *out);
/* text[0..n) without the line's end. WEFT_FORMAT, WEFT_NO_MEMORY. */
weft_status weft__route_line_read(const char *text, size_t n, weft__route_line *out, weft_error *err);

/* ---- routers by tenant (book.c) ---- */

typedef struct weft__route_book weft__route_book;

/* Where a tenant's log is: its path in out[0..room), 1; or 0: it cannot be told now: lines are lost, and it is asked
 * again at each use; the router is made again from the log when there is one. makes: it has one from now on; a reward
 * makes none, as its tenant may have been forgotten. */
typedef int weft__route_path(void *arg, const char *tenant, int makes, char *out, size_t room);

/* route.n_arms names, which are copied; path NULL: nothing is written. WEFT_ARGUMENT, WEFT_NO_MEMORY. */
weft_status weft__route_book_new(const weft__route_params *route, const char *const *arms, weft__route_path *path,
                                 void *arg, weft__route_book **out, weft_error *err);
/* Not while another thread is in it. */
void weft__route_book_free(weft__route_book **b);

/* Which arm answers the request `id` of a tenant (as weft__route_choose). Without memory the first that may, with
 * propensity 1, and nothing will be learned of it. */
void weft__route_book_choose(weft__route_book *b, const char *tenant, const char *id, const float *x, uint32_t allowed,
                             weft__route_choice *out);
/* 1: the answer of that id was worth `reward`, and what it says was learned, now or when it was said first. 0: the
 * tenant has no such answer that could be rewarded still, or there was no memory for it. */
int weft__route_book_reward(weft__route_book *b, const char *tenant, const char *id, double reward);
/* The router of a tenant that has one in memory, by weft__route_mark; 0: it has none. For tests. */
uint64_t weft__route_book_mark(weft__route_book *b, const char *tenant);
/* Takes away what it has of a tenant, and closes its log, which is the caller's to remove. */
void weft__route_book_forget(weft__route_book *b, const char *tenant);

typedef struct weft__route_book_stats {
    uint64_t choices, rewards, unknown_rewards, lost_lines, tenants;
    uint64_t of_arm[WEFT__ROUTE_ARMS]; /* choices */
} weft__route_book_stats;
void weft__route_book_stats_get(weft__route_book *b, weft__route_book_stats *out);

#endif
