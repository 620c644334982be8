// SPDX-License-Identifier: Apache-2.0
/* text_added.c: tokens that are cut out of texts do it as Hugging Face's tokenizers does: as they are spelled or as the
 * normalizer spells them, whole words alone, with the whitespace beside them; and those that stand only in the files
 * beside tokenizer.json are there. */
#include <stdio.h>

#include "unit/fixture.h"

#include "text/tokenizer/json.h"

#define SPACE "\\u2581"
#define MODEL                                                                                                          \
    "\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\",\"merges\":[\"a b\",\"c "                                         \
    "d\"],\"vocab\":{\"?\":0,\"a\":1,\"b\":2,\"ab\":3,"                                                                \
    "\"c\":4,\"d\":5,\"cd\":6,\"" SPACE                                                                                \
    "\":7,\" \":8,\"1\":9,\"2\":10,\"é\":11,\"e\":12,\"\\u0301\":13,\"ﬁ\":14,\"f\":15,"                             \
    "\"i\":16,\"-\":17,\"!\":18}}"
#define LOWER ",\"normalizer\":{\"type\":\"Lowercase\"}"
#define FIRST ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" SPACE "\",\"prepend_scheme\":\"first\"}"
#define ESCAPE                                                                                                         \
    ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"" SPACE               \
    "\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" SPACE "\"}]}"
#define NO_ACCENTS                                                                                                     \
    ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":\"StripAccents\"},{"         \
    "\"type\":"                                                                                                        \
    "\"Lowercase\"}]}"
#define TOKEN(id, text, rest) "{\"id\":" id ",\"content\":\"" text "\"" rest "}"
#define NORMAL ",\"normalized\":true"
#define WORD ",\"single_word\":true"
#define SPECIAL ",\"special\":true"

static void compose(char out[2048], const char *added, const char *rest)
{
    snprintf(out, 2048, "{\"added_tokens\":[%s]%s," MODEL "}", added, rest);
}

static weft__tok *load(const weft__tok_json_files *files)
{
    weft__tok_json_vocab *v;
    weft__tok *tok = NULL;
    weft_error err = {0};
    if (weft__tok_json_vocab_read(files, &v, &err)) fail_msg("%s", err.message);
    if (weft__tok_create(weft__tok_json_vocab_spec(v), &tok, &err)) fail_msg("%s", err.message);
    weft__tok_json_vocab_free(&v);
    return tok;
}

static weft__tok *load_one(const char *json)
{
    const weft__tok_json_files files = {.tokenizer = {json, strlen(json)}};
    return load(&files);
}

static void expect_ids(const char *text, const weft__tok_ids *ids, const int32_t *want)
{
    for (size_t i = 0; want[i] >= 0 || i < ids->n; i++) {
        int32_t got = i < ids->n ? ids->data[i] : -1;
        if (got != want[i]) fail_msg("'%s': id %zu is %d, expected %d", text, i, got, want[i]);
    }
}

static void expect(const weft__tok *tok, const char *text, const int32_t *want)
{
    weft__tok_ids ids = {0};
    weft_error err = {0};
    if (weft__tok_encode(tok, text, strlen(text), WEFT__TOK_ENCODE_PARSE, &ids, &err)) fail_msg("%s", err.message);
    expect_ids(text, &ids, want);
    weft__tok_ids_free(&ids);
}
#define EXPECT(tok, text, ...) expect(tok, text, (const int32_t[]){__VA_ARGS__, -1})

