// SPDX-License-Identifier: Apache-2.0
/* learned.c: see learned.h. The loop publishes on a thread of its own; requests ask what their tenant's version is, and
 * wait neither for it nor for the disk. */
#include "server/learned.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "base/log.h"
#include "learn/night.h"
#include "learn/teach_store.h"
#include "server/rules.h"

/* ---- life ---- */

static int busy(void *arg)
{
    return atomic_load(&((weft_server *)arg)->n_running) > 0;
}

static void learned_told(void *arg, const weft__version_row *row)
{
    weft__server_learned_follow(arg, row);
    /* for people: what became of it */
    if (row->what == WEFT__VERSION_REJECTED && strcmp(row->reason, weft__gate_reason_name(WEFT__GATE_NOT_BETTER)))
        weft__log(WEFT__LOG_WARN, "%s@%" PRId64 " was refused by the gate: %s", row->name, row->version, row->reason);
}

/* Learning, and adapters of which it makes more, are of the server's limit, as long as it runs. */
static weft_status take_memory(weft_server *s, weft__server_model *m, const weft__teach_store_params *t,
                               weft_error *err)
{
    uint64_t bytes = 0;
    if (!s->models.memory) return WEFT_OK;
    weft_status st = weft__teach_store_bytes(t, &bytes, err);
    if (st) return weft_fail_within(err, st, "learn_share: %s", m->name);
    pthread_mutex_lock(&s->models.lock);
    const uint64_t adapters = m->adapters_least ? 0 : m->settings.engine.adapter_bytes;
    m->adapters_least += adapters;
    m->reserved += adapters + bytes;
    const uint64_t all = m->reserved + m->kv_least;
    pthread_mutex_unlock(&s->models.lock);
    if (all <= s->models.memory) return WEFT_OK;
    return weft_fail(err, WEFT_NO_MEMORY,
                     "%s takes %.1f MB, of which learning takes %.1f and its adapters %.1f: more than the %.1f MB of "
                     "--memory; give more, or leave --learn-share out: 'weft learn teach' learns later what is kept",
                     m->name, (double)all / 1e6, (double)bytes / 1e6, (double)m->adapters_least / 1e6,
                     (double)s->models.memory / 1e6);
}

weft_status weft__server_learned_begin(weft_server *s, const weft_server_params *p, weft_error *err)
{
    weft__teach_store_params t;
    weft__server_model *m = s->models.first;
    const int at = p->learn_consolidate ? weft__night_read(p->learn_consolidate) : -1;
    if (p->learn_consolidate && at < 0)
        return weft_fail(err, WEFT_ARGUMENT,
                         "learn_consolidate '%.20s': must be a time of the day, from 00:00 to 23:59",
                         p->learn_consolidate);
    if (p->learn_consolidate && !(p->learn_share >= 0))
        return weft_fail(err, WEFT_ARGUMENT, "learn_consolidate: a server learns with learn_share alone");
    if (!(p->learn_share >= 0)) return WEFT_OK;
    if (p->learn_share > 1)
        return weft_fail(err, WEFT_ARGUMENT, "learn_share %g: must be from 0 to 1, or below 0: nothing is learned",
                         p->learn_share);
    if (!s->learn)
        return weft_fail(
            err, WEFT_ARGUMENT,
            "learn_share: what is learned from is kept in the folder of learn_dir (--learn DIR), and there "
            "is none");
    if (!m)
        return weft_fail(err, WEFT_ARGUMENT,
                         "learn_share: it is learned over the server's own model, and there are only others by name");
    weft__teach_store_params_default(&t);
    weft_status st = weft__teach_store_of_model(m->model, &t, err);
    if (st) return weft_fail_within(err, st, "learn_share: %s", m->name);
    t.loop.share = (float)p->learn_share;
    t.loop.tries_again = 1;
    t.loop.hooks = (weft__teach_hooks){.arg = s, .publish = weft__server_learned_make_ready, .busy = busy};
    t.base = m->fingerprint;
    t.consolidate_at = at;
    t.tells_new_alone = 1;
    t.told = learned_told;
    t.told_arg = s;
    st = take_memory(s, m, &t, err);
    if (!st) st = weft__server_given_begin(s, err);
    return st ? st : weft__teach_store_new(s->learn, &t, &s->teacher, err);
}

void weft__server_learned_end(weft_server *s)
{
    weft__teach_store_free(&s->teacher);
    weft__server_given_end(s);
}

/* ---- names ---- */

int weft__server_learned_is_name(const char *name)
{
    return strchr(name, '@') != NULL;
}

static weft__teach_store *teacher_of(const weft__server_model *m)
{
    return m == m->server->models.first ? m->server->teacher : NULL;
}

