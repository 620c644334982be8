// SPDX-License-Identifier: Apache-2.0
/* backend_conformance.c: does a provider compute what the graph says? Random small graphs of all ops, run unfused on
 * the CPU's ref tier and, in every way that must not matter, on the provider under test.
 *
 * Against ref: the outputs agree within a bound; with adapters, ref runs weights into which they were merged. Among
 * themselves, bit for bit: fused or not, rows alone or in chunks or mixed with other sequences, all of them wanted or
 * some, 1, 2 or 3 threads. WEFT_TEST_PROVIDER names another provider (a plugin's path), WEFT_TEST_OPTIONS its options:
 * then it is tested, beside the CPU for what it cannot run. Otherwise every tier of this CPU is. */
#include "waist.h"

#include "claims.h"

#define N_GRAPHS CLAIMS_REPEATED(CLAIMS_SWEPT(2, 3), CLAIMS_SWEPT(1, 2), 1)
enum { N_CTX = 56, MAX_ROWS = 3 * N_CTX, VOCAB = 97 };

static const uint32_t float_types[] = {WEFT_F32, WEFT_F16};
static const uint32_t all_types[] = {WEFT_F32,  WEFT_F16,  WEFT_BF16, WEFT_Q4_0,   WEFT_Q4_1,
                                     WEFT_Q5_0, WEFT_Q5_1, WEFT_Q8_0, WEFT_Q2_K,   WEFT_Q3_K,
                                     WEFT_Q4_K, WEFT_Q5_K, WEFT_Q6_K, WEFT_IQ4_NL, WEFT_IQ4_XS};

/* What a graph is made of. With `quantized`, any weight type for the dense linears and the experts; otherwise F32 and
 * F16, for which the bound is tight. With `exact`, F32 alone: adapters can be merged into it. */
typedef struct recipe {
    int quantized, experts, wide, exact;
    uint32_t coded; /* of which type keys and values are; 0: F16 or F32 */
    int32_t d, f, heads, kv_heads, dim_k, dim_v;
} recipe;

static uint32_t type_for(stage *s, const recipe *r)
{
    if (r->exact) return WEFT_F32;
    return r->quantized ? all_types[stage_below(s, 15)] : float_types[stage_below(s, 2)];
}

static weft_tensor_id linear(stage *s, const recipe *r, int layer, weft_tensor_id x, int64_t k, int64_t n,
                             const char *name)
{
    char text[64];
    snprintf(text, sizeof text, "blk.%d.%s", layer, name);
    weft_weight_id w = stage_weight(s, type_for(s, r), k, n, 0, text);
    weft_weight_id bias = stage_below(s, 3) == 0 ? stage_vector(s, n, "bias") : WEFT_NONE;
    return weft__op_linear(s->b, layer, x, w, bias);
}

static weft_tensor_id norm(stage *s, int layer, weft_tensor_id x, int64_t n, int group)
{
    return weft__op_norm(s->b, layer, x, stage_below(s, 5) ? stage_vector(s, n, "norm") : WEFT_NONE, 1e-5f, group);
}

static weft_attr_rope random_rope(stage *s, const recipe *r)
{
    weft_attr_rope a = {.head_dim = r->dim_k,
                        .n_rot = r->dim_k,
                        .style = stage_below(s, 2),
                        .base = 10000,
                        .freq_scale = 1,
                        .attn_factor = 1};
    if (stage_below(s, 3) == 0) a.n_rot = r->dim_k / 2;
    if (stage_below(s, 3) == 0) a.freq_scale = 0.25f;
    if (stage_below(s, 3) == 0) {
        a.ext_factor = 1;
        a.attn_factor = 1.2f;
        a.beta_fast = 32;
        a.beta_slow = 1;
        a.n_ctx_orig = 32;
    }
    return a;
}

