// SPDX-License-Identifier: Apache-2.0
/* chat_parser.c: the answer to a prompt of weft_chat is taken apart by the format of its template, from where the
 * prompt leaves off; the parser knows which tokens are shown, and whether the model thinks. */
#include "unit/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/folder.h"
#include "weft/weft.h"

static weft_model *model;

#define TEMPLATE                                                                                                       \
    "{%- for m in messages -%}<|{{ m.role }}|>{{ m.content }}{%- endfor -%}"                                           \
    "{%- if tools -%}<tool_call>{{ tools | tojson }}</tool_call>{%- endif -%}"                                         \
    "{%- if add_generation_prompt -%}<|assistant|>{%- if enable_thinking -%}<think>\n{%- endif -%}{%- endif -%}"       \
    "{#- </think> -#}"
#define USER "[{\"role\": \"user\", \"content\": \"Go!\"}"
#define CALL "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"

typedef struct told {
    char line[400];
    size_t n;
    int stop;
} told;

static int hear(void *arg, const weft_chat_part *p)
{
    told *t = arg;
    assert_int_equal(p->size, sizeof *p);
    t->n += (size_t)snprintf(t->line + t->n, sizeof t->line - t->n, "%c%d{%.*s%s%.*s}", "TRC"[p->kind], (int)p -> index,
                             (int)p -> n_name, p -> name ? p -> name : "", p->name ? "|" : "", (int)p->n_text, p->text);
    return t->stop;
}

static void becomes(const char *source, const char *messages, const char *kwargs, int generation, const char *answer,
                    const char *wanted)
{
    weft_chat *chat = NULL;
    weft_chat_prompt *prompt = NULL;
    weft_chat_parser *parser = NULL;
    told t = {.n = 0};
    weft_error err = {0};
    if (weft_chat_open(model, source, strlen(source), &chat, &err) ||
        weft_chat_render(chat, messages, NULL, kwargs, generation, &prompt, &err) ||
        weft_chat_parser_new(prompt, NULL, &parser, &err))
        fail_msg("%s", err.message);
    weft_chat_prompt_free(&prompt);
    assert_int_equal(weft_chat_parser_push(parser, answer, strlen(answer), hear, &t, &err), WEFT_OK);
    assert_int_equal(weft_chat_parser_finish(parser, hear, &t, &err), WEFT_OK);
    assert_string_equal(t.line, wanted);
    weft_chat_parser_free(&parser);
    weft_chat_parser_free(&parser);
    weft_chat_close(&chat);
}

static void answers_go_on_from_their_prompts(void **state)
{
    (void)state;
    becomes(TEMPLATE, USER "]", NULL, 1, "hm\n</think>\n\nHi " CALL, "R0{hm}T0{Hi}C0{f|{\"a\": 1}}");
    becomes(TEMPLATE, USER "]", "{\"enable_thinking\": false}", 1, "hm " CALL "\n" CALL,
            "T0{hm}C0{f|{\"a\": 1}}C1{f|{\"a\": 1}}");
    becomes(TEMPLATE, USER ", {\"role\": \"assistant\", \"content\": \"<think>h\"}]", "{\"enable_thinking\": false}",
            WEFT_CHAT_CONTINUE, "m</think>Hi", "R0{m}T0{Hi}");
    becomes(TEMPLATE, USER ", {\"role\": \"assistant\", \"content\": \"<think>h</think>H\"}]",
            "{\"enable_thinking\": false}", WEFT_CHAT_CONTINUE, "i<think>", "T0{i<think>}");
}

