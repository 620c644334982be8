// SPDX-License-Identifier: Apache-2.0
/* text_regex.c: patterns written for Oniguruma find here what they find there. */
#include <stdio.h>

#include "unit/fixture.h"

#include "text/regex/regex.h"

/* Joins what the pattern matches with '|'; gaps are left out. */
static void matches(const char *pattern, const char *text, size_t n, char *out, size_t room)
{
    weft__regex *regex;
    weft__regex_scratch scratch = {0};
    weft_error err = {0};
    size_t from = 0, used = 0, start, end;
    int found;
    if (weft__regex_compile(pattern, strlen(pattern), &regex, &err)) fail_msg("%s: %s", pattern, err.message);
    *out = 0;
    for (;;) {
        if (weft__regex_find(regex, &scratch, text, n, from, &found, &start, &end, &err))
            fail_msg("%s: %s", pattern, err.message);
        if (!found) break;
        used += (size_t)snprintf(out + used, room - used, "%s%.*s", used ? "|" : "", (int)(end - start), text + start);
        from = end > start ? end : end + 1;
        if (from > n) break;
    }
    weft__regex_scratch_free(&scratch);
    weft__regex_free(&regex);
}

static void dialect(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text, *want;
    } cases[] = {
        {"\\p{N}{1,3}", "12345", "123|45"},
        {"\\p{N}{1,3}+5", "12345", "12345"},      /* a repeated group: it gives digits back */
        {"\\p{N}{1,3}+", "12345678", "12345678"}, /* and has no upper limit */
        {"a{2}?b", "b aab", "b|aab"},             /* an optional group */
        {"a{1,2}?", "aa", "a|a"},
        {"a{,2}b", "aaab b", "aab|b"},
        {"a++b?", "aaab", "aaab"},
        {"(?:ab){1,2}+", "ababab", "ababab"},
        {"x[ab]{2}+", "xabab", "xabab"},
        {"a{b}", "a{b}", "a{b}"},
        {"\\s+",
         "a\xE1\xA0\x8E"
         "b c",
         " "}, /* U+180E is no space */
        {"[^\\s]+",
         "a\xE1\xA0\x8E"
         "b\xE3\x80\x80"
         "c",
         "a\xE1\xA0\x8E"
         "b|c"},
        {"[\\S]+",
         "a\xE1\xA0\x8E"
         "b\xE3\x80\x80"
         "c",
         "a\xE1\xA0\x8E"
         "b|c"},
        {"\\S+",
         "a b\xC2\x85"
         "c",
         "a|b|c"},
        {"\\w+", "a\xCC\x81_1-\xD9\xA3\xC2\xBD", "a\xCC\x81_1|\xD9\xA3"}, /* no fractions */
        {"\\ba\\b", "a ba a", "a|a"},
        {"\\h+", "xfF0g", "fF0"},
        {"\\u4e2d|\\x{6587}", "中文", "中|文"},
        {"[\\p{L}&&[^\\p{Han}]]+", "ab中文cd", "ab|cd"},
        {"[a-z&&[aeiou]]", "hello", "e|o"},
        {"(?i:'s|'T)|x", "'S't'X x", "'S|'t|x"},
        {"a$", "a\nb\na", "a|a"}, /* lines */
        {"^a", "a\nab", "a|a"},
        {"(?<=a)b(?!c)", "abc ab", "b"},
        {"[]a]+", "x]a", "]a"},
        {"\\\\n|\\.", "\\n.", "\\n|."},
        {".+", "a\nb", "a|b"},
        {"\\v", "\v\n", "\v"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[200];
        matches(cases[i].pattern, cases[i].text, strlen(cases[i].text), got, sizeof got);
        if (strcmp(got, cases[i].want)) {
            fail_msg("%s on '%s': '%s', expected '%s'", cases[i].pattern, cases[i].text, got, cases[i].want);
        }
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        weft_status status;
        const char *word;
    } cases[] = {
        {"(a", WEFT_FORMAT, "without its )"},
        {"a)", WEFT_FORMAT, "without its ("},
        {"[a", WEFT_FORMAT, "without its ]"},
        {"a\\", WEFT_FORMAT, "backslash"},
        {"*a", WEFT_FORMAT, "regular expression"},
        {"{1,2}", WEFT_FORMAT, "nothing to repeat"},
        {"\\p{Klingon}", WEFT_FORMAT, "property"},
        {"\\p{L", WEFT_FORMAT, "\\p"},
        {"\\Pɓ", WEFT_FORMAT, "a \\p of no property at byte 0"},
        {"[\\pɓ]", WEFT_FORMAT, "a \\p of no property at byte 1"},
        {"[[:alpha:]]", WEFT_UNSUPPORTED, "POSIX"},
        {"[a[b]]", WEFT_UNSUPPORTED, "class within"},
        {"[^a&&[b]]", WEFT_UNSUPPORTED, "&&"},
        {"[a&&b]", WEFT_UNSUPPORTED, "&&"},
        {"[\\W]", WEFT_UNSUPPORTED, "\\W"},
        {"(a)\\1", WEFT_UNSUPPORTED, "\\1"},
        {"\\R", WEFT_UNSUPPORTED, "\\R"},
        {"\\K", WEFT_UNSUPPORTED, "\\K"},
        {"\\C", WEFT_UNSUPPORTED, "\\C"},
        {"(?m)a", WEFT_UNSUPPORTED, "(?..."},
        {"(?<n>a)", WEFT_UNSUPPORTED, "(?..."},
        {"(*COMMIT)a", WEFT_UNSUPPORTED, "(*"},
        {"a{1,2}++", WEFT_UNSUPPORTED, "quantifier of"},
        {"(?<=a+)b", WEFT_FORMAT, "lookbehind"},
        {"\\xFF", WEFT_UNSUPPORTED, "\\x"},
        {"\\x{}", WEFT_FORMAT, "\\x"},
        {"\\u12", WEFT_FORMAT, "\\u"},
        {"a\xFF", WEFT_FORMAT, "UTF-8"},
        {"[b-a]", WEFT_FORMAT, "range"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__regex *regex;
        weft_error err = {0};
        weft_status status = weft__regex_compile(cases[i].pattern, strlen(cases[i].pattern), &regex, &err);
        if (status != cases[i].status || !strstr(err.message, cases[i].word)) {
            fail_msg("%s: %d '%s'", cases[i].pattern, (int)status, err.message);
        }
        assert_null(regex);
    }
}

/* A pattern that runs away fails and says so; it never finds less than there is. */
static void budgets(void **state)
{
    (void)state;
    enum { N = 200000, MORE = 600000 };
    static char text[MORE];
    memset(text, 'a', MORE);
    static const struct {
        const char *pattern;
        size_t n;
        char last;
        weft_status status;
        size_t want; /* bytes of the first match */
    } cases[] = {
        {"(?:a|b)+", N, 'a', WEFT_OK, N},                 /* more stack than machine code has at first */
        {"(?:(?:a|b)(?:c|))+", MORE, 'a', WEFT_OK, MORE}, /* more than it ever gets: the interpreter's turn */
        {"(?:a|b)+c", 2000, 'c', WEFT_OK, 2000},
        {"(?:(?:a|b)(?:c|))+", N, 'a', WEFT_OK, N},
        {"(?:a+)+$", 40, 'b', WEFT_LIMIT, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__regex *regex;
        weft__regex_scratch scratch = {0};
        weft_error err = {0};
        size_t start, end;
        int found;
        char kept = text[cases[i].n - 1];
        text[cases[i].n - 1] = cases[i].last;
        assert_int_equal(weft__regex_compile(cases[i].pattern, strlen(cases[i].pattern), &regex, &err), WEFT_OK);
        weft_status status = weft__regex_find(regex, &scratch, text, cases[i].n, 0, &found, &start, &end, &err);
        if (status != cases[i].status) fail_msg("%s: %d '%s'", cases[i].pattern, (int)status, err.message);
        if (!status) {
            assert_true(found);
            assert_int_equal(end - start, cases[i].want);
        }
        text[cases[i].n - 1] = kept;
        weft__regex_scratch_free(&scratch);
        weft__regex_free(&regex);
    }
}

/* What re.findall gives, groups as "a,b"; the answers are CPython's. */
static void find_all(const char *pattern, const char *text, char *out, size_t room)
{
    weft__regex *regex;
    weft__regex_scratch scratch = {0};
    weft__regex_groups m;
    weft_error err = {0};
    size_t used = 0, n = strlen(text);
    int found = 1, empty = 0, n_found = 0;
    out[0] = 0;
    if (weft__regex_compile_python(pattern, strlen(pattern), &regex, &err)) fail_msg("%s: %s", pattern, err.message);
    for (size_t from = 0; found; from = m.end[0], empty = m.end[0] == m.start[0]) {
        if (weft__regex_match(regex, &scratch, text, n, from, empty, &found, &m, &err))
            fail_msg("%s: %s", pattern, err.message);
        if (!found) break;
        used += (size_t)snprintf(out + used, room - used, "%s", n_found++ ? "|" : "");
        for (int g = m.n > 1; g < m.n; g++)
            used += (size_t)snprintf(out + used, room - used, "%s%.*s", g > 1 ? "," : "",
                                     m.start[g] == SIZE_MAX ? 0 : (int)(m.end[g] - m.start[g]),
                                     m.start[g] == SIZE_MAX ? "" : text + m.start[g]);
    }
    weft__regex_scratch_free(&scratch);
    weft__regex_free(&regex);
}

static void pythons_dialect(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text, *want;
    } cases[] = {
        {"#### (\\-?[0-9\\.\\,]+)", "so it is\n#### -1,234.5 and #### 7", "-1,234.5|7"},
        {"(-?[$0-9.,]{2,})|(-?[0-9]+)", "he has 3 of $1,200", ",3|$1,200,"},
        {"(a)|(b)", "ab", "a,|,b"},
        {"^a", "a\na", "a"},    /* ^ and $ are those of the text, not of a line */
        {"a$", "a\na\n", "a"},  /* or before the last newline */
        {"a\\Z", "a\na\n", ""}, /* but for \Z */
        {"a\\Z", "a\na", "a"},
        {"(?m)^a", "a\na", "a|a"},
        {"a{,2}b", "aaab b", "aab|b"},
        {"a{2}?b", "aab b", "aab"}, /* lazy, of a fixed number */
        {"[]a]+", "]a]b", "]a]"},
        {"[^]]+", "a]b", "a|b"},
        {"\\u0041\\x42", "AB", "AB"},
        {"(?P<x>a)(?P=x)", "aa", "a"},
        {"(?i)ANSWER: ([a-d])", "answer: B", "B"},
        {"\\d+", "1\xD9\xA2", "1\xD9\xA2"}, /* digits of any script */
        {".", "\n\xC3\xA9", "\xC3\xA9"},
        {"\\bno\\b", "no nose no", "no|no"},
    };
    char out[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        find_all(cases[i].pattern, cases[i].text, out, sizeof out);
        if (strcmp(out, cases[i].want)) fail_msg("%s: '%s', not '%s'", cases[i].pattern, out, cases[i].want);
    }
    find_all("x*", "axb", out, sizeof out); /* empty ones, too: before a, x, behind it, at the end */
    assert_string_equal(out, "|x||");
}

static void python_refusals(void **state)
{
    (void)state;
    static const char *const bad[] = {"(",       "a**", "\\q", "\\u12",   "\\", "[[:alpha:]]", "\\N{DASH}",
                                      "\\Qa\\E", "\\C", "\\K", "\\x{41}", "[a", "\xFF"};
    weft__regex *regex = NULL;
    weft_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (weft_error){0};
        const weft_status st = weft__regex_compile_python(bad[i], strlen(bad[i]), &regex, &err);
        if (!st || regex || !*err.message) fail_msg("%s: taken", bad[i]);
    }
    char many[3 * WEFT__REGEX_GROUPS + 1] = "";
    for (int i = 0; i < WEFT__REGEX_GROUPS; i++) strcat(many, "(a)");
    assert_int_equal(weft__regex_compile_python(many, strlen(many), &regex, &err), WEFT_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dialect), cmocka_unit_test(refusals), cmocka_unit_test(budgets),
                                       cmocka_unit_test(pythons_dialect), cmocka_unit_test(python_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
