// SPDX-License-Identifier: Apache-2.0
/* text_answer_templates.c: of 68 templates that real models ship, the format of answers and the reasoning are known,
 * as tests/templates.txt has them, and the turns that they render are taken apart into what they were rendered from. */
#include <dirent.h>
#include <stdlib.h>

#include "unit/fixture.h"

#include "model/shared.h"
#include "text/answer/json.h"
#include "text/chat/messages.h"
#include "unit/answer_world.h"

/* ---- the templates ---- */

static char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *text = malloc(1 << 20);
    if (!f) fail_msg("%s cannot be read", path);
    *n = fread(text, 1, (1 << 20) - 1, f);
    fclose(f);
    text[*n] = 0;
    return text;
}

typedef struct listed {
    char file[80], format[40], shows[5], reasoning[80];
} listed;

static listed list[80];
static size_t n_list;

static void read_list(void)
{
    size_t n;
    char *text = read_all("tests/templates.txt", &n), *line = text, *rest;
    for (; (line = strtok_r(line, "\n", &rest)); line = NULL) {
        listed *l = &list[n_list];
        if (*line == '#') continue;
        assert_true(n_list < sizeof list / sizeof *list);
        if (sscanf(line, "%79s %39s %4s %79[^\n]", l->file, l->format, l->shows, l->reasoning) != 4)
            fail_msg("templates.txt: %s", line);
        n_list++;
    }
    free(text);
}

typedef struct opened {
    const listed *as;
    char *source;
    size_t n;
    weft__chat_template *t;
    weft__chat_reading reading;
    weft__answer_style style;
} opened;

static opened open_listed(const listed *l)
{
    opened o = {.as = l};
    const char *path = shared_path("templates/%s", l->file);
    if (!path) fail_msg("no template %s", l->file);
    o.source = read_all(path, &o.n);
    assert_int_equal(weft__chat_template_create(o.source, o.n, &o.t, NULL), WEFT_OK);
    o.reading.form = weft__chat_template_arguments(o.t);
    o.reading.functions = weft__chat_template_functions(o.t);
    o.style = weft__answer_style_of(o.source, o.n, weft__chat_template_reads(o.t, "tools"));
    return o;
}

static void close_listed(opened *o)
{
    weft__chat_template_destroy(&o->t);
    free(o->source);
}

static void formats_are_found_in_templates(void **state)
{
    (void)state;
    struct dirent *e;
    size_t n = 0;
    DIR *d = opendir(shared_path("templates%s", ""));
    assert_non_null(d);
    while ((e = readdir(d))) n += strstr(e->d_name, ".jinja") != NULL;
    closedir(d);
    assert_int_equal(n, n_list);
    for (size_t i = 0; i < n_list; i++) {
        opened o = open_listed(&list[i]);
        const char *begins = o.style.reasoning ? o.style.reasoning->begin : "-";
        const size_t length = strlen(list[i].reasoning);
        begins += strspn(begins, " ");
        if (strcmp(o.style.format->name, list[i].format) || strncmp(begins, list[i].reasoning, length) ||
            strspn(begins + length, "\n") != strlen(begins + length))
            fail_msg("%s: %s %s", list[i].file, o.style.format->name, begins);
        close_listed(&o);
    }
}

/* ---- what is rendered ---- */

enum { TRUNCATED = 11 }; /* the arguments with which turns are cut off at every byte */

