// SPDX-License-Identifier: Apache-2.0
/* draw.c: see draw.h. Each change is one write, so that nothing half drawn is seen. */
#include "draw.h"

#include <stdlib.h>
#include <string.h>

#include "cells.h"
#include "tty.h"

enum { TAB = 4 };

void draw_free(drawing *d)
{
    weft__strbuf_free(&d->rows);
    free(d->widths);
    d->widths = NULL;
    d->room = d->n_rows = 0;
}

/* ---- rows ---- */

struct draw_layout {
    weft__strbuf text;
    size_t *ends; /* [n_rows] of each row in text */
    int *widths;
    int n_rows, room, columns, failed;
    int row, column; /* the cursor */
};

static int room_for(struct draw_layout *l)
{
    if (l->n_rows < l->room) return 1;
    const int room = l->room ? 2 * l->room : 16;
    size_t *ends = realloc(l->ends, (size_t)room * sizeof *ends);
    if (ends) l->ends = ends;
    int *widths = ends ? realloc(l->widths, (size_t)room * sizeof *widths) : NULL;
    if (!widths) return !(l->failed = 1);
    l->widths = widths;
    l->room = room;
    return 1;
}

static void begin_row(struct draw_layout *l)
{
    if (!room_for(l)) return;
    l->widths[l->n_rows] = 0;
    l->ends[l->n_rows++] = l->text.len;
}

static void draw_put(struct draw_layout *l, const char *s, size_t n, int width)
{
    weft__strbuf_put(&l->text, s, n);
    l->widths[l->n_rows - 1] += width;
    l->ends[l->n_rows - 1] = l->text.len;
}

static void put_spaces(struct draw_layout *l, int n)
{
    for (; n > 0; n--) draw_put(l, " ", 1, 1);
}

/* One character at s[0..n), on this row or the next; the cursor may be on it. */
static void put_cluster(struct draw_layout *l, const char *s, size_t n, int has_cursor)
{
    char room[16];
    const char *shown = "    ";
    size_t n_shown = TAB;
    int width = *s == '\t' ? TAB : *s == '\n' ? 0 : cell_shown(s, n, room, &shown, &n_shown);
    if (width > l->columns) { /* forms are of one column per byte; a wide character in a window of one column is none */
        n_shown = (size_t)l->columns;
        width = l->columns;
        if (shown == s) shown = "?";
    }
    if (l->widths[l->n_rows - 1] + width > l->columns || (has_cursor && l->widths[l->n_rows - 1] == l->columns))
        begin_row(l);
    if (l->failed) return;
    if (has_cursor) {
        l->row = l->n_rows - 1;
        l->column = l->widths[l->row];
    }
    if (*s != '\n') draw_put(l, shown, n_shown, width);
}

static int lay_out(struct draw_layout *l, const char *prompt, const char *text, size_t n, size_t at)
{
    const int indent = (int)strlen(prompt);
    const int with_prompt = indent * 2 <= l->columns;
    begin_row(l);
    if (!l->failed && with_prompt) draw_put(l, prompt, strlen(prompt), indent);
    for (size_t i = 0; i < n && !l->failed;) {
        const size_t length = cell_cluster(text + i, n - i);
        put_cluster(l, text + i, length, at >= i && at < i + length);
        if (text[i] == '\n') {
            begin_row(l);
            if (!l->failed && with_prompt) put_spaces(l, indent);
        }
        i += length;
    }
    if (!l->failed && at >= n) put_cluster(l, "\n", 1, 1); /* the cursor needs a place behind the text */
    return !l->failed && !l->text.failed;
}

/* ---- the terminal ---- */

/* Rows from the first that is drawn to the cursor, in a window of so many columns: a narrower one has broken those that
 * no longer fit, and no character of two columns in the middle. */
static int rows_above(const drawing *d, int columns, int most)
{
    int above = 0, row = 0, used = 0, in_row = 0; /* used: columns of the row as it is now, in_row: as it was drawn */
    if (columns >= d->columns) return d->row < most ? d->row : most;
    for (size_t i = 0; i < d->rows.len && (row < d->row || in_row < d->column);) {
        char room[16];
        const char *shown;
        size_t n_shown;
        const size_t n = cell_cluster(d->rows.data + i, d->rows.len - i);
        if (d->rows.data[i] == '\r') {
            if (row == d->row) break;
            i += 2; /* and the newline */
            row++;
            above++;
            used = in_row = 0;
            continue;
        }
        const int width = cell_shown(d->rows.data + i, n, room, &shown, &n_shown);
        if (used + width > columns) {
            above++;
            used = 0;
        }
        used += width;
        in_row += width;
        i += n;
    }
    if (used >= columns) above++; /* the cursor stands behind a row that is full now */
    return above < most ? above : most;
}

