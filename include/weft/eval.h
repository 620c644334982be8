// SPDX-License-Identifier: Apache-2.0
/* eval.h: how good a model is, for programs that embed the engine: the perplexity of texts, the divergence from a base,
 * scores on tasks; what `weft eval perplexity`, `documents` and `task` tell.
 *
 * Parameter structs begin with `size`: fill them with the ..._default function, then change fields. Strings and lists
 * are borrowed during the call. A call keeps its thread until all is measured; a progress function is called on it. No
 * figure depends on the number of threads. */
#ifndef WEFT_EVAL_H
#define WEFT_EVAL_H

#include "weft/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- perplexity of texts, and the divergence from a base ---- */

enum weft_perplexity_form {
    /* As llama-perplexity has it: a text is cut into chunks of n_ctx tokens, of which it has two at least; what is left
     * at its end is left out. Each is read from an empty context, the model's BOS in place of its first token; the
     * second half of each, but for its last token, is scored */
    WEFT_PERPLEXITY_CHUNKS = 0,
    /* Each text is read from an empty context, and every token but the first is scored; what does not fit into n_ctx
     * is left out. Its logarithm is what weft_train calls the held-out loss */
    WEFT_PERPLEXITY_TEXTS = 1
};

/* Token ids, or text. */
typedef struct weft_perplexity_text {
    const int32_t *tokens; /* [n]; NULL: */
    const char *text;      /* [n] bytes, encoded by the model's tokenizer as `tokenize` says */
    uint64_t n;
} weft_perplexity_text;

/* A figure, and its standard error. */
typedef struct weft_estimate {
    double value, error;
} weft_estimate;

/* Of the tokens' sorted values: the least, 0.1, 1, 5, 10, 25, 50, 75, 90, 95, 99 and 99.9 per cent, the largest. */
#define WEFT_QUANTILES 13

/* NAN: not measured, or the model gave a token no finite log-probability. */
typedef struct weft_perplexity_result {
    uint32_t size;
    int32_t n_ctx;            /* tokens of a chunk, or of a text at most */
    int64_t n_chunks;         /* that were read; of WEFT_PERPLEXITY_TEXTS, texts of two tokens and more */
    int64_t n_cut;            /* texts that did not fit */
    int64_t n_scored;         /* tokens */
    weft_estimate nll;        /* -log p of a token, natural */
    weft_estimate perplexity; /* its exponential */
    /* Against a base. kl: KL(base || this), over the whole vocabulary; p_diff: of the probability of the token that
     * follows, this less the base's; p_rms: its root mean square; same_top: the share of tokens at which the likeliest
     * is the base's */
    weft_estimate base_perplexity, difference; /* difference: of the two */
    weft_estimate log_ratio;                   /* ln(perplexity / base_perplexity) */
    double correlation;                        /* of the two -log p */
    weft_estimate kl, p_diff, p_rms, same_top;
    double kl_at[WEFT_QUANTILES], p_diff_at[WEFT_QUANTILES]; /* not known before the end */
} weft_perplexity_result;

/* Of a chunk, or a text, that was scored. What it points to lives for the call. */
typedef struct weft_perplexity_event {
    uint32_t size;
    int32_t text;                         /* index of the text that it is of; -1: of base_file */
    double fraction;                      /* of all that is to be read */
    int64_t n_cut, n_scored;              /* of this chunk alone, as the next two: */
    double nll_sum, nll_squares;          /* of -log p, and of its squares */
    const weft_perplexity_result *so_far; /* of all until now */
} weft_perplexity_event;

/* Non-zero: stop with WEFT_CANCELLED. */
typedef int (*weft_perplexity_fn)(void *arg, const weft_perplexity_event *event);

typedef struct weft_perplexity_params {
    uint32_t size;
    uint32_t kv_dtype; /* of which type keys and values are; WEFT_F16 (default): weft_kv_type_parse */
    int32_t form;      /* weft_perplexity_form */
    int32_t n_ctx;     /* 0: 512, or the model's context where that is less */
    int64_t n_chunks;  /* of WEFT_PERPLEXITY_CHUNKS, so many at most; 0: all */
    uint32_t tokenize; /* weft_tokenize_flags of what comes as text; WEFT_TOKENIZE_BOS (default) */
    int32_t n_adapters;
    const weft_adapter_use *adapters; /* [n_adapters], the stack that the model is measured with */
    /* The base, computed beside it and without the adapters: the model itself, for what they make it forget, or another
     * one of the same vocabulary. NULL: none */
    weft_model *base;
    /* Of WEFT_PERPLEXITY_CHUNKS: a file with probabilities of a base, which --kl-base of weft or llama-perplexity has
     * written; its text is what is read, in its chunks, and there are no other texts. NULL: none */
    const char *base_file;
    const char *save_base; /* such a file, to be written with the probabilities of this model; NULL: none */
    weft_perplexity_fn report;
    void *arg;
} weft_perplexity_params;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_perplexity_params_default(weft_perplexity_params *params);
WEFT_API void weft_perplexity_params_init(weft_perplexity_params *params, uint32_t size);
#define weft_perplexity_params_default(params) weft_perplexity_params_init(params, sizeof *(params))
/* Reads n texts, in order, and tells of all of them together. *result, size set by the caller, is filled on failure,
 * too, with what was read. Fails with WEFT_ARGUMENT (texts that are too short, a base of another vocabulary, params),
 * WEFT_UNSUPPORTED (text, and no tokenizer), WEFT_FORMAT (a base file that is none; a model that gives a token no
 * finite log-probability, as damaged weights do), WEFT_IO, WEFT_NO_MEMORY, WEFT_CANCELLED, and as weft_session_new and
 * weft_session_set_adapters do. */
