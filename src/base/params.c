// SPDX-License-Identifier: Apache-2.0
/* params.c: see params.h. */
#include "base/params.h"

#include <string.h>

/* `size` and one field behind it at least. */
static int is_size(const weft__params_type *type, uint32_t size)
{
    return size >= 2 * sizeof size && size <= WEFT__PARAMS_MAX && size % type->align == 0;
}

static weft_status params_refuse(const weft__params_type *type, uint32_t size, weft_error *err)
{
    return weft_fail(
        err, WEFT_ABI,
        "%s has %u bytes; this build has %u: set its size, or begin with the function that fills in the defaults",
        type->name, size, type->size);
}

weft_status weft__params_read(const weft__params_type *type, void *own, const void *given, weft_error *err)
{
    uint32_t size;
    if (!given) return WEFT_OK;
    memcpy(&size, given, sizeof size);
    if (!is_size(type, size)) return params_refuse(type, size, err);
    for (uint32_t i = type->size; i < size; i++)
        if (((const char *)given)[i])
            return weft_fail(
                err, WEFT_ABI,
                "%s has %u bytes and sets something beyond the %u that this build knows: use a newer library",
                type->name, size, type->size);
    memcpy((char *)own + sizeof size, (const char *)given + sizeof size,
           (size < type->size ? size : type->size) - sizeof size);
    return WEFT_OK;
}

weft_status weft__params_write(const weft__params_type *type, void *out, const void *own, weft_error *err)
{
    uint32_t size;
    memcpy(&size, out, sizeof size);
    if (!is_size(type, size)) return params_refuse(type, size, err);
    weft__params_init(type, out, size, own);
    return WEFT_OK;
}

void weft__params_init(const weft__params_type *type, void *out, uint32_t size, const void *own)
{
    uint32_t known = size < type->size ? size : type->size;
    if (!is_size(type, size)) {
        memset(out, 0, sizeof size);
        return;
    }
    memcpy(out, own, known);
    memset((char *)out + known, 0, size - known);
    memcpy(out, &size, sizeof size);
}
