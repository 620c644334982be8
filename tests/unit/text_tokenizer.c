// SPDX-License-Identifier: Apache-2.0
/* text_tokenizer.c: tokenizers against slow and simple models of themselves, and their promises about special tokens
 * and bytes. */
#include "unit/tokenizer_world.h"

#include "claims.h"

/* ---- slow models ---- */

/* A sequence of pieces of text, merged by looking at all neighbours each time. */
typedef struct slow {
    char text[512][24];
    int n;
} slow;

static void slow_merge(slow *s, int at)
{
    char both[48];
    snprintf(both, sizeof both, "%s%s", s->text[at], s->text[at + 1]);
    assert_true(strlen(both) < sizeof s->text[at]);
    memcpy(s->text[at], both, strlen(both) + 1);
    memmove(s->text[at + 1], s->text[at + 2], (size_t)(s->n - at - 2) * sizeof *s->text);
    s->n--;
}

static void slow_spm(const vocab *v, const char *text, weft__tok_ids *out)
{
    static slow s;
    s.n = 0;
    for (size_t i = 0, len; text[i]; i += len) {
        len = (size_t)weft__utf8_length((unsigned char)text[i]);
        snprintf(s.text[s.n++], 24, "%.*s", (int)len, text + i);
    }
    for (;;) {
        int best = -1;
        float score = 0;
        for (int i = 0; i + 1 < s.n; i++) {
            char both[48];
            snprintf(both, sizeof both, "%s%s", s.text[i], s.text[i + 1]);
            int id = find_name(v, 259, both);
            if (id < 0 || (best >= 0 && v->scores[id] <= score)) continue;
            best = i;
            score = v->scores[id];
        }
        if (best < 0) break;
        slow_merge(&s, best);
    }
    for (int i = 0; i < s.n; i++) {
        int id = find_name(v, 259, s.text[i]);
        for (const char *c = s.text[i]; id >= 0 || *c; c++) {
            assert_true(weft__grow(&out->data, &out->capacity, out->n + 1, sizeof *out->data));
            out->data[out->n++] = id >= 0 ? id : 3 + (unsigned char)*c;
            if (id >= 0) break;
        }
    }
}

/* One piece; the text is spelled in the alphabet already. */
static void slow_bpe(const vocab *v, const char *text, weft__tok_ids *out)
{
    static slow s;
    s.n = 0;
    for (size_t i = 0, len; text[i]; i += len) {
        len = (size_t)weft__utf8_length((unsigned char)text[i]);
        snprintf(s.text[s.n++], 24, "%.*s", (int)len, text + i);
    }
    for (size_t m = 0; m < v->spec.n_merges; m++) {
        for (int i = 0; i + 1 < s.n; i++) {
            if (strcmp(s.text[i], v->merges[m].left.data) || strcmp(s.text[i + 1], v->merges[m].right.data)) continue;
            slow_merge(&s, i);
            m = (size_t)-1; /* a merge may allow a better one: begin again */
            break;
        }
    }
    for (int i = 0; i < s.n; i++) {
        assert_true(weft__grow(&out->data, &out->capacity, out->n + 1, sizeof *out->data));
        out->data[out->n++] = find_name(v, 0, s.text[i]);
    }
}

static void same(const weft__tok_ids *got, const weft__tok_ids *want, const char *text)
{
    int equal = got->n == want->n && (!got->n || !memcmp(got->data, want->data, got->n * sizeof *got->data));
    if (!equal) fail_msg("'%s': %zu ids, the slow model has %zu, or others", text, got->n, want->n);
}

static void spm_equals_slow_model(void **state)
{
    (void)state;
    static vocab v;
    static const char *const parts[] = {"a", "b", "c", "d", "é", "中", "\n", "!", " ", " ", "x", "😀", SPACE};
    weft__rng rng;
    weft__rng_seed(&rng, 7);
    for (int round = 0; round < 40; round++) {
        spm_vocab(&v, (uint64_t)round, 20 + 5 * round);
        weft__tok *tok = build(&v);
        for (int k = 0; k < 40; k++) {
            char text[512] = "", spelled[1600] = SPACE;
            int n = (int)weft__rng_below(&rng, 60);
            for (int i = 0; i < n; i++) {
                const char *part = parts[weft__rng_below(&rng, sizeof parts / sizeof *parts)];
                strcat(text, part);
                strcat(spelled, *part == ' ' ? SPACE : part);
            }
            weft__tok_ids got = encode(tok, text, strlen(text), 0), want = {0};
            if (*text) slow_spm(&v, spelled, &want);
            same(&got, &want, text);
            weft__tok_ids_free(&got);
            weft__tok_ids_free(&want);
        }
        weft__tok_destroy(&tok);
    }
}

