// SPDX-License-Identifier: Apache-2.0
/* call.h: the steps of a form (format.h) taken through a text that grows, call by call. Each byte is looked at a
 * bounded number of times, however the text is cut. One thread per object. */
#ifndef WEFT_TEXT_ANSWER_CALL_H
#define WEFT_TEXT_ANSWER_CALL_H

#include "base/json.h"
#include "text/answer/format.h"
#include "text/answer/json.h"
#include "text/answer/loose.h"

/* Bytes of a name, an id or a key, and of a call. */
enum { WEFT__ANSWER_MAX_NAME = 256, WEFT__ANSWER_MAX_CALL = 1 << 20 };

typedef enum weft__answer_found {
    WEFT__ANSWER_NO = -1, /* it is none; `at` is where that shows */
    WEFT__ANSWER_MORE,    /* there must be more to say so */
    WEFT__ANSWER_FOUND,   /* a call, before `at` */
    WEFT__ANSWER_DONE     /* the form ended before `at` */
} weft__answer_found;

typedef struct weft__answer_slice {
    size_t at, n;
} weft__answer_slice;

typedef struct weft__answer_call {
    const weft__answer_format *format;
    const weft__answer_form *form;
    const weft__json *tools;            /* borrowed, or NULL */
    int phase;                          /* of call.c */
    const weft__answer_step *step;      /* the next one */
    const weft__answer_step *parameter; /* and within a parameter, or NULL */
    size_t at;                          /* bytes that steps took */
    size_t scanned;                     /* of what is behind, bytes that need no second look */
    weft__answer_json json;
    weft__answer_loose loose;
    weft__answer_slice key, type; /* of the parameter in hand */
    const weft__json *schema;     /* of the parameters */
    /* What was found; a failed one is one without memory. */
    weft__strbuf name, id, arguments;
} weft__answer_call;

void weft__answer_call_free(weft__answer_call *c);
/* At the first byte of a form; keeps c's memory, format and tools. */
void weft__answer_call_begin(weft__answer_call *c, const weft__answer_form *form);
/* Goes on in s[0..n), all of the text from the form's first byte, or that behind the last call. After FOUND: name, id
 * and arguments, and the text goes on behind c->at. final: the text ends there; a call is FOUND then if it lacks no
 * more than a marker's end. */
weft__answer_found weft__answer_call_go(weft__answer_call *c, const char *s, size_t n, int final);

/* object.c: fills in name, id and arguments from a call that is a JSON object in s[0..n), or its arguments from a
 * value that is one or spells one as a string. 0: it is none. */
int weft__answer_read_object(weft__answer_call *c, const char *s, size_t n);
int weft__answer_read_arguments(weft__answer_call *c, const char *s, size_t n);
/* elements.c: appends s[0..n), the elements of a call, as a JSON object. 0: they are none. */
int weft__answer_put_elements(weft__strbuf *out, const char *tag, const char *s, size_t n, const weft__json *schema);

#endif
