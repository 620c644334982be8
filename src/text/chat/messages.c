// SPDX-License-Identifier: Apache-2.0
/* messages.c: see messages.h. */
#include "text/chat/messages.h"

#include <stdio.h>
#include <string.h>

#include "text/chat/content.h"

static weft_status messages_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the messages");
}

/* Names the field that a failure is about: `where`, or a member of it. */
static const char *name_field(weft__chat_reading *r, const char *where, const char *member)
{
    snprintf(r->field, sizeof r->field, "%.60s%s%s", where, member ? "." : "", member ? member : "");
    return r->field;
}

/* An object without the members that are null. NULL without memory. */
static weft__json *without_nulls(const weft__json *object)
{
    weft__json_member m = {0};
    weft__json *out = weft__json_new_object();
    int ok = out != NULL;
    while (ok && weft__json_next(object, &m))
        if (!weft__json_is_null(m.value)) ok = weft__json_set(out, m.key, weft__json_copy(m.value));
    if (!ok) weft__json_free(&out);
    return out;
}

/* ---- arguments ---- */

static int is_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r\n", s[i]) || !s[i]) return 0;
    return 1;
}

static weft_status refuse_arguments(weft__chat_reading *r, const char *where, weft_status st, const char *why,
                                    weft_error *err)
{
    const char *field = name_field(r, where, "arguments");
    return weft_fail(err, st, "'%s' must be a JSON object, or one as text%s%s", field, why ? ": " : "", why ? why : "");
}

/* The object that a text spells. */
static weft_status read_text(weft__chat_reading *r, const char *s, size_t n, const char *where, weft__json **out,
                             weft_error *err)
{
    weft_error why = {0};
    if (is_blank(s, n)) {
        *out = weft__json_new_object();
        return *out ? WEFT_OK : messages_no_memory(err);
    }
    r->tree_bytes += weft__json_tree_bytes(s, n) - n;
    if (r->tree_bytes > WEFT__CHAT_ARGUMENTS_MAX_TREE)
        return weft_fail(err, WEFT_LIMIT, "'%s' has too many values: those of all calls would take more than %u MB",
                         name_field(r, where, "arguments"), WEFT__CHAT_ARGUMENTS_MAX_TREE >> 20);
    weft_status st = weft__json_parse_repeated(s, n, out, &why);
    if (st == WEFT_NO_MEMORY) return messages_no_memory(err);
    if (st) return refuse_arguments(r, where, st == WEFT_LIMIT ? st : WEFT_ARGUMENT, why.message, err);
    if (weft__json_is_null(*out)) {
        weft__json_free(out);
        *out = weft__json_new_object();
        return *out ? WEFT_OK : messages_no_memory(err);
    }
    if (weft__json_kind_of(*out) == WEFT__JSON_OBJECT) return WEFT_OK;
    weft__json_free(out);
    return refuse_arguments(r, where, WEFT_ARGUMENT, "the text is JSON, but no object", err);
}

static weft__json *as_text(const weft__json *object)
{
    weft__strbuf text = {0};
    weft__json_write(&text, object, WEFT__JSON_SPACED); /* as templates write JSON */
    weft__json *out = text.failed ? NULL : weft__json_new_string(text.data, text.len);
    weft__strbuf_free(&text);
    return out;
}

