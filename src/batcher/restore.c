/* restore.c: a snapshot that was read from the disk becomes pages of the prefix tree. They are copied a piece between two steps, so
 * that nobody's tokens wait for them; until all are there, a sequence of its own holds them, which gives them up as soon as a request
 * needs them: to the scheduler they are as good as free. Owner: the engine's thread. */
#include "batcher/batcher.h"

weft__kv_seq *weft__serve_borrow_seq(weft_engine *e, int32_t n)
{
    weft__kv_seq *seq = NULL;
    return n > 0 && weft__kv_seq_create(e->pool, n, &seq, NULL) == WEFT_OK ? seq : NULL;
}

static void forget(weft_engine *e)
{
    weft__kv_seq_destroy(&e->planting.seq);
    e->planting.from = NULL;
}

static void begin(weft_engine *e, const weft__snapshot *s, int32_t n)
{
    e->planting.from = s;
    e->planting.n = n;
    e->planting.at = 0;
    e->planting.seq = weft__serve_borrow_seq(e, n);
    if (e->planting.seq && weft__snapshot_load_begin(s, &e->layout, n, e->planting.seq, NULL))
        weft__kv_seq_destroy(&e->planting.seq);
}

int weft__serve_plant(weft_engine *e, const weft__snapshot *s, int32_t n, int32_t *known)
{
    uint64_t before;
    int complete = 0;
    *known = 0;
    if (!e->planting.from) begin(e, s, n);
    if (e->planting.from != s) return 0; /* its turn comes */
    if (e->planting.seq) {
        before = e->planting.at;
        weft_status st = weft__snapshot_load_some(s, &e->layout, e->planting.n, e->planting.seq, &e->planting.at, e->copy_left,
                                                  &complete, NULL);
        e->copy_left -= e->planting.at - before;
        if (!st && !complete) return 0;
        if (!st)
            *known = weft__prefix_insert(e->prefix, weft__snapshot_head_of(s)->root, weft__snapshot_tokens(s), e->planting.n,
                                         e->planting.seq);
    }
    forget(e);
    return 1;
}

void weft__serve_plant_stop(weft_engine *e, const weft__snapshot *s)
{
    if (s && e->planting.from == s) forget(e);
}

int64_t weft__serve_plant_pages(const weft_engine *e, int32_t group)
{
    int64_t n = 0;
    if (!e->planting.seq) return 0;
    weft_seq_view view = weft__kv_seq_view(e->planting.seq);
    for (int32_t i = view.n_pages[group]; i > 0 && view.pages[group][i - 1] >= 0; i--) n++;
    return n;
}

int weft__serve_plant_gives_way(weft_engine *e)
{
    if (!e->planting.seq) return 0;
    weft__kv_seq_destroy(&e->planting.seq);
    return 1;
}
