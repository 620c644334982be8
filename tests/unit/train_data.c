// SPDX-License-Identifier: Apache-2.0
/* train_data.c: what the reader of training data hands out: whose words are learned, every token once, each record
 * whole and alone, the same order for the same seed, from any position. */
#include <stdio.h>
#include <stdlib.h>

#include "unit/train_world.h"

/* ---- what is learned ---- */

static void text_is_learned_whole(void **state)
{
    (void)state;
    world w;
    open_world(&w, NULL, plain);
    add(&w, WEFT__DATASET_TEXT, "\nthe fox\n<|stop|>\r\n\nthe owl sat.<|stop|>\n\n<|stop|>");
    weft__train_batch b = next(&w);
    expect_segment(&w, &b, 0, "<|start|>the fox", "the fox<|stop|>");
    expect_segment(&w, &b, 1, "<|start|>the owl sat.", "the owl sat.<|stop|>");
    assert_int_equal(b.segment[b.n_rows - 1], 1); /* nothing else */
    close_world(&w);
}

/* A model that is run without BOS does not learn to stand behind one. */
static void texts_begin_as_the_model_is_run(void **state)
{
    (void)state;
    world w;
    with_bos = 0;
    open_world(&w, NULL, plain);
    with_bos = 1;
    add(&w, WEFT__DATASET_TEXT, "the fox");
    add(&w, WEFT__DATASET_JSONL, "{\"prompt\": \"the owl\", \"completion\": \" sat.\"}");
    weft__train_batch b = next(&w);
    for (int32_t i = 0; i < b.n_rows; i++) assert_int_not_equal(b.token[i], START);
    for (int number = 0; number < 2; number++) {
        int32_t ids[100];
        size_t n = 0;
        for (int32_t i = 0; i < b.n_rows; i++)
            if (b.segment[i] == number) ids[n++] = b.token[i];
        expect_text(&w, ids, n, number ? "the owl sat." : "the fox");
    }
    close_world(&w);
}

static void long_texts_are_cut_and_every_token_is_learned_once(void **state)
{
    (void)state;
    world w;
    weft__dataset_options o = {.n_ctx = 7, .max_rows = 7, .in_order = 1};
    open_world(&w, NULL, o);
    add(&w, WEFT__DATASET_TEXT, words);
    weft__tok_ids ids = {0}, seen = {0};
    assert_int_equal(weft__tok_encode(w.tok, words, strlen(words), 0, &ids, NULL), WEFT_OK);
    while (weft__dataset_position(w.d).epoch == 0) {
        weft__train_batch b = next(&w);
        assert_true(b.n_rows <= 7);
        for (int32_t i = 0; i < b.n_rows; i++) {
            weft__grow(&seen.data, &seen.capacity, seen.n + 1, sizeof *seen.data);
            seen.data[seen.n++] = b.target[i];
            assert_int_equal(b.segment[i], 0);
        }
    }
    assert_int_equal(seen.n, ids.n + 1);
    assert_memory_equal(seen.data, ids.data, ids.n * sizeof *ids.data);
    assert_int_equal(seen.data[ids.n], STOP);
    weft__tok_ids_free(&ids);
    weft__tok_ids_free(&seen);
    close_world(&w);
}

static void the_assistants_words_are_learned(void **state)
{
    (void)state;
    world w;
    open_world(&w, template, plain);
    add(&w, WEFT__DATASET_JSONL, chat);
    add(&w, WEFT__DATASET_JSONL,
        "{\"messages\": [{\"role\": \"user\", \"content\": \"go\"}, {\"role\": \"assistant\", \"content\": \"\", "
        "\"tool_calls\": "
        "[{\"function\": {\"name\": \"mill\"}}]}], \"id\": 7}");
    weft__train_batch b = next(&w);
    expect_segment(&w, &b, 0,
                   "<|start|><|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\nwho? "
                   "<|im_end|><|im_end|>\n<|im_start|>assistant\nthe fox<|im_end|>\n"
                   "<|im_start|>user\nand?<|im_end|>\n<|im_start|>assistant\nthe owl",
                   "the fox<|im_end|>the owl<|im_end|>");
    expect_segment(&w, &b, 1, "<|start|><|im_start|>user\ngo<|im_end|>\n<|im_start|>assistant\n<call>mill</call>",
                   "<call>mill</call><|im_end|>");
    int n_end = 0;
    for (int32_t i = 0; i < b.n_rows; i++) n_end += b.segment[i] == 0 && b.token[i] == END;
    assert_int_equal(n_end, 4); /* what the user spelled is text: after system, user, assistant, user */
    close_world(&w);
}

