// SPDX-License-Identifier: Apache-2.0
/* teach_loop.c: see teach_loop.h: the thread, its pace and its queue. `lock` has the queue, the counts and which
 * tenants there are; what is known of one is the thread's while it works for it. */
#include "learn/teach_loop.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "learn/teach_parts.h"

enum { REST_MOST_NS = 1000000000, LOOK_NS = 2000000 /* while others run and there is no share */ };
/* Where a disk took nothing: until the same is tried again, twice as long each time. */
#define PAUSE_NS 100000000ull
#define PAUSE_MOST_NS 1800000000000ull

void weft__teach_loop_params_default(weft__teach_loop_params *p)
{
    *p = (weft__teach_loop_params){.share = 0.2f, .neighbours = 32};
    weft__teach_options_default(&p->options);
    weft__gate_bounds_default(&p->bounds);
    p->options.n_threads = 1;
}

/* ---- pace ---- */

static int is_over(weft__teach_loop *l)
{
    pthread_mutex_lock(&l->lock);
    const int over = l->ends || l->gives_up;
    pthread_mutex_unlock(&l->lock);
    return over;
}

/* Rests for so long, or until what is in work is to be given up. */
static void rest(weft__teach_loop *l, uint64_t ns)
{
    const uint64_t until = weft__clock_ns() + ns;
    pthread_mutex_lock(&l->lock);
    while (!l->ends && !l->gives_up && weft__clock_ns() < until) weft__clock_wait(&l->changed, &l->lock, until);
    pthread_mutex_unlock(&l->lock);
}

int weft__teach_pace(void *loop)
{
    weft__teach_loop *l = loop;
    const float share = l->p.share;
    while (l->p.hooks.busy && l->p.hooks.busy(l->p.hooks.arg) && !is_over(l)) {
        const uint64_t worked = weft__clock_thread_ns() - l->worked_ns;
        if (share >= 1) break;
        if (share > 0) weft__background_idle(&l->idler);
        if (share > 0) {
            const double ns = (double)worked * (1 - (double)share) / (double)share;
            rest(l, ns < REST_MOST_NS ? (uint64_t)ns : REST_MOST_NS);
            break;
        }
        rest(l, LOOK_NS);
    }
    l->worked_ns = weft__clock_thread_ns();
    const int over = is_over(l);
    if (over) weft__background_lift(&l->idler); /* who waits may have looked for it just before it was idle */
    return over;
}

/* ---- the thread ---- */

static void job_free(weft__teach_job *j)
{
    weft__teach_own_free(&j->event);
    weft__free(j);
}

static int learns(const weft__teach_job *j)
{
    return j->what == WEFT__TEACH_CORRECTION || j->what == WEFT__TEACH_CONSOLIDATE;
}

/* With the lock. NULL: no memory. */
static weft__teach_tenant *tenant_of(weft__teach_loop *l, const char *tenant, const char *name)
{
    for (size_t i = 0; i < l->n_tenants; i++)
        if (!strcmp(l->tenant[i]->tenant, tenant) && !strcmp(l->tenant[i]->name, name)) return l->tenant[i];
    if (!weft__grow(&l->tenant, &l->tenants_room, l->n_tenants + 1, sizeof *l->tenant)) return NULL;
    weft__teach_tenant *t = weft__alloc_zero(1, sizeof *t);
    if (!t) return NULL;
    snprintf(t->tenant, sizeof t->tenant, "%s", tenant);
    snprintf(t->name, sizeof t->name, "%s", name);
    return l->tenant[l->n_tenants++] = t;
}

static void tenant_drop(weft__teach_tenant *t)
{
    for (weft__teach_job *j = t->queue.first, *next; j; j = next) {
        next = j->next;
        job_free(j);
    }
    weft__teach_tenant_free(t);
    weft__free(t);
}

