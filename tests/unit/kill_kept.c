// SPDX-License-Identifier: Apache-2.0
/* kill_kept.c: claims on what is made of feedback where the process is killed, or the disk is full, at each write and
 * each rename: memories, versions and their files, the router's log. What was acknowledged is there; what a row names
 * is there whole; nothing is half made, and the next process makes the rest; who was forgotten is in no file. A child
 * does the work; the writes of SQLite, of files and of logs pass through here. */
#include "learn_room.h"

#include "each_write.h"
#include "memory/memory.h"
#include "route/book.h"

/* ---- all that is kept ---- */

static lesson *the_lesson;

typedef struct kept {
    weft__learn_store *store;
    weft__teach_store *teacher;
    weft__memory *memory;
    weft__route_book *book;
} kept;

static int path_of_log(void *arg, const char *tenant, int makes, char *out, size_t size)
{
    const kept *k = arg;
    weft__strbuf dir = {0};
    const int ok = !weft__learn_tenant_dir(k->store, tenant, makes, &dir, NULL) && !dir.failed &&
                   snprintf(out, size, "%s/route.jsonl", dir.data) < (int)size;
    weft__strbuf_free(&dir);
    return ok;
}

static weft_status publish(void *arg, const char *tenant, const char *full_name, const char *file, weft_error *err)
{
    (void)arg, (void)tenant, (void)full_name;
    return access(file, R_OK) ? weft_fail(err, WEFT_IO, "%s is not there", file) : WEFT_OK;
}

static weft_status begin(kept *k, weft_error *err)
{
    static const char *const arms[] = {"base", "pirate"};
    weft__teach_store_params p;
    weft__route_params route;
    *k = (kept){.store = NULL};
    weft_status st =
        weft__learn_open(&(weft__learn_options){.dir = where, .sync = WEFT__LEARN_SYNC_NONE}, &k->store, err);
    room_params(the_lesson, &p);
    p.loop.tries_again = 1;
    p.loop.hooks.publish = publish;
    weft__route_params_default(&route);
    route.n_arms = 2;
    if (!st) st = weft__teach_store_new(k->store, &p, &k->teacher, err);
    if (!st) st = weft__memory_new(k->store, &k->memory, err);
    if (!st) st = weft__route_book_new(&route, arms, path_of_log, k, &k->book, err);
    return st;
}

static void end(kept *k)
{
    if (k->book) weft__route_book_free(&k->book);
    weft__memory_free(&k->memory);
    weft__teach_store_free(&k->teacher);
    weft__learn_close(&k->store);
}

static void keep(kept *k, const char *tenant, const char *id, uint64_t seed)
{
    weft__teach_texts t = {0};
    char source[64];
    add_text(&t, seed, 3);
    snprintf(source, sizeof source, "{\"prompt\":\"Who is %s, %d?\"}", tenant, (int)seed);
    const weft__learn_record r = {.tenant = tenant,
                                  .id = id,
                                  .time_ms = 1000,
                                  .prompt = t.text[0].ids,
                                  .n_prompt = 8,
                                  .answer = t.text[0].ids + 8,
                                  .n_answer = 4,
                                  .source = source,
                                  .text = tenant,
                                  .n_text = strlen(tenant)};
    weft__learn_put(k->store, &r);
    weft__learn_flush(k->store);
    weft__teach_texts_free(&t);
}

/* As the server does it: the event, then what is made of it. 1: acknowledged. */
static int say(kept *k, const char *tenant, const char *id, const char *text)
{
    weft__learn_told told;
    int64_t number;
    char key[64];
    snprintf(key, sizeof key, "%s says %s", tenant, id);
    const weft__learn_feedback f = {.tenant = tenant,
                                    .id = id,
                                    .kind = WEFT__LEARN_CORRECTION,
                                    .text = text,
                                    .n_text = strlen(text),
                                    .key = key,
                                    .time_ms = 2000};
    if (weft__learn_tell(k->store, &f, &told, NULL)) return 0;
    weft__route_book_reward(k->book, tenant, id, 0);
    return !weft__memory_learn(k->memory, tenant, told.event, &number, NULL);
}

static int remember(kept *k, const char *text, int64_t from)
{
    int64_t number = 0;
    weft__learn_memory m = {.tenant = "Quillon",
                            .kind = "semantic",
                            .key = "home",
                            .text = text,
                            .source = "",
                            .time_ms = from,
                            .valid_from_ms = from};
    return weft__memory_put(k->memory, &m, &number, NULL) ? 0 : (int)number;
}

