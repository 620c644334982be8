// SPDX-License-Identifier: Apache-2.0
/* schema_multiple.c: multiples of a number within bounds: listed where they are few; else an automaton that keeps the
 * remainder while it reads digits, together with that of the bounds. Readers divide in binary and ask whether the
 * quotient is whole: so fractions that binary numbers do not hold are listed only, each with that question asked. One
 * thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "text/grammar/build.h"
#include "text/grammar/parts.h"
#include "text/grammar/schema_number.h"

enum { MAX_LISTED = 2048, MAX_REMAINDERS = 4096 };

/* A decimal as a whole number of 10^-scale; 0 when it is too large. */
static int in_units(weft__gram_decimal x, int scale, int64_t *out)
{
    int64_t power = weft__gram_power_of_ten(scale);
    if (x.whole > WEFT__GRAM_LARGEST / power / 2) return 0;
    *out = x.whole * power + x.part * weft__gram_power_of_ten(scale - x.scale);
    if (x.negative) *out = -*out;
    return 1;
}

static int put_unit(char *text, size_t room, int64_t v, int scale)
{
    int64_t power = weft__gram_power_of_ten(scale), size = v < 0 ? -v : v;
    int n = snprintf(text, room, "%s%lld", v < 0 ? "-" : "", (long long)(size / power));
    if (size % power == 0) return n;
    n += snprintf(text + n, room - (size_t)n, ".%0*lld", scale, (long long)(size % power));
    while (text[n - 1] == '0') n--;
    text[n] = 0;
    return n;
}

typedef struct multiple {
    weft__gram_schema *c;
    weft__gram *g;
    const char *at;
    weft__gram_decimal m;
    double value;
    int scale;            /* of what follows */
    int64_t unit, lo, hi; /* in 10^-scale; lo, hi: within the bounds */
    int whole;
} multiple;

/* -1: there is none. */
static int32_t listed(const multiple *x)
{
    int32_t items[MAX_LISTED + 2];
    size_t n = 0;
    int64_t power = weft__gram_power_of_ten(x->scale);
    int64_t first = x->lo >= 0 ? (x->lo + x->unit - 1) / x->unit * x->unit : -(-x->lo / x->unit) * x->unit;
    for (int64_t v = first; v <= x->hi && n < MAX_LISTED + 2; v += x->unit) {
        char text[48];
        int length = put_unit(text, sizeof text, v, x->scale);
        double quotient = strtod(text, NULL) / x->value;
        if ((x->whole && v % power) || (x->m.scale && floor(quotient) != quotient)) continue;
        items[n++] = weft__gram_text(x->g, text, (size_t)length);
    }
    return n ? weft__gram_alt(x->g, items, n) : -1;
}

/* ---- remainders ---- */

/* States: the start, behind '-', behind "0", behind "-0"; then by remainder those within the whole part, and those with
 * 0, 1, ... digits behind the point. */
enum { AT_START, BEHIND_MINUS, BEHIND_ZERO, BEHIND_MINUS_ZERO, FIRST_REMAINDER };

typedef struct remainders {
    weft__gram *g;
    int64_t unit; /* in 10^-places */
    int places;
} remainders;

static int32_t in_whole(const remainders *x, int64_t remainder)
{
    return (int32_t)(FIRST_REMAINDER + remainder % x->unit);
}

static int32_t behind_point(const remainders *x, int digits, int64_t remainder)
{
    return (int32_t)(FIRST_REMAINDER + x->unit * (1 + digits) + remainder % x->unit);
}

static void put_state(const remainders *x, int accept, int32_t minus, int32_t point, const int32_t digits[10])
{
    weft__gram_edge edges[12];
    size_t n = 0;
    if (minus >= 0) edges[n++] = (weft__gram_edge){minus, '-', '-'};
    if (point >= 0) edges[n++] = (weft__gram_edge){point, '.', '.'};
    for (int d = 0; d < 10; d++)
        if (digits && digits[d] >= 0) edges[n++] = (weft__gram_edge){digits[d], (uint8_t)('0' + d), (uint8_t)('0' + d)};
    weft__gram_machine_state(x->g, accept, edges, n);
}

static int is_multiple(const remainders *x, int digits, int64_t remainder)
{
    for (int i = digits; i < x->places; i++) remainder = remainder * 10 % x->unit;
    return remainder == 0;
}

static int32_t remainder_machine(const remainders *x)
{
    int32_t to[10], zero = x->places ? behind_point(x, 0, 0) : -1;
    for (int d = 1; d < 10; d++) to[d] = in_whole(x, d);
    to[0] = BEHIND_ZERO;
    put_state(x, 0, BEHIND_MINUS, -1, to);
    to[0] = x->places ? BEHIND_MINUS_ZERO : -1;
    put_state(x, 0, -1, -1, to);
    put_state(x, 1, -1, zero, NULL);
    put_state(x, 0, -1, zero, NULL);
    for (int64_t r = 0; r < x->unit; r++) {
        for (int d = 0; d < 10; d++) to[d] = in_whole(x, 10 * r + d);
        put_state(x, is_multiple(x, 0, r), -1, x->places ? behind_point(x, 0, r) : -1, to);
    }
    for (int k = 0; k <= x->places && x->places; k++)
        for (int64_t r = 0; r < x->unit; r++) {
            for (int d = 0; d < 10; d++) to[d] = behind_point(x, k + 1, 10 * r + d);
            put_state(x, k > 0 && is_multiple(x, k, r), -1, -1, k < x->places ? to : NULL);
        }
    return weft__gram_machine(x->g, (size_t)(FIRST_REMAINDER + x->unit * (x->places ? x->places + 2 : 1)));
}

