// SPDX-License-Identifier: Apache-2.0
/* spm_proto.c: a reader of protocol buffers, as far as SentencePiece's message needs it, and that message
 * (spm_proto.h).
 *
 * Invariant: a cursor never points past its bytes, and every read through it is checked. One thread per model. */
#include "text/tokenizer/spm_proto.h"

#include <string.h>

#include "base/alloc.h"

#define LABEL "tokenizer.model"

enum { MAX_PIECES = 10000000 };

/* ---- protocol buffers ---- */

typedef struct spm_proto_cursor {
    const unsigned char *p, *end;
} spm_proto_cursor;

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* One field: its value as a number (varint, fixed) or as bytes. */
typedef struct field {
    uint32_t number, wire;
    uint64_t value;
    spm_proto_cursor bytes;
} field;

static int take_varint(spm_proto_cursor *c, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && c->p < c->end; shift += 7) {
        unsigned char byte = *c->p++;
        if (shift == 63 && byte > 1) return 0;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return 1;
    }
    return 0;
}

static int take_fixed(spm_proto_cursor *c, int n, uint64_t *out)
{
    *out = 0;
    if (c->end - c->p < n) return 0;
    for (int i = n - 1; i >= 0; i--) *out = *out << 8 | c->p[i];
    c->p += n;
    return 1;
}

