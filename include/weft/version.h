// SPDX-License-Identifier: Apache-2.0
/* version.h: which Weft these headers are of. The build reads the numbers here, and nowhere else. */
#ifndef WEFT_VERSION_H
#define WEFT_VERSION_H

#include "weft/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 2
#define WEFT_VERSION_PATCH 0

#define WEFT_VERSION_TEXT_(a, b, c) #a "." #b "." #c
#define WEFT_VERSION_TEXT(a, b, c) WEFT_VERSION_TEXT_(a, b, c)
#define WEFT_VERSION WEFT_VERSION_TEXT(WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH) /* "0.2.0" */

/* Of the library that the program runs with; WEFT_VERSION is that of the headers. */
WEFT_API const char *weft_version(void);

#ifdef __cplusplus
}
#endif

#endif
