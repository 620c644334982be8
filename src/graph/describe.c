// SPDX-License-Identifier: Apache-2.0
/* describe.c: a plan in words. Reentrant; no state. */
#include <string.h>

#include "base/text.h"
#include "graph/plan.h"

static void put_linear(weft__strbuf *t, const weft_attr_linear *a)
{
    if (a->norm_weight != WEFT_NONE) weft__strbuf_puts(t, ", norm in front");
    if (a->n_mat > 1) weft__strbuf_printf(t, ", %d matrices", a->n_mat);
    if (a->activation != WEFT_ACT_NONE) weft__strbuf_puts(t, ", glu");
    if (a->residual != WEFT_NONE) weft__strbuf_puts(t, ", add");
}

static void put_nodes(weft__strbuf *t, const weft_graph *g, const weft_segment *s)
{
    char name[WEFT__GRAPH_NODE_NAME];
    for (int32_t i = 0; i < s->n_nodes; i++) {
        weft__strbuf_printf(t, "  %s", weft__graph_node_name(g, s->nodes[i], name));
        if (g->nodes[s->nodes[i]].op == WEFT_OP_LINEAR) put_linear(t, &g->nodes[s->nodes[i]].attr.linear);
        weft__strbuf_putc(t, '\n');
    }
}

/* Each line of `lines`, indented. */
static void put_indented(weft__strbuf *t, const char *lines)
{
    while (lines && *lines) {
        size_t n = strcspn(lines, "\n");
        weft__strbuf_puts(t, "  ");
        weft__strbuf_put(t, lines, n);
        weft__strbuf_putc(t, '\n');
        lines += n + (lines[n] == '\n');
    }
}

char *weft__plan_describe(const weft__plan *p)
{
    weft__strbuf t = {0};
    weft__strbuf_printf(
        &t, "graph: %d nodes, %d after fusion, %d segment%s; steps of up to %d rows, %d of them with logits\n",
        p->n_nodes_before, p->graph->n_nodes, p->n_segments, p->n_segments == 1 ? "" : "s", p->max_rows, p->max_wanted);
    if (p->border_bytes > 0) weft__strbuf_printf(&t, "border: %llu bytes\n", (unsigned long long)p->border_bytes);
    for (int32_t i = 0; i < p->n_segments; i++) {
        const weft__plan_segment *seg = &p->segments[i];
        const weft_backend_api *api = seg->provider->api;
        weft__strbuf_printf(&t, "segment %d: provider %s, %d nodes, arena %llu bytes, %llu without reuse\n", i,
                            api->name, seg->s.n_nodes, (unsigned long long)seg->s.arena_bytes,
                            (unsigned long long)seg->without_reuse);
        if (api->program_describe) put_indented(&t, api->program_describe(seg->program));
        put_nodes(&t, p->graph, &seg->s);
    }
    if (!t.failed) return t.data;
    weft__strbuf_free(&t);
    return NULL;
}
