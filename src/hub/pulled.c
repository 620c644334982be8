// SPDX-License-Identifier: Apache-2.0
/* pulled.c: weft_resolve_model and weft_pulled_each: what the cache holds. Reads the disk only; any thread. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "hub/cache.h"
#include "hub/manifest.h"
#include "weft/weft.h"

/* Whether every file that the folder needs is there; *missing names one that is not. */
static int folder_is_whole(int dir, const weft__json *folder, char missing[WEFT__HUB_SHOW])
{
    for (size_t i = 0; i < weft__json_size(folder); i++) {
        const char *path = "?", *leaf;
        size_t n = 1;
        struct stat s;
        int ok = weft__json_string(weft__json_at(folder, i), &path, &n) && !weft__hub_path_fault(path, n);
        int below = ok ? weft__hub_dir_of(dir, path, 0, &leaf) : -1;
        ok = below >= 0 && !fstatat(below, leaf, &s, AT_SYMLINK_NOFOLLOW);
        if (below >= 0) close(below);
        if (ok) continue;
        weft__hub_show(missing, path, n);
        return 0;
    }
    return 1;
}

/* Leaves the complete files only. */
static void drop_partial(weft__listing *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (l->files[i].partial) weft__free(l->files[i].path);
        else l->files[kept++] = l->files[i];
    }
    l->n = kept;
}

static weft_status resolve_pulled(const char *name, const weft__hub_name *n, char *path, size_t capacity,
                                  weft_error *err)
{
    char label[2 * WEFT__HUB_PART_MAX + 2], missing[WEFT__HUB_SHOW];
    weft__listing l = {0};
    weft__hub_choice c = {0};
    weft__json *m = NULL;
    int dir;
    snprintf(label, sizeof label, "%s/%s", n->owner, n->repo);
    weft_status st = weft__hub_cache_open(n, 0, &dir, err);
    if (st == WEFT_NOT_FOUND)
        return weft_fail(
            err, st,
            "%s: no such file or folder, and not a pulled model ('weft pull OWNER/NAME' fetches one, as does "
            "--pull of run, chat and serve; 'weft list' shows them)",
            name);
    if (st) return st;
    if ((st = weft__hub_cache_scan(dir, &l, err)) || (st = weft__manifest_read(dir, &m, err))) goto done;
    drop_partial(&l);
    st = weft__listing_choose(&l, label, n->what, &c, err);
    if (!st && c.kind == WEFT__HUB_CHOICE_FOLDER && !folder_is_whole(dir, weft__manifest_folder(m), missing))
        st = weft_fail(err, WEFT_NOT_FOUND, "%s: \"%s\" is not there yet", label, missing);
    if (st)
        st = weft_fail_within(err, st == WEFT_NO_MEMORY ? st : WEFT_NOT_FOUND,
                              "of the pulled files ('weft pull %s' completes them)", name);
    else st = weft__hub_cache_path(n, c.kind == WEFT__HUB_CHOICE_FOLDER ? NULL : c.files[0]->path, path, capacity, err);
done:
    weft__hub_choice_free(&c);
    weft__json_free(&m);
    weft__listing_free(&l);
    close(dir);
    return st;
}

/* A pulled model whose repository is called so, without its owner. */
typedef struct namesake {
    const char *name;
    size_t n; /* of the name, up to the ':' */
    char found[2 * WEFT__HUB_PART_MAX + 2];
} namesake;

static void compare_repo(void *arg, const weft_pulled *p)
{
    namesake *s = arg;
    const char *slash = strchr(p->name, '/');
    const size_t n = slash ? strcspn(slash + 1, ":") : 0;
    if (n == s->n && !strncasecmp(slash + 1, s->name, n))
        snprintf(s->found, sizeof s->found, "%.*s", (int)strcspn(p->name, ":"), p->name);
}

static weft_status not_there(const char *name, int why, weft_error *err)
{
    namesake s = {.name = name, .n = strcspn(name, ":")};
    if (why != ENOENT || strchr(name, '/')) return weft_fail(err, WEFT_NOT_FOUND, "%s: %s", name, strerror(why));
    weft_pulled_each(compare_repo, &s, NULL);
    if (s.found[0])
        return weft_fail(err, WEFT_NOT_FOUND,
                         "%s: no such file or folder; of pulled models there is %s: say it with its owner", name,
                         s.found);
    return weft_fail(err, WEFT_NOT_FOUND,
                     "%s: %s (a pulled model is called OWNER/NAME; 'weft list' shows them, 'weft pull --known' short "
                     "names of others)",
                     name, strerror(why));
}

weft_status weft_resolve_model(const char *name, char *path, size_t capacity, weft_error *err)
{
    weft__hub_name n;
    struct stat s;
    if (!name[0])
        return weft_fail(err, WEFT_ARGUMENT, "the name of the model is empty; give a file, a folder or OWNER/NAME");
    int there = stat(name, &s) == 0, why = errno;
    if (there || (why != ENOENT && why != ENOTDIR)) {
        /* What is there but cannot be reached is for its readers to complain about. */
        if (strlen(name) >= capacity) return weft_fail(err, WEFT_LIMIT, "%.100s...: the path is too long", name);
        memcpy(path, name, strlen(name) + 1);
        return WEFT_OK;
    }
    if (weft__hub_name_parse(name, &n, NULL)) return not_there(name, why, err);
    return resolve_pulled(name, &n, path, capacity, err);
}

/* ---- listing ---- */

