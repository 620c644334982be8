// SPDX-License-Identifier: Apache-2.0
/* cmd_list.c: weft list: the models that were pulled. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "options.h"
#include "terminal.h"

struct list_listing {
    int json, names, n;
    weft__strbuf text;
    char last[256]; /* OWNER/NAME of the one before */
};

static void list_add(void *arg, const weft_pulled *m)
{
    struct list_listing *l = arg;
    weft__strbuf *t = &l->text;
    const int n = (int)strcspn(m->name, ":");
    if (l->names && m->complete) {
        if (strncmp(l->last, m->name, (size_t)n) || l->last[n]) weft__strbuf_printf(t, "%.*s\n", n, m->name);
        if (m->name[n]) weft__strbuf_printf(t, "%s\n", m->name);
        snprintf(l->last, sizeof l->last, "%.*s", n, m->name);
    } else if (l->names) {
        /* it cannot be opened yet */
    } else if (!l->json) {
        weft__strbuf_printf(t, "%10.3f GB  %-10s  %s\n", (double)m->n_bytes / 1e9,
                            m->complete ? "complete" : "unfinished", m->name);
    } else {
        weft__strbuf_puts(t, l->n ? ", {\"name\": " : "{\"name\": ");
        weft__json_write_string(t, m->name, strlen(m->name));
        weft__strbuf_puts(t, ", \"path\": ");
        weft__json_write_string(t, m->path, strlen(m->path));
        weft__strbuf_printf(t, ", \"bytes\": %llu, \"files\": %d, \"complete\": %s}", (unsigned long long)m->n_bytes,
                            m->n_files, m->complete ? "true" : "false");
    }
    l->n++;
}

int cmd_list(int argc, char **argv)
{
    struct list_listing l = {0};
    const option_spec options[] = {
        {"json", 0, OPT_FLAG, &l.json, NULL, "a JSON array", 0, 0, NULL},
        {"names", 0, OPT_FLAG, &l.names, NULL, "names alone, a line each, for shells", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "list",
        "[options]",
        "Lists the models that 'weft pull' fetched, finished or not. The names work as MODEL in every command.",
        NULL,
        options,
        0,
        0};
    int first, rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    weft_error err = {0};
    if (l.json) weft__strbuf_putc(&l.text, '[');
    weft_status st = weft_pulled_each(list_add, &l, &err);
    if (l.json) weft__strbuf_puts(&l.text, "]\n");
    if (!st && l.text.failed) st = weft_fail(&err, WEFT_NO_MEMORY, "no memory for the list");
    if (!st && l.text.len) fwrite(l.text.data, 1, l.text.len, stdout);
    if (!st && !l.n && !l.json && !l.names) fprintf(stderr, "no models yet: 'weft pull OWNER/NAME' fetches one\n");
    weft__strbuf_free(&l.text);
    return st ? report("list", &err) : EXIT_DONE;
}
