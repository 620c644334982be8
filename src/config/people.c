// SPDX-License-Identifier: Apache-2.0
/* people.c: organisations, their teams, and keys (config.h). */
#include <stddef.h>
#include <string.h>

#include "config/reader.h"

/* ---- limits ---- */

static const char *served_name(const void *arg, size_t i)
{
    const weft__config *c = arg;
    return i < c->n_models                  ? c->models[i].name
           : i < c->n_models + c->n_presets ? c->presets[i - c->n_models].name
                                            : NULL;
}

/* Names that are served, where the file says which are. */
static void served_names(weft__config_reader *r, const weft__config_node *v, void *into)
{
    const weft__config *c = r->config;
    weft__config_names *names = into;
    const weft__config_node *m = v->first;
    char meant[96];
    weft__config_names_of(r, v, into);
    for (size_t i = 0; c->n_models && i < names->n; i++, m = m->next) {
        const char *name = names->items[i];
        size_t k = 0;
        if (!name) continue;
        while (served_name(c, k) && strcmp(served_name(c, k), name)) k++;
        if (!served_name(c, k))
            weft__config_say(r, m, "'%.60s' is none of models and presets%s", name,
                             weft__config_meant(name, served_name, c, meant, sizeof meant));
    }
}

static void limits(weft__config_reader *r, const weft__config_node *v, void *into)
{
    static const weft__config_field table[] = {
        {"requests-per-minute", weft__config_count, offsetof(weft__config_limits, requests_per_minute), 0},
        {"tokens-per-minute", weft__config_count, offsetof(weft__config_limits, tokens_per_minute), 0},
        {"concurrent", weft__config_count, offsetof(weft__config_limits, concurrent), 0},
        {"models", served_names, offsetof(weft__config_limits, models), 0},
        {"adapters", weft__config_names_of, offsetof(weft__config_limits, adapters), 0},
        {0},
    };
    if (v->kind != WEFT__CONFIG_NONE) weft__config_fields(r, v, table, into);
}

/* ---- organisations ---- */

static void one_group(weft__config_reader *r, const weft__config_node *v, const weft__config_field *table,
                      weft__config_group *g)
{
    g->name = v->key;
    weft__config_name_ok(r, v, v->key, WEFT__CONFIG_NAME, "._-");
    if (v->kind != WEFT__CONFIG_NONE) weft__config_fields(r, v, table, g);
}

static void one_team(weft__config_reader *r, const weft__config_node *v, void *into)
{
    static const weft__config_field table[] = {
        {"limits", limits, offsetof(weft__config_group, limits), 0},
        {0},
    };
    one_group(r, v, table, into);
}

static void teams(weft__config_reader *r, const weft__config_node *v, void *into)
{
    weft__config_group *g = (weft__config_group *)((char *)into - offsetof(weft__config_group, teams));
    if (v->kind != WEFT__CONFIG_NONE)
        g->teams = weft__config_each(r, v, WEFT__CONFIG_MAP, sizeof *g->teams, &g->n_teams, one_team);
}

static void one_organisation(weft__config_reader *r, const weft__config_node *v, void *into)
{
    static const weft__config_field table[] = {
        {"limits", limits, offsetof(weft__config_group, limits), 0},
        {"teams", teams, offsetof(weft__config_group, teams), 0},
        {0},
    };
    one_group(r, v, table, into);
}

void weft__config_organisations(weft__config_reader *r, const weft__config_node *v)
{
    weft__config *c = r->config;
    if (v && v->kind != WEFT__CONFIG_NONE)
        c->organisations =
            weft__config_each(r, v, WEFT__CONFIG_MAP, sizeof *c->organisations, &c->n_organisations, one_organisation);
}

/* ---- keys ---- */

typedef struct group_list {
    const weft__config_group *items;
    size_t n;
} group_list;

static const char *group_name(const void *arg, size_t i)
{
    const group_list *list = arg;
    return i < list->n ? list->items[i].name : NULL;
}

static const weft__config_group *group_find(weft__config_reader *r, const weft__config_node *v, const char *what,
                                            const group_list *list)
{
    const char *name = NULL;
    char meant[96];
    weft__config_text(r, v, &name);
    for (size_t i = 0; name && i < list->n; i++)
        if (!strcmp(list->items[i].name, name)) return &list->items[i];
    if (name)
        weft__config_say(r, v, "there is no %s '%.40s'%s", what, name,
                         weft__config_meant(name, group_name, list, meant, sizeof meant));
    return NULL;
}

