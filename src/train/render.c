// SPDX-License-Identifier: Apache-2.0
/* render.c: see render.h. */
#include "train/render.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "text/chat/stand_in.h"
#include "text/chat/thinking.h"
#include "text/chat/tools.h"

#define TEMPLATE_NOW 1767225600 /* 2026-01-01 */

static weft_status render_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for training data");
}

static weft_status open_template(weft__train_template *out, const char *source, size_t n, weft_error *err)
{
    weft_status st = weft__chat_template_create(source, n, &out->t, err);
    if (st) return st;
    out->arguments = weft__chat_template_arguments(out->t);
    out->functions = weft__chat_template_functions(out->t);
    return WEFT_OK;
}

/* That for records with tools; why there is none matters when there is one. */
static weft_status open_for_tools(weft__train_renderer *r, weft_error *err)
{
    const weft__chat_asked asked = {.t = r->own.t,
                                    .source = r->source.data,
                                    .n = r->source.len,
                                    .arguments = r->own.arguments,
                                    .functions = r->own.functions,
                                    .tokens = r->names,
                                    .n_tokens = r->n_names};
    weft__strbuf source = {0};
    weft_status st = weft__chat_tools_source(&asked, &source, &r->no_tools);
    if (!st && source.len) st = open_template(&r->tools, source.data, source.len, &r->no_tools);
    weft__strbuf_free(&source);
    return st == WEFT_NO_MEMORY ? weft_fail(err, st, "%s", r->no_tools.message) : WEFT_OK;
}

weft_status weft__train_renderer_init(weft__train_renderer *r, const weft__tok *tok, const char *source, size_t n,
                                      weft_error *err)
{
    *r = (weft__train_renderer){.tok = tok};
    weft__tok_slice own = weft__tok_chat_template(tok);
    r->n_names = weft__chat_tokens(tok, r->names);
    r->stands_in = !source && !own.data;
    if (r->stands_in) own.data = weft__chat_stand_in(&own.len);
    r->source = source ? (weft__tok_slice){source, n} : own;
    weft_status st = open_template(&r->own, r->source.data, r->source.len, err);
    if (st) return st;
    const int shows_tools = weft__chat_template_reads(r->own.t, "tools");
    r->reasoning = weft__answer_style_of(r->source.data, r->source.len, shows_tools).reasoning;
    st = open_for_tools(r, err);
    if (st) weft__train_renderer_free(r);
    return st;
}

void weft__train_renderer_free(weft__train_renderer *r)
{
    if (r->tools.t) weft__chat_template_destroy(&r->tools.t);
    if (r->own.t) weft__chat_template_destroy(&r->own.t);
    *r = (weft__train_renderer){0};
}

void weft__train_rendered_free(weft__train_rendered *out)
{
    weft__tok_ids_free(&out->ids);
    weft__free(out->learn);
    *out = (weft__train_rendered){0};
}

/* Marks the ids from `from` on. */
static weft_status mark(weft__train_rendered *out, size_t from, int learn, weft_error *err)
{
    if (!weft__grow(&out->learn, &out->learn_capacity, out->ids.n, 1)) return render_no_memory(err);
    if (out->ids.n > from) memset(out->learn + from, learn, out->ids.n - from);
    return WEFT_OK;
}

static weft_status put_id(weft__train_rendered *out, int32_t id, int learn, weft_error *err)
{
    if (id < 0) return WEFT_OK;
    if (!weft__grow(&out->ids.data, &out->ids.capacity, out->ids.n + 1, sizeof id)) return render_no_memory(err);
    out->ids.data[out->ids.n++] = id;
    return mark(out, out->ids.n - 1, learn, err);
}

/* ---- text ---- */

static weft_status put_text(const weft__train_renderer *r, const char *text, size_t n, unsigned flags, int learn,
                            weft__train_rendered *out, weft_error *err)
{
    size_t from = out->ids.n;
    weft_status st = weft__tok_encode(r->tok, text, n, flags, &out->ids, err);
    return st ? st : mark(out, from, learn, err);
}

