// SPDX-License-Identifier: Apache-2.0
/* graph.h: what crosses the waist of the engine: a model as a DAG of ops, and a step as a set of rows.
 *
 * Shapes are written in these letters: R rows of a step, W rows whose logits are wanted, D model width, H heads, G
 * key/value heads, K head width, N outputs of a linear, F feed-forward width, V vocabulary. Architecture files declare
 * nodes; the planner orders and fuses them; providers compile them (backend.h). All structs are plain data, part of the
 * plugin ABI: append only. All tensors of activations are float32, row-major, one row per token.
 *
 * Invariant ("same answer, always"): the values of a row depend on that row and on its sequence's pages only, bit for
 * bit: never on the number of rows, on the other rows, or on the number of threads. */
#ifndef WEFT_GRAPH_H
#define WEFT_GRAPH_H

#include "weft/buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ROWS (-1)   /* as a dimension: the rows of a step, R */
#define WEFT_WANTED (-2) /* as a dimension: the rows whose outputs are wanted, W */
#define WEFT_NONE (-1)   /* as an id: absent */

typedef int32_t weft_tensor_id;
typedef int32_t weft_weight_id;

/* X(name, value, text). Append only; 8 is reserved. Forms marked F are made by the planner, never by architecture
 * files.
 *
 *   EMBED      () -> [D,R]: row token[r] of w[0] (or embd), times attr.embed.scale
 *   NORM       x -> same shape, w[0] weight; attr.norm
 *   LINEAR     x [k,R] -> [N,R] per matrix; attr.linear; F: norm in front, several matrices, glu, add
 *   ROPE       x [H*K,R] -> same; w[0] frequency factors or absent; attr.rope
 *   KV_WRITE   k [G*K,R], v [G*K,R] -> order token; attr.kv
 *   ATTENTION  q [H*K,R], order token -> [H*K,R]; attr.attention
 *   GLU        gate [F,R], up [F,R] -> act(gate) * up; attr.glu
 *   ADD        a, b -> a + b
 *   SOFTCAP    x -> cap * tanh(x / cap); attr.softcap
 *   PICK_ROWS  x [D,R] -> [D,W]: the rows that want logits, in order
 *   ROPE_KV    F: q, k, v -> rotated q, order token; attr.rope_kv
 *   MOE_ROUTE  router logits [E,R] -> [2*n_used,R]: expert ids as floats, then their weights
 *   MOE_FFN    x [D,R], route -> [D,R]; w = gate, up [D,F,E], down [F,D,E]; attr.moe. With a second output: also
 *              act(gate x) * up x of each chosen expert, [n_used*F,R] in order of rank */
#define WEFT_OP_LIST(X)                                                                                                \
    X(EMBED, 0, "embed")                                                                                               \
    X(NORM, 1, "norm")                                                                                                 \
    X(LINEAR, 2, "linear")                                                                                             \
    X(ROPE, 3, "rope")                                                                                                 \
    X(KV_WRITE, 4, "kv_write")                                                                                         \
    X(ATTENTION, 5, "attention")                                                                                       \
    X(GLU, 6, "glu")                                                                                                   \
    X(ADD, 7, "add")                                                                                                   \
    X(SOFTCAP, 9, "softcap")                                                                                           \
    X(PICK_ROWS, 10, "pick_rows")                                                                                      \
    X(ROPE_KV, 11, "rope_kv")                                                                                          \
    X(MOE_ROUTE, 12, "moe_route")                                                                                      \
    X(MOE_FFN, 13, "moe_ffn")

typedef enum weft_opcode {
#define WEFT_OP_ENUM(name, value, text) WEFT_OP_##name = (value),
    WEFT_OP_LIST(WEFT_OP_ENUM)
#undef WEFT_OP_ENUM
        WEFT_OP_COUNT = 14
} weft_opcode;

WEFT_API const char *weft_op_name(uint32_t op); /* "linear"; "?" for an unknown one */

typedef struct weft_shape {
    int32_t n_dims;
    int32_t reserved;
    int64_t d[4]; /* d[0] contiguous; a dimension is > 0, WEFT_ROWS or WEFT_WANTED */
} weft_shape;

#define WEFT_NAME_MAX 64

/* A constant matrix or vector. Matrices are [k, n] or, for experts, [k, n, e]: d[0] = k contiguous, row r starts at
 * offset + r * row_bytes. A row range of a file's tensor is a weight of its own (fused qkv is three weights). */
