// SPDX-License-Identifier: Apache-2.0
/* chat_commands.c: what begins with '/' at the prompt of weft chat (chat.h). */
#include "chat.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "outputs.h"
#include "shown.h"
#include "terminal.h"

void chat_note(const chat *c, const char *format, ...)
{
    char text[2 * PATH_MAX];
    va_list args;
    if (!c->interactive) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    shown s;
    shown_begin(&s, c->notes);
    shown_put(&s, "[", 1);
    shown_put(&s, text, strlen(text));
    shown_put(&s, "]\n", 2);
    shown_end(&s);
}

/* A path that follows a command; the last one where there is none. 0 after a message. */
static int path_for(chat *c, const char *command, const char *argument, char path[PATH_MAX])
{
    weft_error err = {0};
    if (argument[0] && chat_expand(argument, path)) return 1;
    if (argument[0]) weft_fail(&err, WEFT_LIMIT, "%s: the name is too long", command);
    else if (c->file[0]) return !!strcpy(path, c->file);
    else weft_fail(&err, WEFT_ARGUMENT, "%s FILE: a name is needed", command);
    chat_complain(c, &err);
    return 0;
}

/* The model, the template and adapters are no places for a conversation. */
static int is_read(const chat *c, const char *path)
{
    int found = output_is_input("chat", path, c->model) || output_is_input("chat", path, c->o->template_file);
    for (int i = 0; i < c->n_adapters && !found; i++) found = output_is_input("chat", path, c->adapters[i].option.path);
    return found;
}

static void save(chat *c, const char *argument)
{
    char path[PATH_MAX];
    weft_error err = {0};
    if (!path_for(c, "/save", argument, path)) return;
    if (is_read(c, path)) {
        c->failed = 1;
        return;
    }
    if (conversation_save(&c->c, path, &err)) {
        chat_complain(c, &err);
        return;
    }
    strcpy(c->file, path);
    chat_note(c, "%zu messages in %s", weft__json_size(c->c.messages), path);
}

static void chat_commands_load(chat *c, const char *argument)
{
    char path[PATH_MAX];
    weft_error err = {0};
    if (!path_for(c, "/load", argument, path)) return;
    if (conversation_load(&c->c, path, &err)) {
        chat_complain(c, &err);
        return;
    }
    strcpy(c->file, path);
    chat_note(c, "%zu messages of %s; %s", weft__json_size(c->c.messages), path,
              conversation_ends_with(&c->c, "user") ? "/regen answers the last" : "go on");
}

static void begin_anew(chat *c, const char *system)
{
    weft_error err = {0};
    if (!conversation_reset(&c->c, system)) {
        weft_fail(&err, WEFT_NO_MEMORY, "no memory for the conversation");
        chat_complain(c, &err);
    } else chat_note(c, system ? "begun anew, with a system message" : "begun anew");
}

static void system_message(chat *c, const char *argument)
{
    begin_anew(c, argument[0] ? argument : NULL);
}

/* Begins anew, with the conversation's first message where it is the system's. */
static void reset(chat *c, const char *argument)
{
    const weft__json *first = weft__json_at(c->c.messages, 0);
    const char *text = NULL;
    size_t n;
    (void)argument;
    if (weft__json_is(weft__json_get(first, "role"), "system"))
        weft__json_string(weft__json_get(first, "content"), &text, &n);
    char *copy = text ? strdup(text) : NULL;
    begin_anew(c, copy);
    free(copy);
}

static void again(chat *c, const char *argument)
{
    (void)argument;
    chat_answer_again(c);
}

static void stats(chat *c, const char *argument)
{
    const conversation *v = &c->c;
    (void)argument;
    char text[256];
    shown s;
    snprintf(text, sizeof text,
             "context %d of %d tokens; last answer: %d reused, %d read at %.1f t/s, %d written at %.1f t/s\n",
             weft_session_n_tokens(v->session), weft_session_n_ctx(v->session), v->n_reused, v->n_prompt,
             v->prefill_ms > 0 ? v->n_prompt * 1000 / v->prefill_ms : 0, v->n_generated,
             v->decode_ms > 0 ? v->n_generated * 1000 / v->decode_ms : 0);
    shown_begin(&s, c->notes);
    shown_put(&s, text, strlen(text));
    shown_end(&s);
}

/* "on", "off", or the last answer's thoughts. */
static void think(chat *c, const char *argument)
{
    const weft__strbuf *thought = &c->c.thought;
    weft_error err = {0};
    shown s;
    if (!strcmp(argument, "on") || !strcmp(argument, "off")) {
        c->shows_thinking = argument[1] == 'n';
        chat_note(c, "thoughts are %s", c->shows_thinking ? "shown" : "folded");
        return;
    }
    if (argument[0]) {
        weft_fail(&err, WEFT_ARGUMENT, "/think %.40s: must be on, off or nothing", argument);
        chat_complain(c, &err);
        return;
    }
    shown_begin(&s, c->notes);
    if (thought->len) shown_put(&s, thought->data, thought->len);
    else shown_put(&s, "the last answer has no thoughts", 31);
    shown_put(&s, "\n", 1);
    shown_end(&s);
}

