// SPDX-License-Identifier: Apache-2.0
/* ctx.c: failing and spending during a rendering (value.h). Everything that costs time or memory passes here. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "text/jinja/value.h"

void weft__jinja_fail_with(weft__jinja_ctx *c, weft_status status, const char *format, ...)
{
    char text[2 * WEFT_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0) text[0] = 0;
    if (c->line) {
        weft_fail(c->err, status, "line %u: %s", c->line, text);
    } else {
        weft_fail(c->err, status, "%s", text);
    }
}

static weft_status no_room(weft__jinja_ctx *c)
{
    if (!c->arena.over) return weft__jinja_fail(c, WEFT_NO_MEMORY, "out of memory while rendering");
    return weft__jinja_fail(c, WEFT_LIMIT, "the template needs more than %zu bytes of memory", c->arena.limit);
}

void *weft__jinja_alloc(weft__jinja_ctx *c, size_t n_bytes)
{
    void *p = weft__jinja_arena_alloc(&c->arena, n_bytes);
    if (!p) no_room(c);
    return p;
}

void *weft__jinja_alloc_array(weft__jinja_ctx *c, size_t n, size_t size)
{
    uint64_t total;
    if (!weft__checked_mul(n, size, &total) || total > SIZE_MAX / 2) total = SIZE_MAX / 2;
    return weft__jinja_alloc(c, (size_t)total);
}

weft_status weft__jinja_grow(weft__jinja_ctx *c, void *items_pp, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity) return WEFT_OK;
    size_t n = *capacity < 8 ? 8 : *capacity * 2;
    if (n < need) n = need;
    if (n > SIZE_MAX / 2 / size) n = need;
    void **items = items_pp;
    uint64_t bytes;
    if (!weft__checked_mul(n, size, &bytes)) bytes = SIZE_MAX;
    void *grown = weft__jinja_arena_grow(&c->arena, *items, *capacity * size, (size_t)bytes);
    if (!grown) return no_room(c);
    *items = grown;
    *capacity = n;
    return WEFT_OK;
}

weft_status weft__jinja_spend(weft__jinja_ctx *c, uint64_t steps)
{
    if (c->steps < steps) {
        c->steps = 0;
        return weft__jinja_fail(c, WEFT_LIMIT, "the template takes more than %llu steps",
                                (unsigned long long)c->limits.max_steps);
    }
    c->steps -= steps;
    return WEFT_OK;
}

weft_status weft__jinja_enter(weft__jinja_ctx *c)
{
    if (c->depth >= c->limits.max_depth) {
        return weft__jinja_fail(c, WEFT_LIMIT, "nested or recursive beyond a depth of %u", c->limits.max_depth);
    }
    c->depth++;
    return WEFT_OK;
}
