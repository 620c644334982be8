// SPDX-License-Identifier: Apache-2.0
/* tokenizer.c: weft.h's tokenizer and detokenizer over those of room text. Tokenizers are immutable; a detokenizer
 * belongs to one thread. */
#include <string.h>

#include "base/alloc.h"
#include "engine/handles.h"
#include "model/vocab.h"

struct weft_detok {
    weft__tok_detok state;
    weft__strbuf text; /* what the last call handed out */
};

weft_status weft_tokenizer_open(const weft_file *file, weft_tokenizer **out, weft_error *err)
{
    *out = NULL;
    weft_tokenizer *t = weft__alloc_zero(1, sizeof *t);
    if (!t) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a tokenizer");
    weft_status st =
        file->hf ? weft__hf_tokenizer(file->hf, &t->t, err) : weft__vocab_tokenizer(file->gguf, &t->t, err);
    if (st) {
        weft__free(t);
        return file->hf ? st : weft_fail_within(err, st, "%s", file->path);
    }
    *out = t;
    return WEFT_OK;
}

void weft_tokenizer_close(weft_tokenizer **p)
{
    weft_tokenizer *t = p ? *p : NULL;
    if (!t) return;
    weft__gram_trie *trie = atomic_load(&t->trie);
    weft__gram_trie_release(&trie);
    weft__tok_destroy(&t->t);
    weft__free(t);
    *p = NULL;
}

int32_t weft_tokenizer_n_vocab(const weft_tokenizer *t)
{
    return weft__tok_n(t->t);
}

weft_status weft_tokenize(const weft_tokenizer *t, const char *text, size_t length, uint32_t flags, int32_t *ids,
                          size_t capacity, size_t *n, weft_error *err)
{
    weft__tok_ids all = {0};
    unsigned encode = (flags & WEFT_TOKENIZE_BOS ? WEFT__TOK_ENCODE_SPECIAL : 0) |
                      (flags & WEFT_TOKENIZE_SPECIAL ? WEFT__TOK_ENCODE_PARSE : 0);
    *n = 0;
    weft_status st = weft__tok_encode(t->t, text, length, encode, &all, err);
    if (!st) {
        *n = all.n;
        size_t stored = all.n < capacity ? all.n : capacity;
        if (stored) memcpy(ids, all.data, stored * sizeof *ids);
        if (all.n > capacity) st = weft_fail(err, WEFT_LIMIT, "%zu tokens do not fit in %zu places", all.n, capacity);
    }
    weft__tok_ids_free(&all);
    return st;
}

const char *weft_token_piece(const weft_tokenizer *t, int32_t id, size_t *length)
{
    weft__tok_slice s = weft__tok_text(t->t, id);
    *length = s.len;
    return s.data;
}

const char *weft_token_bytes(const weft_tokenizer *t, int32_t id, size_t *length)
{
    weft__tok_slice s = weft__tok_piece_of(t->t, id);
    *length = s.len;
    return s.data;
}

int32_t weft_tokenizer_nameless(const weft_tokenizer *t, int32_t n_vocab, int32_t *ids, int32_t capacity)
{
    int32_t n = 0;
    for (int32_t id = 0; id < n_vocab; id++) {
        if (weft__tok_is_named(t->t, id)) continue;
        if (n < capacity) ids[n] = id;
        n++;
    }
    return n;
}

int weft_token_is_end(const weft_tokenizer *t, int32_t id)
{
    return weft__tok_is_end(t->t, id);
}

weft_status weft_detok_new(const weft_tokenizer *t, uint32_t flags, weft_detok **out, weft_error *err)
{
    *out = NULL;
    weft_detok *d = weft__alloc_zero(1, sizeof *d);
    if (!d) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a detokenizer");
    weft__tok_detok_init(&d->state, t->t,
                         (flags & WEFT_DETOK_SPECIAL ? WEFT__TOK_DECODE_SPECIAL : 0) |
                             (flags & WEFT_DETOK_CONTINUE ? WEFT__TOK_DECODE_CONTINUE : 0));
    *out = d;
    return WEFT_OK;
}

void weft_detok_free(weft_detok **p)
{
    weft_detok *d = p ? *p : NULL;
    if (!d) return;
    weft__strbuf_free(&d->text);
    weft__free(d);
    *p = NULL;
}

static void hand_out(weft_detok *d, const char **text, size_t *length)
{
    *text = d->text.data ? d->text.data : "";
    *length = d->text.len;
}

weft_status weft_detok_push(weft_detok *d, int32_t id, const char **text, size_t *length, weft_error *err)
{
    d->text.len = 0;
    weft_status st = weft__tok_detok_push(&d->state, id, &d->text, err);
    hand_out(d, text, length);
    return st;
}

weft_status weft_detok_finish(weft_detok *d, const char **text, size_t *length, weft_error *err)
{
    d->text.len = 0;
    weft_status st = weft__tok_detok_finish(&d->state, &d->text, err);
    hand_out(d, text, length);
    return st;
}
