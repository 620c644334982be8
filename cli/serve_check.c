// SPDX-License-Identifier: Apache-2.0
/* serve_check.c: see serve_check.h. */
#include "serve_check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "adapters.h"
#include "fit.h"
#include "hub/http.h"
#include "known.h"
#include "learn/night.h"
#include "learn/store.h"
#include "served.h"
#include "weft/hub.h"

/* Bytes of an API key at least (src/server/auth.c). */
enum { KEY_LEAST = 8 };

/* ---- values ---- */

static int say(char *why, size_t room, const char *text)
{
    snprintf(why, room, "%s", text);
    return 0;
}

int serve_check_url(const char *value, char *why, size_t room)
{
    char host[256];
    return weft__hub_http_is_plain(value, host, sizeof host) ||
           say(why, room, "must be http://HOST[:PORT][/PATH] or https://");
}

int serve_check_time(const char *value, char *why, size_t room)
{
    return weft__night_read(value) >= 0 ||
           say(why, room, "must be a time of the day in four digits, from 00:00 to 23:59");
}

int serve_check_address(const char *value, char *why, size_t room)
{
    struct in6_addr to; /* room for both */
    return inet_pton(AF_INET, value, &to) == 1 || inet_pton(AF_INET6, value, &to) == 1 ||
           say(why, room, "must be an address in digits, like 10.0.0.2 or fd00::2");
}

int serve_check_model(const char *value, char *why, size_t room)
{
    const char *equals = strchr(value, '=');
    return (equals && equals > value && equals[1] && equals - value < 128) || say(why, room, "must be NAME=PATH");
}

int serve_check_adapter(const char *value, char *why, size_t room)
{
    static struct adapter_option a;
    return adapter_option_read(value, &a, why, room);
}

int serve_check_size(const char *value, char *why, size_t room)
{
    return fit_size(value) || say(why, room, "must be bytes, as 12G, 1.5G, 500M or 64K");
}

/* ---- settings that name something ---- */

typedef struct looking {
    const command_spec *spec;
    const weft__config *config;
    int model_given;
    weft__config_faults *faults;
} looking;

typedef struct weft__config_setting setting;

static void fault_readable(looking *l, int line, int column, const char *what, const char *path)
{
    if (path && access(path, R_OK))
        weft__config_fault_add(l->faults, line, column, "%s: %.200s cannot be read", what, path);
}

static void want_file(looking *l, const setting *s, const char *value)
{
    fault_readable(l, s->line, s->column, s->name, value);
}

static void want_folder(looking *l, const setting *s, const char *value)
{
    struct stat is;
    if (stat(value, &is) || !S_ISDIR(is.st_mode) || access(value, R_OK | X_OK))
        weft__config_fault_add(l->faults, s->line, s->column, "%s: %.200s is no folder that can be read", s->name,
                               value);
}

/* What the path leads to, of a model: a file, a folder, or what was pulled. */
static void fault_model(looking *l, int line, int column, const char *what, const char *value)
{
    char path[PATH_MAX];
    weft_error err = {0};
    if (value && weft_resolve_model(known_model_of(value), path, sizeof path, &err))
        weft__config_fault_add(l->faults, line, column, "%s: %s", what, err.message);
}

static void want_draft(looking *l, const setting *s, const char *value)
{
    if (strcmp(value, "auto")) fault_model(l, s->line, s->column, s->name, value);
}

static void want_model(looking *l, const setting *s, const char *value)
{
    const char *equals = strchr(value, '=');
    if (equals) fault_model(l, s->line, s->column, s->name, equals + 1);
}

static void want_adapter(looking *l, const setting *s, const char *value)
{
    static struct adapter_option a;
    char why[150];
    if (adapter_option_read(value, &a, why, sizeof why)) /* else it was told */
        fault_readable(l, s->line, s->column, s->name, a.path);
}

static void want_provider(looking *l, const setting *s, const char *value)
{
    weft_error err = {0};
    weft_backend_info info = {.size = sizeof info};
    if (weft_provider_describe(value, &info, &err))
        weft__config_fault_add(l->faults, s->line, s->column, "%s: %s", s->name, err.message);
}

/* A key is never told. */
static void want_key(looking *l, const setting *s, const char *value)
{
    static const char prefix[] = "sha256:";
    const int is_hash = !strncmp(value, prefix, sizeof prefix - 1);
    const char *hex = value + sizeof prefix - 1;
    if (is_hash && (strlen(hex) != 64 || strspn(hex, "0123456789abcdefABCDEF") != 64))
        weft__config_fault_add(l->faults, s->line, s->column, "%s: sha256: wants 64 hexadecimal digits", s->name);
    else if (!is_hash && strlen(value) < KEY_LEAST)
        weft__config_fault_add(l->faults, s->line, s->column, "%s: shorter than %d characters", s->name, KEY_LEAST);
}

