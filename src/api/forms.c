/* forms.c: the tables of fields, and the readers of those that are more than a number or a string. Tables are constant. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "api/fields.h"
#include "text/chat_messages.h"

#define AT(member) offsetof(weft__ask, member)
#define NONE NAN

/* ---- readers ---- */

/* A string that is to be one of several words. One with NUL in it is none of them, whatever stands before that, and reads as "". */
static int read_word(const weft__json *v, const char **s)
{
    size_t n;
    if (!weft__json_string(v, s, &n)) return 0;
    if (strlen(*s) != n) *s = "";
    return 1;
}

static int add_stop(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    const char *s;
    size_t n;
    if (!weft__json_string(v, &s, &n))
        return weft__fault_set(fault, 400, name, "'%s' must be a string or an array of strings", name);
    if (n > WEFT__MAX_STOP_BYTES)
        return weft__fault_set(fault, 400, name, "'%s' must be strings of at most %d bytes, not %zu", name, WEFT__MAX_STOP_BYTES,
                               n);
    if (!n) return 1; /* would stop everything; clients send it for none */
    if (ask->n_stops == WEFT__MAX_STOPS)
        return weft__fault_set(fault, 400, name, "'%s' must have at most %d strings", name, WEFT__MAX_STOPS);
    if (ask->n_stop_bytes + n > WEFT__MAX_STOPS_BYTES)
        return weft__fault_set(fault, 400, name, "'%s' must have at most %d bytes in all", name, WEFT__MAX_STOPS_BYTES);
    ask->n_stop_bytes += n;
    ask->stops[ask->n_stops] = s;
    ask->stop_lengths[ask->n_stops++] = n;
    return 1;
}

static int read_stop(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY) return add_stop(ask, name, v, fault);
    if (weft__json_size(v) > 1000)
        return weft__fault_set(fault, 400, name, "'%s' must have at most %d strings", name,
                               WEFT__MAX_STOPS); /* also of empty ones */
    for (size_t i = 0; i < weft__json_size(v); i++)
        if (!add_stop(ask, name, weft__json_at(v, i), fault)) return 0;
    return 1;
}

static int token_id(const weft__ask *ask, const char *text, int64_t *id)
{
    char *end;
    if (!*text || strspn(text, "0123456789") != strlen(text) || strlen(text) > 10) return 0;
    *id = strtoll(text, &end, 10);
    return *id < ask->n_vocab;
}

static int add_bias(weft__ask *ask, const char *name, int64_t id, const weft__json *v, double limit, weft__fault *fault)
{
    double bias;
    int flag;
    if (weft__json_bool(v, &flag) && !flag && limit > 100) bias = -INFINITY; /* llama.cpp's: never */
    else if (!weft__json_double(v, &bias)) return weft__fault_set(fault, 400, name, "'%s' must have numbers as values", name);
    else if (!(bias >= -limit && bias <= limit))
        return weft__fault_set(fault, 400, name, "'%s' must have values from %g to %g, not %g for token %lld", name, -limit,
                               limit, bias, (long long)id);
    ask->bias[ask->n_bias++] = (weft_logit_bias){(int32_t)id, (float)bias};
    return 1;
}

static int make_biases(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    size_t n = weft__json_size(v);
    if (n > WEFT__MAX_BIASES)
        return weft__fault_set(fault, 400, name, "'%s' must have at most %d tokens, not %zu", name, WEFT__MAX_BIASES, n);
    ask->bias = weft__alloc_array(n, sizeof *ask->bias);
    ask->bias_texts = weft__alloc_array(n, sizeof *ask->bias_texts);
    return ask->bias && ask->bias_texts ? 1 : weft__fault_set(fault, 503, NULL, "no memory for the request");
}

static int add_text_bias(weft__ask *ask, const char *name, weft__bias_text text, const weft__json *v, weft__fault *fault)
{
    if (!add_bias(ask, name, 0, v, 1e4, fault)) return 0;
    text.bias = ask->bias[--ask->n_bias].bias;
    ask->bias_texts[ask->n_bias_texts++] = text;
    if (text.n <= WEFT__MAX_STOP_BYTES) return 1;
    return weft__fault_set(fault, 400, name, "'%s' must have texts of at most %d bytes", name, WEFT__MAX_STOP_BYTES);
}

static int is_number(const char *s)
{
    s += *s == '-';
    return *s && strspn(s, "0123456789") == strlen(s);
}

