// SPDX-License-Identifier: Apache-2.0
/* cmd_convert.c: weft convert: a Hugging Face folder to a GGUF file. */
#include <stdio.h>

#include "commands.h"
#include "options.h"
#include "outputs.h"
#include "terminal.h"

int cmd_convert(int argc, char **argv)
{
    weft_convert_params params;
    weft_error err = {0};
    progress bar = {0};
    const char *type = NULL;
    int first, saturate = 0;
    weft_convert_params_default(&params);
    params.progress = progress_update;
    params.progress_arg = &bar;
    const option_spec options[] = {
        {"type", 0, OPT_TEXT, &type, "TYPE", "of the matrices: bf16, f16, f32, q8_0, ... (as they are stored)", 0, 0,
         NULL},
        {"pre", 0, OPT_TEXT, &params.pre_tokenizer, "NAME",
         "pre-tokenizer, where it is not recognized: llama-bpe, qwen2, ...", 0, 0, NULL},
        {"saturate", 0, OPT_FLAG, &saturate, NULL, SATURATE_HELP, 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "convert",
        "DIR OUT.gguf [options]",
        "Writes the Hugging Face folder DIR (config.json, safetensors, tokenizer files) as a GGUF file.\n"
        "Vectors and routers become F32. Its tokenizer is the folder's, with keys tokenizer.weft.* where GGUF has "
        "none;\n"
        "what cannot be said is refused (docs/howto/convert.md).\n" OUTPUT_RULE("OUT"),
        "  weft convert Llama-3.2-1B/ llama.gguf --type q8_0\n",
        options,
        2,
        2};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (type && (params.dtype = weft_dtype_from_name(type)) < 0) {
        fprintf(stderr, "weft convert: --type %s: there is no such type\n", type);
        return EXIT_USAGE;
    }
    params.saturate = saturate;
    if (output_refused("convert", argv[first + 1]) || output_is_input("convert", argv[first + 1], argv[first]))
        return EXIT_FAILED;
    progress_stops_on_signals();
    weft_status st = weft_convert(argv[first], argv[first + 1], &params, &err);
    progress_end(&bar);
    return st ? report("convert", &err) : EXIT_DONE;
}
