// SPDX-License-Identifier: Apache-2.0
/* draft.c: drafts are what followed the longest ending that a text has had before, of its own tenant's texts alone; and
 * of a draft as much is tried as pays by the costs that were seen. */
#include "unit/fixture.h"

#include <math.h>

#include "base/random.h"
#include "draft/draft.h"

static weft__draft propose(const weft__draft_history *h, const int32_t *context, int32_t n, int32_t most)
{
    weft__draft d = {.n = -1};
    weft__draft_history_propose(h, context, n, most, &d);
    return d;
}

/* What the index finds is what a search of all places finds: the longest common ending, of those in the window. */
static void finds_the_longest_ending(void **state)
{
    enum { N = 3000, WINDOW = 512 };
    static int32_t text[N];
    weft__rng rng;
    (void)state;
    weft__rng_seed(&rng, 5);
    weft__draft_history *h = weft__draft_history_new(WINDOW);
    int found = 0;
    for (int n = 0; n < N; n++) { /* few tokens, and pieces that come again */
        const int again = n > 200 && weft__rng_below(&rng, 3) > 0;
        text[n] = again ? text[n - 150] : (int32_t)weft__rng_below(&rng, 40);
        weft__draft_history_add(h, &text[n], 1);
        int longest = 0;
        for (int p = n - 1; p > n - WINDOW + WEFT__DRAFT_DEPTH && p >= 0; p--) {
            int k = 0;
            while (k < WEFT__DRAFT_DEPTH && p - k >= 0 && text[p - k] == text[n - k]) k++;
            longest = k > longest ? k : longest;
        }
        weft__draft d = propose(h, text, n + 1, 8);
        assert_true(d.n <= 8 && (d.matched >= 12 || d.n <= d.matched));
        if (longest >= 6) { /* the latest sixteen places are compared, which hold the longest here */
            assert_true(d.matched >= longest && d.n > 0);
            found++;
        }
        for (int k = 0; k < d.n; k++) assert_true(d.token[k] >= 0 && d.p[k] > 0 && d.p[k] <= 1);
    }
    assert_true(found > 30);
    weft__draft_history_free(&h);
}

/* Of what has followed, the most frequent comes, with its share; nothing goes on across a cut. */
static void counts_what_followed(void **state)
{
    const int32_t three[] = {1, 2, 3, 9, 1, 2, 4, 8, 1, 2, 3, 7, 1, 2};
    const int32_t context[] = {5, 1, 2};
    (void)state;
    weft__draft_history *h = weft__draft_history_new(64);
    weft__draft_history_add(h, three, 14);
    weft__draft d = propose(h, context, 3, 4);
    assert_int_equal(d.matched, 2);
    assert_int_equal(d.n, 2); /* no more than speak for it */
    assert_int_equal(d.token[0], 3);
    assert_float_equal(d.p[0], 2.0 / 3, 1e-6);
    weft__draft_history_cut(h);
    weft__draft_history_add(h, &context[0], 1);
    const int32_t across[] = {3, 7, 1, 2};
    d = propose(h, across, 4, 4);
    assert_true(d.n == 0 || d.token[0] != 5);
    const int32_t last[] = {1, 2, 3, 7};
    assert_int_equal(propose(h, last, 4, 4).n, 2); /* 1, 2, and the text has ended */
    assert_int_equal(propose(h, context, 1, 4).n, 0);
    assert_int_equal(propose(h, context, 3, 0).n, 0);
    weft__draft_history_free(&h);
}

/* A window forgets what has left it. */
static void forgets(void **state)
{
    int32_t text[200];
    (void)state;
    for (int i = 0; i < 200; i++) text[i] = 1000 + i;
    weft__draft_history *h = weft__draft_history_new(64);
    weft__draft_history_add(h, text, 40);
    assert_int_equal(propose(h, text, 10, 4).n, 4);
    weft__draft_history_add(h, text + 40, 160);
    assert_int_equal(propose(h, text, 10, 4).n, 0);
    assert_int_equal(propose(h, text, 180, 4).token[0], 1180);
    weft__draft_history_free(&h);
}

