// SPDX-License-Identifier: Apache-2.0
/* adapters.c: --adapter [NAME=]PATH[:SCALE] (adapters.h). */
#include "adapters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SCALE_IS_PATH, SCALE_IS_GOOD, SCALE_IS_BAD };

/* What stands behind the last colon of a path that is no file as a whole: a scale, if it is nothing or a number, or if
 * what is before it is a file. Otherwise the colon is the path's. Cuts the path there where it is a scale. */
static int take_scale(char *path, float *scale)
{
    char *colon = strrchr(path, ':'), *end;
    if (!colon || !access(path, F_OK)) return SCALE_IS_PATH;
    float value = strtof(colon + 1, &end);
    int is_number = end != colon + 1 && !*end;
    *colon = 0;
    if (!is_number && colon[1] && access(path, F_OK)) {
        *colon = ':';
        return SCALE_IS_PATH;
    }
    *scale = value;
    return is_number && isfinite(value) ? SCALE_IS_GOOD : SCALE_IS_BAD;
}

/* The name of a file or folder without what tells its format: what an adapter is called that was given none. */
static int take_name(const char *path, char *name, size_t room)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    size_t first = n;
    while (first > 0 && path[first - 1] != '/') first--;
    if (n - first > 5 && !memcmp(path + n - 5, ".gguf", 5)) n -= 5;
    if (n == first || n - first >= room) return 0;
    snprintf(name, room, "%.*s", (int)(n - first), path + first);
    return 1;
}

/* Where a name ends: at the first '=', unless all of it is a path: begins as one does, or is a file, but for a scale
 * behind it. */
static const char *name_end(const char *text)
{
    const char *equals = strchr(text, '=');
    char path[4096];
    float scale;
    if (!equals || text[0] == '/' || !strncmp(text, "./", 2) || !strncmp(text, "../", 3)) return NULL;
    if (snprintf(path, sizeof path, "%s", text) >= (int)sizeof path) return equals;
    take_scale(path, &scale);
    return access(path, F_OK) ? equals : NULL;
}

int adapter_option_read(const char *text, struct adapter_option *out, char *why, size_t room)
{
    const char *equals = name_end(text), *path = equals ? equals + 1 : text;
    const size_t n_name = equals ? (size_t)(equals - text) : 0;
    if ((equals && !n_name) || !*path || n_name >= sizeof out->name || strlen(path) >= sizeof out->path) {
        snprintf(why, room, "must be NAME=PATH or NAME=PATH:SCALE");
        return 0;
    }
    snprintf(out->name, sizeof out->name, "%.*s", (int)n_name, text);
    snprintf(out->path, sizeof out->path, "%s", path);
    out->scale = 1;
    if (take_scale(out->path, &out->scale) == SCALE_IS_BAD) {
        snprintf(why, room, "the scale '%.40s' is no finite number that a float holds; give one, or no colon for 1",
                 strrchr(text, ':') + 1);
        return 0;
    }
    if (equals || (!access(out->path, F_OK) && take_name(out->path, out->name, sizeof out->name))) return 1;
    snprintf(why, room, "must be NAME=PATH or NAME=PATH:SCALE, or the path of a file, and %s",
             access(out->path, F_OK) ? "there is no such file" : "this one's name is no name for an adapter");
    return 0;
}

int adapter_option_parse(const char *command, const char *text, struct adapter_option *out)
{
    char why[150];
    if (adapter_option_read(text, out, why, sizeof why)) return 1;
    fprintf(stderr, "weft %s: --adapter %s: %s\n", command, text, why);
    return 0;
}

int adapter_options_parse(const char *command, const struct text_list *list, struct adapter_option *out)
{
    for (int i = 0; i < list->n; i++) {
        if (!adapter_option_parse(command, list->items[i], &out[i])) return 0;
        for (int k = 0; k < i; k++)
            if (!strcmp(out[i].name, out[k].name)) {
                fprintf(stderr, "weft %s: --adapter %s: the name is given twice; NAME=PATH gives another\n", command,
                        out[i].name);
                return 0;
            }
    }
    return 1;
}

weft_status adapter_options_open(const struct adapter_option *options, int n, const weft_model *model,
                                 weft_adapter_file **files, weft_adapter_use *uses, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int i = 0; i < n && !st; i++) {
        st = weft_adapter_file_open(options[i].path, weft_model_file(model), &files[i], err);
        uses[i] = (weft_adapter_use){files[i], options[i].scale};
    }
    return st;
}

weft_status adapter_options_apply(const struct adapter_option *options, int n, const weft_model *model,
                                  weft_session *session, weft_error *err)
{
    weft_adapter_file *files[LIST_MAX] = {0};
    weft_adapter_use uses[LIST_MAX];
    weft_status st = adapter_options_open(options, n, model, files, uses, err);
    if (!st && n > 0) st = weft_session_set_adapters(session, uses, n, err);
    for (int i = 0; i < n; i++) weft_adapter_file_close(&files[i]);
    return st;
}
