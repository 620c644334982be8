// SPDX-License-Identifier: Apache-2.0
/* tune.c: which rows of tune.def are in force (tune.h). State: written before kernels run, read-only afterwards. */
#include "kernels/tune.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/log.h"

int weft__kernel_uarch; /* GENERIC */

weft_status weft__kernel_tune_set(const char *name, weft_error *err)
{
    if (!name || !*name) {
        weft__kernel_uarch = weft__machine_uarch();
        return WEFT_OK;
    }
    char known[128] = "";
    for (int u = 0, n = 0; u < WEFT__UARCH_COUNT; u++) {
        if (!strcasecmp(name, weft__uarch_name((weft__uarch)u))) {
            weft__kernel_uarch = u;
            return WEFT_OK;
        }
        if (n < (int)sizeof known)
            n += snprintf(known + n, sizeof known - (size_t)n, "%s%s", u ? ", " : "", weft__uarch_name((weft__uarch)u));
    }
    return weft_fail(err, WEFT_ARGUMENT, "WEFT_TUNE=%s: no such row of tune.def; known are %s", name, known);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static weft_status chosen;
static weft_error why_not;

/* Results are the same whatever the rows: where the name is wrong, and the caller can not refuse it, the processor's
 * own are taken. */
static void choose(void)
{
    chosen = weft__kernel_tune_set(getenv("WEFT_TUNE"), &why_not);
    if (chosen) weft__kernel_uarch = weft__machine_uarch();
}

weft_status weft__kernel_tune_init(weft_error *err)
{
    pthread_once(&once, choose);
    return chosen ? weft_fail(err, chosen, "%s", why_not.message) : WEFT_OK;
}

const weft__kernel_tune *weft__kernel_tune_of(weft__uarch uarch, weft__tier tier, uint32_t dtype)
{
    const weft__kernel_class class = weft__kernel_class_of(dtype);
    if (class == WEFT__KERNEL_CLASSES || (unsigned)uarch >= WEFT__UARCH_COUNT || (unsigned)tier >= WEFT__TIER_COUNT)
        return NULL;
    const weft__kernel_tune *tune = &WEFT__KERNEL_TUNE(uarch, tier, class);
    return tune->distance ? tune : NULL;
}

int weft__kernel_tune_differs(weft__uarch uarch, weft__tier tier, uint32_t dtype)
{
    return weft__kernel_tune_of(uarch, tier, dtype) != weft__kernel_tune_of(WEFT__UARCH_GENERIC, tier, dtype);
}

/* Appends "WORDS from COUNT rows" where a way is taken at all. */
static size_t put_from(char *out, size_t n, size_t at, const char *words, int from)
{
    if (!from || at >= n) return at;
    return at + (size_t)snprintf(out + at, n - at, ", %s from %d rows", words, from);
}

void weft__kernel_tune_describe(const weft__kernel_tune *tune, char *out, size_t n)
{
    static const char *const how[] = {"every line", "every second line", "line by line"};
    size_t at =
        (size_t)(tune->distance == WEFT__PREFETCH_PANELS ? snprintf(out, n, "prefetch the next panels")
                                                         : snprintf(out, n, "prefetch %d bytes ahead", tune->distance));
    if (tune->bound_rows && at < n)
        at += (size_t)snprintf(out + at, n - at, ", %d and %s up to %d rows", tune->bound_distance,
                               how[tune->bound_prefetch], tune->bound_rows);
    if (tune->page_lead && at < n)
        at += (size_t)snprintf(out + at, n - at, " (%d bytes of each page)", tune->page_lead);
    at = put_from(out, n, at, "two panels", tune->two_panels);
    at = put_from(out, n, at, "unpacked", tune->unpacked);
    at = put_from(out, n, at, "two chains", tune->two_chains);
    if (tune->by_addition && at < n) snprintf(out + at, n - at, ", scales by addition");
}
