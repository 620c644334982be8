// SPDX-License-Identifier: Apache-2.0
/* model_hf.c: a tiny Llama folder and a tiny Mixtral folder, opened, loaded, tokenized and converted while memory runs
 * out at every allocation in turn; and the order of rows that a conversion gives q. The mathematics is checked by
 * tests/model/hf_reference.py. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixture.h"

#include "base/text.h"
#include "model/hf.h"

enum { D = 8, F = 4, V = 6, HEADS = 2, HEAD = 4, EXPERTS = 2 };

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

/* Tensors of F32; element i of a tensor is i. */
struct file {
    weft__strbuf header, data;
};

static void put_tensor(struct file *f, const char *name, int rows, int columns)
{
    size_t begin = f->data.len;
    for (int i = 0; i < rows * columns; i++) {
        float x = (float)i;
        weft__strbuf_put(&f->data, &x, sizeof x);
    }
    weft__strbuf_printf(&f->header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", f->header.len > 1 ? "," : "", name);
    if (columns > 1) weft__strbuf_printf(&f->header, "%d,%d", rows, columns);
    else weft__strbuf_printf(&f->header, "%d", rows);
    weft__strbuf_printf(&f->header, "],\"data_offsets\":[%zu,%zu]}", begin, f->data.len);
}

#define LAYER "model.layers.0."

static void put_weights(int mixtral)
{
    struct file f = {{0}, {0}};
    weft__strbuf_puts(&f.header, "{");
    put_tensor(&f, "model.embed_tokens.weight", V, D);
    put_tensor(&f, "model.norm.weight", D, 1);
    put_tensor(&f, LAYER "input_layernorm.weight", D, 1);
    put_tensor(&f, LAYER "post_attention_layernorm.weight", D, 1);
    for (const char *p = "qkvo"; *p; p++) {
        char name[64];
        snprintf(name, sizeof name, LAYER "self_attn.%c_proj.weight", *p);
        put_tensor(&f, name, HEADS * HEAD, D);
    }
    if (mixtral) put_tensor(&f, LAYER "block_sparse_moe.gate.weight", EXPERTS, D);
    for (int e = 0; mixtral && e < EXPERTS; e++) {
        for (int w = 1; w <= 3; w++) {
            char name[96];
            snprintf(name, sizeof name, LAYER "block_sparse_moe.experts.%d.w%d.weight", e, w);
            put_tensor(&f, name, w == 2 ? D : F, w == 2 ? F : D);
        }
    }
    if (!mixtral) {
        put_tensor(&f, LAYER "mlp.gate_proj.weight", F, D);
        put_tensor(&f, LAYER "mlp.up_proj.weight", F, D);
        put_tensor(&f, LAYER "mlp.down_proj.weight", D, F);
    }
    weft__strbuf_puts(&f.header, "}");
    weft__strbuf all = {0};
    uint64_t n = f.header.len;
    weft__strbuf_put(&all, &n, sizeof n);
    weft__strbuf_put(&all, f.header.data, f.header.len);
    weft__strbuf_put(&all, f.data.data, f.data.len);
    assert_false(all.failed || f.header.failed || f.data.failed);
    put_file("model.safetensors", all.data, all.len);
    weft__strbuf_free(&all);
    weft__strbuf_free(&f.data);
    weft__strbuf_free(&f.header);
}

static void put_folder(int mixtral)
{
    static const char tokenizer[] =
        "{\"added_tokens\":[{\"id\":3,\"content\":\"<s>\",\"special\":true},{\"id\":4,\"content\":\"</"
        "s>\",\"special\":true}],"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"
        "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[[\"a\",\"b\"]]}}";
    static const char beside[] = "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"chat_template\":\"x\"}";
    char config[1024];
    int n = snprintf(
        config, sizeof config,
        "{\"architectures\":[\"%sForCausalLM\"],\"hidden_size\":%d,\"intermediate_size\":%d,\"num_hidden_layers\":1,"
        "\"num_attention_heads\":%d,\"num_key_value_heads\":%d,\"vocab_size\":%d,\"num_local_experts\":%d,"
        "\"tie_word_embeddings\":true,\"rope_scaling\":%s}",
        mixtral ? "Mixtral" : "Llama", D, F, HEADS, HEADS, V, EXPERTS,
        "{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
        "\"original_max_position_embeddings\":64}");
    put_file("config.json", config, (size_t)n);
    put_file("tokenizer.json", tokenizer, sizeof tokenizer - 1);
    put_file("tokenizer_config.json", beside, sizeof beside - 1);
    put_file("generation_config.json", "{\"eos_token_id\":[4,3]}", 22);
    put_weights(mixtral);
}

static int make_folder(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/weft-hf-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {
        "config.json",       "tokenizer.json", "tokenizer_config.json", "generation_config.json",
        "model.safetensors", "out.gguf",       "adapter_config.json"};
    char path[512];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder); /* nothing else was left there */
}

