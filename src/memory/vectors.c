// SPDX-License-Identifier: Apache-2.0
/* vectors.c: memories found by embeddings beside their words (memory.h). Vectors are in memory alone, each beside its
 * item, and go with it. A cosine counts less the mean of the items', so that what is as near as any adds nothing. With
 * the lock of the tenant's index. */
#include <string.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/hash.h"
#include "base/text.h"
#include "memory/parts.h"

enum { VECTOR_BYTES = 4 << 20 /* of a tenant; where they would be more, words find alone */ };

/* So many points of BM25 is a cosine of 1 worth (docs/howto/memory.md). */
#define COSINE_WORTH 10

static const float *asked_find(const memory_tenant *t, uint64_t of)
{
    for (size_t i = 0; i < MEMORY_ASKED; i++)
        if (t->asked[i].vector && t->asked[i].of == of) return t->asked[i].vector;
    return NULL;
}

/* In the place of the oldest; takes the vector, or with NULL nothing. */
static void asked_keep(memory_tenant *t, uint64_t of, float *vector)
{
    struct memory_asked *place = &t->asked[t->next_asked];
    if (!vector) return;
    weft__free(place->vector);
    *place = (struct memory_asked){of, vector};
    t->next_asked = (t->next_asked + 1) % MEMORY_ASKED;
}

void weft__memory_vectors_stale(memory_tenant *t)
{
    weft__search_vectors_free(&t->vectors);
    weft__free(t->mean);
    t->mean = NULL;
}

void weft__memory_vectors_free(memory_tenant *t)
{
    weft__memory_vectors_stale(t);
    for (size_t i = 0; i < MEMORY_ASKED; i++) {
        weft__free(t->asked[i].vector);
        t->asked[i].vector = NULL;
    }
    for (size_t i = 0; i < t->n; i++) {
        weft__free(t->items[i].vector);
        t->items[i].vector = NULL;
    }
    t->dims = 0;
}

void weft__memory_vectors_move(memory_tenant *from, memory_tenant *to)
{
    size_t at = 0;
    to->dims = from->dims;
    to->next_asked = from->next_asked;
    memcpy(to->asked, from->asked, sizeof to->asked);
    memset(from->asked, 0, sizeof from->asked);
    for (size_t i = 0; i < to->n; i++) { /* both are by number */
        memory_item *item = &to->items[i], *old;
        while (at < from->n && from->items[at].number < item->number) at++;
        if (at == from->n) return;
        old = &from->items[at];
        if (old->number != item->number || strcmp(old->key, item->key) || strcmp(old->text, item->text)) continue;
        item->vector = old->vector;
        old->vector = NULL;
    }
}

/* ---- what lacks one ---- */

static int add_lack(weft__memory_lack *out, int64_t number, const char *key, const char *text, size_t n)
{
    weft__strbuf all = {0};
    if (*key) {
        weft__strbuf_puts(&all, key);
        weft__strbuf_putc(&all, '\n');
    }
    weft__strbuf_put(&all, text, n);
    if (all.failed) {
        weft__strbuf_free(&all);
        return 0;
    }
    out->texts[out->n] = (weft__memory_text){.number = number, .text = all.data, .n = all.len};
    out->n++;
    return 1;
}

static int fits(const memory_tenant *t)
{
    return !t->dims || t->n * (size_t)t->dims * sizeof(float) <= VECTOR_BYTES;
}

weft_status weft__memory_lacking_of(const memory_tenant *t, const char *question, size_t n, weft__memory_lack *out,
                                    weft_error *err)
{
    int ok = 1;
    *out = (weft__memory_lack){.asked_of = weft__hash(question, n)};
    if (t->n < 2 || !n || !fits(t)) return WEFT_OK; /* one is the mean itself */
    if (!asked_find(t, out->asked_of)) ok = add_lack(out, 0, "", question, n);
    for (size_t i = 0; ok && i < t->n && out->n < WEFT__MEMORY_LACKING; i++)
        if (!t->items[i].vector)
            ok = add_lack(out, t->items[i].number, t->items[i].key, t->items[i].text, strlen(t->items[i].text));
    if (ok) return WEFT_OK;
    weft__memory_lack_free(out);
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for memories");
}

void weft__memory_lack_free(weft__memory_lack *lack)
{
    for (size_t i = 0; i < lack->n; i++) weft__free(lack->texts[i].text);
    lack->n = 0;
}

static int has_length(const float *x, int dims)
{
    int d = 0;
    while (d < dims && x[d] == 0) d++;
    return d < dims;
}

static float *copy_of(const float *x, int dims)
{
    float *out = weft__alloc_array((size_t)dims, sizeof *out);
    if (out) memcpy(out, x, (size_t)dims * sizeof *out);
    return out;
}

