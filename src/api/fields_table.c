// SPDX-License-Identifier: Apache-2.0
/* fields_table.c: the tables of fields. They are constant; readers.h declares what reads a field that is more than a
 * number or a string. */
#include <math.h>

#include "api/readers.h"
#include "sample/defaults.h"

#define AT(member) offsetof(weft__api_params, member)
#define NONE NAN

#define BOOL(name, member, fallback)                                                                                   \
    {                                                                                                                  \
        name, WEFT__FIELD_BOOL, 0, AT(member), fallback, 0, 0, NULL, NULL                                              \
    }
#define INT(name, member, fallback, min, max)                                                                          \
    {                                                                                                                  \
        name, WEFT__FIELD_INT, 0, AT(member), fallback, min, max, NULL, NULL                                           \
    }
#define NUMBER(name, member, fallback, min, max)                                                                       \
    {                                                                                                                  \
        name, WEFT__FIELD_NUMBER, 0, AT(member), fallback, min, max, NULL, NULL                                        \
    }
#define STRING(name, member, max)                                                                                      \
    {                                                                                                                  \
        name, WEFT__FIELD_STRING, 0, AT(member), NONE, 0, max, NULL, NULL                                              \
    }
#define JSON(name, required, member, type, read)                                                                       \
    {                                                                                                                  \
        name, WEFT__FIELD_JSON, required, AT(member), NONE, 0, 0, type, read                                           \
    }
#define READ(name, type, read)                                                                                         \
    {                                                                                                                  \
        name, WEFT__FIELD_READ, 0, 0, NONE, 0, 0, type, read                                                           \
    }
#define ONLY(name, value)                                                                                              \
    {                                                                                                                  \
        name, WEFT__FIELD_ONLY, 0, 0, value, 0, 0, NULL, NULL                                                          \
    }
#define EMPTY(name)                                                                                                    \
    {                                                                                                                  \
        name, WEFT__FIELD_EMPTY, 0, 0, NONE, 0, 0, "empty", NULL                                                       \
    }
#define NOTE(name)                                                                                                     \
    {                                                                                                                  \
        name, WEFT__FIELD_NOTE, 0, 0, NONE, 0, 0, "any", NULL                                                          \
    }
#define END                                                                                                            \
    {                                                                                                                  \
        NULL, 0, 0, 0, 0, 0, 0, NULL, NULL                                                                             \
    }

#define TEXTS "string or array of strings"
#define PROMPT WEFT__API_PROMPT_TYPE
#define TRIGGERS "array of objects with type and value or token"
#define LORAS "array of objects with id and scale"
#define MAX_INT 2147483647.0
#define MAX_NAME 256
#define MAX_GRAMMAR (1 << 18)

/* What an answer is held to, as vLLM has it: new and old. */
#define VLLM_FORMS                                                                                                     \
    READ("structured_outputs", "object", weft__api_read_structured),                                                   \
        READ("guided_json", "object or string", weft__api_read_guided_json),                                           \
        READ("guided_regex", "string", weft__api_read_guided_regex),                                                   \
        READ("guided_choice", "array of strings", weft__api_read_guided_choice),                                       \
        READ("guided_grammar", "string", weft__api_read_guided_grammar)

/* ollama's: how long the model stays after the request. */
#define KEEP_ALIVE READ("keep_alive", "seconds, or string as '5m'", weft__api_read_keep_alive)

/* llama.cpp's: how far is guessed. */
#define SPECULATIVE                                                                                                    \
    INT("speculative.n_max", draft_max, WEFT_DRAFT_MAX, 0, MAX_INT),                                                   \
        INT("speculative.n_min", draft_min, 0, 0, MAX_INT), NUMBER("speculative.p_min", draft_p_min, 0, 0, 1)

/* What becomes of an answer where the context is full; n_keep as llama.cpp has it. */
#define OVERFLOW                                                                                                       \
    {"overflow", WEFT__FIELD_STRING, 0, AT(overflow), NONE, 0, MAX_NAME, NULL, weft__api_read_overflow},               \
        INT("n_keep", n_keep, 0, -1, MAX_INT)

