// SPDX-License-Identifier: Apache-2.0
/* fit_hub.c: what of a repository fits (fit.h), by the heads of its files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"

weft_status fit_hub_cases(weft_hub_repo *repo, fit_case **cases, int *n, weft_error *err)
{
    *n = weft_hub_n_models(repo);
    *cases = calloc((size_t)*n + 1, sizeof **cases);
    if (!*cases) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %d models", *n);
    for (int i = 0; i < *n; i++) {
        weft_hub_model m = {.size = sizeof m};
        weft_status st = weft_hub_model_at(repo, i, &m, err);
        if (st) return st;
        fit_case *c = &(*cases)[i];
        const char *slash = strrchr(m.what, '/'), *name = slash ? slash + 1 : m.what;
        snprintf(c->label, sizeof c->label, "%s", m.type[0] ? m.type : name[0] ? name : "safetensors");
        snprintf(c->what, sizeof c->what, "%s", m.what);
        c->file_bytes = m.n_bytes;
    }
    return WEFT_OK;
}

/* Looks at those that may be chosen, the largest first, until one is as good as any smaller one could be. */
static weft_status look_until_chosen(weft_hub_repo *repo, const fit_options *o, const fit_machine *m, fit_case *cases,
                                     int n, weft_error *err)
{
    for (int i = n - 1; i >= 0; i--) {
        char path[4096];
        weft_error own = {0};
        if (!fit_may_be_chosen(cases, n, i, m)) continue;
        weft_status st = weft_hub_outline(repo, i, path, sizeof path, &own);
        if (st == WEFT_NO_MEMORY || st == WEFT_CANCELLED || st == WEFT_IO) {
            *err = own;
            return st;
        }
        if (st) snprintf(cases[i].why, sizeof cases[i].why, "%.*s", FIT_WHY - 1, own.message);
        else if ((st = fit_look_at(path, o, m, &cases[i], err))) return st;
        char why[FIT_WHY];
        const int chosen = fit_choose(cases, n, m, why);
        if (chosen >= 0 && cases[chosen].generation.least + cases[chosen].generation.most >= 2 * FIT_FAST)
            return WEFT_OK;
    }
    return WEFT_OK;
}

weft_status fit_choose_of_hub(const char *name, const fit_options *o, const weft_pull_params *params, char *what,
                              size_t capacity, char why[FIT_WHY], weft_error *err)
{
    weft_hub_repo *repo;
    fit_case *cases = NULL;
    fit_machine m;
    int n = 0;
    what[0] = why[0] = 0;
    weft_status st = weft_hub_open(name, params, &repo, err);
    if (st) return st;
    if (weft_hub_n_models(repo) < 2) goto done; /* there is nothing to choose */
    if ((st = fit_hub_cases(repo, &cases, &n, err)) || (st = fit_look_around(o, &m, err)) ||
        (st = look_until_chosen(repo, o, &m, cases, n, err)))
        goto done;
    int looked = 0, too_large = 0;
    for (int i = 0; i < n; i++) {
        looked += cases[i].looked;
        too_large += cases[i].file_bytes > m.room;
    }
    const int chosen = fit_choose(cases, n, &m, why);
    if (chosen >= 0) snprintf(what, capacity, "%s", cases[chosen].what);
    else if (looked || too_large == n) st = weft_fail(err, WEFT_LIMIT, "%s: %s", name, why);
    else why[0] = 0; /* no head could be read: the order of names decides, as ever */
done:
    free(cases);
    weft_hub_close(&repo);
    return st;
}
