// SPDX-License-Identifier: Apache-2.0
/* same.c: in which ways two tokenizers differ (tokenizer.h): member by member, as they are immutable data. */
#include <string.h>

#include "text/tokenizer/parts.h"

static int same_slice(weft__tok_slice a, weft__tok_slice b)
{
    return a.len == b.len && (a.len == 0 || !memcmp(a.data, b.data, a.len));
}

/* Merges are in a table by the numbers of symbols, which follow from the order of tokens and merges. */
static int same_model(const weft__tok *a, const weft__tok *b)
{
    const size_t n = a->n_tokens;
    if (a->model != b->model || n != b->n_tokens || a->n_pairs != b->n_pairs) return 0;
    if (!a->ranks != !b->ranks || !a->scores != !b->scores || !a->pairs != !b->pairs) return 0;
    for (size_t i = 0; i < a->n_pairs; i++) {
        const weft__tok_bpe_pair *x = &a->pairs[i], *y = &b->pairs[i];
        if (x->key != y->key || (x->key != UINT64_MAX && (x->rank != y->rank || x->id != y->id))) return 0;
    }
    if (a->scores && (memcmp(a->scores, b->scores, n * sizeof *a->scores) != 0 || a->unk_score != b->unk_score))
        return 0;
    if (a->ranks && memcmp(a->ranks, b->ranks, n * sizeof *a->ranks) != 0) return 0;
    return a->ignore_merges == b->ignore_merges && a->max_word_chars == b->max_word_chars;
}

static int same_steps(const weft__tok *a, const weft__tok *b)
{
    if (a->n_norms != b->n_norms || a->n_splits != b->n_splits) return 0;
    for (size_t i = 0; i < a->n_norms; i++) {
        const weft__tok_norm_step *x = &a->norms[i].step, *y = &b->norms[i].step;
        if (x->kind != y->kind || x->flags != y->flags || x->first_only != y->first_only) return 0;
        if (!same_slice(x->a, y->a) || !same_slice(x->b, y->b)) return 0;
    }
    for (size_t i = 0; i < a->n_splits; i++) {
        const weft__tok_split_step *x = &a->splits[i].step, *y = &b->splits[i].step;
        if (x->kind != y->kind || x->invert != y->invert || x->first_only != y->first_only) return 0;
        if (!same_slice(x->pattern, y->pattern) || !same_slice(x->prefix, y->prefix)) return 0;
    }
    return 1;
}

static int same_options(const weft__tok *a, const weft__tok *b)
{
    return a->byte_level == b->byte_level && a->spelled == b->spelled && a->byte_fallback == b->byte_fallback &&
           a->fuse_unk == b->fuse_unk && a->strip_leading == b->strip_leading;
}

static int same_texts(const weft__tok *a, const weft__tok *b)
{
    if (a->n_tokens != b->n_tokens || memcmp(a->byte_id, b->byte_id, sizeof a->byte_id) != 0) return 0;
    for (int32_t i = 0; i < (int32_t)a->n_tokens; i++) {
        if (!same_slice(weft__tok_text(a, i), weft__tok_text(b, i))) return 0;
        if (!same_slice(weft__tok_piece_of(a, i), weft__tok_piece_of(b, i))) return 0;
    }
    return 1;
}

static int same_added(const weft__tok *a, const weft__tok *b)
{
    for (size_t i = 0; i < a->n_tokens && i < b->n_tokens; i++)
        if ((a->strips ? a->strips[i] : 0) != (b->strips ? b->strips[i] : 0)) return 0;
    return 1;
}

static int same_roles(const weft__tok *a, const weft__tok *b)
{
    for (int r = 0; r < WEFT__TOK_ROLE_COUNT; r++)
        if (r != WEFT__TOK_ROLE_EOT && r != WEFT__TOK_ROLE_EOM && a->role[r] != b->role[r]) return 0;
    return 1;
}

static int same_surroundings(const weft__tok *a, const weft__tok *b)
{
    if (a->add_bos != b->add_bos || a->add_eos != b->add_eos) return 0;
    return !(a->add_bos && a->first != b->first) && !(a->add_eos && a->last != b->last);
}

static int same_ends(const weft__tok *a, const weft__tok *b)
{
    return a->n_tokens == b->n_tokens && !memcmp(a->ends, b->ends, a->n_tokens) &&
           a->role[WEFT__TOK_ROLE_EOT] == b->role[WEFT__TOK_ROLE_EOT] &&
           a->role[WEFT__TOK_ROLE_EOM] == b->role[WEFT__TOK_ROLE_EOM];
}

unsigned weft__tok_compare(const weft__tok *a, const weft__tok *b)
{
    unsigned bits = 0;
    if (!same_model(a, b)) bits |= WEFT__TOK_DIFFERS_MODEL;
    if (!same_steps(a, b)) bits |= WEFT__TOK_DIFFERS_STEPS;
    if (!same_options(a, b)) bits |= WEFT__TOK_DIFFERS_OPTIONS;
    if (!same_texts(a, b)) bits |= WEFT__TOK_DIFFERS_TEXTS;
    if (a->n_tokens != b->n_tokens || memcmp(a->types, b->types, a->n_tokens) != 0) bits |= WEFT__TOK_DIFFERS_TYPES;
    if (!same_added(a, b)) bits |= WEFT__TOK_DIFFERS_ADDED;
    if (!same_roles(a, b)) bits |= WEFT__TOK_DIFFERS_ROLES;
    if (!same_surroundings(a, b)) bits |= WEFT__TOK_DIFFERS_AROUND;
    if (!same_ends(a, b)) bits |= WEFT__TOK_DIFFERS_ENDS;
    if (!same_slice(weft__tok_chat_template(a), weft__tok_chat_template(b))) bits |= WEFT__TOK_DIFFERS_TEMPLATE;
    return bits;
}

const char *weft__tok_difference_name(unsigned bits)
{
    static const struct {
        weft__tok_difference bit;
        const char *name;
    } names[] = {{WEFT__TOK_DIFFERS_MODEL, "its model: merges, scores or the way they are used"},
                 {WEFT__TOK_DIFFERS_STEPS, "its normalizer or pre-tokenizer"},
                 {WEFT__TOK_DIFFERS_OPTIONS, "how it falls back to bytes, or what its decoder drops"},
                 {WEFT__TOK_DIFFERS_TEXTS, "how its tokens are spelled"},
                 {WEFT__TOK_DIFFERS_TYPES, "which of its tokens are special"},
                 {WEFT__TOK_DIFFERS_ADDED, "how its added tokens are looked for"},
                 {WEFT__TOK_DIFFERS_ROLES, "its BOS, EOS, unknown, padding or separating token"},
                 {WEFT__TOK_DIFFERS_AROUND, "what it puts around a text"},
                 {WEFT__TOK_DIFFERS_ENDS, "its tokens that end generation"},
                 {WEFT__TOK_DIFFERS_TEMPLATE, "its chat template"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bits & (unsigned)names[i].bit) return names[i].name;
    return "nothing";
}
