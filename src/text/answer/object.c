// SPDX-License-Identifier: Apache-2.0
/* object.c: calls that are JSON objects. Arguments keep their spelling. Stateless. */
#include <string.h>

#include "text/answer/call.h"

/* Whether s[0..n) is a JSON object. */
static int is_object(const char *s, size_t n)
{
    weft__json *v = NULL;
    int object = !weft__json_parse_repeated(s, n, &v, NULL) && weft__json_kind_of(v) == WEFT__JSON_OBJECT;
    weft__json_free(&v);
    return object;
}

int weft__answer_read_arguments(weft__answer_call *c, const char *s, size_t n)
{
    weft__json *v = NULL;
    const char *text = s;
    size_t length = n;
    weft_status st = weft__json_parse_repeated(s, n, &v, NULL);
    if (st == WEFT_NO_MEMORY) c->arguments.failed = 1;
    if (st) return 0;
    int kind = weft__json_kind_of(v), ok = kind == WEFT__JSON_OBJECT;
    if (kind == WEFT__JSON_NULL) text = "{}", length = 2, ok = 1;
    if (weft__json_string(v, &text, &length)) ok = is_object(text, length);
    c->arguments.len = 0;
    if (ok) weft__strbuf_put(&c->arguments, text, length);
    weft__json_free(&v);
    return ok;
}

static void put(weft__strbuf *to, const weft__json *v)
{
    const char *s;
    size_t n;
    to->len = 0;
    if (weft__json_string(v, &s, &n)) weft__strbuf_put(to, s, n);
}

/* The member of the call in s[0..n) that has the arguments; one of the two usual names stands for the other. */
static int find_arguments(const weft__answer_keys *keys, const char *s, size_t n, const char **value, size_t *n_value)
{
    const char *names[] = {keys->arguments, "arguments", "parameters"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (weft__answer_json_member(s, n, names[i], strlen(names[i]), value, n_value)) return 1;
    return 0;
}

/* {"get_time": {...}} */
static int read_named(weft__answer_call *c, const weft__json *v, const char *s, size_t n)
{
    weft__json_member m = {0};
    const char *value;
    size_t n_value;
    if (weft__json_size(v) != 1 || !weft__json_next(v, &m) || !m.key_len) return 0;
    c->name.len = 0;
    weft__strbuf_put(&c->name, m.key, m.key_len);
    return weft__answer_json_member(s, n, NULL, 0, &value, &n_value) && weft__answer_read_arguments(c, value, n_value);
}

int weft__answer_read_object(weft__answer_call *c, const char *s, size_t n)
{
    const weft__answer_keys *keys = &c->format->keys;
    weft__json *v = NULL;
    const char *value;
    size_t n_value;
    int ok = 0;
    weft_status st = weft__json_parse_repeated(s, n, &v, NULL);
    if (st == WEFT_NO_MEMORY) c->arguments.failed = 1;
    if (st) return 0;
    const weft__json *call = v, *function = weft__json_get(v, "function");
    if (!keys->name) {
        ok = read_named(c, v, s, n);
    } else {
        /* As OpenAI has them, which models have seen, too. */
        if (weft__json_kind_of(function) == WEFT__JSON_OBJECT && weft__answer_json_member(s, n, "function", 8, &s, &n))
            call = function;
        put(&c->name, weft__json_get(call, keys->name));
        if (keys->id) put(&c->id, weft__json_get(v, keys->id));
        if (find_arguments(keys, s, n, &value, &n_value)) ok = weft__answer_read_arguments(c, value, n_value);
        else if (!c->form->first) ok = weft__answer_read_arguments(c, "{}", 2);
        ok = ok && c->name.len;
    }
    weft__json_free(&v);
    return ok;
}