static void failed(weft__teach_loop *l, const weft_error *err)
{
    if (err->status == WEFT_CANCELLED) return;
    weft__log(WEFT__LOG_WARN, "learning failed: %s", err->message);
    pthread_mutex_lock(&l->lock);
    l->stats.n_failed++;
    snprintf(l->stats.fault, sizeof l->stats.fault, "%.*s", (int)sizeof l->stats.fault - 1, err->message);
    pthread_mutex_unlock(&l->lock);
}

/* With the lock: whose turn it is, of those for whom something waits; NULL: nobody's before *until (0: for ever). Who
 * waited longest for something to be learned comes first, so that one with many corrections keeps nobody from theirs.
 */
static weft__teach_tenant *next_tenant(const weft__teach_loop *l, uint64_t *until)
{
    const uint64_t now = weft__clock_ns();
    weft__teach_tenant *next = NULL;
    *until = 0;
    for (size_t i = 0; i < l->n_tenants; i++) {
        weft__teach_tenant *t = l->tenant[i];
        if (!t->queue.first) continue;
        if (t->again_ns > now) *until = !*until || t->again_ns < *until ? t->again_ns : *until;
        else if (!next || t->turn < next->turn) next = t;
    }
    return next;
}

/* With the lock. */
static weft__teach_job *take_job(weft__teach_loop *l, weft__teach_tenant *t)
{
    weft__teach_job *j = t->queue.first;
    t->queue.first = j->next;
    if (!j->next) t->queue.last = NULL;
    if (learns(j)) t->turn = ++l->n_turns;
    return j;
}

/* Behind others' turns, before its own tenant's next: whoever goes to and fro meanwhile keeps nobody waiting. */
static void put_back(weft__teach_tenant *t, weft__teach_job *j)
{
    j->next = t->queue.first;
    t->queue.first = j;
    if (!j->next) t->queue.last = j;
}

static void end_job(weft__teach_loop *l, weft__teach_tenant *t, weft__teach_job *j)
{
    l->n_waiting--;
    l->n_asked -= learns(j);
    t->queue.n_asked -= learns(j);
    job_free(j);
}

/* With the lock: what waits for it is not wanted any more. What is in work stays counted. */
static void drop_queue(weft__teach_loop *l, weft__teach_tenant *t)
{
    for (weft__teach_job *j = t->queue.first, *next; j; j = next) {
        next = j->next;
        l->n_waiting--;
        l->n_asked -= learns(j);
        t->queue.n_asked -= learns(j);
        job_free(j);
    }
    t->queue.first = t->queue.last = NULL;
}

/* With the lock, behind what was tried: 1: it is to be tried again, before anything that came after it, which would be
 * taken for all there is by the next process. */
static int is_to_be_tried(weft__teach_loop *l, weft__teach_tenant *t, weft_status st)
{
    const int is_disk = st == WEFT_IO || st == WEFT_BUSY; /* full, or its writer is behind */
    if (!is_disk || !l->p.tries_again) {
        t->again_ns = t->pause_ns = 0;
        t->is_over = is_disk;
        if (is_disk) drop_queue(l, t);
        return 0;
    }
    t->pause_ns = !t->pause_ns ? PAUSE_NS : t->pause_ns < PAUSE_MOST_NS ? 2 * t->pause_ns : t->pause_ns;
    t->again_ns = weft__clock_ns() + t->pause_ns;
    return 1;
}

static void *loop_run(void *arg)
{
    weft__teach_loop *l = arg;
    weft__teach_tenant *t;
    uint64_t until;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->ends && !(t = next_tenant(l, &until))) weft__clock_wait(&l->changed, &l->lock, until);
        if (l->ends) break;
        weft__teach_job *j = take_job(l, t);
        l->now = t;
        l->what = j->what;
        pthread_mutex_unlock(&l->lock);
        weft_error err = {0};
        int again = 0;
        const weft_status st = weft__teach_work(l, t, j, &again, &err);
        if (st) failed(l, &err);
        pthread_mutex_lock(&l->lock);
        again |= is_to_be_tried(l, t, st);
        if (again && !l->gives_up) put_back(t, j);
        else end_job(l, t, j);
        l->now = NULL;
        l->gives_up = 0;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

