// SPDX-License-Identifier: Apache-2.0
/* backend_plugin.c: loading plugins, refusing those that do not fit, and a plan that is placed partly on one. */
#include "waist.h"

#ifndef WEFT_TEST_PLUGINS
#error "WEFT_TEST_PLUGINS: the folder of the test plugins"
#endif
#define PLUGIN(fault) WEFT_TEST_PLUGINS "/weft-test" fault ".so"

enum { D = 32, V = 40, N_CTX = 24 };

static void test_loads(void **state)
{
    (void)state;
    weft__provider *p;
    weft_backend_info info = {.size = sizeof info};
    assert_ok(weft__provider_open(PLUGIN(""), NULL, &p, err));
    assert_ok(p->api->describe(p->backend, &info, err));
    assert_string_equal(info.name, "test");
    /* Its table is shorter than ours: what it does not know is not offered. */
    assert_null(p->api->measure);
    assert_null(p->api->program_describe);
    weft__provider_close(&p);
    assert_null(p);
    weft__provider_close(&p);
}

static void refused(const char *path, weft_status status, const char *a, const char *b)
{
    weft__provider *p = (weft__provider *)&p;
    weft_error err = {0};
    assert_int_equal(weft__provider_open(path, NULL, &p, &err), status);
    assert_null(p);
    print_message("  %s\n", err.message);
    if (!strstr(err.message, path) || !strstr(err.message, a) || !strstr(err.message, b))
        fail_msg("'%s' lacks %s, '%s' or '%s'", err.message, path, a, b);
}

static void test_refuses(void **state)
{
    (void)state;
    unsigned major = WEFT_ABI_VERSION >> 16, minor = WEFT_ABI_VERSION & 0xffff;
    char core[16], newer[32], bytes[80];
    snprintf(core, sizeof core, "%u.%u", major, minor);
    snprintf(newer, sizeof newer, "plugin ABI %u.%u", major + 2, minor + 3);
    snprintf(bytes, sizeof bytes, "its table has %zu bytes, this core needs %zu", offsetof(weft_backend_api, run),
             offsetof(weft_backend_api, buffer_new));
    refused(PLUGIN("-major"), WEFT_ABI, newer, core);
    refused(PLUGIN("-abi1"), WEFT_ABI, "it was built for plugin ABI 1.6, this core has 2.", core);
    refused(PLUGIN("-size"), WEFT_ABI, bytes, core);
    refused(PLUGIN("-null"), WEFT_ABI, "refuses this core", core);
    refused(PLUGIN("-missing"), WEFT_ABI, "lacks supports", core);
    refused(PLUGIN("-symbol"), WEFT_ABI, "does not export weft_backend_entry", core);
    refused("./no-such-file.so", WEFT_NOT_FOUND, "cannot be loaded", "");
    refused("CMakeLists.txt.so", WEFT_NOT_FOUND, "cannot be loaded", "");
    weft__provider *p;
    assert_refused(WEFT_STATE, "was asked to refuse", weft__provider_open(PLUGIN(""), "refuse", &p, err));
    assert_null(p);
}

static void test_path(void **state)
{
    (void)state;
    weft__provider *p;
    unsetenv("WEFT_PLUGIN_PATH");
    assert_refused(WEFT_NOT_FOUND, "WEFT_PLUGIN_PATH (not set)", weft__provider_open("weft-test", NULL, &p, err));
    setenv("WEFT_PLUGIN_PATH", "/nonexistent::" WEFT_TEST_PLUGINS, 1);
    assert_ok(weft__provider_open("weft-test", NULL, &p, err));
    weft__provider_close(&p);
    assert_refused(WEFT_NOT_FOUND, "'nobody'", weft__provider_open("nobody", NULL, &p, err));
    unsetenv("WEFT_PLUGIN_PATH");
}