static int32_t role(const weft__train_renderer *r, weft__tok_role which)
{
    return weft__tok_id_of_role(r->tok, which);
}

/* What begins a text: BOS, where the model is run with one. */
static weft_status begin_text(const weft__train_renderer *r, weft__train_rendered *out, weft_error *err)
{
    return weft__tok_adds_bos(r->tok) ? put_id(out, role(r, WEFT__TOK_ROLE_BOS), 0, err) : WEFT_OK;
}

weft_status weft__train_render_text(const weft__train_renderer *r, const char *text, size_t n,
                                    weft__train_rendered *out, weft_error *err)
{
    size_t before = out->ids.n;
    weft_status st = begin_text(r, out, err);
    if (!st) st = put_text(r, text, n, WEFT__TOK_ENCODE_PARSE, 1, out, err);
    if (!st) st = put_id(out, role(r, WEFT__TOK_ROLE_EOS), 1, err);
    if (st) out->ids.n = before;
    return st;
}

weft_status weft__train_render_embedded(const weft__train_renderer *r, const char *text, size_t n,
                                        weft__train_rendered *out, weft_error *err)
{
    size_t before = out->ids.n;
    weft_status st = begin_text(r, out, err);
    if (!st) st = put_text(r, text, n, 0, 1, out, err);
    if (st) out->ids.n = before;
    return st;
}

/* Without a template a prompt and an answer that are strings are text. */
static int is_plain(const weft__train_renderer *r, const weft__json *prompt, const weft__json *answer)
{
    return r->stands_in && weft__json_kind_of(prompt) == WEFT__JSON_STRING &&
           weft__json_kind_of(answer) == WEFT__JSON_STRING;
}

/* Control tokens spelled in them stay text. */
static weft_status render_plain(const weft__train_renderer *r, const weft__json *prompt, const weft__json *answer,
                                weft__train_rendered *out, weft_error *err)
{
    const char *p = "", *a = "";
    size_t n_p = 0, n_a = 0;
    weft__json_string(prompt, &p, &n_p);
    weft__json_string(answer, &a, &n_a);
    weft_status st = begin_text(r, out, err);
    if (!st) st = put_text(r, p, n_p, 0, 0, out, err);
    if (!st) st = put_text(r, a, n_a, 0, 1, out, err);
    return st ? st : put_id(out, role(r, WEFT__TOK_ROLE_EOS), 1, err);
}

/* ---- roles: most templates write any, so that a misspelled one would be learned as it stands ---- */

/* The template spells it as a string: 'ipython', "observation". */
static int is_spelled(const weft__tok_slice *source, const char *role, size_t n)
{
    enum { MOST = 64 };
    char word[MOST];
    if (!n || n + 2 > MOST) return 0;
    memcpy(word + 1, role, n);
    for (const char *quote = "'\""; *quote; quote++) {
        word[0] = word[n + 1] = *quote;
        if (memmem(source->data, source->len, word, n + 2)) return 1;
    }
    return 0;
}

static int is_role(const weft__train_renderer *r, const char *role, size_t n)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool", "function"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (n == strlen(roles[i]) && !memcmp(role, roles[i], n)) return 1;
    return is_spelled(&r->source, role, n);
}

static weft_status check_role(const weft__train_renderer *r, const weft__json *m, const char *where, size_t i,
                              weft_error *err)
{
    const char *name;
    size_t n;
    if (!weft__json_string(weft__json_get(m, "role"), &name, &n) || is_role(r, name, n)) return WEFT_OK;
    return weft_fail(
        err, WEFT_FORMAT,
        "%s[%zu].role is '%.40s'; it must be system, developer, user, assistant, tool, function, or one that the "
        "chat template names",
        where, i, name);
}

