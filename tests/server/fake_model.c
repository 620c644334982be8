// SPDX-License-Identifier: Apache-2.0
/* fake_model.c: a double of a model for tests of the server: the functions of weft.h about models, tokenizers, chat
 * templates and grammars that the server calls. A chat template writes the tools, <|ROLE|>CONTENT of each message, and
 * <|assistant|> at the end; its answers have the format that the core finds in its text (--template TEXT). A GBNF
 * grammar must begin with "root", of other forms each has one text that is taken; one with each "slow" in it takes
 * 0.1 s, one with "held" as long as fake_hold does. All but the references of a grammar is constant once it is made. */
#include "fake_model.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "text/answer/answer.h"

enum { BOS = 256, EOS, USER, ASSISTANT, HELLO, WORLD };

struct weft_tokenizer {
    char texts[FAKE_VOCAB][24];
    size_t lengths[FAKE_VOCAB];
};
struct weft_model {
    weft_tokenizer tokenizer;
    uint64_t n_bytes;
    int lingers;
    char path[512];
};
/* Of a model that is loaded: its file, whose bytes are its weights. */
struct weft_file {
    uint64_t n_bytes;
};
struct weft_chat {
    char source[512];
};
struct weft_chat_prompt {
    const weft_chat *chat;
    weft__strbuf text;
    int32_t *ids;
    size_t n, capacity;
    int thinks_not;
};
struct weft_detok {
    const weft_tokenizer *tokenizer;
    uint32_t flags;
    char held[4], out[32];
    size_t n_held;
};
struct weft_chat_parser {
    weft__answer *answer;
    weft_chat_on_part *on_part;
    void *arg;
};
struct weft_grammar {
    atomic_int refs;
    size_t n; /* bytes of its source */
};

const char *weft_version(void)
{
    return "0.0.0-fake";
}

/* ---- model and tokenizer ---- */

weft_model *fake_model_new(void)
{
    static const char *const special[] = {"<s>", "</s>", "<|user|>", "<|assistant|>", "hello", " world"};
    weft_model *m = weft__alloc_zero(1, sizeof *m);
    if (!m) abort();
    for (int i = 0; i < FAKE_VOCAB; i++) {
        if (i < 256) m->tokenizer.texts[i][0] = (char)i;
        else if (i <= WORLD) snprintf(m->tokenizer.texts[i], sizeof m->tokenizer.texts[i], "%s", special[i - 256]);
        else snprintf(m->tokenizer.texts[i], sizeof m->tokenizer.texts[i], "<%d>", i);
        m->tokenizer.lengths[i] = i < 256 ? 1 : strlen(m->tokenizer.texts[i]);
    }
    m->tokenizer.texts[127][0] = '~'; /* as vocabularies have a letter both as a token and as a byte */
    return m;
}

const char *fake_model_path(const weft_model *model)
{
    return model->path;
}

uint64_t fake_model_bytes(const weft_model *model)
{
    return model->n_bytes;
}

int fake_model_lingers(const weft_model *model)
{
    return model->lingers;
}

/* ---- models that the server loads ---- */

void weft_model_params_init(weft_model_params *params, uint32_t size)
{
    (void)size;
    *params = (weft_model_params){.size = sizeof *params};
}

weft_status weft_resolve_model(const char *name, char *path, size_t capacity, weft_error *err)
{
    (void)err;
    snprintf(path, capacity, "%s", name);
    return WEFT_OK;
}

weft_status weft_file_open(const char *path, weft_file **out, weft_error *err)
{
    struct stat s;
    *out = NULL;
    if (stat(path, &s)) return weft_fail(err, WEFT_NOT_FOUND, "%s: there is no such file", path);
    if (!(*out = weft__alloc_zero(1, sizeof **out))) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a file");
    (*out)->n_bytes = (uint64_t)s.st_size;
    return WEFT_OK;
}

void weft_file_close(weft_file **file)
{
    weft__free(*file);
    *file = NULL;
}

int64_t weft_file_n_tensors(const weft_file *file)
{
    (void)file;
    return 1;
}

weft_status weft_file_tensor(const weft_file *file, int64_t index, weft_tensor_info *out, weft_error *err)
{
    (void)index, (void)err;
    *out = (weft_tensor_info){.name = "all", .n_bytes = file->n_bytes};
    return WEFT_OK;
}

/* One whose file begins with "broken" cannot be read; one with "held" takes as long as fake_hold does, and so does the
 * end of one with "lingers". */
