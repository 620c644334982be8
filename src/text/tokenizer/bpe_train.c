// SPDX-License-Identifier: Apache-2.0
/* bpe_train.c: see bpe_train.h. Texts become words with counts here; bpe_merges.c learns from them. A training owns all
 * it holds. */
#include "text/tokenizer/bpe_train.h"

#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/bpe_merges.h"
#include "text/tokenizer/parts.h"

#define CHUNK ((size_t)1 << 20) /* bytes of text that are cut at a time, at a line's end where there is one */
#define WORD_MAX 256            /* bytes; what is longer (a drawn line, a blob) is counted in parts */
#define WORDS_MAX ((size_t)1 << 30)

struct weft__tok_bpe_training {
    weft__tok *cutter; /* specials and bytes, with the pre-tokenizer: its steps cut the texts */
    char *pre;
    weft__strings taken; /* texts of the specials */
    int32_t *types;      /* [n_specials], later [n_tokens] */
    size_t n_specials, n_vocab;
    uint64_t min_count;
    weft__strings words;
    uint64_t *counts; /* [words.n] */
    size_t counts_capacity;
    weft__tok_bpe_learnt learnt;
    weft__tok_spec spec;
    weft__tok_slice *tokens;
    weft__tok_merge_pair *merges;
};

static weft_status bpe_train_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory to learn a vocabulary");
}

/* ---- options ---- */

static weft_status check_options(const weft__tok_bpe_options *o, weft_error *err)
{
    if (o->n_vocab > WEFT__TOK_BPE_VOCAB_MAX || o->n_vocab < o->n_specials + 257)
        return weft_fail(
            err, WEFT_ARGUMENT,
            "a vocabulary of %zu tokens: %zu special ones and 256 bytes leave room for merges from %zu on, up to %u",
            o->n_vocab, o->n_specials, o->n_specials + 257, WEFT__TOK_BPE_VOCAB_MAX);
    if (o->min_count < 1) return weft_fail(err, WEFT_ARGUMENT, "a pair must occur at least once to be a token");
    for (size_t i = 0; i < o->n_specials; i++) {
        const weft__tok_bpe_special *s = &o->specials[i];
        char quote[WEFT__TOK_QUOTE];
        if (s->text.len < 2 || s->text.len > WEFT__TOK_SPECIAL_MAX_BYTES ||
            !weft__utf8_valid(s->text.data, s->text.len))
            return weft_fail(err, WEFT_ARGUMENT, "the special token '%s' must be 2 to %d bytes of UTF-8",
                             weft__tok_quote(quote, s->text.data, s->text.len), WEFT__TOK_SPECIAL_MAX_BYTES);
        if (s->type != WEFT__TOK_CONTROL && s->type != WEFT__TOK_USER_DEFINED)
            return weft_fail(err, WEFT_ARGUMENT, "the special token '%s' is neither a control nor a user-defined one",
                             weft__tok_quote(quote, s->text.data, s->text.len));
    }
    return WEFT_OK;
}

static weft_status take_specials(weft__tok_bpe_training *t, const weft__tok_bpe_options *o, weft_error *err)
{
    t->types = weft__alloc_array(o->n_specials + 256, sizeof *t->types);
    if (!t->types) return bpe_train_no_memory(err);
    for (size_t i = 0; i < o->n_specials; i++) {
        char quote[WEFT__TOK_QUOTE];
        weft__tok_slice text = o->specials[i].text;
        if (weft__strings_find(&t->taken, text.data, text.len) >= 0)
            return weft_fail(err, WEFT_ARGUMENT, "the special token '%s' is named twice",
                             weft__tok_quote(quote, text.data, text.len));
        if (!weft__strings_add(&t->taken, text.data, text.len, 1)) return bpe_train_no_memory(err);
        t->types[i] = o->specials[i].type;
    }
    for (size_t i = 0; i < 256; i++) t->types[o->n_specials + i] = WEFT__TOK_NORMAL;
    return WEFT_OK;
}

/* A tokenizer of specials and bytes. It is never asked to encode, so its one merge, without which BPE is refused, means
 * nothing. */
