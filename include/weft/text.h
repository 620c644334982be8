// SPDX-License-Identifier: Apache-2.0
/* text.h: tokenizers, chat templates, the answers to their prompts, and grammars. */
#ifndef WEFT_TEXT_H
#define WEFT_TEXT_H

#include "weft/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizer ---- */

/* The tokenizer of a file, which may hold a vocabulary only. Immutable: threads may share it. */
WEFT_API weft_status weft_tokenizer_open(const weft_file *file, weft_tokenizer **out, weft_error *err);
/* Not for that of weft_model_tokenizer, which is the model's. */
WEFT_API void weft_tokenizer_close(weft_tokenizer **tokenizer);
/* Ids are 0 to n - 1. */
WEFT_API int32_t weft_tokenizer_n_vocab(const weft_tokenizer *tokenizer);

enum weft_tokenize_flags {
    /* the special tokens that the model wants around a text (BOS, EOS), as its file says */
    WEFT_TOKENIZE_BOS = 1u << 0,
    /* special tokens spelled in the text become those tokens; otherwise they stay text */
    WEFT_TOKENIZE_SPECIAL = 1u << 1
};

/* Stores up to `capacity` ids and the number there are in *n; returns WEFT_LIMIT when they did not fit. */
WEFT_API weft_status weft_tokenize(const weft_tokenizer *tokenizer, const char *text, size_t length, uint32_t flags,
                                   int32_t *ids, size_t capacity, size_t *n, weft_error *err);
/* The token's own text as the vocabulary spells it; *length without NUL. NULL when id is out of range. */
WEFT_API const char *weft_token_piece(const weft_tokenizer *tokenizer, int32_t id, size_t *length);
/* The bytes that the token stands for (" the", "\n"), which may be part of a character. NULL when id is out of
 * range. */
WEFT_API const char *weft_token_bytes(const weft_tokenizer *tokenizer, int32_t id, size_t *length);
/* end of sequence, of turn, of message */
WEFT_API int weft_token_is_end(const weft_tokenizer *tokenizer, int32_t id);

/* The ids below n_vocab, a model's, that stand for no text: those beyond the vocabulary, where a model has more rows
 * than it has names, and those that it leaves free (unused ones without a name, or called "[PAD7]" after
 * themselves). Stores the first `capacity` of them in ids, in order; returns how many there are. */
WEFT_API int32_t weft_tokenizer_nameless(const weft_tokenizer *tokenizer, int32_t n_vocab, int32_t *ids,
                                         int32_t capacity);

typedef struct weft_detok weft_detok; /* turns ids into text as they come; never emits half a character */

enum weft_detok_flags {
    WEFT_DETOK_SPECIAL = 1u << 0, /* special tokens as they are spelled; otherwise they give nothing */
    WEFT_DETOK_CONTINUE = 1u << 1 /* the ids continue a text: the first one keeps its leading space */
};

/* From ids to text, piece by piece; flags: weft_detok_flags. One thread. The tokenizer outlives it. */
WEFT_API weft_status weft_detok_new(const weft_tokenizer *tokenizer, uint32_t flags, weft_detok **out, weft_error *err);
/* Bytes that did not become complete are lost. */
WEFT_API void weft_detok_free(weft_detok **detok);
/* The bytes that became complete; *text lives until the next call. Nameless ids give none. A negative one fails with
 * WEFT_ARGUMENT. */
WEFT_API weft_status weft_detok_push(weft_detok *detok, int32_t id, const char **text, size_t *length, weft_error *err);
/* What is left: an incomplete character becomes U+FFFD. */
WEFT_API weft_status weft_detok_finish(weft_detok *detok, const char **text, size_t *length, weft_error *err);

/* ---- chat templates: a conversation to the text that the model was trained on ---- */

typedef struct weft_chat weft_chat;
typedef struct weft_chat_prompt weft_chat_prompt;

/* source[0..length): a Jinja template; NULL: the model's own, or ChatML where it has none, which the log tells
 * (WEFT_LOG, at "warn"). The model outlives it. */
WEFT_API weft_status weft_chat_open(const weft_model *model, const char *source, size_t length, weft_chat **out,
                                    weft_error *err);
/* A chat for prompts with tools where the template of `chat`, of this model, has no variable for them: they go into the
 * one that it has under another name, or into a message of the system's or the user's, with the form of a call. All
 * else is rendered as `chat` does. *out is NULL, and that is no failure, where `chat` needs none. Fails as
 * weft_chat_open does, and with WEFT_UNSUPPORTED where the template takes no such message. */
