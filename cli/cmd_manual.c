// SPDX-License-Identifier: Apache-2.0
/* cmd_manual.c: weft manual: a page for man(1) of each command, made of the tables that --help prints. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "commands.h"
#include "format/out_file.h"
#include "kinds.h"
#include "terminal.h"

/* text[0..n) as roff shows it: a backslash and a hyphen are themselves, and no line is a request. */
static void put_roff(weft__strbuf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if ((c == '.' || c == '\'') && (!i || text[i - 1] == '\n')) weft__strbuf_puts(out, "\\&");
        if (c == '\\') weft__strbuf_puts(out, "\\e");
        else if (c == '-') weft__strbuf_puts(out, "\\-");
        else weft__strbuf_putc(out, c);
    }
}

static void put_roff_text(weft__strbuf *out, const char *text)
{
    put_roff(out, text, strlen(text));
}

/* Paragraphs: lines are filled, but for those that are indented, which stand as they are. */
static void put_paragraphs(weft__strbuf *out, const char *text)
{
    while (*text) {
        const size_t n = strcspn(text, "\n");
        if (!n) weft__strbuf_puts(out, ".PP\n");
        else if (*text == ' ') weft__strbuf_puts(out, ".br\n");
        if (n) {
            put_roff(out, text, n);
            weft__strbuf_putc(out, '\n');
        }
        text += n + (text[n] == '\n');
    }
}

static void put_option(weft__strbuf *out, const option_spec *o)
{
    weft__strbuf_puts(out, ".TP\n");
    if (o->letter) weft__strbuf_printf(out, "\\fB\\-%c\\fR, ", o->letter);
    weft__strbuf_puts(out, "\\fB\\-\\-");
    put_roff_text(out, o->name);
    weft__strbuf_puts(out, "\\fR");
    if (o->argument) {
        weft__strbuf_puts(out, " \\fI");
        put_roff_text(out, o->argument);
        weft__strbuf_puts(out, "\\fR");
    }
    weft__strbuf_putc(out, '\n');
    put_roff_text(out, o->help);
    weft__strbuf_putc(out, '\n');
}

/* "weft-adapter-train" of "adapter train"; a file's name with what may stand around it. */
static void page_name(char *out, size_t capacity, const char *folder, const char *command, const char *end)
{
    int n = snprintf(out, capacity, "%s%sweft%s", folder, *folder ? "/" : "", *command ? "-" : "");
    snprintf(out + n, capacity - (size_t)n, "%s%s", command, end);
    for (char *c = out + n; *c; c++)
        if (*c == ' ') *c = '-';
}

static void put_head(weft__strbuf *out, const char *command, const char *about)
{
    char name[64];
    page_name(name, sizeof name, "", command, "");
    weft__strbuf_puts(out, ".TH ");
    for (const char *c = name; *c; c++) weft__strbuf_putc(out, (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c));
    weft__strbuf_printf(out, " 1 \"\" \"weft %s\" \"Weft\"\n.SH NAME\n", weft_version());
    put_roff_text(out, name);
    weft__strbuf_puts(out, " \\- ");
    put_roff_text(out, about);
    weft__strbuf_puts(out, "\n.SH SYNOPSIS\n.B weft");
    if (*command) weft__strbuf_printf(out, " %s", command);
    weft__strbuf_puts(out, "\n");
}

static void put_exit_status(weft__strbuf *out)
{
    weft__strbuf_puts(out, ".SH EXIT STATUS\n0: done. 1: it failed, and why stands on standard error. 2: it was called "
                           "wrongly.\n");
}

/* The pages of a command's kinds ("eval": weft-eval-logits, ...), behind weft(1); NULL: it has none. */
static void put_see_also(weft__strbuf *out, const kind_list *kinds)
{
    weft__strbuf_puts(out, ".SH SEE ALSO\n.BR weft (1)");
    for (int i = 0; kinds && i < kinds->n; i++) {
        if (kinds->items[i].absent) continue;
        weft__strbuf_printf(out, ",\n.BR weft\\-%s\\-", kinds->command);
        put_roff_text(out, kinds->items[i].name);
        weft__strbuf_puts(out, " (1)");
    }
    weft__strbuf_putc(out, '\n');
}

static void put_page(weft__strbuf *out, const command_kind *k, const command_spec *spec)
{
    put_head(out, spec->name, k->about);
    put_roff_text(out, spec->synopsis);
    weft__strbuf_puts(out, "\n.SH DESCRIPTION\n");
    put_paragraphs(out, spec->about);
    weft__strbuf_puts(out, ".SH OPTIONS\n");
    for (const option_spec *o = spec->options; o->name; o++) put_option(out, o);
    put_option(out, &(option_spec){.name = "help", .letter = 'h', .help = "the same as this page, shorter"});
    if (spec->examples) {
        weft__strbuf_puts(out, ".SH EXAMPLES\n.nf\n");
        put_roff_text(out, spec->examples);
        weft__strbuf_puts(out, ".fi\n");
    }
    put_exit_status(out);
    put_see_also(out, NULL);
}

