// SPDX-License-Identifier: Apache-2.0
/* response_best.c: of the answers to a request the one that is told, and whether it is asked for again (response.h).
 * The thread that answers, when all have ended. */
#include <string.h>

#include "base/alloc.h"
#include "quality/quality.h"
#include "server/learn.h"
#include "server/response.h"
#include "server/routes.h"
#include "text/regex/regex.h"

enum {
    STEPS = 20000,       /* of a search: answers of others wait for it */
    AGAIN_MOST = 1 << 20 /* bytes of a request that may be asked for again: it is kept beside the client's own */
};

/* ---- the verifier ---- */

int weft__server_response_verifier(weft__server_response *g, const weft__server_caller *who, weft__api_error *error)
{
    const weft__api_params *a = &g->params;
    weft_error err = {0};
    size_t n;
    if (!a->verify) return 1;
    weft_status st = weft__regex_compile_python(a->verify, strlen(a->verify), &g->verifier, &err);
    if (st)
        return weft__api_error_set(error, st == WEFT_NO_MEMORY ? 503 : 400, "verify", "'verify': %.300s", err.message);
    if (!a->retries) return 1;
    const char *body = weft__http_body(g->r, &n);
    if (who->again.body) body = who->again.body, n = who->again.n;
    if (n > AGAIN_MOST)
        return weft__api_error_set(error, 400, "retries", "a request with 'retries' may have at most %d bytes",
                                   AGAIN_MOST);
    weft__strbuf_put(&g->asked, body, n);
    if (g->asked.failed || !(g->who = weft__alloc(sizeof *g->who)))
        return weft__api_error_set(error, 503, NULL, "no memory for the request");
    *g->who = *who;
    return 1;
}

void weft__server_response_verifier_free(weft__server_response *g)
{
    weft__regex_free(&g->verifier);
    weft__strbuf_free(&g->asked);
    weft__strbuf_free(&g->again);
    weft__free(g->who);
}

/* An expression that takes too long on a text has not matched it. */
static weft__quality_verdict verdict_on(const weft__server_response *g, const weft__quality_candidate *c)
{
    weft__regex_scratch scratch = {.budget = STEPS};
    weft__regex_groups groups;
    int found = 0;
    if (!g->verifier) return WEFT__QUALITY_NONE;
    if (!weft__utf8_valid(c->text, c->n_text) ||
        weft__regex_match(g->verifier, &scratch, c->text, c->n_text, 0, 0, &found, &groups, NULL))
        found = 0;
    weft__regex_scratch_free(&scratch);
    return found ? WEFT__QUALITY_PASSED : WEFT__QUALITY_FAILED;
}

/* ---- the best ---- */

/* What counts as the same answer: the text of a message without its thoughts, or where there is none its calls. */
static void take_text(const weft__api_choice *c, weft__quality_candidate *out)
{
    const weft__api_message *m = c->parsed;
    const weft__strbuf *text = !m ? &c->text : m->content.len || !m->n_calls ? &m->content : &m->spelled;
    out->text = text->data ? text->data : "";
    out->n_text = text->len;
}

/* logprobs: room for those of all its tokens. */
static void take_candidate(const weft__server_response *g, const weft__api_choice *c, float *logprobs,
                           weft__quality_candidate *out)
{
    *out = (weft__quality_candidate){.verdict = WEFT__QUALITY_NONE,
                                     .is_valid = c->finish != WEFT_FINISH_LENGTH,
                                     .logprobs = logprobs,
                                     .n_logprobs = c->n_entries};
    take_text(c, out);
    out->verdict = verdict_on(g, out);
    for (size_t i = 0; i < c->n_entries; i++) logprobs[i] = c->entries[i].logprob;
}

/* Those of one prompt. 0: no memory. */
static int choose_of(const weft__server_response *g, weft__api_choice *choices, int n)
{
    size_t n_all = 0, at = 0;
    for (int i = 0; i < n; i++) n_all += choices[i].n_entries;
    float *logprobs = weft__alloc_array(n_all + 1, sizeof *logprobs);
    weft__quality_candidate *all = weft__alloc_array((size_t)n, sizeof *all);
    const int ok = logprobs && all;
    for (int i = 0; i < n && ok; at += choices[i++].n_entries) take_candidate(g, &choices[i], logprobs + at, &all[i]);
    if (ok) {
        weft__quality_judge(all, n);
        const int best = weft__quality_best(all, n);
        for (int i = 0; i < n; i++) choices[i].is_left_out = i != best;
        choices[best].n_candidates = n;
        choices[best].n_votes = all[best].votes;
        choices[best].mean_logprob = all[best].mean;
        choices[best].lowest_logprob = all[best].lowest;
        choices[best].verified = (int)all[best].verdict - (int)WEFT__QUALITY_NONE;
        choices[best].n_attempts = 1 + (g->who ? g->who->again.n_done : 0);
        choices[best].n_spent = g->who ? g->who->again.n_spent : 0;
    }
    weft__free(all);
    weft__free(logprobs);
    return ok;
}

