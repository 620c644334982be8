// SPDX-License-Identifier: Apache-2.0
/* serve_models.h: what weft serve was told, and the models beside its own, each with the settings that it is opened
 * with: the server's, or those that weft.yaml gives it. One thread. */
#ifndef WEFT_CLI_SERVE_MODELS_H
#define WEFT_CLI_SERVE_MODELS_H

#include "adapters.h"
#include "config/config.h"
#include "options.h"
#include "rope.h"
#include "served.h"

struct serve_options {
    const char *path; /* the model's */
    int32_t threads, max_mb, adapter_mb, store_mb, swap_mb, learn_mb, kv_tokens;
    const char *kv_type, *kv_types, *adapter_type, *spec, *draft, *swap, *template_file, *config_file, *overflow,
        *log_sync;
    int check;
    weft__config *config;
    struct text_list keys, admins, proxies, origins, hosts, aliases, adapters, folders, models, pins, route;
    const char *memory;
    struct served_models sources;
    struct adapter_option adapter[LIST_MAX];
    rope_options rope;
    weft_engine_params engine;
    uint32_t kv_list[WEFT_KV_TYPES_MAX]; /* engine.kv_types */
    weft_server_params server;
    weft_model_params opened;
    char *template; /* the text of template_file; owned */
    /* of another model of the file: its adapters, and the next one */
    weft_server_adapter *own_adapters;
    struct serve_options *next;
};

/* Completes what o and `common` say (engine, opened, the server's models): o is about the command's own model, path,
 * and common, the same without what the file says of it alone, about all others. Without a model of its own a server
 * has those that were named, of the file too, or all that were pulled. To be freed, also after a failure. */
weft_status serve_models_find(const command_spec *spec, struct serve_options *o, struct serve_options *common,
                              const char *path, weft_error *err);
/* Whether each of those that are named (not those of folders) could be loaded, with its adapters and its template; as
 * outlines, after serve_models_find with o->check. The message names the model. */
weft_status serve_models_rehearse(const struct serve_options *o, weft_error *err);
void serve_models_free(struct serve_options *o, struct serve_options *common);

#endif
