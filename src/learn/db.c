// SPDX-License-Identifier: Apache-2.0
/* db.c: SQLite as the store uses it: the schema, and statements (parts.h). A connection has one user at a time. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "learn/parts.h"

enum { VERSION = 1, APPLICATION = 0x57454654 /* "WEFT" */ };

/* `told`: something was said of it. Bytes are counted where rows come and go. `place`: in the witness log. A column
 * `tenant` makes its rows the tenant's (store.h). */
static const char SCHEMA[] =
    "CREATE TABLE tenants(tenant INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, salt BLOB NOT NULL,"
    " bytes INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE answers(number INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, id TEXT NOT NULL,"
    " choice INTEGER NOT NULL, time INTEGER NOT NULL, model TEXT, base TEXT, adapter TEXT, version INTEGER,"
    " content TEXT, settings TEXT, seed INTEGER, finish TEXT, notes INTEGER, prompt BLOB, answer BLOB, logprobs BLOB,"
    " source TEXT, text TEXT, bytes INTEGER NOT NULL, told INTEGER NOT NULL DEFAULT 0);"
    "CREATE UNIQUE INDEX answers_id ON answers(tenant, id, choice);"
    "CREATE INDEX answers_time ON answers(tenant, time);"
    "CREATE INDEX answers_order ON answers(tenant, told, time);"
    "CREATE INDEX answers_age ON answers(time);"
    "CREATE TABLE events(event INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, answer INTEGER NOT NULL,"
    " kind INTEGER NOT NULL, time INTEGER NOT NULL, value REAL, text TEXT, name TEXT, over INTEGER, note TEXT,"
    " note_end INTEGER, bytes INTEGER NOT NULL);"
    "CREATE INDEX events_tenant ON events(tenant, event);"
    "CREATE INDEX events_answer ON events(tenant, answer, kind, event);"
    "CREATE INDEX events_time ON events(tenant, time);"
    "CREATE INDEX events_note ON events(tenant, note_end) WHERE note_end IS NOT NULL;"
    "CREATE TABLE versions(number INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, adapter TEXT NOT NULL,"
    " version INTEGER NOT NULL, what TEXT NOT NULL, content TEXT, parent TEXT, path TEXT, first_event INTEGER,"
    " last_event INTEGER, options TEXT, report TEXT, time INTEGER NOT NULL);"
    "CREATE INDEX versions_of ON versions(tenant, adapter, number);"
    "CREATE TABLE memories(number INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, kind TEXT, key TEXT,"
    " text TEXT, source TEXT, time INTEGER NOT NULL, valid_from INTEGER, valid_to INTEGER, uses INTEGER, wins INTEGER,"
    " losses INTEGER);"
    "CREATE INDEX memories_of ON memories(tenant, number);"
    "CREATE TABLE unwitnessed(place INTEGER PRIMARY KEY, entry TEXT NOT NULL);"
    "CREATE TABLE forgetting(number INTEGER PRIMARY KEY);"
    "CREATE TRIGGER answer_comes AFTER INSERT ON answers BEGIN"
    " UPDATE tenants SET bytes = bytes + new.bytes WHERE tenant = new.tenant; END;"
    "CREATE TRIGGER answer_goes AFTER DELETE ON answers BEGIN"
    " DELETE FROM events WHERE tenant = old.tenant AND answer = old.number;"
    " UPDATE tenants SET bytes = bytes - old.bytes WHERE tenant = old.tenant; END;"
    "CREATE TRIGGER event_comes AFTER INSERT ON events BEGIN"
    " UPDATE answers SET told = 1 WHERE number = new.answer;"
    " UPDATE tenants SET bytes = bytes + new.bytes WHERE tenant = new.tenant; END;"
    "CREATE TRIGGER event_goes AFTER DELETE ON events BEGIN"
    " UPDATE tenants SET bytes = bytes - old.bytes WHERE tenant = old.tenant; END;";

/* Stores of before have none of it. Programs of before leave it alone, and forget it with its tenant. keys: `said`: of
 * what (store_told.c); `repeats`: what was said already. made: of which events memories were made; of those that are
 * there already it is not asked any more. */
