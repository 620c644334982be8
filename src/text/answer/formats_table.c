// SPDX-License-Identifier: Apache-2.0
/* formats_table.c: the formats of answers (format.h), as the models' own templates write them; what models write in
 * answers without being shown it is as their cards and vLLM's and llama.cpp's parsers know it. */
#include "text/answer/format.h"

#define STEPS(...) ((const weft__answer_step[]){__VA_ARGS__, {WEFT__ANSWER_END, NULL}})
#define MARK(mark)                                                                                                     \
    {                                                                                                                  \
        WEFT__ANSWER_MARK, mark                                                                                        \
    }
#define MAYBE(mark)                                                                                                    \
    {                                                                                                                  \
        WEFT__ANSWER_MAYBE, mark                                                                                       \
    }
#define SPACE(written)                                                                                                 \
    {                                                                                                                  \
        WEFT__ANSWER_SPACE, written                                                                                    \
    }
#define STEP(op)                                                                                                       \
    {                                                                                                                  \
        WEFT__ANSWER_##op, NULL                                                                                        \
    }
#define SKIP(written)                                                                                                  \
    {                                                                                                                  \
        WEFT__ANSWER_SKIP, written                                                                                     \
    }
#define SIGNS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define FORMS(...)                                                                                                     \
    .forms = (const weft__answer_form[]){__VA_ARGS__},                                                                 \
    .n_forms = sizeof((const weft__answer_form[]){__VA_ARGS__}) / sizeof(weft__answer_form)
#define FRAMES(...) ((const weft__answer_frame[]){__VA_ARGS__, {NULL, WEFT__ANSWER_ANYWHERE}})
#define REASONING(b, e) (&(const weft__answer_reasoning){.begin = b, .end = e})
#define USUAL_KEYS                                                                                                     \
    {                                                                                                                  \
        "name", "arguments", "id"                                                                                      \
    }

/* A call, or several in a list, that is the answer: where nothing else says that there is one. */
#define BARE_CALL                                                                                                      \
    {                                                                                                                  \
        .first = 1, .call = STEPS(STEP(CALL))                                                                          \
    }
#define BARE_LIST                                                                                                      \
    {                                                                                                                  \
        .first = 1, .open = STEPS(MARK("["), SPACE("")), .call = STEPS(STEP(CALL)),                                    \
        .between = STEPS(SPACE(""), MARK(","), SPACE(" ")), .close = STEPS(SPACE(""), MARK("]"))                       \
    }
#define BARE_MEMBER                                                                                                    \
    {.first = 1,                                                                                                       \
     .open =                                                                                                           \
         STEPS(MARK("{"), SPACE(""), MARK("\"tool_calls\""), SPACE(""), MARK(":"), SPACE(" "), MARK("["), SPACE("")),  \
     .call = STEPS(STEP(CALL)),                                                                                        \
     .between = STEPS(SPACE(""), MARK(","), SPACE(" ")),                                                               \
     .close = STEPS(SPACE(""), MARK("]"), SPACE(""), MARK("}"))},                                                      \
    {                                                                                                                  \
        .first = 1, .call = STEPS(MARK("{"), SPACE(""), MARK("\"tool_call\""), SPACE(""), MARK(":"), SPACE(" "),       \
                                  STEP(CALL), SPACE(""), MARK("}"))                                                    \
    }
/* Calls as a JSON list between two markers. */
#define MARKED_LIST(begin, end)                                                                                        \
    {                                                                                                                  \
        .open = STEPS(MARK(begin), SPACE(""), MARK("["), SPACE("")), .call = STEPS(STEP(CALL)),                        \
        .between = STEPS(SPACE(""), MARK(","), SPACE(" ")), .close = STEPS(SPACE(""), MARK("]"), SPACE(""), MARK(end)) \
    }
/* Calls of functions as elements, with their parameters, within a section. */
#define ELEMENT(begin, end) STEPS(MARK(begin), STEP(NAME), MARK("\">"), SPACE("\n"), STEP(PARAMETERS), MARK(end))
#define SECTION(begin, of, end)                                                                                        \
    {                                                                                                                  \
        .open = STEPS(MARK(begin), SPACE("\n")), .call = of, .between = STEPS(SPACE("\n")),                            \
        .close = STEPS(SPACE("\n"), MARK(end))                                                                         \
    }
