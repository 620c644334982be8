// SPDX-License-Identifier: Apache-2.0
/* cpu.c: processor features and the share of the machine that is ours (cpu.h). State: written once, read-only
 * afterwards. */
#include "base/cpu.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/topology.h"

static const char *const tier_names[WEFT__TIER_COUNT] = {
#define TIER_NAME(name, value, text, needs) [value] = text,
    WEFT__TIER_LIST(TIER_NAME)
#undef TIER_NAME
};

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

/* Which register files the system saves at a task switch (XCR0). Valid only when cpuid reports OSXSAVE. */
static uint64_t saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static int all(uint64_t value, uint64_t bits)
{
    return (value & bits) == bits;
}

static uint32_t detect_tiers(void)
{
    uint32_t tiers = 1u << WEFT__TIER_REF, a, b, c, d;
    const uint32_t fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !all(c, fma | osxsave | avx | f16c)) return tiers;
    uint64_t saved = saved_registers();
    if (!all(saved, 0x6)) return tiers; /* XMM and YMM */
    uint32_t n_sub, c7, d7, a71 = 0;
    if (!__get_cpuid_count(7, 0, &n_sub, &b, &c7, &d7) || !all(b, 1u << 5)) return tiers;
    tiers |= 1u << WEFT__TIER_AVX2;
    const uint32_t f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
    if (!all(saved, 0xE6) || !all(b, f | dq | bw | vl)) return tiers; /* also the masks and both parts of ZMM */
    tiers |= 1u << WEFT__TIER_AVX512;
    if (!all(c7, 1u << 11)) return tiers;
    tiers |= 1u << WEFT__TIER_AVX512VNNI;
    if (n_sub >= 1) __get_cpuid_count(7, 1, &a71, &b, &c, &d);
    if (all(a71, 1u << 5)) tiers |= 1u << WEFT__TIER_AVX512BF16;
    const uint32_t amx_bf16 = 1u << 22, amx_tile = 1u << 24, amx_int8 = 1u << 25;
    if (!all(d7, amx_tile | amx_int8) || !all(saved, 0x60000)) return tiers;
    tiers |= 1u << WEFT__TIER_AMX;
    if (all(d7, amx_bf16) && all(a71, 1u << 5)) tiers |= 1u << WEFT__TIER_AMXBF16;
    return tiers;
}

/* A Zen 4 is of AMD's family 0x19, as a Zen 3 is, which has no AVX-512. */
static weft__uarch detect_uarch(uint32_t tiers)
{
    uint32_t a, b, c, d;
    if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx || c != signature_AMD_ecx || d != signature_AMD_edx)
        return WEFT__UARCH_GENERIC;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return WEFT__UARCH_GENERIC;
    const uint32_t base = a >> 8 & 15, family = base == 15 ? base + (a >> 20 & 255) : base;
    return family == 0x19 && (tiers >> WEFT__TIER_AVX512 & 1) ? WEFT__UARCH_ZEN4 : WEFT__UARCH_GENERIC;
}

static void detect_name(char name[64])
{
    uint32_t words[12];
    snprintf(name, 64, "x86");
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t *w = words + 4 * i;
        if (!__get_cpuid(0x80000002u + i, &w[0], &w[1], &w[2], &w[3])) return;
    }
    char brand[sizeof words + 1] = {0};
    memcpy(brand, words, sizeof words);
    const char *s = brand + strspn(brand, " ");
    size_t n = strlen(s);
    while (n > 0 && s[n - 1] == ' ') n--;
    if (n > 0) snprintf(name, 64, "%.*s", (int)n, s);
}

#else

static uint32_t detect_tiers(void)
{
#if defined(__aarch64__)
    return 1u << WEFT__TIER_REF | 1u << WEFT__TIER_NEON; /* Advanced SIMD is part of the base architecture */
#else
    return 1u << WEFT__TIER_REF;
#endif
}

static weft__uarch detect_uarch(uint32_t tiers)
{
    (void)tiers;
    return WEFT__UARCH_GENERIC;
}

static void detect_name(char name[64])
{
#if defined(__aarch64__)
    snprintf(name, 64, "AArch64");
#else
    snprintf(name, 64, "unknown processor");
#endif
}

#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t detected, masked;
static weft__uarch uarch;
static char brand_name[64];

static void detect(void)
{
    detected = detect_tiers();
    uarch = detect_uarch(detected);
    detect_name(brand_name);
}

