// SPDX-License-Identifier: Apache-2.0
/* stages.c: see stages.h. */
#include "config/stages.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "config/reader.h"

enum { STAGES_MOST = 64 };

typedef struct stages_reader {
    weft__config_reader r; /* first: readers of fields get this */
    const weft__config_stages_known *known;
} stages_reader;

/* The members of a map as settings, but for one; what the program says of each. */
static void stage_settings(stages_reader *s, const weft__config_node *v, const char *command,
                           weft__config_settings *out)
{
    char why[300];
    weft__config_setting *items = weft__config_take(&s->r, v->n, sizeof *items);
    for (const weft__config_node *m = items ? v->first : NULL; m; m = m->next) {
        if (command && !strcmp(m->key, "command")) continue;
        weft__config_setting *one = &items[out->n];
        const size_t before = s->r.faults->n, back = weft__config_enter(&s->r, m->key, 0);
        weft__config_setting_of(&s->r, m, one);
        const int whole = one->n && s->r.faults->n == before;
        if (whole && !s->known->setting(s->known->arg, command, one, why, sizeof why))
            weft__config_say_key(&s->r, m, "%s", why);
        out->n += whole;
        weft__config_leave(&s->r, back);
    }
    out->items = items;
}

static const weft__config_node *stage_member(const weft__config_node *v, const char *key)
{
    const weft__config_node *m = v->first;
    while (m && strcmp(m->key, key) != 0) m = m->next;
    return m;
}

static void one_stage(weft__config_reader *r, const weft__config_node *v, void *into)
{
    stages_reader *s = (stages_reader *)(void *)r;
    weft__config_stage *stage = into;
    char why[300];
    *stage = (weft__config_stage){.name = v->key, .line = v->key_line, .column = v->key_column};
    weft__config_name_ok(r, v, v->key, WEFT__CONFIG_NAME, "_-");
    if (!weft__config_is(r, v, WEFT__CONFIG_MAP)) return;
    const weft__config_node *command = stage_member(v, "command");
    if (!command) {
        weft__config_say_key(r, v, "'command' is missing");
        return;
    }
    const size_t back = weft__config_enter(r, "command", 0);
    weft__config_text(r, command, &stage->command);
    if (stage->command && !s->known->command(s->known->arg, stage->command, why, sizeof why)) {
        weft__config_say(r, command, "%s", why);
        stage->command = NULL;
    }
    weft__config_leave(r, back);
    if (stage->command) stage_settings(s, v, stage->command, &stage->settings);
}

static void read_stages(stages_reader *s, const weft__config_node *root, weft__config_stages *out)
{
    struct {
        const weft__config_node *defaults, *stages;
    } parts = {0};
    static const weft__config_field table[] = {
        {"defaults", weft__config_keep, 0, 0}, {"stages", weft__config_keep, sizeof(void *), 1}, {0}};
    weft__config_fields(&s->r, root, table, &parts);
    if (parts.defaults) {
        const size_t back = weft__config_enter(&s->r, "defaults", 0);
        if (weft__config_is(&s->r, parts.defaults, WEFT__CONFIG_MAP))
            stage_settings(s, parts.defaults, NULL, &out->defaults);
        weft__config_leave(&s->r, back);
    }
    if (!parts.stages) return;
    const size_t back = weft__config_enter(&s->r, "stages", 0);
    out->items = weft__config_each(&s->r, parts.stages, WEFT__CONFIG_MAP, sizeof *out->items, &out->n, one_stage);
    if (parts.stages->kind == WEFT__CONFIG_MAP && (!out->n || out->n > STAGES_MOST))
        weft__config_say(&s->r, parts.stages, "must be 1 to %d stages", STAGES_MOST);
    weft__config_leave(&s->r, back);
}

static weft_status stages_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the stages");
}

weft_status weft__config_stages_parse(const char *path, const char *text, size_t n,
                                      const weft__config_stages_known *known, weft__config_stages **out,
                                      weft__config_faults *faults, weft_error *err)
{
    weft__config_node *root = NULL;
    weft__config_stages *c = *out = weft__alloc_zero(1, sizeof *c);
    if (!c) return stages_no_memory(err);
    stages_reader s = {{.config = &c->holder, .faults = faults}, known};
    weft_status st = weft__config_yaml(text, n, &c->holder.arena, faults, &root, err);
    if (!st && root) read_stages(&s, root, c);
    else if (!st && !faults->n) weft__config_fault_add(faults, 1, 1, "'stages' is missing");
    if (!st && (s.r.no_memory || faults->failed)) st = stages_no_memory(err);
    if (!st) st = weft__config_faulty(path, faults, err);
    if (st) weft__config_stages_free(out);
    return st;
}

weft_status weft__config_stages_read(const char *path, const weft__config_stages_known *known,
                                     weft__config_stages **out, weft__config_faults *faults, weft_error *err)
{
    char *text;
    size_t n = 0;
    *out = NULL;
    weft_status st = weft__config_load(path, &text, &n, err);
    if (!st) st = weft__config_stages_parse(path, text, n, known, out, faults, err);
    weft__free(text);
    return st;
}

void weft__config_stages_free(weft__config_stages **p)
{
    weft__config_stages *c = p ? *p : NULL;
    if (!c) return;
    weft__arena_free(&c->holder.arena);
    weft__free(c);
    *p = NULL;
}
