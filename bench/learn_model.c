// SPDX-License-Identifier: Apache-2.0
/* bench_learn MODEL TEXT [THREADS]: what bench/learn asks for, a JSON line for each line of JSON: corrections become
 * adapters behind a gate (src/learn), and questions are answered by the engine that serves. TEXT: a file by whose first
 * tokens KL to the base is measured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "learn_parts.h"

enum { EVENTS = 256 };

void die(const char *what, const weft_error *err)
{
    fprintf(stderr, "bench_learn: %s: %s\n", what, err ? err->message : "no memory, or another line was expected");
    exit(1);
}

/* A prompt, a text or messages, and an answer or none, as tokens. */
static void put_text(struct bench *b, weft__teach_texts *out, const weft__json *prompt, const weft__json *answer)
{
    weft__json *root = weft__json_new_object();
    weft__train_record record = {0};
    weft__train_rendered r = {0};
    if (!weft__json_set(root, "prompt", weft__json_copy(prompt)) ||
        !weft__json_set(root, "completion", answer ? weft__json_copy(answer) : weft__json_new_string("", 0)))
        die("a prompt", NULL);
    if (weft__train_record_of(&root, &record, &b->err) ||
        weft__train_render(&b->renderer, &record, 0, CTX, &r, &b->err))
        die("a prompt", &b->err);
    size_t end = r.ids.n; /* the answer is what is learned last */
    while (end && !r.learn[end - 1]) end--;
    size_t begin = end;
    while (begin && r.learn[begin - 1]) begin--;
    if (!weft__teach_texts_add(out, r.ids.data, (int32_t)begin, r.ids.data + begin, answer ? (int32_t)(end - begin) : 0,
                               -1))
        die("a text", NULL);
    weft__train_rendered_free(&r);
    weft__train_record_free(&record);
}

/* A list of prompts, or of {"prompt", "answer"}. */
void put_texts(struct bench *b, weft__teach_texts *out, const weft__json *list)
{
    for (size_t i = 0; i < weft__json_size(list); i++) {
        const weft__json *v = weft__json_at(list, i);
        if (weft__json_kind_of(v) == WEFT__JSON_OBJECT)
            put_text(b, out, weft__json_get(v, "prompt"), weft__json_get(v, "answer"));
        else put_text(b, out, v, NULL);
    }
}

const char *text_of(const weft__json *v, const char *key)
{
    const char *s = NULL;
    size_t n;
    weft__json_string(weft__json_get(v, key), &s, &n);
    return s;
}

void number(const weft__json *v, const char *key, float *out)
{
    double d;
    if (weft__json_double(weft__json_get(v, key), &d)) *out = (float)d;
}

void whole(const weft__json *v, const char *key, int32_t *out)
{
    int64_t i;
    if (weft__json_int(weft__json_get(v, key), &i)) *out = (int32_t)i;
}

