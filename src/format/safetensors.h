// SPDX-License-Identifier: Apache-2.0
/* safetensors.h: reading safetensors files, one by one or all the shards of a folder.
 *
 * Source: the format's description in its own repository (huggingface/safetensors, README): 8 bytes of length, a JSON
 * object of that length that maps names to type, shape and byte range, then the data, which the ranges cover without
 * hole or overlap. Invariant: everything handed out was checked when the file was opened. Shapes are turned round: a
 * file's [R, K] is d = {K, R}. A scalar (shape []) becomes one element of one dimension. Types other than F32, F16 and
 * BF16 are refused by name. Thread safety: an opened file is never changed; any thread may read it. */
#ifndef WEFT_FORMAT_SAFETENSORS_H
#define WEFT_FORMAT_SAFETENSORS_H

#include "format/tensors.h"

/* Of the JSON header, bytes: what the reference implementation allows. */
#define WEFT__SAFETENSORS_HEADER_BYTES 100000000u

typedef struct weft__safetensors weft__safetensors;

/* All tensors of a folder: those of the shards that model.safetensors.index.json names, else of model.safetensors. A
 * shard's name must be a plain file name. Every tensor that the index lists must be in the shard it names; a tensor in
 * two shards is refused. WEFT_NOT_FOUND says what the folder has instead. Otherwise fails with WEFT_IO, WEFT_FORMAT
 * (malformed), WEFT_UNSUPPORTED (type), WEFT_LIMIT (header) or WEFT_NO_MEMORY; the message names the file and the
 * tensor. On failure *out is NULL. */
weft_status weft__safetensors_open_folder(const char *folder, weft__safetensors **out, weft_error *err);

/* The same for one file that is n bytes in memory, borrowed until close; `name` stands for the path in messages. */
weft_status weft__safetensors_parse(const void *bytes, size_t n, const char *name, weft__safetensors **out,
                                    weft_error *err);

void weft__safetensors_close(weft__safetensors **st);

/* The tensors of all files; their buffers are the files. An offset need not be a multiple of anything. */
const weft__tensor_set *weft__safetensors_tensors(const weft__safetensors *st);

#endif
