// SPDX-License-Identifier: Apache-2.0
/* civetweb.c: civetweb as bench/http_candidates/measure asks it: whatever it hands over is answered with 200 once the
 * body is read, and with 400 where reading it fails. Prints its port; ends by itself. */
#include <civetweb.h>
#include <stdio.h>
#include <unistd.h>

static int handle(struct mg_connection *c, void *arg)
{
    (void)arg;
    char part[4096];
    int got;
    while ((got = mg_read(c, part, sizeof part)) > 0) continue;
    if (got < 0) {
        mg_send_http_error(c, 400, "%s", "the body cannot be read");
        return 400;
    }
    mg_printf(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    return 200;
}

int main(void)
{
    const char *options[] = {"listening_ports",
                             "127.0.0.1:0",
                             "num_threads",
                             "8",
                             "enable_keep_alive",
                             "yes",
                             "keep_alive_timeout_ms",
                             "5000",
                             "request_timeout_ms",
                             "5000",
                             NULL};
    struct mg_callbacks none = {0};
    struct mg_server_port port = {0};
    mg_init_library(0);
    struct mg_context *ctx = mg_start(&none, NULL, options);
    if (!ctx || mg_get_server_ports(ctx, 1, &port) != 1) return 1;
    mg_set_request_handler(ctx, "/", handle, NULL);
    printf("%d\n", port.port);
    fflush(stdout);
    sleep(60);
    return 0;
}
