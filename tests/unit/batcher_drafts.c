// SPDX-License-Identifier: Apache-2.0
/* batcher_drafts.c: whatever guesses a request's tokens, and however often it is right, the answer is the one without
 * guesses, byte for byte: at every temperature, with grammars, penalties, adapters, stops and log-probabilities, alone
 * and beside others, preempted and cancelled. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"
#include "unit/draft_doubles.h"

#include "batcher/batcher.h"

/* Of so many prompts each is asked at every temperature in every form; a part of them usually, that WEFT_SEED picks. */
#define N_ROUNDS CLAIMS_REPEATED(CLAIMS_SWEPT(2, ALL_PROMPTS / N_PROMPTS), 1, 1)
#define N_ROUNDS_OF_MATERIAL CLAIMS_REPEATED(CLAIMS_SWEPT(1, ALL_PROMPTS / N_PROMPTS), 1, 1)

enum {
    ANSWER = CLAIMS_REPEATED(40, 24, 16),
    LONG_ANSWER = CLAIMS_REPEATED(120, 120, 16), /* outgrows by a page what it was let in with */
    ALL_PROMPTS = 200,
    N_PROMPTS = CLAIMS_REPEATED(2, 1, 1), /* of a round */
    N_CHOICES = 4,                        /* as those of one request with n, in each round */
    MOST_ASKS = N_CHOICES + 2 * 3 * 9,
    CONTEXT = 200,
    STOP_EVERY = 13
};

/* ---- what is asked ---- */

static const float temperatures[] = {0, 0.7f, 1.5f};
enum form { PLAIN, GRAMMAR, PENALTIES, ADAPTER, ADAPTERS, STOP, INSERT, LOGPROBS, SHIFT, CHOICES, FORMS };
static const char *const form_names[] = {"plain", "grammar", "penalties", "adapter", "adapters",
                                         "stop",  "insert",  "logprobs",  "shift",   "choices"};
static const int32_t inserted[] = {41, 42, 43, 44, 45};

static const weft_request_adapter stacks[2][2] = {{{"one", 1, 0}}, {{"one", 0.5f, 0}, {"two", 1, 0}}};

/* Ends by itself after some tokens. */
static int stops(void *arg, const weft_event *e)
{
    on_event(arg, e);
    return e->kind == WEFT_EVENT_TOKEN && e->n_generated > 3 && e->token % STOP_EVERY == 0;
}

/* Writes something in the model's place after some tokens. */
static int inserts(void *arg, const weft_event *e)
{
    on_event(arg, e);
    return e->kind == WEFT_EVENT_TOKEN && e->n_generated == 7 ? WEFT_EVENT_INSERT : 0;
}

static void shape(ask *q, int form, const weft_grammar *grammar)
{
    switch ((enum form)form) {
    case GRAMMAR: q->p.grammar = grammar; break;
    case PENALTIES:
        q->p.sampler.repeat_penalty = 1.3f;
        q->p.sampler.frequency_penalty = 0.2f;
        q->p.sampler.penalty_last_n = 20;
        q->bias[0] = (weft_logit_bias){9, 3};
        q->p.sampler.n_bias = 1;
        break;
    case ADAPTER:
    case ADAPTERS:
        q->p.adapters = stacks[form == ADAPTERS];
        q->p.n_adapters = form == ADAPTERS ? 2 : 1;
        break;
    case STOP: q->p.event = stops; break;
    case INSERT:
        q->p.event = inserts;
        q->p.insert = inserted;
        q->p.n_insert = (int32_t)(sizeof inserted / sizeof *inserted);
        break;
    case LOGPROBS: q->p.n_top = 5; break;
    case SHIFT: /* its context is full within the answer */
        q->p.shift = 1;
        q->p.n_tokens = CONTEXT - ANSWER / 2;
        break;
    case PLAIN:
    case CHOICES:
    case FORMS: break;
    }
}

static void make_ask(ask *q, int form, int prompt, int last, float temperature, const weft_grammar *grammar)
{
    simple(q, 20 + prompt * 37 % 60, form == PLAIN || form == LOGPROBS ? LONG_ANSWER : ANSWER);
    shape(q, form, grammar);
    for (int32_t i = 0; i < q->p.n_tokens; i++) q->tokens[i] = 3 + (i % 11 * 17 + prompt * 29) % 400;
    q->tokens[q->p.n_tokens - 1] = last;
    q->p.sampler.temperature = temperature;
    q->p.ignore_end = form != STOP;
}

