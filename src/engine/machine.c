// SPDX-License-Identifier: Apache-2.0
/* machine.c: the machine as weft.h shows it: weft_machine_describe, weft_machine_measure. Any thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "backend/choice.h"
#include "base/cgroup.h"
#include "base/cpu.h"
#include "base/machine.h"
#include "base/topology.h"
#include "engine/handles.h"

/* Best first. */
static void list_tiers(uint32_t mask, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (int t = WEFT__TIER_COUNT - 1; t >= 0 && n < size; t--)
        if (mask >> t & 1)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", weft__tier_name((weft__tier)t));
}

/* As the CPU provider chooses. */
static void describe_choice(uint32_t *used, weft_machine *m)
{
    const char *wish = getenv("WEFT_CPU");
    weft__cpu_rates rates;
    if ((wish && *wish) || !weft__cpu_known_rates(*used, &rates)) return;
    m->amx_gops = (double)rates.amx * 1e-3;
    m->below_amx_gops = (double)rates.below * 1e-3;
    snprintf(m->below_amx, sizeof m->below_amx, "%s", weft__tier_name(rates.tier_below));
    *used = weft__cpu_without_slower(*used, &rates);
}

static weft_status describe_processor(weft_machine *m, weft_error *err)
{
    uint32_t found, used;
    weft__topology_counts c;
    weft_status st = weft__tier_mask_for(NULL, &found, err);
    if (!st) st = weft__tier_mask_for(getenv("WEFT_CPU"), &used, err);
    if (st) return st;
    describe_choice(&used, m);
    list_tiers(found, m->tiers_found, sizeof m->tiers_found);
    list_tiers(used, m->tiers_used, sizeof m->tiers_used);
    snprintf(m->processor, sizeof m->processor, "%s", weft__machine_processor());
    snprintf(m->tuned_for, sizeof m->tuned_for, "%s", weft__uarch_name(weft__machine_uarch()));
    weft__topology_count(weft__topology_machine(), &c);
    m->n_cpus = c.cpus;
    m->n_cores = c.cores;
    m->n_fast_cores = c.fast_cores;
    m->n_nodes = c.nodes;
    m->n_threads = weft__machine_default_threads();
    m->quota_cpus = weft__cgroup_cpus("");
    const int all = weft__cgroup_cores("", c.cpus);
    /* a second thread on a core helps where there is time for it, and none where others of the team are slower */
    if (c.cpus > c.cores && c.cores == c.fast_cores && all > m->n_threads && all <= WEFT_THREADS_MAX)
        m->n_threads_smt = all;
    return WEFT_OK;
}

static void describe_files(weft_machine *m)
{
    weft__machine_files f;
    struct rlimit lock;
    weft__machine_read("", &f);
    m->memory_bytes = f.total_bytes ? f.total_bytes : weft__machine_memory_bytes();
    m->group_bytes = weft__cgroup_memory("");
    m->available_bytes = weft__machine_memory_available("");
    m->swap_bytes = f.swap_bytes;
    m->hugetlb_bytes = f.huge_bytes;
    if (!getrlimit(RLIMIT_MEMLOCK, &lock))
        m->memlock_bytes = lock.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)lock.rlim_cur;
    m->numa_balancing = f.numa_balancing;
    _Static_assert((int)WEFT_CACHES_MAX == (int)WEFT__MACHINE_CACHES, "as many as are read");
    m->n_caches = f.n_caches;
    for (int i = 0; i < f.n_caches; i++) {
        m->caches[i] =
            (weft_cache){.level = f.caches[i].level, .n_cpus = f.caches[i].n_cpus, .bytes = f.caches[i].bytes};
        memcpy(m->caches[i].type, f.caches[i].type, sizeof m->caches[i].type);
    }
    memcpy(m->huge_pages, f.huge_pages, sizeof m->huge_pages);
    memcpy(m->huge_defrag, f.huge_defrag, sizeof m->huge_defrag);
    memcpy(m->governor, f.governor, sizeof m->governor);
    memcpy(m->perf_paranoid, f.perf_paranoid, sizeof m->perf_paranoid);
}

weft_status weft_machine_describe(weft_machine *out, weft_error *err)
{
    weft_machine own = {.size = sizeof own};
    weft_status st = describe_processor(&own, err);
    if (st) return st;
    describe_files(&own);
    return weft__params_write(WEFT__PARAMS_TYPE(weft_machine), out, &own, err);
}

weft_status weft_machine_measure(int32_t n_threads, int32_t n, weft_peaks *out, weft_error *err)
{
    char options[32];
    weft__provider *p;
    if (n_threads < 0 || n_threads > WEFT_THREADS_MAX || n < 1)
        return weft_fail(err, WEFT_ARGUMENT, "%d measurements on %d threads", n, n_threads);
    snprintf(options, sizeof options, "threads=%d", n_threads);
    weft_status st = weft__provider_open("cpu", options, &p, err);
    for (int32_t i = 0; i < n && !st; i++) {
        out[i] = (weft_peaks){.size = sizeof out[i], .brief = 1};
        st = p->api->measure(p->backend, &out[i], err);
    }
    weft__provider_close(&p);
    return st;
}