/* v may be NULL. */
static weft_status normal_arguments(weft__chat_reading *r, const weft__json *v, const char *where, weft__json **out,
                                    weft_error *err)
{
    const char *s = "";
    size_t n = 0;
    int none = !v || weft__json_is_null(v), text = none || weft__json_string(v, &s, &n);
    weft__json *object = NULL;
    *out = NULL;
    if (!text && weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        return refuse_arguments(r, where, WEFT_ARGUMENT, NULL, err);
    if (text) {
        weft_status st = read_text(r, s, n, where, &object, err);
        if (st) return st;
    }
    int blank = is_blank(s, n);
    if (r->form == WEFT__CHAT_ARGUMENTS_TEXT || r->form == WEFT__CHAT_ARGUMENTS_TEXT_ALONE)
        *out = text && !blank ? weft__json_copy(v) : as_text(text ? object : v);
    else if (r->form == WEFT__CHAT_ARGUMENTS_GIVEN && text && !blank) *out = weft__json_copy(v);
    else *out = weft__json_copy(text ? object : v);
    weft__json_free(&object);
    return *out ? WEFT_OK : messages_no_memory(err);
}

/* ---- calls ---- */

/* What names a function and its arguments; `must`: it has some, if only {}. */
static weft_status normal_function(weft__chat_reading *r, const weft__json *v, const char *where, int must,
                                   weft__json **out, weft_error *err)
{
    weft__json *arguments = NULL;
    *out = NULL;
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        return weft_fail(err, WEFT_ARGUMENT, "'%s' must be an object", name_field(r, where, NULL));
    if (must || weft__json_get(v, "arguments")) {
        weft_status st = normal_arguments(r, weft__json_get(v, "arguments"), where, &arguments, err);
        if (st) return st;
    }
    *out = without_nulls(v);
    if (*out && (!arguments || weft__json_set(*out, "arguments", arguments))) return WEFT_OK;
    if (!*out) weft__json_free(&arguments);
    weft__json_free(out);
    return messages_no_memory(err);
}

/* {"id", "type", "function": {"name", "arguments"}}; or name and arguments without a function around them, as some
 * templates have it. */
static weft_status normal_call(weft__chat_reading *r, const weft__json *v, const char *where, weft__json **out,
                               weft_error *err)
{
    const weft__json *function = weft__json_get(v, "function");
    weft__json *normal = NULL;
    char at[64];
    *out = NULL;
    if (!function || weft__json_is_null(function)) return normal_function(r, v, where, 0, out, err);
    snprintf(at, sizeof at, "%.50s.function", where);
    weft_status st = normal_function(r, function, at, 1, &normal, err);
    if (!st) st = normal_function(r, v, where, 0, out, err);
    if (st) weft__json_free(&normal);
    else if (!weft__json_set(*out, "function", normal)) {
        weft__json_free(out);
        st = messages_no_memory(err);
    }
    return st;
}

static weft_status normal_calls(weft__chat_reading *r, const weft__json *v, const char *where, weft__json **out,
                                weft_error *err)
{
    char at[64];
    *out = NULL;
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY)
        return weft_fail(err, WEFT_ARGUMENT, "'%s' must be an array of calls", name_field(r, where, "tool_calls"));
    *out = weft__json_new_array();
    weft_status st = *out ? WEFT_OK : messages_no_memory(err);
    for (size_t i = 0; !st && i < weft__json_size(v); i++) {
        weft__json *call;
        snprintf(at, sizeof at, "%.30s.tool_calls[%zu]", where, i);
        st = normal_call(r, weft__json_at(v, i), at, &call, err);
        if (!st && !weft__json_append(*out, call)) st = messages_no_memory(err);
    }
    if (st) weft__json_free(out);
    return st;
}

/* ---- calls and their results as they were spelled before there were tools ---- */

static int is_tools_dialect(const weft__chat_reading *r)
{
    return r->form != WEFT__CHAT_ARGUMENTS_GIVEN && !r->functions;
}

/* Is this member of message `of` a function_call that templates know as tool_calls? */
static int becomes_calls(const weft__chat_reading *r, const weft__json *of, const weft__json_member *m)
{
    return is_tools_dialect(r) && !strcmp(m->key, "function_call") &&
           weft__json_kind_of(m->value) == WEFT__JSON_OBJECT && weft__json_size(m->value) &&
           !weft__json_size(weft__json_get(of, "tool_calls"));
}

/* Takes over `function`. NULL without memory. */
static weft__json *as_calls(weft__json *function)
{
    weft__json *call = weft__json_new_object(), *calls = weft__json_new_array();
    int ok = weft__json_set(call, "type", weft__json_new_string("function", 8));
    ok &= weft__json_set(call, "function", function);
    ok &= weft__json_append(calls, call);
    if (!ok) weft__json_free(&calls);
    return calls;
}

