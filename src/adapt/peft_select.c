// SPDX-License-Identifier: Apache-2.0
/* peft_select.c: which modules adapter_config.json speaks of. PEFT gives a change to the modules that are selected and
 * to no others, whatever tensors a file holds; here a tensor of another module is refused, so that an adapter never
 * does more than its configuration says. Source: check_target_module_exists of PEFT (huggingface/peft). */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "adapt/parts.h"
#include "base/alloc.h"

enum { STEMS_MAX = 16 };

/* A pattern for whole names, or ends of names that follow a full stop. */
typedef struct peft_select_choice {
    weft__regex *pattern; /* NULL: ends */
    char **ends;
    size_t n;
    int none; /* not given */
} peft_select_choice;

struct weft__adapt_peft_selection {
    peft_select_choice targets, excluded;
    int64_t *layers;
    size_t n_layers;     /* 0: all */
    weft__regex **stems; /* of names up to a layer's number; none: any */
    size_t n_stems;
};

static weft_status peft_select_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for adapter_config.json");
}

/* Item i of a list, or of what stands there alone. */
static const weft__json *item(const weft__json *v, size_t i)
{
    return weft__json_kind_of(v) == WEFT__JSON_ARRAY ? weft__json_at(v, i) : v;
}

static size_t n_items(const weft__json *v)
{
    return !v || weft__json_is_null(v) ? 0 : weft__json_kind_of(v) == WEFT__JSON_ARRAY ? weft__json_size(v) : 1;
}

static weft_status read_choice(const weft__json *root, const char *key, peft_select_choice *c, weft_error *err)
{
    const weft__json *v = weft__json_get(root, key);
    const char *s;
    size_t n, count = n_items(v);
    c->none = count == 0;
    if (c->none) return WEFT_OK;
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY) {
        if (!weft__json_string(v, &s, &n))
            return weft__adapt_peft_config_wrong(err, key, "a list of names, or a pattern");
        c->none = n == 0 || !strcasecmp(s, "all-linear"); /* what that was is what the file holds */
        return c->none ? WEFT_OK : weft__adapt_peft_pattern_new(key, "", s, n, &c->pattern, err);
    }
    if (count > WEFT__ADAPT_PEFT_LIST_MAX)
        return weft_fail(err, WEFT_LIMIT, "adapter_config.json: %s has more than %d names", key,
                         WEFT__ADAPT_PEFT_LIST_MAX);
    if (!(c->ends = weft__alloc_zero(count, sizeof *c->ends))) return peft_select_no_memory(err);
    for (; c->n < count; c->n++) {
        if (!weft__json_string(weft__json_at(v, c->n), &s, &n))
            return weft__adapt_peft_config_wrong(err, key, "a list of names, or a pattern");
        if (!(c->ends[c->n] = weft__strdup(s))) return peft_select_no_memory(err);
    }
    return WEFT_OK;
}

static weft_status read_layers(const weft__json *root, weft__adapt_peft_selection *c, weft_error *err)
{
    const weft__json *v = weft__json_get(root, "layers_to_transform"), *stems = weft__json_get(root, "layers_pattern");
    size_t count = n_items(v), n_stems = n_items(stems), n;
    const char *s;
    weft_status st = WEFT_OK;
    if (count > WEFT__ADAPT_PEFT_LIST_MAX || n_stems > STEMS_MAX)
        return weft_fail(err, WEFT_LIMIT, "adapter_config.json: %s has more than %d entries",
                         n_stems > STEMS_MAX ? "layers_pattern" : "layers_to_transform",
                         n_stems > STEMS_MAX ? STEMS_MAX : WEFT__ADAPT_PEFT_LIST_MAX);
    if (count == 0) return WEFT_OK;
    c->layers = weft__alloc_array(count, sizeof *c->layers);
    c->stems = weft__alloc_zero(n_stems + 1, sizeof *c->stems);
    if (!c->layers || !c->stems) return peft_select_no_memory(err);
    for (; c->n_layers < count; c->n_layers++)
        if (!weft__json_int(item(v, c->n_layers), &c->layers[c->n_layers]))
            return weft__adapt_peft_config_wrong(err, "layers_to_transform", "a number, or a list of numbers");
    for (size_t i = 0; i < n_stems && !st; i++) {
        if (!weft__json_string(item(stems, i), &s, &n))
            return weft__adapt_peft_config_wrong(err, "layers_pattern", "a pattern, or a list of them");
        if (n && !(st = weft__adapt_peft_pattern_new("layers_pattern", ".*\\.", s, n, &c->stems[c->n_stems], err)))
            c->n_stems++;
    }
    return st;
}

