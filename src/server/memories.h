// SPDX-License-Identifier: Apache-2.0
/* memories.h: /v1/memories, and the memories that a chat asks for (memories.c; src/memory). Nothing of it where the
 * server keeps nothing to learn from: s->memories is NULL then. Any thread. */
#ifndef WEFT_SERVER_MEMORIES_H
#define WEFT_SERVER_MEMORIES_H

#include "memory/memory.h"
#include "server/server.h"

/* Over the store, which outlives them. WEFT_NO_MEMORY. */
weft_status weft__server_memories_begin(weft_server *s, weft__learn_store *store, weft_error *err);
/* After the last request was released, before the store is closed. */
void weft__server_memories_end(weft_server *s);
/* What was said of an answer of a tenant's, by the store's number. What cannot be kept is lost, and the log says so. */
void weft__server_memories_learn(weft_server *s, const char *tenant, int64_t event);
/* The store has forgotten the tenant. */
void weft__server_memories_forget(weft_server *s, const char *tenant);

/* The messages of a chat that asks for memories, with the block in front of the first that a user says, of which it
 * knows something; NULL: none. To be freed. 0 with the error filled: the request asks for what is not there. */
int weft__server_memories_join(weft_server *s, const char *tenant, const weft__api_params *params, weft__json **out,
                               weft__api_error *error);

/* /v1/memories: lists those of the caller's tenant, adds one or, with its id, corrects it; DELETE /v1/memories/ID. */
void weft__server_memories_endpoint(weft_server *s, weft__http_request *r, const weft__server_caller *who);
void weft__server_memories_one(weft_server *s, weft__http_request *r, const weft__server_caller *who);

#endif
