// SPDX-License-Identifier: Apache-2.0
/* topology.h: the machine's cores, and which of them the threads of a team get. topology.c is the only file that knows
 * hwloc.
 *
 * Cores are taken fastest kind first; within a kind evenly from all NUMA nodes, because each node's memory adds its
 * bandwidth; a core's second logical CPU only when every core has a thread. CPUs outside the affinity mask of the
 * calling thread or the control group's cpuset are never taken. Thread safety: a topology is read-only once made; all
 * functions are thread-safe. */
#ifndef WEFT_BASE_TOPOLOGY_H
#define WEFT_BASE_TOPOLOGY_H

#include <pthread.h>
#include <stddef.h>

#include "weft/error.h"

typedef struct weft__topology weft__topology;

/* A machine that is not there, for tests. CPU lists are written as "0-3,8". */
typedef struct weft__topology_fake_machine {
    const char *synthetic; /* hwloc's notation: "numa:2 core:4 pu:2"; CPUs are numbered as it says */
    const char *fast;      /* CPUs of performance cores and, in `slow`, of the others; NULL: all alike */
    const char *slow;
    const char *allowed; /* CPUs that the process may use; NULL: all */
} weft__topology_fake_machine;

/* The place of one thread. */
typedef struct weft__topology_place {
    int core;  /* its core, in the machine's order; -1: none, the system schedules the thread */
    int cpu;   /* that core's first usable logical CPU, as the system numbers it; -1 likewise */
    int node;  /* NUMA node next to it, as the system numbers it; 0 where unknown */
    int speed; /* rank of the core's kind: 0 is the slowest */
} weft__topology_place;

/* What the calling thread may use. */
typedef struct weft__topology_counts {
    int cpus;       /* logical CPUs, >= 1 */
    int cores;      /* cores with at least one of those, >= 1 */
    int fast_cores; /* ... of the fastest kind among them, >= 1 */
    int nodes;      /* NUMA nodes of those cores, >= 1 */
} weft__topology_counts;

/* This machine; discovered at the first call (some milliseconds) and kept until the process ends. Never NULL; where it
 * cannot be discovered, its CPUs are counted and no thread gets a place. With HWLOC_SYNTHETIC or HWLOC_XMLFILE set it
 * is the machine that these describe, and binding does nothing. */
const weft__topology *weft__topology_machine(void);
/* A machine out of a description; the caller closes it. Binding to it does nothing. WEFT_ARGUMENT names the part that
 * cannot be read; WEFT_NO_MEMORY. */
weft_status weft__topology_fake(const weft__topology_fake_machine *fake, weft__topology **out, weft_error *err);
void weft__topology_close(weft__topology **t);
void weft__topology_count(const weft__topology *t, weft__topology_counts *out);

/* The places of n_threads threads. With more threads than logical CPUs none has a place. Threads stand in order of
 * speed, then of node, so that neighbours in number are neighbours on the machine. A thread may be bound to its core
 * when the team takes every core, or every core of the fastest kind: then there is nothing to choose. A smaller team,
 * beside which another of its kind may run, is bound to the cores of the same kind and node, and the system chooses
 * among these. `t` must outlive the placement. WEFT_NO_MEMORY. */
typedef struct weft__placement weft__placement;
weft_status weft__placement_create(const weft__topology *t, int n_threads, weft__placement **out, weft_error *err);
void weft__placement_destroy(weft__placement **p);
/* Does each thread have a place, on a machine that is there? */
int weft__placement_binds(const weft__placement *p);
const weft__topology_place *weft__placement_of(const weft__placement *p, int thread);
/* The CPUs that thread i is bound to, as a list ("0,64"; "" where it has no place); cut to n bytes. */
void weft__placement_list(const weft__placement *p, int i, char *out, size_t n);
/* Binds `id` to these CPUs. Returns 1 when the system agreed. */
int weft__placement_bind(const weft__placement *p, int i, pthread_t id);
/* Lets `id` run on every CPU that is ours on thread i's NUMA node: its memory lies there. Returns 1 when the system
 * agreed. */
int weft__placement_loosen(const weft__placement *p, int i, pthread_t id);
/* Moves the calling thread to thread i's CPUs if it runs elsewhere, and leaves its affinity mask as it was. */
void weft__placement_visit(const weft__placement *p, int i);

#endif
