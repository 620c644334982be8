// SPDX-License-Identifier: Apache-2.0
/* config.c: any bytes as weft.yaml: read whole, or refused with a place within the text; nothing stays behind. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int known_setting(void *arg, const weft__config_setting *s, int of_model, char *why, size_t room)
{
    (void)arg;
    if (!s->n || !s->values[0] || !s->name || !room) abort();
    why[0] = 0;
    return !of_model && strlen(s->name) < 8;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const weft__config_known known = {.setting = known_setting};
    const size_t before = weft__alloc_live();
    weft__config *c = NULL;
    weft__config_faults faults = {0};
    weft_error err = {0};
    const weft_status st = weft__config_parse("f", (const char *)data, n, &known, &c, &faults, &err);
    if ((st == WEFT_OK) != (c != NULL) || (st == WEFT_FORMAT) != (faults.n > 0)) abort();
    for (size_t i = 0; i < faults.n; i++)
        if (faults.items[i].line < 1 || (size_t)faults.items[i].line > n + 1 || !faults.items[i].message[0]) abort();
    for (size_t i = 0; c && i < c->n_keys; i++)
        if (!c->keys[i].name || strlen(c->keys[i].hash) != 64) abort();
    for (size_t i = 0; c && i < c->n_presets; i++)
        for (size_t k = 0; k < c->presets[i].n_adapters; k++)
            if (!c->presets[i].adapters[k].name) abort();
    weft__config_free(&c);
    weft__config_faults_free(&faults);
    if (weft__alloc_live() != before) abort();
    return 0;
}
