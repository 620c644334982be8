// SPDX-License-Identifier: Apache-2.0
/* map.h: numbers of 64 bits to places, for the indexes of this room (map.c). Zero-initialise. One thread. */
#ifndef WEFT_SEARCH_MAP_H
#define WEFT_SEARCH_MAP_H

#include <stddef.h>
#include <stdint.h>

enum { WEFT__SEARCH_NOWHERE = -1 };

typedef struct weft__search_map {
    struct weft__search_pair {
        uint64_t key;
        int64_t place; /* of a cell that is used: 0.. ; free: -1; of a key that was taken away: -2 */
    } * cells;         /* [size], a power of two, or none */
    size_t size, used, n;
} weft__search_map;

void weft__search_map_free(weft__search_map *m);
/* WEFT__SEARCH_NOWHERE: it is not there. */
int64_t weft__search_map_get(const weft__search_map *m, uint64_t key);
/* 1; 0: no memory. A key that is not there. */
int weft__search_map_put(weft__search_map *m, uint64_t key, int64_t place);
/* Makes room for one more, so that the next put succeeds. 0: no memory. */
int weft__search_map_room(weft__search_map *m);
/* Of a key that is there. */
void weft__search_map_set(weft__search_map *m, uint64_t key, int64_t place);
void weft__search_map_remove(weft__search_map *m, uint64_t key);

#endif
