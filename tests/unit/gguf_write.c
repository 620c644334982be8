// SPDX-License-Identifier: Apache-2.0
/* gguf_write.c: what the writer writes the reader reads back; misuse, full disks and failing allocations leave no
 * file. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "format/gguf_parts.h"
#include "format/gguf_write.h"
#include "format/out_file.h"
#include "claims.h"
#include "gguf_build.h"
#include "model/shared.h"
#include "folder.h"

static int make_folder(void **state)
{
    (void)state;
    return folder_make("out.gguf");
}

static void ok(weft_status status, const weft_error *err)
{
    if (status != WEFT_OK) fail_msg("status %d: %s", status, err->message);
}

static void expect(weft_status got, weft_status wanted, const weft_error *err, const char *part)
{
    if (got != wanted || !strstr(err->message, part))
        fail_msg("status %d, \"%s\" lacks \"%s\"", got, err->message, part);
}

static weft_status write_metadata(weft__gguf_writer *w, weft_error *err)
{
    static const weft__gguf_str strings[] = {{"a", 1}, {"", 0}, {"nul\0nul", 7}};
    static const int32_t numbers[] = {1, -2, 3};
    static const uint8_t bools[] = {1, 0};
    weft_status status = weft__gguf_put_string(w, "general.architecture", "llama", 5, err);
    if (status == WEFT_OK) status = weft__gguf_put_u32(w, "n.u32", 4000000000u, err);
    if (status == WEFT_OK) status = weft__gguf_put(w, "n.i32", WEFT__GGUF_I32, &(int32_t){-5}, err);
    if (status == WEFT_OK) status = weft__gguf_put_u64(w, "n.u64", UINT64_MAX, err);
    if (status == WEFT_OK) status = weft__gguf_put(w, "n.i64", WEFT__GGUF_I64, &(int64_t){INT64_MIN}, err);
    if (status == WEFT_OK) status = weft__gguf_put_f32(w, "n.f32", 0.1f, err);
    if (status == WEFT_OK) status = weft__gguf_put(w, "n.f64", WEFT__GGUF_F64, &(double){0.1}, err);
    if (status == WEFT_OK) status = weft__gguf_put_bool(w, "n.bool", 2, err);
    if (status == WEFT_OK) status = weft__gguf_put_strings(w, "a.strings", strings, 3, err);
    if (status == WEFT_OK) status = weft__gguf_put_array(w, "a.i32", WEFT__GGUF_I32, numbers, 3, err);
    if (status == WEFT_OK) status = weft__gguf_put_array(w, "a.bool", WEFT__GGUF_BOOL, bools, 2, err);
    if (status == WEFT_OK) status = weft__gguf_put_array(w, "a.none", WEFT__GGUF_F32, NULL, 0, err);
    return status;
}

enum { BIG_ROWS = 3000, BIG_BYTES = BIG_ROWS * 2 * 34 };

static weft_status write_tensors(weft__gguf_writer *w, weft_error *err)
{
    static const uint64_t small[] = {5}, big[] = {64, BIG_ROWS};
    static unsigned char data[BIG_BYTES];
    static const float five[] = {1, 2, 3, 4, 5};
    for (size_t i = 0; i < BIG_BYTES; i++) data[i] = (unsigned char)(i * 7);
    weft_status status = weft__gguf_declare(w, "small", WEFT_F32, 1, small, err);
    if (status == WEFT_OK) status = weft__gguf_declare(w, "big", WEFT_Q8_0, 2, big, err);
    if (status == WEFT_OK) status = weft__gguf_declare(w, "last", WEFT_F32, 1, small, err);
    if (status == WEFT_OK) status = weft__gguf_begin(w, err);
    if (status == WEFT_OK) status = weft__gguf_write(w, five, 4, err);
    if (status == WEFT_OK) status = weft__gguf_write(w, NULL, 0, err);
    if (status == WEFT_OK) status = weft__gguf_write(w, five + 1, 16, err);
    for (size_t at = 0; at < BIG_BYTES && status == WEFT_OK; at += 3400)
        status = weft__gguf_write(w, data + at, 3400, err);
    if (status == WEFT_OK) status = weft__gguf_write(w, five, sizeof five, err);
    return status;
}

static weft_status write_file(uint32_t alignment, weft_error *err)
{
    weft__gguf_writer *w;
    weft_status status = weft__gguf_writer_create(path, alignment, &w, err);
    if (status == WEFT_OK) status = write_metadata(w, err);
    if (status == WEFT_OK) status = write_tensors(w, err);
    if (status == WEFT_OK) status = weft__gguf_finish(w, err);
    weft__gguf_writer_destroy(&w);
    return status;
}

static void check_metadata(const weft__gguf *g)
{
    uint32_t u32;
    int32_t i32;
    uint64_t u64;
    int64_t i64;
    float f32;
    double f64;
    int b;
    const weft__gguf_list *list;
    assert_int_equal(weft__gguf_u32(g, "n.u32", &u32, NULL), WEFT_OK);
    assert_int_equal(weft__gguf_i32(g, "n.i32", &i32, NULL), WEFT_OK);
    assert_int_equal(weft__gguf_u64(g, "n.u64", &u64, NULL), WEFT_OK);
    assert_int_equal(weft__gguf_i64(g, "n.i64", &i64, NULL), WEFT_OK);
    assert_int_equal(weft__gguf_f32(g, "n.f32", &f32, NULL), WEFT_OK);
    assert_int_equal(weft__gguf_f64(g, "n.f64", &f64, NULL), WEFT_OK);
    assert_int_equal(weft__gguf_bool(g, "n.bool", &b, NULL), WEFT_OK);
    assert_true(u32 == 4000000000u && i32 == -5 && u64 == UINT64_MAX && i64 == INT64_MIN && f32 == 0.1f && f64 == 0.1 &&
                b == 1);
    assert_int_equal(weft__gguf_array(g, "a.strings", &list, NULL), WEFT_OK);
    assert_int_equal(list->n, 3);
    assert_int_equal(weft__gguf_list_string(list, 2).len, 7);
    assert_memory_equal(weft__gguf_list_string(list, 2).data, "nul\0nul", 7);
    assert_int_equal(weft__gguf_array(g, "a.i32", &list, NULL), WEFT_OK);
    assert_int_equal(weft__gguf_list_i64(list, 1, &i64), 1);
    assert_int_equal(i64, -2);
    assert_int_equal(weft__gguf_array(g, "a.none", &list, NULL), WEFT_OK);
    assert_int_equal(list->n, 0);
}

static void round_trip(void **state)
{
    (void)state;
    static const uint32_t alignments[] = {0, 8, 32, 64, 4096};
    for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++) {
        weft_error err = {0};
        weft__gguf *g;
        uint32_t alignment = alignments[a] ? alignments[a] : 32;
        const weft__tensor_desc *t;
        ok(write_file(alignments[a], &err), &err);
        assert_int_equal(files_in_folder(), 1);
        ok(weft__gguf_open(path, &g, &err), &err);
        assert_int_equal(weft__gguf_version(g), 3);
        assert_int_equal(g->alignment, alignment);
        assert_int_equal(weft__gguf_n_meta(g), 12 + (alignment != 32));
        check_metadata(g);
        assert_int_equal(weft__gguf_tensors(g)->n, 3);
        assert_int_equal(weft__gguf_tensor(g, "small", &t, NULL), WEFT_OK);
        assert_true(((const float *)weft__tensor_data(t))[4] == 5.0f);
        assert_int_equal(weft__gguf_tensor(g, "big", &t, NULL), WEFT_OK);
        assert_int_equal(t->n_bytes, BIG_BYTES);
        assert_int_equal(t->offset % alignment, 0);
        for (size_t i = 0; i < BIG_BYTES; i++)
            if (((const unsigned char *)weft__tensor_data(t))[i] != (unsigned char)(i * 7))
                fail_msg("byte %zu differs", i);
        assert_int_equal(weft__gguf_tensor(g, "last", &t, NULL), WEFT_OK);
        assert_true(((const float *)weft__tensor_data(t))[4] == 5.0f);
        weft__gguf_close(&g);
    }
}

static weft_status copy_model(const weft__gguf *g, const char *to, weft_error *err)
{
    const weft__tensor_set *set = weft__gguf_tensors(g);
    weft__gguf_writer *w;
    weft_status status = weft__gguf_writer_create(to, g->alignment, &w, err);
    if (status == WEFT_OK) status = weft__gguf_put_all(w, g, err);
    for (size_t i = 0; i < set->n && status == WEFT_OK; i++)
        status =
            weft__gguf_declare(w, set->items[i].name, set->items[i].dtype, set->items[i].n_dims, set->items[i].d, err);
    if (status == WEFT_OK) status = weft__gguf_begin(w, err);
    for (size_t i = 0; i < set->n && status == WEFT_OK; i++)
        status = weft__gguf_write(w, weft__tensor_data(&set->items[i]), (size_t)set->items[i].n_bytes, err);
    if (status == WEFT_OK) status = weft__gguf_finish(w, err);
    weft__gguf_writer_destroy(&w);
    return status;
}

/* Copying another writer's file through reader and writer gives the same bytes. */
static void reference_copies(void **state)
{
    (void)state;
    static const char *const names[] = {"models/stories260K.gguf", "models/tiny-llama.Q4_K_S.gguf",
                                        "models/tiny-llama.lora-a.gguf", "models/tiny-qwen3moe.f16.gguf",
                                        "tokenizers/ggml-vocab-gpt-2.gguf"};
    if (!shared_path("%s", names[0])) skip_material(names[0]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        weft__gguf *g, *copy;
        weft_error err = {0};
        const char *source = shared_path("%s", names[i]);
        if (!source && !strncmp(names[i], "tokenizers/", 11)) source = "models/alderbrook.gguf"; /* has merges, too */
        if (!source) fail_msg("there is no %s", names[i]);
        ok(weft__gguf_open(source, &g, &err), &err);
        ok(copy_model(g, path, &err), &err);
        ok(weft__gguf_open(path, &copy, &err), &err);
        const weft_buffer *a = g->parts[0], *b = copy->parts[0];
        if (a->n_bytes != b->n_bytes || memcmp(a->data, b->data, (size_t)a->n_bytes) != 0)
            fail_msg("%s: the copy differs", names[i]);
        weft__gguf_close(&copy);
        weft__gguf_close(&g);
    }
}