static void hash_of(weft__config_reader *r, const weft__config_node *v, void *into)
{
    static const char prefix[] = "sha256:";
    const char *text = NULL;
    weft__config_text(r, v, &text);
    if (!text) return;
    if (!strncmp(text, prefix, sizeof prefix - 1)) text += sizeof prefix - 1;
    if (strlen(text) == 64 && strspn(text, "0123456789abcdefABCDEF") == 64) *(const char **)into = text;
    else weft__config_say(r, v, "must be sha256: and 64 hexadecimal digits; `weft key hash` makes them of a key");
}

static void role_of(weft__config_reader *r, const weft__config_node *v, void *into)
{
    const char *text = NULL;
    char shown[40];
    weft__config_text(r, v, &text);
    if (!text) return;
    *(int *)into = !strcmp(text, "admin");
    if (strcmp(text, "admin") && strcmp(text, "user"))
        weft__config_say(r, v, "must be admin or user, not '%s'",
                         weft__utf8_show(shown, sizeof shown, text, strlen(text)));
}

typedef struct key_read {
    weft__config_key key;
    const weft__config_node *name, *organisation, *team;
} key_read;

/* The groups that it names. */
static void place_key(weft__config_reader *r, key_read *read)
{
    size_t back;
    if (read->organisation) {
        const group_list all = {r->config->organisations, r->config->n_organisations};
        back = weft__config_enter(r, "organisation", 0);
        read->key.organisation = group_find(r, read->organisation, "organisation", &all);
        weft__config_leave(r, back);
    }
    if (!read->team) return;
    back = weft__config_enter(r, "team", 0);
    if (!read->organisation) weft__config_say(r, read->team, "names a team of no organisation; name that, too");
    else if (read->key.organisation) {
        const group_list all = {read->key.organisation->teams, read->key.organisation->n_teams};
        read->key.team = group_find(r, read->team, "team", &all);
    }
    weft__config_leave(r, back);
}

static void one_key(weft__config_reader *r, const weft__config_node *v, void *into)
{
    static const weft__config_field table[] = {
        {"name", weft__config_keep, offsetof(key_read, name), 1},
        {"hash", hash_of, offsetof(key_read, key.hash), 1},
        {"role", role_of, offsetof(key_read, key.is_admin), 0},
        {"organisation", weft__config_keep, offsetof(key_read, organisation), 0},
        {"team", weft__config_keep, offsetof(key_read, team), 0},
        {"limits", limits, offsetof(key_read, key.limits), 0},
        {0},
    };
    key_read read = {.key = {.line = v->line, .column = v->column}};
    weft__config_fields(r, v, table, &read);
    if (read.name) {
        const size_t back = weft__config_enter(r, "name", 0);
        weft__config_text(r, read.name, &read.key.name);
        if (read.key.name) {
            weft__config_node at = *read.name;
            at.key = NULL; /* at the value */
            weft__config_name_ok(r, &at, read.key.name, WEFT__CONFIG_NAME, "._-");
        }
        weft__config_leave(r, back);
    }
    place_key(r, &read);
    memcpy(into, &read.key, sizeof read.key);
}

void weft__config_keys(weft__config_reader *r, const weft__config_node *v)
{
    weft__config *c = r->config;
    if (!v || v->kind == WEFT__CONFIG_NONE) return;
    weft__config_key *keys = weft__config_each(r, v, WEFT__CONFIG_LIST, sizeof *keys, &c->n_keys, one_key);
    c->keys = keys;
    for (size_t i = 0; i < c->n_keys; i++)
        for (size_t k = 0; k < i; k++) {
            const weft__config_node at = {.line = keys[i].line, .column = keys[i].column};
            if (keys[i].hash && keys[k].hash && !strcasecmp(keys[i].hash, keys[k].hash))
                weft__config_say(r, &at, "the key of line %d stands here again", keys[k].line);
            if (keys[i].name && keys[k].name && !strcmp(keys[i].name, keys[k].name))
                weft__config_say(r, &at, "the key of line %d is called '%s', too; give it another name", keys[k].line,
                                 keys[i].name);
        }
}
