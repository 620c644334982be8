// SPDX-License-Identifier: Apache-2.0
/* adapters.h: the option --adapter [NAME=]PATH[:SCALE], for the commands that take it. */
#ifndef WEFT_CLI_ADAPTERS_H
#define WEFT_CLI_ADAPTERS_H

#include "options.h"
#include "weft/weft.h"

struct adapter_option {
    char name[129];
    char path[4096];
    float scale; /* 1 where none is given */
};

/* Takes one apart; without a name it has its file's, without ".gguf", and the file must be there. What begins with a
 * slash, "./" or "../", or is a file as a whole, is a path, with any '=' in it. 0 with what is wrong with it in why. */
int adapter_option_read(const char *text, struct adapter_option *out, char *why, size_t room);
/* The same; 0 after a message on stderr, which begins with the command. */
int adapter_option_parse(const char *command, const char *text, struct adapter_option *out);
/* All of a list, of which each was checked by adapter_option_parse; room for LIST_MAX. 0 after a message. */
int adapter_options_parse(const char *command, const struct text_list *list, struct adapter_option *out);
/* Opens all of them for the model: files[n], which the caller closes, on failure too, and uses[n]. */
weft_status adapter_options_open(const struct adapter_option *options, int n, const weft_model *model,
                                 weft_adapter_file **files, weft_adapter_use *uses, weft_error *err);
/* Gives the session the stack of all of them. */
weft_status adapter_options_apply(const struct adapter_option *options, int n, const weft_model *model,
                                  weft_session *session, weft_error *err);

#endif
