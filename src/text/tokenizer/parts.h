// SPDX-License-Identifier: Apache-2.0
/* parts.h: what the tokenizer's files share: the tokenizer itself, and one call of encode.
 *
 * Invariant: a weft__tok is not changed after weft__tok_create returned it. An encoding belongs to one call. */
#ifndef WEFT_TEXT_TOKENIZER_PARTS_H
#define WEFT_TEXT_TOKENIZER_PARTS_H

#include "text/tokenizer/merge.h"
#include "text/tokenizer/prefix.h"
#include "text/regex/regex.h"
#include "text/strings.h"
#include "text/tokenizer/tokenizer.h"

typedef enum weft__tok_model {
    WEFT__TOK_MODEL_SPM,
    WEFT__TOK_MODEL_BPE,
    WEFT__TOK_MODEL_WPM,
    WEFT__TOK_MODEL_UNIGRAM
} weft__tok_model;

/* U+2581, which stands for a space in SentencePiece's vocabularies. */
#define WEFT__TOK_LOWER_BLOCK "\xE2\x96\x81"
/* One character of what BERT takes for punctuation. */
#define WEFT__TOK_PUNCTUATION "[\\p{P}!-/:-@\\[-`{-~]"

/* A symbol pair of BPE and what it becomes. */
typedef struct weft__tok_bpe_pair {
    uint64_t key; /* left symbol << 32 | right symbol; UINT64_MAX: free */
    uint32_t rank;
    int32_t id;
} weft__tok_bpe_pair;

/* Steps with texts of their own and patterns compiled. */
typedef struct weft__tok_norm {
    weft__tok_norm_step step; /* a and b are owned */
    weft__regex *regex;
} weft__tok_norm;

typedef struct weft__tok_split {
    weft__tok_split_step step; /* pattern and prefix are owned */
    weft__regex *regex;
} weft__tok_split;

/* Special tokens that are looked for in normalized text. In the texts that are not normalized yet the others come
 * first. */
typedef struct weft__tok_late {
    size_t n;            /* 0: none, and nothing below is used */
    int32_t *ids;        /* [n] the token of each string below */
    weft__strings texts; /* as the normalizer spells them */
    weft__tok_prefix_index control, user;
    weft__tok_prefix_index control_early; /* of the tokenizer's control tokens those that are not late */
} weft__tok_late;

struct weft__tok {
    weft__tok_model model;
    size_t n_tokens;
    /* Token i is string i. Beyond n_tokens: symbols that only merges know. Findable are the tokens that the model may
     * produce from text: neither control nor unknown nor byte tokens. */
    weft__strings texts;
    weft__strings pieces;                 /* what each token stands for; none is findable */
    uint8_t *types;                       /* [n_tokens] */
    uint8_t *strips;                      /* [n_tokens], or NULL: none */
    uint8_t *ends;                        /* [n_tokens] 1: generation ends here */
    weft__tok_prefix_index control, user; /* tokens cut out of texts: when asked, and always (without the late ones) */
    weft__tok_late late;
    int32_t byte_id[256]; /* -1: the vocabulary has no such byte */
    int32_t role[WEFT__TOK_ROLE_COUNT];
    int add_bos, add_eos;
    int32_t first, last; /* what add_bos and add_eos put around a text */
    char *chat_template;
    size_t chat_template_len;

    weft__tok_norm *norms;
    size_t n_norms;
    weft__tok_split *splits;
    size_t n_splits;
    int byte_level, spelled, byte_fallback, fuse_unk, ignore_merges, strip_leading, max_word_chars;

    uint32_t *ranks;           /* SPM: [n_tokens] by score, best 0 */
    size_t max_len;            /* bytes of the longest findable token */
    int cut_at_spaces;         /* no token contains U+2581 behind another character: texts may be cut before it */
    weft__tok_bpe_pair *pairs; /* BPE: hash table, n_pairs a power of two */
    size_t n_pairs;
    int32_t byte_symbol[256];       /* BPE over bytes: the symbol of each */
    weft__tok_prefix_index lexicon; /* WordPiece, Unigram: all findable tokens */
    float *scores;                  /* Unigram: [n_tokens] */
    double unk_score;
};

/* A stretch of a buffer, to be tokenized on its own. */
typedef struct weft__tok_piece {
    uint32_t offset;
    uint32_t len : 31;
    uint32_t raw : 1; /* bytes that are no UTF-8 */
} weft__tok_piece;

typedef struct weft__tok_pieces {
    weft__tok_piece *items;
    size_t n, capacity;
} weft__tok_pieces;

