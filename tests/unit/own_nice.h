// SPDX-License-Identifier: Apache-2.0
/* own_nice.h: how far the calling thread gives way to others, for the tests of what runs in the background. */
#ifndef WEFT_TESTS_OWN_NICE_H
#define WEFT_TESTS_OWN_NICE_H

#include <sys/resource.h>
#include <unistd.h>

static inline int own_nice(void)
{
#ifdef __linux__
    return getpriority(PRIO_PROCESS, (id_t)gettid());
#else
    return 0;
#endif
}

#endif
