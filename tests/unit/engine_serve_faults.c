/* engine_serve_faults.c: slots and faults: memory that is refused, and what the disk does. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"

#include "base/clock.h"
#include "engine/serve.h"

/* ---- slots ---- */

static void remove_prefixes(const char *store)
{
    char command[300];
    snprintf(command, sizeof command, "rm -f '%s'/p-*", store);
    if (system(command)) fail_msg("%s", command);
}

static void a_slot_is_saved_and_comes_back(void **state)
{
    (void)state;
    char folder[] = "/tmp/weft-serve-XXXXXX", store[64];
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_error err = {0};
    ask q;
    answer a, again;
    int32_t n = 0, all[400], back[101] = {0}, restored = 0;
    uint64_t bytes = 0, read = 0;
    simple(&q, 150, 30);
    weft_engine *e = open_engine(model, &p);
    assert_int_equal(weft_engine_save(e, NULL, q.tokens, 150, "x", &n, &bytes, &err), WEFT_UNSUPPORTED);
    close_engine(&e);
    assert_non_null(mkdtemp(folder));
    snprintf(store, sizeof store, "%s/store", folder);
    p.store_dir = store;
    p.isolate_tenants = 1;
    q.p.tenant = "me";
    e = open_engine(model, &p);
    run_alone(e, &q, &a, 1);
    memcpy(all, q.tokens, 150 * sizeof *all);
    memcpy(all + 150, a.token, (size_t)a.n * sizeof *all);
    assert_int_equal(weft_engine_save(e, "me", all, 150 + a.n, "../up", &n, &bytes, &err), WEFT_ARGUMENT);
    assert_int_equal(weft_engine_save(e, "you", all, 150 + a.n, "mine", &n, &bytes, &err), WEFT_NOT_FOUND);
    if (weft_engine_save(e, "me", all, 150 + a.n, "mine", &n, &bytes, &err)) fail_msg("%s", err.message);
    assert_true(n >= 150 && bytes > 0);
    close_engine(&e);
    remove_prefixes(store); /* only the slot is left */
    e = open_engine(model, &p);
    assert_int_equal(weft_engine_restore(e, "nobody", NULL, 0, &restored, &read, &err), WEFT_NOT_FOUND);
    if (weft_engine_restore(e, "mine", back, 100, &restored, &read, &err)) fail_msg("%s", err.message);
    assert_int_equal(restored, n);
    assert_memory_equal(back, all, 100 * sizeof *all);
    assert_int_equal(back[100], 0); /* beyond its place nothing is written */
    assert_true(read == bytes);
    run_alone(e, &q, &again, 1);
    compare("after a slot was restored", &q, &a, &again, 1);
    assert_int_equal(again.n_cached, 149);
    weft_engine_stats counted = {.size = sizeof counted};
    weft_engine_get_stats(e, &counted);
    assert_int_equal(counted.store_slots, 1);
    assert_true(counted.store_read >= 1 && counted.store_bytes >= bytes && counted.store_cap_bytes > counted.store_bytes);
    assert_int_equal(weft_engine_erase(e, "../up", &err), WEFT_ARGUMENT);
    if (weft_engine_erase(e, "mine", &err)) fail_msg("%s", err.message);
    assert_int_equal(weft_engine_erase(e, "mine", &err), WEFT_NOT_FOUND);
    assert_int_equal(weft_engine_restore(e, "mine", back, 100, &restored, &read, &err), WEFT_NOT_FOUND);
    weft_engine_get_stats(e, &counted);
    assert_int_equal(counted.store_slots, 0);
    close_engine(&e);
    remove_folder(folder);
    weft_model_close(&model);
}

