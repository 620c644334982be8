// SPDX-License-Identifier: Apache-2.0
/* text_answer.c: answers are taken apart into text, reasoning and calls as their formats have them, however they are
 * cut; what is no call stays text with every byte, and no answer takes more than its share of work. */
#include <stdlib.h>

#include "unit/fixture.h"

#include "growth.h"
#include "unit/answer_world.h"

static void becomes(const char *format, const char *answer, const char *wanted)
{
    const weft__answer_params how = by(format);
    becomes_with(&how, NULL, answer, wanted);
}

static void text_stays_as_it_is(void **state)
{
    (void)state;
    becomes("none", "", "");
    becomes("none", " Hello,\n world! ", "T{ Hello,\n world! }");
    becomes("hermes", "  \n", "T{  \n}");
    becomes("hermes", "a <think> b </think> <tool_cal", "T{a <think> b </think> <tool_cal}");
    becomes("hermes", "a</think>", "T{a</think>}");
}

static void calls_of_other_functions_are_text(void **state)
{
    static const char tools[] = "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]";
    static const char of_g[] = "<tool_call>\n{\"name\": \"g\", \"arguments\": {\"a\": \"<tool_call>\"}}\n</tool_call>",
                      of_f[] = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
    const weft__answer_params hermes = by("hermes"), nemo = by("mistral-nemo");
    char answer[256], wanted[256];
    (void)state;
    snprintf(answer, sizeof answer, "Hm.\n%s\n%s", of_g, of_f);
    snprintf(wanted, sizeof wanted, "T{Hm.\n%s}C{f||{}}", of_g);
    becomes_with(&hermes, tools, answer, wanted);
    becomes_with(&nemo, tools,
                 "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {}}]",
                 "C{f||{}}T{, {\"name\": \"g\", \"arguments\": {}}]}");
}

static void reasoning_is_told_apart(void **state)
{
    (void)state;
    becomes("hermes", "<think>\nI see.\n</think>\n\nHi!\n", "R{I see.}T{Hi!\n}");
    becomes("hermes", "\n<think>a</think>b", "R{a}T{b}");
    becomes("hermes", "<think></think>b", "T{b}");
    becomes("hermes", "<think>  </think>  ", "");
    becomes("hermes", "</think>a</think>", "T{a</think>}");
    becomes("hermes", "<think>a </thin", "R{a </thin}");
    becomes("hermes", "<think>a\n ", "R{a\n }");
    becomes("hermes", "<think>a<think>b</think><think>c</think>d<think>", "R{a<think>bc}T{d<think>}");
    becomes("gemma4", "<|channel>thought\nhm<channel|>Hi", "R{hm}T{Hi}");
    becomes("seed", "<seed:think>hm</seed:think>Hi", "R{hm}T{Hi}");
    becomes("apertus", "<|inner_prefix|>hm<|inner_suffix|>Hi", "R{hm}T{Hi}");
    becomes("command-r7b", "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Hi<|END_RESPONSE|>", "R{hm}T{Hi}");
    becomes("granite-v3", "<think>hm</think><response>Hi </response>there</response>\n", "R{hm}T{Hi </response>there}");
    becomes("harmony", "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi",
            "R{hm}T{Hi}");
    becomes("muse", " to=self<|message|>hm<|eom|><|start|>assistant to=user<|message|>Hi", "R{hm}T{Hi}");
    becomes("solar", "<|think|>hm<|end|><|begin|>assistant<|content|>Hi", "R{hm}T{Hi}");
    becomes("kimi-k3", "<|open|>think<|sep|>hm<|close|>think<|sep|><|open|>response<|sep|>Hi<|close|>response<|sep|>",
            "R{hm}T{Hi}");
}

