// SPDX-License-Identifier: Apache-2.0
/* backend_threads.c: who computes, who packs and who reads. Teams that change from step to step give the same bits;
 * each page of packed weights is first touched by a thread of the NUMA node that will read it, on a machine of two
 * nodes that is not there; a system that refuses all advice about memory changes nothing. */
#include "waist.h"

#include "claims.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/pool.h"

enum { D = 1024, F = 4096, V = 64, THREADS = 16, NODES = 2, SLOW = 0, N_CTX = 48 };

/* ---- linked in place of the real ones ---- */

static int team_now; /* 0: ask the pool */
int __real_weft__pool_team(const weft__pool *pool);
int __wrap_weft__pool_team(const weft__pool *pool);
int __wrap_weft__pool_team(const weft__pool *pool)
{
    return team_now ? team_now : __real_weft__pool_team(pool);
}

static int refuse_advice, n_refused;
int __real_madvise(void *at, size_t n, int advice);
int __wrap_madvise(void *at, size_t n, int advice);
int __wrap_madvise(void *at, size_t n, int advice)
{
    if (!refuse_advice) return __real_madvise(at, n, advice);
    n_refused++;
    errno = refuse_advice;
    return -1;
}

/* The first large buffer of huge pages is where the weights will be packed; its pages are watched from then on. */
static uint8_t *watched;
static size_t n_watched, page;
static int watching;
weft_status __real_weft__mem_create(const weft_buffer_spec *spec, weft_buffer **out, weft_error *err);
weft_status __wrap_weft__mem_create(const weft_buffer_spec *spec, weft_buffer **out, weft_error *err);
weft_status __wrap_weft__mem_create(const weft_buffer_spec *spec, weft_buffer **out, weft_error *err)
{
    weft_status st = __real_weft__mem_create(spec, out, err);
    if (!st && watching && !watched && (spec->flags & WEFT_BUFFER_HUGE) && spec->n_bytes > 4u << 20) {
        watched = (*out)->data;
        n_watched = ((size_t)spec->n_bytes + page - 1) / page;
        mprotect(watched, n_watched * page, PROT_NONE);
    }
    return st;
}

/* ---- who touches a page first ---- */

static atomic_schar *toucher; /* [n_watched] number of the thread + 1 */
static atomic_long n_touched;
static int slow = -1; /* this thread takes long for each page: SLOW, the first of its node, or none */

/* Threads of the pool are named weft-1, weft-2 ...; any other is thread 0. */
static int this_thread(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    return strncmp(name, "weft-", 5) ? 0 : atoi(name + 5);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    size_t i = (size_t)((uint8_t *)info->si_addr - watched) / page;
    (void)context;
    if ((uint8_t *)info->si_addr < watched || i >= n_watched) {
        signal(number, SIG_DFL); /* a fault of another kind: happens again, and ends the test */
        return;
    }
    signed char nobody = 0;
    if (atomic_compare_exchange_strong(&toucher[i], &nobody, (signed char)(this_thread() + 1)))
        atomic_fetch_add(&n_touched, 1);
    for (long before = -1;
         this_thread() == slow && before != atomic_load(&n_touched);) { /* until the others come to a halt */
        before = atomic_load(&n_touched);
        nanosleep(&(struct timespec){0, 4000000}, NULL);
    }
    mprotect(watched + i * page, page, PROT_READ | PROT_WRITE);
}

static void watch_faults(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    page = (size_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGSEGV, &action, NULL);
    toucher = weft__alloc_zero((32u << 20) / page, sizeof *toucher);
    watching = 1;
}

/* ---- a graph whose weights fill several huge pages ---- */