/* One whose copy takes several pieces, while another request generates; and the prefix that the store keeps by itself. */
static void a_large_copy_waits_for_nobody_and_is_whole(void **state)
{
    (void)state;
    enum { LONG = 1900 };
    char folder[] = "/tmp/weft-serve-XXXXXX", store[64];
    static int32_t tokens[LONG];
    weft_model *model = tiny(2048);
    weft_engine_params p = small();
    weft_error err = {0};
    ask q, other;
    answer a, again, busy;
    int32_t n = 0, restored = 0;
    uint64_t bytes = 0, read = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(store, sizeof store, "%s/store", folder);
    for (int i = 0; i < LONG; i++) tokens[i] = 3 + (i * 7 + i / 31) % 500;
    simple(&q, 1, 20);
    simple(&other, 20, 120);
    other.p.ignore_end = 1;
    q.p.tokens = tokens;
    q.p.n_tokens = LONG;
    p.n_ctx = 2048;
    p.store_dir = store;
    for (int round = 0; round < 3; round++) { /* computed; from the prefix that was kept; from the slot */
        answer *to = round ? &again : &a;
        weft_engine *e = open_engine(model, &p);
        if (round == 2) {
            if (weft_engine_restore(e, "large", NULL, 0, &restored, &read, &err)) fail_msg("%s", err.message);
            assert_int_equal(restored, n);
            assert_true(read == bytes);
        }
        run_together(e, &q, to, 1);
        if (round) compare("from the store", &q, &a, &again, 1);
        if (round) assert_int_equal(again.n_cached, LONG - 1);
        if (round == 0) {
            assert_int_equal(submit(e, &other, &busy, &err), WEFT_OK);
            if (weft_engine_save(e, NULL, tokens, LONG, "large", &n, &bytes, &err)) fail_msg("%s", err.message);
            assert_true(n == LONG && bytes > (1 << 20)); /* more than a piece */
            wait_all();
        }
        close_engine(&e);
        if (round == 1) remove_prefixes(store); /* only the slot is left */
    }
    remove_folder(folder);
    weft_model_close(&model);
}

/* One whose prefix was read from the disk, and for which the scheduler has no room yet, ends at its deadline: not when there is room. */
static void a_request_with_a_stored_prefix_can_be_late(void **state)
{
    (void)state;
    enum { QUEUED = 18 };
    char folder[] = "/tmp/weft-serve-XXXXXX";
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    ask q, others;
    answer a, late, other[QUEUED];
    assert_non_null(mkdtemp(folder));
    p.store_dir = folder;
    p.n_slots = 1;
    p.max_queue = 19; /* one client gets 18 of the 20 places */
    simple(&q, 200, 4);
    weft_engine *e = open_engine(model, &p);
    run_alone(e, &q, &a, 1);
    close_engine(&e);
    e = open_engine(model, &p);
    simple(&others, 20, 120);
    for (int i = 0; i < 20; i++) others.tokens[i] = 30 + i;
    others.p.ignore_end = 1;
    others.p.event = slowly;
    for (int i = 0; i < QUEUED; i++) assert_int_equal(submit(e, &others, &other[i], NULL), WEFT_OK);
    q.p.deadline_ms = 20;
    assert_int_equal(submit(e, &q, &late, NULL), WEFT_OK);
    pthread_mutex_lock(&the_hall.lock);
    while (!late.n_finished) pthread_cond_wait(&the_hall.left, &the_hall.lock);
    assert_int_equal(other[0].n_finished, 0);
    pthread_mutex_unlock(&the_hall.lock);
    assert_int_equal(late.finish, WEFT_FINISH_FAILED);
    assert_int_equal(late.status, WEFT_TIMEOUT);
    assert_non_null(strstr(late.message, "20 ms"));
    for (int i = 0; i < QUEUED; i++) weft_engine_cancel(e, other[i].id);
    wait_all();
    close_engine(&e);
    remove_folder(folder);
    weft_model_close(&model);
}

/* The store's thread, which reads and writes all files, stands still in what it calls until the gate opens: a disk that hangs. */
typedef struct hung_disk {
    atomic_int hangs, open;
} hung_disk;

static void hang(void *arg, weft_status status, const char *message, weft__snapshot *snapshot)
{
    hung_disk *d = arg;
    (void)status, (void)message, (void)snapshot;
    atomic_store(&d->hangs, 1);
    while (!atomic_load(&d->open)) usleep(500);
}

static void submit_ok(weft_engine *e, const ask *q, answer *a)
{
    weft_error err = {0};
    if (submit(e, q, a, &err)) fail_msg("%s", err.message);
}

