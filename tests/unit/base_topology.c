// SPDX-License-Identifier: Apache-2.0
/* base_topology.c: which cores threads get, on machines that are not there, and the one that is. */
#include "unit/fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/pool.h"
#include "base/topology.h"
#include "claims.h"

static weft__topology *make(const weft__topology_fake_machine *fake)
{
    weft__topology *t;
    weft_error err = {0};
    if (weft__topology_fake(fake, &t, &err) != WEFT_OK) fail_msg("%s", err.message);
    return t;
}

static void expect_counts(const weft__topology_fake_machine *fake, int cpus, int cores, int fast, int nodes)
{
    weft__topology *t = make(fake);
    weft__topology_counts c;
    weft__topology_count(t, &c);
    assert_int_equal(c.cpus, cpus);
    assert_int_equal(c.cores, cores);
    assert_int_equal(c.fast_cores, fast);
    assert_int_equal(c.nodes, nodes);
    weft__topology_close(&t);
    assert_null(t);
}

/* Places n threads and compares "cpu@node:list" of each, in order. */
static void expect_places(const weft__topology_fake_machine *fake, int n, const char *want)
{
    weft__topology *t = make(fake);
    weft__placement *p;
    char got[2048] = "", list[64];
    assert_int_equal(weft__placement_create(t, n, &p, NULL), WEFT_OK);
    for (int i = 0; i < n; i++) {
        const weft__topology_place *place = weft__placement_of(p, i);
        size_t len = strlen(got);
        weft__placement_list(p, i, list, sizeof list);
        snprintf(got + len, sizeof got - len, "%s%d@%d:%s", i ? " " : "", place->cpu, place->node, list);
    }
    assert_string_equal(got, want);
    assert_false(weft__placement_binds(p)); /* there is no such machine to bind to */
    weft__placement_destroy(&p);
    assert_null(p);
    weft__topology_close(&t);
}

static const weft__topology_fake_machine plain = {.synthetic = "numa:1 core:4 pu:1"};
static const weft__topology_fake_machine smt = {.synthetic = "numa:1 core:4 pu:2"};
/* As Linux numbers them: the second CPUs of all cores behind the first ones. */
static const weft__topology_fake_machine smt_apart = {.synthetic = "numa:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)"};
static const weft__topology_fake_machine two_nodes = {.synthetic = "numa:2 core:4 pu:1"};
static const weft__topology_fake_machine two_nodes_smt = {.synthetic = "numa:2 core:2 pu:2"};
static const weft__topology_fake_machine hybrid = {.synthetic = "numa:1 core:8 pu:1", .slow = "0-3", .fast = "4-7"};

static void cores_are_counted(void **state)
{
    (void)state;
    expect_counts(&plain, 4, 4, 4, 1);
    expect_counts(&smt, 8, 4, 4, 1);
    expect_counts(&two_nodes, 8, 8, 8, 2);
    expect_counts(&hybrid, 8, 8, 4, 1);
    expect_counts(&(weft__topology_fake_machine){.synthetic = "numa:4 core:16 pu:2"}, 128, 64, 64, 4);
    /* Machines that show no cores, as some virtual ones do. */
    expect_counts(&(weft__topology_fake_machine){.synthetic = "numa:1 pu:3"}, 3, 3, 3, 1);
}

static void masks_hold(void **state)
{
    (void)state;
    expect_counts(&(weft__topology_fake_machine){.synthetic = "numa:1 core:4 pu:2", .allowed = "2-3,7"}, 3, 2, 2, 1);
    expect_counts(&(weft__topology_fake_machine){.synthetic = "numa:2 core:4 pu:1", .allowed = "5"}, 1, 1, 1, 1);
    expect_counts(
        &(weft__topology_fake_machine){
            .synthetic = "numa:1 core:8 pu:1", .slow = "0-3", .fast = "4-7", .allowed = "1-4"},
        4, 4, 1, 1);
    /* Only slow cores: they are the fastest there are. */
    expect_counts(
        &(weft__topology_fake_machine){
            .synthetic = "numa:1 core:8 pu:1", .slow = "0-3", .fast = "4-7", .allowed = "0-2"},
        3, 3, 3, 1);
    /* Never beyond the mask, nor beyond a core's own CPUs. */
    expect_places(&(weft__topology_fake_machine){.synthetic = "numa:1 core:4 pu:2", .allowed = "2-3,7"}, 2,
                  "2@0:2-3 7@0:7");
    expect_places(&(weft__topology_fake_machine){.synthetic = "numa:1 core:4 pu:2", .allowed = "2-3,7"}, 3,
                  "2@0:2-3 2@0:2-3 7@0:7");
    expect_places(&(weft__topology_fake_machine){.synthetic = "numa:2 core:4 pu:1", .allowed = "2-5"}, 4,
                  "2@0:2 3@0:3 4@1:4 5@1:5");
}

