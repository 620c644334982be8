// SPDX-License-Identifier: Apache-2.0
/* gguf_malformed.c: files that must be refused, each with a message that names the fault.
 *
 * Most cases are the sample of gguf_build.h with one number changed (table `patches`); the others are built (table
 * `built`). Besides, the sample is cut at every byte, and changed at random places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "gguf_build.h"

#define LABEL "case.gguf"

/* Where a patch goes: `delta` bytes behind a mark of entry or tensor `index`. */
typedef enum place { ABSOLUTE, KEY, TYPE, VALUE, NAME, NDIMS, DIM, DTYPE, OFFSET } place;

typedef struct patch {
    const char *name;
    place at;
    int index, delta, width; /* width in bytes */
    uint64_t value;          /* little-endian */
    const char *expected;
} patch;

#define BIG (1ull << 63)
#define MAX UINT64_MAX

static const patch patches[] = {
    /* the head */
    {"magic", ABSOLUTE, 0, 3, 1, 'L', "is not a GGUF file: it begins with 47 47 55 4c"},
    {"version 0", ABSOLUTE, 0, 4, 4, 0, "version 0 is not supported"},
    {"version 1", ABSOLUTE, 0, 4, 4, 1, "version 1 is not supported"},
    {"version 4", ABSOLUTE, 0, 4, 4, 4, "version 4 is not supported"},
    {"big-endian version 3", ABSOLUTE, 0, 4, 4, 0x03000000, "is a big-endian GGUF file"},
    {"big-endian version 2", ABSOLUTE, 0, 4, 4, 0x02000000, "is a big-endian GGUF file"},
    {"tensor count 2^63", ABSOLUTE, 0, 8, 8, BIG, "9223372036854775808 tensor descriptions cannot fit"},
    {"tensor count 2^64-1", ABSOLUTE, 0, 8, 8, MAX, "18446744073709551615 tensor descriptions cannot fit"},
    {"one tensor too many", ABSOLUTE, 0, 8, 8, S_TENSORS + 1, "tensor 4: its name is empty"},
    {"metadata count 2^63", ABSOLUTE, 0, 16, 8, BIG, "9223372036854775808 metadata entries cannot fit"},
    {"metadata count 2^64-1", ABSOLUTE, 0, 16, 8, MAX, "18446744073709551615 metadata entries cannot fit"},
    {"one entry too many", ABSOLUTE, 0, 16, 8, S_KEYS + 1, "tensor 0: "},
    {"one entry too few", ABSOLUTE, 0, 16, 8, S_KEYS - 1, "tensor 'a.deep': 9 dimensions"},
    /* keys */
    {"empty key", KEY, S_ARCH, 0, 8, 0, "metadata key 0: its name is empty"},
    {"key of 65536 bytes", KEY, S_U8, 0, 8, 65536,
     "metadata key 2: its name of 65536 bytes exceeds the limit of 65535"},
    {"key of 2^63 bytes", KEY, S_U8, 0, 8, BIG, "metadata key 2: its name of 9223372036854775808 bytes exceeds"},
    {"key of 2^64-1 bytes", KEY, S_U8, 0, 8, MAX, "metadata key 2: its name of 18446744073709551615 bytes exceeds"},
    {"key longer than the file", KEY, S_U8, 0, 8, 65535,
     "metadata key 2: the file ends inside its name of 65535 bytes"},
    {"key with NUL", KEY, S_U8, 9, 1, 0, "metadata key 2: its name contains a NUL"},
    {"key with byte 0xff", KEY, S_U8, 9, 1, 0xff, "metadata key 2: its name is not valid UTF-8"},
    {"key with an overlong character", KEY, S_U8, 8, 2, 0x80c0, "metadata key 2: its name is not valid UTF-8"},
    {"key with a surrogate", KEY, S_U8, 8, 3, 0x80a0ed, "metadata key 2: its name is not valid UTF-8"},
    {"key cut inside a character", KEY, S_U8, 11, 1, 0xc3, "metadata key 2: its name is not valid UTF-8"},
    {"duplicate key", KEY, S_I8, 10, 1, 'u', "key 'n.u8' is there twice"},
    /* types and values */
    {"value type 13", TYPE, S_U8, 0, 4, 13, "key 'n.u8': it has unknown value type 13"},
    {"value type 2^32-1", TYPE, S_F64, 0, 4, UINT32_MAX, "key 'n.f64': it has unknown value type 4294967295"},
    {"bool 2", VALUE, S_BOOL, 0, 1, 2, "key 'n.bool': a bool is stored as 2"},
    {"string of 2^63 bytes", VALUE, S_ARCH, 0, 8, BIG,
     "key 'general.architecture': a string of 9223372036854775808 bytes"},
    {"string of 2^64-1 bytes", VALUE, S_ARCH, 0, 8, MAX,
     "key 'general.architecture': a string of 18446744073709551615 bytes"},
    {"string longer than the file", VALUE, S_ARCH, 0, 8, 5000,
     "key 'general.architecture': a string of 5000 bytes is longer"},
    {"string one byte too long", VALUE, S_ARCH, 0, 8, 6, "metadata key 1: "},
    {"string one byte too short", VALUE, S_ARCH, 0, 8, 4, "metadata key 1: "},
    {"array of type 13", VALUE, S_FLOATS, 0, 4, 13, "key 'a.floats': an array has unknown element type 13"},
    {"array of type 2^32-1", VALUE, S_FLOATS, 0, 4, UINT32_MAX,
     "key 'a.floats': an array has unknown element type 4294967295"},
    {"2^62 floats", VALUE, S_FLOATS, 4, 8, 1ull << 62,
     "key 'a.floats': an array of 4611686018427387904 values of type f32"},
    {"2^64-1 floats", VALUE, S_FLOATS, 4, 8, MAX, "key 'a.floats': an array of 18446744073709551615 values"},
    {"2^61 strings", VALUE, S_STRINGS, 4, 8, 1ull << 61,
     "key 'a.strings': an array of 2305843009213693952 values of type string"},
    {"2^63 bools", VALUE, S_BOOLS, 4, 8, BIG, "key 'a.bools': an array of 9223372036854775808 values of type bool"},
    {"2^60 arrays", VALUE, S_NESTED, 4, 8, 1ull << 60,
     "key 'a.nested': an array of 1152921504606846976 values of type array"},
    {"bool 255 in an array", VALUE, S_BOOLS, 13, 1, 255, "key 'a.bools': a bool is stored as 255"},
    {"array's string of 2^63 bytes", VALUE, S_STRINGS, 12, 8, BIG,
     "key 'a.strings': a string of 9223372036854775808 bytes"},
    {"last string of an array too long", VALUE, S_STRINGS, 29, 8, 9999, "key 'a.strings': a string of 9999 bytes"},
    {"inner array of type 13", VALUE, S_NESTED, 12, 4, 13, "key 'a.nested': an array has unknown element type 13"},
    {"inner array of 2^62", VALUE, S_NESTED, 16, 8, 1ull << 62,
     "key 'a.nested': an array of 4611686018427387904 values of type i32"},
    {"array as its own element type", VALUE, S_DEEP, 36, 4, 9, "key 'a.deep': arrays are nested more than 4 deep"},
    /* alignment */
    {"alignment 0", VALUE, S_ALIGN, 0, 4, 0, "key 'general.alignment': 0 is not a power of two"},
    {"alignment 1", VALUE, S_ALIGN, 0, 4, 1, "key 'general.alignment': 1 is not a power of two of at least 8"},
    {"alignment 4", VALUE, S_ALIGN, 0, 4, 4, "key 'general.alignment': 4 is not a power of two of at least 8"},
    {"alignment 24", VALUE, S_ALIGN, 0, 4, 24, "key 'general.alignment': 24 is not a power of two"},
    {"alignment 2^32-1", VALUE, S_ALIGN, 0, 4, UINT32_MAX, "key 'general.alignment': 4294967295 is not a power of two"},
    {"alignment 2^31", VALUE, S_ALIGN, 0, 4, 1u << 31, "its offset 128 is not a multiple of the alignment 2147483648"},
    {"alignment 64", VALUE, S_ALIGN, 0, 4, 64, "tensor 'c.bias': its offset 224 is not a multiple of the alignment 64"},
    {"alignment as f32", TYPE, S_ALIGN, 0, 4, 6, "key 'general.alignment' has type f32, expected u32"},
    {"alignment as i32 -32", TYPE, S_ALIGN, 0, 8, 0xffffffe000000005, "key 'general.alignment' (type i32) holds -32"},
    /* tensor names */
    {"empty tensor name", NAME, 0, 0, 8, 0, "tensor 0: its name is empty"},
    {"tensor name of 65 bytes", NAME, 1, 0, 8, 65, "tensor 1: its name of 65 bytes exceeds the limit of 64"},
    {"tensor name of 2^63 bytes", NAME, 3, 0, 8, BIG, "tensor 3: its name of 9223372036854775808 bytes exceeds"},
    {"tensor name with NUL", NAME, 2, 8, 1, 0, "tensor 2: its name contains a NUL"},
    {"tensor name not UTF-8", NAME, 2, 8, 1, 0xe9, "tensor 2: its name is not valid UTF-8"},
    {"duplicate tensor", NAME, 1, 8, 1, 'a', "tensor 'a.weight' is there twice"},
    /* dimensions */
    {"0 dimensions", NDIMS, 0, 0, 4, 0, "tensor 'a.weight': 0 dimensions"},
    {"5 dimensions", NDIMS, 0, 0, 4, 5, "tensor 'a.weight': 5 dimensions are not between 1 and 4"},
    {"2^32-1 dimensions", NDIMS, 0, 0, 4, UINT32_MAX, "tensor 'a.weight': 4294967295 dimensions"},
    {"first dimension 0", DIM, 0, 0, 8, 0, "tensor 'a.weight': dimension 0 is 0"},
    {"second dimension 0", DIM, 0, 8, 8, 0, "tensor 'a.weight': dimension 1 is 0"},
    {"last dimension 0", DIM, 3, 24, 8, 0, "tensor 'd': dimension 3 is 0"},
    {"dimension 2^64-1", DIM, 0, 0, 8, MAX, "tensor 'a.weight': its number of elements overflows at dimension 0"},
    {"dimension 2^63", DIM, 3, 16, 8, BIG, "tensor 'd': its number of elements overflows at dimension 2"},
    {"elements 2^63", DIM, 0, 0, 8, 1ull << 61, "tensor 'a.weight': its number of elements overflows at dimension 1"},
    {"elements 2^64", DIM, 0, 0, 8, 1ull << 62, "tensor 'a.weight': its number of elements overflows at dimension 1"},
    {"bytes 2^63", DIM, 0, 0, 8, 1ull << 59,
     "tensor 'a.weight': the size of its 2305843009213693952 elements of type F32"},
    {"bytes over 2^63, Q4_0", DIM, 1, 8, 8, BIG / 64 * 3 / 2, "elements overflows at dimension 1"},
    {"K not a multiple of the block", DIM, 1, 0, 8, 63,
     "tensor 'b.weight': dimension 0 is 63, not a multiple of the 32 elements"},
    {"K smaller than the block", DIM, 1, 0, 8, 16, "tensor 'b.weight': dimension 0 is 16, not a multiple"},
    /* tensor types */
    {"type 99", DTYPE, 0, 0, 4, 99, "tensor 'a.weight': type id 99 is unknown"},
    {"type 4, withdrawn", DTYPE, 0, 0, 4, 4, "tensor 'a.weight': type id 4 is unknown"},
    {"type 31, withdrawn", DTYPE, 3, 0, 4, 31, "tensor 'd': type id 31 is unknown"},
    {"type 2^32-1", DTYPE, 0, 0, 4, UINT32_MAX, "tensor 'a.weight': type id 4294967295 is unknown"},
    {"type MXFP4", DTYPE, 1, 0, 4, 39, "tensor 'b.weight': type 39 (MXFP4) is not supported by this build"},
    {"type IQ2_XXS", DTYPE, 1, 0, 4, 16, "tensor 'b.weight': type 16 (IQ2_XXS) is not supported by this build"},
    {"block type for a short row", DTYPE, 0, 0, 4, 12,
     "tensor 'a.weight': dimension 0 is 8, not a multiple of the 256"},
    /* places */
    {"offset 1", OFFSET, 1, 0, 8, 129, "tensor 'b.weight': its offset 129 is not a multiple of the alignment 32"},
    {"offset 2^63", OFFSET, 1, 0, 8, BIG,
     "tensor 'b.weight': 72 bytes at offset 9223372036854775808 reach past the end"},
    {"offset 2^64-32", OFFSET, 1, 0, 8, MAX - 31,
     "tensor 'b.weight': 72 bytes at offset 18446744073709551584 reach past the end"},
    {"offset behind the file", OFFSET, 3, 0, 8, 4096, "tensor 'd': 6 bytes at offset 4096 reach past the end"},
    {"offset at the file's end", OFFSET, 3, 0, 8, 288, "tensor 'd': 6 bytes at offset 288 reach past the end"},
    {"tensor reaches past the end", DIM, 3, 24, 8, 11, "tensor 'd': 33 bytes at offset 256 reach past the end"},
    {"same offset twice", OFFSET, 1, 0, 8, 0, "tensors 'a.weight' and 'b.weight' overlap"},
    {"overlap at the end of one", OFFSET, 1, 0, 8, 96, "tensors 'a.weight' and 'b.weight' overlap"},
    {"overlap out of order", OFFSET, 3, 0, 8, 160, "tensors 'b.weight' and 'd' overlap"},
    {"overlap by size", DIM, 0, 8, 8, 5, "tensors 'a.weight' and 'b.weight' overlap"},
};

