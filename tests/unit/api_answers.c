// SPDX-License-Identifier: Apache-2.0
/* api_answers.c: what each dialect's writers make of the same answer, without a server, and without memory at each
 * moment. */
#include "unit/fixture.h"

#include <math.h>
#include <stdio.h>

#include "api/answer.h"
#include "api/errors.h"
#include "text/stop.h"

/* ---- doubles of what the engine has ---- */

const char *weft_version(void)
{
    return "0";
}

const char *weft_token_bytes(const weft_tokenizer *t, int32_t id, size_t *n)
{
    static const char *const all[] = {"Hi", "\xc3", " you"};
    (void)t;
    *n = strlen(all[id]);
    return all[id];
}

/* ---- one answer of two tokens, the first with the two likeliest beside it ---- */

typedef struct said {
    weft__api_params params;
    weft__api_prompt prompt;
    weft__stop stop;
    weft__api_entry entries[2];
    weft_token_prob tops[2];
    float embedding[2];
    weft__api_choice choice;
    weft__api_answer answer;
} said;

static void fill(said *s)
{
    static char text[] = "Hi you", prompt[] = "say";
    *s = (said){.params = {.n = 1, .n_top = 2, .echo = 1, .return_tokens = 1},
                .prompt = {.n = 3, .text = prompt, .n_text = 3},
                .stop = {.found = -1},
                .entries = {{0, -0.5f, 2, 0, 0, 2}, {2, -1, 0, 2, 2, 6}},
                .tops = {{.token = 0, .logprob = -0.5f}, {.token = 1, .logprob = -INFINITY}},
                .embedding = {1, NAN}};
    s->choice = (weft__api_choice){.answer = &s->answer,
                                   .slot = 4,
                                   .prompt = &s->prompt,
                                   .stop = &s->stop,
                                   .text = {.data = text, .len = 6},
                                   .entries = s->entries,
                                   .n_entries = 2,
                                   .tops = s->tops,
                                   .embedding = s->embedding,
                                   .n_embedding = 2,
                                   .finish = WEFT_FINISH_LENGTH,
                                   .n_cached = 1,
                                   .n_generated = 2};
    s->answer = (weft__api_answer){
        .params = &s->params, .choices = &s->choice, .n_choices = 1, .id = "x-1", .model = "m", .created = 7};
}

static void holds(weft__strbuf *out, const char *wanted)
{
    weft__strbuf_putc(out, 0);
    assert_false(out->failed);
    if (!strstr(out->data, wanted)) fail_msg("no %s in %s", wanted, out->data);
    out->len = 0;
}

static void openai_has_names_bytes_and_offsets(void **state)
{
    said s;
    weft__strbuf out = {0};
    (void)state;
    fill(&s);
    weft__api_write_chat.whole(&s.answer, &out);
    holds(&out, "{\"id\":\"x-1\",\"object\":\"chat.completion\",\"created\":7,\"model\":\"m\","
                "\"system_fingerprint\":\"weft-0\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                "\"content\":\"Hi you\",\"refusal\":null},\"logprobs\":{\"content\":[{\"token\":\"Hi\","
                "\"logprob\":-0.5,\"bytes\":[72,105],\"top_logprobs\":[{\"token\":\"Hi\",\"logprob\":-0.5,"
                "\"bytes\":[72,105]},{\"token\":\"\xef\xbf\xbd\",\"logprob\":-9999,\"bytes\":[195]}]}");
    weft__api_write_chat.whole(&s.answer, &out);
    holds(&out, "\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,"
                "\"total_tokens\":5,\"prompt_tokens_details\":{\"cached_tokens\":1}}}");
    weft__api_write_completions.whole(&s.answer, &out);
    holds(&out, "\"text\":\"sayHi you\",\"logprobs\":{\"tokens\":[\"Hi\",\" you\"],\"token_logprobs\":[-0.5,-1],"
                "\"top_logprobs\":[{\"Hi\":-0.5,\"bytes:\\\\xc3\":-9999},{\" you\":-1}],\"text_offset\":[3,5]}");
    weft__strbuf_free(&out);
}

