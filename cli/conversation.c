// SPDX-License-Identifier: Apache-2.0
/* conversation.c: see conversation.h. */
#include "conversation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/out_file.h"
#include "prompt.h"
#include "reply.h"

void conversation_free(conversation *c)
{
    weft__json_free(&c->messages);
    free(c->held);
    free(c->held_text);
    weft__strbuf_free(&c->thought);
    weft_grammar_free(&c->grammar);
    answer_form_source_free(&c->form);
}

static weft__json *new_message(const char *role, const char *text, size_t n)
{
    weft__json *m = weft__json_new_object();
    if (!m || !weft__json_set(m, "role", weft__json_new_string(role, strlen(role))) ||
        !weft__json_set(m, "content", weft__json_new_string(text, n)))
        weft__json_free(&m);
    return m;
}

int conversation_add(conversation *c, const char *role, const char *text, size_t n)
{
    weft__json *m = new_message(role, text, n);
    return m && weft__json_append(c->messages, m);
}

/* The messages but the last `drop`. */
static weft__json *copy_messages(const weft__json *from, size_t drop)
{
    weft__json *to = weft__json_new_array();
    size_t n = weft__json_size(from);
    for (size_t i = 0; to && i + drop < n; i++)
        if (!weft__json_append(to, weft__json_copy(weft__json_at(from, i)))) weft__json_free(&to);
    return to;
}

int conversation_ends_with(const conversation *c, const char *role)
{
    const size_t n = weft__json_size(c->messages);
    return n > 0 && weft__json_is(weft__json_get(weft__json_at(c->messages, n - 1), "role"), role);
}

int conversation_drop_last(conversation *c, const char *role)
{
    if (!conversation_ends_with(c, role)) return 0;
    weft__json *shorter = copy_messages(c->messages, 1);
    if (!shorter) return 0;
    weft__json_free(&c->messages);
    c->messages = shorter;
    return 1;
}

int conversation_reset(conversation *c, const char *system)
{
    weft__json_free(&c->messages);
    c->messages = weft__json_new_array();
    return c->messages && (!system || conversation_add(c, "system", system, strlen(system)));
}

static weft_status hold(conversation *c, const int32_t *ids, size_t n, weft_error *err)
{
    if (c->n_held + n > c->held_capacity) {
        size_t capacity = 2 * (c->n_held + n);
        int32_t *held = realloc(c->held, capacity * sizeof *held);
        if (!held) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %zu tokens", capacity);
        c->held = held;
        c->held_capacity = capacity;
    }
    if (n) memcpy(c->held + c->n_held, ids, n * sizeof *ids);
    c->n_held += n;
    return WEFT_OK;
}

/* Keeps the first n held tokens, as far as the session still can. */
static void keep(conversation *c, size_t n)
{
    c->n_held = (size_t)weft_session_trim(c->session, (int32_t)n);
}

void conversation_forget(conversation *c)
{
    keep(c, 0);
    free(c->held_text);
    c->held_text = NULL;
}

static weft_status tokenize(const weft_chat_prompt *prompt, size_t skip, int32_t **ids, size_t *n, weft_error *err)
{
    size_t length;
    weft_status st = WEFT_LIMIT;
    weft_chat_prompt_text(prompt, &length);
    *ids = NULL;
    *n = length - skip + 16; /* enough, but where a vocabulary has no blank, which may be three tokens then */
    for (int attempt = 0; st == WEFT_LIMIT && attempt < 2; attempt++) {
        size_t capacity = *n + 1; /* one for find_new_tokens */
        free(*ids);
        if (!(*ids = malloc(capacity * sizeof **ids))) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt");
        st = weft_chat_prompt_tokenize(prompt, skip, *ids, capacity - 1, n, err);
    }
    if (st) {
        free(*ids);
        *ids = NULL;
    }
    return st;
}

/* What has to be evaluated: *ids from *first on; the session holds everything before. At least one token is left, so
 * that there are logits to sample from. */
static weft_status find_new_tokens(conversation *c, const weft_chat_prompt *prompt, int32_t **ids, size_t *first,
                                   size_t *n, weft_error *err)
{
    size_t length;
    const char *text = weft_chat_prompt_text(prompt, &length);
    int continues =
        c->held_text && c->n_held > 0 && length > c->n_held_text && !memcmp(text, c->held_text, c->n_held_text);
    *first = 0;
    if (continues) {
        weft_status st = tokenize(prompt, c->n_held_text, ids, n, err);
        if (!st && c->lacking >= 0) {
            memmove(*ids + 1, *ids, *n * sizeof **ids);
            (*ids)[0] = c->lacking;
            ++*n;
        }
        if (st || *n > 0) return st;
        free(*ids);
    }
    weft_status st = tokenize(prompt, 0, ids, n, err);
    if (st) return st;
    if (*n == 0) {
        free(*ids);
        *ids = NULL;
        return weft_fail(err, WEFT_ARGUMENT, "the chat template renders nothing for this conversation");
    }
    size_t common = 0;
    while (common < c->n_held && common + 1 < *n && c->held[common] == (*ids)[common]) common++;
    keep(c, common);
    *first = c->n_held;
    return WEFT_OK;
}