WEFT_API weft_status weft_chat_open_for_tools(const weft_model *model, const weft_chat *chat, weft_chat **out,
                                              weft_error *err);
/* After its prompts were freed. */
WEFT_API void weft_chat_close(weft_chat **chat);
/* The template's text, NUL-terminated; lives with the chat. */
WEFT_API const char *weft_chat_source(const weft_chat *chat, size_t *length);
/* 1 when the template reads a variable of this name ("reasoning_effort"); setting any other in the kwargs of
 * weft_chat_render changes nothing. */
WEFT_API int weft_chat_reads(const weft_chat *chat, const char *variable);
/* A value of add_generation_prompt of weft_chat_render. */
#define WEFT_CHAT_CONTINUE 2
/* Renders a conversation. messages: JSON, [{"role": "user", "content": "..."}, ...], as OpenAI has them: null stands
 * for what is absent, contents may be lists of text parts, and the arguments of calls are objects or JSON as text,
 * and become what the template wants. tools: JSON array or NULL; kwargs: JSON object of further variables (null: the
 * template's default) or NULL; enable_thinking is true where they do not name it. add_generation_prompt: 1 lets the
 * assistant begin; with WEFT_CHAT_CONTINUE it has begun: the last message, the assistant's, is left open, and its
 * answer goes on from there. Fails with WEFT_ARGUMENT when the template refuses the conversation, or where a message is
 * none, by its place ("messages[2].tool_calls[0].function.arguments"), WEFT_UNSUPPORTED for content that is no text.
 * The chat outlives the prompt. */
WEFT_API weft_status weft_chat_render(const weft_chat *chat, const char *messages, const char *tools,
                                      const char *kwargs, int add_generation_prompt, weft_chat_prompt **out,
                                      weft_error *err);
/* Frees the prompt, and with it its text. */
WEFT_API void weft_chat_prompt_free(weft_chat_prompt **prompt);
/* The rendered text, NUL-terminated; lives with the prompt. */
WEFT_API const char *weft_chat_prompt_text(const weft_chat_prompt *prompt, size_t *length);
/* The answer is to have no thoughts: where a form or calls that must be are made for it, the thinking that the template
 * has begun ends at once. As enable_thinking false, for templates that do not know that. */
WEFT_API void weft_chat_prompt_end_thinking(weft_chat_prompt *prompt);
/* 1: it is to have none, by that or by enable_thinking false. */
WEFT_API int weft_chat_prompt_ends_thinking(const weft_chat_prompt *prompt);
/* Token ids of the text from byte `skip` on. Special tokens are recognized in what the template wrote, never in what
 * came from messages, tools or kwargs. With skip 0 the model's BOS stands in front where the template does not write
 * it. Otherwise as weft_tokenize. */
WEFT_API weft_status weft_chat_prompt_tokenize(const weft_chat_prompt *prompt, size_t skip, int32_t *ids,
                                               size_t capacity, size_t *n, weft_error *err);

/* ---- answers: what a model's chat format says besides text ---- */

/* The format that answers to this template's prompts have: a family's ("hermes", "harmony", "qwen3-coder");
 * "generic" where the template shows tools in no form of its own: a call is a JSON object with a name and arguments;
 * "none" where it shows no tools. tests/templates.txt has a line for each template that is known. */
WEFT_API const char *weft_chat_format(const weft_chat *chat);
/* 1 when its models think before they answer. */
WEFT_API int weft_chat_reasons(const weft_chat *chat);
/* What ends the thinking in an answer to this prompt as its models write it ("\n</think>\n\n"), as tokens. choice: NULL
 * without tools, and what begins the text of an answer is of it then, where the format has a mark for that; else as
 * weft_chat_grammar has it, which allows what is given here wherever it allows thoughts. *n is 0 where the models do
 * not think, or must call without. Otherwise as weft_tokenize. */
WEFT_API weft_status weft_chat_thinking_end(const weft_chat_prompt *prompt, const char *choice, int32_t *ids,
                                            size_t capacity, size_t *n, weft_error *err);

typedef struct weft_chat_parser weft_chat_parser;

enum weft_chat_part_kind { WEFT_CHAT_TEXT = 0, WEFT_CHAT_REASONING = 1, WEFT_CHAT_CALL = 2 };