#define N_PATCHES (sizeof patches / sizeof *patches)

static size_t place_of(const sample *s, const patch *p)
{
    switch (p->at) {
    case KEY: return s->key[p->index] + (size_t)p->delta;
    case TYPE: return s->type[p->index] + (size_t)p->delta;
    case VALUE: return s->value[p->index] + (size_t)p->delta;
    case NAME: return s->name[p->index] + (size_t)p->delta;
    case NDIMS: return s->n_dims[p->index] + (size_t)p->delta;
    case DIM: return s->dim[p->index] + (size_t)p->delta;
    case DTYPE: return s->dtype[p->index] + (size_t)p->delta;
    case OFFSET: return s->offset[p->index] + (size_t)p->delta;
    default: return (size_t)p->delta;
    }
}

/* Parses an exact-size copy, so that a sanitizer sees a read past its end. */
static weft_status parse_copy(const unsigned char *p, size_t n, weft__gguf **g, weft_error *err)
{
    unsigned char *copy = malloc(n ? n : 1);
    if (n) memcpy(copy, p, n);
    weft_status status = weft__gguf_parse(copy, n, LABEL, g, err);
    weft__gguf_close(g);
    free(copy);
    return status;
}

static void expect_refused(const char *name, const bytes *b, const char *expected)
{
    weft__gguf *g = (weft__gguf *)&g;
    weft_error err = {0};
    size_t live = weft__alloc_live();
    weft_status status = parse_copy(b->p, b->n, &g, &err);
    if (status == WEFT_OK) fail_msg("%s: was accepted", name);
    if (status != WEFT_FORMAT && status != WEFT_UNSUPPORTED) fail_msg("%s: status %d: %s", name, status, err.message);
    if (!strstr(err.message, expected) || strncmp(err.message, LABEL ": ", sizeof LABEL + 1) != 0)
        fail_msg("%s: \"%s\" lacks \"%s\"", name, err.message, expected);
    if (weft__alloc_live() != live) fail_msg("%s: leaked", name);
    assert_null(g);
}

