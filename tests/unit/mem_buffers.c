// SPDX-License-Identifier: Apache-2.0
/* mem_buffers.c: host, borrowed and mapped buffers, their failures, and every failing allocation. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/background.h"
#include "mem/mem.h"

/* Linked in place of madvise: refuses with this reason; 0 refuses nothing. */
static int advice_refusal, n_refused;
int __real_madvise(void *at, size_t n, int advice);
int __wrap_madvise(void *at, size_t n, int advice);
int __wrap_madvise(void *at, size_t n, int advice)
{
    if (!advice_refusal) return __real_madvise(at, n, advice);
    n_refused++;
    errno = advice_refusal;
    return -1;
}

/* And in place of munmap: counts. */
static size_t n_unmapped, unmapped_bytes, largest_unmapped;
int __real_munmap(void *at, size_t n);
int __wrap_munmap(void *at, size_t n);
int __wrap_munmap(void *at, size_t n)
{
    n_unmapped++;
    unmapped_bytes += n;
    if (n > largest_unmapped) largest_unmapped = n;
    return __real_munmap(at, n);
}

#define SPEC(...) ((weft_buffer_spec){.size = sizeof(weft_buffer_spec), __VA_ARGS__})

static void expect_text(const weft_error *err, const char *part)
{
    if (!strstr(err->message, part)) fail_msg("message \"%s\" lacks \"%s\"", err->message, part);
}

static void host_sizes_and_alignments(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 63, 4096, (1u << 20) - 1, 1u << 20, (4u << 20) + 3};
    static const uint32_t aligns[] = {0, 1, 64, 4096, 1u << 16, 2u << 20, 8u << 20};
    static const uint32_t flags[] = {0, WEFT_BUFFER_ZERO, WEFT_BUFFER_HUGE, WEFT_BUFFER_HUGE | WEFT_BUFFER_ZERO};
    size_t live = weft__alloc_live();
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t a = 0; a < sizeof aligns / sizeof *aligns; a++)
            for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
                weft_buffer_spec spec =
                    SPEC(.domain = WEFT_DOMAIN_HOST, .n_bytes = sizes[s], .align = aligns[a], .flags = flags[f]);
                weft_buffer *b;
                assert_int_equal(weft__mem_create(&spec, &b, NULL), WEFT_OK);
                assert_int_equal(b->n_bytes, sizes[s]);
                assert_int_equal(b->domain, WEFT_DOMAIN_HOST);
                assert_int_equal((uintptr_t)b->data % (aligns[a] ? aligns[a] : 64), 0);
                if (flags[f] & WEFT_BUFFER_ZERO)
                    for (uint64_t i = 0; i < sizes[s]; i++)
                        if (((char *)b->data)[i]) fail_msg("byte %llu is not zero", (unsigned long long)i);
                memset(b->data, 0xa5, (size_t)sizes[s]);
                weft_buffer_release(&b);
                assert_null(b);
            }
    assert_int_equal(weft__alloc_live(), live);
    weft_buffer *none = NULL;
    weft_buffer_release(&none);
    weft_buffer_release(NULL);
}