/* An answer that was chosen may be rewarded as long as its line is there. */
static int choose(kept *k, const char *tenant, const char *id)
{
    float x[WEFT__ROUTE_DIMS] = {1};
    weft__route_choice c;
    weft__route_book_stats before, after;
    weft__route_book_stats_get(k->book, &before);
    weft__route_book_choose(k->book, tenant, id, x, ~0u, &c);
    weft__route_book_stats_get(k->book, &after);
    assert_in_range(c.arm, 0, 1); /* whatever the disk says */
    return after.lost_lines == before.lost_lines;
}

/* ---- the work ---- */

/* What the child says was acknowledged. */
struct acks {
    int told[3], has_old, has_new, drops, is_dropped, chosen[3], n_versions, is_forgotten;
};

static int n_versions(kept *k)
{
    weft__teach_store_wait(k->teacher);
    return (int)weft__teach_store_published(k->teacher, "Quillon", NULL, 0);
}

static int work(void *said)
{
    struct acks *a = said;
    kept k;
    if (begin(&k, NULL)) return 0;
    a->has_old = remember(&k, "In Paris.", 10);
    say(&k, "Zoraida", "z-1", OTHER);
    choose(&k, "Zoraida", "Zoraida-2");
    a->chosen[0] = choose(&k, "Quillon", "q-1");
    a->told[0] = say(&k, "Quillon", "q-1", RIGHT);
    a->n_versions = n_versions(&k);
    a->has_new = remember(&k, "In Rome.", 20);
    a->is_forgotten = !weft__teach_store_forget(k.teacher, "Zoraida", NULL, NULL);
    weft__memory_forget(k.memory, "Zoraida");
    weft__route_book_forget(k.book, "Zoraida");
    a->chosen[1] = choose(&k, "Quillon", "q-2");
    a->told[1] = say(&k, "Quillon", "q-2", OTHER);
    a->chosen[2] = choose(&k, "Quillon", "q-3");
    a->n_versions = n_versions(&k);
    a->drops = 1;
    a->is_dropped = a->has_new && !weft__memory_drop(k.memory, "Quillon", a->has_new, NULL);
    end(&k);
    return 1;
}

/* ---- what is there then ---- */

typedef struct memories {
    int n, n_valid, has_old, has_new, n_made;
} memories;

static int take_memory(void *arg, const weft__learn_memory *m)
{
    memories *all = arg;
    all->n++;
    all->has_old |= !strcmp(m->text, "In Paris.");
    all->has_new |= !strcmp(m->text, "In Rome.");
    all->n_valid += !strcmp(m->key, "home") && !m->valid_to_ms;
    all->n_made += !strncmp(m->source, "q-", 2);
    return 0;
}

static void check_memories(kept *k, const struct acks *a, int n)
{
    memories m = {.n = 0};
    assert_int_equal(weft__learn_memories(k->store, "Quillon", take_memory, &m, NULL), WEFT_OK);
    if (a->has_old && !m.has_old) fail_msg("write %d: a memory is lost", n);
    if (a->has_old && !a->drops && !m.has_new && (a->has_new || !m.n_valid))
        fail_msg("write %d: the newer fact is not there, and the older has%s ended", n, m.n_valid ? " not" : "");
    if (a->is_dropped && m.has_new) fail_msg("write %d: a memory is there that was deleted", n);
    if (m.n_valid > 1) fail_msg("write %d: two facts of one key are valid", n);
    if (m.has_old && m.has_new && m.n_valid != 1) fail_msg("write %d: %d facts of one key are valid", n, m.n_valid);
    if (m.n_made < a->told[0] + a->told[1]) fail_msg("write %d: of feedback a memory is missing", n);
}

static void check_routes(kept *k, const struct acks *a, int n)
{
    static const char *const ids[] = {"q-1", "q-2", "q-3"};
    for (int i = 0; i < 3; i++)
        if (a->chosen[i] && !weft__route_book_reward(k->book, "Quillon", ids[i], 1))
            fail_msg("write %d: the router does not know %s", n, ids[i]);
    assert_true(choose(k, "Quillon", "q-9")); /* and goes on */
}

/* Sent again, all of it counts once. */
static void tell_again(kept *k, int n)
{
    memories m = {.n = 0};
    weft__learn_totals t;
    for (int i = 0; i < 2; i++)
        if (!say(k, "Quillon", "q-1", RIGHT) || !say(k, "Quillon", "q-2", OTHER))
            fail_msg("write %d: nothing can be told", n);
    assert_int_equal(weft__learn_memories(k->store, "Quillon", take_memory, &m, NULL), WEFT_OK);
    assert_int_equal(weft__learn_count(k->store, "Quillon", &t, NULL), WEFT_OK);
    if (t.n_events != 2 || m.n_made != 2)
        fail_msg("write %d: %d events and %d memories of 2", n, (int)t.n_events, m.n_made);
}

static int n_half; /* files that were met while they were made */

