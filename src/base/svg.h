// SPDX-License-Identifier: Apache-2.0
/* svg.h: what pictures of commands have in common: how they begin, and texts in them. Stateless; what is appended fails
 * as weft__strbuf does. */
#ifndef WEFT_BASE_SVG_H
#define WEFT_BASE_SVG_H

#include "base/text.h"

/* "<svg ...>" of that size on white ground, with a style sheet, which is written as it is. The caller ends it with
 * "</svg>\n". */
void weft__svg_begin(weft__strbuf *t, int width, int height, const char *style);
/* A text from outside as XML takes it: what has no place there (control characters, bytes that are no UTF-8) is left
 * out. */
void weft__svg_text(weft__strbuf *t, const char *text);
/* A line of text at x, y, which is its "start", "middle" or "end". */
void weft__svg_label(weft__strbuf *t, double x, double y, const char *anchor, const char *text);

#endif