int weft__server_learned_may(const weft__server_model *m, const char *tenant, const char *name)
{
    if (!weft__server_learned_is_name(name)) return -1;
    return teacher_of(m) && weft__teach_store_may(teacher_of(m), tenant, name) > 0;
}

enum { OF = 256 /* bytes of the name before an '@' */ };

/* "NAME@7": 1, and the name and the number, which may be 0. */
static int split(const char *model, char name[OF], int64_t *version)
{
    const char *at = strrchr(model, '@');
    const size_t n = at ? strspn(at + 1, "0123456789") : 0;
    if (!n || n > 18 || at[1 + n] || (n > 1 && at[1] == '0') || at - model >= OF) return 0;
    snprintf(name, OF, "%.*s", (int)(at - model), model);
    *version = strtoll(at + 1, NULL, 10);
    return 1;
}

/* "MODEL@7" of this model, by any of its names. */
static int read_version(const weft__server_model *m, const char *model, int64_t *version)
{
    char name[OF];
    return split(model, name, version) && weft__server_is_model_name(m, name);
}

int weft__server_learned_may_name(const weft__server_model *m, const weft__server_caller *who, const char *model)
{
    char name[OF];
    int64_t version;
    return teacher_of(m) && split(model, name, &version) && weft__server_is_model_name(m, name) &&
           weft__server_may_use_model(who, name);
}

static const char lineage_prefix[] = "learned-";

/* "learned-3@7", and nothing else that has an '@': where any name is the model's, that is one, too. */
static int is_learned(const char *model, char own[OF], int64_t *version)
{
    return !strncmp(model, lineage_prefix, sizeof lineage_prefix - 1) && split(model, own, version);
}

int weft__server_learned_named(const weft__server_model *m, const char *tenant, const char *model,
                               char out[WEFT__API_ADAPTER_NAME])
{
    char own[WEFT__VERSION_NAME], said[OF];
    int64_t version;
    weft__teach_store *t = teacher_of(m);
    if (!t) return -1;
    out[0] = 0;
    if (read_version(m, model, &version)) {
        if (!version) return 1;
        if (!weft__teach_store_name(t, tenant, own)) return 0;
        weft__version_write_name(own, version, out);
    } else if (is_learned(model, said, &version)) {
        if (!version) return weft__server_learned_is_lineage(m, tenant, said);
        snprintf(out, WEFT__API_ADAPTER_NAME, "%s", model);
    } else {
        return -1;
    }
    return weft__teach_store_may(t, tenant, out) > 0;
}

int weft__server_learned_is_lineage(const weft__server_model *m, const char *tenant, const char *name)
{
    char own[WEFT__VERSION_NAME];
    return teacher_of(m) && weft__teach_store_name(teacher_of(m), tenant, own) && !strcmp(own, name);
}

/* What says something of versions: 1, and which, 0 for the base alone. */
static int says_version(const weft__server_model *m, const char *model, int64_t *version)
{
    char own[OF];
    return read_version(m, model, version) || is_learned(model, own, version);
}

int weft__server_learned_is_base(const weft__server_model *m, const char *model)
{
    int64_t version;
    return teacher_of(m) && model && says_version(m, model, &version) && !version;
}

weft__server_model *weft__server_learned_model(weft_server *s, const char *name)
{
    int64_t version;
    weft__server_model *m = s->models.first;
    return s->teacher && says_version(m, name, &version) ? m : NULL;
}

weft__server_model *weft__server_learned_model_of_lineage(weft_server *s, const char *name)
{
    const size_t n = sizeof lineage_prefix - 1;
    const int is_one = !strncmp(name, lineage_prefix, n) && name[n] && name[n + strspn(name + n, "0123456789")] == 0;
    return s->teacher && is_one ? s->models.first : NULL;
}

/* Embeddings are of the base, so that those of one day can be held against those of another. */
int weft__server_learned_meant(const weft__server_model *m, const weft__api_params *params, const char *tenant,
                               char out[WEFT__API_ADAPTER_NAME])
{
    int64_t version;
    weft__teach_store *t = teacher_of(m);
    if (!t || params->form == &weft__api_table_embeddings || params->form == &weft__api_table_embedding) return 0;
    if (params->model && says_version(m, params->model, &version)) return 0; /* the base alone */
    return weft__teach_store_current(t, tenant, out);
}

weft_status weft__server_learned_forget(weft_server *s, const char *tenant, weft__learn_totals *had, weft_error *err)
{
    if (!s->teacher) return weft__learn_forget(s->learn, tenant, had, err);
    weft_status st = weft__teach_store_forget(s->teacher, tenant, had, err);
    weft__server_learned_unload(s, tenant);
    return st;
}

/* ---- what is told of them ---- */

