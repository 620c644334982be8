// SPDX-License-Identifier: Apache-2.0
/* store_forget.c: all of a tenant goes (store.h). The writer's thread, outside of a transaction.
 *
 * Rows go in one transaction, which also notes that there is more to do: the folder, the copies of old pages in the
 * WAL, and pages that the database no longer uses. What a kill or a reader interrupts goes on with a batch a minute
 * later, with the next forgetting, or when the store is opened again. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "learn/parts.h"

enum { TABLES = 64, NAME = 64 };

/* Rows of all tables with a column `tenant`. */
static weft_status delete_rows(sqlite3 *db, int64_t tenant, weft_error *err)
{
    char names[TABLES][NAME];
    int n = 0;
    sqlite3_stmt *q;
    weft_status st = weft__learn_db_ask(db, &q, err,
                                        "SELECT t.name FROM sqlite_master t JOIN pragma_table_info(t.name) c"
                                        " WHERE t.type = 'table' AND c.name = 'tenant' ORDER BY t.name = 'tenants'",
                                        "");
    while (!st && weft__learn_db_next(q, &st, err)) {
        if (n == TABLES || sqlite3_column_bytes(q, 0) >= NAME)
            st = weft_fail(err, WEFT_LIMIT, "the store has more tables than it can forget from");
        else strcpy(names[n++], weft__learn_db_text(q, 0));
    }
    weft__learn_db_end(&q);
    for (int i = 0; i < n && !st; i++) {
        char *sql = sqlite3_mprintf("DELETE FROM \"%w\" WHERE tenant = ?1", names[i]);
        st = sql ? weft__learn_db_do(db, err, sql, "i", tenant) : weft_fail(err, WEFT_NO_MEMORY, "no memory to forget");
        sqlite3_free(sql);
    }
    return st;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *where)
{
    (void)s, (void)kind, (void)where;
    return remove(path);
}

static weft_status remove_folder(weft__learn_store *s, int64_t tenant, weft_error *err)
{
    weft__strbuf path = {0};
    weft_status st = WEFT_OK;
    weft__strbuf_printf(&path, "%s/tenants/%lld", s->dir, (long long)tenant);
    if (path.failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a path");
    if (nftw(path.data, remove_one, 8, FTW_DEPTH | FTW_PHYS) && errno != ENOENT) {
        s->why = weft__learn_why_of(errno);
        st = weft_fail(err, WEFT_IO, "%s: %s", path.data, strerror(errno));
    }
    weft__strbuf_free(&path);
    return st;
}

/* The WAL has no bytes then, or a reader of another process is in the way. Not waited for: chats need the reader. */
static weft_status empty_wal(weft__learn_store *s, weft_error *err)
{
    int n_log = 0, n_done = 0;
    sqlite3_busy_timeout(s->db, 0);
    if (s->reader) pthread_mutex_lock(&s->read_lock);
    const int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, &n_log, &n_done);
    if (s->reader) pthread_mutex_unlock(&s->read_lock);
    sqlite3_busy_timeout(s->db, WEFT__LEARN_PATIENCE_MS);
    if ((rc & 0xff) == SQLITE_BUSY || (!rc && n_log > 0))
        return weft_fail(err, WEFT_BUSY, "another process reads the store and keeps old pages: try again");
    return rc ? weft__learn_db_fault(s->db, rc, err) : WEFT_OK;
}

weft_status weft__learn_forget_rest(weft__learn_store *s, weft_error *err)
{
    int64_t tenant;
    weft_status st = WEFT_OK;
    s->tried_ns = weft__clock_ns();
    for (;;) {
        st = weft__learn_db_number(s->db, 0, &tenant, err, "SELECT number FROM forgetting LIMIT 1", "");
        if (st || !tenant) break;
        st = remove_folder(s, tenant, err);
        /* Journals of statements would hold what is deleted; in a file of the system's they are not ours to clear. */
        if (!st) st = weft__learn_db_run(s->db, "PRAGMA temp_store = FILE; VACUUM; PRAGMA temp_store = MEMORY", err);
        if (!st) st = empty_wal(s, err);
        if (!st) st = weft__learn_db_do(s->db, err, "DELETE FROM forgetting WHERE number = ?1", "i", tenant);
        if (st) break;
    }
    if (!st) s->is_unfinished = 0;
    return st;
}

/* From now on, what began before brings nothing. */
static void note_forgotten(weft__learn_store *s, const char *tenant)
{
    pthread_mutex_lock(&s->lock);
    s->forgotten[s->n_forgotten % WEFT__LEARN_FORGOTTEN] =
        (struct weft__learn_forgotten){weft__hash(tenant, strlen(tenant)), weft__clock_unix_ms()};
    s->n_forgotten++;
    pthread_mutex_unlock(&s->lock);
}

static weft_status forget_rows(weft__learn_store *s, const char *tenant, weft__learn_totals *had, weft_error *err)
{
    unsigned char salt[WEFT__LEARN_SALT] = {0};
    const uint64_t place = s->next_place;
    int64_t number;
    weft_status st = weft__learn_db_run(s->db, "PRAGMA temp_store = MEMORY; BEGIN IMMEDIATE", err);
    if (st) return st;
    st = weft__learn_tenant(s->db, tenant, 0, &number, salt, err);
    if (!st) st = weft__learn_count_of(s->db, number, had, err);
    if (!st) st = weft__learn_say_deletion(&(weft__learn_sayer){s, salt, tenant}, had, err);
    if (!st) st = delete_rows(s->db, number, err);
    if (!st) st = weft__learn_db_do(s->db, err, "INSERT INTO forgetting(number) VALUES(?1)", "i", number);
    if (!st) st = weft__learn_db_run(s->db, "COMMIT", err);
    if (!st) s->is_unfinished = 1;
    if (!st) return st;
    s->next_place = place;
    if (!sqlite3_get_autocommit(s->db)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}

weft_status weft__learn_forget_all(weft__learn_store *s, weft__learn_job *job, weft_error *err)
{
    weft__learn_totals had = {0};
    const int was_unfinished = s->is_unfinished;
    note_forgotten(s, job->tenant);
    weft_status st = forget_rows(s, job->tenant, &had, err);
    if (job->result) *(weft__learn_totals *)job->result = had;
    if (st && !(st == WEFT_NOT_FOUND && was_unfinished)) return st;
    return weft__learn_forget_rest(s, err);
}

weft_status weft__learn_forget(weft__learn_store *s, const char *tenant, weft__learn_totals *out, weft_error *err)
{
    weft__learn_job job = {.kind = WEFT__LEARN_JOB_FORGET, .tenant = tenant, .result = out};
    return weft__learn_await(s, &job, err);
}