/* The next field: 1, 0 at the end, -1 when the bytes are no message. */
static int take_field(spm_proto_cursor *c, field *f)
{
    uint64_t tag, n;
    if (c->p == c->end) return 0;
    if (!take_varint(c, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return -1;
    *f = (field){.number = (uint32_t)(tag >> 3), .wire = tag & 7};
    switch (f->wire) {
    case WIRE_VARINT: return take_varint(c, &f->value) ? 1 : -1;
    case WIRE_64: return take_fixed(c, 8, &f->value) ? 1 : -1;
    case WIRE_32: return take_fixed(c, 4, &f->value) ? 1 : -1;
    case WIRE_BYTES:
        if (!take_varint(c, &n) || n > (uint64_t)(c->end - c->p)) return -1;
        f->bytes = (spm_proto_cursor){c->p, c->p + n};
        c->p += n;
        return 1;
    default: return -1;
    }
}

static weft__tok_slice slice_of(spm_proto_cursor c)
{
    return (weft__tok_slice){(const char *)c.p, (size_t)(c.end - c.p)};
}

/* ---- SentencePiece's message ---- */

struct weft__tok_spm_model {
    weft__tok_spec spec;
    weft__tok_slice *tokens;
    float *scores;
    int32_t *types;
    size_t tokens_capacity, scores_capacity, types_capacity;
    int kind; /* TrainerSpec.model_type */
    int32_t unk, bos, eos, pad;
    int dummy_prefix, squeeze, escape;
    weft__tok_slice normalizer, charsmap;
    weft_error *err;
};

enum { KIND_UNIGRAM = 1, KIND_BPE = 2 };

static weft_status damaged(const weft__tok_spm_model *m, const char *what)
{
    return weft_fail(m->err, WEFT_FORMAT, LABEL ": %s is damaged", what);
}

static weft_status read_piece(weft__tok_spm_model *m, spm_proto_cursor c)
{
    size_t i = m->spec.n_tokens;
    weft__tok_slice text = {"", 0};
    float score = 0;
    uint32_t bits;
    uint64_t type = WEFT__TOK_NORMAL;
    field f;
    int got;
    while ((got = take_field(&c, &f)) > 0) {
        if (f.number == 1 && f.wire == WIRE_BYTES) text = slice_of(f.bytes);
        if (f.number == 2 && f.wire == WIRE_32) bits = (uint32_t)f.value, memcpy(&score, &bits, sizeof score);
        if (f.number == 3 && f.wire == WIRE_VARINT) type = f.value;
    }
    if (got < 0) return damaged(m, "a piece");
    if (!weft__utf8_valid(text.data, text.len))
        return weft_fail(m->err, WEFT_FORMAT, LABEL ": piece %zu is not UTF-8", i);
    if (type < WEFT__TOK_NORMAL || type > WEFT__TOK_BYTE)
        return weft_fail(m->err, WEFT_FORMAT, LABEL ": piece %zu has the unknown type %llu", i,
                         (unsigned long long)type);
    if (i == MAX_PIECES) return weft_fail(m->err, WEFT_LIMIT, LABEL ": more than %d pieces", MAX_PIECES);
    if (!weft__grow(&m->tokens, &m->tokens_capacity, i + 1, sizeof *m->tokens) ||
        !weft__grow(&m->scores, &m->scores_capacity, i + 1, sizeof *m->scores) ||
        !weft__grow(&m->types, &m->types_capacity, i + 1, sizeof *m->types))
        return weft_fail(m->err, WEFT_NO_MEMORY, LABEL ": out of memory");
    m->tokens[i] = text;
    m->scores[i] = score;
    m->types[i] = (int32_t)type; /* the numbers are those of GGUF */
    m->spec.n_tokens++;
    return WEFT_OK;
}

static weft_status read_trainer(weft__tok_spm_model *m, spm_proto_cursor c)
{
    field f;
    int got;
    while ((got = take_field(&c, &f)) > 0) {
        if (f.wire != WIRE_VARINT) continue;
        int32_t value = (int32_t)(uint32_t)f.value;
        switch (f.number) {
        case 3: m->kind = value; break;
        case 40: m->unk = value; break;
        case 41: m->bos = value; break;
        case 42: m->eos = value; break;
        case 43: m->pad = value; break;
        default: break;
        }
    }
    return got < 0 ? damaged(m, "trainer_spec") : WEFT_OK;
}

static weft_status read_normalizer(weft__tok_spm_model *m, spm_proto_cursor c)
{
    field f;
    int got;
    while ((got = take_field(&c, &f)) > 0) {
        if (f.number == 1 && f.wire == WIRE_BYTES) m->normalizer = slice_of(f.bytes);
        if (f.number == 2 && f.wire == WIRE_BYTES) m->charsmap = slice_of(f.bytes);
        if (f.wire != WIRE_VARINT) continue;
        if (f.number == 3) m->dummy_prefix = f.value != 0;
        if (f.number == 4) m->squeeze = f.value != 0;
        if (f.number == 5) m->escape = f.value != 0;
    }
    return got < 0 ? damaged(m, "normalizer_spec") : WEFT_OK;
}

static weft_status read_model(weft__tok_spm_model *m, spm_proto_cursor c)
{
    field f;
    int got;
    weft_status status = WEFT_OK;
    while (!status && (got = take_field(&c, &f)) > 0) {
        if (f.wire != WIRE_BYTES) continue;
        if (f.number == 1) status = read_piece(m, f.bytes);
        if (f.number == 2) status = read_trainer(m, f.bytes);
        if (f.number == 3) status = read_normalizer(m, f.bytes);
    }
    if (!status && got < 0) return weft_fail(m->err, WEFT_FORMAT, LABEL ": is no SentencePiece model, or damaged");
    return status;
}

/* An id as the trainer wrote it: out of range means there is none (the trainer writes -1, or keeps a default). */
static int32_t id_of(const weft__tok_spm_model *m, int32_t id)
{
    return id >= 0 && (size_t)id < m->spec.n_tokens ? id : -1;
}

static weft_status finish(weft__tok_spm_model *m)
{
    weft__tok_spec *s = &m->spec;
    if (s->n_tokens == 0) return weft_fail(m->err, WEFT_FORMAT, LABEL ": it holds no pieces");
    if (m->kind != KIND_BPE && m->kind != KIND_UNIGRAM)
        return weft_fail(m->err, WEFT_UNSUPPORTED, LABEL ": models of kind %d are not supported; BPE and Unigram are",
                         m->kind);
    if (!m->escape)
        return weft_fail(m->err, WEFT_UNSUPPORTED, LABEL ": a model that does not escape spaces is not supported");
    if (m->kind == KIND_BPE && (m->charsmap.len || m->squeeze))
        return weft_fail(
            m->err, WEFT_UNSUPPORTED,
            LABEL ": a BPE model that normalizes its text ('%.*s') is not supported; a tokenizer.json would be",
            (int)(m->normalizer.len < 40 ? m->normalizer.len : 40), m->normalizer.data ? m->normalizer.data : "");
    s->model = m->kind == KIND_BPE ? WEFT__TOK_SLICE("llama") : WEFT__TOK_SLICE("t5");
    s->tokens = m->tokens;
    s->scores = m->scores;
    s->types = m->types;
    s->n_scores = s->n_types = s->n_tokens;
    s->unk = id_of(m, m->unk);
    s->bos = id_of(m, m->bos);
    s->eos = id_of(m, m->eos);
    s->pad = id_of(m, m->pad);
    s->add_space_prefix = m->dummy_prefix;
    s->remove_extra_whitespaces = m->squeeze;
    s->charsmap = m->charsmap;
    return WEFT_OK;
}

weft_status weft__tok_spm_model_read(const void *bytes, size_t n, weft__tok_spm_model **out, weft_error *err)
{
    *out = NULL;
    weft__tok_spm_model *m = weft__alloc_zero(1, sizeof *m);
    if (!m) return weft_fail(err, WEFT_NO_MEMORY, LABEL ": out of memory");
    weft__tok_spec_init(&m->spec);
    m->err = err;
    m->kind = KIND_UNIGRAM; /* these are the message's defaults */
    m->bos = 1;
    m->eos = 2;
    m->pad = -1;
    m->dummy_prefix = m->squeeze = m->escape = 1;
    weft_status status = read_model(m, (spm_proto_cursor){bytes, (const unsigned char *)bytes + n});
    if (!status) status = finish(m);
    m->err = NULL;
    if (status) weft__tok_spm_model_free(&m);
    *out = m;
    return status;
}

const weft__tok_spec *weft__tok_spm_model_spec(const weft__tok_spm_model *m)
{
    return &m->spec;
}

void weft__tok_spm_model_free(weft__tok_spm_model **p)
{
    weft__tok_spm_model *m = p ? *p : NULL;
    if (!m) return;
    weft__free(m->types);
    weft__free(m->scores);
    weft__free(m->tokens);
    weft__free(m);
    *p = NULL;
}
