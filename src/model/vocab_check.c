// SPDX-License-Identifier: Apache-2.0
/* vocab_check.c: two tokenizers on a built-in set of texts (vocab.h). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/vocab.h"

/* Texts on which tokenizers of models differ. */
static const char *const texts[] = {
    "",
    " ",
    "   ",
    "Hello world",
    "  Hello   world,\tit's  THEIR 1st. ",
    "\n\n x\r\n\t\ty \n",
    "I'LL we've 'd 1234567 3.14 -5 0x1F 1,000",
    "caf\u00e9 \u00c5ngstr\u00f6m na\u00efve \u00df \u0130 \u03a3\u0391\u03a3",
    "cafe\u0301 A\u030angstro\u0308m q\u0307\u0323 \u1112\u1161\u11ab",
    "\ufb01 \u00b2 \u2163 \uff21\uff22 \u00bd \u2126",
    "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8 \u4e2d\u6587\u3002 \ud55c\uad6d\uc5b4",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u05e2\u05d1 \u0e44\u0e17\u0e22",
    "\U0001f600 \U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea",
    "\u2581 \u2581\u2581x\u2581 \u2581",
    "a\u00a0b\u3000c\u200bd\u2028e",
    "x\x01\x7f\x1b y",
    "bad \xff\xc3( \xe2\x82 \xf0\x9f end",
    "https://x.y/z?a=b&c=d#e {\"json\": [1, 2]} <b>x</b> if (a != b) { return; } // _id",
};
enum { N_TEXTS = sizeof texts / sizeof *texts, TEXT_BYTES = 4096 };

typedef struct check {
    const weft__tok *a, *b;
    weft__tok_ids ids[2];
    weft__strbuf out[2];
    char *what;
    size_t size;
} check;

static int say(const check *c, const char *kind, const char *s, size_t n)
{
    char shown[64];
    snprintf(c->what, c->size, "%s '%s'", kind, weft__utf8_show(shown, sizeof shown, s, n));
    return 0;
}

/* Both give the same ids for s[0..n), and the same text for these. */
static int same_text(check *c, const char *s, size_t n, unsigned flags)
{
    weft_status status[2];
    for (int i = 0; i < 2; i++) {
        c->ids[i].n = c->out[i].len = 0;
        status[i] = weft__tok_encode(i ? c->b : c->a, s, n, flags, &c->ids[i], NULL);
        if (status[i] == WEFT_NO_MEMORY) return -1;
    }
    if (status[0] || status[1]) return status[0] == status[1] ? 1 : say(c, "the text", s, n);
    const weft__tok_ids *x = &c->ids[0], *y = &c->ids[1];
    size_t k = 0;
    while (k < x->n && k < y->n && x->data[k] == y->data[k]) k++;
    if (k < x->n || k < y->n) {
        if (n <= 64 || !x->n) return say(c, "the text", s, n);
        const weft__tok_slice t = weft__tok_text(c->a, x->data[k < x->n ? k : x->n - 1]);
        return say(c, "a text with the token", t.data, t.len);
    }
    for (int i = 0; i < 2; i++) {
        status[i] =
            weft__tok_decode(i ? c->b : c->a, x->data, x->n, flags ? WEFT__TOK_DECODE_SPECIAL : 0, &c->out[i], NULL);
        if (status[i] == WEFT_NO_MEMORY) return -1;
    }
    if (c->out[0].len != c->out[1].len || (c->out[0].len && memcmp(c->out[0].data, c->out[1].data, c->out[0].len) != 0))
        return say(c, "the tokens of", s, n);
    return 1;
}

static int same_in_all_ways(check *c, const char *s, size_t n)
{
    static const unsigned ways[] = {0, WEFT__TOK_ENCODE_PARSE, WEFT__TOK_ENCODE_PARSE | WEFT__TOK_ENCODE_SPECIAL};
    int same = 1;
    for (size_t i = 0; same == 1 && i < sizeof ways / sizeof *ways; i++) same = same_text(c, s, n, ways[i]);
    return same;
}

static void put_token(weft__strbuf *text, weft__tok_slice t, int turned)
{
    for (size_t i = 0; i < t.len; i++) {
        const unsigned char byte = (unsigned char)t.data[i];
        weft__strbuf_putc(text, (char)(!turned || byte > 127 ? byte : isupper(byte) ? tolower(byte) : toupper(byte)));
    }
}

/* A token among letters, spaces, its own kind, and in the other case. */
static void put_around(weft__strbuf *text, weft__tok_slice t)
{
    put_token(text, t, 0);
    weft__strbuf_puts(text, " Hi");
    put_token(text, t, 0);
    weft__strbuf_puts(text, "x  ");
    put_token(text, t, 0);
    weft__strbuf_puts(text, " \n e\u0301");
    put_token(text, t, 0);
    put_token(text, t, 0);
    put_token(text, t, 1);
}

static int same_specials(check *c)
{
    weft__strbuf text = {0};
    const int32_t n = weft__tok_n(c->a);
    int same = 1;
    for (int32_t i = 0; same == 1 && i <= n; i++) {
        const int type = weft__tok_type_of(c->a, i);
        if (type == WEFT__TOK_CONTROL || type == WEFT__TOK_USER_DEFINED || type == WEFT__TOK_UNKNOWN)
            put_around(&text, weft__tok_text(c->a, i));
        if (text.failed) same = -1;
        else if (text.len > TEXT_BYTES || (i == n && text.len))
            same = same_in_all_ways(c, text.data, text.len), text.len = 0;
    }
    weft__strbuf_free(&text);
    return same;
}

static int same_ends(const check *c)
{
    for (int32_t i = 0; i < weft__tok_n(c->a); i++) {
        if (weft__tok_is_end(c->a, i) == weft__tok_is_end(c->b, i)) continue;
        const weft__tok_slice t = weft__tok_text(c->a, i);
        return say(c, "the end", t.data, t.len);
    }
    return 1;
}

int weft__vocab_same(const weft__tok *a, const weft__tok *b, char *what, size_t size)
{
    check c = {.a = a, .b = b, .what = what, .size = size};
    int same = same_ends(&c);
    for (size_t i = 0; same == 1 && i < N_TEXTS; i++) same = same_in_all_ways(&c, texts[i], strlen(texts[i]));
    if (same == 1) same = same_specials(&c);
    for (int i = 0; i < 2; i++) {
        weft__strbuf_free(&c.out[i]);
        weft__tok_ids_free(&c.ids[i]);
    }
    return same;
}
