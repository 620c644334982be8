// SPDX-License-Identifier: Apache-2.0
/* perplexity_print.h: what weft_perplexity measured, in the words and columns of llama-perplexity, and as JSON. On
 * stdout; one thread. */
#ifndef WEFT_CLI_PERPLEXITY_PRINT_H
#define WEFT_CLI_PERPLEXITY_PRINT_H

#include "base/text.h"
#include "weft/eval.h"

/* "Final estimate: PPL = ..." */
void perplexity_print_final(weft_estimate perplexity);
/* One line per chunk, with the running figures. */
void perplexity_print_chunk_header(void);
void perplexity_print_chunk(const weft_perplexity_result *r);
/* The summary: perplexity, KL divergence, token probabilities. */
void perplexity_print_summary(const weft_perplexity_result *r);
/* The same as one JSON object, null where there are none. against: also the divergence. */
void perplexity_print_json(const weft_perplexity_result *r, int against);
/* A member of a JSON object, behind others: six digits, or null for what is no number. */
void perplexity_put_member(weft__strbuf *t, const char *name, double v);

#endif