static void read_options(const weft__json *v, weft__teach_options *o, weft__gate_bounds *g)
{
    int32_t seed = 1;
    whole(v, "rank", &o->rank);
    o->alpha = (float)o->rank;
    number(v, "alpha", &o->alpha);
    if (text_of(v, "targets")) o->targets = text_of(v, "targets");
    number(v, "lr", &o->lr);
    whole(v, "most_steps", &o->most_steps);
    whole(v, "per_step", &o->per_step);
    whole(v, "public_per_step", &o->public_per_step);
    number(v, "differs", &o->differs);
    number(v, "same", &o->same);
    number(v, "wrong", &o->wrong);
    number(v, "neighbour", &o->neighbour);
    number(v, "replay", &o->replay);
    number(v, "anchor", &o->anchor);
    number(v, "stop_at", &o->stop_at);
    number(v, "hold_at", &o->hold_at);
    number(v, "norm_cap", &o->norm_cap);
    number(v, "l2_sp", &o->l2_sp);
    number(v, "ewc", &o->ewc);
    whole(v, "nearest", &o->nearest);
    whole(v, "draws", &o->draws);
    whole(v, "more_draws", &o->more_draws);
    whole(v, "far_per_step", &o->far_per_step);
    whole(v, "replay_per_step", &o->replay_per_step);
    number(v, "style_stop_at", &o->style.stop_at);
    number(v, "style_said_at", &o->style.said_at);
    whole(v, "style_draws", &o->style.draws);
    whole(v, "style_questions", &o->style.questions);
    number(v, "style_temperature", &o->style.temperature);
    whole(v, "style_first_steps", &o->style.first_steps);
    whole(v, "attempts", &o->attempts);
    whole(v, "instant", &o->instant);
    whole(v, "styles", &o->styles);
    whole(v, "style_steps", &o->style.steps);
    whole(v, "style_others", &o->style.others);
    whole(v, "style_held", &o->style.held);
    whole(v, "style_rank", &o->style.rank);
    whole(v, "style_per_step", &o->style.per_step);
    number(v, "style_lr", &o->style.lr);
    number(v, "kl_style", &g->kl_style);
    number(v, "styled", &g->styled);
    number(v, "style_kept", &g->style_kept);
    if (text_of(v, "style_targets")) o->style.targets = text_of(v, "style_targets");
    whole(v, "seed", &seed);
    o->seed = (uint64_t)seed;
    number(v, "kl", &g->kl);
    number(v, "norm", &g->norm);
    number(v, "neighbours", &g->neighbours);
    number(v, "facts", &g->facts);
}

/* ---- events ---- */

struct events {
    struct bench_event own[EVENTS];
    weft__teach_event e[EVENTS];
    int32_t n;
};

void read_event(struct bench *b, const weft__json *v, struct bench_event *out)
{
    const weft__json *wrong = weft__json_get(v, "wrong");
    weft__teach_texts *t = &out->texts, *p = &out->paraphrases;
    put_text(b, t, weft__json_get(v, "prompt"), weft__json_get(v, "answer"));
    if (wrong) put_text(b, t, weft__json_get(v, "prompt"), wrong);
    put_texts(b, p, weft__json_get(v, "paraphrases"));
    out->e = (weft__teach_event){.correction = t->text[0], .paraphrases = p->text, .n_paraphrases = (int32_t)p->n};
    whole(v, "taught", &out->e.n_taught);
    if (!wrong) return;
    out->e.wrong = t->text[1].ids + t->text[1].n_prompt;
    out->e.n_wrong = t->text[1].n - t->text[1].n_prompt - 1;
}

void free_event(struct bench_event *e)
{
    weft__teach_texts_free(&e->texts);
    weft__teach_texts_free(&e->paraphrases);
}

static void read_events(struct bench *b, const weft__json *list, struct events *out)
{
    for (size_t i = 0; i < weft__json_size(list) && out->n < EVENTS; i++) {
        read_event(b, weft__json_at(list, i), &out->own[out->n]);
        out->e[out->n] = out->own[out->n].e;
        out->n++;
    }
}

static void free_events(struct events *e)
{
    for (int32_t i = 0; i < e->n; i++) free_event(&e->own[i]);
}

/* "judged": what the gate's own bounds make of it, whatever others it was asked by. */
static void tell(const weft__teach_report *r, int goes_on, double seconds, double cpu)
{
    const weft__gate_report *g = &r->gate;
    weft__gate_bounds bounds;
    weft__gate_bounds_default(&bounds);
    printf("{\"passed\": %s, \"reason\": \"%s\", \"seconds\": %.4f, \"cpu_s\": %.4f, \"learn_s\": %.4f, \"scale_s\": "
           "%.4f, \"judge_s\": "
           "%.4f, \"pass_ms\": %.4f, \"step_ms\": %.4f, \"attempts\": %d, \"steps\": %d, \"scale\": %.5f, "
           "\"came_out\": %d, \"id\": \"%016llx%016llx\"",
           g->passed ? "true" : "false", weft__gate_reason_name(g->reason), seconds, cpu, r->learn_s, r->scale_s,
           r->judge_s, 1e3 * r->pass_s, 1e3 * r->step_s, r->n_attempts, r->n_steps, (double)r->scale, r->came_out,
           (unsigned long long)r->id.word[0], (unsigned long long)r->id.word[1]);
    printf(", \"style\": %d, \"judged\": \"%s\"", r->n_style,
           weft__gate_reason_name(weft__gate_judge(g, &bounds, goes_on)));
    printf(", \"corrections\": [%d, %d], \"paraphrases\": [%d, %d], \"held_out\": [%d, %d, %d], \"neighbours\": [%d, "
           "%d, %d], \"facts\": [%d, %d], \"kl\": %.6f, \"norm\": %.6f}\n",
           g->corrections, g->n_corrections, g->paraphrases, g->n_paraphrases, g->lost, g->gained, g->n_held_out,
           g->neighbours, g->bled, g->n_neighbours, g->facts, g->n_facts, g->kl, g->norm);
}

