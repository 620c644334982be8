// SPDX-License-Identifier: Apache-2.0
/* topology.c: cores in the order in which threads get them (topology.h).
 *
 * Invariant: an hwloc topology is only read after it was loaded; what the calling thread may use is asked anew for each
 * count and placement, since affinity masks change. State: this machine, discovered once. */
#include "base/topology.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hwloc.h>

#include "base/alloc.h"
#include "base/log.h"

struct weft__topology {
    hwloc_topology_t hw;    /* NULL: unknown */
    hwloc_bitmap_t allowed; /* of a fake; NULL: ask the system */
    hwloc_obj_type_t core;  /* HWLOC_OBJ_CORE, or PU on machines that do not tell their cores */
};

/* A usable core; `turn` counts those before it of the same kind and node. */
typedef struct core {
    hwloc_obj_t obj;
    weft__topology_place place;
    int n_cpus, turn;
} core;

struct weft__placement {
    const weft__topology *t;
    hwloc_bitmap_t ours;
    int n, placed;
    struct seat {
        weft__topology_place place;
        hwloc_bitmap_t cpus;
    } seat[];
};

/* ---- machines ---- */

static void close_hw(weft__topology *t)
{
    if (t->hw) hwloc_topology_destroy(t->hw);
    hwloc_bitmap_free(t->allowed);
    *t = (weft__topology){0};
}

/* Loads what is there, or the synthetic machine. */
static int topology_load(weft__topology *t, const char *synthetic)
{
    if (hwloc_topology_init(&t->hw)) {
        t->hw = NULL;
        return 0;
    }
#ifdef __linux__
    /* The system's files say everything; this part would visit every CPU to ask it by cpuid. */
    hwloc_topology_set_components(t->hw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
#endif
    if ((synthetic && hwloc_topology_set_synthetic(t->hw, synthetic)) || hwloc_topology_load(t->hw)) {
        close_hw(t);
        return 0;
    }
    t->core = hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    return 1;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static weft__topology machine;

static void discover(void)
{
    if (topology_load(&machine, NULL)) return;
    weft__log(WEFT__LOG_WARN, "the machine's cores cannot be told apart; threads are not bound to them");
}

const weft__topology *weft__topology_machine(void)
{
    pthread_once(&once, discover);
    return &machine;
}

/* A CPU list as a set; NULL when it cannot be read or names nothing. */
static hwloc_bitmap_t parse_list(const char *list)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (set && !hwloc_bitmap_list_sscanf(set, list) && !hwloc_bitmap_iszero(set)) return set;
    hwloc_bitmap_free(set);
    return NULL;
}

static int set_speed(weft__topology *t, const char *list, int speed)
{
    hwloc_bitmap_t set = parse_list(list);
    int ok = set && !hwloc_cpukinds_register(t->hw, set, speed, 0, NULL, 0);
    hwloc_bitmap_free(set);
    return ok;
}

weft_status weft__topology_fake(const weft__topology_fake_machine *fake, weft__topology **out, weft_error *err)
{
    const char *bad = fake->synthetic;
    *out = NULL;
    weft__topology *t = weft__alloc_zero(1, sizeof *t);
    if (!t) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a machine");
    if (!topology_load(t, fake->synthetic)) goto failed;
    bad = fake->fast;
    if (bad && !set_speed(t, bad, 1)) goto failed;
    bad = fake->slow;
    if (bad && !set_speed(t, bad, 0)) goto failed;
    bad = fake->allowed;
    if (bad && !(t->allowed = parse_list(bad))) goto failed;
    *out = t;
    return WEFT_OK;
failed:
    weft__topology_close(&t);
    return weft_fail(err, WEFT_ARGUMENT, "no machine can be made of '%s'", bad);
}

void weft__topology_close(weft__topology **pt)
{
    weft__topology *t = *pt;
    if (!t) return;
    *pt = NULL;
    close_hw(t);
    weft__free(t);
}

/* ---- what is ours ---- */

/* The CPUs that the calling thread may use; NULL when memory runs out. The caller frees it. */
static hwloc_bitmap_t usable(const weft__topology *t)
{
    hwloc_const_bitmap_t all = hwloc_topology_get_allowed_cpuset(t->hw);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!set) return NULL;
    int there = hwloc_topology_is_thissystem(t->hw), known = 1;
    if (t->allowed) hwloc_bitmap_copy(set, t->allowed);
    else known = there && !hwloc_get_cpubind(t->hw, set, HWLOC_CPUBIND_THREAD);
    if (!known) hwloc_bitmap_copy(set, all);
    hwloc_bitmap_and(set, set, all);
    if (hwloc_bitmap_iszero(set)) hwloc_bitmap_copy(set, all); /* the mask changed under us */
    return set;
}

