// SPDX-License-Identifier: Apache-2.0
/* assemble.c: from the tensors of a file to pairs in float32: halves, shapes, finite values, rows in GGUF's order
 * (parts.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapt/parts.h"
#include "base/alloc.h"
#include "base/background.h"
#include "quant/quant.h"

/* ---- what was found ---- */

weft__adapt_parsed *weft__adapt_parsed_at(weft__adapt *a, weft__adapt_parsed_list *all, const char *module, size_t len,
                                          weft_status *status, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    int64_t at = weft__name_table_find(&all->names, module, len);
    *status = WEFT_OK;
    if (at >= 0) return &all->items[at];
    if (all->n == WEFT__ADAPT_PAIRS_MAX || len >= sizeof all->items->module) {
        *status = weft_fail(err, WEFT_LIMIT, "%s: there are more than %d matrices, or their names are too long",
                            weft__name_show(shown, module, len), WEFT__ADAPT_PAIRS_MAX);
        return NULL;
    }
    const char *key = weft__arena_string(&a->arena, module, len);
    if (!key || !weft__grow(&all->items, &all->capacity, all->n + 1, sizeof *all->items) ||
        weft__name_table_put(&all->names, key, len, (uint32_t)all->n, NULL) != 1) {
        *status = weft_fail(err, WEFT_NO_MEMORY, "no memory for the list of tensors");
        return NULL;
    }
    weft__adapt_parsed *f = &all->items[all->n++];
    *f = (weft__adapt_parsed){.place = {.expert = -1, .n_experts = 1}};
    memcpy(f->module, module, len);
    return f;
}

void weft__adapt_parsed_list_free(weft__adapt_parsed_list *all)
{
    weft__name_table_free(&all->names);
    weft__free(all->items);
}

/* ---- shapes ---- */

typedef struct assemble_shape {
    int64_t k, n, rank, n_experts;
} assemble_shape;

static weft_status misfit(const weft__adapt_parsed *f, const char *what, weft_error *err)
{
    return weft_fail(err, WEFT_FORMAT, "%s: %s", f->module, what);
}

/* Dimensions of each half by its meaning. */
static weft_status measure(const weft__adapt_parsed *f, assemble_shape *out, weft_error *err)
{
    const weft__tensor_desc *a = f->a, *b = f->b;
    if (!a || !b) return weft_fail(err, WEFT_FORMAT, "%s: its half %s is missing", f->module, a ? "B" : "A");
    uint64_t k = a->d[0], rank_a = a->d[1], rank_b = b->d[0], n = b->d[1], experts = a->d[2];
    if (f->embedding) {
        rank_a = f->embedding == 1 ? a->d[0] : a->d[1];
        n = f->embedding == 1 ? a->d[1] : a->d[0];
        k = b->d[1];
    }
    if (a->d[3] != 1 || b->d[3] != 1 || a->d[2] != b->d[2] ||
        (experts != 1 && (f->embedding || f->place.expert >= 0)) || (f->embedding && f->place.expert >= 0))
        return misfit(f, "halves are matrices, or stacks of as many matrices", err);
    if (rank_a != rank_b)
        return weft_fail(err, WEFT_FORMAT, "%s: half A has rank %llu, half B rank %llu", f->module,
                         (unsigned long long)rank_a, (unsigned long long)rank_b);
    if (rank_a > WEFT__ADAPT_RANK_MAX)
        return weft_fail(err, WEFT_LIMIT, "%s: rank %llu; at most %d", f->module, (unsigned long long)rank_a,
                         WEFT__ADAPT_RANK_MAX);
    if (k > INT32_MAX || n > INT32_MAX || experts > 65536) return misfit(f, "its shape is beyond any model's", err);
    const uint64_t n_magnitudes = f->embedding ? k : experts * n;
    if (f->magnitude && f->magnitude->n_elems != n_magnitudes)
        return weft_fail(err, WEFT_FORMAT, "%s: %llu magnitudes for %llu %s", f->module,
                         (unsigned long long)f->magnitude->n_elems, (unsigned long long)n_magnitudes,
                         f->embedding ? "columns" : "rows");
    if (f->place.heads > 0 && n % (2 * (uint64_t)f->place.heads))
        return weft_fail(err, WEFT_FORMAT, "%s: its %llu rows are not those of the base's %d heads", f->module,
                         (unsigned long long)n, f->place.heads);
    if (!isfinite(f->scale)) return weft_fail(err, WEFT_FORMAT, "%s: its scale is not finite", f->module);
    *out = (assemble_shape){(int64_t)k, (int64_t)n, (int64_t)rank_a,
                            f->place.expert >= 0 ? f->place.n_experts : (int64_t)experts};
    return WEFT_OK;
}

