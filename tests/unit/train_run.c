// SPDX-License-Identifier: Apache-2.0
/* train_run.c: training as a run: the same bits for every number of threads and with recomputation; losses that fall
 * over quantized bases; what is refused, and how. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapt/adapt.h"
#include "base/clock.h"
#include "folder.h"
#include "train/fresh.h"
#include "train_steps.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEFT_EMULATED)
enum { FAILS_EVERY = 7, LEARN_STEPS = 12 };
#else
enum { FAILS_EVERY = 1, LEARN_STEPS = 30 };
#endif
enum { EVERY = CLAIMS_REPEATED(1, 1, 5) /* of the architectures */ };

/* ---- the same answer ---- */

static void same_bits(void **state)
{
    static const struct {
        const char *what;
        int32_t threads, max_rows;
        int recompute;
    } ways[] = {{"one thread", 1, TINY_ROWS, 0},
                {"three threads", 3, TINY_ROWS, 0},
                {"recomputed", 2, TINY_ROWS, 1},
                {"more room", 2, TINY_ROWS + 70, 1}};
    (void)state;
    for (int i = 0; i < 2 * N_TINY_KINDS; i += EVERY) {
        tiny *m = tiny_new(&TINY_KINDS[i % N_TINY_KINDS], WEFT_F32, 24, 40);
        weft__train_options o = i < N_TINY_KINDS ? tiny_options() : lora_options();
        weft__trainer *t = tiny_trainer(m, &o), *other;
        steps(t, 0, 2);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            o.n_threads = ways[w].threads;
            o.max_rows = ways[w].max_rows;
            o.recompute = ways[w].recompute;
            other = tiny_trainer(m, &o);
            steps(other, 0, 2);
            assert_same_params(t, other, ways[w].what);
            weft__trainer_destroy(&other);
        }
        weft__trainer_destroy(&t);
        tiny_free(m);
    }
}

/* Segments packed together give what they give alone: the loss exactly, row by row. */
static void packing(void **state)
{
    (void)state;
    for (int i = 0; i < N_TINY_KINDS; i += EVERY) {
        tiny *m = tiny_new(&TINY_KINDS[i], WEFT_F32, 24, 40);
        weft__train_options o = tiny_options();
        weft__trainer *t = tiny_trainer(m, &o);
        tiny_batch b;
        float together[TINY_ROWS], alone[TINY_ROWS];
        int32_t zeros[TINY_ROWS] = {0};
        tiny_fill(&b, 9);
        assert_int_equal(weft__trainer_loss(t, &b.b, 1, together, NULL, NULL), WEFT_OK);
        for (int32_t r = 0, n; r < TINY_ROWS; r += n) {
            for (n = 1; r + n < TINY_ROWS && b.segment[r + n] == b.segment[r];) n++;
            weft__train_batch one = {n, b.token + r, zeros, b.target + r, NULL};
            assert_int_equal(weft__trainer_loss(t, &one, 1, alone + r, NULL, NULL), WEFT_OK);
        }
        assert_memory_equal(together, alone, sizeof alone);
        weft__trainer_destroy(&t);
        tiny_free(m);
    }
}

/* ---- rates ---- */

static void schedules(void **state)
{
    (void)state;
    weft__train_options o = {
        .lr = 2, .schedule = WEFT__TRAIN_LR_COSINE, .n_warmup = 10, .n_steps = 110, .lr_floor = 0.25f};
    const struct {
        int32_t schedule;
        int64_t step;
        double lr;
    } known[] = {
        {WEFT__TRAIN_LR_COSINE, 1, 0.2},       {WEFT__TRAIN_LR_COSINE, 10, 2},     {WEFT__TRAIN_LR_COSINE, 60, 1.25},
        {WEFT__TRAIN_LR_COSINE, 110, 0.5},     {WEFT__TRAIN_LR_COSINE, 500, 0.5},  {WEFT__TRAIN_LR_CONSTANT, 5, 1},
        {WEFT__TRAIN_LR_CONSTANT, 11, 2},      {WEFT__TRAIN_LR_CONSTANT, 1000, 2}, {WEFT__TRAIN_LR_ONE_CYCLE, 33, 2},
        {WEFT__TRAIN_LR_ONE_CYCLE, 110, 2e-4}, {WEFT__TRAIN_LR_ONE_CYCLE, 0, 0.08}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        o.schedule = known[i].schedule;
        double lr = weft__train_lr(&o, known[i].step);
        if (!(fabs(lr - known[i].lr) <= 1e-6))
            fail_msg("schedule %d, step %d: %g instead of %g", known[i].schedule, (int)known[i].step, lr, known[i].lr);
    }
    o.n_steps = 1; /* the only step is one at the highest rate */
    assert_true(weft__train_lr(&o, 1) == 2);
}

