// SPDX-License-Identifier: Apache-2.0
/* teach_make.c: a version of the loop's (teach_parts.h): what it is made of, how it is judged, and what is remembered
 * of it. The loop's thread. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/log.h"
#include "learn/contest.h"
#include "learn/teach_parts.h"

enum { PATH = 4096 };

/* ---- events ---- */

void weft__teach_own_free(weft__teach_own *e)
{
    weft__teach_texts_free(&e->texts);
    weft__teach_texts_free(&e->paraphrases);
}

int weft__teach_copy_text(weft__teach_texts *to, const weft__teach_text *x)
{
    return weft__teach_texts_add(to, x->ids, x->n_prompt, x->ids + x->n_prompt, x->n - x->n_prompt, -1);
}

int weft__teach_own_copy(weft__teach_own *out, int64_t number, const weft__teach_event *e)
{
    *out = (weft__teach_own){.number = number, .n_taught = e->n_taught};
    int ok = weft__teach_copy_text(&out->texts, &e->correction);
    if (ok && e->wrong) ok = weft__teach_texts_add(&out->texts, NULL, 0, e->wrong, e->n_wrong, -1);
    for (int32_t i = 0; ok && i < e->n_paraphrases; i++)
        ok = weft__teach_copy_text(&out->paraphrases, &e->paraphrases[i]);
    if (!ok) weft__teach_own_free(out);
    return ok;
}

static weft__teach_event event_view(const weft__teach_own *e)
{
    const weft__teach_text *wrong = e->texts.n > 1 ? &e->texts.text[1] : NULL;
    return (weft__teach_event){.correction = e->texts.text[0],
                               .wrong = wrong ? wrong->ids : NULL,
                               .n_wrong = wrong ? wrong->n : 0,
                               .paraphrases = e->paraphrases.text,
                               .n_paraphrases = (int32_t)e->paraphrases.n,
                               .n_taught = e->n_taught};
}

/* ---- tenants ---- */

void weft__teach_tenant_free(weft__teach_tenant *t)
{
    for (size_t i = 0; i < t->n; i++) weft__teach_own_free(&t->event[i]);
    weft__free(t->event);
    weft__teach_texts_free(&t->kept);
}

static int same_text(const weft__teach_text *a, const weft__teach_text *b)
{
    return a->n == b->n && !memcmp(a->ids, b->ids, (size_t)a->n * sizeof *a->ids);
}

/* Did version `now`, or one that it came of, learn it? */
static int knows(weft__teach_loop *l, const weft__teach_tenant *t, int64_t now, const weft__teach_own *e)
{
    while (now > 0 && now != e->version) now = weft__versions_parent(l->versions, t->tenant, t->name, now);
    return now > 0;
}

/* One that is there already becomes the newest; beyond the room the oldest goes. */
static weft_status keep_answer(weft__teach_loop *l, weft__teach_tenant *t, weft__teach_job *j, weft_error *err)
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
    return weft__teach_copy_text(&t->kept, x) ? WEFT_OK : weft__teach_no_memory(err);
}

/* Beyond the room the oldest of those that were refused goes. */
static void drop_refused(weft__teach_tenant *t)
{
    size_t n = 0, first = t->n;
    for (size_t i = t->n; i-- > 0;)
        if (!t->event[i].version) first = i, n++;
    if (n < WEFT__VERSION_CAME_IN) return;
    weft__teach_own_free(&t->event[first]);
    memmove(t->event + first, t->event + first + 1, (--t->n - first) * sizeof *t->event);
}

static weft_status know(weft__teach_tenant *t, weft__teach_job *j, weft_error *err)
{
    if (!j->event.version) drop_refused(t);
    if (!weft__grow(&t->event, &t->room, t->n + 1, sizeof *t->event)) return weft__teach_no_memory(err);
    t->event[t->n++] = j->event;
    j->event = (weft__teach_own){0};
    return WEFT_OK;
}

/* ---- a version ---- */

/* All that was refused by itself; where the gate refuses these together, the older half and the newer one. */
enum { RETRIES = 3 };
typedef struct loop_retry {
    weft__teach_event *events; /* [n] what is known, then refused[from] and the next ones */
    int32_t n, from;
} loop_retry;

