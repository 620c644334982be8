// SPDX-License-Identifier: Apache-2.0
/* schema_driver.c: texts that compiled JSON Schemas allow, for tests/peers/test_schema_walks.py. Each line of input is
 * an object with a `schema`, and `walks` random texts from `seed` on are wanted, or whether each of `texts` is taken. A
 * line of output is {"error": ...}, or {"walks": [...], "taken": [...]}; a walk that does not end is null. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/random.h"
#include "fuzz/walk_grammar.h"

enum { LONG = 200, MOST = 6000 };

/* The set behind a byte; what was made for a byte that leads nowhere is taken back. */
static weft__gram_set try_byte(weft__gram_run *r, weft__gram_set at, int byte)
{
    const size_t ways = r->n_ways, frames = r->n_frames, links = r->n_links;
    weft__gram_set next = weft__gram_run_step(r, at, (unsigned char)byte);
    if (next.begin == next.end && !next.done) {
        r->n_ways = ways;
        r->n_frames = frames;
        r->n_links = links;
    }
    return next;
}

/* Any byte that is allowed, those of ASCII rather; behind LONG bytes what ends something, and at some ends the end. */
static size_t walk(const weft__gram_automaton *a, weft__rng *rng, char *text, int *done)
{
    static const char closing[] = "}]\"0,:{[1truefalsn";
    weft__gram_run r;
    size_t n = 0;
    if (!weft__gram_run_init(&r, a)) abort();
    r.work = (size_t)1 << 26;
    weft__gram_set at = weft__gram_run_start(&r);
    while (n < MOST && !r.status && !(at.done && (at.begin == at.end || n > LONG || !weft__rng_below(rng, 3)))) {
        weft__gram_set next = {0, 0, 0};
        int found = -1;
        const int ends = n > LONG || !weft__rng_below(rng, 3);
        for (size_t i = 0; ends && closing[i] && found < 0; i++) {
            next = try_byte(&r, at, closing[i]);
            if (next.begin < next.end || next.done) found = (unsigned char)closing[i];
        }
        for (int k = 0; k < 2 && found < 0; k++) {
            const int first = (int)weft__rng_below(rng, k ? 256 : 95), room = k ? 256 : 95;
            for (int i = 0; i < room && found < 0; i++) {
                const int byte = k ? (first + i) % 256 : 32 + (first + i) % 95;
                next = try_byte(&r, at, byte);
                if (next.begin < next.end || next.done) found = byte;
            }
        }
        if (found < 0) break;
        text[n++] = (char)found;
        at = next;
    }
    *done = at.done && !r.status;
    weft__gram_run_free(&r);
    return n;
}

static void answer(const weft__json *job)
{
    weft__strbuf schema = {0};
    weft__gram_automaton *a = NULL;
    weft_error err = {0};
    int64_t walks = 0, seed = 0;
    static char text[MOST + 1];
    weft__json *out = weft__json_new_object(), *list = weft__json_new_array(), *taken = weft__json_new_array();
    weft__json_write(&schema, weft__json_get(job, "schema"), WEFT__JSON_COMPACT);
    weft__json_int(weft__json_get(job, "walks"), &walks);
    weft__json_int(weft__json_get(job, "seed"), &seed);
    weft__gram *g = weft__gram_create();
    int32_t root = weft__gram_read_schema(g, schema.data, schema.len);
    weft_status st = weft__gram_compile(g, root, WEFT__GRAM_JSON_DEPTH - 1, &a, &err);
    weft__gram_destroy(&g);
    weft__rng rng;
    weft__rng_seed(&rng, (uint64_t)seed);
    for (int64_t i = 0; !st && i < walks; i++) {
        int done;
        size_t n = walk(a, &rng, text, &done);
        weft__json_append(list, done ? weft__json_new_string(text, n) : weft__json_new_null());
    }
    const weft__json *texts = weft__json_get(job, "texts");
    for (size_t i = 0; !st && i < weft__json_size(texts); i++) {
        const char *s = "";
        size_t n = 0;
        weft__json_string(weft__json_at(texts, i), &s, &n);
        weft__json_append(taken, weft__json_new_bool(takes_text(a, s, n)));
    }
    weft__gram_automaton_destroy(&a);
    if (st) weft__json_set(out, "error", weft__json_new_string(err.message, strlen(err.message)));
    weft__json_set(out, "walks", list);
    weft__json_set(out, "taken", taken);
    schema.len = 0;
    weft__json_write(&schema, out, WEFT__JSON_COMPACT);
    printf("%.*s\n", (int)schema.len, schema.data);
    fflush(stdout);
    weft__strbuf_free(&schema);
    weft__json_free(&out);
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    while ((n = getline(&line, &room, stdin)) > 0) {
        weft__json *job = NULL;
        weft_error err = {0};
        if (weft__json_parse_bounds(line, (size_t)n, &job, &err)) {
            fprintf(stderr, "%s\n", err.message);
            return 1;
        }
        answer(job);
        weft__json_free(&job);
    }
    free(line);
    return 0;
}
