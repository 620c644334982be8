// SPDX-License-Identifier: Apache-2.0
/* sched.h: which requests run, and which rows each step has. Knows counts of tokens, never their values, and no model.
 *
 * The engine thread drives it: weft__sched_next says what the next step computes, the engine computes and samples, and
 * weft__sched_done counts it. Deterministic: the same calls with the same times give the same plans. Memory is behind
 * weft__sched_store.
 *
 * What is promised:
 * - Rows. Every decoding request has one row in every step. While a request decodes, a step has at most `chunk` prompt
 *   rows in all; a step never has more than step_rows. Rows of drafts come last, where there is room.
 * - Shares. Among requests of one priority the tenant that was served least is next. Served are the prompt tokens
 *   computed (not those found in the cache, not those computed again after a preemption) and decode_cost for each
 *   generated token. A tenant that begins to wait gets no credit for the past: start-time fair queueing (Goyal, Vin,
 *   Cheng 1996)
 *   with the counters of Sheng et al., "Fairness in Serving Large Language Models" (2024); the virtual time also
 *   advances with the mean service, so that a stream of new names overtakes no tenant for ever. Of one tenant and
 *   priority, first come, first served.
 * - Priorities. Higher first, for places and for prompt rows; a level that was passed over for age_us and by four
 *   starts per level of difference is due. No request waits for ever.
 * - Memory. A request starts when its known tokens and `reserve` more fit into what is free or evictable, after all
 *   running ones got as much. When pages run out nevertheless, the one that ranks last gives its own up: lowest
 *   priority, then started last; each preemption lifts it by four levels up to the highest, so that the oldest are not
 *   preempted for ever. It resumes before those that wait with the same or a lower priority. Its tokens are the
 *   engine's and stay; what was computed of them is computed again, unless the store kept it. While the store brings
 *   that back the request has its place and its pages, and no rows; others do not wait for it.
 *
 * Nothing is allocated after weft__sched_create. A step costs O(running) and O(log waiting) for each request that
 * starts or ends. Owner: the engine thread; nothing here is thread-safe. Times are microseconds of one monotonic clock,
 * given by the caller. */
#ifndef WEFT_SCHED_SCHED_H
#define WEFT_SCHED_SCHED_H

#include "weft/error.h"

typedef struct weft__sched weft__sched;

/* Priorities beyond these count as these. */
enum { WEFT__SCHED_PRIORITY_MIN = -8, WEFT__SCHED_PRIORITY_MAX = 7 };

typedef struct weft__sched_limits {
    int32_t n_slots;   /* requests that have started and not finished, preempted ones included; >= 1 */
    int32_t step_rows; /* rows of a step; >= n_slots */
    int32_t chunk;     /* prompt rows of a step while a request decodes; >= 1 */
    int32_t max_queue; /* requests accepted beyond n_slots; >= 1. One tenant alone gets 8/9 of it: others find room */
    int32_t n_ctx;     /* tokens of one request, prompt and generated; >= 1 */
    /* tokens that each running request should still be able to grow by when another one starts; >= 0 */
    int32_t reserve;
    int32_t decode_cost; /* what a generated token counts in prompt tokens; >= 1 */
    uint64_t age_us;     /* waiting this long makes up for one level of priority; >= 1 */
} weft__sched_limits;

typedef enum weft__sched_release {
    WEFT__SCHED_DETACHED,  /* match was called, but the request does not start yet: unpin what was found */
    WEFT__SCHED_PREEMPTED, /* it will be back: match and reserve will be called again */
    WEFT__SCHED_FINISHED   /* for good, also what was swapped; once for each request that ever started */
} weft__sched_release;

enum { WEFT__SCHED_LATER = -1 };

/* Memory of sequences, in pages of n_groups kinds; where pages of a kind are not alike, all of these numbers may be of
 * bytes. `user` is the request's. A sequence has a length: the tokens it has
 * keys and values of; match sets it, the engine advances it after each step. */
