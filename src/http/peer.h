// SPDX-License-Identifier: Apache-2.0
/* peer.h: the other end of a connection. */
#ifndef WEFT_HTTP_PEER_H
#define WEFT_HTTP_PEER_H

#include <stdint.h>
#include <sys/socket.h>

typedef struct weft__http_peer {
    char name[64]; /* "127.0.0.1", "::1", "unix" */
    /* What is counted as one address: that of IPv4, also where it is mapped or translated; of IPv6 its /64, the least
     * that networks give away. */
    uint8_t network[16];
    uint8_t address[16]; /* all of it, of IPv4 as IPv6 maps it; 0: a unix socket's */
} weft__http_peer;

/* a: NULL, or of a unix socket, where all are one peer. */
void weft__http_peer_of(const struct sockaddr *a, weft__http_peer *out);
/* Of the very same address; unix sockets never are. */
int weft__http_peer_equal(const weft__http_peer *a, const weft__http_peer *b);
/* Reads an address of IPv4 or IPv6 in digits; 0: it is none. */
int weft__http_peer_read(const char *text, weft__http_peer *out);
int weft__http_peer_is_loopback(const weft__http_peer *p);
int weft__http_peer_same(const weft__http_peer *a, const weft__http_peer *b);

#endif
