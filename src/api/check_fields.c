// SPDX-License-Identifier: Apache-2.0
/* check_fields.c: what the fields of a request demand of each other. */
#include "api/readers.h"

static int check_stream(const weft__api_params *params, weft__api_error *error)
{
    if (weft__json_get(params->root, "stream_options") &&
        !weft__json_is_null(weft__json_get(params->root, "stream_options")) && !params->stream)
        return weft__api_error_set(error, 400, "stream_options",
                                   "'stream_options' is only allowed when 'stream' is true");
    return 1;
}

static int check_constraint(const weft__api_params *params, weft__api_error *error)
{
    const char *field = params->constraint.field, *other = params->grammar ? "grammar" : params->constraint.other;
    if (field && other) return weft__api_error_set(error, 400, other, "'%s' and '%s' exclude each other", other, field);
    if (params->grammar_lazy && !params->n_triggers)
        return weft__api_error_set(error, 400, "grammar_lazy", "'grammar_lazy' without 'grammar_triggers'");
    if (params->grammar_lazy && !params->grammar && !field)
        return weft__api_error_set(error, 400, "grammar_lazy", "'grammar_lazy' without a 'grammar' or a schema");
    return 1;
}

/* What ends thoughts is no text of a grammar that has some in it, and it is on all of the answer. */
static int check_budget(const weft__api_params *params, weft__api_error *error)
{
    return !params->grammar || params->grammar_lazy || params->thinking_budget < 0 ||
           weft__api_error_set(error, 400, "grammar",
                               "'grammar' and a budget for thinking exclude each other: all of the answer is held to "
                               "the grammar, thoughts included; bound them in it, and set the budget to -1");
}

/* An answer is a call, or what a form allows; a grammar, and what begins later, is on all of it. */
static int check_tools(const weft__api_params *params, weft__api_error *error)
{
    const char *constraint = params->grammar ? "grammar" : params->grammar_lazy ? "grammar_lazy" : NULL;
    return !params->tools.offered.len || !constraint ||
           weft__api_error_set(error, 400, constraint,
                               "'%s' and '%s' exclude each other; with 'tool_choice' none, tools are not offered",
                               constraint, params->tools.old ? "functions" : "tools");
}

/* OpenAI's penalties see the text so far, all of it: the prompt too, as those of /completion. */
static void set_window(weft__api_params *params)
{
    params->penalty_last_n = -1;
}

/* Of names for the same number the first that is given counts, whatever the order in the body. */
static void take_first(const weft__api_params *params, const char *const *names, int64_t *to)
{
    for (; *names; names++) {
        const weft__json *v = weft__json_get(params->root, *names);
        if (v && !weft__json_is_null(v) && weft__json_int(v, to)) return;
    }
}

/* Names for the same number must not say different ones. */
static int check_same(const weft__api_params *params, const char *const names[2], weft__api_error *error)
{
    int64_t a, b;
    if (!weft__json_int(weft__json_get(params->root, names[0]), &a) ||
        !weft__json_int(weft__json_get(params->root, names[1]), &b) || a == b)
        return 1;
    return weft__api_error_set(error, 400, names[1], "'%s' is %lld and '%s' is %lld; they are names for one number",
                               names[0], (long long)a, names[1], (long long)b);
}

/* The best of several is known when all are there. */
static int check_best(weft__api_params *params, weft__api_error *error)
{
    if (params->n_best < 2) return 1;
    if (params->stream)
        return weft__api_error_set(error, 400, "n_best", "'n_best' of %lld cannot be streamed; set 'stream' to false",
                                   (long long)params->n_best);
    if (params->n > 1)
        return weft__api_error_set(error, 400, "n_best", "'n_best' tells one answer, and 'n' is %lld; give one of them",
                                   (long long)params->n);
    params->n = params->n_best;
    return 1;
}

/* Answers are looked at when all of them are there. */
static int check_verifier(const weft__api_params *params, weft__api_error *error)
{
    const char *field = params->retries ? "retries" : "verify_message";
    if ((params->retries || params->verify_message) && !params->verify)
        return weft__api_error_set(error, 400, field, "'%s' is about answers that fail 'verify', which is missing",
                                   field);
    if (params->verify && params->stream)
        return weft__api_error_set(error, 400, "verify",
                                   "an answer that is streamed cannot be verified; set 'stream' to "
                                   "false, or leave 'verify' out");
    if (params->verify && params->n_best > WEFT__API_MAX_VERIFIED)
        return weft__api_error_set(error, 400, "n_best", "'n_best' must be at most %d where answers are verified",
                                   WEFT__API_MAX_VERIFIED);
    if (params->verify && params->n > 1)
        return weft__api_error_set(error, 400, "verify", "'verify' is about one answer, and 'n' is %lld; give 'n_best'",
                                   (long long)params->n);
    return 1;
}

int weft__api_check_chat(weft__api_params *params, weft__api_error *error)
{
    static const char *const limits[] = {"max_completion_tokens", "max_tokens", NULL};
    static const char *const budgets[] = {"thinking_budget_tokens", "reasoning_budget_tokens", NULL};
    const weft__json *top = weft__json_get(params->root, "top_logprobs");
    if (top && !weft__json_is_null(top) && !params->logprobs)
        return weft__api_error_set(error, 400, "top_logprobs",
                                   "'top_logprobs' is only allowed when 'logprobs' is true");
    if (!params->logprobs) params->n_top = -1;
    if (!check_same(params, limits, error) || !check_same(params, budgets, error)) return 0;
    take_first(params, limits, &params->max_tokens);
    take_first(params, budgets, &params->thinking_budget);
    params->generation_prompt = 1;
    set_window(params);
    return check_stream(params, error) && check_constraint(params, error) && check_budget(params, error) &&
           weft__api_settle_tools(params, error) && check_tools(params, error) && check_verifier(params, error) &&
           check_best(params, error);
}

int weft__api_check_completions(weft__api_params *params, weft__api_error *error)
{
    int64_t best_of;
    if (weft__json_int(weft__json_get(params->root, "best_of"), &best_of) && best_of != params->n)
        return weft__api_error_set(error, 400, "best_of", "'best_of' other than 'n' is not supported by this server");
    set_window(params);
    return check_stream(params, error) && check_constraint(params, error) && check_best(params, error);
}

/* llama-server takes OpenAI's names where its own are absent, or, of n_probs, 0. */
int weft__api_check_completion(weft__api_params *params, weft__api_error *error)
{
    static const char *const limits[] = {"n_predict", "max_completion_tokens", "max_tokens", NULL};
    static const char *const answers[] = {"n_cmpl", "n", NULL};
    take_first(params, limits, &params->max_tokens);
    take_first(params, answers, &params->n);
    if (!params->n_top) params->n_top = params->logprobs ? params->logprobs : -1;
    if (params->grammar && !*params->grammar) params->grammar = NULL;
    if (params->stream) params->return_tokens = 1; /* its streams have them */
    weft__api_switch_samplers_off(params);
    return check_constraint(params, error);
}

int weft__api_check_embedding(weft__api_params *params, weft__api_error *error)
{
    if (!params->content) params->content = params->input;
    return params->content ? 1
                           : weft__api_error_set(error, 400, "content", "'content' is missing; it must be %s",
                                                 WEFT__API_PROMPT_TYPE);
}
