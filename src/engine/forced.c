// SPDX-License-Identifier: Apache-2.0
/* forced.c: see forced.h. Bytes are forced, not tokens: any token with which they begin is allowed, and the model picks
 * among these. It has learned texts as the tokenizer spells them, so that spelling is guessed; where one token alone is
 * allowed, it is that. Owner: the thread of the text. */
#include "engine/forced.h"

#include <string.h>

#include "engine/grammar.h"

enum {
    END_BYTES = 64,  /* of a text, that its next tokens' spelling is taken to depend on */
    RUN_BYTES = 128, /* that a grammar forces, of which tokens are made */
    SPELLED_TOKENS = END_BYTES + RUN_BYTES + 8,
    MATCHED_SPELLED = 8 /* what speaks for forced text as the tokenizer spells it */
};

/* The text behind which the guessed one stands, as far as it may matter for the spelling: [n] bytes, then [n_run]. */
typedef struct forced_text {
    char bytes[END_BYTES + RUN_BYTES];
    size_t n, n_run;
    int32_t token[SPELLED_TOKENS]; /* [n_tokens] of the run */
    int32_t n_tokens;
} forced_text;

/* Its last tokens, but for what is before a control token, which is no text. */
static void end_of_text(const weft_tokenizer *t, const weft__draft_text *text, forced_text *x)
{
    size_t length, n = 0;
    for (int32_t k = text->n; k > 0; k--) {
        const char *bytes = weft_token_bytes(t, text->tokens[k - 1], &length);
        if (!bytes || length > END_BYTES - n || weft__tok_type_of(t->t, text->tokens[k - 1]) == WEFT__TOK_CONTROL)
            break;
        n += length;
        memcpy(x->bytes + END_BYTES - n, bytes, length);
    }
    memmove(x->bytes, x->bytes + END_BYTES - n, n);
    x->n = n;
}

/* A character that is cut off at the end of the run is left out. */
static void whole_characters(char *run, size_t *n)
{
    size_t k = *n;
    while (k > 0 && *n - k < 3 && (run[k - 1] & 0xC0) == 0x80) k--;
    if (!k || (run[k - 1] & 0xC0) != 0xC0) return;
    const unsigned char lead = (unsigned char)run[k - 1];
    const size_t whole = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (*n - (k - 1) < whole) *n = k - 1;
}

/* The tokens of the run in bytes[0, n + n_run), if one begins with it. */
static int spell(const weft_tokenizer *t, forced_text *x, const char *bytes, size_t n)
{
    size_t n_ids = 0, length, left = x->n_run;
    if (weft_tokenize(t, bytes, n + x->n_run, 0, x->token, SPELLED_TOKENS, &n_ids, NULL)) return 0;
    size_t k = n_ids;
    for (; k > 0 && left > 0; k--, left -= length) {
        const char *piece = weft_token_bytes(t, x->token[k - 1], &length);
        if (!piece || length > left || memcmp(piece, bytes + n + left - length, length)) return 0;
    }
    if (left) return 0;
    memmove(x->token, x->token + k, (n_ids - k) * sizeof *x->token);
    x->n_tokens = (int32_t)(n_ids - k);
    return 1;
}

/* As it stands in the text; where the text's last token is not what the tokenizer would have there, by itself, which
 * is not the beginning of a text, where some tokenizers put a space. */
static void spell_run(const weft_tokenizer *t, forced_text *x)
{
    char behind_line[1 + RUN_BYTES] = "\n";
    const char *mark = memchr(x->bytes + x->n, WEFT__GRAM_TRIE_CONTROL, x->n_run);
    x->n_tokens = 0;
    if (mark) x->n_run = (size_t)(mark - (x->bytes + x->n)); /* a control token, which is alone there */
    whole_characters(x->bytes + x->n, &x->n_run);
    if (!x->n_run || (x->n && spell(t, x, x->bytes, x->n)) || spell(t, x, x->bytes + x->n, 0)) return;
    memcpy(behind_line + 1, x->bytes + x->n, x->n_run);
    (void)spell(t, x, behind_line, 1);
}

