// SPDX-License-Identifier: Apache-2.0
/* base_json.c: what the JSON façade accepts, refuses and writes. */
#include "unit/fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

static weft__json *parse(const char *text)
{
    weft__json *v = NULL;
    weft_error err = {0};
    weft_status status = weft__json_parse(text, strlen(text), &v, &err);
    if (status) fail_msg("%s: %s", text, err.message);
    return v;
}

static void values_are_read(void **state)
{
    (void)state;
    weft__json *v = parse(
        "{\"b\": [1, -2.5, true, null, \"a\\u0000\\u00e9\"], \"a\": {\"big\": 9223372036854775807, \"whole\": 1e3}}");
    assert_int_equal(weft__json_kind_of(v), WEFT__JSON_OBJECT);
    assert_int_equal(weft__json_size(v), 2);
    const weft__json *list = weft__json_get(v, "b"), *a = weft__json_get(v, "a");
    int64_t i = 0;
    double d = 0;
    int b = 0;
    const char *s = NULL;
    size_t n = 0;
    assert_int_equal(weft__json_size(list), 5);
    assert_true(weft__json_int(weft__json_at(list, 0), &i) && i == 1);
    assert_true(weft__json_double(weft__json_at(list, 0), &d) && d == 1);
    assert_true(weft__json_double(weft__json_at(list, 1), &d) && d == -2.5);
    assert_false(weft__json_int(weft__json_at(list, 1), &i));
    assert_true(weft__json_bool(weft__json_at(list, 2), &b) && b == 1);
    assert_true(weft__json_is_null(weft__json_at(list, 3)));
    assert_true(weft__json_string(weft__json_at(list, 4), &s, &n));
    assert_int_equal(n, 4);
    assert_memory_equal(s, "a\0\xC3\xA9", 5);
    assert_false(weft__json_is(weft__json_at(list, 4), "a")); /* all of a string counts, what is behind a NUL, too */
    assert_true(weft__json_int(weft__json_get(a, "big"), &i) && i == INT64_MAX);
    assert_true(weft__json_int(weft__json_get(a, "whole"), &i) && i == 1000);
    weft__json_free(&v);
    assert_null(v);
}

static void absent_values_have_no_kind(void **state)
{
    (void)state;
    weft__json *v = parse("[\"x\"]");
    int64_t i = 5;
    const char *s;
    size_t n;
    assert_null(weft__json_get(v, "x"));
    assert_null(weft__json_at(v, 1));
    assert_null(weft__json_get(NULL, "x"));
    assert_null(weft__json_at(NULL, 0));
    assert_int_equal(weft__json_kind_of(NULL), -1);
    assert_false(weft__json_int(weft__json_at(v, 0), &i));
    assert_false(weft__json_string(NULL, &s, &n));
    assert_false(weft__json_is(NULL, ""));
    assert_false(weft__json_is(v, "x"));
    assert_true(weft__json_is(weft__json_at(v, 0), "x"));
    assert_false(weft__json_is(weft__json_at(v, 0), "xy"));
    assert_false(weft__json_is_null(NULL));
    assert_int_equal(weft__json_size(NULL), 0);
    assert_int_equal(i, 5);
    weft__json_member m = {0};
    assert_false(weft__json_next(v, &m));
    weft__json_free(&v);
}

static void members_keep_their_order(void **state)
{
    (void)state;
    weft__json *v = parse("{\"z\":0,\"a\":1,\"m\":2,\"\":3}");
    weft__json_member m = {0};
    static const char *const keys[] = {"z", "a", "m", ""};
    int count = 0;
    for (; weft__json_next(v, &m); count++) {
        int64_t i = -1;
        assert_string_equal(m.key, keys[count]);
        assert_int_equal(m.key_len, strlen(keys[count]));
        assert_true(weft__json_int(m.value, &i) && i == count);
    }
    assert_int_equal(count, 4);
    weft__json_free(&v);
}

static void assert_refused(const char *text, size_t n, weft_status want, const char *part)
{
    weft__json *v = (weft__json *)1;
    weft_error err = {0};
    weft_status status = weft__json_parse(text, n, &v, &err);
    if (status != want) fail_msg("%.40s: status %d, wanted %d", text, (int)status, (int)want);
    assert_null(v);
    if (!strstr(err.message, part)) fail_msg("%.40s: \"%s\" lacks \"%s\"", text, err.message, part);
}

