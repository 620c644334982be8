// SPDX-License-Identifier: Apache-2.0
/* hub_cache.c: the cache as the library sees it: finding, listing and removing models, with and without memory. */
#include "unit/fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hub/cache.h"
#include "hub/manifest.h"
#include "weft/weft.h"

static char root[256];

/* A file of n bytes below the cache's models. */
static void put(const char *path, size_t n)
{
    char full[1024];
    snprintf(full, sizeof full, "%s/models/%s", root, path);
    for (char *s = strchr(full + 1, '/'); s; s = strchr(s + 1, '/')) {
        *s = 0;
        mkdir(full, 0700);
        *s = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) fputc('x', f);
    fclose(f);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/weft-test-XXXXXX");
    if (!mkdtemp(root)) return -1;
    setenv("WEFT_CACHE", root, 1);
    put("o/n/m-Q8_0.gguf", 8);
    put("o/n/m-Q4_0.gguf", 4);
    put("o/n/sub/s-Q6_K-00001-of-00002.gguf", 1);
    put("o/n/sub/s-Q6_K-00002-of-00002.gguf", 1);
    put("o/n/m-Q5_0.gguf.part", 2);
    put("o/n/m-Q5_0.gguf.part.json", 2);
    put("o/hf/config.json", 2);
    put("o/hf/model.safetensors", 5);
    return 0;
}

