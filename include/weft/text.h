// SPDX-License-Identifier: Apache-2.0
/* text.h: tokenizers, chat templates and grammars. */
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
/* Token ids of the text from byte `skip` on. Special tokens are recognized in what the template wrote, never in what
 * came from messages, tools or kwargs. With skip 0 the model's BOS stands in front where the template does not write
 * it. Otherwise as weft_tokenize. */
WEFT_API weft_status weft_chat_prompt_tokenize(const weft_chat_prompt *prompt, size_t skip, int32_t *ids,
                                               size_t capacity, size_t *n, weft_error *err);

/* ---- grammars: what a model may write ----
 * A grammar is checked and compiled for a vocabulary before the first token; a matcher follows one text through it
 * and masks the logits. Control tokens are never allowed, end tokens where the text may end; half a character is,
 * where the rest can follow. Fails closed: where no token fits, that is an error. The text is the bytes of its
 * tokens (WEFT_DETOK_CONTINUE). */
typedef struct weft_grammar weft_grammar;
typedef struct weft_matcher weft_matcher;

/* Sources are UTF-8 of 1 MiB at most. */
enum weft_grammar_kind {
    WEFT_GRAMMAR_GBNF = 0,       /* the dialect of llama.cpp; begins with rule `root` */
    WEFT_GRAMMAR_JSON = 1,       /* any JSON object, at most 256 deep; no source */
    WEFT_GRAMMAR_JSON_VALUE = 2, /* any JSON value, the same */
    /* All of the text matches: ECMA-262 without look-around, references, \b, \p; ^ and $ at the ends change nothing;
     * \d, \w and \s are those of ASCII. */
    WEFT_GRAMMAR_REGEX = 3,
    WEFT_GRAMMAR_CHOICES = 4, /* the text is one of those in a JSON array of strings */
    /* Lark-like EBNF, as docs/howto/structured-output.md has it; begins with rule `start` */
    WEFT_GRAMMAR_LARK = 5
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
/* One more owner; each calls weft_grammar_free. */
WEFT_API weft_grammar *weft_grammar_retain(const weft_grammar *grammar);
/* Gives up one ownership; the last one frees it. */
WEFT_API void weft_grammar_free(weft_grammar **grammar);

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
