// SPDX-License-Identifier: Apache-2.0
/* manifest.h: the record of what was pulled into one repository's folder:
 *   {"files": {PATH: {"size": BYTES, "id": ID, "sha256": HEX}}, "folder": [PATH, ...]}
 * "folder" is there when the folder itself is a model (safetensors), and names all files that it needs. A tree belongs
 * to its caller. */
#ifndef WEFT_HUB_MANIFEST_H
#define WEFT_HUB_MANIFEST_H

#include "base/json.h"
#include "hub/hub.h"

/* An empty one when there is none. *out is freed with weft__json_free. */
weft_status weft__manifest_read(int dir, weft__json **out, weft_error *err);
/* Whether it knows the file with that content and n_bytes, its size on the disk. */
int weft__manifest_has(const weft__json *m, const weft__hub_file *file, uint64_t n_bytes);
/* Enters a file and writes the record. */
weft_status weft__manifest_put(int dir, weft__json *m, const weft__hub_file *file, uint64_t n_bytes, const char *sha256,
                               weft_error *err);
/* Says that the folder is a model of these files, and writes the record. */
weft_status weft__manifest_set_folder(int dir, weft__json *m, const weft__hub_choice *files, weft_error *err);
/* The paths that the folder needs, or NULL when it is no model. Borrowed. */
const weft__json *weft__manifest_folder(const weft__json *m);

#endif