typedef struct walk {
    weft_pulled_fn each;
    void *arg;
    weft__hub_name name;
} walk;

/* Tells about one model: the files of `c`, or a single file. */
static weft_status tell(walk *w, const char *path, uint64_t n_bytes, int32_t n_files, int complete, weft_error *err)
{
    char name[2 * WEFT__HUB_PART_MAX + WEFT__HUB_PATH_MAX + 4], full[WEFT__HUB_CACHE_PATH + WEFT__HUB_PATH_MAX];
    weft_status st = weft__hub_cache_path(&w->name, path, full, sizeof full, err);
    if (st) return st;
    snprintf(name, sizeof name, "%s/%s%s%s", w->name.owner, w->name.repo, path ? ":" : "", path ? path : "");
    w->each(w->arg,
            &(weft_pulled){.name = name, .path = full, .n_bytes = n_bytes, .n_files = n_files, .complete = complete});
    return WEFT_OK;
}

/* A folder that is a model is one line; its files are not told again. */
static weft_status tell_folder(walk *w, int dir, const weft__json *folder, weft__listing *l, weft_error *err)
{
    char missing[WEFT__HUB_SHOW];
    uint64_t sum = 0;
    int32_t n = 0;
    for (size_t i = 0; i < weft__json_size(folder); i++) {
        const char *path = "";
        size_t length;
        weft__json_string(weft__json_at(folder, i), &path, &length);
        weft__hub_file *f = (weft__hub_file *)weft__listing_find(l, path); /* ours */
        if (!f) continue;
        sum += f->n_bytes;
        n++;
        f->has_size = 0; /* told */
    }
    return n ? tell(w, NULL, sum, n, folder_is_whole(dir, folder, missing), err) : WEFT_OK;
}

/* The sets of parts as one line each: the first part stands for all. A set is complete when the chooser can take it. */
static weft_status tell_file(walk *w, weft__listing *l, size_t i, weft_error *err)
{
    weft__hub_choice c = {0};
    weft__hub_file *f = &l->files[i];
    uint64_t sum = f->n_bytes;
    int32_t n = 1;
    int complete = !f->partial;
    weft_status st = weft__listing_choose(l, "", f->path, &c, NULL);
    if (st == WEFT_NO_MEMORY) return weft_fail(err, st, "no memory for the list of pulled files");
    f->has_size = 0;
    for (size_t k = 0; !st && k < c.n; k++) {
        weft__hub_file *part = (weft__hub_file *)c.files[k]; /* of l */
        complete &= !part->partial;
        if (!part->has_size) continue;
        part->has_size = 0;
        sum += part->n_bytes;
        n++;
    }
    const char *path = !st ? c.files[0]->path : f->path;
    if (st) complete = 0;
    st = tell(w, path, sum, n, complete, err);
    weft__hub_choice_free(&c);
    return st;
}

static weft_status tell_repo(walk *w, int owner, weft_error *err)
{
    weft__listing l = {0};
    weft__json *m = NULL;
    int dir = weft__hub_dir_open(owner, w->name.repo, 0);
    if (dir < 0) return WEFT_OK; /* a link, or gone meanwhile */
    weft_status st = weft__hub_cache_scan(dir, &l, err);
    if (!st) st = weft__manifest_read(dir, &m, err);
    if (!st) st = tell_folder(w, dir, weft__manifest_folder(m), &l, err);
    for (size_t i = 0; i < l.n && !st; i++)
        if (l.files[i].has_size) st = tell_file(w, &l, i, err);
    weft__json_free(&m);
    weft__listing_free(&l);
    close(dir);
    return st;
}

/* Calls visit for every entry of dir (closed here) whose name could be an owner's or a model's, in order of the
 * names. */
static weft_status each_folder(int dir, weft_status (*visit)(walk *w, int dir, const char *name, weft_error *err),
                               walk *w, weft_error *err)
{
    weft__listing names = {0};
    int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* a position of its own */
    DIR *d = own < 0 ? NULL : fdopendir(own);
    weft_status st = d ? WEFT_OK : weft_fail(err, WEFT_IO, "reading the cache: %s", strerror(errno));
    if (!d && own >= 0) close(own);
    for (struct dirent *e; !st && (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        if (e->d_name[0] == '.' || n > WEFT__HUB_PART_MAX) continue;
        if (!weft__listing_add(&names, e->d_name, n))
            st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the list of pulled models");
    }
    if (!st) st = weft__listing_sort(&names, err);
    for (size_t i = 0; i < names.n && !st; i++) st = visit(w, dir, names.files[i].path, err);
    weft__listing_free(&names);
    if (d) closedir(d);
    close(dir);
    return st;
}

static weft_status visit_repo(walk *w, int owner, const char *name, weft_error *err)
{
    strcpy(w->name.repo, name);
    return tell_repo(w, owner, err);
}

static weft_status visit_owner(walk *w, int models, const char *name, weft_error *err)
{
    int owner = weft__hub_dir_open(models, name, 0);
    if (owner < 0) return WEFT_OK;
    strcpy(w->name.owner, name);
    return each_folder(owner, visit_repo, w, err);
}

weft_status weft_pulled_each(weft_pulled_fn each, void *arg, weft_error *err)
{
    walk w = {each, arg};
    int models;
    weft_status st = weft__hub_cache_open_models(0, &models, err);
    if (st == WEFT_NOT_FOUND) return WEFT_OK; /* nothing was ever pulled */
    return st ? st : each_folder(models, visit_owner, &w, err);
}
