// SPDX-License-Identifier: Apache-2.0
/* unicode.h: what the tokenizers ask about characters; the only door to utf8proc. Stateless; thread-safe. */
#ifndef WEFT_TEXT_UNICODE_H
#define WEFT_TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

typedef enum weft__unicode_form {
    WEFT__UNICODE_NFC,
    WEFT__UNICODE_NFD,
    WEFT__UNICODE_NFKC,
    WEFT__UNICODE_NFKD
} weft__unicode_form;

/* Appends s[0..n), which is well-formed UTF-8, in that form; linear time, also for hostile runs of combining marks. A
 * failure shows in out->failed. */
void weft__unicode_normalize(weft__strbuf *out, const char *s, size_t n, weft__unicode_form form);

int weft__unicode_is_space(uint32_t cp); /* White_Space */
int weft__unicode_is_mark(uint32_t cp);  /* Mn */
int weft__unicode_is_word(
    uint32_t cp); /* \w of Unicode's regular expressions: alphabetic, marks, digits, connectors, joiners */
int weft__unicode_is_other(uint32_t cp); /* Cc, Cf, Cn, Co, Cs */
/* Appends the lower-case form. */
void weft__unicode_put_lower(weft__strbuf *out, uint32_t cp);
/* The upper-case form of one character, or that of sharp s. */
void weft__unicode_put_upper(weft__strbuf *out, uint32_t cp);

#endif
