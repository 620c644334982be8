// SPDX-License-Identifier: Apache-2.0
/* learn.c: what a server keeps to learn from, where it was given a folder for that (learn/store.h): answers as they
 * end, what is said of them, and the tenant's corrections in the tenant's next prompts. Without a folder nothing of
 * this does anything.
 *
 * Threads: prompts and endpoints on workers; tokens and answers where response.c has them. Answers never wait for
 * the disk; who gives feedback does. */
#include "server/learn.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "learn/feedback.h"
#include "learn/version.h"
#include "server/learned.h"
#include "server/memories.h"
#include "server/router.h"

_Static_assert((int)WEFT__MEMORY_FOUND <= (int)WEFT__API_MEMORIES, "all have room");

enum {
    BLOCK_MOST = 4096,              /* bytes of corrections in a prompt */
    SOURCE_MOST = 1 << 20,          /* of what was asked, to be kept as text */
    TRIES = 2 * WEFT__MEMORY_FOUND, /* of a block that leaves room for the answer */
    RETRY_S = 60                    /* when feedback was too much */
};

/* ---- prompts ---- */

/* A message with the block before its text; NULL: no memory. */
static weft__json *message_with(const char *role, const weft__strbuf *block, const char *text, size_t n)
{
    weft__strbuf all = {0};
    weft__json *m = weft__json_new_object();
    weft__strbuf_put(&all, block->data, block->len);
    if (n) weft__strbuf_puts(&all, "\n\n");
    weft__strbuf_put(&all, text, n);
    if (m && (all.failed || !weft__json_set(m, "role", weft__json_new_string(role, strlen(role))) ||
              !weft__json_set(m, "content", weft__json_new_string(all.data, all.len))))
        weft__json_free(&m);
    weft__strbuf_free(&all);
    return m;
}

/* The messages with the block in the system's, which is the first then, or in the user's first; NULL: there is none, or
 * no memory. */
static weft__json *messages_with(const weft__json *flat, const weft__strbuf *block, int is_system)
{
    weft__json *out = weft__json_new_array();
    const weft__json *first = weft__json_at(flat, 0);
    const char *text = NULL;
    size_t n = 0;
    const int has_system = weft__json_is(weft__json_get(first, "role"), "system") &&
                           weft__json_string(weft__json_get(first, "content"), &text, &n);
    int is_placed = is_system, ok = out != NULL;
    if (ok && is_system)
        ok = weft__json_append(out, message_with("system", block, has_system ? text : "", has_system ? n : 0));
    for (size_t i = is_system && has_system; ok && i < weft__json_size(flat); i++) {
        const weft__json *m = weft__json_at(flat, i);
        const int is_it = !is_placed && weft__json_is(weft__json_get(m, "role"), "user") &&
                          weft__json_string(weft__json_get(m, "content"), &text, &n);
        is_placed |= is_it;
        ok = weft__json_append(out, is_it ? message_with("user", block, text, n) : weft__json_copy(m));
    }
    if (!ok || !is_placed) weft__json_free(&out);
    return out;
}

/* The prompt leaves as much room for the answer as that asks for, or a quarter. */
static int leaves_room(const weft__api_prompt_model *with, const weft__api_params *params,
                       const weft__api_prompts *prompts)
{
    const int64_t wanted = params->max_tokens > 0 ? params->max_tokens : with->n_ctx / 4;
    return prompts->items[0].n + wanted <= with->n_ctx;
}

/* The prompt with the block: as the system's where the template takes one, else in the user's first message. 0:
 * there is no such prompt. */
static int make_with(const weft__api_prompt_model *with, weft__api_params *params, const weft__strbuf *block,
                     weft__api_prompts *out)
{
    weft__json *const own = params->flat;
    for (int is_system = 1; is_system >= 0; is_system--) {
        weft__api_error ignored = {0};
        params->flat = messages_with(own, block, is_system);
        const int ok = params->flat && weft__api_prompts_chat(with, params, out, &ignored);
        weft__json_free(&params->flat);
        params->flat = own;
        if (ok && leaves_room(with, params, out)) return 1;
        weft__api_prompts_free(out);
        if (ok) break;
    }
    return 0;
}

