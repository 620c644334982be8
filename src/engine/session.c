// SPDX-License-Identifier: Apache-2.0
/* session.c: weft_session: one sequence, its pages, and the loop over steps.
 * Owner: the thread that steps the model; weft_session_cancel may come from anywhere. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/drafter.h"
#include "engine/fill.h"
#include "engine/handles.h"

enum { DEFAULT_CTX = 4096 };

void(weft_session_params_default)(weft_session_params *p)
{
    *p = (weft_session_params){.size = sizeof *p, .kv_dtype = WEFT_F16};
}

void weft_session_params_init(weft_session_params *params, uint32_t size)
{
    weft_session_params own;
    (weft_session_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_session_params), params, size, &own);
}

static void free_shared(struct weft__engine_shared_pool *shared)
{
    weft__kv_pool_destroy(&shared->pool);
    weft__engine_steps_free(&shared->steps);
    weft__free(shared);
}

/* Pages for n sessions of n_ctx tokens each, and the rows of their steps. */
static weft_status make_shared(weft_model *model, uint32_t dtype, int32_t n_ctx, int32_t n,
                               struct weft__engine_shared_pool **out, weft_error *err)
{
    const weft_graph *g = model->graph;
    weft_status st = WEFT_OK;
    struct weft__engine_shared_pool *shared = weft__alloc_zero(1, sizeof *shared);
    int32_t *n_pages = weft__alloc_array((size_t)g->n_kv_groups, sizeof *n_pages);
    if (!shared || !n_pages) {
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a session");
        goto done;
    }
    for (int32_t i = 0; i < g->n_kv_groups; i++) {
        int64_t pages = (int64_t)weft__kv_pages_needed(&g->kv_groups[i], n_ctx, model->max_rows) * n;
        if (pages > INT32_MAX) {
            st = weft_fail(err, WEFT_LIMIT, "%d sessions of %d tokens are more pages than can be counted", n, n_ctx);
            goto done;
        }
        n_pages[i] = (int32_t)pages;
    }
    if (!(st = weft__engine_steps_init(model, &shared->steps, err)))
        st = weft__kv_pool_create(g->kv_groups, g->n_kv_groups, n_pages, dtype, &shared->pool, err);
done:
    weft__free(n_pages);
    if (st && shared) free_shared(shared);
    *out = st ? NULL : shared;
    return st;
}

static weft_status new_session(weft_model *model, const weft_session_params *p, int32_t n_ctx,
                               struct weft__engine_shared_pool *shared, weft_session **out, weft_error *err)
{
    weft_session *s = weft__alloc_zero(1, sizeof *s);
    if (!s) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a session");
    s->model = model;
    s->shared = shared;
    s->n_ctx = n_ctx;
    s->chunk = p->chunk > 0 ? p->chunk : model->max_rows;
    s->draft.small = p->draft;
    atomic_init(&s->cancelled, 0);
    s->tokens = weft__alloc_array((size_t)n_ctx, sizeof *s->tokens);
    weft_status st = s->tokens ? weft__kv_seq_create(shared->pool, n_ctx, &s->seq, err)
                               : weft_fail(err, WEFT_NO_MEMORY, "no memory for a session");
    if (st) {
        weft__free(s->tokens);
        weft__free(s);
        return st;
    }
    shared->n_sessions++;
    *out = s;
    return WEFT_OK;
}

weft_status weft_session_new_group(weft_model *model, const weft_session_params *params, int32_t n, weft_session **out,
                                   weft_error *err)
{
    weft_session_params own, *p = &own;
    for (int32_t i = 0; i < n; i++) out[i] = NULL;
    weft_session_params_default(p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_session_params), p, params, err);
    if (st) return st;
    if (n < 1 || n > model->max_rows)
        return weft_fail(err, WEFT_ARGUMENT, "%d sessions; this model was opened for steps of at most %d rows", n,
                         model->max_rows);
    if (p->n_ctx < 0) return weft_fail(err, WEFT_ARGUMENT, "a context of %d tokens", p->n_ctx);
    if ((st = weft__engine_model_context(model, p->n_ctx, err))) return st;
    if (p->chunk < 0 || p->chunk > model->max_rows)
        return weft_fail(err, WEFT_ARGUMENT, "chunks of %d rows; this model was opened for at most %d", p->chunk,
                         model->max_rows);
    if (p->draft && (st = weft__engine_drafter_fits(model, p->draft, err))) return st;
    int32_t n_ctx = p->n_ctx > 0 ? p->n_ctx : model->hp.n_ctx < DEFAULT_CTX ? model->hp.n_ctx : DEFAULT_CTX;
    struct weft__engine_shared_pool *shared;
    if ((st = make_shared(model, p->kv_dtype, n_ctx, n, &shared, err))) return st;
    for (int32_t i = 0; i < n && !st; i++) st = new_session(model, p, n_ctx, shared, &out[i], err);
    if (!st) return WEFT_OK;
    if (shared->n_sessions == 0) free_shared(shared);
    for (int32_t i = 0; i < n; i++) weft_session_free(&out[i]);
    return st;
}

