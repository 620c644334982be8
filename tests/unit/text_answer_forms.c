// SPDX-License-Identifier: Apache-2.0
/* text_answer_forms.c: in answers that are held to a form nothing is a marker, and what leads to it is no text,
 * wherever they break off. */
#include "unit/fixture.h"

#include "unit/answer_world.h"

static void of_a_form_nothing_is_a_marker(void **state)
{
    (void)state;
    weft__answer_params how = by("hermes");
    how.calls = 0, how.form = 1;
    becomes_with(&how, NULL, "<think>\nhm\n</think>\n\n {\"a\": \"</think>\"} <think>",
                 "R{hm}T{ {\"a\": \"</think>\"} <think>}");
    becomes_with(&how, NULL, "<think>hm</think><think>no</think>", "R{hm}T{<think>no</think>}");
    becomes_with(&how, NULL, "</think> [1]", "T{</think> [1]}");
    becomes_with(&how, NULL, " [1] ", "T{ [1] }");
    how = by("harmony");
    how.calls = 0, how.form = 1;
    becomes_with(&how, NULL,
                 "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>\"<|end|>\"",
                 "R{hm}T{\"<|end|>\"}");
    becomes_with(&how, NULL, "<|channel|>final<|message|>[]", "T{[]}");
    how = by("granite-v3");
    how.calls = 0, how.form = 1;
    becomes_with(&how, NULL, "[\"<response>\"]</response>", "T{[\"<response>\"]</response>}");
}

/* Cut anywhere, where a form's texts are JSON; else behind a special token. */
static void what_leads_to_a_form_is_no_text_where_it_is_cut(void **state)
{
    (void)state;
    static const struct {
        const char *format, *lead;
    } all[] = {{"harmony", "<|channel|>final<|message|>"},
               {"harmony", "<|channel|>final <|constrain|>json<|message|>"},
               {"harmony", "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>"},
               {"hermes", "<think>\nhm\n</think>\n\n"},
               {"command-r7b", "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t n = 1; n <= strlen(all[i].lead); n++)
            for (int form = WEFT_CHAT_FORM_ANY; form <= WEFT_CHAT_FORM_JSON; form++) {
                char text[120];
                weft__answer_params how = by(all[i].format);
                const char *open = NULL;
                snprintf(text, sizeof text, "%.*s", (int)n, all[i].lead);
                for (const char *s = text; (s = strchr(s, '<')); s++) open = strchr(s, '>') ? open : s;
                if (form == WEFT_CHAT_FORM_ANY && open) continue; /* half a special token, which is told whole */
                how.calls = form == WEFT_CHAT_FORM_ANY, how.form = form;
                weft__strbuf line = taken_apart(&how, NULL, text, n, WHOLE, NULL);
                if (!strncmp(line.data, "T{", 2) || strstr(line.data, "}T{"))
                    fail_msg("%s: '%s' became %s", all[i].format, text, line.data);
                weft__strbuf_free(&line);
            }
    weft__answer_params how = by("harmony");
    how.form = WEFT_CHAT_FORM_JSON;
    becomes_with(&how, NULL, "<|channel|>final<|message|>{\"a\": \"<|cha", "T{{\"a\": \"<|cha}");
    becomes_with(&how, NULL, "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\":",
                 "T{<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\":}");
    how.form = WEFT_CHAT_FORM_ANY;
    becomes_with(&how, NULL, "<|ch", "T{<|ch}");
    how = by("hermes");
    how.form = WEFT_CHAT_FORM_JSON;
    becomes_with(&how, NULL, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "C{f||{}}");
    becomes_with(&how, NULL, "{\"a\": \"<tool_call>\"}", "T{{\"a\": \"<tool_call>\"}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_form_nothing_is_a_marker),
        cmocka_unit_test(what_leads_to_a_form_is_no_text_where_it_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