/* Keys are ids; with `texts` those that are no number are texts. */
static int read_bias_object(weft__ask *ask, const char *name, const weft__json *v, double limit, int texts, weft__fault *fault)
{
    weft__json_member m = {0};
    int64_t id;
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        return weft__fault_set(fault, 400, name, "'%s' must be an object of token ids and numbers", name);
    if (!make_biases(ask, name, v, fault)) return 0;
    while (weft__json_next(v, &m)) {
        if (weft__json_is_null(m.value)) continue;
        if (texts && !is_number(m.key)) {
            if (!add_text_bias(ask, name, (weft__bias_text){.text = m.key, .n = strlen(m.key)}, m.value, fault)) return 0;
            continue;
        }
        if (!token_id(ask, m.key, &id))
            return weft__fault_set(fault, 400, name, "'%s' must have token ids from 0 to %d%s as keys, not '%.40s'", name,
                                   ask->n_vocab - 1, texts ? " or texts" : "", m.key);
        if (!add_bias(ask, name, id, m.value, limit, fault)) return 0;
    }
    return 1;
}

static int read_bias(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    return read_bias_object(ask, name, v, 100, 0, fault);
}

static int read_bias_pair(weft__ask *ask, const char *name, const weft__json *pair, weft__fault *fault)
{
    const weft__json *key = weft__json_at(pair, 0), *value = weft__json_at(pair, 1);
    int64_t id;
    const char *s;
    size_t n;
    if (weft__json_size(pair) != 2 || !key)
        return weft__fault_set(fault, 400, name, "'%s' must be an array of [token, number]", name);
    if (weft__json_string(key, &s, &n)) return add_text_bias(ask, name, (weft__bias_text){.text = s, .n = n}, value, fault);
    if (!weft__json_int(key, &id) || id < 0 || id >= ask->n_vocab)
        return weft__fault_set(fault, 400, name, "'%s' must have token ids from 0 to %d", name, ask->n_vocab - 1);
    return add_bias(ask, name, id, value, 1e4, fault);
}

static int read_bias_llama(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    if (weft__json_kind_of(v) == WEFT__JSON_OBJECT) return read_bias_object(ask, name, v, 1e4, 1, fault);
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY)
        return weft__fault_set(fault, 400, name, "'%s' must be an array of [token, number] or an object", name);
    if (!make_biases(ask, name, v, fault)) return 0;
    for (size_t i = 0; i < weft__json_size(v); i++)
        if (!read_bias_pair(ask, name, weft__json_at(v, i), fault)) return 0;
    return 1;
}

static int read_stream_options(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    weft__json_member m = {0};
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT) return weft__fault_set(fault, 400, name, "'%s' must be an object", name);
    while (weft__json_next(v, &m)) {
        if (weft__json_is_null(m.value)) continue;
        int ignored, *to = !strcmp(m.key, "include_usage")         ? &ask->include_usage
                           : !strcmp(m.key, "include_obfuscation") ? &ignored
                                                                   : NULL;
        if (!to) return weft__fault_set(fault, 400, name, "Unrecognized request argument supplied: %s.%.40s", name, m.key);
        if (!weft__json_bool(m.value, to))
            return weft__fault_set(fault, 400, "stream_options", "'%s.%s' must be a boolean", name, m.key);
    }
    return 1;
}

/* Whatever else it has would change the answer: schema, strict. */
static int check_format_members(const char *name, const weft__json *v, weft__fault *fault)
{
    weft__json_member m = {0};
    char where[96];
    while (weft__json_next(v, &m)) {
        if (!strcmp(m.key, "type") || weft__json_is_null(m.value)) continue;
        snprintf(where, sizeof where, "%s.%.40s", name, m.key);
        return weft__fault_set(fault, 400, where, "Unrecognized request argument supplied: %s", where);
    }
    return 1;
}

static int read_response_format(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    const char *type;
    if (!read_word(weft__json_get(v, "type"), &type))
        return weft__fault_set(fault, 400, name, "'%s' must be an object with a 'type': text or json_object", name);
    if (!strcmp(type, "json_schema"))
        return weft__fault_set(fault, 400, "response_format", "'%s.type' json_schema is not supported by this server", name);
    ask->json_object = !strcmp(type, "json_object");
    if (ask->json_object || !strcmp(type, "text")) return check_format_members(name, v, fault);
    return weft__fault_set(fault, 400, "response_format", "'%s.type' must be text or json_object, not '%.40s'", name, type);
}

/* llama-server makes a grammar of any schema; that of {} is of any value. */
static int read_json_schema(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    ask->json_value = weft__json_kind_of(v) == WEFT__JSON_OBJECT && !weft__json_size(v);
    return ask->json_value ? 1 : weft__fault_set(fault, 400, name, "'%s' other than {} is not supported by this server", name);
}

/* llama-server runs samplers in this order, and those alone that are named. Here they have one order: weft.h's. Those of llama.cpp's that are
 * not here are off (the tables below see to that), so that it does not matter where they stand. Letters are its short form. */
