// SPDX-License-Identifier: Apache-2.0
/* teach_feed.c: from the store to the loop (teach_store.h): rows of versions that were, and corrections and answers as
 * they come. One reader at a time; the store's writer only wakes it. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "learn/teach_store_parts.h"

enum { AGAIN_MS = 200 /* where the loop has no room for more */ };

/* ---- rows of versions ---- */

/* {"reason":"kl","kl":0.03,"by":"retried","why":"...","came_in":[3,4],"base":"..."}, of which the first is always
 * there. */
static void write_report(const weft__version_row *row, const char *base, weft__strbuf *out)
{
    weft__strbuf_printf(out, "{\"reason\":\"%s\"", row->reason);
    if (row->kl != 0 && isfinite(row->kl)) weft__strbuf_printf(out, ",\"kl\":%.9g", row->kl);
    if (*row->by) weft__strbuf_printf(out, ",\"by\":\"%s\",\"why\":\"%s\"", row->by, row->why);
    for (int32_t i = 0; i < row->n_came_in; i++)
        weft__strbuf_printf(out, "%s%lld%s", i ? "," : ",\"came_in\":[", (long long)row->came_in[i],
                            i + 1 == row->n_came_in ? "]" : "");
    if (base && *base) weft__strbuf_printf(out, ",\"base\":\"%.40s\"", base);
    weft__strbuf_putc(out, '}');
}

weft_status weft__teach_store_put_row(weft__learn_store *store, const weft__version_row *row, const char *base,
                                      weft_error *err)
{
    char parent[24];
    weft__strbuf report = {0};
    snprintf(parent, sizeof parent, "%lld", (long long)row->parent);
    write_report(row, base, &report);
    const weft__learn_version v = {.tenant = row->tenant,
                                   .adapter = row->name,
                                   .version = row->version,
                                   .what = weft__version_what_name(row->what),
                                   .content = row->content,
                                   .parent = parent,
                                   .first_event = row->first_event,
                                   .last_event = row->last_event,
                                   .report = report.data,
                                   .time_ms = weft__clock_unix_ms()};
    const weft_status st = report.failed ? weft__teach_no_memory(err) : weft__learn_put_version(store, &v, err);
    weft__strbuf_free(&report);
    return st;
}

typedef struct store_rows {
    const char *base; /* NULL: whatever they were learned over */
    weft__version_row *row;
    size_t n, room;
    int failed; /* there was no memory for all of them */
} store_rows;

int weft__teach_report_is_others(const weft__json *report, const char *base)
{
    const weft__json *over = weft__json_get(report, "base");
    return base && over && !weft__json_is(over, base);
}

/* KL, by and came_in of the row; and was it made with another model? */
static int read_report(const char *report, const char *base, weft__version_row *r)
{
    weft__json *root = NULL;
    const char *by;
    size_t n;
    if (report && *report && weft__json_parse(report, strlen(report), &root, NULL)) root = NULL;
    if (!weft__json_double(weft__json_get(root, "kl"), &r->kl)) r->kl = 0;
    if (weft__json_string(weft__json_get(root, "by"), &by, &n)) snprintf(r->by, sizeof r->by, "%s", by);
    const weft__json *came_in = weft__json_get(root, "came_in");
    for (size_t i = 0; i < weft__json_size(came_in) && i < WEFT__VERSION_CAME_IN; i++)
        r->n_came_in += weft__json_int(weft__json_at(came_in, i), &r->came_in[r->n_came_in]);
    const int is_others = weft__teach_report_is_others(root, base);
    weft__json_free(&root);
    return is_others;
}

/* Gone back to one that was made with another model, by who did not know with which. */
static int goes_to_others(const store_rows *s, const weft__learn_version *v)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->row[i].version == v->version && s->row[i].what == WEFT__VERSION_REJECTED) return 1;
    return 0;
}

