// SPDX-License-Identifier: Apache-2.0
/* bpe_merges.c: see bpe_merges.h. Counts of pairs are kept up to date word by word; a heap holds (count, pair) entries
 * that may be stale and are checked when they come up. All state belongs to one call. */
#include "text/tokenizer/bpe_merges.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "text/tokenizer/parts.h"

#define N_BYTES 256
#define NONE UINT32_MAX

/* Where a pair occurs: a list of words, newest first, some of which may have lost it. */
typedef struct place {
    uint32_t word, next;
} place;

typedef struct pair {
    uint64_t key; /* left << 32 | right */
    uint64_t count;
    uint32_t places; /* head of its list, or NONE */
    uint32_t stamp;  /* the merge that last changed it: it is in `changed` once */
} pair;

typedef struct bpe_merges_entry {
    uint64_t count, key;
    uint32_t pair;
} bpe_merges_entry;

/* A word's symbols are symbols[begin, begin + n); it shrinks in place. */
typedef struct bpe_merges_word {
    size_t begin;
    uint32_t n;
} bpe_merges_word;

typedef struct learner {
    const uint64_t *counts;
    uint32_t *symbols;
    bpe_merges_word *words;
    size_t n_words;
    pair *pairs;
    size_t n_pairs, pairs_capacity;
    uint32_t *slots; /* hash table over pairs: index or NONE */
    size_t n_slots;
    place *places;
    size_t n_places, places_capacity;
    bpe_merges_entry *heap;
    size_t n_heap, heap_capacity;
    uint32_t *changed;
    size_t n_changed, changed_capacity;
    uint32_t stamp;
    uint64_t min_count;
} learner;

/* ---- pairs ---- */

static size_t slot_of(uint64_t key, size_t n_slots)
{
    key *= 0x9E3779B97F4A7C15u;
    return (size_t)(key ^ key >> 32) & (n_slots - 1);
}

static int grow_slots(learner *l)
{
    size_t n = l->n_slots ? 2 * l->n_slots : 1024;
    uint32_t *slots = weft__alloc_array(n, sizeof *slots);
    if (!slots) return 0;
    memset(slots, 0xFF, n * sizeof *slots);
    for (size_t i = 0; i < l->n_pairs; i++) {
        size_t at = slot_of(l->pairs[i].key, n);
        while (slots[at] != NONE) at = (at + 1) & (n - 1);
        slots[at] = (uint32_t)i;
    }
    weft__free(l->slots);
    l->slots = slots;
    l->n_slots = n;
    return 1;
}

/* The pair's index, made when it is new; NONE when memory runs out. */
static uint32_t find_pair(learner *l, uint32_t left, uint32_t right)
{
    uint64_t key = (uint64_t)left << 32 | right;
    if (2 * l->n_pairs >= l->n_slots && !grow_slots(l)) return NONE;
    size_t at = slot_of(key, l->n_slots);
    for (; l->slots[at] != NONE; at = (at + 1) & (l->n_slots - 1))
        if (l->pairs[l->slots[at]].key == key) return l->slots[at];
    if (l->n_pairs >= NONE - 1 || !weft__grow(&l->pairs, &l->pairs_capacity, l->n_pairs + 1, sizeof *l->pairs))
        return NONE;
    l->pairs[l->n_pairs] = (pair){.key = key, .places = NONE};
    l->slots[at] = (uint32_t)l->n_pairs;
    return (uint32_t)l->n_pairs++;
}

static int note_change(learner *l, uint32_t p)
{
    if (l->pairs[p].stamp == l->stamp) return 1;
    if (!weft__grow(&l->changed, &l->changed_capacity, l->n_changed + 1, sizeof *l->changed)) return 0;
    l->changed[l->n_changed++] = p;
    l->pairs[p].stamp = l->stamp;
    return 1;
}

/* Adds what word w holds to the counts of its pairs, and w to their places. */
static int add_word(learner *l, uint32_t w)
{
    const uint32_t *s = l->symbols + l->words[w].begin;
    for (uint32_t i = 0; i + 1 < l->words[w].n; i++) {
        uint32_t p = find_pair(l, s[i], s[i + 1]);
        if (p == NONE || !note_change(l, p)) return 0;
        l->pairs[p].count += l->counts[w];
        uint32_t head = l->pairs[p].places;
        if (head != NONE && l->places[head].word == w) continue;
        if (l->n_places >= NONE - 1 || !weft__grow(&l->places, &l->places_capacity, l->n_places + 1, sizeof *l->places))
            return 0;
        l->places[l->n_places] = (place){w, head};
        l->pairs[p].places = (uint32_t)l->n_places++;
    }
    return 1;
}

