// SPDX-License-Identifier: Apache-2.0
/* text_bpe_train.c: the vocabulary that is learnt is the one that a slow and simple learner finds; the tokenizer made
 * of it does what its merges say; every text comes back. */
#include <stdio.h>
#include <stdlib.h>

#include "unit/alphabet.h"
#include "unit/fixture.h"

#include "base/random.h"
#include "text/tokenizer/bpe_train.h"

static const weft__tok_bpe_special specials[] = {{WEFT__TOK_SLICE("<|start|>"), WEFT__TOK_CONTROL},
                                                 {WEFT__TOK_SLICE("<|stop|>"), WEFT__TOK_CONTROL},
                                                 {WEFT__TOK_SLICE("<call>"), WEFT__TOK_USER_DEFINED}};
enum { N_SPECIALS = 3 };

static weft__tok_bpe_options options_of(size_t n_vocab, uint64_t min_count)
{
    return (weft__tok_bpe_options){WEFT__TOK_SLICE("qwen2"), specials, N_SPECIALS, n_vocab, min_count};
}

static weft__tok_bpe_training *train(const weft__tok_bpe_options *o, const char *const *texts, size_t n)
{
    weft__tok_bpe_training *t = NULL;
    weft_error err = {0};
    weft_status st = weft__tok_bpe_train_begin(o, &t, &err);
    for (size_t i = 0; !st && i < n; i++) st = weft__tok_bpe_train_add(t, texts[i], strlen(texts[i]), &err);
    if (!st) st = weft__tok_bpe_train_run(t, NULL, NULL, &err);
    if (st) fail_msg("%s", err.message);
    return t;
}

static weft__tok *tokenizer_of(const weft__tok_bpe_training *t)
{
    weft__tok *tok = NULL;
    weft_error err = {0};
    if (weft__tok_create(weft__tok_bpe_train_spec(t), &tok, &err)) fail_msg("%s", err.message);
    return tok;
}

/* Words of few letters with a space before each but the first. */
static void random_text(char *out, size_t n, uint64_t seed)
{
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    for (size_t i = 0; i + 1 < n; i++)
        out[i] = i && out[i - 1] != ' ' && weft__rng_below(&rng, 5) == 0 ? ' ' : (char)('a' + weft__rng_below(&rng, 4));
    if (n > 1 && out[n - 2] == ' ') out[n - 2] = 'a';
    out[n - 1] = 0;
}

/* ---- the slow and simple learner ---- */

enum { SLOW_WORDS = 400, SLOW_SYMBOLS = 400, SLOW_LEN = 120 };
typedef struct slow {
    int word[SLOW_WORDS][SLOW_LEN], len[SLOW_WORDS], n_words;
    char text[SLOW_SYMBOLS][80]; /* of each symbol */
    int left[SLOW_SYMBOLS], right[SLOW_SYMBOLS], n_merges, n_symbols;
} slow;

static void slow_words(slow *s, const char *text)
{
    memset(s, 0, sizeof *s);
    s->n_symbols = 256;
    for (int b = 1; b < 256; b++) s->text[b][0] = (char)b;
    s->n_words = 1;
    for (const char *p = text; *p; p++) {
        if (*p == ' ' && p > text) s->n_words++;
        int w = s->n_words - 1;
        assert_true(w < SLOW_WORDS && s->len[w] < SLOW_LEN);
        s->word[w][s->len[w]++] = (unsigned char)*p;
    }
}

/* The pair that occurs most often, smaller symbols first; how often. */
static int slow_best(const slow *s, int *left, int *right)
{
    static int count[SLOW_SYMBOLS][SLOW_SYMBOLS];
    int best = 0;
    memset(count, 0, sizeof count);
    for (int w = 0; w < s->n_words; w++)
        for (int i = 0; i + 1 < s->len[w]; i++) count[s->word[w][i]][s->word[w][i + 1]]++;
    for (int a = 0; a < s->n_symbols; a++)
        for (int b = 0; b < s->n_symbols; b++)
            if (count[a][b] > best) best = count[ *left = a][ *right = b];
    return best;
}

