// SPDX-License-Identifier: Apache-2.0
/* batcher_drafted.c: guesses that were wrong leave no trace in pages, no tenant's text speeds up another's, and what a
 * request predicts, limits or is forced to is counted as such. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"
#include "unit/draft_doubles.h"

#include "batcher/batcher.h"

/* ---- no trace ---- */

/* The bytes that the store has of the first n tokens of the answer to q, prompt included. */
static size_t saved(weft_model *model, uint32_t type, const char *place, guesses *g, const ask *q, int32_t n, char *out,
                    size_t room, answer *a)
{
    weft_engine_params p = small();
    weft_error err = {0};
    char store[80], path[128];
    int32_t tokens[MAX_TOKENS + MAX_ANSWER], n_saved = 0;
    uint64_t n_bytes = 0;
    snprintf(store, sizeof store, "%s/%s", folder, place);
    p.store_dir = store;
    p.kv_dtype = type;
    weft_engine *e = g ? guessing(model, &p, g, NULL) : open_engine(model, &p);
    run_alone(e, q, a, 1);
    const weft_engine_stats s = stats_of(e);
    assert_int_equal(s.kv_pages_used, 0);
    memcpy(tokens, q->tokens, (size_t)q->p.n_tokens * sizeof *tokens);
    memcpy(tokens + q->p.n_tokens, a->token, (size_t)a->n * sizeof *tokens);
    if (weft_engine_save(e, q->p.tenant, tokens, n, "it", &n_saved, &n_bytes, &err)) fail_msg("%s", err.message);
    assert_int_equal(n_saved, n);
    snprintf(path, sizeof path, "%s/s-it.kv", store);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t got = fread(out, 1, room, f);
    fclose(f);
    if (g) assert_true(drafts_of(e).n_tokens > 0);
    assert_int_equal(stats_of(e).kv_pages_cached, (q->p.n_tokens + a->n - 1 + 63) / 64);
    close_engine(&e);
    return got;
}

static void leave_no_trace(weft_model *model, uint32_t type)
{
    enum { ROOM = 1 << 22, SAVED = 128 };
    static char a[ROOM], b[ROOM];
    static answer first, again;
    ask q;
    assert_non_null(mkdtemp(strcpy(folder, "/tmp/weft-drafts-XXXXXX")));
    simple(&q, 70, 90);
    q.p.ignore_end = 1;
    q.p.tenant = "me";
    const size_t n = saved(model, type, "plain", NULL, &q, SAVED, a, ROOM, &first);
    assert_true(n > 0 && n < ROOM);
    for (int wrong_in = 0; wrong_in < 4; wrong_in++) {
        char place[16];
        guesses g = {&q, &first, 1, wrong_in};
        snprintf(place, sizeof place, "%d", wrong_in);
        assert_int_equal(saved(model, type, place, &g, &q, SAVED, b, ROOM, &again), n);
        compare("saved", &q, &first, &again, 1);
        assert_memory_equal(a, b, n);
    }
    remove_folder(folder);
}

/* The pages of an answer are byte for byte those of a run that never guessed, and there are as many: with every type of
 * keys and values that has a name. */
static void wrong_guesses_leave_no_trace(void **state)
{
    int n_types = 0;
    (void)state;
    weft_model *model = tiny(0);
    for (uint32_t type = 0; type < 256; type++) {
        char name[WEFT_KV_NAME_MAX];
        uint32_t found = 0;
        if (weft_kv_type_parse(weft_kv_type_name(type, name), &found, NULL) || found != type) continue;
        leave_no_trace(model, type);
        n_types++;
    }
    assert_true(n_types >= 3);
    weft_model_close(&model);
}

/* ---- whose texts ---- */

static uint64_t right_of(weft_engine *e, const ask *q)
{
    static answer a;
    const uint64_t before = drafts_of(e).n_accepted;
    run_alone(e, q, &a, 1);
    assert_int_equal(a.status, WEFT_OK);
    return drafts_of(e).n_accepted - before;
}

/* A finished answer is found again by its own tenant, under the same adapters, and by nobody else: how many guesses are
 * right tells another nothing. */
