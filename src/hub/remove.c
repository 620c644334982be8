// SPDX-License-Identifier: Apache-2.0
/* remove.c: weft_pulled_remove: deleting from the cache, and only from it. State: the disk only.
 *
 * Everything goes through descriptors of folders that were opened without following links (cache.h), so that whatever
 * was put into the cache, nothing outside it is touched. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hub/cache.h"
#include "weft/weft.h"

enum { DEPTH_MAX = 32 };

static weft_status remove_below(int dir, int depth, uint64_t *n_bytes, weft_error *err);

static weft_status remove_entry(int dir, const char *name, int depth, uint64_t *n_bytes, weft_error *err)
{
    char shown[WEFT__HUB_SHOW];
    struct stat s;
    weft_status st = WEFT_OK;
    if (fstatat(dir, name, &s, AT_SYMLINK_NOFOLLOW)) return WEFT_OK; /* gone already */
    int is_folder = S_ISDIR(s.st_mode);
    if (is_folder) {
        int below = depth < DEPTH_MAX ? weft__hub_dir_open(dir, name, 0) : -1;
        st = below >= 0 ? remove_below(below, depth + 1, n_bytes, err)
                        : weft_fail(err, WEFT_IO, "%s: cannot be opened", weft__hub_show(shown, name, strlen(name)));
    }
    if (st) return st;
    if (unlinkat(dir, name, is_folder ? AT_REMOVEDIR : 0))
        return weft_fail(err, WEFT_IO, "%s: cannot be removed: %s", weft__hub_show(shown, name, strlen(name)),
                         strerror(errno));
    if (S_ISREG(s.st_mode)) *n_bytes += (uint64_t)s.st_size;
    return WEFT_OK;
}

/* Empties dir, and closes it. */
static weft_status remove_below(int dir, int depth, uint64_t *n_bytes, weft_error *err)
{
    weft_status st = WEFT_OK;
    DIR *d = fdopendir(dir);
    if (!d) {
        close(dir);
        return weft_fail(err, WEFT_IO, "reading a folder of the cache: %s", strerror(errno));
    }
    for (struct dirent *e; !st && (e = readdir(d));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) st = remove_entry(dir, e->d_name, depth, n_bytes, err);
    closedir(d);
    return st;
}

weft_status weft__hub_cache_remove(const weft__hub_name *name, uint64_t *n_bytes, weft_error *err)
{
    int dir, models, owner;
    weft_status st = weft__hub_cache_open(name, 0, &dir, err);
    if (st || (st = remove_below(dir, 0, n_bytes, err))) return st;
    if ((st = weft__hub_cache_open_models(0, &models, err))) return st;
    owner = weft__hub_dir_open(models, name->owner, 0);
    if (owner < 0 || unlinkat(owner, name->repo, AT_REMOVEDIR))
        st = weft_fail(err, WEFT_IO, "%s/%s: its folder: %s", name->owner, name->repo, strerror(errno));
    if (owner >= 0) close(owner);
    unlinkat(models, name->owner, AT_REMOVEDIR); /* unless another model is in it */
    close(models);
    return st;
}

void weft__hub_cache_remove_if_empty(const weft__hub_name *name)
{
    weft__listing l;
    uint64_t n_bytes = 0;
    int dir;
    if (weft__hub_cache_open(name, 0, &dir, NULL)) return;
    int empty = weft__hub_cache_scan(dir, &l, NULL) == WEFT_OK && l.n == 0;
    close(dir);
    weft__listing_free(&l);
    if (empty) weft__hub_cache_remove(name, &n_bytes, NULL);
}

/* The folders above path, from the inside, as long as they are empty. */
static void remove_empty_above(int dir, const char *path)
{
    char above[WEFT__HUB_PATH_MAX + 1];
    const char *leaf;
    snprintf(above, sizeof above, "%s", path);
    for (char *slash; (slash = strrchr(above, '/'));) {
        *slash = 0;
        int holder = weft__hub_dir_of(dir, above, 0, &leaf);
        int gone = holder >= 0 && unlinkat(holder, leaf, AT_REMOVEDIR) == 0;
        if (holder >= 0) close(holder);
        if (!gone) return;
    }
}

/* One file with what belongs to it: the unfinished download and its record. */
static weft_status remove_file(int dir, const char *path, uint64_t *n_bytes, weft_error *err)
{
    static const char *const suffixes[] = {"", WEFT__HUB_PART_SUFFIX, WEFT__HUB_PART_SUFFIX ".json"};
    char name[WEFT__HUB_SEGMENT_MAX + 16];
    const char *leaf;
    weft_status st = WEFT_OK;
    int holder = weft__hub_dir_of(dir, path, 0, &leaf);
    if (holder < 0) return weft_fail(err, WEFT_IO, "its folder in the cache: %s", strerror(errno));
    for (int i = 0; i < 3 && !st; i++) {
        snprintf(name, sizeof name, "%.*s%s", WEFT__HUB_SEGMENT_MAX, leaf, suffixes[i]);
        st = remove_entry(holder, name, DEPTH_MAX, n_bytes, err);
    }
    close(holder);
    if (!st) remove_empty_above(dir, path);
    return st;
}

/* The files that name->what chooses of those that are there, finished or not. */
static weft_status remove_chosen(const weft__hub_name *name, const char *label, uint64_t *n_bytes, weft_error *err)
{
    weft__listing l = {0};
    weft__hub_choice c = {0};
    int dir;
    weft_status st = weft__hub_cache_open(name, 0, &dir, err);
    if (st) return st;
    st = weft__hub_cache_scan(dir, &l, err);
    if (!st) st = weft__listing_choose(&l, label, name->what, &c, err);
    if (st == WEFT_FORMAT && weft__listing_find(&l, name->what))
        st = remove_file(dir, name->what, n_bytes, err); /* of an incomplete set */
    for (size_t i = 0; i < c.n && !st; i++) st = remove_file(dir, c.files[i]->path, n_bytes, err);
    close(dir);
    weft__hub_choice_free(&c);
    weft__listing_free(&l);
    if (!st) weft__hub_cache_remove_if_empty(name);
    return st;
}

weft_status weft_pulled_remove(const char *name, uint64_t *n_bytes, weft_error *err)
{
    weft__hub_name n;
    char label[2 * WEFT__HUB_PART_MAX + 2];
    int lock, dir;
    *n_bytes = 0;
    weft_status st = weft__hub_name_parse(name, &n, err);
    if (st) return st;
    snprintf(label, sizeof label, "%s/%s", n.owner, n.repo);
    st = weft__hub_cache_open(&n, 0, &dir, err);
    if (st == WEFT_NOT_FOUND) return weft_fail(err, st, "%s: was not pulled ('weft list' shows what was)", label);
    if (st) return st; /* no lock is made for what is not there */
    close(dir);
    if ((st = weft__hub_cache_lock(&n, NULL, NULL, &lock, err))) return st;
    st = n.what[0] ? remove_chosen(&n, label, n_bytes, err) : weft__hub_cache_remove(&n, n_bytes, err);
    if (lock >= 0) close(lock);
    return st;
}
