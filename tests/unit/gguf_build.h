// SPDX-License-Identifier: Apache-2.0
/* gguf_build.h: GGUF bytes made by hand, independent of the reader and the writer, for tests and as seeds for fuzzing.
 * Uses malloc directly, so that a test can count the core's own blocks. */
#ifndef WEFT_TESTS_GGUF_BUILD_H
#define WEFT_TESTS_GGUF_BUILD_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/gguf.h"

typedef struct bytes {
    unsigned char *p;
    size_t n, capacity;
} bytes;

static inline void put(bytes *b, const void *p, size_t n)
{
    if (b->n + n > b->capacity) {
        b->capacity = (b->n + n) * 2;
        b->p = realloc(b->p, b->capacity);
        if (!b->p) abort();
    }
    if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
}

static inline void put_u8(bytes *b, uint8_t v)
{
    put(b, &v, 1);
}
static inline void put_u32(bytes *b, uint32_t v)
{
    put(b, &v, 4);
}
static inline void put_u64(bytes *b, uint64_t v)
{
    put(b, &v, 8);
}
static inline void put_text(bytes *b, const char *s)
{
    put_u64(b, strlen(s));
    put(b, s, strlen(s));
}
static inline void put_head(bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_meta)
{
    put(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, n_tensors);
    put_u64(b, n_meta);
}
static inline void put_key(bytes *b, const char *key, uint32_t type)
{
    put_text(b, key);
    put_u32(b, type);
}
static inline void put_list(bytes *b, uint32_t type, uint64_t n)
{
    put_u32(b, type);
    put_u64(b, n);
}
static inline void put_tensor(bytes *b, const char *name, uint32_t n_dims, const uint64_t *d, uint32_t type,
                              uint64_t offset)
{
    put_text(b, name);
    put_u32(b, n_dims);
    put(b, d, n_dims * sizeof *d);
    put_u32(b, type);
    put_u64(b, offset);
}
static inline void pad(bytes *b, size_t align)
{
    while (b->n % align) put_u8(b, 0);
}

/* The sample: one entry of every kind and four tensors; where its pieces begin is noted in the marks. */
enum {
    S_ARCH,
    S_ALIGN,
    S_U8,
    S_I8,
    S_U16,
    S_I16,
    S_U32,
    S_I32,
    S_U64,
    S_I64,
    S_F32,
    S_F64,
    S_BOOL,
    S_EMPTY,
    S_STRINGS,
    S_FLOATS,
    S_BOOLS,
    S_NESTED,
    S_DEEP,
    S_KEYS
}; /* in file order */
enum { S_TENSORS = 4 };

typedef struct sample {
    bytes b;
    size_t key[S_KEYS], type[S_KEYS], value[S_KEYS];
    size_t name[S_TENSORS], n_dims[S_TENSORS], dim[S_TENSORS], dtype[S_TENSORS], offset[S_TENSORS];
    size_t header_end, data, data_end; /* data_end: the last byte that a tensor needs */
} sample;

static inline void sample_key(sample *s, int i, const char *key, uint32_t type)
{
    s->key[i] = s->b.n;
    put_text(&s->b, key);
    s->type[i] = s->b.n;
    put_u32(&s->b, type);
    s->value[i] = s->b.n;
}

static inline void sample_numbers(sample *s)
{
    static const uint64_t bits = 0x8f8e8d8c8b8a89fe;
    static const struct {
        int i;
        const char *key;
        uint32_t type;
    } rows[] = {{S_U8, "n.u8", 0},   {S_I8, "n.i8", 1},   {S_U16, "n.u16", 2},  {S_I16, "n.i16", 3},
                {S_U32, "n.u32", 4}, {S_I32, "n.i32", 5}, {S_U64, "n.u64", 10}, {S_I64, "n.i64", 11}};
    static const uint32_t width[] = {1, 1, 2, 2, 4, 4, 0, 0, 0, 0, 8, 8};
    float f = 1.5f;
    double d = 1e300;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        sample_key(s, rows[r].i, rows[r].key, rows[r].type);
        put(&s->b, &bits, width[rows[r].type]); /* the low bytes: negative in every signed type */
    }
    sample_key(s, S_F32, "n.f32", 6);
    put(&s->b, &f, 4);
    sample_key(s, S_F64, "n.f64", 12);
    put(&s->b, &d, 8);
    sample_key(s, S_BOOL, "n.bool", 7);
    put_u8(&s->b, 1);
}