WEFT_API weft_status weft_perplexity(weft_model *model, const weft_perplexity_text *texts, int32_t n,
                                     const weft_perplexity_params *params, weft_perplexity_result *result,
                                     weft_error *err);

/* ---- tasks: questions with right answers ---- */

typedef struct weft_task weft_task; /* immutable: threads may share it */

/* What a task wants of a model. */
enum weft_task_output {
    WEFT_TASK_GENERATE = 0,      /* an answer */
    WEFT_TASK_LOGLIKELIHOOD = 1, /* the log-probability of a text behind another */
    WEFT_TASK_ROLLING = 2,       /* that of a text */
    WEFT_TASK_CHOICE = 3         /* those of several texts behind another */
};

typedef struct weft_task_params {
    uint32_t size;
    int32_t n_fewshot; /* examples before each question; -1: the task's (default) */
    /* yaml, jsonl, hellaswag, winogrande, multiple-choice, humaneval or swebench; NULL: by the file's name */
    const char *form;
    /* JSONL in place of what a task file names: FILE, or SPLIT=FILE; NULL-terminated, or NULL */
    const char *const *data;
    int64_t repeats;    /* answers to each question; 0: the task's */
    int64_t max_tokens; /* of an answer; 0: the task's */
    double temperature; /* of answers; -1: the task's (default) */
} weft_task_params;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_task_params_default(weft_task_params *params);
WEFT_API void weft_task_params_init(weft_task_params *params, uint32_t size);
#define weft_task_params_default(params) weft_task_params_init(params, sizeof *(params))
/* Reads a task file of lm-evaluation-harness (YAML) with its documents, plain JSONL ({"prompt", "answer"}, {"prompt",
 * "choices", "answer"} or {"text"}), or a file that llama-perplexity reads. Fails with WEFT_FORMAT (each fault in a
 * line of its own: "PATH:LINE:COLUMN: MESSAGE"), WEFT_UNSUPPORTED (YAML, without libyaml), WEFT_ARGUMENT,
 * WEFT_NOT_FOUND, WEFT_IO, WEFT_LIMIT, WEFT_NO_MEMORY. */
WEFT_API weft_status weft_task_open(const char *path, const weft_task_params *params, weft_task **out, weft_error *err);
/* After the scores of it were freed. */
WEFT_API void weft_task_close(weft_task **task);

typedef struct weft_task_info {
    uint32_t size;
    int32_t output;      /* weft_task_output */
    const char *name;    /* lives with the task, as the next does */
    const char *version; /* "": none */
    int64_t n_documents; /* that are asked */
    int64_t n_fewshot, repeats, max_tokens;
    int32_t judged_elsewhere; /* 1: its answers are for a judge elsewhere (weft_eval_params.predictions) */
    int32_t reserved;
} weft_task_info;
/* out->size set by the caller. */
WEFT_API weft_status weft_task_describe(const weft_task *task, weft_task_info *out, weft_error *err);

typedef struct weft_eval_params {
    uint32_t size;
    int32_t n_adapters;
    const weft_request_adapter *adapters; /* [n_adapters], a stack, of the engine's */
    int32_t chat;                         /* 1: prompts are messages in the model's chat template */
    int32_t multiturn;                    /* 1, with chat: examples are turns of their own */
    const char *system;                   /* stands before the task's description; NULL: nothing */
    int32_t no_bos;                       /* 1: no BOS before texts, whatever the model's file says */
    int32_t reserved;
    int64_t limit;         /* the first documents alone; 0: all */
    uint64_t seed;         /* of sampled answers (1234) */
    uint64_t fewshot_seed; /* which examples are drawn (1234, as lm-evaluation-harness) */
    /* A file with a line of JSON per document. Where it has the beginning of the same run, that goes on from there, to
     * the same bytes; NULL: none */
    const char *samples;
    const char *predictions; /* answers, for the judge of a task that has one elsewhere; NULL: none */
    weft_progress_fn progress;
    void *progress_arg;
} weft_eval_params;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_eval_params_default(weft_eval_params *params);
WEFT_API void weft_eval_params_init(weft_eval_params *params, uint32_t size);
#define weft_eval_params_default(params) weft_eval_params_init(params, sizeof *(params))

