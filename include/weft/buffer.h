// SPDX-License-Identifier: Apache-2.0
/* buffer.h: element types, and bytes in one of six memory domains.
 *
 * A buffer is a run of bytes with one owner. It is created by the core (host, mapped, shared) or by a provider (pinned,
 * device, imported); its owner releases it once, with weft_buffer_release, and the release function that its
 * creator installed does the rest. Views borrow. Layouts here are part of the plugin ABI: append only. */
#ifndef WEFT_BUFFER_H
#define WEFT_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, block, bytes, text). `value` is the type id of GGUF files. `block` elements are stored in `bytes`
 * bytes. */
#define WEFT_DTYPE_LIST(X)                                                                                             \
    X(F32, 0, 1, 4, "F32")                                                                                             \
    X(F16, 1, 1, 2, "F16")                                                                                             \
    X(Q4_0, 2, 32, 18, "Q4_0")                                                                                         \
    X(Q4_1, 3, 32, 20, "Q4_1")                                                                                         \
    X(Q5_0, 6, 32, 22, "Q5_0")                                                                                         \
    X(Q5_1, 7, 32, 24, "Q5_1")                                                                                         \
    X(Q8_0, 8, 32, 34, "Q8_0")                                                                                         \
    X(Q2_K, 10, 256, 84, "Q2_K")                                                                                       \
    X(Q3_K, 11, 256, 110, "Q3_K")                                                                                      \
    X(Q4_K, 12, 256, 144, "Q4_K")                                                                                      \
    X(Q5_K, 13, 256, 176, "Q5_K")                                                                                      \
    X(Q6_K, 14, 256, 210, "Q6_K")                                                                                      \
    X(IQ4_NL, 20, 32, 18, "IQ4_NL")                                                                                    \
    X(IQ4_XS, 23, 256, 136, "IQ4_XS")                                                                                  \
    X(I8, 24, 1, 1, "I8")                                                                                              \
    X(I16, 25, 1, 2, "I16")                                                                                            \
    X(I32, 26, 1, 4, "I32")                                                                                            \
    X(I64, 27, 1, 8, "I64")                                                                                            \
    X(F64, 28, 1, 8, "F64")                                                                                            \
    X(BF16, 30, 1, 2, "BF16")

typedef enum weft_dtype {
#define WEFT_DTYPE_ENUM(name, value, block, bytes, text) WEFT_##name = (value),
    WEFT_DTYPE_LIST(WEFT_DTYPE_ENUM)
#undef WEFT_DTYPE_ENUM
} weft_dtype;

typedef struct weft_dtype_info {
    const char *name;     /* "Q4_0"; NULL for an id that this build does not know */
    uint32_t block_elems; /* elements in a block */
    uint32_t block_bytes; /* bytes of a block */
} weft_dtype_info;

/* Any id may be asked, also one read from a file; an unknown one gives {NULL, 0, 0}. */
WEFT_API weft_dtype_info weft_dtype_describe(uint32_t dtype);

/* The type named by `text` ("q4_0", "Q4_0"; case does not matter), or -1. */
WEFT_API int weft_dtype_from_name(const char *text);

/* A format of keys or of values: WEFT_F16, WEFT_F32, WEFT_BF16, or one of these. */
enum weft_kv_format {
    WEFT_KV_Q8 = 128, /* 8 bits and a scale per token and head, of a head that was rotated */
    WEFT_KV_Q4 = 129, /* 4 bits and a scale per token and 32 elements, of a head that was rotated */
    WEFT_KV_F8 = 130  /* E4M3: 8 bits with an exponent of 4, at most 448 */
};

/* A type of keys and values. Bits 0-7: the keys' format; 8-15: the values', plus 1 (0: the keys'); 16-23 and 24-31: how
 * many of a group's first and last layers (graph.h) are in F16 all the same. */
