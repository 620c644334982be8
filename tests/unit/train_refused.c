// SPDX-License-Identifier: Apache-2.0
/* train_refused.c: what the reader of training data refuses, by file and line; what it leaves out and counts; and that
 * every failed allocation is survived. */
#include <stdio.h>
#include <stdlib.h>

#include "unit/train_world.h"

/* Forgets what the assistant said before the last turn, as templates do with thoughts. */
static const char forgetful[] =
    "{%- for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role != 'assistant' or loop.last %}{{ "
    "m.content }}{% endif %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

static const weft__dataset_options pairs_of_16 = {.n_ctx = 16, .max_rows = 32, .pairs = 1};

static const struct {
    const char *line, *words;
} malformed[] = {
    {"{\"messages\": [}", "f:3: line 1, column"},
    {"[1]", "f:3: the record is a list, and not one of messages; a list of records is a file whose name ends in .json"},
    {"1", "f:3: the record is no JSON object"},
    {"{\"msgs\": []}", "f:3: the record is of no known kind"},
    {"{\"text\": 1}", "f:3: \"text\" is no string"},
    {"{\"text\": \"a\", \"messages\": []}", "f:3: the record is of more than one kind"},
    {"{\"messages\": []}", "f:3: \"messages\" is no list of messages, or an empty one"},
    {"{\"messages\": \"hi\"}", "f:3: \"messages\" is no list"},
    {"{\"messages\": [\"hi\"]}", "f:3: messages[0] is no object"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"content\": \"b\"}]}",
     "f:3: messages[1] has no \"role\""},
    {"{\"messages\": [{\"role\": \"assistant\"}]}", "f:3: messages[0] has neither \"content\""},
    {"{\"messages\": [{\"role\": \"assistant\", \"content\": 5}]}", "f:3: messages[0] has neither \"content\""},
    {"{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\", \"weight\": 0.5}]}",
     "f:3: messages[0].weight is neither 0"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", "f:3: \"messages\" has no turn of the assistant"},
    {"{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}], \"tools\": 1}",
     "f:3: \"tools\" is no list, or one as JSON text"},
    {"{\"prompt\": 1, \"completion\": \"a\"}", "f:3: \"prompt\" is no list of messages"},
    {"{\"prompt\": \"a\", \"completion\": 1}", "f:3: \"completion\" is neither a string"},
    {"{\"prompt\": \"a\", \"completion\": {\"role\": \"user\", \"content\": \"b\"}}",
     "f:3: \"completion\" does not begin with a turn of the assistant"},
    {"{\"completion\": \"a\"}", "f:3: \"prompt\" is no list of messages"},
    {"{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}",
     "f:3: the record is a pair; pairs are for preference training alone"},
    {"{\"text\": \"\xFF\"}", "f:3: "},
    {"{\"text\": \"a\", \"weight\": \"2\"}", "f:3: \"weight\" is no number from -1000000 to 1000000"},
    {"{\"text\": \"a\", \"weight\": 1e999}", "f:3: "},
    {"{\"text\": \"a\", \"weight\": 1000001}", "f:3: \"weight\" is no number"},
};

static void malformed_records_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        char bytes[400];
        int n = snprintf(bytes, sizeof bytes, "{\"text\": \"the fox\"}\n\n%s\n{\"text\": \"the owl\"}\n",
                         malformed[i].line);
        refuse(template, plain, WEFT__DATASET_JSONL, bytes, (size_t)n, WEFT_FORMAT, malformed[i].words);
    }
}

static void malformed_parts_are_named(void **state)
{
    (void)state;
    static const char *const parts[] = {"{\"type\": \"image_url\", \"image_url\": {\"url\": \"x\"}}",
                                        "{\"type\": \"text\"}", "\"a\""};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char line[300];
        snprintf(line, sizeof line,
                 "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}, %s]}, "
                 "{\"role\": "
                 "\"assistant\", \"content\": \"b\"}]}",
                 parts[i]);
        refuse(template, plain, WEFT__DATASET_JSONL, line, strlen(line), WEFT_UNSUPPORTED,
               "f:1: messages[0].content[1] is no {");
    }
}