/* ---- learning ---- */

static double mean_loss(weft__trainer *t, const tiny_batch *b)
{
    weft__train_loss l;
    assert_int_equal(weft__trainer_loss(t, &b->b, 1, NULL, &l, NULL), WEFT_OK);
    return l.loss / l.weight;
}

static void learning(void **state)
{
    static const uint32_t formats[] = {WEFT_Q4_0, WEFT_Q8_0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        tiny *m = tiny_new(&TINY_KINDS[0], formats[i], 32, 64);
        weft__train_options o = lora_options();
        weft__trainer *t = tiny_trainer(m, &o);
        tiny_batch b;
        weft__train_loss base;
        tiny_fill(&b, 1);
        double before = mean_loss(t, &b);
        for (int s = 0; s < LEARN_STEPS; s++) {
            assert_int_equal(weft__trainer_add(t, &b.b, NULL, NULL), WEFT_OK);
            assert_int_equal(weft__trainer_step(t, NULL, NULL), WEFT_OK);
        }
        double after = mean_loss(t, &b);
        if (!(after < 0.7 * before))
            fail_msg("over %s the loss went from %.3f to %.3f", weft_dtype_describe(formats[i]).name, before, after);
        assert_int_equal(weft__trainer_loss(t, &b.b, 0, NULL, &base, NULL), WEFT_OK); /* the base is as it was */
        assert_true(base.loss / base.weight == before);
        weft__trainer_destroy(&t);
        tiny_free(m);
    }
}

/* The head in chunks that do not divide the rows, with and without LoRA on it, gives the loss and the gradients of the
 * head in one piece. */
static void head_in_chunks(void **state)
{
    static const int32_t chunks[] = {0, 1, 7, 64};
    (void)state;
    for (int lora = 0; lora < 2; lora++) {
        tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 32, 64);
        weft__trainer *t[4];
        weft__train_loss l[4];
        tiny_batch b;
        tiny_fill(&b, 4);
        for (int c = 0; c < 4; c++) {
            weft__train_options o = lora ? lora_options() : tiny_options();
            if (lora) o.lora_targets = "attn_q,ffn_down,output";
            o.head_rows = chunks[c];
            t[c] = tiny_trainer(m, &o);
            assert_int_equal(weft__trainer_add(t[c], &b.b, &l[c], NULL), WEFT_OK);
        }
        for (int c = 1; c < 4; c++) {
            assert_true(fabs(l[c].loss - l[0].loss) < 1e-5 * l[0].loss && l[c].weight == l[0].weight &&
                        l[c].flops == l[0].flops);
            for (size_t i = 0; i < weft__trainer_n_params(t[0]); i++) {
                weft__train_param one = weft__trainer_param(t[0], i), many = weft__trainer_param(t[c], i);
                double most = 0, off = 0;
                for (uint64_t k = 0; k < one.d[0] * (one.n_dims > 1 ? one.d[1] : 1); k++) {
                    double size = fabs((double)one.gradient[k]),
                           by = fabs((double)one.gradient[k] - (double)many.gradient[k]);
                    if (size > most) most = size;
                    if (!(by <= off)) off = by; /* NaN too */
                }
                if (off > 1e-5 * most + 1e-7)
                    fail_msg("%s: off by %g of %g with %d rows at a time", one.name, off, most, chunks[c]);
            }
        }
        for (int c = 0; c < 4; c++) weft__trainer_destroy(&t[c]);
        tiny_free(m);
    }
}

