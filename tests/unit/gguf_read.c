// SPDX-License-Identifier: Apache-2.0
/* gguf_read.c: well-formed files: every type of value and its conversions, lists, tensors, reference models, large
 * counts, and every failing allocation. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "format/gguf_parts.h"
#include "claims.h"
#include "growth.h"
#include "gguf_build.h"
#include "model/shared.h"

static void expect_text(const weft_error *err, const char *part)
{
    if (!strstr(err->message, part)) fail_msg("message \"%s\" lacks \"%s\"", err->message, part);
}

static void expect_str(weft__gguf_str s, const char *wanted)
{
    assert_non_null(s.data);
    assert_int_equal(s.len, strlen(wanted));
    assert_memory_equal(s.data, wanted, s.len);
}

static weft__gguf *open_sample(sample *s, uint32_t version)
{
    weft__gguf *g;
    weft_error err = {0};
    sample_build(s, version);
    if (weft__gguf_parse(s->b.p, s->b.n, "sample", &g, &err) != WEFT_OK) fail_msg("%s", err.message);
    return g;
}

static void every_kind_of_value(void **state)
{
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        sample s = {0};
        weft__gguf *g = open_sample(&s, version);
        assert_int_equal(weft__gguf_version(g), version);
        assert_int_equal(g->alignment, 32);
        assert_int_equal(weft__gguf_n_meta(g), S_KEYS);
        assert_int_equal(weft__gguf_find(g, "a.deep"), S_DEEP);
        assert_int_equal(weft__gguf_find(g, "a.dee"), -1);
        assert_string_equal(weft__gguf_meta(g, S_ARCH)->key, "general.architecture");
        assert_null(weft__gguf_meta(g, S_KEYS));
        int64_t i;
        uint64_t u;
        double d;
        float f;
        int b;
        weft__gguf_str str;
        static const struct {
            const char *key;
            int64_t value;
        } integers[] = {{"n.u8", 0xfe},
                        {"n.i8", -2},
                        {"n.u16", 0x89fe},
                        {"n.i16", (int16_t)0x89fe},
                        {"n.u32", 0x8b8a89fe},
                        {"n.i32", (int32_t)0x8b8a89fe},
                        {"n.i64", (int64_t)0x8f8e8d8c8b8a89fe},
                        {"general.alignment", 32}};
        for (size_t k = 0; k < sizeof integers / sizeof *integers; k++) {
            assert_int_equal(weft__gguf_i64(g, integers[k].key, &i, NULL), WEFT_OK);
            assert_int_equal(i, integers[k].value);
        }
        assert_int_equal(weft__gguf_u64(g, "n.u64", &u, NULL), WEFT_OK);
        assert_true(u == 0x8f8e8d8c8b8a89fe);
        assert_int_equal(weft__gguf_f32(g, "n.f32", &f, NULL), WEFT_OK);
        assert_true(f == 1.5f);
        assert_int_equal(weft__gguf_f64(g, "n.f32", &d, NULL), WEFT_OK);
        assert_true(d == 1.5);
        assert_int_equal(weft__gguf_f64(g, "n.f64", &d, NULL), WEFT_OK);
        assert_true(d == 1e300);
        assert_int_equal(weft__gguf_bool(g, "n.bool", &b, NULL), WEFT_OK);
        assert_int_equal(b, 1);
        assert_int_equal(weft__gguf_string(g, "general.architecture", &str, NULL), WEFT_OK);
        expect_str(str, "llama");
        assert_int_equal(weft__gguf_string(g, "s.empty", &str, NULL), WEFT_OK);
        expect_str(str, "");
        expect_str(weft__gguf_entry_string(weft__gguf_meta(g, S_ARCH)), "llama");
        assert_null(weft__gguf_entry_string(weft__gguf_meta(g, S_U8)).data);
        weft__gguf_close(&g);
        assert_null(g);
        free(s.b.p);
    }
}

static void refused_conversions(void **state)
{
    (void)state;
    sample s = {0};
    weft__gguf *g = open_sample(&s, 3);
    weft_error err;
    uint32_t u32 = 77;
    int32_t i32 = 77;
    uint64_t u64 = 77;
    int64_t i64 = 77;
    float f = 77;
    double d = 77;
    int b = 77;
    weft__gguf_str str = {"77", 2};
    const weft__gguf_list *list = (const weft__gguf_list *)&list;
#define REFUSED(call, status, part)                                                                                    \
    assert_int_equal(call, status);                                                                                    \
    expect_text(&err, part)
    REFUSED(weft__gguf_u32(g, "n.none", &u32, &err), WEFT_NOT_FOUND, "sample: key 'n.none' is missing");
    REFUSED(weft__gguf_array(g, "n.none", &list, &err), WEFT_NOT_FOUND, "key 'n.none' is missing");
    REFUSED(weft__gguf_u32(g, "n.i8", &u32, &err), WEFT_FORMAT,
            "key 'n.i8' (type i8) holds -2, which does not fit into u32");
    REFUSED(weft__gguf_u32(g, "n.u64", &u32, &err), WEFT_FORMAT,
            "holds 10344361028892658174, which does not fit into u32");
    REFUSED(weft__gguf_u64(g, "n.i64", &u64, &err), WEFT_FORMAT, "key 'n.i64' (type i64) holds -8102383044816893442");
    REFUSED(weft__gguf_i64(g, "n.u64", &i64, &err), WEFT_FORMAT, "key 'n.u64' (type u64) holds 10344361028892658174");
    REFUSED(weft__gguf_i32(g, "n.u32", &i32, &err), WEFT_FORMAT, "holds 2341112318, which does not fit into i32");
    REFUSED(weft__gguf_i32(g, "n.i64", &i32, &err), WEFT_FORMAT, "does not fit into i32");
    REFUSED(weft__gguf_f32(g, "n.f64", &f, &err), WEFT_FORMAT,
            "key 'n.f64' (type f64) holds 1e+300, which does not fit into f32");
    REFUSED(weft__gguf_f32(g, "n.u32", &f, &err), WEFT_FORMAT, "key 'n.u32' has type u32, expected f32");
    REFUSED(weft__gguf_f64(g, "n.bool", &d, &err), WEFT_FORMAT, "key 'n.bool' has type bool, expected f64");
    REFUSED(weft__gguf_u32(g, "n.bool", &u32, &err), WEFT_FORMAT, "key 'n.bool' has type bool, expected u32");
    REFUSED(weft__gguf_bool(g, "n.u8", &b, &err), WEFT_FORMAT, "key 'n.u8' has type u8, expected bool");
    REFUSED(weft__gguf_string(g, "n.u8", &str, &err), WEFT_FORMAT, "key 'n.u8' has type u8, expected string");
    REFUSED(weft__gguf_u32(g, "a.floats", &u32, &err), WEFT_FORMAT, "key 'a.floats' has type array, expected u32");
    REFUSED(weft__gguf_array(g, "s.empty", &list, &err), WEFT_FORMAT, "key 's.empty' has type string, expected array");
#undef REFUSED
    assert_true(u32 == 77 && i32 == 77 && u64 == 77 && i64 == 77 && f == 77 && d == 77 && b == 77 && str.len == 2);
    weft__gguf_close(&g);
    free(s.b.p);
}

static void lists(void **state)
{
    (void)state;
    sample s = {0};
    weft__gguf *g = open_sample(&s, 3);
    const weft__gguf_list *list, *inner;
    uint64_t u;
    int64_t i;
    double d;
    int b;
    assert_int_equal(weft__gguf_array(g, "a.strings", &list, NULL), WEFT_OK);
    assert_int_equal(list->n, 3);
    expect_str(weft__gguf_list_string(list, 0), "a");
    expect_str(weft__gguf_list_string(list, 1), "");
    expect_str(weft__gguf_list_string(list, 2), "\xc3\xbc"
                                                "ber");
    assert_null(weft__gguf_list_string(list, 3).data);
    assert_int_equal(weft__gguf_list_u64(list, 0, &u), 0);
    assert_int_equal(weft__gguf_array(g, "a.floats", &list, NULL), WEFT_OK);
    assert_int_equal(weft__gguf_list_f64(list, 1, &d), 1);
    assert_true(d == -2.0);
    assert_int_equal(weft__gguf_list_f64(list, 2, &d), 0);
    assert_int_equal(weft__gguf_list_i64(list, 0, &i), 0);
    assert_null(weft__gguf_list_string(list, 0).data);
    assert_int_equal(weft__gguf_array(g, "a.bools", &list, NULL), WEFT_OK);
    assert_int_equal(weft__gguf_list_bool(list, 1, &b), 1);
    assert_int_equal(b, 0);
    assert_int_equal(weft__gguf_list_bool(list, 2, &b), 1);
    assert_int_equal(b, 1);
    assert_int_equal(weft__gguf_list_bool(list, 3, &b), 0);
    assert_int_equal(weft__gguf_array(g, "a.nested", &list, NULL), WEFT_OK);
    assert_int_equal(list->n, 3);
    inner = weft__gguf_list_list(list, 0);
    assert_int_equal(weft__gguf_list_u64(inner, 0, &u), 1);
    assert_int_equal(u, 7);
    assert_int_equal(weft__gguf_list_u64(inner, 1, &u), 0); /* negative */
    assert_int_equal(weft__gguf_list_i64(inner, 1, &i), 1);
    assert_int_equal(i, -8);
    expect_str(weft__gguf_list_string(weft__gguf_list_list(list, 1), 0), "x");
    assert_int_equal(weft__gguf_list_list(list, 2)->n, 0);
    assert_null(weft__gguf_list_list(list, 3));
    assert_int_equal(weft__gguf_array(g, "a.deep", &list, NULL), WEFT_OK);
    for (int depth = 1; depth < 4; depth++) list = weft__gguf_list_list(list, 0);
    assert_int_equal(weft__gguf_list_u64(list, 0, &u), 1);
    assert_int_equal(u, 9);
    weft__gguf_close(&g);
    free(s.b.p);
}

