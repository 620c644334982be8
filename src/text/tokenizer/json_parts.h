// SPDX-License-Identifier: Apache-2.0
/* json_parts.h: what the reader's files share: the vocabulary under construction. One thread. */
#ifndef WEFT_TEXT_TOKENIZER_JSON_PARTS_H
#define WEFT_TEXT_TOKENIZER_JSON_PARTS_H

#include "base/json.h"
#include "text/strings.h"
#include "text/tokenizer/json.h"

#define WEFT__TOK_JSON_STEPS 32 /* of normalization, and of splitting */
#define WEFT__TOK_JSON_NESTED 8 /* sequences in sequences */

/* The specification, the arrays it points to, and the texts made up on the way. */
struct weft__tok_json_vocab {
    weft__tok_spec spec;
    weft_error *err;                         /* while it is read */
    weft__json *root, *beside, *added, *map; /* the files; texts are theirs */
    weft__tok_slice *tokens;
    float *scores;
    int32_t *types;
    uint8_t *strips;
    weft__tok_merge_pair *merges;
    size_t n_tokens, tokens_capacity; /* as in spec, while it grows */
    size_t scores_capacity, types_capacity, strips_capacity;
    weft__tok_norm_step norms[WEFT__TOK_JSON_STEPS];
    weft__tok_split_step splits[WEFT__TOK_JSON_STEPS];
    weft__tok_template *templates;
    weft__strings index, named; /* the texts of all tokens once weft__tok_json_index was called; of special ones */
    int32_t *index_ids;         /* [index.n] */
    size_t index_capacity;
    char **made; /* owned */
    size_t n_made, made_capacity;
    int unigram, word_piece;
};

/* The text of a string value; fails with WEFT_FORMAT, naming `what`. */
weft_status weft__tok_json_text(weft__tok_json_vocab *v, const weft__json *value, const char *what,
                                weft__tok_slice *out);
/* A boolean member, or the default when it is missing or null. */
weft_status weft__tok_json_flag(weft__tok_json_vocab *v, const weft__json *object, const char *key, int missing,
                                int *out);
/* A copy of text that lives as long as v; {NULL, 0} without memory. */
weft__tok_slice weft__tok_json_keep(weft__tok_json_vocab *v, const char *s, size_t n);
/* "TYPE" of an object {"type": "TYPE", ...}; fails with WEFT_FORMAT. */
weft_status weft__tok_json_type(weft__tok_json_vocab *v, const weft__json *object, const char *what,
                                weft__tok_slice *out);
int weft__tok_slice_is(weft__tok_slice s, const char *text);
/* WEFT_UNSUPPORTED: "tokenizer.json: WHAT 'NAME' is not supported". */
weft_status weft__tok_json_refuse(weft__tok_json_vocab *v, const char *what, weft__tok_slice name);
/* The id of the token spelled so, or -1; in constant time once there is an index, which tokens that come later are
 * added to. */
int32_t weft__tok_json_find(const weft__tok_json_vocab *v, weft__tok_slice text);
weft_status weft__tok_json_index(weft__tok_json_vocab *v);
weft_status weft__tok_json_index_add(weft__tok_json_vocab *v, weft__tok_slice text, int64_t id);

/* "text", or {"content": "text", ...}; {NULL, 0} for anything else. */
weft__tok_slice weft__tok_json_content(const weft__json *value);
/* Makes the arrays reach id; ids in between are unused until they are named. */
weft_status weft__tok_json_reach(weft__tok_json_vocab *v, int64_t id);

/* json_added.c: added_tokens of tokenizer.json, and what the files beside it add. */
weft_status weft__tok_json_added_tokens(weft__tok_json_vocab *v, const weft__json *added);
weft_status weft__tok_json_added_beside(weft__tok_json_vocab *v);
/* What stands for a role ("bos_token") in special_tokens_map.json, else in tokenizer_config.json; NULL: neither says
 * so. */
const weft__json *weft__tok_json_special(const weft__tok_json_vocab *v, const char *key);

/* The parts of the file, each possibly null. */
weft_status weft__tok_json_normalizer(weft__tok_json_vocab *v, const weft__json *normalizer, int depth);
weft_status weft__tok_json_pre_tokenizer(weft__tok_json_vocab *v, const weft__json *pre, int depth);
weft_status weft__tok_json_post_processor(weft__tok_json_vocab *v, const weft__json *post, int depth);
weft_status weft__tok_json_decoder(weft__tok_json_vocab *v, const weft__json *decoder, int depth);

#endif
