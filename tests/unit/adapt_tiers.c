// SPDX-License-Identifier: Apache-2.0
/* adapt_tiers.c: claims about where the store of adapters finds what is wanted: packed, in the system's page cache, on
 * the disk; and that what was asked for ahead is in memory by its turn. The disk is a double of this program's own,
 * which knows the files that are in memory by their numbers. */
#include "unit/adapt_store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { FILES = 64 };
static ino_t in_memory[FILES];
static int n_in_memory, n_waits; /* how often the disk was waited for */

static ino_t number_of(int fd)
{
    struct stat info;
    assert_int_equal(fstat(fd, &info), 0);
    return info.st_ino;
}

static int is_in_memory(int fd)
{
    const ino_t number = number_of(fd);
    for (int i = 0; i < n_in_memory; i++)
        if (in_memory[i] == number) return 1;
    return 0;
}

static void take_into_memory(int fd)
{
    if (is_in_memory(fd)) return;
    assert_true(n_in_memory < FILES);
    in_memory[n_in_memory++] = number_of(fd);
}

/* In the place of the system's. What is in memory is read as it is. */
ssize_t preadv2(int fd, const struct iovec *to, int n, off_t at, int flags)
{
    assert_true(n == 1 && at == -1 && flags == RWF_NOWAIT);
    if (is_in_memory(fd)) return read(fd, to->iov_base, to->iov_len);
    n_waits++;
    take_into_memory(fd); /* by the read that follows */
    errno = EAGAIN;
    return -1;
}

int posix_fadvise(int fd, off_t at, off_t n, int advice)
{
    assert_true(at >= 0 && n > 0 && advice == POSIX_FADV_WILLNEED);
    take_into_memory(fd);
    return 0;
}

static weft__adapt_store *fill_store(int n, uint64_t n_bytes)
{
    weft__adapt_store *s = new_store(n_bytes);
    char name[16];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "a%d", i);
        add(s, name, write_adapter(name, (uint64_t)i * 10 + 3, 2, 8, 0), WEFT__ADAPT_LAZY);
    }
    n_in_memory = n_waits = 0; /* which the writing took there */
    return s;
}

static void use(weft__adapt_store *s, const char *name)
{
    weft__adapt_lease *l = lease(s, name, 1);
    weft__adapt_store_release(s, &l);
}

static void ask_ahead(weft__adapt_store *s, const char *name, float scale)
{
    weft__adapt_store_ask_ahead(s, &(weft__adapt_ref){name, scale, 0}, 1);
}

static weft__adapt_store_stats stats_of(weft__adapt_store *s)
{
    weft__adapt_store_stats stats;
    weft__adapt_store_get_stats(s, &stats);
    return stats;
}

static void each_tier_is_counted(void **state)
{
    (void)state;
    weft__adapt_store *s = fill_store(3, 2000); /* room for two */
    use(s, "a0");
    use(s, "a1");
    use(s, "a0");
    use(s, "a2"); /* a1 goes, whose file is in memory */
    use(s, "a1");
    weft__adapt_store_stats stats = stats_of(s);
    assert_int_equal(stats.n_hits, 1);
    assert_int_equal(stats.n_loads, 4);
    assert_int_equal(stats.n_disk_loads, 3);
    assert_int_equal(n_waits, 3);
    assert_int_equal(stats.n_evictions, 2);
    assert_true(stats.n_ahead == 0 && stats.n_ahead_hits == 0);
    weft__adapt_store_destroy(&s);
}

static void what_was_asked_for_is_in_memory_by_its_turn(void **state)
{
    (void)state;
    weft__adapt_store *s = fill_store(6, 2000);
    char name[16];
    weft__adapt_lease *held = lease(s, "a0", 1);
    for (int i = 1; i < 6; i++) {
        snprintf(name, sizeof name, "a%d", i);
        ask_ahead(s, name, NAN);
        ask_ahead(s, name, 0.5f); /* the same file */
    }
    weft__adapt_store_stats stats = stats_of(s);
    assert_true(stats.n_ahead == 5 && stats.n_loads == 1 && stats.n_bytes == 1000 && stats.n_evictions == 0);
    assert_int_equal(n_waits, 1);
    for (int i = 1; i < 6; i++) {
        snprintf(name, sizeof name, "a%d", i);
        use(s, name);
    }
    stats = stats_of(s);
    assert_true(stats.n_ahead_hits == 5 && stats.n_loads == 6 && stats.n_disk_loads == 1);
    assert_int_equal(n_waits, 1);
    assert_ptr_equal(lease(s, "a0", 1), held); /* never evicted */
    for (int i = 0; i < 2; i++) {
        weft__adapt_lease *l = held;
        weft__adapt_store_release(s, &l);
    }
    weft__adapt_store_destroy(&s);
}

static void what_is_not_to_be_read_is_not_asked_for(void **state)
{
    (void)state;
    weft__adapt_store *s = fill_store(2, 2000);
    use(s, "a0");
    const int before = n_in_memory;
    ask_ahead(s, "a0", NAN); /* packed */
    ask_ahead(s, "a1", 0);   /* as if it were not there */
    ask_ahead(s, "nobody", NAN);
    unlink(place("a1"));
    ask_ahead(s, "a1", NAN);
    assert_int_equal(n_in_memory, before);
    assert_int_equal(stats_of(s).n_ahead, 0);
    weft__adapt_store_destroy(&s);
    s = fill_store(1, 2000);
    const int fd = open(place("a0"), O_WRONLY);
    assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0); /* a hole: larger than any that has room */
    close(fd);
    ask_ahead(s, "a0", NAN);
    assert_int_equal(stats_of(s).n_ahead, 0);
    weft__adapt_store_destroy(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tier_is_counted),
        cmocka_unit_test(what_was_asked_for_is_in_memory_by_its_turn),
        cmocka_unit_test(what_is_not_to_be_read_is_not_asked_for),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
