// SPDX-License-Identifier: Apache-2.0
/* tensors.c: sizes of tensors, sets of tensors, and the search for tensors that overlap.
 * Invariant: names[i] in a set's table is items[i].name. One writer. */
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "format/tensors.h"

/* Types that exist in files of this field and that this build cannot read, so that a message can name them. */
static const char *foreign_type(uint32_t dtype)
{
    switch (dtype) {
    case 9: return "Q8_1";
    case 15: return "Q8_K";
    case 16: return "IQ2_XXS";
    case 17: return "IQ2_XS";
    case 18: return "IQ3_XXS";
    case 19: return "IQ1_S";
    case 21: return "IQ3_S";
    case 22: return "IQ2_S";
    case 29: return "IQ1_M";
    case 34: return "TQ1_0";
    case 35: return "TQ2_0";
    case 39: return "MXFP4";
    default: return NULL;
    }
}

static weft_status check_type(uint32_t dtype, weft_dtype_info *info, weft_error *err)
{
    *info = weft_dtype_describe(dtype);
    if (info->name) return WEFT_OK;
    const char *foreign = foreign_type(dtype);
    if (foreign) return weft_fail(err, WEFT_UNSUPPORTED, "type %u (%s) is not supported by this build", dtype, foreign);
    return weft_fail(err, WEFT_UNSUPPORTED, "type id %u is unknown", dtype);
}

weft_status weft__tensor_measure(uint32_t dtype, uint32_t n_dims, const uint64_t *d, uint64_t *n_elems,
                                 uint64_t *n_bytes, weft_error *err)
{
    weft_dtype_info info;
    if (n_dims < 1 || n_dims > WEFT__TENSOR_DIMS)
        return weft_fail(err, WEFT_FORMAT, "%u dimensions are not between 1 and %d", n_dims, WEFT__TENSOR_DIMS);
    weft_status status = check_type(dtype, &info, err);
    if (status != WEFT_OK) return status;
    uint64_t elems = 1, bytes;
    for (uint32_t i = 0; i < n_dims; i++) {
        if (d[i] == 0) return weft_fail(err, WEFT_FORMAT, "dimension %u is 0", i);
        if (!weft__checked_mul(elems, d[i], &elems) || elems > INT64_MAX)
            return weft_fail(err, WEFT_FORMAT, "its number of elements overflows at dimension %u, which is %llu", i,
                             (unsigned long long)d[i]);
    }
    if (d[0] % info.block_elems)
        return weft_fail(err, WEFT_FORMAT, "dimension 0 is %llu, not a multiple of the %u elements in a %s block",
                         (unsigned long long)d[0], info.block_elems, info.name);
    if (!weft__checked_mul(elems / info.block_elems, info.block_bytes, &bytes) || bytes > INT64_MAX)
        return weft_fail(err, WEFT_FORMAT, "the size of its %llu elements of type %s overflows",
                         (unsigned long long)elems, info.name);
    *n_elems = elems;
    *n_bytes = bytes;
    return WEFT_OK;
}

int weft__tensor_set_add(weft__tensor_set *set, const weft__tensor_desc *t, uint32_t *existing)
{
    if (set->n >= UINT32_MAX || !weft__grow(&set->items, &set->capacity, set->n + 1, sizeof *set->items)) return -1;
    int added = weft__name_table_put(&set->names, t->name, strlen(t->name), (uint32_t)set->n, existing);
    if (added == 1) set->items[set->n++] = *t;
    return added;
}

void weft__tensor_set_free(weft__tensor_set *set)
{
    weft__free(set->items);
    weft__name_table_free(&set->names);
    *set = (weft__tensor_set){0};
}

const weft__tensor_desc *weft__tensor_find(const weft__tensor_set *set, const char *name)
{
    int64_t i = weft__name_table_find(&set->names, name, strlen(name));
    return i < 0 ? NULL : &set->items[i];
}

typedef struct range {
    uint64_t offset;
    size_t index;
} range;

/* Lets r[i] sink to its place in the heap r[0..n), largest offset on top. */
static void sink(range *r, size_t i, size_t n)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && r[child + 1].offset > r[child].offset) child++;
        if (r[i].offset >= r[child].offset) return;
        range swap = r[i];
        r[i] = r[child], r[child] = swap;
    }
}

/* Heapsort: in place and n log n whatever the file holds. */
static void sort_ranges(range *r, size_t n)
{
    for (size_t i = n / 2; i-- > 0;) sink(r, i, n);
    for (size_t end = n; end-- > 1;) {
        range top = r[0];
        r[0] = r[end], r[end] = top;
        sink(r, 0, end);
    }
}

int weft__tensor_overlap(const weft__tensor_set *set, size_t first, size_t pair[2])
{
    size_t n = set->n - first;
    int sorted = 1;
    if (n < 2) return 0;
    range *r = weft__alloc_array(n, sizeof *r);
    if (!r) return -1;
    for (size_t i = 0; i < n; i++) {
        r[i] = (range){set->items[first + i].offset, first + i};
        sorted &= i == 0 || r[i - 1].offset <= r[i].offset;
    }
    if (!sorted) sort_ranges(r, n);
    int found = 0;
    for (size_t i = 1; i < n && !found; i++) {
        const weft__tensor_desc *before = &set->items[r[i - 1].index];
        if (r[i].offset - before->offset < before->n_bytes) {
            pair[0] = r[i - 1].index, pair[1] = r[i].index;
            found = 1;
        }
    }
    weft__free(r);
    return found;
}
