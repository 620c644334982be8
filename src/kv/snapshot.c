// SPDX-License-Identifier: Apache-2.0
/* snapshot.c: pages to a file's bytes and back (snapshot.h). No state. */
#include "kv/snapshot.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hash.h"
#include "kv/pool.h"

static const char MAGIC[8] = {'w', 'e', 'f', 't', '-', 'k', 'v', '\n'};

WEFT_STATIC_ASSERT(sizeof(weft__kv_snapshot_head) == 88, "the file format");
WEFT_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
                   "files are little-endian, and written as they lie in memory");

weft_status weft__kv_layout_of(const weft__kv_pool *pool, weft__kv_key model, weft__kv_layout *out, weft_error *err)
{
    weft__hash_state h;
    if (pool->n_groups > WEFT__KV_SNAPSHOT_GROUPS)
        return weft_fail(err, WEFT_UNSUPPORTED, "%d KV groups; a file holds at most %d", pool->n_groups,
                         WEFT__KV_SNAPSHOT_GROUPS);
    *out = (weft__kv_layout){.model = model, .n_groups = pool->n_groups};
    weft__hash_begin(&h);
    for (int g = 0; g < pool->n_groups; g++) {
        const weft_kv_group *s = &pool->groups[g].spec;
        uint64_t facts[] = {(uint64_t)s->kind,        (uint64_t)s->window,          (uint64_t)s->n_layers,
                            (uint64_t)s->n_kv_heads,  (uint64_t)s->head_dim_k,      (uint64_t)s->head_dim_v,
                            (uint64_t)s->page_tokens, pool->bindings[g].page_bytes, pool->bindings[g].dtype};
        weft__hash_add(&h, facts, sizeof facts);
        out->group[g] = *s;
        out->page_bytes[g] = pool->bindings[g].page_bytes;
    }
    out->digest = weft__hash_end(&h);
    return WEFT_OK;
}

/* Pages of a group that continuing at n needs. */
static uint64_t pages_of(const weft_kv_group *g, int32_t n)
{
    return (uint64_t)(weft__kv_entries(g, n) - weft__kv_first_entry(g, n));
}

uint64_t weft__kv_snapshot_body_at(int32_t n_tokens)
{
    return (sizeof(weft__kv_snapshot_head) + (uint64_t)n_tokens * sizeof(int32_t) + 63) & ~(uint64_t)63;
}

/* Bytes of the whole, or 0 when that is no number. */
static uint64_t size_of(const weft__kv_layout *layout, int32_t n)
{
    uint64_t sum = weft__kv_snapshot_body_at(n), part;
    for (int g = 0; g < layout->n_groups; g++)
        if (!weft__checked_mul(pages_of(&layout->group[g], n), layout->page_bytes[g], &part) ||
            !weft__checked_add(sum, part, &sum))
            return 0;
    return sum;
}

int32_t weft__kv_snapshot_usable(const weft__kv_layout *layout, int32_t n_tokens, int32_t n)
{
    if (n > n_tokens) n = n_tokens;
    for (int g = 0; g < layout->n_groups; g++)
        if (weft__kv_first_entry(&layout->group[g], n) < weft__kv_first_entry(&layout->group[g], n_tokens)) return 0;
    return n;
}

const weft__kv_snapshot_head *weft__kv_snapshot_head_of(const weft__kv_snapshot *s)
{
    return (const weft__kv_snapshot_head *)s->bytes;
}

const int32_t *weft__kv_snapshot_tokens(const weft__kv_snapshot *s)
{
    return (const int32_t *)(s->bytes + sizeof(weft__kv_snapshot_head));
}

weft__kv_snapshot *weft__kv_snapshot_alloc(uint64_t n_bytes)
{
    weft__kv_snapshot *s = weft__alloc(sizeof *s);
    if (!s) return NULL;
    *s = (weft__kv_snapshot){n_bytes, n_bytes <= PTRDIFF_MAX ? weft__alloc_aligned(64, (size_t)n_bytes) : NULL};
    if (!s->bytes) weft__kv_snapshot_free(&s);
    return s;
}

void weft__kv_snapshot_free(weft__kv_snapshot **p)
{
    if (!*p) return;
    weft__free((*p)->bytes);
    weft__free(*p);
    *p = NULL;
}