static void formats_are_named(void **state)
{
    static const struct {
        const char *source, *format;
        int reasons;
    } all[] = {{NULL, "hermes", 0}, /* the village's */
               {TEMPLATE, "hermes", 1},
               {"{{ tools }}", "generic", 0},
               {"{{ messages }}<think></think>", "none", 1},
               {"{{ messages }}", "none", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        weft_chat *chat = NULL;
        assert_int_equal(weft_chat_open(model, all[i].source, all[i].source ? strlen(all[i].source) : 0, &chat, NULL),
                         WEFT_OK);
        assert_string_equal(weft_chat_format(chat), all[i].format);
        assert_int_equal(weft_chat_reasons(chat), all[i].reasons);
        int32_t ids[64];
        size_t n = 99;
        weft_chat_prompt *prompt = NULL;
        assert_int_equal(weft_chat_render(chat, USER "]", NULL, NULL, 1, &prompt, NULL), WEFT_OK);
        assert_int_equal(weft_chat_thinking_end(prompt, NULL, ids, 64, &n, NULL), WEFT_OK);
        assert_int_equal(n > 0, all[i].reasons);
        weft_chat_prompt_free(&prompt);
        weft_chat_close(&chat);
    }
}

static void a_parser_knows_what_it_is_at(void **state)
{
    const weft_tokenizer *tokenizer = weft_model_tokenizer(model);
    weft_chat *chat = NULL;
    weft_chat_prompt *prompt = NULL;
    weft_chat_parser *parser = NULL;
    int shown = 0;
    (void)state;
    assert_int_equal(weft_chat_open(model, TEMPLATE, strlen(TEMPLATE), &chat, NULL), WEFT_OK);
    assert_int_equal(weft_chat_render(chat, USER "]", NULL, NULL, 1, &prompt, NULL), WEFT_OK);
    assert_int_equal(weft_chat_parser_new(prompt, NULL, &parser, NULL), WEFT_OK);
    for (int32_t id = -1; id <= weft_tokenizer_n_vocab(tokenizer); id++) shown += weft_chat_parser_shows(parser, id);
    assert_int_equal(shown, 0); /* neither its end tokens nor plain ones */
    told t = {.n = 0};
    assert_true(weft_chat_parser_thinks(parser));
    assert_int_equal(weft_chat_parser_push(parser, "hm</think>", 10, hear, &t, NULL), WEFT_OK);
    assert_false(weft_chat_parser_thinks(parser));
    weft_chat_parser_free(&parser);
    weft_chat_prompt_free(&prompt);
    weft_chat_close(&chat);
}

/* The village's model with a control token of another name, of the same length. */
static void write_renamed(const char *from, const char *to)
{
    FILE *in = fopen("models/alderbrook.gguf", "rb"), *out = fopen(path, "wb");
    assert_true(in && out && strlen(from) == strlen(to));
    fseek(in, 0, SEEK_END);
    const size_t n = (size_t)ftell(in);
    char *bytes = malloc(n), *at = bytes;
    rewind(in);
    assert_int_equal(fread(bytes, 1, n, in), n);
    while ((at = memmem(at, n - (size_t)(at - bytes), from, strlen(from)))) memcpy(at, to, strlen(to));
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(out);
    fclose(in);
    free(bytes);
}

static void control_tokens_of_markers_are_shown(void **state)
{
    static const char gemma[] = "{{ tools }}<|tool_call>call:<tool_call|>";
    weft_model *renamed = NULL;
    weft_chat *chat = NULL;
    weft_chat_prompt *prompt = NULL;
    weft_chat_parser *parser = NULL;
    weft_error err = {0};
    size_t length;
    int shown = 0;
    (void)state;
    assert_int_equal(folder_make("renamed.gguf"), 0);
    write_renamed("<|im_start|>", "<tool_call|>");
    if (weft_model_open(path, NULL, &renamed, &err) || weft_chat_open(renamed, gemma, sizeof gemma - 1, &chat, &err) ||
        weft_chat_render(chat, USER "]", NULL, NULL, 1, &prompt, &err) ||
        weft_chat_parser_new(prompt, NULL, &parser, &err))
        fail_msg("%s", err.message);
    const weft_tokenizer *tokenizer = weft_model_tokenizer(renamed);
    for (int32_t id = 0; id < weft_tokenizer_n_vocab(tokenizer); id++) {
        if (!weft_chat_parser_shows(parser, id)) continue;
        assert_string_equal(weft_token_piece(tokenizer, id, &length), "<tool_call|>");
        shown++;
    }
    assert_int_equal(shown, 1);
    weft_chat_parser_free(&parser);
    weft_chat_prompt_free(&prompt);
    weft_chat_close(&chat);
    weft_model_close(&renamed);
    assert_int_equal(remove_folder(NULL), 0);
}

static void what_cannot_be_is_refused(void **state)
{
    weft_chat *chat = NULL;
    weft_chat_prompt *prompt = NULL;
    weft_chat_parser *parser = NULL;
    weft_chat_parser_params params;
    told t = {.stop = 1};
    weft_error err = {0};
    (void)state;
    assert_int_equal(weft_chat_open(model, TEMPLATE, strlen(TEMPLATE), &chat, NULL), WEFT_OK);
    assert_int_equal(weft_chat_render(chat, USER "]", NULL, NULL, 1, &prompt, NULL), WEFT_OK);
    weft_chat_parser_params_default(&params);
    params.tools = "{";
    assert_int_equal(weft_chat_parser_new(prompt, &params, &parser, &err), WEFT_FORMAT);
    assert_non_null(strstr(err.message, "tools"));
    params.tools = "{}";
    assert_int_equal(weft_chat_parser_new(prompt, &params, &parser, &err), WEFT_ARGUMENT);
    assert_null(parser);
    params.tools = "[]";
    assert_int_equal(weft_chat_parser_new(prompt, &params, &parser, &err), WEFT_OK);
    assert_int_equal(weft_chat_parser_push(parser, "a", 1, hear, &t, &err), WEFT_CANCELLED);
    weft_chat_parser_free(&parser);
    weft_chat_prompt_free(&prompt);
    weft_chat_close(&chat);
}

static int begin(void **state)
{
    weft_error err = {0};
    (void)state;
    if (weft_model_open("models/alderbrook.gguf", NULL, &model, &err)) fail_msg("%s", err.message);
    return 0;
}

static int end(void **state)
{
    (void)state;
    weft_model_close(&model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_go_on_from_their_prompts), cmocka_unit_test(formats_are_named),
        cmocka_unit_test(a_parser_knows_what_it_is_at),     cmocka_unit_test(control_tokens_of_markers_are_shown),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("answers to prompts", tests, begin, end);
}