weft_status weft__teach_loop_new(const weft__teach_loop_params *params, weft__teach_loop **out, weft_error *err)
{
    weft__teach_loop *l = *out = weft__alloc_zero(1, sizeof *l);
    if (!l) return weft__teach_no_memory(err);
    l->p = *params;
    pthread_mutex_init(&l->lock, NULL);
    weft__clock_cond_init(&l->changed);
    weft_status st =
        params->share >= 0 && params->share <= 1
            ? WEFT_OK
            : weft_fail(err, WEFT_ARGUMENT, "a share of %g; it must be between 0 and 1", (double)params->share);
    if (!st) st = weft__versions_create(params->hooks.note, params->hooks.arg, &l->versions, err);
    if (!st && weft__thread_start(&l->thread, loop_run, l)) st = weft_fail(err, WEFT_IO, "no thread to learn with");
    else if (!st) l->has_thread = 1;
    if (st) weft__teach_loop_free(out);
    return st;
}

void weft__teach_loop_free(weft__teach_loop **pl)
{
    weft__teach_loop *l = pl ? *pl : NULL;
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    l->ends = 1;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    weft__background_lift(&l->idler);
    if (l->has_thread) pthread_join(l->thread, NULL);
    for (size_t i = 0; i < l->n_tenants; i++) tenant_drop(l->tenant[i]);
    weft__free(l->tenant);
    weft__versions_destroy(&l->versions);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    weft__free(l);
    *pl = NULL;
}

void weft__teach_loop_forget(weft__teach_loop *l, const char *tenant)
{
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->n_tenants; i++)
        if (!strcmp(l->tenant[i]->tenant, tenant)) drop_queue(l, l->tenant[i]);
    while (l->now && !strcmp(l->now->tenant, tenant)) {
        l->gives_up = 1;
        pthread_cond_broadcast(&l->changed);
        weft__background_lift(&l->idler); /* else it stands still for as long as others want the cores */
        pthread_cond_wait(&l->changed, &l->lock);
    }
    for (size_t i = 0; i < l->n_tenants;) {
        if (strcmp(l->tenant[i]->tenant, tenant)) {
            i++;
            continue;
        }
        drop_queue(l, l->tenant[i]); /* what came meanwhile */
        tenant_drop(l->tenant[i]);
        l->tenant[i] = l->tenant[--l->n_tenants];
    }
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    weft__versions_forget(l->versions, tenant);
}

/* ---- what comes in ---- */

/* With the lock. Takes the job unless it fails. */
static weft_status add_job(weft__teach_loop *l, weft__teach_job *j, const char *tenant, const char *name,
                           weft_error *err)
{
    weft__teach_tenant *t = tenant_of(l, tenant, name);
    if (!t) return weft__teach_no_memory(err);
    if (t->is_over) {
        job_free(j);
        return WEFT_OK;
    }
    if (learns(j) && t->queue.n_asked >= WEFT__TEACH_WAITING_OF_ONE)
        return weft_fail(err, WEFT_BUSY, "%d of your corrections wait to be learned; try again later",
                         WEFT__TEACH_WAITING_OF_ONE);
    if (learns(j) && t->queue.n_asked && l->n_asked >= WEFT__TEACH_WAITING) /* each may have one, however many wait */
        return weft_fail(err, WEFT_BUSY, "%d corrections wait to be learned; try again later", WEFT__TEACH_WAITING);
    if (t->queue.last) t->queue.last->next = j;
    else t->queue.first = j;
    t->queue.last = j;
    l->n_waiting++;
    l->n_asked += learns(j);
    t->queue.n_asked += learns(j);
    pthread_cond_broadcast(&l->changed);
    return WEFT_OK;
}

int weft__teach_loop_has_room(weft__teach_loop *l, const char *tenant, const char *name)
{
    pthread_mutex_lock(&l->lock);
    const weft__teach_tenant *t = tenant_of(l, tenant, name);
    const int32_t n = t ? t->queue.n_asked : 0;
    const int has = n < WEFT__TEACH_WAITING_OF_ONE && (!n || l->n_asked < WEFT__TEACH_WAITING);
    pthread_mutex_unlock(&l->lock);
    return has;
}

