// SPDX-License-Identifier: Apache-2.0
/* bench_spec.c: weft bench --spec, --text and --draft: what guessing tokens ahead brings. Answers are generated once
 * without guesses; then again, predicted, with so many tokens of the prediction right as --spec says, each by chance;
 * and with what drafters guess themselves, of a text or with a draft model. Tokens per second are those while all of a
 * row's requests generate; medians. Guesses are counted in the last repetition. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "draft.h"
#include "kv_type.h"
#include "prompt.h"
#include "terminal.h"

/* Who guesses: nobody, a prediction, or the drafters. */
enum spec_who { SPEC_NOBODY, SPEC_PREDICTION, SPEC_DRAFTERS };

typedef struct spec_row {
    int32_t n_prompt, n_gen, n_seqs;
    enum spec_who who;
    double right; /* part of the prediction */
    double rate;  /* tokens per second */
    double ratio; /* of rates, to the row without guesses */
    int64_t n_drafted, n_accepted;
    uint64_t tried_at[WEFT_DRAFT_MAX], right_at[WEFT_DRAFT_MAX]; /* by place in the draft */
} spec_row;

typedef struct spec_bench {
    const bench_options *o;
    weft_model *model, *draft;
    weft_engine *engines[3]; /* by who guesses */
    int32_t *text;           /* [n_text] tokens of --text; NULL: prompts are of any tokens */
    size_t n_text;
    int32_t n_vocab;
    int32_t *answers; /* [n_seqs, n_gen] of the row at hand, as they are without guesses */
} spec_bench;

/* The same numbers on every machine. */
static uint32_t spec_mix(uint32_t a, uint32_t b)
{
    uint64_t x = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(x >> 32);
}

/* The answer with each token wrong by chance. */
static void predict(const spec_bench *b, const spec_row *r, int32_t seq, int32_t *out)
{
    const int32_t *answer = b->answers + (ptrdiff_t)seq * r->n_gen;
    for (int32_t i = 0; i < r->n_gen; i++) {
        const int right = spec_mix((uint32_t)seq + 77, (uint32_t)i) < r->right * 4294967296.0;
        out[i] = right ? answer[i] : (answer[i] + 1) % b->n_vocab;
    }
}

static weft_status submit(const spec_bench *b, const spec_row *r, weft_inbox *inbox, int32_t seq, uint64_t *id,
                          weft_error *err)
{
    const int32_t n_prompt = r->n_prompt > 0 ? r->n_prompt : 1;
    int32_t *tokens = malloc(((size_t)n_prompt + (size_t)r->n_gen) * sizeof *tokens);
    weft_request_params p;
    if (!tokens) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt");
    weft_request_params_default(&p);
    for (int32_t i = 0; i < n_prompt; i++)
        tokens[i] = b->text ? b->text[((size_t)seq * (size_t)n_prompt + (size_t)i) % b->n_text]
                            : (int32_t)(spec_mix((uint32_t)seq, (uint32_t)i) % (uint32_t)b->n_vocab);
    p.tokens = tokens;
    p.n_tokens = n_prompt;
    p.max_tokens = r->n_gen;
    p.ignore_end = p.no_cache = 1;
    /* What is drawn repeats itself less than what is likeliest: the prediction alone is right. */
    p.sampler.temperature = b->text ? 0 : 1;
    p.sampler.seed = (uint64_t)seq;
    p.sampler.seed_given = 1;
    if (r->who == SPEC_PREDICTION) {
        predict(b, r, seq, tokens + n_prompt);
        p.predicted = tokens + n_prompt;
        p.n_predicted = r->n_gen;
    }
    weft_status st = weft_inbox_submit(inbox, &p, NULL, id, NULL, err);
    free(tokens);
    return st;
}

