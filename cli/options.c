// SPDX-License-Identifier: Apache-2.0
/* options.c: getopt_long driven by a command's table. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "known.h"
#include "near.h"

enum { MAX_OPTIONS = 128, HELP_COLUMN = 30 };

static void print_help(const command_spec *spec)
{
    printf("weft %s %s\n\n%s\n\nOptions:\n", spec->name, spec->synopsis, spec->about);
    for (const option_spec *o = spec->options; o->name; o++) {
        char left[80];
        int n = o->letter ? snprintf(left, sizeof left, "  -%c, --%s", o->letter, o->name)
                          : snprintf(left, sizeof left, "      --%s", o->name);
        if (o->argument && n < (int)sizeof left) snprintf(left + n, sizeof left - (size_t)n, " %s", o->argument);
        printf("%-*s %s\n", HELP_COLUMN, left, o->help);
    }
    printf("%-*s %s\n", HELP_COLUMN, "  -h, --help", "this text");
    if (spec->examples) printf("\nExamples:\n%s", spec->examples);
}

/* Why a value is refused. */
typedef struct refused {
    char why[160];
} refused;

static int refuse(refused *r, const char *why)
{
    snprintf(r->why, sizeof r->why, "%s", why);
    return 0;
}

static int in_range(const option_spec *o, double v)
{
    return (o->min == 0 && o->max == 0) || (v >= o->min && v <= o->max);
}

static int range_error(refused *r, const option_spec *o)
{
    char least[40] = "", most[40] = "";
    if (o->kind != OPT_FLOAT && o->kind != OPT_DOUBLE) {
        snprintf(r->why, sizeof r->why, "must be from %.0f to %.0f", o->min, o->max);
        return 0;
    }
    if (o->min == OPTION_ABOVE_0) snprintf(least, sizeof least, " above 0");
    else if (o->min > -OPTION_FINITE) snprintf(least, sizeof least, " at least %g", o->min);
    if (o->max < OPTION_FINITE) snprintf(most, sizeof most, " at most %g", o->max);
    snprintf(r->why, sizeof r->why, "must be%s%s%s", least[0] || most[0] ? least : " finite",
             least[0] && most[0] ? " and" : "", most);
    return 0;
}

/* One integer at *s, ending at `end` or the string's end; advances *s. */
static int read_int(refused *r, const option_spec *o, const char **s, char end, int32_t *out)
{
    char *stop;
    errno = 0;
    long v = strtol(*s, &stop, 10);
    if (stop == *s || (*stop && *stop != end)) return refuse(r, "not a whole number");
    if (errno || v < INT32_MIN || v > INT32_MAX) return refuse(r, "out of range");
    if (!in_range(o, (double)v)) return range_error(r, o);
    *out = (int32_t)v;
    *s = stop;
    return 1;
}

static int read_int_list(refused *r, const option_spec *o, const char *value)
{
    struct int_list *list = o->out;
    const char *s = value;
    list->n = 0;
    for (;;) {
        if (list->n == LIST_MAX) return refuse(r, "too many values");
        if (!read_int(r, o, &s, ',', &list->items[list->n])) return 0;
        list->n++;
        if (!*s) return 1;
        s++;
    }
}

/* One of the words that o names, or any text where it names none. */
static int read_word(refused *r, const option_spec *o, const char *value)
{
    const size_t n = strlen(value);
    char said[120] = "";
    size_t at = 0;
    int found = !o->words;
    if (o->check) {
        if (!o->check(value, r->why, sizeof r->why)) return 0;
        found = 1;
    }
    for (const char *w = o->words; w && *w && !found;) {
        const size_t len = strcspn(w, " ");
        const int is_last = !w[len];
        found = len == n && !memcmp(w, value, n);
        if (at < sizeof said)
            at += (size_t)snprintf(said + at, sizeof said - at, "%s%.*s",
                                   !at       ? ""
                                   : is_last ? " or "
                                             : ", ",
                                   (int)len, w);
        w += len + !is_last;
    }
    if (found) *(const char **)o->out = o->argument && !strcmp(o->argument, "MODEL") ? known_model_of(value) : value;
    else snprintf(r->why, sizeof r->why, "must be %s", said);
    return found;
}