/* Takes *event in any case. */
static weft_status enqueue(weft__teach_loop *l, enum weft__teach_what what, const char *tenant, const char *name,
                           weft__teach_own *event, weft_error *err)
{
    weft__teach_job *j = weft__alloc_zero(1, sizeof *j);
    if (!j) {
        weft__teach_own_free(event);
        return weft__teach_no_memory(err);
    }
    j->what = what;
    j->event = *event;
    pthread_mutex_lock(&l->lock);
    const weft_status st = add_job(l, j, tenant, name, err);
    pthread_mutex_unlock(&l->lock);
    if (st) job_free(j);
    return st;
}

static weft_status put_event(weft__teach_loop *l, enum weft__teach_what what, const char *tenant, const char *name,
                             int64_t version, int64_t event, const weft__teach_event *e, weft_error *err)
{
    weft__teach_own copy;
    if (e->correction.n - e->correction.n_prompt < 2)
        return weft_fail(err, WEFT_ARGUMENT, "a correction that says nothing");
    if (!weft__teach_own_copy(&copy, event, e)) return weft__teach_no_memory(err);
    copy.version = version;
    return enqueue(l, what, tenant, name, &copy, err);
}

weft_status weft__teach_loop_put(weft__teach_loop *l, const char *tenant, const char *name, int64_t event,
                                 const weft__teach_event *e, weft_error *err)
{
    return put_event(l, WEFT__TEACH_CORRECTION, tenant, name, 0, event, e, err);
}

weft_status weft__teach_loop_know(weft__teach_loop *l, const char *tenant, const char *name, int64_t version,
                                  int64_t event, const weft__teach_event *e, weft_error *err)
{
    return put_event(l, WEFT__TEACH_KNOWN, tenant, name, version, event, e, err);
}

weft_status weft__teach_loop_keep(weft__teach_loop *l, const char *tenant, const char *name,
                                  const weft__teach_text *answer, weft_error *err)
{
    weft__teach_own copy = {0};
    if (!weft__teach_copy_text(&copy.texts, answer)) return weft__teach_no_memory(err);
    return enqueue(l, WEFT__TEACH_KEEP, tenant, name, &copy, err);
}

weft_status weft__teach_loop_consolidate(weft__teach_loop *l, const char *tenant, const char *name, weft_error *err)
{
    weft__teach_own none = {0};
    pthread_mutex_lock(&l->lock);
    const weft__teach_tenant *t = tenant_of(l, tenant, name);
    /* one with nothing to learn after it, in work or not: this one would find the same */
    int waits = t && l->now == t && l->what == WEFT__TEACH_CONSOLIDATE;
    for (const weft__teach_job *j = t ? t->queue.first : NULL; j; j = j->next)
        if (learns(j)) waits = j->what == WEFT__TEACH_CONSOLIDATE;
    pthread_mutex_unlock(&l->lock);
    if (waits) return WEFT_OK;
    return enqueue(l, WEFT__TEACH_CONSOLIDATE, tenant, name, &none, err);
}

weft__versions *weft__teach_loop_versions(weft__teach_loop *l)
{
    return l->versions;
}

void weft__teach_loop_wait(weft__teach_loop *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->n_waiting) pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

void weft__teach_loop_get_stats(weft__teach_loop *l, weft__teach_loop_stats *out)
{
    pthread_mutex_lock(&l->lock);
    *out = l->stats;
    out->n_waiting = l->n_asked;
    out->n_queued = l->n_waiting;
    pthread_mutex_unlock(&l->lock);
}

int32_t weft__teach_loop_waiting(weft__teach_loop *l, const char *tenant)
{
    int32_t n = 0;
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->n_tenants; i++)
        if (!strcmp(l->tenant[i]->tenant, tenant)) n += l->tenant[i]->queue.n_asked;
    pthread_mutex_unlock(&l->lock);
    return n;
}
