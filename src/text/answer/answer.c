// SPDX-License-Identifier: Apache-2.0
/* answer.c: see answer.h.
 *
 * Bytes that are not decided are held: white space, which goes with a marker behind it, what may become a marker, and a
 * call that is not whole. `scan` is the first of them that may begin a marker, or where a call was begun. */
#include "text/answer/answer.h"

#include <string.h>

#include "base/alloc.h"
#include "text/answer/call.h"
#include "text/answer/values.h"

/* After a call that failed, what it took is looked through for markers once more if it was no longer than this: so
 * that no text is looked through very often. */
enum { LOOK_AGAIN = 1024 };
/* Bytes that are taken at a time, so that little is moved. */
enum { PIECE = 4096 };

typedef enum marker_kind { BEGINS_REASONING, ENDS_REASONING, FRAMES, CALLS } marker_kind;

typedef struct marker {
    const char *text; /* "": of a form that begins without one */
    size_t n;
    marker_kind kind;
    weft__answer_place place;
    const weft__answer_form *form;
} marker;

struct weft__answer {
    weft__answer_style style;
    int apart; /* reasoning is told apart */
    int form;  /* behind reasoning and frames all is text */
    weft__json *tools;
    marker *markers;
    size_t n_markers;
    uint8_t first[256]; /* bytes that markers begin with */
    int nameless;       /* a form begins without a marker */
    weft__strbuf held;
    size_t base;   /* of the answer: where held begins */
    size_t scan;   /* of held: before it no marker begins */
    size_t solid;  /* of held, at most scan: behind it there is only white space up to scan */
    int reasoning; /* this is reasoning */
    int ended;     /* some was */
    int ends;      /* its end, from byte ends_at of the answer on, is none of the model's words */
    size_t ends_at;
    size_t blank_at, blank; /* at this byte of the answer a marker of LAST and white space are so long */
    int fresh;              /* since the beginning, or the last marker or call, there was only white space */
    int trim;               /* white space at the beginning of held is beside a marker */
    int calling;            /* `call` is under way, from scan on */
    weft__answer_call call;
    int told;      /* a call of its section was */
    size_t tried;  /* markers whose forms were tried at scan */
    int cut;       /* a form would have gone on behind the answer's end */
    size_t failed; /* bytes of what it begins with */
    size_t shown;  /* the farthest byte, from scan on, where a form was none */
    int32_t n_calls;
    weft__answer_tell *tell;
    void *arg;
    weft_error *err;
};

/* ---- markers ---- */

static void add_marker(weft__answer *a, const char *text, marker_kind kind, weft__answer_place place,
                       const weft__answer_form *form)
{
    a->markers[a->n_markers++] = (marker){text, strlen(text), kind, place, form};
    if (*text) a->first[(unsigned char)*text] = 1;
    else a->nameless = 1;
}

/* What a form begins with. */
static const char *mark_of(const weft__answer_form *form)
{
    const weft__answer_step *step = form->open ? form->open : form->call;
    return step->op == WEFT__ANSWER_MARK ? step->text : "";
}

static int add_markers(weft__answer *a, int calls)
{
    const weft__answer_format *f = a->style.format;
    size_t n = 2 + f->n_forms;
    for (const weft__answer_frame *frame = f->frames; frame && frame->text; frame++) n++;
    a->markers = weft__alloc_array(n, sizeof *a->markers);
    if (!a->markers) return 0;
    if (a->style.reasoning) {
        add_marker(a, a->style.reasoning->begin, BEGINS_REASONING, WEFT__ANSWER_FIRST, NULL);
        add_marker(a, a->style.reasoning->end, ENDS_REASONING, WEFT__ANSWER_ANYWHERE, NULL);
    }
    for (const weft__answer_frame *frame = f->frames; frame && frame->text; frame++)
        add_marker(a, frame->text, FRAMES, frame->place, NULL);
    for (size_t i = 0; calls && i < f->n_forms; i++)
        add_marker(a, mark_of(&f->forms[i]), CALLS, f->forms[i].first ? WEFT__ANSWER_FIRST : WEFT__ANSWER_ANYWHERE,
                   &f->forms[i]);
    return 1;
}

static int has_steps(const weft__answer_step *steps, const char *s, size_t n)
{
    for (; steps && steps->op; steps++)
        if (steps->text && memmem(steps->text, strlen(steps->text), s, n)) return 1;
    return 0;
}

int weft__answer_reasons(const weft__answer *a)
{
    return a->reasoning;
}

void weft__answer_end_reasoning(weft__answer *a)
{
    a->ends = a->reasoning;
    a->ends_at = a->base + a->held.len;
}

