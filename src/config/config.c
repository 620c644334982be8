// SPDX-License-Identifier: Apache-2.0
/* config.c: a file as a configuration (config.h): its settings and models; the other sections are presets.c's and
 * people.c's. */
#include "config/config.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "config/reader.h"

/* ---- settings ---- */

/* After all of them were read: what the program says of each stands behind what is wrong with the file itself. */
static void ask_known(weft__config_reader *r, const weft__config_settings *all, int of_model)
{
    char why[300];
    for (size_t i = 0; r->known && i < all->n; i++) {
        const weft__config_setting *s = &all->items[i];
        if (!s->n || r->known->setting(r->known->arg, s, of_model, why, sizeof why)) continue;
        const weft__config_node at = {.line = s->line, .column = s->column};
        weft__config_say(r, &at, "%s", why);
    }
}

void weft__config_settings_of(weft__config_reader *r, const weft__config_node *v, int of_model,
                              weft__config_settings *out)
{
    if (!v || v->kind == WEFT__CONFIG_NONE) return;
    out->items = weft__config_each(r, v, WEFT__CONFIG_MAP, sizeof *out->items, &out->n, weft__config_setting_of);
    ask_known(r, out, of_model);
}

/* ---- models ---- */

static void scale_of(weft__config_reader *r, const weft__config_node *v, void *into)
{
    double *to = into;
    if (!weft__config_double(v, to)) weft__config_say(r, v, "must be a number, not %s", weft__config_kind_text(v));
}

/* NAME: PATH, or NAME: {path: PATH, scale: NUMBER}. */
static void one_adapter(weft__config_reader *r, const weft__config_node *v, void *into)
{
    static const weft__config_field table[] = {
        {"path", weft__config_text, offsetof(weft__config_adapter, path), 1},
        {"scale", scale_of, offsetof(weft__config_adapter, scale), 0},
        {0},
    };
    weft__config_adapter *a = into;
    *a = (weft__config_adapter){.name = v->key, .scale = NAN, .line = v->key_line, .column = v->key_column};
    if (v->kind == WEFT__CONFIG_MAP) weft__config_fields(r, v, table, a);
    else weft__config_text(r, v, &a->path);
}

typedef struct model_read {
    weft__config_model model;
    const weft__config_node *adapters, *options;
} model_read;

static void one_model(weft__config_reader *r, const weft__config_node *v, void *into)
{
    static const weft__config_field table[] = {
        {"path", weft__config_text, offsetof(model_read, model.path), 1},
        {"pinned", weft__config_bool, offsetof(model_read, model.pinned), 0},
        {"adapters", weft__config_keep, offsetof(model_read, adapters), 0},
        {"options", weft__config_keep, offsetof(model_read, options), 0},
        {0},
    };
    model_read read = {.model = {.name = v->key, .line = v->key_line, .column = v->key_column}};
    weft__config_model *m = &read.model;
    weft__config_name_ok(r, v, v->key, WEFT__CONFIG_PRESET, "._-/");
    if (v->kind == WEFT__CONFIG_MAP) weft__config_fields(r, v, table, &read);
    else weft__config_text(r, v, &m->path);
    if (read.adapters) {
        const size_t back = weft__config_enter(r, "adapters", 0);
        m->adapters =
            weft__config_each(r, read.adapters, WEFT__CONFIG_MAP, sizeof *m->adapters, &m->n_adapters, one_adapter);
        weft__config_leave(r, back);
    }
    if (read.options) {
        const size_t back = weft__config_enter(r, "options", 0);
        weft__config_settings_of(r, read.options, 1, &m->options);
        weft__config_leave(r, back);
    }
    memcpy(into, m, sizeof *m);
}

void weft__config_models(weft__config_reader *r, const weft__config_node *v)
{
    weft__config *c = r->config;
    if (v && v->kind != WEFT__CONFIG_NONE)
        c->models = weft__config_each(r, v, WEFT__CONFIG_MAP, sizeof *c->models, &c->n_models, one_model);
}

/* ---- the file ---- */

typedef struct sections {
    const weft__config_node *server, *models, *presets, *organisations, *keys;
} sections;

static void read_sections(weft__config_reader *r, const weft__config_node *root)
{
    static const weft__config_field table[] = {
        {"server", weft__config_keep, offsetof(sections, server), 0},
        {"models", weft__config_keep, offsetof(sections, models), 0},
        {"presets", weft__config_keep, offsetof(sections, presets), 0},
        {"organisations", weft__config_keep, offsetof(sections, organisations), 0},
        {"keys", weft__config_keep, offsetof(sections, keys), 0},
        {0},
    };
    static void (*const read[])(weft__config_reader * r, const weft__config_node *v) = {
        weft__config_models, weft__config_presets, weft__config_organisations, weft__config_keys};
    sections s = {0};
    weft__config_fields(r, root, table, &s);
    const weft__config_node *const all[] = {s.models, s.presets, s.organisations, s.keys};
    size_t back = weft__config_enter(r, "server", 0);
    weft__config_settings_of(r, s.server, 0, &r->config->server);
    weft__config_leave(r, back);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        back = weft__config_enter(r, table[i + 1].name, 0);
        read[i](r, all[i]);
        weft__config_leave(r, back);
    }
}

static weft_status no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the settings");
}

weft_status weft__config_parse(const char *path, const char *text, size_t n, const weft__config_known *known,
                               weft__config **out, weft__config_faults *faults, weft_error *err)
{
    weft__config_node *root = NULL;
    weft__config *c = weft__alloc_zero(1, sizeof *c);
    *out = NULL;
    if (!c || !(c->json = weft__json_new_array())) {
        weft__free(c);
        return no_memory(err);
    }
    weft__config_reader r = {.config = c, .faults = faults, .known = known};
    weft_status st = weft__config_yaml(text, n, &c->arena, faults, &root, err);
    if (!st && root && root->kind != WEFT__CONFIG_NONE) read_sections(&r, root);
    if (!st && known && known->look && !r.no_memory) known->look(known->arg, c, faults);
    if (!st && (r.no_memory || faults->failed)) st = no_memory(err);
    if (!st) st = weft__config_faulty(path, faults, err);
    if (st) weft__config_free(&c);
    *out = c;
    return st;
}

weft_status weft__config_read(const char *path, const weft__config_known *known, weft__config **out,
                              weft__config_faults *faults, weft_error *err)
{
    char *text;
    size_t n = 0;
    *out = NULL;
    weft_status st = weft__config_load(path, &text, &n, err);
    if (!st) st = weft__config_parse(path, text, n, known, out, faults, err);
    weft__free(text);
    return st;
}

void weft__config_free(weft__config **p)
{
    weft__config *c = p ? *p : NULL;
    if (!c) return;
    *p = NULL;
    weft__json_free(&c->json);
    weft__arena_free(&c->arena);
    weft__free(c);
}