static void one_thread_per_core(void **state)
{
    (void)state;
    expect_places(&plain, 4, "0@0:0 1@0:1 2@0:2 3@0:3");
    expect_places(&smt, 4, "0@0:0-1 2@0:2-3 4@0:4-5 6@0:6-7");
    expect_places(&smt_apart, 4, "0@0:0,4 1@0:1,5 2@0:2,6 3@0:3,7");
    expect_places(&(weft__topology_fake_machine){.synthetic = "numa:1 pu:3"}, 3, "0@0:0 1@0:1 2@0:2");
}

/* The second CPU of a core only when every core has a thread; its threads are neighbours. */
static void siblings_come_last(void **state)
{
    (void)state;
    expect_places(&smt, 5, "0@0:0-1 0@0:0-1 2@0:2-3 4@0:4-5 6@0:6-7");
    expect_places(&smt, 8, "0@0:0-1 0@0:0-1 2@0:2-3 2@0:2-3 4@0:4-5 4@0:4-5 6@0:6-7 6@0:6-7");
    expect_places(&plain, 5, "-1@0: -1@0: -1@0: -1@0: -1@0:"); /* more than there are: the system decides */
}

/* A smaller team is bound to no single core: another one beside it would choose the same. */
static void small_teams_leave_the_choice(void **state)
{
    (void)state;
    expect_places(&plain, 2, "0@0:0-3 1@0:0-3");
    expect_places(&smt, 1, "0@0:0-7");
    expect_places(&hybrid, 2, "4@0:4-7 5@0:4-7"); /* but of the fast ones */
    expect_places(&hybrid, 6, "4@0:4-7 5@0:4-7 6@0:4-7 7@0:4-7 0@0:0-3 1@0:0-3");
}

static void fast_cores_first(void **state)
{
    (void)state;
    expect_places(&hybrid, 4, "4@0:4 5@0:5 6@0:6 7@0:7");
    expect_places(&hybrid, 8, "4@0:4 5@0:5 6@0:6 7@0:7 0@0:0 1@0:1 2@0:2 3@0:3");
    expect_places(
        &(weft__topology_fake_machine){
            .synthetic = "numa:1 core:8 pu:1", .slow = "0-3", .fast = "4-7", .allowed = "3-5"},
        3, "4@0:4 5@0:5 3@0:3");
}

/* Every node's memory is used, and threads that are neighbours in number lie on one node. */
static void nodes_share_the_threads(void **state)
{
    (void)state;
    expect_places(&two_nodes, 8, "0@0:0 1@0:1 2@0:2 3@0:3 4@1:4 5@1:5 6@1:6 7@1:7");
    expect_places(&two_nodes, 4, "0@0:0-3 1@0:0-3 4@1:4-7 5@1:4-7");
    expect_places(&two_nodes, 3, "0@0:0-3 1@0:0-3 4@1:4-7");
    expect_places(&two_nodes_smt, 4, "0@0:0-1 2@0:2-3 4@1:4-5 6@1:6-7");
    expect_places(&two_nodes_smt, 6, "0@0:0-1 0@0:0-1 2@0:2-3 4@1:4-5 4@1:4-5 6@1:6-7");
}

static void bad_machines_are_refused(void **state)
{
    (void)state;
    static const struct {
        weft__topology_fake_machine fake;
        const char *part;
    } cases[] = {
        {{.synthetic = "nonsense:4"}, "nonsense:4"},
        {{.synthetic = "numa:1 core:4 pu:1", .fast = "zero"}, "zero"},
        {{.synthetic = "numa:1 core:4 pu:1", .allowed = ""}, "''"},
    };
    size_t before = weft__alloc_live();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__topology *t = (weft__topology *)&before;
        weft_error err = {0};
        assert_int_equal(weft__topology_fake(&cases[i].fake, &t, &err), WEFT_ARGUMENT);
        assert_null(t);
        if (!strstr(err.message, cases[i].part)) fail_msg("'%s' lacks '%s'", err.message, cases[i].part);
    }
    assert_int_equal(weft__alloc_live(), before);
}

