// SPDX-License-Identifier: Apache-2.0
/* schema_formats.c: what the formats of JSON Schema are as expressions: each as strict as its RFC where a reader may be
 * (3339, 3986, 4122, 4291, 6570, 6901, 9562, 1123), in common forms where it is wide. Others are annotations, as the
 * standard has it. Stateless. */
#include <string.h>

#include "text/grammar/schema_parts.h"

#define YEAR "([1-9]\\d{3}|0[1-9]\\d\\d|00[1-9]\\d|000[1-9])"
#define LEAP "(\\d\\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
#define DATE                                                                                                           \
    "(" YEAR                                                                                                           \
    "-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))|" LEAP         \
    "-02-29)"
#define TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
#define EMAIL "^[A-Za-z0-9_+-]{1,32}(\\.[A-Za-z0-9_+-]{1,32}){0,2}@" LABEL "(\\." LABEL "){1,3}$"
/* No two hyphens behind each other: names with those may have to be those of other alphabets. */
#define HOST(letter) letter "{1,20}(-" letter "{1,10}){0,3}"
#define TOP(first, letter) first letter "{0,18}(-" letter "{1,10}){0,2}"
#define HOSTNAME(first, letter) "^(" HOST(letter) "\\.){0,3}" TOP(first, letter) "$"
#define OCTET "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define H "[0-9A-Fa-f]{1,4}"
#define UUID(version, variant)                                                                                         \
    "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-" version "[0-9A-Fa-f]{3}-" variant "[0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$"
#define UUID_OF(version) UUID(version, "[89ABab]")
#define ESCAPED "%[0-9A-Fa-f]{2}"
#define URI_CHAR "([A-Za-z0-9._~!$&'()*+,;=:@-]|" ESCAPED ")"
#define NAME_CHAR "([A-Za-z0-9._~!$&'()*+,;=@-]|" ESCAPED ")" /* of a first segment: no colon */
/* One repetition each for host, path, query and fragment, which share what a bound leaves
 * (weft__gram_regex_bounded). */
#define TAIL "(\\?(" URI_CHAR "|[/?])*)?(#(" URI_CHAR "|[/?])*)?"
#define SEGMENTS "(" URI_CHAR "|/)*"
#define AUTHORITY "//[A-Za-z0-9]([.-]?[A-Za-z0-9])*(:\\d{1,5})?(/" SEGMENTS ")?"
#define PATH URI_CHAR SEGMENTS
#define ABSOLUTE "[A-Za-z][A-Za-z0-9+.-]{0,15}:(" AUTHORITY "|" PATH ")"
#define RELATIVE AUTHORITY "|/(" PATH ")?|" NAME_CHAR "+(/" SEGMENTS ")?"
#define URI "^" ABSOLUTE TAIL "$"
#define URI_REFERENCE "^(" ABSOLUTE "|" RELATIVE ")?" TAIL "$"
#define VARIABLE "([A-Za-z0-9_]|" ESCAPED ")+(\\*|:[1-9]\\d{0,2})?"
#define POINTER "(/([^/~]|~[01])*)*"
#define DAYS "\\d{1,9}D"
#define MONTHS "\\d{1,9}M(" DAYS ")?"
#define SECONDS "\\d{1,9}S"
#define MINUTES "\\d{1,9}M(" SECONDS ")?"
#define TIMES "T(\\d{1,9}H(" MINUTES ")?|" MINUTES "|" SECONDS ")"
/* Expressions that all readers of them take, with groups in groups in groups at most. */
#define REPEATS "([*+?]|\\{\\d,?\\}|\\{[0-4],[5-9]\\d?\\})?"
#define REGEX_CLASS "\\[\\^?([A-Za-z0-9 _.,:;/@#%+*=]|a-z|A-Z|0-9|\\\\[dwsnt\\]\\\\.-])+\\]"
#define REGEX_ATOM "([A-Za-z0-9 _,:;/@#%&='\"<>~!-]|\\.|\\\\[dwsDWSnrt.()\\[\\]{}*+?^$|\\\\/]|" REGEX_CLASS
#define REGEX_ITEMS_0 "(" REGEX_ATOM ")" REPEATS ")+"
#define REGEX_GROUP(items) "|\\((\\?:)?" items "(\\|" items ")*\\)"
#define REGEX_ITEMS_1 "(" REGEX_ATOM REGEX_GROUP(REGEX_ITEMS_0) ")" REPEATS ")+"
#define REGEX_ITEMS_2 "(" REGEX_ATOM REGEX_GROUP(REGEX_ITEMS_1) ")" REPEATS ")+"