static int take_row(void *arg, const weft__learn_version *v)
{
    store_rows *s = arg;
    weft__version_row r = {.version = v->version,
                           .parent = strtoll(v->parent, NULL, 10),
                           .first_event = v->first_event,
                           .last_event = v->last_event};
    if (!weft__version_what_of(v->what, &r.what)) return 0; /* others' business */
    const int is_others = read_report(v->report, s->base, &r);
    if (r.what == WEFT__VERSION_ROLLED_BACK && (is_others || goes_to_others(s, v))) return 0;
    if (is_others) r.what = WEFT__VERSION_REJECTED, r.first_event = 0; /* its number is taken, and nothing else holds */
    snprintf(r.tenant, sizeof r.tenant, "%s", v->tenant);
    snprintf(r.name, sizeof r.name, "%.*s", (int)sizeof r.name - 1, v->adapter);
    snprintf(r.content, sizeof r.content, "%.*s", (int)sizeof r.content - 1, v->content);
    s->failed = !weft__grow(&s->row, &s->room, s->n + 1, sizeof *s->row);
    if (s->failed) return 1;
    s->row[s->n++] = r;
    return 0;
}

static weft_status rows_of(weft__learn_store *store, const char *tenant, const char *name, store_rows *out,
                           weft__versions *versions, weft_error *err)
{
    weft_status st = weft__learn_versions(store, tenant, name, take_row, out, err);
    if (!st && out->failed) st = weft__teach_no_memory(err);
    for (size_t i = 0; !st && i < out->n; i++) st = weft__versions_read(versions, &out->row[i], err);
    return st;
}

weft_status weft__teach_store_read_rows(weft__learn_store *store, const char *tenant, const char *name,
                                        weft__versions *out, weft_error *err)
{
    store_rows rows = {0};
    weft_status st = rows_of(store, tenant, name, &rows, out, err);
    weft__free(rows.row);
    return st;
}

/* ---- events ---- */

/* What a reader of the store hands on. */
typedef struct store_reading {
    weft__teach_store *t;
    weft__teach_of *tenant;
    int64_t last;
    /* Of a row of before: those of its events that it learned, or that it is about as refused (version 0), are known;
     * NULL: what comes is to be learned */
    const weft__version_row *row;
    const store_rows *rows; /* with those before it */
    int64_t version;
    weft__teach_texts answers; /* that stay, the newest first, until they are put */
    weft_status status;
    weft_error err;
} store_reading;

static int32_t end_token(const weft__tok *tok)
{
    const int32_t turn = weft__tok_id_of_role(tok, WEFT__TOK_ROLE_EOT);
    return turn >= 0 ? turn : weft__tok_id_of_role(tok, WEFT__TOK_ROLE_EOS);
}

/* An answer's tokens without one that ends it. */
static int32_t without_end(const weft__tok *tok, const weft__learn_record *r)
{
    return r->n_answer && weft__tok_is_end(tok, r->answer[r->n_answer - 1]) ? r->n_answer - 1 : r->n_answer;
}

/* Has the vocabulary all of them? */
static int are_tokens(const weft__tok *tok, const int32_t *ids, int32_t n)
{
    const int32_t most = weft__tok_n(tok);
    for (int32_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= most) return 0;
    return 1;
}

/* Is it the model's that learns? */
static int is_own(const weft__teach_store *t, const weft__learn_record *r)
{
    return (!t->own.base || (r->base && !strcmp(r->base, t->own.base))) &&
           are_tokens(t->p.tok, r->prompt, r->n_prompt) && are_tokens(t->p.tok, r->answer, r->n_answer);
}

/* An event that would teach, had this model answered. */
static int is_others(const weft__teach_store *t, const weft__learn_event *e)
{
    if (e->kind == WEFT__LEARN_PREFERRED) return e->over.id && (!is_own(t, &e->answer) || !is_own(t, &e->over));
    return (e->kind == WEFT__LEARN_CORRECTION || e->kind == WEFT__LEARN_EDIT) && !is_own(t, &e->answer);
}

/* What is right, as a text with the prompt; what was wrong is the answer, or the one that another is preferred to. 0:
 * the event says none. */
static int right_text(weft__teach_store *t, const weft__learn_event *e, weft__teach_texts *out, weft_error *err)
{
    const weft__tok *tok = t->p.tok;
    const weft__learn_record *a = &e->answer;
    weft__tok_ids ids = {0};
    int ok = 0;
    if (e->kind == WEFT__LEARN_PREFERRED)
        return e->over.id &&
               weft__teach_texts_add(out, a->prompt, a->n_prompt, a->answer, without_end(tok, a), end_token(tok));
    if ((e->kind != WEFT__LEARN_CORRECTION && e->kind != WEFT__LEARN_EDIT) || !e->n_text) return 0;
    if (!weft__tok_encode(tok, e->text, e->n_text, 0, &ids, err)) /* special tokens stay text */
        ok = weft__teach_texts_add(out, a->prompt, a->n_prompt, ids.data, (int32_t)ids.n, end_token(tok));
    weft__tok_ids_free(&ids);
    return ok;
}