static void bad_text_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"", "line 1"},
        {"{\"a\": 1,\n \"b\": }", "line 2, column 7"},
        {"[1, 2", "line 1"},
        {"[1] 2", "line 1"},
        {"{\"a\":1,\"a\":2}", "duplicate"},
        {"{'a':1}", "line 1"},
        {"[01]", "line 1"},
        {"[1,]", "line 1"},
        {"[NaN]", "line 1"},
        {"// c\n1", "line 1"},
        {"9223372036854775808", "line 1"},
        {"1e999", "line 1"},
        {"\"\\ud800\"", "line 1"},
        {"\"\n\"", "line 1"},
        {"\"\xC3\"", "line 1"},
        {"\"\xED\xA0\x80\"", "line 1"},
        {"\"\xC0\x80\"", "line 1"},
        {"{\"a\\u0000b\":1}", "line 1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_refused(bad[i].text, strlen(bad[i].text), WEFT_FORMAT, bad[i].part);
    assert_refused("1\0", 2, WEFT_FORMAT, "NUL"); /* a NUL is no white space */
    assert_refused("[1\0, 2]", 7, WEFT_FORMAT, "NUL");
}

static void members_may_repeat_where_that_is_said(void **state)
{
    static const char text[] = "{\"a\":1,\"b\":0,\"a\":{\"c\":2,\"c\":3}}";
    weft__json *v = NULL;
    int64_t c;
    (void)state;
    assert_int_equal(weft__json_parse_repeated(text, sizeof text - 1, &v, NULL), WEFT_OK);
    assert_int_equal(weft__json_size(v), 2);
    assert_true(weft__json_int(weft__json_get(weft__json_get(v, "a"), "c"), &c) && c == 3);
    weft__json_free(&v);
    assert_int_equal(weft__json_parse_repeated("{\"a\":1,}", 8, &v, NULL), WEFT_FORMAT);
    assert_null(v);
}