/* The disk has their prefixes, and does not answer. */
static void who_waits_for_a_disk_that_hangs_can_end(void **state)
{
    (void)state;
    char folder[] = "/tmp/weft-serve-XXXXXX";
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    ask q;
    answer first, a[SERVE_FETCHES + 2], last;
    assert_non_null(mkdtemp(folder));
    p.store_dir = folder;
    simple(&q, 200, 4);
    weft_engine *e = open_engine(model, &p);
    run_alone(e, &q, &first, 1);
    close_engine(&e);
    size_t before = weft__alloc_live();
    e = open_engine(model, &p);
    hung_disk disk = {0};
    assert_int_equal(weft__store_fetch_slot(e->store, "nobody", hang, &disk, NULL), WEFT_OK);
    while (!atomic_load(&disk.hangs)) usleep(500);
    q.p.deadline_ms = 30;
    submit_ok(e, &q, &a[0]);
    wait_all();
    assert_int_equal(a[0].finish, WEFT_FINISH_FAILED);
    assert_int_equal(a[0].status, WEFT_TIMEOUT);
    q.p.deadline_ms = 0;
    for (int i = 1; i < SERVE_FETCHES + 1; i++) submit_ok(e, &q, &a[i]); /* one more than may read at once */
    for (int i = 1; i < SERVE_FETCHES + 1; i++) weft_engine_cancel(e, a[i].id);
    wait_all();
    for (int i = 1; i < SERVE_FETCHES + 1; i++) assert_int_equal(a[i].finish, WEFT_FINISH_CANCELLED);
    submit_ok(e, &q, &a[SERVE_FETCHES + 1]);
    usleep(20000);
    weft_engine_drain(e, 0); /* whether it waits for the disk as well, or did without */
    assert_int_equal(a[SERVE_FETCHES + 1].n_finished, 1);
    assert_int_equal(atomic_load(&disk.open), 0);
    atomic_store(&disk.open, 1); /* what was asked for is read now, and nobody wants it */
    close_engine(&e);
    assert_int_equal(weft__alloc_live(), before);
    e = open_engine(model, &p);
    submit_ok(e, &q, &last);
    wait_all();
    compare("after the disk hung", &q, &first, &last, 1);
    assert_int_equal(last.n_cached, 199);
    close_engine(&e);
    remove_folder(folder);
    weft_model_close(&model);
}

/* Long where calls are to succeed, however slow the machine; short around what is to be given up. */
static void set_disk_wait(weft_engine *e, uint32_t ms)
{
    pthread_mutex_lock(&e->lock);
    e->params.disk_wait_ms = ms;
    pthread_mutex_unlock(&e->lock);
}

static void hang_the_disk(weft_engine *e, hung_disk *disk)
{
    atomic_store(&disk->hangs, 0);
    atomic_store(&disk->open, 0);
    assert_int_equal(weft__store_fetch_slot(e->store, "nobody", hang, disk, NULL), WEFT_OK);
    while (!atomic_load(&disk->hangs)) usleep(500);
}

enum { HEALTHY_MS = 60000, HUNG_MS = 200 };