/* An expected text is followed from its first token; after another token in one's place, and after tokens left out. */
static void follows_what_is_expected(void **state)
{
    int32_t text[100], answer[200];
    (void)state;
    for (int i = 0; i < 100; i++) text[i] = 100 + i;
    weft__draft_expected *x = weft__draft_expected_new(text, 100);
    weft__draft d;
    int32_t n = 0;
    weft__draft_expected_propose(x, answer, n, 8, &d);
    assert_int_equal(d.n, 8);
    assert_memory_equal(d.token, text, 8 * sizeof *text);
    for (; n < 20; n++) answer[n] = text[n];
    answer[n++] = 7; /* in the place of text[20] */
    weft__draft_expected_propose(x, answer, n, 8, &d);
    assert_int_equal(d.token[0], text[21]);
    for (int i = 50; i < 58; i++) answer[n++] = text[i];
    weft__draft_expected_propose(x, answer, n, 8, &d);
    assert_int_equal(d.token[0], text[58]);
    for (int i = 58; i < 100; i++) answer[n++] = text[i];
    weft__draft_expected_propose(x, answer, n, 8, &d);
    assert_int_equal(d.n, 0);
    weft__draft_expected_free(&x);
}

/* Says what it is told to, and counts how often it is asked. */
typedef struct double_drafter {
    int32_t n, matched, first;
    int n_asked;
} double_drafter;

static void say(void *self, const weft__draft_text *text, int32_t most, weft__draft *out)
{
    double_drafter *d = self;
    assert_true(text->n == 3 && text->n_prompt == 2 && most == 4 && out->n == 0 && out->kind == WEFT__DRAFT_SUFFIX);
    d->n_asked++;
    out->n = d->n;
    out->matched = d->matched;
    for (int32_t k = 0; k < d->n; k++) {
        out->token[k] = d->first + k;
        out->p[k] = 1;
    }
}

/* Tokens from 100 on do not hold. */
static void cut_at_100(void *arg, weft__draft *d)
{
    int32_t n = 0;
    ++*(int *)arg;
    while (n < d->n && d->token[n] < 100) n++;
    d->n = n;
}

static int32_t first_of(double_drafter *all, int n, int n_last)
{
    const int32_t tokens[] = {1, 2, 3};
    const weft__draft_text text = {tokens, 2, 3};
    weft__drafter list[8];
    weft__draft d = {.n = 5};
    int n_cut = 0;
    for (int i = 0; i < n; i++) list[i] = (weft__drafter){say, &all[i], i < n_last};
    weft__draft_propose(list, n, &text, 4, cut_at_100, &n_cut, &d);
    assert_int_equal(n_cut, 1);
    return d.n ? d.token[0] : -1;
}

/* Of several drafters the one for whose draft most speaks; of equal ones the first; after one that cannot be surpassed
 * nobody is asked. The last one is where nothing else holds, and only there. */
static void drafters_in_order(void **state)
{
    (void)state;
    double_drafter equal[] = {{0, 9, 1, 0}, {3, 5, 10, 0}, {2, 5, 20, 0}};
    assert_int_equal(first_of(equal, 3, 0), 10);
    double_drafter more[] = {{3, 5, 10, 0}, {2, 6, 20, 0}};
    assert_int_equal(first_of(more, 2, 0), 20);
    double_drafter certain[] = {{3, WEFT__DRAFT_DEPTH, 10, 0}, {2, WEFT__DRAFT_DEPTH, 20, 0}};
    assert_int_equal(first_of(certain, 2, 0), 10);
    assert_int_equal(certain[1].n_asked, 0);
    double_drafter behind[] = {{3, 50, 10, 0}, {2, 5, 98, 0}}; /* of the second the first two tokens hold */
    assert_int_equal(first_of(behind, 2, 1), 98);
    assert_int_equal(behind[0].n_asked, 0);
    behind[1].first = 100;
    assert_int_equal(first_of(behind, 2, 1), 10);
    assert_int_equal(first_of(behind, 0, 0), -1);
}

