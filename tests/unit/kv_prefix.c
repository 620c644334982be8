// SPDX-License-Identifier: Apache-2.0
/* kv_prefix.c: claims about the prefix tree: a match attaches exactly what earlier sequences evaluated, pages in use
 * are never written nor evicted, no page is lost. */
#include "kv_world.h"

#include <stdlib.h>

#include "base/random.h"

static const weft__kv_key OTHER = {{1, 3}};

static int32_t match(world *w, run *r, const int32_t *tokens, int32_t n)
{
    int32_t peek = weft__kv_prefix_peek(w->tree, r->root, tokens, n);
    int32_t got = weft__kv_prefix_match(w->tree, r->root, tokens, n, r->seq, NULL);
    assert_int_equal(got, peek);
    assert_int_equal(got, weft__kv_seq_length(r->seq));
    memcpy(r->token, tokens, (size_t)got * sizeof *tokens);
    check_run(w, r);
    return got;
}

/* Has the tree evict until n pages of the group are free; 0 when it cannot have so many. */
static int evict(world *w, int group, int32_t n)
{
    int32_t page[1024], taken = 0;
    while (taken < n && (page[taken] = weft__kv_page_take(w->pool, group)) >= 0) taken++;
    for (int32_t i = 0; i < taken; i++) weft__kv_page_release(w->pool, group, page[i]);
    return taken == n;
}

static int32_t insert(world *w, run *r, int32_t n)
{
    return weft__kv_prefix_insert(w->tree, r->root, r->token, n, r->seq);
}

/* ---- single claims ---- */

/* No more than that is held: idle pages go at once, those in use as soon as they are idle; what stays is as it was. */
static void a_limit_is_kept_as_far_as_pages_are_not_in_use(void **state)
{
    (void)state;
    size_t live = weft__alloc_live();
    world w = {.n_groups = 1, .group = {full(16)}, .n_pages = {12}};
    run a = {0}, b = {0}, c = {0};
    int32_t t[CTX];
    count_up(t, CTX);
    open_world(&w);
    begin(&w, &a, ROOT);
    assert_true(extend(&w, &a, t, 64));
    assert_int_equal(insert(&w, &a, 64), 64);
    begin(&w, &b, OTHER);
    assert_true(extend(&w, &b, t, 64));
    assert_int_equal(insert(&w, &b, 64), 64);
    weft__kv_seq_destroy(&b.seq); /* four pages are in use, four idle */
    assert_int_equal(weft__kv_pool_limit(w.pool, 0, 6), 2);
    assert_int_equal(weft__kv_pool_held_pages(w.pool, 0), 6);
    assert_int_equal(weft__kv_pool_available_pages(w.pool, 0), 2);
    assert_int_equal(weft__kv_pool_limit(w.pool, 0, 3), 2); /* and one too many is in use */
    assert_int_equal(weft__kv_pool_held_pages(w.pool, 0), 4);
    assert_int_equal(weft__kv_pool_free_pages(w.pool, 0), 0);
    assert_int_equal(weft__kv_pool_available_pages(w.pool, 0), 0);
    assert_int_equal(weft__kv_page_take(w.pool, 0), -1);
    weft__kv_pool_give_back(w.pool);
    check_run(&w, &a);
    weft__kv_seq_destroy(&a.seq);
    assert_int_equal(weft__kv_pool_limit(w.pool, 0, 3), 1);
    begin(&w, &c, ROOT);
    assert_false(extend(&w, &c, t, 64));
    assert_true(extend(&w, &c, t, 48));
    assert_int_equal(weft__kv_pool_held_pages(w.pool, 0), 3);
    weft__kv_pool_limit(w.pool, 0, 12);
    assert_true(extend(&w, &c, t, 48));
    check_run(&w, &c);
    weft__kv_seq_destroy(&c.seq);
    close_world(&w);
    assert_int_equal(weft__alloc_live(), live);
}