static void bpe_equals_slow_model(void **state)
{
    (void)state;
    static vocab v;
    weft__rng rng;
    weft__rng_seed(&rng, 8);
    for (int round = 0; round < 30; round++) {
        bpe_vocab(&v, (uint64_t)round, 10 + 10 * round);
        weft__tok *tok = build(&v);
        for (int k = 0; k < 40; k++) {
            char text[256] = "";
            int n = 1 + (int)weft__rng_below(&rng, 100);
            for (int i = 0; i < n; i++) text[i] = "abcde"[weft__rng_below(&rng, 5)]; /* one piece */
            weft__tok_ids got = encode(tok, text, strlen(text), 0), want = {0};
            slow_bpe(&v, text, &want);
            same(&got, &want, text);
            weft__tok_ids_free(&got);
            weft__tok_ids_free(&want);
        }
        weft__tok_destroy(&tok);
    }
}

/* Words of a long text, which are remembered, give the ids that each gives by itself: short and long ones, of one id
 * and of many, and so many that they take each other's places. So do the first of them, however many. */
static void pieces_met_again(void **state)
{
    (void)state;
    enum { N_TEXT = CLAIMS_REPEATED(12000, 4000, 2000), N_WORDS = N_TEXT / 4, MAX_WORD = 120 };
    static vocab v;
    static char words[N_WORDS][MAX_WORD + 2];
    static size_t ends[N_TEXT], n_ids[N_TEXT]; /* of the text and of its ids behind each word */
    weft__rng rng;
    weft__rng_seed(&rng, 10);
    bpe_vocab(&v, 4, 60);
    weft__tok *tok = build(&v);
    for (int w = 0; w < N_WORDS; w++) {
        int n = 1 + (int)weft__rng_below(&rng, 1 + weft__rng_below(&rng, MAX_WORD));
        words[w][0] = ' ';
        for (int i = 1; i <= n; i++) words[w][i] = "abcde"[weft__rng_below(&rng, 5)];
    }
    weft__strbuf text = {0};
    weft__tok_ids want = {0};
    for (int i = 0; i < N_TEXT; i++) {
        const char *word = words[weft__rng_below(&rng, 1 + weft__rng_below(&rng, N_WORDS))];
        weft__strbuf_puts(&text, word);
        weft__tok_ids own = encode(tok, word, strlen(word), 0);
        assert_true(weft__grow(&want.data, &want.capacity, want.n + own.n, sizeof *want.data));
        memcpy(want.data + want.n, own.data, own.n * sizeof *own.data);
        want.n += own.n;
        ends[i] = text.len;
        n_ids[i] = want.n;
        weft__tok_ids_free(&own);
    }
    assert_false(text.failed);
    for (int i = 0; i < N_TEXT; i = i < 12 || i >= N_TEXT - 4 ? i + 1 : N_TEXT - 4) {
        weft__tok_ids got = encode(tok, text.data, ends[i], 0);
        assert_int_equal(got.n, n_ids[i]);
        assert_memory_equal(got.data, want.data, got.n * sizeof *got.data);
        weft__tok_ids_free(&got);
    }
    weft__strbuf_free(&text);
    weft__tok_ids_free(&want);
    weft__tok_destroy(&tok);
}

/* ---- there and back ---- */

static size_t random_utf8(weft__rng *rng, char *out, size_t room)
{
    size_t n = 0;
    while (n + 4 <= room) {
        uint32_t cp;
        switch (weft__rng_below(rng, 6)) {
        case 0: cp = (uint32_t)weft__rng_below(rng, 0x110000); break;
        case 1: cp = (uint32_t)weft__rng_below(rng, 0x800); break;
        case 2: cp = (uint32_t)weft__rng_below(rng, 0x10000); break;
        default: cp = (uint32_t) " \nabcde!'s"[weft__rng_below(rng, 10)]; break;
        }
        if (cp == 0x2581) continue; /* which SentencePiece cannot tell from a space */
        n += weft__utf8_encode(cp, out + n);
    }
    return n;
}