static const char LATER[] =
    "CREATE TABLE keys(tenant INTEGER NOT NULL, key TEXT NOT NULL, said TEXT NOT NULL, event INTEGER NOT NULL,"
    " time INTEGER NOT NULL, repeats INTEGER NOT NULL, PRIMARY KEY(tenant, key));"
    "CREATE INDEX keys_event ON keys(tenant, event);"
    "CREATE INDEX keys_time ON keys(tenant, time);"
    "CREATE TABLE made(tenant INTEGER NOT NULL, event INTEGER NOT NULL, PRIMARY KEY(tenant, event)) WITHOUT ROWID;"
    "INSERT INTO made SELECT tenant, event FROM events;"
    "CREATE TRIGGER event_goes_later AFTER DELETE ON events BEGIN"
    " DELETE FROM keys WHERE tenant = old.tenant AND event = old.event;"
    " DELETE FROM made WHERE tenant = old.tenant AND event = old.event; END;";

weft__learn_why weft__learn_why_of(int number)
{
    return number == ENOSPC || number == EDQUOT || number == EFBIG  ? WEFT__LEARN_FULL
           : number == EACCES || number == EPERM || number == EROFS ? WEFT__LEARN_DENIED
                                                                    : WEFT__LEARN_OTHER;
}

/* What the system said of a write to the log or the database; errno is another's by the time SQLite reads it for
 * sqlite3_system_errno. 0: nothing. */
static int last_errno(sqlite3 *db)
{
    sqlite3_file *log = NULL;
    int number = 0;
    if (!sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) && log && log->pMethods)
        log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &number);
    if (!number) sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
    return number;
}

weft__learn_why weft__learn_db_why(sqlite3 *db, int rc)
{
    const int kind = rc & 0xff;
    if (kind == SQLITE_FULL) return WEFT__LEARN_FULL;
    if (kind == SQLITE_READONLY || kind == SQLITE_PERM) return WEFT__LEARN_DENIED;
    if (db && kind == SQLITE_IOERR) return weft__learn_why_of(last_errno(db));
    return db && kind == SQLITE_CANTOPEN ? weft__learn_why_of(sqlite3_system_errno(db)) : WEFT__LEARN_OTHER;
}