static void a_second_request_begins_where_the_first_was(void **state)
{
    (void)state;
    size_t live = weft__alloc_live();
    world w = {.n_groups = 1, .group = {full(16)}, .n_pages = {20}};
    run a = {0}, b = {0}, c = {0};
    int32_t t[CTX];
    count_up(t, CTX);
    open_world(&w);
    begin(&w, &a, ROOT);
    assert_true(extend(&w, &a, t, 40));
    assert_int_equal(insert(&w, &a, 40), 40);
    begin(&w, &b, ROOT);
    assert_int_equal(match(&w, &b, t, 60), 40);
    assert_int_equal(weft__kv_pool_free_pages(w.pool, 0), 17); /* shared: nothing was taken */
    assert_true(extend(&w, &b, t + 40, 20));
    assert_int_equal(weft__kv_pool_free_pages(w.pool, 0),
                     15); /* a new one, and a copy of the partial one before it is written */
    t[40] = 49;
    assert_true(extend(&w, &a, t + 40, 3));
    assert_int_equal(weft__kv_pool_free_pages(w.pool, 0), 14); /* and another copy: the tree keeps the page */
    check_run(&w, &a);
    check_run(&w, &b);
    assert_int_equal(insert(&w, &a, 43), 43);
    begin(&w, &c, OTHER);
    assert_int_equal(match(&w, &c, t, 40), 0); /* another root shares nothing */
    weft__kv_prefix_stats s;
    weft__kv_prefix_get_stats(w.tree, &s);
    assert_int_equal(s.n_lookups, 2);
    assert_int_equal(s.n_hits, 1);
    assert_int_equal(s.tokens_reused, 40);
    assert_int_equal(s.n_roots, 1);
    assert_int_equal(s.n_tokens, 43);
    weft__kv_seq_destroy(&a.seq);
    weft__kv_seq_destroy(&b.seq);
    weft__kv_seq_destroy(&c.seq);
    close_world(&w);
    assert_int_equal(weft__alloc_live(), live);
}

static void a_match_ends_inside_a_page(void **state)
{
    (void)state;
    world w = {.n_groups = 1, .group = {full(16)}, .n_pages = {20}};
    int32_t t[CTX], u[CTX];
    count_up(t, CTX);
    open_world(&w);
    run a = {0};
    begin(&w, &a, ROOT);
    assert_true(extend(&w, &a, t, 64));
    assert_int_equal(insert(&w, &a, 64), 64);
    for (int32_t differs = 0; differs < 64; differs++) {
        run b = {0};
        count_up(u, CTX);
        u[differs] = 77;
        begin(&w, &b, ROOT);
        assert_int_equal(match(&w, &b, u, 64), differs);
        assert_true(extend(&w, &b, u + differs, 64 - differs));
        check_run(&w, &b);
        check_run(&w, &a);
        weft__kv_seq_destroy(&b.seq);
    }
    run shorter = {.root = ROOT};
    assert_int_equal(weft__kv_seq_create(w.pool, 40, &shorter.seq, NULL), WEFT_OK);
    assert_int_equal(weft__kv_prefix_match(w.tree, ROOT, t, 64, shorter.seq, NULL), 40); /* no more than its context */
    weft__kv_seq_destroy(&shorter.seq);
    weft__kv_seq_destroy(&a.seq);
    close_world(&w);
}

/* Two requests that evaluate the same prompt at once end up with one copy of it. */
static void equal_pages_are_kept_once(void **state)
{
    (void)state;
    world w = {.n_groups = 1, .group = {full(16)}, .n_pages = {20}};
    run a = {0}, b = {0};
    int32_t t[CTX];
    count_up(t, CTX);
    open_world(&w);
    begin(&w, &a, ROOT);
    begin(&w, &b, ROOT);
    assert_true(extend(&w, &a, t, 80));
    assert_true(extend(&w, &b, t, 80));
    assert_int_equal(weft__kv_pool_free_pages(w.pool, 0), 10);
    insert(&w, &a, 80);
    insert(&w, &b, 80);
    assert_int_equal(weft__kv_pool_free_pages(w.pool, 0), 15);
    check_run(&w, &b);
    weft__kv_seq_destroy(&a.seq);
    assert_int_equal(weft__kv_pool_available_pages(w.pool, 0), 15); /* b is using them */
    weft__kv_seq_destroy(&b.seq);
    assert_int_equal(weft__kv_pool_available_pages(w.pool, 0), 20);
    assert_int_equal(weft__kv_pool_free_pages(w.pool, 0), 15);
    close_world(&w);
}

