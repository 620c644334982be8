// SPDX-License-Identifier: Apache-2.0
/* backend_cpu.c: the CPU provider as a provider: options, description, buffers, steps that it must refuse, numbers of
 * ops that have a closed form, cancelling, memory that runs out. */
#include "waist.h"

enum { D = 32, V = 40, HEADS = 2, DIM = 16, N_CTX = 64, MAX_ROWS = 24 };

/* ---- opening ---- */

static void test_options(void **state)
{
    (void)state;
    weft__provider *p;
    weft_backend_info info = {.size = sizeof info};
    assert_ok(weft__provider_open("cpu", "threads=3,cpu=ref", &p, err));
    assert_ok(p->api->describe(p->backend, &info, err));
    assert_int_equal(info.n_units, 3);
    assert_string_equal(info.name, "cpu");
    assert_non_null(strstr(info.device, ", ref"));
    assert_null(strstr(info.device, "avx"));
    assert_true(info.memory_bytes > 0 && (info.domains >> WEFT_DOMAIN_MAPPED & 1));
    info.size = 8;
    assert_refused(WEFT_ABI, "8 bytes", p->api->describe(p->backend, &info, err));
    weft__provider_close(&p);
    assert_refused(WEFT_ARGUMENT, "threads=-1", weft__provider_open("cpu", "threads=-1", &p, err));
    assert_refused(WEFT_ARGUMENT, "threads=two", weft__provider_open("cpu", "threads=two", &p, err));
    assert_refused(WEFT_ARGUMENT, "threads=", weft__provider_open("cpu", "threads=", &p, err));
    assert_refused(WEFT_ARGUMENT, "'colour=red' is unknown",
                   weft__provider_open("cpu", "threads=1,colour=red", &p, err));
    assert_refused(WEFT_ARGUMENT, "no such tier", weft__provider_open("cpu", "cpu=sse9", &p, err));
    assert_null(p);
}

static void test_buffers(void **state)
{
    (void)state;
    weft__provider *p;
    weft_buffer *b;
    char text[] = "bytes of somebody else";
    weft_external ext = {
        .size = sizeof ext, .domain = WEFT_DOMAIN_HOST, .data = text, .n_bytes = sizeof text, .fd = -1};
    weft_buffer_spec spec = {.size = sizeof spec, .n_bytes = 100, .flags = WEFT_BUFFER_ZERO};
    assert_ok(weft__provider_open("cpu", "threads=1", &p, err));
    assert_ok(p->api->buffer_import(p->backend, &ext, &b, err));
    assert_ptr_equal(b->data, text);
    assert_int_equal(b->domain, WEFT_DOMAIN_IMPORTED);
    weft_buffer_release(&b);
    ext.data = NULL;
    assert_refused(WEFT_UNSUPPORTED, "host address", p->api->buffer_import(p->backend, &ext, &b, err));
    assert_ok(p->api->buffer_new(p->backend, &spec, &b, err));
    assert_true(b->n_bytes == 100 && ((char *)b->data)[99] == 0);
    weft_buffer_release(&b);
    weft__provider_close(&p);
}

static void test_measure(void **state)
{
    (void)state;
    weft__provider *p;
    weft_peaks peaks = {.size = sizeof peaks};
    assert_ok(weft__provider_open("cpu", NULL, &p, err));
    assert_ok(p->api->measure(p->backend, &peaks, err));
    print_message(
        "  read %.1f GB/s, int8 %.0f GOPS (in the second-level cache %.0f), bf16 %.0f GFLOPS, f32 %.0f GFLOPS\n",
        peaks.read_gb_s, peaks.int8_dot_gops, peaks.l2_int8_gops, peaks.bf16_dot_gflops, peaks.f32_fma_gflops);
    assert_true(peaks.l2_int8_gops > 0);
    assert_true(peaks.read_gb_s > 0.1 && peaks.f32_fma_gflops >= 0);
    weft_peaks brief = {.size = sizeof brief, .brief = 1};
    assert_ok(p->api->measure(p->backend, &brief, err));
    assert_true(brief.read_gb_s > 0.1 && (brief.int8_dot_gops > 0) == (peaks.int8_dot_gops > 0));
    /* A caller that knows one figure less gets no more, and one that knows too little is refused. */
    weft_peaks old = {.size = offsetof(weft_peaks, l2_int8_gops), .brief = 1, .l2_int8_gops = -1};
    assert_ok(p->api->measure(p->backend, &old, err));
    assert_true(old.read_gb_s > 0.1 && old.l2_int8_gops == -1 && old.size == offsetof(weft_peaks, l2_int8_gops));
    old.size--;
    assert_int_equal(p->api->measure(p->backend, &old, NULL), WEFT_ABI);
    weft__provider_close(&p);
}

