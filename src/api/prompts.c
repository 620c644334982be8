// SPDX-License-Identifier: Apache-2.0
/* prompts.c: prompts to tokens (prompts.h). */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "api/errors.h"
#include "api/prompts.h"
#include "text/chat/tools.h"

void weft__api_prompts_free(weft__api_prompts *p)
{
    for (size_t i = 0; i < p->n; i++) {
        weft__free(p->items[i].ids);
        weft__free(p->items[i].text);
    }
    weft__free(p->items);
    weft_chat_prompt_free(&p->chat);
    weft__free(p->source);
    *p = (weft__api_prompts){0};
}

static int prompts_no_memory(weft__api_error *error)
{
    return weft__api_error_set(error, 503, NULL, "no memory for the prompt");
}

/* No text of so many bytes fits: it need not be tokenized to know. */
static int too_long(const weft__api_prompt_model *m, const char *field, size_t n, weft__api_error *error)
{
    if (n / (size_t)m->longest_token <= (size_t)m->n_ctx) return 0;
    weft__api_error_set(error, 400, field,
                        "'%s' has %zu bytes; this server's context holds %d tokens, the answer included", field, n,
                        m->n_ctx);
    error->code = "context_length_exceeded";
    error->n_prompt = (int64_t)(n / (size_t)m->longest_token);
    error->n_ctx = m->n_ctx;
    return 1;
}

/* How prompts are read. */
struct prompts_reading {
    const weft__api_prompt_model *model;
    const char *field;
    uint32_t flags; /* of weft_tokenize */
    int with_text, bounded;
    weft__api_error *error;
    const char *instruction; /* or NULL */
};

/* Appends the tokens of text[0..n). */
static int add_text(const struct prompts_reading *r, const char *text, size_t n, uint32_t flags, weft__api_prompt *p)
{
    const weft__api_prompt_model *m = r->model;
    weft__api_error *error = r->error;
    weft_error err = {0};
    size_t capacity = n + 16, got = 0;
    if (r->bounded && too_long(m, r->field, n, error)) return 0;
    for (int attempt = 0;; attempt++) {
        int32_t *grown = weft__realloc_array(p->ids, (size_t)p->n + capacity, sizeof *grown);
        if (!grown) return prompts_no_memory(error);
        p->ids = grown;
        weft_status st = weft_tokenize(m->tokenizer, text, n, flags, p->ids + p->n, capacity, &got, &err);
        if (!st) break;
        if (st != WEFT_LIMIT || attempt || got <= capacity) {
            weft__api_error_of(error, st, err.message);
            snprintf(error->field, sizeof error->field, "%s", r->field);
            return 0;
        }
        capacity = got;
    }
    p->n += (int32_t)got;
    return 1;
}

/* The same of a text behind what it is embedded for, as Qwen3-Embedding spells it (Zhang et al. 2025). */
static int add_instructed(const struct prompts_reading *r, const char *text, size_t n, weft__api_prompt *p)
{
    weft__strbuf all = {0};
    weft__strbuf_printf(&all, "Instruct: %s\nQuery:", r->instruction);
    weft__strbuf_put(&all, text, n);
    const int ok = all.failed ? prompts_no_memory(r->error) : add_text(r, all.data, all.len, r->flags, p);
    weft__strbuf_free(&all);
    return ok;
}

static int add_id(weft__api_prompt *p, size_t *capacity, int32_t id)
{
    if (!weft__grow(&p->ids, capacity, (size_t)p->n + 1, sizeof *p->ids)) return 0;
    p->ids[p->n++] = id;
    return 1;
}