/* A part of an answer. What it points to lives for the call; texts are not NUL-terminated. */
typedef struct weft_chat_part {
    uint32_t size;
    uint32_t kind;    /* weft_chat_part_kind */
    const char *text; /* more text, or more reasoning; CALL: all of its arguments, the text of one JSON object */
    size_t n_text;
    const char *name; /* CALL: the function's */
    size_t n_name;
    const char *id; /* CALL: as the model wrote it; n_id 0 where its format has none */
    size_t n_id;
    int32_t index; /* CALL: 0, 1, ... */
    uint32_t reserved;
} weft_chat_part;

/* Non-zero: stop, WEFT_CANCELLED. */
typedef int weft_chat_on_part(void *arg, const weft_chat_part *part);

/* WEFT_CHAT_FORM_JSON: its texts are JSON, and begin as no marker does. */
enum weft_chat_form_kind { WEFT_CHAT_FORM_NONE = 0, WEFT_CHAT_FORM_ANY = 1, WEFT_CHAT_FORM_JSON = 2 };

typedef struct weft_chat_parser_params {
    uint32_t size;
    int32_t calls;     /* 1: calls are told as such; 0, where no tools are offered: they are text */
    int32_t reasoning; /* 1: reasoning is told apart; 0: it is text, as are its markers */
    int32_t form; /* the answer is held to a form (weft_chat_form), of which nothing is a marker: weft_chat_form_kind */
    /* JSON as given to weft_chat_render: the functions that may be called, and the types of what formats without types
     * spell as plain text; NULL: any may be */
    const char *tools;
} weft_chat_parser_params;

/* Fills in the defaults: calls and reasoning are told. The macro tells the library how large the program's struct
 * is. */
WEFT_API void weft_chat_parser_params_default(weft_chat_parser_params *params);
WEFT_API void weft_chat_parser_params_init(weft_chat_parser_params *params, uint32_t size);
#define weft_chat_parser_params_default(params) weft_chat_parser_params_init(params, sizeof *(params))
/* For one answer to this prompt, which may have begun the thinking. The parser needs neither prompt nor params
 * afterwards; the chat and its model outlive it. One thread. Fails with WEFT_FORMAT (tools that are no JSON),
 * WEFT_ARGUMENT (that are no array), WEFT_NO_MEMORY. */
WEFT_API weft_status weft_chat_parser_new(const weft_chat_prompt *prompt, const weft_chat_parser_params *params,
                                          weft_chat_parser **out, weft_error *err);
/* What was not told by then is lost. */
WEFT_API void weft_chat_parser_free(weft_chat_parser **parser);
/* 1 for a special token of which the format's markers are made: it is to be pushed as it is spelled
 * (weft_token_piece), all other special tokens not at all. */
WEFT_API int weft_chat_parser_shows(const weft_chat_parser *parser, int32_t token);
/* 1: what follows now is reasoning, unless it is a marker. */
WEFT_API int weft_chat_parser_thinks(const weft_chat_parser *parser);
/* What is pushed from here on ends the thinking (weft_chat_thinking_end), which the model did not end by itself: where
 * the answer ends within it, what there is of it is not told. */
WEFT_API void weft_chat_parser_end_thinking(weft_chat_parser *parser);
/* More of the answer. How it is cut into pieces changes nothing but when parts are told: the texts between two calls,
 * or changes of kind, are the same when joined. A call is told once it is whole, and its arguments parse, text and
 * reasoning at once but for what may become a marker. What looks like a call and never becomes one, is of a function
 * that is not among the tools, or is longer than 1 MiB is told as text in its place, markers included. White space
 * beside markers is the format's and is not told. Fails with WEFT_CANCELLED and WEFT_NO_MEMORY; then the parser is only
 * to be freed. */
WEFT_API weft_status weft_chat_parser_push(weft_chat_parser *parser, const char *text, size_t length,
                                           weft_chat_on_part *on_part, void *arg, weft_error *err);
/* The end of the answer: tells what was held back. A call that lacks no more than its last marker is one. Nothing is
 * to be pushed afterwards. */
WEFT_API weft_status weft_chat_parser_finish(weft_chat_parser *parser, weft_chat_on_part *on_part, void *arg,
                                             weft_error *err);

/* ---- grammars: what a model may write ----
 * A grammar is checked and compiled for a vocabulary before the first token; a matcher follows one text through it
 * and masks the logits. Control tokens are allowed where the grammar names them, end tokens where the text may end;
 * half a character is, where the rest can follow. Fails closed: where no token fits, that is an error. The text is the
 * bytes of its tokens (WEFT_DETOK_CONTINUE). */