/* Is it still what was embedded? */
static int is_text_of(const memory_item *item, const weft__memory_text *text)
{
    const size_t n_key = *item->key ? strlen(item->key) + 1 : 0;
    return item->number == text->number && text->n == n_key + strlen(item->text) &&
           (!n_key || !memcmp(text->text, item->key, n_key - 1)) &&
           !memcmp(text->text + n_key, item->text, text->n - n_key);
}

void weft__memory_attach_to(memory_tenant *t, const weft__memory_lack *lack, const float *vectors, int dims)
{
    size_t at = 0;
    if (t->n < 2) return; /* they have gone meanwhile */
    if (t->dims != dims) weft__memory_vectors_free(t);
    t->dims = dims;
    for (size_t i = 0; i < lack->n && fits(t); i++) {
        const weft__memory_text *text = &lack->texts[i];
        const float *x = vectors + i * (size_t)dims;
        if (!has_length(x, dims)) continue;
        if (!text->number) {
            if (!asked_find(t, lack->asked_of)) asked_keep(t, lack->asked_of, copy_of(x, dims));
            continue;
        }
        while (at < t->n && t->items[at].number < text->number) at++;
        if (at < t->n && !t->items[at].vector && is_text_of(&t->items[at], text))
            t->items[at].vector = copy_of(x, dims);
    }
}

/* ---- finding ---- */

/* x - mean of the tenant's, in `out`. */
static void less_mean(const memory_tenant *t, const float *x, float *out)
{
    for (int d = 0; d < t->dims; d++) out[d] = x[d] - t->mean[d];
}

static int make_mean(memory_tenant *t)
{
    t->mean = weft__alloc_array((size_t)t->dims, sizeof *t->mean);
    if (!t->mean) return 0;
    for (int d = 0; d < t->dims; d++) {
        double sum = 0;
        for (size_t i = 0; i < t->n; i++) sum += (double)t->items[i].vector[d];
        t->mean[d] = (float)(sum / (double)t->n);
    }
    return 1;
}

/* Where all items have a vector. WEFT_OK with t->vectors NULL: they have not. */
static weft_status vectors_ready(memory_tenant *t, float *scratch, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (size_t i = 0; i < t->n; i++)
        if (!t->items[i].vector) return WEFT_OK;
    if (t->vectors) return WEFT_OK;
    if (!make_mean(t)) return weft_fail(err, WEFT_NO_MEMORY, "no memory for memories");
    st = weft__search_vectors_new(t->dims, weft__tier_mask(), &t->vectors, err);
    for (size_t i = 0; !st && i < t->n; i++) {
        less_mean(t, t->items[i].vector, scratch);
        st = weft__search_vectors_add(t->vectors, (uint64_t)t->items[i].number, scratch, err);
        if (st == WEFT_ARGUMENT) st = WEFT_OK; /* it is the mean itself: as near as any to everything */
    }
    if (st) weft__memory_vectors_stale(t);
    return st;
}

/* By both: points of BM25, and of cosines what they are worth. */
static weft_status find_both(memory_tenant *t, const char *question, size_t n, const float *x, weft__search_hit *room,
                             weft__search_top *top, weft_error *err)
{
    static const double worth[] = {1, COSINE_WORTH};
    weft__search_top by[2];
    for (int l = 0; l < 2; l++)
        by[l] = (weft__search_top){.hits = room + (size_t)l * WEFT__SEARCH_HITS,
                                   .most = WEFT__SEARCH_HITS,
                                   .filter = top->filter,
                                   .arg = top->arg};
    weft_status st = weft__search_words_find(t->words, question, n, &by[0], err);
    if (!st) st = weft__search_vectors_find(t->vectors, x, 1, &by[1], err);
    if (st) return st;
    const weft__search_hit *const lists[] = {by[0].hits, by[1].hits};
    return weft__search_sum(lists, (const size_t[]){by[0].n, by[1].n}, worth, 2, top, err);
}

weft_status weft__memory_find(memory_tenant *t, const char *question, size_t n, weft__search_top *top, weft_error *err)
{
    const float *asked = t->n > 1 ? asked_find(t, weft__hash(question, n)) : NULL;
    if (!asked) return weft__search_words_find(t->words, question, n, top, err);
    float *x = weft__alloc_array((size_t)t->dims, sizeof *x);
    weft__search_hit *room = weft__alloc_array(2 * (size_t)WEFT__SEARCH_HITS, sizeof *room);
    weft_status st = x && room ? vectors_ready(t, x, err) : weft_fail(err, WEFT_NO_MEMORY, "no memory for a search");
    if (!st && t->vectors) {
        less_mean(t, asked, x);
        st = find_both(t, question, n, x, room, top, err);
        if (st == WEFT_ARGUMENT) /* it is the mean itself: as near to all */
            st = weft__search_words_find(t->words, question, n, top, err);
    } else if (!st) {
        st = weft__search_words_find(t->words, question, n, top, err);
    }
    weft__free(room);
    weft__free(x);
    return st;
}
