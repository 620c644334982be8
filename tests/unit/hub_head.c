// SPDX-License-Identifier: Apache-2.0
/* hub_head.c: the end of a head is found as soon as its last byte is there, and no sooner; what is no head is told. */
#include "unit/fixture.h"

#include "hub/head.h"

static uint8_t file[4096];
static size_t n_file;

static void put(uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) file[n_file++] = (uint8_t)(v >> (8 * i));
}

static void put_string(const char *s)
{
    put(strlen(s), 8);
    memcpy(file + n_file, s, strlen(s));
    n_file += strlen(s);
}

/* Two keys, one of them an array of arrays of strings, and one tensor. */
static void make_head(void)
{
    n_file = 0;
    memcpy(file, "GGUF", 4);
    n_file = 4;
    put(3, 4);
    put(1, 8);
    put(2, 8);
    put_string("a.number");
    put(10, 4); /* u64 */
    put(7, 8);
    put_string("an.array");
    put(9, 4);
    put(9, 4);
    put(2, 8);
    for (int i = 0; i < 2; i++) {
        put(8, 4);
        put(1, 8);
        put_string("word");
    }
    put_string("blk.0.weight");
    put(2, 4);
    put(32, 8);
    put(8, 8);
    put(2, 4);
    put(0, 8);
}

static void the_end_is_found(void **state)
{
    (void)state;
    size_t end = 0;
    make_head();
    const size_t n = n_file;
    memset(file + n, 0x5a, 64); /* weights */
    for (size_t i = 0; i < n; i++)
        if (weft__hub_head_gguf(file, i, &end) != WEFT__HUB_HEAD_MORE) fail_msg("%zu of %zu bytes", i, n);
    assert_int_equal(weft__hub_head_gguf(file, n, &end), WEFT__HUB_HEAD_WHOLE);
    assert_int_equal(end, n);
    assert_int_equal(weft__hub_head_gguf(file, n + 64, &end), WEFT__HUB_HEAD_WHOLE);
    assert_int_equal(end, n);
}

static void what_is_no_head_is_told(void **state)
{
    (void)state;
    size_t end;
    make_head();
    file[0] = 'g';
    assert_int_equal(weft__hub_head_gguf(file, n_file, &end), WEFT__HUB_HEAD_NONE);
    make_head();
    file[4] = 1; /* version */
    assert_int_equal(weft__hub_head_gguf(file, n_file, &end), WEFT__HUB_HEAD_NONE);
    make_head();
    file[40] = 77; /* type of the first value */
    assert_int_equal(weft__hub_head_gguf(file, n_file, &end), WEFT__HUB_HEAD_NONE);
    make_head();
    memset(file + 8, 0xff, 16); /* counts beyond all bytes only ask for more */
    assert_int_not_equal(weft__hub_head_gguf(file, n_file, &end), WEFT__HUB_HEAD_WHOLE);
}

static void safetensors_say_how_long_they_are(void **state)
{
    (void)state;
    size_t end = 0;
    n_file = 0;
    put(5, 8);
    memcpy(file + n_file, "{\"a\":", 5);
    assert_int_equal(weft__hub_head_safetensors(file, 7, &end), WEFT__HUB_HEAD_MORE);
    assert_int_equal(weft__hub_head_safetensors(file, 12, &end), WEFT__HUB_HEAD_MORE);
    assert_int_equal(weft__hub_head_safetensors(file, 13, &end), WEFT__HUB_HEAD_WHOLE);
    assert_int_equal(end, 13);
    memset(file, 0xff, 8);
    assert_int_equal(weft__hub_head_safetensors(file, 13, &end), WEFT__HUB_HEAD_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_is_found),
        cmocka_unit_test(what_is_no_head_is_told),
        cmocka_unit_test(safetensors_say_how_long_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
