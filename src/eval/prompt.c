// SPDX-License-Identifier: Apache-2.0
/* prompt.c: documents to prompts (prompt.h). */
#include "eval/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/fields.h"
#include "text/unicode.h"

/* ---- white space ---- */

static int is_blank(uint32_t cp)
{
    return weft__unicode_is_space(cp) || (cp >= 0x1c && cp <= 0x1f);
}

/* Where the last character of s[0..n) begins, n >= 1. */
static size_t last_of(const char *s, size_t n)
{
    size_t at = n - 1;
    while (at > 0 && ((unsigned char)s[at] & 0xc0) == 0x80) at--;
    return at;
}

int weft__eval_ends_blank(const char *s, size_t n)
{
    uint32_t cp = 0;
    if (n) weft__utf8_decode(s + last_of(s, n), n - last_of(s, n), &cp, NULL);
    return n && is_blank(cp);
}

int weft__eval_begins_blank(const char *s, size_t n)
{
    uint32_t cp = 0;
    if (n) weft__utf8_decode(s, n, &cp, NULL);
    return n && is_blank(cp);
}

size_t weft__eval_without_blanks(const char *s, size_t n)
{
    while (weft__eval_ends_blank(s, n)) n = last_of(s, n);
    return n;
}

/* ---- examples ---- */

weft_status weft__eval_shots_begin(weft__eval_shots *s, const weft__eval_task *task, uint64_t seed, weft_error *err)
{
    *s = (weft__eval_shots){.task = task};
    weft__eval_random_seed(&s->random, seed);
    s->order = weft__alloc_array((size_t)task->n_fewshot + 1, sizeof *s->order);
    return s->order ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for examples");
}

void weft__eval_shots_free(weft__eval_shots *s)
{
    weft__free(s->order);
    s->order = NULL;
}

static const weft__eval_docs *pool_of(const weft__eval_task *t)
{
    return t->shots_are_docs ? &t->docs : &t->shots;
}

/* Where there are more documents like the one at hand: from all that are not. */
static weft_status draw_others(weft__eval_shots *s, const weft__eval_docs *pool, const weft__json *doc, weft_error *err)
{
    const size_t wanted = (size_t)s->task->n_fewshot;
    size_t n = 0, *others = weft__alloc_array(pool->n, sizeof *others);
    if (!others) return weft_fail(err, WEFT_NO_MEMORY, "no memory for examples");
    for (size_t k = 0; k < pool->n; k++)
        if (!weft__json_equal(pool->items[k], doc)) others[n++] = k;
    weft_status st = n < wanted ? weft_fail(err, WEFT_ARGUMENT,
                                            "only %zu documents differ from it; %zu examples are wanted", n, wanted)
                                : weft__eval_random_sample(&s->random, n, wanted, s->order, err);
    for (size_t k = 0; !st && k < wanted; k++) s->order[k] = others[s->order[k]];
    s->n_order = st ? 0 : wanted;
    weft__free(others);
    return st;
}

weft_status weft__eval_shots_next(weft__eval_shots *s, size_t i, weft_error *err)
{
    const weft__eval_task *t = s->task;
    const weft__eval_docs *pool = pool_of(t);
    const size_t wanted = (size_t)t->n_fewshot, drawn = wanted + (t->shots_are_docs != 0);
    size_t n = 0;
    s->n_order = 0;
    if (!wanted) return WEFT_OK;
    if (t->fewshot_first) {
        for (size_t k = 0; k < pool->n && s->n_order < wanted; k++)
            if (!t->shots_are_docs || !weft__json_equal(pool->items[k], t->docs.items[i])) s->order[s->n_order++] = k;
        return s->n_order == wanted ? WEFT_OK : weft_fail(err, WEFT_ARGUMENT, "too few examples beside it");
    }
    weft_status st = weft__eval_random_sample(&s->random, pool->n, drawn, s->order, err);
    for (size_t k = 0; !st && k < drawn && n < wanted; k++)
        if (!t->shots_are_docs || !weft__json_equal(pool->items[s->order[k]], t->docs.items[i]))
            s->order[n++] = s->order[k];
    s->n_order = n;
    return st || n == wanted ? st : draw_others(s, pool, t->docs.items[i], err);
}

/* ---- turns ---- */

typedef struct turn {
    const char *role;
    weft__strbuf content;
    const char *delimiter; /* behind it, in plain text */
} turn;

typedef struct turns {
    turn *items;
    size_t n, capacity;
    int failed;
} turns;

