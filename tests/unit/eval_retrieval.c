// SPDX-License-Identifier: Apache-2.0
/* eval_retrieval.c: queries, texts and what belongs together, from records and from BEIR's files; scores against values
 * that were worked out by hand; embeddings that are all alike find nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit/fixture.h"

#include "eval/retrieval.h"

static const char *written(const char *name, const char *text)
{
    static char paths[3][64];
    static int at;
    char *path = paths[at++ % 3];
    snprintf(path, sizeof paths[0], "/tmp/weft-%s-%d", name, (int)getpid());
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fputs(text, f) < 0, 0);
    fclose(f);
    return path;
}

static void text_is(const weft__eval_retrieval_text *t, const char *want)
{
    if (t->n != strlen(want) || memcmp(t->text, want, t->n)) fail_msg("%.*s, wanted %s", (int)t->n, t->text, want);
}

/* ---- what is read ---- */

static void records(void **state)
{
    (void)state;
    static const char text[] = "{\"query\": \"q1\", \"positive\": \"a\", \"negatives\": [\"b\", \"c\"]}\n"
                               "{\"anchor\": \"q2\", \"positive\": \"b\", \"negative\": \"d\"}\n\n"
                               "{\"query\": \"q1\", \"positive\": \"d\", \"negatives\": null}\n"
                               "{\"query\": \"q1\", \"positive\": \"a\"}\n";
    weft__eval_retrieval_set s = {0};
    weft_error err = {0};
    assert_int_equal(weft__eval_retrieval_parse(&s, "r.jsonl", text, strlen(text), &err), WEFT_OK);
    assert_true(s.n_queries == 2 && s.n_texts == 4 && s.n_links == 3); /* each once */
    text_is(&s.queries[1], "q2");
    for (int i = 0; i < 4; i++) text_is(&s.texts[i], (const char *const[]){"a", "b", "c", "d"}[i]);
    static const uint32_t links[][2] = {{0, 0}, {0, 3}, {1, 1}};
    for (int i = 0; i < 3; i++) assert_true(s.links[i].query == links[i][0] && s.links[i].text == links[i][1]);
    static const char more[] = "{\"query\": \"q3\", \"positive\": \"c\"}";
    assert_int_equal(weft__eval_retrieval_parse(&s, "more", more, strlen(more), &err), WEFT_OK);
    assert_true(s.n_queries == 3 && s.n_texts == 4 && s.n_links == 4); /* the same texts are found again */
    weft__eval_retrieval_free(&s);
    static const char *const bad[][2] = {
        {"{\"query\": \"q\"}", "f: record 1: \"positive\" is no text"},
        {"{\"query\": \"q\", \"positive\": \"\"}", "f: record 1: \"positive\" is no text"},
        {"{\"query\": \"q\", \"positive\": \"p\"}\n{\"positive\": \"p\"}", "f: record 2: \"query\" is no text"},
        {"{\"query\": \"q\", \"positive\": \"p\", \"negatives\": 3}", "f: record 1: \"negatives\" is no list of texts"},
        {"{\"query\": \"q\", \"positive\": \"p\", \"negatives\": [3]}", "f: record 1: \"negatives\" is no text"},
        {"[]", "f: no documents in it"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(weft__eval_retrieval_parse(&s, "f", bad[i][0], strlen(bad[i][0]), &err), WEFT_FORMAT);
        assert_string_equal(err.message, bad[i][1]);
        weft__eval_retrieval_free(&s);
    }
}

/* Many texts, so that the index grows. */
static void many_records(void **state)
{
    (void)state;
    weft__strbuf t = {0};
    weft__eval_retrieval_set s = {0};
    for (int i = 0; i < 3000; i++)
        weft__strbuf_printf(&t, "{\"query\": \"q%d\", \"positive\": \"t%d\"}\n", i % 1000, i % 700);
    assert_int_equal(weft__eval_retrieval_parse(&s, "f", t.data, t.len, NULL), WEFT_OK);
    assert_true(s.n_queries == 1000 && s.n_texts == 700 && s.n_links == 3000);
    text_is(&s.texts[699], "t699");
    weft__eval_retrieval_free(&s);
    weft__strbuf_free(&t);
}

static void beir(void **state)
{
    (void)state;
    const char *texts = written("texts", "{\"_id\": \"d1\", \"title\": \"T\", \"text\": \"one\"}\n"
                                         "{\"_id\": \"d2\", \"title\": \"\", \"text\": \"two\"}\n"
                                         "{\"_id\": \"d3\", \"text\": \"two\"}\n");
    const char *queries =
        written("queries", "{\"_id\": \"x\", \"text\": \"unasked\"}\n{\"_id\": \"y\", \"text\": \"why\"}\n");
    const char *grades = written("grades", "query-id\tcorpus-id\tscore\r\ny\td1\t1\r\ny\td2\t0\r\ny\td3\t2\r\n");
    weft__eval_retrieval_set s = {0};
    weft_error err = {0};
    if (weft__eval_retrieval_beir(&s, texts, queries, grades, &err)) fail_msg("%s", err.message);
    assert_true(s.n_queries == 1 && s.n_texts == 3 && s.n_links == 2); /* two texts may say the same */
    text_is(&s.queries[0], "why");
    text_is(&s.texts[0], "T one");
    assert_true(s.links[1].text == 2 && s.links[1].grade == 2);
    weft__eval_retrieval_free(&s);
    static const char *const bad[][2] = {
        {"h\ny\td1\n", "is no query, text and grade"}, {"h\ny\td1\t1\t2\n", "is no query, text and grade"},
        {"h\ny\td9\t1\n", "there is no text 'd9'"},    {"h\nz\td1\t1\n", "there is no query 'z'"},
        {"h\ny\td1\tnan\n", "'nan' is no grade"},      {"h\ny\td1\t0\n", "no text belongs to any query"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        FILE *f = fopen(grades, "w");
        assert_non_null(f);
        fputs(bad[i][0], f);
        fclose(f);
        assert_int_equal(weft__eval_retrieval_beir(&s, texts, queries, grades, &err), WEFT_FORMAT);
        if (!strstr(err.message, bad[i][1])) fail_msg("%s", err.message);
        weft__eval_retrieval_free(&s);
    }
    unlink(texts);
    unlink(queries);
    unlink(grades);
}

/* ---- scores ---- */

enum { TEXTS = 12 };

/* Texts at angles 0.1, 0.2, ... from the query, which is at 0; those of the links belong. */
static weft__eval_retrieval_scores scored(const weft__eval_retrieval_link *links, size_t n_links, int alike)
{
    float q[4] = {1, 0, 1, 0}, t[2 * TEXTS];
    double near[TEXTS];
    weft__eval_retrieval_scores out = {0};
    weft__eval_retrieval_link copy[4];
    memcpy(copy, links, n_links * sizeof *copy);
    const weft__eval_retrieval_set s = {.links = copy, .n_queries = 2, .n_texts = TEXTS, .n_links = n_links};
    for (int i = 0; i < TEXTS; i++) {
        t[2 * i] = alike ? 1 : (float)cos(0.1 * (i + 1));
        t[2 * i + 1] = alike ? 0 : (float)sin(0.1 * (i + 1));
    }
    weft__eval_retrieval_score(&s, q, t, 2, near, &out);
    return out;
}

static void near_to(double got, double want)
{
    if (!(fabs(got - want) < 1e-12)) fail_msg("%.15g, wanted %.15g", got, want);
}

static void scores_by_hand(void **state)
{
    (void)state;
    /* query 0: texts 3 (grade 1) and 2 (grade 3), at ranks 4 and 3; query 1: text 11, at rank 12 */
    static const weft__eval_retrieval_link links[] = {{0, 2, 3}, {0, 3, 1}, {1, 11, 1}};
    const weft__eval_retrieval_scores s = scored(links, 3, 0);
    const double gain = 3 / log2(4) + 1 / log2(5), ideal = 3 / log2(2) + 1 / log2(3);
    near_to(weft__eval_sums_mean(&s.ndcg), gain / ideal / 2);
    near_to(weft__eval_sums_mean(&s.mrr), 1.0 / 3 / 2);
    near_to(weft__eval_sums_mean(&s.recall[0]), 0);
    near_to(weft__eval_sums_mean(&s.recall[1]), 0.5);
    near_to(weft__eval_sums_mean(&s.recall[2]), 1);
    assert_int_equal(s.n_hits, 0);
    static const weft__eval_retrieval_link first[] = {{0, 0, 1}, {0, 1, 1}, {1, 0, 1}};
    const weft__eval_retrieval_scores best = scored(first, 3, 0);
    near_to(weft__eval_sums_mean(&best.ndcg), 1);
    near_to(weft__eval_sums_mean(&best.recall[0]), 0.75); /* of two texts one is the first */
    assert_int_equal(best.n_hits, 2);
}

/* Nothing is told apart: whatever stands first in the file, it is not found. */
static void all_alike(void **state)
{
    (void)state;
    static const weft__eval_retrieval_link links[] = {{0, 0, 1}, {1, 0, 1}};
    const weft__eval_retrieval_scores s = scored(links, 2, 1);
    assert_true(s.n_hits == 0 && weft__eval_sums_mean(&s.ndcg) == 0 && weft__eval_sums_mean(&s.recall[2]) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(records), cmocka_unit_test(many_records),
                                       cmocka_unit_test(beir), cmocka_unit_test(scores_by_hand),
                                       cmocka_unit_test(all_alike)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
