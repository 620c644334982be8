// SPDX-License-Identifier: Apache-2.0
/* call.c: see call.h. */
#include "text/answer/call.h"

#include <string.h>

#include "text/answer/values.h"

enum phase { OPEN, CALL, CLOSE, BETWEEN, DONE };

/* White space between two parameters that is looked through. */
enum { LOOKAHEAD = 256 };

typedef struct view {
    const char *s;
    size_t n;
    int final;
} view;

void weft__answer_call_free(weft__answer_call *c)
{
    weft__strbuf_free(&c->name);
    weft__strbuf_free(&c->id);
    weft__strbuf_free(&c->arguments);
}

static void begin_call(weft__answer_call *c, int phase, const weft__answer_step *step)
{
    c->phase = phase;
    c->step = step;
    c->parameter = NULL;
    c->at = 0;
    c->scanned = 0;
    c->json = (weft__answer_json){0};
    c->loose = (weft__answer_loose){0};
    c->schema = NULL;
    c->name.len = c->id.len = c->arguments.len = 0;
}

void weft__answer_call_begin(weft__answer_call *c, const weft__answer_form *form)
{
    c->form = form;
    begin_call(c, form->open ? OPEN : CALL, form->open ? form->open : form->call);
}

/* Whether s[0..n) begins with `mark`, is the beginning of it, or neither. */
static weft__answer_found begins(const char *s, size_t n, const char *mark)
{
    const size_t length = strlen(mark);
    if (memcmp(s, mark, n < length ? n : length)) return WEFT__ANSWER_NO;
    return n < length ? WEFT__ANSWER_MORE : WEFT__ANSWER_DONE;
}

/* ---- steps that stand for little ---- */

static weft__answer_found take_space(weft__answer_call *c, const view *t)
{
    while (c->at < t->n && weft__answer_is_space(t->s[c->at])) c->at++;
    return c->at < t->n || t->final ? WEFT__ANSWER_DONE : WEFT__ANSWER_MORE;
}

static weft__answer_found take_mark(weft__answer_call *c, const view *t, int optional)
{
    const char *mark = c->step->text;
    weft__answer_found found = begins(t->s + c->at, t->n - c->at, mark);
    if (found == WEFT__ANSWER_DONE) c->at += strlen(mark);
    else if (optional && (found == WEFT__ANSWER_NO || t->final)) found = WEFT__ANSWER_DONE;
    return found;
}

static weft__answer_found take_run(weft__answer_call *c, const view *t, weft__answer_slice *out)
{
    size_t at = c->at;
    while (at < t->n && (unsigned char)t->s[at] > ' ' && !strchr("\"'<>()[]{},;=|", t->s[at])) at++;
    *out = (weft__answer_slice){c->at, at - c->at};
    if (out->n > WEFT__ANSWER_MAX_NAME) return WEFT__ANSWER_NO;
    if (at == t->n) return WEFT__ANSWER_MORE;
    c->at = at;
    return out->n ? WEFT__ANSWER_DONE : WEFT__ANSWER_NO;
}

static weft__answer_found take_name(weft__answer_call *c, const view *t)
{
    static const char functions[] = "functions.";
    const weft__answer_op op = c->step->op;
    weft__answer_slice run;
    weft__answer_found found = take_run(c, t, &run);
    if (found != WEFT__ANSWER_DONE || op == WEFT__ANSWER_SKIP) return found;
    const char *s = t->s + run.at;
    if (op != WEFT__ANSWER_NAME) weft__strbuf_put(&c->id, s, run.n);
    if (op == WEFT__ANSWER_NAMED_ID) {
        const char *colon = memrchr(s, ':', run.n);
        if (colon) run.n = (size_t)(colon - s);
        if (run.n > sizeof functions - 1 && !memcmp(s, functions, sizeof functions - 1))
            s += sizeof functions - 1, run.n -= sizeof functions - 1;
        if (!run.n) return WEFT__ANSWER_NO;
    }
    if (op != WEFT__ANSWER_ID) weft__strbuf_put(&c->name, s, run.n);
    return found;
}