typedef struct weft_grammar weft_grammar;
typedef struct weft_matcher weft_matcher;

/* Sources are UTF-8 of 1 MiB at most. */
enum weft_grammar_kind {
    /* the dialect of llama.cpp; begins with rule `root`. Tokens are written <[ID]> or as they are spelled, <...>:
     * control tokens are meant as such, others as their text */
    WEFT_GRAMMAR_GBNF = 0,
    WEFT_GRAMMAR_JSON = 1,       /* any JSON object, at most 256 deep; no source */
    WEFT_GRAMMAR_JSON_VALUE = 2, /* any JSON value, the same */
    /* All of the text matches: ECMA-262 without look-around, references, \b, \p; ^ and $ at the ends change nothing;
     * \d, \w and \s are those of ASCII. */
    WEFT_GRAMMAR_REGEX = 3,
    WEFT_GRAMMAR_CHOICES = 4, /* the text is one of those in a JSON array of strings */
    /* Lark-like EBNF, as docs/howto/structured-output.md has it; begins with rule `start` */
    WEFT_GRAMMAR_LARK = 5,
    WEFT_GRAMMAR_SCHEMA = 6 /* as weft_grammar_from_schema */
};

/* Refuses what cannot work, by rule and line: WEFT_ARGUMENT for a malformed grammar, one with rules that are
 * undefined, left-recursive or fulfilled by no text; WEFT_LIMIT for one that is too large; WEFT_UNSUPPORTED for what
 * the kind does not take, and for a WordPiece vocabulary. The grammar may outlive the tokenizer. Immutable: threads may
 * share it. */
WEFT_API weft_status weft_grammar_new(const weft_tokenizer *tokenizer, uint32_t kind, const char *source, size_t length,
                                      weft_grammar **out, weft_error *err);
/* The values that are valid under a JSON Schema (source[0..length): JSON, at most 1 MiB): a subset of draft 2020-12,
 * as docs/howto/structured-output.md has it. What is allowed is valid; of what is valid, values are written with their
 * members in the schema's order, others behind them, numbers and strings in common spellings, and no white space but a
 * space or a line break with its indent within. Nothing is passed over: WEFT_UNSUPPORTED for a keyword, or a use of it,
 * that cannot be held to; WEFT_ARGUMENT for what is no schema or allows no value; WEFT_LIMIT for one that is too large.
 * The message names the place as a JSON pointer ("#/properties/a/pattern"). Otherwise as weft_grammar_new. */
WEFT_API weft_status weft_grammar_from_schema(const weft_tokenizer *tokenizer, const char *source, size_t length,
                                              weft_grammar **out, weft_error *err);

enum weft_trigger_kind {
    WEFT_TRIGGER_WORD = 0,  /* the text; where a control token is spelled so, that one, too */
    WEFT_TRIGGER_TOKEN = 1, /* the token; for the grammar a control token is itself, or else the text of its spelling */
    WEFT_TRIGGER_PATTERN = 2, /* a regular expression that some part of the text matches, or that ends with its `$` */
    WEFT_TRIGGER_PATTERN_FULL = 3 /* one that all of the text matches, where a token ends */
};
typedef struct weft_trigger {
    uint32_t kind;
    int32_t token;    /* of TOKEN */
    const char *text; /* of the others: text[0..length), UTF-8, at most 1024 bytes, of a pattern 4096 */
    size_t length;
} weft_trigger;
/* A grammar that begins later: the text is free, control tokens and ends included, until it has one of
 * triggers[0..n), at most 256; from the trigger's first byte on it is a text of `grammar`, which may be freed. A token
 * that completes a trigger is allowed where it goes on as the grammar does. A pattern is complete with the first byte
 * at which a match ends; of that the grammar has what begins with its first group, by number, that has text, and all
 * where there is none; control tokens are what they are spelled as. Fails with WEFT_ARGUMENT for a lazy grammar, a
 * trigger, but for patterns, with which none of its texts begins, or a pattern that the empty text matches;
 * WEFT_UNSUPPORTED for look-around, references, word boundaries and anchors within groups; WEFT_LIMIT for one that ends
 * in too many tokens of the vocabulary, or needs too many states. */
WEFT_API weft_status weft_grammar_lazy(const weft_tokenizer *tokenizer, const weft_grammar *grammar,
                                       const weft_trigger *triggers, size_t n, weft_grammar **out, weft_error *err);