weft_status weft__kv_snapshot_begin(const weft__kv_layout *layout, weft__kv_key root, const int32_t *tokens, int32_t n,
                                    const weft__kv_seq *seq, weft__kv_snapshot **out, weft_error *err)
{
    *out = NULL;
    if (n < 1 || n > seq->length || n > WEFT__KV_SNAPSHOT_TOKENS)
        return weft_fail(err, WEFT_ARGUMENT, "a snapshot of %d tokens; the sequence has %d", n, seq->length);
    if (!weft__kv_seq_continues(seq, n))
        return weft_fail(err, WEFT_STATE, "a snapshot of %d tokens: the sliding window before that is gone", n);
    uint64_t size = size_of(layout, n);
    weft__kv_snapshot *s = size ? weft__kv_snapshot_alloc(size) : NULL;
    if (!s) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a snapshot of %d tokens", n);
    weft__kv_snapshot_head head = {.version = WEFT__KV_SNAPSHOT_VERSION,
                                   .n_groups = layout->n_groups,
                                   .model = layout->model,
                                   .root = root,
                                   .layout = layout->digest,
                                   .n_bytes = size,
                                   .n_tokens = n};
    memcpy(head.magic, MAGIC, sizeof MAGIC);
    memset(s->bytes, 0, (size_t)weft__kv_snapshot_body_at(n));
    memcpy(s->bytes, &head, sizeof head);
    memcpy(s->bytes + sizeof head, tokens, (size_t)n * sizeof *tokens);
    *out = s;
    return WEFT_OK;
}

int weft__kv_snapshot_copy(weft__kv_snapshot *s, const weft__kv_layout *layout, const weft__kv_seq *seq, uint64_t *at,
                           uint64_t budget)
{
    int32_t n = weft__kv_snapshot_head_of(s)->n_tokens;
    unsigned char *to = s->bytes + weft__kv_snapshot_body_at(n);
    uint64_t begin = 0; /* of the page, in the body */
    for (int g = 0; g < layout->n_groups; g++) {
        uint64_t page_bytes = layout->page_bytes[g];
        int32_t end = weft__kv_entries(&layout->group[g], n);
        for (int32_t i = weft__kv_first_entry(&layout->group[g], n); i < end; i++, begin += page_bytes) {
            if (*at >= begin + page_bytes) continue;
            uint64_t skip = *at - begin, part = page_bytes - skip < budget ? page_bytes - skip : budget;
            memcpy(to + *at, (const char *)weft__kv_page_data(seq->pool, g, seq->pages[g][i]) + skip, (size_t)part);
            *at += part;
            budget -= part;
            if (skip + part < page_bytes) return 0;
        }
    }
    return 1;
}

weft_status weft__kv_snapshot_load_begin(const weft__kv_snapshot *s, const weft__kv_layout *layout, int32_t n,
                                         weft__kv_seq *seq, weft_error *err)
{
    int32_t n_tokens = weft__kv_snapshot_head_of(s)->n_tokens;
    if (n < 1 || n > seq->n_ctx)
        return weft_fail(err, WEFT_LIMIT, "%d tokens to load into a context of %d; use a larger -c", n, seq->n_ctx);
    if (weft__kv_snapshot_usable(layout, n_tokens, n) != n)
        return weft_fail(err, WEFT_ARGUMENT, "%d tokens to load; the snapshot of %d lacks the window before that", n,
                         n_tokens);
    for (int g = 0; g < layout->n_groups; g++) {
        int32_t first = weft__kv_first_entry(&layout->group[g], n);
        for (int32_t i = 0; i < first; i++) seq->pages[g][i] = -1;
        seq->n_pages[g] = seq->n_gone[g] = first;
    }
    return WEFT_OK;
}

/* A part of one page, of which `skip` bytes are there; the page is taken with the first of them. 0: no free page. */
static int load_page(weft__kv_seq *seq, int g, const unsigned char *from, uint64_t skip, uint64_t part)
{
    if (skip == 0) {
        int32_t page = weft__kv_page_take(seq->pool, g);
        if (page < 0) return 0;
        seq->pages[g][seq->n_pages[g]++] = page;
    }
    memcpy((char *)weft__kv_page_data(seq->pool, g, seq->pages[g][seq->n_pages[g] - 1]) + skip, from + skip,
           (size_t)part);
    return 1;
}

weft_status weft__kv_snapshot_load_some(const weft__kv_snapshot *s, const weft__kv_layout *layout, int32_t n,
                                        weft__kv_seq *seq, uint64_t *at, uint64_t budget, int *complete,
                                        weft_error *err)
{
    int32_t n_tokens = weft__kv_snapshot_head_of(s)->n_tokens;
    const unsigned char *from = s->bytes + weft__kv_snapshot_body_at(n_tokens);
    uint64_t begin = 0; /* of the page, among those wanted */
    *complete = 0;
    for (int g = 0; g < layout->n_groups; g++) {
        uint64_t page_bytes = layout->page_bytes[g];
        int32_t had = weft__kv_first_entry(&layout->group[g], n_tokens), end = weft__kv_entries(&layout->group[g], n);
        for (int32_t i = weft__kv_first_entry(&layout->group[g], n); i < end; i++, begin += page_bytes) {
            if (*at >= begin + page_bytes) continue;
            uint64_t skip = *at - begin, part = page_bytes - skip < budget ? page_bytes - skip : budget;
            if (part == 0) return WEFT_OK;
            if (!load_page(seq, g, from + (uint64_t)(i - had) * page_bytes, skip, part)) {
                seq->length = n;
                weft__kv_seq_trim(seq, 0);
                return weft_fail(err, WEFT_LIMIT, "no free KV page for %d tokens from the disk store", n);
            }
            *at += part;
            budget -= part;
            if (skip + part < page_bytes) return WEFT_OK;
        }
        from += pages_of(&layout->group[g], n_tokens) * page_bytes;
    }
    seq->length = n;
    *complete = 1;
    return WEFT_OK;
}

