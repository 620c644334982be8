// SPDX-License-Identifier: Apache-2.0
/* presets.c: models as weft.yaml makes them of others (rules.h): what they add to a request is there before its table
 * reads it, so that the request's own fields win. Workers.
 *
 * Templates of presets are kept with the model that they are for until that ends, by their text: MOST of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/objects.h"
#include "base/alloc.h"
#include "server/models.h"
#include "server/rules.h"

enum { MOST = 256 };

struct weft__server_template {
    struct weft__server_template *next;
    char *source;
    weft_chat *chat, *tool_chat;
    char *tool_fault;
};

const weft__config_preset *weft__server_preset_find(const weft__server_rules *rules, const char *name)
{
    const weft__config *c = rules ? rules->config : NULL;
    for (size_t i = 0; c && name && i < c->n_presets; i++)
        if (!strcmp(c->presets[i].name, name)) return &c->presets[i];
    return NULL;
}

/* ---- templates ---- */

static void template_free(struct weft__server_template *t)
{
    if (!t) return;
    weft_chat_close(&t->tool_chat);
    weft_chat_close(&t->chat);
    weft__free(t->tool_fault);
    weft__free(t->source);
    weft__free(t);
}

void weft__server_templates_end(weft__server_model *m)
{
    while (m->templates) {
        struct weft__server_template *t = m->templates;
        m->templates = t->next;
        template_free(t);
    }
}

static struct weft__server_template *template_new(weft__server_model *m, const char *source, weft_error *err)
{
    struct weft__server_template *t = weft__alloc_zero(1, sizeof *t);
    weft_error why = {0};
    weft_status st = t && (t->source = weft__strdup(source))
                         ? weft_chat_open(m->model, source, strlen(source), &t->chat, err)
                         : weft_fail(err, WEFT_NO_MEMORY, "no memory for a template");
    if (!st) {
        st = weft_chat_open_for_tools(m->model, t->chat, &t->tool_chat, &why);
        if (st && st != WEFT_NO_MEMORY) t->tool_fault = weft__strdup(why.message);
        st = st == WEFT_NO_MEMORY ? weft_fail(err, st, "%s", why.message) : WEFT_OK;
    }
    if (!st) return t;
    template_free(t);
    return NULL;
}

/* The template of this text for that model; NULL with the error filled. */
static const struct weft__server_template *template_of(weft__server_model *m, const char *source, weft_error *err)
{
    int n = 0;
    pthread_mutex_lock(&m->templates_lock);
    struct weft__server_template *t = m->templates;
    while (t && strcmp(t->source, source)) t = t->next, n++;
    if (!t && n >= MOST)
        weft_fail(err, WEFT_LIMIT, "%d templates were read since the model was loaded; start the server anew", n);
    else if (!t && (t = template_new(m, source, err))) {
        t->next = m->templates;
        m->templates = t;
    }
    pthread_mutex_unlock(&m->templates_lock);
    return t;
}

int weft__server_preset_prompts(const weft__server_rules *rules, weft__server_model *m,
                                const weft__config_preset *preset, weft__api_prompt_model *out, weft__api_error *error)
{
    weft_error err = {0};
    *out = m->prompt_model;
    const char *source = preset ? rules->templates[preset - rules->config->presets] : NULL;
    if (!source) return 1;
    const struct weft__server_template *t = template_of(m, source, &err);
    if (!t) {
        weft__api_error_of(error, err.status == WEFT_NO_MEMORY ? WEFT_NO_MEMORY : WEFT_IO, err.message);
        return 0;
    }
    out->chat = t->chat;
    out->tool_chat = t->tool_chat;
    out->tool_fault = t->tool_fault;
    return 1;
}

/* ---- a request ---- */

/* The preset that the body names; NULL: none. */
static const weft__config_preset *named_preset(const weft__server_rules *rules, const weft__json *root)
{
    const char *name;
    size_t n;
    if (!weft__json_string(weft__json_get(root, "model"), &name, &n) || strlen(name) != n) return NULL;
    return weft__server_preset_find(rules, name);
}

/* What the router chose stands in the place of its name. */
static int put_routed(const weft__server_caller *who, weft__json *root, weft__api_error *error)
{
    const char *model = who->routed.model;
    if (!*model || weft__json_set(root, "model", weft__json_new_string(model, strlen(model)))) return 1;
    return weft__api_error_set(error, 503, NULL, "no memory for the request");
}

int weft__server_preset_parse(const weft__server_caller *who, weft__server_model *m, const weft__api_table *form,
                              const char *body, size_t n, weft__api_params *params, const weft__config_preset **preset,
                              weft__api_error *error)
{
    const weft__server_rules *rules = who->rules;
    weft__json *root = NULL;
    *preset = NULL;
    if (!n || (!*who->routed.model && (!rules || !rules->config || !rules->config->n_presets)))
        return weft__api_params_parse(form, m->n_vocab, body, n, params, error);
    *params = (weft__api_params){.form = form};
    *error = (weft__api_error){0};
    if (!weft__api_body_parse(body, n, &root, error)) return 0;
    if (!put_routed(who, root, error)) {
        weft__json_free(&root);
        return 0;
    }
    const weft__config_preset *p = *preset = named_preset(rules, root);
    const int chats = form == &weft__api_table_chat || form == &weft__api_table_apply_template;
    if ((!p || !p->sampling || weft__api_preset_fields(form, p->sampling, root, error)) &&
        (!p || !p->system || !chats || weft__api_preset_system(p->system, root, error)))
        return weft__api_params_take(form, m->n_vocab, &root, params, error);
    weft__json_free(&root);
    return 0;
}