static void patched_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_PATCHES; i++) {
        sample s = {0};
        sample_build(&s, i % 2 ? 2 : 3);
        size_t at = place_of(&s, &patches[i]);
        memcpy(s.b.p + at, &patches[i].value, (size_t)patches[i].width);
        expect_refused(patches[i].name, &s.b, patches[i].expected);
        free(s.b.p);
    }
    print_message("%zu patched files refused\n", N_PATCHES);
}

static void build_nothing(bytes *b)
{
    (void)b;
}
static void build_head_only(bytes *b)
{
    put_head(b, 3, 0, 1);
}
static void build_html(bytes *b)
{
    put(b, "<!DOCTYPE html><html>404</html>", 31);
}
static void build_nested(bytes *b, int depth)
{
    put_head(b, 3, 0, 1);
    put_key(b, "x", 9);
    for (int i = 0; i < depth; i++) put_list(b, 9, 1);
}
static void build_nested_5(bytes *b)
{
    build_nested(b, 4);
    put_list(b, 0, 0);
}
static void build_nested_100000(bytes *b)
{
    build_nested(b, 100000);
    put_list(b, 0, 0);
}
static void build_distant_duplicate(bytes *b)
{
    char key[32];
    put_head(b, 3, 0, 1001);
    for (int i = 0; i <= 1000; i++) {
        snprintf(key, sizeof key, "key.%d", i % 1000);
        put_key(b, key, 0), put_u8(b, 1);
    }
}
static void build_long_duplicate(bytes *b)
{
    char key[60001];
    memset(key, 'k', 60000);
    key[60000] = 0;
    put_head(b, 3, 0, 2);
    for (int i = 0; i < 2; i++) put_key(b, key, 0), put_u8(b, 1);
}
static void build_split_in_memory(bytes *b)
{
    *b = part_build(0, 3, 3, "t", 1);
}
static void build_no_data(bytes *b)
{
    uint64_t d = 1;
    put_head(b, 3, 1, 0);
    put_tensor(b, "t", 1, &d, 24, 0);
}
static void build_padding_past_end(bytes *b)
{
    build_no_data(b);
    put_u8(b, 0);
}
static void build_control_characters(bytes *b)
{
    put_head(b, 3, 0, 1);
    put_key(b, "evil\x1b[2J\n", 99);
    put_u64(b, 0);
}
static void build_reversed_overlap(bytes *b)
{
    char name[16];
    uint64_t d = 32;
    put_head(b, 3, 1000, 0);
    for (int i = 999; i >= 0; i--) {
        snprintf(name, sizeof name, "t%d", i);
        put_tensor(b, name, 1, &d, 24, i == 500 ? 501 * 32 : (uint64_t)i * 32);
    }
    pad(b, 32);
    for (int i = 0; i < 1000 * 32; i++) put_u8(b, 0);
}

