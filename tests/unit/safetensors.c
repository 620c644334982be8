// SPDX-License-Identifier: Apache-2.0
/* safetensors.c: the reader of safetensors files and folders: what a good file gives, and that each bad one is refused
 * with a message that names the fault. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixture.h"

#include "base/random.h"
#include "format/safetensors.h"

#define LABEL "case.safetensors"
#define GOOD                                                                                                           \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[4,28]},\"__metadata__\":{\"format\":\"pt\"},"         \
    "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}"

/* Header, then `n_data` bytes 0, 1, 2 ...; free(). */
static unsigned char *file_of(const char *header, size_t n_header, size_t n_data, size_t *n)
{
    *n = 8 + n_header + n_data;
    unsigned char *p = malloc(*n);
    assert_non_null(p);
    for (int i = 0; i < 8; i++) p[i] = (unsigned char)((uint64_t)n_header >> 8 * i);
    memcpy(p + 8, header, n_header);
    for (size_t i = 0; i < n_data; i++) p[8 + n_header + i] = (unsigned char)i;
    return p;
}

static void good_file(void **state)
{
    size_t n;
    weft__safetensors *st;
    weft_error err = {0};
    (void)state;
    unsigned char *p = file_of(GOOD "   ", sizeof GOOD + 2, 28, &n);
    assert_int_equal(weft__safetensors_parse(p, n, LABEL, &st, &err), WEFT_OK);
    const weft__tensor_set *set = weft__safetensors_tensors(st);
    assert_int_equal(set->n, 2);
    const weft__tensor_desc *a = weft__tensor_find(set, "a"), *b = weft__tensor_find(set, "b");
    assert_true(a && b);
    assert_int_equal(a->dtype, WEFT_F32);
    assert_int_equal(a->n_dims, 2);
    assert_int_equal(a->d[0], 3);
    assert_int_equal(a->d[1], 2);
    assert_int_equal(b->dtype, WEFT_BF16);
    assert_int_equal(*(const unsigned char *)weft__tensor_data(b), 0);
    assert_int_equal(*(const unsigned char *)weft__tensor_data(a), 4);
    weft__safetensors_close(&st);
    assert_null(st);
    free(p);
}

static void scalar(void **state)
{
    size_t n;
    weft__safetensors *st;
    (void)state;
    const char *header = "{\"s\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[0,2]}}";
    unsigned char *p = file_of(header, strlen(header), 2, &n);
    assert_int_equal(weft__safetensors_parse(p, n, LABEL, &st, NULL), WEFT_OK);
    const weft__tensor_desc *s = weft__tensor_find(weft__safetensors_tensors(st), "s");
    assert_int_equal(s->n_dims, 1);
    assert_int_equal(s->n_elems, 1);
    weft__safetensors_close(&st);
    free(p);
}

/* ---- malformed files ---- */

#define T(dtype, shape, begin, end)                                                                                    \
    "{\"t\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}}"

