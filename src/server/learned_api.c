// SPDX-License-Identifier: Apache-2.0
/* learned_api.c: what was learned, over HTTP (learned.h): its history, going back, learning anew. Workers, which wait
 * for the store. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "learn/teach_store.h"
#include "server/learn.h"
#include "server/learned.h"

enum { VERSIONS_SHOWN = 100, TENANTS_TOLD = 5 /* by a message */ };

static int is_teaching(const weft_server *s, weft__api_error *error)
{
    return s->teacher || weft__api_error_set(error, 501, NULL,
                                             "this server does not learn by itself; weft serve MODEL --learn DIR "
                                             "--learn-share S does");
}

/* ---- the history ---- */

/* The newest, each as it is told: of those that were read the last VERSIONS_SHOWN. */
typedef struct learned_history {
    const char *base; /* the fingerprint of the weights that are served */
    weft__strbuf row[VERSIONS_SHOWN];
    size_t n;
    weft__strbuf anew; /* the last row of a consolidation */
} learned_history;

static void put_member(weft__strbuf *out, const weft__json *root, const char *name, int always)
{
    const char *text = "";
    size_t n = 0;
    if (!weft__json_string(weft__json_get(root, name), &text, &n) && !always) return;
    weft__strbuf_printf(out, ",\"%s\":", name);
    weft__json_write_string(out, text, n);
}

/* Of {"reason":"kl","kl":0.03}; without the second it was not measured; with "by" and "why" of a consolidation, the
 * events that came in by it, and with the "base" that it was made over. 1: of a consolidation. */
static int put_report(weft__strbuf *out, const char *report, const char *base)
{
    weft__json *root = NULL;
    double kl;
    if (report && *report && weft__json_parse(report, strlen(report), &root, NULL)) root = NULL;
    put_member(out, root, "reason", 1);
    if (weft__json_double(weft__json_get(root, "kl"), &kl)) {
        weft__strbuf_puts(out, ",\"kl\":");
        weft__json_write_double(out, kl);
    }
    put_member(out, root, "by", 0);
    put_member(out, root, "why", 0);
    const weft__json *came_in = weft__json_get(root, "came_in");
    for (size_t i = 0, n = weft__json_size(came_in); i < n; i++) {
        int64_t event = 0;
        weft__json_int(weft__json_at(came_in, i), &event);
        weft__strbuf_printf(out, "%s%" PRId64 "%s", i ? "," : ",\"came_in\":[", event, i + 1 == n ? "]" : "");
    }
    if (weft__teach_report_is_others(root, base)) weft__strbuf_puts(out, ",\"other_model\":true");
    const int is_anew = weft__json_get(root, "by") != NULL;
    weft__json_free(&root);
    return is_anew;
}

static int add_version(void *arg, const weft__learn_version *v)
{
    learned_history *h = arg;
    weft__strbuf *out = &h->row[h->n++ % VERSIONS_SHOWN];
    weft__version_what what;
    if (!weft__version_what_of(v->what, &what)) { /* others' business */
        h->n--;
        return 0;
    }
    out->len = 0;
    weft__strbuf_printf(out, "{\"version\":%" PRId64 ",\"what\":\"%s\",\"parent\":%s,\"content\":", v->version,
                        weft__version_what_name(what), *v->parent ? v->parent : "0");
    weft__json_write_string(out, v->content, strlen(v->content));
    const int is_anew = put_report(out, v->report, h->base);
    weft__strbuf_printf(out, ",\"first_event\":%" PRId64 ",\"last_event\":%" PRId64 ",\"time_ms\":%" PRId64 "}",
                        v->first_event, v->last_event, v->time_ms);
    if (is_anew) {
        h->anew.len = 0;
        weft__strbuf_put(&h->anew, out->data, out->len);
    }
    return out->failed;
}