/* Of a command that has kinds. */
static void put_kinds_page(weft__strbuf *out, const command_kind *k)
{
    put_head(out, k->name, k->about);
    put_roff_text(out, k->kinds->synopsis);
    weft__strbuf_puts(out, "\n.SH DESCRIPTION\n");
    put_paragraphs(out, k->kinds->about);
    weft__strbuf_puts(out, ".SH KINDS\n");
    for (int i = 0; i < k->kinds->n; i++) {
        if (k->kinds->items[i].absent) continue;
        weft__strbuf_puts(out, ".TP\n.B ");
        put_roff_text(out, k->kinds->items[i].name);
        weft__strbuf_putc(out, '\n');
        put_roff_text(out, k->kinds->items[i].about);
        weft__strbuf_putc(out, '\n');
    }
    put_exit_status(out);
    put_see_also(out, k->kinds);
}

/* ---- pages as files ---- */

struct pages {
    const char *folder;
    weft__strbuf commands; /* lines of weft(1), one for each page */
    weft_error err;
    int n;
};

static weft_status write_page(struct pages *p, const char *command, weft__strbuf *text)
{
    char path[4096];
    weft_error *err = &p->err;
    if (text->failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a page");
    if (strlen(p->folder) + strlen(command) + 16 > sizeof path)
        return weft_fail(err, WEFT_LIMIT, "%s: the name is too long", p->folder);
    page_name(path, sizeof path, p->folder, command, ".1");
    weft_status st = weft__out_file_put(path, text->data, text->len, err);
    p->n += !st;
    return st;
}

/* Takes the page's text; weft(1) names it. */
static void add_text(struct pages *p, const char *command, const char *about, weft__strbuf *text)
{
    char name[64];
    write_page(p, command, text);
    weft__strbuf_free(text);
    page_name(name, sizeof name, "", command, "");
    weft__strbuf_puts(&p->commands, ".TP\n.BR ");
    put_roff_text(&p->commands, name);
    weft__strbuf_puts(&p->commands, " (1)\n");
    put_roff_text(&p->commands, about);
    weft__strbuf_putc(&p->commands, '\n');
}

static void add_page(const command_kind *k, const command_spec *spec, void *arg)
{
    struct pages *p = arg;
    weft__strbuf text = {0};
    if (p->err.status) return;
    put_page(&text, k, spec);
    add_text(p, spec->name, k->about, &text);
}

/* A command's page, or that of its kinds and each kind's. */
static void add_command(struct pages *p, const command_kind *k)
{
    const kind_list alone = {.items = k, .n = 1};
    weft__strbuf text = {0};
    if (p->err.status) return;
    if (k->kinds) {
        put_kinds_page(&text, k);
        add_text(p, k->name, k->about, &text);
    }
    kinds_visit(&alone, add_page, p);
}

/* weft(1), when the others are known. */
static void add_first_page(struct pages *p)
{
    weft__strbuf text = {0};
    if (p->err.status) return;
    put_head(&text, "", COMMANDS.about);
    put_roff_text(&text, COMMANDS.synopsis);
    weft__strbuf_puts(&text, "\n.SH DESCRIPTION\nWeft runs large language models on the machine that is there, for one "
                             "person or for many at once, each with\nadapters of their own. A model is a GGUF file, a "
                             "folder in Hugging Face's form, or the name of a pulled one.\n.SH COMMANDS\n");
    weft__strbuf_put(&text, p->commands.data, p->commands.len);
    weft__strbuf_puts(&text, ".SH ENVIRONMENT\n");
    put_paragraphs(&text, ENVIRONMENT);
    put_exit_status(&text);
    if (p->commands.failed) text.failed = 1;
    write_page(p, "", &text);
    weft__strbuf_free(&text);
}

int cmd_manual(int argc, char **argv)
{
    int first;
    struct pages p = {0};
    const option_spec options[] = {{0}};
    const command_spec spec = {
        "manual",
        "FOLDER",
        "Writes a page for man(1) of each command into FOLDER, which is made where it is not there: weft.1,\n"
        "weft-run.1, ... 'make install' installs them.",
        "  weft manual man1 && man ./man1/weft-run.1\n",
        options,
        1,
        1};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    p.folder = argv[first];
    mkdir(p.folder, 0777); /* what is wrong with it, the first page tells */
    for (int i = 0; i < COMMANDS.n; i++) add_command(&p, &COMMANDS.items[i]);
    add_first_page(&p);
    weft__strbuf_free(&p.commands);
    if (p.err.status) return report("manual", &p.err);
    printf("%s: %d pages\n", p.folder, p.n);
    return EXIT_DONE;
}
