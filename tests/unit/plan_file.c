// SPDX-License-Identifier: Apache-2.0
/* plan_file.c: claims about compiled plans on the disk: what was written is read back; any damage to what an index is
 * made of is refused when the plan is opened, any other by the check; hostile tables under right checksums are refused
 * by name; a plan appears whole or not at all. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixture.h"
#include "folder.h"

#include "claims.h"

#include "base/hash.h"
#include "format/out_file.h"
#include "format/plan_parts.h"
#include "mem/mem.h"

enum { N_TENSORS = 4, N_WEIGHTS = 3, KEPT_BYTES = 36 * 4, IMAGE_BYTES = 640 };

static unsigned char bytes_of[N_TENSORS][KEPT_BYTES], image_bytes[IMAGE_BYTES];
static const char *const names[N_TENSORS] = {"token_embd.weight", "blk.0.attn_q.weight", "blk.0.attn_norm.weight",
                                             "output.weight"};
static const uint8_t kept[N_TENSORS] = {1, 0, 1, 0};
static const uint64_t offsets[N_WEIGHTS] = {UINT64_MAX, 0, 320};

#define ok(call)                                                                                                       \
    do {                                                                                                               \
        weft_error e_ = {0}, *err = &e_;                                                                               \
        if (call) fail_msg("%s: %s", #call, e_.message);                                                               \
    } while (0)

#define refused(expected, text, call)                                                                                  \
    do {                                                                                                               \
        weft_error e_ = {0}, *err = &e_;                                                                               \
        weft_status st_ = (call);                                                                                      \
        if (st_ != (expected) || !strstr(e_.message, (text)))                                                          \
            fail_msg("%s: status %d, \"%s\" lacks \"%s\"", #call, st_, e_.message, (text));                            \
    } while (0)

/* ---- a plan ---- */

static weft__plan_file_origin origin; /* of those that are written */

static weft_status write_plan(const char *to, weft_progress_fn progress, weft_error *err)
{
    weft__tensor_set set = {0};
    weft_buffer *buffer[N_TENSORS] = {NULL};
    weft__gguf_writer *meta = NULL;
    uint64_t n_bytes;
    weft_status st = WEFT_NO_MEMORY;
    for (int i = 0; i < N_TENSORS; i++) {
        weft__tensor_desc t = {.name = names[i],
                               .dtype = i == 2 ? WEFT_F32 : WEFT_Q4_0,
                               .n_dims = i == 2 ? 1 : 2,
                               .d = {i == 2 ? 36 : 32, i == 2 ? 1 : 8, 1, 1}};
        if ((st = weft__tensor_measure(t.dtype, t.n_dims, t.d, &t.n_elems, &t.n_bytes, err)) ||
            (st = weft__mem_borrow(bytes_of[i], KEPT_BYTES, WEFT_BUFFER_READONLY, &buffer[i], err)))
            goto done;
        t.buffer = buffer[i];
        if (weft__tensor_set_add(&set, &t, &(uint32_t){0}) != 1) {
            st = weft_fail(err, WEFT_NO_MEMORY, "no memory");
            goto done;
        }
    }
    weft__plan_file_contents c = {
        .tensors = &set, .kept = kept, .info = {.provider = "cpu", .made_by = "weft 9", .weights = 0xfeedfacecafef00d}};
    c.info.origin = origin;
    c.info.image = (weft_image){.size = sizeof c.info.image,
                                .n_weights = N_WEIGHTS,
                                .layout = "Q4_0: k 12",
                                .data = image_bytes,
                                .n_bytes = IMAGE_BYTES,
                                .offset = offsets};
    if ((st = weft__gguf_writer_memory("meta", &meta, err)) ||
        (st = weft__gguf_put_string(meta, "general.architecture", "llama", 5, err)) ||
        (st = weft__gguf_put_u32(meta, "llama.block_count", 1, err)))
        goto done;
    st = weft__plan_file_write(to, meta, &c, progress, NULL, &n_bytes, err);
done:
    weft__gguf_writer_destroy(&meta);
    for (int i = 0; i < N_TENSORS; i++) weft_buffer_release(&buffer[i]);
    weft__tensor_set_free(&set);
    return st;
}

typedef struct file {
    unsigned char *p;
    size_t n;
} file;

/* A written plan's bytes, at a multiple of 64; free(). */
static file load(void)
{
    file f = {NULL, 0};
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    fseek(in, 0, SEEK_END);
    f.n = (size_t)ftell(in);
    rewind(in);
    f.p = aligned_alloc(64, (f.n + 63) & ~(size_t)63);
    assert_int_equal(fread(f.p, 1, f.n, in), f.n);
    fclose(in);
    return f;
}

