/* run.c: one step: every thread walks the program (cpu.h). */
#include "backend/cpu/cpu.h"

static void walk(void *arg, int thread, int n_threads)
{
    weft_program *p = arg;
    (void)n_threads;
    for (int32_t i = 0; i < p->n_steps; i++) {
        const weft__cpu_step *s = &p->steps[i];
        if (weft__cpu_rows(p, s) == 0) continue;
        s->run(p, s, thread);
        if (s->barrier) weft__pool_barrier(p->backend->pool, thread);
    }
}

weft_status weft__cpu_run(weft_program *p, const weft_rows *rows, const weft_bindings *b, weft_error *err)
{
    weft_status st;
    if ((st = weft__cpu_accept(p, rows, b, err)) || (st = weft__cpu_tile_rows(p, err))) return st;
    weft__pool_run(p->backend->pool, walk, p);
    return WEFT_OK;
}
