// SPDX-License-Identifier: Apache-2.0
/* response.h: the inside of a response, for response*.c: response.c has its life, what the engine's events become, and
 * its end; response_parse.c what a chat's answer says besides text; response_submit.c what the engine is asked for. */
#ifndef WEFT_SERVER_RESPONSE_H
#define WEFT_SERVER_RESPONSE_H

#include "server/server.h"

/* ---- response.c ---- */
/* Lets go of it; the last one frees it. */
void weft__server_response_unref(weft__server_response *g);
/* Cancels what was submitted and has not finished. Not under the lock: the engine may be waiting for it in on_event. */
void weft__server_response_cancel_all(weft__server_response *g);
/* What the engine told of a choice, by events.c; the result is an event function's. An embedding is the choice's. */
int weft__server_response_on_event(weft__server_choice *c, const weft_event *e);

/* Has its adapters' files read before its turn, unless its client has left. */
void weft__server_response_ahead(weft__server_response *g);

/* ---- admit.c ---- */
/* It counts to its key, team and organisation from now on; 0: one of them has no room, and the error is filled. */
int weft__server_response_enter(weft__server_response *g, weft__api_error *error);
/* It counts no longer as one that is answered, and if it never ran, not at all. Again: nothing. Any thread. */
void weft__server_response_leave(weft__server_response *g);

/* ---- response_best.c ---- */
/* What its verifier needs, and where it may be asked for again its body. 0: refused. */
int weft__server_response_verifier(weft__server_response *g, const weft__server_caller *who, weft__api_error *error);
void weft__server_response_verifier_free(weft__server_response *g);
/* Verifies answers, and of each prompt's all but the best are left out, where the request says so. 0: no memory. */
int weft__server_response_best(weft__server_response *g);
/* 1: its answer failed, and is not told: the request is asked again, with what the verifier says, when nobody holds g
 * any more (others flush by its request). The caller gives its share back. */
int weft__server_response_again(weft__server_response *g);
/* Gives the request of such a g, whose only holder the caller is, to a new response, and keeps g beside it: where the
 * new one is refused or fails, g's answer is told. */
void weft__server_response_hand_on(weft__server_response *g);
/* Answers r with such a g, and frees it. Any thread. */
void weft__server_response_tell_failed(weft__server_response *g, weft__http_request *r);
/* Frees the one that is kept beside r. */
void weft__server_response_drop_failed(weft__http_request *r);

/* ---- response_note.c ---- */
/* Its request's note, where there is memory for it. */
void weft__server_response_note(weft__server_response *g);

/* ---- response_parse.c ---- */
/* Gives the choice a parser where its text is more than content. 0: refused. */
int weft__server_parse_begin(weft__server_response *g, weft__server_choice *c, weft__api_error *error);
/* What a token adds to the text: a marker of the chat's format by its spelling, though it is a special token. */
weft_status weft__server_parse_token(weft__server_choice *c, int32_t token, const char **text, size_t *n,
                                     weft_error *err);
/* 1: it is parsed token by token, as events are told. */
int weft__server_parse_is_live(const weft__server_choice *c);
/* 1: what its next event says may make the engine write something in the model's place. */
int weft__server_parse_may_insert(const weft__server_choice *c);
/* n more tokens came; 1, once: the model has thought for as many as it may, and is still thinking. */
int weft__server_parse_is_over(weft__server_choice *c, int64_t n);
/* Gives the parser the text that became certain; `ended`: there is no more. */
weft_status weft__server_parse(weft__server_choice *c, int ended, weft_error *err);

/* ---- response_submit.c; 0: refused, and why stands in the error ---- */
/* The field that constrains the answer; NULL: none. */
const char *weft__server_response_constraint_of(const weft__api_params *a);
/* 1: a chat's answer is one of a form that the request brings, alone or where it calls nothing. */
int weft__server_response_forms(const weft__server_response *g);
/* 1: its grammar was compiled before, and is its own now. */
int weft__server_response_find_grammar(weft__server_response *g);
int weft__server_response_compile_grammar(weft__server_response *g, weft__api_error *error);
/* Its choices, with what they have in common. */
int weft__server_response_prepare(weft__server_response *g, weft__api_error *error);
/* What became of one, and why. */
void weft__server_response_keep_status(weft__server_choice *c, weft_status status, const char *message);
/* One choice to the engine. */
weft_status weft__server_response_submit(weft__server_choice *c, double *retry_after_s, weft_error *err);
/* All that is asked for at once, or none. */
int weft__server_response_submit_all(weft__server_response *g, weft__api_error *error);
/* With the turn to ask (is_asking), which ends here: asks for what is left, as far as there is room. Where the queue is
 * full it waits for the next end of one of these; when there is none left, that is the answer. 1: so nothing is left,
 * and the caller answers. */
int weft__server_response_ask(weft__server_response *g);
/* The same behind the first ones, whose ends have left it to this; answers. */
void weft__server_response_ask_on(weft__server_response *g);

#endif
