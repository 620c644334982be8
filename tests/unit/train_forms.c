// SPDX-License-Identifier: Apache-2.0
/* train_forms.c: records as ShareGPT, Alpaca and `weft chat` write them are learned as our own form of them, to the
 * token; what is wrong with one is named by file and line, or by its number in a list, with what it must be. */
#include "unit/train_world.h"

static const struct {
    weft__dataset_form form;
    const char *bytes;
} same_records[] = {
    {WEFT__DATASET_JSONL, "{\"messages\": [" SAYS("system", "be kind") ", " SAYS("user", "who?\\n\\nthere") ", " SAYS(
                              "assistant", "the fox") "]}\n"},
    {WEFT__DATASET_JSONL,
     "[" SAYS("system", "be kind") ", " SAYS("user", "who?\\n\\nthere") ", " SAYS("assistant", "the fox") "]\n"},
    {WEFT__DATASET_JSONL, "[\n  " SAYS("system", "be kind") ",\n  " SAYS("user", "who?\\n\\nthere") ",\n  " SAYS(
                              "assistant", "the fox") "\n]\n"},
    {WEFT__DATASET_JSON, "[\n  " SAYS("system", "be kind") ",\n  " SAYS("user", "who?\\n\\nthere") ",\n  " SAYS(
                             "assistant", "the fox") "\n]\n"},
    {WEFT__DATASET_JSON, "{\"messages\": [" SAYS("system", "be kind") ", " SAYS("user", "who?\\n\\nthere") ", " SAYS(
                             "assistant", "the fox") "]}\n"},
    {WEFT__DATASET_JSON, "\xEF\xBB\xBF[{\"messages\": [" SAYS("system", "be kind") ", " SAYS(
                             "user", "who?\\n\\nthere") ", " SAYS("assistant", "the fox") "]}]"},
    {WEFT__DATASET_JSONL, "{\"id\": \"1\", \"conversations\": [{\"from\": \"system\", \"value\": \"be kind\"}, "
                          "{\"from\": \"human\", \"value\": \"who?\\n\\nthere\"}, "
                          "{\"from\": \"gpt\", \"value\": \"the fox\"}]}"},
    {WEFT__DATASET_JSON, "[{\"system\": \"be kind\", \"tools\": \"\", \"conversations\": [{\"from\": \"user\", "
                         "\"value\": \"who?\\n\\nthere\"}, {\"from\": "
                         "\"assistant\", \"value\": \"the fox\"}]}]"},
    {WEFT__DATASET_JSONL, "{\"conversations\": [" SAYS("system", "be kind") ", " SAYS(
                              "user", "who?\\n\\nthere") ", " SAYS("assistant", "the fox") "]}"},
    {WEFT__DATASET_JSONL, "{\"instruction\": \"who?\", \"input\": \"there\", \"output\": \"the fox\", \"system\": \"be "
                          "kind\", \"text\": \"all of it\"}"},
    {WEFT__DATASET_JSON, "[{\"instruction\": \"who?\\n\\nthere\", \"input\": \"\", \"output\": \"the fox\", "
                         "\"system\": \"be kind\", \"history\": []}]"},
    {WEFT__DATASET_JSON, "{\"instruction\": \"who?\\n\\nthere\", \"output\": \"the fox\", \"system\": \"be "
                         "kind\"}\n{\"instruction\": \"b\", \"output\": \"c\"}\n"},
};

/* Records as other programs write them, and chats as `weft chat` saves and saved them, are what our own form of them
 * is, to the token. */
