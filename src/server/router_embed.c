// SPDX-License-Identifier: Apache-2.0
/* router_embed.c: what a router sees of a request besides its words: its embedding, by the model of the first arm
 * (router.h). Workers, which wait for the engine meanwhile: together with those at the disk all but one at most, fewer
 * for one client; where there is one worker, that. */
#include "server/aside.h"
#include "server/models.h"
#include "server/router.h"

/* Who is to be refused for his body costs no step of a model. */
static int is_of_its_form(weft__server_question *q, const weft__server_model *m)
{
    weft__api_params params;
    weft__api_error error = {0};
    if (!q->root) return 0;
    const int ok = weft__api_params_take(q->form, m->n_vocab, &q->root, &params, &error);
    weft__api_params_free(&params);
    return ok;
}

float *weft__server_router_embed(weft_server *s, weft__server_question *q, int *n)
{
    float *vector = NULL;
    const weft__server_caller anybody = {.is_admin = 1, .rules = q->who->rules};
    weft__api_error error;
    weft__server_model *m = weft__server_models_which(s, &anybody, s->router->arms[0], &error);
    *n = 0;
    if (m && q->n_text && weft__server_model_hold_loaded(m)) {
        if (is_of_its_form(q, m) && weft__server_disk_enter(s, q->r, NULL, &error)) {
            const weft__server_aside aside = {.m = m, .who = q->who, .tenant = q->tenant, .n_body = q->n_body};
            vector = weft__server_aside_embed(&aside, &(weft__server_aside_text){q->text, q->n_text}, 1, n);
            weft__server_disk_leave(s, q->r);
        }
        weft__server_model_look_away(&m);
    }
    atomic_fetch_add(vector ? &s->router->n_embedded : &s->router->n_unembedded, 1);
    return vector;
}