static const weft__train_objective PREFERENCE = {.kind = WEFT__LOSS_PREFERENCE, .beta = 0.1f};

/* What a step of pairs computes: the reference's way forth, and what an ordinary step does. */
static void flops_of_pairs(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 32, 64);
    weft__train_options o = lora_options();
    weft__trainer *t = tiny_trainer(m, &o);
    tiny_batch b;
    weft__train_loss reference, rows, pairs;
    tiny_fill(&b, 2);
    assert_int_equal(weft__trainer_loss(t, &b.b, 0, NULL, &reference, NULL), WEFT_OK);
    assert_int_equal(weft__trainer_add(t, &b.b, &rows, NULL), WEFT_OK);
    assert_int_equal(weft__trainer_step(t, NULL, NULL), WEFT_OK);
    assert_int_equal(weft__trainer_learn(t, &PREFERENCE, &b.b, &pairs, NULL), WEFT_OK);
    assert_true(reference.flops > 0 && pairs.flops == reference.flops + rows.flops);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

/* Chosen answers become likelier than rejected ones, and the steps of rows and of pairs do not mix. */
static void preferring(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_Q8_0, 32, 64);
    weft__train_options o = lora_options();
    weft__trainer *t = tiny_trainer(m, &o);
    tiny_batch b;
    weft__train_loss first = {0}, last = {0};
    tiny_fill(&b, 2);
    for (int s = 0; s < LEARN_STEPS; s++) {
        assert_int_equal(weft__trainer_learn(t, &PREFERENCE, &b.b, s ? &last : &first, NULL), WEFT_OK);
        if (s == 0) assert_int_equal(weft__trainer_add(t, &b.b, NULL, NULL), WEFT_STATE);
        assert_int_equal(weft__trainer_step(t, NULL, NULL), WEFT_OK);
    }
    assert_true(fabs(first.loss / 2 - log(2)) < 1e-6 && first.margin == 0 && first.n_better == 0);
    assert_true(last.loss < 0.5 * first.loss && last.n_better == 2 && last.n_pairs == 2);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

/* ---- other files ---- */

static void adapter_file(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = lora_options();
    o.lora_rs = 1;
    weft__trainer *t = tiny_trainer(m, &o);
    steps(t, 0, 1);
    assert_int_equal(weft__trainer_write_adapter(t, path, "mine", NULL), WEFT_OK);
    weft__gguf *g;
    weft__gguf_str type;
    float alpha;
    assert_int_equal(weft__gguf_open(path, &g, NULL), WEFT_OK);
    assert_int_equal(weft__gguf_string(g, "adapter.type", &type, NULL), WEFT_OK);
    assert_true(type.len == 4 && !memcmp(type.data, "lora", 4));
    assert_int_equal(weft__gguf_f32(g, "adapter.lora.alpha", &alpha, NULL), WEFT_OK);
    assert_true(fabsf(alpha / 4 - 8 / sqrtf(4)) < 1e-6f);
    assert_int_equal(weft__gguf_tensors(g)->n, weft__trainer_n_params(t));
    assert_int_equal(weft__trainer_n_params(t), 2 * 7 * TINY_LAYERS);
    for (size_t i = 0; i < weft__trainer_n_params(t); i++) {
        weft__train_param p = weft__trainer_param(t, i);
        const weft__tensor_desc *d;
        assert_int_equal(weft__gguf_tensor(g, p.name, &d, NULL), WEFT_OK);
        assert_true(d->dtype == WEFT_F32 && d->d[0] == p.d[0] && d->d[1] == p.d[1]);
        assert_memory_equal(weft__tensor_data(d), p.data, d->n_bytes);
    }
    weft__gguf_close(&g);
    assert_int_equal(weft__trainer_write_model(t, m->meta, path, NULL), WEFT_STATE);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

/* What a reader makes of the file is the scale that was trained with, to the bit, for any rank. */
static void adapter_scale(void **state)
{
    static const struct {
        int32_t rank;
        float alpha;
    } odd[] = {{17, 32}, {3, 16}, {7, 0.3f}, {4, 8}, {4, 0}};
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        weft__train_options o = lora_options();
        o.lora_rank = odd[i].rank;
        o.lora_alpha = odd[i].alpha;
        o.lora_rs = 1;
        weft__trainer *t = tiny_trainer(m, &o);
        weft__adapt *a;
        assert_int_equal(weft__trainer_write_adapter(t, path, "mine", NULL), WEFT_OK);
        assert_int_equal(weft__adapt_open(path, NULL, UINT64_MAX, &a, NULL), WEFT_OK);
        assert_int_equal(a->n_pairs, 7 * TINY_LAYERS);
        for (int32_t j = 0; j < a->n_pairs; j++)
            if (a->pairs[j].scale != o.lora_alpha / sqrtf((float)o.lora_rank))
                fail_msg("rank %d: %.9g", o.lora_rank, (double)a->pairs[j].scale);
        weft__adapt_close(&a);
        weft__trainer_destroy(&t);
    }
    tiny_free(m);
}

