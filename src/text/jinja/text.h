// SPDX-License-Identifier: Apache-2.0
/* text.h: text operations that filters and methods of strings share (text.c). Owned by the rendering. */
#ifndef WEFT_TEXT_JINJA_TEXT_H
#define WEFT_TEXT_JINJA_TEXT_H

#include "text/jinja/value.h"

typedef enum weft__jinja_pad_side {
    WEFT__JINJA_PAD_BOTH,
    WEFT__JINJA_PAD_LEFT,
    WEFT__JINJA_PAD_RIGHT
} weft__jinja_pad_side;

/* s brought to `width` characters by adding fill (one character; NULL: a blank) on the side(s) named. */
weft_status weft__jinja_pad(weft__jinja_ctx *c, const weft__jinja_str *s, int64_t width, const weft__jinja_str *fill,
                            weft__jinja_pad_side side, weft__jinja_val *out);
/* At most count replacements; all when negative. */
weft_status weft__jinja_replace(weft__jinja_ctx *c, const weft__jinja_str *s, const weft__jinja_str *old,
                                const weft__jinja_str *new, int64_t count, weft__jinja_val *out);
/* str.splitlines(keep_ends). With `always_last`, text after the last line end counts as a line even when it is
 * empty. */
weft_status weft__jinja_splitlines(weft__jinja_ctx *c, const weft__jinja_str *s, int keep_ends, int always_last,
                                   weft__jinja_val *out);
/* `chars` a string, none or missing. */
weft_status weft__jinja_stripped(weft__jinja_ctx *c, const char *what, const weft__jinja_str *s, weft__jinja_val chars,
                                 int left, int right, weft__jinja_val *out);
/* str.split and str.rsplit; separator NULL: white space; at most max splits, or any number when negative. */
weft_status weft__jinja_split(weft__jinja_ctx *c, const weft__jinja_str *s, const weft__jinja_str *separator,
                              int64_t max, weft__jinja_val *out);
weft_status weft__jinja_rsplit(weft__jinja_ctx *c, const weft__jinja_str *s, const weft__jinja_str *separator,
                               int64_t max, weft__jinja_val *out);
/* separator.join(items); with `convert` items that are not strings are printed, otherwise they are an error. */
weft_status weft__jinja_join(weft__jinja_ctx *c, const weft__jinja_str *separator, weft__jinja_val items, int convert,
                             weft__jinja_val *out);
/* str.isupper or str.islower: some character has a case, and all that have one have this one. */
weft_status weft__jinja_is_case(weft__jinja_ctx *c, const weft__jinja_str *s, int upper, weft__jinja_val *out);
int weft__jinja_is_alpha(uint32_t cp);
int weft__jinja_is_alnum(uint32_t cp);

#endif