static weft_tensor_id attention(stage *s, const recipe *r, int l, weft_tensor_id x, weft_attr_kv kv, int window)
{
    weft_tensor_id q = linear(s, r, l, x, r->d, r->heads * r->dim_k, "q"),
                   k = linear(s, r, l, x, r->d, r->kv_heads * r->dim_k, "k");
    weft_tensor_id v = linear(s, r, l, x, r->d, r->kv_heads * r->dim_v, "v");
    if (stage_below(s, 2)) {
        q = norm(s, l, q, r->dim_k, r->dim_k);
        k = norm(s, l, k, r->dim_k, r->dim_k);
    }
    if (stage_below(s, 8)) {
        weft_attr_rope rope = random_rope(s, r);
        weft_weight_id factors = stage_below(s, 3) ? WEFT_NONE : stage_vector(s, rope.n_rot / 2, "factors");
        rope.n_heads = r->heads;
        q = weft__op_rope(s->b, l, q, &rope, factors);
        rope.n_heads = r->kv_heads;
        k = weft__op_rope(s->b, l, k, &rope, factors);
    }
    weft_attr_attention a = {.kv = kv,
                             .n_heads = r->heads,
                             .n_kv_heads = r->kv_heads,
                             .head_dim_k = r->dim_k,
                             .head_dim_v = r->dim_v,
                             .scale = 0.3f,
                             .softcap = stage_below(s, 2) ? 20.0f : 0,
                             .window = window};
    weft_tensor_id y = weft__op_attention(s->b, l, q, weft__op_kv_write(s->b, l, k, v, kv), &a);
    return linear(s, r, l, y, r->heads * r->dim_v, r->d, "out");
}

static weft_tensor_id ffn(stage *s, const recipe *r, int l, weft_tensor_id x)
{
    weft_tensor_id gate = linear(s, r, l, x, r->d, r->f, "gate"), up = linear(s, r, l, x, r->d, r->f, "up");
    return linear(s, r, l, weft__op_glu(s->b, l, gate, up, stage_below(s, 4)), r->f, r->d, "down");
}

static uint32_t expert_type(stage *s, const recipe *r)
{
    return r->exact ? WEFT_F32 : all_types[stage_below(s, r->experts == 2 ? 15 : 2)];
}

static weft_tensor_id experts(stage *s, const recipe *r, int l, weft_tensor_id x)
{
    weft_attr_moe a = {.n_experts = 6,
                       .n_used = 1 + stage_below(s, 3),
                       .gate = stage_below(s, 2),
                       .normalize = stage_below(s, 2),
                       .scale = 1.5f,
                       .activation = 1 + stage_below(s, 3)};
    /* The router is exact in every tier, so that a near tie is decided alike. */
    weft_weight_id router = stage_weight(s, WEFT_F32, r->d, a.n_experts, 0, "router");
    weft_weight_id gate = stage_weight(s, expert_type(s, r), r->d, r->f, a.n_experts, "gates");
    weft_weight_id up = stage_weight(s, expert_type(s, r), r->d, r->f, a.n_experts, "ups");
    weft_weight_id down = stage_weight(s, expert_type(s, r), r->f, r->d, a.n_experts, "downs");
    weft_tensor_id route = weft__op_moe_route(s->b, l, weft__op_linear(s->b, l, x, router, WEFT_NONE), &a);
    return weft__op_moe_ffn(s->b, l, x, route, gate, up, down, &a);
}

static weft_tensor_id layer(stage *s, const recipe *r, int l, weft_tensor_id x, weft_attr_kv kv, int window)
{
    int post = stage_below(s, 3) == 0;
    weft_tensor_id y = attention(s, r, l, norm(s, l, x, r->d, 0), kv, window);
    if (post) y = norm(s, l, y, r->d, 0);
    x = stage_below(s, 2) ? weft__op_add(s->b, l, x, y) : weft__op_add(s->b, l, y, x);
    weft_tensor_id h = norm(s, l, x, r->d, 0);
    y = r->experts && l == 1 ? experts(s, r, l, h) : ffn(s, r, l, h);
    if (post) y = norm(s, l, y, r->d, 0);
    return weft__op_add(s->b, l, x, y);
}

