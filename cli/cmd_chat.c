/* cmd_chat.c: weft chat: a conversation at the terminal; also fed line by line from a pipe. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <editline/readline.h>

#include "adapters.h"
#include "commands.h"
#include "conversation.h"
#include "prompt.h"
#include "rope.h"
#include "terminal.h"

struct chat_options {
    int32_t n, threads, n_ctx;
    weft_sampler_params sampler;
    const char *system, *template_file, *kwargs, *kv_type;
    struct text_list adapters;
    struct adapter_option adapter[LIST_MAX];
    rope_options rope;
};

struct chat {
    const struct chat_options *o;
    conversation c;
    weft_sampler *sampler;
    int32_t n_vocab;
    int interactive, failed;
};

static const char HELP[] = "/reset            begin anew, keeping the system message\n"
                           "/system TEXT      begin anew with this system message\n"
                           "/save FILE        write the conversation as JSON\n"
                           "/load FILE        go on with a saved one\n"
                           "/regen            answer the last message again\n"
                           "/stats            speed and context of the last answer\n"
                           "/exit             leave (Ctrl-D too); Ctrl-C stops an answer\n";

static int show(void *arg, const char *text, size_t n)
{
    (void)arg;
    return fwrite(text, 1, n, stdout) != n || fflush(stdout) != 0;
}

static void complain(struct chat *chat, const weft_error *err)
{
    chat->failed = 1;
    report("chat", err);
}

static void answer(struct chat *chat)
{
    weft_error err = {0};
    const char *reason = "";
    struct text_list no_stops = {0};
    generate_request q = {.model = chat->c.model, .sampler = chat->sampler, .n_max = chat->o->n, .stop = &no_stops, .sink = show};
    generate_cancel_on_interrupt(chat->c.session);
    weft_status st = conversation_answer(&chat->c, &q, chat->o->kwargs, &reason, &err);
    generate_cancel_on_interrupt(NULL);
    putchar('\n');
    fflush(stdout);
    if (st) {
        complain(chat, &err);
        conversation_drop_last(&chat->c, "user"); /* as if it had not been said */
    } else if (!strcmp(reason, "length")) {
        fprintf(stderr, "[stopped at the limit of tokens]\n");
    }
}

static void print_stats(const struct chat *chat)
{
    const conversation *c = &chat->c;
    fprintf(stderr, "context %d of %d tokens; last answer: %d reused, %d read at %.1f t/s, %d written at %.1f t/s\n",
            weft_session_n_tokens(c->session), weft_session_n_ctx(c->session), c->n_reused, c->n_prompt,
            c->prefill_ms > 0 ? c->n_prompt * 1000 / c->prefill_ms : 0, c->n_generated,
            c->decode_ms > 0 ? c->n_generated * 1000 / c->decode_ms : 0);
}

/* The conversation's first message where it is the system's, copied; free(). */
static char *system_of(const conversation *c)
{
    const weft__json *first = weft__json_at(c->messages, 0);
    const char *role, *text;
    size_t n;
    if (!weft__json_string(weft__json_get(first, "role"), &role, &n) || strcmp(role, "system")) return NULL;
    return weft__json_string(weft__json_get(first, "content"), &text, &n) ? strdup(text) : NULL;
}

static void reset(struct chat *chat, const char *system)
{
    weft_error err = {0};
    if (!conversation_reset(&chat->c, system)) {
        weft_fail(&err, WEFT_NO_MEMORY, "no memory for the conversation");
        complain(chat, &err);
    }
}

/* A line that begins with '/'. Returns 1 when the chat is over. */
static int command(struct chat *chat, const char *line)
{
    const char *argument = strchr(line, ' ');
    size_t n = argument ? (size_t)(argument - line) : strlen(line);
    weft_error err = {0};
    argument = argument ? argument + 1 : "";
#define IS(name) (n == sizeof name - 1 && !memcmp(line, name, n))
    if (IS("/exit") || IS("/quit")) return 1;
    if (IS("/help")) fputs(HELP, stderr);
    else if (IS("/reset")) {
        char *system = system_of(&chat->c);
        reset(chat, system);
        free(system);
    } else if (IS("/system")) reset(chat, argument[0] ? argument : NULL);
    else if (IS("/stats")) print_stats(chat);
    else if (IS("/regen")) {
        conversation_drop_last(&chat->c, "assistant");
        answer(chat);
    } else if (IS("/save") && argument[0]) {
        if (conversation_save(&chat->c, argument, &err)) complain(chat, &err);
    } else if (IS("/load") && argument[0]) {
        if (conversation_load(&chat->c, argument, &err)) complain(chat, &err);
    } else fprintf(stderr, "unknown command %.*s; /help lists them\n", (int)n, line);
#undef IS
    return 0;
}

static void say(struct chat *chat, const char *line)
{
    weft_error err = {0};
    if (!conversation_add(&chat->c, "user", line, strlen(line))) {
        weft_fail(&err, WEFT_ARGUMENT, "that line is not UTF-8, or memory ran out");
        complain(chat, &err);
        return;
    }
    answer(chat);
}

