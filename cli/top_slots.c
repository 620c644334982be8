// SPDX-License-Identifier: Apache-2.0
/* top_slots.c: see top_slots.h. */
#include "top_slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

enum { LOOKED_AT = 1024 };

void top_slots_free(top_slots *slots)
{
    for (int i = 0; i < slots->n; i++) {
        free(slots->of[i].model);
        free(slots->of[i].text);
    }
    *slots = (top_slots){0};
}

static const char *string_of(const weft__json *object, const char *key)
{
    const char *text = "";
    size_t n;
    weft__json_string(weft__json_get(object, key), &text, &n);
    return text;
}

static size_t n_of(const weft__json *models)
{
    const size_t n = weft__json_size(models);
    return n < LOOKED_AT ? n : LOOKED_AT;
}

static int is_listed(const weft__json *models, const char *id)
{
    for (size_t i = 0; i < n_of(models); i++)
        if (!strcmp(string_of(weft__json_at(models, i), "id"), id)) return 1;
    return 0;
}

/* Has it slots to show? Adapters and presets run in those of their parent; where a key may use a preset alone, its
 * parent is not listed, and the first preset of it stands for it. */
static int stands_alone(const weft__json *models, size_t at)
{
    const weft__json *m = weft__json_at(models, at);
    const char *parent = string_of(m, "parent");
    if (!*string_of(m, "id")) return 0;
    if (!*parent) return 1;
    for (size_t i = 0; i < at; i++)
        if (!strcmp(string_of(weft__json_at(models, i), "parent"), parent)) return 0;
    return !is_listed(models, parent);
}

/* Of a preset no status is told: asking for its slots tells. */
static int is_loaded(const weft__json *model)
{
    const weft__json *status = weft__json_get(model, "status");
    return !status || weft__json_is(weft__json_get(status, "value"), "loaded");
}

static weft_status no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the slots");
}

/* *out is NULL where the server answers, but not with that. */
static weft_status ask_server(top_server *s, const char *path, char **out, weft_error *err)
{
    weft_error why = {0};
    weft_status st = top_server_get(s, path, out, &why);
    if (st == WEFT_NOT_FOUND) return WEFT_OK;
    if (st) *err = why;
    return st;
}

/* id "": of the model that is meant by no name. */
static weft_status add_slots(top_server *s, const char *id, const char *shown, top_slots *out, weft_error *err)
{
    weft__strbuf path = {0};
    struct top_slots_of *to = &out->of[out->n];
    weft__strbuf_printf(&path, "/slots%s", *id ? "?model=" : "");
    for (const unsigned char *c = (const unsigned char *)id; *c; c++) weft__strbuf_printf(&path, "%%%02X", *c);
    weft_status st = path.failed ? no_memory(err) : ask_server(s, path.data, &to->text, err);
    weft__strbuf_free(&path);
    if (st || !to->text) return st; /* it went meanwhile, or the key may not see it */
    to->model = strdup(shown);
    if (!to->model) {
        free(to->text);
        return no_memory(err);
    }
    out->n++;
    return WEFT_OK;
}

static weft_status add_all(top_server *s, const weft__json *models, top_slots *out, weft_error *err)
{
    weft_status st = WEFT_OK;
    int is_one = !n_of(models); /* a server of one model tells no status of it, nor of its other names */
    for (size_t i = 0; i < n_of(models); i++) {
        const weft__json *m = weft__json_at(models, i);
        is_one |= !weft__json_get(m, "status") && !*string_of(m, "parent");
        out->n_models += stands_alone(models, i);
    }
    if (is_one) return add_slots(s, "", "", out, err);
    for (size_t i = 0; i < n_of(models) && !st && out->n < TOP_MODELS_MAX; i++) {
        const weft__json *m = weft__json_at(models, i);
        const char *id = string_of(m, "id");
        if (stands_alone(models, i) && is_loaded(m)) st = add_slots(s, id, out->n_models > 1 ? id : "", out, err);
    }
    return st;
}

weft_status top_slots_get(top_server *s, top_slots *out, weft_error *err)
{
    top_slots found = {0};
    weft__json *root = NULL;
    char *text = NULL;
    weft_status st = ask_server(s, "/v1/models", &text, err);
    if (st) return st;
    if (text && weft__json_parse(text, strlen(text), &root, NULL)) root = NULL;
    st = add_all(s, weft__json_get(root, "data"), &found, err);
    weft__json_free(&root);
    free(text);
    if (st) {
        top_slots_free(&found);
        return st;
    }
    top_slots_free(out);
    *out = found;
    return WEFT_OK;
}
