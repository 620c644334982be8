// SPDX-License-Identifier: Apache-2.0
/* engine_drafts.c: weft_generate writes with guesses what it writes without, and leaves the session as it would be: at
 * every temperature, with and without stops and grammars, in one call after another. */
#include "unit/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/handles.h"
#include "model/shared.h"
#include "weft/weft.h"

enum { MOST = 400, CALLS = 3 };

typedef struct written {
    int32_t tokens[MOST];
    int n, n_held, n_drafted, n_accepted;
    char text[8192];
    size_t n_text;
    weft_finish finish;
} written;

static int keep(void *arg, const weft_generated *piece)
{
    written *w = arg;
    if (piece->token >= 0) w->tokens[w->n++] = piece->token;
    assert_true(w->n_text + piece->length < sizeof w->text);
    memcpy(w->text + w->n_text, piece->text, piece->length);
    w->n_text += piece->length;
    return 0;
}

typedef struct task {
    weft_model *model;
    weft_model *draft; /* NULL: none */
    float temperature;
    int32_t chunk, n_ctx, max_tokens, shift, always;
    const char *stop;
    const weft_grammar *grammar;
    const int32_t *predicted; /* [MOST] of the first call; NULL: nothing is */
} task;

/* A text that repeats itself, then what the model makes of it; and on from there. */
static void write_all(const task *t, int32_t spec, written *w)
{
    weft_session_params sp;
    weft_sampler_params pp;
    weft_session *session = NULL;
    weft_sampler *sampler = NULL;
    weft_error err = {0};
    int32_t prompt[60];
    const char *const stops[] = {t->stop, NULL};
    memset(w, 0, sizeof *w);
    weft_session_params_default(&sp);
    sp.n_ctx = t->n_ctx;
    sp.chunk = t->chunk;
    sp.draft = t->draft;
    weft_sampler_params_default(&pp);
    pp.temperature = t->temperature;
    pp.repeat_penalty = 1.1f;
    pp.seed = 11;
    pp.seed_given = 1;
    if (weft_session_new(t->model, &sp, &session, &err) || weft_sampler_for(t->model, &pp, &sampler, &err))
        fail_msg("%s", err.message);
    session->draft.always = t->always;
    for (int i = 0; i < 60; i++) prompt[i] = 300 + i % 7;
    for (int call = 0; call < CALLS; call++) {
        weft_generate_params p;
        weft_generate_result r = {.size = sizeof r};
        weft_matcher *matcher = NULL;
        weft_generate_params_default(&p);
        p.tokens = prompt;
        p.n_tokens = call ? 5 : 60;
        p.max_tokens = t->max_tokens;
        p.ignore_end = 1;
        p.shift = t->shift;
        p.spec = spec;
        p.stops = t->stop ? stops : NULL;
        p.callback = keep;
        p.arg = w;
        if (t->grammar && weft_matcher_new(t->grammar, &matcher, &err)) fail_msg("%s", err.message);
        p.matcher = matcher;
        if (t->predicted && !call) {
            p.predicted = t->predicted;
            p.n_predicted = t->max_tokens;
        }
        weft_status st = weft_generate(session, sampler, &p, &r, &err);
        weft_matcher_free(&matcher);
        if (st == WEFT_LIMIT && call) break; /* the context is full */
        if (st) fail_msg("%s", err.message);
        w->finish = r.finish;
        w->n_drafted += r.n_drafted;
        w->n_accepted += r.n_accepted;
        w->n_held = w->n_held * 1000 + weft_session_n_tokens(session); /* after each call */
    }
    weft_sampler_free(&sampler);
    weft_session_free(&session);
}

static void same_with(const task *t, int32_t spec, const written *plain)
{
    static written guessed;
    write_all(t, spec, &guessed);
    assert_int_equal(guessed.n, plain->n);
    assert_memory_equal(guessed.tokens, plain->tokens, (size_t)plain->n * sizeof *plain->tokens);
    assert_int_equal(guessed.n_text, plain->n_text);
    assert_memory_equal(guessed.text, plain->text, plain->n_text);
    assert_int_equal(guessed.finish, plain->finish);
    assert_int_equal(guessed.n_held, plain->n_held);
    assert_true(guessed.n_accepted <= guessed.n_drafted);
    /* Its own guesses are right, until a text ends within one. */
    if (t->always && spec == WEFT_SPEC_DRAFT) {
        assert_true(guessed.n_drafted - guessed.n_accepted < CALLS * WEFT_DRAFT_MAX);
        if (t->chunk != 1 && !t->stop) assert_true(2 * guessed.n_accepted > guessed.n);
    }
    print_message("%d tokens, %d of %d guesses right\n", guessed.n, guessed.n_accepted, guessed.n_drafted);
}

static void same_text(const task *t)
{
    static written plain;
    task with = *t;
    write_all(t, WEFT_SPEC_OFF, &plain);
    assert_int_equal(plain.n_drafted, 0);
    for (int spec = WEFT_SPEC_AUTO; spec <= WEFT_SPEC_SUFFIX; spec++) same_with(t, spec, &plain);
    with.draft = t->model;
    for (with.always = 0; with.always < 2; with.always++)
        for (int spec = WEFT_SPEC_AUTO; spec <= WEFT_SPEC_DRAFT; spec++) same_with(&with, spec, &plain);
}

/* A prediction that is right brings nearly all of the first call's tokens, one that is wrong in part brings some, and
 * neither changes one. */
