// SPDX-License-Identifier: Apache-2.0
/* learn_teach.c: weft learn teach, consolidate and rollback: what a server keeps becomes versions of an adapter for
 * each tenant, behind the gate, while no server has the folder. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "learn/teach_offline.h"
#include "learn_teach.h"
#include "learn_tenants.h"
#include "options.h"
#include "terminal.h"

#define GATE                                                                                                           \
    "Before a version counts the gate asks it: the correction must hold, and in other words where there are some; "    \
    "what "                                                                                                            \
    "was\n"                                                                                                            \
    "corrected before, and what the caller was answered otherwise, must stay; it may not speak differently of other "  \
    "things\n"                                                                                                         \
    "(KL to the base), nor change a matrix by too much. The reason of each refusal is said."

/* What is told of each new version. */
typedef struct teach_told {
    int n, as_json;
} teach_told;

static void put_told_text(weft__strbuf *out, const char *name, const char *text)
{
    weft__strbuf_printf(out, ",\"%s\":", name);
    weft__json_write_string(out, text, strlen(text));
}

static void tell_as_json(const weft__version_row *row)
{
    weft__strbuf out = {0};
    weft__strbuf_puts(&out, "{\"tenant\":");
    weft__json_write_string(&out, row->tenant, strlen(row->tenant));
    put_told_text(&out, "adapter", row->name);
    weft__strbuf_printf(&out, ",\"version\":%" PRId64 ",\"what\":\"%s\"", row->version,
                        weft__version_what_name(row->what));
    put_told_text(&out, "reason", row->reason);
    put_told_text(&out, "content", row->content);
    put_told_text(&out, "by", row->by);
    put_told_text(&out, "why", row->why);
    weft__strbuf_printf(&out, ",\"first_event\":%" PRId64 ",\"last_event\":%" PRId64, row->first_event,
                        row->last_event);
    for (int32_t i = 0; i < row->n_came_in; i++)
        weft__strbuf_printf(&out, "%s%" PRId64 "%s", i ? "," : ",\"came_in\":[", row->came_in[i],
                            i + 1 == row->n_came_in ? "]" : "");
    weft__strbuf_puts(&out, "}\n");
    if (!out.failed) fwrite(out.data, 1, out.len, stdout);
    weft__strbuf_free(&out);
}

static void told(void *arg, const weft__version_row *row)
{
    teach_told *t = arg;
    char name[WEFT__VERSION_FULL_NAME];
    t->n++;
    if (t->as_json) tell_as_json(row);
    else {
        weft__version_write_name(row->name, row->version, name);
        printf("%s %s %s%s%s (event %" PRId64 ", %s%s)\n", learn_tenant_shown(row->tenant), name,
               weft__version_what_name(row->what), *row->reason ? ": " : "", row->reason, row->last_event,
               *row->content ? "id " : "no content", row->content);
        if (*row->by) printf("    %s, %s\n", row->by, row->why);
        for (int32_t i = 0; i < row->n_came_in; i++)
            printf("%s%" PRId64 "%s", i ? ", " : "    came in, that was refused by itself: event ", row->came_in[i],
                   i + 1 == row->n_came_in ? "\n" : "");
    }
    fflush(stdout);
}

/* As a server notes it with each answer: of the model as it is opened, then closed. */
static weft_status fingerprint_of(const char *path, char out[33], weft_error *err)
{
    weft_model_params p;
    weft_model *model = NULL;
    weft_model_params_default(&p);
    weft_status st = weft_model_open(path, &p, &model, err);
    if (!st) weft_model_fingerprint(model, out);
    weft_model_close(&model);
    return st;
}

#define TEACHER_HELP                                                                                                   \
    "a model of the same vocabulary: one more is learned beside what it says of the answers that stay (none)"

