// SPDX-License-Identifier: Apache-2.0
/* store_entries.c: what the witness log is told: ids, numbers and hashes under the tenant's salt, with which they say
 * nothing once the salt is gone. Entries are put into the database with what they tell of, and move into the log behind
 * the commit: so both know the same, whenever it was that something was killed. The writer's thread. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/sha256.h"
#include "learn/parts.h"

/* Appends "name":"64 digits", SHA-256 of salt, name, and the bytes. */
static weft_status put_digest(weft__strbuf *out, const unsigned char *salt, const char *name, const void *bytes,
                              size_t n, weft_error *err)
{
    weft__sha256 h = {0};
    char hex[65];
    weft_status st = weft__sha256_begin(&h, err);
    if (!st) st = weft__sha256_add(&h, salt, WEFT__LEARN_SALT, err);
    if (!st) st = weft__sha256_add(&h, name, strlen(name) + 1, err);
    if (!st) st = weft__sha256_add(&h, bytes, n, err);
    if (!st) {
        weft__sha256_end(&h, hex);
        weft__strbuf_printf(out, ",\"%s\":\"%s\"", name, hex);
    }
    weft__sha256_free(&h);
    return st;
}

static void put_member_text(weft__strbuf *out, const char *name, const char *text)
{
    weft__strbuf_printf(out, ",\"%s\":", name);
    weft__json_write_string(out, text ? text : "", text ? strlen(text) : 0);
}

static weft_status begin(const weft__learn_sayer *y, weft__strbuf *out, const char *kind, int64_t time_ms,
                         weft_error *err)
{
    weft__strbuf_printf(out, "{\"kind\":\"%s\",\"time\":%" PRId64, kind, time_ms);
    return put_digest(out, y->salt, "tenant", y->tenant, strlen(y->tenant), err);
}

