// SPDX-License-Identifier: Apache-2.0
/* words.c: an inverted index with BM25 (search.h). Words are known by a hash of 64 bits. One thread. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "search/map.h"
#include "search/search.h"

enum {
    WORD_BYTES = 64, /* of a word that count */
    FEW = 1024,      /* places that may be empty */
    FEW_WORDS = 256, /* of an entry: most have fewer */
    LOOKED_UP = 32   /* postings that are passed in the time in which one is looked up */
};
#define GONE UINT32_MAX    /* instead of a length */
#define ROUNDED (1 + 1e-6) /* sums of what words give, in whatever order, differ by less */

typedef struct posting {
    uint32_t entry, n; /* how often it has the word */
} posting;

typedef struct word_term {
    posting *postings; /* [n], those of entries that have gone too; by entry */
    size_t n, capacity;
    size_t n_entries; /* that are there */
    uint32_t most;    /* how often an entry has had it, at most */
} word_term;

typedef struct entry {
    uint64_t id;
    uint32_t length, n_terms; /* words, different ones */
    size_t first_term;        /* in `forward` */
    int is_there;
} entry;

struct weft__search_words {
    weft__search_words_params p;
    weft__search_map ids, dictionary; /* to entries; of hashes to terms */
    word_term *terms;
    entry *entries;
    uint32_t *lengths; /* [n_entries], once more: for the many that a search passes; GONE */
    uint32_t *forward; /* terms of entries */
    size_t n_terms, cap_terms, n_entries, cap_entries, cap_lengths, n_forward, cap_forward;
    size_t n_there;
    uint64_t length; /* of those that are there */
    double mean_idf; /* Okapi's, over all words; NAN: not known now */
    /* of a search */
    double *scores;    /* [n_entries]; 0 in all between searches */
    uint32_t *touched; /* entries that have one */
    size_t n_touched, cap_scores, cap_touched;
};

/* The words of a text, sorted by hash, each with its count. */
typedef struct counted_word {
    uint64_t hash;
    uint32_t n;
} counted_word;

typedef struct counted_words {
    counted_word *items;
    size_t n, capacity;
    size_t length;
} counted_words;

static weft_status words_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for an index of words");
}

/* ---- life ---- */

weft_status weft__search_words_new(const weft__search_words_params *p, weft__search_words **out, weft_error *err)
{
    weft__search_words *w = *out = weft__alloc_zero(1, sizeof *w);
    if (!w) return words_no_memory(err);
    if (p) w->p = *p;
    if (w->p.k1 == 0 && w->p.b == 0) w->p.k1 = 1.5, w->p.b = 0.75;
    w->mean_idf = NAN;
    return WEFT_OK;
}

void weft__search_words_free(weft__search_words **p)
{
    weft__search_words *w = *p;
    if (!w) return;
    *p = NULL;
    for (size_t i = 0; i < w->n_terms; i++) weft__free(w->terms[i].postings);
    weft__search_map_free(&w->ids);
    weft__search_map_free(&w->dictionary);
    weft__free(w->terms);
    void *all[] = {w->entries, w->lengths, w->forward, w->scores, w->touched};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) weft__free(all[i]);
    weft__free(w);
}

size_t weft__search_words_count(const weft__search_words *w)
{
    return w->n_there;
}

/* ---- texts ---- */

static int is_part_of_word(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}

static int by_hash(const void *a, const void *b)
{
    const uint64_t x = ((const counted_word *)a)->hash, y = ((const counted_word *)b)->hash;
    return (x > y) - (x < y);
}

/* 0: no memory. To be freed either way. */
static int count_words(const char *text, size_t n, counted_words *out)
{
    *out = (counted_words){0};
    for (size_t i = 0; i < n;) {
        char word[WORD_BYTES];
        size_t k = 0;
        while (i < n && !is_part_of_word((unsigned char)text[i])) i++;
        for (; i < n && is_part_of_word((unsigned char)text[i]); i++)
            if (k < WORD_BYTES) word[k++] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + ('a' - 'A')) : text[i];
        if (!k) break;
        if (!weft__grow(&out->items, &out->capacity, out->n + 1, sizeof *out->items)) return 0;
        out->items[out->n++] = (counted_word){weft__hash(word, k), 1};
    }
    out->length = out->n;
    if (out->n) qsort(out->items, out->n, sizeof *out->items, by_hash);
    size_t kept = 0;
    for (size_t i = 0; i < out->n; i++) {
        if (kept && out->items[kept - 1].hash == out->items[i].hash) out->items[kept - 1].n++;
        else out->items[kept++] = out->items[i];
    }
    out->n = kept;
    return 1;
}