/* ---- steps that stand for the arguments ---- */

/* A call that begins without a marker has its members' names early, so that other JSON is not held back. */
static int may_be_call(const weft__answer_call *c, const char *s, size_t n)
{
    const char *names[] = {"name", "arguments", "parameters", "id", "type", "function", c->format->keys.name};
    size_t at = 1;
    while (at < n && weft__answer_is_space(s[at])) at++;
    if (at == n) return 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t left = n - at - 1, length = strlen(names[i]);
        if (s[at] == '"' && !memcmp(s + at + 1, names[i], left < length ? left : length) &&
            (left <= length || s[at + 1 + length] == '"'))
            return 1;
    }
    return 0;
}

static weft__answer_found take_json(weft__answer_call *c, const view *t)
{
    const char *s = t->s + c->at;
    const size_t n = t->n - c->at;
    const int call = c->step->op == WEFT__ANSWER_CALL;
    size_t used = 0;
    if (!n) return WEFT__ANSWER_MORE;
    if (*s != '{' && (call || *s != '"')) return WEFT__ANSWER_NO;
    if (call && c->form->first && !may_be_call(c, s, n)) return WEFT__ANSWER_NO;
    int ended = weft__answer_json_feed(&c->json, s + c->scanned, n - c->scanned, &used);
    c->scanned += used;
    if (ended <= 0) return ended ? WEFT__ANSWER_NO : WEFT__ANSWER_MORE;
    c->at += c->scanned;
    return (call ? weft__answer_read_object(c, s, c->scanned) : weft__answer_read_arguments(c, s, c->scanned))
               ? WEFT__ANSWER_DONE
               : WEFT__ANSWER_NO;
}

static weft__answer_found take_loose(weft__answer_call *c, const view *t)
{
    const char *s = t->s + c->at;
    if (c->at == t->n) return WEFT__ANSWER_MORE;
    if (*s != (c->step->op == WEFT__ANSWER_KEYWORDS ? '(' : '{')) return WEFT__ANSWER_NO;
    int ended = weft__answer_loose_extent(&c->loose, s, t->n - c->at);
    if (ended <= 0) return ended ? WEFT__ANSWER_NO : WEFT__ANSWER_MORE;
    c->at += c->loose.at;
    return weft__answer_loose_members(&c->arguments, s, c->loose.at) ? WEFT__ANSWER_DONE : WEFT__ANSWER_NO;
}

/* Looks for `mark` in what was not looked at yet; *at is where it is. */
static int find(weft__answer_call *c, const view *t, const char *mark, size_t *at)
{
    const size_t length = strlen(mark), from = c->at + c->scanned;
    const char *found = memmem(t->s + from, t->n - from, mark, length);
    if (found) *at = (size_t)(found - t->s);
    else if (t->n - c->at >= length) c->scanned = t->n - c->at - length + 1;
    return found != NULL;
}

static weft__answer_found take_elements(weft__answer_call *c, const view *t)
{
    size_t end;
    if (!find(c, t, c->step[1].text, &end)) return WEFT__ANSWER_MORE;
    const char *s = t->s + c->at;
    size_t n = end - c->at;
    c->at = end;
    return weft__answer_put_elements(&c->arguments, c->format->tag, s, n, c->schema) ? WEFT__ANSWER_DONE
                                                                                     : WEFT__ANSWER_NO;
}

/* ---- parameters ---- */

/* What stands behind a parameter or the name, at `at`: *next is the step that goes on with it. */
static weft__answer_found look_behind(const weft__answer_call *c, const view *t, size_t *at,
                                      const weft__answer_step **next)
{
    const weft__answer_step *ways[] = {c->format->parameter, c->step + 1};
    const size_t from = *at;
    weft__answer_found best = WEFT__ANSWER_NO;
    while (*at < t->n && *at - from <= LOOKAHEAD && weft__answer_is_space(t->s[*at])) ++*at;
    for (int i = 0; i < 2; i++) {
        weft__answer_found found = begins(t->s + *at, t->n - *at, ways[i]->text);
        if (found > best) best = found, *next = ways[i];
    }
    return best;
}

