// SPDX-License-Identifier: Apache-2.0
/* cli_doctor.c: what weft doctor says of a machine follows from what the machine has: each thing that is missing is
 * told with a command, and one that is there is not. */
#include "unit/fixture.h"

#include <stdio.h>

#include "cli/doctor.h"

static doctor_facts good(void)
{
    doctor_facts f = {.machine = {.size = sizeof f.machine,
                                  .n_cpus = 8,
                                  .n_cores = 8,
                                  .n_fast_cores = 8,
                                  .n_nodes = 1,
                                  .n_threads = 8,
                                  .memory_bytes = (uint64_t)32 << 30,
                                  .available_bytes = (uint64_t)30 << 30,
                                  .memlock_bytes = UINT64_MAX,
                                  .tiers_found = "avx512vnni, avx512, avx2, ref",
                                  .tiers_used = "avx512vnni, avx512, avx2, ref",
                                  .huge_pages = "madvise"}};
    return f;
}

/* The finding of that name; NULL: there is none. */
static const doctor_finding *of(const doctor_facts *f, const char *name)
{
    static doctor_finding all[DOCTOR_FINDINGS];
    const int n = doctor_advise(f, all);
    assert_in_range(n, 1, DOCTOR_FINDINGS - 1);
    for (int i = 0; i < n; i++)
        if (!strcmp(all[i].name, name)) return &all[i];
    return NULL;
}

static void nothing_is_missing_where_all_is_there(void **state)
{
    (void)state;
    const doctor_facts f = good();
    doctor_finding all[DOCTOR_FINDINGS];
    const int n = doctor_advise(&f, all);
    for (int i = 0; i < n; i++) {
        assert_int_equal(all[i].state, DOCTOR_HELPS);
        assert_string_equal(all[i].command, "");
    }
    assert_non_null(of(&f, "tiers"));
    assert_non_null(of(&f, "huge-pages"));
}

static void assert_missing(const doctor_facts *f, const char *name, const char *command)
{
    const doctor_finding *found = of(f, name);
    assert_non_null(found);
    assert_int_not_equal(found->state, DOCTOR_HELPS);
    assert_true(found->text[0]);
    assert_non_null(strstr(found->command, command));
}

static void what_is_missing_is_told_with_a_command(void **state)
{
    (void)state;
    doctor_facts f = good();
    strcpy(f.machine.huge_pages, "never");
    assert_missing(&f, "huge-pages", "transparent_hugepage/enabled");
    f = good();
    f.cpu_wish = "avx2";
    strcpy(f.machine.tiers_used, "avx2, ref");
    assert_missing(&f, "tiers", "unset WEFT_CPU");
    f = good();
    strcpy(f.machine.tiers_found, "ref");
    strcpy(f.machine.tiers_used, "ref");
    assert_missing(&f, "tiers", "lscpu");
    strcpy(f.machine.tiers_found, "neon, ref");
    strcpy(f.machine.tiers_used, "neon, ref");
    const doctor_finding *neon = of(&f, "tiers");
    assert_true(neon->state == DOCTOR_NOTE && strstr(neon->text, "attention alone"));
    f = good();
    f.machine.quota_cpus = 1.5;
    f.machine.n_threads = 2;
    assert_missing(&f, "quota", "cgroup");
    assert_missing(&f, "quota-threads", "weft bench");
    f.machine.quota_cpus = 2;
    assert_null(of(&f, "quota-threads"));
    f.machine.quota_cpus = 8;
    assert_null(of(&f, "quota"));
    f = good();
    strcpy(f.machine.governor, "powersave");
    assert_missing(&f, "governor", "scaling_governor");
    strcpy(f.machine.governor, "performance");
    assert_null(of(&f, "governor"));
    f = good();
    f.machine.numa_balancing = 1;
    assert_null(of(&f, "numa")); /* one node */
    f.machine.n_nodes = 2;
    assert_missing(&f, "numa", "numa_balancing=0");
    f = good();
    f.machine.memlock_bytes = 64 << 10;
    assert_missing(&f, "memlock", "prlimit");
    f = good();
    f.machine.group_bytes = (uint64_t)4 << 30;
    assert_missing(&f, "memory-limit", "cgroup");
    f = good();
    f.machine.hugetlb_bytes = 2 << 20;
    assert_missing(&f, "hugetlb", "nr_hugepages=0");
    f = good();
    f.n_plugins = 3;
    f.n_broken = 1;
    strcpy(f.broken, "x.so is no plugin");
    assert_missing(&f, "plugins", "weft devices");
    f = good();
    strcpy(f.machine.perf_paranoid, "4");
    assert_missing(&f, "counters", "perf_event_paranoid");
    strcpy(f.machine.perf_paranoid, "2");
    assert_null(of(&f, "counters"));
}

