/* refusals.c: refusals in the dialect of the path: ours, and those of the library, which it has for request lines, headers, lengths and
 * chunks that it cannot read, or that are too long for its memory. Runs on the threads of libmicrohttpd.
 *
 * The library (0.9.75) makes a page of HTML of its own for those: no option changes it, and no callback comes before it is sent. But it
 * sends each through MHD_queue_response, and as that is a public function of a shared library, the name is bound when the program is
 * loaded, and a definition of the program's own comes first. So that is defined here, and the library's is found behind it; what we
 * answer ourselves goes straight to that one (weft__http_queue). Where the name is bound otherwise (a library linked with
 * -Bsymbolic) clients get the library's page.
 * Two cases are different, and are answered on the socket where there is no TLS between. Of a Content-Length that is no number, the library
 * would send our head twice: it makes it when it refuses, and again as it goes on with the request. And a first line without a blank in
 * it, or without a method, it closes without a word: what we then have is the end of the connection (weft__http_refuse_line). Who has
 * ended his side by then is told nothing: he looks like one who left. */
#include "http/parts.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

typedef enum MHD_Result queue_fn(struct MHD_Connection *c, unsigned status, struct MHD_Response *response);

static queue_fn *library_queue;

static void find_library(void)
{
    void *found = dlsym(RTLD_NEXT, "MHD_queue_response");
    memcpy(&library_queue, &found, sizeof found);
}

enum MHD_Result weft__http_queue(struct MHD_Connection *c, int status, struct MHD_Response *response)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_library);
    return library_queue(c, (unsigned)status, response);
}

void weft__http_refuse(weft__http_request *r, int status, const char *message)
{
    weft__http *h = r->http;
    weft__http_refusal refusal = {status, message, r->path ? r->path : ""};
    r->n_whole = 0;
    r->whole = h->config.refusal ? h->config.refusal(h->config.arg, &refusal, &r->n_whole) : NULL;
    r->answered = r->ended = 1;
    r->status = status;
    r->content_type = "application/json; charset=utf-8";
    r->closes = 1;
    weft__text_put(&r->extra, "Connection\0close", 17);
    if (status == 429 || status == 503) weft__text_put(&r->extra, "Retry-After\0001", 14);
}

/* What the library means by a status. */
static const char *message_of(int status, const weft__http_request *r)
{
    switch (status) {
    case 413: return "the body is too long";
    case 414: return "the target is too long";
    case 431: return "the headers are too long";
    case 505: return "HTTP/1.0 or HTTP/1.1 is wanted";
    default:
        return !r->path || !*r->path ? "the request line is malformed"
               : r->head_done        ? "the body is malformed"
                                     : "the headers are malformed";
    }
}

/* The refusal as the answer of a request that has none yet; 0: it has one. */
static int take_refusal(weft__http_request *r, int status, const char *message)
{
    pthread_mutex_lock(&r->lock);
    int ours = !r->answered && !r->handed;
    if (ours) {
        weft__http_refuse(r, status, message);
        r->queued = r->refused = 1;
    }
    pthread_mutex_unlock(&r->lock);
    return ours;
}

/* Writes the refusal onto the socket, which takes it at once or not at all. */
static void say(weft__http_request *r, int fd)
{
    weft__text out = {0};
    weft__text_printf(&out, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: %s\r\nX-Content-Type-Options: nosniff\r\n",
                      r->status, MHD_get_reason_phrase_for((unsigned)r->status), r->content_type);
    weft__text_printf(&out, "Cache-Control: no-store\r\nX-Request-Id: %s\r\nContent-Length: %zu\r\n\r\n", r->name, r->n_whole);
    weft__text_put(&out, r->whole, r->n_whole);
    int sent = !out.failed && send(fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)out.len;
    weft__text_free(&out);
    if (sent) r->n_out = r->n_whole;
    else r->queued = 0;
}

/* Is the library about to refuse how long the body is? Its head was complete then, and would be sent twice. */
static int is_length(const weft__http_request *r, struct MHD_Connection *c)
{
    const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
    return length && !r->head_done && (!*length || strspn(length, "0123456789") != strlen(length) || strlen(length) > 18);
}

/* The library's own calls of its own function: its refusals. MHD_NO closes the connection. */
__attribute__((visibility("default"))) enum MHD_Result MHD_queue_response(struct MHD_Connection *c, unsigned status,
                                                                          struct MHD_Response *page)
{
    struct weft__http_connection *k = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    weft__http_request *known = k ? k->request : NULL, *r = known;
    enum MHD_Result result = MHD_NO;
    int mine = status >= 500 && status != 505 ? 400 : (int)status; /* a line between chunks is too long for its memory */
    if (k && !r) r = weft__http_on_uri(k->http, "", c);
    if (!r || !take_refusal(r, mine, message_of(mine, r))) result = weft__http_queue(c, (int)status, page);
    else if (known && k->http->plain && is_length(r, c)) say(r, k->fd);
    else {
        struct MHD_Response *response = weft__http_response(r);
        if (response) result = weft__http_queue(c, mine, response);
        if (response) MHD_destroy_response(response);
    }
    if (r && !known) weft__http_on_complete(k->http, c, (void **)&r, MHD_REQUEST_TERMINATED_COMPLETED_OK); /* nobody else will */
    return result;
}

/* That the library closed it, not its client, our deadlines or the end of the service, is what is left when those are ruled out. */
void weft__http_refuse_line(weft__http *h, struct weft__http_connection *k, struct MHD_Connection *c)
{
    char byte;
    uint64_t idle = (uint64_t)h->config.idle_s * SECOND_NS; /* the library's own deadline, in a clock of its own */
    pthread_mutex_lock(&h->lock);
    int cut = h->stopping || !k->deadline_ns; /* by us */
    pthread_mutex_unlock(&h->lock);
    if (!k->waits_ns || !h->plain || cut) return;
    if (weft__clock_ns() + SECOND_NS / 4 >= k->waits_ns + idle) return;
    ssize_t more = recv(k->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (!more || (more < 0 && errno != EAGAIN)) return; /* it left */
    weft__http_request *r = weft__http_on_uri(h, "", c);
    if (!r) return;
    if (take_refusal(r, 400, "the request line is malformed")) say(r, k->fd);
    weft__http_on_complete(h, c, (void **)&r, MHD_REQUEST_TERMINATED_COMPLETED_OK);
}
