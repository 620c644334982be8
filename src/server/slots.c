// SPDX-License-Identifier: Apache-2.0
/* slots.c: slots as llama.cpp shows them: where a request runs, and the tokens of the one that ran there last, whose
 * keys and values can be saved under a name. Any thread; the engine's only under the lock for a moment.
 *
 * Whose a slot is: with API keys, the key's that filled it, and each key has names of its own in the store. Without
 * keys all slots and names are there for all, whatever `user` a request named: a caller of tenant "" may be any of
 * them. */
#include <string.h>
#include <stdio.h>

#include "api/objects.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "server/server.h"

weft_status weft__server_slots_begin(weft__server_slots *s, int32_t n, int32_t n_ctx, weft_error *err)
{
    s->n_ctx = n_ctx;
    s->all = weft__alloc_zero((size_t)n, sizeof *s->all);
    if (!s->all) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %d slots", n);
    for (; s->n < n; s->n++) {
        s->all[s->n].tokens = weft__alloc_array((size_t)n_ctx, sizeof(int32_t));
        if (!s->all[s->n].tokens) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %d slots", n);
        s->all[s->n].kv_type = WEFT_KV_OF_ENGINE;
    }
    return WEFT_OK;
}

void weft__server_slots_free(weft__server_slots *s)
{
    for (int32_t i = 0; i < s->n; i++) weft__free(s->all[i].tokens);
    weft__free(s->all);
    s->all = NULL;
    s->n = 0;
}

/* With the lock: how many hold something of this tenant's. */
static int32_t count_of(const weft__server_slots *s, const char *tenant)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n; i++) n += s->all[i].n_tokens && !strcmp(s->all[i].tenant, tenant);
    return n;
}

/* With the lock: does it hold something that this tenant may not touch? */
static int is_others(const weft__server_slot *slot, const char *tenant)
{
    return *tenant && slot->n_tokens && strcmp(slot->tenant, tenant);
}

/* With the lock: of those that are free, an empty one, or the one used least recently; with keys, of the tenant that
 * has most of them, so that a tenant that runs much pushes out nothing of one that runs little. -1: none is free. */
static int32_t least_used(const weft__server_slots *s, const char *tenant)
{
    int32_t at = -1, most = 0;
    for (int32_t i = 0; i < s->n; i++) {
        const weft__server_slot *slot = &s->all[i];
        if (slot->busy) continue;
        int32_t n = !s->have_owners   ? 0
                    : !slot->n_tokens ? INT32_MAX
                                      : count_of(s, slot->tenant) + !strcmp(slot->tenant, tenant);
        if (at < 0 || n > most || (n == most && slot->used < s->all[at].used)) {
            at = i;
            most = n;
        }
    }
    return at;
}

int32_t weft__server_slots_take(weft__server_slots *s, int32_t wanted, uint64_t task, const char *tenant,
                                const int32_t *prompt, int32_t n_prompt, int32_t max_tokens, int with_adapters,
                                uint32_t kv_type)
{
    pthread_mutex_lock(&s->lock);
    int ours = wanted >= 0 && wanted < s->n && !s->all[wanted].busy &&
               (!s->have_owners || !is_others(&s->all[wanted], tenant));
    int32_t at = ours ? wanted : least_used(s, tenant);
    if (at >= 0) {
        weft__server_slot *slot = &s->all[at];
        int32_t n = n_prompt < s->n_ctx ? n_prompt : s->n_ctx;
        slot->busy = 1;
        slot->task = task;
        snprintf(slot->tenant, sizeof slot->tenant, "%s", tenant);
        memcpy(slot->tokens, prompt, (size_t)n * sizeof *prompt);
        slot->n_tokens = slot->n_prompt = n;
        slot->n_decoded = slot->n_swaps = 0;
        slot->swap_bytes = 0;
        slot->swap_ms = 0;
        slot->max_tokens = max_tokens;
        slot->with_adapters = with_adapters;
        slot->kv_type = kv_type;
    }
    pthread_mutex_unlock(&s->lock);
    return at;
}

