// SPDX-License-Identifier: Apache-2.0
/* plan_renew.c: compiled plans that an earlier version made, or a processor of another tier, are made again of the
 * model that they name. Invariant: only of one that is as it was when the plan was made; else the plan's text would
 * change without a word. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/text.h"
#include "engine/handles.h"

static void add_file(const struct stat *s, weft__plan_file_origin *out)
{
    const uint64_t changed = (uint64_t)s->st_mtim.tv_sec * 1000000000u + (uint64_t)s->st_mtim.tv_nsec;
    out->bytes += (uint64_t)s->st_size;
    if (changed > out->time_ns) out->time_ns = changed;
}

/* Of a folder those files count that a model is made of: a plan may lie beside them. */
static int is_of_model(const char *name)
{
    const char *end = strrchr(name, '.');
    return end && (!strcmp(end, ".safetensors") || !strcmp(end, ".json"));
}

static int add_folder(const char *path, weft__plan_file_origin *out)
{
    char file[PATH_MAX];
    struct stat s;
    DIR *d = opendir(path);
    if (!d) return 0;
    for (struct dirent *e; (e = readdir(d));)
        if (is_of_model(e->d_name) && (size_t)snprintf(file, sizeof file, "%s/%s", path, e->d_name) < sizeof file &&
            !stat(file, &s))
            add_file(&s, out);
    closedir(d);
    return 1;
}

int weft__engine_plan_origin(const char *model, char *path, size_t room, weft__plan_file_origin *out)
{
    char real[PATH_MAX];
    struct stat s;
    *out = (weft__plan_file_origin){0};
    if (!realpath(model, real) || stat(real, &s) || (size_t)snprintf(path, room, "%s", real) >= room) return 0;
    if (S_ISDIR(s.st_mode)) {
        if (!add_folder(real, out)) return 0;
    } else {
        add_file(&s, out);
    }
    out->path = path;
    return 1;
}

/* The model that the plan names, or one of its name beside the plan, as it was; NULL: why says what is missing. */
static const char *find_model(const char *plan, const weft__plan_file_origin *was, char path[PATH_MAX], weft_error *why)
{
    char beside[PATH_MAX];
    const char *slash = strrchr(plan, '/'), *name = strrchr(was->path, '/') + 1;
    const int n_folder = slash ? (int)(slash - plan) : 1;
    const char *const places[] = {was->path, beside};
    int there = 0;
    const int fits = snprintf(beside, sizeof beside, "%.*s/%s", n_folder, slash ? plan : ".", name) < PATH_MAX;
    for (int i = 0; i < 1 + fits; i++) {
        weft__plan_file_origin now;
        if (!weft__engine_plan_origin(places[i], path, PATH_MAX, &now)) continue;
        if (now.bytes == was->bytes && now.time_ns == was->time_ns) return path;
        there = 1;
    }
    char shown[WEFT__NAME_SHOW * 2];
    weft_fail(why, WEFT_NOT_FOUND, "%s, of which it was made, %s", weft__name_show_path(shown, was->path),
              there ? "has changed since" : "is not there any more");
    return NULL;
}

weft_status weft__engine_plan_renew(const char *path, const weft_model_params *p, weft_error *err)
{
    char place[4096], model[PATH_MAX], label[WEFT__NAME_SHOW * 2], shown[WEFT__NAME_SHOW * 2];
    const weft_error refused = *err;
    weft_plan_params params;
    weft_plan_result result;
    weft__plan_file *plan = NULL;
    weft_error why = {0};
    weft_status st = weft_resolve_model(path, place, sizeof place, NULL);
    if (st || !weft__plan_file_is(place)) return refused.status;
    if (weft__plan_file_open_origin(place, &plan, NULL)) return refused.status;
    weft__plan_file_origin was = weft__plan_file_info(plan)->origin;
    if (!was.path || !find_model(place, &was, model, &why)) {
        weft__plan_file_close(&plan);
        return was.path ? weft_fail(err, refused.status, "%s; %s", refused.message, why.message)
                        : (weft_status)refused.status;
    }
    weft_plan_params_default(&params);
    params.n_threads = p->n_threads;
    params.progress = p->progress;
    params.progress_arg = p->progress_arg;
    params.pre_tokenizer = was.pre_tokenizer;
    params.keep_weights = was.keep_weights != 0;
    st = weft_plan_write(model, place, &params, &result, &why);
    weft__plan_file_close(&plan);
    if (st) return weft_fail(err, st, "%s; that failed: %s", refused.message, why.message);
    weft__name_show_path(label, place);
    weft__name_show_path(shown, model);
    weft__log(WEFT__LOG_WARN, "%s: was compiled by another version or for another processor; compiled again from %s",
              label, shown);
    return WEFT_OK;
}