static void prompts_begin_reasoning(void **state)
{
    (void)state;
    weft__answer_params how = by("hermes");
    how.prompt = "<think>x</think>assistant\n<think>\n";
    how.n_prompt = strlen(how.prompt);
    becomes_with(&how, NULL, "\nI see.\n</think>\n\nHi", "R{I see.}T{Hi}");
    becomes_with(&how, NULL, "<think>", "R{<think>}");
    how.reasoning = 0;
    becomes_with(&how, NULL, "\nI see.\n</think>\n\nHi", "T{\nI see.\n</think>\n\nHi}");
    /* What the assistant's message had, which the answer goes on from. */
    how.reasoning = 1;
    how.prompt = "assistant\n<think>a";
    how.n_prompt = strlen(how.prompt);
    how.n_begun = 8;
    becomes_with(&how, NULL, " b</think>c", "R{b}T{c}");
    how.prompt = "assistant\n<think>a</think>d";
    how.n_prompt = strlen(how.prompt);
    how.n_begun = strlen("<think>a</think>d");
    becomes_with(&how, NULL, " <think>b</think>c", "T{ <think>b</think>c}");
    how.prompt = "assistant\n<think></think>\n";
    how.n_prompt = strlen(how.prompt);
    how.n_begun = 0;
    becomes_with(&how, NULL, "b", "T{b}");
}

static void what_is_not_wanted_is_text(void **state)
{
    (void)state;
    const char *all = "<think>\nhm\n</think>\n\na\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
    char text[200];
    snprintf(text, sizeof text, "T{%s}", all);
    weft__answer_params how = by("hermes");
    how.calls = how.reasoning = 0;
    becomes_with(&how, NULL, all, text);
    how.calls = 1;
    becomes_with(&how, NULL, all, "T{<think>\nhm\n</think>\n\na}C{f||{}}");
    how.calls = 0, how.reasoning = 1;
    becomes_with(&how, NULL, all, "R{hm}T{a\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>}");
    how = by("harmony");
    how.reasoning = 0;
    becomes_with(&how, NULL, "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi",
                 "T{<|channel|>analysis<|message|>hm<|end|>Hi}");
}

/* Text that is not beside what was told before. */
static int tell_any(void *arg, const weft_chat_part *p, size_t from, size_t to)
{
    told *t = arg;
    (void)from, (void)to;
    weft__strbuf_put(&t->line, p->text, p->n_text);
    return 0;
}

/* A text that ends the reasoning, cut behind each of its bytes. */
static void an_end_that_is_cut_is_not_told(void **state)
{
    (void)state;
    static const char end[] = "\n</think>\n\n";
    weft__answer_params how = by("hermes");
    how.prompt = "<think>\n", how.n_prompt = 8;
    for (int apart = 0; apart < 2; apart++) {
        how.reasoning = apart;
        for (size_t n = 0; n <= sizeof end - 1; n++) {
            told t = {.open = -1, .answer = "so </th\n</think>\n\n"};
            weft__answer *a;
            assert_int_equal(weft__answer_create(&how, NULL, &a, NULL), WEFT_OK);
            assert_int_equal(weft__answer_push(a, t.answer, 7, tell_line, &t, NULL), WEFT_OK);
            weft__answer_end_reasoning(a);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(weft__answer_push(a, end + i, 1, tell_any, &t, NULL), WEFT_OK);
            assert_int_equal(weft__answer_finish(a, tell_any, &t, NULL), WEFT_OK);
            weft__answer_destroy(&a);
            const int whole = n >= strlen("\n</think>");
            char wanted[64];
            snprintf(wanted, sizeof wanted, "%s{so </th%.*s", apart ? "R" : "T", whole && !apart ? (int)n : 0, end);
            assert_string_equal(t.line.data, wanted);
            weft__strbuf_free(&t.line);
        }
    }
}

#define F "{\"name\": \"f\", \"arguments\": {\"a\": [1, \"}\"]}}"
#define CALLED "C{f||{\"a\": [1, \"}\"]}}"

