// SPDX-License-Identifier: Apache-2.0
/* batcher_disk.c: how long requests, slots and the engine's end wait for a disk that is slow, or that does not answer;
 * and that nothing is lost or leaks by it. Each test has a scene, whose end lets go of the disk and of what runs,
 * however the test ended. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "batcher/batcher.h"

enum {
    PIECE = 1 << 20 /* bytes that are copied between two steps */,
    HEALTHY_MS = 60000 /* the wait for the disk where calls are to succeed, however slow the machine */,
    HUNG_MS = 50 /* the same around what is to be given up */,
    END_MS = 1000 /* and around an end */,
    SLOW_MS = 2000 /* and where each step or job takes NAP_MS of it */,
    NAP_MS = SLOW_MS / 100 * 40
};

/* ---- a disk that hangs ---- */

/* The disk of whoever wants it to hang does not answer from the end of a read on, when the file's time is set; 2: it
 * does so now. In libc's place. */
static atomic_int disk_hangs;

int utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
    int wanted = 1;
    atomic_compare_exchange_strong(&disk_hangs, &wanted, 2);
    while (atomic_load(&disk_hangs)) usleep(500);
    return (int)syscall(SYS_utimensat, dir, path, times, flags);
}

/* Asks for slot "kept", and returns when the store's thread stands still. */
static void hang_the_disk(weft_engine *e)
{
    atomic_store(&disk_hangs, 1);
    assert_int_equal(weft__kv_store_fetch_slot(e->store, "kept", NULL, NULL, NULL), WEFT_OK);
    while (atomic_load(&disk_hangs) != 2) usleep(500);
}

/* How many waits came to their ends in vain. */
static atomic_int n_in_vain;

int __real_weft__clock_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns);
int __wrap_weft__clock_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns);
int __wrap_weft__clock_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
    int late = __real_weft__clock_wait(cond, lock, until_ns);
    if (late) atomic_fetch_add(&n_in_vain, 1);
    return late;
}

static void set_disk_wait(weft_engine *e, uint32_t ms)
{
    pthread_mutex_lock(&e->lock);
    e->params.disk_wait_ms = ms;
    pthread_mutex_unlock(&e->lock);
}

/* ---- scenes ---- */

/* Sleeps with each token while it is tired; n: tokens so far. */
typedef struct sleeper {
    answer a;
    uint64_t id;
    atomic_int tired, n;
} sleeper;

typedef struct scene {
    char folder[32];
    weft_model *model;
    weft_engine_params p;
    size_t without; /* memory before there is an engine */
    weft_engine *e;
    ask q; /* 200 tokens, whose slot is "kept" */
    answer first;
    sleeper sleeper;
} scene;

/* The store has written n files since the engine began: what was to be kept of the last request is a file, too. */
static void wait_for_files(const weft_engine *e, uint64_t n)
{
    while (stats_of(e).store_written < n) usleep(1000);
}

static int begin(void **state)
{
    static scene the_scene; /* what still runs after a failure may look at it */
    scene *s = *state = &the_scene;
    weft_error err = {0};
    int32_t n;
    uint64_t bytes;
    *s = (scene){.folder = "/tmp/weft-serve-XXXXXX", .p = small(), .sleeper.a.hall = &the_hall};
    assert_non_null(mkdtemp(s->folder));
    s->model = tiny(4096);
    s->without = weft__alloc_live();
    s->p.store_dir = s->folder;
    s->p.disk_wait_ms = HEALTHY_MS;
    s->p.n_ctx = 4096;
    s->p.kv_dtype = WEFT_F32; /* more bytes of fewer tokens */
    s->e = open_engine(s->model, &s->p);
    simple(&s->q, 200, 4);
    run_alone(s->e, &s->q, &s->first, 1);
    wait_for_files(s->e, 1);
    if (weft_engine_save(s->e, NULL, s->q.tokens, 200, "kept", &n, &bytes, &err)) fail_msg("%s", err.message);
    return 0;
}

static int end(void **state)
{
    scene *s = *state;
    atomic_store(&disk_hangs, 0);
    atomic_store(&s->sleeper.tired, 0);
    weft_engine_free(&s->e);
    weft_model_close(&s->model);
    remove_folder(s->folder);
    the_hall.n_left = 0;
    return 0;
}

static void submit_ok(weft_engine *e, const ask *q, answer *a)
{
    weft_error err = {0};
    if (submit(e, q, a, &err)) fail_msg("%s", err.message);
}

/* ---- requests ---- */