/* Beside the records, at the next place of the log. Takes the text's bytes. */
static weft_status keep_entry(const weft__learn_sayer *y, weft__strbuf *out, weft_status st, weft_error *err)
{
    weft__learn_store *s = y->store;
    weft__strbuf_putc(out, '}');
    if (!st && out->failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for an entry of the log");
    if (!st)
        st = weft__learn_db_do(s->db, err, "INSERT INTO unwitnessed(place, entry) VALUES(?1, ?2)", "it",
                               (int64_t)s->next_place, out->data, out->len);
    if (!st) s->next_place++;
    weft__strbuf_free(out);
    return st;
}

weft_status weft__learn_say_record(const weft__learn_sayer *y, const weft__learn_record *r, weft_error *err)
{
    weft__strbuf out = {0};
    weft_status st = begin(y, &out, "request", r->time_ms, err);
    put_member_text(&out, "id", r->id);
    weft__strbuf_printf(&out, ",\"choice\":%d", r->choice);
    put_member_text(&out, "base", r->base);
    weft__strbuf_printf(&out, ",\"version\":%" PRId64, r->version);
    put_member_text(&out, "content", r->content);
    if (!st) st = put_digest(&out, y->salt, "prompt", r->prompt, (size_t)r->n_prompt * sizeof *r->prompt, err);
    if (!st) st = put_digest(&out, y->salt, "answer", r->answer, (size_t)r->n_answer * sizeof *r->answer, err);
    return keep_entry(y, &out, st, err);
}

weft_status weft__learn_say_feedback(const weft__learn_sayer *y, const weft__learn_feedback *f, int64_t event,
                                     weft_error *err)
{
    weft__strbuf out = {0}, said = {0};
    weft_status st = begin(y, &out, "feedback", f->time_ms, err);
    put_member_text(&out, "id", f->id);
    weft__strbuf_printf(&out, ",\"choice\":%d,\"event\":%" PRId64 ",\"what\":\"%s\"", f->choice, event,
                        weft__learn_kind_name(f->kind));
    weft__strbuf_printf(&said, "%.17g\n%s\n%s %d\n", f->value, f->name ? f->name : "", f->over_id ? f->over_id : "",
                        f->over_choice);
    weft__strbuf_put(&said, f->text, f->n_text);
    if (!st && said.failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for an entry of the log");
    if (!st) st = put_digest(&out, y->salt, "said", said.data, said.len, err);
    weft__strbuf_free(&said);
    return keep_entry(y, &out, st, err);
}

weft_status weft__learn_say_version(const weft__learn_sayer *y, const weft__learn_version *v, weft_error *err)
{
    weft__strbuf out = {0};
    weft_status st = begin(y, &out, "version", v->time_ms, err);
    const char *options = v->options ? v->options : "", *report = v->report ? v->report : "";
    if (!st) st = put_digest(&out, y->salt, "adapter", v->adapter, strlen(v->adapter), err);
    weft__strbuf_printf(&out, ",\"version\":%" PRId64, v->version);
    put_member_text(&out, "what", v->what);
    put_member_text(&out, "content", v->content);
    put_member_text(&out, "parent", v->parent);
    weft__strbuf_printf(&out, ",\"first_event\":%" PRId64 ",\"last_event\":%" PRId64, v->first_event, v->last_event);
    if (!st) st = put_digest(&out, y->salt, "options", options, strlen(options), err);
    if (!st) st = put_digest(&out, y->salt, "report", report, strlen(report), err);
    return keep_entry(y, &out, st, err);
}

weft_status weft__learn_say_deletion(const weft__learn_sayer *y, const weft__learn_totals *t, weft_error *err)
{
    weft__strbuf out = {0};
    weft_status st = begin(y, &out, "deletion", weft__clock_unix_ms(), err);
    weft__strbuf_printf(
        &out, ",\"answers\":%" PRId64 ",\"events\":%" PRId64 ",\"memories\":%" PRId64 ",\"versions\":%" PRId64,
        t->n_answers, t->n_events, t->n_memories, t->n_versions);
    return keep_entry(y, &out, st, err);
}

/* ---- into the log ---- */

/* Entries from the log's end on, at most a batch. *n 0: there are none. */
static weft_status move_some(weft__learn_store *s, size_t *n, weft_error *err)
{
    weft__learn_entry entries[WEFT__LEARN_BATCH];
    weft__strbuf all = {0};
    size_t ends[WEFT__LEARN_BATCH + 1] = {0};
    sqlite3_stmt *q;
    const size_t most = s->sync == WEFT__LEARN_SYNC_EACH ? 1 : WEFT__LEARN_BATCH;
    const int64_t from = (int64_t)weft__learn_witness_size(s->witness);
    weft_status st = weft__learn_db_ask(
        s->db, &q, err, "SELECT place, entry FROM unwitnessed WHERE place >= ?1 ORDER BY place", "i", from);
    *n = 0;
    while (!st && *n < most && weft__learn_db_next(q, &st, err)) {
        if (sqlite3_column_int64(q, 0) != from + (int64_t)*n)
            st = weft_fail(err, WEFT_FORMAT, "the witness log and the store are not of one time: an entry is missing");
        weft__strbuf_put(&all, weft__learn_db_text(q, 1), (size_t)sqlite3_column_bytes(q, 1));
        ends[++*n] = all.len;
    }
    weft__learn_db_end(&q);
    if (!st && all.failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the witness log");
    for (size_t i = 0; i < *n; i++) entries[i] = (weft__learn_entry){all.data + ends[i], ends[i + 1] - ends[i]};
    if (!st && *n) st = weft__learn_witness_append(s->witness, entries, *n, err);
    weft__strbuf_free(&all);
    return st;
}

weft_status weft__learn_witness_move(weft__learn_store *s, weft_error *err)
{
    size_t n;
    weft_status st;
    do {
        st = move_some(s, &n, err);
        pthread_mutex_lock(&s->lock);
        if (!st) s->health.n_witnessed += n;
        s->health.n_unwitnessed = s->next_place - weft__learn_witness_size(s->witness);
        pthread_mutex_unlock(&s->lock);
    } while (!st && n);
    return st;
}
