/* outputs.h: what a command must not write over: its own inputs, and models and adapters that are something else than it makes. */
#ifndef WEFT_CLI_OUTPUTS_H
#define WEFT_CLI_OUTPUTS_H

/* 1 after a message when `out` is the file or folder `in` (a path, or the name of a pulled model; NULL: none), whatever the two are called. */
int output_is_input(const char *command, const char *out, const char *in);
/* 1 after a message when `out` is an adapter where a model is to be written, or (`adapter`) a GGUF file that is no adapter where one is. */
int output_is_another(const char *command, const char *out, int adapter);

#endif