static void no_tenant_speeds_up_another(void **state)
{
    const char *const files[] = {adapter_files[0], adapter_files[1]};
    static const weft_request_adapter one = {"one", 1, 0};
    ask mine, yours, adapted, secret;
    (void)state;
    weft_model *model = tiny(0);
    strcpy(folder, "/tmp/weft-drafts-XXXXXX");
    make_adapters(model);
    simple(&mine, 30, 60);
    mine.p.ignore_end = 1;
    mine.p.sampler.temperature = 1.5f;
    mine.p.tenant = "me";
    yours = adapted = secret = mine;
    yours.p.tenant = "you";
    adapted.p.adapters = &one;
    adapted.p.n_adapters = 1;
    secret.p.no_cache = 1;
    weft_engine_params p = small();
    weft_engine *e = guessing(model, &p, NULL, files);
    const uint64_t alone = right_of(e, &mine), adapted_alone = right_of(e, &adapted);
    assert_int_equal(right_of(e, &yours), alone);
    assert_int_equal(right_of(e, &secret), alone);
    const uint64_t known = right_of(e, &mine);
    print_message("%llu guesses were right, then %llu of 60\n", (unsigned long long)alone, (unsigned long long)known);
    assert_true(known >= 40 && known > alone);
    assert_true(right_of(e, &adapted) >= adapted_alone);
    close_engine(&e);
    /* Under the adapter first: what it has answered is not what is found without. */
    e = guessing(model, &p, NULL, files);
    assert_int_equal(right_of(e, &adapted), adapted_alone);
    assert_int_equal(right_of(e, &mine), alone);
    secret.p.tenant = "nobody"; /* what asked not to be kept is not kept */
    assert_int_equal(right_of(e, &secret), alone);
    secret.p.no_cache = 0;
    assert_int_equal(right_of(e, &secret), alone);
    close_engine(&e);
    weft_model_close(&model);
    remove_folder(folder);
}

/* ---- what a request asks for ---- */

static int n_drafted, n_predicted, n_of_drafter[1 + WEFT_DRAFTERS];

static int counts(void *arg, const weft_event *e)
{
    if (e->kind == WEFT_EVENT_TOKEN) n_of_drafter[e->drafter]++;
    if (e->kind == WEFT_EVENT_FINISHED) {
        n_drafted = e->n_drafted;
        n_predicted = e->n_predicted;
    }
    return on_event(arg, e);
}

static void run_counted(weft_engine *e, ask *q, answer *a)
{
    memset(n_of_drafter, 0, sizeof n_of_drafter);
    q->p.event = counts;
    run_alone(e, q, a, 1);
    assert_int_equal(a->status, WEFT_OK);
}

/* A prediction that is right brings nearly all tokens; with every eighth token another, most; none of it changes the
 * answer. What is asked for by number is held to. */
static void predictions_and_limits(void **state)
{
    static answer first, again;
    ask q;
    int32_t predicted[60];
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = guessing(model, &p, NULL, NULL);
    simple(&q, 30, 60);
    q.p.ignore_end = 1;
    q.p.sampler.temperature = 1.5f;
    q.p.no_cache = 1;
    run_counted(e, &q, &first);
    memcpy(predicted, first.token, sizeof predicted);
    q.p.predicted = predicted;
    q.p.n_predicted = 60;
    uint64_t steps = stats_of(e).n_steps;
    run_counted(e, &q, &again);
    compare("predicted", &q, &first, &again, 1);
    print_message("%d of 60 tokens were predicted\n", n_of_drafter[1 + WEFT_DRAFTER_PREDICTION]);
    assert_true(n_of_drafter[1 + WEFT_DRAFTER_PREDICTION] >= 50);
    assert_true(n_predicted >= n_of_drafter[1 + WEFT_DRAFTER_PREDICTION] && n_drafted >= n_predicted);
    assert_true(stats_of(e).n_steps - steps < 20);
    for (int i = 0; i < 60; i += 8) predicted[i] = 3 + (predicted[i] + 1) % 400;
    run_counted(e, &q, &again);
    compare("predicted in part", &q, &first, &again, 1);
    assert_true(n_of_drafter[1 + WEFT_DRAFTER_PREDICTION] >= 30);
    q.p.draft_max = 1;
    steps = stats_of(e).n_steps;
    run_counted(e, &q, &again);
    assert_true(stats_of(e).n_steps - steps >= 30);
    q.p.draft_max = 0;
    run_counted(e, &q, &again);
    assert_int_equal(n_drafted + n_of_drafter[1] + n_of_drafter[2] + n_of_drafter[3], 0);
    close_engine(&e);
    weft_model_close(&model);
}

/* ---- a draft model ---- */