int weft__server_preset_adapters(const weft__server_model *m, const weft__config_preset *preset,
                                 weft__api_params *params, weft__api_error *error)
{
    if (!preset || !preset->adapters_given || params->lora_given) return 1;
    params->n_loras = 0;
    for (size_t i = 0; i < preset->n_adapters && i < WEFT__API_MAX_LORAS; i++) {
        const weft__config_adapter *a = &preset->adapters[i];
        weft_engine_adapter there = {.size = sizeof there};
        if (weft_engine_adapter_find(m->engine, a->name, &there, NULL))
            return weft__api_error_set(
                error, 503, "model",
                "the preset '%.64s' wants the adapter '%.100s', which this server does not have now", preset->name,
                a->name);
        params->loras[params->n_loras++] =
            (weft__api_adapter_scale){.id = there.index, .scale = isnan(a->scale) ? (double)there.scale : a->scale};
    }
    params->lora_given = 1;
    return 1;
}

void weft__server_presets_put(const weft__server_model *m, const weft__server_caller *who, weft__strbuf *out)
{
    const weft__config *c = who->rules ? who->rules->config : NULL;
    for (size_t i = 0; c && i < c->n_presets; i++)
        if (weft__server_may_use_model(who, c->presets[i].name))
            weft__api_put_preset_model(out, c->presets[i].name, c->presets[i].base ? c->presets[i].base : m->name,
                                       m->server->began);
}

/* ---- when they are read ---- */

/* What the table of chats says of all of its sampling, with this model's vocabulary. */
static weft_status check_sampling(const weft__config_preset *p, const weft__server_model *m, weft_error *err)
{
    static const char begin[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}";
    weft__json *root = NULL;
    weft__api_params params = {0};
    weft__api_error error = {0};
    int ok = weft__api_body_parse(begin, sizeof begin - 1, &root, &error) &&
             weft__api_preset_fields(&weft__api_table_chat, p->sampling, root, &error) &&
             weft__api_params_take(&weft__api_table_chat, m->n_vocab, &root, &params, &error);
    weft__json_free(&root);
    weft__api_params_free(&params);
    if (ok) return WEFT_OK;
    return weft_fail(err, error.status == 503 ? WEFT_NO_MEMORY : WEFT_ARGUMENT, "presets.%s: %s", p->name,
                     error.message);
}

/* The model of a preset: its base, or the one that is meant by no name. NULL: none is served so. */
static weft__server_model *base_of(weft_server *s, const weft__config_preset *p)
{
    weft__server_model *first = s->models.first ? s->models.first : s->models.n == 1 ? s->models.items[0] : NULL;
    weft__server_model *m = p->base ? weft__server_models_find(s, p->base) : first;
    for (char **a = first && !m ? first->aliases.items : NULL; a && *a; a++)
        if (!strcmp(*a, "*")) return first;
    return m;
}

/* What can be said of it once its model is there. */
static weft_status check_with_model(weft__server_rules *rules, weft__server_model *m, const weft__config_preset *p,
                                    weft_error *err)
{
    const char *source = rules->templates[p - rules->config->presets];
    weft_engine_adapter a = {.size = sizeof a};
    if (!weft_engine_adapter_find(m->engine, p->name, &a, NULL))
        return weft_fail(err, WEFT_ARGUMENT, "presets.%s: a model or an adapter has that name; give it another",
                         p->name);
    weft_status st = p->sampling ? check_sampling(p, m, err) : WEFT_OK;
    if (!st && source && !template_of(m, source, err))
        st = weft_fail_within(err, (weft_status)err->status, "presets.%s: %s", p->name, p->chat_template);
    return st;
}

weft_status weft__server_presets_check(weft__server_rules *rules, weft_server *s, weft_error *err)
{
    const weft__config *c = rules->config;
    weft_status st = WEFT_OK;
    for (size_t i = 0; c && i < c->n_presets && !st; i++) {
        const weft__config_preset *p = &c->presets[i];
        weft__server_model *m = base_of(s, p);
        if (weft__server_models_find(s, p->name))
            return weft_fail(err, WEFT_ARGUMENT, "presets.%s: a model or an adapter has that name; give it another",
                             p->name);
        if (!m)
            return weft_fail(err, WEFT_ARGUMENT, "presets.%s: its base '%s' is not served; this server has '%s'",
                             p->name, p->base ? p->base : "", s->models.items[0]->name);
        if (!weft__server_model_hold_loaded(m)) continue;
        st = check_with_model(rules, m, p, err);
        weft__server_model_look_away(&m);
    }
    return st;
}
