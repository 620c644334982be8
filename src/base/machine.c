// SPDX-License-Identifier: Apache-2.0
/* machine.c: caches, free memory, huge pages (machine.h). No state; any thread. */
#include "base/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/cpu.h"

enum { PATH_ROOM = 4096 };

/* The first line of root/path without its end; "" when there is none. */
static void read_word(const char *root, const char *path, char *out, size_t size)
{
    char full[PATH_ROOM];
    out[0] = 0;
    const int n = snprintf(full, sizeof full, "%s%s", root, path);
    FILE *f = n > 0 && (size_t)n < sizeof full ? fopen(full, "re") : NULL;
    if (!f) return;
    if (!fgets(out, (int)size, f)) out[0] = 0;
    out[strcspn(out, "\n")] = 0;
    fclose(f);
}

/* Of "always [madvise] never" what stands in brackets. */
static void read_choice(const char *root, const char *path, char *out, size_t size)
{
    char line[256];
    read_word(root, path, line, sizeof line);
    const char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
    snprintf(out, size, "%.*s", close ? (int)(close - open - 1) : 0, close ? open + 1 : "");
}

static void read_meminfo(const char *root, weft__machine_files *m)
{
    char path[PATH_ROOM], line[256];
    unsigned long long kib, pages = 0, page = 0;
    const int n = snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    if (!f) return;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemTotal: %llu kB", &kib) == 1) m->total_bytes = kib * 1024;
        else if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) m->available_bytes = kib * 1024;
        else if (sscanf(line, "SwapTotal: %llu kB", &kib) == 1) m->swap_bytes = kib * 1024;
        else if (sscanf(line, "HugePages_Total: %llu", &kib) == 1) pages = kib;
        else if (sscanf(line, "Hugepagesize: %llu kB", &kib) == 1) page = kib * 1024;
    }
    m->huge_bytes = pages * page;
    fclose(f);
}

/* How many processors "0-3,8" names. */
static int32_t count_list(const char *list)
{
    int32_t n = 0;
    for (const char *s = list; *s;) {
        char *end;
        const long first = strtol(s, &end, 10);
        if (end == s) break;
        long last = first;
        if (*end == '-') last = strtol(end + 1, &end, 10);
        if (first < 0 || last < first || last > 1 << 20) break;
        n += (int32_t)(last - first + 1);
        s = *end == ',' ? end + 1 : "";
    }
    return n;
}

static void read_caches(const char *root, weft__machine_files *m)
{
    for (int i = 0; m->n_caches < WEFT__MACHINE_CACHES && i < 16; i++) {
        char path[128], word[256];
        char *end;
        weft__machine_cache *c = &m->caches[m->n_caches];
#define CACHE_FILE(name)                                                                                               \
    (snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/" name, i),                               \
     read_word(root, path, word, sizeof word))
        CACHE_FILE("level");
        c->level = (int32_t)strtol(word, NULL, 10);
        if (c->level < 1) break;
        CACHE_FILE("type");
        snprintf(c->type, sizeof c->type, "%.15s", word);
        CACHE_FILE("size");
        c->bytes = strtoull(word, &end, 10) << (*end == 'K' ? 10 : *end == 'M' ? 20 : 0);
        CACHE_FILE("shared_cpu_list");
        c->n_cpus = count_list(word);
#undef CACHE_FILE
        m->n_caches++;
    }
}

void weft__machine_read(const char *root, weft__machine_files *out)
{
    char word[WEFT__MACHINE_WORD];
    *out = (weft__machine_files){0};
    read_meminfo(root, out);
    read_caches(root, out);
    read_choice(root, "/sys/kernel/mm/transparent_hugepage/enabled", out->huge_pages, sizeof out->huge_pages);
    read_choice(root, "/sys/kernel/mm/transparent_hugepage/defrag", out->huge_defrag, sizeof out->huge_defrag);
    read_word(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", out->governor, sizeof out->governor);
    read_word(root, "/proc/sys/kernel/perf_event_paranoid", out->perf_paranoid, sizeof out->perf_paranoid);
    read_word(root, "/proc/sys/kernel/numa_balancing", word, sizeof word);
    out->numa_balancing = word[0] == '1';
}

uint64_t weft__machine_memory_available(const char *root)
{
    weft__machine_files m = {0};
    read_meminfo(root, &m);
    const uint64_t left = weft__cgroup_memory_left(root);
    uint64_t bytes = m.available_bytes;
    if (left && (!bytes || left < bytes)) bytes = left;
    if (bytes || root[0]) return bytes;
    return weft__machine_memory_bytes();
}