/* Neither do slots wait for it longer than they should, nor the end of the engine; what it lets go of later is freed. */
static void slots_and_the_end_wait_for_a_hung_disk_only_so_long(void **state)
{
    (void)state;
    char folder[] = "/tmp/weft-serve-XXXXXX";
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_error err = {0};
    ask q;
    answer a;
    int32_t n, back[4];
    uint64_t bytes;
    assert_non_null(mkdtemp(folder));
    p.store_dir = folder;
    p.disk_wait_ms = HEALTHY_MS;
    simple(&q, 200, 4);
    size_t before = weft__alloc_live();
    weft_engine *e = open_engine(model, &p);
    run_alone(e, &q, &a, 1);
    if (weft_engine_save(e, NULL, q.tokens, 200, "kept", &n, &bytes, &err)) fail_msg("%s", err.message);
    static hung_disk disk; /* the store's thread looks at it until the end */
    hang_the_disk(e, &disk);
    set_disk_wait(e, HUNG_MS);
    assert_int_equal(weft_engine_save(e, NULL, q.tokens, 200, "late", &n, &bytes, &err), WEFT_TIMEOUT);
    assert_non_null(strstr(err.message, "disk"));
    assert_int_equal(weft_engine_restore(e, "kept", back, 4, &n, &bytes, &err), WEFT_TIMEOUT);
    assert_int_equal(weft_engine_erase(e, "kept", &err), WEFT_TIMEOUT);
    set_disk_wait(e, HEALTHY_MS);
    atomic_store(&disk.open, 1);
    while (stats_of(e).store_slots != 1 || stats_of(e).store_written < 2) usleep(1000); /* all of it happens after all */
    assert_int_equal(weft_engine_restore(e, "late", back, 4, &n, &bytes, &err), WEFT_OK);
    assert_memory_equal(back, q.tokens, sizeof back);
    hang_the_disk(e, &disk);
    set_disk_wait(e, HUNG_MS);
    uint64_t began = weft__clock_ns();
    close_engine(&e);
    assert_true(weft__clock_ns() - began < 20ull * 1000000000);
    assert_true(weft__alloc_live() > before);
    atomic_store(&disk.open, 1);
    for (int i = 0; i < 20000 && weft__alloc_live() != before; i++) usleep(1000);
    assert_int_equal(weft__alloc_live(), before);
    remove_folder(folder);
    weft_model_close(&model);
}

enum {
    PIECE = 1 << 20 /* bytes that are copied between two steps */,
    PATIENCE_MS = 1500 /* the wait for the disk, and what each step or job takes of it */,
    NAP_MS = PATIENCE_MS / 10 * 7
};

typedef struct sleeper {
    answer a;
    atomic_int tired, n; /* sleeps with each token; tokens so far */
} sleeper;

static int doze(void *arg, const weft_event *event)
{
    sleeper *s = arg;
    if (event->kind == WEFT_EVENT_FINISHED) return on_event(&s->a, event);
    atomic_fetch_add(&s->n, 1);
    usleep(atomic_load(&s->tired) ? NAP_MS * 1000 : 1000);
    return 0;
}

static void nap(void *arg, weft_status status, const char *message, weft__snapshot *snapshot)
{
    (void)arg, (void)status, (void)message, (void)snapshot;
    usleep(NAP_MS * 1000);
}

/* A slot is given up when nothing moves, not when much is to be done: neither when its pages are copied between long steps of others, nor
 * when the disk has much else to do. */
static void a_slow_save_is_no_hung_disk(void **state)
{
    (void)state;
    enum { TOKENS = 2000 };
    char folder[] = "/tmp/weft-serve-XXXXXX";
    static int32_t tokens[TOKENS];
    weft_model *model = tiny(4096);
    weft_engine_params p = small();
    weft_error err = {0};
    sleeper s = {.a = {.hall = &the_hall}};
    answer a;
    ask q;
    int32_t n = 0;
    uint64_t bytes = 0, id;
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < TOKENS; i++) tokens[i] = 3 + (i * 7 + i / 31) % 500;
    p.n_ctx = 4096;
    p.n_kv_tokens = 0;
    p.store_dir = folder;
    weft_engine *e = open_engine(model, &p);
    simple(&q, 1, 1);
    q.p.tokens = tokens;
    q.p.n_tokens = TOKENS;
    run_together(e, &q, &a, 1);
    assert_true(weft__store_flush(e->store, 0));
    set_disk_wait(e, PATIENCE_MS);
    simple(&q, 4, -1);
    q.p.tokens = q.tokens;
    q.p.ignore_end = 1;
    q.p.event = doze;
    q.p.arg = &s;
    the_hall.n_left++;
    assert_int_equal(weft_engine_submit(e, &q.p, &id, NULL, &err), WEFT_OK);
    while (atomic_load(&s.n) < 3) usleep(200);
    atomic_store(&s.tired, 1);
    for (int seen = atomic_load(&s.n); atomic_load(&s.n) < seen + 2;) usleep(200); /* its nap has begun */
    uint64_t began = weft__clock_ns();
    if (weft_engine_save(e, NULL, tokens, TOKENS, "large", &n, &bytes, &err)) fail_msg("%s", err.message);
    assert_true(weft__clock_ns() - began > PATIENCE_MS * 1000000ull); /* longer than its wait: two pieces, a nap before each */
    assert_true(bytes > PIECE);
    atomic_store(&s.tired, 0);
    weft_engine_cancel(e, id);
    wait_all();
    for (int i = 0; i < 2; i++) assert_int_equal(weft__store_fetch_slot(e->store, "nobody", nap, NULL, NULL), WEFT_OK);
    began = weft__clock_ns();
    if (weft_engine_restore(e, "large", NULL, 0, &n, &bytes, &err)) fail_msg("%s", err.message);
    assert_true(weft__clock_ns() - began > PATIENCE_MS * 1000000ull);
    assert_int_equal(n, TOKENS);
    close_engine(&e);
    remove_folder(folder);
    weft_model_close(&model);
}

