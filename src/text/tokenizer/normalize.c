// SPDX-License-Identifier: Apache-2.0
/* normalize.c: rewriting a fragment before it is split (the weft__tok_norm steps). Reads e->work, writes e->other,
 * exchanges them. */
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/parts.h"
#include "text/unicode.h"

/* The part of SentencePiece's precompiled map that one lookup needs: a double array whose nodes are 32 bits (base in
 * bits 10-30, shifted by 8 when bit 9 is set; leaf in bit 8; label in bits 0-7 and 31), then NUL-terminated
 * replacements. */
typedef struct charsmap {
    const unsigned char *nodes;
    size_t n_nodes;
    const char *texts;
    size_t n_texts;
} charsmap;

static uint32_t little32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static charsmap open_charsmap(weft__tok_slice blob)
{
    const unsigned char *p = (const unsigned char *)blob.data;
    uint32_t bytes = little32(p);
    return (charsmap){p + 4, bytes / 4, blob.data + 4 + bytes, blob.len - 4 - bytes};
}

/* The longest prefix of s[0..n) that the map replaces: its length, or 0; *text is the replacement's place. -1: a broken
 * map. */
static int64_t map_prefix(const charsmap *map, const char *s, size_t n, uint32_t *text)
{
    int64_t longest = 0;
    if (!map->n_nodes) return 0;
    uint32_t unit = little32(map->nodes), node = unit >> 10 << ((unit & 1u << 9) >> 6);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        node ^= c;
        if (!c || node >= map->n_nodes) break;
        unit = little32(map->nodes + 4 * (size_t)node);
        if ((unit & (1u << 31 | 0xFFu)) != c) break;
        node ^= unit >> 10 << ((unit & 1u << 9) >> 6);
        if (!(unit >> 8 & 1)) continue;
        if (node >= map->n_nodes) return -1;
        *text = little32(map->nodes + 4 * (size_t)node) & 0x7FFFFFFFu;
        if (*text >= map->n_texts || !memchr(map->texts + *text, 0, map->n_texts - *text)) return -1;
        longest = (int64_t)i + 1;
    }
    return longest;
}

static int apply_charsmap(weft__tok_encoding *e, weft__tok_slice blob)
{
    charsmap map = open_charsmap(blob);
    const char *s = e->work.data;
    size_t n = e->work.len;
    for (size_t i = 0; i < n;) {
        uint32_t text = 0, cp;
        int64_t len = map_prefix(&map, s + i, n - i, &text);
        if (len < 0) return weft__tok_encoding_fail(e, WEFT_FORMAT, "tokenizer: the precompiled charsmap is damaged");
        if (len > 0) {
            weft__strbuf_puts(&e->other, map.texts + text);
            i += (size_t)len;
        } else {
            i += weft__utf8_decode(s + i, n - i, &cp, NULL);
            weft__strbuf_put_utf8(&e->other, cp);
        }
    }
    return 1;
}

static int starts_with(const weft__strbuf *t, weft__tok_slice s)
{
    return t->len >= s.len && !memcmp(t->data, s.data, s.len);
}

/* A single byte, which is the usual pattern, through memchr: memmem is prepared anew for each hit, and where sanitizers
 * watch it they look at all that is left of the text each time. */
static const char *normalize_find(const char *s, size_t n, weft__tok_slice what)
{
    if (!what.len) return NULL;
    return what.len == 1 ? memchr(s, (unsigned char)what.data[0], n) : memmem(s, n, what.data, what.len);
}

/* Literal replacement, left to right. */
static void replace(weft__strbuf *out, const weft__strbuf *in, weft__tok_slice from, weft__tok_slice to, size_t room)
{
    const char *at = in->data, *end = in->data + in->len;
    while (at < end && out->len <= room) {
        const char *hit = normalize_find(at, (size_t)(end - at), from);
        if (!hit) hit = end;
        weft__strbuf_put(out, at, (size_t)(hit - at));
        if (hit == end) break;
        weft__strbuf_put(out, to.data, to.len);
        at = hit + from.len;
    }
}

static void exchange(weft__tok_encoding *e)
{
    weft__strbuf t = e->work;
    e->work = e->other;
    e->other = t;
    e->other.len = 0;
}

