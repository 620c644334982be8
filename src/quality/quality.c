// SPDX-License-Identifier: Apache-2.0
/* quality.c: the best of several answers (quality.h). */
#include "quality/quality.h"

#include <math.h>
#include <string.h>

static int is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static char fold_case(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* The next character that counts, from *at on; runs of space are one blank; -1: the end. */
static int next_of(const weft__quality_candidate *c, size_t *at)
{
    int is_apart = 0;
    while (*at < c->n_text && is_space(c->text[*at])) ++*at, is_apart = 1;
    if (*at >= c->n_text || (c->text[*at] == '.' && *at + 1 == c->n_text)) return -1;
    return is_apart ? ' ' : (unsigned char)fold_case(c->text[(*at)++]);
}

static size_t trimmed(const weft__quality_candidate *c, weft__quality_candidate *out)
{
    *out = *c;
    while (out->n_text && is_space(out->text[out->n_text - 1])) out->n_text--;
    while (out->n_text && is_space(*out->text)) out->text++, out->n_text--;
    return out->n_text;
}

static int is_same(const weft__quality_candidate *a, const weft__quality_candidate *b)
{
    weft__quality_candidate x, y;
    size_t i = 0, k = 0;
    trimmed(a, &x);
    trimmed(b, &y);
    for (;;) {
        const int p = next_of(&x, &i), q = next_of(&y, &k);
        if (p != q) return 0;
        if (p < 0) return 1;
    }
}

static void judge_tokens(weft__quality_candidate *c)
{
    double sum = 0, window = 0, last[WEFT__QUALITY_WINDOW];
    size_t n = 0;
    c->mean = c->lowest = 0;
    for (size_t i = 0; c->logprobs && i < c->n_logprobs; i++) {
        if (!isfinite(c->logprobs[i])) continue;
        double *place = &last[n % WEFT__QUALITY_WINDOW];
        sum += c->logprobs[i];
        window += c->logprobs[i] - (n < WEFT__QUALITY_WINDOW ? 0 : *place);
        *place = c->logprobs[i];
        n++;
        if (n == WEFT__QUALITY_WINDOW || (n > WEFT__QUALITY_WINDOW && window / WEFT__QUALITY_WINDOW < c->lowest))
            c->lowest = window / WEFT__QUALITY_WINDOW;
    }
    if (n) c->mean = sum / (double)n;
    if (n < WEFT__QUALITY_WINDOW) c->lowest = c->mean;
}

void weft__quality_judge(weft__quality_candidate *all, int n)
{
    for (int i = 0; i < n; i++) {
        all[i].votes = 0;
        for (int k = 0; k < n; k++) all[i].votes += is_same(&all[i], &all[k]);
        judge_tokens(&all[i]);
    }
}

static int is_better(const weft__quality_candidate *a, const weft__quality_candidate *than)
{
    if (a->verdict != than->verdict) return a->verdict > than->verdict;
    if (a->is_valid != than->is_valid) return a->is_valid > than->is_valid;
    if (a->votes != than->votes) return a->votes > than->votes;
    if (a->lowest != than->lowest) return a->lowest > than->lowest;
    return a->mean > than->mean;
}

int weft__quality_best(const weft__quality_candidate *all, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (is_better(&all[i], &all[best])) best = i;
    return best;
}

int weft__quality_retries(weft__quality_verdict verdict, int n_done, int most)
{
    return verdict == WEFT__QUALITY_FAILED && n_done < most;
}

void weft__quality_retry_message(const char *message, size_t n, weft__strbuf *out)
{
    static const char begin[] = "That answer did not pass its check. The check says:\n---\n";
    static const char end[] = "\n---\nAnswer again, so that it passes.";
    size_t most = n < WEFT__QUALITY_MESSAGE ? n : WEFT__QUALITY_MESSAGE;
    while (most && most < n && ((unsigned char)message[most] & 0xc0) == 0x80) most--; /* whole characters */
    weft__strbuf_put(out, begin, sizeof begin - 1);
    for (size_t i = 0; i < most; i++) { /* a line of dashes becomes one of dashes behind a blank */
        if (message[i] == '-' && (!i || message[i - 1] == '\n')) weft__strbuf_putc(out, ' ');
        weft__strbuf_putc(out, message[i]);
    }
    weft__strbuf_put(out, end, sizeof end - 1);
}