/* The text that tokens read as. */
static int make_text(const weft__api_prompt_model *m, weft__api_prompt *p, weft__api_error *error)
{
    weft_detok *detok = NULL;
    weft__strbuf text = {0};
    weft_error err = {0};
    const char *part;
    size_t n;
    weft_status st = weft_detok_new(m->tokenizer, WEFT_DETOK_SPECIAL, &detok, &err);
    for (int32_t i = 0; !st && i < p->n; i++) {
        st = weft_detok_push(detok, p->ids[i], &part, &n, &err);
        if (!st) weft__strbuf_put(&text, part, n);
    }
    if (!st) st = weft_detok_finish(detok, &part, &n, &err);
    if (!st) weft__strbuf_put(&text, part, n);
    weft_detok_free(&detok);
    weft__strbuf_put(&text, "", 1); /* so that there is something to point to */
    if (st || text.failed) {
        weft__strbuf_free(&text);
        if (!st) return prompts_no_memory(error);
        weft__api_error_of(error, st, err.message);
        return 0;
    }
    p->text = text.data;
    p->n_text = text.len - 1;
    return 1;
}

/* One prompt: a string, or an array of ids and strings. */
static int read_one(const struct prompts_reading *r, const weft__json *v, weft__api_prompt *p)
{
    const weft__api_prompt_model *m = r->model;
    const char *text;
    size_t n, capacity = 0;
    int64_t id;
    if (weft__json_string(v, &text, &n)) {
        if (!(r->instruction ? add_instructed(r, text, n, p) : add_text(r, text, n, r->flags, p))) return 0;
        if (!r->with_text) return 1;
        p->text = weft__strndup(text, n);
        p->n_text = n;
        return p->text ? 1 : prompts_no_memory(r->error);
    }
    if (r->instruction)
        return weft__api_error_set(r->error, 400, "instruction", "'instruction' stands before texts, not token ids");
    if (r->bounded && weft__json_size(v) > (size_t)m->n_ctx &&
        too_long(m, r->field, (size_t)m->longest_token * (weft__json_size(v) + 1), r->error))
        return 0;
    for (size_t i = 0; i < weft__json_size(v); i++) {
        const weft__json *e = weft__json_at(v, i);
        if (weft__json_int(e, &id)) {
            if (capacity < (size_t)p->n) capacity = (size_t)p->n;
            if (!add_id(p, &capacity, (int32_t)id)) return prompts_no_memory(r->error);
        } else if (weft__json_string(e, &text, &n)) {
            if (!add_text(r, text, n, p->n ? r->flags & ~(uint32_t)WEFT_TOKENIZE_BOS : r->flags, p)) return 0;
            capacity = (size_t)p->n;
        }
    }
    return !r->with_text || make_text(m, p, r->error);
}

static int prompts_read_all(const struct prompts_reading *r, const weft__json *v, weft__api_prompts *out)
{
    int one = !r->bounded || weft__api_is_one_prompt(v);
    size_t n = one ? 1 : weft__json_size(v);
    *out = (weft__api_prompts){.items = weft__alloc_zero(n, sizeof *out->items), .n = n};
    if (!out->items) {
        out->n = 0;
        return prompts_no_memory(r->error);
    }
    for (size_t i = 0; i < n; i++)
        if (!read_one(r, one ? v : weft__json_at(v, i), &out->items[i])) return 0;
    return 1;
}

static uint32_t flags_of(int special, int parse)
{
    return (special ? (uint32_t)WEFT_TOKENIZE_BOS : 0) | (parse ? (uint32_t)WEFT_TOKENIZE_SPECIAL : 0);
}

int weft__api_prompts_read(const weft__api_prompt_model *m, const char *field, const weft__json *v, int special,
                           int parse, int with_text, weft__api_prompts *out, weft__api_error *error)
{
    struct prompts_reading r = {m, field, flags_of(special, parse), with_text, 1, error, NULL};
    const uint64_t begin = weft__clock_ns();
    const int ok = prompts_read_all(&r, v, out);
    out->tokenizer_ns = weft__clock_ns() - begin;
    return ok;
}

