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

#endif