/* A string, a message or messages. */
static weft_status check_roles(const weft__train_renderer *r, const weft__json *v, const char *where, weft_error *err)
{
    weft_status st = WEFT_OK;
    if (weft__json_kind_of(v) == WEFT__JSON_OBJECT) return check_role(r, v, where, 0, err);
    for (size_t i = 0; weft__json_kind_of(v) == WEFT__JSON_ARRAY && !st && i < weft__json_size(v); i++)
        st = check_role(r, weft__json_at(v, i), where, i, err);
    return st;
}

static weft_status check_all_roles(const weft__train_renderer *r, const weft__train_record *record,
                                   const weft__json *answer, int rejected, weft_error *err)
{
    const char *whose = rejected ? "rejected" : record->kind == WEFT__TRAIN_RECORD_PAIR ? "chosen" : "completion";
    weft_status st = check_roles(r, record->messages, "messages", err);
    if (!st) st = check_roles(r, record->prompt, "prompt", err);
    return st ? st : check_roles(r, answer, whose, err);
}

/* ---- conversations ---- */

/* What is rendered of a conversation so far. */
typedef struct render_turns_state {
    const weft__train_renderer *r;
    const weft__train_template *template;
    weft__json *tools;  /* NULL: none */
    weft__json *kwargs; /* as serving has them */
    weft__json *shown;  /* the messages so far */
    weft__strbuf text;  /* what they gave, already encoded */
    weft__train_rendered *out;
    size_t most; /* tokens in `out` beyond which nothing more is wanted */
} render_turns_state;

static int is_full(const render_turns_state *t)
{
    return t->out->ids.n > t->most;
}

static weft_status render_once(const render_turns_state *t, const weft__json *tools, int add_generation_prompt,
                               weft__jinja_output *o, weft_error *err)
{
    const weft__chat_request request = {.messages = t->shown,
                                        .tools = tools,
                                        .kwargs = t->kwargs,
                                        .add_generation_prompt = add_generation_prompt,
                                        .tokens = t->r->names,
                                        .n_tokens = t->r->n_names,
                                        .now = TEMPLATE_NOW};
    return weft__chat_template_render(t->template->t, &request, o, err);
}

/* As the record has the tools; where the template refuses that, with what is absent of them filled in. */
static weft_status render_shown(render_turns_state *t, int add_generation_prompt, weft__jinja_output *o,
                                weft_error *err)
{
    weft_status st = render_once(t, t->tools, add_generation_prompt, o, err);
    if (st != WEFT_ARGUMENT || !t->tools) return st;
    weft__json *filled = weft__chat_tools_filled(t->tools);
    if (!filled || render_once(t, filled, add_generation_prompt, o, NULL)) {
        weft__json_free(&filled);
        return st;
    }
    weft__json_free(&t->tools);
    t->tools = filled;
    return WEFT_OK;
}

/* Ends learning behind the first token that ends a turn; one is appended where the template writes none. */
static weft_status end_answer(render_turns_state *t, size_t from, weft_error *err)
{
    weft__train_rendered *out = t->out;
    for (size_t i = from; i < out->ids.n; i++) {
        if (!weft__tok_is_end(t->r->tok, out->ids.data[i])) continue;
        memset(out->learn + i + 1, 0, out->ids.n - i - 1);
        return WEFT_OK;
    }
    int32_t eot = role(t->r, WEFT__TOK_ROLE_EOT);
    return put_id(out, eot >= 0 ? eot : role(t->r, WEFT__TOK_ROLE_EOS), 1, err);
}

/* What a message thought; of length 0: nothing. */
static weft__tok_slice thoughts_of(const weft__json *m)
{
    static const char *const names[] = {"reasoning_content", "reasoning", "thinking"};
    weft__tok_slice s = {"", 0};
    for (size_t i = 0; i < sizeof names / sizeof *names && !s.len; i++)
        weft__json_string(weft__json_get(m, names[i]), &s.data, &s.len);
    return s;
}

