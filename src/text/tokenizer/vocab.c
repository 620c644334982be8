// SPDX-License-Identifier: Apache-2.0
/* vocab.c: from a vocabulary as data to a tokenizer: checking, token texts and types, special tokens, and what they
 * stand for. Owns nothing; a tokenizer under construction belongs to the calling thread. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/background.h"
#include "text/tokenizer/parts.h"

const char *weft__tok_quote(char out[WEFT__TOK_QUOTE], const char *s, size_t n)
{
    return weft__utf8_show(out, WEFT__TOK_QUOTE, s, n);
}

void weft__tok_spec_init(weft__tok_spec *spec)
{
    memset(spec, 0, sizeof *spec);
    spec->bos = spec->eos = spec->unk = spec->sep = spec->pad = spec->cls = spec->mask = spec->eot = spec->eom = -1;
    spec->first = spec->last = -1;
    spec->add_bos = spec->add_eos = spec->add_space_prefix = spec->remove_extra_whitespaces = spec->ignore_merges =
        spec->lowercase = -1;
}

static weft_status vocab_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "tokenizer: out of memory");
}

/* ---- checks ---- */

static weft_status check_array(const char *name, size_t n, const void *data, size_t n_tokens, weft_error *err)
{
    if (n == 0) return WEFT_OK;
    if (!data) return weft_fail(err, WEFT_ARGUMENT, "tokenizer: %s has a length but no data", name);
    if (n != n_tokens) {
        return weft_fail(err, WEFT_FORMAT, "tokenizer: %s has %zu entries for %zu tokens", name, n, n_tokens);
    }
    return WEFT_OK;
}

static weft_status check_id(const char *name, int32_t id, size_t n_tokens, weft_error *err)
{
    if (id < -1 || (id >= 0 && (size_t)id >= n_tokens)) {
        return weft_fail(err, WEFT_FORMAT, "tokenizer: the %s token's id %d is not in a vocabulary of %zu", name, id,
                         n_tokens);
    }
    return WEFT_OK;
}

static weft_status find_model(const weft__tok_spec *spec, weft__tok_model *model, weft_error *err)
{
    static const struct {
        const char *name;
        weft__tok_model model;
    } models[] = {{"llama", WEFT__TOK_MODEL_SPM},
                  {"gpt2", WEFT__TOK_MODEL_BPE},
                  {"bert", WEFT__TOK_MODEL_WPM},
                  {"t5", WEFT__TOK_MODEL_UNIGRAM}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (spec->model.len == strlen(models[i].name) && !memcmp(spec->model.data, models[i].name, spec->model.len)) {
            *model = models[i].model;
            return WEFT_OK;
        }
    }
    char name[WEFT__TOK_QUOTE];
    return weft_fail(err, WEFT_UNSUPPORTED, "tokenizer: unknown model '%s'; known are llama, gpt2, bert and t5",
                     weft__tok_quote(name, spec->model.data, spec->model.len));
}

enum { OF_TOKEN = 512 /* bytes of memory that are worked on for one, about */ };

static weft_status check_tokens(const weft__tok_spec *spec, weft_error *err)
{
    if (spec->n_tokens == 0) return weft_fail(err, WEFT_FORMAT, "tokenizer: the vocabulary has no tokens");
    if (spec->n_tokens > INT32_MAX / 2 || !spec->tokens) {
        return weft_fail(err, WEFT_FORMAT, "tokenizer: a vocabulary of %zu tokens is not possible", spec->n_tokens);
    }
    for (size_t i = 0; i < spec->n_tokens; i++) {
        if (spec->tokens[i].len > WEFT__TOK_MAX_BYTES) {
            return weft_fail(err, WEFT_LIMIT, "tokenizer: token %zu is %zu bytes long, more than %d", i,
                             spec->tokens[i].len, WEFT__TOK_MAX_BYTES);
        }
    }
    for (size_t i = 0; i < spec->n_types; i++) {
        if (spec->types[i] < 0 || spec->types[i] > WEFT__TOK_BYTE) {
            return weft_fail(err, WEFT_FORMAT, "tokenizer: token %zu has the unknown type %d", i, spec->types[i]);
        }
    }
    for (size_t i = 0; i < spec->n_scores; i++) {
        if (isnan(spec->scores[i]))
            return weft_fail(err, WEFT_FORMAT, "tokenizer: the score of token %zu is not a number", i);
    }
    return WEFT_OK;
}

