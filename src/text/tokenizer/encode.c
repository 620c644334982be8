// SPDX-License-Identifier: Apache-2.0
/* encode.c: one text to ids: special tokens are cut out first (special.c), each fragment between them is normalized,
 * cut into pieces and given to the model; pieces met before are answered from a small table. An encoding belongs to the
 * calling thread. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/parts.h"

#define MAX_TEXT ((size_t)1 << 30)

enum {
    SHORT_KEY = 38,    /* bytes of most pieces */
    MAX_KEY = 102,     /* and of those worth remembering */
    MAX_IDS = MAX_KEY, /* and ids: no more than bytes, where the model has no odd ways */
    IDS_HERE = 4,      /* ids that an entry holds itself */
    LONG_PART = 8,     /* for so many entries with a short key there is one with a long one */
    AHEAD = 8          /* pieces between asking for an entry and reading it */
};

/* A piece met before. Its line of the cache is asked for some pieces ahead: entries are too many for the nearer levels.
 * A table has n_recent entries for short keys, which take a line each, and behind them n_recent / LONG_PART of two
 * lines. */
typedef struct weft__tok_recent {
    uint64_t hash;
    union {
        int32_t ids[IDS_HERE];
        size_t at; /* of more: in the output */
    };
    uint8_t n_ids, key_len; /* key_len 0: empty */
    char key[SHORT_KEY];    /* a long one goes on in the second line */
} weft__tok_recent;
_Static_assert(sizeof(weft__tok_recent) == 64, "a line of the cache");
_Static_assert(offsetof(weft__tok_recent, key) + MAX_KEY == 2 * sizeof(weft__tok_recent), "two lines");

void weft__tok_ids_free(weft__tok_ids *ids)
{
    weft__free(ids->data);
    memset(ids, 0, sizeof *ids);
}

int weft__tok_encoding_fail(weft__tok_encoding *e, weft_status status, const char *format, ...)
{
    char message[256];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    e->status = weft_fail(e->err, status, "%s", message);
    return 0;
}

int weft__tok_encoding_no_memory(weft__tok_encoding *e)
{
    return weft__tok_encoding_fail(e, WEFT_NO_MEMORY, "tokenizer: out of memory");
}

int weft__tok_encoding_put(weft__tok_encoding *e, int32_t id)
{
    weft__tok_ids *out = e->out;
    if (out->n == out->capacity && !weft__grow(&out->data, &out->capacity, out->n + 1, sizeof *out->data)) {
        return weft__tok_encoding_no_memory(e);
    }
    out->data[out->n++] = id;
    return 1;
}

int weft__tok_encoding_put_unknown(weft__tok_encoding *e, const char *s, size_t n, size_t since)
{
    const weft__tok *tok = e->tok;
    int all = tok->byte_fallback;
    for (size_t i = 0; i < n && all; i++) all = tok->byte_id[(unsigned char)s[i]] >= 0;
    if (all) {
        for (size_t i = 0; i < n; i++) {
            if (!weft__tok_encoding_put(e, tok->byte_id[(unsigned char)s[i]])) return 0;
        }
        return 1;
    }
    int32_t unk = tok->role[WEFT__TOK_ROLE_UNK];
    if (unk < 0) {
        char quote[WEFT__TOK_QUOTE];
        return weft__tok_encoding_fail(e, WEFT_UNSUPPORTED,
                                       "tokenizer: the vocabulary can spell neither '%s' (first byte 0x%02X) nor "
                                       "has it an unknown token",
                                       weft__tok_quote(quote, s, n), (unsigned char)*s);
    }
    if (tok->fuse_unk && e->out->n > since && e->out->data[e->out->n - 1] == unk) return 1;
    return weft__tok_encoding_put(e, unk);
}

/* ---- pieces ---- */

static int run_model(weft__tok_encoding *e, const char *s, size_t n)
{
    switch (e->tok->model) {
    case WEFT__TOK_MODEL_SPM: return weft__tok_spm_encode(e, s, n);
    case WEFT__TOK_MODEL_BPE: return weft__tok_bpe_encode(e, s, n);
    case WEFT__TOK_MODEL_WPM: return weft__tok_wpm_encode(e, s, n);
    default: return weft__tok_unigram_encode(e, s, n);
    }
}

/* Appends the ids that the same piece gave before. */
static int repeat(weft__tok_encoding *e, const weft__tok_recent *seen)
{
    weft__tok_ids *out = e->out;
    if (!weft__grow(&out->data, &out->capacity, out->n + MAX_IDS, sizeof *out->data))
        return weft__tok_encoding_no_memory(e);
    if (seen->n_ids <= IDS_HERE) {
        memcpy(out->data + out->n, seen->ids, sizeof seen->ids);
    } else {
        memcpy(out->data + out->n, out->data + seen->at, seen->n_ids * sizeof *out->data);
    }
    out->n += seen->n_ids;
    return 1;
}

static int remembered(const weft__tok_encoding *e, size_t n)
{
    return n <= MAX_KEY && e->n_recent;
}

static weft__tok_recent *entry_of(const weft__tok_encoding *e, size_t n, uint64_t hash)
{
    return n <= SHORT_KEY ? &e->recent[hash & (e->n_recent - 1)]
                          : &e->recent[e->n_recent + 2 * (hash & (e->n_recent / LONG_PART - 1))];
}

