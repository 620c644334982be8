// SPDX-License-Identifier: Apache-2.0
/* editor.c: see editor.h. Draws when no more keys are waiting, so that a pasted block is drawn once. */
#include "editor.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cells.h"
#include "terminal.h"
#include "tty.h"

enum { GOES_ON = -1, LISTED_MAX = 200 };

void editor_open(editor *ed, int in, int out, history *past)
{
    ed->in = in;
    ed->out = ed->d.fd = out;
    ed->past = past;
    tty_take(in, out, "\x1b[?2004h", "\x1b[?2004l");
}

void editor_close(editor *ed)
{
    tty_give_back();
    edit_free(&ed->e);
    keys_free(&ed->k);
    draw_free(&ed->d);
    weft__strbuf_free(&ed->fresh);
    weft__strbuf_free(&ed->sought);
}

static void ring(const editor *ed)
{
    tty_write(ed->out, "\a", 1);
}

static const char *text_of(const editor *ed)
{
    return ed->e.text.data ? ed->e.text.data : "";
}

static void redraw(editor *ed, size_t at)
{
    if (!ed->searching) {
        draw(&ed->d, ed->prompt, text_of(ed), ed->e.text.len, at);
        return;
    }
    weft__strbuf t = {0};
    weft__strbuf_puts(&t, "(search: ");
    weft__strbuf_put(&t, ed->sought.data, ed->sought.len);
    const size_t cursor = t.len;
    weft__strbuf_puts(&t, ") ");
    weft__strbuf_put(&t, text_of(ed), ed->e.text.len);
    if (!t.failed) draw(&ed->d, "", t.data, t.len, cursor);
    weft__strbuf_free(&t);
}

/* ---- the history ---- */

static void show_entry(editor *ed, int at)
{
    if (ed->at_entry == ed->past->n) {
        ed->fresh.len = 0;
        weft__strbuf_put(&ed->fresh, text_of(ed), ed->e.text.len);
    }
    ed->at_entry = at;
    if (at == ed->past->n) edit_set(&ed->e, ed->fresh.data ? ed->fresh.data : "", ed->fresh.len);
    else edit_set(&ed->e, ed->past->entries[at], strlen(ed->past->entries[at]));
}

static void up(editor *ed)
{
    const size_t above = edit_above(&ed->e, ed->e.at);
    if (edit_line_start(&ed->e, ed->e.at) > 0) ed->e.at = above;
    else if (ed->at_entry > 0) show_entry(ed, ed->at_entry - 1);
    else ring(ed);
}

static void down(editor *ed)
{
    if (edit_line_end(&ed->e, ed->e.at) < ed->e.text.len) ed->e.at = edit_below(&ed->e, ed->e.at);
    else if (ed->at_entry < ed->past->n) show_entry(ed, ed->at_entry + 1);
    else ring(ed);
}

/* The latest entry from `from` on backwards that has what is sought. */
static void seek(editor *ed, int from)
{
    for (int i = from < ed->past->n ? from : ed->past->n - 1; i >= 0; i--)
        if (memmem(ed->past->entries[i], strlen(ed->past->entries[i]), ed->sought.data, ed->sought.len)) {
            show_entry(ed, i);
            return;
        }
    ring(ed);
}

/* A key while something is sought; 0: it ends the search, and does what it does. */
static int search_key(editor *ed, key k)
{
    if (k == KEY_TEXT) {
        weft__strbuf_put(&ed->sought, ed->k.text.data, ed->k.text.len);
        seek(ed, ed->at_entry);
        return 1;
    }
    if (k == KEY_CONTROL && ed->k.letter == 'R') {
        if (ed->sought.len) seek(ed, ed->at_entry - 1);
        return 1;
    }
    if (k == KEY_CONTROL && (ed->k.letter == '?' || ed->k.letter == 'H')) {
        while (ed->sought.len > 0 && ((unsigned char)ed->sought.data[--ed->sought.len] & 0xC0) == 0x80) {
        }
        return 1;
    }
    ed->searching = 0;
    if (k == KEY_CONTROL && ed->k.letter == 'G') {
        show_entry(ed, ed->past->n);
        return 1;
    }
    return 0;
}

static void begin_search(editor *ed)
{
    ed->searching = 1;
    ed->sought.len = 0;
    weft__strbuf_puts(&ed->sought, "");
}

/* ---- completion ---- */