void weft__server_slots_token(weft__server_slots *s, int32_t at, const weft_event *e)
{
    if (at < 0) return;
    pthread_mutex_lock(&s->lock);
    weft__server_slot *slot = &s->all[at];
    if (slot->n_tokens < s->n_ctx) slot->tokens[slot->n_tokens++] = e->token;
    slot->n_decoded++;
    slot->n_swaps = e->n_swaps;
    slot->swap_bytes = e->swap_bytes;
    slot->swap_ms = e->swap_ms;
    pthread_mutex_unlock(&s->lock);
}

void weft__server_slots_give(weft__server_slots *s, int32_t at)
{
    if (at < 0) return;
    pthread_mutex_lock(&s->lock);
    s->all[at].busy = 0;
    s->all[at].used = ++s->n_uses;
    pthread_mutex_unlock(&s->lock);
}

int32_t weft__server_slots_write(weft__server_model *m, const weft__server_caller *who, weft__strbuf *out)
{
    weft__server_slots *s = &m->slots;
    char type[WEFT_KV_NAME_MAX];
    int32_t n_idle = 0;
    pthread_mutex_lock(&s->lock);
    weft__strbuf_putc(out, '[');
    for (int32_t i = 0; i < s->n; i++) {
        const weft__server_slot *slot = &s->all[i];
        n_idle += !slot->busy;
        weft__api_put_slot(
            out, &(weft__api_slot){
                     .id = i,
                     .n_ctx = s->n_ctx,
                     .guesses = weft_engine_spec(m->engine) != WEFT_SPEC_OFF,
                     .busy = slot->busy,
                     .hidden = !who->is_admin && is_others(slot, who->tenant),
                     .task = slot->task,
                     .n_tokens = slot->n_tokens,
                     .n_prompt = slot->n_prompt,
                     .n_decoded = slot->n_decoded,
                     .n_remain = slot->max_tokens < 0 ? -1 : slot->max_tokens - slot->n_decoded,
                     .kv_type = slot->kv_type == WEFT_KV_OF_ENGINE ? NULL : weft_kv_type_name(slot->kv_type, type),
                     .n_swaps = slot->n_swaps,
                     .swap_bytes = slot->swap_bytes,
                     .swap_ms = slot->swap_ms,
                 });
    }
    weft__strbuf_putc(out, ']');
    pthread_mutex_unlock(&s->lock);
    return n_idle;
}

enum { STORED_MAX_BYTES = WEFT__API_MAX_TENANT + 1 + WEFT__API_MAX_FILENAME };
_Static_assert(STORED_MAX_BYTES == 128, "what the store's names have at most");

/* A copy of the slot's tokens for a tenant that may have them, and their owner: what is cached of them is found by
 * that name. */
static weft_status copy_tokens(weft__server_slots *s, int32_t id, const char *tenant, int32_t **tokens, int32_t *n,
                               char owner[64], weft__api_error *error)
{
    weft_status st = WEFT_OK;
    pthread_mutex_lock(&s->lock);
    weft__server_slot *slot = &s->all[id];
    *n = slot->n_tokens;
    *tokens = NULL;
    if (slot->busy) st = WEFT_STATE;
    else if (!slot->n_tokens || is_others(slot, tenant)) st = WEFT_NOT_FOUND;
    else if (slot->with_adapters) st = WEFT_UNSUPPORTED;
    else {
        memcpy(owner, slot->tenant, sizeof slot->tenant);
        *tokens = weft__alloc_array((size_t)*n, sizeof **tokens);
        if (*tokens) memcpy(*tokens, slot->tokens, (size_t)*n * sizeof **tokens);
        else st = WEFT_NO_MEMORY;
    }
    pthread_mutex_unlock(&s->lock);
    if (st == WEFT_STATE) weft__api_error_set(error, 409, "id_slot", "slot %d is running a request", id);
    else if (st == WEFT_NOT_FOUND)
        weft__api_error_set(error, 400, "id_slot", "slot %d holds nothing of yours to save", id);
    else if (st == WEFT_UNSUPPORTED)
        weft__api_error_set(error, 400, "id_slot",
                            "slot %d ran with adapters; only what the model alone has computed can be saved", id);
    else if (st) weft__api_error_set(error, 503, NULL, "no memory for the tokens of slot %d", id);
    return st;
}

