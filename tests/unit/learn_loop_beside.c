// SPDX-License-Identifier: Apache-2.0
/* learn_loop_beside.c: learning beside requests (learn/teach_loop.h): they take the core from it, without a share it
 * waits for them, and who waits for it gives it its precedence back. */
#include <pthread.h>

#include "learn_loop_room.h"

#ifdef SCHED_IDLE
static atomic_int lifted; /* the last thread that another one wanted to have its precedence again */

int __real_sched_setscheduler(pid_t pid, int policy, const struct sched_param *param);
int __wrap_sched_setscheduler(pid_t pid, int policy, const struct sched_param *param);
int __wrap_sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
    if (pid && pid != gettid() && policy == SCHED_OTHER) atomic_store(&lifted, pid);
    return __real_sched_setscheduler(pid, policy, param);
}

enum { NOBODY, NEXT, HELD, LIFTED };
static atomic_int held; /* a learner without precedence */

static void hold(void)
{
    int next = NEXT;
    if (!atomic_compare_exchange_strong(&held, &next, HELD)) return;
    for (int patience = 20000; atomic_load(&lifted) != gettid() && patience > 0; patience--)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    if (atomic_load(&lifted) == gettid()) atomic_store(&held, LIFTED);
}
#endif

/* Beside requests a share of its time is what they leave; all of its time it takes as any thread of low precedence. */
static void requests_take_the_core_from_it(void **state)
{
    (void)state;
#ifdef SCHED_IDLE
    static const float share[] = {0.5f, 1};
    for (int busy = 0; busy < 2; busy++) {
        for (int i = 0; i < 2; i++) {
            lesson l;
            room r;
            lesson_open(&l);
            room_open(&r, &l, share[i]);
            atomic_store(&r.s.busy, busy);
            put(&r, "ann", 1, 1);
            weft__teach_loop_wait(r.loop);
            assert_int_equal(now(&r, "ann", NULL), 1);
            assert_int_equal(atomic_load(&r.s.n_idle) > 0, busy && share[i] < 1);
            room_close(&r);
            lesson_close(&l);
        }
    }
#else
    skip();
#endif
}

#ifdef SCHED_IDLE
static void *forget_ann(void *loop)
{
    weft__teach_loop_forget(loop, "ann");
    return NULL;
}
#endif

/* Whether the system allows it or not. */
static void who_forgets_or_ends_lifts_it(void **state)
{
    (void)state;
#ifdef SCHED_IDLE
    for (int ends = 0; ends < 2; ends++) {
        lesson l;
        room r;
        pthread_t forgets;
        lesson_open(&l);
        room_open(&r, &l, 0.5f);
        atomic_store(&lifted, 0);
        atomic_store(&held, NEXT);
        r.s.is_idle = hold;
        atomic_store(&r.s.busy, 1);
        put(&r, "ann", 1, 1);
        while (atomic_load(&held) != HELD) nanosleep(&(struct timespec){0, 100000}, NULL);
        if (!ends) {
            assert_int_equal(pthread_create(&forgets, NULL, forget_ann, r.loop), 0);
            pthread_join(forgets, NULL);
        } else {
            weft__teach_loop_free(&r.loop);
        }
        assert_int_equal(atomic_load(&held), LIFTED);
        room_close(&r);
        lesson_close(&l);
    }
#else
    skip();
#endif
}

/* Without a share nothing is learned while requests run; and who ends does not wait for that. */
static void without_a_share_it_waits_for_an_idle_moment(void **state)
{
    (void)state;
    lesson l;
    room r;
    const struct timespec moment = {0, 20000000};
    lesson_open(&l);
    room_open(&r, &l, 0);
    atomic_store(&r.s.busy, 1);
    put(&r, "ann", 1, 1);
    nanosleep(&moment, NULL);
    assert_int_equal(now(&r, "ann", NULL), 0);
    atomic_store(&r.s.busy, 0);
    weft__teach_loop_wait(r.loop);
    assert_int_equal(now(&r, "ann", NULL), 1);
    atomic_store(&r.s.busy, 1);
    put(&r, "ann", 3, 2);
    put(&r, "ann", 4, 3);
    room_close(&r);
    lesson_close(&l);
}

static int begin(void **state)
{
    (void)state;
    return folder_make("adapter.gguf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_take_the_core_from_it),
        cmocka_unit_test(who_forgets_or_ends_lifts_it),
        cmocka_unit_test(without_a_share_it_waits_for_an_idle_moment),
    };
    return cmocka_run_group_tests(tests, begin, remove_folder);
}