static void refused_specs(void **state)
{
    (void)state;
    static const struct {
        weft_buffer_spec spec;
        weft_status status;
        const char *part;
    } cases[] = {
        {{.size = 8, .n_bytes = 8}, WEFT_ARGUMENT, "weft_buffer_spec.size is 8"},
        {{.size = 24, .n_bytes = 8, .align = 48}, WEFT_ARGUMENT, "alignment 48"},
        {{.size = 24, .n_bytes = 8, .flags = WEFT_BUFFER_READONLY}, WEFT_ARGUMENT, "flags 0x4"},
        {{.size = 24, .n_bytes = 8, .domain = WEFT_DOMAIN_DEVICE}, WEFT_ARGUMENT, "domain 3"},
        {{.size = 24, .n_bytes = UINT64_MAX}, WEFT_NO_MEMORY, "address space"},
        {{.size = 24, .n_bytes = 1ull << 62}, WEFT_NO_MEMORY, "cannot map 4611686018427387904 bytes"},
        {{.size = 24, .n_bytes = 64, .domain = WEFT_DOMAIN_SHARED}, WEFT_ARGUMENT, "domain 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_buffer *b = (weft_buffer *)&b;
        weft_error err = {0};
        weft_status status = weft__mem_create(&cases[i].spec, &b, &err);
        assert_int_equal(status, cases[i].status);
        assert_null(b);
        expect_text(&err, cases[i].part);
    }
}

/* A file of n bytes i % 251 under a fresh name. */
static void make_file(char path[64], size_t n)
{
    strcpy(path, "/tmp/weft-mem-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unsigned char *bytes = malloc(n ? n : 1);
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)(i % 251);
    assert_int_equal(write(fd, bytes, n), n);
    free(bytes);
    close(fd);
}

static void mapped_file_and_advice(void **state)
{
    (void)state;
    char path[64];
    make_file(path, 50001);
    weft_buffer *b;
    weft_error err;
    assert_int_equal(weft__mem_map(path, &b, &err), WEFT_OK);
    unlink(path); /* the mapping keeps the bytes */
    assert_int_equal(b->n_bytes, 50001);
    assert_int_equal(b->domain, WEFT_DOMAIN_MAPPED);
    assert_int_equal(b->flags, WEFT_BUFFER_READONLY);
    for (int advice = WEFT__MEM_ADVICE_NORMAL; advice <= WEFT__MEM_ADVICE_DONTNEED; advice++) {
        assert_int_equal(weft__mem_advise(b, 0, 50001, (weft__mem_advice)advice, &err), WEFT_OK);
        assert_int_equal(weft__mem_advise(b, 4097, 9000, (weft__mem_advice)advice, &err), WEFT_OK);
        assert_int_equal(weft__mem_advise(b, 50001, 0, (weft__mem_advice)advice, &err), WEFT_OK);
    }
    for (size_t i = 0; i < 50001; i++)
        if (((unsigned char *)b->data)[i] != i % 251) fail_msg("byte %zu differs after advice", i);
    assert_int_equal(weft__mem_advise(b, 50000, 2, WEFT__MEM_ADVICE_WILLNEED, &err), WEFT_ARGUMENT);
    assert_int_equal(weft__mem_advise(b, UINT64_MAX, 2, WEFT__MEM_ADVICE_WILLNEED, &err), WEFT_ARGUMENT);
    expect_text(&err, "50001 bytes");
    weft_buffer_release(&b);
}

/* What is lost are whole pages inside the range; what a file maps is not lost. */
static void what_may_be_lost_gives_its_memory_back(void **state)
{
    (void)state;
    enum { N = 4 << 20 };
    weft_error err;
    weft_buffer *b;
    char path[64];
    assert_int_equal(weft__mem_create(&SPEC(.domain = WEFT_DOMAIN_HOST, .n_bytes = N), &b, &err), WEFT_OK);
    unsigned char *data = b->data;
    memset(data, 7, N);
    assert_int_equal(weft__mem_advise(b, 4097, N / 2, WEFT__MEM_ADVICE_LOSE, &err), WEFT_OK);
    size_t n_lost = 0;
    for (size_t i = 0; i < N; i++) {
        if (data[i] != 7 && (i < 4097 || i >= 4097 + N / 2)) fail_msg("byte %zu was lost", i);
        n_lost += data[i] == 0;
    }
    assert_true(n_lost >= N / 2 - 2 * (size_t)sysconf(_SC_PAGESIZE));
    weft_buffer_release(&b);
    make_file(path, 50001);
    assert_int_equal(weft__mem_map(path, &b, &err), WEFT_OK);
    unlink(path);
    assert_int_equal(weft__mem_advise(b, 0, 50001, WEFT__MEM_ADVICE_LOSE, &err), WEFT_ARGUMENT);
    expect_text(&err, "not to be lost");
    weft_buffer_release(&b);
}

/* Huge pages are a wish: memory comes without them. Advice that somebody asked for says that it was refused. */
static void refused_advice(void **state)
{
    (void)state;
    char path[64];
    make_file(path, 50001);
    size_t live = weft__alloc_live();
    static const int reasons[] = {EINVAL, ENOMEM, EAGAIN};
    for (int r = 0; r < 3; r++) {
        weft_error err = {0};
        weft_buffer *b;
        advice_refusal = reasons[r];
        weft_buffer_spec spec = SPEC(.domain = WEFT_DOMAIN_HOST, .n_bytes = 5u << 20, .flags = WEFT_BUFFER_HUGE);
        n_refused = 0;
        assert_int_equal(weft__mem_create(&spec, &b, &err), WEFT_OK);
        assert_int_equal(n_refused, 1);
        memset(b->data, 0x5a, (size_t)b->n_bytes);
        assert_int_equal(((unsigned char *)b->data)[b->n_bytes - 1], 0x5a);
        weft_buffer_release(&b);
        assert_int_equal(weft__mem_map(path, &b, &err), WEFT_OK);
        for (int advice = WEFT__MEM_ADVICE_NORMAL; advice <= WEFT__MEM_ADVICE_SMALL; advice++) {
            assert_int_equal(weft__mem_advise(b, 0, 50001, (weft__mem_advice)advice, &err), WEFT_IO);
            expect_text(&err, "was refused");
        }
        assert_int_equal(((unsigned char *)b->data)[50000], 50000 % 251);
        weft_buffer_release(&b);
        advice_refusal = 0;
    }
    assert_int_equal(weft__alloc_live(), live);
    unlink(path);
}

/* Page faults while the first n bytes are read. */
static long faults_when_read(const weft_buffer *b, size_t n)
{
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (size_t i = 0; i < n; i += 512) (void)((const volatile unsigned char *)b->data)[i];
    getrusage(RUSAGE_SELF, &after);
    return after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt;
}

/* DONTNEED on a range drops whole pages inside it and none beside it. */
static void dontneed_keeps_neighbours(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char path[64];
    make_file(path, 8 * page);
    weft_buffer *b;
    assert_int_equal(weft__mem_map(path, &b, NULL), WEFT_OK);
    unlink(path);
    faults_when_read(b, 8 * page); /* now every page is there */
    assert_int_equal(weft__mem_advise(b, 1, page, WEFT__MEM_ADVICE_DONTNEED, NULL), WEFT_OK); /* holds no whole page */
    assert_int_equal(faults_when_read(b, 8 * page), 0);
    assert_int_equal(weft__mem_advise(b, 0, 8 * page, WEFT__MEM_ADVICE_DONTNEED, NULL), WEFT_OK);
    assert_true(faults_when_read(b, 8 * page) > 0);
    weft_buffer_release(&b);
    weft_buffer_spec spec = SPEC(.domain = WEFT_DOMAIN_HOST, .n_bytes = 4u << 20);
    weft_error err;
    assert_int_equal(weft__mem_create(&spec, &b, &err), WEFT_OK);
    assert_int_equal(weft__mem_advise(b, 0, b->n_bytes, WEFT__MEM_ADVICE_DONTNEED, &err), WEFT_ARGUMENT);
    expect_text(&err, "lose their contents");
    weft_buffer_release(&b);
}

static void refused_files(void **state)
{
    (void)state;
    char path[64], fifo[80];
    make_file(path, 0);
    snprintf(fifo, sizeof fifo, "%s.fifo", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const struct {
        const char *path;
        weft_status status;
        const char *part;
    } cases[] = {
        {path, WEFT_FORMAT, "is empty"},
        {fifo, WEFT_UNSUPPORTED, "pipe or device"},
        {"/tmp", WEFT_UNSUPPORTED, "is a directory"},
        {"/nonexistent/model.gguf", WEFT_NOT_FOUND, "/nonexistent/model.gguf: cannot be opened: No such file"}};
    size_t live = weft__alloc_live();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_buffer *b;
        weft_error err = {0};
        assert_int_equal(weft__mem_map(cases[i].path, &b, &err), cases[i].status);
        assert_null(b);
        expect_text(&err, cases[i].path);
        expect_text(&err, cases[i].part);
    }
    assert_int_equal(weft__alloc_live(), live);
    unlink(fifo);
    unlink(path);
}

static int gate(void *arg, size_t n_bytes)
{
    (void)n_bytes;
    return (*(int *)arg)-- > 0;
}

static weft_status make_kind(int kind, const char *path, weft_buffer **b, weft_error *err)
{
    weft_buffer_spec small = SPEC(.domain = WEFT_DOMAIN_HOST, .n_bytes = 100);
    weft_buffer_spec big = SPEC(.domain = WEFT_DOMAIN_HOST, .n_bytes = 3u << 20, .flags = WEFT_BUFFER_HUGE);
    switch (kind) {
    case 0: return weft__mem_create(&small, b, err);
    case 1: return weft__mem_create(&big, b, err);
    case 2: return weft__mem_map(path, b, err);
    default: return weft__mem_borrow(path, 4, WEFT_BUFFER_READONLY, b, err);
    }
}

static void failing_allocations(void **state)
{
    (void)state;
    char path[64];
    make_file(path, 100);
    size_t live = weft__alloc_live();
    int fd = dup(0);
    close(fd);
    for (int kind = 0; kind < 4; kind++)
        for (int n = 0;; n++) {
            int left = n;
            weft_buffer *b;
            weft_error err = {0};
            weft__alloc_set_gate(gate, &left);
            weft_status status = make_kind(kind, path, &b, &err);
            weft__alloc_set_gate(NULL, NULL);
            if (status == WEFT_OK) {
                assert_true(n >= 1);
                weft_buffer_release(&b);
                assert_int_equal(weft__alloc_live(), live);
                break;
            }
            assert_int_equal(status, WEFT_NO_MEMORY);
            assert_null(b);
            expect_text(&err, "memory");
            assert_int_equal(weft__alloc_live(), live);
        }
    int again = dup(0);
    assert_int_equal(again, fd); /* no descriptor was leaked */
    close(again);
    unlink(path);
}

enum { LARGE = (22 << 20) + 4096 };

static void release_large(void *arg)
{
    weft_buffer *b;
    void **where = arg;
    weft_buffer_spec spec = SPEC(.domain = WEFT_DOMAIN_HOST, .n_bytes = LARGE);
    assert_int_equal(weft__mem_create(&spec, &b, NULL), WEFT_OK);
    memset(b->data, 1, LARGE);
    *where = b->data;
    n_unmapped = unmapped_bytes = largest_unmapped = 0;
    weft_buffer_release(&b);
}

/* All of it, and never more than some at a time: nobody maps memory meanwhile. */
static void in_the_background_it_goes_in_pieces(void **state)
{
    (void)state;
    unsigned char in;
    void *where;
    weft__background_run(release_large, &where);
    assert_int_equal(unmapped_bytes, LARGE);
    assert_true(largest_unmapped <= 4 << 20);
    for (size_t at = 0; at < LARGE; at += 1 << 20) {
        errno = 0;
        assert_true(mincore((char *)where + at, 1, &in) == -1 && errno == ENOMEM);
    }
    release_large(&where);
    assert_int_equal(n_unmapped, 1);
    assert_int_equal(unmapped_bytes, LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_sizes_and_alignments),
        cmocka_unit_test(refused_specs),
        cmocka_unit_test(mapped_file_and_advice),
        cmocka_unit_test(dontneed_keeps_neighbours),
        cmocka_unit_test(what_may_be_lost_gives_its_memory_back),
        cmocka_unit_test(refused_advice),
        cmocka_unit_test(in_the_background_it_goes_in_pieces),
        cmocka_unit_test(refused_files),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
