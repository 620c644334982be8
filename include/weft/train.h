// SPDX-License-Identifier: Apache-2.0
/* train.h: vocabularies, models and adapters learned on this machine, for programs that embed the engine.
 *
 * Parameter structs begin with `size`: fill them with the ..._default function, then change fields. Strings and
 * lists are borrowed during the call. Every file appears under its name only when it is complete. */
#ifndef WEFT_TRAIN_H
#define WEFT_TRAIN_H

#include "weft/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- vocabularies ---- */

typedef struct weft_vocab_params {
    uint32_t size;
    int32_t n_vocab;   /* tokens, special ones included (2048); fewer when the texts have no more pairs */
    int32_t min_count; /* a pair that is rarer becomes no token (2) */
    int32_t reserved;
    /* name of the pre-tokenizer that cuts texts into words, as GGUF has it ("qwen2") */
    const char *pre;
    const char *const *specials; /* further control tokens, NULL-terminated, or NULL */
    /* tokens that are shown in answers ("<tool_call>"), NULL-terminated, or NULL */
    const char *const *words;
    const char *chat_template; /* Jinja source, or NULL */
    weft_progress_fn progress;
    void *progress_arg;
} weft_vocab_params;

typedef struct weft_vocab_result {
    int32_t n_tokens, n_merges;
    uint64_t n_bytes; /* of text */
} weft_vocab_result;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_vocab_params_default(weft_vocab_params *params);
WEFT_API void weft_vocab_params_init(weft_vocab_params *params, uint32_t size);
#define weft_vocab_params_default(params) weft_vocab_params_init(params, sizeof *(params))
/* Learns a byte-level BPE vocabulary from text files (those called .jsonl too: as text) and writes it as a GGUF file
 * without tensors. Ids 0 to 4 are <|startoftext|> (BOS, put before texts), <|endoftext|> (EOS), <|pad|>,
 * <|im_start|> and <|im_end|> (end of turn); the further ones, the words, the 256 bytes and the merges follow. The
 * same texts and parameters give the same file. Fails with WEFT_ARGUMENT (a parameter), WEFT_UNSUPPORTED (the
 * pre-tokenizer), WEFT_FORMAT (the template), WEFT_NOT_FOUND, WEFT_IO, WEFT_NO_MEMORY, WEFT_CANCELLED. */
WEFT_API weft_status weft_train_tokenizer(const char *const *files, int32_t n_files, const char *out,
                                          const weft_vocab_params *params, weft_vocab_result *result, weft_error *err);

/* ---- training ---- */

/* Muon (Jordan et al. 2024): matrices inside the layers, and LoRA's; all else by AdamW. lr and decay are AdamW's. */
enum weft_train_optimizer { WEFT_TRAIN_ADAMW = 0, WEFT_TRAIN_SGD = 1, WEFT_TRAIN_MUON = 2 };
enum weft_train_schedule {
    WEFT_TRAIN_CONSTANT = 0,
    WEFT_TRAIN_COSINE = 1,   /* warm-up, then half a cosine down to lr * lr_floor */
    WEFT_TRAIN_ONE_CYCLE = 2 /* up from lr / 25 over 30 % of the steps (one at least), down to lr / 10000 */
};

/* What is minimised; docs/howto/train.md has the formulas. */
enum weft_train_loss {
    WEFT_TRAIN_SFT = 0, /* -log p of what is learned; of records with a negative weight, -log(1 - p) */
    /* of pairs: direct preference optimization (dpo_beta, smoothing, chosen) */
    WEFT_TRAIN_DPO = 1,
    /* of pairs: -log p of the chosen answer, -log(1 - p) of each token of the rejected one */
    WEFT_TRAIN_UNLIKELIHOOD = 2,
    /* of records with a "reward": SFT weighted by e^(reward / beta), which is 1 on average */
    WEFT_TRAIN_REWARD = 3,
    /* of records with a "reward": SFT on those of reward_min and more */
    WEFT_TRAIN_FILTERED = 4,
    /* of records with an answer: the adapter answers each prompt `group` times, the answers are judged (rule, or
     * verifier), and those that are better than their group's mean become likelier */
    WEFT_TRAIN_GRPO = 5,
    WEFT_TRAIN_DR_GRPO = 6, /* the same without dividing by lengths and deviations */
    /* KL(teacher || adapter) over the teacher's likeliest tokens, at every token that is learned */
    WEFT_TRAIN_DISTILL = 7,
    /* of records of texts: a query's embedding comes nearer to that of what belongs to it than to those of the batch's
     * other texts, hard negatives among them (beta: the temperature) */
    WEFT_TRAIN_INFONCE = 8
};

