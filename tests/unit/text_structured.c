// SPDX-License-Identifier: Apache-2.0
/* text_structured.c: claims about the forms of answers beside GBNF and JSON Schema: regular expressions, lists of
 * choices and Lark-like EBNF allow what they say, and what they do not take is refused by its place. */
#include "unit/grammar_world.h"

static vocab bytes;

typedef int32_t reader(weft__gram *g, const char *source, size_t n);

static weft_status read_and_compile(reader *read, const char *source, weft__gram_automaton **out, weft_error *err)
{
    *out = NULL;
    weft__gram *g = weft__gram_create();
    if (!g) return weft_fail(err, WEFT_NO_MEMORY, "no memory");
    int32_t root = read(g, source, strlen(source));
    weft_status st = weft__gram_compile(g, root, WEFT__GRAM_DEPTH, out, err);
    weft__gram_destroy(&g);
    return st;
}

enum { TEXTS = 8 };
typedef struct form_case {
    const char *source, *whole[TEXTS], *not [TEXTS];
} form_case;

static void allow(reader *read, const form_case *x)
{
    weft__gram_automaton *a;
    weft__gram_tables *g;
    weft_error err = {0};
    if (read_and_compile(read, x->source, &a, &err)) fail_msg("%s\n%s", x->source, err.message);
    assert_int_equal(weft__gram_tables_create(a, bytes.trie, &g, NULL), WEFT_OK);
    for (int k = 0; k < TEXTS && x->whole[k]; k++)
        if (follow(g, x->whole[k], strlen(x->whole[k])) < 1) fail_msg("%s\nmust allow '%s'", x->source, x->whole[k]);
    for (int k = 0; k < TEXTS && x->not [k]; k++)
        if (follow(g, x->not [k], strlen(x->not [k])) > 0) fail_msg("%s\nmust not allow '%s'", x->source, x->not [k]);
    weft__gram_tables_release(&g);
}

typedef struct refused_case {
    const char *source;
    weft_status status;
    const char *message;
} refused_case;

static void refuse(reader *read, const refused_case *x)
{
    weft__gram_automaton *a;
    weft_error err = {0};
    weft_status st = read_and_compile(read, x->source, &a, &err);
    if (st != x->status || !strstr(err.message, x->message))
        fail_msg("%s\n%d: '%s' lacks '%s'", x->source, st, err.message, x->message);
    assert_null(a);
}