static void calls_are_told_whole(void **state)
{
    (void)state;
    becomes("hermes", "<tool_call>\n" F "\n</tool_call>", CALLED);
    becomes("hermes", "Well. \n\n<tool_call>" F "</tool_call>\n<tool_call>" F "</tool_call>\n\nSo.",
            "T{Well.}" CALLED CALLED "T{So.}");
    becomes("hermes", "<think>x</think>\n<tool_call>\n" F "\n</tool_call>\n", "R{x}" CALLED);
    becomes("hermes", "<tool_call>{\"arguments\": {\"a\": 1e2, \"b\": \"\\u00fc\"}, \"name\": \"f\"}</tool_call>",
            "C{f||{\"a\": 1e2, \"b\": \"\\u00fc\"}}");
    becomes("hermes", "<tool_call>{\"name\": \"f\"}</tool_call>", "C{f||{}}");
    becomes("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": null}</tool_call>", "C{f||{}}");
    becomes("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
            "C{f||{\"a\": 1}}");
    becomes("hermes", "<tool_call>{\"name\": \"f\", \"parameters\": {\"a\": 1}}</tool_call>", "C{f||{\"a\": 1}}");
    becomes("mistral-nemo", "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}, \"id\": \"abc123def\"}]",
            "C{f|abc123def|{}}");
    becomes("mistral", "[TOOL_CALLS]f[CALL_ID]abc123def[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}",
            "C{f|abc123def|{\"a\": 1}}C{g||{}}");
    becomes("kimi-k2",
            "<think>x<|tool_calls_section_begin|><|tool_call_begin|>functions.a.b:0<|tool_call_argument_begin|>{}"
            "<|tool_call_end|><|tool_call_begin|>f:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
            "<|tool_calls_section_end|>",
            "R{x}C{a.b|functions.a.b:0|{}}C{f|f:1|{}}");
    becomes("harmony",
            "<|channel|>commentary<|message|>Let me see.<|end|><|start|>assistant<|channel|>commentary to=functions.f "
            "<|constrain|>json<|message|>{\"a\": 1}",
            "T{Let me see.}C{f||{\"a\": 1}}");
    becomes("harmony", " to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}<|call|>", "C{f||{}}");
    becomes("functionary-v3.2", "all\nHi>>>f\n{\"a\": 1}>>>g\n{}", "T{Hi}C{f||{\"a\": 1}}C{g||{}}");
    becomes("functionary-v3.2", "f\n{\"a\": 1}", "C{f||{\"a\": 1}}");
    becomes("llama3", "{\"name\": \"f\", \"parameters\": {\"a\": 1}}", "C{f||{\"a\": 1}}");
    becomes("llama3", "<|python_tag|>search.call(query=\"a \\\"b\\\"\", n = 3)",
            "C{search.call||{\"query\":\"a \\\"b\\\"\",\"n\":3}}");
    becomes("muse",
            " to=f<|message|><atem:function_calls>\n<atem:invoke name=\"f\">\n</atem:invoke>\n</atem:function_calls>",
            "C{f||{}}");
}

/* The last of them counts, and arguments stay as they were written. */
static void members_may_repeat(void **state)
{
    (void)state;
    becomes("hermes",
            "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1, \"a\": {\"b\": 2, \"b\": 3}}}</tool_call>",
            "C{f||{\"a\": 1, \"a\": {\"b\": 2, \"b\": 3}}}");
    becomes("hermes",
            "<tool_call>{\"name\": \"g\", \"arguments\": {}, \"arguments\": {\"a\": 1}, \"name\": \"f\"}</tool_call>",
            "C{f||{\"a\": 1}}");
    becomes("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1, \\\"a\\\": 2}\"}</tool_call>",
            "C{f||{\"a\": 1, \"a\": 2}}");
    becomes("mistral", "[TOOL_CALLS]f[ARGS]{\"a\": 1, \"a\": 2}", "C{f||{\"a\": 1, \"a\": 2}}");
    becomes("harmony", " to=functions.f<|channel|>commentary <|constrain|>json<|message|>{\"a\": 1, \"a\": 2}<|call|>",
            "C{f||{\"a\": 1, \"a\": 2}}");
    becomes("apertus", "<|tools_prefix|>[{\"f\": {}, \"f\": {\"a\": 1, \"a\": 2}}]<|tools_suffix|>",
            "C{f||{\"a\": 1, \"a\": 2}}");
}

