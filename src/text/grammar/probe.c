// SPDX-License-Identifier: Apache-2.0
/* probe.c: grammars whose ways of reading a text grow with the text are found before a text is begun (run.h).
 *
 * Each rule that is called, and has more than one way to be read, is read from its start, byte by byte: one byte as
 * often as it goes on, for each it may begin with, and else the byte of a few that leaves most ways open. That is a
 * search and no proof: what it does not find meets the budget of matcher.c. */
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/run.h"

enum {
    BYTES = 160,         /* of a text */
    TRIES = 6,           /* bytes that are tried for each of them, and texts of a rule */
    STEP_WORK = 1 << 11, /* edges and links looked at for a byte; grammars for data take some tens */
    ALL_WORK = 1 << 22   /* of all texts */
};

/* Up to TRIES bytes that go on from a set, spread over its ways. */
static int bytes_of(const weft__gram_run *r, weft__gram_set set, unsigned char out[TRIES])
{
    int n = 0;
    for (size_t i = set.begin; i < set.end && n < TRIES; i++) {
        const weft__gram_state *s = &r->a->states[r->ways[i].state];
        for (uint32_t e = s[0].edge; e < s[1].edge && n < TRIES; e++) {
            unsigned char byte = r->a->edges[e].lo;
            if (!n || !memchr(out, byte, (size_t)n)) out[n++] = byte;
        }
    }
    return n;
}

/* 1: a state of the set has so many alternatives that trying them for one byte takes too much, whatever was read
 * before. */
static int is_wide(const weft__gram_run *r, weft__gram_set set)
{
    size_t most = 0;
    for (size_t i = set.begin; i < set.end; i++) {
        const weft__gram_state *s = &r->a->states[r->ways[i].state];
        if (s[1].edge - s[0].edge > most) most = s[1].edge - s[0].edge;
    }
    return most > STEP_WORK / 2;
}

/* Takes `wanted` where it goes on (-1: never), or the best of the bytes; 0: there is none, or the work is spent. *work:
 * what that byte took. */
static int probe_go_on(weft__gram_run *r, weft__gram_set *set, int wanted, size_t *work)
{
    unsigned char bytes[TRIES];
    int n = bytes_of(r, *set, bytes), best = -1;
    size_t n_ways = r->n_ways, n_frames = r->n_frames, n_links = r->n_links, most = 0;
    for (int i = 0; i < n && !r->status; i++) {
        size_t left = r->work;
        weft__gram_set next = weft__gram_run_step(r, *set, bytes[i]);
        size_t score = next.end - next.begin + (r->n_links - n_links) + (left - r->work);
        if (bytes[i] == wanted) score = SIZE_MAX;
        if (next.end > next.begin && score > most) {
            most = score;
            best = bytes[i];
        }
        r->n_ways = n_ways;
        r->n_frames = n_frames;
        r->n_links = n_links;
    }
    if (best < 0 || r->status) return 0;
    size_t left = r->work;
    weft__gram_set next = weft__gram_run_step(r, *set, (unsigned char)best);
    *work = left - r->work;
    next.done = 0;
    *set = next;
    return !r->status;
}

enum { NO_MEMORY = -1, NOTHING, GROWS, IS_WIDE };

/* What makes reading this rule take too much: that it takes more and more, or that it has too many alternatives at
 * once. */
static int search(const weft__gram_automaton *a, int32_t rule, int text, size_t *all)
{
    weft__gram_automaton from = *a;
    weft__gram_run r;
    size_t work = 0;
    from.root = rule;
    int ok = weft__gram_run_init(&r, &from), found = 0, wide = 0;
    if (ok) {
        r.work = *all;
        weft__gram_set set = weft__gram_run_start(&r);
        unsigned char first[TRIES];
        int wanted = text < bytes_of(&r, set, first) ? first[text] : -1;
        for (int i = 0, on = 1; i < BYTES && !found && on; i++) {
            wide |= is_wide(&r, set);
            on = probe_go_on(&r, &set, wanted, &work);
            found = on && work > STEP_WORK;
        }
        found |= r.status == WEFT_LIMIT && r.work > STEP_WORK; /* not the work, but the ways or the frames */
        *all = r.status ? 0 : r.work;
    }
    ok = ok && r.status != WEFT_NO_MEMORY;
    weft__gram_run_free(&r);
    return !ok ? NO_MEMORY : !found ? NOTHING : wide ? IS_WIDE : GROWS;
}

/* 1: the rule calls nothing and is deterministic: there is one way to read a text. */
static int has_one_way(const weft__gram_automaton *a, int32_t rule)
{
    const size_t first = (size_t)a->starts[rule];
    for (size_t i = first; i < a->n_states && a->states[i].rule == rule; i++) {
        if (a->states[i].call != a->states[i + 1].call) return 0;
        for (uint32_t e = a->states[i].edge + 1; e < a->states[i + 1].edge; e++)
            if (a->edges[e].lo <= a->edges[e - 1].hi) return 0;
    }
    return 1;
}

weft_status weft__gram_probe(const weft__gram_automaton *a, weft_error *err)
{
    char subject[WEFT__GRAM_LABEL];
    size_t work = ALL_WORK;
    for (size_t i = 0; i < a->n_rules && work; i++) {
        int found = 0, skip = a->starts[i] < 0 || has_one_way(a, (int32_t)i);
        for (int text = 0; !skip && text <= TRIES && work && !found; text++) found = search(a, (int32_t)i, text, &work);
        if (found == NO_MEMORY) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
        if (!found) continue;
        weft__gram_subject(weft__gram_automaton_name(a, (int32_t)i), subject);
        if (found == IS_WIDE)
            return weft_fail(err, WEFT_LIMIT,
                             "%s has more than %d alternatives side by side, too many to try for each byte", subject,
                             STEP_WORK / 2);
        return weft_fail(err, WEFT_LIMIT, "%s can be read in ever more ways as the text grows; make it less ambiguous",
                         subject);
    }
    return WEFT_OK;
}
