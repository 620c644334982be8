// SPDX-License-Identifier: Apache-2.0
/* schema_number.h: what the files about numbers of a JSON Schema share: bounds as decimal fractions. */
#ifndef WEFT_TEXT_GRAMMAR_SCHEMA_NUMBER_H
#define WEFT_TEXT_GRAMMAR_SCHEMA_NUMBER_H

#include "text/grammar/schema_parts.h"

#define WEFT__GRAM_LARGEST INT64_C(999999999999999999)   /* of whole numbers that are multiples */
#define WEFT__GRAM_LARGEST_PART INT64_C(999999999999999) /* before a point */

enum { WEFT__GRAM_DIGITS_OF_DOUBLE = 15, WEFT__GRAM_MAX_SCALE = 9 };

/* whole + part / 10^scale, with the sign in front of both. */
typedef struct weft__gram_decimal {
    int negative;
    int64_t whole, part;
    int scale;
} weft__gram_decimal;

/* What a number of a schema is; as many digits behind the point as it needs. 0: more than 15 digits. */
int weft__gram_decimal_read(const weft__json *v, weft__gram_decimal *out);
/* The same with a larger scale. */
weft__gram_decimal weft__gram_decimal_scaled(weft__gram_decimal x, int scale);
int64_t weft__gram_power_of_ten(int n); /* n <= 18 */

/* Both at one scale. A whole number's are whole, and within. */
typedef struct weft__gram_bounds {
    weft__gram_decimal lo, hi;
    int has_lo, has_hi, open_lo, open_hi;
} weft__gram_bounds;

/* 0 after a failure. `whole`: of integers. */
int weft__gram_bounds_read(weft__gram_schema *c, const weft__json *schema, const char *at, int whole,
                           weft__gram_bounds *out);
/* schema_integer.c: whole numbers from a to b, a <= b, without a sign. */
int32_t weft__gram_whole_between(weft__gram *g, uint64_t a, uint64_t b);
/* Numbers within bounds: integers of at most 18 digits, or with up to 15 digits a fraction. -1: there is none. */
int32_t weft__gram_integers_within(weft__gram *g, const weft__gram_bounds *b);
int32_t weft__gram_numbers_within(weft__gram *g, const weft__gram_bounds *b);
/* schema_multiple.c: those that are multiples. -1 after a failure. */
int32_t weft__gram_multiples(weft__gram_schema *c, const weft__json *schema, const char *at, int whole,
                             const weft__gram_bounds *b);

#endif