static void calls_that_are_all_of_an_answer(void **state)
{
    (void)state;
    becomes("generic", "{\"name\": \"f\", \"arguments\": {\"a\": 1}}", "C{f||{\"a\": 1}}");
    becomes("generic", "[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"parameters\": {\"a\": 1}}]",
            "C{f||{}}C{g||{\"a\": 1}}");
    becomes("generic", "{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {}, \"id\": \"7\"}]}", "C{f|7|{}}");
    becomes("generic", "{\"tool_call\": {\"name\": \"f\", \"arguments\": {}}}", "C{f||{}}");
    becomes("generic", "{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"a\": 1}}}",
            "C{f||{\"a\": 1}}");
    becomes("generic", "{\"a\": 1}", "T{{\"a\": 1}}");
    becomes("generic", "{\"name\": \"f\"}", "T{{\"name\": \"f\"}}");
    becomes("generic", "[1, 2]", "T{[1, 2]}");
    becomes("generic", "See: {\"name\": \"f\", \"arguments\": {}}", "T{See: {\"name\": \"f\", \"arguments\": {}}}");
}

/* Of formats, or forms of them, that no template at hand renders; each %s is the name or the arguments. */
static void calls_of_many_arguments_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *format, *answer;
    } all[] = {
        {"generic", "{\"name\": \"%s\", \"arguments\": %s}"},
        {"generic", "[{\"name\": \"%s\", \"parameters\": %s}]"},
        {"none", "{\"tool_calls\": [{\"name\": \"%s\", \"arguments\": %s}]}"},
        {"granite-v3", "<|tool_call|>[{\"name\": \"%s\", \"arguments\": %s}]"},
        {"llama3", "<|python_tag|>{\"name\": \"%s\", \"parameters\": %s}"},
        {"lfm2", "<|tool_call_start|>[{\"name\": \"%s\", \"arguments\": %s}]<|tool_call_end|>"},
        {"harmony", "<|channel|>commentary to=functions.%s <|constrain|>json<|message|>%s<|call|>"},
        {"mistral", "[TOOL_CALLS]%s[ARGS]%s"},
        {"kimi-k3",
         "<|open|>tools<|sep|><|open|>call tool=\"%s\" index=\"1\"<|sep|><|open|>json type=\"object\"<|sep|>%s"
         "<|close|>json<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t k = 0; k < N_ARGUMENTS; k++) {
            char answer[600], wanted[400];
            snprintf(answer, sizeof answer, all[i].answer, "get_it", arguments[k]);
            snprintf(wanted, sizeof wanted, "C{get_it||%s}", arguments[k]);
            becomes(all[i].format, answer, wanted);
        }
}

static void what_is_no_call_stays_text(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "<tool_call>",
        "a\n<tool_call>\nb",
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1",
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}} \n x</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
        "<tool_call>{\"name\": 3, \"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": {a: 1}}</tool_call>",
        "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": \"x\"}</tool_call>\n\n",
        "x <tool_call> \n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[200];
        snprintf(text, sizeof text, "T{%s}", texts[i]);
        becomes("hermes", texts[i], text);
    }
    /* The rest of what is cut off is no place for calls. */
    becomes("mistral", "[TOOL_CALLS]f[ARGS]{\"a\": \"[TOOL_CALLS]g[ARGS]{}",
            "T{[TOOL_CALLS]f[ARGS]{\"a\": \"[TOOL_CALLS]g[ARGS]{}}");
    becomes("lfm2", "<|tool_call_start|>[f(a='<|tool_call_start|>[g()]<|tool_call_end|>",
            "T{<|tool_call_start|>[f(a='<|tool_call_start|>[g()]<|tool_call_end|>}");
    /* What follows is looked at again. */
    becomes("hermes", "<tool_call>\n<tool_call>" F "</tool_call>", "T{<tool_call>}" CALLED);
    becomes("hermes", "<tool_call>{]</tool_call>\n<tool_call>" F "</tool_call>", "T{<tool_call>{]</tool_call>}" CALLED);
    becomes("kimi-k2",
            "<|tool_calls_section_begin|><|tool_call_begin|>f:0<|tool_call_argument_begin|>{}<|tool_call_end|> oh "
            "<|tool_calls_section_end|>",
            "C{f|f:0|{}}T{oh <|tool_calls_section_end|>}");
    becomes("mistral-nemo", "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"argu",
            "C{f||{}}T{, {\"name\": \"g\", \"argu}");
}