/* The choices of one request, which seeds alone tell apart; then each prompt at each temperature in each form. */
static int make_asks(ask *all, int *forms, int round, const weft_grammar *grammar, int with_adapters)
{
    const int first = (int)((claims_seed() >> 24) * 31 % ALL_PROMPTS) + round * N_PROMPTS;
    int n = 0;
    for (; n < N_CHOICES; n++) {
        make_ask(&all[n], CHOICES, first % ALL_PROMPTS, 3, temperatures[1], grammar);
        all[n].p.sampler.seed = (uint64_t)(first * 1000 + n);
        forms[n] = CHOICES;
    }
    for (int i_prompt = 0; i_prompt < N_PROMPTS; i_prompt++) {
        const int prompt = (first + i_prompt) % ALL_PROMPTS;
        for (size_t t = 0; t < sizeof temperatures / sizeof *temperatures; t++)
            for (int form = 0; form < CHOICES; form++) {
                ask *q = &all[n];
                if ((form == GRAMMAR && !grammar) || ((form == ADAPTER || form == ADAPTERS) && !with_adapters))
                    continue;
                make_ask(q, form, prompt, 3 + n * 7 % 400, temperatures[t], grammar); /* each has its own record */
                q->p.sampler.seed = (uint64_t)(prompt * 1000 + n);
                q->p.tenant = n % 2 ? "one" : "two";
                forms[n++] = form;
            }
    }
    return n;
}

/* ---- the same answers ---- */

enum guesser { DOUBLE, OWN, MODEL, GUESSERS };
static const char *const guessers[] = {"a double", "its own drafters", "a draft model"};

typedef struct world {
    weft_model *model;
    const weft_grammar *grammar;
    const char *const *adapters; /* two files; NULL: none */
    ask all[MOST_ASKS];
    int form[MOST_ASKS]; /* of each */
    answer first[MOST_ASKS], again[MOST_ASKS];
    int n;
    int part;             /* of the questions one of so many is asked; 0: all */
    uint64_t n_preempted; /* of all rounds; windows alone never need more pages than a request was let in with */
    weft_model *small;    /* a draft model that guesses alone; NULL: none */
    weft_model *other;    /* one that has nothing of it; NULL: none */
    int guessed[GUESSERS][FORMS], is_asked[GUESSERS][FORMS]; /* tokens; whether there were answers of some length */
} world;

static weft_engine_params fitting(const world *w)
{
    weft_engine_params p = small();
    p.n_ctx = CONTEXT;
    p.draft = w->small;
    p.spec = w->small ? WEFT_SPEC_DRAFT : WEFT_SPEC_OFF;
    return p;
}

/* What the engine counts is what the requests were told; kept by form for guessed_in_each. */
static void count_guesses(world *w, int who, const weft_draft_stats *s)
{
    uint64_t n_tokens = 0, n_right = 0;
    for (int i = 0; i < w->n; i++) {
        n_tokens += (uint64_t)w->again[i].n_drafted;
        n_right += (uint64_t)w->again[i].n_right;
        w->guessed[who][w->form[i]] += w->again[i].n_drafted;
        w->is_asked[who][w->form[i]] |= w->first[i].n >= ANSWER / 2;
    }
    assert_true(n_tokens > 0);
    assert_int_equal(n_tokens, s->n_tokens);
    assert_int_equal(n_right, s->n_accepted);
}

/* Where nothing was guessed, the same answers claim nothing: in every form that had an answer of some length, whoever
 * guesses has done so. */
static void guessed_in_each(const world *w)
{
    for (int who = 0; who < GUESSERS; who++)
        for (int k = 0; k < FORMS; k++)
            if (w->is_asked[who][k] && !w->guessed[who][k])
                fail_msg("%s guessed nothing in the form %s", guessers[who], form_names[k]);
}

/* With few at once: where many begin, prompts fill the steps, and short answers have ended before there is room for a
 * guess. Its own drafters find each answer among the finished ones when it is asked for again. */
