// SPDX-License-Identifier: Apache-2.0
/* api_message.c: what a parser tells of an answer becomes OpenAI's message, whole and in pieces, in the order in which
 * it was told; without memory at each moment it has failed. */
#include "unit/fixture.h"

#include <ctype.h>
#include <stdio.h>

#include "api/answer.h"
#include "text/stop.h"

/* ---- doubles of what the engine has ---- */

const char *weft_version(void)
{
    return "0";
}

const char *weft_token_bytes(const weft_tokenizer *t, int32_t id, size_t *n)
{
    (void)t, (void)id;
    *n = 1;
    return "x";
}

/* ---- an answer, as it is told ---- */

typedef struct said {
    weft__api_params params;
    weft__api_prompt prompt;
    weft__stop stop;
    weft__api_entry entries[1];
    weft__api_message message;
    weft__api_choice choice;
    weft__api_answer answer;
} said;

static void fill(said *s)
{
    *s = (said){.params = {.n = 1, .n_top = -1}, .prompt = {.n = 3}, .stop = {.found = -1}, .entries = {{.token = 0}}};
    s->choice = (weft__api_choice){.answer = &s->answer,
                                   .prompt = &s->prompt,
                                   .stop = &s->stop,
                                   .parsed = &s->message,
                                   .entries = s->entries,
                                   .finish = WEFT_FINISH_END};
    s->answer = (weft__api_answer){
        .params = &s->params, .choices = &s->choice, .n_choices = 1, .id = "x-1", .model = "m", .created = 7};
}

static weft_chat_part text_part(uint32_t kind, const char *text)
{
    return (weft_chat_part){.kind = kind, .text = text, .n_text = strlen(text)};
}

static weft_chat_part call_part(const char *name, const char *arguments, const char *id, int32_t index)
{
    return (weft_chat_part){.kind = WEFT_CHAT_CALL,
                            .text = arguments,
                            .n_text = strlen(arguments),
                            .name = name,
                            .n_name = strlen(name),
                            .id = id,
                            .n_id = strlen(id),
                            .index = index};
}

/* Thought, text and two calls. Returns whether all of it was taken. */
static int tell(weft__api_message *m)
{
    const weft_chat_part parts[] = {text_part(WEFT_CHAT_REASONING, "Hm\n"), text_part(WEFT_CHAT_REASONING, "so"),
                                    text_part(WEFT_CHAT_TEXT, "I look."),
                                    call_part("f", "{\"a\":\"\xc3\xbc\"}", "id-1", 0), call_part("g", "{}", "id-2", 1)};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (weft__api_message_add(m, &parts[i])) return 0;
    return 1;
}

static void ends(said *s, weft__strbuf *out)
{
    weft__api_message_free(&s->message);
    weft__strbuf_free(out);
}

static void holds(weft__strbuf *out, const char *wanted)
{
    weft__strbuf_putc(out, 0);
    assert_false(out->failed);
    if (!strstr(out->data, wanted)) fail_msg("no %s in %s", wanted, out->data);
    out->len = 0;
}

static void a_message_has_all_of_it(void **state)
{
    said s;
    weft__strbuf out = {0};
    (void)state;
    fill(&s);
    assert_true(tell(&s.message));
    weft__api_write_chat.whole(&s.answer, &out);
    holds(&out,
          "\"message\":{\"role\":\"assistant\",\"content\":\"I look.\",\"reasoning_content\":\"Hm\\nso\","
          "\"tool_calls\":[{\"id\":\"id-1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
          "\"{\\\"a\\\":\\\"\xc3\xbc\\\"}\"}},{\"id\":\"id-2\",\"type\":\"function\",\"function\":{\"name\":\"g\","
          "\"arguments\":\"{}\"}}],\"refusal\":null},\"logprobs\":null,\"finish_reason\":\"tool_calls\"}");
    s.choice.finish = WEFT_FINISH_LENGTH;
    weft__api_write_chat.whole(&s.answer, &out);
    holds(&out, "\"finish_reason\":\"length\"");
    ends(&s, &out);
}

static void ids_of_calls_are_apart(void **state)
{
    weft__api_message m = {0};
    static const char *const ids[] = {"0", "1", "0", "", "0", "1"};
    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const weft_chat_part call = call_part("f", "{}", ids[i], (int32_t)i);
        assert_int_equal(weft__api_message_add(&m, &call), 0);
        const weft__api_span id = m.calls[i].id;
        assert_int_equal(id.n, i < 2 ? 1 : 9);
        for (size_t k = 0; k < i; k++)
            assert_false(id.n == m.calls[k].id.n &&
                         !memcmp(m.spelled.data + id.at, m.spelled.data + m.calls[k].id.at, id.n));
    }
    weft__api_message_free(&m);
}

static void calls_alone_have_no_content_and_functions_are_one(void **state)
{
    said s;
    weft__strbuf out = {0};
    const weft_chat_part call = call_part("f", "{}", "", 0);
    (void)state;
    fill(&s);
    s.message.one_call = 1;
    assert_true(weft__api_message_add(&s.message, &call)); /* which ends it */
    weft__api_write_chat.whole(&s.answer, &out);
    holds(&out, "\"content\":null,\"tool_calls\":[{\"id\":\"");
    s.params.tools.old = 1;
    weft__api_write_chat.whole(&s.answer, &out);
    holds(&out, "\"content\":null,\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"},\"refusal\":null},"
                "\"logprobs\":null,\"finish_reason\":\"function_call\"}");
    ends(&s, &out);
}

