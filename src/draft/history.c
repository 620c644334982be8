// SPDX-License-Identifier: Apache-2.0
/* history.c: suffix indices (draft.h). Invariant: position p is in the window while end - p is 1 .. capacity, counted
 * modulo 2^32; a chain may name positions that have left it, and ends there. Owner: one thread. */
#include <string.h>

#include "base/alloc.h"
#include "draft/draft.h"

enum { CUT = -1, CHAINS = 2, MAX_CAPACITY = 1 << 24, PLACES = 16 /* compared for one draft, of each chain */ };
static const int32_t ending[CHAINS] = {2, 6}; /* tokens that the places of a chain have in common */
enum { ENOUGH = 12 };                         /* tokens in common beyond which more say nothing more */

struct weft__draft_history {
    uint32_t mask, end; /* of the window; tokens added so far */
    int32_t run;        /* of them, since the last cut; no more than are compared */
    int32_t *token;     /* [mask + 1] */
    /* Positions plus one, 0: none. By ending; by position: the one before with the same ending. */
    uint32_t *head[CHAINS], *before[CHAINS];
};

weft__draft_history *weft__draft_history_new(int32_t n_tokens)
{
    size_t capacity = 16;
    weft__draft_history *h = weft__alloc_zero(1, sizeof *h);
    if (!h) return NULL;
    while (capacity < (size_t)n_tokens && capacity < MAX_CAPACITY) capacity *= 2;
    h->mask = (uint32_t)(capacity - 1);
    h->token = weft__alloc_zero(capacity, sizeof *h->token);
    int ok = h->token != NULL;
    for (int c = 0; c < CHAINS; c++) {
        h->head[c] = weft__alloc_zero(capacity, sizeof **h->head);
        h->before[c] = weft__alloc_array(capacity, sizeof **h->before);
        ok = ok && h->head[c] && h->before[c];
    }
    if (!ok) weft__draft_history_free(&h);
    return h;
}

void weft__draft_history_free(weft__draft_history **p)
{
    weft__draft_history *h = p ? *p : NULL;
    if (!h) return;
    for (int c = CHAINS - 1; c >= 0; c--) {
        weft__free(h->before[c]);
        weft__free(h->head[c]);
    }
    weft__free(h->token);
    weft__free(h);
    *p = NULL;
}

uint64_t weft__draft_history_bytes(const weft__draft_history *h)
{
    return h ? sizeof *h + ((uint64_t)h->mask + 1) * (sizeof *h->token + 2 * (uint64_t)CHAINS * sizeof **h->head) : 0;
}