/* Of which type its keys and values are. */
#define KV_TYPE STRING("kv_type", kv_name, MAX_NAME)

/* Sampling as OpenAI names and bounds it, and the fields that other servers of its dialect add. */
#define OPENAI_SAMPLING                                                                                                \
    INT("n", n, 1, 1, WEFT__API_MAX_N), INT("n_best", n_best, 1, 1, WEFT__API_MAX_N),                                  \
        NUMBER("temperature", temperature, 1, 0, 2), NUMBER("top_p", top_p, 1, 0, 1),                                  \
        NUMBER("presence_penalty", presence_penalty, 0, -2, 2),                                                        \
        NUMBER("frequency_penalty", frequency_penalty, 0, -2, 2),                                                      \
        {"seed", WEFT__FIELD_INT, 0, AT(seed), NONE, -0x1p63, 0x1p63, NULL, weft__api_read_seed},                      \
        READ("logit_bias", "object of token ids and numbers", weft__api_read_bias),                                    \
        READ("stop", TEXTS, weft__api_read_stop), BOOL("stream", stream, 0),                                           \
        READ("stream_options", "object", weft__api_read_stream_options),                                               \
        READ("response_format", "object", weft__api_read_response_format), VLLM_FORMS, STRING("user", user, MAX_NAME), \
        BOOL("store", store, 1), STRING("model", model, MAX_NAME), INT("top_k", top_k, 0, -1, MAX_INT),                \
        NUMBER("min_p", min_p, 0, 0, 1), NUMBER("repetition_penalty", repeat_penalty, 1, 0.01, 100),                   \
        BOOL("ignore_eos", ignore_end, 0), BOOL("cache_prompt", cache_prompt, 1),                                      \
        STRING("grammar", grammar, MAX_GRAMMAR), BOOL("grammar_lazy", grammar_lazy, 0),                                \
        READ("grammar_triggers", TRIGGERS, weft__api_read_triggers),                                                   \
        READ("lora", LORAS, weft__api_read_adapter_scales), INT("priority", priority, 0, -8, 0),                       \
        INT("timeout_ms", timeout_ms, 0, 0, WEFT__API_TIMEOUT_MAX), KEEP_ALIVE, OVERFLOW, KV_TYPE, SPECULATIVE

#define TOOLS                                                                                                          \
    JSON("tools", 0, tools.given, "array of tools", weft__api_read_tools),                                             \
        JSON("tool_choice", 0, tools.choice, "string or object", weft__api_read_tool_choice),                          \
        JSON("functions", 0, tools.functions, "array of functions", weft__api_read_functions),                         \
        JSON("function_call", 0, tools.old_choice, "string or object", weft__api_read_function_call)

static const weft__api_field chat_fields[] = {
    JSON("messages", 1, messages, "array of messages", weft__api_read_messages),
    INT("max_tokens", max_tokens, -1, 1, MAX_INT),
    INT("max_completion_tokens", max_tokens, -1, 1, MAX_INT),
    BOOL("logprobs", logprobs, 0),
    INT("top_logprobs", n_top, 0, 0, 20),
    OPENAI_SAMPLING,
    READ("json_schema", "object", weft__api_read_json_schema),
    JSON("chat_template_kwargs", 0, kwargs, "object", weft__api_read_kwargs),
    STRING("reasoning_effort", reasoning_effort, MAX_NAME),
    STRING("verbosity", verbosity, MAX_NAME),
    TOOLS,
    {"reasoning_format", WEFT__FIELD_STRING, 0, AT(reasoning_format), NONE, 0, MAX_NAME, NULL,
     weft__api_read_reasoning_format},
    INT("thinking_budget_tokens", thinking_budget, -1, -1, MAX_INT),
    INT("reasoning_budget_tokens", thinking_budget, -1, -1, MAX_INT),
    BOOL("parallel_tool_calls", tools.parallel, 1),
    BOOL("parse_tool_calls", tools.parsed, 1),
    BOOL("memory", memory, 0),
    STRING("verify", verify, 4096),
    STRING("verify_message", verify_message, 2000),
    INT("retries", retries, 0, 0, 8),
    READ("modalities", "array of strings", weft__api_read_modalities),
    EMPTY("audio"),
    READ("prediction", "object with type and content", weft__api_read_prediction),
    EMPTY("web_search_options"),
    NOTE("metadata"),
    NOTE("service_tier"),
    NOTE("safety_identifier"),
    NOTE("prompt_cache_key"),
    NOTE("prompt_cache_retention"),
    END,
};