static const struct {
    const char *name;
    char letter;
} samplers[] = {{"penalties", 'e'}, {"top_k", 'k'},       {"top_p", 'p'}, {"min_p", 'm'},     {"temperature", 't'}, {"dry", 'd'},
                {"tfs_z", 'f'},     {"top_n_sigma", 's'}, {"typ_p", 'y'}, {"typical_p", 'y'}, {"xtc", 'x'}};
enum { PENALTIES, TOP_K, TOP_P, MIN_P, TEMPERATURE, N_OURS, N_SAMPLERS = sizeof samplers / sizeof *samplers };

static int sampler_named(const weft__json *v)
{
    const char *s = "";
    int k = 0;
    read_word(v, &s);
    while (k < N_SAMPLERS && strcmp(s, samplers[k].name)) k++;
    return k;
}

static int sampler_of_letter(char letter)
{
    int k = 0;
    while (k < N_SAMPLERS && letter != samplers[k].letter) k++;
    return k;
}

static int read_samplers(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
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
    ask->samplers_off = ~named;
    return ok ||
           weft__fault_set(fault, 400, name,
                           "'%s' must be penalties, top_k, top_p, min_p, temperature, in this order, or some of them", name);
}

/* What was not named does nothing, whatever its own field says. */
static void switch_samplers_off(weft__ask *ask)
{
    if (ask->samplers_off & 1 << PENALTIES) {
        ask->repeat_penalty = 1;
        ask->presence_penalty = ask->frequency_penalty = 0;
    }
    if (ask->samplers_off & 1 << TOP_K) ask->top_k = 0;
    if (ask->samplers_off & 1 << TOP_P) ask->top_p = 1;
    if (ask->samplers_off & 1 << MIN_P) ask->min_p = 0;
    if (ask->samplers_off & 1 << TEMPERATURE) ask->temperature = 1;
}

static int read_best_of(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    int64_t n;
    (void)ask;
    return weft__json_int(v, &n) ? 1 : weft__fault_set(fault, 400, name, "'%s' must be an integer", name);
}

static int read_encoding(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    const char *s = NULL;
    read_word(v, &s);
    ask->base64 = s && !strcmp(s, "base64");
    return ask->base64 || (s && !strcmp(s, "float"))
               ? 1
               : weft__fault_set(fault, 400, name, "'%s' must be 'float' or 'base64'", name);
}

/* llama-server converts a boolean to a number here: true is 1. */
static int read_logprobs_llama(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    int64_t n = -1;
    if (weft__json_bool(v, &ask->logprobs)) return 1;
    if (!weft__json_int(v, &n) || n < 0 || n > 20)
        return weft__fault_set(fault, 400, name, "'%s' must be an integer from 0 to 20, or a boolean", name);
    ask->logprobs = (int)n;
    return 1;
}

/* Off at 0 and below: -1 is llama.cpp's default, which clients send that send all settings. */
static int read_no_limit(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    int64_t ms;
    (void)ask;
    if (!weft__json_int(v, &ms)) return weft__fault_set(fault, 400, name, "'%s' must be an integer", name);
    return ms <= 0 || weft__fault_set(fault, 400, name, "'%s' above 0 is not supported; 'timeout_ms' sets a deadline", name);
}

static int read_seed(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    (void)name, (void)v, (void)fault;
    ask->seed_given = 1;
    return 1;
}

static int read_seed_llama(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    (void)name, (void)v, (void)fault;
    ask->seed_given = ask->seed >= 0 && ask->seed != UINT32_MAX; /* llama.cpp's default, which its clients send for none */
    return 1;
}

/* ONE of a few strings without which nothing else is there: tool_choice, modalities. */
static int read_tool_choice(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    (void)ask;
    if (weft__json_is(v, "none") || weft__json_is(v, "auto")) return 1;
    return weft__fault_set(fault, 400, name, "'%s' must be none or auto: this server calls no functions", name);
}

static int read_modalities(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    (void)ask;
    if (weft__json_size(v) == 1 && weft__json_is(weft__json_at(v, 0), "text")) return 1;
    return weft__fault_set(fault, 400, name, "'%s' must be [\"text\"]", name);
}

static int read_kwargs(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    (void)ask;
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT) return weft__fault_set(fault, 400, name, "'%s' must be an object", name);
    const char *taken = weft__chat_template_taken(v);
    return !taken || weft__fault_set(fault, 400, name, "'%s' cannot set '%s'; the request has a field for it", name, taken);
}

static int is_id(const weft__ask *ask, const weft__json *v)
{
    int64_t id;
    return weft__json_int(v, &id) && id >= 0 && id < ask->n_vocab;
}

