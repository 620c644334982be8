// SPDX-License-Identifier: Apache-2.0
/* fake_teach.c: a double of what learning computes, for tests of the server, which has the loop and the store as they
 * are. An adapter is an empty file, whose time is its KL to the base, and its content id follows from all that it was
 * made of. A correction that says [reject REASON] is refused by the gate for that, also beside others, one with
 * [alone REASON] where it is learned by itself, one with [kl 0.01] is so far from the base, and one that says [fail]
 * cannot be learned. While the file of WEFT_FAKE_TEACH is there, learning goes on,
 * asking whether it is to be given up. A version's row that is in the store is not heard of before its file with .row
 * behind its name is gone; while it waits so there is one with .there. A token is a byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "fake_model.h"
#include "learn/contest.h"
#include "learn/teach_store.h"

enum { EOS = 257 };

/* ---- the tokenizer ---- */

weft_status weft__tok_encode(const weft__tok *tok, const char *text, size_t n, unsigned flags, weft__tok_ids *out,
                             weft_error *err)
{
    (void)tok, (void)flags;
    if (!weft__grow(&out->data, &out->capacity, out->n + n, sizeof *out->data))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for tokens");
    for (size_t i = 0; i < n; i++) out->data[out->n++] = (unsigned char)text[i];
    return WEFT_OK;
}

void weft__tok_ids_free(weft__tok_ids *ids)
{
    weft__free(ids->data);
    *ids = (weft__tok_ids){0};
}

int32_t weft__tok_n(const weft__tok *tok)
{
    (void)tok;
    return FAKE_VOCAB;
}

int weft__tok_is_end(const weft__tok *tok, int32_t id)
{
    (void)tok;
    return id == EOS;
}

int32_t weft__tok_id_of_role(const weft__tok *tok, weft__tok_role role)
{
    (void)tok;
    return role == WEFT__TOK_ROLE_EOS ? EOS : -1;
}

/* ---- adapters ---- */

enum { KL_UNIT = 1000000 /* n_bytes: its KL, so many times */ };

weft_status weft__adapt_open(const char *path, const weft__adapt_names *names, uint64_t max_bytes, weft__adapt **out,
                             weft_error *err)
{
    struct stat s;
    (void)names, (void)max_bytes;
    *out = NULL;
    if (stat(path, &s)) return weft_fail(err, WEFT_NOT_FOUND, "%s: there is no such file", path);
    *out = weft__alloc_zero(1, sizeof **out);
    if (!*out) return weft_fail(err, WEFT_NO_MEMORY, "no memory for an adapter");
    (*out)->n_bytes = (uint64_t)s.st_mtime;
    return WEFT_OK;
}

void weft__adapt_close(weft__adapt **a)
{
    weft__free(*a);
    *a = NULL;
}

/* ---- learning ---- */

void weft__teach_options_default(weft__teach_options *o)
{
    *o = (weft__teach_options){.n_threads = 1};
}

static void add_text(weft__hash_state *h, const weft__teach_text *x)
{
    weft__hash_add(h, &x->n, sizeof x->n);
    weft__hash_add(h, &x->n_prompt, sizeof x->n_prompt);
    weft__hash_add(h, x->ids, (size_t)x->n * sizeof *x->ids);
}

static weft__adapt_id id_of(const weft__teach_task *task)
{
    weft__hash_state h;
    weft__hash_begin(&h);
    const int has_parent = task->parent != NULL;
    weft__hash_add(&h, &has_parent, sizeof has_parent);
    for (int32_t i = 0; i < task->n_events; i++) add_text(&h, &task->events[i].correction);
    for (int32_t i = 0; i < task->n_replay; i++) add_text(&h, &task->replay[i]);
    for (int32_t i = 0; i < task->n_neighbours; i++) add_text(&h, &task->neighbours[i]);
    const uint64_t word = weft__hash_end(&h);
    return (weft__adapt_id){{word, ~word}};
}

/* The answer as text; what is beyond a byte is left out. */
static void text_of(const weft__teach_text *x, char *out, size_t room)
{
    size_t n = 0;
    for (int32_t i = x->n_prompt; i < x->n && n + 1 < room; i++)
        if (x->ids[i] < 256) out[n++] = (char)x->ids[i];
    out[n] = 0;
}

static void refuse(const char *text, const char *order, weft__gate_report *gate)
{
    const char *found = strstr(text, order);
    for (int i = 1; found && i < WEFT__GATE_REASONS; i++) {
        const char *name = weft__gate_reason_name((weft__gate_reason)i);
        if (strncmp(found + strlen(order), name, strlen(name))) continue;
        gate->reason = (weft__gate_reason)i;
        gate->passed = 0;
    }
}

