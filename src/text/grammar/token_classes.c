// SPDX-License-Identifier: Apache-2.0
/* token_classes.c: classes of characters, those of each subtree of the trie, and sets of tokens by them
 * (token_classes.h). */
#include "text/grammar/token_classes.h"

#include <string.h>

#include "base/alloc.h"
#include "text/grammar/token_trie.h"

/* Runs of letters and digits that patterns tell apart; all other printable characters, and the usual white space, are
 * classes by themselves. */
static const struct {
    unsigned char first, last;
} runs[] = {{'0', '9'}, {'a', 'f'}, {'g', 'z'}, {'A', 'F'}, {'G', 'Z'}};
static const char alone[] = " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\t\n\r";
enum { N_RUNS = sizeof runs / sizeof *runs, N_ALONE = sizeof alone - 1 };

int weft__gram_class_bytes(int number, unsigned char *first, unsigned char *last)
{
    if (number < N_RUNS) {
        *first = runs[number].first;
        *last = runs[number].last;
    } else if (number < N_RUNS + N_ALONE) {
        *first = *last = (unsigned char)alone[number - N_RUNS];
    }
    return number < N_RUNS + N_ALONE;
}

/* An ASCII character's class. */
static int class_of(unsigned char byte)
{
    unsigned char first, last;
    for (int i = 0; weft__gram_class_bytes(i, &first, &last); i++)
        if (byte >= first && byte <= last) return i;
    return WEFT__GRAM_BROKEN_CLASS;
}

/* A token's bytes so far: which byte goes on with the character that was begun. */
typedef struct reading {
    uint8_t left;   /* bytes of it that are to come */
    uint8_t lo, hi; /* of which the next is one of these */
    uint8_t broken;
} reading;

/* The table of well-formed byte sequences of the Unicode standard (3.9, D92). */
static reading read_byte(reading r, unsigned char byte)
{
    if (r.left && (byte < r.lo || byte > r.hi)) r.broken = 1;
    if (r.broken) return r;
    if (r.left) return (reading){(uint8_t)(r.left - 1), 0x80, 0xBF, 0};
    if (byte < 0x80) return (reading){0};
    if (byte < 0xC2 || byte > 0xF4) return (reading){.broken = 1};
    return (reading){byte < 0xE0   ? 1
                     : byte < 0xF0 ? 2
                                   : 3,
                     byte == 0xE0   ? 0xA0
                     : byte == 0xF0 ? 0x90
                                    : 0x80,
                     byte == 0xED   ? 0x9F
                     : byte == 0xF4 ? 0x8F
                                    : 0xBF,
                     0};
}

/* at[d]: what was read at depth d; there is room for max_depth and one. */
static void fill_own(const weft__gram_trie *t, weft__gram_subtree *out, reading *at)
{
    uint8_t classes[128];
    for (int byte = 0; byte < 128; byte++) classes[byte] = (uint8_t)class_of((unsigned char)byte);
    at[0] = (reading){0};
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const weft__gram_trie_node *node = &t->nodes[i];
        reading r = at[node->depth] = read_byte(at[node->depth - 1], node->byte);
        int own = r.broken ? WEFT__GRAM_BROKEN_CLASS : node->byte < 128 ? classes[node->byte] : WEFT__GRAM_WIDE_CLASS;
        out[i] = (weft__gram_subtree){(uint64_t)1 << own, 1, (uint8_t)own};
    }
}

weft__gram_subtree *weft__gram_subtrees_make(const weft__gram_trie *t)
{
    weft__gram_subtree *out = weft__alloc_array(t->n_nodes, sizeof *out);
    reading *at = weft__alloc_array((size_t)t->max_depth + 1, sizeof *at);
    if (out && at) {
        fill_own(t, out, at);
        for (uint32_t i = t->n_nodes; i-- > 0;) { /* those below a node come before it */
            const weft__gram_trie_node *node = &t->nodes[i];
            if (node->parent == i) continue;
            weft__gram_subtree *above = &out[node->parent];
            unsigned n = out[i].n + (unsigned)weft__gram_begins_char(node->byte);
            above->classes |= out[i].classes;
            if (n > above->n) above->n = (uint8_t)(n < WEFT__GRAM_ANY_LENGTH ? n : WEFT__GRAM_ANY_LENGTH);
        }
    } else {
        weft__free(out);
        out = NULL;
    }
    weft__free(at);
    return out;
}

/* ---- sets ---- */

static void put(uint64_t *bits, int32_t token)
{
    bits[token >> 6] |= (uint64_t)1 << (token & 63);
}

