// SPDX-License-Identifier: Apache-2.0
/* adapter_load.c: what loading an adapter does to those who are being served meanwhile: streams of an engine over a
 * model of random weights, and for how long each of their tokens is late while a file is read and packed.
 *
 * bench_adapter_load [--shape S] [--type T] [-t THREADS] [-r LOADS] [-s STREAMS] [--json] [--check]. A load during
 * which others took more than 3 % of the time is measured again while that helps; where one stays, nothing is judged
 * (exit status 75 with --check). --check: exit status 1 where the latest token of a load is later than the limit, in
 * the median of the loads, or the latest of all is later, by more than the limit, than the latest of as long a time
 * without loading. A token comes with every step; its delay is the time since the one before it, less the median of
 * such times without loading. Loads and stretches of the same length without alternate, so that what the machine's
 * other guests do shows in both. Owner: the main thread loads; the engine's notes the times. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adapt/adapt.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/taken.h"
#include "engine/handles.h"
#include "random_adapter.h"

enum { MAX_STREAMS = 16, RANK = 16, N_CTX = 2048, PROMPT = 16, MAX_STEPS = 1 << 20, NOT_JUDGED = 75 /* EX_TEMPFAIL */ };
#define LIMIT_MS 20.0

typedef struct bench {
    weft_model *model;
    weft_engine *engine;
    const char *shape;
    uint32_t dtype;
    int32_t threads, loads, streams, json;
    int32_t disturbed;    /* loads that count and are */
    weft__taken taken[2]; /* of the time of all that count: while an adapter is loaded, and without */
    uint64_t *at;         /* [MAX_STEPS] when a token of stream 0 came */
    atomic_int n;
    atomic_int stop;
    char folder[64];
} bench;

typedef struct stretch {
    uint64_t begin, end;
} stretch;

static void die(const char *what, const weft_error *err)
{
    fprintf(stderr, "bench_adapter_load: %s%s%s\n", what, err ? ": " : "", err ? err->message : "");
    exit(1);
}

static void *need(void *p)
{
    if (!p) die("out of memory", NULL);
    return p;
}

/* ---- streams ---- */

static int on_event(void *arg, const weft_event *event)
{
    bench *b = arg;
    if (event->kind != WEFT_EVENT_TOKEN) return 0;
    int n = atomic_load_explicit(&b->n, memory_order_relaxed);
    if (n < MAX_STEPS) b->at[n] = weft__clock_ns();
    atomic_store_explicit(&b->n, n < MAX_STEPS ? n + 1 : n, memory_order_release);
    return atomic_load(&b->stop);
}

static int on_other(void *arg, const weft_event *event)
{
    bench *b = arg;
    (void)event;
    return atomic_load(&b->stop);
}

static void submit(bench *b, int32_t first, int32_t max_tokens, weft_event_fn fn, const char *adapter)
{
    int32_t prompt[PROMPT];
    weft_error err = {0};
    weft_request_params p;
    weft_request_adapter a = {adapter, NAN};
    uint64_t id;
    weft_request_params_default(&p);
    for (int32_t i = 0; i < PROMPT; i++) prompt[i] = 1 + (first * 31 + i * 7) % 400;
    p.tokens = prompt;
    p.n_tokens = PROMPT;
    p.max_tokens = max_tokens;
    p.ignore_end = p.no_cache = 1;
    p.n_top = -1;
    p.sampler.temperature = 0;
    p.event = fn;
    p.arg = b;
    p.adapters = &a;
    p.n_adapters = adapter != NULL;
    if (weft_engine_submit(b->engine, &p, &id, NULL, &err)) die("request", &err);
}

static void pause_for(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    nanosleep(&t, NULL);
}

static void begin_streams(bench *b)
{
    atomic_store(&b->stop, 0);
    atomic_store(&b->n, 0);
    for (int32_t i = 0; i < b->streams; i++) submit(b, i, -1, i == 0 ? on_event : on_other, NULL);
    while (atomic_load(&b->n) < 20) pause_for(1000000); /* prompts, and what is slow at first */
}

static void end_streams(bench *b)
{
    weft_engine_stats s = {.size = sizeof s};
    atomic_store(&b->stop, 1);
    do {
        pause_for(2000000);
        weft_engine_get_stats(b->engine, &s);
    } while (s.n_running + s.n_waiting > 0);
}

/* ---- adapters ---- */

/* A file of rank 16 on all linears but the head, in F16; no two numbers give the same content. */
static void write_adapter(const bench *b, int number, const char *path)
{
    weft_error err = {0};
    if (random_adapter_write(&b->model->base, RANK, WEFT_F16, (uint64_t)number + 1, path, &err)) die("adapter", &err);
}

