// SPDX-License-Identifier: Apache-2.0
/* quant_models.c: files of one model in every format: what they decode to is close to the f16 weights, and our encoding
 * of the same weights is at least as close, tensor by tensor. The files are another encoder's. */
#include "unit/fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/gguf.h"
#include "claims.h"
#include "model/shared.h"
#include "quant/encode.h"

/* `bound`: relative RMS error that rows of about normal weights may have in the format. */
static const struct {
    const char *file;
    uint32_t dtype;
    double bound;
} FILES[] = {
    {"BF16", WEFT_BF16, 0.0019},    {"Q4_0", WEFT_Q4_0, 0.093},   {"Q4_1", WEFT_Q4_1, 0.085},
    {"Q5_0", WEFT_Q5_0, 0.047},     {"Q5_1", WEFT_Q5_1, 0.042},   {"Q8_0", WEFT_Q8_0, 0.006},
    {"Q2_K", WEFT_Q2_K, 0.32},      {"Q3_K_S", WEFT_Q3_K, 0.165}, {"Q4_K_S", WEFT_Q4_K, 0.078},
    {"Q5_K_S", WEFT_Q5_K, 0.039},   {"Q6_K", WEFT_Q6_K, 0.0195},  {"IQ4_NL", WEFT_IQ4_NL, 0.083},
    {"IQ4_XS", WEFT_IQ4_XS, 0.084},
};
enum { N_FILES = sizeof FILES / sizeof *FILES, EVERY = CLAIMS_REPEATED(1, 3, 7) /* tensors of each file */ };

static weft__gguf *open_model(const char *type)
{
    const char *path = shared_path("models/tiny-llama.%s.gguf", type);
    weft__gguf *g;
    weft_error err;
    if (!path) skip_material(type);
    if (weft__gguf_open(path, &g, &err)) fail_msg("%s", err.message);
    return g;
}

static double squared_error(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sum;
}

struct totals {
    double ours, theirs, energy;
    int n_tensors;
};

static void compare_tensor(const weft__tensor_desc *q, const weft__tensor_desc *f16, double bound, struct totals *t)
{
    size_t n = (size_t)q->n_elems;
    float *want = weft__alloc_array(n, sizeof *want), *got = weft__alloc_array(n, sizeof *got);
    uint8_t *bytes = weft__alloc((size_t)q->n_bytes);
    weft_error err;
    assert_true(want && got && bytes && f16 && f16->n_elems == q->n_elems);
    assert_true(weft__quant_decode_row(f16->dtype, weft__tensor_data(f16), want, (int64_t)n));
    assert_true(weft__quant_decode_row(q->dtype, weft__tensor_data(q), got, (int64_t)n));
    double theirs = squared_error(want, got, n), energy = 0;
    for (size_t i = 0; i < n; i++) energy += (double)want[i] * want[i];
    if (!(sqrt(theirs / energy) <= bound)) fail_msg("%s: the file is off by %g", q->name, sqrt(theirs / energy));
    if (weft__quant_encode_rows(q->dtype, want, bytes, (int64_t)(n / q->d[0]), (int64_t)q->d[0], NULL, &err))
        fail_msg("%s", err.message);
    assert_true(weft__quant_decode_row(q->dtype, bytes, got, (int64_t)n));
    double ours = squared_error(want, got, n);
    if (!(ours <= theirs))
        fail_msg("%s: RMS error %g, the reference's is %g", q->name, sqrt(ours / (double)n), sqrt(theirs / (double)n));
    *t = (struct totals){t->ours + ours, t->theirs + theirs, t->energy + energy, t->n_tensors + 1};
    weft__free(bytes);
    weft__free(got);
    weft__free(want);
}

static void no_format_is_worse_than_the_reference(void **state)
{
    (void)state;
    weft__gguf *f16 = open_model("f16");
    for (int i = 0; i < N_FILES; i++) {
        weft__gguf *g = open_model(FILES[i].file);
        struct totals t = {0};
        const weft__tensor_set *set = weft__gguf_tensors(g);
        for (size_t k = 0; k < set->n; k += EVERY)
            if (set->items[k].dtype == FILES[i].dtype)
                compare_tensor(&set->items[k], weft__tensor_find(weft__gguf_tensors(f16), set->items[k].name),
                               FILES[i].bound, &t);
        assert_true(t.n_tensors > 20 / EVERY);
        printf("%-7s relative RMS error %.5f, reference %.5f, ratio %.4f\n", FILES[i].file, sqrt(t.ours / t.energy),
               sqrt(t.theirs / t.energy), sqrt(t.ours / t.theirs));
        weft__gguf_close(&g);
    }
    weft__gguf_close(&f16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_format_is_worse_than_the_reference)};
    return claims_status(cmocka_run_group_tests_name("quant_models", tests, NULL, NULL));
}
