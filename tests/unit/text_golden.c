// SPDX-License-Identifier: Apache-2.0
/* text_golden.c: the vocabularies of real models give the ids that the reference implementation gives, string by
 * string: read from GGUF, and written as tokenizer.json and read from that. */
#include <stdio.h>
#include <stdlib.h>

#include "unit/fixture.h"

#include "base/json.h"
#include "claims.h"
#include "format/gguf.h"
#include "model/shared.h"
#include "model/vocab.h"
#include "text/strings.h"
#include "json_tokenizer.h"

#define SEPARATOR "\n__ggml_vocab_test__\n"

/* Entries, tokens and architecture as an independent reader lists them. */
static const struct {
    const char *name;
    size_t n_meta, n_tokens;
    const char *architecture;
} FILES[] = {
    {"bert-bge", 20, 30522, "bert"}, {"deepseek-coder", 25, 32256, "llama"}, {"deepseek-llm", 23, 102400, "llama"},
    {"falcon", 18, 65024, "falcon"}, {"gpt-2", 16, 50257, "gpt2"},           {"llama-spm", 22, 32000, "llama"},
    {"phi-3", 26, 32064, "phi3"},    {"starcoder", 19, 49152, "starcoder2"},
};

static char *read_all(const char *path, size_t *n)
{
    FILE *f = path ? fopen(path, "rb") : NULL;
    if (!f) return NULL;
    char *data = NULL;
    size_t capacity = 0, got;
    *n = 0;
    do {
        assert_true(weft__grow(&data, &capacity, *n + 4097, 1));
        got = fread(data + *n, 1, 4096, f);
        *n += got;
    } while (got);
    data[*n] = 0;
    fclose(f);
    return data;
}

/* Compares with one line of ids; returns what follows the line. */
static const char *check_line(const weft__tok *tok, const char *text, size_t n, const char *line, const char *name,
                              int number)
{
    weft__tok_ids ids = {0};
    weft_error err = {0};
    if (weft__tok_encode(tok, text, n, 0, &ids, &err)) fail_msg("%s, string %d: %s", name, number, err.message);
    size_t i = 0;
    for (;; i++) {
        char *end;
        while (*line == ' ') line++;
        if (*line == '\n' || !*line) break;
        long id = strtol(line, &end, 10);
        assert_true(end != line);
        line = end;
        if (i >= ids.n || ids.data[i] != id) {
            fail_msg("%s, string %d '%.*s': id %zu is %d, expected %ld", name, number, (int)n, text, i,
                     i < ids.n ? (int)ids.data[i] : -1, id);
        }
    }
    if (i != ids.n) fail_msg("%s, string %d: %zu ids, expected %zu", name, number, ids.n, i);
    weft__tok_ids_free(&ids);
    return *line ? line + 1 : line;
}

static void check_decode(const weft__tok *tok, const char *text, size_t n, const char *name, int number)
{
    weft__tok_ids ids = {0};
    weft__strbuf back = {0};
    assert_int_equal(weft__tok_encode(tok, text, n, WEFT__TOK_ENCODE_SPECIAL | WEFT__TOK_ENCODE_PARSE, &ids, NULL),
                     WEFT_OK);
    assert_int_equal(weft__tok_decode(tok, ids.data, ids.n, 0, &back, NULL), WEFT_OK);
    if (back.len != n || (n && memcmp(back.data, text, n)))
        fail_msg("%s, string %d: decodes to '%s'", name, number, back.data);
    weft__tok_ids_free(&ids);
    weft__strbuf_free(&back);
}

