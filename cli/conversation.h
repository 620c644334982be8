// SPDX-License-Identifier: Apache-2.0
/* conversation.h: messages, the session that holds their tokens, and the next answer. One thread.
 *
 * Invariant: `held` are the tokens in the session, and they and `lacking` stand for `held_text`; when the conversation
 * as the template now renders it begins with that text, only what follows is tokenized, and evaluated after
 * `lacking`. */
#ifndef WEFT_CLI_CONVERSATION_H
#define WEFT_CLI_CONVERSATION_H

#include "answer_form.h"
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
    answer_form_source form; /* what answers are held to */
    weft_grammar *grammar;   /* of it, and of the prompts that have this lead (answer_form_lead); NULL: none yet */
    int32_t lead;
    int32_t lacking; /* the last token of an answer that was cut, which was not evaluated; -1: none */
    /* Of the latest answer. */
    weft__strbuf thought; /* what it thought; it stands in its message as "reasoning_content", too */
    int32_t n_reused, n_prompt, n_generated;
    int32_t n_dropped; /* tokens that were left out as the context was full */
    double prefill_ms, decode_ms;
    weft_error broken_off; /* with a status where the form is not complete */
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
/* Lets the model answer the conversation; on success the answer has been added to it, also where it breaks off before
 * its form is complete. `request` brings the sampler and the limits; *finish_reason as in generate_result. */
weft_status conversation_answer(conversation *c, generate_request *request, const char *kwargs,
                                const char **finish_reason, weft_error *err);
/* Compiles the form as far as that goes without a prompt, so that what is wrong with it shows. */
weft_status conversation_check_form(conversation *c, weft_error *err);
/* The session forgets what it was told, and will be told again: before its adapters change. */
void conversation_forget(conversation *c);
/* The messages as a file of one record, {"messages": [...]} on a line, as `weft adapter train` reads them; and back.
 * Reading takes a list of messages alone, too, which was written once. Saving refuses to write over a file that is
 * something else, or has several records; loading leaves the conversation as it was when it fails. */
weft_status conversation_save(const conversation *c, const char *path, weft_error *err);
weft_status conversation_load(conversation *c, const char *path, weft_error *err);

#endif
