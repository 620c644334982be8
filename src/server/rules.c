// SPDX-License-Identifier: Apache-2.0
/* rules.c: keys and weft.yaml as a snapshot (rules.h). The thread of weft_server_run reads them again; requests hold
 * what they began with. */
#include "server/rules.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

static weft_status rules_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for API keys");
}

/* ---- life ---- */

static void rules_free(weft__server_rules *r)
{
    for (size_t i = 0; i < r->n_accounts; i++) weft__server_account_release(r->limits, &r->accounts[i]);
    for (size_t i = 0; r->templates && i < r->config->n_presets; i++) weft__free(r->templates[i]);
    weft__free(r->accounts);
    weft__free(r->templates);
    weft__free(r->members);
    weft__server_keys_free(&r->keys);
    weft__config_free(&r->config);
    weft__free(r);
}

weft__server_rules *weft__server_rules_share(weft__server_rules *r)
{
    if (r) atomic_fetch_add(&r->refs, 1);
    return r;
}

weft__server_rules *weft__server_rules_hold(weft_server *s)
{
    pthread_rwlock_rdlock(&s->rules_lock);
    weft__server_rules *r = weft__server_rules_share(s->rules);
    pthread_rwlock_unlock(&s->rules_lock);
    return r;
}

void weft__server_rules_release(weft__server_rules **p)
{
    weft__server_rules *r = *p;
    *p = NULL;
    if (r && atomic_fetch_sub(&r->refs, 1) == 1) rules_free(r);
}

/* ---- accounts ---- */

/* The account of that level and name: as it was before, or a new one. NULL: no memory. */
static weft__server_account *add_account(weft__server_rules *r, const weft__server_rules *before, int level,
                                         const char *name)
{
    weft__server_account *a = NULL;
    if (!weft__grow(&r->accounts, &r->cap_accounts, r->n_accounts + 1, sizeof *r->accounts)) return NULL;
    for (size_t i = 0; before && i < before->n_accounts && !a; i++)
        if (before->accounts[i]->level == level && !strcmp(before->accounts[i]->name, name))
            a = weft__server_account_hold(r->limits, before->accounts[i]);
    if (!a) a = weft__server_account_new(level, name);
    if (a) r->accounts[r->n_accounts++] = a;
    return a;
}

/* Of all organisations and their teams, in their order, and behind them of all keys. */
static weft_status add_accounts(weft__server_rules *r, const weft__server_rules *before, weft_error *err)
{
    const weft__config *c = r->config;
    char name[WEFT__SERVER_ACCOUNT_NAME];
    for (size_t i = 0; i < c->n_organisations; i++) {
        const weft__config_group *o = &c->organisations[i];
        if (!add_account(r, before, 2, o->name)) return rules_no_memory(err);
        for (size_t k = 0; k < o->n_teams; k++) {
            snprintf(name, sizeof name, "%s/%s", o->name, o->teams[k].name);
            if (!add_account(r, before, 1, name)) return rules_no_memory(err);
        }
    }
    for (size_t i = 0; i < c->n_keys; i++)
        if (!add_account(r, before, 0, c->keys[i].name)) return rules_no_memory(err);
    return WEFT_OK;
}

/* Where the account of a group stands; SIZE_MAX: nowhere. */
static size_t account_of(const weft__config *c, const weft__config_group *group)
{
    size_t at = 0;
    for (size_t i = 0; i < c->n_organisations; i++) {
        const weft__config_group *o = &c->organisations[i];
        if (o == group) return at;
        at++;
        if (group >= o->teams && group < o->teams + o->n_teams) return at + (size_t)(group - o->teams);
        at += o->n_teams;
    }
    return SIZE_MAX;
}

static void join(weft__server_rules *r, weft__server_member *m, weft__server_account *a,
                 const weft__config_limits *limits)
{
    (void)r;
    m->limits[m->chain.n] = limits;
    m->chain.items[m->chain.n++] = a;
}

static void fill_member(weft__server_rules *r, size_t i)
{
    const weft__config *c = r->config;
    const weft__config_key *key = &c->keys[i];
    weft__server_member *m = &r->members[i];
    join(r, m, r->accounts[r->n_accounts - c->n_keys + i], &key->limits);
    if (key->team) join(r, m, r->accounts[account_of(c, key->team)], &key->team->limits);
    if (key->organisation) join(r, m, r->accounts[account_of(c, key->organisation)], &key->organisation->limits);
}

/* ---- reading ---- */