weft_status weft_session_new(weft_model *model, const weft_session_params *p, weft_session **out, weft_error *err)
{
    return weft_session_new_group(model, p, 1, out, err);
}

void weft_session_free(weft_session **p)
{
    weft_session *s = p ? *p : NULL;
    if (!s) return;
    weft__draft_history_free(&s->draft.history);
    weft__engine_drafter_text_free(&s->draft.text);
    weft__engine_drafter_free(&s->draft.model);
    weft__plan_adapter_free(&s->adapter);
    weft__kv_seq_destroy(&s->seq);
    if (--s->shared->n_sessions == 0) free_shared(s->shared);
    weft__free(s->tokens);
    weft__free(s);
    *p = NULL;
}

int32_t weft_session_n_tokens(const weft_session *s)
{
    return weft__kv_seq_length(s->seq);
}

int32_t weft_session_n_ctx(const weft_session *s)
{
    return s->n_ctx;
}

int32_t weft_session_trim(weft_session *s, int32_t n)
{
    return weft__kv_seq_trim(s->seq, n);
}

void weft_session_cancel(weft_session *s)
{
    atomic_store(&s->cancelled, 1);
}

/* Its pages have n tokens more. */
static void hold(weft_session *s, const int32_t *tokens, int32_t n)
{
    memcpy(s->tokens + weft__kv_seq_length(s->seq), tokens, (size_t)n * sizeof *tokens);
    weft__kv_seq_advance(s->seq, n);
}

/* Adds a session's rows: n tokens behind those that it holds, of which the last `wanted` get logits. */
static void add_rows(weft__graph_batch *b, const weft_session *s, const int32_t *tokens, int32_t n, int32_t wanted)
{
    const int32_t past = weft__kv_seq_length(s->seq);
    weft__graph_batch_add_sequence(b, weft__kv_seq_view(s->seq), s->adapter);
    for (int32_t i = 0; i < n; i++)
        weft__graph_batch_add_row(b, tokens[i], past + i, i >= n - wanted ? WEFT_WANT_LOGITS : 0);
}

/* One step of n rows; `wanted` of them, the last ones, get logits. */
static weft_status step(weft_session *s, const int32_t *tokens, int32_t n, int32_t wanted, float *logits,
                        weft_error *err)
{
    weft__graph_batch *batch = &s->shared->steps.batch;
    weft_status st = weft__kv_seq_reserve(s->seq, n, err);
    if (st) return st;
    weft__graph_batch_clear(batch);
    add_rows(batch, s, tokens, n, wanted);
    st = weft__engine_step(s->model, &s->shared->steps, weft__kv_pool_bindings(s->shared->pool), logits, err);
    if (!st) hold(s, tokens, n);
    return st;
}

weft_status weft_session_eval_group(weft_session *const *sessions, const int32_t *tokens, int32_t n, float *logits,
                                    weft_error *err)
{
    if (n < 1) return weft_fail(err, WEFT_ARGUMENT, "%d sessions to step", n);
    weft_model *m = sessions[0]->model;
    struct weft__engine_shared_pool *shared = sessions[0]->shared;
    if (n > m->max_rows || (logits && n > m->max_wanted))
        return weft_fail(err, WEFT_ARGUMENT, "%d sessions to step; at most %d", n,
                         logits ? m->max_wanted : m->max_rows);
    weft_status st;
    shared->n_steps++;
    weft__graph_batch_clear(&shared->steps.batch);
    for (int32_t i = 0; i < n; i++) {
        if (sessions[i]->shared != shared) return weft_fail(err, WEFT_ARGUMENT, "session %d is of another group", i);
        if (sessions[i]->group_step == shared->n_steps)
            return weft_fail(err, WEFT_ARGUMENT, "session %d is there twice", i);
        sessions[i]->group_step = shared->n_steps;
        if (tokens[i] < 0 || tokens[i] >= m->hp.n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "token %d for session %d: the model has ids 0 to %d", tokens[i], i,
                             m->hp.n_vocab - 1);
        if ((st = weft__kv_seq_reserve(sessions[i]->seq, 1, err))) return st;
        add_rows(&shared->steps.batch, sessions[i], &tokens[i], 1, logits != NULL);
    }
    st = weft__engine_step(m, &shared->steps, weft__kv_pool_bindings(shared->pool), logits, err);
    for (int32_t i = 0; i < n && !st; i++) hold(sessions[i], &tokens[i], 1);
    return st;
}

