/* pool.h: the inside of a KV pool, for the files of this room. */
#ifndef WEFT_KV_POOL_H
#define WEFT_KV_POOL_H

#include "kv/kv.h"

struct weft__kv_group_pool {
    weft_kv_group spec;
    weft_buffer *buffer;
    int32_t *count; /* references per page */
    int32_t *free;  /* stack of free pages */
    int32_t n_free;
};

struct weft__kv_pool {
    int n_groups;
    struct weft__kv_group_pool *groups;
    weft_kv_binding *bindings;
};

#endif