/* A model that guesses for itself is always right: it sees the draws that will be made, penalties, biases and the
 * grammar; and it leaves them as they were. Of a draft that a step has no time to try, nothing is counted: mask_ns is
 * that time. */
static void always_right(weft_model *model, const weft_grammar *grammar, int32_t n_ctx, uint64_t mask_ns)
{
    static answer first[8], again[8];
    ask all[8];
    weft_engine_params p = small();
    int n = 0;
    p.n_ctx = n_ctx;
    for (; n < 8; n++) {
        simple(&all[n], 20 + 13 * n, 60);
        all[n].p.ignore_end = 1;
        all[n].p.sampler.temperature = (float)(n % 4) * 0.5f;
        all[n].p.sampler.seed = (uint64_t)n;
        if (n % 2) all[n].p.sampler.repeat_penalty = 1.3f;
        if (n % 3 == 1) all[n].p.sampler.frequency_penalty = 0.3f;
        all[n].p.sampler.penalty_last_n = n == 5 ? -1 : 3 * n;
        all[n].bias[0] = (weft_logit_bias){9 + n, 2};
        all[n].p.sampler.n_bias = 1;
        all[n].p.grammar = n > 3 ? grammar : NULL;
    }
    weft_engine *e = open_engine(model, &p);
    run_together(e, all, first, n);
    close_engine(&e);
    p.draft = model;
    p.spec = WEFT_SPEC_DRAFT;
    e = guessing(model, &p, NULL, NULL);
    pthread_mutex_lock(&e->lock);
    e->mask_most_ns = mask_ns;
    pthread_mutex_unlock(&e->lock);
    run_together(e, all, again, n);
    compare("by itself", all, first, again, n);
    const weft_draft_stats s = stats_of(e).drafts[WEFT_DRAFTER_MODEL];
    assert_int_equal(s.n_accepted, s.n_tokens);
    assert_true(s.n_accepted >= (mask_ns == 1 ? 4u : 8u) * 30);
    assert_true(stats_of(e).draft_ns > 0);
    close_engine(&e);
}

static void a_model_is_right_about_itself(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    always_right(model, NULL, 512, UINT64_MAX);
    weft_model_close(&model);
}

static void a_model_is_right_about_itself_in_grammars(void **state)
{
    static const char source[] = "root ::= (\"Once there was \" [a-z]+ \". And then \")+ \"the end.\"\n";
    static const char *const models[] = {"stories260K", "tiny-gemma3.f16"};
    weft_error err = {0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        weft_grammar *grammar = NULL;
        weft_model *model = from_shared(models[i]);
        if (weft_grammar_new(weft_model_tokenizer(model), WEFT_GRAMMAR_GBNF, source, sizeof source - 1, &grammar, &err))
            fail_msg("%s", err.message);
        always_right(model, grammar, 256, UINT64_MAX);
        always_right(model, grammar, 256, 1);
        weft_grammar_free(&grammar);
        weft_model_close(&model);
    }
}

static int inserts(void *arg, const weft_event *e)
{
    on_event(arg, e);
    return e->kind == WEFT_EVENT_TOKEN && e->n_generated == 7 ? WEFT_EVENT_INSERT : 0;
}

/* What was guessed and is not the text is forgotten: where something else is written than it guessed, one draft is
 * wrong, and all that follow are right. */
static void a_draft_model_rolls_back(void **state)
{
    static const int32_t inserted[] = {41, 42, 43};
    static answer first, again;
    ask q;
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    simple(&q, 30, 100);
    q.p.ignore_end = 1;
    q.p.event = inserts;
    q.p.insert = inserted;
    q.p.n_insert = 3;
    weft_engine *e = open_engine(model, &p);
    run_alone(e, &q, &first, 1);
    close_engine(&e);
    p.draft = model;
    p.spec = WEFT_SPEC_DRAFT;
    e = guessing(model, &p, NULL, NULL);
    run_alone(e, &q, &again, 1);
    compare("inserted", &q, &first, &again, 1);
    const weft_draft_stats s = stats_of(e).drafts[WEFT_DRAFTER_MODEL];
    print_message("%llu of %llu\n", (unsigned long long)s.n_accepted, (unsigned long long)s.n_tokens);
    assert_true(s.n_accepted >= 60 && s.n_tokens - s.n_accepted < WEFT_DRAFT_MAX);
    close_engine(&e);
    weft_model_close(&model);
}

/* A prompt longer than what it may read at once is read over several steps, and found again by the next request that
 * begins so; it goes on where the text is shifted. Memory for what it holds is given back. */
