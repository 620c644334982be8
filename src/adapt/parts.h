// SPDX-License-Identifier: Apache-2.0
/* parts.h: what the files of this room share while an adapter is read. One thread builds an adapter. */
#ifndef WEFT_ADAPT_PARTS_H
#define WEFT_ADAPT_PARTS_H

#include "adapt/adapt.h"
#include "base/json.h"
#include "format/tensors.h"
#include "text/regex/regex.h"

enum { WEFT__ADAPT_MODULE_MAX = 256 /* bytes of a module's name, with its NUL */ };

/* The tensors found for one matrix, or one expert's. */
typedef struct weft__adapt_parsed {
    weft__adapt_place place;
    char module[WEFT__ADAPT_MODULE_MAX];        /* as the file calls it, for messages */
    const weft__tensor_desc *a, *b, *magnitude; /* d = {k, r}, {r, n} (3-d with experts), {n} */
    int embedding;                              /* the tensors of an embedding: see weft__adapt_assemble */
    float scale;
    int64_t rank; /* that a folder's configuration says */
} weft__adapt_parsed;

typedef struct weft__adapt_parsed_list {
    weft__adapt_parsed *items;
    size_t n, capacity;
    weft__name_table names; /* of items by module; the keys are in the arena of the adapter */
} weft__adapt_parsed_list;

/* The entry for module[0..len), made when it is new; NULL without memory, or with too many (*status says). */
weft__adapt_parsed *weft__adapt_parsed_at(weft__adapt *a, weft__adapt_parsed_list *all, const char *module, size_t len,
                                          weft_status *status, weft_error *err);
void weft__adapt_parsed_list_free(weft__adapt_parsed_list *all);

/* Pairs of all that was found: halves must be there, fit each other and be finite. How an embedding's tensors lie:
 *   1 (GGUF): a {r, V}, b {r, D};  2 (PEFT): a {V, r}, b {r, D}. */
weft_status weft__adapt_assemble(weft__adapt *a, weft__adapt_parsed_list *all, weft_error *err);

/* read_gguf.c, read_peft.c: adds all that a file's bytes hold; a->label and a->max_bytes are set. */
weft_status weft__adapt_read_gguf(weft__adapt *a, const void *bytes, size_t n, weft_error *err);
/* Only the keys, of a file that begins with these bytes; WEFT_FORMAT also where they end too soon. */
weft_status weft__adapt_check_gguf(weft__adapt *a, const void *bytes, size_t n, weft_error *err);

/* peft_config.c: what adapter_config.json says. */
typedef struct weft__adapt_peft_config weft__adapt_peft_config;
weft_status weft__adapt_peft_config_read(const char *text, size_t n, weft__adapt_peft_config **out, weft_error *err);
void weft__adapt_peft_config_free(weft__adapt_peft_config **config);
/* weights: adapter_model.safetensors's bytes. */
weft_status weft__adapt_read_peft(weft__adapt *a, weft__adapt_peft_config *config, const void *weights,
                                  size_t n_weights, const weft__adapt_names *names, weft_error *err);
/* Rank and scale of a module, by r, lora_alpha and their patterns; WEFT_LIMIT when these were tried too often, so ask
 * once for each. */
weft_status weft__adapt_peft_config_of(weft__adapt_peft_config *config, const char *module, int64_t *rank, float *scale,
                                       weft_error *err);
/* WEFT_FORMAT: what a field of it must be. */
weft_status weft__adapt_peft_config_wrong(weft_error *err, const char *key, const char *want);
int weft__adapt_peft_config_dora(const weft__adapt_peft_config *config);
/* *not_by: the field that leaves the module out, or NULL: it is selected. */
weft_status weft__adapt_peft_config_selects(const weft__adapt_peft_config *config, const char *module,
                                            const char **not_by, weft_error *err);

/* peft_select.c: the same, of the fields that select modules. */
typedef struct weft__adapt_peft_selection weft__adapt_peft_selection;
enum { WEFT__ADAPT_PEFT_LIST_MAX = 4096 /* entries of a list, or patterns */ };
weft_status weft__adapt_peft_selection_read(const weft__json *root, weft__adapt_peft_selection **out, weft_error *err);
void weft__adapt_peft_selection_free(weft__adapt_peft_selection **selection);
weft_status weft__adapt_peft_selected(const weft__adapt_peft_selection *selection, const char *module,
                                      const char **not_by, weft_error *err);

/* peft_pattern.c: BEFORE(key) as a pattern for whole strings; `what`: its field, for messages. */
weft_status weft__adapt_peft_pattern_new(const char *what, const char *before, const char *key, size_t n,
                                         weft__regex **out, weft_error *err);
weft_status weft__adapt_peft_pattern_match(const weft__regex *pattern, const char *s, size_t n, int *found,
                                           weft_error *err);

/* base_check.c: rows of the base's matrix `name` that tensor t holds. WEFT_FORMAT (shape, type, values), WEFT_LIMIT,
 * WEFT_NO_MEMORY. */
weft_status weft__adapt_base_check_add(weft__adapt *a, const char *name, const weft__tensor_desc *t, weft_error *err);
/* Are they the base's? WEFT_ARGUMENT, WEFT_NO_MEMORY. */
weft_status weft__adapt_run_base_checks(const weft__adapt *a, const weft__adapt_base *base, weft_error *err);

/* weave.c: the matrix that pairs of this name change, or NULL. */
const weft__adapt_target *weft__adapt_target_of(const weft__adapt_base *base, const char *name);

/* id.c: fills a->id and a->n_bytes; pairs are sorted. */
weft_status weft__adapt_identify(weft__adapt *a, weft_error *err);

#endif
