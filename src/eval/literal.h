// SPDX-License-Identifier: Apache-2.0
/* literal.h: Python's spelling of values, which task files get by printing a list in a template. Pure. */
#ifndef WEFT_EVAL_LITERAL_H
#define WEFT_EVAL_LITERAL_H

#include "base/json.h"

/* ast.literal_eval for None, True, False, numbers, texts (without prefixes) and lists and tuples of them, at most 32
 * deep: as a JSON value, to be freed. WEFT_FORMAT for all else, with the byte; WEFT_LIMIT; WEFT_NO_MEMORY. */
weft_status weft__eval_literal(const char *s, size_t n, weft__json **out, weft_error *err);

#endif