/* ---- places that are written to ---- */

/* Can something new be made in the folder? Some file systems let the superuser write anywhere and make nothing. */
static int can_make_in(const char *folder)
{
    char made[PATH_MAX];
    if ((size_t)snprintf(made, sizeof made, "%s/.weft-check-XXXXXX", folder) >= sizeof made) return 0;
    if (!mkdtemp(made)) return 0;
    rmdir(made);
    return 1;
}

static int can_make(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof folder) return 0;
    snprintf(folder, sizeof folder, "%.*s", (int)n, path);
    return can_make_in(!slash ? "." : n ? folder : "/");
}

static void fault_unwritable(looking *l, const setting *s, const char *value, int ok)
{
    if (!ok) weft__config_fault_add(l->faults, s->line, s->column, "%s: %.200s cannot be written", s->name, value);
}

static void want_output(looking *l, const setting *s, const char *value)
{
    struct stat is;
    if (!strcmp(value, "-") && !strcmp(s->name, "log-file")) return;
    const int there = !stat(value, &is);
    fault_unwritable(l, s, value, there ? !S_ISDIR(is.st_mode) && !access(value, W_OK) : can_make(value));
}

/* One that is there is replaced, whoever it was. */
static void want_socket(looking *l, const setting *s, const char *value)
{
    const size_t most = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
    if (strlen(value) > most)
        weft__config_fault_add(l->faults, s->line, s->column, "unix: the path is longer than %zu bytes", most);
    else fault_unwritable(l, s, value, can_make(value));
}

static void want_store(looking *l, const setting *s, const char *value)
{
    struct stat is;
    const int there = !stat(value, &is);
    fault_unwritable(l, s, value, there ? S_ISDIR(is.st_mode) && can_make_in(value) : can_make(value));
}

static void want_learned(looking *l, const setting *s, const char *value)
{
    weft_error err = {0};
    if (weft__learn_check(value, &err))
        weft__config_fault_add(l->faults, s->line, s->column, "%s: %s", s->name, err.message);
}

/* ---- each setting ---- */

static const struct {
    const char *name;
    void (*want)(looking *l, const setting *s, const char *value);
} NAMES_SOMETHING[] = {
    {"api-key-file", want_file},  {"tls-cert", want_file},       {"tls-key", want_file}, {"chat-template", want_file},
    {"adapter-dir", want_folder}, {"models", want_folder},       {"model", want_model},  {"draft", want_draft},
    {"adapter", want_adapter},    {"provider", want_provider},   {"api-key", want_key},  {"admin-key", want_key},
    {"log-file", want_output},    {"metrics-file", want_output}, {"trace", want_output}, {"unix", want_socket},
    {"store", want_store},        {"learn", want_learned},
};
enum { N_NAMES = sizeof NAMES_SOMETHING / sizeof *NAMES_SOMETHING };

static void look_at_settings(looking *l, const weft__config_settings *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const setting *s = &all->items[i];
        for (size_t k = 0; k < N_NAMES; k++)
            for (size_t v = 0; !strcmp(NAMES_SOMETHING[k].name, s->name) && v < s->n; v++)
                NAMES_SOMETHING[k].want(l, s, s->values[v]);
    }
}

static const setting *find_setting(const weft__config_settings *all, const char *name)
{
    size_t i = 0;
    while (i < all->n && strcmp(all->items[i].name, name)) i++;
    return i < all->n ? &all->items[i] : NULL;
}

/* Options that do nothing without one of others, with blanks between: the first of these is named. value: only that one
 * of its values; NULL: any. */
static const struct wanting {
    const char *one, *value, *others;
} WANTS[] = {
    {"tls-cert", NULL, "tls-key"},
    {"tls-key", NULL, "tls-cert"},
    {"metrics-every", NULL, "metrics-file"},
    {"store-mb", NULL, "store"},
    {"swap-mb", NULL, "store"},
    {"swap", "always", "store"},
    {"learn-share", NULL, "learn"},
    {"learn-consolidate", NULL, "learn-share"},
    {"learn-days", NULL, "learn"},
    {"learn-mb", NULL, "learn"},
    {"feedback-per-hour", NULL, "learn"},
    {"log-sync", NULL, "learn"},
    {"memories", NULL, "learn"},
    {"memory-embed", NULL, "memories"},
    {"route-by", NULL, "route"},
    {"route-cost", NULL, "route"},
    {"route-embed", NULL, "route"},
    {"adapter-mb", NULL, "adapter-dir adapter learn-share"},
    {"adapter-type", NULL, "adapter-dir adapter learn-share"},
};
enum { N_WANTS = sizeof WANTS / sizeof *WANTS };