typedef struct weft_weight {
    char name[WEFT_NAME_MAX]; /* the file's tensor name; for messages, and for adapters to find it */
    uint32_t dtype;           /* weft_dtype */
    uint32_t reserved;
    weft_shape shape;
    const weft_buffer *buffer; /* borrowed from the model; outlives the graph and its programs */
    uint64_t offset;           /* bytes from the buffer's start; any alignment */
    uint64_t row_bytes;
} weft_weight;

typedef struct weft_tensor {
    char name[WEFT_NAME_MAX]; /* "blk.3.attn_q"; for messages and profiles */
    weft_shape shape;         /* d[1] is WEFT_ROWS or WEFT_WANTED; an order token has d[0] == 0 */
} weft_tensor;

enum weft_norm_kind { WEFT_NORM_RMS = 0, WEFT_NORM_LAYER = 1 };
enum weft_rope_style { WEFT_ROPE_ADJACENT = 0 /* pairs (2i, 2i+1) */, WEFT_ROPE_HALVES = 1 /* pairs (i, i+n_rot/2) */ };
enum weft_activation { WEFT_ACT_NONE = 0, WEFT_ACT_SILU = 1, WEFT_ACT_GELU_TANH = 2, WEFT_ACT_GELU_ERF = 3 };
enum weft_moe_gate { WEFT_MOE_SOFTMAX = 0, WEFT_MOE_SIGMOID = 1 };

typedef struct weft_attr_embed {
    float scale; /* 1 for most */
} weft_attr_embed;

/* RMS: y = x / sqrt(mean(x²) + eps) * w (Zhang and Sennrich 2019). LAYER: also subtracts the mean and adds w[1]. */
typedef struct weft_attr_norm {
    int32_t kind;  /* weft_norm_kind */
    int32_t group; /* elements normalised together: the row (0), or each head's K */
    float eps;
} weft_attr_norm;

#define WEFT_LINEAR_MAX 3
/* y_i = act-epilogue(M_i · norm(x) + b_i). Unfused: n_mat 1, norm_weight WEFT_NONE, activation NONE, residual
 * WEFT_NONE. n_mat > 1: w[0..n_mat) share the input, one output each. activation != NONE: two matrices (gate, up), one
 * output act(gate) * up. residual: index into in[] of a tensor added to output 0. */
typedef struct weft_attr_linear {
    int32_t n_mat;
    weft_weight_id bias[WEFT_LINEAR_MAX]; /* [N] or WEFT_NONE */
    weft_weight_id norm_weight;           /* norm before the product: RMS over the row, or WEFT_NONE */
    float norm_eps;
    int32_t activation; /* weft_activation */
    int32_t residual;
} weft_attr_linear;

/* Rotary position embedding (Su et al. 2021). theta_i = pos * freq_scale * base^(-2i/n_rot) / factor_i; with ext_factor
 * != 0 YaRN (Peng et al. 2023) mixes interpolated and original frequencies between beta_fast and beta_slow. */
typedef struct weft_attr_rope {
    int32_t n_heads, head_dim, n_rot;
    int32_t style; /* weft_rope_style */
    float base, freq_scale;
    float ext_factor, attn_factor, beta_fast, beta_slow;
    int32_t n_ctx_orig;
} weft_attr_rope;

typedef struct weft_attr_kv {
    int32_t group; /* index into the graph's kv_groups */
    int32_t layer; /* index within the group */
} weft_attr_kv;

/* Row r at position p sees positions max(0, p - window + 1) .. p of its sequence (window 0: all). Scores are q·k *
 * scale (positive), with softcap != 0 then cap * tanh(s / cap). */
typedef struct weft_attr_attention {
    weft_attr_kv kv;
    int32_t n_heads, n_kv_heads, head_dim_k, head_dim_v;
    float scale, softcap;
    int32_t window;
} weft_attr_attention;

typedef struct weft_attr_moe {
    int32_t n_experts, n_used;
    int32_t gate;       /* weft_moe_gate */
    int32_t normalize;  /* divide the chosen weights by their sum */
    float scale;        /* multiplies the chosen weights; 1 for most */
    int32_t activation; /* of the experts */
} weft_attr_moe;

typedef struct weft_attr_rope_kv {
    weft_attr_rope q, k; /* they differ in n_heads only */
    weft_attr_kv kv;
} weft_attr_rope_kv;

