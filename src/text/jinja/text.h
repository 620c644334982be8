/* text.h: text operations that filters and methods of strings share (text.c). Owned by the rendering. */
#ifndef WEFT_TEXT_JINJA_TEXT_H
#define WEFT_TEXT_JINJA_TEXT_H

#include "text/jinja/value.h"

typedef enum weft__jpad { WEFT__J_PAD_BOTH, WEFT__J_PAD_LEFT, WEFT__J_PAD_RIGHT } weft__jpad;

/* s brought to `width` characters by adding fill (one character; NULL: a blank) on the side(s) named. */
weft_status weft__j_pad(weft__jctx *c, const weft__jstr *s, int64_t width, const weft__jstr *fill, weft__jpad side,
                        weft__jval *out);
/* At most count replacements; all when negative. */
weft_status weft__j_replace(weft__jctx *c, const weft__jstr *s, const weft__jstr *old, const weft__jstr *new, int64_t count,
                            weft__jval *out);
/* str.splitlines(keep_ends). With `always_last`, text after the last line end counts as a line even when it is empty. */
weft_status weft__j_splitlines(weft__jctx *c, const weft__jstr *s, int keep_ends, int always_last, weft__jval *out);
/* `chars` a string, none or missing. */
weft_status weft__j_stripped(weft__jctx *c, const char *what, const weft__jstr *s, weft__jval chars, int left, int right,
                             weft__jval *out);
/* str.split and str.rsplit; separator NULL: white space; at most max splits, or any number when negative. */
weft_status weft__j_split(weft__jctx *c, const weft__jstr *s, const weft__jstr *separator, int64_t max, weft__jval *out);
weft_status weft__j_rsplit(weft__jctx *c, const weft__jstr *s, const weft__jstr *separator, int64_t max, weft__jval *out);
/* separator.join(items); with `convert` items that are not strings are printed, otherwise they are an error. */
weft_status weft__j_join(weft__jctx *c, const weft__jstr *separator, weft__jval items, int convert, weft__jval *out);
/* str.isupper or str.islower: some character has a case, and all that have one have this one. */
weft_status weft__j_is_case(weft__jctx *c, const weft__jstr *s, int upper, weft__jval *out);
int weft__j_is_alpha(uint32_t cp);
int weft__j_is_alnum(uint32_t cp);

#endif
