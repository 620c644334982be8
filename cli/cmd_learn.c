// SPDX-License-Identifier: Apache-2.0
/* cmd_learn.c: weft learn status, history, export and forget: what a server keeps to learn from (weft serve
 * --learn). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "commands.h"
#include "kinds.h"
#include "learn/store.h"
#include "learn_history.h"
#include "learn_svg.h"
#include "learn_teach.h"
#include "learn_tenants.h"
#include "options.h"
#include "outputs.h"
#include "terminal.h"

static const char *tenant, *folder, *form = "sft";
static int as_json;

#define TENANT_OPTION                                                                                                  \
    {                                                                                                                  \
        "tenant", 0, OPT_TEXT, &tenant, "NAME", "whose, as status lists them (the only one there is)", 0, 0, NULL      \
    }
#define JSON_OPTION                                                                                                    \
    {                                                                                                                  \
        "json", 0, OPT_FLAG, &as_json, NULL, "lines of JSON instead", 0, 0, NULL                                       \
    }

/* Parses, and opens the store. *rc: what the command ends with when it is not open. */
static weft__learn_store *open_given(const command_spec *spec, int argc, char **argv, int writes, int *rc,
                                     weft_error *err)
{
    weft__learn_store *s = NULL;
    int first;
    *rc = options_parse(spec, argc, argv, &first);
    if (*rc) {
        *rc = *rc < 0 ? EXIT_DONE : *rc;
        return NULL;
    }
    tenant = learn_tenant_named(tenant);
    folder = argv[first];
    weft__learn_open(&(weft__learn_options){.dir = folder, .exists = 1, .read_only = !writes}, &s, err);
    if (!s) *rc = report(spec->name, err);
    return s;
}

/* ---- status ---- */

static const char *picture;
static const option_spec STATUS_OPTIONS[] = {
    {"tenant", 0, OPT_TEXT, &tenant, "NAME", "this one alone (all)", 0, 0, NULL},
    JSON_OPTION,
    {"svg", 0, OPT_TEXT, &picture, "F.svg",
     "a picture over time: answers, what was said of them, versions of the adapter with the reasons of refusals, and "
     "their KL to the base",
     0, 0, NULL},
    {0},
};
static const command_spec STATUS_SPEC = {
    "learn status",
    "DIR [options]",
    "Lists whose answers a server keeps in DIR (weft serve --learn DIR), and what was said of them. May run beside "
    "the\n"
    "server. " LEARN_TENANTS_HELP "\n" OUTPUT_RULE("The F of --svg"),
    "  weft learn status learned\n"
    "  weft learn status learned --tenant key-0123456789ab --svg learned.svg\n",
    STATUS_OPTIONS,
    1,
    1};

struct name_list {
    char (*items)[WEFT__LEARN_TENANT];
    size_t n, capacity;
    int failed;
};

static int add_name(void *arg, const char *name)
{
    struct name_list *l = arg;
    if (tenant && strcmp(tenant, name)) return 0;
    if (!weft__grow(&l->items, &l->capacity, l->n + 1, sizeof *l->items)) return l->failed = 1;
    snprintf(l->items[l->n++], sizeof *l->items, "%s", name);
    return 0;
}

static void print_totals(const char *name, const weft__learn_totals *t)
{
    char first[32], last[32];
    weft__strbuf quoted = {0};
    if (!as_json) {
        printf("%-24s %9" PRId64 " %9" PRId64 " %8" PRId64 " %8" PRId64 " %9.1f  %16s  %16s\n",
               learn_tenant_shown(name), t->n_answers, t->n_events, t->n_memories, t->n_versions,
               (double)t->bytes / 1e6, learn_time_text(t->first_ms, first), learn_time_text(t->last_ms, last));
        return;
    }
    weft__json_write_string(&quoted, name, strlen(name));
    printf("{\"tenant\":%s,\"answers\":%" PRId64 ",\"events\":%" PRId64, quoted.data ? quoted.data : "null",
           t->n_answers, t->n_events);
    for (int k = 0; k < WEFT__LEARN_KINDS; k++)
        printf(",\"%s\":%" PRId64, weft__learn_kind_name((weft__learn_kind)k), t->by_kind[k]);
    printf(",\"memories\":%" PRId64 ",\"versions\":%" PRId64 ",\"bytes\":%" PRId64 ",\"first_ms\":%" PRId64
           ",\"last_ms\":%" PRId64 "}\n",
           t->n_memories, t->n_versions, t->bytes, t->first_ms, t->last_ms);
    weft__strbuf_free(&quoted);
}