static void records_of_others_are_learned_as_ours(void **state)
{
    (void)state;
    static const char shown[] =
        "<|start|><|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\nwho?\n\nthere<|im_end|>\n"
        "<|im_start|>assistant\nthe fox";
    for (size_t i = 0; i < sizeof same_records / sizeof *same_records; i++) {
        world w;
        open_world(&w, template, plain);
        add(&w, same_records[i].form, same_records[i].bytes);
        weft__train_batch b = next(&w);
        expect_segment(&w, &b, 0, shown, "the fox<|im_end|>");
        close_world(&w);
    }
    world w;
    open_world(&w, template, plain);
    add(&w, WEFT__DATASET_JSONL,
        "{\"instruction\": \"and?\", \"input\": null, \"output\": \"the owl\", \"history\": [[\"who?\", \"the "
        "fox\"]]}\n");
    weft__train_batch b = next(&w);
    expect_segment(&w, &b, 0,
                   "<|start|><|im_start|>user\nwho?<|im_end|>\n<|im_start|>assistant\nthe "
                   "fox<|im_end|>\n<|im_start|>user\nand?<|im_end|>\n"
                   "<|im_start|>assistant\nthe owl",
                   "the owl<|im_end|>");
    close_world(&w);
    open_world(&w, NULL, plain); /* no template: the text goes on */
    add(&w, WEFT__DATASET_JSONL, "{\"instruction\": \"the\", \"output\": \" fox\"}");
    b = next(&w);
    expect_segment(&w, &b, 0, "<|start|>the fox", " fox<|stop|>");
    close_world(&w);
    static const struct {
        const char *bytes;
        int is_chat;
    } texts[] = {{"[\n" SAYS("user", "who?") ",\n" SAYS("assistant", "the fox") "\n]\n", 1},
                 {"{\"messages\": [" SAYS("user", "who?") ", " SAYS("assistant", "the fox") "]}\n", 1},
                 {"{\"text\": \"the fox\"}\n", 0},
                 {"[1]\nthe fox", 0}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts;
         i++) { /* a saved chat under any name; other JSON is text there */
        weft__dataset_totals c;
        open_world(&w, template, plain);
        add(&w, WEFT__DATASET_TEXT, texts[i].bytes);
        b = next(&w);
        if (texts[i].is_chat)
            expect_segment(&w, &b, 0, "<|start|><|im_start|>user\nwho?<|im_end|>\n<|im_start|>assistant\nthe fox",
                           "the fox<|im_end|>");
        weft__dataset_counts(w.d, &c);
        assert_int_equal(b.target[0] >= 0, !texts[i].is_chat); /* of text all is learned */
        close_world(&w);
    }
    assert_int_equal(weft__dataset_form_of("a/chat.JSON"), WEFT__DATASET_JSON);
    assert_int_equal(weft__dataset_form_of("chat.jsonl"), WEFT__DATASET_JSONL);
}

/* Tables have tools as JSON text. */
static void tools_as_text_are_tools(void **state)
{
    (void)state;
    static const char shows_tools[] = "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages "
                                      "%}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
                                      "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
                      turns[] = "<|im_start|>user\nwho?<|im_end|>\n<|im_start|>assistant\nthe fox";
    static const char *const records[] = {
        "{\"conversations\": [{\"from\": \"human\", \"value\": \"who?\"}, {\"from\": \"gpt\", \"value\": \"the "
        "fox\"}], \"tools\": %s}",
        "{\"messages\": [" SAYS("user", "who?") ", " SAYS("assistant", "the fox") "], \"tools\": %s}",
        "{\"prompt\": [" SAYS("user", "who?") "], \"completion\": \"the fox\", \"tools\": %s}",
        "{\"instruction\": \"who?\", \"output\": \"the fox\", \"tools\": %s}"};
    static const char *const tools[][2] = {{"[{\"name\": \"the\"}]", "[{\"name\": \"the\"}]"},
                                           {"\" [{\\\"name\\\":\\\"the\\\"}]\\n\"", "[{\"name\": \"the\"}]"},
                                           {"\"[]\"", ""},
                                           {"\"null\"", ""},
                                           {"\" \\n\"", ""},
                                           {"\"\"", ""},
                                           {"null", ""}};
    static const char *const wrong[][2] = {{"\"{\\\"name\\\": 1}\"", "f:1: \"tools\" is no list, or one as JSON text"},
                                           {"\"5\"", "f:1: \"tools\" is no list, or one as JSON text"},
                                           {"{}", "f:1: \"tools\" is no list, or one as JSON text"},
                                           {"\"the weather\"", "f:1: \"tools\" is text, but no JSON: line 1"},
                                           {"\"[{\"", "f:1: \"tools\" is text, but no JSON: line 1"}};
    char record[300], shown[200];
    for (size_t r = 0; r < sizeof records / sizeof *records; r++) {
        for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
            world w;
            snprintf(record, sizeof record, records[r], tools[i][0]);
            snprintf(shown, sizeof shown, "<|start|>%s%s", tools[i][1], turns);
            open_world(&w, shows_tools, plain);
            add(&w, WEFT__DATASET_JSONL, record);
            weft__train_batch b = next(&w);
            expect_segment(&w, &b, 0, shown, "the fox<|im_end|>");
            close_world(&w);
        }
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            snprintf(record, sizeof record, records[r], wrong[i][0]);
            refuse(shows_tools, plain, WEFT__DATASET_JSONL, record, strlen(record), WEFT_FORMAT, wrong[i][1]);
        }
    }
}

