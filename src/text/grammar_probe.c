/* grammar_probe.c: grammars whose ways of reading a text grow with the text are found before a text is begun (grammar_run.h).
 *
 * Each rule that is called is read from its start, byte by byte: one byte as often as it goes on, for each it may begin with, and else the
 * byte of a few that leaves most ways open. That is a search and no proof: what it does not find meets the budget of matcher.c. */
#include <string.h>

#include "base/alloc.h"
#include "text/grammar_run.h"

enum {
    BYTES = 160,         /* of a text */
    TRIES = 6,           /* bytes that are tried for each of them, and texts of a rule */
    STEP_WORK = 1 << 11, /* edges and links looked at for a byte; grammars for data take some tens */
    ALL_WORK = 1 << 22   /* of all texts */
};

/* Up to TRIES bytes that go on from a set, spread over its ways. */
static int bytes_of(const weft__run *r, weft__set set, unsigned char out[TRIES])
{
    int n = 0;
    for (size_t i = set.begin; i < set.end && n < TRIES; i++) {
        const weft__state *s = &r->a->states[r->ways[i].state];
        for (uint32_t e = s[0].edge; e < s[1].edge && n < TRIES; e++) {
            unsigned char byte = r->a->edges[e].lo;
            if (!n || !memchr(out, byte, (size_t)n)) out[n++] = byte;
        }
    }
    return n;
}

/* Takes `wanted` where it goes on (-1: never), or the best of the bytes; 0: there is none, or the work is spent. *work: what that byte took. */
static int go_on(weft__run *r, weft__set *set, int wanted, size_t *work)
{
    unsigned char bytes[TRIES];
    int n = bytes_of(r, *set, bytes), best = -1;
    size_t n_ways = r->n_ways, n_frames = r->n_frames, n_links = r->n_links, most = 0;
    for (int i = 0; i < n && !r->status; i++) {
        size_t left = r->work;
        weft__set next = weft__run_step(r, *set, bytes[i]);
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
    weft__set next = weft__run_step(r, *set, (unsigned char)best);
    *work = left - r->work;
    next.done = 0;
    *set = next;
    return !r->status;
}

/* 1: reading this rule takes more and more; 0: not found; -1: no memory. */
static int grows(const weft__automaton *a, int32_t rule, int text, size_t *all)
{
    weft__automaton from = *a;
    weft__run r;
    size_t work = 0;
    from.root = rule;
    int ok = weft__run_init(&r, &from), found = 0;
    if (ok) {
        r.work = *all;
        weft__set set = weft__run_start(&r);
        unsigned char first[TRIES];
        int wanted = text < bytes_of(&r, set, first) ? first[text] : -1;
        for (int i = 0; i < BYTES && !found && go_on(&r, &set, wanted, &work); i++) found = work > STEP_WORK;
        found |= r.status == WEFT_LIMIT && r.work > STEP_WORK; /* not the work, but the ways or the frames */
        *all = r.status ? 0 : r.work;
    }
    ok = ok && r.status != WEFT_NO_MEMORY;
    weft__run_free(&r);
    return ok ? found : -1;
}

weft_status weft__automaton_probe(const weft__automaton *a, weft_error *err)
{
    char label[WEFT__RULE_LABEL];
    size_t work = ALL_WORK;
    for (size_t i = 0; i < a->n_rules && work; i++) {
        int found = 0;
        for (int text = 0; a->starts[i] >= 0 && text <= TRIES && work && !found; text++)
            found = grows(a, (int32_t)i, text, &work);
        if (found < 0) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
        if (found)
            return weft_fail(err, WEFT_LIMIT,
                             "grammar: %s can be read in ever more ways as the text grows; make it less ambiguous",
                             weft__rule_label(&a->names, (int32_t)i, a->lines[i], label));
    }
    return WEFT_OK;
}
