// SPDX-License-Identifier: Apache-2.0
/* response_submit.c: what a response asks the engine for: its prompts, grammar, sampler and limits (response.h). */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/random.h"
#include "server/response.h"
#include "text/stop.h"

/* Biases of texts become biases of their tokens, which count as those given by id: each choice holds them all, and each
 * of its tokens looks at them all. */
static int add_text_biases(weft__server_response *g, weft__api_error *error)
{
    weft__api_params *a = &g->params;
    size_t capacity = (size_t)a->n_bias;
    for (int32_t i = 0; i < a->n_bias_texts; i++) {
        int32_t ids[WEFT__API_MAX_STOP_BYTES + 16];
        size_t n;
        weft_error err = {0};
        weft_status st = weft_tokenize(g->model->prompt_model.tokenizer, a->bias_texts[i].text, a->bias_texts[i].n, 0,
                                       ids, WEFT__API_MAX_STOP_BYTES + 16, &n, &err);
        if (st)
            return weft__api_error_set(error, st == WEFT_NO_MEMORY ? 503 : 400, "logit_bias", "'logit_bias': %s",
                                       err.message);
        if ((size_t)a->n_bias + n > WEFT__API_MAX_BIASES)
            return weft__api_error_set(error, 400, "logit_bias",
                                       "'logit_bias' must have at most %d tokens, those of its texts included",
                                       WEFT__API_MAX_BIASES);
        if (!weft__grow(&a->bias, &capacity, (size_t)a->n_bias + n, sizeof *a->bias))
            return weft__api_error_set(error, 503, NULL, "no memory for the request");
        for (size_t k = 0; k < n; k++) a->bias[a->n_bias++] = (weft_logit_bias){ids[k], a->bias_texts[i].bias};
    }
    return 1;
}

/* The tokens of the text that is expected; where it is longer than an answer can be, its beginning. */
static int read_prediction(weft__server_response *g, weft__api_error *error)
{
    const weft__strbuf *text = &g->params.prediction;
    const size_t most = (size_t)g->model->prompt_model.n_ctx;
    weft_error err = {0};
    if (!text->len) return 1;
    g->predicted = weft__alloc_array(most, sizeof *g->predicted);
    if (!g->predicted) return weft__api_error_set(error, 503, NULL, "no memory for the request");
    weft_status st = weft_tokenize(g->model->prompt_model.tokenizer, text->data, text->len, 0, g->predicted, most,
                                   &g->n_predicted, &err);
    if (g->n_predicted > most) g->n_predicted = most;
    if (!st || st == WEFT_LIMIT) return 1;
    return weft__api_error_set(error, st == WEFT_NO_MEMORY ? 503 : 400, "prediction", "'prediction': %s", err.message);
}

static const char *tools_field(const weft__api_tools *t)
{
    return t->old ? "functions" : "tools";
}

/* The field that constrains the answer; NULL: none. */
const char *weft__server_response_constraint_of(const weft__api_params *a)
{
    if (weft__api_tools_bind(&a->tools)) return tools_field(&a->tools);
    return a->grammar ? "grammar" : a->constraint.field;
}

int weft__server_response_forms(const weft__server_response *g)
{
    const weft__api_params *a = &g->params;
    return g->prompts.chat && a->constraint.field && !a->grammar_lazy &&
           (!weft__api_tools_bind(&a->tools) || !strcmp(a->tools.called.data, "auto"));
}

/* The number of what may stand before the form of a chat's answer, the thoughts of its models and the marks that lead
 * to a text; 0: nothing. `grammar` is on all of an answer, as llama.cpp has it. Where thoughts are to be told as text
 * there are none: content is always what the form allows. */
static int32_t find_lead(weft__server_response *g)
{
    const char *format = g->params.reasoning_format;
    if (!weft__server_response_forms(g)) return 0;
    if (format && (!strcmp(format, "none") || !strcmp(format, "deepseek-legacy")))
        weft_chat_prompt_end_thinking(g->prompts.chat);
    return weft_chat_form_lead(g->prompts.chat);
}

static weft__server_grammar_key key_of(const weft__server_response *g)
{
    const weft__api_params *a = &g->params;
    const weft__api_constraint *c = &a->constraint;
    if (a->grammar) return (weft__server_grammar_key){WEFT_GRAMMAR_GBNF, a->grammar, strlen(a->grammar)};
    return (weft__server_grammar_key){(uint32_t)c->kind | (uint32_t)g->lead << 16, c->text.data ? c->text.data : "",
                                      c->text.len};
}