/* ---- adding and removing ---- */

/* The term's number, with room for one more posting; -1: no memory. */
static int64_t term_for(weft__search_words *w, uint64_t hash)
{
    int64_t at = weft__search_map_get(&w->dictionary, hash);
    if (at < 0) {
        if (!weft__grow(&w->terms, &w->cap_terms, w->n_terms + 1, sizeof *w->terms)) return -1;
        if (!weft__search_map_put(&w->dictionary, hash, (int64_t)w->n_terms)) return -1;
        at = (int64_t)w->n_terms++;
        w->terms[at] = (word_term){0};
    }
    word_term *t = &w->terms[at];
    return weft__grow(&t->postings, &t->capacity, t->n + 1, sizeof *t->postings) ? at : -1;
}

/* Room for all that an entry of these words takes; 0: no memory, and nothing that counts has changed. */
static int make_room_for(weft__search_words *w, const counted_words *words)
{
    if (!weft__search_map_room(&w->ids) ||
        !weft__grow(&w->entries, &w->cap_entries, w->n_entries + 1, sizeof *w->entries) ||
        !weft__grow(&w->lengths, &w->cap_lengths, w->n_entries + 1, sizeof *w->lengths) ||
        !weft__grow(&w->forward, &w->cap_forward, w->n_forward + words->n, sizeof *w->forward))
        return 0;
    for (size_t i = 0; i < words->n; i++) {
        const int64_t at = term_for(w, words->items[i].hash);
        if (at < 0) return 0;
        w->forward[w->n_forward + i] = (uint32_t)at;
    }
    return 1;
}

weft_status weft__search_words_add(weft__search_words *w, uint64_t id, const char *text, size_t n, weft_error *err)
{
    counted_words words;
    if (weft__search_map_get(&w->ids, id) >= 0)
        return weft_fail(err, WEFT_ARGUMENT, "the index of words has an entry %llu", (unsigned long long)id);
    if (w->n_entries >= WEFT__SEARCH_MOST)
        return weft_fail(err, WEFT_LIMIT, "an index of words has at most %d entries", WEFT__SEARCH_MOST);
    const int ok = count_words(text, n, &words) && make_room_for(w, &words);
    if (ok) {
        const uint32_t at = (uint32_t)w->n_entries++;
        w->entries[at] = (entry){.id = id,
                                 .length = (uint32_t)words.length,
                                 .n_terms = (uint32_t)words.n,
                                 .first_term = w->n_forward,
                                 .is_there = 1};
        for (size_t i = 0; i < words.n; i++) {
            word_term *t = &w->terms[w->forward[w->n_forward + i]];
            t->postings[t->n++] = (posting){at, words.items[i].n};
            t->n_entries++;
            if (t->most < words.items[i].n) t->most = words.items[i].n;
        }
        w->lengths[at] = (uint32_t)words.length;
        weft__search_map_put(&w->ids, id, at);
        w->n_forward += words.n;
        w->length += words.length;
        w->n_there++;
        w->mean_idf = NAN;
    }
    weft__free(words.items);
    return ok ? WEFT_OK : words_no_memory(err);
}

/* Entries move up to where others have gone; all of it stays in order. */
static void move_up(weft__search_words *w)
{
    size_t n = 0, n_forward = 0;
    for (size_t i = 0; i < w->n_entries; i++) {
        entry e = w->entries[i];
        if (!e.is_there) continue;
        memmove(&w->forward[n_forward], &w->forward[e.first_term], e.n_terms * sizeof *w->forward);
        e.first_term = n_forward;
        n_forward += e.n_terms;
        weft__search_map_set(&w->ids, e.id, (int64_t)n);
        w->lengths[n] = e.length;
        w->entries[n++] = e;
    }
    w->n_entries = n;
    w->n_forward = n_forward;
}

/* Without memory later. */
static void take_places_back(weft__search_words *w)
{
    uint32_t *next = weft__alloc_array(w->n_entries, sizeof *next), n = 0;
    if (!next) return;
    for (size_t i = 0; i < w->n_entries; i++) {
        next[i] = n;
        n += (uint32_t)w->entries[i].is_there;
    }
    for (size_t i = 0; i < w->n_terms; i++) {
        word_term *t = &w->terms[i];
        size_t kept = 0;
        for (size_t k = 0; k < t->n; k++)
            if (w->entries[t->postings[k].entry].is_there)
                t->postings[kept++] = (posting){next[t->postings[k].entry], t->postings[k].n};
        t->n = kept;
    }
    weft__free(next);
    move_up(w);
}

