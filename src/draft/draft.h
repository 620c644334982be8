// SPDX-License-Identifier: Apache-2.0
/* draft.h: tokens that a text may go on with, before the model was asked.
 *
 * A draft is a guess, and costs nothing but time: its tokens become rows of the request's next step, the request's own
 * sampler runs over the target's logits at each of them, and what it picks is the answer, so that the answer is the one
 * without drafts (batcher/drafts.c, engine/generate.c). Nothing here decides about a token.
 *
 *   propose.c  drafters, one after the other
 *   history.c  a drafter: what followed where a text ended as this one does
 *   pool.c     histories of finished answers, by tenant and adapters
 *   policy.c   how much of a draft is worth its rows, and how much a draft model should guess
 *   cost.c     what rows cost
 *
 * A drafter (weft__drafter) gets the known tokens of a text, and fills a weft__draft: tokens, each with a probability
 * that it is right if those before it are. Who has a text makes the list of its drafters: histories, what the answer is
 * expected to be, what a grammar forces (engine/forced.h), and goes through it with weft__draft_propose. Known tokens
 * never change, nor does a preemption take them away.
 *
 * A draft model has pages of its own, and is asked for many texts at once, in turns of one token each; between two
 * turns the policy says for each text whether another token is worth the time (weft__draft_reach). So it is no entry of
 * that list, but comes behind it, and the better of the two drafts is taken (weft__draft_take_better); it lives where
 * models are stepped: engine/drafter.h. Kinds, trust and costs it shares with the others.
 *
 * What reads hidden states of the target (heads of multi-token prediction, `nextn` tensors, and EAGLE-3) would be a
 * second kind of what engine/drafter.h has: the same turns, pages and rollback, with one more input of each text, the
 * states of its rows of the last step (of chosen layers, [n_rows, n_layers * D], as weft__graph_batch.hidden has those
 * of the last one), and these have to be kept until the token behind them is known. None does yet (docs/limits.md).
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
enum { WEFT__DRAFT_SUFFIX, WEFT__DRAFT_PREDICTION, WEFT__DRAFT_FORCED, WEFT__DRAFT_MODEL, WEFT__DRAFT_KINDS };

typedef struct weft__draft {
    int32_t kind;
    int32_t n;
    int32_t matched; /* tokens before it that speak for it; more is better */
    int32_t token[WEFT__DRAFT_MOST];
    float p[WEFT__DRAFT_MOST]; /* of each, when those before it are right; 0..1 */
} weft__draft;

/* ---- propose.c: drafters, one after the other ---- */

/* A text, as a drafter sees it: tokens[0, n) are known, those from n_prompt on are its answer. */
typedef struct weft__draft_text {
    const int32_t *tokens;
    int32_t n_prompt, n;
} weft__draft_text;

typedef struct weft__drafter {
    /* Fills *out with what may follow, at most `most` >= 1 tokens; it comes empty, of kind WEFT__DRAFT_SUFFIX. */
    void (*propose)(void *self, const weft__draft_text *text, int32_t most, weft__draft *out);
    void *self;
    int is_last; /* it is asked only where the others have found nothing that holds */
} weft__drafter;

/* Leaves of a draft the tokens that the text may go on with: shortens d->n. */
typedef void (*weft__draft_cut)(void *arg, weft__draft *d);

/* The draft for which most speaks, of equal ones the first, as far as it holds (cut NULL: it does): of all drafters, in
 * their order, but those that are last. What WEFT__DRAFT_DEPTH tokens speak for needs no other. */
void weft__draft_propose(const weft__drafter *all, int n, const weft__draft_text *text, int32_t most,
                         weft__draft_cut cut, void *arg, weft__draft *out);

/* Drafters: self is a weft__draft_history, which is caught up with the text if it is the text's own, and a
 * weft__draft_expected. */
void weft__draft_by_history(void *self, const weft__draft_text *text, int32_t most, weft__draft *out);
void weft__draft_by_prediction(void *self, const weft__draft_text *text, int32_t most, weft__draft *out);

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
weft__draft_history *weft__draft_pool_find(const weft__draft_pool *pool, const uint64_t key[2]);
/* A text that has ended. Forgets the oldest of that key, or all of the key that was added to least recently; without
 * memory, it forgets this one. */
void weft__draft_pool_add(weft__draft_pool *pool, const uint64_t key[2], const int32_t *tokens, int32_t n);

/* ---- cost.c ---- */

/* A model, to be timed. */
typedef struct weft__draft_trial {
    /* What part `part` of it takes in a step of n_rows rows, ns; 0: it failed. */
    uint64_t (*time)(void *arg, int32_t part, int32_t n_rows);
    void *arg;
    const double *bytes; /* [n_parts] of weights that a part reads, above 0 */
    int32_t n_parts;
    int32_t most_rows; /* of a step */
} weft__draft_trial;

