// SPDX-License-Identifier: Apache-2.0
/* schema_number.c: numbers of a JSON Schema as rules: ranges of whole numbers digit by digit, and what lies between
 * them. Numbers with bounds have at most 15 digits that count and no exponent, so that no reader rounds one across a
 * bound. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/grammar/build.h"
#include "text/grammar/schema_parts.h"

#define LARGEST INT64_C(999999999999999999)        /* of whole numbers: every reader takes them */
#define LARGEST_PART INT64_C(999999999999999)      /* before a point */
enum { DIGITS_OF_DOUBLE = 15, MAX_LISTED = 2048 }; /* multiples that are listed */

typedef struct bounds {
    int64_t lo, hi;
    int has_lo, has_hi, open_lo, open_hi;
} bounds;

/* Numbers of n digits from a to b, which may begin with zeros. */
static int32_t digits_between(weft__gram *g, const char *a, const char *b, size_t n)
{
    static const char zeros[] = "00000000000000000000", nines[] = "99999999999999999999";
    if (n == 0) return GRAM_TEXT("");
    if (!memcmp(a, zeros, n) && !memcmp(b, nines, n)) return GRAM_DIGITS((uint32_t)n, (uint32_t)n);
    if (*a == *b) {
        int32_t first = weft__gram_text(g, a, 1);
        return GRAM_SEQ(first, digits_between(g, a + 1, b + 1, n - 1));
    }
    int32_t items[3];
    size_t k = 0;
    int32_t low = weft__gram_text(g, a, 1), high = weft__gram_text(g, b, 1);
    items[k++] = GRAM_SEQ(low, digits_between(g, a + 1, nines, n - 1));
    if (*b - *a > 1) {
        int32_t middle = GRAM_CLASS({(uint32_t)*a + 1, (uint32_t)*b - 1});
        items[k++] = GRAM_SEQ(middle, GRAM_DIGITS((uint32_t)n - 1, (uint32_t)n - 1));
    }
    items[k++] = GRAM_SEQ(high, digits_between(g, zeros, b + 1, n - 1));
    return weft__gram_alt(g, items, k);
}

/* Whole numbers from a to b, 0 <= a <= b. */
static int32_t whole_between(weft__gram *g, int64_t a, int64_t b)
{
    int32_t items[20];
    size_t k = 0;
    for (int64_t from = 0, to = 9; from <= b; from = to + 1, to = 10 * to + 9) {
        char lo[24], hi[24];
        if (to < a) continue;
        int n = snprintf(lo, sizeof lo, "%lld", (long long)(from > a ? from : a));
        snprintf(hi, sizeof hi, "%lld", (long long)(to < b ? to : b));
        items[k++] = digits_between(g, lo, hi, (size_t)n);
        if (to >= LARGEST) break;
    }
    return weft__gram_alt(g, items, k);
}

/* One bound; at an integer it is moved to the next whole number. 0 after a failure. */
static int read_bound(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key, int up,
                      int whole, int *has, int64_t *out)
{
    const weft__json *v = weft__json_get(schema, key);
    double d;
    *has = v != NULL;
    if (!v) return 1;
    if (!weft__json_double(v, &d)) {
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "must be a number");
        return 0;
    }
    if (d > 9e17 || d < -9e17) {
        *out = d > 0 ? LARGEST : -LARGEST;
        return 1;
    }
    if (weft__json_int(v, out)) return 1;
    if (!whole && floor(d) != d) {
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, key, "a bound of a number that is not whole is not supported");
        return 0;
    }
    *out = (int64_t)(up ? ceil(d) : floor(d));
    if (floor(d) != d) *has = 2; /* lies within already, where the bound is exclusive */
    return 1;
}

