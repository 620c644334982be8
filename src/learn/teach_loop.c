// SPDX-License-Identifier: Apache-2.0
/* teach_loop.c: see teach_loop.h. `lock` has the queue and the counts; what is known of tenants is the loop's thread's
 * alone. */
#include "learn/teach_loop.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

enum { PATH = 4096, REST_MOST_NS = 1000000000, LOOK_NS = 2000000 /* while others run and there is no share */ };

typedef enum loop_what { LOOP_CORRECTION, LOOP_KNOWN, LOOP_KEEP, LOOP_CONSOLIDATE } loop_what;

/* A correction of one's own. */
typedef struct loop_event {
    int64_t number, version; /* version: that learned it; 0: none did */
    weft__teach_texts texts; /* the correction, and where it is known the wrong answer as a text without a prompt */
    weft__teach_texts paraphrases;
    int32_t n_taught;
    int taken; /* by the consolidation in work */
} loop_event;

typedef struct loop_job {
    loop_what what;
    char tenant[WEFT__VERSION_TENANT], name[WEFT__VERSION_NAME];
    loop_event event; /* of KEEP: the one text */
    struct loop_job *next;
} loop_job;

/* What is known of a tenant's lineage. */
typedef struct loop_tenant {
    char tenant[WEFT__VERSION_TENANT], name[WEFT__VERSION_NAME];
    loop_event *event; /* [n] those that were learned */
    size_t n, room;
    weft__teach_texts kept; /* the newest last */
    double kl;              /* of the current version; NAN: not known */
} loop_tenant;

struct weft__teach_loop {
    weft__teach_loop_params p;
    weft__versions *versions;
    pthread_t thread;
    int has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* with lock */
    loop_job *first, *last;
    int32_t n_waiting; /* with the one in work */
    int ends;
    weft__teach_loop_stats stats;
    loop_tenant *tenant; /* [n_tenants], the thread's */
    size_t n_tenants, tenants_room;
    uint64_t worked_ns; /* when work began, or the last rest ended */
};

static weft_status loop_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory to learn");
}

void weft__teach_loop_params_default(weft__teach_loop_params *p)
{
    *p = (weft__teach_loop_params){.share = 0.2f, .neighbours = 32};
    weft__teach_options_default(&p->options);
    weft__gate_bounds_default(&p->bounds);
    p->options.n_threads = 1;
}

/* ---- events ---- */

static void event_free(loop_event *e)
{
    weft__teach_texts_free(&e->texts);
    weft__teach_texts_free(&e->paraphrases);
}

static int copy_text(weft__teach_texts *to, const weft__teach_text *x)
{
    return weft__teach_texts_add(to, x->ids, x->n_prompt, x->ids + x->n_prompt, x->n - x->n_prompt, -1);
}

static int event_copy(loop_event *out, int64_t number, const weft__teach_event *e)
{
    *out = (loop_event){.number = number, .n_taught = e->n_taught};
    int ok = copy_text(&out->texts, &e->correction);
    if (ok && e->wrong) ok = weft__teach_texts_add(&out->texts, NULL, 0, e->wrong, e->n_wrong, -1);
    for (int32_t i = 0; ok && i < e->n_paraphrases; i++) ok = copy_text(&out->paraphrases, &e->paraphrases[i]);
    if (!ok) event_free(out);
    return ok;
}

static weft__teach_event event_view(const loop_event *e)
{
    const weft__teach_text *wrong = e->texts.n > 1 ? &e->texts.text[1] : NULL;
    return (weft__teach_event){.correction = e->texts.text[0],
                               .wrong = wrong ? wrong->ids : NULL,
                               .n_wrong = wrong ? wrong->n : 0,
                               .paraphrases = e->paraphrases.text,
                               .n_paraphrases = (int32_t)e->paraphrases.n,
                               .n_taught = e->n_taught};
}

/* ---- pace ---- */

static int loop_ends(weft__teach_loop *l)
{
    pthread_mutex_lock(&l->lock);
    const int ends = l->ends;
    pthread_mutex_unlock(&l->lock);
    return ends;
}

/* Rests for so long, or until the loop ends. */
static void rest(weft__teach_loop *l, uint64_t ns)
{
    const uint64_t until = weft__clock_ns() + ns;
    pthread_mutex_lock(&l->lock);
    while (!l->ends && weft__clock_ns() < until) weft__clock_wait(&l->changed, &l->lock, until);
    pthread_mutex_unlock(&l->lock);
}

