// SPDX-License-Identifier: Apache-2.0
/* model.c: weft_model: from a file, or a synthetic shape, to a plan that can run.
 * Loading is one thread's; afterwards the model is read-only: what steps write is their callers'. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/text.h"
#include "engine/handles.h"
#include "weft/version.h"

_Static_assert(WEFT_THREADS_MAX == WEFT__POOL_MAX_THREADS, "weft.h tells the limit of the pool");

enum { MAX_ROWS = 1 << 16 };

const char *weft_version(void)
{
    return WEFT_VERSION;
}

void(weft_model_params_default)(weft_model_params *p)
{
    *p = (weft_model_params){.size = sizeof *p};
}

void weft_model_params_init(weft_model_params *params, uint32_t size)
{
    weft_model_params own;
    (weft_model_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_model_params), params, size, &own);
}

/* The parameters that were given, over the defaults. */
static weft_status read_params(const weft_model_params *given, weft_model_params *p, weft_error *err)
{
    weft_model_params_default(p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_model_params), p, given, err);
    if (st) return st;
    if (p->n_threads < 0 || p->n_threads > WEFT_THREADS_MAX)
        return weft_fail(err, WEFT_ARGUMENT, "%d threads: give a number from 1 to %d, or 0 to have it chosen",
                         p->n_threads, WEFT_THREADS_MAX);
    if (p->max_rows < 0 || p->max_rows > MAX_ROWS)
        return weft_fail(err, WEFT_ARGUMENT, "%d rows per step; at most %d", p->max_rows, MAX_ROWS);
    if (p->n_ctx < 0) return weft_fail(err, WEFT_ARGUMENT, "a context of %d tokens", p->n_ctx);
    if (p->outline < 0 || p->outline > 1)
        return weft_fail(err, WEFT_ARGUMENT, "outline is %d; it must be 0 or 1", p->outline);
    return WEFT_OK;
}

/* The type that most bytes of matrices have, and the sizes. */
static void describe_weights(weft_model *m, const weft__build *build)
{
    uint64_t bytes[64] = {0}, best = 0;
    snprintf(m->info.type, sizeof m->info.type, "none");
    for (int32_t i = 0; i < m->graph->n_weights; i++) {
        const weft_weight *w = &m->graph->weights[i];
        uint64_t n = w->row_bytes * (uint64_t)w->shape.d[1] * (uint64_t)w->shape.d[2];
        if (w->shape.n_dims < 2 || w->dtype >= 64) continue;
        bytes[w->dtype] += n;
        if (bytes[w->dtype] > best) {
            best = bytes[w->dtype];
            snprintf(m->info.type, sizeof m->info.type, "%s", weft_dtype_describe(w->dtype).name);
        }
    }
    m->info.n_params = (uint64_t)build->n_params;
}

static weft_status describe(weft_model *m, const weft__build *build, weft_error *err)
{
    weft_model_info *info = &m->info;
    const weft__hparams *hp = &m->hp;
    weft_backend_info b = {.size = sizeof b};
    weft_status st = m->provider->api->describe(m->provider->backend, &b, err);
    if (st) return st;
    info->n_vocab = hp->n_vocab;
    info->n_ctx_train = hp->n_ctx_train;
    info->n_ctx_max = hp->n_ctx_max;
    info->n_layers = hp->n_layers;
    info->n_heads = hp->n_heads;
    info->n_kv_heads = hp->n_kv_heads;
    info->d_model = hp->d_model;
    info->d_ff = hp->d_ff;
    info->n_threads = b.n_units;
    info->n_bytes = m->file ? weft__engine_file_bytes(m->file) : weft__synthetic_bytes(m->synthetic);
    snprintf(info->arch, sizeof info->arch, "%s", hp->arch);
    snprintf(info->provider, sizeof info->provider, "%.30s%s%.30s", b.name, m->plugin ? "+" : "",
             m->plugin ? m->plugin->api->name : "");
    snprintf(info->device, sizeof info->device, "%s", b.device);
    if (weft__source_string(&m->source, NULL, "general.name", 1, info->name, sizeof info->name, NULL) != WEFT_OK) {
        size_t n;
        const char *last = weft__path_last(m->source.label, &n);
        snprintf(info->name, sizeof info->name, "%.*s", (int)n, last);
    }
    describe_weights(m, build);
    return WEFT_OK;
}