static int tear_down(void **state)
{
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static const char *resolve(const char *name)
{
    static char path[4096];
    weft_error err = {0};
    weft_status st = weft_resolve_model(name, path, sizeof path, &err);
    if (st == WEFT_NOT_FOUND && err.message[0]) return "not found";
    if (st) fail_msg("%s: %s", name, err.message);
    return strncmp(path, root, strlen(root)) ? path : path + strlen(root);
}

static void names_become_paths(void **state)
{
    (void)state;
    assert_string_equal(resolve("o/n"), "/models/o/n/m-Q4_0.gguf");
    assert_string_equal(resolve("o/n:Q8_0"), "/models/o/n/m-Q8_0.gguf");
    assert_string_equal(resolve("o/n:q6_k"), "/models/o/n/sub/s-Q6_K-00001-of-00002.gguf");
    assert_string_equal(resolve("o/n:m-Q8_0.gguf"), "/models/o/n/m-Q8_0.gguf");
    assert_string_equal(resolve("o/n:Q5_0"), "not found"); /* unfinished */
    assert_string_equal(resolve("o/x"), "not found");
    assert_string_equal(resolve("o/n:../../../etc/passwd"), "not found");
    assert_string_equal(resolve("../o/n"), "not found");
    assert_string_equal(resolve("/no/such/file"), "not found");
    assert_string_equal(resolve("o/hf"), "/models/o/hf");
    assert_string_equal(resolve("/dev/null"), "/dev/null");
    assert_string_equal(resolve("/tmp"), "/tmp");
    char small[8];
    assert_int_equal(weft_resolve_model("o/n", small, sizeof small, NULL), WEFT_LIMIT);
    assert_int_equal(weft_resolve_model("/dev/zero", small, sizeof small, NULL), WEFT_LIMIT);
}

static void append(void *arg, const weft_pulled *m)
{
    char *out = arg;
    sprintf(out + strlen(out), "%s %llu %d %d\n", m->name, (unsigned long long)m->n_bytes, m->n_files, m->complete);
}

static void models_are_listed(void **state)
{
    char out[4096] = "";
    (void)state;
    assert_int_equal(weft_pulled_each(append, out, NULL), WEFT_OK);
    assert_string_equal(out, "o/hf:config.json 2 1 1\no/hf:model.safetensors 5 1 1\n"
                             "o/n:m-Q4_0.gguf 4 1 1\no/n:m-Q5_0.gguf 2 1 0\no/n:m-Q8_0.gguf 8 1 "
                             "1\no/n:sub/s-Q6_K-00001-of-00002.gguf 2 2 1\n");
}

static void a_recorded_folder_is_one_model(void **state)
{
    char out[4096] = "";
    weft__hub_file files[] = {{.path = "config.json"}, {.path = "model.safetensors"}};
    const weft__hub_file *list[] = {&files[0], &files[1]};
    weft__hub_choice c = {WEFT__HUB_CHOICE_FOLDER, list, 2};
    weft__hub_name n;
    weft__json *m;
    int dir;
    (void)state;
    assert_int_equal(weft__hub_name_parse("o/hf", &n, NULL), WEFT_OK);
    assert_int_equal(weft__hub_cache_open(&n, 0, &dir, NULL), WEFT_OK);
    assert_int_equal(weft__manifest_read(dir, &m, NULL), WEFT_OK);
    assert_int_equal(weft__manifest_set_folder(dir, m, &c, NULL), WEFT_OK);
    assert_int_equal(weft_pulled_each(append, out, NULL), WEFT_OK);
    assert_memory_equal(out, "o/hf 7 2 1\no/n:", 15);
    unlinkat(dir, "model.safetensors", 0);
    out[0] = 0;
    assert_int_equal(weft_pulled_each(append, out, NULL), WEFT_OK);
    assert_memory_equal(out, "o/hf 2 1 0\no/n:", 15);
    assert_string_equal(resolve("o/hf"), "not found");
    weft__json_free(&m);
    close(dir);
}

static void removing_frees(void **state)
{
    uint64_t n;
    char path[512];
    (void)state;
    assert_int_equal(weft_pulled_remove("o/n:Q8_0", &n, NULL), WEFT_OK);
    assert_int_equal(n, 8);
    assert_int_equal(weft_pulled_remove("o/n:Q5_0", &n, NULL), WEFT_OK); /* the part and its record */
    assert_int_equal(n, 4);
    assert_int_equal(weft_pulled_remove("o/n:Q6_K", &n, NULL), WEFT_OK);
    assert_int_equal(n, 2);
    snprintf(path, sizeof path, "%s/models/o/n/sub", root);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(weft_pulled_remove("o/n:Q2_K", &n, NULL), WEFT_NOT_FOUND);
    assert_int_equal(weft_pulled_remove("o/n", &n, NULL), WEFT_OK);
    assert_int_equal(n, 4);
    assert_int_equal(weft_pulled_remove("o/n", &n, NULL), WEFT_NOT_FOUND);
    assert_int_equal(weft_pulled_remove("o/hf", &n, NULL), WEFT_OK);
    snprintf(path, sizeof path, "%s/models/o", root);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_lock_keeps_others_out(void **state)
{
    weft__hub_name n;
    uint64_t bytes;
    int lock, second;
    (void)state;
    assert_int_equal(weft__hub_name_parse("o/n", &n, NULL), WEFT_OK);
    assert_int_equal(weft__hub_cache_lock(&n, NULL, NULL, &lock, NULL), WEFT_OK);
    assert_int_equal(weft__hub_cache_lock(&n, NULL, NULL, &second, NULL), WEFT_STATE);
    assert_int_equal(weft_pulled_remove("o/n", &bytes, NULL), WEFT_STATE);
    close(lock);
    assert_int_equal(weft__hub_cache_lock(&n, NULL, NULL, &lock, NULL), WEFT_OK);
    close(lock);
}

static void nothing(void *arg, const weft_pulled *m)
{
    (void)arg, (void)m;
}

static int find_all(void *arg)
{
    char path[4096];
    (void)arg;
    return weft_resolve_model("o/n:Q6_K", path, sizeof path, NULL) == WEFT_OK &&
           weft_pulled_each(nothing, NULL, NULL) == WEFT_OK;
}

static int write_manifest(void *arg)
{
    weft__json *m = NULL;
    weft__hub_file f = {.path = "m-Q8_0.gguf", .n_bytes = 8, .has_size = 1, .id = "ab"};
    int dir = *(int *)arg;
    int ok = weft__manifest_read(dir, &m, NULL) == WEFT_OK &&
             weft__manifest_put(dir, m, &f, 8, "00", NULL) == WEFT_OK && weft__manifest_has(m, &f, 8);
    weft__json_free(&m);
    return ok;
}

static int remove_one(void *arg)
{
    uint64_t n;
    put("o/n/gone-Q2_K.gguf", 1);
    (void)arg;
    return weft_pulled_remove("o/n:Q2_K", &n, NULL) == WEFT_OK;
}

/* weft_pull without a server: what it allocates before the first connection. */
static int pull_nowhere(void *arg)
{
    weft_pull_result r;
    (void)arg;
    weft_status st = weft_pull("o/n", NULL, &r, NULL);
    return st != WEFT_OK && st != WEFT_NO_MEMORY;
}

static void memory_may_run_out(void **state)
{
    weft__hub_name n;
    int dir;
    (void)state;
    assert_true(fail_each(find_all, NULL) > 10);
    assert_int_equal(weft__hub_name_parse("o/n", &n, NULL), WEFT_OK);
    assert_int_equal(weft__hub_cache_open(&n, 0, &dir, NULL), WEFT_OK);
    assert_true(fail_each(write_manifest, &dir) > 5);
    close(dir);
    assert_true(fail_each(remove_one, NULL) > 5);
    setenv("HF_ENDPOINT", "http://127.0.0.1:9", 1);
    setenv("WEFT_PULL_RETRIES", "0", 1);
    setenv("no_proxy", "*", 1);
    assert_true(fail_each(pull_nowhere, NULL) >= 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_become_paths), TEST(models_are_listed),       TEST(a_recorded_folder_is_one_model),
        TEST(removing_frees),     TEST(a_lock_keeps_others_out), TEST(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
