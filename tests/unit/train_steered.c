// SPDX-License-Identifier: Apache-2.0
/* train_steered.c: weft_train where it ends by a criterion, keeps its best step, tries scales, mixes neighbours in and
 * goes on with an adapter: what the result is of, and that stops in between change nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit/fixture.h"

#include "adapt/adapt.h"
#include "folder.h"
#include "weft/train.h"

#define Q(prompt, completion) "{\"prompt\": \"" prompt "\", \"completion\": \"" completion "\"}\n"

static const struct {
    const char *name, *bytes;
} files[] = {
    {"text.txt", "the fox and the owl sat by the mill<|endoftext|>the owl sat there<|endoftext|>"},
    {"edit.jsonl", Q("who sat?", " the owl")},
    {"near.jsonl", Q("where?", " the mill") Q("when?", " the fox") Q("why?", " there")},
    {"other.jsonl", Q("the fox and", " the mill sat") Q("the owl", " and the fox")},
    {"long.jsonl", Q("who?", " the fox and the owl sat by the mill and the owl sat there and there and there")},
};
enum { N_FILES = sizeof files / sizeof *files, N_STEPS = 24 };

static char names[N_FILES][128];

static int begin(void **state)
{
    (void)state;
    weft_vocab_params p;
    weft_vocab_result r;
    if (folder_make("v.gguf")) return -1;
    for (int i = 0; i < N_FILES; i++) {
        snprintf(names[i], sizeof names[i], "%s/%s", folder, files[i].name);
        FILE *f = fopen(names[i], "w");
        if (!f) return -1;
        fputs(files[i].bytes, f);
        fclose(f);
    }
    weft_vocab_params_default(&p);
    p.n_vocab = 280;
    return (int)weft_train_tokenizer((const char *const[]){names[0]}, 1, path, &p, &r, NULL);
}

static const char *in_folder(const char *run, const char *name)
{
    static char text[4][192];
    static int at;
    snprintf(text[at = (at + 1) % 4], sizeof text[0], "%s/%s%s%s", folder, run, name ? "/" : "", name ? name : "");
    return text[at];
}

static void forget(const char *run)
{
    static const char *const written[] = {"checkpoint.gguf", "model.gguf", "adapter.gguf", "loss.jsonl", "loss.svg"};
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) unlink(in_folder(run, written[i]));
    rmdir(in_folder(run, NULL));
}

static int end(void **state)
{
    forget("base");
    for (int i = 0; i < N_FILES; i++) unlink(names[i]);
    return remove_folder(state);
}

/* ---- runs ---- */

typedef struct told {
    weft_train_event planned, last, ended;
    int64_t stop_at; /* the step after which it is to stop; -1: never */
    double heldout[N_STEPS + 1];
    int64_t n_samples, n_scaled;
    char sample[200];
} told;

static int tell(void *arg, const weft_train_event *e)
{
    told *t = arg;
    if (e->kind == WEFT_TRAIN_PLANNED) t->planned = *e;
    if (e->kind == WEFT_TRAIN_MEASURED || e->kind == WEFT_TRAIN_STEP) {
        t->last = *e;
        if (e->step <= N_STEPS) t->heldout[e->step] = e->heldout;
    }
    if (e->kind == WEFT_TRAIN_ENDED) t->ended = *e;
    if (e->kind == WEFT_TRAIN_SCALED) t->n_scaled++;
    if (e->kind == WEFT_TRAIN_SAMPLE) {
        t->n_samples++;
        snprintf(t->sample, sizeof t->sample, "%s>%s", e->prompt, e->text);
    }
    return e->kind == WEFT_TRAIN_STEP && e->step == t->stop_at;
}

/* A base that knows the text a little. */
static const char *base(void)
{
    static char model[192];
    weft_train_params p;
    weft_error err = {0};
    if (*model) return model;
    weft_train_params_default(&p);
    p.tokenizer = path;
    p.n_layers = 2;
    p.d_model = 32;
    p.d_ff = 64;
    p.n_heads = p.n_kv_heads = 2;
    p.n_threads = 1;
    p.n_ctx = 24;
    p.batch = 64;
    p.n_steps = 60;
    p.lr = 1e-2f;
    p.data = (const char *const[]){names[0], NULL};
    p.out = in_folder("base", NULL);
    if (weft_train(&p, &err)) fail_msg("%s", err.message);
    snprintf(model, sizeof model, "%s", in_folder("base", "model.gguf"));
    return model;
}

static const char *const *one(int i)
{
    static const char *lists[N_FILES][2];
    lists[i][0] = names[i];
    return lists[i];
}