/* Asked before each op of the trainer's: while requests run, it rests as long as its share wants; without one it waits
 * until none does. */
static int pace(void *arg)
{
    weft__teach_loop *l = arg;
    const float share = l->p.share;
    while (l->p.hooks.busy && l->p.hooks.busy(l->p.hooks.arg) && !loop_ends(l)) {
        const uint64_t worked = weft__clock_ns() - l->worked_ns;
        if (share >= 1) break;
        if (share > 0) {
            const double ns = (double)worked * (1 - (double)share) / (double)share;
            rest(l, ns < REST_MOST_NS ? (uint64_t)ns : REST_MOST_NS);
            break;
        }
        rest(l, LOOK_NS);
    }
    l->worked_ns = weft__clock_ns();
    return loop_ends(l);
}

/* ---- tenants ---- */

static loop_tenant *tenant_of(weft__teach_loop *l, const loop_job *j)
{
    for (size_t i = 0; i < l->n_tenants; i++)
        if (!strcmp(l->tenant[i].tenant, j->tenant) && !strcmp(l->tenant[i].name, j->name)) return &l->tenant[i];
    if (!weft__grow(&l->tenant, &l->tenants_room, l->n_tenants + 1, sizeof *l->tenant)) return NULL;
    loop_tenant *t = &l->tenant[l->n_tenants++];
    *t = (loop_tenant){.kl = NAN};
    snprintf(t->tenant, sizeof t->tenant, "%s", j->tenant);
    snprintf(t->name, sizeof t->name, "%s", j->name);
    return t;
}

static void tenant_free(loop_tenant *t)
{
    for (size_t i = 0; i < t->n; i++) event_free(&t->event[i]);
    weft__free(t->event);
    weft__teach_texts_free(&t->kept);
}

static int same_text(const weft__teach_text *a, const weft__teach_text *b)
{
    return a->n == b->n && !memcmp(a->ids, b->ids, (size_t)a->n * sizeof *a->ids);
}

/* Did version `now`, or one that it came of, learn it? */
static int knows(weft__teach_loop *l, const loop_tenant *t, int64_t now, const loop_event *e)
{
    while (now > 0 && now != e->version) now = weft__versions_parent(l->versions, t->tenant, t->name, now);
    return now > 0;
}

/* One that is there already becomes the newest; beyond the room the oldest goes. */
static weft_status keep_answer(weft__teach_loop *l, loop_tenant *t, loop_job *j, weft_error *err)
{
    const weft__teach_text *x = &j->event.texts.text[0];
    size_t at = 0;
    if (l->p.neighbours < 1) return WEFT_OK;
    while (at < t->kept.n && !same_text(&t->kept.text[at], x)) at++;
    if (at == t->kept.n && (int32_t)t->kept.n >= l->p.neighbours) at = 0;
    if (at < t->kept.n) {
        weft__free((void *)(uintptr_t)t->kept.text[at].ids);
        memmove(t->kept.text + at, t->kept.text + at + 1, (--t->kept.n - at) * sizeof *t->kept.text);
    }
    return copy_text(&t->kept, x) ? WEFT_OK : loop_no_memory(err);
}

static weft_status know(loop_tenant *t, loop_job *j, weft_error *err)
{
    if (!weft__grow(&t->event, &t->room, t->n + 1, sizeof *t->event)) return loop_no_memory(err);
    t->event[t->n++] = j->event;
    j->event = (loop_event){0};
    return WEFT_OK;
}

/* ---- a version ---- */

/* What a version is made of, and what came of it. */
typedef struct loop_making {
    weft__teach_loop *l;
    loop_tenant *t;
    const loop_job *job;
    weft__teach_event *events; /* [n] */
    weft__teach_texts replay;
    weft__teach_text *kept; /* [n_kept] answers that stay: borrowed */
    int32_t n_events, n_kept;
    int64_t parent, first, last; /* version; numbers of events */
    weft__teach_report report;
    char full_name[WEFT__VERSION_FULL_NAME], path[PATH];
    weft_status status;
    weft_error err;
} loop_making;

