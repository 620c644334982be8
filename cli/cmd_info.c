// SPDX-License-Identifier: Apache-2.0
/* cmd_info.c: weft info: metadata, tensors and sizes of a model file, whether or not its architecture can be run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "options.h"
#include "provider.h"
#include "rope.h"
#include "terminal.h"

enum { SHOWN_ITEMS = 6, VALUE_BYTES = 200 };

/* The value as JSON, cut at `capacity`; free(). NULL without memory. */
static char *value_text(const weft_file *f, int64_t i, int64_t max_items, int whole, weft_error *err)
{
    size_t n = 0, capacity = VALUE_BYTES;
    char *text = malloc(capacity);
    if (!text || weft_file_meta_json(f, i, max_items, text, capacity, &n, err)) goto fail;
    if (n < capacity) return text;
    if (!whole) {
        memcpy(text + capacity - 4, "...", 4);
        return text;
    }
    free(text);
    capacity = n + 1;
    if (!(text = malloc(capacity)) || weft_file_meta_json(f, i, max_items, text, capacity, &n, err)) goto fail;
    return text;
fail:
    if (!text) weft_fail(err, WEFT_NO_MEMORY, "no memory for a metadata value");
    free(text);
    return NULL;
}

struct totals {
    uint64_t n_params, n_bytes;
};

static struct totals add_up(const weft_file *f)
{
    struct totals t = {0, 0};
    weft_tensor_info info;
    for (int64_t i = 0; i < weft_file_n_tensors(f); i++) {
        if (weft_file_tensor(f, i, &info, NULL)) continue;
        t.n_params += (uint64_t)(info.d[0] * info.d[1] * info.d[2] * info.d[3]);
        t.n_bytes += info.n_bytes;
    }
    return t;
}

static weft_status print_text(const weft_file *f, const char *path, int tensors, weft_error *err)
{
    struct totals sum = add_up(f);
    char kind[32] = "Hugging Face folder";
    if (weft_file_plan_layout(f)) snprintf(kind, sizeof kind, "compiled plan");
    if (weft_file_version(f)) snprintf(kind, sizeof kind, "GGUF version %u", weft_file_version(f));
    printf("%s: %s, %lld tensors, %.2f M parameters, %.2f MB of weights\n\n", path, kind,
           (long long)weft_file_n_tensors(f), (double)sum.n_params / 1e6, (double)sum.n_bytes / 1e6);
    for (int64_t i = 0; i < weft_file_n_meta(f); i++) {
        weft_meta_info m;
        weft_status st = weft_file_meta(f, i, &m, err);
        if (st) return st;
        char *value = value_text(f, i, SHOWN_ITEMS, 0, err);
        if (!value) return (weft_status)err->status;
        print_clean(stdout, m.key, strlen(m.key), 44);
        putchar(' ');
        print_clean(stdout, value, strlen(value), 0);
        if (m.count > SHOWN_ITEMS) printf("  (%llu in all)", (unsigned long long)m.count);
        putchar('\n');
        free(value);
    }
    if (!tensors) return WEFT_OK;
    printf("\n%-40s %-8s %-24s %12s\n", "tensor", "type", "dimensions", "bytes");
    for (int64_t i = 0; i < weft_file_n_tensors(f); i++) {
        weft_tensor_info t;
        char dims[64];
        int at = 0;
        weft_status st = weft_file_tensor(f, i, &t, err);
        if (st) return st;
        for (int d = 0; d < t.n_dims; d++)
            at += snprintf(dims + at, sizeof dims - (size_t)at, "%s%lld", d ? " x " : "", (long long)t.d[d]);
        print_clean(stdout, t.name, strlen(t.name), 40);
        printf(" %-8s %-24s %12llu\n", weft_dtype_describe(t.dtype).name, dims, (unsigned long long)t.n_bytes);
    }
    return WEFT_OK;
}

