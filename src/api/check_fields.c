/* check_fields.c: what the fields of a request demand of each other. */

#include "api/readers.h"

static int check_stream(const weft__api_params *ask, weft__api_error *fault)
{
    if (weft__json_get(ask->root, "stream_options") && !weft__json_is_null(weft__json_get(ask->root, "stream_options")) &&
        !ask->stream)
        return weft__api_error_set(fault, 400, "stream_options", "'stream_options' is only allowed when 'stream' is true");
    return 1;
}

static int check_constraint(const weft__api_params *ask, weft__api_error *fault)
{
    const char *format = ask->json_object ? "response_format" : "json_schema";
    if (ask->grammar && (ask->json_object || ask->json_value))
        return weft__api_error_set(fault, 400, "grammar", "'grammar' and '%s' exclude each other", format);
    if (ask->json_object && ask->json_value)
        return weft__api_error_set(fault, 400, "json_schema", "'json_schema' and '%s' exclude each other", format);
    return 1;
}

/* OpenAI's penalties see the text so far, all of it: the prompt too, as those of /completion. */
static void set_window(weft__api_params *ask)
{
    ask->penalty_last_n = -1;
}

/* Of names for the same number the first that is given counts, whatever the order in the body. */
static void take_first(const weft__api_params *ask, const char *const *names, int64_t *to)
{
    for (; *names; names++) {
        const weft__json *v = weft__json_get(ask->root, *names);
        if (v && !weft__json_is_null(v) && weft__json_int(v, to)) return;
    }
}

int weft__api_check_chat(weft__api_params *ask, weft__api_error *fault)
{
    static const char *const limits[] = {"max_completion_tokens", "max_tokens", NULL};
    const weft__json *top = weft__json_get(ask->root, "top_logprobs");
    if (top && !weft__json_is_null(top) && !ask->logprobs)
        return weft__api_error_set(fault, 400, "top_logprobs", "'top_logprobs' is only allowed when 'logprobs' is true");
    if (!ask->logprobs) ask->n_top = -1;
    take_first(ask, limits, &ask->max_tokens);
    ask->generation_prompt = 1;
    set_window(ask);
    return check_stream(ask, fault) && check_constraint(ask, fault);
}

int weft__api_check_completions(weft__api_params *ask, weft__api_error *fault)
{
    int64_t best_of;
    if (weft__json_int(weft__json_get(ask->root, "best_of"), &best_of) && best_of != ask->n)
        return weft__api_error_set(fault, 400, "best_of", "'best_of' other than 'n' is not supported by this server");
    set_window(ask);
    return check_stream(ask, fault) && check_constraint(ask, fault);
}

/* llama-server takes OpenAI's names where its own are absent, or, of n_probs, 0. */
int weft__api_check_completion(weft__api_params *ask, weft__api_error *fault)
{
    static const char *const limits[] = {"n_predict", "max_completion_tokens", "max_tokens", NULL};
    static const char *const answers[] = {"n_cmpl", "n", NULL};
    take_first(ask, limits, &ask->max_tokens);
    take_first(ask, answers, &ask->n);
    if (!ask->n_top) ask->n_top = ask->logprobs ? ask->logprobs : -1;
    if (ask->grammar && !*ask->grammar) ask->grammar = NULL;
    if (ask->stream) ask->return_tokens = 1; /* its streams have them */
    weft__api_switch_samplers_off(ask);
    return check_constraint(ask, fault);
}

int weft__api_check_embedding(weft__api_params *ask, weft__api_error *fault)
{
    if (!ask->content) ask->content = ask->input;
    return ask->content
               ? 1
               : weft__api_error_set(fault, 400, "content", "'content' is missing; it must be %s", WEFT__API_PROMPT_TYPE);
}