/* The versions, and behind them what the last consolidation became, and when there will be one by itself. */
static weft_status put_history(weft_server *s, const char *tenant, weft__strbuf *out, weft_error *err)
{
    weft__teach_night night;
    learned_history *h = weft__alloc_zero(1, sizeof *h);
    if (!h) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the history");
    h->base = s->models.first->fingerprint;
    weft_status st = weft__learn_versions(s->learn, tenant, NULL, add_version, h, err);
    const size_t n = h->n < VERSIONS_SHOWN ? h->n : VERSIONS_SHOWN;
    for (size_t i = 0; i < n; i++) {
        const weft__strbuf *row = &h->row[(h->n - 1 - i) % VERSIONS_SHOWN];
        if (i) weft__strbuf_putc(out, ',');
        weft__strbuf_put(out, row->data, row->len);
        out->failed |= row->failed;
    }
    weft__teach_store_night(s->teacher, &night);
    weft__strbuf_puts(out, "],\"consolidation\":{");
    if (night.at >= 0)
        weft__strbuf_printf(out, "\"at\":\"%02d:%02d\",\"next_ms\":%" PRId64 ",", night.at / 60, night.at % 60,
                            night.next_ms);
    weft__strbuf_puts(out, "\"last\":");
    weft__strbuf_puts(out, h->anew.len ? "" : "null");
    weft__strbuf_put(out, h->anew.data, h->anew.len);
    out->failed |= h->anew.failed;
    weft__strbuf_free(&h->anew);
    for (size_t i = 0; i < VERSIONS_SHOWN; i++) weft__strbuf_free(&h->row[i]);
    weft__free(h);
    return st;
}

/* The current version's number; 0: the base. */
static int64_t current_of(weft_server *s, const char *tenant)
{
    char full[WEFT__VERSION_FULL_NAME], name[WEFT__VERSION_NAME];
    int64_t version = 0;
    if (weft__teach_store_current(s->teacher, tenant, full)) weft__version_read_name(full, name, &version);
    return version;
}

static int put_learning(weft_server *s, const char *tenant, weft__strbuf *out, weft__api_error *error)
{
    char name[WEFT__VERSION_NAME];
    weft__learn_totals n = {0};
    weft_error err = {0};
    weft__teach_store_hold(s->teacher); /* what is told is what a request would get */
    weft__teach_store_name(s->teacher, tenant, name);
    weft__strbuf_printf(out,
                        "{\"object\":\"learning\",\"on\":true,\"name\":\"%s\",\"current\":%" PRId64
                        ",\"waiting\":%d,\"versions\":[",
                        name, current_of(s, tenant), weft__teach_store_waiting(s->teacher, tenant));
    weft_status st = put_history(s, tenant, out, &err);
    if (!st && (st = weft__learn_count(s->learn, tenant, &n, &err)) == WEFT_NOT_FOUND) st = WEFT_OK;
    weft__teach_store_go_on(s->teacher);
    weft__strbuf_printf(out,
                        "},\"counts\":{\"answers\":%" PRId64 ",\"events\":%" PRId64 ",\"memories\":%" PRId64
                        ",\"versions\":%" PRId64 "}}",
                        n.n_answers, n.n_events, n.n_memories, n.n_versions);
    return weft__server_learn_fault(st, &err, NULL, error);
}

/* ---- another tenant, by its name ---- */

typedef struct tenants_told {
    const char *wanted;
    int is_there;
    weft__strbuf names; /* of the first */
    size_t n;
} tenants_told;

static int tell_tenant(void *arg, const char *tenant)
{
    tenants_told *t = arg;
    t->is_there |= !strcmp(tenant, t->wanted);
    if (t->n++ < TENANTS_TOLD)
        weft__strbuf_printf(&t->names, "%s'%s'", t->names.len ? ", " : "",
                            *tenant ? tenant : WEFT__SERVER_LEARN_NO_KEY);
    return t->is_there;
}

