// SPDX-License-Identifier: Apache-2.0
/* backend_nodes.c: some of a step's nodes, as they are run to be timed: each of them runs, and no other one does; what
 * cannot run alone is refused. */
#include "waist_model.h"

enum { N_CTX = 64, ROWS = 20 };

/* A step of n rows of one sequence, all wanted. */
static weft_rows rows_of(store *t, int32_t n, int32_t token)
{
    for (int32_t i = 0; i < n; i++) {
        t->token[i] = (token + i) % V;
        t->pos[i] = i;
        t->seq[i] = 0;
        t->want[i] = WEFT_WANT_LOGITS;
    }
    return (weft_rows){.size = sizeof(weft_rows),
                       .n_rows = n,
                       .n_wanted = n,
                       .n_seqs = 1,
                       .token = t->token,
                       .pos = t->pos,
                       .seq = t->seq,
                       .want = t->want,
                       .seqs = t->views};
}

/* The whole step in pieces of so many nodes: its result appears with the last one, and is that of the whole step. */
static void in_pieces(store *t, int32_t n_rows, int32_t piece)
{
    static float whole[ROWS * V], out[ROWS * V];
    float *outputs[] = {out};
    const int32_t n_nodes = weft__plan_graph(t->plan)->n_nodes;
    const size_t n_bytes = (size_t)n_rows * V * sizeof *out;
    weft_rows rows = rows_of(t, n_rows, 3);
    assert_ok(weft__plan_run(t->state, &rows, t->kv, outputs, err));
    memcpy(whole, out, n_bytes);
    rows = rows_of(t, n_rows, 11); /* what another step left */
    assert_ok(weft__plan_run(t->state, &rows, t->kv, outputs, err));
    rows = rows_of(t, n_rows, 3);
    for (int32_t at = 0; at < n_nodes; at += piece) {
        assert_true(memcmp(whole, out, n_bytes) != 0);
        assert_ok(weft__plan_run_nodes(t->state, &rows, t->kv, outputs, at, n_nodes - at < piece ? n_nodes - at : piece,
                                       err));
    }
    assert_memory_equal(whole, out, n_bytes);
}

static void nodes_in_turns_are_the_step(void **state)
{
    static store t;
    stage s;
    (void)state;
    waist_model(&s, 0);
    store_open(&t, s.g, "cpu", "threads=2", 1, WEFT_F16, N_CTX, ROWS);
    const int32_t n_nodes = weft__plan_graph(t.plan)->n_nodes, n_rows[] = {1, 3, ROWS};
    for (int i = 0; i < 3; i++)
        for (int32_t piece = 1; piece <= n_nodes; piece++) in_pieces(&t, n_rows[i], piece);
    store_close(&t);
    stage_close(&s);
}

static void what_is_no_piece_is_refused(void **state)
{
    static store t;
    static float out[ROWS * V];
    float *outputs[] = {out};
    stage s;
    (void)state;
    waist_model(&s, 1);
    store_open(&t, s.g, "cpu", "threads=2", 1, WEFT_F16, N_CTX, ROWS);
    const weft_graph *g = weft__plan_graph(t.plan);
    int32_t experts = 0;
    while (g->nodes[experts].op != WEFT_OP_MOE_FFN) experts++;
    const weft_rows rows = rows_of(&t, 4, 3);
#define NODES(first, n) weft__plan_run_nodes(t.state, &rows, t.kv, outputs, first, n, err)
    assert_ok(NODES(0, experts));
    assert_ok(NODES(experts + 1, g->n_nodes - experts - 1));
    assert_refused(WEFT_ARGUMENT, "experts", NODES(0, experts + 1));
    assert_refused(WEFT_ARGUMENT, "experts", NODES(experts, 1));
    assert_refused(WEFT_ARGUMENT, "the graph has", NODES(g->n_nodes - 1, 2));
    assert_refused(WEFT_ARGUMENT, "the graph has", NODES(-1, 2));
    t.providers[0]->table.features &= ~(uint32_t)WEFT_FEATURE_NODES;
    assert_refused(WEFT_UNSUPPORTED, "cpu runs whole steps", NODES(0, 1));
#undef NODES
    store_close(&t);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_in_turns_are_the_step),
        cmocka_unit_test(what_is_no_piece_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