#define DSML(section)                                                                                                  \
    SECTION("<｜DSML｜" section ">", ELEMENT("<｜DSML｜invoke name=\"", "</｜DSML｜invoke>"), "</｜DSML｜" section ">")
#define DSML_PARAMETER                                                                                                 \
    STEPS(MARK("<｜DSML｜parameter name=\""), STEP(KEY), MARK("\" string=\""), STEP(TYPE), MARK("\">"), STEP(VALUE),   \
          MARK("</｜DSML｜parameter>"))
/* Python's calls in a list between markers: LFM2. */
#define PYTHON_LIST(begin, end)                                                                                        \
    STEPS(MARK(begin), SPACE(""), MARK("["), SPACE("")), .call = STEPS(STEP(NAME), STEP(KEYWORDS)),                    \
                                                         .between = STEPS(SPACE(""), MARK(","), SPACE(" ")),           \
                                                         .close = STEPS(SPACE(""), MARK("]"), SPACE(""), MARK(end))
#define COMMAND_KEYS                                                                                                   \
    {                                                                                                                  \
        "tool_name", "parameters", "tool_call_id"                                                                      \
    }

const weft__answer_format weft__answer_formats[] = {
    {.name = "harmony",
     .signs = SIGNS("<|channel|>", "<|message|>", "<|start|>assistant"),
     FORMS({.call = STEPS(MARK("<|channel|>commentary to=functions."), STEP(NAME), SPACE(" "), MAYBE("<|constrain|>"),
                          MAYBE("json"), SPACE(""), MARK("<|message|>"), STEP(ARGUMENTS), MARK("<|call|>"))},
           {.call = STEPS(MARK("<|channel|>analysis to=functions."), STEP(NAME), SPACE(" "), MAYBE("<|constrain|>"),
                          MAYBE("json"), SPACE(""), MARK("<|message|>"), STEP(ARGUMENTS), MARK("<|call|>"))},
           {.first = 1,
            .call = STEPS(MARK(" to=functions."), STEP(NAME), MARK("<|channel|>"), SKIP("commentary"), SPACE(" "),
                          MAYBE("<|constrain|>"), MAYBE("json"), SPACE(""), MARK("<|message|>"), STEP(ARGUMENTS),
                          MARK("<|call|>"))}),
     .reasoning = REASONING("<|channel|>analysis<|message|>", "<|end|>"),
     .resume = "<|start|>assistant",
     .answer = "<|start|>assistant<|channel|>final<|message|>",
     .frames =
         FRAMES({"<|start|>assistant", WEFT__ANSWER_ANYWHERE}, {"<|channel|>final<|message|>", WEFT__ANSWER_ANYWHERE},
                {"<|channel|>final <|constrain|>json<|message|>", WEFT__ANSWER_ANYWHERE},
                {"<|channel|>commentary<|message|>", WEFT__ANSWER_ANYWHERE}, {"<|end|>", WEFT__ANSWER_ANYWHERE},
                {"<|return|>", WEFT__ANSWER_LAST})},
    {.name = "kimi-k3",
     .signs = SIGNS("<|open|>", "<|close|>", "<|sep|>"),
     FORMS({.open = STEPS(MARK("<|open|>tools<|sep|>"), SPACE("")),
            .call = STEPS(MARK("<|open|>call tool=\""), STEP(NAME), MARK("\" index=\""), STEP(SKIP), MARK("\"<|sep|>"),
                          SPACE(""), STEP(PARAMETERS), MARK("<|close|>call<|sep|>")),
            .between = STEPS(SPACE("")),
            .close = STEPS(MARK("<|close|>tools<|sep|>"))},
           {.open = STEPS(MARK("<|open|>tools<|sep|>"), SPACE("")),
            .call = STEPS(MARK("<|open|>call tool=\""), STEP(NAME), MARK("\" index=\""), STEP(SKIP), MARK("\"<|sep|>"),
                          SPACE(""), MARK("<|open|>json type=\"object\"<|sep|>"), STEP(ARGUMENTS),
                          MARK("<|close|>json<|sep|>"), SPACE(""), MARK("<|close|>call<|sep|>")),
            .between = STEPS(SPACE("")),
            .close = STEPS(MARK("<|close|>tools<|sep|>"))}),
     .parameter = STEPS(MARK("<|open|>argument key=\""), STEP(KEY), MARK("\" type=\""), STEP(TYPE), MARK("\"<|sep|>"),
                        STEP(VALUE), MARK("<|close|>argument<|sep|>")),
     .answer = "<|open|>response<|sep|>",
     .reasoning = REASONING("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
     .frames =
         FRAMES({"<|open|>response<|sep|>", WEFT__ANSWER_ANYWHERE}, {"<|close|>response<|sep|>", WEFT__ANSWER_ANYWHERE},
                {"<|close|>message<|sep|>", WEFT__ANSWER_ANYWHERE})},
    {.name = "muse",
     .signs = SIGNS("<atem:function_calls>", "<|start|>assistant"),
     FORMS({.first = 1,
            .call = STEPS(MARK(" to="), SKIP("%"), MARK("<|message|>"), SPACE(""), MARK("<atem:function_calls>"),
                          SPACE("\n"), MARK("<atem:invoke name=\""), STEP(NAME), MARK("\">"), SPACE("\n"),
                          STEP(PARAMETERS), MARK("</atem:invoke>"), SPACE("\n"), MARK("</atem:function_calls>"))}),
     .parameter =
         STEPS(MARK("<atem:parameter name=\""), STEP(KEY), MARK("\">"), STEP(VALUE), MARK("</atem:parameter>")),
     .reasoning = REASONING(" to=self<|message|>", "<|eom|>"),
     .resume = "<|start|>assistant",
     .answer = "<|start|>assistant to=user<|message|>",
     .frames = FRAMES({"<|start|>assistant", WEFT__ANSWER_ANYWHERE}, {" to=user<|message|>", WEFT__ANSWER_FIRST},
                      {"<|message|>", WEFT__ANSWER_FIRST}, {"<|eom|>", WEFT__ANSWER_ANYWHERE})},
    {.name = "solar",
     .signs = SIGNS("<|tool_call:begin|>", "<|tool_call:args|>"),
     FORMS({.open = STEPS(MARK("<|tool_calls|>"), SPACE("")),
            .call = STEPS(MARK("<|tool_call:begin|>"), STEP(ID), MARK("<|tool_call:name|>"), STEP(NAME),
                          MARK("<|tool_call:args|>"), SPACE(""), STEP(ARGUMENTS), SPACE(""), MARK("<|tool_call:end|>")),
            .between = STEPS(SPACE("")),
            .close = STEPS(MARK("<|calls|>"))}),
     .reasoning = REASONING("<|think|>", "<|end|>"),
     .resume = "<|begin|>assistant",
     .answer = "<|begin|>assistant<|content|>",
     .frames = FRAMES({"<|begin|>assistant", WEFT__ANSWER_ANYWHERE}, {"<|content|>", WEFT__ANSWER_FIRST})},
    {.name = "gemma4",
     .signs = SIGNS("<|tool_call>call:", "<tool_call|>"),
     FORMS({.call = STEPS(MARK("<|tool_call>call:"), STEP(NAME), STEP(PAIRS), MARK("<tool_call|>"))}),
     .reasoning = REASONING("<|channel>thought\n", "<channel|>")},
    {.name = "command-r7b",
     .signs = SIGNS("<|START_ACTION|>", "<|END_ACTION|>"),
     FORMS(MARKED_LIST("<|START_ACTION|>", "<|END_ACTION|>")),
     .keys = COMMAND_KEYS,
     .reasoning = REASONING("<|START_THINKING|>", "<|END_THINKING|>"),
     .frames = FRAMES({"<|START_RESPONSE|>", WEFT__ANSWER_ANYWHERE}, {"<|END_RESPONSE|>", WEFT__ANSWER_ANYWHERE},
                      {"<|START_TEXT|>", WEFT__ANSWER_ANYWHERE}, {"<|END_TEXT|>", WEFT__ANSWER_ANYWHERE})},
    {.name = "command-r",
     .signs = SIGNS("Action:", "\"tool_name\"", "```json"),
     FORMS({.open = STEPS(MARK("Action:"), SPACE("\n"), MARK("```json"), SPACE("\n"), MARK("["), SPACE("\n")),
            .call = STEPS(STEP(CALL)),
            .between = STEPS(MARK(","), SPACE("\n")),
            .close = STEPS(MARK("]"), SPACE("\n"), MARK("```"))}),
     .keys = COMMAND_KEYS},
    {.name = "apertus",
     .signs = SIGNS("<|tools_prefix|>", "<|tools_suffix|>"),
     FORMS(MARKED_LIST("<|tools_prefix|>", "<|tools_suffix|>")),
     .reasoning = REASONING("<|inner_prefix|>", "<|inner_suffix|>")},
    {.name = "minimax-m3",
     .signs = SIGNS("]<]minimax[>[", "<tool_call>"),
     FORMS(SECTION("]<]minimax[>[<tool_call>",
                   STEPS(MARK("]<]minimax[>[<invoke name=\""), STEP(NAME), MARK("\">"), STEP(ELEMENTS),
                         MARK("]<]minimax[>[</invoke>")),
                   "]<]minimax[>[</tool_call>")),
     .tag = "]<]minimax[>[",
     .reasoning = REASONING("<mm:think>", "</mm:think>")},
    {.name = "minimax-m2",
     .signs = SIGNS("<minimax:tool_call>", "<invoke name="),
     FORMS(SECTION("<minimax:tool_call>", ELEMENT("<invoke name=\"", "</invoke>"), "</minimax:tool_call>")),
     .parameter = STEPS(MARK("<parameter name=\""), STEP(KEY), MARK("\">"), STEP(VALUE), MARK("</parameter>"))},
    {.name = "minimax-m1",
     .signs = SIGNS("<tool_calls>", "ai name="),
     FORMS(SECTION("<tool_calls>", STEPS(STEP(CALL)), "</tool_calls>")),
     .keys = USUAL_KEYS,
     .reasoning = REASONING("<think>", "</think>")},
    {.name = "deepseek-v3.2",
     .signs = SIGNS("DSML", "function_calls"),
     FORMS(DSML("function_calls")),
     .parameter = DSML_PARAMETER},
    {.name = "deepseek-v4",
     .signs = SIGNS("DSML", "tool_calls"),
     FORMS(DSML("tool_calls")),
     .parameter = DSML_PARAMETER},
    {.name = "deepseek-r1",
     .signs = SIGNS("<｜tool▁call▁begin｜>", "```json"),
     FORMS({.open = STEPS(MARK("<｜tool▁calls▁begin｜>"), SPACE("")),
            .call = STEPS(MARK("<｜tool▁call▁begin｜>"), SKIP("function"), MARK("<｜tool▁sep｜>"), STEP(NAME),
                          SPACE("\n"), MARK("```json"), SPACE("\n"), STEP(ARGUMENTS), SPACE("\n"), MARK("```"),
                          SPACE(""), MARK("<｜tool▁call▁end｜>")),
            .between = STEPS(SPACE("\n")),
            .close = STEPS(MARK("<｜tool▁calls▁end｜>"))})},
    {.name = "deepseek-v3.1",
     .signs = SIGNS("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"),
     FORMS({.open = STEPS(MARK("<｜tool▁calls▁begin｜>"), SPACE("")),
            .call = STEPS(MARK("<｜tool▁call▁begin｜>"), STEP(NAME), MARK("<｜tool▁sep｜>"), SPACE(""), STEP(ARGUMENTS),
                          SPACE(""), MARK("<｜tool▁call▁end｜>")),
            .between = STEPS(SPACE("")),
            .close = STEPS(MARK("<｜tool▁calls▁end｜>"))})},
    {.name = "kimi-k2",
     .signs = SIGNS("<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"),
     FORMS({.open = STEPS(MARK("<|tool_calls_section_begin|>"), SPACE("")),
            .call = STEPS(MARK("<|tool_call_begin|>"), SPACE(""), STEP(NAMED_ID), SPACE(""),
                          MARK("<|tool_call_argument_begin|>"), SPACE(""), STEP(ARGUMENTS), SPACE(""),
                          MARK("<|tool_call_end|>")),
            .between = STEPS(SPACE("")),
            .close = STEPS(MARK("<|tool_calls_section_end|>"))}),
     .ends_reasoning = 1},
    {.name = "mistral",
     .signs = SIGNS("[TOOL_CALLS]", "[ARGS]"),
     FORMS({.call = STEPS(MARK("[TOOL_CALLS]"), STEP(NAME), MARK("[ARGS]"), SPACE(""), STEP(ARGUMENTS))},
           {.call = STEPS(MARK("[TOOL_CALLS]"), STEP(NAME), MARK("[CALL_ID]"), STEP(ID), MARK("[ARGS]"), SPACE(""),
                          STEP(ARGUMENTS))}),
     .reasoning = NULL},
    {.name = "mistral-nemo",
     .signs = SIGNS("[TOOL_CALLS]"),
     FORMS({.open = STEPS(MARK("[TOOL_CALLS]"), SPACE(""), MARK("["), SPACE("")),
            .call = STEPS(STEP(CALL)),
            .between = STEPS(MARK(","), SPACE(" ")),
            .close = STEPS(MARK("]"))}),
     .keys = USUAL_KEYS},
    {.name = "seed",
     .signs = SIGNS("<seed:tool_call>", "<parameter="),
     FORMS({.call = STEPS(MARK("<seed:tool_call>"), SPACE("\n"), MARK("<function="), STEP(NAME), MARK(">"), SPACE("\n"),
                          STEP(PARAMETERS), MARK("</function>"), SPACE("\n"), MARK("</seed:tool_call>"))}),
     .parameter = STEPS(MARK("<parameter="), STEP(KEY), MARK(">"), STEP(VALUE), MARK("</parameter>")),
     .values = WEFT__ANSWER_PYTHON,
     .reasoning = REASONING("<seed:think>", "</seed:think>")},
    {.name = "hunyuan",
     .signs = SIGNS(":opensource", "<tool_calls", "<arg_key"),
     FORMS(SECTION("<tool_calls:opensource>",
                   STEPS(MARK("<tool_call:opensource>"), STEP(NAME), MARK("<tool_sep:opensource>"), SPACE("\n"),
                         STEP(PARAMETERS), MARK("</tool_call:opensource>")),
                   "</tool_calls:opensource>")),
     .parameter = STEPS(MARK("<arg_key:opensource>"), STEP(KEY), MARK("</arg_key:opensource>"), SPACE("\n"),
                        MARK("<arg_value:opensource>"), STEP(VALUE), MARK("</arg_value:opensource>")),
     .reasoning = REASONING("<think:opensource>", "</think:opensource>")},
    {.name = "glm",
     .signs = SIGNS("<tool_call>", "<arg_key>", "<arg_value>"),
     FORMS({.call = STEPS(MARK("<tool_call>"), SPACE(""), STEP(NAME), SPACE("\n"), STEP(PARAMETERS),
                          MARK("</tool_call>"))}),
     .parameter = STEPS(MARK("<arg_key>"), STEP(KEY), MARK("</arg_key>"), SPACE("\n"), MARK("<arg_value>"), STEP(VALUE),
                        MARK("</arg_value>"))},
    {.name = "qwen3-coder",
     .signs = SIGNS("<tool_call>", "<function=", "<parameter="),
     FORMS({.call = STEPS(MARK("<tool_call>"), SPACE("\n"), MARK("<function="), STEP(NAME), MARK(">"), SPACE("\n"),
                          STEP(PARAMETERS), MARK("</function>"), SPACE("\n"), MARK("</tool_call>"))},
           {.call = STEPS(MARK("<function="), STEP(NAME), MARK(">"), SPACE("\n"), STEP(PARAMETERS), MARK("</function>"),
                          SPACE("\n"), MAYBE("</tool_call>"))}),
     .parameter = STEPS(MARK("<parameter="), STEP(KEY), MARK(">"), STEP(VALUE), MARK("</parameter>")),
     .values = WEFT__ANSWER_LINES | WEFT__ANSWER_PYTHON},
    {.name = "minicpm5",
     .signs = SIGNS("<function name=\"", "<param name="),
     FORMS({.call = STEPS(MARK("<function name=\""), STEP(NAME), MARK("\">"), SPACE(""), STEP(PARAMETERS),
                          MARK("</function>"))}),
     .parameter = STEPS(MARK("<param name=\""), STEP(KEY), MARK("\">"), STEP(VALUE), MARK("</param>")),
     .values = WEFT__ANSWER_PYTHON | WEFT__ANSWER_CDATA},
    {.name = "functionary-v3.1",
     .signs = SIGNS("<function=", "<|start_header_id|>"),
     FORMS({.call = STEPS(MARK("<function="), STEP(NAME), MARK(">"), SPACE(""), STEP(ARGUMENTS), SPACE(""),
                          MARK("</function>"))})},
    {.name = "functionary-v3.2",
     .signs = SIGNS(">>>all"),
     FORMS({.first = 1, .call = STEPS(STEP(NAME), MARK("\n"), STEP(ARGUMENTS))},
           {.call = STEPS(MARK(">>>"), STEP(NAME), MARK("\n"), STEP(ARGUMENTS))}),
     .frames = FRAMES({"all\n", WEFT__ANSWER_FIRST}, {">>>all\n", WEFT__ANSWER_ANYWHERE})},
    {.name = "firefunction",
     .signs = SIGNS(" functools["),
     FORMS({.open = STEPS(MARK("functools["), SPACE("")),
            .call = STEPS(STEP(CALL)),
            .between = STEPS(MARK(","), SPACE(" ")),
            .close = STEPS(MARK("]"))}),
     .keys = USUAL_KEYS},
    {.name = "llama3",
     .signs = SIGNS("<|start_header_id|>ipython<|end_header_id|>", "\"parameters\": "),
     FORMS(BARE_CALL, {.call = STEPS(MARK("<|python_tag|>"), STEP(CALL))},
           {.call = STEPS(MARK("<|python_tag|>"), STEP(NAME), STEP(KEYWORDS))}),
     .keys = {"name", "parameters", NULL}},
    {.name = "nemotron-v2",
     .signs = SIGNS("<TOOLCALL>", "</TOOLCALL>"),
     FORMS(MARKED_LIST("<TOOLCALL>", "</TOOLCALL>")),
     .keys = USUAL_KEYS},
    {.name = "apriel",
     .signs = SIGNS("<tool_calls>[", "[BEGIN FINAL RESPONSE]"),
     FORMS(MARKED_LIST("<tool_calls>", "</tool_calls>")),
     .keys = USUAL_KEYS,
     .reasoning = REASONING("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"),
     .frames = FRAMES({"[END FINAL RESPONSE]", WEFT__ANSWER_LAST})},
    {.name = "gigachat-v3.1",
     .signs = SIGNS("<|function_call|>", "<|role_sep|>"),
     FORMS({.call = STEPS(MARK("<|function_call|>"), SPACE(""), STEP(CALL))}),
     .keys = USUAL_KEYS},
    {.name = "gigachat-v3",
     .signs = SIGNS("function call", "<|role_sep|>"),
     FORMS({.call = STEPS(MARK("<|message_sep|>\n\nfunction call<|role_sep|>"), SPACE("\n"), STEP(CALL))},
           {.first = 1, .call = STEPS(MARK("function call<|role_sep|>"), SPACE("\n"), STEP(CALL))}),
     .keys = USUAL_KEYS},
    {.name = "granite-v3",
     .signs = SIGNS("<|tool_call|>", "<|start_of_role|>"),
     FORMS({.open = STEPS(MARK("<|tool_call|>"), SPACE(""), MARK("["), SPACE("")),
            .call = STEPS(STEP(CALL)),
            .between = STEPS(MARK(","), SPACE(" ")),
            .close = STEPS(MARK("]"))}),
     .keys = USUAL_KEYS,
     .reasoning = REASONING("<think>", "</think>"),
     .frames = FRAMES({"<response>", WEFT__ANSWER_FIRST}, {"</response>", WEFT__ANSWER_LAST})},
    {.name = "lfm2",
     .signs = SIGNS("List of tools: "),
     FORMS({.open = PYTHON_LIST("<|tool_call_start|>", "<|tool_call_end|>")},
           MARKED_LIST("<|tool_call_start|>", "<|tool_call_end|>")),
     .keys = USUAL_KEYS},
    {.name = "hermes",
     .signs = SIGNS("<tool_call>"),
     FORMS({.call = STEPS(MARK("<tool_call>"), SPACE("\n"), STEP(CALL), SPACE("\n"), MARK("</tool_call>"))}),
     .keys = USUAL_KEYS},
    {.name = "generic", FORMS(BARE_CALL, BARE_LIST, BARE_MEMBER), .keys = USUAL_KEYS},
    {.name = "none", FORMS(BARE_CALL, BARE_LIST, BARE_MEMBER), .keys = USUAL_KEYS},
};
const size_t weft__answer_n_formats = sizeof weft__answer_formats / sizeof *weft__answer_formats;

const weft__answer_reasoning weft__answer_reasonings[] = {
    {.signs = SIGNS("<think>", "</think>"), .begin = "<think>", .end = "</think>"},
    {.signs = SIGNS("</think>"), .begin = "<think>", .end = "</think>"},
    {.signs = SIGNS("[THINK]", "[/THINK]"), .begin = "[THINK]", .end = "[/THINK]"},
    {.signs = SIGNS("<think>"), .begin = "<think>", .end = "</think>"},
};
const size_t weft__answer_n_reasonings = sizeof weft__answer_reasonings / sizeof *weft__answer_reasonings;
