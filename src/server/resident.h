// SPDX-License-Identifier: Apache-2.0
/* resident.h: bytes of the process that are resident, by owner. Any thread. */
#ifndef WEFT_SERVER_RESIDENT_H
#define WEFT_SERVER_RESIDENT_H

#include <pthread.h>
#include <stdint.h>

enum weft__server_resident_owner {
    WEFT__SERVER_RESIDENT_SCRATCH, /* the first four as mem/owners.h has them */
    WEFT__SERVER_RESIDENT_WEIGHTS,
    WEFT__SERVER_RESIDENT_PAGES,
    WEFT__SERVER_RESIDENT_ADAPTERS,
    WEFT__SERVER_RESIDENT_BUFFERS, /* bodies of requests, and answers that are not read yet */
    WEFT__SERVER_RESIDENT_PROGRAM, /* files: its own, libraries */
    WEFT__SERVER_RESIDENT_REST,    /* the rest of the heap, stacks */
    WEFT__SERVER_RESIDENT_OWNERS
};

typedef struct weft__server_resident {
    pthread_mutex_t lock; /* all below */
    uint64_t looked_ns, bytes[WEFT__SERVER_RESIDENT_OWNERS];
} weft__server_resident;

/* buffers: bytes that are known to be held in them. 0: the system does not tell. Looks once a second at most. */
int weft__server_resident_look(weft__server_resident *r, uint64_t buffers,
                               uint64_t bytes[WEFT__SERVER_RESIDENT_OWNERS]);
const char *weft__server_resident_name(int owner);

#endif