/* Ids, or with `mixed` also texts, in one array. */
static int check_ids(const weft__ask *ask, const char *name, const weft__json *v, int mixed, weft__fault *fault)
{
    for (size_t i = 0; i < weft__json_size(v); i++) {
        const weft__json *e = weft__json_at(v, i);
        if (is_id(ask, e) || (mixed && weft__json_kind_of(e) == WEFT__JSON_STRING)) continue;
        char where[96];
        snprintf(where, sizeof where, "%s[%zu]", name, i);
        if (weft__json_kind_of(e) == WEFT__JSON_INT)
            return weft__fault_set(fault, 400, where, "'%s' must be a token id from 0 to %d", where, ask->n_vocab - 1);
        return weft__fault_set(fault, 400, where, "'%s' must be a token id%s", where, mixed ? " or a string" : "");
    }
    return 1;
}

static int read_ids(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY)
        return weft__fault_set(fault, 400, name, "'%s' must be an array of token ids", name);
    return check_ids(ask, name, v, 0, fault);
}

int weft__is_one_prompt(const weft__json *v)
{
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY) return 1;
    for (size_t i = 0; i < weft__json_size(v); i++) {
        int kind = weft__json_kind_of(weft__json_at(v, i));
        if (kind == WEFT__JSON_INT || kind == WEFT__JSON_DOUBLE) return 1;
    }
    return 0;
}

static int check_text_or_array(const char *name, const weft__json *v, weft__fault *fault)
{
    int kind = weft__json_kind_of(v);
    if (kind == WEFT__JSON_STRING || kind == WEFT__JSON_ARRAY) return 1;
    return weft__fault_set(fault, 400, name, "'%s' must be a string, an array of strings, or an array of token ids", name);
}

/* One text, in pieces or not; no tokens are some, too, as llama.cpp says. */
static int read_content(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    if (!check_text_or_array(name, v, fault)) return 0;
    return weft__json_kind_of(v) == WEFT__JSON_STRING || check_ids(ask, name, v, 1, fault);
}

static int read_prompts(weft__ask *ask, const char *name, const weft__json *v, int mixed, weft__fault *fault)
{
    size_t n = weft__json_size(v);
    if (!check_text_or_array(name, v, fault)) return 0;
    if (weft__json_kind_of(v) == WEFT__JSON_STRING) return 1;
    if (!n) return weft__fault_set(fault, 400, name, "'%s' must not be empty", name);
    if (weft__is_one_prompt(v)) return check_ids(ask, name, v, mixed, fault);
    int embeds = ask->form == &weft__form_embeddings || ask->form == &weft__form_embedding;
    size_t most = embeds ? WEFT__MAX_INPUTS : WEFT__MAX_N;
    if (n > most) return weft__fault_set(fault, 400, name, "'%s' must have at most %zu prompts, not %zu", name, most, n);
    for (size_t i = 0; i < n; i++) {
        const weft__json *e = weft__json_at(v, i);
        char where[80];
        snprintf(where, sizeof where, "%.40s[%zu]", name, i);
        if (weft__json_kind_of(e) == WEFT__JSON_STRING) continue;
        if (weft__json_kind_of(e) != WEFT__JSON_ARRAY)
            return weft__fault_set(fault, 400, where, "'%s' must be a string or an array of token ids", where);
        if (!check_ids(ask, where, e, mixed, fault)) return 0;
    }
    return 1;
}

static int read_prompt(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    return read_prompts(ask, name, v, 0, fault);
}

static int read_prompt_llama(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    return read_prompts(ask, name, v, 1, fault);
}

/* ---- messages ---- */

int weft__lora_read(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    size_t n = weft__json_size(v);
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY)
        return weft__fault_set(fault, 400, name, "'%s' must be an array of objects with 'id' and 'scale'", name);
    if (n > WEFT__MAX_LORAS)
        return weft__fault_set(fault, 400, name, "'%s' must have at most %d adapters, not %zu", name, WEFT__MAX_LORAS, n);
    for (size_t i = 0; i < n; i++) {
        const weft__json *item = weft__json_at(v, i);
        weft__lora *l = &ask->loras[i];
        if (!weft__json_int(weft__json_get(item, "id"), &l->id) || !weft__json_double(weft__json_get(item, "scale"), &l->scale) ||
            !(fabs(l->scale) <= 1e6))
            return weft__fault_set(fault, 400, name, "'%s[%zu]' must be an object with a whole number 'id' and a number 'scale'",
                                   name, i);
        for (size_t k = 0; k < i; k++)
            if (ask->loras[k].id == l->id)
                return weft__fault_set(fault, 400, name, "'%s' has id %lld twice", name, (long long)l->id);
    }
    ask->lora_given = 1;
    ask->n_loras = (int)n;
    return 1;
}

static int is_role(const char *role)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool", "function"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(role, roles[i])) return 1;
    return 0;
}

