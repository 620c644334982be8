// SPDX-License-Identifier: Apache-2.0
/* values.c: see values.h. */
#include "text/answer/values.h"

#include <string.h>

#include "text/answer/format.h"
#include "text/answer/loose.h"

enum { ANY = (1 << (WEFT__JSON_OBJECT + 1)) - 1, STRING = 1 << WEFT__JSON_STRING, DEPTH_MAX = 16 };

/* The member of an object whose name is name[0..n). */
static const weft__json *member(const weft__json *object, const char *name, size_t n)
{
    weft__json_member m = {0};
    while (weft__json_kind_of(object) == WEFT__JSON_OBJECT && weft__json_next(object, &m))
        if (m.key_len == n && !memcmp(m.key, name, n)) return m.value;
    return NULL;
}

/* The function of that name, or NULL. */
static const weft__json *function_of(const weft__json *tools, const char *name, size_t n)
{
    for (size_t i = 0; i < weft__json_size(tools); i++) {
        const weft__json *tool = weft__json_at(tools, i), *function = weft__json_get(tool, "function");
        const char *is;
        size_t n_is;
        if (!function) function = tool;
        if (weft__json_string(weft__json_get(function, "name"), &is, &n_is) && n_is == n && !memcmp(is, name, n))
            return function;
    }
    return NULL;
}

int weft__answer_offers(const weft__json *tools, const char *name, size_t n)
{
    return function_of(tools, name, n) != NULL;
}

const weft__json *weft__answer_schema(const weft__json *tools, const char *name, size_t n)
{
    const weft__json *function = function_of(tools, name, n);
    return function ? weft__json_get(function, "parameters") : NULL;
}

const weft__json *weft__answer_schema_of(const weft__json *schema, const char *property, size_t n)
{
    const weft__json *found = member(weft__json_get(schema, "properties"), property, n);
    return found ? found : weft__json_get(schema, "additionalProperties");
}

const weft__json *weft__answer_schema_items(const weft__json *schema)
{
    return weft__json_get(schema, "items");
}

static unsigned named(const weft__json *type)
{
    static const struct {
        const char *name;
        unsigned types;
    } all[] = {{"string", STRING},
               {"integer", 1 << WEFT__JSON_INT},
               {"number", 1 << WEFT__JSON_INT | 1 << WEFT__JSON_DOUBLE},
               {"boolean", 1 << WEFT__JSON_BOOL},
               {"null", 1 << WEFT__JSON_NULL},
               {"array", 1 << WEFT__JSON_ARRAY},
               {"object", 1 << WEFT__JSON_OBJECT}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (weft__json_is(type, all[i].name)) return all[i].types;
    return 0;
}

static unsigned types(const weft__json *schema, int depth)
{
    static const char *const choices[] = {"anyOf", "oneOf"};
    const weft__json *type = weft__json_get(schema, "type"), *values = weft__json_get(schema, "enum"),
                     *value = weft__json_get(schema, "const");
    unsigned found = named(type);
    for (size_t i = 0; i < weft__json_size(type); i++) found |= named(weft__json_at(type, i));
    for (size_t i = 0; !type && i < weft__json_size(values); i++)
        found |= 1u << weft__json_kind_of(weft__json_at(values, i));
    if (!type && value) found |= 1u << weft__json_kind_of(value);
    for (size_t k = 0; !found && k < 2 && depth < DEPTH_MAX; k++) {
        const weft__json *of = weft__json_get(schema, choices[k]);
        for (size_t i = 0; i < weft__json_size(of); i++) found |= types(weft__json_at(of, i), depth + 1);
    }
    return found ? found : ANY;
}

unsigned weft__answer_types(const weft__json *schema)
{
    int nullable = 0;
    weft__json_bool(weft__json_get(schema, "nullable"), &nullable);
    return types(schema, 0) | (nullable ? 1u << WEFT__JSON_NULL : 0);
}

/* Whether s[0..n) is JSON of one of these types. */
static int is_json(const char *s, size_t n, unsigned allowed)
{
    weft__json *v = NULL;
    if (weft__json_parse_repeated(s, n, &v, NULL)) return 0;
    int fits = allowed >> weft__json_kind_of(v) & 1;
    weft__json_free(&v);
    return fits;
}

/* s[0..n) as Python spells a value of one of these types. */
static int put_python(weft__strbuf *out, const char *s, size_t n, unsigned allowed)
{
    weft__strbuf json = {0};
    int ok = weft__answer_loose_value(&json, s, n) && !json.failed && is_json(json.data, json.len, allowed);
    if (ok) weft__strbuf_put(out, json.data, json.len);
    out->failed |= json.failed;
    weft__strbuf_free(&json);
    return ok;
}

/* The text without a mark before and one behind it, where it has both. */
static int within(const char **text, size_t *n, const char *before, const char *behind)
{
    const size_t a = strlen(before), b = strlen(behind);
    if (*n < a + b || memcmp(*text, before, a) || memcmp(*text + *n - b, behind, b)) return 0;
    *text += a;
    *n -= a + b;
    return 1;
}

void weft__answer_put_value(weft__strbuf *out, const char *text, size_t n, const weft__json *schema, unsigned spelled)
{
    unsigned allowed = weft__answer_types(schema);
    int string = allowed == STRING;
    if (spelled & WEFT__ANSWER_CDATA && within(&text, &n, "<![CDATA[", "]]>")) string = 1;
    /* Beside strings, a text in quotes is a string with quotes; where no string is allowed, it is better than none. */
    allowed = allowed & STRING ? allowed & ~(unsigned)STRING : ANY;
    if (!string && is_json(text, n, allowed)) weft__strbuf_put(out, text, n);
    else if (string || !(spelled & WEFT__ANSWER_PYTHON) || !put_python(out, text, n, allowed))
        weft__json_write_string(out, text, n);
}