/* A fresh model is trained, written, and read again: it gives the same losses. */
static void model_file(void **state)
{
    (void)state;
    weft__train_scratch_shape shape = {.n_vocab = TINY_VOCAB,
                                       .n_ctx = TINY_CTX,
                                       .n_layers = 2,
                                       .d_model = 32,
                                       .d_ff = 48,
                                       .n_heads = 4,
                                       .n_kv_heads = 2,
                                       .head_dim = 8,
                                       .seed = 3};
    for (shape.tied = 0; shape.tied < 2; shape.tied++) {
        weft__train_scratch *f;
        weft__source src;
        weft__trainer *t, *again;
        weft__gguf *g;
        tiny_batch b;
        float before[TINY_ROWS], after[TINY_ROWS];
        weft__train_options o = tiny_options();
        assert_int_equal(weft__train_scratch_create(&shape, NULL, &f, NULL), WEFT_OK);
        weft__train_scratch_source(f, &src);
        assert_int_equal(weft__trainer_create(&src, &o, &t, NULL), WEFT_OK);
        tiny_fill(&b, 1);
        double first = mean_loss(t, &b);
        assert_true(fabs(first - log(TINY_VOCAB)) < 0.1); /* knows nothing */
        for (int i = 0; i < LEARN_STEPS; i++) {
            assert_int_equal(weft__trainer_add(t, &b.b, NULL, NULL), WEFT_OK);
            assert_int_equal(weft__trainer_step(t, NULL, NULL), WEFT_OK);
        }
        assert_int_equal(weft__trainer_loss(t, &b.b, 1, before, NULL, NULL), WEFT_OK);
        assert_true(mean_loss(t, &b) < first - 0.2);
        assert_int_equal(weft__trainer_write_model(t, weft__train_scratch_meta(f), path, NULL), WEFT_OK);
        assert_int_equal(weft__gguf_open(path, &g, NULL), WEFT_OK);
        weft__source_gguf(g, path, &src);
        assert_int_equal(weft__trainer_create(&src, &o, &again, NULL), WEFT_OK);
        assert_int_equal(weft__trainer_loss(again, &b.b, 1, after, NULL, NULL), WEFT_OK);
        assert_memory_equal(before, after, sizeof before);
        assert_int_equal(weft__trainer_write_adapter(again, path, "x", NULL), WEFT_STATE);
        weft__trainer_destroy(&again);
        weft__gguf_close(&g);
        weft__trainer_destroy(&t);
        weft__train_scratch_destroy(&f);
    }
}

/* ---- what is refused ---- */