static weft_status vocab_check(const weft__tok_spec *spec, weft_error *err)
{
    const struct {
        const char *name;
        int32_t id;
    } ids[] = {{"BOS", spec->bos}, {"EOS", spec->eos},     {"UNK", spec->unk},   {"SEP", spec->sep},
               {"PAD", spec->pad}, {"CLS", spec->cls},     {"MASK", spec->mask}, {"EOT", spec->eot},
               {"EOM", spec->eom}, {"first", spec->first}, {"last", spec->last}};
    weft_status status = check_array("scores", spec->n_scores, spec->scores, spec->n_tokens, err);
    if (!status) status = check_array("token_type", spec->n_types, spec->types, spec->n_tokens, err);
    if (!status) status = check_array("strips", spec->n_strips, spec->strips, spec->n_tokens, err);
    if (!status && spec->n_merges && !spec->merges)
        status = weft_fail(err, WEFT_ARGUMENT, "tokenizer: merges has no data");
    if (!status) status = check_tokens(spec, err);
    for (size_t i = 0; !status && i < sizeof ids / sizeof *ids; i++) {
        status = check_id(ids[i].name, ids[i].id, spec->n_tokens, err);
    }
    for (size_t i = 0; !status && i < spec->n_ends; i++) {
        status = check_id("end", spec->ends[i] < 0 ? INT32_MAX : spec->ends[i], spec->n_tokens, err);
    }
    return status;
}

/* ---- tokens ---- */

static int findable(int type)
{
    return type == WEFT__TOK_NORMAL || type == WEFT__TOK_USER_DEFINED || type == WEFT__TOK_UNUSED;
}

/* What converters write where a vocabulary has no name for a row of its model: nothing, or "[PAD7]" for row 7. */
static int is_free(int type, const char *s, size_t n, size_t id)
{
    char pad[32];
    if (type != WEFT__TOK_UNUSED || n == 0) return type == WEFT__TOK_UNUSED;
    int length = snprintf(pad, sizeof pad, "[PAD%zu]", id);
    return n == (size_t)length && !memcmp(s, pad, n);
}

static weft_status copy_tokens(weft__tok *tok, const weft__tok_spec *spec, weft_error *err)
{
    tok->n_tokens = spec->n_tokens;
    tok->types = weft__alloc(spec->n_tokens);
    tok->ends = weft__alloc_zero(spec->n_tokens, 1);
    if (!tok->types || !tok->ends) return vocab_no_memory(err);
    if (spec->n_strips) {
        tok->strips = weft__alloc(spec->n_tokens);
        if (!tok->strips) return vocab_no_memory(err);
        for (size_t i = 0; i < spec->n_tokens; i++) tok->strips[i] = spec->strips[i] & WEFT__TOK_ADDED_BITS;
    }
    for (size_t i = 0; i < spec->n_tokens; i++) {
        int type = spec->n_types ? spec->types[i] : WEFT__TOK_NORMAL;
        weft__background_did(OF_TOKEN);
        if (type == 0) type = WEFT__TOK_NORMAL; /* "undefined" */
        tok->types[i] = (uint8_t)type;
        size_t n = spec->tokens[i].len;
        const int known = findable(type) && !is_free(type, spec->tokens[i].data, n, i) &&
                          !(tok->strips && tok->strips[i] & WEFT__TOK_ADDED_OUTSIDE);
        if (!weft__strings_add(&tok->texts, spec->tokens[i].data, n, n && known)) return vocab_no_memory(err);
        if (known && n > tok->max_len) tok->max_len = n;
    }
    return WEFT_OK;
}

int weft__tok_byte_token(const char *s, size_t n)
{
    static const char digits[] = "0123456789ABCDEF0123456789abcdef";
    if (n != 6 || memcmp(s, "<0x", 3) || s[5] != '>' || !s[3] || !s[4]) return -1;
    const char *high = strchr(digits, s[3]), *low = strchr(digits, s[4]);
    return high && low ? (int)((high - digits) % 16 * 16 + (low - digits) % 16) : -1;
}

