// SPDX-License-Identifier: Apache-2.0
/* thoughts.c: see thoughts.h. Stateless. */
#include "text/grammar/thoughts.h"

#include <string.h>

#include "text/grammar/build.h"
#include "text/grammar/parts.h"

/* What stands between thoughts and whatever follows them, their own end aside. */
static const char *resume_of(const weft__answer_style *style)
{
    return style->format->resume ? style->format->resume : "";
}

/* The mark with which text begins where the model has just begun to answer; "": none. */
static const char *lead_of(const weft__answer_style *style)
{
    const char *answer = style->format->answer ? style->format->answer : "";
    size_t n = strlen(resume_of(style));
    return strncmp(answer, resume_of(style), n) ? answer : answer + n;
}

int32_t weft__gram_thoughts(weft__gram *g, const weft__answer_style *style, weft__gram_thinking thinking)
{
    const weft__answer_reasoning *r = style->reasoning;
    const char *resume = resume_of(style);
    int32_t thoughts = thinking == WEFT__GRAM_ENDS_THINKING ? GRAM_REPEAT(0, 2, GRAM_TEXT("\n"))
                                                            : weft__gram_without(g, r->end, strlen(r->end)),
            end = weft__gram_marker(g, r->end, strlen(r->end));
    int32_t space = GRAM_REPEAT(0, 2, GRAM_TEXT("\n"));
    int32_t all = GRAM_SEQ(thoughts, end, space, weft__gram_marker(g, resume, strlen(resume)));
    if (thinking != WEFT__GRAM_MAY_THINK) return all;
    int32_t begin = weft__gram_marker(g, r->begin, strlen(r->begin));
    return GRAM_OPTIONAL(GRAM_SEQ(begin, all));
}

int weft__gram_has_lead(const weft__answer_style *style, weft__gram_thinking thinking)
{
    return (style->reasoning && thinking) || *lead_of(style);
}

int32_t weft__gram_led(weft__gram *g, const weft__answer_style *style, int32_t form)
{
    const char *lead = lead_of(style);
    int32_t mark = GRAM_OPTIONAL(weft__gram_marker(g, lead, strlen(lead)));
    return GRAM_SEQ(mark, GRAM_REF(form));
}

int32_t weft__gram_behind_thoughts(weft__gram *g, const weft__answer_style *style, weft__gram_thinking thinking,
                                   int32_t form)
{
    int32_t answer = GRAM_RULE("an answer"), thoughts = GRAM_TEXT("");
    if (style->reasoning && thinking) thoughts = weft__gram_thoughts(g, style, thinking);
    weft__gram_define(g, answer, GRAM_SEQ(thoughts, weft__gram_led(g, style, form)));
    return answer;
}
