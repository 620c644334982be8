// SPDX-License-Identifier: Apache-2.0
/* hub_listing.c: what is read from a listing, and which files are chosen from one. */
#include "unit/fixture.h"

#include <stdio.h>

#include "hub/hub.h"
#include "base/sha256.h"

static weft__listing make(const char *const *paths)
{
    weft__listing l = {0};
    for (; *paths; paths++) assert_non_null(weft__listing_add(&l, *paths, strlen(*paths)));
    assert_int_equal(weft__listing_sort(&l, NULL), WEFT_OK);
    return l;
}

/* The choice's paths, joined with spaces; or the status' text. */
static const char *choose(const weft__listing *l, const char *what)
{
    static char out[4096];
    weft__hub_choice c;
    weft_error err = {0};
    weft_status st = weft__listing_choose(l, "o/n", what, &c, &err);
    if (st) {
        assert_true(err.message[0]);
        return weft_status_text(st);
    }
    out[0] = 0;
    for (size_t i = 0; i < c.n; i++) strcat(strcat(out, i ? " " : ""), c.files[i]->path);
    weft__hub_choice_free(&c);
    return out;
}

#define CHOICE(what, want) assert_string_equal(choose(&l, what), want)

static void quantizations(void **state)
{
    static const char *const paths[] = {
        "README.md",     "m-BF16.gguf", "m-F16.gguf",      "m-IQ4_XS.gguf", "m-Q2_K.gguf", "m-Q4_K_M.gguf",
        "m-Q4_K_S.gguf", "m-Q8_0.gguf", "mmproj-F32.gguf", "imatrix.gguf",  NULL};
    weft__listing l = make(paths);
    (void)state;
    CHOICE("", "m-Q4_K_M.gguf");
    CHOICE("q8_0", "m-Q8_0.gguf");
    CHOICE("Q4_K", "m-Q4_K_M.gguf"); /* the beginning of two: the order decides */
    CHOICE("Q4", "m-Q4_K_M.gguf");
    CHOICE("F16", "m-F16.gguf"); /* not BF16 */
    CHOICE("bf16", "m-BF16.gguf");
    CHOICE("Q4_XS", "not found"); /* not IQ4_XS */
    CHOICE("K_M", "m-Q4_K_M.gguf");
    CHOICE("F32", "not found"); /* a projector's, and it was not named */
    CHOICE("mmproj-F32.gguf", "mmproj-F32.gguf");
    CHOICE("README.md", "README.md");
    CHOICE("readme.md", "not found");
    CHOICE("Q5_K_M", "not found");
    weft__listing_free(&l);
}

static void order_of_quantizations(void **state)
{
    (void)state;
    static const char *const order[] = {"Q4_K_M", "Q4_K_S", "Q4_0", "IQ4_XS", "IQ4_NL", "Q4_1",   "Q5_K_M",
                                        "Q5_K_S", "Q5_0",   "Q5_1", "Q6_K",   "Q8_0",   "Q3_K_M", "Q3_K_L",
                                        "Q3_K_S", "Q2_K",   "BF16", "F16",    "F32",    NULL};
    for (int i = 0; order[i]; i++) { /* each is taken when those before it are absent */
        weft__listing l = {0};
        char path[64], want[64];
        snprintf(want, sizeof want, "x.%s.gguf", order[i]);
        for (int k = i; order[k]; k++) {
            int n = snprintf(path, sizeof path, "x.%s.gguf", order[k]);
            assert_non_null(weft__listing_add(&l, path, (size_t)n));
        }
        assert_int_equal(weft__listing_sort(&l, NULL), WEFT_OK);
        CHOICE("", want);
        weft__listing_free(&l);
    }
}

static void names_that_decide_nothing(void **state)
{
    static const char *const one[] = {"weights.GGUF", NULL}, *const two[] = {"a.gguf", "b.gguf", NULL},
                             *const twins[] = {"a/x-Q4_0.gguf", "b/x-Q4_0.gguf", "long/x-Q4_0.gguf", NULL},
                             *const none[] = {"pytorch_model.bin", NULL};
    weft__listing l = make(one);
    (void)state;
    CHOICE("", "weights.GGUF");
    weft__listing_free(&l);
    l = make(two);
    CHOICE("", "invalid argument");
    CHOICE("a", "a.gguf");
    weft__listing_free(&l);
    l = make(twins);
    CHOICE("", "a/x-Q4_0.gguf");
    CHOICE("b/x-Q4_0.gguf", "b/x-Q4_0.gguf");
    CHOICE("x-Q4_0.gguf", "invalid argument");
    weft__listing_free(&l);
    l = make(none);
    CHOICE("", "not supported");
    CHOICE("Q4_0", "not found");
    weft__listing_free(&l);
}

static void split_files(void **state)
{
    static const char *const paths[] = {"Q6_K/m-00001-of-00002.gguf", "Q6_K/m-00002-of-00002.gguf",
                                        "m-Q8_0-00001-of-00003.gguf", "m-Q8_0-00003-of-00003.gguf",
                                        "odd-00000-of-00002.gguf",    "odd2-00003-of-00002.gguf",
                                        "x-F16-00002-of-00002.gguf",  NULL};
    weft__listing l = make(paths);
    (void)state;
    CHOICE("", "Q6_K/m-00001-of-00002.gguf Q6_K/m-00002-of-00002.gguf");
    CHOICE("Q6_K", "Q6_K/m-00001-of-00002.gguf Q6_K/m-00002-of-00002.gguf");
    CHOICE("m-00002-of-00002.gguf", "Q6_K/m-00001-of-00002.gguf Q6_K/m-00002-of-00002.gguf");
    CHOICE("Q8_0", "malformed data");
    CHOICE("F16", "not found");
    CHOICE("odd-00000-of-00002.gguf", "odd-00000-of-00002.gguf"); /* no part of a set: one file */
    weft__listing_free(&l);
}