static int store(refused *r, const option_spec *o, const char *value)
{
    char *stop;
    if (o->given) *o->given = 1;
    switch (o->kind) {
    case OPT_FLAG: *(int *)o->out = 1; return 1;
    case OPT_INT: {
        const char *s = value;
        if (o->words && !strcmp(value, o->words)) {
            *(int32_t *)o->out = -1;
            return 1;
        }
        return read_int(r, o, &s, 0, o->out);
    }
    case OPT_SEED:
        errno = 0;
        *(uint64_t *)o->out = strtoull(value, &stop, 10);
        return stop == value || *stop || errno || value[0] == '-' ? refuse(r, "not a seed (a whole number from 0 on)")
                                                                  : 1;
    case OPT_FLOAT: {
        float v = strtof(value, &stop);
        if (stop == value || *stop || isnan(v)) return refuse(r, "not a number");
        if (!in_range(o, (double)v)) return range_error(r, o);
        *(float *)o->out = v;
        return 1;
    }
    case OPT_DOUBLE: {
        double v = strtod(value, &stop);
        if (stop == value || *stop || isnan(v)) return refuse(r, "not a number");
        if (!in_range(o, v)) return range_error(r, o);
        *(double *)o->out = v;
        return 1;
    }
    case OPT_TEXT: return read_word(r, o, value);
    case OPT_LIST: {
        struct text_list *list = o->out;
        if (list->n == LIST_MAX) return refuse(r, "given too often");
        if (o->check && !o->check(value, r->why, sizeof r->why)) return 0;
        list->items[list->n++] = value;
        return 1;
    }
    case OPT_INT_LIST: return read_int_list(r, o, value);
    }
    return 0;
}

/* Fills getopt's tables; long options return 256 + index. */
static void make_tables(const command_spec *spec, char *letters, struct option *longs)
{
    int n = 0, at = 0;
    letters[at++] = ':'; /* a value that is missing is told apart; getopt says nothing by itself */
    letters[at++] = 'h';
    for (; spec->options[n].name; n++) {
        const option_spec *o = &spec->options[n];
        if (n == MAX_OPTIONS) abort(); /* any call of the command finds it */
        longs[n] = (struct option){o->name, o->kind == OPT_FLAG ? no_argument : required_argument, NULL, 256 + n};
        if (o->letter) {
            letters[at++] = o->letter;
            if (o->kind != OPT_FLAG) letters[at++] = ':';
        }
    }
    longs[n] = (struct option){"help", no_argument, NULL, 'h'};
    longs[n + 1] = (struct option){0};
    letters[at] = 0;
}

static const option_spec *by_letter(const command_spec *spec, int letter)
{
    const option_spec *o = spec->options;
    while (o->name && o->letter != letter) o++;
    return o->name ? o : NULL;
}

/* ---- what is no option ---- */

static const option_spec *by_name(const command_spec *spec, const char *name, size_t n)
{
    const option_spec *o = spec->options;
    while (o->name && (strlen(o->name) != n || memcmp(o->name, name, n))) o++;
    return o->name ? o : NULL;
}

/* The option that an argument names alone, without a value in it; NULL: none, or more than that. */
static const option_spec *named_by(const command_spec *spec, const char *argument)
{
    if (argument[1] == '-') return by_name(spec, argument + 2, strlen(argument + 2));
    return argument[1] && !argument[2] ? by_letter(spec, argument[1]) : NULL;
}

/* Is there an option of ours that begins so? getopt takes what is left out of a long one, and what stands behind a
 * letter as its value. */
static int is_ours(const command_spec *spec, const char *argument)
{
    const size_t n = strcspn(argument + 2, "=");
    if (argument[1] != '-') return argument[1] && !argument[2] && by_letter(spec, argument[1]);
    for (const option_spec *o = spec->options; o->name; o++)
        if (!strncmp(o->name, argument + 2, n)) return 1;
    return !strncmp("help", argument + 2, n);
}

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz-"

/* Is an answer about an option that this command lacks? What stands behind "weft" is another command's. */
static int is_lacking(const command_spec *spec, const char *answer)
{
    const char *name = strstr(answer, "--"), *other = strstr(answer, "weft ");
    return name && (!other || other > name) && !by_name(spec, name + 2, strspn(name + 2, NAME_LETTERS));
}

/* 1 after a message about an option of other programs, before any value is read: "-ngl 99" is not "-n gl". */
static int find_foreign(const command_spec *spec, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        if (argv[i][0] != '-' || !argv[i][1]) continue;
        const option_spec *o = named_by(spec, argv[i]);
        const char *answer = is_ours(spec, argv[i]) ? NULL : near_foreign_option(spec->name, argv[i]);
        if (o && o->kind != OPT_FLAG) i++; /* its value */
        if (!answer) continue;
        fprintf(stderr, "weft %s: there is no %.*s: %s", spec->name, (int)strcspn(argv[i], "="), argv[i], answer);
        if (is_lacking(spec, answer)) fprintf(stderr, ", which 'weft %s' does not have", spec->name);
        fprintf(stderr, "\nTry 'weft %s --help'.\n", spec->name);
        return 1;
    }
    return 0;
}

static const char *option_name(const void *arg, size_t i)
{
    const option_spec *options = arg;
    return options[i].name;
}

