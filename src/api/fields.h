// SPDX-License-Identifier: Apache-2.0
/* fields.h: what a request's JSON may hold, as tables: parsing, errors and the check of docs/openapi.json come from
 * them.
 *
 * A table lists the fields of one kind of request: name, type, range, default and where the value goes in a
 * weft__api_params. Values borrow from the parsed JSON, which the ask owns. One thread per ask. */
#ifndef WEFT_API_FIELDS_H
#define WEFT_API_FIELDS_H

#include "base/json.h"
#include "weft/weft.h"

typedef enum weft__api_field_kind {
    WEFT__FIELD_BOOL,   /* int */
    WEFT__FIELD_INT,    /* int64_t */
    WEFT__FIELD_NUMBER, /* double */
    WEFT__FIELD_STRING, /* const char *, without NUL in it; NULL when absent */
    WEFT__FIELD_JSON,   /* const weft__json *, looked at by `read` */
    WEFT__FIELD_READ,   /* no place: `read` takes what it wants from it */
    WEFT__FIELD_ONLY,   /* no place: a number or boolean that must equal the default, since nothing else is supported */
    WEFT__FIELD_EMPTY,  /* no place: must be null, false, "", [] or {}, since nothing else is supported */
    WEFT__FIELD_NOTE    /* no place: any value, without effect on the answer */
} weft__api_field_kind;

/* What is wrong with a request. */
typedef struct weft__api_error {
    int status;              /* of HTTP */
    int retry_s;             /* of 429 and 503: when to come again; below 1: in a second */
    const char *code;        /* OpenAI's error code, or NULL */
    char field[96];          /* "messages[2].role"; "" when it is about none */
    char message[512];       /* names the field, what it may be, and what it is */
    int64_t n_prompt, n_ctx; /* with code "context_length_exceeded" */
} weft__api_error;

/* Fills the error and returns 0. field NULL: none. */
int weft__api_error_set(weft__api_error *error, int status, const char *field, const char *format, ...)
    WEFT_PRINTF(4, 5);

enum { WEFT__API_MAX_TREE = 32 << 20 }; /* bytes that the values of a body may take, beyond its own */
enum {
    WEFT__API_MAX_STOPS = 128, /* clients that play several people send one for each name */
    WEFT__API_MAX_STOP_BYTES = 1000,
    WEFT__API_MAX_STOPS_BYTES = 16000, /* of all: each of the answers holds them three times over */
    WEFT__API_MAX_BIASES = 2048,
    WEFT__API_MAX_TRIGGERS = 128,
    WEFT__API_MAX_N = 128,       /* answers of a request */
    WEFT__API_MAX_VERIFIED = 16, /* of them, where an expression is looked for in each */
    WEFT__API_MAX_INPUTS = 2048, /* texts to be embedded */
    WEFT__API_MAX_INSTRUCTION = 1024,
    WEFT__API_MAX_MESSAGES = 16384
};
/* Tokens that the answers of a request keep until the last one ends, and the likeliest ones with each: fifty megabytes
 * of JSON. An answer whose length the request does not limit is to have WEFT__API_FEW_TOKENS at least. */
enum { WEFT__API_MAX_ENTRIES = 1 << 20, WEFT__API_FEW_TOKENS = 4096 };
enum { WEFT__API_TIMEOUT_MAX = 86400000 /* ms */ };
enum { WEFT__API_MAX_TENANT = 16 /* of a key */, WEFT__API_MAX_FILENAME = 111 };

typedef struct weft__api_bias_text {
    const char *text;
    size_t n;
    float bias;
} weft__api_bias_text;

enum { WEFT__API_MAX_LORAS = 8, WEFT__API_ADAPTER_NAME = 129 /* bytes */, WEFT__API_ADAPTERS_SHOWN = 160 /* bytes */ };
typedef struct weft__api_adapter_scale {
    int64_t id; /* as /lora-adapters counts them */
    double scale;
} weft__api_adapter_scale;

/* What the answer is held to, but for `grammar`. */
typedef struct weft__api_constraint {
    const char *field; /* that says so; NULL: none does */
    const char *other; /* another that says so, too; NULL: none does */
    int kind;          /* weft_grammar_kind */
    weft__strbuf text; /* owned; of a grammar, schema, expression or list of choices */
} weft__api_constraint;