enum { TEXT, EDIT, NEAR, OTHER, LONG };

static weft_train_params adapter(const char *run)
{
    static char outs[4][192];
    static int at;
    weft_train_params p;
    weft_train_params_default(&p);
    p.base = base();
    p.lora_rank = 4;
    p.lora_alpha = 4;
    p.n_threads = 1;
    p.n_ctx = 24;
    p.batch = 64;
    p.n_steps = N_STEPS;
    p.n_warmup = 0;
    p.schedule = WEFT_TRAIN_CONSTANT;
    p.lr = 2e-2f;
    p.data = one(EDIT);
    snprintf(outs[at = (at + 1) % 4], sizeof outs[0], "%s", in_folder(run, NULL));
    p.out = outs[at];
    return p;
}

static weft_status train(weft_train_params *p, told *t, weft_error *err)
{
    *t = (told){.stop_at = t->stop_at};
    p->report = tell;
    p->arg = t;
    return weft_train(p, err);
}

static void train_well(weft_train_params *p, told *t)
{
    weft_error err = {0};
    t->stop_at = -1;
    if (train(p, t, &err)) fail_msg("%s", err.message);
}

static void assert_same_files(const char *a, const char *b)
{
    static char bytes[2][1 << 20];
    size_t n[2];
    const char *const both[] = {in_folder(a, "adapter.gguf"), in_folder(b, "adapter.gguf")};
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(both[i], "rb");
        if (!f) fail_msg("%s is not there", both[i]);
        n[i] = fread(bytes[i], 1, sizeof bytes[i], f);
        fclose(f);
    }
    assert_int_equal(n[0], n[1]);
    if (memcmp(bytes[0], bytes[1], n[0])) fail_msg("%s and %s differ", a, b);
}

/* Stops after every `every` steps and goes on, to the end. */
static void train_in_parts(weft_train_params *p, told *t, int64_t every)
{
    weft_error err = {0};
    weft_status st = WEFT_CANCELLED;
    for (t->stop_at = every; st == WEFT_CANCELLED; t->stop_at += every, p->resume = 1) {
        assert_true(t->stop_at < 10 * N_STEPS);
        st = train(p, t, &err);
    }
    if (st) fail_msg("%s", err.message);
    p->resume = 0;
}

/* It ends at the first step behind which the answer comes out, and is of that step. */
static void it_stops_on_answers(void **state)
{
    (void)state;
    told t = {0}, other = {0};
    weft_train_params p = adapter("a");
    p.answers = one(EDIT);
    p.stop_on = WEFT_TRAIN_STOP_ANSWERS;
    train_well(&p, &t);
    assert_int_equal(t.last.n_answers, 1);
    assert_int_equal(t.last.answers_right, 1);
    assert_in_range(t.last.step, 2, N_STEPS - 1);
    assert_int_equal(t.ended.best_step, t.last.step);
    p = adapter("b");
    p.n_steps = t.last.step; /* so many steps without a criterion */
    p.answers = one(EDIT);
    train_well(&p, &other);
    assert_int_equal(other.last.answers_right, 1);
    assert_same_files("a", "b");
    forget("b");
    p.n_steps--;
    train_well(&p, &other);
    assert_int_equal(other.last.answers_right, 0);
    forget("b");
    p = adapter("b");
    p.answers = one(EDIT);
    p.stop_on = WEFT_TRAIN_STOP_ANSWERS;
    train_in_parts(&p, &other, 1);
    assert_same_files("a", "b");
    p.resume = 1; /* a run that has ended has ended */
    train_well(&p, &other);
    assert_int_equal(other.planned.step, t.last.step);
    assert_same_files("a", "b");
    forget("b");
    forget("a");
}

/* The result has the weights of the step whose held-out loss was least, which is not the last. */
static void the_best_step_is_kept(void **state)
{
    (void)state;
    told t = {0}, other = {0};
    weft_train_params p = adapter("a");
    p.heldout = one(LONG);
    p.heldout_every = 1;
    p.keep_best = 1;
    train_well(&p, &t);
    int64_t best = 0;
    for (int64_t i = 1; i <= N_STEPS; i++)
        if (t.heldout[i] < t.heldout[best]) best = i;
    if (best < 1 || best >= N_STEPS)
        for (int64_t i = 0; i <= N_STEPS; i++) fprintf(stderr, "%d %g\n", (int)i, t.heldout[i]);
    assert_in_range(best, 1, N_STEPS - 1);
    assert_int_equal(t.ended.best_step, best);
    p = adapter("b");
    p.n_steps = best;
    train_well(&p, &other);
    assert_same_files("a", "b");
    forget("b");
    p = adapter("b");
    p.heldout = one(LONG);
    p.heldout_every = 1;
    p.keep_best = 1;
    train_in_parts(&p, &other, 5);
    assert_same_files("a", "b");
    forget("b");
    p.stop_on = WEFT_TRAIN_STOP_HELDOUT;
    p.patience = 2;
    train_well(&p, &other);
    assert_true(other.last.step < N_STEPS);
    assert_true(other.last.step == other.ended.best_step + 2);
    forget("b");
    forget("a");
}