static int read_bounds_of(weft__gram_schema *c, const weft__json *schema, const char *at, int whole, bounds *out)
{
    bounds b = {0};
    int more, less;
    int64_t above = 0, below = 0;
    if (!read_bound(c, schema, at, "minimum", 1, whole, &b.has_lo, &b.lo) ||
        !read_bound(c, schema, at, "maximum", 0, whole, &b.has_hi, &b.hi) ||
        !read_bound(c, schema, at, "exclusiveMinimum", 1, whole, &more, &above) ||
        !read_bound(c, schema, at, "exclusiveMaximum", 0, whole, &less, &below))
        return 0;
    if (whole && more == 1) above++;
    if (whole && less == 1) below--;
    if (more && (!b.has_lo || above >= b.lo)) {
        b.has_lo = 1;
        b.lo = above;
        b.open_lo = !whole;
    }
    if (less && (!b.has_hi || below <= b.hi)) {
        b.has_hi = 1;
        b.hi = below;
        b.open_hi = !whole;
    }
    if (b.has_lo && b.has_hi && (b.lo > b.hi || (b.lo == b.hi && (b.open_lo || b.open_hi)))) {
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, NULL, "no number lies between its bounds");
        return 0;
    }
    *out = b;
    return 1;
}

/* ---- multiples ---- */

static int32_t listed(weft__gram *g, int64_t lo, int64_t hi, int64_t m)
{
    int32_t items[MAX_LISTED + 2];
    size_t n = 0;
    int64_t first = lo >= 0 ? (lo + m - 1) / m * m : -(-lo / m) * m;
    for (int64_t x = first; x <= hi; x += m) {
        char text[24];
        int length = snprintf(text, sizeof text, "%lld", (long long)x);
        items[n++] = weft__gram_text(g, text, (size_t)length);
    }
    return n ? weft__gram_alt(g, items, n) : -1;
}

static int32_t multiples(weft__gram_schema *c, const bounds *b, int64_t m, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    if (b->has_lo && b->has_hi && (b->hi - b->lo) / m < MAX_LISTED) {
        int32_t node = listed(g, b->lo, b->hi, m);
        return node >= 0 ? node : weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "multipleOf", "no multiple fits");
    }
    int64_t power = 10;
    while (power <= 1000 && power % m) power *= 10;
    if (b->has_lo || b->has_hi || power > 1000)
        return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "multipleOf",
                                      "supported are the divisors of 1000, and what has few multiples within bounds");
    /* What divides 10^k is seen in the last k digits. */
    int32_t small = listed(g, 0, power - 1, m), items[1000];
    size_t n = 0;
    for (int64_t x = 0; x < power; x += m) {
        char text[24];
        int width = power == 10 ? 1 : power == 100 ? 2 : 3;
        int length = snprintf(text, sizeof text, "%0*lld", width, (long long)x);
        items[n++] = weft__gram_text(g, text, (size_t)length);
    }
    int32_t last = weft__gram_alt(g, items, n), first = GRAM_CLASS({'1', '9'});
    int32_t large = GRAM_SEQ(first, GRAM_DIGITS(0, 13), last), minus = GRAM_OPTIONAL(GRAM_TEXT("-"));
    return GRAM_SEQ(minus, GRAM_ALT(small, large));
}

int32_t weft__gram_schema_integer(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    const weft__json *multiple = weft__json_get(schema, "multipleOf");
    int64_t m = 1;
    bounds b;
    if (!read_bounds_of(c, schema, at, 1, &b)) return -1;
    if (multiple && (!weft__json_int(multiple, &m) || m < 1))
        return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "multipleOf", "must be a whole number above 0");
    if (m > LARGEST) return weft__gram_schema_fail(c, WEFT_LIMIT, at, "multipleOf", "is too large");
    if (b.has_lo && (b.lo > LARGEST || b.lo < -LARGEST)) b.lo = b.lo > 0 ? LARGEST : -LARGEST;
    if (b.has_hi && (b.hi > LARGEST || b.hi < -LARGEST)) b.hi = b.hi > 0 ? LARGEST : -LARGEST;
    if (m > 1) return multiples(c, &b, m, at);
    if (!b.has_lo && !b.has_hi) {
        int32_t minus = GRAM_OPTIONAL(GRAM_TEXT("-")), first = GRAM_CLASS({'1', '9'}), rest = GRAM_DIGITS(0, 17),
                zero = GRAM_TEXT("0");
        return GRAM_SEQ(minus, GRAM_ALT(zero, GRAM_SEQ(first, rest)));
    }
    if (!b.has_lo) b.lo = -LARGEST;
    if (!b.has_hi) b.hi = LARGEST;
    int32_t items[2];
    size_t n = 0;
    if (b.lo < 0) {
        int32_t minus = GRAM_TEXT("-");
        items[n++] = GRAM_SEQ(minus, whole_between(g, b.hi < 0 ? -b.hi : 1, -b.lo));
        if (b.hi < 0 && n) return items[0];
    }
    if (b.lo == 0 && b.hi == 0) return GRAM_TEXT("0");
    items[n++] = whole_between(g, b.lo > 0 ? b.lo : 0, b.hi);
    return weft__gram_alt(g, items, n);
}

