// SPDX-License-Identifier: Apache-2.0
/* Claims on base/base64.h. */
#include "fixture.h"

#include <string.h>

#include "base/base64.h"

static void rfc_vectors(void **state)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        weft__strbuf text = {0};
        char back[16];
        size_t n;
        weft__base64_put(&text, pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(text.data ? text.data : "", pairs[i][1]);
        assert_true(weft__base64_read(pairs[i][1], strlen(pairs[i][1]), back, sizeof back, &n));
        assert_int_equal(n, strlen(pairs[i][0]));
        assert_memory_equal(back, pairs[i][0], n);
        weft__strbuf_free(&text);
    }
}

/* A value has one text. */
static void strict(void **state)
{
    static const char *const bad[] = {"Zg",     "Zg=",  "Zg===", "Zh==", "Zm9=", "Zm9v\n",
                                      "Zm 9v=", "====", "=",     "Z===", "Z_8=", "Zg==Zg=="};
    char back[16];
    size_t n;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(weft__base64_read(bad[i], strlen(bad[i]), back, sizeof back, &n));
    assert_false(weft__base64_read("Zm9vYmFy", 8, back, 5, &n));
    assert_false(weft__base64_read("Zm\0v", 4, back, 5, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rfc_vectors), cmocka_unit_test(strict)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