static weft__plan_file_header *header(file f)
{
    return (weft__plan_file_header *)(void *)f.p;
}

static void sign(file f)
{
    header(f)->hash = weft__hash(f.p, offsetof(weft__plan_file_header, hash));
}

static weft_status parse(file f, weft_error *err)
{
    weft__plan_file *plan;
    weft_status st = weft__plan_file_parse(f.p, f.n, "some.plan", &plan, err);
    if (st && (plan || !strstr(err->message, "some.plan: "))) fail_msg("message: %s", err->message);
    weft__plan_file_close(&plan);
    return st;
}

static int make_plan(void **state)
{
    (void)state;
    if (folder_make("a.plan")) return -1;
    for (int i = 0; i < N_TENSORS; i++)
        for (int j = 0; j < KEPT_BYTES; j++) bytes_of[i][j] = (unsigned char)(i * 50 + j);
    for (int j = 0; j < IMAGE_BYTES; j++) image_bytes[j] = (unsigned char)(j * 7);
    ok(write_plan(path, NULL, err));
    return 0;
}

/* ---- reading back ---- */

static void read_back(const weft__plan_file *f)
{
    const weft__plan_file_summary *info = weft__plan_file_info(f);
    const weft__tensor_set *set = weft__plan_file_tensors(f);
    uint32_t layers = 0;
    assert_string_equal(info->provider, "cpu");
    assert_string_equal(info->made_by, "weft 9");
    assert_string_equal(info->image.layout, "Q4_0: k 12");
    assert_true(info->weights == 0xfeedfacecafef00d);
    assert_int_equal(info->image.n_weights, N_WEIGHTS);
    assert_memory_equal(info->image.offset, offsets, sizeof offsets);
    assert_int_equal(info->image.n_bytes, IMAGE_BYTES);
    assert_memory_equal(info->image.data, image_bytes, IMAGE_BYTES);
    ok(weft__gguf_u32(weft__plan_file_meta(f), "llama.block_count", &layers, err));
    assert_int_equal(layers, 1);
    assert_int_equal(set->n, N_TENSORS);
    for (int i = 0; i < N_TENSORS; i++) {
        const weft__tensor_desc *t = weft__tensor_find(set, names[i]);
        assert_ptr_equal(t, &set->items[i]);
        assert_int_equal(t->n_dims, i == 2 ? 1 : 2);
        assert_true(t->d[0] * t->d[1] == t->n_elems && t->n_bytes == KEPT_BYTES && t->d[2] == 1 && t->d[3] == 1);
        assert_int_equal(t->buffer->domain == WEFT_DOMAIN_MAPPED && !t->buffer->data, !kept[i]);
        if (kept[i]) assert_memory_equal(weft__tensor_data(t), bytes_of[i], KEPT_BYTES);
        else assert_true(t->buffer->n_bytes >= t->n_bytes);
    }
    ok(weft__plan_file_check(f, NULL, NULL, err));
}

static void what_was_written(void **state)
{
    (void)state;
    weft__plan_file *f;
    assert_int_equal(weft__plan_file_is(path), 1);
    ok(weft__plan_file_open(path, &f, err));
    assert_int_equal((uintptr_t)weft__plan_file_info(f)->image.data % 4096, 0);
    read_back(f);
    weft__plan_file_close(&f);
    file b = load();
    ok(weft__plan_file_parse(b.p, b.n, "some.plan", &f, err));
    assert_int_equal((uintptr_t)weft__plan_file_info(f)->image.data - (uintptr_t)b.p, WEFT__PLAN_FILE_IMAGE_ALIGN);
    read_back(f);
    weft__plan_file_close(&f);
    free(b.p);
}

static void what_is_no_plan(void **state)
{
    (void)state;
    weft__plan_file *f;
    assert_int_equal(weft__plan_file_is("/dev/null"), 0);
    assert_int_equal(weft__plan_file_is(folder), 0);
    assert_int_equal(weft__plan_file_is("/nowhere/at/all"), 0);
    refused(WEFT_NOT_FOUND, "/nowhere/at/all", weft__plan_file_open("/nowhere/at/all", &f, err));
    assert_null(f);
}

/* ---- damage ---- */