/* Which token each byte falls back to: <0xHH>, else the token that is this byte alone. */
static weft_status find_bytes(weft__tok *tok, weft_error *err)
{
    for (int b = 0; b < 256; b++) tok->byte_id[b] = -1;
    for (size_t i = 0; i < tok->n_tokens; i++) {
        const char *s = weft__strings_data(&tok->texts, i);
        size_t n = weft__strings_len(&tok->texts, i);
        int byte = weft__tok_byte_token(s, n);
        if (byte < 0 && tok->types[i] == WEFT__TOK_BYTE) {
            char quote[WEFT__TOK_QUOTE];
            return weft_fail(err, WEFT_FORMAT, "tokenizer: token %zu is of type byte but spelled '%s' and not <0xHH>",
                             i, weft__tok_quote(quote, s, n));
        }
        if (byte >= 0 && (tok->types[i] == WEFT__TOK_BYTE || tok->byte_fallback) && tok->byte_id[byte] < 0) {
            tok->byte_id[byte] = (int32_t)i;
        }
    }
    for (int b = 0; b < 256; b++) {
        char c = (char)b;
        if (tok->byte_id[b] < 0) tok->byte_id[b] = weft__strings_find(&tok->texts, &c, 1);
    }
    return WEFT_OK;
}

/* Appends what a token text of a byte-level BPE spells; as it is when it leaves the alphabet. */
static void put_alphabet(weft__strbuf *out, const char *s, size_t n)
{
    size_t begin = out->len;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        i += weft__utf8_decode(s + i, n - i, &cp, NULL);
        int byte = weft__tok_byte_of_alphabet(cp);
        if (byte < 0) {
            out->len = begin;
            weft__strbuf_put(out, s, n);
            return;
        }
        weft__strbuf_putc(out, (char)byte);
    }
}

static void put_spaces(weft__strbuf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        if (n - i >= 3 && !memcmp(s + i, WEFT__TOK_LOWER_BLOCK, 3)) {
            weft__strbuf_putc(out, ' ');
            i += 3;
        } else {
            weft__strbuf_putc(out, s[i++]);
        }
    }
}

static weft_status build_pieces(weft__tok *tok, weft_error *err)
{
    weft__strbuf piece = {0};
    weft_status status = WEFT_OK;
    for (size_t i = 0; !status && i < tok->n_tokens; i++) {
        const char *s = weft__strings_data(&tok->texts, i);
        size_t n = weft__strings_len(&tok->texts, i);
        piece.len = 0;
        weft__background_did(OF_TOKEN);
        if (is_free(tok->types[i], s, n, i)) {
            weft__strbuf_put(&piece, "", 0);
        } else if (tok->types[i] == WEFT__TOK_BYTE) {
            weft__strbuf_putc(&piece, (char)weft__tok_byte_token(s, n));
        } else if (!findable(tok->types[i]) || (tok->byte_level && tok->types[i] == WEFT__TOK_USER_DEFINED)) {
            weft__strbuf_put(
                &piece, s, n); /* spelled as text spells it; without an alphabet, merges may find a user's token too */
        } else if (tok->byte_level) {
            put_alphabet(&piece, s, n);
        } else if (tok->byte_fallback && weft__tok_byte_token(s, n) >= 0 &&
                   tok->byte_id[weft__tok_byte_token(s, n)] == (int32_t)i) {
            weft__strbuf_putc(&piece, (char)weft__tok_byte_token(s, n));
        } else {
            put_spaces(&piece, s, n);
        }
        if (piece.failed || !weft__strings_add(&tok->pieces, piece.data, piece.len, 0)) status = vocab_no_memory(err);
    }
    weft__strbuf_free(&piece);
    return status;
}

/* ---- special tokens ---- */

/* Indexes the tokens of the types in the mask that are cut out of texts; early: without those that are looked for
 * later. */
static weft_status index_types(weft__tok *tok, unsigned types, int early, weft__tok_prefix_index *index,
                               weft_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < tok->n_tokens; i++) n += types >> tok->types[i] & 1;
    int32_t *ids = weft__alloc_array(n, sizeof *ids);
    if (!ids) return vocab_no_memory(err);
    n = 0;
    for (size_t i = 0; i < tok->n_tokens; i++) {
        if (!(types >> tok->types[i] & 1) || (early && tok->strips && tok->strips[i] & WEFT__TOK_ADDED_NORMALIZED))
            continue;
        if (weft__strings_len(&tok->texts, i) > WEFT__TOK_SPECIAL_MAX_BYTES) {
            weft__free(ids);
            return weft_fail(err, WEFT_LIMIT, "tokenizer: special token %zu is longer than %d bytes", i,
                             WEFT__TOK_SPECIAL_MAX_BYTES);
        }
        ids[n++] = (int32_t)i;
    }
    weft__tok_prefix_build(index, &tok->texts, ids, n);
    return WEFT_OK;
}