static weft__json *schema_of(const weft__json *v)
{
    static const char *const types[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    weft__json *schema = weft__json_new_object();
    const int kind = weft__json_kind_of(v);
    const char *type = types[kind == WEFT__JSON_NULL ? WEFT__JSON_STRING : kind];
    weft__json_set(schema, "type", weft__json_new_string(type, strlen(type)));
    weft__json_set(schema, "description", weft__json_new_string("What it is", 10));
    if (kind == WEFT__JSON_NULL) weft__json_set(schema, "nullable", weft__json_new_bool(1));
    if (kind == WEFT__JSON_ARRAY) {
        weft__json *any = weft__json_new_string("x", 1);
        weft__json_set(schema, "items", schema_of(weft__json_size(v) ? weft__json_at(v, 0) : any));
        weft__json_free(&any);
    }
    if (kind == WEFT__JSON_OBJECT) {
        weft__json_member m = {0};
        weft__json *properties = weft__json_new_object(), *required = weft__json_new_array(),
                   *further = weft__json_new_object();
        while (weft__json_next(v, &m)) {
            weft__json_set(properties, m.key, schema_of(m.value));
            weft__json_append(required, weft__json_new_string(m.key, m.key_len));
        }
        weft__json_set(further, "type", weft__json_new_string("string", 6));
        weft__json_set(schema, "properties", properties);
        weft__json_set(schema, "required", required);
        weft__json_set(schema, "additionalProperties", further);
    }
    return schema;
}

static weft__json *parsed(const char *text)
{
    weft__json *v = NULL;
    weft_error err = {0};
    if (weft__json_parse(text, strlen(text), &v, &err)) fail_msg("%s: %s", text, err.message);
    return v;
}

static weft__json *name_of(size_t i)
{
    char name[20];
    return weft__json_new_string(name, (size_t)snprintf(name, sizeof name, "fn_%02zu", i));
}

static weft__json *all_tools(void)
{
    weft__json *tools = weft__json_new_array();
    for (size_t i = 0; i < N_ARGUMENTS; i++) {
        weft__json *v = parsed(arguments[i]), *function = weft__json_new_object(), *tool = weft__json_new_object();
        weft__json_set(function, "name", name_of(i));
        weft__json_set(function, "description", weft__json_new_string("Does it", 7));
        weft__json_set(function, "parameters", schema_of(v));
        weft__json_set(tool, "type", weft__json_new_string("function", 8));
        weft__json_set(tool, "function", function);
        weft__json_append(tools, tool);
        weft__json_free(&v);
    }
    return tools;
}

/* A turn of the assistant. */
typedef struct spoken {
    const char *text, *reasoning; /* "": none */
    size_t calls[2], n_calls;     /* by their arguments */
} spoken;

static weft__json *call_of(size_t i, size_t place)
{
    char id[20];
    weft__json *function = weft__json_new_object(), *call = weft__json_new_object();
    snprintf(id, sizeof id, "abcdefgh%zu", place);
    weft__json_set(function, "name", name_of(i));
    weft__json_set(function, "arguments", parsed(arguments[i]));
    weft__json_set(call, "id", weft__json_new_string(id, 9));
    weft__json_set(call, "type", weft__json_new_string("function", 8));
    weft__json_set(call, "function", function);
    return call;
}

static weft__json *messages_of(const spoken *turn)
{
    weft__json *messages = parsed("[{\"role\": \"user\", \"content\": \"Go!\"}]");
    weft__json *m = weft__json_new_object();
    if (!turn) {
        weft__json_free(&m);
        return messages;
    }
    weft__json_set(m, "role", weft__json_new_string("assistant", 9));
    weft__json_set(m, "content", weft__json_new_string(turn->text, strlen(turn->text)));
    static const char *const names[] = {"reasoning_content", "reasoning", "thinking"};
    for (size_t i = 0; *turn->reasoning && i < 3; i++)
        weft__json_set(m, names[i], weft__json_new_string(turn->reasoning, strlen(turn->reasoning)));
    weft__json *calls = weft__json_new_array();
    for (size_t i = 0; i < turn->n_calls; i++) weft__json_append(calls, call_of(turn->calls[i], i));
    if (turn->n_calls) weft__json_set(m, "tool_calls", calls);
    else weft__json_free(&calls);
    weft__json_append(messages, m);
    return messages;
}

/* NULL where the template refuses it. */
static char *rendered(opened *o, const weft__json *tools, const spoken *turn)
{
    weft__json *messages = messages_of(turn), *normal = NULL;
    weft__json *kwargs =
        parsed("{\"enable_thinking\": true, \"thinking\": true, \"functions\": \"[]\", \"datetime\": \"now\"}");
    static const weft__chat_token tokens[] = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    weft__jinja_output out;
    char *text = NULL;
    assert_int_equal(weft__chat_messages_normal(&o->reading, messages, &normal, NULL), WEFT_OK);
    const weft__chat_request request = {.messages = normal,
                                        .tools = tools,
                                        .kwargs = kwargs,
                                        .add_generation_prompt = !turn,
                                        .tokens = tokens,
                                        .n_tokens = 2,
                                        .allow_mutation = 1};
    weft_error err = {0};
    if (!weft__chat_template_render(o->t, &request, &out, &err)) text = strdup(out.text);
    else if (getenv("WEFT_ANSWERS")) printf("%s: %s\n", o->as->file, err.message);
    weft__jinja_output_free(&out);
    weft__json_free(&kwargs);
    weft__json_free(&normal);
    weft__json_free(&messages);
    return text;
}

/* What a model does not write itself, for it ends its turn before it or with it. */
static size_t before_end(const char *s, size_t n)
{
    static const char *const ends[] = {"<|im_end|>",
                                       "</s>",
                                       "<|eot_id|>",
                                       "<|eom_id|>",
                                       "<|end|>",
                                       "<\xef\xbd\x9c"
                                       "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                                       "<|END_OF_TURN_TOKEN|>",
                                       "<|START_OF_TURN_TOKEN|>",
                                       "<|CHATBOT_TOKEN|>",
                                       "<end_of_turn>",
                                       "<turn|>",
                                       "<|tool_response>",
                                       "<|end_of_text|>",
                                       "[e~[",
                                       "<end_of_sentence>",
                                       "<seed:eos>",
                                       "<|message_sep|>",
                                       "<|return|>",
                                       "<|call|>",
                                       "</assistant>",
                                       "<\xef\xbd\x9chy_eos:opensource\xef\xbd\x9c>",
                                       "<SPECIAL_12>",
                                       "<sep>",
                                       "<|eot|>",
                                       "<|end_of_msg|>",
                                       "<|assistant_end|>",
                                       "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
                                       "\n"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t length = strlen(ends[i]);
        if (n < length || memcmp(s + n - length, ends[i], length)) continue;
        n -= length;
        i = (size_t)-1;
    }
    return n;
}

/* Where the answer begins in what was rendered: behind what it has in common with the prompt, which ends with no
 * beginning of a marker. */
static size_t answer_at(const char *prompt, const char *all)
{
    size_t n = 0;
    while (prompt[n] && prompt[n] == all[n]) n++;
    if (!prompt[n]) return n;
    for (size_t i = n; i && n - i < 30; i--) {
        if (all[i - 1] == '>' || all[i - 1] == ']' || all[i - 1] == '\n') break;
        if (all[i - 1] == '<' || all[i - 1] == '[') return i - 1;
    }
    return n;
}

/* The answer within what was rendered: cut out of it, terminated; *prompt is what the model was shown before it. */
static char *answer_in(const opened *o, const char *asked, char *all, const char **prompt, size_t *n_prompt)
{
    static const char *const turns[] = {"<|eot_id|><|start_header_id|>", "<｜end▁of▁sentence｜><｜Assistant｜>",
                                        "<|START_OF_TURN_TOKEN|>"};
    const weft__answer_reasoning *r = o->style.reasoning;
    const size_t at = answer_at(asked, all);
    char *answer = all + at, *next;
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++)
        if ((next = strstr(answer, turns[i]))) *next = 0;
    answer[before_end(answer, strlen(answer))] = 0;
    if (!strncmp(answer, "<|CHATBOT_TOKEN|>", 17)) answer += 17;
    /* Where prompts begin reasoning otherwise than the turns of a conversation do. */
    const int begun = r && strstr(answer, r->end) && !strstr(answer, r->begin) &&
                      !strstr(all + (at < 30 ? 0 : at - 30), r->begin) && strncmp(answer, r->end, strlen(r->end));
    *prompt = begun ? asked : all;
    *n_prompt = begun ? strlen(asked) : at;
    return answer;
}

