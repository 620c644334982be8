// SPDX-License-Identifier: Apache-2.0
/* plan_file.h: a compiled plan on the disk: a model whose matrices are packed for one provider, so that starting it is
 * mapping it.
 *
 * Layout, little-endian:
 *   a header of 128 bytes: magic, version, byte order, sizes, checksums
 *   the metadata: a GGUF file without tensors, with the model's own keys and those of the plan (weft.plan.*), which
 *   list the tensors
 *     and where the packed weights lie
 *   from the next multiple of 4096 bytes on, the tensors that the provider reads as they are, each at a multiple of 64
 *   from the next multiple of 2 MiB on, the image: the packed weights, in the provider's own order
 * Checksums: header and metadata are verified whenever a plan is opened, and the file must have exactly the bytes that
 * the header says, so nothing that an index is made of can be damaged or missing. The weights are verified by
 * weft__plan_file_check only: to read them all would take longer than to start. Invariant: whatever an opened plan
 * hands out lies inside the map. Thread safety: an opened plan is never changed. */
#ifndef WEFT_FORMAT_PLAN_FILE_H
#define WEFT_FORMAT_PLAN_FILE_H

#include "format/gguf_write.h"
#include "weft/backend.h"

#define WEFT__PLAN_FILE_VERSION 1

typedef struct weft__plan_file weft__plan_file;

/* What a plan was made of, so that it can be made again: a model, by what its files were then. */
typedef struct weft__plan_file_origin {
    const char *path;          /* absolute; NULL: the plan does not say */
    const char *pre_tokenizer; /* that was named for it; NULL: none */
    uint64_t bytes, time_ns;   /* their sizes, and when they were last changed */
    uint64_t keep_weights;     /* 1: the matrices are in the plan as they were, too */
} weft__plan_file_origin;

/* What a plan says of its packed weights. */
typedef struct weft__plan_file_summary {
    const char *provider, *made_by; /* printable */
    uint64_t weights;               /* checksum of the graph's list of weights: names, types, shapes, in order */
    weft_image image;               /* `own` is NULL */
    weft__plan_file_origin origin;
} weft__plan_file_summary;

/* What is written: the tensors of the model, of which those with kept[i] keep their bytes. */
typedef struct weft__plan_file_contents {
    const weft__tensor_set *tensors;
    const uint8_t *kept; /* [tensors->n] */
    weft__plan_file_summary info;
} weft__plan_file_contents;

/* Adds the plan's keys to `meta` (gguf_write.h: a writer in memory, which holds the model's keys) and writes the file,
 * which appears when it is complete. *n_bytes becomes its size. progress (may be NULL) hears of "writing". Fails as
 * weft__gguf_write does, or with WEFT_CANCELLED. */
weft_status weft__plan_file_write(const char *path, weft__gguf_writer *meta, const weft__plan_file_contents *contents,
                                  weft_progress_fn progress, void *arg, uint64_t *n_bytes, weft_error *err);

/* 1 when the file begins as a plan does. */
int weft__plan_file_is(const char *path);
/* Maps and checks a plan. Fails with WEFT_UNSUPPORTED (another version, another byte order), WEFT_FORMAT (damaged, cut
 * off), WEFT_NOT_FOUND, WEFT_IO or WEFT_NO_MEMORY; the message names the file. *out is NULL then. */
weft_status weft__plan_file_open(const char *path, weft__plan_file **out, weft_error *err);
/* The same of a plan of this version or an earlier one: of its info there is `origin` alone, and it has no tensors.
 * Header and metadata therefore stay where they are in versions to come. WEFT_UNSUPPORTED: of a later version. */
weft_status weft__plan_file_open_origin(const char *path, weft__plan_file **out, weft_error *err);
/* The same for n bytes in memory at a multiple of 64, which are borrowed until close; `name` stands for the path. */
weft_status weft__plan_file_parse(const void *bytes, size_t n, const char *name, weft__plan_file **out,
                                  weft_error *err);
void weft__plan_file_close(weft__plan_file **f);

weft__gguf *weft__plan_file_meta(const weft__plan_file *f); /* the plan's own; not to be closed */
/* All tensors of the model; the buffer of those that are only packed is WEFT_DOMAIN_MAPPED without data. */
const weft__tensor_set *weft__plan_file_tensors(const weft__plan_file *f);
const weft__plan_file_summary *weft__plan_file_info(const weft__plan_file *f);
/* Reads every byte and compares the checksums. progress (may be NULL) hears of "checking". WEFT_FORMAT: damaged. */
weft_status weft__plan_file_check(const weft__plan_file *f, weft_progress_fn progress, void *arg, weft_error *err);

#endif
