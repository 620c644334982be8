// SPDX-License-Identifier: Apache-2.0
/* text_speed.c: the time in which text becomes tokens grows with its length and no faster, be it English or whatever
 * somebody made up: with real vocabularies, or with the argument "own" with those of the tree. How long it is,
 * bench_text.c says. */
#include "unit/real_texts.h"

enum { N_ENGLISH = CLAIMS_REPEATED(4, 1, 1) << 20 };
#define N_HOSTILE CLAIMS_REPEATED(CLAIMS_SWEPT(80000, 200000), 40000, 8000)

static void check_growth(const weft__tok *tok, const char *name, const char *what, const char *text, size_t n)
{
    double times = growth_of(read_text, &(reading){.tok = tok, .text = text}, n);
    if (times > GROWTH_MOST)
        fail_msg("%s, %s: %.1f times as long for %d times the text", name, what, times, GROWTH_SIZES);
}

static void english_takes_linear_time(void **state)
{
    large v;
    large_open(&v, *state);
    weft__tok *tok = NULL;
    weft_error err = {0};
    if (weft__tok_create(&v.spec, &tok, &err)) fail_msg("%s", err.message);
    assert_int_equal(weft__tok_n(tok), N_TOKENS);
    char *text = weft__alloc(N_ENGLISH);
    assert_non_null(text);
    write_english(&v, text, N_ENGLISH);
    reading r = {.tok = tok, .text = text};
    read_text(&r, N_ENGLISH);
    assert_true((double)N_ENGLISH / (double)r.n_ids > 3.5); /* it is English to the vocabulary */
    check_growth(tok, "large", "English", text, N_ENGLISH);
    weft__free(text);
    weft__tok_destroy(&tok);
    large_close(&v);
}

static void hostile_texts_take_linear_time(void **state)
{
    const char *const *names = *state;
    char *text = weft__alloc(N_HOSTILE);
    assert_non_null(text);
    for (int v = 0; names[v]; v++) {
        weft__gguf *g = open_vocabulary(names[v]);
        weft__tok *tok = NULL;
        weft_error err = {0};
        if (weft__vocab_tokenizer(g, &tok, &err)) fail_msg("%s", err.message);
        weft__gguf_close(&g);
        for (int i = 0; i < N_HOSTILE_TEXTS; i++) {
            const char *what = write_hostile(i, text, N_HOSTILE);
            check_growth(tok, names[v], what, text, N_HOSTILE);
        }
        weft__tok_destroy(&tok);
    }
    weft__free(text);
}

int main(int argc, char **argv)
{
    const int own = argc > 1 && !strcmp(argv[1], "own");
    if (!own && !shared_path("tokenizers/ggml-vocab-%s.gguf", "gpt-2"))
        return claims_need_reference("real vocabularies (tokenizers/)");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(english_takes_linear_time, own ? "models/alderbrook.gguf" : "deepseek-llm"),
        cmocka_unit_test_prestate(hostile_texts_take_linear_time,
                                  (void *)(own ? own_vocabularies : hostile_vocabularies)),
    };
    return claims_status(cmocka_run_group_tests(tests, NULL, NULL));
}