/* A record whose messages are spelled otherwise is learned as weft serve would ask for it: one string of content, empty
 * where there is none. */
static void messages_are_learned_as_they_are_served(void **state)
{
    (void)state;
    static const char records[] =
        "{\"messages\": [{\"role\": \"developer\", \"content\": \"be kind\"}, {\"role\": \"user\", \"content\": "
        "[{\"type\": \"text\", \"text\": \"the fox\"}, {\"type\": \"text\", \"text\": \"the owl\"}]}, {\"role\": "
        "\"assistant\", "
        "\"content\": [{\"type\": \"text\", \"text\": \"the mill\"}]}]}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"go\"}, {\"role\": \"assistant\", \"content\": null, "
        "\"tool_calls\": [{\"function\": {\"name\": \"mill\"}}]}]}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": []}, {\"role\": \"assistant\", "
        "\"tool_calls\": [{\"function\": {\"name\": \"mill\"}}]}]}\n";
    world w;
    open_world(&w, template, plain);
    add(&w, WEFT__DATASET_JSONL, records);
    weft__train_batch b = next(&w);
    expect_segment(&w, &b, 0,
                   "<|start|><|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\nthe fox\nthe owl<|im_end|>\n"
                   "<|im_start|>assistant\nthe mill",
                   "the mill<|im_end|>");
    expect_segment(&w, &b, 1, "<|start|><|im_start|>user\ngo<|im_end|>\n<|im_start|>assistant\n<call>mill</call>",
                   "<call>mill</call><|im_end|>");
    expect_segment(&w, &b, 2, "<|start|><|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n<call>mill</call>",
                   "<call>mill</call><|im_end|>");
    close_world(&w);
}

/* Arguments of calls have the form that the template wants; null stands for what is absent, in messages, tools and
 * records. */
static void calls_are_learned_as_the_template_wants_them(void **state)
{
    (void)state;
    static const char *const templates[] = {"{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c "
                                            "in m.tool_calls or [] %}{{ c.function.arguments | "
                                            "tojson }}{% endfor %}{% if m.name is defined %}{{ m.name }}{% endif "
                                            "%}<|im_end|>\n{% endfor %}{% if tools is not none %}T{% endif "
                                            "%}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
                                            "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c "
                                            "in m.tool_calls or [] %}{{ '' + c.function.arguments "
                                            "}}{% endfor %}{% if m.name is defined %}{{ m.name }}{% endif "
                                            "%}<|im_end|>\n{% endfor %}{% if tools is not none %}T{% endif "
                                            "%}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"};
    static const char records[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"go\"}, {\"role\": \"assistant\", \"content\": null, "
        "\"tool_calls\": "
        "[{\"function\": {\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}}]}]}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"go\", \"name\": null, \"tool_calls\": null}, {\"role\": "
        "\"assistant\", "
        "\"name\": null, \"weight\": null, \"tool_calls\": [{\"id\": null, \"function\": {\"name\": \"f\", "
        "\"arguments\": "
        "{\"a\": 1}}}]}], \"tools\": [], \"text\": null, \"prompt\": null, \"completion\": null, \"chosen\": null}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"go\", \"function_call\": null}, {\"role\": \"assistant\", "
        "\"content\": null, "
        "\"name\": null, \"tool_calls\": null, \"function_call\": {\"name\": \"f\", \"arguments\": \"{\\\"a\\\": "
        "1}\"}}], \"tools\": "
        "null}\n";
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        world w;
        open_world(&w, templates[i], plain);
        add(&w, WEFT__DATASET_JSONL, records);
        weft__train_batch b = next(&w);
        for (int k = 0; k < 3; k++)
            expect_segment(&w, &b, k, "<|start|><|im_start|>user\ngo<|im_end|>\n<|im_start|>assistant\n{\"a\": 1}",
                           "{\"a\": 1}<|im_end|>");
        close_world(&w);
    }
}

