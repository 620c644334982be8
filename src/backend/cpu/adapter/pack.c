// SPDX-License-Identifier: Apache-2.0
/* pack.c: an adapter as steps read it: A as panels of a matrix, B as panels of its own kernels, in the order of the
 * program's nodes, so that what one node needs is one stretch of memory. Invariant: immutable once made; nothing of the
 * program is changed. Reentrant. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "backend/cpu/adapter/adapter.h"
#include "base/alloc.h"
#include "base/background.h"
#include "mem/mem.h"
#include "mem/owners.h"
#include "quant/encode.h"

enum {
    AT_ONCE = 16384, /* values looked at before work in the background may rest */
    SEARCHED = 32    /* how often the search for a scale goes through a block */
};

/* ---- types ---- */

/* Panels of the vector tiers are meant for 8-bit inputs; where adapters have none, floats cost no more. */
static uint32_t type_of(const weft_backend *b, uint32_t dtype)
{
    if (dtype != WEFT_ADAPTER_AUTO) return dtype;
    return b->exact || weft__expand_find(WEFT_Q8_0, b->tiers)->tier == WEFT__TIER_REF ? WEFT_F32 : WEFT_Q8_0;
}

/* The kernel of A; inputs that are not whole blocks take BF16. */
static const weft__matmul *kernel_of_a(const weft_backend *b, uint32_t dtype, int64_t k)
{
    return weft__matmul_find(k % weft_dtype_describe(dtype).block_elems ? WEFT_BF16 : dtype, b->tiers);
}

/* ---- places ---- */

/* Gives out memory from `base` on, which is never 0: NULL means that there is no place yet. */
typedef struct pack_layout {
    weft_adapter *a;
    const weft_adapter_spec *spec;
    uintptr_t base;
    uint64_t used;
} pack_layout;

static const void *pack_take(pack_layout *l, uint64_t n_bytes)
{
    const void *p = (const void *)(l->base + l->used);
    l->used += weft__cpu_round(n_bytes);
    return p;
}

static int64_t panels(int64_t n, int64_t rows)
{
    return (n + rows - 1) / rows;
}

static void place_a(pack_layout *l, weft_weight_id id)
{
    const weft_program *p = l->a->program;
    const weft_weight *w = &p->graph->weights[id];
    weft__cpu_pair *pair = &l->a->pair[id];
    if (l->spec->lora[id].rank == 0) return;
    pair->rank = l->spec->lora[id].rank;
    pair->mm = kernel_of_a(p->backend, l->a->expand->dtype, w->shape.d[0]);
    weft_dtype_info info = weft_dtype_describe(pair->mm->dtype);
    pair->a_stride = pair->mm->panel_bytes ? pair->mm->panel_bytes(w->shape.d[0])
                                           : (size_t)w->shape.d[0] / info.block_elems * info.block_bytes;
    pair->a_expert = (size_t)panels(pair->rank, pair->mm->panel_rows) * pair->a_stride;
    pair->a = pack_take(l, (uint64_t)w->shape.d[2] * pair->a_expert);
}

static void place_gain(pack_layout *l, weft_weight_id id, int64_t n)
{
    weft__cpu_pair *pair = &l->a->pair[id];
    if (!l->spec->lora[id].gain || pair->gain) return;
    pair->n_gain = n;
    pair->gain = pack_take(l, (uint64_t)n * sizeof(float));
}

static void place_b(pack_layout *l, weft_weight_id id)
{
    const weft_weight *w = &l->a->program->graph->weights[id];
    weft__cpu_pair *pair = &l->a->pair[id];
    place_gain(l, id, w->shape.d[2] * w->shape.d[1]);
    if (l->spec->lora[id].rank == 0) return;
    pair->b_expert = (size_t)panels(w->shape.d[1], WEFT__EXPAND_ROWS) * l->a->expand->panel_bytes(pair->rank);
    pair->b = pack_take(l, (uint64_t)w->shape.d[2] * pair->b_expert);
}

