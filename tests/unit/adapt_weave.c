// SPDX-License-Identifier: Apache-2.0
/* adapt_weave.c: claims about stacks of adapters as one change of a matrix, against plain arithmetic in double. */
#include "unit/adapt_store_fixture.h"

#include <math.h>

/* What the definition says: W + sum weight (g (W + s B A) - W), by row of the pair. */
static void by_definition(const weft__adapt_use *uses, int n, double *w)
{
    double out[N * K];
    for (int i = 0; i < N * K; i++) out[i] = (double)base_q[i];
    for (int u = 0; u < n; u++) {
        const weft__adapt_pair *p = &uses[u].adapter->pairs[0];
        for (int r = 0; r < N; r++) {
            double row[K], norm = 0, g = 1;
            for (int c = 0; c < K; c++) {
                row[c] = (double)base_q[r * K + c];
                for (int j = 0; j < p->rank; j++)
                    row[c] += (double)p->scale * (double)p->b[r * p->rank + j] * (double)p->a[j * K + c];
                norm += row[c] * row[c];
            }
            if (p->magnitude) g = (double)p->magnitude[r] / sqrt(norm);
            for (int c = 0; c < K; c++)
                out[r * K + c] += (double)uses[u].scale * (g * row[c] - (double)base_q[r * K + c]);
        }
    }
    memcpy(w, out, sizeof out);
}

/* The matrix that a woven change stands for. */
static double changed(const weft_lora *x, int r, int c)
{
    double v = (double)base_q[r * K + c] * (x->gain ? (double)x->gain[r] : 1);
    const float *a = x->a, *b = x->b;
    for (int j = 0; j < x->rank; j++) v += (double)x->scale * (double)b[r * x->rank + j] * (double)a[j * K + c];
    return v;
}

static void stacks_are_their_definition(void **state)
{
    (void)state;
    weft__adapt_base base = base_with_weights();
    weft__adapt *plain = open_adapter(write_adapter("plain", 3, 4, 8, 0)),
                *dora = open_adapter(write_adapter("dora", 11, 2, 3, 1)),
                *other = open_adapter(write_adapter("other", 29, 3, 1, 0));
    const weft__adapt_use all[] = {{plain, 1}, {dora, 0.5f}, {other, -1.25f}};
    double want[N * K];
    weft_error err = {0};
    for (int first = 0; first < 3; first++)
        for (int n = 1; first + n <= 3; n++) {
            weft__adapt_woven w;
            by_definition(all + first, n, want);
            if (weft__adapt_weave(all + first, n, &base, &w, &err)) fail_msg("%s", err.message);
            for (int i = 0; i < N * K; i++) {
                double got = changed(&w.lora[0], i / K, i % K);
                if (!(fabs(got - want[i]) <= 2e-6))
                    fail_msg("stack of %d from %d: element %d is %.9g, not %.9g", n, first, i, got, want[i]);
            }
            for (int i = 1; i < w.n; i++) assert_true(w.lora[i].rank == 0 && !w.lora[i].gain);
            weft__adapt_woven_free(&w);
        }
    weft__adapt_close(&plain);
    weft__adapt_close(&dora);
    weft__adapt_close(&other);
}

/* A folder's base has its rows in halves, and a fused tensor's ranges are graph weights of their own. */
static void rows_go_where_the_base_has_them(void **state)
{
    (void)state;
    weft__adapt_base base = base_with_weights();
    weft__adapt *a = open_adapter(write_adapter("plain", 3, 4, 8, 0));
    const weft__adapt_use use = {a, 1};
    const float *b = a->pairs[0].b;
    weft__adapt_woven w;
    base.targets[0].heads = HEADS;
    assert_int_equal(weft__adapt_weave(&use, 1, &base, &w, NULL), WEFT_OK);
    for (int r = 0; r < N; r++) {
        int half = N / HEADS, head = r / half, i = r % half,
            from = head * half + (i < half / 2 ? 2 * i : 2 * (i - half / 2) + 1);
        for (int j = 0; j < 4; j++) assert_true(((const float *)w.lora[0].b)[r * 4 + j] == 2 * b[from * 4 + j]);
    }
    weft__adapt_woven_free(&w);
    base.targets[0].heads = 0;
    base.targets[0].first = 5;
    base.targets[0].n = 3;
    assert_int_equal(weft__adapt_weave(&use, 1, &base, &w, NULL), WEFT_OK);
    for (int i = 0; i < 12; i++) assert_true(((const float *)w.lora[0].b)[i] == 2 * b[20 + i]);
    weft__adapt_woven_free(&w);
    weft__adapt_close(&a);
}

static void weaving_says_what_it_cannot(void **state)
{
    (void)state;
    weft__adapt_base base = made_base(); /* without bytes: a compiled plan */
    weft__adapt *dora = open_adapter(write_adapter("dora", 11, 2, 3, 1)),
                *wide = open_adapter(write_adapter("wide", 5, 1024, 1, 0));
    const weft__adapt_use one = {dora, 1}, two[] = {{wide, 1}, {wide, 1}};
    weft__adapt_woven w;
    weft_error err = {0};
    assert_int_equal(weft__adapt_weave(&one, 1, &base, &w, &err), WEFT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "compiled plan"));
    assert_int_equal(weft__adapt_weave(two, 1, &base, &w, &err), WEFT_OK);
    weft__adapt_woven_free(&w);
    assert_int_equal(weft__adapt_weave(two, 2, &base, &w, &err), WEFT_LIMIT);
    assert_non_null(strstr(err.message, "2048 together"));
    weft__adapt_close(&dora);
    weft__adapt_close(&wide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_are_their_definition),
        cmocka_unit_test(rows_go_where_the_base_has_them),
        cmocka_unit_test(weaving_says_what_it_cannot),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