/* After getopt refused an argument: c as it returned. */
static int options_refuse(const command_spec *spec, int c, const char *argument, const struct option *longs)
{
    const option_spec *o = optopt >= 256 ? &spec->options[optopt - 256] : optopt ? by_letter(spec, optopt) : NULL;
    const size_t n = strcspn(argument, "=");
    fprintf(stderr, "weft %s: ", spec->name);
    if (c == ':' && o) fprintf(stderr, "--%s wants a value: --%s %s\n", o->name, o->name, o->argument);
    else if (o) fprintf(stderr, "--%s takes no value\n", o->name);
    else if (optopt && strncmp(argument, "--", 2)) fprintf(stderr, "there is no option -%c\n", optopt);
    else {
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)(n > 2 ? n - 2 : 0), argument + 2);
        int begin = 0;
        for (const struct option *l = longs; l->name; l++) begin += !strncmp(l->name, word, strlen(word));
        const char *meant = weft__near_match(word, option_name, spec->options);
        fprintf(stderr, "%s '%.*s'", begin > 1 ? "several options begin with" : "there is no option", (int)n, argument);
        if (meant) fprintf(stderr, "; did you mean --%s?\n", meant);
        else putc('\n', stderr);
    }
    fprintf(stderr, "Try 'weft %s --help'.\n", spec->name);
    return EXIT_USAGE;
}

static char occurred[MAX_OPTIONS]; /* in the last options_parse, by the line of its table */

static option_visitor *visitor;
static void *visitor_arg;

void options_visit(option_visitor *visit, void *arg)
{
    visitor = visit;
    visitor_arg = arg;
}

/* Is the first argument what a command opens as a model? */
static int begins_with_model(const command_spec *spec)
{
    static const char *const words[] = {"MODEL", "BASE", "IN"};
    const char *s = spec->synopsis + strspn(spec->synopsis, "[");
    const size_t n = strcspn(s, " |]");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (n == strlen(words[i]) && !memcmp(s, words[i], n)) return 1;
    return 0;
}

int options_parse(const command_spec *spec, int argc, char **argv, int *first)
{
    if (visitor) {
        visitor(spec, visitor_arg);
        return -1;
    }
    char letters[2 * MAX_OPTIONS + 5];
    struct option longs[MAX_OPTIONS + 2];
    make_tables(spec, letters, longs);
    if (find_foreign(spec, argc, argv)) return EXIT_USAGE;
    optind = 1;
    opterr = 0;
    memset(occurred, 0, sizeof occurred);
    for (int c; (c = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        if (c == 'h') {
            print_help(spec);
            return -1;
        }
        if (c == ':' || c == '?') return options_refuse(spec, c, argv[optind - 1], longs);
        const option_spec *o = c >= 256 ? &spec->options[c - 256] : by_letter(spec, c);
        refused r;
        occurred[o - spec->options] = 1;
        if (!store(&r, o, optarg)) {
            fprintf(stderr, "weft %s: --%s %s: %s\n", spec->name, o->name, optarg, r.why);
            return EXIT_USAGE;
        }
    }
    int n = argc - optind;
    if (n < spec->min_args || (spec->max_args >= 0 && n > spec->max_args)) {
        fprintf(stderr, "weft %s: %s\nusage: weft %s %s\nTry 'weft %s --help'.\n", spec->name,
                n < spec->min_args ? "an argument is missing" : "too many arguments", spec->name, spec->synopsis,
                spec->name);
        return EXIT_USAGE;
    }
    *first = optind;
    if (n > 0 && begins_with_model(spec)) argv[optind] = (char *)(uintptr_t)known_model_of(argv[optind]);
    return EXIT_DONE;
}

/* ---- options from elsewhere ---- */

int options_given(const command_spec *spec, const char *name)
{
    const option_spec *o = by_name(spec, name, strlen(name));
    return o && occurred[o - spec->options];
}

const char *options_near(const command_spec *spec, const char *name)
{
    return weft__near_match(name, option_name, spec->options);
}

/* What any option writes, to be thrown away. */
typedef union option_value {
    int flag;
    uint64_t seed;
    double number;
    const char *text;
    struct text_list list;
    struct int_list ints;
} option_value;

int options_set(const command_spec *spec, const char *name, const char *const *values, size_t n, int only_look,
                char *why, size_t room)
{
    const option_spec *o = by_name(spec, name, strlen(name));
    option_value thrown_away = {0};
    refused r = {""};
    if (!o) return snprintf(why, room, "there is no option --%s", name), 0;
    option_spec to = *o;
    if (only_look) to.out = &thrown_away, to.given = NULL;
    if (o->kind == OPT_FLAG) {
        const int on = n == 1 && !strcmp(values[0], "true"), off = n == 1 && !strcmp(values[0], "false");
        if (on) *(int *)to.out = 1;
        if (on || off) return 1;
        return snprintf(why, room, "%s: must be true or false", name), 0;
    }
    if (n != 1 && o->kind != OPT_LIST) return snprintf(why, room, "%s: must be one value, not a list", name), 0;
    for (size_t i = 0; i < n; i++)
        if (!store(&r, &to, values[i])) return snprintf(why, room, "%s %.80s: %s", name, values[i], r.why), 0;
    return 1;
}