static weft_status read_template(const char *path, char **out, weft_error *err)
{
    enum { TEMPLATE = 1 << 20 };
    FILE *f = fopen(path, "rb");
    if (!f) return weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno));
    char *text = weft__alloc(TEMPLATE + 1);
    const size_t n = text ? fread(text, 1, TEMPLATE + 1, f) : 0;
    weft_status st = !text          ? rules_no_memory(err)
                     : ferror(f)    ? weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno))
                     : n > TEMPLATE ? weft_fail(err, WEFT_LIMIT, "%s: larger than %d bytes", path, TEMPLATE)
                                    : WEFT_OK;
    fclose(f);
    if (!st) {
        text[n] = 0;
        if (strlen(text) != n) st = weft_fail(err, WEFT_FORMAT, "%s: a NUL byte in it", path);
    }
    if (st) weft__free(text);
    else *out = text;
    return st;
}

static weft_status read_templates(weft__server_rules *r, weft_error *err)
{
    const weft__config *c = r->config;
    weft_status st = WEFT_OK;
    if (!(r->templates = weft__alloc_zero(c->n_presets + 1, sizeof *r->templates))) return rules_no_memory(err);
    for (size_t i = 0; i < c->n_presets && !st; i++)
        if (c->presets[i].chat_template) {
            st = read_template(c->presets[i].chat_template, &r->templates[i], err);
            if (st) weft_fail_within(err, st, "presets.%s", c->presets[i].name);
        }
    return st;
}

static int32_t known_setting(void *arg, const weft__config_setting *setting, int of_model, char *why, size_t room)
{
    const weft_server *s = arg;
    return s->config_setting(s->config_arg, setting->name, setting->values, (int32_t)setting->n, of_model, why, room);
}

static weft_status read_config(weft_server *s, weft__server_rules *r, const weft__server_rules *before,
                               weft__config_faults *faults, weft_error *err)
{
    const weft__config_known known = {.setting = known_setting, .arg = s};
    weft_status st = weft__config_read(s->config_file, s->config_setting ? &known : NULL, &r->config, faults, err);
    if (!st) st = read_templates(r, err);
    if (!st) st = add_accounts(r, before, err);
    const weft__config *c = r->config;
    if (!st && !(r->members = weft__alloc_zero(c->n_keys + 1, sizeof *r->members))) st = rules_no_memory(err);
    for (size_t i = 0; !st && i < c->n_keys; i++) {
        weft__server_key one = {.is_admin = c->keys[i].is_admin, .member = &r->members[i]};
        snprintf(one.name, sizeof one.name, "%s", c->keys[i].name);
        fill_member(r, i);
        st = weft__server_keys_add_hash(&r->keys, c->keys[i].hash, &one, err);
    }
    return st;
}

weft_status weft__server_rules_new(weft_server *s, weft__server_rules *before, weft__server_rules **out,
                                   weft__config_faults *faults, weft_error *err)
{
    weft_status st = WEFT_OK;
    weft__server_rules *r = weft__alloc_zero(1, sizeof *r);
    *out = NULL;
    if (!r) return rules_no_memory(err);
    atomic_init(&r->refs, 1);
    r->limits = &s->limits;
    for (size_t i = 0; i < s->given_keys.n && !st; i++) {
        if (!weft__grow(&r->keys.items, &r->keys.capacity, r->keys.n + 1, sizeof *r->keys.items))
            st = rules_no_memory(err);
        else r->keys.items[r->keys.n++] = s->given_keys.items[i];
    }
    if (!st && s->key_file) st = weft__server_keys_read(&r->keys, s->key_file, err);
    if (!st && s->config_file) st = read_config(s, r, before, faults, err);
    if (st) weft__server_rules_release(&r);
    *out = r;
    return st;
}

/* ---- the change ---- */

static void set_limits(weft__server_rules *r, size_t at, const weft__config_limits *l)
{
    weft__server_account_set(r->limits, r->accounts[at], l->requests_per_minute, l->tokens_per_minute, l->concurrent);
}

void weft__server_rules_put(weft_server *s, weft__server_rules **next)
{
    weft__server_rules *r = *next, *old;
    const weft__config *c = r->config;
    size_t at = 0;
    *next = NULL;
    for (size_t i = 0; c && i < c->n_organisations; i++) {
        set_limits(r, at++, &c->organisations[i].limits);
        for (size_t k = 0; k < c->organisations[i].n_teams; k++)
            set_limits(r, at++, &c->organisations[i].teams[k].limits);
    }
    for (size_t i = 0; c && i < c->n_keys; i++) set_limits(r, at++, &c->keys[i].limits);
    pthread_rwlock_wrlock(&s->rules_lock);
    old = s->rules;
    s->rules = r;
    pthread_rwlock_unlock(&s->rules_lock);
    weft__server_rules_release(&old);
}

