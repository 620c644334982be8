// SPDX-License-Identifier: Apache-2.0
/* eval_public.c: what weft/eval.h measures is what logits say: perplexity of ids and of text, the divergence from the
 * model without its adapters and from a file, scores of a task by the names of adapters; and what is wrong is named. */
#include "unit/fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit/folder.h"
#include "weft/eval.h"
#include "weft/weft.h"

#define MODEL "models/alderbrook.gguf"
#define PIRATE "models/pirate.gguf"
#define STORY                                                                                                          \
    "The miller lives by the river. He has a cat and a dog. The baker is at the inn, and the smith is in the mill. "
#define LONG STORY STORY STORY
enum { CTX = 32, MOST = 256 };

static weft_model *model;
static int32_t ids[MOST];
static size_t n_ids;
static weft_adapter_file *pirate;

static weft_perplexity_result measured(const weft_perplexity_text *texts, int n, const weft_perplexity_params *p)
{
    weft_perplexity_result r = {.size = sizeof r};
    weft_error err = {0};
    if (weft_perplexity(model, texts, n, p, &r, &err)) fail_msg("%s", err.message);
    return r;
}

/* -log p of a token, in double. */
static double surprise(const float *logits, int32_t n_vocab, int32_t token)
{
    double most = -1e30, sum = 0;
    for (int32_t i = 0; i < n_vocab; i++) most = logits[i] > most ? (double)logits[i] : most;
    for (int32_t i = 0; i < n_vocab; i++) sum += exp((double)logits[i] - most);
    return most + log(sum) - (double)logits[token];
}

/* The sum of -log p of row[from + 1 .. n], as a session's logits have it. */
static double sum_of(const int32_t *row, const int32_t *next, int32_t from, int32_t n)
{
    weft_model_info info = {.size = sizeof info};
    weft_session *s = NULL;
    weft_error err = {0};
    double sum = 0;
    assert_int_equal(weft_model_describe(model, &info, NULL), WEFT_OK);
    float *logits = malloc((size_t)n * (size_t)info.n_vocab * sizeof *logits);
    assert_non_null(logits);
    if (weft_session_new(model, NULL, &s, &err) || weft_session_eval(s, row, n, 1, logits, &err))
        fail_msg("%s", err.message);
    for (int32_t i = from; i < n; i++)
        sum += surprise(logits + (size_t)i * (size_t)info.n_vocab, info.n_vocab, next[i]);
    weft_session_free(&s);
    free(logits);
    return sum;
}

static void texts_are_scored_from_their_first_token(void **state)
{
    (void)state;
    const weft_perplexity_text all[] = {
        {.tokens = ids, .n = 20}, {.tokens = ids + 20, .n = 1}, {.tokens = ids + 21, .n = 9}};
    weft_perplexity_params p;
    weft_perplexity_params_default(&p);
    p.form = WEFT_PERPLEXITY_TEXTS;
    p.n_ctx = CTX;
    const weft_perplexity_result r = measured(all, 3, &p);
    const double sum = sum_of(ids, ids + 1, 0, 19) + sum_of(ids + 21, ids + 22, 0, 8);
    assert_int_equal(r.n_chunks, 2);
    assert_int_equal(r.n_scored, 27);
    assert_int_equal(r.n_cut, 0);
    assert_true(fabs(r.nll.value - sum / 27) < 1e-5);
    assert_true(fabs(r.perplexity.value - exp(sum / 27)) < 1e-3);
    assert_true(isnan(r.kl.value) && isnan(r.kl_at[6]) && isnan(r.correlation));
    p.n_ctx = 10; /* and what does not fit is left out */
    const weft_perplexity_result cut = measured(all, 1, &p);
    assert_int_equal(cut.n_cut, 1);
    assert_int_equal(cut.n_scored, 10);
    assert_true(fabs(cut.nll.value - sum_of(ids, ids + 1, 0, 10) / 10) < 1e-5);
}