/* Rooms for memories, each of which has other ones than the next, the most first; the last of them may have none. */
typedef struct memory_rooms {
    size_t room[TRIES];
    int n;
} memory_rooms;

/* Puts the best memories that have room into the block, behind its first n_block bytes; what was there goes. 0 with the
 * error filled: there are no memories here. */
static int put_memories(weft_server *s, const char *tenant, const weft__api_params *params, size_t room, size_t n_block,
                        weft__strbuf *block, weft__memory_told *told, weft__api_error *error)
{
    block->len = n_block;
    return weft__server_memories_block(s, tenant, params, room, block, told, error);
}

/* Rooms for fewer memories than the block has; asks what there is, and makes no prompt. */
static memory_rooms less_room(weft_server *s, const char *tenant, const weft__api_params *params, size_t n_block,
                              weft__strbuf *block)
{
    memory_rooms out = {.n = 0};
    weft__memory_told told = {.n = 1};
    weft__api_error ignored = {0};
    while (told.n && out.n < TRIES - 1) {
        const size_t most = block->len - n_block - (n_block ? 2 : 0) - 1;
        if (!put_memories(s, tenant, params, most, n_block, block, &told, &ignored)) told.n = 0;
        if (told.n || n_block) out.room[out.n++] = told.n ? most : 0;
    }
    return out;
}

/* The prompt with the corrections in `block` and fewer of the best memories than are in it, as many as leave room for
 * the answer: by halves, so that of many only a few prompts are made. 0: there is none. */
static int make_smaller(weft_server *s, const char *tenant, const weft__api_prompt_model *with,
                        weft__api_params *params, size_t n_block, weft__strbuf *block, weft__memory_told *told,
                        weft__api_prompts *out)
{
    const memory_rooms rooms = less_room(s, tenant, params, n_block, block);
    int has = 0;
    for (int from = 0, to = rooms.n; from < to;) {
        const int at = (from + to) / 2;
        weft__api_prompts made = {0};
        weft__api_error ignored = {0};
        weft__memory_told here = {.n = 0};
        block->len = n_block;
        if (rooms.room[at]) put_memories(s, tenant, params, rooms.room[at], n_block, block, &here, &ignored);
        const int fits = !block->failed && make_with(with, params, block, &made);
        if (fits && has) weft__api_prompts_free(out);
        if (fits) *out = made, *told = here;
        has |= fits;
        if (fits) to = at;
        else from = at + 1;
    }
    return has;
}

/* What was asked, as it is kept. */
static void keep_source(const weft__api_params *params, weft__api_prompts *out)
{
    weft__strbuf source = {0};
    if (params->flat) {
        weft__strbuf_puts(&source, "{\"messages\":");
        weft__json_write(&source, params->flat, WEFT__JSON_COMPACT);
        if (params->tools.offered.len) weft__strbuf_puts(&source, ",\"tools\":");
        weft__strbuf_put(&source, params->tools.offered.data, params->tools.offered.len);
    } else if (weft__json_kind_of(params->prompt) == WEFT__JSON_STRING) {
        weft__strbuf_puts(&source, "{\"prompt\":");
        weft__json_write(&source, params->prompt, WEFT__JSON_COMPACT);
    }
    if (source.len) weft__strbuf_putc(&source, '}');
    if (source.failed || source.len > SOURCE_MOST) weft__strbuf_free(&source);
    out->source = source.data;
}