weft_status weft_model_open(const char *path, const weft_model_params *params, weft_model **out, weft_error *err)
{
    char head[8] = "";
    weft_file *file;
    *out = NULL;
    weft_status st = weft_file_open(path, &file, err);
    if (st) return st;
    FILE *f = fopen(path, "r");
    if (f && !fgets(head, sizeof head, f)) head[0] = 0;
    if (f) fclose(f);
    const char *hold = getenv("WEFT_FAKE_HOLD");
    for (int i = 0; !st && !params->outline && !strncmp(head, "held", 4) && hold && !access(hold, F_OK); i++) {
        if (params->progress && params->progress(params->progress_arg, "weights", 0.5))
            st = weft_fail(err, WEFT_CANCELLED, "cancelled while packing");
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    if (!st && !strncmp(head, "broken", 6)) st = weft_fail(err, WEFT_FORMAT, "%s: it is broken", path);
    if (!st) {
        *out = fake_model_new();
        (*out)->n_bytes = file->n_bytes;
        (*out)->lingers = !strncmp(head, "lingers", 7);
        snprintf((*out)->path, sizeof(*out)->path, "%s", path);
    }
    weft_file_close(&file);
    return st;
}

void weft_model_close(weft_model **model)
{
    weft__free(*model);
    *model = NULL;
}

weft_status weft_model_describe(const weft_model *model, weft_model_info *out, weft_error *err)
{
    (void)model, (void)err;
    *out = (weft_model_info){.size = sizeof *out,
                             .n_vocab = FAKE_VOCAB,
                             .n_ctx_train = FAKE_CTX,
                             .d_model = FAKE_EMBEDDING,
                             .n_params = 1000,
                             .n_bytes = 4000};
    strcpy(out->name, "fake");
    return WEFT_OK;
}

const weft_file *weft_model_file(const weft_model *model)
{
    (void)model;
    return NULL;
}

int64_t weft_file_n_meta(const weft_file *file)
{
    (void)file;
    return 0;
}

weft_status weft_file_meta(const weft_file *file, int64_t index, weft_meta_info *out, weft_error *err)
{
    (void)file, (void)index, (void)out;
    return weft_fail(err, WEFT_NOT_FOUND, "no metadata");
}

weft_status weft_file_meta_json(const weft_file *file, int64_t index, int64_t max_items, char *out, size_t capacity,
                                size_t *length, weft_error *err)
{
    (void)file, (void)index, (void)max_items, (void)out, (void)capacity, (void)length;
    return weft_fail(err, WEFT_NOT_FOUND, "no metadata");
}

const weft_tokenizer *weft_model_tokenizer(const weft_model *model)
{
    return &model->tokenizer;
}

int32_t weft_tokenizer_n_vocab(const weft_tokenizer *t)
{
    (void)t;
    return FAKE_VOCAB;
}

weft_status weft_tokenize(const weft_tokenizer *t, const char *text, size_t length, uint32_t flags, int32_t *ids,
                          size_t capacity, size_t *n, weft_error *err)
{
    *n = 0;
    if (length >= 6 && !memcmp(text, "[held]", 6)) fake_hold();
    if (flags & WEFT_TOKENIZE_BOS) {
        if (*n < capacity) ids[*n] = BOS;
        (*n)++;
    }
    for (size_t i = 0; i < length;) {
        int32_t id = (unsigned char)text[i];
        for (int k = BOS; k <= WORLD; k++)
            if ((k >= HELLO || flags & WEFT_TOKENIZE_SPECIAL) && length - i >= t->lengths[k] &&
                !memcmp(text + i, t->texts[k], t->lengths[k]))
                id = k;
        if (*n < capacity) ids[*n] = id;
        (*n)++;
        i += t->lengths[id];
    }
    return *n > capacity ? weft_fail(err, WEFT_LIMIT, "%zu tokens do not fit in %zu places", *n, capacity) : WEFT_OK;
}

const char *weft_token_bytes(const weft_tokenizer *t, int32_t id, size_t *length)
{
    if (id < 0 || id >= FAKE_VOCAB) return NULL;
    *length = t->lengths[id];
    return t->texts[id];
}

const char *weft_token_piece(const weft_tokenizer *t, int32_t id, size_t *length)
{
    return weft_token_bytes(t, id, length);
}

int weft_token_is_end(const weft_tokenizer *t, int32_t id)
{
    (void)t;
    return id == EOS;
}

weft_status weft_detok_new(const weft_tokenizer *t, uint32_t flags, weft_detok **out, weft_error *err)
{
    *out = weft__alloc_zero(1, sizeof **out);
    if (!*out) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a detokenizer");
    (*out)->tokenizer = t;
    (*out)->flags = flags;
    return WEFT_OK;
}

void weft_detok_free(weft_detok **detok)
{
    weft__free(*detok);
    *detok = NULL;
}

weft_status weft_detok_push(weft_detok *d, int32_t id, const char **text, size_t *length, weft_error *err)
{
    *text = d->out;
    *length = 0;
    if (id == FAKE_BROKEN) return weft_fail(err, WEFT_INTERNAL, "id %d has no text, as it was told", id);
    if (id >= BOS) {
        if (id < HELLO && !(d->flags & WEFT_DETOK_SPECIAL)) return WEFT_OK;
        *text = d->tokenizer->texts[id];
        *length = d->tokenizer->lengths[id];
        return WEFT_OK;
    }
    d->held[d->n_held++] = (char)id;
    int wanted = weft__utf8_length((unsigned char)d->held[0]),
        bad = wanted == 0 || (d->n_held > 1 && (id & 0xc0) != 0x80);
    if (!bad && d->n_held < (size_t)wanted) return WEFT_OK;
    *length = bad ? 3 : d->n_held;
    memcpy(d->out, bad ? "\xef\xbf\xbd" : d->held, *length);
    d->n_held = 0;
    return WEFT_OK;
}

weft_status weft_detok_finish(weft_detok *d, const char **text, size_t *length, weft_error *err)
{
    (void)err;
    *text = "\xef\xbf\xbd";
    *length = d->n_held ? 3 : 0;
    d->n_held = 0;
    return WEFT_OK;
}

/* ---- chat ---- */

weft_status weft_chat_open(const weft_model *model, const char *source, size_t length, weft_chat **out, weft_error *err)
{
    (void)model;
    *out = weft__alloc_zero(1, sizeof **out);
    if (!*out) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a chat template");
    snprintf((*out)->source, sizeof(*out)->source, "%.*s", (int)length, source ? source : "");
    return WEFT_OK;
}

weft_status weft_chat_open_for_tools(const weft_model *model, const weft_chat *chat, weft_chat **out, weft_error *err)
{
    (void)model, (void)chat, (void)err;
    *out = NULL; /* weft_chat_reads has them all */
    return WEFT_OK;
}

void weft_chat_close(weft_chat **chat)
{
    weft__free(*chat);
    *chat = NULL;
}

const char *weft_chat_source(const weft_chat *chat, size_t *length)
{
    *length = strlen(chat->source);
    return chat->source;
}

int weft_chat_reads(const weft_chat *chat, const char *variable)
{
    (void)chat;
    return !strcmp(variable, "reasoning_effort") || !strcmp(variable, "tools") || !strcmp(variable, "x");
}

static int add_ids(weft_chat_prompt *p, int32_t special, const char *text, size_t n)
{
    if (!weft__grow(&p->ids, &p->capacity, p->n + n + 1, sizeof *p->ids)) return 0;
    if (special) p->ids[p->n++] = special;
    for (size_t i = 0; i < n; i++) p->ids[p->n++] = (unsigned char)text[i]; /* never special */
    weft__strbuf_puts(&p->text, special == USER ? "<|user|>" : special ? "<|assistant|>" : "");
    weft__strbuf_put(&p->text, text, n);
    return !p->text.failed;
}

weft_status weft_chat_render(const weft_chat *chat, const char *messages, const char *tools, const char *kwargs,
                             int add_generation_prompt, weft_chat_prompt **out, weft_error *err)
{
    weft__json *all = NULL;
    *out = NULL;
    fake_count_render();
    weft_status st = weft__json_parse(messages, strlen(messages), &all, err);
    if (st) return st;
    weft_chat_prompt *p = weft__alloc_zero(1, sizeof *p);
    if (p) p->chat = chat, p->thinks_not = kwargs && strstr(kwargs, "\"enable_thinking\":false");
    int ok = p && (!tools || add_ids(p, USER, tools, strlen(tools)));
    if (ok && chat->source[0] == '#') ok = add_ids(p, USER, chat->source, strlen(chat->source)); /* so that it shows */
    for (size_t i = 0; ok && i < weft__json_size(all); i++) {
        const char *role = "", *content = "";
        size_t n;
        weft__json_string(weft__json_get(weft__json_at(all, i), "role"), &role, &n);
        weft__json_string(weft__json_get(weft__json_at(all, i), "content"), &content, &n);
        if (!strcmp(role, "function")) st = weft_fail(err, WEFT_ARGUMENT, "the template has no role 'function'");
        ok = add_ids(p, strcmp(role, "assistant") ? USER : ASSISTANT, content, n);
    }
    if (ok && add_generation_prompt && add_generation_prompt != WEFT_CHAT_CONTINUE) ok = add_ids(p, ASSISTANT, "", 0);
    weft__json_free(&all);
    if (!ok) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt");
    if (st) weft_chat_prompt_free(&p);
    *out = p;
    return st;
}

void weft_chat_prompt_free(weft_chat_prompt **prompt)
{
    if (!*prompt) return;
    weft__strbuf_free(&(*prompt)->text);
    weft__free((*prompt)->ids);
    weft__free(*prompt);
    *prompt = NULL;
}

const char *weft_chat_prompt_text(const weft_chat_prompt *prompt, size_t *length)
{
    *length = prompt->text.len;
    return prompt->text.data ? prompt->text.data : "";
}

weft_status weft_chat_prompt_tokenize(const weft_chat_prompt *prompt, size_t skip, int32_t *ids, size_t capacity,
                                      size_t *n, weft_error *err)
{
    (void)skip;
    *n = prompt->n;
    if (*n > capacity) return weft_fail(err, WEFT_LIMIT, "too many tokens");
    memcpy(ids, prompt->ids, *n * sizeof *ids);
    return WEFT_OK;
}

/* ---- answers ---- */

static weft__answer_style style_of(const weft_chat *chat)
{
    return weft__answer_style_of(chat->source, strlen(chat->source), 1);
}

int weft_chat_reasons(const weft_chat *chat)
{
    return style_of(chat).reasoning != NULL;
}

weft_status weft_chat_parser_new(const weft_chat_prompt *prompt, const weft_chat_parser_params *params,
                                 weft_chat_parser **out, weft_error *err)
{
    const weft__answer_params p = {.style = style_of(prompt->chat),
                                   .calls = params->calls,
                                   .reasoning = params->reasoning,
                                   .form = params->form,
                                   .prompt = prompt->text.data,
                                   .n_prompt = prompt->text.len};
    weft__json *tools = NULL;
    *out = weft__alloc_zero(1, sizeof **out);
    if (!*out) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a parser");
    weft_status st = params->tools ? weft__json_parse(params->tools, strlen(params->tools), &tools, err) : WEFT_OK;
    if (!st) st = weft__answer_create(&p, tools, &(*out)->answer, err);
    if (st) weft_chat_parser_free(out);
    return st;
}

void weft_chat_parser_free(weft_chat_parser **parser)
{
    if (*parser && (*parser)->answer) weft__answer_destroy(&(*parser)->answer);
    weft__free(*parser);
    *parser = NULL;
}

int weft_chat_parser_shows(const weft_chat_parser *parser, int32_t token)
{
    (void)parser;
    return token == USER; /* a marker of no format, that it be seen */
}

int weft_chat_parser_thinks(const weft_chat_parser *parser)
{
    return weft__answer_reasons(parser->answer);
}

void weft_chat_parser_end_thinking(weft_chat_parser *parser)
{
    weft__answer_end_reasoning(parser->answer);
}

weft_status weft_chat_thinking_end(const weft_chat_prompt *prompt, const char *choice, int32_t *ids, size_t capacity,
                                   size_t *n, weft_error *err)
{
    static const char end[] = "</think>\n\n";
    (void)prompt, (void)choice, (void)capacity, (void)err;
    *n = sizeof end - 1;
    for (size_t i = 0; i < *n; i++) ids[i] = end[i];
    return WEFT_OK;
}

static int tell(void *arg, const weft_chat_part *part, size_t from, size_t to)
{
    const weft_chat_parser *parser = arg;
    (void)from, (void)to;
    return parser->on_part(parser->arg, part);
}

weft_status weft_chat_parser_push(weft_chat_parser *parser, const char *text, size_t length, weft_chat_on_part *on_part,
                                  void *arg, weft_error *err)
{
    parser->on_part = on_part;
    parser->arg = arg;
    return weft__answer_push(parser->answer, text, length, tell, parser, err);
}

weft_status weft_chat_parser_finish(weft_chat_parser *parser, weft_chat_on_part *on_part, void *arg, weft_error *err)
{
    parser->on_part = on_part;
    parser->arg = arg;
    return weft__answer_finish(parser->answer, tell, parser, err);
}

/* ---- grammars ---- */

void fake_hold(void)
{
    for (const char *path = getenv("WEFT_FAKE_HOLD"); path && access(path, F_OK) == 0;)
        nanosleep(&(struct timespec){0, 5000000}, NULL);
}

weft_status weft_grammar_new(const weft_tokenizer *t, uint32_t kind, const char *source, size_t length,
                             weft_grammar **out, weft_error *err)
{
    (void)t, *out = NULL;
    if (kind == WEFT_GRAMMAR_SCHEMA && memmem(source, length, "\"contains\"", 10))
        return weft_fail(err, WEFT_UNSUPPORTED, "schema: #/contains: it is not known");
    if (kind == WEFT_GRAMMAR_SCHEMA) kind = WEFT_GRAMMAR_JSON_VALUE;
    if (kind == WEFT_GRAMMAR_GBNF && !(length > 4 && !memcmp(source, "root", 4)))
        return weft_fail(err, WEFT_ARGUMENT, "line 1: there is no rule 'root'");
    for (const char *s = source; kind == WEFT_GRAMMAR_GBNF && (s = strstr(s, "slow")); s++)
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    if (kind == WEFT_GRAMMAR_GBNF && strstr(source, "held")) fake_hold();
    static const struct {
        const char *taken, *otherwise;
    } forms[] = {
        [WEFT_GRAMMAR_REGEX] = {"a+", "regex: near byte 5: no"},
        [WEFT_GRAMMAR_CHOICES] = {"[\"a\"]", "choices: #/1: must be a string"},
        [WEFT_GRAMMAR_LARK] = {"start: \"a\"", "grammar: line 1: a rule must begin with its name and ':'"},
    };
    if (kind > WEFT_GRAMMAR_JSON_VALUE &&
        (strlen(forms[kind].taken) != length || memcmp(source, forms[kind].taken, length) != 0))
        return weft_fail(err, WEFT_ARGUMENT, "%s", forms[kind].otherwise);
    *out = weft__alloc_zero(1, sizeof **out);
    if (!*out) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    atomic_init(&(*out)->refs, 1);
    (*out)->n = length;
    return WEFT_OK;
}

/* A thousand times as much as its source, as it may be. */
uint64_t weft_grammar_bytes(const weft_grammar *grammar)
{
    return 1000 * (uint64_t)grammar->n;
}

int32_t weft_chat_form_lead(const weft_chat_prompt *prompt)
{
    return weft_chat_reasons(prompt->chat) && !prompt->thinks_not;
}

weft_status weft_chat_form(const weft_chat_prompt *prompt, uint32_t kind, const char *source, size_t length,
                           weft_grammar **out, weft_error *err)
{
    return prompt ? weft_grammar_new(NULL, kind, source, length, out, err) : WEFT_ARGUMENT;
}

weft_status weft_grammar_lazy(const weft_tokenizer *t, const weft_grammar *grammar, const weft_trigger *triggers,
                              size_t n, weft_grammar **out, weft_error *err)
{
    (void)t, *out = NULL;
    for (size_t i = 0; i < n; i++)
        if (triggers[i].kind == WEFT_TRIGGER_WORD && !strncmp(triggers[i].text, "refused", triggers[i].length))
            return weft_fail(err, WEFT_ARGUMENT, "grammar: no text of it begins with the trigger 'refused'");
    *out = weft_grammar_retain(grammar);
    return WEFT_OK;
}

weft_status weft_chat_grammar(const weft_chat_prompt *prompt, const char *tools, const char *choice, int32_t parallel,
                              weft_grammar **out, weft_error *err)
{
    (void)prompt, (void)parallel, *out = NULL;
    if (strstr(tools, "\"contains\"") && (strcmp(choice, "auto") || strstr(tools, "\"strict\":true")))
        return weft_fail(err, WEFT_UNSUPPORTED, "tools[0].function.parameters: schema: #/contains: it is not known");
    return weft_grammar_new(NULL, WEFT_GRAMMAR_JSON_VALUE, NULL, 0, out, err);
}

weft_status weft_chat_form_or_calls(const weft_chat_prompt *prompt, uint32_t kind, const char *source, size_t length,
                                    const char *tools, int32_t parallel, weft_grammar **out, weft_error *err)
{
    weft_status st = weft_chat_grammar(prompt, tools, "auto", parallel, out, err);
    weft_grammar_free(out);
    return st ? st : weft_grammar_new(NULL, kind, source, length, out, err);
}

void weft_chat_prompt_end_thinking(weft_chat_prompt *prompt)
{
    prompt->thinks_not = 1;
}

int weft_chat_prompt_ends_thinking(const weft_chat_prompt *prompt)
{
    return prompt->thinks_not;
}

weft_grammar *weft_grammar_retain(const weft_grammar *grammar)
{
    weft_grammar *g = (weft_grammar *)grammar;
    if (g) atomic_fetch_add(&g->refs, 1);
    return g;
}

void weft_grammar_free(weft_grammar **grammar)
{
    if (*grammar && atomic_fetch_sub(&(*grammar)->refs, 1) == 1) weft__free(*grammar);
    *grammar = NULL;
}
