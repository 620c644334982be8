// SPDX-License-Identifier: Apache-2.0
/* line.c: lines of a router's log (book.h). Any thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "route/book.h"

static void put_features(const float *x, weft__strbuf *out)
{
    const char *between = "";
    weft__strbuf_puts(out, ",\"x\":{");
    for (int i = 0; i < WEFT__ROUTE_DIMS; i++) {
        if (x[i] == 0) continue;
        weft__strbuf_printf(out, "%s\"%d\":", between, i);
        weft__json_write_double(out, x[i]);
        between = ",";
    }
    weft__strbuf_putc(out, '}');
}

void weft__route_line_write(const weft__route_line *line, weft__strbuf *out)
{
    weft__strbuf_putc(out, '{');
    if (!line->is_reward) weft__strbuf_printf(out, "\"n\":%llu,", (unsigned long long)line->n);
    weft__strbuf_puts(out, "\"id\":");
    weft__json_write_string(out, line->id, strlen(line->id));
    if (line->is_reward) {
        weft__strbuf_puts(out, ",\"reward\":");
        weft__json_write_double(out, line->reward);
    } else {
        weft__strbuf_puts(out, ",\"arm\":");
        weft__json_write_string(out, line->arm, strlen(line->arm));
        weft__strbuf_puts(out, ",\"p\":");
        weft__json_write_double(out, line->propensity);
        put_features(line->x, out);
    }
    weft__strbuf_puts(out, "}\n");
}

/* 1: a member that is a text of less than `room` bytes. */
static int read_line_text(const weft__json *root, const char *key, char *out, size_t room)
{
    const char *s;
    size_t n;
    if (!weft__json_string(weft__json_get(root, key), &s, &n) || n >= room || strlen(s) != n) return 0;
    memcpy(out, s, n + 1);
    return 1;
}

static int read_bounded(const weft__json *root, const char *key, double least, double most, double *out)
{
    return weft__json_double(weft__json_get(root, key), out) && *out >= least && *out <= most;
}

static int read_features(const weft__json *v, float *x)
{
    weft__json_member m = {0};
    if (weft__json_kind_of(v) != WEFT__JSON_OBJECT) return 0;
    while (weft__json_next(v, &m)) {
        double value;
        char *end;
        const long i = m.key_len && m.key_len < 4 && m.key[0] >= '0' && m.key[0] <= '9' ? strtol(m.key, &end, 10) : -1;
        if (i < 0 || *end || i >= WEFT__ROUTE_DIMS || !weft__json_double(m.value, &value) || !(fabs(value) <= 1e6))
            return 0;
        x[i] = (float)value + 0.0f; /* of zeros the positive one */
    }
    return 1;
}

static int read_route_choice(const weft__json *root, weft__route_line *out)
{
    int64_t n;
    if (!weft__json_int(weft__json_get(root, "n"), &n) || n < 0) return 0;
    out->n = (uint64_t)n;
    return read_line_text(root, "arm", out->arm, sizeof out->arm) && read_bounded(root, "p", 0, 1, &out->propensity) &&
           read_features(weft__json_get(root, "x"), out->x);
}

weft_status weft__route_line_read(const char *text, size_t n, weft__route_line *out, weft_error *err)
{
    weft__json *root = NULL;
    memset(out, 0, sizeof *out);
    weft_status st = weft__json_parse(text, n, &root, err);
    if (st) return st;
    out->is_reward = weft__json_get(root, "reward") != NULL;
    const int ok = read_line_text(root, "id", out->id, sizeof out->id) &&
                   (out->is_reward ? read_bounded(root, "reward", 0, 1, &out->reward) : read_route_choice(root, out));
    weft__json_free(&root);
    return ok ? WEFT_OK : weft_fail(err, WEFT_FORMAT, "a router's log has a line that is neither choice nor reward");
}