/* What a version is made of, and what came of it. */
typedef struct loop_making {
    weft__teach_loop *l;
    weft__teach_tenant *t;
    const weft__teach_job *job;
    weft__teach_event *events; /* [n] */
    weft__teach_texts replay;
    weft__teach_text *kept; /* [n_kept] answers that stay: borrowed */
    int32_t n_events, n_kept;
    int64_t now, parent, first, last; /* current version, that it goes on from; numbers of events */
    int64_t version;                  /* it became; 0: none, as people went to another version meanwhile */
    loop_retry retry[RETRIES];        /* [n_retry] of a consolidation */
    weft__teach_own **refused;        /* [n_refused] the oldest first: borrowed */
    weft__teach_text *kept_beside;    /* [n_kept_beside] as kept, to questions that were not refused either */
    int32_t n_retry, n_refused, n_kept_beside;
    int64_t came_in[WEFT__VERSION_CAME_IN]; /* [n_came_in] events of it that had been refused */
    int32_t n_came_in;
    weft__teach_report report;
    char by[WEFT__VERSION_BY], why[WEFT__VERSION_WHY]; /* of a consolidation */
    int is_same;                                       /* it is the current version, compressed */
    char full_name[WEFT__VERSION_FULL_NAME], path[PATH];
    weft_status status;
    weft_error err;
} loop_making;

static int same_prompt(const weft__teach_text *a, const weft__teach_text *b)
{
    return a->n_prompt == b->n_prompt && !memcmp(a->ids, b->ids, (size_t)a->n_prompt * sizeof *a->ids);
}

/* May what was refused be tried again? Not where it came in already, where the current version knows another answer to
 * that very question, or where a later one was given. */
static int is_candidate(const weft__teach_tenant *t, size_t at)
{
    const weft__teach_own *e = &t->event[at];
    if (e->version) return 0;
    for (size_t i = 0; i < t->n; i++) {
        const weft__teach_own *o = &t->event[i];
        if (i != at && (o->taken || (!o->version && i > at)) && same_prompt(&o->texts.text[0], &e->texts.text[0]))
            return 0;
    }
    return 1;
}

/* refused[from .. until). 0: no memory. */
static int add_retry(loop_making *m, int32_t from, int32_t until)
{
    loop_retry *r = &m->retry[m->n_retry++];
    r->from = from;
    r->n = m->n_events + until - from;
    r->events = weft__alloc_array((size_t)r->n + 1, sizeof *r->events);
    if (!r->events) return 0;
    for (int32_t i = 0; i < m->n_events; i++) r->events[i] = m->events[i];
    for (int32_t i = from; i < until; i++) r->events[m->n_events + i - from] = event_view(m->refused[i]);
    return 1;
}

/* What a consolidation tries beside what is known (m->events). */
static int gather_refused(loop_making *m)
{
    weft__teach_tenant *t = m->t;
    m->refused = weft__alloc_array(t->n + 1, sizeof *m->refused);
    if (!m->refused) return 0;
    for (size_t i = 0; i < t->n; i++)
        if (is_candidate(t, i)) m->refused[m->n_refused++] = &t->event[i];
    const int32_t n = m->n_refused, half = (n + 1) / 2;
    return (n < 1 || add_retry(m, 0, n)) && (n < 2 || (add_retry(m, 0, half) && add_retry(m, half, n)));
}

/* A correction: that one, with those before it replayed. Consolidation: all of them at once. */
static int gather(loop_making *m)
{
    const weft__teach_tenant *t = m->t;
    const int64_t now = m->now = weft__versions_current(m->l->versions, t->tenant, t->name, NULL);
    const int all = m->job->what == WEFT__TEACH_CONSOLIDATE;
    m->events = weft__alloc_array(t->n + 1, sizeof *m->events);
    if (!m->events) return 0;
    m->parent = all ? 0 : now;
    if (!all) {
        m->events[m->n_events++] = event_view(&m->job->event);
        m->first = m->last = m->job->event.number;
    }
    for (size_t i = 0; i < t->n; i++) {
        weft__teach_own *e = &t->event[i];
        e->taken = knows(m->l, t, now, e);
        if (!e->taken) continue;
        if (all) {
            m->events[m->n_events++] = event_view(e);
            if (!m->first) m->first = e->number;
            m->last = e->number;
            continue;
        }
        const weft__teach_text *c = &e->texts.text[0];
        if (!weft__teach_copy_text(&m->replay, c)) return 0;
        for (int32_t k = 0; k < e->n_taught; k++) { /* with the answer that they were taught */
            const weft__teach_text *p = &e->paraphrases.text[k], *a = p->n > p->n_prompt ? p : c;
            if (!weft__teach_texts_add(&m->replay, p->ids, p->n_prompt, a->ids + a->n_prompt, a->n - a->n_prompt, -1))
                return 0;
        }
    }
    return 1;
}

/* Of answers that are kept, those to questions that nobody corrected. */
static int gather_kept(loop_making *m)
{
    const weft__teach_tenant *t = m->t;
    m->kept = weft__alloc_array(t->kept.n + 1, sizeof *m->kept);
    for (size_t i = 0; m->kept && i < t->kept.n; i++) {
        const weft__teach_text *x = &t->kept.text[i];
        int stays = m->job->what != WEFT__TEACH_CORRECTION || !same_prompt(x, &m->job->event.texts.text[0]);
        for (size_t k = 0; stays && k < t->n; k++)
            stays = !t->event[k].taken || !same_prompt(x, &t->event[k].texts.text[0]);
        if (stays) m->kept[m->n_kept++] = *x;
    }
    return m->kept != NULL;
}