/* They came newest first. */
static void keep_answers(store_reading *r)
{
    for (size_t i = r->answers.n; i-- > 0 && !r->status;)
        r->status = weft__teach_loop_keep(r->t->loop, r->tenant->tenant, r->tenant->name, &r->answers.text[i], &r->err);
    weft__teach_texts_free(&r->answers);
}

static void put_event(store_reading *r, const weft__learn_event *e, const weft__teach_text *right)
{
    const weft__learn_record *wrong = e->kind == WEFT__LEARN_PREFERRED ? &e->over : &e->answer;
    const weft__teach_event event = {
        .correction = *right, .wrong = wrong->answer, .n_wrong = without_end(r->t->p.tok, wrong)};
    const char *tenant = r->tenant->tenant, *name = r->tenant->name;
    if (!r->row && !weft__teach_loop_has_room(r->t->loop, tenant, name)) { /* and none for its answers again */
        r->status = weft_fail(&r->err, WEFT_BUSY, "as many corrections wait to be learned as may");
        return;
    }
    keep_answers(r);
    if (r->status) return;
    r->status = r->row ? weft__teach_loop_know(r->t->loop, tenant, name, r->version, e->event, &event, &r->err)
                       : weft__teach_loop_put(r->t->loop, tenant, name, e->event, &event, &r->err);
}

/* Is the row one of a correction that the gate refused? */
static int is_refusal(const weft__version_row *row)
{
    return row->what == WEFT__VERSION_REJECTED && !*row->by && row->first_event && row->first_event == row->last_event;
}

/* The row before `end` by which `version` was published; NULL: none. */
static const weft__version_row *published_as(const store_rows *s, const weft__version_row *end, int64_t version)
{
    for (const weft__version_row *o = end; version && o-- > s->row;)
        if (o->what == WEFT__VERSION_PUBLISHED && o->version == version) return o;
    return NULL;
}

/* That of the version that was current before this row. */
static const weft__version_row *current_at(const store_rows *s, const weft__version_row *row)
{
    for (const weft__version_row *o = row; o-- > s->row;)
        if (o->what != WEFT__VERSION_REJECTED) return published_as(s, o + 1, o->version);
    return NULL;
}

/* Does what was published by the row know this event, which the gate refused by itself? It came in, or was there. */
static int knows_refused(const store_rows *s, const weft__version_row *row, int64_t event)
{
    while (row) {
        for (int32_t i = 0; i < row->n_came_in; i++)
            if (row->came_in[i] == event) return 1;
        row = *row->by && row->last_event ? current_at(s, row) : published_as(s, row, row->parent);
    }
    return 0;
}

/* Between the first and the last event that a consolidation learned are such as the gate had refused: did this one stay
 * out? */
static int was_left(const store_reading *r, int64_t event)
{
    if (!r->version || !*r->row->by) return 0;
    for (const weft__version_row *o = r->rows->row; o < r->row; o++)
        if (is_refusal(o) && o->first_event == event) return !knows_refused(r->rows, r->row, event);
    return 0;
}

static int take_event(void *arg, const weft__learn_event *e)
{
    store_reading *r = arg;
    weft__teach_store *t = r->t;
    weft__teach_texts right = {0};
    if (r->row && e->event > r->row->last_event) return 1;
    if (r->row && (e->event < r->row->first_event || was_left(r, e->event))) return 0;
    if (is_others(t, e)) {
        pthread_mutex_lock(&t->lock);
        t->n_others += !r->row;
        pthread_mutex_unlock(&t->lock);
    } else if (right_text(t, e, &right, &r->err)) put_event(r, e, &right.text[0]);
    weft__teach_texts_free(&right);
    if (!r->status) r->last = e->event;
    return r->status != WEFT_OK;
}

static int take_answer(void *arg, const weft__learn_record *a)
{
    store_reading *r = arg;
    const int32_t n = is_own(r->t, a) ? without_end(r->t->p.tok, a) : 0;
    if (n && !weft__teach_texts_add(&r->answers, a->prompt, a->n_prompt, a->answer, n, end_token(r->t->p.tok)))
        r->status = weft__teach_no_memory(&r->err);
    return r->status != WEFT_OK;
}

