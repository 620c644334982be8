// SPDX-License-Identifier: Apache-2.0
/* fit.c: see fit.h. */
#include "fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEFAULT_CTX = 4096, PROMPT = 512 };
/* What of a limit steps reach in the worst case, as bench/history has it: generation of what can be read, prompts of
 * what a product in the cache reaches. */
#define GENERATION_REACHES 0.75
#define PROMPT_REACHES 0.5
#define CACHE_SHARE 2 /* what is smaller than so many times the caches may be read faster than memory */

weft_status fit_look_around(const fit_options *o, fit_machine *out, weft_error *err)
{
    weft_peaks rounds[DOCTOR_ROUNDS];
    *out = (fit_machine){.machine.size = sizeof out->machine};
    weft_status st = weft_machine_describe(&out->machine, err);
    if (!st && !o->no_measure) st = weft_machine_measure(o->threads, DOCTOR_ROUNDS, rounds, err);
    if (st) return st;
    if (!o->no_measure)
        doctor_summarize(rounds, DOCTOR_ROUNDS, o->threads ? o->threads : out->machine.n_threads, &out->measured);
    const uint64_t available = out->machine.available_bytes;
    out->room = o->memory ? o->memory : available - available / 16;
    return WEFT_OK;
}

uint64_t fit_size(const char *text)
{
    static const char units[] = "KMGT";
    char *end;
    double n = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end) : NULL;
    if (end == text || !(n > 0)) return 0;
    for (int i = 0; unit && i <= (int)(unit - units); i++) n *= 1024;
    if (unit) end++;
    if (unit && *end == 'i') end++;
    if (*end == 'B' || *end == 'b') end++;
    return *end || n < 1 || n >= 0x1p62 ? 0 : (uint64_t)n;
}

/* ---- memory ---- */

/* Bytes in all for `slots` requests of n_ctx tokens. */
static weft_status count(const weft_model *outline, const fit_options *o, const fit_case *c, int32_t n_ctx,
                         int32_t slots, weft_engine_bytes *engine, uint64_t *needed, weft_error *err)
{
    weft_engine_params p;
    weft_engine_params_default(&p);
    p.kv_dtype = o->kv_dtype;
    p.n_ctx = n_ctx;
    p.n_slots = slots;
    p.n_kv_tokens = (int64_t)n_ctx * slots;
    *engine = (weft_engine_bytes){.size = sizeof *engine};
    weft_status st = weft_engine_count_bytes(outline, &p, engine, err);
    *needed = c->bytes.packed + c->bytes.own + c->bytes.steps + engine->pages + engine->scratch;
    return st;
}

/* The largest value in [0, most] for which there is room: of the context (slots 0), or of slots of c->n_ctx tokens. */
static weft_status most_of(const weft_model *outline, const fit_options *o, const fit_machine *m, const fit_case *c,
                           int slots, int32_t most, int32_t *out, weft_error *err)
{
    int32_t low = 0, high = most;
    while (low < high) {
        const int32_t middle = low + (high - low + 1) / 2;
        weft_engine_bytes engine;
        uint64_t needed;
        weft_status st = count(outline, o, c, slots ? c->n_ctx : middle, slots ? middle : 1, &engine, &needed, err);
        if (st) return st;
        if (needed <= m->room) low = middle;
        else high = middle - 1;
    }
    *out = low;
    return WEFT_OK;
}

static weft_status find_room(const weft_model *outline, const fit_options *o, const fit_machine *m, fit_case *c,
                             weft_error *err)
{
    if (o->n_ctx > c->info.n_ctx_max) /* without the remedy of other commands, which have rope's options */
        return weft_fail(err, WEFT_LIMIT, "a context of %d tokens: the model was trained for %d; give -c %d at most",
                         o->n_ctx, c->info.n_ctx_max, c->info.n_ctx_max);
    c->n_ctx = o->n_ctx ? o->n_ctx : c->info.n_ctx_max < DEFAULT_CTX ? c->info.n_ctx_max : DEFAULT_CTX;
    weft_status st = count(outline, o, c, c->n_ctx, 1, &c->engine, &c->needed, err);
    if (st) return st;
    c->fits = c->needed <= m->room;
    if ((st = most_of(outline, o, m, c, 0, c->info.n_ctx_max, &c->ctx_most, err))) return st;
    return most_of(outline, o, m, c, 1, WEFT_SLOTS_MAX, &c->slots_most, err);
}

/* ---- rates ---- */

