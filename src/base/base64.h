// SPDX-License-Identifier: Apache-2.0
/* base64.h: base64 (RFC 4648, section 4). Pure. */
#ifndef WEFT_BASE_BASE64_H
#define WEFT_BASE_BASE64_H

#include "base/text.h"

/* Appends it, padded, on one line. */
void weft__base64_put(weft__strbuf *out, const void *bytes, size_t n);
/* Strict: padded, nothing but its digits, no bits that say nothing; so a value has one text. Writes at most `room`
 * bytes. 1, or 0: it is none, or longer than that. */
int weft__base64_read(const char *text, size_t n, void *out, size_t room, size_t *n_out);

#endif