/* Two layers, one with full attention and one with a window, in random order. */
static void random_graph(stage *s, uint64_t seed, const recipe *kind)
{
    stage_open(s, seed);
    recipe r = *kind;
    r.d = 256;
    r.f = r.quantized || r.experts == 2 ? 256 : 80;
    r.kv_heads = 1 + stage_below(s, 3);
    r.heads = r.kv_heads * (1 + stage_below(s, 4));
    r.dim_k = 32;
    r.dim_v = stage_below(s, 2) ? 32 : 16;
    if (r.quantized) { /* k of the output linear must be whole blocks of every type */
        r.kv_heads = 2;
        r.heads = 8;
        r.dim_v = 32;
    }
    weft_kv_group full = {WEFT_KV_FULL, 0, 1, r.kv_heads, r.dim_k, r.dim_v, 16, 0}, some = full;
    some.kind = WEFT_KV_WINDOW;
    some.window = 20;
    some.page_tokens = 32;
    int32_t groups[2] = {weft__builder_kv_group(s->b, &full), weft__builder_kv_group(s->b, &some)};
    int first = stage_below(s, 2);
    weft_tensor_id x = weft__op_embed(s->b, stage_weight(s, type_for(s, &r), r.d, VOCAB, 0, "token_embd"),
                                      stage_below(s, 2) ? 1.0f : 30.0f);
    for (int l = 0; l < 2; l++) {
        int g = l ? 1 - first : first;
        x = layer(s, &r, l, x, (weft_attr_kv){groups[g], 0}, g == 1 ? some.window : 0);
    }
    x = norm(s, -1, weft__op_pick_rows(s->b, x), r.d, 0);
    weft__builder_output(s->b, weft__op_softcap(s->b, -1, linear(s, &r, -1, x, r.d, VOCAB, "head"), 10));
    stage_finish(s);
}

/* Rows so wide that a step of all sequences is cut into several chunks, also those that go to one of two experts. */
static void wide_graph(stage *s, uint64_t seed, int exact)
{
    enum { WIDE = 4096 };
    recipe r = {.d = WIDE, .f = 48, .exact = exact};
    stage_open(s, seed);
    weft_tensor_id x = weft__op_embed(s->b, stage_weight(s, WEFT_F32, WIDE, VOCAB, 0, "token_embd"), 10);
    weft_tensor_id h = norm(s, 0, x, WIDE, 0), y = ffn(s, &r, 0, h);
    weft_attr_moe a = {.n_experts = 2, .n_used = 1, .normalize = 1, .scale = 1, .activation = WEFT_ACT_SILU};
    weft_tensor_id logits = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_F32, WIDE, 2, 0, "router"), WEFT_NONE);
    weft_weight_id w[3] = {stage_weight(s, type_for(s, &r), WIDE, 32, 2, "gates"),
                           stage_weight(s, type_for(s, &r), WIDE, 32, 2, "ups"),
                           stage_weight(s, type_for(s, &r), 32, WIDE, 2, "downs")};
    y = weft__op_add(s->b, 0, y,
                     weft__op_moe_ffn(s->b, 0, h, weft__op_moe_route(s->b, 0, logits, &a), w[0], w[1], w[2], &a));
    x = weft__op_pick_rows(s->b, weft__op_add(s->b, 0, x, y));
    weft__builder_output(s->b, linear(s, &r, -1, x, WIDE, VOCAB, "head"));
    stage_finish(s);
}

/* ---- adapters ---- */

enum { N_ADAPTERS = 2 };

/* Adapters that change about two weights in three, of many ranks, with magnitudes here and there; which sequence has
 * which. */
typedef struct weave {
    weft_lora *lora[N_ADAPTERS]; /* [n_weights] */
    int32_t n_weights, of[STAGE_SEQS];
    uint32_t dtype;
} weave;

static float *noise(stage *s, int64_t n, double mean, double deviation)
{
    float *x = weft__alloc_array((size_t)n, sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = (float)(mean + deviation * weft__rng_normal(&s->rng));
    return x;
}

/* Is it multiplied by, or an embedding? */
static int is_matrix(const weft_graph *g, weft_weight_id w)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const weft_node *n = &g->nodes[i];
        for (int j = 0; j < n->n_w && (n->op == WEFT_OP_LINEAR || n->op == WEFT_OP_MOE_FFN || n->op == WEFT_OP_EMBED);
             j++)
            if (n->w[j] == w) return 1;
    }
    return 0;
}

/* How many gains the weight may have: an embedding's are of its columns; 0: it is multiplied by as well. */
static int64_t n_gains(const weft_graph *g, weft_weight_id w)
{
    int embeds = 0, multiplies = 0;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int j = 0; j < g->nodes[i].n_w; j++)
            if (g->nodes[i].w[j] == w) *(g->nodes[i].op == WEFT_OP_EMBED ? &embeds : &multiplies) = 1;
    const int64_t *d = g->weights[w].shape.d;
    return embeds && multiplies ? 0 : embeds ? d[0] : d[1] * d[2];
}

