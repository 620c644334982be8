// SPDX-License-Identifier: Apache-2.0
/* hub_names.c: names of models, paths in repositories, and who may see the token. */
#include "unit/fixture.h"

#include <stdio.h>

#include "hub/http.h"
#include "hub/hub.h"

static void good_names(void **state)
{
    static const struct {
        const char *text, *owner, *repo, *what;
    } cases[] = {
        {"owner/name", "owner", "name", ""},
        {"Qwen/Qwen2.5-0.5B-Instruct-GGUF:q4_k_m", "Qwen", "Qwen2.5-0.5B-Instruct-GGUF", "q4_k_m"},
        {"a/b:dir/m-00001-of-00002.gguf", "a", "b", "dir/m-00001-of-00002.gguf"},
        {"_x/0_.-y", "_x", "0_.-y", ""},
        {"a/b:c:d", "a", "b", "c:d"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__hub_name n;
        weft_error err;
        if (weft__hub_name_parse(cases[i].text, &n, &err)) fail_msg("%s: %s", cases[i].text, err.message);
        assert_string_equal(n.owner, cases[i].owner);
        assert_string_equal(n.repo, cases[i].repo);
        assert_string_equal(n.what, cases[i].what);
    }
}

static void bad_names(void **state)
{
    static const char *const cases[] = {
        "",       "x",        "/",         "a/",       "/b",       "a/b/c",    "../b",   "a/..",     "a/.b",
        ".a/b",   "-a/b",     "a/b..c",    "a b/c",    "a/b\\c",   "a/b:",     "a/b:..", "a/b:../c", "a/b:/c",
        "a/b:c/", "a/b:c//d", "a/b:c/./d", "a/b:c\\d", "a/b:\x1b", "a/b:\xff", "a:b/c",  "a/b\n",    "\xc3\xa9/b"};
    char longer[2000];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__hub_name n;
        weft_error err = {0};
        if (weft__hub_name_parse(cases[i], &n, &err) != WEFT_ARGUMENT) fail_msg("accepted: %s", cases[i]);
        assert_true(err.message[0]);
        for (const char *c = err.message; *c; c++) assert_in_range(*c, 0x20, 0x7e);
    }
    for (size_t at = 0; at < 3; at++) { /* owner, name, what too long */
        weft__hub_name n;
        snprintf(longer, sizeof longer, "a/b:c");
        memmove(longer + 2 * at + 1500, longer + 2 * at, 6 - 2 * at);
        memset(longer + 2 * at, 'x', 1500);
        assert_int_equal(weft__hub_name_parse(longer, &n, NULL), WEFT_ARGUMENT);
    }
}

static void long_parts_fit_exactly(void **state)
{
    char text[WEFT__HUB_PATH_MAX + 300];
    weft__hub_name n;
    (void)state;
    memset(text, 'a', sizeof text);
    text[96] = '/';
    text[193] = 0;
    assert_int_equal(weft__hub_name_parse(text, &n, NULL), WEFT_OK);
    assert_int_equal(strlen(n.repo), 96);
    text[193] = ':';
    for (size_t i = 194 + 200; i < 194 + 1024; i += 201) text[i] = '/';
    text[194 + 1024] = 0;
    assert_int_equal(weft__hub_name_parse(text, &n, NULL), WEFT_OK);
    assert_int_equal(strlen(n.what), 1024);
    text[194 + 1024] = 'a';
    text[194 + 1025] = 0;
    assert_int_equal(weft__hub_name_parse(text, &n, NULL), WEFT_ARGUMENT);
}

static void paths(void **state)
{
    static const char *const good[] = {"a",       "a/b",           "...", "a..b", "..a",
                                       "a/..b/c", "\xc3\xa9.gguf", "a b", "a:b",  ".hidden"};
    static const struct {
        const char *path;
        size_t n;
    } bad[] = {{"", 0},       {"/", 1},        {"..", 2},           {".", 1},
               {"a/", 2},     {"a//b", 4},     {"../a", 4},         {"a/..", 4},
               {"a/../b", 6}, {"a\\b", 3},     {"a\0b", 3},         {"a\nb", 3},
               {"\x7f", 1},   {"\xc2\x80", 2}, {"\xe2\x80\xae", 3}, {"\xc0\xae\xc0\xae/", 5},
               {"\xff", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_null(weft__hub_path_fault(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!weft__hub_path_fault(bad[i].path, bad[i].n)) fail_msg("accepted bad path %zu", i);
}

static void redirects(void **state)
{
    static const struct {
        const char *url, *location, *leads_to; /* NULL: refused */
        int same;
    } cases[] = {
        {"https://h.co/a/b", "/c", "https://h.co/c", 1},
        {"https://h.co/a/b", "c?d=e", "https://h.co/a/c?d=e", 1},
        {"https://h.co/a", "https://H.CO:443/c", "https://H.CO:443/c", 1},
        {"https://h.co/a", "https://h.co:444/c", "https://h.co:444/c", 0},
        {"https://h.co/a", "https://cdn.h.co/c", "https://cdn.h.co/c", 0},
        {"https://h.co/a", "//evil.co/c", "https://evil.co/c", 0},
        {"https://h.co/a", "https://h.co.evil.co/", "https://h.co.evil.co/", 0},
        {"http://h.co/a", "https://h.co/a", "https://h.co/a", 0},
        {"https://h.co/a", "http://h.co/a", NULL, 0},
        {"https://h.co/a", "HTTP://h.co/a", NULL, 0},
        {"https://h.co/a", "https://h.co@evil.co/a", NULL, 0},
        {"https://h.co/a", "https://u:p@h.co/a", NULL, 0},
        {"https://h.co/a", "file:///etc/passwd", NULL, 0},
        {"https://h.co/a", "ftp://h.co/a", NULL, 0},
        {"https://h.co/a", "javascript:alert(1)", NULL, 0},
        {"https://h.co/a", "http://", NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *to;
        int same = -1;
        weft_error err = {0};
        weft_status st = weft__hub_http_join(cases[i].url, cases[i].location, &to, &same, &err);
        if (!cases[i].leads_to) {
            if (!st && !strcmp(to, "https://h.co/javascript:alert(1)"))
                st = WEFT_FORMAT; /* read as a relative path: harmless */
            if (st != WEFT_FORMAT) fail_msg("%s: accepted", cases[i].location);
        } else {
            if (st) fail_msg("%s: %s", cases[i].location, err.message);
            assert_int_equal(same, cases[i].same);
            if (strcasecmp(to, cases[i].leads_to)) fail_msg("%s: leads to %s", cases[i].location, to);
        }
        weft__free(to);
    }
}

static void where_a_token_may_go(void **state)
{
    static const char *const safe[] = {"https://huggingface.co/x", "http://localhost:80/", "http://127.0.0.1:1/",
                                       "http://127.9.9.9/", "http://[::1]:5/"};
    static const char *const unsafe[] = {
        "http://huggingface.co/", "http://127.evil.co/", "http://localhost.evil.co/", "ftp://localhost/", "x", "",
        "https://u:p@h/"};
    (void)state;
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
        if (!weft__hub_http_is_safe(safe[i])) fail_msg("%s", safe[i]);
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        if (weft__hub_http_is_safe(unsafe[i])) fail_msg("%s", unsafe[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_names), cmocka_unit_test(bad_names), cmocka_unit_test(long_parts_fit_exactly),
        cmocka_unit_test(paths),      cmocka_unit_test(redirects), cmocka_unit_test(where_a_token_may_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
