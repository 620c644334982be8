// SPDX-License-Identifier: Apache-2.0
/* router.h: requests whose model is WEFT__SERVER_AUTO: which model, adapter or preset (an arm of src/route) answers,
 * by tenant (router.c). There is no such name where the server has no arms. Any thread. */
#ifndef WEFT_SERVER_ROUTER_H
#define WEFT_SERVER_ROUTER_H

#include "route/book.h"
#include "server/server.h"

#define WEFT__SERVER_AUTO "auto"

typedef struct weft__server_router {
    char (*arms)[WEFT__ROUTE_NAME]; /* [n_arms] */
    int n_arms;
    weft__route_method method;
    int embeds; /* requests are seen by their embedding, too */
    _Atomic uint64_t n_embedded, n_unembedded;
    weft__route_book *book;
} weft__server_router;

/* From route, route_by, route_cost and route_embed of the parameters; none: s->router is NULL. The models and the rules
 * are there. WEFT_ARGUMENT: an arm is nothing that is served, or something is called "auto"; WEFT_NO_MEMORY. */
weft_status weft__server_router_begin(weft_server *s, const weft_server_params *p, weft_error *err);
/* After the last request was released. */
void weft__server_router_end(weft_server *s);
/* Which arm answers a request that names the router, into who->routed. form: of its body; NULL: of endpoints whose
 * answers nobody rewards: the first that the caller may use, as of a request that is not to be kept, of which nothing
 * is known then. 0 with the error filled: the caller may use none. */
int weft__server_router_choose(weft_server *s, weft__http_request *r, const weft__api_meant *meant,
                               const weft__api_table *form, weft__server_caller *who, weft__api_error *error);
/* What a request asks. */
typedef struct weft__server_question {
    weft__http_request *r;
    const weft__server_caller *who;
    const char *tenant, *text; /* [n_text] */
    size_t n_text, n_body;
    const weft__api_table *form;
    weft__json *root; /* the body; may be taken */
} weft__server_question;
/* The embedding of its text, [*n], by the model of the first arm without adapters: of its first tokens, as many as
 * aside.c says, which count to the caller's limits and use as those of prompts do. NULL: there is none, as that
 * model is not loaded, or has no room for it now, or as the body will be refused, or as its limits have no room for it
 * (limits.h), or as too many workers wait (weft__server_disk_enter); the router goes by words then. To be freed. */
float *weft__server_router_embed(weft_server *s, weft__server_question *q, int *n);
/* What the answer of that id was worth to its tenant, 0 to 1; 1: the router learned it. Without a router, or of an
 * answer that it did not choose: 0, and nothing. */
int weft__server_router_reward(weft_server *s, const char *tenant, const char *id, double reward);
/* The store has forgotten the tenant, with its log. */
void weft__server_router_forget(weft_server *s, const char *tenant);
/* For /v1/models: the router as a model, with a comma in front. For /metrics: its choices and rewards. */
void weft__server_router_put_model(const weft_server *s, weft__strbuf *out);
void weft__server_router_put_metrics(const weft_server *s, weft__strbuf *out);

#endif
