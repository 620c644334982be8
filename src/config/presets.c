// SPDX-License-Identifier: Apache-2.0
/* presets.c: models as clients see them: a base with a system prompt, sampling, adapters and a template (config.h). */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "api/fields.h"
#include "config/reader.h"

/* Of a chat's request, those that are a matter of taste, not of who asks or what for. */
static const char *const sampled[] = {"temperature",
                                      "top_k",
                                      "top_p",
                                      "min_p",
                                      "repetition_penalty",
                                      "presence_penalty",
                                      "frequency_penalty",
                                      "seed",
                                      "stop",
                                      "max_tokens",
                                      "logit_bias",
                                      "ignore_eos",
                                      "reasoning_effort",
                                      "verbosity",
                                      "chat_template_kwargs",
                                      "reasoning_format",
                                      "thinking_budget_tokens",
                                      NULL};

static const char *sampled_name(const void *arg, size_t i)
{
    (void)arg;
    return sampled[i];
}

/* ---- values as JSON ---- */

/* NULL: no memory, or what JSON has not. */
static weft__json *json_of(const weft__config_node *v)
{
    double x;
    weft__json *out = NULL;
    switch (v->kind) {
    case WEFT__CONFIG_NONE: return weft__json_new_null();
    case WEFT__CONFIG_BOOL: return weft__json_new_bool(*v->text == 't' || *v->text == 'T');
    case WEFT__CONFIG_INT:
        if (strlen(v->text) < 18) return weft__json_new_int(strtoll(v->text, NULL, 10));
        return weft__config_double(v, &x) ? weft__json_new_double(x) : NULL;
    case WEFT__CONFIG_NUMBER: return weft__config_double(v, &x) ? weft__json_new_double(x) : NULL;
    case WEFT__CONFIG_TEXT: return weft__json_new_string(v->text, strlen(v->text));
    case WEFT__CONFIG_LIST:
        out = weft__json_new_array();
        for (const weft__config_node *m = v->first; out && m; m = m->next)
            if (!weft__json_append(out, json_of(m))) weft__json_free(&out);
        return out;
    case WEFT__CONFIG_MAP:
        out = weft__json_new_object();
        for (const weft__config_node *m = v->first; out && m; m = m->next)
            if (!weft__json_set(out, m->key, json_of(m))) weft__json_free(&out);
        return out;
    }
    return NULL;
}

/* What a request with this one field would be told. */
static void check_field(weft__config_reader *r, const weft__config_node *v, const weft__json *value)
{
    weft__strbuf body = {0};
    weft__api_params params;
    weft__api_error error;
    weft__strbuf_puts(&body, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],");
    weft__json_write_string(&body, v->key, strlen(v->key));
    weft__strbuf_putc(&body, ':');
    weft__json_write(&body, value, WEFT__JSON_COMPACT);
    weft__strbuf_putc(&body, '}');
    if (body.failed) r->no_memory = 1;
    else {
        const int ok = weft__api_params_parse(&weft__api_table_chat, INT32_MAX, body.data, body.len, &params, &error);
        if (!ok && error.status == 503) r->no_memory = 1;
        else if (!ok) weft__config_say(r, v, "%s", error.message);
        weft__api_params_free(&params);
    }
    weft__strbuf_free(&body);
}

static void one_sampled(weft__config_reader *r, const weft__config_node *m, weft__json *object)
{
    char meant[96], shown[48];
    size_t i = 0;
    while (sampled[i] && strcmp(sampled[i], m->key)) i++;
    if (!sampled[i]) {
        weft__config_say_key(r, m, "there is no '%s' here%s",
                             weft__utf8_show(shown, sizeof shown, m->key, strlen(m->key)),
                             weft__config_meant(m->key, sampled_name, NULL, meant, sizeof meant));
        return;
    }
    weft__json *value = json_of(m);
    if (!value && m->kind == WEFT__CONFIG_INT) weft__config_say(r, m, "is too large");
    else if (!value) r->no_memory = 1;
    if (!value) return;
    const size_t back = weft__config_enter(r, m->key, 0);
    check_field(r, m, value);
    weft__config_leave(r, back);
    if (!weft__json_set(object, m->key, value)) r->no_memory = 1;
}