static const struct {
    const char *header;
    size_t n_data;
    weft_status status;
    const char *expected;
} malformed[] = {
    {"", 4, WEFT_FORMAT, "does not begin with '{'"},
    {" {}", 0, WEFT_FORMAT, "does not begin with '{'"},
    {"[]", 0, WEFT_FORMAT, "does not begin with '{'"},
    {"{", 0, WEFT_FORMAT, "header: line 1"},
    {"{} x", 0, WEFT_FORMAT, "header: line 1"},
    {"{}{}", 0, WEFT_FORMAT, "header: line 1"},
    {"{\"t\":1}", 0, WEFT_FORMAT, "tensor 't' is no object"},
    {"{\"t\":null}", 0, WEFT_FORMAT, "tensor 't' is no object"},
    {"{\"t\":{}}", 0, WEFT_FORMAT, "tensor 't' has no dtype"},
    {"{\"t\":{\"dtype\":7}}", 0, WEFT_FORMAT, "tensor 't' has no dtype"},
    {"{\"t\":{\"dtype\":\"F32\"}}", 0, WEFT_FORMAT, "tensor 't' has no shape"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":4}}", 0, WEFT_FORMAT, "tensor 't' has no shape"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, WEFT_FORMAT, "tensor 't' has no data_offsets"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, WEFT_FORMAT, "has no data_offsets"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, WEFT_FORMAT, "has no data_offsets"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,\"4\"]}}", 4, WEFT_FORMAT, "has no data_offsets"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{\"0\":0}}}", 4, WEFT_FORMAT, "has no data_offsets"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4, WEFT_FORMAT,
     "has an unknown field"},
    {"{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, WEFT_FORMAT, "a tensor has an empty name"},
    {"{\"__metadata__\":[]}", 0, WEFT_FORMAT, "__metadata__ is no object of strings"},
    {"{\"__metadata__\":{\"a\":1}}", 0, WEFT_FORMAT, "__metadata__ is no object of strings"},
    {T("I64", "[1]", 0, 8), 8, WEFT_UNSUPPORTED, "tensor 't' is of type I64; supported are F32, F16 and BF16"},
    {T("F8_E4M3", "[8]", 0, 8), 8, WEFT_UNSUPPORTED, "tensor 't' is of type F8_E4M3"},
    {T("f32", "[2]", 0, 8), 8, WEFT_UNSUPPORTED, "tensor 't' is of type f32"},
    {T("", "[2]", 0, 8), 8, WEFT_UNSUPPORTED, "tensor 't' is of type "},
    {T("F32", "[2]", 0, 4), 4, WEFT_FORMAT, "tensor 't' takes 4 bytes; its shape and type say 8"},
    {T("F16", "[2]", 0, 8), 8, WEFT_FORMAT, "tensor 't' takes 8 bytes; its shape and type say 4"},
    {T("F32", "[-1]", 0, 4), 4, WEFT_FORMAT, "dimension 0 of its shape is no size"},
    {T("F32", "[1.0]", 0, 4), 4, WEFT_FORMAT, "dimension 0 of its shape is no size"},
    {T("F32", "[1,\"2\"]", 0, 8), 8, WEFT_FORMAT, "dimension 1 of its shape is no size"},
    {T("F32", "[0]", 0, 0), 0, WEFT_FORMAT, "tensor 't': dimension 0 is 0"},
    {T("F32", "[1,1,1,1,1]", 0, 4), 4, WEFT_UNSUPPORTED, "tensor 't' has 5 dimensions"},
    {T("F32", "[4294967296,4294967296]", 0, 4), 4, WEFT_FORMAT, "its number of elements overflows"},
    {T("F32", "[9223372036854775807]", 0, 4), 4, WEFT_FORMAT, "the size of its 9223372036854775807 elements"},
    {T("F32", "[99999999999999999999]", 0, 4), 4, WEFT_FORMAT, "header: line 1"},
    {T("F32", "[1]", 4, 0), 4, WEFT_FORMAT, "tensor 't': bytes 4 to 0 are not in the 4 bytes"},
    {T("F32", "[1]", 0, 4), 3, WEFT_FORMAT, "may be truncated"},
    {T("F32", "[1]", 9223372036854775803, 9223372036854775807), 4, WEFT_FORMAT,
     "are not in the 4 bytes of tensor data"},
    {T("F32", "[1]", -4, 0), 4, WEFT_FORMAT, "has no data_offsets"},
    {T("F32", "[1]", 4, 8), 8, WEFT_FORMAT, "4 of the 8 bytes of tensor data belong to no tensor"},
    {T("F32", "[1]", 0, 4), 8, WEFT_FORMAT, "4 of the 8 bytes of tensor data belong to no tensor"},
    {"{}", 1, WEFT_FORMAT, "1 of the 1 bytes of tensor data belong to no tensor"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"u\":{\"dtype\":\"F32\",\"shape\":[2],\"data_"
     "offsets\":[4,"
     "12]}}",
     12, WEFT_FORMAT, "tensors 't' and 'u' overlap"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"u\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
     "offsets\":[0,"
     "4]}}",
     4, WEFT_FORMAT, "overlap"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"u\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
     "offsets\":[8,"
     "12]}}",
     12, WEFT_FORMAT, "4 of the 12 bytes"},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
     "offsets\":[4,"
     "8]}}",
     8, WEFT_FORMAT, "header: line 1"},
    {"{\"t\xff\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, WEFT_FORMAT, "header: line 1"},
    {"{\"t\\u0000\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, WEFT_FORMAT, "header: line 1"},
};

static void malformed_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        size_t n, live = weft__alloc_live();
        weft__safetensors *st;
        weft_error err = {0};
        unsigned char *p = file_of(malformed[i].header, strlen(malformed[i].header), malformed[i].n_data, &n);
        weft_status status = weft__safetensors_parse(p, n, LABEL, &st, &err);
        if (status != malformed[i].status || !strstr(err.message, malformed[i].expected) || !strstr(err.message, LABEL))
            fail_msg("%s\nexpected %d '%s'\ngot %d '%s'", malformed[i].header, malformed[i].status,
                     malformed[i].expected, status, err.message);
        assert_null(st);
        assert_int_equal(weft__alloc_live(), live);
        free(p);
    }
}

static void bad_lengths(void **state)
{
    (void)state;
    size_t n;
    unsigned char *p = file_of(GOOD, sizeof GOOD - 1, 28, &n);
    weft__safetensors *st;
    weft_error err = {0};
    for (size_t cut = 0; cut < n; cut++) { /* every truncation */
        assert_true(weft__safetensors_parse(p, cut, LABEL, &st, &err) != WEFT_OK);
        assert_null(st);
    }
    for (int byte = 0; byte < 8; byte++) { /* an absurd length */
        p[byte] ^= 0xff;
        assert_true(weft__safetensors_parse(p, n, LABEL, &st, &err) != WEFT_OK);
        p[byte] ^= 0xff;
    }
    assert_int_equal(weft__safetensors_parse(p, n, LABEL, &st, &err), WEFT_OK);
    weft__safetensors_close(&st);
    free(p);
}

static void deep_header(void **state)
{
    enum { DEPTH = 5000 };
    static char header[2 * DEPTH + 16];
    size_t n, at;
    weft__safetensors *st;
    (void)state;
    at = (size_t)sprintf(header, "{\"t\":");
    memset(header + at, '[', DEPTH);
    memset(header + at + DEPTH, ']', DEPTH);
    header[at + 2 * DEPTH] = '}';
    unsigned char *p = file_of(header, at + 2 * DEPTH + 1, 0, &n);
    assert_int_equal(weft__safetensors_parse(p, n, LABEL, &st, NULL), WEFT_LIMIT);
    free(p);
}

/* Random damage never crashes, and what is accepted can be read to the last byte. */
static void random_damage(void **state)
{
    size_t n;
    weft__rng rng;
    uint64_t sum = 0;
    (void)state;
    weft__rng_seed(&rng, 7);
    unsigned char *p = file_of(GOOD, sizeof GOOD - 1, 28, &n), *q = malloc(n);
    assert_non_null(q);
    for (int i = 0; i < 20000; i++) {
        weft__safetensors *st;
        memcpy(q, p, n);
        for (int k = 0; k < 3; k++) q[weft__rng_u64(&rng) % n] = (unsigned char)weft__rng_u64(&rng);
        if (weft__safetensors_parse(q, n, LABEL, &st, NULL)) continue;
        const weft__tensor_set *set = weft__safetensors_tensors(st);
        for (size_t t = 0; t < set->n; t++)
            for (uint64_t b = 0; b < set->items[t].n_bytes; b++)
                sum += ((const unsigned char *)weft__tensor_data(&set->items[t]))[b];
        weft__safetensors_close(&st);
    }
    assert_true(sum > 0);
    free(q);
    free(p);
}

static int parse_body(void *arg)
{
    size_t n;
    weft__safetensors *st;
    weft_error err = {0};
    (void)arg;
    unsigned char *p = file_of(GOOD, sizeof GOOD - 1, 28, &n);
    weft_status status = weft__safetensors_parse(p, n, LABEL, &st, &err);
    assert_true(status == WEFT_OK || status == WEFT_NO_MEMORY);
    weft__safetensors_close(&st);
    free(p);
    return status == WEFT_OK;
}

static void failing_allocator(void **state)
{
    (void)state;
    assert_true(fail_each(parse_body, NULL) > 5);
}

/* ---- folders ---- */

static char folder[256];

static void put_file(const char *name, const void *bytes, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void put_tensors(const char *name, const char *header, size_t n_data)
{
    size_t n;
    unsigned char *p = file_of(header, strlen(header), n_data, &n);
    put_file(name, p, n);
    free(p);
}

static int make_folder(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/weft-safetensors-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                        "one.safetensors", "two.safetensors"};
    char path[512];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void refuse_index(const char *json, weft_status status, const char *expected)
{
    weft__safetensors *st;
    weft_error err = {0};
    put_file("model.safetensors.index.json", json, strlen(json));
    weft_status got = weft__safetensors_open_folder(folder, &st, &err);
    if (got != status || !strstr(err.message, expected))
        fail_msg("%s\nexpected %d '%s'\ngot %d '%s'", json, status, expected, got, err.message);
    assert_null(st);
}

static void folders(void **state)
{
    weft__safetensors *st;
    weft_error err = {0};
    (void)state;
    assert_int_equal(weft__safetensors_open_folder(folder, &st, &err), WEFT_NOT_FOUND);
    assert_non_null(strstr(err.message, "neither model.safetensors nor"));
    put_file("pytorch_model.bin", "x", 1);
    assert_int_equal(weft__safetensors_open_folder(folder, &st, &err), WEFT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "Python pickle"));
    put_tensors("model.safetensors", T("F32", "[1]", 0, 4), 4);
    assert_int_equal(weft__safetensors_open_folder(folder, &st, &err), WEFT_OK);
    assert_int_equal(weft__safetensors_tensors(st)->n, 1);
    weft__safetensors_close(&st);
    /* An index takes precedence. */
    put_tensors("one.safetensors", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4);
    put_tensors("two.safetensors", "{\"b\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}}", 2);
    const char *index = "{\"metadata\":{},\"weight_map\":{\"b\":\"two.safetensors\",\"a\":\"one.safetensors\"}}";
    put_file("model.safetensors.index.json", index, strlen(index));
    assert_int_equal(weft__safetensors_open_folder(folder, &st, &err), WEFT_OK);
    assert_int_equal(weft__safetensors_tensors(st)->n, 2);
    assert_int_equal(weft__tensor_find(weft__safetensors_tensors(st), "b")->dtype, WEFT_F16);
    weft__safetensors_close(&st);
    refuse_index("{", WEFT_FORMAT, "model.safetensors.index.json: line 1");
    refuse_index("{}", WEFT_FORMAT, "no weight_map");
    refuse_index("{\"weight_map\":{}}", WEFT_FORMAT, "no weight_map");
    refuse_index("{\"weight_map\":[]}", WEFT_FORMAT, "no weight_map");
    refuse_index("{\"weight_map\":{\"a\":1}}", WEFT_FORMAT, "the shard of 'a' is no string");
    refuse_index("{\"weight_map\":{\"a\":\"../one.safetensors\"}}", WEFT_FORMAT, "is no plain file name");
    refuse_index("{\"weight_map\":{\"a\":\"/etc/passwd\"}}", WEFT_FORMAT, "is no plain file name");
    refuse_index("{\"weight_map\":{\"a\":\"..\"}}", WEFT_FORMAT, "is no plain file name");
    refuse_index("{\"weight_map\":{\"a\":\"\"}}", WEFT_FORMAT, "is no plain file name");
    refuse_index("{\"weight_map\":{\"a\":\"x\\u0000y\"}}", WEFT_FORMAT, "is no plain file name");
    refuse_index("{\"weight_map\":{\"a\":\"x\\\\y\"}}", WEFT_FORMAT, "is no plain file name");
    refuse_index("{\"weight_map\":{\"a\":\"three.safetensors\"}}", WEFT_NOT_FOUND, "three.safetensors");
    refuse_index("{\"weight_map\":{\"a\":\"two.safetensors\"}}", WEFT_FORMAT,
                 "tensor 'a' is not in the shard 'two.safetensors'");
    refuse_index("{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"one.safetensors\"}}", WEFT_FORMAT,
                 "tensor 'b' is not in the shard");
    put_tensors("two.safetensors", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4);
    refuse_index("{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}", WEFT_FORMAT,
                 "tensor 'a' is in another file too");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_file),         cmocka_unit_test(scalar),
        cmocka_unit_test(malformed_files),   cmocka_unit_test(bad_lengths),
        cmocka_unit_test(deep_header),       cmocka_unit_test(random_damage),
        cmocka_unit_test(failing_allocator), cmocka_unit_test_setup_teardown(folders, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
