// SPDX-License-Identifier: Apache-2.0
/* learn_history.c: see learn_history.h. */
#include "learn_history.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "learn/version.h"
#include "terminal.h"

enum { ID_WIDTH = 36, ADAPTER_WIDTH = 16 };

/* A table's head is printed with its first row. */
typedef struct history_tables {
    int as_json;
    int64_t n_events, n_versions;
} history_tables;

const char *learn_time_text(int64_t ms, char out[32])
{
    const time_t t = (time_t)(ms / 1000);
    struct tm tm;
    if (!ms || !gmtime_r(&t, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M", &tm)) snprintf(out, 32, "-");
    return out;
}

/* ---- what was said ---- */

static void event_as_json(const weft__learn_event *e)
{
    weft__strbuf text = {0};
    if (e->text) weft__json_write_string(&text, e->text, e->n_text);
    printf("{\"event\":%" PRId64 ",\"time_ms\":%" PRId64 ",\"kind\":\"%s\",\"request_id\":\"%s\",\"index\":%d,"
           "\"version\":%" PRId64 ",\"value\":%.17g,\"text\":%s}\n",
           e->event, e->time_ms, weft__learn_kind_name(e->kind), e->answer.id, e->answer.choice, e->answer.version,
           e->value, text.data ? text.data : "null");
    weft__strbuf_free(&text);
}

static int print_event(void *arg, const weft__learn_event *e)
{
    history_tables *h = arg;
    char when[32], shown[80], name[WEFT__VERSION_FULL_NAME];
    if (h->as_json) return event_as_json(e), 0;
    if (!h->n_events++)
        printf("%7s  %-16s  %-10s  %-*s  %5s  %-*s  %s\n", "event", "time (UTC)", "kind", ID_WIDTH, "answer", "index",
               ADAPTER_WIDTH, "by", "what was said");
    if (*e->answer.adapter) weft__version_write_name(e->answer.adapter, e->answer.version, name);
    printf("%7" PRId64 "  %-16s  %-10s  %-*s  %5d  %-*s ", e->event, learn_time_text(e->time_ms, when),
           weft__learn_kind_name(e->kind), ID_WIDTH, e->answer.id, e->answer.choice, ADAPTER_WIDTH,
           *e->answer.adapter ? name : "the base");
    if (e->kind >= WEFT__LEARN_THUMB) printf(" %g", e->value);
    if (e->over.id) printf(" over %s %d", e->over.id, e->over.choice);
    if (e->text) printf(" %s", weft__utf8_show(shown, sizeof shown, e->text, e->n_text));
    putchar('\n');
    return 0;
}

/* ---- what became of the adapter ---- */

/* NULL: there is none, or it is no JSON. */
static weft__json *report_of(const weft__learn_version *v)
{
    weft__json *report = NULL;
    return *v->report && !weft__json_parse(v->report, strlen(v->report), &report, NULL) ? report : NULL;
}

static void version_as_json(const weft__learn_version *v)
{
    weft__strbuf name = {0};
    weft__json *report = report_of(v);
    weft__json_write_string(&name, v->adapter, strlen(v->adapter));
    printf("{\"adapter\":%s,\"version\":%" PRId64 ",\"what\":\"%s\",\"content\":\"%s\",\"time_ms\":%" PRId64
           ",\"report\":%s}\n",
           name.data ? name.data : "null", v->version, v->what, v->content, v->time_ms, report ? v->report : "null");
    weft__json_free(&report);
    weft__strbuf_free(&name);
}

/* A member of the report that is a text. */
static void print_member(const weft__json *report, const char *name)
{
    const char *text;
    size_t n;
    if (!weft__json_string(weft__json_get(report, name), &text, &n) || !n) return;
    putchar(' ');
    print_clean(stdout, text, n, 0);
}

static int print_version(void *arg, const weft__learn_version *v)
{
    history_tables *h = arg;
    char when[32], name[WEFT__VERSION_FULL_NAME], kl[32] = "-", events[48] = "-";
    double value;
    if (h->as_json) return version_as_json(v), 0;
    if (!h->n_versions++)
        printf("%s%-*s  %-16s  %-11s  %-12s  %8s  %-11s  %s\n", h->n_events ? "\n" : "", ADAPTER_WIDTH, "version",
               "time (UTC)", "what", "content", "KL", "events", "why");
    weft__json *report = report_of(v);
    weft__version_write_name(v->adapter, v->version, name);
    if (weft__json_double(weft__json_get(report, "kl"), &value) && isfinite(value))
        snprintf(kl, sizeof kl, "%.4f", value);
    if (v->last_event) snprintf(events, sizeof events, "%" PRId64 " to %" PRId64, v->first_event, v->last_event);
    printf("%-*s  %-16s  %-11s  %-12.12s  %8s  %-11s ", ADAPTER_WIDTH, name, learn_time_text(v->time_ms, when), v->what,
           *v->content ? v->content : "-", kl, events);
    print_member(report, "reason");
    print_member(report, "by");
    print_member(report, "why");
    const weft__json *came_in = weft__json_get(report, "came_in");
    for (size_t i = 0; i < weft__json_size(came_in); i++) {
        int64_t event = 0;
        weft__json_int(weft__json_at(came_in, i), &event);
        printf("%s%" PRId64, i ? ", " : "; came in: ", event);
    }
    putchar('\n');
    weft__json_free(&report);
    return 0;
}

weft_status learn_history_print(weft__learn_store *store, const char *tenant, int as_json, weft_error *err)
{
    history_tables h = {.as_json = as_json};
    weft_status st = weft__learn_events(store, tenant, 0, NULL, print_event, &h, err);
    return st ? st : weft__learn_versions(store, tenant, NULL, print_version, &h, err);
}
