// SPDX-License-Identifier: Apache-2.0
/* adapt_store_threads.c: threads that lease what others load, replace and remove get what the name, or the number,
 * stood for. */
#include "unit/adapt_store_fixture.h"

#include <pthread.h>

#include "claims.h"

enum { N_READERS = 3, N_NAMES = 6, ROUNDS = CLAIMS_OF_SPEED ? 400 : 60, ABSENT = -1, EITHER = 2 };

/* What a name stands for, 0 or 1 of its contents: exactly so while the generation stays the same and even. */
typedef struct truth {
    _Atomic unsigned generation;
    _Atomic int loaded;
} truth;
static truth truths[N_NAMES];
static _Atomic int rewritten; /* the last round was */
static weft__adapt_id content_ids[N_NAMES][2];

/* The contents of name i: rank 1 + i % 3, and the first number of B tells it from all others. */
static const char *write_content(int i, int content)
{
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    return write_adapter(name, (uint64_t)(2 * i + content), 1 + (uint32_t)i % 3, 1 + (float)(i % 3), 0);
}

static float content_b0(int i, int content)
{
    return made_value((uint64_t)(2 * i + content) + 1, 0);
}

typedef struct worker {
    weft__adapt_store *s;
    uint64_t seed;
    int wrong, right;
} worker;

/* The only one that changes files and what the names stand for. */
static void *rewrite(void *arg)
{
    worker *w = arg;
    weft__rng rng;
    int lazy[N_NAMES] = {0};
    weft__rng_seed(&rng, w->seed);
    for (int i = 0; i < ROUNDS; i++) {
        char name[16];
        int which = (int)weft__rng_below(&rng, N_NAMES), act = (int)weft__rng_below(&rng, 5),
            content = (int)weft__rng_below(&rng, 2);
        truth *t = &truths[which];
        snprintf(name, sizeof name, "n%d", which);
        atomic_fetch_add(&t->generation, 1);
        const char *path = write_content(which, content);
        if (act == 0) {
            weft__adapt_store_remove(w->s, name, NULL);
            t->loaded = ABSENT;
        } else if (act < 4) {
            lazy[which] = act == 1;
            if (weft__adapt_store_add(w->s, name, path, 1,
                                      WEFT__ADAPT_REPLACE | (lazy[which] ? (uint32_t)WEFT__ADAPT_LAZY : 0), NULL))
                w->wrong++;
            t->loaded = content;
        } else if (lazy[which] && t->loaded != ABSENT) {
            t->loaded = EITHER; /* whether it was read before, nobody says */
        }
        atomic_fetch_add(&t->generation, 1);
        sched_yield();
    }
    rewritten = 1;
    return NULL;
}

/* One lease, which must be of what the name stood for, if that stayed the same. */
static void look(worker *w, int which)
{
    char name[16];
    weft__adapt_lease *l;
    const truth *t = &truths[which];
    snprintf(name, sizeof name, "n%d", which);
    weft__adapt_ref ask = {name, 1, 0};
    unsigned generation = t->generation;
    int loaded = t->loaded;
    weft_status st = weft__adapt_store_lease(w->s, &ask, 1, &l, NULL);
    int stayed = generation % 2 == 0 && t->generation == generation;
    if (st && st != WEFT_NOT_FOUND && st != WEFT_BUSY && st != WEFT_STATE) w->wrong++;
    if (stayed && (st == WEFT_NOT_FOUND) != (loaded == ABSENT)) w->wrong++;
    if (st) return;
    const packed *p = weft__adapt_lease_packed(l);
    const weft__adapt_id id = weft__adapt_lease_id(l);
    float b0 = p->b0;
    int content = b0 == content_b0(which, 1);
    if (b0 != content_b0(which, content) || memcmp(&id, &content_ids[which][content], sizeof id)) w->wrong++;
    if (stayed && loaded != EITHER && content != loaded) w->wrong++;
    sched_yield();
    if (p->b0 != b0 || p->rank != 1 + which % 3) w->wrong++;
    w->right += stayed;
    weft__adapt_store_release(w->s, &l);
}

/* Leases while there are changes, and a name of its own that comes and goes. */
static void *work(void *arg)
{
    worker *w = arg;
    weft__rng rng;
    char own[16], name[16];
    weft__rng_seed(&rng, w->seed);
    snprintf(own, sizeof own, "own%d", (int)w->seed);
    while (!rewritten) {
        int which = (int)weft__rng_below(&rng, N_NAMES), act = (int)weft__rng_below(&rng, 10);
        snprintf(name, sizeof name, "n%d", which);
        if (act == 0) weft__adapt_store_remove(w->s, own, NULL);
        else if (act == 1)
            w->wrong += weft__adapt_store_add(w->s, own, place(name), 1, WEFT__ADAPT_REPLACE, NULL) != WEFT_OK;
        else look(w, which);
    }
    return NULL;
}

