// SPDX-License-Identifier: Apache-2.0
/* log.h: messages for people, on stderr, one line each. Level from WEFT_LOG=error|warn|info|debug (default warn).
 * Thread-safe. */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

#include "weft/error.h"

typedef enum weft__log_level { WEFT__LOG_ERROR, WEFT__LOG_WARN, WEFT__LOG_INFO, WEFT__LOG_DEBUG } weft__log_level;

/* Without a newline; control characters become spaces, and what exceeds about 2000 bytes is cut. */
void weft__log(weft__log_level level, const char *format, ...) WEFT_PRINTF(2, 3);
int weft__log_enabled(weft__log_level level);

#endif
