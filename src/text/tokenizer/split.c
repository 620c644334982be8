// SPDX-License-Identifier: Apache-2.0
/* split.c: cutting a normalized fragment into pieces (the weft__tok_split steps). Reads e->pieces, writes e->cut,
 * exchanges them.
 *
 * Invariant: pieces are in order, without overlaps, inside e->work; those marked raw are no UTF-8 and are not cut
 * further. */
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/parts.h"

static int push(weft__tok_encoding *e, weft__tok_pieces *to, size_t begin, size_t end, int raw)
{
    if (to->n == to->capacity && !weft__grow(&to->items, &to->capacity, to->n + 1, sizeof *to->items)) {
        return weft__tok_encoding_no_memory(e);
    }
    to->items[to->n++] = (weft__tok_piece){(uint32_t)begin, (uint32_t)(end - begin) & 0x7FFFFFFFu, raw != 0};
    return 1;
}

static void exchange(weft__tok_encoding *e)
{
    weft__tok_pieces t = e->pieces;
    e->pieces = e->cut;
    e->cut = t;
    e->cut.n = 0;
}

/* The fragment as one piece; or, where it has malformed UTF-8, as stretches of characters and of raw bytes. */
static int begin_pieces(weft__tok_encoding *e)
{
    const char *s = e->work.data;
    size_t n = e->work.len, begin = 0;
    e->pieces.n = e->cut.n = 0;
    if (!n) return 1;
    if (weft__utf8_valid(s, n)) return push(e, &e->pieces, 0, n, 0);
    int was_bad = 0;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        int bad = 0;
        size_t len = weft__utf8_decode(s + i, n - i, &cp, &bad);
        if (bad != was_bad) {
            if (i > begin && !push(e, &e->pieces, begin, i, was_bad)) return 0;
            begin = i;
            was_bad = bad;
        }
        i += len;
    }
    return push(e, &e->pieces, begin, n, was_bad);
}

/* Adds the stretch [begin, end) to what became of one piece. *last_match says what the stretch before was: -1 none
 * yet. */
static int emit(weft__tok_encoding *e, weft__tok_split_kind kind, size_t begin, size_t end, int match, int *last_match)
{
    int join = (kind == WEFT__TOK_SPLIT_MERGE_PREV && match && *last_match == 0) ||
               (kind == WEFT__TOK_SPLIT_MERGE_NEXT && !match && *last_match == 1) ||
               (kind == WEFT__TOK_SPLIT_CONTIGUOUS && match && *last_match == 1);
    *last_match = match;
    if (kind == WEFT__TOK_SPLIT_REMOVE && match) return 1;
    if (join) {
        weft__tok_piece *last = &e->cut.items[e->cut.n - 1];
        last->len = (uint32_t)(end - last->offset) & 0x7FFFFFFFu;
        return 1;
    }
    return push(e, &e->cut, begin, end, 0);
}

static int split_piece(weft__tok_encoding *e, const weft__tok_split *split, weft__tok_piece piece)
{
    const char *s = e->work.data + piece.offset;
    size_t n = piece.len, at = 0, from = 0, start, end;
    int found, last = -1, match = !split->step.invert;
    weft__tok_split_kind kind = split->step.kind;
    while (from < n) {
        e->status = weft__regex_find(split->regex, &e->regex, s, n, from, &found, &start, &end, e->err);
        if (e->status) return 0;
        if (!found) break;
        from = end;
        if (end == start) { /* an empty match cuts nothing */
            from += end < n ? (size_t)weft__utf8_length((unsigned char)s[end]) : 1;
            continue;
        }
        if (start > at && !emit(e, kind, piece.offset + at, piece.offset + start, !match, &last)) return 0;
        if (!emit(e, kind, piece.offset + start, piece.offset + end, match, &last)) return 0;
        at = end;
    }
    return at == n || emit(e, kind, piece.offset + at, piece.offset + n, !match, &last);
}

static void take_other(weft__tok_encoding *e)
{
    weft__strbuf t = e->work;
    e->work = e->other;
    e->other = t;
}

