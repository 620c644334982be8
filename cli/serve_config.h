// SPDX-License-Identifier: Apache-2.0
/* serve_config.h: weft.yaml for `weft serve`: its settings are options, by their long names. */
#ifndef WEFT_CLI_SERVE_CONFIG_H
#define WEFT_CLI_SERVE_CONFIG_H

#include "config/config.h"
#include "options.h"

/* Reads the file and gives the options that the command line does not have their values, which live with *out. check:
 * also looks whether what it names is there (serve_check.h); model_given: the command line has a MODEL. EXIT_DONE, or
 * after a message for each fault EXIT_USAGE, or EXIT_FAILED where it cannot be read (check: EXIT_USAGE, too). To be
 * freed. */
int serve_config_take(const command_spec *spec, const char *path, int check, int model_given, weft__config **out);

/* 1: an option that a model may have of its own. */
int serve_config_of_a_model(const char *name);

/* Its first model, the command's: the path, after its options, its name and its adapters were given to the command's;
 * NULL: it has none, or a message said what is wrong. */
const char *serve_config_model(const command_spec *spec, const weft__config *c, const char *path);

/* That nothing is wrong in it. */
void serve_config_say(const weft__config *c, const char *path);

/* weft_server_params' config_setting; arg: the command_spec. */
int32_t serve_config_setting(void *arg, const char *name, const char *const *values, int32_t n, int32_t of_model,
                             char *why, size_t room);

#endif
