// SPDX-License-Identifier: Apache-2.0
/* schema_number.c: numbers of a JSON Schema as rules: ranges of whole numbers digit by digit, and of what lies between
 * them. Numbers with bounds have no exponent, and near a bound at most 15 digits that count: so that no reader rounds
 * one across it. One thread. */
#include "text/grammar/schema_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/grammar/build.h"

/* ---- decimals ---- */

int64_t weft__gram_power_of_ten(int n)
{
    int64_t power = 1;
    for (int i = 0; i < n; i++) power *= 10;
    return power;
}

weft__gram_decimal weft__gram_decimal_scaled(weft__gram_decimal x, int scale)
{
    if (x.scale >= scale) return x;
    x.part *= weft__gram_power_of_ten(scale - x.scale);
    x.scale = scale;
    return x;
}

int weft__gram_decimal_read(const weft__json *v, weft__gram_decimal *out)
{
    char text[40];
    double d = 0;
    int64_t whole;
    *out = (weft__gram_decimal){0};
    if (weft__json_int(v, &whole) && whole > -WEFT__GRAM_LARGEST && whole < WEFT__GRAM_LARGEST) {
        out->negative = whole < 0;
        out->whole = whole < 0 ? -whole : whole;
        return 1;
    }
    if (!weft__json_double(v, &d)) return 0;
    out->negative = d < 0;
    if (fabs(d) > 9e17) {
        out->whole = WEFT__GRAM_LARGEST;
        return 1;
    }
    snprintf(text, sizeof text, "%.*f", WEFT__GRAM_MAX_SCALE, fabs(d));
    if (strtod(text, NULL) != fabs(d) || fabs(d) >= 1e13) return 0;
    char *point = strpbrk(text, ".,"); /* a program may have set a locale */
    *point = 0;
    out->whole = strtoll(text, NULL, 10);
    out->part = strtoll(point + 1, NULL, 10);
    out->scale = out->part ? WEFT__GRAM_MAX_SCALE : 0;
    for (; out->scale && out->part % 10 == 0; out->scale--) out->part /= 10;
    return 1;
}

static int compare(const weft__gram_decimal *a, const weft__gram_decimal *b)
{
    if (a->negative != b->negative) return a->negative ? -1 : 1;
    int more = a->whole != b->whole ? (a->whole > b->whole) - (a->whole < b->whole)
                                    : (a->part > b->part) - (a->part < b->part);
    return a->negative ? -more : more;
}

/* ---- bounds ---- */

/* The next whole number within a bound. */
static void make_whole(weft__gram_decimal *x, int *open, int up)
{
    int64_t signed_whole = x->negative ? -x->whole : x->whole;
    if (x->part && up != x->negative) signed_whole += up ? 1 : -1;
    if (!x->part && *open) signed_whole += up ? 1 : -1;
    *x = (weft__gram_decimal){signed_whole < 0, signed_whole < 0 ? -signed_whole : signed_whole, 0, 0};
    *open = 0;
}

const weft__json *weft__gram_schema_bound(const weft__json *schema, int up, int exclusive)
{
    const weft__json *plain = weft__json_get(schema, up ? "minimum" : "maximum"),
                     *open = weft__json_get(schema, up ? "exclusiveMinimum" : "exclusiveMaximum");
    int yes = 0;
    if (!weft__json_bool(open, &yes)) return exclusive ? open : plain;
    return yes == exclusive ? plain : NULL;
}

/* Whether a bound asks for whole numbers of more digits than are written. */
static int is_beyond(const weft__json *v, const weft__gram_decimal *x, int up, int exclusive)
{
    int64_t whole;
    if (x->whole < WEFT__GRAM_LARGEST || x->negative == up) return 0;
    return exclusive || !weft__json_int(v, &whole) || whole > WEFT__GRAM_LARGEST || whole < -WEFT__GRAM_LARGEST;
}

/* The stricter of two keywords. 0 after a failure. */
static int read_side(weft__gram_schema *c, const weft__json *schema, const char *at, int up, int whole,
                     weft__gram_decimal *out, int *has, int *open)
{
    static const char *const names[2][2] = {{"maximum", "exclusiveMaximum"}, {"minimum", "exclusiveMinimum"}};
    weft__gram_decimal x;
    double d;
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        const char *key = names[up][exclusive];
        const weft__json *v = weft__gram_schema_bound(schema, up, exclusive);
        if (!v) continue;
        if (!weft__json_double(v, &d)) {
            weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "must be a number");
            return 0;
        }
        if (!weft__gram_decimal_read(v, &x)) {
            weft__gram_schema_fail(c, WEFT_LIMIT, at, key, "has more than 13 digits before the point, or %d behind it",
                                   WEFT__GRAM_MAX_SCALE);
            return 0;
        }
        if (is_beyond(v, &x, up, exclusive)) {
            weft__gram_schema_fail(c, WEFT_LIMIT, at, key, "asks for a number of more than 18 digits; none is written");
            return 0;
        }
        if (*has) {
            int scale = x.scale > out->scale ? x.scale : out->scale;
            x = weft__gram_decimal_scaled(x, scale);
            *out = weft__gram_decimal_scaled(*out, scale);
            int more = compare(&x, out);
            if (up ? more < 0 : more > 0) continue;
            if (more == 0 && !exclusive) continue;
        }
        *out = x;
        *has = 1;
        *open = exclusive;
    }
    if (*has && whole) make_whole(out, open, up);
    return 1;
}