static void chunks_are_scored_as_llama_perplexity_does(void **state)
{
    (void)state;
    const weft_perplexity_text as_ids = {.tokens = ids, .n = n_ids}, as_text = {.text = LONG, .n = strlen(LONG)};
    weft_perplexity_params p;
    double sum = 0;
    const int32_t n = (int32_t)n_ids / CTX;
    weft_perplexity_params_default(&p);
    p.n_ctx = CTX;
    const weft_perplexity_result r = measured(&as_ids, 1, &p), text = measured(&as_text, 1, &p);
    for (int32_t i = 0; i < n; i++) {
        int32_t row[CTX];
        memcpy(row, ids + i * CTX, sizeof row);
        row[0] = ids[0]; /* BOS */
        sum += sum_of(row, ids + i * CTX + 1, CTX / 2, CTX - 1);
    }
    assert_int_equal(r.n_chunks, n);
    assert_int_equal(r.n_scored, n * (CTX - 1 - CTX / 2));
    assert_true(fabs(r.nll.value - sum / (double)r.n_scored) < 1e-5);
    assert_true(r.nll.value == text.nll.value && r.n_scored == text.n_scored);
    p.n_chunks = 2;
    assert_int_equal(measured(&as_ids, 1, &p).n_chunks, 2);
}

static void divergence_is_from_the_model_alone_or_from_a_file(void **state)
{
    (void)state;
    const weft_perplexity_text text = {.tokens = ids, .n = n_ids};
    const weft_adapter_use use = {pirate, 1};
    weft_perplexity_params p, q;
    weft_perplexity_params_default(&p);
    p.n_ctx = CTX;
    q = p;
    p.base = model;
    const weft_perplexity_result same = measured(&text, 1, &p);
    assert_true(fabs(same.kl.value) < 1e-9 && same.same_top.value == 1 && fabs(same.difference.value) < 1e-9);
    p.adapters = &use;
    p.n_adapters = 1;
    const weft_perplexity_result r = measured(&text, 1, &p), plain = measured(&text, 1, &q);
    assert_true(r.kl.value > 0.01 && r.kl.error > 0 && r.same_top.value < 1);
    assert_true(r.base_perplexity.value == plain.perplexity.value);
    assert_true(r.perplexity.value > r.base_perplexity.value && r.log_ratio.value > 0);
    for (int i = 1; i < WEFT_QUANTILES; i++) assert_true(r.kl_at[i] >= r.kl_at[i - 1]);
    assert_true(r.kl_at[0] >= -1e-6 && r.kl_at[12] > r.kl.value);
    /* the same from a file, whose log-probabilities are rounded */
    q.save_base = path;
    assert_true(measured(&text, 1, &q).perplexity.value == plain.perplexity.value);
    p.base = NULL;
    p.base_file = path;
    const weft_perplexity_result file = measured(NULL, 0, &p);
    assert_int_equal(file.n_scored, r.n_scored);
    assert_int_equal(file.n_ctx, CTX);
    assert_true(file.perplexity.value == r.perplexity.value);
    assert_true(fabs(file.kl.value - r.kl.value) < 1e-3);
    assert_int_equal(files_in_folder(), 1);
}

static int told_after_two(void *arg, const weft_perplexity_event *e)
{
    int *n = arg;
    assert_true(e->n_scored > 0 && e->nll_sum > 0 && e->nll_squares > 0 && e->text == 0);
    assert_int_equal(e->so_far->n_chunks, ++*n);
    assert_true(e->fraction > 0 && e->fraction <= 1);
    return *n == 2;
}

