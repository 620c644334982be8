// SPDX-License-Identifier: Apache-2.0
/* record.h: one line of a JSONL file, or one value of a JSON file, as something to learn from.
 *
 * Known are {"text": ...}, {"messages": [...], "tools": [...]}, {"prompt", "completion"} and {"prompt", "chosen",
 * "rejected"}; a prompt is a string or a list of messages, an answer a string, a message or a list of messages. Of
 * pairs the prompt may also stand in both answers, as TRL has it: lists of messages that begin alike. A list of
 * messages alone is a conversation, as `weft chat` saved them. ShareGPT's {"conversations"} and Alpaca's
 * {"instruction", "input", "output"} (or "chosen" and "rejected") are read as such (record_forms.h; a "text" beside the
 * latter is the same once more, and ignored). Tools are a list, or one as JSON text; blank text is none. Other members
 * are ignored (ids, sources). Invariant: what is in a record has the shape that its kind says; renderers need not check
 * again. {"query", "positive", "negatives"} are texts to tell apart by their embeddings ("anchor" is a query,
 * "negative" one that does not belong to it, or a list of them). One thread per record. A record may have a "weight":
 * how much it counts, 1 where it says none; below 0: it is to become less likely; 0: it is left out. Pairs and texts to
 * tell apart have none. A "reward" beside it says how good the answer was. */
#ifndef WEFT_TRAIN_RECORD_H
#define WEFT_TRAIN_RECORD_H

#include "base/json.h"

typedef enum weft__train_record_kind {
    WEFT__TRAIN_RECORD_TEXT,       /* text */
    WEFT__TRAIN_RECORD_CHAT,       /* messages, tools */
    WEFT__TRAIN_RECORD_COMPLETION, /* prompt, answer */
    WEFT__TRAIN_RECORD_PAIR,       /* prompt, answer (chosen), rejected */
    WEFT__TRAIN_RECORD_CONTRAST    /* prompt (query), answer (positive), rejected (negatives, a list; NULL: none) */
} weft__train_record_kind;

enum { WEFT__TRAIN_WEIGHT_MOST = 1000000 };

/* Zero-initialise. Values borrow from `root`; those that a record lacks are NULL. */
typedef struct weft__train_record {
    weft__train_record_kind kind;
    weft__json *root, *made, *made_tools; /* made: messages or a prompt, and tools, of another form; or NULL */
    const weft__json *text, *messages, *tools, *prompt, *answer, *rejected;
    double reward;   /* NAN: it has none */
    double weight;   /* of the record, -WEFT__TRAIN_WEIGHT_MOST to WEFT__TRAIN_WEIGHT_MOST */
    size_t n_shared; /* messages that `answer` and `rejected` of a pair without a prompt begin with: they are it */
} weft__train_record;

/* Is it a list of messages, and not one of records? */
int weft__train_is_conversation(const weft__json *v);
/* Takes *root, which is NULL then in any case. Fails as below. */
weft_status weft__train_record_of(weft__json **root, weft__train_record *out, weft_error *err);
/* Reads line[0..n). Fails with WEFT_FORMAT (what is wrong, and where in the record) or WEFT_NO_MEMORY; the record is
 * empty then. On success the caller frees it. */
weft_status weft__train_record_read(const char *line, size_t n, weft__train_record *out, weft_error *err);
void weft__train_record_free(weft__train_record *r);
/* Is it a message of the assistant's? */
int weft__train_is_assistant(const weft__json *message);
/* One that is learned: its "weight" is not 0. */
int weft__train_is_learned(const weft__json *message);
/* Does it say nothing where something is learned (of a pair: chosen)? */
int weft__train_says_nothing(const weft__train_record *r);
/* "text", "chat", "completion", "pair", "contrast" */
const char *weft__train_record_name(weft__train_record_kind kind);

#endif