static size_t trimmed(const char *s, size_t n)
{
    while (n && strchr(" \t\r\n", s[n - 1])) n--;
    return n;
}

/* The bytes of s[0..n) before a mark at its end, white space aside; SIZE_MAX: it is not there. */
static size_t before_mark(const char *s, size_t n, const char *mark)
{
    const size_t length = trimmed(mark, strlen(mark));
    n = trimmed(s, n);
    return n >= length && !memcmp(s + n - length, mark, length) ? n - length : SIZE_MAX;
}

/* A prompt may begin thoughts, or end them at once, where the template shows neither in the answer that was given.
 * Returns the bytes of the prompt before that, or SIZE_MAX. *open: they have begun. */
static size_t before_thoughts(const render_turns_state *t, int *open)
{
    const weft__answer_reasoning *r = t->r->reasoning;
    const char *s = t->text.data;
    if (!r || !t->text.len) return SIZE_MAX;
    const size_t end = before_mark(s, t->text.len, r->end);
    const size_t begin = before_mark(s, end == SIZE_MAX ? t->text.len : end, r->begin);
    *open = end == SIZE_MAX;
    return begin == SIZE_MAX ? end : begin;
}

/* The text so far, then what was thought where the template leaves that out, then the rendering o from byte `from` on.
 * The caller frees *out, on failure too. */
static weft_status splice(const render_turns_state *t, const weft__jinja_output *o, size_t from, int open,
                          weft__jinja_output *out, weft_error *err)
{
    const weft__json *m = weft__json_at(t->shown, weft__json_size(t->shown) - 1);
    const char *end = t->r->reasoning->end;
    const int ends = open && !memmem(o->text + from, o->len - from, end, strlen(end));
    const int lines = ends && t->text.data[t->text.len - 1] == '\n';
    const weft__tok_slice thought = ends ? thoughts_of(m) : (weft__tok_slice){"", 0};
    weft__strbuf text = {0};
    weft__strbuf_put(&text, t->text.data, t->text.len);
    weft__strbuf_put(&text, thought.data, thought.len);
    const size_t begin = text.len - thought.len;
    if (ends) weft__strbuf_printf(&text, "%s%s%s", lines ? "\n" : "", end, lines ? "\n\n" : "");
    const size_t shift = text.len;
    weft__strbuf_put(&text, o->text + from, o->len - from);
    *out = (weft__jinja_output){.text = text.data, .len = text.len};
    out->segments = weft__alloc_array(o->n_segments + 3, sizeof *out->segments);
    if (text.failed || !out->segments) return render_no_memory(err);
    out->segments[out->n_segments++] = (weft__jinja_segment){.offset = 0, .len = begin};
    if (thought.len)
        out->segments[out->n_segments++] = (weft__jinja_segment){.offset = begin, .len = thought.len, .from_user = 1};
    if (shift > begin + thought.len)
        out->segments[out->n_segments++] =
            (weft__jinja_segment){.offset = begin + thought.len, .len = shift - begin - thought.len};
    for (size_t i = 0; i < o->n_segments; i++) {
        weft__jinja_segment x = o->segments[i];
        if (x.offset + x.len <= from) continue;
        const size_t cut = x.offset < from ? from - x.offset : 0;
        x.len -= cut;
        x.offset += cut + shift - from;
        out->segments[out->n_segments++] = x;
    }
    return WEFT_OK;
}

/* The same in the place of o. */
static weft_status splice_into(const render_turns_state *t, weft__jinja_output *o, size_t from, int open,
                               weft_error *err)
{
    weft__jinja_output whole = {0};
    weft_status st = splice(t, o, from, open, &whole, err);
    weft__jinja_output_free(o);
    *o = whole;
    return st;
}

static int goes_on(const weft__jinja_output *o, const weft__strbuf *text, size_t n)
{
    return o->len >= n && (!n || !memcmp(o->text, text->data, n));
}