static int gather_kept_beside(loop_making *m)
{
    m->kept_beside = weft__alloc_array((size_t)m->n_kept + 1, sizeof *m->kept_beside);
    for (int32_t i = 0; m->kept_beside && i < m->n_kept; i++) {
        int stays = 1;
        for (int32_t k = 0; stays && k < m->n_refused; k++)
            stays = !same_prompt(&m->kept[i], &m->refused[k]->texts.text[0]);
        if (stays) m->kept_beside[m->n_kept_beside++] = m->kept[i];
    }
    return m->kept_beside != NULL;
}

/* Of version `number`; 0: none. */
static weft_status open_version(loop_making *m, int64_t number, weft__adapt **out, weft_error *err)
{
    char full[WEFT__VERSION_FULL_NAME], path[PATH];
    if (!number) return WEFT_OK;
    weft__version_write_name(m->t->name, number, full);
    const weft__teach_hooks *h = &m->l->p.hooks;
    weft_status st = h->place(h->arg, m->t->tenant, full, path, err);
    return st ? st : weft__adapt_open(path, NULL, UINT64_MAX, out, err);
}

/* What was refused belongs to the version from now on. */
static void come_in(loop_making *m, const loop_retry *r)
{
    for (int32_t i = 0; i < r->n - m->n_events && i < WEFT__VERSION_CAME_IN; i++) {
        weft__teach_own *e = m->refused[r->from + i];
        e->taken = 1;
        m->came_in[m->n_came_in++] = e->number;
        if (!m->first || e->number < m->first) m->first = e->number;
        if (e->number > m->last) m->last = e->number;
    }
}

/* All that the current version knows, by whoever knows it best (contest.h). One that was compressed has learned nothing
 * new: it goes on from the current version, as which it knows all. */
static weft_status consolidate(loop_making *m, const weft__teach_task *task, const weft__teach_options *o)
{
    const weft__teach_loop_params *p = &m->l->p;
    weft__teach_task retry[RETRIES];
    weft__gate_material judge = *task->judge;
    const int goes_on = weft__versions_goes_on(m->l->versions, m->t->tenant, m->t->name, m->now);
    weft__adapt *now = NULL;
    weft__contest_result r;
    if (open_version(m, m->now, &now, &m->err)) weft__log(WEFT__LOG_WARN, "%s is learned anew", m->err.message);
    m->err = (weft_error){0};
    judge.neighbours = m->kept_beside;
    judge.n_neighbours = m->n_kept_beside;
    for (int32_t i = 0; i < m->n_retry; i++) {
        retry[i] = *task;
        retry[i].events = m->retry[i].events;
        retry[i].n_events = m->retry[i].n;
        retry[i].neighbours = m->kept_beside;
        retry[i].n_neighbours = m->n_kept_beside;
        retry[i].judge = &judge;
    }
    const weft__contest_task contest = {.teach = *task,
                                        .retry = retry,
                                        .n_retry = m->n_retry,
                                        .options = o,
                                        .now = now,
                                        .now_goes_on = goes_on,
                                        .teacher = p->teacher,
                                        .pupil = p->pupil};
    weft_status st = weft__contest_hold(&contest, &r, &m->err);
    weft__adapt_close(&now);
    if (st) return st;
    m->report.gate = r.best.gate;
    m->report.n_steps = r.best.n_steps;
    m->report.scale = r.best.scale;
    m->report.id = r.id;
    snprintf(m->by, sizeof m->by, "%s", r.best.by);
    snprintf(m->why, sizeof m->why, "%s", r.why);
    m->is_same = r.best.rank > 0;
    if (m->is_same) m->parent = m->now, m->first = m->last = 0;
    if (r.won && r.best.retry >= 0) come_in(m, &m->retry[r.best.retry]);
    return WEFT_OK;
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
    weft__teach_task task = {.base = p->base,
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
                             .name = m->full_name};
    o.stop = weft__teach_pace;
    o.stop_arg = m->l;
    m->l->worked_ns = weft__clock_thread_ns();
    m->status = open_version(m, m->parent, &parent, &m->err);
    task.parent = parent;
    if (!m->status)
        m->status = m->job->what == WEFT__TEACH_CONSOLIDATE ? consolidate(m, &task, &o)
                                                            : weft__teach(&task, &o, &m->report, &m->err);
    weft__adapt_close(&parent);
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
    snprintf(row.by, sizeof row.by, "%s", m->by);
    snprintf(row.why, sizeof row.why, "%s", m->why);
    memcpy(row.came_in, m->came_in, sizeof row.came_in);
    row.n_came_in = m->n_came_in;
    snprintf(row.reason, sizeof row.reason, "%s", g->passed ? "" : weft__gate_reason_name(g->reason));
    if (g->passed)
        snprintf(row.content, sizeof row.content, "%016llx%016llx", (unsigned long long)m->report.id.word[0],
                 (unsigned long long)m->report.id.word[1]);
    weft_status st = g->passed ? h->publish(h->arg, m->t->tenant, m->full_name, m->path, err) : WEFT_OK;
    if (st || weft__versions_current(m->l->versions, row.tenant, row.name, NULL) != m->now) return st;
    st = weft__versions_add(m->l->versions, &row, err);
    if (!st) m->version = row.version;
    return st;
}