/* One call of encode. Failures are stored in `status` (and err) at once, so that deep callers only return. */
typedef struct weft__tok_encoding {
    const weft__tok *tok;
    weft__tok_ids *out;
    weft_error *err;
    weft_status status;
    int at_start;                 /* the fragment at hand begins the text */
    size_t room;                  /* bytes that normalization and splitting may make of it */
    int parse;                    /* it is one in which control tokens are parsed: for late ones */
    weft__strbuf whole;           /* the fragment, normalized, where late tokens cut it once more */
    weft__strbuf work, other;     /* the fragment, normalized; and the next form of it */
    weft__tok_pieces pieces, cut; /* the pieces of the fragment; and the next form of them */
    weft__tok_merger merger;
    weft__regex_scratch regex;
    struct weft__tok_recent *recent; /* pieces met before, and their ids */
    size_t n_recent;
    weft__strbuf scratch;
    int32_t *path; /* Unigram */
    double *best;
    size_t path_capacity, best_capacity;
} weft__tok_encoding;

/* How many times as long steps may make a text, and how many bytes anyway: Unicode's forms need 18, marks for spaces
 * 3. */
#define WEFT__TOK_GROWTH 1024
#define WEFT__TOK_GROWTH_ROOM ((size_t)1 << 16)
/* 1 while the text that steps make, n bytes so far, is not too long for e->room. */
int weft__tok_encoding_fits(weft__tok_encoding *e, size_t n);

/* Stores the failure and returns 0, so that `return weft__tok_encoding_fail(...)` ends an int function. */
int weft__tok_encoding_fail(weft__tok_encoding *e, weft_status status, const char *format, ...) WEFT_PRINTF(3, 4);
int weft__tok_encoding_no_memory(weft__tok_encoding *e);
/* Appends an id. Like all functions below: 1, or 0 with the failure in e->status. */
int weft__tok_encoding_put(weft__tok_encoding *e, int32_t id);
/* Appends what stands for bytes that the model has no token for: byte tokens where there are all of them, else the
 * unknown token; `fused`: an unknown token directly before (this many ids into the output) is enough. */
int weft__tok_encoding_put_unknown(weft__tok_encoding *e, const char *s, size_t n, size_t since);

/* The models: one piece, s[0..n), n >= 1, to ids. */
int weft__tok_spm_encode(weft__tok_encoding *e, const char *s, size_t n);
int weft__tok_bpe_encode(weft__tok_encoding *e, const char *s, size_t n);
int weft__tok_wpm_encode(weft__tok_encoding *e, const char *s, size_t n);
int weft__tok_unigram_encode(weft__tok_encoding *e, const char *s, size_t n);

/* The models' tables, built once from the checked vocabulary. */
weft_status weft__tok_spm_build(weft__tok *tok, const weft__tok_spec *spec, weft_error *err);
weft_status weft__tok_bpe_build(weft__tok *tok, const weft__tok_spec *spec, weft_error *err);
weft_status weft__tok_lexicon_build(weft__tok *tok, const weft__tok_spec *spec, weft_error *err);

/* GPT-2's alphabet: the character that spells each byte, and back (-1: none). */
uint32_t weft__tok_byte_alphabet(unsigned char byte);
int weft__tok_byte_of_alphabet(uint32_t cp);

/* Rewrites e->work by the tokenizer's steps. */
int weft__tok_normalize(weft__tok_encoding *e);
/* Cuts e->work into e->pieces. */
int weft__tok_pretokenize(weft__tok_encoding *e);
/* A text into e->pieces: normalized, then cut. 0: e->status says why. */
int weft__tok_encoding_cut(weft__tok_encoding *e, const char *s, size_t n);

/* Compiles the steps that spec gives or that its model and pre-tokenizer stand for, and sets the options that hang on
 * them. */
weft_status weft__tok_steps_build(weft__tok *tok, const weft__tok_spec *spec, weft_error *err);
void weft__tok_steps_free(weft__tok *tok);

/* The normalized fragment e->work to ids. */
int weft__tok_encoding_work(weft__tok_encoding *e);
/* A text to ids; control tokens are parsed within the spans, which were checked. */
int weft__tok_encode_text(weft__tok_encoding *e, const char *text, size_t n, const weft__tok_span *spans,
                          size_t n_spans);
void weft__tok_encoding_release(weft__tok_encoding *e);

/* Indexes the special tokens that are looked for in normalized text, once the steps are built. */
weft_status weft__tok_late_build(weft__tok *tok, weft_error *err);
void weft__tok_late_free(weft__tok *tok);

/* The byte that the token text <0xHH> names, or -1. */
int weft__tok_byte_token(const char *s, size_t n);

/* Room for a token's text in a message, printable. Returns out. */
#define WEFT__TOK_QUOTE 64
const char *weft__tok_quote(char out[WEFT__TOK_QUOTE], const char *s, size_t n);

#endif