/* How many pages were taken between two tokens of somebody, at most, while a slot came back. With the first of them another request comes,
 * if there is one. */
typedef struct onlooker {
    answer a;
    weft_engine *e;
    atomic_int n, looks;
    int32_t taken, most, sum;
    const weft_request_params *other;
} onlooker;

static int look(void *arg, const weft_event *event)
{
    onlooker *o = arg;
    if (event->kind == WEFT_EVENT_FINISHED) return on_event(&o->a, event);
    if (event->kind != WEFT_EVENT_TOKEN) return 0;
    weft_engine_stats s = stats_of(o->e);
    int32_t taken = s.kv_pages_used + s.kv_pages_cached;
    atomic_fetch_add(&o->n, 1);
    if (atomic_load(&o->looks) && taken > o->taken) {
        if (taken - o->taken > o->most) o->most = taken - o->taken;
        o->sum += taken - o->taken;
        uint64_t id;
        if (o->other) assert_int_equal(weft_engine_submit(o->e, o->other, &id, NULL, NULL), WEFT_OK);
        o->other = NULL;
    }
    o->taken = taken;
    usleep(1000); /* it is still there when all has come back */
    return 0;
}

enum { LONG = CLAIMS_OF_SPEED ? 8000 : 2000 };

/* A slot of LONG tokens is saved as "large", alone in the folder; returns its bytes. */
static uint64_t save_large(weft_model *model, const char *folder, const weft_engine_params *params)
{
    static int32_t tokens[LONG];
    weft_engine_params p = *params;
    weft_error err = {0};
    ask q;
    int32_t n = 0;
    uint64_t bytes = 0;
    answer a;
    p.n_kv_tokens = 0;
    for (int i = 0; i < LONG; i++) tokens[i] = 3 + (i * 7 + i / 31) % 500;
    weft_engine *e = open_engine(model, &p);
    simple(&q, 1, 1);
    q.p.n_tokens = LONG;
    q.p.tokens = tokens;
    run_together(e, &q, &a, 1);
    if (weft_engine_save(e, NULL, tokens, LONG, "large", &n, &bytes, &err)) fail_msg("%s", err.message);
    assert_int_equal(n, LONG);
    close_engine(&e);
    remove_prefixes(folder);
    return bytes;
}

/* It comes back while o generates, and while what o brings is answered; returns how that ended. */
static weft_status restore_beside(weft_engine *e, onlooker *o, int32_t *restored)
{
    weft_error err = {0};
    ask q;
    uint64_t read, id;
    *o = (onlooker){.a = {.hall = &the_hall}, .e = e, .other = o->other};
    simple(&q, 4, -1);
    q.p.tokens = q.tokens;
    q.p.ignore_end = 1;
    q.p.event = look;
    q.p.arg = o;
    the_hall.n_left += 1 + (o->other != NULL);
    assert_int_equal(weft_engine_submit(e, &q.p, &id, NULL, &err), WEFT_OK);
    while (atomic_load(&o->n) < 3) usleep(200);
    atomic_store(&o->looks, 1);
    weft_status st = weft_engine_restore(e, "large", NULL, 0, restored, &read, &err);
    int seen = atomic_load(&o->n);
    while (atomic_load(&o->n) < seen + 3) usleep(200);
    atomic_store(&o->looks, 0);
    pthread_mutex_lock(&the_hall.lock);
    while (the_hall.n_left > 1) pthread_cond_wait(&the_hall.left, &the_hall.lock);
    pthread_mutex_unlock(&the_hall.lock);
    weft_engine_cancel(e, id);
    wait_all();
    return st;
}

