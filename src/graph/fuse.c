// SPDX-License-Identifier: Apache-2.0
/* fuse.c: replacing groups of nodes by their fused forms. The arithmetic of a row stays what it was; what is saved is
 * passes over memory and barriers between steps.
 *
 *   norm, then linears only            -> linears with the norm in front
 *   gate, up, glu                      -> one linear with an activation
 *   linear used once, then add         -> a linear with a residual
 *   linears of one input               -> one linear of up to three matrices
 *   rope of q, rope of k, kv_write     -> rope_kv
 *
 * Each form is made only when `supports` accepts the node that would come out of it, and all its parts have the same
 * place. Invariant: tensor ids keep their meaning; the nodes stay in an executable order; a node that was replaced is
 * marked dead until the end. Reentrant; no state. */
#include <string.h>

#include "base/alloc.h"
#include "graph/internal.h"

#define DEAD UINT32_MAX /* op of a node that was replaced */

typedef struct fuser {
    weft_graph *g;    /* the copy that is changed */
    weft_node *nodes; /* g->nodes */
    const int32_t *place;
    int32_t *producer, *n_uses; /* [n_tensors]; being an output of the graph is a use */
    weft__graph_supports_fn supports;
    void *arg;
} fuser;

/* ---- questions ---- */

/* Brings producers and uses up to date. */
static void survey(fuser *f)
{
    const weft_graph *g = f->g;
    for (int32_t t = 0; t < g->n_tensors; t++) {
        f->producer[t] = WEFT_NONE;
        f->n_uses[t] = 0;
    }
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const weft_node *n = &f->nodes[i];
        if (n->op == DEAD) continue;
        for (int32_t j = 0; j < n->n_out; j++) f->producer[n->out[j]] = i;
        for (int32_t j = 0; j < n->n_in; j++) f->n_uses[n->in[j]]++;
    }
    for (int32_t i = 0; i < g->n_outputs; i++) f->n_uses[g->outputs[i]]++;
}

static int is_output(const fuser *f, weft_tensor_id t)
{
    for (int32_t i = 0; i < f->g->n_outputs; i++)
        if (f->g->outputs[i] == t) return 1;
    return 0;
}

static int same_place(const fuser *f, int32_t a, int32_t b)
{
    return !f->place || f->place[a] == f->place[b];
}

static int wanted(const fuser *f, const weft_node *node)
{
    return f->supports(f->arg, f->g, node) > 0;
}

/* A linear of one matrix with nothing behind it (a norm in front is fine). */
static int is_plain(const weft_node *n)
{
    return n->op == WEFT_OP_LINEAR && n->attr.linear.n_mat == 1 && n->attr.linear.activation == WEFT_ACT_NONE &&
           n->attr.linear.residual == WEFT_NONE;
}

static int same_input(const weft_node *a, const weft_node *b)
{
    return a->in[0] == b->in[0] && a->attr.linear.norm_weight == b->attr.linear.norm_weight &&
           (a->attr.linear.norm_weight == WEFT_NONE || a->attr.linear.norm_eps == b->attr.linear.norm_eps);
}

/* The plain linear, of node i's place, that makes t for node i alone; WEFT_NONE when it is none. */
static int32_t own_linear(const fuser *f, weft_tensor_id t, int32_t i)
{
    int32_t p = f->producer[t];
    return p != WEFT_NONE && f->n_uses[t] == 1 && is_plain(&f->nodes[p]) && same_place(f, p, i) ? p : WEFT_NONE;
}

/* A fused node's output is called after the weight that makes it, which says more than "add" or "glu". */
static void rename_output(fuser *f, weft_tensor_id t, weft_tensor_id after)
{
    weft_tensor *tensors = (weft_tensor *)f->g->tensors; /* of our own copy */
    memcpy(tensors[t].name, tensors[after].name, sizeof tensors[t].name);
}

/* ---- norm in front ---- */

static weft_node with_norm(const weft_node *linear, const weft_node *norm)
{
    weft_node n = *linear;
    n.in[0] = norm->in[0];
    n.attr.linear.norm_weight = norm->w[0];
    n.attr.linear.norm_eps = norm->attr.norm.eps;
    return n;
}

/* Could node i take the norm node k in front, as far as it uses the norm's output at all? */
static int takes_norm(const fuser *f, int32_t i, int32_t k)
{
    const weft_node *n = &f->nodes[i], *norm = &f->nodes[k];
    if (!is_plain(n) || n->attr.linear.norm_weight != WEFT_NONE || !same_place(f, i, k)) return 0;
    weft_node fused = with_norm(n, norm);
    return wanted(f, &fused);
}

