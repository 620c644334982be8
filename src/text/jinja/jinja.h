// SPDX-License-Identifier: Apache-2.0
/* jinja.h: chat templates, as jinja2 would render them the way Hugging Face sets it up (sandboxed, trim_blocks,
 * lstrip_blocks, loop controls, its own tojson, raise_exception, strftime_now).
 *
 * Invariant: every byte of the output is known to come either from the template (and from strings set as trusted) or
 * from the user; where a transformation makes that hard to tell, it counts as the user's. So a caller may parse special
 * tokens in the template's bytes and never in the user's. A compiled template is immutable and may be rendered by
 * several threads at once; a call belongs to one thread. Everything a rendering allocates lies in its call and goes
 * with it. */
#ifndef WEFT_TEXT_JINJA_H
#define WEFT_TEXT_JINJA_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "weft/error.h"

typedef struct weft__jinja weft__jinja;           /* a compiled template */
typedef struct weft__jinja_call weft__jinja_call; /* the variables of one rendering, and its memory */

/* Templates longer than this many bytes are refused. */
#define WEFT__JINJA_MAX_SOURCE (4u << 20)

/* Compiles source[0..n) (UTF-8; copied). Fails with WEFT_FORMAT ("line 3: ..."), WEFT_UNSUPPORTED for tags and filters
 * that this interpreter lacks, WEFT_LIMIT (too long, nested too deeply) or WEFT_NO_MEMORY; *out is NULL then. */
weft_status weft__jinja_compile(const char *source, size_t n, weft__jinja **out, weft_error *err);
/* The same as jinja2 is by itself, where it keeps the last newline and has StrictUndefined: no trim_blocks, no
 * lstrip_blocks, and what is undefined cannot be printed, looped over or compared. Task files are meant so. */
weft_status weft__jinja_compile_plain(const char *source, size_t n, weft__jinja **out, weft_error *err);
void weft__jinja_destroy(weft__jinja **t);
/* 1 when the template reads a variable of this name that it has not set itself before: one of a rendering's, or
 * undefined. Setting any other changes nothing. */
int weft__jinja_reads(const weft__jinja *t, const char *name);

/* What one rendering may cost; whatever is exceeded, it fails with WEFT_LIMIT. */
typedef struct weft__jinja_limits {
    uint64_t max_steps; /* nodes visited, items looped over, and 64-byte pieces of text worked on */
    uint32_t
        max_depth;     /* nested expressions, statements, macro calls and values; a level takes up to 1.5 kB of stack */
    size_t max_output; /* bytes of output */
    size_t max_memory; /* bytes of everything the rendering holds, variables included */
} weft__jinja_limits;

/* `limits` NULL: 20 million steps, depth 1000, 64 MiB of output, 512 MiB of memory. Fails with WEFT_NO_MEMORY. */
weft_status weft__jinja_call_create(const weft__jinja_limits *limits, weft__jinja_call **out, weft_error *err);
void weft__jinja_call_destroy(weft__jinja_call **call);

/* Lets the template change lists and dicts (append, pop, update ...). Off at first, since Hugging Face's sandbox
 * refuses it, with the exception of list.pop, which Debian's jinja2 lets through. */
void weft__jinja_allow_mutation(weft__jinja_call *call, int allow);
/* The time strftime_now tells, in Unix seconds, printed in the process's local time zone. Before the first call, the
 * function is not defined. */
void weft__jinja_set_now(weft__jinja_call *call, int64_t unix_seconds);

/* Says of a string inside the JSON of weft__jinja_set_json whether the template may be trusted with it as with its own
 * text (1) or it is the user's (0). `key` names the object member that holds it, "" for an array element, and `depth`
 * counts the containers around it: the role in [{"role": "user"}] has depth 2. Object keys themselves are always the
 * user's. */
typedef int (*weft__jinja_trust)(void *arg, const char *key, int depth, const char *text, size_t n);

/* Each sets the global variable `name` and copies what it is given. A value set again replaces the earlier one. Fail
 * with WEFT_NO_MEMORY, WEFT_LIMIT (max_memory), WEFT_FORMAT (not UTF-8). */
weft_status weft__jinja_set_bool(weft__jinja_call *call, const char *name, int value, weft_error *err);
weft_status weft__jinja_set_string(weft__jinja_call *call, const char *name, const char *s, size_t n, int from_user,
                                   weft_error *err);
/* `trust` NULL: every string is the user's. */
weft_status weft__jinja_set_json(weft__jinja_call *call, const char *name, const weft__json *value,
                                 weft__jinja_trust trust, void *trust_arg, weft_error *err);

typedef struct weft__jinja_segment {
    size_t offset, len; /* bytes in the output's text */
    int from_user;
} weft__jinja_segment;

/* The segments cover the text in order without gaps, and neighbours differ in from_user; none is empty. */
typedef struct weft__jinja_output {
    char *text; /* UTF-8, NUL-terminated */
    size_t len;
    weft__jinja_segment *segments;
    size_t n_segments;
} weft__jinja_output;

/* Renders once: a call is used up by it, whatever the outcome. Fails with WEFT_ARGUMENT when the template refuses these
 * variables (raise_exception) or cannot work with them (something undefined, a wrong type), WEFT_UNSUPPORTED,
 * WEFT_LIMIT, WEFT_NO_MEMORY or WEFT_STATE (rendered before). Messages begin with the template's line. On failure *out
 * is empty. */
weft_status weft__jinja_render(const weft__jinja *t, weft__jinja_call *call, weft__jinja_output *out, weft_error *err);
void weft__jinja_output_free(weft__jinja_output *out);

#endif
