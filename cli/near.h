// SPDX-License-Identifier: Apache-2.0
/* near.h: what the user may have meant: a name that is spelled nearly so, or what stands here for a name that other
 * programs have. Pure. */
#ifndef WEFT_CLI_NEAR_H
#define WEFT_CLI_NEAR_H

#include <stddef.h>

/* Name number i of a list, NULL behind its end. */
typedef const char *(*near_name)(const void *arg, size_t i);

/* The name that is nearest to `word`: one insertion, omission, other letter or two neighbours in each other's place per
 * three of its letters, and for short words one. Of several, one that begins as it does, then one that is as long.
 * NULL: none is as near, or two are as near as each other. */
const char *near_match(const char *word, near_name name, const void *arg);

/* What stands here for an option of llama.cpp, Ollama or vLLM ("-ngl", "--n-gpu-layers", also "--n_gpu_layers=99") that
 * a command was given, as a sentence without a full stop; NULL: it is none that is known. */
const char *near_foreign_option(const char *command, const char *argument);
/* The same for a command ("ps": "weft top"). */
const char *near_foreign_command(const char *word);

#endif