int weft__server_response_find_grammar(weft__server_response *g)
{
    const weft__server_grammar_key key = key_of(g);
    /* What is kept is the whole of a lazy one, and none of calls, which depend on the prompt, too. */
    if (g->params.grammar_lazy || weft__api_tools_bind(&g->params.tools)) return 0;
    if (!g->grammar) g->grammar = weft__server_grammar_cache_find(&g->model->grammar_cache, &key);
    return g->grammar != NULL;
}

/* The grammar as it was compiled before, perhaps by another meanwhile, or compiled now. */
static weft_status compile(weft__server_response *g, weft_error *err)
{
    const weft__server_grammar_key key = key_of(g);
    const weft_tokenizer *tokenizer = g->model->prompt_model.tokenizer;
    if (!g->grammar) g->grammar = weft__server_grammar_cache_find(&g->model->grammar_cache, &key);
    if (g->grammar) return WEFT_OK;
    const uint32_t kind = key.kind & 0xffff;
    weft_status st = g->lead ? weft_chat_form(g->prompts.chat, kind, key.text, key.n, &g->grammar, err)
                             : weft_grammar_new(tokenizer, kind, key.text, key.n, &g->grammar, err);
    if (!st) weft__server_grammar_cache_put(&g->model->grammar_cache, &key, g->grammar);
    return st;
}

/* What was compiled holds from a trigger on. */
static weft_status make_lazy(weft__server_response *g, weft_error *err)
{
    weft_grammar *whole = g->grammar;
    weft_status st = weft_grammar_lazy(g->model->prompt_model.tokenizer, whole, g->params.triggers,
                                       (size_t)g->params.n_triggers, &g->grammar, err);
    weft_grammar_free(&whole);
    return st;
}

/* Calls, alone or beside a form. */
static weft_status compile_calls(weft__server_response *g, weft_error *err)
{
    const weft__api_tools *tools = &g->params.tools;
    const weft__api_constraint *c = &g->params.constraint;
    if (!weft__server_response_forms(g))
        return weft_chat_grammar(g->prompts.chat, tools->offered.data, tools->called.data, tools->parallel, &g->grammar,
                                 err);
    return weft_chat_form_or_calls(g->prompts.chat, (uint32_t)c->kind, c->text.data ? c->text.data : "", c->text.len,
                                   tools->offered.data, tools->parallel, &g->grammar, err);
}

int weft__server_response_compile_grammar(weft__server_response *g, weft__api_error *error)
{
    weft_error err = {0};
    weft_status st = weft__api_tools_bind(&g->params.tools) ? compile_calls(g, &err) : compile(g, &err);
    const char *field = weft__server_response_constraint_of(&g->params);
    if (st && weft__server_response_forms(g) && strncmp(err.message, "tools", 5) != 0)
        field = g->params.constraint.field;
    if (!st && g->params.grammar_lazy) {
        field = "grammar_triggers";
        st = make_lazy(g, &err);
    }
    if (!st) return 1;
    return weft__api_error_set(error, st == WEFT_NO_MEMORY ? 503 : 400, field, "'%s': %s", field, err.message);
}

/* Does the answer go on where its context is full? */
static int shifts(const weft__server_response *g)
{
    const char *said = g->params.overflow;
    return !g->embedding && g->params.max_tokens && (said ? !strcmp(said, "shift") : g->model->server->shift);
}

/* A limit of tokens for an answer that no context ends; one that sets none gets a context full. */
static int check_shift(weft__server_response *g, weft__api_error *error)
{
    weft__api_params *a = &g->params;
    if (!shifts(g)) return 1;
    if (a->max_tokens < 0) a->max_tokens = g->model->prompt_model.n_ctx;
    if (a->max_tokens <= WEFT__API_MAX_ENTRIES) return 1;
    if (!a->overflow) { /* the server's way, not what was asked for */
        a->max_tokens = WEFT__API_MAX_ENTRIES;
        return 1;
    }
    return weft__api_error_set(error, 400, a->form->tokens, "'%s' must be at most %d where 'overflow' is shift",
                               a->form->tokens, WEFT__API_MAX_ENTRIES);
}

