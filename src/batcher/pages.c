// SPDX-License-Identifier: Apache-2.0
/* pages.c: pages of the engine's requests: the pool, the prefix tree over it, the keys that name its roots, and all of
 * it as the scheduler sees it. Owner: the engine's thread; batcher.h names the two functions that others call. */
#include <string.h>

#include "base/alloc.h"
#include "base/background.h"
#include "base/check.h"
#include "base/cpu.h"
#include "base/hash.h"
#include "base/machine.h"
#include "batcher/batcher.h"
#include "base/sha256.h"

/* ---- keys ---- */

/* The oldest version whose pages have the same bits as this one's, so that stores outlive an upgrade: where a sum is
 * taken in another order, this version's own number comes here. `make upgrade-check` compares pages bit by bit. */
static const char bits_of[] = "0.1.0";

/* Of all numbers that decide what a page holds, and of what computes them: two models with one key may use each other's
 * pages. */
static void add_shape(weft__hash_state *h, const weft_model *m)
{
    const weft__hparams *hp = &m->hp;
    const weft_attr_rope *r = &hp->rope;
    int32_t counts[] = {hp->n_vocab,        hp->n_layers,    hp->d_model,    hp->d_ff,         hp->n_heads,
                        hp->n_kv_heads,     hp->head_dim_k,  hp->head_dim_v, hp->rope_scaling, hp->n_experts,
                        hp->n_experts_used, hp->d_ff_expert, r->head_dim,    r->n_rot,         r->style,
                        r->n_ctx_orig,      hp->n_ctx};
    float numbers[] = {hp->norm_eps,  hp->attn_softcap, r->base,      r->freq_scale,
                       r->ext_factor, r->attn_factor,   r->beta_fast, r->beta_slow};
    const char *texts[] = {bits_of, hp->arch, m->info.provider, m->info.device};
    weft__hash_add(h, counts, sizeof counts);
    weft__hash_add(h, numbers, sizeof numbers);
    weft__hash_add(h, hp->window_of, (size_t)hp->n_layers * sizeof *hp->window_of);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) weft__hash_add(h, texts[i], strlen(texts[i]) + 1);
}

/* In pieces, so that it may rest in between. */
static void add_bytes(weft__hash_state *h, const void *bytes, uint64_t n)
{
    enum { PIECE = 1 << 18 };
    const char *at = bytes;
    for (uint64_t some; n; at += some, n -= some) {
        some = n < PIECE ? n : PIECE;
        weft__hash_add(h, at, (size_t)some);
        weft__background_did(some);
    }
}

/* Reads every weight. */
static void add_weights(weft__hash_state *h, const weft_model *m)
{
    const weft_graph *g = m->graph;
    const weft_image *image = weft__engine_model_image(m);
    for (int32_t i = 0; i < g->n_weights; i++) {
        const weft_weight *w = &g->weights[i];
        weft__hash_add(h, w->name, strlen(w->name) + 1);
        weft__hash_add(h, &w->dtype, sizeof w->dtype);
        if (w->buffer->data)
            add_bytes(h, (const char *)w->buffer->data + w->offset,
                      w->row_bytes * (uint64_t)w->shape.d[1] * (uint64_t)w->shape.d[2]);
    }
    if (image) add_bytes(h, image->data, image->n_bytes);
    weft__engine_model_drop_file(m);
}

/* Without a store its pages are seen by this engine alone, and the weights need not be read. Pages of one type are
 * never those of another: layouts tell f16 from f32, as in stores of earlier versions, and the key what came since;
 * `apart`: it stands beside others. */
static weft__kv_key model_key(const weft_model *m, uint32_t kv_type, int apart, int with_weights)
{
    weft__hash_state h;
    weft__kv_key key;
    weft__hash_begin(&h);
    add_shape(&h, m);
    if (apart || (kv_type != WEFT_F16 && kv_type != WEFT_F32)) weft__hash_add(&h, &kv_type, sizeof kv_type);
    key.word[0] = weft__hash_end(&h);
    if (with_weights) add_weights(&h, m);
    key.word[1] = weft__hash_end(&h);
    return key;
}