/* Four prefixes fill the pool; the one used least recently goes, from its end; what is in use stays. */
static void pressure_evicts_what_was_idle_longest(void **state)
{
    (void)state;
    world w = {.n_groups = 1, .group = {full(16)}, .n_pages = {8}};
    int32_t t[4][32];
    run r = {0}, held = {0};
    open_world(&w);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 32; j++) t[i][j] = 100 * i + j;
        begin(&w, &r, ROOT);
        assert_true(extend(&w, &r, t[i], 32));
        assert_int_equal(insert(&w, &r, 32), 32);
        weft__kv_seq_destroy(&r.seq);
    }
    assert_int_equal(weft__kv_pool_free_pages(w.pool, 0), 0);
    begin(&w, &held, ROOT);
    assert_int_equal(match(&w, &held, t[1], 32), 32); /* in use */
    begin(&w, &r, ROOT);
    assert_int_equal(match(&w, &r, t[0], 32), 32); /* used again just now */
    weft__kv_seq_destroy(&r.seq);
    begin(&w, &r, OTHER);
    assert_true(extend(&w, &r, t[0], 16));
    assert_int_equal(weft__kv_prefix_peek(w.tree, ROOT, t[2], 32), 16);
    assert_true(extend(&w, &r, t[1], 16));
    assert_int_equal(weft__kv_prefix_peek(w.tree, ROOT, t[2], 32), 0);
    assert_true(extend(&w, &r, t[1], 32));
    assert_int_equal(weft__kv_prefix_peek(w.tree, ROOT, t[3], 32), 0);
    assert_int_equal(weft__kv_prefix_peek(w.tree, ROOT, t[0], 32), 32);
    assert_true(extend(&w, &r, t[1], 32)); /* the rest but what is held */
    assert_int_equal(weft__kv_pool_available_pages(w.pool, 0), 0);
    assert_int_equal(weft__kv_prefix_peek(w.tree, ROOT, t[1], 32), 32);
    check_run(&w, &held);
    weft_error err = {0};
    run none = {0};
    begin(&w, &none, OTHER);
    assert_int_equal(weft__kv_seq_reserve(none.seq, 1, &err), WEFT_LIMIT);
    weft__kv_prefix_stats s;
    weft__kv_prefix_get_stats(w.tree, &s);
    assert_int_equal(s.n_evicted_pages, 6);
    assert_int_equal(s.n_evicted_nodes, 6);
    weft__kv_seq_destroy(&none.seq);
    weft__kv_seq_destroy(&held.seq);
    weft__kv_seq_destroy(&r.seq);
    close_world(&w);
}

/* A match at n needs the window before n: where the sequence had dropped it, the match is shortened, never wrong. */
static void windows_shorten_matches_truthfully(void **state)
{
    (void)state;
    world w = {.n_groups = 2, .group = {full(16), windowed(16, 20)}, .n_pages = {40, 40}};
    int32_t t[CTX];
    run a = {0}, b = {0};
    count_up(t, CTX);
    open_world(&w);
    begin(&w, &a, ROOT);
    for (int i = 0; i < 8; i++) assert_true(extend(&w, &a, t + 10 * i, 10));
    assert_int_equal(insert(&w, &a, 80), 80);
    assert_int_equal(weft__kv_prefix_peek(w.tree, ROOT, t, 80), 80);
    assert_int_equal(weft__kv_prefix_peek(w.tree, ROOT, t, CTX), 80);
    assert_int_equal(weft__kv_prefix_peek(w.tree, ROOT, t, 70), 70); /* entries 3.. are there: position 51 and later */
    assert_int_equal(weft__kv_prefix_peek(w.tree, ROOT, t, 60), 0);
    begin(&w, &b, ROOT);
    assert_int_equal(match(&w, &b, t, 78), 78);
    assert_true(extend(&w, &b, t + 78, 4));
    check_run(&w, &b);
    weft__kv_seq_destroy(&b.seq);
    /* Somebody who evaluates the beginning himself heals it. */
    begin(&w, &b, ROOT);
    for (int i = 0; i < 6; i++) {
        assert_true(extend(&w, &b, t + 10 * i, 10));
        insert(&w, &b, 10 * (i + 1));
    }
    for (int32_t n = 1; n <= 48; n++) assert_int_equal(weft__kv_prefix_peek(w.tree, ROOT, t, n), n);
    assert_int_equal(weft__kv_prefix_peek(w.tree, ROOT, t, 80), 80);
    weft__kv_seq_destroy(&b.seq);
    weft__kv_seq_destroy(&a.seq);
    /* Pressure in the window's group alone takes single pages; the nodes stay. */
    int64_t nodes = 5;
    weft__kv_prefix_stats s;
    assert_true(evict(&w, 1, 39 - 2));
    weft__kv_prefix_get_stats(w.tree, &s);
    assert_int_equal(s.n_nodes, nodes);
    assert_int_equal(weft__kv_pool_free_pages(w.pool, 0), 35);
    assert_int_equal(weft__kv_pool_available_pages(w.pool, 1), 40);
    assert_true(evict(&w, 1, 40));
    weft__kv_prefix_get_stats(w.tree, &s);
    assert_int_equal(s.n_nodes, 0); /* without any window they serve nobody */
    assert_int_equal(weft__kv_pool_free_pages(w.pool, 0), 40);
    close_world(&w);
}