int weft__answer_has(const weft__answer *a, const char *s, size_t n)
{
    const weft__answer_format *f = a->style.format;
    if (n < 2) return 0;
    for (size_t i = 0; i < a->n_markers; i++) {
        const weft__answer_form *form = a->markers[i].form;
        if (memmem(a->markers[i].text, a->markers[i].n, s, n)) return 1;
        if (form && (has_steps(form->open, s, n) || has_steps(form->call, s, n) || has_steps(form->between, s, n) ||
                     has_steps(form->close, s, n) || has_steps(f->parameter, s, n) ||
                     (f->tag && memmem(f->tag, strlen(f->tag), s, n)) || memmem("<|\"|>", 5, s, n)))
            return 1;
    }
    return 0;
}

/* ---- the beginning ---- */

static size_t trimmed(const char *s, size_t n)
{
    while (n && weft__answer_is_space(s[n - 1])) n--;
    return n;
}

/* The last place of `mark` in s[0..n), counted from 1; 0: there is none. */
static size_t last_of(const char *s, size_t n, const char *mark)
{
    const char *at;
    size_t last = 0;
    while ((at = memmem(s + last, n - last, mark, strlen(mark)))) last = (size_t)(at - s) + 1;
    return last;
}

int weft__answer_begun(const weft__answer_params *p)
{
    const weft__answer_reasoning *r = p->style.reasoning;
    const char *begun = p->prompt + (p->n_prompt - p->n_begun);
    size_t n, length;
    if (!r) return 0;
    if (last_of(begun, p->n_begun, r->begin) > last_of(begun, p->n_begun, r->end)) return 1;
    if (last_of(begun, p->n_begun, r->end)) return 0;
    n = trimmed(p->prompt, p->n_prompt - p->n_begun);
    length = trimmed(r->begin, strlen(r->begin));
    return n >= length && !memcmp(p->prompt + n - length, r->begin, length);
}

weft_status weft__answer_create(const weft__answer_params *p, weft__json *tools, weft__answer **out, weft_error *err)
{
    *out = NULL;
    weft__answer *a = weft__alloc_zero(1, sizeof *a);
    if (a) {
        *a = (weft__answer){.style = p->style, .apart = p->reasoning, .form = p->form, .tools = tools};
        a->call.format = p->style.format;
        a->call.tools = tools;
    } else {
        weft__json_free(&tools);
    }
    if (!a || !add_markers(a, p->calls)) {
        weft__answer_destroy(&a);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a parser of answers");
    }
    a->reasoning = weft__answer_begun(p);
    a->trim = a->reasoning && a->apart;
    a->fresh = !trimmed(p->prompt + (p->n_prompt - p->n_begun), p->n_begun);
    *out = a;
    return WEFT_OK;
}

void weft__answer_destroy(weft__answer **p)
{
    weft__answer *a = *p;
    if (!a) return;
    weft__answer_call_free(&a->call);
    weft__strbuf_free(&a->held);
    weft__free(a->markers);
    weft__json_free(&a->tools);
    weft__free(a);
    *p = NULL;
}

/* ---- telling ---- */

static weft_status tell_part(weft__answer *a, const weft_chat_part *part, size_t from, size_t to)
{
    return a->tell(a->arg, part, a->base + from, a->base + to)
               ? weft_fail(a->err, WEFT_CANCELLED, "the parts of an answer are not wanted")
               : WEFT_OK;
}

/* held[0..n) is gone. */
static void drop(weft__answer *a, size_t n)
{
    if (!n) return;
    memmove(a->held.data, a->held.data + n, a->held.len - n);
    a->held.len -= n;
    a->base += n;
    a->scan -= n;
    a->solid = a->solid > n ? a->solid - n : 0;
}

/* White space that may be a marker's; a form may begin with blanks of its own. */
static int is_beside(const weft__answer *a, char c)
{
    return a->form && !a->reasoning ? c == '\n' : weft__answer_is_space(c);
}

/* Tells held[0..n), n <= scan, but for white space beside the marker before it. */
static weft_status tell_text(weft__answer *a, size_t n)
{
    size_t from = 0;
    while (a->trim && from < n && is_beside(a, a->held.data[from])) from++;
    if (from < n) {
        const weft_chat_part part = {.size = sizeof part,
                                     .kind = a->reasoning && a->apart ? WEFT_CHAT_REASONING : WEFT_CHAT_TEXT,
                                     .text = a->held.data + from,
                                     .n_text = n - from};
        weft_status st = tell_part(a, &part, from, n);
        if (st) return st;
        a->trim = 0;
    }
    drop(a, n);
    return WEFT_OK;
}

