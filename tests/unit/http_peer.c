// SPDX-License-Identifier: Apache-2.0
/* http_peer.c: what counts as one address where connections of each are limited. */
#include "unit/fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "http/peer.h"

static weft__http_peer peer(const char *text)
{
    struct sockaddr_storage a = {0};
    weft__http_peer out;
    a.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
    void *to = a.ss_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)&a)->sin6_addr
                                       : &((struct sockaddr_in *)&a)->sin_addr;
    assert_int_equal(inet_pton(a.ss_family, text, to), 1);
    weft__http_peer_of((struct sockaddr *)&a, &out);
    assert_string_equal(out.name, text);
    return out;
}

static int same(const char *a, const char *b)
{
    const weft__http_peer x = peer(a), y = peer(b);
    return weft__http_peer_same(&x, &y);
}

static void one_address_is_one(void **state)
{
    (void)state;
    assert_true(same("192.0.2.1", "192.0.2.1"));
    assert_false(same("192.0.2.1", "192.0.2.2"));
    assert_true(same("192.0.2.1", "::ffff:192.0.2.1"));
    assert_false(same("::ffff:192.0.2.1", "::ffff:192.0.2.2"));
    assert_true(same("192.0.2.1", "64:ff9b::c000:201"));
    assert_false(same("64:ff9b::c000:201", "64:ff9b::c000:202"));
}

static void a_network_of_ipv6_is_one(void **state)
{
    (void)state;
    assert_true(same("2001:db8:0:1::1", "2001:db8:0:1:ffff::9"));
    assert_false(same("2001:db8:0:1::1", "2001:db8:0:2::1"));
    assert_false(same("2001:db8:0:1::1", "192.0.2.1"));
    assert_true(same("::1", "::1"));
    assert_false(same("::1", "127.0.0.1"));
}

static void a_unix_socket_has_one_peer(void **state)
{
    (void)state;
    weft__http_peer a, b;
    weft__http_peer_of(NULL, &a);
    weft__http_peer_of(&(struct sockaddr){.sa_family = AF_UNIX}, &b);
    assert_string_equal(a.name, "unix");
    assert_true(weft__http_peer_same(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_address_is_one),
        cmocka_unit_test(a_network_of_ipv6_is_one),
        cmocka_unit_test(a_unix_socket_has_one_peer),
    };
    return cmocka_run_group_tests_name("http_peer", tests, NULL, NULL);
}
