// SPDX-License-Identifier: Apache-2.0
/* bench_text.c: how fast text becomes tokens, what the grammars cost that attack it, and what a pick from a large
 * vocabulary takes: make bench-text. That none of it grows out of bounds is claimed by tests (text_speed,
 * text_grammar_limits, sample), whatever the machine; the bounds here are for a machine of today that does nothing
 * else.
 *
 * usage: bench_text [--check] with --check it fails (1) where a bound is missed; 75: where none is, but others took so
 * much of the time of one that it cannot be judged; 77: a part lacks its material. One thread. */
#include <stdio.h>

#include "base/taken.h"
#include "unit/grammar_attacks.h"
#include "unit/real_texts.h"
#include "unit/sampling.h"

enum { RUNS = 8, N_ENGLISH = 4 << 20, N_HOSTILE = 200000 };

static int check, n_missed, n_not_judged;
static weft__taken_mark since; /* the last row */

/* Prints a row, and what others took since the one before it; `fine`: it is within its bound. */
static void row(const char *part, const char *what, double value, const char *unit, const char *bound, int fine)
{
    char text[WEFT__TAKEN_ROOM];
    weft__taken_mark now;
    weft__taken_now(&now);
    weft__taken taken = weft__taken_between(&since, &now, 1);
    const int above = weft__taken_above(&taken);
    since = now;
    printf("%-9s %-34s %9.3f %-5s %-12s taken %-18s %s\n", part, what, value, unit, bound,
           weft__taken_text(&taken, above, text),
           above  ? "not judged"
           : fine ? ""
                  : "missed");
    n_not_judged += above;
    n_missed += !above && !fine;
}

static double least_of(growth_work *work, void *arg, size_t n, int runs)
{
    double least = 1e9;
    for (int i = 0; i < runs; i++) {
        double took = work(arg, n);
        least = took < least ? took : least;
    }
    return least;
}

static void english(void **state)
{
    (void)state;
    large v;
    large_open(&v, "deepseek-llm");
    weft__tok *tok = NULL;
    weft_error err = {0};
    if (weft__tok_create(&v.spec, &tok, &err)) fail_msg("%s", err.message);
    char *text = weft__alloc(N_ENGLISH);
    assert_non_null(text);
    write_english(&v, text, N_ENGLISH);
    double rate = N_ENGLISH / 1e6 / least_of(read_text, &(reading){.tok = tok, .text = text}, N_ENGLISH, RUNS);
    row("tokens", "English, 128 k tokens", rate, "MB/s", "10 or more", rate >= 10);
    weft__free(text);
    weft__tok_destroy(&tok);
    large_close(&v);
}

/* The slowest of the hostile texts for each vocabulary. */
static void hostile(void **state)
{
    (void)state;
    char *text = weft__alloc(N_HOSTILE);
    assert_non_null(text);
    for (int v = 0; hostile_vocabularies[v]; v++) {
        weft__gguf *g = open_vocabulary(hostile_vocabularies[v]);
        weft__tok *tok = NULL;
        weft_error err = {0};
        if (weft__vocab_tokenizer(g, &tok, &err)) fail_msg("%s", err.message);
        weft__gguf_close(&g);
        double most = 0;
        char what[64] = "";
        for (int i = 0; i < N_HOSTILE_TEXTS; i++) {
            const char *name = write_hostile(i, text, N_HOSTILE);
            double took = least_of(read_text, &(reading){.tok = tok, .text = text}, N_HOSTILE, 2);
            if (took > most)
                most = took,
                snprintf(what, sizeof what, "%s, '%s'", hostile_vocabularies[v], *name > ' ' ? name : "blanks");
        }
        row("hostile", what, N_HOSTILE / 1e6 / most, "MB/s", "0.1 or more", N_HOSTILE / 1e6 / most >= 0.1);
        weft__tok_destroy(&tok);
    }
    weft__free(text);
}

typedef struct meeting {
    const attack *k;
    const vocab *v;
} meeting;

static double meet(void *arg, size_t unused)
{
    const meeting *m = arg;
    (void)unused;
    double before = own_seconds();
    attack_run(m->k, m->v);
    return own_seconds() - before;
}

static void attacks(void **state)
{
    (void)state;
    static vocab v;
    vocab_make(&v, 1, 30);
    for (int i = 0; i < N_ATTACKS; i++) {
        attack k;
        attack_make(&k, i, EIGHTHS);
        double took = least_of(meet, &(meeting){&k, &v}, 0, 2);
        row("grammar", k.name, took, "s", "0.5 at most", took <= 0.5);
        attack_free(&k);
    }
    vocab_close(&v);
}

static void picks(void **state)
{
    (void)state;
    float *logits = weft__alloc_array(SAMPLING_VOCAB, sizeof *logits),
          *copy = weft__alloc_array(SAMPLING_VOCAB, sizeof *copy);
    assert_true(logits && copy);
    sampling_logits(logits);
    for (int kind = 0; kind < SAMPLING_KINDS; kind++) {
        weft_sampler_params p;
        const char *name = sampling_kind(kind, &p);
        double ms = 1e3 * least_of(sampling_pick, &(sampling_job){logits, copy, &p}, SAMPLING_VOCAB, 30);
        row("pick", name, ms, "ms", "1 at most", ms < 1);
    }
    weft__free(logits);
    weft__free(copy);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest parts[] = {cmocka_unit_test(english), cmocka_unit_test(hostile), cmocka_unit_test(attacks),
                                       cmocka_unit_test(picks)};
    check = argc == 2 && !strcmp(argv[1], "--check");
    if (argc > 2 || (argc == 2 && !check)) return fprintf(stderr, "usage: bench_text [--check]\n"), 2;
    weft__taken_now(&since);
    int n_failed = cmocka_run_group_tests(parts, NULL, NULL);
    if (check && n_missed) fprintf(stderr, "bench_text: %d bounds missed\n", n_missed);
    if (check && n_not_judged) fprintf(stderr, "bench_text: %d rows not judged\n", n_not_judged);
    if (check && n_not_judged && !n_missed && !n_failed) return 75;
    return claims_status(n_failed || (check && n_missed));
}
