// SPDX-License-Identifier: Apache-2.0
/* base_svg.c: what pictures begin with, and texts of others in them (base/svg.h). */
#include "unit/fixture.h"

#include "base/svg.h"

static void a_picture_has_its_size_and_style(void **state)
{
    (void)state;
    weft__strbuf t = {0};
    weft__svg_begin(&t, 860, 420, ".a{fill:none}");
    assert_int_equal(t.failed, 0);
    assert_non_null(strstr(t.data, " viewBox=\"0 0 860 420\""));
    assert_non_null(strstr(t.data, "<style>.a{fill:none}</style>"));
    weft__strbuf_free(&t);
}

static void texts_cannot_be_more_than_texts(void **state)
{
    (void)state;
    const struct {
        const char *text, *want;
    } all[] = {{"plain", "plain"},
               {"<b>&\"'</b>", "&lt;b&gt;&amp;\"'&lt;/b&gt;"},
               {"]]>", "]]&gt;"},
               {"a\x01\n\x1f"
                "b",
                "ab"},
               {"gr\xC3\xBC\xC3\x9F", "gr\xC3\xBC\xC3\x9F"},
               {"\xFF\xC3(\xED\xA0\x80", "("},
               {"\xEF\xBF\xBE\xEF\xBF\xBF.", "."},
               {"", ""}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        weft__strbuf t = {0};
        weft__svg_label(&t, 1.25, -2, "end", all[i].text);
        char want[128];
        snprintf(want, sizeof want, "<text x=\"1.2\" y=\"-2.0\" text-anchor=\"end\">%s</text>\n", all[i].want);
        assert_string_equal(t.data, want);
        weft__strbuf_free(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_picture_has_its_size_and_style),
                                       cmocka_unit_test(texts_cannot_be_more_than_texts)};
    return cmocka_run_group_tests_name("base_svg", tests, NULL, NULL);
}