/* tenant NULL: any. */
static weft_status root_of(const weft_engine *e, weft__kv_key root, const char *tenant, const weft__adapt_lease *lease,
                           weft__kv_key *out, weft_error *err)
{
    weft__sha256 h = {0};
    weft_status st;
    /* What it computes, and in which type: a store on the disk may outlive that choice. */
    uint64_t adapters[4] = {0, 0, e->params.adapter_dtype, lease != NULL};
    *out = root;
    if (!tenant && !lease) return WEFT_OK;
    if (lease) memcpy(adapters, weft__adapt_lease_id(lease).word, sizeof weft__adapt_lease_id(lease).word);
    if ((st = weft__sha256_begin(&h, err)) || (st = weft__sha256_add(&h, &root, sizeof root, err)) ||
        (lease && (st = weft__sha256_add(&h, adapters, sizeof adapters, err))) ||
        (tenant && (st = weft__sha256_add(&h, tenant, strlen(tenant), err)))) {
        weft__sha256_free(&h);
        return st;
    }
    weft__sha256_end_words(&h, out->word);
    return WEFT_OK;
}

weft_status weft__batcher_root(const weft_engine *e, const batcher_cache *cache, const char *tenant,
                               const weft__adapt_lease *lease, weft__kv_key *out, weft_error *err)
{
    return root_of(e, cache->root, e->params.isolate_tenants ? tenant : NULL, lease, out, err);
}

weft_status weft__batcher_answers_key(const weft_engine *e, const char *tenant, const weft__adapt_lease *lease,
                                      uint64_t out[2], weft_error *err)
{
    weft__kv_key key;
    weft_status st = root_of(e, e->caches[0].root, tenant, lease, &key, err);
    if (!st) memcpy(out, key.word, sizeof key.word);
    return st;
}

/* ---- types ---- */

int32_t weft__batcher_kv_types(const weft_engine_params *p, uint32_t out[WEFT_KV_TYPES_MAX])
{
    int32_t n = 1;
    out[0] = p->kv_dtype;
    for (int32_t i = 0; i < p->n_kv_types; i++) {
        int32_t k = 0;
        while (k < n && out[k] != p->kv_types[i]) k++;
        if (k == n) out[n++] = p->kv_types[i];
    }
    return n;
}

int32_t weft_engine_kv_types(const weft_engine *e, uint32_t out[WEFT_KV_TYPES_MAX])
{
    for (int32_t i = 0; i < e->n_caches; i++) out[i] = e->caches[i].dtype;
    return e->n_caches;
}

batcher_cache *weft__batcher_cache(weft_engine *e, uint32_t dtype)
{
    if (dtype == WEFT_KV_OF_ENGINE) return &e->caches[0];
    for (int32_t i = 0; i < e->n_caches; i++)
        if (e->caches[i].dtype == dtype) return &e->caches[i];
    return NULL;
}

int64_t weft__batcher_units(const weft_engine *e, const weft__kv_pool *pool, int32_t group, int64_t n_pages)
{
    return e->n_caches == 1 ? n_pages : n_pages * (int64_t)weft__kv_pool_bindings(pool)[group].page_bytes;
}

/* ---- how many pages ---- */

static double token_bytes(const weft_graph *g, uint32_t dtype)
{
    double bytes = 0;
    for (int32_t i = 0; i < g->n_kv_groups; i++)
        if (g->kv_groups[i].window <= 0)
            bytes += (double)weft_kv_layer_at(dtype, &g->kv_groups[i], g->kv_groups[i].n_layers) /
                     g->kv_groups[i].page_tokens;
    return bytes;
}