int weft__server_response_best(weft__server_response *g)
{
    const int n = g->params.n_best > 1 ? (int)g->params.n_best : 1;
    int ok = 1;
    if (n == 1 && !g->verifier) return 1;
    for (int i = 0; ok && i + n <= g->answer.n_choices; i += n) ok = choose_of(g, &g->answer.choices[i], n);
    return ok;
}

/* ---- asking again ---- */

/* The one that would be told; NULL: none failed. */
static const weft__api_choice *failed_of(const weft__server_response *g)
{
    for (int i = 0; i < g->answer.n_choices; i++)
        if (!g->answer.choices[i].is_left_out && g->answer.choices[i].verified < 0) return &g->answer.choices[i];
    return NULL;
}

static weft__json *message_of(const char *role, const char *text, size_t n)
{
    weft__json *m = weft__json_new_object();
    if (weft__json_set(m, "role", weft__json_new_string(role, strlen(role))) &&
        weft__json_set(m, "content", weft__json_new_string(text, n)))
        return m;
    weft__json_free(&m);
    return NULL;
}

/* What was asked, the answer, and what the verifier says of it. */
static void put_again(const weft__server_response *g, const weft__quality_candidate *c, weft__strbuf *out)
{
    const char *says =
        g->params.verify_message ? g->params.verify_message : "It does not have the form that was asked for.";
    weft__strbuf text = {0};
    weft__json *root = NULL, *messages = NULL;
    weft__api_error error;
    weft__quality_retry_message(says, strlen(says), &text);
    int ok = !text.failed && weft__api_body_parse(g->asked.data, g->asked.len, &root, &error) &&
             (messages = weft__json_copy(weft__json_get(root, "messages"))) != NULL;
    ok = ok && weft__json_append(messages, message_of("assistant", c->text, c->n_text)) &&
         weft__json_append(messages, message_of("user", text.data, text.len));
    if (ok) ok = weft__json_set(root, "messages", messages);
    else weft__json_free(&messages);
    if (ok) weft__json_write(out, root, WEFT__JSON_COMPACT);
    else out->failed = 1;
    weft__json_free(&root);
    weft__strbuf_free(&text);
}

/* What cannot be asked again is told as it is. */
int weft__server_response_again(weft__server_response *g)
{
    const weft__api_choice *failed = failed_of(g);
    weft__quality_candidate c;
    if (!failed || !g->who ||
        !weft__quality_retries(WEFT__QUALITY_FAILED, g->who->again.n_done, (int)g->params.retries))
        return 0;
    take_text(failed, &c);
    put_again(g, &c, &g->again);
    if (g->again.failed || g->again.len > AGAIN_MOST || !weft__http_off_gone(g->r)) {
        weft__strbuf_free(&g->again);
        return 0;
    }
    weft__server_response_unref(g); /* the share of who listened for a client that leaves */
    return 1;
}

void weft__server_response_hand_on(weft__server_response *g)
{
    weft__strbuf body = g->again;
    weft__http_request *r = g->r;
    g->again = (weft__strbuf){0};
    g->r = NULL;
    for (int i = 0; i < g->answer.n_choices; i++) g->who->again.n_spent += g->answer.choices[i].n_generated;
    g->who->again.n_done++;
    g->who->again.body = body.data;
    g->who->again.n = body.len;
    g->who->again.source = g->prompts.source;
    weft__server_response_drop_failed(r); /* of the attempt before */
    atomic_fetch_add(&g->refs, 1);        /* it may be told before this returns */
    weft__http_set_beside(r, g);
    weft__server_routes_chat(g->model, r, g->who);
    weft__strbuf_free(&body);
    weft__server_response_unref(g);
}

void weft__server_response_tell_failed(weft__server_response *g, weft__http_request *r)
{
    const int has_left = weft__http_is_gone(r);
    g->r = r;
    for (int i = 0; i < g->answer.n_choices && !has_left; i++) weft__server_learn_answer(&g->choices[i]);
    weft__server_response_note(g);
    g->writer->whole(&g->answer, &g->scratch);
    weft__server_reply_json(r, 200, &g->scratch);
    g->r = NULL;
    weft__server_response_unref(g);
}

void weft__server_response_drop_failed(weft__http_request *r)
{
    weft__server_response *g = weft__http_set_beside(r, NULL);
    if (g) weft__server_response_unref(g);
}
