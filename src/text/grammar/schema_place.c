// SPDX-License-Identifier: Apache-2.0
/* schema_place.c: places in a JSON Schema as JSON pointers (RFC 6901): where references lead, and where what is refused
 * stands. One thread. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/schema_parts.h"

void weft__gram_schema_put_key(weft__strbuf *t, const char *key)
{
    weft__strbuf_putc(t, '/');
    for (; *key; key++) {
        if (*key == '~') weft__strbuf_puts(t, "~0");
        else if (*key == '/') weft__strbuf_puts(t, "~1");
        else weft__strbuf_putc(t, *key);
    }
}

/* What a pointer that begins with '#' leads to; NULL: nothing, or a failure. `encoded`: bytes may be spelled %HH, as in
 * a URI. */
static const weft__json *resolve(const weft__gram_schema *c, const char *s, int encoded)
{
    const weft__json *v = c->root;
    for (s++; *s && v;) {
        weft__strbuf key = {0};
        for (s++; *s && *s != '/'; s++) {
            char byte = *s;
            unsigned code;
            if (byte == '~' && (s[1] == '0' || s[1] == '1')) byte = *++s == '0' ? '~' : '/';
            else if (encoded && byte == '%' && s[1] && s[2] && sscanf(s + 1, "%2x", &code) == 1 && code) {
                byte = (char)code;
                s += 2;
            }
            weft__strbuf_putc(&key, byte);
        }
        weft__strbuf_putc(&key, 0);
        unsigned long i = 0;
        int used = 0;
        if (key.failed) weft__gram_fail(c->g, WEFT_NO_MEMORY, "no memory for a grammar");
        if (key.failed) v = NULL;
        else if (weft__json_kind_of(v) == WEFT__JSON_ARRAY)
            v = sscanf(key.data, "%7lu%n", &i, &used) == 1 && !key.data[used] ? weft__json_at(v, i) : NULL;
        else v = weft__json_get(v, key.data);
        weft__strbuf_free(&key);
    }
    return v;
}

/* 1 when what stands at a place was put together from other places, so that a keyword of it need not stand there. */
static int is_put_together(const weft__gram_schema *c, const char *at, const char *key)
{
    if (at[0] == '#' && at[1] && at[1] != '/') return 0; /* behind an anchor */
    const weft__json *v = c->root && at[0] == '#' ? resolve(c, at, strchr(at, '%') != NULL) : NULL;
    return !v || (key && !weft__json_get(v, key) &&
                  (weft__json_get(v, "$ref") || weft__json_get(v, "allOf") || weft__json_get(v, "anyOf") ||
                   weft__json_get(v, "oneOf") || weft__json_get(v, "not") || weft__json_get(v, "if")));
}

int32_t weft__gram_schema_fail(weft__gram_schema *c, weft_status status, const char *at, const char *key,
                               const char *format, ...)
{
    char text[WEFT_ERROR_TEXT], place[300];
    weft__strbuf whole = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    weft__strbuf_puts(&whole, at);
    if (key) weft__gram_schema_put_key(&whole, key);
    const char *shown = whole.data ? whole.data : at;
    weft__gram_fail(c->g, status, "schema: %s: %s%s", weft__utf8_show(place, sizeof place, shown, strlen(shown)), text,
                    is_put_together(c, at, key) ? " (put together there from several schemas)" : "");
    weft__strbuf_free(&whole);
    return -1;
}

/* What is looked for in all of a schema. Each value that is looked at is a step, and its nesting is bounded by the
 * reader of JSON. */
typedef struct searched {
    weft__gram_schema *c;
    const char *at, *key, *name; /* key NULL: an $anchor, spelled '#name' */
    const weft__json *found;
    size_t n; /* that differ */
} searched;

/* What is not a schema may look like one: names of anchors are there to be told apart. */
static const weft__json *is_searched(const searched *x, const weft__json *v)
{
    if (x->key) return weft__json_get(weft__json_get(v, x->key), x->name);
    const int named = weft__json_is(weft__json_get(v, "$anchor"), x->name + 1) ||
                      weft__json_is(weft__json_get(v, "$id"), x->name); /* as draft 6 has it */
    return named ? v : NULL;
}

static void search(searched *x, const weft__json *v)
{
    const weft__json *own = is_searched(x, v);
    weft__json_member m = {0};
    const int list = weft__json_kind_of(v) == WEFT__JSON_ARRAY;
    if (!weft__gram_schema_step(x->c, x->at)) return;
    if (own) x->n += !x->found || !weft__json_equal(own, x->found);
    if (own) x->found = own;
    for (size_t i = 0; i < weft__json_size(v) && !weft__gram_schema_failed(x->c); i++) {
        if (!list && !weft__json_next(v, &m)) break;
        search(x, list ? weft__json_at(v, i) : m.value);
    }
}

/* What a reference means that is no place: an anchor, or a definition that stands deeper than it says, as schemas have
 * some that were put into others with their own; the only one of that name. It is kept. NULL: there is none. */
static const weft__json *look_for(weft__gram_schema *c, const char *s, const char *at)
{
    static const char *const keys[] = {"$defs", "definitions"};
    searched x = {.c = c, .at = at, .name = s};
    const size_t n = strlen(s);
    int32_t known = weft__strings_find(&c->looked_for, s, n);
    if (known >= 0) return c->found[known];
    for (size_t i = 0; i < 2 && s[1] == '/'; i++) {
        const size_t length = strlen(keys[i]);
        if (strncmp(s + 2, keys[i], length) != 0 || s[2 + length] != '/') continue;
        x.key = keys[i];
        x.name = s + 3 + length;
    }
    if (x.key || s[1] != '/') search(&x, c->root);
    if (x.n != 1) x.found = NULL;
    if (weft__grow(&c->found, &c->found_capacity, c->looked_for.n + 1, sizeof *c->found) &&
        weft__strings_add(&c->looked_for, s, n, 1))
        c->found[c->looked_for.n - 1] = x.found;
    else weft__gram_fail(c->g, WEFT_NO_MEMORY, "no memory for a grammar");
    return weft__gram_schema_failed(c) ? NULL : x.found;
}

/* A reference without the schema's own $id in front, if it has it there. */
static const char *within_root(const weft__gram_schema *c, const char *s)
{
    const char *id = "";
    size_t n = 0;
    if (!weft__json_string(weft__json_get(c->root, "$id"), &id, &n) || !n || strncmp(s, id, n) != 0) return s;
    if (n && id[n - 1] == '#') n--;
    return !s[n] ? "#" : s[n] == '#' ? s + n : s;
}

const weft__json *weft__gram_schema_follow(weft__gram_schema *c, const weft__json *ref, const char *at)
{
    const char *s = "";
    size_t n = 0;
    const weft__json *v = NULL;
    const int text = weft__json_string(ref, &s, &n) && strlen(s) == n;
    if (text) s = within_root(c, s);
    if (!text || s[0] != '#') {
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "$ref", "must be a place in this schema, as #/$defs/NAME");
        return NULL;
    }
    if (!s[1] || s[1] == '/') v = resolve(c, s, 1);
    if (!v && !weft__gram_schema_failed(c)) v = look_for(c, s, at);
    if (!v) weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "$ref", "leads nowhere");
    return v;
}