/* ---- what was before ---- */

/* What a row says of events is known; a version that was published may be named by requests. */
static weft_status restore(weft__teach_store *t, weft__teach_of *one, const store_rows *rows,
                           const weft__version_row *row, weft_error *err)
{
    char full[WEFT__VERSION_FULL_NAME], path[4096];
    const int is_published = row->what == WEFT__VERSION_PUBLISHED;
    store_reading r = {.t = t, .tenant = one, .rows = rows, .row = row, .version = is_published ? row->version : 0};
    weft_status st = WEFT_OK;
    if (!is_published && !is_refusal(row)) return WEFT_OK;
    if (is_published) {
        weft__version_write_name(row->name, row->version, full);
        st = weft__teach_store_place(t, row->tenant, full, path, err);
        if (!st && !t->own.tells_new_alone) st = t->p.hooks.publish(t->p.hooks.arg, row->tenant, full, path, err);
    }
    if (!st) st = weft__learn_events(t->store, row->tenant, row->first_event - 1, NULL, take_event, &r, err);
    return !st && r.status ? weft_fail(err, r.status, "%s", r.err.message) : st;
}

/* Is it what a process that was killed left: half of a file (NAME.gguf.tmp-..., format/out_file.h), or the file of a
 * version whose row it did not come to? */
static int is_left(weft__teach_store *t, const weft__teach_of *one, const char *file)
{
    static const char end[] = ".gguf", half[] = ".gguf.tmp-";
    char full[WEFT__VERSION_FULL_NAME], name[WEFT__VERSION_NAME];
    int64_t version;
    const char *at = strstr(file, half);
    if (at) return strspn(at + sizeof half - 1, "0123456789abcdef") == 16 && !at[sizeof half - 1 + 16];
    const size_t n = strlen(file);
    if (n < sizeof end || n >= sizeof full || strcmp(file + n + 1 - sizeof end, end)) return 0;
    snprintf(full, sizeof full, "%.*s", (int)(n + 1 - sizeof end), file);
    return weft__version_read_name(full, name, &version) && !strcmp(name, one->name) &&
           version >= weft__versions_next(weft__teach_loop_versions(t->loop), one->tenant, one->name);
}

/* Nobody has such a file open: the store is this process's. */
static void remove_left(weft__teach_store *t, const weft__teach_of *one)
{
    DIR *d = opendir(one->folder);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (is_left(t, one, e->d_name)) unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
}

static weft_status restore_tenant(weft__teach_store *t, weft__teach_of *one, weft_error *err)
{
    store_rows rows = {.base = t->own.base};
    weft_status st = rows_of(t->store, one->tenant, one->name, &rows, weft__teach_loop_versions(t->loop), err);
    if (!st) remove_left(t, one);
    for (size_t i = 0; !st && i < rows.n; i++) {
        const weft__version_row *row = &rows.row[i];
        st = restore(t, one, &rows, row, err);
        if (!st) weft__teach_store_take_row(t, row);
        if (row->last_event > one->after) one->after = row->last_event;
    }
    weft__free(rows.row);
    one->is_restored = 1;
    return st;
}

/* ---- reading ---- */

/* What was before, where that is not known yet; the tenant's answers that stay; then what is new of its events. */
static weft_status read_one(weft__teach_store *t, const char *tenant, int looks_only, weft_error *err)
{
    store_reading r = {.t = t};
    weft_status st = weft__teach_store_of(t, tenant, &r.tenant, err);
    if (st) return st == WEFT_NOT_FOUND ? WEFT_OK : st; /* it was forgotten */
    if (!r.tenant->is_restored) st = restore_tenant(t, r.tenant, err);
    if (st || looks_only) return st;
    r.last = r.tenant->after;
    st = weft__learn_records(t->store, tenant, 0, 1, t->p.neighbours, take_answer, &r, err);
    if (!r.tenant->was_read) keep_answers(&r);
    r.tenant->was_read = 1;
    if (!st && !r.status) st = weft__learn_events(t->store, tenant, r.last, NULL, take_event, &r, err);
    weft__teach_texts_free(&r.answers);
    r.tenant->after = r.last;
    if (!st && r.status) st = weft_fail(err, r.status, "%s", r.err.message);
    return st;
}