int32_t weft__tok_find(const weft__tok *tok, const char *text, size_t n)
{
    int32_t id = weft__strings_find(&tok->texts, text, n);
    if (id >= 0 && (size_t)id < tok->n_tokens) return id;
    size_t len = 0;
    id = weft__tok_prefix_longest(&tok->control, text, n, &len);
    if (id >= 0 && len == n) return id;
    id = weft__tok_prefix_longest(&tok->user, text, n, &len);
    if (id >= 0 && len == n) return id;
    for (size_t i = 0; i < tok->late.n; i++) {
        const weft__tok_slice s = weft__tok_text(tok, tok->late.ids[i]);
        if (s.len == n && !memcmp(s.data, text, n)) return tok->late.ids[i];
    }
    return -1;
}

static int32_t find_text(const weft__tok *tok, const char *text)
{
    return weft__tok_find(tok, text, strlen(text));
}

/* Files often name only one token that ends generation, or none; these are the others in use. Some models use a name
 * for something else: where <|return|> or <|flush|> and <|call|> end a turn, <|end|> only ends a message of many. */
static void mark_ends(weft__tok *tok, const weft__tok_spec *spec)
{
    static const char *const names[] = {
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|calls|>",
        "<|flush|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "<|eom_id|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "<|end_of_text|>",
        "<eos>",
        "<turn|>",
        "[e~[",
        "</s>",
        "<end_of_utterance>",
        "<|tool_response>",
        "<｜end▁of▁sentence｜>",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int32_t id = find_text(tok, names[i]);
        if (id >= 0 && tok->types[id] != WEFT__TOK_NORMAL) tok->ends[id] = 1;
    }
    int call = find_text(tok, "<|call|>") >= 0 || find_text(tok, "<|calls|>") >= 0;
    int other = find_text(tok, "<|return|>") >= 0 || find_text(tok, "<|flush|>") >= 0;
    int32_t end = find_text(tok, "<|end|>"), s = find_text(tok, "</s>");
    if (call && other && end >= 0) tok->ends[end] = 0;
    if (find_text(tok, "<|tool_response>") >= 0 && s >= 0) tok->ends[s] = 0;
    if (tok->role[WEFT__TOK_ROLE_EOT] < 0) {
        static const char *const turns[] = {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<EOT>", "[EOT]"};
        for (size_t i = 0; i < sizeof turns / sizeof *turns && tok->role[WEFT__TOK_ROLE_EOT] < 0; i++) {
            int32_t id = find_text(tok, turns[i]);
            if (id >= 0 && tok->ends[id]) tok->role[WEFT__TOK_ROLE_EOT] = id;
        }
    }
    static const weft__tok_role roles[] = {WEFT__TOK_ROLE_EOS, WEFT__TOK_ROLE_EOT, WEFT__TOK_ROLE_EOM};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (tok->role[roles[i]] >= 0) tok->ends[tok->role[roles[i]]] = 1;
    }
    for (size_t i = 0; i < spec->n_ends; i++) tok->ends[spec->ends[i]] = 1;
}

