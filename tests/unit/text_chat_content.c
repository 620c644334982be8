// SPDX-License-Identifier: Apache-2.0
/* text_chat_content.c: what the content of a message may be, and the string that it becomes. */
#include "unit/fixture.h"

#include "text/chat/content.h"

static weft__json *parsed(const char *text)
{
    weft__json *v = NULL;
    assert_int_equal(weft__json_parse(text, strlen(text), &v, NULL), WEFT_OK);
    return v;
}

static void contents_become_one_string(void **state)
{
    (void)state;
    static const struct {
        const char *content, *flat;
        size_t n;
    } cases[] = {
        {"\"the fox\"", "the fox", 7},
        {"\"a\\u0000b\"", "a\0b", 3},
        {"null", "", 0},
        {"[]", "", 0},
        {"[{\"type\": \"text\", \"text\": \"a\"}]", "a", 1},
        {"[{\"type\": \"text\", \"text\": \"a\\n\"}, {\"text\": \"b\\u0000c\", \"type\": \"text\", \"cache_control\": "
         "{}}]",
         "a\n\nb\0c", 6},
        {"[{\"type\": \"text\", \"text\": \"\"}, {\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": "
         "\"\"}]",
         "a\n", 2},
        {"[{\"type\": \"refusal\", \"refusal\": \"No.\", \"text\": \"b\"}, {\"type\": \"text\", \"text\": \"a\", "
         "\"refusal\": \"c\"}]",
         "No.\na", 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__json *v = parsed(cases[i].content), *flat = NULL;
        const char *s;
        size_t n, part = 7;
        assert_int_equal(weft__chat_content_flat(v, &flat, &part), WEFT__CHAT_CONTENT_FINE);
        assert_true(weft__json_string(flat, &s, &n));
        if (n != cases[i].n || memcmp(s, cases[i].flat, n)) fail_msg("%s became '%s'", cases[i].content, s);
        weft__json_free(&flat);
        weft__json_free(&v);
    }
    weft__json *flat = NULL;
    assert_int_equal(weft__chat_content_flat(NULL, &flat, NULL), WEFT__CHAT_CONTENT_FINE);
    assert_true(weft__json_is(flat, ""));
    weft__json_free(&flat);
}

static void faults_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        weft__chat_content_error fault;
        size_t part;
    } cases[] = {
        {"5", WEFT__CHAT_CONTENT_KIND, 7},
        {"{\"type\": \"text\", \"text\": \"a\"}", WEFT__CHAT_CONTENT_KIND, 7},
        {"[\"a\"]", WEFT__CHAT_CONTENT_NO_TYPE, 0},
        {"[{\"type\": \"text\", \"text\": \"a\"}, {\"text\": \"b\"}]", WEFT__CHAT_CONTENT_NO_TYPE, 1},
        {"[{\"type\": \"text\", \"text\": \"a\"}, {\"type\": 1, \"text\": \"b\"}]", WEFT__CHAT_CONTENT_NO_TYPE, 1},
        {"[{\"type\": \"image_url\", \"text\": \"a\"}, 5]", WEFT__CHAT_CONTENT_OTHER, 0},
        {"[{\"type\": \"text\\u0000\", \"text\": \"a\"}]", WEFT__CHAT_CONTENT_OTHER, 0},
        {"[{\"type\": \"text\", \"text\": null}]", WEFT__CHAT_CONTENT_NO_TEXT, 0},
        {"[{\"type\": \"refusal\", \"text\": \"a\"}]", WEFT__CHAT_CONTENT_NO_TEXT, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__json *v = parsed(cases[i].content), *flat = v;
        size_t part = 7, checked = 7;
        assert_int_equal(weft__chat_content_flat(v, &flat, &part), cases[i].fault);
        assert_null(flat);
        assert_int_equal(part, cases[i].part);
        assert_int_equal(weft__chat_content_check(v, &checked), cases[i].fault);
        assert_int_equal(checked, part);
        weft__json_free(&v);
    }
}

static int flatten(void *arg)
{
    weft__json *flat = NULL;
    weft__chat_content_error fault = weft__chat_content_flat(arg, &flat, NULL);
    assert_true(fault == WEFT__CHAT_CONTENT_FINE || fault == WEFT__CHAT_CONTENT_NO_MEMORY);
    assert_int_equal(flat != NULL, fault == WEFT__CHAT_CONTENT_FINE);
    weft__json_free(&flat);
    return fault == WEFT__CHAT_CONTENT_FINE;
}

static void every_failed_allocation_is_told(void **state)
{
    (void)state;
    static const char *const contents[] = {
        "\"the fox\"", "[{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": \"b\"}]"};
    for (size_t i = 0; i < 2; i++) {
        weft__json *v = parsed(contents[i]);
        assert_true(fail_each(flatten, v) > 0);
        weft__json_free(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents_become_one_string),
        cmocka_unit_test(faults_are_told_apart),
        cmocka_unit_test(every_failed_allocation_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