static void weave_open(weave *v, stage *s, uint32_t dtype)
{
    static const int32_t ranks[] = {1, 3, 8, 16, 20, 37}, of[3][STAGE_SEQS] = {{-1, 0, 1}, {1, 0, 1}, {0, -1, 0}};
    *v = (weave){.n_weights = s->g->n_weights, .dtype = dtype};
    memcpy(v->of, of[stage_below(s, 3)], sizeof v->of);
    for (int a = 0; a < N_ADAPTERS; a++) {
        v->lora[a] = weft__alloc_zero((size_t)v->n_weights, sizeof(weft_lora));
        for (int32_t i = 0; i < v->n_weights; i++) {
            const weft_weight *w = &s->g->weights[i];
            int64_t k = w->shape.d[0], n = w->shape.d[1], e = w->shape.d[2];
            weft_lora *l = &v->lora[a][i];
            const int all = a == N_ADAPTERS - 1; /* it has gains wherever there may be some */
            /* A router stays, so that a near tie is decided alike. */
            if (!is_matrix(s->g, i) || !strcmp(w->name, "router.weight") || (!all && stage_below(s, 3) == 0)) continue;
            if (n_gains(s->g, i) && (all || stage_below(s, 3) == 0)) l->gain = noise(s, n_gains(s->g, i), 1, 0.1);
            if (l->gain && stage_below(s, 3) == 0) continue;
            *l = (weft_lora){.rank = ranks[stage_below(s, 6)], .dtype = WEFT_F32, .scale = 0.5f, .gain = l->gain};
            l->a = noise(s, e * l->rank * k, 0, 0.1);
            l->b = noise(s, e * n * l->rank, 0, 0.02);
        }
    }
}

static void weave_close(weave *v)
{
    for (int a = 0; a < N_ADAPTERS; a++) {
        for (int32_t i = 0; i < v->n_weights; i++) {
            weft__free((void *)v->lora[a][i].a);
            weft__free((void *)v->lora[a][i].b);
            weft__free((void *)v->lora[a][i].gain);
        }
        weft__free(v->lora[a]);
    }
}

static void store_weave(store *t, const weave *v)
{
    for (int a = 0; v && a < N_ADAPTERS; a++) store_adapter(t, v->lora[a], v->dtype);
    if (v) memcpy(t->adapter_of, v->of, sizeof v->of);
}

static int is_embedding(const weft_graph *g, weft_weight_id w)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].op == WEFT_OP_EMBED && g->nodes[i].w[0] == w) return 1;
    return 0;
}

/* Puts what the adapter changes into the bytes of a weight of F32; of_columns: its gains are. */
static void merge_weight(const weft_weight *w, const weft_lora *l, int of_columns)
{
    int64_t k = w->shape.d[0], n = w->shape.d[1] * w->shape.d[2], per = w->shape.d[1];
    for (int64_t r = 0; r < n; r++) {
        uint8_t *row = (uint8_t *)w->buffer->data + w->offset + (uint64_t)r * w->row_bytes;
        const float *b = l->rank ? (const float *)l->b + r * l->rank : NULL,
                    *a = l->rank ? (const float *)l->a + r / per * l->rank * k : NULL;
        for (int64_t i = 0; i < k; i++) {
            float x;
            memcpy(&x, row + 4 * i, 4);
            double sum = (l->gain ? l->gain[of_columns ? i : r] : 1.0) * x;
            for (int32_t j = 0; j < l->rank; j++) sum += (double)l->scale * b[j] * a[j * k + i];
            x = (float)sum;
            memcpy(row + 4 * i, &x, 4);
        }
    }
}

/* ---- ways of running ---- */

enum { OUT = STAGE_SEQS * N_CTX * VOCAB };
static const int32_t lengths[STAGE_SEQS] = {N_CTX, 27, 5};

/* Every sequence in one step of its own, or all in one. */
static void run_whole(store *t, int together, float *out)
{
    span spans[STAGE_SEQS];
    for (int s = 0; s < STAGE_SEQS; s++) {
        spans[s] = (span){s, 0, lengths[s]};
        if (!together) store_step(t, &spans[s], 1, VOCAB, N_CTX, out);
    }
    if (together) store_step(t, spans, STAGE_SEQS, VOCAB, N_CTX, out);
}