/* ---- steps ---- */

static weft_tensor_id attention_layer(stage *s, weft_tensor_id x, int window)
{
    weft_kv_group g = {window ? WEFT_KV_WINDOW : WEFT_KV_FULL, window, 1, HEADS, DIM, DIM, 16, 0};
    weft_attr_kv kv = {weft__builder_kv_group(s->b, &g), 0};
    weft_attr_attention a = {.kv = kv,
                             .n_heads = HEADS,
                             .n_kv_heads = HEADS,
                             .head_dim_k = DIM,
                             .head_dim_v = DIM,
                             .scale = 1,
                             .window = window};
    weft_attr_rope rope = {
        .n_heads = HEADS, .head_dim = DIM, .n_rot = DIM, .base = 10000, .freq_scale = 1, .attn_factor = 1};
    weft_tensor_id k = weft__op_rope(s->b, 0, x, &rope, WEFT_NONE), q = weft__op_rope(s->b, 0, x, &rope, WEFT_NONE);
    weft_tensor_id y = weft__op_attention(s->b, 0, q, weft__op_kv_write(s->b, 0, k, x, kv), &a);
    return weft__op_linear(s->b, 0, y, stage_weight(s, WEFT_Q8_0, D, D, 0, "out"), stage_vector(s, D, "bias"));
}

static void model(stage *s)
{
    stage_open(s, 31);
    weft_tensor_id x = weft__op_embed(s->b, stage_weight(s, WEFT_F32, D, V, 0, "token_embd"), 30);
    x = attention_layer(s, attention_layer(s, x, 0), 8);
    weft__builder_output(s->b, weft__op_pick_rows(s->b, x));
    stage_finish(s);
}

/* A good step of 4 rows, that each case then spoils. */
typedef struct step {
    store t;
    weft_rows rows;
    weft_kv_binding kv[STAGE_GROUPS];
    float out[MAX_ROWS * D], *outputs[1];
    int32_t adapter[4];
} step;

static void good(step *x)
{
    static const int32_t seq[4] = {0, 0, 0, 1}, pos[4] = {20, 21, 22, 0};
    for (int i = 0; i < 4; i++) {
        x->t.token[i] = 7 + i;
        x->t.pos[i] = pos[i];
        x->t.seq[i] = seq[i];
        x->t.want[i] = i == 2 ? WEFT_WANT_LOGITS : 0;
        x->adapter[i] = -1;
    }
    x->rows = (weft_rows){.size = sizeof x->rows,
                          .n_rows = 4,
                          .n_wanted = 1,
                          .n_seqs = 2,
                          .token = x->t.token,
                          .pos = x->t.pos,
                          .seq = x->t.seq,
                          .adapter = x->adapter,
                          .want = x->t.want,
                          .seqs = x->t.views};
    memcpy(x->kv, x->t.kv, sizeof x->kv);
    x->outputs[0] = x->out;
}

static weft_status run(step *x, weft_error *err)
{
    return weft__plan_run(x->t.state, &x->rows, x->kv, x->outputs, err);
}

#define SPOILED(status, text, change)                                                                                  \
    do {                                                                                                               \
        good(&x);                                                                                                      \
        change;                                                                                                        \
        assert_refused(status, text, run(&x, err));                                                                    \
    } while (0)