static void a_reading_that_is_stopped_tells_what_it_read(void **state)
{
    (void)state;
    const weft_perplexity_text text = {.tokens = ids, .n = n_ids};
    weft_perplexity_params p;
    weft_perplexity_result r = {.size = sizeof r};
    weft_error err = {0};
    int n = 0;
    weft_perplexity_params_default(&p);
    p.n_ctx = 16;
    p.report = told_after_two;
    p.arg = &n;
    assert_int_equal(weft_perplexity(model, &text, 1, &p, &r, &err), WEFT_CANCELLED);
    assert_int_equal(r.n_chunks, 2);
    assert_true(isfinite(r.perplexity.value));
}

typedef struct refusal {
    weft_perplexity_params p;
    weft_perplexity_text texts[2];
    int n;
    const char *says;
} refusal;

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const int32_t strange[] = {1, -1, 2};
    weft_model *other = NULL;
    weft_error err = {0};
    if (weft_model_synthetic("tinyllama-1.1b", WEFT_Q4_0,
                             &(weft_model_params){.size = sizeof(weft_model_params), .outline = 1}, &other, &err))
        fail_msg("%s", err.message);
    const weft_perplexity_text good = {.tokens = ids, .n = n_ids}, three = {.tokens = ids, .n = 3};
    const refusal cases[] = {
        {{.form = 7}, {good}, 1, "form"},
        {{.n_ctx = -1}, {good}, 1, "n_ctx"},
        {{.n_ctx = 2}, {good}, 1, "n_ctx"},
        {{.n_chunks = -1}, {good}, 1, "n_chunks"},
        {{.n_adapters = 1}, {good}, 1, "n_adapters"},
        {{.n_ctx = CTX}, {good}, 0, "there is no text"},
        {{.n_ctx = CTX}, {three}, 1, "3 tokens; at least two chunks of 32 are needed"},
        {{.n_ctx = CTX}, {good, three}, 2, "text 2: 3 tokens"},
        {{.n_ctx = CTX}, {{.text = STORY, .n = 9}}, 1, "at least two chunks of 32 are needed"},
        {{.form = WEFT_PERPLEXITY_TEXTS}, {{.tokens = strange, .n = 3}}, 1, "token -1 is not in the vocabulary"},
        {{.form = WEFT_PERPLEXITY_TEXTS}, {{.tokens = ids, .n = 1}}, 1, "no text of two tokens or more"},
        {{.form = WEFT_PERPLEXITY_TEXTS, .save_base = "x"}, {good}, 1, "files of bases"},
        {{.base_file = "x", .base = model}, {good}, 0, "base_file stands alone"},
        {{.base_file = "x"}, {good}, 1, "give no other"},
        {{.base_file = "absent"}, {good}, 0, "absent: No such file"},
        {{.n_ctx = CTX, .base = other}, {good}, 1, "the base has a vocabulary of 32000 tokens"},
        {{.n_ctx = 1 << 20}, {good}, 1, "chunks of 1048576"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_perplexity_params p = cases[i].p;
        weft_perplexity_result r = {.size = sizeof r};
        p.size = sizeof p;
        p.kv_dtype = WEFT_F16;
        err = (weft_error){0};
        const size_t live = weft__alloc_live();
        if (!weft_perplexity(model, cases[i].texts, cases[i].n, &p, &r, &err)) fail_msg("taken: %s", cases[i].says);
        if (!strstr(err.message, cases[i].says)) fail_msg("'%s' lacks '%s'", err.message, cases[i].says);
        assert_int_equal(r.n_scored, 0);
        assert_int_equal(weft__alloc_live(), live);
    }
    weft_model_close(&other);
}

static int reads_once(void *arg)
{
    const weft_perplexity_text text = {.text = LONG, .n = strlen(LONG)};
    weft_perplexity_params p = *(weft_perplexity_params *)arg;
    weft_perplexity_result r = {.size = sizeof r};
    const weft_status st = weft_perplexity(model, &text, 1, &p, &r, NULL);
    assert_true(st == WEFT_OK || st == WEFT_NO_MEMORY);
    return st == WEFT_OK;
}

