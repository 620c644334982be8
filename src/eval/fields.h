// SPDX-License-Identifier: Apache-2.0
/* fields.h: what a document gives for doc_to_text and the others. Pure. */
#ifndef WEFT_EVAL_FIELDS_H
#define WEFT_EVAL_FIELDS_H

#include "eval/task.h"

/* A text, number or list as JSON, to be freed; *out NULL: the task has no such field. With choices, a text of digits
 * alone is a number; is_list: one in [ ] is a list. Fails with the field's name: WEFT_ARGUMENT, WEFT_FORMAT. */
weft_status weft__eval_field_of(const weft__eval_task *t, const weft__eval_field *f, const char *what,
                                const weft__json *doc, int is_list, weft__json **out, weft_error *err);
/* doc_to_choice: an array of texts, at least one, or *out NULL where the task has none. */
weft_status weft__eval_choices_of(const weft__eval_task *t, const weft__json *doc, weft__json **out, weft_error *err);
/* The right answers' texts: doc_to_target, looked up in the choices where it is their number. An array of texts. */
weft_status weft__eval_golds_of(const weft__eval_task *t, const weft__json *doc, weft__json **out, weft_error *err);
/* A value as a text; appended. */
void weft__eval_put_value(weft__strbuf *out, const weft__json *v);

#endif
