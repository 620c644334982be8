// SPDX-License-Identifier: Apache-2.0
/* schema_integer.c: whole numbers of a JSON Schema as rules: ranges digit by digit, within 64 bits with a sign, or
 * without one where a bound asks for more. Bounds are exact. One thread. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/grammar/build.h"
#include "text/grammar/schema_number.h"

/* ---- digits ---- */

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
    /* First digits with all that may follow them; the others have less behind them. */
    uint32_t from = (uint32_t)*a, to = (uint32_t)*b;
    from += memcmp(a + 1, zeros, n - 1) != 0;
    to -= memcmp(b + 1, nines, n - 1) != 0;
    if (from > (uint32_t)*a) {
        int32_t low = weft__gram_text(g, a, 1);
        items[k++] = GRAM_SEQ(low, digits_between(g, a + 1, nines, n - 1));
    }
    if (from <= to) {
        int32_t middle = GRAM_CLASS({from, to});
        items[k++] = GRAM_SEQ(middle, GRAM_DIGITS((uint32_t)n - 1, (uint32_t)n - 1));
    }
    if (to < (uint32_t)*b) {
        int32_t high = weft__gram_text(g, b, 1);
        items[k++] = GRAM_SEQ(high, digits_between(g, zeros, b + 1, n - 1));
    }
    return weft__gram_alt(g, items, k);
}

int32_t weft__gram_whole_between(weft__gram *g, uint64_t a, uint64_t b)
{
    int32_t items[20];
    size_t k = 0;
    for (uint64_t from = 0, to = 9;; from = to + 1, to = to < UINT64_MAX / 10 ? 10 * to + 9 : UINT64_MAX) {
        char lo[24], hi[24];
        if (to >= a && from <= b) {
            int n = snprintf(lo, sizeof lo, "%llu", (unsigned long long)(from > a ? from : a));
            snprintf(hi, sizeof hi, "%llu", (unsigned long long)(to < b ? to : b));
            items[k++] = digits_between(g, lo, hi, (size_t)n);
        }
        if (to >= b) break;
    }
    return weft__gram_alt(g, items, k);
}

/* ---- bounds ---- */

/* A whole number with its sign; 0 has none. */
typedef struct whole {
    int negative;
    uint64_t size;
} whole;

typedef struct whole_bounds {
    whole lo, hi;
    int has_lo, has_hi;
} whole_bounds;

static const whole largest = {0, INT64_MAX}, lowest = {1, INT64_MAX};

static int is_less(whole a, whole b)
{
    if (a.negative != b.negative) return a.negative;
    return a.negative ? a.size > b.size : a.size < b.size;
}

/* The next one; 0: it is beyond 64 bits. */
static int step(whole *x, int up)
{
    const int grows = x->negative != up;
    if (grows && x->size == UINT64_MAX) return 0;
    if (!grows && !x->size) *x = (whole){!x->negative, 1};
    else x->size += grows ? 1 : (uint64_t)-1;
    if (!x->size) x->negative = 0;
    return 1;
}

/* Beyond 64 bits: above them 1, below them -1, else 0. */
static int read_whole(const weft__json *v, int up, int exclusive, whole *out)
{
    int64_t i;
    double d = 0;
    if (weft__json_int(v, &i)) {
        *out = (whole){i < 0, i < 0 ? -(uint64_t)i : (uint64_t)i};
    } else {
        weft__json_double(v, &d);
        const double next = up ? ceil(d) : floor(d);
        if (fabs(next) >= 0x1p64) return next < 0 ? -1 : 1;
        *out = (whole){next < 0, (uint64_t)fabs(next)};
        exclusive &= next == d;
    }
    return !exclusive || step(out, up) ? 0 : out->negative ? -1 : 1;
}

/* The stricter of two keywords. 0 after a failure. */
static int read_side(weft__gram_schema *c, const weft__json *schema, const char *at, int up, whole *out, int *has)
{
    static const char *const names[2][2] = {{"maximum", "exclusiveMaximum"}, {"minimum", "exclusiveMinimum"}};
    double d;
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        const char *key = names[up][exclusive];
        const weft__json *v = weft__gram_schema_bound(schema, up, exclusive);
        whole x;
        if (!v) continue;
        if (!weft__json_double(v, &d)) {
            weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "must be a number");
            return 0;
        }
        const int beyond = read_whole(v, up, exclusive, &x);
        if (beyond && (beyond > 0) == up) {
            weft__gram_schema_fail(c, WEFT_LIMIT, at, key, "asks for a number of more than 64 bits; none is written");
            return 0;
        }
        if (beyond) x = (whole){beyond < 0, UINT64_MAX};
        if ((*has && (up ? is_less(x, *out) : is_less(*out, x)))) continue;
        *out = x;
        *has = 1;
    }
    return 1;
}

static int32_t between(weft__gram *g, whole lo, whole hi)
{
    int32_t items[2];
    size_t n = 0;
    if (lo.negative) {
        int32_t minus = GRAM_TEXT("-");
        items[n++] = GRAM_SEQ(minus, weft__gram_whole_between(g, hi.negative ? hi.size : 1, lo.size));
    }
    if (!hi.negative) items[n++] = weft__gram_whole_between(g, lo.negative ? 0 : lo.size, hi.size);
    return weft__gram_alt(g, items, n);
}

int32_t weft__gram_integers_within(weft__gram *g, const weft__gram_bounds *b)
{
    whole lo = {1, WEFT__GRAM_LARGEST}, hi = {0, WEFT__GRAM_LARGEST};
    if (b->has_lo) lo = (whole){b->lo.negative && b->lo.whole, (uint64_t)b->lo.whole};
    if (b->has_hi) hi = (whole){b->hi.negative && b->hi.whole, (uint64_t)b->hi.whole};
    return is_less(hi, lo) ? -1 : between(g, lo, hi);
}

int32_t weft__gram_schema_integer(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    whole_bounds x = {lowest, largest, 0, 0};
    if (weft__json_get(schema, "multipleOf")) {
        weft__gram_bounds b;
        return weft__gram_bounds_read(c, schema, at, 1, &b) ? weft__gram_multiples(c, schema, at, 1, &b) : -1;
    }
    if (!read_side(c, schema, at, 1, &x.lo, &x.has_lo) || !read_side(c, schema, at, 0, &x.hi, &x.has_hi)) return -1;
    if (!x.has_lo && !x.has_hi) { /* each sign has the same digits */
        int32_t minus = GRAM_OPTIONAL(GRAM_TEXT("-"));
        return GRAM_SEQ(minus, weft__gram_whole_between(g, 0, largest.size));
    }
    const whole least = {1, c->unsigned_too ? UINT64_MAX : (uint64_t)INT64_MAX + 1},
                most = {0, c->unsigned_too ? UINT64_MAX : INT64_MAX};
    if (is_less(most, x.lo) || is_less(x.hi, least))
        return weft__gram_schema_fail(c, WEFT_LIMIT, at, is_less(most, x.lo) ? "minimum" : "maximum",
                                      "asks for a number of more than 64 bits with a sign; none is written in calls");
    if ((!x.has_hi && is_less(x.hi, x.lo)) || is_less(most, x.hi)) x.hi = most;
    if ((!x.has_lo && is_less(x.hi, x.lo)) || is_less(x.lo, least)) x.lo = least;
    if (is_less(x.hi, x.lo))
        return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, NULL, "no number lies between its bounds");
    return between(g, x.lo, x.hi);
}
