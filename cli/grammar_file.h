// SPDX-License-Identifier: Apache-2.0
/* grammar_file.h: the grammar of a file, for commands that hold answers to a form. */
#ifndef WEFT_CLI_GRAMMAR_FILE_H
#define WEFT_CLI_GRAMMAR_FILE_H

#include "weft/text.h"

/* Reads GBNF, or with `schema` a JSON Schema, from the file at `path`. Messages begin with the path. */
weft_status grammar_of_file(const weft_tokenizer *tokenizer, const char *path, int schema, weft_grammar **out,
                            weft_error *err);

#endif