static int64_t choose_tokens(const weft_model *m, const weft_engine_params *p)
{
    if (p->n_kv_tokens > 0) return p->n_kv_tokens;
    int64_t wanted = (int64_t)p->n_slots * p->n_ctx;
    double bytes = token_bytes(m->graph, p->kv_dtype), room = (double)weft__machine_memory_available("") / 2;
    if (bytes > 0 && room > 0 && bytes * (double)wanted > room) wanted = (int64_t)(room / bytes);
    return wanted < p->n_ctx ? p->n_ctx : wanted;
}

/* A group with a window needs few pages per request; as many again are for what is cached. */
static weft_status count_pages(const weft_graph *g, const weft_engine_params *p, int32_t *n_pages, weft_error *err)
{
    for (int32_t i = 0; i < g->n_kv_groups; i++) {
        const weft_kv_group *group = &g->kv_groups[i];
        int64_t pages = (p->n_kv_tokens + group->page_tokens - 1) / group->page_tokens;
        int64_t enough = (int64_t)weft__kv_pages_needed(group, p->n_ctx, p->step_rows) * p->n_slots * 2;
        if (group->window > 0 && enough < pages) pages = enough;
        if (pages > INT32_MAX)
            return weft_fail(err, WEFT_ARGUMENT, "n_kv_tokens is %lld, which are more pages than can be counted",
                             (long long)p->n_kv_tokens);
        n_pages[i] = pages < 1 ? 1 : (int32_t)pages;
    }
    return WEFT_OK;
}

/* All but a few pages ahead of need (weft__batcher_warm_page) take memory only as they fill: too many of them would end
 * the program, much later. Where it is not known what is free, it goes on. */
static weft_status check_room(const weft_engine *e, const int32_t *n_pages, weft_error *err)
{
    const weft_graph *g = e->model->graph;
    double bytes = 0, room = (double)weft__machine_memory_available("");
    for (int32_t i = 0; i < g->n_kv_groups; i++)
        bytes += (double)weft_kv_layer_at(e->params.kv_dtype, &g->kv_groups[i], g->kv_groups[i].n_layers) * n_pages[i];
    if (room <= 0 || bytes <= room) return WEFT_OK;
    return weft_fail(
        err, WEFT_NO_MEMORY,
        "n_kv_tokens (--kv-tokens) is %lld: their keys and values would take %.1f MB, and %.1f MB of memory are "
        "free; use fewer, or leave it out for at most half of that",
        (long long)e->params.n_kv_tokens, bytes / 1e6, room / 1e6);
}

/* ---- a limit on them ---- */

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int32_t weft__batcher_least_pages(const weft_model *m, const weft_engine_params *p, int32_t group, int32_t n_pages)
{
    const weft_kv_group *g = &m->graph->kv_groups[group];
    const int64_t needed = weft__kv_pages_needed(g, p->n_ctx, p->step_rows);
    uint32_t types[WEFT_KV_TYPES_MAX];
    uint64_t own, other;
    int64_t n = needed;
    const int32_t n_types = weft__batcher_kv_types(p, types);
    for (int32_t i = 1; i < n_types; i++)
        if (weft__kv_page_bytes(g, types[0], &own) && weft__kv_page_bytes(g, types[i], &other) && other > own)
            n = max64(n, (int64_t)(((uint64_t)needed * other + own - 1) / own));
    return n < n_pages ? (int32_t)n : n_pages;
}

