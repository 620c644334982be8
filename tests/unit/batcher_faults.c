// SPDX-License-Identifier: Apache-2.0
/* batcher_faults.c: saved slots, large prefixes that come back, and memory that is refused. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"

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
    assert_true(counted.store_read >= 1 && counted.store_bytes >= bytes &&
                counted.store_cap_bytes > counted.store_bytes);
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

/* One whose copy takes several pieces, while another request generates; and the prefix that the store keeps by
 * itself. */
static void a_large_copy_waits_for_nobody_and_is_whole(void **state)
{
    (void)state;
    enum { LONG = CLAIMS_REPEATED(1900, 1900, 1100) }; /* two pieces either way; what computes it is quadratic */
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

/* The engine does nothing else until all are submitted. */
static atomic_int all_submitted;

static int slowly_from_then(void *arg, const weft_event *event)
{
    while (!atomic_load(&all_submitted)) usleep(200);
    return slowly(arg, event);
}

/* One whose prefix was read from the disk, and for which the scheduler has no room yet, ends at its deadline: not when
 * there is room. */
static void a_request_with_a_stored_prefix_can_be_late(void **state)
{
    (void)state;
    enum { QUEUED = 18 };
    char folder[] = "/tmp/weft-serve-XXXXXX";
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    ask q, others;
    answer a, late, refused, other[QUEUED];
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
    others.p.event = slowly_from_then;
    atomic_store(&all_submitted, 0);
    for (int i = 0; i < QUEUED - 2; i++) assert_int_equal(submit(e, &others, &other[i], NULL), WEFT_OK);
    q.p.deadline_ms = 500; /* time for two more to come */
    assert_int_equal(submit(e, &q, &late, NULL), WEFT_OK);
    for (int i = QUEUED - 2; i < QUEUED; i++)
        assert_int_equal(submit(e, &others, &other[i], NULL), WEFT_OK); /* before it was read */
    weft_status more = submit(e, &q, &refused, NULL);
    atomic_store(&all_submitted, 1);
    assert_int_equal(more, WEFT_BUSY); /* those that wait for the disk count in the client's share */
    pthread_mutex_lock(&the_hall.lock);
    while (!late.n_finished) pthread_cond_wait(&the_hall.left, &the_hall.lock);
    assert_int_equal(other[0].n_finished, 0);
    pthread_mutex_unlock(&the_hall.lock);
    assert_int_equal(late.finish, WEFT_FINISH_FAILED);
    assert_int_equal(late.status, WEFT_TIMEOUT);
    assert_non_null(strstr(late.message, "500 ms"));
    for (int i = 0; i < QUEUED; i++) weft_engine_cancel(e, other[i].id);
    wait_all();
    close_engine(&e);
    remove_folder(folder);
    weft_model_close(&model);
}

/* How many pages were taken between two tokens of somebody, at most, while a slot came back. With the first of them
 * another request comes, if there is one. */
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

enum {
    LONG = CLAIMS_OF_SPEED ? 8000 : CLAIMS_REPEATED(2000, 2000, 1600),
    PIECE = 1 << 20 /* bytes that are copied between two steps */
};

/* A slot of LONG tokens on the disk, for what comes back in pieces; its computing is most of what those tests take. */
typedef struct stored {
    weft_model *model;
    char folder[32];
    uint64_t bytes;
} stored;

/* A slot of LONG tokens is saved as "large", alone in the folder. */
static int store_large(void **state)
{
    static stored s;
    static int32_t tokens[LONG];
    weft_engine_params p = small();
    weft_error err = {0};
    ask q;
    int32_t n = 0;
    answer a;
    s = (stored){.model = tiny(LONG + 8000), .folder = "/tmp/weft-serve-XXXXXX"};
    if (!mkdtemp(s.folder)) return -1;
    p.store_dir = s.folder;
    p.n_ctx = LONG + 8000;
    p.chunk = 256;
    for (int i = 0; i < LONG; i++) tokens[i] = 3 + (i * 7 + i / 31) % 500;
    weft_engine *e = open_engine(s.model, &p);
    simple(&q, 1, 1);
    q.p.n_tokens = LONG;
    q.p.tokens = tokens;
    run_together(e, &q, &a, 1);
    if (weft_engine_save(e, NULL, tokens, LONG, "large", &n, &s.bytes, &err)) fail_msg("%s", err.message);
    assert_int_equal(n, LONG);
    close_engine(&e);
    remove_prefixes(s.folder);
    *state = &s;
    return 0;
}

static int remove_large(void **state)
{
    stored *s = *state;
    remove_folder(s->folder);
    weft_model_close(&s->model);
    return 0;
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
    stored *s = *state;
    weft_engine_params p = small();
    onlooker o = {0};
    int32_t restored = 0;
    p.store_dir = s->folder;
    p.n_ctx = LONG + 8000;
    p.n_kv_tokens = 2 * LONG + 16000;
    weft_engine *e = open_engine(s->model, &p);
    assert_int_equal(restore_beside(e, &o, &restored), WEFT_OK);
    assert_int_equal(restored, LONG);
    int32_t all = o.sum, piece = (int32_t)((double)all * PIECE / (double)s->bytes) + 2;
    print_message("%d pages of %.1f MB came back, %d at most between two tokens\n", all, (double)s->bytes / 1e6,
                  o.most);
    assert_true(s->bytes > 3 * PIECE / 2 && all >= LONG / 256);
    assert_true(o.most <= piece && o.most < all);
    close_engine(&e);
}

/* Until a prefix is there as a whole, its pages are whose needs them: nobody is refused, and nobody preempted for it.
 * Pools of several sizes, so that now the one, now the other is the first to find none left. */
static void a_prefix_that_comes_back_gives_way(void **state)
{
    enum { SIZES = 7, EVERY = CLAIMS_REPEATED(1, 1, 6), PAGE = 64 };
    static int32_t tokens[LONG];
    stored *s = *state;
    weft_engine_params p = small();
    ask q;
    p.store_dir = s->folder;
    p.n_ctx = LONG + 64;
    p.chunk = 256;
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
        p.n_kv_tokens = LONG + 1600 - 3 * k * PAGE;
        weft_engine *e = open_engine(s->model, &p);
        weft_status st = restore_beside(e, &o, &restored);
        assert_true(st == WEFT_OK || st == WEFT_LIMIT);
        print_message("%d tokens: the prefix %s\n", (int)p.n_kv_tokens, st ? "gave way" : "found room");
        assert_int_equal(a.finish, WEFT_FINISH_LENGTH);
        assert_int_equal(a.n, 4);
        assert_int_equal(stats_of(e).n_preempted, 0);
        close_engine(&e);
        remove_prefixes(s->folder); /* what this engine kept is not to be found by the next */
    }
}