static void sampling(weft__config_reader *r, const weft__config_node *v, void *into)
{
    if (!weft__config_is(r, v, WEFT__CONFIG_MAP)) return;
    weft__json *object = weft__json_new_object();
    for (const weft__config_node *m = object ? v->first : NULL; m; m = m->next) one_sampled(r, m, object);
    weft__json *all = r->config->json;
    if (!weft__json_append(all, object)) r->no_memory = 1;
    else *(const weft__json **)into = weft__json_at(all, weft__json_size(all) - 1);
}

/* ---- the rest ---- */

static void system_prompt(weft__config_reader *r, const weft__config_node *v, void *into)
{
    weft__config_text(r, v, into);
    if (v->text && strlen(v->text) > WEFT__CONFIG_SYSTEM)
        weft__config_say(r, v, "must have at most %d bytes", WEFT__CONFIG_SYSTEM);
}

/* [NAME, ...], or {NAME: SCALE, ...}. */
static void one_used(weft__config_reader *r, const weft__config_node *v, void *into)
{
    weft__config_adapter *a = into;
    *a = (weft__config_adapter){.name = v->key, .scale = NAN};
    if (!v->key) weft__config_text(r, v, &a->name);
    else if (v->kind != WEFT__CONFIG_NONE && !(weft__config_double(v, &a->scale) && fabs(a->scale) <= 1e6))
        weft__config_say(r, v, "must be a scale from -1000000 to 1000000, not %.40s",
                         v->text ? v->text : weft__config_kind_text(v));
}

static void used_adapters(weft__config_reader *r, const weft__config_node *v, void *into)
{
    weft__config_preset *p = (weft__config_preset *)((char *)into - offsetof(weft__config_preset, adapters_given));
    p->adapters_given = 1;
    p->adapters = weft__config_each(r, v, v->kind == WEFT__CONFIG_LIST ? WEFT__CONFIG_LIST : WEFT__CONFIG_MAP,
                                    sizeof *p->adapters, &p->n_adapters, one_used);
    if (p->n_adapters > WEFT__CONFIG_ADAPTERS)
        weft__config_say(r, v, "must be at most %d adapters", WEFT__CONFIG_ADAPTERS);
    for (size_t i = 0; i < p->n_adapters; i++)
        for (size_t k = 0; k < i; k++)
            if (p->adapters[i].name && p->adapters[k].name && !strcmp(p->adapters[i].name, p->adapters[k].name))
                weft__config_say(r, v, "names the adapter '%.60s' twice", p->adapters[i].name);
}

static const char *model_name(const void *arg, size_t i)
{
    const weft__config *c = arg;
    return i < c->n_models ? c->models[i].name : NULL;
}

static const weft__config_model *find_model(const weft__config *c, const char *name)
{
    size_t i = 0;
    while (i < c->n_models && strcmp(c->models[i].name, name)) i++;
    return i < c->n_models ? &c->models[i] : NULL;
}

static void one_preset(weft__config_reader *r, const weft__config_node *v, void *into)
{
    static const weft__config_field table[] = {
        {"base", weft__config_text, offsetof(weft__config_preset, base), 0},
        {"system", system_prompt, offsetof(weft__config_preset, system), 0},
        {"sampling", sampling, offsetof(weft__config_preset, sampling), 0},
        {"adapters", used_adapters, offsetof(weft__config_preset, adapters_given), 0},
        {"chat-template", weft__config_text, offsetof(weft__config_preset, chat_template), 0},
        {0},
    };
    weft__config_preset *p = into;
    char meant[96];
    *p = (weft__config_preset){.name = v->key, .line = v->key_line, .column = v->key_column};
    weft__config_name_ok(r, v, v->key, WEFT__CONFIG_PRESET, "._-/");
    if (find_model(r->config, v->key)) weft__config_say_key(r, v, "a model has that name; give the preset another");
    weft__config_fields(r, v, table, p);
    if (p->base && r->config->n_models && !find_model(r->config, p->base))
        weft__config_say_key(r, v, "its base '%.60s' is none of models%s", p->base,
                             weft__config_meant(p->base, model_name, r->config, meant, sizeof meant));
}

void weft__config_presets(weft__config_reader *r, const weft__config_node *v)
{
    weft__config *c = r->config;
    if (v && v->kind != WEFT__CONFIG_NONE)
        c->presets = weft__config_each(r, v, WEFT__CONFIG_MAP, sizeof *c->presets, &c->n_presets, one_preset);
}