/* A correction: that one, with those before it replayed. Consolidation: all of them at once. */
static int gather(loop_making *m)
{
    const loop_tenant *t = m->t;
    const int64_t now = weft__versions_current(m->l->versions, t->tenant, t->name, NULL);
    const int all = m->job->what == LOOP_CONSOLIDATE;
    m->events = weft__alloc_array(t->n + 1, sizeof *m->events);
    if (!m->events) return 0;
    m->parent = all ? 0 : now;
    if (!all) {
        m->events[m->n_events++] = event_view(&m->job->event);
        m->first = m->last = m->job->event.number;
    }
    for (size_t i = 0; i < t->n; i++) {
        loop_event *e = &t->event[i];
        e->taken = knows(m->l, t, now, e);
        if (!e->taken) continue;
        if (all) {
            m->events[m->n_events++] = event_view(e);
            if (!m->first) m->first = e->number;
            m->last = e->number;
            continue;
        }
        const weft__teach_text *c = &e->texts.text[0];
        if (!copy_text(&m->replay, c)) return 0;
        for (int32_t k = 0; k < e->n_taught; k++) { /* with the answer that they were taught */
            const weft__teach_text *p = &e->paraphrases.text[k], *a = p->n > p->n_prompt ? p : c;
            if (!weft__teach_texts_add(&m->replay, p->ids, p->n_prompt, a->ids + a->n_prompt, a->n - a->n_prompt, -1))
                return 0;
        }
    }
    return 1;
}

static int same_prompt(const weft__teach_text *a, const weft__teach_text *b)
{
    return a->n_prompt == b->n_prompt && !memcmp(a->ids, b->ids, (size_t)a->n_prompt * sizeof *a->ids);
}

/* Of answers that are kept, those to questions that nobody corrected. */
static int gather_kept(loop_making *m)
{
    const loop_tenant *t = m->t;
    m->kept = weft__alloc_array(t->kept.n + 1, sizeof *m->kept);
    for (size_t i = 0; m->kept && i < t->kept.n; i++) {
        const weft__teach_text *x = &t->kept.text[i];
        int stays = m->job->what != LOOP_CORRECTION || !same_prompt(x, &m->job->event.texts.text[0]);
        for (size_t k = 0; stays && k < t->n; k++)
            stays = !t->event[k].taken || !same_prompt(x, &t->event[k].texts.text[0]);
        if (stays) m->kept[m->n_kept++] = *x;
    }
    return m->kept != NULL;
}

static weft_status open_parent(loop_making *m, weft__adapt **out, weft_error *err)
{
    char full[WEFT__VERSION_FULL_NAME], path[PATH];
    if (!m->parent) return WEFT_OK;
    weft__version_write_name(m->t->name, m->parent, full);
    const weft__teach_hooks *h = &m->l->p.hooks;
    weft_status st = h->place(h->arg, m->t->tenant, full, path, err);
    return st ? st : weft__adapt_open(path, NULL, UINT64_MAX, out, err);
}

/* On the background's thread. */
static void make(void *arg)
{
    loop_making *m = arg;
    const weft__teach_loop_params *p = &m->l->p;
    weft__adapt *parent = NULL;
    weft__teach_options o = p->options;
    const weft__gate_material judge = {.bounds = p->bounds,
                                       .held_out = m->replay.text,
                                       .n_held_out = (int32_t)m->replay.n,
                                       .neighbours = m->kept,
                                       .n_neighbours = m->n_kept,
                                       .probe = p->probe,
                                       .n_probe = p->n_probe,
                                       .goes_on = m->parent != 0};
    const weft__teach_task task = {.base = p->base,
                                   .tok = p->tok,
                                   .events = m->events,
                                   .n_events = m->n_events,
                                   .replay = m->replay.text,
                                   .n_replay = (int32_t)m->replay.n,
                                   .neighbours = m->kept,
                                   .n_neighbours = m->n_kept,
                                   .publics = p->publics,
                                   .n_publics = p->n_publics,
                                   .judge = &judge,
                                   .path = m->path,
                                   .name = m->full_name,
                                   .parent = NULL};
    weft__teach_task with_parent = task;
    o.stop = pace;
    o.stop_arg = m->l;
    m->l->worked_ns = weft__clock_ns();
    m->status = open_parent(m, &parent, &m->err);
    with_parent.parent = parent;
    if (!m->status) m->status = weft__teach(&with_parent, &o, &m->report, &m->err);
    weft__adapt_close(&parent);
}

/* The better of the two stays. */
static void better_stays(loop_making *m)
{
    weft__gate_report *g = &m->report.gate;
    if (m->job->what != LOOP_CONSOLIDATE || !g->passed || !(g->kl > m->t->kl)) return;
    g->passed = 0;
    g->reason = WEFT__GATE_KL;
}