/* Whom an admin names is one of those of whom something is kept; else it is a slip, and told with these. */
static int is_kept(weft_server *s, const weft__http_request *r, const char *tenant, weft__api_error *error)
{
    tenants_told all = {.wanted = tenant};
    weft_error err = {0};
    if (!weft__http_query(r, "tenant")) return 1;
    const int ok = weft__server_learn_fault(weft__learn_tenants(s->learn, tell_tenant, &all, &err), &err, NULL, error);
    if (ok && !all.is_there)
        weft__api_error_set(error, 404, "tenant", "nothing is kept of '%.63s'; there %s %s%s",
                            *tenant ? tenant : WEFT__SERVER_LEARN_NO_KEY, all.n > 1 ? "are" : "is",
                            all.names.len && !all.names.failed ? all.names.data : "nobody",
                            all.n > TENANTS_TOLD ? ", and others" : "");
    weft__strbuf_free(&all.names);
    return ok && all.is_there;
}

void weft__server_learned_show(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    char tenant[64];
    if (is_teaching(s, &error) && weft__server_learn_whose(s, r, who, NULL, NULL, tenant, &error) &&
        weft__server_disk_enter(s, r, NULL, &error)) {
        if (is_kept(s, r, tenant, &error)) put_learning(s, tenant, &out, &error);
        weft__server_disk_leave(s, r);
    }
    weft__server_reply_end(r, &out, &error);
}

/* ---- what people decide ---- */

/* The body, an object or nothing, and of whom it speaks; more: the member that it may have beside, or NULL. 0: refused;
 * *root is to be freed in any case. */
static int read_body(weft_server *s, weft__http_request *r, const weft__server_caller *who, const char *more,
                     weft__json **root, char tenant[64], weft__api_error *error)
{
    size_t n;
    const char *body = weft__http_body(r, &n);
    *root = NULL;
    return is_teaching(s, error) && (!n || weft__api_body_parse(body, n, root, error)) &&
           weft__server_learn_whose(s, r, who, *root, more, tenant, error);
}

/* -1 where nothing is said of it. */
static int read_to(const weft__json *root, int64_t *to, weft__api_error *error)
{
    const weft__json *v = weft__json_get(root, "to");
    *to = -1;
    if (!v || weft__json_kind_of(v) == WEFT__JSON_NULL) return 1;
    return (weft__json_int(v, to) && *to >= 0) ||
           weft__api_error_set(error, 400, "to", "'to' must be the number of a version, or 0 for the base alone");
}

void weft__server_learned_roll_back(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    weft__json *root;
    weft_error err = {0};
    char tenant[64], name[WEFT__VERSION_NAME];
    int64_t to, now = 0;
    if (read_body(s, r, who, "to", &root, tenant, &error) && read_to(root, &to, &error) &&
        weft__server_disk_enter(s, r, NULL, &error)) {
        const weft_status st = weft__teach_store_roll_back(s->teacher, tenant, to, &now, &err);
        weft__server_learn_fault(st, &err, st == WEFT_NOT_FOUND && to >= 0 ? "to" : NULL, &error);
        weft__server_disk_leave(s, r);
        weft__teach_store_name(s->teacher, tenant, name);
        weft__strbuf_printf(&out, "{\"object\":\"learning.rollback\",\"name\":\"%s\",\"current\":%" PRId64 "}", name,
                            now);
    }
    weft__json_free(&root);
    weft__server_reply_end(r, &out, &error);
}

void weft__server_learned_consolidate(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    weft__json *root;
    weft_error err = {0};
    char tenant[64];
    const int ok =
        read_body(s, r, who, NULL, &root, tenant, &error) &&
        weft__server_learn_fault(weft__teach_store_consolidate(s->teacher, tenant, &err), &err, NULL, &error);
    weft__json_free(&root);
    if (!ok) {
        weft__server_reply_end(r, &out, &error);
        return;
    }
    weft__strbuf_printf(&out, "{\"object\":\"learning.consolidate\",\"waiting\":%d}",
                        weft__teach_store_waiting(s->teacher, tenant));
    weft__server_reply_json(r, 202, &out);
    weft__http_release(r);
}
