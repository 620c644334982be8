// SPDX-License-Identifier: Apache-2.0
/* eval_filter.c: filters give what lm-evaluation-harness 0.4.13 gives for the same answers, and answers become scores
 * of known value, whatever ran beside them. */
#include "unit/fixture.h"

#include "base/alloc.h"
#include "eval/score.h"

static weft__eval_task *task_of(const char *yaml)
{
    static const weft__eval_task_options none = {.n_fewshot = -1, .temperature = -1};
    weft__eval_places places = {0};
    weft_error err = {0};
    weft__eval_task *t = weft__alloc_zero(1, sizeof *t);
    t->repeats = 1;
    t->generation = (weft__eval_generation){.max_tokens = 256, .top_p = 1};
    if (weft__eval_task_parse("t.yaml", yaml, strlen(yaml), &none, t, &places, &err) ||
        weft__eval_task_defaults(t, &err))
        fail_msg("%s", err.message);
    return t;
}

#define HEAD "task: t\ndataset_path: json\ndataset_kwargs: {data_files: {test: d.jsonl}}\ntest_split: test\n"

static void add_doc(weft__eval_task *t, const char *json)
{
    weft_error err = {0};
    if (weft__eval_docs_parse("d.jsonl", json, strlen(json), &t->docs, &err)) fail_msg("%s", err.message);
}

/* The line for these answers, or log-probabilities, as "filtered" and "scores" show it. */
static const char *judged(weft__eval_task *t, const char *const *texts, const double *logprobs, size_t n)
{
    static char out[1024];
    weft__eval_response r[8] = {{{0}}};
    weft__eval_asks asks = {0};
    weft__eval_answers a = {.asks = &asks, .items = r, .n = n};
    weft__regex_scratch scratch = {0};
    weft__strbuf line = {0};
    weft_error err = {0};
    for (size_t i = 0; i < n; i++) {
        if (texts) weft__strbuf_puts(&r[i].text, texts[i]);
        else r[i].logprob = logprobs[i], r[i].n_scored = (int32_t)i + 1;
    }
    if (weft__eval_judge(t, &a, &scratch, &line, &err)) snprintf(out, sizeof out, "error: %s", err.message);
    else {
        const char *from = strstr(line.data, texts ? "\"filtered\"" : "\"scores\"");
        snprintf(out, sizeof out, "%.*s", (int)(strstr(line.data, ", \"n_cut\"") - from), from);
    }
    for (size_t i = 0; i < n; i++) weft__strbuf_free(&r[i].text);
    weft__strbuf_free(&line);
    weft__regex_scratch_free(&scratch);
    return out;
}

static void strict_and_flexible(void **state)
{
    (void)state;
    weft__eval_task *t =
        task_of(HEAD "doc_to_text: q\ndoc_to_target: '{{a}}'\nfilter_list:\n"
                     "- {name: strict, filter: [{function: regex, regex_pattern: '#### (\\-?[0-9.,]+)'}, "
                     "{function: take_first}]}\n"
                     "- {name: flexible, filter: [{function: regex, group_select: -1, regex_pattern: "
                     "'(-?[$0-9.,]{2,})|(-?[0-9]+)'}, {function: take_first}]}\n"
                     "metric_list: [{metric: exact_match, regexes_to_ignore: [',', '\\$'], "
                     "ignore_case: true, ignore_punctuation: false}]\n");
    add_doc(t, "{\"q\": \"x\", \"a\": \"1200\"}");
    assert_string_equal(judged(t, (const char *const[]){"It is $1,200"}, NULL, 1),
                        "\"filtered\": {\"strict\": \"[invalid]\", \"flexible\": \"$1,200\"}, "
                        "\"scores\": {\"strict\": {\"exact_match\": 0}, \"flexible\": {\"exact_match\": 1}}");
    assert_string_equal(judged(t, (const char *const[]){"4 + 5\n#### 1,200 and 7"}, NULL, 1),
                        "\"filtered\": {\"strict\": \"1,200\", \"flexible\": \"7\"}, "
                        "\"scores\": {\"strict\": {\"exact_match\": 1}, \"flexible\": {\"exact_match\": 0}}");
    weft__eval_task_free(&t);
}

