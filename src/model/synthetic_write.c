// SPDX-License-Identifier: Apache-2.0
/* synthetic_write.c: a synthetic model as a GGUF file that any reader of the format accepts. Reentrant. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "format/gguf_write.h"
#include "model/synthetic.h"

enum {
    N_SPECIAL = 3, /* unknown, begin, end */
    N_BYTES = 256,
    TOKEN_TEXT = 16,
    /* tokenizer.ggml.token_type */
    TYPE_NORMAL = 1,
    TYPE_UNKNOWN = 2,
    TYPE_CONTROL = 3,
    TYPE_BYTE = 6
};

/* A SentencePiece vocabulary: the special tokens, the bytes, then numbered words. */
typedef struct vocabulary {
    char (*text)[TOKEN_TEXT];
    weft__gguf_str *tokens;
    float *scores;
    int32_t *types;
} vocabulary;

static void free_vocabulary(vocabulary *v)
{
    weft__free(v->types);
    weft__free(v->scores);
    weft__free(v->tokens);
    weft__free(v->text);
}

static weft_status make_vocabulary(vocabulary *v, int32_t n, weft_error *err)
{
    static const char *const special[N_SPECIAL] = {"<unk>", "<s>", "</s>"};
    *v = (vocabulary){weft__alloc_array((size_t)n, sizeof *v->text), weft__alloc_array((size_t)n, sizeof *v->tokens),
                      weft__alloc_array((size_t)n, sizeof *v->scores), weft__alloc_array((size_t)n, sizeof *v->types)};
    if (!v->text || !v->tokens || !v->scores || !v->types) {
        free_vocabulary(v);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a vocabulary of %d tokens", n);
    }
    for (int32_t i = 0; i < n; i++) {
        int is_special = i < N_SPECIAL, is_byte = !is_special && i < N_SPECIAL + N_BYTES;
        if (is_special) snprintf(v->text[i], TOKEN_TEXT, "%s", special[i]);
        else snprintf(v->text[i], TOKEN_TEXT, is_byte ? "<0x%02X>" : "w%d", is_byte ? i - N_SPECIAL : i);
        v->tokens[i] = (weft__gguf_str){v->text[i], strlen(v->text[i])};
        v->scores[i] = is_special || is_byte ? 0 : -(float)i;
        v->types[i] = i == 0 ? TYPE_UNKNOWN : is_special ? TYPE_CONTROL : is_byte ? TYPE_BYTE : TYPE_NORMAL;
    }
    return WEFT_OK;
}

static weft_status put_vocabulary(weft__gguf_writer *w, int32_t n, weft_error *err)
{
    vocabulary v;
    weft_status st = make_vocabulary(&v, n, err);
    if (st) return st;
    if (!(st = weft__gguf_put_string(w, "tokenizer.ggml.model", "llama", 5, err)) &&
        !(st = weft__gguf_put_strings(w, "tokenizer.ggml.tokens", v.tokens, (size_t)n, err)) &&
        !(st = weft__gguf_put_array(w, "tokenizer.ggml.scores", WEFT__GGUF_F32, v.scores, (size_t)n, err)) &&
        !(st = weft__gguf_put_array(w, "tokenizer.ggml.token_type", WEFT__GGUF_I32, v.types, (size_t)n, err)) &&
        !(st = weft__gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", 0, err)) &&
        !(st = weft__gguf_put_u32(w, "tokenizer.ggml.bos_token_id", 1, err)))
        st = weft__gguf_put_u32(w, "tokenizer.ggml.eos_token_id", 2, err);
    free_vocabulary(&v);
    return st;
}

static weft_status put_metadata(weft__gguf_writer *w, const weft__synthetic *s, weft_error *err)
{
    weft__source src;
    weft__source_value number;
    char key[64];
    const char *arch = weft__synthetic_arch(s);
    weft__synthetic_source(s, &src);
    weft_status st = weft__gguf_put_string(w, "general.architecture", arch, strlen(arch), err);
    if (!st) st = weft__gguf_put_string(w, "general.name", src.label, strlen(src.label), err);
    if (!st) st = weft__gguf_put_u32(w, "general.quantization_version", 2, err);
    for (size_t i = 0; !st && weft__synthetic_number(s, i, key, &number); i++)
        st = number.kind == WEFT__SOURCE_INT ? weft__gguf_put_u32(w, key, (uint32_t)number.i, err)
                                             : weft__gguf_put_f32(w, key, (float)number.f, err);
    return st ? st : put_vocabulary(w, weft__synthetic_n_vocab(s), err);
}

weft_status weft__synthetic_write(const weft__synthetic *s, const char *path, weft_progress_fn progress, void *arg,
                                  weft_error *err)
{
    weft__gguf_writer *w;
    const weft__tensor_set *set = weft__synthetic_tensors(s);
    weft_status st = weft__gguf_writer_create(path, 0, &w, err);
    if (st) return st;
    st = put_metadata(w, s, err);
    for (size_t i = 0; i < set->n && !st; i++)
        st = weft__gguf_declare(w, set->items[i].name, set->items[i].dtype, set->items[i].n_dims, set->items[i].d, err);
    if (!st) st = weft__gguf_begin(w, err);
    for (size_t i = 0; i < set->n && !st; i++) {
        st = weft__gguf_write(w, weft__tensor_data(&set->items[i]), (size_t)set->items[i].n_bytes, err);
        if (!st && progress && progress(arg, "writing", (double)(i + 1) / (double)set->n))
            st = weft_fail(err, WEFT_CANCELLED, "%s: cancelled while writing", path);
    }
    if (!st) st = weft__gguf_finish(w, err);
    weft__gguf_writer_destroy(&w);
    return st;
}