static void teach_line(struct bench *b, const weft__json *v)
{
    struct events *events = calloc(1, sizeof *events);
    weft__teach_texts replay = {0}, neighbours = {0}, others = {0}, facts = {0}, held = {0};
    weft__gate_material judge = {.probe = b->probe.text[0].ids, .n_probe = b->probe.text[0].n};
    weft__teach_options o;
    weft__teach_report r;
    weft__adapt *parent = NULL;
    weft__teach_options_default(&o);
    weft__gate_bounds_default(&judge.bounds);
    o.n_threads = b->n_threads;
    read_options(weft__json_get(v, "options"), &o, &judge.bounds);
    if (!events) die("events", NULL);
    if (text_of(v, "parent") && weft__adapt_open(text_of(v, "parent"), NULL, UINT64_MAX, &parent, &b->err))
        die("parent", &b->err);
    read_events(b, weft__json_get(v, "events"), events);
    put_texts(b, &replay, weft__json_get(v, "replay"));
    put_texts(b, &neighbours, weft__json_get(v, "neighbours"));
    put_texts(b, &others, weft__json_get(v, "others"));
    put_texts(b, &facts, weft__json_get(v, "facts"));
    put_texts(b, &held, weft__json_get(v, "held_out"));
    judge.neighbours = others.text, judge.n_neighbours = (int32_t)others.n;
    judge.facts = facts.text, judge.n_facts = (int32_t)facts.n;
    judge.goes_on = parent != NULL;
    judge.held_out = held.text, judge.n_held_out = (int32_t)held.n;
    const weft__teach_task task = {.base = &b->base.source,
                                   .tok = b->base.tok,
                                   .parent = parent,
                                   .events = events->e,
                                   .n_events = events->n,
                                   .replay = replay.text,
                                   .n_replay = (int32_t)replay.n,
                                   .neighbours = neighbours.text,
                                   .n_neighbours = (int32_t)neighbours.n,
                                   .publics = b->publics.text,
                                   .n_publics = (int32_t)b->publics.n,
                                   .judge = &judge,
                                   .path = text_of(v, "out"),
                                   .name = "learned"};
    const uint64_t begin = weft__clock_ns();
    const clock_t cpu = clock();
    if (weft__teach(&task, &o, &r, &b->err)) die("teach", &b->err);
    tell(&r, parent != NULL, (double)(weft__clock_ns() - begin) / 1e9, (double)(clock() - cpu) / CLOCKS_PER_SEC);
    weft__teach_texts_free(&replay);
    weft__teach_texts_free(&neighbours);
    weft__teach_texts_free(&others);
    weft__teach_texts_free(&facts);
    weft__teach_texts_free(&held);
    weft__adapt_close(&parent);
    free_events(events);
    free(events);
}

/* ---- answers, by the engine that serves ---- */