/* Pages of a prefix that comes back are copied a MiB at a time: who generates meanwhile has a token after each. */
static void a_large_prefix_comes_back_between_others_tokens(void **state)
{
    (void)state;
    char folder[] = "/tmp/weft-serve-XXXXXX";
    weft_model *model = tiny(LONG + 8000);
    weft_engine_params p = small();
    onlooker o = {0};
    int32_t restored = 0;
    assert_non_null(mkdtemp(folder));
    p.store_dir = folder;
    p.n_ctx = LONG + 8000;
    p.n_kv_tokens = 2 * LONG + 16000;
    uint64_t bytes = save_large(model, folder, &p);
    weft_engine *e = open_engine(model, &p);
    assert_int_equal(restore_beside(e, &o, &restored), WEFT_OK);
    assert_int_equal(restored, LONG);
    int32_t all = o.sum, piece = (int32_t)((double)all * PIECE / (double)bytes) + 2;
    print_message("%d pages of %.1f MB came back, %d at most between two tokens\n", all, (double)bytes / 1e6, o.most);
    assert_true(bytes > 3 * PIECE / 2 && all >= LONG / 256);
    assert_true(o.most <= piece && o.most < all);
    close_engine(&e);
    remove_folder(folder);
    weft_model_close(&model);
}

/* Until a prefix is there as a whole, its pages are whose needs them: nobody is refused, and nobody preempted for it. Pools of several
 * sizes, so that now the one, now the other is the first to find none left. */
static void a_prefix_that_comes_back_gives_way(void **state)
{
    (void)state;
    enum { SIZES = 7, EVERY = CLAIMS_REPEATED(1, 1, 6), PAGE = 64 };
    char folder[] = "/tmp/weft-serve-XXXXXX";
    static int32_t tokens[LONG];
    weft_model *model = tiny(LONG + 8000);
    weft_engine_params p = small();
    ask q;
    assert_non_null(mkdtemp(folder));
    p.store_dir = folder;
    p.n_ctx = LONG + 8000;
    p.chunk = 256;
    save_large(model, folder, &p);
    for (int i = 0; i < LONG; i++) tokens[i] = 4 + i % 400;
    for (int k = 0; k < SIZES; k += EVERY) {
        answer a = {.hall = &the_hall};
        int32_t restored = 0;
        simple(&q, 1, 4);
        q.p.tokens = tokens;
        q.p.n_tokens = LONG / 2;
        q.p.ignore_end = q.p.no_cache = 1;
        q.p.event = on_event;
        q.p.arg = &a;
        onlooker o = {.other = &q.p};
        p.n_ctx = LONG + 64;
        p.n_kv_tokens = LONG + 1600 - 3 * k * PAGE;
        weft_engine *e = open_engine(model, &p);
        weft_status st = restore_beside(e, &o, &restored);
        assert_true(st == WEFT_OK || st == WEFT_LIMIT);
        print_message("%d tokens: the prefix %s\n", (int)p.n_kv_tokens, st ? "gave way" : "found room");
        assert_int_equal(a.finish, WEFT_FINISH_LENGTH);
        assert_int_equal(a.n, 4);
        assert_int_equal(stats_of(e).n_preempted, 0);
        close_engine(&e);
    }
    remove_folder(folder);
    weft_model_close(&model);
}

/* ---- memory ---- */

static atomic_size_t n_asked, refused_at;

static int atomic_gate(void *arg, size_t n_bytes)
{
    (void)arg, (void)n_bytes;
    return atomic_fetch_add(&n_asked, 1) != atomic_load(&refused_at);
}