static weft_status tell_call(weft__answer *a, size_t n)
{
    const weft__answer_call *c = &a->call;
    const weft_chat_part part = {.size = sizeof part,
                                 .kind = WEFT_CHAT_CALL,
                                 .text = c->arguments.data,
                                 .n_text = c->arguments.len,
                                 .name = c->name.data,
                                 .n_name = c->name.len,
                                 .id = c->id.len ? c->id.data : NULL,
                                 .n_id = c->id.len,
                                 .index = a->n_calls++};
    return tell_part(a, &part, a->scan, a->scan + n);
}

/* ---- scanning ---- */

/* The answer broke off in marker m, of which there are n bytes: before a form that is no text where no text begins so,
 * or where a special token has been. */
static int is_cut_lead(const weft__answer *a, const marker *m, size_t n)
{
    if (!a->form || !a->fresh || a->reasoning || m->kind == CALLS) return 0;
    return a->form == WEFT_CHAT_FORM_JSON || (m->text[0] == '<' && memchr(m->text, '>', n));
}

/* Whether marker m stands at scan: 1, 0, or -1 when there must be more to say so. */
static int stands(weft__answer *a, const marker *m, int final)
{
    const char *s = a->held.data + a->scan;
    const size_t n = a->held.len - a->scan;
    if (a->form && !a->reasoning &&
        (!a->fresh || m->kind == ENDS_REASONING || (a->ended && m->kind == BEGINS_REASONING)))
        return 0;
    if (a->reasoning && !(m->kind == ENDS_REASONING || (m->kind == CALLS && a->style.format->ends_reasoning))) return 0;
    /* Where reasoning is off, some begin with its end. */
    if (!a->reasoning && m->kind == ENDS_REASONING && !a->fresh) return 0;
    if (m->place == WEFT__ANSWER_FIRST && !a->fresh && !a->reasoning) return 0;
    if (!m->n) return !weft__answer_is_space(*s);
    if (memcmp(s, m->text, n < m->n ? n : m->n)) return 0;
    if (n < m->n) return !final ? -1 : is_cut_lead(a, m, n);
    if (m->place != WEFT__ANSWER_LAST) return 1;
    for (size_t i = a->blank && a->blank_at == a->base + a->scan ? a->blank : m->n; i < n; i++)
        if (!weft__answer_is_space(s[i])) return 0;
    a->blank_at = a->base + a->scan;
    a->blank = n;
    return final ? 1 : -1;
}

/* The longest marker at scan: 1, 0, -1 as above. */
static int look(weft__answer *a, int final, const marker **found)
{
    int any = 0;
    *found = NULL;
    if (!a->first[(unsigned char)a->held.data[a->scan]] && !(a->nameless && a->fresh)) return 0;
    for (size_t i = 0; i < a->n_markers; i++) {
        const marker *m = &a->markers[i];
        int is = stands(a, m, final);
        if (is < 0) return -1;
        if (is && (!*found || m->n > (*found)->n)) *found = m;
        any |= is;
    }
    return any;
}

/* After a marker, or a call. */
static void begin_afresh(weft__answer *a, int trim)
{
    drop(a, a->scan);
    a->solid = 0;
    a->fresh = 1;
    a->trim = trim;
}

/* A marker at scan that is no call's: what is before it is told; it is not, unless reasoning is text. */
static weft_status pass_marker(weft__answer *a, const marker *m)
{
    const int is_text = !a->apart && m->kind != FRAMES;
    const size_t rest = a->held.len - a->scan, n = m->n < rest ? m->n : rest; /* one may have been cut */
    if (is_text) a->solid = a->scan += n;
    weft_status st = tell_text(a, a->solid);
    if (st) return st;
    if (!is_text) a->scan += n;
    begin_afresh(a, !is_text);
    a->ended |= m->kind == ENDS_REASONING;
    a->reasoning = m->kind == BEGINS_REASONING;
    return WEFT_OK;
}

/* ---- calls ---- */

/* The next form that may stand at scan is tried. 0: there is no other. */
static int try_next(weft__answer *a, int final)
{
    while (a->tried < a->n_markers) {
        const marker *m = &a->markers[a->tried++];
        if (m->kind != CALLS || stands(a, m, final) != 1) continue;
        weft__answer_call_begin(&a->call, m->form);
        return 1;
    }
    return 0;
}

static void begin_call(weft__answer *a, const marker *m, int final)
{
    a->calling = 1;
    a->told = 0;
    a->tried = 0;
    a->failed = m->n;
    a->shown = 0;
    a->cut = 0;
    try_next(a, final);
}