/* Replaces malformed UTF-8 by U+FFFD where a step cannot take it. */
static void sanitize(weft__tok_encoding *e)
{
    for (size_t i = 0; i < e->work.len;) {
        uint32_t cp;
        i += weft__utf8_decode(e->work.data + i, e->work.len - i, &cp, NULL);
        weft__strbuf_put_utf8(&e->other, cp);
    }
    exchange(e);
}

static int replace_regex(weft__tok_encoding *e, const weft__tok_norm *norm)
{
    if (!weft__utf8_valid(e->work.data, e->work.len)) sanitize(e); /* of a map's texts */
    if (e->work.failed) return weft__tok_encoding_no_memory(e);
    const char *s = e->work.data;
    size_t n = e->work.len, at = 0, from = 0, start, end;
    int found = 1;
    while (from <= n && e->other.len <= e->room) {
        e->status = weft__regex_find(norm->regex, &e->regex, s, n, from, &found, &start, &end, e->err);
        if (e->status) return 0;
        if (!found) break;
        weft__strbuf_put(&e->other, s + at, start - at);
        weft__strbuf_put(&e->other, norm->step.b.data, norm->step.b.len);
        at = end;
        from = end;
        if (end == start) from += end < n ? (size_t)weft__utf8_length((unsigned char)s[end]) : 1;
    }
    weft__strbuf_put(&e->other, s + at, n - at);
    return 1;
}

/* The steps that look at one character at a time. */
static void rewrite_chars(weft__strbuf *out, const weft__strbuf *in, weft__tok_norm_kind kind)
{
    for (size_t i = 0; i < in->len;) {
        uint32_t cp;
        size_t len = weft__utf8_decode(in->data + i, in->len - i, &cp, NULL);
        int cjk = (cp >= 0x4E00 && cp <= 0x9FFF) || (cp >= 0x3400 && cp <= 0x4DBF) ||
                  (cp >= 0x20000 && cp <= 0x2A6DF) || (cp >= 0x2A700 && cp <= 0x2B81F) ||
                  (cp >= 0x2B920 && cp <= 0x2CEAF) || (cp >= 0xF900 && cp <= 0xFAFF) ||
                  (cp >= 0x2F800 && cp <= 0x2FA1F);
        int line = cp == '\t' || cp == '\n' || cp == '\r';
        if (kind == WEFT__TOK_NORM_LOWERCASE) {
            weft__unicode_put_lower(out, cp);
        } else if (kind == WEFT__TOK_NORM_SPACE_CJK && cjk) {
            weft__strbuf_putc(out, ' ');
            weft__strbuf_put(out, in->data + i, len);
            weft__strbuf_putc(out, ' ');
        } else if (kind == WEFT__TOK_NORM_CLEAN && (cp == 0xFFFD || (!line && weft__unicode_is_other(cp)))) {
            /* dropped */
        } else if (kind == WEFT__TOK_NORM_CLEAN && weft__unicode_is_space(cp)) {
            weft__strbuf_putc(out, ' ');
        } else if (kind != WEFT__TOK_NORM_STRIP_ACCENTS || !weft__unicode_is_mark(cp)) {
            weft__strbuf_put(out, in->data + i, len);
        }
        i += len;
    }
}

static void strip(weft__strbuf *out, const weft__strbuf *in, unsigned flags)
{
    size_t begin = 0, end = 0;
    int seen = 0;
    for (size_t i = 0; i < in->len;) {
        uint32_t cp;
        size_t len = weft__utf8_decode(in->data + i, in->len - i, &cp, NULL);
        if (!weft__unicode_is_space(cp)) {
            if (!seen) begin = i;
            seen = 1;
            end = i + len;
        }
        i += len;
    }
    if (!(flags & WEFT__TOK_STRIP_LEFT)) begin = 0;
    if (!(flags & WEFT__TOK_STRIP_RIGHT)) end = in->len;
    if (!seen && flags) return;
    weft__strbuf_put(out, in->data + begin, end - begin);
}

