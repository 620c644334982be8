// SPDX-License-Identifier: Apache-2.0
/* text_tokenizer_limits.c: what tokenizers promise about time and memory, and which vocabularies they refuse or take
 * although they are odd. */
#include "unit/tokenizer_world.h"

#include "claims.h"
#include "growth.h"

/* ---- time ---- */

typedef struct reading {
    const weft__tok *tok;
    const char *text;
    size_t n_unit;
} reading;

/* Reads about n bytes, whole units. */
static double read_units(void *arg, size_t n)
{
    const reading *r = arg;
    double before = own_seconds();
    weft__tok_ids ids = encode(r->tok, r->text, n - n % r->n_unit, WEFT__TOK_ENCODE_PARSE);
    double took = own_seconds() - before;
    weft__tok_ids_free(&ids);
    return took;
}

/* 80 kB of one thing after another: time grows with the length and no faster. */
static void time_is_linear(void **state)
{
    (void)state;
    static vocab v;
    static const char *const units[] = {"a",  " ", "\n",        "ab",       "abcdeabc ", "a a ", "<",       "<|bo",
                                        "中", "😀", "e\xCC\x81", "\xCC\x81", "1",         "1a",   "'s",      "A",
                                        "Aa", "!", "\t ",       " \n",      "\xFF",      SPACE,  "<|bos|>", "\xC3"};
    enum { KINDS = CLAIMS_REPEATED(4, 2, 1) };
    const size_t n = CLAIMS_SWEPT(80000, 200000);
    char *text = weft__alloc(n);
    assert_non_null(text);
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == 0) {
            spm_vocab(&v, 3, 300);
        } else {
            static const char *const pres[] = {"llama-bpe", "gpt-4o", "deepseek-llm"};
            bpe_vocab(&v, 3, 300);
            v.spec.pre = (weft__tok_slice){pres[kind - 1], strlen(pres[kind - 1])};
        }
        weft__tok *tok = build(&v);
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            reading r = {tok, text, strlen(units[u])};
            for (size_t i = 0; i < n; i++) text[i] = units[u][i % r.n_unit];
            double times = growth_of(read_units, &r, n);
            if (times > GROWTH_MOST)
                fail_msg("kind %d, unit '%s': %.1f times as long for %d times the text", kind, units[u], times,
                         GROWTH_SIZES);
        }
        weft__tok_destroy(&tok);
    }
    weft__free(text);
}

/* ---- memory ---- */

typedef struct scene {
    const vocab *v;
    const char *text;
} scene;

static int live_once(void *arg)
{
    const scene *s = arg;
    weft__tok *tok = NULL;
    weft__tok_ids ids = {0};
    weft__strbuf back = {0};
    weft_error err = {0};
    weft_status status = weft__tok_create(&s->v->spec, &tok, &err);
    if (!status) status = weft__tok_encode(tok, s->text, strlen(s->text), WEFT__TOK_ENCODE_PARSE, &ids, &err);
    if (status) assert_int_equal(ids.n, 0);
    if (!status) status = weft__tok_decode(tok, ids.data, ids.n, 0, &back, &err);
    if (status) {
        assert_int_equal(status, WEFT_NO_MEMORY);
        assert_int_equal(err.status, WEFT_NO_MEMORY);
    }
    weft__strbuf_free(&back);
    weft__tok_ids_free(&ids);
    weft__tok_destroy(&tok);
    return !status;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    static vocab v;
    static char text[600];
    for (int i = 0; i < 599; i++) text[i] = "ab c\xC3\xA9 <s>!"[i % 12];
    for (int kind = 0; kind < 4; kind++) {
        if (kind == 0) spm_vocab(&v, 3, 20);
        if (kind == 1) bpe_vocab(&v, 3, 20);
        if (kind == 2) word_piece_vocab(&v);
        if (kind == 3) unigram_vocab(&v);
        v.spec.chat_template = WEFT__TOK_SLICE("{{ x }}");
        scene s = {&v, text};
        assert_true(fail_each(live_once, &s) > 10);
    }
}

/* ---- what is refused ---- */

static void refuse(vocab *v, weft_status status, const char *word)
{
    weft__tok *tok = NULL;
    weft_error err = {0};
    assert_int_equal(weft__tok_create(&v->spec, &tok, &err), status);
    assert_null(tok);
    if (!strstr(err.message, word)) fail_msg("'%s' does not say '%s'", err.message, word);
}

#define REFUSE(make, change, status, word)                                                                             \
    do {                                                                                                               \
        make;                                                                                                          \
        change;                                                                                                        \
        refuse(&v, status, word);                                                                                      \
    } while (0)

