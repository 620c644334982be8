// SPDX-License-Identifier: Apache-2.0
/* format.h: what the formats of answers have in common, as data: the markers and the steps of a call of each family.
 *
 * An answer is text, reasoning and calls between markers. A call is a list of steps; a format has one or more forms of
 * calls, of which the first that fits holds. From the same table a grammar can be made: the texts that the steps take
 * are those that become calls, and what a step takes more freely than the format writes it (SPACE, MAYBE), it has in
 * `text` as it is written. Immutable. */
#ifndef WEFT_TEXT_ANSWER_FORMAT_H
#define WEFT_TEXT_ANSWER_FORMAT_H

#include <stddef.h>

typedef enum weft__answer_op {
    WEFT__ANSWER_END,
    WEFT__ANSWER_MARK,  /* text */
    WEFT__ANSWER_MAYBE, /* text, or nothing */
    WEFT__ANSWER_SPACE, /* white space, or none */
    /* A run of characters of names: neither white space nor any of "'<>()[]{},;=| */
    WEFT__ANSWER_NAME, /* the function's */
    WEFT__ANSWER_ID,
    WEFT__ANSWER_NAMED_ID, /* an id with the name in it: functions.NAME:0 */
    WEFT__ANSWER_SKIP,     /* such a run that says nothing new; text: what is written, "%" the name, NULL a number */
    /* The arguments, or all of a call. */
    WEFT__ANSWER_ARGUMENTS,  /* a JSON object, or one as a JSON string */
    WEFT__ANSWER_CALL,       /* a JSON object with members `keys`; keys->name NULL: {NAME: ARGUMENTS} */
    WEFT__ANSWER_PARAMETERS, /* the format's `parameter`, any number of times with white space around, to the next step,
                                which is a MARK */
    WEFT__ANSWER_KEYWORDS,   /* key=value, ... in Python's spelling, with the brackets */
    WEFT__ANSWER_PAIRS,      /* {key:value, ...} with bare keys, and strings between <|"|> */
    WEFT__ANSWER_ELEMENTS,   /* elements <key>value</key>, each tag after the format's `tag`; lists are of <item>; to
                                the next step, which is a MARK */
    /* Within a parameter: each up to the next step, which is a MARK. */
    WEFT__ANSWER_KEY,
    WEFT__ANSWER_TYPE, /* "string" or "true": the value is a string; otherwise it is JSON */
    WEFT__ANSWER_VALUE
} weft__answer_op;

typedef struct weft__answer_step {
    weft__answer_op op;
    const char *text; /* MARK, MAYBE, SPACE, SKIP */
} weft__answer_step;

/* Members of a call that is a JSON object. */
typedef struct weft__answer_keys {
    const char *name, *arguments;
    const char *id; /* or NULL */
} weft__answer_keys;

/* Lists of steps end with one of op END. */
typedef struct weft__answer_form {
    /* Only where no text stands between it and the answer's beginning, or the marker or the call before. */
    int first;
    const weft__answer_step *call;
    /* Of calls within a section: what begins it, stands between two of them, and ends it; all NULL without. */
    const weft__answer_step *open, *between, *close;
} weft__answer_form;

typedef enum weft__answer_place {
    WEFT__ANSWER_ANYWHERE,
    WEFT__ANSWER_FIRST, /* as `first` above */
    WEFT__ANSWER_LAST   /* where nothing but white space follows */
} weft__answer_place;

/* A marker that says no more than that text begins or ends. */
typedef struct weft__answer_frame {
    const char *text;
    weft__answer_place place;
} weft__answer_frame;

/* Reasoning begins where no text stands before it. */
typedef struct weft__answer_reasoning {
    const char *const *signs; /* what a template with it has, all of them, up to NULL */
    const char *begin, *end;
} weft__answer_reasoning;

/* How the values of parameters are spelled beside JSON. */
enum {
    WEFT__ANSWER_LINES = 1 << 0,  /* on lines of their own */
    WEFT__ANSWER_PYTHON = 1 << 1, /* as Python prints them */
    WEFT__ANSWER_CDATA = 1 << 2   /* strings may stand in <![CDATA[ ]]> */
};

typedef struct weft__answer_format {
    const char *name;
    const char *const *signs; /* as above; NULL: not to be found in a template's text */
    const weft__answer_form *forms;
    size_t n_forms;
    weft__answer_keys keys;
    const weft__answer_step *parameter;
    unsigned values;
    const char *tag;
    const weft__answer_frame *frames; /* up to one without text */
    /* NULL: what the template shows. */
    const weft__answer_reasoning *reasoning;
    const char *resume; /* what stands between reasoning and a call, or NULL */
    const char *answer; /* and between reasoning and text; NULL: an empty line */
    /* Calls may stand in reasoning, and end it: they begin with a special token that says nothing else. */
    int ends_reasoning;
} weft__answer_format;

/* How a template's answers are read. */
typedef struct weft__answer_style {
    const weft__answer_format *format;
    const weft__answer_reasoning *reasoning; /* or NULL */
} weft__answer_style;

/* All formats, in the order in which templates are asked for their signs; the last two are "generic" and "none". */
extern const weft__answer_format weft__answer_formats[];
extern const size_t weft__answer_n_formats;
/* Ways of reasoning that go with any format, in the order in which templates are asked for them. */
extern const weft__answer_reasoning weft__answer_reasonings[];
extern const size_t weft__answer_n_reasonings;

/* The style of a template, by its text source[0..n). shows_tools: it reads a variable with tools. */
weft__answer_style weft__answer_style_of(const char *source, size_t n, int shows_tools);

#endif
