// SPDX-License-Identifier: Apache-2.0
/* hf.h: a Hugging Face folder (config.json, safetensors, tokenizer files) as a model: metadata and tensors under the
 * names that GGUF has for them, and the way to a GGUF file.
 *
 * Sources: the configuration classes and modelling files of transformers for what each field means and what it is when
 * absent; the GGUF specification and llama.cpp's converter for keys, tensor names and the order of rows. Invariant:
 * whatever the folder asks for and this engine does not compute is refused by name when it is opened: unknown tensors,
 * activations, scalings, layer patterns. Thread safety: one thread opens and loads; afterwards any thread may read. */
#ifndef WEFT_MODEL_HF_H
#define WEFT_MODEL_HF_H

#include "format/gguf_write.h"
#include "model/source.h"
#include "text/tokenizer/tokenizer.h"
#include "weft/backend.h"

typedef struct weft__hf weft__hf;

/* 1 when path is a folder. */
int weft__hf_is_folder(const char *path);

/* Reads config.json and the descriptions of all tensors; no weights yet. Fails with WEFT_NOT_FOUND (a file is missing),
 * WEFT_FORMAT (malformed, a tensor missing or of another shape than config.json says), WEFT_UNSUPPORTED (naming the
 * thing, and for the architecture those that are supported), WEFT_IO or WEFT_NO_MEMORY; the message names the folder.
 * *out is NULL then. */
weft_status weft__hf_open(const char *path, weft__hf **out, weft_error *err);
void weft__hf_close(weft__hf **hf);

/* The architecture's keys, as a GGUF file would have them, without the tokenizer. For Llama and its kin also
 * weft.rope_style "halves": the rows of q and k stand as the folder has them, not paired as GGUF wants. */
const weft__gguf *weft__hf_meta(const weft__hf *hf);
/* Tensors under GGUF names. Until weft__hf_load those that must be computed have no buffer. */
const weft__tensor_set *weft__hf_tensors(const weft__hf *hf);

/* Computes in memory what does not stand in the files as the engine needs it: vectors in F32 (Gemma's norms with their
 * 1 added), the experts of a layer as one tensor, frequency factors. Once. progress may be NULL. */
weft_status weft__hf_load(weft__hf *hf, weft_progress_fn progress, void *arg, weft_error *err);
/* The same, but matrices that would be computed are addresses alone, and must not be read: for outlines. */
weft_status weft__hf_outline(weft__hf *hf, weft_error *err);
/* A view, valid as long as hf. Complete after weft__hf_load. */
void weft__hf_source(const weft__hf *hf, weft__source *out);

/* The folder's tokenizer: tokenizer.json, else tokenizer.model; roles, template and more tokens from
 * tokenizer_config.json, added_tokens.json, special_tokens_map.json, chat_template.jinja and chat_template.json; tokens
 * that end generation from generation_config.json and config.json. WEFT_NOT_FOUND: it has none. */
weft_status weft__hf_tokenizer(const weft__hf *hf, weft__tok **out, weft_error *err);

typedef struct weft__hf_convert_options {
    int32_t dtype;             /* weft_dtype of the matrices; -1: as stored */
    const char *pre;           /* name of the pre-tokenizer where it cannot be recognized; NULL: none given */
    weft_progress_fn progress; /* may be NULL */
    void *arg;
    /* 1: what is beyond a type's range becomes the nearest that it has; 0: WEFT_ARGUMENT, with number and tensor */
    int32_t saturate;
} weft__hf_convert_options;

/* Writes the model as a GGUF file, tensor by tensor; `out` appears only when it is complete. Vectors and routers are
 * F32; a matrix whose rows are no multiple of the type's block keeps its stored type. A folder without a tokenizer
 * gives a file without one. Fails as weft__vocab_put does, with WEFT_UNSUPPORTED when the file's tokenizer would not be
 * the folder's, and as weft__gguf_write does. */
weft_status weft__hf_convert(const weft__hf *hf, const char *out, const weft__hf_convert_options *options,
                             weft_error *err);

/* A module of a folder ("model.layers.0.self_attn.q_proj") and the GGUF tensor of its weight, by architecture: for
 * adapters. */
typedef struct weft__hf_place {
    char name[WEFT__GGUF_TENSOR_NAME_BYTES]; /* "blk.0.attn_q.weight" */
    int32_t layer, expert;                   /* -1: none */
    char rows; /* 'q', 'k': rows of all query or key heads, whose halves GGUF pairs; else 0 */
} weft__hf_place;

/* Prefixes of folders that also see are accepted. 0: the architecture has no such matrix. */
int weft__hf_place_of(const char *arch, const char *module, weft__hf_place *out);
/* And back; expert -1 for a tensor without experts. 0: the architecture has no such matrix, or the name does not
 * fit. */
int weft__hf_module_of(const char *arch, const char *tensor, int32_t expert, char *out, size_t size,
                       weft__hf_place *place);

/* Adds every key of the folder, those of its tokenizer too, to `w`; tensors keep the folder's order of rows, as
 * weft__hf_tensors has them. pre: as in the options. Fails as weft__hf_convert does. */
weft_status weft__hf_put_all(const weft__hf *hf, const char *pre, weft__gguf_writer *w, weft_error *err);

#endif
