// SPDX-License-Identifier: Apache-2.0
/* task.h: what is asked and how answers are judged: task files as lm-evaluation-harness (0.4) has them, and other forms
 * made the same (forms.c). A task is constant once it was read. Any thread. */
#ifndef WEFT_EVAL_TASK_H
#define WEFT_EVAL_TASK_H

#include "base/json.h"
#include "format/arena.h"
#include "text/jinja/jinja.h"
#include "text/regex/regex.h"
#include "weft/eval.h"

typedef enum weft__eval_output {
    WEFT__EVAL_GENERATE,      /* generate_until */
    WEFT__EVAL_LOGLIKELIHOOD, /* of doc_to_target behind doc_to_text */
    WEFT__EVAL_ROLLING,       /* loglikelihood_rolling: of doc_to_target from an empty context */
    WEFT__EVAL_CHOICE         /* multiple_choice */
} weft__eval_output;

/* How a choice's score is made of its tokens' log-probabilities. */
typedef enum weft__eval_span {
    WEFT__EVAL_BEHIND, /* all tokens behind the context: lm-evaluation-harness */
    /* the mean of those behind what all choices begin with: llama-perplexity --hellaswag and --multiple-choice */
    WEFT__EVAL_COMMON,
    WEFT__EVAL_BLANK /* the mean of those behind the word put in: llama-perplexity --winogrande */
} weft__eval_span;

/* doc_to_text and others: a member of the document by its name, a template, or a constant. */
typedef struct weft__eval_field {
    const char *source;         /* NULL: none */
    weft__jinja *jinja;         /* of source */
    const weft__json *constant; /* instead of it */
} weft__eval_field;

typedef enum weft__eval_metric_kind {
    WEFT__EVAL_ACC,
    WEFT__EVAL_ACC_NORM,  /* by characters of the choice */
    WEFT__EVAL_ACC_BYTES, /* by its bytes */
    WEFT__EVAL_EXACT_MATCH,
    WEFT__EVAL_JSON_MATCH, /* ours: equal as JSON values, whatever their blanks and the order of members */
    WEFT__EVAL_PERPLEXITY,
    WEFT__EVAL_WORD_PERPLEXITY,
    WEFT__EVAL_BYTE_PERPLEXITY,
    WEFT__EVAL_BITS_PER_BYTE,
    WEFT__EVAL_BRIER,
    WEFT__EVAL_PASS_AT_K
} weft__eval_metric_kind;

/* Of values or of pairs (value, weight) to one number. */
typedef enum weft__eval_aggregation {
    WEFT__EVAL_MEAN,
    WEFT__EVAL_EXP,          /* exp(-mean) */
    WEFT__EVAL_WEIGHTED_EXP, /* exp(-sum/weights) */
    WEFT__EVAL_BITS          /* -sum/weights/ln 2 */
} weft__eval_aggregation;

typedef struct weft__eval_metric {
    weft__eval_metric_kind kind;
    weft__eval_aggregation aggregation;
    char name[24]; /* "pass@10" */
    int higher_is_better;
    int ignore_case, ignore_punctuation, ignore_numbers; /* of exact_match */
    weft__regex **ignore;                                /* [n_ignore] */
    size_t n_ignore;
    int64_t k; /* of pass@k */
} weft__eval_metric;

typedef enum weft__eval_step_kind {
    WEFT__EVAL_REGEX,
    WEFT__EVAL_TAKE_FIRST,
    WEFT__EVAL_TAKE_FIRST_K,
    WEFT__EVAL_MAJORITY,
    WEFT__EVAL_LOWER,
    WEFT__EVAL_UPPER,
    WEFT__EVAL_STRIP,
    WEFT__EVAL_MAP,
    WEFT__EVAL_FLEXIBLE /* ours: the right answer where the answer holds it, or the last number of it */
} weft__eval_step_kind;

typedef struct weft__eval_step {
    weft__eval_step_kind kind;
    weft__regex *regex;
    int64_t number; /* group_select; k */
    const char *fallback;
    const char *const *from, *const *to; /* [n_map]; to NULL: None */
    size_t n_map;
} weft__eval_step;

typedef struct weft__eval_filter {
    const char *name;
    weft__eval_step *steps;
    size_t n_steps;
} weft__eval_filter;

typedef struct weft__eval_generation {
    const char *const *until; /* [n_until] */
    size_t n_until;
    int64_t max_tokens;
    double temperature, top_p, min_p;
    int64_t top_k;
} weft__eval_generation;

