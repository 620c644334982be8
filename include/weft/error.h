// SPDX-License-Identifier: Apache-2.0
/* error.h: the status every Weft function returns, and the details that go with a failure.
 *
 * Contract: a function that can fail returns weft_status and takes a `weft_error *` as its last argument. WEFT_OK is
 * 0. The error may be NULL when the caller does not want the text. On success the error is left as it was. A message
 * names the thing that failed and, where there is one, the remedy; it ends without a newline or a full stop. Thread
 * safety: everything here is reentrant; an error object belongs to one caller. */
#ifndef WEFT_ERROR_H
#define WEFT_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#define WEFT_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define WEFT_API
#define WEFT_PRINTF(fmt, first)
#endif

/* C++ spells it differently, and plugins may be written in it; C99 has none. */
#if defined(__cplusplus)
#define WEFT_STATIC_ASSERT static_assert
#elif __STDC_VERSION__ >= 201112L
#define WEFT_STATIC_ASSERT _Static_assert
#else
#define WEFT_STATIC_ASSERT(condition, text) extern char weft_static_assert_[(condition) ? 1 : -1]
#endif

/* X(name, value, text). Append only: the values are part of the plugin ABI. */
#define WEFT_STATUS_LIST(X)                                                                                            \
    X(OK, 0, "ok")                                                                                                     \
    X(NO_MEMORY, 1, "out of memory")                                                                                   \
    X(IO, 2, "input or output failed")                                                                                 \
    X(FORMAT, 3, "malformed data")                                                                                     \
    X(UNSUPPORTED, 4, "not supported")                                                                                 \
    X(ARGUMENT, 5, "invalid argument")                                                                                 \
    X(LIMIT, 6, "a limit was reached")                                                                                 \
    X(STATE, 7, "not possible in this state")                                                                          \
    X(ABI, 8, "incompatible plugin or header version")                                                                 \
    X(CANCELLED, 9, "cancelled")                                                                                       \
    X(NOT_FOUND, 10, "not found")                                                                                      \
    X(EXISTS, 11, "already exists")                                                                                    \
    X(INTERNAL, 12, "internal error")                                                                                  \
    X(BUSY, 13, "busy; try again later")                                                                               \
    X(TIMEOUT, 14, "the time ran out")

typedef enum weft_status {
#define WEFT_STATUS_ENUM(name, value, text) WEFT_##name = (value),
    WEFT_STATUS_LIST(WEFT_STATUS_ENUM)
#undef WEFT_STATUS_ENUM
} weft_status;

#define WEFT_ERROR_TEXT 512

typedef struct weft_error {
    int32_t status;                /* a weft_status */
    char message[WEFT_ERROR_TEXT]; /* NUL-terminated UTF-8, cut at a character when too long */
} weft_error;

/* The general text of a status ("out of memory"); never NULL, also for values this build does not know. */
WEFT_API const char *weft_status_text(weft_status status);

/* Fills *err (which may be NULL) from a printf format and returns `status`, so that a failure is one line:
 * `return weft_fail(err, WEFT_FORMAT, "%s: ...", path);` */
WEFT_API weft_status weft_fail(weft_error *err, weft_status status, const char *format, ...) WEFT_PRINTF(3, 4);

/* Puts "prefix: " before the message already in *err, for a caller that knows the name of the thing. `status` is
 * what the failed call returned; it is stored again and returned, also when err is NULL. A message that begins with
 * "prefix: " already stays as it is. */
WEFT_API weft_status weft_fail_within(weft_error *err, weft_status status, const char *format, ...) WEFT_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