/* 1 after a message: `out` cannot be written, or is a file of the store. */
static int picture_refused(const char *out)
{
    static const char *const own[] = {"learn.db", "learn.db-wal", "learn.db-shm",
                                      "lock",     "log/hashes",   "log/entries.jsonl",
                                      "log/key",  "log/public",   "log/checkpoints"};
    char path[4096];
    struct stat is;
    if (output_refused("learn status", out)) return 1;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, own[i]);
        if (!stat(path, &is) && output_is_input("learn status", out, path)) return 1;
    }
    return 0;
}

static int run_status(int argc, char **argv)
{
    weft_error err = {0};
    int rc;
    struct name_list names = {0};
    weft__learn_totals t;
    weft__learn_store *s = open_given(&STATUS_SPEC, argc, argv, 0, &rc, &err);
    if (!s) return rc;
    if (picture && picture_refused(picture)) rc = EXIT_FAILED;
    if (rc || (tenant && !learn_tenant_is_there(STATUS_SPEC.name, s, tenant, &rc))) {
        weft__learn_close(&s);
        return rc;
    }
    weft_status st = weft__learn_tenants(s, add_name, &names, &err);
    if (!st && names.failed) st = weft_fail(&err, WEFT_NO_MEMORY, "no memory for the list");
    if (!st && !as_json)
        printf("%-24s %9s %9s %8s %8s %9s  %16s  %16s\n", "tenant", "answers", "feedback", "memories", "versions", "MB",
               "first (UTC)", "last (UTC)");
    for (size_t i = 0; i < names.n && !st; i++) {
        st = weft__learn_count(s, names.items[i], &t, &err);
        if (!st) print_totals(names.items[i], &t);
    }
    if (!st && picture) st = learn_draw(s, names.items, names.n, picture, &err);
    weft__free(names.items);
    weft__learn_close(&s);
    return st ? report("learn status", &err) : EXIT_DONE;
}

/* ---- history ---- */

static const option_spec HISTORY_OPTIONS[] = {TENANT_OPTION, JSON_OPTION, {0}};
static const command_spec HISTORY_SPEC = {"learn history",
                                          "DIR [options]",
                                          "Prints what was said of a tenant's answers, and what became of its adapter, "
                                          "in order: two tables.\n" LEARN_TENANTS_HELP,
                                          "  weft learn history learned --tenant key-0123456789ab\n"
                                          "  weft learn history learned --tenant user-ann --json\n",
                                          HISTORY_OPTIONS,
                                          1,
                                          1};

static int run_history(int argc, char **argv)
{
    weft_error err = {0};
    int rc;
    char only_one[WEFT__LEARN_TENANT];
    weft__learn_store *s = open_given(&HISTORY_SPEC, argc, argv, 0, &rc, &err);
    if (!s) return rc;
    tenant = learn_tenant_settle(HISTORY_SPEC.name, s, tenant, only_one, &rc);
    if (tenant && learn_history_print(s, tenant, as_json, &err)) rc = report(HISTORY_SPEC.name, &err);
    weft__learn_close(&s);
    return rc;
}

/* ---- export ---- */

static const option_spec EXPORT_OPTIONS[] = {
    TENANT_OPTION,
    {"as", 0, OPT_TEXT, &form, "FORM",
     "sft: corrections and edits; pairs: preferences and edits, for --loss dpo; rewards: thumbs, rewards and "
     "verifiers, "
     "for --loss reward and filtered (sft)",
     0, 0, NULL, "sft pairs rewards"},
    {0},
};
static const command_spec EXPORT_SPEC = {"learn export",
                                         "DIR [options]",
                                         "Prints what was said of a tenant's answers as records that weft adapter "
                                         "train reads, a line each.\n" LEARN_TENANTS_HELP,
                                         "  weft learn export learned --tenant key-0123456789ab > corrections.jsonl\n"
                                         "  weft adapter train model.gguf --data corrections.jsonl --out mine\n",
                                         EXPORT_OPTIONS,
                                         1,
                                         1};

struct exporting {
    weft__learn_form form;
    weft__strbuf line;
    int64_t n, n_left;
};

static int export_event(void *arg, const weft__learn_event *e)
{
    struct exporting *x = arg;
    x->line.len = 0;
    if (weft__learn_write_event(e, x->form, &x->line)) {
        fwrite(x->line.data, 1, x->line.len, stdout);
        x->n++;
    } else x->n_left++;
    return x->line.failed;
}

