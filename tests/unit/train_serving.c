// SPDX-License-Identifier: Apache-2.0
/* train_serving.c: what a record of a conversation is to a model that learns it is what the server makes of the same
 * conversation: with and without tools, calls and thoughts, in the templates of 68 real models, token by token. */
#include "unit/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api/prompts.h"
#include "claims.h"
#include "engine/handles.h"
#include "model/shared.h"
#include "text/chat/thinking.h"
#include "text/tokenizer/parts.h"
#include "train/render.h"

/* Templates ask for the date: the server's is the one that training tells them. */
time_t time(time_t *t)
{
    const time_t now = 1767225600;
    if (t) *t = now;
    return now;
}

#define SAID(role, content, more) "{\"role\": \"" role "\", \"content\": \"" content "\"" more "}"
#define SYSTEM SAID("system", "Be terse.", "")
#define ASKED SAID("user", "Is it raining in Bern?", "")
#define ANSWER SAID("assistant", "It rains.", "")
#define THOUGHT SAID("assistant", "It rains.", ", \"reasoning_content\": \"So it does.\"")
#define CALL(more)                                                                                                     \
    "{\"role\": \"assistant\", \"content\": \"\"" more ", \"tool_calls\": [{\"id\": \"abcdefgh1\", \"type\": "         \
    "\"function\", \"function\": {\"name\": \"get_rain\", \"arguments\": {\"town\": \"Bern\"}}}]}"
#define RESULT "{\"role\": \"tool\", \"tool_call_id\": \"abcdefgh1\", \"name\": \"get_rain\", \"content\": \"rain\"}"
#define TOOLS                                                                                                          \
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_rain\", \"description\": \"Is it raining?\", "           \
    "\"parameters\": {\"type\": \"object\", \"properties\": {\"town\": {\"type\": \"string\", \"description\": "       \
    "\"Where\"}}, \"required\": [\"town\"]}}}]"
#define BARE "[{\"type\": \"function\", \"function\": {\"name\": \"get_rain\"}}]"

static const struct {
    const char *before, *answer, *tools;
    int thinks;
} CONVERSATIONS[] = {
    {ASKED, ANSWER, NULL, 0},
    {SYSTEM ", " ASKED, ANSWER, NULL, 0},
    {SYSTEM ", " ASKED, THOUGHT, NULL, 1},
    {SYSTEM ", " ASKED, ANSWER, TOOLS, 0},
    {ASKED, CALL(""), TOOLS, 0},
    {ASKED, CALL(", \"reasoning_content\": \"I look.\""), TOOLS, 1},
    {ASKED ", " CALL("") ", " RESULT, ANSWER, TOOLS, 0},
    {ASKED, ANSWER, BARE, 0},
};
enum { N_CONVERSATIONS = sizeof CONVERSATIONS / sizeof *CONVERSATIONS };

typedef struct world {
    weft_model *model;
    weft__api_prompt_model serving;
    weft__train_renderer learning;
    int n_compared, n_refused, n_apart; /* refused: by the template; apart: it writes an answer differently */
} world;

/* The tokens that the server makes; 0 where it refuses the conversation. */
static int serve(const world *w, size_t i, weft__api_prompts *out)
{
    char body[4096];
    weft__api_params params;
    weft__api_error error = {0};
    const char *tools = CONVERSATIONS[i].tools;
    const weft__chat_thinking_name *own = weft__chat_template_thinking(w->learning.own.t);
    const int unsaid =
        CONVERSATIONS[i].thinks || (own && own->prompt_only); /* learned as it is where nothing is said */
    const int n =
        snprintf(body, sizeof body, "{\"messages\": [%s]%s%s%s}", CONVERSATIONS[i].before, tools ? ", \"tools\": " : "",
                 tools ? tools : "", unsaid ? "" : ", \"chat_template_kwargs\": {\"enable_thinking\": false}");
    if (!weft__api_params_parse(&weft__api_table_chat, 1 << 20, body, (size_t)n, &params, &error))
        fail_msg("%s", error.message);
    const int ok = weft__api_prompts_chat(&w->serving, &params, out, &error);
    weft__api_params_free(&params);
    return ok;
}

