// SPDX-License-Identifier: Apache-2.0
/* backend.h: the table of functions through which the core uses a provider of compute, and all that a plugin may see of
 * the core.
 *
 * A provider is a shared object that exports weft_backend_entry, or the CPU provider, which is linked in and goes
 * through the same table. Rules of the ABI: structs begin with `size` and `abi_version`; fields and functions are
 * appended, never moved or changed; a function that is NULL is not offered. The core refuses a table whose
 * abi_version differs in the major number or whose size is smaller than the functions required here, before any
 * other call. What is reserved is 0 or NULL; a provider refuses other values (WEFT_UNSUPPORTED), since they ask for
 * what it does not know.
 *
 * A program is constant once it is compiled. What a step writes belongs to a run, of which a program has any number.
 * Thread safety: `run` may be called by several threads at once, of one program or of several, each with a run of its
 * own; run_new, run_free and the adapter functions may be called beside them by any thread. All other functions of one
 * backend object are called by one thread at a time, and measure and close while nothing runs; different objects are
 * independent. */
#ifndef WEFT_BACKEND_H
#define WEFT_BACKEND_H

#include "weft/common.h"
#include "weft/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Major in the upper 16 bits: must match. Minor in the lower 16: functions or flags were added. */
#define WEFT_ABI_VERSION 0x00020004u

typedef struct weft_backend weft_backend; /* the provider's own */
typedef struct weft_program weft_program; /* the provider's own; constant */
typedef struct weft_run weft_run;         /* the provider's own: what steps of a program write, for one caller */
typedef struct weft_event weft_event;     /* reserved: what a step waits for, and what waits for a step */

/* What the core offers to a plugin. A plugin keeps the pointer; it stays valid. */
typedef struct weft_host_api {
    uint32_t size, abi_version;
    void (*log)(int level, const char *message); /* level 0 error, 1 warning, 2 info, 3 debug */
    void *(*alloc)(size_t n_bytes);              /* 64-byte aligned or NULL */
    void (*free)(void *p);
} weft_host_api;

/* A run of nodes for one provider. Tensors made and used inside live at arena_offset (bytes, for max_rows rows;
 * UINT64_MAX for those that are bound); two whose lifetimes do not overlap may share bytes. A provider may plan its
 * own instead. */
typedef struct weft_segment {
    uint32_t size;
    int32_t n_nodes;
    const int32_t *nodes; /* indices into graph->nodes, in order */
    int32_t n_bound;
    int32_t max_rows, max_wanted;
    int32_t reserved;
    const weft_tensor_id *bound;  /* tensors that enter or leave the segment: given by weft_bindings */
    const uint64_t *arena_offset; /* [n_tensors] */
    uint64_t arena_bytes;
} weft_segment;

/* The packed weights of a program, as it hands them out and as another one takes them, in this process or a later
 * one. */
typedef struct weft_image {
    uint32_t size;
    int32_t n_weights; /* of the graph */
    /* printable; names everything but the weights that the bytes depend on: the provider's own to compare */
    const char *layout;
    const void *data; /* 64-byte aligned */
    uint64_t n_bytes;
    const uint64_t *offset; /* [n_weights] where a weight begins in data; UINT64_MAX: it is not packed */
    const uint8_t *own; /* [n_weights] 1: the weight's own bytes are read, too; not asked of an image that is taken */
} weft_image;

/* How a program is compiled. */
enum weft_compile_flag {
    /* from 2.1, for providers with WEFT_FEATURE_OUTLINE: nothing is packed and no weight but vectors is read; of the
     * program no run is made, but it tells what it would need: program_bytes */
    WEFT_COMPILE_OUTLINE = 1u << 0
};

typedef struct weft_compile_options {
    uint32_t size, flags;      /* bits of weft_compile_flag */
    weft_progress_fn progress; /* may be NULL */
    void *progress_arg;
    /* Weights that were packed before, or NULL: of a provider that offers `image`. data outlives the program, the
     * rest the call. A weight whose buffer is WEFT_DOMAIN_MAPPED without data has its bytes only here.
     * WEFT_UNSUPPORTED when the layout is not the provider's. */
    const weft_image *image;
} weft_compile_options;

