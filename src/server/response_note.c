// SPDX-License-Identifier: Apache-2.0
/* response_note.c: what the log, the counters and the traces take of a response that the engine has ended (response.h).
 * The thread that ends it. */
#include <stdio.h>

#include "base/alloc.h"
#include "server/response.h"

void weft__server_response_note(weft__server_response *g)
{
    static const char *const names[] = {"stop", "length", "stop", "cancelled", "failed"};
    weft__server_log_entry *note = weft__alloc_zero(1, sizeof *note);
    if (!note) return;
    snprintf(note->tenant, sizeof note->tenant, "%s", g->tenant);
    snprintf(note->model, sizeof note->model, "%.60s", g->answer.model);
    snprintf(note->finish, sizeof note->finish, "%s", names[g->answer.choices[0].finish]);
    note->n_choices = g->answer.n_choices;
    for (int i = 0; i < g->answer.n_choices; i++) {
        const weft__server_choice *c = &g->choices[i];
        if (weft__server_first_of_prompt(c)) {
            note->n_prompt += c->n_prompt;
            note->n_cached += c->out->n_cached;
        }
        note->n_generated += c->out->n_generated;
        for (int d = 0; d < WEFT_DRAFTERS; d++) {
            note->drafted[d] += c->drafted[d];
            note->accepted[d] += c->accepted[d];
        }
        if (c->queue_ms > note->queue_ms) note->queue_ms = c->queue_ms;
    }
    note->stages = g->stages;
    note->served = g->model;
    weft__http_set_note(g->r, note);
}
