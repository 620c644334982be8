// SPDX-License-Identifier: Apache-2.0
/* hub.h: names of models on a Hugging Face server, what a repository holds, and which of its files are wanted.
 *
 * A name is OWNER/NAME or OWNER/NAME:WHAT; WHAT is a file's path in the repository or a quantization ("Q4_K_M").
 * Invariant: every path in a listing has passed weft__hub_path_fault, so that joined to a folder it stays inside it.
 * Nothing here touches the network or the disk. Thread safety: objects are the caller's own. */
#ifndef WEFT_HUB_HUB_H
#define WEFT_HUB_HUB_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

#define WEFT__HUB_PART_MAX 96     /* bytes of OWNER and of NAME: the server's own rule */
#define WEFT__HUB_PATH_MAX 1024   /* bytes of a path in a repository */
#define WEFT__HUB_SEGMENT_MAX 200 /* of one of its segments; leaves room for our suffixes below NAME_MAX */
#define WEFT__HUB_FILES_MAX 50000 /* files in one repository */
#define WEFT__HUB_SHOW 96         /* bytes of buffers for weft__hub_show */

typedef struct weft__hub_name {
    char owner[WEFT__HUB_PART_MAX + 1], repo[WEFT__HUB_PART_MAX + 1];
    char what[WEFT__HUB_PATH_MAX + 1]; /* "" when none was given */
} weft__hub_name;

/* Takes a name apart. Fails with WEFT_ARGUMENT and the rule that was broken. */
weft_status weft__hub_name_parse(const char *text, weft__hub_name *out, weft_error *err);
/* Why path[0..n) must not be used below a folder ("climbs out of its folder"), or NULL when it may. Refuses: empty,
 * absolute, too long, "." and ".." segments, empty segments, backslashes, control and direction-changing characters,
 * NUL, malformed UTF-8. */
const char *weft__hub_path_fault(const char *path, size_t n);
/* Text from outside made fit for a message: at most WEFT__HUB_SHOW - 1 bytes, anything but printable ASCII replaced.
 * Returns out. */
const char *weft__hub_show(char out[WEFT__HUB_SHOW], const char *text, size_t n);

typedef struct weft__hub_file {
    char *path;
    uint64_t n_bytes;
    int has_size, partial; /* partial: an unfinished download (listings of the cache only); n_bytes is what there is */
    char sha256[65];       /* lower-case hex, "" when the server gave none */
    char id[65];           /* identifies the content: the SHA-256, or git's id; "" when unknown */
} weft__hub_file;

typedef struct weft__listing {
    weft__hub_file *files; /* sorted by path after weft__listing_sort */
    size_t n, capacity;
} weft__listing;

void weft__listing_free(weft__listing *l);
/* Adds the files of one answer of the server: the array of /tree/ or the object with "siblings". Hidden files
 * (".gitattributes") are left out. Fails with WEFT_FORMAT for anything malformed or a path that weft__hub_path_fault
 * refuses, WEFT_LIMIT for too many files, WEFT_NO_MEMORY; the listing stays valid. */
weft_status weft__listing_parse(weft__listing *l, const char *json, size_t n, weft_error *err);
/* Adds one file; copies path, which has been checked. Returns NULL when memory runs out. */
weft__hub_file *weft__listing_add(weft__listing *l, const char *path, size_t n);
/* Sorts by path. Fails with WEFT_FORMAT when a path occurs twice. */
weft_status weft__listing_sort(weft__listing *l, weft_error *err);
/* The file of that path, by binary search, or NULL. */
const weft__hub_file *weft__listing_find(const weft__listing *l, const char *path);

typedef enum weft__hub_choice_kind {
    WEFT__HUB_CHOICE_FILES, /* GGUF files, or the one file that was named: files[0] is the one to open */
    /* config.json, tokenizer and safetensors, or an adapter's: the folder is what one opens */
    WEFT__HUB_CHOICE_FOLDER
} weft__hub_choice_kind;

typedef struct weft__hub_choice {
    weft__hub_choice_kind kind;
    const weft__hub_file **files; /* borrowed from the listing */
    size_t n;
} weft__hub_choice;

void weft__hub_choice_free(weft__hub_choice *c);
/* Is it a GGUF model, and of a split one the first part? Not projectors and importance matrices. */
int weft__hub_is_leader(const weft__hub_file *f);
/* The quantization that the name has ("Q4_K_M"), of those that this knows; NULL: none. */
const char *weft__hub_quantization(const char *path);
/* Picks from a sorted listing; `repo` is for messages. `what`:
 *   a path, or the last segment of one: that file, with all parts when it is one of a split set
 *   (NAME-00001-of-00003.gguf); a quantization: the GGUF whose name has it as a whole word, else as the beginning of
 *   one ("Q4_K" for "Q4_K_M"); "": the first that the repository has of Q4_K_M, Q4_K_S and the other quantizations
 *   (choose.c), its only GGUF, or the folder when it has none.
 * Equals are decided by the shorter, then the alphabetically first path. Vision projectors (mmproj) and importance
 * matrices are only taken when named. Fails with WEFT_NOT_FOUND (naming what there is), WEFT_ARGUMENT (several, say
 * which), WEFT_UNSUPPORTED (nothing that can be run), WEFT_FORMAT (a part of a set is missing). */
weft_status weft__listing_choose(const weft__listing *l, const char *repo, const char *what, weft__hub_choice *out,
                                 weft_error *err);

#endif