typedef struct weft__sched_store {
    void *arg;
    int32_t n_groups;
    /* Pages of a group in all, and those that are free or could be made free at once (cached, but pinned by no
     * sequence). */
    int64_t (*capacity)(void *arg, int32_t group);
    int64_t (*available)(void *arg, int32_t group);
    /* Pages that its sequence needs at most to reach n_tokens when it is empty, in steps of at most step_rows. */
    int64_t (*pages)(void *arg, void *user, int32_t group, int32_t n_tokens);
    /* Pages that this one takes at most to reach n_tokens from what it holds now; what copying a shared page takes
     * included. */
    int64_t (*more)(void *arg, void *user, int32_t group, int32_t n_tokens);
    /* Gives the empty sequence the longest cached prefix of at most n_max tokens, pinned; returns its length. May be
     * called again before anything was computed; it then returns the new length, at least the old one. */
    int32_t (*match)(void *arg, void *user, int32_t n_max);
    /* Makes room for n_tokens in all, evicting what it must. WEFT_LIMIT: not enough pages (the sequence is as before;
     * others are preempted and it is asked again); any other failure ends the request. */
    weft_status (*reserve)(void *arg, void *user, int32_t n_tokens, weft_error *err);
    /* Empties the sequence. Returns 1 when, WEFT__SCHED_PREEMPTED, its contents were kept elsewhere; otherwise 0. */
    int (*release)(void *arg, void *user, weft__sched_release how);
    /* Brings back what release kept, for a sequence whose pages fit; returns its new length, 0 to n_max (the rest is
     * computed again: the old length, or less, when that failed). WEFT__SCHED_LATER: it is on its way, and the sequence
     * has its pages; asked again in the next step, until a length comes or the request is released, which may keep it
     * once more. NULL when release never keeps anything. */
    int32_t (*restore)(void *arg, void *user, int32_t n_max);
} weft__sched_store;

typedef enum weft__sched_why {
    WEFT__SCHED_ENDED,     /* weft__sched_end */
    WEFT__SCHED_LENGTH,    /* max_new tokens were generated; or the prompt is read and max_new is 0 */
    WEFT__SCHED_CANCELLED, /* weft__sched_cancel */
    WEFT__SCHED_TIMEOUT,   /* its deadline passed */
    WEFT__SCHED_FAILED     /* the store failed: see err */
} weft__sched_why;

/* Called inside weft__sched_next and weft__sched_done. Of the functions below they may call only weft__sched_cancel. */
typedef struct weft__sched_hooks {
    void *arg;
    void (*began)(void *arg, void *user); /* it left the queue: once, before its first rows; may be NULL */
    /* Exactly once for each request that was accepted, after its memory was released; its id is void. err: FAILED
     * only. */
    void (*finished)(void *arg, void *user, weft__sched_why why, const weft_error *err);
} weft__sched_hooks;

typedef struct weft__sched_request {
    void *user;           /* the caller's; given back with each row, store call and hook */
    uint64_t tenant;      /* any key, a hash of the name: those that collide share */
    int32_t priority;     /* larger first */
    int32_t n_prompt;     /* tokens; >= 1 */
    int32_t max_new;      /* tokens to generate at most; 0: the prompt is only read */
    uint64_t deadline_us; /* 0: none */
    /* tokens that it holds at a time at most, below which weft__sched_restart brings it back; 0: all of them */
    int32_t n_most;
} weft__sched_request;

/* Rows of one request in a step: its tokens first .. first + n - 1, in order. Known tokens are the prompt and all
 * generated. */
typedef struct weft__sched_item {
    uint64_t id;
    void *user;
    int32_t first, n;
    int32_t decode;  /* 1: n is 1 + n_draft, and the first token is the one generated last */
    int32_t sample;  /* 1: the row before the drafts is the last known token: sample the next one from it */
    int32_t kept;    /* > 0: it was restarted with so many */
    int32_t n_draft; /* rows behind the last known token, of tokens that may follow it */
} weft__sched_item;

typedef struct weft__sched_plan {
    const weft__sched_item *items; /* those that decode first; [n_items] */
    int32_t n_items, n_rows, n_prompt_rows;
} weft__sched_plan;

/* Copies limits, store and hooks. WEFT_ARGUMENT names the limit that makes no sense. */
weft_status weft__sched_create(const weft__sched_limits *limits, const weft__sched_store *store,
                               const weft__sched_hooks *hooks, weft__sched **out, weft_error *err);
/* Calls neither hooks nor store: first cancel all and call weft__sched_next once. */
void weft__sched_destroy(weft__sched **sched);