int weft__search_words_remove(weft__search_words *w, uint64_t id)
{
    const int64_t at = weft__search_map_get(&w->ids, id);
    if (at < 0) return 0;
    entry *e = &w->entries[at];
    for (uint32_t i = 0; i < e->n_terms; i++) w->terms[w->forward[e->first_term + i]].n_entries--;
    e->is_there = 0;
    w->lengths[at] = GONE;
    w->length -= e->length;
    w->n_there--;
    w->mean_idf = NAN;
    weft__search_map_remove(&w->ids, id);
    if (w->n_entries > FEW && w->n_entries > 2 * w->n_there) take_places_back(w);
    return 1;
}

/* ---- finding ---- */

static double okapi_idf(const weft__search_words *w, const word_term *t)
{
    return log((double)(w->n_there - t->n_entries) + 0.5) - log((double)t->n_entries + 0.5);
}

/* Over words that an entry has. */
static double mean_idf(weft__search_words *w)
{
    size_t n = 0;
    double sum = 0;
    if (!isnan(w->mean_idf)) return w->mean_idf;
    for (size_t i = 0; i < w->n_terms; i++)
        if (w->terms[i].n_entries) sum += okapi_idf(w, &w->terms[i]), n++;
    return w->mean_idf = n ? sum / (double)n : 0;
}

static double idf_of(weft__search_words *w, const word_term *t)
{
    const double n = (double)t->n_entries;
    if (w->p.floor == 0) return log(1 + ((double)w->n_there - n + 0.5) / (n + 0.5));
    const double idf = okapi_idf(w, t);
    return idf < 0 ? w->p.floor * mean_idf(w) : idf;
}

/* A word of the query. */
typedef struct wanted {
    const word_term *term;
    uint64_t hash;
    double weight, most; /* idf for each time that the query has it; what it gives an entry at most */
} wanted;

/* A search: its words, those first that may give the most. */
typedef struct word_search {
    weft__search_words *w;
    wanted *words;
    size_t n;
    double norms[FEW_WORDS]; /* k1 * (1 - b + b * length / mean length), by length */
    weft__search_top *top;
} word_search;

static double norm_of(const weft__search_words *w, uint32_t length)
{
    return w->p.k1 * (1 - w->p.b + w->p.b * length / ((double)w->length / (double)w->n_there));
}

static double given(const word_search *s, const wanted *q, uint32_t n, uint32_t length)
{
    const double norm = length < FEW_WORDS ? s->norms[length] : norm_of(s->w, length);
    return q->weight * n * (s->w->p.k1 + 1) / (n + norm);
}

static int by_most(const void *a, const void *b)
{
    const wanted *x = a, *y = b;
    if (x->most != y->most) return x->most < y->most ? 1 : -1;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static void put_query_words(word_search *s, const counted_words *words)
{
    weft__search_words *w = s->w;
    for (uint32_t i = 0; i < FEW_WORDS; i++) s->norms[i] = w->n_there ? norm_of(w, i) : 0;
    for (size_t i = 0; i < words->n; i++) {
        const int64_t at = weft__search_map_get(&w->dictionary, words->items[i].hash);
        if (at < 0 || !w->terms[at].n_entries) continue;
        wanted *q = &s->words[s->n++];
        *q = (wanted){.term = &w->terms[at], .hash = words->items[i].hash};
        q->weight = idf_of(w, q->term) * words->items[i].n;
        q->most = given(s, q, q->term->most, 0); /* more often, or in a shorter text, it never is */
    }
    if (s->n) qsort(s->words, s->n, sizeof *s->words, by_most);
}

/* Adds what a word of the query gives each entry; seen: of those alone that a word before it is in. */
static void score_word(word_search *s, const wanted *q, int seen)
{
    weft__search_words *w = s->w;
    for (size_t i = 0; i < q->term->n; i++) {
        const posting *p = &q->term->postings[i];
        double *score = &w->scores[p->entry];
        if ((seen && *score == 0) || w->lengths[p->entry] == GONE) continue;
        if (*score == 0) w->touched[w->n_touched++] = p->entry;
        *score += given(s, q, p->n, w->lengths[p->entry]);
        if (*score == 0) *score = DBL_TRUE_MIN; /* it was touched */
    }
}

/* Its posting by halving: they are in order; NULL: the entry has no such word. */
static const posting *posting_of(const word_term *t, uint32_t of)
{
    size_t low = 0, high = t->n;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (t->postings[mid].entry < of) low = mid + 1;
        else high = mid;
    }
    return low < t->n && t->postings[low].entry == of ? &t->postings[low] : NULL;
}