/* What looked like a call at scan is none. The beginning of it is text, and what is behind is looked through; or all of
 * it is, up to where that showed, or to the end. */
static void give_up(weft__answer *a)
{
    a->calling = 0;
    if (a->cut) a->scan = a->held.len;
    else if (!a->told) a->scan += a->shown > LOOK_AGAIN ? a->shown : a->failed;
    else return;
    a->solid = a->scan;
    a->fresh = 0;
}

static weft_status found_call(weft__answer *a)
{
    weft_status st = tell_text(a, a->solid);
    if (!st) st = tell_call(a, a->call.at);
    a->scan += a->call.at;
    a->call.at = 0;
    a->told = 1;
    a->reasoning = 0;
    begin_afresh(a, 1);
    return st;
}

/* The call at scan is of a function that is not offered: it is text, and no call is looked for in it. */
static void pass_call(weft__answer *a)
{
    a->calling = 0;
    a->scan += a->call.at;
    a->call.at = 0;
    a->solid = a->scan;
    a->fresh = 0;
}

/* Goes on with the call at scan. *waits: there must be more to do so. */
static weft_status go_on(weft__answer *a, int final, int *waits)
{
    weft__answer_call *c = &a->call;
    const size_t n = a->held.len - a->scan;
    weft__answer_found found = weft__answer_call_go(c, a->held.data + a->scan, n, final);
    size_t shown = c->at;
    if (c->name.failed || c->id.failed || c->arguments.failed)
        return weft_fail(a->err, WEFT_NO_MEMORY, "no memory for a call");
    if ((found == WEFT__ANSWER_FOUND ? c->at : found == WEFT__ANSWER_MORE ? n : 0) > WEFT__ANSWER_MAX_CALL) {
        found = WEFT__ANSWER_NO;
        shown = WEFT__ANSWER_MAX_CALL;
    }
    if (found == WEFT__ANSWER_FOUND && a->tools && !weft__answer_offers(a->tools, c->name.data, c->name.len)) {
        if (a->told || !try_next(a, final)) pass_call(a);
    } else if (found == WEFT__ANSWER_FOUND) {
        return found_call(a);
    } else if (found == WEFT__ANSWER_DONE) {
        a->scan += c->at;
        a->calling = 0;
        begin_afresh(a, 1);
    } else if (found == WEFT__ANSWER_MORE && !final) {
        *waits = 1;
    } else {
        if (shown > a->shown) a->shown = shown;
        a->cut |= found == WEFT__ANSWER_MORE;
        if (a->told || !try_next(a, final)) give_up(a);
    }
    return WEFT_OK;
}

/* ---- all of it ---- */

static weft_status advance(weft__answer *a, int final)
{
    weft_status st = WEFT_OK;
    int waits = 0;
    if (a->held.failed) return weft_fail(a->err, WEFT_NO_MEMORY, "no memory for an answer");
    while (!st && !waits && (a->calling || a->scan < a->held.len)) {
        const marker *m;
        if (a->calling) {
            st = go_on(a, final, &waits);
            continue;
        }
        int is = look(a, final, &m);
        if (is < 0) break;
        if (!is) {
            if (!weft__answer_is_space(a->held.data[a->scan++])) a->solid = a->scan, a->fresh = 0;
        } else if (m->kind == CALLS) {
            begin_call(a, m, final);
        } else {
            st = pass_marker(a, m);
        }
    }
    if (st) return st;
    return tell_text(a, final ? a->held.len : a->solid);
}

weft_status weft__answer_push(weft__answer *a, const char *text, size_t n, weft__answer_tell *to, void *arg,
                              weft_error *err)
{
    weft_status st = WEFT_OK;
    a->tell = to, a->arg = arg, a->err = err;
    for (size_t at = 0, more; at < n && !st; at += more) {
        more = n - at < PIECE ? n - at : PIECE;
        weft__strbuf_put(&a->held, text + at, more);
        st = advance(a, 0);
    }
    return st;
}

/* What is held behind n bytes of it is forgotten. */
static void keep_only(weft__answer *a, size_t n)
{
    if (a->held.len <= n) return;
    a->held.len = n;
    if (a->scan > n) a->scan = n;
    if (a->solid > n) a->solid = n;
}

weft_status weft__answer_finish(weft__answer *a, weft__answer_tell *to, void *arg, weft_error *err)
{
    a->tell = to, a->arg = arg, a->err = err;
    if (a->ends && a->reasoning) keep_only(a, a->ends_at > a->base ? a->ends_at - a->base : 0); /* it was cut */
    return advance(a, 1);
}
