// SPDX-License-Identifier: Apache-2.0
/* routes.c: which function answers which path. Runs on workers; each answers, or hands the request to response.c, which
 * does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "base/alloc.h"
#include "server/learn.h"
#include "server/learned.h"
#include "server/memories.h"
#include "server/models.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/rules.h"

enum { GET = 1, POST = 2, OPEN = 4 /* without a key */, WAITS = 8 /* for its model to be loaded */ };
enum { DELETE = 16 };

typedef struct route {
    const char *path; /* a last part in braces stands for any text */
    int methods;
    /* one of them: of the server, or of a model, which is held meanwhile */
    void (*answer)(weft_server *s, weft__http_request *r, const weft__server_caller *who);
    weft__server_of_model *of_model;
    const weft__api_table *form; /* where what it generates may be rewarded, and the router learns of it */
} route;

static void reply(weft__http_request *r, weft__strbuf *out)
{
    weft__server_reply_json(r, 200, out);
    weft__http_release(r);
}

static void routes_refuse(weft__http_request *r, const weft__api_error *error)
{
    weft__server_reply_error(r, error);
    weft__http_release(r);
}

/* ---- asking the model ---- */

/* adapter: that the name stands for, or "". What the caller may not use is not there for it. */
static int is_served(const weft__server_model *m, const weft__server_caller *who, const char *tenant, const char *model,
                     char adapter[WEFT__API_ADAPTER_NAME])
{
    const int may = weft__server_may_use_model(who, m->name);
    adapter[0] = 0;
    if (!model || !*model) return may;
    if (weft__server_is_model_name(m, model)) return may || weft__server_may_use_model(who, model);
    if (!may && !weft__server_learned_may_name(m, who, model)) return 0;
    const int is_version = weft__server_learned_named(m, tenant, model, adapter);
    if (is_version >= 0) return is_version;
    adapter[0] = 0;
    weft__server_adapter_of_model(m, who, model, adapter);
    if (!*adapter && weft__server_learned_is_lineage(m, tenant, model)) return 1;
    for (char **a = m->aliases.items; a && *a && !*adapter; a++)
        if (!strcmp(*a, "*")) return 1;
    return *adapter != 0;
}

/* tenant NULL: no version can be meant. */
static int refuse_model(const weft__server_model *m, const weft__server_caller *who, const char *tenant,
                        const char *model, weft__api_error *error)
{
    char adapters[256], versions[256] = "";
    const int may = weft__server_may_use_model(who, m->name);
    weft__server_adapters_name(m, who, adapters, sizeof adapters);
    if (tenant) weft__server_learned_name_versions(m, tenant, model, versions, sizeof versions);
    if (may)
        weft__api_error_set(error, 404, "model", "the model '%.100s' does not exist; this server has '%s'%s%s", model,
                            m->name, adapters, versions);
    else
        weft__api_error_set(error, 404, "model", "the model '%.100s' does not exist; /v1/models has those that do%s",
                            model && *model ? model : m->name, versions);
    error->code = "model_not_found";
    return 0;
}

static int check_model(const weft__server_model *m, const weft__server_caller *who, const char *tenant,
                       weft__api_params *params, weft__api_error *error)
{
    return is_served(m, who, tenant, params->model, params->adapter) ||
           refuse_model(m, who, tenant, params->model, error);
}

/* The same of a preset, which is there for whom may use it by its own name, whatever its base is. */
static int check_preset(const weft__server_model *m, const weft__server_caller *who, const weft__config_preset *preset,
                        weft__api_error *error)
{
    return weft__server_may_use_model(who, preset->name) || refuse_model(m, who, NULL, preset->name, error);
}

/* Whose request it is: the key's or, without keys, as clients name themselves. 0: refused. */
static int tenant_of(const weft__server_model *m, const weft__server_caller *who, const weft__api_params *params,
                     char tenant[64], weft__api_error *error)
{
    weft_error err = {0};
    if (m->server->wants_keys || !params->user) {
        snprintf(tenant, 64, "%s", who->tenant);
        return 1;
    }
    weft_status st = weft__server_tenant_of_user(params->user, tenant, &err);
    if (st) weft__api_error_of(error, st, err.message);
    return !st;
}

/* The body as a request of this form, with what its preset adds; prompts: what its prompts are made with, or NULL.
 * 0: it was refused. */