static void a_call_needs_no_last_marker(void **state)
{
    (void)state;
    becomes("hermes", "<tool_call>\n" F, CALLED);
    becomes("hermes", "<tool_call>\n" F "\n</tool_", CALLED);
    becomes("kimi-k2", "<|tool_calls_section_begin|><|tool_call_begin|>f:0<|tool_call_argument_begin|>{}",
            "C{f|f:0|{}}");
    becomes("qwen3-coder", "<tool_call>\n<function=f>\n</function>\n", "C{f||{}}");
    becomes("qwen3-coder", "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n",
            "T{<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n}");
}

#define TOOLS                                                                                                          \
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": \"object\", "                \
    "\"properties\": "                                                                                                 \
    "{\"s\": {\"type\": \"string\"}, \"n\": {\"type\": \"integer\"}, \"m\": {\"type\": [\"string\", \"null\"]}, "      \
    "\"e\": {\"enum\": [\"a\", \"b\"]}, \"o\": {\"anyOf\": [{\"type\": \"object\"}, {\"type\": \"null\"}]}, \"l\": "   \
    "{\"type\": \"array\", \"items\": {\"type\": \"string\"}}, \"b\": {\"type\": \"boolean\"}}}}}]"

static void plain_values_get_their_types(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *json;
    } all[] = {{"s", "3", "\"3\""},
               {"s", "\"3\"", "\"\\\"3\\\"\""},
               {"n", "3", "3"},
               {"n", "3.0", "3.0"},
               {"n", "three", "\"three\""},
               {"m", "null", "null"},
               {"m", "true", "\"true\""},
               {"e", "1", "\"1\""},
               {"o", "{\"a\": 1}", "{\"a\": 1}"},
               {"o", "[1", "\"[1\""},
               {"b", "true", "true"},
               {"unknown", "[1, 2]", "[1, 2]"},
               {"unknown", "\"a\"", "\"\\\"a\\\"\""},
               {"unknown", "a b", "\"a b\""},
               {"unknown", "", "\"\""}};
    static const struct {
        const char *format, *answer;
    } forms[] = {
        {"qwen3-coder", "<tool_call>\n<function=f>\n<parameter=%s>\n%s\n</parameter>\n</function>\n</tool_call>"},
        {"qwen3-coder", "<tool_call><function=f><parameter=%s>%s</parameter></function></tool_call>"},
        {"glm", "<tool_call>f\n<arg_key>%s</arg_key>\n<arg_value>%s</arg_value>\n</tool_call>"},
        {"seed", "<seed:tool_call>\n<function=f>\n<parameter=%s>%s</parameter>\n</function>\n</seed:tool_call>"},
    };
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            char answer[400], wanted[200];
            weft__answer_params how = by(forms[k].format);
            snprintf(answer, sizeof answer, forms[k].answer, all[i].name, all[i].value);
            snprintf(wanted, sizeof wanted, "C{f||{\"%s\":%s}}", all[i].name, all[i].json);
            becomes_with(&how, TOOLS, answer, wanted);
        }
    weft__answer_params how = by("seed");
    becomes_with(&how, TOOLS,
                 "<seed:tool_call><function=f><parameter=o>{'k': [True, None, 'it\\'s']}</parameter>"
                 "<parameter=b>False</parameter><parameter=s>None</parameter></function></seed:tool_call>",
                 "C{f||{\"o\":{\"k\":[true,null,\"it's\"]},\"b\":false,\"s\":\"None\"}}");
    how = by("minicpm5");
    becomes_with(&how, TOOLS, "<function name=\"f\"><param name=\"x\"><![CDATA[1 < 2]]></param></function>",
                 "C{f||{\"x\":\"1 < 2\"}}");
    how = by("minimax-m3");
    becomes_with(&how, TOOLS,
                 "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"f\">]<]minimax[>[<l>]<]minimax[>[<item>1"
                 "]<]minimax[>[</item>]<]minimax[>[</l>]<]minimax[>[<b>true]<]minimax[>[</b>]<]minimax[>[</invoke>\n"
                 "]<]minimax[>[</tool_call>",
                 "C{f||{\"l\":[\"1\"],\"b\":true}}");
}