static void test_refused_rows(void **state)
{
    (void)state;
    static step x;
    stage s;
    model(&s);
    store_open(&x.t, s.g, "cpu", "threads=2", 1, WEFT_F16, N_CTX, MAX_ROWS);
    good(&x);
    assert_ok(run(&x, err));
    SPOILED(WEFT_ABI, "weft_rows", x.rows.size = 4);
    SPOILED(WEFT_ARGUMENT, "a step of 0 rows", x.rows.n_rows = 0);
    SPOILED(WEFT_ARGUMENT, "a step of 25 rows", x.rows.n_rows = MAX_ROWS + 1);
    SPOILED(WEFT_ARGUMENT, "5 of 4 rows are wanted", x.rows.n_wanted = 5);
    SPOILED(WEFT_ARGUMENT, "1 rows are wanted, 2 were announced", x.rows.n_wanted = 2);
    SPOILED(WEFT_ARGUMENT, "more rows are wanted", x.t.want[3] = WEFT_WANT_LOGITS);
    SPOILED(WEFT_ARGUMENT, "0 rows are wanted, 1 were announced", x.rows.want = NULL);
    SPOILED(WEFT_ARGUMENT, "0 sequences", x.rows.n_seqs = 0);
    SPOILED(WEFT_ARGUMENT, "row 3 is of sequence 2", x.t.seq[3] = 2);
    SPOILED(WEFT_ARGUMENT, "row 0 is of sequence -1", x.t.seq[0] = -1);
    SPOILED(WEFT_ARGUMENT, "do not stand together", x.t.seq[1] = 1);
    SPOILED(WEFT_ARGUMENT, "row 1 has token 40", x.t.token[1] = V);
    SPOILED(WEFT_ARGUMENT, "row 1 has token -1", x.t.token[1] = -1);
    SPOILED(WEFT_ARGUMENT, "without tokens", x.rows.token = NULL);
    SPOILED(WEFT_ARGUMENT, "row 0 is at position -1", x.t.pos[0] = -1);
    SPOILED(WEFT_ARGUMENT, "not after 20", x.t.pos[1] = 20);
    SPOILED(WEFT_ARGUMENT, "position 64 lies beyond its 4 pages", x.t.pos[2] = N_CTX);
    SPOILED(WEFT_ARGUMENT, "row 2 asks for adapter 0; the step has 0", x.adapter[2] = 0);
    SPOILED(WEFT_ARGUMENT, "of type 8", x.kv[1].dtype = WEFT_Q8_0);
    SPOILED(WEFT_ARGUMENT, "do not hold its layers", x.kv[0].page_bytes = 64);
    SPOILED(WEFT_ARGUMENT, "of type 131", x.kv[1].dtype = WEFT_KV_F8 + 1);
    SPOILED(WEFT_ARGUMENT, "of type 2432", x.kv[1].dtype = WEFT_KV_Q8 | (WEFT_Q8_0 + 1) << 8);
    SPOILED(WEFT_ARGUMENT, "do not hold its layers", x.kv[0].data = NULL);
    SPOILED(WEFT_ARGUMENT, "there are 1", x.kv[0].n_pages = 1);
    SPOILED(WEFT_ARGUMENT, "no memory was given", x.outputs[0] = NULL);
    SPOILED(WEFT_UNSUPPORTED, "is a tree", x.t.views[1].tree_mask = &x);
    x.t.views[1].tree_mask = NULL;
    SPOILED(WEFT_UNSUPPORTED, "is a tree", x.t.views[1].tree_slots = x.t.pos);
    x.t.views[1].tree_slots = NULL;
    SPOILED(WEFT_UNSUPPORTED, "KV group 1 lies in a device's memory", x.kv[1].buffer = s.buffers[0]);
    /* A dropped page in sight of full attention; the same one out of sight of a window is fine. */
    int32_t kept = x.t.pages[0][0][0];
    SPOILED(WEFT_ARGUMENT, "page 0 of KV group 0 is number -1", x.t.pages[0][0][0] = -1);
    x.t.pages[0][0][0] = kept;
    good(&x);
    x.t.pages[0][1][0] = -1;
    x.t.pos[0] = 40;
    x.t.pos[1] = 41;
    x.t.pos[2] = 42;
    assert_ok(run(&x, err));
    SPOILED(WEFT_ARGUMENT, "page 0 of KV group 1 is number -1", (void)0); /* 20 - 8 + 1 = 13 is in page 0 */
    /* After all that the plan still works, also with nothing wanted. */
    x.t.pages[0][1][0] = x.t.pages[0][0][0];
    good(&x);
    x.t.want[2] = 0;
    x.rows.n_wanted = 0;
    x.outputs[0] = NULL;
    assert_ok(run(&x, err));
    store_close(&x.t);
    stage_close(&s);
}

