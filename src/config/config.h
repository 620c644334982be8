// SPDX-License-Identifier: Apache-2.0
/* config.h: weft.yaml: settings of the server, models, presets, organisations with their teams, and keys, as they stand
 * in one file.
 *
 * A weft__config is constant once it was read; all that it shows lies in it. Any thread. */
#ifndef WEFT_CONFIG_CONFIG_H
#define WEFT_CONFIG_CONFIG_H

#include "base/json.h"
#include "config/node.h"

enum {
    WEFT__CONFIG_NAME = 32,      /* bytes of a key's, a team's, an organisation's name */
    WEFT__CONFIG_PRESET = 64,    /* of a preset's, a model's */
    WEFT__CONFIG_SYSTEM = 65536, /* of a system prompt */
    WEFT__CONFIG_ADAPTERS = 8    /* of a preset */
};

/* Names; given 0: none stood there, and all are meant. */
typedef struct weft__config_names {
    int given;
    const char *const *items; /* [n] */
    size_t n;
} weft__config_names;

/* A setting of the server, or of a model: an option of `weft serve` by its long name. */
typedef struct weft__config_setting {
    const char *name;
    weft__config_kind kind;    /* of its values: the first's */
    const char *const *values; /* [n], as written; of a flag "true" or "false" */
    size_t n;
    int line, column; /* of its name */
} weft__config_setting;

typedef struct weft__config_settings {
    const weft__config_setting *items; /* [n] */
    size_t n;
} weft__config_settings;

typedef struct weft__config_adapter {
    const char *name, *path; /* path NULL: of a preset, which names what its model has */
    double scale;            /* NAN: the adapter's own */
    int line, column;        /* of a model's */
} weft__config_adapter;

typedef struct weft__config_model {
    const char *name, *path;
    int pinned;
    const weft__config_adapter *adapters; /* [n_adapters] */
    size_t n_adapters;
    weft__config_settings options;
    int line, column;
} weft__config_model;

typedef struct weft__config_preset {
    const char *name;
    const char *base;                     /* a model's name; NULL: the first that is served */
    const char *system;                   /* NULL: none */
    const weft__json *sampling;           /* fields of a chat's request; NULL: none */
    const char *chat_template;            /* a file's path; NULL: the model's own */
    int adapters_given;                   /* there may be none among them: the base as it is */
    const weft__config_adapter *adapters; /* [n_adapters] */
    size_t n_adapters;
    int line, column;
} weft__config_preset;

/* Of an organisation, a team or a key; numbers 0: none. */
typedef struct weft__config_limits {
    int64_t requests_per_minute, tokens_per_minute, concurrent;
    weft__config_names models, adapters;
} weft__config_limits;

typedef struct weft__config_group {
    const char *name;
    weft__config_limits limits;
    const struct weft__config_group *teams; /* [n_teams], of an organisation */
    size_t n_teams;
} weft__config_group;

typedef struct weft__config_key {
    const char *name, *hash; /* hash: 64 hexadecimal digits */
    int is_admin;
    const weft__config_group *organisation, *team; /* NULL: in none */
    weft__config_limits limits;
    int line, column;
} weft__config_key;

typedef struct weft__config {
    weft__arena arena;
    weft__json *json; /* owned: what sampling borrows from */
    weft__config_settings server;
    const weft__config_model *models;
    const weft__config_preset *presets;
    const weft__config_group *organisations;
    const weft__config_key *keys;
    size_t n_models, n_presets, n_organisations, n_keys;
} weft__config;

/* What the program knows of settings: 1; or 0 with what is wrong in why. of_model: it stands in a model's `options`. */
typedef struct weft__config_known {
    int (*setting)(void *arg, const weft__config_setting *s, int of_model, char *why, size_t room);
    /* Looks at all of it, and adds what is wrong; texts are NULL where a fault stands already. NULL: nothing more. */
    void (*look)(void *arg, const weft__config *c, weft__config_faults *faults);
    void *arg;
} weft__config_known;

/* text[0..n) as a configuration, all or nothing: *out is NULL where something is wrong, and faults has all that is.
 * known NULL: settings are not looked at. To be freed. WEFT_FORMAT where there are faults, of which the error tells
 * the first; WEFT_UNSUPPORTED: this build reads none; WEFT_NO_MEMORY. path: for the error alone. */
weft_status weft__config_parse(const char *path, const char *text, size_t n, const weft__config_known *known,
                               weft__config **out, weft__config_faults *faults, weft_error *err);
/* The same of a file; WEFT_IO, WEFT_NOT_FOUND. */
weft_status weft__config_read(const char *path, const weft__config_known *known, weft__config **out,
                              weft__config_faults *faults, weft_error *err);
void weft__config_free(weft__config **c);

#endif
