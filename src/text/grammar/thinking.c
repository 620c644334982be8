// SPDX-License-Identifier: Apache-2.0
/* thinking.c: see thinking.h. Markers are looked for in the text as the parser of answers gets it, control tokens as
 * they are spelled. */
#include "text/grammar/thinking.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

struct weft__gram_budget {
    atomic_size_t refs;
    const weft__tok *tok;
    char *begin, *end;    /* markers */
    weft__tok_ids ending; /* tokens of `end` */
    int begun;
    int32_t n_tokens;
};

typedef enum thinking_phase { BEFORE, WITHIN, AFTER } thinking_phase;

struct weft__gram_thoughts {
    weft__gram_budget *b;
    thinking_phase phase;
    weft__strbuf text; /* what may be, or begin, the marker that is looked for */
    int32_t n_used;
    size_t n_forced; /* tokens of the ending */
};

static weft_status thinking_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for a budget of thinking");
}

weft_status weft__gram_budget_create(const weft__tok *tok, const char *begin, const char *end, int begun,
                                     int32_t n_tokens, weft__gram_budget **out, weft_error *err)
{
    *out = NULL;
    weft__gram_budget *b = weft__alloc_zero(1, sizeof *b);
    if (!b) return thinking_no_memory(err);
    atomic_init(&b->refs, 1);
    b->tok = tok;
    b->begun = begun;
    b->n_tokens = n_tokens;
    b->begin = weft__strdup(begin);
    b->end = weft__strdup(end);
    weft_status st = b->begin && b->end
                         ? weft__tok_encode(tok, end, strlen(end), WEFT__TOK_ENCODE_PARSE, &b->ending, err)
                         : thinking_no_memory(err);
    if (!st && !b->ending.n) st = weft_fail(err, WEFT_UNSUPPORTED, "the vocabulary cannot spell '%s'", end);
    if (st) weft__gram_budget_release(&b);
    *out = b;
    return st;
}

weft__gram_budget *weft__gram_budget_retain(weft__gram_budget *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void weft__gram_budget_release(weft__gram_budget **p)
{
    weft__gram_budget *b = p ? *p : NULL;
    if (!b) return;
    *p = NULL;
    if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) > 1) return;
    weft__tok_ids_free(&b->ending);
    weft__free(b->end);
    weft__free(b->begin);
    weft__free(b);
}

weft_status weft__gram_thoughts_create(weft__gram_budget *b, weft__gram_thoughts **out, weft_error *err)
{
    weft__gram_thoughts *t = *out = weft__alloc_zero(1, sizeof *t);
    if (!t) return thinking_no_memory(err);
    t->b = weft__gram_budget_retain(b);
    t->phase = b->begun ? WITHIN : BEFORE;
    return WEFT_OK;
}

weft_status weft__gram_thoughts_copy(const weft__gram_thoughts *from, weft__gram_thoughts **out, weft_error *err)
{
    weft_status st = weft__gram_thoughts_create(from->b, out, err);
    if (st) return st;
    weft__strbuf text = {0};
    if (from->text.len) weft__strbuf_put(&text, from->text.data, from->text.len);
    if (text.failed) {
        weft__gram_thoughts_destroy(out);
        return thinking_no_memory(err);
    }
    **out = *from;
    (*out)->text = text;
    return WEFT_OK;
}

void weft__gram_thoughts_destroy(weft__gram_thoughts **p)
{
    weft__gram_thoughts *t = p ? *p : NULL;
    if (!t) return;
    weft__strbuf_free(&t->text);
    weft__gram_budget_release(&t->b);
    weft__free(t);
    *p = NULL;
}

/* Whether a character has begun and not ended. */
static int within_character(const weft__strbuf *text)
{
    size_t n = 0;
    while (n < text->len && n < 3 && ((unsigned char)text->data[text->len - 1 - n] & 0xC0) == 0x80) n++;
    if (n == text->len) return 0;
    return weft__utf8_length((unsigned char)text->data[text->len - 1 - n]) > (int)n + 1;
}

int32_t weft__gram_thoughts_next(const weft__gram_thoughts *t)
{
    if (t->phase != WITHIN || t->n_used < t->b->n_tokens) return -1;
    return !t->n_forced && within_character(&t->text) ? -1 : t->b->ending.data[t->n_forced];
}

static void keep_last(weft__strbuf *text, size_t n)
{
    if (text->len <= n) return;
    memmove(text->data, text->data + text->len - n, n);
    text->len = n;
}

/* Whether the answer begins with thinking. */
static void look_for_begin(weft__gram_thoughts *t)
{
    size_t n = strlen(t->b->begin), space = 0;
    while (space < t->text.len && strchr(" \t\r\n", t->text.data[space]) && t->text.data[space] != *t->b->begin)
        space++;
    size_t left = t->text.len - space;
    if (!left) return;
    if (memcmp(t->text.data + space, t->b->begin, left < n ? left : n)) {
        t->phase = AFTER;
    } else if (left >= n) {
        t->phase = WITHIN;
        keep_last(&t->text, left - n);
    }
}

weft_status weft__gram_thoughts_accept(weft__gram_thoughts *t, int32_t token, weft_error *err)
{
    const weft__gram_budget *b = t->b;
    weft__tok_slice s =
        weft__gram_trie_is_control(b->tok, token) ? weft__tok_text(b->tok, token) : weft__tok_piece_of(b->tok, token);
    int32_t forced = weft__gram_thoughts_next(t);
    if (t->phase == AFTER) return WEFT_OK;
    if (weft__tok_is_end(b->tok, token)) s.len = 0;
    if (s.len) weft__strbuf_put(&t->text, s.data, s.len);
    if (t->text.failed) return thinking_no_memory(err);
    if (t->phase == BEFORE) {
        if (t->text.len) look_for_begin(t);
        return WEFT_OK;
    }
    t->n_used += t->n_used < b->n_tokens;
    t->n_forced = forced == token ? t->n_forced + 1 : 0;
    size_t n = strlen(b->end);
    if (t->n_forced == b->ending.n || memmem(t->text.data, t->text.len, b->end, n)) t->phase = AFTER;
    else keep_last(&t->text, n > 4 ? n : 4);
    return WEFT_OK;
}
