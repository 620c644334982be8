// SPDX-License-Identifier: Apache-2.0
/* top_metrics.h: numbers out of a server's /metrics, Prometheus' text format. Names that are not there count 0. One
 * thread. */
#ifndef WEFT_CLI_TOP_METRICS_H
#define WEFT_CLI_TOP_METRICS_H

#include <stdint.h>

/* A metric; where it has labels, the sum over all of them. */
double top_metric(const char *metrics, const char *name);
/* The sum over those whose label has this value. */
double top_metric_of(const char *metrics, const char *name, const char *label, const char *value);
/* The bound below which a share q of a histogram lies, in ms; 0 when it is empty. */
double top_quantile(const char *metrics, const char *name, double q);

enum { TOP_WHO_MAX = 256, TOP_LABEL = 64 };

/* What is counted of an API key and an adapter. */
typedef struct top_who {
    char key[TOP_LABEL], adapter[TOP_LABEL]; /* "(none)": of those without */
    double generated, prompt, requests;
} top_who;

typedef struct top_sample {
    uint64_t at_ns; /* 0: there is none */
    double prompt_tokens, cached_tokens, generated_tokens, steps;
    int n_who; /* the first TOP_WHO_MAX */
    top_who who[TOP_WHO_MAX];
} top_sample;

void top_take(const char *metrics, top_sample *out);
/* The same key and adapter in another sample, or NULL. */
const top_who *top_find(const top_sample *s, const top_who *who);

#endif
