// SPDX-License-Identifier: Apache-2.0
/* text_stop.c: stop strings against a search that is obviously right, and what is held back meanwhile. */
#include "unit/fixture.h"

#include "base/random.h"
#include "text/stop.h"

/* The text up to the stop string that is complete first; *found: there is one. */
static size_t expected(const char *text, size_t n, const char *const *stops, const size_t *lengths, int n_stops,
                       int *found)
{
    for (size_t end = 1; end <= n; end++) {
        size_t longest = 0;
        for (int k = 0; k < n_stops; k++)
            if (lengths[k] <= end && !memcmp(text + end - lengths[k], stops[k], lengths[k]) && lengths[k] > longest)
                longest = lengths[k];
        *found = longest > 0;
        if (longest) return end - longest;
    }
    return n;
}

/* Bytes at the end of text[0..n) that begin some stop string. */
static size_t must_hold(const char *text, size_t n, const char *const *stops, const size_t *lengths, int n_stops)
{
    for (size_t keep = n; keep > 0; keep--)
        for (int k = 0; k < n_stops; k++)
            if (keep < lengths[k] && !memcmp(text + n - keep, stops[k], keep)) return keep;
    return 0;
}

static void against_search(void **state)
{
    weft__rng rng;
    (void)state;
    weft__rng_seed(&rng, 5);
    for (int round = 0; round < 4000; round++) {
        char text[64], storage[4][8];
        const char *stops[4] = {storage[0], storage[1], storage[2], storage[3]};
        size_t lengths[4], n = weft__rng_below(&rng, sizeof text);
        int n_stops = (int)weft__rng_below(&rng, 5), found = 0, hit = 0;
        for (size_t i = 0; i < n; i++) text[i] = (char)('a' + weft__rng_below(&rng, 2));
        for (int k = 0; k < n_stops; k++) {
            lengths[k] = 1 + weft__rng_below(&rng, 8);
            for (size_t i = 0; i < lengths[k]; i++) storage[k][i] = (char)('a' + weft__rng_below(&rng, 2));
        }
        size_t want = expected(text, n, stops, lengths, n_stops, &found), at = 0;
        weft__stop s;
        weft__strbuf out = {0};
        assert_int_equal(weft__stop_begin(&s, stops, lengths, n_stops, NULL), WEFT_OK);
        while (at < n && !hit) {
            size_t part = 1 + weft__rng_below(&rng, 5);
            if (part > n - at) part = n - at;
            hit = weft__stop_push(&s, text + at, part, &out);
            at += part;
            if (!hit) assert_int_equal(out.len, at - must_hold(text, at, stops, lengths, n_stops));
        }
        if (!hit) weft__stop_flush(&s, &out);
        assert_int_equal(hit, found);
        assert_int_equal(out.len, want);
        if (want) assert_memory_equal(out.data, text, want);
        weft__stop_free(&s);
        weft__strbuf_free(&out);
    }
}

static int body(void *arg)
{
    const char *stops[] = {"one", "two"};
    const size_t lengths[] = {3, 3};
    weft__stop s;
    weft__strbuf out = {0};
    (void)arg;
    if (weft__stop_begin(&s, stops, lengths, 2, NULL)) return 0;
    weft__stop_push(&s, "a tw", 4, &out);
    weft__stop_flush(&s, &out);
    int ok = !out.failed && out.len == 4;
    weft__stop_free(&s);
    weft__strbuf_free(&out);
    return ok;
}

static void without_memory(void **state)
{
    (void)state;
    assert_true(fail_each(body, NULL) >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_search), cmocka_unit_test(without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