/* Afterwards the held text is the prompt's and the answer's. */
static void remember_text(conversation *c, const weft_chat_prompt *prompt, const generate_result *r)
{
    size_t length;
    const char *text = weft_chat_prompt_text(prompt, &length);
    free(c->held_text);
    c->held_text = malloc(length + r->n_text + 1);
    if (!c->held_text) return;
    memcpy(c->held_text, text, length);
    if (r->n_text) memcpy(c->held_text + length, r->text, r->n_text);
    c->n_held_text = length + r->n_text;
}

/* What the session holds after an answer. All of a cancelled prompt, or the answer's last token, may not have been
 * evaluated: an end is the template's to write; a token of the text begins what is evaluated next. */
static void settle(conversation *c, const weft_chat_prompt *prompt, const generate_result *r,
                   const weft_tokenizer *tokenizer)
{
    size_t n_evaluated = (size_t)weft_session_n_tokens(c->session);
    size_t n_lacking = c->n_held > n_evaluated ? c->n_held - n_evaluated : 0;
    int32_t last = r->n_tokens > 0 ? r->tokens[r->n_tokens - 1] : -1;
    int cut = !strcmp(r->finish_reason, "length");
    c->n_held -= n_lacking;
    if (cut ? n_lacking > 1 : strcmp(r->finish_reason, "stop") || !weft_token_is_end(tokenizer, last)) return;
    remember_text(c, prompt, r);
    c->lacking = cut && n_lacking ? last : -1;
}

/* Adds what the answer says, and keeps what it thought. */
static weft_status add_answer(conversation *c, reply *r, weft_error *err)
{
    weft_status st = reply_end(r, err);
    if (st) return st;
    weft__json *m = new_message("assistant", r->said.data ? r->said.data : "", r->said.len);
    if (m && r->thought.len &&
        !weft__json_set(m, "reasoning_content", weft__json_new_string(r->thought.data, r->thought.len)))
        weft__json_free(&m);
    const int ok = m && weft__json_append(c->messages, m);
    weft__strbuf last = c->thought;
    c->thought = r->thought;
    r->thought = last;
    return ok ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for the answer");
}

weft_status conversation_check_form(conversation *c, weft_error *err)
{
    weft_grammar_free(&c->grammar);
    c->lead = 0;
    return answer_form_compile(&c->form, weft_model_tokenizer(c->model), NULL, &c->grammar, err);
}

/* Where answers have a form: the grammar of those to this prompt, and a matcher of it. */
static weft_status open_form(conversation *c, const weft_chat_prompt *prompt, weft_matcher **out, weft_error *err)
{
    const int32_t lead = answer_form_lead(&c->form, prompt);
    weft_status st = WEFT_OK;
    if (!c->grammar || c->lead != lead) {
        weft_grammar_free(&c->grammar);
        st = answer_form_compile(&c->form, weft_model_tokenizer(c->model), prompt, &c->grammar, err);
        c->lead = lead;
    }
    return st || !c->grammar ? st : weft_matcher_new(c->grammar, out, err);
}

weft_status conversation_answer(conversation *c, generate_request *q, const char *kwargs, const char **finish_reason,
                                weft_error *err)
{
    weft_chat_prompt *prompt = NULL;
    generate_result r = {0};
    weft__strbuf json = {0};
    reply told = {.on_part = c->on_part, .on_part_arg = c->on_part_arg};
    int32_t *ids = NULL;
    size_t first = 0, n = 0;
    weft__json_write(&json, c->messages, WEFT__JSON_COMPACT);
    weft_status st = json.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for the conversation") : WEFT_OK;
    if (!st) st = weft_chat_render(c->chat, json.data, NULL, kwargs, 1, &prompt, err);
    c->broken_off.status = WEFT_OK;
    if (!st) st = open_form(c, prompt, &q->matcher, err);
    if (!st) st = reply_begin(&told, c->chat, prompt, q->matcher ? c->lead : -1, err);
    if (!st) st = find_new_tokens(c, prompt, &ids, &first, &n, err);
    if (st) goto done;
    c->n_reused = (int32_t)c->n_held;
    c->n_prompt = (int32_t)(n - first);
    q->prompt = ids + first;
    q->n_prompt = c->n_prompt;
    q->session = c->session;
    q->sink = reply_put;
    q->sink_arg = &told;
    q->shows = reply_shows;
    q->continues = 0; /* an answer is a text of its own; what stands before it is the template's */
    free(c->held_text);
    c->held_text = NULL;
    if ((st = hold(c, ids + first, n - first, err)) || (st = generate(q, &r, err)) ||
        (st = hold(c, r.tokens, (size_t)r.n_tokens, err))) {
        keep(c, 0);
        goto done;
    }
    c->n_dropped = r.n_dropped;
    if (r.n_dropped) conversation_forget(c); /* what the session holds is no conversation's beginning */
    else settle(c, prompt, &r, weft_model_tokenizer(q->model));
    c->n_generated = r.n_tokens;
    c->prefill_ms = r.prefill_ms;
    c->decode_ms = r.decode_ms;
    *finish_reason = r.finish_reason;
    if (r.broken_off) answer_form_broken_off(c->form.form, "answer", &r, &c->broken_off);
    st = add_answer(c, &told, err);
done:
    weft_matcher_free(&q->matcher);
    reply_free(&told);
    generate_result_free(&r);
    free(ids);
    weft_chat_prompt_free(&prompt);
    weft__strbuf_free(&json);
    return st;
}