static void free_turns(turns *t)
{
    for (size_t i = 0; i < t->n; i++) weft__strbuf_free(&t->items[i].content);
    weft__free(t->items);
}

static turn *add_turn(turns *t, const char *role)
{
    if (!weft__grow(&t->items, &t->capacity, t->n + 1, sizeof *t->items)) {
        t->failed = 1;
        return NULL;
    }
    t->items[t->n] = (turn){.role = role, .delimiter = ""};
    return &t->items[t->n++];
}

static void put_text_of(weft__strbuf *out, const weft__json *v)
{
    const char *s;
    size_t n;
    if (weft__json_string(v, &s, &n)) weft__strbuf_put(out, s, n);
}

/* a and b with a delimiter between them, unless white space is there or one of them is empty. */
static void put_joined(weft__strbuf *out, const weft__json *a, const weft__json *b, const char *delimiter)
{
    const char *s = "", *u = "";
    size_t n = 0, m = 0;
    weft__json_string(a, &s, &n);
    weft__json_string(b, &u, &m);
    weft__strbuf_put(out, s, n);
    if (n && m && !weft__eval_ends_blank(s, n) && !weft__eval_begins_blank(u, m)) weft__strbuf_puts(out, delimiter);
    weft__strbuf_put(out, u, m);
}

/* The question of a document: *q a text; or a number, where the choices are questions. */
static weft_status question_of(const weft__eval_task *t, const weft__json *doc, weft__json **q, weft_error *err)
{
    *q = NULL;
    weft_status st = weft__eval_field_of(t, &t->text, "doc_to_text", doc, 0, q, err);
    const int kind = weft__json_kind_of(*q);
    if (!st && kind != WEFT__JSON_STRING && !(kind == WEFT__JSON_INT && (t->choice.source || t->choice.constant))) {
        weft__strbuf s = {0};
        if (kind == WEFT__JSON_ARRAY || kind == WEFT__JSON_OBJECT || !*q)
            return weft__json_free(q), weft_fail(err, WEFT_FORMAT, "doc_to_text: gives no text");
        weft__eval_put_value(&s, *q);
        weft__json_free(q);
        *q = s.failed ? NULL : weft__json_new_string(s.data, s.len);
        weft__strbuf_free(&s);
        if (!*q) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a question");
    }
    return st;
}

/* An example: the question, and the answer behind it. */
static weft_status add_shot(const weft__eval_task *t, const weft__json *doc, turns *all, weft_error *err)
{
    weft__json *q = NULL, *golds = NULL, *choices = NULL, *prefix = NULL;
    int64_t at;
    weft_status st = question_of(t, doc, &q, err);
    if (!st) st = weft__eval_golds_of(t, doc, &golds, err);
    if (!st) st = weft__eval_field_of(t, &t->prefix, "gen_prefix", doc, 0, &prefix, err);
    if (!st && weft__json_int(q, &at)) st = weft__eval_choices_of(t, doc, &choices, err);
    const weft__json *text = choices ? weft__json_at(choices, at < 0 ? SIZE_MAX : (size_t)at) : q;
    if (!st && (!text || !weft__json_size(golds)))
        st = weft_fail(err, WEFT_FORMAT, "it has no question or answer to be an example with");
    turn *user = st ? NULL : add_turn(all, "user");
    if (user) {
        put_text_of(&user->content, text);
        user->delimiter = t->target_delimiter;
        turn *answer = add_turn(all, "assistant");
        if (answer) {
            put_joined(&answer->content, prefix, weft__json_at(golds, 0), " ");
            answer->delimiter = t->fewshot_delimiter;
        }
    }
    weft__json_free(&q);
    weft__json_free(&golds);
    weft__json_free(&choices);
    weft__json_free(&prefix);
    return st;
}

static weft_status add_system(const weft__eval_task *t, const weft__eval_style *style, const weft__json *doc,
                              turns *all, weft_error *err)
{
    weft__json *description = NULL;
    weft_status st = weft__eval_field_of(t, &t->description, "description", doc, 0, &description, err);
    weft__json *system = style->system ? weft__json_new_string(style->system, strlen(style->system)) : NULL;
    const char *s;
    size_t n = 0;
    if (!st && (system || (weft__json_string(description, &s, &n) && n))) {
        turn *one = add_turn(all, "system");
        if (one) put_joined(&one->content, system, description, t->fewshot_delimiter);
    }
    weft__json_free(&system);
    weft__json_free(&description);
    return st;
}

