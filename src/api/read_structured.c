// SPDX-License-Identifier: Apache-2.0
/* read_structured.c: vLLM's fields of what an answer is held to: structured_outputs, and the older guided_*. The text
 * of a constraint is kept, and compiled when the request's JSON is gone. One thread per request. */
#include <stdio.h>
#include <string.h>

#include "api/readers.h"

int weft__api_keep_constraint(weft__api_params *params, int kind, const char *field, const weft__json *v,
                              weft__api_error *error)
{
    weft__api_constraint *c = &params->constraint;
    const char *s;
    size_t n;
    c->other = c->field;
    c->field = field;
    c->kind = kind;
    c->text.len = 0;
    if (weft__json_string(v, &s, &n)) weft__strbuf_put(&c->text, s, n);
    else if (v) weft__json_write(&c->text, v, WEFT__JSON_COMPACT);
    return !c->text.failed || weft__api_error_set(error, 503, NULL, "no memory for the request");
}

/* 1 when a line begins with a name and "::=", as rules of GBNF do. */
static int is_gbnf(const char *s, size_t n)
{
    const char *end = s + n;
    while (s < end) {
        const char *line = s;
        while (s < end && *s != '\n') s++;
        while (line < s && (*line == ' ' || *line == '\t')) line++;
        while (line < s && *line != ' ' && *line != '\t' && *line != ':' && *line != '"' && *line != '#') line++;
        while (line < s && (*line == ' ' || *line == '\t')) line++;
        if (s - line >= 3 && !memcmp(line, "::=", 3)) return 1;
        s += s < end;
    }
    return 0;
}

/* A list of strings; a list of something else is refused where it is compiled. */
static int keep_choice(weft__api_params *params, const char *field, const weft__json *v, weft__api_error *error)
{
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY)
        return weft__api_error_set(error, 400, field, "'%s' must be an array of strings", field);
    return weft__api_keep_constraint(params, WEFT_GRAMMAR_CHOICES, field, v, error);
}

static int keep_text(weft__api_params *params, int kind, const char *field, const weft__json *v, weft__api_error *error)
{
    const char *s;
    size_t n;
    if (!weft__json_string(v, &s, &n)) return weft__api_error_set(error, 400, field, "'%s' must be a string", field);
    if (kind == WEFT_GRAMMAR_LARK && is_gbnf(s, n)) kind = WEFT_GRAMMAR_GBNF;
    return weft__api_keep_constraint(params, kind, field, v, error);
}

/* A schema, or its text. */
static int keep_json(weft__api_params *params, const char *field, const weft__json *v, weft__api_error *error)
{
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT && weft__json_kind_of(v) != WEFT__JSON_STRING)
        return weft__api_error_set(error, 400, field, "'%s' must be a JSON Schema: an object, or its text", field);
    return weft__api_keep_constraint(params, WEFT_GRAMMAR_SCHEMA, field, v, error);
}

int weft__api_read_guided_json(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    return keep_json(params, name, v, error);
}

int weft__api_read_guided_regex(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    return keep_text(params, WEFT_GRAMMAR_REGEX, name, v, error);
}

int weft__api_read_guided_choice(weft__api_params *params, const char *name, const weft__json *v,
                                 weft__api_error *error)
{
    return keep_choice(params, name, v, error);
}

int weft__api_read_guided_grammar(weft__api_params *params, const char *name, const weft__json *v,
                                  weft__api_error *error)
{
    return keep_text(params, WEFT_GRAMMAR_LARK, name, v, error);
}

static int read_part(weft__api_params *params, const weft__json_member *m, weft__api_error *error)
{
    static const char *const places[] = {"structured_outputs.json", "structured_outputs.regex",
                                         "structured_outputs.choice", "structured_outputs.grammar",
                                         "structured_outputs.json_object"};
    enum { PREFIX = sizeof "structured_outputs." - 1 };
    int flag = 1;
    size_t i = 0;
    char where[96];
    while (i < 5 && strcmp(m->key, places[i] + PREFIX) != 0) i++;
    switch (i) {
    case 0: return keep_json(params, places[0], m->value, error);
    case 1: return keep_text(params, WEFT_GRAMMAR_REGEX, places[1], m->value, error);
    case 2: return keep_choice(params, places[2], m->value, error);
    case 3: return keep_text(params, WEFT_GRAMMAR_LARK, places[3], m->value, error);
    default: break;
    }
    if (weft__json_bool(m->value, &flag) && !flag) return 1; /* also what else of vLLM's may be switched on */
    if (i == 4 && weft__json_bool(m->value, &flag))
        return weft__api_keep_constraint(params, WEFT_GRAMMAR_JSON, places[4], NULL, error);
    snprintf(where, sizeof where, "structured_outputs.%.40s", m->key);
    return weft__api_error_set(error, 400, where,
                               i == 4 ? "'%s' must be a boolean" : "Unrecognized request argument supplied: %s", where);
}

int weft__api_read_structured(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    weft__json_member m = {0};
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        return weft__api_error_set(error, 400, name, "'%s' must be an object with json, regex, choice or grammar",
                                   name);
    while (weft__json_next(v, &m))
        if (!weft__json_is_null(m.value) && !read_part(params, &m, error)) return 0;
    return 1;
}
