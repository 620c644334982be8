// SPDX-License-Identifier: Apache-2.0
/* text.h: a growing byte string, and UTF-8. Strings here carry a length and may hold any byte. Not thread-safe per
 * object. */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

/* Zero-initialise. `data` is NUL-terminated whenever it is not NULL. After a failed append `failed` is 1 and stays so,
 * so a long chain of appends is checked once at its end. */
typedef struct weft__strbuf {
    char *data;
    size_t len, capacity;
    int failed;
} weft__strbuf;

void weft__strbuf_free(weft__strbuf *t);
void weft__strbuf_put(weft__strbuf *t, const void *bytes, size_t n);
void weft__strbuf_puts(weft__strbuf *t, const char *s);
void weft__strbuf_putc(weft__strbuf *t, char c);
void weft__strbuf_printf(weft__strbuf *t, const char *format, ...) WEFT_PRINTF(2, 3);
/* Appends code point cp in UTF-8; anything that is no Unicode scalar value becomes U+FFFD. */
void weft__strbuf_put_utf8(weft__strbuf *t, uint32_t cp);

/* Bytes of the character that begins with lead byte c: 1..4, or 0 when c cannot begin one. */
int weft__utf8_length(unsigned char c);
/* Decodes one character at s[0..n), n >= 1. Stores the code point and returns the bytes used; on malformed input stores
 * U+FFFD, uses 1 byte and sets *bad (which may be NULL) to 1. Rejects overlong forms, surrogates and values above
 * U+10FFFF. */
size_t weft__utf8_decode(const char *s, size_t n, uint32_t *cp, int *bad);
/* Text from outside made fit for a message: copies whole characters of s[0..n) into out, terminated, while they and
 * "..." fit into `room` bytes, room >= 4, and cuts the rest; control characters (C0, DEL, C1) and malformed bytes
 * become '?'. Returns out. */
const char *weft__utf8_show(char *out, size_t room, const char *s, size_t n);
/* Writes cp into out (4 bytes of room), returns the count. */
size_t weft__utf8_encode(uint32_t cp, char out[4]);
/* 1 when s[0..n) is well-formed UTF-8. */
int weft__utf8_valid(const char *s, size_t n);

/* The last part of a path, without slashes behind it: its n bytes there. "/" and "" have none. */
const char *weft__path_last(const char *path, size_t *n);

/* A name for a file, never a path: 1 to `most` letters, digits, '.', '_' and '-', and not "." or "..". */
int weft__path_is_plain_name(const char *name, size_t most);

#endif