weft_status weft_session_eval(weft_session *s, const int32_t *tokens, int32_t n, int all_logits, float *logits,
                              weft_error *err)
{
    weft_model *m = s->model;
    int32_t chunk = s->chunk;
    if (n < 1) return weft_fail(err, WEFT_ARGUMENT, "%d tokens to evaluate", n);
    for (int32_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= m->hp.n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "token %d at place %d: the model has ids 0 to %d", tokens[i], i,
                             m->hp.n_vocab - 1);
    if (n > s->n_ctx - weft__kv_seq_length(s->seq))
        return weft_fail(err, WEFT_LIMIT, "%d tokens do not fit: %d of the context's %d are used; %s", n,
                         weft__kv_seq_length(s->seq), s->n_ctx,
                         s->n_ctx < m->hp.n_ctx_max
                             ? "use a larger -c"
                             : "that is all the model was made for: give it less to read, or begin anew");
    if (all_logits && chunk > m->max_wanted) chunk = m->max_wanted;
    for (int32_t done = 0, k; done < n; done += k) {
        if (atomic_exchange(&s->cancelled, 0))
            return weft_fail(err, WEFT_CANCELLED, "cancelled after %d of %d tokens", done, n);
        k = n - done < chunk ? n - done : chunk;
        int32_t wanted = !logits ? 0 : all_logits ? k : done + k == n;
        float *out = all_logits && logits ? logits + (size_t)done * (size_t)m->hp.n_vocab : logits;
        weft_status st = step(s, tokens + done, k, wanted, out, err);
        if (st) return st;
    }
    return WEFT_OK;
}

weft_status weft__engine_session_fill(weft_session *s, const int32_t *tokens, int32_t n, int32_t n_read,
                                      weft_error *err)
{
    weft_status st = weft_session_eval(s, tokens, n < n_read ? n : n_read, 0, NULL, err);
    if (st || n <= n_read) return st;
    if (n > s->n_ctx) return weft_fail(err, WEFT_LIMIT, "%d tokens do not fit into a context of %d", n, s->n_ctx);
    st = weft__kv_seq_repeat(s->seq, n - n_read, err);
    if (!st) memcpy(s->tokens + n_read, tokens + n_read, (size_t)(n - n_read) * sizeof *tokens);
    return st;
}

enum { MOST_ADAPTERS = 64 };

/* By their paths; those of weight 0 only where there are no others. */
static void name_all(const weft_adapter_use *uses, int32_t n, char *out, size_t size)
{
    char shown[MOST_ADAPTERS][WEFT__NAME_SHOW * 2];
    const char *names[MOST_ADAPTERS];
    int32_t used = 0, named = 0;
    for (int32_t i = 0; i < n; i++) used += uses[i].scale != 0;
    for (int32_t i = 0; i < n; i++)
        if (!used || uses[i].scale != 0) {
            names[named] = weft__name_show_path(shown[named], uses[i].file->a->label);
            named++;
        }
    weft__adapt_name_all(names, named, out, size);
}

weft_status weft_session_set_adapters(weft_session *s, const weft_adapter_use *uses, int32_t n, weft_error *err)
{
    enum { MOST = MOST_ADAPTERS };
    char shown[WEFT__NAME_SHOW * 2], named[sizeof s->adapters] = "";
    weft__adapt_use stack[MOST];
    weft__adapt_woven woven;
    weft_adapter *adapter = NULL;
    weft_status st;
    if (weft__kv_seq_length(s->seq) > 0)
        return weft_fail(err, WEFT_STATE,
                         "the session holds tokens that were computed without these adapters; trim it to 0 first");
    if (n < 0 || n > MOST) return weft_fail(err, WEFT_ARGUMENT, "%d adapters; at most %d", n, MOST);
    for (int32_t i = 0; i < n; i++) {
        if (!isfinite(uses[i].scale)) return weft_fail(err, WEFT_ARGUMENT, "adapter %d: its scale must be finite", i);
        if ((st = weft__adapt_check(uses[i].file->a, &s->model->base, err))) return st;
        if ((st = weft__adapt_check_values(uses[i].file->a, uses[i].scale, err)))
            return weft_fail_within(err, st, "adapter %s", weft__name_show_path(shown, uses[i].file->a->label));
        stack[i] = (weft__adapt_use){uses[i].file->a, uses[i].scale};
    }
    if (n > 0) {
        name_all(uses, n, named, sizeof named);
        if ((st = weft__adapt_weave(stack, n, &s->model->base, &woven, err)))
            return weft_fail_within(err, st, "%s", named);
        weft_adapter_spec spec = {
            .size = sizeof spec, .n_weights = woven.n, .lora = woven.lora, .dtype = WEFT_ADAPTER_AUTO};
        st = weft__plan_adapter_new(s->model->plan, &spec, &adapter, err);
        weft__adapt_woven_free(&woven);
        if (st) return weft_fail_within(err, st, "%s", named);
    }
    weft__plan_adapter_free(&s->adapter);
    s->adapter = adapter;
    memcpy(s->adapters, named, sizeof named);
    return WEFT_OK;
}

weft_status weft_sampler_for(const weft_model *model, const weft_sampler_params *params, weft_sampler **out,
                             weft_error *err)
{
    const int32_t n_vocab = model->hp.n_vocab;
    weft_sampler_params p;
    *out = NULL;
    weft_sampler_params_default(&p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_sampler_params), &p, params, err);
    if (st) return st;
    int32_t *nameless = weft__alloc_array((size_t)n_vocab, sizeof *nameless);
    if (!nameless) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a sampler of %d tokens", n_vocab);
    p.n_nameless = model->tokenizer ? weft_tokenizer_nameless(model->tokenizer, n_vocab, nameless, n_vocab) : 0;
    p.nameless = nameless;
    st = weft_sampler_new(n_vocab, &p, out, err);
    weft__free(nameless);
    return st;
}