static int uses(const weft_node *n, weft_tensor_id t)
{
    for (int32_t j = 0; n->op != DEAD && j < n->n_in; j++)
        if (n->in[j] == t) return 1;
    return 0;
}

static void fuse_norm(fuser *f, int32_t k)
{
    weft_node *norm = &f->nodes[k];
    weft_tensor_id y = norm->out[0];
    int32_t n_nodes = f->g->n_nodes;
    if (norm->op != WEFT_OP_NORM || norm->attr.norm.kind != WEFT_NORM_RMS || norm->attr.norm.group != 0 ||
        norm->w[0] == WEFT_NONE)
        return;
    if (is_output(f, y) || f->n_uses[y] == 0) return;
    for (int32_t i = 0; i < n_nodes; i++)
        if (uses(&f->nodes[i], y) && !takes_norm(f, i, k)) return;
    for (int32_t i = 0; i < n_nodes; i++)
        if (uses(&f->nodes[i], y)) f->nodes[i] = with_norm(&f->nodes[i], norm);
    norm->op = DEAD;
}

/* ---- gate and up ---- */

static void fuse_glu(fuser *f, int32_t i)
{
    weft_node *glu = &f->nodes[i];
    if (glu->op != WEFT_OP_GLU || glu->attr.glu.activation == WEFT_ACT_NONE) return;
    int32_t a = own_linear(f, glu->in[0], i), b = own_linear(f, glu->in[1], i);
    if (a == WEFT_NONE || b == WEFT_NONE || !same_input(&f->nodes[a], &f->nodes[b])) return;
    weft_node fused = f->nodes[a];
    weft_attr_linear *l = &fused.attr.linear;
    l->n_mat = 2;
    l->activation = glu->attr.glu.activation;
    l->bias[1] = f->nodes[b].attr.linear.bias[0];
    fused.n_w = 2;
    fused.w[1] = f->nodes[b].w[0];
    fused.out[0] = glu->out[0];
    if (!wanted(f, &fused)) return;
    rename_output(f, glu->out[0], f->nodes[a].out[0]);
    *glu = fused;
    f->nodes[a].op = f->nodes[b].op = DEAD;
}

/* ---- residual ---- */

/* Lets the linear that makes operand `which` of the add node i do the addition. */
static int fuse_residual(fuser *f, int32_t i, int which)
{
    weft_node *add = &f->nodes[i];
    int32_t a = own_linear(f, add->in[which], i);
    if (a == WEFT_NONE) return 0;
    weft_node fused = f->nodes[a];
    fused.n_in = 2;
    fused.in[1] = add->in[1 - which];
    fused.attr.linear.residual = 1;
    fused.out[0] = add->out[0];
    if (!wanted(f, &fused)) return 0;
    rename_output(f, add->out[0], f->nodes[a].out[0]);
    *add = fused;
    f->nodes[a].op = DEAD;
    return 1;
}

/* ---- several matrices ---- */

static weft_node merged(const fuser *f, const int32_t *parts, int n)
{
    weft_node node = f->nodes[parts[0]];
    node.n_w = node.n_out = node.attr.linear.n_mat = n;
    for (int i = 0; i < n; i++) {
        const weft_node *part = &f->nodes[parts[i]];
        node.w[i] = part->w[0];
        node.out[i] = part->out[0];
        node.attr.linear.bias[i] = part->attr.linear.bias[0];
    }
    return node;
}

static void fuse_siblings(fuser *f, int32_t i)
{
    int32_t parts[WEFT_LINEAR_MAX] = {i};
    int n = 1;
    if (!is_plain(&f->nodes[i])) return;
    for (int32_t j = i + 1; j < f->g->n_nodes && n < WEFT_LINEAR_MAX; j++)
        if (is_plain(&f->nodes[j]) && same_input(&f->nodes[i], &f->nodes[j]) && same_place(f, i, j)) parts[n++] = j;
    for (; n > 1; n--) {
        weft_node node = merged(f, parts, n);
        if (!wanted(f, &node)) continue;
        f->nodes[i] = node;
        for (int j = 1; j < n; j++) f->nodes[parts[j]].op = DEAD;
        return;
    }
}

/* ---- rope and pages ---- */

static int same_rope(weft_attr_rope a, weft_attr_rope b)
{
    return a.head_dim == b.head_dim && a.n_rot == b.n_rot && a.style == b.style && a.base == b.base &&
           a.freq_scale == b.freq_scale && a.ext_factor == b.ext_factor && a.attn_factor == b.attn_factor &&
           a.beta_fast == b.beta_fast && a.beta_slow == b.beta_slow && a.n_ctx_orig == b.n_ctx_orig;
}