/* What tokenizers 0.23 answers. */
static void as_in_the_library(void **state)
{
    (void)state;
    static const struct {
        const char *added, *rest, *text;
        int32_t want[16];
    } cases[] = {
        {TOKEN("19", "<TOOL>", NORMAL), LOWER, "a<TOOL>b", {1, 19, 2, -1}},
        {TOKEN("19", "<TOOL>", NORMAL), LOWER, "a<tool>b", {1, 19, 2, -1}},
        {TOKEN("19", "<TOOL>", ""), LOWER, "a<TOOL>b", {1, 19, 2, -1}},
        {TOKEN("19", "<TOOL>", ""), LOWER, "a<tool>b", {1, 0, 0, 0, 0, 0, 0, 2, -1}},
        {TOKEN("19", "É", NORMAL), NO_ACCENTS, "aÉb", {1, 19, 2, -1}},
        {TOKEN("19", "É", NORMAL), NO_ACCENTS, "aeb", {1, 19, 2, -1}},
        {TOKEN("19", "aa", NORMAL) "," TOKEN("20", "ab-", ""), LOWER, "aab-", {1, 20, -1}},
        {TOKEN("19", "aa", NORMAL) "," TOKEN("20", "ab-", ""), LOWER, "AAB-", {19, 2, 17, -1}},
        {TOKEN("19", "aa", NORMAL) "," TOKEN("20", "ab-", ""), LOWER, "aAb-", {19, 2, 17, -1}},
        {TOKEN("19", "<x>", NORMAL), FIRST, "ab<x>ab", {7, 3, 19, 3, -1}},
        {TOKEN("19", "<x>", NORMAL), FIRST, "<x>ab cd", {19, 3, 7, 6, -1}},
        {TOKEN("19", "<x>", NORMAL), FIRST, " ab<x> ab", {7, 3, 19, 7, 3, -1}},
        {TOKEN("19", "<x>", NORMAL SPECIAL), ESCAPE, "<x>ab", {19, 3, -1}},
        {TOKEN("19", "<x>", NORMAL SPECIAL), ESCAPE, "ab <x>ab", {7, 3, 19, 3, -1}},
        {TOKEN("19", "<x>", NORMAL SPECIAL), ESCAPE, "ab<x>", {7, 3, 0, 0, 0, -1}},
        {TOKEN("19", "to", WORD), "", "to ato to! tob to", {19, 8, 1, 0, 0, 8, 19, 18, 8, 0, 0, 2, 8, 19, -1}},
        {TOKEN("19", "to", WORD), "", "_to é", {0, 0, 0, 8, 11, -1}},
        {TOKEN("19", "to", WORD), "", "éto", {11, 0, 0, -1}},
        {TOKEN("19", "to", WORD), "", "to\xCC\x81", {0, 0, 13, -1}},
        {TOKEN("19", "to", WORD), "", "\xE2\x80\x8Dto", {0, 0, 0, -1}},
        {TOKEN("19", "ab!", WORD) "," TOKEN("20", "b!a", ""), "", "ab!a", {3, 18, 1, -1}},
        {TOKEN("19", "<x>", ",\"lstrip\":true,\"rstrip\":true"),
         "",
         "a\xC2\xA0\xE3\x80\x80<x>\xE2\x80\xA8 b",
         {1, 19, 2, -1}},
        /* A token beyond the model's is never what the model makes of text. */
        {TOKEN("19", "x", WORD), "", "ax", {1, 0, -1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[2048];
        compose(json, cases[i].added, cases[i].rest);
        weft__tok *tok = load_one(json);
        expect(tok, cases[i].text, cases[i].want);
        weft__tok_destroy(&tok);
    }
}

/* Where only a part of a text is trusted, a control token that is looked for in normalized text is found as it is
 * spelled, in that part. */
static void what_users_spell_stays_text(void **state)
{
    (void)state;
    char json[2048];
    weft__tok_ids ids = {0};
    compose(json, TOKEN("19", "<X>", NORMAL SPECIAL), LOWER);
    weft__tok *tok = load_one(json);
    EXPECT(tok, "<x>a<X>", 19, 1, 19);
    const weft__tok_span span = {0, 4};
    assert_int_equal(weft__tok_encode_spans(tok, "<X>a<X>", 7, &span, 1, 0, &ids, NULL), WEFT_OK);
    expect_ids("<X>a<X>", &ids, (const int32_t[]){19, 1, 0, 0, 0, -1});
    ids.n = 0;
    assert_int_equal(weft__tok_encode(tok, "<X>", 3, 0, &ids, NULL), WEFT_OK);
    expect_ids("<X>", &ids, (const int32_t[]){0, 0, 0, -1});
    weft__tok_ids_free(&ids);
    weft__tok_destroy(&tok);
}

#define ONE "{\"added_tokens\":[" TOKEN("19", "<s>", SPECIAL) "]," MODEL "}"

static weft__tok *load_beside(const char *config, const char *added, const char *map)
{
    const weft__tok_json_files files = {.tokenizer = WEFT__TOK_SLICE(ONE),
                                        .config = {config, config ? strlen(config) : 0},
                                        .added = {added, added ? strlen(added) : 0},
                                        .map = {map, map ? strlen(map) : 0}};
    return load(&files);
}

/* As transformers does when it loads a folder: 4 and 5 alike. */
static void tokens_of_the_files_beside(void **state)
{
    (void)state;
    weft__tok *tok = load_beside("{\"added_tokens_decoder\":{\"20\":{\"content\":\"<x>\",\"rstrip\":true}},"
                                 "\"eos_token\":\"<x>\"}",
                                 "{\"<y>\":21}", NULL); /* of which the configuration lists none */
    EXPECT(tok, "a<x> b<y>", 1, 20, 2, 0, 0, 0);
    assert_int_equal(weft__tok_id_of_role(tok, WEFT__TOK_ROLE_EOS), 20);
    assert_int_equal(weft__tok_type_of(tok, 20), WEFT__TOK_USER_DEFINED);
    weft__tok_destroy(&tok);

    tok = load_beside(
        "{\"added_tokens_decoder\":{\"19\":{\"content\":\"<s>\",\"lstrip\":true},\"3\":{\"content\":\"ab\"}}}", NULL,
        NULL);
    EXPECT(tok, "a <s>abab", 1, 19, 3, 3); /* what the configuration says of a token counts, */
    assert_int_equal(weft__tok_type_of(tok, 19), WEFT__TOK_CONTROL); /* but that it were no special one */
    assert_int_equal(weft__tok_type_of(tok, 3), WEFT__TOK_USER_DEFINED);
    weft__tok_destroy(&tok);

    tok = load_beside("{\"pad_token\":\"<p>\"}", "{\"<y>\":20,\"<p>\":21,\"<s>\":19}", NULL);
    EXPECT(tok, "<y><p>", 20, 21);
    assert_int_equal(weft__tok_type_of(tok, 20), WEFT__TOK_USER_DEFINED);
    assert_int_equal(weft__tok_type_of(tok, 21), WEFT__TOK_CONTROL);
    assert_int_equal(weft__tok_id_of_role(tok, WEFT__TOK_ROLE_PAD), 21);
    weft__tok_destroy(&tok);

    /* Named, without an id: the next one; and a token of the model that is named is cut out. */
    tok = load_beside("{\"pad_token\":{\"content\":\"<p>\",\"rstrip\":true},\"eos_token\":\"ab\",\"additional_special_"
                      "tokens\":[\"<q>\"],"
                      "\"extra_special_tokens\":{\"image\":\"<r>\"}}",
                      NULL, "{\"bos_token\":\"<t>\"}");
    EXPECT(tok, "<t>a<p> <q><r>", 20, 1, 21, 22, 23);
    assert_int_equal(weft__tok_type_of(tok, 3), WEFT__TOK_CONTROL);
    assert_int_equal(weft__tok_id_of_role(tok, WEFT__TOK_ROLE_BOS), 20);
    assert_int_equal(weft__tok_id_of_role(tok, WEFT__TOK_ROLE_EOS), 3);
    weft__tok_destroy(&tok);
}

static void malformed_files_beside(void **state)
{
    (void)state;
    static const struct {
        const char *config, *added, *map, *words;
    } cases[] = {
        {"{\"added_tokens_decoder\":{\"x\":{\"content\":\"y\"}}}", NULL, NULL,
         "tokenizer_config.json: an entry of added_tokens_decoder"},
        {"{\"added_tokens_decoder\":{\"\":{\"content\":\"y\"}}}", NULL, NULL, "has no id"},
        {"{\"added_tokens_decoder\":{\"99999999999\":{\"content\":\"y\"}}}", NULL, NULL, "has no id"},
        {"{\"added_tokens_decoder\":{\"999999999\":{\"content\":\"y\"}}}", NULL, NULL, "out of range"},
        {"{\"added_tokens_decoder\":{\"20\":{}}}", NULL, NULL, "has no content"},
        {"{\"added_tokens_decoder\":{\"20\":{\"content\":\"y\",\"rstrip\":1}}}", NULL, NULL, "rstrip"},
        {"{\"added_tokens_decoder\":{\"2\":{\"content\":\"y\"}}}", NULL, NULL, "id 2 is 'y' in added_tokens and 'b'"},
        {"{}", "{\"y\":\"x\"}", NULL, "added_tokens.json: an entry has no id"},
        {"{}", "{\"y\":-1}", NULL, "-1"},
        {"{}", "{", NULL, "added_tokens.json"},
        {"{}", NULL, "nope", "special_tokens_map.json"},
        {"{\"pad_token\":{\"content\":\"<p>\",\"lstrip\":2}}", NULL, NULL, "lstrip"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const weft__tok_json_files files = {.tokenizer = WEFT__TOK_SLICE(ONE),
                                            .config = {cases[i].config, strlen(cases[i].config)},
                                            .added = {cases[i].added, cases[i].added ? strlen(cases[i].added) : 0},
                                            .map = {cases[i].map, cases[i].map ? strlen(cases[i].map) : 0}};
        weft__tok_json_vocab *v;
        weft_error err = {0};
        assert_int_equal(weft__tok_json_vocab_read(&files, &v, &err), WEFT_FORMAT);
        if (!strstr(err.message, cases[i].words))
            fail_msg("case %zu: '%s', expected '%s'", i, err.message, cases[i].words);
        assert_int_equal(weft__alloc_live(), 0);
    }
}

/* A file may ask for steps of which each makes a text longer; their product has an end. */
static void steps_that_grow_have_an_end(void **state)
{
    (void)state;
    weft__strbuf json = {0};
    weft_error err = {0};
    weft__tok_ids ids = {0};
    weft__strbuf_puts(&json, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}");
    for (int i = 0; i < 8; i++)
        weft__strbuf_puts(&json, ",{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aaaaaaaa\"}");
    weft__strbuf_puts(&json, "]}," MODEL "}");
    weft__tok *tok = load_one(json.data);
    char text[16];
    memset(text, 'a', sizeof text);
    assert_int_equal(weft__tok_encode(tok, text, sizeof text, 0, &ids, &err), WEFT_LIMIT);
    assert_non_null(strstr(err.message, "times as long"));
    assert_int_equal(weft__tok_encode(tok, "b", 1, 0, &ids, &err), WEFT_OK);
    weft__tok_ids_free(&ids);
    weft__tok_destroy(&tok);
    weft__strbuf_free(&json);
}

static int load_body(void *arg)
{
    static const char config[] =
        "{\"pad_token\":\"<p>\",\"additional_special_tokens\":[\"<q>\"],\"chat_template\":[{\"name\":\"rag\","
        "\"template\":\"x\"}]}";
    const weft__tok_json_files files = {
        .tokenizer = WEFT__TOK_SLICE("{\"added_tokens\":[" TOKEN("19", "<X>", NORMAL) "]" LOWER "," MODEL "}"),
        .config = WEFT__TOK_SLICE(config),
        .added = WEFT__TOK_SLICE("{\"<y>\":20}")};
    weft__tok_json_vocab *v;
    weft__tok *tok = NULL;
    weft__tok_ids ids = {0};
    weft_error err = {0};
    (void)arg;
    weft_status status = weft__tok_json_vocab_read(&files, &v, &err);
    if (!status) status = weft__tok_create(weft__tok_json_vocab_spec(v), &tok, &err);
    if (!status) status = weft__tok_encode(tok, "ab<x>é<p>", 10, WEFT__TOK_ENCODE_PARSE, &ids, &err);
    if (status) assert_int_equal(status, WEFT_NO_MEMORY);
    weft__tok_ids_free(&ids);
    weft__tok_destroy(&tok);
    weft__tok_json_vocab_free(&v);
    return !status;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    assert_true(fail_each(load_body, NULL) > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_in_the_library),           cmocka_unit_test(what_users_spell_stays_text),
        cmocka_unit_test(tokens_of_the_files_beside),  cmocka_unit_test(malformed_files_beside),
        cmocka_unit_test(steps_that_grow_have_an_end), cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