/* Whether the token, which the matcher allows as f->bits say, begins another one that is allowed: which of them
 * comes depends on what follows. */
static int begins_another(const weft__engine_forced *f, int32_t token, size_t n_words)
{
    const weft_tokenizer *t = f->tokenizer;
    size_t length, other_length;
    const char *bytes = weft_token_bytes(t, token, &length);
    for (size_t w = 0; bytes && w < n_words; w++)
        for (uint64_t bits = f->bits[w]; bits; bits &= bits - 1) {
            const char *other = weft_token_bytes(t, (int32_t)(64 * w) + __builtin_ctzll(bits), &other_length);
            if (other && other_length > length && !memcmp(other, bytes, length)) return 1;
        }
    return 0;
}

/* The one token that is allowed (*alone becomes 1), else the next one of the run (-1: it has no more); -1: nothing is
 * guessed. */
static int32_t forced_token(const weft__engine_forced *f, weft_matcher *m, int32_t spelled, int is_last, int *alone)
{
    const size_t n_words = ((size_t)weft_tokenizer_n_vocab(f->tokenizer) + 63) / 64;
    int32_t first = -1;
    int n = 0;
    *alone = 0;
    if (weft_matcher_complete(m) || weft_matcher_mask(m, f->bits, n_words, NULL)) return -1;
    for (size_t w = 0; w < n_words && n < 2; w++) {
        const uint64_t bits = f->bits[w];
        if (bits && first < 0) first = (int32_t)(64 * w) + __builtin_ctzll(bits);
        n += __builtin_popcountll(bits);
    }
    if (n == 1) return *alone = 1, first;
    return spelled >= 0 && is_last && begins_another(f, spelled, n_words) ? -1 : spelled;
}

/* What follows by force. Where no byte does, a token that is alone is looked for less and less often: that takes a
 * mask. */
void weft__engine_forced_propose(void *self, const weft__draft_text *text, int32_t most, weft__draft *d)
{
    enum { IDLE_MOST = 5 };
    weft__engine_forced *f = self;
    weft_matcher *m = NULL;
    forced_text x;
    end_of_text(f->tokenizer, text, &x);
    x.n_run = weft__engine_matcher_forced(f->matcher, x.bytes + x.n, RUN_BYTES);
    const int has_run = x.n_run > 0;
    if ((!has_run && f->n_wait-- > 0) || weft_matcher_copy(f->matcher, &m, NULL)) return;
    spell_run(f->tokenizer, &x);
    d->kind = WEFT__DRAFT_FORCED;
    d->matched = WEFT__DRAFT_DEPTH;
    for (int alone; d->n < most;) {
        const int32_t spelled = d->n < x.n_tokens ? x.token[d->n] : -1;
        const int32_t token = forced_token(f, m, spelled, d->n + 1 == x.n_tokens, &alone);
        if (token < 0 || weft_matcher_accept(m, token, NULL)) break;
        if (!alone) d->matched = MATCHED_SPELLED;
        d->token[d->n] = token;
        d->p[d->n++] = 1;
    }
    weft_matcher_free(&m);
    if (has_run) return;
    f->n_idle = d->n ? 0 : f->n_idle < IDLE_MOST ? f->n_idle + 1 : IDLE_MOST;
    f->n_wait = (1 << f->n_idle) - 1;
}

/* ---- what a text may go on with ---- */

void weft__engine_keep_within(void *bounds, weft__draft *d)
{
    const weft__engine_bounds *b = bounds;
    weft_matcher *m = NULL;
    int32_t n = 0;
    if (d->n && b->matcher && weft_matcher_copy(b->matcher, &m, NULL)) d->n = 0;
    for (; n < d->n && d->p[n] >= b->p_least; n++) {
        if (!b->takes_ends && b->tokenizer && weft_token_is_end(b->tokenizer, d->token[n])) break;
        if (m && weft_matcher_accept(m, d->token[n], NULL)) break;
    }
    d->n = n;
    weft_matcher_free(&m);
}