/* Of each token its characters, or ANY_LENGTH, as in a subtree. at[d]: those at depth d. */
static void count_characters(const weft__gram_trie *t, uint8_t *lengths, uint32_t *at)
{
    at[0] = 0;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const weft__gram_trie_node *node = &t->nodes[i];
        const uint32_t n = at[node->depth] = at[node->depth - 1] + (uint32_t)weft__gram_begins_char(node->byte);
        for (uint32_t k = node[0].token; k < node[1].token; k++)
            lengths[t->ids[k]] = (uint8_t)(n < WEFT__GRAM_ANY_LENGTH ? n : WEFT__GRAM_ANY_LENGTH);
    }
}

int weft__gram_token_lengths_make(weft__gram_token_lengths *l, const weft__gram_trie *t)
{
    size_t n_of[WEFT__GRAM_ANY_LENGTH + 1] = {0}, n_rows = 1;
    uint8_t *lengths = weft__alloc_array((size_t)t->n_tokens, sizeof *lengths);
    uint32_t *at = weft__alloc_array((size_t)t->max_depth + 1, sizeof *at);
    *l = (weft__gram_token_lengths){.n_words = ((size_t)t->n_tokens + 63) / 64};
    if (lengths && at) {
        count_characters(t, lengths, at);
        for (uint32_t k = 0; k < t->nodes[t->n_nodes].token; k++) n_of[lengths[t->ids[k]]]++;
        for (int n = 1; n < WEFT__GRAM_ANY_LENGTH; n++) l->row[n] = (uint8_t)(n_of[n] ? n_rows++ : n_rows - 1);
        l->bits = weft__alloc_zero(n_rows * l->n_words, sizeof *l->bits);
    }
    for (uint32_t k = 0; l->bits && k < t->nodes[t->n_nodes].token; k++) {
        const int32_t token = t->ids[k];
        if (lengths[token] < WEFT__GRAM_ANY_LENGTH) put(l->bits + l->row[lengths[token]] * l->n_words, token);
    }
    for (size_t i = l->n_words; l->bits && i < n_rows * l->n_words; i++) l->bits[i] |= l->bits[i - l->n_words];
    weft__free(at);
    weft__free(lengths);
    return l->bits != NULL;
}

void weft__gram_token_lengths_free(weft__gram_token_lengths *l)
{
    weft__free(l->bits);
}

/* Whole subtrees where they are of the set; else node by node, as far down as a way is of its classes. */
static weft__gram_token_set *make_set(const weft__gram_trie *t, uint64_t classes)
{
    weft__gram_token_set *set = weft__alloc_zero(1, sizeof *set + t->lengths.n_words * sizeof *set->bits);
    if (!set) return NULL;
    set->classes = classes;
    for (uint32_t i = 0, end; i < t->n_nodes; i = end) {
        const weft__gram_subtree *below = &t->subtrees[i];
        end = t->nodes[i].next;
        if (!(classes >> below->own & 1)) continue;
        if (below->classes & ~classes) end = i + 1;
        for (uint32_t k = t->nodes[i].token; k < t->nodes[end].token; k++) put(set->bits, t->ids[k]);
    }
    return set;
}

/* Two threads may make the same; the loser's is dropped. */
const weft__gram_token_set *weft__gram_token_sets_get(weft__gram_token_sets *sets, const weft__gram_trie *t,
                                                      uint64_t classes)
{
    weft__gram_token_set *made = NULL;
    for (size_t i = 0; i < WEFT__GRAM_MAX_TOKEN_SETS; i++) {
        weft__gram_token_set *set = atomic_load_explicit(&sets->all[i], memory_order_acquire);
        if (!set) {
            if (!made && !(made = make_set(t, classes))) return NULL;
            if (atomic_compare_exchange_strong(&sets->all[i], &set, made)) return made;
        }
        if (set->classes != classes) continue;
        weft__free(made);
        return set;
    }
    weft__free(made);
    return NULL;
}

size_t weft__gram_token_sets_bytes(const weft__gram_token_sets *sets, const weft__gram_trie *t)
{
    size_t n = 0;
    while (n < WEFT__GRAM_MAX_TOKEN_SETS && atomic_load(&sets->all[n])) n++;
    return n * (sizeof(weft__gram_token_set) + t->lengths.n_words * sizeof(uint64_t));
}

void weft__gram_token_sets_free(weft__gram_token_sets *sets)
{
    for (size_t i = 0; i < WEFT__GRAM_MAX_TOKEN_SETS; i++) weft__free(atomic_load(&sets->all[i]));
}