static void place_embedding(pack_layout *l, weft_weight_id id)
{
    const weft_weight *w = &l->a->program->graph->weights[id];
    weft__cpu_pair *pair = &l->a->pair[id];
    place_gain(l, id, w->shape.d[0]);
    if (l->spec->lora[id].rank == 0) return;
    pair->rank = l->spec->lora[id].rank;
    pair->row_bytes = (size_t)pair->rank * (l->a->row_dtype == WEFT_F32 ? 4 : 2);
    pair->rows = pack_take(l, (uint64_t)w->shape.d[1] * pair->row_bytes);
    pair->columns =
        pack_take(l, (uint64_t)panels(w->shape.d[0], WEFT__EXPAND_ROWS) * l->a->expand->panel_bytes(pair->rank));
}

static void place_all(pack_layout *l)
{
    const weft_program *p = l->a->program;
    memset(l->a->pair, 0, (size_t)p->graph->n_weights * sizeof l->a->pair[0]);
    for (int32_t i = 0; i < p->segment->n_nodes; i++) {
        const weft_node *n = &p->graph->nodes[p->segment->nodes[i]];
        int multiplies = n->op == WEFT_OP_LINEAR || n->op == WEFT_OP_MOE_FFN;
        for (int j = 0; multiplies && j < n->n_w; j++)
            if (!l->a->pair[n->w[j]].a) place_a(l, n->w[j]);
        for (int j = 0; multiplies && j < n->n_w; j++)
            if (!l->a->pair[n->w[j]].b) place_b(l, n->w[j]);
        if (n->op == WEFT_OP_EMBED && !l->a->pair[n->w[0]].rows) place_embedding(l, n->w[0]);
    }
}

/* ---- contents ---- */

/* n rows of A. The search for the best scales would take most of the time of loading, for little at 8 bits. */
static weft_status encode(uint32_t dtype, const float *rows, uint8_t *to, int64_t n, int64_t k, weft_error *err)
{
    if (dtype != WEFT_Q8_0) return weft__quant_encode_rows(dtype, rows, to, n, k, NULL, err);
    weft__quant_nearest_q8_0(rows, to, n * k);
    return WEFT_OK;
}

/* The scales of blocks have 16 bits and lose some below 2^-14, at magnitudes of A below 2^-7; so a small A is taken
 * times a power of two that makes its largest magnitude 1 to 2, and B times the inverse. Where no bit was lost before,
 * this changes none. */
static int exponent_of(const weft_weight *w, const weft_lora *lora, const weft__cpu_pair *pair)
{
    const float *a = lora->a;
    float most = 0;
    int exponent = 1;
    if (!pair->mm || (pair->mm->dtype != WEFT_Q8_0 && pair->mm->dtype != WEFT_Q4_0)) return 0;
    for (int64_t i = 0, n = w->shape.d[2] * w->shape.d[0] * lora->rank; i < n;) {
        const int64_t end = n - i < AT_ONCE ? n : i + AT_ONCE;
        weft__background_did((uint64_t)(end - i) * sizeof *a);
        for (; i < end; i++) most = fabsf(a[i]) > most ? fabsf(a[i]) : most;
    }
    if (most > 0) frexpf(most, &exponent);
    return exponent < 1 ? 1 - exponent : 0;
}

