// SPDX-License-Identifier: Apache-2.0
/* kept.h: what commands keep between runs: a JSON object in the cache, with an entry for each of what it tells apart.
 * What is missing or damaged says nothing. */
#ifndef WEFT_CLI_KEPT_H
#define WEFT_CLI_KEPT_H

#include "base/json.h"

/* The object in the file; NULL: there is none. */
weft__json *kept_read(const char *path);
/* Puts one entry, which becomes the object's in any case, into the file, which appears as a whole. 1, or 0: it could
 * not be kept. */
int kept_put(const char *path, const char *key, weft__json *entry);

#endif