static void test_table_checks(void **state)
{
    (void)state;
    weft__provider *cpu;
    assert_ok(weft__provider_open("cpu", "threads=1", &cpu, err));
    weft_backend_api t = *cpu->api;
    assert_ok(weft__provider_check(&t, "x", err));
    t.abi_version += 7; /* a newer minor version is fine */
    assert_ok(weft__provider_check(&t, "x", err));
    t.size += 64;
    assert_ok(weft__provider_check(&t, "x", err));
    t.run_new = NULL;
    assert_refused(WEFT_ABI, "x: its table lacks run_new", weft__provider_check(&t, "x", err));
    assert_refused(WEFT_ABI, "y: it refuses this core", weft__provider_check(NULL, "y", err));
    weft__provider_close(&cpu);
    assert_string_equal(weft__provider_names()[0], "cpu");
    assert_null(weft__provider_names()[1]);
}

/* embed, norm, linear, glu, add, linear, pick_rows, glu: the adds and glus can go either way. */
static void model(stage *s)
{
    stage_open(s, 21);
    weft_tensor_id x = weft__op_embed(s->b, stage_weight(s, WEFT_F32, D, V, 0, "token_embd"), 30);
    for (int l = 0; l < 3; l++) {
        weft_tensor_id h = weft__op_norm(s->b, l, x, stage_vector(s, D, "norm"), 1e-5f, 0);
        h = weft__op_linear(s->b, l, h, stage_weight(s, WEFT_F16, D, D, 0, "w"), WEFT_NONE);
        x = weft__op_add(s->b, l, x, weft__op_glu(s->b, l, h, h, WEFT_ACT_NONE));
        if (l == 1)
            x = weft__op_add(s->b, l, x, weft__op_glu(s->b, l, x, h, WEFT_ACT_NONE)); /* two nodes in one segment */
    }
    x = weft__op_linear(s->b, -1, weft__op_pick_rows(s->b, x), stage_weight(s, WEFT_F32, D, V, 0, "head"), WEFT_NONE);
    weft__builder_output(s->b, weft__op_glu(s->b, -1, x, x, WEFT_ACT_NONE));
    stage_finish(s);
}

/* Runs with the providers of `list`; returns the number of segments. */
static int run_on(const stage *s, weft__provider **list, int n, float *out)
{
    store t = {0};
    int32_t token[N_CTX], pos[N_CTX], seq[N_CTX];
    uint8_t want[N_CTX];
    t.g = s->g;
    t.token = token;
    t.pos = pos;
    t.seq = seq;
    t.want = want;
    weft__plan_options o = {.max_rows = N_CTX, .max_wanted = N_CTX, .providers = list, .n_providers = n};
    assert_ok(weft__plan_create(s->g, &o, &t.plan, err));
    assert_ok(weft__plan_state_new(t.plan, &t.state, err));
    store_step(&t, &(span){0, 0, 17}, 1, V, N_CTX, out);
    store_step(&t, &(span){0, 17, N_CTX - 17}, 1, V, N_CTX, out);
    char *text = weft__plan_describe(t.plan);
    int segments = 0;
    for (const char *at = text; (at = strstr(at, "segment ")); at++) segments++;
    if (n > 1) assert_non_null(strstr(text, "provider test"));
    weft__free(text);
    weft__plan_state_free(&t.state);
    weft__plan_destroy(&t.plan);
    return segments;
}

static void test_same_bits(void **state)
{
    (void)state;
    stage s;
    float alone[STAGE_SEQS * N_CTX * V] = {0}, mixed[STAGE_SEQS * N_CTX * V] = {0};
    weft__provider *cpu, *plugin;
    model(&s);
    assert_ok(weft__provider_open("cpu", "threads=2", &cpu, err));
    assert_ok(weft__provider_open(PLUGIN(""), NULL, &plugin, err));
    weft__provider *list[] = {cpu, plugin};
    assert_int_equal(run_on(&s, list, 1, alone), 1);
    int segments = run_on(&s, list, 2, mixed);
    print_message("  %d segments\n", segments);
    assert_true(segments >= 6);
    assert_memory_equal(mixed, alone, sizeof alone);
    weft__provider_close(&plugin);
    weft__provider_close(&cpu);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads),        cmocka_unit_test(test_refuses),   cmocka_unit_test(test_path),
        cmocka_unit_test(test_table_checks), cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
