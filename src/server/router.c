// SPDX-License-Identifier: Apache-2.0
/* router.c: the arm that answers a request for "auto" (router.h). Workers. */
#include "server/router.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "base/alloc.h"
#include "base/random.h"
#include "server/models.h"
#include "server/rules.h"

/* ---- life ---- */

/* NAME or NAME=COST. */
static weft_status read_arm(const char *text, char name[WEFT__ROUTE_NAME], double *cost, weft_error *err)
{
    const char *equals = strrchr(text, '=');
    const size_t n = equals ? (size_t)(equals - text) : strlen(text);
    char *end = NULL;
    *cost = equals ? strtod(equals + 1, &end) : 0;
    if (!n || n >= WEFT__ROUTE_NAME || (equals && (!equals[1] || *end || !(*cost >= 0 && *cost <= 1))))
        return weft_fail(err, WEFT_ARGUMENT, "route: '%.100s' must be a name, or NAME=COST with a cost from 0 to 1",
                         text);
    memcpy(name, text, n);
    name[n] = 0;
    return WEFT_OK;
}

/* A model, a preset or an adapter of that name, for anybody. */
static int is_served_as(weft_server *s, const char *name)
{
    const weft__server_caller anybody = {.is_admin = 1, .rules = s->rules};
    weft__api_error error = {0};
    return weft__server_models_which(s, &anybody, name, &error) != NULL;
}

static int is_called(weft_server *s, const char *name)
{
    int takes_any = 0;
    for (size_t i = 0; i < s->models.n; i++) takes_any |= weft__server_takes_any_name(s->models.items[i]);
    return !takes_any && is_served_as(s, name);
}

static weft_status read_arms(weft_server *s, const weft_server_params *p, weft__route_params *params,
                             weft__server_router *out, weft_error *err)
{
    while (p->route[out->n_arms]) out->n_arms++;
    if (out->n_arms > WEFT__ROUTE_ARMS)
        return weft_fail(err, WEFT_ARGUMENT, "route: at most %d arms", WEFT__ROUTE_ARMS);
    if (!(out->arms = weft__alloc_zero((size_t)out->n_arms, sizeof *out->arms)))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a router");
    for (int i = 0; i < out->n_arms; i++) {
        const weft_status st = read_arm(p->route[i], out->arms[i], &params->cost[i], err);
        if (st) return st;
        for (int k = 0; k < i; k++)
            if (!strcmp(out->arms[i], out->arms[k]))
                return weft_fail(err, WEFT_ARGUMENT, "route: '%s' stands there twice", out->arms[i]);
        if (!is_served_as(s, out->arms[i]))
            return weft_fail(err, WEFT_ARGUMENT, "route: '%s' is no model, adapter or preset of this server",
                             out->arms[i]);
    }
    if (is_called(s, WEFT__SERVER_AUTO))
        return weft_fail(err, WEFT_ARGUMENT,
                         "route: something that is served is called '" WEFT__SERVER_AUTO
                         "', which is the router's name; give it another");
    return WEFT_OK;
}

/* A router's log goes with all else that is kept of its tenant. */
static int path_of_log(void *arg, const char *tenant, int makes, char *out, size_t room)
{
    weft_server *s = arg;
    weft__strbuf dir = {0};
    const int ok = !weft__learn_tenant_dir(s->learn, tenant, makes, &dir, NULL) && !dir.failed &&
                   snprintf(out, room, "%s/route.jsonl", dir.data) < (int)room;
    weft__strbuf_free(&dir);
    return ok;
}