static const weft__api_field completions_fields[] = {
    JSON("prompt", 1, prompt, PROMPT, weft__api_read_prompt),
    INT("max_tokens", max_tokens, 16, 0, MAX_INT),
    INT("logprobs", n_top, -1, 0, 5),
    BOOL("echo", echo, 0),
    OPENAI_SAMPLING,
    EMPTY("suffix"),
    READ("best_of", "integer", weft__api_read_best_of),
    END,
};

#define EMBEDDING                                                                                                      \
    READ("pooling", "'mean' or 'last'", weft__api_read_pooling),                                                       \
        STRING("instruction", instruction, WEFT__API_MAX_INSTRUCTION)

static const weft__api_field embeddings_fields[] = {
    JSON("input", 1, input, PROMPT, weft__api_read_prompt),
    EMBEDDING,
    READ("encoding_format", "'float' or 'base64'", weft__api_read_encoding),
    EMPTY("dimensions"),
    KEEP_ALIVE,
    STRING("model", model, MAX_NAME),
    STRING("user", user, MAX_NAME),
    END,
};

/* llama.cpp's names and defaults. A negative limit of tokens means none. */
static const weft__api_field completion_fields[] = {
    JSON("prompt", 1, prompt, PROMPT, weft__api_read_prompt_llama),
    INT("n_predict", max_tokens, -1, -1, MAX_INT),
    INT("max_completion_tokens", max_tokens, -1, -1, MAX_INT),
    INT("max_tokens", max_tokens, -1, -1, MAX_INT),
    INT("n_cmpl", n, 1, 1, WEFT__API_MAX_N),
    INT("n", n, 1, 1, WEFT__API_MAX_N),
    NUMBER("temperature", temperature, WEFT__SAMPLE_TEMPERATURE, -100, 100),
    INT("top_k", top_k, WEFT__SAMPLE_TOP_K, -1, MAX_INT),
    NUMBER("top_p", top_p, WEFT__SAMPLE_TOP_P, 0, 1),
    NUMBER("min_p", min_p, WEFT__SAMPLE_MIN_P, 0, 1),
    NUMBER("repeat_penalty", repeat_penalty, WEFT__SAMPLE_REPEAT_PENALTY, 0.01, 100),
    INT("repeat_last_n", penalty_last_n, WEFT__SAMPLE_PENALTY_LAST_N, -1, MAX_INT),
    NUMBER("presence_penalty", presence_penalty, WEFT__SAMPLE_PRESENCE_PENALTY, -100, 100),
    NUMBER("frequency_penalty", frequency_penalty, WEFT__SAMPLE_FREQUENCY_PENALTY, -100, 100),
    {"seed", WEFT__FIELD_INT, 0, AT(seed), NONE, -0x1p63, 0x1p63, NULL, weft__api_read_seed_llama},
    READ("logit_bias", "array of [token, number] or object", weft__api_read_bias_llama),
    READ("stop", TEXTS, weft__api_read_stop),
    BOOL("stream", stream, 0),
    BOOL("ignore_eos", ignore_end, 0),
    BOOL("cache_prompt", cache_prompt, 1),
    BOOL("return_tokens", return_tokens, 0),
    BOOL("timings_per_token", timings, 0),
    INT("n_probs", n_top, 0, 0, 20),
    READ("logprobs", "integer or boolean", weft__api_read_logprobs_llama),
    STRING("grammar", grammar, MAX_GRAMMAR),
    BOOL("grammar_lazy", grammar_lazy, 0),
    READ("grammar_triggers", TRIGGERS, weft__api_read_triggers),
    READ("response_format", "object", weft__api_read_response_format),
    VLLM_FORMS,
    INT("id_slot", id_slot, -1, -1, 65535),
    STRING("user", user, MAX_NAME),
    BOOL("store", store, 1),
    STRING("model", model, MAX_NAME),
    INT("priority", priority, 0, -8, 0),
    INT("timeout_ms", timeout_ms, 0, 0, WEFT__API_TIMEOUT_MAX),
    KEEP_ALIVE,
    OVERFLOW,
    KV_TYPE,
    SPECULATIVE,
    READ("json_schema", "object", weft__api_read_json_schema),
    READ("samplers", "array of strings, or string of letters", weft__api_read_samplers),
    READ("lora", LORAS, weft__api_read_adapter_scales),
    EMPTY("image_data"),
    EMPTY("response_fields"),
    ONLY("post_sampling_probs", 0),
    ONLY("mirostat", 0),
    ONLY("dynatemp_range", 0),
    ONLY("typical_p", 1),
    ONLY("xtc_probability", 0),
    ONLY("dry_multiplier", 0),
    ONLY("top_n_sigma", -1),
    ONLY("adaptive_target", -1),
    ONLY("min_keep", 0),
    ONLY("n_indent", 0),
    READ("t_max_predict_ms", "integer", weft__api_read_no_limit),
    END,
};