static int teach(int argc, char **argv, const char *kind, int what, const char *about, const char *example)
{
    const char *tenant = NULL, *served = NULL, *teacher = NULL;
    const int anew = what == WEFT__TEACH_OFFLINE_CONSOLIDATE;
    int32_t threads = 0;
    int first, instant = 0;
    teach_told t = {0};
    const option_spec in_one_step = {
        "instant",
        0,
        OPT_FLAG,
        &instant,
        NULL,
        "an experiment: in one step of the last layer's ffn_down, behind the same gate; what it refuses is given up",
        0,
        0,
        NULL};
    const option_spec by_teacher = {"teacher", 0, OPT_TEXT, &teacher, "LARGER", TEACHER_HELP, 0, 0, NULL};
    const option_spec options[] = {
        {"tenant", 0, OPT_TEXT, &tenant, "NAME", "whose, as 'weft learn status' lists them (all)", 0, 0, NULL},
        {"served", 0, OPT_TEXT, &served, "FILE",
         "what the server had, where that was a compiled plan of MODEL: its answers teach (MODEL's)", 0, 0, NULL},
        {"threads", 't', OPT_INT, &threads, "THREADS", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL},
        {"json", 0, OPT_FLAG, &t.as_json, NULL, "a line of JSON for each version", 0, 0, NULL},
        anew                                  ? by_teacher
        : what == WEFT__TEACH_OFFLINE_WAITING ? in_one_step
                                              : (option_spec){0},
        {0},
    };
    const command_spec spec = {kind, "MODEL DIR [options]", about, example, options, 2, 2};
    weft_error err = {0};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    tenant = learn_tenant_named(tenant);
    if (!learn_tenant_is_in(kind, argv[first + 1], tenant, &rc)) return rc;
    char base[33];
    int64_t n_others = 0;
    const weft__teach_offline o = {.model = argv[first],
                                   .base = base,
                                   .n_others = &n_others,
                                   .dir = argv[first + 1],
                                   .tenant = tenant,
                                   .what = what,
                                   .teacher = teacher,
                                   .n_threads = threads,
                                   .instant = instant,
                                   .told = told,
                                   .arg = &t};
    if (fingerprint_of(served ? served : o.model, base, &err) || weft__teach_offline_run(&o, &err))
        return report(kind, &err);
    if (n_others)
        fprintf(stderr,
                "weft %s: %" PRId64
                " corrections are of answers of other models, and were left; of a compiled plan: --served\n",
                kind, n_others);
    if (!t.n) fprintf(stderr, "weft %s: nothing waits to be learned\n", kind);
    return EXIT_DONE;
}

int learn_teach(int argc, char **argv)
{
    return teach(
        argc, argv, "learn teach", WEFT__TEACH_OFFLINE_WAITING,
        "Learns the corrections that came since the last version, each caller's for its own adapter, over MODEL, "
        "the one that\n"
        "answered. DIR is what 'weft serve --learn' was given; no server may have it.\n" GATE,
        "  weft learn teach model.gguf kept\n");
}

int learn_consolidate(int argc, char **argv)
{
    return teach(
        argc, argv, "learn consolidate", WEFT__TEACH_OFFLINE_CONSOLIDATE,
        "Learns what waits, as 'weft learn teach', and then looks for what knows the same with less: all of it "
        "learned anew from\n"
        "the base, at once; the current version compressed to smaller ranks; with --teacher one more. The best "
        "stays: by the\n"
        "gate, then by corrections that hold, then by KL to the base; which it was and why is said. For the "
        "night.\n" GATE,
        "  weft learn consolidate model.gguf kept\n"
        "  weft learn consolidate model.gguf kept --teacher larger.gguf\n");
}

int learn_rollback(int argc, char **argv)
{
    const char *tenant = NULL;
    int32_t to = -1;
    int64_t now = 0;
    int first, as_json = 0;
    const option_spec options[] = {
        {"tenant", 0, OPT_TEXT, &tenant, "NAME", "whose, as 'weft learn status' lists them", 0, 0, NULL},
        {"to", 0, OPT_INT, &to, "N", "the version, 0 for the base alone (the one before the current)", 0, INT32_MAX,
         NULL},
        {"json", 0, OPT_FLAG, &as_json, NULL, "a line of JSON", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {"learn rollback",
                               "DIR --tenant NAME [--to N]",
                               "Makes an earlier version of a caller's adapter the current one. Nothing is lost: 'weft "
                               "learn history' lists all\n"
                               "versions, and --to goes to any that was published. What is learned next goes on from "
                               "there.\n" LEARN_TENANTS_HELP,
                               "  weft learn rollback kept --tenant user-ann\n",
                               options,
                               1,
                               1};
    weft_error err = {0};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!tenant) {
        fprintf(stderr, "weft learn rollback: --tenant is missing: whose; 'weft learn status' lists them\n");
        return EXIT_USAGE;
    }
    tenant = learn_tenant_named(tenant);
    if (!learn_tenant_is_in(spec.name, argv[first], tenant, &rc)) return rc;
    if (weft__teach_offline_roll_back(argv[first], tenant, to, &now, &err)) return report(spec.name, &err);
    if (as_json) printf("{\"current\":%" PRId64 "}\n", now);
    else if (now) printf("version %" PRId64 " is the current one\n", now);
    else printf("the base alone answers\n");
    return EXIT_DONE;
}