static void ask_line(struct bench *b, const weft__json *v)
{
    weft__teach_texts prompts = {0};
    put_texts(b, &prompts, weft__json_get(v, "prompts"));
    weft__train_answer *a = calloc(prompts.n + 1, sizeof *a);
    int32_t *ids = malloc((prompts.n + 1) * ANSWER * sizeof *ids);
    float *logp = malloc((prompts.n + 1) * ANSWER * sizeof *logp);
    if (!a || !ids || !logp) die("ask", NULL);
    if (!b->rollout &&
        weft__train_rollout_open(b->base.source.label, CTX, b->n_threads, NULL, NULL, &b->rollout, &b->err))
        die("ask", &b->err);
    if (text_of(v, "adapter") && weft__train_rollout_adapter(b->rollout, text_of(v, "adapter"), &b->err))
        die("ask", &b->err);
    for (size_t i = 0; i < prompts.n; i++)
        a[i] = (weft__train_answer){.prompt = prompts.text[i].ids,
                                    .n_prompt = prompts.text[i].n_prompt,
                                    .most = ANSWER,
                                    .greedy = 1,
                                    .ids = ids + i * ANSWER,
                                    .logp = logp + i * ANSWER};
    if (weft__train_rollout_run(b->rollout, a, (int32_t)prompts.n, &b->err)) die("ask", &b->err);
    weft__strbuf out = {0}, text = {0};
    for (size_t i = 0; i < prompts.n; i++) {
        weft__strbuf_printf(&out, i ? ", " : "{\"answers\": [");
        text.len = 0;
        if (weft__tok_decode(b->base.tok, a[i].ids, (size_t)a[i].n, 0, &text, &b->err)) die("ask", &b->err);
        weft__json_write_string(&out, text.data ? text.data : "", text.len);
    }
    printf("%s]}\n", prompts.n ? out.data : "{\"answers\": [");
    weft__strbuf_free(&text);
    weft__strbuf_free(&out);
    free(logp);
    free(ids);
    free(a);
    weft__teach_texts_free(&prompts);
}

static void open_bench(struct bench *b, const char *model, const char *text)
{
    const weft__train_base_overrides none = {NULL, NULL};
    weft__strbuf probe = {0};
    weft__tok_ids ids = {0};
    if (weft__train_base_open(&b->base, model, 1, &none, &b->err) ||
        weft__train_renderer_init(&b->renderer, b->base.tok, NULL, 0, &b->err))
        die(model, &b->err);
    FILE *f = fopen(text, "rb");
    char bytes[4096];
    for (size_t n; f && (n = fread(bytes, 1, sizeof bytes, f)) > 0 && probe.len < 32 * PROBE;)
        weft__strbuf_put(&probe, bytes, n);
    if (f) fclose(f);
    if (!f || weft__tok_encode(b->base.tok, probe.data, probe.len, WEFT__TOK_ENCODE_PARSE, &ids, &b->err))
        die(text, &b->err);
    const int32_t n = ids.n < PROBE ? (int32_t)ids.n : PROBE;
    if (!weft__teach_texts_add(&b->probe, ids.data, n, NULL, 0, -1)) die(text, NULL);
    for (int32_t at = PROBE; at + PUBLIC <= (int32_t)ids.n; at += PUBLIC)
        if (!weft__teach_texts_add(&b->publics, ids.data + at, 1, ids.data + at + 1, PUBLIC - 1, -1)) die(text, NULL);
    weft__tok_ids_free(&ids);
    weft__strbuf_free(&probe);
}

int main(int argc, char **argv)
{
    static struct bench b;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_learn MODEL TEXT [THREADS] < LINES\n");
        return 2;
    }
    b.n_threads = argc > 3 ? atoi(argv[3]) : 0;
    open_bench(&b, argv[1], argv[2]);
    while ((n = getline(&line, &room, stdin)) > 0) {
        weft__json *v = NULL;
        if (weft__json_parse(line, (size_t)n, &v, &b.err)) die("a line", &b.err);
        if (weft__json_get(v, "teach")) teach_line(&b, weft__json_get(v, "teach"));
        else if (weft__json_get(v, "ask")) ask_line(&b, weft__json_get(v, "ask"));
        else if (weft__json_get(v, "serve")) serve_line(&b, weft__json_get(v, "serve"));
        else die("a line", NULL);
        fflush(stdout);
        weft__json_free(&v);
    }
    free(line);
    weft__train_rollout_close(&b.rollout);
    weft__teach_texts_free(&b.probe);
    weft__teach_texts_free(&b.publics);
    weft__train_renderer_free(&b.renderer);
    weft__train_base_close(&b.base);
    return 0;
}