/* The ids by role, with the defaults of the model's family where the file is silent and the vocabulary has them. */
static void set_roles(weft__tok *tok, const weft__tok_spec *spec)
{
    const int32_t ids[WEFT__TOK_ROLE_COUNT] = {spec->bos, spec->eos,  spec->unk, spec->sep, spec->pad,
                                               spec->cls, spec->mask, spec->eot, spec->eom};
    memcpy(tok->role, ids, sizeof ids);
    static const struct {
        weft__tok_model model;
        weft__tok_role role;
        int32_t id;
        int type;
    } defaults[] = {
        {WEFT__TOK_MODEL_SPM, WEFT__TOK_ROLE_UNK, 0, WEFT__TOK_UNKNOWN},
        {WEFT__TOK_MODEL_SPM, WEFT__TOK_ROLE_BOS, 1, WEFT__TOK_CONTROL},
        {WEFT__TOK_MODEL_SPM, WEFT__TOK_ROLE_EOS, 2, WEFT__TOK_CONTROL},
        {WEFT__TOK_MODEL_WPM, WEFT__TOK_ROLE_UNK, 100, WEFT__TOK_CONTROL},
        {WEFT__TOK_MODEL_WPM, WEFT__TOK_ROLE_CLS, 101, WEFT__TOK_CONTROL},
        {WEFT__TOK_MODEL_WPM, WEFT__TOK_ROLE_SEP, 102, WEFT__TOK_CONTROL},
        {WEFT__TOK_MODEL_UNIGRAM, WEFT__TOK_ROLE_UNK, 2, WEFT__TOK_UNKNOWN},
        {WEFT__TOK_MODEL_UNIGRAM, WEFT__TOK_ROLE_EOS, 1, WEFT__TOK_CONTROL},
    };
    if (spec->explicit_steps) return;
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        int32_t id = defaults[i].id;
        if (defaults[i].model != tok->model || tok->role[defaults[i].role] >= 0 || (size_t)id >= tok->n_tokens)
            continue;
        if (tok->types[id] == defaults[i].type) tok->role[defaults[i].role] = id;
    }
}

static weft_status set_surroundings(weft__tok *tok, const weft__tok_spec *spec, weft_error *err)
{
    int wpm = tok->model == WEFT__TOK_MODEL_WPM;
    tok->first = tok->role[WEFT__TOK_ROLE_BOS];
    tok->last = tok->role[WEFT__TOK_ROLE_EOS];
    if (wpm && tok->role[WEFT__TOK_ROLE_CLS] >= 0) tok->first = tok->role[WEFT__TOK_ROLE_CLS];
    if (wpm && tok->role[WEFT__TOK_ROLE_SEP] >= 0) tok->last = tok->role[WEFT__TOK_ROLE_SEP];
    if (spec->first >= 0) tok->first = spec->first;
    if (spec->last >= 0) tok->last = spec->last;
    if (tok->add_bos == 1 && tok->first < 0)
        return weft_fail(err, WEFT_FORMAT, "tokenizer: add_bos without a BOS token");
    if (tok->add_eos == 1 && tok->last < 0)
        return weft_fail(err, WEFT_FORMAT, "tokenizer: add_eos without an EOS token");
    return WEFT_OK;
}

/* ---- the whole ---- */

/* 1 when no symbol has U+2581 behind another character, so that texts may be cut before it: no merge reaches across,
 * and each word is tokenized (and remembered) on its own. */
static int may_cut_at_spaces(const weft__tok *tok)
{
    if (tok->byte_level || tok->ignore_merges || weft__strings_find(&tok->texts, WEFT__TOK_LOWER_BLOCK, 3) < 0)
        return 0;
    for (size_t i = 0; i < tok->texts.n; i++) {
        const char *s = weft__strings_data(&tok->texts, i);
        size_t n = weft__strings_len(&tok->texts, i);
        for (size_t k = 1; k + 3 <= n; k++) {
            if (!memcmp(s + k, WEFT__TOK_LOWER_BLOCK, 3) && (k < 3 || memcmp(s + k - 3, WEFT__TOK_LOWER_BLOCK, 3)))
                return 0;
        }
    }
    return 1;
}

static weft_status build_model(weft__tok *tok, const weft__tok_spec *spec, weft_error *err)
{
    switch (tok->model) {
    case WEFT__TOK_MODEL_SPM: return weft__tok_spm_build(tok, spec, err);
    case WEFT__TOK_MODEL_BPE: return weft__tok_bpe_build(tok, spec, err);
    default: return weft__tok_lexicon_build(tok, spec, err);
    }
}