/* As in OpenAI's records: an answer of weight 0 is read, not learned. */
static void answers_of_no_weight_are_not_learned(void **state)
{
    (void)state;
    static const char records[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"who?\"}, {\"role\": "
                                  "\"assistant\", \"content\": \"the fox\", "
                                  "\"weight\": 0}, {\"role\": \"user\", \"content\": \"and?\"}, {\"role\": "
                                  "\"assistant\", \"content\": \"the owl\", "
                                  "\"weight\": 1}]}\n"
                                  "{\"messages\": [{\"role\": \"user\", \"content\": \"go\"}, {\"role\": "
                                  "\"assistant\", \"content\": \"the mill\", "
                                  "\"weight\": 0.0}]}\n";
    world w;
    weft__dataset_totals c;
    open_world(&w, template, plain);
    add(&w, WEFT__DATASET_JSONL, records);
    weft__dataset_counts(w.d, &c);
    assert_int_equal(c.n_segments, 1);
    assert_int_equal(c.n_dropped, 1);
    weft__train_batch b = next(&w);
    expect_segment(&w, &b, 0,
                   "<|start|><|im_start|>user\nwho?<|im_end|>\n<|im_start|>assistant\nthe fox<|im_end|>\n"
                   "<|im_start|>user\nand?<|im_end|>\n<|im_start|>assistant\nthe owl",
                   "the owl<|im_end|>");
    world other; /* the same tokens in the same segment, of which others are learned: no data for a run to go on with */
    open_world(&other, template, plain);
    add(&other, WEFT__DATASET_JSONL,
        "{\"messages\": [{\"role\": \"user\", \"content\": \"who?\"}, {\"role\": \"assistant\", \"content\": \"the "
        "fox\"}, "
        "{\"role\": \"user\", \"content\": \"and?\"}, {\"role\": \"assistant\", \"content\": \"the owl\"}]}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"go\"}, {\"role\": \"assistant\", \"content\": \"the "
        "mill\", "
        "\"weight\": 0}]}\n");
    assert_true(weft__dataset_hash(other.d) != weft__dataset_hash(w.d));
    close_world(&other);
    close_world(&w);
}

/* The roles that weft serve takes, and those that the template spells. */
static void roles_are_known_ones_or_the_template_s(void **state)
{
    static const char *const known[] = {"system", "developer", "user", "assistant", "tool", "function"};
    static const char naming[] =
        "{%- for m in messages %}{% if m.role == \"critic\" or m.role == 'owl' %}!{% endif %}{{ m.content }}<|im_end|>"
        "{% endfor %}";
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        char line[200];
        world w;
        weft__dataset_totals c;
        snprintf(
            line, sizeof line,
            "{\"messages\": [{\"role\": \"%s\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}]}",
            i < 6    ? known[i]
            : i == 6 ? "critic"
                     : "owl");
        open_world(&w, i < 6 ? template : naming, plain);
        add(&w, WEFT__DATASET_JSONL, line);
        weft__dataset_counts(w.d, &c);
        assert_int_equal(c.n_segments, 1);
        close_world(&w);
    }
}

static void with_learn_all_prompts_are_learned_too(void **state)
{
    (void)state;
    world w;
    weft__dataset_options o = plain;
    o.learn_all = 1;
    open_world(&w, template, o);
    add(&w, WEFT__DATASET_JSONL, "{\"prompt\": \"who?\", \"completion\": \"the fox\"}");
    weft__train_batch b = next(&w);
    expect_segment(&w, &b, 0, "<|start|><|im_start|>user\nwho?<|im_end|>\n<|im_start|>assistant\nthe fox<|im_end|>",
                   "<|im_start|>user\nwho?<|im_end|>\n<|im_start|>assistant\nthe fox<|im_end|>\n");
    close_world(&w);
}

