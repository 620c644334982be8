/* chat_template.c: from a chat request to the variables of its template (chat_template.h). No state beyond the template. */
#include "text/chat_template.h"

#include <string.h>

#include "base/alloc.h"

struct weft__chat_template {
    weft__jinja *jinja;
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

int weft__chat_template_uses(const weft__chat_template *t, const char *name)
{
    return weft__jinja_uses(t->jinja, name);
}

/* Roles that are words of the chat format and nobody's text. They stand at messages[i].role. */
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

static weft_status set_kwargs(weft__jinja_call *call, const weft__json *kwargs, weft_error *err)
{
    static const char *const taken[] = {"messages", "tools", "add_generation_prompt"};
    weft__json_member m = {0};
    while (kwargs && weft__json_next(kwargs, &m)) {
        for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
            if (strcmp(m.key, taken[i]) != 0) continue;
            return weft_fail(err, WEFT_ARGUMENT, "chat_template_kwargs cannot set '%s'; the request has a field for it", m.key);
        }
        weft_status status = weft__jinja_set_json(call, m.key, m.value, NULL, NULL, err);
        if (status) return status;
    }
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

weft_status weft__chat_template_render(const weft__chat_template *t, const weft__chat_request *request, weft__jinja_output *out,
                                       weft_error *err)
{
    memset(out, 0, sizeof *out);
    weft__jinja_call *call;
    weft_status status = check_request(request, err);
    if (status) return status;
    status = weft__jinja_call_create(request->limits, &call, err);
    if (status) return status;
    status = set_variables(call, request, err);
    if (!status) {
        status = weft__jinja_render(t->jinja, call, out, err);
        if (status) weft_fail_within(err, status, "chat template");
    }
    weft__jinja_call_destroy(&call);
    return status;
}