static weft_status make_cutter(weft__tok_bpe_training *t, weft_error *err)
{
    char bytes[256][4];
    size_t n = t->n_specials + 256;
    weft__tok_slice *tokens = weft__alloc_array(n, sizeof *tokens);
    if (!tokens) return bpe_train_no_memory(err);
    for (size_t i = 0; i < t->n_specials; i++)
        tokens[i] = (weft__tok_slice){weft__strings_data(&t->taken, i), weft__strings_len(&t->taken, i)};
    for (size_t b = 0; b < 256; b++)
        tokens[t->n_specials + b] =
            (weft__tok_slice){bytes[b], weft__utf8_encode(weft__tok_byte_alphabet((unsigned char)b), bytes[b])};
    const weft__tok_merge_pair merge = {WEFT__TOK_SLICE("a"), WEFT__TOK_SLICE("b")};
    weft__tok_spec spec;
    weft__tok_spec_init(&spec);
    spec.model = WEFT__TOK_SLICE("gpt2");
    spec.pre = (weft__tok_slice){t->pre, strlen(t->pre)};
    spec.tokens = tokens;
    spec.types = t->types;
    spec.n_tokens = spec.n_types = n;
    spec.merges = &merge;
    spec.n_merges = 1;
    weft_status st = weft__tok_create(&spec, &t->cutter, err);
    weft__free(tokens);
    return st;
}

weft_status weft__tok_bpe_train_begin(const weft__tok_bpe_options *o, weft__tok_bpe_training **out, weft_error *err)
{
    *out = NULL;
    weft_status st = check_options(o, err);
    if (st) return st;
    weft__tok_bpe_training *t = weft__alloc_zero(1, sizeof *t);
    if (!t) return bpe_train_no_memory(err);
    t->n_specials = o->n_specials;
    t->n_vocab = o->n_vocab;
    t->min_count = o->min_count;
    t->pre = weft__strndup(o->pre.data ? o->pre.data : "", o->pre.len);
    st = t->pre ? take_specials(t, o, err) : bpe_train_no_memory(err);
    if (!st) st = make_cutter(t, err);
    if (st) weft__tok_bpe_train_end(&t);
    *out = t;
    return st;
}

/* ---- counting ---- */

static int count_word(weft__tok_bpe_training *t, const char *s, size_t n)
{
    int32_t w = weft__strings_find(&t->words, s, n);
    if (w < 0) {
        if (t->words.n >= WORDS_MAX ||
            !weft__grow(&t->counts, &t->counts_capacity, t->words.n + 1, sizeof *t->counts) ||
            !weft__strings_add(&t->words, s, n, 1))
            return 0;
        w = (int32_t)t->words.n - 1;
        t->counts[w] = 0;
    }
    t->counts[w]++;
    return 1;
}

static int count_fragment(weft__tok_bpe_training *t, weft__tok_encoding *e, const char *s, size_t n)
{
    if (!weft__tok_encoding_cut(e, s, n)) return 0;
    for (size_t i = 0; i < e->pieces.n; i++) {
        weft__tok_piece piece = e->pieces.items[i];
        for (size_t at = 0, len; at < piece.len; at += len) {
            len = piece.len - at < WORD_MAX ? piece.len - at : WORD_MAX;
            if (!count_word(t, e->work.data + piece.offset + at, len)) return weft__tok_encoding_no_memory(e);
        }
    }
    return 1;
}

/* Where the chunk that begins at s ends: behind the last line's end within CHUNK bytes, if there is one. */
static size_t chunk_of(const char *s, size_t n)
{
    if (n <= CHUNK) return n;
    const char *line = memrchr(s, '\n', CHUNK);
    return line ? (size_t)(line - s) + 1 : CHUNK;
}

/* s[0..n) holds no special token. */
static int count_stretch(weft__tok_bpe_training *t, weft__tok_encoding *e, const char *s, size_t n)
{
    for (size_t at = 0, len; at < n; at += len) {
        len = chunk_of(s + at, n - at);
        if (!count_fragment(t, e, s + at, len)) return 0;
    }
    return 1;
}

static int count_text(weft__tok_bpe_training *t, weft__tok_encoding *e, const char *s, size_t n)
{
    size_t begin = 0;
    for (size_t i = 0; i < n;) {
        size_t control = 0, user = 0;
        if (weft__tok_prefix_longest(&t->cutter->control, s + i, n - i, &control) < 0) control = 0;
        if (weft__tok_prefix_longest(&t->cutter->user, s + i, n - i, &user) < 0) user = 0;
        size_t len = control > user ? control : user;
        if (!len) {
            i++;
            continue;
        }
        if (!count_stretch(t, e, s + begin, i - begin)) return 0;
        begin = i += len;
    }
    return count_stretch(t, e, s + begin, n - begin);
}