static int parse(weft__server_model *m, weft__http_request *r, const weft__server_caller *who,
                 const weft__api_table *form, weft__api_params *params, weft__api_prompt_model *prompts)
{
    weft__api_error error;
    const weft__config_preset *preset;
    char tenant[64];
    size_t n;
    const char *body = weft__http_body(r, &n);
    if (who->again.body) body = who->again.body, n = who->again.n;
    int ok = weft__server_preset_parse(who, m, form, body, n, params, &preset, &error);
    if (ok && preset) ok = check_preset(m, who, preset, &error);
    else if (ok) ok = tenant_of(m, who, params, tenant, &error) && check_model(m, who, tenant, params, &error);
    if (ok) ok = weft__server_adapters_allowed(m, who, params, &error);
    if (ok && preset) ok = weft__server_preset_adapters(m, preset, params, &error);
    if (ok && prompts) ok = weft__server_preset_prompts(who->rules, m, preset, prompts, &error);
    if (ok && m->server->models.are_several) weft__server_model_keep(m, params->keep_alive_ms);
    if (ok) return 1;
    weft__api_params_free(params);
    routes_refuse(r, &error);
    return 0;
}

/* Starts what was asked for, or answers with the error where it is set; takes over the parameters and the prompts. */
static void start_generating(weft__server_model *m, weft__http_request *r, const weft__api_writer *writer,
                             const weft__server_caller *who, const char *prefix, weft__api_params *params,
                             weft__api_prompts *prompts, weft__api_error *error, int embedding)
{
    char own[64];
    if (!error->status && tenant_of(m, who, params, own, error)) {
        weft__server_response_start(m, r, writer, who, own, prefix, params, prompts, embedding);
        return;
    }
    weft__api_prompts_free(prompts);
    weft__api_params_free(params);
    routes_refuse(r, error);
}

void weft__server_routes_chat(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__api_params params;
    weft__api_prompt_model made_with;
    weft__api_prompts prompts = {0};
    weft__api_error error = {0};
    if (!parse(m, r, who, &weft__api_table_chat, &params, &made_with)) return;
    char tenant[64];
    const int is_known = tenant_of(m, who, &params, tenant, &error);
    if (is_known) weft__server_memories_embed(m, r, who, tenant, &params);
    if (is_known) weft__server_learn_chat(m, who, tenant, &made_with, &params, &prompts, &error);
    params.id_slot = -1;
    start_generating(m, r, &weft__api_write_chat, who, "chatcmpl-", &params, &prompts, &error, 0);
}

static void answer_completions(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__api_params params;
    weft__api_prompts prompts = {0};
    weft__api_error error = {0};
    if (!parse(m, r, who, &weft__api_table_completions, &params, NULL)) return;
    weft__api_prompts_read(&m->prompt_model, "prompt", params.prompt, 1, 1, params.echo || params.n_top >= 0, &prompts,
                           &error);
    weft__server_learn_text(m, &params, &prompts);
    params.id_slot = -1;
    start_generating(m, r, &weft__api_write_completions, who, "cmpl-", &params, &prompts, &error, 0);
}

static void answer_completion(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__api_params params;
    weft__api_prompts prompts = {0};
    weft__api_error error = {0};
    if (!parse(m, r, who, &weft__api_table_completion, &params, NULL)) return;
    weft__api_prompts_read(&m->prompt_model, "prompt", params.prompt, 1, 1, 1, &prompts, &error);
    weft__server_learn_text(m, &params, &prompts);
    start_generating(m, r, &weft__api_write_completion, who, "cmpl-", &params, &prompts, &error, 0);
}

static void answer_openai_embeddings(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__api_params params;
    weft__api_prompts prompts = {0};
    weft__api_error error = {0};
    if (!parse(m, r, who, &weft__api_table_embeddings, &params, NULL)) return;
    weft__api_prompts_embed(&m->prompt_model, &params, &prompts, &error);
    start_generating(m, r, &weft__api_write_openai_embeddings, who, "embd-", &params, &prompts, &error, 1);
}

static void answer_embedding(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__api_params params;
    weft__api_prompts prompts = {0};
    weft__api_error error = {0};
    if (!parse(m, r, who, &weft__api_table_embedding, &params, NULL)) return;
    weft__api_prompts_embed(&m->prompt_model, &params, &prompts, &error);
    start_generating(m, r, &weft__api_write_embedding, who, "embd-", &params, &prompts, &error, 1);
}

/* ---- asking the tokenizer and the template ---- */

