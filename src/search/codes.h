// SPDX-License-Identifier: Apache-2.0
/* codes.h: codes of a bit per dimension: which are nearest to another (codes.c). Any thread. */
#ifndef WEFT_SEARCH_CODES_H
#define WEFT_SEARCH_CODES_H

#include <stddef.h>
#include <stdint.h>

/* Of codes[n][n_words] the `most` that differ from `code` in the fewest bits, of equals the first, where is_there[i] is
 * not 0: their numbers in rising order in out[0..*n_out). 0: no memory. */
int weft__search_codes_nearest(const uint64_t *codes, size_t n_words, size_t n, const uint64_t *code,
                               const unsigned char *is_there, size_t most, uint32_t *out, size_t *n_out);

/* How many of those that are there differ from `code` in fewer bits than entry places[i] does, or in as many and stand
 * before it: how many weft__search_codes_nearest puts before it; ranks[i], i < n_places. 0: no memory. */
int weft__search_codes_rank(const uint64_t *codes, size_t n_words, size_t n, const uint64_t *code,
                            const unsigned char *is_there, const uint32_t *places, size_t n_places, size_t *ranks);

#endif
