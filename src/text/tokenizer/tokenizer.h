// SPDX-License-Identifier: Apache-2.0
/* tokenizer.h: text to token ids and back.
 *
 * A tokenizer is built from a vocabulary given as plain data (this room knows no file format) and is immutable
 * afterwards: any number of threads may share it. Four models: SentencePiece BPE ("llama"), BPE by merge ranks
 * ("gpt2"), WordPiece ("bert") and Unigram ("t5"). Invariant: every id handed out is in [0, n_tokens); decoding what
 * was encoded gives the text back, byte for byte, for well-formed UTF-8 and for vocabularies that cover all bytes and
 * do not normalize. */
#ifndef WEFT_TEXT_TOKENIZER_H
#define WEFT_TEXT_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "weft/error.h"

/* Counted bytes, borrowed, not NUL-terminated. */
typedef struct weft__tok_slice {
    const char *data;
    size_t len;
} weft__tok_slice;

/* A slice of a string literal. */
#define WEFT__TOK_SLICE(literal) ((weft__tok_slice){(literal), sizeof(literal) - 1})

/* Types of tokens; the values are those of GGUF's tokenizer.ggml.token_type. */
typedef enum weft__tok_type {
    WEFT__TOK_NORMAL = 1,
    WEFT__TOK_UNKNOWN = 2,      /* stands for what the vocabulary cannot spell */
    WEFT__TOK_CONTROL = 3,      /* <s>, <|im_end|>: parsed in text only when the caller asks for it */
    WEFT__TOK_USER_DEFINED = 4, /* always cut out of the text before anything else */
    WEFT__TOK_UNUSED = 5,
    WEFT__TOK_BYTE = 6 /* <0x0A> */
} weft__tok_type;

/* Bits of a token that is cut out of texts. */
enum {
    WEFT__TOK_STRIP_LEFT = 1, /* it swallows the whitespace before it */
    WEFT__TOK_STRIP_RIGHT = 2,
    WEFT__TOK_ADDED_WORD = 4,       /* only where no character of a word stands beside it */
    WEFT__TOK_ADDED_NORMALIZED = 8, /* it is looked for in the normalized text, as the normalizer spells it */
    WEFT__TOK_ADDED_OUTSIDE = 16,   /* the model itself does not know it: it comes of being cut out alone */
    WEFT__TOK_ADDED_BITS = 31
};

typedef struct weft__tok_merge_pair {
    weft__tok_slice left, right;
} weft__tok_merge_pair;

/* A chat template beside the usual one, for one use ("tool_use", "rag"). */
typedef struct weft__tok_template {
    weft__tok_slice name, text;
} weft__tok_template;

/* One rewriting of a fragment of text before it is split. X(name, what a and b are) */
typedef enum weft__tok_norm_kind {
    WEFT__TOK_NORM_PREPEND,       /* a: what is put before every fragment that is not empty */
    WEFT__TOK_NORM_PREPEND_ONCE,  /* a: the same, unless the fragment begins with it */
    WEFT__TOK_NORM_APPEND,        /* a: what is put behind it */
    WEFT__TOK_NORM_REPLACE,       /* a: literal text, b: what replaces each occurrence */
    WEFT__TOK_NORM_REPLACE_REGEX, /* a: pattern, b: literal replacement */
    WEFT__TOK_NORM_NFC,
    WEFT__TOK_NORM_NFD,
    WEFT__TOK_NORM_NFKC,
    WEFT__TOK_NORM_NFKD,
    WEFT__TOK_NORM_LOWERCASE,
    WEFT__TOK_NORM_STRIP_ACCENTS, /* removes nonspacing marks (Mn) */
    WEFT__TOK_NORM_STRIP,     /* removes whitespace at the ends; flags WEFT__TOK_STRIP_LEFT, WEFT__TOK_STRIP_RIGHT */
    WEFT__TOK_NORM_CLEAN,     /* BERT: control characters, NUL and U+FFFD go, whitespace becomes a space */
    WEFT__TOK_NORM_SPACE_CJK, /* BERT: spaces around every Chinese character */
    WEFT__TOK_NORM_CHARSMAP,  /* a: SentencePiece's precompiled map */
    WEFT__TOK_NORM_SQUEEZE    /* SentencePiece's remove_extra_whitespaces: no spaces at the ends, one elsewhere */
} weft__tok_norm_kind;

