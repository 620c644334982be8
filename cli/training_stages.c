// SPDX-License-Identifier: Apache-2.0
/* training_stages.c: see training.h: trainings that a file lists run one after another, each from what the one before
 * left, in DIR/1-NAME, DIR/2-NAME, ... A stage that is done is looked at again when the job goes on: its data, options
 * and base are held against its checkpoint, and its result is written as it was. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "config/stages.h"
#include "format/out_file.h"
#include "outputs.h"
#include "prompt.h"
#include "terminal.h"
#include "training.h"

enum { PATH_MOST = 4096, RESULT_MOST = PATH_MOST + 16 };

static const training_kind *const kinds[] = {&training_of_models, &training_of_adapters};
/* What a stage cannot have: it follows from the job, or would be none. */
static const char *const of_the_job[] = {"out", "resume", "config", "show", "json", "threads", NULL};
/* Files that are read. */
static const char *const inputs[] = {"data",          "heldout",      "neighbors", "answers", "keep",
                                     "chat-template", "init-adapter", "tokenizer", NULL};

static int is_in(const char *name, const char *const *all)
{
    while (*all && strcmp(*all, name) != 0) all++;
    return *all != NULL;
}

static const training_kind *kind_of(const char *command)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i]->command, command)) return kinds[i];
    return NULL;
}

/* A stage in work. An adapter's base stands behind the command there, here it is an option. */
typedef struct stage_run {
    training t;
    option_spec table[TRAINING_OPTIONS + 1];
    command_spec spec;
    const training_kind *kind;
    int base_follows, adapter_follows; /* from the stage before */
    char folder[PATH_MOST];
} stage_run;

static void stage_begin(stage_run *s, const training_kind *kind)
{
    *s = (stage_run){.kind = kind};
    kind->init(&s->t);
    kind->table(&s->t, s->table);
    int n = 0;
    while (s->table[n].name) n++;
    if (kind == &training_of_adapters) {
        s->table[n++] = (option_spec){"base", 0, OPT_TEXT, &s->t.p.base, "MODEL", "", 0, 0, NULL, NULL};
        s->table[n] = (option_spec){0};
    }
    s->spec = (command_spec){.name = kind->command, .options = s->table};
}

/* ---- what is known of settings ---- */

static int known_command(void *arg, const char *command, char *why, size_t room)
{
    (void)arg;
    if (kind_of(command)) return 1;
    return snprintf(why, room, "must be 'train' or 'adapter train', not '%.40s'", command), 0;
}

static int has_option(const command_spec *spec, const char *name)
{
    const option_spec *o = spec->options;
    while (o->name && strcmp(o->name, name) != 0) o++;
    return o->name != NULL;
}

static int check_setting(const training_kind *kind, const weft__config_setting *x, char *why, size_t room)
{
    stage_run s;
    stage_begin(&s, kind);
    if (is_in(x->name, of_the_job))
        return snprintf(why, room, "'%.40s' is for the command line alone, or follows from the job", x->name), 0;
    if (!has_option(&s.spec, x->name)) {
        const char *meant = options_near(&s.spec, x->name);
        snprintf(why, room, "there is no '%.60s'%s%s%s; 'weft %s --help' lists all", x->name,
                 meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "", kind->command);
        return 0;
    }
    if (!options_set(&s.spec, x->name, x->values, x->n, 1, why, room)) return 0;
    for (size_t i = 0; is_in(x->name, inputs) && i < x->n; i++)
        if (access(x->values[i], R_OK)) return snprintf(why, room, "%.200s cannot be read", x->values[i]), 0;
    return 1;
}

/* A default must be an option of some command. */
static int known_setting(void *arg, const char *command, const weft__config_setting *x, char *why, size_t room)
{
    (void)arg;
    if (command) return check_setting(kind_of(command), x, why, room);
    return check_setting(&training_of_models, x, why, room) || check_setting(&training_of_adapters, x, why, room);
}

/* ---- a stage ---- */

static const weft__config_setting *find_setting(const weft__config_settings *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (!strcmp(all->items[i].name, name)) return &all->items[i];
    return NULL;
}

/* Values were checked when the file was read. */
static void stage_set(stage_run *s, const weft__config_stages *all, const weft__config_stage *stage)
{
    char why[300];
    for (size_t i = 0; i < all->defaults.n; i++) {
        const weft__config_setting *x = &all->defaults.items[i];
        if (has_option(&s->spec, x->name) && !find_setting(&stage->settings, x->name))
            options_set(&s->spec, x->name, x->values, x->n, 0, why, sizeof why);
    }
    for (size_t i = 0; i < stage->settings.n; i++) {
        const weft__config_setting *x = &stage->settings.items[i];
        options_set(&s->spec, x->name, x->values, x->n, 0, why, sizeof why);
    }
}

/* What the last stage left, for the next: a model, or an adapter of one. */
typedef struct stage_left {
    char base[RESULT_MOST], adapter[RESULT_MOST]; /* "": none */
} stage_left;

