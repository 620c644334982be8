// SPDX-License-Identifier: Apache-2.0
/* fuse.c: the best of what is offered, and of several lists together (search.h). */
#include <string.h>

#include "base/alloc.h"
#include "search/map.h"
#include "search/search.h"

enum { RANK_0 = 60 /* what the authors found to do in any collection */ };

static int is_better(uint64_t id, double score, const weft__search_hit *than)
{
    return score > than->score || (score == than->score && id < than->id);
}

void weft__search_offer(weft__search_top *top, uint64_t id, double score)
{
    if (!top->most || !(score == score)) return;
    if (top->n == top->most && !is_better(id, score, &top->hits[top->n - 1])) return;
    if (top->filter && !top->filter(top->arg, id)) return;
    size_t low = 0, high = top->n;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (is_better(id, score, &top->hits[mid])) high = mid;
        else low = mid + 1;
    }
    const size_t n = top->n < top->most ? top->n : top->most - 1;
    memmove(&top->hits[low + 1], &top->hits[low], (n - low) * sizeof *top->hits);
    top->hits[low] = (weft__search_hit){id, score};
    top->n = n + 1;
}

/* weights NULL: by rank. */
static weft_status fuse(const weft__search_hit *const *lists, const size_t *n, const double *weights, int n_lists,
                        weft__search_top *top, weft_error *err)
{
    size_t all = 0, n_ids = 0;
    weft__search_map places = {0};
    for (int l = 0; l < n_lists; l++) all += n[l];
    weft__search_hit *sums = weft__alloc_array(all + 1, sizeof *sums);
    int ok = sums != NULL;
    for (int l = 0; l < n_lists && ok; l++)
        for (size_t i = 0; i < n[l] && ok; i++) {
            int64_t at = weft__search_map_get(&places, lists[l][i].id);
            if (at < 0) {
                ok = weft__search_map_put(&places, lists[l][i].id, at = (int64_t)n_ids);
                sums[n_ids++] = (weft__search_hit){lists[l][i].id, 0};
            }
            sums[at].score += weights ? weights[l] * lists[l][i].score : 1.0 / (double)(RANK_0 + i + 1);
        }
    for (size_t i = 0; i < n_ids && ok; i++) weft__search_offer(top, sums[i].id, sums[i].score);
    weft__search_map_free(&places);
    weft__free(sums);
    return ok ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a search");
}

weft_status weft__search_fuse(const weft__search_hit *const *lists, const size_t *n, int n_lists, weft__search_top *top,
                              weft_error *err)
{
    return fuse(lists, n, NULL, n_lists, top, err);
}

weft_status weft__search_sum(const weft__search_hit *const *lists, const size_t *n, const double *weights, int n_lists,
                             weft__search_top *top, weft_error *err)
{
    return fuse(lists, n, weights, n_lists, top, err);
}