#define WEFT_KV_TYPE(keys, values, first, last)                                                                        \
    ((uint32_t)(keys) | ((uint32_t)(keys) == (uint32_t)(values) ? 0 : (uint32_t)(values) + 1) << 8 |                   \
     (uint32_t)(first) << 16 | (uint32_t)(last) << 24)

enum { WEFT_KV_NAME_MAX = 40 };

/* The type that `text` names: a format ("f16", "f32", "bf16", "f8", "q8", "q4"), or keys and values apart, as
 * "k=q8,v=q4". Where one of them is q4 the first and the last two layers are in F16; ",edges=N" makes them N, or
 * ",edges=N/M". Case does not matter. WEFT_ARGUMENT, which lists the formats. */
WEFT_API weft_status weft_kv_type_parse(const char *text, uint32_t *out, weft_error *err);
/* The name that weft_kv_type_parse reads; returns `out`. Of what is no type: its number. */
WEFT_API const char *weft_kv_type_name(uint32_t type, char out[WEFT_KV_NAME_MAX]);

typedef enum weft_domain {
    WEFT_DOMAIN_HOST = 0,     /* ordinary memory of this process */
    WEFT_DOMAIN_MAPPED = 1,   /* a file mapped read-only */
    WEFT_DOMAIN_PINNED = 2,   /* host memory that a device reads directly */
    WEFT_DOMAIN_DEVICE = 3,   /* memory of a device: `data` is NULL, `handle` is the provider's */
    WEFT_DOMAIN_SHARED = 4,   /* memory that several processes map */
    WEFT_DOMAIN_IMPORTED = 5, /* memory of another owner, borrowed by a provider (host pointer, dma-buf) */
    WEFT_DOMAIN_COUNT = 6
} weft_domain;

enum weft_buffer_flags {
    WEFT_BUFFER_HUGE = 1u << 0,    /* ask for huge pages; a wish, never an error */
    WEFT_BUFFER_ZERO = 1u << 1,    /* filled with zero bytes */
    WEFT_BUFFER_READONLY = 1u << 2 /* writing is a bug (mapped files) */
};

typedef struct weft_buffer_spec {
    uint32_t size;   /* sizeof(weft_buffer_spec), set by the caller */
    uint32_t domain; /* weft_domain */
    uint64_t n_bytes;
    uint32_t align; /* power of two, bytes; 0 means 64 */
    uint32_t flags; /* weft_buffer_flags */
} weft_buffer_spec;

typedef struct weft_buffer weft_buffer;
struct weft_buffer {
    uint32_t size;                   /* sizeof(weft_buffer) of the creator */
    uint32_t domain;                 /* weft_domain */
    uint32_t flags;                  /* weft_buffer_flags */
    uint32_t reserved;               /* 0 */
    uint64_t n_bytes;                /* bytes that may be used */
    void *data;                      /* host address, or NULL where the host cannot address it */
    void *handle;                    /* the creator's own */
    void (*release)(weft_buffer *b); /* frees the bytes and *b itself; set by the creator */
};

/* Memory that a provider may import without copying. */
typedef struct weft_external {
    uint32_t size;   /* sizeof(weft_external) */
    uint32_t domain; /* what it is: WEFT_DOMAIN_HOST, MAPPED or SHARED */
    void *data;
    uint64_t n_bytes;
    int32_t fd; /* a descriptor for the same bytes (dma-buf, memfd), or -1 */
    int32_t reserved;
} weft_external;

/* Releases *b through its own release function and sets *b to NULL; NULL and a pointer to NULL are fine. */
WEFT_API void weft_buffer_release(weft_buffer **b);

WEFT_STATIC_ASSERT(sizeof(weft_buffer_spec) == 24, "plugin ABI: weft_buffer_spec");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_buffer) == 48, "plugin ABI: weft_buffer");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_external) == 32, "plugin ABI: weft_external");

#ifdef __cplusplus
}
#endif
#endif
