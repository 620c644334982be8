// SPDX-License-Identifier: Apache-2.0
/* read_format.c: readers of how an answer is to look: streams, formats, encodings. */
#include <stdio.h>
#include <string.h>

#include "api/readers.h"

int weft__api_read_word(const weft__json *v, const char **s)
{
    size_t n;
    if (!weft__json_string(v, s, &n)) return 0;
    if (strlen(*s) != n) *s = "";
    return 1;
}

int weft__api_read_stream_options(weft__api_params *params, const char *name, const weft__json *v,
                                  weft__api_error *error)
{
    weft__json_member m = {0};
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        return weft__api_error_set(error, 400, name, "'%s' must be an object", name);
    while (weft__json_next(v, &m)) {
        if (weft__json_is_null(m.value)) continue;
        int ignored, *to = !strcmp(m.key, "include_usage")         ? &params->include_usage
                           : !strcmp(m.key, "include_obfuscation") ? &ignored
                                                                   : NULL;
        if (!to)
            return weft__api_error_set(error, 400, name, "Unrecognized request argument supplied: %s.%.40s", name,
                                       m.key);
        if (!weft__json_bool(m.value, to))
            return weft__api_error_set(error, 400, "stream_options", "'%s.%s' must be a boolean", name, m.key);
    }
    return 1;
}

/* Whatever else it has would change the answer: `also` names one that it may have; NULL: none. */
static int check_format_members(const char *name, const char *also, const weft__json *v, weft__api_error *error)
{
    weft__json_member m = {0};
    char where[96];
    while (weft__json_next(v, &m)) {
        if (!strcmp(m.key, "type") || (also && !strcmp(m.key, also)) || weft__json_is_null(m.value)) continue;
        snprintf(where, sizeof where, "%s.%.40s", name, m.key);
        return weft__api_error_set(error, 400, where, "Unrecognized request argument supplied: %s", where);
    }
    return 1;
}

/* `place`: of the schema in the request. */
static int keep_schema(weft__api_params *params, const char *name, const char *place, const weft__json *v,
                       weft__api_error *error)
{
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        return weft__api_error_set(error, 400, name, "'%s' must be a JSON Schema, an object", place);
    return weft__api_keep_constraint(params, WEFT_GRAMMAR_SCHEMA, name, v, error);
}

/* {"name": ..., "schema": ..., "strict": ...}: the answer is held to the schema, strict or not. */
static int read_named_schema(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    weft__json_member m = {0};
    const char *text;
    char place[96];
    int strict;
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        return weft__api_error_set(error, 400, name, "'%s.json_schema' must be an object with a 'schema'", name);
    while (weft__json_next(v, &m)) {
        if (weft__json_is_null(m.value) || !strcmp(m.key, "schema")) continue;
        snprintf(place, sizeof place, "%s.json_schema.%.40s", name, m.key);
        const int is_strict = !strcmp(m.key, "strict");
        if (!is_strict && strcmp(m.key, "name") && strcmp(m.key, "description"))
            return weft__api_error_set(error, 400, place, "Unrecognized request argument supplied: %s", place);
        if (!(is_strict ? weft__json_bool(m.value, &strict) : weft__api_read_word(m.value, &text)))
            return weft__api_error_set(error, 400, name, "'%s' must be a %s", place, is_strict ? "boolean" : "string");
    }
    snprintf(place, sizeof place, "%s.json_schema.schema", name);
    return keep_schema(params, name, place, weft__json_get(v, "schema"), error);
}

int weft__api_read_response_format(weft__api_params *params, const char *name, const weft__json *v,
                                   weft__api_error *error)
{
    const char *type;
    if (!weft__api_read_word(weft__json_get(v, "type"), &type))
        return weft__api_error_set(error, 400, name,
                                   "'%s' must be an object with a 'type': text, json_object or json_schema", name);
    const weft__json *schema = weft__json_get(v, "schema"), *named = weft__json_get(v, "json_schema");
    const int is_schema = !strcmp(type, "json_schema");
    /* llama.cpp has it right there */
    if (schema && !weft__json_is_null(schema) && (is_schema ? !named : !strcmp(type, "json_object")))
        return check_format_members(name, "schema", v, error) &&
               keep_schema(params, name, "response_format.schema", schema, error);
    if (is_schema)
        return check_format_members(name, "json_schema", v, error) && read_named_schema(params, name, named, error);
    if (!strcmp(type, "text")) return check_format_members(name, NULL, v, error);
    if (!strcmp(type, "json_object"))
        return check_format_members(name, NULL, v, error) &&
               weft__api_keep_constraint(params, WEFT_GRAMMAR_JSON, name, NULL, error);
    return weft__api_error_set(error, 400, "response_format",
                               "'%s.type' must be text, json_object or json_schema, not '%.40s'", name, type);
}

/* That of {} is of any value. */
int weft__api_read_json_schema(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    if (weft__json_kind_of(v) == WEFT__JSON_OBJECT && !weft__json_size(v))
        return weft__api_keep_constraint(params, WEFT_GRAMMAR_JSON_VALUE, name, NULL, error);
    return keep_schema(params, name, name, v, error);
}