/* Runs all strings of a vocabulary's file through `tok`. */
static void check_strings(const weft__tok *tok, const char *name, int reversible)
{
    size_t n_in, n_out;
    int n_strings = 0;
    char *in = read_all(shared_path("tokenizers/ggml-vocab-%s.gguf.inp", name), &n_in);
    char *out = read_all(shared_path("tokenizers/ggml-vocab-%s.gguf.out", name), &n_out);
    assert_non_null(in);
    assert_non_null(out);
    const char *line = out, *at = in;
    while (at) {
        const char *end = strstr(at, SEPARATOR);
        size_t n = end ? (size_t)(end - at) : strlen(at);
        if (!end && n == 0) break; /* the file ends with a separator */
        line = check_line(tok, at, n, line, name, n_strings);
        if (reversible) check_decode(tok, at, n, name, n_strings);
        n_strings++;
        at = end ? end + strlen(SEPARATOR) : NULL;
    }
    assert_int_equal(*line, 0);
    assert_int_equal(n_strings, 46);
    weft__free(in);
    weft__free(out);
}

static const weft__gguf_list *list_of(const weft__gguf *g, const char *key)
{
    const weft__gguf_list *list = NULL;
    assert_int_equal(weft__gguf_array(g, key, &list, NULL), WEFT_OK);
    return list;
}

static weft__gguf *open_file(const char *name)
{
    const char *path = shared_path("tokenizers/ggml-vocab-%s.gguf", name);
    weft__gguf *g;
    weft__gguf_str arch;
    weft_error err = {0};
    size_t i = 0;
    if (!path) fail_msg("there is no vocabulary of %s", name);
    if (weft__gguf_open(path, &g, &err)) fail_msg("%s", err.message);
    while (strcmp(FILES[i].name, name)) i++;
    assert_int_equal(weft__gguf_n_meta(g), FILES[i].n_meta);
    assert_int_equal(weft__gguf_tensors(g)->n, 0);
    assert_int_equal(list_of(g, "tokenizer.ggml.tokens")->n, FILES[i].n_tokens);
    assert_int_equal(weft__gguf_string(g, "general.architecture", &arch, NULL), WEFT_OK);
    assert_int_equal(arch.len, strlen(FILES[i].architecture));
    assert_memory_equal(arch.data, FILES[i].architecture, arch.len);
    return g;
}

static void check_gguf(const char *name, int reversible)
{
    weft__gguf *g = open_file(name);
    weft__tok *tok = NULL;
    weft_error err = {0};
    if (weft__vocab_tokenizer(g, &tok, &err)) fail_msg("%s: %s", name, err.message);
    weft__gguf_close(&g);
    check_strings(tok, name, reversible);
    weft__tok_destroy(&tok);
    assert_int_equal(weft__alloc_live(), 0);
}

/* ---- the same vocabularies, written as tokenizer.json ---- */

/* The text of token i as the JSON model spells it: WordPiece there marks what continues a word. */
static void put_spelling(weft__strbuf *out, const weft__gguf *g, uint64_t i, int word_piece)
{
    weft__gguf_str s = weft__gguf_list_string(list_of(g, "tokenizer.ggml.tokens"), i);
    int64_t type = 1;
    weft__gguf_list_i64(list_of(g, "tokenizer.ggml.token_type"), i, &type);
    weft__strbuf spelled = {0};
    if (word_piece && type == WEFT__TOK_NORMAL) {
        int begins = s.len > 3 && !memcmp(s.data, "\xE2\x96\x81", 3);
        if (!begins) weft__strbuf_puts(&spelled, "##");
        weft__strbuf_put(&spelled, s.data + (begins ? 3 : 0), s.len - (begins ? 3 : 0));
    } else {
        weft__strbuf_put(&spelled, s.data, s.len);
    }
    weft__json_write_string(out, spelled.data, spelled.len);
    weft__strbuf_free(&spelled);
}

static void put_vocab(weft__strbuf *out, const weft__gguf *g, int word_piece)
{
    uint64_t n = list_of(g, "tokenizer.ggml.tokens")->n;
    weft__strbuf_puts(out, "\"vocab\":{");
    for (uint64_t i = 0; i < n; i++) {
        if (i) weft__strbuf_putc(out, ',');
        put_spelling(out, g, i, word_piece);
        weft__strbuf_printf(out, ":%d", (int)i);
    }
    weft__strbuf_puts(out, "}");
}

