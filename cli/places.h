// SPDX-License-Identifier: Apache-2.0
/* places.h: where what the user sets lies (what is kept between runs: base/place.h). */
#ifndef WEFT_CLI_PLACES_H
#define WEFT_CLI_PLACES_H

#include <stddef.h>

/* $XDG_CONFIG_HOME/weft/NAME, else ~/.config/weft/NAME. 0: no place, or it is too long. */
int place_in_config(char *out, size_t room, const char *name);
/* All of a file of at most `most` bytes, with a NUL behind it, for free(); NULL: there is none, or no memory, or it is
 * longer. */
char *read_small(const char *path, size_t most, size_t *n);

#endif
