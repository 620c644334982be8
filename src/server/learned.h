// SPDX-License-Identifier: Apache-2.0
/* learned.h: versions of adapters that the server learns by itself from what it keeps (learn/teach_store.h), each for
 * one tenant: over the model that weft_server_new was given, where learn_share says so. Elsewhere there are none.
 *
 * The engine knows a version by the name that its tenant has for it, "learned-3@7", from its publishing on, or after a
 * start from its first use on; an earlier one until nobody uses it, and again when it is asked for. Nobody else may
 * have an adapter with an '@' in its name. Any thread. */
#ifndef WEFT_SERVER_LEARNED_H
#define WEFT_SERVER_LEARNED_H

#include "learn/version.h"
#include "server/server.h"

/* The store and the models are there. WEFT_ARGUMENT: learn_share is none, there is no folder to learn from or no model
 * to learn over; WEFT_UNSUPPORTED: that cannot be learned over; and as weft__teach_store_new does. */
weft_status weft__server_learned_begin(weft_server *s, const weft_server_params *p, weft_error *err);
/* After the last request was released; the store and the engine are there still. Gives up what is being learned. */
void weft__server_learned_end(weft_server *s);

/* Is it the name of a version, whosever? */
int weft__server_learned_is_name(const char *name);
/* "learned-3@7": may that tenant use it? -1: it is no version's name. */
int weft__server_learned_may(const weft__server_model *m, const char *tenant, const char *name);
/* What a tenant means by "MODEL@7" or "learned-3@7": 1, and the version's name in out, "" for the base alone
 * ("MODEL@0", "learned-3@0"); 0: there is no such version for it; -1: the name says nothing of versions. */
int weft__server_learned_named(const weft__server_model *m, const char *tenant, const char *model,
                               char out[WEFT__API_ADAPTER_NAME]);
/* Is it what a tenant's versions are called, "learned-3"? The name alone stands for the current one. */
int weft__server_learned_is_lineage(const weft__server_model *m, const char *tenant, const char *name);
/* Is it the base alone, "MODEL@0" or "learned-3@0", whosever that is? */
int weft__server_learned_is_base(const weft__server_model *m, const char *model);
/* 1: a request of the tenant's that names no adapter is answered by this version; 0: by the base. */
int weft__server_learned_meant(const weft__server_model *m, const weft__api_params *params, const char *tenant,
                               char out[WEFT__API_ADAPTER_NAME]);
/* The model of a name that says something of versions, whoever may use it; NULL: it says nothing. */
weft__server_model *weft__server_learned_model(weft_server *s, const char *name);
/* The model of what lineages are called, "learned-3", whosever; NULL: it is no such name. */
weft__server_model *weft__server_learned_model_of_lineage(weft_server *s, const char *name);
/* May the caller name a version so: "MODEL@7", by a name of the model's that it may use? */
int weft__server_learned_may_name(const weft__server_model *m, const weft__server_caller *who, const char *model);
/* Of a name that says something of versions, which its tenant has: " of its versions there are 'MODEL@7' and ..." into
 * out, the newest first; else "". */
void weft__server_learned_name_versions(const weft__server_model *m, const char *tenant, const char *model, char *out,
                                        size_t room);
/* All that is kept and was learned of the tenant goes; where nothing is learned: weft__learn_forget. */
weft_status weft__server_learned_forget(weft_server *s, const char *tenant, weft__learn_totals *had, weft_error *err);

/* The current version of a tenant as a model, with a comma in front; nothing where there is none. name: of what was
 * asked for, "MODEL@7" or "learned-3" (the base, where that is current), or NULL. */
void weft__server_learned_put_model(const weft__server_model *m, const char *tenant, const char *name,
                                    weft__strbuf *out);
void weft__server_learned_put_metrics(const weft_server *s, weft__strbuf *out);

/* ---- learned_given.c: which versions the engine has ---- */
weft_status weft__server_given_begin(weft_server *s, weft_error *err);
void weft__server_given_end(weft_server *s);
/* Before it is published: it is ready, so that the first request waits for nothing (weft__teach_hooks.publish). */
weft_status weft__server_learned_make_ready(void *server, const char *tenant, const char *name, const char *path,
                                            weft_error *err);
/* After a row: it is what is current now; earlier ones that nobody uses leave the engine. */
void weft__server_learned_follow(weft_server *s, const weft__version_row *row);
/* Until weft__server_learned_leave the engine has the version, which may wait for the disk, and other earlier ones of
 * the tenant's leave for it. ready (may be NULL): nothing is waited for, and where *ready is 0 nothing is wanted.
 * WEFT_NOT_FOUND: it was forgotten; then, too. */
weft_status weft__server_learned_want(weft__server_model *m, const char *tenant, const char *name, int *ready,
                                      weft_error *err);
void weft__server_learned_leave(weft__server_model *m, const char *name);
/* All of the tenant's; requests that run keep theirs. */
void weft__server_learned_unload(weft_server *s, const char *tenant);

/* ---- learned_api.c: /v1/learn, /v1/learn/rollback, /v1/learn/consolidate ---- */
void weft__server_learned_show(weft_server *s, weft__http_request *r, const weft__server_caller *who);
void weft__server_learned_roll_back(weft_server *s, weft__http_request *r, const weft__server_caller *who);
void weft__server_learned_consolidate(weft_server *s, weft__http_request *r, const weft__server_caller *who);

#endif
