// SPDX-License-Identifier: Apache-2.0
/* svg.c: see svg.h. */
#include "base/svg.h"

#include <string.h>

void weft__svg_begin(weft__strbuf *t, int width, int height, const char *style)
{
    weft__strbuf_printf(t,
                        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
                        "font-size=\"12\">\n<style>%s</style>\n"
                        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                        width, height, style);
}

void weft__svg_text(weft__strbuf *t, const char *text)
{
    uint32_t cp;
    for (size_t n = strlen(text); n;) {
        int bad = 0;
        const size_t used = weft__utf8_decode(text, n, &cp, &bad);
        if (cp == '<') weft__strbuf_puts(t, "&lt;");
        else if (cp == '>') weft__strbuf_puts(t, "&gt;");
        else if (cp == '&') weft__strbuf_puts(t, "&amp;");
        else if (!bad && cp >= 0x20 && cp != 0xFFFE && cp != 0xFFFF) weft__strbuf_put(t, text, used);
        text += used;
        n -= used;
    }
}

void weft__svg_label(weft__strbuf *t, double x, double y, const char *anchor, const char *text)
{
    weft__strbuf_printf(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    weft__svg_text(t, text);
    weft__strbuf_puts(t, "</text>\n");
}