static weft_status publish(loop_making *m, weft_error *err)
{
    const weft__teach_hooks *h = &m->l->p.hooks;
    const weft__gate_report *g = &m->report.gate;
    weft__version_row row = {.what = g->passed ? WEFT__VERSION_PUBLISHED : WEFT__VERSION_REJECTED,
                             .parent = m->parent,
                             .first_event = m->first,
                             .last_event = m->last,
                             .kl = g->kl};
    snprintf(row.tenant, sizeof row.tenant, "%s", m->t->tenant);
    snprintf(row.name, sizeof row.name, "%s", m->t->name);
    snprintf(row.reason, sizeof row.reason, "%s", g->passed ? "" : weft__gate_reason_name(g->reason));
    if (g->passed)
        snprintf(row.content, sizeof row.content, "%016llx%016llx", (unsigned long long)m->report.id.word[0],
                 (unsigned long long)m->report.id.word[1]);
    weft_status st = g->passed ? h->publish(h->arg, m->t->tenant, m->full_name, m->path, err) : WEFT_OK;
    return st ? st : weft__versions_add(m->l->versions, &row, err);
}

/* The events are the version's from now on. */
static weft_status remember(loop_making *m, loop_job *j, weft_error *err)
{
    loop_tenant *t = m->t;
    const int64_t version = weft__versions_current(m->l->versions, t->tenant, t->name, NULL);
    if (!weft__grow(&t->event, &t->room, t->n + m->t->n + 1, sizeof *t->event)) return loop_no_memory(err);
    t->kl = m->report.gate.kl;
    if (j->what == LOOP_CORRECTION) {
        t->event[t->n] = j->event;
        t->event[t->n++].version = version;
        j->event = (loop_event){0};
        return WEFT_OK;
    }
    for (size_t i = 0, n = t->n; i < n; i++) { /* once more, as learned by this one: going back must find the others */
        const weft__teach_event e = event_view(&t->event[i]);
        if (!t->event[i].taken) continue;
        if (!event_copy(&t->event[t->n], t->event[i].number, &e)) return loop_no_memory(err);
        t->event[t->n++].version = version;
    }
    return WEFT_OK;
}

static void tell(const loop_making *m)
{
    const weft__gate_report *g = &m->report.gate;
    weft__log(
        WEFT__LOG_INFO,
        "%s: %s after %d steps, at %.2f of the way; corrections %d of %d, paraphrases %d of %d, earlier ones lost "
        "%d of %d, neighbours %d of %d, KL %.4f, norm %.4f",
        m->full_name, g->passed ? "published" : weft__gate_reason_name(g->reason), m->report.n_steps,
        (double)m->report.scale, g->corrections, g->n_corrections, g->paraphrases, g->n_paraphrases, g->lost,
        g->n_held_out, g->neighbours, g->n_neighbours, g->kl, g->norm);
}

static weft_status make_version(weft__teach_loop *l, loop_tenant *t, loop_job *j, weft_error *err)
{
    loop_making m = {.l = l, .t = t, .job = j};
    const uint64_t begin = weft__clock_ns();
    weft__version_write_name(t->name, weft__versions_next(l->versions, t->tenant, t->name), m.full_name);
    weft_status st = gather(&m) && gather_kept(&m) ? WEFT_OK : loop_no_memory(err);
    if (!st && m.n_events) st = l->p.hooks.place(l->p.hooks.arg, t->tenant, m.full_name, m.path, err);
    if (!st && m.n_events) {
        weft__background_run(make, &m);
        st = m.status ? weft_fail(err, m.status, "%s: %s", m.full_name, m.err.message) : WEFT_OK;
    }
    if (!st && m.n_events) {
        better_stays(&m);
        st = publish(&m, err);
        if (!st && m.report.gate.passed) st = remember(&m, j, err);
        if (!st) tell(&m);
    }
    pthread_mutex_lock(&l->lock);
    if (!st && m.n_events) l->stats.by_reason[m.report.gate.reason]++;
    l->stats.seconds += (double)(weft__clock_ns() - begin) / 1e9;
    pthread_mutex_unlock(&l->lock);
    weft__teach_texts_free(&m.replay);
    weft__free(m.kept);
    weft__free(m.events);
    return st;
}

/* ---- the thread ---- */