typedef struct weft__tok_norm_step {
    weft__tok_norm_kind kind;
    weft__tok_slice a, b;
    unsigned flags;
    int first_only; /* only for a fragment at the very start of the text */
} weft__tok_norm_step;

/* One step of cutting a fragment into pieces, which are then tokenized each on its own. */
typedef enum weft__tok_split_kind {
    WEFT__TOK_SPLIT_ISOLATE,    /* matches and what lies between them are pieces */
    WEFT__TOK_SPLIT_REMOVE,     /* matches vanish */
    WEFT__TOK_SPLIT_MERGE_PREV, /* a match belongs to the piece before it */
    WEFT__TOK_SPLIT_MERGE_NEXT,
    WEFT__TOK_SPLIT_CONTIGUOUS, /* as isolate, but adjacent matches are one piece */
    WEFT__TOK_SPLIT_ALPHABET, /* no pattern: spells the bytes of each piece in GPT-2's alphabet (then set `spelled`) */
    /* no regex: spaces become `pattern` (unless empty); `prefix` goes before pieces that lack it */
    WEFT__TOK_SPLIT_REWRITE
} weft__tok_split_kind;

typedef struct weft__tok_split_step {
    weft__tok_split_kind kind;
    weft__tok_slice pattern; /* a regular expression as Oniguruma reads it (which is what tokenizer files mean) */
    int invert;              /* what lies between the matches is the match */
    weft__tok_slice prefix;
    int first_only; /* the prefix goes only before a piece at the very start of the text */
} weft__tok_split_step;

/* A vocabulary as its file describes it. Everything is borrowed for the duration of weft__tok_create. */
typedef struct weft__tok_spec {
    weft__tok_slice model; /* "llama", "gpt2", "bert" or "t5" */
    weft__tok_slice pre;   /* name of the pre-tokenizer ("llama-bpe"), for "gpt2"; empty: "default", with a warning */

    size_t n_tokens;
    const weft__tok_slice *tokens; /* [n_tokens]; of tokens spelled alike the first counts */
    size_t n_scores;
    const float *scores; /* [n_tokens], or none */
    size_t n_types;
    const int32_t *types; /* [n_tokens] weft__tok_type, or none: all normal */
    size_t n_strips;
    const uint8_t *strips; /* [n_tokens] WEFT__TOK_STRIP and _ADDED bits, or none */
    size_t n_merges;
    const weft__tok_merge_pair *merges; /* best first; left and right are spelled as in `tokens` */

    int32_t bos, eos, unk, sep, pad, cls, mask, eot, eom; /* -1: none */
    size_t n_ends;
    const int32_t *ends; /* [n_ends] more tokens that end generation */
    int32_t first, last; /* what add_bos and add_eos put around a text; -1: BOS and EOS, for "bert" CLS and SEP */
    /* 1, 0, or -1: what the model and the pre-tokenizer usually do. */
    int add_bos, add_eos, add_space_prefix, remove_extra_whitespaces, ignore_merges;
    int lowercase; /* "bert": 0 keeps case and accents */
    weft__tok_slice charsmap;
    weft__tok_slice chat_template; /* kept as it is */
    size_t n_templates;
    const weft__tok_template *templates; /* [n_templates]; no tokenizer uses them, files carry them */

    /* What tokenizer.json says in so many words. With `explicit_steps`, norms and splits replace those that `model` and
     * `pre` stand for, and so do the options. */
    int explicit_steps;
    size_t n_norms;
    const weft__tok_norm_step *norms;
    size_t n_splits;
    const weft__tok_split_step *splits;
    int byte_level;     /* BPE: token texts spell bytes in GPT-2's alphabet; otherwise U+2581 stands for a space */
    int spelled;        /* with byte_level: the steps leave pieces that are spelled in the alphabet already */
    int byte_fallback;  /* what is unknown becomes byte tokens, where there are all that it takes */
    int fuse_unk;       /* neighbouring unknowns become one */
    int strip_leading;  /* decoding drops one leading space */
    int max_word_chars; /* WordPiece: longer words are unknown; 0: no limit */
} weft__tok_spec;

