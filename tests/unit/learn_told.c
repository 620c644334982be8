// SPDX-License-Identifier: Apache-2.0
/* learn_told.c: claims on what is said of answers: it counts once while nothing else was said in its place; with a
 * key once for ever, for one tenant, across restarts, until its answer goes; a key stands for one thing; what the disk
 * does not take is refused, and why is told and counted. */
#include "fixture.h"

#include <errno.h>
#include <sqlite3.h>

#include "learn/feedback.h"
#include "learn/store.h"
#include "learn_world.h"

static int64_t clock_ms = 1700000000000;

static weft__learn_store *open_told(weft__learn_options o)
{
    weft__learn_store *s;
    weft_error err = {0};
    o.dir = folder;
    o.sync = WEFT__LEARN_SYNC_NONE;
    if (weft__learn_open(&o, &s, &err)) fail_msg("%s", err.message);
    return s;
}

static void put(weft__learn_store *s, const char *tenant, const char *id)
{
    const int32_t tokens[] = {1, 2, 3};
    const weft__learn_record r = {.tenant = tenant,
                                  .id = id,
                                  .prompt = tokens,
                                  .n_prompt = 3,
                                  .answer = tokens,
                                  .n_answer = 3,
                                  .source = "{\"prompt\":\"Who?\"}",
                                  .time_ms = clock_ms++};
    assert_true(weft__learn_put(s, &r));
}

static weft_status tell(weft__learn_store *s, weft__learn_feedback f, weft__learn_told *out)
{
    f.time_ms = clock_ms++;
    if (f.text) f.n_text = strlen(f.text);
    return weft__learn_tell(s, &f, out, NULL);
}

/* The event's number, above 0 where it is new, below where it is a repeat. */
static int64_t said(weft__learn_store *s, weft__learn_feedback f)
{
    weft__learn_told told;
    if (!f.tenant) f.tenant = "ada";
    if (!f.id) f.id = "cmpl-1";
    assert_int_equal(tell(s, f, &told), WEFT_OK);
    return told.is_repeated ? -told.event : told.event;
}

#define CORRECTION(t) ((weft__learn_feedback){.kind = WEFT__LEARN_CORRECTION, .text = (t)})
#define EDIT(t) ((weft__learn_feedback){.kind = WEFT__LEARN_EDIT, .text = (t)})
#define THUMB(v) ((weft__learn_feedback){.kind = WEFT__LEARN_THUMB, .value = (v)})
#define CHECK(n, v) ((weft__learn_feedback){.kind = WEFT__LEARN_VERIFIER, .name = (n), .value = (v)})
#define OVER(a, b) ((weft__learn_feedback){.kind = WEFT__LEARN_PREFERRED, .id = (a), .over_id = (b)})

/* Said before, and nothing since says otherwise: whatever else was said meanwhile. */
static void what_holds_is_not_said_twice(void **state)
{
    weft__learn_store *s = open_told((weft__learn_options){0});
    (void)state;
    for (int i = 1; i <= 3; i++) put(s, "ada", (const char *[]){"cmpl-1", "cmpl-2", "cmpl-3"}[i - 1]);
    const int64_t lint = said(s, CHECK("lint", 1)), tests = said(s, CHECK("tests", 0));
    const int64_t one = said(s, OVER("cmpl-1", "cmpl-2")), two = said(s, OVER("cmpl-1", "cmpl-3"));
    const int64_t up = said(s, THUMB(1)), right = said(s, CORRECTION("Two"));
    assert_true(lint > 0 && tests > lint && one > tests && two > one && up > two && right > up);
    assert_int_equal(said(s, CHECK("lint", 1)), -lint);
    assert_int_equal(said(s, CHECK("tests", 0)), -tests);
    assert_int_equal(said(s, OVER("cmpl-1", "cmpl-2")), -one);
    assert_int_equal(said(s, OVER("cmpl-1", "cmpl-3")), -two);
    assert_int_equal(said(s, THUMB(1)), -up);
    assert_int_equal(said(s, CORRECTION("Two")), -right);
    weft__learn_close(&s);
}

