// SPDX-License-Identifier: Apache-2.0
/* read_sampling.c: readers of what an answer is sampled with and where it ends: stop strings, biases, seeds, samplers,
 * adapters. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/readers.h"
#include "base/alloc.h"

static int add_stop(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    const char *s;
    size_t n;
    if (!weft__json_string(v, &s, &n))
        return weft__api_error_set(error, 400, name, "'%s' must be a string or an array of strings", name);
    if (n > WEFT__API_MAX_STOP_BYTES)
        return weft__api_error_set(error, 400, name, "'%s' must be strings of at most %d bytes, not %zu", name,
                                   WEFT__API_MAX_STOP_BYTES, n);
    if (!n) return 1; /* would stop everything; clients send it for none */
    if (params->n_stops == WEFT__API_MAX_STOPS)
        return weft__api_error_set(error, 400, name, "'%s' must have at most %d strings", name, WEFT__API_MAX_STOPS);
    if (params->n_stop_bytes + n > WEFT__API_MAX_STOPS_BYTES)
        return weft__api_error_set(error, 400, name, "'%s' must have at most %d bytes in all", name,
                                   WEFT__API_MAX_STOPS_BYTES);
    params->n_stop_bytes += n;
    params->stops[params->n_stops] = s;
    params->stop_lengths[params->n_stops++] = n;
    return 1;
}

int weft__api_read_stop(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY) return add_stop(params, name, v, error);
    if (weft__json_size(v) > 1000)
        return weft__api_error_set(error, 400, name, "'%s' must have at most %d strings", name,
                                   WEFT__API_MAX_STOPS); /* also of empty ones */
    for (size_t i = 0; i < weft__json_size(v); i++)
        if (!add_stop(params, name, weft__json_at(v, i), error)) return 0;
    return 1;
}

int weft__api_read_overflow(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    (void)v;
    if (!strcmp(params->overflow, "stop") || !strcmp(params->overflow, "shift")) return 1;
    return weft__api_error_set(error, 400, name, "'%s' must be stop or shift, not '%.40s'", name, params->overflow);
}

static int token_id(const weft__api_params *params, const char *text, int64_t *id)
{
    char *end;
    if (!*text || strspn(text, "0123456789") != strlen(text) || strlen(text) > 10) return 0;
    *id = strtoll(text, &end, 10);
    return *id < params->n_vocab;
}

static int add_bias(weft__api_params *params, const char *name, int64_t id, const weft__json *v, double limit,
                    weft__api_error *error)
{
    double bias;
    int flag;
    if (weft__json_bool(v, &flag) && !flag && limit > 100) bias = -INFINITY; /* llama.cpp's: never */
    else if (!weft__json_double(v, &bias))
        return weft__api_error_set(error, 400, name, "'%s' must have numbers as values", name);
    else if (!(bias >= -limit && bias <= limit))
        return weft__api_error_set(error, 400, name, "'%s' must have values from %g to %g, not %g for token %lld", name,
                                   -limit, limit, bias, (long long)id);
    params->bias[params->n_bias++] = (weft_logit_bias){(int32_t)id, (float)bias};
    return 1;
}

static int make_biases(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    size_t n = weft__json_size(v);
    if (n > WEFT__API_MAX_BIASES)
        return weft__api_error_set(error, 400, name, "'%s' must have at most %d tokens, not %zu", name,
                                   WEFT__API_MAX_BIASES, n);
    params->bias = weft__alloc_array(n, sizeof *params->bias);
    params->bias_texts = weft__alloc_array(n, sizeof *params->bias_texts);
    return params->bias && params->bias_texts ? 1 : weft__api_error_set(error, 503, NULL, "no memory for the request");
}

static int add_text_bias(weft__api_params *params, const char *name, weft__api_bias_text text, const weft__json *v,
                         weft__api_error *error)
{
    if (!add_bias(params, name, 0, v, 1e4, error)) return 0;
    text.bias = params->bias[--params->n_bias].bias;
    params->bias_texts[params->n_bias_texts++] = text;
    if (text.n <= WEFT__API_MAX_STOP_BYTES) return 1;
    return weft__api_error_set(error, 400, name, "'%s' must have texts of at most %d bytes", name,
                               WEFT__API_MAX_STOP_BYTES);
}