/* Nested lists and odd alignment survive; so does metadata in the order of the source. */
static void sample_copy(void **state)
{
    (void)state;
    sample s = {0};
    weft__gguf *g, *copy;
    weft_error err = {0};
    sample_build(&s, 3);
    ok(weft__gguf_parse(s.b.p, s.b.n, "sample", &g, &err), &err);
    ok(copy_model(g, path, &err), &err);
    ok(weft__gguf_open(path, &copy, &err), &err);
    assert_int_equal(weft__gguf_n_meta(copy), weft__gguf_n_meta(g) - 1); /* general.alignment 32 is left out */
    for (size_t i = 0; i < weft__gguf_n_meta(copy); i++) {
        const weft__gguf_entry *a = weft__gguf_meta(copy, i), *b = weft__gguf_meta(g, i < S_ALIGN ? i : i + 1);
        assert_string_equal(a->key, b->key);
        assert_int_equal(a->type, b->type);
        assert_int_equal(a->raw_bytes, b->raw_bytes);
        assert_memory_equal(a->raw, b->raw, a->raw_bytes);
    }
    weft__gguf_close(&copy);
    weft__gguf_close(&g);
    free(s.b.p);
}

static void misuse(void **state)
{
    (void)state;
    weft_error err = {0};
    weft__gguf_writer *w;
    uint64_t d[] = {32, 1}, zero[] = {0}, odd[] = {33}, huge[] = {1ull << 61};
    char long_name[66];
    unsigned char two = 2;
    float data[32] = {0};
    memset(long_name, 'n', 65), long_name[65] = 0;
    unlink(path);
    expect(weft__gguf_writer_create(path, 24, &w, &err), WEFT_ARGUMENT, &err, "alignment 24");
    expect(weft__gguf_writer_create("/nonexistent/x.gguf", 0, &w, &err), WEFT_IO, &err,
           "/nonexistent/x.gguf: nothing can be written into its folder");
    assert_null(w);
    ok(weft__gguf_writer_create(path, 0, &w, &err), &err);
    ok(weft__gguf_put_u32(w, "k", 1, &err), &err);
    expect(weft__gguf_put_u32(w, "k", 1, &err), WEFT_EXISTS, &err, "key 'k' was added before");
    expect(weft__gguf_put_u32(w, "", 1, &err), WEFT_ARGUMENT, &err, "key '' is not 1 to 65535");
    expect(weft__gguf_put_u32(w, "\xff", 1, &err), WEFT_ARGUMENT, &err, "key '?' is not");
    expect(weft__gguf_put_u32(w, "general.alignment", 64, &err), WEFT_ARGUMENT, &err, "general.alignment");
    expect(weft__gguf_put(w, "b", WEFT__GGUF_BOOL, &two, &err), WEFT_ARGUMENT, &err, "key 'b'");
    expect(weft__gguf_put(w, "s", WEFT__GGUF_STRING, "x", &err), WEFT_ARGUMENT, &err, "no fixed size");
    expect(weft__gguf_put_raw(w, "r", WEFT__GGUF_U32, "abcde", 5, &err), WEFT_ARGUMENT, &err,
           "key 'r': bytes are left");
    expect(weft__gguf_put_raw(w, "r", WEFT__GGUF_STRING, "\x09\0\0\0\0\0\0\0x", 9, &err), WEFT_ARGUMENT, &err,
           "a string of 9");
    ok(weft__gguf_declare(w, "t", WEFT_F32, 2, d, &err), &err);
    expect(weft__gguf_declare(w, "t", WEFT_F32, 2, d, &err), WEFT_EXISTS, &err, "tensor 't' was declared before");
    expect(weft__gguf_declare(w, long_name, WEFT_F32, 2, d, &err), WEFT_ARGUMENT, &err, "is not 1 to 64 bytes");
    expect(weft__gguf_declare(w, "z", WEFT_F32, 1, zero, &err), WEFT_ARGUMENT, &err, "tensor 'z': dimension 0 is 0");
    expect(weft__gguf_declare(w, "o", WEFT_Q4_0, 1, odd, &err), WEFT_ARGUMENT, &err, "tensor 'o': dimension 0 is 33");
    expect(weft__gguf_declare(w, "h", WEFT_F32, 1, huge, &err), WEFT_ARGUMENT, &err, "tensor 'h': the size");
    expect(weft__gguf_declare(w, "n", WEFT_F32, 7, d, &err), WEFT_ARGUMENT, &err, "tensor 'n': 7 dimensions");
    expect(weft__gguf_declare(w, "u", 99, 1, d, &err), WEFT_ARGUMENT, &err, "tensor 'u': type id 99");
    expect(weft__gguf_write(w, data, 4, &err), WEFT_STATE, &err, "header is not yet written");
    expect(weft__gguf_finish(w, &err), WEFT_STATE, &err, "header is not yet written");
    ok(weft__gguf_begin(w, &err), &err);
    expect(weft__gguf_begin(w, &err), WEFT_STATE, &err, "header is already written");
    expect(weft__gguf_put_u32(w, "late", 1, &err), WEFT_STATE, &err, "header is already written");
    expect(weft__gguf_finish(w, &err), WEFT_STATE, &err, "tensor 't' has 0 of its 128 bytes");
    ok(weft__gguf_write(w, data, 100, &err), &err);
    expect(weft__gguf_write(w, data, 29, &err), WEFT_ARGUMENT, &err,
           "tensor 't' has room for 28 bytes more, not for 29");
    ok(weft__gguf_write(w, data, 28, &err), &err);
    expect(weft__gguf_write(w, data, 1, &err), WEFT_ARGUMENT, &err, "more than its tensors hold");
    ok(weft__gguf_finish(w, &err), &err);
    expect(weft__gguf_finish(w, &err), WEFT_STATE, &err, "it is finished");
    weft__gguf_writer_destroy(&w);
    weft__gguf_writer_destroy(&w);
    assert_int_equal(files_in_folder(), 1);
}