static int node_of(hwloc_obj_t obj)
{
    int node = obj->nodeset ? hwloc_bitmap_first(obj->nodeset) : 0;
    return node < 0 ? 0 : node;
}

/* 0 where nothing is known about the speeds of kinds. */
static int speed_of(const weft__topology *t, hwloc_const_bitmap_t cpus)
{
    int efficiency, kind = hwloc_cpukinds_get_by_cpuset(t->hw, cpus, 0);
    if (kind < 0 || hwloc_cpukinds_get_info(t->hw, (unsigned)kind, NULL, &efficiency, NULL, NULL, 0)) return 0;
    return efficiency < 0 ? 0 : efficiency; /* hwloc: the larger, the faster; -1 where it could not rank them */
}

/* Fills `cores`, which has room for all of the machine's, with those in `ours`; returns their number. */
static int list_cores(const weft__topology *t, hwloc_const_bitmap_t ours, core *cores)
{
    int n = 0;
    hwloc_bitmap_t mine = hwloc_bitmap_alloc();
    for (hwloc_obj_t obj = NULL; mine && (obj = hwloc_get_next_obj_by_type(t->hw, t->core, obj));) {
        hwloc_bitmap_and(mine, obj->cpuset, ours);
        if (hwloc_bitmap_iszero(mine)) continue;
        core *c = &cores[n];
        *c = (core){.obj = obj, .n_cpus = hwloc_bitmap_weight(mine)};
        c->place =
            (weft__topology_place){(int)obj->logical_index, hwloc_bitmap_first(mine), node_of(obj), speed_of(t, mine)};
        for (int i = 0; i < n; i++)
            c->turn += cores[i].place.node == c->place.node && cores[i].place.speed == c->place.speed;
        n++;
    }
    hwloc_bitmap_free(mine);
    return n;
}

static int room_for_cores(const weft__topology *t)
{
    return t->hw ? hwloc_get_nbobjs_by_type(t->hw, t->core) : 0;
}

/* The usable cores of t, and in *ours what list they were taken from. Returns their number; 0 when unknown or out of
 * memory. The caller frees both in any case. */
static int find_cores(const weft__topology *t, core **cores, hwloc_bitmap_t *ours)
{
    *cores = NULL;
    *ours = NULL;
    int room = room_for_cores(t);
    if (room < 1 || !(*ours = usable(t)) || !(*cores = weft__alloc_array((size_t)room, sizeof **cores))) return 0;
    return list_cores(t, *ours, *cores);
}

/* Cannot fail, and so asks the heap for nothing on machines of a usual size. */
void weft__topology_count(const weft__topology *t, weft__topology_counts *out)
{
    enum { USUAL = 256 };
    core few[USUAL], *many = NULL, *cores = few;
    int room = room_for_cores(t), n = 0, top = -1;
    hwloc_bitmap_t ours = NULL;
    if (room > USUAL) cores = many = weft__alloc_array((size_t)room, sizeof *many);
    if (room > 0 && cores && (ours = usable(t))) n = list_cores(t, ours, cores);
    *out = (weft__topology_counts){0};
    for (int i = 0; i < n; i++) {
        const weft__topology_place *p = &cores[i].place;
        out->cpus += cores[i].n_cpus;
        out->nodes += cores[i].turn == 0;
        /* Nodes are counted once per node, not once per kind on it. */
        for (int j = 0; j < i && cores[i].turn == 0; j++) {
            if (cores[j].place.node != p->node) continue;
            out->nodes--;
            break;
        }
        if (p->speed > top) {
            top = p->speed;
            out->fast_cores = 0;
        }
        out->fast_cores += p->speed == top;
    }
    out->cores = n;
    if (n == 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        int all = online > 0 ? (int)online : 1;
        *out = (weft__topology_counts){all, all, all, 1};
    }
    weft__free(many);
    hwloc_bitmap_free(ours);
}

/* ---- placement ---- */

/* Fastest kind first, then one core of each node in turn. */
static int by_choice(const void *a, const void *b)
{
    const core *x = a, *y = b;
    if (x->place.speed != y->place.speed) return y->place.speed - x->place.speed;
    if (x->turn != y->turn) return x->turn - y->turn;
    if (x->place.node != y->place.node) return x->place.node - y->place.node;
    return x->place.core - y->place.core;
}

static int by_number(const void *a, const void *b)
{
    const weft__topology_place *x = &((const struct seat *)a)->place, *y = &((const struct seat *)b)->place;
    if (x->speed != y->speed) return y->speed - x->speed;
    if (x->node != y->node) return x->node - y->node;
    return x->core - y->core;
}

