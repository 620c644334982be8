// SPDX-License-Identifier: Apache-2.0
/* admit.c: what a request counts to, from the moment its prompt is known until its answer is there (response.h). */
#include "server/response.h"
#include "server/rules.h"

static void refuse(const weft__server_refusal *why, weft__api_error *error)
{
    static const char *const levels[] = {"key", "team", "organisation"};
    static const char *const limits[] = {"requests per minute", "tokens per minute", "requests at once"};
    const int retry_s = why->retry_s > 1 ? why->retry_s : 1;
    weft__api_error_set(error, 429, NULL, "the %s '%s' is at its limit of %lld %s; try again in %d s",
                        levels[why->level], why->name, (long long)why->most, limits[why->limit], retry_s);
    error->retry_s = retry_s;
}

int weft__server_response_enter(weft__server_response *g, weft__api_error *error)
{
    weft__server_refusal why;
    if (!g->member) return 1;
    g->n_entered = 0;
    for (size_t i = 0; i < g->prompts.n; i++) g->n_entered += g->prompts.items[i].n;
    if (weft__server_limits_enter(&g->server->limits, &g->member->chain, g->n_entered, &why)) {
        g->is_in = 1;
        return 1;
    }
    refuse(&why, error);
    return 0;
}

void weft__server_response_leave(weft__server_response *g)
{
    if (atomic_exchange(&g->is_in, 0))
        weft__server_limits_leave(&g->server->limits, &g->member->chain, g->has_run ? -1 : g->n_entered);
}