int weft__server_learn_chat(weft__server_model *m, const weft__server_caller *who, const char *tenant,
                            const weft__api_prompt_model *with, weft__api_params *params, weft__api_prompts *out,
                            weft__api_error *error)
{
    weft_server *s = m->server;
    weft__strbuf block = {0};
    int32_t n = 0;
    const size_t room = with->n_ctx < BLOCK_MOST ? (size_t)with->n_ctx : BLOCK_MOST;
    weft__memory_told told;
    const int is_base = weft__server_learned_is_base(m, params->model); /* to be held against what was learned */
    /* a store that fails costs corrections, not answers */
    if (s->learn && !is_base && weft__learn_notes(s->learn, tenant, room, &block, &n, NULL)) n = 0;
    const size_t n_block = block.len;
    if (!put_memories(s, tenant, params, WEFT__SERVER_MEMORIES_ROOM, n_block, &block, &told, error)) {
        weft__strbuf_free(&block);
        return 0;
    }
    /* most often all of it fits */
    int has = (n || told.n) && !block.failed && make_with(with, params, &block, out);
    if (!has && told.n) has = make_smaller(s, tenant, with, params, n_block, &block, &told, out);
    weft__strbuf_free(&block);
    const int ok = has || weft__api_prompts_chat(with, params, out, error);
    out->n_notes = has ? n : 0;
    out->n_memories = has ? told.n : 0;
    memcpy(out->memories, told.number, (size_t)out->n_memories * sizeof *told.number);
    if (!ok || !s->learn || !params->store) return ok;
    if (!who->again.body) keep_source(params, out);
    else if (who->again.source) out->source = weft__strdup(who->again.source);
    return ok;
}

void weft__server_learn_text(weft__server_model *m, const weft__api_params *params, weft__api_prompts *out)
{
    if (m->server->learn && params->store && out->n == 1) keep_source(params, out);
}

/* ---- answers ---- */

void weft__server_learn_begin(weft__server_response *g)
{
    g->learn.on = g->server->learn && g->params.store && !g->embedding;
    if (g->learn.on) g->learn.began_ms = weft__clock_unix_ms();
}

/* What answers; "": several adapters, or none. */
static const char *answering(const weft__server_response *g)
{
    return *g->params.adapter ? g->params.adapter : strchr(g->adapters, '+') ? "" : g->adapters;
}

/* A version that was learned says so itself, whatever is kept. */
static void name_version(weft__server_response *g, const char *name)
{
    char lineage[WEFT__VERSION_NAME];
    if (!weft__version_read_name(name, lineage, &g->learn.version)) return;
    if (*g->params.adapter || g->params.lora_given) return; /* it was asked for by name */
    /* as it may be asked for again: of a preset, and of any other name, by the model's own */
    const char *model = weft__server_is_model_name(g->model, g->answer.model) ? g->params.model : NULL;
    snprintf(g->answer.model, sizeof g->answer.model, "%.130s@%lld", model && *model ? model : g->model->name,
             (long long)g->learn.version);
}

void weft__server_learn_leased(weft__server_response *g)
{
    weft_engine_adapter a = {.size = sizeof a};
    const char *name = answering(g);
    if (weft__server_learned_is_name(name)) name_version(g, name);
    else name = g->params.adapter;
    if (!g->learn.on || !*name || weft_engine_adapter_find(g->model->engine, name, &a, NULL)) return;
    if (!weft__server_learned_is_name(name)) g->learn.version = a.version;
    if (a.known) memcpy(g->learn.content, a.id, sizeof g->learn.content);
}

void weft__server_learn_token(weft__server_choice *c, const weft_event *e)
{
    if (!c->gen->learn.on || c->kept_failed) return;
    if (!weft__grow(&c->kept, &c->cap_kept, c->n_kept + 1, sizeof *c->kept)) c->kept_failed = 1;
    else c->kept[c->n_kept++] = (weft__server_kept_token){e->token, e->logprob};
}

