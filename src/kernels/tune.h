// SPDX-License-Identifier: Apache-2.0
/* tune.h: what products do otherwise on one microarchitecture than on another, as data (tune.def).
 *
 * Results are the same bits in every row of tune.def: a row decides what is prefetched when, and which of several equal
 * ways is taken. Rows are constants of the compiler: where all microarchitectures have the same value nothing is asked
 * at run time, and where a value decides between pieces of inlined code there is one piece for each distinct value. */
#ifndef WEFT_KERNELS_TUNE_H
#define WEFT_KERNELS_TUNE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "weft/buffer.h"
#include "weft/error.h"

/* Formats whose products have one shape. X(class, what is in it) */
#define WEFT__KERNEL_CLASS_LIST(X)                                                                                     \
    X(NIBBLES, "Q4_0")                                                                                                 \
    X(NIBBLES_MIN, "Q4_1, Q4_K")                                                                                       \
    X(BYTES, "Q8_0")                                                                                                   \
    X(TABLE, "IQ4_NL")                                                                                                 \
    X(TABLE_256, "IQ4_XS")                                                                                             \
    X(FIVES, "Q5_0")                                                                                                   \
    X(FIVES_MIN, "Q5_1, Q5_K")                                                                                         \
    X(BY_16, "Q3_K, Q6_K")                                                                                             \
    X(TWOS, "Q2_K")                                                                                                    \
    X(F32, "F32")                                                                                                      \
    X(F16, "F16")                                                                                                      \
    X(BF16, "BF16")

typedef enum weft__kernel_class {
#define WEFT__KERNEL_CLASS_ENUM(class, formats) WEFT__KERNEL_##class,
    WEFT__KERNEL_CLASS_LIST(WEFT__KERNEL_CLASS_ENUM)
#undef WEFT__KERNEL_CLASS_ENUM
        WEFT__KERNEL_CLASSES
} weft__kernel_class;

/* The class of a type of weights; WEFT__KERNEL_CLASSES: none. */
static inline __attribute__((always_inline)) weft__kernel_class weft__kernel_class_of(uint32_t dtype)
{
    switch (dtype) {
    case WEFT_Q4_0: return WEFT__KERNEL_NIBBLES;
    case WEFT_Q4_1:
    case WEFT_Q4_K: return WEFT__KERNEL_NIBBLES_MIN;
    case WEFT_Q8_0: return WEFT__KERNEL_BYTES;
    case WEFT_IQ4_NL: return WEFT__KERNEL_TABLE;
    case WEFT_IQ4_XS: return WEFT__KERNEL_TABLE_256;
    case WEFT_Q5_0: return WEFT__KERNEL_FIVES;
    case WEFT_Q5_1:
    case WEFT_Q5_K: return WEFT__KERNEL_FIVES_MIN;
    case WEFT_Q3_K:
    case WEFT_Q6_K: return WEFT__KERNEL_BY_16;
    case WEFT_Q2_K: return WEFT__KERNEL_TWOS;
    case WEFT_F32: return WEFT__KERNEL_F32;
    case WEFT_F16: return WEFT__KERNEL_F16;
    case WEFT_BF16: return WEFT__KERNEL_BF16;
    default: return WEFT__KERNEL_CLASSES;
    }
}

/* How the lines of a step are prefetched. */
enum {
    WEFT__PREFETCH_ALL, /* at once */
    /* every second one: where the hardware's prefetching keeps up, ours only has to lead it over the ends of pages */
    WEFT__PREFETCH_SECOND,
    WEFT__PREFETCH_APART /* one by one, between products */
};

/* As a distance: the panels that come next, spread over those at hand. */
#define WEFT__PREFETCH_PANELS (-1)

/* Counts of rows are those from which a way is taken; 0: never. */
typedef struct weft__kernel_tune {
    int bound_rows;               /* up to so many rows memory is the limit */
    int bound_prefetch;           /* WEFT__PREFETCH_ of those rows */
    int bound_distance, distance; /* bytes from what is read to what is prefetched: of those rows, and of more */
    int two_panels;               /* a tile of rows meets two panels at once, */
    int two_panels_rest;          /* and so many rows behind full tiles do */
    int unpacked;                 /* panels are unpacked first, for all rows of a chunk */
    int two_chains;               /* each sum of a pair of panels has two chains of additions */
    int by_addition;              /* scales that are powers of two are added to exponents */
    int page_lead;                /* bytes at the beginning of a page that those rows prefetch; 0: all */
} weft__kernel_tune;

/* All rows. Read with constant indices by kernels, so that no table is left of it. A row that a microarchitecture lacks
 * has distance 0. */
static const weft__kernel_tune weft__kernel_tunes[WEFT__UARCH_COUNT][WEFT__TIER_COUNT][WEFT__KERNEL_CLASSES] = {
#define TUNE(uarch, tier, class, ...) [WEFT__UARCH_##uarch][WEFT__TIER_##tier][WEFT__KERNEL_##class] = {__VA_ARGS__},
#include "kernels/tune.def"
#undef TUNE
};

/* The row of a microarchitecture: its own, or the generic one. */
#define WEFT__KERNEL_TUNE(uarch, tier, class)                                                                          \
    weft__kernel_tunes[weft__kernel_tunes[uarch][tier][class].distance ? (uarch) : WEFT__UARCH_GENERIC][tier][class]

/* Which microarchitecture's rows are in force. Written before kernels run (weft__kernel_tune_set), read by them. */
extern int weft__kernel_uarch __attribute__((visibility("hidden")));

/* The value of a field in force; tier and class are constants. */
#define WEFT__KERNEL_TUNED(tier, class, field)                                                                         \
    (weft__kernel_uarch == WEFT__UARCH_ZEN4 ? WEFT__KERNEL_TUNE(WEFT__UARCH_ZEN4, tier, class).field                   \
                                            : WEFT__KERNEL_TUNE(WEFT__UARCH_GENERIC, tier, class).field)

/* Chooses the rows: of the named microarchitecture; NULL or "": of this processor, once for the process. WEFT_ARGUMENT
 * for a name that there is not, with those that there are. Thread-safe, but no product may run meanwhile where a name
 * is given. */
weft_status weft__kernel_tune_set(const char *name, weft_error *err);
/* The same by WEFT_TUNE; an unknown name is refused. What was set first holds. */
weft_status weft__kernel_tune_init(weft_error *err);
/* The row in force for kernels of a type of weights on a tier; NULL where none is asked. */
const weft__kernel_tune *weft__kernel_tune_of(weft__uarch uarch, weft__tier tier, uint32_t dtype);
/* Does the microarchitecture have a row of its own for them? */
int weft__kernel_tune_differs(weft__uarch uarch, weft__tier tier, uint32_t dtype);
/* The row in words, "prefetch 5632 bytes ahead one by one up to 1 row, ...", cut to n bytes. */
void weft__kernel_tune_describe(const weft__kernel_tune *tune, char *out, size_t n);

#endif