/* Random chunks of random sequences, several of them to a step, until all are done; most: the largest chunk. */
static void run_chunks(store *t, weft__rng *rng, int most, float *out)
{
    int32_t done[STAGE_SEQS] = {0};
    for (;;) {
        span spans[STAGE_SEQS];
        int n = 0, left = 0;
        for (int s = 0; s < STAGE_SEQS; s++) {
            int32_t rest = lengths[s] - done[s], take = 1 + (int32_t)weft__rng_below(rng, (uint64_t)most);
            left += rest;
            if (rest == 0 || weft__rng_below(rng, 4) == 0) continue;
            if (take > rest) take = rest;
            spans[n++] = (span){s, done[s], take};
            done[s] += take;
        }
        if (left == 0) return;
        if (n > 0) store_step(t, spans, n, VOCAB, N_CTX, out);
    }
}

/* As run_chunks, with some rows wanted, whose outputs alone are overwritten. */
static void run_some(store *t, weft__rng *rng, int most, float *out)
{
    for (int s = 0; s < STAGE_SEQS; s++)
        for (int32_t i = 0; i < lengths[s]; i++)
            if (wanted_at(s, i)) memset(out + ((int64_t)s * N_CTX + i) * VOCAB, 0, VOCAB * sizeof *out);
    t->wants_some = 1;
    run_chunks(t, rng, most, out);
    t->wants_some = 0;
}

static void same_bits(const float *a, const float *b, const char *how, const char *what, uint64_t seed)
{
    if (memcmp(a, b, OUT * sizeof *a))
        fail_msg("graph %llu: %s %s change the bits", (unsigned long long)seed, how, what);
}

/* All the ways on one provider; `first` receives the outputs of the first one. */
static void run_all_ways(const stage *s, const weave *v, const char *provider, const char *options, uint32_t kv_dtype,
                         uint64_t seed, float *first)
{
    float *out = weft__alloc_zero(OUT, sizeof *out);
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    memset(first, 0, OUT * sizeof *first);
    static const struct {
        int threads, fused, most; /* most: the largest chunk */
    } ways[] = {{1, 0, 24}, {1, 1, 24}, {2, 1, 1}, {3, 0, 24}, {3, 1, 24}};
    /* Threads, chunks and fusing are the same for every tier: beside the first way, lower ones take some, by graph. */
    const int top =
        !options[0] || !strcmp(options + 4, weft__tier_name((weft__tier)(31 - __builtin_clz(weft__tier_mask()))));
    const size_t n_ways = sizeof ways / sizeof ways[0], few = n_ways - 1;
    const size_t every = top                          ? CLAIMS_REPEATED(1, 2, few)
                         : strcmp(options, "cpu=ref") ? CLAIMS_REPEATED(2, 3, few)
                                                      : few;
    for (size_t i = 0; i < n_ways; i++) {
        char text[96];
        store t;
        if (i > 0 && (i - 1 + (size_t)seed) % every) continue;
        snprintf(text, sizeof text, "threads=%d%s%s", ways[i].threads, options[0] ? "," : "", options);
        store_open(&t, s->g, provider, text, ways[i].fused, kv_dtype, N_CTX, MAX_ROWS);
        store_weave(&t, v);
        if (i == 0) run_whole(&t, 0, first);
        snprintf(text, sizeof text, "%s %d threads,", ways[i].fused ? "fusing," : "not fusing,", ways[i].threads);
        memset(out, 0, OUT * sizeof *out);
        run_whole(&t, 1, out);
        same_bits(out, first, text, "sequences together", seed);
        memset(out, 0, OUT * sizeof *out);
        run_chunks(&t, &rng, ways[i].most, out);
        same_bits(out, first, text, ways[i].most == 1 ? "rows alone" : "chunks", seed);
        run_some(&t, &rng, ways[i].most, out);
        same_bits(out, first, text, "rows that are not wanted", seed);
        store_close(&t);
    }
    weft__free(out);
}

/* One graph on one provider against `expected`. */
static void check_provider(const stage *s, const weave *v, uint64_t seed, uint32_t kv_type, const char *provider,
                           const char *options, const float *expected, double bound)
{
    float *got = weft__alloc_zero(OUT, sizeof *got);
    run_all_ways(s, v, provider, options, kv_type, seed, got);
    double error = nmse(got, expected, OUT);
    if (!(error <= bound))
        fail_msg("graph %llu on %s (%s): NMSE %g, bound %g", (unsigned long long)seed, provider, options, error, bound);
    print_message("  graph %llu on %s (%s): NMSE %.2g\n", (unsigned long long)seed, provider, options, error);
    weft__free(got);
}

/* Has this machine the tier, and is it looked at? Not `all`: the best one alone. The sanitizers look into the kernels
 * of ref and AVX2, but for `make test-all` into no others. */