/* An empty vocabulary: no ids, every flag "as usual". */
void weft__tok_spec_init(weft__tok_spec *spec);

/* The name of a pre-tokenizer (`pre`) that does what the explicit steps of a byte-level BPE do, or {NULL, 0}: none is
 * known. Composing characters (NFC) is let pass: no name stands for it, and text hardly ever needs it. */
weft__tok_slice weft__tok_pretok_name(const weft__tok_spec *spec);
/* 1 when there is a pre-tokenizer of that name. */
int weft__tok_pretok_known(weft__tok_slice pre);

typedef struct weft__tok weft__tok;

#define WEFT__TOK_MAX_BYTES 65535        /* of one token's text */
#define WEFT__TOK_SPECIAL_MAX_BYTES 1024 /* of the text of a token that is cut out of texts */

/* Checks the vocabulary and copies what it needs. Fails with WEFT_FORMAT (a message naming the array, token or merge at
 * fault), WEFT_UNSUPPORTED (an unknown model or pre-tokenizer, by name), WEFT_LIMIT or WEFT_NO_MEMORY; *out is NULL
 * then. */
weft_status weft__tok_create(const weft__tok_spec *spec, weft__tok **out, weft_error *err);
void weft__tok_destroy(weft__tok **tok);

int32_t weft__tok_n(const weft__tok *tok);
/* The ids by role; -1: the model has none. */
typedef enum weft__tok_role {
    WEFT__TOK_ROLE_BOS,
    WEFT__TOK_ROLE_EOS,
    WEFT__TOK_ROLE_UNK,
    WEFT__TOK_ROLE_SEP,
    WEFT__TOK_ROLE_PAD,
    WEFT__TOK_ROLE_CLS,
    WEFT__TOK_ROLE_MASK,
    WEFT__TOK_ROLE_EOT, /* end of turn */
    WEFT__TOK_ROLE_EOM, /* end of message, before a tool answers */
    WEFT__TOK_ROLE_COUNT
} weft__tok_role;
int32_t weft__tok_id_of_role(const weft__tok *tok, weft__tok_role role);
int weft__tok_adds_bos(const weft__tok *tok);
/* 1 when generation ends with this token: end of sequence, of turn, of message. */
int weft__tok_is_end(const weft__tok *tok, int32_t id);
/* 0 where id stands for no text: out of range, or unused and without a name but its number ("", "[PAD7]"). */
int weft__tok_is_named(const weft__tok *tok, int32_t id);
/* 0 when id is out of range. */
int weft__tok_type_of(const weft__tok *tok, int32_t id);
/* As the vocabulary spells it ("▁Hello", "<0x0A>"), NUL-terminated behind len bytes; {NULL, 0} when id is out of
 * range. */
weft__tok_slice weft__tok_text(const weft__tok *tok, int32_t id);
/* The bytes that it stands for (" Hello", "\n"), which may be part of a character; none of what has no name; {NULL, 0}
 * when id is out of range. */
weft__tok_slice weft__tok_piece_of(const weft__tok *tok, int32_t id);
/* The id of the token spelled so in the vocabulary, or -1. */
int32_t weft__tok_find(const weft__tok *tok, const char *text, size_t n);
/* {NULL, 0} when the vocabulary has none. Owned by the tokenizer. */
weft__tok_slice weft__tok_chat_template(const weft__tok *tok);

