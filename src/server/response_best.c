// SPDX-License-Identifier: Apache-2.0
/* response_best.c: of the answers that a request with n_best has, the one that is told (response.h). The thread that
 * answers, when all have ended. */
#include "base/alloc.h"
#include "quality/quality.h"
#include "server/response.h"

/* What counts as the same answer: the text of a message without its thoughts, or where there is none its calls. */
static void take_text(const weft__api_choice *c, weft__quality_candidate *out)
{
    const weft__api_message *m = c->parsed;
    const weft__strbuf *text = !m ? &c->text : m->content.len || !m->n_calls ? &m->content : &m->spelled;
    out->text = text->data ? text->data : "";
    out->n_text = text->len;
}

/* logprobs: room for those of all its tokens. */
static void take_candidate(const weft__api_choice *c, float *logprobs, weft__quality_candidate *out)
{
    *out = (weft__quality_candidate){.verdict = WEFT__QUALITY_NONE,
                                     .is_valid = c->finish != WEFT_FINISH_LENGTH,
                                     .logprobs = logprobs,
                                     .n_logprobs = c->n_entries};
    take_text(c, out);
    for (size_t i = 0; i < c->n_entries; i++) logprobs[i] = c->entries[i].logprob;
}

/* Those of one prompt. 0: no memory. */
static int choose_of(weft__api_choice *choices, int n)
{
    size_t n_all = 0, at = 0;
    for (int i = 0; i < n; i++) n_all += choices[i].n_entries;
    float *logprobs = weft__alloc_array(n_all + 1, sizeof *logprobs);
    weft__quality_candidate *all = weft__alloc_array((size_t)n, sizeof *all);
    const int ok = logprobs && all;
    for (int i = 0; i < n && ok; at += choices[i++].n_entries) take_candidate(&choices[i], logprobs + at, &all[i]);
    if (ok) {
        weft__quality_judge(all, n);
        const int best = weft__quality_best(all, n);
        for (int i = 0; i < n; i++) choices[i].is_left_out = i != best;
        choices[best].n_candidates = n;
        choices[best].n_votes = all[best].votes;
        choices[best].mean_logprob = all[best].mean;
        choices[best].lowest_logprob = all[best].lowest;
    }
    weft__free(all);
    weft__free(logprobs);
    return ok;
}

int weft__server_response_best(weft__server_response *g)
{
    const int n = (int)g->params.n_best;
    int ok = 1;
    for (int i = 0; n > 1 && ok && i + n <= g->answer.n_choices; i += n) ok = choose_of(&g->answer.choices[i], n);
    return ok;
}