static void judge(const weft__teach_task *task, weft__gate_report *gate)
{
    char text[512];
    *gate = (weft__gate_report){.passed = 1, .corrections = task->n_events, .n_corrections = task->n_events};
    for (int32_t i = 0; i < task->n_events; i++) {
        text_of(&task->events[i].correction, text, sizeof text);
        refuse(text, "[reject ", gate);
        if (task->n_events == 1) refuse(text, "[alone ", gate);
        const char *asked = strstr(text, "[kl ");
        if (!i) gate->kl = asked ? strtod(asked + strlen("[kl "), NULL) : 0.004;
    }
}

weft_status weft__teach(const weft__teach_task *task, const weft__teach_options *o, weft__teach_report *out,
                        weft_error *err)
{
    const char *hold = getenv("WEFT_FAKE_TEACH");
    char text[512];
    *out = (weft__teach_report){.n_attempts = 1};
    do {
        if (o->stop && o->stop(o->stop_arg)) return weft_fail(err, WEFT_CANCELLED, "it was given up");
        if (hold) nanosleep(&(struct timespec){0, 1000000}, NULL);
    } while (hold && !access(hold, F_OK));
    text_of(&task->events[0].correction, text, sizeof text);
    if (strstr(text, "[fail]")) return weft_fail(err, WEFT_INTERNAL, "it could not be learned");
    judge(task, &out->gate);
    out->id = id_of(task);
    if (!out->gate.passed) return WEFT_OK;
    FILE *f = fopen(task->path, "wb");
    if (!f) return weft_fail(err, WEFT_IO, "%s: it cannot be written", task->path);
    const struct timespec kl = {(time_t)(out->gate.kl * KL_UNIT + 0.5), 0}, times[2] = {kl, kl};
    futimens(fileno(f), times);
    fclose(f);
    return WEFT_OK;
}

/* The current one, one that learned all anew, and those beside which refused ones are tried. */
weft_status weft__contest_hold(const weft__contest_task *task, weft__contest_result *out, weft_error *err)
{
    weft__teach_report r;
    weft_status st = WEFT_OK;
    weft__gate_report best = {.passed = task->now != NULL,
                              .corrections = task->teach.n_events,
                              .kl = task->now ? (double)task->now->n_bytes / KL_UNIT : 0};
    *out = (weft__contest_result){.best = {.by = "retrained", .scale = 1, .retry = -1}};
    for (int32_t i = task->teach.n_events ? -1 : 0; !st && i < task->n_retry; i++) {
        if ((st = weft__teach(i < 0 ? &task->teach : &task->retry[i], task->options, &r, err))) break;
        const int wins = r.gate.passed && weft__contest_compare(&r.gate, &best, NULL) > 0;
        if (wins || !out->won) {
            if (!wins && r.gate.passed) r.gate.reason = WEFT__GATE_NOT_BETTER;
            r.gate.passed = wins;
            out->best =
                (weft__contest_entry){.by = i < 0 ? "retrained" : "retried", .scale = 1, .retry = i, .gate = r.gate};
        }
        if (!wins) continue;
        best = r.gate;
        out->won = 1;
        out->id = r.id;
        if (i == 0) break;
    }
    const char *by = out->won && out->best.retry >= 0 ? "corrections" : "kl";
    snprintf(out->why, sizeof out->why, "by %s: %s; %s", by, out->won ? out->best.by : "current",
             out->won ? "current" : out->best.by);
    if (!out->won) unlink(task->teach.path);
    return st;
}

/* ---- rows ---- */

weft_status __wrap_weft__learn_put_version(weft__learn_store *s, const weft__learn_version *v, weft_error *err);
weft_status __real_weft__learn_put_version(weft__learn_store *s, const weft__learn_version *v, weft_error *err);

weft_status __wrap_weft__learn_put_version(weft__learn_store *s, const weft__learn_version *v, weft_error *err)
{
    const char *hold = getenv("WEFT_FAKE_TEACH");
    char row[1024], there[1024];
    const weft_status st = __real_weft__learn_put_version(s, v, err);
    if (!hold) return st;
    snprintf(row, sizeof row, "%s.row", hold);
    snprintf(there, sizeof there, "%s.there", hold);
    while (!access(row, F_OK)) {
        FILE *f = fopen(there, "wb");
        if (f) fclose(f);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return st;
}

/* ---- the model ---- */

weft_status weft__teach_store_bytes(const weft__teach_store_params *params, uint64_t *out, weft_error *err)
{
    (void)params, (void)err;
    *out = 7000000;
    return WEFT_OK;
}

weft_status weft__teach_store_of_model(const weft_model *model, weft__teach_store_params *params, weft_error *err)
{
    (void)model, (void)err;
    params->loop.base = (const weft__source *)16;
    params->loop.tok = (const weft__tok *)16;
    return WEFT_OK;
}