static void answer_tokenize(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__api_params params;
    weft__api_prompts prompts = {0};
    weft__api_error error = {0};
    weft__strbuf out = {0};
    if (!parse(m, r, who, &weft__api_table_tokenize, &params, NULL)) return;
    /* llama.cpp's names, or vLLM's, where special tokens are added unless it is said otherwise */
    const int of_vllm = !params.content && params.prompt;
    const weft__json *text = of_vllm ? params.prompt : params.content;
    int none = !text || (weft__json_kind_of(text) == WEFT__JSON_ARRAY && !weft__json_size(text));
    int ok = none || weft__api_texts_read(&m->prompt_model, of_vllm ? "prompt" : "content", text,
                                          of_vllm ? params.add_special_tokens : params.add_special,
                                          params.parse_special, 0, &prompts, &error);
    if (ok) weft__api_put_tokens(&out, m->prompt_model.tokenizer, &prompts, params.with_pieces);
    weft__api_prompts_free(&prompts);
    weft__api_params_free(&params);
    if (ok) reply(r, &out);
    else routes_refuse(r, &error);
}

static void answer_detokenize(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__api_params params;
    weft__api_prompts prompts = {0};
    weft__api_error error = {0};
    weft__strbuf out = {0};
    if (!parse(m, r, who, &weft__api_table_detokenize, &params, NULL)) return;
    int ok = !weft__json_size(params.tokens) ||
             weft__api_texts_read(&m->prompt_model, "tokens", params.tokens, 0, 0, 1, &prompts, &error);
    if (ok)
        weft__api_put_detokenized(&out, prompts.n ? prompts.items[0].text : "",
                                  prompts.n ? prompts.items[0].n_text : 0);
    weft__api_prompts_free(&prompts);
    weft__api_params_free(&params);
    if (ok) reply(r, &out);
    else routes_refuse(r, &error);
}

static void answer_apply_template(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__api_params params;
    weft__api_error error = {0};
    weft__strbuf out = {0};
    weft_chat_prompt *prompt = NULL;
    weft__api_prompt_model made_with;
    if (!parse(m, r, who, &weft__api_table_apply_template, &params, &made_with)) return;
    int ok = weft__api_chat_text(&made_with, &params, &prompt, &error);
    weft__api_params_free(&params);
    if (!ok) {
        routes_refuse(r, &error);
        return;
    }
    size_t n;
    const char *text = weft_chat_prompt_text(prompt, &n);
    weft__api_put_text(&out, "prompt", text, n);
    weft_chat_prompt_free(&prompt);
    reply(r, &out);
}

/* ---- asking the server ---- */

static void answer_health(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    (void)who;
    if (s->draining) {
        weft__api_error_set(&error, 503, NULL, "the server is shutting down");
        routes_refuse(r, &error);
        return;
    }
    weft__api_put_ok(&out);
    reply(r, &out);
}

static void answer_openapi(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    (void)s;
    (void)who;
    weft__strbuf_put(&out, weft__server_openapi, weft__server_openapi_n);
    reply(r, &out);
}

static void answer_props(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    (void)who;
    weft__api_put_props(&out, &(weft__api_props){.n_ctx = m->prompt_model.n_ctx,
                                                 .n_slots = m->n_slots,
                                                 .alias = m->name,
                                                 .path = m->info.name,
                                                 .chat_template = m->chat_source ? m->chat_source : "",
                                                 .bos = m->bos,
                                                 .eos = m->eos,
                                                 .takes_feedback = m->server->learn != NULL,
                                                 .has_memories = m->server->memories != NULL});
    reply(r, &out);
}

/* vLLM's, by which lm-evaluation-harness asks whose tokens they are. */
static void answer_tokenizer_info(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    (void)who;
    weft__api_put_tokenizer_info(&out, m->bos, m->eos, m->chat_source ? m->chat_source : "");
    reply(r, &out);
}

static void answer_slots(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    const char *fail = weft__http_query(r, "fail_on_no_slot");
    if (!weft__server_slots_write(m, who, &out) && fail && *fail) {
        weft__strbuf_free(&out);
        weft__api_error_set(&error, 503, NULL, "no slot available");
        routes_refuse(r, &error);
        return;
    }
    reply(r, &out);
}

static int read_filename(weft__server_model *m, weft__http_request *r, weft__api_params *params, const char *action,
                         weft__api_error *error)
{
    size_t n;
    const char *body = weft__http_body(r, &n);
    *params = (weft__api_params){0};
    int erase = !strcmp(action, "erase"); /* of the slot, or by name of what was saved */
    if (erase && !n) return 1;
    if (!weft__api_params_parse(&weft__api_table_slot, m->n_vocab, body, n, params, error)) return 0;
    return erase || params->filename ||
           weft__api_error_set(error, 400, "filename", "'filename' is missing; it must be a string");
}

