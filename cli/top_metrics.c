// SPDX-License-Identifier: Apache-2.0
/* top_metrics.c: see top_metrics.h. Lines that are none of the format are passed over. */
#include "top_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "terminal.h"

struct series {
    const char *name, *labels; /* labels: behind '{'; NULL: none */
    size_t n_name;
    double value;
};

/* The series in the line at *at, which then is the next one; 0 at the end. Comments have an empty name. */
static int next_series(const char **at, struct series *s)
{
    const char *line = *at, *end = line + strcspn(line, "\n"), *p = line + strcspn(line, " {\n");
    if (!*line) return 0;
    *at = *end ? end + 1 : end;
    *s = (struct series){line, NULL, line[0] == '#' ? 0 : (size_t)(p - line), 0};
    if (*p == '{') {
        s->labels = ++p;
        for (int quoted = 0; p < end && (quoted || *p != '}'); p++) {
            if (*p == '\\' && quoted && p + 1 < end) p++;
            else if (*p == '"') quoted = !quoted;
        }
        if (p < end) p++;
    }
    if (p < end) s->value = strtod(p, NULL);
    else s->n_name = 0;
    return 1;
}

/* The value of a label, cut to what fits; 0 when the series has none of that name. */
static int label_of(const struct series *s, const char *label, char out[TOP_LABEL])
{
    const size_t n = strlen(label);
    const char *p = s->labels;
    while (p && *p && *p != '}' && *p != '\n') {
        const char *equals = p + strcspn(p, "=}\n");
        const int found = (size_t)(equals - p) == n && !memcmp(p, label, n);
        size_t length = 0;
        if (equals[0] != '=' || equals[1] != '"') return 0;
        for (p = equals + 2; *p && *p != '"' && *p != '\n'; p++) {
            if (*p == '\\' && p[1] && p[1] != '\n') p++;
            if (length + 1 < TOP_LABEL) out[length++] = *p;
        }
        out[length] = 0;
        if (found) return 1;
        if (*p == '"') p++;
        p += *p == ',';
    }
    return 0;
}

static int is_named(const struct series *s, const char *name)
{
    return s->n_name == strlen(name) && !memcmp(s->name, name, s->n_name);
}

double top_metric(const char *metrics, const char *name)
{
    struct series s;
    double sum = 0;
    while (next_series(&metrics, &s)) {
        if (!is_named(&s, name)) continue;
        if (!s.labels) return s.value;
        sum += s.value;
    }
    return sum;
}

double top_metric_of(const char *metrics, const char *name, const char *label, const char *value)
{
    struct series s;
    char text[TOP_LABEL];
    double sum = 0;
    while (next_series(&metrics, &s))
        if (is_named(&s, name) && label_of(&s, label, text) && !strcmp(text, value)) sum += s.value;
    return sum;
}

/* The first bound behind which no more than a share 1-q lies. Each bound is looked up, as labels may divide the
 * counts. */
double top_quantile(const char *metrics, const char *name, double q)
{
    char buckets[128], count[128], bound[TOP_LABEL];
    struct series s;
    double best = 0, most = 0;
    snprintf(buckets, sizeof buckets, "%s_bucket", name);
    snprintf(count, sizeof count, "%s_count", name);
    const double total = top_metric(metrics, count);
    for (const char *at = metrics; total > 0 && next_series(&at, &s);) {
        if (!is_named(&s, buckets) || !label_of(&s, "le", bound)) continue;
        const double upper = strtod(bound, NULL);
        if (!(upper < 1e9)) continue;
        if (upper > most) most = upper;
        if (top_metric_of(metrics, buckets, "le", bound) >= q * total && (best == 0 || upper < best)) best = upper;
    }
    return (best > 0 ? best : most) * 1000;
}

/* ---- keys and adapters ---- */

static top_who *who_of(top_sample *s, const struct series *x)
{
    top_who w = {0};
    if (!label_of(x, "key", w.key) || !label_of(x, "adapter", w.adapter)) return NULL;
    if (!w.key[0]) strcpy(w.key, "(none)");
    if (!w.adapter[0]) strcpy(w.adapter, "(none)");
    for (int i = 0; i < s->n_who; i++)
        if (!strcmp(s->who[i].key, w.key) && !strcmp(s->who[i].adapter, w.adapter)) return &s->who[i];
    if (s->n_who == TOP_WHO_MAX) return NULL;
    s->who[s->n_who] = w;
    return &s->who[s->n_who++];
}

/* Which number of a key and an adapter a series counts; NULL: none that is shown. */
static double *number_of(top_who *w, const struct series *s)
{
    if (is_named(s, "weft_key_generated_tokens_total")) return &w->generated;
    if (is_named(s, "weft_key_prompt_tokens_total")) return &w->prompt;
    if (is_named(s, "weft_key_requests_total")) return &w->requests;
    return NULL;
}

void top_take(const char *metrics, top_sample *out)
{
    struct series s;
    *out = (top_sample){now_ns(), top_metric(metrics, "weft_prompt_tokens_total"),
                        top_metric(metrics, "weft_cached_tokens_total"),
                        top_metric(metrics, "weft_generated_tokens_total"), top_metric(metrics, "weft_steps_total")};
    for (const char *at = metrics; next_series(&at, &s);) {
        top_who none;
        if (!s.labels || !number_of(&none, &s)) continue;
        top_who *w = who_of(out, &s);
        if (w) *number_of(w, &s) += s.value;
    }
}

const top_who *top_find(const top_sample *s, const top_who *who)
{
    for (int i = 0; i < s->n_who; i++)
        if (!strcmp(s->who[i].key, who->key) && !strcmp(s->who[i].adapter, who->adapter)) return &s->who[i];
    return NULL;
}