/* Goes on with what is there unless the stage says its own; 0 after a message. */
static int stage_follow(stage_run *s, const stage_left *left, const char *where)
{
    weft_train_params *p = &s->t.p;
    const int adapts = s->kind == &training_of_adapters, own = p->base || (!adapts && p->tokenizer);
    if (own || !*left->base) {
        if (adapts && !p->base) return fprintf(stderr, "%s: 'base' is missing\n", where), 0;
        return 1;
    }
    if (!adapts && *left->adapter)
        return fprintf(stderr,
                       "%s: the stage before makes an adapter, and this one trains a model; name its 'base' "
                       "('weft adapter merge' makes one of both)\n",
                       where),
               0;
    p->base = left->base;
    s->base_follows = 1;
    if (!*left->adapter || p->init_adapter) return 1;
    p->init_adapter = left->adapter;
    s->adapter_follows = 1;
    return 1;
}

/* As far as it can be said before it runs. */
static int stage_ready(stage_run *s, const weft__config_stages *all, size_t i, const training *job,
                       const stage_left *left)
{
    const weft__config_stage *stage = &all->items[i];
    char where[PATH_MOST];
    snprintf(where, sizeof where, "%s:%d:%d: stages.%s", job->config, stage->line, stage->column, stage->name);
    stage_begin(s, kind_of(stage->command));
    stage_set(s, all, stage);
    s->t.p.n_threads = job->p.n_threads;
    s->t.json = job->json;
    if (snprintf(s->folder, sizeof s->folder, "%s/%zu-%s", job->p.out, i + 1, stage->name) >= (int)sizeof s->folder)
        return fprintf(stderr, "%s: the path of its folder is too long\n", where), EXIT_FAILED;
    s->t.p.out = s->folder;
    if (!stage_follow(s, left, where)) return EXIT_FAILED;
    int rc = s->kind->finish(&s->t);
    if (!rc) rc = training_check(&s->t, s->kind->command);
    if (rc) fprintf(stderr, "%s: in this stage\n", where);
    return rc;
}

static void stage_leave(const stage_run *s, stage_left *left)
{
    const int adapts = s->kind == &training_of_adapters;
    if (adapts && s->t.p.base != left->base) snprintf(left->base, sizeof left->base, "%s", s->t.p.base);
    snprintf(adapts ? left->adapter : left->base, RESULT_MOST, "%s/%s", s->folder,
             adapts ? "adapter.gguf" : "model.gguf");
    if (!adapts) *left->adapter = 0;
}

/* ---- the file that stands beside the results ---- */

static void put_quoted(weft__strbuf *out, const char *text)
{
    weft__json_write_string(out, text, strlen(text));
}

/* A setting as the file has it; what has no value of its own (0: by the data) is left out. */
static void put_setting(weft__strbuf *out, const option_spec *o)
{
    const int bounded = o->min != 0 || o->max != 0;
    const double number = o->kind == OPT_INT      ? *(const int32_t *)o->out
                          : o->kind == OPT_FLOAT  ? (double)*(const float *)o->out
                          : o->kind == OPT_DOUBLE ? *(const double *)o->out
                                                  : 0;
    if (bounded && (number < o->min || number > o->max)) return;
    if ((o->kind == OPT_TEXT && !*(const char **)o->out) || (o->kind == OPT_LIST && !((struct text_list *)o->out)->n))
        return;
    weft__strbuf_printf(out, "    %s: ", o->name);
    switch (o->kind) {
    case OPT_FLAG: weft__strbuf_puts(out, *(const int *)o->out ? "true" : "false"); break;
    case OPT_SEED: weft__strbuf_printf(out, "%llu", (unsigned long long)*(const uint64_t *)o->out); break;
    case OPT_TEXT: put_quoted(out, *(const char **)o->out); break;
    case OPT_LIST: {
        const struct text_list *list = o->out;
        for (int i = 0; i < list->n; i++) {
            weft__strbuf_puts(out, i ? ", " : "[");
            put_quoted(out, list->items[i]);
        }
        weft__strbuf_puts(out, "]");
        break;
    }
    case OPT_INT: weft__strbuf_printf(out, "%d", *(const int32_t *)o->out); break;
    default: weft__strbuf_printf(out, "%.9g", number); break;
    }
    weft__strbuf_putc(out, '\n');
}

static void put_stage(weft__strbuf *out, const stage_run *s, const weft__config_stage *stage)
{
    weft__strbuf_printf(out, "  %s:\n    command: %s\n", stage->name, stage->command);
    for (const option_spec *o = s->table; o->name; o++) {
        const int follows =
            (!strcmp(o->name, "base") && s->base_follows) || (!strcmp(o->name, "init-adapter") && s->adapter_follows);
        const int is_default = o->given && !*o->given; /* that it was not given says something */
        if (!follows && !is_default && !is_in(o->name, of_the_job)) put_setting(out, o);
    }
}