void completions_add(completions *c, const char *text)
{
    if (c->n == c->room) {
        const int room = c->room ? 2 * c->room : 16;
        char **items = realloc(c->items, (size_t)room * sizeof *items);
        if (!items) return;
        c->items = items;
        c->room = room;
    }
    if ((c->items[c->n] = strdup(text))) c->n++;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Bytes that all have in common, in whole characters. */
static size_t common(const completions *c)
{
    size_t n = strlen(c->items[0]);
    for (int i = 1; i < c->n; i++) {
        size_t same = 0;
        while (same < n && c->items[i][same] == c->items[0][same]) same++;
        n = same;
    }
    while (n > 0 && ((unsigned char)c->items[0][n] & 0xC0) == 0x80) n--;
    return n;
}

static int columns_of(const char *text)
{
    int columns = 0;
    char room[16];
    const char *shown;
    for (size_t n = strlen(text), used, n_shown; n > 0; n -= used, text += used) {
        used = cell_cluster(text, n);
        columns += cell_shown(text, used, room, &shown, &n_shown);
    }
    return columns;
}

static void put_shown(weft__strbuf *out, const char *text)
{
    char room[16];
    const char *shown;
    for (size_t n = strlen(text), used, n_shown; n > 0; n -= used, text += used) {
        used = cell_cluster(text, n);
        cell_shown(text, used, room, &shown, &n_shown);
        weft__strbuf_put(out, shown, n_shown);
    }
}

/* All there are, below the line; it is drawn anew below them. */
static void list(editor *ed, const completions *c)
{
    weft__strbuf out = {0};
    int columns, rows, widest = 0, at = 0;
    const int n = c->n < LISTED_MAX ? c->n : LISTED_MAX;
    tty_size(ed->out, &columns, &rows);
    for (int i = 0; i < n; i++) {
        const int width = columns_of(c->items[i]);
        if (width > widest) widest = width;
    }
    const int per_row = widest + 2 <= columns ? columns / (widest + 2) : 1;
    draw_leave(&ed->d);
    for (int i = 0; i < n; i++) {
        put_shown(&out, c->items[i]);
        const int last = ++at % per_row == 0 || i + 1 == n;
        if (last) weft__strbuf_puts(&out, "\r\n");
        else weft__strbuf_printf(&out, "%*s", widest + 2 - columns_of(c->items[i]), "");
    }
    if (c->n > n) weft__strbuf_printf(&out, "and %d more\r\n", c->n - n);
    if (!out.failed) tty_write(ed->out, out.data, out.len);
    weft__strbuf_free(&out);
}

static void complete(editor *ed)
{
    completions c = {0};
    const size_t at = ed->e.at;
    if (ed->complete) ed->complete(ed->complete_arg, text_of(ed), at, &c);
    const size_t typed = c.n ? at - c.from : 0, n = c.n ? common(&c) : 0;
    if (c.n && (n > typed || (c.n == 1 && n != typed) ||
                (n > 0 && memcmp(c.items[0], text_of(ed) + c.from, n < typed ? n : typed)))) {
        edit_cut(&ed->e, c.from, 0);
        edit_insert(&ed->e, c.items[0], n);
    } else if (c.n > 1 && ed->tabs > 0) {
        qsort(c.items, (size_t)c.n, sizeof *c.items, by_text);
        list(ed, &c);
    } else if (c.n != 1) ring(ed);
    for (int i = 0; i < c.n; i++) free(c.items[i]);
    free(c.items);
}

/* ---- keys ---- */

static size_t blank_left(const edit *e, size_t at)
{
    while (at > 0 && (e->text.data[at - 1] == ' ' || e->text.data[at - 1] == '\n')) at--;
    while (at > 0 && e->text.data[at - 1] != ' ' && e->text.data[at - 1] != '\n') at--;
    return at;
}

static void insert(editor *ed, const char *text, size_t n)
{
    if (!edit_insert(&ed->e, text, n)) ring(ed);
}

/* What stands there stays, and the line below is the next to be drawn on. */
static int leave(editor *ed, int outcome)
{
    redraw(ed, ed->e.text.len);
    draw_leave(&ed->d);
    return outcome;
}

static int interrupt(editor *ed)
{
    ed->searching = 0;
    insert(ed, "^C", 2);
    return leave(ed, EDIT_INTERRUPTED);
}

static void stop(editor *ed)
{
    redraw(ed, ed->e.text.len);
    draw_leave(&ed->d);
    tty_stop();
}

static int control(editor *ed)
{
    edit *e = &ed->e;
    switch (ed->k.letter) {
    case 'J':
    case 'M': return leave(ed, EDIT_LINE);
    case 'C': e->at = e->text.len; return interrupt(ed);
    case 'D':
        if (!e->text.len) return leave(ed, EDIT_END);
        edit_cut(e, edit_right(e, e->at), 0);
        break;
    case 'A': e->at = edit_line_start(e, e->at); break;
    case 'E': e->at = edit_line_end(e, e->at); break;
    case 'B': e->at = edit_left(e, e->at); break;
    case 'F': e->at = edit_right(e, e->at); break;
    case 'H':
    case '?': edit_cut(e, edit_left(e, e->at), 0); break;
    case 'I': complete(ed); break;
    case 'K': edit_cut(e, edit_line_end(e, e->at), 1); break;
    case 'U': edit_cut(e, edit_line_start(e, e->at), 1); break;
    case 'W': edit_cut(e, blank_left(e, e->at), 1); break;
    case 'Y': edit_yank(e); break;
    case 'T': edit_swap(e); break;
    case 'L': draw_wipe(&ed->d); break;
    case 'N': down(ed); break;
    case 'P': up(ed); break;
    case 'R': begin_search(ed); break;
    case 'Z': stop(ed); break;
    case '\\': kill(getpid(), SIGQUIT); break;
    default: ring(ed);
    }
    return GOES_ON;
}

static void meta(editor *ed)
{
    edit *e = &ed->e;
    switch (ed->k.letter) {
    case '\r':
    case '\n': insert(ed, "\n", 1); break;
    case 'b': e->at = edit_word_left(e, e->at); break;
    case 'f': e->at = edit_word_right(e, e->at); break;
    case 'd': edit_cut(e, edit_word_right(e, e->at), 1); break;
    case '\b':
    case 0x7F: edit_cut(e, edit_word_left(e, e->at), 1); break;
    case '<': show_entry(ed, 0 < ed->past->n ? 0 : ed->past->n); break;
    case '>': show_entry(ed, ed->past->n); break;
    default: break;
    }
}

static void say(editor *ed, const char *text)
{
    leave(ed, GOES_ON);
    tty_write(ed->out, text, strlen(text));
    tty_write(ed->out, "\r\n", 2);
}

/* Does what a key does; GOES_ON, or how the line ended. */
static int press(editor *ed, key k)
{
    edit *e = &ed->e;
    ed->n_keys += ed->n_keys < 2;
    if (ed->searching && search_key(ed, k)) return GOES_ON;
    ed->tabs = k == KEY_CONTROL && ed->k.letter == 'I' ? ed->tabs : 0;
    switch (k) {
    case KEY_TEXT:
    case KEY_PASTE: insert(ed, ed->k.text.data ? ed->k.text.data : "", ed->k.text.len); break;
    case KEY_PASTE_TOO_LONG:
        say(ed, "[more than 16 MiB were pasted: nothing of it is taken; /load, or a pipe, reads files]");
        break;
    case KEY_CONTROL: {
        const int outcome = control(ed);
        if (ed->k.letter == 'I') ed->tabs++;
        return outcome;
    }
    case KEY_META: meta(ed); break;
    case KEY_UP: up(ed); break;
    case KEY_DOWN: down(ed); break;
    case KEY_LEFT: e->at = edit_left(e, e->at); break;
    case KEY_RIGHT: e->at = edit_right(e, e->at); break;
    case KEY_WORD_LEFT: e->at = edit_word_left(e, e->at); break;
    case KEY_WORD_RIGHT: e->at = edit_word_right(e, e->at); break;
    case KEY_HOME: e->at = edit_line_start(e, e->at); break;
    case KEY_END: e->at = edit_line_end(e, e->at); break;
    case KEY_DELETE: edit_cut(e, edit_right(e, e->at), 0); break;
    case KEY_NONE:
    case KEY_OTHER: break;
    }
    return GOES_ON;
}

/* Bytes of the terminal; 0 when it is gone. */
static int take_bytes(editor *ed)
{
    char bytes[4096];
    const ssize_t n = read(ed->in, bytes, sizeof bytes);
    if (n < 0) return errno == EINTR || errno == EAGAIN;
    keys_feed(&ed->k, bytes, (size_t)n);
    return n > 0;
}

/* Waits, with the line drawn; GOES_ON, or how it ended. */
static int wait_for_keys(editor *ed)
{
    int events = tty_wait(0);
    if (!(events & TTY_INPUT) || events & ~TTY_INPUT) {
        if (events & TTY_WENT_ON) ed->d.n_rows = ed->d.row = ed->d.column = 0;
        redraw(ed, ed->e.at);
        if (!events) events = tty_wait(-1);
    }
    if (events & TTY_WENT_ON) ed->d.n_rows = ed->d.row = ed->d.column = 0;
    if (events & (TTY_WENT_ON | TTY_RESIZED)) redraw(ed, ed->e.at);
    if (events & TTY_SIGNALLED) return interrupt(ed);
    return events & TTY_INPUT && !take_bytes(ed) ? leave(ed, EDIT_END) : GOES_ON;
}

edit_outcome editor_read(editor *ed, const char *prompt, char **text, size_t *n)
{
    int outcome = GOES_ON;
    ed->prompt = prompt;
    ed->at_entry = ed->past->n;
    ed->searching = ed->tabs = ed->n_keys = 0;
    edit_set(&ed->e, "", 0);
    tty_set(TTY_KEYS);
    while (outcome == GOES_ON) {
        const key k = keys_next(&ed->k);
        outcome = k == KEY_NONE ? wait_for_keys(ed) : press(ed, k);
    }
    tty_set(TTY_QUIET);
    *text = NULL;
    *n = ed->e.text.len;
    if (outcome == EDIT_LINE && (*text = malloc(*n + 1))) {
        memcpy(*text, text_of(ed), *n);
        (*text)[*n] = 0;
    }
    return (edit_outcome)outcome;
}
