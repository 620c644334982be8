// SPDX-License-Identifier: Apache-2.0
/* text_tokenizer_json.c: small tokenizer.json files, step by step, and malformed ones, which are refused by name. */
#include <stdio.h>

#include "unit/fixture.h"

#include "json_tokenizer.h"

#define SPACE "▁"

/* A file of characters as tokens: model fields, then the file's other members. */
#define FILE_OF(model, rest) "{\"version\":\"1.0\",\"model\":{" model "}" rest "}"
#define LETTERS                                                                                                        \
    "\"type\":\"BPE\",\"unk_token\":\"?\",\"merges\":[\"a "                                                            \
    "b\",[\"c\",\"d\"]],\"vocab\":{\"?\":0,\"a\":1,\"b\":2,\"ab\":3,"                                                  \
    "\"c\":4,\"d\":5,\"cd\":6,\"" SPACE                                                                                \
    "\":7,\" \":8,\"1\":9,\"2\":10,\"é\":11,\"e\":12,\"\\u0301\":13,\"ﬁ\":14,\"f\":15,"                             \
    "\"i\":16,\"-\":17,\"!\":18}"

static weft__tok *load(const char *json, const char *config)
{
    weft__tok *tok = NULL;
    weft_error err = {0};
    if (json_tokenizer(json, strlen(json), config, config ? strlen(config) : 0, &tok, &err)) {
        fail_msg("%s\n%s", json, err.message);
    }
    return tok;
}

static void expect(const weft__tok *tok, const char *text, unsigned flags, const int32_t *want)
{
    weft__tok_ids ids = {0};
    weft_error err = {0};
    if (weft__tok_encode(tok, text, strlen(text), flags, &ids, &err)) fail_msg("%s", err.message);
    for (size_t i = 0; want[i] >= 0 || i < ids.n; i++) {
        int32_t got = i < ids.n ? ids.data[i] : -1;
        if (got != want[i]) fail_msg("'%s': id %zu is %d, expected %d", text, i, got, want[i]);
    }
    weft__tok_ids_free(&ids);
}
#define EXPECT(tok, text, flags, ...) expect(tok, text, flags, (const int32_t[]){__VA_ARGS__, -1})