/* To and fro: what holds no longer is said anew. */
static void what_was_replaced_is_said_again(void **state)
{
    const weft__learn_feedback turns[][3] = {
        {THUMB(1), THUMB(-1), THUMB(1)},
        {CHECK("lint", 1), CHECK("lint", 0), CHECK("lint", 1)},
        {CORRECTION("Two"), CORRECTION("Three"), CORRECTION("Two")},
        {CORRECTION("Four"), EDIT("It is five."), CORRECTION("Four")},
        {EDIT("Six"), CORRECTION("Six"), EDIT("Six")},
        {OVER("cmpl-1", "cmpl-2"), OVER("cmpl-2", "cmpl-1"), OVER("cmpl-1", "cmpl-2")}};
    weft__learn_store *s = open_told((weft__learn_options){0});
    int64_t last = 0;
    (void)state;
    put(s, "ada", "cmpl-1");
    put(s, "ada", "cmpl-2");
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++)
        for (int k = 0; k < 3; k++) {
            const int64_t event = said(s, turns[i][k]);
            if (event <= last) fail_msg("%d of turn %d was taken as said before", k, (int)i);
            last = event;
        }
    weft__learn_close(&s);
}

static weft__learn_feedback with_key(weft__learn_feedback f, const char *key)
{
    f.key = key;
    return f;
}

/* A late second copy of what was sent before does not undo what was said since; without its key it would. */
static void a_key_counts_once(void **state)
{
    weft__learn_told told;
    weft__learn_totals t;
    weft__learn_store *s = open_told((weft__learn_options){0});
    (void)state;
    put(s, "ada", "cmpl-1");
    put(s, "bob", "cmpl-1");
    const int64_t first = said(s, with_key(CORRECTION("Two"), "k-1")), later = said(s, CORRECTION("Three"));
    assert_true(first > 0 && later > first);
    for (int turn = 0; turn < 2; turn++) { /* also of the next process */
        assert_int_equal(said(s, with_key(CORRECTION("Two"), "k-1")), -first);
        weft__learn_feedback f = with_key(CORRECTION("Four"), "k-1");
        f.tenant = "ada", f.id = "cmpl-1";
        assert_int_equal(tell(s, f, &told), WEFT_EXISTS);
        f.text = "Two", f.choice = 1;
        assert_int_equal(tell(s, f, &told), WEFT_EXISTS);
        f.choice = 0, f.kind = WEFT__LEARN_EDIT;
        assert_int_equal(tell(s, f, &told), WEFT_EXISTS);
        f = with_key(CORRECTION("Two"), "k-1");
        f.tenant = "ada", f.id = "cmpl-9"; /* an answer that there is not */
        assert_int_equal(tell(s, f, &told), WEFT_EXISTS);
        assert_int_equal(weft__learn_count(s, "ada", &t, NULL), WEFT_OK);
        assert_int_equal(t.n_events, 2);
        weft__learn_close(&s);
        s = open_told((weft__learn_options){0});
    }
    weft__learn_feedback bobs = with_key(CORRECTION("Two"), "k-1");
    bobs.tenant = "bob";
    assert_true(said(s, bobs) > later); /* another's key is another key */
    bobs = with_key(CORRECTION("Five"), "k-1"), bobs.tenant = "eve", bobs.id = "cmpl-1";
    assert_int_equal(tell(s, bobs, &told), WEFT_NOT_FOUND);
    weft__learn_close(&s);
}

/* What is refused takes no key; what was said already takes it, and is then that key's. */
static void a_key_is_taken_by_what_is_kept(void **state)
{
    weft__learn_told told;
    weft__learn_store *s = open_told((weft__learn_options){.events_per_hour = 3});
    (void)state;
    weft__learn_feedback f = with_key(THUMB(1), "early");
    f.tenant = "ada", f.id = "cmpl-1";
    put(s, "ada", "cmpl-2");
    assert_int_equal(tell(s, f, &told), WEFT_NOT_FOUND);
    put(s, "ada", "cmpl-1");
    const int64_t up = said(s, with_key(THUMB(1), "early"));
    assert_true(up > 0);
    assert_int_equal(said(s, with_key(THUMB(1), "again")), -up);
    f = with_key(THUMB(-1), "again"), f.tenant = "ada", f.id = "cmpl-1";
    assert_int_equal(tell(s, f, &told), WEFT_EXISTS);
    assert_int_equal(said(s, with_key(THUMB(1), "once more")), -up);
    f = with_key(THUMB(1), "too many"), f.tenant = "ada", f.id = "cmpl-1";
    assert_int_equal(tell(s, f, &told), WEFT_BUSY); /* keys are kept, so they count */
    assert_int_equal(said(s, with_key(THUMB(1), "again")), -up);
    assert_int_equal(said(s, THUMB(1)), -up);
    weft__learn_close(&s);
}

