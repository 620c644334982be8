// SPDX-License-Identifier: Apache-2.0
/* doctor_advice.c: what weft doctor makes of what it found (doctor.h). No state. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define GIB (1024.0 * 1024 * 1024)

struct list {
    doctor_finding *items;
    int n;
};

static doctor_finding *add(struct list *l, const char *name, doctor_state state, const char *command)
{
    doctor_finding *f = &l->items[l->n < DOCTOR_FINDINGS ? l->n++ : DOCTOR_FINDINGS - 1];
    *f = (doctor_finding){.name = name, .state = state};
    snprintf(f->command, sizeof f->command, "%s", command);
    return f;
}

static void WEFT_PRINTF(2, 3) say(doctor_finding *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
}

static void advise_tiers(struct list *l, const doctor_facts *f)
{
    const weft_machine *m = &f->machine;
    char best[32];
    snprintf(best, sizeof best, "%.*s", (int)strcspn(m->tiers_found, ","), m->tiers_found);
    if (f->cpu_wish && *f->cpu_wish && strcmp(m->tiers_found, m->tiers_used)) {
        say(add(l, "tiers", DOCTOR_MISSING, "unset WEFT_CPU"),
            "WEFT_CPU=%s leaves kernels out that this processor has: it could use %s", f->cpu_wish, best);
    } else if (!strcmp(best, "ref")) {
        say(add(l, "tiers", DOCTOR_MISSING, "lscpu"),
            "there are no kernels for this processor's instructions: it computes in readable C, slowly (AVX2 and "
            "AVX-512 help; a virtual machine may hide them)");
    } else if (!strcmp(best, "neon")) {
        say(add(l, "tiers", DOCTOR_NOTE, ""), "kernels for neon are of attention alone: products with weights, the "
                                              "most of the work, are readable C here, "
                                              "and slow");
    } else {
        say(add(l, "tiers", DOCTOR_HELPS, ""), "kernels for %s", best);
    }
}

int doctor_amx_used(const weft_machine *m)
{
    for (const char *tier = m->tiers_used; *tier; tier += strspn(tier, ", ")) {
        const size_t n = strcspn(tier, ", ");
        if (n == 3 && !memcmp(tier, "amx", 3)) return 1;
        tier += n;
    }
    return 0;
}

static void advise_amx(struct list *l, const doctor_facts *f)
{
    const weft_machine *m = &f->machine;
    if (m->amx_gops <= 0) return;
    if (doctor_amx_used(m))
        say(add(l, "amx", DOCTOR_HELPS, ""),
            "products of quantized weights go to AMX, with %.0f GOPS per core here; %s would reach %.0f", m->amx_gops,
            m->below_amx, m->below_amx_gops);
    else
        say(add(l, "amx", DOCTOR_NOTE, ""),
            "products of quantized weights go to %s, with %.0f GOPS per core here; AMX would reach %.0f, with the same "
            "results",
            m->below_amx, m->below_amx_gops, m->amx_gops);
}

static void advise_cores(struct list *l, const doctor_facts *f)
{
    const weft_machine *m = &f->machine;
    if (m->quota_cpus > 0 && m->quota_cpus < m->n_cores) {
        say(add(l, "quota", DOCTOR_MISSING, "cat /proc/self/cgroup"),
            "the control group grants the time of %.2f of %d cores, and %d threads share it; what is beyond is taken "
            "away in the middle of steps",
            m->quota_cpus, m->n_cores, m->n_threads);
        if (m->quota_cpus < m->n_threads)
            say(add(l, "quota-threads", DOCTOR_NOTE, "weft bench --synthetic tinyllama-1.1b -t 1,2,3,4"),
                "a quota that is no whole number stops the last thread, and all wait for it: fewer threads may be "
                "faster");
    }
    if (f->threads_per_core == 2)
        say(add(l, "smt", DOCTOR_HELPS, ""),
            "two threads per core multiply faster here: run, chat and serve use %d unless told otherwise",
            m->n_threads_smt);
    else if (f->threads_per_core == 1)
        say(add(l, "smt", DOCTOR_NOTE, ""), "a second thread per core brings nothing here: one is used");
    else if (m->n_threads_smt)
        say(add(l, "smt", DOCTOR_NOTE, "weft doctor"),
            "cores have two threads, and it was not measured whether both help");
    if (m->governor[0] && strcmp(m->governor, "performance"))
        say(add(l, "governor", DOCTOR_MISSING,
                "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
            "the frequency follows '%s': cores may be slow at the start of a step", m->governor);
    if (m->n_nodes > 1 && m->numa_balancing)
        say(add(l, "numa", DOCTOR_MISSING, "sudo sysctl kernel.numa_balancing=0"),
            "the system moves pages between %d NUMA nodes; weights lie on the right one already", m->n_nodes);
}

static void advise_memory(struct list *l, const doctor_facts *f)
{
    const weft_machine *m = &f->machine;
    if (!strcmp(m->huge_pages, "never"))
        say(add(l, "huge-pages", DOCTOR_MISSING, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"),
            "huge pages are off: weights lie in pages of 4 KiB, and each step looks up thousands of them");
    else if (m->huge_pages[0])
        say(add(l, "huge-pages", DOCTOR_HELPS, ""), "huge pages for weights, keys and values (%s)", m->huge_pages);
    else say(add(l, "huge-pages", DOCTOR_NOTE, ""), "the system does not say whether it has huge pages");
    if (m->hugetlb_bytes)
        say(add(l, "hugetlb", DOCTOR_NOTE, "sudo sysctl vm.nr_hugepages=0"),
            "%.1f GiB are reserved as hugetlb pages, which Weft does not use", (double)m->hugetlb_bytes / GIB);
    if (m->group_bytes && (!m->memory_bytes || m->group_bytes < m->memory_bytes))
        say(add(l, "memory-limit", DOCTOR_NOTE, "cat /proc/self/cgroup"),
            "the control group may have %.1f of %.1f GiB of memory", (double)m->group_bytes / GIB,
            (double)m->memory_bytes / GIB);
    if (m->memlock_bytes < m->memory_bytes)
        say(add(l, "memlock", DOCTOR_NOTE, "sudo prlimit --pid $$ --memlock=unlimited:unlimited"),
            "at most %.1f MiB can be kept from being swapped out (RLIMIT_MEMLOCK)%s",
            (double)m->memlock_bytes / (1024 * 1024), m->swap_bytes ? "" : "; there is no swap, so nothing is");
}

static void advise_rest(struct list *l, const doctor_facts *f)
{
    const weft_machine *m = &f->machine;
    if (f->n_broken)
        say(add(l, "plugins", DOCTOR_MISSING, "weft devices"), "%d of %d plugins cannot be used: %.150s", f->n_broken,
            f->n_plugins, f->broken);
    if (m->perf_paranoid[0] && atoi(m->perf_paranoid) > 2)
        say(add(l, "counters", DOCTOR_NOTE, "sudo sysctl kernel.perf_event_paranoid=2"),
            "the processor's counters are closed to users (perf_event_paranoid is %s)", m->perf_paranoid);
}

int doctor_advise(const doctor_facts *f, doctor_finding out[DOCTOR_FINDINGS])
{
    struct list l = {out, 0};
    advise_tiers(&l, f);
    advise_amx(&l, f);
    advise_cores(&l, f);
    advise_memory(&l, f);
    advise_rest(&l, f);
    return l.n;
}

static int doctor_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static doctor_range range_of(const weft_peaks *rounds, int n, size_t offset)
{
    double values[64];
    if (n > 64) n = 64;
    for (int i = 0; i < n; i++) memcpy(&values[i], (const char *)&rounds[i] + offset, sizeof *values);
    qsort(values, (size_t)n, sizeof *values, doctor_compare);
    return (doctor_range){values[n / 2], values[0], values[n - 1]};
}

void doctor_summarize(const weft_peaks *rounds, int n, int n_threads, doctor_measured *out)
{
    *out = (doctor_measured){.n_threads = n_threads,
                             .read_gb_s = range_of(rounds, n, offsetof(weft_peaks, read_gb_s)),
                             .int8_gops = range_of(rounds, n, offsetof(weft_peaks, int8_dot_gops)),
                             .bf16_gflops = range_of(rounds, n, offsetof(weft_peaks, bf16_dot_gflops)),
                             .f32_gflops = range_of(rounds, n, offsetof(weft_peaks, f32_fma_gflops)),
                             .l2_int8_gops = range_of(rounds, n, offsetof(weft_peaks, l2_int8_gops))};
}

int doctor_choose_threads(const doctor_measured *one, const doctor_measured *two)
{
    const double more = 1.05, less = 0.97; /* beyond what the same threads differ by */
    if (!one->n_threads || !two->n_threads) return 1;
    return two->l2_int8_gops.median > more * one->l2_int8_gops.median &&
                   two->read_gb_s.median >= less * one->read_gb_s.median
               ? 2
               : 1;
}