static const struct {
    const char *rest, *text;
    int32_t want[16];
} step_cases[] = {
    {"", "abcd", {3, 6, -1}},
    {"", "axxb", {1, 0, 0, 2, -1}},
    {",\"normalizer\":null,\"pre_tokenizer\":null,\"added_tokens\":[]", "a b", {1, 8, 2, -1}},
    {",\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"a\"}", "b", {3, -1}},
    {",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"x\"},\"content\":\"ab\"}", "axb", {1, 3, 2, -1}},
    {",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x+|y\"},\"content\":\"b\"}", "axxy", {3, 2, -1}},
    {",\"normalizer\":{\"type\":\"NFD\"}", "é", {12, 13, -1}},
    {",\"normalizer\":{\"type\":\"NFC\"}", "e\xCC\x81", {11, -1}},
    {",\"normalizer\":{\"type\":\"NFC\"}", "ﬁ", {14, -1}},
    {",\"normalizer\":{\"type\":\"NFKC\"}", "ﬁ", {15, 16, -1}},
    {",\"normalizer\":{\"type\":\"NFKD\"}", "ﬁé", {15, 16, 12, 13, -1}},
    {",\"normalizer\":{\"type\":\"Lowercase\"}", "ABÉ", {3, 11, -1}},
    {",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":\"StripAccents\"}]}",
     "é",
     {12, -1}},
    {",\"normalizer\":{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}", " a b ", {1, 8, 2, -1}},
    {",\"normalizer\":{\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true}", " a ", {8, 1, -1}},
    {",\"normalizer\":{\"type\":\"BertNormalizer\"}", "A\001B\tÉ", {3, 8, 12, -1}},
    {",\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}", " a b ", {1, 2, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Whitespace\"}", "ab !-ab", {3, 18, 17, 3, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"always\"}",
     "ab ab",
     {7, 3, 7, 3, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"never\"}",
     "ab ab",
     {3, 7, 3, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"add_prefix_space\":true}", " ab", {7, 3, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},"
     "{\"type\":\"Metaspace\",\"replacement\":\"▁\"}]}",
     "a  b",
     {7, 1, 7, 2, -1}},
    {",\"pre_tokenizer\":{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"-\"}", "a-b", {1, 2, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"b\"},\"behavior\":\"Isolated\"}",
     "ab",
     {1, 2, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"-\"},\"behavior\":\"Removed\"}",
     "a-b",
     {1, 2, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"b\"},\"behavior\":\"MergedWithPrevious\"}",
     "abab",
     {3, 3, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"MergedWithNext\"}",
     "abab",
     {3, 3, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[ab]\"},\"behavior\":\"Contiguous\"}",
     "abcd",
     {3, 6, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[ab]\"},\"behavior\":\"Isolated\"}",
     "abcd",
     {1, 2, 6, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a-d]+\"},\"behavior\":\"Removed\",\"invert\":"
     "true}",
     "ab1cd",
     {3, 6, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":true}", "a12", {1, 9, 10, -1}},
    {",\"pre_tokenizer\":{\"type\":\"Punctuation\"}", "a-!b", {1, 17, 18, 2, -1}},
    {",\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}", "ab -", {3, 17, -1}},
};

/* One text under different normalizers and pre-tokenizers. */
static void steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof step_cases / sizeof *step_cases; i++) {
        char json[4096];
        snprintf(json, sizeof json, "{\"version\":\"1.0\",\"model\":{%s}%s}", LETTERS, step_cases[i].rest);
        weft__tok *tok = load(json, NULL);
        expect(tok, step_cases[i].text, 0, step_cases[i].want);
        weft__tok_destroy(&tok);
    }
}

/* A template that puts <s>, token 19, in front. */
#define WITH_BOS                                                                                                       \
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"                               \
    "{\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],"                                    \
    "\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[19],\"tokens\":[\"<s>\"]}}}"

static void added_tokens_and_roles(void **state)
{
    (void)state;
    const char *json =
        FILE_OF(LETTERS, ",\"added_tokens\":[{\"id\":19,\"content\":\"<s>\",\"special\":true},"
                         "{\"id\":20,\"content\":\"</s>\",\"special\":true,\"rstrip\":true},"
                         "{\"id\":22,\"content\":\"<tool>\",\"special\":false,\"lstrip\":true}]," WITH_BOS);
    weft__tok *tok = load(json, "{\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"},\"pad_token\":null,"
                                "\"chat_template\":[{\"name\":\"rag\",\"template\":\"no\"},"
                                "{\"name\":\"default\",\"template\":\"{{ yes }}\"}]}");
    assert_int_equal(weft__tok_n(tok), 23);
    assert_int_equal(weft__tok_id_of_role(tok, WEFT__TOK_ROLE_BOS), 19);
    assert_int_equal(weft__tok_id_of_role(tok, WEFT__TOK_ROLE_EOS), 20);
    assert_int_equal(weft__tok_id_of_role(tok, WEFT__TOK_ROLE_PAD), -1);
    assert_true(weft__tok_is_end(tok, 20));
    assert_string_equal(weft__tok_chat_template(tok).data, "{{ yes }}");
    EXPECT(tok, "ab", WEFT__TOK_ENCODE_SPECIAL, 19, 3);
    EXPECT(tok, "a</s>  b <tool>c", WEFT__TOK_ENCODE_PARSE, 1, 20, 2, 22, 4);
    EXPECT(tok, "a</s>", 0, 1, 0, 0, 0, 0);
    EXPECT(tok, "<tool>", 0, 22);
    weft__tok_destroy(&tok);
}

/* What the configuration makes of such a template. */
static void flags_of_the_configuration(void **state)
{
    (void)state;
    const struct {
        const char *config; /* the rest of it */
        int32_t want[5];
    } cases[] = {
        {"", {19, 1, -1}},
        {",\"tokenizer_class\":\"LlamaTokenizerFast\"", {19, 1, -1}},
        {",\"tokenizer_class\":\"LlamaTokenizerFast\",\"add_bos_token\":false", {1, -1}},
        {",\"tokenizer_class\":\"GemmaTokenizer\",\"add_bos_token\":true,\"add_eos_token\":true", {19, 1, 20, -1}},
        {",\"tokenizer_class\":\"CodeLlamaTokenizer\",\"add_bos_token\":false,\"add_eos_token\":true", {1, 20, -1}},
        {",\"tokenizer_class\":\"CohereTokenizerFast\",\"add_bos_token\":null,\"add_eos_token\":false", {19, 1, -1}},
        {",\"tokenizer_class\":\"LlamaTokenizerFaster\",\"add_bos_token\":false", {19, 1, -1}},
        {",\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"add_bos_token\":false,\"add_eos_token\":true",
         {19, 1, -1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char config[512];
        snprintf(config, sizeof config, "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"%s}", cases[i].config);
        weft__tok *tok = load(FILE_OF(LETTERS, ",\"added_tokens\":[{\"id\":19,\"content\":\"<s>\",\"special\":true},"
                                               "{\"id\":20,\"content\":\"</s>\",\"special\":true}]," WITH_BOS),
                              config);
        expect(tok, "a", WEFT__TOK_ENCODE_SPECIAL, cases[i].want);
        weft__tok_destroy(&tok);
    }
}

static void unigram_and_bytes(void **state)
{
    (void)state;
    weft__tok *tok = load(
        FILE_OF("\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"<unk>\",0],[\"" SPACE "\",-2],"
                "[\"a\",-3],[\"" SPACE "a\",-2.5],[\"<0xC3>\",-9],[\"<0xA9>\",-9]]",
                ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"always\"},"
                "\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"always\"}"),
        NULL);
    EXPECT(tok, "a aé", 0, 3, 3, 4, 5);
    EXPECT(tok, "a中", 0, 3, 0); /* bytes that the vocabulary lacks */
    weft__strbuf out = {0};
    assert_int_equal(weft__tok_decode(tok, (const int32_t[]){3, 3, 4, 5}, 4, 0, &out, NULL), WEFT_OK);
    assert_string_equal(out.data, "a aé");
    weft__strbuf_free(&out);
    weft__tok_destroy(&tok);
}

#define NORM(text) FILE_OF(LETTERS, ",\"normalizer\":" text)
#define PRE(text) FILE_OF(LETTERS, ",\"pre_tokenizer\":" text)
#define POST(text) FILE_OF(LETTERS, ",\"post_processor\":" text)
#define DECODE(text) FILE_OF(LETTERS, ",\"decoder\":" text)
#define ADDED(text) FILE_OF(LETTERS, ",\"added_tokens\":[" text "]")

static const struct {
    const char *json;
    weft_status status;
    const char *word;
} malformed[] = {
    {"", WEFT_FORMAT, "tokenizer.json"},
    {"[]", WEFT_FORMAT, "no object"},
    {"{}", WEFT_FORMAT, "no model"},
    {"{\"model\":[]}", WEFT_FORMAT, "no model"},
    {FILE_OF("\"type\":\"WordLevel\"", ""), WEFT_UNSUPPORTED, "'WordLevel'"},
    {FILE_OF("\"type\":\"BPE\",\"merges\":[]", ""), WEFT_FORMAT, "model.vocab"},
    {FILE_OF("\"type\":\"BPE\",\"vocab\":{\"a\":0}", ""), WEFT_FORMAT, "model.merges"},
    {FILE_OF("\"type\":\"BPE\",\"vocab\":{},\"merges\":[]", ""), WEFT_FORMAT, "no tokens"},
    {FILE_OF("\"type\":\"BPE\",\"vocab\":{\"a\":\"0\"},\"merges\":[]", ""), WEFT_FORMAT, "'a'"},
    {FILE_OF("\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]", ""), WEFT_FORMAT, "-1"},
    {FILE_OF("\"type\":\"BPE\",\"vocab\":{\"a\":4000000000},\"merges\":[]", ""), WEFT_FORMAT, "4000000000"},
    {FILE_OF("\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]", ""), WEFT_FORMAT, "two tokens"},
    {FILE_OF("\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"ab\"]", ""), WEFT_FORMAT, "model.merges"},
    {FILE_OF("\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]", ""), WEFT_FORMAT, "model.merges"},
    {FILE_OF("\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"\"]]", ""), WEFT_FORMAT, "merge 0"},
    {FILE_OF("\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"dropout\":0.1", ""), WEFT_UNSUPPORTED, "dropout"},
    {FILE_OF("\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"end_of_word_suffix\":\"</w>\"", ""),
     WEFT_UNSUPPORTED, "end_of_word"},
    {FILE_OF("\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"unk_token\":\"?\"", ""), WEFT_FORMAT, "unk_token"},
    {FILE_OF("\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"fuse_unk\":1", ""), WEFT_FORMAT, "fuse_unk"},
    {FILE_OF("\"type\":\"Unigram\",\"vocab\":{}", ""), WEFT_FORMAT, "no array"},
    {FILE_OF("\"type\":\"Unigram\",\"vocab\":[[\"a\"]]", ""), WEFT_FORMAT, "entry 0"},
    {FILE_OF("\"type\":\"Unigram\",\"vocab\":[[\"a\",0]],\"unk_id\":1", ""), WEFT_FORMAT, "unk_id"},
    {FILE_OF("\"type\":\"Unigram\",\"vocab\":[[\"a\",0],[\"b\",-1e300]],\"unk_id\":0", ""), WEFT_FORMAT, "not finite"},
    {FILE_OF("\"type\":\"Unigram\",\"vocab\":[[\"a\",0]]", ""), WEFT_FORMAT, "unknown token"},
    {FILE_OF("\"type\":\"WordPiece\",\"vocab\":{\"a\":0}", ""), WEFT_FORMAT, "unk_token"},
    {FILE_OF("\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0},\"max_input_chars_per_word\":0", ""), WEFT_FORMAT,
     "max_input"},
    {NORM("{}"), WEFT_FORMAT, "no type"},
    {NORM("\"NFC\""), WEFT_FORMAT, "no object"},
    {NORM("{\"type\":\"Nmt\"}"), WEFT_UNSUPPORTED, "'Nmt'"},
    {NORM("{\"type\":\"Sequence\"}"), WEFT_FORMAT, "normalizers"},
    {NORM("{\"type\":\"Prepend\"}"), WEFT_FORMAT, "prepend"},
    {NORM("{\"type\":\"Replace\",\"content\":\"x\"}"), WEFT_FORMAT, "pattern"},
    {NORM("{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"x\"}"), WEFT_FORMAT, "empty string"},
    {NORM("{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(\"},\"content\":\"x\"}"), WEFT_FORMAT, "normalizer 0"},
    {NORM("{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"!\"}"), WEFT_FORMAT, "base64"},
    {NORM("{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"////\"}"), WEFT_FORMAT, "charsmap"},
    {PRE("{\"type\":\"UnicodeScripts\"}"), WEFT_UNSUPPORTED, "'UnicodeScripts'"},
    {PRE("{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"}}"), WEFT_FORMAT, "behavior"},
    {PRE("{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Odd\"}"), WEFT_UNSUPPORTED, "'Odd'"},
    {PRE("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a)\\\\1\"},\"behavior\":\"Isolated\"}"), WEFT_UNSUPPORTED,
     "pre-tokenizer 0"},
    {PRE("{\"type\":\"Metaspace\",\"replacement\":\"_\"}"), WEFT_UNSUPPORTED, "replacement"},
    {PRE("{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"last\"}"), WEFT_UNSUPPORTED, "'last'"},
    {PRE("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\"},{\"type\":\"ByteLevel\"}]}"),
     WEFT_UNSUPPORTED, "second"},
    {POST("{\"type\":\"PairTemplate\"}"), WEFT_UNSUPPORTED, "'PairTemplate'"},
    {POST("{\"type\":\"TemplateProcessing\"}"), WEFT_FORMAT, "single"},
    {POST("{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}}]}"), WEFT_FORMAT, "part 0"},
    {POST("{\"type\":\"BertProcessing\",\"cls\":[\"a\",99],\"sep\":[\"a\",1]}"), WEFT_FORMAT, "99"},
    {POST("{\"type\":\"Sequence\",\"processors\":[{\"type\":\"BertProcessing\",\"cls\":[\"a\",1],\"sep\":[\"a\",1]},"
          "{\"type\":\"BertProcessing\",\"cls\":[\"a\",1],\"sep\":[\"a\",1]}]}"),
     WEFT_UNSUPPORTED, "two tokens"},
    {DECODE("{\"type\":\"CTC\"}"), WEFT_UNSUPPORTED, "'CTC'"},
    {DECODE("{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"b\"}"), WEFT_UNSUPPORTED, "'a'"},
    {DECODE("{\"type\":\"Strip\",\"content\":\" \",\"start\":2,\"stop\":0}"), WEFT_UNSUPPORTED, "strips"},
    {ADDED("{\"content\":\"x\"}"), WEFT_FORMAT, "no id"},
    {ADDED("{\"id\":19}"), WEFT_FORMAT, "content"},
    {ADDED("{\"id\":1,\"content\":\"z\"}"), WEFT_FORMAT, "'z'"},
    {ADDED("{\"id\":19,\"content\":\"z\",\"single_word\":1}"), WEFT_FORMAT, "single_word"},
    {ADDED("{\"id\":99999999,\"content\":\"z\"}"), WEFT_FORMAT, "99999999"},
    {FILE_OF(LETTERS, ",\"added_tokens\":{}"), WEFT_FORMAT, "added_tokens"},
};

static void malformed_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        weft__tok *tok = NULL;
        weft_error err = {0};
        weft_status status = json_tokenizer(malformed[i].json, strlen(malformed[i].json), NULL, 0, &tok, &err);
        if (status != malformed[i].status || !strstr(err.message, malformed[i].word)) {
            fail_msg("%s\n%d '%s', expected %d '%s'", malformed[i].json, (int)status, err.message,
                     (int)malformed[i].status, malformed[i].word);
        }
        assert_null(tok);
        assert_int_equal(weft__alloc_live(), 0);
    }
    weft__tok *tok = NULL;
    weft_error err = {0};
    const char *json = FILE_OF(LETTERS, "");
    assert_int_equal(json_tokenizer(json, strlen(json), "{", 1, &tok, &err), WEFT_FORMAT);
    assert_non_null(strstr(err.message, "tokenizer_config.json"));
}

static int live_once(void *arg)
{
    weft__tok *tok = NULL;
    weft_error err = {0};
    weft__tok_ids ids = {0};
    const char *json = arg;
    const char *config = "{\"bos_token\":\"a\",\"chat_template\":\"x\"}";
    weft_status status = json_tokenizer(json, strlen(json), config, strlen(config), &tok, &err);
    if (!status) status = weft__tok_encode(tok, "É a-b\xFF", 7, WEFT__TOK_ENCODE_SPECIAL, &ids, &err);
    if (status) assert_int_equal(status, WEFT_NO_MEMORY);
    weft__tok_ids_free(&ids);
    weft__tok_destroy(&tok);
    return !status;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    static const char *const files[] = {
        FILE_OF(LETTERS,
                ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":\"Lowercase\"},"
                "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x\"},\"content\":\"y\"}]},\"pre_tokenizer\":{\"type\":"
                "\"Sequence\",\"pretokenizers\":[{\"type\":\"Metaspace\",\"replacement\":\"▁\"},"
                "{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"-\"}]}"),
        FILE_OF("\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0,\"a\":1,\"##b\":2}",
                ",\"normalizer\":{\"type\":\"BertNormalizer\"}"),
        FILE_OF("\"type\":\"BPE\",\"unk_token\":\"a\",\"merges\":[],\"vocab\":{\"a\":0}",
                ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\"},{\"type\":"
                "\"Digits\"}]}"),
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) assert_true(fail_each(live_once, (void *)files[i]) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps),
        cmocka_unit_test(added_tokens_and_roles),
        cmocka_unit_test(unigram_and_bytes),
        cmocka_unit_test(flags_of_the_configuration),
        cmocka_unit_test(malformed_files),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