static int64_t n_keys(void)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_open(path_of("learn.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM keys", -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    const int64_t n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return n;
}

static void a_key_goes_with_what_it_stands_for(void **state)
{
    weft__learn_store *s = open_told((weft__learn_options){0});
    (void)state;
    put(s, "ada", "cmpl-1");
    put(s, "bob", "cmpl-1");
    said(s, with_key(THUMB(1), "Xylophone"));
    weft__learn_feedback bobs = with_key(THUMB(1), "Zither");
    bobs.tenant = "bob";
    said(s, bobs);
    assert_int_equal(n_keys(), 2);
    assert_int_equal(weft__learn_forget(s, "ada", NULL, NULL), WEFT_OK);
    assert_int_equal(n_keys(), 1);
    for (const char *const *name = (const char *[]){"learn.db", "learn.db-wal", "log/entries.jsonl", NULL}; *name;
         name++) {
        char *bytes;
        const size_t n = load(*name, &bytes);
        assert_null(memmem(bytes, n, "Xylophone", 9));
        free(bytes);
    }
    weft__learn_close(&s);
    s = open_told((weft__learn_options){.max_age_s = 3600}); /* all of it is of 2023 */
    weft__learn_flush(s);
    assert_int_equal(n_keys(), 0);
    weft__learn_close(&s);
}

/* Keys of repeats are known for a day, as there is no end to them; those of what is kept stay. */
static void a_repeats_key_is_known_for_a_day(void **state)
{
    weft__learn_store *s = open_told((weft__learn_options){0});
    (void)state;
    put(s, "ada", "cmpl-1");
    const int64_t up = said(s, with_key(THUMB(1), "first"));
    assert_int_equal(said(s, with_key(THUMB(1), "again")), -up);
    assert_int_equal(n_keys(), 2);
    clock_ms += 24 * 3600 * 1000 - 100;
    assert_int_equal(said(s, with_key(THUMB(1), "later")), -up);
    assert_int_equal(n_keys(), 3);
    clock_ms += 200;
    assert_int_equal(said(s, with_key(THUMB(1), "next day")), -up);
    assert_int_equal(n_keys(), 3); /* without "again" */
    assert_int_equal(said(s, with_key(THUMB(1), "first")), -up);
    weft__learn_close(&s);
}

/* A store that was made before there were keys. */
static void a_store_of_before_gets_keys(void **state)
{
    sqlite3 *db;
    weft__learn_store *s = open_told((weft__learn_options){0});
    (void)state;
    put(s, "ada", "cmpl-1");
    const int64_t up = said(s, THUMB(1));
    weft__learn_close(&s);
    assert_int_equal(sqlite3_open(path_of("learn.db"), &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "DROP TRIGGER event_goes_later; DROP TABLE keys; DROP TABLE made", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
    s = open_told((weft__learn_options){0});
    assert_int_equal(said(s, with_key(THUMB(1), "k")), -up);
    assert_true(said(s, with_key(THUMB(-1), "l")) > up);
    weft__learn_close(&s);
}

static void a_header_has_one_key(void **state)
{
    static const char *const good[][2] = {{"8e03978e-40d5", "8e03978e-40d5"},
                                          {"\"8e03978e-40d5\"", "8e03978e-40d5"},
                                          {"\"a \\\"b\\\" \\\\, c\"", "a \"b\" \\, c"},
                                          {"a\\b=:;()", "a\\b=:;()"}};
    static const char *const bad[] = {"",          "\"\"",     "\"a",   "a\"",      "a b",  "a, b",     "\"a\", \"b\"",
                                      "\"a\";x=1", "\"a\\n\"", "\"a\\", "\"\x7f\"", "\x01", "\xc3\xa4", "\"\xc3\xa4\""};
    char key[WEFT__LEARN_KEY], longest[300];
    weft_error err;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(weft__learn_key_read(good[i][0], key, NULL), WEFT_OK);
        assert_string_equal(key, good[i][1]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (weft__learn_key_read(bad[i], key, &err) != WEFT_ARGUMENT) fail_msg("'%s' was taken", bad[i]);
    memset(longest, 'x', sizeof longest);
    longest[255] = 0;
    assert_int_equal(weft__learn_key_read(longest, key, NULL), WEFT_OK);
    assert_string_equal(key, longest);
    longest[255] = 'x', longest[256] = 0;
    assert_int_equal(weft__learn_key_read(longest, key, NULL), WEFT_ARGUMENT);
    longest[0] = longest[256] = '"', longest[257] = 0;
    assert_int_equal(weft__learn_key_read(longest, key, NULL), WEFT_OK);
    longest[256] = 'x', longest[257] = '"', longest[258] = 0;
    assert_int_equal(weft__learn_key_read(longest, key, NULL), WEFT_ARGUMENT);
}

#define ON_FOLDER(claim) cmocka_unit_test_setup_teardown(claim, make_folder, remove_folder)

/* ---- what the disk does not take ---- */

static int refuses; /* errno of every write of SQLite's; 0: none */

static ssize_t try_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    return refuses ? (errno = refuses, -1) : pwrite(fd, bytes, n, at);
}

static ssize_t try_write(int fd, const void *bytes, size_t n)
{
    return refuses ? (errno = refuses, -1) : write(fd, bytes, n);
}

static void whatever_it_writes_with(sqlite3_syscall_ptr at_a_place, sqlite3_syscall_ptr plain)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    assert_true(vfs->iVersion >= 3);
    for (int i = 0; i < 2; i++) vfs->xSetSystemCall(vfs, i ? "pwrite64" : "pwrite", at_a_place);
    vfs->xSetSystemCall(vfs, "write", plain);
}

static void what_is_not_kept_says_why(void **state)
{
    static const struct {
        int number;
        weft__learn_why why;
        const char *words;
    } cases[] = {{ENOSPC, WEFT__LEARN_FULL, "the disk is full"},
                 {EFBIG, WEFT__LEARN_FULL, "the disk is full"},
                 {EROFS, WEFT__LEARN_DENIED, "may not be written to"},
                 {EACCES, WEFT__LEARN_DENIED, "may not be written to"},
                 {EIO, WEFT__LEARN_OTHER, "I/O error"}};
    weft__learn_store *s = open_told((weft__learn_options){0});
    weft__learn_told told;
    weft_error err = {0};
    (void)state;
    put(s, "ada", "cmpl-1");
    assert_true(said(s, THUMB(1)) > 0);
    whatever_it_writes_with((sqlite3_syscall_ptr)try_pwrite, (sqlite3_syscall_ptr)try_write);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__learn_health before, now;
        weft__learn_feedback f = THUMB(i % 2 ? 1 : -1);
        f.tenant = "ada", f.id = "cmpl-1", f.time_ms = clock_ms++;
        weft__learn_get_health(s, &before);
        refuses = cases[i].number;
        assert_int_equal(weft__learn_tell(s, &f, &told, &err), WEFT_IO);
        refuses = 0;
        if (!strstr(err.message, cases[i].words)) fail_msg("%d: %s", cases[i].number, err.message);
        assert_int_equal(strstr(err.message, "full") != NULL, cases[i].why == WEFT__LEARN_FULL);
        weft__learn_get_health(s, &now);
        for (int why = 0; why < WEFT__LEARN_WHYS; why++)
            assert_int_equal(now.n_failed[why] - before.n_failed[why], why == (int)cases[i].why);
        assert_true(said(s, THUMB(i % 2 ? 1 : -1)) > 0); /* nothing of it stayed */
    }
    whatever_it_writes_with(NULL, NULL);
    weft__learn_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {ON_FOLDER(what_holds_is_not_said_twice),
                                       ON_FOLDER(what_was_replaced_is_said_again),
                                       ON_FOLDER(a_key_counts_once),
                                       ON_FOLDER(a_key_is_taken_by_what_is_kept),
                                       ON_FOLDER(a_key_goes_with_what_it_stands_for),
                                       ON_FOLDER(a_repeats_key_is_known_for_a_day),
                                       ON_FOLDER(a_store_of_before_gets_keys),
                                       ON_FOLDER(what_is_not_kept_says_why),
                                       cmocka_unit_test(a_header_has_one_key)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
