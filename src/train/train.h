// SPDX-License-Identifier: Apache-2.0
/* train.h: a model that learns: gradients over packed batches, an optimizer, checkpoints that resume bit for bit.
 *
 * A trainer walks the same graph that the engine runs (src/model), op by op, forward and back, so every dense
 * architecture learns without code of its own; mixtures of experts are refused. The base may have any format; it is
 * decoded as it is multiplied (product.h). Either LoRA pairs on frozen matrices learn (Hu et al. 2021), or all weights,
 * in f32. Letters: R rows (tokens) of a batch, V vocabulary, N outputs and K inputs of a matrix, r rank.
 *
 * Usage: create; then for every step weft__trainer_add (or _learn) once or more, each adding to the gradients, and
 * weft__trainer_step. Gradients are divided by the weight (without signs) of all rows added since the last step, so
 * accumulating batches gives what one large batch would. Invariant ("same answer, always"): every number depends on the
 * options, the weights and the batches, never on the number of threads: bit for bit; tiers of kernels round sums
 * differently. Thread safety: a trainer is used by one thread at a time. Errors name the thing and the remedy. */
#ifndef WEFT_TRAIN_TRAIN_H
#define WEFT_TRAIN_TRAIN_H

#include "adapt/adapt.h"
#include "format/gguf.h"
#include "model/source.h"

typedef struct weft__trainer weft__trainer;

enum weft__train_optimizer { WEFT__TRAIN_ADAMW = 0, WEFT__TRAIN_SGD = 1, WEFT__TRAIN_MUON = 2 };
enum weft__train_schedule {
    WEFT__TRAIN_LR_CONSTANT = 0, /* warm-up, then lr */
    WEFT__TRAIN_LR_COSINE =
        1, /* warm-up, then half a cosine down to lr * lr_floor at step n_steps (Loshchilov and Hutter 2017) */
    /* half a cosine up from lr/25 over the first 30 % (1 step at least), half a cosine down to lr/10^4 (Smith 2018);
     * no warm-up */
    WEFT__TRAIN_LR_ONE_CYCLE = 2
};

typedef struct weft__train_options {
    int32_t n_threads; /* 0: one per core */
    int32_t max_rows;  /* most rows of a batch, 1..65536: memory grows with it */
    int32_t n_ctx; /* longest segment; 0: the model's context or max_rows, whichever is less. Chooses rope factors */
    /* LoRA; rank 0: all weights learn. y += lora_scale * B (A x), lora_scale = alpha / rank, or alpha / sqrt(rank)
     * where rs is set. */
    int32_t lora_rank; /* 1..1024 */
    float lora_alpha;
    int lora_rs;
    /* Which matrices, by the part of their name between "blk.N." and ".weight", separated by commas; "output" is the
     * output matrix. Behind one may stand the layers it is meant of, "ffn_down@20-29" or "ffn_down@7"; "@20-29" alone
     * means all linear layers there. NULL: all linear layers inside the blocks. One that no tensor has is an error. */
    const char *lora_targets;
    /* rows of the output matrix at a time; 0: as many as make 2^23 logits, 16 at least. What is learned is the same
     * but for rounding */
    int32_t head_rows;
    /* keep only what layers hand to each other, and run a layer's forward again on the way back: less memory, a
     * third slower */
    int recompute;
    /* Products with frozen matrices are never rounded. Else, where the processor has units for them, forward they are
     * what serving computes (activations in 8 bits, for quantized matrices), and back both factors are rounded to
     * BF16: more than twice as fast, and gradients differ by what such rounding makes. */
    int exact;
    uint64_t seed;           /* of A, which is uniform in +-sqrt(3/K) (Kaiming); B is zero */
    int32_t optimizer;       /* weft__train_optimizer */
    float lr;                /* the schedule's highest */
    int32_t schedule;        /* weft__train_schedule */
    int64_t n_warmup;        /* steps of linear rise */
    int64_t n_steps;         /* that will be made; needed by schedules that end */
    float lr_floor;          /* of COSINE, as a share of lr */
    float beta1, beta2, eps; /* AdamW (Loshchilov and Hutter 2019) */
    float momentum;          /* SGD, Muon */
    float weight_decay;      /* decoupled, times the learning rate; vectors (norms, biases) are not decayed */
    float l2_sp;             /* decoupled, times the learning rate, to where a parameter began; 0: none */
    float ewc;               /* LoRA: of the penalty that holds B A to where it began (weft__trainer_show); 0: none */
    float norm_cap;          /* LoRA: ||scale B A|| at most so many times ||W||, of each matrix; 0: any */
    float clip_norm;         /* of all gradients together; 0: none */
    int (*stop)(
        /* NULL, or asked before each op of a batch, by the thread that uses the trainer: non-zero ends the call */
        void *arg);
    void *stop_arg;
} weft__train_options;