/* ---- values ---- */

static weft_status decode(const weft__tensor_desc *t, float *out, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    const uint8_t *data = weft__tensor_data(t);
    uint64_t row_bytes = weft__quant_row_bytes(t->dtype, (int64_t)t->d[0]), n_rows = t->n_elems / t->d[0];
    weft__name_show(shown, t->name, strlen(t->name));
    if (!weft__quant_decoder(t->dtype))
        return weft_fail(err, WEFT_UNSUPPORTED, "tensor %s has type %s", shown, weft_dtype_describe(t->dtype).name);
    for (uint64_t r = 0, i = 0; r < n_rows; r++) {
        weft__quant_decode_row(t->dtype, data + r * row_bytes, out + r * t->d[0], (int64_t)t->d[0]);
        for (; i < (r + 1) * t->d[0]; i++)
            if (!isfinite(out[i]))
                return weft_fail(err, WEFT_FORMAT, "tensor %s holds %s at element %llu", shown,
                                 isnan(out[i]) ? "NaN" : "infinity", (unsigned long long)i);
        weft__background_did(t->d[0] * sizeof *out);
    }
    return WEFT_OK;
}

enum { AT_ONCE = 16384 /* values, before work in the background may rest */ };

static void clear(float *x, size_t n)
{
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < AT_ONCE ? n - i : AT_ONCE;
        memset(x + i, 0, some * sizeof *x);
        weft__background_did(some * sizeof *x);
    }
}

static void copy(float *to, const float *from, size_t n)
{
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < AT_ONCE ? n - i : AT_ONCE;
        memcpy(to + i, from + i, some * sizeof *to);
        weft__background_did(some * sizeof *to);
    }
}

/* [rows][columns] to [columns][stride]. */
static void transpose(const float *in, int64_t rows, int64_t columns, float *out, int64_t stride)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            out[c * stride + r] = in[r * columns + c];
            if (c % 1024 == 0) weft__background_did(1024 * 64); /* each touches a line of its own */
        }
    }
}

/* Rows of a folder in GGUF's order, each `width` floats. */
static void pair_rows(const float *in, float *out, int64_t n, int64_t width, int64_t out_width, int32_t heads)
{
    for (int64_t r = 0; r < n; r++) {
        memcpy(out + r * out_width, in + (heads > 0 ? weft__adapt_folder_row(r, n / heads) : r) * width,
               (size_t)width * sizeof *out);
        weft__background_did((uint64_t)width * sizeof *out);
    }
}

/* One expert's halves (all, where the file has them stacked) into those of the pair, whose rank may be larger. */
static weft_status assemble_fill(const weft__adapt_parsed *f, const assemble_shape *s, float *scratch, float *a,
                                 float *b, int64_t rank, weft_error *err)
{
    weft_status st;
    if ((st = decode(f->a, scratch, err))) return st;
    if (f->embedding == 1) copy(b, scratch, (size_t)f->a->n_elems);
    else if (f->embedding == 2) transpose(scratch, s->rank, s->n, b, rank);
    else copy(a, scratch, (size_t)f->a->n_elems);
    if ((st = decode(f->b, scratch, err))) return st;
    if (f->embedding) transpose(scratch, s->k, s->rank, a, s->k);
    else if (f->place.expert < 0 && s->n_experts > 1) copy(b, scratch, (size_t)f->b->n_elems);
    else pair_rows(scratch, b, s->n, s->rank, rank, f->place.heads);
    return WEFT_OK;
}

