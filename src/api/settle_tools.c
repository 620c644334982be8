// SPDX-License-Identifier: Apache-2.0
/* settle_tools.c: what tools, functions, tool_choice and function_call say together: which are offered, and which must
 * be called (fields.h: weft__api_tools). Their shapes were looked at when they were read. */
#include <string.h>

#include "api/readers.h"

/* How the request spells it. */
struct choice {
    const char *field;
    const char *word;          /* "none", "auto", "required"; NULL: it names one */
    const char *name;          /* that must be called; NULL: none is named */
    const weft__json *allowed; /* tools; NULL: all are */
};

static const char *tool_name(const weft__json *tool)
{
    const weft__json *function = weft__json_get(tool, "function");
    const char *s = "";
    size_t n;
    weft__json_string(weft__json_get(function ? function : tool, "name"), &s, &n);
    return s;
}

static void read_choice(const weft__api_tools *t, struct choice *out)
{
    const weft__json *v = t->old ? t->old_choice : t->choice, *allowed = weft__json_get(v, "allowed_tools");
    *out = (struct choice){.field = t->old ? "function_call" : "tool_choice"};
    if (!v) out->word = "auto";
    else if (weft__api_read_word(v, &out->word)) return;
    else if (weft__json_is(weft__json_get(v, "type"), "allowed_tools")) {
        out->allowed = weft__json_get(allowed, "tools");
        weft__api_read_word(weft__json_get(allowed, "mode"), &out->word);
    } else {
        out->word = NULL;
        out->name = tool_name(v);
    }
}

static int is_named(const weft__json *tools, const char *name)
{
    for (size_t i = 0; i < weft__json_size(tools); i++)
        if (!strcmp(tool_name(weft__json_at(tools, i)), name)) return 1;
    return 0;
}

static int check_offered(const struct choice *c, const weft__json *tools, weft__api_error *error)
{
    if (c->name && (!strcmp(c->name, "auto") || !strcmp(c->name, "required")))
        return weft__api_error_set(error, 400, c->field, "'%s' cannot name a function '%s'", c->field, c->name);
    const char *name = c->name && !is_named(tools, c->name) ? c->name : NULL;
    for (size_t i = 0; !name && i < weft__json_size(c->allowed); i++) {
        const char *allowed = tool_name(weft__json_at(c->allowed, i));
        if (!is_named(tools, allowed)) name = allowed;
    }
    return !name ||
           weft__api_error_set(error, 400, c->field, "'%s' names '%.100s', which is not offered", c->field, name);
}

/* Those of the list that may be called, as tools. */
static void settle_list(weft__api_tools *t, const weft__json *tools, const struct choice *c)
{
    weft__strbuf *out = &t->offered;
    const char *comma = "[";
    for (size_t i = 0; i < weft__json_size(tools); i++) {
        const weft__json *tool = weft__json_at(tools, i);
        if (c->allowed && !is_named(c->allowed, tool_name(tool))) continue;
        weft__strbuf_puts(out, comma);
        if (t->old) weft__strbuf_puts(out, "{\"type\":\"function\",\"function\":");
        weft__json_write(out, tool, WEFT__JSON_COMPACT);
        if (t->old) weft__strbuf_putc(out, '}');
        comma = ",";
    }
    weft__strbuf_putc(out, ']');
}

int weft__api_tools_bind(const weft__api_tools *t)
{
    return t->offered.len != 0;
}

int weft__api_settle_tools(weft__api_params *params, weft__api_error *error)
{
    weft__api_tools *t = &params->tools;
    struct choice c;
    const int has_tools = weft__json_size(t->given) > 0, has_functions = weft__json_size(t->functions) > 0;
    t->old = has_functions || (!has_tools && t->old_choice && !t->choice);
    const weft__json *tools = t->old ? t->functions : t->given;
    if (has_tools && has_functions)
        return weft__api_error_set(error, 400, "functions", "'tools' and 'functions' exclude each other");
    if (t->old ? has_functions && t->choice : has_tools && t->old_choice)
        return weft__api_error_set(error, 400, t->old ? "tool_choice" : "function_call",
                                   "'tool_choice' goes with 'tools', and 'function_call' with 'functions'");
    read_choice(t, &c);
    if (t->old) t->parallel = 0;
    if (!check_offered(&c, tools, error)) return 0;
    if (!weft__json_size(tools))
        return (c.word && strcmp(c.word, "required")) ||
               weft__api_error_set(error, 400, c.field, "'%s' is required, and no tools are offered", c.field);
    if (c.word && !strcmp(c.word, "none")) return 1;
    settle_list(t, tools, &c);
    weft__strbuf_puts(&t->called, c.word ? c.word : c.name);
    return (!t->offered.failed && !t->called.failed) ||
           weft__api_error_set(error, 503, NULL, "no memory for the request");
}
