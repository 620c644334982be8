// SPDX-License-Identifier: Apache-2.0
/* reader.h: reading a tree by tables of keys (reader.c), and the sections that are read so. One thread. */
#ifndef WEFT_CONFIG_READER_H
#define WEFT_CONFIG_READER_H

#include "config/config.h"

/* What is wrong is told with the path to it: "keys[2].limits.concurrent". */
typedef struct weft__config_reader {
    weft__config *config;
    weft__config_faults *faults;
    const weft__config_known *known; /* NULL: settings are not looked at */
    char path[256];
    size_t n_path;
    int no_memory;
} weft__config_reader;

typedef struct weft__config_field {
    const char *name; /* NULL ends a table */
    void (*read)(weft__config_reader *r, const weft__config_node *v, void *into);
    size_t offset; /* in what is read into */
    int required;
} weft__config_field;

/* n * size bytes of the configuration, zero; NULL: none, and r says so. */
void *weft__config_take(weft__config_reader *r, size_t n, size_t size);
/* "PATH: " and the message, at the place of the value; of a NULL one, nowhere. */
void weft__config_say(weft__config_reader *r, const weft__config_node *v, const char *format, ...) WEFT_PRINTF(3, 4);
/* The same where the key of the member stands. */
void weft__config_say_key(weft__config_reader *r, const weft__config_node *v, const char *format, ...)
    WEFT_PRINTF(3, 4);
/* Goes into a member, or, with key NULL, into element i of a list; what is returned leads back. */
size_t weft__config_enter(weft__config_reader *r, const char *key, size_t i);
void weft__config_leave(weft__config_reader *r, size_t back);
/* 1: it is of that kind, or it was told that it is not. NONE is no kind that is wanted. */
int weft__config_is(weft__config_reader *r, const weft__config_node *v, weft__config_kind kind);
/* A map by its table. */
void weft__config_fields(weft__config_reader *r, const weft__config_node *v, const weft__config_field *table,
                         void *into);
/* Each member of a map (named: by its key) or list, by `one`, into an array of `size` bytes each; *n of them. */
void *weft__config_each(weft__config_reader *r, const weft__config_node *v, weft__config_kind kind, size_t size,
                        size_t *n, void (*one)(weft__config_reader *, const weft__config_node *, void *));
/* 1: a name of 1 to most - 1 letters, digits and these; else it is told. */
int weft__config_name_ok(weft__config_reader *r, const weft__config_node *v, const char *name, size_t most,
                         const char *more);

/* config.c: a setting, or a list of values, into a weft__config_setting. */
void weft__config_setting_of(weft__config_reader *r, const weft__config_node *v, void *into);
/* The bytes of a file, at most one more than may be read; to be freed in any case. WEFT_NOT_FOUND, WEFT_IO,
 * WEFT_NO_MEMORY. */
weft_status weft__config_load(const char *path, char **text, size_t *n, weft_error *err);
/* Sorts the faults; WEFT_FORMAT where there are some, of which the error tells the first. */
weft_status weft__config_faulty(const char *path, weft__config_faults *faults, weft_error *err);

/* Readers for tables: what `into` points at. */
void weft__config_text(weft__config_reader *r, const weft__config_node *v, void *into);     /* const char * */
void weft__config_bool(weft__config_reader *r, const weft__config_node *v, void *into);     /* int */
void weft__config_count(weft__config_reader *r, const weft__config_node *v, void *into);    /* int64_t, from 1 */
void weft__config_names_of(weft__config_reader *r, const weft__config_node *v, void *into); /* weft__config_names */
int weft__config_double(const weft__config_node *v, double *out);

/* "; did you mean 'X'?", or "". near: a fault's end in a buffer of its own. */
const char *weft__config_meant(const char *word, const char *(*name)(const void *arg, size_t i), const void *arg,
                               char *out, size_t room);

void weft__config_keep(weft__config_reader *r, const weft__config_node *v, void *into); /* the node itself */

/* ---- the sections, in the order in which they are read; v NULL: it is not there ---- */
void weft__config_settings_of(weft__config_reader *r, const weft__config_node *v, int of_model,
                              weft__config_settings *out);
void weft__config_models(weft__config_reader *r, const weft__config_node *v);
void weft__config_presets(weft__config_reader *r, const weft__config_node *v);
void weft__config_organisations(weft__config_reader *r, const weft__config_node *v);
void weft__config_keys(weft__config_reader *r, const weft__config_node *v);

#endif