static const struct {
    const char *name;
    void (*build)(bytes *b);
    const char *expected;
} built[] = {
    {"no bytes", build_nothing, "is not a GGUF file: it has only 0 bytes"},
    {"a web page", build_html, "is not a GGUF file: it begins with 3c 21 44 4f"},
    {"nothing behind the head", build_head_only, "1 metadata entries cannot fit into the 0 bytes"},
    {"arrays 5 deep", build_nested_5, "key 'x': arrays are nested more than 4 deep"},
    {"arrays 100000 deep", build_nested_100000, "key 'x': arrays are nested more than 4 deep"},
    {"duplicate 1000 keys apart", build_distant_duplicate, "key 'key.0' is there twice"},
    {"duplicate of 60000 bytes", build_long_duplicate, "kkk...' is there twice"},
    {"part of a split model", build_split_in_memory, "is part 1 of 3 of a split model"},
    {"no tensor data", build_no_data, "the file ends before its tensor data"},
    {"not even the padding", build_padding_past_end, "the file ends before its tensor data"},
    {"control characters in a key", build_control_characters, "key 'evil?[2J?': it has unknown value type 99"},
    {"overlap among 1000 in reverse", build_reversed_overlap, "overlap"},
};

#define N_BUILT (sizeof built / sizeof *built)