/* ---- tile registers: Linux (5.16) gives them to processes that ask, as threads that use them need 8 KB more of a
 * signal's stack ---- */

#define TILES (1u << WEFT__TIER_AMX | 1u << WEFT__TIER_AMXBF16)

static pthread_once_t once_tiles = PTHREAD_ONCE_INIT;
static int have_tiles;

static void ask_for_tiles(void)
{
#if defined(__x86_64__) && defined(__linux__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    have_tiles = syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
    if (!have_tiles)
        weft__log(WEFT__LOG_WARN, "AMX is not used: the system refuses its registers: %s", strerror(errno));
#endif
}

/* Of the tiers, those that may run. Nothing is asked for where there is none to ask for. */
static uint32_t granted(uint32_t tiers)
{
    if (!(tiers & TILES)) return tiers;
    pthread_once(&once_tiles, ask_for_tiles);
    return have_tiles ? tiers : tiers & ~TILES;
}

static pthread_once_t once_mask = PTHREAD_ONCE_INIT;

static void apply_mask(void)
{
    weft_error err;
    if (weft__tier_mask_for(getenv("WEFT_CPU"), &masked, &err) == WEFT_OK) return;
    /* A mask is set to exclude something: exclude all that can be excluded. */
    weft__log(WEFT__LOG_ERROR, "%s; using ref only", err.message);
    masked = 1u << WEFT__TIER_REF;
}

uint32_t weft__tier_mask(void)
{
    pthread_once(&once_mask, apply_mask);
    return masked;
}

weft_status weft__tier_mask_for(const char *mask, uint32_t *out, weft_error *err)
{
    pthread_once(&once, detect);
    if (!mask || !*mask) {
        *out = granted(detected);
        return WEFT_OK;
    }
    for (int t = 0; t < WEFT__TIER_COUNT; t++) {
        if (strcasecmp(mask, tier_names[t])) continue;
        *out = granted(detected & ((2u << t) - 1));
        return WEFT_OK;
    }
    char known[256] = "";
    for (int t = 0, n = 0; t < WEFT__TIER_COUNT && n < (int)sizeof known; t++) {
        n += snprintf(known + n, sizeof known - (size_t)n, "%s%s", t ? ", " : "", tier_names[t]);
    }
    return weft_fail(err, WEFT_ARGUMENT, "WEFT_CPU=%s: no such tier; known are %s", mask, known);
}

const char *weft__tier_name(weft__tier tier)
{
    return (unsigned)tier < WEFT__TIER_COUNT ? tier_names[tier] : "unknown";
}

weft__uarch weft__machine_uarch(void)
{
    pthread_once(&once, detect);
    return uarch;
}

const char *weft__uarch_name(weft__uarch which)
{
    static const char *const names[WEFT__UARCH_COUNT] = {
#define UARCH_NAME(name, value, text) [value] = text,
        WEFT__UARCH_LIST(UARCH_NAME)
#undef UARCH_NAME
    };
    return (unsigned)which < WEFT__UARCH_COUNT ? names[which] : "unknown";
}

const char *weft__machine_processor(void)
{
    pthread_once(&once, detect);
    return brand_name;
}

int weft__machine_default_threads(void)
{
    const char *wish = getenv("WEFT_THREADS");
    if (wish && *wish) {
        char *end;
        long n = strtol(wish, &end, 10);
        if (!*end && n >= 1 && n <= WEFT__POOL_MAX_THREADS) return (int)n;
        weft__log(WEFT__LOG_WARN, "WEFT_THREADS=%s is not a number from 1 to %d; ignored", wish,
                  WEFT__POOL_MAX_THREADS);
    }
    weft__topology_counts counts;
    weft__topology_count(weft__topology_machine(), &counts);
    int n = weft__cgroup_cores("", counts.fast_cores);
    return n < WEFT__POOL_MAX_THREADS ? n : WEFT__POOL_MAX_THREADS;
}

int weft__machine_cores(void)
{
    weft__topology_counts counts;
    weft__topology_count(weft__topology_machine(), &counts);
    return weft__cgroup_cores("", counts.cores);
}

int weft__machine_cpus(void)
{
    weft__topology_counts counts;
    weft__topology_count(weft__topology_machine(), &counts);
    return counts.cpus;
}

uint64_t weft__machine_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    uint64_t limit = weft__cgroup_memory("");
    return limit && (!bytes || limit < bytes) ? limit : bytes;
}
