// SPDX-License-Identifier: Apache-2.0
/* data.h: what a model learns from: files to packed batches, in an order that a seed decides.
 *
 * A dataset is filled (add...), then read (next...). Files: text (documents separated by the end-of-text token as it is
 * spelled; line breaks beside it do not count), JSONL (record.h), both without a byte-order mark before them, and ids
 * (.u16, .u32: little-endian numbers; EOS ends a document). Texts longer than n_ctx become several segments, of which
 * every token but the first is learned once; longer conversations lose their end. Invariant: the batches are a function
 * of the files' contents in their order, the tokenizer and the options; a position names one of them exactly. A batch
 * never mixes epochs. One thread. */
#ifndef WEFT_TRAIN_DATA_H
#define WEFT_TRAIN_DATA_H

#include "train/render.h"
#include "train/train.h"

typedef struct weft__dataset weft__dataset;

typedef struct weft__dataset_options {
    int32_t n_ctx;           /* rows of a segment at most, 1.. */
    int32_t max_rows;        /* of a batch, at least n_ctx; of pairs, at least 2 n_ctx */
    int32_t in_order;        /* 1: no shuffling, for evaluation */
    int32_t learn_all;       /* 1: prompts are learned too, as pre-training does */
    int32_t rewards;         /* 1: every record must say its reward */
    double least;            /* rewards: records of less are left out, and counted; -INFINITY: none */
    int32_t most;            /* texts of a batch at most; 0: as many as fit */
    int32_t pairs;           /* 1: the files hold preference pairs and nothing else; 0: none */
    int32_t contrasts;       /* 1: the files hold records of texts to tell apart and nothing else; 0: none */
    int32_t keep_weightless; /* 1: records of weight 0 are texts, too: a loss has something else to say of them */
    uint64_t seed;
} weft__dataset_options;

typedef struct weft__dataset_totals {
    int64_t n_documents; /* records, or documents of text */
    int64_t n_tokens;    /* rows of an epoch */
    int64_t n_learned;   /* rows with a target */
    int64_t n_segments;
    /* of an epoch, where neighbours are mixed in: their share is the mean of many epochs; else as above */
    int64_t n_epoch_tokens, n_epoch_segments;
    int64_t n_cut; /* conversations that lost their end to n_ctx; a pair counts once */
    /* segments without anything to learn; pairs whose answers are the same, as far as they are seen */
    int64_t n_dropped;
    int64_t n_filtered; /* records whose reward was too small */
    int64_t n_largest;  /* rows of the largest record, of contrasts */
    int64_t n_empty;    /* answers without a word: the end of the turn is all that is learned */
    int stood_in;       /* some conversations have the template that stands in for the model's */
} weft__dataset_totals;

/* Where the next batch begins. {0, 0} is the start. */
typedef struct weft__dataset_cursor {
    uint64_t epoch, at; /* segments (or pairs) of the epoch that were handed out */
} weft__dataset_cursor;

/* The renderer is borrowed. Fails with WEFT_ARGUMENT (an option) or WEFT_NO_MEMORY. */
weft_status weft__dataset_create(const weft__train_renderer *r, const weft__dataset_options *o, weft__dataset **out,
                                 weft_error *err);
void weft__dataset_destroy(weft__dataset **d);

typedef enum weft__dataset_form {
    WEFT__DATASET_TEXT,
    WEFT__DATASET_JSONL,
    WEFT__DATASET_U16,
    WEFT__DATASET_U32,
    WEFT__DATASET_JSON
} weft__dataset_form;
/* By the end of the name, in any case: .jsonl, .json, .u16, .u32; all else is text, but for chats that `weft chat`
 * saved, which are known by their beginning. */
weft__dataset_form weft__dataset_form_of(const char *path);

/* Reads all of it. Fails with WEFT_FORMAT, naming file and line (or the number of the id) and what is wrong there;
 * WEFT_NOT_FOUND, WEFT_IO; WEFT_UNSUPPORTED and WEFT_ARGUMENT of weft__train_render, with file and line;
 * WEFT_NO_MEMORY. The dataset is not to be used after a failure. */
weft_status weft__dataset_add(weft__dataset *d, const char *path, weft_error *err);
/* The same for bytes in memory; `name` is what messages call them. */
weft_status weft__dataset_add_bytes(weft__dataset *d, const char *name, weft__dataset_form form, const char *bytes,
                                    size_t n, weft_error *err);

/* What is added from now on are neighbours: an epoch has all other texts once, and beside them `ratio` neighbours for
 * each, to the nearest whole number, one at least. Which ones goes on from epoch to epoch, in an order of their own, so
 * that all have their turn. Of pairs: pairs. WEFT_ARGUMENT: a ratio that is not above 0 and 1000 at most. */
weft_status weft__dataset_begin_neighbors(weft__dataset *d, double ratio, weft_error *err);

/* Batches of max_rows from now on, the position at the start. Fails as weft__dataset_create does, and the dataset is as
 * it was. */
weft_status weft__dataset_set_rows(weft__dataset *d, int32_t max_rows, weft_error *err);

/* Multiplies the weight of each segment by e^(reward / beta), made so that their mean over all segments is 1 (Peters
 * and Schaal 2007). A batch's `count` is the number of its rows with a target then, so that a step of bad answers is a
 * small one. Once, when all is added; every record had a reward. */
void weft__dataset_weigh(weft__dataset *d, double beta);

void weft__dataset_counts(const weft__dataset *d, weft__dataset_totals *out);
/* A checksum of everything that decides the batches. */
uint64_t weft__dataset_hash(const weft__dataset *d);

/* Records that are handed out whole: texts, pairs of them, or those of contrasts. */
size_t weft__dataset_n_groups(const weft__dataset *d);

/* The batch at the current position; *out points into the dataset until the next call. Goes on for ever, epoch after
 * epoch. Of contrasts, batch.group tells the records, and no row has a target. Of pairs, segments 2i and 2i + 1 are the
 * chosen and the rejected answer. Fails with WEFT_ARGUMENT when there is nothing to learn, WEFT_NO_MEMORY. */
weft_status weft__dataset_next(weft__dataset *d, weft__train_batch *out, weft_error *err);
/* A text as it is learned: n tokens, for each whether it is, and how much. Texts stand in the order of the files; of
 * pairs, the chosen answer before the rejected. Lives as long as nothing is added. */
typedef struct weft__dataset_text {
    const int32_t *ids;
    const uint8_t *learn;
    size_t n;
    float weight;
} weft__dataset_text;
size_t weft__dataset_n_texts(const weft__dataset *d);
weft__dataset_text weft__dataset_text_at(const weft__dataset *d, size_t i);

weft__dataset_cursor weft__dataset_position(const weft__dataset *d);
/* Fails with WEFT_ARGUMENT for a position behind the last text; one inside a batch begins another cut of the rest. */
weft_status weft__dataset_seek(weft__dataset *d, weft__dataset_cursor position, weft_error *err);

#endif