int weft__gram_bounds_read(weft__gram_schema *c, const weft__json *schema, const char *at, int whole,
                           weft__gram_bounds *out)
{
    weft__gram_bounds b = {0};
    if (!read_side(c, schema, at, 1, whole, &b.lo, &b.has_lo, &b.open_lo) ||
        !read_side(c, schema, at, 0, whole, &b.hi, &b.has_hi, &b.open_hi))
        return 0;
    int scale = b.lo.scale > b.hi.scale ? b.lo.scale : b.hi.scale;
    b.lo = weft__gram_decimal_scaled(b.lo, scale);
    b.hi = weft__gram_decimal_scaled(b.hi, scale);
    int more = compare(&b.lo, &b.hi);
    if (b.has_lo && b.has_hi && (more > 0 || (more == 0 && (b.open_lo || b.open_hi)))) {
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, NULL, "no number lies between its bounds");
        return 0;
    }
    *out = b;
    return 1;
}

/* ---- numbers with a fraction ---- */

/* Digits behind a point, between the digits of two bounds. */
typedef struct fraction {
    weft__gram *g;
    char lo[WEFT__GRAM_MAX_SCALE + 1], hi[WEFT__GRAM_MAX_SCALE + 1];
    int n; /* digits of the bounds */
    int open_lo, open_hi;
    int most; /* digits there may be */
} fraction;

static int is_zero_from(const char *digits, int i, int n)
{
    while (i < n && digits[i] == '0') i++;
    return i >= n;
}

/* 1 when a number may end before digit i. `lo`, `hi`: its digits are still those of the bound. */
static int may_end(const fraction *f, int i, int lo, int hi)
{
    return (!lo || (is_zero_from(f->lo, i, f->n) && !f->open_lo)) &&
           (!hi || !is_zero_from(f->hi, i, f->n) || !f->open_hi);
}

static int32_t digits_from(const fraction *f, int i, int lo, int hi);

/* The digits from i on, or none of them; -1: neither. */
static int32_t rest_from(const fraction *f, int i, int lo, int hi)
{
    weft__gram *g = f->g;
    int32_t digits = i < f->most ? digits_from(f, i, lo, hi) : -1;
    if (!may_end(f, i, lo, hi)) return digits;
    return digits < 0 ? GRAM_TEXT("") : GRAM_OPTIONAL(digits);
}

/* Behind all digits of the bounds. */
static int32_t digits_behind(const fraction *f, int i, int lo, int hi)
{
    weft__gram *g = f->g;
    uint32_t left = (uint32_t)(f->most - i);
    if ((lo && hi && (f->open_lo || f->open_hi)) || (hi && f->open_hi)) return -1;
    if (hi) return GRAM_REPEAT(1, left, GRAM_TEXT("0"));
    if (!lo || !f->open_lo) return GRAM_DIGITS(1, left);
    int32_t zeros = GRAM_REPEAT(0, left / 2, GRAM_TEXT("0")), digit = GRAM_CLASS({'1', '9'});
    return GRAM_SEQ(zeros, digit, GRAM_DIGITS(0, left - left / 2 - 1));
}

/* At least one digit, from i on; -1: there is none. */
static int32_t digits_from(const fraction *f, int i, int lo, int hi)
{
    weft__gram *g = f->g;
    int32_t items[3];
    size_t n = 0;
    if (!lo && !hi) return GRAM_DIGITS(1, (uint32_t)(f->most - i));
    if (i >= f->n) return digits_behind(f, i, lo, hi);
    int low = lo ? f->lo[i] : '0', high = hi ? f->hi[i] : '9';
    int same = lo && hi && low == high;
    if (lo) {
        int32_t rest = rest_from(f, i + 1, 1, same);
        char digit = (char)low;
        if (rest >= 0) items[n++] = GRAM_SEQ(weft__gram_text(g, &digit, 1), rest);
    }
    if (!same && low + (lo != 0) <= high - (hi != 0)) {
        int32_t middle = GRAM_CLASS({(uint32_t)(low + (lo != 0)), (uint32_t)(high - (hi != 0))});
        items[n++] = GRAM_SEQ(middle, GRAM_DIGITS(0, (uint32_t)(f->most - i - 1)));
    }
    if (hi && !same) {
        int32_t rest = rest_from(f, i + 1, 0, 1);
        char digit = (char)high;
        if (rest >= 0) items[n++] = GRAM_SEQ(weft__gram_text(g, &digit, 1), rest);
    }
    return n ? weft__gram_alt(g, items, n) : -1;
}

