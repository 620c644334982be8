// SPDX-License-Identifier: Apache-2.0
/* place.h: the folder of what is kept between runs, and how small files come into it. Reentrant. */
#ifndef WEFT_BASE_PLACE_H
#define WEFT_BASE_PLACE_H

#include <stddef.h>

/* $WEFT_CACHE, else $XDG_CACHE_HOME/weft where that is absolute, else $HOME/.cache/weft; behind it "/NAME" unless name
 * is NULL. 1; 0: the environment names no place; -1: it is too long. */
int weft__place_in_cache(char *out, size_t room, const char *name);
/* Makes the folders above a path, for their owner alone. -1 with errno set. */
int weft__place_folders(const char *path);
/* A whole file at once, which appears, or replaces another, when it is complete; folders are made. For small files that
 * can be done without: a system that stops may lose it. 1, or 0: it could not be written, and nothing changed. */
int weft__place_put(const char *path, const void *bytes, size_t n);

#endif