/* A step as the plan's provider gets it, with what this version of the ABI only reserves. */
static weft_status (*run_as_it_is)(weft_run *run, const weft_step *step, weft_error *err);
static void (*spoil)(weft_step *step, weft_tensor_binding *first);

static weft_status run_spoiled(weft_run *r, const weft_step *given, weft_error *err)
{
    weft_step its = *given;
    weft_bindings b = *given->bindings;
    weft_tensor_binding first = b.tensors[0];
    its.bindings = &b;
    b.n_tensors = 1;
    b.tensors = &first;
    spoil(&its, &first);
    return run_as_it_is(r, &its, err);
}

static void spoil_size(weft_step *its, weft_tensor_binding *first)
{
    (void)first;
    its->size = 8;
}

static void spoil_after(weft_step *its, weft_tensor_binding *first)
{
    (void)first;
    its->after = (weft_event *)its;
}

static void spoil_done(weft_step *its, weft_tensor_binding *first)
{
    (void)first;
    its->done = (weft_event *)its;
}

static void spoil_tensor(weft_step *its, weft_tensor_binding *first)
{
    static weft_buffer buffer;
    (void)its;
    first->buffer = &buffer;
}

static void test_reserved_is_refused(void **state)
{
    (void)state;
    static step x;
    stage s;
    model(&s);
    store_open(&x.t, s.g, "cpu", "threads=2", 1, WEFT_F16, N_CTX, MAX_ROWS);
    run_as_it_is = x.t.providers[0]->table.run;
    x.t.providers[0]->table.run = run_spoiled;
    SPOILED(WEFT_ABI, "weft_step has 8 bytes", spoil = spoil_size);
    SPOILED(WEFT_UNSUPPORTED, "waits for events", spoil = spoil_after);
    SPOILED(WEFT_UNSUPPORTED, "waits for events", spoil = spoil_done);
    SPOILED(WEFT_UNSUPPORTED, "lies in a device's memory", spoil = spoil_tensor);
    store_close(&x.t);
    stage_close(&s);
}

/* The kernels keep keys in blocks of 16 tokens. */
static void test_small_pages(void **state)
{
    (void)state;
    stage s;
    weft__provider *p;
    weft__plan *plan;
    stage_open(&s, 1);
    weft_tensor_id x = weft__op_embed(s.b, stage_weight(&s, WEFT_F32, D, V, 0, "token_embd"), 1);
    weft_kv_group g = {WEFT_KV_FULL, 0, 1, HEADS, DIM, DIM, 8, 0};
    weft__op_kv_write(s.b, 0, x, x, (weft_attr_kv){weft__builder_kv_group(s.b, &g), 0});
    stage_finish(&s);
    assert_ok(weft__provider_open("cpu", "threads=1", &p, err));
    weft__plan_options o = {.max_rows = 4, .max_wanted = 4, .providers = &p, .n_providers = 1};
    assert_refused(WEFT_UNSUPPORTED, "kv_write", weft__plan_create(s.g, &o, &plan, err));
    weft__provider_close(&p);
    stage_close(&s);
}

/* ---- rows that nobody wants ---- */

enum { UNTOUCHED = 12345 };

/* As model, and two more outputs: what the last linear makes, of all rows, and what the first layer makes of those that
 * are wanted, which are picked before the last layer's end. */
static void model_of_three_outputs(stage *s)
{
    stage_open(s, 31);
    weft_tensor_id x = weft__op_embed(s->b, stage_weight(s, WEFT_F32, D, V, 0, "token_embd"), 30);
    weft_tensor_id early = attention_layer(s, x, 0), first = weft__op_pick_rows(s->b, early);
    x = attention_layer(s, early, 8);
    weft__builder_output(s->b, weft__op_pick_rows(s->b, x));
    weft__builder_output(s->b, x);
    weft__builder_output(s->b, first);
    stage_finish(s);
}