/* Each key finds its own texts alone; the key that was added to least recently makes room. */
static void keys_are_apart(void **state)
{
    const int32_t ours[] = {1, 2, 3, 4, 5, 6}, theirs[] = {1, 2, 9, 9, 9, 9};
    (void)state;
    const uint64_t one = weft__draft_pool_bytes(NULL) + (uint64_t)(1 << 14) * 6 * sizeof(int32_t);
    weft__draft_pool *p = weft__draft_pool_new(2 * one);
    const uint64_t a[2] = {1, 1}, b[2] = {1, 2}, c[2] = {2, 1};
    weft__draft_pool_add(p, a, ours, 6);
    assert_null(weft__draft_pool_find(p, b));
    weft__draft_pool_add(p, b, theirs, 6);
    assert_int_equal(propose(weft__draft_pool_find(p, a), ours, 2, 1).token[0], 3);
    assert_int_equal(propose(weft__draft_pool_find(p, b), ours, 2, 1).token[0], 9);
    weft__draft_pool_add(p, a, ours, 6);
    weft__draft_pool_add(p, c, ours, 6);
    assert_null(weft__draft_pool_find(p, b));
    assert_non_null(weft__draft_pool_find(p, a));
    assert_true(weft__draft_pool_bytes(p) <= 2 * one + 1024);
    weft__draft_pool_free(&p);
}

/* Tokens of 200 steps of one row, whose drafts are right with that chance, and how many rows those had in all; as many
 * as that in the last quarter. */
static void play(const weft__draft_cost *c, double chance, int n_steps, int *rows, int *late)
{
    weft__rng rng;
    weft__draft_trust t;
    weft__draft d = {.kind = WEFT__DRAFT_SUFFIX, .n = 8, .matched = 4};
    for (int k = 0; k < 8; k++) d.p[k] = 1;
    weft__rng_seed(&rng, 3);
    weft__draft_trust_begin(&t);
    *rows = *late = 0;
    for (int i = 0; i < n_steps; i++) {
        const int32_t n = weft__draft_choose(c, &t, &d, 1);
        int32_t right = 0;
        while (right < n && weft__rng_double(&rng) < chance) right++;
        weft__draft_learn(&t, &d, n, right);
        *rows += n;
        if (i >= n_steps * 3 / 4) *late += n;
    }
}

/* Where rows cost little, drafts that are right grow; those that are wrong stop within 32 tokens, but for a try now and
 * then; where each row costs as much as a step, none is worth it. */
static void tries_what_pays(void **state)
{
    weft__draft_cost c;
    int rows, late;
    (void)state;
    weft__draft_cost_begin(&c, NULL, 0, 0, 0);
    play(&c, 0.9, 200, &rows, &late);
    assert_true(late > 50 * 3);
    play(&c, 0, 32, &rows, &late);
    assert_true(rows <= 32);
    play(&c, 0, 512, &rows, &late);
    assert_true(rows <= 64 && late <= 128 / 24 + 1);
    for (int n = 1; n <= WEFT__DRAFT_ROWS; n++) weft__draft_cost_saw(&c, n, (uint64_t)n * 1000000);
    play(&c, 0.5, 512, &rows, &late);
    assert_true(late <= 128 / 24 + 1);
}

/* A mixture's rows cost as many experts as they read; a disturbed step is soon forgotten. */
static void knows_costs(void **state)
{
    weft__draft_cost dense, mixed;
    (void)state;
    weft__draft_cost_begin(&dense, NULL, 0, 0, 0);
    weft__draft_cost_begin(&mixed, NULL, 256, 8, 1);
    assert_true(weft__draft_cost_of(&dense, 4) < 1.2 * weft__draft_cost_of(&dense, 1));
    assert_float_equal(weft__draft_cost_of(&mixed, 4) / weft__draft_cost_of(&mixed, 1), 3.82, 0.01);
    weft__draft_cost_saw(&dense, 1, 9000000);
    for (int i = 0; i < 10; i++) weft__draft_cost_saw(&dense, 1, 1000000);
    assert_true(weft__draft_cost_of(&dense, 1) < 1.05e6);
    assert_true(weft__draft_cost_of(&dense, 2) < 1.2e6);
}

/* ---- costs that are measured ---- */