int weft__teach_feed_enter(weft__teach_store *t, const char *tenant)
{
    if (t->has_only && strcmp(t->only, tenant)) return 0;
    pthread_mutex_lock(&t->lock);
    const int goes = t->ends || weft__teach_names_has(&t->going, tenant);
    t->is_reading = !goes;
    snprintf(t->reading, sizeof t->reading, "%s", tenant);
    pthread_mutex_unlock(&t->lock);
    return !goes;
}

void weft__teach_feed_leave(weft__teach_store *t)
{
    pthread_mutex_lock(&t->lock);
    t->is_reading = 0;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static weft_status read_tenant(weft__teach_store *t, const char *tenant, int looks_only, weft_error *err)
{
    if (!weft__teach_feed_enter(t, tenant)) return WEFT_OK;
    const weft_status st = read_one(t, tenant, looks_only, err);
    weft__teach_feed_leave(t);
    return st;
}

/* One that fails, or of whom as much waits as may, keeps no other from being read, and is read again. WEFT_BUSY, where
 * there is one. */
static weft_status read_named(weft__teach_store *t, const weft__teach_names *names, int looks_only, weft_error *err)
{
    weft_status first = WEFT_OK;
    for (size_t i = 0; i < names->n; i++) {
        weft_error why = {0};
        const weft_status st = read_tenant(t, names->name[i], looks_only, &why);
        if (!st) continue;
        pthread_mutex_lock(&t->lock);
        t->reads_all |= !weft__teach_names_put(&t->woken, names->name[i]);
        pthread_mutex_unlock(&t->lock);
        if (!first || (st == WEFT_BUSY && first != WEFT_BUSY)) first = weft_fail(err, st, "%s", why.message);
    }
    return first;
}

/* For a reader that may not call the store. */
static int take_name(void *arg, const char *tenant)
{
    return !weft__teach_names_put(arg, tenant);
}

static weft_status read_all(weft__teach_store *t, int looks_only, weft_error *err)
{
    weft__teach_names names = {0};
    weft_status st = weft__learn_tenants(t->store, take_name, &names, err);
    if (st) {
        pthread_mutex_lock(&t->lock);
        t->reads_all = 1;
        pthread_mutex_unlock(&t->lock);
    } else st = read_named(t, &names, looks_only, err);
    weft__free(names.name);
    return st;
}

weft_status weft__teach_feed_restore(weft__teach_store *t, weft_error *err)
{
    return read_all(t, 1, err);
}

/* ---- the thread ---- */

void weft__teach_feed_woken(void *teach_store, const char *tenant, weft__learn_kind kind)
{
    weft__teach_store *t = teach_store;
    (void)kind;
    pthread_mutex_lock(&t->lock);
    t->n_woken++;
    t->reads_all |= !weft__teach_names_put(&t->woken, tenant);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* With the lock, which it gives up meanwhile. */
static weft_status read_woken(weft__teach_store *t, weft_error *err)
{
    weft__teach_names names = t->woken;
    const int all = t->reads_all;
    t->woken = (weft__teach_names){0};
    t->reads_all = 0;
    pthread_mutex_unlock(&t->lock);
    weft_status st = all ? read_all(t, 0, err) : read_named(t, &names, 0, err);
    weft__free(names.name);
    pthread_mutex_lock(&t->lock);
    return st;
}

void *weft__teach_feed_run(void *teach_store)
{
    weft__teach_store *t = teach_store;
    pthread_mutex_lock(&t->lock);
    while (!t->ends) {
        weft_error err = {0};
        if (t->n_read && weft__teach_night_is_due(t)) { /* what was before is known */
            pthread_mutex_unlock(&t->lock);
            weft__teach_night_run(t);
            pthread_mutex_lock(&t->lock);
        }
        const uint64_t n = t->n_woken;
        if (t->n_read == n) {
            weft__clock_wait(&t->changed, &t->lock, weft__teach_night_look(t));
            continue;
        }
        if (read_woken(t, &err) == WEFT_BUSY && !t->ends) { /* so much waits to be learned: the rest later */
            weft__clock_wait(&t->changed, &t->lock, weft__clock_ns() + AGAIN_MS * 1000000ull);
            continue;
        }
        if (err.status) weft__log(WEFT__LOG_WARN, "learning reads no further: %s", err.message);
        t->n_read = n;
        pthread_cond_broadcast(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}