/* All requests of a row at once. Counts tokens from when each has one until the first has all. */
static weft_status run(spec_bench *b, spec_row *r, weft_inbox *inbox, double *rate, weft_error *err)
{
    uint64_t ids[LIST_MAX], begin = 0, end = 0;
    int32_t n_begun = 0, n_left = r->n_seqs, n_counted = 0;
    weft_status st = WEFT_OK;
    r->n_drafted = r->n_accepted = 0;
    for (int32_t i = 0; i < r->n_seqs; i++)
        if ((st = submit(b, r, inbox, i, &ids[i], err))) return st;
    while (n_left > 0) {
        const weft_event *e = weft_inbox_take(inbox, -1);
        int32_t seq = 0;
        if (!e) continue;
        while (seq < r->n_seqs && ids[seq] != e->request) seq++;
        if (e->kind == WEFT_EVENT_TOKEN) {
            if (r->who == SPEC_NOBODY) b->answers[(ptrdiff_t)seq * r->n_gen + e->n_generated - 1] = e->token;
            r->n_accepted += e->drafter != 0;
            if (begin && !end) n_counted++;
            n_begun += e->n_generated == 1;
            if (n_begun == r->n_seqs && !begin) begin = now_ns();
            if (e->n_generated == r->n_gen && !end) end = now_ns();
        }
        if (e->kind != WEFT_EVENT_FINISHED) continue;
        r->n_drafted += e->n_drafted;
        n_left--;
        if (e->status && !st) st = weft_fail(err, e->status, "%s", e->message);
    }
    if (!st && (!begin || end <= begin))
        return weft_fail(err, WEFT_ARGUMENT,
                         "the first of %d answers ended before the last began, so that there is no rate: give -n more "
                         "than %d",
                         r->n_seqs, r->n_gen);
    *rate = st ? 0 : n_counted * 1e9 / (double)(end - begin);
    return st;
}

/* One repetition of a row. */
static weft_status spec_repeat(spec_bench *b, spec_row *r, double *rate, weft_error *err)
{
    weft_inbox *inbox = NULL;
    weft_engine_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    weft_engine_get_stats(b->engines[r->who], &before);
    weft_status st = weft_inbox_new(b->engines[r->who], &inbox, err);
    if (!st) st = run(b, r, inbox, rate, err);
    weft_inbox_free(&inbox);
    weft_engine_get_stats(b->engines[r->who], &after);
    for (int k = 0; k < WEFT_DRAFT_MAX; k++) {
        r->tried_at[k] = r->right_at[k] = 0;
        for (int d = 0; d < WEFT_DRAFTERS; d++) {
            r->tried_at[k] += after.drafts[d].tokens_at[k] - before.drafts[d].tokens_at[k];
            r->right_at[k] += after.drafts[d].accepted_at[k] - before.drafts[d].accepted_at[k];
        }
    }
    return st;
}

/* Places of drafts that were tried. */
static int n_places(const spec_row *r)
{
    int n = 0;
    while (n < WEFT_DRAFT_MAX && r->tried_at[n]) n++;
    return n;
}

/* Of each place, the first guess's first, the part that was right of those tried. */
static void print_places(const spec_row *r)
{
    for (int k = 0; k < n_places(r); k++) printf(" %.2f", (double)r->right_at[k] / (double)r->tried_at[k]);
    printf("%s |\n", n_places(r) ? "" : " -");
}

static void print_counts(const char *name, const uint64_t *at, int n)
{
    printf(", \"%s\": [", name);
    for (int k = 0; k < n; k++) printf("%s%llu", k ? ", " : "", (unsigned long long)at[k]);
    printf("]");
}

