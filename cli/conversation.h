// SPDX-License-Identifier: Apache-2.0
/* conversation.h: messages, the session that holds their tokens, and the next answer. One thread.
 *
 * Invariant: `held` are the tokens in the session, and they and `lacking` stand for `held_text`; when the conversation
 * as the template now renders it begins with that text, only what follows is tokenized, and evaluated after
 * `lacking`. */
#ifndef WEFT_CLI_CONVERSATION_H
#define WEFT_CLI_CONVERSATION_H

#include "base/json.h"
#include "generate.h"

typedef struct conversation {
    weft_model *model;
    weft_chat *chat;
    weft_session *session;
    weft__json *messages; /* [{"role", "content"}] */
    int32_t *held;
    size_t n_held, held_capacity;
    char *held_text; /* NULL: not known to match, compare tokens instead */
    size_t n_held_text;
    /* is told what an answer says as it comes; NULL: nothing is */
    weft_chat_on_part *on_part;
    void *on_part_arg;
    int32_t lacking; /* the last token of an answer that was cut, which was not evaluated; -1: none */
    /* Of the latest answer. */
    weft__strbuf thought; /* what it thought; it stands in its message as "reasoning_content", too */
    int32_t n_reused, n_prompt, n_generated;
    double prefill_ms, decode_ms;
} conversation;

void conversation_free(conversation *c);
/* Adds a message; 0 without memory or when the text is no UTF-8. */
int conversation_add(conversation *c, const char *role, const char *text, size_t n);
/* Is the last message `role`'s? */
int conversation_ends_with(const conversation *c, const char *role);
/* Removes the last message when it is `role`'s; 1 when it did. */
int conversation_drop_last(conversation *c, const char *role);
/* Forgets all messages, and sets `system` as the first where it is not NULL. */
int conversation_reset(conversation *c, const char *system);
/* Lets the model answer the conversation; on success the answer has been added to it. `request` brings the sampler and
 * the limits; *finish_reason as in generate_result. */
weft_status conversation_answer(conversation *c, generate_request *request, const char *kwargs,
                                const char **finish_reason, weft_error *err);
/* The session forgets what it was told, and will be told again: before its adapters change. */
void conversation_forget(conversation *c);
/* The messages as a file of one record, {"messages": [...]} on a line, as `weft adapter train` reads them; and back.
 * Reading takes a list of messages alone, too, which was written once. Saving refuses to write over a file that is
 * something else, or has several records; loading leaves the conversation as it was when it fails. */
weft_status conversation_save(const conversation *c, const char *path, weft_error *err);
weft_status conversation_load(conversation *c, const char *path, weft_error *err);

#endif
