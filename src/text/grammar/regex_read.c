// SPDX-License-Identifier: Apache-2.0
/* regex_read.c: an expression as a grammar of its own, and what only newer expressions have: names of groups,
 * code points in braces. Stateless. */
#include <string.h>

#include "text/grammar/build.h"
#include "text/grammar/parts.h"

static int is_letter(char c)
{
    return c == '_' || c == '$' || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

size_t weft__gram_regex_name(const char *begin, const char *s, const char *end, const char **why)
{
    const char *name = s + 2, *at = name;
    if (end - s < 4 || s[0] != '?' || s[1] != '<' || !is_letter(*at)) return 0;
    while (at < end && (is_letter(*at) || (*at >= '0' && *at <= '9'))) at++;
    if (at == end || *at != '>') return 0;
    const size_t n = (size_t)(at - name) + 1;
    for (const char *other = begin; other + n + 2 < s; other++) /* ECMA has a name once */
        if (!memcmp(other, "(?<", 3) && !memcmp(other + 3, name, n)) *why = "two groups of one name";
    return n + 2;
}

int weft__gram_regex_code_point(const char **s, const char *end, uint32_t *cp)
{
    uint32_t n = 0;
    const char *at = *s + 1;
    for (*cp = 0; at < end && *at != '}' && n < 8; n++, at++) {
        if (*at >= '0' && *at <= '9') *cp = *cp << 4 | (uint32_t)(*at - '0');
        else if ((*at | 32) >= 'a' && (*at | 32) <= 'f') *cp = *cp << 4 | (uint32_t)((*at | 32) - 'a' + 10);
        else return 0;
    }
    if (!n || at == end || *at != '}' || *cp > 0x10FFFF) return 0;
    *s = at + 1;
    return 1;
}

int32_t weft__gram_read_regex(weft__gram *g, const char *source, size_t n)
{
    weft__gram_regex_facts facts;
    int32_t root = GRAM_RULE("root");
    if (n > WEFT__GRAM_MAX_SOURCE) {
        weft__gram_fail(g, WEFT_LIMIT, "regex: %zu bytes of text; at most %d", n, WEFT__GRAM_MAX_SOURCE);
        return -1;
    }
    int32_t body = weft__gram_regex(g, source, n, WEFT__GRAM_REGEX_WHOLE, &facts);
    if (facts.why) weft__gram_fail(g, WEFT_UNSUPPORTED, "regex: near byte %zu: %s", facts.at, facts.why);
    weft__gram_define(g, root, body);
    weft__gram_within(g, "regex: ", "the expression");
    return root;
}
