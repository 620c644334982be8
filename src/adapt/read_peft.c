// SPDX-License-Identifier: Apache-2.0
/* read_peft.c: adapters as PEFT saves them: base_model.model.MODULE.lora_A.weight and its kin (parts.h). Owner: the
 * thread that reads.
 *
 * Invariant: every tensor of the file is part of a pair or refused by name, and its rank is what the configuration
 * says. */
#include <stdio.h>
#include <string.h>

#include "adapt/parts.h"
#include "format/safetensors.h"

enum read_peft_half { HALF_A, HALF_B, HALF_MAGNITUDE, HALF_EMBEDDING_A, HALF_EMBEDDING_B, NO_HALF };

static const struct {
    const char *suffix;
    enum read_peft_half half;
} SUFFIXES[] = {
    {".lora_A.weight", HALF_A},
    {".lora_B.weight", HALF_B},
    {".lora_magnitude_vector", HALF_MAGNITUDE},
    {".lora_magnitude_vector.weight", HALF_MAGNITUDE},
    {".lora_embedding_A", HALF_EMBEDDING_A},
    {".lora_embedding_B", HALF_EMBEDDING_B},
    {".base_layer.weight", NO_HALF}, /* the base's own (base_check.c) */
};

typedef struct read_peft_reading {
    weft__adapt *a;
    const weft__adapt_names *names;
    weft__adapt_peft_config *config;
    weft__adapt_parsed_list all;
    weft_error *err;
} read_peft_reading;

/* name[0..*n) without the suffix and, from *begin on, without the prefix; 0: it has neither. */
static int split(const char *name, size_t *begin, size_t *n, enum read_peft_half *half)
{
    static const char prefix[] = "base_model.model.";
    size_t len = strlen(name);
    *begin = !strncmp(name, prefix, sizeof prefix - 1) ? sizeof prefix - 1 : 0;
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof *SUFFIXES; i++) {
        size_t tail = strlen(SUFFIXES[i].suffix);
        if (len <= *begin + tail || strcmp(name + len - tail, SUFFIXES[i].suffix)) continue;
        *n = len - tail;
        *half = SUFFIXES[i].half;
        return 1;
    }
    return 0;
}

/* What the module is here, and what the configuration says of it. */
static weft_status begin_module(read_peft_reading *r, weft__adapt_parsed *f)
{
    char shown[WEFT__NAME_SHOW];
    weft__adapt_place place = {.expert = -1, .n_experts = 1};
    const char *not_by;
    if (!r->names->place(r->names->arg, f->module, &place))
        return weft_fail(r->err, WEFT_ARGUMENT, "module %s is none that adapters change in a base of architecture '%s'",
                         weft__name_show(shown, f->module, strlen(f->module)), r->names->arch);
    weft_status st = weft__adapt_peft_config_selects(r->config, f->module, &not_by, r->err);
    if (st) return st;
    if (not_by)
        return weft_fail(
            r->err, WEFT_FORMAT,
            "module %s is left out by %s of adapter_config.json, but the file has tensors for it; correct one of them",
            weft__name_show(shown, f->module, strlen(f->module)), not_by);
    f->place = place;
    return weft__adapt_peft_config_of(r->config, f->module, &f->rank, &f->scale, r->err);
}

static weft_status refuse_tensor(const char *name, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    return weft_fail(err, WEFT_UNSUPPORTED, "tensor %s is no part of a LoRA that is supported",
                     weft__name_show(shown, name, strlen(name)));
}

/* The base's own matrix of a module, which PEFT saves beside the change of an embedding and of the head. */
static weft_status add_copy(read_peft_reading *r, const weft__tensor_desc *t, const char *name, size_t n)
{
    char module[WEFT__ADAPT_MODULE_MAX];
    weft__adapt_place place = {.expert = -1, .n_experts = 1};
    if (n < sizeof module) {
        memcpy(module, name, n);
        module[n] = 0;
        if (r->names->place(r->names->arg, module, &place) &&
            (weft__adapt_is_table(place.name) || !strcmp(place.name, "output.weight")))
            return weft__adapt_base_check_add(r->a, place.name, t, r->err);
    }
    return refuse_tensor(t->name, r->err);
}

static weft_status add_tensor(read_peft_reading *r, const weft__tensor_desc *t)
{
    size_t begin, n;
    enum read_peft_half half;
    weft_status st;
    if (!split(t->name, &begin, &n, &half)) return refuse_tensor(t->name, r->err);
    if (half == NO_HALF) return add_copy(r, t, t->name + begin, n - begin);
    weft__adapt_parsed *f = weft__adapt_parsed_at(r->a, &r->all, t->name + begin, n - begin, &st, r->err);
    if (!f || (!f->place.name[0] && (st = begin_module(r, f)))) return st;
    int embedding = half == HALF_EMBEDDING_A || half == HALF_EMBEDDING_B;
    const weft__tensor_desc **slot = half == HALF_MAGNITUDE                       ? &f->magnitude
                                     : half == HALF_A || half == HALF_EMBEDDING_A ? &f->a
                                                                                  : &f->b;
    if (*slot || (half != HALF_MAGNITUDE && (f->a || f->b) && !!f->embedding != embedding))
        return weft_fail(r->err, WEFT_FORMAT, "%s: it has two tensors for one half", f->module);
    *slot = t;
    if (embedding) f->embedding = 2;
    return WEFT_OK;
}

static weft_status check_module(read_peft_reading *r, const weft__adapt_parsed *f)
{
    int is_table = weft__adapt_is_table(f->place.name);
    if (f->a && f->b && !!f->embedding != is_table)
        return weft_fail(r->err, WEFT_FORMAT,
                         "%s: an embedding has lora_embedding_A and _B, anything else lora_A and lora_B", f->module);
    if (f->b && f->b->d[0] != (uint64_t)f->rank)
        return weft_fail(r->err, WEFT_FORMAT, "%s: its tensors have rank %llu, adapter_config.json says %lld",
                         f->module, (unsigned long long)f->b->d[0], (long long)f->rank);
    int dora = weft__adapt_peft_config_dora(r->config);
    if (dora != (f->magnitude != NULL))
        return weft_fail(r->err, WEFT_FORMAT,
                         dora ? "%s: use_dora is true, but its lora_magnitude_vector is missing"
                              : "%s: it has a lora_magnitude_vector, but use_dora is not true",
                         f->module);
    return WEFT_OK;
}

static weft_status read_peft_read_all(read_peft_reading *r, const weft__tensor_set *set)
{
    weft_status st = WEFT_OK;
    for (size_t i = 0; i < set->n && !st; i++) st = add_tensor(r, &set->items[i]);
    for (size_t i = 0; i < r->all.n && !st; i++) st = check_module(r, &r->all.items[i]);
    return st ? st : weft__adapt_assemble(r->a, &r->all, r->err);
}

weft_status weft__adapt_read_peft(weft__adapt *a, weft__adapt_peft_config *config, const void *weights,
                                  size_t n_weights, const weft__adapt_names *names, weft_error *err)
{
    weft__safetensors *file = NULL;
    read_peft_reading r = {.a = a, .names = names, .config = config, .err = err};
    snprintf(a->arch, sizeof a->arch, "%s", names->arch);
    weft_status st = weft__safetensors_parse(weights, n_weights, "adapter_model.safetensors", &file, err);
    if (!st) st = read_peft_read_all(&r, weft__safetensors_tensors(file));
    weft__adapt_parsed_list_free(&r.all);
    weft__safetensors_close(&file);
    return st;
}
