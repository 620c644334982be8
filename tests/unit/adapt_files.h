// SPDX-License-Identifier: Apache-2.0
/* adapt_files.h: adapters for tests, written with the writers of src/format and by hand: a base of four matrices, GGUF
 * files and PEFT folders of what a test asks for. */
#ifndef WEFT_TESTS_ADAPT_FILES_H
#define WEFT_TESTS_ADAPT_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "adapt/adapt.h"
#include "base/random.h"
#include "format/gguf_write.h"

enum { K = 8, N = 12, HEADS = 2, EXPERTS = 3, VOCAB = 10 };

/* A tensor of a made-up file. */
typedef struct made {
    const char *name;
    uint32_t n_dims;
    uint64_t d[3];
    const float *values; /* NULL: by number */
} made;

typedef struct recipe {
    const char *type, *kind, *arch; /* general.type, adapter.type, general.architecture; NULL: left out */
    float alpha;
    const made *tensors;
    size_t n;
} recipe;

/* Small numbers that differ for each tensor and element; exact in float32. */
static inline float made_value(uint64_t seed, size_t i)
{
    return (float)((seed * 31 + i * 7) % 23) / 16 - 0.6875f;
}

static inline float *made_values(uint64_t seed, size_t n)
{
    float *v = malloc((n + 1) * sizeof *v);
    for (size_t i = 0; i < n; i++) v[i] = made_value(seed, i);
    return v;
}

static inline uint64_t made_seed(const char *name)
{
    uint64_t h = 7;
    for (; *name; name++) h = (h * 131 + (unsigned char)*name) % 1000003;
    return h;
}

static inline size_t made_count(const made *t)
{
    size_t n = 1;
    for (uint32_t i = 0; i < t->n_dims; i++) n *= (size_t)t->d[i];
    return n;
}

/* Writes a GGUF adapter; 1 when that worked. */
static inline int made_gguf(const char *path, const recipe *r)
{
    weft__gguf_writer *w;
    if (weft__gguf_writer_create(path, 0, &w, NULL)) return 0;
    weft_status st =
        r->arch ? weft__gguf_put_string(w, "general.architecture", r->arch, strlen(r->arch), NULL) : WEFT_OK;
    if (!st && r->type) st = weft__gguf_put_string(w, "general.type", r->type, strlen(r->type), NULL);
    if (!st && r->kind) st = weft__gguf_put_string(w, "adapter.type", r->kind, strlen(r->kind), NULL);
    if (!st) st = weft__gguf_put_f32(w, "adapter.lora.alpha", r->alpha, NULL);
    for (size_t i = 0; i < r->n && !st; i++)
        st = weft__gguf_declare(w, r->tensors[i].name, WEFT_F32, r->tensors[i].n_dims, r->tensors[i].d, NULL);
    if (!st) st = weft__gguf_begin(w, NULL);
    for (size_t i = 0; i < r->n && !st; i++) {
        const made *t = &r->tensors[i];
        size_t n = made_count(t);
        float *v = made_values(made_seed(t->name), n);
        st = weft__gguf_write(w, t->values ? t->values : v, n * sizeof *v, NULL);
        free(v);
    }
    if (!st) st = weft__gguf_finish(w, NULL);
    weft__gguf_writer_destroy(&w);
    return st == WEFT_OK;
}

/* The folder's two files; 1 when that worked. */
static inline int made_peft(const char *folder, const char *config, const made *tensors, size_t n)
{
    char path[512], header[8192] = "{";
    size_t at = 1, data = 0;
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    FILE *f = fopen(path, "wb");
    if (!f || fputs(config, f) < 0 || fclose(f)) return 0;
    for (size_t i = 0; i < n; i++) {
        size_t bytes = made_count(&tensors[i]) * sizeof(float);
        at += (size_t)snprintf(header + at, sizeof header - at, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", i ? "," : "",
                               tensors[i].name);
        for (uint32_t k = tensors[i].n_dims; k-- > 0;)
            at += (size_t)snprintf(header + at, sizeof header - at, "%llu%s", (unsigned long long)tensors[i].d[k],
                                   k ? "," : "");
        at += (size_t)snprintf(header + at, sizeof header - at, "],\"data_offsets\":[%zu,%zu]}", data, data + bytes);
        data += bytes;
    }
    at += (size_t)snprintf(header + at, sizeof header - at, "}");
    while (at % 8) header[at++] = ' ';
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    if (!(f = fopen(path, "wb"))) return 0;
    uint64_t length = at;
    int ok = fwrite(&length, 8, 1, f) == 1 && fwrite(header, 1, at, f) == at;
    for (size_t i = 0; i < n && ok; i++) {
        size_t count = made_count(&tensors[i]);
        float *v = made_values(made_seed(tensors[i].name), count);
        ok = fwrite(tensors[i].values ? tensors[i].values : v, sizeof *v, count, f) == count;
        free(v);
    }
    return !fclose(f) && ok;
}

static inline void unmake_peft(const char *folder)
{
    char path[512];
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    remove(path);
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    remove(path);
    remove(folder);
}

/* ---- a base: attn_q with two heads, ffn_up, a layer's experts, the embedding ---- */

static inline void made_target(weft__adapt_target *t, const char *name, int64_t k, int64_t n, int64_t experts)
{
    *t = (weft__adapt_target){.k = k,
                              .n = n,
                              .n_experts = experts,
                              .n_total = n,
                              .dtype = WEFT_F32,
                              .row_bytes = (uint64_t)k * sizeof(float)};
    snprintf(t->name, sizeof t->name, "%s", name);
}

static weft__adapt_target made_targets[4];

static inline weft__adapt_base made_base(void)
{
    made_target(&made_targets[0], "blk.0.attn_q.weight", K, N, 1);
    made_target(&made_targets[1], "blk.0.ffn_up.weight", K, N, 1);
    made_target(&made_targets[2], "blk.0.ffn_up_exps.weight", K, N, EXPERTS);
    made_target(&made_targets[3], "token_embd.weight", K, VOCAB, 1);
    return (weft__adapt_base){.arch = "llama", .label = "base", .n = 4, .targets = made_targets};
}

/* Names as Llama's and Mixtral's folders have them. */
static inline int made_place(const void *arg, const char *module, weft__adapt_place *out)
{
    int expert, end = 0;
    (void)arg;
    *out = (weft__adapt_place){.expert = -1, .n_experts = 1};
    if (!strcmp(module, "model.embed_tokens")) return snprintf(out->name, sizeof out->name, "token_embd.weight") > 0;
    if (!strcmp(module, "model.layers.0.mlp.up_proj"))
        return snprintf(out->name, sizeof out->name, "blk.0.ffn_up.weight") > 0;
    if (!strcmp(module, "model.layers.0.self_attn.q_proj")) {
        out->heads = HEADS;
        return snprintf(out->name, sizeof out->name, "blk.0.attn_q.weight") > 0;
    }
    if (sscanf(module, "model.layers.0.block_sparse_moe.experts.%d.w3%n", &expert, &end) == 1 && end && !module[end] &&
        expert >= 0 && expert < EXPERTS) {
        out->expert = expert;
        out->n_experts = EXPERTS;
        return snprintf(out->name, sizeof out->name, "blk.0.ffn_up_exps.weight") > 0;
    }
    return 0;
}

static const weft__adapt_names made_names = {.arch = "llama", .place = made_place};

#endif
