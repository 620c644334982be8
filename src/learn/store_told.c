// SPDX-License-Identifier: Apache-2.0
/* store_told.c: what is said of answers comes into the store, once: what was said before, or has a key that was given
 * before, adds nothing (parts.h). The writer's thread, in a transaction. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"
#include "learn/parts.h"

/* ---- what it is about ---- */

/* For so long the key of a repeat is known: they are what a caller may give without end. */
#define REPEATS_MS (24 * 3600 * 1000)

/* What an event is about. */
struct told_of {
    int64_t tenant, answer, over; /* numbers; over 0: none */
    unsigned char salt[WEFT__LEARN_SALT];
    char print[65]; /* of what is said, where it has a key */
    weft__strbuf note;
};

static weft_status find_answer(weft__learn_store *s, const weft__learn_feedback *f, struct told_of *of,
                               weft__learn_told *told, weft_error *err)
{
    sqlite3_stmt *q = NULL;
    weft_status st = weft__learn_tenant(s->db, f->tenant, 0, &of->tenant, of->salt, err);
    if (!st)
        st = weft__learn_db_ask(s->db, &q, err,
                                "SELECT number, adapter, version, source FROM answers"
                                " WHERE tenant = ?1 AND id = ?2 AND choice = ?3",
                                "isi", of->tenant, f->id, (int64_t)f->choice);
    if (!st && weft__learn_db_next(q, &st, err)) {
        of->answer = sqlite3_column_int64(q, 0);
        snprintf(told->adapter, sizeof told->adapter, "%s", weft__learn_db_text(q, 1));
        told->version = sqlite3_column_int64(q, 2);
        if (f->kind == WEFT__LEARN_CORRECTION || f->kind == WEFT__LEARN_EDIT)
            st = weft__learn_note(weft__learn_db_text(q, 3), f->text, f->n_text, &of->note, err);
    }
    weft__learn_db_end(&q);
    if (st == WEFT_NOT_FOUND || (!st && !of->answer))
        return weft_fail(err, WEFT_NOT_FOUND, "there is no answer %d of a request '%s' of yours", f->choice, f->id);
    return st;
}

static weft_status find_over(weft__learn_store *s, const weft__learn_feedback *f, struct told_of *of, weft_error *err)
{
    if (f->kind != WEFT__LEARN_PREFERRED) return WEFT_OK;
    weft_status st = weft__learn_db_number(s->db, 0, &of->over, err,
                                           "SELECT number FROM answers WHERE tenant = ?1 AND id = ?2 AND choice = ?3",
                                           "isi", of->tenant, f->over_id, (int64_t)f->over_choice);
    int64_t is_other = 0;
    if (!st && !of->over)
        return weft_fail(err, WEFT_NOT_FOUND, "there is no answer %d of a request '%s' of yours", f->over_choice,
                         f->over_id);
    if (!st)
        st = weft__learn_db_number(s->db, 0, &is_other, err,
                                   "SELECT count(*) FROM answers a, answers b WHERE a.number = ?1 AND b.number = ?2"
                                   " AND a.number <> b.number AND a.prompt = b.prompt",
                                   "ii", of->answer, of->over);
    if (!st && !is_other)
        return weft_fail(err, WEFT_ARGUMENT, "a preference is between two answers to the same prompt");
    return st;
}

/* ---- what was said before ---- */

/* Does an event say the same as f, of whichever answer? The columns: event, kind, value, text, name, over. */
static int says_the_same(sqlite3_stmt *q, const weft__learn_feedback *f, int64_t over)
{
    const char *text = weft__learn_db_text(q, 3);
    const size_t n = (size_t)sqlite3_column_bytes(q, 3);
    return sqlite3_column_int(q, 1) == (int)f->kind && sqlite3_column_double(q, 2) == f->value && n == f->n_text &&
           (!n || !memcmp(text, f->text, n)) && !strcmp(weft__learn_db_text(q, 4), f->name ? f->name : "") &&
           sqlite3_column_int64(q, 5) == over;
}

/* Is it said already, and has nothing that came since put something else in its place? Corrections and edits replace
 * each other; a thumb the one before it, a reward likewise; a verifier what it said itself; a preference the opposite
 * one between the same two answers. *event: its number; 0: it is new. */