static void without_memory_nothing_stays_behind(void **state)
{
    (void)state;
    const weft_adapter_use use = {pirate, 1};
    weft_perplexity_params p;
    weft_perplexity_params_default(&p);
    p.n_ctx = 16;
    p.n_chunks = 2;
    p.base = model;
    p.adapters = &use;
    p.n_adapters = 1;
    assert_int_equal(reads_once(&p), 1); /* what the model keeps is there */
    assert_true(fail_some(reads_once, &p, 17) > 20);
    p.form = WEFT_PERPLEXITY_TEXTS;
    p.n_ctx = MOST;
    p.base = NULL;
    p.n_adapters = 0;
    assert_true(fail_some(reads_once, &p, 17) > 10);
}

/* ---- tasks ---- */

#define ASKED(name, answer)                                                                                            \
    "{\"prompt\": \"Where does " name " live? In\", \"choices\": [\" the mill\", \" the inn\", \" a tree\"], "         \
    "\"answer\": " answer "}\n"
static const char TASK[] = ASKED("Anna", "0") ASKED("Bella", "1") ASKED("Carl", "0") ASKED("Dora", "2");

static void put_file(const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static weft_engine *engine_with(uint32_t flags)
{
    weft_engine_params p;
    weft_engine *e = NULL;
    weft_error err = {0};
    weft_engine_params_default(&p);
    p.n_slots = 4;
    p.n_ctx = 128;
    if (weft_engine_new(model, &p, &e, &err) || weft_engine_adapter_add(e, "pirate", PIRATE, 0.5F, flags, &err))
        fail_msg("%s", err.message);
    return e;
}

static weft_score first_of(weft_engine *e, const weft_task *task, const weft_eval_params *p, weft_scores **scores)
{
    weft_score score = {.size = sizeof score};
    weft_error err = {0};
    if (weft_eval_task(e, task, p, scores, &err) || weft_scores_get(*scores, 0, &score, &err))
        fail_msg("%s", err.message);
    return score;
}

static void tasks_are_asked_and_scored(void **state)
{
    (void)state;
    weft_task *task = NULL;
    weft_task_params tp;
    weft_task_info info = {.size = sizeof info};
    weft_scores_info sum = {.size = sizeof sum};
    weft_scores *scores = NULL;
    weft_eval_params p;
    weft_error err = {0};
    const char *text = NULL;
    size_t n = 0;
    put_file(TASK);
    weft_task_params_default(&tp);
    tp.form = "jsonl";
    if (weft_task_open(path, &tp, &task, &err)) fail_msg("%s", err.message);
    assert_int_equal(weft_task_describe(task, &info, &err), WEFT_OK);
    assert_int_equal(info.output, WEFT_TASK_CHOICE);
    assert_int_equal(info.n_documents, 4);
    assert_int_equal(info.judged_elsewhere, 0);
    weft_engine *e = engine_with(WEFT_ADAPTER_LAZY);
    assert_ptr_equal(weft_engine_model(e), model);
    weft_eval_params_default(&p);
    weft_score score = first_of(e, task, &p, &scores);
    assert_string_equal(score.metric, "acc");
    assert_true(score.is_rate && !score.has_baseline && score.low <= score.value && score.value <= score.high);
    assert_int_equal(weft_scores_describe(scores, &sum, &err), WEFT_OK);
    assert_int_equal(sum.n_documents, 4);
    assert_true(sum.n_tokens > 4 && !sum.n_resumed && !sum.n_baseline);
    assert_int_equal(weft_scores_get(scores, sum.n_scores, &score, &err), WEFT_ARGUMENT);
    assert_int_equal(weft_scores_compare(scores, MODEL, &err), WEFT_FORMAT); /* and it stays without one */
    assert_int_equal(weft_scores_write(scores, WEFT_SCORES_JSON, &text, &n, &err), WEFT_OK);
    assert_true(strlen(text) == n && strstr(text, "\"metric\": \"acc\"") && !strstr(text, "baseline"));
    assert_int_equal(weft_scores_write(scores, WEFT_SCORES_SVG, &text, &n, &err), WEFT_OK);
    assert_non_null(strstr(text, "<svg"));
    assert_int_equal(weft_scores_write(scores, 3, &text, &n, &err), WEFT_ARGUMENT);
    weft_scores_free(&scores);
    p.limit = 2;
    (void)first_of(e, task, &p, &scores);
    assert_int_equal(weft_scores_describe(scores, &sum, &err), WEFT_OK);
    assert_int_equal(sum.n_documents, 2);
    weft_scores_free(&scores);
    weft_engine_free(&e);
    weft_task_close(&task);
}

/* The samples' first line tells what the adapters hold, by whatever name or number they are meant, ready or not. */
static void samples_tell_adapters_apart_by_what_they_hold(void **state)
{
    (void)state;
    char samples[160];
    weft_task *task = NULL;
    weft_scores *scores = NULL;
    weft_scores_info sum = {.size = sizeof sum};
    weft_eval_params p;
    weft_error err = {0};
    const weft_request_adapter named = {.name = "pirate", .scale = NAN}, numbered = {.scale = 0.5F},
                               other = {.name = "pirate", .scale = 1}, none = {.scale = 1, .index = 9};
    put_file(TASK);
    snprintf(samples, sizeof samples, "%s.samples", path);
    if (weft_task_open(
            path,
            &(weft_task_params){.size = sizeof(weft_task_params), .n_fewshot = -1, .form = "jsonl", .temperature = -1},
            &task, &err))
        fail_msg("%s", err.message);
    weft_engine *lazy = engine_with(WEFT_ADAPTER_LAZY), *ready = engine_with(0);
    weft_eval_params_default(&p);
    p.samples = samples;
    p.adapters = &named;
    p.n_adapters = 1;
    const weft_score first = first_of(lazy, task, &p, &scores);
    weft_scores_free(&scores);
    p.adapters = &numbered;
    const weft_score again = first_of(ready, task, &p, &scores);
    assert_true(first.value == again.value);
    assert_int_equal(weft_scores_describe(scores, &sum, &err), WEFT_OK);
    assert_int_equal(sum.n_resumed, 4);
    assert_int_equal(weft_scores_compare(scores, samples, &err), WEFT_OK);
    weft_score paired = {.size = sizeof paired};
    assert_int_equal(weft_scores_get(scores, 0, &paired, &err), WEFT_OK);
    assert_true(paired.has_baseline && paired.difference == 0 && paired.p == 1 && paired.is_exact);
    assert_int_equal(weft_scores_compare(scores, samples, &err), WEFT_STATE);
    weft_scores_free(&scores);
    p.adapters = &other;
    assert_int_equal(weft_eval_task(ready, task, &p, &scores, &err), WEFT_EXISTS);
    assert_null(scores);
    p.adapters = &none;
    assert_int_equal(weft_eval_task(ready, task, &p, &scores, &err), WEFT_NOT_FOUND);
    unlink(samples);
    weft_engine_free(&ready);
    weft_engine_free(&lazy);
    weft_task_close(&task);
}

/* Pairs that ended early are no pairs. */
static void a_baseline_of_fewer_documents_is_none(void **state)
{
    (void)state;
    char samples[160];
    weft_task *task = NULL;
    weft_scores *scores = NULL;
    weft_scores_info sum = {.size = sizeof sum};
    weft_eval_params p;
    weft_error err = {0};
    const weft_task_params tp = {.size = sizeof tp, .n_fewshot = -1, .form = "jsonl", .temperature = -1};
    put_file(TASK);
    snprintf(samples, sizeof samples, "%s.samples", path);
    if (weft_task_open(path, &tp, &task, &err)) fail_msg("%s", err.message);
    weft_engine *e = engine_with(0);
    weft_eval_params_default(&p);
    p.samples = samples;
    p.limit = 2;
    (void)first_of(e, task, &p, &scores);
    weft_scores_free(&scores);
    weft_score score = first_of(e, task, NULL, &scores);
    assert_int_equal(weft_scores_compare(scores, samples, &err), WEFT_FORMAT);
    assert_non_null(strstr(err.message, "2 of the 4 documents"));
    assert_int_equal(weft_scores_describe(scores, &sum, &err), WEFT_OK);
    assert_int_equal(sum.n_baseline, 0);
    assert_int_equal(weft_scores_get(scores, 0, &score, &err), WEFT_OK);
    assert_false(score.has_baseline);
    p.limit = 0; /* and when that run has been finished, it is one */
    weft_scores *whole = NULL;
    (void)first_of(e, task, &p, &whole);
    weft_scores_free(&whole);
    assert_int_equal(weft_scores_compare(scores, samples, &err), WEFT_OK);
    assert_int_equal(weft_scores_get(scores, 0, &score, &err), WEFT_OK);
    assert_true(score.has_baseline && score.difference == 0 && score.only_here == 0 && score.only_there == 0);
    weft_scores_free(&scores);
    unlink(samples);
    weft_engine_free(&e);
    weft_task_close(&task);
}

static int seen(void *arg, const weft_eval_shown *prompt)
{
    int *n = arg;
    assert_true(prompt->n_tokens > 0 && prompt->n_scored > 0 && prompt->n_context && prompt->n_continuation);
    assert_int_equal(prompt->document, *n / 3);
    return ++*n == 5;
}

static void prompts_are_shown_until_no_more_are_wanted(void **state)
{
    (void)state;
    weft_task *task = NULL;
    weft_error err = {0};
    int n = 0;
    put_file(TASK);
    const weft_task_params tp = {.size = sizeof tp, .n_fewshot = -1, .form = "jsonl", .temperature = -1};
    if (weft_task_open(path, &tp, &task, &err)) fail_msg("%s", err.message);
    weft_engine *e = engine_with(0);
    assert_int_equal(weft_eval_show(e, task, NULL, 4, seen, &n, &err), WEFT_OK);
    assert_int_equal(n, 5);
    weft_eval_params p;
    weft_eval_params_default(&p);
    p.multiturn = 1;
    assert_int_equal(weft_eval_show(e, task, &p, 1, seen, &n, &err), WEFT_ARGUMENT);
    weft_engine_free(&e);
    weft_task_close(&task);
    const weft_task_params wrong = {.size = sizeof wrong, .n_fewshot = -2, .temperature = -1};
    assert_int_equal(weft_task_open(path, &wrong, &task, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "n_fewshot"));
}

static int begin(void **state)
{
    weft_error err = {0};
    (void)state;
    if (folder_make("file") || weft_model_open(MODEL, NULL, &model, &err) ||
        weft_adapter_file_open(PIRATE, weft_model_file(model), &pirate, &err) ||
        weft_tokenize(weft_model_tokenizer(model), LONG, strlen(LONG), WEFT_TOKENIZE_BOS, ids, MOST, &n_ids, &err))
        fail_msg("%s", err.message);
    return 0;
}

static int end(void **state)
{
    weft_adapter_file_close(&pirate);
    weft_model_close(&model);
    return remove_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_scored_from_their_first_token),
        cmocka_unit_test(chunks_are_scored_as_llama_perplexity_does),
        cmocka_unit_test(divergence_is_from_the_model_alone_or_from_a_file),
        cmocka_unit_test(a_reading_that_is_stopped_tells_what_it_read),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(without_memory_nothing_stays_behind),
        cmocka_unit_test(tasks_are_asked_and_scored),
        cmocka_unit_test(samples_tell_adapters_apart_by_what_they_hold),
        cmocka_unit_test(a_baseline_of_fewer_documents_is_none),
        cmocka_unit_test(prompts_are_shown_until_no_more_are_wanted),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
