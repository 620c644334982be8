// SPDX-License-Identifier: Apache-2.0
/* propose.c: drafters, one after the other (draft.h). Reentrant. */
#include "draft/draft.h"

void weft__draft_propose(const weft__drafter *all, int n, const weft__draft_text *text, int32_t most,
                         weft__draft_cut cut, void *arg, weft__draft *out)
{
    out->kind = WEFT__DRAFT_SUFFIX;
    out->n = out->matched = 0;
    for (int i = 0; i < n && out->matched < WEFT__DRAFT_DEPTH; i++) {
        weft__draft other = {.kind = WEFT__DRAFT_SUFFIX};
        if (all[i].is_last) continue;
        all[i].propose(all[i].self, text, most, &other);
        if (other.n && (!out->n || other.matched > out->matched)) *out = other;
    }
    if (cut) cut(arg, out);
    for (int i = 0; i < n && !out->n; i++) {
        if (!all[i].is_last) continue;
        *out = (weft__draft){.kind = WEFT__DRAFT_SUFFIX};
        all[i].propose(all[i].self, text, most, out);
    }
}

void weft__draft_by_history(void *self, const weft__draft_text *text, int32_t most, weft__draft *out)
{
    out->kind = WEFT__DRAFT_SUFFIX;
    weft__draft_history_propose(self, text->tokens, text->n, most, out);
}

void weft__draft_by_prediction(void *self, const weft__draft_text *text, int32_t most, weft__draft *out)
{
    out->kind = WEFT__DRAFT_PREDICTION;
    weft__draft_expected_propose(self, text->tokens + text->n_prompt, text->n - text->n_prompt, most, out);
}
