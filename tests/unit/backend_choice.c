// SPDX-License-Identifier: Apache-2.0
/* backend_choice.c: AMX is left out where the tier below it is faster here, and nothing else is: by rates that are
 * measured once and kept for this machine alone; what is kept for another, damaged or cannot be kept is no rate. */
#include "unit/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/choice.h"
#include "kernels/kernels.h"

#define KEY "weft 1.0, 0000-1111, Some Processor, matmul_a, matmul_b"
#define LINE KEY ": 930000 487000\n"

static char folder[64], kept[128];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/weft-choice-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(kept, sizeof kept, "%s/made/later/amx.txt", folder);
    snprintf(folder + strlen(folder), sizeof folder - strlen(folder), "/made/later");
    setenv("WEFT_CACHE", folder, 1);
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    folder[strlen(folder) - strlen("/made/later")] = 0;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static void put(const char *text, size_t n)
{
    FILE *f = fopen(kept, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

/* The file as it is; it ends with NUL. */
static size_t get(char *text, size_t room)
{
    FILE *f = fopen(kept, "rb");
    assert_non_null(f);
    const size_t n = fread(text, 1, room - 1, f);
    fclose(f);
    text[n] = 0;
    return n;
}

static void the_faster_one_is_taken(void **state)
{
    (void)state;
    const uint32_t amx = 1u << WEFT__TIER_AMX, all = (1u << WEFT__TIER_COUNT) - 1;
    const struct {
        int64_t amx, below;
        int left_out;
    } cases[] = {{1000, 500, 0},  {1000, 1000, 0}, {1000, 1049, 0},      {1000, 1050, 0},
                 {1000, 1051, 1}, {1000, 2000, 1}, {1, 999999999999, 1}, {999999999999, 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const weft__cpu_rates r = {.amx = cases[i].amx, .below = cases[i].below};
        assert_int_equal(weft__cpu_without_slower(all, &r), cases[i].left_out ? all & ~amx : all);
    }
}

static void what_is_kept_comes_back(void **state)
{
    (void)state;
    const weft__cpu_rates r = {.amx = 930000, .below = 487000}, more = {.amx = 999999999999, .below = 1};
    weft__cpu_rates got = {0};
    char text[512];
    assert_int_equal(weft__cpu_rates_read(kept, KEY, &got), 0); /* nothing is there */
    assert_int_equal(weft__cpu_rates_keep(kept, KEY, &r), 1);   /* nor the folders */
    assert_int_equal(weft__cpu_rates_read(kept, KEY, &got), 1);
    assert_true(got.amx == r.amx && got.below == r.below);
    get(text, sizeof text);
    assert_string_equal(text, LINE);
    assert_int_equal(weft__cpu_rates_keep(kept, KEY, &more), 1); /* it is replaced */
    assert_int_equal(weft__cpu_rates_read(kept, KEY, &got), 1);
    assert_true(got.amx == more.amx && got.below == more.below);
}

static void what_is_damaged_or_of_another_says_nothing(void **state)
{
    (void)state;
    static const char *const wrong[] = {KEY "x: 930000 487000\n",
                                        "x" LINE,
                                        KEY ": 930000 487000",
                                        KEY ": 930000 487000\n\n",
                                        KEY ": 930000 487000 \n",
                                        KEY ": 930000\n",
                                        KEY ": 930000  487000\n",
                                        KEY ": 0 487000\n",
                                        KEY ": 930000 0\n",
                                        KEY ": -930000 487000\n",
                                        KEY ": 930000 4870000000000\n",
                                        KEY ": 99999999999999999999999 487000\n",
                                        KEY ": 9e5 487000\n",
                                        KEY ": nan inf\n",
                                        KEY " 930000 487000\n",
                                        "weft 1.0, 0000-2222, Some Processor, matmul_a, matmul_b: 930000 487000\n"};
    weft__cpu_rates got = {.amx = 1, .below = 2};
    char large[4096];
    assert_int_equal(weft__cpu_rates_keep(kept, KEY, &(weft__cpu_rates){.amx = 1, .below = 1}), 1);
    for (size_t n = 0; n < sizeof LINE - 1; n++) { /* every beginning */
        put(LINE, n);
        assert_int_equal(weft__cpu_rates_read(kept, KEY, &got), 0);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put(wrong[i], strlen(wrong[i]));
        assert_int_equal(weft__cpu_rates_read(kept, KEY, &got), 0);
    }
    put(LINE, sizeof LINE); /* with its NUL */
    assert_int_equal(weft__cpu_rates_read(kept, KEY, &got), 0);
    memset(large, '9', sizeof large);
    memcpy(large, KEY ": ", sizeof KEY + 1);
    put(large, sizeof large);
    assert_int_equal(weft__cpu_rates_read(kept, KEY, &got), 0);
    assert_int_equal(weft__cpu_rates_read(folder, KEY, &got), 0); /* a folder */
    assert_true(got.amx == 1 && got.below == 2);
    put(LINE, sizeof LINE - 1);
    assert_int_equal(weft__cpu_rates_read(kept, KEY, &got), 1);
}

static void what_cannot_be_written_is_not_kept(void **state)
{
    (void)state;
    const weft__cpu_rates r = {.amx = 2, .below = 1};
    weft__cpu_rates got;
    char path[256], text[512], key[1024];
    put(LINE, sizeof LINE - 1);
    snprintf(path, sizeof path, "%s/amx.txt", kept); /* below a file, which even root cannot */
    assert_int_equal(weft__cpu_rates_keep(path, KEY, &r), 0);
    assert_int_equal(weft__cpu_rates_read(path, KEY, &got), 0);
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = 0;
    assert_int_equal(weft__cpu_rates_keep(kept, key, &r), 0); /* longer than any */
    get(text, sizeof text);
    assert_string_equal(text, LINE);
}

static void without_amx_there_is_no_choice(void **state)
{
    (void)state;
    weft__cpu_rates r;
    const uint32_t tiers = weft__tier_mask() & ~(1u << WEFT__TIER_AMX | 1u << WEFT__TIER_AMXBF16);
    assert_int_equal(weft__cpu_known_rates(tiers, &r), 0);
    assert_int_equal(weft__cpu_choose(tiers), tiers);
}

/* ---- on a machine with AMX; each claim in a process of its own, which knows nothing yet ---- */

static uint32_t every;

static int in_child(int (*claim)(void))
{
    int status;
    const pid_t child = fork();
    if (!child) _exit(claim() ? 0 : 1);
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int knows_nothing(void)
{
    weft__cpu_rates r;
    return !weft__cpu_known_rates(every, &r);
}

/* Rates that are found agree with what is taken, and stay. */
static int chooses(void)
{
    weft__cpu_rates r, again;
    const uint32_t taken = weft__cpu_choose(every);
    return weft__cpu_known_rates(every, &r) && r.amx > 0 && r.below > 0 && r.tier_below == WEFT__TIER_AVX512VNNI &&
           taken == weft__cpu_without_slower(every, &r) && weft__cpu_choose(every) == taken &&
           weft__cpu_known_rates(every, &again) && again.amx == r.amx && again.below == r.below;
}

static int chooses_without_a_place(void)
{
    char below[160];
    snprintf(below, sizeof below, "%s/below", kept);
    put(LINE, sizeof LINE - 1);
    setenv("WEFT_CACHE", below, 1);
    if (!knows_nothing() || !chooses()) return 0;
    setenv("WEFT_CACHE", "", 1);
    setenv("XDG_CACHE_HOME", "", 1);
    setenv("HOME", "", 1);
    return chooses();
}

static int leaves_amx_out(void)
{
    return weft__cpu_choose(every) == (every & ~(1u << WEFT__TIER_AMX));
}

static int takes_amx(void)
{
    return weft__cpu_choose(every) == every;
}

static void this_machine_is_measured_once(void **state)
{
    (void)state;
    char line[512], other[512], key[512];
    if (weft__tier_mask_for(NULL, &every, NULL) || weft__matmul_find(WEFT_Q4_K, every)->tier != WEFT__TIER_AMX)
        skip_claim("no AMX here");
    unlink(kept);
    assert_true(in_child(knows_nothing));
    assert_true(access(kept, F_OK) != 0); /* to ask measures nothing */
    assert_true(in_child(chooses));
    const size_t n = get(line, sizeof line);
    assert_non_null(strstr(line, weft__machine_processor()));
    assert_true(in_child(chooses));
    get(other, sizeof other);
    assert_string_equal(other, line); /* it was not measured again */

    snprintf(key, sizeof key, "%.*s", (int)(strrchr(line, ':') - line), line);
    const weft__cpu_rates slow = {.amx = 100000, .below = 900000}, fast = {.amx = 900000, .below = 100000};
    assert_int_equal(weft__cpu_rates_keep(kept, key, &slow), 1);
    assert_true(in_child(leaves_amx_out));
    assert_int_equal(weft__cpu_rates_keep(kept, key, &fast), 1);
    assert_true(in_child(takes_amx));

    assert_int_equal(weft__cpu_rates_keep(kept, key, &slow), 1); /* of another start of a system: one digit differs */
    get(other, sizeof other);
    char *boot = strchr(other, ',') + 2;
    *boot = *boot == '0' ? '1' : '0';
    put(other, strlen(other));
    assert_true(in_child(knows_nothing));
    assert_true(in_child(chooses));
    get(other, sizeof other);
    assert_memory_equal(other, key, strlen(key)); /* which now stands there */
    put(line, n / 2);
    assert_true(in_child(knows_nothing));
    assert_true(in_child(chooses));
    assert_true(in_child(chooses_without_a_place));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_one_is_taken),
        cmocka_unit_test(what_is_kept_comes_back),
        cmocka_unit_test(what_is_damaged_or_of_another_says_nothing),
        cmocka_unit_test(what_cannot_be_written_is_not_kept),
        cmocka_unit_test(without_amx_there_is_no_choice),
    };
    const struct CMUnitTest of_a_machine[] = {cmocka_unit_test(this_machine_is_measured_once)};
    if (argc > 1 && !strcmp(argv[1], "material"))
        return claims_status(cmocka_run_group_tests(of_a_machine, make_folder, remove_folder));
    return claims_status(cmocka_run_group_tests(tests, make_folder, remove_folder));
}
