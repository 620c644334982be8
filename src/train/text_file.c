// SPDX-License-Identifier: Apache-2.0
/* text_file.c: see text_file.h. Stateless. */
#include "train/text_file.h"

#include <string.h>

static int begins_with(const char *bytes, size_t n, const char *mark, size_t n_mark)
{
    return n >= n_mark && !memcmp(bytes, mark, n_mark);
}

weft_status weft__train_text_begin(const char *bytes, size_t n, size_t *skip, weft_error *err)
{
    *skip = begins_with(bytes, n, "\xEF\xBB\xBF", 3) ? 3 : 0;
    if (begins_with(bytes, n, "GGUF", 4)) return weft_fail(err, WEFT_FORMAT, "it is a GGUF file, not text");
    return WEFT_OK;
}
