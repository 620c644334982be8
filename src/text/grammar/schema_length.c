// SPDX-License-Identifier: Apache-2.0
/* schema_length.c: strings of JSON with bounds on their characters.
 *
 * Few characters are written out, one state behind the other. Many are blocks, which all such strings share: a whole
 * number of them, and what is left over, written out. Masks cost more where a block ends within a token (matcher.h), so
 * blocks are long; and what follows a backslash is called, while the character around it is not. */
#include "text/grammar/build.h"
#include "text/grammar/schema_parts.h"

enum { BLOCK = 512, WRITTEN_OUT = 2 * BLOCK };

static int32_t character(weft__gram *g)
{
    int32_t rule = GRAM_RULE("counted char"), escape = GRAM_RULE("counted escape");
    if (weft__gram_failed(g)) return -1;
    if (!weft__gram_defined(g, rule)) {
        weft__gram_define(g, escape, weft__gram_json_escape(g));
        weft__gram_call(g, escape);
        int32_t plain = GRAM_REF(GRAM_RULE("plain")), mark = GRAM_TEXT("\\");
        weft__gram_define(g, rule, GRAM_ALT(plain, GRAM_SEQ(mark, GRAM_REF(escape))));
        weft__gram_inline(g, rule);
    }
    return GRAM_REF(rule);
}

static int32_t blocks(weft__gram *g, uint32_t min, uint32_t max)
{
    int32_t rule = GRAM_RULE("block of characters");
    if (weft__gram_failed(g)) return -1;
    if (!weft__gram_defined(g, rule)) {
        weft__gram_define(g, rule, GRAM_REPEAT(BLOCK, BLOCK, character(g)));
        weft__gram_call(g, rule);
    }
    return GRAM_REPEAT(min, max, GRAM_REF(rule));
}

static int32_t exactly(weft__gram *g, uint32_t n)
{
    if (n <= WRITTEN_OUT) return GRAM_REPEAT(n, n, character(g));
    int32_t whole = blocks(g, n / BLOCK, n / BLOCK);
    return GRAM_SEQ(whole, GRAM_REPEAT(n % BLOCK, n % BLOCK, character(g)));
}

/* Behind fewer blocks than there is room for, what is left over is any number below one; behind all of them, what there
 * is room for. */
static int32_t at_most(weft__gram *g, uint32_t n)
{
    if (n == UINT32_MAX || n <= WRITTEN_OUT) return GRAM_REPEAT(0, n, character(g));
    int32_t some = blocks(g, 0, n / BLOCK - 1), rest = GRAM_REPEAT(0, BLOCK - 1, character(g));
    int32_t all = blocks(g, n / BLOCK, n / BLOCK), last = GRAM_REPEAT(0, n % BLOCK, character(g));
    return GRAM_ALT(GRAM_SEQ(some, rest), GRAM_SEQ(all, last));
}

int32_t weft__gram_schema_length(weft__gram *g, uint32_t min, uint32_t max)
{
    int32_t least = exactly(g, min);
    return GRAM_SEQ(least, at_most(g, max == UINT32_MAX ? max : max - min));
}