static void answers_to_prompts_are_learned(void **state)
{
    (void)state;
    const char *const records =
        "{\"prompt\": \"who?\", \"completion\": \"the fox\"}\n"
        "{\"prompt\": [{\"role\": \"user\", \"content\": \"who?\"}], \"completion\": {\"role\": "
        "\"assistant\", \"content\": \"the fox\"}}\r\n\n"
        "{\"prompt\": [{\"role\": \"user\", \"content\": \"who?\"}], \"completion\": [{\"role\": "
        "\"assistant\", \"content\": \"the fox\"}]}";
    world w;
    open_world(&w, template, plain);
    add(&w, WEFT__DATASET_JSONL, records);
    weft__train_batch b = next(&w);
    for (int i = 0; i < 3; i++)
        expect_segment(&w, &b, i, "<|start|><|im_start|>user\nwho?<|im_end|>\n<|im_start|>assistant\nthe fox",
                       "the fox<|im_end|>");
    close_world(&w);
    open_world(&w, NULL, plain); /* no template: the text goes on */
    add(&w, WEFT__DATASET_JSONL, "{\"prompt\": \"the\", \"completion\": \" fox\"}");
    b = next(&w);
    expect_segment(&w, &b, 0, "<|start|>the fox", " fox<|stop|>");
    close_world(&w);
}

static void pairs_come_together(void **state)
{
    (void)state;
    world w;
    weft__dataset_options o = {.n_ctx = 60, .max_rows = 130, .pairs = 1, .seed = 3};
    open_world(&w, template, o);
    for (int i = 0; i < 9; i++) {
        char line[200];
        snprintf(line, sizeof line, "{\"prompt\": \"%d\", \"chosen\": \"the fox %d\", \"rejected\": \"owl %d\"}\n", i,
                 i, i);
        add(&w, WEFT__DATASET_JSONL, line);
    }
    int seen[9] = {0};
    while (weft__dataset_position(w.d).epoch == 0) {
        weft__train_batch b = next(&w);
        int n = b.segment[b.n_rows - 1] + 1;
        assert_true(b.n_rows <= 130 && n % 2 == 0);
        for (int s = 0; s < n; s += 2) {
            for (int i = 0; i < 9; i++) {
                char prompt[90], chosen[40], rejected[40], shown[200];
                weft__tok_ids ids = {0};
                snprintf(prompt, sizeof prompt, "<|start|><|im_start|>user\n%d<|im_end|>\n<|im_start|>assistant\n", i);
                assert_int_equal(weft__tok_encode(w.tok, prompt, strlen(prompt), WEFT__TOK_ENCODE_PARSE, &ids, NULL),
                                 WEFT_OK);
                int32_t first = 0;
                while (b.segment[first] != s) first++;
                int same = !memcmp(b.token + first, ids.data, ids.n * sizeof *ids.data);
                weft__tok_ids_free(&ids);
                if (!same) continue;
                seen[i]++;
                snprintf(chosen, sizeof chosen, "the fox %d<|im_end|>", i);
                snprintf(rejected, sizeof rejected, "owl %d<|im_end|>", i);
                snprintf(shown, sizeof shown, "%sthe fox %d", prompt, i);
                expect_segment(&w, &b, s, shown, chosen);
                snprintf(shown, sizeof shown, "%sowl %d", prompt, i);
                expect_segment(&w, &b, s + 1, shown, rejected);
            }
        }
    }
    for (int i = 0; i < 9; i++) assert_int_equal(seen[i], 1);
    close_world(&w);
}

/* What a data set of this one pair comes to. */
static uint64_t hash_of_pair(const char *line)
{
    world w;
    weft__dataset_totals c;
    open_world(&w, template, (weft__dataset_options){.n_ctx = 200, .max_rows = 400, .pairs = 1});
    add(&w, WEFT__DATASET_JSONL, line);
    weft__dataset_counts(w.d, &c);
    assert_int_equal(c.n_segments, 2);
    uint64_t hash = weft__dataset_hash(w.d);
    close_world(&w);
    return hash;
}

#define SAYS_TURNED(role, content) "{\"content\": \"" content "\", \"role\": \"" role "\"}"

