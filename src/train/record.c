// SPDX-License-Identifier: Apache-2.0
/* record.c: see record.h. Stateless. */
#include "train/record.h"

#include <math.h>
#include <string.h>

#include "text/chat/content.h"
#include "train/record_forms.h"

static const char *const NAMES[] = {"text", "chat", "completion", "pair", "contrast"};

const char *weft__train_record_name(weft__train_record_kind kind)
{
    return NAMES[kind];
}

/* ---- checks: `where` names the value in messages ---- */

static int is_string(const weft__json *v)
{
    return weft__json_kind_of(v) == WEFT__JSON_STRING;
}

/* A picture that is left out would make a question of nothing. */
static weft_status check_parts(const weft__json *parts, const char *where, size_t i, weft_error *err)
{
    size_t part = 0;
    if (!weft__chat_content_check(parts, &part)) return WEFT_OK;
    return weft_fail(err, WEFT_UNSUPPORTED,
                     "%s[%zu].content[%zu] is no {\"type\": \"text\", \"text\": \"...\"} and no refusal, and nothing "
                     "else is learned",
                     where, i, part);
}

/* As in OpenAI's records: absent, 0 or 1. */
static int is_weight(const weft__json *v)
{
    double weight;
    return !v || weft__json_is_null(v) || (weft__json_double(v, &weight) && (weight == 0 || weight == 1));
}

static weft_status check_message(const weft__json *m, const char *where, size_t i, weft_error *err)
{
    const weft__json *content = weft__json_get(m, "content");
    int kind = weft__json_kind_of(content);
    if (weft__json_kind_of(m) != WEFT__JSON_OBJECT)
        return weft_fail(err, WEFT_FORMAT, "%s[%zu] is no object {\"role\", \"content\"}", where, i);
    if (!is_string(weft__json_get(m, "role")))
        return weft_fail(err, WEFT_FORMAT, "%s[%zu] has no \"role\" that is a string", where, i);
    if (!is_weight(weft__json_get(m, "weight")))
        return weft_fail(err, WEFT_FORMAT, "%s[%zu].weight is neither 0 (not learned) nor 1", where, i);
    if (kind == WEFT__JSON_ARRAY) return check_parts(content, where, i, err);
    if (kind == WEFT__JSON_STRING) return WEFT_OK;
    if ((kind == -1 || kind == WEFT__JSON_NULL) &&
        (weft__json_size(weft__json_get(m, "tool_calls")) || weft__json_size(weft__json_get(m, "function_call"))))
        return WEFT_OK;
    return weft_fail(err, WEFT_FORMAT,
                     "%s[%zu] has neither \"content\" (a string or a list of parts) nor \"tool_calls\"", where, i);
}

static weft_status check_messages(const weft__json *list, const char *where, weft_error *err)
{
    size_t n = weft__json_size(list);
    if (weft__json_kind_of(list) != WEFT__JSON_ARRAY || !n)
        return weft_fail(err, WEFT_FORMAT, "\"%s\" is no list of messages, or an empty one", where);
    for (size_t i = 0; i < n; i++) {
        weft_status st = check_message(weft__json_at(list, i), where, i, err);
        if (st) return st;
    }
    return WEFT_OK;
}

int weft__train_is_assistant(const weft__json *m)
{
    return weft__json_is(weft__json_get(m, "role"), "assistant");
}

int weft__train_is_learned(const weft__json *m)
{
    double weight;
    return weft__train_is_assistant(m) && !(weft__json_double(weft__json_get(m, "weight"), &weight) && weight == 0);
}

/* A message, or its text, without a word, a call or a thought. */
static int is_silent(const weft__json *m)
{
    const weft__json *content = is_string(m) ? m : weft__json_get(m, "content");
    if (!is_string(m) && (!weft__train_is_learned(m) || weft__json_size(weft__json_get(m, "tool_calls")) ||
                          weft__json_size(weft__json_get(m, "function_call"))))
        return 0;
    return is_string(content) ? weft__json_is(content, "") : weft__json_size(content) == 0;
}

int weft__train_says_nothing(const weft__train_record *r)
{
    const weft__json *v = r->kind == WEFT__TRAIN_RECORD_CHAT ? r->messages : r->answer;
    if (r->kind == WEFT__TRAIN_RECORD_TEXT || r->kind == WEFT__TRAIN_RECORD_CONTRAST) return 0;
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY) return is_silent(v);
    for (size_t i = 0; i < weft__json_size(v); i++)
        if (is_silent(weft__json_at(v, i))) return 1;
    return 0;
}

