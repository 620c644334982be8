// SPDX-License-Identifier: Apache-2.0
/* map.c: an open table with linear probing (map.h). */
#include "search/map.h"

#include "base/alloc.h"

enum { FREE = -1, GONE = -2 };

static size_t first_cell(const weft__search_map *m, uint64_t key)
{
    uint64_t h = key * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    return (size_t)h & (m->size - 1);
}

void weft__search_map_free(weft__search_map *m)
{
    weft__free(m->cells);
    *m = (weft__search_map){0};
}

/* Its cell; NULL: it has none. */
static struct weft__search_pair *cell_of(const weft__search_map *m, uint64_t key)
{
    if (!m->size) return NULL;
    for (size_t i = first_cell(m, key); m->cells[i].place != FREE; i = (i + 1) & (m->size - 1))
        if (m->cells[i].key == key && m->cells[i].place >= 0) return &m->cells[i];
    return NULL;
}

int64_t weft__search_map_get(const weft__search_map *m, uint64_t key)
{
    const struct weft__search_pair *cell = cell_of(m, key);
    return cell ? cell->place : WEFT__SEARCH_NOWHERE;
}

static void put_pair(weft__search_map *m, uint64_t key, int64_t place)
{
    size_t i = first_cell(m, key);
    while (m->cells[i].place >= 0) i = (i + 1) & (m->size - 1);
    m->used += m->cells[i].place == FREE;
    m->cells[i] = (struct weft__search_pair){key, place};
    m->n++;
}

int weft__search_map_room(weft__search_map *m)
{
    if (m->size && m->used + 1 <= m->size / 4 * 3) return 1;
    weft__search_map next = {.size = m->size ? m->size : 16};
    while (m->n + 1 > next.size / 2) next.size *= 2;
    if (!(next.cells = weft__alloc_array(next.size, sizeof *next.cells))) return 0;
    for (size_t i = 0; i < next.size; i++) next.cells[i].place = FREE;
    for (size_t i = 0; i < m->size; i++)
        if (m->cells[i].place >= 0) put_pair(&next, m->cells[i].key, m->cells[i].place);
    weft__search_map_free(m);
    *m = next;
    return 1;
}

int weft__search_map_put(weft__search_map *m, uint64_t key, int64_t place)
{
    if (!weft__search_map_room(m)) return 0;
    put_pair(m, key, place);
    return 1;
}

void weft__search_map_set(weft__search_map *m, uint64_t key, int64_t place)
{
    cell_of(m, key)->place = place;
}

void weft__search_map_remove(weft__search_map *m, uint64_t key)
{
    struct weft__search_pair *cell = cell_of(m, key);
    if (!cell) return;
    cell->place = GONE;
    m->n--;
}
