// SPDX-License-Identifier: Apache-2.0
/* vocab_put.c: a vocabulary as the usual keys tokenizer.* of a GGUF file (vocab_weft.h).
 *
 * GGUF knows tokenizers by name: byte-level BPE by the name of its pre-tokenizer, SentencePiece by scores. A
 * tokenizer.json says what it does step by step: here it becomes what comes nearest. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "format/arena.h"
#include "format/names.h"
#include "model/vocab.h"
#include "model/vocab_weft.h"

#define KEY(name) "tokenizer.ggml." name
#define LOWER_BLOCK "\xE2\x96\x81"

typedef struct vocab_put_writing {
    const weft__tok_spec *spec;
    size_t n; /* tokens in the file: rows of the embedding */
    weft__gguf_writer *w;
    weft_error *err;
    weft__arena arena; /* texts made up here */
} vocab_put_writing;

static weft_status vocab_put_no_memory(const vocab_put_writing *v)
{
    return weft_fail(v->err, WEFT_NO_MEMORY, "no memory for the vocabulary");
}

static int is(weft__tok_slice s, const char *text)
{
    return s.len == strlen(text) && !memcmp(s.data, text, s.len);
}

static weft_status no_counterpart(const vocab_put_writing *v, const char *what)
{
    return weft_fail(v->err, WEFT_UNSUPPORTED,
                     "tokenizer.json: %s has no counterpart in GGUF; run the folder itself instead", what);
}

/* ---- what the tokenizer is in GGUF's terms ---- */

/* BPE over characters or Unigram, with U+2581 for spaces: what SentencePiece does. Finds out whether a space goes
 * before the text, and its map of characters. */
static weft_status find_spaces(const vocab_put_writing *v, int *prefix, weft__tok_slice *charsmap)
{
    const weft__tok_spec *s = v->spec;
    int escaped = 0;
    *prefix = 0;
    for (size_t i = 0; i < s->n_norms; i++) {
        const weft__tok_norm_step *n = &s->norms[i];
        if ((n->kind == WEFT__TOK_NORM_PREPEND || n->kind == WEFT__TOK_NORM_PREPEND_ONCE) &&
            (is(n->a, LOWER_BLOCK) || is(n->a, " ")))
            *prefix = 1;
        if (n->kind == WEFT__TOK_NORM_REPLACE && is(n->a, " ") && is(n->b, LOWER_BLOCK)) escaped = 1;
        if (n->kind == WEFT__TOK_NORM_CHARSMAP) *charsmap = n->a;
    }
    for (size_t i = 0; i < s->n_splits; i++) {
        const weft__tok_split_step *p = &s->splits[i];
        if (p->kind != WEFT__TOK_SPLIT_REWRITE || !is(p->pattern, LOWER_BLOCK)) continue;
        escaped = 1;
        if (p->prefix.len) *prefix = 1;
    }
    return escaped ? WEFT_OK : no_counterpart(v, "a tokenizer that is neither byte-level nor SentencePiece");
}

/* In how many ways two tokens join to a third. SentencePiece takes each of them, BPE only those that are in its
 * list. */
static size_t count_joins(const weft__tok_spec *s, const weft__name_table *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_tokens; i++) {
        const weft__tok_slice *t = &s->tokens[i];
        if (!t->len || weft__name_table_find(ids, t->data, t->len) != (int64_t)i) continue;
        for (size_t k = 1; k < t->len; k++)
            n += (t->data[k] & 0xc0) != 0x80 && weft__name_table_find(ids, t->data, k) >= 0 &&
                 weft__name_table_find(ids, t->data + k, t->len - k) >= 0;
    }
    return n;
}

