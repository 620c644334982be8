// SPDX-License-Identifier: Apache-2.0
/* peft_config.c: adapter_config.json: what changes the numbers is read, or refused by name; what only concerned the
 * training is left. Source: the LoraConfig class of PEFT (huggingface/peft) for the fields, their defaults, and how
 * patterns choose modules. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "adapt/parts.h"
#include "base/alloc.h"

enum { MAX_MATCHES = 1 << 21 /* tries of a pattern on a module, together */ };

typedef struct pattern {
    char key[WEFT__NAME_SHOW]; /* for messages */
    weft__regex *regex;
    double value;
} pattern;

typedef struct patterns {
    const char *name; /* "rank_pattern" */
    pattern *items;
    size_t n, capacity;
} patterns;

struct weft__adapt_peft_config {
    int64_t r;
    double alpha;
    int rslora, dora;
    patterns ranks, alphas;
    weft__adapt_peft_selection *modules;
    int32_t n_matches;
};

weft_status weft__adapt_peft_config_wrong(weft_error *err, const char *key, const char *want)
{
    return weft_fail(err, WEFT_FORMAT, "adapter_config.json: %s must be %s", key, want);
}

static const weft__json *field(const weft__json *root, const char *key)
{
    const weft__json *v = weft__json_get(root, key);
    return weft__json_is_null(v) ? NULL : v;
}

static weft_status flag(const weft__json *root, const char *key, int *out, weft_error *err)
{
    const weft__json *v = field(root, key);
    return !v || weft__json_bool(v, out) ? WEFT_OK : weft__adapt_peft_config_wrong(err, key, "true or false");
}

/* ---- what is refused ---- */

/* Nothing asked for: absent, null, false, "", [] or {}. */
static int is_nothing(const weft__json *v)
{
    const char *s;
    size_t n;
    int yes;
    if (!v || weft__json_is_null(v)) return 1;
    if (weft__json_bool(v, &yes)) return !yes;
    if (weft__json_string(v, &s, &n)) return n == 0;
    return (weft__json_kind_of(v) == WEFT__JSON_ARRAY || weft__json_kind_of(v) == WEFT__JSON_OBJECT) &&
           weft__json_size(v) == 0;
}

/* The modules that a list, or a single string, names: "lm_head, score". At most so many as fit. */
static void list_names(const weft__json *v, char *out, size_t size)
{
    char shown[WEFT__NAME_SHOW];
    size_t used = 0, n, items = weft__json_kind_of(v) == WEFT__JSON_ARRAY ? weft__json_size(v) : 1;
    const char *s;
    out[0] = 0;
    for (size_t i = 0; i < items && used < size; i++)
        if (weft__json_string(weft__json_kind_of(v) == WEFT__JSON_ARRAY ? weft__json_at(v, i) : v, &s, &n))
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", weft__name_show(shown, s, n));
}

static weft_status refuse_whole_modules(const weft__json *root, weft_error *err)
{
    const weft__json *v = weft__json_get(root, "modules_to_save");
    char names[128];
    if (is_nothing(v)) return WEFT_OK;
    list_names(v, names, sizeof names);
    return weft_fail(err, WEFT_UNSUPPORTED,
                     "adapter_config.json: modules_to_save has %s, trained whole, of which a base for many adapters "
                     "has one only; name them in target_modules "
                     "instead, or merge the adapter (merge_and_unload of PEFT) and convert the result",
                     names);
}

/* fan_in_fan_out speaks of modules that keep their weights transposed; in the architectures here there are none, and
 * PEFT takes no notice of it then. */
static weft_status refuse_others(const weft__json *root, weft_error *err)
{
    static const char *const keys[] = {
        "lora_bias",  "layer_replication", "target_parameters", "trainable_token_indices", "alora_invocation_tokens",
        "use_qalora", "arrow_config",      "use_bdlora",        "ensure_weight_tying"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!is_nothing(weft__json_get(root, keys[i])))
            return weft_fail(err, WEFT_UNSUPPORTED, "adapter_config.json: %s is set, which is not supported", keys[i]);
    return WEFT_OK;
}