/* Of the n tokens that end at last[0]. */
static uint32_t hash_ending(const weft__draft_history *h, const int32_t *last, int32_t n)
{
    uint64_t x = 0;
    for (int32_t i = 0; i < n; i++) x = (x ^ (uint32_t)last[i - n + 1]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(x >> 32) & h->mask;
}

static void add_token(weft__draft_history *h, int32_t token)
{
    int32_t last[8];
    const uint32_t at = h->end & h->mask;
    h->token[at] = token;
    if (h->run < WEFT__DRAFT_DEPTH) h->run++;
    for (uint32_t i = 0; i < 8; i++) last[i] = h->token[(h->end - 7 + i) & h->mask];
    for (int c = 0; c < CHAINS; c++) {
        if (h->run < ending[c]) continue;
        uint32_t *head = &h->head[c][hash_ending(h, &last[7], ending[c])];
        h->before[c][at] = *head;
        *head = h->end + 1;
    }
    h->end++;
}

void weft__draft_history_add(weft__draft_history *h, const int32_t *tokens, int32_t n)
{
    for (int32_t i = 0; i < n; i++) add_token(h, tokens[i]);
}

void weft__draft_history_cut(weft__draft_history *h)
{
    h->token[h->end++ & h->mask] = CUT;
    h->run = 0;
}

/* ---- drafts ---- */

typedef struct found {
    uint32_t at[PLACES]; /* positions at which endings like the context's end, the latest first */
    int32_t length[PLACES];
    int n, best;
} found;

/* How many tokens before and at position p are those of the context's end. */
static int32_t common_ending(const weft__draft_history *h, uint32_t p, const int32_t *context, int32_t n)
{
    int32_t most = n < WEFT__DRAFT_DEPTH ? n : WEFT__DRAFT_DEPTH, i = 0;
    uint32_t room = h->mask + 1 - (h->end - p); /* positions of the window before p */
    if ((uint32_t)most > room + 1) most = (int32_t)(room + 1);
    while (i < most && h->token[(p - (uint32_t)i) & h->mask] == context[n - 1 - i]) i++;
    return i;
}

static void look_in(const weft__draft_history *h, int chain, const int32_t *context, int32_t n, found *f)
{
    if (n < ending[chain]) return;
    uint32_t p1 = h->head[chain][hash_ending(h, &context[n - 1], ending[chain])];
    for (int tries = 0; p1 && tries < PLACES; tries++) {
        const uint32_t p = p1 - 1, behind = h->end - p;
        if (behind == 0 || behind > h->mask + 1) break; /* it has left the window */
        p1 = h->before[chain][p & h->mask];
        if (behind < 2 || h->token[(p + 1) & h->mask] == CUT) continue; /* nothing follows */
        const int32_t length = common_ending(h, p, context, n);
        if (length < ending[chain]) continue; /* another ending with this hash */
        f->at[f->n] = p;
        f->length[f->n++] = length;
        if (length > f->best) f->best = length;
    }
}

/* Only those that have as much in common as the best has, or enough. */
static void keep_best(found *f)
{
    int n = 0, least = f->best < ENOUGH ? f->best : ENOUGH;
    for (int i = 0; i < f->n; i++)
        if (f->length[i] >= least) f->at[n++] = f->at[i];
    f->n = n;
}

/* The token that follows most of the places; these are the ones that it follows then. 0: none does. */
static int follow(const weft__draft_history *h, found *f, int32_t *token, float *p)
{
    int32_t next[PLACES];
    int n = 0, best = -1, most = 0, kept = 0;
    for (int i = 0; i < f->n; i++) {
        const uint32_t at = f->at[i] + 1;
        if (h->end - at == 0 || h->token[at & h->mask] == CUT) continue;
        f->at[n] = at;
        next[n++] = h->token[at & h->mask];
    }
    for (int i = 0; i < n; i++) {
        int count = 0;
        for (int k = i; k < n; k++) count += next[k] == next[i];
        if (count > most) most = count, best = i;
    }
    if (best < 0) return 0;
    *token = next[best];
    *p = (float)most / (float)n;
    for (int i = 0; i < n; i++)
        if (next[i] == *token) f->at[kept++] = f->at[i];
    f->n = kept;
    return 1;
}

/* *first: where the first token of the draft stands, when there is one. */
static void propose(const weft__draft_history *h, const int32_t *context, int32_t n, int32_t most, weft__draft *out,
                    uint32_t *first)
{
    found f = {.n = 0};
    out->n = out->matched = 0;
    for (int c = CHAINS - 1; c >= 0 && !f.n; c--) look_in(h, c, context, n, &f);
    if (!f.n) return;
    keep_best(&f);
    out->matched = f.best;
    if (most > WEFT__DRAFT_MOST) most = WEFT__DRAFT_MOST;
    if (f.best < ENOUGH && most > f.best) most = f.best;
    while (out->n < most && follow(h, &f, &out->token[out->n], &out->p[out->n]))
        if (!out->n++) *first = f.at[0];
}

void weft__draft_history_propose(const weft__draft_history *h, const int32_t *context, int32_t n, int32_t most,
                                 weft__draft *out)
{
    uint32_t first;
    propose(h, context, n, most, out, &first);
}

/* ---- a text that is expected ---- */

struct weft__draft_expected {
    weft__draft_history *index;
    int32_t *token; /* [n] */
    int32_t n;
    int32_t at, seen; /* the place that the answer has come to, with `seen` of its tokens looked at */
    int32_t streak;   /* how many of the last were the expected ones */
};

weft__draft_expected *weft__draft_expected_new(const int32_t *tokens, int32_t n)
{
    weft__draft_expected *x = weft__alloc_zero(1, sizeof *x);
    if (!x) return NULL;
    x->token = weft__alloc_array((size_t)n, sizeof *x->token);
    x->index = weft__draft_history_new(n);
    if (!x->token || !x->index) {
        weft__draft_expected_free(&x);
        return NULL;
    }
    memcpy(x->token, tokens, (size_t)n * sizeof *tokens);
    x->n = n;
    x->streak = ENOUGH; /* it is expected from its beginning on */
    weft__draft_history_add(x->index, tokens, n);
    return x;
}

void weft__draft_expected_free(weft__draft_expected **p)
{
    weft__draft_expected *x = p ? *p : NULL;
    if (!x) return;
    weft__draft_history_free(&x->index);
    weft__free(x->token);
    weft__free(x);
    *p = NULL;
}

uint64_t weft__draft_expected_bytes(const weft__draft_expected *x)
{
    return x ? sizeof *x + (uint64_t)x->n * sizeof *x->token + weft__draft_history_bytes(x->index) : 0;
}

void weft__draft_expected_propose(weft__draft_expected *x, const int32_t *answer, int32_t n, int32_t most,
                                  weft__draft *out)
{
    for (; x->seen < n; x->seen++, x->at++) {
        const int same = x->at < x->n && answer[x->seen] == x->token[x->at];
        x->streak = same ? (x->streak < WEFT__DRAFT_DEPTH ? x->streak + 1 : x->streak) : x->streak / 4;
    }
    if (x->streak < ENOUGH) { /* left for longer, or just now: is its end somewhere else in it? */
        uint32_t first = 0;
        propose(x->index, answer, n, most, out, &first);
        if (out->n && out->matched > x->streak) {
            x->streak = out->matched;
            x->at = (int32_t)first;
            return;
        }
    }
    out->n = 0;
    out->matched = x->streak > 1 ? x->streak : 1;
    for (; out->n < most && out->n < WEFT__DRAFT_MOST && x->at + out->n < x->n; out->n++) {
        out->token[out->n] = x->token[x->at + out->n];
        out->p[out->n] = 1;
    }
}
