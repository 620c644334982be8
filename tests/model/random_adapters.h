// SPDX-License-Identifier: Apache-2.0
/* random_adapters.h: GGUF adapters of random numbers for a model that is described; content i is the same whenever it
 * is written. */
#ifndef WEFT_TESTS_MODEL_RANDOM_ADAPTERS_H
#define WEFT_TESTS_MODEL_RANDOM_ADAPTERS_H

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "format/gguf_write.h"
#include "unit/fixture.h"
#include "weft/weft.h"

/* Contents differ in their ranks and matrices. The last one has magnitudes, and the matrices outside the layers. */
enum { N_CONTENTS = 6 };

static weft_model_info info = {.size = sizeof info};
static uint64_t n_experts = 1; /* of the feed-forward matrices */

static const struct {
    const char *name;
    int q_out, kv_out, ff_in, ff_out; /* which dimensions */
} LINEARS[] = {{"attn_q", 1, 0, 0, 0},
               {"attn_v", 0, 1, 0, 0},
               {"attn_output", 0, 0, 0, 0},
               {"ffn_up", 0, 0, 0, 1},
               {"ffn_down", 0, 0, 1, 0}};
enum { N_LINEARS = sizeof LINEARS / sizeof *LINEARS };

static inline void dims(int linear, uint64_t *k, uint64_t *n)
{
    uint64_t d = (uint64_t)info.d_model, head = d / (uint64_t)info.n_heads;
    *k = LINEARS[linear].ff_in ? (uint64_t)info.d_ff : d;
    *n = LINEARS[linear].ff_out ? (uint64_t)info.d_ff : LINEARS[linear].kv_out ? head * (uint64_t)info.n_kv_heads : d;
}

typedef struct writing {
    weft__gguf_writer *w;
    weft__rng rng;
    int pass;
} writing;

/* One tensor of an adapter, of e experts: declared in the first pass, its values written in the second. d1 0:
 * magnitudes, which are positive. */
static inline void put(writing *x, const char *matrix, const char *part, uint64_t d0, uint64_t d1, uint64_t e)
{
    const uint64_t d[] = {d0, d1 ? d1 : e, e}, n = d0 * (d1 ? d1 : 1) * e;
    char name[96];
    snprintf(name, sizeof name, "%s.weight.lora_%s", matrix, part);
    if (!x->pass) {
        assert_int_equal(weft__gguf_declare(x->w, name, WEFT_F32, (d1 ? 2 : 1) + (e > 1), d, NULL), WEFT_OK);
        return;
    }
    float *v = malloc((size_t)n * sizeof *v);
    for (uint64_t i = 0; i < n; i++) v[i] = (float)(weft__rng_double(&x->rng) - 0.5) / 3 + (d1 ? 0 : 1);
    assert_int_equal(weft__gguf_write(x->w, v, (size_t)n * sizeof *v, NULL), WEFT_OK);
    free(v);
}

/* The last content is DoRA, and of the embedding and the head, too. */
static inline void put_matrices(writing *x, int content, uint64_t rank)
{
    const uint64_t d = (uint64_t)info.d_model, vocab = (uint64_t)info.n_vocab;
    const int dora = content == N_CONTENTS - 1;
    char name[64];
    uint64_t k, n;
    for (int l = 0; l < info.n_layers; l++)
        for (int i = 0; i < N_LINEARS; i++) {
            if ((content + i) % 3 == 1) continue;
            dims(i, &k, &n);
            const uint64_t e = !strncmp(LINEARS[i].name, "ffn", 3) ? n_experts : 1;
            snprintf(name, sizeof name, "blk.%d.%s%s", l, LINEARS[i].name, e > 1 ? "_exps" : "");
            put(x, name, "a", k, rank, e);
            put(x, name, "b", rank, n, e);
            if (dora) put(x, name, "magnitude", n, 0, e);
        }
    if (!dora) return;
    put(x, "output", "a", d, rank, 1);
    put(x, "output", "b", rank, vocab, 1);
    put(x, "output", "magnitude", vocab, 0, 1);
    put(x, "token_embd", "a", rank, vocab, 1);
    put(x, "token_embd", "b", rank, d, 1);
    put(x, "token_embd", "magnitude", d, 0, 1);
}

/* Content i of N_CONTENTS: of ranks 4 to 9, on some of the matrices of every layer. */
static inline void write_adapter(const char *path, int content)
{
    writing x = {0};
    weft__rng_seed(&x.rng, (uint64_t)content + 7);
    assert_int_equal(weft__gguf_writer_create(path, 0, &x.w, NULL), WEFT_OK);
    assert_false(weft__gguf_put_string(x.w, "general.architecture", info.arch, strlen(info.arch), NULL) ||
                 weft__gguf_put_string(x.w, "general.type", "adapter", 7, NULL) ||
                 weft__gguf_put_string(x.w, "adapter.type", "lora", 4, NULL) ||
                 weft__gguf_put_f32(x.w, "adapter.lora.alpha", 8, NULL));
    put_matrices(&x, content, 4 + (uint64_t)content);
    assert_int_equal(weft__gguf_begin(x.w, NULL), WEFT_OK);
    x.pass = 1;
    put_matrices(&x, content, 4 + (uint64_t)content);
    assert_int_equal(weft__gguf_finish(x.w, NULL), WEFT_OK);
    weft__gguf_writer_destroy(&x.w);
}

#endif
