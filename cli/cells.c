// SPDX-License-Identifier: Apache-2.0
/* cells.c: see cells.h. Widths and the borders of clusters are those of utf8proc. */
#include "cells.h"

#include <utf8proc.h>

#include "base/text.h"
#include "terminal.h"

int cell_width(uint32_t cp)
{
    const int width = utf8proc_charwidth((utf8proc_int32_t)cp);
    return width < 0 ? 0 : width > 2 ? 2 : width;
}

size_t cell_cluster(const char *s, size_t n)
{
    uint32_t last, next;
    utf8proc_int32_t state = 0;
    size_t used = weft__utf8_decode(s, n, &last, NULL);
    while (used < n) {
        const size_t more = weft__utf8_decode(s + used, n - used, &next, NULL);
        if (last < 0x20 || next < 0x20) break; /* CR and LF are one to Unicode, and two here */
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)last, (utf8proc_int32_t)next, &state)) break;
        used += more;
        last = next;
    }
    return used;
}

int cell_shown(const char *s, size_t n, char room[16], const char **shown, size_t *n_shown)
{
    uint32_t cp;
    int bad = 0, width = 0;
    weft__utf8_decode(s, n, &cp, &bad);
    if (bad || clean_form(cp, room)) {
        const size_t length = bad ? weft__utf8_encode(0xFFFD, room) : clean_form(cp, room);
        *shown = room;
        *n_shown = length;
        return bad ? 1 : (int)length;
    }
    *shown = s;
    *n_shown = n;
    for (size_t i = 0; i < n;) {
        i += weft__utf8_decode(s + i, n - i, &cp, &bad);
        const int one = cell_width(cp);
        if (one > width) width = one;
    }
    return width;
}