static void values_may_spell_markers(void **state)
{
    (void)state;
    becomes("qwen3-coder",
            "<tool_call>\n<function=f>\n<parameter=s>\na</parameter> b\n</function>\n</tool_call>\nc\n</parameter>\n"
            "</function>\n</tool_call>",
            "C{f||{\"s\":\"a</parameter> b\\n</function>\\n</tool_call>\\nc\"}}");
    becomes(
        "hermes",
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"</tool_call><tool_call>{\\\"name\\\"\"}}</tool_call>",
        "C{f||{\"a\": \"</tool_call><tool_call>{\\\"name\\\"\"}}");
    becomes("lfm2", "<|tool_call_start|>[f(a='it's', b=\"x)\", c=('a', [1.5]), d=None), g()]<|tool_call_end|>ok",
            "C{f||{\"a\":\"it's\",\"b\":\"x)\",\"c\":[\"a\",[1.5]],\"d\":null}}C{g||{}}T{ok}");
    becomes("gemma4", "<|tool_call>call:f{a:<|\"|>}\"{<|\"|>,b:[true,{c:null}]}<tool_call|>",
            "C{f||{\"a\":\"}\\\"{\",\"b\":[true,{\"c\":null}]}}");
}

/* ---- bounds ---- */

static void long_calls_are_text(void **state)
{
    (void)state;
    const char *begin = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"", *end = "\"}}</tool_call>";
    for (int over = 0; over < 2; over++) {
        weft__answer_params how = by("hermes");
        weft__strbuf answer = {0};
        size_t fill = (1 << 20) - strlen(begin) - strlen(end) + (size_t)over;
        weft__strbuf_puts(&answer, begin);
        while (fill--) weft__strbuf_putc(&answer, 'x');
        weft__strbuf_puts(&answer, end);
        for (enum cut cut = WHOLE; cut <= TOKENS; cut += TOKENS) {
            weft__strbuf line = taken_apart(&how, NULL, answer.data, answer.len, cut, NULL);
            assert_int_equal(line.data[0], over ? 'T' : 'C');
            if (over) assert_int_equal(line.len, answer.len + 3);
            weft__strbuf_free(&line);
        }
        weft__strbuf_free(&answer);
    }
}

/* What an answer of n bytes is made of. */
typedef struct repeated {
    const char *format, *begin, *again;
} repeated;

static double apart(void *arg, size_t n)
{
    const repeated *r = arg;
    weft__answer_params how = by(r->format);
    weft__strbuf answer = {0};
    weft__strbuf_puts(&answer, r->begin);
    while (answer.len < n) weft__strbuf_puts(&answer, r->again);
    double began = own_seconds();
    weft__strbuf line = taken_apart(&how, NULL, answer.data, answer.len, TOKENS, NULL);
    double took = own_seconds() - began;
    weft__strbuf_free(&line);
    weft__strbuf_free(&answer);
    return took;
}

static void work_grows_with_the_answer(void **state)
{
    (void)state;
    static const repeated all[] = {
        {"hermes", "", "<tool_call>"},
        {"hermes", "", "<tool_call>{\"name\": \"<tool_call>"},
        {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"", "<tool_call>{\\\"name\\\""},
        {"hermes", "a", " "},
        {"hermes", "<think>", "</think"},
        {"hermes", "", "<tool_call>" F "</tool_call>\n"},
        {"qwen3-coder", "", "<tool_call>\n<function=f>\n<parameter=a>\n"},
        {"qwen3-coder", "<tool_call>\n<function=f>\n<parameter=a>\n", "</parameter> "},
        {"qwen3-coder", "<tool_call>\n<function=f>\n<parameter=a>\n</parameter>", " "},
        {"qwen3-coder", "<tool_call>\n<function=f>\n", "<parameter=a>\n1\n</parameter>\n"},
        {"lfm2", "<|tool_call_start|>[f(a='", "'  "},
        {"lfm2", "", "<|tool_call_start|>["},
        {"minimax-m3", "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"f\">", "]<]minimax[>[<a>"},
        {"generic", "{\"tool_calls\": [", F ","},
        {"kimi-k2", "<|tool_calls_section_begin|>",
         "<|tool_call_begin|>f:0<|tool_call_argument_begin|>{}<|tool_call_end|>\n"},
        {"granite-v3", "</response>", " "},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        repeated r = all[i];
        double times = growth_of(apart, &r, CLAIMS_REPEATED(400000, 200000, 40000));
        if (times > GROWTH_MOST) fail_msg("%s: %s%s...: %.0f times", r.format, r.begin, r.again, times);
    }
}

