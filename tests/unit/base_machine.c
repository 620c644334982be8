// SPDX-License-Identifier: Apache-2.0
/* base_machine.c: caches, huge pages and free memory are read from machines laid out in a temporary directory; a
 * control group's limit narrows what is free by what the group uses. */
#include "unit/fixture.h"
#include "unit/machine.h"

#include "base/cgroup.h"
#include "base/machine.h"

static void put_cache(int i, const char *level, const char *type, const char *size, const char *cpus)
{
    char path[128];
    const struct {
        const char *name, *text;
    } files[] = {{"level", level}, {"type", type}, {"size", size}, {"shared_cpu_list", cpus}};
    for (int f = 0; f < 4; f++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, files[f].name);
        put_file(path, files[f].text);
    }
}

static void a_machine_is_read(void **state)
{
    (void)state;
    weft__machine_files m;
    weft__machine_read(machine, &m);
    assert_int_equal(m.n_caches, 0); /* nothing is there yet */
    assert_int_equal(m.total_bytes, 0);
    assert_string_equal(m.huge_pages, "");
    put_cache(0, "1\n", "Data\n", "48K\n", "0,64\n");
    put_cache(1, "2\n", "Unified\n", "2048K\n", "0,64\n");
    put_cache(2, "3\n", "Unified\n", "260M\n", "0-63,64-127\n");
    put_file("/proc/meminfo", "MemTotal:  1000 kB\nMemAvailable:  600 kB\nSwapTotal: 8 kB\nHugePages_Total: 3\n"
                              "Hugepagesize: 2048 kB\n");
    put_file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put_file("/sys/kernel/mm/transparent_hugepage/defrag", "[always] defer never\n");
    put_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    put_file("/proc/sys/kernel/numa_balancing", "1\n");
    weft__machine_read(machine, &m);
    assert_int_equal(m.n_caches, 3);
    assert_int_equal(m.caches[0].bytes, 48 << 10);
    assert_int_equal(m.caches[0].n_cpus, 2);
    assert_int_equal(m.caches[1].level, 2);
    assert_int_equal(m.caches[2].bytes, 260 << 20);
    assert_int_equal(m.caches[2].n_cpus, 128);
    assert_string_equal(m.caches[2].type, "Unified");
    assert_int_equal(m.total_bytes, 1000 << 10);
    assert_int_equal(m.swap_bytes, 8 << 10);
    assert_int_equal(m.huge_bytes, 3 << 21);
    assert_string_equal(m.huge_pages, "madvise");
    assert_string_equal(m.huge_defrag, "always");
    assert_string_equal(m.governor, "powersave");
    assert_int_equal(m.numa_balancing, 1);
}

/* Files that no machine has end nothing but the reading of them. */
static void nonsense_is_passed_over(void **state)
{
    (void)state;
    weft__machine_files m;
    put_cache(1, "x\n", "Unified\n", "9K\n", "0\n");
    put_cache(0, "1\n", "Data of a type that is longer than any\n", "K\n", "5-,1-0,9999999-99999999\n");
    put_file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise never\n");
    weft__machine_read(machine, &m);
    assert_int_equal(m.n_caches, 1);
    assert_int_equal(m.caches[0].bytes, 0);
    assert_int_equal(m.caches[0].n_cpus, 0);
    assert_string_equal(m.huge_pages, "");
}

static void a_group_narrows_what_is_free(void **state)
{
    (void)state;
    put_file("/proc/meminfo", "MemTotal:  1000 kB\nMemAvailable:  600 kB\n");
    assert_int_equal(weft__cgroup_memory_left(machine), 0);
    assert_int_equal(weft__machine_memory_available(machine), 600 << 10);
    put_file("/proc/self/cgroup", "0::/a/b\n");
    put_file("/sys/fs/cgroup/a/b/memory.max", "512000\n");
    assert_int_equal(weft__machine_memory_available(machine), 512000); /* what is used is not told */
    put_file("/sys/fs/cgroup/a/b/memory.current", "300000\n");
    put_file("/sys/fs/cgroup/a/b/memory.stat", "anon 200000\ninactive_file 90000\nactive_file 10000\n");
    assert_int_equal(weft__cgroup_memory_left(machine), 302000);
    put_file("/sys/fs/cgroup/a/memory.max", "400000\n"); /* the enclosing group has less left */
    put_file("/sys/fs/cgroup/a/memory.current", "399000\n");
    assert_int_equal(weft__machine_memory_available(machine), 1000);
    put_file("/sys/fs/cgroup/a/memory.current", "500000\n");
    assert_int_equal(weft__cgroup_memory_left(machine), 1);
    put_file("/proc/self/cgroup", "4:memory:/m\n");
    put_file("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "100000\n");
    put_file("/sys/fs/cgroup/memory/m/memory.usage_in_bytes", "60000\n");
    put_file("/sys/fs/cgroup/memory/m/memory.stat", "inactive_file 1\ntotal_inactive_file 5000\n");
    assert_int_equal(weft__machine_memory_available(machine), 45000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_is_read),
        cmocka_unit_test(nonsense_is_passed_over),
        cmocka_unit_test(a_group_narrows_what_is_free),
    };
    return cmocka_run_group_tests(tests, make_machine, remove_machine);
}