static void answer_slot_action(weft__server_model *m, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__api_error error = {0};
    weft__api_params params = {0};
    const char *action = weft__http_query(r, "action"), *part = weft__http_path(r) + strlen("/slots/");
    size_t n = strlen(part);
    long id = n && n < 6 && strspn(part, "0123456789") == n ? strtol(part, NULL, 10) : -1;
    int ok = 0;
    if (id < 0 || id >= m->slots.n)
        weft__api_error_set(&error, 400, "id_slot", "'id_slot' must be from 0 to %d", m->slots.n - 1);
    else if (!action || (strcmp(action, "save") && strcmp(action, "restore") && strcmp(action, "erase")))
        weft__api_error_set(&error, 400, "action", "'action' must be save, restore or erase");
    else if (read_filename(m, r, &params, action, &error))
        ok = !weft__server_slot_action(m, r, (int32_t)id, who->tenant, action, params.filename, &out, &error);
    weft__api_params_free(&params);
    if (ok) reply(r, &out);
    else {
        weft__strbuf_free(&out);
        routes_refuse(r, &error);
    }
}

static void answer_metrics(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    weft__strbuf out = {0};
    weft__server_metrics_write(s, who, &out);
    if (out.failed) {
        reply(r, &out);
        return;
    }
    weft__http_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", out.data, out.len);
    weft__http_release(r);
}

/* ---- the table ---- */

static const route routes[] = {
    {"/", GET | OPEN, weft__server_page},
    {"/page/{file}", GET | OPEN, weft__server_page},
    {"/v1/models", GET, weft__server_models_list},
    {"/v1/models/{model}", GET, weft__server_models_show},
    {"/v1/chat/completions", POST | WAITS, .of_model = weft__server_routes_chat, .form = &weft__api_table_chat},
    {"/v1/completions", POST | WAITS, .of_model = answer_completions, .form = &weft__api_table_completions},
    {"/v1/embeddings", POST | WAITS, .of_model = answer_openai_embeddings},
    {"/models", GET, weft__server_models_list},
    {"/models/load", POST, weft__server_models_load},
    {"/models/unload", POST, weft__server_models_unload},
    {"/chat/completions", POST | WAITS, .of_model = weft__server_routes_chat, .form = &weft__api_table_chat},
    {"/completion", POST | WAITS, .of_model = answer_completion, .form = &weft__api_table_completion},
    {"/completions", POST | WAITS, .of_model = answer_completion, .form = &weft__api_table_completion},
    {"/embedding", POST | WAITS, .of_model = answer_embedding},
    {"/embeddings", POST | WAITS, .of_model = answer_embedding},
    {"/tokenize", POST | WAITS, .of_model = answer_tokenize},
    {"/tokenizer_info", GET | WAITS, .of_model = answer_tokenizer_info},
    {"/detokenize", POST | WAITS, .of_model = answer_detokenize},
    {"/apply-template", POST | WAITS, .of_model = answer_apply_template},
    {"/health", GET | OPEN, answer_health},
    {"/v1/health", GET | OPEN, answer_health},
    {"/openapi.json", GET | OPEN, answer_openapi},
    {"/props", GET | WAITS, .of_model = answer_props},
    {"/v1/memories", GET | POST, weft__server_memories_endpoint},
    {"/v1/memories/{id}", DELETE, weft__server_memories_one},
    {"/slots", GET, .of_model = answer_slots},
    {"/slots/{id_slot}", POST, .of_model = answer_slot_action},
    {"/metrics", GET, answer_metrics},
    {"/lora-adapters", GET | POST, .of_model = weft__server_adapters_endpoint},
    {"/v1/load_lora_adapter", POST, .of_model = weft__server_adapter_load},
    {"/v1/feedback", POST, weft__server_feedback},
    {"/v1/learn", GET, weft__server_learned_show},
    {"/v1/learn/rollback", POST, weft__server_learned_roll_back},
    {"/v1/learn/consolidate", POST, weft__server_learned_consolidate},
    {"/v1/learn/forget", POST, weft__server_learn_forget},
    {"/v1/unload_lora_adapter", POST, .of_model = weft__server_adapter_unload},
};
enum { N_ROUTES = sizeof routes / sizeof *routes };
_Static_assert((int)N_ROUTES < (int)WEFT__SERVER_ROUTES_MAX, "one is for paths that are none of these");

static int matches(const char *pattern, const char *path)
{
    const char *brace = strchr(pattern, '{');
    if (!brace) return !strcmp(pattern, path);
    return !strncmp(pattern, path, (size_t)(brace - pattern)) && path[brace - pattern];
}