static void write_settings(const weft__api_params *a, weft__strbuf *out)
{
    const struct {
        const char *name;
        double value;
    } all[] = {{"temperature", a->temperature},
               {"top_k", (double)a->top_k},
               {"top_p", a->top_p},
               {"min_p", a->min_p},
               {"repeat_penalty", a->repeat_penalty},
               {"presence_penalty", a->presence_penalty},
               {"frequency_penalty", a->frequency_penalty}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        weft__strbuf_printf(out, "%c\"%s\":", i ? ',' : '{', all[i].name);
        weft__json_write_double(out, all[i].value);
    }
    weft__strbuf_putc(out, '}');
}

void weft__server_learn_answer(weft__server_choice *c)
{
    static const char *const names[] = {"stop", "length", "stop", "cancelled", "failed"};
    weft__server_response *g = c->gen;
    weft__strbuf settings = {0};
    const weft__strbuf *text = c->out->parsed ? &c->out->parsed->content : &c->out->text;
    if (!g->learn.on || c->kept_failed || c->is_kept || c->out->status || c->out->is_left_out ||
        c->out->finish == WEFT_FINISH_CANCELLED || c->out->finish == WEFT_FINISH_FAILED)
        return;
    c->is_kept = 1;
    int32_t *answer = weft__alloc_array(c->n_kept, sizeof *answer);
    float *logprobs = weft__alloc_array(c->n_kept, sizeof *logprobs);
    for (size_t i = 0; answer && logprobs && i < c->n_kept; i++) {
        answer[i] = c->kept[i].token;
        logprobs[i] = c->kept[i].logprob;
    }
    write_settings(&g->params, &settings);
    const weft__learn_record r = {.tenant = g->tenant,
                                  .id = g->answer.id,
                                  .choice =
                                      c->out->index / (g->params.n_best > 1 ? (int)g->params.n_best : 1), /* as told */
                                  .time_ms = g->learn.began_ms,
                                  .model = g->model->name,
                                  .base = g->model->fingerprint,
                                  .adapter = g->adapters,
                                  .version = g->learn.version,
                                  .content = g->learn.content,
                                  .settings = settings.data,
                                  .seed = c->out->seed,
                                  .finish = names[c->out->finish],
                                  .prompt = c->out->prompt->ids,
                                  .n_prompt = c->out->prompt->n,
                                  .answer = answer,
                                  .logprobs = logprobs,
                                  .n_answer = (int32_t)c->n_kept,
                                  .n_notes = g->prompts.n_notes,
                                  .source = g->prompts.source,
                                  .text = text->data,
                                  .n_text = text->len};
    if (answer && logprobs && !settings.failed) weft__learn_put(g->server->learn, &r);
    weft__free(answer);
    weft__free(logprobs);
    weft__strbuf_free(&settings);
}

/* ---- endpoints ---- */

static int is_learning(const weft_server *s, weft__api_error *error)
{
    return s->learn || weft__api_error_set(error, 501, NULL,
                                           "this server keeps nothing to learn from; weft serve --learn DIR does");
}

int weft__server_learn_fault(weft_status st, const weft_error *err, const char *field, weft__api_error *error)
{
    const int status = st == WEFT_NOT_FOUND                       ? 404
                       : st == WEFT_STATE                         ? 409
                       : st == WEFT_BUSY                          ? 429
                       : st == WEFT_EXISTS                        ? 422 /* an idempotency key with something else */
                       : st == WEFT_ARGUMENT || st == WEFT_FORMAT ? 400
                                                                  : 503;
    if (!st) return 1;
    weft__api_error_set(error, status, field && *field ? field : NULL, "%s", err->message);
    if (status == 429) error->retry_s = RETRY_S;
    return 0;
}

/* What the router and memories make of it, each once: also of what was said before, as whoever was killed in between
 * made nothing of it. An answer that had to be corrected was worth nothing. */