static int ignore(void *arg, const weft_chat_part *part, size_t from, size_t to)
{
    (void)part, (void)from, (void)to;
    return arg != NULL;
}

static int once(void *arg)
{
    static const struct {
        const char *format, *answer;
    } all[] = {{"hermes", "<think>a</think>b<tool_call>" F "</tool_call>"},
               {"qwen3-coder", "<tool_call><function=f><parameter=o>\n{\"a\": 1}\n</parameter></function></tool_call>"},
               {"seed", "<seed:tool_call><function=f><parameter=o>{'a': 'b'}</parameter></function></seed:tool_call>"},
               {"gemma4", "<|tool_call>call:f{a:<|\"|>}<|\"|>}<tool_call|>"}};
    (void)arg;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const weft__answer_params how = by(all[i].format);
        weft__answer *a = NULL;
        weft__json *tools = weft__json_new_array();
        if (!tools) return 0;
        weft_status st = weft__answer_create(&how, tools, &a, NULL);
        if (!st) st = weft__answer_push(a, all[i].answer, strlen(all[i].answer), ignore, NULL, NULL);
        if (!st) st = weft__answer_finish(a, ignore, NULL, NULL);
        weft__answer_destroy(&a);
        if (st) {
            assert_int_equal(st, WEFT_NO_MEMORY);
            return 0;
        }
    }
    return 1;
}

static void memory_runs_out(void **state)
{
    (void)state;
    assert_true(fail_each(once, NULL) > 20);
}

static void the_caller_stops_it(void **state)
{
    (void)state;
    const weft__answer_params how = by("hermes");
    weft__answer *a = NULL;
    weft_error err = {0};
    assert_int_equal(weft__answer_create(&how, NULL, &a, NULL), WEFT_OK);
    assert_int_equal(weft__answer_push(a, "a", 1, ignore, a, &err), WEFT_CANCELLED);
    weft__answer_destroy(&a);
}

static void markers_are_known_by_their_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *format, *shown, *other;
    } all[] = {{"harmony", "<|channel|>", "<|endoftext|>"},
               {"hermes", "<tool_call>", "<|im_end|>"},
               {"hermes", "</think>", "<"},
               {"gemma4", "<|\"|>", "<turn|>"},
               {"glm", "<arg_value>", "<|user|>"},
               {"kimi-k2", "<|tool_call_end|>", "<|im_end|>"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const weft__answer_params how = by(all[i].format);
        weft__answer *a = NULL;
        assert_int_equal(weft__answer_create(&how, NULL, &a, NULL), WEFT_OK);
        assert_true(weft__answer_has(a, all[i].shown, strlen(all[i].shown)));
        assert_false(weft__answer_has(a, all[i].other, strlen(all[i].other)));
        weft__answer_destroy(&a);
    }
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stays_as_it_is),
        cmocka_unit_test(calls_of_other_functions_are_text),
        cmocka_unit_test(reasoning_is_told_apart),
        cmocka_unit_test(prompts_begin_reasoning),
        cmocka_unit_test(what_is_not_wanted_is_text),
        cmocka_unit_test(an_end_that_is_cut_is_not_told),
        cmocka_unit_test(calls_are_told_whole),
        cmocka_unit_test(members_may_repeat),
        cmocka_unit_test(calls_that_are_all_of_an_answer),
        cmocka_unit_test(calls_of_many_arguments_are_told),
        cmocka_unit_test(what_is_no_call_stays_text),
        cmocka_unit_test(a_call_needs_no_last_marker),
        cmocka_unit_test(plain_values_get_their_types),
        cmocka_unit_test(values_may_spell_markers),
        cmocka_unit_test(long_calls_are_text),
        cmocka_unit_test(work_grows_with_the_answer),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(the_caller_stops_it),
        cmocka_unit_test(markers_are_known_by_their_tokens),
    };
    return claims_status(cmocka_run_group_tests_name("answers", tests, NULL, NULL));
}