/* The pairs of a word that was added are all there already. */
static int remove_word(learner *l, uint32_t w)
{
    const uint32_t *s = l->symbols + l->words[w].begin;
    for (uint32_t i = 0; i + 1 < l->words[w].n; i++) {
        uint32_t p = find_pair(l, s[i], s[i + 1]);
        if (p == NONE) return 0;
        l->pairs[p].count -= l->counts[w];
    }
    return 1;
}

/* ---- the heap: commonest first, then the smaller key ---- */

static int before(const bpe_merges_entry *a, const bpe_merges_entry *b)
{
    return a->count != b->count ? a->count > b->count : a->key < b->key;
}

static int push(learner *l, uint32_t p)
{
    if (!weft__grow(&l->heap, &l->heap_capacity, l->n_heap + 1, sizeof *l->heap)) return 0;
    bpe_merges_entry e = {l->pairs[p].count, l->pairs[p].key, p};
    size_t i = l->n_heap++;
    for (; i > 0 && before(&e, &l->heap[(i - 1) / 2]); i = (i - 1) / 2) l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = e;
    return 1;
}

static bpe_merges_entry pop(learner *l)
{
    bpe_merges_entry top = l->heap[0], e = l->heap[--l->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < l->n_heap; i = child) {
        if (child + 1 < l->n_heap && before(&l->heap[child + 1], &l->heap[child])) child++;
        if (!before(&l->heap[child], &e)) break;
        l->heap[i] = l->heap[child];
    }
    l->heap[i] = e;
    return top;
}

static int push_changed(learner *l)
{
    for (size_t i = 0; i < l->n_changed; i++)
        if (l->pairs[l->changed[i]].count >= l->min_count && !push(l, l->changed[i])) return 0;
    l->n_changed = 0;
    l->stamp++;
    return 1;
}

/* The commonest pair, or NONE; *failed is set when memory runs out. */
static uint32_t best_pair(learner *l, int *failed)
{
    while (l->n_heap) {
        bpe_merges_entry e = pop(l);
        uint64_t count = l->pairs[e.pair].count;
        if (e.count == count) return e.pair;
        if (count >= l->min_count && count < e.count && !push(l, e.pair)) {
            *failed = 1;
            return NONE;
        }
    }
    return NONE;
}

/* ---- merging ---- */

static int holds(const uint32_t *s, uint32_t n, uint32_t left, uint32_t right)
{
    for (uint32_t i = 0; i + 1 < n; i++)
        if (s[i] == left && s[i + 1] == right) return 1;
    return 0;
}

static int merge_in_word(learner *l, uint32_t w, uint32_t left, uint32_t right, uint32_t made)
{
    uint32_t *s = l->symbols + l->words[w].begin, n = l->words[w].n, out = 0;
    if (!holds(s, n, left, right)) return 1;
    if (!remove_word(l, w)) return 0;
    for (uint32_t i = 0; i < n; out++) {
        int here = i + 1 < n && s[i] == left && s[i + 1] == right;
        s[out] = here ? made : s[i];
        i += here ? 2 : 1;
    }
    l->words[w].n = out;
    return add_word(l, w);
}

/* The symbol that left and right make, new or not; -1: it may not be, -2: no memory. */
static int64_t join(weft__tok_bpe_learnt *out, uint32_t left, uint32_t right, const weft__strings *taken,
                    size_t max_bytes)
{
    weft__strbuf text = {0};
    size_t n_bytes = (size_t)out->bytes[left] + out->bytes[right];
    if (n_bytes > max_bytes) return -1;
    weft__strbuf_put(&text, weft__strings_data(&out->texts, left), weft__strings_len(&out->texts, left));
    weft__strbuf_put(&text, weft__strings_data(&out->texts, right), weft__strings_len(&out->texts, right));
    int64_t made = -2;
    if (!text.failed && weft__strings_find(taken, text.data, text.len) >= 0) {
        made = -1;
    } else if (!text.failed && (made = weft__strings_find(&out->texts, text.data, text.len)) < 0) {
        made = -2;
        if (weft__grow(&out->bytes, &out->bytes_capacity, out->texts.n + 1, sizeof *out->bytes) &&
            weft__strings_add(&out->texts, text.data, text.len, 1)) {
            made = (int64_t)out->texts.n - 1;
            out->bytes[made] = (uint32_t)n_bytes;
        }
    }
    weft__strbuf_free(&text);
    return made;
}