static void unknown_roles_are_named(void **state)
{
    (void)state;
    const struct {
        weft__dataset_options o;
        const char *line, *where;
    } roles[] = {
        {plain,
         "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}, {\"role\": \"critic\", \"content\": \"b\"}]}",
         "messages[1]"},
        {plain, "{\"prompt\": [{\"role\": \"critic\", \"content\": \"a\"}], \"completion\": \"b\"}", "prompt[0]"},
        {pairs_of_16,
         "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": [{\"role\": \"assistant\", \"content\": \"c\"}, "
         "{\"role\": "
         "\"critic\", \"content\": \"d\"}]}",
         "rejected[1]"},
    };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        char words_of[80];
        snprintf(words_of, sizeof words_of, "f:1: %s.role is 'critic'; it must be system,", roles[i].where);
        refuse(template, roles[i].o, WEFT__DATASET_JSONL, roles[i].line, strlen(roles[i].line), WEFT_FORMAT, words_of);
    }
}

static const struct {
    const char *line, *words;
} malformed_pairs[] = {
    {"{\"chosen\": \"b\", \"rejected\": \"c\"}", "the record has no \"prompt\"; give one, or make \"chosen\" and"},
    {"{\"chosen\": [" SAYS("user", "a") ", " SAYS("assistant", "b") "], \"rejected\": \"c\"}",
     "the record has no \"prompt\""},
    {"{\"chosen\": [" SAYS("user", "a") ", " SAYS("assistant", "b") "], \"rejected\": [" SAYS("user", "c") ", " SAYS(
         "assistant", "b") "]}",
     "have no message in common before their answers; let both begin with the prompt, or give it as \"prompt\""},
    {"{\"chosen\": [" SAYS("assistant", "b") "], \"rejected\": [" SAYS("assistant", "b") "]}",
     "have no message in common"},
    {"{\"prompt\": \"a\", \"chosen\": [" SAYS("user", "a") "], \"rejected\": [" SAYS("user", "b") "]}",
     "have no message in common"},
    {"{\"chosen\": [" SAYS("system", "a") ", " SAYS("user", "b") "], \"rejected\": [" SAYS("system", "a") ", " SAYS(
         "assistant", "b") "]}",
     "chosen[1], where \"chosen\" and \"rejected\" part, is not the assistant's"},
    {"{\"chosen\": [" SAYS("system", "a") ", " SAYS("assistant", "b") "], \"rejected\": [" SAYS(
         "system", "a") ", " SAYS("user", "b") "]}",
     "rejected[1], where"},
    {"{\"chosen\": [" SAYS("user", "a") ", {\"role\": 1}], \"rejected\": [" SAYS("user", "a") "]}",
     "chosen[1] has no \"role\""},
    {"{\"chosen\": [" SAYS("critic", "a") ", " SAYS("assistant", "b") "], \"rejected\": [" SAYS(
         "critic", "a") ", " SAYS("assistant", "c") "]}",
     "chosen[0].role is 'critic'"},
    {"{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\", \"weight\": 2}", "\"weight\" of a pair"},
};

static void malformed_pairs_are_named(void **state)
{
    (void)state;
    const weft__dataset_options pairs = pairs_of_16;
    const char *one = "{\"prompt\": \"a\", \"chosen\": \"b\"}";
    refuse(template, pairs, WEFT__DATASET_JSONL, one, strlen(one), WEFT_FORMAT, "f:1: \"rejected\" is neither");
    for (size_t i = 0; i < sizeof malformed_pairs / sizeof *malformed_pairs; i++) {
        refuse(template, pairs, WEFT__DATASET_JSONL, malformed_pairs[i].line, strlen(malformed_pairs[i].line),
               WEFT_FORMAT, "f:1: ");
        refuse(template, pairs, WEFT__DATASET_JSONL, malformed_pairs[i].line, strlen(malformed_pairs[i].line),
               WEFT_FORMAT, malformed_pairs[i].words);
    }
    const char *text = "{\"text\": \"a\"}";
    refuse(template, pairs, WEFT__DATASET_JSONL, text, strlen(text), WEFT_FORMAT,
           "f:1: the record is a text; pairs are wanted");
    refuse(template, pairs, WEFT__DATASET_TEXT, "a", 1, WEFT_FORMAT, "f: preference pairs come as .jsonl");
}

static void malformed_contrasts_are_named(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"{\"query\": \"a\", \"positive\": 1}", "\"positive\" is no string"},
        {"{\"query\": [], \"positive\": \"b\"}", "\"query\" is no string"},
        {"{\"query\": \" \\n\", \"positive\": \"b\"}", "\"query\" is blank"},
        {"{\"query\": \"a\", \"positive\": \"b\", \"negatives\": 1}", "\"negatives\" is no list of texts"},
        {"{\"query\": \"a\", \"positive\": \"b\", \"negatives\": [\"c\", \"\"]}", "\"negatives\" is blank"},
        {"{\"query\": \"a\", \"positive\": \"b\", \"weight\": 2}", "\"weight\" of a contrast"},
        {"{\"query\": \"a\"}", "the record is of no known kind"},
        {"{\"text\": \"a\"}", "the record is a text; texts to tell apart are wanted"}};
    const weft__dataset_options o = {.n_ctx = 16, .max_rows = 32, .contrasts = 1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuse(template, o, WEFT__DATASET_JSONL, bad[i][0], strlen(bad[i][0]), WEFT_FORMAT, bad[i][1]);
    const char *one = "{\"query\": \"a\", \"positive\": \"b\"}",
               *large =
                   "{\"query\": \"the the the the the the the the the the the the\", \"positive\": \"the owl the owl "
                   "the owl the owl the owl the owl\", \"negative\": \"the mill the mill the mill the mill the mill\"}";
    refuse(template, plain, WEFT__DATASET_JSONL, one, strlen(one), WEFT_FORMAT, "are for --loss infonce alone");
    refuse(template, o, WEFT__DATASET_TEXT, "a", 1, WEFT_FORMAT, "f: texts to tell apart come as .jsonl");
    refuse(template, o, WEFT__DATASET_JSONL, large, strlen(large), WEFT_ARGUMENT, "more than a batch of 32 (-b) holds");
}