static int32_t rope_of(const fuser *f, weft_tensor_id t, int32_t i)
{
    int32_t p = f->producer[t];
    return p != WEFT_NONE && f->nodes[p].op == WEFT_OP_ROPE && same_place(f, p, i) ? p : WEFT_NONE;
}

/* The rope whose output is the q of every attention that waits for `order`, and is used by nothing else. */
static int32_t rope_of_q(const fuser *f, weft_tensor_id order, int32_t i)
{
    weft_tensor_id q = WEFT_NONE;
    int32_t n = 0;
    for (int32_t j = 0; j < f->g->n_nodes; j++) {
        const weft_node *a = &f->nodes[j];
        if (!uses(a, order)) continue;
        if (a->op != WEFT_OP_ATTENTION || (q != WEFT_NONE && a->in[0] != q)) return WEFT_NONE;
        q = a->in[0];
        n++;
    }
    return q != WEFT_NONE && f->n_uses[q] == n ? rope_of(f, q, i) : WEFT_NONE;
}

static void fuse_rope_kv(fuser *f, int32_t i)
{
    weft_node *write = &f->nodes[i];
    if (write->op != WEFT_OP_KV_WRITE || f->n_uses[write->in[0]] != 1) return;
    int32_t k = rope_of(f, write->in[0], i), q = rope_of_q(f, write->out[0], i);
    if (k == WEFT_NONE || q == WEFT_NONE || k == q) return;
    const weft_node *rope_q = &f->nodes[q], *rope_k = &f->nodes[k];
    if (rope_q->w[0] != rope_k->w[0] || !same_rope(rope_q->attr.rope, rope_k->attr.rope)) return;
    weft_node fused = {.op = WEFT_OP_ROPE_KV, .n_in = 3, .n_out = 2, .n_w = 1, .layer = write->layer};
    fused.in[0] = rope_q->in[0];
    fused.in[1] = rope_k->in[0];
    fused.in[2] = write->in[1];
    fused.out[0] = rope_q->out[0];
    fused.out[1] = write->out[0];
    fused.w[0] = rope_q->w[0];
    fused.attr.rope_kv = (weft_attr_rope_kv){rope_q->attr.rope, rope_k->attr.rope, write->attr.kv};
    if (!wanted(f, &fused)) return;
    /* At the later place of the two: the attentions, which need both, stand behind it. */
    f->nodes[q].op = f->nodes[k].op = write->op = DEAD;
    f->nodes[q > i ? q : i] = fused;
}

/* ---- all of it ---- */

static void fuse_all(fuser *f)
{
    int32_t n = f->g->n_nodes;
    survey(f);
    for (int32_t i = 0; i < n; i++) fuse_norm(f, i);
    survey(f);
    for (int32_t i = 0; i < n; i++) fuse_glu(f, i);
    survey(f);
    for (int32_t i = 0; i < n; i++)
        if (f->nodes[i].op == WEFT_OP_ADD && !fuse_residual(f, i, 1)) (void)fuse_residual(f, i, 0);
    for (int32_t i = 0; i < n; i++) fuse_siblings(f, i);
    survey(f);
    for (int32_t i = 0; i < n; i++) fuse_rope_kv(f, i);
    int32_t left = 0;
    for (int32_t i = 0; i < n; i++)
        if (f->nodes[i].op != DEAD) f->nodes[left++] = f->nodes[i];
    f->g->n_nodes = left;
}

weft_status weft__graph_fuse(const weft_graph *graph, const int32_t *place, weft__graph_supports_fn supports, void *arg,
                             weft_graph **out, weft_error *err)
{
    size_t n = (size_t)graph->n_tensors;
    fuser f = {.g = weft__graph_copy(graph), .place = place, .supports = supports, .arg = arg};
    f.producer = weft__alloc_array(n, sizeof *f.producer);
    f.n_uses = weft__alloc_array(n, sizeof *f.n_uses);
    int ok = f.g && f.producer && f.n_uses;
    if (ok) {
        f.nodes = (weft_node *)f.g->nodes;
        fuse_all(&f);
    } else {
        weft__graph_destroy(&f.g);
    }
    weft__free(f.n_uses);
    weft__free(f.producer);
    *out = f.g;
    return ok ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory to fuse a graph of %d nodes", graph->n_nodes);
}