/* ---- and taken apart again ---- */

typedef struct taken {
    weft__strbuf text, reasoning, names;
    weft__json *calls; /* their arguments */
} taken;

static int take(void *arg, const weft_chat_part *p, size_t from, size_t to)
{
    taken *t = arg;
    weft__json *v = NULL;
    (void)from, (void)to;
    if (p->kind != WEFT_CHAT_CALL) {
        weft__strbuf_put(p->kind == WEFT_CHAT_TEXT ? &t->text : &t->reasoning, p->text, p->n_text);
        return 0;
    }
    weft__strbuf_put(&t->names, p->name, p->n_name);
    weft__strbuf_putc(&t->names, ' ');
    assert_int_equal(weft__json_parse(p->text, p->n_text, &v, NULL), WEFT_OK);
    weft__json_append(t->calls, v);
    return 0;
}

static int is_same(const weft__strbuf *got, const char *wanted, const char *all)
{
    /* Some templates leave text beside calls out. */
    if (!*wanted || !strstr(all, wanted)) return !got->len;
    return got->data && !strcmp(got->data, wanted);
}

/* How often each claim was made of a template. */
typedef struct counted {
    size_t calls, parallel, with_text, with_reasoning;
} counted;

static int is_turn(const taken *got, const spoken *t, const char *all, counted *n)
{
    weft__strbuf names = {0};
    size_t shown = 0;
    int same = is_same(&got->text, t->text, all) && is_same(&got->reasoning, t->reasoning, all);
    for (size_t i = 0; i < t->n_calls; i++) {
        char name[30];
        snprintf(name, sizeof name, "fn_%02zu", t->calls[i]);
        if (!strstr(all, name)) continue; /* those that know one call print the first */
        weft__strbuf_printf(&names, "%s ", name);
        weft__json *v = parsed(arguments[t->calls[i]]);
        same &= weft__json_equal(v, weft__json_at(got->calls, shown++));
        weft__json_free(&v);
    }
    same &= shown == weft__json_size(got->calls) && (!shown || !strcmp(names.data, got->names.data));
    weft__strbuf_free(&names);
    n->calls += shown;
    n->parallel += shown > 1;
    n->with_text += shown && got->text.len;
    n->with_reasoning += shown && got->reasoning.len;
    return same;
}

