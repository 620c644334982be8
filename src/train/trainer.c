// SPDX-License-Identifier: Apache-2.0
/* trainer.c: creating a trainer out of a model, and describing it (train.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "train/optimizer.h"

enum { MAX_ROWS = 65536, MAX_RANK = 1024 };

void weft__train_options_default(weft__train_options *o)
{
    *o = (weft__train_options){.max_rows = 512,
                               .lora_alpha = 16,
                               .optimizer = WEFT__TRAIN_ADAMW,
                               .lr = 1e-3f,
                               .schedule = WEFT__TRAIN_LR_COSINE,
                               .lr_floor = 0.1f,
                               .beta1 = 0.9f,
                               .beta2 = 0.95f,
                               .eps = 1e-8f,
                               .momentum = 0.9f,
                               .weight_decay = 0.01f,
                               .clip_norm = 1};
}

void *weft__train_own(weft__trainer *t, size_t n, size_t size)
{
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)(n ? n : 1), (uint64_t)size, &bytes) || bytes > SIZE_MAX / 2 ||
        !weft__grow(&t->blocks, &t->blocks_room, t->n_blocks + 1, sizeof *t->blocks))
        return NULL;
    void *p = weft__alloc_aligned(64, (size_t)bytes);
    if (!p) return NULL;
    memset(p, 0, (size_t)bytes);
    t->n_bytes += bytes;
    return t->blocks[t->n_blocks++] = p;
}

/* ---- options ---- */

static int in_range(double x, double from, double to)
{
    return x >= from && x <= to; /* not NaN */
}

static weft_status check_numbers(const weft__train_options *o, weft_error *err)
{
    const struct {
        const char *name;
        double value, from, to;
    } all[] = {
        {"lr", (double)o->lr, 0, 100},
        {"lr_floor", (double)o->lr_floor, 0, 1},
        {"beta1", (double)o->beta1, 0, 0.999999},
        {"beta2", (double)o->beta2, 0, 0.9999999},
        {"eps", (double)o->eps, 1e-30, 1},
        {"momentum", (double)o->momentum, 0, 0.999999},
        {"weight_decay", (double)o->weight_decay, 0, 100},
        {"clip_norm", (double)o->clip_norm, 0, 1e30},
        {"lora_alpha", (double)o->lora_alpha, -1e6, 1e6},
        {"n_threads", o->n_threads, 0, WEFT__POOL_MAX_THREADS},
        {"max_rows", o->max_rows, 1, MAX_ROWS},
        {"n_ctx", o->n_ctx, 0, 1 << 24},
        {"head_rows", o->head_rows, 0, MAX_ROWS},
        {"lora_rank", o->lora_rank, 0, MAX_RANK},
        {"n_warmup", (double)o->n_warmup, 0, 1e15},
        {"n_steps", (double)o->n_steps, 0, 1e15},
        {"optimizer", o->optimizer, WEFT__TRAIN_ADAMW, WEFT__TRAIN_MUON},
        {"l2_sp", (double)o->l2_sp, 0, 100},
        {"ewc", (double)o->ewc, 0, 1e9},
        {"norm_cap", (double)o->norm_cap, 0, 1e6},
        {"schedule", o->schedule, WEFT__TRAIN_LR_CONSTANT, WEFT__TRAIN_LR_ONE_CYCLE},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!in_range(all[i].value, all[i].from, all[i].to))
            return weft_fail(err, WEFT_ARGUMENT, "%s is %g; it must be between %g and %g", all[i].name, all[i].value,
                             all[i].from, all[i].to);
    if (o->schedule != WEFT__TRAIN_LR_CONSTANT && o->n_steps < 1)
        return weft_fail(err, WEFT_ARGUMENT, "this learning rate schedule needs the number of steps");
    return WEFT_OK;
}

/* ---- creating ---- */

float weft__train_lora_scale(const weft__train_options *o)
{
    if (o->lora_rank <= 0) return 0;
    return o->lora_alpha / (o->lora_rs ? sqrtf((float)o->lora_rank) : (float)o->lora_rank);
}

/* The context that rope is made for: the option's, or the model's own as far as a batch can use it. */
static weft_status choose_context(weft__trainer *t, int32_t *n_ctx, weft_error *err)
{
    char arch[64];
    int32_t own = t->o.max_rows;
    weft_status st = weft__source_string(&t->src, NULL, "general.architecture", 1, arch, sizeof arch, err);
    if (!st) st = weft__source_i32(&t->src, arch, ".context_length", 0, 1, INT32_MAX, &own, err);
    *n_ctx = t->o.n_ctx ? t->o.n_ctx : own < t->o.max_rows ? own : t->o.max_rows;
    return st;
}

static weft_status columns(weft__trainer *t, weft_error *err)
{
    size_t n = (size_t)t->max_rows;
    t->begin = weft__train_own(t, n + 1, sizeof *t->begin);
    t->pos = weft__train_own(t, n, sizeof *t->pos);
    t->wanted = weft__train_own(t, n, sizeof *t->wanted);
    t->weight = weft__train_own(t, n, sizeof *t->weight);
    t->logp = weft__train_own(t, n, sizeof *t->logp);
    t->slope = weft__train_own(t, n, sizeof *t->slope);
    t->told = weft__train_own(t, n, sizeof *t->told);
    t->anchored = weft__train_own(t, n, sizeof *t->anchored);
    t->pair_sums = weft__train_own(t, n / 2 + 1, sizeof *t->pair_sums);
    t->partial = weft__train_own(t, (size_t)t->n_floats / WEFT__TRAIN_SQUARES_PART + 1, sizeof *t->partial);
    t->likeliest = weft__train_own(t, n, sizeof *t->likeliest);
    const void *const all[] = {t->likeliest, t->begin, t->pos,      t->wanted,    t->weight, t->logp,
                               t->slope,     t->told,  t->anchored, t->pair_sums, t->partial};
    size_t there = 0;
    while (there < sizeof all / sizeof *all && all[there]) there++;
    if (there == sizeof all / sizeof *all) return WEFT_OK;
    return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to train it", t->src.label);
}