static void damaged_head(void **state)
{
    (void)state;
    file f = load();
    size_t end = sizeof(weft__plan_file_header) + (size_t)header(f)->meta_bytes;
    for (size_t i = 0; i < end; i++) {
        f.p[i] ^= (unsigned char)(1u << i % 8);
        weft_error err = {0};
        if (!parse(f, &err)) fail_msg("byte %zu of %zu changed, and nobody noticed", i, end);
        f.p[i] ^= (unsigned char)(1u << i % 8);
    }
    refused(WEFT_OK, "", parse(f, err));
    free(f.p);
}

static void cut_off(void **state)
{
    (void)state;
    file f = load();
    size_t head = sizeof(weft__plan_file_header) + (size_t)header(f)->meta_bytes;
    for (size_t n = 1; n < f.n; n += n < head || n + 64 > f.n ? 1
                                     : n + 4096 > f.n         ? 61
                                                              : 4096 * CLAIMS_REPEATED(1, 1, 16)) {
        file part = {aligned_alloc(64, (n + 63) & ~(size_t)63), n};
        memcpy(part.p, f.p, n);
        weft_error err = {0};
        if (parse(part, &err) != WEFT_FORMAT || !strstr(err.message, "weft compile"))
            fail_msg("%zu of %zu bytes: \"%s\"", n, f.n, err.message);
        free(part.p);
    }
    f.p = realloc(f.p, f.n + 64); /* may lose the alignment, which nothing here needs */
    f.n++;
    refused(WEFT_FORMAT, "goes on behind its end", parse(f, err));
    free(f.p);
}

static void damaged_weights(void **state)
{
    (void)state;
    file f = load();
    size_t data = (sizeof(weft__plan_file_header) + (size_t)header(f)->meta_bytes + 4095) & ~(size_t)4095;
    for (int image = 0; image < 2; image++) {
        size_t first = image ? WEFT__PLAN_FILE_IMAGE_ALIGN : data,
               n = image ? IMAGE_BYTES : (size_t)header(f)->data_bytes;
        for (size_t i = first; i < first + n; i += 11) {
            weft__plan_file *plan;
            f.p[i] ^= 4;
            ok(weft__plan_file_parse(f.p, f.n, "some.plan", &plan, err));
            refused(WEFT_FORMAT, image ? "packed weights" : "tensors", weft__plan_file_check(plan, NULL, NULL, err));
            weft__plan_file_close(&plan);
            f.p[i] ^= 4;
        }
    }
    free(f.p);
}

static void other_versions(void **state)
{
    (void)state;
    file f = load();
    weft__plan_file_header whole = *header(f);
#define SPOILED(status, text, change)                                                                                  \
    do {                                                                                                               \
        *header(f) = whole;                                                                                            \
        change;                                                                                                        \
        sign(f);                                                                                                       \
        refused(status, text, parse(f, err));                                                                          \
    } while (0)
    SPOILED(WEFT_UNSUPPORTED, "version 2, this program reads version 1; compile the model again",
            header(f)->version = 2);
    SPOILED(WEFT_UNSUPPORTED, "byte order", header(f)->order = 0x04030201);
    SPOILED(WEFT_FORMAT, "do not add up", header(f)->meta_bytes = UINT64_MAX);
    SPOILED(WEFT_FORMAT, "do not add up", header(f)->meta_bytes = UINT64_MAX - 4096);
    SPOILED(WEFT_FORMAT, "do not add up", header(f)->data_bytes = UINT64_MAX - 8191);
    SPOILED(WEFT_FORMAT, "do not add up", header(f)->image_bytes = UINT64_MAX - (2 << 20));
    SPOILED(WEFT_FORMAT, "do not add up", header(f)->image_bytes = INT64_MAX);
    SPOILED(WEFT_FORMAT, "do not add up", header(f)->file_bytes--);
    SPOILED(WEFT_FORMAT, "is cut off", (header(f)->image_bytes++, header(f)->file_bytes++));
    SPOILED(WEFT_FORMAT, "goes on behind", (header(f)->image_bytes--, header(f)->file_bytes--));
    SPOILED(WEFT_FORMAT, "checksum of its metadata", header(f)->meta_bytes--);
#undef SPOILED
    free(f.p);
}

/* ---- what it was made of ---- */

static weft_status open_origin(weft__plan_file_origin *out, char path_of_it[64], weft_error *err)
{
    weft__plan_file *f;
    weft_status st = weft__plan_file_open_origin(path, &f, err);
    if (st) return st;
    *out = weft__plan_file_info(f)->origin;
    snprintf(path_of_it, 64, "%s", out->path ? out->path : "");
    assert_true(!out->pre_tokenizer || !strcmp(out->pre_tokenizer, "llama-bpe"));
    assert_int_equal(weft__plan_file_tensors(f)->n, 0);
    weft__plan_file_close(&f);
    return WEFT_OK;
}