/* Ways to begin a training that change the base's own weights, too. */
static weft_status refuse_changed_base(const weft__json *root, weft_error *err)
{
    static const char *const ways[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};
    const char *s;
    size_t n;
    if (!weft__json_string(weft__json_get(root, "init_lora_weights"), &s, &n)) return WEFT_OK;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (!strncasecmp(s, ways[i], strlen(ways[i])))
            return weft_fail(err, WEFT_UNSUPPORTED,
                             "adapter_config.json: init_lora_weights is \"%s\", which changes the base; save it "
                             "converted to plain LoRA "
                             "(path_initial_model_for_weight_conversion of PEFT)",
                             ways[i]);
    return WEFT_OK;
}

static weft_status check_strings(const weft__json *root, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    const char *s;
    size_t n;
    if (!weft__json_string(weft__json_get(root, "peft_type"), &s, &n))
        return weft__adapt_peft_config_wrong(err, "peft_type", "\"LORA\"");
    if (strcmp(s, "LORA"))
        return weft_fail(err, WEFT_UNSUPPORTED, "adapter_config.json: peft_type is \"%s\", not \"LORA\"",
                         weft__name_show(shown, s, n));
    const weft__json *bias = field(root, "bias");
    if (!bias) return WEFT_OK;
    if (!weft__json_string(bias, &s, &n)) return weft__adapt_peft_config_wrong(err, "bias", "\"none\"");
    return strcmp(s, "none")
               ? weft_fail(err, WEFT_UNSUPPORTED, "adapter_config.json: bias is \"%s\"; only \"none\" is supported",
                           weft__name_show(shown, s, n))
               : WEFT_OK;
}

/* ---- patterns ---- */

/* PEFT takes the first key that matches as (.*\.)?KEY to the end. */
static weft_status add_pattern(patterns *all, const char *key, size_t n, double value, weft_error *err)
{
    if (all->n == WEFT__ADAPT_PEFT_LIST_MAX)
        return weft_fail(err, WEFT_LIMIT, "adapter_config.json: more than %d patterns", WEFT__ADAPT_PEFT_LIST_MAX);
    if (!weft__grow(&all->items, &all->capacity, all->n + 1, sizeof *all->items))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for the patterns of adapter_config.json");
    pattern *p = &all->items[all->n];
    p->value = value;
    weft__name_show(p->key, key, n);
    weft_status st = weft__adapt_peft_pattern_new(all->name, "(?:.*\\.)?", key, n, &p->regex, err);
    if (!st) all->n++;
    return st;
}

static weft_status read_patterns(const weft__json *root, const char *name, patterns *all, weft_error *err)
{
    const weft__json *v = field(root, name);
    weft__json_member m = {0};
    double value;
    weft_status st = WEFT_OK;
    all->name = name;
    if (!v) return WEFT_OK;
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        return weft__adapt_peft_config_wrong(err, name, "an object of numbers");
    while (!st && weft__json_next(v, &m))
        st = weft__json_double(m.value, &value) && isfinite(value)
                 ? add_pattern(all, m.key, m.key_len, value, err)
                 : weft__adapt_peft_config_wrong(err, name, "an object of numbers");
    return st;
}

static weft_status match(weft__adapt_peft_config *c, const patterns *all, const char *module, double *value,
                         weft_error *err)
{
    weft_status st = WEFT_OK;
    int found = 0;
    for (size_t i = 0; i < all->n && !st && !found; i++) {
        if (c->n_matches++ == MAX_MATCHES)
            return weft_fail(err, WEFT_LIMIT,
                             "adapter_config.json: its patterns are too many for so many modules; write them as fewer");
        st = weft__adapt_peft_pattern_match(all->items[i].regex, module, strlen(module), &found, err);
        if (st) weft_fail_within(err, st, "adapter_config.json: %s '%s'", all->name, all->items[i].key);
        else if (found) *value = all->items[i].value;
    }
    return st;
}