static void open_graph(stage *s)
{
    weft_attr_moe moe = {.n_experts = 2, .n_used = 2, .normalize = 1, .scale = 1, .activation = WEFT_ACT_SILU};
    stage_open(s, 5);
    weft_tensor_id x = weft__op_embed(s->b, stage_weight(s, WEFT_F16, D, V, 0, "embd"), 1);
    x = weft__op_norm(s->b, 0, x, stage_vector(s, D, "norm"), 1e-5f, 0);
    weft_tensor_id gate = weft__op_linear(s->b, 0, x, stage_weight(s, WEFT_Q4_0, D, F, 0, "gate"), WEFT_NONE);
    weft_tensor_id up =
        weft__op_linear(s->b, 0, x, stage_weight(s, WEFT_Q8_0, D, F, 0, "up"), stage_vector(s, F, "bias"));
    weft_tensor_id y = weft__op_glu(s->b, 0, gate, up, WEFT_ACT_SILU);
    x = weft__op_add(s->b, 0, x, weft__op_linear(s->b, 0, y, stage_weight(s, WEFT_Q4_K, F, D, 0, "down"), WEFT_NONE));
    weft_weight_id router = stage_weight(s, WEFT_F32, D, 2, 0, "router");
    weft_tensor_id route = weft__op_moe_route(s->b, 1, weft__op_linear(s->b, 1, x, router, WEFT_NONE), &moe);
    weft_weight_id gates = stage_weight(s, WEFT_Q4_0, D, D, 2, "gates"),
                   ups = stage_weight(s, WEFT_Q4_0, D, D, 2, "ups");
    x = weft__op_moe_ffn(s->b, 1, x, route, gates, ups, stage_weight(s, WEFT_Q8_0, D, D, 2, "downs"), &moe);
    x = weft__op_pick_rows(s->b, x);
    weft__builder_output(s->b, weft__op_linear(s->b, -1, x, stage_weight(s, WEFT_Q6_K, D, V, 0, "head"), WEFT_NONE));
    stage_finish(s);
}

/* One sequence in steps of the given sizes; before each step the team has as many threads as `teams` says. out
 * [N_CTX][V] */
static void run_graph(const stage *s, const char *options, const int *sizes, const int *teams, float *out)
{
    store t;
    float *all = weft__alloc_zero((size_t)STAGE_SEQS * N_CTX * V, sizeof *all);
    store_open(&t, s->g, "cpu", options, 1, WEFT_F16, N_CTX, N_CTX);
    for (int i = 0, at = 0; sizes[i]; at += sizes[i++]) {
        span one = {0, at, sizes[i]};
        team_now = teams ? teams[i] : 0;
        store_step(&t, &one, 1, V, N_CTX, all);
    }
    team_now = 0;
    memcpy(out, all, (size_t)N_CTX * V * sizeof *out);
    store_close(&t);
    weft__free(all);
}

static void same(const float *a, const float *b)
{
    if (memcmp(a, b, (size_t)N_CTX * V * sizeof *a)) fail_msg("results differ in their bits");
}

static void teams_give_the_same_bits(void **state)
{
    (void)state;
    static const int whole[] = {N_CTX, 0}, parts[] = {1, 20, 1, 2, 17, 1, 6, 0}, teams[] = {4, 1, 3, 2, 4, 1, 3};
    float *a = weft__alloc_array((size_t)N_CTX * V, sizeof *a), *b = weft__alloc_array((size_t)N_CTX * V, sizeof *b);
    stage s;
    open_graph(&s);
    run_graph(&s, "threads=1", whole, NULL, a);
    run_graph(&s, "threads=4", parts, teams, b);
    same(a, b);
    run_graph(&s, "threads=4", parts, NULL, b);
    same(a, b);
    stage_close(&s);
    weft__free(a);
    weft__free(b);
}

static void refused_advice_changes_nothing(void **state)
{
    (void)state;
    static const int whole[] = {N_CTX, 0};
    float *a = weft__alloc_array((size_t)N_CTX * V, sizeof *a), *b = weft__alloc_array((size_t)N_CTX * V, sizeof *b);
    stage s;
    open_graph(&s);
    run_graph(&s, "threads=4", whole, NULL, a);
    static const int reasons[] = {EINVAL, ENOMEM, EAGAIN};
    for (int i = 0; i < CLAIMS_REPEATED(3, 3, 1); i++) {
        refuse_advice = reasons[i];
        n_refused = 0;
        run_graph(&s, "threads=4", whole, NULL, b);
        refuse_advice = 0;
        /* Tiers without packed kernels read weights where they lie, and ask for nothing. */
        assert_true(n_refused > 0 || weft__tier_mask() < 1u << WEFT__TIER_AVX2);
        same(a, b);
    }
    stage_close(&s);
    weft__free(a);
    weft__free(b);
}

/* ---- memory near its reader ---- */