/* What is wrong with one of them is named by file and line, or by file and number in a list, with what it must be. */
static void malformed_records_of_others_are_named(void **state)
{
    (void)state;
    static const struct {
        weft__dataset_form form;
        weft_status status;
        const char *bytes, *words;
    } cases[] = {
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"conversations\": \"a\"}",
         "f:1: \"conversations\" is no list of {\"from\", \"value\"}"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "\n{\"conversations\": [\"a\"]}",
         "f:2: conversations[0] is no object {\"from\", \"value\"}"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"conversations\": [{\"value\": \"a\"}]}",
         "f:1: conversations[0] has no \"from\" that is a string"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"conversations\": [{\"from\": \"owl\", \"value\": \"a\"}]}",
         "f:1: conversations[0].from is 'owl'; it must be human, gpt, system or tool"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"conversations\": [{\"from\": \"gpt\"}]}",
         "f:1: conversations[0] has no \"value\" that is a string"},
        {WEFT__DATASET_JSONL, WEFT_UNSUPPORTED,
         "{\"conversations\": [{\"from\": \"function_call\", \"value\": \"{}\"}]}",
         "f:1: conversations[0] is a function_call; make the record one of {\"messages\", \"tools\"}"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}]}",
         "f:1: \"conversations\" has no turn of the assistant"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"conversations\": []}",
         "f:1: \"conversations\" is no list of messages, or an empty one"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"conversations\": [], \"system\": 1}", "f:1: \"system\" is no string"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"conversations\": [], \"text\": \"a\"}",
         "f:1: the record is of more than one kind"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"instruction\": 1, \"output\": \"a\"}",
         "f:1: \"instruction\" is no string"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"instruction\": \"a\"}",
         "f:1: beside \"instruction\" there is no \"output\""},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"instruction\": \"a\", \"input\": 1, \"output\": \"b\"}",
         "f:1: \"input\" is no string"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"instruction\": \"a\", \"output\": 1}",
         "f:1: \"output\" is neither a string"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"instruction\": \"a\", \"output\": \"b\", \"history\": [\"c\"]}",
         "f:1: history[0] is no [question, answer]"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"instruction\": \"a\", \"output\": \"b\", \"history\": {}}",
         "f:1: \"history\" is no list"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "{\"instruction\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}",
         "f:1: the record is a pair"},
        {WEFT__DATASET_JSON, WEFT_FORMAT, "[{\"text\": \"a\"}, 5]", "f: record 2: the record is no JSON object"},
        {WEFT__DATASET_JSON, WEFT_FORMAT, "[{\"text\": \"a\"},\n{\"text\": 1}]", "f: record 2: \"text\" is no string"},
        {WEFT__DATASET_JSON, WEFT_FORMAT, "[\n{\"text\": ]", "f: line 2, column"},
        {WEFT__DATASET_JSON, WEFT_FORMAT, "{\"text\": \"a\"}\n{\"txt\": \"a\"}\n",
         "f:2: the record is of no known kind"},
        {WEFT__DATASET_JSON, WEFT_FORMAT, "[" SAYS("user", "a") "]", "f: \"messages\" has no turn of the assistant"},
        {WEFT__DATASET_JSONL, WEFT_FORMAT, "[\n" SAYS("user", "a") "\n]",
         "f: \"messages\" has no turn of the assistant"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse(template, plain, cases[i].form, cases[i].bytes, strlen(cases[i].bytes), cases[i].status, cases[i].words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_others_are_learned_as_ours),
        cmocka_unit_test(tools_as_text_are_tools),
        cmocka_unit_test(malformed_records_of_others_are_named),
    };
    return cmocka_run_group_tests_name("train_forms", tests, NULL, NULL);
}