/* AdamW, lr 1e-3, betas 0.9 and 0.95, eps 1e-8, decay 0.01, clipping at 1, cosine to 0.1, LoRA rank 0, max_rows 512. */
void weft__train_options_default(weft__train_options *o);

/* `src` gives hyperparameters and weights (a GGUF file, a folder, a synthetic or a fresh model); it is borrowed and
 * outlives the trainer, whose frozen weights stay there. Fails with WEFT_UNSUPPORTED (experts, a tensor type),
 * WEFT_ARGUMENT (an option), WEFT_FORMAT (the model), WEFT_NO_MEMORY. */
weft_status weft__trainer_create(const weft__source *src, const weft__train_options *options, weft__trainer **out,
                                 weft_error *err);
void weft__trainer_destroy(weft__trainer **t);

/* A distribution that a row's should come to have: probabilities of n tokens, which add up to 1 (those of a larger
 * model's likeliest, say); all others have none. */
typedef struct weft__train_top {
    const int32_t *token; /* [n] */
    const float *p;       /* [n] >= 0 */
    int32_t n;            /* 0: none */
    float weight;         /* of KL(top || this) in the loss, >= 0 */
} weft__train_top;

/* Packed rows. Rows with the same number in `segment` stand side by side and are one text, of which positions count
 * from 0: a row sees the rows of its segment up to itself (and within the layer's window). Borrowed during the call. */
typedef struct weft__train_batch {
    int32_t n_rows;         /* 1..max_rows */
    const int32_t *token;   /* [R] */
    const int32_t *segment; /* [R], rising from 0 in steps of 1 */
    /* [R] the token that should follow; -1: this row is not learned from (prompts, ends of texts, padding) */
    const int32_t *target;
    /* [R], or NULL: 1 for each row with a target. Below 0: the target is to become less likely (likelihood alone) */
    const float *weight;
    const weft__train_top *top; /* [R], or NULL: none; of rows with a target */
    const float *advantage;     /* [R] of policies */
    const float *old_logp;      /* [R] log p of the target when it was sampled; NAN, or NULL: as it is now */
    /* What the batch adds to that by which a step divides; 0: the sum of |weight|, of rows with an anchor alone 1; or
     * the number of pairs */
    double count;
    /* [segments] of contrasts: which record a text is of, rising from 0 in steps of 1. The first text of a record is
     * its query, the second what belongs to it, and all others what does not (hard negatives) */
    const int32_t *group;
    /* [R], or NULL. Where it is not 0, what is found likeliest behind a row is drawn from the model's distribution by
     * it instead, at this temperature (0: 1): of the same key and logits the same */
    const uint64_t *draw;
    float temperature;
} weft__train_batch;

enum weft__loss_number {
    WEFT__LOSS_LIKELIHOOD = 0,
    WEFT__LOSS_POLICY = 1,
    WEFT__LOSS_PREFERENCE = 2,
    WEFT__LOSS_CONTRAST = 3
};

/* What is minimised (loss.h has the formulas). */
typedef struct weft__train_objective {
    int32_t kind; /* weft__loss_number */
    /* preference: how near to the base; policy: weight of KL(this || base); contrast: the temperature */
    float beta;
    float smoothing;           /* preference: share of the labels that are taken to be wrong */
    float chosen;              /* preference: weight of the chosen answer's own likelihood */
    float clip_low, clip_high; /* policy */
    float anchor; /* weight of KL(base || this) over the whole vocabulary, on every row with a target; 0: none */
} weft__train_objective;

