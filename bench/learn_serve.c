// SPDX-License-Identifier: Apache-2.0
/* learn_serve.c: users' corrections are learned in the background (learn/teach_loop.h) while streams of others run on
 * the same engine. The streams answer the same questions over and over, first by themselves, then while others learn,
 * then by themselves again: their tokens and the log-probabilities of them must be the same bits, and the time between
 * tokens is told. Then each user is asked, under the version that the name stands for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "learn/teach_loop.h"
#include "learn_parts.h"
#include "weft/engine.h"
#include "weft/model.h"

enum { STREAMS = 64, GAPS = 1 << 20, N_TOP = 5, STREAM_TOKENS = 40, QUIET_S = 20 };

struct stream {
    const weft__teach_text *asked;             /* its question */
    uint64_t request, last_ns, sum, first_sum; /* of its answer now; of its first one */
    int64_t n_answers, n_other;
};

struct serving {
    weft_model *model;
    weft_engine *engine;
    weft_inbox *inbox;
    const char *folder;
    struct stream stream[STREAMS];
    int32_t n_streams;
    float *gap; /* [n_gaps] ms between tokens of this phase */
    size_t n_gaps;
};

/* ---- what the loop asks of the server ---- */

static weft_status place(void *arg, const char *tenant, const char *full_name, char *out, weft_error *err)
{
    const struct serving *s = arg;
    (void)tenant;
    (void)err;
    snprintf(out, 4096, "%s/%s.gguf", s->folder, full_name);
    return WEFT_OK;
}

static weft_status publish(void *arg, const char *tenant, const char *full_name, const char *path, weft_error *err)
{
    struct serving *s = arg;
    char name[WEFT__VERSION_NAME];
    int64_t version;
    (void)tenant;
    if (!weft__version_read_name(full_name, name, &version)) return weft_fail(err, WEFT_ARGUMENT, "%s", full_name);
    return weft_engine_adapter_add(s->engine, name, path, 1, WEFT_ADAPTER_REPLACE, err);
}

/* Its streams always run; as a server's hook, it takes no lock. */
static int busy(void *arg)
{
    (void)arg;
    return 1;
}

/* ---- streams ---- */

static void ask_stream(struct serving *s, struct stream *t)
{
    weft_request_params p;
    weft_error err = {0};
    weft_request_params_default(&p);
    p.tokens = t->asked->ids;
    p.n_tokens = t->asked->n_prompt;
    p.max_tokens = STREAM_TOKENS;
    p.ignore_end = 1;
    p.n_top = N_TOP;
    p.sampler.temperature = 0;
    p.draft_max = 0;
    t->sum = 0;
    t->last_ns = 0;
    if (weft_inbox_submit(s->inbox, &p, NULL, &t->request, NULL, &err)) die("a stream", &err);
}

static void take_token(struct serving *s, struct stream *t, const weft_event *e)
{
    const uint64_t now = weft__clock_ns();
    if (t->last_ns && s->n_gaps < GAPS) s->gap[s->n_gaps++] = (float)((double)(now - t->last_ns) / 1e6);
    t->last_ns = now;
    for (int32_t i = 0; i < e->n_top; i++) {
        const struct {
            uint64_t before;
            int32_t token;
            float logprob;
        } seen = {t->sum, e->top[i].token, e->top[i].logprob};
        t->sum = weft__hash(&seen, sizeof seen);
    }
}

static void answered(struct serving *s, struct stream *t)
{
    if (!t->n_answers++) t->first_sum = t->sum;
    else t->n_other += t->sum != t->first_sum;
    ask_stream(s, t);
}

/* Until `until_ns`, or, with a loop, until nothing waits to be learned. */
static void run_streams(struct serving *s, uint64_t until_ns, weft__teach_loop *loop)
{
    weft__teach_loop_stats stats;
    s->n_gaps = 0;
    for (int32_t i = 0; i < s->n_streams; i++) s->stream[i].last_ns = 0;
    for (uint64_t looked = 0;;) {
        const uint64_t now = weft__clock_ns();
        const weft_event *e = weft_inbox_take(s->inbox, 20);
        for (int32_t i = 0; e && i < s->n_streams; i++) {
            struct stream *t = &s->stream[i];
            if (t->request != e->request) continue;
            if (e->kind == WEFT_EVENT_TOKEN) take_token(s, t, e);
            if (e->kind == WEFT_EVENT_FINISHED) answered(s, t);
            break;
        }
        if (!loop && now >= until_ns) return;
        if (!loop || now - looked < 50000000) continue;
        looked = now;
        weft__teach_loop_get_stats(loop, &stats);
        if (!stats.n_waiting) return;
    }
}

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double percentile(struct serving *s, double p)
{
    if (!s->n_gaps) return NAN;
    qsort(s->gap, s->n_gaps, sizeof *s->gap, by_size);
    return (double)s->gap[(size_t)(p * (double)(s->n_gaps - 1))];
}

/* ---- the line ---- */

