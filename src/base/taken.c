// SPDX-License-Identifier: Apache-2.0
/* taken.c: what others take of this process's time (taken.h). Invariant: what cannot be read stays NAN on its way to
 * the output. No state; any thread. */
#include "base/taken.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/topology.h"

enum { CPUS_MOST = 8192, IN_A_ROW = 3, TICKS = 2 };

static double tick_s(void)
{
    const long hz = sysconf(_SC_CLK_TCK);
    return hz > 0 ? 1.0 / (double)hz : 0.01;
}

/* ---- counters ---- */

/* A line "cpu12 USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ...", of which old systems have fewer numbers. */
static void add_line(const char *line, const uint64_t *cpus, size_t n_words, weft__taken_mark *out)
{
    enum { IDLE = 3, IOWAIT = 4, STEAL = 7, FIELDS = 8 };
    double ticks[FIELDS] = {0};
    char *at;
    const unsigned long cpu = strtoul(line + 3, &at, 10);
    int n = 0;
    if (at == line + 3 || cpu / 64 >= n_words || !(cpus[cpu / 64] >> cpu % 64 & 1)) return;
    for (char *end; n < FIELDS; n++, at = end) {
        ticks[n] = (double)strtoull(at, &end, 10);
        if (end == at) break;
    }
    out->n_cpus++;
    out->idle_s += n > IDLE ? (ticks[IDLE] + ticks[IOWAIT]) * tick_s() : NAN;
    out->stolen_s += n > STEAL ? ticks[STEAL] * tick_s() : NAN;
}

void weft__taken_read_stat(const char *root, const uint64_t *cpus, size_t n_words, weft__taken_mark *out)
{
    char line[512];
    out->n_cpus = 0;
    out->idle_s = out->stolen_s = 0;
    snprintf(line, sizeof line, "%s/proc/stat", root);
    FILE *f = fopen(line, "re");
    while (f && fgets(line, sizeof line, f) &&
           !strncmp(line, "cpu", 3)) /* they come first, before a line of many thousand bytes */
        if (line[3] >= '0' && line[3] <= '9') add_line(line, cpus, n_words, out);
    if (f) fclose(f);
    if (!out->n_cpus) out->idle_s = out->stolen_s = NAN;
}

static uint64_t own_ns(void)
{
    struct timespec t;
    struct rusage u = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    getrusage(RUSAGE_CHILDREN, &u);
    const uint64_t children_us = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
                                 (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec + children_us * 1000;
}

void weft__taken_now(weft__taken_mark *out)
{
    union {
        uint64_t words[CPUS_MOST / 64];
        cpu_set_t set;
    } ours;
    weft__topology_counts counts;
    memset(&ours, 0, sizeof ours);
    if (sched_getaffinity(0, sizeof ours, &ours.set)) memset(&ours, 0xFF, sizeof ours);
    weft__topology_count(weft__topology_machine(), &counts);
    weft__taken_read_stat("", ours.words, CPUS_MOST / 64, out);
    out->n_cores = counts.cores;
    out->throttled_s = weft__cgroup_throttled("");
    out->own_ns = own_ns();
    out->wall_ns = weft__clock_ns();
}

/* ---- what was taken ---- */

static double at_least_0(double x)
{
    return x < 0 ? 0 : x; /* NAN stays */
}

weft__taken weft__taken_between(const weft__taken_mark *from, const weft__taken_mark *to, int n_threads)
{
    const double wall = to->wall_ns > from->wall_ns ? (double)(to->wall_ns - from->wall_ns) * 1e-9 : 0,
                 own = to->own_ns > from->own_ns ? (double)(to->own_ns - from->own_ns) * 1e-9 : 0;
    const int known = from->n_cpus == to->n_cpus && to->n_cpus > 0; /* otherwise the counters are of other CPUs */
    const int most = known && n_threads > to->n_cpus ? to->n_cpus : n_threads;
    weft__taken t = {wall * most, NAN, NAN, at_least_0(to->throttled_s - from->throttled_s)};
    if (t.throttled_s > t.time_s) t.throttled_s = t.time_s; /* booked when it ends, so it may have begun before */
    if (!known) return t;
    const double idle = at_least_0(to->idle_s - from->idle_s), spare = at_least_0(to->n_cores - n_threads);
    t.stolen_s = at_least_0(to->stolen_s - from->stolen_s);
    t.others_s = at_least_0(wall * (to->n_cpus - spare) - idle - (isnan(t.stolen_s) ? 0 : t.stolen_s) - own);
    return t;
}

void weft__taken_add(weft__taken *sum, const weft__taken *more)
{
    sum->time_s += more->time_s;
    sum->stolen_s += more->stolen_s;
    sum->others_s += more->others_s;
    sum->throttled_s += more->throttled_s;
}

static double known(double x)
{
    return isnan(x) ? 0 : x;
}

double weft__taken_share(const weft__taken *t)
{
    if (!(t->time_s > 0) || (isnan(t->stolen_s) && isnan(t->others_s) && isnan(t->throttled_s))) return NAN;
    return (known(t->stolen_s) + known(t->others_s) + known(t->throttled_s)) / t->time_s;
}

int weft__taken_above(const weft__taken *t)
{
    const double share = weft__taken_share(t);
    return share > WEFT__TAKEN_MOST && share * t->time_s > TICKS * tick_s();
}

int weft__taken_again_wanted(weft__taken_again *a, const weft__taken *t)
{
    if (!weft__taken_above(t)) {
        a->in_a_row = 0;
        return 0;
    }
    if (++a->in_a_row > IN_A_ROW) a->left = 0;
    if (a->left <= 0) return 0;
    a->left--;
    return 1;
}

/* ---- text ---- */

const char *weft__taken_text(const weft__taken *t, int marked, char *out)
{
    const double share = weft__taken_share(t), stolen = known(t->stolen_s), others = known(t->others_s),
                 throttled = known(t->throttled_s);
    const char *most = stolen >= others && stolen >= throttled ? " stolen"
                       : others >= throttled                   ? " others"
                                                               : " throttled";
    if (isnan(share)) snprintf(out, WEFT__TAKEN_ROOM, "unknown");
    else snprintf(out, WEFT__TAKEN_ROOM, "%.1f %%%s%s", 100 * share, share < 0.01 ? "" : most, marked ? " *" : "");
    return out;
}

/* `"key": 0.125000` or null. */
static int put_share(char *out, size_t room, const char *key, double seconds, double time_s)
{
    const double share = time_s > 0 ? seconds / time_s : NAN;
    return isnan(share) ? snprintf(out, room, "\"%s\": null", key) : snprintf(out, room, "\"%s\": %.6f", key, share);
}

const char *weft__taken_json(const weft__taken *t, char *out)
{
    int n = put_share(out, WEFT__TAKEN_ROOM, "stolen", t->stolen_s, t->time_s);
    n += snprintf(out + n, WEFT__TAKEN_ROOM - (size_t)n, ", ");
    n += put_share(out + n, WEFT__TAKEN_ROOM - (size_t)n, "others", t->others_s, t->time_s);
    n += snprintf(out + n, WEFT__TAKEN_ROOM - (size_t)n, ", ");
    put_share(out + n, WEFT__TAKEN_ROOM - (size_t)n, "throttled", t->throttled_s, t->time_s);
    return out;
}