/* SentencePiece joins the pair whose token has the best score; BPE the pair whose merge stands first in the list. */
static weft_status scores_from_merges(const vocab_put_writing *v, float *scores)
{
    const weft__tok_spec *s = v->spec;
    weft__name_table ids = {0};
    weft__strbuf joined = {0};
    int ok = 1;
    for (size_t i = 0; ok && i < s->n_tokens; i++) {
        scores[i] = -(float)s->n_merges - 1; /* for words that no merge leads to */
        if (s->types && s->types[i] != WEFT__TOK_NORMAL) scores[i] = 0;
        else
            ok = !s->tokens[i].len ||
                 weft__name_table_put(&ids, s->tokens[i].data, s->tokens[i].len, (uint32_t)i, NULL) >= 0;
    }
    for (size_t i = s->n_merges; ok && i-- > 0;) { /* backwards: the first merge that makes a token counts */
        joined.len = 0;
        weft__strbuf_put(&joined, s->merges[i].left.data, s->merges[i].left.len);
        weft__strbuf_put(&joined, s->merges[i].right.data, s->merges[i].right.len);
        ok = !joined.failed;
        int64_t id = ok ? weft__name_table_find(&ids, joined.data, joined.len) : -1;
        if (id >= 0) scores[id] = -(float)i;
    }
    size_t joins = ok ? count_joins(s, &ids) : 0;
    if (joins > s->n_merges)
        weft__log(WEFT__LOG_WARN,
                  "tokenizer.json: %zu pairs of tokens could be joined, but it has only %zu merges: programs that read "
                  "only GGUF's "
                  "usual keys may join more",
                  joins, s->n_merges);
    weft__strbuf_free(&joined);
    weft__name_table_free(&ids);
    return ok ? WEFT_OK : vocab_put_no_memory(v);
}

static weft_status put_string(const vocab_put_writing *v, const char *key, weft__tok_slice s)
{
    return weft__gguf_put_string(v->w, key, s.data, s.len, v->err);
}

static weft_status put_scores(const vocab_put_writing *v)
{
    const weft__tok_spec *s = v->spec;
    weft_status status = WEFT_OK;
    float *scores = weft__alloc_zero(v->n, sizeof *scores);
    if (!scores) return vocab_put_no_memory(v);
    if (s->n_scores) memcpy(scores, s->scores, s->n_scores * sizeof *scores);
    else status = scores_from_merges(v, scores);
    for (size_t i = s->n_tokens; i < v->n; i++) scores[i] = -1000000;
    if (!status) status = weft__gguf_put_array(v->w, KEY("scores"), WEFT__GGUF_F32, scores, v->n, v->err);
    weft__free(scores);
    return status;
}

static weft_status put_sentencepiece(const vocab_put_writing *v)
{
    const weft__tok_spec *s = v->spec;
    int prefix = s->add_space_prefix != 0, unigram = is(s->model, "t5");
    weft__tok_slice charsmap = s->charsmap;
    weft_status status;
    if (s->explicit_steps && (status = find_spaces(v, &prefix, &charsmap))) return status;
    if ((status = put_string(v, KEY("model"), unigram ? WEFT__TOK_SLICE("t5") : WEFT__TOK_SLICE("llama"))) ||
        (status = put_string(v, KEY("pre"), WEFT__TOK_SLICE("default"))) || (status = put_scores(v)) ||
        (status = weft__gguf_put_bool(v->w, KEY("add_space_prefix"), prefix, v->err)))
        return status;
    if (!unigram) return WEFT_OK;
    status = weft__gguf_put_bool(v->w, KEY("remove_extra_whitespaces"), s->remove_extra_whitespaces == 1, v->err);
    if (status || !charsmap.len) return status;
    return weft__gguf_put_array(v->w, KEY("precompiled_charsmap"), WEFT__GGUF_U8, charsmap.data, charsmap.len, v->err);
}

static weft_status put_merges(vocab_put_writing *v)
{
    const weft__tok_spec *s = v->spec;
    weft_status status = WEFT_OK;
    weft__gguf_str *merges = weft__alloc_array(s->n_merges, sizeof *merges);
    if (!merges) return vocab_put_no_memory(v);
    for (size_t i = 0; !status && i < s->n_merges; i++) {
        weft__tok_slice l = s->merges[i].left, r = s->merges[i].right;
        char *text = weft__arena_take(&v->arena, l.len + r.len + 1);
        if (!text) {
            status = vocab_put_no_memory(v);
            break;
        }
        memcpy(text, l.data, l.len);
        text[l.len] = ' ';
        memcpy(text + l.len + 1, r.data, r.len);
        merges[i] = (weft__gguf_str){text, l.len + r.len + 1};
    }
    if (!status) status = weft__gguf_put_strings(v->w, KEY("merges"), merges, s->n_merges, v->err);
    weft__free(merges);
    return status;
}

