// SPDX-License-Identifier: Apache-2.0
/* record_forms.c: see record_forms.h. */
#include "train/record_forms.h"

#include <string.h>

static weft_status record_forms_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for a record");
}

static int is_string(const weft__json *v)
{
    return weft__json_kind_of(v) == WEFT__JSON_STRING;
}

/* Absent, null or "". */
static int is_none(const weft__json *v)
{
    return !v || weft__json_is_null(v) || weft__json_is(v, "");
}

/* Appends a message; takes over `content`. */
static int record_forms_put(weft__json *list, const char *role, weft__json *content, const weft__json *weight)
{
    weft__json *m = weft__json_new_object();
    int ok = weft__json_set(m, "role", weft__json_new_string(role, strlen(role)));
    ok &= weft__json_set(m, "content", content);
    if (ok && weight) ok = weft__json_set(m, "weight", weft__json_copy(weight));
    if (!ok) weft__json_free(&m);
    return weft__json_append(list, m) && ok;
}

/* The turn that stands before all others. */
static weft_status put_system(weft__json *list, const weft__json *root, weft_error *err)
{
    const weft__json *text = weft__json_get(root, "system");
    if (is_none(text)) return WEFT_OK;
    if (!is_string(text)) return weft_fail(err, WEFT_FORMAT, "\"system\" is no string");
    return record_forms_put(list, "system", weft__json_copy(text), NULL) ? WEFT_OK : record_forms_no_memory(err);
}

/* ---- ShareGPT ---- */

static const char *role_of(const weft__json *from)
{
    static const char *const roles[][2] = {{"human", "user"},          {"user", "user"},
                                           {"gpt", "assistant"},       {"chatgpt", "assistant"},
                                           {"assistant", "assistant"}, {"model", "assistant"},
                                           {"system", "system"},       {"tool", "tool"},
                                           {"observation", "tool"},    {"function_response", "tool"}};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (weft__json_is(from, roles[i][0])) return roles[i][1];
    return NULL;
}

static weft_status put_turn(weft__json *list, const weft__json *turn, size_t i, weft_error *err)
{
    const weft__json *from = weft__json_get(turn, "from"), *value = weft__json_get(turn, "value");
    if (weft__json_kind_of(turn) != WEFT__JSON_OBJECT)
        return weft_fail(err, WEFT_FORMAT, "conversations[%zu] is no object {\"from\", \"value\"}", i);
    if (!from && weft__json_get(turn, "role")) /* messages under this name */
        return weft__json_append(list, weft__json_copy(turn)) ? WEFT_OK : record_forms_no_memory(err);
    if (!is_string(from)) return weft_fail(err, WEFT_FORMAT, "conversations[%zu] has no \"from\" that is a string", i);
    if (weft__json_is(from, "function_call"))
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "conversations[%zu] is a function_call; make the record one of {\"messages\", \"tools\"} with "
                         "\"tool_calls\"",
                         i);
    const char *role = role_of(from), *name;
    size_t n;
    if (!role && weft__json_string(from, &name, &n))
        return weft_fail(err, WEFT_FORMAT, "conversations[%zu].from is '%.40s'; it must be human, gpt, system or tool",
                         i, name);
    if (!is_string(value))
        return weft_fail(err, WEFT_FORMAT, "conversations[%zu] has no \"value\" that is a string", i);
    return record_forms_put(list, role, weft__json_copy(value), weft__json_get(turn, "weight"))
               ? WEFT_OK
               : record_forms_no_memory(err);
}

weft_status weft__train_record_of_conversations(const weft__json *root, weft__json **messages, weft_error *err)
{
    const weft__json *turns = weft__json_get(root, "conversations");
    weft__json *list = weft__json_new_array();
    weft_status st = list ? WEFT_OK : record_forms_no_memory(err);
    if (!st && weft__json_kind_of(turns) != WEFT__JSON_ARRAY)
        st = weft_fail(err, WEFT_FORMAT, "\"conversations\" is no list of {\"from\", \"value\"}");
    if (!st) st = put_system(list, root, err);
    for (size_t i = 0; !st && i < weft__json_size(turns); i++) st = put_turn(list, weft__json_at(turns, i), i, err);
    if (st) weft__json_free(&list);
    *messages = list;
    return st;
}

/* ---- Alpaca ---- */

/* The question: the instruction, and behind it what it is about. NULL without memory. */
static weft__json *question(const weft__json *instruction, const weft__json *input)
{
    const char *a = NULL, *b = NULL;
    size_t n_a = 0, n_b = 0;
    weft__strbuf t = {0};
    weft__json_string(instruction, &a, &n_a);
    if (is_none(input) || !weft__json_string(input, &b, &n_b)) return weft__json_copy(instruction);
    weft__strbuf_put(&t, a, n_a);
    weft__strbuf_puts(&t, "\n\n");
    weft__strbuf_put(&t, b, n_b);
    weft__json *v = t.failed ? NULL : weft__json_new_string(t.data, t.len);
    weft__strbuf_free(&t);
    return v;
}

static weft_status put_history(weft__json *list, const weft__json *history, weft_error *err)
{
    if (history && !weft__json_is_null(history) && weft__json_kind_of(history) != WEFT__JSON_ARRAY)
        return weft_fail(err, WEFT_FORMAT, "\"history\" is no list of [question, answer]");
    for (size_t i = 0; i < weft__json_size(history); i++) {
        const weft__json *pair = weft__json_at(history, i), *asked = weft__json_at(pair, 0),
                         *answer = weft__json_at(pair, 1);
        if (weft__json_size(pair) != 2 || !is_string(asked) || !is_string(answer))
            return weft_fail(err, WEFT_FORMAT, "history[%zu] is no [question, answer] of two strings", i);
        if (!record_forms_put(list, "user", weft__json_copy(asked), NULL) ||
            !record_forms_put(list, "assistant", weft__json_copy(answer), NULL))
            return record_forms_no_memory(err);
    }
    return WEFT_OK;
}

weft_status weft__train_record_of_instruction(const weft__json *root, weft__json **prompt, weft_error *err)
{
    const weft__json *instruction = weft__json_get(root, "instruction"), *input = weft__json_get(root, "input"),
                     *history = weft__json_get(root, "history");
    *prompt = NULL;
    if (!is_string(instruction)) return weft_fail(err, WEFT_FORMAT, "\"instruction\" is no string");
    if (!is_none(input) && !is_string(input))
        return weft_fail(err, WEFT_FORMAT, "\"input\" is no string; leave it out where there is none");
    weft__json *list = weft__json_new_array();
    weft_status st = list ? put_system(list, root, err) : record_forms_no_memory(err);
    if (!st) st = put_history(list, history, err);
    if (!st && !weft__json_size(list) && !(*prompt = question(instruction, input))) st = record_forms_no_memory(err);
    else if (!st && !*prompt && !record_forms_put(list, "user", question(instruction, input), NULL))
        st = record_forms_no_memory(err);
    if (st || *prompt) weft__json_free(&list);
    else *prompt = list;
    return st;
}