static void malformed_vocabularies(void **state)
{
    (void)state;
    static vocab v;
    static char longest[70000];
    memset(longest, 'x', sizeof longest - 1);
#define SPM spm_vocab(&v, 1, 10)
#define BYTE_BPE bpe_vocab(&v, 1, 10)
    REFUSE(SPM, v.spec.model = WEFT__TOK_SLICE("rwkv"), WEFT_UNSUPPORTED, "'rwkv'");
    REFUSE(SPM, v.spec.model = WEFT__TOK_SLICE(""), WEFT_UNSUPPORTED, "unknown model");
    REFUSE(SPM, v.spec.n_tokens = 0; v.spec.n_scores = v.spec.n_types = v.spec.n_strips = 0, WEFT_FORMAT, "no tokens");
    REFUSE(SPM, v.spec.tokens = NULL, WEFT_FORMAT, "tokens");
    REFUSE(SPM, v.spec.n_scores--, WEFT_FORMAT, "scores");
    REFUSE(SPM, v.spec.n_scores = 0, WEFT_FORMAT, "scores");
    REFUSE(SPM, v.spec.scores = NULL, WEFT_ARGUMENT, "scores");
    REFUSE(SPM, v.scores[5] = __builtin_nanf(""), WEFT_FORMAT, "score of token 5");
    REFUSE(SPM, v.spec.n_types = 3, WEFT_FORMAT, "token_type");
    REFUSE(SPM, v.types[7] = 9, WEFT_FORMAT, "token 7");
    REFUSE(SPM, v.types[7] = -1, WEFT_FORMAT, "token 7");
    REFUSE(SPM, v.spec.n_strips++, WEFT_FORMAT, "strips");
    REFUSE(SPM, v.types[300 - 41] = WEFT__TOK_BYTE, WEFT_FORMAT, "<0xHH>");
    REFUSE(SPM, v.tokens[6] = WEFT__TOK_SLICE("<0xG0>"), WEFT_FORMAT, "<0xG0>");
    REFUSE(SPM, v.tokens[300 - 41] = ((weft__tok_slice){longest, 65536}), WEFT_LIMIT, "65536 bytes");
    REFUSE(SPM, v.tokens[1] = ((weft__tok_slice){longest, 2000}), WEFT_LIMIT, "special token 1");
    REFUSE(SPM, v.spec.bos = (int32_t)v.spec.n_tokens, WEFT_FORMAT, "BOS");
    REFUSE(SPM, v.spec.eos = -2, WEFT_FORMAT, "EOS");
    REFUSE(SPM, v.spec.unk = INT32_MAX, WEFT_FORMAT, "UNK");
    REFUSE(SPM, v.spec.eot = INT32_MAX, WEFT_FORMAT, "EOT");
    REFUSE(SPM, v.spec.mask = 1 << 20, WEFT_FORMAT, "MASK");
    REFUSE(BYTE_BPE, v.spec.add_eos = 1, WEFT_FORMAT, "add_eos");
    REFUSE(BYTE_BPE, v.spec.add_bos = 1; v.spec.bos = -1, WEFT_FORMAT, "add_bos");
    REFUSE(BYTE_BPE, v.spec.pre = WEFT__TOK_SLICE("nowhere\n"), WEFT_UNSUPPORTED, "'nowhere?'");
    REFUSE(BYTE_BPE, v.spec.n_merges = 0, WEFT_FORMAT, "merges");
    REFUSE(BYTE_BPE, v.spec.merges = NULL, WEFT_ARGUMENT, "merges");
    REFUSE(BYTE_BPE, v.merges[2].right.len = 0, WEFT_FORMAT, "merge 2");
    REFUSE(BYTE_BPE, v.merges[3].left = ((weft__tok_slice){longest, 65535}), WEFT_FORMAT, "merge 3");
    REFUSE(word_piece_vocab(&v), v.spec.unk = -1, WEFT_FORMAT, "unknown token");
    REFUSE(unigram_vocab(&v), v.spec.n_scores = 0, WEFT_FORMAT, "scores");
    REFUSE(unigram_vocab(&v), v.spec.charsmap = WEFT__TOK_SLICE("abc"), WEFT_FORMAT, "charsmap");
    REFUSE(unigram_vocab(&v), v.spec.charsmap = WEFT__TOK_SLICE("\xFF\xFF\xFF\x7F"), WEFT_FORMAT, "charsmap");
}

/* Real vocabularies have these, and they work. */
static void odd_but_accepted(void **state)
{
    (void)state;
    static vocab v;
    spm_vocab(&v, 1, 10);
    add(&v, "a", WEFT__TOK_NORMAL, 5); /* a second "a": the first counts */
    add(&v, "", WEFT__TOK_NORMAL, 5);
    weft__tok *tok = build(&v);
    int32_t a = find_name(&v, 0, "a");
    assert_int_equal(weft__tok_find(tok, "a", 1), a);
    assert_int_equal(weft__tok_n(tok), (int32_t)v.spec.n_tokens);
    weft__tok_destroy(&tok);
    /* A byte that the vocabulary lacks, and no unknown token: an error when it is needed, not a hole in the text. */
    bpe_vocab(&v, 1, 0);
    v.merges[v.spec.n_merges++] =
        (weft__tok_merge_pair){WEFT__TOK_SLICE("a"), WEFT__TOK_SLICE("b")}; /* which makes no token */
    v.tokens['z'] = WEFT__TOK_SLICE("gone");
    tok = build(&v);
    EXPECT(tok, "ab", 0, 'a', 'b');
    weft__tok_ids ids = {0};
    weft_error err = {0};
    assert_int_equal(weft__tok_encode(tok, "az", 2, 0, &ids, &err), WEFT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "0x7A"));
    assert_int_equal(ids.n, 0);
    weft__tok_ids_free(&ids);
    weft__tok_destroy(&tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_is_linear),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(malformed_vocabularies),
        cmocka_unit_test(odd_but_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