static weft_status check_chat(const weft__train_record *r, weft_error *err)
{
    const char *where = r->made ? "conversations" : "messages";
    weft_status st = check_messages(r->messages, where, err);
    if (st) return st;
    for (size_t i = 0; i < weft__json_size(r->messages); i++)
        if (weft__train_is_assistant(weft__json_at(r->messages, i))) return WEFT_OK;
    return weft_fail(err, WEFT_FORMAT, "\"%s\" has no turn of the assistant: there is nothing to learn", where);
}

static weft_status check_prompt(const weft__json *v, weft_error *err)
{
    return is_string(v) ? WEFT_OK : check_messages(v, "prompt", err);
}

/* An answer to a prompt: its text, a message, or messages that begin with the assistant's. */
static weft_status check_answer(const weft__json *v, const char *where, weft_error *err)
{
    if (is_string(v)) return WEFT_OK;
    if (weft__json_kind_of(v) != WEFT__JSON_ARRAY && weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        return weft_fail(err, WEFT_FORMAT, "\"%s\" is neither a string nor a message nor a list of messages", where);
    weft_status st =
        weft__json_kind_of(v) == WEFT__JSON_OBJECT ? check_message(v, where, 0, err) : check_messages(v, where, err);
    const weft__json *first = weft__json_kind_of(v) == WEFT__JSON_OBJECT ? v : weft__json_at(v, 0);
    if (!st && !weft__train_is_assistant(first))
        st = weft_fail(err, WEFT_FORMAT, "\"%s\" does not begin with a turn of the assistant", where);
    return st;
}

/* ---- pairs whose prompt stands in both answers ---- */

static int is_list(const weft__json *v)
{
    return weft__json_kind_of(v) == WEFT__JSON_ARRAY;
}

/* TRL's rule: such is a pair without a prompt; and one of conversations whose prompt is a string, which is there for
 * readers. Answers that begin with the assistant's turn go on from that string. */
static int shares_prompt(const weft__train_record *r)
{
    if (!r->prompt) return 1;
    return is_string(r->prompt) && is_list(r->answer) && is_list(r->rejected) &&
           !weft__train_is_assistant(weft__json_at(r->answer, 0)) &&
           !weft__train_is_assistant(weft__json_at(r->rejected, 0));
}

/* What both begin with is the prompt, but for the last message of the shorter one: that is an answer. */
static size_t count_shared(const weft__json *a, const weft__json *b)
{
    size_t n = weft__json_size(a) < weft__json_size(b) ? weft__json_size(a) : weft__json_size(b), i = 0;
    while (i + 1 < n && weft__json_equal(weft__json_at(a, i), weft__json_at(b, i))) i++;
    return i;
}

static weft_status check_first_answer(const weft__json *list, const char *where, size_t i, weft_error *err)
{
    if (weft__train_is_assistant(weft__json_at(list, i))) return WEFT_OK;
    return weft_fail(err, WEFT_FORMAT,
                     "%s[%zu], where \"chosen\" and \"rejected\" part, is not the assistant's: up to an answer they "
                     "must be the same",
                     where, i);
}

static weft_status share_prompt(weft__train_record *r, weft_error *err)
{
    if (!is_list(r->answer) || !is_list(r->rejected))
        return weft_fail(
            err, WEFT_FORMAT,
            "the record has no \"prompt\"; give one, or make \"chosen\" and \"rejected\" lists of messages that both "
            "begin with it");
    weft_status st = check_messages(r->answer, "chosen", err);
    if (!st) st = check_messages(r->rejected, "rejected", err);
    if (st) return st;
    r->prompt = NULL;
    r->n_shared = count_shared(r->answer, r->rejected);
    if (!r->n_shared)
        return weft_fail(err, WEFT_FORMAT,
                         "\"chosen\" and \"rejected\" have no message in common before their answers; let both begin "
                         "with the prompt, "
                         "or give it as \"prompt\"");
    st = check_first_answer(r->answer, "chosen", r->n_shared, err);
    return st ? st : check_first_answer(r->rejected, "rejected", r->n_shared, err);
}

static weft_status check_pair(weft__train_record *r, weft_error *err)
{
    if (r->answer && r->rejected && shares_prompt(r)) return share_prompt(r, err);
    weft_status st = check_prompt(r->prompt, err);
    if (!st) st = check_answer(r->answer, "chosen", err);
    return st ? st : check_answer(r->rejected, "rejected", err);
}

/* ---- which kind ---- */

/* Tables of records of several kinds, written as JSON, have null for the columns that are another kind's. */
static const weft__json *member(const weft__train_record *r, const char *key)
{
    const weft__json *v = weft__json_get(r->root, key);
    return weft__json_is_null(v) ? NULL : v;
}

int weft__train_is_conversation(const weft__json *v)
{
    return weft__json_kind_of(v) == WEFT__JSON_ARRAY && weft__json_get(weft__json_at(v, 0), "role");
}

/* "instruction" is the prompt; its answer is "output", or those of a pair. */
static weft_status take_instruction(weft__train_record *r, weft_error *err)
{
    weft_status st = weft__train_record_of_instruction(r->root, &r->made, err);
    r->prompt = r->made;
    r->answer = member(r, "output");
    r->kind = r->answer ? WEFT__TRAIN_RECORD_COMPLETION : WEFT__TRAIN_RECORD_PAIR;
    if (!r->answer) r->answer = member(r, "chosen");
    r->rejected = member(r, "rejected");
    if (!st && !r->answer)
        st = weft_fail(err, WEFT_FORMAT,
                       "beside \"instruction\" there is no \"output\" (or \"chosen\" and \"rejected\")");
    return st;
}

/* ---- texts to tell apart ---- */

static weft_status check_embedded(const weft__json *v, const char *name, weft_error *err)
{
    const char *s;
    size_t n;
    if (!weft__json_string(v, &s, &n)) return weft_fail(err, WEFT_FORMAT, "\"%s\" is no string", name);
    if (strspn(s, " \t\r\n") == n) return weft_fail(err, WEFT_FORMAT, "\"%s\" is blank", name);
    return WEFT_OK;
}

static weft_status check_contrast(const weft__train_record *r, weft_error *err)
{
    const weft__json *all = r->rejected;
    weft_status st = check_embedded(r->prompt, "query", err);
    if (!st) st = check_embedded(r->answer, "positive", err);
    if (!st && all && is_string(all)) return check_embedded(all, "negative", err);
    if (!st && all && !is_list(all)) return weft_fail(err, WEFT_FORMAT, "\"negatives\" is no list of texts");
    for (size_t i = 0; !st && i < weft__json_size(all); i++)
        st = check_embedded(weft__json_at(all, i), "negatives", err);
    return st;
}

/* 1: it is such a record, and taken. */
static int take_contrast(weft__train_record *r)
{
    const weft__json *query = member(r, "query"), *negatives = member(r, "negatives");
    if (!query) query = member(r, "anchor");
    if (!query || !member(r, "positive")) return 0;
    r->kind = WEFT__TRAIN_RECORD_CONTRAST;
    r->prompt = query;
    r->answer = member(r, "positive");
    r->rejected = negatives ? negatives : member(r, "negative");
    return 1;
}

static weft_status take_conversations(weft__train_record *r, weft_error *err)
{
    weft_status st = weft__train_record_of_conversations(r->root, &r->made, err);
    r->messages = r->made;
    r->kind = WEFT__TRAIN_RECORD_CHAT;
    return st;
}

static weft_status classify(weft__train_record *r, weft_error *err)
{
    const weft__json *completion = member(r, "completion"), *chosen = member(r, "chosen");
    if (weft__train_is_conversation(r->root)) {
        r->messages = r->root;
        r->kind = WEFT__TRAIN_RECORD_CHAT;
        return WEFT_OK;
    }
    if (take_contrast(r)) return WEFT_OK;
    r->text = member(r, "text");
    r->messages = member(r, "messages");
    r->tools = member(r, "tools");
    r->prompt = member(r, "prompt");
    r->rejected = member(r, "rejected");
    int pair = chosen != NULL || r->rejected != NULL, ours = r->messages || completion;
    int instructs = !ours && member(r, "instruction") && (pair || !r->text || member(r, "output"));
    int converses = !r->messages && member(r, "conversations");
    if (instructs) r->text = NULL; /* the same once more */
    int n = (r->text != NULL) + (r->messages != NULL) + (completion != NULL) + converses + (instructs || pair);
    if (n > 1)
        return weft_fail(
            err, WEFT_FORMAT,
            "the record is of more than one kind: it has several of \"text\", \"messages\", \"completion\", "
            "\"conversations\", \"instruction\" and \"chosen\"");
    if (instructs) return take_instruction(r, err);
    if (converses) return take_conversations(r, err);
    if (r->text) r->kind = WEFT__TRAIN_RECORD_TEXT;
    else if (r->messages) r->kind = WEFT__TRAIN_RECORD_CHAT;
    else if (completion) r->kind = WEFT__TRAIN_RECORD_COMPLETION;
    else if (n) r->kind = WEFT__TRAIN_RECORD_PAIR;
    else
        return weft_fail(
            err, WEFT_FORMAT,
            "the record is of no known kind: {\"text\"}, {\"messages\"}, {\"prompt\", \"completion\"}, "
            "{\"prompt\", \"chosen\", \"rejected\"}, {\"conversations\"}, {\"instruction\", \"output\"} or, to be "
            "told apart, {\"query\", \"positive\", \"negatives\"}");
    r->answer = completion ? completion : chosen;
    return WEFT_OK;
}

/* Tables have one type for a column, so that tools are often JSON as text there, "" for none. */
static weft_status take_tools(weft__train_record *r, weft_error *err)
{
    const char *text;
    size_t n;
    if (weft__json_string(r->tools, &text, &n)) {
        weft_error why = {0};
        r->tools = NULL;
        if (strspn(text, " \t\r\n") == n) return WEFT_OK;
        weft_status st = weft__json_parse(text, n, &r->made_tools, &why);
        if (st == WEFT_FORMAT) return weft_fail(err, st, "\"tools\" is text, but no JSON: %s", why.message);
        if (st) return weft_fail(err, st, "\"tools\": %s", why.message);
        r->tools = weft__json_is_null(r->made_tools) ? NULL : r->made_tools;
    }
    if (!r->tools || is_list(r->tools)) return WEFT_OK;
    return weft_fail(err, WEFT_FORMAT, "\"tools\" is no list, or one as JSON text");
}

/* How much the record counts; messages have a weight of their own (is_weight). */
static weft_status take_weight(weft__train_record *r, weft_error *err)
{
    const weft__json *v = member(r, "weight");
    r->weight = 1;
    if (!v) return WEFT_OK;
    if (!weft__json_double(v, &r->weight) || !(fabs(r->weight) <= WEFT__TRAIN_WEIGHT_MOST))
        return weft_fail(err, WEFT_FORMAT,
                         "\"weight\" is no number from -%d to %d: how much the record counts, below 0 where it is to "
                         "become less likely",
                         WEFT__TRAIN_WEIGHT_MOST, WEFT__TRAIN_WEIGHT_MOST);
    if ((r->kind == WEFT__TRAIN_RECORD_PAIR || r->kind == WEFT__TRAIN_RECORD_CONTRAST) && r->weight != 1)
        return weft_fail(err, WEFT_FORMAT, "\"weight\" of a %s: they count alike; leave it out",
                         weft__train_record_name(r->kind));
    return WEFT_OK;
}

static weft_status take_reward(weft__train_record *r, weft_error *err)
{
    const weft__json *v = member(r, "reward");
    r->reward = NAN;
    if (!v || (weft__json_double(v, &r->reward) && fabs(r->reward) <= WEFT__TRAIN_WEIGHT_MOST)) return WEFT_OK;
    return weft_fail(err, WEFT_FORMAT, "\"reward\" is no number from -%d to %d: how good the answer was",
                     WEFT__TRAIN_WEIGHT_MOST, WEFT__TRAIN_WEIGHT_MOST);
}

static weft_status record_check(weft__train_record *r, weft_error *err)
{
    if (weft__json_kind_of(r->root) != WEFT__JSON_OBJECT && !weft__train_is_conversation(r->root))
        return weft_fail(err, WEFT_FORMAT, "the record is %s",
                         weft__json_kind_of(r->root) == WEFT__JSON_ARRAY
                             ? "a list, and not one of messages; a list of records is a file whose name ends in .json"
                             : "no JSON object");
    weft_status st = classify(r, err);
    if (!st) st = take_weight(r, err);
    if (!st) st = take_reward(r, err);
    if (!st && r->kind != WEFT__TRAIN_RECORD_TEXT && r->kind != WEFT__TRAIN_RECORD_CONTRAST) st = take_tools(r, err);
    if (st) return st;
    switch (r->kind) {
    case WEFT__TRAIN_RECORD_TEXT:
        return is_string(r->text) ? WEFT_OK : weft_fail(err, WEFT_FORMAT, "\"text\" is no string");
    case WEFT__TRAIN_RECORD_CHAT: return check_chat(r, err);
    case WEFT__TRAIN_RECORD_CONTRAST: return check_contrast(r, err);
    case WEFT__TRAIN_RECORD_COMPLETION:
        st = check_prompt(r->prompt, err);
        return st ? st : check_answer(r->answer, r->made ? "output" : "completion", err);
    default: return check_pair(r, err);
    }
}

weft_status weft__train_record_of(weft__json **root, weft__train_record *out, weft_error *err)
{
    *out = (weft__train_record){.root = *root};
    *root = NULL;
    weft_status st = record_check(out, err);
    if (st) weft__train_record_free(out);
    return st;
}

weft_status weft__train_record_read(const char *line, size_t n, weft__train_record *out, weft_error *err)
{
    *out = (weft__train_record){0};
    weft__json *root = NULL;
    weft_status st = weft__json_parse(line, n, &root, err);
    return st ? st : weft__train_record_of(&root, out, err);
}

void weft__train_record_free(weft__train_record *r)
{
    weft__json_free(&r->made_tools);
    weft__json_free(&r->made);
    weft__json_free(&r->root);
    *r = (weft__train_record){0};
}
