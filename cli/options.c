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
#include "near.h"

enum { MAX_OPTIONS = 64, HELP_COLUMN = 30 };

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

static int bad(const command_spec *spec, const option_spec *o, const char *value, const char *why)
{
    fprintf(stderr, "weft %s: --%s %s: %s\n", spec->name, o->name, value, why);
    return EXIT_USAGE;
}

static int in_range(const option_spec *o, double v)
{
    return (o->min == 0 && o->max == 0) || (v >= o->min && v <= o->max);
}

static int range_error(const command_spec *spec, const option_spec *o, const char *value)
{
    char why[96], least[40] = "", most[40] = "";
    if (o->kind != OPT_FLOAT && o->kind != OPT_DOUBLE) {
        snprintf(why, sizeof why, "must be from %.0f to %.0f", o->min, o->max);
        return bad(spec, o, value, why);
    }
    if (o->min == OPTION_ABOVE_0) snprintf(least, sizeof least, " above 0");
    else if (o->min > -OPTION_FINITE) snprintf(least, sizeof least, " at least %g", o->min);
    if (o->max < OPTION_FINITE) snprintf(most, sizeof most, " at most %g", o->max);
    snprintf(why, sizeof why, "must be%s%s%s", least[0] || most[0] ? least : " finite",
             least[0] && most[0] ? " and" : "", most);
    return bad(spec, o, value, why);
}

/* One integer at *s, ending at `end` or the string's end; advances *s. */
static int read_int(const command_spec *spec, const option_spec *o, const char *value, const char **s, char end,
                    int32_t *out)
{
    char *stop;
    errno = 0;
    long v = strtol(*s, &stop, 10);
    if (stop == *s || (*stop && *stop != end)) return bad(spec, o, value, "not a whole number");
    if (errno || v < INT32_MIN || v > INT32_MAX) return bad(spec, o, value, "out of range");
    if (!in_range(o, (double)v)) return range_error(spec, o, value);
    *out = (int32_t)v;
    *s = stop;
    return EXIT_DONE;
}

static int read_int_list(const command_spec *spec, const option_spec *o, const char *value)
{
    struct int_list *list = o->out;
    const char *s = value;
    list->n = 0;
    for (;;) {
        if (list->n == LIST_MAX) return bad(spec, o, value, "too many values");
        int rc = read_int(spec, o, value, &s, ',', &list->items[list->n]);
        if (rc) return rc;
        list->n++;
        if (!*s) return EXIT_DONE;
        s++;
    }
}

static int store(const command_spec *spec, const option_spec *o, const char *value)
{
    char *stop;
    if (o->given) *o->given = 1;
    switch (o->kind) {
    case OPT_FLAG: *(int *)o->out = 1; return EXIT_DONE;
    case OPT_INT: {
        const char *s = value;
        return read_int(spec, o, value, &s, 0, o->out);
    }
    case OPT_SEED:
        errno = 0;
        *(uint64_t *)o->out = strtoull(value, &stop, 10);
        return stop == value || *stop || errno || value[0] == '-'
                   ? bad(spec, o, value, "not a seed (a whole number from 0 on)")
                   : EXIT_DONE;
    case OPT_FLOAT: {
        float v = strtof(value, &stop);
        if (stop == value || *stop || isnan(v)) return bad(spec, o, value, "not a number");
        if (!in_range(o, (double)v)) return range_error(spec, o, value);
        *(float *)o->out = v;
        return EXIT_DONE;
    }
    case OPT_DOUBLE: {
        double v = strtod(value, &stop);
        if (stop == value || *stop || isnan(v)) return bad(spec, o, value, "not a number");
        if (!in_range(o, v)) return range_error(spec, o, value);
        *(double *)o->out = v;
        return EXIT_DONE;
    }
    case OPT_TEXT: *(const char **)o->out = value; return EXIT_DONE;
    case OPT_LIST: {
        struct text_list *list = o->out;
        if (list->n == LIST_MAX) return bad(spec, o, value, "given too often");
        list->items[list->n++] = value;
        return EXIT_DONE;
    }
    case OPT_INT_LIST: return read_int_list(spec, o, value);
    }
    return EXIT_USAGE;
}

/* Fills getopt's tables; long options return 256 + index. */
static void make_tables(const command_spec *spec, char *letters, struct option *longs)
{
    int n = 0, at = 0;
    letters[at++] = ':'; /* a value that is missing is told apart; getopt says nothing by itself */
    letters[at++] = 'h';
    for (; spec->options[n].name && n < MAX_OPTIONS; n++) {
        const option_spec *o = &spec->options[n];
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

/* 1 after a message about an option of other programs, before any value is read: "-ngl 99" is not "-n gl". */
static int find_foreign(const command_spec *spec, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        if (argv[i][0] != '-' || !argv[i][1]) continue;
        const option_spec *o = named_by(spec, argv[i]);
        const char *answer = is_ours(spec, argv[i]) ? NULL : near_foreign_option(spec->name, argv[i]);
        if (o && o->kind != OPT_FLAG) i++; /* its value */
        if (!answer) continue;
        fprintf(stderr, "weft %s: there is no %.*s: %s\nTry 'weft %s --help'.\n", spec->name,
                (int)strcspn(argv[i], "="), argv[i], answer, spec->name);
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

static option_visitor *visitor;
static void *visitor_arg;

void options_visit(option_visitor *visit, void *arg)
{
    visitor = visit;
    visitor_arg = arg;
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
    for (int c; (c = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        if (c == 'h') {
            print_help(spec);
            return -1;
        }
        if (c == ':' || c == '?') return options_refuse(spec, c, argv[optind - 1], longs);
        const option_spec *o = c >= 256 ? &spec->options[c - 256] : by_letter(spec, c);
        int rc = store(spec, o, optarg);
        if (rc) return rc;
    }
    int n = argc - optind;
    if (n < spec->min_args || (spec->max_args >= 0 && n > spec->max_args)) {
        fprintf(stderr, "weft %s: %s\nusage: weft %s %s\nTry 'weft %s --help'.\n", spec->name,
                n < spec->min_args ? "an argument is missing" : "too many arguments", spec->name, spec->synopsis,
                spec->name);
        return EXIT_USAGE;
    }
    *first = optind;
    return EXIT_DONE;
}