/* An unfinished write leaves what was there. */
static void abandoned(void **state)
{
    (void)state;
    weft_error err = {0};
    weft__gguf_writer *w;
    bytes old = {0};
    put_text(&old, "the file that was there before");
    assert_int_equal(bytes_save(&old, path), 1);
    ok(weft__gguf_writer_create(path, 0, &w, &err), &err);
    assert_int_equal(files_in_folder(), 2);
    ok(write_metadata(w, &err), &err);
    ok(write_tensors(w, &err), &err);
    weft__gguf_writer_destroy(&w);
    assert_int_equal(files_in_folder(), 1);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, old.n);
    free(old.p);
    unlink(path);
}

/* Runs `fn` under a limit on the size of files, which stands in for a full disk. */
static weft_status with_full_disk(weft_status (*fn)(weft_error *err), weft_error *err)
{
    struct rlimit was, small;
    getrlimit(RLIMIT_FSIZE, &was);
    small = was;
    small.rlim_cur = 100000;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    weft_status status = fn(err);
    setrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, SIG_DFL);
    return status;
}

static weft_status write_model(weft_error *err)
{
    return write_file(0, err);
}

/* Without a reservation, so that a write itself runs out of space; nothing may succeed after that. */
static weft_status write_out(weft_error *err)
{
    weft__out_file o;
    weft_error later;
    weft_status status = weft__out_file_open(&o, path, err);
    for (int i = 0; i < 100 && status == WEFT_OK; i++) status = weft__out_file_zeros(&o, 5000, err);
    if (weft__out_file_write(&o, "x", 1, &later) != WEFT_STATE || weft__out_file_commit(&o, &later) != WEFT_STATE)
        status = WEFT_INTERNAL;
    weft__out_file_close(&o);
    return status;
}

