// SPDX-License-Identifier: Apache-2.0
/* model_vocab_keys.c: what a GGUF file cannot say of a tokenizer is refused, and so are keys that are malformed,
 * missing or of another type. */
#include "unit/vocab_files.h"

static void what_cannot_be_said_is_refused(void **state)
{
    (void)state;
    static const file_case refused[] = {
        {SPM, "", "", FALLBACK, NULL, NULL, "neither byte-level nor SentencePiece", {0}, 0},
        {BYTE_LEVEL, "", PRE(BYTES("true", "true")), "", NULL, NULL, "none that GGUF has a name for", {0}, 0},
        {BYTE_LEVEL, "", LIKE_QWEN, "", NULL, "no-such", "no pre-tokenizer called", {0}, 0},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        weft__tok_json_vocab *v = read_case(&refused[i]);
        const weft__tok_spec *spec = weft__tok_json_vocab_spec(v);
        weft__gguf_writer *w = new_keys();
        memory_file f;
        weft_error err = {0};
        assert_int_not_equal(weft__vocab_put(spec, spec->n_tokens, refused[i].pre, w, &err), WEFT_OK);
        if (!strstr(err.message, refused[i].text)) fail_msg("'%s', expected '%s'", err.message, refused[i].text);
        open_file(&f, w);
        assert_int_equal(weft__gguf_n_meta(f.g), 0);
        close_file(&f);
        weft__tok_json_vocab_free(&v);
    }
}

/* What no key says: a BOS that is put there although nothing is explicit, with SentencePiece's own another one. */
static void a_difference_without_a_key_is_refused(void **state)
{
    (void)state;
    const weft__tok_slice tokens[] = {WEFT__TOK_SLICE("<unk>"), WEFT__TOK_SLICE("<s>"), WEFT__TOK_SLICE("</s>"),
                                      WEFT__TOK_SLICE("a")};
    const int32_t types[] = {WEFT__TOK_UNKNOWN, WEFT__TOK_CONTROL, WEFT__TOK_CONTROL, WEFT__TOK_NORMAL};
    const float scores[] = {0, 0, 0, -1};
    weft__tok_spec spec;
    weft__gguf_writer *w = new_keys();
    weft_error err = {0};
    weft__tok_spec_init(&spec);
    spec.model = WEFT__TOK_SLICE("llama");
    spec.tokens = tokens;
    spec.types = types;
    spec.scores = scores;
    spec.n_tokens = spec.n_types = spec.n_scores = 4;
    spec.first = 3;
    assert_int_equal(weft__vocab_put(&spec, 4, NULL, w, &err), WEFT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "what it puts around a text"));
    weft__gguf_writer_destroy(&w);
}

enum { NONE = -1 };

/* The file with one key left out, or of another value. */
static weft_status with_key(const memory_file *f, const char *key, int type, const void *value, size_t n,
                            weft_error *err)
{
    weft__gguf_writer *w = new_keys();
    memory_file changed;
    weft__tok *tok = NULL;
    for (size_t i = 0; i < weft__gguf_n_meta(f->g); i++) {
        const weft__gguf_entry *e = weft__gguf_meta(f->g, i);
        if (strcmp(e->key, key) != 0)
            assert_int_equal(weft__gguf_put_raw(w, e->key, e->type, e->raw, (size_t)e->raw_bytes, NULL), WEFT_OK);
    }
    if (type == WEFT__GGUF_STRING) assert_int_equal(weft__gguf_put_strings(w, key, value, n, NULL), WEFT_OK);
    else if (type != NONE && n == 0)
        assert_int_equal(weft__gguf_put(w, key, (weft__gguf_type)type, value, NULL), WEFT_OK);
    else if (type != NONE)
        assert_int_equal(weft__gguf_put_array(w, key, (weft__gguf_type)type, value, n, NULL), WEFT_OK);
    open_file(&changed, w);
    weft_status status = weft__vocab_tokenizer(changed.g, &tok, err);
    weft__tok_destroy(&tok);
    close_file(&changed);
    return status;
}