static const setting *setting_of(const weft__config *c, const char *name)
{
    const setting *s = c ? find_setting(&c->server, name) : NULL;
    return s && s->n == 1 && !strcmp(s->values[0], "false") ? NULL : s; /* of a flag */
}

/* A model of the file has adapters, or a folder of them, of its own. */
static int has_adapters(const weft__config *c)
{
    for (size_t i = 0; c && i < c->n_models; i++)
        if (c->models[i].n_adapters || find_setting(&c->models[i].options, "adapter-dir")) return 1;
    return 0;
}

static int is_any_given(const command_spec *spec, const weft__config *c, const char *names)
{
    char name[32];
    for (size_t n; *names; names += n + (names[n] == ' ')) {
        n = strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, names);
        if (options_given(spec, name) || setting_of(c, name)) return 1;
        if (!strcmp(name, "adapter") && has_adapters(c)) return 1;
    }
    return 0;
}

/* The text that the line gave. */
static const char *text_given(const command_spec *spec, const char *name)
{
    const option_spec *o = spec->options;
    while (strcmp(o->name, name)) o++;
    return *(const char *const *)o->out;
}

/* Is it given, and none of those that it wants? *s: where, NULL: on the line. */
static int lacks(const command_spec *spec, const weft__config *c, const struct wanting *w, const setting **s)
{
    const int on_line = options_given(spec, w->one);
    *s = on_line ? NULL : setting_of(c, w->one);
    if (!on_line && !*s) return 0;
    if (w->value && strcmp(on_line ? text_given(spec, w->one) : (*s)->values[0], w->value)) return 0;
    return !is_any_given(spec, c, w->others);
}

int serve_check_wants(const command_spec *spec, const weft__config *c)
{
    for (size_t i = 0; i < N_WANTS; i++) {
        const setting *s;
        const struct wanting *w = &WANTS[i];
        if (!lacks(spec, c, w, &s)) continue;
        fprintf(stderr, "weft %s: --%s%s%s does nothing without --%.*s; give that, too, or neither\n", spec->name,
                w->one, w->value ? " " : "", w->value ? w->value : "", (int)strcspn(w->others, " "), w->others);
        return 0;
    }
    return 1;
}

static void look_at_wants(looking *l)
{
    for (size_t i = 0; i < N_WANTS; i++) {
        const setting *s;
        if (lacks(l->spec, l->config, &WANTS[i], &s) && s)
            weft__config_fault_add(l->faults, s->line, s->column, "server: '%s' wants '%.*s' beside it", WANTS[i].one,
                                   (int)strcspn(WANTS[i].others, " "), WANTS[i].others);
    }
}

/* ---- names ---- */

/* The values of a list: the line's, or the file's. */
static void values_of(const looking *l, const char *name, struct text_list *out)
{
    const option_spec *o = l->spec->options;
    const setting *s = find_setting(&l->config->server, name);
    while (o->name && strcmp(o->name, name)) o++;
    *out = (struct text_list){0};
    if (o->name && options_given(l->spec, name)) *out = *(const struct text_list *)o->out;
    else
        for (size_t i = 0; s && i < s->n && i < LIST_MAX; i++) out->items[out->n++] = s->values[i];
}

/* The models beside the command's own, which is the file's first, or none where the line has one. */
static weft_status find_served(const looking *l, served_models *out, weft_error *err)
{
    struct text_list named, folders;
    weft_status st = WEFT_OK;
    for (size_t i = 1; i < l->config->n_models && !st; i++)
        if (l->config->models[i].name && l->config->models[i].path)
            st = served_models_add(out, l->config->models[i].name, l->config->models[i].path, 0, err);
    values_of(l, "model", &named);
    values_of(l, "models", &folders);
    return st ? st : served_models_find(out, &named, &folders, 0, err);
}

/* Has each `model` the form NAME=PATH? */
static int are_named(const looking *l)
{
    struct text_list named;
    char why[100];
    int i = 0;
    values_of(l, "model", &named);
    while (i < named.n && serve_check_model(named.items[i], why, sizeof why)) i++;
    return i == named.n;
}