/* A whole part, and behind it a fraction between those of the bounds it is tight to. -1: there is none. */
static int32_t with_fraction(const fraction *f, int64_t from, int64_t to, int lo, int hi)
{
    weft__gram *g = f->g;
    int32_t digits = digits_from(f, 0, lo, hi), ends = may_end(f, 0, lo, hi);
    if (digits < 0 && !ends) return -1;
    int32_t whole = weft__gram_whole_between(g, (uint64_t)from, (uint64_t)to);
    if (digits < 0) return whole;
    int32_t point = GRAM_TEXT(".");
    int32_t behind = GRAM_SEQ(point, digits);
    return GRAM_SEQ(whole, ends ? GRAM_OPTIONAL(behind) : behind);
}

/* From a to b without their signs, 0 <= a <= b; -1 when there is none. `most`: digits behind the point. */
static int32_t magnitude(weft__gram *g, const weft__gram_decimal *a, const weft__gram_decimal *b, int open_a,
                         int open_b, int most)
{
    fraction f = {.g = g, .n = a->scale, .open_lo = open_a, .open_hi = open_b, .most = most};
    int32_t items[3], node;
    size_t n = 0;
    char text[24];
    snprintf(text, sizeof text, "%0*lld", WEFT__GRAM_MAX_SCALE, (long long)a->part);
    memcpy(f.lo, text + WEFT__GRAM_MAX_SCALE - f.n, (size_t)f.n);
    snprintf(text, sizeof text, "%0*lld", WEFT__GRAM_MAX_SCALE, (long long)b->part);
    memcpy(f.hi, text + WEFT__GRAM_MAX_SCALE - f.n, (size_t)f.n);
    if (b->whole - a->whole >= 2) items[n++] = with_fraction(&f, a->whole + 1, b->whole - 1, 0, 0);
    if (a->whole < b->whole) {
        if ((node = with_fraction(&f, a->whole, a->whole, 1, 0)) >= 0) items[n++] = node;
        if ((node = with_fraction(&f, b->whole, b->whole, 0, 1)) >= 0) items[n++] = node;
    } else if ((node = with_fraction(&f, a->whole, a->whole, 1, 1)) >= 0) {
        items[n++] = node;
    }
    return n ? weft__gram_alt(g, items, n) : -1;
}

static int digits_of(const weft__gram_decimal *x)
{
    int n = 1;
    for (int64_t power = 10; n < 19 && x->whole >= power; n++) power *= 10;
    return n;
}

/* Digits of the larger whole part of the bounds. */
static int whole_digits(const weft__gram_bounds *b)
{
    int low = b->has_lo ? digits_of(&b->lo) : 1, high = b->has_hi ? digits_of(&b->hi) : 1;
    return low > high ? low : high;
}

int32_t weft__gram_numbers_within(weft__gram *g, const weft__gram_bounds *b)
{
    const int scale = b->lo.scale;
    const weft__gram_decimal zero = {0, 0, 0, scale}, largest = {0, WEFT__GRAM_LARGEST_PART, 0, scale};
    const weft__gram_decimal lowest = {1, WEFT__GRAM_LARGEST_PART, 0, scale};
    const weft__gram_decimal lo = b->has_lo ? b->lo : lowest, hi = b->has_hi ? b->hi : largest;
    int most = WEFT__GRAM_DIGITS_OF_DOUBLE - whole_digits(b);
    int32_t items[2], node;
    size_t n = 0;
    if (lo.negative) {
        const weft__gram_decimal *from = hi.negative ? &hi : &zero;
        node = magnitude(g, from, &lo, !hi.negative || b->open_hi, b->open_lo, most);
        int32_t minus = GRAM_TEXT("-");
        if (node >= 0) items[n++] = GRAM_SEQ(minus, node);
    }
    if (!hi.negative) {
        node = magnitude(g, lo.negative ? &zero : &lo, &hi, !lo.negative && b->open_lo, b->open_hi, most);
        if (node >= 0) items[n++] = node;
    }
    return n ? weft__gram_alt(g, items, n) : -1;
}

int32_t weft__gram_schema_number(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    weft__gram_bounds b;
    if (!weft__gram_bounds_read(c, schema, at, 0, &b)) return -1;
    if (whole_digits(&b) + b.lo.scale > WEFT__GRAM_DIGITS_OF_DOUBLE - 2)
        return weft__gram_schema_fail(c, WEFT_LIMIT, at, NULL, "bounds of numbers have at most %d digits together",
                                      WEFT__GRAM_DIGITS_OF_DOUBLE - 2);
    if (weft__json_get(schema, "multipleOf")) return weft__gram_multiples(c, schema, at, 0, &b);
    if (!b.has_lo && !b.has_hi) return GRAM_REF(GRAM_RULE("number"));
    int32_t node = weft__gram_numbers_within(g, &b);
    return node >= 0 ? node : weft__gram_schema_fail(c, WEFT_ARGUMENT, at, NULL, "no number lies between its bounds");
}
