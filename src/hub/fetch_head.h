// SPDX-License-Identifier: Apache-2.0
/* fetch_head.h: the head of a file on the server, as a file of the whole size that is a hole behind it. One thread. */
#ifndef WEFT_HUB_FETCH_HEAD_H
#define WEFT_HUB_FETCH_HEAD_H

#include "hub/remote.h"

/* Makes LEAF in folder dir. GGUF files and safetensors have their head, others all their bytes, of which there may be
 * 64 MB. Fails with WEFT_FORMAT (no head of such a file), WEFT_LIMIT (too long), WEFT_IO, WEFT_CANCELLED,
 * WEFT_NO_MEMORY; there may be a part of the file then. */
weft_status weft__hub_fetch_head(weft__remote *remote, const weft__hub_name *name, const weft__hub_file *file, int dir,
                                 const char *leaf, weft_error *err);

#endif