static void tensors(void **state)
{
    (void)state;
    sample s = {0};
    weft__gguf *g = open_sample(&s, 3);
    const weft__tensor_set *set = weft__gguf_tensors(g);
    const weft__tensor_desc *t;
    weft_error err;
    assert_int_equal(set->n, 4);
    assert_int_equal(weft__gguf_tensor(g, "b.weight", &t, &err), WEFT_OK);
    assert_ptr_equal(t, &set->items[1]);
    assert_int_equal(t->dtype, WEFT_Q4_0);
    assert_int_equal(t->n_dims, 2);
    assert_int_equal(t->d[0], 64);
    assert_int_equal(t->d[1], 2);
    assert_int_equal(t->d[3], 1);
    assert_int_equal(t->n_elems, 128);
    assert_int_equal(t->n_bytes, 72);
    assert_int_equal(t->offset, s.data + 128);
    assert_ptr_equal(t->buffer, g->parts[0]);
    assert_ptr_equal(weft__tensor_data(t), s.b.p + s.data + 128);
    assert_int_equal(*(const unsigned char *)weft__tensor_data(t), 16);
    assert_int_equal(set->items[3].n_bytes, 6);
    assert_int_equal(weft__gguf_tensor(g, "b.weigh", &t, &err), WEFT_NOT_FOUND);
    expect_text(&err, "sample: tensor 'b.weigh' is missing");
    assert_int_equal(g->n_parts, 1);
    weft__gguf_close(&g);
    weft__gguf_close(&g);
    weft__gguf_close(NULL);
    free(s.b.p);
}