static int place_threads(void *arg)
{
    weft__topology *t = NULL;
    weft__placement *p = NULL;
    weft_status st = weft__topology_fake(arg, &t, NULL);
    if (!st) st = weft__placement_create(t, 6, &p, NULL);
    if (st && st != WEFT_NO_MEMORY) fail_msg("status %d", (int)st);
    weft__placement_destroy(&p);
    weft__topology_close(&t);
    return st == WEFT_OK;
}

static void refused_memory_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(fail_each(place_threads, (void *)&two_nodes_smt), 3);
}

/* ---- the machine that is there ---- */

static int cpus_of(pthread_t id)
{
    cpu_set_t set;
    if (pthread_getaffinity_np(id, sizeof set, &set)) return 0;
    return CPU_COUNT(&set);
}

/* In a thread of its own, whose affinity mask may be changed. */
static void *in_one_cpu(void *arg)
{
    cpu_set_t set;
    weft__topology_counts counts;
    (void)arg;
    int first = sched_getcpu();
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    if (first < 0 || sched_setaffinity(0, sizeof set, &set)) return "the affinity mask cannot be changed";
    weft__topology_count(weft__topology_machine(), &counts);
    if (counts.cpus != 1 || counts.cores != 1 || counts.fast_cores != 1)
        return "a mask of one CPU is not counted as one";
    unsetenv("WEFT_THREADS");
    if (weft__machine_default_threads() != 1 || weft__machine_cpus() != 1) return "one CPU gets more than one thread";
    return NULL;
}

static void affinity_masks_count(void **state)
{
    (void)state;
    pthread_t id;
    void *problem;
    if (getenv("HWLOC_SYNTHETIC") || getenv("HWLOC_XMLFILE")) skip_claim("hwloc was given another machine");
    assert_int_equal(pthread_create(&id, NULL, in_one_cpu, NULL), 0);
    pthread_join(id, &problem);
    if (problem) fail_msg("%s", (const char *)problem);
}

typedef struct seen {
    int cpus[2];
} seen;

static void look(void *arg, int thread, int n_threads)
{
    seen *s = arg;
    (void)n_threads;
    s->cpus[thread] = cpus_of(pthread_self());
}

static int seen_by_worker(const char *pin)
{
    weft__pool *pool;
    seen s = {{0}};
    if (pin) setenv("WEFT_PIN", pin, 1);
    assert_int_equal(weft__pool_create(2, &pool, NULL), WEFT_OK);
    weft__pool_run(pool, look, &s);
    weft__pool_destroy(&pool);
    unsetenv("WEFT_PIN");
    assert_int_equal(s.cpus[0], cpus_of(pthread_self()));
    return s.cpus[1];
}

static void workers_are_bound_and_callers_are_not(void **state)
{
    (void)state;
    weft__placement *p;
    char list[64];
    assert_int_equal(weft__placement_create(weft__topology_machine(), 2, &p, NULL), WEFT_OK);
    int binds = weft__placement_binds(p);
    weft__placement_list(p, 1, list, sizeof list);
    weft__placement_destroy(&p);
    int ours = cpus_of(pthread_self());
    if (!binds) skip_claim("this machine has fewer than two CPUs, or does not bind");
    int want = 0;
    for (char *at = list, *end; *at; at = *end ? end + 1 : end) {
        long first = strtol(at, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        want += (int)(last - first + 1);
    }
    assert_int_equal(seen_by_worker(NULL), want);
    assert_int_equal(seen_by_worker("0"), ours);
    assert_int_equal(cpus_of(pthread_self()), ours);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] =
        {
            cmocka_unit_test(cores_are_counted),
            cmocka_unit_test(masks_hold),
            cmocka_unit_test(one_thread_per_core),
            cmocka_unit_test(siblings_come_last),
            cmocka_unit_test(small_teams_leave_the_choice),
            cmocka_unit_test(fast_cores_first),
            cmocka_unit_test(nodes_share_the_threads),
            cmocka_unit_test(bad_machines_are_refused),
            cmocka_unit_test(refused_memory_is_an_error),
        },
                            material[] = {
                                cmocka_unit_test(affinity_masks_count),
                                cmocka_unit_test(workers_are_bound_and_callers_are_not),
                            };
    if (claims_material(argc, argv))
        return claims_status(cmocka_run_group_tests_name("base_topology", material, NULL, NULL));
    return claims_status(cmocka_run_group_tests_name("base_topology", tests, NULL, NULL));
}