/* What functions a chat's answer may call (tools.h). */
typedef struct weft__api_tools {
    const weft__json *given, *functions, *choice, *old_choice; /* as the fields have them */
    int parallel;                                              /* calls may be several */
    int parsed;                                                /* calls are told from text */
    /* settled: */
    int old;              /* spelled as functions: an answer has one function_call */
    weft__strbuf offered; /* owned; a JSON array as templates take it; of length 0: none */
    weft__strbuf called;  /* owned; "auto", "required", or the function that must be called */
} weft__api_tools;

/* One request's values. Each table fills its own part; the rest is zero. */
typedef struct weft__api_params {
    const struct weft__api_table *form;
    weft__json *root; /* owned */
    int32_t n_vocab;
    const char *model, *user;
    int store; /* 0: nothing of it is to be kept (learn/store.h) */
    /* that `model` stands for, by its name in the engine, found when the request came; "": none */
    char adapter[WEFT__API_ADAPTER_NAME];
    const weft__json *prompt, *messages, *input, *content, *tokens, *kwargs;
    const char *reasoning_effort, *verbosity; /* variables of the template */
    /* owned: messages as templates take them (text/chat/messages.h), but for arguments of calls, which are as given */
    weft__json *flat;
    int64_t n, max_tokens, seed;
    int memory;                                         /* a chat's prompt has the tenant's memories */
    const char *memory_kind, *memory_key, *memory_text; /* of one that is put; memory_id 0: it is new */
    int64_t memory_id, valid_from_ms, valid_to_ms;
    const char *verify, *verify_message; /* an expression that an answer must match; what is said where it does not */
    int64_t retries;                     /* so often at most it is asked for again then */
    int64_t n_best; /* answers of which the best is told; from 2 on n is as many; 1: all are told */
    int seed_given;
    double temperature, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty;
    int64_t top_k, penalty_last_n;
    int samplers_off; /* bits, of read_sampling.c */
    int stream, include_usage, echo, ignore_end, cache_prompt, return_tokens, timings, add_special, add_special_tokens,
        parse_special, with_pieces;
    int logprobs;  /* chat: wanted at all; /completion: n_top, where n_probs does not say */
    int64_t n_top; /* likeliest tokens with each; -1: none wanted */
    int64_t priority, id_slot, timeout_ms;
    const char *overflow; /* "stop" or "shift"; NULL: as the server has it */
    int64_t n_keep;       /* first tokens that stay where it shifts; 0: as usual; -1: the prompt */
    const char *kv_name;  /* type of keys and values, as it was asked for; NULL: as the server has it */
    /* and what that stands for, with its name, when the request was accepted */
    uint32_t kv_type;
    char kv_text[WEFT_KV_NAME_MAX];
    int64_t draft_max, draft_min; /* tokens that are guessed for a step */
    double draft_p_min;           /* the least probability of one */
    weft__strbuf prediction;      /* owned; what the answer is expected to be; of length 0: nothing */
    int64_t keep_alive_ms;        /* of the model, after the request; -1: as the server has it; INT64_MAX: for ever */
    weft__api_constraint constraint;
    int base64;
    int pooling;             /* of embeddings: weft_pooling */
    const char *instruction; /* that stands before each text to be embedded; NULL: none */
    int generation_prompt;
    const char *grammar, *filename;
    int grammar_lazy; /* it holds from a trigger on */
    int n_triggers;
    weft_trigger triggers[WEFT__API_MAX_TRIGGERS];
    weft__api_tools tools;
    int64_t thinking_budget;      /* tokens; -1: none */
    const char *reasoning_format; /* one of those that weft__api_read_reasoning_format takes; NULL: auto */
    int lora_given, n_loras;
    weft__api_adapter_scale loras[WEFT__API_MAX_LORAS];
    const char *lora_name, *lora_path;
    int load_inplace, publish;
    double scale;
    int n_stops;
    size_t n_stop_bytes;
    const char *stops[WEFT__API_MAX_STOPS]; /* with lengths, not empty */
    size_t stop_lengths[WEFT__API_MAX_STOPS];
    weft_logit_bias *bias; /* owned [n_bias] */
    int32_t n_bias;
    weft__api_bias_text *bias_texts; /* owned: biases of texts, to be tokenized */
    int32_t n_bias_texts;
} weft__api_params;

void weft__api_params_free(weft__api_params *params);