typedef struct weft__train_loss {
    double loss;       /* sum over rows, or pairs; of likelihood, of weight * -log p(target), natural logarithm */
    double weight;     /* what a step divides by: loss / weight is the mean */
    double anchor;     /* of `loss`, the part of KL(base || this) */
    double apart;      /* sum of |log p - old_logp| over the rows that have one; n_apart of them */
    int64_t n_rows;    /* all rows */
    int64_t n_targets; /* rows with a target */
    int64_t n_apart;
    double flops; /* multiplications and additions of the products that were needed (recomputation not counted) */
    /* Pairs. margin: sum of (log p / p_ref of the chosen) - (log p / p_ref of the rejected); chosen and rejected: sums
     * of the answers' log p */
    int64_t n_pairs, n_better; /* better: a margin above 0 */
    /* (contrasts: of records; a margin is what the cosine of the right text is more than that of the next best) */
    double margin, chosen, rejected;
} weft__train_loss;

/* Adds the gradient of the batch's loss. *out (may be NULL) is filled, not added to. A batch without a target adds
 * nothing. WEFT_ARGUMENT names the row, or the number of the objective, that is out of range; WEFT_STATE: the objective
 * looks at the frozen base, and all weights learn, or pairs and rows in one step; WEFT_LIMIT: a loss that is not
 * finite: what was added since the last step is dropped; WEFT_CANCELLED, of this and the two below: `stop` said so, and
 * of what adds the same was dropped. */
weft_status weft__trainer_learn(weft__trainer *t, const weft__train_objective *o, const weft__train_batch *batch,
                                weft__train_loss *out, weft_error *err);
/* Likelihood's. */
weft_status weft__trainer_add(weft__trainer *t, const weft__train_batch *batch, weft__train_loss *out, weft_error *err);
/* The loss alone. */
weft_status weft__trainer_measure(weft__trainer *t, const weft__train_objective *o, const weft__train_batch *batch,
                                  weft__train_loss *out, weft_error *err);

/* Likelihood's alone; for LoRA, `with_adapter` 0 gives that of the frozen base. logp (may be NULL) [R] receives log
 * p(target), 0 where there is none. */
weft_status weft__trainer_loss(weft__trainer *t, const weft__train_batch *batch, int with_adapter, float *logp,
                               weft__train_loss *out, weft_error *err);

/* Of the batch that weft__trainer_loss (or _learn) had last: the token that is likeliest behind each row with a target,
 * -1 for the others: out [R]. The answers that greedy decoding gives are those whose every token is the likeliest. */
void weft__trainer_likeliest(const weft__trainer *t, int32_t *out);
/* log p(target) of the same batch; 0 where there is none. */
void weft__trainer_logp(const weft__trainer *t, float *out);

typedef struct weft__train_step {
    int64_t step;     /* steps made, this one included */
    double grad_norm; /* before clipping */
    double lr;
} weft__train_step;

/* Clips, moves the parameters, and clears the gradients. WEFT_STATE when nothing was added; WEFT_LIMIT when a gradient
 * is not finite: nothing is moved, gradients are cleared, the step does not count, and training may go on with other
 * data. */
weft_status weft__trainer_step(weft__trainer *t, weft__train_step *out, weft_error *err);
int64_t weft__trainer_steps(const weft__trainer *t);
/* The learning rate of step `step` (1 is the first). */
double weft__train_lr(const weft__train_options *o, int64_t step);

typedef struct weft__trainer_info {
    char arch[64];
    int32_t n_vocab, n_ctx, n_layers, n_threads;
    int32_t max_rows;  /* of a batch */
    uint64_t n_params; /* that learn */
    uint64_t n_frozen; /* elements of frozen weights */
    uint64_t n_bytes;  /* memory of the trainer, without frozen weights */
} weft__trainer_info;
void weft__trainer_describe(const weft__trainer *t, weft__trainer_info *out);

/* 10^9 multiplications and additions per second that the trainer's threads reach together on registers, of f32 or,
 * where products are rounded to it, of BF16, measured for `ms` ms: the limit that flops / time is held against. */
double weft__trainer_peak(weft__trainer *t, int ms);

/* ---- what learns ---- */

