// SPDX-License-Identifier: Apache-2.0
/* error.c: status texts and error messages (include/weft/error.h). No state. */
#include "weft/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const char *weft_status_text(weft_status status)
{
    switch ((int)status) {
#define STATUS_CASE(name, value, text)                                                                                 \
    case value: return text;
        WEFT_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

/* Stores text[0..n) in err, cut at the last whole character when it does not fit. */
static void store(weft_error *err, const char *text, size_t n)
{
    if (n >= WEFT_ERROR_TEXT) {
        n = WEFT_ERROR_TEXT - 1;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
    }
    memcpy(err->message, text, n);
    err->message[n] = 0;
}

/* Twice the room of a message, so that a prefix and a full message fit before the cut. */
#define SCRATCH (2 * WEFT_ERROR_TEXT)

static size_t format_into(char *out, const char *format, va_list args)
{
    int n = vsnprintf(out, SCRATCH, format, args);
    if (n < 0) {
        out[0] = 0;
        return 0;
    }
    return n < SCRATCH ? (size_t)n : SCRATCH - 1;
}

weft_status weft_fail(weft_error *err, weft_status status, const char *format, ...)
{
    if (!err) return status;
    /* Formatted aside first: an argument may be err->message itself. */
    char text[SCRATCH];
    va_list args;
    va_start(args, format);
    size_t n = format_into(text, format, args);
    va_end(args);
    err->status = status;
    store(err, text, n);
    return status;
}

weft_status weft_fail_within(weft_error *err, weft_status status, const char *format, ...)
{
    if (!err) return status;
    char text[SCRATCH + WEFT_ERROR_TEXT + 2];
    va_list args;
    va_start(args, format);
    size_t n = format_into(text, format, args);
    va_end(args);
    err->message[WEFT_ERROR_TEXT - 1] = 0;
    size_t old = strlen(err->message);
    if (old > n + 1 && !memcmp(err->message, text, n) && !memcmp(err->message + n, ": ", 2)) {
        err->status = status; /* a function below knew that name too */
        return status;
    }
    if (old > 0) {
        memcpy(text + n, ": ", 2);
        memcpy(text + n + 2, err->message, old);
        n += 2 + old;
        text[n] = 0;
    }
    err->status = status;
    store(err, text, n);
    return status;
}