static void which_of_amx_and_vnni_is_taken_is_told(void **state)
{
    (void)state;
    doctor_facts f = good();
    assert_null(of(&f, "amx"));
    strcpy(f.machine.tiers_found, "amxbf16, amx, avx512bf16, avx512vnni, ref");
    strcpy(f.machine.tiers_used, f.machine.tiers_found);
    assert_null(of(&f, "amx")); /* not measured, or WEFT_CPU names a tier */
    f.machine.amx_gops = 931;
    f.machine.below_amx_gops = 487;
    strcpy(f.machine.below_amx, "avx512vnni");
    assert_int_equal(of(&f, "amx")->state, DOCTOR_HELPS);
    assert_non_null(strstr(of(&f, "amx")->text, "go to AMX, with 931 GOPS per core here; avx512vnni would reach 487"));
    strcpy(f.machine.tiers_used, "amxbf16, avx512bf16, avx512vnni, ref"); /* products of BF16 stay */
    f.machine.below_amx_gops = 1200;
    assert_int_equal(of(&f, "amx")->state, DOCTOR_NOTE);
    assert_non_null(strstr(of(&f, "amx")->text, "go to avx512vnni, with 1200 GOPS per core here; AMX would reach 931"));
}

static doctor_measured measured(double read, double product)
{
    return (doctor_measured){
        .n_threads = 4, .read_gb_s = {read, read, read}, .l2_int8_gops = {product, product, product}};
}

static void two_threads_per_core_are_taken_where_they_help(void **state)
{
    (void)state;
    const doctor_measured one = measured(40, 1000), faster = measured(40, 1200), slower = measured(30, 1200),
                          same = measured(41, 1010), none = {0};
    assert_int_equal(doctor_choose_threads(&one, &faster), 2);
    assert_int_equal(doctor_choose_threads(&one, &slower), 1); /* generation is bound by reading */
    assert_int_equal(doctor_choose_threads(&one, &same), 1);
    assert_int_equal(doctor_choose_threads(&one, &none), 1);
    doctor_facts f = good();
    f.machine.n_threads_smt = 16;
    assert_missing(&f, "smt", "weft doctor"); /* not measured */
    f.threads_per_core = 2;
    assert_int_equal(of(&f, "smt")->state, DOCTOR_HELPS);
    assert_non_null(strstr(of(&f, "smt")->text, "16"));
}

static void rounds_become_a_range(void **state)
{
    (void)state;
    weft_peaks rounds[5];
    doctor_measured m;
    static const double read[] = {30, 10, 50, 20, 40};
    for (int i = 0; i < 5; i++) rounds[i] = (weft_peaks){.size = sizeof rounds[i], .read_gb_s = read[i]};
    doctor_summarize(rounds, 5, 3, &m);
    assert_int_equal(m.n_threads, 3);
    assert_true(m.read_gb_s.least == 10 && m.read_gb_s.median == 30 && m.read_gb_s.most == 50);
    assert_true(m.bf16_gflops.median == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_missing_where_all_is_there),
        cmocka_unit_test(what_is_missing_is_told_with_a_command),
        cmocka_unit_test(which_of_amx_and_vnni_is_taken_is_told),
        cmocka_unit_test(two_threads_per_core_are_taken_where_they_help),
        cmocka_unit_test(rounds_become_a_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