int32_t weft__kv_snapshot_match(const weft__kv_snapshot *s, const weft__kv_layout *layout, weft__kv_key root,
                                const int32_t *tokens, int32_t n)
{
    const weft__kv_snapshot_head *head = weft__kv_snapshot_head_of(s);
    const int32_t *mine = weft__kv_snapshot_tokens(s);
    int32_t same = 0;
    if (memcmp(&head->root, &root, sizeof root)) return 0;
    while (same < n && same < head->n_tokens && mine[same] == tokens[same]) same++;
    return weft__kv_snapshot_usable(layout, head->n_tokens, same);
}

static uint64_t head_sum(const weft__kv_snapshot_head *head, const void *tokens)
{
    weft__hash_state h;
    weft__hash_begin(&h);
    weft__hash_add(&h, head, offsetof(weft__kv_snapshot_head, head_sum));
    weft__hash_add(&h, tokens, (size_t)weft__kv_snapshot_body_at(head->n_tokens) - sizeof *head);
    return weft__hash_end(&h);
}

static uint64_t body_sum(const weft__kv_snapshot *s)
{
    uint64_t at = weft__kv_snapshot_body_at(weft__kv_snapshot_head_of(s)->n_tokens);
    return weft__hash(s->bytes + at, (size_t)(s->n_bytes - at));
}

void weft__kv_snapshot_seal(weft__kv_snapshot *s)
{
    weft__kv_snapshot_head *head = (weft__kv_snapshot_head *)s->bytes;
    head->body_sum = body_sum(s);
    head->head_sum = head_sum(head, s->bytes + sizeof *head);
}

int weft__kv_layout_is_of(const weft__kv_layout *layout, const weft__kv_snapshot_head *head)
{
    return !memcmp(&head->model, &layout->model, sizeof head->model) && head->layout == layout->digest &&
           head->n_groups == layout->n_groups;
}

weft_status weft__kv_snapshot_check_head(const weft__kv_snapshot_head *head, uint64_t n_bytes,
                                         const weft__kv_layout *layout, weft_error *err)
{
    if (n_bytes < sizeof *head || memcmp(head->magic, MAGIC, sizeof MAGIC))
        return weft_fail(err, WEFT_FORMAT, "not a file of saved pages");
    if (head->version != WEFT__KV_SNAPSHOT_VERSION)
        return weft_fail(err, WEFT_UNSUPPORTED, "saved pages of version %u; this build has %d", head->version,
                         WEFT__KV_SNAPSHOT_VERSION);
    while (layout->next && !weft__kv_layout_is_of(layout, head)) layout = layout->next;
    const int foreign = !weft__kv_layout_is_of(layout, head);
    if (head->n_tokens < 1 || head->n_tokens > WEFT__KV_SNAPSHOT_TOKENS || head->n_bytes != n_bytes ||
        weft__kv_snapshot_body_at(head->n_tokens) > n_bytes || (!foreign && size_of(layout, head->n_tokens) != n_bytes))
        return weft_fail(err, WEFT_FORMAT, "saved pages of %d tokens in %llu bytes: truncated or damaged",
                         head->n_tokens, (unsigned long long)n_bytes);
    return foreign ? weft_fail(err, WEFT_STATE, "saved pages of another model or page layout") : WEFT_OK;
}

weft_status weft__kv_snapshot_check_tokens(const weft__kv_snapshot_head *head, const void *tokens, weft_error *err)
{
    if (head_sum(head, tokens) != head->head_sum)
        return weft_fail(err, WEFT_FORMAT, "saved pages: the head's sum is wrong: damaged");
    return WEFT_OK;
}

weft_status weft__kv_snapshot_check(const weft__kv_snapshot *s, const weft__kv_layout *layout, weft_error *err)
{
    const weft__kv_snapshot_head *head = weft__kv_snapshot_head_of(s);
    weft_status st = weft__kv_snapshot_check_head(head, s->n_bytes, layout, err);
    if (!st) st = weft__kv_snapshot_check_tokens(head, s->bytes + sizeof *head, err);
    if (!st && body_sum(s) != head->body_sum)
        st = weft_fail(err, WEFT_FORMAT, "saved pages: their sum is wrong: damaged");
    return st;
}