static int is_number(const char *s)
{
    s += *s == '-';
    return *s && strspn(s, "0123456789") == strlen(s);
}

/* Keys are ids; with `texts` those that are no number are texts. */
static int read_bias_object(weft__api_params *params, const char *name, const weft__json *v, double limit, int texts,
                            weft__api_error *error)
{
    weft__json_member m = {0};
    int64_t id;
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        return weft__api_error_set(error, 400, name, "'%s' must be an object of token ids and numbers", name);
    if (!make_biases(params, name, v, error)) return 0;
    while (weft__json_next(v, &m)) {
        if (weft__json_is_null(m.value)) continue;
        if (texts && !is_number(m.key)) {
            if (!add_text_bias(params, name, (weft__api_bias_text){.text = m.key, .n = strlen(m.key)}, m.value, error))
                return 0;
            continue;
        }
        if (!token_id(params, m.key, &id))
            return weft__api_error_set(error, 400, name, "'%s' must have token ids from 0 to %d%s as keys, not '%.40s'",
                                       name, params->n_vocab - 1, texts ? " or texts" : "", m.key);
        if (!add_bias(params, name, id, m.value, limit, error)) return 0;
    }
    return 1;
}

int weft__api_read_bias(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    return read_bias_object(params, name, v, 100, 0, error);
}

static int read_bias_pair(weft__api_params *params, const char *name, const weft__json *pair, weft__api_error *error)
{
    const weft__json *key = weft__json_at(pair, 0), *value = weft__json_at(pair, 1);
    int64_t id;
    const char *s;
    size_t n;
    if (weft__json_size(pair) != 2 || !key)
        return weft__api_error_set(error, 400, name, "'%s' must be an array of [token, number]", name);
    if (weft__json_string(key, &s, &n))
        return add_text_bias(params, name, (weft__api_bias_text){.text = s, .n = n}, value, error);
    if (!weft__json_int(key, &id) || id < 0 || id >= params->n_vocab)
        return weft__api_error_set(error, 400, name, "'%s' must have token ids from 0 to %d", name,
                                   params->n_vocab - 1);
    return add_bias(params, name, id, value, 1e4, error);
}

int weft__api_read_bias_llama(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    if (weft__json_kind_of(v) == WEFT__JSON_OBJECT) return read_bias_object(params, name, v, 1e4, 1, error);
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY)
        return weft__api_error_set(error, 400, name, "'%s' must be an array of [token, number] or an object", name);
    if (!make_biases(params, name, v, error)) return 0;
    for (size_t i = 0; i < weft__json_size(v); i++)
        if (!read_bias_pair(params, name, weft__json_at(v, i), error)) return 0;
    return 1;
}

int weft__api_read_best_of(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    int64_t n;
    (void)params;
    return weft__json_int(v, &n) ? 1 : weft__api_error_set(error, 400, name, "'%s' must be an integer", name);
}

/* llama-server converts a boolean to a number here: true is 1. */
int weft__api_read_logprobs_llama(weft__api_params *params, const char *name, const weft__json *v,
                                  weft__api_error *error)
{
    int64_t n = -1;
    if (weft__json_bool(v, &params->logprobs)) return 1;
    if (!weft__json_int(v, &n) || n < 0 || n > 20)
        return weft__api_error_set(error, 400, name, "'%s' must be an integer from 0 to 20, or a boolean", name);
    params->logprobs = (int)n;
    return 1;
}

/* Off at 0 and below: -1 is llama.cpp's default, which clients send that send all settings. */
int weft__api_read_no_limit(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    int64_t ms;
    (void)params;
    if (!weft__json_int(v, &ms)) return weft__api_error_set(error, 400, name, "'%s' must be an integer", name);
    return ms <= 0 ||
           weft__api_error_set(error, 400, name, "'%s' above 0 is not supported; 'timeout_ms' sets a deadline", name);
}

int weft__api_read_seed(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    (void)name, (void)v, (void)error;
    params->seed_given = 1;
    return 1;
}

