// SPDX-License-Identifier: Apache-2.0
/* engine_apply.c: adapters that are merged into a file (weft_adapter_apply): only into the base that they were trained
 * on. Our own model and one of its styles, and that model with another last norm. */
#include "unit/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "format/gguf.h"
#include "weft/weft.h"

#define MODEL "models/alderbrook.gguf"
#define STYLE "models/pirate.gguf"

typedef struct world {
    char folder[32], other[64], out[64];
    weft_adapter_file *style;
} world;

static unsigned char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*n);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

/* The tensor's data within the bytes of a file. */
static float *find(unsigned char *bytes, size_t n, const char *name, size_t *n_bytes)
{
    weft__gguf *g;
    weft_error err = {0};
    assert_int_equal(weft__gguf_parse(bytes, n, "file", &g, &err), WEFT_OK);
    const weft__tensor_desc *t = weft__tensor_find(weft__gguf_tensors(g), name);
    assert_non_null(t);
    void *data = bytes + ((const unsigned char *)weft__tensor_data(t) - bytes);
    *n_bytes = (size_t)t->n_bytes;
    weft__gguf_close(&g);
    return data;
}

/* The model with its last norm a little larger. */
static void write_other(const char *path)
{
    size_t n, n_bytes;
    unsigned char *bytes = read_all(MODEL, &n);
    float *norm = find(bytes, n, "output_norm.weight", &n_bytes);
    for (size_t i = 0; i < n_bytes / sizeof *norm; i++) norm[i] *= 1.25f;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    free(bytes);
}

static int begin(void **state)
{
    world *w = calloc(1, sizeof *w);
    weft_error err = {0};
    assert_non_null(w);
    strcpy(w->folder, "/tmp/weft-apply-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->other, sizeof w->other, "%s/other.gguf", w->folder);
    snprintf(w->out, sizeof w->out, "%s/out.gguf", w->folder);
    write_other(w->other);
    assert_int_equal(weft_adapter_file_open(STYLE, NULL, &w->style, &err),
                     WEFT_OK); /* with no base to be held against */
    *state = w;
    return 0;
}

static int end(void **state)
{
    world *w = *state;
    weft_adapter_file_close(&w->style);
    unlink(w->other);
    unlink(w->out);
    assert_int_equal(rmdir(w->folder), 0); /* nothing else is left behind */
    free(w);
    return 0;
}

static weft_status apply(const world *w, const char *base, weft_error *err)
{
    weft_adapter_use use = {w->style, 1};
    weft_quantize_params params;
    weft_quantize_result result;
    weft_quantize_params_default(&params);
    params.n_threads = 1;
    return weft_adapter_apply(base, w->out, &use, 1, NULL, &params, &result, err);
}

static void its_own_base_takes_it(void **state)
{
    const world *w = *state;
    weft_error err = {0};
    size_t n, n_out, n_bytes;
    assert_int_equal(apply(w, MODEL, &err), WEFT_OK);
    unsigned char *model = read_all(MODEL, &n), *out = read_all(w->out, &n_out);
    assert_int_equal(n, n_out); /* types as they were */
    float *before = find(model, n, "blk.0.attn_q.weight", &n_bytes),
          *after = find(out, n_out, "blk.0.attn_q.weight", &n_bytes);
    assert_memory_not_equal(before, after, n_bytes);
    free(model);
    free(out);
}

static void another_base_of_the_same_shapes_does_not(void **state)
{
    const world *w = *state;
    weft_error err = {0};
    unlink(w->out);
    assert_int_equal(apply(w, w->other, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "was trained on another model"));
    assert_int_equal(access(w->out, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_own_base_takes_it),
        cmocka_unit_test(another_base_of_the_same_shapes_does_not),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
