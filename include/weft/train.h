/* train.h: vocabularies, models and adapters learned on this machine, for programs that embed the engine.
 *
 * Parameter structs begin with `size`: fill them with the ..._default function, then change fields. Strings and lists are borrowed during the
 * call. Every file appears under its name only when it is complete. */
#ifndef WEFT_TRAIN_H
#define WEFT_TRAIN_H

#include "weft/weft.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- vocabularies ---- */

typedef struct weft_vocab_params {
    uint32_t size;
    int32_t n_vocab;   /* tokens, special ones included (2048); fewer when the texts have no more pairs */
    int32_t min_count; /* a pair that is rarer becomes no token (2) */
    int32_t reserved;
    const char *pre;   /* name of the pre-tokenizer that cuts texts into words, as GGUF has it ("qwen2") */
    const char *const *specials; /* further control tokens, NULL-terminated, or NULL */
    const char *const *words;    /* tokens that are shown in answers ("<tool_call>"), NULL-terminated, or NULL */
    const char *chat_template;   /* Jinja source, or NULL */
    weft_progress_fn progress;
    void *progress_arg;
} weft_vocab_params;

typedef struct weft_vocab_result {
    int32_t n_tokens, n_merges;
    uint64_t n_bytes; /* of text */
} weft_vocab_result;

WEFT_API void weft_vocab_params_default(weft_vocab_params *params);
/* Learns a byte-level BPE vocabulary from text files (those called .jsonl too: as text) and writes it as a GGUF file without tensors. Ids 0 to
 * 4 are <|startoftext|> (BOS, put before texts), <|endoftext|> (EOS), <|pad|>, <|im_start|> and <|im_end|> (end of turn); the further
 * ones, the words, the 256 bytes and the merges follow. The same texts and parameters give the same file. Fails with
 * WEFT_ARGUMENT (a parameter), WEFT_UNSUPPORTED (the pre-tokenizer), WEFT_FORMAT (the template), WEFT_NOT_FOUND, WEFT_IO,
 * WEFT_NO_MEMORY, WEFT_CANCELLED. */
WEFT_API weft_status weft_train_tokenizer(const char *const *files, int32_t n_files, const char *out, const weft_vocab_params *params,
                                          weft_vocab_result *result, weft_error *err);

#ifdef __cplusplus
}
#endif
#endif
