// SPDX-License-Identifier: Apache-2.0
/* memories.h: /v1/memories, and the memories that a chat asks for (memories.c; src/memory). Nothing of it where the
 * server was not told to keep them: s->memories is NULL then. Any thread. */
#ifndef WEFT_SERVER_MEMORIES_H
#define WEFT_SERVER_MEMORIES_H

#include "memory/memory.h"
#include "server/server.h"

/* Over the store, which outlives them, where p says so. WEFT_ARGUMENT: there is none, or embeddings are wanted of
 * several models; WEFT_NO_MEMORY. */
weft_status weft__server_memories_begin(weft_server *s, const weft_server_params *p, weft_error *err);
/* After the last request was released, before the store is closed. */
void weft__server_memories_end(weft_server *s);
/* What was said of an answer of a tenant's, by the store's number. What cannot be kept is lost, and the log says so. */
void weft__server_memories_learn(weft_server *s, const char *tenant, int64_t event);
/* The store has forgotten the tenant. */
void weft__server_memories_forget(weft_server *s, const char *tenant);

/* Before the block: what it is found by is embedded, where the server does that, as far as it lacks vectors. Waits for
 * the engine; where that cannot be, memories are found by words. */
void weft__server_memories_embed(weft__server_model *m, weft__http_request *r, const weft__server_caller *who,
                                 const char *tenant, const weft__api_params *params);
/* Appends the block for a chat that asks for memories: what is known of the first that its user says, so that the block
 * stays as it is while the conversation goes on; of at most room bytes. told: which. 0 with the
 * error filled: there are none here. */
enum { WEFT__SERVER_MEMORIES_ROOM = 4096 };
int weft__server_memories_block(weft_server *s, const char *tenant, const weft__api_params *params, size_t room,
                                weft__strbuf *out, weft__memory_told *told, weft__api_error *error);
void weft__server_memories_put_metrics(const weft_server *s, weft__strbuf *out);

/* /v1/memories: lists those of the caller's tenant, adds one or, with its id, corrects it; DELETE /v1/memories/ID. */
void weft__server_memories_endpoint(weft_server *s, weft__http_request *r, const weft__server_caller *who);
void weft__server_memories_one(weft_server *s, weft__http_request *r, const weft__server_caller *who);

#endif