/* The record's tokens, and how many stand before what is learned. */
static weft_status learn(const world *w, size_t i, weft__train_rendered *out, size_t *n_before, weft_error *err)
{
    char line[4096];
    weft__train_record record = {0};
    const char *tools = CONVERSATIONS[i].tools;
    const int n = snprintf(line, sizeof line, "{\"messages\": [%s, %s]%s%s}", CONVERSATIONS[i].before,
                           CONVERSATIONS[i].answer, tools ? ", \"tools\": " : "", tools ? tools : "");
    weft_status st = weft__train_record_read(line, (size_t)n, &record, err);
    if (st) return st;
    /* Of calls that were made before, the answer alone is learned. */
    weft__json *m = weft__json_new_array();
    for (size_t k = 0; k < weft__json_size(record.messages); k++) {
        weft__json *one = weft__json_copy(weft__json_at(record.messages, k));
        const int is_last = k + 1 == weft__json_size(record.messages);
        if (!is_last && !weft__json_set(one, "weight", weft__json_new_int(0))) weft__json_free(&one);
        if (!weft__json_append(m, one)) weft__json_free(&m);
    }
    record.messages = m;
    st = m ? weft__train_render(&w->learning, &record, 0, SIZE_MAX, out, err) : WEFT_NO_MEMORY;
    weft__json_free(&m);
    weft__train_record_free(&record);
    for (*n_before = 0; *n_before < out->ids.n && !out->learn[*n_before];) ++*n_before;
    return st;
}

static void compare(world *w, const char *name, size_t i)
{
    weft__api_prompts served;
    weft__train_rendered learned = {0};
    weft_error err = {0};
    size_t n_before = 0;
    const int ok = serve(w, i, &served);
    const weft_status st = learn(w, i, &learned, &n_before, &err);
    if (!st || (st == WEFT_UNSUPPORTED && ok)) {
        if (!ok) fail_msg("%s: conversation %zu is learned and not served", name, i);
        if (!st && (n_before != (size_t)served.items[0].n ||
                    memcmp(learned.ids.data, served.items[0].ids, n_before * sizeof *learned.ids.data) != 0))
            fail_msg("%s: conversation %zu: %zu tokens before the answer, served with %d", name, i, n_before,
                     served.items[0].n);
        if (!st) assert_true(n_before < learned.ids.n);
        w->n_compared += !st;
        w->n_apart += st != WEFT_OK;
    } else {
        if (ok && !strstr(err.message, "turn "))
            fail_msg("%s: conversation %zu is served and not learned: %s", name, i, err.message);
        w->n_refused++;
    }
    weft__train_rendered_free(&learned);
    weft__api_prompts_free(&served);
}

/* All conversations with this template; NULL: the model's own. */
static void compare_all(world *w, const char *name, const char *source, size_t n)
{
    weft_error err = {0};
    if (weft_chat_open(w->model, source, n, &w->serving.chat, &err)) fail_msg("%s: %s", name, err.message);
    if (weft_chat_open_for_tools(w->model, w->serving.chat, &w->serving.tool_chat, &err) == WEFT_NO_MEMORY)
        fail_msg("%s", err.message);
    const weft_status st = weft__train_renderer_init(&w->learning, w->model->tokenizer->t, source, n, &err);
    if (st) fail_msg("%s: %s", name, err.message);
    for (size_t i = 0; i < N_CONVERSATIONS; i++) compare(w, name, i);
    weft__train_renderer_free(&w->learning);
    weft_chat_close(&w->serving.tool_chat);
    weft_chat_close(&w->serving.chat);
}

/* What is learned of conversation i. */
static void learns(const world *w, size_t i, const char *wanted)
{
    weft__train_rendered out = {0};
    weft__strbuf text = {0};
    weft_error err = {0};
    size_t n_before, n;
    if (learn(w, i, &out, &n_before, &err)) fail_msg("%s", err.message);
    weft_detok *detok;
    const char *piece;
    assert_int_equal(weft_detok_new(w->serving.tokenizer, WEFT_DETOK_CONTINUE, &detok, &err), WEFT_OK);
    for (size_t k = n_before; k < out.ids.n && out.learn[k]; k++) {
        assert_int_equal(weft_detok_push(detok, out.ids.data[k], &piece, &n, &err), WEFT_OK);
        weft__strbuf_put(&text, piece, n);
    }
    weft_detok_free(&detok);
    if (strcmp(text.data, wanted) != 0) fail_msg("%s is not %s", text.data, wanted);
    weft__strbuf_free(&text);
    weft__train_rendered_free(&out);
}

static int learn_all(void *arg)
{
    world *w = arg;
    int ok = 1;
    for (size_t i = 2; i < 7 && ok; i++) {
        weft__train_rendered out = {0};
        size_t n_before;
        const weft_status st = learn(w, i, &out, &n_before, NULL);
        weft__train_rendered_free(&out);
        if (st) assert_int_equal(st, WEFT_NO_MEMORY);
        ok = !st;
    }
    return ok;
}

static int setup(void **state)
{
    static world w;
    weft_model_params params;
    weft_model_params_default(&params);
    assert_int_equal(weft_model_open("models/alderbrook.gguf", &params, &w.model, NULL), WEFT_OK);
    w.serving.tokenizer = weft_model_tokenizer(w.model);
    w.serving.n_ctx = 1 << 20;
    w.serving.longest_token = 1;
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    world *w = *state;
    weft_model_close(&w->model);
    return 0;
}

