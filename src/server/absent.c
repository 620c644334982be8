// SPDX-License-Identifier: Apache-2.0
/* absent.c: the functions of weft/server.h in a library that was configured with -DWEFT_SERVER=OFF: there are no
 * servers, and weft_server_new says why. Any thread. */
#include "base/params.h"
#include "weft/server.h"

void weft_server_params_init(weft_server_params *params, uint32_t size)
{
    const weft_server_params own = {.size = sizeof own, .learn_share = -1};
    weft__params_init(WEFT__PARAMS_TYPE(weft_server_params), params, size, &own);
}

void(weft_server_params_default)(weft_server_params *params)
{
    weft_server_params_init(params, sizeof *params);
}

weft_status weft_server_new(weft_model *model, weft_engine *engine, const weft_server_params *params, weft_server **out,
                            weft_error *err)
{
    (void)model;
    (void)engine;
    (void)params;
    *out = NULL;
    return weft_fail(err, WEFT_UNSUPPORTED,
                     "this build has no server (-DWEFT_SERVER=OFF): build with -DWEFT_SERVER=ON");
}

/* No program has a server to give the others. */

const char *weft_server_address(const weft_server *server)
{
    (void)server;
    return "";
}

int32_t weft_server_run(weft_server *server)
{
    (void)server;
    return 0;
}

void weft_server_stop(weft_server *server)
{
    (void)server;
}

void weft_server_reopen_log(weft_server *server)
{
    (void)server;
}

void weft_server_reload(weft_server *server)
{
    (void)server;
}

void weft_server_free(weft_server **server)
{
    if (server) *server = NULL;
}
