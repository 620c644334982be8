// SPDX-License-Identifier: Apache-2.0
/* vocabulary.c: weft_train_tokenizer: text files to a GGUF file that holds a vocabulary (weft/train.h). Everything
 * lives for the call. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/params.h"
#include "format/gguf_write.h"
#include "format/out_file.h"
#include "mem/mem.h"
#include "model/vocab.h"
#include "text/tokenizer/bpe_train.h"
#include "text/chat/template.h"
#include "train/text_file.h"
#include "weft/train.h"

enum { BOS, EOS, PAD, BEGIN, END, N_OWN };
static const char *const OWN[N_OWN] = {"<|startoftext|>", "<|endoftext|>", "<|pad|>", "<|im_start|>", "<|im_end|>"};

void(weft_vocab_params_default)(weft_vocab_params *p)
{
    *p = (weft_vocab_params){.size = sizeof *p, .n_vocab = 2048, .min_count = 2, .pre = "qwen2"};
}

void weft_vocab_params_init(weft_vocab_params *params, uint32_t size)
{
    weft_vocab_params own;
    (weft_vocab_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_vocab_params), params, size, &own);
}

static size_t count_of(const char *const *list)
{
    size_t n = 0;
    while (list && list[n]) n++;
    return n;
}

static size_t put_names(weft__tok_bpe_special *to, const char *const *list, size_t n, weft__tok_type type)
{
    for (size_t i = 0; i < n; i++) to[i] = (weft__tok_bpe_special){{list[i], strlen(list[i])}, type};
    return n;
}

static weft_status vocabulary_begin(const weft_vocab_params *p, weft__tok_bpe_training **t, weft_error *err)
{
    size_t n_specials = count_of(p->specials), n_words = count_of(p->words), n = 0;
    weft__tok_bpe_special *all = weft__alloc_array(N_OWN + n_specials + n_words, sizeof *all);
    if (!all) return weft_fail(err, WEFT_NO_MEMORY, "no memory to learn a vocabulary");
    n += put_names(all, OWN, N_OWN, WEFT__TOK_CONTROL);
    n += put_names(all + n, p->specials, n_specials, WEFT__TOK_CONTROL);
    n += put_names(all + n, p->words, n_words, WEFT__TOK_USER_DEFINED);
    const weft__tok_bpe_options o = {{p->pre, strlen(p->pre)}, all, n, (size_t)p->n_vocab, (uint64_t)p->min_count};
    weft_status st = weft__tok_bpe_train_begin(&o, t, err);
    weft__free(all);
    return st;
}

static weft_status read_files(weft__tok_bpe_training *t, const char *const *files, int32_t n,
                              const weft_vocab_params *p, uint64_t *n_bytes, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; !st && i < n; i++) {
        weft_buffer *file = NULL;
        size_t skip = 0;
        st = weft__mem_map(files[i], &file, err);
        if (!st) st = weft__train_text_begin(file->data, (size_t)file->n_bytes, &skip, err);
        if (!st) st = weft__tok_bpe_train_add(t, (const char *)file->data + skip, (size_t)file->n_bytes - skip, err);
        if (!st) *n_bytes += file->n_bytes - skip;
        else weft_fail_within(err, st, "%s", files[i]);
        weft_buffer_release(&file);
        if (!st && p->progress && p->progress(p->progress_arg, "reading", (double)(i + 1) / n))
            st = weft_fail(err, WEFT_CANCELLED, "cancelled");
    }
    return st;
}

/* The tokenizer that the file will give must be one. */
static weft_status vocabulary_check(const weft__tok_spec *spec, weft_error *err)
{
    weft__tok *tok = NULL;
    weft__chat_template *tmpl = NULL;
    weft_status st = weft__tok_create(spec, &tok, err);
    if (!st && spec->chat_template.len)
        st = weft__chat_template_create(spec->chat_template.data, spec->chat_template.len, &tmpl, err);
    if (tmpl) weft__chat_template_destroy(&tmpl);
    weft__tok_destroy(&tok);
    return st;
}

static weft_status write_file(const weft__tok_spec *spec, const char *pre, const char *path, weft_error *err)
{
    weft__gguf_writer *w = NULL;
    weft_status st = weft__gguf_writer_create(path, 0, &w, err);
    if (!st) st = weft__gguf_put_string(w, "general.type", "vocabulary", 10, err);
    if (!st) st = weft__vocab_put(spec, spec->n_tokens, pre, w, err);
    if (!st) st = weft__gguf_begin(w, err);
    if (!st) st = weft__gguf_finish(w, err);
    weft__gguf_writer_destroy(&w);
    return st;
}

weft_status weft_train_tokenizer(const char *const *files, int32_t n_files, const char *out,
                                 const weft_vocab_params *params, weft_vocab_result *result, weft_error *err)
{
    weft_vocab_params own, *p = &own;
    weft__tok_bpe_training *t = NULL;
    *result = (weft_vocab_result){0};
    weft_vocab_params_default(p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_vocab_params), p, params, err);
    if (st) return st;
    if (n_files < 1) return weft_fail(err, WEFT_ARGUMENT, "no text to learn a vocabulary from");
    if (p->n_vocab < 1 || p->min_count < 1)
        return weft_fail(err, WEFT_ARGUMENT, "a vocabulary of %d tokens, pairs of at least %d: both must be 1 or more",
                         p->n_vocab, p->min_count);
    st = weft__out_file_check(out, err); /* before the work */
    if (!st) st = vocabulary_begin(p, &t, err);
    if (!st) st = read_files(t, files, n_files, p, &result->n_bytes, err);
    if (!st) st = weft__tok_bpe_train_run(t, p->progress, p->progress_arg, err);
    if (!st) {
        weft__tok_spec spec = *weft__tok_bpe_train_spec(t);
        spec.bos = BOS;
        spec.eos = EOS;
        spec.pad = PAD;
        spec.eot = END;
        spec.add_bos = 1;
        spec.add_eos = 0;
        if (p->chat_template) spec.chat_template = (weft__tok_slice){p->chat_template, strlen(p->chat_template)};
        st = vocabulary_check(&spec, err);
        if (!st) st = write_file(&spec, p->pre, out, err);
        result->n_tokens = (int32_t)spec.n_tokens;
        result->n_merges = (int32_t)spec.n_merges;
    }
    weft__tok_bpe_train_end(&t);
    return st;
}