/* The bytes that are in no part are white space and markers. */
static void check_covered(const weft__answer_style *style, const char *s, size_t n, const uint8_t *covered)
{
    const weft__answer_format *f = style->format;
    const char *marks[40];
    size_t n_marks = 0;
    if (style->reasoning) marks[n_marks++] = style->reasoning->begin, marks[n_marks++] = style->reasoning->end;
    for (const weft__answer_frame *frame = f->frames; frame && frame->text; frame++) marks[n_marks++] = frame->text;
    for (size_t i = 0; i < f->n_forms; i++) {
        const weft__answer_step *lists[] = {f->forms[i].between, f->forms[i].close};
        for (size_t k = 0; k < 2; k++)
            for (const weft__answer_step *step = lists[k]; step && step->op; step++)
                if (step->op == WEFT__ANSWER_MARK) marks[n_marks++] = step->text;
    }
    for (size_t at = 0, i; at < n; at += i < n_marks ? strlen(marks[i]) : 1) {
        i = n_marks;
        if (covered[at]) continue;
        for (i = 0; i < n_marks && strncmp(s + at, marks[i], strlen(marks[i])) != 0;) i++;
        if (i == n_marks && !weft__answer_is_space(s[at]))
            fail_msg("%s: byte %zu of %.*s is in no part", f->name, at, (int)n, s);
    }
}