/* Has the engine pages of the type that was asked for? */
static int check_kv_type(weft__server_response *g, weft__api_error *error)
{
    weft__api_params *a = &g->params;
    uint32_t types[WEFT_KV_TYPES_MAX];
    char all[WEFT_KV_TYPES_MAX * (WEFT_KV_NAME_MAX + 2)], name[WEFT_KV_NAME_MAX];
    const int32_t n = weft_engine_kv_types(g->model->engine, types);
    weft_error err = {0};
    size_t at = 0;
    if (!a->kv_name) a->kv_type = types[0];
    else if (weft_kv_type_parse(a->kv_name, &a->kv_type, &err))
        return weft__api_error_set(error, 400, "kv_type", "'kv_type': %s", err.message);
    (void)weft_kv_type_name(a->kv_type, a->kv_text);
    for (int32_t i = 0; i < n; i++) {
        if (types[i] == a->kv_type) return 1;
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "", weft_kv_type_name(types[i], name));
    }
    return weft__api_error_set(error, 400, "kv_type", "'kv_type' is %s; this server has %s (--kv-types)", a->kv_text,
                               all);
}

static int check_length(weft__server_response *g, weft__api_error *error)
{
    int32_t n_ctx = g->model->prompt_model.n_ctx;
    for (size_t i = 0; i < g->prompts.n; i++) {
        int32_t n = g->prompts.items[i].n, room = n_ctx - n;
        if (!n) return weft__api_error_set(error, 400, g->embedding ? "input" : "prompt", "the prompt has no tokens");
        if (room >= (g->embedding || g->params.max_tokens == 0 ? 0 : 1)) continue;
        weft__api_error_set(error, 400, "",
                            "the prompt has %d tokens; this server's context holds %d, the answer included", n, n_ctx);
        error->code = "context_length_exceeded";
        error->n_prompt = n;
        error->n_ctx = n_ctx;
        return 0;
    }
    return 1;
}

/* The field that says how many answers there are. */
static const char *n_name(const weft__api_params *a)
{
    return a->n_best > 1 ? "n_best" : a->form->n;
}

static int refuse_entries(const weft__server_response *g, int64_t n_tokens, int64_t most, weft__api_error *error)
{
    const weft__api_params *a = &g->params;
    const weft__api_table *f = a->form;
    char remedy[96] = "";
    if (most > 0) snprintf(remedy, sizeof remedy, "at most %lld as '%s', or ", (long long)most, f->tokens);
    return weft__api_error_set(
        error, 400, a->n > 1 || a->n_top < 1 ? n_name(a) : f->top,
        "%lld answers ('%s' times the prompts), %s%lld tokens in all, with %lld likeliest ones beside each "
        "('%s'), come to more than the %d that a request may have; give %sa smaller '%s' or '%s'",
        (long long)a->n * (long long)g->prompts.n, n_name(a), a->echo ? "their prompts included, " : "",
        (long long)n_tokens, (long long)(a->n_top > 0 ? a->n_top : 0), f->top, WEFT__API_MAX_ENTRIES, remedy, n_name(a),
        f->top);
}

/* Entries are kept until the last answer has ended, those of streams too. Answers to a request that sets no limit of
 * tokens end where all entries are used up; where that would leave them few, it is refused, as one whose own limit is
 * beyond that. */
static int check_entries(weft__server_response *g, weft__api_error *error)
{
    weft__api_params *a = &g->params;
    if (!g->keep_entries) return 1;
    int64_t all = WEFT__API_MAX_ENTRIES /
                  (a->n * (1 + (a->n_top > 0 ? a->n_top : 0))); /* tokens, when each prompt had one answer */
    int64_t echoed = 0, asked = 0, n_prompts = (int64_t)g->prompts.n,
            limit = a->max_tokens < 0 ? WEFT__API_FEW_TOKENS : a->max_tokens;
    for (int64_t i = 0; i < n_prompts; i++) {
        int64_t room = shifts(g) ? limit : g->model->prompt_model.n_ctx - g->prompts.items[i].n;
        asked += limit < room ? limit : room;
        if (a->echo) echoed += g->prompts.items[i].n;
    }
    int64_t most = n_prompts ? (all - echoed) / n_prompts : 0;
    if (echoed + asked > all) return refuse_entries(g, a->n * (echoed + asked), most, error);
    if (a->max_tokens < 0 && most < g->model->prompt_model.n_ctx) a->max_tokens = most;
    return 1;
}

static int begin_choice(weft__server_response *g, int i, weft__api_error *error)
{
    weft__server_choice *c = &g->choices[i];
    c->gen = g;
    c->out = &g->answer.choices[i];
    c->out->answer = &g->answer;
    c->out->index = i;
    c->out->slot = -1;
    c->out->prompt = &g->prompts.items[i / (int)g->params.n];
    c->out->stop = weft__alloc_zero(1, sizeof *c->out->stop);
    if (!c->out->stop) return weft__api_error_set(error, 503, NULL, "no memory for the request");
    weft_error err = {0};
    weft_status st = weft__stop_begin(c->out->stop, g->params.stops, g->params.stop_lengths, g->params.n_stops, &err);
    if (!st) st = weft_detok_new(g->model->prompt_model.tokenizer, WEFT_DETOK_CONTINUE, &c->detok, &err);
    if (st) weft__api_error_of(error, st, err.message);
    return !st && weft__server_parse_begin(g, c, error);
}