/* Most are not good enough, and their ids lie far apart. */
static void offer_touched(const weft__search_words *w, uint32_t of, weft__search_top *top)
{
    if (!top->n || top->n < top->most || w->scores[of] >= top->hits[top->n - 1].score)
        weft__search_offer(top, w->entries[of].id, w->scores[of]);
}

/* Whether the words from `next` on, which give `rest` at most, can put no entry among the best that none of the words
 * before them is in (MaxScore: Turtle, Flood 1995); *least: what the last of the best has without them. It is worth
 * looking where there are far more entries of the next word than have been seen. */
static int are_settled(const word_search *s, size_t next, double rest, double *least, int *ok)
{
    const weft__search_words *w = s->w;
    weft__search_top best = *s->top;
    *ok = 1;
    if (s->words[s->n - 1].weight < 0 || s->top->n || w->n_touched < best.most || !best.most ||
        s->words[next].term->n / 4 < w->n_touched)
        return 0;
    if (!(best.hits = weft__alloc_array(best.most, sizeof *best.hits))) return *ok = 0;
    for (size_t i = 0; i < w->n_touched; i++) offer_touched(w, w->touched[i], &best);
    const int is_full = best.n == best.most;
    *least = is_full ? best.hits[best.n - 1].score : 0;
    weft__free(best.hits);
    return is_full && *least > rest * ROUNDED;
}

static int may_be_best(const word_search *s, uint32_t of, double rest, double least)
{
    return (s->w->scores[of] + rest) * ROUNDED >= least;
}

/* A word of those alone that were seen, and of these that may come among the best: each is looked up, where they are
 * few enough that this is less than passing all that have the word. */
static void score_seen(word_search *s, const wanted *q, double rest, double least)
{
    weft__search_words *w = s->w;
    size_t n = 0;
    for (size_t i = 0; i < w->n_touched; i++) n += (size_t)may_be_best(s, w->touched[i], rest, least);
    if (n * LOOKED_UP > q->term->n) {
        score_word(s, q, 1);
        return;
    }
    for (size_t i = 0; i < w->n_touched; i++) {
        const uint32_t e = w->touched[i];
        const posting *p = may_be_best(s, e, rest, least) ? posting_of(q->term, e) : NULL;
        if (p) w->scores[e] += given(s, q, p->n, w->lengths[e]);
    }
}

/* 0: no memory. */
static int score_words(word_search *s)
{
    double rest = 0, least = 0;
    int ok = 1, settled = 0;
    for (size_t i = 0; i < s->n; i++) rest += s->words[i].most;
    for (size_t i = 0; i < s->n && ok; rest -= s->words[i++].most) {
        settled = settled || (i && are_settled(s, i, rest, &least, &ok));
        if (settled) score_seen(s, &s->words[i], rest, least);
        else if (ok) score_word(s, &s->words[i], 0);
    }
    return ok;
}

weft_status weft__search_words_find(weft__search_words *w, const char *text, size_t n, weft__search_top *top,
                                    weft_error *err)
{
    counted_words words;
    word_search s = {.w = w, .top = top};
    const size_t had = w->cap_scores;
    int ok = count_words(text, n, &words) && (s.words = weft__alloc_array(words.n + 1, sizeof *s.words)) &&
             weft__grow(&w->touched, &w->cap_touched, w->n_entries, sizeof *w->touched) &&
             weft__grow(&w->scores, &w->cap_scores, w->n_entries, sizeof *w->scores);
    if (w->cap_scores > had) memset(w->scores + had, 0, (w->cap_scores - had) * sizeof *w->scores);
    if (ok) {
        put_query_words(&s, &words);
        ok = score_words(&s);
    }
    for (size_t i = 0; i < w->n_touched; i++) {
        const uint32_t e = w->touched[i];
        if (ok) offer_touched(w, e, top);
        w->scores[e] = 0;
    }
    w->n_touched = 0;
    weft__free(s.words);
    weft__free(words.items);
    return ok ? WEFT_OK : words_no_memory(err);
}
