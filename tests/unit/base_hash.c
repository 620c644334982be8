// SPDX-License-Identifier: Apache-2.0
/* base_hash.c: claims: the checksum is XXH3's, does not depend on how the bytes come, and any changed bit changes
 * it. */
#include "fixture.h"

#include "base/hash.h"

static unsigned char bytes[3000];

static void the_published_value(void **state)
{
    (void)state;
    assert_int_equal(weft__hash("", 0), 0x2d06800538d394c2u); /* of no bytes, as xxhash's documents say */
}

static void pieces_make_the_whole(void **state)
{
    (void)state;
    for (size_t n = 0; n <= sizeof bytes; n += 97) {
        for (size_t piece = 1; piece < 1200; piece = piece * 3 + 1) {
            weft__hash_state h;
            weft__hash_begin(&h);
            for (size_t at = 0; at < n; at += piece) weft__hash_add(&h, bytes + at, n - at < piece ? n - at : piece);
            assert_int_equal(weft__hash_end(&h), weft__hash(bytes, n));
        }
    }
}

static void every_bit_counts(void **state)
{
    (void)state;
    uint64_t whole = weft__hash(bytes, sizeof bytes);
    for (size_t bit = 0; bit < sizeof bytes * 8; bit += 13) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_not_equal(weft__hash(bytes, sizeof bytes), whole);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_int_not_equal(weft__hash(bytes, sizeof bytes - 1), whole);
}

int main(void)
{
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 31 + i / 7);
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_published_value), cmocka_unit_test(pieces_make_the_whole),
                                       cmocka_unit_test(every_bit_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
