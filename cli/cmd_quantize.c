// SPDX-License-Identifier: Apache-2.0
/* cmd_quantize.c: weft quantize: a GGUF file in fewer bits. */
#include <stdio.h>

#include "commands.h"
#include "options.h"
#include "outputs.h"
#include "terminal.h"

static void print_fallbacks(const weft_quantize_result *r)
{
    const char *before = r->n_fallback == 1 ? "tensor has" : "tensors have";
    if (r->n_fallback == 0) return;
    fprintf(stderr, "weft quantize: %d %s rows that are no multiple of the block and took another type:", r->n_fallback,
            before);
    for (size_t i = 0; i < sizeof r->fallbacks / sizeof *r->fallbacks && r->fallbacks[i].n_tensors > 0; i++)
        fprintf(stderr, "%s %d %s for %s", i ? "," : "", r->fallbacks[i].n_tensors,
                weft_dtype_describe(r->fallbacks[i].taken).name, weft_dtype_describe(r->fallbacks[i].wanted).name);
    putc('\n', stderr);
}

int cmd_quantize(int argc, char **argv)
{
    weft_quantize_params params;
    weft_quantize_result r;
    weft_error err = {0};
    progress bar = {0};
    char about[1000];
    int pure = 0, saturate = 0, json = 0, first;
    weft_quantize_params_default(&params);
    params.progress = progress_update;
    params.progress_arg = &bar;
    const option_spec options[] = {
        {"pure", 0, OPT_FLAG, &pure, NULL, "every matrix in the one type, no mix", 0, 0, NULL},
        {"imatrix", 0, OPT_TEXT, &params.imatrix, "F", "importance matrix (weft imatrix makes one)", 0, 0, NULL},
        {"saturate", 0, OPT_FLAG, &saturate, NULL, SATURATE_HELP, 0, 0, NULL},
        {"threads", 't', OPT_INT, &params.n_threads, "THREADS", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL},
        {"json", 0, OPT_FLAG, &json, NULL, "one JSON object: sizes and counts", 0, 0, NULL},
        {0},
    };
    snprintf(about, sizeof about, "Writes IN to OUT with its matrices in TYPE, one of\n%s.\n" OUTPUT_RULE("OUT"),
             weft_quantize_types());
    const command_spec spec = {
        "quantize", "IN OUT TYPE [options]", about, "  weft quantize model-f16.gguf model-q4.gguf Q4_K_M\n", options, 3,
        3};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    params.pure = pure;
    params.saturate = saturate;
    if (output_refused("quantize", argv[first + 1]) || output_is_input("quantize", argv[first + 1], argv[first]) ||
        output_is_input("quantize", argv[first + 1], params.imatrix))
        return EXIT_FAILED;
    progress_stops_on_signals();
    weft_status st = weft_quantize(argv[first], argv[first + 1], argv[first + 2], &params, &r, &err);
    progress_end(&bar);
    if (st) return report("quantize", &err);
    if (json)
        printf("{\"bytes_before\": %llu, \"bytes_after\": %llu, \"tensors\": %d, \"quantized\": %d, \"fallback\": %d, "
               "\"important\": %d, \"saturated\": %llu}\n",
               (unsigned long long)r.bytes_before, (unsigned long long)r.bytes_after, r.n_tensors, r.n_quantized,
               r.n_fallback, r.n_important, (unsigned long long)r.n_beyond);
    else
        fprintf(stderr, "%s: %.2f MB from %.2f MB, %d of %d tensors converted\n", argv[first + 1],
                (double)r.bytes_after / 1e6, (double)r.bytes_before / 1e6, r.n_quantized, r.n_tensors);
    if (params.imatrix)
        fprintf(stderr, "weft quantize: %d of %d matrices by their importance\n", r.n_important, r.n_quantized);
    output_saturated("quantize", r.n_beyond);
    print_fallbacks(&r);
    return EXIT_DONE;
}