#define SHORT_HOST "[A-Za-z0-9]{1,12}(-[A-Za-z0-9]{1,6})?"
#define SHORT_EMAIL                                                                                                    \
    "^[A-Za-z0-9_+-]{1,24}(\\.[A-Za-z0-9_+-]{1,24})?@[A-Za-z0-9]{1,16}(-[A-Za-z0-9]{1,8})?"                            \
    "(\\.[A-Za-z0-9]{1,12})?\\.[A-Za-z]{2,12}$"

static const struct {
    const char *name, *pattern;
    const char *fewer; /* some of the same in fewer states, for strings whose characters are counted; or NULL */
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"duration", "^P(\\d{1,9}W|" TIMES "|(\\d{1,9}Y(" MONTHS ")?|" MONTHS "|" DAYS ")(" TIMES ")?)$"},
    {"email", EMAIL, SHORT_EMAIL},
    {"idn-email", EMAIL, SHORT_EMAIL},
    {"hostname", HOSTNAME("[A-Za-z]", "[A-Za-z0-9]"), "^(" SHORT_HOST "\\.){0,2}[A-Za-z][A-Za-z0-9]{0,11}$"},
    {"idn-hostname", HOSTNAME("[a-z]", "[a-z0-9]"), "^([a-z0-9]{1,16}\\.){0,2}[a-z][a-z0-9]{0,11}$"},
    {"uuid", UUID("[0-9A-Fa-f]", "[0-9A-Fa-f]")},
    {"uuid1", UUID_OF("1")},
    {"uuid2", UUID_OF("2")},
    {"uuid3", UUID_OF("3")},
    {"uuid4", UUID_OF("4")},
    {"uuid5", UUID_OF("5")},
    {"uuid6", UUID_OF("6")},
    {"uuid7", UUID_OF("7")},
    {"uuid8", UUID_OF("8")},
    {"ipv4", "^" OCTET "(\\." OCTET "){3}$"},
    {"ipv6",
     "^((" H ":){7}" H "|::|(" H ":){1,7}:|(" H ":){1,6}(:" H "){1}|(" H ":){1,5}(:" H "){1,2}|(" H ":){1,4}(:" H
     "){1,3}|(" H ":){1,3}(:" H "){1,4}|(" H ":){1,2}(:" H "){1,5}|" H ":(:" H "){1,6}|:(:" H "){1,7})$"},
    {"uri", URI},
    {"iri", URI},
    {"uri-reference", URI_REFERENCE},
    {"iri-reference", URI_REFERENCE},
    {"uri-template", "^(" URI_CHAR "|[/?#]|\\{[+#./;?&]?" VARIABLE "(," VARIABLE ")*\\})*$"},
    {"json-pointer", "^" POINTER "$"},
    {"relative-json-pointer", "^[1-9]{0,3}\\d(#|" POINTER ")$"},
    {"regex", "^\\^?" REGEX_ITEMS_2 "(\\|" REGEX_ITEMS_2 ")*\\$?$", "^\\^?" REGEX_ITEMS_0 "\\$?$"},
};

int weft__gram_schema_expression(weft__gram_schema *c, const char *at, const char *key, const weft__json *value,
                                 const char **s, size_t *n)
{
    if (!weft__json_string(value, s, n)) {
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "must be a string");
        return 0;
    }
    if (strcmp(key, "format") != 0) return 1;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strlen(formats[i].name) != *n || memcmp(*s, formats[i].name, *n) != 0) continue;
        *s = formats[i].pattern;
        *n = strlen(*s);
        return 1;
    }
    return 0;
}

const char *weft__gram_schema_fewer(const char *expression)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (expression == formats[i].pattern) return formats[i].fewer;
    return NULL;
}