/* TRL's data have no prompt, or its first question as a string beside it: it is what both conversations begin with. */
static void pairs_may_share_their_prompt(void **state)
{
    (void)state;
#define TOLD SAYS("system", "s") ", " SAYS("user", "who") ", " SAYS("assistant", "the owl") ", " SAYS("user", "why")
#define TURNED                                                                                                         \
    SAYS_TURNED("system", "s")                                                                                         \
    ", " SAYS("user", "who") ", " SAYS_TURNED("assistant", "the owl") ", " SAYS("user", "why")
    const uint64_t fox = hash_of_pair("{\"prompt\": [" TOLD "], \"chosen\": [" SAYS(
        "assistant", "fox") "], \"rejected\": [" SAYS("assistant", "mill") "]}");
    static const char *const prompts[] = {"", "\"prompt\": null, ", "\"prompt\": \"who\", "};
    for (size_t i = 0; i < 3; i++) {
        char line[900];
        snprintf(line, sizeof line,
                 "{%s\"chosen\": [" TOLD ", " SAYS("assistant", "fox") "], \"rejected\": [" TURNED
                                                                       ", " SAYS("assistant", "mill") "]}",
                 prompts[i]);
        assert_true(hash_of_pair(line) == fox);
    }
    /* One that ends where the other goes on: its last message is an answer, and not the prompt's. */
    assert_true(hash_of_pair("{\"chosen\": [" SAYS("user", "a") ", " SAYS("assistant", "b") "], \"rejected\": [" SAYS(
                    "user", "a") ", " SAYS("assistant", "b") ", " SAYS("user", "c") ", " SAYS("assistant", "d") "]}") ==
                hash_of_pair("{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": [" SAYS("assistant", "b") ", " SAYS(
                    "user", "c") ", " SAYS("assistant", "d") "]}"));
    /* A prompt that is a string is one where the answers are no conversations from their beginning. */
    assert_true(hash_of_pair("{\"prompt\": \"a\", \"chosen\": [" SAYS("assistant", "b") "], \"rejected\": [" SAYS(
                    "assistant", "c") "]}") ==
                hash_of_pair("{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}"));
}

/* Answers that are the same, or are cut to the same, have no margin for ever: they are left out, and counted. */
static void pairs_without_a_difference_are_left_out(void **state)
{
    (void)state;
    world w;
    weft__dataset_options o = {.n_ctx = 28, .max_rows = 56, .pairs = 1};
    weft__dataset_totals c;
    weft__train_batch b;
    open_world(&w, template, o);
    add(&w, WEFT__DATASET_JSONL, "{\"prompt\": \"a\", \"chosen\": \"the fox\", \"rejected\": \"the fox\"}");
    add(&w, WEFT__DATASET_JSONL,
        "{\"prompt\": \"a\", \"chosen\": \"the fox and the owl sat by the mill, and so did who?\", \"rejected\": \"the "
        "fox and the "
        "owl sat by the mill, and so did the owl\"}");
    weft__dataset_counts(w.d, &c);
    assert_int_equal(c.n_documents, 2);
    assert_int_equal(c.n_dropped, 2);
    assert_int_equal(c.n_cut, 1);
    assert_int_equal(c.n_segments + c.n_tokens + c.n_learned, 0);
    assert_int_equal(weft__dataset_next(w.d, &b, &w.err), WEFT_ARGUMENT);
    add(&w, WEFT__DATASET_JSONL,
        "{\"prompt\": \"a\", \"chosen\": \"the fox\", \"rejected\": \"the fox sat\"}"); /* one begins the other */
    weft__dataset_counts(w.d, &c);
    assert_int_equal(c.n_dropped, 2);
    assert_int_equal(c.n_segments, 2);
    b = next(&w);
    assert_int_equal(b.segment[b.n_rows - 1], 1);
    close_world(&w);
}

/* ---- order ---- */

enum { N_TEXTS = 60, MAX_BATCHES = 200 };

static void add_numbers(world *w)
{
    for (int i = 0; i < N_TEXTS; i++) {
        char text[64];
        snprintf(text, sizeof text, "%d%.*s<|stop|>", 100 + i, i % 7, "fffffff");
        add(w, WEFT__DATASET_TEXT, text);
    }
}

typedef struct record_of_batches {
    uint64_t hash[MAX_BATCHES];
    weft__dataset_cursor before[MAX_BATCHES];
    int n;
} record_of_batches;