static void folders(void **state)
{
    static const char *const plain[] = {
        "config.json", "model.safetensors", "tokenizer.json", "other.safetensors", "x/model.safetensors", "a.py", NULL};
    static const char *const sharded[] = {"config.json",
                                          "model-1.safetensors",
                                          "model-2.safetensors",
                                          "consolidated.safetensors",
                                          "model.safetensors.index.json",
                                          "tokenizer.model",
                                          NULL};
    static const char *const strange[] = {"config.json", "w1.safetensors", "w2.safetensors",
                                          "model.safetensors.index.json", NULL};
    static const char *const headless[] = {"model.safetensors", NULL}, *const empty[] = {"config.json", NULL};
    weft__listing l = make(plain);
    (void)state;
    CHOICE("", "config.json tokenizer.json model.safetensors");
    weft__listing_free(&l);
    l = make(sharded);
    CHOICE("", "config.json tokenizer.model model.safetensors.index.json model-1.safetensors model-2.safetensors");
    weft__listing_free(&l);
    l = make(strange);
    CHOICE("", "config.json model.safetensors.index.json w1.safetensors w2.safetensors");
    weft__listing_free(&l);
    l = make(headless);
    CHOICE("", "not supported");
    weft__listing_free(&l);
    l = make(empty);
    CHOICE("", "not supported");
    weft__listing_free(&l);
}

#define H64 "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"
#define L64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void details_are_read(void **state)
{
    static const char tree[] =
        "[{\"type\":\"directory\",\"path\":\"d\"},{\"type\":\"file\",\"path\":\".gitattributes\",\"size\":1},"
        "{\"type\":\"file\",\"path\":\"d/.x/y\",\"size\":1},"
        "{\"type\":\"file\",\"path\":\"m.gguf\",\"size\":7,\"oid\":\"abcd\",\"lfs\":{\"oid\":\"sha256:" H64
        "\",\"size\":7}},"
        "{\"type\":\"file\",\"path\":\"c.json\",\"size\":0,\"oid\":\"ABcd\",\"lfs\":null},{\"path\":\"z\"}]";
    weft__listing l = {0};
    weft_error err;
    (void)state;
    if (weft__listing_parse(&l, tree, sizeof tree - 1, &err)) fail_msg("%s", err.message);
    assert_int_equal(weft__listing_sort(&l, NULL), WEFT_OK);
    assert_int_equal(l.n, 3);
    const weft__hub_file *m = weft__listing_find(&l, "m.gguf"), *c = weft__listing_find(&l, "c.json"),
                         *z = weft__listing_find(&l, "z");
    assert_true(m->has_size && m->n_bytes == 7);
    assert_string_equal(m->sha256, L64);
    assert_string_equal(m->id, L64);
    assert_true(c->has_size && c->n_bytes == 0);
    assert_string_equal(c->sha256, "");
    assert_string_equal(c->id, "abcd");
    assert_false(z->has_size);
    assert_string_equal(z->id, "");
    weft__listing_free(&l);
}

static int parse_and_choose(void *arg)
{
    static const char json[] =
        "{\"siblings\":[{\"rfilename\":\"m-Q6_K-00001-of-00002.gguf\"},{\"rfilename\":\"m-Q6_K-00002-of-"
        "00002.gguf\"},{\"rfilename\":\"a.gguf\"}]}";
    weft__listing l = {0};
    weft__hub_choice c = {0};
    int ok = weft__listing_parse(&l, json, sizeof json - 1, NULL) == WEFT_OK &&
             weft__listing_sort(&l, NULL) == WEFT_OK && weft__listing_choose(&l, "o/n", "", &c, NULL) == WEFT_OK &&
             c.n == 2;
    (void)arg;
    weft__hub_choice_free(&c);
    weft__listing_free(&l);
    return ok;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    assert_true(fail_each(parse_and_choose, NULL) > 5);
}

static void sha256_is_sha256(void **state)
{
    weft__sha256 h = {0};
    char hex[65];
    (void)state;
    assert_int_equal(weft__sha256_begin(&h, NULL), WEFT_OK);
    weft__sha256_add(&h, "to be thrown away", 5, NULL);
    assert_int_equal(weft__sha256_begin(&h, NULL), WEFT_OK);
    weft__sha256_add(&h, "a", 1, NULL);
    weft__sha256_add(&h, "", 0, NULL);
    weft__sha256_add(&h, "bc", 2, NULL);
    weft__sha256_end(&h, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"); /* FIPS 180-2, B.1 */
    weft__sha256_free(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantizations),
        cmocka_unit_test(order_of_quantizations),
        cmocka_unit_test(names_that_decide_nothing),
        cmocka_unit_test(split_files),
        cmocka_unit_test(folders),
        cmocka_unit_test(details_are_read),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(sha256_is_sha256),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
