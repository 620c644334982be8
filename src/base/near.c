// SPDX-License-Identifier: Apache-2.0
/* near.c: see near.h. */
#include "base/near.h"

#include <stdint.h>
#include <string.h>

enum { LONGEST = 40 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Damerau and Levenshtein's distance, without a second change of what was swapped; SIZE_MAX / 8 where a word is too
 * long to be meant. */
static size_t distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    size_t rows[3][LONGEST + 1];
    if (n > LONGEST || m > LONGEST) return SIZE_MAX / 8;
    for (size_t j = 0; j <= m; j++) rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = rows[i % 3];
        const size_t *before = rows[(i + 2) % 3], *swapped = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = least(least(before[j], now[j - 1]) + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], swapped[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

const char *weft__near_match(const char *word, weft__near_name name, const void *arg)
{
    const size_t n = strlen(word), most = n < 6 ? 1 : n / 3;
    size_t best = SIZE_MAX;
    const char *found = NULL;
    for (size_t i = 0; n > 1 && name(arg, i); i++) {
        const char *s = name(arg, i);
        const size_t d = distance(word, s);
        /* Among those that are as near: one that begins as it does, then one that is as long. */
        const size_t rank = 4 * d + 2 * (s[0] != word[0]) + (strlen(s) != n);
        if (d > most || rank > best) continue;
        found = rank < best ? s : NULL;
        best = rank;
    }
    return found;
}