typedef struct weft__train_param {
    /* the file's tensor name; of LoRA with .lora_a or .lora_b behind it, as adapters in GGUF have it */
    const char *name;
    uint32_t n_dims;
    uint64_t d[2]; /* d[0] contiguous: A is [K, r], B is [r, N] */
    const float *data;
    const float *gradient; /* of the sum that was added so far */
} weft__train_param;
size_t weft__trainer_n_params(const weft__trainer *t);
weft__train_param weft__trainer_param(const weft__trainer *t, size_t i);
/* Puts other values there: all d[0] * d[1] of them. Before the first step they are where the parameter began, too. */
void weft__trainer_set_param(weft__trainer *t, size_t i, const float *values);

/* Begins with another adapter of the same model, of a rank that is no larger than the trainer's: where it is smaller,
 * the rest of B is zero, so that what it computes is the same; losses that look at the base look at it from then on.
 * Before the first step. WEFT_ARGUMENT: another model, a
 * larger rank, or a matrix that is no target; WEFT_UNSUPPORTED: it changes the embedding, experts, or norms (DoRA);
 * WEFT_STATE where all weights learn. The trainer is as before then. */
weft_status weft__trainer_start_adapter(weft__trainer *t, const weft__adapt *a, weft_error *err);
/* What an adapter's options are for a trainer that goes on with it: the largest rank, the scale there, and targets that
 * mean its matrices and no others ("attn_q@0,attn_q@1"), to be freed. WEFT_NO_MEMORY. */
weft_status weft__train_adapter_options(const weft__adapt *a, int32_t *rank, float *scale, char **targets,
                                        weft_error *err);
/* Losses that look at the base look at the base itself again, and no longer at the adapter that it began with. */
void weft__trainer_hold_to_base(weft__trainer *t);
/* Shows what is to stay as it began, for elastic weight consolidation (Kirkpatrick et al. 2017): each step's loss has
 * ewc / 2 sum F (W - W0)² from then on, with W = scale B A as it is, and W0 as it began. F, the diagonal of the Fisher
 * information, is of W, as A and B apart are not unique, and a product: of the squared gradients behind the matrix,
 * summed over rows, by target, and of its squared inputs by row; by tokens that are drawn from the model itself.
 * `batch`: as weft__trainer_add has it; which tokens its targets are is not looked at, and neither are weights. Before
 * the first step, with nothing added. WEFT_STATE: later, or all weights learn; else as weft__trainer_add. */
weft_status weft__trainer_show(weft__trainer *t, const weft__train_batch *batch, weft_error *err);
/* The largest ||scale B A|| / ||W|| of all pairs as they are; 0 where norm_cap is 0, or all weights learn. */
double weft__trainer_norm(weft__trainer *t);
/* How much LoRA pairs count from now on, as a share of what the options say: in losses, and in the adapter that is
 * written. 1 while it learns. */
void weft__trainer_set_scale(weft__trainer *t, float share);

/* Puts the parameters aside as they are, in place of what was put there before; checkpoints keep what is there. Fails
 * with WEFT_NO_MEMORY. */
weft_status weft__trainer_put_aside(weft__trainer *t, weft_error *err);
/* They become the parameters again; what the optimizer keeps stays. Nothing happens where nothing was put aside. */
void weft__trainer_take_aside(weft__trainer *t);

/* ---- files; each appears under its name only when it is complete (format/out_file.h) ---- */

/* Everything that a resumed run needs, as a GGUF file: parameters, the optimizer's state, the step; and `state`,
 * n_state bytes of the caller's (position in the data, random generator). Only between steps: WEFT_STATE while
 * gradients are accumulated. */
weft_status weft__trainer_save(weft__trainer *t, const char *path, const void *state, size_t n_state, weft_error *err);
/* Into a trainer created from the same model with the same options. *state is the caller's, freed with weft__free. A
 * checkpoint that is damaged, or that was made with another rank, alpha, target, optimizer or architecture, is refused
 * and the trainer is as before. */
weft_status weft__trainer_load(weft__trainer *t, const char *path, void **state, size_t *n_state, weft_error *err);

/* The LoRA pairs as a GGUF adapter (general.type adapter, adapter.type lora). WEFT_STATE where all weights learn. */
weft_status weft__trainer_write_adapter(weft__trainer *t, const char *path, const char *name, weft_error *err);
/* All weights as a GGUF model in F32 with the metadata of `meta`. WEFT_STATE for LoRA. */
weft_status weft__trainer_write_model(weft__trainer *t, const weft__gguf *meta, const char *path, weft_error *err);

#endif
