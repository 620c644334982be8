// SPDX-License-Identifier: Apache-2.0
/* walk.c: which tokens fit from a place in a grammar on: the trie of the vocabulary, node by node (matcher_parts.h). */
#include "base/alloc.h"
#include "text/grammar/matcher_parts.h"

/* Of several ways one that takes what follows is enough, but not where the others' ends are looked for. */
static void enter(const weft__gram_matcher *m, weft__gram_level *l, weft__gram_set set, uint32_t n_in_set, int escapes)
{
    const weft__gram_run *r = &m->run;
    *l = (weft__gram_level){set, r->n_frames, r->n_links, {0}, n_in_set};
    for (size_t i = set.begin; i < set.end; i++) {
        const weft__gram_span *span = &m->g->spans[r->ways[i].state];
        const uint64_t reads = l->span.reads | span->reads;
        if (span->n > l->span.n && (!escapes || set.end == set.begin + 1)) l->span = *span;
        l->span.reads = reads;
    }
}

/* A step, but for a character of a class that no way reads. */
static weft__gram_set step_if_read(weft__gram_run *r, const weft__gram_level *l, unsigned char byte, int own)
{
    if (l->span.reads >> own & 1) return weft__gram_run_step(r, l->set, byte);
    if (r->work) r->work--;
    else r->status = WEFT_LIMIT;
    return (weft__gram_set){r->n_ways, r->n_ways, 0};
}

/* How many characters there are with the one of this node, where `n` are above it; UINT32_MAX: not of the set. */
static uint32_t count_in_set(const weft__gram_text_tokens *text, uint32_t n, const weft__gram_trie_node *node, int own)
{
    if (!text || n == UINT32_MAX || !(text->set->classes >> own & 1)) return UINT32_MAX;
    return n + (uint32_t)weft__gram_begins_char(node->byte);
}

/* Is all of the node's subtree of the set's classes, and what is above it too? */
static int is_of_set(const weft__gram_text_tokens *text, const weft__gram_level *above, const weft__gram_subtree *below)
{
    return text && above->n_in_set != UINT32_MAX && !(below->classes & ~text->set->classes);
}

/* Allows the tokens of the node's subtree, which all fit; those of the set are allowed already. It is work like
 * looking at an edge for each few of them. */
static void allow_subtree(weft__gram_matcher *m, uint32_t i, const weft__gram_level *above,
                          const weft__gram_text_tokens *text, uint64_t *bits)
{
    enum { FEW = 8 };
    const weft__gram_trie *t = m->g->trie;
    const weft__gram_subtree *below = &t->subtrees[i];
    if (is_of_set(text, above, below) && above->n_in_set + below->n <= text->n) return;
    const uint32_t begin = t->nodes[i].token, end = t->nodes[t->nodes[i].next].token, work = (end - begin) / FEW;
    if (work > m->run.work) {
        m->run.status = WEFT_LIMIT;
        return;
    }
    m->run.work -= work;
    for (uint32_t k = begin; k < end; k++) weft__gram_allow(bits, t->ids[k]);
}

void weft__gram_walk(weft__gram_matcher *m, weft__gram_set start, uint32_t from, uint32_t to, uint32_t base,
                     uint64_t *bits, const weft__gram_text_tokens *text, int exact, int escapes)
{
    const weft__gram_trie *t = m->g->trie;
    weft__gram_run *r = &m->run;
    enter(m, &m->levels[0], start, 0, escapes);
    for (uint32_t i = from; i < to && !r->status;) {
        const weft__gram_trie_node *node = &t->nodes[i];
        const weft__gram_subtree *below = &t->subtrees[i];
        weft__gram_level *l = &m->levels[node->depth - base];
        int fits = !(below->classes & ~l[-1].span.classes) && below->n <= l[-1].span.n;
        if (fits) allow_subtree(m, i, &l[-1], text, bits);
        if (fits || (exact && is_of_set(text, &l[-1], below))) {
            i = node->next;
            continue;
        }
        weft__gram_cut(r, l - 1);
        weft__gram_set set = step_if_read(r, &l[-1], node->byte, below->own);
        if (set.begin == set.end && !set.done) {
            i = node->next;
            continue;
        }
        enter(m, l, set, count_in_set(text, l[-1].n_in_set, node, below->own), escapes);
        for (uint32_t k = node[0].token; k < node[1].token; k++) weft__gram_allow(bits, t->ids[k]);
        if (escapes && set.done && node->next > i + 1) {
            if (weft__grow(&m->escapes, &m->escapes_capacity, m->n_escapes + 1, sizeof *m->escapes))
                m->escapes[m->n_escapes++] = i;
            else if (!r->status) r->status = WEFT_NO_MEMORY;
        }
        i = set.begin == set.end ? node->next : i + 1;
    }
    weft__gram_cut(r, &m->levels[0]);
}
