// SPDX-License-Identifier: Apache-2.0
/* cache.h: where pulled models lie, and how they are reached.
 *
 *   ROOT/models/OWNER/NAME/PATH             a complete file
 *   ROOT/models/OWNER/NAME/PATH.part        an unfinished one; PATH.part.json says of which content
 *   ROOT/models/OWNER/NAME/.weft.json       what was pulled: sizes and SHA-256 (manifest)
 *   ROOT/locks/OWNER@NAME                   held while the folder is changed; never removed, so that a lock cannot be
 *                                           lost
 * ROOT is $WEFT_CACHE, else $XDG_CACHE_HOME/weft (when absolute), else $HOME/.cache/weft.
 * Invariant: below ROOT/models every folder is opened without following symbolic links, so that nothing is written or
 * removed outside. */
#ifndef WEFT_HUB_CACHE_H
#define WEFT_HUB_CACHE_H

#include "base/json.h"
#include "hub/hub.h"

#define WEFT__HUB_CACHE_PATH 4096
#define WEFT__MANIFEST ".weft.json"
#define WEFT__HUB_PART_SUFFIX ".part"

/* ROOT. Fails with WEFT_NOT_FOUND when the environment names no place, WEFT_LIMIT when it is too long. */
weft_status weft__hub_cache_root(char out[WEFT__HUB_CACHE_PATH], weft_error *err);
/* ROOT/models/OWNER/NAME, and "/PATH" when path is not NULL. */
weft_status weft__hub_cache_path(const weft__hub_name *name, const char *path, char *out, size_t capacity,
                                 weft_error *err);
/* Opens folder OWNER/NAME; *fd is closed by the caller. create: makes what is missing, for the owner only. Fails with
 * WEFT_NOT_FOUND when it is absent, WEFT_IO otherwise (a symbolic link among them). */
weft_status weft__hub_cache_open(const weft__hub_name *name, int create, int *fd, weft_error *err);
/* ROOT/models itself; WEFT_NOT_FOUND when nothing was ever pulled. */
weft_status weft__hub_cache_open_models(int create, int *fd, weft_error *err);
/* Locks OWNER/NAME until *fd is closed. wait: called ten times a second while another process has it; non-zero gives up
 * with WEFT_CANCELLED. NULL: fails at once with WEFT_STATE. */
weft_status weft__hub_cache_lock(const weft__hub_name *name, int (*wait)(void *arg), void *arg, int *fd,
                                 weft_error *err);

/* The folder that holds `path` (below dir) and its last segment, a pointer into path. Returns a descriptor, or -1 and
 * errno. */
int weft__hub_dir_of(int dir, const char *path, int create, const char **leaf);
/* Opens folder `name` of dir, one segment, following no link. Returns -1 and errno. */
int weft__hub_dir_open(int dir, const char *name, int create);
/* The files below dir, sorted; unfinished ones by their name without ".part" and marked. Links are not followed and not
 * listed. */
weft_status weft__hub_cache_scan(int dir, weft__listing *out, weft_error *err);
/* Removes the folder OWNER/NAME with all that is in it; links in it are removed, never what they lead to. *n_bytes
 * receives the bytes of the files. The caller holds the lock. */
weft_status weft__hub_cache_remove(const weft__hub_name *name, uint64_t *n_bytes, weft_error *err);
/* The same, if no complete or unfinished file is left in it. Failures are of no consequence. */
void weft__hub_cache_remove_if_empty(const weft__hub_name *name);

/* A small JSON object as a file of dir; what is missing or damaged reads as an empty one. *out is freed by the
 * caller. */
weft_status weft__hub_record_read(int dir, const char *name, weft__json **out, weft_error *err);
/* Replaces it as a whole. */
weft_status weft__hub_record_write(int dir, const char *name, const weft__json *record, weft_error *err);

#endif
