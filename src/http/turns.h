// SPDX-License-Identifier: Apache-2.0
/* turns.h: a queue whose clients take turns: one of each that waits, then a second of each, whatever was put first;
 * those of one client in their order.
 *
 * A client is told by a pointer, which is only compared; those of NULL are one. A turn is a member of what
 * waits, and in one queue at a time. Putting costs the number of those that wait. Locks are the caller's. */
#ifndef WEFT_HTTP_TURNS_H
#define WEFT_HTTP_TURNS_H

#include <stddef.h>
#include <stdint.h>

typedef struct weft__http_turn {
    struct weft__http_turn *next;
    const void *client;
    uint64_t at; /* which turn of the queue */
} weft__http_turn;

typedef struct weft__http_turns {
    weft__http_turn *first;
    uint64_t now; /* of the one that was taken last */
    int n;
} weft__http_turns;

/* What the turn is a member of. */
#define WEFT__HTTP_TURN_OF(type, member, turn) ((type *)((char *)(turn)-offsetof(type, member)))

void weft__http_turns_put(weft__http_turns *turns, weft__http_turn *turn, const void *client);
/* NULL: nothing waits. */
weft__http_turn *weft__http_turns_take(weft__http_turns *turns);
/* The first of those whose turn may come now; the others keep their places. NULL: there is none. */
weft__http_turn *weft__http_turns_take_if(weft__http_turns *turns, int (*may)(const void *arg, const void *client),
                                          const void *arg);
/* Takes out one that waits. */
void weft__http_turns_remove(weft__http_turns *turns, const weft__http_turn *turn);

#endif