/* Does /proc/self/smaps say of the mapping around `at` that it has no huge pages? -1: it does not say. */
static int has_small_pages(const uint8_t *at)
{
    char line[512];
    int within = 0, answer = -1;
    FILE *f = fopen("/proc/self/smaps", "re");
    while (f && answer < 0 && fgets(line, sizeof line, f)) {
        unsigned long first, last;
        if (sscanf(line, "%lx-%lx ", &first, &last) == 2) within = (uintptr_t)at >= first && (uintptr_t)at < last;
        if (within && !strncmp(line, "VmFlags:", 8)) answer = strstr(line, " nh") != NULL;
    }
    if (f) fclose(f);
    return answer;
}

/* Of a thread's number + 1. */
static int node_of(int thread)
{
    return (thread - 1) / (THREADS / NODES);
}

/* Each page was read by a thread of the node that packed it; packer [n_watched]. Did others read a part of the slow
 * thread's share? */
static int read_near_by(const signed char *packer)
{
    size_t n_read = 0, apart = 0, by[NODES] = {0}, late = 0, share = 0;
    for (size_t i = 0; i < n_watched; i++) {
        int reader = atomic_load(&toucher[i]);
        if (!reader) continue;
        n_read++;
        share += packer[i] == SLOW + 1;
        late += reader == SLOW + 1;
        by[node_of(reader)]++;
        apart += node_of(reader) != node_of(packer[i]);
    }
    print_message(
        "  %zu pages: %zu and %zu read by each node, %zu by another than packed them; %zu of %zu by the slow thread\n",
        n_read, by[0], by[1], apart, late, share);
    assert_true(n_read > n_watched * 9 / 10);
    for (int i = 0; i < NODES; i++) assert_in_range(by[i], n_read * 2 / 5, n_read * 3 / 5);
    /* 11 matrices, with experts; where the shares of two nodes meet, a page belongs to both. */
    assert_true(apart <= 11 * NODES);
    return late < share * 3 / 4;
}

static void pages_lie_near_their_reader(void **state)
{
    (void)state;
    static signed char packer[(32u << 20) / 4096];
    stage s;
    store t;
    float *out = weft__alloc_zero((size_t)STAGE_SEQS * N_CTX * V, sizeof *out);
    open_graph(&s);
    watch_faults();
    setenv("WEFT_TEAM", "fixed", 1);
    store_open(&t, s.g, "cpu", "threads=16", 1, WEFT_F16, N_CTX, STAGE_SEQS);
    unsetenv("WEFT_TEAM");
    if (!watched) {
        print_message("left out: the only tier here reads weights where they lie\n");
        goto close;
    }
    assert_true(n_watched > 8u << 20 >> 12 && n_watched <= sizeof packer);
    size_t packed[THREADS] = {0}; /* pages */
    for (size_t i = 0; i < n_watched; i++) {
        packer[i] = atomic_exchange(&toucher[i], 0);
        assert_in_range(packer[i], 1, THREADS);
        packed[packer[i] - 1]++;
    }
    for (int i = 0; i < THREADS; i++)
        assert_in_range(packed[i], n_watched * 4 / (5 * THREADS), n_watched * 4 / (3 * THREADS));
    /* The shares of two nodes, smaller than a huge page is worth. */
    for (size_t i = 0; i < n_watched; i += n_watched / 8) assert_int_not_equal(has_small_pages(watched + i * page), 0);
    /* Within a node, a thread that is done reads what another has not come to; not experts. Where threads wait for a
     * processor longer than the slow one for them, it may do all of its share once, but not forty times. */
    int relieved = 0;
    for (int pos = 0; pos < 40 && !relieved; pos++) {
        span one = {0, pos, 1};
        mprotect(watched, n_watched * page, PROT_NONE);
        for (size_t i = 0; i < n_watched; i++) atomic_store(&toucher[i], 0);
        slow = SLOW;
        store_step(&t, &one, 1, V, N_CTX, out);
        slow = -1;
        relieved = read_near_by(packer);
    }
    assert_true(relieved);
close:
    signal(SIGSEGV, SIG_DFL);
    store_close(&t);
    stage_close(&s);
    weft__free(out);
    weft__free(toucher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(teams_give_the_same_bits),
        cmocka_unit_test(refused_advice_changes_nothing),
        cmocka_unit_test(pages_lie_near_their_reader),
    };
    /* Before anything asks for the machine. */
    setenv("HWLOC_SYNTHETIC", "numa:2 core:8 pu:1", 1);
    return cmocka_run_group_tests_name("backend_threads", tests, NULL, NULL);
}
