// SPDX-License-Identifier: Apache-2.0
/* repo.c: weft_hub_repo: what a repository has, and outlines of it, in a temporary folder of its own. One thread per
 * object. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/params.h"
#include "base/text.h"
#include "hub/fetch_head.h"
#include "weft/weft.h"

typedef struct repo_model {
    weft__hub_choice files;
    uint64_t n_bytes;
    int made; /* its outline */
} repo_model;

struct weft_hub_repo {
    weft__hub_name name;
    char label[2 * WEFT__HUB_PART_MAX + 2];
    weft_pull_params params;
    weft_pull_state state;
    weft__remote remote;
    weft__listing listing;
    repo_model *models;
    size_t n, capacity;
    char folder[64]; /* "": no outline was made */
    int dir;
};

static int repo_poll(void *arg)
{
    weft_hub_repo *r = arg;
    return r->params.progress && r->params.progress(r->params.progress_arg, &r->state);
}

static weft_status add_model(weft_hub_repo *r, const char *what, weft_error *err)
{
    if (!weft__grow(&r->models, &r->capacity, r->n + 1, sizeof *r->models))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for the models of %s", r->label);
    repo_model *m = &r->models[r->n];
    *m = (repo_model){0};
    weft_status st = weft__listing_choose(&r->listing, r->label, what, &m->files, err);
    if (st) return st;
    for (size_t i = 0; i < m->files.n; i++)
        if (m->files.files[i]->n_bytes <= UINT64_MAX - m->n_bytes) m->n_bytes += m->files.files[i]->n_bytes;
    r->n++;
    return WEFT_OK;
}

static int by_bytes(const void *a, const void *b)
{
    const uint64_t x = ((const repo_model *)a)->n_bytes, y = ((const repo_model *)b)->n_bytes;
    return (x > y) - (x < y);
}

/* Every model, or the one that was named. A set with parts missing is none. */
static weft_status list_models(weft_hub_repo *r, weft_error *err)
{
    if (r->name.what[0]) return add_model(r, r->name.what, err);
    for (size_t i = 0; i < r->listing.n; i++) {
        if (!weft__hub_is_leader(&r->listing.files[i])) continue;
        weft_status st = add_model(r, r->listing.files[i].path, NULL);
        if (st == WEFT_NO_MEMORY) return weft_fail(err, st, "no memory for the models of %s", r->label);
    }
    if (!r->n) return add_model(r, "", err);
    qsort(r->models, r->n, sizeof *r->models, by_bytes);
    return WEFT_OK;
}

weft_status weft_hub_open(const char *name, const weft_pull_params *params, weft_hub_repo **out, weft_error *err)
{
    *out = NULL;
    weft_hub_repo *r = weft__alloc_zero(1, sizeof *r);
    if (!r) return weft_fail(err, WEFT_NO_MEMORY, "no memory to look at %s", name);
    r->dir = -1;
    r->state.what = "listing";
    weft_pull_params_default(&r->params);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_pull_params), &r->params, params, err);
    if (!st) st = weft__hub_name_parse(name, &r->name, err);
    if (!st) {
        snprintf(r->label, sizeof r->label, "%s/%s", r->name.owner, r->name.repo);
        st = weft__remote_open(&r->remote, repo_poll, r, err);
    }
    if (!st) st = weft__remote_list(&r->remote, &r->name, &r->listing, err);
    if (!st) st = list_models(r, err);
    if (st) weft_hub_close(&r);
    else *out = r;
    return st;
}

int32_t weft_hub_n_models(const weft_hub_repo *r)
{
    return (int32_t)r->n;
}

static weft_status find_model(const weft_hub_repo *r, int32_t index, repo_model **out, weft_error *err)
{
    *out = NULL;
    if (index < 0 || (size_t)index >= r->n)
        return weft_fail(err, WEFT_ARGUMENT, "%s has %zu models; there is none of index %d", r->label, r->n, index);
    *out = &r->models[index];
    return WEFT_OK;
}

