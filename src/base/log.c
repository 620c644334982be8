// SPDX-License-Identifier: Apache-2.0
/* log.c: one line per message on stderr (log.h). State: the level, read from WEFT_LOG at first use. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static atomic_int level_cache = -1;

static int level_now(void)
{
    int level = atomic_load_explicit(&level_cache, memory_order_relaxed);
    if (level >= 0) return level;
    level = WEFT__LOG_WARN;
    const char *wish = getenv("WEFT_LOG");
    for (int i = 0; wish && i <= WEFT__LOG_DEBUG; i++) {
        if (!strcmp(wish, level_names[i])) level = i;
    }
    /* Threads that race here store the same value. */
    atomic_store_explicit(&level_cache, level, memory_order_relaxed);
    return level;
}

int weft__log_enabled(weft__log_level level)
{
    return (int)level <= level_now();
}

void weft__log(weft__log_level level, const char *format, ...)
{
    if (!weft__log_enabled(level)) return;
    char line[2048];
    int head = snprintf(line, sizeof line, "weft: %s: ", level_names[level]);
    va_list args;
    va_start(args, format);
    int body = vsnprintf(line + head, sizeof line - (size_t)head - 1, format, args);
    va_end(args);
    if (body < 0) return;
    size_t n = (size_t)head + (size_t)body;
    if (n > sizeof line - 2) n = sizeof line - 2;
    /* What a file or a request contributed must not forge a second line or drive the terminal. */
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) line[i] = ' ';
    }
    line[n++] = '\n';
    fwrite(line, 1, n, stderr); /* one call: stdio's lock keeps lines whole */
}
