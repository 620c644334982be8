// SPDX-License-Identifier: Apache-2.0
/* learn.h: what the server keeps to learn from, and what it does with corrections (learn.c). Where it was given no
 * folder for that, nothing. */
#ifndef WEFT_SERVER_LEARN_H
#define WEFT_SERVER_LEARN_H

#include "server/server.h"

/* As it is kept to learn from. */
typedef struct weft__server_kept_token {
    int32_t token;
    float logprob;
} weft__server_kept_token;

/* weft__api_prompts_chat, with the tenant's corrections where there are any; and what was asked, where it is kept. */
int weft__server_learn_chat(weft__server_model *m, const weft__server_caller *who, const char *tenant,
                            const weft__api_prompt_model *with, weft__api_params *params, weft__api_prompts *out,
                            weft__api_error *error);
/* What was asked by a prompt that is a text. */
void weft__server_learn_text(weft__server_model *m, const weft__api_params *params, weft__api_prompts *out);

/* When its parameters are there. */
void weft__server_learn_begin(weft__server_response *g);
/* When its adapters are: which content answers, and which version, which its model's name tells from now on. */
void weft__server_learn_leased(weft__server_response *g);
void weft__server_learn_token(weft__server_choice *c, const weft_event *e);
/* A choice has ended, and what it says is parsed: it is kept, once, if it is a whole answer. Before its client has the
 * end of it. */
void weft__server_learn_answer(weft__server_choice *c);

/* ---- learn_whose.c: whom a request about what is kept means, and whether it means what it says ---- */

/* What a tenant without a name is called, here as by weft learn. */
#define WEFT__SERVER_LEARN_NO_KEY "(no key)"
/* Its caller, without keys whom `user` names, or for an admin `tenant`: by the body (root, an object; NULL: there is
 * none) or by the query, which may not differ. Whom it means is never guessed: what is no string, a member beside these
 * and `more` (NULL: none) and any other argument are 400 by name. 0 with the error filled. */
int weft__server_learn_whose(const weft_server *s, const weft__http_request *r, const weft__server_caller *who,
                             const weft__json *root, const char *more, char tenant[64], weft__api_error *error);
/* Are these all the arguments of its query, each once? second may be NULL. */
int weft__server_learn_arguments(const weft__http_request *r, const char *first, const char *second,
                                 weft__api_error *error);
/* What the body says (*said, may be NULL) or else the query's argument of that name; 0: they say two things. */
int weft__server_learn_one_name(const weft__http_request *r, const char *name, const char **said,
                                weft__api_error *error);
/* Of its caller or, without keys, of whom it names (NULL: nobody). */
int weft__server_learn_tenant(const weft_server *s, const weft__server_caller *who, const char *user, char tenant[64],
                              weft__api_error *error);

/* What the store says, as an answer: 1 where it is fine. field may be NULL. */
int weft__server_learn_fault(weft_status st, const weft_error *err, const char *field, weft__api_error *error);

/* /v1/feedback, /v1/learn/forget */
void weft__server_feedback(weft_server *s, weft__http_request *r, const weft__server_caller *who);
void weft__server_learn_forget(weft_server *s, weft__http_request *r, const weft__server_caller *who);
void weft__server_learn_metrics(const weft_server *s, weft__strbuf *out);

#endif
