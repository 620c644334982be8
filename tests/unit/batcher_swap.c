// SPDX-License-Identifier: Apache-2.0
/* batcher_swap.c: requests that give way, whose pages go to the disk and come back: the same bytes in answers and pages
 * as of requests that never gave way, with every type of keys and values; and what a disk that fails does not
 * change. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"
#include "unit/draft_doubles.h"

#include <errno.h>
#include <sys/syscall.h>

#include "batcher/batcher.h"

#define N_MANY CLAIMS_REPEATED(CLAIMS_SWEPT(12, 48), 12, 12)

enum {
    LONG = 120, /* tokens that outgrow by a page what a request was let in with */
    POOL = 256  /* tokens: two requests start in it, and cannot both end */
};

/* ---- a disk that fails ---- */

enum { FAILS = 1, HANGS = 2 };
static atomic_int no_room, no_reading;

/* In libc's place. */
ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    if (!atomic_load(&no_room)) return (ssize_t)syscall(SYS_pwrite64, fd, p, n, at);
    errno = ENOSPC;
    return -1;
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
    while (atomic_load(&no_reading) == HANGS) usleep(1000);
    if (!atomic_load(&no_reading)) return (ssize_t)syscall(SYS_pread64, fd, p, n, at);
    errno = EIO;
    return -1;
}

/* ---- what is asked ---- */

static char store[80];

static int open_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/weft-drafts-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(store, sizeof store, "%s/store", folder);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    remove_folder(folder);
    return 0;
}

static weft_engine_params swapping(uint32_t type)
{
    weft_engine_params p = small();
    p.kv_dtype = type;
    p.n_kv_tokens = POOL;
    p.n_slots = 4;
    p.store_dir = store;
    p.swap = WEFT_SWAP_ALWAYS;
    return p;
}

/* Two that cannot both end where they began: the second gives way to the first. */
static void make_two(ask q[2])
{
    for (int i = 0; i < 2; i++) {
        simple(&q[i], 60, LONG);
        for (int k = 0; k < 60; k++) q[i].tokens[k] = 3 + (k * 31 + i * 77) % 400;
        q[i].p.ignore_end = 1;
        q[i].p.sampler.temperature = 0.8f;
        q[i].p.sampler.seed = (uint64_t)(40 + i);
    }
}

/* The second one's pages, as a slot has them. */
static size_t pages_of(weft_engine *e, const char *where, const ask *q, const answer *a, char *out, size_t room)
{
    int32_t tokens[MAX_TOKENS + MAX_ANSWER], n = q->p.n_tokens + a->n - 1, n_saved = 0;
    uint64_t n_bytes = 0;
    weft_error err = {0};
    char path[128];
    memcpy(tokens, q->tokens, (size_t)q->p.n_tokens * sizeof *tokens);
    memcpy(tokens + q->p.n_tokens, a->token, (size_t)a->n * sizeof *tokens);
    n -= n % 64; /* whole pages: what stands behind the end of one is nobody's */
    if (weft_engine_save(e, NULL, tokens, n, "it", &n_saved, &n_bytes, &err)) fail_msg("%s", err.message);
    assert_int_equal(n_saved, n);
    snprintf(path, sizeof path, "%s/s-it.kv", where);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t got = fread(out, 1, room, f);
    fclose(f);
    return got;
}

/* Runs the two until the second has come back from what was kept; who meets whom is chance. */
static weft_engine *run_two(weft_model *model, uint32_t type, guesses *g, const ask *q, const answer *first,
                            answer *again)
{
    for (int round = 0;; round++) {
        weft_engine_params p = swapping(type);
        weft_engine *e = g ? guessing(model, &p, g, NULL) : open_engine(model, &p);
        run_together(e, q, again, 2);
        compare("swapped", q, first, again, 2);
        if (stats_of(e).swap.n_restored || round == 8) return e;
        close_engine(&e);
        remove_folder(store);
    }
}

static void two_in_turns(weft_model *model, uint32_t type, int wrong_in)
{
    enum { ROOM = 1 << 21 };
    static char first_pages[ROOM], pages[ROOM];
    static ask q[2];
    static answer first[2], again[2];
    char other[96], name[WEFT_KV_NAME_MAX];
    make_two(q);
    weft_engine_params p = small();
    snprintf(other, sizeof other, "%s/other", folder);
    p.kv_dtype = type;
    p.store_dir = other;
    weft_engine *e = open_engine(model, &p);
    run_alone(e, q, first, 2);
    const size_t n = pages_of(e, other, &q[1], &first[1], first_pages, ROOM);
    assert_int_equal(stats_of(e).n_preempted, 0);
    close_engine(&e);
    guesses g = {q, first, 2, wrong_in};
    e = run_two(model, type, wrong_in ? &g : NULL, q, first, again);
    const weft_engine_stats s = stats_of(e);
    print_message("%s: %llu times back, %llu pages out, %llu in, %llu lost, %llu tokens\n",
                  weft_kv_type_name(type, name), (unsigned long long)s.swap.n_restored,
                  (unsigned long long)s.swap.pages_out, (unsigned long long)s.swap.pages_in,
                  (unsigned long long)s.swap.pages_lost, (unsigned long long)s.swap.tokens);
    assert_true(s.n_preempted >= 1 && s.swap.n_restored >= 1);
    assert_true(s.swap.pages_in >= 1 && s.swap.pages_lost == 0 && s.swap.tokens >= 1);
    assert_int_equal(pages_of(e, store, &q[1], &again[1], pages, ROOM), n);
    assert_true(n > 0 && n < ROOM);
    assert_memory_equal(first_pages, pages, n);
    close_engine(&e);
    remove_folder(store);
    remove_folder(other);
}