int weft__server_response_prepare(weft__server_response *g, weft__api_error *error)
{
    int64_t n = (int64_t)g->prompts.n * g->params.n;
    if (!g->embedding && n > WEFT__API_MAX_N)
        return weft__api_error_set(error, 400, n_name(&g->params),
                                   "'%s' times the number of prompts must be at most %d, not %lld", n_name(&g->params),
                                   WEFT__API_MAX_N, (long long)n);
    if (!g->embedding && n > g->model->max_requests)
        return weft__api_error_set(
            error, 400, g->params.n > 1 ? n_name(&g->params) : "prompt",
            "%lld answers at once: this server takes %d together, in its slots and its queue (--queue)", (long long)n,
            g->model->max_requests);
    if (!check_length(g, error) || !check_shift(g, error) || !check_kv_type(g, error) || !check_entries(g, error) ||
        !weft__server_adapters_lease(g->model, &g->params, g->tenant, &g->has_lease, &g->lease, g->adapters, error) ||
        !add_text_biases(g, error) || !read_prediction(g, error))
        return 0;
    g->lead = find_lead(g);
    g->choices = weft__alloc_zero((size_t)n, sizeof *g->choices);
    g->answer.choices = weft__alloc_zero((size_t)n, sizeof *g->answer.choices);
    if (!g->choices || !g->answer.choices) return weft__api_error_set(error, 503, NULL, "no memory for the request");
    /* Drawn ones have 31 bits: /completion tells them, and llama.cpp's clients read them as a number of 32. */
    uint64_t seed = g->params.seed_given ? (uint64_t)g->params.seed : weft__rng_entropy() >> 33;
    for (; g->answer.n_choices < n; g->answer.n_choices++) {
        if (!begin_choice(g, g->answer.n_choices, error)) {
            g->answer.n_choices++; /* half-built: freed with the others */
            return 0;
        }
        g->answer.choices[g->answer.n_choices].seed = seed + (uint64_t)g->answer.n_choices;
    }
    g->n_left = g->n_asked = g->n_at_once = g->answer.n_choices;
    g->is_asking = 1;   /* until the first ones are submitted */
    if (g->embedding) { /* twice the slots keep them busy; as many as another leaves at least are asked for at first */
        int most = 2 * g->model->n_slots < g->model->max_requests ? 2 * g->model->n_slots : g->model->max_requests;
        int first = g->model->max_requests / 8 > 1 ? g->model->max_requests / 8 : 1;
        if (g->n_at_once > most) g->n_asked = g->n_at_once = most;
        if (g->n_asked > first) g->n_asked = first;
    }
    return 1;
}

static void fill_sampler(const weft__server_choice *c, weft_sampler_params *p)
{
    const weft__api_params *a = &c->gen->params;
    weft_sampler_params_default(p);
    p->temperature = (float)(a->temperature > 0 ? a->temperature : 0);
    p->top_k = (int32_t)(a->top_k > 0 ? a->top_k : 0);
    p->top_p = (float)(a->top_p > 1e-6 ? a->top_p : 1e-6); /* 0: the likeliest alone */
    p->min_p = (float)a->min_p;
    p->repeat_penalty = (float)a->repeat_penalty;
    p->presence_penalty = (float)a->presence_penalty;
    p->frequency_penalty = (float)a->frequency_penalty;
    /* What no text fills is all of it, and needs no list of what leaves. */
    p->penalty_last_n = a->penalty_last_n < c->gen->model->prompt_model.n_ctx ? (int32_t)a->penalty_last_n : -1;
    p->n_bias = a->n_bias;
    p->bias = a->bias;
    p->seed = c->out->seed;
    p->seed_given = 1;
}

/* Milliseconds until the request's deadline, which counts from its head, at least 1; 0: it has none. */
static uint64_t time_left(const weft__server_response *g)
{
    uint64_t all = (uint64_t)g->params.timeout_ms, gone = (weft__clock_ns() - weft__http_began_ns(g->r)) / 1000000;
    return !all ? 0 : gone < all ? all - gone : 1;
}