static inline void sample_lists(sample *s)
{
    static const float floats[] = {1.5f, -2.0f};
    bytes *b = &s->b;
    sample_key(s, S_EMPTY, "s.empty", 8);
    put_text(b, "");
    sample_key(s, S_STRINGS, "a.strings", 9);
    put_list(b, 8, 3);
    put_text(b, "a"), put_text(b, ""),
        put_text(b, "\xc3\xbc"
                    "ber");
    sample_key(s, S_FLOATS, "a.floats", 9);
    put_list(b, 6, 2);
    put(b, floats, sizeof floats);
    sample_key(s, S_BOOLS, "a.bools", 9);
    put_list(b, 7, 3);
    put_u8(b, 1), put_u8(b, 0), put_u8(b, 1);
    sample_key(s, S_NESTED, "a.nested", 9); /* [[7, -8], ["x"], []] */
    put_list(b, 9, 3);
    put_list(b, 5, 2), put_u32(b, 7), put_u32(b, (uint32_t)-8);
    put_list(b, 8, 1), put_text(b, "x");
    put_list(b, 0, 0);
    sample_key(s, S_DEEP, "a.deep", 9); /* [[[[9]]]] */
    for (int depth = 1; depth < 4; depth++) put_list(b, 9, 1);
    put_list(b, 4, 1), put_u32(b, 9);
}

/* Fills in *s, which is zeroed. Free s->b.p. */
static inline void sample_build(sample *s, uint32_t version)
{
    static const struct {
        const char *name;
        uint32_t n_dims;
        uint64_t d[4];
        uint32_t dtype;
        uint64_t offset, bytes;
    } t[S_TENSORS] = {{"a.weight", 2, {8, 4}, 0, 0, 128},
                      {"b.weight", 2, {64, 2}, 2, 128, 72},
                      {"c.bias", 1, {5}, 1, 224, 10},
                      {"d", 4, {3, 1, 1, 2}, 24, 256, 6}};
    put_head(&s->b, version, S_TENSORS, S_KEYS);
    sample_key(s, S_ARCH, "general.architecture", 8);
    put_text(&s->b, "llama");
    sample_key(s, S_ALIGN, "general.alignment", 4);
    put_u32(&s->b, 32);
    sample_numbers(s);
    sample_lists(s);
    for (int i = 0; i < S_TENSORS; i++) {
        s->name[i] = s->b.n;
        s->n_dims[i] = s->name[i] + 8 + strlen(t[i].name);
        s->dim[i] = s->n_dims[i] + 4;
        s->dtype[i] = s->dim[i] + 8 * t[i].n_dims;
        s->offset[i] = s->dtype[i] + 4;
        put_tensor(&s->b, t[i].name, t[i].n_dims, t[i].d, t[i].dtype, t[i].offset);
    }
    s->header_end = s->b.n;
    pad(&s->b, 32);
    s->data = s->b.n;
    for (int i = 0; i < S_TENSORS; i++) {
        while (s->b.n < s->data + t[i].offset) put_u8(&s->b, 0);
        for (uint64_t k = 0; k < t[i].bytes; k++) put_u8(&s->b, (uint8_t)(16 * i + k));
    }
    s->data_end = s->b.n;
    pad(&s->b, 32);
}

/* A part of a split model: part `no` of `count` with one tensor of the given name, F32 [8] filled with `fill`. */
static inline bytes part_build(uint32_t no, uint32_t count, int64_t n_tensors, const char *tensor, float fill)
{
    bytes b = {0};
    uint64_t d = 8;
    uint16_t no16 = (uint16_t)no, count16 = (uint16_t)count;
    int32_t total = (int32_t)n_tensors;
    put_head(&b, 3, 1, no == 0 ? 4 : 3);
    if (no == 0) put_key(&b, "general.architecture", 8), put_text(&b, "llama");
    put_key(&b, "split.no", 2), put(&b, &no16, 2);
    put_key(&b, "split.count", 2), put(&b, &count16, 2);
    put_key(&b, "split.tensors.count", 5), put(&b, &total, 4);
    put_tensor(&b, tensor, 1, &d, 0, 0);
    pad(&b, 32);
    for (int i = 0; i < 8; i++) put(&b, &fill, 4);
    return b;
}

/* Writes the bytes to path; returns 1 on success. */
static inline int bytes_save(const bytes *b, const char *path)
{
    FILE *f = fopen(path, "wb");
    int ok = f && fwrite(b->p, 1, b->n, f) == b->n;
    if (f && fclose(f) != 0) ok = 0;
    return ok;
}

#endif