static const weft__api_field tokenize_fields[] = {
    JSON("content", 0, content, "string, or array of strings and token ids", weft__api_read_content),
    JSON("prompt", 0, prompt, "string, or array of strings and token ids", weft__api_read_content),
    BOOL("add_special", add_special, 0),
    BOOL("add_special_tokens", add_special_tokens, 1),
    BOOL("parse_special", parse_special, 1),
    BOOL("with_pieces", with_pieces, 0),
    END,
};

static const weft__api_field detokenize_fields[] = {
    JSON("tokens", 1, tokens, "array of token ids", weft__api_read_ids),
    END,
};

static const weft__api_field apply_template_fields[] = {
    JSON("messages", 1, messages, "array of messages", weft__api_read_messages),
    JSON("chat_template_kwargs", 0, kwargs, "object", weft__api_read_kwargs),
    STRING("reasoning_effort", reasoning_effort, MAX_NAME),
    STRING("verbosity", verbosity, MAX_NAME),
    BOOL("add_generation_prompt", generation_prompt, 1),
    TOOLS,
    END,
};

static const weft__api_field embedding_fields[] = {
    JSON("content", 0, content, PROMPT, weft__api_read_prompt_llama),
    JSON("input", 0, input, PROMPT, weft__api_read_prompt_llama),
    ONLY("embd_normalize", 2), /* the Euclidean norm */
    EMBEDDING,
    END,
};

static const weft__api_field slot_fields[] = {
    {"filename", WEFT__FIELD_STRING, 0, AT(filename), NONE, 0, WEFT__API_MAX_FILENAME, NULL, NULL},
    END,
};

static const weft__api_field load_adapter_fields[] = {
    {"lora_name", WEFT__FIELD_STRING, 1, AT(lora_name), NONE, 0, 128, NULL, NULL},
    {"lora_path", WEFT__FIELD_STRING, 1, AT(lora_path), NONE, 0, 1024, NULL, NULL},
    BOOL("load_inplace", load_inplace, 0),
    BOOL("publish", publish, 0),
    NUMBER("scale", scale, 1, -1e6, 1e6),
    NOTE("base_model_name"),
    END,
};

static const weft__api_field unload_adapter_fields[] = {
    {"lora_name", WEFT__FIELD_STRING, 1, AT(lora_name), NONE, 0, 128, NULL, NULL},
    NOTE("lora_int_id"),
    END,
};

