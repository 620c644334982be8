/* base.c: see base.h. */
#include "train/base.h"

#include <string.h>

#include "base/alloc.h"
#include "format/gguf_write.h"
#include "model/hf.h"
#include "model/vocab.h"
#include "weft/weft.h"

enum { PATH = 4096 };

static weft_status open_file(weft__base *b, const char *name, weft_error *err)
{
    char path[PATH];
    weft_status st = weft_resolve_model(name, path, sizeof path, err);
    if (st) return st;
    if (weft__hf_is_folder(path))
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "%s is a folder; 'weft convert' makes a file of it, and training starts from that", name);
    if ((st = weft__gguf_open(path, &b->gguf, err))) return st;
    st = weft__vocab_tokenizer(b->gguf, &b->tok, err);
    return st ? weft_fail_within(err, st, "%s", name) : WEFT_OK;
}

weft_status weft__base_open(weft__base *b, const char *path, weft_error *err)
{
    weft_status st = open_file(b, path, err);
    if (!st) weft__source_gguf(b->gguf, path, &b->source);
    return st;
}

/* The keys tokenizer.* of the file as metadata of their own. */
static weft_status take_vocabulary(weft__base *b, weft_error *err)
{
    weft__gguf_writer *w = NULL;
    weft_status st = weft__gguf_writer_memory("vocabulary", &w, err);
    for (size_t i = 0; !st && i < weft__gguf_n_meta(b->gguf); i++) {
        const weft__gguf_entry *e = weft__gguf_meta(b->gguf, i);
        if (!strncmp(e->key, "tokenizer.", 10)) st = weft__gguf_put_raw(w, e->key, e->type, e->raw, (size_t)e->raw_bytes, err);
    }
    if (!st) st = weft__gguf_writer_bytes(w, &b->bytes, err);
    weft__gguf_writer_destroy(&w);
    return st ? st : weft__gguf_parse(b->bytes.data, b->bytes.len, "vocabulary", &b->vocab, err);
}

weft_status weft__base_fresh(weft__base *b, const weft__fresh_shape *shape, const char *vocabulary, weft_error *err)
{
    weft__fresh_shape s = *shape;
    weft_status st = open_file(b, vocabulary, err);
    if (!st) st = take_vocabulary(b, err);
    if (st) return st;
    s.n_vocab = weft__tokenizer_n(b->tok);
    if ((st = weft__fresh_create(&s, b->vocab, &b->fresh, err))) return st;
    weft__fresh_source(b->fresh, &b->source);
    return WEFT_OK;
}

const weft__gguf *weft__base_meta(const weft__base *b)
{
    return b->fresh ? weft__fresh_meta(b->fresh) : b->gguf;
}

void weft__base_close(weft__base *b)
{
    weft__fresh_destroy(&b->fresh);
    weft__gguf_close(&b->vocab);
    weft__text_free(&b->bytes);
    weft__tokenizer_destroy(&b->tok);
    weft__gguf_close(&b->gguf);
}