static int run_export(int argc, char **argv)
{
    weft_error err = {0};
    int rc;
    char only_one[WEFT__LEARN_TENANT];
    struct exporting x = {0};
    weft__learn_store *s = open_given(&EXPORT_SPEC, argc, argv, 0, &rc, &err);
    if (!s) return rc;
    x.form = !strcmp(form, "pairs")     ? WEFT__LEARN_AS_PAIRS
             : !strcmp(form, "rewards") ? WEFT__LEARN_AS_REWARDS
                                        : WEFT__LEARN_AS_SFT;
    tenant = learn_tenant_settle(EXPORT_SPEC.name, s, tenant, only_one, &rc);
    if (tenant) {
        weft_status st = weft__learn_events(s, tenant, 0, NULL, export_event, &x, &err);
        if (!st && x.line.failed) st = weft_fail(&err, WEFT_NO_MEMORY, "no memory for a record");
        if (st) rc = report("learn export", &err);
        else
            fprintf(stderr, "weft learn export: %" PRId64 " records; %" PRId64 " events are of another form%s\n", x.n,
                    x.n_left, x.n_left ? ", or what was asked is not known" : "");
    }
    weft__strbuf_free(&x.line);
    weft__learn_close(&s);
    return rc;
}

/* ---- forget ---- */

static const option_spec FORGET_OPTIONS[] = {
    {"tenant", 0, OPT_TEXT, &tenant, "NAME", "whose, as status lists them", 0, 0, NULL},
    JSON_OPTION,
    {0},
};
static const command_spec FORGET_SPEC = {
    "learn forget",
    "DIR --tenant NAME",
    "Takes all of a tenant out of DIR: answers, feedback, memories, adapters. The witness log keeps hashes, which say\n"
    "nothing without the tenant's salt, which goes too. While a server has DIR, ask it: POST "
    "/v1/learn/forget.\n" LEARN_TENANTS_HELP,
    "  weft learn forget learned --tenant key-0123456789ab\n",
    FORGET_OPTIONS,
    1,
    1};

static int run_forget(int argc, char **argv)
{
    weft_error err = {0};
    int rc;
    weft__learn_totals had = {0};
    weft__learn_store *s = open_given(&FORGET_SPEC, argc, argv, 1, &rc, &err);
    if (!s && err.status == WEFT_BUSY) fprintf(stderr, "While it runs: curl -X POST .../v1/learn/forget\n");
    if (!s) return rc;
    if (!tenant) {
        fprintf(stderr, "weft learn forget: --tenant is missing: whose; 'weft learn status' lists them\n");
        rc = EXIT_USAGE;
    } else if (!learn_tenant_is_there(FORGET_SPEC.name, s, tenant, &rc)) {
        weft__learn_close(&s);
        return rc;
    } else if (weft__learn_forget(s, tenant, &had, &err)) rc = report("learn forget", &err);
    else if (as_json)
        printf("{\"answers\":%" PRId64 ",\"events\":%" PRId64 ",\"memories\":%" PRId64 ",\"versions\":%" PRId64 "}\n",
               had.n_answers, had.n_events, had.n_memories, had.n_versions);
    else
        printf("forgotten: %" PRId64 " answers, %" PRId64 " events of feedback, %" PRId64 " memories, %" PRId64
               " versions\n",
               had.n_answers, had.n_events, had.n_memories, had.n_versions);
    weft__learn_close(&s);
    return rc;
}

static const command_kind KINDS[] = {
    {"status", "whose answers are kept, and how many", run_status, NULL, 0},
    {"history", "what was said of them, and versions of adapters", run_history, NULL, 0},
    {"export", "records to train with", run_export, NULL, 0},
    {"forget", "takes all of a tenant", run_forget, NULL, 0},
    {"teach", "corrections to versions of adapters, behind a gate", learn_teach, NULL, 0},
    {"consolidate", "all that was learned, anew from the base", learn_consolidate, NULL, 0},
    {"rollback", "makes an earlier version the current one", learn_rollback, NULL, 0},
};
const kind_list LEARN_KINDS = {"learn", "KIND DIR [options]", "What a server keeps to learn from, and learning it.",
                               KINDS, sizeof KINDS / sizeof *KINDS};

int cmd_learn(int argc, char **argv)
{
    return kinds_run(&LEARN_KINDS, argc, argv);
}
