// SPDX-License-Identifier: Apache-2.0
/* eval_task.c: task files are read or refused by line; files of other forms, too; prompts are put together as
 * lm-evaluation-harness does. */
#include "unit/fixture.h"

#include "base/alloc.h"
#include "eval/prompt.h"

static weft__eval_task *blank(void)
{
    weft__eval_task *t = weft__alloc_zero(1, sizeof *t);
    t->target_delimiter = " ";
    t->fewshot_delimiter = "\n\n";
    t->repeats = 1;
    t->generation = (weft__eval_generation){.max_tokens = 256, .top_p = 1};
    return t;
}

static weft_status parse(const char *yaml, weft__eval_task **t, weft__eval_places *places, weft_error *err)
{
    static const weft__eval_task_options none = {.n_fewshot = -1, .temperature = -1};
    *t = blank();
    *places = (weft__eval_places){0};
    return weft__eval_task_parse("t.yaml", yaml, strlen(yaml), &none, *t, places, err);
}

#define DATA "dataset_path: json\ndataset_kwargs: {data_files: {test: a.jsonl, train: b.jsonl}}\ntest_split: test\n"

static void wrong_files_are_refused_by_line(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "empty"},
        {"- a\n", "must be a map"},
        {DATA "doc_to_text: a\ndoc_to_target: a\nnum_fewshots: 2\n",
         "t.yaml:6:1: there is no 'num_fewshots' here; did you mean 'num_fewshot'?"},
        {DATA "doc_to_text: a\n", "'doc_to_target' is missing"},
        {DATA "doc_to_text: '{{ a'\ndoc_to_target: a\n", "t.yaml:4:14: doc_to_text: line 1"},
        {DATA "doc_to_text: a\ndoc_to_target: a\nprocess_docs: !function utils.f\n", "tags are not read"},
        {DATA "doc_to_text: a\ndoc_to_target: a\nprocess_docs: f\n", "needs Python"},
        {DATA "doc_to_text: a\ndoc_to_target: a\noutput_type: embed\n", "output_type"},
        {DATA "doc_to_text: a\ndoc_to_target: a\nmetric_list: [{metric: bleu}]\n", "'bleu' is not read"},
        {DATA "doc_to_text: a\ndoc_to_target: a\nfilter_list: [{name: x, filter: [{function: regex, regex_pattern: "
              "'('}]}]\n",
         "regular expression"},
        {DATA "doc_to_text: a\ndoc_to_target: a\nnum_fewshot: many\n", "num_fewshot"},
        {"dataset_path: openai/gsm8k\ntest_split: test\ndoc_to_text: a\ndoc_to_target: a\n", "--data test=FILE"},
        {DATA "output_type: multiple_choice\ndoc_to_text: a\ndoc_to_target: a\n", "'doc_to_choice' is missing"},
        {"group: x\ntask: [a, b]\n", "a group of tasks"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__eval_task *t;
        weft__eval_places places;
        weft_error err = {0};
        if (!parse(cases[i][0], &t, &places, &err)) fail_msg("taken: %s", cases[i][0]);
        if (!strstr(err.message, cases[i][1])) fail_msg("'%s' lacks '%s'", err.message, cases[i][1]);
        weft__eval_task_free(&t);
    }
}

static const char *prompt(const char *yaml, const char *docs, size_t i, weft__eval_asks *asks)
{
    weft__eval_task *t;
    weft__eval_places places;
    weft__eval_shots shots;
    weft_error err = {0};
    const weft__eval_style style = {0};
    static char out[1024];
    if (parse(yaml, &t, &places, &err) || weft__eval_docs_parse("a.jsonl", docs, strlen(docs), &t->docs, &err))
        fail_msg("%s", err.message);
    t->shots_are_docs = 1;
    weft_status st = weft__eval_shots_begin(&shots, t, 1234, &err);
    for (size_t k = 0; !st && k <= i; k++) st = weft__eval_shots_next(&shots, k, &err);
    if (!st) st = weft__eval_ask_make(&shots, &style, i, asks, &err);
    if (st) snprintf(out, sizeof out, "%s", err.message);
    else
        snprintf(out, sizeof out, "%s|%s",
                 asks->items[asks->n - 1].context.data ? asks->items[asks->n - 1].context.data : "",
                 asks->items[asks->n - 1].continuation.data ? asks->items[asks->n - 1].continuation.data : "");
    weft__eval_shots_free(&shots);
    weft__eval_asks_free(asks);
    weft__eval_task_free(&t);
    return out;
}