static int same_settings(const weft__config_settings *a, const weft__config_settings *b)
{
    int same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) {
        same = !strcmp(a->items[i].name, b->items[i].name) && a->items[i].n == b->items[i].n;
        for (size_t k = 0; same && k < a->items[i].n; k++) same = !strcmp(a->items[i].values[k], b->items[i].values[k]);
    }
    return same;
}

static int same_adapter(const weft__config_adapter *a, const weft__config_adapter *b)
{
    const int same_scale = isnan(a->scale) ? isnan(b->scale) : a->scale == b->scale;
    return same_scale && !strcmp(a->name, b->name) && !strcmp(a->path, b->path);
}

static int same_models(const weft__config *a, const weft__config *b)
{
    int same = a->n_models == b->n_models;
    for (size_t i = 0; same && i < a->n_models; i++) {
        const weft__config_model *x = &a->models[i], *y = &b->models[i];
        same = !strcmp(x->name, y->name) && !strcmp(x->path, y->path) && x->pinned == y->pinned &&
               x->n_adapters == y->n_adapters && same_settings(&x->options, &y->options);
        for (size_t k = 0; same && k < x->n_adapters; k++) same = same_adapter(&x->adapters[k], &y->adapters[k]);
    }
    return same;
}

/* What a running server cannot follow is told. */
static void tell_what_waits(const weft__config *old, const weft__config *now)
{
    if (old && now && !same_settings(&old->server, &now->server))
        weft__log(WEFT__LOG_WARN, "'server' of the settings has changed: that counts from the next start");
    if (old && now && !same_models(old, now))
        weft__log(WEFT__LOG_WARN, "'models' of the settings has changed: that counts from the next start");
}

static weft_status check_next(weft_server *s, weft__server_rules *next, weft_error *err)
{
    if (s->wants_keys && !next->keys.n)
        return weft_fail(err, WEFT_ARGUMENT, "no key is left, and all would be let in: that wants a new start");
    if (!s->wants_keys && next->keys.n)
        return weft_fail(err, WEFT_ARGUMENT, "the first keys of a server want a new start");
    return weft__server_presets_check(next, s, err);
}

/* What cannot be read changes nothing: no client is let in, or shut out, by a file that is half written. */
void weft__server_rules_reload(weft_server *s)
{
    weft__server_rules *next = NULL;
    weft__config_faults faults = {0};
    weft_error err = {0};
    if (!s->key_file && !s->config_file) return;
    weft_status st = weft__server_rules_new(s, s->rules, &next, &faults, &err);
    if (!st) st = check_next(s, next, &err);
    for (size_t i = 1; i < faults.n; i++)
        weft__log(WEFT__LOG_WARN, "%s:%d:%d: %s", s->config_file, faults.items[i].line, faults.items[i].column,
                  faults.items[i].message);
    weft__config_faults_free(&faults);
    if (st)
        weft__log(WEFT__LOG_WARN, "%s; the keys stay as they were%s", err.message,
                  s->config_file ? ", and presets and limits" : "");
    else {
        tell_what_waits(s->rules->config, next->config);
        weft__server_rules_put(s, &next);
        for (size_t i = 0; i < s->models.n; i++) {
            weft__server_model *m = s->models.items[i];
            if (!weft__server_model_hold_loaded(m)) continue;
            weft__server_adapters_forget(m);
            weft__server_model_look_away(&m);
        }
    }
    weft__server_rules_release(&next);
}

/* ---- what a caller may use ---- */

static int is_among(const weft__config_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (!strcmp(names->items[i], name)) return 1;
    return !names->given;
}

int weft__server_may_use_model(const weft__server_caller *who, const char *name)
{
    const weft__server_member *m = who->member;
    for (int i = 0; m && i < m->chain.n; i++)
        if (!is_among(&m->limits[i]->models, name)) return 0;
    return 1;
}

int weft__server_may_use_adapter(const weft__server_caller *who, const char *name)
{
    const weft__server_member *m = who->member;
    for (int i = 0; m && i < m->chain.n; i++)
        if (!is_among(&m->limits[i]->adapters, name)) return 0;
    return 1;
}