/* What a predictions file has a line of, for each answer. */
typedef enum weft__eval_predictions {
    WEFT__EVAL_NO_PREDICTIONS,
    WEFT__EVAL_COMPLETIONS, /* {"task_id", "completion"}: HumanEval */
    WEFT__EVAL_PATCHES      /* {"instance_id", "model_name_or_path", "model_patch"}: SWE-bench */
} weft__eval_predictions;

typedef struct weft__eval_docs {
    weft__json **items; /* [n] objects */
    size_t n, capacity;
} weft__eval_docs;

struct weft_task {
    weft__arena arena;
    const char *name, *version; /* version "": none */
    weft__eval_output output;
    weft__eval_span span;
    weft__eval_predictions predictions;
    weft__eval_field text, target, choice, prefix;
    weft__eval_field description;
    const char *target_delimiter, *fewshot_delimiter;
    int64_t n_fewshot, repeats;
    int fewshot_first;  /* the first documents, in order; else drawn */
    int shots_are_docs; /* examples come from the documents that are asked: the one at hand is none */
    weft__eval_generation generation;
    weft__eval_filter *filters; /* [n_filters] */
    weft__eval_metric *metrics; /* [n_metrics] */
    size_t n_filters, n_metrics;
    weft__eval_docs docs, shots; /* shots empty: the documents' own */
    weft__json **owned;          /* [n_owned] constants */
    size_t n_owned, owned_capacity;
    char data_hash[17]; /* of the task and its documents, in hexadecimal */
};
typedef weft_task weft__eval_task;

typedef struct weft__eval_task_options {
    const char *form;        /* NULL: by the file's name; else "yaml", "jsonl", "hellaswag", "winogrande",
                              * "multiple-choice", "humaneval", "swebench" */
    const char *const *data; /* [n_data] FILE, or SPLIT=FILE, in place of what the task names */
    int n_data;
    int64_t n_fewshot, repeats, max_tokens; /* -1, 0, 0: the task's */
    double temperature;                     /* -1: the task's */
} weft__eval_task_options;

/* Reads a task and its documents. `options` NULL: none. Fails with WEFT_FORMAT (each fault in a line of its own:
 * "PATH:LINE:COLUMN: MESSAGE"), WEFT_UNSUPPORTED, WEFT_NOT_FOUND, WEFT_IO, WEFT_LIMIT, WEFT_NO_MEMORY; *out is NULL
 * then. */
weft_status weft__eval_task_open(const char *path, const weft__eval_task_options *options, weft__eval_task **out,
                                 weft_error *err);
void weft__eval_task_free(weft__eval_task **task);

/* ---- the parts ---- */

/* The YAML of a task alone, without its documents; data: where they stand, "" of what is not told. For fuzzing, too. */
typedef struct weft__eval_places {
    const char *test, *shots; /* files, or NULL */
} weft__eval_places;
weft_status weft__eval_task_parse(const char *path, const char *text, size_t n, const weft__eval_task_options *options,
                                  weft__eval_task *task, weft__eval_places *places, weft_error *err);
/* Lines of JSON objects, or an array of them, into docs. `name` is for messages. */
weft_status weft__eval_docs_parse(const char *name, const char *text, size_t n, weft__eval_docs *docs, weft_error *err);
void weft__eval_docs_free(weft__eval_docs *docs);
/* A whole file, at most 1 GiB, NUL-terminated; weft__free(). */
weft_status weft__eval_read_file(const char *path, char **out, size_t *n, weft_error *err);
/* Other forms than YAML (forms.c): fills in the task, and its documents. */
weft_status weft__eval_form_parse(const char *form, const char *name, const char *text, size_t n, weft__eval_task *task,
                                  weft_error *err);
/* 1 where there is such a form. */
int weft__eval_form_known(const char *form);

/* A field from a template's text (of the arena, or constant). */
weft_status weft__eval_field_set(weft__eval_field *f, const char *source, weft_error *err);
/* The metric of a name and output, with its defaults; 0: there is none of that name for that output. */
int weft__eval_metric_named(const char *name, weft__eval_output output, weft__eval_metric *m);
/* The output's metrics where a task names none, and the filter that takes the first answer. WEFT_NO_MEMORY. */
weft_status weft__eval_task_defaults(weft__eval_task *task, weft_error *err);
/* Room for one more, zero, in an array of the arena that is n long now; NULL: no memory. */
void *weft__eval_more(weft__arena *arena, const void *items, size_t n, size_t size);

#endif