static void predictions_are_guessed(const task *t)
{
    static written plain, guessed, none;
    int32_t predicted[MOST];
    task with = *t;
    with.temperature = 1.5f; /* nothing repeats itself */
    write_all(&with, WEFT_SPEC_OFF, &plain);
    memcpy(predicted, plain.tokens, sizeof predicted);
    with.always = 1;
    write_all(&with, WEFT_SPEC_SUFFIX, &none);
    with.predicted = predicted;
    for (int wrong = 0; wrong < 2; wrong++) {
        for (int i = 5; wrong && i < MOST; i += 10) predicted[i] = 3 + (predicted[i] + 1) % 400;
        write_all(&with, WEFT_SPEC_SUFFIX, &guessed);
        assert_int_equal(guessed.n, plain.n);
        assert_memory_equal(guessed.tokens, plain.tokens, (size_t)plain.n * sizeof *plain.tokens);
        assert_int_equal(guessed.n_held, plain.n_held);
        print_message("predicted: %d right, else %d\n", guessed.n_accepted, none.n_accepted);
        assert_true(guessed.n_accepted >= none.n_accepted + t->max_tokens / 2);
    }
    write_all(&with, WEFT_SPEC_OFF, &guessed);
    assert_int_equal(guessed.n_drafted, 0);
}

/* What a grammar forces is guessed from the first token on, where no text has it yet; with suffix alone it is not. */
static void what_is_forced_is_guessed(const task *t)
{
    static written plain, guessed;
    task with = *t;
    with.max_tokens = 3;
    with.always = 1;
    write_all(&with, WEFT_SPEC_OFF, &plain);
    write_all(&with, WEFT_SPEC_AUTO, &guessed);
    assert_int_equal(guessed.n, plain.n);
    assert_memory_equal(guessed.tokens, plain.tokens, (size_t)plain.n * sizeof *plain.tokens);
    const int n_forced = guessed.n_drafted;
    write_all(&with, WEFT_SPEC_SUFFIX, &guessed);
    print_message("forced: %d guesses, else %d\n", n_forced, guessed.n_drafted);
    assert_true(n_forced > guessed.n_drafted);
}

/* A session without a draft model cannot have one guess alone, nor one of another vocabulary. */
static void what_is_not_there_is_refused(weft_model *model)
{
    const int32_t one = 1;
    weft_session_params sp;
    weft_session *session = NULL;
    weft_sampler *sampler = NULL;
    weft_generate_params p;
    weft_error err = {0};
    weft_session_params_default(&sp);
    if (weft_session_new(model, &sp, &session, &err) || weft_sampler_for(model, NULL, &sampler, &err))
        fail_msg("%s", err.message);
    weft_generate_params_default(&p);
    p.tokens = &one;
    p.n_tokens = 1;
    p.spec = WEFT_SPEC_DRAFT;
    assert_int_equal(weft_generate(session, sampler, &p, NULL, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "draft model"));
    p.spec = WEFT_SPEC_DRAFT + 1;
    assert_int_equal(weft_generate(session, sampler, &p, NULL, &err), WEFT_ARGUMENT);
    p.spec = WEFT_SPEC_AUTO;
    p.n_predicted = 3;
    assert_int_equal(weft_generate(session, sampler, &p, NULL, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "prediction"));
    const int32_t alien[] = {1, model->hp.n_vocab, 1}, negative[] = {1, 1, -5};
    p.predicted = alien;
    assert_int_equal(weft_generate(session, sampler, &p, NULL, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "at place 1 of `predicted`"));
    p.n_predicted = 0;
    p.tokens = negative;
    p.n_tokens = 3;
    assert_int_equal(weft_generate(session, sampler, &p, NULL, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "token -5 at place 2 of `tokens`"));
    weft_sampler_free(&sampler);
    weft_session_free(&session);
}

static void same_text_of(const char *name)
{
    static const float temperatures[] = {0, 0.7f, 1.5f};
    const char *path = shared_path("models/%s.gguf", name);
    weft_model_params params;
    weft_error err = {0};
    if (!path) skip_material(name);
    weft_model_params_default(&params);
    params.n_threads = 2;
    task t = {.n_ctx = 256, .max_tokens = CLAIMS_REPEATED(50, CLAIMS_SWEPT(30, 50), CLAIMS_SWEPT(24, 50))};
    static const char source[] = "root ::= (\"So it was \" [a-z]+ \". \")+\n";
    weft_grammar *grammar = NULL;
    if (weft_model_open(path, &params, &t.model, &err) ||
        weft_grammar_new(weft_model_tokenizer(t.model), WEFT_GRAMMAR_GBNF, source, sizeof source - 1, &grammar, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < 3; i++) {
        t.temperature = temperatures[i];
        same_text(&t);
    }
    t.temperature = 0;
    t.stop = "e";
    same_text(&t);
    t.stop = NULL;
    predictions_are_guessed(&t);
    t.grammar = grammar;
    same_text(&t);
    what_is_forced_is_guessed(&t);
    t.grammar = NULL;
    t.chunk = 3;
    same_text(&t);
    t.chunk = 1;
    same_text(&t);
    t.chunk = 0;
    t.max_tokens = -1; /* until the context is full */
    t.n_ctx = 128;
    same_text(&t);
    t.max_tokens = 120; /* beyond that, with a part of it */
    t.shift = 1;
    same_text(&t);
    what_is_not_there_is_refused(t.model);
    assert_true(t.model->rows.is_tried); /* what rows cost, with the first guess */
    weft_grammar_free(&grammar);
    weft_model_close(&t.model);
}

static void stories_are_the_same(void **state)
{
    (void)state;
    same_text_of("stories260K");
}

static void windows_are_trimmed(void **state)
{
    (void)state;
    same_text_of("tiny-gemma3.f16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stories_are_the_same),
        cmocka_unit_test(windows_are_trimmed),
    };
    return claims_status(cmocka_run_group_tests(tests, NULL, NULL));
}