typedef struct weft_scores weft_scores; /* what a task's documents add up to; one thread at a time */

/* Asks the engine's model for every document, many at once, beside whatever else the engine does; a context is as long
 * as the engine's. What a document gets depends on the task, the model, the adapters and params alone. Nothing that the
 * model writes is executed. *out outlives the engine, and not the task. Fails with what documents, engine or files fail
 * with, naming the document or the file; WEFT_EXISTS where `samples` is of another run; WEFT_CANCELLED when `progress`
 * said so: what was finished by then is in `samples`. */
WEFT_API weft_status weft_eval_task(weft_engine *engine, const weft_task *task, const weft_eval_params *params,
                                    weft_scores **out, weft_error *err);
/* With the texts that weft_scores_write gave. */
WEFT_API void weft_scores_free(weft_scores **scores);

typedef struct weft_scores_info {
    uint32_t size;
    int32_t n_scores;    /* filters times metrics */
    int64_t n_documents; /* that were asked */
    int64_t n_cut;       /* of them, those whose prompts lost their beginning */
    int64_t n_unended;   /* answers that max_tokens ended */
    int64_t n_tokens;    /* generated, or scored */
    int64_t n_resumed;   /* documents that stood in the file of samples already */
    int64_t n_baseline;  /* documents that the baseline was compared on; 0: there is none */
} weft_scores_info;
/* out->size set by the caller. */
WEFT_API weft_status weft_scores_describe(const weft_scores *scores, weft_scores_info *out, weft_error *err);

/* A metric of the answers as a filter leaves them. low, high: 95 %. */
typedef struct weft_score {
    uint32_t size;
    int32_t higher_is_better;
    const char *filter, *metric; /* live with the task */
    double value, low, high, error;
    int32_t is_rate;      /* 1: of right and wrong: low and high are Wilson's; else of the normal distribution */
    int32_t has_baseline; /* 1: paired with the baseline, document by document: */
    double baseline, difference;
    double p;                      /* that chance alone makes them so different; NAN: cannot be told */
    int64_t only_here, only_there; /* documents that are better here, and there; of rates, right in one alone */
    int32_t is_exact;              /* 1: p is McNemar's, exact; else of the normal distribution */
    int32_t reserved;
} weft_score;
/* Score `index`, 0 to n_scores - 1: WEFT_ARGUMENT where there is none. out->size set by the caller. */
WEFT_API weft_status weft_scores_get(const weft_scores *scores, int32_t index, weft_score *out, weft_error *err);
/* Pairs them with the samples of another run over the same documents; of more documents the first are taken. Fails with
 * WEFT_FORMAT (other documents, or fewer), WEFT_NOT_FOUND, WEFT_IO, WEFT_NO_MEMORY, WEFT_STATE (there is one
 * already). */
WEFT_API weft_status weft_scores_compare(weft_scores *scores, const char *samples, weft_error *err);

enum weft_scores_form { WEFT_SCORES_TABLE = 0, WEFT_SCORES_JSON = 1, WEFT_SCORES_SVG = 2 };
/* All of it as text for people, as one JSON object, or as a picture. *text is NUL-terminated, and lives until the next
 * call, or the end of the scores. */
WEFT_API weft_status weft_scores_write(weft_scores *scores, int32_t form, const char **text, size_t *length,
                                       weft_error *err);

/* A prompt as the model gets it. What it points to lives for the call; texts are not NUL-terminated. */
typedef struct weft_eval_shown {
    uint32_t size;
    int32_t n_tokens, n_scored;
    int32_t reserved;
    int64_t document;    /* from 0 */
    const char *context; /* what is asked */
    size_t n_context;
    const char *continuation; /* what is scored behind it; n_continuation 0: an answer is generated */
    size_t n_continuation;
} weft_eval_shown;

/* Non-zero: no more. */
typedef int (*weft_eval_show_fn)(void *arg, const weft_eval_shown *prompt);

/* Shows the prompts of the first n documents, and asks the model for nothing. Fails as weft_eval_task does before its
 * first request. */
WEFT_API weft_status weft_eval_show(weft_engine *engine, const weft_task *task, const weft_eval_params *params,
                                    int64_t n, weft_eval_show_fn show, void *arg, weft_error *err);

#ifdef __cplusplus
}
#endif
#endif
