// SPDX-License-Identifier: Apache-2.0
/* json.c: see json.h. */
#include "text/answer/json.h"

#include <string.h>

enum state {
    VALUE,     /* a value must come */
    FIRST,     /* of an array: a value, or its end */
    FIRST_KEY, /* of an object: a key, or its end */
    KEY,
    COLON,
    AFTER, /* a comma, or the end of what is around */
    STRING,
    STRING_ESCAPE,
    NAME, /* a string that is a key */
    NAME_ESCAPE,
    WORD, /* a number or a literal */
    STATES
};

static int of_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' || c == 'E';
}

static int in_array(const weft__answer_json *j)
{
    int at = j->depth - 1;
    return (int)(j->arrays[at / 64] >> (at % 64) & 1);
}

/* A container begins. */
static int enter(weft__answer_json *j, int array)
{
    const int at = j->depth;
    if (at == WEFT__JSON_MAX_DEPTH) return 0;
    j->arrays[at / 64] = (j->arrays[at / 64] & ~(UINT64_C(1) << (at % 64))) | (uint64_t)array << (at % 64);
    j->depth++;
    j->state = array ? FIRST : FIRST_KEY;
    return 1;
}

static int leave(weft__answer_json *j, int array)
{
    if (!j->depth || in_array(j) != array) return 0;
    j->depth--;
    j->state = AFTER;
    return 1;
}

/* A character within a string; `string` is STRING or NAME. */
static int in_string(weft__answer_json *j, int string, char c)
{
    if (j->digits) {
        j->digits--;
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    }
    if (c == '\\') j->state = (uint8_t)(string + 1);
    else if (c == '"') j->state = string == NAME ? COLON : AFTER;
    return (unsigned char)c >= 0x20;
}

static int begin_value(weft__answer_json *j, char c)
{
    if (c == '{' || c == '[') return enter(j, c == '[');
    j->state = c == '"' ? STRING : WORD;
    return c == '"' || (of_word(c) && j->depth);
}

static int after_value(weft__answer_json *j, char c)
{
    if (c == '}' || c == ']') return leave(j, c == ']');
    j->state = j->depth && in_array(j) ? VALUE : KEY;
    return c == ',' && j->depth;
}

static int step(weft__answer_json *j, char c)
{
    const int state = j->state;
    switch (state) {
    case STRING:
    case NAME: return in_string(j, state, c);
    case STRING_ESCAPE:
    case NAME_ESCAPE:
        j->state = (uint8_t)(state - 1);
        j->digits = c == 'u' ? 4 : 0;
        return c && strchr("\"\\/bfnrtu", c);
    case WORD:
        if (of_word(c)) return 1;
        j->state = AFTER;
        return weft__answer_is_space(c) || after_value(j, c);
    default: break;
    }
    if (weft__answer_is_space(c)) return 1;
    if (state == COLON) {
        j->state = VALUE;
        return c == ':';
    }
    if (state == AFTER) return after_value(j, c);
    if (state == KEY || state == FIRST_KEY) {
        j->state = NAME;
        return c == '"' || (c == '}' && state == FIRST_KEY && leave(j, 0));
    }
    return c == ']' && state == FIRST ? leave(j, 1) : begin_value(j, c);
}

int weft__answer_json_feed(weft__answer_json *j, const char *s, size_t n, size_t *used)
{
    for (size_t i = 0; i < n; i++) {
        *used = i;
        if (!step(j, s[i])) return -1;
        *used = i + 1;
        if (j->state == AFTER && !j->depth) return 1;
    }
    *used = n;
    return 0;
}

/* ---- members of what is known to parse ---- */

static size_t skip_space(const char *s, size_t n, size_t at)
{
    while (at < n && weft__answer_is_space(s[at])) at++;
    return at;
}

/* Behind the value at s[at]. */
static size_t skip_value(const char *s, size_t n, size_t at)
{
    weft__answer_json j = {0};
    size_t used = 0;
    if (at < n && of_word(s[at])) {
        while (at < n && of_word(s[at])) at++;
        return at;
    }
    weft__answer_json_feed(&j, s + at, n - at, &used);
    return at + used;
}

int weft__answer_json_member(const char *s, size_t n, const char *key, size_t n_key, const char **value,
                             size_t *n_value)
{
    size_t at = skip_space(s, n, 0);
    int found = 0;
    if (at == n || s[at] != '{') return 0;
    for (at++;;) {
        size_t name = skip_space(s, n, at), end;
        if (name >= n || s[name] != '"') return found;
        end = skip_value(s, n, name);
        at = skip_space(s, n, skip_space(s, n, end) + 1); /* behind the colon */
        size_t after = skip_value(s, n, at);
        if (!key || (end - name == n_key + 2 && !memcmp(s + name + 1, key, n_key))) {
            *value = s + at;
            *n_value = after - at;
            found = 1;
        }
        at = skip_space(s, n, after) + 1; /* behind the comma */
    }
}
