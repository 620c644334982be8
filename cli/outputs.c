// SPDX-License-Identifier: Apache-2.0
/* outputs.c: see outputs.h. */
#include "outputs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/json.h"
#include "format/gguf_split.h"
#include "format/out_file.h"
#include "prompt.h"
#include "terminal.h"

int output_refused(const char *command, const char *out)
{
    weft_error err = {0};
    return out && weft__out_file_check(out, &err) && report(command, &err);
}

int output_adapter_refused(const char *command, const char *out)
{
    size_t n = strlen(out);
    struct stat s;
    char inside[4096];
    if ((n > 5 && !strcasecmp(out + n - 5, ".gguf")) || stat(out, &s)) return output_refused(command, out);
    if (!S_ISDIR(s.st_mode)) {
        fprintf(stderr, "weft %s: %s is no folder; give one for a PEFT adapter, or a name that ends in .gguf\n",
                command, out);
        return 1;
    }
    return snprintf(inside, sizeof inside, "%s/adapter_config.json", out) < (int)sizeof inside &&
           output_refused(command, inside);
}

/* Is a file of a model's or an adapter's folder that is called so read? Shards may also have other names, which their
 * index tells. */
static int is_read_name(const char *name)
{
    static const char *const ends[] = {".safetensors", ".json", ".jinja", "tokenizer.model"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n = strlen(name), end = strlen(ends[i]);
        if (n >= end && !strcasecmp(name + n - end, ends[i])) return 1;
    }
    return 0;
}

static int is_shard(const char *folder, const char *name)
{
    char path[4096], *text = NULL;
    size_t n;
    int found = 0;
    weft__json *index = NULL;
    weft__json_member m = {0};
    if (snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder) >= (int)sizeof path ||
        read_text(path, &text, &n, NULL))
        return 0;
    if (!weft__json_parse(text, n, &index, NULL)) {
        const weft__json *map = weft__json_get(index, "weight_map");
        while (!found && weft__json_next(map, &m)) found = weft__json_is(m.value, name);
    }
    weft__json_free(&index);
    free(text);
    return found;
}

/* Is a file that is read in `folder` the one that `out` is? Neither links nor second names hide it. */
static int is_read_there(const char *folder, const struct stat *out)
{
    char path[4096];
    int found = 0;
    struct stat s;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && !found && (e = readdir(d));)
        found = snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < (int)sizeof path && !stat(path, &s) &&
                s.st_dev == out->st_dev && s.st_ino == out->st_ino &&
                (is_read_name(e->d_name) || is_shard(folder, e->d_name));
    if (d) closedir(d);
    return found;
}

/* Would a file that is not there yet be read in the folder whose stat is `in`? */
static int would_be_read(const char *out, const struct stat *in)
{
    struct stat s;
    char *place = weft__out_file_behind_links(out);
    if (!place) return 0;
    char *slash = strrchr(place, '/');
    int found = is_read_name(slash ? slash + 1 : place);
    if (slash) slash[slash == place] = 0; /* keeps "/" itself */
    found = found && !stat(slash ? place : ".", &s) && s.st_dev == in->st_dev && s.st_ino == in->st_ino;
    weft__free(place);
    return found;
}

static int is_part(const char *in, const struct stat *out)
{
    char path[4096];
    struct stat s;
    for (uint64_t no = 0; weft__gguf_part_path(in, no, path, sizeof path); no++)
        if (!stat(path, &s) && s.st_dev == out->st_dev && s.st_ino == out->st_ino) return 1;
    return 0;
}

int output_is_input(const char *command, const char *out, const char *in)
{
    char place[4096];
    const char *read = in;
    struct stat a, b;
    if (!in) return 0;
    const int there = !stat(out, &a);
    if (stat(in, &b)) {
        if (weft_resolve_model(in, place, sizeof place, NULL) || stat(place, &b)) return 0; /* its reader will say so */
        read = place;
    }
    const int folder = S_ISDIR(b.st_mode);
    if (there && a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
        fprintf(stderr, "weft %s: %s is what is read (%s), and would be written over; give another name\n", command,
                out, in);
        return 1;
    }
    if (there && S_ISREG(a.st_mode) && (folder ? is_read_there(read, &a) : is_part(read, &a))) {
        fprintf(stderr, "weft %s: %s is a part of what is read (%s), and would be written over; give another name\n",
                command, out, in);
        return 1;
    }
    if (!there && folder && would_be_read(out, &b)) {
        fprintf(
            stderr,
            "weft %s: %s would become a part of what is read (%s); give a name that the folder's files do not have\n",
            command, out, in);
        return 1;
    }
    return 0;
}

void output_saturated(const char *command, uint64_t n)
{
    if (n)
        fprintf(stderr, "weft %s: %llu values were beyond what their type can hold, and are the nearest that it has\n",
                command, (unsigned long long)n);
}

static int is_adapter(const weft_file *file)
{
    char type[16];
    size_t n;
    weft_meta_info m;
    for (int64_t i = 0; i < weft_file_n_meta(file); i++)
        if (!weft_file_meta(file, i, &m, NULL) && !strcmp(m.key, "general.type"))
            return !weft_file_meta_json(file, i, 1, type, sizeof type, &n, NULL) && !strcmp(type, "\"adapter\"");
    return 0;
}

int output_is_another(const char *command, const char *out, int adapter)
{
    struct stat s;
    weft_file *file = NULL;
    if (stat(out, &s) || !S_ISREG(s.st_mode) || weft_file_open(out, &file, NULL)) return 0;
    int is = is_adapter(file);
    weft_file_close(&file);
    if (is == adapter) return 0;
    fprintf(stderr, "weft %s: %s is %s, and %s would be written over it; give another name, or remove it first\n",
            command, out, is ? "an adapter" : "a GGUF file that is no adapter", adapter ? "an adapter" : "a model");
    return 1;
}