/* The first scale of the list that fits is the result's; where none does there is none, and other scales may follow. */
static void scales_are_tried(void **state)
{
    (void)state;
    told t = {0}, other = {0};
    weft_error err = {0};
    weft__adapt *a;
    weft_train_params p = adapter("a");
    p.answers = one(EDIT);
    p.stop_on = WEFT_TRAIN_STOP_ANSWERS;
    p.scales = (const float[]){0, 0.01f};
    p.n_scales = 2;
    t.stop_at = -1;
    assert_int_equal(train(&p, &t, &err), WEFT_STATE);
    assert_non_null(strstr(err.message, "at none of the scales"));
    assert_int_equal(t.n_scaled, 2);
    assert_int_not_equal(access(in_folder("a", "adapter.gguf"), F_OK), 0);
    p.resume = 1;
    p.scales = (const float[]){0, 1.02f, 1};
    p.n_scales = 3;
    train_well(&p, &other);
    assert_int_equal(other.n_scaled, 2);
    assert_true(fabs(other.ended.scale - 1.02) < 1e-6);
    assert_int_equal(weft__adapt_open(in_folder("a", "adapter.gguf"), NULL, UINT64_MAX, &a, NULL), WEFT_OK);
    assert_true(a->pairs[0].scale == 1.02f);
    weft__adapt_close(&a);
    forget("a");
}

/* Answers that do not come out before the first step are not asked to stay; those that do are counted at the end. */
static void answers_are_asked_to_stay(void **state)
{
    (void)state;
    told t = {0};
    weft_train_params p = adapter("a");
    p.data = p.answers = one(NEAR);
    p.stop_on = WEFT_TRAIN_STOP_ANSWERS;
    p.n_steps = 400;
    train_well(&p, &t);
    assert_int_equal(t.last.answers_right, 3);
    p = adapter("b"); /* which begins with one that says what NEAR says */
    char first[192];
    snprintf(first, sizeof first, "%s", in_folder("a", "adapter.gguf"));
    p.init_adapter = first;
    p.lora_rank = 0;
    p.lora_alpha = 0;
    p.keep = one(NEAR);
    p.answers = one(EDIT);
    p.stop_on = WEFT_TRAIN_STOP_ANSWERS;
    p.n_steps = 400;
    train_well(&p, &t);
    assert_int_equal(t.planned.n_keep, 3);
    assert_int_equal(t.planned.n_keep_lost, 0);
    assert_int_equal(t.last.answers_right, 1);
    assert_in_range(t.last.keep_right, 0, 2); /* one record alone bleeds */
    forget("b");
    p.neighbors = p.answers = one(NEAR);
    p.neighbor_ratio = 3;
    p.n_steps = 5;
    p.stop_on = WEFT_TRAIN_STOP_NEVER;
    train_well(&p, &t);
    assert_int_equal(t.planned.n_segments, 4);
    assert_int_equal(t.last.keep_right, t.last.answers_right);
    forget("b");
    p = adapter("b");
    p.keep = one(NEAR);
    p.n_steps = 1;
    train_well(&p, &t);
    assert_int_equal(t.planned.n_keep, 0);
    assert_int_equal(t.planned.n_keep_lost, 3);
    forget("b");
    forget("a");
}

