// SPDX-License-Identifier: Apache-2.0
/* features.c: what a router sees of a request (route.h). Any thread. */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "route/route.h"

enum { WORD_BYTES = 32 }; /* of a word that are hashed */

static int is_of_word(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c >= 0x80;
}

static unsigned char fold(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + ('a' - 'A')) : c;
}

/* Counts below some value that only grow, as a share of 1. */
static float part(size_t n, size_t of)
{
    return of ? (float)n / (float)of : 0;
}

static void put_text_shape(const unsigned char *s, size_t n, float *x)
{
    size_t digits = 0, signs = 0, lines = 0, foreign = 0, asks = 0;
    for (size_t i = 0; i < n; i++) {
        digits += s[i] >= '0' && s[i] <= '9';
        lines += s[i] == '\n';
        foreign += s[i] >= 0x80;
        asks += s[i] == '?';
        signs += memchr("{}[]()<>=;#`\\_", s[i], 14) != NULL;
    }
    x[0] = 1;
    x[1] = (float)(log2(1 + (double)n) / 16);
    x[2] = part(digits, n);
    x[3] = part(signs, n);
    x[4] = part(foreign, n);
    x[5] = lines ? 0.5f : 0;
    x[6] = asks ? 0.5f : 0;
    x[7] = n && s[n - 1] == '?' ? 0.5f : 0;
}

static void to_length_one(float *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i] * x[i];
    const double by = sum > 0 && isfinite(sum) ? 1 / sqrt(sum) : 0;
    for (int i = 0; i < n; i++) x[i] = (float)(x[i] * by);
}

/* One place and sign per word: what collides adds noise, and no bias (Weinberger and others 2009). */
static void put_hashed_words(const unsigned char *s, size_t n, float *x)
{
    for (size_t i = 0; i < n;) {
        unsigned char word[WORD_BYTES];
        size_t k = 0;
        while (i < n && !is_of_word(s[i])) i++;
        for (; i < n && is_of_word(s[i]); i++)
            if (k < WORD_BYTES) word[k++] = fold(s[i]);
        if (!k) break;
        const uint64_t h = weft__hash(word, k);
        x[h % WEFT__ROUTE_WORDS] += h >> 63 ? -1.0f : 1.0f;
    }
    to_length_one(x, WEFT__ROUTE_WORDS);
}

/* Signs of a fixed matrix, from the number of their row and column. */
static void put_embedding(const float *e, size_t n, float *x)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t h = (i + 1) * 0x9e3779b97f4a7c15u;
        h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
        const float v = isfinite(e[i]) ? e[i] : 0;
        for (int j = 0; j < WEFT__ROUTE_EMBEDDING; j++) x[j] += h >> j & 1 ? v : -v;
    }
    to_length_one(x, WEFT__ROUTE_EMBEDDING);
}

void weft__route_features(const char *text, size_t n_text, const float *embedding, size_t n, float *x)
{
    const unsigned char *s = (const unsigned char *)text;
    const size_t most = n_text < WEFT__ROUTE_TEXT ? n_text : WEFT__ROUTE_TEXT;
    memset(x, 0, WEFT__ROUTE_DIMS * sizeof *x);
    put_text_shape(s, most, x);
    put_hashed_words(s, most, x + WEFT__ROUTE_SHAPE);
    put_embedding(embedding, n, x + WEFT__ROUTE_SHAPE + WEFT__ROUTE_WORDS);
}