/* A step of one sequence's first four rows. Returns how many rows of the second output were computed. */
static int run_wanting(store *t, const uint8_t want[4], float *picked, float *all, float *early)
{
    float *outputs[] = {picked, all, early};
    int computed = 0;
    weft_rows rows = {.size = sizeof rows,
                      .n_rows = 4,
                      .n_seqs = 1,
                      .token = t->token,
                      .pos = t->pos,
                      .seq = t->seq,
                      .want = want,
                      .seqs = t->views};
    for (int i = 0; i < 4; i++) {
        t->token[i] = 3 * i + 1;
        t->pos[i] = i;
        t->seq[i] = 0;
        rows.n_wanted += want[i] & WEFT_WANT_LOGITS;
    }
    for (int i = 0; i < 4 * D; i++) picked[i] = all[i] = UNTOUCHED;
    assert_ok(weft__plan_run(t->state, &rows, t->kv, outputs, err));
    for (int i = 0; i < 4; i++) computed += all[i * D] != UNTOUCHED;
    return computed;
}

static void test_rows_that_nobody_wants(void **state)
{
    enum { L = WEFT_WANT_LOGITS, O = WEFT_WANT_OUTPUTS, ROW = D * sizeof(float) };
    (void)state;
    stage s;
    store t;
    float picked[4 * D], all[4 * D], early[4 * D], expected[4 * D], expected_early[4 * D];
    model_of_three_outputs(&s);
    store_open(&t, s.g, "cpu", "threads=2", 1, WEFT_F32, N_CTX, MAX_ROWS);
    assert_int_equal(run_wanting(&t, (uint8_t[]){L | O, L | O, L | O, L | O}, expected, all, expected_early), 4);
    assert_memory_equal(expected, all, sizeof all);
    assert_int_equal(run_wanting(&t, (uint8_t[]){0, L, 0, L}, picked, all, early), 2);
    assert_memory_equal(picked, expected + D, ROW);
    assert_memory_equal(picked + D, expected + 3 * D, ROW);
    assert_memory_equal(early, expected_early + D, ROW);
    assert_memory_equal(early + D, expected_early + 3 * D, ROW);
    assert_int_equal(run_wanting(&t, (uint8_t[]){0, 0, 0, 0}, picked, all, early), 0);
    assert_int_equal(run_wanting(&t, (uint8_t[]){0, L, O, 0}, picked, all, early),
                     4); /* and after one that wanted less, all are there */
    assert_memory_equal(picked, expected + D, ROW);
    assert_memory_equal(all, expected, sizeof all);
    assert_int_equal(run_wanting(&t, (uint8_t[]){L, L, 0, 0}, picked, all, early), 2); /* in their places already */
    assert_memory_equal(picked, expected, 2 * ROW);
    assert_int_equal(run_wanting(&t, (uint8_t[]){L, L, L, L}, picked, all, early), 4);
    assert_memory_equal(picked, expected, sizeof picked);
    store_close(&t);
    stage_close(&s);
}

/* ---- ops by themselves ---- */

/* Runs rows that enter as embeddings [n][D] at positions pos; returns the graph's output. */
static void run_embd(const stage *s, const float *embd, const int32_t *pos, int32_t n, const char *options, float *out)
{
    store t;
    float *outputs[] = {out};
    store_open(&t, s->g, "cpu", options, 1, WEFT_F32, N_CTX, MAX_ROWS);
    for (int32_t i = 0; i < n; i++) {
        t.seq[i] = 0;
        t.want[i] = WEFT_WANT_OUTPUTS;
    }
    weft_rows rows = {.size = sizeof rows,
                      .n_rows = n,
                      .n_seqs = 1,
                      .pos = pos,
                      .seq = t.seq,
                      .embd = embd,
                      .want = t.want,
                      .seqs = t.views};
    assert_ok(weft__plan_run(t.state, &rows, t.kv, outputs, err));
    store_close(&t);
}

static void test_embeddings(void **state)
{
    (void)state;
    stage s;
    float embd[3 * D], out[3 * D];
    int32_t pos[3] = {0, 1, 2};
    stage_open(&s, 1);
    weft__builder_output(s.b, weft__op_embed(s.b, stage_weight(&s, WEFT_F32, D, V, 0, "token_embd"), 2));
    stage_finish(&s);
    for (int i = 0; i < 3 * D; i++) embd[i] = (float)i;
    run_embd(&s, embd, pos, 3, "threads=2", out);
    for (int i = 0; i < 3 * D; i++) assert_true(out[i] == 2 * (float)i);
    stage_close(&s);
}

