// SPDX-License-Identifier: Apache-2.0
/* cmd_chat.c: weft chat: a conversation at the terminal; also fed line by line from a pipe. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chat.h"
#include "commands.h"
#include "kv_type.h"
#include "prompt.h"
#include "pull.h"
#include "provider.h"
#include "shown.h"
#include "draft.h"
#include "spec.h"
#include "terminal.h"
#include "threads.h"
#include "tty.h"

void chat_complain(chat *c, const weft_error *err)
{
    const char *text = err->message[0] ? err->message : weft_status_text((weft_status)err->status);
    c->failed = 1;
    shown s;
    shown_begin(&s, c->notes);
    shown_put(&s, "weft chat: ", 11);
    shown_put(&s, text, strlen(text));
    shown_put(&s, "\n", 1);
    shown_end(&s);
}

/* ---- answers ---- */

/* The conversation is what it was before. Takes `before`. */
static void take_back(chat *c, weft__json *before)
{
    weft__json_free(&c->c.messages);
    c->c.messages = before;
}

static void tell_end(chat *c, const char *reason)
{
    if (!strcmp(reason, "length")) fprintf(c->notes, "[stopped at the limit of tokens]\n");
    if (strcmp(reason, "cancelled")) return;
    fprintf(c->notes, "[stopped]\n");
    if (!c->interactive) c->left = c->failed = 1; /* Ctrl-C, where input is a file, is about all of it */
}

/* What of an answer is shown as it comes. */
struct chat_view {
    chat *c;
    shown text;
    int thinks;     /* what was told last are thoughts */
    int waits;      /* a word on the terminal stands for them */
    size_t n_words; /* of them */
    int in_word;
};

static void set_dim(int dim)
{
    if (tty_colours(fileno(stdout))) fputs(dim ? "\x1b[2m" : "\x1b[0m", stdout);
}

static void begin_thoughts(struct chat_view *v)
{
    v->thinks = 1;
    v->n_words = 0;
    v->in_word = 0;
    v->waits = !v->c->shows_thinking && tty_draws(fileno(stdout));
    if (v->c->shows_thinking || v->waits) set_dim(1);
    if (!v->waits) return;
    fputs("thinking ...", stdout);
    set_dim(0);
    fflush(stdout);
}

static void count_words(struct chat_view *v, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int is_word = !strchr(" \t\r\n", text[i]);
        v->n_words += (size_t)(is_word && !v->in_word);
        v->in_word = is_word;
    }
}

static void end_thoughts(struct chat_view *v)
{
    v->thinks = 0;
    if (v->c->shows_thinking) {
        shown_end(&v->text);
        set_dim(0);
        fputs("\n\n", stdout);
        shown_begin(&v->text, stdout);
        return;
    }
    if (v->waits) fputs("\r\x1b[K", stdout);
    fflush(stdout);
    chat_note(v->c, "thought %zu words; /think shows them", v->n_words);
    fflush(v->c->notes);
}

static int show_part(void *arg, const weft_chat_part *part)
{
    struct chat_view *v = arg;
    const int thinks = part->kind == WEFT_CHAT_REASONING;
    if (thinks && !v->thinks) begin_thoughts(v);
    if (!thinks && v->thinks) end_thoughts(v);
    if (thinks) count_words(v, part->text, part->n_text);
    return thinks && !v->c->shows_thinking ? 0 : shown_put(&v->text, part->text, part->n_text);
}

/* `before`: what the conversation is again when there is no answer; taken. */
static void answer(chat *c, weft__json *before)
{
    weft_error err = {0};
    const char *reason = "";
    struct text_list no_stops = {0};
    struct chat_view v = {.c = c};
    generate_request q = {.model = c->c.model,
                          .sampler = c->sampler,
                          .n_max = c->o->n,
                          .spec = draft_spec(spec_of(c->o->spec), c->draft),
                          .shift = overflow_shifts(&c->o->overflow),
                          .n_keep = c->o->overflow.n_keep,
                          .stop = &no_stops};
    shown_begin(&v.text, stdout);
    c->c.on_part = show_part;
    c->c.on_part_arg = &v;
    generate_cancel_on_interrupt(c->c.session);
    weft_status st = conversation_answer(&c->c, &q, c->o->kwargs, &reason, &err);
    generate_cancel_on_interrupt(NULL);
    if (v.thinks) end_thoughts(&v);
    shown_end(&v.text);
    putchar('\n');
    fflush(stdout);
    const int nothing = !st && !strcmp(reason, "cancelled") && c->c.n_generated == 0;
    if (st || nothing) take_back(c, before);
    else weft__json_free(&before);
    if (st) chat_complain(c, &err);
    else tell_end(c, reason);
    if (!st && c->c.n_dropped)
        fprintf(c->notes, "[the context is full: %d tokens of the conversation were left out]\n", c->c.n_dropped);
    if (!st && c->c.broken_off.status && strcmp(reason, "cancelled")) chat_complain(c, &c->c.broken_off);
    if (c->interactive && !st) putchar('\n');
    fflush(stdout);
}