static void a_draft_model_catches_up(void **state)
{
    static answer first[2], again;
    ask q[2];
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    simple(&q[0], 300, 60);
    q[0].p.ignore_end = 1;
    q[1] = q[0];
    q[1].p.max_tokens = 120;
    q[1].p.shift = 1;
    p.n_ctx = 360;
    p.chunk = 64;
    weft_engine *e = open_engine(model, &p);
    run_alone(e, q, first, 2);
    close_engine(&e);
    p.draft = model;
    p.spec = WEFT_SPEC_DRAFT;
    e = guessing(model, &p, NULL, NULL);
    run_alone(e, &q[0], &again, 1);
    compare("long", &q[0], &first[0], &again, 1);
    const uint64_t steps = stats_of(e).n_steps;
    run_alone(e, &q[0], &again, 1);
    compare("again", &q[0], &first[0], &again, 1);
    print_message("%llu steps, then %llu\n", (unsigned long long)steps,
                  (unsigned long long)(stats_of(e).n_steps - steps));
    assert_true(stats_of(e).n_steps - steps + 3 < steps); /* neither of both reads it again */
    run_alone(e, &q[1], &again, 1);
    compare("shifted", &q[1], &first[1], &again, 1);
    const weft_draft_stats s = stats_of(e).drafts[WEFT_DRAFTER_MODEL];
    assert_true(s.n_accepted >= 200 && s.n_tokens - s.n_accepted < 2 * WEFT_DRAFT_MAX);
    weft_engine_drain(e, 60000);
    pthread_mutex_lock(&e->lock);
    assert_int_equal(e->n_scratch, 0);
    pthread_mutex_unlock(&e->lock);
    close_engine(&e);
    weft_model_close(&model);
}

static void fits_not(weft_model *model, weft_model *draft, const char *text)
{
    weft_engine_params p = small();
    weft_engine *e = NULL;
    weft_session_params sp;
    weft_session *s = NULL;
    weft_error err = {0};
    p.spec = WEFT_SPEC_AUTO;
    p.draft = draft;
    assert_int_equal(weft_engine_new(model, &p, &e, &err), WEFT_ARGUMENT);
    if (!strstr(err.message, text)) fail_msg("'%s' has no '%s'", err.message, text);
    weft_session_params_default(&sp);
    sp.draft = draft;
    assert_int_equal(weft_session_new(model, &sp, &s, &err), WEFT_ARGUMENT);
    if (!strstr(err.message, text)) fail_msg("'%s' has no '%s'", err.message, text);
    p.spec = WEFT_SPEC_SUFFIX; /* it is not asked */
    e = open_engine(model, &p);
    close_engine(&e);
}

/* One token of 2,048 that is spelled otherwise is another vocabulary. */
static void another_token_is_refused(void **state)
{
    static const char whole[] = "models/alderbrook.gguf", token[] = "<|pad|>";
    weft_error err = {0};
    char path[64];
    (void)state;
    weft_model *model = open_model(whole);
    FILE *in = fopen(whole, "rb"), *out;
    assert_non_null(in);
    assert_int_equal(fseek(in, 0, SEEK_END), 0);
    const size_t n = (size_t)ftell(in);
    char *bytes = malloc(n), *at;
    rewind(in);
    assert_int_equal(fread(bytes, 1, n, in), n);
    fclose(in);
    assert_non_null(at = memmem(bytes, n, token, strlen(token)));
    memcpy(at, "<|dap|>", strlen(token));
    assert_non_null(mkdtemp(strcpy(folder, "/tmp/weft-drafts-XXXXXX")));
    snprintf(path, sizeof path, "%s/changed.gguf", folder);
    assert_non_null(out = fopen(path, "wb"));
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    assert_int_equal(fclose(out), 0);
    free(bytes);
    weft_model *changed = open_model(path);
    assert_int_equal(weft_draft_fits(model, changed, NULL, &err), WEFT_ARGUMENT);
    if (!strstr(err.message, "(token 2 is '<|dap|>' there, '<|pad|>' here)")) fail_msg("%s", err.message);
    weft_model_close(&changed);
    weft_model_close(&model);
    remove_folder(folder);
}