/* The language of `body` of rules g, which is let go. */
static weft__gram_automaton *number_language(const multiple *x, weft__gram *g, int32_t body)
{
    weft__gram_automaton *a = NULL;
    weft_error err = {0};
    int32_t root = GRAM_RULE("root");
    if (body < 0) weft__gram_fail(g, WEFT_ARGUMENT, "no number lies between its bounds");
    weft__gram_define(g, root, body);
    weft_status st = weft__gram_language(g, root, &x->c->budget->language_work, &a, &err);
    if (st == WEFT_NO_MEMORY) weft__gram_fail(x->g, st, "no memory for a grammar");
    else if (st == WEFT_LIMIT) weft__gram_schema_fail(x->c, st, x->at, "multipleOf", WEFT__GRAM_TOO_MUCH);
    else if (st) weft__gram_schema_fail(x->c, st, x->at, "multipleOf", "%s", err.message);
    weft__gram_destroy(&g);
    return a;
}

static int32_t held_together(const multiple *x, int64_t unit, int places, const weft__gram_bounds *b)
{
    weft__gram_automaton *within = NULL, *multiples = NULL;
    int32_t node = -1;
    weft__gram *g = weft__gram_create();
    if (g)
        within = number_language(x, g, x->whole ? weft__gram_integers_within(g, b) : weft__gram_numbers_within(g, b));
    g = g && within ? weft__gram_create() : NULL;
    if (g) multiples = number_language(x, g, remainder_machine(&(remainders){g, unit, places}));
    if (!g && (within || !weft__gram_schema_failed(x->c)))
        weft__gram_fail(x->g, WEFT_NO_MEMORY, "no memory for a grammar");
    if (multiples) {
        weft__gram_part parts[2] = {{within, 0}, {multiples, 0}};
        node = weft__gram_schema_common(x->c, x->at, "multipleOf", parts, 2);
    }
    weft__gram_automaton_destroy(&multiples);
    weft__gram_automaton_destroy(&within);
    return node;
}

/* What divides 10^k is seen in the last k digits. */
static int32_t by_last_digits(weft__gram *g, int64_t m, int64_t power)
{
    int32_t items[1000], small[1000];
    size_t n = 0;
    for (int64_t v = 0; v < power; v += m, n++) {
        char text[24];
        int width = power == 10 ? 1 : power == 100 ? 2 : 3;
        int length = snprintf(text, sizeof text, "%0*lld", width, (long long)v);
        items[n] = weft__gram_text(g, text, (size_t)length);
        length = snprintf(text, sizeof text, "%lld", (long long)v);
        small[n] = weft__gram_text(g, text, (size_t)length);
    }
    int32_t last = weft__gram_alt(g, items, n), few = weft__gram_alt(g, small, n), first = GRAM_CLASS({'1', '9'});
    int32_t large = GRAM_SEQ(first, GRAM_DIGITS(0, 13), last), minus = GRAM_OPTIONAL(GRAM_TEXT("-"));
    return GRAM_SEQ(minus, GRAM_ALT(few, large));
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Those that are too many to be listed. */
static int32_t unlisted(const multiple *x, const weft__gram_bounds *b)
{
    int64_t unit = x->m.whole * weft__gram_power_of_ten(x->m.scale) + x->m.part, power = 10;
    int64_t divisor = common_divisor(unit, weft__gram_power_of_ten(x->m.scale));
    int places = x->m.scale;
    if (weft__gram_power_of_ten(places) / divisor % 5 == 0)
        return weft__gram_schema_fail(x->c, WEFT_UNSUPPORTED, x->at, "multipleOf",
                                      "a fraction that binary numbers do not hold is taken where bounds leave at most "
                                      "%d multiples",
                                      MAX_LISTED);
    if (x->whole) {
        unit /= divisor;
        places = 0;
    }
    while (power <= 1000 && power % unit) power *= 10;
    if (!places && !b->has_lo && !b->has_hi && power <= 1000) return by_last_digits(x->g, unit, power);
    if (unit * (places + 2) > MAX_REMAINDERS)
        return weft__gram_schema_fail(x->c, WEFT_UNSUPPORTED, x->at, "multipleOf",
                                      "one of so many digits is taken where bounds leave at most %d multiples",
                                      MAX_LISTED);
    int32_t node = held_together(x, unit, places, b);
    return node >= 0 ? node : weft__gram_schema_fail(x->c, WEFT_ARGUMENT, x->at, "multipleOf", "no multiple fits");
}

int32_t weft__gram_multiples(weft__gram_schema *c, const weft__json *schema, const char *at, int whole,
                             const weft__gram_bounds *b)
{
    const weft__json *v = weft__json_get(schema, "multipleOf");
    multiple x = {.c = c, .g = weft__gram_schema_rules(c), .at = at, .whole = whole};
    if (!weft__json_double(v, &x.value) || !(x.value > 0))
        return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "multipleOf", "must be a number above 0");
    if (!weft__gram_decimal_read(v, &x.m))
        return weft__gram_schema_fail(c, WEFT_LIMIT, at, "multipleOf", "has too many digits");
    x.scale = x.m.scale > b->lo.scale ? x.m.scale : b->lo.scale;
    if (!in_units(x.m, x.scale, &x.unit))
        return weft__gram_schema_fail(c, WEFT_LIMIT, at, "multipleOf", "is too large");
    if (b->has_lo && b->has_hi && in_units(b->lo, x.scale, &x.lo) && in_units(b->hi, x.scale, &x.hi)) {
        x.lo += b->open_lo;
        x.hi -= b->open_hi;
        if ((x.hi - x.lo) / x.unit < MAX_LISTED) {
            int32_t node = listed(&x);
            return node >= 0 ? node : weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "multipleOf", "no multiple fits");
        }
    }
    return unlisted(&x, b);
}