static void built_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_BUILT; i++) {
        bytes b = {0};
        built[i].build(&b);
        expect_refused(built[i].name, &b, built[i].expected);
        free(b.p);
    }
    print_message("%zu built files refused\n", N_BUILT);
}

/* In whatever order the tensors stand, those that overlap are found, and no others. */
static void shuffled_tensors(void **state)
{
    (void)state;
    enum { N = 40 };
    weft__rng rng;
    uint64_t d = 40; /* bytes: each needs two places of 32 */
    weft__rng_seed(&rng, 11);
    for (int round = 0; round < 400; round++) {
        bytes b = {0};
        uint64_t places[N];
        char name[16];
        weft__gguf *g;
        for (int i = 0; i < N; i++) places[i] = (uint64_t)i * 64;
        if (round % 2) places[weft__rng_below(&rng, N - 1)] += 32; /* into the one behind it */
        put_head(&b, 3, N, 0);
        for (int i = 0; i < N; i++) {
            int other = i + (int)weft__rng_below(&rng, (uint64_t)(N - i));
            uint64_t offset = places[other];
            places[other] = places[i];
            snprintf(name, sizeof name, "t%d", i);
            put_tensor(&b, name, 1, &d, 24, offset);
        }
        pad(&b, 32);
        for (int i = 0; i < N * 8; i++) put_u64(&b, 0);
        if (round % 2) expect_refused("shuffled", &b, "overlap");
        else assert_int_equal(parse_copy(b.p, b.n, &g, NULL), WEFT_OK);
        free(b.p);
    }
}