static void llama_has_tokens_slot_and_why_it_ended(void **state)
{
    said s;
    weft__strbuf out = {0};
    (void)state;
    fill(&s);
    s.choice.shown = 2;
    s.choice.n_shown = 1;
    s.params.n_top = -1;
    weft__api_write_completion.delta(&s.choice, 4, 2, &out);
    holds(&out, "data: {\"index\":0,\"content\":\" you\",\"tokens\":[2],\"stop\":false,\"id_slot\":4,"
                "\"tokens_predicted\":2,\"tokens_evaluated\":3}\n\n");
    weft__api_write_completion.whole(&s.answer, &out);
    holds(&out, "\"stop_type\":\"limit\",\"stopping_word\":\"\",\"tokens_cached\":5,\"timings\":{\"cache_n\":1,"
                "\"prompt_n\":2,");
    s.answer.several = 1;
    weft__api_write_completion.whole(&s.answer, &out);
    assert_int_equal(out.data[0], '[');
    weft__strbuf_free(&out);
}

static void embeddings_have_no_nan(void **state)
{
    said s;
    weft__strbuf out = {0};
    (void)state;
    fill(&s);
    weft__api_write_openai_embeddings.whole(&s.answer, &out);
    holds(&out, "{\"object\":\"embedding\",\"index\":0,\"embedding\":[1,null]}");
    s.params.base64 = 1;
    s.choice.n_embedding = 1;
    weft__api_write_openai_embeddings.whole(&s.answer, &out);
    holds(&out, "\"embedding\":\"AACAPw==\"");
    weft__api_write_embedding.whole(&s.answer, &out);
    holds(&out, "[{\"index\":0,\"embedding\":[[1]]}]");
    weft__strbuf_free(&out);
}

static void each_dialect_spells_an_error(void **state)
{
    weft__strbuf out = {0};
    (void)state;
    assert_int_equal(weft__api_dialect_of("/v1/models"), WEFT__API_OPENAI);
    assert_int_equal(weft__api_dialect_of("/completion"), WEFT__API_LLAMA);
    weft__api_put_error_event(WEFT__API_OPENAI, WEFT_BUSY, "key-0123456789ab.mine waits", &out);
    holds(&out, "data: {\"error\":{\"message\":\"mine waits\",\"type\":\"rate_limit_error\",\"param\":null,"
                "\"code\":\"rate_limit_exceeded\"}}\n\n");
    weft__api_put_error_event(WEFT__API_LLAMA, WEFT_NOT_FOUND, "gone", &out);
    holds(&out, "data: {\"error\":{\"code\":404,\"message\":\"gone\",\"type\":\"not_found_error\"}}\n\n");
    /* the event that needs no memory is the one that would be made of it */
    for (int d = WEFT__API_OPENAI; d <= WEFT__API_LLAMA; d++) {
        weft__api_put_error_event((weft__api_dialect)d, WEFT_NO_MEMORY, "no memory for the answer", &out);
        holds(&out, weft__api_no_memory_event((weft__api_dialect)d));
    }
    weft__strbuf_free(&out);
}

struct whole {
    const weft__api_writer *writer;
    size_t n; /* bytes of all of it; 0: not known yet */
};

static int write_whole(void *arg)
{
    struct whole *w = arg;
    said s;
    weft__strbuf out = {0};
    fill(&s);
    w->writer->whole(&s.answer, &out);
    int ok = !out.failed;
    if (!w->n) w->n = out.len;
    if (ok) assert_int_equal(out.len, w->n); /* nothing looks whole that is not */
    weft__strbuf_free(&out);
    return ok;
}

static void without_memory_an_answer_has_failed(void **state)
{
    struct whole all[] = {{&weft__api_write_chat, 0},
                          {&weft__api_write_completions, 0},
                          {&weft__api_write_completion, 0},
                          {&weft__api_write_openai_embeddings, 0},
                          {&weft__api_write_embedding, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(write_whole(&all[i]));
        assert_true(fail_each(write_whole, &all[i]) >= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openai_has_names_bytes_and_offsets), cmocka_unit_test(llama_has_tokens_slot_and_why_it_ended),
        cmocka_unit_test(embeddings_have_no_nan), cmocka_unit_test(each_dialect_spells_an_error),
        cmocka_unit_test(without_memory_an_answer_has_failed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