/* From the next plan on, limits->chunk is n, 1 to step_rows. Between weft__sched_done and weft__sched_next. */
void weft__sched_set_chunk(weft__sched *s, int32_t n);
/* Puts a request into the queue; *id is never 0. WEFT_BUSY: no room, with an estimate of when there will be in
 * *retry_after_s (may be NULL; see weft__sched_retry_after). WEFT_LIMIT: it could never fit, WEFT_ARGUMENT: it makes no
 * sense; both by name. */
weft_status weft__sched_submit(weft__sched *s, const weft__sched_request *request, uint64_t now_us, uint64_t *id,
                               double *retry_after_s, weft_error *err);
/* 1 when a request of that tenant would be accepted now, as far as room goes, if n_coming others were in the queue
 * already, n_own of them that tenant's. */
int weft__sched_has_room(weft__sched *s, uint64_t tenant, int32_t n_own, int32_t n_coming);
/* Requests of one tenant that are accepted together when there are no others, started or not. */
int32_t weft__sched_max_accepted(const weft__sched *s);
/* Counts a request that is turned away for want of room, and returns the seconds after which it should find some, 0.1
 * .. 60: each waits for a place of its own, at the pace at which places became free lately. When no request waits,
 * those turned away before are forgotten. */
double weft__sched_retry_after(weft__sched *s, uint64_t now_us);
/* The request has no row after the step that is being computed: it finishes with the next weft__sched_done or _next.
 * Unknown and finished ids are ignored, and so is all but the first reason to finish. */
void weft__sched_cancel(weft__sched *s, uint64_t id);
void weft__sched_cancel_all(weft__sched *s);
/* As cancel, but finishes as ENDED: an end token, a stop string. */
void weft__sched_end(weft__sched *s, uint64_t id);

/* Finishes what is cancelled or expired, starts and preempts requests, reserves memory for the rows it picks. The plan
 * is valid until the next call; n_items is 0 when no request is left, or when all that run wait for what the store
 * brings back. After a plan with items, weft__sched_done must follow. */
const weft__sched_plan *weft__sched_next(weft__sched *s, uint64_t now_us);
/* Adds n rows of a draft to item k of the plan, which decodes; no more than weft__sched_draft_room says. The caller has
 * memory for them. Between weft__sched_next and the step; once for an item. */
void weft__sched_draft(weft__sched *s, int32_t k, int32_t n);
/* Rows of drafts that item k may have: the step has room, and the request may still generate one token more. */
int32_t weft__sched_draft_room(const weft__sched *s, int32_t k);
/* Of that request's rows of a draft the first n_kept have tokens that were sampled, and behind each of them another one
 * was sampled; the others count as not computed. Between the step and weft__sched_done, once for an item with a draft;
 * before weft__sched_defer. */
void weft__sched_drafted(weft__sched *s, uint64_t id, int32_t n_kept);
/* No token was sampled for that request in this step: its last row counts as not computed, and comes again in the next
 * step. Between weft__sched_next and weft__sched_done, at most once, for an item with `sample`. */
void weft__sched_defer(weft__sched *s, uint64_t id);
/* From the next step on that request's known tokens are n_known others, which are computed as a prompt is, and paid for
 * like one; what it held was given up by the caller. As above; what was sampled in this step is among them. */
void weft__sched_restart(weft__sched *s, uint64_t id, int32_t n_known);
/* The plan's rows were computed, and one token was sampled where it said so, but for those deferred; and one for each
 * row of a draft that was kept. */
void weft__sched_done(weft__sched *s, uint64_t now_us);

typedef struct weft__sched_stats {
    int32_t n_queued, n_prefilling, n_decoding, n_preempted, n_tenants; /* now */
    int32_t n_restoring;                                                /* of n_prefilling */
    uint64_t submitted, refused, started, preempted;                    /* since the start; refused: WEFT_BUSY */
    uint64_t finished[5];                                               /* by weft__sched_why */
    uint64_t steps, prompt_rows, decode_rows, recomputed_rows, cached_tokens;
    uint64_t deferred;
    uint64_t draft_rows; /* of decode_rows */
} weft__sched_stats;
void weft__sched_get_stats(const weft__sched *s, weft__sched_stats *out);

#endif