/* How one tokenizer differs from another, as bits. */
typedef enum weft__tok_difference {
    WEFT__TOK_DIFFERS_MODEL = 1,    /* the algorithm, its merges and scores */
    WEFT__TOK_DIFFERS_STEPS = 2,    /* normalization and splitting */
    WEFT__TOK_DIFFERS_OPTIONS = 4,  /* fallbacks, and what decoding drops */
    WEFT__TOK_DIFFERS_TEXTS = 8,    /* how tokens are spelled */
    WEFT__TOK_DIFFERS_TYPES = 16,   /* which tokens are control tokens, user-defined, ... */
    WEFT__TOK_DIFFERS_ADDED = 32,   /* what special tokens do to the text beside them, and where they are looked for */
    WEFT__TOK_DIFFERS_ROLES = 64,   /* BOS, EOS, padding ... but for the ends of turns and messages */
    WEFT__TOK_DIFFERS_AROUND = 128, /* what goes around a text */
    WEFT__TOK_DIFFERS_ENDS = 256,   /* the tokens that end generation, of turns and messages too */
    WEFT__TOK_DIFFERS_TEMPLATE = 512
} weft__tok_difference;
/* The ways in which b is not a: 0 when the two give the same ids for every text and the same text for all ids. */
unsigned weft__tok_compare(const weft__tok *a, const weft__tok *b);
/* The first of these bits in words ("its normalizer or pre-tokenizer"); "nothing" for 0. */
const char *weft__tok_difference_name(unsigned bits);

/* Zero-initialise; free with weft__tok_ids_free. */
typedef struct weft__tok_ids {
    int32_t *data;
    size_t n, capacity;
} weft__tok_ids;
void weft__tok_ids_free(weft__tok_ids *ids);

enum {
    WEFT__TOK_ENCODE_SPECIAL = 1, /* add what the model wants around a text: BOS, EOS, [CLS], [SEP] */
    WEFT__TOK_ENCODE_PARSE = 2    /* control tokens spelled in the text become those tokens; otherwise they stay text */
};

/* Encodes text[0..n) and appends the ids. Malformed UTF-8 is encoded byte by byte where the vocabulary has bytes and
 * does not normalize, and as U+FFFD elsewhere. Time is linear in n up to a logarithm. Fails with WEFT_NO_MEMORY,
 * WEFT_LIMIT (1 GiB of text; a pre-tokenizer's pattern that runs away) or WEFT_UNSUPPORTED (a byte that the vocabulary
 * cannot spell and no unknown token); *out keeps what it had before then. */
weft_status weft__tok_encode(const weft__tok *tok, const char *text, size_t n, unsigned flags, weft__tok_ids *out,
                             weft_error *err);

/* A stretch of text in which control tokens are parsed. */
typedef struct weft__tok_span {
    size_t offset, len; /* bytes */
} weft__tok_span;

/* The same, with control tokens parsed only where they lie wholly within one of the spans (in order, without overlaps,
 * within the text; else WEFT_ARGUMENT): so what a user wrote stays text, and is still tokenized together with its
 * surroundings. WEFT__TOK_ENCODE_PARSE is ignored. */
weft_status weft__tok_encode_spans(const weft__tok *tok, const char *text, size_t n, const weft__tok_span *spans,
                                   size_t n_spans, unsigned flags, weft__tok_ids *out, weft_error *err);

enum {
    WEFT__TOK_DECODE_SPECIAL =
        1, /* render control and unknown tokens as they are spelled; otherwise they give nothing */
    WEFT__TOK_DECODE_CONTINUE = 2 /* the ids continue a text: keep the first one's leading space */
};

/* Ids to text, one at a time. Belongs to one thread; holds no memory of its own and borrows the tokenizer.
 * Invariant: what it appends is well-formed UTF-8 at every moment. */
typedef struct weft__tok_detok {
    const weft__tok *tok;
    unsigned flags;
    int started;           /* something was rendered */
    unsigned char held[4]; /* the beginning of a character */
    int n_held;
} weft__tok_detok;

void weft__tok_detok_init(weft__tok_detok *d, const weft__tok *tok, unsigned flags);
/* Appends the bytes that became certain. Bytes that can be no character become U+FFFD (one per maximal ill-formed run,
 * as Unicode recommends). Ids without a name give none. Fails with WEFT_ARGUMENT for a negative id, or
 * WEFT_NO_MEMORY. */
weft_status weft__tok_detok_push(weft__tok_detok *d, int32_t id, weft__strbuf *out, weft_error *err);
/* An incomplete character at the end becomes U+FFFD. The object may be used again as after init. */
weft_status weft__tok_detok_finish(weft__tok_detok *d, weft__strbuf *out, weft_error *err);

/* All of it at once; appends to out. */
weft_status weft__tok_decode(const weft__tok *tok, const int32_t *ids, size_t n, unsigned flags, weft__strbuf *out,
                             weft_error *err);

#endif