/* The rotation of (1, 0) by the angle: cos and sin of it, with every option of the formula. */
static void test_rope_formula(void **state)
{
    (void)state;
    const double pi = 3.14159265358979323846;
    for (int yarn = 0; yarn <= 1; yarn++) {
        stage s;
        float embd[2 * D], out[2 * D], factor[DIM / 2];
        int32_t pos[2] = {3, 1001};
        weft_attr_rope a = {.n_heads = HEADS,
                            .head_dim = DIM,
                            .n_rot = DIM,
                            .style = WEFT_ROPE_ADJACENT,
                            .base = 10000,
                            .freq_scale = 0.25f,
                            .attn_factor = 1.5f};
        if (yarn) {
            a.ext_factor = 1;
            a.beta_fast = 32;
            a.beta_slow = 1;
            a.n_ctx_orig = 4096;
        }
        stage_open(&s, 1);
        weft_weight_id f = stage_vector(&s, DIM / 2, "factors");
        memcpy(factor, (uint8_t *)s.buffers[0]->data + 5, sizeof factor);
        weft__builder_output(
            s.b, weft__op_rope(s.b, 0, weft__op_embed(s.b, stage_weight(&s, WEFT_F32, D, V, 0, "e"), 1), &a, f));
        stage_finish(&s);
        for (int i = 0; i < 2 * D; i++) embd[i] = i % 2 == 0;
        run_embd(&s, embd, pos, 2, "threads=1,cpu=ref", out);
        for (int r = 0; r < 2; r++) {
            for (int i = 0; i < D / 2; i++) {
                int pair = i % (DIM / 2);
                double theta = pow(10000, -2.0 * pair / DIM) / factor[pair], mix = 0;
                double low = floor(DIM * log(4096 / (32 * 2 * pi)) / (2 * log(10000))),
                       high = ceil(DIM * log(4096 / (2 * pi)) / (2 * log(10000)));
                if (yarn) mix = 1 - fmin(1, fmax(0, (pair - low) / (high - low)));
                double angle = pos[r] * (0.25 * theta * (1 - mix) + theta * mix);
                assert_true(fabs(out[r * D + 2 * i] - 1.5 * cos(angle)) < 1e-5);
                assert_true(fabs(out[r * D + 2 * i + 1] - 1.5 * sin(angle)) < 1e-5);
            }
        }
        stage_close(&s);
    }
}

/* Routing by hand: ties go to the lower index, NaN comes last, weights are softmax or sigmoid, normalised and
 * scaled. */
static void test_route(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        stage s;
        float embd[D], out[6], sum = 0;
        int32_t pos = 0;
        weft_attr_moe a = {.n_experts = D, .n_used = 3, .gate = kind & 1, .normalize = kind >> 1, .scale = 2};
        stage_open(&s, 1);
        weft__builder_output(
            s.b, weft__op_moe_route(s.b, 0, weft__op_embed(s.b, stage_weight(&s, WEFT_F32, D, V, 0, "e"), 1), &a));
        stage_finish(&s);
        for (int i = 0; i < D; i++) embd[i] = -1;
        embd[30] = 2;
        embd[7] = 3;
        embd[9] = 2;
        double exact[3], denominator = 29 * exp(-1 - 3) + 1 + 2 * exp(2 - 3);
        run_embd(&s, embd, &pos, 1, "threads=1", out);
        assert_true(out[0] == 7 && out[1] == 9 && out[2] == 30);
        for (int i = 0; i < 3; i++) {
            double x = embd[(int)out[i]];
            exact[i] = a.gate == WEFT_MOE_SOFTMAX ? exp(x - 3) / denominator : 1 / (1 + exp(-x));
            sum += (float)exact[i];
        }
        for (int i = 0; i < 3; i++) assert_true(fabs(out[3 + i] - 2 * exact[i] / (a.normalize ? sum : 1)) < 1e-6);
        embd[7] = NAN;
        run_embd(&s, embd, &pos, 1, "threads=1", out);
        assert_true(out[0] == 9 && out[1] == 30 && out[2] == 0);
        stage_close(&s);
    }
}