static void check_cuts(const weft__answer_params *how, const char *tools, const char *s, size_t n)
{
    weft__strbuf whole = taken_apart(how, tools, s, n, WHOLE, NULL);
    for (enum cut cut = BYTES; cut <= TOKENS; cut++) {
        weft__strbuf cuts = taken_apart(how, tools, s, n, cut, NULL);
        if (strcmp(whole.data, cuts.data)) fail_msg("%s\nbecame %s\n   and %s", s, whole.data, cuts.data);
        weft__strbuf_free(&cuts);
    }
    weft__strbuf_free(&whole);
}

static void check_truncated(const weft__answer_params *how, const char *s, size_t n)
{
    uint8_t *covered = malloc(n + 1);
    for (size_t to = 1; to <= n; to += CLAIMS_REPEATED(1, 3, 11)) {
        memset(covered, 0, n + 1);
        char *beginning = strndup(s, to);
        weft__strbuf line = taken_apart(how, NULL, beginning, to, WHOLE, covered);
        check_covered(&how->style, beginning, to, covered);
        weft__strbuf_free(&line);
        free(beginning);
    }
    free(covered);
}

/* A template, and what all its turns are rendered with. */
typedef struct world {
    opened o;
    const weft__json *tools, *shown; /* shown: NULL where the template refuses tools */
    const char *text;                /* of the tools */
    char *asked;
    counted counts;
    size_t thoughts; /* turns with reasoning */
} world;

/* 0: it does not come back; 1: it does; 2: the template refuses the turn. */
static int comes_back(world *w, const spoken *t)
{
    char *all = rendered(&w->o, w->shown, t);
    taken got = {.calls = weft__json_new_array()};
    weft__answer_params how = {.style = w->o.style, .calls = 1, .reasoning = 1};
    weft__answer *a = NULL;
    int same = 2;
    if (all) {
        char *answer = answer_in(&w->o, w->asked, all, &how.prompt, &how.n_prompt);
        const size_t n = strlen(answer);
        assert_int_equal(weft__answer_create(&how, weft__json_copy(w->tools), &a, NULL), WEFT_OK);
        assert_int_equal(weft__answer_push(a, answer, n, take, &got, NULL), WEFT_OK);
        assert_int_equal(weft__answer_finish(a, take, &got, NULL), WEFT_OK);
        same = is_turn(&got, t, answer, &w->counts);
        w->thoughts += got.reasoning.len > 0;
        if (!same)
            printf("%s: %s\n  text %s\n  reasoning %s\n  names %s\n", w->o.as->file, answer,
                   got.text.data ? got.text.data : "-", got.reasoning.data ? got.reasoning.data : "-",
                   got.names.data ? got.names.data : "-");
        check_cuts(&how, w->text, answer, n);
        if (t->calls[0] == TRUNCATED && t->n_calls) check_truncated(&how, answer, n);
    }
    weft__answer_destroy(&a);
    weft__strbuf_free(&got.text);
    weft__strbuf_free(&got.reasoning);
    weft__strbuf_free(&got.names);
    weft__json_free(&got.calls);
    free(all);
    return same;
}

/* What a template does not write so that it could be read. */
static int is_lost(const world *w, const spoken *t)
{
    static const struct {
        const char *file, *arguments;
    } all[] = {{"MiniMax-M3", "null"}, /* left out */
               {"LFM2.5-8B", "\\\\"}}; /* strings as they are, in quotes as if they were Python's */
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t k = 0; k < t->n_calls; k++)
            if (strstr(w->o.as->file, all[i].file) && strstr(arguments[t->calls[k]], all[i].arguments)) return 1;
    /* Text stands in an open <think>; text beside calls in the channel of reasoning. */
    return *t->text && (strstr(w->o.as->file, "Nemotron-Nano-v2") || (t->n_calls && strstr(w->o.as->file, "gpt-oss")));
}