/* All types that have a name. */
static void the_same_bytes_with_every_type(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    int n_types = 0;
    for (uint32_t type = 0; type < 256; type++) {
        char name[WEFT_KV_NAME_MAX];
        uint32_t found = 0;
        if (weft_kv_type_parse(weft_kv_type_name(type, name), &found, NULL) || found != type) continue;
        two_in_turns(model, type, 0);
        two_in_turns(model, type, 2); /* half of what is guessed ahead of its tokens is wrong */
        n_types++;
    }
    assert_true(n_types >= 3);
    weft_model_close(&model);
}

/* ---- beside many others ---- */

static void make_many(ask *all, int n, const weft_grammar *grammar, int with_adapters)
{
    static const weft_request_adapter stack[2] = {{"one", 0.5f, 0}, {"two", 1, 0}};
    for (int i = 0; i < n; i++) {
        ask *q = &all[i];
        simple(q, 40 + i * 13 % 50, LONG - i % 3 * 20);
        for (int k = 0; k < q->p.n_tokens; k++) q->tokens[k] = 3 + (k * 31 + i % 3 * 77) % 400;
        q->p.ignore_end = 1;
        q->p.sampler.temperature = (float)(i % 3) * 0.7f;
        q->p.sampler.repeat_penalty = i % 5 == 0 ? 1.3f : 1;
        q->p.sampler.seed = (uint64_t)i;
        q->p.tenant = i % 2 ? "one" : "two";
        q->p.n_top = i % 4 == 1 ? 3 : -1;
        q->p.no_cache = i % 4 == 2;
        q->p.prompt_logprobs = i % 6 == 5;
        if (grammar && i % 2) q->p.grammar = grammar;
        if (!with_adapters || i % 3 == 0) continue;
        q->p.adapters = &stack[i % 3 - 1];
        q->p.n_adapters = i % 3 == 1 ? 2 : 1;
    }
}

typedef struct scene {
    weft_model *model;
    const weft_grammar *grammar;
    const char *const *adapters;
    ask all[64];
    answer first[64], again[64];
    int n;
} scene;

static scene *make_scene(weft_model *model, const weft_grammar *grammar, const char *const *adapters)
{
    static scene s;
    weft_error err = {0};
    weft_engine_params p = small();
    s = (scene){.model = model, .grammar = grammar, .adapters = adapters, .n = N_MANY};
    make_many(s.all, s.n, grammar, adapters != NULL);
    p.n_slots = 1;
    p.spec = WEFT_SPEC_OFF;
    weft_engine *e = open_engine(model, &p);
    for (int i = 0; adapters && i < 2; i++)
        if (weft_engine_adapter_add(e, names[i], adapters[i], 1, 0, &err)) fail_msg("%s", err.message);
    run_alone(e, s.all, s.first, s.n);
    for (int i = 0; i < s.n; i++) assert_int_equal(s.first[i].status, WEFT_OK);
    close_engine(&e);
    return &s;
}

/* Runs all of them at once, as often as it takes until somebody has given way at all; returns what was counted. */
static weft_engine_stats run_many(scene *s, const char *what)
{
    weft_engine_params p = swapping(WEFT_F16);
    guesses g = {s->all, s->first, s->n, 2};
    weft_engine *e = guessing(s->model, &p, &g, s->adapters);
    weft_engine_stats c = {0};
    for (int round = 0; round < 20 && !c.swap.n_swapped; round++) {
        run_together(e, s->all, s->again, s->n);
        compare(what, s->all, s->first, s->again, s->n);
        c = stats_of(e);
    }
    print_message("%s: %llu gave way, %llu times back, %llu pages out, %llu in, %llu lost\n", what,
                  (unsigned long long)c.n_preempted, (unsigned long long)c.swap.n_restored,
                  (unsigned long long)c.swap.pages_out, (unsigned long long)c.swap.pages_in,
                  (unsigned long long)c.swap.pages_lost);
    assert_true(c.n_preempted >= 1 && c.swap.n_swapped >= 1);
    assert_true(c.swap.used_bytes <= c.swap.limit_bytes && c.swap.file_bytes <= c.swap.limit_bytes);
    close_engine(&e);
    return c;
}