/* The piece's hash, when it is of use; its entry is asked for. */
static uint64_t announce(const weft__tok_encoding *e, weft__tok_piece piece)
{
    if (!remembered(e, piece.len)) return 0;
    uint64_t hash = weft__strings_hash(e->work.data + piece.offset, piece.len, e->tok->texts.secret);
    __builtin_prefetch(entry_of(e, piece.len, hash), 1);
    return hash;
}

/* hash: of announce. */
static int encode_piece(weft__tok_encoding *e, const char *s, size_t n, uint64_t hash)
{
    if (!remembered(e, n)) return run_model(e, s, n);
    weft__tok_recent *seen = entry_of(e, n, hash);
    char *key = (char *)seen + offsetof(weft__tok_recent, key);
    if (seen->key_len == n && seen->hash == hash && !memcmp(key, s, n)) return repeat(e, seen);
    size_t at = e->out->n;
    if (!run_model(e, s, n)) return 0;
    size_t n_ids = e->out->n - at;
    if (n_ids > MAX_IDS) return 1;
    seen->hash = hash;
    seen->key_len = (uint8_t)n;
    seen->n_ids = (uint8_t)n_ids;
    memcpy(key, s, n);
    if (n_ids <= IDS_HERE) {
        memcpy(seen->ids, e->out->data + at, n_ids * sizeof *seen->ids);
    } else {
        seen->at = at;
    }
    return 1;
}

int weft__tok_encoding_cut(weft__tok_encoding *e, const char *s, size_t n)
{
    e->work.len = 0;
    weft__strbuf_put(&e->work, s, n);
    if (e->work.failed) return weft__tok_encoding_no_memory(e);
    return weft__tok_normalize(e) && weft__tok_pretokenize(e);
}

int weft__tok_encoding_work(weft__tok_encoding *e)
{
    if (!weft__tok_pretokenize(e)) return 0;
    uint64_t hashes[AHEAD] = {0};
    for (size_t i = 0; i < e->pieces.n + AHEAD; i++) {
        if (i >= AHEAD) {
            weft__tok_piece piece = e->pieces.items[i - AHEAD];
            if (piece.len && !encode_piece(e, e->work.data + piece.offset, piece.len, hashes[i % AHEAD])) return 0;
        }
        if (i < e->pieces.n) hashes[i % AHEAD] = announce(e, e->pieces.items[i]);
    }
    return 1;
}

/* ---- one call ---- */

/* The table of recent pieces, in proportion to the text. */
static int encode_prepare(weft__tok_encoding *e, size_t n)
{
    if (n < 256) return 1;
    size_t slots = 64;
    while (slots < 8192 && slots * 16 < n) slots *= 2;
    const size_t lines = slots + 2 * (slots / LONG_PART);
    e->recent = weft__alloc_aligned(sizeof *e->recent, lines * sizeof *e->recent);
    if (!e->recent) return weft__tok_encoding_no_memory(e);
    for (size_t i = 0; i < lines; i++) e->recent[i].key_len = 0;
    e->n_recent = slots;
    return 1;
}

void weft__tok_encoding_release(weft__tok_encoding *e)
{
    weft__free(e->best);
    weft__free(e->path);
    weft__strbuf_free(&e->scratch);
    weft__free(e->recent);
    weft__regex_scratch_free(&e->regex);
    weft__tok_merger_free(&e->merger);
    weft__free(e->cut.items);
    weft__free(e->pieces.items);
    weft__strbuf_free(&e->other);
    weft__strbuf_free(&e->work);
    weft__strbuf_free(&e->whole);
}

static weft_status check_spans(const weft__tok_span *spans, size_t n_spans, size_t n, weft_error *err)
{
    size_t at = 0;
    for (size_t i = 0; i < n_spans; i++) {
        if (spans[i].offset < at || spans[i].offset > n || spans[i].len > n - spans[i].offset) {
            return weft_fail(err, WEFT_ARGUMENT, "tokenizer: span %zu is out of order or out of the text", i);
        }
        at = spans[i].offset + spans[i].len;
    }
    return WEFT_OK;
}

weft_status weft__tok_encode_spans(const weft__tok *tok, const char *text, size_t n, const weft__tok_span *spans,
                                   size_t n_spans, unsigned flags, weft__tok_ids *out, weft_error *err)
{
    if (n > MAX_TEXT) return weft_fail(err, WEFT_LIMIT, "tokenizer: %zu bytes of text are more than %zu", n, MAX_TEXT);
    weft_status status = check_spans(spans, n_spans, n, err);
    if (status) return status;
    weft__tok_encoding e = {.tok = tok, .out = out, .err = err};
    size_t before = out->n;
    int special = flags & WEFT__TOK_ENCODE_SPECIAL;
    int ok = encode_prepare(&e, n);
    if (ok && special && tok->add_bos) ok = weft__tok_encoding_put(&e, tok->first);
    if (ok) ok = weft__tok_encode_text(&e, text, n, spans, n_spans);
    if (ok && special && tok->add_eos) ok = weft__tok_encoding_put(&e, tok->last);
    if (!ok) out->n = before;
    weft__tok_encoding_release(&e);
    return ok ? WEFT_OK : e.status;
}

weft_status weft__tok_encode(const weft__tok *tok, const char *text, size_t n, unsigned flags, weft__tok_ids *out,
                             weft_error *err)
{
    weft__tok_span all = {0, n};
    return weft__tok_encode_spans(tok, text, n, &all, flags & WEFT__TOK_ENCODE_PARSE ? 1 : 0, flags, out, err);
}