int weft__api_read_seed_llama(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    (void)name, (void)v, (void)error;
    params->seed_given =
        params->seed >= 0 && params->seed != UINT32_MAX; /* llama.cpp's default, which its clients send for none */
    return 1;
}

/* llama-server runs samplers in this order, and those alone that are named. Here they have one order, session.h's.
 * Those of llama.cpp's that are not here are off (the tables below see to that), so that it does not matter where they
 * stand. Letters are its short form. */
static const struct {
    const char *name;
    char letter;
} samplers[] = {{"penalties", 'e'},   {"top_k", 'k'},     {"top_p", 'p'}, {"min_p", 'm'},
                {"temperature", 't'}, {"dry", 'd'},       {"tfs_z", 'f'}, {"top_n_sigma", 's'},
                {"typ_p", 'y'},       {"typical_p", 'y'}, {"xtc", 'x'}};
enum { PENALTIES, TOP_K, TOP_P, MIN_P, TEMPERATURE, N_OURS, N_SAMPLERS = sizeof samplers / sizeof *samplers };

static int sampler_named(const weft__json *v)
{
    const char *s = "";
    int k = 0;
    weft__api_read_word(v, &s);
    while (k < N_SAMPLERS && strcmp(s, samplers[k].name)) k++;
    return k;
}

static int sampler_of_letter(char letter)
{
    int k = 0;
    while (k < N_SAMPLERS && letter != samplers[k].letter) k++;
    return k;
}

int weft__api_read_samplers(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    const char *letters = NULL;
    size_t n = weft__json_size(v);
    int last = -1, named = 0, ok = weft__json_string(v, &letters, &n) || weft__json_kind_of(v) == WEFT__JSON_ARRAY;
    for (size_t i = 0; ok && i < n; i++) {
        int k = letters ? sampler_of_letter(letters[i]) : sampler_named(weft__json_at(v, i));
        ok = k < N_SAMPLERS && (k >= N_OURS || k > last);
        if (!ok || k >= N_OURS) continue;
        last = k;
        named |= 1 << k;
    }
    params->samplers_off = ~named;
    return ok || weft__api_error_set(
                     error, 400, name,
                     "'%s' must be penalties, top_k, top_p, min_p, temperature, in this order, or some of them", name);
}

/* What was not named does nothing, whatever its own field says. */
void weft__api_switch_samplers_off(weft__api_params *params)
{
    if (params->samplers_off & 1 << PENALTIES) {
        params->repeat_penalty = 1;
        params->presence_penalty = params->frequency_penalty = 0;
    }
    if (params->samplers_off & 1 << TOP_K) params->top_k = 0;
    if (params->samplers_off & 1 << TOP_P) params->top_p = 1;
    if (params->samplers_off & 1 << MIN_P) params->min_p = 0;
    if (params->samplers_off & 1 << TEMPERATURE) params->temperature = 1;
}

int weft__api_read_adapter_scales(weft__api_params *params, const char *name, const weft__json *v,
                                  weft__api_error *error)
{
    size_t n = weft__json_size(v);
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY)
        return weft__api_error_set(error, 400, name, "'%s' must be an array of objects with 'id' and 'scale'", name);
    if (n > WEFT__API_MAX_LORAS)
        return weft__api_error_set(error, 400, name, "'%s' must have at most %d adapters, not %zu", name,
                                   WEFT__API_MAX_LORAS, n);
    for (size_t i = 0; i < n; i++) {
        const weft__json *item = weft__json_at(v, i);
        weft__api_adapter_scale *l = &params->loras[i];
        if (!weft__json_int(weft__json_get(item, "id"), &l->id) ||
            !weft__json_double(weft__json_get(item, "scale"), &l->scale) || !(fabs(l->scale) <= 1e6))
            return weft__api_error_set(
                error, 400, name, "'%s[%zu]' must be an object with a whole number 'id' and a number 'scale'", name, i);
        for (size_t k = 0; k < i; k++)
            if (params->loras[k].id == l->id)
                return weft__api_error_set(error, 400, name, "'%s' has id %lld twice", name, (long long)l->id);
    }
    params->lora_given = 1;
    params->n_loras = (int)n;
    return 1;
}