static weft_status put_byte_level(vocab_put_writing *v, const char *pre)
{
    weft__tok_slice name = {pre, pre ? strlen(pre) : 0};
    if (pre && !weft__tok_pretok_known(name))
        return weft_fail(
            v->err, WEFT_ARGUMENT,
            "there is no pre-tokenizer called '%.60s' (known are llama-bpe, qwen2, gpt-2, tekken, gpt-4o ...)", pre);
    if (!pre) name = weft__tok_pretok_name(v->spec);
    if (!name.data)
        return weft_fail(v->err, WEFT_UNSUPPORTED,
                         "tokenizer.json: its pre-tokenizer is none that GGUF has a name for; --pre NAME gives one if "
                         "it does the same");
    weft_status status = put_string(v, KEY("model"), WEFT__TOK_SLICE("gpt2"));
    if (!status) status = put_string(v, KEY("pre"), name);
    return status ? status : put_merges(v);
}

/* ---- tokens ---- */

/* The text as GGUF has it: user-defined tokens with real spaces, and names for what has none. */
static weft_status token_text(vocab_put_writing *v, size_t i, int byte_level, weft__gguf_str *out)
{
    const weft__tok_spec *s = v->spec;
    weft__tok_slice t = i < s->n_tokens ? s->tokens[i] : (weft__tok_slice){NULL, 0};
    int type = i < s->n_tokens && s->n_types ? s->types[i] : WEFT__TOK_NORMAL;
    if (t.data && (byte_level || type != WEFT__TOK_USER_DEFINED)) {
        *out = (weft__gguf_str){t.data, t.len};
        return WEFT_OK;
    }
    char *text = weft__arena_take(&v->arena, t.data ? t.len + 1 : 32);
    size_t n = 0;
    if (!text) return vocab_put_no_memory(v);
    if (!t.data) n = (size_t)snprintf(text, 32, "[PAD%zu]", i);
    for (size_t k = 0; k < t.len;) {
        int block = t.len - k >= 3 && !memcmp(t.data + k, LOWER_BLOCK, 3);
        text[n++] = block ? ' ' : t.data[k];
        k += block ? 3 : 1;
    }
    *out = (weft__gguf_str){text, n};
    return WEFT_OK;
}

static weft_status put_tokens(vocab_put_writing *v, int byte_level)
{
    const weft__tok_spec *s = v->spec;
    weft_status status = WEFT_OK;
    weft__gguf_str *texts = weft__alloc_array(v->n, sizeof *texts);
    int32_t *types = weft__alloc_array(v->n, sizeof *types);
    if (!texts || !types) status = vocab_put_no_memory(v);
    for (size_t i = 0; !status && i < v->n; i++) {
        int named = i < s->n_tokens && s->tokens[i].data;
        types[i] = !named ? WEFT__TOK_UNUSED : s->n_types ? s->types[i] : WEFT__TOK_NORMAL;
        status = token_text(v, i, byte_level, &texts[i]);
    }
    if (!status) status = weft__gguf_put_strings(v->w, KEY("tokens"), texts, v->n, v->err);
    if (!status) status = weft__gguf_put_array(v->w, KEY("token_type"), WEFT__GGUF_I32, types, v->n, v->err);
    weft__free(types);
    weft__free(texts);
    return status;
}

/* ---- roles ---- */