static uint64_t mix(uint64_t h, int64_t v)
{
    return (h ^ (uint64_t)v) * 0x100000001B3u;
}

static void read_batches(world *w, int n, record_of_batches *r)
{
    for (r->n = 0; r->n < n; r->n++) {
        uint64_t h = 1;
        r->before[r->n] = weft__dataset_position(w->d);
        weft__train_batch b = next(w);
        for (int32_t i = 0; i < b.n_rows; i++) h = mix(mix(mix(h, b.token[i]), b.segment[i]), b.target[i]);
        r->hash[r->n] = h;
    }
}

static void every_epoch_has_each_text_once_in_another_order(void **state)
{
    (void)state;
    world w;
    weft__dataset_options o = {.n_ctx = 16, .max_rows = 40, .seed = 11};
    int order[3][N_TEXTS];
    open_world(&w, NULL, o);
    add_numbers(&w);
    for (int epoch = 0; epoch < 3; epoch++) {
        int n = 0;
        while (weft__dataset_position(w.d).epoch == (uint64_t)epoch) {
            weft__train_batch b = next(&w);
            for (int32_t i = 0; i < b.n_rows; i++) {
                if (i && b.segment[i] != b.segment[i - 1]) assert_int_equal(b.segment[i], b.segment[i - 1] + 1);
                if (b.token[i] != START) continue;
                weft__tok_slice digits[3] = {weft__tok_piece_of(w.tok, b.token[i + 1]),
                                             weft__tok_piece_of(w.tok, b.token[i + 2]),
                                             weft__tok_piece_of(w.tok, b.token[i + 3])};
                assert_true(n < N_TEXTS);
                order[epoch][n++] =
                    (digits[1].data[0] - '0') * 10 + digits[2].data[0] - '0' + 100 * (digits[0].data[0] - '1');
            }
        }
        assert_int_equal(n, N_TEXTS);
        int seen[N_TEXTS] = {0};
        for (int i = 0; i < n; i++) seen[order[epoch][i]]++;
        for (int i = 0; i < n; i++) assert_int_equal(seen[i], 1);
    }
    assert_memory_not_equal(order[0], order[1], sizeof order[0]);
    assert_memory_not_equal(order[1], order[2], sizeof order[0]);
    close_world(&w);
}

static void any_position_resumes_exactly(void **state)
{
    (void)state;
    world w, other;
    weft__dataset_options o = {.n_ctx = 16, .max_rows = 40, .seed = 5};
    static record_of_batches all, rest;
    open_world(&w, NULL, o);
    add_numbers(&w);
    read_batches(&w, 60, &all);
    for (int k = 0; k < 60; k += 3) {
        open_world(&other, NULL, o);
        add_numbers(&other);
        assert_true(weft__dataset_hash(other.d) == weft__dataset_hash(w.d));
        assert_int_equal(weft__dataset_seek(other.d, all.before[k], NULL), WEFT_OK);
        read_batches(&other, 60 - k, &rest);
        assert_memory_equal(rest.hash, all.hash + k, (size_t)(60 - k) * sizeof *rest.hash);
        close_world(&other);
    }
    assert_int_equal(weft__dataset_seek(w.d, (weft__dataset_cursor){0, N_TEXTS}, NULL), WEFT_ARGUMENT);
    o.seed = 6; /* another seed: another order, and the checksum tells */
    open_world(&other, NULL, o);
    add_numbers(&other);
    assert_true(weft__dataset_hash(other.d) != weft__dataset_hash(w.d));
    read_batches(&other, 20, &rest);
    assert_memory_not_equal(rest.hash, all.hash, 20 * sizeof *rest.hash);
    close_world(&other);
    close_world(&w);
}

/* ---- byte-order marks ---- */