/* Seconds that units of so many 10^9 operations per second need; where one is absent, float32 does its work. */
static double compute_s(const weft_step_cost *cost, double int8, double bf16, double f32)
{
    double s = 0;
    if (f32 <= 0) return 0;
    s += cost->int8_ops / ((int8 > 0 ? int8 : f32) * 1e9);
    s += cost->bf16_ops / ((bf16 > 0 ? bf16 : f32) * 1e9);
    return s + cost->f32_ops / (f32 * 1e9);
}

static double read_s(const weft_step_cost *cost, double gb_s)
{
    return gb_s > 0 ? (cost->weight_bytes + cost->kv_bytes) / (gb_s * 1e9) : 0;
}

/* Tokens per second of a step of n rows: at most where reading and multiplying overlap wholly in the best round, at
 * least where they do not in the worst. */
static fit_rate rate_of(const weft_step_cost *cost, int32_t n, const doctor_measured *m, double reads, double computes)
{
    const double read = read_s(cost, m->read_gb_s.most),
                 compute = compute_s(cost, m->int8_gops.most, m->bf16_gflops.most, m->f32_gflops.most),
                 fast = read > compute ? read : compute;
    const double slow = read_s(cost, m->read_gb_s.least) / reads +
                        compute_s(cost, m->l2_int8_gops.least, m->bf16_gflops.least, m->f32_gflops.least) / computes;
    return (fit_rate){slow > 0 ? n / slow : 0, fast > 0 ? n / fast : 0};
}

static uint64_t cache_bytes(const weft_machine *m)
{
    uint64_t bytes = 0;
    for (int i = 0; i < m->n_caches; i++)
        if (m->caches[i].level > 2) bytes += m->caches[i].bytes;
    return bytes;
}

static weft_status find_rates(const weft_model *outline, const fit_options *o, const fit_machine *m, fit_case *c,
                              weft_error *err)
{
    weft_step_cost one = {.size = sizeof one}, many = {.size = sizeof many};
    const int32_t last = c->info.n_ctx_max - 1, depth = o->depth < last ? o->depth : last,
                  rows = PROMPT < c->info.n_ctx_max ? PROMPT : c->info.n_ctx_max;
    weft_status st = weft_model_step_cost(outline, 1, depth, 1, 1, o->kv_dtype, &one, err);
    if (!st) st = weft_model_step_cost(outline, 1, 0, rows, 1, o->kv_dtype, &many, err);
    if (st) return st;
    c->generation = rate_of(&one, 1, &m->measured, GENERATION_REACHES, PROMPT_REACHES);
    c->prompt = rate_of(&many, rows, &m->measured, GENERATION_REACHES, PROMPT_REACHES);
    if (one.weight_bytes < (double)(CACHE_SHARE * cache_bytes(&m->machine))) c->generation.most = 0;
    return WEFT_OK;
}

weft_status fit_look(const weft_model *outline, const fit_options *o, const fit_machine *m, fit_case *c,
                     weft_error *err)
{
    c->info.size = sizeof c->info;
    c->bytes.size = sizeof c->bytes;
    weft_status st = weft_model_describe(outline, &c->info, err);
    if (!st) st = weft_model_count_bytes(outline, &c->bytes, err);
    if (!st) st = find_room(outline, o, m, c, err);
    if (!st) st = find_rates(outline, o, m, c, err);
    c->looked = !st;
    return st;
}

weft_status fit_look_at(const char *path, const fit_options *o, const fit_machine *m, fit_case *c, weft_error *err)
{
    weft_model *outline = NULL;
    weft_model_params p;
    weft_error own = {0};
    weft_model_params_default(&p);
    p.n_threads = o->threads;
    p.outline = 1;
    weft_status st = weft_model_open(path, &p, &outline, &own);
    if (!st) st = fit_look(outline, o, m, c, &own);
    weft_model_close(&outline);
    if (!st) return WEFT_OK;
    snprintf(c->why, sizeof c->why, "%.*s", FIT_WHY - 1, own.message);
    if (st != WEFT_NO_MEMORY && st != WEFT_CANCELLED) return WEFT_OK;
    *err = own;
    return st;
}

/* ---- the choice ---- */

static int is_float(const fit_case *c)
{
    static const char *const names[] = {"F16", "BF16", "F32"};
    for (int i = 0; i < 3; i++)
        if (!strcasecmp(c->label, names[i])) return 1;
    return 0;
}