/* The role by the name that templates know. */
static weft__json *normal_role(const weft__chat_reading *r, const weft__json *role)
{
    if (weft__json_is(role, "developer")) return weft__json_new_string("system", 6);
    if (weft__json_is(role, "function") && is_tools_dialect(r)) return weft__json_new_string("tool", 4);
    return weft__json_copy(role);
}

/* ---- messages ---- */

static weft_status refuse_content(weft__chat_reading *r, const weft__json *v, const char *where,
                                  weft__chat_content_error what, size_t i, weft_error *err)
{
    const char *type = "";
    char at[64];
    size_t n;
    if (what == WEFT__CHAT_CONTENT_NO_MEMORY) return messages_no_memory(err);
    if (what == WEFT__CHAT_CONTENT_KIND)
        return weft_fail(err, WEFT_ARGUMENT, "'%s' must be a string or an array of parts",
                         name_field(r, where, "content"));
    snprintf(at, sizeof at, "%.30s.content[%zu]", where, i);
    name_field(r, at, NULL);
    if (what == WEFT__CHAT_CONTENT_NO_TYPE)
        return weft_fail(err, WEFT_ARGUMENT, "'%s' must be an object with a 'type'", at);
    if (what == WEFT__CHAT_CONTENT_NO_TEXT) return weft_fail(err, WEFT_ARGUMENT, "'%s.text' must be a string", at);
    weft__json_string(weft__json_get(weft__json_at(v, i), "type"), &type, &n);
    return weft_fail(err, WEFT_UNSUPPORTED, "'%s.type' '%.40s' is not supported; it must be text", at, type);
}

static weft_status normal_content(weft__chat_reading *r, const weft__json *m, const char *where, weft__json **out,
                                  weft_error *err)
{
    size_t part = 0;
    const weft__json *content = weft__json_get(m, "content");
    weft__chat_content_error what = weft__chat_content_flat(content, out, &part);
    return what ? refuse_content(r, content, where, what, part, err) : WEFT_OK;
}

/* One member of message `of`, as its place has it. */
static weft_status normal_member(weft__chat_reading *r, const weft__json *of, const weft__json_member *m,
                                 const char *where, weft__json **out, weft_error *err)
{
    char at[64];
    if (!strcmp(m->key, "content")) return normal_content(r, of, where, out, err);
    if (!strcmp(m->key, "tool_calls")) return normal_calls(r, m->value, where, out, err);
    if (!strcmp(m->key, "function_call") && weft__json_kind_of(m->value) == WEFT__JSON_OBJECT) {
        snprintf(at, sizeof at, "%.40s.function_call", where);
        weft_status st = normal_function(r, m->value, at, 1, out, err);
        if (st || !becomes_calls(r, of, m)) return st;
        *out = as_calls(*out);
    } else if (!strcmp(m->key, "role")) {
        *out = normal_role(r, m->value);
    } else {
        *out = weft__json_copy(m->value);
    }
    return *out ? WEFT_OK : messages_no_memory(err);
}

/* Content that says nothing beside calls, where the template wants none there. */
static weft_status set_alone(const weft__chat_reading *r, weft__json *m, weft_error *err)
{
    const int alone = r->form == WEFT__CHAT_ARGUMENTS_TEXT_ALONE && weft__json_size(weft__json_get(m, "tool_calls")) &&
                      weft__json_is(weft__json_get(m, "content"), "");
    return !alone || weft__json_set(m, "content", weft__json_new_null()) ? WEFT_OK : messages_no_memory(err);
}

/* What is left out; content without any is an empty string in its place. */
static int is_none(const weft__json_member *m)
{
    if (!strcmp(m->key, "content")) return 0;
    return weft__json_is_null(m->value) ||
           (!strcmp(m->key, "tool_calls") && weft__json_kind_of(m->value) == WEFT__JSON_ARRAY &&
            !weft__json_size(m->value));
}