/* ---- files ---- */

static int is_message(const weft__json *m)
{
    const char *text;
    size_t n;
    return weft__json_string(weft__json_get(m, "role"), &text, &n) &&
           (weft__json_get(m, "content") || weft__json_get(m, "tool_calls"));
}

/* The messages of a record, {"messages": [...]}, or of a list of them, copied; NULL when it is neither. */
static weft__json *messages_of(const weft__json *record)
{
    const weft__json *all =
        weft__json_kind_of(record) == WEFT__JSON_ARRAY ? record : weft__json_get(record, "messages");
    if (weft__json_kind_of(all) != WEFT__JSON_ARRAY || !weft__json_size(all)) return NULL;
    for (size_t i = 0; i < weft__json_size(all); i++)
        if (!is_message(weft__json_at(all, i))) return NULL;
    return weft__json_copy(all);
}

/* Does the text go on behind its first line with another record? */
static int has_more(const char *text, size_t n)
{
    const char *newline = memchr(text, '\n', n);
    weft__json *first = NULL;
    if (!newline || weft__json_parse(text, (size_t)(newline - text), &first, NULL)) return 0;
    weft__json_free(&first);
    for (; newline < text + n; newline++)
        if (!strchr(" \t\r\n", *newline)) return 1;
    return 0;
}

/* The messages of the file, to be freed. */
static weft_status read_messages(const char *path, weft__json **out, weft_error *err)
{
    char *text = NULL;
    size_t n;
    weft__json *record = NULL;
    *out = NULL;
    weft_status st = read_text(path, &text, &n, err);
    if (!st && has_more(text, n))
        st = weft_fail(err, WEFT_FORMAT, "%s: has several records; put the one that is meant into a file of its own",
                       path);
    else if (!st && (st = weft__json_parse(text, n, &record, err))) weft_fail_within(err, st, "%s", path);
    free(text);
    if (st) return st;
    *out = messages_of(record);
    weft__json_free(&record);
    if (*out) return WEFT_OK;
    return weft_fail(
        err, WEFT_FORMAT,
        "%s: not a conversation: {\"messages\": [...]} is needed, with messages that have role and content", path);
}

/* Is what lies at `path` a file that holds something else than one conversation, a model say? */
static int holds_another(const char *path)
{
    struct stat s;
    char first[2] = "";
    FILE *f = stat(path, &s) || !S_ISREG(s.st_mode) ? NULL : fopen(path, "rb");
    if (!f) return 0; /* writing it will say what is wrong */
    const int n = fscanf(f, " %1s", first);
    fclose(f);
    if (n != 1) return 0;
    if (first[0] != '[' && first[0] != '{') return 1;
    weft__json *messages;
    const int is_another = read_messages(path, &messages, NULL) != WEFT_OK;
    weft__json_free(&messages);
    return is_another;
}

weft_status conversation_save(const conversation *c, const char *path, weft_error *err)
{
    weft__strbuf t = {0};
    if (!weft__json_size(c->messages)) return weft_fail(err, WEFT_ARGUMENT, "there is nothing to save yet");
    if (holds_another(path))
        return weft_fail(err, WEFT_ARGUMENT, "%s is no conversation, and would be written over; give another name",
                         path);
    weft__strbuf_puts(&t, "{\"messages\": ");
    weft__json_write(&t, c->messages, WEFT__JSON_SPACED);
    weft__strbuf_puts(&t, "}\n");
    weft_status st = t.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for the conversation") : WEFT_OK;
    if (!st) st = weft__out_file_put(path, t.data, t.len, err);
    weft__strbuf_free(&t);
    return st;
}

weft_status conversation_load(conversation *c, const char *path, weft_error *err)
{
    weft__json *messages;
    weft_status st = read_messages(path, &messages, err);
    if (st) return st;
    weft__json_free(&c->messages);
    c->messages = messages;
    return WEFT_OK;
}