static void chat_say(chat *c, const char *text, size_t n)
{
    weft_error err = {0};
    weft__json *before = weft__json_copy(c->c.messages);
    if (before && conversation_add(&c->c, "user", text, n)) {
        answer(c, before);
        return;
    }
    weft__json_free(&before);
    weft_fail(&err, WEFT_NO_MEMORY, "no memory for the conversation");
    chat_complain(c, &err);
}

void chat_answer_again(chat *c)
{
    weft_error err = {0};
    weft__json *before = weft__json_copy(c->c.messages);
    if (!before) weft_fail(&err, WEFT_NO_MEMORY, "no memory for the conversation");
    else {
        conversation_drop_last(&c->c, "assistant");
        const size_t n = weft__json_size(c->c.messages);
        if (n == 0 || conversation_ends_with(&c->c, "system"))
            weft_fail(&err, WEFT_ARGUMENT, "there is nothing to answer yet");
    }
    if (!err.status) {
        answer(c, before);
        return;
    }
    if (before) take_back(c, before);
    chat_complain(c, &err);
}

weft_status chat_use_adapters(chat *c, const int *in_use, const float *scales, weft_error *err)
{
    struct adapter_option chosen[LIST_MAX];
    int n = 0;
    for (int i = 0; i < c->n_adapters; i++)
        if (in_use[i]) {
            chosen[n] = c->adapters[i].option;
            chosen[n++].scale = scales[i];
        }
    conversation_forget(&c->c);
    weft_status st = n ? adapter_options_apply(chosen, n, c->c.model, c->c.session, err)
                       : weft_session_set_adapters(c->c.session, NULL, 0, err);
    for (int i = 0; !st && i < c->n_adapters; i++) {
        c->adapters[i].in_use = in_use[i];
        if (in_use[i]) c->adapters[i].option.scale = scales[i];
    }
    return st;
}

/* ---- input ---- */

static input_outcome typed_line(void *arg, const char *prompt, char **text, size_t *n, weft_error *err)
{
    chat *c = arg;
    switch (editor_read(&c->ed, prompt, text, n)) {
    case EDIT_END: return INPUT_END;
    case EDIT_INTERRUPTED: return INPUT_INTERRUPTED;
    case EDIT_LINE: break;
    }
    if (*text) return INPUT_SAID;
    weft_fail(err, WEFT_NO_MEMORY, "no memory for what was typed");
    return INPUT_REFUSED;
}

static void banner(chat *c)
{
    const int dim = tty_colours(fileno(c->notes));
    weft__strbuf t = {0};
    shown s;
    weft__strbuf_printf(&t, "%s (%s) | context %d tokens | adapter ", c->info.name, c->info.type,
                        weft_session_n_ctx(c->c.session));
    chat_name_adapters(c, &t);
    weft__strbuf_puts(&t, "\n/help lists the commands; Ctrl-D leaves, Ctrl-C stops an answer");
    fputs(dim ? "\x1b[2m" : "", c->notes);
    shown_begin(&s, c->notes);
    if (!t.failed) shown_put(&s, t.data, t.len);
    shown_end(&s);
    fputs(dim ? "\x1b[0m\n" : "\n", c->notes);
    weft__strbuf_free(&t);
}

/* A person who types gets an editor where the terminal draws, else lines as the terminal has them. */
static void open_terminal(chat *c, int out)
{
    weft_error err = {0};
    char place[PATH_MAX];
    c->interactive = 1;
    if (!isatty(STDERR_FILENO)) c->notes = stdout;
    banner(c);
    if (!tty_draws(out)) {
        tty_take(STDIN_FILENO, out, "", "");
        chat_input_open(&c->in, STDIN_FILENO, out);
        return;
    }
    if (history_open(&c->past, !c->o->no_history && history_place(place, sizeof place) ? place : NULL, &err))
        chat_note(c, "%s", err.message);
    fflush(c->notes);
    editor_open(&c->ed, STDIN_FILENO, out, &c->past);
    c->ed.complete = chat_complete;
    c->ed.complete_arg = c;
    c->in.read = typed_line;
    c->in.arg = c;
}