/* The disk has their prefixes, and does not answer. */
static void who_waits_for_a_disk_that_hangs_can_end(void **state)
{
    scene *s = *state;
    answer a[BATCHER_FETCHES + 2], last;
    close_engine(&s->e);
    weft_engine *e = s->e = open_engine(s->model, &s->p);
    hang_the_disk(e);
    s->q.p.deadline_ms = 30;
    submit_ok(e, &s->q, &a[0]);
    wait_all();
    assert_int_equal(a[0].finish, WEFT_FINISH_FAILED);
    assert_int_equal(a[0].status, WEFT_TIMEOUT);
    s->q.p.deadline_ms = 0;
    for (int i = 1; i < BATCHER_FETCHES + 1; i++) submit_ok(e, &s->q, &a[i]); /* one more than may read at once */
    /* The last first: without those who read, who only waits for a place would go on without the disk, and might
     * end. */
    for (int i = BATCHER_FETCHES; i > 0; i--) weft_engine_cancel(e, a[i].id);
    wait_all();
    for (int i = 1; i < BATCHER_FETCHES + 1; i++) assert_int_equal(a[i].finish, WEFT_FINISH_CANCELLED);
    submit_ok(e, &s->q, &a[BATCHER_FETCHES + 1]);
    usleep(20000);
    weft_engine_drain(e, 0); /* whether it waits for the disk as well, or did without */
    assert_int_equal(a[BATCHER_FETCHES + 1].n_finished, 1);
    assert_int_equal(atomic_load(&disk_hangs), 2);
    atomic_store(&disk_hangs, 0); /* what was asked for is read now, and nobody wants it */
    close_engine(&s->e);
    assert_int_equal(weft__alloc_live(), s->without);
    s->e = open_engine(s->model, &s->p);
    submit_ok(s->e, &s->q, &last);
    wait_all();
    compare("after the disk hung", &s->q, &s->first, &last, 1);
    assert_int_equal(last.n_cached, 199);
}

/* ---- slots and ends ---- */

/* Each is given up, and waits for the disk then. */
static void give_up_slots(scene *s)
{
    weft_error err = {0};
    int32_t n, back[4];
    uint64_t bytes;
    set_disk_wait(s->e, HUNG_MS);
    assert_int_equal(weft_engine_save(s->e, NULL, s->q.tokens, 200, "late", &n, &bytes, &err), WEFT_TIMEOUT);
    assert_non_null(strstr(err.message, "disk"));
    assert_int_equal(weft_engine_restore(s->e, "kept", back, 4, &n, &bytes, &err), WEFT_TIMEOUT);
    assert_int_equal(weft_engine_erase(s->e, "kept", &err), WEFT_TIMEOUT);
}

static void slots_wait_for_a_hung_disk_only_so_long(void **state)
{
    scene *s = *state;
    weft_error err = {0};
    int32_t n, back[4];
    uint64_t bytes;
    hang_the_disk(s->e);
    give_up_slots(s);
    set_disk_wait(s->e, HEALTHY_MS);
    atomic_store(&disk_hangs, 0);
    wait_for_files(s->e, 3); /* all of it happens after all */
    while (stats_of(s->e).store_slots != 1) usleep(1000);
    if (weft_engine_restore(s->e, "late", back, 4, &n, &bytes, &err)) fail_msg("%s", err.message);
    assert_memory_equal(back, s->q.tokens, sizeof back);
    close_engine(&s->e);
    assert_int_equal(weft__alloc_live(), s->without);
}

/* From the moment that a request has ended until its prefix is on the disk. */
static void what_is_yet_to_be_written_is_counted(void **state)
{
    scene *s = *state;
    weft_error err = {0};
    ask q;
    answer a;
    int32_t n;
    uint64_t bytes;
    simple(&q, 300, 2);
    q.tokens[0]++; /* nothing of it is on the disk */
    while (stats_of(s->e).store_waiting) usleep(1000);
    hang_the_disk(s->e);
    run_alone(s->e, &q, &a, 1);
    for (int i = 0; i < 50; i++, usleep(1000)) assert_true(stats_of(s->e).store_waiting >= 1);
    while (stats_of(s->e).store_waiting != 1) usleep(1000); /* twice for a moment, when the store takes it */
    set_disk_wait(s->e, HUNG_MS);
    assert_int_equal(weft_engine_save(s->e, NULL, q.tokens, 300, "late", &n, &bytes, &err), WEFT_TIMEOUT);
    while (stats_of(s->e).store_waiting != 2) usleep(1000);
    set_disk_wait(s->e, HEALTHY_MS);
    atomic_store(&disk_hangs, 0);
    while (stats_of(s->e).store_waiting) usleep(1000);
    assert_int_equal(stats_of(s->e).store_written, 4);
}

/* With slots that were given up, and with a prefix to be kept: the end waits for the disk once, and what the disk lets
 * go of later is freed, all of it. */
static void the_end_waits_for_a_hung_disk_once_and_leaks_nothing(void **state)
{
    scene *s = *state;
    ask q;
    answer a;
    hang_the_disk(s->e);
    give_up_slots(s);
    simple(&q, 300, -1);
    q.tokens[0]++; /* nothing of it is on the disk */
    q.p.ignore_end = 1;
    q.p.event = slowly;
    submit_ok(s->e, &q, &a);
    while (!stats_of(s->e).kv_pages_used) usleep(1000);
    set_disk_wait(s->e, END_MS);
    uint64_t began = weft__clock_ns();
    atomic_store(&n_in_vain, 0);
    weft_engine_free(&s->e);
    assert_int_equal(atomic_load(&n_in_vain), 1);
    assert_true(weft__clock_ns() - began >= END_MS * 1000000ull);
    assert_int_equal(a.finish, WEFT_FINISH_CANCELLED);
    assert_true(weft__alloc_live() > s->without);
    atomic_store(&disk_hangs, 0);
    wait_until(weft__alloc_live() == s->without);
    assert_int_equal(weft__alloc_live(), s->without);
}