static void compare_with(world *w, const char *what, guesses *g, int least_right, int most_right)
{
    const int who = g ? DOUBLE : w->small ? MODEL : OWN;
    weft_engine_params p = fitting(w);
    p.n_slots = 4;
    weft_engine *e = guessing(w->model, &p, g, w->adapters);
    if (who == OWN) {
        run_together(e, w->all, w->again, w->n);
        compare(what, w->all, w->first, w->again, w->n);
    }
    const weft_draft_stats before = drafts_of(e);
    run_together(e, w->all, w->again, w->n);
    compare(what, w->all, w->first, w->again, w->n);
    weft_draft_stats s = drafts_of(e);
    s.n_tokens -= before.n_tokens;
    s.n_accepted -= before.n_accepted;
    print_message("%s: %llu of %llu guessed tokens were right\n", what, (unsigned long long)s.n_accepted,
                  (unsigned long long)s.n_tokens);
    count_guesses(w, who, &s);
    assert_true(s.n_accepted * 100 >= s.n_tokens * (uint64_t)least_right);
    assert_true(s.n_accepted * 100 <= s.n_tokens * (uint64_t)most_right);
    close_engine(&e);
}

/* The asks of long answers: what they get is the model's own choice alone. */
typedef struct long_ones {
    ask all[MOST_ASKS];
    answer first[MOST_ASKS];
    int n;
} long_ones;

static const long_ones *long_ones_of(const world *w)
{
    static long_ones l;
    l.n = 0;
    for (int i = 0; i < w->n; i++) {
        const weft_request_params *p = &w->all[i].p;
        if (p->max_tokens != LONG_ANSWER || p->n_adapters || p->grammar || p->event == stops || p->n_insert || p->shift)
            continue;
        l.all[l.n] = w->all[i];
        l.all[l.n].p.no_cache = 1; /* no prefix that others share */
        l.first[l.n++] = w->first[i];
    }
    return &l;
}

/* In a pool in which two of them cannot grow by the page that each needs beyond what it was let in with. */
static void preempted(world *w, guesses *g)
{
    const long_ones *l = long_ones_of(w);
    weft_engine_params p = fitting(w);
    p.n_kv_tokens = 256;
    weft_engine *e = guessing(w->model, &p, g, w->adapters);
    for (int round = 0; round < 8 && !stats_of(e).n_preempted; round++) { /* who meets whom is chance */
        run_together(e, l->all, w->again, l->n);
        compare("preempted", l->all, l->first, w->again, l->n);
    }
    print_message("%llu preemptions\n", (unsigned long long)stats_of(e).n_preempted);
    w->n_preempted += stats_of(e).n_preempted;
    close_engine(&e);
}

/* A model that guesses for itself guesses what it will pick, at every temperature. */
static void all_right(world *w)
{
    const long_ones *l = long_ones_of(w);
    weft_engine_params p = fitting(w);
    weft_engine *e = guessing(w->model, &p, NULL, w->adapters);
    run_together(e, l->all, w->again, l->n);
    compare("itself", l->all, l->first, w->again, l->n);
    const weft_draft_stats s = drafts_of(e);
    assert_true(s.n_tokens > 0);
    assert_int_equal(s.n_accepted, s.n_tokens);
    close_engine(&e);
}

/* Every third is cancelled when it has some tokens; what it has by then is a beginning of its answer. */
static struct {
    const answer *first;
    atomic_int is_under_way[MOST_ASKS];
} leaving;

static int leaves(void *arg, const weft_event *e)
{
    on_event(arg, e);
    if (e->kind == WEFT_EVENT_FINISHED || e->n_generated == 5)
        atomic_store(&leaving.is_under_way[(const answer *)arg - leaving.first], 1);
    return 0;
}

static int is_cancelled(const world *w, int i)
{
    return i % 3 == 0 && !w->all[i].p.event;
}

