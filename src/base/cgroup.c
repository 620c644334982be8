// SPDX-License-Identifier: Apache-2.0
/* cgroup.c: control group limits of this process (cgroup.h). No state; any thread. */
#include "base/cgroup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_ROOM 4096

/* Reads the first line of root/dir/file into line; 0 when there is none. */
static int read_line(const char *root, const char *dir, const char *file, char *line, int n)
{
    char path[PATH_ROOM * 2];
    int len = snprintf(path, sizeof path, "%s%s/%s", root, dir, file);
    if (len < 0 || (size_t)len >= sizeof path) return 0;
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    int ok = fgets(line, n, f) != NULL;
    fclose(f);
    return ok;
}

/* Is `name` one of the comma-separated words of list[0..n)? */
static int names(const char *list, size_t n, const char *name)
{
    size_t want = strlen(name);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && list[end] != ',') end++;
        if (end - i == want && !memcmp(list + i, name, want)) return 1;
        i = end + 1;
    }
    return 0;
}

/* The group of this process in the hierarchy of `controller` ("" is v2), from /proc/self/cgroup ("4:memory:/a/b").
 * Stores the group's directory and the length of its mount point in it; 0 when the hierarchy does not exist. */
static int find_group(const char *root, const char *controller, char dir[PATH_ROOM], size_t *mount_len)
{
    char path[PATH_ROOM], line[PATH_ROOM];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    int found = 0;
    while (!found && fgets(line, sizeof line, f)) {
        char *list = strchr(line, ':');
        char *group = list ? strchr(list + 1, ':') : NULL;
        if (!group) continue;
        size_t list_len = (size_t)(group - ++list);
        found = *controller ? names(list, list_len, controller) : list_len == 0;
        if (!found) continue;
        group++;
        group[strcspn(group, "\n")] = 0;
        int mount = snprintf(dir, PATH_ROOM, "/sys/fs/cgroup%s%s", *controller ? "/" : "", controller);
        int len = snprintf(dir, PATH_ROOM, "/sys/fs/cgroup%s%s%s", *controller ? "/" : "", controller, group);
        if (len < 0 || len >= PATH_ROOM) found = 0;
        *mount_len = (size_t)mount;
    }
    fclose(f);
    return found;
}

/* Cuts the last component off dir; 0 when it was the mount point already. Within a container the group's own path may
 * not be visible, and then the walk ends at the mount point, which is the container's group. */
static int to_parent(char *dir, size_t mount_len)
{
    if (strlen(dir) <= mount_len) return 0;
    char *slash = strrchr(dir, '/');
    if (!slash || (size_t)(slash - dir) < mount_len) return 0;
    *slash = 0;
    return 1;
}

static double lower(double a, double b)
{
    if (a <= 0) return b;
    if (b <= 0) return a;
    return a < b ? a : b;
}

/* v2: "max 100000" or "150000 100000" (microseconds of quota and period). */
static double quota_v2(const char *root, const char *dir)
{
    char line[128];
    double quota, period;
    if (!read_line(root, dir, "cpu.max", line, sizeof line)) return 0;
    if (sscanf(line, "%lf %lf", &quota, &period) != 2 || quota <= 0 || period <= 0) return 0;
    return quota / period;
}

/* v1: the quota is -1 where there is none. */
static double quota_v1(const char *root, const char *dir)
{
    char line[128];
    if (!read_line(root, dir, "cpu.cfs_quota_us", line, sizeof line)) return 0;
    double quota = strtod(line, NULL);
    if (quota <= 0 || !read_line(root, dir, "cpu.cfs_period_us", line, sizeof line)) return 0;
    double period = strtod(line, NULL);
    return period > 0 ? quota / period : 0;
}

static double memory_v2(const char *root, const char *dir)
{
    char line[128];
    if (!read_line(root, dir, "memory.max", line, sizeof line)) return 0;
    return strtod(line, NULL); /* "max" reads as 0 */
}