/* What an assistant says beside its calls, and what a call returns, may be nothing; what a call returns is to be there. */
static int may_be_none(const char *role, const weft__json *content)
{
    return !strcmp(role, "assistant") || (content && (!strcmp(role, "tool") || !strcmp(role, "function")));
}

static int check_message(size_t i, const weft__json *v, weft__fault *fault)
{
    const weft__json *content = weft__json_get(v, "content");
    const char *role;
    char where[64];
    snprintf(where, sizeof where, "messages[%zu]", i);
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT) return weft__fault_set(fault, 400, where, "'%s' must be an object", where);
    snprintf(where, sizeof where, "messages[%zu].role", i);
    if (!read_word(weft__json_get(v, "role"), &role)) return weft__fault_set(fault, 400, where, "'%s' must be a string", where);
    if (!is_role(role))
        return weft__fault_set(fault, 400, where, "'%s' must be system, developer, user, assistant or tool, not '%.40s'", where,
                               role);
    snprintf(where, sizeof where, "messages[%zu].content", i);
    if ((!content || weft__json_is_null(content)) && !may_be_none(role, content))
        return weft__fault_set(fault, 400, where, "'%s' is missing; it must be a string or an array of parts", where);
    return 1;
}

static int refuse_message(const weft__chat_reading *r, weft_status st, const weft_error *err, weft__fault *fault)
{
    if (st == WEFT_NO_MEMORY) return weft__fault_set(fault, 503, NULL, "no memory for the messages");
    return weft__fault_set(fault, 400, r->field, "%s", err->message);
}

static int read_messages(weft__ask *ask, const char *name, const weft__json *v, weft__fault *fault)
{
    size_t n = weft__json_size(v);
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY)
        return weft__fault_set(fault, 400, name, "'%s' must be an array of messages", name);
    if (!n) return weft__fault_set(fault, 400, name, "'%s' must not be empty", name);
    if (n > WEFT__MAX_MESSAGES)
        return weft__fault_set(fault, 400, name, "'%s' must have at most %d messages, not %zu", name, WEFT__MAX_MESSAGES, n);
    for (size_t i = 0; i < n; i++)
        if (!check_message(i, weft__json_at(v, i), fault)) return 0;
    weft__chat_reading reading = {.form = WEFT__ARGUMENTS_GIVEN}; /* which form the template wants, the engine knows */
    weft_error err = {0};
    weft_status st = weft__chat_messages_normal(&reading, v, &ask->flat, &err);
    return !st || refuse_message(&reading, st, &err, fault);
}

/* ---- what fields demand of each other ---- */

static int check_stream(const weft__ask *ask, weft__fault *fault)
{
    if (weft__json_get(ask->root, "stream_options") && !weft__json_is_null(weft__json_get(ask->root, "stream_options")) &&
        !ask->stream)
        return weft__fault_set(fault, 400, "stream_options", "'stream_options' is only allowed when 'stream' is true");
    return 1;
}

static int check_constraint(const weft__ask *ask, weft__fault *fault)
{
    const char *format = ask->json_object ? "response_format" : "json_schema";
    if (ask->grammar && (ask->json_object || ask->json_value))
        return weft__fault_set(fault, 400, "grammar", "'grammar' and '%s' exclude each other", format);
    if (ask->json_object && ask->json_value)
        return weft__fault_set(fault, 400, "json_schema", "'json_schema' and '%s' exclude each other", format);
    return 1;
}

/* OpenAI's penalties see the text so far, all of it: the prompt too, as those of /completion. */
static void set_window(weft__ask *ask)
{
    ask->penalty_last_n = -1;
}

/* Of names for the same number the first that is given counts, whatever the order in the body. */
static void take_first(const weft__ask *ask, const char *const *names, int64_t *to)
{
    for (; *names; names++) {
        const weft__json *v = weft__json_get(ask->root, *names);
        if (v && !weft__json_is_null(v) && weft__json_int(v, to)) return;
    }
}

static int check_chat(weft__ask *ask, weft__fault *fault)
{
    static const char *const limits[] = {"max_completion_tokens", "max_tokens", NULL};
    const weft__json *top = weft__json_get(ask->root, "top_logprobs");
    if (top && !weft__json_is_null(top) && !ask->logprobs)
        return weft__fault_set(fault, 400, "top_logprobs", "'top_logprobs' is only allowed when 'logprobs' is true");
    if (!ask->logprobs) ask->n_top = -1;
    take_first(ask, limits, &ask->max_tokens);
    ask->generation_prompt = 1;
    set_window(ask);
    return check_stream(ask, fault) && check_constraint(ask, fault);
}