/* Reads, checks and packs a file, as a request that names it does. */
static stretch load(bench *b, int number)
{
    char name[32], path[128];
    weft_error err = {0};
    stretch s;
    snprintf(name, sizeof name, "a%d", number);
    snprintf(path, sizeof path, "%s/%s.gguf", b->folder, name);
    write_adapter(b, number, path);
    pause_for(300000000); /* the neighbours have their core back */
    s.begin = weft__clock_ns();
    if (weft_engine_adapter_add(b->engine, name, path, 1, 0, &err)) die("loading", &err);
    submit(b, number, 0, on_other, name);
    s.end = weft__clock_ns();
    unlink(path);
    return s;
}

/* ---- numbers ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Quantile q of n sorted numbers; NAN of none. */
static double quantile(const double *x, size_t n, double q)
{
    return n ? x[(size_t)(q * (double)(n - 1) + 0.5)] : NAN;
}

typedef struct times {
    double *ms; /* of each step */
    size_t n, capacity;
} times;

/* The steps that a stretch touches. */
static void take(const bench *b, stretch s, times *out)
{
    int n = atomic_load(&b->n);
    for (int i = 1; i < n; i++) {
        if (b->at[i] < s.begin || b->at[i - 1] > s.end) continue;
        if (!weft__grow(&out->ms, &out->capacity, out->n + 1, sizeof *out->ms)) die("out of memory", NULL);
        out->ms[out->n++] = (double)(b->at[i] - b->at[i - 1]) * 1e-6;
    }
}

static void sort(times *t)
{
    qsort(t->ms, t->n, sizeof *t->ms, compare);
}

static void print(const bench *b, const char *name, const times *t, const weft__taken *taken, double usual, double most)
{
    char text[WEFT__TAKEN_ROOM];
    double q[4];
    for (int i = 0; i < 4; i++) q[i] = quantile(t->ms, t->n, (const double[]){0.5, 0.9, 0.99, 1}[i]) - usual;
    if (b->json)
        printf("{\"case\":\"%s\",\"tokens\":%zu,\"usual_ms\":%.3f,\"delay_p50_ms\":%.3f,\"delay_p90_ms\":%.3f,\"delay_"
               "p99_ms\":%.3f,\"delay_max_ms\":%.3f,"
               "\"median_of_maxima_ms\":%.3f,\"limit_ms\":%.0f,%s,\"disturbed\":%d}\n",
               name, t->n, usual, q[0], q[1], q[2], q[3], most, LIMIT_MS, weft__taken_json(taken, text),
               weft__taken_above(taken));
    else
        printf("%-26s %5zu tokens, late by: median %6.2f ms  p90 %6.2f  p99 %6.2f  max %6.2f; the latest of each load, "
               "median %6.2f ms (limit %.0f); taken %s\n",
               name, t->n, q[0], q[1], q[2], q[3], most, LIMIT_MS,
               weft__taken_text(taken, weft__taken_above(taken), text));
}

/* By how much later the latest token was than the latest of as long a time without loading; each load's own difference
 * shows what the machine does by itself. */
static void print_more(const bench *b, double later, double *more, size_t n)
{
    qsort(more, n, sizeof *more, compare);
    printf(b->json
               ? "{\"case\":\"latest with less latest without\",\"ms\":%.3f,\"limit_ms\":%.0f,\"load_median_ms\":%.3f,"
                 "\"load_min_ms\":%.3f,\"load_max_ms\":%.3f}\n"
               : "the latest token, less the latest without loading: %+.2f ms, at most %.0f; load by load: median "
                 "%+.2f (%+.2f to %+.2f)\n",
           later, LIMIT_MS, quantile(more, n, 0.5), more[0], more[n - 1]);
}

/* A load, then as much time without; again while others took too much of the time and that helps. Streams have begun
 * when it returns. */
static void load_and_rest(bench *b, int *number, stretch s[2], weft__taken_again *again)
{
    weft__taken_mark from, between, to;
    for (;;) {
        begin_streams(b);
        weft__taken_now(&from);
        s[0] = load(b, (*number)++);
        pause_for(300000000);
        weft__taken_now(&between);
        s[1].begin = weft__clock_ns();
        pause_for(s[0].end - s[0].begin);
        s[1].end = weft__clock_ns();
        pause_for(100000000);
        weft__taken_now(&to);
        const weft__taken all = weft__taken_between(&from, &to, b->threads);
        if (!weft__taken_again_wanted(again, &all)) {
            const weft__taken parts[2] = {weft__taken_between(&from, &between, b->threads),
                                          weft__taken_between(&between, &to, b->threads)};
            b->disturbed += weft__taken_above(&all);
            for (int i = 0; i < 2; i++) weft__taken_add(&b->taken[i], &parts[i]);
            return;
        }
        end_streams(b);
    }
}

