// SPDX-License-Identifier: Apache-2.0
/* base_alloc.c: the allocator's counter and gate, growth, overflow; error messages. */
#include "unit/fixture.h"

#include <pthread.h>
#include <unistd.h>

#include "weft/error.h"

static void live_blocks_are_counted(void **state)
{
    (void)state;
    size_t before = weft__alloc_live();
    void *a = weft__alloc(0), *b = weft__alloc_zero(3, 5), *c = weft__alloc_aligned(256, 1000);
    char *d = weft__strdup("thread");
    assert_non_null(a);
    assert_int_equal((uintptr_t)c % 256, 0);
    for (int i = 0; i < 15; i++) assert_int_equal(((char *)b)[i], 0);
    assert_string_equal(d, "thread");
    assert_int_equal(weft__alloc_live(), before + 4);
    a = weft__realloc_array(a, 100, 8);
    assert_int_equal(weft__alloc_live(), before + 4);
    weft__free(a);
    weft__free(b);
    weft__free(c);
    weft__free(d);
    weft__free(NULL);
    assert_int_equal(weft__alloc_live(), before);
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&                                                            \
    !defined(__SANITIZE_THREAD__) /* these have heaps of their own */
#define HAS_TRIM 1
static long resident_kb(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* One block that lives on keeps megabytes of freed ones before it. */
static void what_was_freed_goes_back(void **state)
{
    enum { N = 1024, BLOCK = 16 * 1024 };
    static char *blocks[N];
    (void)state;
    long before = resident_kb();
    for (int i = 0; i < N; i++) {
        blocks[i] = weft__alloc(BLOCK);
        assert_non_null(blocks[i]);
        memset(blocks[i], 1, BLOCK);
    }
    assert_true(resident_kb() - before > N * BLOCK / 1024 * 3 / 4);
    for (int i = 0; i < N - 1; i++) weft__free(blocks[i]);
    weft__alloc_trim();
    assert_true(resident_kb() - before < N * BLOCK / 1024 / 4);
    weft__free(blocks[N - 1]);
}

enum { N_LARGE = 16, LARGE = 1 << 20 };

/* The end of a thread's heap: nothing lives behind it, and trimming does not reach it. */
static void *fill_and_free(void *arg)
{
    char *blocks[N_LARGE];
    long *kept_kb = arg, before = resident_kb();
    for (int i = 0; i < N_LARGE; i++) {
        blocks[i] = weft__alloc(LARGE);
        if (blocks[i]) memset(blocks[i], 1, LARGE);
    }
    for (int i = N_LARGE; i-- > 0;) weft__free(blocks[i]);
    weft__alloc_trim();
    *kept_kb = resident_kb() - before;
    return NULL;
}

static void a_thread_keeps_little(void **state)
{
    (void)state;
    pthread_t thread;
    long kept_kb;
    weft__free(weft__alloc(20 << 20)); /* which is what raises the bounds */
    weft__alloc_keep_little();
    assert_int_equal(pthread_create(&thread, NULL, fill_and_free, &kept_kb), 0);
    pthread_join(thread, NULL);
    assert_true(kept_kb < N_LARGE * LARGE / 1024 / 4);
}
#endif

static void overflow_is_refused(void **state)
{
    (void)state;
    assert_null(weft__alloc_array(SIZE_MAX / 2, 3));
    assert_null(weft__alloc_zero(SIZE_MAX, 2));
    assert_null(weft__realloc_array(NULL, SIZE_MAX / 8 + 1, 8));
    int *items = NULL;
    size_t capacity = 0;
    assert_int_equal(weft__grow(&items, &capacity, SIZE_MAX / 2, sizeof *items), 0);
    assert_null(items);
    assert_int_equal(capacity, 0);
}

static void growth_keeps_what_was_there(void **state)
{
    (void)state;
    int *items = NULL;
    size_t capacity = 0, n = 0;
    for (; n < 1000; n++) {
        assert_int_equal(weft__grow(&items, &capacity, n + 1, sizeof *items), 1);
        items[n] = (int)n;
    }
    assert_true(capacity >= 1000 && capacity < 2048);
    for (size_t i = 0; i < n; i++) assert_int_equal(items[i], i);
    fail_at f = {0, 0};
    size_t kept = capacity;
    int *old = items;
    weft__alloc_set_gate(fail_at_gate, &f);
    assert_int_equal(weft__grow(&items, &capacity, kept + 1, sizeof *items), 0);
    weft__alloc_set_gate(NULL, NULL);
    assert_ptr_equal(items, old);
    assert_int_equal(capacity, kept);
    assert_int_equal(items[999], 999);
    weft__free(items);
}

static int allocate_three(void *arg)
{
    (void)arg;
    void *a = weft__alloc(1), *b = weft__alloc_zero(1, 1), *c = weft__alloc_aligned(64, 64);
    int ok = a && b && c;
    weft__free(a);
    weft__free(b);
    weft__free(c);
    return ok;
}

static void the_gate_refuses(void **state)
{
    (void)state;
    assert_int_equal(fail_each(allocate_three, NULL), 3);
}

static void errors_are_formatted(void **state)
{
    (void)state;
    weft_error err = {0};
    assert_int_equal(weft_fail(&err, WEFT_FORMAT, "%s: bad magic", "a.gguf"), WEFT_FORMAT);
    assert_int_equal(err.status, WEFT_FORMAT);
    assert_string_equal(err.message, "a.gguf: bad magic");
    assert_int_equal(weft_fail_within(&err, WEFT_FORMAT, "adapter %d", 7), WEFT_FORMAT);
    assert_string_equal(err.message, "adapter 7: a.gguf: bad magic");
    assert_int_equal(weft_fail_within(&err, WEFT_IO, "adapter %d", 7), WEFT_IO); /* named already */
    assert_string_equal(err.message, "adapter 7: a.gguf: bad magic");
    assert_int_equal(err.status, WEFT_IO);
    /* an argument may be the message itself */
    weft_fail(&err, WEFT_IO, "[%s]", err.message);
    assert_string_equal(err.message, "[adapter 7: a.gguf: bad magic]");
    assert_int_equal(weft_fail(NULL, WEFT_LIMIT, "unused"), WEFT_LIMIT);
    assert_int_equal(weft_fail_within(NULL, WEFT_LIMIT, "unused"), WEFT_LIMIT);
    assert_string_equal(weft_status_text(WEFT_NO_MEMORY), "out of memory");
    assert_string_equal(weft_status_text((weft_status)99), "unknown status");
}

/* 255 two-byte characters and "x" make 511 bytes, which fit; one more byte before them, and the last character must
 * go. */
static void long_errors_are_cut_at_a_character(void **state)
{
    (void)state;
    char text[600] = "";
    for (int i = 0; i < 255; i++) strcat(text, "\xC3\xA9");
    weft_error err;
    weft_fail(&err, WEFT_IO, "%sx", text);
    assert_int_equal(strlen(err.message), 511);
    weft_fail(&err, WEFT_IO, "ab%s", text);
    assert_int_equal(strlen(err.message), 510);
    weft_fail_within(&err, WEFT_IO, "p");
    assert_int_equal(strlen(err.message), 511);
    weft_fail_within(&err, WEFT_IO, "%s%s%s", text, text, text);
    assert_true(strlen(err.message) <= 511);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_blocks_are_counted),
        cmocka_unit_test(overflow_is_refused),
        cmocka_unit_test(growth_keeps_what_was_there),
        cmocka_unit_test(the_gate_refuses),
        cmocka_unit_test(errors_are_formatted),
#ifdef HAS_TRIM
        cmocka_unit_test(what_was_freed_goes_back),
#endif
        cmocka_unit_test(long_errors_are_cut_at_a_character),
#ifdef HAS_TRIM
        cmocka_unit_test(a_thread_keeps_little), /* last: it is for the whole process */
#endif
    };
    return cmocka_run_group_tests_name("base_alloc", tests, NULL, NULL);
}
