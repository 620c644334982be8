// SPDX-License-Identifier: Apache-2.0
/* pull_adapter.c: what was pulled is an adapter: which base it names, and whether a pulled model is it (pull.h). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "places.h"
#include "pull.h"
#include "terminal.h"

enum { CONFIG_BYTES = 1 << 20, BASE_NAME = 200 };

/* The text at key `wanted`; "": none. */
static void meta_text(const weft_file *f, const char *wanted, char *out, size_t room)
{
    out[0] = 0;
    for (int64_t i = 0; i < weft_file_n_meta(f); i++) {
        weft_meta_info info;
        size_t n;
        if (weft_file_meta(f, i, &info, NULL) || strcmp(info.key, wanted) || strcmp(info.type, "string")) continue;
        char json[BASE_NAME + 3];
        if (weft_file_meta_json(f, i, 0, json, sizeof json, &n, NULL) || n < 2 || n >= sizeof json) return;
        snprintf(out, room, "%.*s", (int)n - 2, json + 1); /* without its quotes */
    }
}

/* Is it an adapter? Then also the name of its base, as far as it says that. */
static int is_adapter(const char *path, char base[BASE_NAME])
{
    char config[PATH_MAX];
    size_t n;
    snprintf(config, sizeof config, "%s/adapter_config.json", path);
    char *text = read_small(config, CONFIG_BYTES, &n);
    base[0] = 0;
    if (text) {
        weft__json *v = NULL;
        const char *name;
        if (!weft__json_parse(text, n, &v, NULL) &&
            weft__json_string(weft__json_get(v, "base_model_name_or_path"), &name, &n))
            snprintf(base, BASE_NAME, "%.*s", BASE_NAME - 1, name);
        weft__json_free(&v);
        free(text);
        return 1;
    }
    weft_file *f;
    char type[32];
    if (weft_file_open(path, &f, NULL)) return 0;
    meta_text(f, "general.type", type, sizeof type);
    const int is = !strcmp(type, "adapter");
    if (is) meta_text(f, "general.base_model.0.name", base, BASE_NAME);
    weft_file_close(&f);
    return is;
}

/* The pulled models that it is tried on. */
struct bases {
    const char *adapter;
    int n;
    char fits[512], why[300]; /* the first that it fits; why not the last one */
};

static void try_base(void *arg, const weft_pulled *m)
{
    struct bases *b = arg;
    weft_file *base;
    weft_adapter_file *a = NULL;
    weft_error err = {0};
    char ignored[BASE_NAME];
    if (b->fits[0] || !m->complete || !strcmp(m->path, b->adapter) || is_adapter(m->path, ignored) ||
        weft_file_open(m->path, &base, NULL))
        return;
    b->n++;
    if (!weft_adapter_file_open(b->adapter, base, &a, &err)) snprintf(b->fits, sizeof b->fits, "%s", m->name);
    else snprintf(b->why, sizeof b->why, "%.*s", (int)sizeof b->why - 1, err.message);
    weft_adapter_file_close(&a);
    weft_file_close(&base);
}

void pull_tell_adapter(const char *path)
{
    char base[BASE_NAME];
    struct bases b = {.adapter = path};
    if (!is_adapter(path, base)) return;
    weft_pulled_each(try_base, &b, NULL);
    fprintf(stderr, "it is an adapter");
    if (base[0]) {
        fprintf(stderr, " of ");
        print_clean(stderr, base, strlen(base), 0);
    }
    if (b.fits[0]) fprintf(stderr, "; it fits %s (weft run, chat and serve have --adapter NAME=PATH)\n", b.fits);
    else if (!b.n) fprintf(stderr, "; no model was pulled yet on which it could be tried\n");
    else {
        fprintf(stderr, "; it fits none of the %d models that were pulled: ", b.n);
        print_clean(stderr, b.why, strlen(b.why), 0);
        fputc('\n', stderr);
    }
}