static weft_status is_repeated(weft__learn_store *s, const weft__learn_feedback *f, const struct told_of *of,
                               int64_t *event, weft_error *err)
{
#define SAID "SELECT event, kind, value, coalesce(text, ''), coalesce(name, ''), over FROM events WHERE tenant = ?1"
#define LAST " ORDER BY event DESC LIMIT 1"
    static const char edited[] = SAID " AND answer = ?2 AND kind IN (?3, ?4)" LAST;
    static const char said[] = SAID " AND answer = ?2 AND kind = ?3" LAST;
    static const char checked[] = SAID " AND answer = ?2 AND kind = ?3 AND coalesce(name, '') = ?4" LAST;
    static const char preferred[] =
        SAID " AND kind = ?3 AND ((answer = ?2 AND over = ?4) OR (answer = ?4 AND over = ?2))" LAST;
#undef SAID
#undef LAST
    const int is_text = f->kind == WEFT__LEARN_CORRECTION || f->kind == WEFT__LEARN_EDIT;
    const int64_t kind = is_text ? WEFT__LEARN_CORRECTION : f->kind;
    sqlite3_stmt *q = NULL;
    weft_status st = is_text ? weft__learn_db_ask(s->db, &q, err, edited, "iiii", of->tenant, of->answer, kind,
                                                  (int64_t)WEFT__LEARN_EDIT)
                     : f->kind == WEFT__LEARN_VERIFIER ? weft__learn_db_ask(s->db, &q, err, checked, "iiis", of->tenant,
                                                                            of->answer, kind, f->name ? f->name : "")
                     : f->kind == WEFT__LEARN_PREFERRED
                         ? weft__learn_db_ask(s->db, &q, err, preferred, "iiii", of->tenant, of->answer, kind, of->over)
                         : weft__learn_db_ask(s->db, &q, err, said, "iii", of->tenant, of->answer, kind);
    *event = 0;
    if (!st && weft__learn_db_next(q, &st, err) && says_the_same(q, f, of->over)) *event = sqlite3_column_int64(q, 0);
    weft__learn_db_end(&q);
    return st;
}

/* ---- keys ---- */

/* What a key stands for: SHA-256, in digits, of all that was said, and of which answer. */
static weft_status print_of(const weft__learn_feedback *f, const struct told_of *of, char hex[65], weft_error *err)
{
    const char *const texts[] = {f->id, f->name ? f->name : "", f->over_id ? f->over_id : ""};
    const int64_t numbers[] = {f->choice, f->kind, f->over_choice, (int64_t)f->n_text};
    weft__sha256 h = {0};
    weft_status st = weft__sha256_begin(&h, err);
    if (!st) st = weft__sha256_add(&h, of->salt, sizeof of->salt, err);
    for (size_t i = 0; !st && i < sizeof texts / sizeof *texts; i++)
        st = weft__sha256_add(&h, texts[i], strlen(texts[i]) + 1, err);
    if (!st) st = weft__sha256_add(&h, numbers, sizeof numbers, err);
    if (!st) st = weft__sha256_add(&h, &f->value, sizeof f->value, err);
    if (!st && f->n_text) st = weft__sha256_add(&h, f->text, f->n_text, err);
    if (!st) weft__sha256_end(&h, hex);
    weft__sha256_free(&h);
    return st;
}

/* The event that the tenant's key stands for; 0: it was never given. WEFT_EXISTS: it stands for other feedback. */
static weft_status find_key(weft__learn_store *s, const weft__learn_feedback *f, struct told_of *of, int64_t *event,
                            weft_error *err)
{
    sqlite3_stmt *q;
    *event = 0;
    if (!f->key || !of->tenant) return WEFT_OK;
    weft_status st = print_of(f, of, of->print, err);
    if (st) return st;
    st = weft__learn_db_ask(s->db, &q, err, "SELECT event, said FROM keys WHERE tenant = ?1 AND key = ?2", "is",
                            of->tenant, f->key);
    if (!st && weft__learn_db_next(q, &st, err)) {
        *event = sqlite3_column_int64(q, 0);
        if (strcmp(weft__learn_db_text(q, 1), of->print))
            st = weft_fail(err, WEFT_EXISTS,
                           "the idempotency key '%.60s' was given with other feedback, event %" PRId64
                           "; each thing that is said wants a key of its own",
                           f->key, *event);
    }
    weft__learn_db_end(&q);
    return st;
}

