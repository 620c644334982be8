// SPDX-License-Identifier: Apache-2.0
/* shown.c: see shown.h. The size of the terminal is asked for again and again, as windows change theirs. */
#include "shown.h"

#include <string.h>
#include <unistd.h>

#include "cells.h"
#include "terminal.h"
#include "tty.h"

enum { NARROW = 12, TAB = 8, ZERO_WIDTH_JOINER = 0x200D }; /* in fewer columns, words are no longer kept together */

void shown_begin(shown *s, FILE *f)
{
    *s = (shown){.f = f, .is_terminal = isatty(fileno(f))};
}

static void new_line(shown *s)
{
    putc('\n', s->f);
    s->column = 0;
}

/* The word that waits, on this line or the next. One that is longer than a line goes on where the terminal lets it. */
static void put_word(shown *s, int columns)
{
    if (!s->word.len) return;
    if (s->column > 0 && s->column + s->word_width > columns && columns >= NARROW) new_line(s);
    fwrite(s->word.data, 1, s->word.len, s->f);
    s->column += s->word_width;
    if (s->column > columns) s->column = (s->column - 1) % columns + 1;
    s->word.len = 0;
    s->word_width = 0;
}

static void put_space(shown *s, int width, int columns)
{
    put_word(s, columns);
    for (; width > 0 && s->column < columns; width--, s->column++)
        putc(' ', s->f); /* those behind the last column would begin the next line */
}

static void put_character(shown *s, uint32_t cp, const char *bytes, size_t n, int columns)
{
    char form[16];
    const size_t n_form = clean_form(cp, form);
    const int width = n_form ? (int)n_form : cell_width(cp);
    if (n_form) {
        bytes = form;
        n = n_form;
    }
    /* Text without spaces can be broken before and behind each wide character. */
    const int breaks = width > 0 && !s->joined && (width == 2 || s->word_is_wide);
    if (breaks || s->word_width + width > columns) put_word(s, columns);
    if (!s->word.len) s->word_is_wide = width == 2;
    s->joined = cp == ZERO_WIDTH_JOINER;
    weft__strbuf_put(&s->word, bytes, n);
    s->word_width += width;
}

static void put_decoded(shown *s, uint32_t cp, const char *bytes, size_t n, int columns)
{
    if (s->returned && cp != '\n') put_character(s, '\r', "\r", 1, columns);
    s->returned = cp == '\r';
    if (cp == '\n') {
        put_word(s, columns);
        new_line(s);
    } else if (cp == ' ') put_space(s, 1, columns);
    else if (cp == '\t') {
        put_word(s, columns);
        put_space(s, TAB - s->column % TAB, columns);
    } else if (cp != '\r') put_character(s, cp, bytes, n, columns);
}

/* Does s[0..n) begin a character without its end? */
static int is_cut(const char *s, size_t n)
{
    const size_t whole = (size_t)weft__utf8_length((unsigned char)s[0]);
    if (whole <= n) return 0;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)s[i] & 0xC0) != 0x80) return 0;
    return 1;
}

int shown_put(void *arg, const char *text, size_t n)
{
    shown *s = arg;
    int columns, rows;
    if (!s->is_terminal) return fwrite(text, 1, n, s->f) != n || fflush(s->f) != 0;
    tty_size(fileno(s->f), &columns, &rows);
    for (size_t i = 0; i < n;) {
        char whole[4];
        size_t n_whole = s->n_part;
        memcpy(whole, s->part, n_whole);
        while (n_whole < sizeof whole && i + n_whole - s->n_part < n) {
            whole[n_whole] = text[i + n_whole - s->n_part];
            n_whole++;
        }
        if (is_cut(whole, n_whole)) {
            memcpy(s->part, whole, n_whole);
            s->n_part = n_whole;
            break;
        }
        uint32_t cp;
        int bad = 0;
        size_t used = weft__utf8_decode(whole, n_whole, &cp, &bad);
        if (bad) put_decoded(s, 0xFFFD, "\xEF\xBF\xBD", 3, columns);
        else put_decoded(s, cp, whole, used, columns);
        if (used < s->n_part) used = s->n_part; /* what was kept of it is no character */
        i += used - s->n_part;
        s->n_part = 0;
    }
    return s->word.failed || fflush(s->f) != 0;
}

void shown_end(shown *s)
{
    int columns = 80, rows;
    if (s->is_terminal) {
        tty_size(fileno(s->f), &columns, &rows);
        if (s->returned) put_character(s, '\r', "\r", 1, columns);
        if (s->n_part) put_character(s, 0xFFFD, "\xEF\xBF\xBD", 3, columns);
        put_word(s, columns);
    }
    fflush(s->f);
    weft__strbuf_free(&s->word);
    s->n_part = 0;
    s->returned = 0;
}