static int is_tried(int tier, int all)
{
    if (!(weft__tier_mask() >> tier & 1)) return 0;
    if (!all) return tier == 31 - __builtin_clz(weft__tier_mask());
    return CLAIMS_REPEATED(1, 0, 0) || claims_sweeps() || tier <= WEFT__TIER_AVX2;
}

/* The provider under test, or every tier of the CPU; the ref tier must give ref's own bits. */
static void check_graph(uint64_t seed, const recipe *kind, double bound)
{
    const char *provider = getenv("WEFT_TEST_PROVIDER");
    const uint32_t kv_type = kind->coded ? kind->coded : seed % 2 ? WEFT_F32 : WEFT_F16;
    stage s;
    store t;
    float *expected = weft__alloc_zero(OUT, sizeof *expected);
    if (kind->wide) wide_graph(&s, seed, kind->exact);
    else random_graph(&s, seed, kind);
    store_open(&t, s.g, "cpu", "threads=1,cpu=ref", 0, kv_type, N_CTX, MAX_ROWS);
    run_whole(&t, 0, expected);
    store_close(&t);
    /* Keys and values that differ in the last bit of a float may be rounded to different halves. */
    if (seed % 2 == 0 && bound < 1e-7) bound = 1e-7;
    if (provider) check_provider(&s, NULL, seed, kv_type, provider, "", expected, bound);
    /* Threads share the work of every tier alike: where they are what is looked for, most graphs see the best tier
     * only. */
    int all_tiers = kind->quantized || CLAIMS_REPEATED(1, 1, 0);
    for (int tier = 0; tier < WEFT__TIER_COUNT && !provider; tier++) {
        char text[32];
        snprintf(text, sizeof text, "cpu=%s", weft__tier_name((weft__tier)tier));
        if (is_tried(tier, all_tiers))
            check_provider(&s, NULL, seed, kv_type, "cpu", text, expected, tier == WEFT__TIER_REF ? 0 : bound);
    }
    weft__free(expected);
    stage_close(&s);
}

static void check_all(const recipe *kind, double bound)
{
    for (uint64_t seed = 1; seed <= (uint64_t)N_GRAPHS; seed++) check_graph(seed, kind, bound);
}

static void test_float(void **state)
{
    (void)state;
    check_all(&(recipe){0}, 1e-9);
}

static void test_quantized(void **state)
{
    (void)state;
    check_all(&(recipe){.quantized = 1}, 1e-3);
}

static void test_experts(void **state)
{
    (void)state;
    check_all(&(recipe){.experts = 1}, 1e-9);
    check_all(&(recipe){.experts = 2}, 1e-3);
}

static void test_wide(void **state)
{
    (void)state;
    check_graph(1, &(recipe){.wide = 1}, 1e-9);
}

/* Keys and values that differ in the last bit of a float may get codes that differ. */
static void test_coded(void **state)
{
    (void)state;
    check_all(&(recipe){.coded = WEFT_KV_Q8}, 1e-3);
    check_all(&(recipe){.coded = WEFT_KV_TYPE(WEFT_KV_Q8, WEFT_KV_Q4, 0, 1)}, 5e-2);
    check_all(&(recipe){.coded = WEFT_KV_TYPE(WEFT_KV_F8, WEFT_BF16, 0, 0)}, 5e-2);
}

/* ---- graphs with adapters ---- */

/* What ref computes with weights of F32 into which each sequence's adapter was merged. */
static void run_merged(stage *s, const weave *v, uint32_t kv_dtype, float *out)
{
    for (int a = -1; a < N_ADAPTERS; a++) {
        store t;
        uint8_t *saved[STAGE_BUFFERS];
        for (int i = 0; i < s->n_buffers; i++) {
            saved[i] = weft__alloc(s->buffers[i]->n_bytes);
            memcpy(saved[i], s->buffers[i]->data, s->buffers[i]->n_bytes);
        }
        for (int32_t i = 0; a >= 0 && i < v->n_weights; i++)
            if (v->lora[a][i].rank || v->lora[a][i].gain)
                merge_weight(&s->g->weights[i], &v->lora[a][i], is_embedding(s->g, i));
        store_open(&t, s->g, "cpu", "threads=1,cpu=ref", 0, kv_dtype, N_CTX, MAX_ROWS);
        for (int q = 0; q < STAGE_SEQS; q++)
            if (v->of[q] == a) store_step(&t, &(span){q, 0, lengths[q]}, 1, VOCAB, N_CTX, out);
        store_close(&t);
        for (int i = 0; i < s->n_buffers; i++) {
            memcpy(s->buffers[i]->data, saved[i], s->buffers[i]->n_bytes);
            weft__free(saved[i]);
        }
    }
}