/* Three requests; 1 when nothing failed. */
static int serve_three(weft_model *model)
{
    weft_engine_params p = small();
    weft_engine *e = NULL;
    weft_error err = {0};
    ask q[3];
    answer a[3];
    int ok = 1;
    p.n_slots = 2;
    p.n_kv_tokens = 512;
    p.max_queue = 4;
    p.isolate_tenants = 1;
    if (weft_engine_new(model, &p, &e, &err)) {
        assert_int_equal(err.status, WEFT_NO_MEMORY);
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        simple(&q[i], 80, i == 2 ? 0 : 5);
        q[i].p.embedding = i == 2;
        weft_status st = submit(e, &q[i], &a[i], &err);
        if (st) assert_int_equal(st, WEFT_NO_MEMORY);
        ok &= !st;
    }
    wait_all();
    for (int i = 0; i < 3; i++) {
        if (!a[i].accepted) continue;
        assert_int_equal(a[i].n_finished, 1);
        if (a[i].status) assert_int_equal(a[i].status, WEFT_NO_MEMORY);
        ok &= !a[i].status;
    }
    weft_engine_free(&e);
    return ok;
}

static void every_refused_allocation_is_an_error_and_no_leak(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    assert_true(serve_three(model));
    size_t n_refused = 0, n_survived = 0;
    for (size_t i = 0;; i += refuse_stride(i)) {
        size_t before = weft__alloc_live();
        atomic_store(&n_asked, 0);
        atomic_store(&refused_at, i);
        weft__alloc_set_gate(atomic_gate, NULL);
        int ok = serve_three(model);
        weft__alloc_set_gate(NULL, NULL);
        assert_int_equal(weft__alloc_live(), before);
        if (atomic_load(&n_asked) <= i) {
            assert_true(ok);
            break;
        }
        n_refused++;
        n_survived += (size_t)ok;
    }
    print_message("%zu allocations were refused in turn; the engine did without %zu of them\n", n_refused, n_survived);
    assert_true(n_refused > CLAIMS_REPEATED(60, 60, 15));
    weft_model_close(&model);
}

/* The steps of the second half of an answer allocate nothing. */
typedef struct counter {
    answer a;
    size_t at_40, at_100;
} counter;

static int count_allocations(void *arg, const weft_event *e)
{
    counter *c = arg;
    on_event(&c->a, e);
    if (e->kind == WEFT_EVENT_TOKEN && c->a.n == 40) c->at_40 = atomic_load(&n_asked);
    if (e->kind == WEFT_EVENT_TOKEN && c->a.n == 100) c->at_100 = atomic_load(&n_asked);
    return 0;
}

static void decoding_allocates_nothing(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    counter c = {.a = {.hall = &the_hall}};
    ask q;
    answer unused;
    simple(&q, 60, 120);
    q.p.ignore_end = 1;
    q.p.n_top = 5;
    q.p.sampler.repeat_penalty = 1.1f;
    q.p.event = count_allocations;
    q.p.arg = &c;
    atomic_store(&n_asked, 0);
    atomic_store(&refused_at, SIZE_MAX);
    weft__alloc_set_gate(atomic_gate, NULL);
    assert_int_equal(submit(e, &q, &unused, NULL), WEFT_OK);
    wait_all();
    weft__alloc_set_gate(NULL, NULL);
    assert_true(c.at_40 > 0);
    assert_int_equal(c.at_100, c.at_40);
    close_engine(&e);
    weft_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_is_saved_and_comes_back),
        cmocka_unit_test(a_large_copy_waits_for_nobody_and_is_whole),
        cmocka_unit_test(a_request_with_a_stored_prefix_can_be_late),
        cmocka_unit_test(who_waits_for_a_disk_that_hangs_can_end),
        cmocka_unit_test(slots_and_the_end_wait_for_a_hung_disk_only_so_long),
        cmocka_unit_test(a_slow_save_is_no_hung_disk),
        cmocka_unit_test(a_large_prefix_comes_back_between_others_tokens),
        cmocka_unit_test(a_prefix_that_comes_back_gives_way),
        cmocka_unit_test(every_refused_allocation_is_an_error_and_no_leak),
        cmocka_unit_test(decoding_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
