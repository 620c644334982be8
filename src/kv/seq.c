/* seq.c: one sequence: a block table per group, its length, and which pages a sliding window has let go.
 * Owner: the engine thread. */
#include "base/alloc.h"
#include "kv/pool.h"

struct weft__kv_seq {
    weft__kv_pool *pool;
    int32_t n_ctx, length;
    int32_t **pages;   /* [n_groups][capacity]; -1: dropped */
    int32_t *n_pages;  /* entries in use, dropped ones included */
    int32_t *n_gone;   /* leading entries that were dropped */
    int32_t *capacity; /* entries of each table */
};

weft_status weft__kv_seq_create(weft__kv_pool *pool, int32_t n_ctx, weft__kv_seq **out, weft_error *err)
{
    *out = NULL;
    size_t n_groups = (size_t)pool->n_groups;
    if (n_ctx < 1) return weft_fail(err, WEFT_ARGUMENT, "a context of %d tokens", n_ctx);
    weft__kv_seq *seq = weft__alloc_zero(1, sizeof *seq);
    if (!seq) goto no_memory;
    seq->pool = pool;
    seq->n_ctx = n_ctx;
    seq->pages = weft__alloc_zero(n_groups, sizeof *seq->pages);
    seq->n_pages = weft__alloc_zero(n_groups, sizeof *seq->n_pages);
    seq->n_gone = weft__alloc_zero(n_groups, sizeof *seq->n_gone);
    seq->capacity = weft__alloc_zero(n_groups, sizeof *seq->capacity);
    if (!seq->pages || !seq->n_pages || !seq->n_gone || !seq->capacity) goto no_memory;
    for (size_t g = 0; g < n_groups; g++) {
        int32_t page_tokens = pool->groups[g].spec.page_tokens;
        seq->capacity[g] = (int32_t)(((int64_t)n_ctx + page_tokens - 1) / page_tokens);
        seq->pages[g] = weft__alloc_array((size_t)seq->capacity[g], sizeof **seq->pages);
        if (!seq->pages[g]) goto no_memory;
    }
    *out = seq;
    return WEFT_OK;
no_memory:
    weft__kv_seq_destroy(&seq);
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the block tables of %d tokens", n_ctx);
}

/* Returns the pages from entry `first` on. */
static void release_from(weft__kv_seq *seq, int g, int32_t first)
{
    for (int32_t i = first; i < seq->n_pages[g]; i++)
        if (seq->pages[g][i] >= 0) weft__kv_page_release(seq->pool, g, seq->pages[g][i]);
    if (first < seq->n_pages[g]) seq->n_pages[g] = first;
}

void weft__kv_seq_destroy(weft__kv_seq **p)
{
    weft__kv_seq *seq = p ? *p : NULL;
    if (!seq) return;
    for (int g = 0; seq->pages && g < seq->pool->n_groups; g++) {
        if (seq->n_pages) release_from(seq, g, 0);
        weft__free(seq->pages[g]);
    }
    weft__free(seq->pages);
    weft__free(seq->n_pages);
    weft__free(seq->n_gone);
    weft__free(seq->capacity);
    weft__free(seq);
    *p = NULL;
}

int32_t weft__kv_seq_length(const weft__kv_seq *seq)
{
    return seq->length;
}

/* Lets go of the pages of a window group that no position >= seq->length can see. */
static void drop_window(weft__kv_seq *seq, int g)
{
    const weft_kv_group *spec = &seq->pool->groups[g].spec;
    if (spec->window <= 0) return;
    int32_t oldest = seq->length - spec->window + 1; /* what the next row sees first */
    while (seq->n_gone[g] < seq->n_pages[g] && (int64_t)(seq->n_gone[g] + 1) * spec->page_tokens <= oldest) {
        int32_t *page = &seq->pages[g][seq->n_gone[g]++];
        weft__kv_page_release(seq->pool, g, *page);
        *page = -1;
    }
}

weft_status weft__kv_seq_reserve(weft__kv_seq *seq, int32_t n, weft_error *err)
{
    weft__kv_pool *pool = seq->pool;
    if (n < 0 || n > seq->n_ctx - seq->length)
        return weft_fail(err, WEFT_LIMIT, "the context of %d tokens is full (%d used, %d more asked); use a larger -c", seq->n_ctx,
                         seq->length, n);
    for (int g = 0; g < pool->n_groups; g++) drop_window(seq, g);
    for (int g = 0; g < pool->n_groups; g++) {
        int32_t page_tokens = pool->groups[g].spec.page_tokens;
        int32_t need = (int32_t)(((int64_t)seq->length + n + page_tokens - 1) / page_tokens);
        while (seq->n_pages[g] < need) {
            int32_t page = weft__kv_page_take(pool, g);
            if (page < 0) goto full;
            seq->pages[g][seq->n_pages[g]++] = page;
        }
    }
    return WEFT_OK;
full:
    for (int g = 0; g < pool->n_groups; g++) {
        int32_t page_tokens = pool->groups[g].spec.page_tokens;
        release_from(seq, g, (int32_t)(((int64_t)seq->length + page_tokens - 1) / page_tokens));
    }
    return weft_fail(err, WEFT_LIMIT, "no free KV page for %d more tokens", n);
}

void weft__kv_seq_advance(weft__kv_seq *seq, int32_t n)
{
    seq->length += n;
}

int32_t weft__kv_seq_trim(weft__kv_seq *seq, int32_t n)
{
    weft__kv_pool *pool = seq->pool;
    if (n >= seq->length) return seq->length;
    if (n < 0) n = 0;
    for (int g = 0; g < pool->n_groups; g++) {
        const weft_kv_group *spec = &pool->groups[g].spec;
        int64_t oldest = spec->window > 0 ? (int64_t)n - spec->window + 1 : 0;
        if ((int64_t)seq->n_gone[g] * spec->page_tokens > (oldest > 0 ? oldest : 0)) n = 0;
    }
    for (int g = 0; g < pool->n_groups; g++) {
        int32_t page_tokens = pool->groups[g].spec.page_tokens;
        release_from(seq, g, (int32_t)(((int64_t)n + page_tokens - 1) / page_tokens));
        if (n == 0) seq->n_gone[g] = 0;
    }
    seq->length = n;
    return n;
}

weft_seq_view weft__kv_seq_view(const weft__kv_seq *seq)
{
    return (weft_seq_view){(const int32_t *const *)seq->pages, seq->n_pages, NULL};
}
