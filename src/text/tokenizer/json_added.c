// SPDX-License-Identifier: Apache-2.0
/* json_added.c: tokens that are cut out of texts: those that tokenizer.json lists, and those that only the files beside
 * it name (tokenizer_config.json, else added_tokens.json and special_tokens_map.json), as transformers adds them when
 * it loads a folder. */
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/json_parts.h"
#include "text/tokenizer/parts.h"

/* A token and what it does. */
typedef struct added_token {
    weft__tok_slice text;
    int special;
    unsigned bits; /* WEFT__TOK_STRIP, WEFT__TOK_ADDED */
} added_token;

static int same(weft__tok_slice a, weft__tok_slice b)
{
    return a.len == b.len && !memcmp(a.data, b.data, a.len);
}

static weft_status read_bits(weft__tok_json_vocab *v, const weft__json *entry, unsigned *bits)
{
    static const struct {
        const char *key;
        unsigned bit;
    } flags[] = {{"lstrip", WEFT__TOK_STRIP_LEFT},
                 {"rstrip", WEFT__TOK_STRIP_RIGHT},
                 {"single_word", WEFT__TOK_ADDED_WORD},
                 {"normalized", WEFT__TOK_ADDED_NORMALIZED}};
    *bits = 0;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        int on;
        weft_status status = weft__tok_json_flag(v, entry, flags[i].key, 0, &on);
        if (status) return status;
        if (on) *bits |= flags[i].bit;
    }
    return WEFT_OK;
}

/* Makes the token at id, which is free or spelled so, an added one. What once was special stays so. */
static weft_status set_token(weft__tok_json_vocab *v, int64_t id, const added_token *t)
{
    weft_status status = weft__tok_json_reach(v, id);
    if (status) return status;
    const int special = t->special || v->types[id] == WEFT__TOK_CONTROL;
    const unsigned outside = v->tokens[id].data ? v->strips[id] & WEFT__TOK_ADDED_OUTSIDE : WEFT__TOK_ADDED_OUTSIDE;
    if (!v->tokens[id].data && v->index.n && (status = weft__tok_json_index_add(v, t->text, id))) return status;
    v->tokens[id] = t->text;
    v->types[id] = special ? WEFT__TOK_CONTROL : WEFT__TOK_USER_DEFINED;
    v->strips[id] = (uint8_t)(t->bits | outside);
    return WEFT_OK;
}

static weft_status taken(weft__tok_json_vocab *v, const char *file, int64_t id, weft__tok_slice text)
{
    char quote[WEFT__TOK_QUOTE], other[WEFT__TOK_QUOTE];
    weft__tok_slice there = v->tokens[id];
    return weft_fail(v->err, WEFT_FORMAT, "%s: id %lld is '%s' in added_tokens and '%s' in model.vocab", file,
                     (long long)id, weft__tok_quote(quote, text.data, text.len),
                     weft__tok_quote(other, there.data, there.len));
}

/* ---- tokenizer.json ---- */

static weft_status read_added_token(weft__tok_json_vocab *v, const weft__json *entry, size_t i)
{
    int64_t id;
    added_token t;
    if (!weft__json_int(weft__json_get(entry, "id"), &id)) {
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: entry %zu of added_tokens has no id", i);
    }
    weft_status status =
        weft__tok_json_text(v, weft__json_get(entry, "content"), "the content of an added token", &t.text);
    if (!status) status = weft__tok_json_flag(v, entry, "special", 0, &t.special);
    if (!status) status = read_bits(v, entry, &t.bits);
    if (!status) status = weft__tok_json_reach(v, id);
    if (status) return status;
    if (v->tokens[id].data && !same(v->tokens[id], t.text)) return taken(v, "tokenizer.json", id, t.text);
    return set_token(v, id, &t);
}

weft_status weft__tok_json_added_tokens(weft__tok_json_vocab *v, const weft__json *added)
{
    if (!added || weft__json_is_null(added)) return WEFT_OK;
    if (weft__json_kind_of(added) != WEFT__JSON_ARRAY) {
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: added_tokens is no array");
    }
    size_t n = weft__json_size(added);
    for (size_t i = 0; i < n; i++) {
        weft_status status = read_added_token(v, weft__json_at(added, i), i);
        if (status) return status;
    }
    return WEFT_OK;
}

/* ---- the files beside it ---- */

/* The roles whose tokens are special, in the order in which they are added. */
static const char *const roles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                    "pad_token", "cls_token", "mask_token"};
/* And more of them without a role: lists, or objects of them by name. */
static const char *const lists[] = {"additional_special_tokens", "extra_special_tokens",
                                    "model_specific_special_tokens"};

const weft__json *weft__tok_json_special(const weft__tok_json_vocab *v, const char *key)
{
    const weft__json *said = weft__json_get(v->map, key);
    return said && !weft__json_is_null(said) ? said : weft__json_get(v->beside, key);
}

