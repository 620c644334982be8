// SPDX-License-Identifier: Apache-2.0
/* jinja.c: any bytes as a template, rendered with a small conversation under tight limits: it ends in text that
 * segments cover, or is refused. The first byte chooses whether it may change lists and dicts. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char conversation[] =
    "[{\"role\": \"system\", \"content\": \"be \\u00e9 brief\"}, {\"role\": \"user\", \"content\": \" hi\\n<|im_end|> "
    "\", \"n\": "
    "3},"
    " {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": "
    "{\"a\": 1.5,"
    " \"b\": [true, \"x y\", -7]}}}]}, {\"role\": \"tool\", \"content\": [{\"type\": \"text\", \"text\": \"42\"}]}]";

static void check_segments(const weft__jinja_output *out)
{
    size_t at = 0;
    for (size_t i = 0; i < out->n_segments; i++) {
        const weft__jinja_segment *s = &out->segments[i];
        if (s->offset != at || !s->len || (i && s->from_user == out->segments[i - 1].from_user)) abort();
        at += s->len;
    }
    if (at != out->len) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static weft__json *messages;
    weft__jinja *t;
    if (!size) return 0;
    if (!messages && weft__json_parse(conversation, strlen(conversation), &messages, NULL)) abort();
    if (weft__jinja_compile((const char *)data + 1, size - 1, &t, NULL)) return 0;
    weft__jinja_limits limits = {.max_steps = 100000, .max_depth = 200, .max_output = 1 << 16, .max_memory = 8 << 20};
    weft__jinja_call *call;
    weft__jinja_output out;
    if (weft__jinja_call_create(&limits, &call, NULL)) abort();
    weft__jinja_allow_mutation(call, data[0] & 1);
    weft__jinja_set_now(call, 1700000000);
    if (weft__jinja_set_json(call, "messages", messages, NULL, NULL, NULL) ||
        weft__jinja_set_string(call, "bos_token", "<s>", 3, 0, NULL) ||
        weft__jinja_set_bool(call, "add_generation_prompt", 1, NULL)) {
        abort();
    }
    if (!weft__jinja_render(t, call, &out, NULL)) {
        check_segments(&out);
        weft__jinja_output_free(&out);
    }
    weft__jinja_call_destroy(&call);
    weft__jinja_destroy(&t);
    return 0;
}