static void forgetting_a_root_leaves_the_others(void **state)
{
    (void)state;
    world w = {.n_groups = 1, .group = {full(8)}, .n_pages = {40}};
    int32_t t[CTX];
    run a = {0};
    count_up(t, CTX);
    open_world(&w);
    for (uint64_t k = 0; k < 6; k++) {
        weft__kv_key key = {{k % 2, 5 - k}};
        begin(&w, &a, key);
        assert_true(extend(&w, &a, t, 30));
        assert_int_equal(insert(&w, &a, 30), 30);
        weft__kv_seq_destroy(&a.seq);
    }
    weft__kv_key key = {{1, 2}};
    weft__kv_prefix_forget(w.tree, &key);
    weft__kv_prefix_forget(w.tree, &key);
    assert_int_equal(weft__kv_prefix_peek(w.tree, key, t, 30), 0);
    for (uint64_t k = 0; k < 6; k++)
        if (k != 3) assert_int_equal(weft__kv_prefix_peek(w.tree, (weft__kv_key){{k % 2, 5 - k}}, t, 30), 30);
    close_world(&w);
}

static void one_tree_per_pool(void **state)
{
    (void)state;
    world w = {.n_groups = 1, .group = {full(8)}, .n_pages = {2}};
    weft__kv_prefix *second;
    weft_error err = {0};
    open_world(&w);
    assert_int_equal(weft__kv_prefix_create(w.pool, &second, &err), WEFT_STATE);
    assert_null(second);
    close_world(&w);
}

/* ---- memory that fails ---- */

static int use_once(void *arg)
{
    world w = {.n_groups = 2, .group = {full(16), windowed(8, 20)}, .n_pages = {20, 40}};
    int32_t t[CTX], got;
    int ok = 0;
    run a = {.root = ROOT}, b = {.root = ROOT};
    (void)arg;
    count_up(t, CTX);
    if (weft__kv_pool_create(w.group, 2, w.n_pages, WEFT_F16, &w.pool, NULL)) return 0;
    if (weft__kv_prefix_create(w.pool, &w.tree, NULL)) goto done;
    if (weft__kv_seq_create(w.pool, CTX, &a.seq, NULL) || weft__kv_seq_create(w.pool, CTX, &b.seq, NULL)) goto done;
    assert_true(extend(&w, &a, t, 40));
    ok = insert(&w, &a, 40) == 40;
    got = match(&w, &b, t, CTX);
    assert_true(got <= 40);
    for (int32_t i = 40; i < 50; i++) t[i] = 999;
    assert_true(extend(&w, &b, t + got, 50 - got));
    ok &= insert(&w, &b, 50) == 50;
    check_run(&w, &a);
    check_run(&w, &b);
done:
    weft__kv_seq_destroy(&a.seq);
    weft__kv_seq_destroy(&b.seq);
    weft__kv_prefix_destroy(&w.tree);
    for (int g = 0; g < 2; g++) assert_int_equal(weft__kv_pool_free_pages(w.pool, g), w.n_pages[g]);
    weft__kv_pool_destroy(&w.pool);
    return ok;
}

static void survives_every_allocation_that_fails(void **state)
{
    (void)state;
    assert_true(fail_each(use_once, NULL) > 15);
}

/* ---- random operations ---- */

enum { RUNS = 6, KNOWN = 400 };

typedef struct fuzzed {
    world w;
    weft__rng rng;
    run run[RUNS];
    int32_t known[KNOWN][CTX], n_known[KNOWN]; /* what was evaluated lately, to ask for again */
    weft__kv_key known_root[KNOWN];
    int at, never_evicts;
    int64_t n_matched, n_full, n_inserted;
} fuzzed;

static int32_t below(fuzzed *f, int32_t n)
{
    return (int32_t)weft__rng_below(&f->rng, (uint64_t)n);
}