/* The next line without its end, free(); NULL at the end of input. */
static char *next_line(const struct chat *chat)
{
    char *line = NULL;
    size_t capacity = 0;
    if (chat->interactive) {
        line = readline("> ");
        if (line && line[0]) add_history(line);
        return line;
    }
    ssize_t n = getline(&line, &capacity, stdin);
    if (n < 0) {
        free(line);
        return NULL;
    }
    if (n > 0 && line[n - 1] == '\n') line[n - 1] = 0;
    return line;
}

static void converse(struct chat *chat)
{
    if (chat->interactive) fprintf(stderr, "Say something; /help lists the commands, Ctrl-D leaves.\n");
    for (char *line; (line = next_line(chat)); free(line)) {
        if (!line[0]) continue;
        if (line[0] != '/') say(chat, line);
        else if (command(chat, line)) {
            free(line);
            break;
        }
    }
}

static weft_status open_chat(struct chat *chat, const char *path, weft_error *err)
{
    const struct chat_options *o = chat->o;
    weft_session_params sp;
    weft_model_info info = {.size = sizeof info};
    char *source = NULL;
    size_t n = 0;
    weft_status st = open_shown(path, o->threads, o->n_ctx, &o->rope.params, &chat->c.model, err);
    if (!st) st = weft_model_describe(chat->c.model, &info, err);
    if (!st && o->template_file) st = read_text(o->template_file, &source, &n, err);
    if (!st) st = weft_chat_open(chat->c.model, source, n, &chat->c.chat, err);
    free(source);
    if (st == WEFT_NOT_FOUND && chat->c.model && !o->template_file) {
        weft_error why = *err;
        return weft_fail(err, st, "%s; give one with --chat-template FILE", why.message);
    }
    weft_session_params_default(&sp);
    sp.n_ctx = o->n_ctx;
    sp.kv_dtype = (uint32_t)weft_dtype_from_name(o->kv_type);
    if (!st) st = weft_session_new(chat->c.model, &sp, &chat->c.session, err);
    if (!st) st = adapter_options_apply(o->adapter, o->adapters.n, chat->c.model, chat->c.session, err);
    if (!st) st = weft_sampler_new(info.n_vocab, &o->sampler, &chat->sampler, err);
    if (!st && !conversation_reset(&chat->c, o->system)) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the conversation");
    return st;
}

int cmd_chat(int argc, char **argv)
{
    static struct chat_options o = {.n = -1, .kv_type = "f16"};
    weft_sampler_params *s = &o.sampler;
    weft_sampler_params_default(s);
    const option_spec options[] = {
        {"system", 0, OPT_TEXT, &o.system, "TEXT", "system message", 0, 0, NULL},
        {"chat-template", 0, OPT_TEXT, &o.template_file, "FILE", "Jinja template instead of the model's own", 0, 0, NULL},
        {"template-kwargs", 0, OPT_TEXT, &o.kwargs, "JSON", "variables for the template, as {\"enable_thinking\": false}", 0, 0,
         NULL},
        {"n-predict", 'n', OPT_INT, &o.n, "N", "most tokens of an answer, -1: until the context is full (-1)", -1, 1 << 30, NULL},
        {"ctx", 'c', OPT_INT, &o.n_ctx, "CTX", "context in tokens (the model's, at most 4096)", 1, 1 << 28, NULL},
        ROPE_OPTIONS(&o.rope),
        {"threads", 't', OPT_INT, &o.threads, "THREADS", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL},
        SAMPLER_OPTIONS(s),
        {"adapter", 0, OPT_LIST, &o.adapters, "A", "NAME=PATH[:SCALE], a GGUF adapter or PEFT folder; may be repeated", 0, 0,
         NULL},
        {"kv-type", 0, OPT_TEXT, &o.kv_type, "TYPE", "keys and values as f16 or f32 (f16)", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "chat",
        "MODEL [options]",
        "A conversation with the model, in its own chat template. Lines from a pipe are answered one by one.\n"
        "/help at the prompt lists the commands: /reset, /system, /save, /load, /regen, /stats.",
        "  weft chat model.gguf --system \"You answer in one sentence.\"\n",
        options,
        1,
        1};
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (strcmp(o.kv_type, "f16") && strcmp(o.kv_type, "f32")) {
        fprintf(stderr, "weft chat: --kv-type %s: must be f16 or f32\n", o.kv_type);
        return EXIT_USAGE;
    }
    if (!rope_options_check("chat", &o.rope)) return EXIT_USAGE;
    if (!adapter_options_parse("chat", &o.adapters, o.adapter)) return EXIT_USAGE;
    struct chat chat = {.o = &o, .interactive = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    weft_error err = {0};
    weft_status st = open_chat(&chat, argv[first], &err);
    if (!st) converse(&chat);
    weft_sampler_free(&chat.sampler);
    conversation_free(&chat.c);
    weft_session_free(&chat.c.session);
    weft_chat_close(&chat.c.chat);
    weft_model_close(&chat.c.model);
    if (st) return report("chat", &err);
    return chat.failed ? EXIT_FAILED : EXIT_DONE;
}