static weft__answer_found take_key(weft__answer_call *c, const view *t, weft__answer_slice *out)
{
    size_t end = t->n;
    const int found = find(c, t, c->parameter[1].text, &end);
    *out = (weft__answer_slice){c->at, end - c->at};
    if (out->n > WEFT__ANSWER_MAX_NAME || memchr(t->s + out->at, '\n', out->n)) return WEFT__ANSWER_NO;
    if (!found) return WEFT__ANSWER_MORE;
    c->at = end;
    return WEFT__ANSWER_DONE;
}

static void put_parameter(weft__answer_call *c, const char *s, weft__answer_slice value)
{
    const unsigned spelled = c->format->values;
    const char *key = s + c->key.at, *type = s + c->type.at, *text = s + value.at;
    const weft__json *schema = weft__answer_schema_of(c->schema, key, c->key.n);
    size_t n = value.n;
    int string = (c->type.n == 6 && !memcmp(type, "string", 6)) || (c->type.n == 4 && !memcmp(type, "true", 4));
    if (spelled & WEFT__ANSWER_LINES) {
        if (n && *text == '\n') text++, n--;
        if (n && text[n - 1] == '\n') n--;
    }
    if (c->arguments.len > 1) weft__strbuf_putc(&c->arguments, ',');
    weft__json_write_string(&c->arguments, key, c->key.n);
    weft__strbuf_putc(&c->arguments, ':');
    if (string) weft__json_write_string(&c->arguments, text, n);
    else weft__answer_put_value(&c->arguments, text, n, c->type.n ? NULL : schema, spelled);
}

/* A value ends at its marker where a parameter, or what follows the parameters, stands behind: it may spell the marker
 * itself. */
static weft__answer_found take_value(weft__answer_call *c, const view *t)
{
    const char *mark = c->parameter[1].text;
    const weft__answer_step *next;
    size_t end, behind;
    while (find(c, t, mark, &end)) {
        behind = end + strlen(mark);
        weft__answer_found found = look_behind(c, t, &behind, &next);
        c->scanned = end - c->at; /* from here once more, or what follows */
        if (found == WEFT__ANSWER_MORE) return found;
        if (found == WEFT__ANSWER_DONE) {
            put_parameter(c, t->s, (weft__answer_slice){c->at, end - c->at});
            c->at = end;
            return found;
        }
        c->scanned++;
    }
    return WEFT__ANSWER_MORE;
}

static weft__answer_found take_in_parameter(weft__answer_call *c, const view *t)
{
    const weft__answer_step *whole = c->step;
    weft__answer_found found;
    switch (c->parameter->op) {
    case WEFT__ANSWER_KEY: return take_key(c, t, &c->key);
    case WEFT__ANSWER_TYPE: return take_key(c, t, &c->type);
    case WEFT__ANSWER_VALUE: return take_value(c, t);
    case WEFT__ANSWER_SPACE: return take_space(c, t);
    default:
        c->step = c->parameter;
        found = take_mark(c, t, 0);
        c->step = whole;
        return found;
    }
}

static weft__answer_found take_parameters(weft__answer_call *c, const view *t)
{
    const weft__answer_step *next = NULL;
    if (!c->arguments.len) weft__strbuf_putc(&c->arguments, '{');
    for (;;) {
        while (c->parameter && c->parameter->op) {
            weft__answer_found found = take_in_parameter(c, t);
            if (found != WEFT__ANSWER_DONE) return found;
            c->parameter++;
            c->scanned = 0;
        }
        c->parameter = NULL;
        size_t at = c->at;
        weft__answer_found found = look_behind(c, t, &at, &next);
        if (found != WEFT__ANSWER_DONE) return found;
        c->at = at;
        c->type.n = 0;
        if (next != c->format->parameter) break;
        c->parameter = next;
    }
    weft__strbuf_putc(&c->arguments, '}');
    return WEFT__ANSWER_DONE;
}