typedef struct weft__api_field {
    const char *name; /* NULL ends a table */
    weft__api_field_kind kind;
    int required;
    size_t offset;    /* in weft__api_params */
    double fallback;  /* NAN: none */
    double min, max;  /* numbers; both 0: any; 0x1p63 as max of integers: all of 64 bits */
    const char *type; /* for documents, where the kind does not tell: "string or array of strings" */
    /* 1, or 0 with the error filled. Never called with null. */
    int (*read)(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error);
} weft__api_field;

/* A kind of request. */
typedef struct weft__api_table {
    const char *name; /* "chat" */
    const char *path; /* "/v1/chat/completions" */
    int strict;       /* 1: unknown fields are refused */
    const weft__api_field *fields;
    int (*check)(weft__api_params *params,
                 weft__api_error *error); /* what fields demand of each other; NULL: nothing */
    const char *n, *tokens, *top;         /* of forms that generate: the names of ask's n, max_tokens and n_top */
    /* Of a form that is not strict: fields of which what is nearly spelled so is refused, too, as an answer would be
     * held to nothing; up to NULL. NULL: there are none. */
    const char *const *exact;
} weft__api_table;

/* Parses body[0..n) as JSON of which no more is made than a request may take. 1, with *root to be freed; or 0 with the
 * error filled. */
int weft__api_body_parse(const char *body, size_t n, weft__json **root, weft__api_error *error);

/* Parses body[0..n) as a request of this form. 1, or 0 with the error filled. The ask is to be freed either way. */
int weft__api_params_parse(const weft__api_table *form, int32_t n_vocab, const char *body, size_t n,
                           weft__api_params *params, weft__api_error *error);

/* Which model a request means, how long it waits for it, and whether it may be kept; of any body that is a JSON
 * object. */
typedef struct weft__api_meant {
    char model[257]; /* "": none is named */
    char user[257];
    int64_t timeout_ms; /* 0: none */
    int keeps_out;      /* "store" is there and neither true nor null: nothing of it is to be kept */
} weft__api_meant;
/* Looks for these members alone: what it takes beside the time of reading does not grow with the body. Of what is no
 * JSON object something may be known, or nothing: its reader will say what is wrong. */
void weft__api_meant_read(const char *body, size_t n, weft__api_meant *out);
/* weft__api_params_parse of a body that was parsed, whose root it takes. */
int weft__api_params_take(const weft__api_table *form, int32_t n_vocab, weft__json **root, weft__api_params *params,
                          weft__api_error *error);

/* Gives a body that was parsed the fields (an object, named as a chat's are) that this form has under any name and the
 * request has not. 1, or 0 with the error filled. */
int weft__api_preset_fields(const weft__api_table *form, const weft__json *fields, weft__json *root,
                            weft__api_error *error);
/* Puts a message of the system before its messages, where none of them is the system's or the developer's. The same. */
int weft__api_preset_system(const char *text, weft__json *root, weft__api_error *error);

/* Lets go of what was only to be read: prompts, messages, tools, tokens and whatever is no string that the ask
 * names. */
void weft__api_params_settle(weft__api_params *params);

/* OpenAI's */
extern const weft__api_table weft__api_table_chat, weft__api_table_completions, weft__api_table_embeddings;
extern const weft__api_table weft__api_table_completion, weft__api_table_tokenize,
    weft__api_table_detokenize, /* llama.cpp's */
    weft__api_table_apply_template, weft__api_table_embedding, weft__api_table_slot;
extern const weft__api_table weft__api_table_load_adapter, weft__api_table_unload_adapter; /* vLLM's */
extern const weft__api_table weft__api_table_memories;
extern const weft__api_table weft__api_table_load_model, weft__api_table_unload_model; /* of llama.cpp's router */
/* All of them; NULL-terminated. */
extern const weft__api_table *const weft__api_tables[];

/* 1: an answer is held to the form of calls: there must be one, or arguments of those that there are are held to. */
int weft__api_tools_bind(const weft__api_tools *tools);

/* 1: a prompt is one: a string, or an array with a number in it; otherwise it is an array of prompts. */
int weft__api_is_one_prompt(const weft__json *v);

/* Reads llama.cpp's [{"id": 0, "scale": 0.5}, ...] into ask->loras. 1, or 0 with the error filled. */
int weft__api_read_adapter_scales(weft__api_params *params, const char *name, const weft__json *v,
                                  weft__api_error *error);

/* The tables as JSON: {"chat": {"path": ..., "strict": ..., "fields": {"temperature": {"type": "number", "minimum": 0,
 * ...}}}}. */
void weft__api_tables_write(weft__strbuf *out);

#endif
