// SPDX-License-Identifier: Apache-2.0
/* read_prompts.c: readers of what is asked: prompts, token ids, messages. */
#include <stdio.h>
#include <string.h>

#include "text/chat/messages.h"
#include "api/readers.h"

static int is_id(const weft__api_params *params, const weft__json *v)
{
    int64_t id;
    return weft__json_int(v, &id) && id >= 0 && id < params->n_vocab;
}

/* Ids, or with `mixed` also texts, in one array. */
static int check_ids(const weft__api_params *params, const char *name, const weft__json *v, int mixed,
                     weft__api_error *error)
{
    for (size_t i = 0; i < weft__json_size(v); i++) {
        const weft__json *e = weft__json_at(v, i);
        if (is_id(params, e) || (mixed && weft__json_kind_of(e) == WEFT__JSON_STRING)) continue;
        char where[96];
        snprintf(where, sizeof where, "%s[%zu]", name, i);
        if (weft__json_kind_of(e) == WEFT__JSON_INT)
            return weft__api_error_set(error, 400, where, "'%s' must be a token id from 0 to %d", where,
                                       params->n_vocab - 1);
        return weft__api_error_set(error, 400, where, "'%s' must be a token id%s", where, mixed ? " or a string" : "");
    }
    return 1;
}

int weft__api_read_ids(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY)
        return weft__api_error_set(error, 400, name, "'%s' must be an array of token ids", name);
    return check_ids(params, name, v, 0, error);
}

int weft__api_is_one_prompt(const weft__json *v)
{
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY) return 1;
    for (size_t i = 0; i < weft__json_size(v); i++) {
        int kind = weft__json_kind_of(weft__json_at(v, i));
        if (kind == WEFT__JSON_INT || kind == WEFT__JSON_DOUBLE) return 1;
    }
    return 0;
}

static int check_text_or_array(const char *name, const weft__json *v, weft__api_error *error)
{
    int kind = weft__json_kind_of(v);
    if (kind == WEFT__JSON_STRING || kind == WEFT__JSON_ARRAY) return 1;
    return weft__api_error_set(error, 400, name, "'%s' must be a string, an array of strings, or an array of token ids",
                               name);
}

/* One text, in pieces or not; no tokens are some, too, as llama.cpp says. */
int weft__api_read_content(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    if (!check_text_or_array(name, v, error)) return 0;
    return weft__json_kind_of(v) == WEFT__JSON_STRING || check_ids(params, name, v, 1, error);
}

static int read_prompts(weft__api_params *params, const char *name, const weft__json *v, int mixed,
                        weft__api_error *error)
{
    size_t n = weft__json_size(v);
    if (!check_text_or_array(name, v, error)) return 0;
    if (weft__json_kind_of(v) == WEFT__JSON_STRING) return 1;
    if (!n) return weft__api_error_set(error, 400, name, "'%s' must not be empty", name);
    if (weft__api_is_one_prompt(v)) return check_ids(params, name, v, mixed, error);
    int embeds = params->form == &weft__api_table_embeddings || params->form == &weft__api_table_embedding;
    size_t most = embeds ? WEFT__API_MAX_INPUTS : WEFT__API_MAX_N;
    if (n > most)
        return weft__api_error_set(error, 400, name, "'%s' must have at most %zu prompts, not %zu", name, most, n);
    for (size_t i = 0; i < n; i++) {
        const weft__json *e = weft__json_at(v, i);
        char where[80];
        snprintf(where, sizeof where, "%.40s[%zu]", name, i);
        if (weft__json_kind_of(e) == WEFT__JSON_STRING) continue;
        if (weft__json_kind_of(e) != WEFT__JSON_ARRAY)
            return weft__api_error_set(error, 400, where, "'%s' must be a string or an array of token ids", where);
        if (!check_ids(params, where, e, mixed, error)) return 0;
    }
    return 1;
}

int weft__api_read_prompt(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    return read_prompts(params, name, v, 0, error);
}

int weft__api_read_prompt_llama(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    return read_prompts(params, name, v, 1, error);
}

/* ---- messages ---- */

static int is_role(const char *role)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool", "function"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(role, roles[i])) return 1;
    return 0;
}

/* What an assistant says beside its calls, and what a call returns, may be nothing; what a call returns is to be
 * there. */
static int may_be_none(const char *role, const weft__json *content)
{
    return !strcmp(role, "assistant") || (content && (!strcmp(role, "tool") || !strcmp(role, "function")));
}

static int check_message(size_t i, const weft__json *v, weft__api_error *error)
{
    const weft__json *content = weft__json_get(v, "content");
    const char *role;
    char where[64];
    snprintf(where, sizeof where, "messages[%zu]", i);
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        return weft__api_error_set(error, 400, where, "'%s' must be an object", where);
    snprintf(where, sizeof where, "messages[%zu].role", i);
    if (!weft__api_read_word(weft__json_get(v, "role"), &role))
        return weft__api_error_set(error, 400, where, "'%s' must be a string", where);
    if (!is_role(role))
        return weft__api_error_set(error, 400, where,
                                   "'%s' must be system, developer, user, assistant or tool, not '%.40s'", where, role);
    snprintf(where, sizeof where, "messages[%zu].content", i);
    if ((!content || weft__json_is_null(content)) && !may_be_none(role, content))
        return weft__api_error_set(error, 400, where, "'%s' is missing; it must be a string or an array of parts",
                                   where);
    return 1;
}

static int refuse_message(const weft__chat_reading *r, weft_status st, const weft_error *err, weft__api_error *error)
{
    if (st == WEFT_NO_MEMORY) return weft__api_error_set(error, 503, NULL, "no memory for the messages");
    return weft__api_error_set(error, 400, r->field, "%s", err->message);
}

int weft__api_read_messages(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    size_t n = weft__json_size(v);
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY)
        return weft__api_error_set(error, 400, name, "'%s' must be an array of messages", name);
    if (!n) return weft__api_error_set(error, 400, name, "'%s' must not be empty", name);
    if (n > WEFT__API_MAX_MESSAGES)
        return weft__api_error_set(error, 400, name, "'%s' must have at most %d messages, not %zu", name,
                                   WEFT__API_MAX_MESSAGES, n);
    for (size_t i = 0; i < n; i++)
        if (!check_message(i, weft__json_at(v, i), error)) return 0;
    weft__chat_reading reading = {.form =
                                      WEFT__CHAT_ARGUMENTS_GIVEN}; /* which form the template wants, the engine knows */
    weft_error err = {0};
    weft_status st = weft__chat_messages_normal(&reading, v, &params->flat, &err);
    return !st || refuse_message(&reading, st, &err, error);
}

int weft__api_read_kwargs(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    (void)params;
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        return weft__api_error_set(error, 400, name, "'%s' must be an object", name);
    const char *taken = weft__chat_template_taken(v);
    return !taken ||
           weft__api_error_set(error, 400, name, "'%s' cannot set '%s'; the request has a field for it", name, taken);
}