static weft_status open_model(weft__trainer *t, weft_error *err)
{
    weft__build build;
    weft_status st;
    if ((st = choose_context(t, &t->n_ctx, err)) ||
        (st = weft__model_build(&t->src, t->n_ctx, NULL, &t->hp, &build, &t->graph, err)))
        return st;
    if (t->n_ctx > t->max_rows) t->n_ctx = t->max_rows;
    if ((st = weft__tier_mask_for(getenv("WEFT_CPU"), &(uint32_t){0}, err))) return st; /* none wants hours on ref */
    if ((st = weft__pool_create(t->o.n_threads, &t->pool, err))) return st;
    t->n_threads = weft__pool_size(t->pool);
    t->k = weft__kernels_get(weft__tier_mask());
    if ((st = weft__train_params(t, err)) || (st = weft__train_layout(t, err)) || (st = weft__train_cap_open(t, err)))
        return st;
    t->n_frozen = (uint64_t)build.n_params - (t->o.lora_rank > 0 ? 0 : (uint64_t)t->n_floats);
    return columns(t, err);
}

weft_status weft__trainer_create(const weft__source *src, const weft__train_options *options, weft__trainer **out,
                                 weft_error *err)
{
    *out = NULL;
    weft_status st = check_numbers(options, err);
    if (st) return st;
    weft__trainer *t = weft__alloc_zero(1, sizeof *t);
    if (!t) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to train it", src->label);
    t->o = *options;
    t->src = *src;
    t->max_rows = options->max_rows;
    t->adapter_on = 1;
    t->lora_scale = weft__train_lora_scale(&t->o);
    if (options->lora_targets && !(t->targets = weft__strdup(options->lora_targets)))
        st = weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to train it", src->label);
    t->o.lora_targets = t->targets;
    if (!st) st = open_model(t, err);
    if (st) weft__trainer_destroy(&t);
    *out = t;
    return st;
}

void weft__trainer_destroy(weft__trainer **pt)
{
    weft__trainer *t = pt ? *pt : NULL;
    if (!t) return;
    weft__train_multiplier_destroy(&t->x);
    weft__free(t->embedded);
    for (size_t i = t->n_blocks; i-- > 0;) weft__free(t->blocks[i]);
    weft__free(t->blocks);
    weft_buffer_release(&t->arena);
    weft_buffer_release(&t->values);
    weft__pool_destroy(&t->pool);
    weft__graph_destroy(&t->graph);
    weft__free(t->targets);
    weft__free(t);
    *pt = NULL;
}

/* ---- describing ---- */

int64_t weft__trainer_steps(const weft__trainer *t)
{
    return t->step;
}

void weft__trainer_describe(const weft__trainer *t, weft__trainer_info *out)
{
    *out = (weft__trainer_info){.n_vocab = t->hp.n_vocab,
                                .n_ctx = t->n_ctx,
                                .max_rows = t->max_rows,
                                .n_layers = t->hp.n_layers,
                                .n_threads = t->n_threads,
                                .n_params = (uint64_t)t->n_floats,
                                .n_frozen = t->n_frozen,
                                .n_bytes = t->n_bytes};
    snprintf(out->arch, sizeof out->arch, "%s", t->hp.arch);
}

size_t weft__trainer_n_params(const weft__trainer *t)
{
    return (size_t)t->n_params;
}

weft__train_param weft__trainer_param(const weft__trainer *t, size_t i)
{
    const struct weft__trainer_weight *p = &t->params[i];
    return (weft__train_param){p->name, p->n_dims, {(uint64_t)p->d[0], (uint64_t)p->d[1]}, p->data, p->grad};
}

void weft__trainer_set_param(weft__trainer *t, size_t i, const float *values)
{
    const struct weft__trainer_weight *p = &t->params[i];
    memcpy(p->data, values, (size_t)p->n * sizeof *values);
    if (t->start && t->step == 0) memcpy(t->start + (p->data - t->data), values, (size_t)p->n * sizeof *values);
}

/* ---- the limit ---- */

struct spin {
    double (*fn)(int ms);
    int ms;
    double *result; /* [threads] */
};

static void run_spin(void *arg, int thread, int n_threads)
{
    struct spin *s = arg;
    (void)n_threads;
    s->result[thread] = s->fn(s->ms);
}

double weft__trainer_peak(weft__trainer *t, int ms)
{
    weft__peak_kernels peak;
    double result[WEFT__POOL_MAX_THREADS], sum = 0;
    weft__peak_kernels_get(weft__tier_mask(), &peak);
    const int rounded = t->o.lora_rank > 0 && !t->o.exact && peak.bf16_dot;
    weft__pool_run(t->pool, run_spin, &(struct spin){rounded ? peak.bf16_dot : peak.f32_fma, ms, result});
    for (int i = 0; i < t->n_threads; i++) sum += result[i];
    return sum;
}