/* The events are the version's from now on, or one that was refused. */
static weft_status remember(loop_making *m, weft__teach_job *j, weft_error *err)
{
    weft__teach_tenant *t = m->t;
    const int64_t version = m->version;
    if (!m->report.gate.passed) { /* for a consolidation; the job has no more of it */
        j->event.version = 0;
        return know(t, j, err);
    }
    if (!weft__grow(&t->event, &t->room, t->n + m->t->n + 1, sizeof *t->event)) return weft__teach_no_memory(err);
    if (j->what == WEFT__TEACH_CORRECTION) {
        t->event[t->n] = j->event;
        t->event[t->n++].version = version;
        j->event = (weft__teach_own){0};
        return WEFT_OK;
    }
    for (size_t i = 0, n = t->n; i < n; i++) { /* once more, as learned by this one: going back must find the others */
        const weft__teach_event e = event_view(&t->event[i]);
        if (!t->event[i].taken) continue;
        if (!weft__teach_own_copy(&t->event[t->n], t->event[i].number, &e)) return weft__teach_no_memory(err);
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
    if (*m->by) weft__log(WEFT__LOG_INFO, "%s: %s, %s", m->full_name, m->by, m->why);
}

/* m->version is 0 where there was nothing to learn, too. */
static weft_status make_one(loop_making *m, weft__teach_job *j, weft_error *err)
{
    weft__teach_loop *l = m->l;
    weft__version_write_name(m->t->name, weft__versions_next(l->versions, m->t->tenant, m->t->name), m->full_name);
    if (!gather(m) || !gather_kept(m)) return weft__teach_no_memory(err);
    /* what a version knows that knows nothing any more cannot be learned anew beside anything */
    if (j->what == WEFT__TEACH_CONSOLIDATE && (m->n_events || !m->now) &&
        (!gather_refused(m) || !gather_kept_beside(m)))
        return weft__teach_no_memory(err);
    if (!m->n_events && !m->n_retry) return WEFT_OK;
    weft_status st = l->p.hooks.place(l->p.hooks.arg, m->t->tenant, m->full_name, m->path, err);
    if (st) return st;
    weft__background_run(make, m);
    if (m->status) return weft_fail(err, m->status, "%s: %s", m->full_name, m->err.message);
    st = publish(m, err);
    /* of an earlier try, or of one that people made void; a row that could not be written may be there all the same */
    if (!st && !(m->version && m->report.gate.passed)) unlink(m->path);
    const int learns = m->report.gate.passed ? !m->is_same : j->what == WEFT__TEACH_CORRECTION;
    if (!st && m->version && learns) st = remember(m, j, err);
    if (!st && m->version) tell(m);
    return st;
}

static weft_status make_version(weft__teach_loop *l, weft__teach_tenant *t, weft__teach_job *j, int *again,
                                weft_error *err)
{
    const uint64_t begin = weft__clock_ns();
    loop_making m = {.l = l, .t = t, .job = j};
    const weft_status st = make_one(&m, j, err);
    *again = !st && (m.n_events || m.n_retry) && !m.version;
    pthread_mutex_lock(&l->lock);
    if (!st && m.version) l->stats.by_reason[m.report.gate.reason]++;
    l->stats.seconds += (double)(weft__clock_ns() - begin) / 1e9;
    pthread_mutex_unlock(&l->lock);
    weft__teach_texts_free(&m.replay);
    for (int32_t i = 0; i < m.n_retry; i++) weft__free(m.retry[i].events);
    weft__free(m.kept_beside);
    weft__free(m.refused);
    weft__free(m.kept);
    weft__free(m.events);
    return st;
}

weft_status weft__teach_work(weft__teach_loop *l, weft__teach_tenant *t, weft__teach_job *j, int *again,
                             weft_error *err)
{
    return j->what == WEFT__TEACH_KEEP    ? keep_answer(l, t, j, err)
           : j->what == WEFT__TEACH_KNOWN ? know(t, j, err)
                                          : make_version(l, t, j, again, err);
}
