// SPDX-License-Identifier: Apache-2.0
/* cmd_completion.c: weft completion: a script for bash, zsh or fish that completes commands, kinds and options, made of
 * the tables that --help prints. Values and arguments are names of files, and of pulled models, but for a few words. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "kinds.h"
#include "terminal.h"

static int takes_number(const option_spec *o)
{
    return o->kind != OPT_FLAG && o->kind != OPT_TEXT && o->kind != OPT_LIST;
}

/* The values of an option, of a number those that are none, or ""; NULL: any, which may be a file. */
static const char *values_of(const option_spec *o)
{
    return o->words ? o->words : takes_number(o) ? "" : NULL;
}

/* Does a command take the name of a pulled model? */
static int takes_model(const command_spec *spec)
{
    return spec->synopsis && (strstr(spec->synopsis, "MODEL") || strstr(spec->synopsis, "OWNER/NAME"));
}

/* What a shell runs for their names, one a line. */
#define LIST_MODELS "weft list --names 2>/dev/null"

/* The words that a command's argument is one of; NULL: it is no such word. */
static const char *words_of(const command_spec *spec)
{
    return strcmp(spec->name, "completion") ? NULL : "bash zsh fish";
}

/* Text within single quotes of any of the three shells; what zsh's _arguments reads besides is escaped by `special`. */
static void put_quoted(weft__strbuf *out, const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'') weft__strbuf_puts(out, "'\\''");
        else if (*text == '\n') weft__strbuf_putc(out, ' ');
        else {
            if (strchr(special, *text)) weft__strbuf_putc(out, '\\');
            weft__strbuf_putc(out, *text);
        }
    }
}

static void put_names(weft__strbuf *out, const kind_list *list)
{
    for (int i = 0; i < list->n; i++)
        if (!list->items[i].absent) weft__strbuf_printf(out, "%s%s", i ? " " : "", list->items[i].name);
}

/* What stands behind each command that has kinds: one line of a case, printed with the command and then its names. */
static void put_kinds(weft__strbuf *out, const char *before, const char *between, const char *after)
{
    for (int i = 0; i < COMMANDS.n; i++) {
        const command_kind *k = &COMMANDS.items[i];
        if (!k->kinds) continue;
        weft__strbuf_printf(out, "%s%s%s", before, k->name, between);
        put_names(out, k->kinds);
        weft__strbuf_puts(out, after);
    }
}

/* ---- bash ---- */

/* What stands behind each option that has values of its own; a blank: nothing can be offered. */
static void put_bash_values(weft__strbuf *out, const command_spec *spec)
{
    weft__strbuf_puts(out, "; case $before in");
    for (const option_spec *o = spec->options; o->name; o++) {
        if (!values_of(o)) continue;
        weft__strbuf_printf(out, " --%s", o->name);
        if (o->letter) weft__strbuf_printf(out, "|-%c", o->letter);
        weft__strbuf_printf(out, ") choices='%s' ;;", *values_of(o) ? values_of(o) : " ");
    }
    weft__strbuf_puts(out, " esac");
}

static void add_bash(const command_kind *k, const command_spec *spec, void *arg)
{
    weft__strbuf *out = arg;
    (void)k;
    weft__strbuf_printf(out, "    '%s') values='", spec->name);
    for (const option_spec *o = spec->options; o->name; o++) {
        if (o->kind == OPT_FLAG) continue;
        weft__strbuf_printf(out, " --%s", o->name);
        if (o->letter) weft__strbuf_printf(out, " -%c", o->letter);
    }
    weft__strbuf_puts(out, " ' options='");
    for (const option_spec *o = spec->options; o->name; o++) weft__strbuf_printf(out, "--%s ", o->name);
    weft__strbuf_puts(out, "--help'");
    if (words_of(spec)) weft__strbuf_printf(out, " words='%s'", words_of(spec));
    if (takes_model(spec)) weft__strbuf_puts(out, " models=1");
    put_bash_values(out, spec);
    weft__strbuf_puts(out, " ;;\n");
}