static void slow_merge(int *word, int *len, int left, int right, int made)
{
    int out = 0;
    for (int i = 0; i < *len; out++) {
        int here = i + 1 < *len && word[i] == left && word[i + 1] == right;
        word[out] = here ? made : word[i];
        i += here ? 2 : 1;
    }
    *len = out;
}

static void slow_learn(slow *s, int n_symbols, int min_count)
{
    int left = 0, right = 0;
    while (s->n_symbols < n_symbols && slow_best(s, &left, &right) >= min_count) {
        char joined[160];
        int made = s->n_symbols;
        snprintf(joined, sizeof joined, "%s%s", s->text[left], s->text[right]);
        for (int i = 0; i < s->n_symbols; i++)
            if (!strcmp(s->text[i], joined)) made = i;
        if (made == s->n_symbols) snprintf(s->text[s->n_symbols++], sizeof s->text[0], "%.79s", joined);
        s->left[s->n_merges] = left;
        s->right[s->n_merges++] = right;
        for (int w = 0; w < s->n_words; w++) slow_merge(s->word[w], &s->len[w], left, right, made);
    }
}

static void spell(const char *raw, char *out)
{
    for (; *raw; raw++) out += weft__utf8_encode(alphabet_of((unsigned char)*raw), out);
    *out = 0;
}

static void expect_slice(weft__tok_slice got, const char *raw)
{
    char want[400];
    spell(raw, want);
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.data, want, got.len);
}

static void the_simple_learner_agrees(void **state)
{
    (void)state;
    static slow s;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        char text[600];
        random_text(text, 20 + 9 * seed, seed);
        int n_symbols = 256 + 1 + (int)(seed * 2 % 90), min_count = 1 + (int)(seed % 3);
        slow_words(&s, text);
        slow_learn(&s, n_symbols, min_count);
        weft__tok_bpe_options o = options_of((size_t)n_symbols + N_SPECIALS, (uint64_t)min_count);
        weft__tok_bpe_training *t = train(&o, (const char *const[]){text}, 1);
        const weft__tok_spec *spec = weft__tok_bpe_train_spec(t);
        assert_int_equal(spec->n_tokens, (size_t)s.n_symbols + N_SPECIALS);
        assert_int_equal(spec->n_merges, s.n_merges);
        for (int i = 1; i < s.n_symbols; i++) expect_slice(spec->tokens[N_SPECIALS + i], s.text[i]);
        for (int i = 0; i < s.n_merges; i++) {
            expect_slice(spec->merges[i].left, s.text[s.left[i]]);
            expect_slice(spec->merges[i].right, s.text[s.right[i]]);
        }
        weft__tok_bpe_train_end(&t);
    }
}

/* ---- the tokenizer made of it ---- */

static void the_tokenizer_does_what_the_merges_say(void **state)
{
    (void)state;
    static slow s, other;
    char text[600], fresh[300];
    random_text(text, sizeof text, 7);
    slow_words(&s, text);
    slow_learn(&s, 330, 2);
    weft__tok_bpe_options o = options_of(330 + N_SPECIALS, 2);
    weft__tok_bpe_training *t = train(&o, (const char *const[]){text}, 1);
    weft__tok *tok = tokenizer_of(t);
    for (uint64_t seed = 100; seed < 140; seed++) {
        random_text(fresh, sizeof fresh, seed);
        slow_words(&other, fresh);
        weft__tok_ids ids = {0};
        assert_int_equal(weft__tok_encode(tok, fresh, strlen(fresh), 0, &ids, NULL), WEFT_OK);
        size_t at = 0;
        for (int w = 0; w < other.n_words; w++) {
            for (int i = 0, made = 256; i < s.n_merges; i++) {
                char joined[160];
                snprintf(joined, sizeof joined, "%s%s", s.text[s.left[i]], s.text[s.right[i]]);
                for (made = 0; strcmp(s.text[made], joined);) made++;
                slow_merge(other.word[w], &other.len[w], s.left[i], s.right[i], made);
            }
            for (int i = 0; i < other.len[w]; i++) assert_int_equal(ids.data[at++], other.word[w][i] + N_SPECIALS);
        }
        assert_int_equal(at, ids.n);
        weft__tok_ids_free(&ids);
    }
    weft__tok_destroy(&tok);
    weft__tok_bpe_train_end(&t);
}

