// SPDX-License-Identifier: Apache-2.0
/* read_model.c: which model a request means, and how long it stays. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/readers.h"

/* "90", "1.5h", "5m", "10s", "300ms", and several of them together, as ollama spells durations. 0: it is none. */
static int read_duration(const char *text, double *ms)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    const int negative = *text == '-';
    *ms = 0;
    for (text += negative; *text;) {
        double value = 0, place = 1;
        size_t n = strspn(text, "0123456789"), unit = 0;
        if (!n || n > 9) return 0;
        for (size_t i = 0; i < n; i++) value = value * 10 + (text[i] - '0');
        text += n;
        if (*text == '.') {
            size_t m = strspn(++text, "0123456789");
            for (size_t i = 0; i < m && i < 9; i++) value += (text[i] - '0') * (place /= 10);
            text += m;
        }
        if (!*text) { /* seconds */
            *ms += value * 1000;
            break;
        }
        while (unit < sizeof units / sizeof *units && strncmp(text, units[unit].name, strlen(units[unit].name))) unit++;
        if (unit == sizeof units / sizeof *units) return 0;
        text += strlen(units[unit].name);
        *ms += value * units[unit].ms;
    }
    if (negative) *ms = -1;
    return 1;
}

int weft__api_read_keep_alive(weft__api_params *params, const char *name, const weft__json *v, weft__api_error *error)
{
    const char *text;
    size_t n;
    double ms;
    int ok = weft__json_double(v, &ms);
    if (ok) ms *= 1000;
    else ok = weft__json_string(v, &text, &n) && n && strlen(text) == n && n < 64 && read_duration(text, &ms);
    if (!ok)
        return weft__api_error_set(error, 400, name,
                                   "'%s' must be a number of seconds, or a string as '5m'; below 0: for ever", name);
    params->keep_alive_ms = ms < 0 || ms > 0x1p53 ? INT64_MAX : (int64_t)ms;
    return 1;
}

/* ---- which model: read without making a tree of what may be megabytes of messages ---- */

static const char *behind_space(const char *at, const char *end)
{
    while (at < end && strchr(" \t\r\n", *at) && *at) at++;
    return at;
}

/* Behind the string that begins at `at`; NULL: it does not end. */
static const char *behind_string(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        if (*at == '"') return at + 1;
        if (*at == '\\') at++;
    }
    return NULL;
}

/* Behind the value that begins at `at`, whatever is in it; NULL: it does not end. */
static const char *behind_value(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        if (*at == '"') {
            if (!(at = behind_string(at, end))) return NULL;
            if (!depth) return at;
            continue;
        }
        if (*at == '[' || *at == '{') depth++;
        else if (*at == ']' || *at == '}') {
            if (!depth) return at;
            if (!--depth) return at + 1;
        } else if (*at == ',' && !depth) return at;
        at++;
    }
    return NULL;
}

/* A string or a number alone. NULL: it is neither, or no JSON, or there is no memory for it. */
static weft__json *meant_scalar(const char *at, const char *behind)
{
    weft__json *v = NULL;
    if (*at == '"' || *at == '-' || (*at >= '0' && *at <= '9'))
        (void)weft__json_parse(at, (size_t)(behind - at), &v, NULL);
    return v;
}

/* "model": as it stands, or with escapes. */
static int is_key(const char *at, const char *behind, const char *name)
{
    const size_t n = (size_t)(behind - at) - 2;
    if (!memchr(at, '\\', n + 1)) return n == strlen(name) && !memcmp(at + 1, name, n);
    if (n > 6 * strlen(name)) return 0; /* longer than with each of its letters escaped */
    weft__json *v = meant_scalar(at, behind);
    const int is = weft__json_is(v, name);
    weft__json_free(&v);
    return is;
}

static void meant_text(const weft__json *v, char *out, size_t room)
{
    const char *text;
    size_t n;
    if (weft__json_string(v, &text, &n) && strlen(text) == n) snprintf(out, room, "%s", text);
}

static void meant_member(const char *key, const char *behind_key, const char *value, const char *behind,
                         weft__api_meant *out)
{
    const int is_model = is_key(key, behind_key, "model"), is_user = is_key(key, behind_key, "user"),
              is_timeout = is_key(key, behind_key, "timeout_ms"), is_store = is_key(key, behind_key, "store");
    int keeps = 1;
    if (!is_model && !is_user && !is_timeout && !is_store) return;
    weft__json *v = meant_scalar(value, behind);
    if (is_model) meant_text(v, out->model, sizeof out->model);
    if (is_user) meant_text(v, out->user, sizeof out->user);
    if (is_timeout &&
        (!weft__json_int(v, &out->timeout_ms) || out->timeout_ms < 0 || out->timeout_ms > WEFT__API_TIMEOUT_MAX))
        out->timeout_ms = 0;
    if (is_store && *value != 'n') out->keeps_out |= !weft__json_bool(v, &keeps) || !keeps;
    weft__json_free(&v);
}

void weft__api_meant_read(const char *body, size_t n, weft__api_meant *out)
{
    const char *end = body + n, *at = n ? behind_space(body, end) : end;
    *out = (weft__api_meant){0};
    for (int open = at < end && *at == '{'; open; open = at < end && *at == ',') {
        const char *key = behind_space(at + 1, end);
        const char *behind_key = key < end && *key == '"' ? behind_string(key, end) : NULL;
        const char *value = behind_key ? behind_space(behind_key, end) : end;
        if (value == end || *value != ':') return;
        value = behind_space(value + 1, end);
        const char *behind = behind_value(value, end);
        if (!behind) return;
        meant_member(key, behind_key, value, behind, out);
        at = behind_space(behind, end);
    }
}