static weft_status vocab_build(weft__tok *tok, const weft__tok_spec *spec, weft_error *err)
{
    weft_status status = find_model(spec, &tok->model, err);
    if (!status) status = vocab_check(spec, err);
    if (!status) status = copy_tokens(tok, spec, err);
    if (status) return status;
    set_roles(tok, spec);
    status = weft__tok_steps_build(tok, spec, err);
    if (!status) status = set_surroundings(tok, spec, err);
    if (!status) status = find_bytes(tok, err);
    const unsigned control = 1u << WEFT__TOK_CONTROL | 1u << WEFT__TOK_UNKNOWN;
    if (!status) status = index_types(tok, control, 0, &tok->control, err);
    if (!status) status = index_types(tok, 1u << WEFT__TOK_USER_DEFINED, 1, &tok->user, err);
    if (!status) status = weft__tok_late_build(tok, err);
    if (!status && tok->late.n) status = index_types(tok, control, 1, &tok->late.control_early, err);
    if (!status) status = build_pieces(tok, err);
    if (!status) status = build_model(tok, spec, err);
    if (status) return status;
    int merges = tok->model == WEFT__TOK_MODEL_SPM || tok->model == WEFT__TOK_MODEL_BPE;
    tok->cut_at_spaces = merges && may_cut_at_spaces(tok);
    mark_ends(tok, spec);
    if (spec->chat_template.len) {
        tok->chat_template = weft__strndup(spec->chat_template.data, spec->chat_template.len);
        if (!tok->chat_template) return vocab_no_memory(err);
        tok->chat_template_len = spec->chat_template.len;
    }
    return WEFT_OK;
}

weft_status weft__tok_create(const weft__tok_spec *spec, weft__tok **out, weft_error *err)
{
    *out = NULL;
    weft__tok *tok = weft__alloc_zero(1, sizeof *tok);
    if (!tok) return vocab_no_memory(err);
    weft_status status = vocab_build(tok, spec, err);
    if (status) {
        weft__tok_destroy(&tok);
        return status;
    }
    *out = tok;
    return WEFT_OK;
}

void weft__tok_destroy(weft__tok **tok)
{
    weft__tok *t = tok ? *tok : NULL;
    if (!t) return;
    weft__free(t->chat_template);
    weft__free(t->scores);
    weft__tok_prefix_free(&t->lexicon);
    weft__free(t->pairs);
    weft__free(t->ranks);
    weft__tok_steps_free(t);
    weft__tok_late_free(t);
    weft__tok_prefix_free(&t->user);
    weft__tok_prefix_free(&t->control);
    weft__free(t->ends);
    weft__free(t->strips);
    weft__free(t->types);
    weft__strings_free(&t->pieces);
    weft__strings_free(&t->texts);
    weft__free(t);
    *tok = NULL;
}

/* ---- questions ---- */

static int in_range(const weft__tok *tok, int32_t id)
{
    return id >= 0 && (size_t)id < tok->n_tokens;
}

int32_t weft__tok_n(const weft__tok *tok)
{
    return (int32_t)tok->n_tokens;
}

int32_t weft__tok_id_of_role(const weft__tok *tok, weft__tok_role role)
{
    return role < WEFT__TOK_ROLE_COUNT ? tok->role[role] : -1;
}

int weft__tok_adds_bos(const weft__tok *tok)
{
    return tok->add_bos;
}

int weft__tok_is_end(const weft__tok *tok, int32_t id)
{
    return in_range(tok, id) && tok->ends[id];
}

int weft__tok_is_named(const weft__tok *tok, int32_t id)
{
    if (!in_range(tok, id)) return 0;
    weft__tok_slice s = weft__tok_text(tok, id);
    return !is_free(tok->types[id], s.data, s.len, (size_t)id);
}

int weft__tok_type_of(const weft__tok *tok, int32_t id)
{
    return in_range(tok, id) ? tok->types[id] : 0;
}

weft__tok_slice weft__tok_text(const weft__tok *tok, int32_t id)
{
    if (!in_range(tok, id)) return (weft__tok_slice){NULL, 0};
    return (weft__tok_slice){weft__strings_data(&tok->texts, (size_t)id), weft__strings_len(&tok->texts, (size_t)id)};
}

weft__tok_slice weft__tok_piece_of(const weft__tok *tok, int32_t id)
{
    if (!in_range(tok, id)) return (weft__tok_slice){NULL, 0};
    return (weft__tok_slice){weft__strings_data(&tok->pieces, (size_t)id), weft__strings_len(&tok->pieces, (size_t)id)};
}

weft__tok_slice weft__tok_chat_template(const weft__tok *tok)
{
    return (weft__tok_slice){tok->chat_template, tok->chat_template_len};
}