/* What the message must name when the file ends at byte n, unless a count was found impossible before. */
static const char *cut_names(const sample *s, size_t n, char out[64])
{
    if (n < 4) return "is not a GGUF file";
    if (n < 8) return "inside its version";
    if (n < 24) return "inside its counts";
    for (int i = 0; i < S_KEYS; i++) {
        size_t end = i + 1 < S_KEYS ? s->key[i + 1] : s->name[0];
        if (n >= end) continue;
        if (n < s->type[i]) snprintf(out, 64, "metadata key %d: the file ends", i);
        else snprintf(out, 64, "key '%.*s': ", (int)(s->type[i] - s->key[i] - 8), (const char *)s->b.p + s->key[i] + 8);
        return out;
    }
    for (int i = 0; i < S_TENSORS; i++) {
        size_t end = i + 1 < S_TENSORS ? s->name[i + 1] : s->header_end;
        if (n >= end) continue;
        if (n < s->n_dims[i]) snprintf(out, 64, "tensor %d: the file ends", i);
        else
            snprintf(out, 64, "tensor '%.*s': the file ends", (int)(s->n_dims[i] - s->name[i] - 8),
                     (const char *)s->b.p + s->name[i] + 8);
        return out;
    }
    return n < s->data ? "the file ends before its tensor data" : "reach past the end of the file";
}

static void cut_at_every_byte(void **state)
{
    (void)state;
    sample s = {0};
    sample_build(&s, 3);
    char names[64];
    size_t by_name = 0;
    for (size_t n = 0; n < s.data_end; n++) {
        weft__gguf *g;
        weft_error err = {0};
        weft_status status = parse_copy(s.b.p, n, &g, &err);
        if (status != WEFT_FORMAT) fail_msg("cut at %zu of %zu: status %d", n, s.b.n, status);
        const char *expected = cut_names(&s, n, names);
        int named = strstr(err.message, expected) != NULL;
        by_name += (size_t)named;
        if (!named && !strstr(err.message, "cannot fit into") && !strstr(err.message, "longer than the"))
            fail_msg("cut at %zu: \"%s\" lacks \"%s\"", n, err.message, expected);
    }
    print_message("cut at each of %zu bytes, header %zu: refused; %zu messages name the very piece\n", s.data_end,
                  s.header_end, by_name);
    assert_true(by_name > s.data_end / 2);
    for (size_t n = s.data_end; n <= s.b.n; n++) {
        weft__gguf *g;
        assert_int_equal(parse_copy(s.b.p, n, &g, NULL), WEFT_OK);
    }
    free(s.b.p);
}

/* Any outcome is right but a crash, a leak, or a failure without a message. */
static void random_damage(void **state)
{
    (void)state;
    weft__rng rng;
    size_t live = weft__alloc_live(), accepted = 0;
    sample s = {0};
    sample_build(&s, 3);
    unsigned char *clean = malloc(s.b.n);
    memcpy(clean, s.b.p, s.b.n);
    weft__rng_seed(&rng, 7);
    for (int round = 0; round < 20000; round++) {
        memcpy(s.b.p, clean, s.b.n);
        for (uint64_t k = 1 + weft__rng_below(&rng, 3); k > 0; k--)
            s.b.p[weft__rng_below(&rng, s.header_end)] = (unsigned char)weft__rng_u64(&rng);
        weft__gguf *g;
        weft_error err = {0};
        weft_status status = parse_copy(s.b.p, s.b.n, &g, &err);
        accepted += status == WEFT_OK;
        if (status != WEFT_OK && strncmp(err.message, LABEL ": ", sizeof LABEL + 1) != 0)
            fail_msg("message \"%s\"", err.message);
    }
    print_message("20000 damaged files: %zu still well-formed\n", accepted);
    assert_int_equal(weft__alloc_live(), live);
    free(clean);
    free(s.b.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patched_samples),   cmocka_unit_test(built_files),   cmocka_unit_test(shuffled_tensors),
        cmocka_unit_test(cut_at_every_byte), cmocka_unit_test(random_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
