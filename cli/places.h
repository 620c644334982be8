// SPDX-License-Identifier: Apache-2.0
/* places.h: where files of a user lie: what is kept between runs, and what the user sets. */
#ifndef WEFT_CLI_PLACES_H
#define WEFT_CLI_PLACES_H

#include <stddef.h>

/* $WEFT_CACHE/NAME, else in weft of $XDG_CACHE_HOME or ~/.cache. 0: no place, or it is too long. */
int place_in_cache(char *out, size_t room, const char *name);
/* The folders above a path, for their owner alone. -1 with errno set. */
int make_folders_above(const char *path);
/* All of a file of at most `most` bytes, with a NUL behind it, for free(); NULL: there is none, or no memory, or it is
 * longer. */
char *read_small(const char *path, size_t most, size_t *n);

#endif