static void a_regular_expression_matches_whole_texts(void **state)
{
    (void)state;
    static const form_case cases[] = {
        {"yes|no", {"yes", "no"}, {"yesno", "", "ye", "xyes", "no "}},
        {"^yes$|^no", {"yes", "no"}, {"^yes", "yes$", "nono"}},
        {"[A-Z]{2}-\\d{1,3}", {"AB-1", "ZZ-123"}, {"AB-", "A-1", "AB-1234", "ab-1"}},
        {"(a|b)*c?", {"", "abba", "abc", "c"}, {"cc", "ca", "d"}},
        {".\\.", {"a.", "\xE4\xB8\xAD."}, {"\n.", ".", "a,"}},
        {"\"\\\\\\n\"", {"\"\\\n\""}, {"\"\\n\"", "\""}},
        {"\\w+\\s\\S", {"a_1 x", "Z\t\xC3\xA9"}, {"\xC3\xA9 x", "a  ", "a x y"}},
        {"[^\\w]", {"-", " "}, {"a", "\xC3\xA9", "\xE4\xB8\xAD"}}, /* a letter for some readers is none of these */
        {"[^\\W]", {"a", "_"}, {"-", "\xC3\xA9"}},
        {"\\D\\W\\S", {"--x", "a-x"}, {"1-x", "-ax", "-- ", "\xD9\xA3-x"}},
        {"(?:ab){2}\\x41\\u4e2d", {"ababA\xE4\xB8\xAD"}, {"abA\xE4\xB8\xAD"}},
        {"a{2,}b*?", {"aa", "aaab"}, {"a", "b"}},
        {"", {""}, {"a"}},
    };
    static const refused_case no[] = {
        {"a(?=b)", WEFT_UNSUPPORTED, "regex: near byte 2: groups that begin with '(?'"},
        {"(a)\\1", WEFT_UNSUPPORTED, "references to groups"},
        {"\\ba", WEFT_UNSUPPORTED, "word boundaries"},
        {"\\p{L}", WEFT_UNSUPPORTED, "Unicode classes"},
        {"(a", WEFT_UNSUPPORTED, "closing ')'"},
        {"a)", WEFT_UNSUPPORTED, "near byte 2: a ')' without its '('"},
        {"[a", WEFT_UNSUPPORTED, "closing ']'"},
        {"[b-a]", WEFT_UNSUPPORTED, "backwards"},
        {"a^b", WEFT_UNSUPPORTED, "near byte 2: an anchor"},
        {"a$b", WEFT_UNSUPPORTED, "near byte 2: an anchor"},
        {"*a", WEFT_UNSUPPORTED, "near byte 1: one of *+?{}] where nothing stands before it"},
        {"a{3,2}", WEFT_UNSUPPORTED, "more than it allows"},
        {"[^\\s\\S]", WEFT_UNSUPPORTED, "matches no character"},
        {"\xFF", WEFT_UNSUPPORTED, "UTF-8"},
        {"(((a{99}){99}){99}){99}", WEFT_LIMIT, "repetition"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) allow(weft__gram_read_regex, &cases[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) refuse(weft__gram_read_regex, &no[i]);
}

static void a_choice_is_one_of_the_texts(void **state)
{
    (void)state;
    static const form_case cases[] = {
        {"[\"yes\", \"no\", \"yes\"]", {"yes", "no"}, {"", "y", "yesno"}},
        {"[\"a\\u00e9\\n\"]", {"a\xC3\xA9\n"}, {"a"}},
        {"[\"\", \"x\"]", {"", "x"}, {"xx"}},
    };
    static const refused_case no[] = {
        {"[]", WEFT_ARGUMENT, "choices: #: must be a list"},
        {"\"a\"", WEFT_ARGUMENT, "choices: #: must be a list"},
        {"[\"a\", 1]", WEFT_ARGUMENT, "choices: #/1: must be a string"},
        {"[\"a\"", WEFT_ARGUMENT, "choices: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) allow(weft__gram_read_choices, &cases[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) refuse(weft__gram_read_choices, &no[i]);
}

static void lark_reads_what_it_says(void **state)
{
    (void)state;
    static const form_case cases[] = {
        {"start: \"a\" | \"b\"", {"a", "b"}, {"ab", ""}},
        {"// numbers\nstart: sign? DIGITS # both\n\nsign: \"-\"\n    | \"+\" -> plus\nDIGITS: /[0-9]/+\n",
         {"1", "-12", "+3"},
         {"", "-", "1-"}},
        {"?start: expr\n?expr: expr \"+\" term | expr \"-\" term | term\n!term: term \"*\" atom | atom\natom: N | "
         "\"(\" "
         "expr \")\"\nN: \"0\"..\"9\"",
         {"1", "1+2*3", "(1-2)*(3)", "((4))"},
         {"", "1+", "(1", "+1", "12"}},
        {"start: item (\",\" item)~1..2\nitem: \"x\"~2 [\"y\"]", {"xx,xx", "xxy,xx,xxy"}, {"xx", "x,x", "xx,xx,xx,xx"}},
        {"start: \"select\"i NAME\nNAME: (\"a\"..\"z\" | \"_\")+\n%ignore / +/",
         {"selectx", "SELECT  a_b", "SeLeCt x  "},
         {" selectx", "select", "select x y"}},
        {"%import common.WS\n%ignore WS\n%import common (INT, CNAME)\nstart: CNAME \"=\" INT",
         {"x=1", "x = 12", "a_1\n=\n3"},
         {"1=1", "x==1"}},
        {"%import common.ESCAPED_STRING -> STRING\nstart: STRING",
         {"\"a\\\"b\"", "\"\""},
         {"\"a", "\"a\"b\"", "\"\n\""}},
        {"%import common.SIGNED_NUMBER\nstart: SIGNED_NUMBER",
         {"1", "-1.5", "+.5e-3", "2e9"},
         {"-", ".", "1e", "1.2.3"}},
        {"%import common.C_COMMENT\nstart: C_COMMENT", {"/**/", "/* a * b **/"}, {"/*/", "/* */ */"}},
        {"start: /a.b/s /[x-z]+/i", {"a\nbX", "a-bxYz"}, {"ab", "a\nb"}},
        {"start: (\n  \"a\"\n  | \"b\"\n)+ \"\\\"\\n\\x41\\u00e9\"", {"ab\"\nA\xC3\xA9"}, {"\"\nA\xC3\xA9"}},
        {"start: _list\n_list: \"[\" [_list (\",\" _list)*] \"]\"", {"[]", "[[],[[]]]"}, {"[", "[,]", "[]]"}},
        {"start: A B?\nA: \"x\" | B \"y\"\nB: \"z\"", {"x", "xz", "zy", "zyz"}, {"z", "xx"}},
        {"start:", {""}, {"a"}},
        {"start: | \"a\" start", {"", "aaa"}, {"b"}},
        {"start: x\nx: x | x \"a\" | \"b\" | \"c\"", {"b", "caa"}, {"a", "bb"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) allow(weft__gram_read_lark, &cases[i]);
}

static void what_lark_has_more_is_refused_by_line(void **state)
{
    (void)state;
    static const refused_case no[] = {
        {"rule: \"a\"", WEFT_ARGUMENT, "rule 'start' is not defined; a grammar begins with it"},
        {"start: x\ny: \"a\"", WEFT_ARGUMENT, "rule 'x' (line 1) is used but not defined"},
        {"start: NUMBER", WEFT_ARGUMENT,
         "rule 'NUMBER' (line 1) is used but not defined; '%import common.NUMBER' defines it"},
        {"start: \"a\"\nstart: \"b\"", WEFT_ARGUMENT, "line 2: rule 'start' (line 1) is defined again"},
        {"start: \"a\"\n\n%declare B", WEFT_UNSUPPORTED, "line 3: of directives"},
        {"%import python.NAME\nstart: \"a\"", WEFT_UNSUPPORTED, "line 1: only the library 'common'"},
        {"%import common.NONE\nstart: \"a\"", WEFT_UNSUPPORTED,
         "line 1: there is no such terminal in 'common' at 'NONE'"},
        {"start: a{x}\na: \"a\"", WEFT_UNSUPPORTED, "line 1: templates"},
        {"start{x}: x", WEFT_UNSUPPORTED, "line 1: templates"},
        {"start: A\nA.2: \"a\"", WEFT_UNSUPPORTED, "line 2: priorities"},
        {"start: <|end|>", WEFT_UNSUPPORTED, "line 1: special tokens"},
        {"start: %json {}", WEFT_UNSUPPORTED, "line 1: directives within rules"},
        {"start: A\nA: b\nb: \"b\"", WEFT_ARGUMENT, "line 2: a terminal is made of terminals, not of rules, at 'b'"},
        {"start: /a(?=b)/", WEFT_UNSUPPORTED, "line 1: regular expression, near byte 2: groups that begin with '(?'"},
        {"start: /a/x", WEFT_UNSUPPORTED, "line 1: of flags"},
        {"start: /a", WEFT_ARGUMENT, "line 1: a regular expression without a closing '/'"},
        {"start: \"a", WEFT_ARGUMENT, "line 1: a string without a closing"},
        {"start: \"\\q\"", WEFT_ARGUMENT, "line 1: an unknown escape"},
        {"start: \"\\ud800\"", WEFT_ARGUMENT, "line 1: an escape that names no character"},
        {"start: \"ab\"..\"c\"", WEFT_ARGUMENT, "line 1: a range is of two single characters"},
        {"start: \"c\"..\"a\"", WEFT_ARGUMENT, "line 1: a range from U+0063 down to U+0061"},
        {"start: \"\xC3\xA9\"i", WEFT_UNSUPPORTED, "line 1: characters beyond ASCII"},
        {"start: (\"a\"", WEFT_ARGUMENT, "line 1: a group without a closing ')'"},
        {"start: [\"a\")", WEFT_ARGUMENT, "line 1: a group without a closing ']'"},
        {"start: \"a\"\n  \"b\"", WEFT_ARGUMENT, "line 2: a rule must begin with its name and ':'"},
        {"start = \"a\"", WEFT_ARGUMENT, "line 1: a rule must begin with its name and ':'"},
        {"start: \"a\"~", WEFT_ARGUMENT, "line 1: a number must follow"},
        {"start: \"a\"~3..2", WEFT_ARGUMENT, "{3,2}"},
        {"start: \"a\"~99999999999", WEFT_LIMIT, "line 1: a repetition"},
        {"start: *", WEFT_ARGUMENT, "line 1: nothing to be repeated"},
        {"start: start \"a\"", WEFT_ARGUMENT, "line 1: each way through the rule needs it again"},
        {"start: x \"a\"\nx: start | \"b\" start", WEFT_ARGUMENT, "no finite text"},
        {"start: x | \"c\"\nx: start \"a\"", WEFT_ARGUMENT, "left-recursive"},
    };
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) refuse(weft__gram_read_lark, &no[i]);
}

typedef struct one_source {
    reader *read;
    const char *source;
} one_source;

static int build(void *arg)
{
    weft__gram_automaton *a;
    const one_source *x = arg;
    weft_status st = read_and_compile(x->read, x->source, &a, NULL);
    weft__gram_automaton_destroy(&a);
    return st == WEFT_OK;
}

static void refused_memory_is_an_error(void **state)
{
    (void)state;
    static one_source sources[] = {
        {weft__gram_read_lark,
         "%import common (WS, INT)\n%ignore WS\nstart: start \"+\" x | x\nx: \"ab\"i | \"a\"..\"c\" | /[0-9]+/"},
        {weft__gram_read_regex, "(a|[^b-d])*x{2,4}"},
        {weft__gram_read_choices, "[\"a\", \"bc\"]"},
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) assert_true(fail_each(build, &sources[i]) > 10);
}

static int open_vocabulary(void **state)
{
    (void)state;
    vocab_make(&bytes, 1, 0);
    return 0;
}

static int close_vocabulary(void **state)
{
    (void)state;
    vocab_close(&bytes);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_regular_expression_matches_whole_texts),
        cmocka_unit_test(a_choice_is_one_of_the_texts),
        cmocka_unit_test(lark_reads_what_it_says),
        cmocka_unit_test(what_lark_has_more_is_refused_by_line),
        cmocka_unit_test(refused_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, open_vocabulary, close_vocabulary);
}