/* ---- memory ---- */

static atomic_size_t n_asked, refused_at;

static int atomic_gate(void *arg, size_t n_bytes)
{
    (void)arg, (void)n_bytes;
    return atomic_fetch_add(&n_asked, 1) != atomic_load(&refused_at);
}

/* Three requests, of two types of keys and values; 1 when nothing failed. */
static int serve_three(weft_model *model)
{
    static const uint32_t other = WEFT_KV_Q8;
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
    p.kv_types = &other;
    p.n_kv_types = 1;
    if (weft_engine_new(model, &p, &e, &err)) {
        assert_int_equal(err.status, WEFT_NO_MEMORY);
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        simple(&q[i], 80, i == 2 ? 0 : 5);
        q[i].p.embedding = i == 2;
        if (i == 1) q[i].p.kv_dtype = other;
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
    const struct CMUnitTest slots[] = {
        cmocka_unit_test(a_slot_is_saved_and_comes_back),
        cmocka_unit_test(a_large_copy_waits_for_nobody_and_is_whole),
        cmocka_unit_test(a_request_with_a_stored_prefix_can_be_late),
    };
    const struct CMUnitTest large[] = {
        cmocka_unit_test(a_prefix_that_comes_back_gives_way),
        cmocka_unit_test(a_large_prefix_comes_back_between_others_tokens),
    };
    const struct CMUnitTest memory[] = {
        cmocka_unit_test(every_refused_allocation_is_an_error_and_no_leak),
        cmocka_unit_test(decoding_allocates_nothing),
    };
    return cmocka_run_group_tests(slots, NULL, NULL) + cmocka_run_group_tests(large, store_large, remove_large) +
           cmocka_run_group_tests(memory, NULL, NULL);
}
