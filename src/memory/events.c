// SPDX-License-Identifier: Apache-2.0
/* events.c: memories made of what was said of answers (memory.h). Any thread. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "memory/parts.h"

/* What an event says, copied, as its reader may not call the store. */
typedef struct memory_said {
    int64_t event;
    int found;
    weft__memory_kind kind;
    weft__strbuf key, text;
    char id[WEFT__LEARN_ID];
    int64_t time_ms;
    int wins, losses;
} memory_said;

/* The last that the user said, or the prompt. */
static void put_question(const char *source, weft__strbuf *out)
{
    weft__json *root = NULL;
    const char *text;
    size_t n;
    if (!source || weft__json_parse(source, strlen(source), &root, NULL)) return;
    const weft__json *messages = weft__json_get(root, "messages");
    for (size_t i = weft__json_size(messages); i-- > 0 && !out->len;) {
        const weft__json *m = weft__json_at(messages, i);
        if (weft__json_is(weft__json_get(m, "role"), "user") &&
            weft__json_string(weft__json_get(m, "content"), &text, &n))
            weft__strbuf_put(out, text, n);
    }
    if (!out->len && weft__json_string(weft__json_get(root, "prompt"), &text, &n)) weft__strbuf_put(out, text, n);
    weft__json_free(&root);
}

/* Whole characters of the beginning, without NULs. */
static void cut(weft__strbuf *text, size_t most)
{
    if (text->data && strlen(text->data) < text->len) text->len = strlen(text->data);
    if (text->len <= most) return;
    while (most && ((unsigned char)text->data[most] & 0xc0) == 0x80) most--;
    text->len = most;
    text->data[most] = 0;
}

static int take_event(void *arg, const weft__learn_event *e)
{
    memory_said *said = arg;
    if (e->event != said->event) return 1;
    const int is_right = e->kind == WEFT__LEARN_CORRECTION || e->kind == WEFT__LEARN_EDIT;
    const int is_checked = e->kind == WEFT__LEARN_VERIFIER;
    const int is_liked = (e->kind == WEFT__LEARN_THUMB || e->kind == WEFT__LEARN_REWARD) && e->value > 0;
    if (!is_right && !is_checked && !is_liked) return 1;
    put_question(e->answer.source, &said->key);
    said->kind = is_right ? WEFT__MEMORY_SEMANTIC : is_checked ? WEFT__MEMORY_PROCEDURAL : WEFT__MEMORY_EPISODIC;
    if (is_right) weft__strbuf_put(&said->text, e->text, e->n_text);
    else weft__strbuf_put(&said->text, e->answer.text, e->answer.n_text);
    if (is_checked) {
        said->wins = e->value > 0;
        said->losses = !said->wins;
        weft__strbuf_printf(&said->text, "\nThis %s the check %.60s", said->wins ? "passed" : "failed",
                            e->name && *e->name ? e->name : "that was made");
        if (e->n_text) weft__strbuf_puts(&said->text, ": ");
        weft__strbuf_put(&said->text, e->text, e->n_text);
    }
    snprintf(said->id, sizeof said->id, "%s", e->answer.id ? e->answer.id : "");
    said->time_ms = e->time_ms;
    said->found = said->key.len && said->text.len;
    return 1;
}

weft_status weft__memory_learn_from(weft__learn_store *store, weft__memory *m, const char *tenant, int64_t event,
                                    int64_t *number, weft_error *err)
{
    memory_said said = {.event = event};
    *number = 0;
    weft_status st = weft__learn_events(store, tenant, event - 1, NULL, take_event, &said, err);
    if (!st && (said.key.failed || said.text.failed)) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for memories");
    cut(&said.key, WEFT__MEMORY_KEY - 1);
    cut(&said.text, WEFT__MEMORY_TEXT);
    weft__learn_memory one = {.tenant = tenant,
                              .kind = weft__memory_kind_name(said.kind),
                              .key = said.key.data,
                              .text = said.text.data,
                              .source = said.id,
                              .time_ms = said.time_ms,
                              .valid_from_ms = said.time_ms,
                              .event = event,
                              .wins = said.wins,
                              .losses = said.losses};
    if (!st && said.found) st = weft__memory_put(m, &one, number, err);
    weft__strbuf_free(&said.key);
    weft__strbuf_free(&said.text);
    return st;
}
