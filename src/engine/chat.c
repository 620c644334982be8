/* chat.c: weft_chat: the model's chat template and tokenizer, put together so that what a user wrote never becomes a special
 * token. A chat is immutable; a prompt belongs to one thread. */
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/json.h"
#include "engine/handles.h"
#include "text/chat_template.h"

struct weft_chat {
    const weft__tokenizer *tokenizer;
    weft__chat_template *tmpl;
    weft__chat_token tokens[7];
    size_t n_tokens;
};

struct weft_chat_prompt {
    const weft_chat *chat;
    weft__jinja_output output;
};

/* The special tokens as templates name them. */
static void name_tokens(weft_chat *c)
{
    static const struct { const char *name; weft__token_role role; } all[] = {
        {"bos_token", WEFT__ROLE_BOS}, {"eos_token", WEFT__ROLE_EOS}, {"unk_token", WEFT__ROLE_UNK}, {"pad_token", WEFT__ROLE_PAD},
        {"sep_token", WEFT__ROLE_SEP}, {"cls_token", WEFT__ROLE_CLS}, {"mask_token", WEFT__ROLE_MASK},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        weft__slice text = weft__tokenizer_text(c->tokenizer, weft__tokenizer_role(c->tokenizer, all[i].role));
        if (text.data) c->tokens[c->n_tokens++] = (weft__chat_token){all[i].name, text.data};
    }
}

weft_status weft_chat_open(const weft_model *model, const char *source, size_t length, weft_chat **out, weft_error *err)
{
    *out = NULL;
    if (!model->tokenizer) return weft_fail(err, WEFT_UNSUPPORTED, "%s: a model without a tokenizer cannot chat", model->source.label);
    weft__slice own = weft__tokenizer_chat_template(model->tokenizer->t);
    if (!source && !own.data)
        return weft_fail(err, WEFT_NOT_FOUND, "%s: the model has no chat template; give one with --chat-template FILE", model->source.label);
    weft_chat *c = weft__alloc_zero(1, sizeof *c);
    if (!c) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a chat template");
    c->tokenizer = model->tokenizer->t;
    name_tokens(c);
    weft_status st = weft__chat_template_create(source ? source : own.data, source ? length : own.len, &c->tmpl, err);
    if (st) {
        weft_chat_close(&c);
        return weft_fail_within(err, st, "chat template");
    }
    *out = c;
    return WEFT_OK;
}

void weft_chat_close(weft_chat **p)
{
    weft_chat *c = p ? *p : NULL;
    if (!c) return;
    weft__chat_template_destroy(&c->tmpl);
    weft__free(c);
    *p = NULL;
}

static weft_status parse(const char *text, const char *what, weft__json **out, weft_error *err)
{
    *out = NULL;
    if (!text) return WEFT_OK;
    weft_status st = weft__json_parse(text, strlen(text), out, err);
    return st ? weft_fail_within(err, st, "%s", what) : WEFT_OK;
}

weft_status weft_chat_render(const weft_chat *c, const char *messages, const char *tools, const char *kwargs, int add_generation_prompt,
                             weft_chat_prompt **out, weft_error *err)
{
    weft__json *m = NULL, *t = NULL, *k = NULL;
    weft_chat_prompt *prompt = weft__alloc_zero(1, sizeof *prompt);
    weft_status st;
    *out = NULL;
    if (!prompt) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt");
    prompt->chat = c;
    if ((st = parse(messages, "messages", &m, err)) || (st = parse(tools, "tools", &t, err)) || (st = parse(kwargs, "kwargs", &k, err))) goto done;
    weft__chat_request request = {.messages = m, .tools = t, .kwargs = k, .add_generation_prompt = add_generation_prompt, .tokens = c->tokens,
                                  .n_tokens = c->n_tokens, .now = (int64_t)time(NULL)};
    st = weft__chat_template_render(c->tmpl, &request, &prompt->output, err);
done:
    weft__json_free(&k);
    weft__json_free(&t);
    weft__json_free(&m);
    if (st) weft_chat_prompt_free(&prompt);
    *out = prompt;
    return st;
}

void weft_chat_prompt_free(weft_chat_prompt **p)
{
    weft_chat_prompt *prompt = p ? *p : NULL;
    if (!prompt) return;
    weft__jinja_output_free(&prompt->output);
    weft__free(prompt);
    *p = NULL;
}

const char *weft_chat_prompt_text(const weft_chat_prompt *prompt, size_t *length)
{
    *length = prompt->output.len;
    return prompt->output.text ? prompt->output.text : "";
}

/* The template's own stretches behind byte `skip`, relative to it. */
static size_t trusted_spans(const weft__jinja_output *o, size_t skip, weft__parse_span *spans)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n_segments; i++) {
        const weft__jinja_segment *s = &o->segments[i];
        size_t end = s->offset + s->len, begin = s->offset > skip ? s->offset : skip;
        if (!s->from_user && end > begin) spans[n++] = (weft__parse_span){begin - skip, end - begin};
    }
    return n;
}

weft_status weft_chat_prompt_tokenize(const weft_chat_prompt *prompt, size_t skip, int32_t *ids, size_t capacity, size_t *n, weft_error *err)
{
    const weft__jinja_output *o = &prompt->output;
    const weft__tokenizer *tok = prompt->chat->tokenizer;
    weft__ids all = {0};
    *n = 0;
    if (skip > o->len) return weft_fail(err, WEFT_ARGUMENT, "byte %zu of a prompt of %zu", skip, o->len);
    weft__parse_span *spans = weft__alloc_array(o->n_segments, sizeof *spans);
    if (!spans) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt");
    weft_status st = weft__tokenizer_encode_spans(tok, o->text + skip, o->len - skip, spans, trusted_spans(o, skip, spans), 0, &all, err);
    weft__free(spans);
    if (!st) {
        int32_t bos = weft__tokenizer_role(tok, WEFT__ROLE_BOS);
        size_t front = skip == 0 && bos >= 0 && weft__tokenizer_adds_bos(tok) && !(all.n > 0 && all.data[0] == bos);
        *n = all.n + front;
        if (*n > capacity) st = weft_fail(err, WEFT_LIMIT, "%zu tokens do not fit in %zu places", *n, capacity);
        else {
            if (front) ids[0] = bos;
            if (all.n) memcpy(ids + front, all.data, all.n * sizeof *ids);
        }
    }
    weft__ids_free(&all);
    return st;
}