/* Ours, beside those of the harness: values of JSON however they are written, and the lenient reading of records. */
static void json_values(void **state)
{
    (void)state;
    weft__eval_task *t = task_of(
        HEAD "doc_to_text: q\ndoc_to_target: a\nfilter_list:\n"
             "- {name: whole, filter: [{function: take_first}]}\n"
             "- {name: call, filter: [{function: regex, regex_pattern: '<c>(.*)</c>'}, {function: take_first}]}\n"
             "metric_list: [{metric: json_match}]\n");
    add_doc(t, "{\"q\": \"x\", \"a\": [\"no JSON\", \"{\\\"a\\\": [1, 2], \\\"b\\\": null}\"]}");
    const struct {
        const char *said;
        int whole, call;
    } cases[] = {{"{\"b\":null,\"a\":[1,2]}", 1, 0},
                 {" {\"a\": [1, 2], \"b\": null}\n", 1, 0},
                 {"so: <c>{\"a\": [1, 2], \"b\": null}</c>", 0, 1},
                 {"{\"a\": [2, 1], \"b\": null}", 0, 0},
                 {"{\"a\": [1, 2]}", 0, 0},
                 {"{\"a\": [1, 2.0], \"b\": null}", 0, 0},
                 {"{\"a\": [1, 2], \"b\": null} and more", 0, 0},
                 {"{\"a\": [1, 2], \"a\": [1, 2], \"b\": null}", 0, 0},
                 {"no JSON", 0, 0},
                 {"", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[128];
        snprintf(want, sizeof want,
                 "\"scores\": {\"whole\": {\"json_match\": %d}, "
                 "\"call\": {\"json_match\": %d}}",
                 cases[i].whole, cases[i].call);
        const char *line = judged(t, (const char *const[]){cases[i].said}, NULL, 1);
        if (!strstr(line, want)) fail_msg("%s\n%s", cases[i].said, line);
    }
    weft__eval_task_free(&t);
    t = task_of(HEAD "doc_to_text: q\ndoc_to_target: a\nfilter_list:\n"
                     "- {name: f, filter: [{function: flexible}, {function: take_first}]}\n");
    add_doc(t, "{\"q\": \"x\", \"a\": [\"There are 3.\", \"3\"]}");
    assert_non_null(
        strstr(judged(t, (const char *const[]){"a 1, b 2, c 3: 3 of them"}, NULL, 1), "\"exact_match\": 1"));
    assert_non_null(strstr(judged(t, (const char *const[]){"3, no 4"}, NULL, 1), "\"exact_match\": 0"));
    weft__eval_task_free(&t);
}

static void votes_and_samples(void **state)
{
    (void)state;
    weft__eval_task *t = task_of(HEAD "doc_to_text: q\ndoc_to_target: a\nrepeats: 5\nfilter_list:\n"
                                      "- {name: vote, filter: [{function: lowercase}, {function: remove_whitespace}, "
                                      "{function: majority_vote}, {function: take_first}]}\n"
                                      "- {name: map, filter: [{function: map, mapping_dict: {' B': right}, "
                                      "default_value: wrong}, {function: take_first}]}\n");
    add_doc(t, "{\"q\": \"x\", \"a\": \"b\"}");
    const char *const answers[] = {"c ", " B", "b", "C\t", "B\n"};
    assert_string_equal(judged(t, answers, NULL, 5),
                        "\"filtered\": {\"vote\": \"b\", \"map\": \"wrong\"}, "
                        "\"scores\": {\"vote\": {\"exact_match\": 1}, \"map\": {\"exact_match\": 0}}");
    weft__eval_task_free(&t);
    t = task_of(HEAD "doc_to_text: q\ndoc_to_target: a\nrepeats: 5\nfilter_list: [{name: all, filter: [{function: "
                     "take_first_k, k: 4}]}]\n"
                     "metric_list: [{metric: pass_at_k, k: [1, 2]}]\n");
    add_doc(t, "{\"q\": \"x\", \"a\": \"b\"}");
    assert_non_null(
        strstr(judged(t, (const char *const[]){"b", "c", "c", "c"}, NULL, 4), "{\"pass@1\": 0.25, \"pass@2\": 0.5}"));
    assert_non_null(strstr(judged(t, (const char *const[]){"b"}, NULL, 1), "error: document 1: take_first_k wants 4"));
    weft__eval_task_free(&t);
}

static void choices_by_length(void **state)
{
    (void)state;
    weft__eval_task *t =
        task_of(HEAD "output_type: multiple_choice\ndoc_to_text: q\ndoc_to_target: '{{a}}'\ndoc_to_choice: '{{c}}'\n"
                     "metric_list: [{metric: acc}, {metric: acc_norm}, {metric: acc_bytes}, {metric: brier_score}]\n");
    add_doc(t, "{\"q\": \"x\", \"a\": 1, \"c\": [\"no\", \"yes it is so\", "
               "\"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\"]}");
    /* whole: the first; by characters: -1.5, -0.5, -0.75; by bytes: -1.5, -0.5, -0.375 */
    assert_non_null(strstr(judged(t, NULL, (double[]){-3, -6, -6}, 3),
                           "{\"acc\": 0, \"acc_norm\": 1, \"acc_bytes\": 0, \"brier_score\": 1.7"));
    weft__eval_task_free(&t);
}

static void plain_records_are_flexible(void **state)
{
    (void)state;
    weft_error err = {0};
    weft__eval_task *t = weft__alloc_zero(1, sizeof *t);
    static const char text[] = "{\"prompt\": \"x\", \"answer\": \"The Mill\"}\n{\"prompt\": \"y\", \"answer\": 42}\n";
    t->target_delimiter = " ";
    if (weft__eval_form_parse("jsonl", "d.jsonl", text, sizeof text - 1, t, &err) || weft__eval_task_defaults(t, &err))
        fail_msg("%s", err.message);
    assert_non_null(strstr(judged(t, (const char *const[]){" She lives in the mill."}, NULL, 1),
                           "\"strict\": {\"exact_match\": 0}, \"flexible\": {\"exact_match\": 1}"));
    assert_non_null(
        strstr(judged(t, (const char *const[]){"by the windmills"}, NULL, 1), "\"flexible\": {\"exact_match\": 0}"));
    weft__json *first = t->docs.items[0];
    t->docs.items[0] = t->docs.items[1];
    t->docs.items[1] = first;
    assert_non_null(
        strstr(judged(t, (const char *const[]){"2 times 21 are 42."}, NULL, 1), "\"flexible\": {\"exact_match\": 1}"));
    weft__eval_task_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strict_and_flexible),        cmocka_unit_test(json_values),
        cmocka_unit_test(votes_and_samples),          cmocka_unit_test(choices_by_length),
        cmocka_unit_test(plain_records_are_flexible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