/* scratch: for the rows of a panel, as floats and as the kernel's type. */
static weft_status fill_a(const weft_weight *w, const weft_lora *lora, const weft__cpu_pair *pair, int exponent,
                          uint8_t *scratch, weft_error *err)
{
    float *scaled = (float *)scratch;
    const float half = ldexpf(1, exponent / 2), other_half = ldexpf(1, exponent - exponent / 2); /* 2^149 is no float */
    const weft__matmul *mm = pair->mm;
    int64_t k = w->shape.d[0], rank = pair->rank;
    weft_dtype_info info = weft_dtype_describe(mm->dtype);
    size_t row_bytes = (size_t)k / info.block_elems * info.block_bytes;
    for (int64_t e = 0; e < w->shape.d[2]; e++) {
        for (int64_t r = 0; r < rank; r += mm->panel_rows) {
            int64_t n = rank - r < mm->panel_rows ? rank - r : mm->panel_rows;
            uint8_t *to =
                (uint8_t *)pair->a + (size_t)e * pair->a_expert + (size_t)(r / mm->panel_rows) * pair->a_stride;
            uint8_t *coded = mm->panel_bytes ? (uint8_t *)(scaled + mm->panel_rows * k) : to;
            const float *a = (const float *)lora->a + (e * rank + r) * k;
            for (int64_t i = 0; exponent && i < n * k; i++) scaled[i] = a[i] * half * other_half;
            weft_status st = WEFT_OK;
            for (int64_t i = 0; i < n && !st; i++) {
                st = encode(mm->dtype, (exponent ? scaled : a) + i * k, coded + (size_t)i * row_bytes, 1, k, err);
                weft__background_did((uint64_t)k * sizeof *a * (mm->dtype == WEFT_Q4_0 ? SEARCHED : 1));
            }
            if (st) return weft_fail_within(err, st, "A of the adapter for %s", w->name);
            if (mm->panel_bytes) weft__matmul_pack(mm, coded, row_bytes, (int)n, k, to);
            weft__background_did((uint64_t)(n * k) * sizeof *a);
        }
    }
    return WEFT_OK;
}

static void fill_b(const weft__expand *x, const float *b, int64_t n, int64_t rank, float scale, uint8_t *to)
{
    for (int64_t j = 0; j < n; j += WEFT__EXPAND_ROWS, to += x->panel_bytes(rank)) {
        int64_t rows = n - j < WEFT__EXPAND_ROWS ? n - j : WEFT__EXPAND_ROWS;
        x->pack(b + j * rank, rank, scale, (int)rows, rank, to);
        weft__background_did((uint64_t)(rows * rank) * sizeof *b);
    }
}

/* B's rows by token, scale included; A transposed, a panel at a time: `rows` has room for one. */
static weft_status fill_embedding(const weft_adapter *a, const weft_weight *w, const weft_lora *lora,
                                  const weft__cpu_pair *pair, float *rows, weft_error *err)
{
    int64_t d = w->shape.d[0], rank = pair->rank;
    uint8_t *to = (uint8_t *)pair->columns;
    weft_status st = WEFT_OK;
    for (int64_t t = 0; t < w->shape.d[1] && !st; t++) {
        for (int64_t i = 0; i < rank; i++) rows[i] = lora->scale * ((const float *)lora->b)[t * rank + i];
        st = weft__quant_encode_rows(a->row_dtype, rows, (uint8_t *)pair->rows + (size_t)t * pair->row_bytes, 1, rank,
                                     NULL, err);
        weft__background_did((uint64_t)rank * sizeof *rows);
    }
    for (int64_t j = 0; j < d && !st; j += WEFT__EXPAND_ROWS, to += a->expand->panel_bytes(rank)) {
        int n = d - j < WEFT__EXPAND_ROWS ? (int)(d - j) : WEFT__EXPAND_ROWS;
        for (int r = 0; r < n; r++)
            for (int64_t i = 0; i < rank; i++) rows[r * rank + i] = ((const float *)lora->a)[i * d + j + r];
        a->expand->pack(rows, rank, 1, n, rank, to);
        weft__background_did((uint64_t)(n * rank) * sizeof *rows);
    }
    return st ? weft_fail_within(err, st, "B of the adapter for %s", w->name) : WEFT_OK;
}

static int all_within(const float *x, int64_t n, float factor, float most)
{
    int ok = 1;
    for (int64_t i = 0; i < n;) {
        const int64_t end = n - i < AT_ONCE ? n : i + AT_ONCE;
        weft__background_did((uint64_t)(end - i) * sizeof *x);
        for (; i < end; i++) ok &= fabsf(x[i] * factor) <= most;
    }
    return ok;
}

/* The largest magnitude that a kind of values keeps: blocks have a scale in 16 bits and codes up to 127 or 8; bfloat16,
 * and codes with a scale in it, may round up, but not from a half of its range. */