static double ms_since(uint64_t began_ns)
{
    return (double)(weft__clock_ns() - began_ns) / 1e6;
}

/* What the server's disk or the file there is to blame for is no error of the request. limit: the HTTP status of a
 * limit. */
static void disk_fault(weft__api_error *error, weft_status status, int limit, const char *message)
{
    weft__api_error_of(error, status == WEFT_FORMAT ? WEFT_IO : status, message);
    if (status == WEFT_UNSUPPORTED) error->status = 501; /* no store, or of another version */
    if (status == WEFT_LIMIT) error->status = limit;
}

static weft_status save(weft__server_model *m, int32_t id, const char *tenant, const char *filename, const char *stored,
                        weft__strbuf *out, weft__api_error *error)
{
    weft_error err = {0};
    char owner[64];
    int32_t *tokens, n, n_saved = 0;
    uint64_t n_bytes = 0, began = weft__clock_ns();
    weft_status st = copy_tokens(&m->slots, id, tenant, &tokens, &n, owner, error);
    if (st) return st;
    st = weft_engine_save(m->engine, owner, tokens, n, stored, &n_saved, &n_bytes, &err);
    weft__free(tokens);
    if (st) disk_fault(error, st, 507, err.message);
    else weft__api_put_slot_saved(out, id, filename, n_saved, n_bytes, ms_since(began));
    return st;
}

/* With the lock: the error of a slot that may not be emptied, or WEFT_OK. */
static weft_status check_erase(const weft__server_slot *slot, int32_t id, const char *tenant, weft__api_error *error)
{
    int busy = slot->busy, other = is_others(slot, tenant);
    if (busy) weft__api_error_set(error, 409, "id_slot", "slot %d is running a request", id);
    else if (other) weft__api_error_set(error, 400, "id_slot", "slot %d holds nothing of yours to erase", id);
    return busy || other ? WEFT_STATE : WEFT_OK;
}

/* With the lock: the error of a slot that may not be restored over, or WEFT_OK. Another's may be where a request of
 * this tenant's would get it: otherwise the first to fill all slots would keep all others from what they saved. */
static weft_status check_restore(const weft__server_slots *s, int32_t id, const char *tenant, weft__api_error *error)
{
    const weft__server_slot *slot = &s->all[id];
    int busy = slot->busy;
    int32_t next = !busy && is_others(slot, tenant) ? least_used(s, tenant) : id;
    if (busy) weft__api_error_set(error, 409, "id_slot", "slot %d is running a request", id);
    else if (next != id)
        weft__api_error_set(error, 400, "id_slot",
                            "slot %d holds nothing of yours to restore over; slot %d may be restored over", id, next);
    return busy || next != id ? WEFT_STATE : WEFT_OK;
}