/* The question at hand, and how its answer begins. */
static void add_question(const weft__eval_task *t, const weft__json *text, const weft__json *prefix, int of_choice,
                         turns *all)
{
    const char *s = "", *u = "";
    size_t n = 0, m = 0;
    turn *user = add_turn(all, "user");
    if (!user) return;
    weft__json_string(text, &s, &n);
    put_text_of(&user->content, text);
    if (!weft__json_string(prefix, &u, &m) || !m) return;
    if (n && !weft__eval_ends_blank(s, n) && !weft__eval_begins_blank(u, m))
        user->delimiter = of_choice ? "" : t->target_delimiter;
    turn *answer = add_turn(all, "assistant");
    if (answer) weft__strbuf_put(&answer->content, u, m);
}

/* ---- turns to a prompt ---- */

static void put_message(weft__strbuf *out, const char *role, const weft__strbuf *content)
{
    weft__strbuf_printf(out, "%s{\"role\": \"%s\", \"content\": ", out->len > 1 ? ", " : "", role);
    weft__json_write_string(out, content->data ? content->data : "", content->len);
    weft__strbuf_puts(out, "}");
}

/* All between the system's turn and a begun answer as one message of the user's. */
static void put_single(weft__strbuf *out, const turns *all)
{
    const size_t first = all->n && !strcmp(all->items[0].role, "system");
    const size_t begun = all->n && !strcmp(all->items[all->n - 1].role, "assistant"), end = all->n - begun;
    weft__strbuf user = {0};
    if (first) put_message(out, "system", &all->items[0].content);
    for (size_t i = first; i < end; i++) {
        weft__strbuf_put(&user, all->items[i].content.data ? all->items[i].content.data : "",
                         all->items[i].content.len);
        if (i + 1 < end) weft__strbuf_puts(&user, all->items[i].delimiter);
    }
    out->failed |= user.failed;
    put_message(out, "user", &user);
    if (begun) put_message(out, "assistant", &all->items[end].content);
    weft__strbuf_free(&user);
}

static weft_status render_chat(const weft__eval_style *style, const turns *all, weft__eval_ask *ask, weft_error *err)
{
    weft__strbuf messages = {0};
    const int begun = !strcmp(all->items[all->n - 1].role, "assistant");
    size_t n;
    weft__strbuf_puts(&messages, "[");
    if (!style->multiturn) put_single(&messages, all);
    for (size_t i = 0; style->multiturn && i < all->n; i++)
        put_message(&messages, all->items[i].role, &all->items[i].content);
    weft__strbuf_puts(&messages, "]");
    weft_status st = messages.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt")
                                     : weft_chat_render(style->chat, messages.data, NULL, NULL,
                                                        begun ? WEFT_CHAT_CONTINUE : 1, &ask->prompt, err);
    weft__strbuf_free(&messages);
    if (st) return st;
    const char *text = weft_chat_prompt_text(ask->prompt, &n);
    weft__strbuf_put(&ask->context, text, n);
    return WEFT_OK;
}

static weft_status render(const weft__eval_style *style, const turns *all, weft__eval_ask *ask, weft_error *err)
{
    if (style->chat) return render_chat(style, all, ask, err);
    for (size_t i = 0; i < all->n; i++) {
        weft__strbuf_put(&ask->context, all->items[i].content.data ? all->items[i].content.data : "",
                         all->items[i].content.len);
        weft__strbuf_puts(&ask->context, all->items[i].delimiter);
    }
    return ask->context.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt") : WEFT_OK;
}

/* ---- questions ---- */

void weft__eval_asks_free(weft__eval_asks *asks)
{
    for (size_t i = 0; i < asks->n; i++) {
        weft__strbuf_free(&asks->items[i].context);
        weft__strbuf_free(&asks->items[i].continuation);
        weft_chat_prompt_free(&asks->items[i].prompt);
    }
    weft__free(asks->items);
    *asks = (weft__eval_asks){0};
}

static weft_status room_for(weft__eval_asks *out, size_t n, weft_error *err)
{
    out->items = weft__alloc_zero(n, sizeof *out->items);
    if (!out->items) return weft_fail(err, WEFT_NO_MEMORY, "no memory for questions");
    out->n = n;
    return WEFT_OK;
}

/* Before what is scored: nothing in a conversation, whose template ends the question, unless the answer is begun. */
static const char *delimiter_of(const weft__eval_task *t, const weft__eval_style *style, const weft__json *prefix)
{
    const char *s = "";
    size_t n = 0;
    weft__json_string(prefix, &s, &n);
    return !style->chat || (n && !weft__eval_ends_blank(s, n)) ? t->target_delimiter : "";
}