static void bounds_may_be_beyond_64_bits(void **state)
{
    static const struct {
        const char *text;
        double value; /* 0: it is refused */
    } all[] = {
        {"{\"maximum\":18446744073709551615}", 0x1p64},
        {"{ \"minimum\" : -9223372036854775809 }", -0x1p63},
        {"[{\"exclusiveMaximum\":9223372036854775808,\"x\":\"maximum\"}]", 0x1p63},
        {"{\"exclusiveMinimum\":-100000000000000000000000000000000000000000,\"exclusiveMaximum\":20000000000000000000}",
         -1e41},
        /* To the side that allows less, but for the last of 64 bits, which is no more than 2^64. */
        {"{\"maximum\":18446744073709551615}", 0x1p64},
        {"{\"maximum\":18446744073709551614}", 0x1p64 - 2048},
        {"{\"exclusiveMaximum\":18446744073709551615}", 0x1p64 - 2048},
        {"{\"minimum\":9223372036854775809}", 0x1p63 + 2048},
        {"{\"maximum\":9223372036854777855}", 0x1p63},
        {"{\"minimum\":-9223372036854777855}", -0x1p63},
        {"{\"maximum\":-9223372036854775809}", -0x1p63 - 2048},
        {"{\"maximum\":10000000000000000000}", 1e19},
        {"{\"maximum\":9223372036854775808-1}", 0},
        {"{\"maximum\":09223372036854775808}", 0},
        {"{\"const\":18446744073709551615}", 0},
        {"{\"a\":\"maximum\",\"b\":18446744073709551615}", 0},
        {"{\"maximum\":[18446744073709551615]}", 0},
        {"{\"maximum\":18446744073709551615,\"const\":18446744073709551615}", 0},
        {"{\"maximum\":18446744073709551615,}", 0},
        {"{\"maximum\":1-8446744073709551615}", 0},
        {"{\"maximum\":184467440737095516150000x}", 0},
        {"{\"maximum\":", 0},
        {"{\"maximum\\", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        weft__json *v = NULL;
        weft__json_member m = {0};
        double d = 0;
        int64_t whole;
        const weft_status st = weft__json_parse_bounds(all[i].text, strlen(all[i].text), &v, NULL);
        if (st != (all[i].value != 0 ? WEFT_OK : WEFT_FORMAT)) fail_msg("%s: status %d", all[i].text, (int)st);
        assert_int_equal(weft__json_parse(all[i].text, strlen(all[i].text), &(weft__json *){NULL}, NULL), WEFT_FORMAT);
        if (st) continue;
        const weft__json *object = weft__json_kind_of(v) == WEFT__JSON_ARRAY ? weft__json_at(v, 0) : v;
        assert_true(weft__json_next(object, &m) && weft__json_double(m.value, &d) && d == all[i].value);
        assert_false(weft__json_int(m.value, &whole));
        weft__json_free(&v);
    }
}

static void depth_is_bounded(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    char *text = weft__alloc(2 * MANY + 1);
    assert_non_null(text);
    memset(text, '[', MANY);
    memset(text + MANY, ']', MANY);
    assert_refused(text, 2 * MANY, WEFT_LIMIT, "256");
    weft__json *v = NULL;
    const char *deepest = text + MANY - WEFT__JSON_MAX_DEPTH;
    assert_int_equal(weft__json_parse(deepest, 2 * WEFT__JSON_MAX_DEPTH, &v, NULL), WEFT_OK);
    weft__json_free(&v);
    assert_refused(deepest - 1, 2 * WEFT__JSON_MAX_DEPTH + 2, WEFT_LIMIT, "256");
    memset(text, '[', MANY);
    text[0] = text[MANY] = '"'; /* brackets in a string do not count */
    assert_int_equal(weft__json_parse(text, MANY + 1, &v, NULL), WEFT_OK);
    weft__json_free(&v);
    weft__free(text);
}

static void assert_written(const weft__json *v, weft__json_style style, const char *want)
{
    weft__strbuf t = {0};
    weft__json_write(&t, v, style);
    assert_false(t.failed);
    assert_string_equal(t.data, want);
    weft__strbuf_free(&t);
}

static weft__json *build(void)
{
    weft__json *list = weft__json_new_array(), *root = weft__json_new_object();
    int ok = weft__json_append(list, weft__json_new_int(-7)) && weft__json_append(list, weft__json_new_double(0.1)) &&
             weft__json_append(list, weft__json_new_bool(0)) && weft__json_append(list, weft__json_new_null()) &&
             weft__json_append(list, weft__json_new_array());
    ok &= weft__json_set(root, "list", list);
    ok &= weft__json_set(root, "text", weft__json_new_string("a\"\\\n\x01\xC3\xA9", 7));
    ok &= weft__json_set(root, "none", weft__json_new_object());
    if (!ok) weft__json_free(&root);
    return root;
}

static void styles_are_written(void **state)
{
    (void)state;
    weft__json *v = build();
    assert_non_null(v);
    assert_written(v, WEFT__JSON_COMPACT,
                   "{\"list\":[-7,0.1,false,null,[]],\"text\":\"a\\\"\\\\\\n\\u0001\xC3\xA9\",\"none\":{}}");
    assert_written(v, WEFT__JSON_SPACED,
                   "{\"list\": [-7, 0.1, false, null, []], \"text\": \"a\\\"\\\\\\n\\u0001\xC3\xA9\", \"none\": {}}");
    assert_written(v, WEFT__JSON_INDENTED,
                   "{\n  \"list\": [\n    -7,\n    0.1,\n    false,\n    null,\n    []\n  ],\n"
                   "  \"text\": \"a\\\"\\\\\\n\\u0001\xC3\xA9\",\n  \"none\": {}\n}");
    weft__json *copy = weft__json_copy(v);
    weft__json_free(&v);
    assert_written(weft__json_get(copy, "list"), WEFT__JSON_COMPACT, "[-7,0.1,false,null,[]]");
    weft__json_free(&copy);
}

static void values_are_compared(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int equal;
    } cases[] = {
        {"{\"a\": [1, null], \"b\": \"x\"}", "{\"b\": \"x\", \"a\": [1, null]}", 1},
        {"{\"a\": 1}", "{\"a\": 1, \"b\": 1}", 0},
        {"{\"a\": 1}", "{\"b\": 1}", 0},
        {"[1, 2]", "[2, 1]", 0},
        {"1", "1.0", 0},
        {"\"a\\u0000b\"", "\"a\\u0000c\"", 0},
        {"null", "null", 1},
        {"null", "false", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__json *a = NULL, *b = NULL;
        assert_int_equal(weft__json_parse(cases[i].a, strlen(cases[i].a), &a, NULL), WEFT_OK);
        assert_int_equal(weft__json_parse(cases[i].b, strlen(cases[i].b), &b, NULL), WEFT_OK);
        assert_int_equal(weft__json_equal(a, b), cases[i].equal);
        assert_int_equal(weft__json_equal(b, a), cases[i].equal);
        assert_false(weft__json_equal(a, NULL));
        weft__json_free(&a);
        weft__json_free(&b);
    }
    assert_false(weft__json_equal(NULL, NULL));
}

static void doubles_read_back_the_same(void **state)
{
    (void)state;
    static const double values[] = {0.1,     1.0,           -0.0,  1e21, 5e-324, 1.7976931348623157e308,
                                    1.0 / 3, 123456789.125, 2.5e-7};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        weft__strbuf t = {0};
        weft__json_write_double(&t, values[i]);
        assert_true(strtod(t.data, NULL) == values[i]);
        weft__json *v = parse(t.data);
        assert_int_equal(weft__json_kind_of(v), WEFT__JSON_DOUBLE);
        weft__json_free(&v);
        weft__strbuf_free(&t);
    }
    weft__strbuf t = {0};
    weft__json_write_double(&t, INFINITY);
    weft__json_write_string(&t, "\xFF\0b", 3);
    assert_string_equal(t.data, "null\"\xEF\xBF\xBD\\u0000b\"");
    weft__strbuf_free(&t);
}

