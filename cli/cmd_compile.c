// SPDX-License-Identifier: Apache-2.0
/* cmd_compile.c: weft compile: a model packed for this machine, so that starting it is mapping it. */
#include <stdio.h>

#include "commands.h"
#include "options.h"
#include "outputs.h"
#include "terminal.h"

int cmd_compile(int argc, char **argv)
{
    weft_plan_params params;
    weft_plan_result result;
    weft_error err = {0};
    progress bar = {0};
    int first;
    int keep = 0;
    weft_plan_params_default(&params);
    params.progress = progress_update;
    params.progress_arg = &bar;
    const option_spec options[] = {
        {"threads", 't', OPT_INT, &params.n_threads, "N", "threads that pack (one per core)", 1, WEFT_THREADS_MAX,
         NULL},
        {"pre", 0, OPT_TEXT, &params.pre_tokenizer, "NAME",
         "of a folder: its pre-tokenizer, where it is not recognized: llama-bpe, ...", 0, 0, NULL},
        {"keep-weights", 0, OPT_FLAG, &keep, NULL,
         "keep the matrices as they were, too, for DoRA adapters: a file twice as large, of which a half is read for "
         "those only",
         0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "compile",
        "MODEL OUT [options]",
        "Writes MODEL (a GGUF file, a Hugging Face folder, a pulled name) with its weights packed for this\n"
        "machine's processor. OUT then stands wherever MODEL is asked; it starts at once, and processes that use\n"
        "it share its memory. Keep MODEL: on another kind of processor, or by another version of weft, OUT is "
        "compiled\n"
        "again of it when it is used, and refused where MODEL is gone or has changed.\n"
        "'weft info OUT --check' looks for damage.\n" OUTPUT_RULE("OUT"),
        "  weft compile llama.gguf llama.plan\n  weft run llama.plan \"Once upon a time\"\n",
        options,
        2,
        2};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    params.keep_weights = keep;
    if (output_refused("compile", argv[first + 1]) || output_is_input("compile", argv[first + 1], argv[first]))
        return EXIT_FAILED;
    progress_stops_on_signals();
    weft_status st = weft_plan_write(argv[first], argv[first + 1], &params, &result, &err);
    progress_end(&bar);
    if (st) return report("compile", &err);
    fprintf(stderr, "%s: %.2f MB, of %.2f MB of weights\n", argv[first + 1], (double)result.bytes_after / 1e6,
            (double)result.bytes_before / 1e6);
    return EXIT_DONE;
}