/* Is the limit kept? */
static int measure(bench *b)
{
    times with = {0}, without = {0};
    stretch *s = need(weft__alloc_array(2 * (size_t)b->loads, sizeof *s));
    double *most = need(weft__alloc_array(4 * (size_t)b->loads, sizeof *most));
    double *most_without = most + b->loads, *took = most_without + b->loads, *more = took + b->loads;
    size_t n = (size_t)b->loads;
    weft__taken_again again = {.left = b->loads};
    int number = 0; /* of the next load: every one has a file of its own */
    for (int32_t i = 0; i < b->loads; i++) {
        times one = {0}, other = {0};
        load_and_rest(b, &number, s + 2 * i, &again);
        take(b, s[2 * i], &one);
        take(b, s[2 * i], &with);
        take(b, s[2 * i + 1], &other);
        take(b, s[2 * i + 1], &without);
        end_streams(b);
        sort(&one);
        sort(&other);
        most[i] = quantile(one.ms, one.n, 1);
        most_without[i] = quantile(other.ms, other.n, 1);
        more[i] = most[i] - most_without[i];
        took[i] = (double)(s[2 * i].end - s[2 * i].begin) * 1e-6;
        weft__free(one.ms);
        weft__free(other.ms);
    }
    sort(&with);
    sort(&without);
    qsort(most, n, sizeof *most, compare);
    qsort(most_without, n, sizeof *most, compare);
    qsort(took, n, sizeof *took, compare);
    double usual = quantile(without.ms, without.n, 0.5);
    if (!b->json)
        printf("%d streams, %d loads of an adapter of rank %d on all linears; a step takes %.2f ms, a load %.0f ms "
               "(%.0f to %.0f)\n",
               b->streams, b->loads, RANK, usual, quantile(took, n, 0.5), took[0], took[n - 1]);
    print(b, "without loading", &without, &b->taken[1], usual, quantile(most_without, n, 0.5) - usual);
    print(b, "while an adapter is loaded", &with, &b->taken[0], usual, quantile(most, n, 0.5) - usual);
    const double later = most[n - 1] - most_without[n - 1];
    const int kept = later <= LIMIT_MS && quantile(most, n, 0.5) - usual <= LIMIT_MS;
    print_more(b, later, more, n);
    weft__free(s);
    weft__free(most);
    weft__free(with.ms);
    weft__free(without.ms);
    return kept;
}

static void open_all(bench *b)
{
    weft_error err = {0};
    weft_model_params mp;
    weft_engine_params ep;
    weft_model_params_default(&mp);
    mp.n_threads = b->threads;
    if (weft_model_synthetic(b->shape, b->dtype, &mp, &b->model, &err)) die("model", &err);
    weft_engine_params_default(&ep);
    ep.n_slots = b->streams + 1;
    ep.n_ctx = N_CTX;
    if (weft_engine_new(b->model, &ep, &b->engine, &err)) die("engine", &err);
    b->at = need(weft__alloc_array(MAX_STEPS, sizeof *b->at));
    weft_model_info info = {.size = sizeof info};
    if (weft_model_describe(b->model, &info, &err)) die("model", &err);
    b->threads = info.n_threads;
    const char *tmp = getenv("TMPDIR");
    snprintf(b->folder, sizeof b->folder, "%.40s/weft-bench-XXXXXX", tmp && strlen(tmp) <= 40 ? tmp : "/tmp");
    if (!mkdtemp(b->folder)) die("no folder for adapters", NULL);
}

int main(int argc, char **argv)
{
    int check = 0;
    bench b = {.shape = "tinyllama-1.1b", .dtype = WEFT_Q4_0, .loads = 7, .streams = 4};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--json")) b.json = 1;
        else if (!strcmp(argv[i], "--check")) check = 1;
        else if (!strcmp(argv[i], "--shape")) b.shape = value, i++;
        else if (!strcmp(argv[i], "--type")) b.dtype = (uint32_t)weft_dtype_from_name(value), i++;
        else if (!strcmp(argv[i], "-t")) b.threads = atoi(value), i++;
        else if (!strcmp(argv[i], "-r")) b.loads = atoi(value) > 0 ? atoi(value) : 1, i++;
        else if (!strcmp(argv[i], "-s"))
            b.streams = atoi(value) > 0 && atoi(value) <= MAX_STREAMS ? atoi(value) : 1, i++;
        else die("unknown option", NULL);
    }
    open_all(&b);
    int kept = measure(&b);
    weft_engine_free(&b.engine);
    weft_model_close(&b.model);
    rmdir(b.folder);
    weft__free(b.at);
    if (check && b.disturbed)
        fprintf(stderr, "bench_adapter_load: not judged: too much was taken of %d loads\n", b.disturbed);
    return !check ? 0 : b.disturbed ? NOT_JUDGED : !kept;
}
