// SPDX-License-Identifier: Apache-2.0
/* tls.c: see tls.h. */
#include "http/tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"

enum { ROUNDS = 64 /* of what is no data, in one call */ };

struct weft__http_tls {
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priority;
};

struct weft__http_tls_session {
    gnutls_session_t session;
    int fd;
    int is_established;
    int is_dry; /* the socket had nothing more, or took nothing more, when it was asked last */
};

weft_status weft__http_tls_open(const char *cert, const char *key, weft__http_tls **out, weft_error *err)
{
    const gnutls_datum_t c = {(unsigned char *)cert, (unsigned)strlen(cert)},
                         k = {(unsigned char *)key, (unsigned)strlen(key)};
    weft__http_tls *t = weft__alloc_zero(1, sizeof *t);
    *out = NULL;
    if (!t) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    int rc = gnutls_certificate_allocate_credentials(&t->credentials);
    if (!rc) rc = gnutls_certificate_set_x509_key_mem(t->credentials, &c, &k, GNUTLS_X509_FMT_PEM);
    if (rc >= 0) rc = gnutls_priority_init(&t->priority, NULL, NULL);
    *out = t;
    if (!rc) return WEFT_OK;
    weft__http_tls_close(out);
    return weft_fail(err, WEFT_IO, "TLS did not start: %s (are certificate and key PEM, and do they belong together?)",
                     gnutls_strerror(rc));
}

void weft__http_tls_close(weft__http_tls **tls)
{
    weft__http_tls *t = *tls;
    *tls = NULL;
    if (!t) return;
    if (t->priority) gnutls_priority_deinit(t->priority);
    if (t->credentials) gnutls_certificate_free_credentials(t->credentials);
    weft__free(t);
}

static ssize_t tls_pull(gnutls_transport_ptr_t session, void *bytes, size_t n)
{
    weft__http_tls_session *s = session;
    ssize_t got = recv(s->fd, bytes, n, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) s->is_dry = 1;
    return got;
}

static ssize_t tls_push(gnutls_transport_ptr_t session, const giovec_t *parts, int n)
{
    weft__http_tls_session *s = session;
    const struct msghdr all = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)n};
    ssize_t sent = sendmsg(s->fd, &all, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) s->is_dry = 1;
    return sent;
}

weft__http_tls_session *weft__http_tls_accept(weft__http_tls *tls, int fd)
{
    weft__http_tls_session *s = weft__alloc_zero(1, sizeof *s);
    if (!s) return NULL;
    if (gnutls_init(&s->session, GNUTLS_SERVER | GNUTLS_NONBLOCK)) goto fail;
    if (gnutls_priority_set(s->session, tls->priority)) goto fail_session;
    if (gnutls_credentials_set(s->session, GNUTLS_CRD_CERTIFICATE, tls->credentials)) goto fail_session;
    s->fd = fd;
    gnutls_transport_set_ptr(s->session, s);
    gnutls_transport_set_pull_function(s->session, tls_pull);
    gnutls_transport_set_vec_push_function(s->session, tls_push);
    return s;
fail_session:
    gnutls_deinit(s->session);
fail:
    weft__free(s);
    return NULL;
}

/* GnuTLS asks to be called again behind each message that is no data (new keys, above all), whatever the socket still
 * has. A loop that waits for an edge of the socket must not wait then: what came along with the message has shown its
 * edge. */
static int goes_on(const weft__http_tls_session *s, ssize_t rc, int *n)
{
    return (rc == GNUTLS_E_INTERRUPTED || (rc == GNUTLS_E_AGAIN && !s->is_dry)) && ++*n < ROUNDS;
}

static int shake_hands(weft__http_tls_session *s)
{
    int rc, n = 0, warned;
    if (s->is_established) return 0;
    do {
        s->is_dry = 0;
        rc = gnutls_handshake(s->session);
        warned = rc < 0 && rc != GNUTLS_E_AGAIN && rc != GNUTLS_E_INTERRUPTED && !gnutls_error_is_fatal(rc);
    } while (goes_on(s, rc, &n) || (warned && ++n < ROUNDS));
    s->is_established = !rc;
    return rc;
}

/* What GnuTLS returns, as a call of the system does. */
static ssize_t result(const weft__http_tls_session *s, ssize_t rc)
{
    if (rc >= 0) return rc;
    errno = rc == GNUTLS_E_AGAIN && s->is_dry ? EAGAIN : EPROTO;
    return -1;
}

ssize_t weft__http_tls_recv(weft__http_tls_session *s, void *bytes, size_t n)
{
    int rounds = 0;
    ssize_t rc = shake_hands(s);
    if (rc) return result(s, rc);
    do {
        s->is_dry = 0;
        rc = gnutls_record_recv(s->session, bytes, n);
    } while (goes_on(s, rc, &rounds));
    if (rc == GNUTLS_E_REHANDSHAKE || rc == GNUTLS_E_WARNING_ALERT_RECEIVED)
        rc = GNUTLS_E_DECRYPTION_FAILED; /* neither is wanted */
    return rc == GNUTLS_E_PREMATURE_TERMINATION ? 0 : result(s, rc);
}

ssize_t weft__http_tls_send(weft__http_tls_session *s, const void *bytes, size_t n)
{
    int rounds = 0;
    ssize_t rc = shake_hands(s);
    if (rc) return result(s, rc);
    do {
        s->is_dry = 0;
        rc = gnutls_record_send(s->session, bytes, n);
    } while (goes_on(s, rc, &rounds));
    return result(s, rc);
}

void weft__http_tls_end(weft__http_tls_session *s)
{
    if (s->is_established) gnutls_bye(s->session, GNUTLS_SHUT_WR);
}

void weft__http_tls_free(weft__http_tls_session *s)
{
    if (!s) return;
    gnutls_deinit(s->session);
    weft__free(s);
}
