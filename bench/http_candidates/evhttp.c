// SPDX-License-Identifier: Apache-2.0
/* evhttp.c: libevent's evhttp as bench/http_candidates/measure asks it: whatever it hands over is answered with 200.
 * It has no limit on heads of its own: it gets ours. Prints its port; ends by itself. */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

static void handle(struct evhttp_request *r, void *arg)
{
    (void)arg;
    struct evbuffer *body = evbuffer_new();
    if (!body) return;
    evbuffer_add(body, "ok", 2);
    evhttp_send_reply(r, 200, "OK", body);
    evbuffer_free(body);
}

int main(void)
{
    struct sockaddr_in a;
    socklen_t n = sizeof a;
    struct event_base *base = event_base_new();
    struct evhttp *http = base ? evhttp_new(base) : NULL;
    struct evhttp_bound_socket *bound = http ? evhttp_bind_socket_with_handle(http, "127.0.0.1", 0) : NULL;
    if (!bound || getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&a, &n)) return 1;
    evhttp_set_max_headers_size(http, 32768);
    evhttp_set_max_body_size(http, 1 << 20);
    evhttp_set_gencb(http, handle, NULL);
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    alarm(60);
    return event_base_dispatch(base) != 0;
}
