// SPDX-License-Identifier: Apache-2.0
/* counters.c: counters of threads (counters.h). A slot belongs to the thread that has its number.
 *
 * Invariant: a slot's descriptors were opened by the thread that it names in `tid`; they count that thread alone. */
#include "base/counters.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/perf_event.h>
#include <sys/syscall.h>
#endif

#include "base/alloc.h"
#include "base/clock.h"

enum { N_OWN = WEFT__COUNTERS - WEFT__COUNTERS_HARDWARE };

static const struct {
    const char *name;
    int group;
} counters_of[WEFT__COUNTERS] = {
    [WEFT__COUNTER_CYCLES] = {"cycles", 0},
    [WEFT__COUNTER_INSTRUCTIONS] = {"instructions", 0},
    [WEFT__COUNTER_BRANCH_MISSES] = {"branch_misses", 0},
    [WEFT__COUNTER_LLC_MISSES] = {"llc_misses", 1},
    [WEFT__COUNTER_L1D_MISSES] = {"l1d_misses", 1},
    [WEFT__COUNTER_DTLB_MISSES] = {"dtlb_misses", 1},
    [WEFT__COUNTER_TASK_NS] = {"task_ns", -1},
    [WEFT__COUNTER_PAGE_FAULTS] = {"page_faults", -1},
    [WEFT__COUNTER_SWITCHES] = {"context_switches", -1},
};

/* Counters that are read together: the kernel lets all of them count, or none. */
typedef struct counter_group {
    int fd; /* its leader's; -1: none could be opened */
    int n;
    int counter[WEFT__COUNTERS_HARDWARE]; /* [n] in the order in which they are read */
} counter_group;

typedef struct slot {
    pid_t tid;
    int fd[WEFT__COUNTERS_HARDWARE];    /* -1: absent */
    int error[WEFT__COUNTERS_HARDWARE]; /* why */
    counter_group groups[WEFT__COUNTER_GROUPS];
    weft__counts last; /* the counters at the last mark */
    weft__counts of[]; /* [n_events] */
} slot;

struct weft__counters {
    const weft__counter_system *system;
    int32_t n_events;
    int no_memory[WEFT__COUNTER_THREADS]; /* each thread's own: it had no slot */
    slot *slots[WEFT__COUNTER_THREADS];   /* NULL: it has not marked yet */
};

/* ---- the running system ---- */

static int open_counter(const struct perf_event_attr *attr, int group_fd)
{
#ifdef __linux__
    return (int)syscall(SYS_perf_event_open, attr, 0, -1, group_fd, PERF_FLAG_FD_CLOEXEC);
#else
    (void)attr, (void)group_fd;
    errno = ENOSYS;
    return -1;
#endif
}

static void own_counts(uint64_t out[N_OWN])
{
    struct rusage r = {0};
    getrusage(RUSAGE_THREAD, &r);
    out[0] = weft__clock_thread_ns();
    out[1] = (uint64_t)r.ru_minflt + (uint64_t)r.ru_majflt;
    out[2] = (uint64_t)r.ru_nvcsw + (uint64_t)r.ru_nivcsw;
}

static const weft__counter_system running = {open_counter, read, close, own_counts};

/* ---- a thread's counters ---- */