/* Everything that is done with a folder. */
static weft_status use(weft_error *err)
{
    weft__hf *hf;
    weft__tok *tok = NULL;
    char out[512];
    snprintf(out, sizeof out, "%s/out.gguf", folder);
    weft__hf_convert_options options = {.dtype = WEFT_F16};
    weft_status status = weft__hf_open(folder, &hf, err);
    if (status) return status;
    status = weft__hf_load(hf, NULL, NULL, err);
    if (!status) status = weft__hf_tokenizer(hf, &tok, err);
    if (!status) assert_true(weft__tok_is_end(tok, 3) && weft__tok_is_end(tok, 4));
    if (!status) status = weft__hf_convert(hf, out, &options, err);
    weft__tok_destroy(&tok);
    weft__hf_close(&hf);
    return status;
}

static int use_body(void *arg)
{
    weft_error err = {0};
    (void)arg;
    weft_status status = use(&err);
    if (status && status != WEFT_NO_MEMORY) fail_msg("%d: %s", status, err.message);
    return status == WEFT_OK;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    for (int mixtral = 0; mixtral < 2; mixtral++) {
        put_folder(mixtral);
        /* Hundreds are alike: the address sanitizer looks into some of them. */
        size_t n = fail_some(use_body, NULL, CLAIMS_REPEATED(1, CLAIMS_SWEPT(4, 1), 7));
        print_message("failed cleanly at each of %zu allocations\n", n);
        assert_true(n > 100);
    }
}

static void rows_of_q_are_paired(void **state)
{
    weft_error err = {0};
    weft__gguf *g;
    const weft__tensor_desc *t;
    char out[512];
    (void)state;
    put_folder(0);
    assert_int_equal(use(&err), WEFT_OK);
    snprintf(out, sizeof out, "%s/out.gguf", folder);
    assert_int_equal(weft__gguf_open(out, &g, &err), WEFT_OK);
    assert_int_equal(weft__gguf_tensor(g, "blk.0.attn_q.weight", &t, &err), WEFT_OK);
    assert_int_equal(t->dtype, WEFT_F16);
    /* Of a head of four rows, 0 2 1 3; the first element of row r is 8 r, exact in F16. */
    static const uint16_t expected[HEADS * HEAD] = {0x0000, 0x4c00, 0x4800, 0x4e00, 0x5000, 0x5200, 0x5100, 0x5300};
    const uint16_t *rows = weft__tensor_data(t);
    for (int r = 0; r < HEADS * HEAD; r++) assert_int_equal(rows[r * D], expected[r]);
    assert_int_equal(weft__gguf_find(g, "weft.rope_style"), -1);
    assert_int_equal(weft__gguf_tensor(g, "rope_freqs.weight", &t, &err), WEFT_OK);
    assert_int_equal(t->d[0], HEAD / 2);
    weft__gguf_close(&g);
}

/* A folder of an adapter, with its base where it names one. */
static void an_adapter_names_its_base(void **state)
{
    static const char *const config[] = {"{\"base_model_name_or_path\":\"owner/base\"}",
                                         "{\"base_model_name_or_path\":null}", "{"};
    (void)state;
    for (size_t i = 0; i < sizeof config / sizeof *config; i++) {
        weft__hf *hf;
        weft_error err = {0};
        put_file("adapter_config.json", config[i], strlen(config[i]));
        assert_int_equal(weft__hf_open(folder, &hf, &err), WEFT_UNSUPPORTED);
        assert_non_null(strstr(err.message, i ? "it is an adapter (PEFT), which" : "(PEFT) of 'owner/base', which"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_may_run_out, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(rows_of_q_are_paired, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(an_adapter_names_its_base, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
