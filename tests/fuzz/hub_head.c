// SPDX-License-Identifier: Apache-2.0
/* hub_head.c: any bytes as the beginning of a model file: an end that is found lies within them, and stays where it is
 * when more follow. */
#include <stdlib.h>
#include <string.h>

#include "hub/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    weft__hub_head_found (*const all[])(const uint8_t *, size_t, size_t *) = {weft__hub_head_gguf,
                                                                              weft__hub_head_safetensors};
    for (int i = 0; i < 2; i++) {
        size_t end = 0, again = 0;
        if (all[i](data, n, &end) != WEFT__HUB_HEAD_WHOLE) continue;
        if (end > n) abort();
        if (all[i](data, end, &again) != WEFT__HUB_HEAD_WHOLE || again != end) abort();
        if (end > 0 && all[i](data, end - 1, &again) == WEFT__HUB_HEAD_WHOLE) abort();
    }
    return 0;
}
