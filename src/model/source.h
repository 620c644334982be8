// SPDX-License-Identifier: Apache-2.0
/* source.h: where a model's numbers come from: metadata by key and tensors by name, whatever the container.
 *
 * GGUF files, Hugging Face folders and synthetic models each implement the same few functions; architecture files and
 * hyperparameters see only these. Keys and tensor names are those of GGUF. Sources are immutable: any thread may
 * read. */
#ifndef WEFT_MODEL_SOURCE_H
#define WEFT_MODEL_SOURCE_H

#include "format/gguf.h"
#include "format/tensors.h"

/* Behind "it is an adapter": what to do with it, whichever command was given it. */
#define WEFT__SOURCE_ADAPTER                                                                                           \
    ", which changes a model: give the model, and this as --adapter NAME=PATH of weft run, chat, serve, compare or "   \
    "eval; 'weft adapter merge' makes one model of both"

typedef enum weft__source_kind {
    WEFT__SOURCE_INT,
    WEFT__SOURCE_FLOAT,
    WEFT__SOURCE_BOOL,
    WEFT__SOURCE_STRING,
    WEFT__SOURCE_ARRAY, /* of numbers or booleans */
    WEFT__SOURCE_HUGE,  /* an integer above INT64_MAX; f holds it */
    WEFT__SOURCE_OTHER
} weft__source_kind;

typedef struct weft__source_value {
    weft__source_kind kind;
    int64_t i;      /* INT, BOOL */
    double f;       /* FLOAT, INT, HUGE */
    const char *s;  /* STRING: `count` bytes, not terminated */
    uint64_t count; /* ARRAY: elements */
} weft__source_value;

typedef struct weft__source weft__source;
struct weft__source {
    const char *label; /* path or name, for messages; lives with the source */
    int (*meta)(const weft__source *src, const char *key, weft__source_value *out); /* 1 found, 0 absent */
    /* Element i of the ARRAY at key; i is below its count. */
    double (*meta_at)(const weft__source *src, const char *key, uint64_t i);
    const weft__tensor_desc *(*tensor)(const weft__source *src, const char *name); /* NULL: absent */
    const void *impl;
    const weft__tensor_set *tensors; /* all there are, so that none is overlooked; NULL: they cannot be listed */
};

/* A view of an open GGUF file; file and label outlive it. */
void weft__source_gguf(const weft__gguf *gguf, const char *label, weft__source *out);

/* WEFT_UNSUPPORTED with what it is, and what it is for, where general.type names something else than a model: an
 * adapter, say. */
weft_status weft__source_is_model(const weft__source *src, weft_error *err);

/* Typed reads. `key` with a leading '.' is taken within the architecture: ".block_count" is "llama.block_count".
 * `required` 0: an absent key leaves *out as it was. A value of another type or outside [min, max] is an error that
 * names it. */
weft_status weft__source_i32(const weft__source *src, const char *arch, const char *key, int required, int32_t min,
                             int32_t max, int32_t *out, weft_error *err);
weft_status weft__source_f32(const weft__source *src, const char *arch, const char *key, int required, float *out,
                             weft_error *err);
/* Copies into out[capacity], NUL-terminated; a longer value is an error. */
weft_status weft__source_string(const weft__source *src, const char *arch, const char *key, int required, char *out,
                                size_t capacity, weft_error *err);

#endif