weft_status weft__server_router_begin(weft_server *s, const weft_server_params *p, weft_error *err)
{
    const char *names[WEFT__ROUTE_ARMS];
    weft__route_params params;
    if (!p->route || !*p->route) return WEFT_OK;
    weft__route_params_default(&params);
    if (p->route_by && !weft__route_method_of(p->route_by, &params.method))
        return weft_fail(err, WEFT_ARGUMENT, "route_by: must be linucb, thompson, beta, uniform or first, not '%.40s'",
                         p->route_by);
    if (!(p->route_cost >= 0 && p->route_cost <= 1))
        return weft_fail(err, WEFT_ARGUMENT, "route_cost %g: must be from 0 to 1", p->route_cost);
    if (!(s->router = weft__alloc_zero(1, sizeof *s->router)))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a router");
    params.cost_weight = p->route_cost;
    weft_status st = read_arms(s, p, &params, s->router, err);
    params.n_arms = s->router->n_arms;
    s->router->method = params.method;
    s->router->embeds = p->route_embed;
    for (int i = 0; !st && i < params.n_arms; i++) names[i] = s->router->arms[i];
    return st ? st : weft__route_book_new(&params, names, s->learn ? path_of_log : NULL, s, &s->router->book, err);
}

void weft__server_router_end(weft_server *s)
{
    if (!s->router) return;
    weft__route_book_free(&s->router->book);
    weft__free(s->router->arms);
    weft__free(s->router);
    s->router = NULL;
}

/* ---- what is asked ---- */

static void put_content(const weft__json *content, weft__strbuf *out)
{
    const char *text;
    size_t n;
    if (weft__json_string(content, &text, &n)) weft__strbuf_put(out, text, n);
    for (size_t i = 0; i < weft__json_size(content); i++)
        if (weft__json_string(weft__json_get(weft__json_at(content, i), "text"), &text, &n) ||
            weft__json_string(weft__json_at(content, i), &text, &n))
            weft__strbuf_put(out, text, n);
}

/* The last that a user said, or the prompt; what cannot be read is told by its reader later. */
static void put_question(const weft__json *root, weft__strbuf *out)
{
    const weft__json *messages = weft__json_get(root, "messages");
    for (size_t i = weft__json_size(messages); i-- > 0;) {
        const weft__json *m = weft__json_at(messages, i);
        if (!weft__json_is(weft__json_get(m, "role"), "user")) continue;
        put_content(weft__json_get(m, "content"), out);
        return;
    }
    put_content(weft__json_get(root, "prompt"), out);
}

/* What some ways of choosing never look at, and what is chosen for want of others, costs no step of a model. */
static int wants_embedding(const weft__server_router *r, uint32_t allowed)
{
    return r->embeds && (r->method == WEFT__ROUTE_LINUCB || r->method == WEFT__ROUTE_THOMPSON) &&
           allowed & (allowed - 1);
}

static void features_of(weft_server *s, weft__server_question *q, uint32_t allowed, float *x)
{
    int n_embedding = 0;
    float *embedding = NULL;
    weft__api_error error = {0};
    weft__strbuf text = {0};
    const char *body = weft__http_body(q->r, &q->n_body);
    if (weft__api_body_parse(body, q->n_body, &q->root, &error)) put_question(q->root, &text);
    q->text = text.data;
    q->n_text = text.failed ? 0 : text.len;
    if (wants_embedding(s->router, allowed)) embedding = weft__server_router_embed(s, q, &n_embedding);
    weft__route_features(text.data, q->n_text, embedding, (size_t)n_embedding, x);
    weft__free(embedding);
    weft__strbuf_free(&text);
    weft__json_free(&q->root);
}

/* ---- choosing ---- */

static uint32_t allowed_of(weft_server *s, const weft__server_caller *who)
{
    uint32_t allowed = 0;
    weft__api_error error;
    for (int i = 0; i < s->router->n_arms; i++)
        if (weft__server_models_which(s, who, s->router->arms[i], &error)) allowed |= 1u << i;
    return allowed;
}

/* Whose router it is: the key's or, without keys, that of the request's `user`. */
static void tenant_of_request(const weft_server *s, const weft__server_caller *who, const char *user, char tenant[64])
{
    weft_error err = {0};
    snprintf(tenant, 64, "%s", who->tenant);
    if (!s->wants_keys && *user && weft__server_tenant_of_user(user, tenant, &err)) *tenant = 0;
}

