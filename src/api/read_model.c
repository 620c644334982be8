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

void weft__api_meant_read(const char *body, size_t n, weft__api_meant *out)
{
    weft__json *root = NULL;
    weft__api_error error;
    const char *text;
    size_t length;
    *out = (weft__api_meant){0};
    if (!n || !weft__api_body_parse(body, n, &root, &error)) return;
    if (weft__json_string(weft__json_get(root, "model"), &text, &length) && strlen(text) == length)
        snprintf(out->model, sizeof out->model, "%s", text);
    if (weft__json_string(weft__json_get(root, "user"), &text, &length) && strlen(text) == length)
        snprintf(out->user, sizeof out->user, "%s", text);
    if (!weft__json_int(weft__json_get(root, "timeout_ms"), &out->timeout_ms) || out->timeout_ms < 0 ||
        out->timeout_ms > WEFT__API_TIMEOUT_MAX)
        out->timeout_ms = 0;
    weft__json_free(&root);
}
