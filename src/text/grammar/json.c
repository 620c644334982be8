// SPDX-License-Identifier: Apache-2.0
/* json.c: the built-in grammars of JSON (RFC 8259), put together by the builder as any other caller does it. */
#include "text/grammar/grammar.h"

/* Short names for what the rules are made of. */
#define TEXT(literal) weft__gram_text(g, literal, sizeof(literal) - 1)
#define REF(rule) weft__gram_ref(g, rule)
#define SEQ(...)                                                                                                       \
    weft__gram_seq(g, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))
#define ALT(...)                                                                                                       \
    weft__gram_alt(g, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))
#define CLASS(...)                                                                                                     \
    weft__gram_class(g, (const weft__gram_range[]){__VA_ARGS__},                                                       \
                     sizeof((const weft__gram_range[]){__VA_ARGS__}) / sizeof(weft__gram_range), 0)
#define REPEAT(min, max, item) weft__gram_repeat(g, item, min, max)
#define OPTIONAL(item) weft__gram_repeat(g, item, 0, 1)
#define ANY_NUMBER(item) weft__gram_repeat(g, item, 0, UINT32_MAX)
#define RULE(name) weft__gram_rule(g, name, sizeof(name) - 1)
#define DIGITS(min, max) REPEAT(min, max, CLASS({'0', '9'}))
#define HEX CLASS({'0', '9'}, {'A', 'F'}, {'a', 'f'})

/* \uXXXX outside the surrogates, or a high and a low one. */
static int32_t unicode_escape(weft__gram *g)
{
    int32_t basic = ALT(SEQ(CLASS({'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}), REPEAT(3, 3, HEX)),
                        SEQ(CLASS({'D', 'D'}, {'d', 'd'}), CLASS({'0', '7'}), REPEAT(2, 2, HEX)));
    int32_t high = SEQ(CLASS({'D', 'D'}, {'d', 'd'}), CLASS({'8', '9'}, {'A', 'B'}, {'a', 'b'}), REPEAT(2, 2, HEX));
    int32_t low = SEQ(TEXT("\\u"), CLASS({'D', 'D'}, {'d', 'd'}), CLASS({'C', 'F'}, {'c', 'f'}), REPEAT(2, 2, HEX));
    return SEQ(TEXT("u"), ALT(basic, SEQ(high, low)));
}

static int32_t number(weft__gram *g)
{
    int32_t whole = ALT(TEXT("0"), SEQ(CLASS({'1', '9'}), DIGITS(0, 19)));
    int32_t fraction = OPTIONAL(SEQ(TEXT("."), DIGITS(1, 20)));
    int32_t exponent =
        OPTIONAL(SEQ(CLASS({'E', 'E'}, {'e', 'e'}), OPTIONAL(CLASS({'+', '+'}, {'-', '-'})), DIGITS(1, 3)));
    return SEQ(OPTIONAL(TEXT("-")), whole, fraction, exponent);
}

/* Defines `root` as an object, or as any value. */
static int32_t json_rules(weft__gram *g, int any)
{
    int32_t root = RULE("root"), ws = RULE("ws"), string = RULE("string"), scalar = RULE("scalar"),
            value = RULE("value"), object = RULE("object"), nested = RULE("nested"), member = RULE("member");
    weft__gram_define(g, ws, REPEAT(0, 64, CLASS({'\t', '\n'}, {'\r', '\r'}, {' ', ' '})));
    int32_t escape =
        SEQ(TEXT("\\"),
            ALT(CLASS({'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}),
                unicode_escape(g)));
    int32_t plain = CLASS({0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF});
    weft__gram_define(g, string, SEQ(TEXT("\""), ANY_NUMBER(ALT(plain, escape)), TEXT("\"")));
    weft__gram_define(g, scalar, ALT(TEXT("true"), TEXT("false"), TEXT("null"), REF(string), number(g)));
    /* Only `nested` recurses; where calls reach their limit a scalar is always left, so that no text gets stuck. */
    weft__gram_define(g, value, ALT(REF(scalar), REF(nested)));
    weft__gram_define(g, member, SEQ(REF(string), REF(ws), TEXT(":"), REF(ws), REF(value), REF(ws)));
    weft__gram_define(g, object,
                      SEQ(TEXT("{"), REF(ws),
                          OPTIONAL(SEQ(REF(member), ANY_NUMBER(SEQ(TEXT(","), REF(ws), REF(member))))), TEXT("}")));
    int32_t element = SEQ(REF(value), REF(ws)), more = SEQ(TEXT(","), REF(ws), REF(value), REF(ws));
    int32_t array = SEQ(TEXT("["), REF(ws), OPTIONAL(SEQ(element, ANY_NUMBER(more))), TEXT("]"));
    weft__gram_define(g, nested, ALT(REF(object), array));
    weft__gram_call(g, nested);
    weft__gram_define(g, root, SEQ(REF(ws), any ? REF(value) : REF(object)));
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