static void leave(chat *c, const char *argument)
{
    (void)argument;
    c->left = 1;
}

/* ---- adapters ---- */

void chat_name_adapters(const chat *c, weft__strbuf *out)
{
    int n = 0;
    for (int i = 0; i < c->n_adapters; i++) {
        const struct adapter_option *a = &c->adapters[i].option;
        if (!c->adapters[i].in_use) continue;
        weft__strbuf_printf(out, "%s%s", n++ ? " + " : "", a->name);
        if (a->scale != 1) weft__strbuf_printf(out, ":%g", (double)a->scale);
    }
    if (!n) weft__strbuf_puts(out, "none");
}

static void list_adapters(const chat *c)
{
    for (int i = 0; i < c->n_adapters; i++) {
        const struct adapter_option *a = &c->adapters[i].option;
        fprintf(c->notes, "%c ", c->adapters[i].in_use ? '*' : ' ');
        print_clean(c->notes, a->name, strlen(a->name), 20);
        fprintf(c->notes, " %-6g ", (double)a->scale);
        print_clean(c->notes, a->path, strlen(a->path), 0);
        putc('\n', c->notes);
    }
    if (!c->n_adapters) fputs("no adapters; /adapter NAME=PATH takes one\n", c->notes);
}

static int find_adapter(const chat *c, const char *name, size_t n)
{
    for (int i = 0; i < c->n_adapters; i++)
        if (strlen(c->adapters[i].option.name) == n && !memcmp(c->adapters[i].option.name, name, n)) return i;
    return -1;
}

/* "NAME" or "NAME:SCALE"; -1 after a message in err. */
static int named_adapter(const chat *c, const char *word, size_t n, float *scale, weft_error *err)
{
    int i = find_adapter(c, word, n);
    const char *colon = memrchr(word, ':', n);
    if (i < 0 && colon) {
        char *end;
        i = find_adapter(c, word, (size_t)(colon - word));
        *scale = strtof(colon + 1, &end);
        if (i >= 0 && (end == colon + 1 || end != word + n)) {
            weft_fail(err, WEFT_ARGUMENT, "/adapter %.*s: what is behind the colon is no scale", (int)n, word);
            return -1;
        }
    }
    if (i < 0)
        weft_fail(err, WEFT_NOT_FOUND,
                  "there is no adapter %.*s; /adapter lists those there are, /adapter NAME=PATH takes another", (int)n,
                  word);
    return i;
}

/* "NAME[:SCALE] ..." or "none", as what is to be in use. */
static weft_status choose_adapters(const chat *c, const char *words, int *in_use, float *scales, weft_error *err)
{
    if (!strcmp(words, "none")) return WEFT_OK;
    for (const char *w = words; *w; w += strspn(w, " \t")) {
        const size_t n = strcspn(w, " \t");
        float scale = 1;
        const int i = named_adapter(c, w, n, &scale, err);
        if (i < 0) return err->status;
        in_use[i] = 1;
        scales[i] = scale;
        w += n;
    }
    return WEFT_OK;
}

/* "NAME=PATH[:SCALE]": the adapter's place in the list, which it has for good when it can be used. -1 after a
 * message. */
static int new_adapter(chat *c, const char *text)
{
    weft_error err = {0};
    struct adapter_option option;
    char path[PATH_MAX], spelled[2 * PATH_MAX];
    const char *equals = strchr(text, '=');
    snprintf(spelled, sizeof spelled, "%s", text);
    if (equals && chat_expand(equals + 1, path))
        snprintf(spelled, sizeof spelled, "%.*s=%s", (int)(equals - text), text, path);
    if (!adapter_option_parse("chat", spelled, &option)) {
        c->failed = 1;
        return -1;
    }
    const int known = find_adapter(c, option.name, strlen(option.name));
    if (known < 0 && c->n_adapters == LIST_MAX) {
        weft_fail(&err, WEFT_LIMIT, "there are %d adapters already", LIST_MAX);
        chat_complain(c, &err);
        return -1;
    }
    const int i = known < 0 ? c->n_adapters : known;
    c->adapters[i].option = option;
    return i;
}

