// SPDX-License-Identifier: Apache-2.0
/* special.c: special tokens are cut out of a text, and what lies between them is normalized. Most are looked for in the
 * text as it comes; late ones (WEFT__TOK_ADDED_NORMALIZED) in what the normalizer made of the fragments that the others
 * left. An encoding belongs to the calling thread. */
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/parts.h"
#include "text/unicode.h"

/* What is cut out of a text, and what takes the rest. */
typedef struct cutting {
    const weft__tok_prefix_index *user, *control;
    const int32_t *ids; /* of the strings of both; NULL: a string's number is its token */
    const weft__tok_span *spans;
    size_t n_spans; /* where control tokens are looked for */
    int (*between)(weft__tok_encoding *e, const char *s, size_t n);
} cutting;

static size_t last_char(const char *s, size_t n, uint32_t *cp)
{
    size_t len = 1;
    while (len < n && len < 4 && ((unsigned char)s[n - len] & 0xC0) == 0x80) len++;
    return weft__utf8_decode(s + n - len, len, cp, NULL) == len ? len : 1;
}

/* Is the character before s[n], or the one at s[0..n), one of a word? */
static int word_before(const char *s, size_t n)
{
    uint32_t cp;
    if (!n) return 0;
    last_char(s, n, &cp);
    return weft__unicode_is_word(cp);
}

static int word_after(const char *s, size_t n)
{
    uint32_t cp;
    if (!n) return 0;
    weft__utf8_decode(s, n, &cp, NULL);
    return weft__unicode_is_word(cp);
}

/* Where the whitespace that ends s[0..n) begins, not before `least`; and where that which begins s[at..n) ends. */
static size_t spaces_before(const char *s, size_t least, size_t n)
{
    uint32_t cp;
    while (n > least) {
        size_t len = last_char(s + least, n - least, &cp);
        if (!weft__unicode_is_space(cp)) break;
        n -= len;
    }
    return n;
}

static size_t spaces_behind(const char *s, size_t at, size_t n)
{
    uint32_t cp;
    while (at < n) {
        size_t len = weft__utf8_decode(s + at, n - at, &cp, NULL);
        if (!weft__unicode_is_space(cp)) break;
        at += len;
    }
    return at;
}

/* The longest token that is cut out at s[0..n), of which control tokens may take `parse` bytes; -1: none. */
static int32_t special_at(const cutting *c, const char *s, size_t n, size_t parse, size_t *len)
{
    size_t user_len = 0, control_len = 0;
    int32_t user = weft__tok_prefix_longest(c->user, s, n, &user_len);
    int32_t control = parse ? weft__tok_prefix_longest(c->control, s, parse, &control_len) : -1;
    int32_t found = control >= 0 && control_len >= user_len ? control : user;
    *len = control >= 0 && control_len >= user_len ? control_len : user_len;
    return found >= 0 && c->ids ? c->ids[found] : found;
}

static int begins_special(const cutting *c, unsigned char byte)
{
    return c->user->root[byte] != c->user->root[byte + 1] || c->control->root[byte] != c->control->root[byte + 1];
}

/* Cuts text[0..n) at special tokens. e->at_start says whether the whole begins at the start of what was asked for. */
static int cut_out(weft__tok_encoding *e, const cutting *c, const char *text, size_t n)
{
    const weft__tok *tok = e->tok;
    const int at_start = e->at_start;
    size_t begin = 0, span = 0;
    for (size_t i = 0; i < n;) {
        if (!begins_special(c, (unsigned char)text[i])) {
            i++;
            continue;
        }
        while (span < c->n_spans && c->spans[span].offset + c->spans[span].len <= i) span++;
        size_t parse =
                   span < c->n_spans && c->spans[span].offset <= i ? c->spans[span].offset + c->spans[span].len - i : 0,
               len;
        int32_t id = special_at(c, text + i, n - i, parse, &len);
        if (id < 0) {
            i++;
            continue;
        }
        unsigned bits = tok->strips ? tok->strips[id] : 0;
        if (bits & WEFT__TOK_ADDED_WORD && (word_before(text, i) || word_after(text + i + len, n - i - len))) {
            i += len; /* a part of a word, which no other token is looked for in */
            continue;
        }
        size_t end = bits & WEFT__TOK_STRIP_LEFT ? spaces_before(text, begin, i) : i;
        e->at_start = at_start && begin == 0;
        if (end > begin && !c->between(e, text + begin, end - begin)) return 0;
        if (!weft__tok_encoding_put(e, id)) return 0;
        i += len;
        if (bits & WEFT__TOK_STRIP_RIGHT) i = spaces_behind(text, i, n);
        begin = i;
    }
    e->at_start = at_start && begin == 0;
    return begin == n || c->between(e, text + begin, n - begin);
}