/* Also where the prompt closes the thinking that the answers of the history do not show. */
static void templates_of_our_own(void **state)
{
    static const char closes[] =
        "{# <think> </think> #}{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<{{ m.role }}>"
        "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}</s>"
        "{% endfor %}{% if add_generation_prompt %}<assistant>{% if not enable_thinking %}<think>\n\n</think>\n\n"
        "{% endif %}{% endif %}";
    world *w = *state;
    w->n_compared = w->n_refused = w->n_apart = 0;
    compare_all(w, "own", NULL, 0);
    compare_all(w, "closes", closes, sizeof closes - 1);
    assert_int_equal(w->n_compared, 2 * N_CONVERSATIONS);
}

/* Where the prompt begins the thinking, and answers of the history show none: what was thought, and its end, are what
 * the model is to write; and there is an end where nothing was thought. */
static void thoughts_that_the_history_leaves_out(void **state)
{
    static const char opens[] =
        "{# <think> </think> #}{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<{{ m.role }}>"
        "{{ m.content }}{% for c in m.tool_calls %}[{{ c.function.name }}]{% endfor %}</s>{% endfor %}"
        "{% if add_generation_prompt %}<assistant><think>\n{% endif %}";
    world *w = *state;
    weft_error err = {0};
    w->n_compared = 0;
    compare_all(w, "opens", opens, sizeof opens - 1);
    assert_int_equal(w->n_compared, N_CONVERSATIONS);
    assert_int_equal(weft__train_renderer_init(&w->learning, w->model->tokenizer->t, opens, sizeof opens - 1, &err),
                     WEFT_OK);
    learns(w, 2, "So it does.\n</think>\n\nIt rains.</s>");
    learns(w, 0, "\n</think>\n\nIt rains.</s>");
    learns(w, 5, "I look.\n</think>\n\n[get_rain]</s>");
    assert_true(fail_some(learn_all, w, 7) > 50);
    weft__train_renderer_free(&w->learning);
}

/* A model without a template: both get the same in its place. Prompts and answers that are strings are text. */
static void what_stands_in_for_a_template(void **state)
{
    static const char line[] = "{\"prompt\": \"Is it\", \"completion\": \" raining?\"}";
    world *w = *state;
    weft__tok *tok = w->model->tokenizer->t;
    char *own = tok->chat_template;
    const size_t n_own = tok->chat_template_len;
    weft__train_rendered out = {0};
    weft__train_record record = {0};
    weft_error err = {0};
    tok->chat_template = NULL;
    tok->chat_template_len = 0;
    w->n_compared = w->n_refused = w->n_apart = 0;
    compare_all(w, "none", NULL, 0);
    assert_int_equal(w->n_compared, N_CONVERSATIONS);
    assert_int_equal(weft__train_renderer_init(&w->learning, tok, NULL, 0, &err), WEFT_OK);
    learns(w, 0, "It rains."); /* and the mark that ends it, which is no text */
    assert_int_equal(weft__train_record_read(line, sizeof line - 1, &record, &err), WEFT_OK);
    assert_int_equal(weft__train_render(&w->learning, &record, 0, SIZE_MAX, &out, &err), WEFT_OK);
    assert_int_equal(out.stood_in, 0);
    weft__train_record_free(&record);
    weft__train_rendered_free(&out);
    weft__train_renderer_free(&w->learning);
    tok->chat_template = own;
    tok->chat_template_len = n_own;
}

static void templates_of_models(void **state)
{
    world *w = *state;
    char line[256], name[80];
    int n = 0;
    if (!shared_path("templates/%s", "google-gemma-2-2b-it.jinja")) skip_claim("no templates; set WEFT_SHARED");
    FILE *f = fopen("tests/templates.txt", "r");
    assert_non_null(f);
    w->n_compared = w->n_refused = w->n_apart = 0;
    while (fgets(line, sizeof line, f)) {
        if (*line == '#' || sscanf(line, "%79s", name) != 1) continue;
        char *source = malloc(1 << 20);
        FILE *t = fopen(shared_path("templates/%s", name), "rb");
        if (!t || !source) fail_msg("%s cannot be read", name);
        const size_t n_source = fread(source, 1, 1 << 20, t);
        fclose(t);
        compare_all(w, name, source, n_source);
        free(source);
        n++;
    }
    fclose(f);
    assert_int_equal(n, 68);
    /* The others refuse calls or tools, or show what was said before in another way once there is an answer. */
    assert_int_equal(w->n_compared, 507);
    assert_int_equal(w->n_refused, 26);
    assert_int_equal(w->n_apart, 11);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest material[] = {cmocka_unit_test(templates_of_models)};
    if (argc > 1 && !strcmp(argv[1], "material"))
        return claims_status(cmocka_run_group_tests(material, setup, teardown));
    const struct CMUnitTest tests[] = {cmocka_unit_test(templates_of_our_own),
                                       cmocka_unit_test(what_stands_in_for_a_template),
                                       cmocka_unit_test(thoughts_that_the_history_leaves_out)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