const weft_image *weft__engine_model_image(const weft_model *m)
{
    return m->file && m->file->plan ? &weft__plan_file_info(m->file->plan)->image : NULL;
}

static weft_status open_cpu(const weft_model_params *p, weft__provider **out, weft_error *err)
{
    char options[48];
    snprintf(options, sizeof options, "threads=%d,shared=%d", p->n_threads > 0 ? p->n_threads : 0,
             p->share_threads != 0);
    return weft__provider_open("cpu", p->n_threads > 0 || p->share_threads ? options : NULL, out, err);
}

static weft_status open_providers(weft_model *m, const weft_model_params *p, weft_error *err)
{
    weft_status st = open_cpu(p, &m->provider, err);
    if (st || !p->provider || !strcmp(p->provider, "cpu")) return st;
    if (weft__engine_model_image(m))
        return weft_fail(
            err, WEFT_UNSUPPORTED,
            "%s: a compiled plan is packed for the CPU alone; give the model that it was made from, or no provider",
            m->source.label);
    return weft__provider_open(p->provider, NULL, &m->plugin, err);
}

static weft_status make_plan(weft_model *m, const weft_model_params *p, weft_error *err)
{
    weft_status st = open_providers(m, p, err);
    if (st) return st;
    m->max_rows = p->max_rows > 0 ? p->max_rows : WEFT_ROWS_DEFAULT;
    m->outline = p->outline;
    m->max_wanted = m->max_rows < WEFT_SLOTS_MAX ? m->max_rows : WEFT_SLOTS_MAX;
    weft__plan_options plan = {.max_rows = m->max_rows,
                               .max_wanted = m->max_wanted,
                               .providers = (weft__provider *const[]){m->provider, m->plugin},
                               .n_providers = m->plugin ? 2 : 1,
                               .progress = p->progress,
                               .progress_arg = p->progress_arg,
                               .image = weft__engine_model_image(m),
                               .outline = p->outline};
    if (plan.image && (st = weft__engine_plan_for(m->file->plan, m->graph, &m->source, m->provider->api->name, err))) {
        m->has_old_plan = 1;
        return st;
    }
    st = weft__plan_create(m->graph, &plan, &m->plan, err);
    if (st == WEFT_OK) return st;
    m->has_old_plan = plan.image && st == WEFT_UNSUPPORTED; /* its layout is another one */
    int again = plan.image && st != WEFT_NO_MEMORY && st != WEFT_CANCELLED;
    return weft_fail_within(err, st, again ? "%s: compile the model again (weft compile)" : "%s", m->source.label);
}

weft_status weft__engine_model_context(const weft_model *m, int32_t n_ctx, weft_error *err)
{
    const weft__hparams *hp = &m->hp;
    char label[WEFT__NAME_SHOW * 2];
    if (n_ctx <= hp->n_ctx_max) return WEFT_OK;
    weft__name_show_path(label, m->source.label);
    if (hp->n_ctx_max == hp->n_ctx_train)
        return weft_fail(
            err, WEFT_LIMIT,
            "a context of %d tokens: %s was trained for %d; ask for no more, or stretch it (--rope-scaling yarn "
            "--rope-scale %d)",
            n_ctx, label, hp->n_ctx_max, (n_ctx - 1) / hp->n_ctx_max + 1);
    return weft_fail(err, WEFT_LIMIT,
                     "a context of %d tokens: the rope scaling of %s reaches %d; ask for no more, or stretch it "
                     "further (--rope-scale)",
                     n_ctx, label, hp->n_ctx_max);
}