static void check_back(const weft__tok *tok, const char *text, size_t n, unsigned flags)
{
    weft__tok_ids ids = encode(tok, text, n, flags);
    weft__strbuf back = {0};
    assert_int_equal(weft__tok_decode(tok, ids.data, ids.n, 0, &back, NULL), WEFT_OK);
    assert_int_equal(back.len, n);
    if (n) assert_memory_equal(back.data, text, n);
    weft__strbuf_free(&back);
    weft__tok_ids_free(&ids);
}

static void decoding_gives_the_text_back(void **state)
{
    (void)state;
    static vocab v;
    weft__rng rng;
    weft__rng_seed(&rng, 9);
    for (int kind = 0; kind < 2; kind++) {
        if (kind) {
            bpe_vocab(&v, 3, 200);
        } else {
            spm_vocab(&v, 3, 200);
        }
        weft__tok *tok = build(&v);
        for (int k = 0; k < 2000; k++) {
            char text[256];
            size_t n = random_utf8(&rng, text, 4 + weft__rng_below(&rng, 250));
            check_back(tok, text, n, k % 2 ? WEFT__TOK_ENCODE_SPECIAL : 0);
        }
        check_back(tok, "", 0, 0);
        check_back(tok, " ", 1, 0);
        check_back(tok, "  a", 3, 0);
        check_back(tok, "a\0b", 3, 0);
        weft__tok_destroy(&tok);
    }
}

/* Bytes that are no UTF-8 come through as the byte tokens that they are. */
static void raw_bytes_survive(void **state)
{
    (void)state;
    static vocab v;
    for (int kind = 0; kind < 2; kind++) {
        if (kind) {
            bpe_vocab(&v, 3, 100);
        } else {
            spm_vocab(&v, 3, 100);
        }
        weft__tok *tok = build(&v);
        const char text[] = "ab\xFF\xC3 c\xE4\xB8\x80\xED\xA0\x80z\xF0\x9F";
        weft__tok_ids ids = encode(tok, text, sizeof text - 1, 0);
        weft__strbuf bytes = {0};
        for (size_t i = 0; i < ids.n; i++) {
            weft__tok_slice piece = weft__tok_piece_of(tok, ids.data[i]);
            weft__strbuf_put(&bytes, piece.data, piece.len);
        }
        size_t skip = kind ? 0 : 1; /* the leading space */
        assert_int_equal(bytes.len, sizeof text - 1 + skip);
        assert_memory_equal(bytes.data + skip, text, sizeof text - 1);
        weft__strbuf_free(&bytes);
        weft__tok_ids_free(&ids);
        weft__tok_destroy(&tok);
    }
}

/* ---- special tokens ---- */

