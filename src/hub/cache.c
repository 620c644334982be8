// SPDX-License-Identifier: Apache-2.0
/* cache.c: folders and locks of the cache (cache.h). State: the disk only. */
#include "hub/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/place.h"

enum { TRIES = 8 };

static weft_status too_long(weft_error *err)
{
    return weft_fail(err, WEFT_LIMIT, "the path of the model cache is too long");
}

static weft_status printed(int n, size_t capacity, weft_error *err)
{
    return n < 0 || (size_t)n >= capacity ? too_long(err) : WEFT_OK;
}

weft_status weft__hub_cache_root(char out[WEFT__HUB_CACHE_PATH], weft_error *err)
{
    const int found = weft__place_in_cache(out, WEFT__HUB_CACHE_PATH, NULL);
    if (!found) return weft_fail(err, WEFT_NOT_FOUND, "no place for pulled models: set WEFT_CACHE or HOME");
    return found > 0 ? WEFT_OK : too_long(err);
}

weft_status weft__hub_cache_path(const weft__hub_name *name, const char *path, char *out, size_t capacity,
                                 weft_error *err)
{
    char root[WEFT__HUB_CACHE_PATH];
    weft_status st = weft__hub_cache_root(root, err);
    if (st) return st;
    return printed(snprintf(out, capacity, "%s/models/%s/%s%s%s", root, name->owner, name->repo, path ? "/" : "",
                            path ? path : ""),
                   capacity, err);
}

int weft__hub_dir_open(int dir, const char *name, int create)
{
    if (create && mkdirat(dir, name, 0700) && errno != EEXIST) return -1;
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ROOT/SUB, with the folders above it; those may be links: where the cache lies is the user's choice. */
static weft_status open_below_root(const char *sub, int create, int *fd, weft_error *err)
{
    char path[WEFT__HUB_CACHE_PATH + 16];
    weft_status st = weft__hub_cache_root(path, err);
    *fd = -1;
    if (st) return st;
    strcat(strcat(path, "/"), sub);
    for (char *s = strchr(path + 1, '/'); create && s; s = strchr(s + 1, '/')) {
        *s = 0;
        if (mkdir(path, 0700) && errno != EEXIST)
            return weft_fail(err, WEFT_IO, "%s: cannot make this folder: %s", path, strerror(errno));
        *s = '/';
    }
    if (create && mkdir(path, 0700) && errno != EEXIST)
        return weft_fail(err, WEFT_IO, "%s: cannot make this folder: %s", path, strerror(errno));
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd >= 0) return WEFT_OK;
    return weft_fail(err, errno == ENOENT ? WEFT_NOT_FOUND : WEFT_IO, "%s: %s", path, strerror(errno));
}

weft_status weft__hub_cache_open_models(int create, int *fd, weft_error *err)
{
    return open_below_root("models", create, fd, err);
}

weft_status weft__hub_cache_open(const weft__hub_name *name, int create, int *fd, weft_error *err)
{
    int models;
    weft_status st = weft__hub_cache_open_models(create, &models, err);
    *fd = -1;
    if (st) return st;
    /* Removing the last model of an owner removes the owner's folder too; then it is made again. */
    for (int i = 0; i < (create ? TRIES : 1) && *fd < 0; i++) {
        int owner = weft__hub_dir_open(models, name->owner, create);
        if (owner < 0) continue;
        *fd = weft__hub_dir_open(owner, name->repo, create);
        int why = errno;
        close(owner);
        errno = why;
    }
    int why = errno;
    close(models);
    if (*fd >= 0) return WEFT_OK;
    if (why == ENOENT && !create)
        return weft_fail(err, WEFT_NOT_FOUND, "%s/%s: was not pulled (weft list shows what was)", name->owner,
                         name->repo);
    return weft_fail(err, WEFT_IO, "%s/%s: its folder in the cache cannot be opened: %s", name->owner, name->repo,
                     why == ELOOP || why == ENOTDIR ? "it is a symbolic link or no folder" : strerror(why));
}

weft_status weft__hub_cache_lock(const weft__hub_name *name, int (*wait)(void *arg), void *arg, int *fd,
                                 weft_error *err)
{
    char file[2 * WEFT__HUB_PART_MAX + 2];
    int locks;
    weft_status st = open_below_root("locks", 1, &locks, err);
    *fd = -1;
    if (st) return st;
    snprintf(file, sizeof file, "%s@%s", name->owner, name->repo);
    *fd = openat(locks, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int why = errno;
    close(locks);
    if (*fd < 0)
        return weft_fail(err, WEFT_IO, "%s/%s: its lock in the cache: %s", name->owner, name->repo, strerror(why));
    while (flock(*fd, LOCK_EX | LOCK_NB)) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) {
            weft__log(WEFT__LOG_WARN, "%s/%s: this file system cannot lock (%s): do not pull it twice at once",
                      name->owner, name->repo, strerror(errno));
            return WEFT_OK;
        }
        if (!wait) st = weft_fail(err, WEFT_STATE, "%s/%s: another process is pulling it", name->owner, name->repo);
        else if (wait(arg))
            st = weft_fail(err, WEFT_CANCELLED, "cancelled while another process pulls %s/%s", name->owner, name->repo);
        if (st) {
            close(*fd);
            *fd = -1;
            return st;
        }
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    return WEFT_OK;
}

int weft__hub_dir_of(int dir, const char *path, int create, const char **leaf)
{
    int at = dup(dir);
    const char *slash;
    for (; at >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        char segment[WEFT__HUB_SEGMENT_MAX + 1];
        snprintf(segment, sizeof segment, "%.*s", (int)(slash - path), path);
        int next = weft__hub_dir_open(at, segment, create), why = errno;
        close(at);
        errno = why;
        at = next;
    }
    *leaf = path;
    return at;
}