static int encode_normalized(weft__tok_encoding *e, const char *s, size_t n)
{
    e->work.len = 0;
    weft__strbuf_put(&e->work, s, n);
    return e->work.failed ? weft__tok_encoding_no_memory(e) : weft__tok_encoding_work(e);
}

static int encode_fragment(weft__tok_encoding *e, const char *s, size_t n)
{
    const weft__tok_late *late = &e->tok->late;
    e->work.len = 0;
    weft__strbuf_put(&e->work, s, n);
    if (e->work.failed) return weft__tok_encoding_no_memory(e);
    if (!weft__tok_normalize(e)) return 0;
    if (!late->n) return weft__tok_encoding_work(e);
    weft__strbuf work = e->work;
    e->work = e->whole;
    e->whole = work;
    const weft__tok_span all = {0, work.len};
    const cutting c = {&late->user, &late->control, late->ids, &all, e->parse ? 1 : 0, encode_normalized};
    return cut_out(e, &c, work.data, work.len);
}

int weft__tok_encode_text(weft__tok_encoding *e, const char *text, size_t n, const weft__tok_span *spans,
                          size_t n_spans)
{
    const weft__tok *tok = e->tok;
    /* Where only parts are parsed, nothing tells whose part a place in the normalized text was: control tokens are
     * looked for as they are spelled. */
    e->parse = tok->late.n && n_spans == 1 && spans[0].len == n;
    const cutting c = {&tok->user,     e->parse ? &tok->late.control_early : &tok->control, NULL, spans, n_spans,
                       encode_fragment};
    e->at_start = 1;
    return cut_out(e, &c, text, n);
}

/* ---- late tokens ---- */

static weft_status spell_late(weft__tok *tok, weft__tok_encoding *e, int32_t id, weft_error *err)
{
    e->work.len = 0;
    weft__strbuf_put(&e->work, weft__strings_data(&tok->texts, (size_t)id), weft__strings_len(&tok->texts, (size_t)id));
    if (e->work.failed) return weft_fail(err, WEFT_NO_MEMORY, "tokenizer: out of memory");
    if (!weft__tok_normalize(e)) return e->status;
    if (e->work.len > WEFT__TOK_SPECIAL_MAX_BYTES)
        return weft_fail(err, WEFT_LIMIT, "tokenizer: special token %d is longer than %d bytes once normalized", id,
                         WEFT__TOK_SPECIAL_MAX_BYTES);
    return weft__strings_add(&tok->late.texts, e->work.data, e->work.len, 0)
               ? WEFT_OK
               : weft_fail(err, WEFT_NO_MEMORY, "tokenizer: out of memory");
}

weft_status weft__tok_late_build(weft__tok *tok, weft_error *err)
{
    weft__tok_late *late = &tok->late;
    weft__tok_encoding e = {.tok = tok, .err = err};
    weft_status status = WEFT_OK;
    size_t n = 0, n_control = 0, n_user = 0;
    for (size_t i = 0; tok->strips && i < tok->n_tokens; i++) n += (tok->strips[i] & WEFT__TOK_ADDED_NORMALIZED) != 0;
    if (!n) return WEFT_OK;
    late->ids = weft__alloc_array(n, sizeof *late->ids);
    int32_t *control = weft__alloc_array(n, sizeof *control), *user = weft__alloc_array(n, sizeof *user);
    if (!late->ids || !control || !user) status = weft_fail(err, WEFT_NO_MEMORY, "tokenizer: out of memory");
    for (size_t i = 0; !status && i < tok->n_tokens; i++) {
        int type = tok->types[i];
        int is_user = type == WEFT__TOK_USER_DEFINED,
            is_control = type == WEFT__TOK_CONTROL || type == WEFT__TOK_UNKNOWN;
        if (!(tok->strips[i] & WEFT__TOK_ADDED_NORMALIZED) || !(is_user || is_control)) continue;
        if ((status = spell_late(tok, &e, (int32_t)i, err))) break;
        if (is_user) user[n_user++] = (int32_t)late->n;
        else control[n_control++] = (int32_t)late->n;
        late->ids[late->n++] = (int32_t)i;
    }
    weft__tok_encoding_release(&e);
    if (status) {
        weft__free(control);
        weft__free(user);
        return status;
    }
    weft__tok_prefix_build(&late->control, &late->texts, control, n_control);
    weft__tok_prefix_build(&late->user, &late->texts, user, n_user);
    return WEFT_OK;
}

void weft__tok_late_free(weft__tok *tok)
{
    weft__tok_prefix_free(&tok->late.control_early);
    weft__tok_prefix_free(&tok->late.user);
    weft__tok_prefix_free(&tok->late.control);
    weft__strings_free(&tok->late.texts);
    weft__free(tok->late.ids);
    tok->late.ids = NULL;
    tok->late.n = 0;
}