uint64_t weft__server_response_deadline(const weft__server_response *g)
{
    return g->params.timeout_ms ? weft__http_began_ns(g->r) + (uint64_t)g->params.timeout_ms * 1000000 : 0;
}

/* The engine sees to it that a tenant leaves room for the others: max_requests are what one ever gets. An address whose
 * requests name many users is many tenants to it, and gets a little more than one, so that its users find room beside
 * each other, and not all there is. */
static int most_of_address(const weft__server_model *m)
{
    return m->server->wants_keys ? INT_MAX : m->max_requests + 1 + m->max_requests / 32;
}

weft_status weft__server_response_submit(weft__server_choice *c, double *retry_after_s, weft_error *err)
{
    weft__server_response *g = c->gen;
    const weft__api_params *a = &g->params;
    weft_request_params p;
    uint64_t id = 0;
    int64_t room = g->model->prompt_model.n_ctx - c->out->prompt->n;
    weft_request_params_default(&p);
    p.tokens = c->out->prompt->ids;
    p.n_tokens = c->out->prompt->n;
    p.shift = shifts(g);
    p.n_keep = !p.shift ? 0 : a->n_keep < 0 ? p.n_tokens : (int32_t)a->n_keep;
    p.max_tokens = g->embedding ? 0 : (int32_t)(p.shift || a->max_tokens < room ? a->max_tokens : room);
    p.cut_to_fit = 1; /* clients ask for more than they expect: what context and pages hold is enough */
    p.ignore_end = a->ignore_end;
    fill_sampler(c, &p.sampler);
    p.grammar = g->grammar;
    p.lease = g->lease;
    c->with_adapters = g->lease != NULL;
    /* what is kept to learn from, and what is judged, has log-probabilities, whether or not they are told */
    const int is_judged = g->learn.on || a->n_best > 1 || a->verify;
    p.n_top = g->embedding ? -1 : a->n_top < 0 && is_judged ? 0 : (int32_t)a->n_top;
    p.prompt_logprobs = a->echo && a->n_top >= 0;
    p.embedding = g->embedding ? a->pooling ? a->pooling : WEFT_POOLING_MODEL : WEFT_POOLING_NONE;
    p.priority = (int32_t)a->priority;
    p.no_cache = !a->cache_prompt && !g->embedding;
    p.tenant = g->tenant;
    p.deadline_ms = time_left(g);
    p.read_events = 1;
    p.insert = g->thinking_end;
    p.n_insert = (int32_t)g->n_thinking_end;
    p.predicted = g->predicted;
    p.n_predicted = (int32_t)g->n_predicted;
    p.kv_dtype = a->kv_type;
    p.draft_max = a->draft_max < WEFT_DRAFT_MAX ? (int32_t)a->draft_max : WEFT_DRAFT_MAX;
    p.draft_min = (int32_t)a->draft_min;
    p.draft_p_min = (float)a->draft_p_min;
    p.event = weft__server_events_on_event;
    p.arg = c;
    if (!weft__http_client_add(g->r, 1, most_of_address(g->model)))
        return weft_fail(err, WEFT_BUSY, "%d requests of this address are here already; try again in 1 s",
                         most_of_address(g->model));
    atomic_fetch_add(&g->refs, 1);
    atomic_fetch_add(&g->server->n_running, 1);
    weft_status st = weft_engine_submit(g->model->engine, &p, &id, retry_after_s, err);
    if (st) {
        atomic_fetch_sub(&g->server->n_running, 1);
        weft__http_client_add(g->r, -1, 0);
        weft__server_response_unref(g);
        return st;
    }
    pthread_mutex_lock(&g->lock);
    c->request = id;
    c->submitted = 1;
    pthread_mutex_unlock(&g->lock);
    return WEFT_OK;
}

/* All that is asked for at once, or none. */
int weft__server_response_submit_all(weft__server_response *g, weft__api_error *error)
{
    weft_error err = {0};
    double retry_after_s = 1;
    const int n = g->n_asked, all = n == g->answer.n_choices;
    for (int i = 0; i < n; i++) {
        weft_status st = weft__server_response_submit(&g->choices[i], &retry_after_s, &err);
        if (!st) continue;
        pthread_mutex_lock(&g->lock);
        g->refused = 1;
        pthread_mutex_unlock(&g->lock);
        weft__server_response_cancel_all(g);
        weft__api_error_of(error, st, err.message);
        error->retry_s = (int)ceil(retry_after_s);
        return 0;
    }
    if (all) weft_engine_lease_free(g->model->engine, &g->lease);
    else weft__server_response_ask_on(g); /* those that are asked for later need the lease, too */
    return 1;
}
