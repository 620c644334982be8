/* text_speed.c: how fast text becomes tokens: English at 10 MB/s and more with 128 k tokens, and whatever the text, time that grows with
 * its length and no faster. With real vocabularies, or with the argument "own" with those of the tree. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "unit/fixture.h"

#include "base/random.h"
#include "claims.h"
#include "format/gguf.h"
#include "model/shared.h"
#include "model/vocab.h"
#include "text/tokenizer.h"

enum {
    N_TOKENS = 128000,
    N_ENGLISH = CLAIMS_REPEATED(4, 1, 1) << 20,
    N_HOSTILE = CLAIMS_OF_SPEED ? 200000 : CLAIMS_REPEATED(40000, 40000, 8000)
};

/* A file of the tree, or the name of a real vocabulary. */
static weft__gguf *open_file(const char *name)
{
    const char *path = strchr(name, '/') ? name : shared_path("tokenizers/ggml-vocab-%s.gguf", name);
    weft__gguf *g;
    weft_error err = {0};
    if (!path) skip_reference("real vocabularies (tokenizers/)");
    if (weft__gguf_open(path, &g, &err)) fail_msg("%s", err.message);
    return g;
}

/* This thread's own time: others use the machine too. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(const weft__tokenizer *tok, const char *text, size_t n, size_t *n_ids)
{
    weft__ids ids = {0};
    weft_error err = {0};
    double t = cpu_seconds();
    if (weft__tokenizer_encode(tok, text, n, WEFT__ENCODE_PARSE, &ids, &err)) fail_msg("%s", err.message);
    t = cpu_seconds() - t;
    if (n_ids) *n_ids = ids.n;
    weft__ids_free(&ids);
    return t;
}

/* ---- a vocabulary of 128 k ---- */

typedef struct large {
    weft__gguf *g;
    weft__vocab_spec spec;
    weft__slice *tokens;
    int32_t *types;
    weft__merge_pair *merges;
    char *made; /* texts of tokens that no file has */
} large;

static weft__slice item(const weft__gguf_list *list, uint64_t i)
{
    weft__gguf_str s = weft__gguf_list_string(list, i);
    return (weft__slice){s.data, s.len};
}

static const weft__gguf_list *list_of(const weft__gguf *g, const char *key)
{
    const weft__gguf_list *list = NULL;
    assert_int_equal(weft__gguf_array(g, key, &list, NULL), WEFT_OK);
    return list;
}

/* A word of ASCII letters that may begin with GPT-2's spelling of a space. */
static int is_word(weft__slice s)
{
    size_t from = s.len > 2 && (unsigned char)s.data[0] == 0xC4 && (unsigned char)s.data[1] == 0xA0 ? 2 : 0;
    if (from == 0 || s.len - from < 1 || s.len > 24) return 0;
    for (size_t i = from; i < s.len; i++)
        if ((s.data[i] < 'a' || s.data[i] > 'z') && (s.data[i] < 'A' || s.data[i] > 'Z')) return 0;
    return 1;
}

/* A vocabulary's tokens and merges, and then pairs of its words up to N_TOKENS, with the pre-tokenizer of Llama 3. What is added to a
 * small vocabulary is words of two tokens, as it has few. */
