// SPDX-License-Identifier: Apache-2.0
/* keys.c: see keys.h. Sequences are those of xterm, which the others send as well; unknown ones mean nothing and leave
 * nothing behind. Escape alone is Alt for the next key, however late that comes, so no time decides. */
#include "keys.h"

#include <string.h>

#include "edit.h"

#define PASTE_END "\x1b[201~"
enum { ESCAPE = 27, SEQUENCE_MAX = 32 };

void keys_free(keys *k)
{
    weft__strbuf_free(&k->pending);
    weft__strbuf_free(&k->text);
}

void keys_feed(keys *k, const char *bytes, size_t n)
{
    if (k->at > 0) {
        memmove(k->pending.data, k->pending.data + k->at, k->pending.len - k->at);
        k->pending.len -= k->at;
        k->at = 0;
    }
    weft__strbuf_put(&k->pending, bytes, n);
    k->pending.failed = 0;
}

/* ---- pasted blocks ---- */

/* What is pasted, with newlines at the ends of its lines: terminals send a carriage return there. */
static void even_lines(weft__strbuf *t)
{
    size_t to = 0;
    for (size_t i = 0; i < t->len; i++) {
        const int cr = t->data[i] == '\r';
        if (cr && i + 1 < t->len && t->data[i + 1] == '\n') continue;
        t->data[to++] = cr ? '\n' : t->data[i];
    }
    t->len = to;
    if (t->data) t->data[to] = 0;
}

/* Malformed bytes become U+FFFD: all that is edited is UTF-8. */
static void mend(weft__strbuf *t)
{
    weft__strbuf good = {0};
    if (!t->len || weft__utf8_valid(t->data, t->len)) return;
    for (size_t i = 0; i < t->len;) {
        uint32_t cp;
        i += weft__utf8_decode(t->data + i, t->len - i, &cp, NULL);
        weft__strbuf_put_utf8(&good, cp);
    }
    weft__strbuf_free(t);
    *t = good;
}

static key take_paste(keys *k)
{
    const char *from = k->pending.data + k->at;
    const size_t n = k->pending.len - k->at, n_end = sizeof PASTE_END - 1;
    const char *end = memmem(from, n, PASTE_END, n_end);
    const size_t n_sure = end ? (size_t)(end - from) : n < n_end ? 0 : n - n_end + 1; /* the rest may begin the end */
    if (k->text.len + n_sure > EDIT_MAX) k->too_long = 1;
    if (!k->too_long) weft__strbuf_put(&k->text, from, n_sure);
    k->at += n_sure + (end ? n_end : 0);
    if (!end) return KEY_NONE;
    k->pasting = 0;
    if (k->too_long || k->text.failed) {
        weft__strbuf_free(&k->text);
        return KEY_PASTE_TOO_LONG;
    }
    even_lines(&k->text);
    mend(&k->text);
    return KEY_PASTE;
}

/* ---- sequences ---- */

static key named(int number)
{
    switch (number) {
    case 1:
    case 7: return KEY_HOME;
    case 3: return KEY_DELETE;
    case 4:
    case 8: return KEY_END;
    default: return KEY_OTHER;
    }
}

static key lettered(int letter, int modified)
{
    switch (letter) {
    case 'A': return KEY_UP;
    case 'B': return KEY_DOWN;
    case 'C': return modified ? KEY_WORD_RIGHT : KEY_RIGHT;
    case 'D': return modified ? KEY_WORD_LEFT : KEY_LEFT;
    case 'F': return KEY_END;
    case 'H': return KEY_HOME;
    default: return KEY_OTHER;
    }
}

/* "ESC [ 1 ; 5 C" and the like: s[0..n) begins with "ESC [". */
static key take_csi(keys *k, const char *s, size_t n)
{
    int numbers[2] = {0}, i_number = 0;
    for (size_t i = 2; i < n; i++) {
        const unsigned char c = (unsigned char)s[i];
        if (c >= '0' && c <= '9') {
            if (i_number < 2 && numbers[i_number] < 10000) numbers[i_number] = 10 * numbers[i_number] + (c - '0');
        } else if (c == ';') i_number++;
        else if (c == '[' && i == 2) continue; /* the function keys of Linux' console */
        else if (c >= 0x40 && c <= 0x7E) {
            k->at += i + 1;
            if (c == '~' && numbers[0] == 200) {
                k->pasting = 1;
                k->too_long = 0;
                k->text.len = 0;
                return take_paste(k);
            }
            return c == '~' ? named(numbers[0]) : lettered(c, numbers[1] > 1);
        } else if (c < 0x20 || c > 0x3F) { /* no sequence */
            k->at += i;
            return KEY_OTHER;
        }
        if (i == SEQUENCE_MAX) {
            k->at += i + 1;
            return KEY_OTHER;
        }
    }
    return KEY_NONE;
}

static key take_escape(keys *k, const char *s, size_t n)
{
    if (n < 2) return KEY_NONE;
    if (s[1] == '[') return take_csi(k, s, n);
    if (s[1] == 'O') {
        if (n < 3) return KEY_NONE;
        k->at += 3;
        return lettered(s[2], 0);
    }
    if (s[1] == ESCAPE) { /* Alt with a key that has a sequence, or Escape twice */
        k->at++;
        return KEY_OTHER;
    }
    k->at += 2;
    k->letter = (unsigned char)s[1];
    return (unsigned char)s[1] < 0x80 ? KEY_META : KEY_OTHER;
}

/* A character as text; a byte that begins none is U+FFFD, so that it is seen. */
static key take_character(keys *k, const char *s, size_t n)
{
    uint32_t cp;
    const int length = weft__utf8_length((unsigned char)s[0]);
    size_t have = 1;
    while (have < n && (int)have < length && ((unsigned char)s[have] & 0xC0) == 0x80) have++;
    if (have == n && (int)have < length) return KEY_NONE;
    k->at += weft__utf8_decode(s, n, &cp, NULL);
    k->text.len = 0;
    weft__strbuf_put_utf8(&k->text, cp);
    return KEY_TEXT;
}

key keys_next(keys *k)
{
    const size_t n = k->pending.len - k->at;
    if (n == 0) return KEY_NONE;
    if (k->pasting) return take_paste(k);
    const char *s = k->pending.data + k->at;
    const unsigned char c = (unsigned char)s[0];
    if (c == ESCAPE) return take_escape(k, s, n);
    if (c >= 0x20 && c != 0x7F) return take_character(k, s, n);
    k->at++;
    k->letter = c == 0x7F ? '?' : c + '@';
    return KEY_CONTROL;
}