static float most_of(uint32_t dtype, int blocks)
{
    if (dtype == WEFT_F32) return FLT_MAX;
    if (blocks && dtype == WEFT_Q8_0) return 65504.f * 127;
    if (blocks && dtype == WEFT_Q4_0) return 65504.f * 8;
    return FLT_MAX / 2;
}

/* Are A and B, with the scale that packing multiplies B by, numbers that their types have? */
static weft_status check_values(const weft_adapter *a, const weft_weight *w, const weft_lora *lora,
                                const weft__cpu_pair *pair, weft_error *err)
{
    int64_t n_a = w->shape.d[2] * w->shape.d[0] * lora->rank, n_b = w->shape.d[2] * w->shape.d[1] * lora->rank;
    float most_a = pair->mm ? most_of(pair->mm->dtype, 1) : most_of(a->expand->dtype, 0),
          most_b = most_of(a->expand->dtype, 0);
    if (!all_within(lora->a, n_a, 1, FLT_MAX) || !all_within(lora->b, n_b, 1, FLT_MAX))
        return weft_fail(err, WEFT_ARGUMENT, "the adapter for %s holds values that are no finite numbers", w->name);
    if (!all_within(lora->a, n_a, 1, most_a))
        return weft_fail(err, WEFT_ARGUMENT,
                         "A of the adapter for %s holds values beyond %g, which its type does not have", w->name,
                         (double)most_a);
    if (!all_within(lora->b, n_b, lora->scale, most_b))
        return weft_fail(err, WEFT_ARGUMENT,
                         "B of the adapter for %s, times its scale of %g, is beyond %g; give a smaller scale", w->name,
                         (double)lora->scale, (double)most_b);
    return WEFT_OK;
}

/* Everything about one weight that has a place. */
static weft_status pack_fill(const weft_adapter *a, weft_weight_id id, const weft_lora *lora, void *scratch,
                             weft_error *err)
{
    const weft_weight *w = &a->program->graph->weights[id];
    const weft__cpu_pair *pair = &a->pair[id];
    int64_t n = w->shape.d[1], n_experts = w->shape.d[2];
    weft_status st = WEFT_OK;
    if (pair->gain) memcpy((float *)pair->gain, lora->gain, (size_t)pair->n_gain * sizeof(float));
    if (pair->rank && (st = check_values(a, w, lora, pair, err))) return st;
    if (pair->gain && !all_within(pair->gain, pair->n_gain, 1, FLT_MAX))
        return weft_fail(err, WEFT_ARGUMENT, "the adapter for %s has magnitudes that are no finite numbers", w->name);
    const int exponent = pair->a ? exponent_of(w, lora, pair) : 0;
    if (pair->a && (st = fill_a(w, lora, pair, exponent, scratch, err))) return st;
    for (int64_t e = 0; pair->b && e < n_experts; e++)
        fill_b(a->expand, (const float *)lora->b + e * n * pair->rank, n, pair->rank, ldexpf(lora->scale, -exponent),
               (uint8_t *)pair->b + (size_t)e * pair->b_expert);
    return pair->rows ? fill_embedding(a, w, lora, pair, scratch, err) : WEFT_OK;
}

/* Bytes for the rows of a panel while they are packed. */
static size_t scratch_bytes(const weft_adapter *a, int32_t n_weights)
{
    size_t most = 0;
    for (int32_t i = 0; i < n_weights; i++) {
        const weft__cpu_pair *pair = &a->pair[i];
        const int64_t k = a->program->graph->weights[i].shape.d[0];
        if (pair->rank == 0) continue;
        weft__cpu_need(&most, (size_t)WEFT__EXPAND_ROWS * (size_t)pair->rank * sizeof(float));
        if (pair->a)
            weft__cpu_need(&most, 2 * (size_t)pair->mm->panel_rows * (size_t)k * sizeof(float)); /* no type has more */
    }
    return most;
}

/* Large pieces of memory begin at the same place of a huge page, and so would what a step reads of each adapter: in the
 * same few sets of every cache. Each adapter begins a little farther than the one before. */
static size_t shift_of(weft_backend *b)
{
    enum { SHIFT = 4096 + 5 * WEFT__CPU_LINE, N_SHIFTS = 16 };
    return (size_t)(atomic_fetch_add_explicit(&b->n_adapters, 1, memory_order_relaxed) % N_SHIFTS) * SHIFT;
}