static void large_open(large *v, const char *name)
{
    memset(v, 0, sizeof *v);
    v->g = open_file(name);
    const weft__gguf_list *tokens = list_of(v->g, "tokenizer.ggml.tokens"), *merges = list_of(v->g, "tokenizer.ggml.merges");
    const weft__gguf_list *types = list_of(v->g, "tokenizer.ggml.token_type");
    size_t n = tokens->n, n_merges = merges->n;
    weft__rng rng;
    weft__rng_seed(&rng, 1);
    assert_true(n < N_TOKENS);
    v->tokens = weft__alloc_array(N_TOKENS, sizeof *v->tokens);
    v->types = weft__alloc_array(N_TOKENS, sizeof *v->types);
    v->merges = weft__alloc_array(n_merges + N_TOKENS, sizeof *v->merges);
    v->made = weft__alloc((size_t)N_TOKENS * 64);
    assert_true(v->tokens && v->types && v->merges && v->made);
    for (size_t i = 0; i < n; i++) {
        int64_t type = 0;
        weft__gguf_list_i64(types, i, &type);
        v->tokens[i] = item(tokens, i);
        v->types[i] = (int32_t)type;
    }
    for (size_t i = 0; i < n_merges; i++) {
        weft__slice s = item(merges, i);
        const char *space = memchr(s.data, ' ', s.len);
        size_t left = (size_t)(space - s.data);
        v->merges[i] = (weft__merge_pair){{s.data, left}, {space + 1, s.len - left - 1}};
    }
    char *at = v->made;
    size_t n_small = n < 16384 ? n : 0;
    while (n < N_TOKENS) {
        size_t from = (n_small ? n_small : n) - 256;
        weft__slice a = v->tokens[256 + weft__rng_below(&rng, from)], b = v->tokens[256 + weft__rng_below(&rng, from)];
        if (a.len + b.len > 60 || !a.len || !b.len) continue;
        memcpy(at, a.data, a.len);
        memcpy(at + a.len, b.data, b.len);
        if (n_small && !is_word((weft__slice){at, a.len + b.len})) continue;
        v->tokens[n] = (weft__slice){at, a.len + b.len};
        v->types[n++] = WEFT__TOKEN_NORMAL;
        v->merges[n_merges++] = (weft__merge_pair){a, b};
        at += a.len + b.len;
    }
    weft__vocab_spec_init(&v->spec);
    v->spec.model = WEFT__SLICE("gpt2");
    v->spec.pre = WEFT__SLICE("llama-bpe");
    v->spec.tokens = v->tokens;
    v->spec.types = v->types;
    v->spec.merges = v->merges;
    v->spec.n_tokens = v->spec.n_types = n;
    v->spec.n_merges = n_merges;
    v->spec.add_bos = v->spec.add_eos = 0;
}

static void large_close(large *v)
{
    weft__free(v->made);
    weft__free(v->merges);
    weft__free(v->types);
    weft__free(v->tokens);
    weft__gguf_close(&v->g);
}

/* N_ENGLISH bytes of words as often as they are in English: the k-th most frequent (as merges rank them) with probability 1/k.
 * One word in twelve is a compound that no token spells; sentences have commas, points, numbers and paragraphs. */
static void write_english(const large *v, char *out)
{
    size_t *word = weft__alloc_array(N_TOKENS, sizeof *word), n_words = 0, n = 0;
    weft__rng rng;
    weft__rng_seed(&rng, 2);
    assert_non_null(word);
    for (size_t i = 256; i < N_TOKENS; i++)
        if (is_word(v->tokens[i])) word[n_words++] = i;
    assert_true(n_words > 10000);
    double log_words = __builtin_log((double)n_words);
    while (n < N_ENGLISH - 64) {
        int parts = weft__rng_below(&rng, 12) ? 1 : 2;
        out[n++] = ' ';
        for (int k = 0; k < parts; k++) {
            size_t rank = (size_t)__builtin_exp(weft__rng_double(&rng) * log_words) - 1;
            weft__slice s = v->tokens[word[rank < n_words ? rank : n_words - 1]];
            memcpy(out + n, s.data + 2, s.len - 2);
            n += s.len - 2;
        }
        size_t end = weft__rng_below(&rng, 100);
        if (end < 8) out[n++] = end < 4 ? ',' : '.';
        if (end == 9) n += (size_t)sprintf(out + n, " %d", (int)weft__rng_below(&rng, 3000));
        if (end == 10) memcpy(out + n, ".\n\n", 3), n += 3;
        if (end == 11) memcpy(out + n, "'s", 2), n += 2;
    }
    while (n < N_ENGLISH) out[n++] = ' ';
    weft__free(word);
}

static void english_at_ten_megabytes_a_second(void **state)
{
    large v;
    large_open(&v, *state);
    weft__tokenizer *tok = NULL;
    weft_error err = {0};
    if (weft__tokenizer_create(&v.spec, &tok, &err)) fail_msg("%s", err.message);
    assert_int_equal(weft__tokenizer_n(tok), N_TOKENS);
    char *text = weft__alloc(N_ENGLISH);
    assert_non_null(text);
    write_english(&v, text);
    double best = 1e9;
    size_t n_ids = 0;
    for (int i = 0; i < (CLAIMS_OF_SPEED ? 8 : 1) && (i < 2 || N_ENGLISH / best < 10e6); i++) {
        double s = seconds(tok, text, N_ENGLISH, &n_ids);
        if (s < best) best = s;
    }
    print_message("           %.1f MB/s, %.2f bytes per token\n", N_ENGLISH / best / 1e6, (double)N_ENGLISH / (double)n_ids);
    assert_true((double)N_ENGLISH / (double)n_ids > 3.5); /* it is English to the vocabulary */
    if (CLAIMS_OF_SPEED && !(N_ENGLISH / best >= 10e6)) fail_msg("%.1f MB/s; 10 are claimed", N_ENGLISH / best / 1e6);
    weft__free(text);
    weft__tokenizer_destroy(&tok);
    large_close(&v);
}

