// SPDX-License-Identifier: Apache-2.0
/* draft.c: see draft.h. */
#include "draft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pull.h"
#include "terminal.h"
#include "weft/hub.h"

int draft_check(const char *command, const char *draft, const char *spec)
{
    if (!strcmp(spec, "draft") && !draft) {
        fprintf(stderr, "weft %s: --spec draft: which model guesses? Name it with --draft MODEL, or --draft auto\n",
                command);
        return 0;
    }
    if (draft && strcmp(spec, "draft") && strcmp(spec, "auto")) {
        fprintf(stderr, "weft %s: --draft: with --spec %s no model guesses; leave out one of them\n", command, spec);
        return 0;
    }
    return 1;
}

/* The search of --draft auto. */
typedef struct draft_search {
    const weft_model *target;
    uint64_t least, n_bytes; /* on the disk, of what was found last and now; n_bytes 0: nothing */
    char *path, *name;       /* of it */
    double gain;
    int n_seen;
    int failed; /* without memory */
} draft_search;

static void consider(void *arg, const weft_pulled *m)
{
    draft_search *s = arg;
    weft_model_params p;
    weft_model *outline = NULL;
    double gain = 0;
    if (!m->complete || (s->n_bytes && m->n_bytes >= s->n_bytes)) return;
    weft_model_params_default(&p);
    p.outline = 1;
    if (weft_model_open(m->path, &p, &outline, NULL)) return; /* not a model that runs here */
    s->n_seen++;
    if (!weft_draft_fits(s->target, outline, &gain, NULL) && gain > 1) {
        free(s->path);
        free(s->name);
        s->path = strdup(m->path);
        s->name = strdup(m->name);
        s->n_bytes = m->n_bytes;
        s->gain = gain;
        s->failed |= !s->path || !s->name;
    }
    weft_model_close(&outline);
}

/* The smallest of those that were pulled, have the target's vocabulary, and should gain; its path is the caller's.
 * NULL: there is none. */
static weft_status find_smallest(const char *command, const weft_model *target, char **path, weft_error *err)
{
    draft_search s = {.target = target};
    weft_status st = weft_pulled_each(consider, &s, err);
    *path = NULL;
    if (st == WEFT_UNSUPPORTED || st == WEFT_NOT_FOUND) st = WEFT_OK; /* there are none */
    if (!st && s.failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory to look for a draft model");
    if (!st && s.path) {
        fprintf(stderr, "weft %s: --draft auto: %s guesses\n", command, s.name);
        *path = s.path;
        s.path = NULL;
    } else if (!st) {
        fprintf(stderr,
                "weft %s: --draft auto: of %d pulled models none has this vocabulary and is small enough to gain; it "
                "goes on without\n",
                command, s.n_seen);
    }
    free(s.path);
    free(s.name);
    return st;
}

weft_status draft_open(const char *command, const char *draft, const weft_model *target,
                       const weft_model_params *params, weft_model **out, weft_error *err)
{
    char *found = NULL;
    const char *path = draft;
    weft_status st = WEFT_OK;
    *out = NULL;
    if (!draft) return WEFT_OK;
    if (!strcmp(draft, "auto")) {
        st = find_smallest(command, target, &found, err);
        if (st || !found) return st;
        path = found;
    } else {
        st = pull_if_missing(path, err);
    }
    weft_model_params p = *params;
    p.rope = (weft_rope_params){0}; /* the target's */
    p.n_ctx = 0;
    if (!st) st = open_shown_with(path, &p, out, err);
    if (!st && (st = weft_draft_fits(target, *out, NULL, err))) {
        weft_model_close(out);
        st = weft_fail_within(err, st, "--draft");
    }
    free(found);
    return st;
}
