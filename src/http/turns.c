// SPDX-License-Identifier: Apache-2.0
/* turns.c: see turns.h. Kept in the order in which it is taken. */
#include "http/turns.h"

void weft__http_turns_put(weft__http_turns *q, weft__http_turn *turn, const void *client)
{
    weft__http_turn **to = &q->first;
    turn->client = client;
    turn->at = q->now;
    for (const weft__http_turn *t = q->first; t; t = t->next)
        if (t->client == client) turn->at = t->at + 1;
    while (*to && (*to)->at <= turn->at) to = &(*to)->next;
    turn->next = *to;
    *to = turn;
    q->n++;
}

weft__http_turn *weft__http_turns_take_if(weft__http_turns *q, int (*may)(const void *arg, const void *client),
                                          const void *arg)
{
    weft__http_turn **at = &q->first, *t;
    while (*at && may && !may(arg, (*at)->client)) at = &(*at)->next;
    if (!(t = *at)) return NULL;
    *at = t->next;
    if (t->at > q->now) q->now = t->at; /* one that was passed over is of an earlier turn */
    q->n--;
    return t;
}

weft__http_turn *weft__http_turns_take(weft__http_turns *q)
{
    return weft__http_turns_take_if(q, NULL, NULL);
}

void weft__http_turns_remove(weft__http_turns *q, const weft__http_turn *turn)
{
    weft__http_turn **at = &q->first;
    while (*at != turn) at = &(*at)->next;
    *at = turn->next;
    q->n--;
}