static void files_that_cannot_be_learned_from_are_named(void **state)
{
    (void)state;
    refuse(forgetful, plain, WEFT__DATASET_JSONL, chat, strlen(chat), WEFT_UNSUPPORTED,
           "f:1: turn 4: the chat template writes earlier turns differently");
    refuse(template, plain, WEFT__DATASET_TEXT, "GGUF\3\0\0", 7, WEFT_FORMAT, "f: it is a GGUF file, not text");
    refuse(template, plain, WEFT__DATASET_JSONL, "GGUF\3\0\0", 7, WEFT_FORMAT, "f: it is a GGUF file, not text");
    refuse(template, plain, WEFT__DATASET_JSONL, "\xEF\xBB\xBF{]", 5, WEFT_FORMAT, "f:1: line 1, column 2");
    refuse(template, plain, WEFT__DATASET_U16, "abc", 3, WEFT_FORMAT, "f: 3 bytes are no whole number of 2-byte ids");
    refuse(template, plain, WEFT__DATASET_U16, "a\0bc", 4, WEFT_FORMAT,
           "f: id 2 is 25442, and the vocabulary has 290 tokens");
}

static void what_teaches_nothing_is_counted(void **state)
{
    (void)state;
    world w;
    weft__dataset_options o = {.n_ctx = 28, .max_rows = 56};
    weft__dataset_totals c;
    weft__train_batch b;
    open_world(&w, template, o);
    assert_int_equal(weft__dataset_next(w.d, &b, &w.err), WEFT_ARGUMENT);
    add(&w, WEFT__DATASET_JSONL, chat); /* the prompt alone is longer than 28 tokens */
    add(&w, WEFT__DATASET_JSONL,
        "{\"prompt\": \"a\", \"completion\": \"the fox and the owl sat by the mill\"}"); /* loses its end */
    weft__dataset_counts(w.d, &c);
    assert_int_equal(c.n_documents, 2);
    assert_int_equal(c.n_cut, 2);
    assert_int_equal(c.n_dropped, 1);
    assert_int_equal(c.n_segments, 1);
    assert_true(c.n_learned > 0 && c.n_learned < c.n_tokens && c.n_tokens == 28);
    close_world(&w);
    o.max_rows = 27;
    weft__dataset *d = NULL;
    assert_int_equal(weft__dataset_create(NULL, &o, &d, &w.err), WEFT_ARGUMENT);
    assert_null(d);
    o = (weft__dataset_options){
        .n_ctx = 1 << 30, .max_rows = 16, .pairs = 1}; /* two of them are more than an int32 holds */
    assert_int_equal(weft__dataset_create(NULL, &o, &d, &w.err), WEFT_ARGUMENT);
    assert_null(d);
}