/* Bytes of a file that was made shorter since it was mapped: where reading them would be a SIGBUS, writing them is an
 * error that says so. */
static void what_cannot_be_read_any_more(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    weft__out_file o;
    weft_error err = {0};
    char source[4096];
    snprintf(source, sizeof source, "%s.source", path);
    const int fd = open(source, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, N), 0);
    const char *mapped = mmap(NULL, N, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(mapped != MAP_FAILED);
    assert_int_equal(ftruncate(fd, 0), 0);
    unlink(source);
    const int n_files = files_in_folder();
    ok(weft__out_file_open(&o, path, &err), &err);
    expect(weft__out_file_write(&o, mapped, N, &err), WEFT_IO, &err, "what it copies cannot be read any more");
    weft__out_file_close(&o);
    assert_int_equal(files_in_folder(), n_files);
    munmap((void *)(uintptr_t)mapped, N);
    close(fd);
}

static void in_memory(void **state)
{
    weft__gguf_writer *w;
    weft__strbuf file = {0};
    weft__gguf *g;
    uint32_t value = 0;
    weft_error err = {0};
    (void)state;
    ok(weft__gguf_writer_memory("made here", &w, &err), &err);
    ok(weft__gguf_put_u32(w, "a.b", 7, &err), &err);
    expect(weft__gguf_put_u32(w, "a.b", 7, &err), WEFT_EXISTS, &err, "made here");
    ok(weft__gguf_writer_bytes(w, &file, &err), &err);
    expect(weft__gguf_begin(w, &err), WEFT_STATE, &err, "made here");
    weft__gguf_writer_destroy(&w);
    ok(weft__gguf_parse(file.data, file.len, "made here", &g, &err), &err);
    ok(weft__gguf_u32(g, "a.b", &value, &err), &err);
    assert_int_equal(value, 7);
    assert_int_equal(weft__gguf_tensors(g)->n, 0);
    weft__gguf_close(&g);
    weft__strbuf_free(&file);
}