static weft_status pack_check(const weft_program *p, const weft_adapter_spec *spec, weft_error *err)
{
    if (spec->size < sizeof *spec)
        return weft_fail(err, WEFT_ABI, "weft_adapter_spec has %u bytes; this provider reads %zu", spec->size,
                         sizeof *spec);
    if (spec->n_weights != p->graph->n_weights || !spec->lora)
        return weft_fail(err, WEFT_ARGUMENT, "an adapter for %d weights; the graph has %d", spec->n_weights,
                         p->graph->n_weights);
    if (!weft__expand_find(type_of(p->backend, spec->dtype), p->backend->tiers))
        return weft_fail(err, WEFT_ARGUMENT, "adapters are kept as F32, BF16, Q8_0 or Q4_0, not as %s",
                         weft_dtype_describe(spec->dtype).name);
    for (int32_t i = 0; i < spec->n_weights; i++) {
        const weft_lora *l = &spec->lora[i];
        if (l->rank < 0 || l->rank > WEFT_ADAPTER_RANK_MAX || (l->rank && (!l->a || !l->b || l->dtype != WEFT_F32)))
            return weft_fail(err, WEFT_ARGUMENT,
                             "the adapter for %s has rank %d or no values in F32; ranks are 1 to %d",
                             p->graph->weights[i].name, l->rank, WEFT_ADAPTER_RANK_MAX);
    }
    return WEFT_OK;
}

weft_status weft__cpu_adapter_new(const weft_program *p, const weft_adapter_spec *spec, weft_adapter **out,
                                  weft_error *err)
{
    *out = NULL;
    weft_status st = pack_check(p, spec, err);
    if (st) return st;
    void *scratch = NULL;
    weft_adapter *a = weft__alloc_zero(1, sizeof *a + (size_t)spec->n_weights * sizeof a->pair[0]);
    if (!a) return weft_fail(err, WEFT_NO_MEMORY, "no memory for an adapter");
    a->program = p;
    a->expand = weft__expand_find(type_of(p->backend, spec->dtype), p->backend->tiers);
    a->row_dtype = a->expand->dtype == WEFT_F32 ? WEFT_F32 : WEFT_BF16;
    pack_layout l = {.a = a, .spec = spec, .base = WEFT__CPU_LINE}; /* only sizes matter */
    place_all(&l);
    size_t shift = shift_of(p->backend);
    weft_buffer_spec memory = {
        .size = sizeof memory, .domain = WEFT_DOMAIN_HOST, .n_bytes = l.used + shift, .flags = WEFT_BUFFER_HUGE};
    if ((st = weft__mem_create(&memory, &a->memory, err))) {
        st = weft_fail_within(err, st, "an adapter");
        goto fail;
    }
    weft__mem_set_owner(a->memory, WEFT__MEM_ADAPTERS);
    if (!(scratch = weft__alloc_aligned(WEFT__CPU_LINE, scratch_bytes(a, spec->n_weights)))) {
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory to pack an adapter");
        goto fail;
    }
    a->n_bytes = sizeof *a + (size_t)spec->n_weights * sizeof a->pair[0] + l.used + shift;
    l = (pack_layout){.a = a, .spec = spec, .base = (uintptr_t)a->memory->data + shift};
    place_all(&l);
    for (int32_t i = 0; i < spec->n_weights; i++)
        if ((st = pack_fill(a, i, &spec->lora[i], scratch, err))) goto fail;
    weft__free(scratch);
    *out = a;
    return WEFT_OK;
fail:
    weft__free(scratch);
    weft__cpu_adapter_free(&a);
    return st;
}

void weft__cpu_adapter_free(weft_adapter **pa)
{
    weft_adapter *a = *pa;
    if (!a) return;
    *pa = NULL;
    weft_buffer_release(&a->memory);
    weft__free(a);
}

uint64_t weft__cpu_adapter_bytes(const weft_adapter *a)
{
    return a->n_bytes;
}
