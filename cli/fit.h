// SPDX-License-Identifier: Apache-2.0
/* fit.h: what of a model fits into this machine, and how fast it may be: for weft fit, and for weft pull's choice. One
 * thread.
 *
 * Bytes are those that loading would take, from outlines (weft_model_params.outline). Rates are bounds: what it
 * read and multiplied at best and at worst in some rounds just now, divided by what a step must read and multiply. */
#ifndef WEFT_CLI_FIT_H
#define WEFT_CLI_FIT_H

#include "doctor.h"
#include "weft/weft.h"

#define FIT_FAST 15.0 /* tokens per second that are pleasant to read */
enum { FIT_WHY = 300, FIT_LABEL = 64, FIT_BYTES = 16 };

typedef struct fit_options {
    int32_t n_ctx, threads, depth; /* n_ctx 0: 4096, or the model's; depth: tokens in the context while it generates */
    uint32_t kv_dtype;
    uint64_t memory; /* bytes; 0: what is free now, but for a sixteenth */
    int no_measure;  /* rates are not known */
} fit_options;

/* The machine, as far as it matters. */
typedef struct fit_machine {
    weft_machine machine;
    doctor_measured measured;
    uint64_t room;
} fit_machine;

typedef struct fit_rate {
    double least, most; /* tokens per second; 0: not known */
} fit_rate;

typedef struct fit_case {
    char label[FIT_LABEL]; /* quantization, or a file's name */
    char what[1100];       /* for OWNER/NAME:WHAT; "" */
    uint64_t file_bytes;
    int looked;        /* what follows is known */
    char why[FIT_WHY]; /* else why not; "" */
    weft_model_info info;
    weft_model_bytes bytes;
    weft_engine_bytes engine; /* of one request of n_ctx tokens */
    uint64_t needed;          /* in all, for one request of n_ctx tokens */
    int32_t n_ctx;
    int fits;
    int32_t ctx_most;   /* tokens of one request that fit; 0: none */
    int32_t slots_most; /* requests of n_ctx tokens that fit */
    fit_rate generation, prompt;
} fit_case;

/* Measures; some tenths of a second and 0.5 GB of memory. */
weft_status fit_look_around(const fit_options *o, fit_machine *out, weft_error *err);
/* Fills c from an outline: all but label, what and file_bytes. */
weft_status fit_look(const weft_model *outline, const fit_options *o, const fit_machine *m, fit_case *c,
                     weft_error *err);
/* The same for the file at `path`, of which an outline is opened; what cannot be run is told in c->why. WEFT_NO_MEMORY,
 * WEFT_CANCELLED. */
weft_status fit_look_at(const char *path, const fit_options *o, const fit_machine *m, fit_case *c, weft_error *err);
/* "2.26 GB", "48.1 MB": three digits, in the unit that has them. */
const char *fit_bytes(uint64_t bytes, char text[FIT_BYTES]);
/* Which of n cases to take, and why: the largest that fits and is expected to generate FIT_FAST tokens per second;
 * where none does, the largest that fits and is no larger than Q4_K_M. Never one in floats where there are others. More
 * memory never gives a smaller one. -1: none fits, why says what the smallest needs. */
int fit_choose(const fit_case *cases, int n, const fit_machine *m, char why[FIT_WHY]);
/* Might case i be chosen, by its size alone and the rates of those that were looked at? */
int fit_may_be_chosen(const fit_case *cases, int n, int i, const fit_machine *m);
/* "7.5G", "512M", "8589934592" as bytes; units are binary. 0: it is none. */
uint64_t fit_size(const char *text);

/* The choice for OWNER/NAME, looked for from the largest down: *what ("" where there is nothing to choose, or nothing
 * could be looked at), and why. fit_hub.c */
weft_status fit_choose_of_hub(const char *name, const fit_options *o, const weft_pull_params *params, char *what,
                              size_t capacity, char why[FIT_WHY], weft_error *err);
/* Cases of a repository, n of them in *cases for free(). */
weft_status fit_hub_cases(weft_hub_repo *repo, fit_case **cases, int *n, weft_error *err);

#endif
