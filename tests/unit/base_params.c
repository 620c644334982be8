// SPDX-License-Identifier: Apache-2.0
/* base_params.c: a struct that begins with `size` is read and filled as far as both sides know it, and nothing
 * beyond. */
#include "unit/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/params.h"

typedef struct sample {
    uint32_t size;
    int32_t a;
    const char *text;
    double b;
    int32_t c, reserved;
} sample;

static void refused(weft_status status, const weft_error *err)
{
    assert_int_equal(status, WEFT_ABI);
    assert_non_null(strstr(err->message, "sample has"));
}

static const sample defaults = {sizeof(sample), 1, "one", 2.5, 3, 0};
#define TYPE WEFT__PARAMS_TYPE(sample)

/* `size` bytes of a program's struct, so that a sanitizer sees what is beyond. */
static void *given_of(uint32_t size)
{
    const sample mine = {size, 10, "ten", 20, 30, 0};
    char *p = calloc(1, size < 8 ? 8 : size);
    assert_non_null(p);
    memcpy(p, &mine, size < sizeof mine ? (size < 4 ? 4 : size) : sizeof mine);
    return p;
}

static void missing_fields_are_the_defaults(void **state)
{
    (void)state;
    for (uint32_t size = 8; size <= sizeof(sample); size += 8) {
        sample own = defaults, *given = given_of(size);
        assert_int_equal(weft__params_read(TYPE, &own, given, NULL), WEFT_OK);
        assert_int_equal(own.size, sizeof own);
        assert_int_equal(own.a, 10);
        assert_string_equal(own.text, size >= 16 ? "ten" : "one");
        assert_true(own.b == (size >= 24 ? 20 : 2.5));
        assert_int_equal(own.c, size >= 32 ? 30 : 3);
        free(given);
    }
    sample own = defaults;
    assert_int_equal(weft__params_read(TYPE, &own, NULL, NULL), WEFT_OK);
    assert_memory_equal(&own, &defaults, sizeof own);
}

static void a_larger_struct_is_taken_where_all_beyond_is_zero(void **state)
{
    (void)state;
    for (uint32_t size = sizeof(sample) + 8; size <= sizeof(sample) + 32; size += 8) {
        sample own = defaults;
        char *given = given_of(size);
        weft_error err = {0};
        assert_int_equal(weft__params_read(TYPE, &own, given, &err), WEFT_OK);
        assert_int_equal(own.c, 30);
        for (uint32_t i = sizeof(sample); i < size; i++) {
            given[i] = 1;
            own = defaults;
            refused(weft__params_read(TYPE, &own, given, &err), &err);
            assert_memory_equal(&own, &defaults, sizeof own);
            given[i] = 0;
        }
        free(given);
    }
}

static void sizes_that_are_none_are_refused(void **state)
{
    (void)state;
    const uint32_t sizes[] = {0, 4, 7, 12, 31, 33, WEFT__PARAMS_MAX + 8, UINT32_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        sample own = defaults, out = defaults;
        weft_error err = {0};
        out.size = sizes[i];
        refused(weft__params_read(TYPE, &own, &out, &err), &err);
        refused(weft__params_write(TYPE, &out, &own, &err), &err);
        assert_memory_equal((char *)&out + 4, (const char *)&defaults + 4, sizeof out - 4);
        weft__params_init(TYPE, &out, sizes[i], &own);
        assert_int_equal(out.size, 0);
    }
}

static void nothing_is_written_beyond_the_callers_struct(void **state)
{
    (void)state;
    for (uint32_t size = 8; size <= sizeof(sample) + 32; size += 8) {
        char *out = given_of(size), want[sizeof(sample) + 32] = {0};
        memcpy(want, &defaults, sizeof defaults);
        memcpy(want, &size, sizeof size);
        if (size > sizeof(sample)) memset(out + sizeof(sample), 7, size - sizeof(sample));
        assert_int_equal(weft__params_write(TYPE, out, &defaults, NULL), WEFT_OK);
        assert_memory_equal(out, want, size);
        memset(out, 7, size);
        weft__params_init(TYPE, out, size, &defaults);
        assert_memory_equal(out, want, size);
        free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_fields_are_the_defaults),
        cmocka_unit_test(a_larger_struct_is_taken_where_all_beyond_is_zero),
        cmocka_unit_test(sizes_that_are_none_are_refused),
        cmocka_unit_test(nothing_is_written_beyond_the_callers_struct),
    };
    return cmocka_run_group_tests_name("base_params", tests, NULL, NULL);
}