static void *comes_back(void *unused)
{
    usleep(END_MS / 4 * 1000);
    atomic_store(&disk_hangs, 0);
    return unused;
}

/* A slot that was given up is read when the engine's thread has ended: nobody wants it. */
static void a_disk_that_comes_back_during_the_end_leaks_nothing(void **state)
{
    scene *s = *state;
    pthread_t thread;
    hang_the_disk(s->e);
    give_up_slots(s);
    set_disk_wait(s->e, HEALTHY_MS);
    assert_int_equal(pthread_create(&thread, NULL, comes_back, NULL), 0);
    weft_engine_free(&s->e);
    assert_int_equal(weft__alloc_live(), s->without);
    pthread_join(thread, NULL);
}

/* ---- slow, not dead ---- */

static int doze(void *arg, const weft_event *event)
{
    sleeper *s = arg;
    if (event->kind == WEFT_EVENT_FINISHED) return on_event(&s->a, event);
    atomic_fetch_add(&s->n, 1);
    usleep(atomic_load(&s->tired) ? NAP_MS * 1000 : 1000);
    return 0;
}

/* Somebody generates, with a nap in each step, and has begun one. */
static void begin_naps(scene *s)
{
    sleeper *z = &s->sleeper;
    ask q;
    answer unused;
    simple(&q, 4, -1);
    q.p.ignore_end = 1;
    q.p.event = doze;
    q.p.arg = z;
    submit_ok(s->e, &q, &unused);
    z->id = unused.id;
    for (int seen = atomic_load(&z->n); atomic_load(&z->n) < seen + 3;) usleep(200);
    atomic_store(&z->tired, 1);
    for (int seen = atomic_load(&z->n); atomic_load(&z->n) < seen + 2;) usleep(200);
}

static void end_naps(scene *s)
{
    atomic_store(&s->sleeper.tired, 0);
    weft_engine_cancel(s->e, s->sleeper.id);
    wait_all();
    s->sleeper.a.n_finished = 0;
}

static void nap(void *arg, weft_status status, const char *message, weft__kv_snapshot *snapshot)
{
    (void)arg, (void)status, (void)message, (void)snapshot;
    usleep(NAP_MS * 1000);
}

enum { LARGE = 2000 };

static void restore_large(scene *s)
{
    weft_error err = {0};
    int32_t n = 0;
    uint64_t bytes = 0, began = weft__clock_ns();
    if (weft_engine_restore(s->e, "large", NULL, 0, &n, &bytes, &err)) fail_msg("%s", err.message);
    assert_true(weft__clock_ns() - began > SLOW_MS * 1000000ull);
    assert_int_equal(n, LARGE);
    assert_true(bytes > 3 * PIECE);
}

/* A slot is given up when nothing moves, not when much is to be done: neither when its pages are copied, to the disk or
 * from it, between long steps of others, nor when the disk has much else to do. Each takes longer than the wait. */
static void what_is_slow_is_no_hung_disk(void **state)
{
    scene *s = *state;
    static int32_t tokens[LARGE];
    weft_error err = {0};
    answer a;
    ask q;
    int32_t n = 0;
    uint64_t bytes = 0;
    for (int i = 0; i < LARGE; i++) tokens[i] = 3 + (i * 7 + i / 31) % 500;
    simple(&q, 1, 1);
    q.p.tokens = tokens;
    q.p.n_tokens = LARGE;
    run_together(s->e, &q, &a, 1);
    wait_for_files(s->e, 3);
    set_disk_wait(s->e, SLOW_MS);
    begin_naps(s);
    uint64_t began = weft__clock_ns();
    if (weft_engine_save(s->e, NULL, tokens, LARGE, "large", &n, &bytes, &err)) fail_msg("%s", err.message);
    assert_true(weft__clock_ns() - began > SLOW_MS * 1000000ull); /* four pieces, a nap before each */
    restore_large(s);
    end_naps(s);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weft__kv_store_fetch_slot(s->e->store, "nobody", nap, NULL, NULL), WEFT_OK);
    restore_large(s);
    close_engine(&s->e);
}

#define scene_test(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene_test(who_waits_for_a_disk_that_hangs_can_end),
        scene_test(slots_wait_for_a_hung_disk_only_so_long),
        scene_test(what_is_yet_to_be_written_is_counted),
        scene_test(the_end_waits_for_a_hung_disk_once_and_leaks_nothing),
        scene_test(a_disk_that_comes_back_during_the_end_leaks_nothing),
        scene_test(what_is_slow_is_no_hung_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
