// SPDX-License-Identifier: Apache-2.0
/* draft.h: tokens that a text may go on with, before the model was asked.
 *
 * A draft is a guess, and costs nothing but time: its tokens become rows of the request's next step, the request's own
 * sampler runs over the target's logits at each of them, and what it picks is the answer, so that the answer is the one
 * without drafts (batcher/drafts.c, engine/generate.c). Nothing here decides about a token.
 *
 *   history.c  a drafter: what followed where a text ended as this one does
 *   pool.c     histories of finished answers, by tenant and adapters
 *   policy.c   how much of a draft is worth its rows
 *
 * A drafter gets the known tokens of a text, and fills a weft__draft: tokens, each with a probability that it is right
 * if those before it are. It catches up with what has become known by itself; known tokens never change, nor does a
 * preemption take them away. What needs hidden states or pages of its own (a draft model, MTP heads, EAGLE) would get
 * them beside the tokens and give them back when its request is preempted; none does yet (docs/limits.md).
 *
 * Each of these objects belongs to one thread. */
#ifndef WEFT_DRAFT_DRAFT_H
#define WEFT_DRAFT_DRAFT_H

#include <stdint.h>

enum {
    WEFT__DRAFT_MOST = 16,  /* tokens of one draft */
    WEFT__DRAFT_DEPTH = 64, /* tokens before a place that are compared */
    WEFT__DRAFT_ROWS = 32   /* rows of a step whose time is known; with more, nothing is drafted */
};

/* Who made a draft: as enum weft_drafter (engine.h). */
enum { WEFT__DRAFT_SUFFIX, WEFT__DRAFT_PREDICTION, WEFT__DRAFT_FORCED, WEFT__DRAFT_KINDS };

typedef struct weft__draft {
    int32_t kind;
    int32_t n;
    int32_t matched; /* tokens before it that speak for it; more is better */
    int32_t token[WEFT__DRAFT_MOST];
    float p[WEFT__DRAFT_MOST]; /* of each, when those before it are right; 0..1 */
} weft__draft;

/* ---- history.c: a suffix index over the last tokens of a text ----
 * The places that end in the same two, or six, tokens form a chain, the latest first; the longest common endings among
 * the latest of them are found by comparing (as LZ77 coders find matches), and what followed them is counted. Adding a
 * token takes a fixed time, a draft at most WEFT__DRAFT_DEPTH comparisons for each of a few places, whatever the
 * text. */
typedef struct weft__draft_history weft__draft_history;

/* For the last n_tokens (rounded up to a power of two, at most 2^24) of what is added; NULL: no memory. Nothing is
 * allocated later. */
weft__draft_history *weft__draft_history_new(int32_t n_tokens);
void weft__draft_history_free(weft__draft_history **h);
uint64_t weft__draft_history_bytes(const weft__draft_history *h); /* NULL: 0 */
void weft__draft_history_add(weft__draft_history *h, const int32_t *tokens, int32_t n);
/* Copies the last tokens of the text into end[WEFT__DRAFT_DEPTH]; how many. */
int32_t weft__draft_history_end(const weft__draft_history *h, int32_t *end);
/* What is added next is another text. */
void weft__draft_history_cut(weft__draft_history *h);
/* Fills n, matched, token and p with what followed, at most `most` tokens, where a text ended as context[0, n) does. No
 * more tokens than matched, unless that is many. n 0: nothing like it. */
void weft__draft_history_propose(const weft__draft_history *h, const int32_t *context, int32_t n, int32_t most,
                                 weft__draft *out);

/* ---- a text that the answer is expected to be ----
 * Where the answer leaves it for one token, it is expected to have that in the place of another; where it does so for
 * longer, the answer's end is looked for in it. */
typedef struct weft__draft_expected weft__draft_expected;

/* Copies tokens[0, n), n >= 1; NULL: no memory. */
weft__draft_expected *weft__draft_expected_new(const int32_t *tokens, int32_t n);
void weft__draft_expected_free(weft__draft_expected **x);
uint64_t weft__draft_expected_bytes(const weft__draft_expected *x); /* NULL: 0 */
/* As weft__draft_history_propose; answer[0, n): what there is of it, which only grows. */
void weft__draft_expected_propose(weft__draft_expected *x, const int32_t *answer, int32_t n, int32_t most,
                                  weft__draft *out);

/* ---- pool.c ---- */
typedef struct weft__draft_pool weft__draft_pool;

/* Holds at most n_bytes; NULL: no memory. */
weft__draft_pool *weft__draft_pool_new(uint64_t n_bytes);
void weft__draft_pool_free(weft__draft_pool **pool);
uint64_t weft__draft_pool_bytes(const weft__draft_pool *pool); /* NULL: 0 */
/* What ended under that key, or NULL; valid until the next addition. Two keys never see each other's: where an
 * adversary picks a part of what a key is made of, it must be the beginning of a cryptographic hash. */
const weft__draft_history *weft__draft_pool_find(const weft__draft_pool *pool, const uint64_t key[2]);
/* A text that has ended. Forgets the oldest of that key, or all of the key that was added to least recently; without
 * memory, it forgets this one. */
void weft__draft_pool_add(weft__draft_pool *pool, const uint64_t key[2], const int32_t *tokens, int32_t n);

/* ---- policy.c: how far ----
 * Any answer is right: it decides about time alone. */

/* What steps of n rows cost: seen ones, and where none was seen, a shape: rows that read the same weights, or, of a
 * mixture, distinct experts. */
typedef struct weft__draft_cost {
    double ns[WEFT__DRAFT_ROWS + 1]; /* by rows; 0: not seen */
    double shape[WEFT__DRAFT_ROWS + 1];
} weft__draft_cost;

/* Of a step's weights, part `expert_part` (0..1) is of experts, of which each row takes n_used of n_experts. */
void weft__draft_cost_begin(weft__draft_cost *c, int32_t n_experts, int32_t n_used, double expert_part);
void weft__draft_cost_saw(weft__draft_cost *c, int32_t n_rows, uint64_t ns);
/* Of a step of n_rows, 1..WEFT__DRAFT_ROWS: to be compared with each other only. */
double weft__draft_cost_of(const weft__draft_cost *c, int32_t n_rows);

enum { WEFT__DRAFT_BUCKETS = 4, WEFT__DRAFT_PLACES = 4 };

/* How often drafts of a request were right: by drafter, by how much spoke for them, by place in the draft; counts that
 * decay, so that a text may change. */
typedef struct weft__draft_trust {
    float right[WEFT__DRAFT_KINDS][WEFT__DRAFT_BUCKETS][WEFT__DRAFT_PLACES];
    float seen[WEFT__DRAFT_KINDS][WEFT__DRAFT_BUCKETS][WEFT__DRAFT_PLACES];
    int32_t n_passed; /* drafts since one was last tried */
} weft__draft_trust;

void weft__draft_trust_begin(weft__draft_trust *t);
/* How many of the draft's tokens to try in a step that has n_rows without them and brings n_rows tokens: one more as
 * long as it raises tokens per time. A draft that is not worth it is tried by one token now and then. */
int32_t weft__draft_choose(const weft__draft_cost *c, weft__draft_trust *t, const weft__draft *d, int32_t n_rows);
/* The first n_tried were rows, and the answer went on with the first n_right of them. */
void weft__draft_learn(weft__draft_trust *t, const weft__draft *d, int32_t n_tried, int32_t n_right);

#endif