/* A model whose parts take `row` of a byte's time for each row but the first, beside one; every disturbed-th call takes
 * ten times as long, every cached-th half, or, with chaos, each one longer than the one before. */
typedef struct machine {
    double bytes[10], row;
    uint64_t ns; /* of a byte */
    int n_parts, disturbed, cached, chaos, fails_at;
    int n_calls, last_part, touched;
    int by[WEFT__DRAFT_ROWS + 1]; /* the part that was timed last, of so many rows */
} machine;

static uint64_t time_part(void *arg, int32_t part, int32_t n_rows)
{
    machine *m = arg;
    assert_true(part >= 0 && part < m->n_parts && n_rows >= 1);
    assert_true(m->n_calls <= m->n_parts || m->touched >> part & 1); /* none is timed that was not read before */
    assert_true(m->n_parts == 1 || m->n_calls < 2 || part != m->last_part);
    if (m->n_calls > m->n_parts && m->n_parts > 1) assert_true(part != m->by[n_rows]);
    m->by[n_rows] = m->n_calls > m->n_parts ? part : -1;
    m->touched |= 1 << part;
    m->last_part = part;
    if (++m->n_calls == m->fails_at) return 0;
    const double ns = (double)m->ns * m->bytes[part] * (1 + m->row * (n_rows - 1));
    if (m->chaos) return (uint64_t)(ns * pow(1.3, m->n_calls % 13));
    if (m->disturbed && m->n_calls % m->disturbed == 0) return (uint64_t)(10 * ns);
    return (uint64_t)(m->cached && m->n_calls % m->cached == 0 ? ns / 2 : ns);
}

static int measure(machine *m, int most_rows, double *shape)
{
    m->n_calls = m->touched = 0;
    for (int i = 0; i <= WEFT__DRAFT_ROWS; i++) m->by[i] = -1;
    return weft__draft_measure(&(weft__draft_trial){time_part, m, m->bytes, m->n_parts, most_rows}, shape);
}

/* Whatever sizes the parts have, whoever takes the processor in between and whatever a cache still has, what is found
 * is what rows cost; where no times agree, or a part fails, nothing is. */
static void measures_what_rows_cost(void **state)
{
    /* not each fifth, which is always the same number of rows */
    static const int disturbed[] = {0, 7, 3, 0, 7}, cached[] = {0, 0, 0, 11, 13};
    double shape[WEFT__DRAFT_ROWS + 1];
    (void)state;
    for (int n_parts = 1; n_parts <= 10; n_parts++) {
        machine m = {
            .bytes = {1e5, 3e5, 1e5, 2e5, 1e5, 5e4, 1e5, 2e5, 1e5, 2e5}, .row = 0.25, .ns = 1, .n_parts = n_parts};
        for (int i = 0; i < 5; i++) {
            m.disturbed = disturbed[i];
            m.cached = cached[i];
            assert_true(measure(&m, WEFT__DRAFT_ROWS, shape));
            for (int n = 1; n <= WEFT__DRAFT_ROWS; n++) assert_float_equal(shape[n], 1 + 0.25 * (n - 1), 1e-3);
        }
        m.disturbed = m.cached = 0;
        assert_true(measure(&m, 4, shape)); /* lines go on beyond what was timed */
        assert_float_equal(shape[16], 1 + 0.25 * 15, 1e-3);
        assert_false(measure(&m, 1, shape));
        for (m.fails_at = 1; m.fails_at < n_parts + 9; m.fails_at++) assert_false(measure(&m, 16, shape));
        m.fails_at = 0;
        m.chaos = 1;
        assert_false(measure(&m, 16, shape));
    }
}

/* More rows never cost less, none costs nothing, and no more than as many steps; a slow machine is not asked for
 * long. */
static void measured_costs_are_sane(void **state)
{
    double shape[WEFT__DRAFT_ROWS + 1];
    machine m = {.bytes = {1e6, 1e6}, .row = -0.01, .ns = 1, .n_parts = 2};
    (void)state;
    assert_true(measure(&m, 16, shape));
    for (int n = 2; n <= WEFT__DRAFT_ROWS; n++) assert_true(shape[n] >= shape[n - 1] + 0.0099);
    m.row = 3;
    assert_true(measure(&m, 16, shape));
    for (int n = 1; n <= WEFT__DRAFT_ROWS; n++) assert_float_equal(shape[n], n, 1e-6);
    m.row = 0.1;
    m.ns = 1000; /* a second for a part: no other one is waited for */
    assert_false(measure(&m, 16, shape));
    assert_int_equal(m.n_calls, 1);
}