/* ---- memory ---- */

static int fill_and_read(void *arg)
{
    weft__train_renderer r;
    weft__dataset *d = NULL;
    weft__train_batch b;
    weft__dataset_options o = {.n_ctx = 64, .max_rows = 128};
    weft_status st = weft__train_renderer_init(&r, arg, NULL, 0, NULL);
    if (!st) st = weft__dataset_create(&r, &o, &d, NULL);
    if (!st) st = weft__dataset_add_bytes(d, "f", WEFT__DATASET_JSONL, chat, strlen(chat), NULL);
    if (!st) st = weft__dataset_add_bytes(d, "f", WEFT__DATASET_TEXT, words, strlen(words), NULL);
    if (!st) st = weft__dataset_next(d, &b, NULL);
    if (st && st != WEFT_NO_MEMORY) fail_msg("status %d", (int)st);
    weft__dataset_destroy(&d);
    weft__train_renderer_free(&r);
    return !st;
}

static int read_contrasts(void *arg)
{
    static const char line[] = "{\"query\": \"a\", \"positive\": \"b\", \"negatives\": [\"c\", \"d\"]}\n";
    weft__train_renderer r;
    weft__dataset *d = NULL;
    weft__train_batch b;
    weft__dataset_options o = {.n_ctx = 64, .max_rows = 128, .contrasts = 1};
    weft_status st = weft__train_renderer_init(&r, arg, NULL, 0, NULL);
    if (!st) st = weft__dataset_create(&r, &o, &d, NULL);
    for (int i = 0; !st && i < 9; i++)
        st = weft__dataset_add_bytes(d, "f", WEFT__DATASET_JSONL, line, strlen(line), NULL);
    if (!st) st = weft__dataset_next(d, &b, NULL);
    if (st && st != WEFT_NO_MEMORY) fail_msg("status %d", (int)st);
    weft__dataset_destroy(&d);
    weft__train_renderer_free(&r);
    return !st;
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    weft__tok *tok = make_tokenizer(template);
    /* Hundreds are alike: the address sanitizer looks into some of them. */
    assert_true(fail_some(fill_and_read, tok, CLAIMS_REPEATED(1, CLAIMS_SWEPT(11, 1), 7)) > 20);
    assert_true(fail_some(read_contrasts, tok, CLAIMS_REPEATED(1, CLAIMS_SWEPT(11, 1), 7)) > 20);
    weft__tok_destroy(&tok);
}

/* What does not fit is not rendered either: with a template that refuses more than 12 messages, so that no clock is
 * needed. */
static void turns_that_do_not_fit_are_not_rendered(void **state)
{
    static const char few[] =
        "{% if messages|length > 12 %}{{ raise_exception('too many') }}{% endif %}"
        "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    const weft__dataset_options o = {.n_ctx = 40, .max_rows = 40, .in_order = 1};
    weft__strbuf line = {0};
    world w;
    weft__dataset_totals c;
    (void)state;
    weft__strbuf_puts(&line, "{\"messages\": [");
    for (int i = 0; i < 2000; i++)
        weft__strbuf_printf(&line, "%s{\"role\": \"%s\", \"content\": \"mill\"}", i ? ", " : "",
                            i % 2 ? "assistant" : "user");
    weft__strbuf_puts(&line, "]}\n");
    open_world(&w, few, o);
    add(&w, WEFT__DATASET_JSONL, line.data);
    weft__dataset_counts(w.d, &c);
    assert_int_equal(c.n_cut, 1);
    assert_int_equal(c.n_documents, 1);
    assert_in_range(next(&w).n_rows, 20, 40);
    close_world(&w);
    weft__strbuf_free(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_records_are_named),
        cmocka_unit_test(malformed_parts_are_named),
        cmocka_unit_test(unknown_roles_are_named),
        cmocka_unit_test(malformed_pairs_are_named),
        cmocka_unit_test(malformed_contrasts_are_named),
        cmocka_unit_test(files_that_cannot_be_learned_from_are_named),
        cmocka_unit_test(what_teaches_nothing_is_counted),
        cmocka_unit_test(turns_that_do_not_fit_are_not_rendered),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("train_refused", tests, NULL, NULL);
}
