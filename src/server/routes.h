// SPDX-License-Identifier: Apache-2.0
/* routes.h: which function answers which path (routes.c), and what is answered with files of the build. Any thread. */
#ifndef WEFT_SERVER_ROUTES_H
#define WEFT_SERVER_ROUTES_H

#include "server/server.h"

/* ---- page.c ---- */
/* / and /page/{file} */
void weft__server_page(weft_server *s, weft__http_request *r, const weft__server_caller *who);

/* ---- routes (routes.c) ---- */
void weft__server_route(void *server, weft__http_request *r);
/* A chat's request, of a model that is held meanwhile. */
void weft__server_routes_chat(weft__server_model *m, weft__http_request *r, const weft__server_caller *who);
/* 0: the sender of this head will be refused for want of a key, whatever the body. Any thread. */
int weft__server_admit(void *server, const weft__http_request *r, char client[WEFT__HTTP_CLIENT]);
/* docs/openapi.json, as it was when this was built (cmake/embed.cmake). */
extern const char weft__server_openapi[];
extern const size_t weft__server_openapi_n;
/* For counters: an index in [0, WEFT__SERVER_ROUTES_MAX), and the path as the table spells it ("/slots/{id_slot}"); the
 * last is "other", and NULL stands behind it. */
int weft__server_route_index(const char *path);
const char *weft__server_route_at(int index);

#endif
