// SPDX-License-Identifier: Apache-2.0
/* backend_long.c: attention over contexts of several splits computes what ref does, and the same bits for every number
 * of threads, in chunks or row by row beside another sequence, all rows wanted or some; in pages of f32 and of q8. */
#include "waist.h"

#include "claims.h"

enum { VOCAB = 97 };

/* Positions of three splits (1024 positions each), or of two where what is quadratic takes long; a window of less than
 * a split's end. */
enum {
    LONG_CTX = CLAIMS_REPEATED(2200, 1200, 1200),
    LONG_WINDOW = LONG_CTX - 900,
    LONG_D = 32,
    LONG_HEADS = 3,
    LONG_CHUNK = 150
};

/* One layer of attention over everything and one with a window across splits. Outputs: the hidden state of every
 * row. */
static void long_graph(stage *s)
{
    stage_open(s, 99);
    weft_tensor_id x = weft__op_embed(s->b, stage_weight(s, WEFT_F32, LONG_D, VOCAB, 0, "token_embd"), 30);
    for (int l = 0; l < 2; l++) {
        weft_kv_group group = {l ? WEFT_KV_WINDOW : WEFT_KV_FULL, l ? LONG_WINDOW : 0, 1, 1, 16, 16, 64, 0};
        weft_attr_kv kv = {weft__builder_kv_group(s->b, &group), 0};
        weft_weight_id q = stage_weight(s, WEFT_F32, LONG_D, LONG_HEADS * 16, 0, "q"),
                       k = stage_weight(s, WEFT_F32, LONG_D, 16, 0, "k");
        weft_weight_id v = stage_weight(s, WEFT_F32, LONG_D, 16, 0, "v"),
                       o = stage_weight(s, WEFT_F32, LONG_HEADS * 16, LONG_D, 0, "o");
        weft_attr_attention a = {.kv = kv,
                                 .n_heads = LONG_HEADS,
                                 .n_kv_heads = 1,
                                 .head_dim_k = 16,
                                 .head_dim_v = 16,
                                 .scale = 60,
                                 .window = group.window};
        weft_tensor_id order = weft__op_kv_write(s->b, l, weft__op_linear(s->b, l, x, k, WEFT_NONE),
                                                 weft__op_linear(s->b, l, x, v, WEFT_NONE), kv);
        weft_tensor_id y = weft__op_attention(s->b, l, weft__op_linear(s->b, l, x, q, WEFT_NONE), order, &a);
        x = weft__op_norm(s->b, l, weft__op_linear(s->b, l, y, o, WEFT_NONE), stage_vector(s, LONG_D, "norm"), 1e-5f,
                          0);
    }
    weft__builder_output(s->b, weft__op_pick_rows(s->b, x));
    stage_finish(s);
}

/* Chunks of `chunk` positions; then, when `tail`, the last positions row by row together with a second, short sequence.
 * some: of some rows; the others' outputs are zeros. */
static void run_long(const stage *s, uint32_t type, const char *options, int chunk, int tail, int some, float *out)
{
    store t;
    store_open(&t, s->g, "cpu", options, 1, type, LONG_CTX, LONG_CHUNK * 2);
    t.wants_some = some;
    memset(out, 0, (size_t)STAGE_SEQS * LONG_CTX * LONG_D * sizeof *out);
    int32_t end = tail ? LONG_CTX - 12 : LONG_CTX;
    for (int32_t at = 0; at < end; at += chunk)
        store_step(&t, &(span){0, at, end - at < chunk ? end - at : chunk}, 1, VOCAB, LONG_CTX, out);
    for (int32_t i = 0; i < 12; i++) {
        span both[2] = {{0, LONG_CTX - 12 + i, 1}, {1, i, 1}};
        store_step(&t, both + !tail, 1 + tail, VOCAB, LONG_CTX, out);
    }
    store_close(&t);
}

/* bound: of what differs from ref. */
static void long_of(uint32_t type, double bound)
{
    stage s;
    size_t n = (size_t)STAGE_SEQS * LONG_CTX * LONG_D;
    float *expected = weft__alloc_array(n, sizeof *expected), *first = weft__alloc_array(n, sizeof *first),
          *got = weft__alloc_array(n, sizeof *got);
    long_graph(&s);
    run_long(&s, type, "threads=1,cpu=ref", LONG_CHUNK, 0, 0, expected);
    run_long(&s, type, "threads=1", LONG_CHUNK, 0, 0, first);
    double error = nmse(first, expected, n);
    print_message("  %d positions: NMSE %.2g\n", LONG_CTX, error);
    assert_true(error < bound);
    for (int threads = CLAIMS_REPEATED(1, 1, 3); threads <= 4; threads += CLAIMS_REPEATED(1, 2, 2)) {
        char text[32];
        snprintf(text, sizeof text, "threads=%d", threads);
        run_long(&s, type, text, 97, 1, 0, got);
        if (memcmp(got, first, n * sizeof *got)) fail_msg("%d threads and single rows change the bits", threads);
        run_long(&s, type, text, 97, 1, 1, got);
        for (int q = 0; q < STAGE_SEQS; q++)
            for (int32_t i = 0; i < LONG_CTX; i++) {
                const size_t at = ((size_t)q * LONG_CTX + (size_t)i) * LONG_D;
                if (wanted_at(q, i) && memcmp(got + at, first + at, LONG_D * sizeof *got))
                    fail_msg("%d threads and rows that are not wanted change the bits of position %d", threads, i);
            }
    }
    weft__free(got);
    weft__free(first);
    weft__free(expected);
    stage_close(&s);
}

static void test_long(void **state)
{
    (void)state;
    long_of(WEFT_F32, 1e-9);
}

/* A last bit of a float more or less makes another code here and there, which is 1/254 of the row's largest. */
static void test_long_in_q8(void **state)
{
    (void)state;
    long_of(WEFT_KV_Q8, 1e-3);
}

/* Of sixteen values the next is up to a tenth away. */
static void test_long_in_few_bits(void **state)
{
    (void)state;
    long_of(WEFT_KV_TYPE(WEFT_KV_Q4, WEFT_KV_Q4, 1, 0), 2e-2);
    long_of(WEFT_KV_TYPE(WEFT_KV_F8, WEFT_BF16, 0, 0), 2e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_long), cmocka_unit_test(test_long_in_q8),
                                       cmocka_unit_test(test_long_in_few_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