/* The line in which two texts part. */
static int line_of_difference(const char *a, const char *b)
{
    int line = 1;
    for (; *a && *a == *b; a++, b++) line += *a == '\n';
    return line;
}

/* The file appears before the first stage, and is the same whenever the job goes on. */
static int keep_settings(const training *job, const weft__strbuf *text)
{
    char path[PATH_MOST];
    weft_error err = {0};
    char *there = NULL;
    size_t n;
    if (snprintf(path, sizeof path, "%s/config.yaml", job->p.out) >= (int)sizeof path)
        return fprintf(stderr, "weft train: --out is too long\n"), EXIT_FAILED;
    if (output_is_input("train", path, job->config)) return EXIT_FAILED;
    const int exists = !access(path, F_OK);
    if (exists != (job->resume != 0)) {
        fprintf(stderr,
                exists ? "weft train: %s holds a job already: go on with it (--resume), or give another folder\n"
                       : "weft train: %s holds no job to go on with\n",
                job->p.out);
        return EXIT_FAILED;
    }
    if (!exists) {
        if (mkdir(job->p.out, 0777) && errno != EEXIST)
            return fprintf(stderr, "weft train: %s: %s\n", job->p.out, strerror(errno)), EXIT_FAILED;
        return weft__out_file_put(path, text->data, text->len, &err) ? report("train", &err) : EXIT_DONE;
    }
    if (read_text(path, &there, &n, &err)) return report("train", &err);
    const int same = !strcmp(there, text->data);
    if (!same)
        fprintf(stderr,
                "weft train: %s, with which the job was begun, says otherwise in line %d; give those settings\n", path,
                line_of_difference(there, text->data));
    free(there);
    return same ? EXIT_DONE : EXIT_FAILED;
}

/* ---- the job ---- */

/* Every stage is looked at before the first one begins. */
static int prepare(const weft__config_stages *all, const training *job, weft__strbuf *text)
{
    stage_left left = {"", ""};
    stage_run s;
    weft__strbuf_puts(text,
                      "# The stages of this folder, with every setting; 'weft train --config' reads it.\nstages:\n");
    for (size_t i = 0; i < all->n; i++) {
        const int rc = stage_ready(&s, all, i, job, &left);
        if (rc) return rc;
        put_stage(text, &s, &all->items[i]);
        stage_leave(&s, &left);
    }
    weft__strbuf_putc(text, 0);
    if (!text->failed) return --text->len, EXIT_DONE;
    fprintf(stderr, "weft train: no memory\n");
    return EXIT_FAILED;
}

static int run_stages(const weft__config_stages *all, const training *job)
{
    stage_left left = {"", ""};
    stage_run s;
    for (size_t i = 0; i < all->n; i++) {
        char checkpoint[PATH_MOST + 32];
        int rc = stage_ready(&s, all, i, job, &left);
        if (rc) return rc;
        snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.gguf", s.folder);
        s.t.resume = !access(checkpoint, F_OK);
        fprintf(stderr, "stage %zu of %zu: %s%s\n", i + 1, all->n, all->items[i].name, s.t.resume ? ", going on" : "");
        if ((rc = training_run(&s.t, s.kind->command))) return rc;
        stage_leave(&s, &left);
    }
    return EXIT_DONE;
}

static int only_the_job_s(const command_spec *spec, int n_positional)
{
    static const char *const with_it[] = {"config", "out", "resume", "threads", "json", NULL};
    for (const option_spec *o = spec->options; o->name; o++)
        if (options_given(spec, o->name) && !is_in(o->name, with_it)) {
            fprintf(stderr, "weft train: --%s belongs into the file of --config; leave it out\n", o->name);
            return 0;
        }
    if (n_positional) fprintf(stderr, "weft train: data belong into the file of --config; leave them out\n");
    return !n_positional;
}

int training_stages(const training *t, const command_spec *spec, int n_positional)
{
    static const weft__config_stages_known known = {known_command, known_setting, NULL};
    weft__config_stages *all = NULL;
    weft__config_faults faults = {0};
    weft__strbuf text = {0};
    weft_error err = {0};
    if (!only_the_job_s(spec, n_positional)) return EXIT_USAGE;
    if (!t->p.out) return fprintf(stderr, "weft train: --out is missing\n"), EXIT_USAGE;
    const weft_status st = weft__config_stages_read(t->config, &known, &all, &faults, &err);
    int rc = EXIT_DONE;
    if (faults.n) {
        weft__config_faults_write(&faults, t->config, &text);
        if (!text.failed) fwrite(text.data, 1, text.len, stderr);
        text.len = 0;
        rc = EXIT_FAILED;
    } else if (st) {
        rc = report("train", &err);
    }
    if (!rc) rc = prepare(all, t, &text);
    if (!rc) rc = keep_settings(t, &text);
    if (!rc) rc = run_stages(all, t);
    weft__strbuf_free(&text);
    weft__config_faults_free(&faults);
    weft__config_stages_free(&all);
    return rc;
}