/* The longest common prefix with anything known: what a tree that never forgot would match. */
static int32_t naive(const fuzzed *f, weft__kv_key root, const int32_t *tokens, int32_t n)
{
    int32_t best = 0;
    for (int k = 0; k < KNOWN; k++) {
        int32_t i = 0;
        if (memcmp(&f->known_root[k], &root, sizeof root)) continue;
        while (i < n && i < f->n_known[k] && f->known[k][i] == tokens[i]) i++;
        if (i > best) best = i;
    }
    return best;
}

static void learn(fuzzed *f, const run *r, int32_t n)
{
    memcpy(f->known[f->at], r->token, (size_t)n * sizeof *r->token);
    f->n_known[f->at] = n;
    f->known_root[f->at] = r->root;
    f->at = (f->at + 1) % KNOWN;
}

static int32_t invent(fuzzed *f, int32_t *tokens)
{
    int32_t n = 1 + below(f, CTX), from = below(f, KNOWN), keep = f->n_known[from];
    if (below(f, 3)) keep = keep ? below(f, keep + 1) : 0;
    if (keep > n) keep = n;
    memcpy(tokens, f->known[from], (size_t)keep * sizeof *tokens);
    for (int32_t i = keep; i < n; i++) tokens[i] = below(f, 3);
    return n;
}

static void op_begin(fuzzed *f, run *r)
{
    int32_t tokens[CTX], n = invent(f, tokens);
    begin(&f->w, r, below(f, 4) ? ROOT : OTHER);
    int32_t got = match(&f->w, r, tokens, n), could = naive(f, r->root, tokens, n);
    f->n_matched += got > 0;
    f->n_full += got == could && got > 0;
    if (f->never_evicts && f->w.n_groups == 1 && f->w.group[0].window == 0) assert_int_equal(got, could);
    for (int32_t at = got, step; at < n; at += step) {
        step = 1 + below(f, 20);
        if (step > n - at) step = n - at;
        if (!extend(&f->w, r, tokens + at, step)) break;
        if (below(f, 4) == 0) insert(&f->w, r, at + step), learn(f, r, at + step);
    }
}

static void op_extend(fuzzed *f, run *r)
{
    int32_t tokens[CTX], left = CTX - weft__kv_seq_length(r->seq), n = 1 + below(f, 8);
    for (int32_t i = 0; i < n; i++) tokens[i] = below(f, 3);
    if (n <= left) extend(&f->w, r, tokens, n);
}

static void op_insert(fuzzed *f, run *r)
{
    int32_t length = weft__kv_seq_length(r->seq), n = below(f, 2) ? length : below(f, length + 1);
    int32_t got = insert(&f->w, r, n);
    assert_true(got <= n);
    if (f->w.n_groups == 1 && f->w.group[0].window == 0) assert_int_equal(got, n);
    f->n_inserted += got > 0;
    learn(f, r, n);
}

static void op_evict(fuzzed *f)
{
    if (f->never_evicts) return;
    int g = below(f, f->w.n_groups);
    int32_t can = weft__kv_pool_available_pages(f->w.pool, g);
    assert_int_equal(evict(&f->w, g, can + 1), 0); /* everything that can go, and not one page more */
    assert_int_equal(weft__kv_pool_free_pages(f->w.pool, g), can);
}

static void operate(fuzzed *f)
{
    run *r = &f->run[below(f, RUNS)];
    int what = below(f, 100);
    if (!r->seq) {
        op_begin(f, r);
    } else if (what < 40) op_extend(f, r);
    else if (what < 60) op_insert(f, r);
    else if (what < 75) weft__kv_seq_trim(r->seq, below(f, weft__kv_seq_length(r->seq) + 1));
    else if (what < 97) weft__kv_seq_destroy(&r->seq);
    else if (what == 97) op_evict(f);
    else if (what == 98 && !f->never_evicts) weft__kv_prefix_forget(f->w.tree, below(f, 8) ? &OTHER : NULL);
}

/* Free, in use and idle pages are all there are. */
static void check_pages(const fuzzed *f)
{
    for (int g = 0; g < f->w.n_groups; g++) {
        char used[1024] = {0};
        int32_t n_used = 0;
        for (int i = 0; i < RUNS; i++) {
            if (!f->run[i].seq) continue;
            weft_seq_view v = weft__kv_seq_view(f->run[i].seq);
            for (int32_t k = 0; k < v.n_pages[g]; k++)
                if (v.pages[g][k] >= 0) used[v.pages[g][k]] = 1;
        }
        for (int32_t p = 0; p < f->w.n_pages[g]; p++) n_used += used[p];
        assert_int_equal(weft__kv_pool_available_pages(f->w.pool, g), f->w.n_pages[g] - n_used);
    }
}

