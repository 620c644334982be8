// SPDX-License-Identifier: Apache-2.0
/* tls.h: TLS of accepted connections, by GnuTLS. A session belongs to the thread that moves its connection's bytes. */
#ifndef WEFT_HTTP_TLS_H
#define WEFT_HTTP_TLS_H

#include <stddef.h>
#include <sys/types.h>

#include "weft/error.h"

typedef struct weft__http_tls weft__http_tls;                 /* certificate and key: shared, immutable */
typedef struct weft__http_tls_session weft__http_tls_session; /* of one connection */

/* PEM texts. Fails with WEFT_IO where they are none or do not belong together, WEFT_NO_MEMORY. */
weft_status weft__http_tls_open(const char *cert, const char *key, weft__http_tls **out, weft_error *err);
void weft__http_tls_close(weft__http_tls **tls);

/* Of a socket that does not block, which stays the caller's; NULL: no memory. */
weft__http_tls_session *weft__http_tls_accept(weft__http_tls *tls, int fd);
/* As recv and send: -1 with errno EAGAIN where it must wait for the socket; the handshake is part of the first calls. A
 * send that had to wait is repeated with the same bytes. */
ssize_t weft__http_tls_recv(weft__http_tls_session *s, void *bytes, size_t n);
ssize_t weft__http_tls_send(weft__http_tls_session *s, const void *bytes, size_t n);
/* Says that nothing more comes, if that goes at once. */
void weft__http_tls_end(weft__http_tls_session *s);
void weft__http_tls_free(weft__http_tls_session *s);

#endif