/* Renders what is shown and encodes what is new in it. */
static weft_status render_go_on(render_turns_state *t, int add_generation_prompt, size_t turn, weft_error *err)
{
    weft__jinja_output o;
    weft_status st = render_shown(t, add_generation_prompt, &o, err);
    if (st) return weft_fail_within(err, st, "turn %zu", turn);
    size_t from = t->out->ids.n, skip = t->text.len, shown = SIZE_MAX;
    int open = 0;
    if (!goes_on(&o, &t->text, skip)) {
        if (!add_generation_prompt) shown = before_thoughts(t, &open);
        if (shown == SIZE_MAX || !goes_on(&o, &t->text, shown))
            st = weft_fail(
                err, WEFT_UNSUPPORTED,
                "turn %zu: the chat template writes earlier turns differently when later ones follow; make it a record "
                "for each answer",
                turn);
        else st = splice_into(t, &o, shown, open, err);
    }
    if (!st) st = weft__chat_encode(t->r->tok, &o, skip, &t->out->ids, err);
    if (!st) st = mark(t->out, from, !add_generation_prompt, err);
    if (!st && !add_generation_prompt) st = end_answer(t, from, err);
    if (!st) {
        weft__strbuf_put(&t->text, o.text + skip, o.len - skip);
        if (t->text.failed) st = render_no_memory(err);
    }
    weft__jinja_output_free(&o);
    return st;
}

/* The message as a template sees it when the model answers, too (text/chat/messages.h). */
static weft_status show(render_turns_state *t, const weft__json *m, weft_error *err)
{
    weft__chat_reading reading = {.form = t->template->arguments, .functions = t->template->functions};
    weft__json *normal;
    char where[40];
    snprintf(where, sizeof where, "turn %zu", weft__json_size(t->shown));
    weft_status st = weft__chat_message_normal(&reading, m, where, &normal, err);
    if (st) return st;
    return weft__json_append(t->shown, normal) ? WEFT_OK : render_no_memory(err);
}

/* The next message: an answer of the assistant is learned when `learn` says so. */
static weft_status take_message(render_turns_state *t, const weft__json *m, int learn, weft_error *err)
{
    size_t turn = weft__json_size(t->shown);
    if (!learn || !weft__train_is_learned(m)) return show(t, m, err);
    weft_status st = render_go_on(t, 1, turn, err);
    if (st || is_full(t)) return st;
    st = show(t, m, err);
    return st ? st : render_go_on(t, 0, turn, err);
}

/* Messages [from, to) of a list. */
static weft_status take_messages(render_turns_state *t, const weft__json *list, size_t from, size_t to, int learn,
                                 weft_error *err)
{
    weft_status st = WEFT_OK;
    for (size_t i = from; !st && !is_full(t) && i < to; i++) st = take_message(t, weft__json_at(list, i), learn, err);
    return st;
}

/* A string is a turn of `who`; a list, its messages. */
static weft_status render_take(render_turns_state *t, const weft__json *v, const char *who, int learn, weft_error *err)
{
    weft_status st = WEFT_OK;
    if (weft__json_kind_of(v) == WEFT__JSON_STRING) {
        weft__json *m = weft__json_new_object();
        if (!weft__json_set(m, "role", weft__json_new_string(who, strlen(who))) ||
            !weft__json_set(m, "content", weft__json_copy(v)))
            st = render_no_memory(err);
        if (!st) st = take_message(t, m, learn, err);
        weft__json_free(&m);
    } else if (weft__json_kind_of(v) == WEFT__JSON_OBJECT) {
        st = take_message(t, v, learn, err);
    } else {
        st = take_messages(t, v, 0, weft__json_size(v), learn, err);
    }
    return st;
}

/* ---- thoughts ---- */

