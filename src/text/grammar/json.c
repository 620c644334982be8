// SPDX-License-Identifier: Apache-2.0
/* json.c: the built-in grammars of JSON (RFC 8259), put together by the builder as any other caller does it. */
#include <string.h>

#include "text/grammar/build.h"

/* \uXXXX outside the surrogates, or a high and a low one. */
static int32_t unicode_escape(weft__gram *g)
{
    int32_t basic = GRAM_ALT(
        GRAM_SEQ(GRAM_CLASS({'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}), GRAM_REPEAT(3, 3, GRAM_HEX)),
        GRAM_SEQ(GRAM_CLASS({'D', 'D'}, {'d', 'd'}), GRAM_CLASS({'0', '7'}), GRAM_REPEAT(2, 2, GRAM_HEX)));
    int32_t high = GRAM_SEQ(GRAM_CLASS({'D', 'D'}, {'d', 'd'}), GRAM_CLASS({'8', '9'}, {'A', 'B'}, {'a', 'b'}),
                            GRAM_REPEAT(2, 2, GRAM_HEX));
    int32_t low = GRAM_SEQ(GRAM_TEXT("\\u"), GRAM_CLASS({'D', 'D'}, {'d', 'd'}), GRAM_CLASS({'C', 'F'}, {'c', 'f'}),
                           GRAM_REPEAT(2, 2, GRAM_HEX));
    return GRAM_SEQ(GRAM_TEXT("u"), GRAM_ALT(basic, GRAM_SEQ(high, low)));
}

int32_t weft__gram_json_escape(weft__gram *g)
{
    int32_t letter = GRAM_REF(GRAM_RULE("escaped"));
    return GRAM_ALT(letter, unicode_escape(g));
}

static int32_t number(weft__gram *g)
{
    int32_t whole = GRAM_ALT(GRAM_TEXT("0"), GRAM_SEQ(GRAM_CLASS({'1', '9'}), GRAM_DIGITS(0, 17)));
    int32_t fraction = GRAM_OPTIONAL(GRAM_SEQ(GRAM_TEXT("."), GRAM_DIGITS(1, 20)));
    /* What it can be at most is a double. */
    int32_t sign = GRAM_OPTIONAL(GRAM_CLASS({'+', '+'}, {'-', '-'})), small = GRAM_SEQ(sign, GRAM_DIGITS(1, 2));
    int32_t plus = GRAM_OPTIONAL(GRAM_TEXT("+")), one = GRAM_TEXT("1"), large = GRAM_SEQ(plus, one, GRAM_DIGITS(2, 2));
    int32_t minus = GRAM_TEXT("-"), tiny = GRAM_SEQ(minus, GRAM_DIGITS(3, 3)), e = GRAM_CLASS({'E', 'E'}, {'e', 'e'});
    int32_t exponent = GRAM_OPTIONAL(GRAM_SEQ(e, GRAM_ALT(small, large, tiny)));
    return GRAM_SEQ(GRAM_OPTIONAL(GRAM_TEXT("-")), whole, fraction, exponent);
}

void weft__gram_json_parts(weft__gram *g)
{
    int32_t ws = GRAM_RULE("ws"), gap = GRAM_RULE("gap"), string = GRAM_RULE("string"), character = GRAM_RULE("char"),
            scalar = GRAM_RULE("scalar"), any_number = GRAM_RULE("number"), value = GRAM_RULE("value"),
            object = GRAM_RULE("object"), array = GRAM_RULE("array"), nested = GRAM_RULE("nested"),
            member = GRAM_RULE("member"), plain = GRAM_RULE("plain"), escaped = GRAM_RULE("escaped");
    int32_t indent = GRAM_RULE("indent"); /* called where there is much of it */
    weft__gram_define(g, indent, GRAM_ALT(GRAM_REPEAT(0, 32, GRAM_TEXT(" ")), GRAM_REPEAT(1, 32, GRAM_TEXT("\t"))));
    weft__gram_define(g, gap, GRAM_OPTIONAL(GRAM_TEXT(" ")));
    int32_t newline = GRAM_TEXT("\n");
    weft__gram_define(g, ws, GRAM_OPTIONAL(GRAM_ALT(GRAM_TEXT(" "), GRAM_SEQ(newline, GRAM_REF(indent)))));
    int32_t mark = GRAM_TEXT("\\"), escape = GRAM_SEQ(mark, weft__gram_json_escape(g));
    weft__gram_define(g, plain, GRAM_CLASS({0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}));
    weft__gram_define(
        g, escaped,
        GRAM_CLASS({'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}));
    weft__gram_define(g, character, GRAM_ALT(GRAM_REF(plain), escape));
    weft__gram_define(g, string, GRAM_SEQ(GRAM_TEXT("\""), GRAM_ANY_NUMBER(GRAM_REF(character)), GRAM_TEXT("\"")));
    weft__gram_define(g, any_number, number(g));
    weft__gram_define(
        g, scalar,
        GRAM_ALT(GRAM_TEXT("true"), GRAM_TEXT("false"), GRAM_TEXT("null"), GRAM_REF(string), GRAM_REF(any_number)));
    /* Only `nested` recurses; where calls reach their limit a scalar is always left, so that no text gets stuck. */
    weft__gram_define(g, value, GRAM_ALT(GRAM_REF(scalar), GRAM_REF(nested)));
    weft__gram_define(g, member, GRAM_SEQ(GRAM_REF(string), GRAM_TEXT(":"), GRAM_REF(gap), GRAM_REF(value)));
    weft__gram_define(
        g, object,
        GRAM_SEQ(GRAM_TEXT("{"), GRAM_REF(ws),
                 GRAM_OPTIONAL(GRAM_SEQ(GRAM_REF(member),
                                        GRAM_ANY_NUMBER(GRAM_SEQ(GRAM_TEXT(","), GRAM_REF(ws), GRAM_REF(member))),
                                        GRAM_REF(ws))),
                 GRAM_TEXT("}")));
    int32_t element = GRAM_REF(value), more = GRAM_SEQ(GRAM_TEXT(","), GRAM_REF(ws), GRAM_REF(value));
    weft__gram_define(g, array,
                      GRAM_SEQ(GRAM_TEXT("["), GRAM_REF(ws),
                               GRAM_OPTIONAL(GRAM_SEQ(element, GRAM_ANY_NUMBER(more), GRAM_REF(ws))), GRAM_TEXT("]")));
    weft__gram_define(g, nested, GRAM_ALT(GRAM_REF(object), GRAM_REF(array)));
    weft__gram_call(g, nested);
    weft__gram_inline(g, plain);
    weft__gram_inline(g, escaped);
    weft__gram_inline(g, character);
    weft__gram_inline(g, string);
}

/* Defines `root` as what the rule `what` is. */
static int32_t json_root(weft__gram *g, const char *what)
{
    int32_t root = GRAM_RULE("root");
    weft__gram_json_parts(g);
    weft__gram_define(g, root, GRAM_REF(weft__gram_rule(g, what, strlen(what))));
    return root;
}

int32_t weft__gram_json_object(weft__gram *g)
{
    return json_root(g, "object");
}

int32_t weft__gram_json_value(weft__gram *g)
{
    return json_root(g, "value");
}