static int is_served(const served_models *all, const char *name)
{
    int32_t i = 0;
    while (i < all->n && strcmp(all->items[i].name, name)) i++;
    return i < all->n;
}

static void look_at_pins(looking *l, const served_models *all)
{
    const setting *s = find_setting(&l->config->server, "pin");
    for (size_t i = 0; s && i < s->n; i++)
        if (!is_served(all, s->values[i]))
            weft__config_fault_add(l->faults, s->line, s->column, "pin: no model of the name '%.60s' is served%s",
                                   s->values[i],
                                   l->config->n_models && !strcmp(l->config->models[0].name, s->values[i])
                                       ? " beside the first, which always stays"
                                       : "");
}

static const weft__config_model *model_of(const weft__config *c, const char *name)
{
    for (size_t i = 0; i < c->n_models; i++)
        if (c->models[i].name && (!name || !strcmp(c->models[i].name, name))) return &c->models[i];
    return NULL;
}

/* Is one of that name given on a line `adapter`, to the command's own model? */
static int is_given_adapter(const looking *l, const char *name)
{
    struct text_list given;
    const size_t n = strlen(name);
    values_of(l, "adapter", &given);
    for (int i = 0; i < given.n; i++)
        if (!strncmp(given.items[i], name, n) && given.items[i][n] == '=') return 1;
    return 0;
}

/* Adapters that its model will not have; of a folder clients may load one by any name. */
static void look_at_preset_adapters(looking *l, const weft__config_preset *p, const weft__config_model *m)
{
    if (options_given(l->spec, "adapter-dir") || find_setting(&l->config->server, "adapter-dir") ||
        find_setting(&m->options, "adapter-dir"))
        return;
    for (size_t i = 0; i < p->n_adapters; i++) {
        const char *name = p->adapters[i].name;
        size_t k = 0;
        while (k < m->n_adapters && strcmp(m->adapters[k].name, name)) k++;
        if (k == m->n_adapters && !(m == l->config->models && is_given_adapter(l, name)))
            weft__config_fault_add(l->faults, p->line, p->column,
                                   "presets.%.60s: its model '%.60s' has no adapter '%.60s'", p->name, m->name, name);
    }
}

/* Presets of a model of the line's have what that has, which is not known before it is read. Bases are the file's
 * models where it has any, which reading it saw to. */
static void look_at_presets(looking *l, const served_models *all)
{
    const weft__config *c = l->config;
    for (size_t i = 0; i < c->n_presets && !l->model_given; i++) {
        const weft__config_preset *p = &c->presets[i];
        const weft__config_model *m = model_of(c, p->base);
        if (!p->name) continue;
        if (m) look_at_preset_adapters(l, p, m);
        else if (!c->n_models && p->base && !is_served(all, p->base))
            weft__config_fault_add(l->faults, p->line, p->column, "presets.%.60s: its base '%.60s' is not served",
                                   p->name, p->base);
    }
}

/* ---- all ---- */

static void look_at_model(looking *l, const weft__config_model *m)
{
    char what[100];
    snprintf(what, sizeof what, "models.%.60s", m->name);
    fault_model(l, m->line, m->column, what, m->path);
    for (size_t k = 0; k < m->n_adapters; k++)
        fault_readable(l, m->adapters[k].line, m->adapters[k].column, m->name, m->adapters[k].path);
    look_at_settings(l, &m->options);
}

void serve_check_look(const command_spec *spec, const weft__config *c, int model_given, weft__config_faults *faults)
{
    looking l = {spec, c, model_given, faults};
    served_models served = {0};
    weft_error err = {0};
    const size_t n_before = faults->n;
    look_at_settings(&l, &c->server);
    look_at_wants(&l);
    for (size_t i = 0; i < c->n_presets; i++)
        fault_readable(&l, c->presets[i].line, c->presets[i].column, c->presets[i].name, c->presets[i].chat_template);
    for (size_t i = 0; i < c->n_models; i++) look_at_model(&l, &c->models[i]);
    const size_t n_told = faults->n;
    if (!find_served(&l, &served, &err)) {
        look_at_pins(&l, &served);
        look_at_presets(&l, &served);
    } else if (n_told == n_before && are_named(&l)) { /* else it is among what was told */
        const setting *s = find_setting(&c->server, "model");
        weft__config_fault_add(faults, s ? s->line : 1, s ? s->column : 1, "%s", err.message);
    }
    served_models_free(&served);
}
