// SPDX-License-Identifier: Apache-2.0
/* route_replay.h: what a router earns on answers that were made before (tests/unit/route_answers.txt, by
 * bench/route-answers), for the test of routers and for tests/unit/bench_route.c.
 *
 * Each kind of question has a style that its user wants, drawn anew by each seed and, where it changes, in the middle;
 * an answer earns 1 when it has that style and the fact. Regret is what the best arm of each round would have earned
 * beyond what was earned. */
#ifndef WEFT_TESTS_ROUTE_REPLAY_H
#define WEFT_TESTS_ROUTE_REPLAY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "route/route.h"

enum { REPLAY_ARMS = 4, REPLAY_KINDS = 8, REPLAY_MOST = 1024, REPLAY_ROUNDS = 4000 };

typedef struct replay_question {
    int kind;
    char text[96], answers[REPLAY_ARMS + 1];
    float x[WEFT__ROUTE_DIMS];
} replay_question;

typedef struct replay_set {
    replay_question items[REPLAY_MOST];
    int n, n_kinds;
    char kinds[REPLAY_KINDS][24];
} replay_set;

/* 1, or 0: the file is not as it should be. */
static inline int replay_read(const char *path, replay_set *set)
{
    char line[256], kind[24];
    FILE *f = fopen(path, "r");
    memset(set, 0, sizeof *set);
    while (f && set->n < REPLAY_MOST && fgets(line, sizeof line, f)) {
        replay_question *q = &set->items[set->n];
        if (sscanf(line, "%23[^\t]\t%95[^\t]\t%4[0-9a-f]", kind, q->text, q->answers) != 3) break;
        for (q->kind = 0; q->kind < set->n_kinds && strcmp(set->kinds[q->kind], kind);) q->kind++;
        if (q->kind == REPLAY_KINDS) break;
        if (q->kind == set->n_kinds) snprintf(set->kinds[set->n_kinds++], sizeof kind, "%s", kind);
        weft__route_features(q->text, strlen(q->text), NULL, 0, q->x);
        set->n++;
    }
    const int whole = f && feof(f) && set->n && set->n_kinds == REPLAY_KINDS;
    if (f) fclose(f);
    return whole;
}

/* The embeddings of the questions, a line of numbers for each, are what the router sees of them as well. 1, or
 * 0: the file is not as it should be. */
static inline int replay_read_embeddings(const char *path, replay_set *set)
{
    enum { ROOM = 1 << 20, DIMS = 8192 };
    char *line = malloc(ROOM);
    float *e = malloc(DIMS * sizeof *e);
    FILE *f = fopen(path, "r");
    int i = 0;
    for (; line && e && f && i < set->n && fgets(line, ROOM, f); i++) {
        size_t n = 0;
        char *end = line;
        for (char *at = line; n < DIMS; at = end) {
            e[n] = strtof(at, &end);
            if (end == at) break;
            n++;
        }
        weft__route_features(set->items[i].text, strlen(set->items[i].text), e, n, set->items[i].x);
    }
    if (f) fclose(f);
    free(line);
    free(e);
    return i == set->n;
}

static inline double replay_reward(const replay_question *q, int arm, int wanted)
{
    const int code = (int)strtol((char[]){q->answers[arm], 0}, NULL, 16);
    return code / 2 == wanted && code % 2;
}

typedef struct replay_result {
    double regret[REPLAY_ROUNDS + 1]; /* after so many rounds */
    double single[REPLAY_ROUNDS + 1]; /* of the one arm that is the best until then, known before */
    double last_earned, last_best;    /* in the last tenth */
    double worth, weighed;            /* of the policy `arm 1` by propensities, and as it is */
    uint64_t mark, n_changes;
} replay_result;

/* rounds <= REPLAY_ROUNDS; changes: the wanted styles are others from the middle on. 1, or 0: no memory. */
static inline int replay_run(const replay_set *set, const weft__route_params *p, uint64_t seed, int rounds, int changes,
                             replay_result *out)
{
    int wanted[2][REPLAY_KINDS];
    double earned = 0, best = 0, of_arm[REPLAY_ARMS] = {0};
    weft__route_params mine = *p;
    weft__route *r = NULL;
    weft__rng rng;
    int ok = 1;
    memset(out, 0, sizeof *out);
    weft__rng_seed(&rng, seed);
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < REPLAY_KINDS; k++) wanted[half][k] = (int)weft__rng_below(&rng, REPLAY_ARMS);
    mine.n_arms = REPLAY_ARMS;
    mine.seed = seed;
    if (weft__route_new(&mine, &r, NULL)) return 0;
    for (int t = 0; t < rounds && ok; t++) {
        const replay_question *q = &set->items[weft__rng_below(&rng, (uint64_t)set->n)];
        const int style = wanted[changes && t >= rounds / 2][q->kind];
        double most = 0, single = 0;
        weft__route_choice c;
        weft__route_choose(r, q->x, ~0u, &c);
        const double got = replay_reward(q, c.arm, style);
        for (int a = 0; a < REPLAY_ARMS; a++) {
            const double v = replay_reward(q, a, style);
            of_arm[a] += v;
            most = v > most ? v : most;
            single = of_arm[a] > single ? of_arm[a] : single;
        }
        earned += got;
        best += most;
        if (t >= rounds - rounds / 10) out->last_earned += got, out->last_best += most;
        if (c.arm == 1) out->weighed += got / c.propensity / rounds;
        out->worth += replay_reward(q, 1, style) / rounds;
        out->regret[t + 1] = best - earned;
        out->single[t + 1] = best - single;
        ok = !weft__route_reward(r, q->x, c.arm, got, NULL);
    }
    out->mark = weft__route_mark(r);
    out->n_changes = weft__route_changes(r);
    weft__route_free(&r);
    return ok;
}

#endif