/* Turns without calls, of templates that know none, too; without tools, as conversations are without them. */
static void thoughts_come_back(void **state)
{
    (void)state;
    int failed = 0;
    size_t thinking = 0;
    for (size_t i = 0; i < n_list; i++) {
        world w = {.o = open_listed(&list[i])};
        static const spoken turns[] = {{"Good day.", "", {0}, 0}, {"Good\nday: <b>", "I think so.\n\nYes.", {0}, 0}};
        w.asked = rendered(&w.o, NULL, NULL);
        for (size_t k = 0; w.asked && k < 2; k++) failed += !is_lost(&w, &turns[k]) && !comes_back(&w, &turns[k]);
        thinking += w.thoughts > 0;
        if (getenv("WEFT_ANSWERS")) printf("%-60s %zu thoughts\n", list[i].file, w.thoughts);
        free(w.asked);
        close_listed(&w.o);
    }
    assert_int_equal(failed, 0);
    assert_true(thinking > 25); /* the others print no reasoning of a last turn without calls, or know none */
}

/* Each claim is made often of what a template shows, and never of what it does not. */
static void check_counts(const listed *l, const counted *n)
{
    const struct {
        char shown;
        size_t n, least;
    } all[] = {{'c', n->calls, 20}, {'p', n->parallel, 5}, {'t', n->with_text, 9}, {'r', n->with_reasoning, 9}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int shown = strchr(l->shows, all[i].shown) != NULL;
        if (shown ? all[i].n < all[i].least : all[i].n > 0)
            fail_msg("%s: %zu turns of kind '%c', and templates.txt says %s", l->file, all[i].n, all[i].shown,
                     l->shows);
    }
}

static int check_template(const listed *l, const weft__json *tools, const char *text)
{
    world w = {.o = open_listed(l), .tools = tools, .shown = tools, .text = text};
    int failed = 0;
    w.asked = rendered(&w.o, w.shown, NULL);
    if (!w.asked) w.asked = rendered(&w.o, w.shown = NULL, NULL);
    assert_non_null(w.asked);
    for (size_t k = 0; k < N_ARGUMENTS; k++) {
        const size_t other = (k + 7) % N_ARGUMENTS;
        const spoken turns[] = {{"", "", {k, other}, 1},
                                {"Let me see:\nso.", "", {k, other}, 1},
                                {"", "I think so.\n\nYes.", {k, other}, 1},
                                {"Let me see.", "I think so.", {k, other}, 2},
                                {"", "", {k, other}, 2}};
        for (size_t i = 0, tried = 0; i < 5; i++) {
            const spoken *t = &turns[(k + i) % 5];
            int same = is_lost(&w, t) ? 2 : comes_back(&w, t);
            failed += !same;
            tried += same == 1;
            if (tried == (k == TRUNCATED ? 5 : 1)) break;
        }
    }
    if (getenv("WEFT_ANSWERS"))
        printf("%-60s %zu calls, %zu parallel, %zu with text, %zu with reasoning\n", l->file, w.counts.calls,
               w.counts.parallel, w.counts.with_text, w.counts.with_reasoning);
    check_counts(l, &w.counts);
    free(w.asked);
    close_listed(&w.o);
    return failed;
}

static void turns_come_back(void **state)
{
    (void)state;
    weft__json *tools = all_tools();
    weft__strbuf text = {0};
    int failed = 0;
    weft__json_write(&text, tools, WEFT__JSON_COMPACT);
    for (size_t i = 0; i < n_list; i += CLAIMS_REPEATED(1, 2, 9)) failed += check_template(&list[i], tools, text.data);
    weft__strbuf_free(&text);
    weft__json_free(&tools);
    assert_int_equal(failed, 0);
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    if (!shared_path("templates%s", "")) return claims_need_reference("chat templates (templates/)");
    read_list();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_found_in_templates),
        cmocka_unit_test(turns_come_back),
        cmocka_unit_test(thoughts_come_back),
    };
    return claims_status(cmocka_run_group_tests_name("answers of real templates", tests, NULL, NULL));
}
