// SPDX-License-Identifier: Apache-2.0
/* messages.h: the messages of a conversation as chat templates take them, whatever a client's dialect made of them.
 *
 * One normalization, for serving a model, chatting with it and training it:
 *   - a member that is null is not there: of a message, of its calls, of their functions. What null means within
 *     arguments is theirs.
 *   - an empty "tool_calls" is none.
 *   - "content" is one string (content.h); none is an empty one, also beside calls. Where it is absent, it comes last;
 *     all else keeps its place, which templates that print messages show.
 *   - the role "developer" is "system".
 *   - a "function_call" is a list of one call under "tool_calls", unless there are some, and the role "function" is
 *     "tool": for all templates but those that show a function_call themselves, and for callers that pass messages on.
 *   - "arguments" of a call are an object, and where they are text, it is read as JSON. None, null and blank text are
 *     {}, which clients send for functions without parameters. Text that is no JSON object is refused.
 *   - for templates that want text they are text: as it came, or an object's JSON.
 *   - for templates that show calls only of a message without content, content that is empty beside them is null.
 *
 * Which templates want text. Nothing in a template says so, and names are no help; so a conversation with a call is
 * rendered twice, with the arguments as an object and as text. A template wants text when it refuses the object, or
 * leaves its values out, or prints it as Python prints a dict, while it takes the text. One that takes both gets
 * objects, so that both spellings give one prompt; so does one that shows neither. Templates that refuse calls without
 * tools are asked with some. One that shows the call in none of these ways is asked once more, with null as content.
 * Invariant: normalizing twice is normalizing once. Stateless but for the count of a
 * reading, which one thread has. */
#ifndef WEFT_TEXT_CHAT_MESSAGES_H
#define WEFT_TEXT_CHAT_MESSAGES_H

#include "text/chat/template.h"

typedef enum weft__chat_arguments_form {
    WEFT__CHAT_ARGUMENTS_OBJECT, /* what most templates want */
    WEFT__CHAT_ARGUMENTS_TEXT,
    WEFT__CHAT_ARGUMENTS_TEXT_ALONE, /* and null as content beside calls alone */
    WEFT__CHAT_ARGUMENTS_GIVEN       /* as they came, only checked: for callers that pass messages on */
} weft__chat_arguments_form;

/* What this template wants: OBJECT, TEXT or TEXT_ALONE. Renders a few short conversations. */
weft__chat_arguments_form weft__chat_template_arguments(const weft__chat_template *t);

/* Does this template know "function_call", and show what is in it? Renders a short conversation. */
int weft__chat_template_functions(const weft__chat_template *t);

/* Trees that the arguments of one reading may become, in bytes beyond those of their text. */
#define WEFT__CHAT_ARGUMENTS_MAX_TREE (32u << 20)

/* Messages of one request. Set `form` and `functions`, leave the rest zero. */
typedef struct weft__chat_reading {
    weft__chat_arguments_form form;
    int functions;     /* the template knows "function_call" */
    size_t tree_bytes; /* of arguments so far, about */
    char field[96];    /* after a failure: what it is about, "messages[2].tool_calls[0].function.arguments" */
} weft__chat_reading;

/* Message m normalized: *out is the caller's, NULL on failure. where: what to call it, "messages[2]". Fails with
 * WEFT_ARGUMENT (a wrong type, arguments that are no JSON), WEFT_UNSUPPORTED (a part of its content that is no text),
 * WEFT_LIMIT (arguments too large or too deep), WEFT_NO_MEMORY; the message begins with the field in quotes. */
weft_status weft__chat_message_normal(weft__chat_reading *r, const weft__json *m, const char *where, weft__json **out,
                                      weft_error *err);

/* The same of each message of a list, which are called "messages[0]" and so on. */
weft_status weft__chat_messages_normal(weft__chat_reading *r, const weft__json *messages, weft__json **out,
                                       weft_error *err);

/* Tools without the members that are null, of a tool and of its function; schemas stay as they are. *out is NULL where
 * there are none: absent, null or an empty list. Fails with WEFT_ARGUMENT (no list), WEFT_NO_MEMORY. */
weft_status weft__chat_tools_normal(const weft__json *tools, weft__json **out, weft_error *err);

/* Variables of a template without those that are null, which leaves it its defaults, and with enable_thinking, true
 * where they do not name it. `kwargs` may be NULL or null. Fails with WEFT_ARGUMENT (no object), WEFT_NO_MEMORY. */
weft_status weft__chat_kwargs_normal(const weft__json *kwargs, weft__json **out, weft_error *err);

#endif
