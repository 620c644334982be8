// SPDX-License-Identifier: Apache-2.0
/* taken.h: what others take of the time that this process could have on its processors: the host of a virtual machine
 * (stolen), other processes of this system (others), the quota of a control group (throttled). Reads /proc/stat and
 * cgroup files; keeps no state; thread-safe.
 *
 * A figure that a benchmark measures while much was taken says nothing about the program. What cannot be read is NAN,
 * never 0. The counters of /proc/stat have ticks (of 10 ms, as a rule): of a short time they say little, and two ticks
 * are no evidence. */
#ifndef WEFT_BASE_TAKEN_H
#define WEFT_BASE_TAKEN_H

#include <stddef.h>
#include <stdint.h>

/* Above this share of the time, what was measured is not to be judged. */
#define WEFT__TAKEN_MOST 0.03

/* The counters at one moment. */
typedef struct weft__taken_mark {
    uint64_t wall_ns, own_ns; /* own: processor time of this process, and of its children that have ended */
    int n_cpus, n_cores;      /* that it may use; n_cpus 0: the next two are unknown */
    double idle_s, stolen_s;  /* of these CPUs; NAN: unknown */
    double throttled_s;       /* NAN: unknown */
} weft__taken_mark;

/* Processor time: what some threads could have had between two moments, and what of it was taken. NAN: unknown. */
typedef struct weft__taken {
    double time_s, stolen_s, others_s, throttled_s;
} weft__taken;

/* CPUs are those of the calling thread's affinity mask. */
void weft__taken_now(weft__taken_mark *out);
/* The counters of root/proc/stat ("" is the running system) for the CPUs whose bits are set in cpus[n_words], into
 * n_cpus, idle_s and stolen_s. */
void weft__taken_read_stat(const char *root, const uint64_t *cpus, size_t n_words, weft__taken_mark *out);
/* Of n_threads threads. Others take nothing while they fit on cores that these threads leave free. A counter that went
 * backwards counts as one that stood still. */
weft__taken weft__taken_between(const weft__taken_mark *from, const weft__taken_mark *to, int n_threads);
/* Adds another stretch of time; begin with {0}. */
void weft__taken_add(weft__taken *sum, const weft__taken *more);
/* The share of the time that was taken, as far as it is known; NAN where nothing is. */
double weft__taken_share(const weft__taken *t);
/* Is that more than WEFT__TAKEN_MOST, and more than two ticks? */
int weft__taken_above(const weft__taken *t);

/* Rounds that are measured again: {.left = how many at most}. */
typedef struct weft__taken_again {
    int left, in_a_row;
} weft__taken_again;

/* Is the round of which t was taken to be measured again? Only while that helps: not when three rounds more were no
 * better. */
int weft__taken_again_wanted(weft__taken_again *a, const weft__taken *t);

enum { WEFT__TAKEN_ROOM = 96 };
/* For people: "12.5 % stolen" (what most of it was; nothing is named below one per cent), "unknown"; with " *" where it
 * is marked. out: WEFT__TAKEN_ROOM bytes. Returns out. */
const char *weft__taken_text(const weft__taken *t, int marked, char *out);
/* For JSON: `"stolen": 0.125000, "others": 0.000000, "throttled": null`. out: WEFT__TAKEN_ROOM bytes. Returns out. */
const char *weft__taken_json(const weft__taken *t, char *out);

#endif