static const char *const some_texts[] = {
    "The fox said: \"It's 12 o'clock!\"\n\n  The fox went home. <|start|>The fox slept.<|stop|>",
    "Käse, Früh\xC3\xBC\xC3\xBC and \xE4\xB8\xAD\xE6\x96\x87\xE4\xB8\xAD\xE6\x96\x87; {\"a\": [1, 22, "
    "333]}<call>\t\t\t\t\r\n",
    "the fox the fox the fox the the the the ------------------------------------------------"};

static void every_text_comes_back(void **state)
{
    (void)state;
    weft__tok_bpe_options o = options_of(400, 1);
    weft__tok_bpe_training *t = train(&o, some_texts, 3);
    weft__tok *tok = tokenizer_of(t);
    weft__rng rng;
    weft__rng_seed(&rng, 5);
    for (int round = 0; round < 300; round++) {
        weft__strbuf text = {0}, back = {0};
        weft__tok_ids ids = {0};
        for (int i = 0; i < 40; i++) {
            if (weft__rng_below(&rng, 8) == 0) weft__strbuf_puts(&text, some_texts[weft__rng_below(&rng, 3)]);
            weft__strbuf_put_utf8(&text, (uint32_t)weft__rng_below(&rng, weft__rng_below(&rng, 2) ? 0x80 : 0xD800));
        }
        assert_int_equal(weft__tok_encode(tok, text.data, text.len, WEFT__TOK_ENCODE_PARSE, &ids, NULL), WEFT_OK);
        assert_int_equal(weft__tok_decode(tok, ids.data, ids.n, WEFT__TOK_DECODE_SPECIAL, &back, NULL), WEFT_OK);
        assert_int_equal(back.len, text.len);
        assert_memory_equal(back.data, text.data, text.len);
        weft__tok_ids_free(&ids);
        weft__strbuf_free(&back);
        weft__strbuf_free(&text);
    }
    weft__tok_destroy(&tok);
    weft__tok_bpe_train_end(&t);
}

/* Special tokens in the texts teach nothing, are tokens of their own, and nothing learnt is spelled like them. */
static void special_tokens_stay_apart(void **state)
{
    (void)state;
    const weft__tok_bpe_special odd[] = {{WEFT__TOK_SLICE("foxes"), WEFT__TOK_CONTROL},
                                         {WEFT__TOK_SLICE("\xC4\xA0the"), WEFT__TOK_CONTROL}};
    const char *text = "foxesfoxesfoxes the the the the the fox fox fox es es";
    weft__tok_bpe_options o = {WEFT__TOK_SLICE("qwen2"), odd, 2, 2 + 256 + 20, 1};
    weft__tok_bpe_training *t = train(&o, &text, 1);
    const weft__tok_spec *spec = weft__tok_bpe_train_spec(t);
    int found = 0;
    for (size_t i = 0; i < spec->n_tokens; i++) {
        if (i > 1) assert_false(spec->tokens[i].len == 5 && !memcmp(spec->tokens[i].data, "foxes", 5));
        if (i > 1)
            assert_false(spec->tokens[i].len == 5 &&
                         !memcmp(spec->tokens[i].data, "\xC4\xA0the", 5)); /* how " the" is spelled */
        found += spec->tokens[i].len == 5 && !memcmp(spec->tokens[i].data,
                                                     "\xC4\xA0"
                                                     "fox",
                                                     5);
    }
    assert_int_equal(found, 1);
    weft__tok_bpe_train_end(&t);
}

