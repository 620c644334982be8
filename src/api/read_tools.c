// SPDX-License-Identifier: Apache-2.0
/* read_tools.c: readers of tools and functions, and of which of them are to be called. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/readers.h"
#include "base/alloc.h"

enum { NAME_MAX_BYTES = 256 };

/* Letters, digits and what else names of functions have; nothing that some chat format could take for its own. */
static int is_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)s[i];
        const int letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c >= 0x80;
        if (!letter && !(c && strchr("_-.:/$", c))) return 0;
    }
    return n > 0;
}

static int check_name(const char *place, const weft__json *v, weft__api_error *error)
{
    const char *s;
    char where[96];
    size_t n;
    snprintf(where, sizeof where, "%.80s.name", place);
    if (!weft__json_string(v, &s, &n)) return weft__api_error_set(error, 400, where, "'%s' must be a string", where);
    if (n > NAME_MAX_BYTES)
        return weft__api_error_set(error, 400, where, "'%s' must have at most %d bytes, not %zu", where, NAME_MAX_BYTES,
                                   n);
    return is_name(s, n) ||
           weft__api_error_set(error, 400, where, "'%s' must be of letters, digits, and _ - . : / $", where);
}

/* A member of a function that may be absent; null is absence. */
static int check_member(const char *place, const weft__json *of, const char *member, weft__json_kind kind,
                        const char *wanted, weft__api_error *error)
{
    const weft__json *v = weft__json_get(of, member);
    char where[96];
    if (!v || weft__json_is_null(v) || weft__json_kind_of(v) == (int)kind) return 1;
    snprintf(where, sizeof where, "%.70s.%.20s", place, member);
    return weft__api_error_set(error, 400, where, "'%s' must be %s", where, wanted);
}

/* Arguments are an object: its schema says so, or nothing else. */
static int check_parameters(const char *place, const weft__json *of, weft__api_error *error)
{
    const weft__json *type = weft__json_get(weft__json_get(of, "parameters"), "type");
    int ok = !type || weft__json_is_null(type) || weft__json_is(type, "object");
    char where[96];
    for (size_t i = 0; !ok && weft__json_kind_of(type) == WEFT__JSON_ARRAY && i < weft__json_size(type); i++)
        ok = weft__json_is(weft__json_at(type, i), "object");
    snprintf(where, sizeof where, "%.70s.parameters", place);
    return ok || weft__api_error_set(error, 400, where, "'%s' must be the schema of an object, by its 'type'", where);
}

/* {"name", "description", "parameters", "strict"} */
static int check_function(const char *place, const weft__json *v, weft__api_error *error)
{
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        return weft__api_error_set(error, 400, place, "'%s' must be an object with a 'name'", place);
    return check_name(place, weft__json_get(v, "name"), error) &&
           check_member(place, v, "description", WEFT__JSON_STRING, "a string", error) &&
           check_member(place, v, "parameters", WEFT__JSON_OBJECT, "a JSON Schema, an object", error) &&
           check_parameters(place, v, error) && check_member(place, v, "strict", WEFT__JSON_BOOL, "a boolean", error);
}

static const weft__json *name_of(const weft__json *tool)
{
    const weft__json *function = weft__json_get(tool, "function");
    return weft__json_get(function ? function : tool, "name");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* No two functions have one name; within: what of a tool has it. */
static int check_distinct(const char *field, const weft__json *tools, const char *within, weft__api_error *error)
{
    const size_t n = weft__json_size(tools);
    const char **names = weft__alloc_array(n + 1, sizeof *names), *twice = NULL;
    size_t length, first = n, at = n;
    char where[96];
    if (!names) return weft__api_error_set(error, 503, NULL, "no memory for the request");
    for (size_t i = 0; i < n; i++) weft__json_string(name_of(weft__json_at(tools, i)), &names[i], &length);
    qsort(names, n, sizeof *names, by_text);
    for (size_t i = 1; i < n && !twice; i++)
        if (!strcmp(names[i - 1], names[i])) twice = names[i];
    weft__free(names);
    if (!twice) return 1;
    for (size_t i = 0; i < n && at == n; i++)
        if (weft__json_is(name_of(weft__json_at(tools, i)), twice)) {
            if (first < n) at = i;
            else first = i;
        }
    snprintf(where, sizeof where, "%.20s[%zu]%s.name", field, at, within);
    return weft__api_error_set(error, 400, where, "'%s' is '%.100s', as that of %.20s[%zu] is; names must differ",
                               where, twice, field, first);
}

int weft__api_read_functions(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    char place[64];
    (void)params;
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY)
        return weft__api_error_set(error, 400, name, "'%s' must be an array of functions", name);
    for (size_t i = 0; i < weft__json_size(v); i++) {
        snprintf(place, sizeof place, "%.20s[%zu]", name, i);
        if (!check_function(place, weft__json_at(v, i), error)) return 0;
    }
    return check_distinct(name, v, "", error);
}