static void pass_on(weft_server *s, const char *tenant, const weft__learn_feedback *f, int64_t event)
{
    const int is_wrong = f->kind == WEFT__LEARN_CORRECTION || f->kind == WEFT__LEARN_EDIT;
    weft__server_router_reward(s, tenant, f->id, is_wrong ? 0 : f->kind == WEFT__LEARN_PREFERRED ? 1 : f->value);
    if (f->kind == WEFT__LEARN_PREFERRED) weft__server_router_reward(s, tenant, f->over_id, 0);
    weft__server_memories_learn(s, tenant, event);
}

/* The key of a header, or of the body, into key, to which *out points then; they may not differ. */
static int read_key(const weft__http_request *r, char key[WEFT__LEARN_KEY], const char **out, weft__api_error *error)
{
    static const char name[] = "Idempotency-Key";
    const char *value = weft__http_header(r, name);
    weft_error err = {0};
    if (!value) return 1;
    if (weft__http_header_count(r, name) > 1) return weft__api_error_set(error, 400, name, "'%s' is given twice", name);
    if (weft__learn_key_read(value, key, &err))
        return weft__api_error_set(error, 400, name, "'%s' %s", name, err.message);
    if (*out && strcmp(*out, key))
        return weft__api_error_set(error, 400, "idempotency_key",
                                   "'idempotency_key' is one in the body and another in "
                                   "the header '%s'",
                                   name);
    *out = key;
    return 1;
}

static int take_feedback(weft_server *s, weft__http_request *r, const weft__server_caller *who, weft__strbuf *out,
                         weft__api_error *error)
{
    size_t n;
    char field[32], tenant[64], key[WEFT__LEARN_KEY];
    weft_error err = {0};
    weft__learn_said said = {0};
    weft__learn_told told;
    const char *body = weft__http_body(r, &n);
    if (!is_learning(s, error)) return 0;
    int ok = weft__server_learn_arguments(r, "user", NULL, error);
    if (ok) ok = weft__server_learn_fault(weft__learn_feedback_read(body, n, &said, field, &err), &err, field, error);
    if (ok) ok = weft__server_learn_one_name(r, "user", &said.user, error);
    if (ok) ok = read_key(r, key, &said.feedback.key, error);
    if (ok)
        ok = weft__server_learn_tenant(s, who, said.user, tenant, error) && weft__server_disk_enter(s, r, NULL, error);
    if (ok) {
        said.feedback.tenant = tenant;
        said.feedback.time_ms = weft__clock_unix_ms();
        const weft_status st = weft__learn_tell(s->learn, &said.feedback, &told, &err);
        ok = weft__server_learn_fault(st, &err, st == WEFT_EXISTS ? "idempotency_key" : NULL, error);
        if (st == WEFT_EXISTS) error->code = "idempotency_key_reused";
        if (ok) pass_on(s, tenant, &said.feedback, told.event);
        weft__server_disk_leave(s, r);
    }
    if (ok) {
        weft__strbuf_printf(out,
                            "{\"object\":\"feedback\",\"id\":%" PRId64 ",\"kind\":\"%s\",\"request_id\":", told.event,
                            weft__learn_kind_name(said.feedback.kind));
        weft__json_write_string(out, said.feedback.id, strlen(said.feedback.id));
        weft__strbuf_printf(out, ",\"index\":%d,\"repeated\":%s,\"in_prompts\":%s,\"adapter\":", said.feedback.choice,
                            told.is_repeated ? "true" : "false", told.is_note ? "true" : "false");
        weft__json_write_string(out, told.adapter, strlen(told.adapter));
        weft__strbuf_printf(out, ",\"version\":%" PRId64 "}", told.version);
    }
    weft__json_free(&said.root);
    return ok;
}

void weft__server_feedback(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    take_feedback(s, r, who, &out, &error);
    weft__server_reply_end(r, &out, &error);
}