static void go_up(weft__strbuf *out, int rows)
{
    if (rows > 0) weft__strbuf_printf(out, "\x1b[%dA", rows);
}

static void place(weft__strbuf *out, int up, int column)
{
    go_up(out, up);
    weft__strbuf_puts(out, "\r");
    if (column > 0) weft__strbuf_printf(out, "\x1b[%dC", column);
}

/* The rows that fit into the window, as they are written. */
static void join(const struct draw_layout *l, int first, int n, weft__strbuf *out)
{
    for (int i = first; i < first + n; i++) {
        const size_t from = i ? l->ends[i - 1] : 0;
        if (i > first) weft__strbuf_puts(out, "\r\n");
        weft__strbuf_put(out, l->text.data + from, l->ends[i] - from);
    }
}

static int is_at_end(const drawing *d)
{
    return d->n_rows > 0 && d->row == d->n_rows - 1 && d->column == d->widths[d->row];
}

static int keep_widths(drawing *d, const struct draw_layout *l, int first, int n)
{
    if (n > d->room) {
        int *widths = realloc(d->widths, (size_t)n * sizeof *widths);
        if (!widths) return 0;
        d->widths = widths;
        d->room = n;
    }
    memcpy(d->widths, l->widths + first, (size_t)n * sizeof *d->widths);
    return 1;
}

static void show(drawing *d, const struct draw_layout *l, int height)
{
    weft__strbuf rows = {0}, out = {0};
    const int n = l->n_rows < height ? l->n_rows : height;
    int first = l->row - height / 2;
    if (first > l->n_rows - n) first = l->n_rows - n;
    if (first < 0) first = 0;
    weft__strbuf_puts(&rows, ""); /* never NULL */
    join(l, first, n, &rows);
    const int was_at_end = is_at_end(d) && d->columns == l->columns;
    const int above = rows_above(d, l->columns, height - 1);
    if (!keep_widths(d, l, first, n)) rows.failed = 1;
    d->row = l->row - first;
    d->column = l->column;
    d->n_rows = n;
    d->columns = l->columns;
    if (was_at_end && is_at_end(d) && rows.len >= d->rows.len && !memcmp(rows.data, d->rows.data, d->rows.len)) {
        weft__strbuf_put(&out, rows.data + d->rows.len, rows.len - d->rows.len);
    } else {
        place(&out, above, 0);
        weft__strbuf_puts(&out, "\x1b[J");
        weft__strbuf_put(&out, rows.data, rows.len);
        place(&out, n - 1 - d->row, d->column);
    }
    if (!out.failed && !rows.failed) tty_write(d->fd, out.data, out.len);
    weft__strbuf_free(&d->rows);
    d->rows = rows;
    weft__strbuf_free(&out);
}

void draw(drawing *d, const char *prompt, const char *text, size_t n, size_t at)
{
    struct draw_layout l = {0};
    int height;
    tty_size(d->fd, &l.columns, &height);
    if (lay_out(&l, prompt, text, n, at)) show(d, &l, height);
    weft__strbuf_free(&l.text);
    free(l.ends);
    free(l.widths);
}

void draw_leave(drawing *d)
{
    weft__strbuf out = {0};
    if (d->n_rows && d->n_rows - 1 > d->row) weft__strbuf_printf(&out, "\x1b[%dB", d->n_rows - 1 - d->row);
    weft__strbuf_puts(&out, "\r\n");
    tty_write(d->fd, out.data, out.len);
    weft__strbuf_free(&out);
    d->rows.len = 0;
    d->n_rows = d->row = d->column = 0;
}

void draw_wipe(drawing *d)
{
    tty_write(d->fd, "\x1b[H\x1b[2J", 7);
    d->rows.len = 0;
    d->n_rows = d->row = d->column = 0;
}