static void the_order_of_texts_is_no_matter(void **state)
{
    (void)state;
    char a[500], b[500];
    random_text(a, sizeof a, 1);
    random_text(b, sizeof b, 2);
    weft__tok_bpe_options o = options_of(380, 2);
    weft__tok_bpe_training *one = train(&o, (const char *const[]){a, b}, 2),
                           *two = train(&o, (const char *const[]){b, a}, 2);
    const weft__tok_spec *x = weft__tok_bpe_train_spec(one), *y = weft__tok_bpe_train_spec(two);
    assert_int_equal(x->n_tokens, y->n_tokens);
    for (size_t i = 0; i < x->n_tokens; i++) {
        assert_int_equal(x->tokens[i].len, y->tokens[i].len);
        assert_memory_equal(x->tokens[i].data, y->tokens[i].data, x->tokens[i].len);
    }
    weft__tok_bpe_train_end(&one);
    weft__tok_bpe_train_end(&two);
}

static void refuse(weft__tok_bpe_options o, weft_status status, const char *words)
{
    weft__tok_bpe_training *t = NULL;
    weft_error err = {0};
    assert_int_equal(weft__tok_bpe_train_begin(&o, &t, &err), status);
    assert_null(t);
    assert_non_null(strstr(err.message, words));
}

static void wrong_options_are_refused_by_name(void **state)
{
    (void)state;
    const weft__tok_bpe_special twice[] = {specials[0], specials[0]}, tiny = {WEFT__TOK_SLICE("x"), WEFT__TOK_CONTROL},
                                plain = {WEFT__TOK_SLICE("word"), WEFT__TOK_NORMAL};
    refuse(options_of(258, 1), WEFT_ARGUMENT, "258");
    refuse(options_of((size_t)WEFT__TOK_BPE_VOCAB_MAX + 1, 1), WEFT_ARGUMENT, "1048577");
    refuse(options_of(300, 0), WEFT_ARGUMENT, "at least once");
    refuse((weft__tok_bpe_options){WEFT__TOK_SLICE("nonsense"), specials, 3, 300, 1}, WEFT_UNSUPPORTED, "nonsense");
    refuse((weft__tok_bpe_options){WEFT__TOK_SLICE("qwen2"), twice, 2, 300, 1}, WEFT_ARGUMENT, "<|start|>");
    refuse((weft__tok_bpe_options){WEFT__TOK_SLICE("qwen2"), &tiny, 1, 300, 1}, WEFT_ARGUMENT, "'x'");
    refuse((weft__tok_bpe_options){WEFT__TOK_SLICE("qwen2"), &plain, 1, 300, 1}, WEFT_ARGUMENT, "'word'");
    weft__tok_bpe_options o = options_of(300, 1);
    weft__tok_bpe_training *t = NULL;
    weft_error err = {0};
    assert_int_equal(weft__tok_bpe_train_begin(&o, &t, NULL), WEFT_OK);
    assert_int_equal(weft__tok_bpe_train_run(t, NULL, NULL, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "nothing to learn"));
    weft__tok_bpe_train_end(&t);
}

static int train_and_end(void *arg)
{
    weft__tok_bpe_options o = options_of(290, 1);
    weft__tok_bpe_training *t = NULL;
    weft_status st = weft__tok_bpe_train_begin(&o, &t, NULL);
    if (!st) st = weft__tok_bpe_train_add(t, arg, strlen(arg), NULL);
    if (!st) st = weft__tok_bpe_train_run(t, NULL, NULL, NULL);
    if (st && st != WEFT_NO_MEMORY) fail_msg("status %d", (int)st);
    weft__tok_bpe_train_end(&t);
    return !st;
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    assert_true(fail_each(train_and_end, (void *)(uintptr_t)some_texts[0]) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_simple_learner_agrees),
        cmocka_unit_test(the_tokenizer_does_what_the_merges_say),
        cmocka_unit_test(every_text_comes_back),
        cmocka_unit_test(special_tokens_stay_apart),
        cmocka_unit_test(the_order_of_texts_is_no_matter),
        cmocka_unit_test(wrong_options_are_refused_by_name),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("text_bpe_train", tests, NULL, NULL);
}