/* Names, entries, tensors and bytes as an independent reader lists them; vocabularies alone are listed in
 * text_golden.c. */
static const struct {
    const char *path;
    size_t n_meta, n_tensors, n_vocabulary;
    const char *architecture;
} models[] = {
    {"models/stories260K.gguf", 19, 48, 512, "llama"},          {"models/tiny-gemma2.f16.gguf", 25, 35, 512, "gemma2"},
    {"models/tiny-gemma3.f16.gguf", 23, 41, 512, "gemma3"},     {"models/tiny-llama.BF16.gguf", 23, 30, 512, "llama"},
    {"models/tiny-llama.IQ4_NL.gguf", 23, 30, 512, "llama"},    {"models/tiny-llama.IQ4_XS.gguf", 23, 30, 512, "llama"},
    {"models/tiny-llama.Q2_K.gguf", 23, 30, 512, "llama"},      {"models/tiny-llama.Q3_K_S.gguf", 23, 30, 512, "llama"},
    {"models/tiny-llama.Q4_0.gguf", 23, 30, 512, "llama"},      {"models/tiny-llama.Q4_1.gguf", 23, 30, 512, "llama"},
    {"models/tiny-llama.Q4_K_S.gguf", 23, 30, 512, "llama"},    {"models/tiny-llama.Q5_0.gguf", 23, 30, 512, "llama"},
    {"models/tiny-llama.Q5_1.gguf", 23, 30, 512, "llama"},      {"models/tiny-llama.Q5_K_S.gguf", 23, 30, 512, "llama"},
    {"models/tiny-llama.Q6_K.gguf", 23, 30, 512, "llama"},      {"models/tiny-llama.Q8_0.gguf", 23, 30, 512, "llama"},
    {"models/tiny-llama.f16.gguf", 22, 30, 512, "llama"},       {"models/tiny-llama.lora-a.gguf", 5, 12, 0, "llama"},
    {"models/tiny-llama.lora-b.gguf", 5, 42, 0, "llama"},       {"models/tiny-llama3.f16.gguf", 22, 31, 512, "llama"},
    {"models/tiny-mixtral.f16.gguf", 24, 33, 512, "llama"},     {"models/tiny-phi3.f16.gguf", 23, 21, 512, "phi3"},
    {"models/tiny-qwen2.f16.gguf", 22, 39, 512, "qwen2"},       {"models/tiny-qwen3.f16.gguf", 22, 36, 512, "qwen3"},
    {"models/tiny-qwen3moe.f16.gguf", 25, 39, 512, "qwen3moe"},
};