static void save(file f)
{
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(f.p, 1, f.n, out), f.n);
    assert_int_equal(fclose(out), 0);
}

static void the_model_is_named(void **state)
{
    (void)state;
    weft__plan_file_origin o;
    char name[64];
    ok(open_origin(&o, name, err));
    assert_null(o.path); /* as in plans of the first versions */
    origin = (weft__plan_file_origin){"/models/caf\xc3\xa9.gguf", "llama-bpe", 123456789012, 1700000000000000001, 1};
    ok(write_plan(path, NULL, err));
    file f = load();
    for (uint32_t version = 0; version < 3; version++) { /* an earlier one, this, and a later one */
        weft__plan_file *whole = NULL;
        header(f)->version = version;
        sign(f);
        save(f);
        if (version == WEFT__PLAN_FILE_VERSION) ok(weft__plan_file_open(path, &whole, err));
        else refused(WEFT_UNSUPPORTED, "compile the model again", weft__plan_file_open(path, &whole, err));
        weft__plan_file_close(&whole);
        if (version > WEFT__PLAN_FILE_VERSION) {
            refused(WEFT_UNSUPPORTED, "compile the model again", open_origin(&o, name, err));
            continue;
        }
        ok(open_origin(&o, name, err));
        assert_string_equal(name, "/models/caf\xc3\xa9.gguf");
        assert_true(o.bytes == 123456789012 && o.time_ns == 1700000000000000001 && o.keep_weights == 1);
    }
    free(f.p);
    origin = (weft__plan_file_origin){0};
    ok(write_plan(path, NULL, err));
}

/* ---- hostile tables ---- */

/* What the metadata say; each case changes one thing. */
typedef struct tables {
    const char *layout, *skip; /* a key that is left out */
    const char *source;        /* NULL: the plan names no model */
    uint64_t tensors[N_TENSORS * WEFT__PLAN_FILE_NUMBERS];
    size_t n_numbers, n_names, n_source; /* n_source 0: as long as it is */
    const char *names[N_TENSORS];
    int odd_types; /* 1: numbers of other types */
} tables;

static tables good_tables(void)
{
    tables t = {.layout = "Q4_0: k 12", .n_numbers = N_TENSORS * WEFT__PLAN_FILE_NUMBERS, .n_names = N_TENSORS};
    for (int i = 0; i < N_TENSORS; i++) {
        uint64_t row[] = {WEFT_Q4_0, 2, 32, 8, 1, 1, kept[i] ? (uint64_t)i * 128 : UINT64_MAX};
        memcpy(t.tensors + i * WEFT__PLAN_FILE_NUMBERS, row, sizeof row);
        t.names[i] = names[i];
    }
    return t;
}

static void put_tables(weft__gguf_writer *w, const tables *t)
{
    uint64_t weights = 5;
    weft__gguf_str list[N_TENSORS];
    for (size_t i = 0; i < t->n_names; i++) list[i] = (weft__gguf_str){t->names[i], strlen(t->names[i])};
#define PUT(key, call)                                                                                                 \
    if (!t->skip || strcmp(t->skip, key)) ok(call)
    PUT(WEFT__PLAN_FILE_PROVIDER, weft__gguf_put_string(w, WEFT__PLAN_FILE_PROVIDER, "cpu", 3, err));
    PUT(WEFT__PLAN_FILE_MADE_BY, weft__gguf_put_string(w, WEFT__PLAN_FILE_MADE_BY, "x", 1, err));
    PUT(WEFT__PLAN_FILE_LAYOUT, weft__gguf_put_string(w, WEFT__PLAN_FILE_LAYOUT, t->layout, strlen(t->layout), err));
    PUT(WEFT__PLAN_FILE_WEIGHTS, weft__gguf_put(w, WEFT__PLAN_FILE_WEIGHTS, WEFT__GGUF_U64, &weights, err));
    PUT(WEFT__PLAN_FILE_OFFSETS,
        weft__gguf_put_array(w, WEFT__PLAN_FILE_OFFSETS, t->odd_types ? WEFT__GGUF_U32 : WEFT__GGUF_U64, offsets,
                             N_WEIGHTS, err));
    PUT(WEFT__PLAN_FILE_NAMES, weft__gguf_put_strings(w, WEFT__PLAN_FILE_NAMES, list, t->n_names, err));
    PUT(WEFT__PLAN_FILE_TENSORS,
        weft__gguf_put_array(w, WEFT__PLAN_FILE_TENSORS, WEFT__GGUF_U64, t->tensors, t->n_numbers, err));
    if (!t->source) return;
    PUT(WEFT__PLAN_FILE_SOURCE, weft__gguf_put_string(w, WEFT__PLAN_FILE_SOURCE, t->source,
                                                      t->n_source ? t->n_source : strlen(t->source), err));
    PUT(WEFT__PLAN_FILE_SOURCE_BYTES, weft__gguf_put(w, WEFT__PLAN_FILE_SOURCE_BYTES, WEFT__GGUF_U64, &weights, err));
    PUT(WEFT__PLAN_FILE_SOURCE_TIME, weft__gguf_put(w, WEFT__PLAN_FILE_SOURCE_TIME, WEFT__GGUF_U64, &weights, err));
    PUT(WEFT__PLAN_FILE_KEEPS, weft__gguf_put(w, WEFT__PLAN_FILE_KEEPS, WEFT__GGUF_U64, &weights, err));
#undef PUT
}