/* Before any step was seen: where rows were measured to be dear none is tried, where they are cheap many are. */
static void measured_costs_decide_at_once(void **state)
{
    double shape[WEFT__DRAFT_ROWS + 1];
    const double row[] = {0.02, 0.2, 0.9, 1};
    int n_before = WEFT__DRAFT_MOST;
    (void)state;
    for (int i = 0; i < 4; i++) {
        machine m = {.bytes = {1e6, 2e6, 1e6}, .row = row[i], .ns = 1, .n_parts = 3};
        weft__draft_cost c;
        weft__draft_trust t;
        weft__draft d = {.kind = WEFT__DRAFT_SUFFIX, .n = 8, .matched = 7};
        for (int k = 0; k < 8; k++) d.p[k] = 1;
        assert_true(measure(&m, 16, shape));
        weft__draft_cost_begin(&c, shape, 0, 0, 0);
        weft__draft_trust_begin(&t);
        const int n = weft__draft_choose(&c, &t, &d, 1);
        assert_true(n <= n_before);
        assert_true(i == 0 ? n >= 4 : i < 2 || n == 0);
        n_before = n;
        weft__draft_cost_begin(&c, shape, 64, 4, 1); /* experts are as dear as they are many */
        assert_float_equal(weft__draft_cost_of(&c, 2), 1 + 1 - 4.0 / 64, 1e-6);
    }
}

/* Steps of one row were slow, and those with guesses are not: wrong guesses are not tried for that. */
static void more_rows_take_no_less(void **state)
{
    weft__draft_cost c;
    int rows, late;
    (void)state;
    weft__draft_cost_begin(&c, NULL, 0, 0, 0);
    weft__draft_cost_saw(&c, 1, 2000000);
    for (int n = 2; n <= 16; n++) weft__draft_cost_saw(&c, n, 1100000);
    for (int n = 2; n <= 16; n++) assert_true(weft__draft_cost_of(&c, n) >= 1.01 * weft__draft_cost_of(&c, 1));
    play(&c, 0, 512, &rows, &late);
    assert_true(rows <= 64 && late <= 128 / 24 + 1);
}

static int in_little_memory(void *arg)
{
    const int32_t text[] = {1, 2, 3};
    const uint64_t key[2] = {1, 2};
    (void)arg;
    weft__draft_expected *x = weft__draft_expected_new(text, 3);
    weft__draft_pool *p = weft__draft_pool_new(1 << 20);
    if (p) weft__draft_pool_add(p, key, text, 3); /* which forgets where it must */
    const int ok = x && p;
    weft__draft_expected_free(&x);
    weft__draft_pool_free(&p);
    return ok;
}

/* ---- a draft model ---- */

/* Asks a model that is right so often, as the loops do; returns the tokens that `steps` steps brought, and the time
 * that they took in *time. */
static double run_model(const weft__draft_cost *c, weft__draft_trust *t, double token_cost, double right, float sure,
                        int steps, double *time, int *n_asked)
{
    weft__rng rng;
    double tokens = 0;
    weft__rng_seed(&rng, 3);
    *time = *n_asked = 0;
    for (int i = 0; i < steps; i++) {
        weft__draft d = {.kind = WEFT__DRAFT_MODEL};
        while (weft__draft_reach(c, t, &d, 1, token_cost, 0, WEFT__DRAFT_MOST) > d.n) {
            d.p[d.n++] = sure;
            *time += token_cost;
            ++*n_asked;
        }
        d.n = weft__draft_choose(c, t, &d, 1);
        int32_t n_right = 0;
        while (n_right < d.n && weft__rng_double(&rng) < right) n_right++;
        if (d.n) weft__draft_learn(t, &d, d.n, n_right);
        *time += weft__draft_cost_of(c, 1 + d.n);
        tokens += 1 + n_right;
    }
    return tokens;
}

