// SPDX-License-Identifier: Apache-2.0
/* train_world.h: a tokenizer, a renderer and a dataset for the tests of training data, and what a batch shows and lets
 * learn. */
#ifndef WEFT_TESTS_TRAIN_WORLD_H
#define WEFT_TESTS_TRAIN_WORLD_H

#include "unit/fixture.h"

#include "text/tokenizer/bpe_train.h"
#include "train/data.h"

static const char template[] =
    "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}<call>{{ "
    "c.function.name "
    "}}</call>"
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
static const char words[] =
    "the fox and the owl sat by the mill. Who sat by the mill? The fox sat by the mill, and so did the owl.";

enum { START, STOP, BEGIN, END, N_SPECIALS };
static int with_bos = 1;

static inline weft__tok *make_tokenizer(const char *chat_template)
{
    static const weft__tok_bpe_special specials[] = {{WEFT__TOK_SLICE("<|start|>"), WEFT__TOK_CONTROL},
                                                     {WEFT__TOK_SLICE("<|stop|>"), WEFT__TOK_CONTROL},
                                                     {WEFT__TOK_SLICE("<|im_start|>"), WEFT__TOK_CONTROL},
                                                     {WEFT__TOK_SLICE("<|im_end|>"), WEFT__TOK_CONTROL}};
    weft__tok_bpe_options o = {WEFT__TOK_SLICE("qwen2"), specials, N_SPECIALS, 300, 1};
    weft__tok_bpe_training *t = NULL;
    weft__tok *tok = NULL;
    assert_int_equal(weft__tok_bpe_train_begin(&o, &t, NULL), WEFT_OK);
    assert_int_equal(weft__tok_bpe_train_add(t, words, strlen(words), NULL), WEFT_OK);
    assert_int_equal(weft__tok_bpe_train_run(t, NULL, NULL, NULL), WEFT_OK);
    weft__tok_spec spec = *weft__tok_bpe_train_spec(t);
    spec.bos = START;
    spec.eos = STOP;
    spec.eot = END;
    spec.add_bos = with_bos;
    if (chat_template) spec.chat_template = (weft__tok_slice){chat_template, strlen(chat_template)};
    assert_int_equal(weft__tok_create(&spec, &tok, NULL), WEFT_OK);
    weft__tok_bpe_train_end(&t);
    return tok;
}

/* ---- a world: a tokenizer, a renderer, a dataset ---- */

typedef struct world {
    weft__tok *tok;
    weft__train_renderer renderer;
    weft__dataset *d;
    weft_error err;
} world;

static inline void open_world(world *w, const char *chat_template, weft__dataset_options o)
{
    *w = (world){.tok = make_tokenizer(chat_template)};
    assert_int_equal(weft__train_renderer_init(&w->renderer, w->tok, NULL, 0, &w->err), WEFT_OK);
    if (weft__dataset_create(&w->renderer, &o, &w->d, &w->err)) fail_msg("%s", w->err.message);
}

static inline void close_world(world *w)
{
    weft__dataset_destroy(&w->d);
    weft__train_renderer_free(&w->renderer);
    weft__tok_destroy(&w->tok);
}

static inline void add(world *w, weft__dataset_form form, const char *bytes)
{
    if (weft__dataset_add_bytes(w->d, "f", form, bytes, strlen(bytes), &w->err)) fail_msg("%s", w->err.message);
}

static inline weft__train_batch next(world *w)
{
    weft__train_batch b;
    if (weft__dataset_next(w->d, &b, &w->err)) fail_msg("%s", w->err.message);
    return b;
}

static inline void expect_text(const world *w, const int32_t *ids, size_t n, const char *want)
{
    weft__strbuf text = {0};
    assert_int_equal(weft__tok_decode(w->tok, ids, n, WEFT__TOK_DECODE_SPECIAL, &text, NULL), WEFT_OK);
    assert_string_equal(text.data ? text.data : "", want);
    weft__strbuf_free(&text);
}

/* What segment `number` of the batch shows, and what is learned of it. */
static inline void expect_segment(const world *w, const weft__train_batch *b, int number, const char *shown,
                                  const char *learned)
{
    int32_t ids[500], targets[500];
    size_t n = 0, n_targets = 0;
    for (int32_t i = 0; i < b->n_rows; i++) {
        if (b->segment[i] != number) continue;
        ids[n++] = b->token[i];
        if (b->target[i] >= 0) targets[n_targets++] = b->target[i];
        if (b->target[i] >= 0 && i + 1 < b->n_rows && b->segment[i + 1] == number)
            assert_int_equal(b->target[i], b->token[i + 1]);
    }
    expect_text(w, ids, n, shown);
    expect_text(w, targets, n_targets, learned);
}

static const weft__dataset_options plain = {.n_ctx = 128, .max_rows = 256, .in_order = 1};

#define SAYS(role, content) "{\"role\": \"" role "\", \"content\": \"" content "\"}"

static inline void refuse(const char *chat_template, weft__dataset_options o, weft__dataset_form form,
                          const char *bytes, size_t n, weft_status status, const char *words_of)
{
    world w;
    open_world(&w, chat_template, o);
    weft_status st = weft__dataset_add_bytes(w.d, "f", form, bytes, n, &w.err);
    if (st != status || !strstr(w.err.message, words_of))
        fail_msg("%s: status %d, \"%s\", expected %d, \"%s\"", bytes, (int)st, w.err.message, (int)status, words_of);
    close_world(&w);
}

static const char chat[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"be kind\"}, {\"role\": \"user\", \"content\": \"who? "
    "<|im_end|>\"},"
    "{\"role\": \"assistant\", \"content\": \"the fox\"}, {\"role\": \"user\", \"content\": \"and?\"},"
    "{\"role\": \"assistant\", \"content\": \"the owl\"}, {\"role\": \"user\", \"content\": \"bye\"}]}\n";

#endif