#define N_MODELS (sizeof models / sizeof *models)

static void check_model(const weft__gguf *g, size_t m)
{
    const weft__tensor_set *set = weft__gguf_tensors(g);
    const weft__gguf_list *tokens;
    weft__gguf_str str;
    uint64_t end = 0;
    if (weft__gguf_n_meta(g) != models[m].n_meta || set->n != models[m].n_tensors)
        fail_msg("%s: %zu entries, %zu tensors", models[m].path, weft__gguf_n_meta(g), set->n);
    assert_int_equal(weft__gguf_string(g, "general.architecture", &str, NULL), WEFT_OK);
    expect_str(str, models[m].architecture);
    /* The tensors fill the file from the data section to its end. */
    for (size_t i = 0; i < set->n; i++) {
        uint64_t tail = set->items[i].offset + (set->items[i].n_bytes + 31) / 32 * 32;
        if (tail > end) end = tail;
        assert_ptr_equal(weft__tensor_find(set, set->items[i].name), &set->items[i]);
    }
    if (set->n) assert_int_equal(end, g->parts[0]->n_bytes);
    if (!models[m].n_vocabulary) return;
    assert_int_equal(weft__gguf_array(g, "tokenizer.ggml.tokens", &tokens, NULL), WEFT_OK);
    assert_int_equal(tokens->n, models[m].n_vocabulary);
    size_t total = 0;
    for (uint64_t i = 0; i < tokens->n; i++) total += weft__gguf_list_string(tokens, i).len;
    assert_true(total > tokens->n);
}

