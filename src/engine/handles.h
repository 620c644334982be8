// SPDX-License-Identifier: Apache-2.0
/* handles.h: what stands behind the opaque handles of weft.h; for the files of this room. */
#ifndef WEFT_ENGINE_HANDLES_H
#define WEFT_ENGINE_HANDLES_H

#include <pthread.h>
#include <stdatomic.h>

#include "adapt/adapt.h"
#include "backend/registry.h"
#include "draft/draft.h"
#include "format/gguf.h"
#include "format/plan_file.h"
#include "graph/batch.h"
#include "graph/graph.h"
#include "kv/kv.h"
#include "model/build.h"
#include "model/hf.h"
#include "model/synthetic.h"
#include "base/params.h"
#include "text/grammar/token_trie.h"
#include "text/tokenizer/tokenizer.h"
#include "weft/weft.h"

struct weft_file {
    /* What the file is: gguf or hf is set, never both; plan only beside gguf. */
    weft__gguf *gguf;
    weft__hf *hf;          /* a Hugging Face folder */
    weft__plan_file *plan; /* a compiled plan, which then owns gguf: its metadata, without tensors */
    char *path;
};

/* file.c: the tensors, and the bytes of all as they are outside a plan. */
const weft__tensor_set *weft__engine_file_tensors(const weft_file *f);
uint64_t weft__engine_file_bytes(const weft_file *f);

struct weft_tokenizer {
    weft__tok *t;
    _Atomic(weft__gram_trie *) trie; /* made for the first grammar */
};

struct weft_model {
    /* Exactly one of these two holds the weights. */
    weft_file *file;
    weft__synthetic *synthetic;
    weft__source source;
    weft_tokenizer *tokenizer; /* NULL where there is none */
    weft__hparams hp;
    weft_graph *graph;
    weft__provider *provider, *plugin; /* the CPU; one beside it, or NULL */
    weft__plan *plan;
    char *plan_text; /* made when first asked */
    int32_t max_rows, max_wanted;
    int outline;           /* nothing is packed: no steps */
    int has_old_plan;      /* its file is a plan with another layout than this program's: it was refused for that */
    weft__adapt_base base; /* the matrices that adapters change */
    weft_model_info info;
    uint64_t held; /* bytes of weights in memory, of an outline those that there would be */
    /* A record of steps, or NULL: made by the first weft_model_profile_start. Held while `profiled` is set and a step
     * runs, so that steps then follow each other; otherwise steps of one model need nothing of each other. */
    pthread_mutex_t profiling;
    weft__profile *profile;
    atomic_int profiled;
    struct {
        pthread_mutex_t lock;
        int known, is_tried;
        double shape[WEFT__DRAFT_ROWS + 1]; /* known: as weft__draft_measure has it */
    } rows;                                 /* rows.c */
};

/* What steps of a session group or an engine are made of, and what they write. */
typedef struct weft__engine_steps {
    weft__graph_batch batch;
    weft__plan_state *state;
} weft__engine_steps;

/* model.c: for steps of up to the model's rows. WEFT_NO_MEMORY, and then *s is as after free. */
weft_status weft__engine_steps_init(const weft_model *m, weft__engine_steps *s, weft_error *err);
/* Zeroed ones may be freed, too. */
void weft__engine_steps_free(weft__engine_steps *s);
/* model.c: one step of the model, of the rows in s->batch, whose hidden rows, before the final norm, go to
 * s->batch.hidden. logits [n_wanted, V] may be NULL when none are wanted. Any thread, each with steps and pages of its
 * own. */
weft_status weft__engine_step(weft_model *m, weft__engine_steps *s, const weft_kv_binding *kv, float *logits,
                              weft_error *err);

/* rows.c: what is known of the costs of the model's steps before any was seen. With the first call that has steps,
 * which nothing else uses meanwhile, rows are timed on this machine, which takes about a tenth of a second, half of one
 * at most; later ones get what was found. steps NULL, or where they cannot be timed: what is known, or else assumed.
 * Any thread. */
void weft__engine_cost_begin(weft__draft_cost *c, weft_model *m, weft__engine_steps *steps);

/* shift.c: the rule of what stays of n tokens where a context of n_most is full: the first n_keep, and of the others
 * the last (n_most - n_keep) / 2, one at least. It depends on numbers of tokens alone. Moves them together, and returns
 * how many there are then. n >= n_most > n_keep. */
int32_t weft__engine_shift(int32_t *tokens, int32_t n, int32_t n_most, int32_t n_keep);
/* The number of first tokens that was asked for, or is usual (0); WEFT_ARGUMENT where that is more than half of the
 * context, whose rest would hardly be one. */
