// SPDX-License-Identifier: Apache-2.0
/* create.c: what a run has of its own, as much as its program's largest step needs (weft__cpu_needs). */
#include "backend/cpu/adapter/adapter.h"
#include "base/alloc.h"

static weft_status make_tables(weft_run *run, weft_error *err)
{
    const weft_program *p = run->program;
    const size_t max_rows = (size_t)p->segment->max_rows, n_threads = (size_t)p->backend->n_threads;
    run->data = weft__cpu_own(&run->owned, (size_t)p->graph->n_tensors, sizeof(float *));
    run->wanted = weft__cpu_own(&run->owned, (size_t)p->segment->max_wanted, sizeof *run->wanted);
    run->seq_seen = weft__cpu_own(&run->owned, max_rows, sizeof *run->seq_seen);
    run->threads = weft__cpu_own(&run->owned, n_threads, sizeof *run->threads);
    run->scratch = weft__cpu_own(&run->owned, n_threads, sizeof(weft_buffer *));
    run->claims = weft__cpu_own(&run->owned, 2 * p->needs.chunks * n_threads, sizeof *run->claims);
    run->split = weft__cpu_own(&run->owned, p->needs.split, sizeof *run->split);
    run->cs = weft__cpu_own(&run->owned, p->needs.cs, sizeof *run->cs);
    run->direct_rows = weft__cpu_own(&run->owned, (size_t)p->n_direct, sizeof *run->direct_rows);
    run->tiles = weft__cpu_own(&run->owned, (size_t)p->n_tilings, sizeof *run->tiles);
    int made = run->data && run->wanted && run->seq_seen && run->threads && run->scratch && run->claims && run->split &&
               run->cs && run->direct_rows && run->tiles;
    for (int32_t i = 0; i < p->n_tilings && made; i++) {
        run->tiles[i].list = weft__cpu_own(&run->owned, max_rows + 1, sizeof *run->tiles[i].list);
        made = run->tiles[i].list != NULL;
    }
    return made ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory to run steps of %zu rows", max_rows);
}

static weft_status make_arena(weft_run *run, weft_error *err)
{
    const weft_program *p = run->program;
    weft_status st = weft__cpu_buffer(p->segment->arena_bytes, WEFT_BUFFER_HUGE, &run->arena, err);
    if (st) return weft_fail_within(err, st, "activations");
    for (int32_t t = 0; t < p->graph->n_tensors; t++) {
        uint64_t offset = p->segment->arena_offset[t];
        if (offset != UINT64_MAX) run->data[t] = (float *)((uint8_t *)run->arena->data + offset);
    }
    return WEFT_OK;
}

/* Takes n bytes from *at. */
static void *carve(uint8_t **at, size_t n)
{
    void *p = *at;
    *at += weft__cpu_round(n);
    return p;
}

static void divide(const weft__cpu_needs *n, uint8_t *at, weft__cpu_thread *th)
{
    th->row = carve(&at, n->row);
    th->act = carve(&at, n->act);
    th->glu = carve(&at, n->glu);
    th->gate = carve(&at, n->gate);
    th->attn = carve(&at, n->attn);
    th->range = carve(&at, n->range);
    th->slot_row = carve(&at, n->slots);
    th->slot_of = carve(&at, n->slots);
    th->expert_n = carve(&at, n->experts);
    th->blocks = carve(&at, n->blocks);
    th->gathered = carve(&at, n->gathered);
    th->h = carve(&at, n->h);
    th->slot_groups = carve(&at, n->slot_groups);
    th->state = carve(&at, n->state); /* last: long contexts alone touch its end */
}