/* A message of the assistant's, or its text, has some. */
static int has_thoughts(const weft__train_renderer *r, const weft__json *m)
{
    const weft__json *content = weft__json_kind_of(m) == WEFT__JSON_STRING ? m : weft__json_get(m, "content");
    const char *s;
    size_t n;
    if (content != m && !weft__train_is_assistant(m)) return 0;
    if (thoughts_of(m).len) return 1;
    return r->reasoning && weft__json_string(content, &s, &n) &&
           memmem(s, n, r->reasoning->end, strlen(r->reasoning->end));
}

static int some_have_thoughts(const weft__train_renderer *r, const weft__json *messages)
{
    if (weft__json_kind_of(messages) != WEFT__JSON_ARRAY) return has_thoughts(r, messages);
    for (size_t i = 0; i < weft__json_size(messages); i++)
        if (has_thoughts(r, weft__json_at(messages, i))) return 1;
    return 0;
}

/* The template and its variables, for this record. */
static weft_status begin_turns(render_turns_state *t, const weft__train_record *record, const weft__json *answer,
                               weft_error *err)
{
    const weft__train_renderer *r = t->r;
    const int thinks = some_have_thoughts(r, record->messages) || some_have_thoughts(r, answer);
    weft_status st = t->shown ? weft__chat_tools_normal(record->tools, &t->tools, err) : render_no_memory(err);
    if (st) return st;
    t->template = t->tools && r->tools.t ? &r->tools : &r->own;
    const weft__chat_thinking_name *own = weft__chat_template_thinking(t->template->t);
    weft__json *off = weft__json_new_object();
    if (!thinks && !(own && own->prompt_only) && !weft__json_set(off, "enable_thinking", weft__json_new_bool(0)))
        weft__json_free(&off);
    st = off ? weft__chat_template_kwargs(t->template->t, off, &t->kwargs, err) : render_no_memory(err);
    weft__json_free(&off);
    if (st) return st;
    return t->tools && r->no_tools.status ? weft_fail(err, (weft_status)r->no_tools.status, "%s", r->no_tools.message)
                                          : WEFT_OK;
}

static weft_status render_turns(const weft__train_renderer *r, const weft__train_record *record,
                                const weft__json *answer, size_t most, weft__train_rendered *out, weft_error *err)
{
    render_turns_state t = {.r = r, .shown = weft__json_new_array(), .out = out};
    t.most = most < SIZE_MAX - out->ids.n ? out->ids.n + most : SIZE_MAX;
    weft_status st = begin_turns(&t, record, answer, err);
    if (!st && record->kind == WEFT__TRAIN_RECORD_CHAT) st = render_take(&t, record->messages, "user", 1, err);
    else if (record->n_shared) {
        if (!st) st = take_messages(&t, answer, 0, record->n_shared, 0, err);
        if (!st) st = take_messages(&t, answer, record->n_shared, weft__json_size(answer), 1, err);
    } else {
        if (!st) st = render_take(&t, record->prompt, "user", 0, err);
        if (!st) st = render_take(&t, answer, "assistant", 1, err);
    }
    weft__strbuf_free(&t.text);
    weft__json_free(&t.shown);
    weft__json_free(&t.kwargs);
    weft__json_free(&t.tools);
    return st;
}

weft_status weft__train_render(const weft__train_renderer *r, const weft__train_record *record, int rejected,
                               size_t most, weft__train_rendered *out, weft_error *err)
{
    size_t before = out->ids.n;
    const weft__json *answer = rejected ? record->rejected : record->answer;
    const char *text;
    size_t n;
    weft_status st;
    if (record->kind == WEFT__TRAIN_RECORD_TEXT)
        return weft__json_string(record->text, &text, &n) ? weft__train_render_text(r, text, n, out, err) : WEFT_OK;
    if (is_plain(r, record->prompt, answer)) st = render_plain(r, record->prompt, answer, out, err);
    else if (!(st = check_all_roles(r, record, answer, rejected, err)))
        st = render_turns(r, record, answer, most, out, err);
    if (!st && r->stands_in && !is_plain(r, record->prompt, answer)) out->stood_in = 1;
    if (st) out->ids.n = before;
    return st;
}
