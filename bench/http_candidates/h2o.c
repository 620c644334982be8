// SPDX-License-Identifier: Apache-2.0
/* h2o.c: libh2o (with its own loop of events) as bench/http_candidates/measure asks it: whatever it hands over is
 * answered with 200. Prints its port; ends by itself. */
#define H2O_USE_LIBUV 0
#include <arpa/inet.h>
#include <h2o.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

static h2o_globalconf_t config;
static h2o_context_t context;
static h2o_accept_ctx_t accept_ctx;

static int handle(h2o_handler_t *self, h2o_req_t *r)
{
    (void)self;
    r->res.status = 200;
    r->res.reason = "OK";
    h2o_send_inline(r, "ok", 2);
    return 0;
}

static void on_accept(h2o_socket_t *listener, const char *error)
{
    h2o_socket_t *s = error ? NULL : h2o_evloop_socket_accept(listener);
    if (s) h2o_accept(&accept_ctx, s);
}

int main(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) || listen(fd, 64) || getsockname(fd, (struct sockaddr *)&a, &n))
        return 1;
    h2o_config_init(&config);
    h2o_hostconf_t *host = h2o_config_register_host(&config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    h2o_handler_t *h = h2o_create_handler(h2o_config_register_path(host, "/", 0), sizeof *h);
    h->on_req = handle;
    h2o_context_init(&context, h2o_evloop_create(), &config);
    accept_ctx.ctx = &context;
    accept_ctx.hosts = config.hosts;
    h2o_socket_t *listener = h2o_evloop_socket_create(context.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    if (!listener) return 1;
    h2o_socket_read_start(listener, on_accept);
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    alarm(60);
    while (!h2o_evloop_run(context.loop, INT32_MAX)) continue;
    return 0;
}
