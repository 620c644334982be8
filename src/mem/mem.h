// SPDX-License-Identifier: Apache-2.0
/* mem.h: buffers that the core itself creates: host memory, borrowed memory, files mapped read-only. Each comes
 * back as a weft_buffer with its release function set; free it with weft_buffer_release.
 *
 * Invariant: a buffer's fields do not change after creation. Its bytes belong to its owner.
 * Thread safety: all functions are thread-safe; one buffer is released once, by one thread, when no view of it is
 * left. */
#ifndef WEFT_MEM_MEM_H
#define WEFT_MEM_MEM_H

#include "weft/buffer.h"

typedef enum weft__mem_advice {
    WEFT__MEM_ADVICE_NORMAL,
    WEFT__MEM_ADVICE_SEQUENTIAL, /* will be read once, front to back */
    WEFT__MEM_ADVICE_RANDOM,
    WEFT__MEM_ADVICE_WILLNEED, /* start reading it now */
    WEFT__MEM_ADVICE_DONTNEED, /* its pages may be dropped; they are read again from the file when touched */
    WEFT__MEM_ADVICE_HUGE,     /* huge pages here, as many as the system gives */
    WEFT__MEM_ADVICE_SMALL,    /* no huge pages here, whatever was asked for when the buffer was made */
    WEFT__MEM_ADVICE_LOSE      /* the system may have them back: they read as zeros, or as before, until written */
} weft__mem_advice;

/* A buffer of spec->n_bytes in WEFT_DOMAIN_HOST. Buffers of a mebibyte and more are mapped from the system, whole pages
 * at a time; smaller ones come from the heap. WEFT_BUFFER_HUGE on such a mapping aligns it to 2 MiB and asks for huge
 * pages; whether the system agrees is not reported. WEFT_BUFFER_ZERO fills with zeros (mapped memory always is). Fails
 * with WEFT_ARGUMENT (size of the struct, domain, alignment, flags) or WEFT_NO_MEMORY. */
weft_status weft__mem_create(const weft_buffer_spec *spec, weft_buffer **out, weft_error *err);

/* A buffer in WEFT_DOMAIN_IMPORTED around n_bytes at data, which stay the caller's and must outlive it; releasing it
 * frees nothing but the description. flags: WEFT_BUFFER_READONLY or 0. */
weft_status weft__mem_borrow(const void *data, uint64_t n_bytes, uint32_t flags, weft_buffer **out, weft_error *err);

/* n_bytes of addresses at which there is nothing: to touch them ends the process. For what computes where something
 * would lie, without taking the memory (outlines). WEFT_NO_MEMORY. */
weft_status weft__mem_reserve(uint64_t n_bytes, weft_buffer **out, weft_error *err);

/* Maps the whole regular file `path` read-only (WEFT_DOMAIN_MAPPED). An empty file, a directory or a device is refused.
 * The file must not be shortened while it is mapped: reading past its new end kills the process; replacing it by rename
 * is safe. Fails with WEFT_NOT_FOUND, WEFT_IO, WEFT_UNSUPPORTED (not a regular file), WEFT_FORMAT (empty) or
 * WEFT_NO_MEMORY; the message names the path and the system's reason. */
weft_status weft__mem_map(const char *path, weft_buffer **out, weft_error *err);

/* Tells the system how [offset, offset + n_bytes) will be used. DONTNEED and LOSE are rounded inwards to whole pages:
 * neighbours stay. DONTNEED is refused outside WEFT_DOMAIN_MAPPED, where it would lose data, LOSE outside
 * WEFT_DOMAIN_HOST. All other advice is rounded outwards. Fails with WEFT_ARGUMENT (range, domain) or WEFT_IO (the
 * system refused). */
weft_status weft__mem_advise(const weft_buffer *b, uint64_t offset, uint64_t n_bytes, weft__mem_advice advice,
                             weft_error *err);

/* Ends a mapping, for host.c and map.c. Meanwhile the system keeps all threads waiting that map memory or unmap it: so
 * in the background (base/background.h) a large one goes in pieces, with rests between them. */
void weft__mem_unmap(void *base, size_t n_bytes);

#endif