static weft_status put_roles(const vocab_put_writing *v)
{
    const weft__tok_spec *s = v->spec;
    int32_t eot = s->eot, eom = s->eom;
    for (size_t i = 0; i < s->n_ends; i++) { /* GGUF has names for two ends beyond EOS */
        if (s->ends[i] == s->eos || s->ends[i] == eot || s->ends[i] == eom) continue;
        if (eot < 0) eot = s->ends[i];
        else if (eom < 0) eom = s->ends[i];
    }
    const struct {
        const char *key;
        int32_t id;
    } roles[] = {
        {KEY("bos_token_id"), s->bos},       {KEY("eos_token_id"), s->eos},     {KEY("unknown_token_id"), s->unk},
        {KEY("seperator_token_id"), s->sep}, {KEY("padding_token_id"), s->pad}, {KEY("cls_token_id"), s->cls},
        {KEY("mask_token_id"), s->mask},     {KEY("eot_token_id"), eot},        {KEY("eom_token_id"), eom}};
    weft_status status = WEFT_OK;
    for (size_t i = 0; !status && i < sizeof roles / sizeof *roles; i++)
        if (roles[i].id >= 0 && (size_t)roles[i].id < v->n)
            status = weft__gguf_put_u32(v->w, roles[i].key, (uint32_t)roles[i].id, v->err);
    return status;
}

/* Which tokens go around a text. tokenizer.json says it by id; GGUF only that BOS and EOS do. */
static weft_status put_surroundings(const vocab_put_writing *v)
{
    const weft__tok_spec *s = v->spec;
    int bos = s->add_bos >= 0 ? s->add_bos : !s->explicit_steps && s->bos >= 0, eos = s->add_eos == 1;
    weft_status status = weft__gguf_put_bool(v->w, KEY("add_bos_token"), bos && s->bos >= 0, v->err);
    return status ? status : weft__gguf_put_bool(v->w, KEY("add_eos_token"), eos && s->eos >= 0, v->err);
}

/* ---- templates ---- */

/* tokenizer.chat_template.NAME, of letters and digits, and the list of the names. */
static weft_status put_named(vocab_put_writing *v)
{
    const weft__tok_spec *s = v->spec;
    weft_status status = WEFT_OK;
    size_t n = 0;
    weft__gguf_str *names = weft__alloc_array(s->n_templates + 1, sizeof *names);
    if (!names) return vocab_put_no_memory(v);
    for (size_t i = 0; !status && i < s->n_templates; i++) {
        const weft__tok_template *t = &s->templates[i];
        weft__strbuf key = {0};
        weft__strbuf_puts(&key, "tokenizer.chat_template.");
        const size_t head = key.len;
        for (size_t k = 0; k < t->name.len && k < 64; k++) {
            const char c = t->name.data[k];
            const int plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
            weft__strbuf_putc(&key, plain ? c : '_');
        }
        char *name = key.failed ? NULL : weft__arena_string(&v->arena, key.data + head, key.len - head);
        status =
            name ? weft__gguf_put_string(v->w, key.data, t->text.data, t->text.len, v->err) : vocab_put_no_memory(v);
        if (name) names[n++] = (weft__gguf_str){name, key.len - head};
        weft__strbuf_free(&key);
    }
    if (!status && n) status = weft__gguf_put_strings(v->w, "tokenizer.chat_templates", names, n, v->err);
    weft__free(names);
    return status;
}

static weft_status put_templates(vocab_put_writing *v)
{
    const weft__tok_spec *s = v->spec;
    weft_status status = s->n_templates ? put_named(v) : WEFT_OK;
    if (status || !s->chat_template.len) return status;
    return put_string(v, "tokenizer.chat_template", s->chat_template);
}

static weft_status put_word_piece(const vocab_put_writing *v)
{
    weft_status status = put_string(v, KEY("model"), WEFT__TOK_SLICE("bert"));
    return status ? status : put_string(v, KEY("pre"), WEFT__TOK_SLICE("default"));
}

weft_status weft__vocab_put_usual(const weft__tok_spec *spec, const char *pre, weft__gguf_writer *w, weft_error *err)
{
    vocab_put_writing v = {.spec = spec, .n = spec->n_tokens, .w = w, .err = err};
    const int byte_level = is(spec->model, "gpt2") && spec->byte_level;
    weft_status status = is(spec->model, "bert") ? put_word_piece(&v)
                         : byte_level            ? put_byte_level(&v, pre)
                                                 : put_sentencepiece(&v);
    if (!status) status = put_tokens(&v, byte_level);
    if (!status) status = put_roles(&v);
    if (!status) status = put_surroundings(&v);
    if (!status) status = put_templates(&v);
    weft__arena_free(&v.arena);
    return status;
}