typedef union weft_attr {
    weft_attr_embed embed;
    weft_attr_norm norm;
    weft_attr_linear linear;
    weft_attr_rope rope;
    weft_attr_kv kv;
    weft_attr_attention attention;
    struct {
        int32_t activation;
    } glu;
    struct {
        float cap;
    } softcap;
    weft_attr_moe moe;
    weft_attr_rope_kv rope_kv;
    uint8_t bytes[128];
} weft_attr;

#define WEFT_NODE_IN 4
#define WEFT_NODE_OUT 4
#define WEFT_NODE_W 4

typedef struct weft_node {
    uint32_t op; /* weft_opcode */
    int32_t n_in, n_out, n_w;
    weft_tensor_id in[WEFT_NODE_IN];
    weft_tensor_id out[WEFT_NODE_OUT];
    weft_weight_id w[WEFT_NODE_W]; /* WEFT_NONE where an optional weight is absent */
    int32_t layer;                 /* for messages and profiles; -1 outside layers */
    uint32_t flags;                /* bits of weft_node_flag; the planner's */
    weft_attr attr;
} weft_node;

/* IF_WANTED: in a step of which no row has WEFT_WANT_OUTPUTS, those with WEFT_WANT_LOGITS are the only ones
 * of use in its outputs, [..,R], and a provider may leave the others as they are: most of a prompt's last layer is
 * there for its last row alone. */
enum weft_node_flag { WEFT_NODE_IF_WANTED = 1u << 0 };

/* What a page of state holds. Kinds to come: compressed latents, snapshots of recurrent state. */
enum weft_kv_kind { WEFT_KV_FULL = 0, WEFT_KV_WINDOW = 1 };

/* Layers that share one kind of page, and so one block table per sequence. A page holds page_tokens consecutive
 * positions of all n_layers: per layer the keys [G][page_tokens * head_dim_k], then the values [G][page_tokens *
 * head_dim_v], each in its format (weft_kv_part_bytes). The order inside the last bracket is the provider's own; the
 * bytes are not. */
typedef struct weft_kv_group {
    int32_t kind; /* weft_kv_kind */
    int32_t window;
    int32_t n_layers;
    int32_t n_kv_heads, head_dim_k, head_dim_v;
    int32_t page_tokens; /* power of two */
    int32_t reserved;
    uint64_t reserved_for_kinds[4]; /* 0: what kinds to come have instead of heads */
} weft_kv_group;

/* Elements of one layer's part of a page. */
static inline uint64_t weft_kv_layer_elems(const weft_kv_group *g)
{
    return (uint64_t)g->page_tokens * (uint64_t)g->n_kv_heads * ((uint64_t)g->head_dim_k + (uint64_t)g->head_dim_v);
}

/* A page, in elements. */
static inline uint64_t weft_kv_page_elems(const weft_kv_group *g)
{
    return weft_kv_layer_elems(g) * (uint64_t)g->n_layers;
}

/* Of which format keys (values: 0) or values (1) of a group's layer are, where its pages are of this type
 * (weft_kv_format). */
static inline uint32_t weft_kv_format_of(uint32_t type, const weft_kv_group *g, int32_t layer, int values)
{
    const uint32_t of_values = type >> 8 & 255;
    if (layer < (int32_t)(type >> 16 & 255) || layer >= g->n_layers - (int32_t)(type >> 24)) return WEFT_F16;
    return values && of_values ? of_values - 1 : type & 255;
}

/* The most elements of a head in coded pages: so many products of a key's codes with a query's add up to what 32 bits
 * hold. */
enum { WEFT_KV_CODED_MAX = 1024 };

/* Is it one of whole numbers, whose rows are rotated? */
static inline int weft_kv_is_rotated(uint32_t format)
{
    return format == WEFT_KV_Q8 || format == WEFT_KV_Q4;
}

/* Is it one with an encoder of its own? The others are WEFT_F16 and WEFT_F32. */
static inline int weft_kv_is_coded(uint32_t format)
{
    return weft_kv_is_rotated(format) || format == WEFT_BF16 || format == WEFT_KV_F8;
}

/* Is it the number of a type, with known formats? */
static inline int weft_kv_is_type(uint32_t type)
{
    const uint32_t k = type & 255, v = type >> 8 & 255;
    return (k == WEFT_F16 || k == WEFT_F32 || weft_kv_is_coded(k)) &&
           (v == 0 || v == WEFT_F16 + 1 || v == WEFT_F32 + 1 || weft_kv_is_coded(v - 1));
}