/* ---- hostile texts ---- */

/* The least of `tries` times for the first n bytes. */
static double least(const weft__tokenizer *tok, const char *text, size_t n, int tries)
{
    double best = 1e9;
    for (int i = 0; i < tries; i++) {
        double s = seconds(tok, text, n, NULL);
        if (s < best) best = s;
    }
    return best;
}

static void check_linear(const weft__tokenizer *tok, const char *name, const char *what, const char *text)
{
    double limit = CLAIMS_OF_SPEED ? 2 : 10, eighth = 0, all = 0;
    int fine = 0;
    for (int attempt = 0; attempt < 4 && !fine; attempt++) {
        eighth = least(tok, text, N_HOSTILE / 8, 3);
        all = least(tok, text, N_HOSTILE, 2);
        /* Eight times the text in eight times the time, with room for caches that it no longer fits; squares would take 64. */
        fine = all <= limit && (all <= 0.02 || all / eighth < 24);
    }
    if (!fine)
        fail_msg("%s, %s: %.4f s for %d kB, %.4f s for %d kB", name, what, eighth, N_HOSTILE / 8000, all, N_HOSTILE / 1000);
}

static void hostile_texts_take_linear_time(void **state)
{
    const char *const *names = *state;
    static const char *const units[] = {" ", "a", "=",   "-", "\n", "ab",           "the",  " the",      "aaaaaaab",
                                        "0", "_", "<s>", "<", "中", "\xE2\x96\x81", "\xC3", "e\xCC\x81", "\t "};
    char *text = weft__alloc(N_HOSTILE);
    assert_non_null(text);
    for (size_t v = 0; names[v]; v++) {
        weft__gguf *g = open_file(names[v]);
        weft__tokenizer *tok = NULL;
        weft_error err = {0};
        if (weft__vocab_tokenizer(g, &tok, &err)) fail_msg("%s", err.message);
        weft__gguf_close(&g);
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            size_t len = strlen(units[u]);
            for (size_t i = 0; i < N_HOSTILE; i++) text[i] = units[u][i % len];
            check_linear(tok, names[v], units[u], text);
        }
        weft__rng rng;
        weft__rng_seed(&rng, 3);
        for (size_t i = 0; i < N_HOSTILE;
             i++) { /* broken UTF-8, of bytes that are usual in it: some vocabularies lack the others */
            int byte = (int)weft__rng_below(&rng, 256);
            text[i] = (char)(byte < ' ' || byte == 127 || byte == 0xC0 || byte == 0xC1 || byte > 0xEF ? 'x' : byte);
        }
        check_linear(tok, names[v], "random bytes", text);
        for (size_t i = 0; i < N_HOSTILE; i++) text[i] = "ab"[weft__rng_below(&rng, 2)];
        check_linear(tok, names[v], "random letters", text);
        weft__tokenizer_destroy(&tok);
    }
    weft__free(text);
}

int main(int argc, char **argv)
{
    static const char *names[] = {"llama-spm",    "phi-3",          "gpt-2",    "falcon", "starcoder",
                                  "deepseek-llm", "deepseek-coder", "bert-bge", NULL},
                      *of_the_tree[] = {"tests/material/stories.gguf", "models/alderbrook.gguf", NULL};
    int own = argc > 1 && !strcmp(argv[1], "own");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(english_at_ten_megabytes_a_second, own ? "models/alderbrook.gguf" : "deepseek-llm"),
        cmocka_unit_test_prestate(hostile_texts_take_linear_time, own ? of_the_tree : names),
    };
    return claims_status(cmocka_run_group_tests(tests, NULL, NULL));
}