/* Of what is beyond the least, all groups get the same part, and those of a draft model. */
int weft__batcher_limit_pages(weft_engine *e)
{
    const weft_graph *g = e->model->graph;
    weft__kv_pool *pool = e->caches[0].pool;
    const weft_kv_binding *pages = weft__kv_pool_bindings(pool);
    int32_t least_of[WEFT__KV_SNAPSHOT_GROUPS];
    uint64_t least = 0, most = 0;
    int evicted = 0;
    if (!e->kv_bytes) return 0;
    for (int32_t i = 0; i < g->n_kv_groups; i++) {
        least_of[i] = weft__batcher_least_pages(e->model, &e->params, i, pages[i].n_pages);
        least += (uint64_t)least_of[i] * pages[i].page_bytes;
        most += (uint64_t)pages[i].n_pages * pages[i].page_bytes;
    }
    if (weft__batcher_asks_model(&e->params)) {
        const weft__engine_drafter_params d = weft__batcher_drafter_params(&e->params);
        least += weft__engine_drafter_page_bytes_least(e->params.draft, &d);
        most += weft__engine_drafter_page_bytes_most(e->params.draft, &d);
    }
    double part = e->kv_bytes <= least  ? 0
                  : e->kv_bytes >= most ? 1
                                        : (double)(e->kv_bytes - least) / (double)(most - least);
    for (int32_t i = 0; i < g->n_kv_groups; i++) {
        const int32_t n = least_of[i];
        evicted |= weft__kv_pool_limit(pool, i, n + (int32_t)(part * (pages[i].n_pages - n))) > 0;
    }
    return evicted | weft__engine_drafter_limit(e->draft.model, part);
}

weft_status weft__batcher_plan_pages(const weft_model *m, weft_engine_params *p, int32_t *n_pages, weft_error *err)
{
    const weft_graph *g = m->graph;
    if (g->n_kv_groups > WEFT__KV_SNAPSHOT_GROUPS)
        return weft_fail(err, WEFT_UNSUPPORTED, "%d KV groups; at most %d", g->n_kv_groups, WEFT__KV_SNAPSHOT_GROUPS);
    p->n_kv_tokens = choose_tokens(m, p);
    return count_pages(g, p, n_pages, err);
}

/* Of each group as many pages as the first type's take the memory of; n_pages are those. */
static weft_status open_cache(weft_engine *e, batcher_cache *c, const int32_t *n_pages, weft_error *err)
{
    const weft_graph *g = e->model->graph;
    const int apart = c != e->caches;
    int32_t own[WEFT__KV_SNAPSHOT_GROUPS];
    weft_status st;
    for (int32_t i = 0; i < g->n_kv_groups; i++) {
        uint64_t first, bytes;
        if (!weft__kv_page_bytes(&g->kv_groups[i], e->caches[0].dtype, &first) ||
            !weft__kv_page_bytes(&g->kv_groups[i], c->dtype, &bytes))
            return weft_fail(err, WEFT_LIMIT, "KV group %d: the size of a page overflows", i);
        const uint64_t n = first * (uint64_t)n_pages[i] / bytes;
        own[i] = n < 1 ? 1 : n > INT32_MAX ? INT32_MAX : (int32_t)n;
    }
    if ((st = weft__kv_pool_create(g->kv_groups, g->n_kv_groups, own, c->dtype, &c->pool, err)) ||
        (st = weft__kv_prefix_create(c->pool, &c->prefix, err)) ||
        (apart && (st = weft__kv_pool_join(c->pool, e->caches[0].pool, err))))
        return st;
    c->root = model_key(e->model, c->dtype, apart, e->params.store_dir != NULL);
    if ((st = weft__kv_layout_of(c->pool, c->root, &c->layout, err))) return st;
    if (apart) c[-1].layout.next = &c->layout;
    return WEFT_OK;
}

/* All pools, for steps with rows of several types. */
static weft_status bind_pools(weft_engine *e, weft_error *err)
{
    const size_t n_groups = (size_t)e->model->graph->n_kv_groups;
    if (e->n_caches == 1 || !n_groups || !weft__plan_takes_pools(e->model->plan)) return WEFT_OK;
    e->pools = weft__alloc_array((size_t)e->n_caches * n_groups, sizeof *e->pools);
    if (!e->pools) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %d types of keys and values", e->n_caches);
    for (int32_t i = 0; i < e->n_caches; i++)
        memcpy(e->pools + (size_t)i * n_groups, weft__kv_pool_bindings(e->caches[i].pool), n_groups * sizeof *e->pools);
    return WEFT_OK;
}