weft_status weft__chat_message_normal(weft__chat_reading *r, const weft__json *m, const char *where, weft__json **out,
                                      weft_error *err)
{
    weft__json_member member = {0};
    weft__json *value = NULL;
    *out = NULL;
    if (weft__json_kind_of(m) != WEFT__JSON_OBJECT)
        return weft_fail(err, WEFT_ARGUMENT, "'%s' must be an object", name_field(r, where, NULL));
    weft_status st = WEFT_OK;
    if (!(*out = weft__json_new_object())) return messages_no_memory(err);
    while (!st && weft__json_next(m, &member)) {
        if (is_none(&member)) continue;
        st = normal_member(r, m, &member, where, &value, err);
        const char *key = becomes_calls(r, m, &member) ? "tool_calls" : member.key;
        if (!st && !weft__json_set(*out, key, value)) st = messages_no_memory(err);
    }
    if (!st && !weft__json_get(m, "content")) {
        st = normal_content(r, m, where, &value, err);
        if (!st && !weft__json_set(*out, "content", value)) st = messages_no_memory(err);
    }
    if (!st) st = set_alone(r, *out, err);
    if (st) weft__json_free(out);
    return st;
}

weft_status weft__chat_messages_normal(weft__chat_reading *r, const weft__json *messages, weft__json **out,
                                       weft_error *err)
{
    char where[40];
    *out = NULL;
    if (weft__json_kind_of(messages) != WEFT__JSON_ARRAY)
        return weft_fail(err, WEFT_ARGUMENT, "'%s' must be an array", name_field(r, "messages", NULL));
    *out = weft__json_new_array();
    weft_status st = *out ? WEFT_OK : messages_no_memory(err);
    for (size_t i = 0; !st && i < weft__json_size(messages); i++) {
        weft__json *m;
        snprintf(where, sizeof where, "messages[%zu]", i);
        st = weft__chat_message_normal(r, weft__json_at(messages, i), where, &m, err);
        if (!st && !weft__json_append(*out, m)) st = messages_no_memory(err);
    }
    if (st) weft__json_free(out);
    return st;
}

/* ---- what stands beside them ---- */

static weft__json *normal_tool(const weft__json *tool)
{
    const weft__json *function = weft__json_get(tool, "function");
    if (weft__json_kind_of(tool) != WEFT__JSON_OBJECT)
        return weft__json_copy(tool); /* the template says what it thinks of it */
    weft__json *out = without_nulls(tool);
    if (out && weft__json_kind_of(function) == WEFT__JSON_OBJECT &&
        !weft__json_set(out, "function", without_nulls(function)))
        weft__json_free(&out);
    return out;
}

weft_status weft__chat_tools_normal(const weft__json *tools, weft__json **out, weft_error *err)
{
    *out = NULL;
    if (!tools || weft__json_is_null(tools)) return WEFT_OK;
    if (weft__json_kind_of(tools) != WEFT__JSON_ARRAY) return weft_fail(err, WEFT_ARGUMENT, "'tools' must be an array");
    if (!weft__json_size(tools)) return WEFT_OK;
    int ok = (*out = weft__json_new_array()) != NULL;
    for (size_t i = 0; ok && i < weft__json_size(tools); i++)
        ok = weft__json_append(*out, normal_tool(weft__json_at(tools, i)));
    if (ok) return WEFT_OK;
    weft__json_free(out);
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the tools");
}

/* Templates disagree on what it is where nothing sets it; so do engines that leave it so. */
#define THINKING "enable_thinking"

weft_status weft__chat_kwargs_normal(const weft__json *kwargs, weft__json **out, weft_error *err)
{
    const int given = kwargs && !weft__json_is_null(kwargs);
    *out = NULL;
    if (given && weft__json_kind_of(kwargs) != WEFT__JSON_OBJECT)
        return weft_fail(err, WEFT_ARGUMENT, "chat_template_kwargs must be an object");
    const weft__json *thinking = given ? weft__json_get(kwargs, THINKING) : NULL;
    if (thinking && !weft__json_is_null(thinking) && weft__json_kind_of(thinking) != WEFT__JSON_BOOL)
        return weft_fail(err, WEFT_ARGUMENT, "chat_template_kwargs." THINKING " must be true or false");
    *out = given ? without_nulls(kwargs) : weft__json_new_object();
    if (*out && !thinking && !weft__json_set(*out, THINKING, weft__json_new_bool(1))) weft__json_free(out);
    return *out ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for chat_template_kwargs");
}
