// SPDX-License-Identifier: Apache-2.0
/* train_data.c: any bytes as training data: what is read gives batches whose rows are in range, and a position gives
 * its batch again. The first byte chooses the form (a JSON file: 32) and the kind of training. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/bpe_train.h"
#include "train/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char chat_template[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

static weft__tok *make_tokenizer(void)
{
    static const weft__tok_bpe_special specials[] = {{WEFT__TOK_SLICE("<|start|>"), WEFT__TOK_CONTROL},
                                                     {WEFT__TOK_SLICE("<|stop|>"), WEFT__TOK_CONTROL},
                                                     {WEFT__TOK_SLICE("<|im_start|>"), WEFT__TOK_CONTROL},
                                                     {WEFT__TOK_SLICE("<|im_end|>"), WEFT__TOK_CONTROL}};
    weft__tok_bpe_options o = {WEFT__TOK_SLICE("qwen2"), specials, 4, 262, 1};
    weft__tok_bpe_training *t = NULL;
    weft__tok *tok = NULL;
    if (weft__tok_bpe_train_begin(&o, &t, NULL) || weft__tok_bpe_train_add(t, "the the", 7, NULL) ||
        weft__tok_bpe_train_run(t, NULL, NULL, NULL))
        abort();
    weft__tok_spec spec = *weft__tok_bpe_train_spec(t);
    spec.bos = 0;
    spec.eos = 1;
    spec.eot = 3;
    spec.chat_template = WEFT__TOK_SLICE(chat_template);
    if (weft__tok_create(&spec, &tok, NULL)) abort();
    weft__tok_bpe_train_end(&t);
    return tok;
}

/* Each record has a query and what belongs to it. */
static void check_groups(const weft__train_batch *b)
{
    const int32_t n = b->segment[b->n_rows - 1] + 1;
    for (int32_t i = 0; i < n; i++) {
        const int begins = i == 0 || b->group[i] != b->group[i - 1];
        if (b->group[i] != (i ? b->group[i - 1] + begins : 0) ||
            (begins && (i + 1 == n || b->group[i + 1] != b->group[i])))
            abort();
    }
}

static void check_batch(const weft__train_batch *b, int32_t max_rows)
{
    if (b->group) check_groups(b);
    if (b->n_rows < 1 || b->n_rows > max_rows) abort();
    for (int32_t i = 0; i < b->n_rows; i++) {
        if (b->token[i] < 0 || b->token[i] >= 262 || b->target[i] < -1 || b->target[i] >= 262) abort();
        if (b->segment[i] != (i ? b->segment[i - 1] : 0) && (i == 0 || b->segment[i] != b->segment[i - 1] + 1)) abort();
    }
}

static void read_all(weft__dataset *d, int32_t max_rows)
{
    weft__train_batch b;
    for (int i = 0; i < 20; i++) {
        weft__dataset_cursor at = weft__dataset_position(d);
        if (weft__dataset_next(d, &b, NULL)) return;
        check_batch(&b, max_rows);
        for (int32_t k = 0; b.weight && k < b.n_rows; k++)
            if (!isfinite(b.weight[k])) abort();
        int32_t n_rows = b.n_rows, first = b.token[0];
        if (weft__dataset_seek(d, at, NULL) || weft__dataset_next(d, &b, NULL) || b.n_rows != n_rows ||
            b.token[0] != first)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static weft__tok *tok;
    if (!tok) tok = make_tokenizer();
    size_t before = weft__alloc_live();
    weft__train_renderer r;
    weft__dataset *d = NULL;
    unsigned how = n ? data[0] : 0;
    const weft__dataset_options o = {.n_ctx = 24,
                                     .max_rows = 50,
                                     .pairs = (how & 68) == 4,
                                     .learn_all = (how & 8) != 0,
                                     .in_order = (how & 16) != 0,
                                     .contrasts = (how & 68) == 68, /* pairs that say rewards are none */
                                     .rewards = (how & 68) == 64,
                                     .least = how & 128 ? 0.5 : -INFINITY,
                                     .most = how & 128 ? 2 : 0,
                                     .seed = how};
    weft_error err = {0};
    if (weft__train_renderer_init(&r, tok, NULL, 0, NULL) || weft__dataset_create(&r, &o, &d, NULL)) abort();
    if (n &&
        weft__dataset_add_bytes(d, "f", how & 32 ? WEFT__DATASET_JSON : (weft__dataset_form)(how & 3),
                                (const char *)data + 1, n - 1, &err) &&
        !*err.message)
        abort();
    if (n && !err.status && o.rewards) weft__dataset_weigh(d, 0.5);
    if (n && !err.status) read_all(d, o.max_rows);
    weft__dataset_destroy(&d);
    weft__train_renderer_free(&r);
    if (weft__alloc_live() != before) abort();
    return 0;
}
