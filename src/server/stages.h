// SPDX-License-Identifier: Apache-2.0
/* stages.h: where the time of a request goes. A request is in one stage at a time, from its first byte to the last of
 * its answer; what it takes beside the engine is told here as it goes, what it takes within by the engine's last event.
 * Invariant: the stages of a request add up to its time. One owner at a time, as the response that it is of. */
#ifndef WEFT_SERVER_STAGES_H
#define WEFT_SERVER_STAGES_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/text.h"

struct weft_event;

enum weft__server_stage {
    WEFT__SERVER_READING, /* its bytes, a worker's turn, its fields */
    WEFT__SERVER_TEMPLATE,
    WEFT__SERVER_TOKENIZER,
    WEFT__SERVER_GRAMMAR,   /* compiled, and masks made of it */
    WEFT__SERVER_QUEUE,     /* for adapters, for a grammar's turn, for a slot */
    WEFT__SERVER_SCHEDULER, /* in a slot: for its next step, and for others in this one */
    WEFT__SERVER_MODEL,
    WEFT__SERVER_SAMPLING, /* and log-probabilities */
    WEFT__SERVER_WRITING,  /* text, JSON, and bytes to the client */
    WEFT__SERVER_STAGES
};

typedef struct weft__server_stages {
    uint64_t ns[WEFT__SERVER_STAGES];
    uint64_t engine_ns[WEFT__SERVER_STAGES]; /* of all its answers, since it was submitted */
    uint64_t since_ns;                       /* until then it is counted */
    enum weft__server_stage now;
    /* when it came, was read, was submitted, left the queue, had its first token, ended in the engine; 0: not */
    uint64_t came_ns, read_ns, submitted_ns, began_ns, first_ns, ended_ns;
} weft__server_stages;

void weft__server_stages_begin(weft__server_stages *s, uint64_t came_ns);
/* From now on it is in `next`. */
void weft__server_stage(weft__server_stages *s, enum weft__server_stage next);
/* n of what was counted, or will be, as the stage that it is in were another's. */
void weft__server_stage_move(weft__server_stages *s, enum weft__server_stage to, uint64_t ns);
/* What the engine tells of one of its answers, at its end. */
void weft__server_stage_engine(weft__server_stages *s, const struct weft_event *e);
/* The engine ended all of them at ended_ns: the time since it was submitted is theirs, in proportion where there are
 * several. From then on it is being written, also while the engine's last words wait to be told. */
void weft__server_stages_leave_engine(weft__server_stages *s, uint64_t ended_ns);
/* Its last byte was sent, or its client left, so long after it came. */
void weft__server_stages_end(weft__server_stages *s, double ms);
/* "model", for labels. */
const char *weft__server_stage_name(enum weft__server_stage stage);
/* A member of JSON: "stages":{"reading":0.123,...}, milliseconds. */
void weft__server_stages_write(const weft__server_stages *s, weft__strbuf *out);

#endif
