// SPDX-License-Identifier: Apache-2.0
/* adapters_keep.c: adapters go with their model, and come again with it: by name, file and scale, and with them the
 * scales that were set for all (server.h). One thread: the loader's. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "server/models.h"

enum { PAGE = 8 };

weft_status weft__server_adapters_keep(weft__server_model *m, weft_error *err)
{
    weft_engine_adapter page[PAGE];
    int32_t n, first = 0;
    size_t capacity = 0;
    weft__free(m->kept);
    m->kept = NULL;
    m->n_kept = 0;
    do {
        n = weft_engine_adapters(m->engine, first, page, PAGE);
        for (int32_t i = 0; i < n && i < PAGE; i++) {
            if (strlen(page[i].path) == sizeof page[i].path - 1) continue; /* its end alone is known */
            if (!weft__grow(&m->kept, &capacity, m->n_kept + 1, sizeof *m->kept))
                return weft_fail(err, WEFT_NO_MEMORY, "no memory for the adapters of %s", m->name);
            weft__server_kept_adapter *k = &m->kept[m->n_kept++];
            *k = (weft__server_kept_adapter){.index = page[i].index, .scale = page[i].scale};
            snprintf(k->name, sizeof k->name, "%s", page[i].name);
            snprintf(k->path, sizeof k->path, "%s", page[i].path);
        }
        if (n > PAGE) first = page[PAGE - 1].index + 1;
    } while (n > PAGE);
    return WEFT_OK;
}

/* Those of set scales that the adapter of that number had are those of another number now; -1: of none. */
static void renumber(weft__api_adapter_scale *loras, int *n, const int64_t *from, const int64_t *to, size_t n_kept)
{
    int left = 0;
    for (int i = 0; i < *n; i++)
        for (size_t k = 0; k < n_kept; k++)
            if (loras[i].id == from[k] && to[k] >= 0) {
                loras[left] = loras[i];
                loras[left++].id = to[k];
                break;
            }
    *n = left;
}

weft_status weft__server_adapters_restore(weft__server_model *m, weft_error *err)
{
    int64_t *from = weft__alloc_array(m->n_kept ? 2 * m->n_kept : 1, sizeof *from), *to = from + m->n_kept;
    if (!from) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the adapters of %s", m->name);
    for (size_t i = 0; i < m->n_kept; i++) {
        const weft__server_kept_adapter *k = &m->kept[i];
        weft_engine_adapter a = {.size = sizeof a};
        weft_error why = {0};
        from[i] = k->index;
        to[i] = -1;
        if (!weft_engine_adapter_add(m->engine, k->name, k->path, k->scale, WEFT_ADAPTER_LAZY | WEFT_ADAPTER_DISCREET,
                                     &why) &&
            !weft_engine_adapter_find(m->engine, k->name, &a, NULL))
            to[i] = a.index;
    }
    pthread_mutex_lock(&m->loras_lock);
    renumber(m->loras, &m->n_loras, from, to, m->n_kept);
    pthread_mutex_unlock(&m->loras_lock);
    weft__free(from);
    weft__free(m->kept);
    m->kept = NULL;
    m->n_kept = 0;
    return WEFT_OK;
}