static void cancelled(world *w, guesses *g)
{
    weft_engine_params p = fitting(w);
    weft_engine *e = guessing(w->model, &p, g, w->adapters);
    weft_error err = {0};
    leaving.first = w->again;
    for (int i = 0; i < w->n; i++) {
        ask q = w->all[i];
        atomic_store(&leaving.is_under_way[i], 0);
        if (is_cancelled(w, i)) q.p.event = leaves;
        if (submit(e, &q, &w->again[i], &err)) fail_msg("%s", err.message);
    }
    for (int i = 0; i < w->n; i++) {
        if (!is_cancelled(w, i)) continue;
        wait_until(atomic_load(&leaving.is_under_way[i]));
        weft_engine_cancel(e, w->again[i].id);
    }
    wait_all();
    for (int i = 0; i < w->n; i++) {
        const answer *a = &w->first[i], *b = &w->again[i];
        if (!is_cancelled(w, i)) compare("beside cancelled ones", &w->all[i], a, b, 1);
        const int n = a->n < b->n ? a->n : b->n;
        assert_memory_equal(a->token, b->token, (size_t)n * sizeof *a->token);
        assert_memory_equal(a->logprob, b->logprob, (size_t)n * sizeof *a->logprob);
    }
    close_engine(&e);
}

/* Where one mask is all that a step has time for, what was guessed waits for its own. */
static void put_off(world *w, guesses *g)
{
    weft_engine_params p = fitting(w);
    weft_engine *e = guessing(w->model, &p, g, w->adapters);
    pthread_mutex_lock(&e->lock);
    e->mask_most_ns = 1;
    pthread_mutex_unlock(&e->lock);
    run_together(e, w->all, w->again, w->n);
    compare("put off", w->all, w->first, w->again, w->n);
    close_engine(&e);
}

/* The same whoever else guesses, by what drafts cost; with pages that are found again. */
static void as_it_pays(world *w)
{
    weft_engine_params p = fitting(w);
    p.spec = WEFT_SPEC_AUTO;
    weft_engine *e = open_engine(w->model, &p);
    for (int i = 0; w->adapters && i < 2; i++)
        if (weft_engine_adapter_add(e, names[i], w->adapters[i], 1, 0, NULL)) fail_msg("no adapter");
    for (int round = 0; round < 2; round++) {
        run_together(e, w->all, w->again, w->n);
        compare("as it pays", w->all, w->first, w->again, w->n);
    }
    close_engine(&e);
}

/* A draft model's pages are apart from the target's, and its guesses take nothing from the sampler. */
static void same_answers_by_model(world *w, const char *what, weft_model *small, int least_right)
{
    w->small = small;
    compare_with(w, what, NULL, least_right, 100); /* adapters and grammars make others of its guesses */
    if (small == w->model) all_right(w);
    preempted(w, NULL);
    cancelled(w, NULL);
    if (w->grammar) put_off(w, NULL);
    as_it_pays(w);
    w->small = NULL;
}

static void same_answers_of(world *w, int round)
{
    weft_engine_params p = fitting(w);
    weft_error err = {0};
    p.n_slots = 1;
    p.spec = WEFT_SPEC_OFF;
    w->n = make_asks(w->all, w->form, round, w->grammar, w->adapters != NULL);
    if (w->part) w->n /= w->part;
    weft_engine *e = open_engine(w->model, &p);
    for (int i = 0; w->adapters && i < 2; i++)
        if (weft_engine_adapter_add(e, names[i], w->adapters[i], 1, 0, &err)) fail_msg("%s", err.message);
    run_alone(e, w->all, w->first, w->n);
    for (int i = 0; i < w->n; i++)
        if (w->first[i].status) fail_msg("request %d failed: %s", i, w->first[i].message);
    assert_int_equal(drafts_of(e).n_drafts, 0);
    close_engine(&e);
    guesses random = {.n = w->n}, wrong = {w->all, w->first, w->n, 1}, right = {w->all, w->first, w->n, 0},
            mixed = {w->all, w->first, w->n, 4};
    compare_with(w, "its own drafters", NULL, 60, 100);
    compare_with(w, "random tokens", &random, 0, 20);
    compare_with(w, "always wrong", &wrong, 0, 0);
    compare_with(w, "recorded", &right, 100, 100);
    compare_with(w, "recorded, one of four wrong", &mixed, 5, 90);
    preempted(w, &mixed);
    cancelled(w, &mixed);
    if (w->grammar) put_off(w, &mixed);
    same_answers_by_model(w, "itself", w->model, 10);
    if (w->other) same_answers_by_model(w, "another model", w->other, 0);
}

static void same_answers(world *w, int n_rounds)
{
    w->n_preempted = 0;
    for (int round = 0; round < n_rounds; round++) same_answers_of(w, round);
    guessed_in_each(w);
}