static void put_bash(weft__strbuf *out)
{
    weft__strbuf_puts(
        out, "# completes weft in bash: source <(weft completion bash)\n_weft() {\n"
             "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
             "    local command=${COMP_WORDS[1]} kinds= options= values= words= models= choices=\n    COMPREPLY=()\n"
             "    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W '");
    put_names(out, &COMMANDS);
    weft__strbuf_puts(out, " help --help --version' -- \"$word\"))\n        return\n    fi\n    case $command in\n");
    put_kinds(out, "    ", ") kinds='", "' ;;\n");
    weft__strbuf_puts(out, "    help) COMPREPLY=($(compgen -W '");
    put_names(out, &COMMANDS);
    weft__strbuf_puts(out, "' -- \"$word\")); return ;;\n    esac\n    if [[ $kinds ]]; then\n"
                           "        if ((COMP_CWORD == 2)); then\n"
                           "            COMPREPLY=($(compgen -W \"$kinds --help\" -- \"$word\"))\n"
                           "            return\n        fi\n        command+=\" ${COMP_WORDS[2]}\"\n    fi\n"
                           "    case $command in\n");
    kinds_visit(&COMMANDS, add_bash, out);
    weft__strbuf_puts(out, "    esac\n    if [[ $choices ]]; then\n"
                           "        COMPREPLY=($(compgen -W \"$choices\" -- \"$word\"))\n        return\n    fi\n"
                           "    if [[ $word == -* && $values != *\" $before \"* ]]; then\n"
                           "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n    elif [[ $words ]]; then\n"
                           "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n    else\n"
                           "        compopt -o filenames 2>/dev/null\n        local IFS=$'\\n'\n"
                           "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
                           "        if [[ $models && $values != *\" $before \"* ]]; then\n"
                           "            COMPREPLY+=($(compgen -W \"$(" LIST_MODELS ")\" -- \"$word\"))\n"
                           "        fi\n    fi\n}\ncomplete -F _weft weft\n");
}

/* ---- zsh ---- */

static void add_zsh(const command_kind *k, const command_spec *spec, void *arg)
{
    weft__strbuf *out = arg;
    (void)k;
    weft__strbuf_printf(out, "    '%s') _arguments -s", spec->name);
    for (const option_spec *o = spec->options; o->name; o++) {
        const int several = o->kind == OPT_LIST;
        if (o->letter && !several) weft__strbuf_printf(out, " '(-%c --%s)'", o->letter, o->name);
        else weft__strbuf_printf(out, " %s", several ? "\\*" : "");
        if (o->letter) weft__strbuf_printf(out, "{-%c,--%s}'[", o->letter, o->name);
        else weft__strbuf_printf(out, "'--%s[", o->name);
        put_quoted(out, o->help, "[]\\");
        weft__strbuf_puts(out, "]");
        if (o->argument) {
            weft__strbuf_puts(out, ":");
            put_quoted(out, o->argument, ":\\");
            if (values_of(o) && !*values_of(o)) weft__strbuf_puts(out, ": "); /* nothing, and no files */
            else if (values_of(o)) weft__strbuf_printf(out, ":(%s)", values_of(o));
            else weft__strbuf_puts(out, ":_files");
        }
        weft__strbuf_puts(out, "'");
    }
    weft__strbuf_puts(out, " '(-h --help)'{-h,--help}'[help]' ");
    if (words_of(spec)) weft__strbuf_printf(out, "':word:(%s)' ;;\n", words_of(spec));
    else if (takes_model(spec)) weft__strbuf_puts(out, "'*:model:_weft_models' ;;\n");
    else weft__strbuf_puts(out, "'*:file:_files' ;;\n");
}

static void put_zsh_names(weft__strbuf *out, const kind_list *list)
{
    for (int i = 0; i < list->n; i++) {
        if (list->items[i].absent) continue;
        weft__strbuf_printf(out, " '%s:", list->items[i].name);
        put_quoted(out, list->items[i].about, ":\\");
        weft__strbuf_puts(out, "'");
    }
}

static void put_zsh(weft__strbuf *out)
{
    weft__strbuf_puts(
        out, "#compdef weft\n# completes weft in zsh: a file _weft in a folder of $fpath, or "
             "source <(weft completion zsh)\n_weft_models() {\n    local -a names\n"
             "    names=(${(f)\"$(" LIST_MODELS
             ")\"})\n    compadd -a names\n    _files\n}\n_weft() {\n    local command=$words[2]\n    local -a names\n"
             "    if ((CURRENT == 2)); then\n        names=(");
    put_zsh_names(out, &COMMANDS);
    weft__strbuf_puts(out, " help)\n        _describe -t commands command names\n        return\n    fi\n"
                           "    case $command in\n");
    for (int i = 0; i < COMMANDS.n; i++) {
        if (!COMMANDS.items[i].kinds) continue;
        weft__strbuf_printf(out, "    %s) names=(", COMMANDS.items[i].name);
        put_zsh_names(out, COMMANDS.items[i].kinds);
        weft__strbuf_puts(out, ") ;;\n");
    }
    weft__strbuf_puts(out, "    help) names=(");
    put_zsh_names(out, &COMMANDS);
    weft__strbuf_puts(out, "); ((CURRENT == 3)) && _describe -t commands command names; return ;;\n    esac\n"
                           "    if ((${#names})); then\n        if ((CURRENT == 3)); then\n"
                           "            _describe -t commands kind names\n            return\n        fi\n"
                           "        command+=\" $words[3]\"\n        shift words\n        ((CURRENT--))\n    fi\n"
                           "    shift words\n    ((CURRENT--))\n    case $command in\n");
    kinds_visit(&COMMANDS, add_zsh, out);
    weft__strbuf_puts(out, "    esac\n}\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then _weft \"$@\"; "
                           "else compdef _weft weft; fi\n");
}

