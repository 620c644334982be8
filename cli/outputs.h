// SPDX-License-Identifier: Apache-2.0
/* outputs.h: where a command cannot write, and what it must not write over: its own inputs, and models and adapters
 * that are something else than it makes. */
#ifndef WEFT_CLI_OUTPUTS_H
#define WEFT_CLI_OUTPUTS_H

#include <stdint.h>

/* The rule, for --help; `out` is a literal. */
#define OUTPUT_RULE(out)                                                                                               \
    out " appears when it is complete. A link is followed; a character device, a FIFO or a pipe is written into; a "   \
        "folder, a\n"                                                                                                  \
        "socket, a disk, a file that may not be written and a file that is read are refused before work starts. A "    \
        "file that\n"                                                                                                  \
        "replaces another may be read by those that could read that one, and by no others."

#define SATURATE_HELP "values beyond F16's 65504 (or its blocks' reach) become the nearest; else they are an error"

/* A line on stderr, when n values were. */
void output_saturated(const char *command, uint64_t n);

/* 1 after a message when nothing can be written to `out` (format/out_file.h tells what can), before anything is read.
 * NULL: 0. */
int output_refused(const char *command, const char *out);
/* The same of an adapter: a file that ends in .gguf, or else a folder, which need not be there. */
int output_adapter_refused(const char *command, const char *out);
/* 1 after a message when `out` is the file or folder `in` (a path, or the name of a pulled model; NULL: none), whatever
 * the two are called; or another part of the split model `in`; or a file that is, or would be, read in the folder `in`:
 * weights, *.json, a template, a tokenizer. */
int output_is_input(const char *command, const char *out, const char *in);
/* 1 after a message when `out` is an adapter where a model is to be written, or (`adapter`) a GGUF file that is no
 * adapter where one is. */
int output_is_another(const char *command, const char *out, int adapter);

#endif