/* ---- the whole ---- */

static weft_status read_root(const weft__json *root, weft__adapt_peft_config *c, weft_error *err)
{
    weft_status st;
    if (weft__json_kind_of(root) != WEFT__JSON_OBJECT)
        return weft_fail(err, WEFT_FORMAT, "adapter_config.json is no object");
    if ((st = check_strings(root, err)) || (st = refuse_whole_modules(root, err)) || (st = refuse_others(root, err)) ||
        (st = refuse_changed_base(root, err)) || (st = flag(root, "use_rslora", &c->rslora, err)) ||
        (st = flag(root, "use_dora", &c->dora, err)))
        return st;
    if (!weft__json_int(weft__json_get(root, "r"), &c->r) || c->r < 1 || c->r > WEFT__ADAPT_RANK_MAX)
        return weft_fail(err, WEFT_FORMAT, "adapter_config.json: r must be a whole number from 1 to %d",
                         WEFT__ADAPT_RANK_MAX);
    if (!weft__json_double(weft__json_get(root, "lora_alpha"), &c->alpha) || !isfinite((float)c->alpha))
        return weft__adapt_peft_config_wrong(err, "lora_alpha", "a number");
    if ((st = weft__adapt_peft_selection_read(root, &c->modules, err)) ||
        (st = read_patterns(root, "rank_pattern", &c->ranks, err)))
        return st;
    return read_patterns(root, "alpha_pattern", &c->alphas, err);
}

weft_status weft__adapt_peft_config_read(const char *text, size_t n, weft__adapt_peft_config **out, weft_error *err)
{
    weft__json *root;
    *out = NULL;
    weft_status st = weft__json_parse(text, n, &root, err);
    if (st) return weft_fail_within(err, st, "adapter_config.json");
    weft__adapt_peft_config *c = weft__alloc_zero(1, sizeof *c);
    st = c ? read_root(root, c, err) : weft_fail(err, WEFT_NO_MEMORY, "no memory for adapter_config.json");
    weft__json_free(&root);
    if (st) weft__adapt_peft_config_free(&c);
    *out = c;
    return st;
}

static void free_patterns(patterns *all)
{
    for (size_t i = 0; i < all->n; i++) weft__regex_free(&all->items[i].regex);
    weft__free(all->items);
}

void weft__adapt_peft_config_free(weft__adapt_peft_config **p)
{
    weft__adapt_peft_config *c = p ? *p : NULL;
    if (!c) return;
    free_patterns(&c->alphas);
    free_patterns(&c->ranks);
    weft__adapt_peft_selection_free(&c->modules);
    weft__free(c);
    *p = NULL;
}

weft_status weft__adapt_peft_config_of(weft__adapt_peft_config *c, const char *module, int64_t *rank, float *scale,
                                       weft_error *err)
{
    double r = (double)c->r, alpha = c->alpha;
    weft_status st;
    if ((st = match(c, &c->ranks, module, &r, err)) || (st = match(c, &c->alphas, module, &alpha, err))) return st;
    if (!(r >= 1 && r <= WEFT__ADAPT_RANK_MAX) || r != floor(r))
        return weft_fail(
            err, WEFT_FORMAT,
            "adapter_config.json: rank_pattern gives %s a rank of %g; it must be a whole number from 1 to %d", module,
            r, WEFT__ADAPT_RANK_MAX);
    *rank = (int64_t)r;
    *scale = (float)(alpha / (c->rslora ? sqrt(r) : r));
    return WEFT_OK;
}

int weft__adapt_peft_config_dora(const weft__adapt_peft_config *c)
{
    return c->dora;
}

weft_status weft__adapt_peft_config_selects(const weft__adapt_peft_config *c, const char *module, const char **not_by,
                                            weft_error *err)
{
    return weft__adapt_peft_selected(c->modules, module, not_by, err);
}
