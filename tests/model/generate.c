// SPDX-License-Identifier: Apache-2.0
/* generate.c: weft_generate gives the tokens and the text of a loop by hand: penalties and grammars advance, text is
 * whole characters, and it ends at an end token, before a stop string, at a limit, or when the callback says so. */
#include "unit/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "weft/weft.h"

enum { MOST = 48, ROOM = 4096 };

static weft_model *model;
static int32_t prompt[64];
static int32_t n_prompt;

typedef struct heard {
    int32_t tokens[ROOM];
    int n, pieces, stop_at; /* stop_at: pieces; 0: never */
    char text[ROOM];
    size_t length;
} heard;

static int is_whole(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)s[i];
        size_t k = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        if ((c & 0xc0) == 0x80 || i + k > n) return 0;
        i += k;
    }
    return 1;
}

static int hear(void *arg, const weft_generated *piece)
{
    heard *h = arg;
    assert_int_equal(piece->size, sizeof *piece);
    assert_int_equal(piece->text[piece->length], 0);
    assert_true(is_whole(piece->text, piece->length));
    if (piece->token >= 0) h->tokens[h->n++] = piece->token;
    memcpy(h->text + h->length, piece->text, piece->length);
    h->length += piece->length;
    h->text[h->length] = 0;
    return ++h->pieces == h->stop_at;
}

static void begin_sampling(weft_session **s, weft_sampler **sampler)
{
    weft_sampler_params how;
    weft_sampler_params_default(&how);
    how.temperature = 0;
    how.frequency_penalty = 4; /* greedy text would differ without what was accepted */
    assert_int_equal(weft_session_new(model, NULL, s, NULL), WEFT_OK);
    assert_int_equal(weft_sampler_for(model, &how, sampler, NULL), WEFT_OK);
}

static weft_generate_result generate(const char *const *stops, int32_t max_tokens, weft_matcher *matcher, heard *h)
{
    weft_session *s;
    weft_sampler *sampler;
    weft_generate_params p;
    weft_generate_result r = {.size = sizeof r};
    weft_error err = {0};
    begin_sampling(&s, &sampler);
    weft_generate_params_default(&p);
    p.tokens = prompt, p.n_tokens = n_prompt, p.max_tokens = max_tokens, p.stops = stops, p.matcher = matcher;
    p.detok_flags = WEFT_DETOK_CONTINUE;
    p.ignore_end = 1; /* long enough for words to come again */
    p.callback = hear, p.arg = h;
    if (weft_generate(s, sampler, &p, &r, &err)) fail_msg("%s", err.message);
    assert_int_equal(r.n_generated, h->n);
    weft_sampler_free(&sampler);
    weft_session_free(&s);
    return r;
}

static void it_is_the_loop_by_hand(void **state)
{
    weft_session *s;
    weft_sampler *sampler;
    weft_model_info info = {.size = sizeof info};
    heard h = {0};
    (void)state;
    weft_generate_result r = generate(NULL, MOST, NULL, &h);
    begin_sampling(&s, &sampler);
    assert_int_equal(weft_model_describe(model, &info, NULL), WEFT_OK);
    float *logits = malloc((size_t)info.n_vocab * sizeof *logits);
    assert_int_equal(weft_session_eval(s, prompt, n_prompt, 0, logits, NULL), WEFT_OK);
    for (int32_t i = 0; i < n_prompt; i++) assert_int_equal(weft_sampler_accept(sampler, prompt[i], NULL), WEFT_OK);
    for (int i = 0; i < h.n; i++) {
        int32_t token;
        assert_int_equal(weft_sampler_pick(sampler, logits, &token, NULL), WEFT_OK);
        assert_int_equal(weft_sampler_accept(sampler, token, NULL), WEFT_OK);
        assert_int_equal(token, h.tokens[i]);
        if (i + 1 < h.n) assert_int_equal(weft_session_eval(s, &token, 1, 0, logits, NULL), WEFT_OK);
    }
    assert_true(h.n == MOST ? r.finish == WEFT_FINISH_LENGTH : r.finish == WEFT_FINISH_END);
    assert_int_equal(r.stop, -1);
    free(logits);
    weft_sampler_free(&sampler);
    weft_session_free(&s);
}

