// SPDX-License-Identifier: Apache-2.0
/* cpu.h: what this processor can do, and how much of the machine we may use.
 *
 * Detection reads cpuid and XCR0 (the system must save the registers too) once; WEFT_CPU=ref|neon|avx2|avx512|...
 * masks every tier above the named one: WEFT_CPU=avx2 leaves ref and avx2. Where AMX is left, Linux is asked for its
 * registers, once for the process; refused, it is not used. Read-only after the first call; thread-safe. */
#ifndef WEFT_BASE_CPU_H
#define WEFT_BASE_CPU_H

#include "weft/error.h"

/* Ordered: a later tier may be used only where it is set in the mask; each line of kernels.def names one.
 * X(name, value, text, what it needs) */
#define WEFT__TIER_LIST(X)                                                                                             \
    X(REF, 0, "ref", "nothing")                                                                                        \
    X(NEON, 1, "neon", "AArch64 Advanced SIMD")                                                                        \
    X(AVX2, 2, "avx2", "AVX2, FMA, F16C")                                                                              \
    X(AVX512, 3, "avx512", "AVX-512 F, BW, DQ, VL")                                                                    \
    X(AVX512VNNI, 4, "avx512vnni", "AVX-512 and VNNI")                                                                 \
    X(AVX512BF16, 5, "avx512bf16", "AVX-512, VNNI and BF16")                                                           \
    X(AMX, 6, "amx", "AVX-512, VNNI and AMX INT8, which the system lets the process use")                              \
    X(AMXBF16, 7, "amxbf16", "AMX and AVX-512 BF16, and AMX BF16")

typedef enum weft__tier {
#define WEFT__TIER_ENUM(name, value, text, needs) WEFT__TIER_##name = (value),
    WEFT__TIER_LIST(WEFT__TIER_ENUM)
#undef WEFT__TIER_ENUM
        WEFT__TIER_COUNT
} weft__tier;

/* Microarchitectures on which products are taken otherwise than their tier alone would say. X(name, value, text) */
#define WEFT__UARCH_LIST(X)                                                                                            \
    X(GENERIC, 0, "generic")                                                                                           \
    X(ZEN4, 1, "zen4")

typedef enum weft__uarch {
#define WEFT__UARCH_ENUM(name, value, text) WEFT__UARCH_##name = (value),
    WEFT__UARCH_LIST(WEFT__UARCH_ENUM)
#undef WEFT__UARCH_ENUM
        WEFT__UARCH_COUNT
} weft__uarch;

/* This processor's; WEFT_CPU changes nothing about it. */
weft__uarch weft__machine_uarch(void);
const char *weft__uarch_name(weft__uarch uarch);

/* Bit t set: tier t may run. Bit WEFT__TIER_REF is always set. Applies WEFT_CPU; a name there that is unknown is logged
 * as an error and leaves ref only (call weft__tier_mask_for to refuse it instead). */
uint32_t weft__tier_mask(void);
/* The same for a given value of WEFT_CPU (NULL: no mask); an unknown name fails with WEFT_ARGUMENT and lists the known
 * ones. */
weft_status weft__tier_mask_for(const char *mask, uint32_t *out, weft_error *err);
const char *weft__tier_name(weft__tier tier);

/* The processor's brand ("AMD EPYC 9354"), or the architecture's name. */
const char *weft__machine_processor(void);
/* The most threads of a pool. */
#define WEFT__POOL_MAX_THREADS 1024

/* Threads to use unless the caller says: WEFT_THREADS (1..WEFT__POOL_MAX_THREADS), else one per core within the
 * affinity mask and the cgroup's cpuset, but no more than its CPU quota, rounded up. Where there are performance cores,
 * only these: work is shared evenly, and a slower core would keep them waiting. */
int weft__machine_default_threads(void);
/* Logical CPUs that the calling thread may run on; >= 1. */
int weft__machine_cpus(void);
/* Cores that it may run on, slower ones included, but no more than the cgroup's CPU quota, rounded up; >= 1. Asks the
 * system: ask once. */
int weft__machine_cores(void);
/* Bytes of physical memory, or of the cgroup's limit where that is lower; 0 when unknown. */
uint64_t weft__machine_memory_bytes(void);

#endif