static int merge_pair(learner *l, uint32_t p, uint32_t made)
{
    uint32_t left = (uint32_t)(l->pairs[p].key >> 32), right = (uint32_t)l->pairs[p].key;
    for (uint32_t at = l->pairs[p].places; at != NONE; at = l->places[at].next)
        if (!merge_in_word(l, l->places[at].word, left, right, made)) return 0;
    return push_changed(l);
}

/* ---- a call ---- */

static int spell_bytes(weft__tok_bpe_learnt *out)
{
    if (!weft__grow(&out->bytes, &out->bytes_capacity, N_BYTES, sizeof *out->bytes)) return 0;
    for (int b = 0; b < N_BYTES; b++) {
        char text[4];
        if (!weft__strings_add(&out->texts, text, weft__utf8_encode(weft__tok_byte_alphabet((unsigned char)b), text),
                               1))
            return 0;
        out->bytes[b] = 1;
    }
    return 1;
}

static int take_words(learner *l, const weft__strings *words)
{
    size_t n = 0;
    l->n_words = words->n;
    l->words = weft__alloc_array(words->n, sizeof *l->words);
    l->symbols = weft__alloc_array(words->n_bytes, sizeof *l->symbols);
    if (!l->words || !l->symbols || !grow_slots(l)) return 0;
    for (size_t w = 0; w < words->n; w++) {
        const unsigned char *s = (const unsigned char *)weft__strings_data(words, w);
        l->words[w] = (bpe_merges_word){n, (uint32_t)weft__strings_len(words, w)};
        for (uint32_t i = 0; i < l->words[w].n; i++) l->symbols[n++] = s[i];
        if (!add_word(l, (uint32_t)w)) return 0;
    }
    return push_changed(l);
}

static weft_status bpe_merges_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory to learn a vocabulary");
}

weft_status weft__tok_bpe_learn(const weft__tok_bpe_lesson *lesson, weft__tok_bpe_learnt *out, weft_error *err)
{
    learner l = {.counts = lesson->counts, .stamp = 1, .min_count = lesson->min_count};
    weft_status st = spell_bytes(out) && take_words(&l, lesson->words) ? WEFT_OK : bpe_merges_no_memory(err);
    while (!st && out->texts.n < lesson->n_symbols) {
        int failed = 0;
        uint32_t p = best_pair(&l, &failed);
        if (failed) st = bpe_merges_no_memory(err);
        if (p == NONE) break;
        uint32_t left = (uint32_t)(l.pairs[p].key >> 32), right = (uint32_t)l.pairs[p].key;
        int64_t made = join(out, left, right, lesson->taken, lesson->max_bytes);
        if (made == -1) continue; /* left as two; nothing makes it a candidate again until its count changes */
        if (made < 0 || !weft__grow(&out->merges, &out->merges_capacity, out->n_merges + 1, sizeof *out->merges))
            st = bpe_merges_no_memory(err);
        if (st) break;
        out->merges[out->n_merges++] = (weft__tok_bpe_merge){left, right};
        if (!merge_pair(&l, p, (uint32_t)made)) st = bpe_merges_no_memory(err);
        if (!st && lesson->progress &&
            lesson->progress(lesson->arg, "merges", (double)out->texts.n / (double)lesson->n_symbols))
            st = weft_fail(err, WEFT_CANCELLED, "cancelled");
    }
    weft__free(l.changed);
    weft__free(l.heap);
    weft__free(l.places);
    weft__free(l.slots);
    weft__free(l.pairs);
    weft__free(l.words);
    weft__free(l.symbols);
    return st;
}

void weft__tok_bpe_learnt_free(weft__tok_bpe_learnt *learnt)
{
    weft__free(learnt->merges);
    weft__free(learnt->bytes);
    weft__strings_free(&learnt->texts);
    memset(learnt, 0, sizeof *learnt);
}
