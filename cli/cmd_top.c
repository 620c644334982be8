// SPDX-License-Identifier: Apache-2.0
/* cmd_top.c: weft top: what a running server does, read from its /metrics, and the /slots of each model that is
 * loaded; redrawn on a terminal, else once as text. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "options.h"
#include "terminal.h"
#include "top_print.h"
#include "top_server.h"
#include "tty.h"

static int over, events; /* over: q, Ctrl-C; events: what came and was not yet drawn for */

/* Looks for keys for `ms`, or less when something came; is it over? */
static int look(int ms)
{
    char keys[256];
    const int came = tty_wait(ms);
    events |= came & (TTY_RESIZED | TTY_WENT_ON);
    if (came & TTY_SIGNALLED) over = 1;
    if (came & TTY_INPUT) {
        const ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
        if (n <= 0) over = 1; /* the terminal is gone */
        for (ssize_t i = 0; i < n; i++)
            if (keys[i] == 'q' || keys[i] == 'Q' || keys[i] == 4) over = 1;
    }
    return over;
}

static int is_over(void)
{
    return look(0);
}

/* trouble: why there was no answer; "": there was one. */
static void show(const char *address, const top_view *v, const char *trouble, int live)
{
    weft__strbuf lines = {0}, out = {0};
    int columns, rows;
    if (trouble[0]) weft__strbuf_printf(&lines, "no answer, asking again: %s\n", trouble);
    top_print(address, v, &lines);
    if (live) weft__strbuf_puts(&lines, "q leaves\n");
    tty_size(STDOUT_FILENO, &columns, &rows);
    const int draws = tty_draws(STDOUT_FILENO);
    if (draws) weft__strbuf_puts(&out, "\033[H\033[2J");
    top_fit(&lines, draws ? columns : INT_MAX, draws ? rows : 0, &out);
    if (!draws) weft__strbuf_puts(&out, live ? "\n\n" : "\n");
    if (!out.failed && !lines.failed) {
        if (live) tty_write(STDOUT_FILENO, out.data, out.len);
        else fwrite(out.data, 1, out.len, stdout);
    }
    weft__strbuf_free(&lines);
    weft__strbuf_free(&out);
}

static weft_status poll_once(top_server *s, top_view *v, weft_error *err)
{
    char *metrics = NULL;
    weft_status st = top_server_get(s, "/metrics", &metrics, err);
    if (!st) st = top_slots_get(s, &v->slots, err);
    if (st) {
        free(metrics);
        return st;
    }
    free(v->metrics);
    v->metrics = metrics;
    v->before = v->now;
    top_take(metrics, &v->now);
    return WEFT_OK;
}

/* Until q or Ctrl-C; a server that does not answer is asked again. */
static void watch(top_server *s, const char *address, top_view *v, int every_s)
{
    weft_error err = {0};
    tty_set(TTY_QUIET);
    while (!over) {
        show(address, v, err.message, 1);
        for (const uint64_t until = now_ns() + (uint64_t)every_s * 1000000000u; !over && now_ns() < until;) {
            look((int)((until - now_ns()) / 1000000u) + 1);
            if (events) show(address, v, err.message, 1);
            events = 0;
        }
        err = (weft_error){0};
        if (!over) poll_once(s, v, &err);
    }
}

int cmd_top(int argc, char **argv)
{
    int32_t every = 1;
    static top_server server;
    static top_view view;
    const char *key = NULL, *key_file = NULL;
    const option_spec options[] = {
        {"api-key", 0, OPT_TEXT, &key, "K", "the server's key", 0, 0, NULL},
        {"api-key-file", 0, OPT_TEXT, &key_file, "FILE", "the first key of this file, which 'ps' does not show", 0, 0,
         NULL},
        {"tls-ca", 0, OPT_TEXT, &server.authorities, "FILE",
         "PEM: whose certificates are trusted ($SSL_CERT_FILE, else the system's)", 0, 0, NULL},
        {"every", 0, OPT_INT, &every, "S", "seconds between looks (1)", 1, 3600, NULL},
        {0},
    };
    const command_spec spec = {
        "top",
        "[ADDRESS] [options]",
        "Shows what a server does: rates, waiting times, pages, API keys and adapters where it tells of them, and\n"
        "slots. ADDRESS is http://HOST:PORT, https://HOST:PORT or unix:PATH (http://127.0.0.1:8080). q or Ctrl-C\n"
        "leaves. Where standard output is no terminal, once.",
        "  weft top http://127.0.0.1:8080\n"
        "  weft top https://ai.example:8443 --tls-ca cert.pem --api-key-file key.txt\n",
        options,
        0,
        1};
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    const char *address = argc > first ? argv[first] : "http://127.0.0.1:8080";
    weft_error err = {0};
    const int live = isatty(STDOUT_FILENO), draws = tty_draws(STDOUT_FILENO);
    weft_status st = top_server_open(&server, address, key, key_file, &err);
    if (!st) st = poll_once(&server, &view, &err);
    if (!st && live) {
        tty_take(isatty(STDIN_FILENO) ? STDIN_FILENO : -1, STDOUT_FILENO, draws ? "\x1b[?1049h\x1b[?25l" : "",
                 draws ? "\x1b[?25h\x1b[?1049l" : "");
        server.is_over = is_over;
        watch(&server, address, &view, every);
        tty_give_back();
    } else if (!st) show(address, &view, "", 0);
    top_server_close(&server);
    free(view.metrics);
    top_slots_free(&view.slots);
    return st ? report("top", &err) : EXIT_DONE;
}