/* Of the item's expert, where it is one, else all. */
static weft_status fill_magnitude(const weft__adapt_parsed *f, int64_t n, float *scratch, float *m, weft_error *err)
{
    const int64_t n_values = (int64_t)f->magnitude->n_elems;
    weft_status st = decode(f->magnitude, scratch, err);
    if (st) return st;
    if (f->place.expert < 0 && n_values != n)
        copy(m, scratch, (size_t)n_values); /* experts together: they have no heads */
    else pair_rows(scratch, m + (f->place.expert >= 0 ? f->place.expert * n : 0), n, 1, 1, f->place.heads);
    return WEFT_OK;
}

/* Magnitudes of 0 all over say that an expert is not changed: they are in no file beside halves that change it, and of
 * no module by itself. */
static weft_status check_spared(const weft__adapt_parsed *f, size_t n, const weft__adapt_pair *p, weft_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (f[i].place.expert >= 0 && weft__adapt_is_identity(p, f[i].place.expert))
            return weft_fail(err, WEFT_FORMAT, "%s: its magnitudes are all 0, which leaves nothing of it", f[i].module);
    }
    for (int64_t e = 0; e < p->n_experts; e++) {
        const int64_t n_a = p->rank * p->k, n_b = p->n * p->rank;
        if (weft__adapt_is_identity(p, e) &&
            !(weft__adapt_all_zero(p->a + e * n_a, n_a) && weft__adapt_all_zero(p->b + e * n_b, n_b)))
            return weft_fail(err, WEFT_FORMAT, "%s: expert %lld is changed, but its magnitudes are all 0", p->name,
                             (long long)e);
    }
    return WEFT_OK;
}

static weft_status fill_magnitudes(weft__adapt *a, const weft__adapt_parsed *items, size_t n, float *scratch,
                                   weft__adapt_pair *p, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (size_t i = 1; i < n; i++)
        if (!items[i].magnitude != !items[0].magnitude)
            return weft_fail(err, WEFT_FORMAT, "%s has magnitudes, %s has none",
                             items[items[i].magnitude ? i : 0].module, items[items[i].magnitude ? 0 : i].module);
    if (!items[0].magnitude) return WEFT_OK;
    const int64_t n_values = weft__adapt_is_table(p->name) ? p->k : p->n_experts * p->n;
    float *m = weft__arena_array(&a->arena, (size_t)n_values, sizeof *m);
    if (!m) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %s", items[0].module);
    clear(m, (size_t)n_values);
    for (size_t i = 0; i < n && !st; i++) st = fill_magnitude(&items[i], n_values / p->n_experts, scratch, m, err);
    p->magnitude = m;
    return st ? st : check_spared(items, n, p, err);
}

/* ---- pairs ---- */

static int by_place(const void *x, const void *y)
{
    const weft__adapt_parsed *a = x, *b = y;
    int order = strcmp(a->place.name, b->place.name);
    return order ? order : (a->place.expert > b->place.expert) - (a->place.expert < b->place.expert);
}

/* The experts of a layer share one scale: what another has of it goes into B. */
static weft_status scale_rows(const weft__adapt_parsed *f, float *b, int64_t n, float to, weft_error *err)
{
    int ok = 1;
    if (f->scale == to) return WEFT_OK;
    for (int64_t i = 0; i < n; i++) {
        b[i] *= f->scale / to;
        ok &= isfinite(b[i]) != 0;
        if (i % AT_ONCE == 0) weft__background_did(AT_ONCE * sizeof *b);
    }
    return ok ? WEFT_OK
              : weft_fail(err, WEFT_FORMAT, "%s: its scale is %g, another expert's %g: B would not be finite",
                          f->module, (double)f->scale, (double)to);
}

/* One expert in a file means room for all of the base, so that a file may need far more than it has. */
static weft_status count_bytes(weft__adapt *a, const assemble_shape *s, const weft__adapt_parsed *f, weft_error *err)
{
    uint64_t need =
        (uint64_t)(s->n_experts * s->rank * (s->k + s->n)) * sizeof(float) +
        (f->magnitude ? f->magnitude->n_elems * (uint64_t)(f->place.expert >= 0 ? s->n_experts : 1) * sizeof(float)
                      : 0);
    if (need > a->max_bytes - a->n_bytes)
        return weft_fail(
            err, WEFT_LIMIT,
            "%s: its matrices, up to this one, are more than %llu bytes in float32, which is what there is room for",
            f->place.name, (unsigned long long)a->max_bytes);
    a->n_bytes += need;
    return WEFT_OK;
}