/* A plan with these tables and right checksums, 512 bytes of tensors and an image; free(). */
static file forge(const tables *t)
{
    weft__gguf_writer *w;
    weft__strbuf meta = {0};
    weft__plan_file_header h = {.magic = WEFT__PLAN_FILE_MAGIC,
                                .version = WEFT__PLAN_FILE_VERSION,
                                .order = WEFT__PLAN_FILE_ORDER,
                                .data_bytes = 512,
                                .image_bytes = IMAGE_BYTES};
    uint64_t data, image;
    ok(weft__gguf_writer_memory("meta", &w, err));
    put_tables(w, t);
    ok(weft__gguf_writer_bytes(w, &meta, err));
    weft__gguf_writer_destroy(&w);
    h.meta_bytes = meta.len;
    h.meta_hash = weft__hash(meta.data, meta.len);
    assert_int_equal(weft__plan_file_places(&h, &data, &image, &h.file_bytes), 1);
    file f = {aligned_alloc(64, ((size_t)h.file_bytes + 63) & ~(size_t)63), (size_t)h.file_bytes};
    memset(f.p, 0, f.n);
    memcpy(f.p, &h, sizeof h);
    memcpy(f.p + sizeof h, meta.data, meta.len);
    sign(f);
    weft__strbuf_free(&meta);
    return f;
}

#define HOSTILE(text, change)                                                                                          \
    do {                                                                                                               \
        tables t = good_tables();                                                                                      \
        change;                                                                                                        \
        file f = forge(&t);                                                                                            \
        refused(WEFT_FORMAT, text, parse(f, err));                                                                     \
        free(f.p);                                                                                                     \
    } while (0)
#define NUMBER(i, j) t.tensors[(i)*WEFT__PLAN_FILE_NUMBERS + (j)]