static int check_completions(weft__ask *ask, weft__fault *fault)
{
    int64_t best_of;
    if (weft__json_int(weft__json_get(ask->root, "best_of"), &best_of) && best_of != ask->n)
        return weft__fault_set(fault, 400, "best_of", "'best_of' other than 'n' is not supported by this server");
    set_window(ask);
    return check_stream(ask, fault) && check_constraint(ask, fault);
}

/* llama-server takes OpenAI's names where its own are absent, or, of n_probs, 0. */
static int check_completion(weft__ask *ask, weft__fault *fault)
{
    static const char *const limits[] = {"n_predict", "max_completion_tokens", "max_tokens", NULL};
    static const char *const answers[] = {"n_cmpl", "n", NULL};
    take_first(ask, limits, &ask->max_tokens);
    take_first(ask, answers, &ask->n);
    if (!ask->n_top) ask->n_top = ask->logprobs ? ask->logprobs : -1;
    if (ask->grammar && !*ask->grammar) ask->grammar = NULL;
    if (ask->stream) ask->return_tokens = 1; /* its streams have them */
    switch_samplers_off(ask);
    return check_constraint(ask, fault);
}

/* ---- the tables ---- */

#define BOOL(name, member, fallback)                                                                                             \
    {                                                                                                                            \
        name, WEFT__FIELD_BOOL, 0, AT(member), fallback, 0, 0, NULL, NULL                                                        \
    }
#define INT(name, member, fallback, min, max)                                                                                    \
    {                                                                                                                            \
        name, WEFT__FIELD_INT, 0, AT(member), fallback, min, max, NULL, NULL                                                     \
    }
#define NUMBER(name, member, fallback, min, max)                                                                                 \
    {                                                                                                                            \
        name, WEFT__FIELD_NUMBER, 0, AT(member), fallback, min, max, NULL, NULL                                                  \
    }
#define STRING(name, member, max)                                                                                                \
    {                                                                                                                            \
        name, WEFT__FIELD_STRING, 0, AT(member), NONE, 0, max, NULL, NULL                                                        \
    }
#define JSON(name, required, member, type, read)                                                                                 \
    {                                                                                                                            \
        name, WEFT__FIELD_JSON, required, AT(member), NONE, 0, 0, type, read                                                     \
    }
#define READ(name, type, read)                                                                                                   \
    {                                                                                                                            \
        name, WEFT__FIELD_READ, 0, 0, NONE, 0, 0, type, read                                                                     \
    }
#define ONLY(name, value)                                                                                                        \
    {                                                                                                                            \
        name, WEFT__FIELD_ONLY, 0, 0, value, 0, 0, NULL, NULL                                                                    \
    }
#define EMPTY(name)                                                                                                              \
    {                                                                                                                            \
        name, WEFT__FIELD_EMPTY, 0, 0, NONE, 0, 0, "empty", NULL                                                                 \
    }
#define NOTE(name)                                                                                                               \
    {                                                                                                                            \
        name, WEFT__FIELD_NOTE, 0, 0, NONE, 0, 0, "any", NULL                                                                    \
    }
#define END                                                                                                                      \
    {                                                                                                                            \
        NULL, 0, 0, 0, 0, 0, 0, NULL, NULL                                                                                       \
    }

#define TEXTS "string or array of strings"
#define PROMPT "string, array of strings, array of token ids, or array of those"
#define LORAS "array of objects with id and scale"
#define MAX_INT 2147483647.0
#define MAX_NAME 256
#define MAX_GRAMMAR (1 << 18)

/* Sampling as OpenAI names and bounds it, and the fields that other servers of its dialect add. */
#define OPENAI_SAMPLING                                                                                                          \
    INT("n", n, 1, 1, WEFT__MAX_N), NUMBER("temperature", temperature, 1, 0, 2), NUMBER("top_p", top_p, 1, 0, 1),                \
        NUMBER("presence_penalty", presence_penalty, 0, -2, 2), NUMBER("frequency_penalty", frequency_penalty, 0, -2, 2),        \
        {"seed", WEFT__FIELD_INT, 0, AT(seed), NONE, -0x1p63, 0x1p63, NULL, read_seed},                                          \
        READ("logit_bias", "object of token ids and numbers", read_bias), READ("stop", TEXTS, read_stop),                        \
        BOOL("stream", stream, 0), READ("stream_options", "object", read_stream_options),                                        \
        READ("response_format", "object", read_response_format), STRING("user", user, MAX_NAME),                                 \
        STRING("model", model, MAX_NAME), INT("top_k", top_k, 0, -1, MAX_INT), NUMBER("min_p", min_p, 0, 0, 1),                  \
        NUMBER("repetition_penalty", repeat_penalty, 1, 0.01, 100), BOOL("ignore_eos", ignore_end, 0),                           \
        BOOL("cache_prompt", cache_prompt, 1), STRING("grammar", grammar, MAX_GRAMMAR), READ("lora", LORAS, weft__lora_read),    \
        INT("priority", priority, 0, -8, 0), INT("timeout_ms", timeout_ms, 0, 0, 86400000.0)