static void reference_files(void **state)
{
    (void)state;
    if (!shared_path("%s", models[0].path)) skip_material(models[0].path);
    size_t live = weft__alloc_live();
    for (size_t m = 0; m < N_MODELS; m++) {
        weft__gguf *g;
        weft_error err = {0};
        const char *path = shared_path("%s", models[m].path);
        if (!path) fail_msg("there is no %s", models[m].path);
        if (weft__gguf_open(path, &g, &err) != WEFT_OK) fail_msg("%s", err.message);
        check_model(g, m);
        weft__gguf_close(&g);
    }
    assert_int_equal(weft__alloc_live(), live);
    print_message("%zu reference files listed\n", N_MODELS);
}

static void reference_values(void **state)
{
    (void)state;
    const char *path = shared_path("models/%s.gguf", "tiny-llama.Q2_K");
    weft__gguf *g;
    if (!path) skip_material("tiny-llama.Q2_K");
    assert_int_equal(weft__gguf_open(path, &g, NULL), WEFT_OK);
    uint32_t u = 0;
    float f = 0;
    const weft__gguf_list *tokens;
    const weft__tensor_desc *t;
    assert_int_equal(weft__gguf_u32(g, "llama.feed_forward_length", &u, NULL), WEFT_OK);
    assert_int_equal(u, 512);
    assert_int_equal(weft__gguf_f32(g, "llama.rope.freq_base", &f, NULL), WEFT_OK);
    assert_true(f == 10000.0f);
    assert_int_equal(weft__gguf_array(g, "tokenizer.ggml.tokens", &tokens, NULL), WEFT_OK);
    expect_str(weft__gguf_list_string(tokens, 2), "</s>");
    assert_int_equal(weft__gguf_tensor(g, "blk.2.ffn_up.weight", &t, NULL), WEFT_OK);
    assert_int_equal(t->dtype, WEFT_Q2_K);
    assert_int_equal(t->d[0], 256);
    assert_int_equal(t->d[1], 512);
    assert_int_equal(t->n_bytes, 512 * 84);
    /* The last one; 630784 bytes of others stand before it, and before those the header, padded to 32. */
    assert_int_equal(t->offset + t->n_bytes, g->parts[0]->n_bytes);
    assert_int_equal(weft__gguf_tensors(g)->items[0].offset + 630784, t->offset);
    assert_int_equal((t->offset - 630784) % 32, 0);
    weft__gguf_close(&g);
}

/* n keys and n tensors, the tensors in reverse order of place. */
static bytes large_file(int n)
{
    bytes b = {0};
    char name[32];
    uint64_t d = 8;
    put_head(&b, 3, (uint64_t)n, (uint64_t)n);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "key.%d", i);
        put_key(&b, name, 4), put_u32(&b, (uint32_t)i);
    }
    for (int i = n - 1; i >= 0; i--) {
        snprintf(name, sizeof name, "tensor.%d", i);
        put_tensor(&b, name, 1, &d, 0, (uint64_t)i * 32);
    }
    pad(&b, 32);
    for (int i = 0; i < n * 4; i++) put_u64(&b, 0);
    return b;
}

/* Opens a file of n keys and as many tensors, and finds each key; what that takes. */
static double open_and_find(void *arg, size_t n)
{
    (void)arg;
    bytes b = large_file((int)n);
    weft__gguf *g;
    weft_error err = {0};
    double before = own_seconds();
    if (weft__gguf_parse(b.p, b.n, "large", &g, &err) != WEFT_OK) fail_msg("%s", err.message);
    uint32_t u = 0;
    char name[32];
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "key.%u", i);
        if (weft__gguf_u32(g, name, &u, NULL) != WEFT_OK || u != i) fail_msg("%s is %u", name, u);
    }
    double took = own_seconds() - before;
    weft__gguf_close(&g);
    free(b.p);
    return took;
}

