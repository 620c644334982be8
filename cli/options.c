/* options.c: getopt_long driven by a command's table. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    snprintf(why, sizeof why, "must be%s%s%s", least[0] || most[0] ? least : " finite", least[0] && most[0] ? " and" : "", most);
    return bad(spec, o, value, why);
}

/* One integer at *s, ending at `end` or the string's end; advances *s. */
static int read_int(const command_spec *spec, const option_spec *o, const char *value, const char **s, char end, int32_t *out)
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
        return stop == value || *stop || errno || value[0] == '-' ? bad(spec, o, value, "not a seed (a whole number from 0 on)")
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

int options_parse(const command_spec *spec, int argc, char **argv, int *first)
{
    char letters[2 * MAX_OPTIONS + 4];
    struct option longs[MAX_OPTIONS + 2];
    static char name[64]; /* argv[0] from here on */
    make_tables(spec, letters, longs);
    snprintf(name, sizeof name, "weft %s", spec->name);
    argv[0] = name; /* getopt prints it in its messages */
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        if (c == 'h') {
            print_help(spec);
            return -1;
        }
        const option_spec *o = c >= 256 ? &spec->options[c - 256] : by_letter(spec, c);
        if (!o) {
            fprintf(stderr, "Try 'weft %s --help'.\n", spec->name);
            return EXIT_USAGE;
        }
        int rc = store(spec, o, optarg);
        if (rc) return rc;
    }
    int n = argc - optind;
    if (n < spec->min_args || (spec->max_args >= 0 && n > spec->max_args)) {
        fprintf(stderr, "weft %s: %s\nusage: weft %s %s\nTry 'weft %s --help'.\n", spec->name,
                n < spec->min_args ? "an argument is missing" : "too many arguments", spec->name, spec->synopsis, spec->name);
        return EXIT_USAGE;
    }
    *first = optind;
    return EXIT_DONE;
}