int weft__api_texts_read(const weft__api_prompt_model *m, const char *field, const weft__json *v, int special,
                         int parse, int with_text, weft__api_prompts *out, weft__api_error *error)
{
    struct prompts_reading r = {m, field, flags_of(special, parse), with_text, 0, error, NULL};
    return prompts_read_all(&r, v, out);
}

int weft__api_prompts_embed(const weft__api_prompt_model *m, const weft__api_params *params, weft__api_prompts *out,
                            weft__api_error *error)
{
    const int is_openai = params->form == &weft__api_table_embeddings;
    const struct prompts_reading r = {
        m, is_openai ? "input" : "content", flags_of(1, 0), 0, 1, error, params->instruction};
    const uint64_t begin = weft__clock_ns();
    const int ok = prompts_read_all(&r, is_openai ? params->input : params->content, out);
    out->tokenizer_ns = weft__clock_ns() - begin;
    return ok;
}

/* What is to follow the messages: nothing, an answer, or the rest of one that the last message begins. One that calls
 * tools has ended: its text is not its end, and what goes on from it would be without the calls. */
static int what_follows(const weft__api_params *params)
{
    const size_t n = weft__json_size(params->flat);
    const weft__json *last = n ? weft__json_at(params->flat, n - 1) : NULL;
    int begun = weft__json_is(weft__json_get(last, "role"), "assistant") &&
                weft__json_kind_of(weft__json_get(last, "content")) == WEFT__JSON_STRING &&
                !weft__json_size(weft__json_get(last, "tool_calls")) && !weft__json_get(last, "function_call");
    return params->generation_prompt && begun ? WEFT_CHAT_CONTINUE : params->generation_prompt;
}

/* A field that is a variable of the template, put beside its kwargs. */
static int add_variable(const weft__api_prompt_model *m, weft__json *kwargs, const char *name, const char *value,
                        weft__api_error *error)
{
    if (!value) return 1;
    if (!weft_chat_reads(m->chat, name))
        return weft__api_error_set(error, 400, name, "'%s': this model's chat template knows none; leave it out", name);
    if (weft__json_get(kwargs, name))
        return weft__api_error_set(error, 400, name, "'%s' stands in 'chat_template_kwargs' too", name);
    return weft__json_set(kwargs, name, weft__json_new_string(value, strlen(value))) || prompts_no_memory(error);
}

/* Whether the variables do something: a template reads them. enable_thinking may always be said. */
static int check_variables(const weft__api_prompt_model *m, const weft__json *kwargs, weft__api_error *error)
{
    weft__json_member k = {0};
    while (weft__json_next(kwargs, &k)) {
        const int thinking = !strcmp(k.key, "enable_thinking");
        if (thinking && !weft__json_is_null(k.value) &&
            weft__json_kind_of(k.value) != WEFT__JSON_BOOL) /* "no" is true */
            return weft__api_error_set(error, 400, "chat_template_kwargs",
                                       "'chat_template_kwargs.enable_thinking' must be true or false");
        if (weft__json_is_null(k.value) || thinking || weft_chat_reads(m->chat, k.key)) continue;
        return weft__api_error_set(error, 400, "chat_template_kwargs",
                                   "'chat_template_kwargs.%.60s': this model's chat template reads no such variable; "
                                   "leave it out",
                                   k.key);
    }
    return 1;
}

/* JSON of all variables; *out stays empty where there are none. */
static int template_kwargs(const weft__api_prompt_model *m, const weft__api_params *params, weft__strbuf *out,
                           weft__api_error *error)
{
    if (!params->kwargs && !params->reasoning_effort && !params->verbosity) return 1;
    weft__json *kwargs = params->kwargs ? weft__json_copy(params->kwargs) : weft__json_new_object();
    int ok = kwargs ? check_variables(m, params->kwargs, error) &&
                          add_variable(m, kwargs, "reasoning_effort", params->reasoning_effort, error) &&
                          add_variable(m, kwargs, "verbosity", params->verbosity, error)
                    : prompts_no_memory(error);
    if (ok) weft__json_write(out, kwargs, WEFT__JSON_COMPACT);
    weft__json_free(&kwargs);
    return ok;
}