static void refused_batches(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = tiny_options();
    weft__trainer *t = tiny_trainer(m, &o);
    weft_error err = {0};
    tiny_batch b;
    for (int i = 0; i < 9; i++) {
        tiny_fill(&b, 1);
        if (i == 0) b.b.n_rows = 0;
        if (i == 1) b.b.n_rows = TINY_ROWS + 1;
        if (i == 2) b.token[5] = -1;
        if (i == 3) b.token[5] = TINY_VOCAB;
        if (i == 4) b.target[129] = TINY_VOCAB;
        if (i == 5) b.target[0] = -2;
        if (i == 6) b.segment[0] = 1;
        if (i == 7) b.segment[129] = 5;
        if (i == 8) b.weight[7] = NAN;
        assert_int_equal(weft__trainer_add(t, &b.b, NULL, &err), WEFT_ARGUMENT);
        assert_int_equal(weft__trainer_loss(t, &b.b, 1, NULL, NULL, &err), WEFT_ARGUMENT);
    }
    assert_int_equal(weft__trainer_step(t, NULL, &err), WEFT_STATE);
    tiny_fill(&b, 1);
    assert_int_equal(weft__trainer_learn(t, &PREFERENCE, &b.b, NULL, &err), WEFT_STATE); /* no LoRA */
    for (int r = 0; r < TINY_ROWS; r++) b.target[r] = -1;
    assert_int_equal(weft__trainer_add(t, &b.b, NULL, NULL), WEFT_OK); /* nothing to learn is no error */
    assert_int_equal(weft__trainer_step(t, NULL, &err), WEFT_STATE);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

/* A loss or a gradient that is not finite is told, nothing moves, and training goes on. */
static void not_finite(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = tiny_options();
    weft__trainer *t = tiny_trainer(m, &o), *clean = tiny_trainer(m, &o);
    tiny_batch b;
    tiny_fill(&b, 1);
    weft__train_param p = weft__trainer_param(t, 2);
    float *keep = weft__alloc_array((size_t)(p.d[0] * p.d[1]), sizeof *keep),
          *spoiled = weft__alloc_array((size_t)(p.d[0] * p.d[1]), sizeof *keep);
    memcpy(keep, p.data, (size_t)(p.d[0] * p.d[1]) * sizeof *keep);
    memcpy(spoiled, keep, (size_t)(p.d[0] * p.d[1]) * sizeof *keep);
    spoiled[3] = NAN;
    weft__trainer_set_param(t, 2, spoiled);
    assert_int_equal(weft__trainer_add(t, &b.b, NULL, NULL), WEFT_LIMIT);
    assert_int_equal(weft__trainer_step(t, NULL, NULL), WEFT_STATE);
    weft__trainer_set_param(t, 2, keep);
    steps(t, 0, 1);
    steps(clean, 0, 1);
    assert_same_params(t, clean, "after a spoiled batch");
    weft__free(spoiled);
    weft__free(keep);
    weft__trainer_destroy(&clean);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

static void refused_options(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40), *tied = tiny_new(&TINY_KINDS[1], WEFT_F32, 24, 40);
    for (int i = 0; i < 9; i++) {
        weft__train_options o = lora_options();
        weft__trainer *t;
        weft_error err = {0};
        if (i == 0) o.lr = NAN;
        if (i == 1) o.max_rows = 0;
        if (i == 2) o.lora_rank = 1 << 20;
        if (i == 3) o.beta1 = 1;
        if (i == 4) o.schedule = WEFT__TRAIN_LR_COSINE, o.n_steps = 0;
        if (i == 5) o.optimizer = 7;
        if (i == 6) o.lora_targets = "attn_q,attn_z";
        if (i == 7) o.lora_targets = "";
        if (i == 8) o.lora_targets = "output";
        weft_status st = weft__trainer_create(i == 8 ? &tied->src : &m->src, &o, &t, &err);
        assert_int_equal(st, i == 8 ? WEFT_UNSUPPORTED : WEFT_ARGUMENT);
        assert_null(t);
        assert_true(err.message[0]);
        if (i == 6) assert_non_null(strstr(err.message, "attn_z"));
    }
    tiny_free(tied);
    tiny_free(m);
}

/* "NAME@FIRST-LAST": those layers' matrices and no others. */
static void layers_of_targets(void **state)
{
    static const struct {
        const char *targets, *first, *words; /* words: why not */
        size_t n_params;
    } cases[] = {{"ffn_down@1", "blk.1.ffn_down.weight.lora_a", NULL, 2},
                 {"ffn_down@0-1", "blk.0.ffn_down.weight.lora_a", NULL, 4},
                 {"@1-1", "blk.1.attn_q.weight.lora_a", NULL, 14},
                 {"attn_q@0,ffn_down@1", "blk.0.attn_q.weight.lora_a", NULL, 4},
                 {"ffn_down@2", NULL, "its layers are 0 to 1", 0},
                 {"ffn_down@1-0", NULL, "behind the @", 0},
                 {"ffn_down@", NULL, "behind the @", 0},
                 {"ffn_down@0-", NULL, "behind the @", 0},
                 {"ffn_down@0-1x", NULL, "behind the @", 0},
                 {"ffn_down@12345678901", NULL, "behind the @", 0},
                 {"output@1", NULL, "is no matrix", 0}};
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__train_options o = lora_options();
        weft__trainer *t;
        weft_error err = {0};
        o.lora_targets = cases[i].targets;
        const weft_status st = weft__trainer_create(&m->src, &o, &t, &err);
        assert_int_equal(st, cases[i].words ? WEFT_ARGUMENT : WEFT_OK);
        if (st) {
            if (!strstr(err.message, cases[i].words)) fail_msg("%s: %s", cases[i].targets, err.message);
            continue;
        }
        assert_int_equal(weft__trainer_n_params(t), cases[i].n_params);
        assert_string_equal(weft__trainer_param(t, 0).name, cases[i].first);
        weft__trainer_destroy(&t);
    }
    tiny_free(m);
}