/* v1 writes an enormous number (about 2^63) for no limit. */
static double memory_v1(const char *root, const char *dir)
{
    char line[128];
    if (!read_line(root, dir, "memory.limit_in_bytes", line, sizeof line)) return 0;
    double bytes = strtod(line, NULL);
    return bytes < 0x1p60 ? bytes : 0;
}

/* The lowest limit from this process's group up to the mount point. */
static double lowest(const char *root, const char *controller, double (*limit)(const char *root, const char *dir))
{
    char dir[PATH_ROOM];
    size_t mount_len;
    double low = 0;
    if (!find_group(root, controller, dir, &mount_len)) return 0;
    do low = lower(low, limit(root, dir));
    while (to_parent(dir, mount_len));
    return low;
}

double weft__cgroup_cpus(const char *root)
{
    return lower(lowest(root, "", quota_v2), lowest(root, "cpu", quota_v1));
}

int weft__cgroup_cores(const char *root, int n)
{
    const double quota = ceil(weft__cgroup_cpus(root));
    if (quota > 0 && quota < n) n = (int)quota;
    return n < 1 ? 1 : n;
}

uint64_t weft__cgroup_memory(const char *root)
{
    return (uint64_t)lower(lowest(root, "", memory_v2), lowest(root, "memory", memory_v1));
}

/* The number behind `name` in root/dir/memory.stat; 0 when there is none. */
static double memory_stat(const char *root, const char *dir, const char *name)
{
    char path[PATH_ROOM * 2], line[128], word[64];
    double value, found = 0;
    const int len = snprintf(path, sizeof path, "%s%s/memory.stat", root, dir);
    FILE *f = len > 0 && (size_t)len < sizeof path ? fopen(path, "re") : NULL;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%63s %lf", word, &value) == 2 && !strcmp(word, name)) found = value;
    if (f) fclose(f);
    return found;
}

static double left_of(const char *root, const char *dir, double limit, const char *usage, const char *files)
{
    char line[128];
    if (limit <= 0 || !read_line(root, dir, usage, line, sizeof line)) return limit;
    const double left = limit - strtod(line, NULL) + memory_stat(root, dir, files);
    return left < 1 ? 1 : left < limit ? left : limit;
}

static double left_v2(const char *root, const char *dir)
{
    return left_of(root, dir, memory_v2(root, dir), "memory.current", "inactive_file");
}

static double left_v1(const char *root, const char *dir)
{
    return left_of(root, dir, memory_v1(root, dir), "memory.usage_in_bytes", "total_inactive_file");
}

uint64_t weft__cgroup_memory_left(const char *root)
{
    return (uint64_t)lower(lowest(root, "", left_v2), lowest(root, "memory", left_v1));
}

/* Adds what cpu.stat of that group says, in seconds: throttled_usec in v2, throttled_time (ns) in v1; the root of v2
 * has neither. */
static void add_throttled(const char *root, const char *dir, double *sum)
{
    char path[PATH_ROOM * 2], line[128];
    const int len = snprintf(path, sizeof path, "%s%s/cpu.stat", root, dir);
    FILE *f = len > 0 && (size_t)len < sizeof path ? fopen(path, "re") : NULL;
    if (!f) return;
    if (isnan(*sum)) *sum = 0;
    while (fgets(line, sizeof line, f)) {
        double amount;
        if (sscanf(line, "throttled_usec %lf", &amount) == 1) *sum += amount * 1e-6;
        if (sscanf(line, "throttled_time %lf", &amount) == 1) *sum += amount * 1e-9;
    }
    fclose(f);
}

double weft__cgroup_throttled(const char *root)
{
    static const char *const controllers[] = {"", "cpu"}; /* v2, v1 */
    char dir[PATH_ROOM];
    size_t mount_len;
    double sum = NAN;
    for (int i = 0; i < 2; i++) {
        if (!find_group(root, controllers[i], dir, &mount_len)) continue;
        do add_throttled(root, dir, &sum);
        while (to_parent(dir, mount_len));
    }
    return sum;
}
