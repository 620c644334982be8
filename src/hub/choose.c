// SPDX-License-Identifier: Apache-2.0
/* choose.c: which files of a repository are wanted (weft__listing_choose in hub.h). No state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/text.h"
#include "hub/hub.h"

/* Good for its size first; then larger, then smaller, then unquantized. */
static const char *const ORDER[] = {"Q4_K_M", "Q4_K_S", "Q4_0", "IQ4_XS", "IQ4_NL", "Q4_1",   "Q5_K_M",
                                    "Q5_K_S", "Q5_0",   "Q5_1", "Q6_K",   "Q8_0",   "Q3_K_M", "Q3_K_L",
                                    "Q3_K_S", "Q2_K",   "BF16", "F16",    "F32",    NULL};

void weft__hub_choice_free(weft__hub_choice *c)
{
    weft__free(c->files);
    *c = (weft__hub_choice){0};
}

static int ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), k = strlen(suffix);
    return n >= k && !strcasecmp(s + n - k, suffix);
}

/* Files' paths end in no slash. */
static const char *last_segment(const char *path)
{
    size_t n;
    return weft__path_last(path, &n);
}

/* "-00002-of-00005.gguf" at the end: returns 1, the bytes before it, and both numbers. */
static int split_of(const char *path, size_t *n_stem, int *part, int *count)
{
    static const char form[] = "-00000-of-00000.";
    size_t n = strlen(path), k = sizeof form - 1;
    if (!ends_with(path, ".gguf") || n <= k + 4) return 0;
    const char *s = path + n - k - 4;
    for (size_t i = 0; i < k; i++)
        if (form[i] == '0' ? s[i] < '0' || s[i] > '9' : s[i] != form[i]) return 0;
    *n_stem = n - k - 4;
    *part = atoi(s + 1);
    *count = atoi(s + 10);
    return *count > 0 && *part > 0 && *part <= *count;
}

int weft__hub_is_leader(const weft__hub_file *f)
{
    size_t n;
    int part, count;
    const char *name = last_segment(f->path);
    if (!ends_with(name, ".gguf") || strcasestr(name, "mmproj") || strcasestr(name, "imatrix")) return 0;
    return !split_of(f->path, &n, &part, &count) || part == 1;
}

static int is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* 2: quant is a whole word of path ('_' belongs to the word after it); 1: the beginning of one; 0: neither. */
static int match(const char *path, const char *quant)
{
    int best = 0;
    for (const char *s = path; (s = strcasestr(s, quant)); s++) {
        char after = s[strlen(quant)];
        if (s > path && is_word(s[-1])) continue;
        int grade = is_word(after) || after == '_' ? 1 : 2;
        if (grade > best) best = grade;
    }
    return best;
}

const char *weft__hub_quantization(const char *path)
{
    for (int i = 0; ORDER[i]; i++)
        if (match(path, ORDER[i]) == 2) return ORDER[i];
    return NULL;
}

static int is_better(const weft__hub_file *f, const weft__hub_file *than)
{
    return !than || strlen(f->path) < strlen(than->path); /* of equals the first: the listing is sorted */
}

static const weft__hub_file *best_match(const weft__listing *l, const char *quant, int grade)
{
    const weft__hub_file *best = NULL;
    for (size_t i = 0; i < l->n; i++)
        if (weft__hub_is_leader(&l->files[i]) && match(l->files[i].path, quant) == grade &&
            is_better(&l->files[i], best))
            best = &l->files[i];
    return best;
}

/* Of the files in which `quant` begins a word, that of the first quantization in ORDER, or the best of them. */
static const weft__hub_file *best_prefix(const weft__listing *l, const char *quant)
{
    for (int i = 0; ORDER[i]; i++) {
        if (strncasecmp(ORDER[i], quant, strlen(quant))) continue;
        const weft__hub_file *f = best_match(l, ORDER[i], 2);
        if (f) return f;
    }
    return best_match(l, quant, 1);
}

/* Names of models for a message, as many as fit. */
static const char *name_some(const weft__listing *l, char *out, size_t capacity)
{
    size_t at = 0, left = 0;
    out[0] = 0;
    for (size_t i = 0; i < l->n; i++) {
        char shown[WEFT__HUB_SHOW];
        if (!weft__hub_is_leader(&l->files[i])) continue;
        weft__hub_show(shown, l->files[i].path, strlen(l->files[i].path));
        if (left || at + strlen(shown) + 24 > capacity) left++;
        else at += (size_t)snprintf(out + at, capacity - at, "%s%s", at ? ", " : "", shown);
    }
    if (left) snprintf(out + at, capacity - at, " and %zu more", left);
    return out;
}

static weft_status choose_add(weft__hub_choice *c, const weft__hub_file *f, weft_error *err)
{
    /* Grown one at a time: sets are small, and the array has no spare capacity to keep. */
    const weft__hub_file **grown = weft__realloc_array(c->files, c->n + 1, sizeof *grown);
    if (!grown) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the list of files");
    c->files = grown;
    c->files[c->n++] = f;
    return WEFT_OK;
}

/* f, and the other parts of its set. */
static weft_status take_group(const weft__listing *l, const char *repo, const weft__hub_file *f, weft__hub_choice *out,
                              weft_error *err)
{
    char path[WEFT__HUB_PATH_MAX + 1], shown[WEFT__HUB_SHOW];
    size_t n;
    int part, count;
    if (!split_of(f->path, &n, &part, &count)) return choose_add(out, f, err);
    for (int i = 1; i <= count; i++) {
        snprintf(path, sizeof path, "%.*s-%05d-of-%05d%s", (int)n, f->path, i, count, f->path + strlen(f->path) - 5);
        const weft__hub_file *one = weft__listing_find(l, path);
        if (!one)
            return weft_fail(err, WEFT_FORMAT, "%s: \"%s\" is missing: its set of parts is incomplete", repo,
                             weft__hub_show(shown, path, strlen(path)));
        weft_status st = choose_add(out, one, err);
        if (st) return st;
    }
    return WEFT_OK;
}