int weft__server_route_index(const char *path)
{
    int i = 0;
    while (i < N_ROUTES && !matches(routes[i].path, path)) i++;
    return i;
}

const char *weft__server_route_at(int index)
{
    return index < N_ROUTES ? routes[index].path : index == N_ROUTES ? "other" : NULL;
}

static const char *given_key(const weft__http_request *r)
{
    const char *authorization = weft__http_header(r, "Authorization");
    if (authorization && !strncasecmp(authorization, "Bearer ", 7))
        return authorization + 7 + strspn(authorization + 7, " ");
    return weft__http_header(r, "X-Api-Key");
}

/* The caller, whose rules are to be released. 0 with the error filled when a key is wanted and none that counts was
 * given. Without keys there are no others to be kept from anything but on other machines: a caller on this one is an
 * admin. */
static int identify(weft_server *s, const weft__http_request *r, int open, weft__server_caller *who,
                    weft__api_error *error)
{
    const char *key = given_key(r);
    *who = (weft__server_caller){.is_admin = !s->wants_keys && weft__http_is_local(r)};
    if (s->wants_keys && !open && !key)
        return weft__api_error_set(error, 401, NULL, "an API key is wanted: Authorization: Bearer KEY");
    weft__server_rules *rules = weft__server_rules_hold(s);
    int known = !s->wants_keys || open || weft__server_keys_check(&rules->keys, key, who);
    who->rules = rules;
    return known || weft__api_error_set(error, 401, NULL, "the API key is not one of this server's");
}

int weft__server_admit(void *arg, const weft__http_request *r, char client[WEFT__HTTP_CLIENT])
{
    weft__api_error error = {0};
    weft__server_caller who;
    const int known = identify(arg, r, 0, &who, &error);
    if (known) memcpy(client, who.tenant, sizeof who.tenant);
    weft__server_rules_release(&who.rules);
    return known;
}

/* The arm of a request that names the router. 0 with the error filled. */
static int choose_arm(weft_server *s, weft__http_request *r, const weft__api_table *form, weft__server_caller *who,
                      weft__api_error *error)
{
    weft__api_meant meant = {0};
    size_t n;
    const char *body = weft__http_body(r, &n), *named = weft__http_query(r, "model");
    if (!s->router) return 1;
    weft__api_meant_read(body, n, &meant);
    if (strcmp(named && *named ? named : meant.model, WEFT__SERVER_AUTO)) return 1;
    return weft__server_router_choose(s, r, &meant, form, who, error);
}

static void refuse_method(weft__http_request *r, const route *of, const char *method, weft__api_error *error)
{
    const int get = of->methods & GET, post = of->methods & POST;
    weft__api_error_set(error, 405, NULL, "%s wants %s, not %.16s", of->path,
                        get && post ? "GET or POST"
                        : get       ? "GET"
                        : post      ? "POST"
                                    : "DELETE",
                        method);
    weft__http_add_header(r, "Allow", get && post ? "GET, HEAD, POST" : get ? "GET, HEAD" : post ? "POST" : "DELETE");
}

void weft__server_route(void *arg, weft__http_request *r)
{
    weft_server *s = arg;
    const char *method = weft__http_method(r);
    int i = weft__server_route_index(weft__http_path(r));
    const int given = !strcmp(method, "GET") || !strcmp(method, "HEAD") ? GET
                      : !strcmp(method, "POST")                         ? POST
                      : !strcmp(method, "DELETE")                       ? DELETE
                                                                        : 0;
    weft__api_error error = {0};
    weft__server_caller who = {.rules = NULL};
    if (i == N_ROUTES)
        weft__api_error_set(&error, 404, NULL, "there is no %.100s here; /openapi.json lists what there is",
                            weft__http_path(r));
    else if (!(routes[i].methods & given)) {
        refuse_method(r, &routes[i], method, &error);
    } else if (!identify(s, r, routes[i].methods & OPEN, &who, &error))
        ;
    else if (s->draining && given != GET) weft__api_error_set(&error, 503, NULL, "the server is shutting down");
    else if (routes[i].of_model) choose_arm(s, r, routes[i].form, &who, &error);
    if (error.status) routes_refuse(r, &error);
    else if (routes[i].answer) routes[i].answer(s, r, &who);
    else weft__server_models_answer(s, r, &who, routes[i].methods & WAITS, routes[i].of_model);
    weft__server_rules_release(&who.rules);
}
