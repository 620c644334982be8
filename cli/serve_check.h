// SPDX-License-Identifier: Apache-2.0
/* serve_check.h: what is wrong with settings of `weft serve` before it starts: values that are none, for the option
 * table's `check`; and for --check, whether what weft.yaml names is there. One thread. */
#ifndef WEFT_CLI_SERVE_CHECK_H
#define WEFT_CLI_SERVE_CHECK_H

#include "config/config.h"
#include "options.h"

/* option_spec's check: a URL of a collector; an address in digits; NAME=PATH; NAME=PATH[:SCALE]; a size. */
int serve_check_url(const char *value, char *why, size_t room);
int serve_check_time(const char *value, char *why, size_t room);
int serve_check_address(const char *value, char *why, size_t room);
int serve_check_model(const char *value, char *why, size_t room);
int serve_check_adapter(const char *value, char *why, size_t room);
int serve_check_size(const char *value, char *why, size_t room);

/* Options of the line, and of the file (NULL: none), that do nothing without another one: 0 after a message that names
 * that. Before the model is read. */
int serve_check_wants(const command_spec *spec, const weft__config *c);

/* Adds a fault for each file and folder of the file that cannot be read, each place that nothing can be written to, and
 * each name of a model or adapter that the server will not have. Options that the line gave go before the file's.
 * model_given: so did its MODEL. Makes folders to see whether it can, and removes them. */
void serve_check_look(const command_spec *spec, const weft__config *c, int model_given, weft__config_faults *faults);

#endif
