// SPDX-License-Identifier: Apache-2.0
/* cgroup.h: the limits that Linux control groups (v1 and v2) put on this process. Reads files; keeps no state;
 * thread-safe.
 *
 * `root` stands before every path ("" is the running system), so that a test can lay out a machine of its own. Limits
 * of enclosing groups hold too: the lowest one on the way to the root counts. */
#ifndef WEFT_BASE_CGROUP_H
#define WEFT_BASE_CGROUP_H

#include <stdint.h>

/* CPUs' worth of time per wall time that the scheduler grants (1.5: one and a half CPUs); 0 when there is no limit. */
double weft__cgroup_cpus(const char *root);
/* n cores, or as many as that is, rounded up, where these are fewer; >= 1. */
int weft__cgroup_cores(const char *root, int n);
/* Bytes of memory; 0 when there is no limit. */
uint64_t weft__cgroup_memory(const char *root);
/* Bytes that its groups may still take: the limit without what is used, but for pages of files that can go; 1 when none
 * is left, 0 when there is no limit. */
uint64_t weft__cgroup_memory_left(const char *root);
/* Seconds of processor time that quotas have taken so far from the groups that this process is in; NAN where no group
 * tells. What is being taken is added when it is over. */
double weft__cgroup_throttled(const char *root);

#endif