static void full_disk(void **state)
{
    (void)state;
    weft_error err = {0};
    unlink(path);
    expect(with_full_disk(write_model, &err), WEFT_IO, &err,
           "out.gguf: the disk is full or the file too large for it (reserving");
    assert_int_equal(files_in_folder(), 0);
    expect(with_full_disk(write_out, &err), WEFT_IO, &err,
           "out.gguf: the disk is full or the file too large for it (writing");
    assert_int_equal(files_in_folder(), 0);
}

static int gate(void *arg, size_t n_bytes)
{
    (void)n_bytes;
    return (*(int *)arg)-- > 0;
}

static void failing_allocations(void **state)
{
    (void)state;
    size_t live = weft__alloc_live();
    weft_status status = WEFT_NO_MEMORY;
    int n = 0;
    for (; status != WEFT_OK; n++) {
        int left = n;
        weft_error err = {0};
        unlink(path);
        weft__alloc_set_gate(gate, &left);
        status = write_file(64, &err);
        weft__alloc_set_gate(NULL, NULL);
        assert_int_equal(weft__alloc_live(), live);
        if (status == WEFT_OK) break;
        if (status != WEFT_NO_MEMORY || !strstr(err.message, "memory"))
            fail_msg("%d: status %d: %s", n, status, err.message);
        assert_int_equal(files_in_folder(), 0);
    }
    print_message("writing failed cleanly at each of %d allocations\n", n);
    assert_int_equal(files_in_folder(), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] =
        {
            cmocka_unit_test(round_trip), cmocka_unit_test(sample_copy),
            cmocka_unit_test(misuse),     cmocka_unit_test(abandoned),
            cmocka_unit_test(full_disk),  cmocka_unit_test(failing_allocations),
            cmocka_unit_test(in_memory),  cmocka_unit_test(what_cannot_be_read_any_more),
        },
                            material[] = {cmocka_unit_test(reference_copies)};
    if (claims_material(argc, argv)) return claims_status(cmocka_run_group_tests(material, make_folder, remove_folder));
    return claims_status(cmocka_run_group_tests(tests, make_folder, remove_folder));
}
