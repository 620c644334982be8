// SPDX-License-Identifier: Apache-2.0
/* builtins.h: what the files of filters and methods share. Owned by the rendering.
 *
 * Those that no chat template we know uses stand in extras_table.c; weft__jinja_filter and its kin look there last. */
#ifndef WEFT_TEXT_JINJA_BUILTINS_H
#define WEFT_TEXT_JINJA_BUILTINS_H

#include "text/jinja/value.h"

/* The names of a function's parameters, for weft__jinja_bind. */
#define WEFT__JINJA_PARAMS(...) static const char *const names[] = {__VA_ARGS__}
#define WEFT__JINJA_N_PARAMS (sizeof names / sizeof *names)

typedef enum weft__jinja_owner {
    WEFT__JINJA_OF_FILTERS,
    WEFT__JINJA_OF_STR,
    WEFT__JINJA_OF_LIST,
    WEFT__JINJA_OF_TUPLE,
    WEFT__JINJA_OF_DICT
} weft__jinja_owner;
/* The filter or method of that name that templates hardly use, or NULL. */
const weft__jinja_function *weft__jinja_extra(weft__jinja_owner owner, const weft__jinja_str *name);

/* ---- strings (methods.c) ---- */

weft_status weft__jinja_want_str(weft__jinja_ctx *c, const char *what, weft__jinja_val v, const weft__jinja_str **out);
/* Arguments (needle, start, end): the part of s between start and end, in bytes; *outside when start lies beyond the
 * end. */
weft_status weft__jinja_find_args(weft__jinja_ctx *c, const char *what, const weft__jinja_str *s,
                                  const weft__jinja_args *args, weft__jinja_val *needle, size_t *from, size_t *to,
                                  int *outside);
/* split and rsplit with the arguments (sep, maxsplit). */
weft_status weft__jinja_split_by(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, int from_right,
                                 weft__jinja_val *out);

/* ---- lists and dicts (methods_of.c) ---- */

/* n arguments by position, none by name. */
weft_status weft__jinja_bind_positional(weft__jinja_ctx *c, const char *what, const weft__jinja_args *args, size_t n,
                                        size_t n_required, weft__jinja_val *out);
weft_status weft__jinja_dict_view(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                                  weft__jinja_view which, weft__jinja_val *out);
/* Takes entry i out. */
void weft__jinja_list_take(weft__jinja_list *list, size_t i, weft__jinja_val *out);

/* ---- numbers (filters_number.c) ---- */

/* 0 for what Python's float() refuses. */
int weft__jinja_parse_float(const weft__jinja_str *s, double *out);

/* ---- sequences (filters_seq.c) ---- */

int weft__jinja_given_true(weft__jinja_val v);
weft_status weft__jinja_list_of(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_list **out);
/* A generator over what is already in a list. */
weft_status weft__jinja_generate(weft__jinja_ctx *c, weft__jinja_val list, weft__jinja_val *out);
/* A string in lower case, unless case counts; any other value as it is. */
weft_status weft__jinja_lowered(weft__jinja_ctx *c, weft__jinja_val v, int case_sensitive, weft__jinja_val *out);
/* The item's attribute `path`, or what stands in for an undefined one. */
weft_status weft__jinja_path_or(weft__jinja_ctx *c, weft__jinja_val item, weft__jinja_val path,
                                weft__jinja_val otherwise, weft__jinja_val *out);
/* min (better: LT) and max (GT). */
weft_status weft__jinja_extreme(weft__jinja_ctx *c, const char *what, weft__jinja_val v, const weft__jinja_args *args,
                                weft__jinja_op better, weft__jinja_val *out);
/* select, reject and their kin. */
weft_status weft__jinja_choose(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, int by_attribute,
                               int negate, weft__jinja_val *out);

#endif