static int is_top(const char *path)
{
    return !strchr(path, '/');
}

/* Weights: the shards of an index, or model.safetensors, or whatever there is: some repositories hold a second copy
 * under another name. */
static int is_weight(const char *path, int sharded, int single)
{
    if (!is_top(path) || !ends_with(path, ".safetensors")) return 0;
    if (sharded) return !strncmp(path, "model-", 6);
    return single ? !strcmp(path, "model.safetensors") : 1;
}

/* Of a model, beside an adapter's. */
static int has_own_weights(const weft__listing *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strncmp(l->files[i].path, "model", 5) && is_weight(l->files[i].path, 0, 0)) return 1;
    return 0;
}

static weft_status take_folder(const weft__listing *l, const char *repo, weft__hub_choice *out, weft_error *err)
{
    static const char *const names[] = {"config.json",
                                        "generation_config.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "tokenizer.model",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "vocab.txt",
                                        "merges.txt",
                                        "chat_template.jinja",
                                        "chat_template.json",
                                        "model.safetensors.index.json"};
    weft_status st = WEFT_OK;
    const weft__hub_file *config = weft__listing_find(l, "adapter_config.json"),
                         *adapter = weft__listing_find(l, "adapter_model.safetensors");
    if (config && adapter && !has_own_weights(l)) {
        out->kind = WEFT__HUB_CHOICE_FOLDER;
        st = choose_add(out, config, err);
        return st ? st : choose_add(out, adapter, err);
    }
    int sharded = 0, n_weights = 0, single = weft__listing_find(l, "model.safetensors") != NULL;
    out->kind = WEFT__HUB_CHOICE_FOLDER;
    for (size_t i = 0; i < l->n && weft__listing_find(l, "model.safetensors.index.json"); i++)
        sharded |= is_weight(l->files[i].path, 1, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names && !st; i++) {
        const weft__hub_file *f = weft__listing_find(l, names[i]);
        if (f && (sharded || !single || strcmp(names[i], "model.safetensors.index.json"))) st = choose_add(out, f, err);
    }
    for (size_t i = 0; i < l->n && !st; i++) {
        if (!is_weight(l->files[i].path, sharded, single)) continue;
        n_weights++;
        st = choose_add(out, &l->files[i], err);
    }
    if (!st && (!n_weights || strcmp(out->files[0]->path, "config.json")))
        st = weft_fail(err, WEFT_UNSUPPORTED,
                       "%s: has neither a GGUF file nor config.json with safetensors: nothing that weft can run", repo);
    return st;
}

/* The file that `what` names, by its path or its last segment; NULL when there is none, *several when the segment is no
 * proof. */
static const weft__hub_file *named(const weft__listing *l, const char *what, int *several)
{
    const weft__hub_file *f = weft__listing_find(l, what);
    *several = 0;
    for (size_t i = 0; !f && i < l->n; i++) {
        if (strcmp(last_segment(l->files[i].path), what)) continue;
        f = &l->files[i];
        while (++i < l->n) *several |= !strcmp(last_segment(l->files[i].path), what);
    }
    return f;
}

static weft_status choose_model(const weft__listing *l, const char *repo, const char *what, const weft__hub_file **out,
                                weft_error *err)
{
    char some[300], shown[WEFT__HUB_SHOW];
    const weft__hub_file *only = NULL, *f = NULL;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (weft__hub_is_leader(&l->files[i])) only = &l->files[i], n++;
    *out = NULL;
    if (what[0]) {
        if (!(f = best_match(l, what, 2))) f = best_prefix(l, what);
        if (!f) {
            weft__hub_show(shown, what, strlen(what));
            if (!n)
                return weft_fail(err, WEFT_NOT_FOUND, "%s: has no file \"%s\", and no GGUF files at all", repo, shown);
            return weft_fail(err, WEFT_NOT_FOUND, "%s: has no file or quantization \"%s\"; did you mean one of %s?",
                             repo, shown, name_some(l, some, sizeof some));
        }
    } else if (n > 1) {
        for (int i = 0; ORDER[i] && !f; i++) f = best_match(l, ORDER[i], 2);
        if (!f)
            return weft_fail(err, WEFT_ARGUMENT, "%s: say which file, as %s:FILE; there are %s", repo, repo,
                             name_some(l, some, sizeof some));
    } else {
        f = only;
    }
    *out = f;
    return WEFT_OK;
}

weft_status weft__listing_choose(const weft__listing *l, const char *repo, const char *what, weft__hub_choice *out,
                                 weft_error *err)
{
    char shown[WEFT__HUB_SHOW];
    int several = 0;
    weft_status st = WEFT_OK;
    *out = (weft__hub_choice){0};
    const weft__hub_file *f = what[0] ? named(l, what, &several) : NULL;
    if (several)
        return weft_fail(err, WEFT_ARGUMENT, "%s: several files are called \"%s\": give the path", repo,
                         weft__hub_show(shown, what, strlen(what)));
    if (!f) st = choose_model(l, repo, what, &f, err);
    if (!st) st = f ? take_group(l, repo, f, out, err) : take_folder(l, repo, out, err);
    if (st) weft__hub_choice_free(out);
    return st;
}