/* One op of one run, as the thread that leads the run saw it: from begin to done it did its own share; from done to
 * end it waited for the others, where a later op needs the result. Nanoseconds of CLOCK_MONOTONIC. */
typedef struct weft_profile_event {
    int32_t node; /* index into graph->nodes; WEFT_NONE: work for the whole step, such as the angles of its positions */
    int32_t reserved;
    uint64_t begin_ns, done_ns, end_ns;
} weft_profile_event;

/* Where the events of a step go, in order. Beyond the capacity they are only counted, in n_lost.
 *
 * From 2.2, for providers with WEFT_FEATURE_COUNT: where `count` is not NULL, every thread that works on the step calls
 * it, beside the others, as number `thread` of them: with WEFT_NONE before its first op and when it has waited, and
 * with the index that an op's event has, or would have, in `events` when it is done with its own share of the op. */
typedef struct weft_profile_log {
    uint32_t size;
    int32_t capacity, n, n_lost;
    weft_profile_event *events;
    void (*count)(void *count_arg, int32_t thread, int32_t event);
    void *count_arg;
} weft_profile_log;

/* One step, as a run gets it. Borrowed for the call. */
typedef struct weft_step {
    uint32_t size, reserved;
    const weft_rows *rows;
    const weft_bindings *bindings;
    weft_profile_log *profile; /* events are appended to it; NULL: none. For providers with WEFT_FEATURE_PROFILE */
    weft_event *after, *done;  /* reserved: what the step waits for, what is raised at its end */
    /* From 2.4, for providers with WEFT_FEATURE_NODES: nodes [first_node, first_node + n_nodes) of the graph run alone,
     * on what earlier steps of the run left where others would write: for their time, which is that in a whole step.
     * n_nodes 0: all. Experts are never among them. */
    int32_t first_node, n_nodes;
} weft_step;

/* What a provider takes that it may also not know. To come: events, memory of devices, trees of sequences. */
enum weft_backend_feature {
    WEFT_FEATURE_PROFILE = 1u << 0,
    WEFT_FEATURE_OUTLINE = 1u << 1,
    WEFT_FEATURE_COUNT = 1u << 2, /* from 2.2 */
    WEFT_FEATURE_POOLS = 1u << 3, /* from 2.3: pages of several types in one step (weft_rows.pool) */
    WEFT_FEATURE_NODES = 1u << 4  /* from 2.4: some of a step's nodes, to be timed (weft_step.n_nodes) */
};

/* Bytes of memory that a program takes. */
typedef struct weft_program_bytes {
    uint32_t size, reserved;
    uint64_t packed; /* matrices in the order in which they are multiplied by */
    uint64_t own;    /* of weights whose own bytes steps read: they stay where they are, in the file's pages mostly */
    uint64_t run;    /* of each run: activations and scratch */
} weft_program_bytes;

typedef struct weft_adapter_spec {
    uint32_t size;
    int32_t n_weights;     /* of the graph */
    const weft_lora *lora; /* [n_weights]; borrowed for the call */
    uint32_t dtype;        /* weft_dtype or WEFT_ADAPTER_AUTO */
    uint32_t reserved;
} weft_adapter_spec;