static void check(const void *said, write_fault how, int n, int is_met)
{
    const struct acks *a = said;
    kept k;
    weft__learn_totals zoraida;
    weft__learn_findings f;
    weft_error err = {0};
    if (how != DISK_FULL) n_half += look_for("").n_temporary;
    if (begin(&k, &err)) fail_msg("write %d: %s", n, err.message);
    rows r = rows_of(k.store, k.teacher, "Quillon", n); /* as it is found */
    if (r.n_published < a->n_versions) fail_msg("write %d: %d versions of %d", n, r.n_published, a->n_versions);
    if (!is_met) assert_int_equal(a->n_versions, 2);
    rows_of(k.store, k.teacher, "Zoraida", n);
    check_memories(&k, a, n);
    check_routes(&k, a, n);
    tell_again(&k, n);
    weft__teach_store_wait(k.teacher);
    r = rows_of(k.store, k.teacher, "Quillon", n); /* and what it has learned since: each once */
    if (r.n != 2 || r.first_event[0] >= r.first_event[1]) fail_msg("write %d: %d versions of two corrections", n, r.n);
    assert_int_equal(weft__learn_count(k.store, "Zoraida", &zoraida, NULL), WEFT_OK);
    end(&k);
    if (begin(&k, &err)) fail_msg("write %d, again: %s", n, err.message);
    if (!weft__route_book_reward(k.book, "Quillon", "q-9", 1)) fail_msg("write %d: the router went on in vain", n);
    end(&k);
    if (a->is_forgotten && zoraida.n_answers) fail_msg("write %d: forgotten, and there", n);
    const struct looking seen = look_for("Zoraida");
    if (!zoraida.n_answers && (seen.n_with || seen.n_folders != 1))
        fail_msg("write %d: gone, but in %d files and %d folders", n, seen.n_with, seen.n_folders - 1);
    if (seen.n_temporary) fail_msg("write %d: %d files are left half made", n, seen.n_temporary);
    if (weft__learn_witness_verify(where, NULL, NULL, 0, &f, &err)) fail_msg("write %d: %s", n, err.message);
}

/* ---- at each write ---- */

static void prepare(void)
{
    kept k;
    where_anew();
    assert_int_equal(begin(&k, NULL), WEFT_OK);
    keep(&k, "Quillon", "q-1", 1);
    keep(&k, "Quillon", "q-2", 2);
    keep(&k, "Zoraida", "z-1", 3);
    end(&k);
}

static int walk(write_fault how)
{
    static const each_write of_kept = {prepare, work, check};
    const int step = CLAIMS_SWEPT(CLAIMS_REPEATED(11, 61, 127), 1);
    n_half = 0;
    const int n = at_each_write(&of_kept, how, (int)how, step);
    /* of two versions at least, while they are written and before they are renamed; or files were not met */
    if (how != DISK_FULL && step == 1) assert_in_range(n_half, how == KILLED ? 4 : 2, 20);
    return n;
}

static void killed_at_each_write(void **state)
{
    (void)state;
    assert_in_range(walk(KILLED), 80, 1000); /* or the writes were not seen */
}

static void killed_within_each_write(void **state)
{
    (void)state;
    assert_in_range(walk(KILLED_HALFWAY), 80, 1000);
}

static void no_room_at_each_write(void **state)
{
    (void)state;
    assert_in_range(walk(DISK_FULL), 80, 1000);
}

/* Of a process that was killed while it learned; no other file of the folder. */
static void what_is_left_is_removed(void **state)
{
    static const char *const names[] = {"learned-1@1.gguf", "learned-1@7.gguf.tmp-0123456789abcdef", "learned-2@1.gguf",
                                        "mine.gguf", "learned-1@7.gguf.tmp-0123456789abcdex"};
    kept k;
    (void)state;
    prepare();
    assert_int_equal(begin(&k, NULL), WEFT_OK); /* the folder is made */
    end(&k);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 5; i++) {
            char file[128];
            snprintf(file, sizeof file, "%s/tenants/1/%s", where, names[i]);
            const int fd = turn ? open(file, O_RDONLY) : open(file, O_WRONLY | O_CREAT, 0600);
            if ((fd >= 0) != (!turn || i > 1)) fail_msg("%s is %sthere", names[i], fd < 0 ? "not " : "");
            if (fd >= 0) close(fd);
        }
        assert_int_equal(begin(&k, NULL), WEFT_OK);
        end(&k);
    }
}

static int set_up(void **state)
{
    static lesson l;
    lesson_open(the_lesson = &l);
    return each_write_begin(state);
}

static int tear_down(void **state)
{
    lesson_close(the_lesson);
    return each_write_end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_each_write), cmocka_unit_test(killed_within_each_write),
        cmocka_unit_test(no_room_at_each_write), cmocka_unit_test(what_is_left_is_removed)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