/* Calls `take` for all that is named as special. */
static weft_status each_special(weft__tok_json_vocab *v,
                                weft_status (*take)(weft__tok_json_vocab *, const weft__json *))
{
    weft_status status = WEFT_OK;
    for (size_t r = 0; !status && r < sizeof roles / sizeof *roles; r++)
        status = take(v, weft__tok_json_special(v, roles[r]));
    for (size_t l = 0; !status && l < sizeof lists / sizeof *lists; l++) {
        const weft__json *list = weft__tok_json_special(v, lists[l]);
        weft__json_member m = {0};
        if (weft__json_kind_of(list) == WEFT__JSON_ARRAY)
            for (size_t i = 0; !status && i < weft__json_size(list); i++) status = take(v, weft__json_at(list, i));
        else
            while (!status && weft__json_next(list, &m)) status = take(v, m.value);
    }
    return status;
}

static weft_status note_name(weft__tok_json_vocab *v, const weft__json *value)
{
    const weft__tok_slice s = weft__tok_json_content(value);
    if (!s.len || weft__strings_add(&v->named, s.data, s.len, 1)) return WEFT_OK;
    return weft_fail(v->err, WEFT_NO_MEMORY, "tokenizer.json: out of memory");
}

/* The token of an entry at the id that it says, unless its text has one: that counts. */
static weft_status add_at(weft__tok_json_vocab *v, int64_t id, const added_token *t, const char *file)
{
    if (!t->text.len) return WEFT_OK;
    const int here = id >= 0 && (uint64_t)id < v->n_tokens && v->tokens[id].data && same(v->tokens[id], t->text);
    const int32_t own = here ? (int32_t)id : weft__tok_json_find(v, t->text);
    if (own >= 0) return set_token(v, own, t);
    weft_status status = weft__tok_json_reach(v, id);
    if (status) return status;
    return v->tokens[id].data ? taken(v, file, id, t->text) : set_token(v, id, t);
}

/* {"32000": {"content": "<x>", ...}, ...} */
static weft_status read_decoder_list(weft__tok_json_vocab *v, const weft__json *list)
{
    static const char file[] = "tokenizer_config.json";
    weft__json_member m = {0};
    while (weft__json_next(list, &m)) {
        added_token t = {.text = weft__tok_json_content(m.value)};
        int64_t id = 0;
        size_t digits = 0;
        while (digits < m.key_len && digits < 9 && m.key[digits] >= '0' && m.key[digits] <= '9')
            id = id * 10 + m.key[digits++] - '0';
        if (!digits || digits < m.key_len)
            return weft_fail(v->err, WEFT_FORMAT, "%s: an entry of added_tokens_decoder has no id", file);
        if (!t.text.data)
            return weft_fail(v->err, WEFT_FORMAT, "%s: entry %lld of added_tokens_decoder has no content", file,
                             (long long)id);
        weft_status status = weft__tok_json_flag(v, m.value, "special", 0, &t.special);
        if (!status) status = read_bits(v, m.value, &t.bits);
        if (!status) status = add_at(v, id, &t, file);
        if (status) return status;
    }
    return WEFT_OK;
}

/* {"<x>": 32000, ...} */
static weft_status read_added_file(weft__tok_json_vocab *v)
{
    static const char file[] = "added_tokens.json";
    weft__json_member m = {0};
    weft_status status = v->added ? each_special(v, note_name) : WEFT_OK;
    while (!status && weft__json_next(v->added, &m)) {
        const weft__tok_slice text = {m.key, m.key_len};
        const int special = weft__strings_find(&v->named, text.data, text.len) >= 0;
        const added_token t = {text, special, special ? 0 : WEFT__TOK_ADDED_NORMALIZED};
        int64_t id;
        if (!weft__json_int(m.value, &id)) return weft_fail(v->err, WEFT_FORMAT, "%s: an entry has no id", file);
        const int32_t own = weft__tok_json_find(v, text);
        /* What tokenizer.json adds itself says more than this file. */
        if (own >= 0 && (v->types[own] == WEFT__TOK_CONTROL || v->types[own] == WEFT__TOK_USER_DEFINED)) continue;
        status = add_at(v, id, &t, file);
    }
    return status;
}

/* A token that is named as special is one, and the next that there is where the vocabulary lacks it. */
static weft_status add_named(weft__tok_json_vocab *v, const weft__json *value)
{
    added_token t = {.text = weft__tok_json_content(value), .special = 1};
    if (!t.text.len) return WEFT_OK;
    const int32_t own = weft__tok_json_find(v, t.text);
    if (own >= 0 && v->types[own] != WEFT__TOK_NORMAL) return WEFT_OK;
    weft_status status = WEFT_OK;
    if (weft__json_kind_of(value) == WEFT__JSON_OBJECT) status = read_bits(v, value, &t.bits);
    return status ? status : set_token(v, own >= 0 ? own : (int64_t)v->n_tokens, &t);
}

weft_status weft__tok_json_added_beside(weft__tok_json_vocab *v)
{
    if (!v->beside && !v->added && !v->map) return WEFT_OK;
    weft_status status = weft__tok_json_index(v);
    if (!status) status = read_decoder_list(v, weft__json_get(v->beside, "added_tokens_decoder"));
    if (!status) status = read_added_file(v);
    return status ? status : each_special(v, add_named);
}
