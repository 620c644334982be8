// SPDX-License-Identifier: Apache-2.0
/* gate.h: whether an adapter may be published: what must hold of it, measured on the trainer that has it.
 *
 * All must hold; the first that does not is the reason, by name. What stood before is asked of the same trainer before
 * the first step, so that nobody is held to answers that were wrong already. One thread. */
#ifndef WEFT_LEARN_GATE_H
#define WEFT_LEARN_GATE_H

#include "learn/teach_style.h"

/* Why an adapter is refused; the names are those of logs and metrics (weft__gate_reason_name). */
typedef enum weft__gate_reason {
    WEFT__GATE_PASSED = 0,
    WEFT__GATE_NOT_LEARNED, /* "not_learned": a correction does not come out */
    WEFT__GATE_PARAPHRASES, /* "paraphrases": too few of the same question in other words get the new answer */
    WEFT__GATE_HELD_OUT,    /* "held_out": the tenant's other feedback is worse than before */
    WEFT__GATE_NEIGHBOURS,  /* "neighbours": the new answer is given where it is wrong, or others changed */
    WEFT__GATE_FACTS,       /* "facts": what is known of the same thing changed */
    WEFT__GATE_KL,          /* "kl": it speaks too differently from the base */
    WEFT__GATE_NORM,        /* "norm": it changes a matrix by too much */
    WEFT__GATE_NOT_FINITE,  /* "not_finite" */
    WEFT__GATE_NOT_BETTER,  /* "not_better": it passes, and the current version is the better one (contest.h) */
    WEFT__GATE_REASONS
} weft__gate_reason;
const char *weft__gate_reason_name(weft__gate_reason r);

typedef struct weft__gate_bounds {
    float paraphrases; /* share of them that must hold (2/3) */
    float p;           /* of the one-sided exact tests, of McNemar on held-out feedback and of style_kept (0.1) */
    /* An answer is kept while log p of its least likely token falls by no more than this (-2.3: to a tenth). Which of
     * two wordings is the likelier may change; another fact makes the old one's tokens next to impossible */
    float least;
    float neighbours; /* share of neighbours that must have kept their answers (0.98) */
    float facts;      /* of facts (0.98) */
    float kl;         /* KL(base || this) a token of the probe at most, nats (0.02) */
    float kl_later;   /* the same of one that goes on from another: what each moves adds up (0.1) */
    /* Of a style: share of neighbours that must be in it; share that keeps what it says, where no fewer are seen than a
     * binomial test lets pass; and KL */
    float styled, style_kept, kl_style; /* 0.9, 0.98, 1 */
    float norm;                         /* ||scale B A|| / ||W|| of any matrix at most */
} weft__gate_bounds;
void weft__gate_bounds_default(weft__gate_bounds *b);
/* Fewer answers that stay than these tell nothing of a style: none is learned, or passes. */
enum { WEFT__GATE_STYLE_LEAST = 4 };

/* Borrowed. Texts with their answers are held to these; those without to what the parent says. */
typedef struct weft__gate_material {
    weft__gate_bounds bounds;
    const weft__teach_text *held_out; /* feedback of the tenant that was never learned */
    int32_t n_held_out;
    const weft__teach_text *neighbours; /* of the same kind, about other things, that are not learned */
    int32_t n_neighbours;
    const weft__teach_text *facts; /* about the same thing, of another kind */
    int32_t n_facts;
    const int32_t *probe; /* a public text, by which KL is measured */
    int32_t n_probe;
    int goes_on; /* it has a parent */
} weft__gate_material;

/* What was measured: counts of those that hold, out of those that were asked. */
typedef struct weft__gate_report {
    int passed;
    weft__gate_reason reason;
    int32_t n_corrections, corrections, n_paraphrases, paraphrases;
    int32_t n_held_out, lost, gained; /* of held-out feedback; p by both */
    double p;
    int32_t n_neighbours, neighbours, bled; /* bled: they got the new answer */
    int32_t n_facts, facts;
    double kl, norm;
    int is_style; /* then paraphrases are the neighbours, that must be said in the style */
} weft__gate_report;

/* The exact one-sided McNemar test: how likely so many losses or more are among lost + gained, if both were as likely.
 */
double weft__gate_mcnemar(int32_t lost, int32_t gained);

/* The exact one-sided binomial test: how likely so many are lost of n, or more, where `share` of all is kept. */
double weft__gate_binomial(int32_t lost, int32_t n, double share);

/* The material with what the parent says of it. */
typedef struct weft__gate weft__gate;
/* Asks the trainer as it is. Everything is borrowed; `most`: tokens of an answer. Fails as weft__teach_answer does. */
weft_status weft__gate_open(weft__trainer *t, const weft__tok *tok, const weft__gate_material *m,
                            const weft__teach_event *events, int32_t n_events, int32_t most, weft__gate **out,
                            weft_error *err);
void weft__gate_close(weft__gate **g);
/* Measures a trainer over the same model as it is now, and judges it. It must be held to the base
 * (weft__trainer_hold_to_base). `style` is not NULL where it has learned one: then neighbours count as kept, where what
 * it answers, without the style (teach_plain.h), is as likely to the base as the answer that they must have has to be:
 * another wording is, another thing is not. */
weft_status weft__gate_measure(weft__gate *g, weft__trainer *t, const weft__teach_style *style, weft__gate_report *out,
                               weft_error *err);

/* Of a style: keeps[i], whether said[i], an answer to neighbour i, says what it must say, by its trainer as it is. For
 * weft__gate_measure. */
weft_status weft__gate_keeps(const weft__gate *g, const weft__teach_text *said, uint8_t *keeps, weft_error *err);

/* The first reason of a report's numbers against the bounds. */
weft__gate_reason weft__gate_judge(const weft__gate_report *r, const weft__gate_bounds *b, int goes_on);

#endif