weft_status weft__batcher_open_pages(weft_engine *e, weft_error *err)
{
    const weft_graph *g = e->model->graph;
    int32_t n_pages[WEFT__KV_SNAPSHOT_GROUPS];
    uint32_t types[WEFT_KV_TYPES_MAX];
    weft_status st;
    int asked = e->params.n_kv_tokens > 0;
    if ((st = weft__batcher_plan_pages(e->model, &e->params, n_pages, err)) ||
        (asked && (st = check_room(e, n_pages, err))))
        return st;
    const int32_t n_types = weft__batcher_kv_types(&e->params, types);
    while (e->n_caches < n_types) {
        batcher_cache *c = &e->caches[e->n_caches];
        c->dtype = types[e->n_caches++];
        if ((st = open_cache(e, c, n_pages, err))) return st;
    }
    if ((st = bind_pools(e, err))) return st;
    for (int32_t i = 0; i < g->n_kv_groups; i++)
        if (g->kv_groups[i].page_tokens > e->block) e->block = g->kv_groups[i].page_tokens;
    e->kv_bytes = e->params.kv_bytes;
    (void)weft__batcher_limit_pages(e);
    while (weft__batcher_warm_page(e)) continue;
    return WEFT_OK;
}

int weft__batcher_warm_page(weft_engine *e)
{
    int warmed = 0;
    for (int32_t i = 0; i < e->n_caches && !warmed; i++)
        warmed = weft__kv_pool_warm(e->caches[i].pool, 2 * e->params.n_slots);
    return warmed;
}

void weft__batcher_close_pages(weft_engine *e)
{
    weft__free(e->pools);
    for (int32_t i = 0; i < e->n_caches; i++) weft__kv_prefix_destroy(&e->caches[i].prefix);
    for (int32_t i = 0; i < e->n_caches; i++) weft__kv_pool_destroy(&e->caches[i].pool);
}

/* ---- what the scheduler asks ---- */

int weft__batcher_reads_cache(const batcher_request *r)
{
    return !r->no_cache && !r->embedding && !r->prompt_logprobs; /* the latter two need every position computed */
}

int weft__batcher_feeds_cache(const batcher_request *r)
{
    return !r->no_cache && !r->embedding;
}

static int64_t store_capacity(void *arg, int32_t group)
{
    const weft_engine *e = arg;
    const weft__kv_pool *pool = e->caches[0].pool;
    return weft__batcher_units(e, pool, group, weft__kv_pool_bindings(pool)[group].n_pages);
}

static int64_t store_available(void *arg, int32_t group)
{
    const weft_engine *e = arg;
    const weft__kv_pool *pool = e->caches[0].pool;
    return (e->n_caches == 1 ? weft__kv_pool_available_pages(pool, group)
                             : (int64_t)weft__kv_pool_available_bytes(pool, group)) +
           weft__batcher_restore_pages(e, group);
}

static int32_t pages_needed(const weft_engine *e, int32_t group, int32_t n_tokens)
{
    return weft__kv_pages_needed(&e->model->graph->kv_groups[group], n_tokens, e->params.step_rows);
}

static int64_t store_pages(void *arg, void *user, int32_t group, int32_t n_tokens)
{
    const weft_engine *e = arg;
    const batcher_request *r = user;
    return weft__batcher_units(e, r->cache->pool, group, pages_needed(e, group, n_tokens));
}

/* Those of a window's group; let go are the first ones. */
static int64_t pages_held(const weft__kv_seq *seq, int32_t group)
{
    weft_seq_view view = weft__kv_seq_view(seq);
    int32_t first = view.n_pages[group];
    while (first > 0 && view.pages[group][first - 1] >= 0) first--;
    return view.n_pages[group] - first;
}

