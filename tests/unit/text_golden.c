/* text_golden.c: the vocabularies of real models give the ids that the reference implementation gives, string by string. */
#include <stdio.h>
#include <stdlib.h>

#include "unit/fixture.h"

#include "format/gguf.h"
#include "model/vocab.h"

#define SEPARATOR "\n__ggml_vocab_test__\n"

static const char *shared(void)
{
    const char *path = getenv("WEFT_SHARED");
    return path && *path ? path : "../shared";
}

static char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
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

static weft__tokenizer *open_vocabulary(const char *path)
{
    weft__gguf *g;
    weft__tokenizer *tok = NULL;
    weft_error err = {0};
    if (weft__gguf_open(path, &g, &err)) fail_msg("%s", err.message);
    if (weft__vocab_tokenizer(g, &tok, &err)) fail_msg("%s: %s", path, err.message);
    weft__gguf_close(&g);
    return tok;
}

/* Compares with one line of ids; returns what follows the line. */
static const char *check_line(const weft__tokenizer *tok, const char *text, size_t n, const char *line, const char *name, int number)
{
    weft__ids ids = {0};
    weft_error err = {0};
    if (weft__tokenizer_encode(tok, text, n, 0, &ids, &err)) fail_msg("%s, string %d: %s", name, number, err.message);
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
    weft__ids_free(&ids);
    return *line ? line + 1 : line;
}

static void check_decode(const weft__tokenizer *tok, const char *text, size_t n, const char *name, int number)
{
    weft__ids ids = {0};
    weft__text back = {0};
    assert_int_equal(weft__tokenizer_encode(tok, text, n, WEFT__ENCODE_SPECIAL | WEFT__ENCODE_PARSE, &ids, NULL), WEFT_OK);
    assert_int_equal(weft__tokenizer_decode(tok, ids.data, ids.n, 0, &back, NULL), WEFT_OK);
    if (back.len != n || (n && memcmp(back.data, text, n))) fail_msg("%s, string %d: decodes to '%s'", name, number, back.data);
    weft__ids_free(&ids);
    weft__text_free(&back);
}

static void check_vocabulary(const char *name, int reversible)
{
    char path[1024];
    size_t n_in, n_out;
    int n_strings = 0;
    snprintf(path, sizeof path, "%s/tokenizers/ggml-vocab-%s.gguf.inp", shared(), name);
    char *in = read_all(path, &n_in);
    if (!in) {
        print_message("SKIP: no %s (set WEFT_SHARED)\n", path);
        skip();
    }
    snprintf(path, sizeof path, "%s/tokenizers/ggml-vocab-%s.gguf.out", shared(), name);
    char *out = read_all(path, &n_out);
    assert_non_null(out);
    snprintf(path, sizeof path, "%s/tokenizers/ggml-vocab-%s.gguf", shared(), name);
    weft__tokenizer *tok = open_vocabulary(path);
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
    weft__tokenizer_destroy(&tok);
    weft__free(in);
    weft__free(out);
    assert_int_equal(weft__alloc_live(), 0);
}

#define GOLDEN(id, name, reversible)                                                                                             \
    static void id(void **state)                                                                                                 \
    {                                                                                                                            \
        (void)state;                                                                                                             \
        check_vocabulary(name, reversible);                                                                                      \
    }

GOLDEN(llama_spm, "llama-spm", 1)
GOLDEN(phi_3, "phi-3", 1)
GOLDEN(gpt_2, "gpt-2", 1)
GOLDEN(falcon, "falcon", 1)
GOLDEN(starcoder, "starcoder", 1)
GOLDEN(deepseek_llm, "deepseek-llm", 1)
GOLDEN(deepseek_coder, "deepseek-coder", 1)
GOLDEN(bert_bge, "bert-bge", 0)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_spm),    cmocka_unit_test(phi_3),          cmocka_unit_test(gpt_2),    cmocka_unit_test(falcon),
        cmocka_unit_test(starcoder),    cmocka_unit_test(deepseek_llm),   cmocka_unit_test(deepseek_coder),
        cmocka_unit_test(bert_bge),
    };
    char path[1024];
    snprintf(path, sizeof path, "%s/tokenizers", shared());
    FILE *f = fopen(path, "r");
    if (f) fclose(f);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return f ? failed : 77;
}