static void a_million_names(void **state)
{
    (void)state;
    double times = growth_of(open_and_find, NULL, CLAIMS_REPEATED(1000000, 1000000, 200000));
    if (times > GROWTH_MOST) fail_msg("%.1f times as long for %d times the names", times, GROWTH_SIZES);
}

static int gate(void *arg, size_t n_bytes)
{
    (void)n_bytes;
    return (*(int *)arg)-- > 0;
}

static int open_descriptors(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) return 0;
    while (readdir(folder)) n++;
    closedir(folder);
    return n;
}

static int is_mapped(const char *path)
{
    char line[1024];
    int found = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f)) found |= strstr(line, path) != NULL;
    if (f) fclose(f);
    return found;
}

static void failing_allocations(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/weft-gguf-read-%d.gguf", (int)getpid());
    bytes b = large_file(200); /* enough for tables to grow */
    assert_int_equal(bytes_save(&b, path), 1);
    size_t live = weft__alloc_live();
    int descriptors = open_descriptors(), n;
    for (n = 0;; n++) {
        int left = n;
        weft__gguf *g;
        weft_error err = {0};
        weft__alloc_set_gate(gate, &left);
        weft_status status = weft__gguf_open(path, &g, &err);
        weft__alloc_set_gate(NULL, NULL);
        if (status == WEFT_OK) {
            assert_int_equal(is_mapped(path), 1);
            weft__gguf_close(&g);
            break;
        }
        if (status != WEFT_NO_MEMORY || !strstr(err.message, "memory"))
            fail_msg("%d: status %d: %s", n, status, err.message);
        assert_null(g);
        assert_int_equal(weft__alloc_live(), live);
        assert_int_equal(is_mapped(path), 0);
    }
    assert_int_equal(weft__alloc_live(), live);
    assert_int_equal(open_descriptors(), descriptors);
    assert_true(n > 10);
    print_message("open failed cleanly at each of %d allocations\n", n);
    sample s = {0};
    sample_build(&s, 3);
    for (n = 0;; n++) { /* lists of strings and lists of lists */
        int left = n;
        weft__gguf *g;
        weft__alloc_set_gate(gate, &left);
        weft_status status = weft__gguf_parse(s.b.p, s.b.n, "sample", &g, NULL);
        weft__alloc_set_gate(NULL, NULL);
        weft__gguf_close(&g);
        assert_int_equal(weft__alloc_live(), live);
        if (status == WEFT_OK) break;
        assert_int_equal(status, WEFT_NO_MEMORY);
    }
    free(s.b.p);
    free(b.p);
    unlink(path);
}

static void missing_file(void **state)
{
    (void)state;
    weft__gguf *g;
    weft_error err = {0};
    assert_int_equal(weft__gguf_open("/nonexistent/m.gguf", &g, &err), WEFT_NOT_FOUND);
    expect_text(&err, "/nonexistent/m.gguf: cannot be opened: No such file");
    assert_int_equal(weft__gguf_open("/tmp", &g, &err), WEFT_UNSUPPORTED);
    expect_text(&err, "/tmp: is a directory");
    assert_null(g);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] =
        {
            cmocka_unit_test(every_kind_of_value),
            cmocka_unit_test(refused_conversions),
            cmocka_unit_test(lists),
            cmocka_unit_test(tensors),
            cmocka_unit_test(a_million_names),
            cmocka_unit_test(failing_allocations),
            cmocka_unit_test(missing_file),
        },
                            material[] = {
                                cmocka_unit_test(reference_files),
                                cmocka_unit_test(reference_values),
                            };
    if (claims_material(argc, argv)) return claims_status(cmocka_run_group_tests(material, NULL, NULL));
    return claims_status(cmocka_run_group_tests(tests, NULL, NULL));
}