static void random_operations(world w, uint64_t seed, int n_ops, int never_evicts)
{
    fuzzed *f = calloc(1, sizeof *f);
    size_t live = weft__alloc_live();
    f->w = w;
    f->never_evicts = never_evicts;
    weft__rng_seed(&f->rng, seed);
    open_world(&f->w);
    for (int i = 0; i < n_ops; i++) {
        if (never_evicts && i % (KNOWN / 8) == 0) { /* the naive model forgets only together with the tree */
            for (int k = 0; k < RUNS; k++) weft__kv_seq_destroy(&f->run[k].seq);
            weft__kv_prefix_forget(f->w.tree, NULL);
            memset(f->n_known, 0, sizeof f->n_known);
        }
        operate(f);
        for (int k = 0; k < RUNS; k++)
            if (f->run[k].seq) check_run(&f->w, &f->run[k]);
        check_pages(f);
    }
    assert_true(f->n_matched > n_ops / 100);
    assert_true(f->n_inserted > n_ops / 100);
    weft__kv_prefix_stats s;
    weft__kv_prefix_get_stats(f->w.tree, &s);
    assert_true(never_evicts ? s.n_evicted_pages == 0 : s.n_evicted_pages > 0);
    if (getenv("WEFT_TEST_VERBOSE"))
        print_message("%d operations: %lld matches (%lld as long as possible), %lld insertions, %llu evicted\n", n_ops,
                      (long long)f->n_matched, (long long)f->n_full, (long long)f->n_inserted,
                      (unsigned long long)s.n_evicted_pages);
    for (int k = 0; k < RUNS; k++) weft__kv_seq_destroy(&f->run[k].seq);
    weft__kv_prefix_forget(f->w.tree, NULL);
    weft__kv_prefix_get_stats(f->w.tree, &s);
    assert_int_equal(s.n_nodes, 0);
    assert_int_equal(s.n_roots, 0);
    assert_int_equal(s.n_tokens, 0);
    close_world(&f->w);
    free(f);
    assert_int_equal(weft__alloc_live(), live);
}

static void nothing_wrong_is_ever_reused(void **state)
{
    (void)state;
    const world worlds[] = {
        {.n_groups = 1, .group = {full(8)}, .n_pages = {40}},
        {.n_groups = 1, .group = {full(1)}, .n_pages = {200}},
        {.n_groups = 2, .group = {full(8), windowed(8, 20)}, .n_pages = {40, 24}},
        {.n_groups = 2, .group = {windowed(4, 9), full(16)}, .n_pages = {40, 24}},
        {.n_groups = 2, .group = {full(4), windowed(8, 1)}, .n_pages = {60, 14}},
        {.n_groups = 1, .group = {windowed(8, 30)}, .n_pages = {30}},
        {.n_groups = 2, .group = {windowed(8, 30), windowed(4, 5)}, .n_pages = {40, 36}},
    };
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++)
        for (uint64_t seed = 0; seed < 2; seed++) random_operations(worlds[i], seed, 12000, 0);
}

static void a_tree_that_never_evicts_forgets_nothing(void **state)
{
    (void)state;
    world w = {.n_groups = 1, .group = {full(8)}, .n_pages = {1000}};
    random_operations(w, 7, 8000, 1);
    w = (world){.n_groups = 2, .group = {full(8), windowed(8, 20)}, .n_pages = {1000, 1000}};
    random_operations(w, 8, 8000, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_is_kept_as_far_as_pages_are_not_in_use),
        cmocka_unit_test(a_second_request_begins_where_the_first_was),
        cmocka_unit_test(a_match_ends_inside_a_page),
        cmocka_unit_test(equal_pages_are_kept_once),
        cmocka_unit_test(pressure_evicts_what_was_idle_longest),
        cmocka_unit_test(windows_shorten_matches_truthfully),
        cmocka_unit_test(forgetting_a_root_leaves_the_others),
        cmocka_unit_test(one_tree_per_pool),
        cmocka_unit_test(survives_every_allocation_that_fails),
        cmocka_unit_test(nothing_wrong_is_ever_reused),
        cmocka_unit_test(a_tree_that_never_evicts_forgets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
