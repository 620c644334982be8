// SPDX-License-Identifier: Apache-2.0
/* base.c: see base.h. */
#include "train/base.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "format/gguf_write.h"
#include "model/hparams.h"
#include "model/vocab.h"
#include "weft/weft.h"

enum { PATH = 4096 };

static weft_status open_folder(weft__train_base *b, const char *path, weft_error *err)
{
    weft_status st = weft__hf_open(path, &b->hf, err);
    if (!st) st = weft__hf_load(b->hf, NULL, NULL, err);
    return st ? st : weft__hf_tokenizer(b->hf, &b->tok, err);
}

static weft_status open_file(weft__train_base *b, const char *name, int folders, weft_error *err)
{
    char path[PATH];
    weft_status st = weft_resolve_model(name, path, sizeof path, err);
    if (st) return st;
    if (weft__hf_is_folder(path) && folders) return open_folder(b, path, err);
    if (weft__hf_is_folder(path))
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "%s is a folder, over which adapters are trained; 'weft convert' makes a file of it, and the "
                         "training of all weights "
                         "starts from that",
                         name);
    if ((st = weft__gguf_open(path, &b->gguf, err))) return st;
    st = weft__vocab_tokenizer(b->gguf, &b->tok, err);
    return st ? weft_fail_within(err, st, "%s", name) : WEFT_OK;
}

static weft_status put_words(weft__gguf_writer *w, const char *key, const char *text, weft_error *err)
{
    return text ? weft__gguf_put_string(w, key, text, strlen(text), err) : WEFT_OK;
}

/* The keys of the file that begin with `prefix` as metadata of their own, with other words where there are some. */
static weft_status take_meta(weft__train_base *b, const char *prefix, const weft__train_base_overrides *words,
                             weft_error *err)
{
    static const char name[] = "general.name", chat_template[] = "tokenizer.chat_template";
    weft__gguf_writer *w = NULL;
    weft_status st = weft__gguf_writer_memory("metadata", &w, err);
    for (size_t i = 0; !st && i < weft__gguf_n_meta(b->gguf); i++) {
        const weft__gguf_entry *e = weft__gguf_meta(b->gguf, i);
        if ((words->name && !strcmp(e->key, name)) || (words->chat_template && !strcmp(e->key, chat_template)))
            continue;
        if (!strcmp(e->key, "general.alignment")) continue; /* the writer's own */
        if (!strncmp(e->key, prefix, strlen(prefix)))
            st = weft__gguf_put_raw(w, e->key, e->type, e->raw, (size_t)e->raw_bytes, err);
    }
    if (!st) st = put_words(w, name, words->name, err);
    if (!st) st = put_words(w, chat_template, words->chat_template, err);
    if (!st) st = weft__gguf_writer_bytes(w, &b->bytes, err);
    weft__gguf_writer_destroy(&w);
    return st ? st : weft__gguf_parse(b->bytes.data, b->bytes.len, "metadata", &b->meta, err);
}

weft_status weft__train_base_open(weft__train_base *b, const char *path, int folders,
                                  const weft__train_base_overrides *words, weft_error *err)
{
    weft_status st = open_file(b, path, folders, err);
    if (!st && b->hf) {
        weft__hf_source(b->hf, &b->source);
        return WEFT_OK;
    }
    if (!st && (words->name || words->chat_template)) st = take_meta(b, "", words, err);
    if (!st) weft__source_gguf(b->gguf, path, &b->source);
    return st;
}

weft_status weft__train_base_scratch(weft__train_base *b, const weft__train_scratch_shape *shape,
                                     const char *vocabulary, const weft__train_base_overrides *words, weft_error *err)
{
    weft__train_scratch_shape s = *shape;
    const weft__train_base_overrides own = {NULL, words->chat_template};
    weft_status st = open_file(b, vocabulary, 0, err);
    if (!st) st = take_meta(b, "tokenizer.", &own, err);
    if (st) return st;
    s.n_vocab = weft__tok_n(b->tok);
    if ((st = weft__train_scratch_create(&s, b->meta, &b->fresh, err))) return st;
    weft__train_scratch_source(b->fresh, &b->source);
    return WEFT_OK;
}

weft_status weft__train_base_context(const weft__train_base *b, int32_t asked, int32_t *n_ctx, weft_error *err)
{
    char arch[64];
    int32_t own = INT32_MAX;
    weft_status st = weft__source_is_model(&b->source, err);
    if (!st) st = weft__source_string(&b->source, NULL, "general.architecture", 1, arch, sizeof arch, err);
    if (!st) st = weft__source_i32(&b->source, arch, ".context_length", 0, 1, INT32_MAX, &own, err);
    if (st) return st;
    *n_ctx = asked ? asked : own < WEFT__TRAIN_USUAL_CTX ? own : WEFT__TRAIN_USUAL_CTX;
    if (*n_ctx <= own) return WEFT_OK;
    weft__hparams hp; /* whose reach is that of the file's rope scaling, as sessions have it */
    if ((st = weft__hparams_read(&b->source, arch, asked, &hp, err))) return st;
    if (asked <= hp.n_ctx_max) return WEFT_OK;
    if (hp.n_ctx_max > own)
        return weft_fail(err, WEFT_ARGUMENT,
                         "texts of %d tokens: the rope scaling of %s reaches %d; choose that or fewer", asked,
                         b->source.label, hp.n_ctx_max);
    return weft_fail(err, WEFT_ARGUMENT,
                     "texts of %d tokens: %s was made for %d (%s.context_length); choose that or fewer", asked,
                     b->source.label, own, arch);
}

const weft__gguf *weft__train_base_meta(const weft__train_base *b)
{
    if (b->hf) return weft__hf_meta(b->hf);
    return b->fresh ? weft__train_scratch_meta(b->fresh) : b->meta ? b->meta : b->gguf;
}

static void add_tensor(weft__hash_state *h, const weft__tensor_desc *t)
{
    const uint64_t shape[] = {t->dtype, t->n_dims, t->d[0], t->d[1], t->d[2], t->d[3]};
    weft__hash_add(h, t->name, strlen(t->name) + 1);
    weft__hash_add(h, shape, sizeof shape);
    weft__hash_add(h, weft__tensor_data(t), (size_t)t->n_bytes);
}

uint64_t weft__train_base_hash(const weft__train_base *b)
{
    const weft__gguf *meta = weft__train_base_meta(b);
    weft__hash_state h;
    weft__hash_begin(&h);
    for (size_t i = 0; i < weft__gguf_n_meta(meta); i++) {
        const weft__gguf_entry *e = weft__gguf_meta(meta, i);
        if (!strncmp(e->key, "general.", 8) || !strncmp(e->key, "tokenizer.", 10))
            continue; /* the data's hash sees the vocabulary */
        weft__hash_add(&h, e->key, strlen(e->key) + 1);
        weft__hash_add(&h, e->raw, (size_t)e->raw_bytes);
    }
    for (size_t i = 0; i < b->source.tensors->n; i++) add_tensor(&h, &b->source.tensors->items[i]);
    return weft__hash_end(&h);
}

void weft__train_base_close(weft__train_base *b)
{
    weft__train_scratch_destroy(&b->fresh);
    weft__gguf_close(&b->meta);
    weft__strbuf_free(&b->bytes);
    weft__tok_destroy(&b->tok);
    weft__gguf_close(&b->gguf);
    weft__hf_close(&b->hf);
}