typedef struct weft_backend_api {
    uint32_t size, abi_version;
    const char *name;
    uint32_t features, reserved; /* bits of weft_backend_feature */
    /* options: "key=value,..." or NULL; "threads=4". On success the caller owns *out. */
    weft_status (*open)(const weft_host_api *host, const char *options, weft_backend **out, weft_error *err);
    void (*close)(weft_backend **backend);
    weft_status (*describe)(weft_backend *backend, weft_backend_info *out, weft_error *err);
    /* 0: cannot run this node; otherwise a rank, the higher the better (the CPU answers 100). */
    int (*supports)(weft_backend *backend, const weft_graph *graph, const weft_node *node);
    /* Packs weights, and plans what a run needs. The graph and the segment outlive the program. The caller owns
     * *out. */
    weft_status (*compile)(weft_backend *backend, const weft_graph *graph, const weft_segment *segment,
                           const weft_compile_options *options, weft_program **out, weft_error *err);
    void (*program_free)(weft_program **program); /* after its runs */
    /* What steps of the program write: activations, scratch, what is known of the rows. All that its steps will need
     * is allocated here. The program outlives it; the caller owns *out. WEFT_NO_MEMORY. */
    weft_status (*run_new)(const weft_program *program, weft_run **out, weft_error *err);
    void (*run_free)(weft_run **run);
    /* One step of at most max_rows rows. Allocates nothing, writes nothing but *run, the bound tensors and the pages
     * of the step's sequences. A run has one step at a time, and keeps nothing of the step before. */
    weft_status (*run)(weft_run *run, const weft_step *step, weft_error *err);

    /* ---- optional from here on ---- */
    weft_status (*buffer_new)(weft_backend *backend, const weft_buffer_spec *spec, weft_buffer **out, weft_error *err);
    weft_status (*buffer_import)(weft_backend *backend, const weft_external *ext, weft_buffer **out, weft_error *err);
    /* Measures the limits of the hardware; may take a second. */
    weft_status (*measure)(weft_backend *backend, weft_peaks *out, weft_error *err);
    /* One line per choice the program made ("linear Q4_0: matmul_q4_0_avx512vnni"), separated by newlines. */
    const char *(*program_describe)(const weft_program *program);
    /* The program's packed weights, borrowed until program_free; a provider that has it also takes
     * weft_compile_options.image. out->size set by the caller. */
    weft_status (*image)(const weft_program *program, weft_image *out, weft_error *err);
    /* A provider that lacks it is never given rows with adapters. Packs what an adapter changes about the program's
     * weights; entries of weights that the program does not have are ignored. The adapter is immutable; steps of this
     * program refer to it by weft_rows.adapters, and the caller keeps it, and the program, as long as a step uses it.
     * May be called by any thread, also while the program runs. WEFT_ARGUMENT for a rank above WEFT_ADAPTER_RANK_MAX
     * or a type that is none. */
    weft_status (*adapter_new)(const weft_program *program, const weft_adapter_spec *spec, weft_adapter **out,
                               weft_error *err);
    void (*adapter_free)(weft_adapter **adapter);
    uint64_t (*adapter_bytes)(const weft_adapter *adapter); /* that it occupies */
    /* from 2.1: out->size set by the caller. */
    weft_status (*program_bytes)(const weft_program *program, weft_program_bytes *out, weft_error *err);
} weft_backend_api;

/* The only symbol of a plugin. host_abi is the core's WEFT_ABI_VERSION. NULL: the plugin refuses this core. */
typedef const weft_backend_api *(*weft_backend_entry_fn)(uint32_t host_abi);
#define WEFT_BACKEND_ENTRY "weft_backend_entry"

WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_host_api) == 32, "plugin ABI: weft_host_api");
WEFT_STATIC_ASSERT(sizeof(weft_peaks) == 48, "plugin ABI: weft_peaks");
WEFT_STATIC_ASSERT(sizeof(weft_backend_info) == 216, "plugin ABI: weft_backend_info");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_segment) == 56, "plugin ABI: weft_segment");
WEFT_STATIC_ASSERT(sizeof(weft_profile_event) == 32, "plugin ABI: weft_profile_event");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_profile_log) == 40, "plugin ABI: weft_profile_log");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_backend_api) == 168, "plugin ABI: weft_backend_api");
WEFT_STATIC_ASSERT(sizeof(weft_program_bytes) == 32, "plugin ABI: weft_program_bytes");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_step) == 56, "plugin ABI: weft_step");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_compile_options) == 32, "plugin ABI: weft_compile_options");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_adapter_spec) == 24, "plugin ABI: weft_adapter_spec");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_image) == 48, "plugin ABI: weft_image");

#ifdef __cplusplus
}
#endif
#endif