/* What opening a file and making a synthetic model have in common, once m->source is set. */
static weft_status finish_open(weft_model *m, const weft_model_params *p, uint64_t start, weft_error *err)
{
    weft__build build;
    weft_status st = weft__model_build(&m->source, p->n_ctx, &p->rope, &m->hp, &build, &m->graph, err);
    if (!st) st = weft__engine_model_context(m, p->n_ctx, err);
    if (st) return st;
    if (m->tokenizer && weft_tokenizer_n_vocab(m->tokenizer) > m->hp.n_vocab)
        return weft_fail(err, WEFT_FORMAT, "%s: the tokenizer has %d tokens, token_embd.weight only %d rows",
                         m->source.label, weft_tokenizer_n_vocab(m->tokenizer), m->hp.n_vocab);
    if ((st = weft__engine_model_base(m, err)) || (st = make_plan(m, p, err)) || (st = describe(m, &build, err)))
        return st;
    m->held = weft__engine_weights_bytes(m);
    weft__engine_model_drop_file(m);
    m->info.load_ms = (double)(weft__clock_ns() - start) / 1e6;
    return WEFT_OK;
}

/* A model may do without one. */
static weft_status open_tokenizer(weft_model *m, weft_error *err)
{
    weft_error why = {0};
    weft_status st = weft_tokenizer_open(m->file, &m->tokenizer, &why);
    if (st == WEFT_OK || st == WEFT_NOT_FOUND) return WEFT_OK;
    if (err) *err = why;
    return st;
}

static weft_model *model_new(void)
{
    weft_model *m = weft__alloc_zero(1, sizeof *m);
    if (!m) return NULL;
    pthread_mutex_init(&m->profiling, NULL);
    pthread_mutex_init(&m->rows.lock, NULL);
    return m;
}

/* *is_old becomes 1 where it is a plan that could be made again. */
static weft_status open_once(const char *path, const weft_model_params *p, weft_model **out, int *is_old,
                             weft_error *err)
{
    uint64_t start = weft__clock_ns();
    weft_status st;
    weft_model *m = model_new();
    if (!m) return weft_fail(err, WEFT_NO_MEMORY, "no memory to open %s", path);
    if ((st = weft_file_open(path, &m->file, err))) {
        *is_old = st == WEFT_UNSUPPORTED; /* if it is one at all */
        goto fail;
    }
    if ((st = open_tokenizer(m, err))) goto fail;
    if (m->file->hf)
        st = p->outline ? weft__hf_outline(m->file->hf, err)
                        : weft__hf_load(m->file->hf, p->progress, p->progress_arg, err);
    if (st) goto fail;
    weft__engine_file_source(m->file, &m->source);
    if ((st = finish_open(m, p, start, err))) goto fail;
    *out = m;
    return WEFT_OK;
fail:
    *is_old |= m->has_old_plan;
    weft_model_close(&m);
    return st;
}

static weft_status open_file(const char *path, const weft_model_params *p, weft_model **out, weft_error *err)
{
    int is_old = 0;
    weft_error why = {0};
    weft_status st = open_once(path, p, out, &is_old, &why);
    if (st && is_old && p->renew_plan && !(st = weft__engine_plan_renew(path, p, &why)))
        st = open_once(path, p, out, &is_old, &why);
    if (st && err) *err = why;
    return st;
}

typedef struct model_opening {
    const char *path;
    const weft_model_params *params;
    weft_model **out;
    weft_error *err;
    weft_status status;
} model_opening;

static void open_behind(void *arg)
{
    model_opening *o = arg;
    o->status = open_file(o->path, o->params, o->out, o->err);
}

weft_status weft_model_open(const char *path, const weft_model_params *params, weft_model **out, weft_error *err)
{
    weft_model_params p;
    *out = NULL;
    weft_status st = read_params(params, &p, err);
    if (st || !p.in_background) return st ? st : open_file(path, &p, out, err);
    model_opening o = {path, &p, out, err, WEFT_OK};
    weft__background_run(open_behind, &o);
    return o.status;
}