enum weft_train_kind {
    WEFT_TRAIN_PLANNED = 0, /* everything is open and checked; step is where it begins */
    WEFT_TRAIN_STEP = 1,
    WEFT_TRAIN_SAVED = 2,    /* a checkpoint of this step */
    WEFT_TRAIN_MEASURED = 3, /* the held-out loss, or the answers, before the first step */
    WEFT_TRAIN_SAMPLE = 4,   /* prompt and text: what the model goes on with now */
    WEFT_TRAIN_SCALED = 5,   /* the adapter was tried at `scale` */
    WEFT_TRAIN_ENDED = 6     /* the result is written: of the weights of step best_step, at `scale` */
};

/* Where a run ends before its last step. */
enum weft_train_stop {
    WEFT_TRAIN_STOP_NEVER = 0,
    WEFT_TRAIN_STOP_HELDOUT = 1, /* the held-out loss was not better `patience` times in a row */
    WEFT_TRAIN_STOP_ANSWERS = 2  /* all of `answers` come out word for word */
};

/* NAN: not measured. What it points to lives for the call. */
typedef struct weft_train_event {
    uint32_t size;
    int32_t kind; /* weft_train_kind */
    int64_t step, n_steps;
    int64_t n_rows;        /* tokens of all steps so far */
    double loss;           /* mean of the step: -log p of a token; of pairs, -log sigmoid(beta * margin) */
    double heldout;        /* the same over the held-out data, after the step */
    double better;         /* of pairs, the share whose chosen answer gained more than the rejected one */
    double heldout_better; /* the same over the held-out pairs */
    double lr, grad_norm;  /* before clipping */
    double rows_per_s, seconds, seconds_left;
    /* products of the last step per second; what the threads reached on registers just before it: measured before
     * some steps only */
    double gflops, peak_gflops;
    /* that learn; that do not; memory of the trainer without the frozen */
    uint64_t n_params, n_frozen, n_bytes;
    int64_t epoch_rows, n_segments, n_cut, n_dropped; /* of the data: see weft_train's description */
    int64_t n_ctx;                                    /* tokens of a text at most */
    int64_t batch;                                    /* tokens computed at once */
    double epochs;                                    /* NAN: so many steps were asked for */
    int64_t n_not_finite; /* batches that were left out so far, since their losses or gradients were not finite */
    int64_t n_empty;      /* answers of the data without a word: of them the end of the turn is all that is learned */
    /* of `answers` and `keep`: records, and those whose answers come out now; right -1: not asked. Of `keep` those are
     * counted that came out before the first step; n_keep_lost did not, and are not asked */
    int64_t n_answers, answers_right, n_keep, keep_right, n_keep_lost;
    int64_t best_step;         /* where the held-out loss was best so far; -1: it was not measured */
    double scale;              /* of an adapter, as a share of what it learned at; else NAN */
    const char *prompt, *text; /* of a sample; else NULL */
    /* of pairs: the mean log p of a chosen answer, and of a rejected one; DPO can lower both */
    double chosen, rejected;
    double anchor; /* of `loss`, the part of KL(base || adapter); NAN: none */
    /* of answers that were sampled: the mean reward; of the likeliest answers to the held-out prompts; the shares of
     * groups of one reward, which teach nothing, and of answers that did not end */
    double reward, heldout_reward, same, endless;
    double apart;       /* of them, the mean |log p as trained - as served| of a token */
    int64_t n_filtered; /* records whose reward was below reward_min */
} weft_train_event;

/* Non-zero: save a checkpoint and stop with WEFT_CANCELLED. */
typedef int (*weft_train_fn)(void *arg, const weft_train_event *event);