static void malformed_keys(void **state)
{
    (void)state;
    static const file_case c = {
        SPM, INST, NORM("{\"type\":\"NFC\"}") PRE(METASPACE("first", "")), FALLBACK, NULL, NULL, NULL, {0}, 0};
    static const weft__gguf_str odd[] = {{"nfx", 3}, {"a", 1}, {"b", 1}},
                                broken[] = {{"(", 1}, {"", 0}, {"(", 1}, {"", 0}};
    static const weft__gguf_str bytes[] = {{"\xE2\x96\x81", 3}, {"\xE2\x96", 2}, {"a", 1}, {"", 0}};
    static const int32_t negative = -7, far[] = {1 << 20}, below[] = {-1};
    static const uint32_t high[] = {1 << 20}, one[] = {1};
    static weft__gguf_str many[300];
    for (size_t i = 0; i < 300; i++) many[i] = (weft__gguf_str){"nfc", 3};
    static const struct {
        const char *key;
        int type;
        const void *value;
        size_t n;
        const char *word;
    } bad[] = {
        {"tokenizer.weft.model", WEFT__GGUF_U32, one, 0, "tokenizer.weft.model"},
        {"tokenizer.weft.byte_level", NONE, NULL, 0, "tokenizer.weft.byte_level"},
        {"tokenizer.weft.fuse_unknown", WEFT__GGUF_U32, one, 0, "tokenizer.weft.fuse_unknown"},
        {"tokenizer.weft.normalizers", NONE, NULL, 0, "tokenizer.weft.normalizers"},
        {"tokenizer.weft.normalizers", WEFT__GGUF_U32, one, 1, "not of string"},
        {"tokenizer.weft.normalizers", WEFT__GGUF_STRING, odd, 1, "'nfx' is unknown"},
        {"tokenizer.weft.normalizers", WEFT__GGUF_STRING, odd, 2, "normalizer_texts has 2 entries, not 4"},
        {"tokenizer.weft.normalizers", WEFT__GGUF_STRING, many, 300, "more than 256"},
        {"tokenizer.weft.normalizer_texts", WEFT__GGUF_STRING, odd, 3, "normalizer_texts has 3"},
        {"tokenizer.weft.normalizer_flags", WEFT__GGUF_U32, one, 1, "normalizer_flags"},
        {"tokenizer.weft.splits", WEFT__GGUF_STRING, odd, 2, "'nfx' is unknown"},
        {"tokenizer.weft.split_texts", NONE, NULL, 0, "tokenizer.weft.split_texts"},
        {"tokenizer.weft.split_texts", WEFT__GGUF_STRING, broken, 4, "pre-tokenizer 1"},
        {"tokenizer.weft.split_texts", WEFT__GGUF_STRING, bytes, 4, "not UTF-8"},
        {"tokenizer.weft.normalizer_texts", WEFT__GGUF_STRING, bytes, 2, "not UTF-8"},
        {"tokenizer.weft.split_flags", NONE, NULL, 0, "tokenizer.weft.split_flags"},
        {"tokenizer.weft.merges", WEFT__GGUF_STRING, odd, 3, "no pairs"},
        {"tokenizer.weft.merges", WEFT__GGUF_U32, one, 1, "tokenizer.weft.merges"},
        {"tokenizer.weft.first", WEFT__GGUF_I32, &negative, 0, "first"},
        {"tokenizer.weft.last", WEFT__GGUF_U32, high, 0, "last"},
        {"tokenizer.weft.max_word_chars", WEFT__GGUF_I32, &negative, 0, "max_word_chars"},
        {"tokenizer.weft.ends", WEFT__GGUF_I32, far, 1, "tokenizer.weft.ends"},
        {"tokenizer.weft.ends", WEFT__GGUF_I32, below, 1, "tokenizer.weft.ends"},
        {"tokenizer.weft.ends", WEFT__GGUF_U32, one, 1, "tokenizer.weft.ends"},
        {"tokenizer.weft.token_ids", WEFT__GGUF_U32, high, 1, "tokenizer.weft.token_texts"},
        {"tokenizer.weft.strips", WEFT__GGUF_U32, one, 1, "tokenizer.weft.strips"},
    };
    weft__tok_json_vocab *v = read_case(&c);
    memory_file f;
    make_file(&f, weft__tok_json_vocab_spec(v), NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weft_error err = {0};
        weft_status status = with_key(&f, bad[i].key, bad[i].type, bad[i].value, bad[i].n, &err);
        if (!status || !strstr(err.message, bad[i].word))
            fail_msg("%s (case %zu): %d '%s'", bad[i].key, i, (int)status, err.message);
    }
    close_file(&f);
    weft__tok_json_vocab_free(&v);
}

/* An adapter given instead of its model: it is told what it is, and which model was meant, where the file says that. */
static void an_adapter_is_told_from_a_model(void **state)
{
    (void)state;
    for (int named = 0; named < 2; named++) {
        weft__gguf_writer *w = new_keys();
        memory_file f;
        weft__tok *tok;
        weft_error err = {0};
        assert_int_equal(weft__gguf_put_string(w, "general.type", "adapter", 7, NULL), WEFT_OK);
        if (named)
            assert_int_equal(weft__gguf_put_string(w, "general.base_model.0.name", "Alderbrook", 10, NULL), WEFT_OK);
        open_file(&f, w);
        assert_int_equal(weft__vocab_tokenizer(f.g, &tok, &err), WEFT_NOT_FOUND);
        assert_non_null(strstr(err.message, "it is an adapter"));
        assert_int_equal(strstr(err.message, "made for, 'Alderbrook'") != NULL, named);
        close_file(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_said_is_refused),
        cmocka_unit_test(a_difference_without_a_key_is_refused),
        cmocka_unit_test(malformed_keys),
        cmocka_unit_test(an_adapter_is_told_from_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
