// SPDX-License-Identifier: Apache-2.0
/* train_resume.c: training goes on from a checkpoint as if it had never stopped; one that a killed process leaves is
 * whole, one that is damaged or of another training is refused. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapt/adapt.h"
#include "base/clock.h"
#include "folder.h"
#include "train_steps.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEFT_EMULATED)
enum { KILLS = 3 };
#else
enum { KILLS = 12 };
#endif

static void resume_case(const tiny *m, const weft__train_options *o)
{
    weft__trainer *whole = tiny_trainer(m, o), *first = tiny_trainer(m, o), *second = tiny_trainer(m, o);
    static const char state[] = "position 17";
    void *back;
    size_t n;
    steps(whole, 0, 6);
    steps(first, 0, 3);
    assert_int_equal(weft__trainer_save(first, path, state, sizeof state, NULL), WEFT_OK);
    steps(second, 50, 1); /* what was there before the load does not count */
    assert_int_equal(weft__trainer_load(second, path, &back, &n, NULL), WEFT_OK);
    assert_int_equal(n, sizeof state);
    assert_memory_equal(back, state, n);
    assert_int_equal(weft__trainer_steps(second), 3);
    weft__free(back);
    steps(second, 3, 3);
    assert_same_params(whole, second, "resumed");
    weft__trainer_destroy(&second);
    weft__trainer_destroy(&first);
    weft__trainer_destroy(&whole);
}

static void resuming(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[1], WEFT_F32, 24, 40);
    weft__train_options o = lora_options();
    resume_case(m, &o);
    o = tiny_options();
    resume_case(m, &o);
    o.optimizer = WEFT__TRAIN_SGD;
    resume_case(m, &o);
    o = lora_options();
    o.optimizer = WEFT__TRAIN_MUON;
    o.l2_sp = 0.1f; /* where it began is not in the file */
    o.norm_cap = 0.05f;
    resume_case(m, &o);
    assert_int_equal(files_in_folder(), 1);
    tiny_free(m);
}

static void flip(long at)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, at, SEEK_SET);
    int c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 0x10, f);
    fclose(f);
}

/* A bit anywhere: refused, and the trainer is as before; or it was in padding or in a name that nobody reads, and
 * nothing differs. */
static void damaged(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = lora_options();
    weft__trainer *t = tiny_trainer(m, &o), *other = tiny_trainer(m, &o);
    void *back;
    size_t n;
    struct stat size;
    int refused = 0, n_flips = 0;
    steps(t, 0, 1);
    assert_int_equal(weft__trainer_save(t, path, "abc", 3, NULL), WEFT_OK);
    assert_int_equal(stat(path, &size), 0);
    steps(t, 1, 1);
    steps(other, 0, 2);
    for (long at = 0; at < size.st_size; at += 1 + size.st_size / 300, n_flips++) {
        weft_error err = {0};
        flip(at);
        if (weft__trainer_load(t, path, &back, &n, &err)) {
            refused++;
            assert_null(back);
            assert_true(err.message[0]);
            assert_same_params(t, other, "refused");
            assert_int_equal(weft__trainer_steps(t), 2);
        } else {
            weft__free(back);
            steps(t, 1, 1);
            assert_same_params(t, other, "accepted");
        }
        flip(at);
    }
    assert_true(refused > n_flips * 9 / 10);
    tiny_free(m);
    weft__trainer_destroy(&t);
    weft__trainer_destroy(&other);
}

static void other_training(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40), *wider = tiny_new(&TINY_KINDS[0], WEFT_F32, 32, 40),
         *qwen = tiny_new(&TINY_KINDS[3], WEFT_F32, 24, 40);
    weft__train_options o = lora_options();
    weft__trainer *t = tiny_trainer(m, &o);
    assert_int_equal(weft__trainer_save(t, path, NULL, 0, NULL), WEFT_OK);
    const struct {
        const tiny *m;
        int32_t rank;
        float alpha;
        const char *targets;
        int optimizer;
        const char *says;
    } others[] = {{m, 5, 8, NULL, 0, "rank"},           {m, 4, 9, NULL, 0, "scale"},
                  {m, 4, 8, "attn_q", 0, "targets"},    {m, 4, 8, NULL, WEFT__TRAIN_SGD, "optimizer"},
                  {m, 0, 8, NULL, 0, "rank"},           {wider, 4, 8, NULL, 0, "shape"},
                  {qwen, 4, 8, NULL, 0, "architecture"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        weft_error err = {0};
        void *back;
        size_t n;
        o.lora_rank = others[i].rank;
        o.lora_alpha = others[i].alpha;
        o.lora_targets = others[i].targets;
        o.optimizer = others[i].optimizer;
        weft__trainer *x = tiny_trainer(others[i].m, &o);
        assert_int_equal(weft__trainer_load(x, path, &back, &n, &err), WEFT_ARGUMENT);
        if (!strstr(err.message, others[i].says)) fail_msg("'%s' does not name the %s", err.message, others[i].says);
        weft__trainer_destroy(&x);
    }
    weft__trainer_destroy(&t);
    tiny_free(qwen);
    tiny_free(wider);
    tiny_free(m);
}

/* A process that does nothing but step and save; 0 when it was killed, as it should be. */
static void save_for_ever(void)
{
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = lora_options();
    o.n_threads = 1;
    weft__trainer *t = tiny_trainer(m, &o);
    for (int i = 0;; i++) {
        steps(t, i, 1);
        uint64_t step = (uint64_t)weft__trainer_steps(t);
        if (weft__trainer_save(t, path, &step, sizeof step, NULL)) _exit(1);
    }
}

static void killed(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = lora_options();
    weft__rng rng;
    weft__rng_seed(&rng, 8);
    unlink(path);
    for (int i = 0; i < KILLS; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) save_for_ever();
        struct stat there;
        wait_until(!stat(path, &there)); /* the first checkpoint */
        usleep((useconds_t)weft__rng_below(&rng, 30000));
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        weft__trainer *t = tiny_trainer(m, &o), *again = tiny_trainer(m, &o);
        void *back;
        size_t n;
        weft_error err = {0};
        if (weft__trainer_load(t, path, &back, &n, &err)) fail_msg("behind kill %d: %s", i, err.message);
        assert_int_equal(n, sizeof(uint64_t));
        uint64_t step;
        memcpy(&step, back, n);
        assert_int_equal(step, weft__trainer_steps(t));
        steps(again, 0, (int)step);
        assert_same_params(t, again, "behind a kill");
        weft__free(back);
        weft__trainer_destroy(&again);
        weft__trainer_destroy(&t);
        char command[160]; /* what the dead left beside it, and the file, for the next round */
        snprintf(command, sizeof command, "rm -f %s/*", folder);
        assert_int_equal(system(command), 0);
    }
    tiny_free(m);
}

static int make_folder(void **state)
{
    (void)state;
    return folder_make("run.ckpt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed), /* first: it forks, before there are threads */
        cmocka_unit_test(resuming),
        cmocka_unit_test(damaged),
        cmocka_unit_test(other_training),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