/* Another vocabulary is refused by name, with what differs; the same model brings nothing, a fifth of one does. */
static void other_vocabularies_are_refused(void **state)
{
    double gain = 0;
    weft_error err = {0};
    char path[64];
    (void)state;
    weft_model *model = from_shared("tiny-llama.f16"), *coarse = from_shared("tiny-llama.Q2_K"), *bare = tiny(0);
    assert_non_null(mkdtemp(strcpy(folder, "/tmp/weft-drafts-XXXXXX")));
    snprintf(path, sizeof path, "%s/words.gguf", folder);
    if (weft_synthetic_write("tiny-128", WEFT_Q4_0, path, NULL, NULL, &err)) fail_msg("%s", err.message);
    weft_model *words = open_model(path), *longer = open_model("models/alderbrook.gguf");
    fits_not(model, bare, "has no tokenizer");
    fits_not(model, words, "words.gguf cannot guess for");
    fits_not(model, words, "different vocabularies (token ");
    fits_not(model, longer, "its vocabulary has 2048 tokens, and that one 512");
    assert_int_equal(weft_draft_fits(model, model, &gain, &err), WEFT_OK);
    assert_true(gain < 1);
    assert_int_equal(weft_draft_fits(model, coarse, &gain, &err), WEFT_OK);
    assert_true(gain > 1);
    weft_model_close(&longer);
    weft_model_close(&words);
    weft_model_close(&bare);
    weft_model_close(&coarse);
    weft_model_close(&model);
    remove_folder(folder);
}

static void refused(weft_engine *e, const ask *q, const char *text)
{
    weft_error err = {0};
    answer a;
    assert_int_equal(submit(e, q, &a, &err), WEFT_ARGUMENT);
    if (!strstr(err.message, text)) fail_msg("'%s' has no '%s'", err.message, text);
}

static void what_is_wrong_is_refused(void **state)
{
    static const int32_t beyond[] = {1 << 30};
    ask good, q;
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = NULL;
    weft_error err = {0};
    p.spec = 4;
    assert_int_equal(weft_engine_new(model, &p, &e, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "spec"));
    p.spec = WEFT_SPEC_DRAFT;
    assert_int_equal(weft_engine_new(model, &p, &e, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "--draft"));
    p.spec = WEFT_SPEC_SUFFIX;
    e = open_engine(model, &p);
    simple(&good, 4, 4);
    q = good;
    q.p.n_predicted = 1;
    refused(e, &q, "n_predicted");
    q.p.predicted = beyond;
    refused(e, &q, "of `predicted`: the model has ids");
    q = good;
    q.p.draft_max = WEFT_DRAFT_MAX + 1;
    refused(e, &q, "drafts of");
    q = good;
    q.p.draft_p_min = 1.5f;
    refused(e, &q, "draft_p_min");
    assert_string_equal(weft_drafter_name(WEFT_DRAFTER_FORCED), "forced");
    assert_string_equal(weft_drafter_name(WEFT_DRAFTERS), "?");
    close_engine(&e);
    weft_model_close(&model);
}

/* What was forced, and right, of the answer in this grammar, which is the one without guesses. */
static weft_draft_stats forced_by(weft_model *model, const char *source)
{
    static answer first, again;
    ask q;
    weft_error err = {0};
    weft_grammar *grammar = NULL;
    if (weft_grammar_new(weft_model_tokenizer(model), WEFT_GRAMMAR_GBNF, source, strlen(source), &grammar, &err))
        fail_msg("%s", err.message);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    simple(&q, 4, 60);
    q.p.grammar = grammar;
    q.p.sampler.temperature = 0;
    run_alone(e, &q, &first, 1);
    close_engine(&e);
    e = guessing(model, &p, NULL, NULL);
    run_counted(e, &q, &again);
    compare("forced", &q, &first, &again, 1);
    const weft_draft_stats s = stats_of(e).drafts[WEFT_DRAFTER_FORCED];
    print_message("%llu of %llu forced tokens were right, in an answer of %d\n", (unsigned long long)s.n_accepted,
                  (unsigned long long)s.n_tokens, again.n);
    assert_int_equal(n_of_drafter[1 + WEFT_DRAFTER_FORCED], s.n_accepted);
    close_engine(&e);
    weft_grammar_free(&grammar);
    return s;
}

/* What a grammar leaves no choice about is guessed, and is right where its text has one spelling; where tokens of other
 * lengths spell it as well, the model's choice need not be the longest. */
