// SPDX-License-Identifier: Apache-2.0
/* list.c: expressions that builders collect until they become one (grammar.h). Belongs to the grammar's thread. */
#include "base/alloc.h"
#include "text/grammar/grammar.h"

int weft__gram_push(weft__gram *g, weft__gram_list *list, int32_t node)
{
    if (weft__gram_failed(g)) return 0;
    if (!weft__grow(&list->items, &list->capacity, list->n + 1, sizeof *list->items)) {
        weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
        return 0;
    }
    list->items[list->n++] = node;
    return 1;
}

static int32_t take_from(weft__gram *g, weft__gram_list *list, size_t first,
                         int32_t (*join)(weft__gram *g, const int32_t *items, size_t n))
{
    size_t n = list->n - first;
    list->n = first;
    return weft__gram_failed(g) ? -1 : join(g, n ? list->items + first : NULL, n);
}

int32_t weft__gram_seq_from(weft__gram *g, weft__gram_list *list, size_t first)
{
    return take_from(g, list, first, weft__gram_seq);
}

int32_t weft__gram_alt_from(weft__gram *g, weft__gram_list *list, size_t first)
{
    return take_from(g, list, first, weft__gram_alt);
}