/* Do these heads fit into pages of this type? */
static inline int weft_kv_fits(uint32_t type, const weft_kv_group *g)
{
    return (type & 0xFFFF) == WEFT_F16 || (type & 0xFFFF) == WEFT_F32 ||
           (g->head_dim_k <= WEFT_KV_CODED_MAX && g->head_dim_v <= WEFT_KV_CODED_MAX);
}

/* Bytes of one head's keys or values in a page of one layer. Elements of q8 and q4 stand together in fours, eights and
 * sixteens, and the last are filled up. */
static inline uint64_t weft_kv_part_bytes(uint32_t format, const weft_kv_group *g, int values)
{
    const uint64_t t = (uint64_t)g->page_tokens, dim = (uint64_t)(values ? g->head_dim_v : g->head_dim_k);
    switch (format) {
    case WEFT_KV_Q8: return t * ((values ? dim : (dim + 3) / 4 * 4) + 4);
    case WEFT_KV_Q4: return t * ((values ? (dim + 15) / 16 * 8 : (dim + 7) / 8 * 4) + (dim + 31) / 32 * 2);
    case WEFT_KV_F8: return t * dim;
    case WEFT_F32: return t * dim * 4;
    default: return t * dim * 2;
    }
}

/* Bytes of one layer. */
static inline uint64_t weft_kv_layer_bytes(uint32_t type, const weft_kv_group *g, int32_t layer)
{
    return (uint64_t)g->n_kv_heads * (weft_kv_part_bytes(weft_kv_format_of(type, g, layer, 0), g, 0) +
                                      weft_kv_part_bytes(weft_kv_format_of(type, g, layer, 1), g, 1));
}

/* Where layer `layer` begins in a page, in bytes; n_layers: how long a page is. */
static inline uint64_t weft_kv_layer_at(uint32_t type, const weft_kv_group *g, int32_t layer)
{
    const int32_t first = (int32_t)(type >> 16 & 255), behind = layer - (g->n_layers - (int32_t)(type >> 24));
    int32_t plain = layer < first ? layer : first; /* layers before it that are in F16 all the same */
    if (behind > 0) plain = layer < first + behind ? layer : first + behind;
    return (uint64_t)plain * weft_kv_layer_bytes(WEFT_F16, g, 0) +
           (uint64_t)(layer - plain) * weft_kv_layer_bytes(type & 0xFFFF, g, 0);
}

/* An immutable DAG. Its arrays belong to its builder (src/graph). */
typedef struct weft_graph {
    uint32_t size; /* sizeof(weft_graph) */
    int32_t n_nodes, n_tensors, n_weights, n_kv_groups, n_outputs;
    const weft_node *nodes; /* in an executable order once planned */
    const weft_tensor *tensors;
    const weft_weight *weights;
    const weft_kv_group *kv_groups;
    const weft_tensor_id *outputs; /* tensors that the caller reads: logits first */
} weft_graph;

/* What is wanted of a row: its row of outputs [..,W]; its row of outputs [..,R], which without it may hold anything. */
enum weft_want { WEFT_WANT_LOGITS = 1u << 0, WEFT_WANT_OUTPUTS = 1u << 1 };

/* A sequence as a step sees it. Borrowed. */
typedef struct weft_seq_view {
    /* [n_kv_groups] block tables: pages[g][i] is the page of positions i*page_tokens..; -1: dropped */
    const int32_t *const *pages;
    const int32_t *n_pages; /* [n_kv_groups] */
    /* NULL; reserved for trees of rows, two of which may have one position: which rows of the step each one sees, and
     * where in the pages each one's keys and values go. */
    const void *tree_mask;
    const int32_t *tree_slots;
} weft_seq_view;

/* What an adapter changes about one weight [k, n] (of E experts): a product becomes gain . (W x) + scale * B (A x),
 * then the bias; the row of an embedding becomes gain . row + scale * (row `token` of B) A. rank 0 and no gain:
 * unchanged. */
typedef struct weft_lora {
    const void *a, *b; /* [E, rank, k] and [E, n, rank] */
    int32_t rank;
    uint32_t dtype; /* WEFT_F32 */
    float scale;
    int32_t reserved;
    /* [E, n], of an embedding [k], which is no other node's then; or NULL: ones */
    const float *gain;
} weft_lora;