weft_status weft__tok_bpe_train_add(weft__tok_bpe_training *t, const char *text, size_t n, weft_error *err)
{
    weft__tok_encoding e = {.tok = t->cutter, .err = err};
    count_text(t, &e, text, n);
    weft__regex_scratch_free(&e.regex);
    weft__free(e.cut.items);
    weft__free(e.pieces.items);
    weft__strbuf_free(&e.other);
    weft__strbuf_free(&e.work);
    return e.status;
}

/* ---- the result ---- */

static weft__tok_slice symbol_text(const weft__tok_bpe_training *t, uint32_t symbol)
{
    return (weft__tok_slice){weft__strings_data(&t->learnt.texts, symbol), weft__strings_len(&t->learnt.texts, symbol)};
}

static weft_status make_spec(weft__tok_bpe_training *t, weft_error *err)
{
    size_t n = t->n_specials + t->learnt.texts.n;
    int32_t *types = weft__realloc_array(t->types, n, sizeof *types);
    if (!types) return bpe_train_no_memory(err);
    t->types = types;
    t->tokens = weft__alloc_array(n, sizeof *t->tokens);
    t->merges = weft__alloc_array(t->learnt.n_merges, sizeof *t->merges);
    if (!t->tokens || !t->merges) return bpe_train_no_memory(err);
    for (size_t i = 0; i < t->n_specials; i++)
        t->tokens[i] = (weft__tok_slice){weft__strings_data(&t->taken, i), weft__strings_len(&t->taken, i)};
    for (size_t i = 0; i < t->learnt.texts.n; i++) {
        t->tokens[t->n_specials + i] = symbol_text(t, (uint32_t)i);
        t->types[t->n_specials + i] = WEFT__TOK_NORMAL;
    }
    for (size_t i = 0; i < t->learnt.n_merges; i++)
        t->merges[i] =
            (weft__tok_merge_pair){symbol_text(t, t->learnt.merges[i].left), symbol_text(t, t->learnt.merges[i].right)};
    weft__tok_spec *s = &t->spec;
    weft__tok_spec_init(s);
    s->model = WEFT__TOK_SLICE("gpt2");
    s->pre = (weft__tok_slice){t->pre, strlen(t->pre)};
    s->byte_level = 1;
    s->tokens = t->tokens;
    s->types = t->types;
    s->n_tokens = s->n_types = n;
    s->merges = t->merges;
    s->n_merges = t->learnt.n_merges;
    return WEFT_OK;
}

weft_status weft__tok_bpe_train_run(weft__tok_bpe_training *t, weft_progress_fn progress, void *arg, weft_error *err)
{
    if (t->learnt.texts.n) return weft_fail(err, WEFT_STATE, "this vocabulary has been learnt already");
    const weft__tok_bpe_lesson lesson = {.words = &t->words,
                                         .counts = t->counts,
                                         .taken = &t->taken,
                                         .n_symbols = t->n_vocab - t->n_specials,
                                         .min_count = t->min_count,
                                         .max_bytes = WEFT__TOK_BPE_TOKEN_BYTES,
                                         .progress = progress,
                                         .arg = arg};
    weft_status st = weft__tok_bpe_learn(&lesson, &t->learnt, err);
    if (!st && !t->learnt.n_merges)
        st = weft_fail(err, WEFT_ARGUMENT,
                       "the texts hold no pair of characters that occurs %llu times: nothing to learn from",
                       (unsigned long long)t->min_count);
    return st ? st : make_spec(t, err);
}

const weft__tok_spec *weft__tok_bpe_train_spec(const weft__tok_bpe_training *t)
{
    return &t->spec;
}

void weft__tok_bpe_train_end(weft__tok_bpe_training **p)
{
    weft__tok_bpe_training *t = p ? *p : NULL;
    if (!t) return;
    weft__free(t->merges);
    weft__free(t->tokens);
    weft__tok_bpe_learnt_free(&t->learnt);
    weft__free(t->counts);
    weft__strings_free(&t->words);
    weft__free(t->types);
    weft__strings_free(&t->taken);
    weft__free(t->pre);
    weft__tok_destroy(&t->cutter);
    weft__free(t);
    *p = NULL;
}
