// SPDX-License-Identifier: Apache-2.0
/* text_spm_proto.c: SentencePiece models: what a good one gives, and what is refused. */
#include <stdio.h>
#include <stdlib.h>

#include "unit/fixture.h"

#include "base/random.h"
#include "text/tokenizer/spm_proto.h"

typedef struct proto {
    unsigned char p[4096];
    size_t n;
} proto;

static void put_varint(proto *b, uint64_t v)
{
    for (; v >= 128; v >>= 7) b->p[b->n++] = (unsigned char)(v | 128);
    b->p[b->n++] = (unsigned char)v;
}

static void put_bytes(proto *b, int field, const void *p, size_t n)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, n);
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static void put_number(proto *b, int field, int64_t v)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, (uint64_t)v);
}

static void put_piece(proto *b, const char *text, float score, int type)
{
    proto piece = {.n = 0};
    put_bytes(&piece, 1, text, strlen(text));
    put_varint(&piece, 2 << 3 | 5);
    memcpy(piece.p + piece.n, &score, 4);
    piece.n += 4;
    if (type != WEFT__TOK_NORMAL) put_number(&piece, 3, type);
    put_bytes(b, 1, piece.p, piece.n);
}

static void put_specs(proto *b, int kind, int squeeze, int escape)
{
    proto trainer = {.n = 0}, normalizer = {.n = 0};
    put_number(&trainer, 3, kind);
    put_number(&trainer, 4, 1000); /* vocab_size: not needed */
    put_number(&trainer, 43, -1);  /* pad: ten bytes of varint */
    put_bytes(b, 2, trainer.p, trainer.n);
    put_bytes(&normalizer, 1, "identity", 8);
    put_number(&normalizer, 4, squeeze);
    put_number(&normalizer, 5, escape);
    put_bytes(b, 3, normalizer.p, normalizer.n);
}

/* <unk> <s> </s>, all bytes, and "▁hi" by merges. */
static proto good(void)
{
    proto b = {.n = 0};
    put_piece(&b, "<unk>", 0, WEFT__TOK_UNKNOWN);
    put_piece(&b, "<s>", 0, WEFT__TOK_CONTROL);
    put_piece(&b, "</s>", 0, WEFT__TOK_CONTROL);
    put_piece(&b, "<0x41>", 0, WEFT__TOK_BYTE);
    put_piece(&b, "\xE2\x96\x81", -3, WEFT__TOK_NORMAL);
    put_piece(&b, "h", -4, WEFT__TOK_NORMAL);
    put_piece(&b, "i", -5, WEFT__TOK_NORMAL);
    put_piece(&b, "hi", -1, WEFT__TOK_NORMAL);
    put_piece(&b, "\xE2\x96\x81hi", -2, WEFT__TOK_NORMAL);
    put_specs(&b, 2, 0, 1);
    return b;
}

static void good_model(void **state)
{
    proto b = good();
    weft__tok_spm_model *m;
    weft__tok *tok;
    weft__tok_ids ids = {0};
    weft_error err = {0};
    (void)state;
    assert_int_equal(weft__tok_spm_model_read(b.p, b.n, &m, &err), WEFT_OK);
    const weft__tok_spec *s = weft__tok_spm_model_spec(m);
    assert_int_equal(s->n_tokens, 9);
    assert_int_equal(s->unk, 0);
    assert_int_equal(s->bos, 1);
    assert_int_equal(s->eos, 2);
    assert_int_equal(s->pad, -1);
    assert_int_equal(weft__tok_create(s, &tok, &err), WEFT_OK);
    weft__tok_spm_model_free(&m);
    assert_int_equal(weft__tok_encode(tok, "hi A", 4, WEFT__TOK_ENCODE_SPECIAL, &ids, &err), WEFT_OK);
    const int32_t expected[] = {1, 8, 4, 3};
    assert_int_equal(ids.n, 4);
    assert_memory_equal(ids.data, expected, sizeof expected);
    weft__tok_ids_free(&ids);
    weft__tok_destroy(&tok);
}

static void refuse(const proto *b, weft_status status, const char *expected)
{
    weft__tok_spm_model *m;
    weft_error err = {0};
    size_t live = weft__alloc_live();
    weft_status got = weft__tok_spm_model_read(b->p, b->n, &m, &err);
    if (got != status || !strstr(err.message, expected))
        fail_msg("expected %d '%s', got %d '%s'", status, expected, got, err.message);
    assert_null(m);
    assert_int_equal(weft__alloc_live(), live);
}

