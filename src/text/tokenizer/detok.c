// SPDX-License-Identifier: Apache-2.0
/* detok.c: ids to text as they come (tokenizer.h). A decoder belongs to one thread; the tokenizer it borrows is
 * shared. */
#include <string.h>

#include "text/tokenizer/parts.h"

void weft__tok_detok_init(weft__tok_detok *d, const weft__tok *tok, unsigned flags)
{
    *d = (weft__tok_detok){tok, flags, 0, {0}, 0};
}

/* How many of s[0..n), n >= 1, belong together when they are no character: the longest run that could begin one, at
 * least 1. *open is 1 when the run reaches the end, so that more bytes could complete it. (Unicode 15, section 3.9,
 * table 3-7.) */
static size_t ill_formed(const unsigned char *s, size_t n, int *open)
{
    int length = weft__utf8_length(s[0]);
    *open = 0;
    if (length < 2) return 1;
    for (size_t i = 1; i < (size_t)length; i++) {
        if (i == n) {
            *open = 1;
            return n;
        }
        unsigned char least = 0x80, most = 0xBF;
        if (i == 1 && s[0] == 0xE0) least = 0xA0;
        if (i == 1 && s[0] == 0xED) most = 0x9F;
        if (i == 1 && s[0] == 0xF0) least = 0x90;
        if (i == 1 && s[0] == 0xF4) most = 0x8F;
        if (s[i] < least || s[i] > most) return i;
    }
    return 1; /* not reached: such bytes are a character */
}

/* Appends the characters of s[0..n) and holds back what may still become one. */
static void emit(weft__tok_detok *d, const char *s, size_t n, weft__strbuf *out)
{
    size_t begin = 0, i = 0;
    while (i < n) {
        uint32_t cp;
        int bad = 0, open;
        size_t len = weft__utf8_decode(s + i, n - i, &cp, &bad);
        if (!bad) {
            i += len;
            continue;
        }
        weft__strbuf_put(out, s + begin, i - begin);
        len = ill_formed((const unsigned char *)s + i, n - i, &open);
        if (open) {
            memcpy(d->held, s + i, len);
            d->n_held = (int)len;
        } else {
            weft__strbuf_put_utf8(out, 0xFFFD);
        }
        i += len;
        begin = i;
    }
    weft__strbuf_put(out, s + begin, n - begin);
}

/* The held bytes are completed one by one, so that no copy of a long piece is needed. */
static void push_bytes(weft__tok_detok *d, const char *s, size_t n, weft__strbuf *out)
{
    while (d->n_held && n) {
        char joined[8];
        size_t len = (size_t)d->n_held;
        memcpy(joined, d->held, len);
        joined[len++] = *s++;
        n--;
        d->n_held = 0;
        emit(d, joined, len, out);
    }
    if (n) emit(d, s, n, out);
}

weft_status weft__tok_detok_push(weft__tok_detok *d, int32_t id, weft__strbuf *out, weft_error *err)
{
    int type = weft__tok_type_of(d->tok, id);
    if (id < 0) return weft_fail(err, WEFT_ARGUMENT, "detokenizer: %d is no id of a token", id);
    if (!type) return WEFT_OK; /* a row of the model beyond the names */
    int special = type == WEFT__TOK_CONTROL || type == WEFT__TOK_UNKNOWN;
    if (special && !(d->flags & WEFT__TOK_DECODE_SPECIAL)) return WEFT_OK;
    weft__tok_slice piece = weft__tok_piece_of(d->tok, id);
    if (!special && !d->started && d->tok->strip_leading && !(d->flags & WEFT__TOK_DECODE_CONTINUE) && piece.len &&
        *piece.data == ' ') {
        piece.data++;
        piece.len--;
    }
    if (!special) d->started = 1;
    push_bytes(d, piece.data, piece.len, out);
    return out->failed ? weft_fail(err, WEFT_NO_MEMORY, "detokenizer: out of memory") : WEFT_OK;
}

weft_status weft__tok_detok_finish(weft__tok_detok *d, weft__strbuf *out, weft_error *err)
{
    if (d->n_held) weft__strbuf_put_utf8(out, 0xFFFD);
    weft__tok_detok_init(d, d->tok, d->flags);
    return out->failed ? weft_fail(err, WEFT_NO_MEMORY, "detokenizer: out of memory") : WEFT_OK;
}

weft_status weft__tok_decode(const weft__tok *tok, const int32_t *ids, size_t n, unsigned flags, weft__strbuf *out,
                             weft_error *err)
{
    weft__tok_detok d;
    weft__tok_detok_init(&d, tok, flags);
    for (size_t i = 0; i < n; i++) {
        weft_status status = weft__tok_detok_push(&d, ids[i], out, err);
        if (status) return status;
    }
    return weft__tok_detok_finish(&d, out, err);
}
