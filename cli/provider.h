// SPDX-License-Identifier: Apache-2.0
/* provider.h: --provider, of every command that runs a model. */
#ifndef WEFT_CLI_PROVIDER_H
#define WEFT_CLI_PROVIDER_H

/* What was given, for weft_model_params.provider; NULL: nothing. */
extern const char *provider_given;

/* For an option table. */
#define PROVIDER_OPTION                                                                                                \
    {                                                                                                                  \
        "provider", 0, OPT_TEXT, &provider_given, "NAME|PATH",                                                         \
            "a plugin that computes what it can, beside the CPU: a .so file, or its name in a folder of "              \
            "WEFT_PLUGIN_PATH",                                                                                        \
            0, 0, NULL                                                                                                 \
    }

#endif