/* ---- lists of steps ---- */

static weft__answer_found take_step(weft__answer_call *c, const view *t)
{
    switch (c->step->op) {
    case WEFT__ANSWER_MARK:
    case WEFT__ANSWER_MAYBE: return take_mark(c, t, c->step->op == WEFT__ANSWER_MAYBE);
    case WEFT__ANSWER_SPACE: return take_space(c, t);
    case WEFT__ANSWER_NAME:
    case WEFT__ANSWER_ID:
    case WEFT__ANSWER_NAMED_ID:
    case WEFT__ANSWER_SKIP: return take_name(c, t);
    case WEFT__ANSWER_ARGUMENTS:
    case WEFT__ANSWER_CALL: return take_json(c, t);
    case WEFT__ANSWER_KEYWORDS:
    case WEFT__ANSWER_PAIRS: return take_loose(c, t);
    case WEFT__ANSWER_ELEMENTS: return take_elements(c, t);
    default: return take_parameters(c, t);
    }
}

static weft__answer_found take_steps(weft__answer_call *c, const view *t)
{
    while (c->step->op) {
        if (!c->schema && c->name.len && c->step->op >= WEFT__ANSWER_PARAMETERS)
            c->schema = weft__answer_schema(c->tools, c->name.data, c->name.len);
        weft__answer_found found = take_step(c, t);
        if (found != WEFT__ANSWER_DONE) return found;
        c->step++;
        c->scanned = 0;
    }
    return WEFT__ANSWER_DONE;
}

/* Whether nothing is missing but marks. */
static int is_whole(const weft__answer_call *c)
{
    for (const weft__answer_step *s = c->step; s->op; s++)
        if (s->op > WEFT__ANSWER_SPACE) return 0;
    return 1;
}

/* The steps of a call are taken: its arguments are to be an object that parses. */
static weft__answer_found finish_call(weft__answer_call *c)
{
    weft__json *v = NULL;
    weft_status st = WEFT_OK;
    if (c->name.failed || c->id.failed || c->arguments.failed || !c->arguments.len) return WEFT__ANSWER_NO;
    st = weft__json_parse_repeated(c->arguments.data, c->arguments.len, &v, NULL);
    if (st == WEFT_NO_MEMORY) c->arguments.failed = 1;
    weft__json_free(&v);
    c->phase = c->form->open ? CLOSE : DONE;
    c->step = c->form->close;
    return st ? WEFT__ANSWER_NO : WEFT__ANSWER_FOUND;
}

/* Behind a call of a section, at byte c->at: its end, or else what leads to the next call. White space before either is
 * looked at once. */
static weft__answer_found take_end(weft__answer_call *c, const view *t)
{
    weft__answer_found found = take_space(c, t);
    if (found != WEFT__ANSWER_DONE) return found;
    const size_t at = c->at;
    begin_call(c, CLOSE, c->form->close);
    c->at = at;
    found = take_steps(c, t);
    if (found == WEFT__ANSWER_NO) begin_call(c, BETWEEN, c->form->between);
    if (found != WEFT__ANSWER_DONE) c->at = at;
    return found;
}

weft__answer_found weft__answer_call_go(weft__answer_call *c, const char *s, size_t n, int final)
{
    const view t = {s, n, final};
    weft__answer_found found;
    for (;;) {
        if (c->phase == DONE) return WEFT__ANSWER_DONE;
        if (c->phase == CLOSE) {
            found = take_end(c, &t);
            if (found != WEFT__ANSWER_NO) return found;
        }
        found = take_steps(c, &t);
        if (c->phase == CALL && found == WEFT__ANSWER_MORE && final && is_whole(c)) {
            c->at = n;
            found = WEFT__ANSWER_DONE;
        }
        if (found != WEFT__ANSWER_DONE) return found;
        if (c->phase == CALL) return finish_call(c);
        c->phase = CALL;
        c->step = c->form->call;
    }
}
