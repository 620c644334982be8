// SPDX-License-Identifier: Apache-2.0
/* claims.h: what was not tested is no pass. A test that lacks reference material or a machine to run on says so with
 * skip_claim; a program in which a claim was skipped and none failed exits with 77. So that the rest still counts, such
 * a program has two groups: weft_unit(NAME) runs it as it is, weft_unit_material(NAME) with the argument "material".
 * Include it after cmocka.h. */
#ifndef WEFT_TESTS_CLAIMS_H
#define WEFT_TESTS_CLAIMS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int claims_skipped;

#define skip_claim(...)                                                                                                \
    do {                                                                                                               \
        printf("SKIP: " __VA_ARGS__);                                                                                  \
        printf("\n");                                                                                                  \
        claims_skipped++;                                                                                              \
        skip();                                                                                                        \
    } while (0)

/* Models and goldens, which tests/material/make makes. */
#define skip_material(name) skip_claim("no %s; run tests/material/make, or set WEFT_SHARED", name)

/* The program's exit status. */
static inline int claims_status(int n_failed)
{
    return n_failed ? 1 : claims_skipped ? 77 : 0;
}

/* What ends a hang, in milliseconds: what is waited for comes much sooner, but on a slow machine not soon. */
enum { PATIENCE_MS = 120000 };

/* Waits until the condition holds, looking every millisecond, or for PATIENCE_MS. */
#define wait_until(condition)                                                                                          \
    do {                                                                                                               \
        for (int waited = 0; waited < PATIENCE_MS && !(condition); waited++)                                           \
            nanosleep(&(struct timespec){0, 1000000}, NULL);                                                           \
    } while (0)

/* 1 where programs run as fast as they can: no sanitizer, no emulation, optimized. For sizes; no test claims a time
 * (growth.h). */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEFT_EMULATED) || !defined(NDEBUG)
#define CLAIMS_OF_SPEED 0
#else
#define CLAIMS_OF_SPEED 1
#endif

/* How often a claim is repeated (more seeds, models or tokens for the same claim): in full where programs run as they
 * are; with the address sanitizer, which is to see every branch but needs no statistics, seldom; least with the thread
 * sanitizer and under emulation, where everything takes fifty times as long: the one looks at threads, which numeric
 * sweeps have none of, the other at what differs by processor. Constants, for enums too. */
#if defined(__SANITIZE_THREAD__) || defined(WEFT_EMULATED)
#define CLAIMS_REPEATED(in_full, seldom, least) (least)
#elif defined(__SANITIZE_ADDRESS__)
#define CLAIMS_REPEATED(in_full, seldom, least) (seldom)
#else
#define CLAIMS_REPEATED(in_full, seldom, least) (in_full)
#endif

/* 1 in `make test-all`, where sweeps over the same claim are long (WEFT_SWEEPS=1). */
static inline int claims_sweeps(void)
{
    const char *sweeps = getenv("WEFT_SWEEPS");
    return sweeps && sweeps[0] == '1';
}

/* How often a claim is repeated that was found to hold by the usual number already. */
#define CLAIMS_SWEPT(usual, in_full) (claims_sweeps() ? (in_full) : (usual))

/* Where a sweep over random inputs begins: at 0, or, with WEFT_SEED=N, which `make test-all` prints, at another place
 * each time. For claims that are exact: what holds but for a tolerance may be missed by one seed of many. */
static inline uint64_t claims_seed(void)
{
    const char *seed = getenv("WEFT_SEED");
    return seed ? strtoull(seed, NULL, 10) << 24 : 0;
}

/* The synthetic model of claims that any model would do for. Its pages are as large as those of "tiny"; where products
 * are emulated, it takes a quarter as many. */
#ifdef WEFT_EMULATED
#define CLAIMS_MODEL "tiny-128"
#else
#define CLAIMS_MODEL "tiny"
#endif

/* The exit status of a program for whose claims no material of our own can stand; `scripts/test` knows these words. */
static inline int claims_need_reference(const char *what)
{
    printf("SKIP: needs the reference material: %s\n", what);
    return 77;
}

/* 1: the group that needs material is asked for. */
static inline int claims_material(int argc, char **argv)
{
    return argc > 1 && !strcmp(argv[1], "material");
}

#endif
