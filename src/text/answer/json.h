// SPDX-License-Identifier: Apache-2.0
/* json.h: where a JSON value in a growing text ends, and where a member of an object stands in one.
 *
 * Strict but for the spelling of numbers and literals, and keys that come twice: a text that has ended is still to be
 * parsed. Each byte is looked at once. */
#ifndef WEFT_TEXT_ANSWER_JSON_H
#define WEFT_TEXT_ANSWER_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

/* White space of JSON, and of the formats. */
static inline int weft__answer_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Zero at the beginning of a value. */
typedef struct weft__answer_json {
    uint8_t state, digits; /* digits: of an escape that are still to come */
    int depth;
    uint64_t arrays[WEFT__JSON_MAX_DEPTH / 64]; /* a bit per level: it is an array */
} weft__answer_json;

/* Goes on with s[0..n), of a value that is an object, an array or a string. 1: it ended behind *used bytes; 0: it wants
 * more; -1: byte *used cannot follow. */
int weft__answer_json_feed(weft__answer_json *j, const char *s, size_t n, size_t *used);

/* Of the JSON object in s[0..n), which parses: the value of the member `key` (n_key bytes, as the text spells it), or
 * with key NULL that of any; of those with one name the last, which counts. 1 and *value, *n_value within s, or 0
 * without one. */
int weft__answer_json_member(const char *s, size_t n, const char *key, size_t n_key, const char **value,
                             size_t *n_value);

#endif
