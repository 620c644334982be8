// SPDX-License-Identifier: Apache-2.0
/* thinking.c: `enable_thinking` under the name that a template has for it (template.h). Stateless. */
#include "text/chat/thinking.h"

#include <string.h>

#include "text/chat/messages.h"

static const weft__chat_thinking_name names[] = {
    {"thinking", NULL, "true", "false"},                              /* Kimi K3, Granite 3.3 */
    {"thinking_mode", "\"disabled\"", "\"enabled\"", "\"disabled\""}, /* MiniMax M3 */
    {"thinking_budget", "thinking_budget == 0", NULL, "0", 1},        /* Seed-OSS */
    {"reasoning", "if reasoning %}", "true", "false"},                /* Cohere's North */
    {"reasoning_effort", "'no_think'", "\"high\"", "\"no_think\""},   /* Hunyuan 3 */
    {"reasoning_effort", "\"minimal\"]", NULL, "\"minimal\"", 1},     /* Solar */
};

const weft__chat_thinking_name *weft__chat_thinking_of(const weft__jinja *t, const char *source, size_t n)
{
    if (weft__jinja_reads(t, WEFT__CHAT_THINKING)) return NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = names[i].text;
        if (weft__jinja_reads(t, names[i].name) && (!text || memmem(source, n, text, strlen(text)))) return &names[i];
    }
    return NULL;
}

weft_status weft__chat_template_kwargs(const weft__chat_template *t, const weft__json *kwargs, weft__json **out,
                                       weft_error *err)
{
    const weft__chat_thinking_name *own = weft__chat_template_thinking(t);
    int yes = 0;
    weft_status st = weft__chat_kwargs_normal(kwargs, out, err);
    if (st || !own || !weft__json_bool(weft__json_get(kwargs, WEFT__CHAT_THINKING), &yes)) return st;
    const char *value = yes ? own->on : own->off;
    weft__json *v = NULL;
    if (!value || weft__json_get(*out, own->name)) return WEFT_OK;
    st = weft__json_parse(value, strlen(value), &v, err);
    if (!st && !weft__json_set(*out, own->name, v)) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the variables");
    if (st) weft__json_free(out);
    return st;
}