/* ---- numbers with a fraction ---- */

/* From a to b, 0 <= a <= b, without a sign; -1 when there is none. */
static int32_t magnitude(weft__gram *g, int64_t a, int64_t b, int open_a, int open_b, uint32_t fraction)
{
    int32_t items[3];
    size_t n = 0;
    if (b - a >= 2) {
        int32_t whole = whole_between(g, a + 1, b - 1), point = GRAM_TEXT(".");
        items[n++] = GRAM_SEQ(whole, GRAM_OPTIONAL(GRAM_SEQ(point, GRAM_DIGITS(1, fraction))));
    }
    if (a < b) {
        int32_t whole = whole_between(g, a, a), point = GRAM_TEXT(".");
        if (open_a) {
            int32_t zeros = GRAM_REPEAT(0, fraction / 2, GRAM_TEXT("0")), digit = GRAM_CLASS({'1', '9'});
            items[n++] = GRAM_SEQ(whole, point, zeros, digit, GRAM_DIGITS(0, fraction - fraction / 2 - 1));
        } else {
            items[n++] = GRAM_SEQ(whole, GRAM_OPTIONAL(GRAM_SEQ(point, GRAM_DIGITS(1, fraction))));
        }
    }
    if (!open_b && (a < b || !open_a)) {
        int32_t whole = whole_between(g, b, b), point = GRAM_TEXT(".");
        items[n++] = GRAM_SEQ(whole, GRAM_OPTIONAL(GRAM_SEQ(point, GRAM_REPEAT(1, fraction, GRAM_TEXT("0")))));
    }
    return n ? weft__gram_alt(g, items, n) : -1;
}

int32_t weft__gram_schema_number(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    bounds b;
    int digits = 1;
    if (weft__json_get(schema, "multipleOf")) {
        int64_t m;
        if (weft__json_int(weft__json_get(schema, "multipleOf"), &m)) return weft__gram_schema_integer(c, schema, at);
        return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "multipleOf", "must be a whole number above 0");
    }
    if (!read_bounds_of(c, schema, at, 0, &b)) return -1;
    if (!b.has_lo && !b.has_hi) return GRAM_REF(GRAM_RULE("number"));
    for (int64_t power = 10; digits < 19; digits++, power *= 10)
        if ((!b.has_lo || (b.lo < power && b.lo > -power)) && (!b.has_hi || (b.hi < power && b.hi > -power))) break;
    if (digits > DIGITS_OF_DOUBLE - 2)
        return weft__gram_schema_fail(c, WEFT_LIMIT, at, NULL, "bounds of numbers have at most %d digits",
                                      DIGITS_OF_DOUBLE - 2);
    uint32_t fraction = (uint32_t)(DIGITS_OF_DOUBLE - digits);
    int64_t lo = b.has_lo ? b.lo : -LARGEST_PART, hi = b.has_hi ? b.hi : LARGEST_PART;
    int32_t items[2];
    size_t n = 0;
    if (lo < 0) {
        int64_t from = hi < 0 ? -hi : 0;
        int32_t node = magnitude(g, from, -lo, from == 0 || b.open_hi, b.open_lo, fraction);
        int32_t minus = GRAM_TEXT("-");
        if (node >= 0) items[n++] = GRAM_SEQ(minus, node);
    }
    if (hi >= 0) {
        int32_t node = magnitude(g, lo > 0 ? lo : 0, hi, lo >= 0 && b.open_lo, b.open_hi, fraction);
        if (node >= 0) items[n++] = node;
    }
    return n ? weft__gram_alt(g, items, n) : -1;
}