static void ids_are_made_where_there_are_none(void **state)
{
    weft__api_message m = {0};
    const weft_chat_part call = call_part("f", "{}", "", 0);
    (void)state;
    for (int i = 0; i < 8; i++) assert_false(weft__api_message_add(&m, &call));
    for (size_t i = 0; i < 8; i++) {
        const char *id = m.spelled.data + m.calls[i].id.at;
        assert_int_equal(m.calls[i].id.n, 9);
        for (size_t k = 0; k < 9; k++) assert_true(isalnum((unsigned char)id[k]));
        for (size_t k = 0; k < i; k++) assert_memory_not_equal(id, m.spelled.data + m.calls[k].id.at, 9);
    }
    weft__api_message_free(&m);
}

static void with_the_older_format_thoughts_stand_in_the_text_too(void **state)
{
    said s;
    weft__strbuf out = {0};
    (void)state;
    fill(&s);
    s.message.legacy = 1;
    assert_true(tell(&s.message));
    weft__api_write_chat.whole(&s.answer, &out);
    holds(&out, "\"content\":\"<think>Hm\\nso</think>I look.\",\"reasoning_content\":\"Hm\\nso\"");
    ends(&s, &out);
}

/* The deltas of a stream, of which each is to be the event's first choice. */
static void holds_deltas(weft__strbuf *out, const char *const *wanted)
{
    const char *at = out->data;
    weft__strbuf_putc(out, 0);
    for (; *wanted; wanted++) {
        const char *delta = strstr(at, "\"delta\":");
        assert_non_null(delta);
        if (strncmp(delta + 8, *wanted, strlen(*wanted))) fail_msg("no %s at %s", *wanted, delta);
        at = delta + 8;
    }
    assert_null(strstr(at, "\"delta\":"));
    out->len = 0;
}

static void a_stream_has_it_in_the_order_of_the_answer(void **state)
{
    static const char *const deltas[] = {
        "{\"reasoning_content\":\"Hm\\nso\"},\"logprobs\":{\"content\":[{\"token\":\"x\"",
        "{\"content\":\"I look.\"},\"logprobs\":{\"content\":[]",
        "{\"tool_calls\":[{\"index\":0,\"id\":\"id-1\",\"type\":\"function\",\"function\":{\"name\":\"f\",", NULL};
    static const char *const later[] = {"{\"content\":\"Bye\"},", NULL}, *const end[] = {"{},", NULL},
                             *const none[] = {"{\"content\":\"\"},\"logprobs\":{\"content\":[{\"token\":\"x\"", NULL};
    const weft_chat_part bye = text_part(WEFT_CHAT_TEXT, "Bye");
    said s;
    weft__strbuf out = {0};
    (void)state;
    fill(&s);
    s.message.streams = 1;
    s.params.n_top = 0;
    assert_true(tell(&s.message));
    weft__api_write_chat.delta(&s.choice, 0, 1, &out);
    holds_deltas(&out, deltas);
    weft__api_message_shown(&s.message);
    weft__api_message_add(&s.message, &bye);
    weft__api_write_chat.delta(&s.choice, 0, 0, &out);
    holds_deltas(&out, later);
    weft__api_message_shown(&s.message);
    weft__api_write_chat.delta(&s.choice, 0, 1, &out); /* of tokens whose text was held until now */
    holds_deltas(&out, none);
    weft__api_write_chat.choice_end(&s.choice, &out);
    assert_non_null(strstr(out.data, "\"finish_reason\":\"tool_calls\""));
    holds_deltas(&out, end);
    ends(&s, &out);
}

static int told_and_written(void *arg)
{
    said s;
    weft__strbuf out = {0};
    const int *how = arg;
    fill(&s);
    s.message.streams = how[0];
    s.message.legacy = how[1];
    int ok = tell(&s.message);
    assert_int_equal(ok, !weft__api_message_failed(&s.message));
    if (ok)
        s.message.streams ? weft__api_write_chat.delta(&s.choice, 0, 0, &out)
                          : weft__api_write_chat.whole(&s.answer, &out);
    ok = ok && !out.failed;
    ends(&s, &out);
    return ok;
}

static void without_memory_it_has_failed(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        int how[] = {i & 1, i >> 1};
        assert_true(fail_each(told_and_written, how) >= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ids_of_calls_are_apart),
                                       cmocka_unit_test(a_message_has_all_of_it),
                                       cmocka_unit_test(calls_alone_have_no_content_and_functions_are_one),
                                       cmocka_unit_test(ids_are_made_where_there_are_none),
                                       cmocka_unit_test(with_the_older_format_thoughts_stand_in_the_text_too),
                                       cmocka_unit_test(a_stream_has_it_in_the_order_of_the_answer),
                                       cmocka_unit_test(without_memory_it_has_failed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