static void it_ends_before_a_stop_string(void **state)
{
    heard all = {0}, h = {0};
    (void)state;
    generate(NULL, MOST, NULL, &all);
    assert_true(all.length > 20);
    char stop[8] = {0};
    memcpy(stop, all.text + all.length / 2, 5); /* its first place is there or before */
    const char *const stops[] = {"\x01never", stop, NULL};
    weft_generate_result r = generate(stops, MOST, NULL, &h);
    assert_int_equal(r.finish, WEFT_FINISH_STOP);
    assert_int_equal(r.stop, 1);
    assert_int_equal(h.length, strstr(all.text, stop) - all.text);
    assert_memory_equal(h.text, all.text, h.length);
}

static void it_ends_when_the_callback_says_so(void **state)
{
    heard h = {.stop_at = 3};
    (void)state;
    assert_int_equal(generate(NULL, MOST, NULL, &h).finish, WEFT_FINISH_STOP);
    assert_int_equal(h.n, 3);
}

static void it_follows_a_grammar(void **state)
{
    const char source[] = "root ::= \"[\" [0-9] [0-9] [0-9] \"]\"";
    weft_grammar *grammar = NULL;
    weft_matcher *matcher = NULL;
    heard h = {0};
    (void)state;
    assert_int_equal(
        weft_grammar_new(weft_model_tokenizer(model), WEFT_GRAMMAR_GBNF, source, sizeof source - 1, &grammar, NULL),
        WEFT_OK);
    assert_int_equal(weft_matcher_new(grammar, &matcher, NULL), WEFT_OK);
    assert_int_equal(generate(NULL, MOST, matcher, &h).finish, WEFT_FINISH_END);
    assert_int_equal(h.length, 5);
    assert_int_equal(weft_matcher_complete(matcher), 2);
    weft_matcher_free(&matcher);
    weft_grammar_free(&grammar);
}

static void what_cannot_be_is_refused(void **state)
{
    const char *const empty[] = {"", NULL};
    weft_session *s;
    weft_sampler *sampler;
    weft_generate_params p;
    weft_error err = {0};
    (void)state;
    begin_sampling(&s, &sampler);
    for (int bad = 0; bad < 4; bad++) {
        weft_generate_result r = {.size = sizeof r};
        weft_generate_params_default(&p);
        p.tokens = prompt, p.n_tokens = n_prompt;
        if (bad == 0) p.n_tokens = 0;
        if (bad == 1) p.tokens = NULL;
        if (bad == 2) p.stops = empty;
        if (bad == 3) p.max_tokens = -2;
        assert_int_equal(weft_generate(s, sampler, &p, &r, &err), WEFT_ARGUMENT);
        assert_int_equal(r.finish, WEFT_FINISH_FAILED);
    }
    weft_sampler_free(&sampler);
    weft_session_free(&s);
}

static int begin(void **state)
{
    const char text[] = "The old miller";
    size_t n;
    weft_error err = {0};
    (void)state;
    if (weft_model_open("models/alderbrook.gguf", NULL, &model, &err) ||
        weft_tokenize(weft_model_tokenizer(model), text, sizeof text - 1, WEFT_TOKENIZE_BOS, prompt, 64, &n, &err))
        fail_msg("%s", err.message);
    n_prompt = (int32_t)n;
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
        cmocka_unit_test(it_is_the_loop_by_hand),
        cmocka_unit_test(it_ends_before_a_stop_string),
        cmocka_unit_test(it_ends_when_the_callback_says_so),
        cmocka_unit_test(it_follows_a_grammar),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("generate", tests, begin, end);
}
