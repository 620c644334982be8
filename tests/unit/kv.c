// SPDX-License-Identifier: Apache-2.0
/* kv.c: claims about KV pages and block tables: O(1) pages with counts, failure leaves a sequence as it was, windows
 * let go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "kv/kv.h"

static const weft_kv_group FULL = {
    .kind = WEFT_KV_FULL, .n_layers = 2, .n_kv_heads = 2, .head_dim_k = 8, .head_dim_v = 8, .page_tokens = 16};
static const weft_kv_group WINDOW = {.kind = WEFT_KV_WINDOW,
                                     .window = 20,
                                     .n_layers = 1,
                                     .n_kv_heads = 2,
                                     .head_dim_k = 8,
                                     .head_dim_v = 8,
                                     .page_tokens = 16};

static void grows_and_returns_pages(void **state)
{
    (void)state;
    size_t live = weft__alloc_live();
    weft__kv_pool *pool;
    weft__kv_seq *seq;
    int32_t n_pages = 4;
    assert_int_equal(weft__kv_pool_create(&FULL, 1, &n_pages, WEFT_F16, &pool, NULL), WEFT_OK);
    assert_int_equal(weft__kv_pool_bindings(pool)[0].page_bytes, 2 * 16 * 2 * 16 * 2);
    assert_int_equal(weft__kv_seq_create(pool, 64, &seq, NULL), WEFT_OK);
    assert_int_equal(weft__kv_seq_reserve(seq, 17, NULL), WEFT_OK);
    assert_int_equal(weft__kv_pool_free_pages(pool, 0), 2);
    weft__kv_seq_advance(seq, 17);
    assert_int_equal(weft__kv_seq_trim(seq, 16), 16);
    assert_int_equal(weft__kv_pool_free_pages(pool, 0), 3);
    weft_error err = {0};
    assert_int_equal(weft__kv_seq_reserve(seq, 49, &err), WEFT_LIMIT);
    assert_non_null(strstr(err.message, "context of 64"));
    weft__kv_seq_destroy(&seq);
    assert_null(seq);
    assert_int_equal(weft__kv_pool_free_pages(pool, 0), 4);
    weft__kv_pool_destroy(&pool);
    assert_int_equal(weft__alloc_live(), live);
}

static void exhausted_pool_leaves_the_sequence_as_it_was(void **state)
{
    (void)state;
    weft__kv_pool *pool;
    weft__kv_seq *a, *b;
    int32_t n_pages = 3;
    weft_error err = {0};
    assert_int_equal(weft__kv_pool_create(&FULL, 1, &n_pages, WEFT_F32, &pool, NULL), WEFT_OK);
    assert_int_equal(weft__kv_seq_create(pool, 64, &a, NULL), WEFT_OK);
    assert_int_equal(weft__kv_seq_create(pool, 64, &b, NULL), WEFT_OK);
    assert_int_equal(weft__kv_seq_reserve(a, 20, NULL), WEFT_OK);
    weft__kv_seq_advance(a, 20);
    assert_int_equal(weft__kv_seq_reserve(b, 10, NULL), WEFT_OK);
    weft__kv_seq_advance(b, 10);
    assert_int_equal(weft__kv_seq_reserve(b, 20, &err), WEFT_LIMIT);
    assert_non_null(strstr(err.message, "no free KV page"));
    assert_int_equal(weft__kv_seq_length(b), 10);
    assert_int_equal(weft__kv_seq_view(b).n_pages[0], 1);
    assert_int_equal(weft__kv_pool_free_pages(pool, 0), 0);
    weft__kv_seq_destroy(&a);
    assert_int_equal(weft__kv_seq_reserve(b, 20, NULL), WEFT_OK);
    weft__kv_seq_destroy(&b);
    weft__kv_pool_destroy(&pool);
}

static void shared_page_lives_until_its_last_owner(void **state)
{
    (void)state;
    weft__kv_pool *pool;
    int32_t n_pages = 1;
    assert_int_equal(weft__kv_pool_create(&FULL, 1, &n_pages, WEFT_F16, &pool, NULL), WEFT_OK);
    int32_t page = weft__kv_page_take(pool, 0);
    assert_int_equal(weft__kv_page_take(pool, 0), -1);
    weft__kv_page_retain(pool, 0, page);
    weft__kv_page_release(pool, 0, page);
    assert_int_equal(weft__kv_pool_free_pages(pool, 0), 0);
    weft__kv_page_release(pool, 0, page);
    assert_int_equal(weft__kv_pool_free_pages(pool, 0), 1);
    weft__kv_pool_destroy(&pool);
}

/* Does the last byte of the page of group 0 have memory? */
static int has_memory(const weft__kv_pool *pool, int32_t page)
{
    const weft_kv_binding *b = weft__kv_pool_bindings(pool);
    const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE),
                    last = (uintptr_t)b->data + (uintptr_t)(page + 1) * b->page_bytes - 1;
    unsigned char is_there = 0;
    assert_int_equal(mincore((void *)(last / size * size), 1, &is_there), 0);
    return is_there & 1;
}