/* llama.cpp's types of triggers. */
static int read_trigger(weft__api_params *params, const char *place, const weft__json *v, weft__api_error *error)
{
    static const uint32_t kinds[] = {WEFT_TRIGGER_TOKEN, WEFT_TRIGGER_WORD, WEFT_TRIGGER_PATTERN,
                                     WEFT_TRIGGER_PATTERN_FULL};
    weft_trigger *t = &params->triggers[params->n_triggers];
    int64_t type = -1, token = -1;
    if (!weft__json_int(weft__json_get(v, "type"), &type) || type < 0 || type > 3)
        return weft__api_error_set(error, 400, place,
                                   "'%s' must be an object with a 'type': 0 (token), 1 (word), 2 (pattern) or 3 "
                                   "(pattern of all of the text)",
                                   place);
    *t = (weft_trigger){.kind = kinds[type]};
    if (type && (!weft__json_string(weft__json_get(v, "value"), &t->text, &t->length) || !t->length))
        return weft__api_error_set(error, 400, place, "'%s' must have a 'value', the %s", place,
                                   type > 1 ? "pattern" : "word");
    if (!type && (!weft__json_int(weft__json_get(v, "token"), &token) || token < 0 || token >= params->n_vocab))
        return weft__api_error_set(error, 400, place, "'%s' must have a 'token', an id from 0 to %d", place,
                                   params->n_vocab - 1);
    t->token = (int32_t)token;
    params->n_triggers++;
    return 1;
}

int weft__api_read_triggers(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    char place[64];
    params->n_triggers = 0;
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY || weft__json_size(v) > WEFT__API_MAX_TRIGGERS)
        return weft__api_error_set(error, 400, name, "'%s' must be an array of at most %d triggers", name,
                                   WEFT__API_MAX_TRIGGERS);
    for (size_t i = 0; i < weft__json_size(v); i++) {
        snprintf(place, sizeof place, "%s[%zu]", name, i);
        if (!read_trigger(params, place, weft__json_at(v, i), error)) return 0;
    }
    return 1;
}

int weft__api_read_encoding(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    const char *s = NULL;
    weft__api_read_word(v, &s);
    params->base64 = s && !strcmp(s, "base64");
    return params->base64 || (s && !strcmp(s, "float"))
               ? 1
               : weft__api_error_set(error, 400, name, "'%s' must be 'float' or 'base64'", name);
}

int weft__api_read_pooling(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    const char *s = "";
    weft__api_read_word(v, &s);
    params->pooling = !strcmp(s, "mean")   ? WEFT_POOLING_MEAN
                      : !strcmp(s, "last") ? WEFT_POOLING_LAST
                                           : WEFT_POOLING_NONE;
    return params->pooling || weft__api_error_set(error, 400, name, "'%s' must be 'mean' or 'last'", name);
}

int weft__api_read_reasoning_format(weft__api_params *params, const char *name, const weft__json *v,
                                    weft__api_error *error)
{
    static const char *const formats[] = {"none", "auto", "deepseek", "deepseek-legacy"};
    (void)v;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(params->reasoning_format, formats[i])) return 1;
    return weft__api_error_set(error, 400, name, "'%s' must be none, auto, deepseek or deepseek-legacy, not '%.40s'",
                               name, params->reasoning_format);
}

int weft__api_read_modalities(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    (void)params;
    if (weft__json_size(v) == 1 && weft__json_is(weft__json_at(v, 0), "text")) return 1;
    return weft__api_error_set(error, 400, name, "'%s' must be [\"text\"]", name);
}

/* OpenAI's: {"type": "content", "content": a text, or parts of one}. */
int weft__api_read_prediction(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    const weft__json *content = weft__json_get(v, "content");
    const int is_list = weft__json_kind_of(content) == WEFT__JSON_ARRAY;
    const size_t n_parts = is_list ? weft__json_size(content) : 1;
    if (weft__json_kind_of(v) == WEFT__JSON_OBJECT && !weft__json_size(v)) return 1;
    if (!weft__json_is(weft__json_get(v, "type"), "content"))
        return weft__api_error_set(error, 400, name, "'%s' must be an object with the 'type' \"content\"", name);
    params->prediction.len = 0;
    for (size_t i = 0; i < n_parts; i++) {
        const weft__json *part = is_list ? weft__json_at(content, i) : NULL;
        const char *s;
        size_t n;
        if ((is_list && !weft__json_is(weft__json_get(part, "type"), "text")) ||
            !weft__json_string(is_list ? weft__json_get(part, "text") : content, &s, &n))
            return weft__api_error_set(error, 400, name, "'%s.content' must be a string, or an array of text parts",
                                       name);
        weft__strbuf_put(&params->prediction, s, n);
    }
    return !params->prediction.failed || weft__api_error_set(error, 503, NULL, "no memory for the request");
}
