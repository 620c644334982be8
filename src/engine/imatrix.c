// SPDX-License-Identifier: Apache-2.0
/* imatrix.c: reading importance matrices.
 * GGUF form: for tensor NAME, "NAME.in_sum2" [k, experts] sums of squares and "NAME.counts" [1, experts] how many were
 * summed. Older form: i32 n, then n times {i32 length, name, i32 calls, i32 values, f32 values[]}. */
#include "engine/imatrix.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "format/gguf.h"
#include "format/names.h"
#include "mem/mem.h"

struct imatrix_entry {
    char *name;
    float *values; /* [experts][k] */
    uint64_t n, n_matrices;
};

struct weft__imatrix {
    struct imatrix_entry *entries;
    size_t n, capacity;
};

void weft__imatrix_close(weft__imatrix **p)
{
    weft__imatrix *m = p ? *p : NULL;
    if (!m) return;
    for (size_t i = 0; i < m->n; i++) {
        weft__free(m->entries[i].name);
        weft__free(m->entries[i].values);
    }
    weft__free(m->entries);
    weft__free(m);
    *p = NULL;
}

/* Adds an entry with room for n values. NULL without memory. */
static struct imatrix_entry *imatrix_add(weft__imatrix *m, const char *name, size_t name_len, uint64_t n,
                                         uint64_t n_matrices)
{
    if (!weft__grow(&m->entries, &m->capacity, m->n + 1, sizeof *m->entries)) return NULL;
    struct imatrix_entry *e = &m->entries[m->n];
    *e = (struct imatrix_entry){weft__strndup(name, name_len), weft__alloc_array((size_t)n, sizeof *e->values), n,
                                n_matrices};
    m->n++;
    return e->name && e->values ? e : NULL;
}

static weft_status check_values(const struct imatrix_entry *e, const char *path, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    for (uint64_t i = 0; i < e->n; i++)
        if (!(e->values[i] >= 0) || isinf(e->values[i]))
            return weft_fail(err, WEFT_FORMAT, "%s: the importance of %s holds a value that is negative or not finite",
                             path, weft__name_show(shown, e->name, strlen(e->name)));
    return WEFT_OK;
}

static weft_status read_gguf_entry(weft__imatrix *m, const weft__gguf *g, const weft__tensor_desc *sums,
                                   size_t name_len, const char *path, weft_error *err)
{
    char name[WEFT__GGUF_TENSOR_NAME_BYTES + 16];
    snprintf(name, sizeof name, "%.*s.counts", (int)name_len, sums->name);
    const weft__tensor_desc *counts = weft__tensor_find(weft__gguf_tensors(g), name);
    uint64_t k = sums->d[0], n_matrices = sums->n_elems / k;
    if (!counts || sums->dtype != WEFT_F32 || counts->dtype != WEFT_F32 || counts->n_elems != n_matrices)
        return weft_fail(err, WEFT_FORMAT, "%s: %s and %s do not belong together", path, sums->name, name);
    struct imatrix_entry *e = imatrix_add(m, sums->name, name_len, sums->n_elems, n_matrices);
    if (!e) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for the importance of %s", path, sums->name);
    memcpy(e->values, weft__tensor_data(sums), (size_t)sums->n_bytes);
    for (uint64_t i = 0; i < n_matrices; i++) {
        float count;
        memcpy(&count, (const uint8_t *)weft__tensor_data(counts) + 4 * i, sizeof count);
        for (uint64_t j = 0; j < k; j++)
            e->values[i * k + j] = count > 0 ? e->values[i * k + j] / count : 1.0f; /* never used: all alike */
    }
    return check_values(e, path, err);
}

static weft_status read_gguf(weft__imatrix *m, const void *bytes, size_t n_bytes, const char *path, weft_error *err)
{
    static const char suffix[] = ".in_sum2";
    weft__gguf *g;
    weft_status st = weft__gguf_parse(bytes, n_bytes, path, &g, err);
    if (st) return st;
    const weft__tensor_set *set = weft__gguf_tensors(g);
    for (size_t i = 0; i < set->n && !st; i++) {
        size_t len = strlen(set->items[i].name);
        if (len <= sizeof suffix - 1 || strcmp(set->items[i].name + len - (sizeof suffix - 1), suffix)) continue;
        st = read_gguf_entry(m, g, &set->items[i], len - (sizeof suffix - 1), path, err);
    }
    weft__gguf_close(&g);
    return st;
}

