// SPDX-License-Identifier: Apache-2.0
/* fake_engine.h: what the two files of the engine's double share (fake_engine.c, fake_adapters.c). */
#ifndef WEFT_TESTS_SERVER_FAKE_ENGINE_H
#define WEFT_TESTS_SERVER_FAKE_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "fake_model.h"

enum { N_SLOTS = 8, MAX_QUEUE = 160, MAX_SAVED = 64, MAX_ADAPTERS = 64 };

struct weft_engine_lease {
    int n;
    weft_engine_adapter adapters[8]; /* as they were, with the scales that were asked for */
};

struct request {
    struct request *next;
    weft_request_params p;
    int32_t *tokens;
    uint64_t id;
    char script[4096], tenant[64];
    size_t n_script, at_script; /* at_script: where it goes on */
    int32_t insert[64], at_insert;
    int32_t predicted[256];          /* [p.n_predicted] */
    int32_t adapters[8], n_adapters; /* by their numbers */
    int loops, fail_after, running, unlikely, most;
    atomic_int cancelled, finished;      /* by any thread */
    int32_t n_generated, limit, n_right; /* n_right: of predicted */
    uint64_t delay_ns, submitted_ns, due_ns, began_ns, deadline_ns;
    unsigned hold_us;
};

struct weft_engine {
    weft_model *model;
    pthread_t thread;
    pthread_mutex_t lock, loading;
    pthread_cond_t wake, idle;
    struct request *requests;
    int n_requests, n_running, stop, draining, max_queue, n_ctx;
    uint64_t last_id, kv_bytes;
    weft_engine_stats stats;
    char saved[MAX_SAVED][132];
    int32_t n_saved[MAX_SAVED];
    weft_engine_adapter adapters[MAX_ADAPTERS]; /* [n_adapters], by index */
    int32_t n_adapters, next_adapter, n_leases;
    pthread_mutex_t told_lock;
    void (*told)(void *arg);
    void *told_arg;
};

/* By `more` more, or fewer, use the adapter of that number. With the lock. */
void fake_adapter_use(weft_engine *e, int32_t index, int more);

#endif