static const weft__field chat_fields[] = {
    JSON("messages", 1, messages, "array of messages", read_messages),
    INT("max_tokens", max_tokens, -1, 1, MAX_INT),
    INT("max_completion_tokens", max_tokens, -1, 1, MAX_INT),
    BOOL("logprobs", logprobs, 0),
    INT("top_logprobs", n_top, 0, 0, 20),
    OPENAI_SAMPLING,
    JSON("chat_template_kwargs", 0, kwargs, "object", read_kwargs),
    EMPTY("tools"),
    READ("tool_choice", "string", read_tool_choice),
    EMPTY("functions"),
    READ("function_call", "string", read_tool_choice),
    READ("modalities", "array of strings", read_modalities),
    EMPTY("audio"),
    EMPTY("prediction"),
    EMPTY("web_search_options"),
    NOTE("parallel_tool_calls"),
    NOTE("reasoning_effort"),
    NOTE("verbosity"),
    NOTE("store"),
    NOTE("metadata"),
    NOTE("service_tier"),
    NOTE("safety_identifier"),
    NOTE("prompt_cache_key"),
    NOTE("prompt_cache_retention"),
    END,
};

static const weft__field completions_fields[] = {
    JSON("prompt", 1, prompt, PROMPT, read_prompt),
    INT("max_tokens", max_tokens, 16, 0, MAX_INT),
    INT("logprobs", n_top, -1, 0, 5),
    BOOL("echo", echo, 0),
    OPENAI_SAMPLING,
    EMPTY("suffix"),
    READ("best_of", "integer", read_best_of),
    END,
};

static const weft__field embeddings_fields[] = {
    JSON("input", 1, input, PROMPT, read_prompt),
    READ("encoding_format", "'float' or 'base64'", read_encoding),
    EMPTY("dimensions"),
    STRING("model", model, MAX_NAME),
    STRING("user", user, MAX_NAME),
    END,
};

/* llama.cpp's names and defaults. A negative limit of tokens means none. */
static const weft__field completion_fields[] = {
    JSON("prompt", 1, prompt, PROMPT, read_prompt_llama),
    INT("n_predict", max_tokens, -1, -1, MAX_INT),
    INT("max_completion_tokens", max_tokens, -1, -1, MAX_INT),
    INT("max_tokens", max_tokens, -1, -1, MAX_INT),
    INT("n_cmpl", n, 1, 1, WEFT__MAX_N),
    INT("n", n, 1, 1, WEFT__MAX_N),
    NUMBER("temperature", temperature, 0.8, -100, 100),
    INT("top_k", top_k, 40, -1, MAX_INT),
    NUMBER("top_p", top_p, 0.95, 0, 1),
    NUMBER("min_p", min_p, 0.05, 0, 1),
    NUMBER("repeat_penalty", repeat_penalty, 1, 0.01, 100),
    INT("repeat_last_n", penalty_last_n, 64, -1, MAX_INT),
    NUMBER("presence_penalty", presence_penalty, 0, -100, 100),
    NUMBER("frequency_penalty", frequency_penalty, 0, -100, 100),
    {"seed", WEFT__FIELD_INT, 0, AT(seed), NONE, -0x1p63, 0x1p63, NULL, read_seed_llama},
    READ("logit_bias", "array of [token, number] or object", read_bias_llama),
    READ("stop", TEXTS, read_stop),
    BOOL("stream", stream, 0),
    BOOL("ignore_eos", ignore_end, 0),
    BOOL("cache_prompt", cache_prompt, 1),
    BOOL("return_tokens", return_tokens, 0),
    BOOL("timings_per_token", timings, 0),
    INT("n_probs", n_top, 0, 0, 20),
    READ("logprobs", "integer or boolean", read_logprobs_llama),
    STRING("grammar", grammar, MAX_GRAMMAR),
    READ("response_format", "object", read_response_format),
    INT("id_slot", id_slot, -1, -1, 65535),
    STRING("user", user, MAX_NAME),
    STRING("model", model, MAX_NAME),
    INT("priority", priority, 0, -8, 0),
    INT("timeout_ms", timeout_ms, 0, 0, 86400000.0),
    READ("json_schema", "object", read_json_schema),
    READ("samplers", "array of strings, or string of letters", read_samplers),
    READ("lora", LORAS, weft__lora_read),
    EMPTY("image_data"),
    EMPTY("grammar_lazy"),
    EMPTY("response_fields"),
    ONLY("post_sampling_probs", 0),
    ONLY("mirostat", 0),
    ONLY("dynatemp_range", 0),
    ONLY("typical_p", 1),
    ONLY("xtc_probability", 0),
    ONLY("dry_multiplier", 0),
    ONLY("top_n_sigma", -1),
    ONLY("adaptive_target", -1),
    ONLY("min_keep", 0),
    ONLY("n_indent", 0),
    READ("t_max_predict_ms", "integer", read_no_limit),
    END,
};