/* ---- fish ---- */

static void add_fish(const command_kind *k, const command_spec *spec, void *arg)
{
    weft__strbuf *out = arg;
    const char *kind_name = strchr(spec->name, ' ');
    (void)k;
    if (words_of(spec))
        weft__strbuf_printf(out, "complete -c weft -f -n '__fish_seen_subcommand_from %s' -a '%s'\n", spec->name,
                            words_of(spec));
    if (takes_model(spec) && !kind_name)
        weft__strbuf_printf(
            out, "complete -c weft -n '__fish_seen_subcommand_from %s' -a '(command -q weft; and " LIST_MODELS ")'\n",
            spec->name);
    for (const option_spec *o = spec->options; o->name; o++) {
        weft__strbuf_printf(out, "complete -c weft -n '__fish_seen_subcommand_from %.*s", (int)strcspn(spec->name, " "),
                            spec->name);
        if (kind_name) weft__strbuf_printf(out, "; and __fish_seen_subcommand_from%s", kind_name);
        weft__strbuf_printf(out, "' -l %s", o->name);
        if (o->letter) weft__strbuf_printf(out, " -s %c", o->letter);
        if (values_of(o) && !*values_of(o)) weft__strbuf_puts(out, " -x");
        else if (values_of(o)) weft__strbuf_printf(out, " -x -a '%s'", values_of(o));
        else if (o->argument) weft__strbuf_puts(out, " -r -F");
        weft__strbuf_puts(out, " -d '");
        put_quoted(out, o->help, "");
        weft__strbuf_puts(out, "'\n");
    }
}

static void put_fish_names(weft__strbuf *out, const char *condition, const kind_list *list)
{
    for (int i = 0; i < list->n; i++) {
        if (list->items[i].absent) continue;
        weft__strbuf_printf(out, "complete -c weft -f -n '%s' -a %s -d '", condition, list->items[i].name);
        put_quoted(out, list->items[i].about, "");
        weft__strbuf_puts(out, "'\n");
    }
}

static void put_fish(weft__strbuf *out)
{
    weft__strbuf_puts(out, "# completes weft in fish: weft completion fish | source\n");
    put_fish_names(out, "__fish_use_subcommand", &COMMANDS);
    for (int i = 0; i < COMMANDS.n; i++) {
        weft__strbuf condition = {0};
        const command_kind *k = &COMMANDS.items[i];
        if (!k->kinds) continue;
        weft__strbuf_printf(&condition, "__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from ",
                            k->name);
        put_names(&condition, k->kinds);
        if (condition.failed) out->failed = 1;
        else put_fish_names(out, condition.data, k->kinds);
        weft__strbuf_free(&condition);
    }
    kinds_visit(&COMMANDS, add_fish, out);
}

/* ---- the command ---- */

static const struct {
    const char *name;
    void (*put)(weft__strbuf *out);
} SHELLS[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
enum { N_SHELLS = sizeof SHELLS / sizeof *SHELLS };

int cmd_completion(int argc, char **argv)
{
    int first;
    weft_error err = {0};
    weft__strbuf out = {0};
    const option_spec options[] = {{0}};
    const command_spec spec = {
        "completion",
        "SHELL",
        "Prints a script that makes SHELL (bash, zsh or fish) complete commands, options and files behind weft.\n"
        "'make install' puts it where each shell looks.",
        "  source <(weft completion bash)\n  weft completion fish > ~/.config/fish/completions/weft.fish\n",
        options,
        1,
        1};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    for (int i = 0; i < N_SHELLS; i++) {
        if (strcmp(argv[first], SHELLS[i].name)) continue;
        SHELLS[i].put(&out);
        return print_whole(&out, &err) ? report("completion", &err) : EXIT_DONE;
    }
    fprintf(stderr, "weft completion: there is no script for '%s': bash, zsh and fish have one\n", argv[first]);
    return EXIT_USAGE;
}
