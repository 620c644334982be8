// SPDX-License-Identifier: Apache-2.0
/* node.h: a text of YAML as a tree, and what is wrong in it, by line and column.
 *
 * Invariant: whatever the text, the tree is bounded: bytes, depth, nodes (those that aliases repeat included), members.
 * All of it lies in the caller's arena. One thread. */
#ifndef WEFT_CONFIG_NODE_H
#define WEFT_CONFIG_NODE_H

#include "base/text.h"
#include "format/arena.h"

enum {
    WEFT__CONFIG_BYTES = 1 << 20, /* of the text */
    WEFT__CONFIG_DEPTH = 16,
    WEFT__CONFIG_NODES = 1 << 16,
    WEFT__CONFIG_MEMBERS = 4096, /* of a map or a list */
    WEFT__CONFIG_ANCHORS = 256,
    WEFT__CONFIG_FAULTS = 100 /* that are kept */
};

/* ---- faults (fault.c) ---- */

typedef struct weft__config_fault {
    int line, column; /* from 1 */
    char message[400];
} weft__config_fault;

/* Zero-initialise. */
typedef struct weft__config_faults {
    weft__config_fault *items;  /* [n], in the order of the file after weft__config_faults_sort */
    size_t n, capacity, n_more; /* n_more: that were left out */
    int failed;                 /* there was no memory for one */
} weft__config_faults;

void weft__config_fault_add(weft__config_faults *f, int line, int column, const char *format, ...) WEFT_PRINTF(4, 5);
void weft__config_faults_sort(weft__config_faults *f);
/* A line each: PATH:LINE:COLUMN: MESSAGE. */
void weft__config_faults_write(const weft__config_faults *f, const char *path, weft__strbuf *out);
void weft__config_faults_free(weft__config_faults *f);

/* ---- the tree (yaml.c) ---- */

typedef enum weft__config_kind {
    WEFT__CONFIG_NONE, /* nothing, ~ or null */
    WEFT__CONFIG_BOOL,
    WEFT__CONFIG_INT,    /* -?[0-9]+ */
    WEFT__CONFIG_NUMBER, /* any other finite number */
    WEFT__CONFIG_TEXT,
    WEFT__CONFIG_LIST,
    WEFT__CONFIG_MAP
} weft__config_kind;

typedef struct weft__config_node {
    weft__config_kind kind;
    int line, column;
    const char *text; /* of all but lists and maps: as it was written, without NUL in it */
    const char *key;  /* of a member of a map; else NULL */
    int key_line, key_column;
    struct weft__config_node *first, *next; /* its members, in order; the next one of the node that it is in */
    size_t n;                               /* its members */
} weft__config_node;

/* "a map", for messages. */
const char *weft__config_kind_text(const weft__config_node *v);

/* The root of text[0..n); NULL where it is empty, or something is wrong with it, which faults tells then. WEFT_OK
 * unless memory runs out, or (WEFT_UNSUPPORTED) this build reads no YAML. */
weft_status weft__config_yaml(const char *text, size_t n, weft__arena *arena, weft__config_faults *faults,
                              weft__config_node **root, weft_error *err);

#endif