/* One at the beginning of a file changes nothing; ids have none. */
static void a_byte_order_mark_is_no_text(void **state)
{
    static const struct {
        weft__dataset_form form;
        const char *bytes;
    } files[] = {{WEFT__DATASET_TEXT, "\xEF\xBB\xBFthe fox<|stop|>\n\xEF\xBB\xBFthe owl"},
                 {WEFT__DATASET_JSONL, "\xEF\xBB\xBF{\"text\": \"the fox\"}\r\n{\"text\": \"\xEF\xBB\xBFthe owl\"}\n"}};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        world with, without;
        open_world(&with, NULL, plain);
        open_world(&without, NULL, plain);
        add(&with, files[i].form, files[i].bytes);
        add(&without, files[i].form, files[i].bytes + 3);
        assert_true(weft__dataset_hash(with.d) == weft__dataset_hash(without.d));
        weft__train_batch b = next(&with);
        expect_segment(&with, &b, 0, "<|start|>the fox", "the fox<|stop|>");
        expect_segment(&with, &b, 1, "<|start|>\xEF\xBB\xBFthe owl",
                       "\xEF\xBB\xBFthe owl<|stop|>"); /* inside it is text */
        close_world(&without);
        close_world(&with);
    }
    world w;
    open_world(&w, NULL, plain);
    add(&w, WEFT__DATASET_TEXT, "\xEF\xBB\xBF"); /* nothing behind it */
    add(&w, WEFT__DATASET_JSONL, "\xEF\xBB\xBF");
    weft__dataset_totals c;
    weft__dataset_counts(w.d, &c);
    assert_int_equal(c.n_documents, 0);
    close_world(&w);
}

/* ---- ids ---- */

static void ids_are_read_in_two_widths(void **state)
{
    (void)state;
    const unsigned char u16[] = {0, 0, 100, 0, 1, 1, 1, 0, 0, 0, 9, 0},
                        u32[] = {0, 0, 0, 0, 100, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0};
    for (int wide = 0; wide < 2; wide++) {
        world w;
        open_world(&w, NULL, plain);
        assert_int_equal(weft__dataset_add_bytes(w.d, "f", wide ? WEFT__DATASET_U32 : WEFT__DATASET_U16,
                                                 (const char *)(wide ? u32 : u16), wide ? sizeof u32 : sizeof u16,
                                                 NULL),
                         WEFT_OK);
        weft__train_batch b = next(&w);
        const int32_t token[] = {0, 100, 257, 0}, target[] = {100, 257, 1, 9}, segment[] = {0, 0, 0, 1};
        assert_int_equal(b.n_rows, 4);
        assert_memory_equal(b.token, token, sizeof token);
        assert_memory_equal(b.target, target, sizeof target);
        assert_memory_equal(b.segment, segment, sizeof segment);
        close_world(&w);
    }
    assert_int_equal(weft__dataset_form_of("a.u16"), WEFT__DATASET_U16);
    assert_int_equal(weft__dataset_form_of("a.u32"), WEFT__DATASET_U32);
    assert_int_equal(weft__dataset_form_of("a.jsonl"), WEFT__DATASET_JSONL);
    assert_int_equal(weft__dataset_form_of("A.JSONL"), WEFT__DATASET_JSONL);
    assert_int_equal(weft__dataset_form_of("jsonl"), WEFT__DATASET_TEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_learned_whole),
        cmocka_unit_test(texts_begin_as_the_model_is_run),
        cmocka_unit_test(long_texts_are_cut_and_every_token_is_learned_once),
        cmocka_unit_test(the_assistants_words_are_learned),
        cmocka_unit_test(messages_are_learned_as_they_are_served),
        cmocka_unit_test(calls_are_learned_as_the_template_wants_them),
        cmocka_unit_test(answers_of_no_weight_are_not_learned),
        cmocka_unit_test(roles_are_known_ones_or_the_template_s),
        cmocka_unit_test(with_learn_all_prompts_are_learned_too),
        cmocka_unit_test(answers_to_prompts_are_learned),
        cmocka_unit_test(pairs_come_together),
        cmocka_unit_test(pairs_may_share_their_prompt),
        cmocka_unit_test(pairs_without_a_difference_are_left_out),
        cmocka_unit_test(every_epoch_has_each_text_once_in_another_order),
        cmocka_unit_test(any_position_resumes_exactly),
        cmocka_unit_test(a_byte_order_mark_is_no_text),
        cmocka_unit_test(ids_are_read_in_two_widths),
    };
    return cmocka_run_group_tests_name("train_data", tests, NULL, NULL);
}
