// SPDX-License-Identifier: Apache-2.0
/* schema_lookahead.c: patterns that begin with look-ahead, `^(?!A)(?=B)C`, as several that hold at once: C, B, and not
 * A, each from the beginning on. Languages can be lacked or had together; expressions cannot. One thread. */
#include <string.h>

#include "text/grammar/schema_parts.h"

/* Behind the group, the class or the character that s begins with; groups nest as deep as the reader lets them. */
static const char *behind_one(const char *s, const char *end)
{
    int depth = 0;
    do {
        const char c = *s++;
        if (c == '\\' && s < end) s++;
        else if (c == '[') {
            while (s < end && *s != ']') s += *s == '\\' && s + 1 < end ? 2 : 1;
            s += s < end;
        } else {
            depth += (c == '(') - (c == ')' && depth);
        }
    } while (depth && s < end);
    return s;
}

static int has_choice(const char *s, const char *end)
{
    while (s < end && *s != '|') s = behind_one(s, end);
    return s < end;
}

/* The alternatives of s, each anchored at the beginning, as a text that lives as long as c. 0 after a failure. */
static int keep_anchored(weft__gram_schema *c, const char *s, const char *end, weft__gram_held *out)
{
    weft__strbuf text = {0};
    for (int begins = 1; s < end || begins;) {
        if (begins) weft__strbuf_putc(&text, '^');
        s += begins && s < end && *s == '^';
        begins = s < end && *s == '|';
        const char *next = s < end ? behind_one(s, end) : end;
        weft__strbuf_put(&text, s, (size_t)(next - s));
        s = next;
    }
    const weft__json *kept = weft__gram_schema_keep(c, text.failed ? NULL : weft__json_new_string(text.data, text.len));
    weft__strbuf_free(&text);
    return kept && weft__json_string(kept, &out->s, &out->n);
}

static int is_lookahead(const char *s, const char *end)
{
    return end - s > 3 && s[0] == '(' && s[1] == '?' && (s[2] == '!' || s[2] == '=');
}

size_t weft__gram_schema_lookaheads(weft__gram_schema *c, const char *s, size_t n, weft__gram_held *out, size_t most)
{
    const char *end = s + n, *at = s + 1, *close;
    size_t count = 1;
    out[0] = (weft__gram_held){.s = s, .n = n};
    if (n < 2 || *s != '^' || weft__gram_schema_failed(c)) return 1;
    for (; is_lookahead(at, end) && count < most; at = close) {
        close = behind_one(at, end);
        out[count] = (weft__gram_held){.lacked = at[2] == '!'};
        /* What the reader of expressions refuses stays as it is. */
        if (close[-1] != ')' || (close < end && strchr("*+?{", *close))) return 1;
        if (!keep_anchored(c, at + 3, close - 1, &out[count++])) return 0;
    }
    if (count == 1 || has_choice(at, end) || is_lookahead(at, end)) return 1;
    return keep_anchored(c, at, end, &out[0]) ? count : 0;
}
