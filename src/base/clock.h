/* clock.h: monotonic time. Thread-safe. */
#ifndef WEFT_BASE_CLOCK_H
#define WEFT_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since an arbitrary point; never goes back. */
uint64_t weft__clock_ns(void);

#endif
