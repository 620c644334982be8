/* record.h: one line of a JSONL file as something to learn from.
 *
 * Known are {"text": ...}, {"messages": [...], "tools": [...]}, {"prompt", "completion"} and {"prompt", "chosen", "rejected"}; a prompt
 * is a string or a list of messages, an answer a string, a message or a list of messages. Of pairs the prompt may also stand in both answers,
 * as TRL has it: lists of messages that begin alike. Other members are ignored (ids, sources).
 * Invariant: what is in a record has the shape that its kind says; renderers need not check again. One thread per record. */
#ifndef WEFT_TRAIN_RECORD_H
#define WEFT_TRAIN_RECORD_H

#include "base/json.h"

typedef enum weft__record_kind {
    WEFT__RECORD_TEXT,       /* text */
    WEFT__RECORD_CHAT,       /* messages, tools */
    WEFT__RECORD_COMPLETION, /* prompt, answer */
    WEFT__RECORD_PAIR        /* prompt, answer (chosen), rejected */
} weft__record_kind;

/* Zero-initialise. Values borrow from `root`; those that a record lacks are NULL. */
typedef struct weft__record {
    weft__record_kind kind;
    weft__json *root;
    const weft__json *text, *messages, *tools, *prompt, *answer, *rejected;
    size_t n_shared; /* messages that `answer` and `rejected` of a pair without a prompt begin with: they are it */
} weft__record;

/* Reads line[0..n). Fails with WEFT_FORMAT (what is wrong, and where in the record) or WEFT_NO_MEMORY; the record is empty then. On
 * success the caller frees it. */
weft_status weft__train_record_read(const char *line, size_t n, weft__record *out, weft_error *err);
void weft__train_record_free(weft__record *r);
/* Is it a message of the assistant's? */
int weft__train_is_assistant(const weft__json *message);
/* One that is learned: its "weight" is not 0. */
int weft__train_is_learned(const weft__json *message);
/* "text", "chat", "completion", "pair" */
const char *weft__train_record_name(weft__record_kind kind);

#endif
