// SPDX-License-Identifier: Apache-2.0
/* microhttpd.c: libmicrohttpd as bench/http_candidates/measure asks it: whatever it hands over is answered with 200, as
 * soon as the body is there. Prints its port; ends by itself. */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

static enum MHD_Result handle(void *arg, struct MHD_Connection *c, const char *url, const char *method,
                              const char *version, const char *body, size_t *n_body, void **state)
{
    (void)arg, (void)url, (void)method, (void)version, (void)body;
    static int seen;
    if (!*state || *n_body) { /* the head alone, or a part of the body */
        *state = &seen;
        *n_body = 0;
        return MHD_YES;
    }
    struct MHD_Response *r = MHD_create_response_from_buffer(2, "ok", MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result = MHD_queue_response(c, 200, r);
    MHD_destroy_response(r);
    return result;
}

int main(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *d = MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, handle, NULL,
                                            MHD_OPTION_SOCK_ADDR, &a, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    const union MHD_DaemonInfo *info = d ? MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (!info) return 1;
    printf("%d\n", info->port);
    fflush(stdout);
    sleep(60);
    return 0;
}