static void test_layer_norm(void **state)
{
    (void)state;
    stage s;
    float embd[2 * D], out[2 * D];
    int32_t pos[2] = {0, 1};
    stage_open(&s, 4);
    weft_tensor_id x = weft__op_embed(s.b, stage_weight(&s, WEFT_F32, D, V, 0, "e"), 1),
                   y = weft__builder_tensor(s.b, D, WEFT_ROWS, "y");
    weft_node n = {.op = WEFT_OP_NORM, .n_in = 1, .n_out = 1, .in = {x}, .out = {y}, .n_w = 2, .layer = 0};
    n.w[0] = stage_vector(&s, D, "w");
    n.w[1] = stage_vector(&s, D, "b");
    n.attr.norm = (weft_attr_norm){WEFT_NORM_LAYER, 0, 1e-5f};
    weft__builder_node(s.b, &n);
    weft__builder_output(s.b, y);
    float w[D], b[D];
    memcpy(w, (uint8_t *)s.buffers[1]->data + 5, sizeof w);
    memcpy(b, (uint8_t *)s.buffers[2]->data + 5, sizeof b);
    stage_finish(&s);
    for (int i = 0; i < 2 * D; i++) embd[i] = (float)weft__rng_normal(&s.rng) + 5;
    run_embd(&s, embd, pos, 2, "threads=2", out);
    for (int r = 0; r < 2; r++) {
        double mean = 0, variance = 0;
        for (int i = 0; i < D; i++) mean += embd[r * D + i] / (double)D;
        for (int i = 0; i < D; i++) variance += (embd[r * D + i] - mean) * (embd[r * D + i] - mean) / D;
        for (int i = 0; i < D; i++)
            assert_true(fabs(out[r * D + i] - ((embd[r * D + i] - mean) / sqrt(variance + 1e-5) * w[i] + b[i])) < 1e-5);
    }
    stage_close(&s);
}

/* ---- compiling ---- */

static int stop_at_once(void *arg, const char *what, double fraction)
{
    ++*(int *)arg;
    assert_true(what && fraction >= 0 && fraction <= 1);
    return 1;
}

static void test_cancel(void **state)
{
    (void)state;
    stage s;
    int calls = 0;
    weft__provider *p;
    weft__plan *plan;
    model(&s);
    assert_ok(weft__provider_open("cpu", "threads=2", &p, err));
    weft__plan_options o = {.max_rows = 4,
                            .max_wanted = 4,
                            .providers = &p,
                            .n_providers = 1,
                            .progress = stop_at_once,
                            .progress_arg = &calls};
    size_t before = weft__alloc_live();
    assert_refused(WEFT_CANCELLED, "cancelled", weft__plan_create(s.g, &o, &plan, err));
    assert_int_equal(calls, 1);
    assert_int_equal(weft__alloc_live(), before);
    weft__provider_close(&p);
    stage_close(&s);
}

static int open_and_plan(void *arg)
{
    const stage *s = arg;
    weft__provider *p = NULL;
    weft__plan *plan = NULL;
    weft__plan_state *runs = NULL;
    weft_status st = weft__provider_open("cpu", "threads=2", &p, NULL);
    weft__plan_options o = {.max_rows = 4, .max_wanted = 4, .providers = &p, .n_providers = 1};
    if (!st) st = weft__plan_create(s->g, &o, &plan, NULL);
    if (!st) st = weft__plan_state_new(plan, &runs, NULL);
    weft__plan_state_free(&runs);
    weft__plan_destroy(&plan);
    weft__provider_close(&p);
    return !st;
}

static void test_failing_allocator(void **state)
{
    (void)state;
    stage s;
    model(&s);
    size_t n = fail_each(open_and_plan, &s);
    print_message("  %zu allocations refused in turn\n", n);
    assert_true(n > 50);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_rows_that_nobody_wants),
        cmocka_unit_test(test_refused_rows),
        cmocka_unit_test(test_reserved_is_refused),
        cmocka_unit_test(test_embeddings),
        cmocka_unit_test(test_rope_formula),
        cmocka_unit_test(test_route),
        cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_small_pages),
        cmocka_unit_test(test_failing_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