/* One that is never right is left alone within some steps, and costs hardly anything; it is asked again, seldomer each
 * time, and at once when it has become right. One that is right brings tokens. */
static void a_model_is_asked_where_it_pays(void **state)
{
    weft__draft_cost c;
    weft__draft_trust t;
    double time;
    int n_asked, n_more;
    (void)state;
    weft__draft_cost_begin(&c, NULL, 0, 0, 0);
    for (int sure = 0; sure < 4; sure++) {
        const float p[] = {0.2f, 0.5f, 0.8f, 0.97f};
        weft__draft_trust_begin(&t);
        assert_true(run_model(&c, &t, 0.1, 0, p[sure], 512, &time, &n_asked) == 512);
        print_message("sure of %.2f and wrong: %d tokens asked for, %.2f steps of time more\n", (double)p[sure],
                      n_asked, time - 512);
        assert_true(time < 512 * 1.02);
        assert_true(n_asked > 0);
        run_model(&c, &t, 0.1, 0, p[sure], 512, &time, &n_more);
        assert_true(n_more <= 2); /* seldomer */
        run_model(&c, &t, 0.1, 0.9, p[sure], 4096, &time, &n_more);
        assert_true(n_more > 4096); /* it has become right */
    }
    weft__draft_trust_begin(&t);
    const double tokens = run_model(&c, &t, 0.1, 0.8, 0.8f, 512, &time, &n_asked);
    print_message("right at 0.8: %.2f tokens a step's time\n", tokens / time);
    assert_true(tokens / time > 1.9);
    /* What takes as long as the target itself brings nothing, however right. */
    weft__draft_trust_begin(&t);
    run_model(&c, &t, 1, 1, 0.97f, 2000, &time, &n_asked);
    assert_true(n_asked < 20);
}

/* What is known beforehand: a tenth of the target should gain, its double not. And a token's time is its part of a step
 * for several texts, as seen, or before that by the bytes that are read. */
static void a_model_has_its_price(void **state)
{
    weft__draft_cost c, mixture, small;
    (void)state;
    weft__draft_cost_begin(&c, NULL, 0, 0, 0);
    weft__draft_cost_begin(&small, NULL, 0, 0, 0);
    weft__draft_cost_begin(&mixture, NULL, 128, 8, 0.95);
    assert_true(weft__draft_expect(&c, 0.1) > 1.3);
    assert_true(weft__draft_expect(&c, 1) < 1);
    assert_true(weft__draft_expect(&mixture, 0.1) < weft__draft_expect(&c, 0.1));
    assert_float_equal(weft__draft_token_cost(&c, &small, 0.1, 1), 0.1, 1e-6);
    assert_true(weft__draft_token_cost(&c, &small, 0.1, 4) < 0.05);
    weft__draft_cost_saw(&c, 1, 1000);
    assert_float_equal(weft__draft_token_cost(&c, &small, 0.1, 1), 100, 1e-3);
    weft__draft_cost_saw(&small, 1, 300);
    assert_float_equal(weft__draft_token_cost(&c, &small, 0.1, 1), 300, 1e-3);
    assert_true(weft__draft_token_cost(&c, &small, 0.1, 128) > 0);
}

static void without_memory(void **state)
{
    (void)state;
    assert_true(fail_each(in_little_memory, NULL) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_longest_ending),
        cmocka_unit_test(counts_what_followed),
        cmocka_unit_test(forgets),
        cmocka_unit_test(follows_what_is_expected),
        cmocka_unit_test(drafters_in_order),
        cmocka_unit_test(keys_are_apart),
        cmocka_unit_test(tries_what_pays),
        cmocka_unit_test(knows_costs),
        cmocka_unit_test(measures_what_rows_cost),
        cmocka_unit_test(measured_costs_are_sane),
        cmocka_unit_test(measured_costs_decide_at_once),
        cmocka_unit_test(more_rows_take_no_less),
        cmocka_unit_test(a_model_is_asked_where_it_pays),
        cmocka_unit_test(a_model_has_its_price),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
