// SPDX-License-Identifier: Apache-2.0
/* grammar.h: from rules to a weft_grammar; for grammar.c and chat_grammar.c. And what a grammar forces, for drafts. */
#ifndef WEFT_ENGINE_GRAMMAR_H
#define WEFT_ENGINE_GRAMMAR_H

#include "text/grammar/lazy.h"
#include "weft/text.h"

/* The rules of a kind of grammar (weft_grammar_new). */
typedef struct weft__engine_rules {
    weft__gram *g; /* the caller's */
    int32_t root;
    uint32_t depth;
    int own; /* as below */
} weft__engine_rules;

/* Reads source[0..length); what is wrong with it comes out when it is compiled. */
weft_status weft__engine_grammar_read(const weft_tokenizer *tokenizer, uint32_t kind, const char *source, size_t length,
                                      weft__engine_rules *out, weft_error *err);
/* What `rules`, which it takes over, says of `root`. `own`: it is one of ours, which need not be probed. */
weft_status weft__engine_grammar_of(const weft_tokenizer *tokenizer, weft__gram *rules, int32_t root, uint32_t depth,
                                    int own, weft_grammar **out, weft_error *err);
/* The grammar, which is not lazy yet, from a trigger on; *out keeps what it needs of it. */
weft_status weft__engine_grammar_lazy(const weft_tokenizer *tokenizer, const weft_grammar *grammar,
                                      const weft__gram_lazy_spec *spec, weft_grammar **out, weft_error *err);
/* weft__gram_matcher_forced; nothing is forced while the text is free. */
size_t weft__engine_matcher_forced(weft_matcher *matcher, char *bytes, size_t n);

#endif
