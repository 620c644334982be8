// SPDX-License-Identifier: Apache-2.0
/* pull.c: weft_pull: from a name to files in the cache. One thread per call; processes exclude each other by the
 * repository's lock. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/params.h"
#include "hub/cache.h"
#include "hub/download.h"
#include "hub/manifest.h"
#include "weft/weft.h"

typedef struct pull {
    weft__hub_name name;
    char label[2 * WEFT__HUB_PART_MAX + 2];
    const weft_pull_params *params;
    weft_pull_state state;
    uint64_t before; /* bytes of the files that are complete */
    weft__remote remote;
    weft__listing listing;
    weft__hub_choice choice;
    weft__json *manifest;
    int dir, lock;
} pull;

void(weft_pull_params_default)(weft_pull_params *params)
{
    *params = (weft_pull_params){.size = sizeof *params};
}

void weft_pull_params_init(weft_pull_params *params, uint32_t size)
{
    weft_pull_params own;
    (weft_pull_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_pull_params), params, size, &own);
}

static int say(pull *p)
{
    return p->params->progress && p->params->progress(p->params->progress_arg, &p->state);
}

static int while_listing(void *arg)
{
    pull *p = arg;
    p->state.what = "listing";
    return say(p);
}

static int while_waiting(void *arg)
{
    pull *p = arg;
    p->state.what = "waiting";
    return say(p);
}

static int while_fetching(void *arg, const char *what, uint64_t done)
{
    pull *p = arg;
    p->state.what = what;
    p->state.done = p->before + done;
    return say(p);
}

/* The folder of file i and its download order; *dir is closed by the caller. */
static weft_status pull_prepare(pull *p, size_t i, int create, weft__download *d, weft_error *err)
{
    const weft__hub_file *f = p->choice.files[i];
    char shown[WEFT__HUB_SHOW];
    *d = (weft__download){.remote = &p->remote, .name = &p->name, .file = f, .progress = while_fetching, .arg = p};
    d->dir = weft__hub_dir_of(p->dir, f->path, create, &d->leaf);
    if (d->dir >= 0 || (!create && errno == ENOENT)) return WEFT_OK;
    return weft_fail(err, WEFT_IO, "%s: %s: its folder in the cache: %s", p->label,
                     weft__hub_show(shown, f->path, strlen(f->path)), strerror(errno));
}

/* Whether the file is there, complete and of the content that is listed now. */
static int is_present(const pull *p, const weft__download *d)
{
    struct stat s;
    return d->dir >= 0 && !fstatat(d->dir, d->leaf, &s, AT_SYMLINK_NOFOLLOW) && S_ISREG(s.st_mode) &&
           weft__manifest_has(p->manifest, d->file, (uint64_t)s.st_size);
}

/* Adds up what is wanted, and refuses when the disk cannot take what is missing of it. */
static weft_status check_room(pull *p, weft_error *err)
{
    uint64_t missing = 0;
    for (size_t i = 0; i < p->choice.n; i++) {
        const weft__hub_file *f = p->choice.files[i];
        weft__download d;
        weft_status st = pull_prepare(p, i, 0, &d, err);
        if (st) return st;
        uint64_t there = is_present(p, &d) ? f->n_bytes : d.dir >= 0 ? weft__download_begun(&d) : 0;
        if (d.dir >= 0) close(d.dir);
        if (!f->has_size) continue;
        if (!weft__checked_add(p->state.bytes, f->n_bytes, &p->state.bytes) ||
            !weft__checked_add(missing, f->n_bytes - there, &missing))
            return weft_fail(err, WEFT_FORMAT, "%s: the listing announces more bytes than there can be", p->label);
    }
    return weft__hub_disk_room(p->dir, missing, err);
}

static weft_status fetch_one(pull *p, size_t i, weft_pull_result *result, weft_error *err)
{
    char sha256[65];
    uint64_t n_bytes = p->choice.files[i]->n_bytes;
    int verified;
    weft__download d;
    weft_status st = pull_prepare(p, i, 1, &d, err);
    if (st) return st;
    p->state.file = p->choice.files[i]->path;
    p->state.index = (int32_t)i;
    if (!is_present(p, &d)) {
        st = weft__download_run(&d, sha256, &n_bytes, &verified, err);
        if (!st) st = weft__manifest_put(p->dir, p->manifest, d.file, n_bytes, sha256, err);
        result->n_fetched += !st;
        result->n_unverified += !st && !verified;
    }
    close(d.dir);
    if (st) return weft_fail_within(err, st, "%s", p->label);
    p->before += n_bytes;
    result->n_bytes += n_bytes;
    return WEFT_OK;
}

static weft_status pull_files(pull *p, weft_pull_result *result, weft_error *err)
{
    weft_status st = weft__hub_cache_lock(&p->name, while_waiting, p, &p->lock, err);
    if (st || (st = weft__hub_cache_open(&p->name, 1, &p->dir, err)) ||
        (st = weft__manifest_read(p->dir, &p->manifest, err)))
        return st;
    p->state.n_files = result->n_files = (int32_t)p->choice.n;
    if ((st = check_room(p, err))) return weft_fail_within(err, st, "%s", p->label);
    if (p->choice.kind == WEFT__HUB_CHOICE_FOLDER &&
        (st = weft__manifest_set_folder(p->dir, p->manifest, &p->choice, err)))
        return st;
    for (size_t i = 0; i < p->choice.n && !st; i++) st = fetch_one(p, i, result, err);
    return st;
}

/* Removes the folders that were made for a pull that brought nothing. */
static void tidy(pull *p)
{
    if (p->dir >= 0) weft__hub_cache_remove_if_empty(&p->name);
}

weft_status weft_pull(const char *name, const weft_pull_params *params, weft_pull_result *result, weft_error *err)
{
    weft_pull_params defaults;
    weft_pull_params_default(&defaults);
    *result = (weft_pull_result){0};
    pull *p = weft__alloc_zero(1, sizeof *p);
    if (!p) return weft_fail(err, WEFT_NO_MEMORY, "no memory to pull %s", name);
    p->params = &defaults;
    p->dir = p->lock = -1;
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_pull_params), &defaults, params, err);
    if (!st) st = weft__hub_name_parse(name, &p->name, err);
    if (st) goto done;
    snprintf(p->label, sizeof p->label, "%s/%s", p->name.owner, p->name.repo);
    if ((st = weft__remote_open(&p->remote, while_listing, p, err))) goto done;
    if ((st = weft__remote_list(&p->remote, &p->name, &p->listing, err))) goto done;
    if ((st = weft__listing_choose(&p->listing, p->label, p->name.what, &p->choice, err))) goto done;
    st = pull_files(p, result, err);
    if (st) tidy(p);
    else
        st = weft__hub_cache_path(&p->name, p->choice.kind == WEFT__HUB_CHOICE_FOLDER ? NULL : p->choice.files[0]->path,
                                  result->path, sizeof result->path, err);
done:
    weft__json_free(&p->manifest);
    if (p->dir >= 0) close(p->dir);
    if (p->lock >= 0) close(p->lock);
    weft__hub_choice_free(&p->choice);
    weft__listing_free(&p->listing);
    weft__remote_close(&p->remote);
    weft__free(p);
    return st;
}