/* A reader over bytes that never passes their end. */
struct imatrix_cursor {
    const uint8_t *p;
    uint64_t left;
};

static int imatrix_take(struct imatrix_cursor *c, void *out, uint64_t n)
{
    if (n > c->left) return 0;
    memcpy(out, c->p, (size_t)n);
    c->p += n;
    c->left -= n;
    return 1;
}

static weft_status read_old(weft__imatrix *m, const void *bytes, size_t n_bytes, const char *path, weft_error *err)
{
    struct imatrix_cursor c = {bytes, n_bytes};
    int32_t n, len, calls, n_values;
    if (!imatrix_take(&c, &n, 4) || n < 1 || n > 1 << 20)
        return weft_fail(err, WEFT_FORMAT, "%s: not an importance matrix", path);
    for (int32_t i = 0; i < n; i++) {
        char name[256];
        if (!imatrix_take(&c, &len, 4) || len < 1 || len >= (int32_t)sizeof name ||
            !imatrix_take(&c, name, (uint64_t)len) || !imatrix_take(&c, &calls, 4) || !imatrix_take(&c, &n_values, 4) ||
            n_values < 1 || (uint64_t)n_values * 4 > c.left)
            return weft_fail(err, WEFT_FORMAT, "%s: not an importance matrix, or cut short (entry %d)", path, i);
        struct imatrix_entry *e = imatrix_add(m, name, (size_t)len, (uint64_t)n_values, 0);
        if (!e) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for %d values", path, n_values);
        imatrix_take(&c, e->values, (uint64_t)n_values * 4);
        for (int32_t j = 0; calls > 0 && j < n_values; j++) e->values[j] /= (float)calls;
        weft_status st = check_values(e, path, err);
        if (st) return st;
    }
    return WEFT_OK;
}

weft_status weft__imatrix_parse(const void *bytes, size_t n, const char *path, weft__imatrix **out, weft_error *err)
{
    weft__imatrix *m = weft__alloc_zero(1, sizeof *m);
    *out = NULL;
    if (!m) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to open it", path);
    weft_status st =
        n >= 4 && !memcmp(bytes, "GGUF", 4) ? read_gguf(m, bytes, n, path, err) : read_old(m, bytes, n, path, err);
    if (!st && m->n == 0) st = weft_fail(err, WEFT_FORMAT, "%s: holds no importance of any tensor", path);
    if (st) weft__imatrix_close(&m);
    *out = m;
    return st;
}

weft_status weft__imatrix_open(const char *path, weft__imatrix **out, weft_error *err)
{
    weft_buffer *b = NULL;
    *out = NULL;
    weft_status st = weft__mem_map(path, &b, err);
    if (st) return st;
    st = weft__imatrix_parse(b->data, (size_t)b->n_bytes, path, out, err);
    weft_buffer_release(&b);
    return st;
}

weft_status weft__imatrix_get(const weft__imatrix *m, const char *name, uint64_t expert, uint64_t n_experts, int64_t k,
                              const float **out, weft_error *err)
{
    *out = NULL;
    for (size_t i = 0; m && i < m->n; i++) {
        const struct imatrix_entry *e = &m->entries[i];
        if (strcmp(e->name, name)) continue;
        if (e->n != (uint64_t)k * n_experts || (e->n_matrices && e->n_matrices != n_experts))
            return weft_fail(
                err, WEFT_FORMAT,
                "the importance matrix has %llu values for %s; %lld x %llu are needed: it is of another model",
                (unsigned long long)e->n, name, (long long)k, (unsigned long long)n_experts);
        *out = e->values + expert * (uint64_t)k;
        return WEFT_OK;
    }
    return WEFT_OK;
}

size_t weft__imatrix_size(const weft__imatrix *m)
{
    return m->n;
}

const char *weft__imatrix_name(const weft__imatrix *m, size_t i)
{
    return m->entries[i].name;
}

int weft__imatrix_has(const weft__imatrix *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->entries[i].name, name)) return 1;
    return 0;
}
