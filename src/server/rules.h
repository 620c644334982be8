// SPDX-License-Identifier: Apache-2.0
/* rules.h: who may call and what for, as the key files and weft.yaml have it: a snapshot, which a reload replaces whole
 * (rules.c); and presets (presets.c).
 *
 * Invariant: a snapshot is constant; who holds it keeps all that it shows. Accounts go over from one to the next. Any
 * thread. */
#ifndef WEFT_SERVER_RULES_H
#define WEFT_SERVER_RULES_H

#include "config/config.h"
#include "server/limits.h"
#include "server/server.h"

/* What weft.yaml says of a key. */
typedef struct weft__server_member {
    weft__server_chain chain;
    const weft__config_limits *limits[WEFT__SERVER_LEVELS]; /* [chain.n] */
} weft__server_member;

typedef struct weft__server_rules {
    atomic_int refs;
    weft__server_limits *limits; /* the server's */
    weft__server_keys keys;
    weft__config *config;            /* NULL: there is no file */
    weft__server_member *members;    /* [config->n_keys] */
    weft__server_account **accounts; /* [n_accounts] */
    size_t n_accounts, cap_accounts;
    char **templates; /* [config->n_presets]; NULL: it has none */
} weft__server_rules;

/* As the files are now. Fails with what is wrong in them (faults has all that is in weft.yaml), WEFT_IO,
 * WEFT_NO_MEMORY. before: whose accounts go over; NULL: none. */
weft_status weft__server_rules_new(weft_server *s, weft__server_rules *before, weft__server_rules **out,
                                   weft__config_faults *faults, weft_error *err);
/* They count from now on. Takes *next. */
void weft__server_rules_put(weft_server *s, weft__server_rules **next);
/* Those that count now. */
weft__server_rules *weft__server_rules_hold(weft_server *s);
weft__server_rules *weft__server_rules_share(weft__server_rules *rules);
void weft__server_rules_release(weft__server_rules **rules);
/* Reads the files again: all or nothing, and the log says what is wrong. */
void weft__server_rules_reload(weft_server *s);

/* May the caller use a model or preset of that name, or an adapter, as it calls it? */
int weft__server_may_use_model(const weft__server_caller *who, const char *name);
int weft__server_may_use_adapter(const weft__server_caller *who, const char *name);

/* ---- presets.c ---- */
/* NULL: none is called so. */
const weft__config_preset *weft__server_preset_find(const weft__server_rules *rules, const char *name);
/* Is each of them one of a model of the server's, and of one that is there with a template that can be read? */
weft_status weft__server_presets_check(weft__server_rules *rules, weft_server *s, weft_error *err);
/* The body of a caller's request as one of this form, with what its model adds where that is a preset (*preset; else
 * NULL). 1, or 0 with the error filled. The parameters are to be freed either way. */
int weft__server_preset_parse(const weft__server_caller *who, weft__server_model *m, const weft__api_table *form,
                              const char *body, size_t n, weft__api_params *params, const weft__config_preset **preset,
                              weft__api_error *error);
/* Those that the caller may use, as models, each with a comma in front. */
void weft__server_presets_put(const weft__server_model *m, const weft__server_caller *who, weft__strbuf *out);
/* Its adapters, where the request has none. 1, or 0 with the error filled. */
int weft__server_preset_adapters(const weft__server_model *m, const weft__config_preset *preset,
                                 weft__api_params *params, weft__api_error *error);
/* What prompts of a preset are made with: *chat, or the model's own. Filled by value, to be given back. */
int weft__server_preset_prompts(const weft__server_rules *rules, weft__server_model *m,
                                const weft__config_preset *preset, weft__api_prompt_model *out, weft__api_error *error);

#endif