weft_status weft__learn_db_fault(sqlite3 *db, int rc, weft_error *err)
{
    static const char *const causes[] = {
        "", "the disk is full, or the file too large for it: ", "it or its folder may not be written to: "};
    const int kind = rc & 0xff;
    const weft_status st = kind == SQLITE_NOMEM                              ? WEFT_NO_MEMORY
                           : kind == SQLITE_BUSY || kind == SQLITE_LOCKED    ? WEFT_BUSY
                           : kind == SQLITE_CONSTRAINT                       ? WEFT_EXISTS
                           : kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB ? WEFT_FORMAT
                                                                             : WEFT_IO;
    const char *path = db ? sqlite3_db_filename(db, "main") : NULL;
    const weft__learn_why why = st == WEFT_IO ? weft__learn_db_why(db, rc) : WEFT__LEARN_OTHER;
    return weft_fail(err, st, "%s: %s%s", path && *path ? path : "learn.db", causes[why],
                     db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

weft_status weft__learn_db_run(sqlite3 *db, const char *sql, weft_error *err)
{
    const int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc ? weft__learn_db_fault(db, rc, err) : WEFT_OK;
}

static weft_status db_bind(sqlite3 *db, sqlite3_stmt **out, weft_error *err, const char *sql, const char *types,
                           va_list args)
{
    int rc = sqlite3_prepare_v2(db, sql, -1, out, NULL);
    for (int i = 0; !rc && types[i]; i++) {
        const char *text = NULL;
        if (types[i] == 'i') rc = sqlite3_bind_int64(*out, i + 1, va_arg(args, int64_t));
        else if (types[i] == 'd') rc = sqlite3_bind_double(*out, i + 1, va_arg(args, double));
        else if (types[i] == 's') rc = sqlite3_bind_text(*out, i + 1, va_arg(args, const char *), -1, SQLITE_STATIC);
        else {
            text = va_arg(args, const char *);
            const size_t n = va_arg(args, size_t);
            rc = types[i] == 't' ? sqlite3_bind_text64(*out, i + 1, text, n, SQLITE_STATIC, SQLITE_UTF8)
                                 : sqlite3_bind_blob64(*out, i + 1, text, n, SQLITE_STATIC);
        }
    }
    if (!rc) return WEFT_OK;
    weft_status st = weft__learn_db_fault(db, rc, err);
    weft__learn_db_end(out);
    return st;
}

weft_status weft__learn_db_ask(sqlite3 *db, sqlite3_stmt **out, weft_error *err, const char *sql, const char *types,
                               ...)
{
    va_list args;
    va_start(args, types);
    weft_status st = db_bind(db, out, err, sql, types, args);
    va_end(args);
    return st;
}

int weft__learn_db_next(sqlite3_stmt *q, weft_status *st, weft_error *err)
{
    const int rc = sqlite3_step(q);
    *st = rc == SQLITE_ROW || rc == SQLITE_DONE ? WEFT_OK : weft__learn_db_fault(sqlite3_db_handle(q), rc, err);
    return rc == SQLITE_ROW;
}

void weft__learn_db_end(sqlite3_stmt **q)
{
    sqlite3_finalize(*q);
    *q = NULL;
}

weft_status weft__learn_db_do(sqlite3 *db, weft_error *err, const char *sql, const char *types, ...)
{
    sqlite3_stmt *q;
    va_list args;
    va_start(args, types);
    weft_status st = db_bind(db, &q, err, sql, types, args);
    va_end(args);
    if (!st) weft__learn_db_next(q, &st, err);
    weft__learn_db_end(&q);
    return st;
}

weft_status weft__learn_db_number(sqlite3 *db, int64_t none, int64_t *out, weft_error *err, const char *sql,
                                  const char *types, ...)
{
    sqlite3_stmt *q;
    va_list args;
    va_start(args, types);
    weft_status st = db_bind(db, &q, err, sql, types, args);
    va_end(args);
    *out = none;
    if (!st && weft__learn_db_next(q, &st, err)) *out = sqlite3_column_int64(q, 0);
    weft__learn_db_end(&q);
    return st;
}

const char *weft__learn_db_text(sqlite3_stmt *q, int column)
{
    const char *text = (const char *)sqlite3_column_text(q, column);
    return text ? text : "";
}

/* ---- opening ---- */

static weft_status check_version(sqlite3 *db, int looks, weft_error *err)
{
    int64_t version, application;
    weft_status st = weft__learn_db_number(db, 0, &version, err, "PRAGMA user_version", "");
    if (!st) st = weft__learn_db_number(db, 0, &application, err, "PRAGMA application_id", "");
    if (st || (application == APPLICATION && version == VERSION)) return st;
    if (application == APPLICATION)
        return weft_fail(err, WEFT_FORMAT, "learn.db is of form %d; this program knows %d", (int)version, VERSION);
    if (application || version || looks) return weft_fail(err, WEFT_FORMAT, "learn.db is not a store of weft's");
    st = weft__learn_db_run(db, "BEGIN IMMEDIATE", err);
    if (!st) st = weft__learn_db_run(db, SCHEMA, err);
    if (!st) st = weft__learn_db_run(db, "PRAGMA user_version = 1; PRAGMA application_id = 1464157780; COMMIT", err);
    if (st) sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}
_Static_assert(VERSION == 1 && APPLICATION == 1464157780, "as the statement above says");

static weft_status make_later(sqlite3 *db, weft_error *err)
{
    int64_t has;
    weft_status st =
        weft__learn_db_number(db, 0, &has, err, "SELECT count(*) FROM sqlite_master WHERE name = 'made'", "");
    if (st || has) return st;
    st = weft__learn_db_run(db, "BEGIN IMMEDIATE", err);
    if (!st) st = weft__learn_db_run(db, LATER, err);
    if (!st) st = weft__learn_db_run(db, "COMMIT", err);
    if (st) sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}

weft_status weft__learn_db_open(const char *dir, int looks, weft__learn_sync sync, sqlite3 **out, weft_error *err)
{
    weft__strbuf path = {0};
    weft_status st = WEFT_OK;
    *out = NULL;
    weft__strbuf_printf(&path, "%s/learn.db", dir);
    if (path.failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a path");
    if (looks && access(path.data, F_OK)) st = weft_fail(err, WEFT_NOT_FOUND, "there is no store in %s", dir);
    const int fd = looks ? -1 : open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* as the files beside it then */
    if (fd >= 0) close(fd);
    const int rc = st ? 0 : sqlite3_open_v2(path.data, out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc) st = weft__learn_db_fault(*out, rc, err);
    if (!st) sqlite3_busy_timeout(*out, WEFT__LEARN_PATIENCE_MS);
    if (!st) st = weft__learn_db_run(*out, "PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON", err);
    if (!st)
        st = weft__learn_db_run(
            *out, sync == WEFT__LEARN_SYNC_NONE ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL", err);
    if (!st) st = check_version(*out, looks, err);
    if (!st && !looks) st = make_later(*out, err);
    if (!st && looks) st = weft__learn_db_run(*out, "PRAGMA query_only = ON", err);
    weft__strbuf_free(&path);
    if (st) {
        sqlite3_close(*out);
        *out = NULL;
    }
    return st == WEFT_OK || st == WEFT_NOT_FOUND ? st : weft_fail_within(err, st, "%s", dir);
}