weft_status weft__engine_shift_keep(int32_t asked, int32_t n_most, int32_t *n_keep, weft_error *err);

/* What a group of sessions shares: the pages, and its steps; freed with the last of them. */
struct weft__engine_shared_pool {
    weft__kv_pool *pool;
    weft__engine_steps steps;
    int32_t n_sessions;
    uint64_t n_steps; /* of the group, begun so far */
};

struct weft_session {
    weft_model *model;
    struct weft__engine_shared_pool *shared;
    weft__kv_seq *seq;
    int32_t n_ctx, chunk;
    int32_t *tokens;       /* [n_ctx], of which those that it holds are known */
    weft_adapter *adapter; /* NULL: none */
    char adapters[256];    /* "adapter x", or "adapters x, y", as far as there is room; "": none */
    uint64_t group_step;   /* the latest it takes part in, counted by shared->n_steps */
    struct {               /* weft_generate's; history NULL: it was not asked to guess */
        weft__draft_history *history;
        weft_model *small; /* NULL: there is no draft model */
        struct weft__engine_drafter *model;
        struct weft__engine_drafter_text *text;
        int has_costs; /* they were measured, if they can be */
        int always;    /* for tests: what is guessed is tried, whatever it costs */
        weft__draft_trust trust;
        weft__draft_cost cost;
    } draft;
    atomic_int cancelled;
};

/* An adapter's names in the folder of its base, by the base's metadata. */
typedef struct weft__engine_base_names {
    weft__adapt_names names; /* its arg is this struct */
    weft__hparams hp;
} weft__engine_base_names;

struct weft_adapter_file {
    weft__adapt *a;
    weft__adapt_lost *lost; /* [n_pairs] of one that was compressed, or NULL */
};

/* adapter.c: src outlives nothing. out must stay where it is. */
weft_status weft__engine_base_names_read(const weft__source *src, weft__engine_base_names *out, weft_error *err);
/* adapter.c: after a token could not be picked from logits [V] (st and what say so), or `logits` NULL: a step's values
 * are of no use. Where they are NaN, the adapters that were computed with (names: "adapter x"; "": none) are told with
 * the remedy, since without them it would hardly be so. */
weft_status weft__engine_explain_adapters(weft_status st, const char *names, const char *what, const float *logits,
                                          int32_t n_vocab, weft_error *err);
/* adapter.c: fills m->base; m->graph and m->source are set. */
weft_status weft__engine_model_base(weft_model *m, weft_error *err);
/* model.c: WEFT_LIMIT, which names both numbers, when n_ctx is more than the model was trained for or its rope scaling
 * reaches. */
weft_status weft__engine_model_context(const weft_model *m, int32_t n_ctx, weft_error *err);
/* file.c: a file as a source; it outlives the source. Tensors of a folder have no bytes yet. */
void weft__engine_file_source(const weft_file *f, weft__source *out);

/* bytes.c: what the weights take: packed, and those beside them that are not packed, or not the file's. Of the file's
 * own pages those count that steps read. Where a plugin does not tell, all that the file has. */
uint64_t weft__engine_weights_bytes(const weft_model *m);
/* bytes.c: pages of the file that were only read to be packed leave memory; the others come again when they are read.
 * Nothing of a compiled plan. */
void weft__engine_model_drop_file(const weft_model *m);

/* model.c: the packed weights of a model that was opened from a plan, else NULL. */
const weft_image *weft__engine_model_image(const weft_model *m);
/* plan.c: a plan as a source; label and plan outlive it. */
void weft__engine_plan_source(const weft__plan_file *plan, const char *label, weft__source *out);
/* plan.c: a checksum of the graph's weights: names, types, shapes, places in their tensors. */
uint64_t weft__engine_weights_hash(const weft_graph *graph, const weft__source *src);
/* plan.c: refuses a plan that is not one of this graph for this provider. */
weft_status weft__engine_plan_for(const weft__plan_file *plan, const weft_graph *graph, const weft__source *src,
                                  const char *provider, weft_error *err);
/* plan_renew.c: compiles the plan at that path again in its place, of the model that it names, and logs it. *err has
 * why the plan was refused, and stays where it cannot be made again, with what is missing; the same status then.
 * WEFT_CANCELLED; and as weft_plan_write fails. */
weft_status weft__engine_plan_renew(const char *path, const weft_model_params *p, weft_error *err);
/* What a plan of the model at that place says of it: all but pre_tokenizer and keep_weights. path: where its path is
 * to stand. 0: it cannot be told. */
int weft__engine_plan_origin(const char *model, char *path, size_t room, weft__plan_file_origin *out);

#endif