/* Bytes of a thread's scratch. */
static size_t thread_bytes(const weft__cpu_needs *n)
{
    return weft__cpu_round(n->row) + weft__cpu_round(n->act) + weft__cpu_round(n->glu) + weft__cpu_round(n->gate) +
           weft__cpu_round(n->attn) + weft__cpu_round(n->state) + weft__cpu_round(n->range) +
           2 * weft__cpu_round(n->slots) + weft__cpu_round(n->experts) + weft__cpu_round(n->blocks) +
           weft__cpu_round(n->gathered) + weft__cpu_round(n->h) + weft__cpu_round(n->slot_groups);
}

static weft_status make_scratch(weft_run *run, weft_error *err)
{
    const weft__cpu_needs *n = &run->program->needs;
    const size_t total = thread_bytes(n);
    weft_status st = weft__cpu_buffer(n->shared, WEFT_BUFFER_HUGE, &run->shared, err);
    for (int t = 0; t < run->program->backend->n_threads && !st; t++) {
        st = weft__cpu_buffer(total, 0, &run->scratch[t], err);
        if (!st) divide(n, run->scratch[t]->data, &run->threads[t]);
    }
    return st ? weft_fail_within(err, st, "scratch") : WEFT_OK;
}

/* Of what adapters' A make of the rows. */
static size_t h_bytes(const weft_program *p)
{
    const size_t n_rows = (size_t)p->segment->max_rows, n_slots = p->needs.slots / sizeof(int32_t);
    return (n_slots > n_rows ? n_slots : n_rows) * WEFT__CPU_H_MATS * WEFT__CPU_H_BYTES;
}

/* What steps with adapters need, which alone touch it. */
static weft_status make_groups(weft_run *run, weft_error *err)
{
    const weft_program *p = run->program;
    const size_t max_rows = (size_t)p->segment->max_rows, max_wanted = (size_t)p->segment->max_wanted;
    int made = 1;
    for (int i = 0; i < 2; i++) {
        run->groups[i].list = weft__cpu_own(&run->owned, max_rows, sizeof *run->groups[i].list);
        run->groups[i].rows = weft__cpu_own(&run->owned, i ? max_wanted : max_rows, sizeof *run->groups[i].rows);
        made = made && run->groups[i].list && run->groups[i].rows;
    }
    run->group_start = weft__cpu_own(&run->owned, max_rows + 1, sizeof *run->group_start);
    if (!made || !run->group_start) return weft_fail(err, WEFT_NO_MEMORY, "no memory to group %zu rows", max_rows);
    weft_status st = weft__cpu_buffer(h_bytes(p), 0, &run->h_buffer, err);
    if (st) return weft_fail_within(err, st, "scratch of adapters");
    run->h = run->h_buffer->data;
    return WEFT_OK;
}

uint64_t weft__cpu_run_bytes(const weft_program *p)
{
    return p->segment->arena_bytes + p->needs.shared + (uint64_t)p->backend->n_threads * thread_bytes(&p->needs) +
           h_bytes(p) + p->needs.cs * sizeof(float);
}

weft_status weft__cpu_run_new(const weft_program *p, weft_run **out, weft_error *err)
{
    weft_status st;
    *out = NULL;
    weft_run *run = weft__alloc_zero(1, sizeof *run);
    if (!run) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a run");
    run->program = p;
    run->k = p->k;
    if ((st = make_tables(run, err)) || (st = make_arena(run, err)) || (st = make_scratch(run, err)) ||
        (st = make_groups(run, err))) {
        weft__cpu_run_free(&run);
        return st;
    }
    weft__cpu_use_threads(run, p->backend->n_threads);
    *out = run;
    return WEFT_OK;
}

void weft__cpu_run_free(weft_run **prun)
{
    weft_run *run = *prun;
    if (!run) return;
    *prun = NULL;
    for (int t = 0; run->scratch && t < run->program->backend->n_threads; t++) weft_buffer_release(&run->scratch[t]);
    weft_buffer_release(&run->h_buffer);
    weft_buffer_release(&run->shared);
    weft_buffer_release(&run->arena);
    weft__cpu_free_owned(&run->owned);
    weft__free(run);
}
