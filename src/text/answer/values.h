// SPDX-License-Identifier: Apache-2.0
/* values.h: from the plain text of a parameter to JSON, by what the tool's schema says of its type.
 *
 * A string is the text as it stands where the schema allows strings alone. Otherwise what is JSON of an allowed type is
 * that, and the rest is a string, so that nothing is refused; where nothing is known of the type, the same but that
 * a text in quotes is a string with quotes. Stateless. */
#ifndef WEFT_TEXT_ANSWER_VALUES_H
#define WEFT_TEXT_ANSWER_VALUES_H

#include "base/json.h"

/* 1 when a function of that name is among `tools`, an array as OpenAI has it. */
int weft__answer_offers(const weft__json *tools, const char *name, size_t n);
/* The schema of the parameters of a function among `tools` (an array as OpenAI has it, or NULL), or NULL. */
const weft__json *weft__answer_schema(const weft__json *tools, const char *name, size_t n);
/* Of an object's schema that of a property, and of an array's that of its elements; NULL where it says nothing. */
const weft__json *weft__answer_schema_of(const weft__json *schema, const char *property, size_t n);
const weft__json *weft__answer_schema_items(const weft__json *schema);

/* Types that a schema allows, as bits 1 << weft__json_kind; all of them where it does not say. */
unsigned weft__answer_types(const weft__json *schema);

/* Appends text[0..n) as JSON. spelled: WEFT__ANSWER_... of format.h, CDATA and PYTHON. */
void weft__answer_put_value(weft__strbuf *out, const char *text, size_t n, const weft__json *schema, unsigned spelled);

#endif
