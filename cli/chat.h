// SPDX-License-Identifier: Apache-2.0
/* chat.h: what the files of weft chat share: the conversation, its input, and the commands. One thread. */
#ifndef WEFT_CLI_CHAT_H
#define WEFT_CLI_CHAT_H

#include <limits.h>
#include <stdio.h>

#include "adapters.h"
#include "answer_form.h"
#include "chat_input.h"
#include "conversation.h"
#include "editor.h"
#include "rope.h"

struct chat_options {
    int32_t n, threads, n_ctx;
    weft_sampler_params sampler;
    const char *system, *template_file, *kwargs, *kv_type, *spec, *draft;
    answer_form form;
    int no_history, show_thinking;
    struct text_list adapters;
    struct adapter_option adapter[LIST_MAX];
    rope_options rope;
    overflow_options overflow;
};

/* An adapter that can be named, those of --adapter first. */
struct chat_adapter {
    struct adapter_option option; /* its scale: the one last used */
    int in_use;
};

typedef struct chat {
    const struct chat_options *o;
    const char *model; /* its path or name */
    conversation c;
    weft_model *draft; /* guesses for the conversation's; NULL: none */
    weft_sampler *sampler;
    weft_model_info info;
    struct chat_adapter adapters[LIST_MAX];
    int n_adapters;
    chat_input in;
    editor ed;
    history past;
    int interactive;     /* a person types, and sees what is written */
    FILE *notes;         /* where all but answers is told */
    char file[PATH_MAX]; /* of the last /save or /load; "": none */
    int shows_thinking;  /* else it is folded into a line */
    int failed, left;
} chat;

/* Tells of an error; the program will exit with it unless it is interactive. */
void chat_complain(chat *c, const weft_error *err);
/* Tells of something, where a person types: a line, with brackets around it. */
void chat_note(const chat *c, const char *format, ...) WEFT_PRINTF(2, 3);

/* Lets the model answer once more, or what was loaded; the conversation is as before when there is no answer. */
void chat_answer_again(chat *c);

/* Is this a command, "/word" and what follows? Paths, and text of several lines, are none, but "/system". */
int chat_is_command(const char *text, size_t n);
void chat_command(chat *c, const char *text);
/* A completer, of a chat *: commands, adapters, files. */
void chat_complete(void *arg, const char *line, size_t at, completions *out);
/* A name of a command; NULL behind the last. */
const char *chat_command_name(int i);

/* Gives the session what is in use; the conversation is read anew with it. On failure all is as before. */
weft_status chat_use_adapters(chat *c, const int *in_use, const float *scales, weft_error *err);
/* Appends "pirate:0.7 + letter", or "none". */
void chat_name_adapters(const chat *c, weft__strbuf *out);

/* `path` with "~/" spelled out; 0 when it is too long. */
int chat_expand(const char *path, char out[PATH_MAX]);

#endif