static proto raw(const char *bytes, size_t n)
{
    proto b = {.n = n};
    memcpy(b.p, bytes, n);
    return b;
}

static void refusals(void **state)
{
    proto b = {.n = 0};
    (void)state;
    refuse(&b, WEFT_FORMAT, "it holds no pieces");
    b = raw("{\"not\": 1}", 10);
    refuse(&b, WEFT_FORMAT, "no SentencePiece model");
    b = raw("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11); /* a length of 2^64-1 */
    refuse(&b, WEFT_FORMAT, "no SentencePiece model");
    b = raw("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11); /* a varint beyond 64 bits */
    refuse(&b, WEFT_FORMAT, "no SentencePiece model");
    b = raw("\x0a\x7f", 2);
    refuse(&b, WEFT_FORMAT, "no SentencePiece model");
    b = raw("\x02\x00", 2); /* field 0 */
    refuse(&b, WEFT_FORMAT, "no SentencePiece model");
    b = raw("\x0b", 1); /* a group */
    refuse(&b, WEFT_FORMAT, "no SentencePiece model");
    b = raw("\x0d\x00\x00", 3); /* half a fixed32 */
    refuse(&b, WEFT_FORMAT, "no SentencePiece model");
    b = raw("\x0a\x02\x0a\x05", 4);
    refuse(&b, WEFT_FORMAT, "a piece is damaged");
    b = raw("\x12\x01\x18", 3);
    refuse(&b, WEFT_FORMAT, "trainer_spec is damaged");
    b = raw("\x1a\x01\x0a", 3);
    refuse(&b, WEFT_FORMAT, "normalizer_spec is damaged");
    b = raw("\x0a\x04\x0a\x02\xff\xfe", 6);
    refuse(&b, WEFT_FORMAT, "piece 0 is not UTF-8");
    b.n = 0;
    put_piece(&b, "x", 0, 9);
    refuse(&b, WEFT_FORMAT, "piece 0 has the unknown type 9");
    b.n = 0;
    put_piece(&b, "x", 0, 1);
    put_specs(&b, 3, 0, 1);
    refuse(&b, WEFT_UNSUPPORTED, "kind 3");
    b.n = 0;
    put_piece(&b, "x", 0, 1);
    put_specs(&b, 2, 1, 1);
    refuse(&b, WEFT_UNSUPPORTED, "normalizes its text ('identity')");
    b.n = 0;
    put_piece(&b, "x", 0, 1);
    put_specs(&b, 2, 0, 0);
    refuse(&b, WEFT_UNSUPPORTED, "does not escape spaces");
}

static void damage(void **state)
{
    weft__rng rng;
    int read = 0;
    (void)state;
    weft__rng_seed(&rng, 3);
    for (int i = 0; i < 20000; i++) {
        proto b = good();
        weft__tok_spm_model *m;
        for (int k = 0; k < 2; k++) b.p[weft__rng_below(&rng, b.n)] = (unsigned char)weft__rng_u64(&rng);
        if (weft__rng_below(&rng, 2)) b.n = weft__rng_below(&rng, b.n);
        unsigned char *exact = malloc(b.n + 1); /* so that a sanitizer sees the end */
        assert_non_null(exact);
        memcpy(exact, b.p, b.n);
        read += weft__tok_spm_model_read(exact, b.n, &m, NULL) == WEFT_OK;
        weft__tok_spm_model_free(&m);
        free(exact);
    }
    assert_true(read > 0);
}

static int read_body(void *arg)
{
    proto b = good();
    weft__tok_spm_model *m;
    (void)arg;
    weft_status status = weft__tok_spm_model_read(b.p, b.n, &m, NULL);
    assert_true(status == WEFT_OK || status == WEFT_NO_MEMORY);
    weft__tok_spm_model_free(&m);
    return status == WEFT_OK;
}

static void failing_allocator(void **state)
{
    (void)state;
    assert_true(fail_each(read_body, NULL) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_model),
        cmocka_unit_test(refusals),
        cmocka_unit_test(damage),
        cmocka_unit_test(failing_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