/* One context for all choices. */
static weft_status ask_behind(const weft__eval_task *t, const weft__eval_style *style, const turns *all,
                              const weft__json *choices, const char *delimiter, weft__eval_asks *out, weft_error *err)
{
    weft_status st = room_for(out, choices ? weft__json_size(choices) : 1, err);
    for (size_t i = 0; !st && i < out->n; i++) {
        st = render(style, all, &out->items[i], err);
        if (!choices) continue;
        if (t->span == WEFT__EVAL_BEHIND) weft__strbuf_puts(&out->items[i].continuation, delimiter);
        put_text_of(&out->items[i].continuation, weft__json_at(choices, i));
    }
    return st;
}

/* Each choice a question of its own, with one answer. */
static weft_status ask_each(const weft__eval_task *t, const weft__eval_style *style, turns *all,
                            const weft__json *choices, const weft__json *prefix, const weft__json *target,
                            weft__eval_asks *out, weft_error *err)
{
    weft_status st = room_for(out, weft__json_size(choices), err);
    const size_t n = all->n;
    for (size_t i = 0; !st && i < out->n; i++) {
        add_question(t, weft__json_at(choices, i), prefix, 1, all);
        st = all->failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt")
                         : render(style, all, &out->items[i], err);
        weft__strbuf_puts(&out->items[i].continuation, delimiter_of(t, style, prefix));
        put_text_of(&out->items[i].continuation, weft__json_at(target, 0));
        while (all->n > n) weft__strbuf_free(&all->items[--all->n].content);
    }
    return st;
}

/* What is scored where there are no choices: the first right answer. */
static weft_status ask_one(const weft__eval_task *t, const weft__eval_style *style, const turns *all,
                           const weft__json *golds, weft__eval_asks *out, weft_error *err)
{
    if (!weft__json_size(golds) && t->output != WEFT__EVAL_GENERATE)
        return weft_fail(err, WEFT_FORMAT, "doc_to_target: gives no text");
    weft_status st =
        t->output == WEFT__EVAL_ROLLING ? room_for(out, 1, err) : ask_behind(t, style, all, NULL, "", out, err);
    if (!st && t->output != WEFT__EVAL_GENERATE) put_text_of(&out->items[0].continuation, weft__json_at(golds, 0));
    return st;
}

static weft_status make(const weft__eval_shots *s, const weft__eval_style *style, const weft__json *doc, turns *all,
                        weft__eval_asks *out, weft_error *err)
{
    const weft__eval_task *t = s->task;
    weft__json *q = NULL, *choices = NULL, *prefix = NULL, *golds = NULL;
    weft_status st = add_system(t, style, doc, all, err);
    for (size_t k = 0; !st && k < s->n_order; k++) st = add_shot(t, pool_of(t)->items[s->order[k]], all, err);
    if (!st && t->output != WEFT__EVAL_ROLLING) st = question_of(t, doc, &q, err);
    if (!st) st = weft__eval_field_of(t, &t->prefix, "gen_prefix", doc, 0, &prefix, err);
    if (!st && t->output == WEFT__EVAL_CHOICE) st = weft__eval_choices_of(t, doc, &choices, err);
    const int each = choices && weft__json_kind_of(q) == WEFT__JSON_INT;
    if (!st && (each || !choices)) st = weft__eval_golds_of(t, doc, &golds, err);
    if (!st && q && !each) add_question(t, q, prefix, 0, all);
    if (!st && all->failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt");
    if (!st)
        st = each      ? ask_each(t, style, all, choices, prefix, golds, out, err)
             : choices ? ask_behind(t, style, all, choices, delimiter_of(t, style, prefix), out, err)
                       : ask_one(t, style, all, golds, out, err);
    for (size_t i = 0; !st && i < out->n; i++)
        if (out->items[i].context.failed || out->items[i].continuation.failed)
            st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt");
    weft__json_free(&q);
    weft__json_free(&choices);
    weft__json_free(&prefix);
    weft__json_free(&golds);
    return st;
}

weft_status weft__eval_ask_make(const weft__eval_shots *shots, const weft__eval_style *style, size_t i,
                                weft__eval_asks *out, weft_error *err)
{
    turns all = {0};
    weft_error why = {0};
    *out = (weft__eval_asks){0};
    weft_status st = make(shots, style, shots->task->docs.items[i], &all, out, &why);
    if (st) weft_fail(err, st, "document %zu: %s", i + 1, why.message);
    if (st) weft__eval_asks_free(out);
    free_turns(&all);
    return st;
}
