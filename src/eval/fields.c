// SPDX-License-Identifier: Apache-2.0
/* fields.c: fields of documents (fields.h). */
#include "eval/fields.h"

#include <string.h>

#include "eval/literal.h"

static weft_status made(weft__json *const *v, weft_error *err)
{
    return *v ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a document's fields");
}

static weft_status render(const weft__eval_field *f, const weft__json *doc, weft__jinja_output *out, weft_error *err)
{
    weft__jinja_call *call = NULL;
    weft__json_member m = {0};
    weft_status st = weft__jinja_call_create(NULL, &call, err);
    while (!st && weft__json_next(doc, &m)) st = weft__jinja_set_json(call, m.key, m.value, NULL, NULL, err);
    if (!st) st = weft__jinja_render(f->jinja, call, out, err);
    weft__jinja_call_destroy(&call);
    return st;
}

static int is_number(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] < '0' || s[i] > '9') return 0;
    return n > 0 && n < 18;
}

/* What a template wrote. */
static weft_status value_of(const weft__eval_task *t, const char *s, size_t n, int is_list, weft__json **out,
                            weft_error *err)
{
    const int has_choices = t->choice.source || t->choice.constant;
    *out = NULL;
    if ((has_choices && is_number(s, n)) || (is_list && n > 1 && s[0] == '[' && s[n - 1] == ']'))
        if (weft__eval_literal(s, n, out, NULL)) *out = NULL;
    if (!*out) *out = weft__json_new_string(s, n);
    return made(out, err);
}

weft_status weft__eval_field_of(const weft__eval_task *t, const weft__eval_field *f, const char *what,
                                const weft__json *doc, int is_list, weft__json **out, weft_error *err)
{
    weft__jinja_output text = {0};
    weft_error why = {0};
    *out = NULL;
    if (f->constant) return *out = weft__json_copy(f->constant), made(out, err);
    if (!f->source) return WEFT_OK;
    const weft__json *own = weft__json_get(doc, f->source);
    if (own) return *out = weft__json_copy(own), made(out, err);
    if (t->docs.n && weft__json_get(t->docs.items[0], f->source))
        return weft_fail(err, WEFT_ARGUMENT, "%s: there is no '%.60s' in it, as there is in the first document", what,
                         f->source);
    weft_status st = render(f, doc, &text, &why);
    if (st) return weft_fail(err, st, "%s: %s", what, why.message);
    st = value_of(t, text.text, text.len, is_list, out, err);
    weft__jinja_output_free(&text);
    return st;
}

void weft__eval_put_value(weft__strbuf *out, const weft__json *v)
{
    const char *s;
    size_t n;
    int is;
    if (weft__json_string(v, &s, &n)) weft__strbuf_put(out, s, n);
    else if (weft__json_bool(v, &is)) weft__strbuf_puts(out, is ? "True" : "False");
    else if (weft__json_is_null(v)) weft__strbuf_puts(out, "None");
    else weft__json_write(out, v, WEFT__JSON_COMPACT);
}

/* A copy of v as a text. */
static weft__json *as_text(const weft__json *v)
{
    weft__strbuf t = {0};
    weft__eval_put_value(&t, v);
    weft__json *text = t.failed ? NULL : weft__json_new_string(t.data ? t.data : "", t.len);
    weft__strbuf_free(&t);
    return text;
}

/* The elements of an array, or v alone, as texts. */
static weft_status texts_of(const weft__json *v, weft__json **out, weft_error *err)
{
    const int is_array = weft__json_kind_of(v) == WEFT__JSON_ARRAY;
    int ok = (*out = weft__json_new_array()) != NULL;
    for (size_t i = 0; ok && i < (is_array ? weft__json_size(v) : 1); i++)
        ok = weft__json_append(*out, as_text(is_array ? weft__json_at(v, i) : v));
    if (ok) return WEFT_OK;
    weft__json_free(out);
    return made(out, err);
}

weft_status weft__eval_choices_of(const weft__eval_task *t, const weft__json *doc, weft__json **out, weft_error *err)
{
    weft__json *v = NULL, *list = NULL;
    const char *s;
    size_t n;
    weft_error why = {0};
    *out = NULL;
    weft_status st = weft__eval_field_of(t, &t->choice, "doc_to_choice", doc, 0, &v, err);
    if (st || !v) return st;
    if (weft__json_string(v, &s, &n) && (st = weft__eval_literal(s, n, &list, &why)))
        st = weft_fail(err, st, "doc_to_choice: %s", why.message);
    const weft__json *all = list ? list : v;
    if (!st && (weft__json_kind_of(all) != WEFT__JSON_ARRAY || !weft__json_size(all)))
        st = weft_fail(err, WEFT_FORMAT, "doc_to_choice: must be a list of texts, at least one");
    if (!st) st = texts_of(all, out, err);
    weft__json_free(&list);
    weft__json_free(&v);
    return st;
}

weft_status weft__eval_golds_of(const weft__eval_task *t, const weft__json *doc, weft__json **out, weft_error *err)
{
    weft__json *v = NULL, *choices = NULL;
    int64_t at;
    *out = NULL;
    weft_status st = weft__eval_field_of(t, &t->target, "doc_to_target", doc, 1, &v, err);
    if (!st && v) st = weft__eval_choices_of(t, doc, &choices, err);
    if (!st && !v) st = made((weft__json *const[]){ *out = weft__json_new_array()}, err);
    else if (!st && choices && weft__json_int(v, &at)) {
        const weft__json *one = at < 0 ? NULL : weft__json_at(choices, (size_t)at);
        st = one ? texts_of(one, out, err)
                 : weft_fail(err, WEFT_FORMAT, "doc_to_target: there is no choice %lld", (long long)at);
    } else if (!st) {
        st = texts_of(v, out, err);
    }
    weft__json_free(&choices);
    weft__json_free(&v);
    return st;
}
