// SPDX-License-Identifier: Apache-2.0
/* config_stages.c: any bytes as a file of stages: read whole, or refused with a place within the text; nothing stays
 * behind. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "config/stages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int known_command(void *arg, const char *command, char *why, size_t room)
{
    (void)arg;
    if (!command || !room) abort();
    why[0] = 0;
    return strlen(command) < 16;
}

static int known_setting(void *arg, const char *command, const weft__config_setting *s, char *why, size_t room)
{
    (void)arg, (void)command;
    if (!s->n || !s->values[0] || !s->name || !room) abort();
    why[0] = 0;
    return strlen(s->name) < 8;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const weft__config_stages_known known = {known_command, known_setting, NULL};
    const size_t before = weft__alloc_live();
    weft__config_stages *c = NULL;
    weft__config_faults faults = {0};
    weft_error err = {0};
    const weft_status st = weft__config_stages_parse("f", (const char *)data, n, &known, &c, &faults, &err);
    if ((st == WEFT_OK) != (c != NULL) || (st == WEFT_FORMAT) != (faults.n > 0)) abort();
    for (size_t i = 0; i < faults.n; i++)
        if (faults.items[i].line < 1 || (size_t)faults.items[i].line > n + 1 || !faults.items[i].message[0]) abort();
    if (c && (!c->n || c->n > 64)) abort();
    for (size_t i = 0; c && i < c->n; i++) {
        if (!c->items[i].name || !c->items[i].command) abort();
        for (size_t k = 0; k < c->items[i].settings.n; k++)
            if (!strcmp(c->items[i].settings.items[k].name, "command")) abort();
    }
    weft__config_stages_free(&c);
    weft__config_faults_free(&faults);
    if (weft__alloc_live() != before) abort();
    return 0;
}