/* What steps of n rows take beside those of one, shape[1] = 1 to shape[WEFT__DRAFT_ROWS]: of some numbers of rows, each
 * with another part of the model, in turns, so that weights come from where they come from in a whole step; by the
 * byte, and the least of three rounds or more that two others are like. Each part is touched before. Between these
 * numbers stand lines. 0: it failed, or times did not agree in about a tenth of a second, or took half of one; shape is
 * undefined then. */
int weft__draft_measure(const weft__draft_trial *t, double shape[WEFT__DRAFT_ROWS + 1]);

/* What steps of n rows cost: seen ones, and where none was seen, a shape: as it was measured of rows that read the same
 * weights, and, of a mixture, distinct experts. */
typedef struct weft__draft_cost {
    double ns[WEFT__DRAFT_ROWS + 1]; /* by rows; 0: not seen */
    double shape[WEFT__DRAFT_ROWS + 1];
} weft__draft_cost;

/* measured: by weft__draft_measure; NULL: a usual one is assumed. Of a step's weights, part `expert_part` (0..1) is of
 * experts, of which each row takes n_used of n_experts. */
void weft__draft_cost_begin(weft__draft_cost *c, const double *measured, int32_t n_experts, int32_t n_used,
                            double expert_part);
void weft__draft_cost_saw(weft__draft_cost *c, int32_t n_rows, uint64_t ns);
/* Of a step of n_rows, 1..WEFT__DRAFT_ROWS: to be compared with each other only. */
double weft__draft_cost_of(const weft__draft_cost *c, int32_t n_rows);

/* Of n tokens that a draft model guesses for n texts at once: what one takes, as weft__draft_cost_of. small: its own
 * steps; part: of a step of the target, where none was seen yet. n >= 1. */
double weft__draft_token_cost(const weft__draft_cost *c, const weft__draft_cost *small, double part, int32_t n);

/* ---- policy.c: how far ----
 * Any answer is right: it decides about time alone. */

enum { WEFT__DRAFT_BUCKETS = 4, WEFT__DRAFT_PLACES = 4 };

/* How often drafts of a request were right: by drafter, by how much spoke for them (how sure a draft model was), by
 * place in the draft; counts that decay, so that a text may change. */
typedef struct weft__draft_trust {
    float right[WEFT__DRAFT_KINDS][WEFT__DRAFT_BUCKETS][WEFT__DRAFT_PLACES];
    float seen[WEFT__DRAFT_KINDS][WEFT__DRAFT_BUCKETS][WEFT__DRAFT_PLACES];
    float sure[WEFT__DRAFT_BUCKETS]; /* tokens of the draft model, tried or not, by how sure it was */
    int32_t n_passed;                /* drafts since one was last tried */
    int32_t n_waited, n_wait;        /* steps since the draft model was asked; after how many it is anyway */
    int32_t is_probe;                /* so it was this time */
} weft__draft_trust;

void weft__draft_trust_begin(weft__draft_trust *t);
/* How many of the draft's tokens to try in a step that has n_rows without them and brings n_rows tokens: one more as
 * long as it raises tokens per time. A draft that is not worth it is tried by one token now and then. */
int32_t weft__draft_choose(const weft__draft_cost *c, weft__draft_trust *t, const weft__draft *d, int32_t n_rows);
/* Tokens per time, expected of such a step with as many of the draft's tokens as bring most. */
double weft__draft_rate(const weft__draft_cost *c, const weft__draft_trust *t, const weft__draft *d, int32_t n_rows);
/* *d becomes the other one, of a draft model, where that brings more. */
void weft__draft_take_better(const weft__draft_cost *c, const weft__draft_trust *t, const weft__draft *other,
                             int32_t n_rows, weft__draft *d);
/* How many tokens a draft model should have guessed in all, at most `most`, before its first and behind each of them;
 * no more than d->n: it has done enough. token_cost: of one; other: the rate of what else could be tried. Where it does
 * not pay, it is asked for one token now and then, and seldomer each time that it was wrong. */
int32_t weft__draft_reach(const weft__draft_cost *c, weft__draft_trust *t, const weft__draft *d, int32_t n_rows,
                          double token_cost, double other, int32_t most);
/* Times as many tokens that a draft model should bring of which nothing is known but that a token takes `part` of a
 * step of the target; below 1: it should not be used. */
double weft__draft_expect(const weft__draft_cost *c, double part);
/* The first n_tried were rows, and the answer went on with the first n_right of them. */
void weft__draft_learn(weft__draft_trust *t, const weft__draft *d, int32_t n_tried, int32_t n_right);

#endif