static const weft__field tokenize_fields[] = {
    JSON("content", 0, content, "string, or array of strings and token ids", read_content),
    BOOL("add_special", add_special, 0),
    BOOL("parse_special", parse_special, 1),
    BOOL("with_pieces", with_pieces, 0),
    END,
};

static const weft__field detokenize_fields[] = {
    JSON("tokens", 1, tokens, "array of token ids", read_ids),
    END,
};

static const weft__field apply_template_fields[] = {
    JSON("messages", 1, messages, "array of messages", read_messages),
    JSON("chat_template_kwargs", 0, kwargs, "object", read_kwargs),
    BOOL("add_generation_prompt", generation_prompt, 1),
    EMPTY("tools"),
    END,
};

static const weft__field embedding_fields[] = {
    JSON("content", 0, content, PROMPT, read_prompt_llama),
    JSON("input", 0, input, PROMPT, read_prompt_llama),
    ONLY("embd_normalize", 2), /* the Euclidean norm */
    END,
};

static const weft__field slot_fields[] = {
    {"filename", WEFT__FIELD_STRING, 0, AT(filename), NONE, 0, WEFT__MAX_FILENAME, NULL, NULL},
    END,
};

static const weft__field load_adapter_fields[] = {
    {"lora_name", WEFT__FIELD_STRING, 1, AT(lora_name), NONE, 0, 128, NULL, NULL},
    {"lora_path", WEFT__FIELD_STRING, 1, AT(lora_path), NONE, 0, 1024, NULL, NULL},
    BOOL("load_inplace", load_inplace, 0),
    BOOL("publish", publish, 0),
    NUMBER("scale", scale, 1, -1e6, 1e6),
    NOTE("base_model_name"),
    END,
};

static const weft__field unload_adapter_fields[] = {
    {"lora_name", WEFT__FIELD_STRING, 1, AT(lora_name), NONE, 0, 128, NULL, NULL},
    NOTE("lora_int_id"),
    END,
};

static int check_embedding(weft__ask *ask, weft__fault *fault)
{
    if (!ask->content) ask->content = ask->input;
    return ask->content ? 1 : weft__fault_set(fault, 400, "content", "'content' is missing; it must be %s", PROMPT);
}

const weft__form weft__form_chat = {.name = "chat",
                                    .path = "/v1/chat/completions",
                                    .strict = 1,
                                    .fields = chat_fields,
                                    .check = check_chat,
                                    .n = "n",
                                    .tokens = "max_tokens",
                                    .top = "top_logprobs"};
const weft__form weft__form_completions = {.name = "completions",
                                           .path = "/v1/completions",
                                           .strict = 1,
                                           .fields = completions_fields,
                                           .check = check_completions,
                                           .n = "n",
                                           .tokens = "max_tokens",
                                           .top = "logprobs"};
const weft__form weft__form_embeddings = {"embeddings", "/v1/embeddings", 1, embeddings_fields, NULL};
const weft__form weft__form_completion = {.name = "completion",
                                          .path = "/completion",
                                          .fields = completion_fields,
                                          .check = check_completion,
                                          .n = "n_cmpl",
                                          .tokens = "n_predict",
                                          .top = "n_probs"};
const weft__form weft__form_tokenize = {"tokenize", "/tokenize", 0, tokenize_fields, NULL};
const weft__form weft__form_detokenize = {"detokenize", "/detokenize", 0, detokenize_fields, NULL};
const weft__form weft__form_apply_template = {"apply_template", "/apply-template", 0, apply_template_fields, NULL};
const weft__form weft__form_embedding = {"embedding", "/embedding", 0, embedding_fields, check_embedding};
const weft__form weft__form_slot = {"slot", "/slots/{id_slot}", 0, slot_fields, NULL};

const weft__form weft__form_load_adapter = {"load_lora_adapter", "/v1/load_lora_adapter", 0, load_adapter_fields, NULL};
const weft__form weft__form_unload_adapter = {"unload_lora_adapter", "/v1/unload_lora_adapter", 0, unload_adapter_fields, NULL};

const weft__form *const weft__forms[] = {
    &weft__form_chat,     &weft__form_completions,  &weft__form_embeddings,     &weft__form_completion,
    &weft__form_tokenize, &weft__form_detokenize,   &weft__form_apply_template, &weft__form_embedding,
    &weft__form_slot,     &weft__form_load_adapter, &weft__form_unload_adapter, NULL,
};
