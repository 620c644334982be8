// SPDX-License-Identifier: Apache-2.0
/* stages.c: see stages.h. */
#include "server/stages.h"

#include "base/clock.h"
#include "weft/engine.h"

static const char *const names[WEFT__SERVER_STAGES] = {"reading",   "template", "tokenizer", "grammar", "queue",
                                                       "scheduler", "model",    "sampling",  "writing"};

const char *weft__server_stage_name(enum weft__server_stage stage)
{
    return names[stage];
}

void weft__server_stages_begin(weft__server_stages *s, uint64_t came_ns)
{
    *s = (weft__server_stages){.since_ns = came_ns, .came_ns = came_ns, .now = WEFT__SERVER_READING};
}

static void count_until(weft__server_stages *s, uint64_t now)
{
    if (now <= s->since_ns) return;
    s->ns[s->now] += now - s->since_ns;
    s->since_ns = now;
}

void weft__server_stage(weft__server_stages *s, enum weft__server_stage next)
{
    count_until(s, weft__clock_ns());
    s->now = next;
}

void weft__server_stage_move(weft__server_stages *s, enum weft__server_stage to, uint64_t ns)
{
    count_until(s, weft__clock_ns());
    if (ns > s->ns[s->now]) ns = s->ns[s->now];
    s->ns[s->now] -= ns;
    s->ns[to] += ns;
}

static uint64_t ns_of(double ms)
{
    return ms > 0 ? (uint64_t)(ms * 1e6) : 0;
}

void weft__server_stage_engine(weft__server_stages *s, const struct weft_event *e)
{
    s->engine_ns[WEFT__SERVER_QUEUE] += ns_of(e->queue_ms);
    s->engine_ns[WEFT__SERVER_SCHEDULER] += ns_of(e->wait_ms);
    s->engine_ns[WEFT__SERVER_MODEL] += ns_of(e->model_ms);
    s->engine_ns[WEFT__SERVER_GRAMMAR] += ns_of(e->mask_ms);
    s->engine_ns[WEFT__SERVER_SAMPLING] += ns_of(e->sample_ms);
    s->engine_ns[WEFT__SERVER_WRITING] += ns_of(e->event_ms);
}

void weft__server_stages_leave_engine(weft__server_stages *s, uint64_t ended_ns)
{
    if (ended_ns < s->since_ns) ended_ns = s->since_ns; /* it was told of before its submission was counted */
    const uint64_t window = ended_ns - s->since_ns;
    uint64_t all = 0;
    for (int i = 0; i < WEFT__SERVER_STAGES; i++) all += s->engine_ns[i];
    /* One answer's parts are taken as they are, so that what is in none of them shows. */
    const double share = all > window ? (double)window / (double)all : 1;
    for (int i = 0; i < WEFT__SERVER_STAGES; i++) s->ns[i] += (uint64_t)((double)s->engine_ns[i] * share);
    s->since_ns = s->ended_ns = ended_ns;
    s->now = WEFT__SERVER_WRITING;
}

void weft__server_stages_end(weft__server_stages *s, double ms)
{
    count_until(s, s->came_ns + ns_of(ms));
}

void weft__server_stages_write(const weft__server_stages *s, weft__strbuf *out)
{
    weft__strbuf_puts(out, "\"stages\":{");
    for (int i = 0; i < WEFT__SERVER_STAGES; i++)
        weft__strbuf_printf(out, "%s\"%s\":%.6f", i ? "," : "", names[i], (double)s->ns[i] / 1e6);
    weft__strbuf_puts(out, "}");
}
