// SPDX-License-Identifier: Apache-2.0
/* route.h: which of several arms (a model, an adapter, a sampling profile) is to answer a request, learned from
 * rewards of earlier answers, for one tenant.
 *
 * Each arm has a ridge regression of its rewards on the request's features: with A = sum x x' + ridge I and b = sum
 * r x, its mean is x'A^-1 b and its width sqrt(x'A^-1 x).
 *  LINUCB    the greatest mean + alpha * width (Li, Chu, Langford, Schapire 2010)
 *  THOMPSON  the greatest of draws from N(mean, (alpha * width)^2) (Agrawal, Goyal 2013)
 *  BETA      the greatest of draws from Beta(1 + wins, 1 + losses), whatever the request: the baseline
 *  UNIFORM   any, FIRST: always the first that may answer: baselines, too
 * less cost_weight * cost in each case. `explore` of all choices are uniform.
 *
 * Invariants: a choice is a function of the parameters, the rewards so far, the features and its number: the same log
 * gives the same choices and the same bits, on one machine. Its propensity is exact for the numbers that were drawn. An
 * arm's state exists from the first reward on; until then the first arm answers, with propensity 1: an untrained router
 * changes nothing. One thread per router; different routers are independent. */
#ifndef WEFT_ROUTE_ROUTE_H
#define WEFT_ROUTE_ROUTE_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

enum {
    WEFT__ROUTE_ARMS = 16,
    WEFT__ROUTE_SHAPE = 8, /* features: 1, length, and what kinds of characters there are */
    WEFT__ROUTE_WORDS = 24,
    WEFT__ROUTE_EMBEDDING = 16,
    WEFT__ROUTE_DIMS = WEFT__ROUTE_SHAPE + WEFT__ROUTE_WORDS + WEFT__ROUTE_EMBEDDING,
    WEFT__ROUTE_DRAWS = 128 /* of THOMPSON and BETA for a choice, of which one counts */
};

/* ---- features (features.c) ---- */

/* x[WEFT__ROUTE_DIMS] of a request's text: 1; its shape; words, case folded, hashed with signs into WEFT__ROUTE_WORDS
 * places, of length 1 together; and embedding[n] turned into WEFT__ROUTE_EMBEDDING by a fixed random projection, of
 * length 1 (n 0: zeros). Any bytes; only the first WEFT__ROUTE_TEXT count. What is not finite counts as 0. */
enum { WEFT__ROUTE_TEXT = 1 << 16 };
void weft__route_features(const char *text, size_t n_text, const float *embedding, size_t n, float *x);

/* ---- choosing (route.c) ---- */

typedef enum weft__route_method {
    WEFT__ROUTE_LINUCB,
    WEFT__ROUTE_THOMPSON,
    WEFT__ROUTE_BETA,
    WEFT__ROUTE_UNIFORM,
    WEFT__ROUTE_FIRST
} weft__route_method;

typedef struct weft__route_params {
    weft__route_method method;
    int n_arms;                    /* 1 to WEFT__ROUTE_ARMS */
    double cost[WEFT__ROUTE_ARMS]; /* of an answer, 0 to 1 */
    double cost_weight;            /* from 0: what a cost of 1 takes from a reward */
    double alpha;                  /* from 0: how much an arm gains by being little known */
    double ridge;                  /* above 0 */
    double explore;                /* 0 to 1 */
    /* Above 0: rewards that are as unexpected as this for long mean that the rules have changed: what was learned then
     * weighs a twentieth (Page's test of the squared errors; 0: never). */
    double change;
    uint64_t seed;
} weft__route_params;

/* LINUCB of one arm that costs nothing. */
void weft__route_params_default(weft__route_params *p);

typedef struct weft__route weft__route;

/* WEFT_ARGUMENT names the parameter; WEFT_NO_MEMORY. */
weft_status weft__route_new(const weft__route_params *p, weft__route **out, weft_error *err);
void weft__route_free(weft__route **r);

typedef struct weft__route_choice {
    uint64_t n; /* its number, from 0 */
    int arm;
    double propensity;
} weft__route_choice;

/* allowed: bit a: arm a may answer; one at least. x[WEFT__ROUTE_DIMS]. */
void weft__route_choose(weft__route *r, const float *x, uint32_t allowed, weft__route_choice *out);
/* What an answer of that arm to a request with these features was worth, 0 to 1 (beyond: the nearest).
 * WEFT_NO_MEMORY: nothing was learned. */
weft_status weft__route_reward(weft__route *r, const float *x, int arm, double reward, weft_error *err);
/* 1: there was a reward. */
int weft__route_is_trained(const weft__route *r);
/* How often it saw the rules change. */
uint64_t weft__route_changes(const weft__route *r);
/* Of all that choices depend on: routers of equal marks choose alike. */
uint64_t weft__route_mark(const weft__route *r);
/* "linucb", "thompson", "beta", "uniform", "first"; 1, or 0: there is none of that name. */
int weft__route_method_of(const char *name, weft__route_method *out);
const char *weft__route_method_name(weft__route_method method);

#endif