static void grammars_force(void **state)
{
    (void)state;
    weft_model *model = from_shared("stories260K");
    /* none of them in the vocabulary: each of their bytes is a token, and no other begins so */
    const weft_draft_stats one = forced_by(model, "root ::= \"→☃♞✈⌘⇄∀★\"\n");
    assert_true(one.n_tokens >= 16);
    assert_int_equal(one.n_accepted, one.n_tokens);
    const weft_draft_stats many =
        forced_by(model, "root ::= \"The quick brown fox jumps over the lazy dog, and is \" [a-z]+ \".\"\n");
    assert_true(many.n_accepted > 0);
    weft_model_close(&model);
}

/* The text as the tokenizer spells it, in out[MAX_ANSWER], which the request's biases favour: a model that has learned
 * texts so, as it were. */
static size_t favour_spelling(const weft_tokenizer *t, const char *text, ask *q, int32_t *out)
{
    size_t n = 0, length;
    weft_error err = {0};
    if (weft_tokenize(t, text, strlen(text), 0, out, MAX_ANSWER, &n, &err)) fail_msg("%s", err.message);
    q->p.sampler.n_bias = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t k = 0;
        while (k < q->p.sampler.n_bias && q->bias[k].token != out[i]) k++;
        if (k < q->p.sampler.n_bias) continue;
        assert_true(k < (int32_t)(sizeof q->bias / sizeof *q->bias));
        (void)weft_token_bytes(t, out[i], &length);
        q->bias[q->p.sampler.n_bias++] = (weft_logit_bias){out[i], 60 + 3 * (float)length};
    }
    return n;
}

/* A grammar forces bytes; what is guessed is the tokenizer's spelling of them, and not the longest tokens. Where a text
 * is spelled so, all guesses are right and nearly all tokens guessed, but for one that what follows may still change.
 */
static void forced_text_is_guessed_as_it_is_spelled(void **state)
{
    static const char text[] = " conversations of large developers and promises of dogs";
    static const char sources[][160] = {
        "root ::= \" conversations of large developers and promises of dogs\"\n",
        "root ::= \" conversations of large developers and promises of do\" (\"gs\" | \"cuments\")\n"};
    static answer first, again;
    int32_t spelled[MAX_ANSWER];
    weft_error err = {0};
    (void)state;
    weft_model *model = open_model("models/alderbrook.gguf");
    const weft_tokenizer *t = weft_model_tokenizer(model);
    for (int i = 0; i < 2; i++) {
        weft_grammar *grammar = NULL;
        ask q;
        simple(&q, 4, 60);
        const size_t n = favour_spelling(t, text, &q, spelled);
        if (weft_grammar_new(t, WEFT_GRAMMAR_GBNF, sources[i], strlen(sources[i]), &grammar, &err))
            fail_msg("%s", err.message);
        q.p.grammar = grammar;
        q.p.sampler.temperature = 0;
        q.p.no_cache = 1;
        weft_engine_params p = small();
        weft_engine *e = open_engine(model, &p);
        run_alone(e, &q, &first, 1);
        close_engine(&e);
        assert_true((size_t)first.n >= n && !memcmp(first.token, spelled, n * sizeof *spelled));
        e = guessing(model, &p, NULL, NULL);
        run_alone(e, &q, &again, 1);
        compare("spelled", &q, &first, &again, 1);
        const weft_draft_stats s = stats_of(e).drafts[WEFT_DRAFTER_FORCED];
        print_message("%llu of %llu guesses were right, of %zu tokens\n", (unsigned long long)s.n_accepted,
                      (unsigned long long)s.n_tokens, n);
        assert_int_equal(s.n_accepted, s.n_tokens);
        assert_true(s.n_accepted * 4 >= n * 3);
        close_engine(&e);
        weft_grammar_free(&grammar);
    }
    weft_model_close(&model);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_guesses_leave_no_trace),
        cmocka_unit_test(no_tenant_speeds_up_another),
        cmocka_unit_test(predictions_and_limits),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(a_model_is_right_about_itself),
        cmocka_unit_test(a_draft_model_catches_up),
        cmocka_unit_test(a_draft_model_rolls_back),
        cmocka_unit_test(another_token_is_refused),
        cmocka_unit_test(forced_text_is_guessed_as_it_is_spelled),
    };
    const struct CMUnitTest material[] = {
        cmocka_unit_test(grammars_force),
        cmocka_unit_test(a_model_is_right_about_itself_in_grammars),
        cmocka_unit_test(other_vocabularies_are_refused),
    };
    return claims_status(claims_material(argc, argv) ? cmocka_run_group_tests(material, NULL, NULL)
                                                     : cmocka_run_group_tests(tests, NULL, NULL));
}
