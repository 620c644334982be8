// SPDX-License-Identifier: Apache-2.0
/* http_tls.c: TLS by itself, against a client of GnuTLS on the other end of a pair of sockets. */
#include "unit/fixture.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "http/tls.h"

/* A certificate that signs itself, and its key, as PEM. */
static void make_pem(char cert[4096], char key[4096])
{
    gnutls_x509_privkey_t k;
    gnutls_x509_crt_t c;
    size_t n_cert = 4096, n_key = 4096;
    assert_int_equal(gnutls_x509_privkey_init(&k), 0);
    assert_int_equal(
        gnutls_x509_privkey_generate(k, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0), 0);
    assert_int_equal(gnutls_x509_crt_init(&c), 0);
    assert_int_equal(gnutls_x509_crt_set_version(c, 3), 0);
    assert_int_equal(gnutls_x509_crt_set_serial(c, "\1", 1), 0);
    assert_int_equal(gnutls_x509_crt_set_activation_time(c, time(NULL) - 3600), 0);
    assert_int_equal(gnutls_x509_crt_set_expiration_time(c, time(NULL) + 3600), 0);
    assert_int_equal(gnutls_x509_crt_set_dn_by_oid(c, GNUTLS_OID_X520_COMMON_NAME, 0, "localhost", 9), 0);
    assert_int_equal(gnutls_x509_crt_set_key(c, k), 0);
    assert_int_equal(gnutls_x509_crt_sign2(c, c, k, GNUTLS_DIG_SHA256, 0), 0);
    assert_int_equal(gnutls_x509_crt_export(c, GNUTLS_X509_FMT_PEM, cert, &n_cert), 0);
    assert_int_equal(gnutls_x509_privkey_export(k, GNUTLS_X509_FMT_PEM, key, &n_key), 0);
    gnutls_x509_crt_deinit(c);
    gnutls_x509_privkey_deinit(k);
}

typedef struct world {
    weft__http_tls *tls;
    weft__http_tls_session *server;
    gnutls_certificate_credentials_t credentials;
    gnutls_session_t client;
    int fd[2];
    char held[65536]; /* what the client sends goes out together */
    size_t n_held;
} world;

static ssize_t hold(gnutls_transport_ptr_t to, const void *bytes, size_t n)
{
    world *w = to;
    assert_true(n <= sizeof w->held - w->n_held);
    memcpy(w->held + w->n_held, bytes, n);
    w->n_held += n;
    return (ssize_t)n;
}

static void let_go(world *w)
{
    assert_int_equal(write(w->fd[1], w->held, w->n_held), w->n_held);
    w->n_held = 0;
}

/* Both ends, after their handshake. */
static void begin(world *w)
{
    char cert[4096], key[4096], none[16];
    weft_error err = {0};
    memset(w, 0, sizeof *w);
    make_pem(cert, key);
    assert_int_equal(weft__http_tls_open(cert, key, &w->tls, &err), WEFT_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, w->fd), 0);
    assert_non_null(w->server = weft__http_tls_accept(w->tls, w->fd[0]));
    assert_int_equal(gnutls_certificate_allocate_credentials(&w->credentials), 0);
    assert_int_equal(gnutls_init(&w->client, GNUTLS_CLIENT | GNUTLS_NONBLOCK), 0);
    assert_int_equal(gnutls_priority_set_direct(w->client, "NORMAL:-VERS-ALL:+VERS-TLS1.3", NULL), 0);
    assert_int_equal(gnutls_credentials_set(w->client, GNUTLS_CRD_CERTIFICATE, w->credentials), 0);
    gnutls_transport_set_ptr2(w->client, (gnutls_transport_ptr_t)(intptr_t)w->fd[1], w);
    gnutls_transport_set_push_function(w->client, hold);
    for (int done = 0; !done;) {
        int rc = gnutls_handshake(w->client);
        assert_true(!rc || rc == GNUTLS_E_AGAIN);
        let_go(w);
        done = !rc;
        assert_int_equal(weft__http_tls_recv(w->server, none, sizeof none), -1);
        assert_int_equal(errno, EAGAIN);
    }
}

static void end(world *w)
{
    gnutls_deinit(w->client);
    gnutls_certificate_free_credentials(w->credentials);
    weft__http_tls_free(w->server);
    weft__http_tls_close(&w->tls);
    close(w->fd[0]);
    close(w->fd[1]);
}

/* Who would be told of an edge of the socket is told of none by what came along with the new keys. */
static void bytes_behind_new_keys_are_read_at_once(void **state)
{
    (void)state;
    world w;
    char got[16] = {0};
    begin(&w);
    for (int i = 0; i < 3; i++) { /* the peer is to have new ones, too, or not */
        assert_int_equal(gnutls_session_key_update(w.client, i % 2 ? GNUTLS_KU_PEER : 0), 0);
        assert_int_equal(gnutls_record_send(w.client, "hello", 5), 5);
        let_go(&w);
        assert_int_equal(weft__http_tls_recv(w.server, got, sizeof got), 5);
        assert_memory_equal(got, "hello", 5);
    }
    assert_int_equal(weft__http_tls_recv(w.server, got, sizeof got), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(weft__http_tls_send(w.server, "there", 5), 5);
    ssize_t n;
    do n = gnutls_record_recv(w.client, got, sizeof got);
    while (n == GNUTLS_E_AGAIN);
    assert_int_equal(n, 5);
    end(&w);
}

/* The client's end, said by TLS or by the socket alone, is the end; what is no TLS is a failure. */
static void ends_are_told_apart(void **state)
{
    (void)state;
    char got[16];
    for (int said = 0; said < 2; said++) {
        world w;
        begin(&w);
        if (said) assert_int_equal(gnutls_bye(w.client, GNUTLS_SHUT_WR), 0);
        let_go(&w);
        shutdown(w.fd[1], SHUT_WR);
        assert_int_equal(weft__http_tls_recv(w.server, got, sizeof got), 0);
        end(&w);
    }
    world w;
    begin(&w);
    assert_int_equal(write(w.fd[1], "GET / HTTP/1.1\r\n", 16), 16);
    assert_int_equal(weft__http_tls_recv(w.server, got, sizeof got), -1);
    assert_int_not_equal(errno, EAGAIN);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_behind_new_keys_are_read_at_once),
        cmocka_unit_test(ends_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
