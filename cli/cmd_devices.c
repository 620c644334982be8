// SPDX-License-Identifier: Apache-2.0
/* cmd_devices.c: weft devices: what can compute here. */
#include <stdio.h>

#include "base/json.h"
#include "commands.h"
#include "options.h"
#include "terminal.h"

static void print_device(const weft_backend_info *d, int json, int first)
{
    if (!json) {
        printf("%-8s %s\n         %d threads, %.1f GB of memory\n", d->name, d->device, d->n_units,
               (double)d->memory_bytes / 1e9);
        return;
    }
    weft__strbuf t = {0};
    weft__strbuf_puts(&t, first ? "{\"name\": " : ", {\"name\": ");
    weft__json_write_string(&t, d->name, __builtin_strlen(d->name));
    weft__strbuf_puts(&t, ", \"device\": ");
    weft__json_write_string(&t, d->device, __builtin_strlen(d->device));
    weft__strbuf_printf(&t, ", \"units\": %d, \"memory_bytes\": %llu}", d->n_units,
                        (unsigned long long)d->memory_bytes);
    if (!t.failed) fwrite(t.data, 1, t.len, stdout);
    weft__strbuf_free(&t);
}

int cmd_devices(int argc, char **argv)
{
    int json = 0, first;
    struct text_list plugins = {0};
    const option_spec options[] = {
        {"plugin", 0, OPT_LIST, &plugins, "FILE", "also load this provider; may be repeated", 0, 0, NULL},
        {"json", 0, OPT_FLAG, &json, NULL, "a JSON array", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "devices", "[options]", "Lists the providers of compute: those built in, and plugins.", NULL, options, 0, 0};
    int rc = options_parse(&spec, argc, argv, &first), failed = 0, n = 0;
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    const char *const *names = weft_provider_list();
    int n_names = 0;
    while (names[n_names]) n_names++;
    if (json) putchar('[');
    for (int i = 0; i < n_names + plugins.n; i++) {
        weft_backend_info info = {.size = sizeof info};
        weft_error err = {0};
        if (weft_provider_describe(i < n_names ? names[i] : plugins.items[i - n_names], &info, &err))
            failed = report("devices", &err);
        else print_device(&info, json, n++ == 0);
    }
    if (json) printf("]\n");
    return failed ? EXIT_FAILED : EXIT_DONE;
}
