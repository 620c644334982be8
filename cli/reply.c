// SPDX-License-Identifier: Apache-2.0
/* reply.c: see reply.h. */
#include "reply.h"

weft_status reply_begin(reply *r, const weft_chat *chat, const weft_chat_prompt *prompt, int32_t lead, weft_error *err)
{
    weft_chat_parser_params params;
    r->said.len = r->thought.len = 0;
    if (!weft_chat_reasons(chat) && lead < 1) return WEFT_OK;
    weft_chat_parser_params_default(&params);
    params.calls = 0;
    params.form = lead > 0 ? WEFT_CHAT_FORM_ANY : WEFT_CHAT_FORM_NONE;
    weft_status st = weft_chat_parser_new(prompt, &params, &r->parser, err);
    if (!st && !lead && weft_chat_parser_thinks(r->parser)) weft_chat_parser_free(&r->parser);
    return st;
}

/* A weft_chat_on_part, of a reply *. */
static int take_part(void *arg, const weft_chat_part *part)
{
    reply *r = arg;
    weft__strbuf *to = part->kind == WEFT_CHAT_REASONING ? &r->thought : &r->said;
    weft__strbuf_put(to, part->text, part->n_text);
    return to->failed || (r->on_part && r->on_part(r->on_part_arg, part));
}

int reply_put(void *arg, const char *text, size_t n)
{
    reply *r = arg;
    if (r->parser) return weft_chat_parser_push(r->parser, text, n, take_part, r, &r->why) != WEFT_OK;
    return take_part(r, &(weft_chat_part){.size = sizeof(weft_chat_part), .text = text, .n_text = n});
}

int reply_shows(const void *arg, int32_t token)
{
    const reply *r = arg;
    return r->parser && weft_chat_parser_shows(r->parser, token);
}

weft_status reply_end(reply *r, weft_error *err)
{
    if (r->parser && !r->why.status) weft_chat_parser_finish(r->parser, take_part, r, &r->why);
    if (r->said.failed || r->thought.failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the answer");
    if (!r->why.status || r->why.status == WEFT_CANCELLED) return WEFT_OK;
    return weft_fail(err, (weft_status)r->why.status, "%s", r->why.message);
}

void reply_free(reply *r)
{
    weft_chat_parser_free(&r->parser);
    weft__strbuf_free(&r->said);
    weft__strbuf_free(&r->thought);
}
