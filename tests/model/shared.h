// SPDX-License-Identifier: Apache-2.0
/* shared.h: finding and reading models and goldens for tests: the reference material, or what tests/material/make makes
 * in its place. */
#ifndef WEFT_TESTS_SHARED_H
#define WEFT_TESTS_SHARED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* WEFT_SHARED, else ../shared, and where that is absent build/material (the same as in tests/material/where.py). */
static inline const char *shared_dir(void)
{
    static const char usual[] = "../shared";
    const char *given = getenv("WEFT_SHARED");
    if (given && given[0] && strcmp(given, usual)) return given;
    return access("../shared/models", R_OK) ? "build/material" : usual;
}

/* "DIR/sub/name" in one of a few static buffers, or NULL where there is no such file. */
static inline const char *shared_path(const char *format, const char *name)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8], rest[256];
    snprintf(rest, sizeof rest, format, name);
    snprintf(path, sizeof paths[0], "%s/%s", shared_dir(), rest);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fclose(f);
    return path;
}

enum { GOLDEN_TOKENS = 256, GOLDEN_VOCAB = 512 };

struct golden {
    int32_t prompt[GOLDEN_TOKENS], greedy[GOLDEN_TOKENS];
    int n_prompt, n_greedy;
    float *logits; /* [n_prompt, GOLDEN_VOCAB]; free() */
};

static inline int golden_ids(const char *line, int32_t *ids)
{
    int n = 0;
    for (char *end; n < GOLDEN_TOKENS; line = end, n++) {
        ids[n] = (int32_t)strtol(line, &end, 10);
        if (end == line) break;
    }
    return n;
}

/* 1 when the golden of that name was read. */
static inline int golden_read(const char *name, struct golden *g)
{
    char line[8192];
    const char *tokens = shared_path("golden/%s.tokens.txt", name), *logits = shared_path("golden/%s.logits.f32", name);
    *g = (struct golden){.n_prompt = 0};
    if (!tokens || !logits) return 0;
    FILE *f = fopen(tokens, "r");
    while (f && fgets(line, sizeof line, f)) {
        if (!strncmp(line, "prompt:", 7)) g->n_prompt = golden_ids(line + 7, g->prompt);
        if (!strncmp(line, "greedy:", 7)) g->n_greedy = golden_ids(line + 7, g->greedy);
    }
    if (f) fclose(f);
    size_t n = (size_t)g->n_prompt * GOLDEN_VOCAB;
    g->logits = malloc(n * sizeof(float) + 1);
    f = fopen(logits, "rb");
    size_t got = f && g->logits ? fread(g->logits, sizeof(float), n, f) : 0;
    if (f) fclose(f);
    return n > 0 && got == n;
}

#endif