/* {"type": "function", "function": ...}; of other types there is none here. */
static int check_type(const char *place, const weft__json *v, weft__api_error *error)
{
    const char *type = "";
    char where[64];
    snprintf(where, sizeof where, "%.56s.type", place);
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT || !weft__api_read_word(weft__json_get(v, "type"), &type))
        return weft__api_error_set(error, 400, place, "'%s' must be an object with a 'type': function", place);
    return !strcmp(type, "function") ||
           weft__api_error_set(error, 400, where, "'%s' must be function, not '%.40s'", where, type);
}

int weft__api_read_tools(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    char place[64];
    (void)params;
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY)
        return weft__api_error_set(error, 400, name, "'%s' must be an array of tools", name);
    for (size_t i = 0; i < weft__json_size(v); i++) {
        const weft__json *tool = weft__json_at(v, i);
        snprintf(place, sizeof place, "%.20s[%zu]", name, i);
        if (!check_type(place, tool, error)) return 0;
        snprintf(place, sizeof place, "%.20s[%zu].function", name, i);
        if (!check_function(place, weft__json_get(tool, "function"), error)) return 0;
    }
    return check_distinct(name, v, ".function", error);
}

static int check_word(const char *name, const char *word, const char *const *words, const char *wanted,
                      weft__api_error *error)
{
    for (; *words; words++)
        if (!strcmp(word, *words)) return 1;
    return weft__api_error_set(error, 400, name, "'%s' must be %s, not '%.40s'", name, wanted, word);
}

int weft__api_read_function_call(weft__api_params *params, const char *name, const weft__json *v,
                                 weft__api_error *error)
{
    static const char *const words[] = {"none", "auto", NULL};
    static const char wanted[] = "none, auto or an object with the 'name' of a function";
    const char *word;
    (void)params;
    if (weft__json_kind_of(v) == WEFT__JSON_OBJECT) return check_name(name, weft__json_get(v, "name"), error);
    return weft__api_read_word(v, &word) ? check_word(name, word, words, wanted, error)
                                         : weft__api_error_set(error, 400, name, "'%s' must be %s", name, wanted);
}

/* {"mode": "auto", "tools": [{"type": "function", "function": {"name"}}, ...]} */
static int check_allowed(const char *name, const weft__json *v, weft__api_error *error)
{
    static const char *const modes[] = {"auto", "required", NULL};
    const weft__json *tools = weft__json_get(v, "tools");
    const char *mode;
    char place[96], where[48];
    snprintf(where, sizeof where, "%.20s.allowed_tools", name);
    if (!weft__api_read_word(weft__json_get(v, "mode"), &mode) || !weft__json_size(tools))
        return weft__api_error_set(error, 400, where,
                                   "'%s' must be an object with 'mode' and 'tools', some of those offered", where);
    snprintf(place, sizeof place, "%.40s.mode", where);
    if (!check_word(place, mode, modes, "auto or required", error)) return 0;
    for (size_t i = 0; i < weft__json_size(tools); i++) {
        const weft__json *tool = weft__json_at(tools, i);
        snprintf(place, sizeof place, "%.40s.tools[%zu]", where, i);
        if (!check_type(place, tool, error) ||
            !check_name(place, weft__json_get(weft__json_get(tool, "function"), "name"), error))
            return 0;
    }
    return 1;
}

int weft__api_read_tool_choice(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    static const char *const words[] = {"none", "auto", "required", NULL};
    static const char wanted[] = "none, auto, required, or an object with a 'type': function or allowed_tools";
    const char *word;
    char place[64];
    (void)params;
    if (weft__api_read_word(v, &word)) return check_word(name, word, words, wanted, error);
    if (!weft__api_read_word(weft__json_get(v, "type"), &word))
        return weft__api_error_set(error, 400, name, "'%s' must be %s", name, wanted);
    if (!strcmp(word, "allowed_tools")) return check_allowed(name, weft__json_get(v, "allowed_tools"), error);
    if (!check_type(name, v, error)) return 0;
    snprintf(place, sizeof place, "%.20s.function", name);
    return check_name(place, weft__json_get(weft__json_get(v, "function"), "name"), error);
}
