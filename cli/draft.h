// SPDX-License-Identifier: Apache-2.0
/* draft.h: --draft: a small model that guesses tokens for the one at hand (docs/howto/speculation.md). One thread. */
#ifndef WEFT_CLI_DRAFT_H
#define WEFT_CLI_DRAFT_H

#include "options.h"
#include "weft/weft.h"

#define DRAFT_OPTION(s)                                                                                                \
    {                                                                                                                  \
        "draft", 0, OPT_TEXT, (s), "MODEL",                                                                            \
            "a small model of the same vocabulary guesses tokens, too; auto: the smallest that was pulled, where it "  \
            "gains",                                                                                                   \
            0, 0, NULL                                                                                                 \
    }

/* Do --spec and --draft go together? 0 after a message. */
int draft_check(const char *command, const char *draft, const char *spec);
/* What is asked of an engine or session by --spec (weft_spec), of which `auto` may have found no draft model. */
static inline int32_t draft_spec(int32_t spec, const weft_model *draft)
{
    return spec == WEFT_SPEC_DRAFT && !draft ? WEFT_SPEC_OFF : spec;
}
/* Opens the model that is to guess for `target`, with these parameters; *out NULL: --draft was not given, or `auto`
 * found none, and says so. WEFT_ARGUMENT: another vocabulary; and as opening fails. params->share_threads should be
 * set for both models: they take turns. */
weft_status draft_open(const char *command, const char *draft, const weft_model *target,
                       const weft_model_params *params, weft_model **out, weft_error *err);

#endif
