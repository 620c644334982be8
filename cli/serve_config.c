// SPDX-License-Identifier: Apache-2.0
/* serve_config.c: see serve_config.h. */
#include "serve_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "known.h"
#include "serve_check.h"
#include "terminal.h"

/* What a model may have of its own. */
static const char *const of_a_model[] = {"ctx",
                                         "slots",
                                         "queue",
                                         "chunk",
                                         "kv-tokens",
                                         "kv-type",
                                         "kv-types",
                                         "idle-unload",
                                         "chat-template",
                                         "adapter-dir",
                                         "adapter-mb",
                                         "adapter-type",
                                         "rope-scaling",
                                         "rope-scale",
                                         "rope-freq-base",
                                         "spec",
                                         "steady",
                                         "draft",
                                         NULL};
/* What would be another file, or none. */
static const char *const of_the_line[] = {"config", "check", NULL};

static int is_among(const char *name, const char *const *all)
{
    while (*all && strcmp(*all, name)) all++;
    return *all != NULL;
}

int serve_config_of_a_model(const char *name)
{
    return is_among(name, of_a_model);
}

/* ---- what is known of settings ---- */

int32_t serve_config_setting(void *arg, const char *name, const char *const *values, int32_t n, int32_t of_model,
                             char *why, size_t room)
{
    const command_spec *spec = arg;
    const option_spec *o = spec->options;
    while (o->name && strcmp(o->name, name)) o++;
    if (!o->name) {
        const char *meant = options_near(spec, name);
        snprintf(why, room, "there is no '%.60s'%s%s%s; 'weft serve --help' lists all", name,
                 meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
        return 0;
    }
    if (is_among(name, of_the_line)) return snprintf(why, room, "'%s' is for the command line alone", name), 0;
    if (of_model && !is_among(name, of_a_model))
        return snprintf(why, room, "'%s' is none of a model's own; it stands under server", name), 0;
    return options_set(spec, name, values, (size_t)n, 1, why, room);
}

/* What reading the file is for. */
typedef struct file_reading {
    const command_spec *spec;
    int check, model_given;
} file_reading;

static int known_setting(void *arg, const weft__config_setting *s, int of_model, char *why, size_t room)
{
    const file_reading *r = arg;
    return serve_config_setting((void *)(uintptr_t)r->spec, s->name, s->values, (int32_t)s->n, of_model, why, room);
}

/* ---- what it names ---- */

/* An adapter's name is a model's name to clients, and the engine has rules for it. */
static void look_at_names(const weft__config *c, weft__config_faults *faults)
{
    for (size_t i = 0; i < c->n_models; i++)
        for (size_t k = 0; k < c->models[i].n_adapters; k++) {
            const weft__config_adapter *a = &c->models[i].adapters[k];
            weft_error err = {0};
            if (weft_engine_adapter_check_name(a->name, &err))
                weft__config_fault_add(faults, a->line, a->column, "models.%.60s.adapters: %s", c->models[i].name,
                                       err.message);
            for (size_t other = 0; other < c->n_models; other++)
                if (!strcmp(c->models[other].name, a->name))
                    weft__config_fault_add(faults, a->line, a->column,
                                           "models.%.60s.adapters: a model has the name '%.60s', too",
                                           c->models[i].name, a->name);
        }
}

static void look(void *arg, const weft__config *c, weft__config_faults *faults)
{
    const file_reading *r = arg;
    look_at_names(c, faults);
    if (r->check) serve_check_look(r->spec, c, r->model_given, faults);
}

static int tell_faults(const weft__config_faults *faults, const char *path)
{
    weft__strbuf out = {0};
    weft__config_faults_write(faults, path, &out);
    if (out.len) fwrite(out.data, 1, out.len, stderr); /* made fit for it when it was told */
    weft__strbuf_free(&out);
    return EXIT_USAGE;
}

void serve_config_say(const weft__config *c, const char *path)
{
    const struct {
        size_t n;
        const char *what;
    } counts[] = {{c->server.n, "setting"},
                  {c->n_models, "model"},
                  {c->n_presets, "preset"},
                  {c->n_organisations, "organisation"},
                  {c->n_keys, "key"}};
    printf("%s: nothing is wrong in it: ", path);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        printf("%s%zu %s%s%s", i ? ", " : "", counts[i].n, counts[i].what, counts[i].n == 1 ? "" : "s",
               i ? "" : " of the server");
    putchar('\n');
}

static int apply(const command_spec *spec, const weft__config_settings *all, const char *path)
{
    char why[300];
    for (size_t i = 0; i < all->n; i++) {
        const weft__config_setting *s = &all->items[i];
        if (options_given(spec, s->name) || options_set(spec, s->name, s->values, s->n, 0, why, sizeof why)) continue;
        fprintf(stderr, "weft %s: %s:%d:%d: %s\n", spec->name, path, s->line, s->column, why);
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

int serve_config_take(const command_spec *spec, const char *path, int check, int model_given, weft__config **out)
{
    file_reading reading = {spec, check, model_given};
    const weft__config_known known = {known_setting, look, &reading};
    weft__config_faults faults = {0};
    weft_error err = {0};
    int rc = EXIT_DONE;
    const weft_status st = weft__config_read(path, &known, out, &faults, &err);
    if (faults.n) rc = tell_faults(&faults, path);
    else if (!st) rc = apply(spec, &(*out)->server, path);
    else if (report(spec->name, &err)) rc = check ? EXIT_USAGE : EXIT_FAILED;
    weft__config_faults_free(&faults);
    return rc;
}

/* NAME=PATH[:SCALE], as the option has it; the text lives as long as the program. */
static int give_adapter(const command_spec *spec, const weft__config_adapter *a, const char *path)
{
    static char texts[LIST_MAX][4096 + 192];
    static int n;
    char why[300];
    if (n == LIST_MAX) return 0;
    const char *text = texts[n];
    if (isnan(a->scale)) snprintf(texts[n], sizeof texts[n], "%s=%s", a->name, a->path);
    else snprintf(texts[n], sizeof texts[n], "%s=%s:%.9g", a->name, a->path, a->scale);
    n++;
    if (options_set(spec, "adapter", &text, 1, 0, why, sizeof why)) return 1;
    fprintf(stderr, "weft %s: %s: %s\n", spec->name, path, why);
    return 0;
}

const char *serve_config_model(const command_spec *spec, const weft__config *c, const char *path)
{
    char why[300];
    const weft__config_model *m = c->models;
    if (!c->n_models) return NULL;
    if (apply(spec, &m->options, path) || !options_set(spec, "alias", &m->name, 1, 0, why, sizeof why)) return NULL;
    for (size_t i = 0; i < m->n_adapters; i++)
        if (!give_adapter(spec, &m->adapters[i], path)) return NULL;
    return known_model_of(m->path);
}
