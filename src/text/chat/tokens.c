// SPDX-License-Identifier: Apache-2.0
/* tokens.c: see tokens.h. */
#include "text/chat/tokens.h"

#include <string.h>

#include "base/alloc.h"

size_t weft__chat_tokens(const weft__tok *tok, weft__chat_token out[WEFT__CHAT_TOKENS])
{
    static const struct {
        const char *name;
        weft__tok_role role;
    } all[WEFT__CHAT_TOKENS] = {{"bos_token", WEFT__TOK_ROLE_BOS},  {"eos_token", WEFT__TOK_ROLE_EOS},
                                {"unk_token", WEFT__TOK_ROLE_UNK},  {"pad_token", WEFT__TOK_ROLE_PAD},
                                {"sep_token", WEFT__TOK_ROLE_SEP},  {"cls_token", WEFT__TOK_ROLE_CLS},
                                {"mask_token", WEFT__TOK_ROLE_MASK}};
    size_t n = 0;
    for (size_t i = 0; i < WEFT__CHAT_TOKENS; i++) {
        weft__tok_slice text = weft__tok_text(tok, weft__tok_id_of_role(tok, all[i].role));
        if (text.data) out[n++] = (weft__chat_token){all[i].name, text.data};
    }
    return n;
}

/* The template's own stretches behind byte `skip`, relative to it. */
static size_t trusted_spans(const weft__jinja_output *o, size_t skip, weft__tok_span *spans)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n_segments; i++) {
        const weft__jinja_segment *s = &o->segments[i];
        size_t end = s->offset + s->len, begin = s->offset > skip ? s->offset : skip;
        if (!s->from_user && end > begin) spans[n++] = (weft__tok_span){begin - skip, end - begin};
    }
    return n;
}

static weft_status put_bos(weft__tok_ids *out, size_t at, int32_t bos, weft_error *err)
{
    if (!weft__grow(&out->data, &out->capacity, out->n + 1, sizeof *out->data))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt");
    memmove(out->data + at + 1, out->data + at, (out->n - at) * sizeof *out->data);
    out->data[at] = bos;
    out->n++;
    return WEFT_OK;
}

weft_status weft__chat_encode(const weft__tok *tok, const weft__jinja_output *o, size_t skip, weft__tok_ids *out,
                              weft_error *err)
{
    size_t before = out->n;
    if (skip > o->len) return weft_fail(err, WEFT_ARGUMENT, "byte %zu of a prompt of %zu", skip, o->len);
    weft__tok_span *spans = weft__alloc_array(o->n_segments, sizeof *spans);
    if (!spans) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt");
    weft_status st = weft__tok_encode_spans(tok, o->text ? o->text + skip : "", o->len - skip, spans,
                                            trusted_spans(o, skip, spans), 0, out, err);
    weft__free(spans);
    int32_t bos = weft__tok_id_of_role(tok, WEFT__TOK_ROLE_BOS);
    if (!st && skip == 0 && bos >= 0 && weft__tok_adds_bos(tok) && !(out->n > before && out->data[before] == bos)) {
        st = put_bos(out, before, bos, err);
        if (st) out->n = before;
    }
    return st;
}
