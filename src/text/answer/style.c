// SPDX-License-Identifier: Apache-2.0
/* style.c: how the answers to a template's prompts are read, by what the template's text has in it (format.h). */
#include <string.h>

#include "text/answer/format.h"

static int has_all(const char *source, size_t n, const char *const *signs)
{
    for (; *signs; signs++)
        if (!memmem(source, n, *signs, strlen(*signs))) return 0;
    return 1;
}

weft__answer_style weft__answer_style_of(const char *source, size_t n, int shows_tools)
{
    weft__answer_style style = {.format = &weft__answer_formats[weft__answer_n_formats - (shows_tools ? 2 : 1)]};
    for (size_t i = 0; i < weft__answer_n_formats; i++) {
        const weft__answer_format *f = &weft__answer_formats[i];
        if (!f->signs || !has_all(source, n, f->signs)) continue;
        style.format = f;
        break;
    }
    style.reasoning = style.format->reasoning;
    for (size_t i = 0; i < weft__answer_n_reasonings && !style.reasoning; i++)
        if (has_all(source, n, weft__answer_reasonings[i].signs)) style.reasoning = &weft__answer_reasonings[i];
    return style;
}
