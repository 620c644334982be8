// SPDX-License-Identifier: Apache-2.0
/* template.c: from a chat request to the variables of its template (template.h). No state beyond the template. */
#include "text/chat/template.h"

#include <string.h>

#include "base/alloc.h"
#include "text/chat/thinking.h"

struct weft__chat_template {
    weft__jinja *jinja;
    const weft__chat_thinking_name *thinking;
};

weft_status weft__chat_template_create(const char *source, size_t n, weft__chat_template **out, weft_error *err)
{
    *out = NULL;
    weft__chat_template *t = weft__alloc_zero(1, sizeof *t);
    if (!t) return weft_fail(err, WEFT_NO_MEMORY, "out of memory for a chat template");
    weft_status status = weft__jinja_compile(source, n, &t->jinja, err);
    if (status) {
        weft__chat_template_destroy(&t);
        return weft_fail_within(err, status, "chat template");
    }
    t->thinking = weft__chat_thinking_of(t->jinja, source, n);
    *out = t;
    return WEFT_OK;
}

void weft__chat_template_destroy(weft__chat_template **t)
{
    if (!*t) return;
    weft__jinja_destroy(&(*t)->jinja);
    weft__free(*t);
    *t = NULL;
}

int weft__chat_template_reads(const weft__chat_template *t, const char *variable)
{
    return weft__jinja_reads(t->jinja, variable);
}

const weft__chat_thinking_name *weft__chat_template_thinking(const weft__chat_template *t)
{
    return t->thinking;
}

/* Roles that are words of the chat format and not a user's text. They stand at messages[i].role. */
static int is_known_role(void *arg, const char *key, int depth, const char *text, size_t n)
{
    (void)arg;
    static const char *const roles[] = {"system",    "developer",     "user",         "assistant", "tool",
                                        "function",  "ipython",       "observation",  "model",     "root",
                                        "documents", "tool_response", "tool_results", "tool_call", "tool_calls"};
    if (depth != 2 || strcmp(key, "role") != 0) return 0;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (n == strlen(roles[i]) && !memcmp(text, roles[i], n)) return 1;
    }
    return 0;
}

static weft_status check_request(const weft__chat_request *request, weft_error *err)
{
    if (weft__json_kind_of(request->messages) != WEFT__JSON_ARRAY)
        return weft_fail(err, WEFT_ARGUMENT, "messages must be an array");
    for (size_t i = 0; i < weft__json_size(request->messages); i++) {
        if (weft__json_kind_of(weft__json_at(request->messages, i)) == WEFT__JSON_OBJECT) continue;
        return weft_fail(err, WEFT_ARGUMENT, "messages[%zu] must be an object with a role and content", i);
    }
    int tools = weft__json_kind_of(request->tools);
    if (request->tools && tools != WEFT__JSON_ARRAY && tools != WEFT__JSON_NULL) {
        return weft_fail(err, WEFT_ARGUMENT, "tools must be an array");
    }
    if (request->kwargs && weft__json_kind_of(request->kwargs) != WEFT__JSON_OBJECT) {
        return weft_fail(err, WEFT_ARGUMENT, "chat_template_kwargs must be an object");
    }
    return WEFT_OK;
}

const char *weft__chat_template_taken(const weft__json *kwargs)
{
    static const char *const taken[] = {"messages", "tools", "add_generation_prompt"};
    for (size_t i = 0; kwargs && i < sizeof taken / sizeof *taken; i++)
        if (weft__json_get(kwargs, taken[i])) return taken[i];
    return NULL;
}

static weft_status set_kwargs(weft__jinja_call *call, const weft__json *kwargs, weft_error *err)
{
    const char *taken = weft__chat_template_taken(kwargs);
    weft__json_member m = {0};
    if (taken)
        return weft_fail(err, WEFT_ARGUMENT, "chat_template_kwargs cannot set '%s'; the request has a field for it",
                         taken);
    while (kwargs && weft__json_next(kwargs, &m)) {
        weft_status status = weft__jinja_set_json(call, m.key, m.value, NULL, NULL, err);
        if (status) return status;
    }
    return WEFT_OK;
}