/* Writes the pieces anew in GPT-2's alphabet, which makes characters of raw bytes too. */
static int spell(weft__tok_encoding *e)
{
    e->other.len = 0;
    for (size_t i = 0; i < e->pieces.n; i++) {
        weft__tok_piece piece = e->pieces.items[i];
        size_t begin = e->other.len;
        for (size_t k = 0; k < piece.len; k++) {
            weft__strbuf_put_utf8(&e->other, weft__tok_byte_alphabet((unsigned char)e->work.data[piece.offset + k]));
        }
        if (e->other.failed) return weft__tok_encoding_no_memory(e);
        if (!weft__tok_encoding_fits(e, e->other.len)) return 0;
        if (!push(e, &e->cut, begin, e->other.len, 0)) return 0;
    }
    take_other(e);
    return 1;
}

/* Writes the pieces anew, with their spaces replaced and each with the prefix that it lacks. */
static int rewrite(weft__tok_encoding *e, const weft__tok_split_step *step)
{
    weft__tok_slice prefix = step->prefix, space = step->pattern;
    e->other.len = 0;
    for (size_t i = 0; i < e->pieces.n; i++) {
        weft__tok_piece piece = e->pieces.items[i];
        const char *s = e->work.data + piece.offset;
        size_t begin = e->other.len;
        int wanted = !step->first_only || (e->at_start && piece.offset == 0);
        int there = piece.len >= prefix.len && !memcmp(s, prefix.data, prefix.len);
        if (space.len && piece.len && *s == ' ') there = 1; /* which becomes the prefix */
        if (wanted && !there) weft__strbuf_put(&e->other, prefix.data, prefix.len);
        for (size_t k = 0; space.len && k < piece.len; k++) {
            if (s[k] == ' ') {
                weft__strbuf_put(&e->other, space.data, space.len);
            } else {
                weft__strbuf_putc(&e->other, s[k]);
            }
        }
        if (!space.len) weft__strbuf_put(&e->other, s, piece.len);
        if (e->other.failed) return weft__tok_encoding_no_memory(e);
        if (!weft__tok_encoding_fits(e, e->other.len)) return 0;
        if (!push(e, &e->cut, begin, e->other.len, piece.raw)) return 0;
    }
    take_other(e);
    return 1;
}

/* Cuts before every U+2581 that follows another character. */
static int cut_at_spaces(weft__tok_encoding *e, weft__tok_piece piece)
{
    const char *s = e->work.data + piece.offset;
    size_t n = piece.len, begin = 0;
    int was_space = 1;
    for (size_t i = 0; i < n;) {
        int space = s[i] == WEFT__TOK_LOWER_BLOCK[0] && n - i >= 3 && s[i + 1] == WEFT__TOK_LOWER_BLOCK[1] &&
                    s[i + 2] == WEFT__TOK_LOWER_BLOCK[2];
        if (space && !was_space) {
            if (!push(e, &e->cut, piece.offset + begin, piece.offset + i, piece.raw)) return 0;
            begin = i;
        }
        was_space = space;
        i += space ? 3 : 1;
    }
    return push(e, &e->cut, piece.offset + begin, piece.offset + n, piece.raw);
}

int weft__tok_pretokenize(weft__tok_encoding *e)
{
    const weft__tok *tok = e->tok;
    if (!begin_pieces(e)) return 0;
    for (size_t k = 0; k < tok->n_splits; k++) {
        const weft__tok_split *split = &tok->splits[k];
        if (split->step.kind == WEFT__TOK_SPLIT_REWRITE) {
            if (!rewrite(e, &split->step)) return 0;
        } else if (split->step.kind == WEFT__TOK_SPLIT_ALPHABET) {
            if (!spell(e)) return 0;
        } else {
            for (size_t i = 0; i < e->pieces.n; i++) {
                weft__tok_piece piece = e->pieces.items[i];
                int ok = piece.raw ? push(e, &e->cut, piece.offset, piece.offset + (size_t)piece.len, 1)
                                   : split_piece(e, split, piece);
                if (!ok) return 0;
            }
        }
        exchange(e);
    }
    if (!tok->cut_at_spaces) return 1;
    for (size_t i = 0; i < e->pieces.n; i++) {
        if (!cut_at_spaces(e, e->pieces.items[i])) return 0;
    }
    exchange(e);
    return 1;
}