static void put_added(weft__strbuf *out, const weft__gguf *g)
{
    const weft__gguf_list *types = list_of(g, "tokenizer.ggml.token_type");
    int any = 0;
    weft__strbuf_puts(out, "\"added_tokens\":[");
    for (uint64_t i = 0; i < types->n; i++) {
        int64_t type = 0;
        assert_true(weft__gguf_list_i64(types, i, &type));
        if (type == WEFT__TOK_NORMAL || type == WEFT__TOK_BYTE) continue;
        weft__strbuf_printf(out, "%s{\"id\":%d,\"special\":%s,\"content\":", any++ ? "," : "", (int)i,
                            type == WEFT__TOK_USER_DEFINED ? "false" : "true");
        put_spelling(out, g, i, 0);
        weft__strbuf_putc(out, '}');
    }
    weft__strbuf_puts(out, "]");
}

static void put_merges(weft__strbuf *out, const weft__gguf *g)
{
    const weft__gguf_list *merges = list_of(g, "tokenizer.ggml.merges");
    weft__strbuf_puts(out, "\"merges\":[");
    for (uint64_t i = 0; i < merges->n; i++) {
        weft__gguf_str s = weft__gguf_list_string(merges, i);
        if (i) weft__strbuf_putc(out, ',');
        weft__json_write_string(out, s.data, s.len);
    }
    weft__strbuf_puts(out, "]");
}

static int by_score(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return x[0] != y[0] ? (x[0] > y[0] ? -1 : 1) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* SentencePiece's scores as merges: each token, best first, from every two tokens that spell it. */
static void put_score_merges(weft__strbuf *out, const weft__gguf *g)
{
    const weft__gguf_list *tokens = list_of(g, "tokenizer.ggml.tokens"), *scores = list_of(g, "tokenizer.ggml.scores");
    weft__strings known = {0};
    double(*order)[2] = weft__alloc_array(tokens->n, sizeof *order);
    int any = 0;
    for (uint64_t i = 0; i < tokens->n; i++) {
        weft__gguf_str s = weft__gguf_list_string(tokens, i);
        assert_true(weft__strings_add(&known, s.data, s.len, i >= 259));
        assert_true(weft__gguf_list_f64(scores, i, &order[i][0]));
        order[i][1] = (double)i;
    }
    qsort(order, tokens->n, sizeof *order, by_score);
    weft__strbuf_puts(out, "\"merges\":[");
    for (uint64_t k = 0; k < tokens->n; k++) {
        weft__gguf_str s = weft__gguf_list_string(tokens, (uint64_t)order[k][1]);
        if (order[k][1] < 259) continue;
        for (size_t cut = 1; cut < s.len; cut++) {
            if (weft__strings_find(&known, s.data, cut) < 0) continue;
            if (weft__strings_find(&known, s.data + cut, s.len - cut) < 0) continue;
            weft__strbuf_puts(out, any++ ? ",[" : "[");
            weft__json_write_string(out, s.data, cut);
            weft__strbuf_putc(out, ',');
            weft__json_write_string(out, s.data + cut, s.len - cut);
            weft__strbuf_puts(out, "]");
        }
    }
    weft__strbuf_puts(out, "]");
    weft__strings_free(&known);
    weft__free(order);
}

/* `model` are the model's other fields, `steps` the file's normalizer, pre-tokenizer and decoder. */
static void check_json(const char *name, const char *model, const char *steps, int reversible)
{
    weft__gguf *g = open_file(name);
    weft__strbuf json = {0};
    int word_piece = strstr(model, "WordPiece") != NULL, scores = weft__gguf_find(g, "tokenizer.ggml.scores") >= 0;
    weft__strbuf_printf(&json, "{\"version\":\"1.0\",%s,", steps);
    put_added(&json, g);
    weft__strbuf_printf(&json, ",\"model\":{%s,", model);
    put_vocab(&json, g, word_piece);
    if (!word_piece) {
        weft__strbuf_putc(&json, ',');
        if (scores) {
            put_score_merges(&json, g);
        } else {
            put_merges(&json, g);
        }
    }
    weft__strbuf_puts(&json, "}}");
    assert_false(json.failed);
    weft__gguf_close(&g);
    weft__tok *tok = NULL;
    weft_error err = {0};
    if (json_tokenizer(json.data, json.len, NULL, 0, &tok, &err)) fail_msg("%s: %s", name, err.message);
    weft__strbuf_free(&json);
    check_strings(tok, name, reversible);
    weft__tok_destroy(&tok);
    assert_int_equal(weft__alloc_live(), 0);
}

#define GOLDEN(id, check)                                                                                              \
    static void id(void **state)                                                                                       \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        check;                                                                                                         \
    }