static weft_status put_key(weft__learn_store *s, const weft__learn_feedback *f, const struct told_of *of,
                           const weft__learn_told *told, weft_error *err)
{
    weft_status st = WEFT_OK;
    if (!f->key) return st;
    if (told->is_repeated) /* those of what is kept go with it */
        st = weft__learn_db_do(s->db, err, "DELETE FROM keys WHERE tenant = ?1 AND repeats AND time < ?2", "ii",
                               of->tenant, f->time_ms - REPEATS_MS);
    if (st) return st;
    return weft__learn_db_do(
        s->db, err, "INSERT INTO keys(tenant, key, said, event, time, repeats) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
        "issiii", of->tenant, f->key, of->print, told->event, f->time_ms, (int64_t)told->is_repeated);
}

/* ---- what is new ---- */

static weft_status check_rate(weft__learn_store *s, const weft__learn_feedback *f, int64_t tenant, weft_error *err)
{
    int64_t n;
    weft_status st = weft__learn_db_number(s->db, 0, &n, err,
                                           "SELECT (SELECT count(*) FROM events WHERE tenant = ?1 AND time > ?2)"
                                           " + (SELECT count(*) FROM keys WHERE tenant = ?1 AND time > ?2 AND repeats)",
                                           "ii", tenant, f->time_ms - 3600 * 1000);
    if (st || n < s->events_per_hour) return st;
    return weft_fail(err, WEFT_BUSY, "%" PRId64 " events of feedback came within an hour, the most that one may give",
                     n);
}

static weft_status add_event(weft__learn_store *s, const weft__learn_feedback *f, const struct told_of *of,
                             weft_error *err)
{
    int64_t end = 0;
    weft_status st = WEFT_OK;
    if (of->note.len) { /* what was said before of this answer no longer holds */
        st = weft__learn_db_do(s->db, err,
                               "UPDATE events SET note = NULL, note_end = NULL"
                               " WHERE tenant = ?1 AND answer = ?2 AND note IS NOT NULL",
                               "ii", of->tenant, of->answer);
        if (!st)
            st = weft__learn_db_number(s->db, 0, &end, err,
                                       "SELECT coalesce(max(note_end), 0) FROM events WHERE tenant = ?1"
                                       " AND note_end IS NOT NULL",
                                       "i", of->tenant);
        end += (int64_t)of->note.len;
    }
    if (st) return st;
    return weft__learn_db_do(
        s->db, err,
        "INSERT INTO events(tenant, answer, kind, time, value, text, name, over, note, note_end, bytes)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, nullif(?8, 0), ?9, nullif(?10, 0), ?11)",
        "iiiidtsitii", of->tenant, of->answer, (int64_t)f->kind, f->time_ms, f->value, f->text, f->n_text, f->name,
        of->over, of->note.len ? of->note.data : NULL, of->note.len, end, (int64_t)(f->n_text + of->note.len));
}

/* Says it, or says its key alone, where it was said already. */
static weft_status put_told(weft__learn_store *s, const weft__learn_feedback *f, const struct told_of *of,
                            weft__learn_told *told, weft_error *err)
{
    if (told->is_repeated && !f->key) return WEFT_OK;
    weft_status st = check_rate(s, f, of->tenant, err);
    if (!st && !told->is_repeated) {
        st = add_event(s, f, of, err);
        told->event = sqlite3_last_insert_rowid(s->db);
        if (!st) st = weft__learn_say_feedback(&(weft__learn_sayer){s, of->salt, f->tenant}, f, told->event, err);
    }
    if (!st) st = put_key(s, f, of, told, err);
    return st || told->is_repeated ? st : weft__learn_expire(s, of->tenant, err);
}

weft_status weft__learn_write_feedback(weft__learn_store *s, const weft__learn_feedback *f, weft__learn_told *told,
                                       weft_error *err)
{
    struct told_of of = {.answer = 0};
    *told = (weft__learn_told){0};
    weft_status found = find_answer(s, f, &of, told, err);
    weft_status st = found && found != WEFT_NOT_FOUND ? found : find_key(s, f, &of, &told->event, err);
    if (!st) st = found;
    const int has_key = told->event != 0;
    if (!st && !has_key) st = find_over(s, f, &of, err);
    if (!st && !has_key) st = is_repeated(s, f, &of, &told->event, err);
    told->is_repeated = told->event != 0;
    told->is_note = of.note.len != 0;
    if (!st && !has_key) st = put_told(s, f, &of, told, err);
    weft__strbuf_free(&of.note);
    return st;
}
