// SPDX-License-Identifier: Apache-2.0
/* base_cpu.c: the tier mask, thread counts, and control group limits on machines laid out in a temporary directory. */
#include "unit/fixture.h"
#include "unit/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/cpu.h"

static void mask_leaves_what_is_below(void **state)
{
    (void)state;
    uint32_t whole = 0, some = 0;
    assert_int_equal(weft__tier_mask_for(NULL, &whole, NULL), WEFT_OK);
    assert_true(whole & 1u << WEFT__TIER_REF);
    for (int t = 0; t < WEFT__TIER_COUNT; t++) {
        assert_int_equal(weft__tier_mask_for(weft__tier_name((weft__tier)t), &some, NULL), WEFT_OK);
        assert_int_equal(some, whole & ((2u << t) - 1));
        assert_true(some & 1u << WEFT__TIER_REF);
    }
    assert_int_equal(weft__tier_mask_for("AVX2", &some, NULL), WEFT_OK);
    assert_int_equal(some, whole & (1u << WEFT__TIER_REF | 1u << WEFT__TIER_NEON | 1u << WEFT__TIER_AVX2));
    assert_int_equal(weft__tier_mask_for("ref", &some, NULL), WEFT_OK);
    assert_int_equal(some, 1);
    assert_int_equal(weft__tier_mask_for("", &some, NULL), WEFT_OK);
    assert_int_equal(some, whole);
}

static void unknown_tier_is_refused(void **state)
{
    (void)state;
    weft_error err;
    uint32_t some = 0;
    assert_int_equal(weft__tier_mask_for("sse9", &some, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "sse9"));
    assert_non_null(strstr(err.message, "avx512vnni"));
    assert_int_equal(some, 0);
}

/* The compiler's own detection is a second opinion on the same bits. */
static void detection_agrees_with_the_compiler(void **state)
{
    (void)state;
    uint32_t whole = 0;
    weft__tier_mask_for(NULL, &whole, NULL);
#if defined(__x86_64__)
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    assert_int_equal(!!(whole & 1u << WEFT__TIER_AVX2), !!avx2);
    assert_int_equal(!!(whole & 1u << WEFT__TIER_AVX512), !!avx512);
    assert_int_equal(!!(whole & 1u << WEFT__TIER_AVX512VNNI), avx512 && __builtin_cpu_supports("avx512vnni"));
#if !defined(__clang__)
    assert_int_equal(!!(whole & 1u << WEFT__TIER_AVX512BF16), avx512 && __builtin_cpu_supports("avx512bf16"));
    /* The system may refuse its registers. */
    if (whole & 1u << WEFT__TIER_AMX)
        assert_true(__builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8"));
    if (whole & 1u << WEFT__TIER_AMXBF16) assert_true(__builtin_cpu_supports("amx-bf16"));
    if (whole & 1u << WEFT__TIER_AMX && __builtin_cpu_supports("amx-bf16"))
        assert_true(whole & 1u << WEFT__TIER_AMXBF16);
#endif
#elif defined(__aarch64__)
    assert_true(whole & 1u << WEFT__TIER_NEON);
#endif
    assert_true(strlen(weft__machine_processor()) > 0);
}

static void threads_follow_the_environment(void **state)
{
    (void)state;
    setenv("WEFT_THREADS", "7", 1);
    assert_int_equal(weft__machine_default_threads(), 7);
    unsetenv("WEFT_THREADS");
    int n = weft__machine_default_threads();
    assert_true(n >= 1 && n <= weft__machine_cpus());
    setenv("WEFT_LOG", "error", 1);
    static const char *const nonsense[] = {"0", "-3", "7x", "99999999999999999999"};
    for (int i = 0; i < 4; i++) {
        setenv("WEFT_THREADS", nonsense[i], 1);
        assert_int_equal(weft__machine_default_threads(), n);
    }
    unsetenv("WEFT_THREADS");
    assert_true(weft__machine_memory_bytes() > 1u << 20);
}

static void assert_limits(double cpus, uint64_t memory)
{
    assert_true(weft__cgroup_cpus(machine) == cpus);
    for (int n = 1; n <= 8; n++)
        assert_int_equal(weft__cgroup_cores(machine, n), cpus > 0 && cpus < n ? (int)(cpus + 0.5) : n);
    assert_int_equal(weft__cgroup_memory(machine), memory);
}

static void control_groups_limit(void **state)
{
    (void)state;
    assert_limits(0, 0); /* no control groups at all */
    put_file("/proc/self/cgroup", "0::/user/job\n");
    put_file("/sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
    put_file("/sys/fs/cgroup/user/job/memory.max", "max\n");
    assert_limits(0, 0);
    put_file("/sys/fs/cgroup/user/job/cpu.max", "250000 100000\n");
    put_file("/sys/fs/cgroup/user/job/memory.max", "8589934592\n");
    assert_limits(2.5, 8589934592u);
    put_file("/sys/fs/cgroup/user/cpu.max", "150000 100000\n"); /* the enclosing group is narrower */
    assert_limits(1.5, 8589934592u);
    /* Within a container the listed path does not exist, and the mount point is the container's group. */
    put_file("/proc/self/cgroup", "0::/not/visible/here\n");
    put_file("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    assert_limits(0.5, 0);
    /* v1, with controllers mounted together and apart, names that contain others' names, and v1's number for no
     * limit. */
    put_file("/proc/self/cgroup", "9:cpuset:/c\n4:memory:/m\n2:cpu,cpuacct:/a/b\n");
    put_file("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
    put_file("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n");
    assert_limits(0, 0);
    put_file("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "300000\n");
    put_file("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    put_file("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "1048576\n");
    assert_limits(3, 1048576);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mask_leaves_what_is_below),
        cmocka_unit_test(unknown_tier_is_refused),
        cmocka_unit_test(detection_agrees_with_the_compiler),
        cmocka_unit_test(threads_follow_the_environment),
        cmocka_unit_test_setup_teardown(control_groups_limit, make_machine, remove_machine),
    };
    return cmocka_run_group_tests_name("base_cpu", tests, NULL, NULL);
}