static void open_serving(struct bench *b, struct serving *s, const weft__teach_texts *streams, int32_t n_threads)
{
    weft_model_params mp;
    weft_engine_params ep;
    weft_model_params_default(&mp);
    weft_engine_params_default(&ep);
    mp.n_threads = n_threads;
    mp.n_ctx = CTX;
    ep.n_slots = STREAMS;
    ep.n_ctx = CTX;
    ep.spec = WEFT_SPEC_OFF;
    s->gap = malloc(GAPS * sizeof *s->gap);
    if (!s->gap || weft_model_open(b->base.source.label, &mp, &s->model, &b->err) ||
        weft_engine_new(s->model, &ep, &s->engine, &b->err) || weft_inbox_new(s->engine, &s->inbox, &b->err))
        die("serve", &b->err);
    s->n_streams = streams->n < STREAMS ? (int32_t)streams->n : STREAMS;
    for (int32_t i = 0; i < s->n_streams; i++) s->stream[i].asked = &streams->text[i];
}

static void close_serving(struct serving *s)
{
    weft_inbox_free(&s->inbox);
    weft_engine_free(&s->engine);
    weft_model_close(&s->model);
    free(s->gap);
}

static void put_user(struct bench *b, weft__teach_loop *loop, const char *name, const weft__json *user)
{
    const weft__json *events = weft__json_get(user, "events");
    weft__teach_texts kept = {0};
    put_texts(b, &kept, weft__json_get(user, "keep"));
    for (size_t i = 0; i < kept.n; i++)
        if (weft__teach_loop_keep(loop, name, name, &kept.text[i], &b->err)) die("keep", &b->err);
    for (size_t i = 0; i < weft__json_size(events); i++) {
        struct bench_event e = {0};
        read_event(b, weft__json_at(events, i), &e);
        if (weft__teach_loop_put(loop, name, name, (int64_t)i + 1, &e.e, &b->err)) die("put", &b->err);
        free_event(&e);
    }
    weft__teach_texts_free(&kept);
}

struct row_writer {
    weft__strbuf out;
};

static void write_row(void *arg, const weft__version_row *r)
{
    struct row_writer *w = arg;
    weft__strbuf_printf(&w->out,
                        "%s{\"user\": \"%s\", \"version\": %lld, \"what\": \"%s\", \"reason\": \"%s\", \"id\": \"%s\"}",
                        w->out.len ? ", " : "", r->tenant, (long long)r->version, weft__version_what_name(r->what),
                        r->reason, r->content);
}

void serve_line(struct bench *b, const weft__json *v)
{
    static struct serving s;
    const weft__json *users = weft__json_get(v, "users");
    weft__teach_texts streams = {0};
    weft__teach_loop_params p;
    weft__teach_loop *loop = NULL;
    weft__teach_loop_stats stats;
    struct row_writer rows = {0};
    int32_t threads = b->n_threads, quiet_s = QUIET_S;
    char name[32];
    s = (struct serving){.folder = text_of(v, "folder")};
    whole(v, "threads", &threads);
    whole(v, "quiet_s", &quiet_s);
    put_texts(b, &streams, weft__json_get(v, "streams"));
    open_serving(b, &s, &streams, threads);
    weft__teach_loop_params_default(&p);
    number(v, "share", &p.share);
    p.base = &b->base.source;
    p.tok = b->base.tok;
    p.probe = b->probe.text[0].ids;
    p.n_probe = b->probe.text[0].n;
    p.publics = b->publics.text;
    p.n_publics = (int32_t)b->publics.n;
    p.hooks = (weft__teach_hooks){&s, place, publish, NULL, busy};
    if (weft__teach_loop_new(&p, &loop, &b->err)) die("serve", &b->err);
    for (int32_t i = 0; i < s.n_streams; i++) ask_stream(&s, &s.stream[i]);
    run_streams(&s, weft__clock_ns() + (uint64_t)quiet_s * 1000000000, NULL);
    const double p50_before = percentile(&s, 0.5), p99_before = percentile(&s, 0.99);
    const uint64_t begin = weft__clock_ns();
    for (size_t i = 0; i < weft__json_size(users); i++) {
        snprintf(name, sizeof name, "u%zu", i);
        put_user(b, loop, name, weft__json_at(users, i));
    }
    run_streams(&s, 0, loop);
    const double seconds = (double)(weft__clock_ns() - begin) / 1e9;
    const double p50_during = percentile(&s, 0.5), p99_during = percentile(&s, 0.99);
    run_streams(&s, weft__clock_ns() + (uint64_t)quiet_s * 1000000000, NULL);
    const double p50_after = percentile(&s, 0.5), p99_after = percentile(&s, 0.99);
    int64_t n_answers = 0, n_other = 0;
    for (int32_t i = 0; i < s.n_streams; i++) n_answers += s.stream[i].n_answers, n_other += s.stream[i].n_other;
    weft__teach_loop_get_stats(loop, &stats);
    weft__versions_each(weft__teach_loop_versions(loop), NULL, write_row, &rows);
    printf(
        "{\"seconds\": %.1f, \"answers\": %lld, \"others\": %lld, \"p50_ms\": [%.3f, %.3f, %.3f], \"p99_ms\": [%.3f, "
        "%.3f, %.3f], \"failed\": %lld, \"fault\": \"%s\", \"rows\": [%s]}\n",
        seconds, (long long)n_answers, (long long)n_other, p50_before, p50_during, p50_after, p99_before, p99_during,
        p99_after, (long long)stats.n_failed, *stats.fault ? "yes" : "", rows.out.data ? rows.out.data : "");
    weft__strbuf_free(&rows.out);
    weft__teach_loop_free(&loop);
    close_serving(&s);
    weft__teach_texts_free(&streams);
}