weft_status weft_model_synthetic(const char *shape, uint32_t dtype, const weft_model_params *params, weft_model **out,
                                 weft_error *err)
{
    uint64_t start = weft__clock_ns();
    weft_model_params own, *p = &own;
    *out = NULL;
    weft_status st = read_params(params, p, err);
    if (st) return st;
    weft_model *m = model_new();
    if (!m) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a synthetic model");
    st = p->outline ? weft__synthetic_outline(shape, dtype, &m->synthetic, err)
                    : weft__synthetic_create(shape, dtype, p->progress, p->progress_arg, &m->synthetic, err);
    if (st) goto fail;
    weft__synthetic_source(m->synthetic, &m->source);
    if ((st = finish_open(m, p, start, err))) goto fail;
    *out = m;
    return WEFT_OK;
fail:
    weft_model_close(&m);
    return st;
}

void weft_model_close(weft_model **p)
{
    weft_model *m = p ? *p : NULL;
    if (!m) return;
    weft__free(m->plan_text);
    weft__profile_free(&m->profile);
    weft__plan_destroy(&m->plan);
    weft__provider_close(&m->plugin);
    weft__provider_close(&m->provider);
    weft__adapt_base_free(&m->base);
    weft__graph_destroy(&m->graph);
    weft_tokenizer_close(&m->tokenizer);
    weft__synthetic_destroy(&m->synthetic);
    weft_file_close(&m->file);
    pthread_mutex_destroy(&m->rows.lock);
    pthread_mutex_destroy(&m->profiling);
    weft__free(m);
    *p = NULL;
}

weft_status weft_model_describe(const weft_model *m, weft_model_info *out, weft_error *err)
{
    return weft__params_write(WEFT__PARAMS_TYPE(weft_model_info), out, &m->info, err);
}

const weft_file *weft_model_file(const weft_model *m)
{
    return m->file;
}

const weft_tokenizer *weft_model_tokenizer(const weft_model *m)
{
    return m->tokenizer;
}

const char *weft_model_plan_text(weft_model *m)
{
    if (!m->plan_text) m->plan_text = weft__plan_describe(m->plan);
    return m->plan_text ? m->plan_text : "";
}

weft_status weft__engine_steps_init(const weft_model *m, weft__engine_steps *s, weft_error *err)
{
    s->state = NULL;
    if (m->outline)
        return weft_fail(err, WEFT_STATE, "%s was opened as an outline: it has no weights to run with",
                         m->source.label);
    weft_status st = weft__graph_batch_init(&s->batch, m->max_rows, m->hp.d_model, err);
    if (!st && (st = weft__plan_state_new(m->plan, &s->state, err))) weft__engine_steps_free(s);
    return st;
}

void weft__engine_steps_free(weft__engine_steps *s)
{
    weft__plan_state_free(&s->state);
    weft__graph_batch_free(&s->batch);
}

weft_status weft__engine_step(weft_model *m, weft__engine_steps *s, const weft_kv_binding *kv, float *logits,
                              weft_error *err)
{
    float *outputs[] = {logits, s->batch.hidden};
    weft_status st = WEFT_OK;
    int recorded = 0;
    if (atomic_load_explicit(&m->profiled, memory_order_relaxed)) {
        pthread_mutex_lock(&m->profiling);
        recorded = atomic_load(&m->profiled); /* it may have ended since */
        if (recorded) st = weft__profile_run(m->profile, s->state, &s->batch.rows, kv, outputs, err);
        pthread_mutex_unlock(&m->profiling);
    }
    return recorded ? st : weft__plan_run(s->state, &s->batch.rows, kv, outputs, err);
}

weft_status weft_model_measure(weft_model *m, weft_peaks *out, weft_error *err)
{
    const weft_backend_api *api = m->provider->api;
    if (!api->measure) return weft_fail(err, WEFT_UNSUPPORTED, "provider %s cannot measure its limits", api->name);
    weft_peaks own = {.size = sizeof own};
    own.brief = out->brief;
    weft_status st = api->measure(m->provider->backend, &own, err);
    return st ? st : weft__params_write(WEFT__PARAMS_TYPE(weft_peaks), out, &own, err);
}