#define BPE "\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"fuse_unk\":false"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true}"
#define BYTE_SPLITS "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define STEPS(pre) "\"normalizer\":null,\"pre_tokenizer\":" pre ",\"decoder\":{\"type\":\"ByteLevel\"}"
#define SPLIT(regex)                                                                                                   \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\",\"invert\":false},"
#define LAST_SPLIT(regex) "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\"}"
#define SEQUENCE(list) "{\"type\":\"Sequence\",\"pretokenizers\":[" list "]}"

GOLDEN(llama_spm, check_gguf("llama-spm", 1))
GOLDEN(phi_3, check_gguf("phi-3", 1))
GOLDEN(gpt_2, check_gguf("gpt-2", 1))
GOLDEN(falcon, check_gguf("falcon", 1))
GOLDEN(starcoder, check_gguf("starcoder", 1))
GOLDEN(deepseek_llm, check_gguf("deepseek-llm", 1))
GOLDEN(deepseek_coder, check_gguf("deepseek-coder", 1))
GOLDEN(bert_bge, check_gguf("bert-bge", 0))

GOLDEN(json_gpt_2, check_json("gpt-2", BPE, STEPS(BYTE_LEVEL), 1))
GOLDEN(json_starcoder,
       check_json("starcoder", BPE, STEPS(SEQUENCE("{\"type\":\"Digits\",\"individual_digits\":true}," BYTE_LEVEL)), 1))
/* What stands behind ByteLevel sees its alphabet. */
GOLDEN(json_falcon,
       check_json("falcon", BPE,
                  STEPS(SEQUENCE("{\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"}," BYTE_LEVEL
                                 ",{\"type\":\"Digits\",\"individual_digits\":false}," LAST_SPLIT("[0-9][0-9][0-9]"))),
                  1))
GOLDEN(json_deepseek_coder,
       check_json("deepseek-coder", BPE,
                  STEPS(SEQUENCE(SPLIT("[\\r\\n]") SPLIT("\\\\s?\\\\p{L}+") SPLIT("\\\\s?\\\\p{P}+") SPLIT(
                      "[一-龥ࠀ-一가-퟿]+") "{\"type\":\"Digits\",\"individual_digits\":true}," BYTE_SPLITS)),
                  1))
GOLDEN(
    json_llama,
    check_json("llama-spm", "\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":true",
               "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"▁\"},"
               "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"▁\"}]},\"pre_tokenizer\":null,"
               "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"▁\"},"
               "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
               "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}",
               1))
GOLDEN(json_bert,
       check_json("bert-bge", "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\"",
                  "\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
                  "\"strip_accents\":null,\"lowercase\":true},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
                  "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}",
                  0))

int main(void)
{
    if (!shared_path("tokenizers/ggml-vocab-%s.gguf", "gpt-2"))
        return claims_need_reference("real vocabularies (tokenizers/)");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_spm),      cmocka_unit_test(phi_3),       cmocka_unit_test(gpt_2),
        cmocka_unit_test(falcon),         cmocka_unit_test(starcoder),   cmocka_unit_test(deepseek_llm),
        cmocka_unit_test(deepseek_coder), cmocka_unit_test(bert_bge),    cmocka_unit_test(json_gpt_2),
        cmocka_unit_test(json_starcoder), cmocka_unit_test(json_falcon), cmocka_unit_test(json_deepseek_coder),
        cmocka_unit_test(json_llama),     cmocka_unit_test(json_bert),
    };
    return claims_status(cmocka_run_group_tests(tests, NULL, NULL));
}
