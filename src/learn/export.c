// SPDX-License-Identifier: Apache-2.0
/* export.c: events as records to train with (store.h). Pure. */
#include <string.h>

#include "base/json.h"
#include "learn/store.h"

const char *weft__learn_kind_name(weft__learn_kind kind)
{
    static const char *const names[] = {"correction", "edit", "preferred", "thumb", "reward", "verifier"};
    return names[kind];
}

static weft__json *string_of(const char *text, size_t n)
{
    return weft__json_new_string(text ? text : "", text ? n : 0);
}

static weft__json *answer_of(const char *text, size_t n)
{
    weft__json *m = weft__json_new_object();
    if (m && weft__json_set(m, "role", weft__json_new_string("assistant", 9)) &&
        weft__json_set(m, "content", string_of(text, n)))
        return m;
    weft__json_free(&m);
    return NULL;
}

/* What was asked, with one answer: messages, or prompt and completion. */
static int put_answer(weft__json *line, const weft__json *source, const char *text, size_t n)
{
    const weft__json *messages = weft__json_get(source, "messages"), *prompt = weft__json_get(source, "prompt");
    if (!messages)
        return prompt && weft__json_set(line, "prompt", weft__json_copy(prompt)) &&
               weft__json_set(line, "completion", string_of(text, n));
    weft__json *all = weft__json_copy(messages);
    if (all && weft__json_append(all, answer_of(text, n))) return weft__json_set(line, "messages", all);
    weft__json_free(&all);
    return 0;
}

/* And with two. */
static int put_pair(weft__json *line, const weft__json *source, const char *chosen, size_t n_chosen,
                    const char *rejected, size_t n_rejected)
{
    const weft__json *messages = weft__json_get(source, "messages"), *prompt = weft__json_get(source, "prompt");
    return (messages || prompt) && weft__json_set(line, "prompt", weft__json_copy(messages ? messages : prompt)) &&
           weft__json_set(line, "chosen", messages ? answer_of(chosen, n_chosen) : string_of(chosen, n_chosen)) &&
           weft__json_set(line, "rejected",
                          messages ? answer_of(rejected, n_rejected) : string_of(rejected, n_rejected));
}

static int put_form(weft__json *line, const weft__json *source, const weft__learn_event *e, weft__learn_form form)
{
    const weft__learn_record *a = &e->answer, *b = &e->over;
    if (form == WEFT__LEARN_AS_SFT) return put_answer(line, source, e->text, e->n_text);
    if (form == WEFT__LEARN_AS_REWARDS)
        return put_answer(line, source, a->text, a->n_text) &&
               weft__json_set(line, "reward", weft__json_new_double(e->value));
    return e->kind == WEFT__LEARN_EDIT ? put_pair(line, source, e->text, e->n_text, a->text, a->n_text)
                                       : put_pair(line, source, a->text, a->n_text, b->text, b->n_text);
}

static int has_form(const weft__learn_event *e, weft__learn_form form)
{
    switch (form) {
    case WEFT__LEARN_AS_SFT: return e->kind == WEFT__LEARN_CORRECTION || e->kind == WEFT__LEARN_EDIT;
    case WEFT__LEARN_AS_PAIRS:
        return e->kind == WEFT__LEARN_EDIT || (e->kind == WEFT__LEARN_PREFERRED && e->over.id != NULL);
    case WEFT__LEARN_AS_REWARDS:
        return e->kind == WEFT__LEARN_THUMB || e->kind == WEFT__LEARN_REWARD || e->kind == WEFT__LEARN_VERIFIER;
    }
    return 0;
}

int weft__learn_write_event(const weft__learn_event *e, weft__learn_form form, weft__strbuf *out)
{
    weft__json *source = NULL, *line = NULL;
    const weft__learn_record *a = &e->answer;
    if (!has_form(e, form) || !a->source || weft__json_parse(a->source, strlen(a->source), &source, NULL)) return 0;
    const weft__json *tools = weft__json_get(source, "tools");
    int ok = (line = weft__json_new_object()) && put_form(line, source, e, form);
    if (ok && tools) ok = weft__json_set(line, "tools", weft__json_copy(tools));
    if (ok)
        ok = weft__json_set(line, "event", weft__json_new_int(e->event)) &&
             weft__json_set(line, "adapter", string_of(a->adapter, strlen(a->adapter))) &&
             weft__json_set(line, "version", weft__json_new_int(a->version));
    if (ok) {
        weft__json_write(out, line, WEFT__JSON_COMPACT);
        weft__strbuf_putc(out, '\n');
    }
    weft__json_free(&line);
    weft__json_free(&source);
    return ok && !out->failed;
}