/* The largest rank of a weft_lora: steps have room for so many values of A x. */
#define WEFT_ADAPTER_RANK_MAX 1024

/* An adapter in the form in which a program reads it (weft_backend_api.adapter_new), or, in a step that a plan runs, a
 * plan. */
typedef struct weft_adapter weft_adapter;

/* A step. Rows of one sequence are contiguous and in order of position. Borrowed for the duration of the step. */
typedef struct weft_rows {
    uint32_t size; /* sizeof(weft_rows) */
    int32_t n_rows, n_wanted, n_seqs, n_adapters;
    const int32_t *token, *pos, *seq; /* each [n_rows]; seq indexes seqs */
    const int32_t *adapter;           /* [n_rows], -1 none; NULL: none at all */
    const float *embd;   /* [n_rows, D] or NULL: rows with token -1 (all, when token is NULL) enter as these */
    const uint8_t *want; /* [n_rows] bits of weft_want; n_wanted rows have WEFT_WANT_LOGITS. NULL: none has any */
    const weft_seq_view *seqs;
    weft_adapter *const *adapters; /* [n_adapters], at most max_rows; NULL: it changes nothing */
    /* From ABI 2.3, for providers with WEFT_FEATURE_POOLS: [n_seqs] in which of n_pools pools a sequence has its pages,
     * from 0 on. Pages of one pool are of one type. NULL: all are in one. */
    const int32_t *pool;
    int32_t n_pools, reserved;
} weft_rows;

/* Has row r this bit of weft_want? */
static inline int weft_row_wants(const weft_rows *rows, int32_t r, unsigned what)
{
    return rows->want && (rows->want[r] & what) != 0;
}

/* Has a row of the step WEFT_WANT_OUTPUTS? */
static inline int weft_rows_want_outputs(const weft_rows *rows)
{
    int32_t r = 0;
    while (r < rows->n_rows && !weft_row_wants(rows, r, WEFT_WANT_OUTPUTS)) r++;
    return r < rows->n_rows;
}

/* The pages of one group: page p begins at data + p * page_bytes. */
typedef struct weft_kv_binding {
    void *data;
    uint64_t page_bytes;
    uint32_t dtype; /* of which type (weft_kv_format) */
    int32_t n_pages;
    const weft_buffer *buffer; /* NULL; reserved for memory of a device, from byte `offset` of it on */
    uint64_t offset;
} weft_kv_binding;

/* Where a tensor that crosses a segment's border lives: [rows, d[0]] floats. */
typedef struct weft_tensor_binding {
    weft_tensor_id tensor;
    int32_t reserved;
    float *data;
    const weft_buffer *buffer; /* NULL; reserved as in weft_kv_binding */
    uint64_t offset;
} weft_tensor_binding;

typedef struct weft_bindings {
    uint32_t size; /* sizeof(weft_bindings) */
    int32_t n_kv, n_tensors;
    const weft_kv_binding *kv; /* [n_kv]: of pool p, group g is kv[p * n_kv_groups + g] */
    const weft_tensor_binding *tensors;
} weft_bindings;

WEFT_STATIC_ASSERT(sizeof(weft_shape) == 40, "plugin ABI: weft_shape");
WEFT_STATIC_ASSERT(sizeof(weft_attr) == 128, "plugin ABI: weft_attr");
WEFT_STATIC_ASSERT(sizeof(weft_node) == 200, "plugin ABI: weft_node");
WEFT_STATIC_ASSERT(sizeof(weft_tensor) == 104, "plugin ABI: weft_tensor");
WEFT_STATIC_ASSERT(sizeof(weft_kv_group) == 64, "plugin ABI: weft_kv_group");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_weight) == 136, "plugin ABI: weft_weight");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_graph) == 64, "plugin ABI: weft_graph");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_lora) == 40, "plugin ABI: weft_lora");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_rows) == 104, "plugin ABI: weft_rows");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_bindings) == 32, "plugin ABI: weft_bindings");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_seq_view) == 32, "plugin ABI: weft_seq_view");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_kv_binding) == 40, "plugin ABI: weft_kv_binding");
WEFT_STATIC_ASSERT(sizeof(void *) != 8 || sizeof(weft_tensor_binding) == 32, "plugin ABI: weft_tensor_binding");

#ifdef __cplusplus
}
#endif
#endif