static void spec_print(enum bench_format format, const spec_row *r, int first)
{
    const double accepted = r->n_drafted > 0 ? (double)r->n_accepted / (double)r->n_drafted : 0;
    char right[16] = "-";
    if (r->who == SPEC_DRAFTERS) snprintf(right, sizeof right, "drafters");
    if (r->who == SPEC_PREDICTION) snprintf(right, sizeof right, "%.2f", r->right);
    if (format == BENCH_MD) {
        printf("|%6d | %6d | %4d | %10s | %8lld | %10.3f | %8.2f | %6.3f |", r->n_prompt, r->n_gen, r->n_seqs, right,
               (long long)r->n_drafted, accepted, r->rate, r->ratio);
        print_places(r);
    } else {
        printf("%s{\"pp\": %d, \"tg\": %d, \"pl\": %d, \"drafters\": %s, \"predicted_right\": %s, \"draft_n\": %lld, "
               "\"draft_n_accepted\": %lld, \"speed_tg\": %.6f, \"against_plain\": %.6f",
               format == BENCH_JSON && !first ? ",\n" : "", r->n_prompt, r->n_gen, r->n_seqs,
               r->who == SPEC_DRAFTERS ? "true" : "false", r->who == SPEC_PREDICTION ? right : "null",
               (long long)r->n_drafted, (long long)r->n_accepted, r->rate, r->ratio);
        print_counts("draft_n_at", r->tried_at, n_places(r));
        print_counts("draft_n_accepted_at", r->right_at, n_places(r));
        printf("}%s", format == BENCH_JSONL ? "\n" : "");
    }
    fflush(stdout);
}

void bench_spec_begin(enum bench_format format)
{
    if (format == BENCH_JSON) printf("[\n");
    if (format != BENCH_MD) return;
    printf("|%6s | %6s | %4s | %10s | %8s | %10s | %8s | %6s | accepted at 1, 2, .. |\n", "PP", "TG", "B", "predicted",
           "guessed", "accepted", "S_TG t/s", "ratio");
    printf(
        "|-------|--------|------|------------|----------|------------|----------|--------|----------------------|\n");
}

enum { SPEC_ROWS = LIST_MAX + 2 };

/* Rows of one size: without guesses first, then by each part of the prediction that is right, then by drafters. */
static int32_t make_rows(const spec_bench *b, const spec_row *size, spec_row *rows)
{
    int32_t n = 0;
    for (int i = -1; i <= b->o->n_spec; i++) {
        spec_row r = *size;
        r.who = i < 0 ? SPEC_NOBODY : i < b->o->n_spec ? SPEC_PREDICTION : SPEC_DRAFTERS;
        if (r.who == SPEC_PREDICTION) r.right = b->o->spec[i];
        if (b->engines[r.who]) rows[n++] = r;
    }
    return n;
}

/* In turns, so that what others take, and memory that is fast and slow in turns, is the same for all of a repetition:
 * the ratio is the median of the repetitions' ratios. */
static weft_status spec_rows(spec_bench *b, const spec_row *size, bench_tally *tally, weft_error *err)
{
    static double rates[SPEC_ROWS][BENCH_REPS_MAX];
    double ratios[BENCH_REPS_MAX];
    spec_row rows[SPEC_ROWS];
    const int32_t n_rows = make_rows(b, size, rows);
    weft_status st = WEFT_OK;
    b->answers = calloc((size_t)size->n_seqs * (size_t)size->n_gen, sizeof *b->answers);
    if (!b->answers) return weft_fail(err, WEFT_NO_MEMORY, "no memory for answers");
    for (int k = b->o->no_warmup ? 0 : -1; k < b->o->reps && !st; k++)
        for (int32_t i = 0; i < n_rows && !st; i++) st = spec_repeat(b, &rows[i], &rates[i][k < 0 ? 0 : k], err);
    for (int32_t i = n_rows - 1; i >= 0 && !st; i--) { /* the first row's last: a median sorts */
        for (int k = 0; k < b->o->reps; k++) ratios[k] = rates[0][k] > 0 ? rates[i][k] / rates[0][k] : 0;
        rows[i].ratio = bench_median(ratios, b->o->reps);
        rows[i].rate = bench_median(rates[i], b->o->reps);
    }
    for (int32_t i = 0; i < n_rows && !st; i++) spec_print(b->o->format, &rows[i], tally->n_rows++ == 0);
    free(b->answers);
    return st;
}