static void squeeze(weft__strbuf *out, const weft__strbuf *in)
{
    for (size_t i = 0; i < in->len; i++) {
        if (in->data[i] != ' ') {
            weft__strbuf_putc(out, in->data[i]);
        } else if (out->len && i + 1 < in->len && in->data[i + 1] != ' ') {
            weft__strbuf_putc(out, ' ');
        }
    }
}

static int apply(weft__tok_encoding *e, const weft__tok_norm *norm)
{
    const weft__tok_norm_step *step = &norm->step;
    weft__strbuf *in = &e->work, *out = &e->other;
    switch (step->kind) {
    case WEFT__TOK_NORM_PREPEND:
    case WEFT__TOK_NORM_PREPEND_ONCE:
        if (step->kind == WEFT__TOK_NORM_PREPEND || !starts_with(in, step->a))
            weft__strbuf_put(out, step->a.data, step->a.len);
        weft__strbuf_put(out, in->data, in->len);
        return 1;
    case WEFT__TOK_NORM_APPEND:
        weft__strbuf_put(out, in->data, in->len);
        weft__strbuf_put(out, step->a.data, step->a.len);
        return 1;
    case WEFT__TOK_NORM_REPLACE: replace(out, in, step->a, step->b, e->room); return 1;
    case WEFT__TOK_NORM_REPLACE_REGEX: return replace_regex(e, norm);
    case WEFT__TOK_NORM_NFC: weft__unicode_normalize(out, in->data, in->len, WEFT__UNICODE_NFC); return 1;
    case WEFT__TOK_NORM_NFD: weft__unicode_normalize(out, in->data, in->len, WEFT__UNICODE_NFD); return 1;
    case WEFT__TOK_NORM_NFKC: weft__unicode_normalize(out, in->data, in->len, WEFT__UNICODE_NFKC); return 1;
    case WEFT__TOK_NORM_NFKD: weft__unicode_normalize(out, in->data, in->len, WEFT__UNICODE_NFKD); return 1;
    case WEFT__TOK_NORM_STRIP: strip(out, in, step->flags); return 1;
    case WEFT__TOK_NORM_CHARSMAP: return apply_charsmap(e, step->a);
    case WEFT__TOK_NORM_SQUEEZE: squeeze(out, in); return 1;
    default: rewrite_chars(out, in, step->kind); return 1;
    }
}

/* 1 when the step takes bytes as they come. */
static int takes_any_bytes(weft__tok_norm_kind kind)
{
    return kind == WEFT__TOK_NORM_PREPEND || kind == WEFT__TOK_NORM_PREPEND_ONCE || kind == WEFT__TOK_NORM_APPEND ||
           kind == WEFT__TOK_NORM_REPLACE || kind == WEFT__TOK_NORM_SQUEEZE || kind == WEFT__TOK_NORM_CHARSMAP;
}

int weft__tok_encoding_fits(weft__tok_encoding *e, size_t n)
{
    if (n > INT32_MAX)
        return weft__tok_encoding_fail(e, WEFT_LIMIT, "tokenizer: the normalized text is larger than 2 GiB");
    if (n <= e->room) return 1;
    return weft__tok_encoding_fail(e, WEFT_LIMIT, "tokenizer: its steps make the text more than %d times as long",
                                   WEFT__TOK_GROWTH);
}

int weft__tok_normalize(weft__tok_encoding *e)
{
    const weft__tok *tok = e->tok;
    int any_bytes = 1;
    e->other.len = 0;
    e->room = e->work.len * WEFT__TOK_GROWTH + WEFT__TOK_GROWTH_ROOM;
    for (size_t i = 0; i < tok->n_norms; i++) any_bytes &= takes_any_bytes(tok->norms[i].step.kind);
    if (!any_bytes && !weft__utf8_valid(e->work.data, e->work.len)) sanitize(e);
    for (size_t i = 0; i < tok->n_norms && !e->other.failed && !e->work.failed && e->work.len; i++) {
        if (tok->norms[i].step.first_only && !e->at_start) continue;
        if (!apply(e, &tok->norms[i])) return 0;
        exchange(e);
        if (!weft__tok_encoding_fits(e, e->work.len)) return 0;
    }
    return e->work.failed || e->other.failed ? weft__tok_encoding_no_memory(e) : 1;
}