/* {"user"} or, from an admin, {"tenant"}. */
static int take_forget(weft_server *s, weft__http_request *r, const weft__server_caller *who, weft__strbuf *out,
                       weft__api_error *error)
{
    size_t n;
    char tenant[64];
    weft_error err = {0};
    weft__learn_totals had = {0};
    weft__json *root = NULL;
    const char *body = weft__http_body(r, &n);
    if (!is_learning(s, error)) return 0;
    if (n && !weft__server_learn_fault(weft__json_parse(body, n, &root, &err), &err, NULL, error)) return 0;
    const int is_read = weft__server_learn_whose(s, r, who, root, NULL, tenant, error);
    weft__json_free(&root);
    if (!is_read || !weft__server_disk_enter(s, r, NULL, error)) return 0;
    const int ok = weft__server_learn_fault(weft__server_learned_forget(s, tenant, &had, &err), &err, NULL, error);
    weft__server_disk_leave(s, r);
    weft__server_memories_forget(s, tenant);
    weft__server_router_forget(s, tenant);
    if (ok)
        weft__strbuf_printf(out,
                            "{\"object\":\"deletion\",\"answers\":%" PRId64 ",\"events\":%" PRId64
                            ",\"memories\":%" PRId64 ",\"versions\":%" PRId64 "}",
                            had.n_answers, had.n_events, had.n_memories, had.n_versions);
    return ok;
}

void weft__server_learn_forget(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    take_forget(s, r, who, &out, &error);
    weft__server_reply_end(r, &out, &error);
}

/* ---- counters ---- */

static void learn_counter(weft__strbuf *out, const char *name, const char *help, const char *type)
{
    weft__strbuf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void weft__server_learn_metrics(const weft_server *s, weft__strbuf *out)
{
    weft__learn_health h;
    if (!s->learn) return;
    weft__learn_get_health(s->learn, &h);
    learn_counter(out, "weft_learn_answers_total", "Answers to learn from: kept, lost, or gone by age or bytes.",
                  "counter");
    weft__strbuf_printf(out,
                        "weft_learn_answers_total{what=\"kept\"} %" PRIu64
                        "\nweft_learn_answers_total{what=\"lost\"} %" PRIu64
                        "\nweft_learn_answers_total{what=\"expired\"} %" PRIu64 "\n",
                        h.n_kept, h.n_lost, h.n_expired);
    learn_counter(out, "weft_learn_feedback_total", "Feedback: taken, said before, or refused.", "counter");
    weft__strbuf_printf(out,
                        "weft_learn_feedback_total{what=\"taken\"} %" PRIu64
                        "\nweft_learn_feedback_total{what=\"repeated\"} %" PRIu64
                        "\nweft_learn_feedback_total{what=\"refused\"} %" PRIu64 "\n",
                        h.n_told, h.n_repeated, h.n_refused);
    learn_counter(out, "weft_learn_write_failures_total",
                  "Writes that failed: the disk is full, its folder may not be written to, or another reason.",
                  "counter");
    weft__strbuf_printf(out,
                        "weft_learn_write_failures_total{why=\"full\"} %" PRIu64
                        "\nweft_learn_write_failures_total{why=\"denied\"} %" PRIu64
                        "\nweft_learn_write_failures_total{why=\"other\"} %" PRIu64 "\n",
                        h.n_failed[WEFT__LEARN_FULL], h.n_failed[WEFT__LEARN_DENIED], h.n_failed[WEFT__LEARN_OTHER]);
    learn_counter(out, "weft_learn_waiting", "Records that wait to be kept.", "gauge");
    weft__strbuf_printf(out, "weft_learn_waiting %" PRIu64 "\n", h.n_waiting);
    learn_counter(out, "weft_witness_entries_total", "Entries that came into the witness log.", "counter");
    weft__strbuf_printf(out, "weft_witness_entries_total %" PRIu64 "\n", h.n_witnessed);
    learn_counter(out, "weft_witness_waiting", "Entries that are kept but not in the witness log yet.", "gauge");
    weft__strbuf_printf(out, "weft_witness_waiting %" PRIu64 "\n", h.n_unwitnessed);
    weft__server_learned_put_metrics(s, out);
}