static void special_tokens(void **state)
{
    (void)state;
    static vocab v;
    begin(&v, "llama");
    add(&v, "<unk>", WEFT__TOK_UNKNOWN, 0);
    add(&v, "<s>", WEFT__TOK_CONTROL, 0);
    add(&v, "</s>", WEFT__TOK_CONTROL, 0);
    add(&v, SPACE, WEFT__TOK_NORMAL, -1);         /* 3 */
    add(&v, "a", WEFT__TOK_NORMAL, -1);           /* 4 */
    add(&v, SPACE "a", WEFT__TOK_NORMAL, 0);      /* 5 */
    add(&v, "<", WEFT__TOK_NORMAL, -1);           /* 6 */
    add(&v, "s", WEFT__TOK_NORMAL, -1);           /* 7 */
    add(&v, ">", WEFT__TOK_NORMAL, -1);           /* 8 */
    add(&v, "<s", WEFT__TOK_NORMAL, 0);           /* 9: "<s>" could be merged if control tokens took part */
    add(&v, "<tool>", WEFT__TOK_USER_DEFINED, 0); /* 10 */
    add(&v, "<|x|>", WEFT__TOK_CONTROL, 0);       /* 11 */
    add(&v, "<|x|>y", WEFT__TOK_CONTROL, 0);      /* 12 */
    add(&v, "<|end|>", WEFT__TOK_CONTROL, 0);     /* 13 */
    v.strips[13] = WEFT__TOK_STRIP_RIGHT | WEFT__TOK_STRIP_LEFT;
    v.spec.add_eos = 1;
    weft__tok *tok = build(&v);
    EXPECT(tok, "a", 0, 5);
    EXPECT(tok, "a", WEFT__TOK_ENCODE_SPECIAL, 1, 5, 2);
    EXPECT(tok, "", WEFT__TOK_ENCODE_SPECIAL, 1, 2);
    EXPECT(tok, "<s>", 0, 3, 9, 8);
    EXPECT(tok, "<s>", WEFT__TOK_ENCODE_PARSE, 1);
    EXPECT(tok, "<s>a a", WEFT__TOK_ENCODE_PARSE, 1, 5, 5); /* the space prefix, after every special token */
    EXPECT(tok, "a<tool>a", 0, 5, 10, 5);
    EXPECT(tok, "<|x|>ya", WEFT__TOK_ENCODE_PARSE, 12, 5); /* the longest */
    EXPECT(tok, "<|x|>a", WEFT__TOK_ENCODE_PARSE, 11, 5);
    EXPECT(tok, "a \n<|end|>\n a", WEFT__TOK_ENCODE_PARSE, 5, 13, 5);
    assert_true(weft__tok_is_end(tok, 2));
    assert_true(weft__tok_is_end(tok, 13));
    assert_false(weft__tok_is_end(tok, 5));
    assert_int_equal(weft__tok_id_of_role(tok, WEFT__TOK_ROLE_EOT), 13);
    assert_int_equal(weft__tok_find(tok, "<|x|>", 5), 11);
    assert_int_equal(weft__tok_find(tok, "nowhere", 7), -1);
    weft__tok_destroy(&tok);
    v.spec.add_space_prefix = 0;
    tok = build(&v);
    EXPECT(tok, "a a", 0, 4, 5);
    weft__tok_destroy(&tok);
}

/* What the user wrote stays text, and is tokenized together with what stands around it. */
static void spans(void **state)
{
    (void)state;
    static vocab v;
    bpe_vocab(&v, 1, 0);
    v.merges[v.spec.n_merges++] = (weft__tok_merge_pair){WEFT__TOK_SLICE("a"), WEFT__TOK_SLICE("b")};
    add(&v, "ab", WEFT__TOK_NORMAL, 0);
    int32_t ab = (int32_t)v.spec.n_tokens - 1, bos = v.spec.bos;
    weft__tok *tok = build(&v);
    const char text[] = "<|bos|>a" /* from the template */ "b<|bos|>" /* the user's */ "<|bos|>" /* the template's */;
    weft__tok_span parse[] = {{0, 8}, {16, 7}};
    weft__tok_ids ids = {0};
    assert_int_equal(weft__tok_encode_spans(tok, text, sizeof text - 1, parse, 2, 0, &ids, NULL), WEFT_OK);
    assert_int_equal(ids.n, 2 + 7 + 1);
    assert_int_equal(ids.data[0], bos);
    assert_int_equal(ids.data[1], ab);
    for (int i = 2; i < 9; i++) assert_int_not_equal(ids.data[i], bos);
    assert_int_equal(ids.data[9], bos);
    weft__tok_span wrong[] = {{4, 8}, {0, 4}};
    assert_int_equal(weft__tok_encode_spans(tok, text, sizeof text - 1, wrong, 2, 0, &ids, NULL), WEFT_ARGUMENT);
    weft__tok_span beyond = {20, 9};
    assert_int_equal(weft__tok_encode_spans(tok, text, sizeof text - 1, &beyond, 1, 0, &ids, NULL), WEFT_ARGUMENT);
    assert_int_equal(ids.n, 10);
    weft__tok_ids_free(&ids);
    weft__tok_destroy(&tok);
}

/* ---- decoding ---- */

