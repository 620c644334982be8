// SPDX-License-Identifier: Apache-2.0
/* cmd_imatrix.c: weft imatrix: which inputs of a model's matrices matter, for weft quantize. */
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "options.h"
#include "outputs.h"
#include "prompt.h"
#include "rope.h"
#include "terminal.h"

struct imatrix_options {
    const char *text, *out;
    int32_t threads;
    weft_imatrix_params params;
    rope_options rope;
};

static weft_status collect(struct imatrix_options *o, const char *path, weft_error *err)
{
    weft_model_params mp;
    weft_model *model = NULL;
    progress bar = {0};
    char *text = NULL;
    int32_t *ids = NULL, n_chunks = 0;
    size_t n = 0, n_ids = 0;
    weft_model_params_default(&mp);
    mp.renew_plan = 1;
    mp.n_threads = o->threads;
    mp.rope = o->rope.params;
    mp.progress = o->params.progress = progress_update;
    mp.progress_arg = o->params.progress_arg = &bar;
    o->params.dataset = o->text;
    weft_status st = read_text(o->text, &text, &n, err);
    if (!st) st = weft_model_open(path, &mp, &model, err);
    if (!st && !weft_model_tokenizer(model)) st = weft_fail(err, WEFT_UNSUPPORTED, "the model has no tokenizer");
    if (!st) st = tokenize_text(weft_model_tokenizer(model), text, n, WEFT_TOKENIZE_BOS, &ids, &n_ids, err);
    if (!st) st = weft_imatrix_collect(model, ids, (int64_t)n_ids, &o->params, o->out, &n_chunks, err);
    progress_end(&bar);
    if (!st) fprintf(stderr, "%s: importance from %d chunks\n", o->out, n_chunks);
    free(ids);
    free(text);
    weft_model_close(&model);
    return st;
}

int cmd_imatrix(int argc, char **argv)
{
    struct imatrix_options o = {.text = NULL, .out = NULL};
    int first;
    weft_imatrix_params_default(&o.params);
    const option_spec options[] = {
        {"file", 'f', OPT_TEXT, &o.text, "TEXT", "a text like what the model will see", 0, 0, NULL},
        {"output", 'o', OPT_TEXT, &o.out, "F", "file for the matrix", 0, 0, NULL},
        {"ctx", 'c', OPT_INT, &o.params.chunk, "N", "tokens per chunk (512, or the model's context)", 4, 1 << 20, NULL},
        ROPE_OPTIONS(&o.rope),
        {"chunks", 0, OPT_INT, &o.params.max_chunks, "N", "only the first N chunks", 1, 1 << 30, NULL},
        {"threads", 't', OPT_INT, &o.threads, "THREADS", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL},
        {0},
    };
    const command_spec spec = {
        "imatrix",
        "MODEL -f TEXT -o F [options]",
        "Runs the model over TEXT and records how large the inputs of each matrix are: what 'weft quantize\n"
        "--imatrix' then spends its bits on. The file has the form of llama-imatrix's.\n" OUTPUT_RULE("F"),
        "  weft imatrix model-f16.gguf -f calibration.txt -o model.imatrix\n",
        options,
        1,
        1};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!rope_options_check("imatrix", &o.rope)) return EXIT_USAGE;
    if (!o.text || !o.out) {
        fprintf(stderr, "weft imatrix: %s is missing\n", o.text ? "-o" : "-f");
        return EXIT_USAGE;
    }
    if (output_refused("imatrix", o.out) || output_is_input("imatrix", o.out, argv[first]) ||
        output_is_input("imatrix", o.out, o.text))
        return EXIT_FAILED;
    weft_error err = {0};
    return collect(&o, argv[first], &err) ? report("imatrix", &err) : EXIT_DONE;
}
