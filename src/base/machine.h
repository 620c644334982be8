// SPDX-License-Identifier: Apache-2.0
/* machine.h: what there is besides cores and tiers (cpu.h, topology.h): caches, memory that is free now, huge pages,
 * limits. Reads files; keeps no state; thread-safe.
 *
 * `root` stands before every path ("" is the running system), so that a test can lay out a machine of its own. What
 * cannot be read is 0 or "". */
#ifndef WEFT_BASE_MACHINE_H
#define WEFT_BASE_MACHINE_H

#include <stdint.h>

enum { WEFT__MACHINE_CACHES = 8, WEFT__MACHINE_WORD = 32 };

/* A kind of cache beside the first processor. */
typedef struct weft__machine_cache {
    int32_t level, n_cpus; /* n_cpus: that share one */
    char type[16];         /* "Data", "Instruction", "Unified" */
    uint64_t bytes;
} weft__machine_cache;

typedef struct weft__machine_files {
    weft__machine_cache caches[WEFT__MACHINE_CACHES];
    int32_t n_caches, numa_balancing;       /* 1: the system moves pages between nodes */
    uint64_t total_bytes, available_bytes;  /* of /proc/meminfo; available: without swapping */
    uint64_t swap_bytes, huge_bytes;        /* huge: reserved pages of hugetlbfs, which Weft does not use */
    char huge_pages[WEFT__MACHINE_WORD];    /* the chosen word of transparent_hugepage/enabled: "madvise" */
    char huge_defrag[WEFT__MACHINE_WORD];   /* and of .../defrag */
    char governor[WEFT__MACHINE_WORD];      /* of the first processor's frequency: "performance" */
    char perf_paranoid[WEFT__MACHINE_WORD]; /* who may count cycles: "2" */
} weft__machine_files;

void weft__machine_read(const char *root, weft__machine_files *out);

/* Bytes that could be had now without swapping, as the system estimates them, and within what the control group has
 * left; where neither is known all memory; 0 when that is unknown, too. */
uint64_t weft__machine_memory_available(const char *root);

#endif