static void job_free(loop_job *j)
{
    event_free(&j->event);
    weft__free(j);
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

static void work(weft__teach_loop *l, loop_job *j)
{
    weft_error err = {0};
    loop_tenant *t = tenant_of(l, j);
    weft_status st = !t                      ? loop_no_memory(&err)
                     : j->what == LOOP_KEEP  ? keep_answer(l, t, j, &err)
                     : j->what == LOOP_KNOWN ? know(t, j, &err)
                                             : make_version(l, t, j, &err);
    if (st) failed(l, &err);
}

static void *loop_run(void *arg)
{
    weft__teach_loop *l = arg;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->ends && !l->first) pthread_cond_wait(&l->changed, &l->lock);
        if (l->ends) break;
        loop_job *j = l->first;
        l->first = j->next;
        if (!l->first) l->last = NULL;
        pthread_mutex_unlock(&l->lock);
        work(l, j);
        job_free(j);
        pthread_mutex_lock(&l->lock);
        l->n_waiting--;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

weft_status weft__teach_loop_new(const weft__teach_loop_params *params, weft__teach_loop **out, weft_error *err)
{
    weft__teach_loop *l = *out = weft__alloc_zero(1, sizeof *l);
    if (!l) return loop_no_memory(err);
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
    if (l->has_thread) pthread_join(l->thread, NULL);
    for (loop_job *j = l->first, *next; j; j = next) {
        next = j->next;
        job_free(j);
    }
    for (size_t i = 0; i < l->n_tenants; i++) tenant_free(&l->tenant[i]);
    weft__free(l->tenant);
    weft__versions_destroy(&l->versions);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    weft__free(l);
    *pl = NULL;
}

/* ---- what comes in ---- */

/* Takes *event in any case. */
static weft_status enqueue(weft__teach_loop *l, loop_what what, const char *tenant, const char *name, loop_event *event,
                           weft_error *err)
{
    loop_job *j = weft__alloc_zero(1, sizeof *j);
    if (!j) {
        event_free(event);
        return loop_no_memory(err);
    }
    j->what = what;
    j->event = *event;
    snprintf(j->tenant, sizeof j->tenant, "%s", tenant);
    snprintf(j->name, sizeof j->name, "%s", name);
    pthread_mutex_lock(&l->lock);
    const int full = l->n_waiting >= WEFT__TEACH_WAITING;
    if (!full) {
        if (l->last) l->last->next = j;
        else l->first = j;
        l->last = j;
        l->n_waiting++;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    if (!full) return WEFT_OK;
    job_free(j);
    return weft_fail(err, WEFT_BUSY, "%d corrections wait to be learned; try again later", WEFT__TEACH_WAITING);
}

static weft_status put_event(weft__teach_loop *l, loop_what what, const char *tenant, const char *name, int64_t version,
                             int64_t event, const weft__teach_event *e, weft_error *err)
{
    loop_event copy;
    if (e->correction.n - e->correction.n_prompt < 2)
        return weft_fail(err, WEFT_ARGUMENT, "a correction that says nothing");
    if (!event_copy(&copy, event, e)) return loop_no_memory(err);
    copy.version = version;
    return enqueue(l, what, tenant, name, &copy, err);
}

weft_status weft__teach_loop_put(weft__teach_loop *l, const char *tenant, const char *name, int64_t event,
                                 const weft__teach_event *e, weft_error *err)
{
    return put_event(l, LOOP_CORRECTION, tenant, name, 0, event, e, err);
}

weft_status weft__teach_loop_know(weft__teach_loop *l, const char *tenant, const char *name, int64_t version,
                                  int64_t event, const weft__teach_event *e, weft_error *err)
{
    return put_event(l, LOOP_KNOWN, tenant, name, version, event, e, err);
}

weft_status weft__teach_loop_keep(weft__teach_loop *l, const char *tenant, const char *name,
                                  const weft__teach_text *answer, weft_error *err)
{
    loop_event copy = {0};
    if (!copy_text(&copy.texts, answer)) return loop_no_memory(err);
    return enqueue(l, LOOP_KEEP, tenant, name, &copy, err);
}

weft_status weft__teach_loop_consolidate(weft__teach_loop *l, const char *tenant, const char *name, weft_error *err)
{
    loop_event none = {0};
    return enqueue(l, LOOP_CONSOLIDATE, tenant, name, &none, err);
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
    out->n_waiting = l->n_waiting;
    pthread_mutex_unlock(&l->lock);
}