static weft_status put_json(const weft_file *f, const char *path, weft__strbuf *t, weft_error *err)
{
    struct totals sum = add_up(f);
    weft_status st;
    weft__strbuf_puts(t, "{\"file\": ");
    weft__json_write_string(t, path, strlen(path));
    weft__strbuf_printf(
        t, ", \"version\": %u, \"n_tensors\": %lld, \"n_params\": %llu, \"n_bytes\": %llu, \"metadata\": {",
        weft_file_version(f), (long long)weft_file_n_tensors(f), (unsigned long long)sum.n_params,
        (unsigned long long)sum.n_bytes);
    for (int64_t i = 0; i < weft_file_n_meta(f); i++) {
        weft_meta_info m;
        if ((st = weft_file_meta(f, i, &m, err))) return st;
        char *value = value_text(f, i, INT64_MAX, 1, err);
        if (!value) return (weft_status)err->status;
        if (i) weft__strbuf_puts(t, ", ");
        weft__json_write_string(t, m.key, strlen(m.key));
        weft__strbuf_printf(t, ": %s", value);
        free(value);
    }
    weft__strbuf_puts(t, "}, \"tensors\": [");
    for (int64_t i = 0; i < weft_file_n_tensors(f); i++) {
        weft_tensor_info x;
        if ((st = weft_file_tensor(f, i, &x, err))) return st;
        weft__strbuf_puts(t, i ? ", {\"name\": " : "{\"name\": ");
        weft__json_write_string(t, x.name, strlen(x.name));
        weft__strbuf_printf(t, ", \"type\": \"%s\", \"shape\": [", weft_dtype_describe(x.dtype).name);
        for (int d = 0; d < x.n_dims; d++) weft__strbuf_printf(t, "%s%lld", d ? ", " : "", (long long)x.d[d]);
        weft__strbuf_printf(t, "], \"bytes\": %llu}", (unsigned long long)x.n_bytes);
    }
    weft__strbuf_puts(t, "]}\n");
    return t->failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for the description") : WEFT_OK;
}

/* --plan: the model is loaded for it. */
static weft_status print_plan(const char *path, int32_t n_ctx, const weft_rope_params *rope, weft_error *err)
{
    weft_model *model = NULL;
    weft_status st = open_shown(path, 0, n_ctx, rope, &model, err);
    if (st) return st;
    const char *text = weft_model_plan_text(model);
    if (!text[0]) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the plan");
    else fputs(text, stdout);
    weft_model_close(&model);
    return st;
}

int cmd_info(int argc, char **argv)
{
    int json = 0, no_tensors = 0, check = 0, plan = 0, first;
    int32_t n_ctx = 0;
    rope_options rope = {0};
    const option_spec options[] = {
        {"no-tensors", 0, OPT_FLAG, &no_tensors, NULL, "metadata only", 0, 0, NULL},
        {"check", 0, OPT_FLAG, &check, NULL, "read all of a compiled plan and compare its checksums", 0, 0, NULL},
        {"plan", 0, OPT_FLAG, &plan, NULL, "instead: how it would run here, op by op, with kernels and memory", 0, 0,
         NULL},
        PROVIDER_OPTION,
        {"ctx", 'c', OPT_INT, &n_ctx, "CTX", "with --plan: context that the rope scaling assumes (the model's)", 1,
         1 << 28, NULL},
        ROPE_OPTIONS(&rope),
        {"json", 0, OPT_FLAG, &json, NULL, "one JSON object, with every value in full", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "info", "MODEL [options]", "Shows what a model file or a compiled plan holds: metadata, tensors, sizes.",
        NULL,   options,           1,
        1};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    weft_error err = {0};
    weft_file *f = NULL;
    if (plan && (json || check || no_tensors)) {
        fprintf(stderr, "weft info: --plan stands alone\n");
        return EXIT_USAGE;
    }
    if (!rope_options_check("info", &rope)) return EXIT_USAGE;
    static const rope_options nothing;
    if (!plan && (n_ctx || memcmp(&rope, &nothing, sizeof rope))) {
        fprintf(stderr, "weft info: -c and what is about rope are for --plan; leave them out\n");
        return EXIT_USAGE;
    }
    if (plan) return print_plan(argv[first], n_ctx, &rope.params, &err) ? report("info", &err) : EXIT_DONE;
    weft_status st = weft_file_open(argv[first], &f, &err);
    if (!st && check) {
        progress bar = {0};
        st = weft_file_check(f, progress_update, &bar, &err);
        progress_end(&bar);
        if (!st) fprintf(stderr, "%s: the checksums are right\n", argv[first]);
    }
    if (!st && json) {
        weft__strbuf t = {0};
        st = put_json(f, argv[first], &t, &err);
        if (!st) fwrite(t.data, 1, t.len, stdout);
        weft__strbuf_free(&t);
    } else if (!st) {
        st = print_text(f, argv[first], !no_tensors, &err);
    }
    weft_file_close(&f);
    return st ? report("info", &err) : EXIT_DONE;
}