static void open_input(chat *c)
{
    const int out = isatty(STDOUT_FILENO) ? STDOUT_FILENO : isatty(STDERR_FILENO) ? STDERR_FILENO : -1;
    chat_input_open(&c->in, STDIN_FILENO, -1);
    if (isatty(STDIN_FILENO) && out >= 0) open_terminal(c, out);
}

static void take_message(chat *c, input_outcome kind, const char *text, size_t n)
{
    if (c->past.fd >= 0 || c->interactive) history_add(&c->past, c->in.raw.data, c->in.raw.len);
    if (kind == INPUT_SAID && chat_is_command(text, n)) chat_command(c, text);
    else chat_say(c, text, n);
}

static void converse(chat *c)
{
    int interrupts = 0;
    open_input(c);
    while (!c->left) {
        weft_error err = {0};
        char *text = NULL;
        size_t n;
        const input_outcome got = chat_input_next(&c->in, &text, &n, &err);
        if (got == INPUT_END) break;
        if (c->ed.n_keys > 1) interrupts = 0; /* something was typed in between */
        interrupts = got == INPUT_INTERRUPTED ? interrupts + 1 : 0;
        if (interrupts == 2) break;
        if (interrupts == 1) chat_note(c, "Ctrl-C again leaves, and so do Ctrl-D and /exit");
        else if (got == INPUT_REFUSED) chat_complain(c, &err);
        else take_message(c, got, text, n);
        fflush(c->notes);
        free(text);
    }
    editor_close(&c->ed);
    chat_input_close(&c->in);
    history_free(&c->past);
    if (c->interactive) c->failed = 0; /* the user has seen what went wrong */
}

/* Variables that the template reads; enable_thinking may always be said. */
static weft_status check_read(const chat *c, weft_error *err)
{
    weft__json *kwargs = NULL;
    weft__json_member k = {0};
    weft_status st = c->o->kwargs ? weft__json_parse(c->o->kwargs, strlen(c->o->kwargs), &kwargs, err) : WEFT_OK;
    while (!st && weft__json_next(kwargs, &k))
        if (!weft__json_is_null(k.value) && strcmp(k.key, "enable_thinking") != 0 && !weft_chat_reads(c->c.chat, k.key))
            st = weft_fail(err, WEFT_ARGUMENT, "--template-kwargs: the chat template reads no variable '%.60s'", k.key);
    weft__json_free(&kwargs);
    return st;
}

static weft_status open_chat(chat *c, const char *path, weft_error *err)
{
    const struct chat_options *o = c->o;
    weft_session_params sp;
    c->info.size = sizeof c->info;
    for (; c->n_adapters < o->adapters.n; c->n_adapters++)
        c->adapters[c->n_adapters] = (struct chat_adapter){o->adapter[c->n_adapters], 1};
    char *source = NULL;
    size_t n = 0;
    weft_status st = pull_if_missing(path, err);
    weft_model_params p;
    weft_model_params_default(&p);
    p.n_threads = threads_to_use(o->threads);
    p.n_ctx = o->n_ctx;
    p.provider = provider_given;
    p.rope = o->rope.params;
    p.share_threads = o->draft != NULL;
    if (!st) st = open_shown_with(path, &p, &c->c.model, err);
    if (!st) st = draft_open("chat", o->draft, c->c.model, &p, &c->draft, err);
    if (!st) st = weft_model_describe(c->c.model, &c->info, err);
    if (!st && o->template_file) st = read_text(o->template_file, &source, &n, err);
    if (!st) st = weft_chat_open(c->c.model, source, n, &c->c.chat, err);
    free(source);
    if (!st) st = check_read(c, err);
    if (!st) st = answer_form_read(&o->form, &c->c.form, err);
    if (!st) st = conversation_check_form(&c->c, err);
    weft_session_params_default(&sp);
    sp.n_ctx = o->n_ctx;
    sp.kv_dtype = kv_type_of(o->kv_type);
    sp.draft = c->draft;
    if (!st) st = weft_session_new(c->c.model, &sp, &c->c.session, err);
    if (!st) st = adapter_options_apply(o->adapter, o->adapters.n, c->c.model, c->c.session, err);
    if (!st) st = weft_sampler_for(c->c.model, &o->sampler, &c->sampler, err);
    if (!st && !conversation_reset(&c->c, o->system))
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the conversation");
    return st;
}

static int chat_as_told(struct chat_options *o, const char *model)
{
    static chat c = {.past = {.fd = -1}};
    weft_error err = {0};
    c.o = o;
    c.notes = stderr;
    c.model = model;
    c.shows_thinking = o->show_thinking;
    weft_status st = open_chat(&c, model, &err);
    if (!st) converse(&c);
    weft_sampler_free(&c.sampler);
    conversation_free(&c.c);
    weft_session_free(&c.c.session);
    weft_chat_close(&c.c.chat);
    weft_model_close(&c.draft);
    weft_model_close(&c.c.model);
    if (st) return report("chat", &err);
    return c.failed ? EXIT_FAILED : EXIT_DONE;
}