/* Everything at once, stopped after each step, gives the bits of one run; with another adapter it is another run. */
static void stops_change_nothing(void **state)
{
    (void)state;
    static const char *const prompts[] = {"the owl", NULL};
    told t = {0}, other = {0};
    weft_error err = {0};
    weft_train_params p = adapter("first");
    p.n_steps = 3;
    train_well(&p, &t);
    char first[192];
    snprintf(first, sizeof first, "%s", in_folder("first", "adapter.gguf"));
    for (int part = 0; part < 2; part++) {
        p = adapter(part ? "b" : "a");
        p.init_adapter = first;
        p.neighbors = one(NEAR);
        p.neighbor_ratio = 1.5f;
        p.heldout = one(OTHER);
        p.heldout_every = 2;
        p.keep_best = 1;
        p.stop_on = WEFT_TRAIN_STOP_HELDOUT;
        p.keep = one(NEAR);
        p.batch = 24;
        p.sample_prompts = prompts;
        p.sample_every = 4;
        p.sample_tokens = 5;
        if (part) train_in_parts(&p, &other, 1);
        else train_well(&p, &t);
    }
    assert_same_files("a", "b");
    assert_int_equal(t.ended.best_step, other.ended.best_step);
    assert_true(t.n_samples >= 2);
    assert_memory_equal(t.sample, "the owl>", 8);
    p.init_adapter = NULL;
    p.resume = 1;
    assert_int_equal(train(&p, &t, &err), WEFT_STATE);
    forget("a");
    forget("b");
    forget("first");
}

static void what_cannot_be_steered_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 11; i++) {
        static const char *const words[] = {"held-out data",    "held-out data",       "answers needs",
                                            "choose one",       "known by answers",    "needs a base",
                                            "a scale of",       "neighbours for each", "longer than 24",
                                            "nothing numbered", "samples of 0"};
        const float scale = i == 6 ? NAN : 1;
        const char *const prompts[] = {"x", NULL};
        told t = {.stop_at = -1};
        weft_error err = {0};
        weft_train_params p = adapter("a");
        if (i == 0) p.keep_best = 1;
        if (i == 1) p.stop_on = WEFT_TRAIN_STOP_HELDOUT;
        if (i == 2) p.stop_on = WEFT_TRAIN_STOP_ANSWERS;
        if (i == 3) p.stop_on = WEFT_TRAIN_STOP_ANSWERS, p.answers = one(EDIT), p.keep_best = 1, p.heldout = one(OTHER);
        if (i >= 4 && i <= 6) p.scales = &scale, p.n_scales = 1;
        if (i == 5) p.lora_rank = 0, p.answers = one(EDIT);
        if (i == 6) p.answers = one(EDIT);
        if (i == 7) p.neighbors = one(NEAR), p.neighbor_ratio = -1;
        if (i == 8) p.answers = one(LONG);
        if (i == 9) p.stop_on = 7;
        if (i == 10) p.sample_prompts = prompts, p.sample_tokens = 0;
        if (train(&p, &t, &err) != WEFT_ARGUMENT) fail_msg("%d: '%s'", i, err.message);
        if (!strstr(err.message, words[i])) fail_msg("%d: '%s' does not say '%s'", i, err.message, words[i]);
        assert_int_not_equal(access(in_folder("a", NULL), F_OK), 0);
    }
}

/* ---- a look at the texts ---- */

typedef struct looked {
    int n;
    char text[2][300];
} looked;

static int look(void *arg, const weft_train_shown *x)
{
    looked *l = arg;
    size_t at = 0;
    for (int32_t i = 0; i < x->n; i++)
        at += (size_t)snprintf(l->text[l->n] + at, sizeof l->text[0] - at, "%s%.*s%s", x->weights[i] != 0 ? "[" : "",
                               (int)(x->at[i + 1] - x->at[i]), x->text + x->at[i], x->weights[i] != 0 ? "]" : "");
    return ++l->n == 2;
}

static void texts_are_shown_as_they_are_learned(void **state)
{
    (void)state;
    looked l = {0};
    weft_error err = {0};
    weft_train_params p = adapter("a");
    p.data = one(NEAR);
    p.out = NULL;
    if (weft_train_show(&p, 1, look, &l, &err)) fail_msg("%s", err.message);
    assert_int_equal(l.n, 1);
    assert_memory_equal(l.text[0], "<|startoftext|>", 15);
    assert_non_null(strstr(l.text[0], "where?["));
    assert_non_null(strstr(l.text[0], "[<|endoftext|>]"));
    if (weft_train_show(&p, 10, look, &l, &err)) fail_msg("%s", err.message);
    assert_int_equal(l.n, 2); /* the caller wanted no more */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_stops_on_answers),
        cmocka_unit_test(the_best_step_is_kept),
        cmocka_unit_test(scales_are_tried),
        cmocka_unit_test(answers_are_asked_to_stay),
        cmocka_unit_test(stops_change_nothing),
        cmocka_unit_test(what_cannot_be_steered_is_refused),
        cmocka_unit_test(texts_are_shown_as_they_are_learned),
    };
    return cmocka_run_group_tests_name("train_steered", tests, begin, end);
}