int weft__server_router_choose(weft_server *s, weft__http_request *r, const weft__api_meant *meant,
                               const weft__api_table *form, weft__server_caller *who, weft__api_error *error)
{
    char tenant[64], header[WEFT__ROUTE_NAME + 40];
    float x[WEFT__ROUTE_DIMS];
    weft__route_choice c = {0};
    const uint32_t allowed = allowed_of(s, who);
    if (!allowed) {
        weft__server_models_absent(s, who, WEFT__SERVER_AUTO, error);
        return 0;
    }
    c.arm = __builtin_ctz(allowed);
    snprintf(who->routed.id, sizeof who->routed.id, "%016llx%08llx", (unsigned long long)weft__rng_entropy(),
             (unsigned long long)(weft__rng_entropy() & 0xffffffff));
    if (form && meant->keeps_out) {
        snprintf(header, sizeof header, "%s;p=1", s->router->arms[c.arm]);
        weft__http_add_header(r, "X-Weft-Routed", header);
    } else if (form) {
        tenant_of_request(s, who, meant->user, tenant);
        weft__server_question q = {.r = r, .who = who, .tenant = tenant, .form = form};
        features_of(s, &q, allowed, x);
        weft__route_book_choose(s->router->book, tenant, who->routed.id, x, allowed, &c);
        snprintf(header, sizeof header, "%s;p=%.6g", s->router->arms[c.arm], c.propensity);
        weft__http_add_header(r, "X-Weft-Routed", header);
    }
    snprintf(who->routed.model, sizeof who->routed.model, "%s", s->router->arms[c.arm]);
    return 1;
}

int weft__server_router_reward(weft_server *s, const char *tenant, const char *id, double reward)
{
    const char *dash = strrchr(id, '-'); /* "chatcmpl-": what stands behind it is the router's */
    return s->router && weft__route_book_reward(s->router->book, tenant, dash ? dash + 1 : id, reward);
}

void weft__server_router_forget(weft_server *s, const char *tenant)
{
    if (s->router) weft__route_book_forget(s->router->book, tenant);
}

/* ---- what is told of it ---- */

void weft__server_router_put_model(const weft_server *s, weft__strbuf *out)
{
    if (s->router) weft__api_put_preset_model(out, WEFT__SERVER_AUTO, s->router->arms[0], s->began);
}

void weft__server_router_put_metrics(const weft_server *s, weft__strbuf *out)
{
    weft__route_book_stats stats;
    if (!s->router) return;
    weft__route_book_stats_get(s->router->book, &stats);
    weft__strbuf_puts(out, "# HELP weft_routed_total Requests for the model 'auto' that it gave to each of its arms.\n"
                           "# TYPE weft_routed_total counter\n");
    for (int i = 0; i < s->router->n_arms; i++) {
        weft__strbuf_puts(out, "weft_routed_total{arm=");
        weft__json_write_string(out, s->router->arms[i], strlen(s->router->arms[i]));
        weft__strbuf_printf(out, "} %llu\n", (unsigned long long)stats.of_arm[i]);
    }
    weft__strbuf_printf(out,
                        "# HELP weft_route_info How it chooses.\n# TYPE weft_route_info gauge\n"
                        "weft_route_info{by=\"%s\"} 1\n",
                        weft__route_method_name(s->router->method));
    weft__strbuf_printf(out,
                        "# HELP weft_route_rewards_total Answers of it that were rewarded, and learned from.\n"
                        "# TYPE weft_route_rewards_total counter\nweft_route_rewards_total %llu\n"
                        "# HELP weft_route_lines_lost_total Lines of its logs that the disk did not take.\n"
                        "# TYPE weft_route_lines_lost_total counter\nweft_route_lines_lost_total %llu\n",
                        (unsigned long long)stats.rewards, (unsigned long long)stats.lost_lines);
    if (s->router->embeds)
        weft__strbuf_printf(out,
                            "# HELP weft_route_embeddings_total Requests that it saw by an embedding, and by words "
                            "alone, as there was no room for one.\n"
                            "# TYPE weft_route_embeddings_total counter\n"
                            "weft_route_embeddings_total{by=\"embedding\"} %llu\n"
                            "weft_route_embeddings_total{by=\"words\"} %llu\n",
                            (unsigned long long)s->router->n_embedded, (unsigned long long)s->router->n_unembedded);
}