#ifdef __linux__
static struct perf_event_attr describe(int counter)
{
    static const struct {
        uint32_t type;
        uint64_t config;
    } events[WEFT__COUNTERS_HARDWARE] = {
        [WEFT__COUNTER_CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
        [WEFT__COUNTER_INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
        [WEFT__COUNTER_BRANCH_MISSES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
        [WEFT__COUNTER_LLC_MISSES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
        [WEFT__COUNTER_L1D_MISSES] = {PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 |
                                                              PERF_COUNT_HW_CACHE_RESULT_MISS << 16},
        [WEFT__COUNTER_DTLB_MISSES] = {PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_READ << 8 |
                                                               PERF_COUNT_HW_CACHE_RESULT_MISS << 16},
    };
    return (struct perf_event_attr){.size = sizeof(struct perf_event_attr),
                                    .type = events[counter].type,
                                    .config = events[counter].config,
                                    .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
                                                   PERF_FORMAT_TOTAL_TIME_RUNNING,
                                    .exclude_kernel = 1, /* what perf_event_paranoid 2 allows everybody */
                                    .exclude_hv = 1};
}

/* -1, and errno. */
static int open_one(const weft__counter_system *system, int counter, int leader)
{
    const struct perf_event_attr attr = describe(counter);
    return system->open(&attr, leader);
}
#else
static int open_one(const weft__counter_system *system, int counter, int leader)
{
    (void)counter;
    return system->open(NULL, leader);
}
#endif

static void open_all(const weft__counters *c, slot *s)
{
    for (int g = 0; g < WEFT__COUNTER_GROUPS; g++) s->groups[g] = (counter_group){.fd = -1};
    for (int i = 0; i < WEFT__COUNTERS_HARDWARE; i++) {
        counter_group *g = &s->groups[counters_of[i].group];
        s->fd[i] = open_one(c->system, i, g->fd);
        s->error[i] = s->fd[i] < 0 ? errno : 0;
        if (s->fd[i] < 0) continue;
        if (g->fd < 0) g->fd = s->fd[i];
        g->counter[g->n++] = i;
    }
}

/* Leaders are closed last. */
static void close_all(const weft__counters *c, slot *s)
{
    for (int i = WEFT__COUNTERS_HARDWARE - 1; i >= 0; i--)
        if (s->fd[i] >= 0) c->system->close(s->fd[i]);
}

/* A group that cannot be read is absent from then on. */
static void read_group(const weft__counters *c, slot *s, int index, weft__counts *out)
{
    const counter_group *g = &s->groups[index];
    uint64_t data[3 + WEFT__COUNTERS_HARDWARE]; /* how many, enabled, running, a value each */
    if (g->n == 0) return;
    const ssize_t wanted = (ssize_t)((3 + (size_t)g->n) * sizeof *data);
    if (c->system->read(g->fd, data, sizeof data) != wanted || data[0] != (uint64_t)g->n) {
        for (int i = 0; i < g->n; i++) s->error[g->counter[i]] = EIO;
        return;
    }
    out->enabled_ns[index] = data[1];
    out->running_ns[index] = data[2];
    for (int i = 0; i < g->n; i++) out->n[g->counter[i]] = data[3 + i];
}

static void read_all(const weft__counters *c, slot *s, weft__counts *out)
{
    for (int g = 0; g < WEFT__COUNTER_GROUPS; g++) read_group(c, s, g, out);
    c->system->own(out->n + WEFT__COUNTERS_HARDWARE);
}

/* The slot of the calling thread, whose counters are open; NULL when there is no memory for it. */
static slot *slot_of(weft__counters *c, int32_t thread)
{
    slot *s = c->slots[thread];
    const pid_t tid = gettid();
    if (s && s->tid == tid) return s;
    if (!s) {
        s = weft__alloc_zero(1, sizeof *s + (size_t)c->n_events * sizeof s->of[0]);
        if (!s) {
            c->no_memory[thread] = 1; /* from now on: what was missed is missing in the sums */
            return NULL;
        }
        c->slots[thread] = s;
    } else close_all(c, s);
    s->tid = tid;
    open_all(c, s);
    read_all(c, s, &s->last);
    return s;
}

/* ---- the owner's ---- */

/* How many slots there are: a team's numbers have no gaps. */
static int n_slots(const weft__counters *c)
{
    int n = 0;
    while (n < WEFT__COUNTER_THREADS && (c->slots[n] || c->no_memory[n])) n++;
    return n;
}

weft_status weft__counters_new(const weft__counter_system *system, int32_t n_events, weft__counters **out,
                               weft_error *err)
{
    weft__counters *c = weft__alloc_zero(1, sizeof *c);
    *out = c;
    if (!c) return weft_fail(err, WEFT_NO_MEMORY, "no memory for counters");
    c->system = system ? system : &running;
    c->n_events = n_events;
    return WEFT_OK;
}

void weft__counters_free(weft__counters **counters)
{
    weft__counters *c = *counters;
    if (!c) return;
    *counters = NULL;
    for (int i = n_slots(c) - 1; i >= 0; i--) {
        if (!c->slots[i]) continue;
        close_all(c, c->slots[i]);
        weft__free(c->slots[i]);
    }
    weft__free(c);
}

static void add(weft__counts *to, const weft__counts *from)
{
    for (int i = 0; i < WEFT__COUNTERS; i++) to->n[i] += from->n[i];
    for (int g = 0; g < WEFT__COUNTER_GROUPS; g++) {
        to->enabled_ns[g] += from->enabled_ns[g];
        to->running_ns[g] += from->running_ns[g];
    }
}

void weft__counters_mark(weft__counters *c, int32_t thread, int32_t event)
{
    slot *s = thread >= 0 && thread < WEFT__COUNTER_THREADS ? slot_of(c, thread) : NULL;
    if (!s) return;
    weft__counts now = s->last, since; /* a group that cannot be read stands still */
    read_all(c, s, &now);
    for (int i = 0; i < WEFT__COUNTERS; i++) since.n[i] = now.n[i] - s->last.n[i];
    for (int g = 0; g < WEFT__COUNTER_GROUPS; g++) {
        since.enabled_ns[g] = now.enabled_ns[g] - s->last.enabled_ns[g];
        since.running_ns[g] = now.running_ns[g] - s->last.running_ns[g];
    }
    s->last = now;
    if (event >= 0 && event < c->n_events) add(&s->of[event], &since);
}

void weft__counters_take(weft__counters *c, int32_t event, weft__counts *out)
{
    *out = (weft__counts){0};
    for (int i = n_slots(c) - 1; i >= 0; i--) {
        if (!c->slots[i]) continue;
        add(out, &c->slots[i]->of[event]);
        c->slots[i]->of[event] = (weft__counts){0};
    }
}

/* ---- what they are ---- */

const char *weft__counter_name(int counter)
{
    return counter >= 0 && counter < WEFT__COUNTERS ? counters_of[counter].name : NULL;
}

int weft__counter_group(int counter)
{
    return counters_of[counter].group;
}

/* What an error of perf_event_open means for whoever wants to count. */
static const char *reason(int error)
{
    switch (error) {
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV: return "the processor, or the virtual machine around this system, offers none";
    case EACCES: return "not allowed: sudo sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON";
    case EPERM: return "not allowed: the container (seccomp) or its missing CAP_PERFMON forbids perf_event_open";
    case ENOSYS: return "perf_event_open is not there: the kernel was built without, or the container hides it";
    case EMFILE:
    case ENFILE: return "no descriptors left: raise `ulimit -n`, or take fewer threads";
    case EINVAL: return "the processor has no counter left beside the others";
    case EBUSY: return "another program holds it";
    case ENOMEM: return "no memory";
    case EIO: return "it could be opened, but not be read";
    default: return "the system refuses it";
    }
}

const char *weft__counters_absent(const weft__counters *c, int counter)
{
    for (int i = n_slots(c) - 1; i >= 0; i--) {
        if (c->no_memory[i]) return reason(ENOMEM);
        if (counter < WEFT__COUNTERS_HARDWARE && c->slots[i] && c->slots[i]->error[counter])
            return reason(c->slots[i]->error[counter]);
    }
    return NULL;
}

double weft__counters_scaled(double n, double enabled_ns, double running_ns)
{
    if (!(running_ns > 0)) return enabled_ns > 0 ? NAN : n;
    return running_ns < enabled_ns ? n * (enabled_ns / running_ns) : n;
}