/* Adds to *set the cores that thread `place` may be bound to: its own or, unless `tight`, all like it. */
static int find_cpus(const weft__placement *p, const core *cores, int n_cores, const weft__topology_place *place,
                     int tight, hwloc_bitmap_t set)
{
    if (!set) return 0;
    for (int i = 0; i < n_cores; i++) {
        const weft__topology_place *c = &cores[i].place;
        if (tight ? c->core == place->core : c->speed == place->speed && c->node == place->node)
            hwloc_bitmap_or(set, set, cores[i].obj->cpuset);
    }
    hwloc_bitmap_and(set, set, p->ours);
    return 1;
}

/* Gives each thread a core: round 0 one thread per core, round 1 the cores with a second CPU, ... Returns 0 when the
 * CPUs do not suffice or memory runs out. */
static int take_seats(weft__placement *p, const core *cores, int n_cores)
{
    int taken = 0, fast = 0;
    while (fast < n_cores && cores[fast].place.speed == cores[0].place.speed) fast++;
    int tight = p->n == fast || p->n >= n_cores;
    for (int round = 0, any = 1; taken < p->n && any; round++) {
        any = 0;
        for (int i = 0; i < n_cores && taken < p->n; i++) {
            if (cores[i].n_cpus <= round) continue;
            struct seat *s = &p->seat[taken++];
            s->place = cores[i].place;
            s->cpus = hwloc_bitmap_alloc();
            if (!find_cpus(p, cores, n_cores, &s->place, tight, s->cpus)) return 0;
            any = 1;
        }
    }
    return taken == p->n;
}

weft_status weft__placement_create(const weft__topology *t, int n_threads, weft__placement **out, weft_error *err)
{
    core *cores;
    *out = NULL;
    weft__placement *p = weft__alloc_zero(1, sizeof *p + (size_t)n_threads * sizeof p->seat[0]);
    if (!p) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the places of %d threads", n_threads);
    p->t = t;
    p->n = n_threads;
    int n = find_cores(t, &cores, &p->ours), failed = t->hw && !cores;
    if (n > 0) qsort(cores, (size_t)n, sizeof *cores, by_choice);
    p->placed = take_seats(p, cores, n);
    weft__free(cores);
    if (failed) {
        weft__placement_destroy(&p);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for the places of %d threads", n_threads);
    }
    if (p->placed) qsort(p->seat, (size_t)p->n, sizeof p->seat[0], by_number);
    for (int i = 0; i < p->n && !p->placed; i++) p->seat[i].place = (weft__topology_place){-1, -1, 0, 0};
    *out = p;
    return WEFT_OK;
}

void weft__placement_destroy(weft__placement **pp)
{
    weft__placement *p = *pp;
    if (!p) return;
    *pp = NULL;
    for (int i = 0; i < p->n; i++) hwloc_bitmap_free(p->seat[i].cpus);
    hwloc_bitmap_free(p->ours);
    weft__free(p);
}

int weft__placement_binds(const weft__placement *p)
{
    return p->placed && hwloc_topology_is_thissystem(p->t->hw);
}

const weft__topology_place *weft__placement_of(const weft__placement *p, int thread)
{
    return &p->seat[thread].place;
}

void weft__placement_list(const weft__placement *p, int i, char *out, size_t n)
{
    if (n) *out = 0;
    if (p->placed) hwloc_bitmap_list_snprintf(out, n, p->seat[i].cpus);
}

int weft__placement_bind(const weft__placement *p, int i, pthread_t id)
{
    return p->placed && !hwloc_set_thread_cpubind(p->t->hw, id, p->seat[i].cpus, 0);
}

int weft__placement_loosen(const weft__placement *p, int i, pthread_t id)
{
    if (!p->placed) return 0;
    hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(p->t->hw, (unsigned)p->seat[i].place.node);
    hwloc_bitmap_t set = hwloc_bitmap_dup(p->ours);
    if (!set) return 0;
    if (node) hwloc_bitmap_and(set, set, node->cpuset);
    int ok = !hwloc_set_thread_cpubind(p->t->hw, id, hwloc_bitmap_iszero(set) ? p->ours : set, 0);
    hwloc_bitmap_free(set);
    return ok;
}

void weft__placement_visit(const weft__placement *p, int i)
{
#ifdef __linux__
    int cpu = sched_getcpu();
    if (!p->placed || cpu < 0 || hwloc_bitmap_isset(p->seat[i].cpus, (unsigned)cpu)) return;
    hwloc_bitmap_t before = hwloc_bitmap_alloc();
    if (before && !hwloc_get_cpubind(p->t->hw, before, HWLOC_CPUBIND_THREAD) &&
        !hwloc_set_cpubind(p->t->hw, p->seat[i].cpus, HWLOC_CPUBIND_THREAD))
        (void)hwloc_set_cpubind(p->t->hw, before, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(before);
#else
    (void)p, (void)i;
#endif
}