/* Whose template renders it; NULL: it cannot be. /apply-template shows the model's own alone. */
static const weft_chat *chat_of(const weft__api_prompt_model *m, const weft__api_params *params, weft__api_error *error)
{
    const int offers = params->form == &weft__api_table_chat && params->tools.offered.len;
    if (!m->chat) {
        weft__api_error_set(error, 400, "messages", "%s",
                            m->chat_fault ? m->chat_fault : "the model's chat template cannot be read");
        return NULL;
    }
    if (!offers || weft_chat_reads(m->chat, "tools")) return m->chat;
    if (!m->tool_chat)
        weft__api_error_set(error, 400, params->tools.old ? "functions" : "tools", "'%s': %s",
                            params->tools.old ? "functions" : "tools",
                            m->tool_fault ? m->tool_fault : "the model's chat template knows none");
    return m->tool_chat;
}

/* All of them; out->len is 0 where that fails. */
static void fill_tools(const weft__strbuf *offered, weft__strbuf *out)
{
    weft__json *tools = NULL, *filled = NULL;
    if (offered->len && !weft__json_parse(offered->data, offered->len, &tools, NULL))
        filled = weft__chat_tools_filled(tools);
    if (filled) weft__json_write(out, filled, WEFT__JSON_COMPACT);
    weft__json_free(&filled);
    weft__json_free(&tools);
}

/* As the request has them; where the template refuses that, with what is absent of its tools filled in. */
static weft_status render_chat(const weft_chat *chat, const weft__api_params *params, const char *messages,
                               const char *kwargs, weft_chat_prompt **out, weft_error *err)
{
    const int follows = what_follows(params);
    weft__strbuf tools = {0};
    weft_status st = weft_chat_render(chat, messages, params->tools.offered.data, kwargs, follows, out, err);
    if (st == WEFT_ARGUMENT) fill_tools(&params->tools.offered, &tools);
    if (tools.len && !tools.failed && !weft_chat_render(chat, messages, tools.data, kwargs, follows, out, NULL))
        st = WEFT_OK;
    weft__strbuf_free(&tools);
    return st;
}

static int is_other(const void *name, const char *key)
{
    return strcmp(name, key) != 0;
}

/* Whether the prompt is another where the variable has another value, or with NULL none: what cannot be rendered is. */
static int changes(const weft_chat *chat, const weft__api_params *params, const char *messages, const char *kwargs,
                   const char *name, const char *value, const weft_chat_prompt *prompt)
{
    weft__json *all = NULL;
    weft__strbuf text = {0};
    weft_chat_prompt *other = NULL;
    size_t n, n_other;
    int same = 0, ok = !weft__json_parse(kwargs, strlen(kwargs), &all, NULL);
    if (ok && value) ok = weft__json_set(all, name, weft__json_new_string(value, strlen(value)));
    else if (ok) weft__json_filter(all, is_other, name);
    if (ok) weft__json_write(&text, all, WEFT__JSON_COMPACT);
    if (ok && !text.failed && !render_chat(chat, params, messages, text.data, &other, NULL)) {
        const char *is = weft_chat_prompt_text(prompt, &n), *would_be = weft_chat_prompt_text(other, &n_other);
        same = n == n_other && !memcmp(is, would_be, n);
    }
    weft_chat_prompt_free(&other);
    weft__strbuf_free(&text);
    weft__json_free(&all);
    return !same;
}

/* Whether a string of the template is this word. */
static int is_spelled(const weft_chat *chat, const char *word)
{
    const size_t n_word = strlen(word);
    size_t n;
    const char *source = weft_chat_source(chat, &n), *end = source + n;
    for (const char *at = source; (at = memmem(at, (size_t)(end - at), word, n_word + !n_word)); at++)
        if (at > source && at + n_word < end && strchr("'\"", at[-1]) && at[n_word] == at[-1]) return 1;
    return 0;
}

