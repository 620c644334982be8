/* shared.h: the part of shared.c that weft__mem_create calls; private to this room. */
#ifndef WEFT_MEM_SHARED_H
#define WEFT_MEM_SHARED_H

#include "mem/mem.h"

/* As weft__mem_create for WEFT_DOMAIN_SHARED; `align` is a power of two, at most a page. */
weft_status weft__mem_shared_create(const weft_buffer_spec *spec, size_t align, weft_buffer **out, weft_error *err);

#endif