/* What the answer to this prompt is held to so that its calls are valid. tools: JSON as given to weft_chat_render; of
 * each function the arguments are valid under its `parameters` (members that those neither name nor speak of are left
 * out), in the form that the template's models write, which weft_chat_parser reads. choice: "required": one of the
 * functions is called at once, after thinking, where the prompt has begun that or leaves it to the model; the name of a
 * function: that one; "auto" or NULL: the text is free until a call begins by the format's own mark (a lazy grammar),
 * then it is one of the functions, and its arguments are an object, held to its schema where it is `strict`; *out is
 * NULL where there are no tools, or none is strict and calls have no mark but are JSON, as a text may be. parallel:
 * several calls may follow each other. Fails with WEFT_FORMAT or WEFT_ARGUMENT for tools that are none, or have no
 * function of that name; else as weft_grammar_from_schema, by the tool's place ("tools[2].function.parameters: schema:
 * #/properties/a"), also for what the form has no way to write. */
WEFT_API weft_status weft_chat_grammar(const weft_chat_prompt *prompt, const char *tools, const char *choice,
                                       int32_t parallel, weft_grammar **out, weft_error *err);
/* What may stand before the form of an answer to this prompt: 0: nothing; other numbers: thoughts and the marks that
 * lead to it. Prompts of one chat with the same number have the same. */
WEFT_API int32_t weft_chat_form_lead(const weft_chat_prompt *prompt);
/* The texts of weft_grammar_new, behind what may stand before them in an answer to this prompt: where its models think,
 * thoughts that they may have first, or must end where the template has begun them; then the mark with which a text
 * begins, where the format has one. With enable_thinking false, or behind weft_chat_prompt_end_thinking, there are
 * none, and those that the template has begun end at once. Fails as weft_grammar_new does. The answer is read by a
 * parser with `form`. */
WEFT_API weft_status weft_chat_form(const weft_chat_prompt *prompt, uint32_t kind, const char *source, size_t length,
                                    weft_grammar **out, weft_error *err);
/* The same, or calls as weft_chat_grammar has them for "auto": the answer is one of the form, or one call or more.
 * Fails as either does. */
WEFT_API weft_status weft_chat_form_or_calls(const weft_chat_prompt *prompt, uint32_t kind, const char *source,
                                             size_t length, const char *tools, int32_t parallel, weft_grammar **out,
                                             weft_error *err);
/* One more owner; each calls weft_grammar_free. */
WEFT_API weft_grammar *weft_grammar_retain(const weft_grammar *grammar);
/* Gives up one ownership; the last one frees it. */
WEFT_API void weft_grammar_free(weft_grammar **grammar);
/* Bytes that it holds now: masks make tables when they first need them, so it grows while it is used, up to a fixed
 * amount. The index of the tokenizer's tokens, which its grammars share, is not counted. Any thread. */
WEFT_API uint64_t weft_grammar_bytes(const weft_grammar *grammar);

/* At the beginning of a text. Keeps the grammar alive. A matcher belongs to one thread. */
WEFT_API weft_status weft_matcher_new(const weft_grammar *grammar, weft_matcher **out, weft_error *err);
/* One more at the same place. */
WEFT_API weft_status weft_matcher_copy(const weft_matcher *matcher, weft_matcher **out, weft_error *err);
/* And gives up its grammar. */
WEFT_API void weft_matcher_free(weft_matcher **matcher);
/* Sets the logits of all tokens that may not come next to -infinity; those beyond the vocabulary too. Before
 * weft_sampler_pick. Fails with WEFT_STATE when none may come, naming the place; WEFT_LIMIT where the grammar is too
 * ambiguous. */
WEFT_API weft_status weft_matcher_apply(weft_matcher *matcher, float *logits, int32_t n, weft_error *err);
/* The same as bits: of bits[(weft_tokenizer_n_vocab + 63) / 64] bit t % 64 of bits[t / 64] for token t. */
WEFT_API weft_status weft_matcher_mask(weft_matcher *matcher, uint64_t *bits, size_t n_words, weft_error *err);
/* Goes on by a token. WEFT_ARGUMENT when it may not come next; nothing has changed then. */
WEFT_API weft_status weft_matcher_accept(weft_matcher *matcher, int32_t token, weft_error *err);
/* 0: the grammar wants more; 1: the text may end here; 2: nothing may follow. */
WEFT_API int weft_matcher_complete(const weft_matcher *matcher);

#ifdef __cplusplus
}
#endif
#endif