static void prompts_are_put_together(void **state)
{
    (void)state;
    static const char docs[] =
        "{\"q\": \"A?\", \"c\": [\"x\", \"y\"], \"l\": 1}\n{\"q\": \"B?\", \"c\": [\"u\", \"v\"], \"l\": 0}\n"
        "{\"q\": \"C?\", \"c\": [\"s\", \"t\"], \"l\": 0}\n";
    weft__eval_asks asks;
    assert_string_equal(
        prompt(DATA
               "output_type: multiple_choice\ndoc_to_text: \"{{q}}\\n\"\ndoc_to_target: l\ndoc_to_choice: '{{c}}'\n"
               "description: \"All of {{q}}\\n\"\nnum_fewshot: 1\nfewshot_config: {sampler: first_n}\n",
               docs, 2, &asks),
        "All of C?\nA?\n y\n\nC?\n| t");
    assert_string_equal(
        prompt(
            DATA
            "output_type: multiple_choice\ndoc_to_text: q\ndoc_to_target: l\ndoc_to_choice: c\ntarget_delimiter: ''\n"
            "num_fewshot: 2\nfewshot_split: test\nfewshot_config: {sampler: first_n}\n",
            docs, 0, &asks),
        "B?u\n\nC?s\n\nA?|y");
    /* choices that are questions */
    assert_string_equal(prompt(DATA
                               "output_type: multiple_choice\ndoc_to_text: l\ndoc_to_target: ends\ndoc_to_choice: c\n",
                               docs, 1, &asks),
                        "v| ends");
    assert_string_equal(
        prompt(DATA "output_type: loglikelihood\ndoc_to_text: q\ndoc_to_target: \" {{c[l]}}\"\n", docs, 0, &asks),
        "A?| y");
    assert_string_equal(
        prompt(DATA "output_type: loglikelihood_rolling\ndoc_to_text: \"\"\ndoc_to_target: q\n", docs, 0, &asks),
        "|A?");
    assert_string_equal(prompt(DATA "doc_to_text: '{{q}}'\ndoc_to_target: '{{c[l]}}'\ngen_prefix: 'It "
                                    "is'\nnum_fewshot: 1\nfewshot_config: {sampler: first_n}\n",
                               docs, 1, &asks),
                        "A? It is y\n\nB? It is|");
    assert_string_equal(prompt(DATA "doc_to_text: '{{nothing}}'\ndoc_to_target: q\n", docs, 0, &asks),
                        "document 1: doc_to_text: line 1: 'nothing' is undefined");
}

static weft_status form(const char *name, const char *text, size_t n, weft__eval_task **t, weft_error *err)
{
    *t = blank();
    return weft__eval_form_parse(name, "f", text, n, *t, err);
}

static void forms_become_documents(void **state)
{
    (void)state;
    weft__eval_task *t;
    weft_error err = {0};
    static const char swag[] = "A man: he\n2\na\nb\nc\nd\nA cat: it\n0\ne\nf\ng\nh\n";
    assert_int_equal(form("hellaswag", swag, sizeof swag - 1, &t, &err), WEFT_OK);
    assert_int_equal(t->docs.n, 2);
    assert_true(weft__json_is(weft__json_at(weft__json_get(t->docs.items[0], "choices"), 2), "c"));
    weft__eval_task_free(&t);
    assert_int_equal(form("hellaswag", swag, sizeof swag - 4, &t, &err), WEFT_FORMAT);
    weft__eval_task_free(&t);
    static const char grande[] =
        "0,\"Sarah, who was better than Maria, so _ got it.\",Sarah,Maria,2\n1,He \"said\" _ ok,a,b,1\n";
    assert_int_equal(form("winogrande", grande, sizeof grande - 1, &t, &err), WEFT_OK);
    assert_true(weft__json_is(weft__json_get(t->docs.items[0], "context"), "Sarah, who was better than Maria, so "));
    assert_true(weft__json_is(weft__json_get(t->docs.items[0], "rest"), " got it."));
    weft__eval_task_free(&t);
    static const char *const bad[] = {"0,no blank,a,b,1\n", "0,a _ b,a,b,3\n", "0,a _ b,a\n", "\n\n",
                                      "0,\"a _ b,a,b,1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (!form("winogrande", bad[i], strlen(bad[i]), &t, &err)) fail_msg("taken: %s", bad[i]);
        weft__eval_task_free(&t);
    }
    static const char binary[] = "\1\0\0\0\0\0\0\0\2\0\0\0Q?\2\0\0\0\1\0\0\0a\1\0\0\0b\0\0\0\0\1\0\0\0\0\0\0\0";
    assert_int_equal(form("multiple-choice", binary, sizeof binary - 1, &t, &err), WEFT_OK);
    int64_t label = 0;
    assert_true(weft__json_int(weft__json_get(t->docs.items[0], "label"), &label) && label == 1);
    weft__eval_task_free(&t);
    for (size_t n = 0; n < sizeof binary - 1; n++) { /* cut anywhere, it is refused */
        if (!form("multiple-choice", binary, n, &t, &err)) fail_msg("%zu bytes taken", n);
        weft__eval_task_free(&t);
    }
}

static weft_status again(void *arg)
{
    static const char yaml[] = DATA "doc_to_text: '{{q}}'\ndoc_to_target: q\nfilter_list: [{name: a, filter: "
                                    "[{function: regex}, {function: take_first}]}]\n";
    weft__eval_task *t;
    weft__eval_places places;
    (void)arg;
    const weft_status st = parse(yaml, &t, &places, NULL);
    weft__eval_task_free(&t);
    return st;
}

static void what_is_read_is_freed(void **state)
{
    (void)state;
    assert_int_equal(again(NULL), WEFT_OK);
    const size_t live = weft__alloc_live();
    for (int i = 0; i < 3; i++) assert_int_equal(again(NULL), WEFT_OK);
    assert_int_equal(weft__alloc_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_files_are_refused_by_line),
        cmocka_unit_test(prompts_are_put_together),
        cmocka_unit_test(forms_become_documents),
        cmocka_unit_test(what_is_read_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
