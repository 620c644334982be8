// SPDX-License-Identifier: Apache-2.0
/* stand_in.c: see stand_in.h. */
#include "text/chat/stand_in.h"

#include "base/log.h"

/* ChatML, as the models that were trained on it have it. It has no form for calls: one that is left out would change
 * what was said. */
static const char chatml[] =
    "{%- for m in messages -%}\n"
    "{%- if m.tool_calls or m.function_call -%}\n"
    "{{- raise_exception('ChatML, which stands in for the template that the model lacks, has no tool calls') -}}\n"
    "{%- endif -%}\n"
    "{{- '<|im_start|>' ~ m.role ~ '\\n' ~ (m.content or '') ~ '<|im_end|>\\n' -}}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}\n";

const char *weft__chat_stand_in(size_t *n)
{
    *n = sizeof chatml - 1;
    return chatml;
}

void weft__chat_tell_stand_in(const char *label)
{
    weft__log(WEFT__LOG_WARN, "%s: the model has no chat template; it gets ChatML (another one: --chat-template FILE)",
              label);
}
