// SPDX-License-Identifier: Apache-2.0
/* models.h: several models in one server: which one a request means, how they come and go, and how much memory they
 * take (server.h has what each of them is). */
#ifndef WEFT_SERVER_MODELS_H
#define WEFT_SERVER_MODELS_H

#include "server/server.h"

/* ---- one of them (served.c) ---- */

/* name NULL: it gets one when it is opened. The server outlives it. */
weft_status weft__server_model_new(weft_server *s, const char *name, const char *path, const char *const *aliases,
                                   weft__server_model **out, weft_error *err);
/* Learns what requests need to know of it: its tokenizer, its template, the engine's sizes; has_keys:
 * what a slot holds is its key's. The model and the engine outlive what this makes, which _shut ends. */
weft_status weft__server_model_open(weft__server_model *m, weft_model *model, weft_engine *engine, int has_keys,
                                    weft_error *err);
void weft__server_model_shut(weft__server_model *m);
void weft__server_model_free(weft__server_model **m);
/* Gives the engine the adapters that the settings name; the message names the one that is wrong. */
weft_status weft__server_adapters_add(weft__server_model *m, weft_error *err);
/* Adapters go with their model, and come again with it: what was there is kept by name and file, and the scales that
 * were set for all. Of a model that none uses. */
weft_status weft__server_adapters_keep(weft__server_model *m, weft_error *err);
weft_status weft__server_adapters_restore(weft__server_model *m, weft_error *err);

/* ---- which one a request means, and requests that wait for one (models.c) ---- */

/* Which endpoint answers, when the model is there. */
typedef void weft__server_of_model(weft__server_model *m, weft__http_request *r, const weft__server_caller *who);

/* Calls `answer` with the model that the request means: now, or when it is there, or refuses the request. waits: it may
 * be loaded for it; else what is not loaded is refused. */
void weft__server_models_answer(weft_server *s, weft__http_request *r, const weft__server_caller *who, int waits,
                                weft__server_of_model *answer);
/* The model of that name, not held; NULL: there is none. */
weft__server_model *weft__server_models_find(weft_server *s, const char *name);
/* The one that a request of this caller means by a name, an adapter's too, "": by none; NULL: none, and the error is
 * set. */
weft__server_model *weft__server_models_which(weft_server *s, const weft__server_caller *who, const char *name,
                                              weft__api_error *error);
/* That there is none of that name, and which ones there are for this caller. */
void weft__server_models_absent(weft_server *s, const weft__server_caller *who, const char *name,
                                weft__api_error *error);
/* 1: one of its aliases is "*". */
int weft__server_takes_any_name(const weft__server_model *m);
/* What its engine has counted, those that have ended too. With the lock. */
void weft__server_models_stats(const weft__server_model *m, weft_engine_stats *out);
/* After a request said how long it is to stay: ms, INT64_MAX: for ever; -1: as the server has it. */
void weft__server_model_keep(weft__server_model *m, int64_t ms);
/* With the lock, for loader.c: those that wait are sent on, or refused with the error. */
void weft__server_models_send(weft_server *s, weft__server_model *m);
void weft__server_models_refuse(weft_server *s, weft__server_model *m, const weft_error *why);
/* Refuses those whose deadline has passed, and lets go of those whose client left; returns when the next deadline is,
 * ns; 0: there is none. With the lock. */
uint64_t weft__server_models_expire(weft_server *s);
/* The thread `sender`. */
void *weft__server_models_sender(void *server);
/* /v1/models, /v1/models/NAME, /models/load, /models/unload (models_api.c) */
void weft__server_models_list(weft_server *s, weft__http_request *r, const weft__server_caller *who);
void weft__server_models_show(weft_server *s, weft__http_request *r, const weft__server_caller *who);
void weft__server_models_load(weft_server *s, weft__http_request *r, const weft__server_caller *who);
void weft__server_models_unload(weft_server *s, weft__http_request *r, const weft__server_caller *who);

/* ---- loading and unloading them (loader.c) ---- */
/* The threads; the caller's model is there already. */
weft_status weft__server_loader_begin(weft_server *s, weft_error *err);
/* Refuses what waits, ends the threads, and unloads what was loaded. */
void weft__server_loader_stop(weft_server *s);
void weft__server_loader_end(weft_server *s);
/* With the lock: it is to be loaded, one that is about to go as soon as it has gone: 1; 0: it is there, or on its way
 * already. */
int weft__server_loader_want(weft_server *s, weft__server_model *m);
/* With the lock: it is to go; its loading is to be given up. */
void weft__server_loader_close(weft_server *s, weft__server_model *m);
void weft__server_loader_cancel(weft_server *s, weft__server_model *m);
/* ---- how much memory they take (room.c); with the lock ---- */
/* Bytes that count against the limit: all models', but for one (NULL: none). */
uint64_t weft__server_room_used(weft_server *s, const weft__server_model *but);
/* Makes room for `bytes` of m, besides its pages: by pages that others do not use, by unloading those that are not
 * used, by waiting for those that are. Gives the lock up meanwhile. */
weft_status weft__server_room_make(weft_server *s, weft__server_model *m, uint64_t bytes, uint64_t pages,
                                   weft_error *err);
/* Gives engines more pages where they want them and there is room, and lets what is not used go where there is little.
 * Now and then. */
void weft__server_room_tend(weft_server *s, uint64_t now_ns);
/* Ends a model that none uses. Gives the lock up meanwhile. */
void weft__server_loader_unload(weft_server *s, weft__server_model *m);

#endif
