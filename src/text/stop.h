// SPDX-License-Identifier: Apache-2.0
/* stop.h: stop strings, found in a text as it grows.
 *
 * Bytes that may still become a stop string are held back. The stop string that is complete first ends the text; of
 * several that end at the same byte, the longest. Each byte costs a constant time per stop string (Knuth, Morris and
 * Pratt 1977), so that no text makes the engine's thread wait. One thread per object. */
#ifndef WEFT_TEXT_STOP_H
#define WEFT_TEXT_STOP_H

#include "base/text.h"
#include "weft/error.h"

typedef struct weft__stop {
    struct weft__stop_string *strings; /* [n] */
    int n;
    weft__strbuf held; /* bytes that are not certain yet */
    int found;         /* the string that ended the text, or -1 */
    size_t cut;        /* bytes of the text before it, all told */
} weft__stop;

/* Copies the strings, none of which is empty or longer than 64 KiB. */
weft_status weft__stop_begin(weft__stop *s, const char *const *strings, const size_t *lengths, int n, weft_error *err);
void weft__stop_free(weft__stop *s);
/* Takes bytes[0..n) and appends those that became certain to out. Returns 1 when a stop string is complete; it and what
 * follows it are dropped, and nothing more is to be pushed. */
int weft__stop_push(weft__stop *s, const char *bytes, size_t n, weft__strbuf *out);
/* The text ends without a stop string: appends what was held. */
void weft__stop_flush(weft__stop *s, weft__strbuf *out);
const char *weft__stop_found(const weft__stop *s, size_t *n);

#endif
