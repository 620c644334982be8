// SPDX-License-Identifier: Apache-2.0
/* safetensors.c: fuzzes the safetensors reader: any bytes are either refused with a message or can be walked from end
 * to end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "format/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t touched; /* keeps the reads alive */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft__safetensors *st;
    weft_error err = {0};
    size_t live = weft__alloc_live();
    if (weft__safetensors_parse(data, size, "fuzz", &st, &err) == WEFT_OK) {
        const weft__tensor_set *set = weft__safetensors_tensors(st);
        for (size_t i = 0; i < set->n; i++) {
            const weft__tensor_desc *t = &set->items[i];
            const unsigned char *p = weft__tensor_data(t);
            if (weft__tensor_find(set, t->name) != t || t->n_bytes == 0) abort();
            for (uint64_t b = 0; b < t->n_bytes; b++) touched += p[b];
        }
    } else if (st || (size > 0 && !strstr(err.message, "fuzz: "))) {
        abort();
    }
    weft__safetensors_close(&st);
    if (weft__alloc_live() != live) abort();
    return 0;
}