static void hostile_tables(void **state)
{
    (void)state;
    static const char *const keys[] = {WEFT__PLAN_FILE_PROVIDER, WEFT__PLAN_FILE_MADE_BY, WEFT__PLAN_FILE_LAYOUT,
                                       WEFT__PLAN_FILE_WEIGHTS,  WEFT__PLAN_FILE_OFFSETS, WEFT__PLAN_FILE_NAMES,
                                       WEFT__PLAN_FILE_TENSORS};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) HOSTILE(keys[i], t.skip = keys[i]);
    HOSTILE(WEFT__PLAN_FILE_OFFSETS, t.odd_types = 1);
    static const char *const of_source[] = {WEFT__PLAN_FILE_SOURCE_BYTES, WEFT__PLAN_FILE_SOURCE_TIME,
                                            WEFT__PLAN_FILE_KEEPS};
    for (int i = 0; i < 3; i++) HOSTILE(WEFT__PLAN_FILE_SOURCE, (t.source = "/a", t.skip = of_source[i]));
    HOSTILE(WEFT__PLAN_FILE_SOURCE, t.source = "../a");
    HOSTILE(WEFT__PLAN_FILE_SOURCE, t.source = "");
    HOSTILE(WEFT__PLAN_FILE_SOURCE, (t.source = "/a\0b", t.n_source = 4));
    HOSTILE(WEFT__PLAN_FILE_LAYOUT, t.layout = "\x1b[2J");
    HOSTILE(WEFT__PLAN_FILE_LAYOUT, t.layout = "caf\xc3\xa9");
    HOSTILE(WEFT__PLAN_FILE_NAMES, t.n_names--);
    HOSTILE(WEFT__PLAN_FILE_NAMES, t.n_numbers--);
    HOSTILE(WEFT__PLAN_FILE_NAMES, t.n_numbers -= WEFT__PLAN_FILE_NUMBERS);
    HOSTILE("blk.0.attn_q.weight", t.names[3] = t.names[1]);
    HOSTILE("malformed", t.names[3] = "");
    HOSTILE("output.weight", NUMBER(3, 0) = (uint64_t)1 << 32);
    HOSTILE("output.weight", NUMBER(3, 1) = 0);
    HOSTILE("output.weight", NUMBER(3, 1) = 5);
    HOSTILE("output.weight", NUMBER(3, 1) = 1);
    HOSTILE("output.weight", NUMBER(3, 2) = 0);
    HOSTILE("output.weight", NUMBER(3, 2) = 31);
    HOSTILE("overflow", NUMBER(3, 3) = (uint64_t)1 << 60);
    HOSTILE("token_embd.weight", NUMBER(0, 6) = 32);
    HOSTILE("token_embd.weight", NUMBER(0, 6) = 512);
    HOSTILE("token_embd.weight", NUMBER(0, 6) = 384);
    HOSTILE("token_embd.weight", NUMBER(0, 6) = UINT64_MAX - 63);
    HOSTILE("token_embd.weight", NUMBER(0, 3) = 32);
}

static void forged_tables(void **state)
{
    (void)state;
    tables t = good_tables();
    file f = forge(&t);
    refused(WEFT_OK, "", parse(f, err)); /* what the hostile ones are made of is good */
    free(f.p);
    NUMBER(3, 0) = 250;
    f = forge(&t);
    refused(WEFT_UNSUPPORTED, "output.weight", parse(f, err));
    free(f.p);
}

/* ---- writing ---- */

static int stop(void *arg, const char *what, double fraction)
{
    (void)arg;
    return !strcmp(what, "writing") && fraction > 0 && fraction <= 1;
}

static void whole_or_not_at_all(void **state)
{
    (void)state;
    file before = load(), after;
    refused(WEFT_CANCELLED, "cancelled", write_plan(path, stop, err));
    assert_int_equal(files_in_folder(), 1);
    after = load();
    assert_int_equal(before.n, after.n);
    assert_memory_equal(before.p, after.p, before.n);
    free(after.p);
    free(before.p);
    refused(WEFT_IO, "/nowhere/a.plan", write_plan("/nowhere/a.plan", NULL, err));
    ok(write_plan(path, NULL, err));
}

static void room_on_the_disk(void **state)
{
    (void)state;
    refused(WEFT_OK, "", weft__out_file_room(path, 1, err));
    refused(WEFT_LIMIT, "GB are free", weft__out_file_room(path, INT64_MAX, err));
    refused(WEFT_IO, "/nowhere/a.plan: nothing can be written into its folder: No such file",
            weft__out_file_room("/nowhere/a.plan", 1, err));
    refused(WEFT_IO, "is a folder", weft__out_file_room(folder, 1, err));
    refused(WEFT_LIMIT, "a.plan", weft__out_file_room("a.plan", INT64_MAX, err));
}

static int write_and_open(void *arg)
{
    weft__plan_file *f = NULL;
    (void)arg;
    int done = !write_plan(path, NULL, NULL) && !weft__plan_file_open(path, &f, NULL);
    weft__plan_file_close(&f);
    return done;
}

static void failing_allocator(void **state)
{
    (void)state;
    size_t n = fail_each(write_and_open, NULL);
    print_message("  %zu allocations refused in turn\n", n);
    assert_true(n > 20);
    assert_int_equal(files_in_folder(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_is_named),  cmocka_unit_test(what_was_written), cmocka_unit_test(what_is_no_plan),
        cmocka_unit_test(damaged_head),        cmocka_unit_test(cut_off),          cmocka_unit_test(damaged_weights),
        cmocka_unit_test(other_versions),      cmocka_unit_test(hostile_tables),   cmocka_unit_test(forged_tables),
        cmocka_unit_test(whole_or_not_at_all), cmocka_unit_test(room_on_the_disk), cmocka_unit_test(failing_allocator),
    };
    return cmocka_run_group_tests(tests, make_plan, remove_folder);
}
