// SPDX-License-Identifier: Apache-2.0
/* learn_merkle.c: claims on the hash tree: roots are those of RFC 6962's own definition, proofs hold for every leaf and
 * every pair of sizes, and nothing else does. */
#include "fixture.h"

#include "learn/merkle.h"

enum { MOST = 70 };

typedef struct row_of {
    weft__learn_hash items[2 * MOST + 2];
    uint64_t n;
} row_of;

static weft_status read_row(void *arg, uint64_t place, weft__learn_hash *out, weft_error *err)
{
    row_of *r = arg;
    if (place >= r->n) return weft_fail(err, WEFT_INTERNAL, "a place behind the row");
    *out = r->items[place];
    return WEFT_OK;
}

static weft__learn_hash leaf_of(uint64_t i)
{
    weft__learn_hash h;
    assert_int_equal(weft__learn_hash_leaf(&i, i % 9, &h, NULL), WEFT_OK);
    return h;
}

/* MTH of RFC 6962, section 2.1, word for word. */
static weft__learn_hash defined(uint64_t first, uint64_t n)
{
    weft__learn_hash out;
    uint64_t k = 1;
    if (n == 1) return leaf_of(first);
    while (2 * k < n) k *= 2;
    weft__learn_hash left = defined(first, k), right = defined(first + k, n - k);
    assert_int_equal(weft__learn_hash_node(&left, &right, &out, NULL), WEFT_OK);
    return out;
}

static void fill(row_of *r)
{
    const weft__learn_row row = {read_row, r};
    r->n = 0;
    for (uint64_t i = 0; i < MOST; i++) {
        weft__learn_hash leaf = leaf_of(i), more[64];
        int n;
        assert_int_equal(r->n, weft__learn_row_length(i));
        assert_int_equal(weft__learn_row_grow(&row, i, &leaf, more, &n, NULL), WEFT_OK);
        for (int k = 0; k < n; k++) r->items[r->n++] = more[k];
    }
}

static void hex_of(const weft__learn_hash *h, char out[65])
{
    for (int i = 0; i < 32; i++) sprintf(out + 2 * i, "%02x", h->bytes[i]);
}

/* Of no leaf SHA-256 of nothing; the leaf of nothing SHA-256 of one zero byte. */
static void known_values(void **state)
{
    char hex[65];
    weft__learn_hash h;
    const weft__learn_row none = {read_row, &(row_of){.n = 0}};
    (void)state;
    assert_int_equal(weft__learn_root(&none, 0, &h, NULL), WEFT_OK);
    hex_of(&h, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_int_equal(weft__learn_hash_leaf("", 0, &h, NULL), WEFT_OK);
    hex_of(&h, hex);
    assert_string_equal(hex, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
}

static void roots_are_as_defined(void **state)
{
    static row_of r;
    const weft__learn_row row = {read_row, &r};
    (void)state;
    fill(&r);
    for (uint64_t n = 1; n <= MOST; n++) {
        weft__learn_hash root, want = defined(0, n);
        assert_int_equal(weft__learn_root(&row, n, &root, NULL), WEFT_OK);
        assert_memory_equal(root.bytes, want.bytes, 32);
    }
}

static void inclusion_holds_and_nothing_else(void **state)
{
    static row_of r;
    const weft__learn_row row = {read_row, &r};
    weft__learn_proof p;
    (void)state;
    fill(&r);
    for (uint64_t n = 1; n <= MOST; n += n > 20 ? 7 : 1) {
        weft__learn_hash root = defined(0, n);
        for (uint64_t i = 0; i < n; i++) {
            weft__learn_hash leaf = leaf_of(i), other = leaf_of(i + 1);
            assert_int_equal(weft__learn_prove_inclusion(&row, i, n, &p, NULL), WEFT_OK);
            assert_true(weft__learn_check_inclusion(&leaf, i, n, &p, &root));
            assert_false(weft__learn_check_inclusion(&other, i, n, &p, &root));
            assert_false(weft__learn_check_inclusion(&leaf, n, n, &p, &root));
            if (!(n & (n - 1))) assert_false(weft__learn_check_inclusion(&leaf, i, 2 * n, &p, &root));
            if (n > 1) assert_false(weft__learn_check_inclusion(&leaf, i ? i - 1 : i + 1, n, &p, &root));
            for (int k = 0; k < p.n; k++) {
                p.items[k].bytes[n % 32] ^= 1;
                assert_false(weft__learn_check_inclusion(&leaf, i, n, &p, &root));
                p.items[k].bytes[n % 32] ^= 1;
            }
            if (p.n) p.n--;
            else p.items[p.n++] = leaf;
            assert_false(weft__learn_check_inclusion(&leaf, i, n, &p, &root));
        }
    }
}

static void consistency_holds_and_nothing_else(void **state)
{
    static row_of r;
    const weft__learn_row row = {read_row, &r};
    weft__learn_proof p;
    (void)state;
    fill(&r);
    for (uint64_t n = 1; n <= MOST; n += n > 20 ? 7 : 1)
        for (uint64_t m = 1; m <= n; m++) {
            weft__learn_hash old = defined(0, m), now = defined(0, n);
            assert_int_equal(weft__learn_prove_consistency(&row, m, n, &p, NULL), WEFT_OK);
            assert_true(weft__learn_check_consistency(m, n, &old, &now, &p));
            if (m == n) continue;
            assert_false(weft__learn_check_consistency(m, n, &now, &now, &p));
            assert_false(weft__learn_check_consistency(m, n, &old, &old, &p));
            assert_false(weft__learn_check_consistency(n, m, &old, &now, &p));
            for (int k = 0; k < p.n; k++) {
                p.items[k].bytes[m % 32] ^= 1;
                assert_false(weft__learn_check_consistency(m, n, &old, &now, &p));
                p.items[k].bytes[m % 32] ^= 1;
            }
            p.n--;
            assert_false(weft__learn_check_consistency(m, n, &old, &now, &p));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_values), cmocka_unit_test(roots_are_as_defined),
                                       cmocka_unit_test(inclusion_holds_and_nothing_else),
                                       cmocka_unit_test(consistency_holds_and_nothing_else)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