/* Files of all names, and the ids of their contents. */
static void learn_contents(void)
{
    weft__adapt_store *s = new_store(3000);
    for (int i = 0; i < N_NAMES; i++)
        for (int content = 0; content < 2; content++) {
            add(s, "a", write_content(i, content), WEFT__ADAPT_REPLACE);
            weft__adapt_lease *l = lease(s, "a", 1);
            assert_true(((const packed *)weft__adapt_lease_packed(l))->b0 == content_b0(i, content));
            content_ids[i][content] = weft__adapt_lease_id(l);
            weft__adapt_store_release(s, &l);
            truths[i].loaded = ABSENT;
        }
    weft__adapt_store_destroy(&s);
}

static void threads_get_what_they_ask_for(void **state)
{
    (void)state;
    pthread_t threads[1 + N_READERS];
    worker workers[1 + N_READERS];
    int right = 0;
    learn_contents();
    weft__adapt_store *s = new_store(3000);
    for (int i = 0; i <= N_READERS; i++) workers[i] = (worker){.s = s, .seed = (uint64_t)i + 1};
    for (int i = 0; i <= N_READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i ? work : rewrite, &workers[i]), 0);
    for (int i = 0; i <= N_READERS; i++) {
        pthread_join(threads[i], NULL);
        right += workers[i].right;
    }
    for (int i = 0; i <= N_READERS; i++) assert_int_equal(workers[i].wrong, 0);
    assert_true(right > 0);
    weft__adapt_store_destroy(&s);
}

/* ---- by number ---- */

/* Takes n0 away and loads it again, with the other content each time: under another number. */
static void *come_and_go(void *arg)
{
    worker *w = arg;
    for (int i = 0; i < ROUNDS; i++) {
        const char *path = write_content(0, i % 2);
        weft__adapt_store_remove(w->s, "n0", NULL);
        if (weft__adapt_store_add(w->s, "n0", path, 1, 0, NULL)) w->wrong++;
        sched_yield();
    }
    rewritten = 1;
    return NULL;
}

static void keep_info(void *arg, const weft__adapt_entry_info *info)
{
    *(weft__adapt_entry_info *)arg = *info;
}

/* What a number stood for when it was looked up is what is leased by it, or nothing is. */
static void *lease_by_number(void *arg)
{
    worker *w = arg;
    weft__adapt_id seen[2];
    for (int c = 0; c < 2; c++) { /* the ids of adapters, not of stacks */
        weft__adapt *a = open_adapter(place(c ? "c1" : "c0"));
        seen[c] = a->id;
        weft__adapt_close(&a);
    }
    while (!rewritten) {
        weft__adapt_entry_info info;
        weft__adapt_lease *l;
        if (!weft__adapt_store_find(w->s, "n0", keep_info, &info)) continue;
        int content = !memcmp(&info.id, &seen[1], sizeof info.id);
        if (!content && memcmp(&info.id, &seen[0], sizeof info.id)) w->wrong++;
        sched_yield();
        weft__adapt_ref ask = {NULL, 1, info.index};
        weft_status st = weft__adapt_store_lease(w->s, &ask, 1, &l, NULL);
        if (st && st != WEFT_NOT_FOUND && st != WEFT_STATE) w->wrong++;
        if (st) continue;
        weft__adapt_lease *again = weft__adapt_store_share(w->s, l);
        const weft__adapt_id id = weft__adapt_lease_id(l);
        weft__adapt_store_release(w->s, &l);
        if (memcmp(&id, &content_ids[0][content], sizeof id) ||
            ((const packed *)weft__adapt_lease_packed(again))->b0 != content_b0(0, content))
            w->wrong++;
        weft__adapt_store_release(w->s, &again);
        w->right++;
    }
    return NULL;
}

static void a_number_never_means_another(void **state)
{
    (void)state;
    pthread_t threads[3];
    worker workers[3];
    weft__adapt_ref ask = {NULL, 1, 7};
    weft__adapt_lease *l;
    weft_error err = {0};
    learn_contents();
    for (int c = 0; c < 2; c++) write_adapter(c ? "c1" : "c0", (uint64_t)c, 1, 1, 0);
    weft__adapt_store *s = new_store(3000);
    assert_int_equal(weft__adapt_store_lease(s, &ask, 1, &l, &err), WEFT_NOT_FOUND);
    assert_string_equal(err.message, "there is no adapter with number 7");
    rewritten = 0;
    for (int i = 0; i < 3; i++) workers[i] = (worker){.s = s};
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i ? lease_by_number : come_and_go, &workers[i]), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].wrong, 0);
    }
    assert_true(workers[1].right + workers[2].right > 0);
    weft__adapt_store_destroy(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_get_what_they_ask_for),
        cmocka_unit_test(a_number_never_means_another),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