static weft_status open_engines(spec_bench *b, int32_t n_slots, int32_t n_ctx, weft_error *err)
{
    weft_engine_params p;
    weft_engine_params_default(&p);
    p.kv_dtype = kv_type_of(b->o->kv_type);
    p.n_slots = n_slots;
    p.n_ctx = n_ctx;
    weft_status st = weft_engine_new(b->model, &p, &b->engines[SPEC_NOBODY], err);
    p.spec = WEFT_SPEC_AUTO;
    if (!st && b->o->n_spec) st = weft_engine_new(b->model, &p, &b->engines[SPEC_PREDICTION], err);
    p.draft = b->draft;
    if (!st && (b->draft || b->text)) st = weft_engine_new(b->model, &p, &b->engines[SPEC_DRAFTERS], err);
    return st;
}

static weft_status read_prompts(spec_bench *b, weft_error *err)
{
    char *text = NULL;
    size_t n = 0;
    const weft_tokenizer *t = weft_model_tokenizer(b->model);
    if (!b->o->text) return WEFT_OK;
    if (!t) return weft_fail(err, WEFT_UNSUPPORTED, "--text: the model has no tokenizer");
    weft_status st = read_text(b->o->text, &text, &n, err);
    if (!st) st = tokenize_text(t, text, n, WEFT_TOKENIZE_BOS, &b->text, &b->n_text, err);
    if (!st && !b->n_text) st = weft_fail(err, WEFT_ARGUMENT, "--text %.200s: there is nothing in it", b->o->text);
    free(text);
    return st;
}

weft_status bench_spec(const bench_options *o, weft_model *model, bench_tally *tally, weft_error *err)
{
    spec_bench b = {.o = o, .model = model};
    weft_model_info info = {.size = sizeof info};
    int32_t most_seqs = 1, most_prompt = 1, most_gen = 1;
    for (int i = 0; i < o->parallel.n; i++)
        most_seqs = o->parallel.items[i] > most_seqs ? o->parallel.items[i] : most_seqs;
    for (int i = 0; i < o->n_prompt.n; i++)
        most_prompt = o->n_prompt.items[i] > most_prompt ? o->n_prompt.items[i] : most_prompt;
    for (int i = 0; i < o->n_gen.n; i++) most_gen = o->n_gen.items[i] > most_gen ? o->n_gen.items[i] : most_gen;
    weft_status st = weft_model_describe(model, &info, err);
    b.n_vocab = info.n_vocab;
    weft_model_params mp;
    weft_model_params_default(&mp);
    mp.n_threads = info.n_threads;
    mp.share_threads = 1;
    if (!st) st = draft_open("bench", o->draft, model, &mp, &b.draft, err);
    if (!st) st = read_prompts(&b, err);
    if (!st) st = open_engines(&b, most_seqs, most_prompt + most_gen, err);
    for (int p = 0; p < o->n_prompt.n && !st; p++)
        for (int n = 0; n < o->n_gen.n && !st; n++)
            for (int k = 0; k < o->parallel.n && !st; k++) {
                spec_row r = {
                    .n_prompt = o->n_prompt.items[p], .n_gen = o->n_gen.items[n], .n_seqs = o->parallel.items[k]};
                if (r.n_gen > 1) st = spec_rows(&b, &r, tally, err);
            }
    for (int i = 0; i < 3; i++) weft_engine_free(&b.engines[i]);
    weft_model_close(&b.draft);
    free(b.text);
    return st;
}

int bench_spec_asked(const bench_options *o)
{
    return o->spec_text || o->text || o->draft;
}

int bench_spec_parse(bench_options *o)
{
    const char *at = o->spec_text ? o->spec_text : "";
    for (o->n_spec = 0; *at;) {
        char *end;
        if (o->n_spec == LIST_MAX) return 0;
        const double right = strtod(at, &end);
        if (end == at || (*end && (*end != ',' || !end[1])) || !(right >= 0 && right <= 1)) return 0;
        o->spec[o->n_spec++] = right;
        at = *end ? end + 1 : end;
    }
    return o->n_spec > 0 || !o->spec_text;
}
