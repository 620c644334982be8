// SPDX-License-Identifier: Apache-2.0
/* base_text.c: growing strings and UTF-8. Decoding is checked against every code point and every malformed pair of
 * bytes. */
#include "unit/fixture.h"

#include "base/text.h"

static void appends_add_up(void **state)
{
    (void)state;
    weft__strbuf t = {0};
    weft__strbuf_puts(&t, "warp");
    weft__strbuf_putc(&t, ' ');
    weft__strbuf_printf(&t, "%d+%s", 42, "weft");
    weft__strbuf_put(&t, "\0z", 2);
    weft__strbuf_put_utf8(&t, 0x1F9F5);
    assert_int_equal(t.failed, 0);
    assert_int_equal(t.len, 18);
    assert_memory_equal(t.data, "warp 42+weft\0z\xF0\x9F\xA7\xB5", 19);
    for (int i = 0; i < 5000; i++) weft__strbuf_printf(&t, "%d,", i);
    assert_int_equal(t.data[t.len], 0);
    assert_memory_equal(t.data + t.len - 5, "4999,", 5);
    weft__strbuf_free(&t);
    assert_null(t.data);
}

static int build_text(void *arg)
{
    (void)arg;
    weft__strbuf t = {0};
    for (int i = 0; i < 200; i++) weft__strbuf_printf(&t, "%d", i);
    weft__strbuf_puts(&t, "end");
    int ok = !t.failed && t.len == 493 && !strcmp(t.data + 490, "end");
    weft__strbuf_free(&t);
    return ok;
}

static void failed_growth_is_remembered(void **state)
{
    (void)state;
    assert_int_equal(fail_each(build_text, NULL), 7); /* capacities 8, 16, ... 512 */
}

static int is_scalar(uint32_t cp)
{
    return cp <= 0x10FFFF && !(cp >= 0xD800 && cp < 0xE000);
}

static void every_code_point_round_trips(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= 0x110010; cp++) {
        char s[4];
        size_t n = weft__utf8_encode(cp, s);
        uint32_t back;
        int bad = 0;
        assert_int_equal(weft__utf8_length((unsigned char)s[0]), n);
        assert_int_equal(weft__utf8_decode(s, n, &back, &bad), n);
        assert_int_equal(bad, 0);
        assert_int_equal(back, is_scalar(cp) ? cp : 0xFFFD);
        for (size_t cut = 1; cut < n; cut++) {
            bad = 0;
            assert_int_equal(weft__utf8_decode(s, cut, &back, &bad), 1);
            assert_int_equal(bad, 1);
            assert_int_equal(back, 0xFFFD);
        }
    }
}

/* The other direction: whatever decodes without complaint must be the one encoding of what it decodes to. */
static void nothing_else_decodes(void **state)
{
    (void)state;
    for (uint32_t bytes = 0; bytes < 1u << 24; bytes += bytes < 1u << 16 ? 1 : 37) {
        char s[4] = {(char)(bytes >> 16 | 0xE0), (char)(bytes >> 8), (char)bytes, (char)0x80}, again[4];
        for (int from = 0; from < 2; from++) {
            uint32_t cp;
            int bad = 0;
            size_t n = weft__utf8_decode(s + from, 4 - (size_t)from, &cp, &bad);
            if (bad) continue;
            assert_int_equal(weft__utf8_encode(cp, again), n);
            assert_memory_equal(again, s + from, n);
        }
    }
}

static void known_malformed_strings_are_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "\x80",
        "\xBF",
        "\xC0\x80",
        "\xC1\xBF",
        "\xE0\x80\x80",
        "\xE0\x9F\xBF",
        "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF",
        "\xED\xA0\x80",
        "\xED\xBF\xBF",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xFF",
        "\xFE",
        "a\xC3",
        "a\xE2\x82",
        "\xC3(",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_false(weft__utf8_valid(refused[i], strlen(refused[i])));
    assert_true(weft__utf8_valid("", 0));
    assert_true(weft__utf8_valid("a\0\xF4\x8F\xBF\xBF", 6));
}

static void the_last_part_of_a_path(void **state)
{
    (void)state;
    static const struct {
        const char *path, *last;
    } cases[] = {{"a.gguf", "a.gguf"},
                 {"models/a.gguf", "a.gguf"},
                 {"/a", "a"},
                 {"models/small/", "small"},
                 {"small//", "small"},
                 {"//a//b///", "b"},
                 {"..", ".."},
                 {"./", "."},
                 {"/", ""},
                 {"///", ""},
                 {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n;
        const char *last = weft__path_last(cases[i].path, &n);
        if (n != strlen(cases[i].last) || memcmp(last, cases[i].last, n) != 0)
            fail_msg("%s: '%.*s'", cases[i].path, (int)n, last);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_add_up),
        cmocka_unit_test(failed_growth_is_remembered),
        cmocka_unit_test(every_code_point_round_trips),
        cmocka_unit_test(nothing_else_decodes),
        cmocka_unit_test(known_malformed_strings_are_refused),
        cmocka_unit_test(the_last_part_of_a_path),
    };
    return cmocka_run_group_tests_name("base_text", tests, NULL, NULL);
}
