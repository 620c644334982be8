// SPDX-License-Identifier: Apache-2.0
/* peer.c: see peer.h. Stateless. */
#include "http/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* An address of IPv4 as IPv6 maps it. */
static void map_four(const void *four, weft__http_peer *out)
{
    memset(out->network + 10, 0xFF, 2);
    memcpy(out->network + 12, four, 4);
    memcpy(out->address, out->network, sizeof out->address);
}

void weft__http_peer_of(const struct sockaddr *a, weft__http_peer *out)
{
    memset(out, 0, sizeof *out);
    if (a && a->sa_family == AF_INET) {
        const struct in_addr *four = &((const struct sockaddr_in *)a)->sin_addr;
        inet_ntop(AF_INET, four, out->name, sizeof out->name);
        map_four(four, out);
    } else if (a && a->sa_family == AF_INET6) {
        const struct in6_addr *six = &((const struct sockaddr_in6 *)a)->sin6_addr;
        inet_ntop(AF_INET6, six, out->name, sizeof out->name);
        static const uint8_t translated[12] = {0x00, 0x64, 0xFF, 0x9B}; /* 64:ff9b::/96, RFC 6052 */
        if (IN6_IS_ADDR_V4MAPPED(six) || !memcmp(six, translated, sizeof translated)) map_four(six->s6_addr + 12, out);
        else {
            memcpy(out->network, six, 8);
            memcpy(out->address, six, 16);
        }
    } else {
        snprintf(out->name, sizeof out->name, "unix");
    }
}

int weft__http_peer_equal(const weft__http_peer *a, const weft__http_peer *b)
{
    static const uint8_t none[16];
    return !memcmp(a->address, b->address, sizeof a->address) && memcmp(a->address, none, sizeof none);
}

int weft__http_peer_read(const char *text, weft__http_peer *out)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    int is_four = inet_pton(AF_INET, text, &four.sin_addr) == 1,
        is_six = inet_pton(AF_INET6, text, &six.sin6_addr) == 1;
    weft__http_peer_of(is_four ? (struct sockaddr *)&four : is_six ? (struct sockaddr *)&six : NULL, out);
    return is_four || is_six;
}

int weft__http_peer_is_loopback(const weft__http_peer *p)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF}, one[16] = {[15] = 1};
    return (!memcmp(p->address, mapped, sizeof mapped) && p->address[12] == 127) ||
           !memcmp(p->address, one, sizeof one);
}

int weft__http_peer_same(const weft__http_peer *a, const weft__http_peer *b)
{
    return !memcmp(a->network, b->network, sizeof a->network);
}
