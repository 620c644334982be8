// SPDX-License-Identifier: Apache-2.0
/* contest_rule.c: which of two adapters is the better one (contest.h). */
#include "learn/contest.h"

static int by_count(int32_t a, int32_t b)
{
    return (a > b) - (a < b);
}

int weft__contest_compare(const weft__gate_report *a, const weft__gate_report *b, const char **why)
{
    const struct {
        const char *name;
        int order;
    } rule[] = {{"gate", by_count(a->passed != 0, b->passed != 0)},
                {"corrections", by_count(a->corrections, b->corrections)},
                {"paraphrases", by_count(a->paraphrases, b->paraphrases)},
                {"kl", (a->kl < b->kl) - (a->kl > b->kl)}};
    if (why) *why = "";
    for (size_t i = 0; i < sizeof rule / sizeof *rule; i++) {
        if (i == 1 && !a->passed) return 0;
        if (!rule[i].order) continue;
        if (why) *why = rule[i].name;
        return rule[i].order;
    }
    return 0;
}

int32_t weft__contest_best(const weft__contest_entry *entry, int32_t n)
{
    int32_t best = n > 0 ? 0 : -1;
    for (int32_t i = 1; i < n; i++)
        if (weft__contest_compare(&entry[i].gate, &entry[best].gate, NULL) > 0) best = i;
    return best;
}
