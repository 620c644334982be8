// SPDX-License-Identifier: Apache-2.0
/* common.h: what the other public headers share: handles, progress, devices. */
#ifndef WEFT_COMMON_H
#define WEFT_COMMON_H

#include "weft/buffer.h"
#include "weft/error.h"
#include "weft/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Handles are opaque. Each is freed by its own ..._close or ..._free, which accepts NULL and a pointer to NULL, and
 * sets the pointer to NULL. A model outlives its sessions and engines; a file outlives nothing (models keep their
 * own). */
typedef struct weft_file weft_file;
typedef struct weft_model weft_model;
typedef struct weft_tokenizer weft_tokenizer;

/* Called now and then while a program is compiled (weights are packed). fraction in [0, 1]. Returning non-zero
 * cancels. */
typedef int (*weft_progress_fn)(void *arg, const char *what, double fraction);

/* A provider of compute, as it describes itself. */
typedef struct weft_backend_info {
    uint32_t size;
    int32_t n_units;       /* threads, compute units */
    char name[64];         /* "cpu" */
    char device[128];      /* "AMD EPYC ..., avx512vnni, avx512bf16" */
    uint64_t memory_bytes; /* that it can allocate; 0 unknown */
    uint32_t domains;      /* bit per weft_domain that it can read weights from */
    uint32_t reserved;
} weft_backend_info;

/* Limits of the hardware, measured when asked. 0: not measured. */
typedef struct weft_peaks {
    uint32_t size;
    /* set by the caller. 0: medians of several rounds, in about a second; 1: one short round, in about 30 ms, for a
     * limit that is measured in turns with what is held against it */
    uint32_t brief;
    double read_gb_s;     /* 10^9 bytes per second, all units reading their own segment */
    double int8_dot_gops; /* 10^9 multiplications and additions per second of the 8-bit dot product */
    double bf16_dot_gflops;
    double f32_fma_gflops;
    /* from 1.6: the same as int8_dot_gops of a product that each unit keeps in its second-level cache: beside a busy
     * neighbour on the other thread of a core it falls further than what registers alone reach */
    double l2_int8_gops;
} weft_peaks;

/* From 1.3: the type in which an adapter's A and B are kept: WEFT_Q8_0 and WEFT_Q4_0 stand for 8 and 4 bits with
 * scales, in an order that is the provider's own; WEFT_BF16; WEFT_F32. AUTO: the fastest that answers as BF16 does;
 * F32 where arithmetic is exact. */
#define WEFT_ADAPTER_AUTO UINT32_MAX

#ifdef __cplusplus
}
#endif
#endif
