// SPDX-License-Identifier: Apache-2.0
/* readers.h: the readers of fields that are more than a number or a string, and what fields demand of each other; for
 * fields_table.c.
 *
 * Each takes what it wants of the value into the request and returns 1, or 0 with the error filled. One thread per
 * request. */
#ifndef WEFT_API_READERS_H
#define WEFT_API_READERS_H

#include "api/fields.h"

typedef int weft__api_reader(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error);

/* read_format.c, too: */
weft__api_reader weft__api_read_prediction;
/* read_sampling.c */
weft__api_reader weft__api_read_stop, weft__api_read_overflow, weft__api_read_bias, weft__api_read_bias_llama,
    weft__api_read_samplers, weft__api_read_best_of, weft__api_read_logprobs_llama, weft__api_read_no_limit,
    weft__api_read_seed, weft__api_read_seed_llama;
/* Those that `samplers` does not name do nothing, whatever their own fields say. */
void weft__api_switch_samplers_off(weft__api_params *params);

/* read_model.c */
weft__api_reader weft__api_read_keep_alive;

/* read_format.c */
weft__api_reader weft__api_read_stream_options, weft__api_read_response_format, weft__api_read_json_schema,
    weft__api_read_encoding, weft__api_read_pooling, weft__api_read_modalities, weft__api_read_triggers,
    weft__api_read_reasoning_format;
/* A string that is to be one of several words. One with NUL in it is none of them, whatever stands before that, and
 * reads as "". 0: it is none. */
int weft__api_read_word(const weft__json *v, const char **s);

/* read_structured.c */
weft__api_reader weft__api_read_structured, weft__api_read_guided_json, weft__api_read_guided_regex,
    weft__api_read_guided_choice, weft__api_read_guided_grammar;
/* Keeps a text, or a value as JSON, or with NULL none, as that of a constraint. `field` lives as long as params. */
int weft__api_keep_constraint(weft__api_params *params, int kind, const char *field, const weft__json *v,
                              weft__api_error *error);

/* read_prompts.c */
weft__api_reader weft__api_read_ids, weft__api_read_content, weft__api_read_prompt, weft__api_read_prompt_llama,
    weft__api_read_messages, weft__api_read_kwargs;
#define WEFT__API_PROMPT_TYPE "string, array of strings, array of token ids, or array of those"

/* read_tools.c: the shapes of fields; what they say together is settled when all are there: 1, or 0 with the error
 * filled. */
weft__api_reader weft__api_read_tools, weft__api_read_functions, weft__api_read_tool_choice,
    weft__api_read_function_call;
/* settle_tools.c */
int weft__api_settle_tools(weft__api_params *params, weft__api_error *error);

/* check_fields.c: 1, or 0 with the error filled. They settle what several fields say together. */
int weft__api_check_chat(weft__api_params *params, weft__api_error *error);
int weft__api_check_completions(weft__api_params *params, weft__api_error *error);
int weft__api_check_completion(weft__api_params *params, weft__api_error *error);
int weft__api_check_embedding(weft__api_params *params, weft__api_error *error);

#endif