/* The pair of items [0, n), which stand for one tensor. */
static weft_status make_pair(weft__adapt *a, const weft__adapt_parsed *items, size_t n, weft__adapt_pair *p,
                             weft_error *err)
{
    const weft__adapt_parsed *first = items;
    assemble_shape s, whole = {0};
    uint64_t max = 0;
    weft_status st = WEFT_OK;
    for (size_t i = 0; i < n && !st; i++) {
        if ((st = measure(&items[i], &s, err))) return st;
        if (i && (items[i].place.expert == items[i - 1].place.expert || s.k != whole.k || s.n != whole.n))
            return weft_fail(err, WEFT_FORMAT, "%s and %s do not fit together as %s", items[i - 1].module,
                             items[i].module, first->place.name);
        int64_t rank = s.rank > whole.rank ? s.rank : whole.rank;
        whole = s;
        whole.rank = rank;
        if (items[i].a->n_elems > max) max = items[i].a->n_elems;
        if (items[i].b->n_elems > max) max = items[i].b->n_elems;
        if (items[i].magnitude && items[i].magnitude->n_elems > max) max = items[i].magnitude->n_elems;
        if (items[i].scale != 0 && p->scale == 0) p->scale = items[i].scale;
    }
    if ((st = count_bytes(a, &whole, first, err))) return st;
    size_t n_a = (size_t)(whole.rank * whole.k), n_b = (size_t)(whole.n * whole.rank), e = (size_t)whole.n_experts;
    float *scratch = weft__alloc_array((size_t)max, sizeof *scratch),
          *pa = weft__arena_array(&a->arena, n_a * sizeof *pa, e),
          *pb = weft__arena_array(&a->arena, n_b * sizeof *pb, e);
    if (!scratch || !pa || !pb) {
        weft__free(scratch);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for %s", first->module);
    }
    clear(pa, n_a * e);
    clear(pb, n_b * e);
    for (size_t i = 0; i < n && !st; i++) {
        size_t at = items[i].place.expert >= 0 ? (size_t)items[i].place.expert : 0;
        measure(&items[i], &s, NULL);
        st = assemble_fill(&items[i], &s, scratch, pa + at * n_a, pb + at * n_b, whole.rank, err);
        if (!st && items[i].place.expert >= 0) st = scale_rows(&items[i], pb + at * n_b, (int64_t)n_b, p->scale, err);
    }
    snprintf(p->name, sizeof p->name, "%s", first->place.name);
    p->k = whole.k;
    p->n = whole.n;
    p->n_experts = whole.n_experts;
    p->rank = (int32_t)whole.rank;
    p->a_dtype = first->a->dtype;
    p->b_dtype = first->b->dtype;
    for (size_t i = 1; i < n; i++) {
        if (items[i].a->dtype != p->a_dtype) p->a_dtype = WEFT_F32;
        if (items[i].b->dtype != p->b_dtype || items[i].scale != p->scale) p->b_dtype = WEFT_F32;
    }
    p->a = pa;
    p->b = pb;
    if (!st) st = fill_magnitudes(a, items, n, scratch, p, err);
    weft__free(scratch);
    return st;
}

weft_status weft__adapt_assemble(weft__adapt *a, weft__adapt_parsed_list *all, weft_error *err)
{
    if (all->n == 0) return weft_fail(err, WEFT_FORMAT, "it has no tensors of an adapter");
    weft__name_table_free(&all->names); /* their places change */
    qsort(all->items, all->n, sizeof *all->items, by_place);
    a->pairs = weft__arena_array(&a->arena, all->n, sizeof *a->pairs);
    if (!a->pairs) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %zu matrices", all->n);
    weft_status st = WEFT_OK;
    for (size_t i = 0, end; i < all->n && !st; i = end) {
        for (end = i + 1; end < all->n && !strcmp(all->items[end].place.name, all->items[i].place.name);) end++;
        a->pairs[a->n_pairs] = (weft__adapt_pair){0};
        st = make_pair(a, all->items + i, end - i, &a->pairs[a->n_pairs++], err);
    }
    return st ? st : weft__adapt_identify(a, err);
}
