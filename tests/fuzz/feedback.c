// SPDX-License-Identifier: Apache-2.0
/* Feedback of any client: what is taken has one kind, an id and lengths within bounds; what is not is told. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/feedback.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    weft__learn_said said;
    weft_error err = {0};
    char field[32], *exact = malloc(n ? n : 1); /* so that reading past its end is seen */
    if (!exact) return 0;
    if (n) memcpy(exact, data, n);
    weft_status st = weft__learn_feedback_read(exact, n, &said, field, &err);
    free(exact);
    if (st && (said.root || !*err.message)) abort();
    if (st) return 0;
    const weft__learn_feedback *f = &said.feedback;
    if (!f->id || !*f->id || strlen(f->id) >= WEFT__LEARN_ID || f->choice < 0 || !isfinite(f->value)) abort();
    if (f->kind >= WEFT__LEARN_KINDS || f->n_text > WEFT__LEARN_TEXT) abort();
    if ((f->kind == WEFT__LEARN_CORRECTION || f->kind == WEFT__LEARN_EDIT) && !f->n_text) abort();
    if (f->kind == WEFT__LEARN_PREFERRED && (!f->over_id || !*f->over_id)) abort();
    if (f->text && strlen(f->text) != f->n_text) abort();
    weft__json_free(&said.root);
    return 0;
}
