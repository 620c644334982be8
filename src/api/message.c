// SPDX-License-Identifier: Apache-2.0
/* message.c: see message.h. */
#include "api/message.h"

#include <string.h>

#include "base/alloc.h"
#include "base/random.h"

enum { ID_LENGTH = 9 };

/* The last piece grows, or there is one more. Without memory the content fails, as a text does. */
static void message_note(weft__api_message *m, uint32_t kind, size_t at, size_t n)
{
    if (!m->streams || !n) return;
    weft__api_piece *last = m->n_pieces ? &m->pieces[m->n_pieces - 1] : NULL;
    if (last && last->kind == kind) {
        last->n += n;
        return;
    }
    if (!weft__grow(&m->pieces, &m->cap_pieces, m->n_pieces + 1, sizeof *m->pieces)) {
        m->content.failed = 1;
        return;
    }
    m->pieces[m->n_pieces++] = (weft__api_piece){kind, at, n};
}

static void message_put(weft__api_message *m, uint32_t kind, const char *text, size_t n)
{
    weft__strbuf *to = kind == WEFT_CHAT_REASONING ? &m->reasoning : &m->content;
    const size_t at = to->len;
    weft__strbuf_put(to, text, n);
    if (!to->failed) message_note(m, kind, at, n);
}

/* With `legacy`: the tags around reasoning, as far as the content has not got them. */
static void set_thinking(weft__api_message *m, int thinks)
{
    if (!m->legacy || m->thinks == thinks) return;
    m->thinks = thinks;
    if (thinks) message_put(m, WEFT_CHAT_TEXT, "<think>", 7);
    else message_put(m, WEFT_CHAT_TEXT, "</think>", 8);
}

static weft__api_span spell(weft__api_message *m, const char *text, size_t n)
{
    weft__api_span span = {m->spelled.len, n};
    weft__strbuf_put(&m->spelled, text, n);
    return span;
}

static weft__api_span make_id(weft__api_message *m)
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    enum { N_LETTERS = sizeof letters - 1 };
    char id[ID_LENGTH];
    uint64_t drawn = weft__rng_entropy(); /* has more than nine letters' worth */
    for (int i = 0; i < ID_LENGTH; i++, drawn /= N_LETTERS) id[i] = letters[drawn % N_LETTERS];
    return spell(m, id, sizeof id);
}

/* An id that the model wrote, unless it has written it before: a client tells what calls return by them. */
static weft__api_span id_of(weft__api_message *m, const weft_chat_part *part)
{
    int fresh = part->n_id != 0;
    for (size_t i = 0; fresh && !m->spelled.failed && i < m->n_calls; i++) {
        const weft__api_span *id = &m->calls[i].id;
        fresh = id->n != part->n_id || memcmp(m->spelled.data + id->at, part->id, part->n_id);
    }
    return fresh ? spell(m, part->id, part->n_id) : make_id(m);
}

static void message_call(weft__api_message *m, const weft_chat_part *part)
{
    if (!weft__grow(&m->calls, &m->cap_calls, m->n_calls + 1, sizeof *m->calls)) {
        m->content.failed = 1;
        return;
    }
    m->calls[m->n_calls] = (weft__api_call){.id = id_of(m, part),
                                            .name = spell(m, part->name, part->n_name),
                                            .arguments = spell(m, part->text, part->n_text)};
    message_note(m, WEFT_CHAT_CALL, m->n_calls++, 1);
}

int weft__api_message_add(void *message, const weft_chat_part *part)
{
    weft__api_message *m = message;
    set_thinking(m, part->kind == WEFT_CHAT_REASONING);
    if (part->kind == WEFT_CHAT_CALL) message_call(m, part);
    else message_put(m, part->kind, part->text, part->n_text);
    if (m->legacy && part->kind == WEFT_CHAT_REASONING) message_put(m, WEFT_CHAT_TEXT, part->text, part->n_text);
    return weft__api_message_failed(m) || (m->one_call && m->n_calls);
}

int weft__api_message_failed(const weft__api_message *m)
{
    return m->content.failed || m->reasoning.failed || m->spelled.failed;
}

void weft__api_message_shown(weft__api_message *m)
{
    m->n_pieces = 0;
    m->content.len = m->reasoning.len = 0;
}

void weft__api_message_free(weft__api_message *m)
{
    weft__strbuf_free(&m->content);
    weft__strbuf_free(&m->reasoning);
    weft__strbuf_free(&m->spelled);
    weft__free(m->calls);
    weft__free(m->pieces);
    *m = (weft__api_message){0};
}
