// SPDX-License-Identifier: Apache-2.0
/* service.h: what a service manager (systemd) and `weft serve` tell each other: a socket that is passed on, that the
 * service is ready or ends, and that it lives. The protocols are those of sd_listen_fds(3), sd_notify(3) and
 * sd_watchdog_enabled(3). Without a manager nothing happens. The main thread, but where something else is said. */
#ifndef WEFT_CLI_SERVICE_H
#define WEFT_CLI_SERVICE_H

#include <stdint.h>

#include "weft/error.h"

/* Reads what the manager left in the environment, and takes it from there. *listen_fd: the one socket that was passed
 * to this process, 0: none. Fails with WEFT_ARGUMENT, naming the variable. */
weft_status service_begin(int32_t *listen_fd, weft_error *err);
/* "READY=1", "STOPPING=1", "STATUS=...". Never blocks; from any thread. */
void service_tell(const char *state);
void service_tell_status(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Where the manager wants signs of life: a thread that gives one as often as it must, as long as the server at
 * `address` (weft_server_address) answers a request for /health. */
weft_status service_watch(const char *address, weft_error *err);
/* It takes no more connections, and ends soon: signs of life go on without an answer. From any thread. */
void service_stopping(void);
/* Ends the thread. */
void service_end(void);

#endif