/* Variables for the template are an object; 0 after a message. */
static int check_kwargs(const char *text)
{
    static const char *const taken[] = {"messages", "tools", "add_generation_prompt"};
    weft__json *kwargs = NULL;
    weft_error err = {0};
    weft_status st = text ? weft__json_parse(text, strlen(text), &kwargs, &err) : WEFT_OK;
    if (!st && text && !weft__json_is_null(kwargs) && weft__json_kind_of(kwargs) != WEFT__JSON_OBJECT)
        st = weft_fail(&err, WEFT_ARGUMENT, "must be a JSON object, as {\"enable_thinking\": false}");
    for (size_t i = 0; !st && i < sizeof taken / sizeof *taken; i++)
        if (weft__json_get(kwargs, taken[i]))
            st = weft_fail(&err, WEFT_ARGUMENT, "'%s' is the conversation's, and no variable to be set", taken[i]);
    weft__json_free(&kwargs);
    if (!st) return 1;
    weft_fail_within(&err, st, "--template-kwargs");
    report("chat", &err);
    return 0;
}

int cmd_chat(int argc, char **argv)
{
    static struct chat_options o = {.n = -1, .kv_type = "f16", .spec = "auto"};
    weft_sampler_params *s = &o.sampler;
    weft_sampler_params_default(s);
    const option_spec options[] = {
        {"system", 0, OPT_TEXT, &o.system, "TEXT", "system message", 0, 0, NULL},
        {"chat-template", 0, OPT_TEXT, &o.template_file, "FILE", "Jinja template instead of the model's own", 0, 0,
         NULL},
        {"template-kwargs", 0, OPT_TEXT, &o.kwargs, "JSON",
         "variables for the template, as {\"enable_thinking\": false}", 0, 0, NULL},
        {"n-predict", 'n', OPT_INT, &o.n, "N", "most tokens of an answer, -1: until the context is full (-1)", -1,
         1 << 30, NULL},
        {"ctx", 'c', OPT_INT, &o.n_ctx, "CTX", "context in tokens (the model's, at most 4096)", 1, 1 << 28, NULL},
        OVERFLOW_OPTIONS(&o.overflow),
        ROPE_OPTIONS(&o.rope),
        PULL_OPTION,
        PROVIDER_OPTION,
        {"threads", 't', OPT_INT, &o.threads, "THREADS", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL},
        SAMPLER_OPTIONS(s),
        ANSWER_FORM_OPTIONS(&o.form, "answers are"),
        {"adapter", 0, OPT_LIST, &o.adapters, "A", "[NAME=]PATH[:SCALE], a GGUF file or PEFT folder; may be repeated",
         0, 0, NULL},
        {"show-thinking", 0, OPT_FLAG, &o.show_thinking, NULL, "what a model thinks before it answers is shown", 0, 0,
         NULL},
        KV_TYPE_OPTION(&o.kv_type, "f16"),
        SPEC_OPTION(&o.spec),
        DRAFT_OPTION(&o.draft),
        {"no-history", 0, OPT_FLAG, &o.no_history, NULL, "what is typed is not kept for later runs", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "chat",
        "MODEL [options]",
        "A conversation with the model, in its own chat template. Lines from a pipe are answered one by one; lines\n"
        "between \"\"\" and \"\"\" are one message, and so is what is pasted. /help at the prompt lists the commands:\n"
        "/save, /load, /regen, /reset, /system, /adapter, /think, /stats, /exit. Ctrl-C stops an answer; twice at the "
        "prompt "
        "it leaves.\n"
        "What is typed is kept for the arrow keys and Ctrl-R in weft/chat_history in $XDG_STATE_HOME or "
        "~/.local/state,\n"
        "readable by its owner alone: the last 1000; WEFT_HISTORY=FILE names another file, WEFT_HISTORY= none.",
        "  weft chat model.gguf --system \"You answer in one sentence.\"\n",
        options,
        1,
        1};
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!answer_form_check("chat", &o.form)) return EXIT_USAGE;
    if (!draft_check("chat", o.draft, o.spec)) return EXIT_USAGE;
    if (!rope_options_check("chat", &o.rope) || !check_kwargs(o.kwargs)) return EXIT_USAGE;
    if (!adapter_options_parse("chat", &o.adapters, o.adapter)) return EXIT_USAGE;
    return chat_as_told(&o, argv[first]);
}