static void builders_refuse_what_json_lacks(void **state)
{
    (void)state;
    assert_null(weft__json_new_double(NAN));
    assert_null(weft__json_new_string("\xFF", 1));
    weft__json *list = weft__json_new_array();
    assert_false(weft__json_append(list, NULL));
    assert_false(weft__json_set(list, "key", weft__json_new_int(1)));
    assert_int_equal(weft__json_size(list), 0);
    weft__json_free(&list);
}

static int parse_and_write(void *arg)
{
    const char *text = arg;
    weft__json *v = NULL;
    weft_error err = {0};
    weft__strbuf t = {0};
    weft_status status = weft__json_parse(text, strlen(text), &v, &err);
    int ok = status == WEFT_OK;
    if (ok) {
        weft__json_write(&t, v, WEFT__JSON_COMPACT);
        ok = !t.failed && !strcmp(t.data, text);
    } else if (status != WEFT_NO_MEMORY) {
        fail_msg("status %d: %s", (int)status, err.message);
    }
    weft__strbuf_free(&t);
    weft__json_free(&v);
    return ok;
}

static int build_and_free(void *arg)
{
    (void)arg;
    weft__json *v = build(), *copy = v ? weft__json_copy(v) : NULL;
    int ok = copy != NULL;
    weft__json_free(&copy);
    weft__json_free(&v);
    return ok;
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    char text[] =
        "{\"one\":[1,2.5,\"a string of more than sixteen bytes\"],\"two\":{\"three\":null,\"f\":[[],{}]},\"x\":\"y\"}";
    assert_true(fail_each(parse_and_write, text) > 20);
    /* Whichever byte of a token the lexer has no room for, also when it is the closing quote. */
    for (int n = 10; n < 140; n++) {
        char strings[300];
        snprintf(strings, sizeof strings, "[\"%0*d\",\"%0*d\"]", n, 0, n, 0);
        assert_true(fail_each(parse_and_write, strings) > 4);
    }
    assert_true(fail_each(build_and_free, NULL) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(absent_values_have_no_kind),
        cmocka_unit_test(members_keep_their_order),
        cmocka_unit_test(bad_text_is_refused_with_its_place),
        cmocka_unit_test(members_may_repeat_where_that_is_said),
        cmocka_unit_test(bounds_may_be_beyond_64_bits),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(styles_are_written),
        cmocka_unit_test(doubles_read_back_the_same),
        cmocka_unit_test(builders_refuse_what_json_lacks),
        cmocka_unit_test(every_failed_allocation_is_survived),
        cmocka_unit_test(values_are_compared),
    };
    return cmocka_run_group_tests_name("base_json", tests, NULL, NULL);
}