static int whole_run(void *arg)
{
    const tiny *m = arg;
    weft__train_options o = lora_options();
    o.n_threads = 1;
    weft__trainer *t;
    tiny_batch b;
    void *back = NULL;
    size_t n;
    tiny_fill(&b, 1);
    int ok = weft__trainer_create(&m->src, &o, &t, NULL) == WEFT_OK;
    if (!ok) return 0;
    ok = weft__trainer_add(t, &b.b, NULL, NULL) == WEFT_OK && weft__trainer_step(t, NULL, NULL) == WEFT_OK &&
         weft__trainer_save(t, path, "x", 1, NULL) == WEFT_OK &&
         weft__trainer_load(t, path, &back, &n, NULL) == WEFT_OK &&
         weft__trainer_write_adapter(t, path, "x", NULL) == WEFT_OK;
    weft__free(back);
    weft__trainer_destroy(&t);
    return ok;
}

/* Every FAILS_EVERY-th allocation in turn. */
static void allocations(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    for (size_t i = 0;; i += FAILS_EVERY) {
        fail_at f = {0, i};
        size_t before = weft__alloc_live();
        weft__alloc_set_gate(fail_at_gate, &f);
        int ok = whole_run(m);
        weft__alloc_set_gate(NULL, NULL);
        assert_int_equal(weft__alloc_live(), before);
        if (f.seen <= i) {
            assert_true(ok);
            break;
        }
        assert_false(ok);
    }
    tiny_free(m);
}

static int make_folder(void **state)
{
    (void)state;
    return folder_make("run.ckpt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),       cmocka_unit_test(packing),         cmocka_unit_test(schedules),
        cmocka_unit_test(learning),        cmocka_unit_test(head_in_chunks),  cmocka_unit_test(flops_of_pairs),
        cmocka_unit_test(preferring),      cmocka_unit_test(adapter_file),    cmocka_unit_test(adapter_scale),
        cmocka_unit_test(model_file),      cmocka_unit_test(refused_batches), cmocka_unit_test(not_finite),
        cmocka_unit_test(refused_options), cmocka_unit_test(allocations),     cmocka_unit_test(layers_of_targets),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