typedef struct weft_train_params {
    uint32_t size;
    int32_t n_threads; /* 0: one per core */
    /* What learns: all weights of a fresh model (base NULL) or of `base`, or an adapter of `base` (lora_rank above
     * 0). */
    const char *base;      /* a GGUF model; of an adapter, a Hugging Face folder too */
    const char *tokenizer; /* fresh: a GGUF file whose vocabulary and chat template the model takes */
    const char *name;      /* general.name, or NULL */
    int32_t n_layers, d_model, d_ff, n_heads, n_kv_heads, head_dim, tied; /* fresh; architecture llama */
    /* tokens of a text at most, 0: 512, or the base's context where that is less (more than it is refused); of a
     * fresh model, its context */
    int32_t n_ctx;
    float rope_base;
    int32_t lora_rank; /* 0: all weights */
    float lora_alpha;
    int32_t lora_rs;          /* 1: scaled by alpha / sqrt(rank) */
    const char *lora_targets; /* "attn_q,attn_v"; NULL: every linear layer of the blocks */
    float dpo_beta;           /* above 0: the data are preference pairs */
    /* Data: text, .jsonl, .u16, .u32 (weft train --help says what they hold); NULL-terminated lists. */
    const char *const *data;
    const char *const *heldout; /* or NULL; of the same kind */
    /* Jinja source instead of the model's own, or NULL; the model that is written keeps it */
    const char *chat_template;
    int32_t learn_prompts; /* 1: prompts are learned, too */
    /* tokens computed at once; memory grows with it. 0: 16 texts of the data's mean length, at most 2048 */
    int32_t batch;
    int32_t accumulate; /* batches of a step */
    uint64_t seed;      /* of the order, the fresh weights, the adapter's */
    /* How. */
    int32_t optimizer, schedule;
    float lr, lr_floor, beta1, beta2, momentum, weight_decay, clip_norm;
    int64_t n_steps;   /* 0: as many as `epochs` give */
    int64_t n_warmup;  /* -1: a fiftieth of all */
    float epochs;      /* 0: 2, or more where the data make fewer than 200 steps of them, at most 12 */
    int32_t recompute; /* 1: less memory, more time */
    /* Output: a folder, made when it is missing (and removed when the run is refused). In it appear model.gguf or
     * adapter.gguf, checkpoint.gguf, loss.jsonl and loss.svg. */
    const char *out;
    /* 1: go on from the checkpoint there; the parameters and data must be those it was made with */
    int32_t resume;
    int32_t heldout_tokens;            /* of the held-out data at most, each time; 0: all */
    int64_t save_every, heldout_every; /* steps; 0: at the end only */
    weft_train_fn report;
    void *arg;
    /* NULL, or asked every few milliseconds of a step or of held-out data: non-zero as of `report`, but at once */
    int (*stop)(void *arg);
    /* An adapter of `base` to begin with, or NULL: a GGUF file, or a PEFT folder. Rank 0, alpha 0 and no targets: those
     * that it has. Losses that look at the base (DPO, anchors) mean base and this adapter then. */
    const char *init_adapter;
    /* Records that are learned beside the data so that they stay as they are: the base's own answers about other things
     * of the kind. In turns, neighbor_ratio of them for each text of the data; NULL-terminated, or NULL. */
    const char *const *neighbors;
    float neighbor_ratio;
    /* Records whose answers must come out word for word when the likeliest token is taken each time, asked every
     * check_every steps; and records whose answers must stay so, of those that do before the first step, asked then and
     * at the end. NULL-terminated, or NULL. */
    const char *const *answers, *const *keep;
    int32_t stop_on;  /* weft_train_stop */
    int32_t patience; /* of WEFT_TRAIN_STOP_HELDOUT */
    int64_t check_every;
    int32_t keep_best; /* 1: the result has the weights of the step whose held-out loss was least */
    /* After the last step, of an adapter: the first of these scales at which all `answers` come out, and all of `keep`
     * that are asked; WEFT_STATE where there is none, and no result. */
    const float *scales;
    int32_t n_scales;
    /* What the model goes on with every so many steps (0: never) and at the end: answers to prompts that a user says
     * (sample_raw 1: texts that go on), sample_tokens at most. NULL-terminated, or NULL. */
    int64_t sample_every;
    const char *const *sample_prompts;
    int32_t sample_tokens, sample_raw;
    int32_t loss;    /* weft_train_loss; 0 with dpo_beta above 0: DPO */
    float smoothing; /* DPO: share of the pairs that are taken to be the wrong way round, 0..0.5 */
    float chosen;    /* DPO: weight of -log p of the chosen answer, per token of it; pairs lose likelihood without */
    /* weight of KL(base || adapter) at every token that is learned, over the whole vocabulary; 0: none. A record of
     * weight 0 is only held to what the base says */
    float anchor;
    float l2_sp;    /* draws parameters back to where they began, times the rate, as decay does to 0; 0: none */
    float norm_cap; /* the norm of an adapter's B A at most so many times that of the matrix it changes; 0: any */
    /* REWARD: the smaller, the more the best answers count; 0: 1. GRPO: weight of KL(adapter || base); 0: none.
     * INFONCE: cosines are divided by it; 0: 0.05 */
    float beta;
    float reward_min; /* FILTERED */
    /* GRPO: answers to a prompt (8), prompts of a batch at most (8), tokens of an answer at most (64) */
    int32_t group, prompts, answer_tokens;
    float clip_low, clip_high; /* GRPO: how far a ratio may leave 1 and still be followed (0.2) */
    const char *rule; /* GRPO: exact, contains, number or json, held against the record's own answer; or NULL */
    /* GRPO: instead, run by sh: for each line {"prompt", "answer", "reference"} it writes a line with a number, or
     * {"reward": number}; the same answer should get the same */
    const char *verifier;
    const char *teacher; /* DISTILL: a model with the same vocabulary */
    int32_t teacher_top; /* DISTILL: how many tokens; their probabilities are made to add up to 1 (64) */
    /* Adapters. 1: products with the frozen model in f32. 0: where the processor has faster units, forward as serving
     * computes them, and back in BF16 */
    int32_t exact;
} weft_train_params;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_train_params_default(weft_train_params *params);
WEFT_API void weft_train_params_init(weft_train_params *params, uint32_t size);
#define weft_train_params_default(params) weft_train_params_init(params, sizeof *(params))
/* Trains. The result depends on the parameters, the data and the kind of processor, never on threads or
 * interruptions: a run that was stopped or killed and is resumed gives the same files, bit for bit. A record that is
 * malformed is named with file and line before anything else is done. Conversations longer than n_ctx lose their end
 * (n_cut), texts without anything to learn are left out (n_dropped), and so are pairs whose answers are the same, as
 * far as they fit. Fails with WEFT_ARGUMENT, WEFT_FORMAT, WEFT_UNSUPPORTED, WEFT_NOT_FOUND, WEFT_EXISTS (the folder
 * holds a run, or is a file), WEFT_STATE (a checkpoint of another run), WEFT_LIMIT (losses that are not finite),
 * WEFT_IO, WEFT_NO_MEMORY, WEFT_CANCELLED. */
WEFT_API weft_status weft_train(const weft_train_params *params, weft_error *err);

/* A text of the data as weft_train would learn it: n tokens, what each spells (bytes [at[i], at[i + 1]) of `text`), and
 * how much it is learned: 0 not at all, below 0 to become less likely. Lives for the call. */
typedef struct weft_train_shown {
    uint32_t size;
    int32_t n;
    const int32_t *tokens; /* [n] */
    const float *weights;  /* [n] */
    const char *text;
    const uint32_t *at; /* [n + 1] */
    int32_t rejected;   /* 1: the rejected answer of the pair before */
    int32_t reserved;
} weft_train_shown;

/* Non-zero: no more. */
typedef int (*weft_train_show_fn)(void *arg, const weft_train_shown *text);

/* Shows the first n texts of the data in the order of the files, and makes nothing; `out` may be NULL. Fails as
 * weft_train does before its first step. */
WEFT_API weft_status weft_train_show(const weft_train_params *params, int64_t n, weft_train_show_fn show, void *arg,
                                     weft_error *err);

#ifdef __cplusplus
}
#endif
#endif