/* Whether a field that is a variable of the template does something there: it is a word that the template knows, or
 * changes the prompt. Most templates know some values, and take all others for none at all. */
static int check_effect(const weft_chat *chat, const weft__api_params *params, const char *messages, const char *kwargs,
                        const char *name, const char *value, const weft_chat_prompt *prompt, weft__api_error *error)
{
    if (!value || is_spelled(chat, value) ||
        changes(chat, params, messages, kwargs, name, "a value that no template knows", prompt) ||
        changes(chat, params, messages, kwargs, name, NULL, prompt))
        return 1;
    return weft__api_error_set(
        error, 400, name, "'%s': '%.60s' changes nothing in this model's chat template; leave it out", name, value);
}

int weft__api_chat_text(const weft__api_prompt_model *m, const weft__api_params *params, weft_chat_prompt **out,
                        weft__api_error *error)
{
    const weft_chat *chat = chat_of(m, params, error);
    weft__strbuf messages = {0}, kwargs = {0};
    weft_error err = {0};
    *out = NULL;
    if (!chat) return 0;
    if (!template_kwargs(m, params, &kwargs, error)) return 0;
    weft__json_write(&messages, params->flat, WEFT__JSON_COMPACT);
    weft_status st = messages.failed || kwargs.failed
                         ? weft_fail(&err, WEFT_NO_MEMORY, "no memory for the messages")
                         : render_chat(chat, params, messages.data, kwargs.data, out, &err);
    int ok = !st;
    if (st) {
        weft__api_error_of(error, st, err.message);
        snprintf(error->field, sizeof error->field, "messages");
    } else {
        ok = check_effect(chat, params, messages.data, kwargs.data, "reasoning_effort", params->reasoning_effort, *out,
                          error) &&
             check_effect(chat, params, messages.data, kwargs.data, "verbosity", params->verbosity, *out, error);
        if (!ok) weft_chat_prompt_free(out);
    }
    weft__strbuf_free(&messages);
    weft__strbuf_free(&kwargs);
    return ok;
}

/* A text of n bytes may be more tokens than that: a blank in it can be three where the vocabulary has none. */
static int add_chat(weft__api_prompt *p, const weft_chat_prompt *rendered, size_t n, weft__api_error *error)
{
    size_t capacity = n + 16, got = 0;
    for (int attempt = 0;; attempt++) {
        weft_error err = {0};
        int32_t *grown = weft__realloc_array(p->ids, capacity, sizeof *grown);
        if (!grown) return prompts_no_memory(error);
        p->ids = grown;
        weft_status st = weft_chat_prompt_tokenize(rendered, 0, p->ids, capacity, &got, &err);
        if (!st) p->n = (int32_t)got;
        if (st && (st != WEFT_LIMIT || attempt || got <= capacity)) weft__api_error_of(error, st, err.message);
        else if (st) {
            capacity = got;
            continue;
        }
        return !st;
    }
}

int weft__api_prompts_chat(const weft__api_prompt_model *m, const weft__api_params *params, weft__api_prompts *out,
                           weft__api_error *error)
{
    size_t n_text;
    const uint64_t begin = weft__clock_ns();
    *out = (weft__api_prompts){0};
    if (!weft__api_chat_text(m, params, &out->chat, error)) return 0;
    const uint64_t rendered = weft__clock_ns();
    weft_chat_prompt_text(out->chat, &n_text);
    if (too_long(m, "messages", n_text, error)) return 0;
    out->items = weft__alloc_zero(1, sizeof *out->items);
    out->n = out->items != NULL;
    if (!out->n) return prompts_no_memory(error);
    const int ok = add_chat(&out->items[0], out->chat, n_text, error);
    out->template_ns = rendered - begin;
    out->tokenizer_ns = weft__clock_ns() - rendered;
    return ok;
}