static void adapter(chat *c, const char *argument)
{
    weft_error err = {0};
    int in_use[LIST_MAX] = {0}, added = -1;
    float scales[LIST_MAX] = {0};
    weft_status st = WEFT_OK;
    if (!argument[0]) {
        list_adapters(c);
        return;
    }
    const int n_before = c->n_adapters;
    struct chat_adapter before = {0};
    if (strchr(argument, '=')) {
        char name[sizeof before.option.name];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(argument, "="), argument);
        const int known = find_adapter(c, name, strlen(name));
        if (known >= 0) before = c->adapters[known];
        if ((added = new_adapter(c, argument)) < 0) return;
        if (added == n_before) c->n_adapters++;
        in_use[added] = 1;
        scales[added] = c->adapters[added].option.scale;
    } else st = choose_adapters(c, argument, in_use, scales, &err);
    if (!st) st = chat_use_adapters(c, in_use, scales, &err);
    if (st) {
        c->n_adapters = n_before;
        if (added >= 0 && added < n_before) c->adapters[added] = before;
        chat_complain(c, &err);
        return;
    }
    weft__strbuf names = {0};
    chat_name_adapters(c, &names);
    if (!names.failed) chat_note(c, "adapter %s", names.data);
    weft__strbuf_free(&names);
}

/* ---- all of them ---- */

static void help(chat *c, const char *argument);

static const struct {
    const char *name, *argument, *about;
    void (*run)(chat *c, const char *argument); /* argument: what is behind the name, without the blanks around it */
} COMMANDS[] = {
    {"/help", "", "this list (also /?)", help},
    {"/save", "[FILE]", "write the conversation, a record that 'weft adapter train' reads", save},
    {"/load", "[FILE]", "go on with one that was written", chat_commands_load},
    {"/regen", "", "answer the last message again", again},
    {"/reset", "", "begin anew, keeping the system message (also /clear)", reset},
    {"/system", "[TEXT]", "begin anew with this system message", system_message},
    {"/adapter", "[NAME[:SCALE] ...]", "what adapters there are; use these, 'none', or another one: NAME=PATH[:SCALE]",
     adapter},
    {"/think", "[on|off]", "what the last answer thought; show thoughts from now on, or fold them", think},
    {"/stats", "", "speed and context of the last answer", stats},
    {"/exit", "", "leave (also /quit, /bye, Ctrl-D, Ctrl-C twice)", leave},
};
enum { N_COMMANDS = sizeof COMMANDS / sizeof *COMMANDS };

static const char *const ALIASES[][2] = {{"/?", "/help"}, {"/clear", "/reset"}, {"/quit", "/exit"}, {"/bye", "/exit"}};

static void help(chat *c, const char *argument)
{
    (void)argument;
    for (int i = 0; i < N_COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", COMMANDS[i].name, COMMANDS[i].argument);
        fprintf(c->notes, "%-28s %s\n", left, COMMANDS[i].about);
    }
    fputs("\nLines between \"\"\" and \"\"\" are one message, and so is what is pasted; Alt-Enter begins a line.\n"
          "A blank in front says what begins with '/'. Ctrl-C stops an answer or drops the line, Ctrl-R searches what "
          "was typed,\n"
          "Tab completes commands, adapters and files.\n",
          c->notes);
}

const char *chat_command_name(int i)
{
    return i < N_COMMANDS ? COMMANDS[i].name : NULL;
}

static int find_command(const char *word, size_t n)
{
    for (size_t i = 0; i < sizeof ALIASES / sizeof *ALIASES; i++)
        if (strlen(ALIASES[i][0]) == n && !memcmp(ALIASES[i][0], word, n))
            return find_command(ALIASES[i][1], strlen(ALIASES[i][1]));
    for (int i = 0; i < N_COMMANDS; i++)
        if (strlen(COMMANDS[i].name) == n && !memcmp(COMMANDS[i].name, word, n)) return i;
    return -1;
}

static size_t word_of(const char *text, size_t n)
{
    size_t i = 1;
    while (i < n && ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') || text[i] == '?')) i++;
    return i;
}

int chat_is_command(const char *text, size_t n)
{
    if (n == 0 || text[0] != '/') return 0;
    const size_t word = word_of(text, n);
    if (word < n && text[word] != ' ' && text[word] != '\t' && text[word] != '\n') return 0;
    return !memchr(text, '\n', n) || (word == 7 && !memcmp(text, "/system", 7));
}

void chat_command(chat *c, const char *text)
{
    weft_error err = {0};
    const size_t word = word_of(text, strlen(text));
    const int i = find_command(text, word);
    char *argument = strdup(text + word + strspn(text + word, " \t"));
    if (!argument) weft_fail(&err, WEFT_NO_MEMORY, "no memory for a command");
    else if (i < 0)
        weft_fail(&err, WEFT_ARGUMENT, "unknown command %.*s; /help lists them, a blank in front says it to the model",
                  (int)word, text);
    else if (!COMMANDS[i].argument[0] && argument[strspn(argument, " \t\r")])
        weft_fail(&err, WEFT_ARGUMENT, "%s takes nothing behind it", COMMANDS[i].name);
    if (err.status) chat_complain(c, &err);
    else {
        size_t n = strlen(argument);
        while (n > 0 && strchr(" \t\r", argument[n - 1])) argument[--n] = 0;
        COMMANDS[i].run(c, argument);
    }
    free(argument);
    fflush(c->notes);
}