static const weft__api_field model_fields[] = {
    {"model", WEFT__FIELD_STRING, 1, AT(model), NONE, 0, MAX_NAME, NULL, NULL},
    END,
};

static const weft__api_field memories_fields[] = {
    INT("id", memory_id, 0, 0, MAX_INT),
    {"kind", WEFT__FIELD_STRING, 1, AT(memory_kind), NONE, 0, 16, NULL, NULL},
    STRING("key", memory_key, 1023),
    {"text", WEFT__FIELD_STRING, 1, AT(memory_text), NONE, 0, 4096, NULL, NULL},
    INT("valid_from_ms", valid_from_ms, 0, 0, 0x1p53),
    INT("valid_to_ms", valid_to_ms, 0, 0, 0x1p53),
    END,
};

/* What an answer is held to. */
static const char *const constraints[] = {"grammar",     "json_schema",  "response_format", "structured_outputs",
                                          "guided_json", "guided_regex", "guided_choice",   "guided_grammar",
                                          NULL};

const weft__api_table weft__api_table_chat = {.name = "chat",
                                              .path = "/v1/chat/completions",
                                              .strict = 1,
                                              .fields = chat_fields,
                                              .check = weft__api_check_chat,
                                              .n = "n",
                                              .tokens = "max_tokens",
                                              .top = "top_logprobs"};
const weft__api_table weft__api_table_completions = {.name = "completions",
                                                     .path = "/v1/completions",
                                                     .strict = 1,
                                                     .fields = completions_fields,
                                                     .check = weft__api_check_completions,
                                                     .n = "n",
                                                     .tokens = "max_tokens",
                                                     .top = "logprobs"};
const weft__api_table weft__api_table_embeddings = {"embeddings", "/v1/embeddings", 1, embeddings_fields, NULL};
const weft__api_table weft__api_table_completion = {.name = "completion",
                                                    .path = "/completion",
                                                    .fields = completion_fields,
                                                    .check = weft__api_check_completion,
                                                    .n = "n_cmpl",
                                                    .tokens = "n_predict",
                                                    .top = "n_probs",
                                                    .exact = constraints};
const weft__api_table weft__api_table_tokenize = {"tokenize", "/tokenize", 0, tokenize_fields, NULL};
const weft__api_table weft__api_table_detokenize = {"detokenize", "/detokenize", 0, detokenize_fields, NULL};
const weft__api_table weft__api_table_apply_template = {"apply_template", "/apply-template", 0, apply_template_fields,
                                                        weft__api_settle_tools};
const weft__api_table weft__api_table_embedding = {"embedding", "/embedding", 0, embedding_fields,
                                                   weft__api_check_embedding};
const weft__api_table weft__api_table_slot = {"slot", "/slots/{id_slot}", 0, slot_fields, NULL};

const weft__api_table weft__api_table_load_adapter = {"load_lora_adapter", "/v1/load_lora_adapter", 0,
                                                      load_adapter_fields, NULL};
const weft__api_table weft__api_table_unload_adapter = {"unload_lora_adapter", "/v1/unload_lora_adapter", 0,
                                                        unload_adapter_fields, NULL};

const weft__api_table weft__api_table_load_model = {"load_model", "/models/load", 0, model_fields, NULL};
const weft__api_table weft__api_table_unload_model = {"unload_model", "/models/unload", 0, model_fields, NULL};

const weft__api_table weft__api_table_memories = {"memories", "/v1/memories", 1, memories_fields, NULL};

const weft__api_table *const weft__api_tables[] = {
    &weft__api_table_chat,           &weft__api_table_completions,    &weft__api_table_embeddings,
    &weft__api_table_completion,     &weft__api_table_tokenize,       &weft__api_table_detokenize,
    &weft__api_table_apply_template, &weft__api_table_embedding,      &weft__api_table_slot,
    &weft__api_table_load_adapter,   &weft__api_table_unload_adapter, &weft__api_table_load_model,
    &weft__api_table_unload_model,   &weft__api_table_memories,       NULL,
};