static double middle(const fit_case *c)
{
    return c->generation.most > 0 ? (c->generation.least + c->generation.most) / 2 : c->generation.least;
}

/* Above this many bytes of a file there is nothing to gain where generation is slow. */
static uint64_t bytes_when_slow(const fit_case *cases, int n)
{
    static const char *const order[] = {"Q4_K_M", "Q4_K", "Q4_K_S", "Q4_0", "IQ4_XS", "IQ4_NL", "Q4_1"};
    for (size_t k = 0; k < sizeof order / sizeof *order; k++)
        for (int i = 0; i < n; i++)
            if (!strcasecmp(cases[i].label, order[k])) return cases[i].file_bytes;
    return UINT64_MAX;
}

static int counts(const fit_case *cases, int n, int i)
{
    int others = 0;
    for (int k = 0; k < n; k++) others += !is_float(&cases[k]);
    return !others || !is_float(&cases[i]);
}

/* The largest of those that fit and have at least that rate, and at most so many bytes; -1: none. */
static int largest(const fit_case *cases, int n, double rate, uint64_t bytes)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        const fit_case *c = &cases[i];
        if (!c->looked || !c->fits || !counts(cases, n, i) || c->file_bytes > bytes || middle(c) < rate) continue;
        if (best < 0 || c->file_bytes > cases[best].file_bytes) best = i;
    }
    return best;
}

const char *fit_bytes(uint64_t bytes, char text[FIT_BYTES])
{
    static const char *const units[] = {"KB", "MB", "GB", "TB"};
    double n = (double)bytes / 1e3;
    size_t i = 0;
    while (n >= 999.5 && i + 1 < sizeof units / sizeof *units) n /= 1e3, i++;
    snprintf(text, FIT_BYTES, n < 9.995 ? "%.2f %s" : n < 99.95 ? "%.1f %s" : "%.0f %s", n, units[i]);
    return text;
}

int fit_choose(const fit_case *cases, int n, const fit_machine *m, char why[FIT_WHY])
{
    char room[FIT_BYTES];
    fit_bytes(m->room, room);
    uint64_t least = UINT64_MAX;
    int i = largest(cases, n, FIT_FAST, UINT64_MAX), fast = i >= 0;
    if (i < 0) i = largest(cases, n, 0, bytes_when_slow(cases, n));
    if (i < 0) i = largest(cases, n, 0, UINT64_MAX);
    if (i >= 0) {
        const fit_case *c = &cases[i];
        char rate[64];
        if (!m->measured.n_threads) {
            snprintf(why, FIT_WHY, "%s: the best for its size that fits into %s with a context of %d tokens", c->label,
                     room, c->n_ctx);
            return i;
        }
        if (c->generation.most > 0)
            snprintf(rate, sizeof rate, "%.1f to %.1f", c->generation.least, c->generation.most);
        else snprintf(rate, sizeof rate, "%.1f or more", c->generation.least);
        snprintf(why, FIT_WHY,
                 fast ? "%s: the best that fits into %s with a context of %d tokens and generates at least %.0f "
                        "tokens/s here (%s expected)"
                      : "%s: the best for its size that fits into %s with a context of %d tokens; none generates "
                        "%.0f tokens/s here (%s expected)",
                 c->label, room, c->n_ctx, FIT_FAST, rate);
        return i;
    }
    for (int k = 0; k < n; k++) {
        const uint64_t needed = cases[k].looked ? cases[k].needed : cases[k].file_bytes;
        if (needed < least && !(cases[k].why[0] && !cases[k].looked)) least = needed;
    }
    if (least == UINT64_MAX) snprintf(why, FIT_WHY, "none can be run: %.200s", n ? cases[0].why : "");
    else {
        char needed[FIT_BYTES];
        snprintf(why, FIT_WHY, "none fits into %s: the smallest needs %s", room, fit_bytes(least, needed));
    }
    return -1;
}

int fit_may_be_chosen(const fit_case *cases, int n, int i, const fit_machine *m)
{
    if (cases[i].looked || cases[i].why[0] || cases[i].file_bytes > m->room || !counts(cases, n, i)) return 0;
    if (cases[i].file_bytes <= bytes_when_slow(cases, n)) return 1;
    for (int k = 0; k < n; k++) /* rates fall as sizes grow; what is far below the mark need not be looked at */
        if (cases[k].looked &&
            middle(&cases[k]) * (double)cases[k].file_bytes < 0.7 * FIT_FAST * (double)cases[i].file_bytes)
            return 0;
    return 1;
}
