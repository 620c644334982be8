// SPDX-License-Identifier: Apache-2.0
/* edit.c: see edit.h. */
#include "edit.h"

#include <string.h>

#include "cells.h"

void edit_free(edit *e)
{
    weft__strbuf_free(&e->text);
    weft__strbuf_free(&e->killed);
}

void edit_set(edit *e, const char *text, size_t n)
{
    e->text.len = e->at = 0;
    edit_insert(e, text, n);
}

int edit_insert(edit *e, const char *text, size_t n)
{
    weft__strbuf *t = &e->text;
    const size_t behind = t->len - e->at;
    if (n > EDIT_MAX - t->len) return 0;
    weft__strbuf_put(t, text, n); /* to have the room */
    if (t->failed) {
        t->failed = 0;
        return 0;
    }
    memmove(t->data + e->at + n, t->data + e->at, behind);
    memcpy(t->data + e->at, text, n);
    e->at += n;
    return 1;
}

size_t edit_right(const edit *e, size_t at)
{
    return at < e->text.len ? at + cell_cluster(e->text.data + at, e->text.len - at) : at;
}

size_t edit_left(const edit *e, size_t at)
{
    size_t before = edit_line_start(e, at);
    if (before == at) return at ? at - 1 : 0; /* the newline */
    for (size_t next; (next = edit_right(e, before)) < at;) before = next;
    return before;
}

static int is_word(const edit *e, size_t at)
{
    const unsigned char c = (unsigned char)e->text.data[at];
    return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

size_t edit_word_left(const edit *e, size_t at)
{
    while (at > 0 && !is_word(e, at - 1)) at--;
    while (at > 0 && is_word(e, at - 1)) at--;
    return at;
}

size_t edit_word_right(const edit *e, size_t at)
{
    while (at < e->text.len && !is_word(e, at)) at++;
    while (at < e->text.len && is_word(e, at)) at++;
    return at;
}

size_t edit_line_start(const edit *e, size_t at)
{
    while (at > 0 && e->text.data[at - 1] != '\n') at--;
    return at;
}

size_t edit_line_end(const edit *e, size_t at)
{
    while (at < e->text.len && e->text.data[at] != '\n') at++;
    return at;
}

/* The place that many characters behind `start`, in its line. */
static size_t along(const edit *e, size_t start, size_t n_characters)
{
    const size_t end = edit_line_end(e, start);
    for (; n_characters > 0 && start < end; n_characters--) start = edit_right(e, start);
    return start;
}

static size_t characters(const edit *e, size_t from, size_t to)
{
    size_t n = 0;
    for (; from < to; n++) from = edit_right(e, from);
    return n;
}

size_t edit_above(const edit *e, size_t at)
{
    const size_t start = edit_line_start(e, at);
    return start ? along(e, edit_line_start(e, start - 1), characters(e, start, at)) : at;
}

size_t edit_below(const edit *e, size_t at)
{
    const size_t start = edit_line_start(e, at), end = edit_line_end(e, at);
    return end < e->text.len ? along(e, end + 1, characters(e, start, at)) : at;
}

void edit_cut(edit *e, size_t other, int keep)
{
    const size_t from = other < e->at ? other : e->at, to = other < e->at ? e->at : other;
    weft__strbuf *t = &e->text;
    if (from == to) return;
    if (keep) {
        e->killed.len = 0;
        weft__strbuf_put(&e->killed, t->data + from, to - from);
    }
    memmove(t->data + from, t->data + to, t->len - to + 1);
    t->len -= to - from;
    e->at = from;
}

void edit_yank(edit *e)
{
    if (e->killed.len && !e->killed.failed) edit_insert(e, e->killed.data, e->killed.len);
}

void edit_swap(edit *e)
{
    char two[128];
    const size_t middle = e->at == e->text.len ? edit_left(e, e->at) : e->at;
    const size_t first = edit_left(e, middle), end = edit_right(e, middle);
    if (first == middle || end == middle || end - first > sizeof two || e->text.data[first] == '\n' ||
        e->text.data[middle] == '\n')
        return;
    memcpy(two, e->text.data + middle, end - middle);
    memcpy(two + (end - middle), e->text.data + first, middle - first);
    memcpy(e->text.data + first, two, end - first);
    e->at = end;
}