/* Whatever the ids: the text so far is always UTF-8, and in the end what decoding it at once gives. */
static void detok_emits_whole_characters(void **state)
{
    (void)state;
    static vocab v;
    spm_vocab(&v, 5, 50);
    weft__tok *tok = build(&v);
    weft__rng rng;
    weft__rng_seed(&rng, 10);
    for (int round = 0; round < 5000; round++) {
        int32_t ids[40];
        char raw[40];
        size_t n = 1 + weft__rng_below(&rng, 40);
        int whole = round % 2;
        if (whole) {
            n = random_utf8(&rng, raw, 4 + weft__rng_below(&rng, 36));
        } else {
            for (size_t i = 0; i < n; i++)
                raw[i] = (char)(weft__rng_below(&rng, 3) ? 0x80 + weft__rng_below(&rng, 0x80) : 'a');
        }
        for (size_t i = 0; i < n; i++) ids[i] = 3 + (unsigned char)raw[i];
        weft__strbuf out = {0};
        weft__tok_detok d;
        weft__tok_detok_init(&d, tok, WEFT__TOK_DECODE_CONTINUE);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(weft__tok_detok_push(&d, ids[i], &out, NULL), WEFT_OK);
            assert_true(weft__utf8_valid(out.data ? out.data : "", out.len));
        }
        assert_int_equal(weft__tok_detok_finish(&d, &out, NULL), WEFT_OK);
        assert_true(weft__utf8_valid(out.data, out.len));
        if (whole) {
            assert_int_equal(out.len, n);
            assert_memory_equal(out.data, raw, n);
        }
        weft__strbuf_free(&out);
    }
    weft__tok_destroy(&tok);
}

/* Ids that a vocabulary leaves free, by an empty name or one after their number, have no text, and no text is
 * theirs. */
static void ids_without_a_name(void **state)
{
    (void)state;
    static vocab v;
    spm_vocab(&v, 5, 50);
    int32_t *types = (int32_t *)(uintptr_t)v.spec.types, n = (int32_t)v.spec.n_tokens;
    weft__tok_slice *tokens = (weft__tok_slice *)(uintptr_t)v.spec.tokens;
    char pad[3][16];
    for (int i = 0; i < 3; i++) {
        tokens[n - 1 - i] = (weft__tok_slice){pad[i], (size_t)snprintf(pad[i], sizeof pad[i], "[PAD%d]", n - 1 - i)};
        types[n - 1 - i] = WEFT__TOK_UNUSED;
    }
    tokens[n - 4] = (weft__tok_slice){"", 0};
    types[n - 4] = WEFT__TOK_UNUSED;
    pad[1][4] = '9'; /* called after another */
    types[n - 3] = WEFT__TOK_NORMAL;
    weft__tok *tok = build(&v);
    int named[] = {0, 1, 1, 0}; /* from the last back, but for a token that is used */
    for (int i = 0; i < 4; i++) {
        int32_t id = n - 1 - i;
        weft__strbuf out = {0};
        assert_int_equal(weft__tok_is_named(tok, id), named[i]);
        assert_int_equal(weft__tok_decode(tok, &id, 1, 0, &out, NULL), WEFT_OK);
        assert_int_equal(out.len > 0, named[i]);
        weft__strbuf_free(&out);
    }
    assert_false(weft__tok_is_named(tok, n));
    assert_false(weft__tok_is_named(tok, -1));
    weft__tok_ids ids = {0};
    assert_int_equal(weft__tok_encode(tok, pad[0], strlen(pad[0]), 0, &ids, NULL), WEFT_OK);
    for (size_t i = 0; i < ids.n; i++) assert_int_not_equal(ids.data[i], n - 1);
    weft__tok_ids_free(&ids);
    weft__tok_destroy(&tok);
}