static void same_answer_whoever_guesses(void **state)
{
    static world w;
    const char *const files[] = {adapter_files[0], adapter_files[1]};
    (void)state;
    w.model = tiny(0);
    make_adapters(w.model);
    w.adapters = files;
    if (weft_model_synthetic(strcmp(CLAIMS_MODEL, "tiny") ? "tiny" : "tiny-128", WEFT_Q8_0, NULL, &w.other, NULL))
        fail_msg("no other model");
    same_answers(&w, N_ROUNDS);
    if (CLAIMS_REPEATED(1, 0, 0)) assert_true(w.n_preempted > 0);
    weft_model_close(&w.other);
    weft_model_close(&w.model);
    remove_folder(folder);
}

static void same_answer_of(const char *name, int part, uint64_t least_preempted, int n_rounds)
{
    static world w;
    static const char source[] = "root ::= (\"Once there was \" [a-z]+ \". And then \")+ \"the end.\"\n";
    weft_error err = {0};
    weft_grammar *grammar = NULL;
    w.model = from_shared(name);
    w.adapters = NULL;
    w.part = part;
    if (weft_grammar_new(weft_model_tokenizer(w.model), WEFT_GRAMMAR_GBNF, source, sizeof source - 1, &grammar, &err))
        fail_msg("%s", err.message);
    w.grammar = grammar;
    same_answers(&w, n_rounds);
    assert_true(w.n_preempted >= least_preempted);
    weft_grammar_free(&grammar);
    weft_model_close(&w.model);
}

static void same_answer_of_stories(void **state)
{
    (void)state;
    same_answer_of("stories260K", 1, CLAIMS_REPEATED(1, 0, 0), N_ROUNDS_OF_MATERIAL);
}

/* What is like it, and not the same: of most drafts some guesses are right. */
static void same_answer_by_a_coarser_model(void **state)
{
    static const char whole[] = "models/alderbrook.gguf";
    static const char source[] = "root ::= (\"Once there was \" [a-z]+ \". And then \")+ \"the end.\"\n";
    static world w;
    char path[64];
    weft_error err = {0};
    weft_quantize_result r;
    weft_grammar *grammar = NULL;
    (void)state;
    if (!CLAIMS_REPEATED(1, 1, 0) && !claims_sweeps()) {
        print_message("left out: threads that guess by a model are watched above, and with a grammar on stories260K\n");
        return;
    }
    weft_engine_params p = fitting(&w);
    w.model = open_model(whole);
    assert_non_null(mkdtemp(strcpy(folder, "/tmp/weft-drafts-XXXXXX")));
    snprintf(path, sizeof path, "%s/coarse.gguf", folder);
    if (weft_quantize(whole, path, "Q3_K_S", NULL, &r, &err)) fail_msg("%s", err.message);
    weft_model *small = open_model(path);
    if (weft_grammar_new(weft_model_tokenizer(w.model), WEFT_GRAMMAR_GBNF, source, sizeof source - 1, &grammar, &err))
        fail_msg("%s", err.message);
    w.grammar = grammar;
    p.n_slots = 1;
    for (int round = 0; round < CLAIMS_REPEATED(CLAIMS_SWEPT(1, 10), 1, 1); round++) {
        w.n = make_asks(w.all, w.form, round, grammar, 0) / CLAIMS_SWEPT(2, 1);
        weft_engine *e = open_engine(w.model, &p);
        run_alone(e, w.all, w.first, w.n);
        close_engine(&e);
        same_answers_by_model(&w, "a coarser model", small, 10);
    }
    guessed_in_each(&w);
    weft_model_close(&small);
    weft_grammar_free(&grammar);
    weft_model_close(&w.model);
    remove_folder(folder);
}

static void same_answer_with_windows(void **state)
{
    (void)state;
    same_answer_of("tiny-gemma3.f16", CLAIMS_SWEPT(3, 1), 0, N_ROUNDS_OF_MATERIAL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_answer_whoever_guesses),
        cmocka_unit_test(same_answer_by_a_coarser_model),
    };
    const struct CMUnitTest material[] = {
        cmocka_unit_test(same_answer_of_stories),
        cmocka_unit_test(same_answer_with_windows),
    };
    return claims_status(claims_material(argc, argv) ? cmocka_run_group_tests(material, NULL, NULL)
                                                     : cmocka_run_group_tests(tests, NULL, NULL));
}