/* With what goes wrong on the disk, from the start on: no answer says so. */
static void with_every_failure(scene *s)
{
    weft_engine_stats c = run_many(s, "swapped");
    assert_true(c.swap.n_restored >= 1 && c.swap.pages_out >= 1 && c.swap.pages_in >= 1);
    atomic_store(&no_room, 1);
    c = run_many(s, "on a full disk");
    assert_int_equal(c.swap.pages_out, 0);
    atomic_store(&no_room, 0);
    atomic_store(&no_reading, FAILS);
    run_many(s, "on a disk that cannot be read");
    atomic_store(&no_reading, 0);
}

static void the_same_answers_whatever_the_disk_does(void **state)
{
    const char *const files[] = {adapter_files[0], adapter_files[1]};
    (void)state;
    weft_model *model = tiny(0);
    strcpy(folder, "/tmp/weft-drafts-XXXXXX");
    make_adapters(model);
    snprintf(store, sizeof store, "%s/store", folder);
    with_every_failure(make_scene(model, NULL, files));
    weft_model_close(&model);
    remove_folder(folder);
}

static void the_same_answers_of_grammars(void **state)
{
    static const char source[] = "root ::= [a-zA-Z ,.\n']+ \".\"\n";
    weft_error err = {0};
    weft_grammar *grammar = NULL;
    (void)state;
    weft_model *model = from_shared("stories260K");
    if (weft_grammar_new(weft_model_tokenizer(model), WEFT_GRAMMAR_GBNF, source, sizeof source - 1, &grammar, &err))
        fail_msg("%s", err.message);
    with_every_failure(make_scene(model, grammar, NULL));
    weft_grammar_free(&grammar);
    weft_model_close(&model);
}

/* ---- what it may take ---- */

static void off_and_wrong_numbers(void **state)
{
    ask q[2];
    answer first[2], again[2];
    weft_error err = {0};
    weft_engine *e = NULL;
    (void)state;
    weft_model *model = tiny(0);
    make_two(q);
    weft_engine_params p = swapping(WEFT_F16);
    p.store_bytes = 4 << 20;
    p.swap_bytes = (1 << 20) + 1;
    assert_int_equal(weft_engine_new(model, &p, &e, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "1048576 at most"));
    p.swap_bytes = 0;
    p.swap = 3;
    assert_int_equal(weft_engine_new(model, &p, &e, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "swap is 3"));
    for (int off = 0; off < 2; off++) { /* by choice, and for want of room for one page */
        p.swap = off ? WEFT_SWAP_OFF : WEFT_SWAP_ALWAYS;
        p.swap_bytes = off ? 0 : 100;
        e = open_engine(model, &p);
        run_together(e, q, off ? again : first, 2);
        assert_int_equal(stats_of(e).swap.n_restored + stats_of(e).swap.pages_out, 0);
        close_engine(&e);
    }
    compare("off", q, first, again, 2);
    weft_model_close(&model);
}

/* Two turns, for it is chance which page has been written when it is wanted. */
static void a_disk_that_hangs_is_not_waited_for(void **state)
{
    static ask q[2];
    static answer first[2], again[2];
    (void)state;
    weft_model *model = tiny(0);
    make_two(q);
    weft_engine_params p = swapping(WEFT_F16);
    p.n_kv_tokens = 0;
    weft_engine *e = open_engine(model, &p);
    run_alone(e, q, first, 2);
    close_engine(&e);
    remove_folder(store);
    p = swapping(WEFT_F16);
    p.disk_wait_ms = 50;
    e = open_engine(model, &p);
    atomic_store(&no_reading, HANGS);
    for (int i = 0; i < 2; i++) q[i].p.no_cache = 1; /* nothing but what was swapped is on the disk */
    for (int round = 0; round < 8 && !stats_of(e).swap.n_swapped; round++) {
        run_together(e, q, again, 2);
        compare("beside a disk that hangs", q, first, again, 2);
    }
    assert_true(stats_of(e).swap.n_swapped >= 1);
    atomic_store(&no_reading, 0);
    close_engine(&e);
    weft_model_close(&model);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_bytes_with_every_type, open_folder, close_folder),
        cmocka_unit_test(the_same_answers_whatever_the_disk_does),
        cmocka_unit_test_setup_teardown(a_disk_that_hangs_is_not_waited_for, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(off_and_wrong_numbers, open_folder, close_folder),
    };
    const struct CMUnitTest material[] = {
        cmocka_unit_test_setup_teardown(the_same_answers_of_grammars, open_folder, close_folder),
    };
    return claims_status(claims_material(argc, argv) ? cmocka_run_group_tests(material, NULL, NULL)
                                                     : cmocka_run_group_tests(tests, NULL, NULL));
}