weft_status weft_hub_model_at(const weft_hub_repo *r, int32_t index, weft_hub_model *out, weft_error *err)
{
    repo_model *m;
    weft_status st = find_model(r, index, &m, err);
    if (!m) return st;
    const char *path = m->files.kind == WEFT__HUB_CHOICE_FOLDER ? "" : m->files.files[0]->path;
    const char *type = path[0] ? weft__hub_quantization(path) : NULL;
    weft_hub_model own = {.size = sizeof own,
                          .n_files = (int32_t)m->files.n,
                          .what = path,
                          .type = type ? type : "",
                          .n_bytes = m->n_bytes};
    return weft__params_write(WEFT__PARAMS_TYPE(weft_hub_model), out, &own, err);
}

/* ---- outlines ---- */

static weft_status make_folder(weft_hub_repo *r, weft_error *err)
{
    const char *place = getenv("TMPDIR");
    if (r->dir >= 0) return WEFT_OK;
    const int n = snprintf(r->folder, sizeof r->folder, "%s/weft-heads-XXXXXX", place && place[0] ? place : "/tmp");
    if (n < 0 || (size_t)n >= sizeof r->folder) snprintf(r->folder, sizeof r->folder, "/tmp/weft-heads-XXXXXX");
    if (mkdtemp(r->folder)) r->dir = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    else r->folder[0] = 0;
    return r->dir >= 0 ? WEFT_OK : weft_fail(err, WEFT_IO, "a temporary folder (TMPDIR): %s", strerror(errno));
}

/* Where file i of a model lies: in a folder of the model's own, without those of the repository. */
static const char *leaf_of(const repo_model *m, size_t i)
{
    size_t n;
    return weft__path_last(m->files.files[i]->path, &n);
}

static weft_status make_outline(weft_hub_repo *r, const repo_model *m, int dir, weft_error *err)
{
    for (size_t i = 0; i < m->files.n; i++) {
        const weft__hub_file *f = m->files.files[i];
        r->state =
            (weft_pull_state){.what = "looking", .file = f->path, .index = (int32_t)i, .n_files = (int32_t)m->files.n};
        weft_status st = weft__hub_fetch_head(&r->remote, &r->name, f, dir, leaf_of(m, i), err);
        if (st) return weft_fail_within(err, st, "%s", r->label);
    }
    return WEFT_OK;
}

weft_status weft_hub_outline(weft_hub_repo *r, int32_t index, char *path, size_t capacity, weft_error *err)
{
    repo_model *m;
    char own[16];
    weft_status st = find_model(r, index, &m, err);
    if (!m || (st = make_folder(r, err))) return st;
    snprintf(own, sizeof own, "%d", index);
    if (!m->made) {
        const int made = !mkdirat(r->dir, own, 0700) || errno == EEXIST;
        const int dir = made ? openat(r->dir, own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (dir < 0) return weft_fail(err, WEFT_IO, "the temporary folder %s: %s", r->folder, strerror(errno));
        st = make_outline(r, m, dir, err);
        close(dir);
        if (st) return st;
        m->made = 1;
    }
    const int folder = m->files.kind == WEFT__HUB_CHOICE_FOLDER;
    const int n = snprintf(path, capacity, "%s/%s%s%s", r->folder, own, folder ? "" : "/", folder ? "" : leaf_of(m, 0));
    return n >= 0 && (size_t)n < capacity ? WEFT_OK : weft_fail(err, WEFT_LIMIT, "the path of an outline is too long");
}

static void remove_outline(weft_hub_repo *r, size_t index)
{
    char path[16 + WEFT__HUB_PATH_MAX + 4];
    const repo_model *m = &r->models[index];
    for (size_t i = 0; i < m->files.n; i++) {
        snprintf(path, sizeof path, "%zu/%s", index, leaf_of(m, i));
        unlinkat(r->dir, path, 0);
    }
    snprintf(path, sizeof path, "%zu", index);
    unlinkat(r->dir, path, AT_REMOVEDIR);
}

void weft_hub_close(weft_hub_repo **repo)
{
    weft_hub_repo *r = repo ? *repo : NULL;
    if (!r) return;
    for (size_t i = 0; i < r->n; i++) {
        if (r->dir >= 0) remove_outline(r, i);
        weft__hub_choice_free(&r->models[i].files);
    }
    if (r->dir >= 0) close(r->dir);
    if (r->folder[0]) rmdir(r->folder);
    weft__free(r->models);
    weft__listing_free(&r->listing);
    weft__remote_close(&r->remote);
    weft__free(r);
    *repo = NULL;
}