weft_status weft__adapt_peft_selection_read(const weft__json *root, weft__adapt_peft_selection **out, weft_error *err)
{
    weft__adapt_peft_selection *c = weft__alloc_zero(1, sizeof *c);
    weft_status st = c ? WEFT_OK : peft_select_no_memory(err);
    if (!st) st = read_choice(root, "target_modules", &c->targets, err);
    if (!st) st = read_choice(root, "exclude_modules", &c->excluded, err);
    if (!st) st = read_layers(root, c, err);
    if (st) weft__adapt_peft_selection_free(&c);
    *out = c;
    return st;
}

static void free_choice(peft_select_choice *c)
{
    for (size_t i = 0; i < c->n; i++) weft__free(c->ends[i]);
    weft__free(c->ends);
    weft__regex_free(&c->pattern);
}

void weft__adapt_peft_selection_free(weft__adapt_peft_selection **p)
{
    weft__adapt_peft_selection *c = p ? *p : NULL;
    if (!c) return;
    free_choice(&c->targets);
    free_choice(&c->excluded);
    for (size_t i = 0; i < c->n_stems; i++) weft__regex_free(&c->stems[i]);
    weft__free(c->stems);
    weft__free(c->layers);
    weft__free(c);
    *p = NULL;
}

/* *whole: the name itself is listed. */
static weft_status chosen(const peft_select_choice *c, const char *module, int *found, int *whole, weft_error *err)
{
    size_t len = strlen(module);
    *found = *whole = 0;
    if (c->pattern) return weft__adapt_peft_pattern_match(c->pattern, module, len, found, err);
    for (size_t i = 0; i < c->n; i++) {
        size_t n = strlen(c->ends[i]);
        if (n > len || strcmp(module + len - n, c->ends[i])) continue;
        *whole |= n == len;
        *found |= n == len || module[len - n - 1] == '.';
    }
    return WEFT_OK;
}

/* Is the number of its layer one of those that are asked for? It is the last part of the name that is a number, has two
 * parts before it (those before the number as a stem says) and one behind. */
static weft_status in_layers(const weft__adapt_peft_selection *c, const char *module, int *found, weft_error *err)
{
    const char *number = NULL;
    weft_status st;
    *found = 0;
    for (const char *dot = strchr(module, '.'), *next; dot && (next = strchr(dot + 1, '.')); dot = next) {
        const char *end = dot + 1;
        int stem = c->n_stems == 0 && memchr(module, '.', (size_t)(dot - module));
        while (isdigit((unsigned char)*end)) end++;
        if (end != next || end == dot + 1) continue;
        for (size_t i = 0; i < c->n_stems && !stem; i++)
            if ((st = weft__adapt_peft_pattern_match(c->stems[i], module, (size_t)(dot - module), &stem, err)))
                return st;
        if (stem) number = dot + 1;
    }
    int64_t layer = 0;
    for (; number && isdigit((unsigned char)*number) && layer < INT32_MAX; number++)
        layer = 10 * layer + (*number - '0');
    for (size_t i = 0; number && i < c->n_layers; i++) *found |= c->layers[i] == layer;
    return WEFT_OK;
}

weft_status weft__adapt_peft_selected(const weft__adapt_peft_selection *c, const char *module, const char **not_by,
                                      weft_error *err)
{
    int found = 0, whole = 0;
    weft_status st = chosen(&c->excluded, module, &found, &whole, err);
    *not_by = NULL;
    if (st) return st;
    if (found) {
        *not_by = "exclude_modules";
        return WEFT_OK;
    }
    if (!c->targets.none && !(st = chosen(&c->targets, module, &found, &whole, err)) && !found)
        *not_by = "target_modules";
    if (st || *not_by || whole || c->targets.pattern || c->n_layers == 0) return st;
    if (!(st = in_layers(c, module, &found, err)) && !found) *not_by = "layers_to_transform";
    return st;
}