static void pages_have_memory_before_they_are_taken(void **state)
{
    (void)state;
    const weft_kv_group group = {
        .kind = WEFT_KV_FULL, .n_layers = 32, .n_kv_heads = 8, .head_dim_k = 64, .head_dim_v = 64, .page_tokens = 64};
    weft__kv_pool *pool;
    int32_t n_pages = 6, page[6];
    assert_int_equal(weft__kv_pool_create(&group, 1, &n_pages, WEFT_F16, &pool, NULL), WEFT_OK);
    assert_true(weft__kv_pool_bindings(pool)[0].page_bytes >= 4u << 20); /* larger than a huge page */
    assert_false(has_memory(pool, 0));
    assert_int_equal(weft__kv_pool_warm(pool, 0), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(weft__kv_pool_warm(pool, 2), 1);
    assert_int_equal(weft__kv_pool_warm(pool, 2), 0);
    assert_true(has_memory(pool, 0) && has_memory(pool, 1) && !has_memory(pool, 2));
    for (int i = 0; i < 4; i++) page[i] = weft__kv_page_take(pool, 0); /* two more than were ready */
    weft__kv_page_release(pool, 0, page[0]);
    page[0] = weft__kv_page_take(pool, 0);
    assert_int_equal(page[0], 0); /* none that was never taken */
    assert_int_equal(weft__kv_pool_warm(pool, 1), 1);
    assert_int_equal(weft__kv_pool_warm(pool, 1), 0);
    assert_true(has_memory(pool, 4) && !has_memory(pool, 5));
    memset((char *)weft__kv_pool_bindings(pool)[0].data, 7, weft__kv_pool_bindings(pool)[0].page_bytes * 5);
    assert_int_equal(weft__kv_pool_warm(pool, 6), 1);
    assert_int_equal(weft__kv_pool_warm(pool, 6), 0);
    assert_true(has_memory(pool, 5));
    for (size_t i = 0; i < weft__kv_pool_bindings(pool)[0].page_bytes * 5;
         i += 64) /* pages that have memory are not written */
        assert_int_equal(((char *)weft__kv_pool_bindings(pool)[0].data)[i], 7);
    for (int i = 0; i < 4; i++) weft__kv_page_release(pool, 0, page[i]);
    weft__kv_pool_destroy(&pool);
}

/* Memory for four pages of F16, which is for two of F32; and what one lets go of is not kept for it. */
static void pools_that_share_take_what_others_leave(void **state)
{
    (void)state;
    const weft_kv_group group = {
        .kind = WEFT_KV_FULL, .n_layers = 32, .n_kv_heads = 8, .head_dim_k = 64, .head_dim_v = 64, .page_tokens = 64};
    weft__kv_pool *f16, *f32, *other;
    const int32_t four = 4, two = 2;
    int32_t page[4];
    weft_error err = {0};
    assert_int_equal(weft__kv_pool_create(&group, 1, &four, WEFT_F16, &f16, NULL), WEFT_OK);
    assert_int_equal(weft__kv_pool_create(&group, 1, &two, WEFT_F32, &f32, NULL), WEFT_OK);
    assert_int_equal(weft__kv_pool_create(&FULL, 1, &two, WEFT_F32, &other, NULL), WEFT_OK);
    assert_int_equal(weft__kv_pool_join(other, f16, &err), WEFT_ARGUMENT);
    assert_int_equal(weft__kv_pool_join(f32, f16, &err), WEFT_OK);
    const uint64_t one = weft__kv_pool_bindings(f16)[0].page_bytes;
    assert_int_equal(weft__kv_pool_free_pages(f32, 0), 2);
    page[0] = weft__kv_page_take(f16, 0);
    assert_int_equal(weft__kv_pool_free_pages(f16, 0), 3);
    assert_int_equal(weft__kv_pool_free_pages(f32, 0), 1); /* and half of one */
    assert_int_equal(weft__kv_pool_available_bytes(f32, 0), 3 * one);
    page[1] = weft__kv_page_take(f32, 0);
    assert_int_equal(weft__kv_page_take(f32, 0), -1);
    assert_int_equal(weft__kv_pool_free_pages(f16, 0), 1);
    weft__kv_page_release(f32, 0, page[1]);
    weft__kv_page_release(f16, 0, page[0]);
    for (int i = 0; i < 4; i++) {
        page[i] = weft__kv_page_take(f16, 0);
        assert_true(page[i] >= 0);
        memset((char *)weft__kv_pool_bindings(f16)[0].data + (uint64_t)page[i] * one, 1, one);
    }
    assert_false(has_memory(f32, 0)); /* all four of the others have it now */
    weft__kv_pool_limit(f16, 0, 3);
    for (int i = 0; i < 4; i++) weft__kv_page_release(f16, 0, page[i]);
    assert_int_equal(weft__kv_pool_free_pages(f16, 0), 3);
    assert_int_equal(weft__kv_pool_free_pages(f32, 0), 1);
    page[0] = weft__kv_page_take(f32, 0);
    assert_true(page[0] >= 0);
    for (int i = 0; i < 4; i++) assert_false(has_memory(f16, i));
    weft__kv_page_release(f32, 0, page[0]);
    weft__kv_pool_destroy(&f32);
    weft__kv_pool_destroy(&f16);
    weft__kv_pool_destroy(&other);
}

/* A window group with the pages that weft__kv_pages_needed says serves any context, in any steps up to max_rows. */
static void windows_let_go_of_what_nobody_sees(void **state)
{
    (void)state;
    for (int32_t step = 1; step <= 40; step += 13) {
        weft__kv_pool *pool;
        weft__kv_seq *seq;
        weft_kv_group groups[2] = {FULL, WINDOW};
        int32_t n_pages[2] = {weft__kv_pages_needed(&FULL, 1000, step), weft__kv_pages_needed(&WINDOW, 1000, step)};
        assert_true(n_pages[1] < n_pages[0] / 4);
        assert_int_equal(weft__kv_pool_create(groups, 2, n_pages, WEFT_F16, &pool, NULL), WEFT_OK);
        assert_int_equal(weft__kv_seq_create(pool, 1000, &seq, NULL), WEFT_OK);
        for (int32_t at = 0; at + step <= 1000; at += step) {
            assert_int_equal(weft__kv_seq_reserve(seq, step, NULL), WEFT_OK);
            weft_seq_view view = weft__kv_seq_view(seq);
            for (int32_t p = at - 19 > 0 ? at - 19 : 0; p < at + step; p++) assert_true(view.pages[1][p / 16] >= 0);
            weft__kv_seq_advance(seq, step);
        }
        assert_int_equal(weft__kv_seq_trim(seq, 500), 0); /* its window is gone: start over */
        assert_int_equal(weft__kv_pool_free_pages(pool, 1), n_pages[1]);
        weft__kv_seq_destroy(&seq);
        weft__kv_pool_destroy(&pool);
    }
}

/* Position p has the bytes of position p - period, in a full group; in a window's, what it holds is some of them. */
static void repeats_whole_pages(void **state)
{
    (void)state;
    const weft_kv_group groups[] = {FULL, WINDOW};
    const int32_t n_pages[] = {8, 5}; /* of the window: what a part reaches, and what is still seen */
    weft__kv_pool *pool;
    weft__kv_seq *seq;
    weft_error err = {0};
    assert_int_equal(weft__kv_pool_create(groups, 2, n_pages, WEFT_F16, &pool, NULL), WEFT_OK);
    assert_int_equal(weft__kv_seq_create(pool, 128, &seq, NULL), WEFT_OK);
    assert_int_equal(weft__kv_seq_repeat(seq, 16, &err), WEFT_ARGUMENT); /* of nothing */
    assert_int_equal(weft__kv_seq_reserve(seq, 48, NULL), WEFT_OK);
    const weft_kv_binding *kv = weft__kv_pool_bindings(pool);
    weft_seq_view view = weft__kv_seq_view(seq);
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < 3; i++)
            memset((char *)kv[g].data + (uint64_t)view.pages[g][i] * kv[g].page_bytes, 1 + i, kv[g].page_bytes);
    weft__kv_seq_advance(seq, 40);
    assert_int_equal(weft__kv_seq_repeat(seq, 8, &err), WEFT_ARGUMENT); /* half a page */
    assert_non_null(strstr(err.message, "40 tokens are no whole pages of 16"));
    weft__kv_seq_advance(seq, 8);
    assert_int_equal(weft__kv_seq_repeat(seq, 75, NULL), WEFT_OK);
    assert_int_equal(weft__kv_seq_length(seq), 123);
    view = weft__kv_seq_view(seq);
    assert_int_equal(view.n_pages[0], 8);
    for (int i = 0; i < 8; i++) {
        const unsigned char *page = (unsigned char *)kv[0].data + (uint64_t)view.pages[0][i] * kv[0].page_bytes;
        for (int k = 0; k < i; k++) assert_int_not_equal(view.pages[0][i], view.pages[0][k]);
        assert_int_equal(page[0], 1 + i % 3);
        assert_int_equal(page[kv[0].page_bytes - 1], 1 + i % 3);
    }
    for (int i = 6; i < 8; i++) { /* position 123 sees 20 back */
        assert_true(view.pages[1][i] >= 0);
        assert_in_range(*((unsigned char *)kv[1].data + (uint64_t)view.pages[1][i] * kv[1].page_bytes), 1, 3);
    }
    assert_int_equal(weft__kv_seq_repeat(seq, 48, &err), WEFT_ARGUMENT); /* 123 is within a page */
    assert_int_equal(weft__kv_seq_trim(seq, 112), 112);
    assert_int_equal(weft__kv_seq_repeat(seq, 17, &err), WEFT_LIMIT); /* of the context */
    weft__kv_seq_destroy(&seq);
    assert_int_equal(weft__kv_pool_free_pages(pool, 0), 8);
    assert_int_equal(weft__kv_pool_free_pages(pool, 1), 5);
    weft__kv_pool_destroy(&pool);
}

static void refuses_other_types(void **state)
{
    (void)state;
    weft__kv_pool *pool;
    int32_t n_pages = 1;
    weft_error err = {0};
    assert_int_equal(weft__kv_pool_create(&FULL, 1, &n_pages, WEFT_Q8_0, &pool, &err), WEFT_UNSUPPORTED);
    assert_null(pool);
    n_pages = 0;
    assert_int_equal(weft__kv_pool_create(&FULL, 1, &n_pages, WEFT_F16, &pool, &err), WEFT_ARGUMENT);
    assert_null(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_returns_pages),
        cmocka_unit_test(exhausted_pool_leaves_the_sequence_as_it_was),
        cmocka_unit_test(shared_page_lives_until_its_last_owner),
        cmocka_unit_test(pages_have_memory_before_they_are_taken),
        cmocka_unit_test(pools_that_share_take_what_others_leave),
        cmocka_unit_test(windows_let_go_of_what_nobody_sees),
        cmocka_unit_test(repeats_whole_pages),
        cmocka_unit_test(refuses_other_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