void weft__server_learned_name_versions(const weft__server_model *m, const char *tenant, const char *model, char *out,
                                        size_t room)
{
    enum { MOST = 6 };
    int64_t number[MOST], version;
    char name[OF];
    weft__teach_store *t = teacher_of(m);
    size_t at = 0;
    *out = 0;
    if (!t || !model || !says_version(m, model, &version) || !split(model, name, &version)) return;
    const int is_own = !weft__server_is_model_name(m, name);
    if (is_own && !weft__server_learned_is_lineage(m, tenant, name)) return;
    const size_t n = weft__teach_store_published(t, tenant, number, MOST);
    for (size_t i = 0; i < n && i < MOST && at < room; i++)
        at += (size_t)snprintf(out + at, room - at, "%s'%.60s@%" PRId64 "'", i ? ", " : "; of its versions there are ",
                               name, number[i]);
    if (at < room && n > MOST) at += (size_t)snprintf(out + at, room - at, ", %zu older ones", n - MOST);
    if (at < room)
        snprintf(out + at, room - at, "%s'%.60s@0', the base alone", n ? " and " : "; of its versions there is ", name);
}

void weft__server_learned_put_model(const weft__server_model *m, const char *tenant, const char *name,
                                    weft__strbuf *out)
{
    char full[WEFT__API_ADAPTER_NAME] = "", own[WEFT__VERSION_NAME], shown[160], content[WEFT__VERSION_CONTENT];
    int64_t version = 0;
    weft__teach_store *t = teacher_of(m);
    if (!t) return;
    const int is_current = !name || weft__server_learned_is_lineage(m, tenant, name);
    const int has =
        is_current ? weft__teach_store_current(t, tenant, full) : weft__server_learned_named(m, tenant, name, full) > 0;
    if (!has && !(name && is_current)) return;
    if (*full) weft__version_read_name(full, own, &version); /* else the base alone */
    snprintf(shown, sizeof shown, "%.120s@%" PRId64, m->name, version);
    weft__teach_store_content(t, tenant, full, content);
    weft__api_put_learned_model(out, name ? name : shown, m->name, m->server->began, version, content);
}

static void put_result(weft__strbuf *out, const char *result, int64_t n)
{
    weft__strbuf_printf(out, "weft_learn_versions_total{result=\"%s\"} %" PRId64 "\n", result, n);
}

void weft__server_learned_put_metrics(const weft_server *s, weft__strbuf *out)
{
    weft__teach_loop_stats stats;
    weft__teach_night night;
    if (!s->teacher) return;
    weft__teach_store_get_stats(s->teacher, &stats);
    weft__strbuf_puts(out,
                      "# HELP weft_learn_versions_total What became of versions: published, refused by the gate for "
                      "a reason, failed, or gone back to.\n# TYPE weft_learn_versions_total counter\n");
    put_result(out, "published", stats.by_reason[WEFT__GATE_PASSED]);
    for (int i = WEFT__GATE_PASSED + 1; i < WEFT__GATE_REASONS; i++)
        put_result(out, weft__gate_reason_name((weft__gate_reason)i), stats.by_reason[i]);
    put_result(out, "failed", stats.n_failed);
    put_result(out, "rolled_back", stats.n_rolled_back);
    weft__strbuf_printf(out,
                        "# HELP weft_learn_corrections_waiting Corrections that wait to be learned, with the one in "
                        "work.\n# TYPE weft_learn_corrections_waiting gauge\nweft_learn_corrections_waiting %" PRId64
                        "\n# HELP weft_learn_corrections_left_total Corrections of answers that another model gave: "
                        "nothing is learned of them.\n# TYPE weft_learn_corrections_left_total counter\n"
                        "weft_learn_corrections_left_total %" PRId64
                        "\n# HELP weft_learn_seconds_total Time of learning, its rests included.\n"
                        "# TYPE weft_learn_seconds_total counter\nweft_learn_seconds_total %.3f\n",
                        stats.n_waiting, weft__teach_store_n_others(s->teacher), stats.seconds);
    weft__teach_store_night(s->teacher, &night);
    if (night.at < 0) return;
    weft__strbuf_printf(out,
                        "# HELP weft_learn_consolidations_due_total Callers of whom all was to be learned anew at the "
                        "time of the day for that.\n# TYPE weft_learn_consolidations_due_total counter\n"
                        "weft_learn_consolidations_due_total %" PRId64
                        "\n# HELP weft_learn_consolidated_timestamp_seconds The last such time for which this process "
                        "has looked at all callers, one before its start included; 0: none.\n"
                        "# TYPE weft_learn_consolidated_timestamp_seconds gauge\n"
                        "weft_learn_consolidated_timestamp_seconds %" PRId64 "\n",
                        night.n_asked, night.done_ms / 1000);
}