static int64_t store_more(void *arg, void *user, int32_t group, int32_t n_tokens)
{
    const weft_engine *e = arg;
    const batcher_request *r = user;
    int32_t n = n_tokens - weft__kv_seq_length(r->seq);
    if (n <= 0) return 0;
    int64_t more = weft__kv_seq_pages_for(r->seq, group, n);
    if (e->model->graph->kv_groups[group].window > 0) {
        /* A window lets pages go as it moves on; one more, for the copy of a shared page. */
        const int64_t least = pages_needed(e, group, n_tokens) - pages_held(r->seq, group) + 1;
        if (least < more) more = least < 0 ? 0 : least;
    }
    return weft__batcher_units(e, r->cache->pool, group, more);
}

int32_t weft__batcher_match(batcher_request *r, int32_t n_max)
{
    weft__kv_prefix *known = r->cache->prefix;
    int32_t had = weft__kv_seq_length(r->seq);
    if (!weft__batcher_reads_cache(r) || (had > 0 && weft__kv_prefix_peek(known, r->root, r->tokens, n_max) <= had))
        return had;
    weft__kv_seq_trim(r->seq, 0);
    return weft__kv_prefix_match(known, r->root, r->tokens, n_max, r->seq, NULL);
}

static int32_t store_match(void *arg, void *user, int32_t n_max)
{
    (void)arg;
    return weft__batcher_match(user, n_max);
}

static weft_status store_reserve(void *arg, void *user, int32_t n_tokens, weft_error *err)
{
    const batcher_request *r = user;
    int32_t n = n_tokens - weft__kv_seq_length(r->seq);
    weft_status st = weft__kv_seq_reserve(r->seq, n, err);
    return st == WEFT_LIMIT && weft__batcher_restore_yields(arg) ? weft__kv_seq_reserve(r->seq, n, err) : st;
}

static int store_release(void *arg, void *user, weft__sched_release how)
{
    batcher_request *r = user;
    (void)arg;
    int32_t n = weft__kv_seq_length(r->seq);
    if (how != WEFT__SCHED_DETACHED && n > 0 && weft__batcher_feeds_cache(r)) {
        n = weft__kv_prefix_insert(r->cache->prefix, r->root, r->tokens, n, r->seq);
        if (how == WEFT__SCHED_FINISHED) r->n_kept = n;
    }
    if (how == WEFT__SCHED_PREEMPTED && n > 0) weft__batcher_swap_out(r);
    if (how == WEFT__SCHED_PREEMPTED) weft__batcher_swap_stop(r);
    if (how == WEFT__SCHED_FINISHED) weft__batcher_swap_forget(r);
    weft__kv_seq_trim(r->seq, 0);
    if (how == WEFT__SCHED_PREEMPTED) weft__batcher_draft_preempt(r);
    return r->parked != NULL; /* and what the tree still has of a preempted one is found when it comes back */
}

static int32_t store_restore(void *arg, void *user, int32_t n_max)
{
    (void)arg;
    return weft__batcher_swap_in(user, n_max);
}

weft__sched_store weft__batcher_store(weft_engine *e)
{
    return (weft__sched_store){.arg = e,
                               .n_groups = e->model->graph->n_kv_groups,
                               .capacity = store_capacity,
                               .available = store_available,
                               .pages = store_pages,
                               .more = store_more,
                               .match = store_match,
                               .reserve = store_reserve,
                               .release = store_release,
                               .restore = store_restore};
}

void weft__batcher_publish(batcher_request *r)
{
    int32_t n = weft__kv_seq_length(r->seq), block = r->engine->block;
    if (n > r->n_prompt) n = r->n_prompt;
    n -= n % block; /* a page in parts would have to be copied before it is written on */
    if (n > 0 && weft__batcher_feeds_cache(r)) weft__kv_prefix_insert(r->cache->prefix, r->root, r->tokens, n, r->seq);
}
