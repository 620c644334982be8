// SPDX-License-Identifier: Apache-2.0
/* teach_words.c: see teach_words.h. */
#include "learn/teach_words.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "learn/teach_texts.h"

enum { SLOTS = 256 };

void weft__teach_words_free(weft__teach_words *w)
{
    weft__strbuf_free(&w->bytes);
    weft__free(w->from);
    weft__free(w->slot);
    *w = (weft__teach_words){0};
}

void weft__teach_list_free(weft__teach_list *l)
{
    weft__free(l->id);
    weft__free(l->at);
    weft__strbuf_free(&l->text);
    *l = (weft__teach_list){0};
}

/* ---- numbers of words ---- */

/* Where a word is, or belongs. */
static size_t word_slot(const weft__teach_words *w, const char *bytes, size_t n)
{
    size_t at = (size_t)weft__hash(bytes, n) & (w->n_slots - 1);
    for (; w->slot[at]; at = (at + 1) & (w->n_slots - 1)) {
        const int32_t i = w->slot[at] - 1;
        if (w->from[i + 1] - w->from[i] == n && !memcmp(w->bytes.data + w->from[i], bytes, n)) break;
    }
    return at;
}

/* Room for one word more. 0: no memory. */
static int make_room(weft__teach_words *w)
{
    if (!weft__grow(&w->from, &w->from_room, (size_t)w->n + 2, sizeof *w->from)) return 0;
    w->from[0] = 0;
    if (w->n_slots && 2 * (size_t)w->n < w->n_slots) return 1;
    const size_t n_slots = w->n_slots ? 2 * w->n_slots : SLOTS;
    int32_t *slot = weft__alloc_zero(n_slots, sizeof *slot);
    if (!slot) return 0;
    weft__free(w->slot);
    w->slot = slot;
    w->n_slots = n_slots;
    for (int32_t i = 0; i < w->n; i++)
        slot[word_slot(w, w->bytes.data + w->from[i], w->from[i + 1] - w->from[i])] = i + 1;
    return 1;
}

/* The word's number; -1: no memory. */
static int32_t number_of(weft__teach_words *w, const char *bytes, size_t n)
{
    if (!make_room(w)) return -1;
    const size_t at = word_slot(w, bytes, n);
    if (!w->slot[at]) {
        weft__strbuf_put(&w->bytes, bytes, n);
        if (w->bytes.failed) return -1;
        w->from[++w->n] = w->bytes.len;
        w->slot[at] = w->n;
    }
    return w->slot[at] - 1;
}

/* ---- words of a text ---- */

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || (unsigned char)c >= 0x80;
}

/* Behind the word that begins at i. */
static size_t end_of_word(const char *s, size_t n, size_t i)
{
    const int after_apostrophe = s[i] == '\'' && i + 1 < n && is_letter(s[i + 1]);
    if (!is_letter(s[i]) && !after_apostrophe) return i + 1;
    i++;
    while (i < n && is_letter(s[i])) i++;
    return i + (!after_apostrophe && i < n && s[i] == '\'' && (i + 1 == n || !is_letter(s[i + 1])));
}

static int put_word(weft__teach_words *w, const char *s, size_t from, size_t to, weft__teach_list *out)
{
    const int32_t id = number_of(w, s + from, to - from);
    const size_t n = (size_t)out->n;
    if (id < 0 || !weft__grow(&out->id, &out->room, n + 1, sizeof *out->id) ||
        !weft__grow(&out->at, &out->at_room, 2 * n + 2, sizeof *out->at))
        return 0;
    out->id[n] = id;
    out->at[2 * n] = (int32_t)from;
    out->at[2 * n + 1] = (int32_t)to;
    out->n++;
    return 1;
}

static int split_words(weft__teach_words *w, const weft__strbuf *text, weft__teach_list *out)
{
    char *s = weft__strndup(text->data, text->len);
    int ok = s != NULL;
    for (size_t i = 0; ok && i < text->len; i++)
        if (s[i] >= 'A' && s[i] <= 'Z') s[i] = (char)(s[i] - 'A' + 'a');
    for (size_t i = 0, end; ok && i < text->len; i = end) {
        end = i + 1;
        if ((unsigned char)s[i] <= ' ') continue;
        end = end_of_word(s, text->len, i);
        ok = put_word(w, s, i, end, out);
    }
    weft__free(s);
    return ok;
}

weft_status weft__teach_words_read(weft__teach_words *w, const int32_t *ids, int32_t n, weft__teach_list *out,
                                   weft_error *err)
{
    weft_status st = n > 0 ? weft__tok_decode(w->tok, ids, (size_t)n, 0, &out->text, err) : WEFT_OK;
    if (!st && out->text.len && !split_words(w, &out->text, out)) st = weft__teach_no_memory(err);
    return st;
}