/* The slot holds these tokens now. */
static weft_status slots_fill(weft__server_slots *s, int32_t id, const char *tenant, const int32_t *tokens, int32_t n,
                              weft__api_error *error)
{
    weft__server_slot *slot = &s->all[id];
    pthread_mutex_lock(&s->lock);
    weft_status st = check_restore(s, id, tenant, error); /* a request may have come meanwhile */
    if (!st) {
        slot->n_prompt = slot->n_decoded = slot->with_adapters = 0;
        slot->kv_type = WEFT_KV_OF_ENGINE; /* the engine knows */
        slot->used = ++s->n_uses;
        slot->n_tokens = n < s->n_ctx ? n : s->n_ctx;
        memcpy(slot->tokens, tokens, (size_t)slot->n_tokens * sizeof *tokens);
        snprintf(slot->tenant, sizeof slot->tenant, "%s", tenant);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

static weft_status restore(weft__server_model *m, int32_t id, const char *tenant, const char *filename,
                           const char *stored, weft__strbuf *out, weft__api_error *error)
{
    weft__server_slots *s = &m->slots;
    weft_error err = {0};
    int32_t n = 0;
    uint64_t n_bytes = 0, began = weft__clock_ns();
    pthread_mutex_lock(&s->lock);
    weft_status st = check_restore(s, id, tenant, error);
    pthread_mutex_unlock(&s->lock);
    if (st) return st;
    int32_t *tokens = weft__alloc_array((size_t)s->n_ctx, sizeof *tokens);
    if (!tokens) {
        weft__api_error_set(error, 503, NULL, "no memory for the tokens of slot %d", id);
        return WEFT_NO_MEMORY;
    }
    st = weft_engine_restore(m->engine, stored, tokens, s->n_ctx, &n, &n_bytes, &err);
    if (st) disk_fault(error, st, 503, err.message);
    else st = slots_fill(s, id, tenant, tokens, n, error);
    weft__free(tokens);
    if (!st) weft__api_put_slot_restored(out, id, filename, n, n_bytes, ms_since(began));
    return st;
}

/* What was saved under a name, whatever is in the slot. */
static weft_status erase_saved(weft__server_model *m, int32_t id, const char *filename, const char *stored,
                               weft__strbuf *out, weft__api_error *error)
{
    weft_error err = {0};
    weft_status st = weft_engine_erase(m->engine, stored, &err);
    if (st) disk_fault(error, st, 503, err.message);
    else weft__api_put_slot_erased(out, id, filename, 0);
    return st;
}

static weft_status erase(weft__server_slots *s, int32_t id, const char *tenant, weft__strbuf *out,
                         weft__api_error *error)
{
    pthread_mutex_lock(&s->lock);
    weft__server_slot *slot = &s->all[id];
    int32_t n = slot->n_tokens;
    weft_status st = check_erase(slot, id, tenant, error);
    if (!st) {
        slot->n_tokens = slot->n_prompt = slot->n_decoded = 0;
        slot->kv_type = WEFT_KV_OF_ENGINE;
        slot->used = 0;
    }
    pthread_mutex_unlock(&s->lock);
    if (!st) weft__api_put_slot_erased(out, id, NULL, n);
    return st;
}

weft_status weft__server_slot_action(weft__server_model *m, const weft__http_request *r, int32_t id, const char *tenant,
                                     const char *action, const char *filename, weft__strbuf *out,
                                     weft__api_error *error)
{
    if (!strcmp(action, "erase") && !filename) return erase(&m->slots, id, tenant, out, error);
    char stored[STORED_MAX_BYTES + 1]; /* those of a key begin with its tenant */
    if (!weft__path_is_plain_name(filename, WEFT__API_MAX_FILENAME)) {
        weft__api_error_set(error, 400, "filename",
                            "'filename' must be a name of 1 to %d letters, digits, '.', '_' and '-', without a path",
                            WEFT__API_MAX_FILENAME);
        return WEFT_ARGUMENT;
    }
    snprintf(stored, sizeof stored, "%s%s%s", tenant, *tenant ? "." : "", filename);
    weft_status st;
    if (!weft__server_disk_enter(m->server, r, "action", error)) return WEFT_BUSY;
    if (!strcmp(action, "erase")) st = erase_saved(m, id, filename, stored, out, error);
    else if (!strcmp(action, "save")) st = save(m, id, tenant, filename, stored, out, error);
    else st = restore(m, id, tenant, filename, stored, out, error);
    weft__server_disk_leave(m->server, r);
    return st;
}