/* The message that the answer goes on from, and the messages before it. */
static weft_status take_begun(const weft__json *messages, weft__json **before, const char **begun, size_t *n,
                              weft_error *err)
{
    const size_t last = weft__json_size(messages);
    const weft__json *m = last ? weft__json_at(messages, last - 1) : NULL;
    if (!weft__json_is(weft__json_get(m, "role"), "assistant") ||
        !weft__json_string(weft__json_get(m, "content"), begun, n))
        return weft_fail(err, WEFT_ARGUMENT,
                         "only a last message of the assistant whose content is text can be continued");
    *before = weft__json_new_array();
    for (size_t i = 0; i + 1 < last; i++)
        if (!weft__json_append(*before, weft__json_copy(weft__json_at(messages, i))))
            return weft_fail(err, WEFT_NO_MEMORY, "no memory for the messages");
    return *before ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for the messages");
}

/* Text of the user behind what was rendered. */
static weft_status append(weft__jinja_output *out, const char *text, size_t n, weft_error *err)
{
    if (n == 0) return WEFT_OK;
    char *longer = weft__realloc_array(out->text, out->len + n + 1, 1);
    if (longer) out->text = longer;
    weft__jinja_segment *more = weft__realloc_array(out->segments, out->n_segments + 1, sizeof *more);
    if (more) out->segments = more;
    if (!longer || !more) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt");
    memcpy(longer + out->len, text, n);
    longer[out->len + n] = 0;
    if (out->n_segments && more[out->n_segments - 1].from_user) more[out->n_segments - 1].len += n;
    else more[out->n_segments++] = (weft__jinja_segment){.offset = out->len, .len = n, .from_user = 1};
    out->len += n;
    return WEFT_OK;
}

static weft_status set_variables(weft__jinja_call *call, const weft__chat_request *r, weft_error *err)
{
    weft_status status = weft__jinja_set_json(call, "messages", r->messages, is_known_role, NULL, err);
    if (!status) status = weft__jinja_set_json(call, "tools", r->tools, NULL, NULL, err);
    if (!status) status = weft__jinja_set_json(call, "documents", NULL, NULL, NULL, err);
    if (!status) status = weft__jinja_set_bool(call, "add_generation_prompt", r->add_generation_prompt, err);
    for (size_t i = 0; i < r->n_tokens && !status; i++) {
        status = weft__jinja_set_string(call, r->tokens[i].name, r->tokens[i].text, strlen(r->tokens[i].text), 0, err);
    }
    if (!status) status = set_kwargs(call, r->kwargs, err);
    weft__jinja_set_now(call, r->now);
    weft__jinja_allow_mutation(call, r->allow_mutation);
    return status;
}

static weft_status render(const weft__chat_template *t, const weft__chat_request *request, weft__jinja_output *out,
                          weft_error *err)
{
    weft__jinja_call *call;
    weft_status status = weft__jinja_call_create(request->limits, &call, err);
    if (status) return status;
    status = set_variables(call, request, err);
    if (!status) {
        status = weft__jinja_render(t->jinja, call, out, err);
        if (status) weft_fail_within(err, status, "chat template");
    }
    weft__jinja_call_destroy(&call);
    return status;
}

weft_status weft__chat_template_render(const weft__chat_template *t, const weft__chat_request *request,
                                       weft__jinja_output *out, weft_error *err)
{
    weft__chat_request before = *request;
    weft__json *messages = NULL;
    const char *begun = NULL;
    size_t n = 0;
    memset(out, 0, sizeof *out);
    weft_status status = check_request(request, err);
    if (!status && request->continue_last) {
        status = take_begun(request->messages, &messages, &begun, &n, err);
        before.messages = messages;
    }
    if (!status) status = render(t, &before, out, err);
    if (!status) status = append(out, begun, n, err);
    if (status) weft__jinja_output_free(out);
    weft__json_free(&messages);
    return status;
}