static void detok_details(void **state)
{
    (void)state;
    static vocab v;
    spm_vocab(&v, 5, 50);
    weft__tok *tok = build(&v);
    int32_t space = find_name(&v, 0, SPACE), a = find_name(&v, 0, "a");
    const struct {
        int32_t ids[8];
        unsigned flags;
        const char *want;
    } cases[] = {
        {{1, space, a, space, a, 2, -1}, 0, "a a"},
        {{1, space, a, 2, -1}, WEFT__TOK_DECODE_SPECIAL, "<s>a</s>"},
        {{space, a, -1}, WEFT__TOK_DECODE_CONTINUE, " a"},
        {{space, space, a, -1}, 0, " a"},
        {{3 + 0xE4, -1}, 0, "\xEF\xBF\xBD"}, /* unfinished */
        {{3 + 0xE4, 3 + 0xB8, a, -1},
         0,
         "\xEF\xBF\xBD"
         "a"}, /* one for the whole run */
        {{3 + 0xE4, 3 + 0xE4, 3 + 0xB8, 3 + 0xAD, -1},
         0,
         "\xEF\xBF\xBD"
         "中"},
        {{3 + 0xED, 3 + 0xA0, 3 + 0x80, -1}, 0, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* a surrogate */
        {{3 + 0xF0, 3 + 0x9F, 3 + 0x98, 3 + 0x80, -1}, 0, "😀"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = 0;
        weft__strbuf out = {0};
        while (cases[i].ids[n] >= 0) n++;
        assert_int_equal(weft__tok_decode(tok, cases[i].ids, n, cases[i].flags, &out, NULL), WEFT_OK);
        assert_string_equal(out.data, cases[i].want);
        weft__strbuf_free(&out);
    }
    weft__strbuf out = {0};
    int32_t none = -1, beyond[] = {a, (int32_t)v.spec.n_tokens, INT32_MAX, a};
    assert_int_equal(weft__tok_decode(tok, &none, 1, 0, &out, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__tok_decode(tok, beyond, 4, 0, &out, NULL), WEFT_OK); /* rows of a padded model */
    assert_string_equal(out.data, "aa");
    assert_string_equal(weft__tok_text(tok, 13).data, "<0x0A>");
    assert_string_equal(weft__tok_piece_of(tok, 13).data, "\n");
    assert_null(weft__tok_piece_of(tok, -1).data);
    weft__strbuf_free(&out);
    weft__tok_destroy(&tok);
}

/* ---- the other models ---- */

static void word_piece(void **state)
{
    (void)state;
    static vocab v;
    word_piece_vocab(&v);
    weft__tok *tok = build(&v);
    EXPECT(tok, "a ab abb", 0, 3, 4, 4, 5);
    EXPECT(tok, "a", WEFT__TOK_ENCODE_SPECIAL, 1, 3, 2);
    EXPECT(tok, "ÁB!a", 0, 4, 6, 3);     /* lower case, no accents, punctuation apart */
    EXPECT(tok, "a中a", 0, 3, 7, 3);     /* a word per Chinese character */
    EXPECT(tok, "ax b abx", 0, 0, 0, 0); /* a word is known or not; "b" alone only continues */
    EXPECT(tok,
           "a\x01\xEF\xBF\xBD"
           "b\tab",
           0, 4, 4);
    EXPECT(tok, "[SEP]", WEFT__TOK_ENCODE_PARSE, 2);
    EXPECT(tok, "[SEP]", 0, 0, 0, 0);
    EXPECT(tok, "", 0);
    weft__tok_destroy(&tok);
    v.spec.max_word_chars = 2;
    tok = build(&v);
    EXPECT(tok, "ab abb", 0, 4, 0);
    weft__tok_destroy(&tok);
}

static void unigram(void **state)
{
    (void)state;
    static vocab v;
    unigram_vocab(&v);
    weft__tok *tok = build(&v);
    EXPECT(tok, "ab", 0, 7, 5);        /* -5.5 beats -2 - 5 */
    EXPECT(tok, "a  ab ", 0, 7, 7, 5); /* extra spaces go */
    EXPECT(tok, "abb", 0, 3, 8);       /* -7.5 beats -2.5 - 3 - 3 */
    EXPECT(tok, "axyb", 0, 7, 2, 5);   /* neighbouring unknowns are one */
    EXPECT(tok, "a", WEFT__TOK_ENCODE_SPECIAL, 7, 1);
    EXPECT(tok, "", 0);
    weft__tok_destroy(&tok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spm_equals_slow_model),
        cmocka_unit_test(bpe_equals_slow_model),
        cmocka_unit_test(pieces_met_again),
        cmocka_unit_test(decoding_gives_the_text_back),
        cmocka_unit_test(raw_bytes_survive),
        cmocka_unit_test(special_tokens),
        cmocka_unit_test(spans),
        cmocka_unit_test(detok_emits_whole_characters),
        cmocka_unit_test(detok_details),
        cmocka_unit_test(ids_without_a_name),
        cmocka_unit_test(word_piece),
        cmocka_unit_test(unigram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