/* The graph with adapters kept as dtype on every tier of the CPU, within `bound` of merged weights, or, of quantized
 * weights, of ref. */
static void check_adapters(uint64_t seed, const recipe *kind, uint32_t dtype, double bound)
{
    stage s;
    weave v;
    float *expected = weft__alloc_zero(OUT, sizeof *expected), *none = weft__alloc_zero(OUT, sizeof *none);
    if (kind->wide) wide_graph(&s, seed, kind->exact);
    else random_graph(&s, seed, kind);
    weave_open(&v, &s, WEFT_F32);
    store t;
    store_open(&t, s.g, "cpu", "threads=1,cpu=ref", 0, WEFT_F32, N_CTX, MAX_ROWS);
    run_whole(&t, 0, none);
    if (kind->quantized) {
        store_weave(&t, &v);
        run_whole(&t, 0, expected);
    } else {
        run_merged(&s, &v, WEFT_F32, expected);
    }
    store_close(&t);
    double effect = nmse(none, expected, OUT);
    print_message("  graph %llu: without its adapters NMSE %.2g\n", (unsigned long long)seed, effect);
    assert_true(effect > 4 * bound); /* without them the bound would not hold */
    v.dtype = dtype;
    for (int tier = 0; tier < WEFT__TIER_COUNT; tier++) {
        char text[32];
        snprintf(text, sizeof text, "cpu=%s", weft__tier_name((weft__tier)tier));
        if (is_tried(tier, CLAIMS_REPEATED(1, 1, 0)))
            check_provider(&s, &v, 2 * seed + 1, WEFT_F32, "cpu", text, expected, bound);
    }
    weave_close(&v);
    weft__free(none);
    weft__free(expected);
    stage_close(&s);
}

static void test_adapters_float(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= (uint64_t)N_GRAPHS; seed++)
        check_adapters(seed, &(recipe){.exact = 1}, WEFT_F32, 1e-9);
}

static void test_adapters_packed(void **state)
{
    (void)state;
    if (CLAIMS_REPEATED(1, 1, 0)) check_adapters(11, &(recipe){.exact = 1}, WEFT_BF16, 1e-4);
    check_adapters(11, &(recipe){.exact = 1}, WEFT_ADAPTER_AUTO, 1e-4);
    check_adapters(11, &(recipe){.exact = 1}, WEFT_Q4_0, 1e-3);
}

static void test_adapters_quantized(void **state)
{
    (void)state;
    check_adapters(23, &(recipe){.quantized = 1}, WEFT_ADAPTER_AUTO, 1e-3);
}

static void test_adapters_experts(void **state)
{
    (void)state;
    if (CLAIMS_REPEATED(1, 1, 0)) check_adapters(31, &(recipe){.exact = 1, .experts = 1}, WEFT_F32, 1e-9);
    check_adapters(32, &(recipe){.exact = 1, .experts = 1}, WEFT_Q8_0, 1e-4);
}

static void test_adapters_wide(void **state)
{
    (void)state;
    if (CLAIMS_REPEATED(1, 0, 0)) check_adapters(41, &(recipe){.exact = 1, .wide = 1}, WEFT_F32, 1e-9);
    check_adapters(41, &(recipe){.exact = 1, .wide = 1}, WEFT_Q8_0, 1e-3);
}

int main(void)
{
    const struct CMUnitTest of_any[] = {
        cmocka_unit_test(test_float),
        cmocka_unit_test(test_quantized),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_wide),
    };
    const struct CMUnitTest of_cpu[] = {
        /* whatever else is tested */
        cmocka_unit_test(test_adapters_float),     cmocka_unit_test(test_adapters_packed),
        cmocka_unit_test(test_adapters_quantized), cmocka_unit_test(test_adapters_experts),
        cmocka_unit_test(test_adapters_wide),      cmocka_unit_test(test_coded),
    };
    int failed = cmocka_run_group_tests(of_any, NULL, NULL);
    return getenv("WEFT_TEST_PROVIDER") ? failed : failed + cmocka_run_group_tests(of_cpu, NULL, NULL);
}
