// SPDX-License-Identifier: Apache-2.0
/* json.c: the built-in grammars of JSON (RFC 8259), put together by the builder as any other caller does it. */
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
    int32_t ws = GRAM_RULE("ws"), string = GRAM_RULE("string"), character = GRAM_RULE("char"),
            scalar = GRAM_RULE("scalar"), any_number = GRAM_RULE("number"), value = GRAM_RULE("value"),
            object = GRAM_RULE("object"), array = GRAM_RULE("array"), nested = GRAM_RULE("nested"),
            member = GRAM_RULE("member");
    int32_t escaped = GRAM_RULE("escaped");
    weft__gram_define(
        g, escaped,
        GRAM_CLASS({'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}));
    int32_t escape = GRAM_SEQ(GRAM_TEXT("\\"), GRAM_ALT(GRAM_REF(escaped), unicode_escape(g)));
    int32_t plain = GRAM_CLASS({0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF});
    weft__gram_define(g, character, GRAM_ALT(plain, escape));
    weft__gram_define(g, string, GRAM_SEQ(GRAM_TEXT("\""), GRAM_ANY_NUMBER(GRAM_REF(character)), GRAM_TEXT("\"")));
    weft__gram_define(g, any_number, number(g));
    weft__gram_define(
        g, scalar,
        GRAM_ALT(GRAM_TEXT("true"), GRAM_TEXT("false"), GRAM_TEXT("null"), GRAM_REF(string), GRAM_REF(any_number)));
    /* Only `nested` recurses; where calls reach their limit a scalar is always left, so that no text gets stuck. */
    weft__gram_define(g, value, GRAM_ALT(GRAM_REF(scalar), GRAM_REF(nested)));
    weft__gram_define(
        g, member,
        GRAM_SEQ(GRAM_REF(string), GRAM_REF(ws), GRAM_TEXT(":"), GRAM_REF(ws), GRAM_REF(value), GRAM_REF(ws)));
    weft__gram_define(
        g, object,
        GRAM_SEQ(GRAM_TEXT("{"), GRAM_REF(ws),
                 GRAM_OPTIONAL(GRAM_SEQ(GRAM_REF(member),
                                        GRAM_ANY_NUMBER(GRAM_SEQ(GRAM_TEXT(","), GRAM_REF(ws), GRAM_REF(member))))),
                 GRAM_TEXT("}")));
    int32_t element = GRAM_SEQ(GRAM_REF(value), GRAM_REF(ws)),
            more = GRAM_SEQ(GRAM_TEXT(","), GRAM_REF(ws), GRAM_REF(value), GRAM_REF(ws));
    weft__gram_define(g, array,
                      GRAM_SEQ(GRAM_TEXT("["), GRAM_REF(ws), GRAM_OPTIONAL(GRAM_SEQ(element, GRAM_ANY_NUMBER(more))),
                               GRAM_TEXT("]")));
    weft__gram_define(g, nested, GRAM_ALT(GRAM_REF(object), GRAM_REF(array)));
    weft__gram_call(g, nested);
}

/* Defines `root` as an object, or as any value. */
static int32_t json_rules(weft__gram *g, int any)
{
    int32_t root = GRAM_RULE("root"), ws = GRAM_RULE("ws"), value = GRAM_RULE("value"), object = GRAM_RULE("object");
    weft__gram_define(g, ws, GRAM_REPEAT(0, 64, GRAM_CLASS({'\t', '\n'}, {'\r', '\r'}, {' ', ' '})));
    weft__gram_json_parts(g);
    weft__gram_define(g, root, GRAM_SEQ(GRAM_REF(ws), any ? GRAM_REF(value) : GRAM_REF(object)));
    return root;
}

int32_t weft__gram_json_object(weft__gram *g)
{
    return json_rules(g, 0);
}

int32_t weft__gram_json_value(weft__gram *g)
{
    return json_rules(g, 1);
}
