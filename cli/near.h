// SPDX-License-Identifier: Apache-2.0
/* near.h: what stands here for a name that other programs have. Pure. */
#ifndef WEFT_CLI_NEAR_H
#define WEFT_CLI_NEAR_H

/* What stands here for an option of llama.cpp, Ollama or vLLM ("-ngl", "--n-gpu-layers", also "--n_gpu_layers=99") that
 * a command was given, as a sentence without a full stop; NULL: it is none that is known. */
const char *near_foreign_option(const char *command, const char *argument);
/* The same for a command ("ps": "weft top"). */
const char *near_foreign_command(const char *word);

#endif
