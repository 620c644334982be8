// SPDX-License-Identifier: Apache-2.0
/* known.c: see known.h. */
#include "known.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/json.h"
#include "places.h"

enum { FILE_BYTES_MOST = 1 << 20, NAMES_MOST = 64, NAME_BYTES = 1400 };

static const known_model TABLE[] = {
#define KNOWN(name, repository, files, parameters, licence, source)                                                    \
    {name, repository, files, parameters, licence, source, 0},
#include "known.def"
#undef KNOWN
};

static const char *known_text(const weft__json *entry, const char *key)
{
    const char *s = "";
    size_t n;
    weft__json_string(weft__json_get(entry, key), &s, &n);
    return s;
}

static known_model entry_of(const weft__json *e)
{
    return (known_model){known_text(e, "name"),
                         known_text(e, "repository"),
                         known_text(e, "files"),
                         known_text(e, "parameters"),
                         known_text(e, "licence"),
                         known_text(e, "source"),
                         1};
}

/* The user's file as a tree, NULL where there is none. */
static weft_status read_own(weft__json **out, weft_error *err)
{
    char path[PATH_MAX];
    size_t n;
    *out = NULL;
    if (!place_in_config(path, sizeof path, "known.json") || access(path, F_OK)) return WEFT_OK;
    char *text = read_small(path, FILE_BYTES_MOST, &n);
    if (!text) return weft_fail(err, WEFT_IO, "%.300s cannot be read, or is longer than 1 MB", path);
    weft_status st = weft__json_parse(text, n, out, err);
    free(text);
    if (st) return weft_fail_within(err, st, "%.300s", path);
    int ok = weft__json_kind_of(*out) == WEFT__JSON_ARRAY;
    for (size_t i = 0; ok && i < weft__json_size(*out); i++) {
        const known_model m = entry_of(weft__json_at(*out, i));
        ok = m.name[0] && !strpbrk(m.name, "/:") && strchr(m.repository, '/');
    }
    if (ok) return WEFT_OK;
    weft__json_free(out);
    return weft_fail(
        err, WEFT_FORMAT,
        "%.300s: is to be a list of {\"name\": ..., \"repository\": \"OWNER/NAME\"}, names without / and :", path);
}

static int is_among(const weft__json *own, const char *name)
{
    for (size_t i = 0; i < weft__json_size(own); i++)
        if (!strcasecmp(known_text(weft__json_at(own, i), "name"), name)) return 1;
    return 0;
}

weft_status known_each(known_fn *each, void *arg, weft_error *err)
{
    weft__json *own;
    weft_status st = read_own(&own, err);
    if (st) return st;
    for (size_t i = 0; i < weft__json_size(own); i++) {
        const known_model m = entry_of(weft__json_at(own, i));
        each(arg, &m);
    }
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++)
        if (!is_among(own, TABLE[i].name)) each(arg, &TABLE[i]);
    weft__json_free(&own);
    return WEFT_OK;
}

struct known_search {
    const char *name;
    size_t n; /* of the name, up to the ':' */
    char *out;
    size_t room;
    int found;
};

static void compare_known(void *arg, const known_model *m)
{
    struct known_search *s = arg;
    if (s->found || strlen(m->name) != s->n || strncasecmp(m->name, s->name, s->n)) return;
    const int n = snprintf(s->out, s->room, "%s%s", m->repository, s->name + s->n);
    s->found = n >= 0 && (size_t)n < s->room;
}

int known_find(const char *name, char *out, size_t room)
{
    struct known_search s = {name, strcspn(name, ":"), out, room, 0};
    if (strchr(name, '/')) return 0;
    known_each(compare_known, &s, NULL);
    return s.found;
}

const char *known_model_of(const char *model)
{
    static char found[NAMES_MOST][NAME_BYTES];
    static int n;
    char text[NAME_BYTES];
    if (!*model || !access(model, F_OK) || !known_find(model, text, sizeof text)) return model;
    for (int i = 0; i < n; i++)
        if (!strcmp(found[i], text)) return found[i];
    if (n == NAMES_MOST) return model; /* opening it says that there is none of that name */
    memcpy(found[n], text, strlen(text) + 1);
    return found[n++];
}
