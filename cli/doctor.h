// SPDX-License-Identifier: Apache-2.0
/* doctor.h: what weft doctor found, and what it says of it. One thread. */
#ifndef WEFT_CLI_DOCTOR_H
#define WEFT_CLI_DOCTOR_H

#include "weft/weft.h"

enum { DOCTOR_ROUNDS = 9, DOCTOR_FINDINGS = 24, DOCTOR_TEXT = 240, DOCTOR_COMMAND = 160 };

/* The middle of some rounds, and their ends. 0: not measured. */
typedef struct doctor_range {
    double median, least, most;
} doctor_range;

typedef struct doctor_measured {
    int n_threads; /* 0: nothing was measured */
    doctor_range read_gb_s, int8_gops, bf16_gflops, f32_gflops, l2_int8_gops;
} doctor_measured;

typedef struct doctor_facts {
    weft_machine machine;
    doctor_measured one, two; /* a thread per core; one per logical processor */
    int threads_per_core;     /* that were found better, 1 or 2; 0: not measured */
    const char *cpu_wish;     /* WEFT_CPU; NULL: not set */
    int n_plugins, n_broken;  /* in WEFT_PLUGIN_PATH; of them, that cannot be used */
    char broken[DOCTOR_TEXT]; /* the first of these */
} doctor_facts;

typedef enum doctor_state { DOCTOR_HELPS, DOCTOR_MISSING, DOCTOR_NOTE } doctor_state;

/* One thing that helps, or is missing, and the one command that changes it or shows more. */
typedef struct doctor_finding {
    const char *name; /* "huge-pages" */
    doctor_state state;
    char text[DOCTOR_TEXT], command[DOCTOR_COMMAND]; /* command "": there is nothing to do */
} doctor_finding;

/* In the order in which they matter; returns how many. Of the facts alone. */
int doctor_advise(const doctor_facts *f, doctor_finding out[DOCTOR_FINDINGS]);
/* Do products of quantized weights go to AMX? */
int doctor_amx_used(const weft_machine *m);
/* The ranges of n measurements on n_threads threads. */
void doctor_summarize(const weft_peaks *rounds, int n, int n_threads, doctor_measured *out);
/* 2 where two threads per core multiply faster and read no slower, beyond what rounds differ by; else 1. */
int doctor_choose_threads(const doctor_measured *one, const doctor_measured *two);

#endif
