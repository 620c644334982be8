// SPDX-License-Identifier: Apache-2.0
/* base_place.c: what is kept between runs lies where the environment says, and a file there appears as a whole or not
 * at all. */
#include "unit/fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/place.h"

static void set(const char *own, const char *xdg, const char *home)
{
    const char *const names[] = {"WEFT_CACHE", "XDG_CACHE_HOME", "HOME"}, *const values[] = {own, xdg, home};
    for (int i = 0; i < 3; i++) {
        if (values[i]) setenv(names[i], values[i], 1);
        else unsetenv(names[i]);
    }
}

static void assert_place(const char *want)
{
    char out[64];
    assert_int_equal(weft__place_in_cache(out, sizeof out, "x"), want ? 1 : 0);
    if (want) assert_string_equal(out, want);
}

static void the_first_place_that_is_named_counts(void **state)
{
    (void)state;
    char out[64];
    set("own", "/xdg", "/home");
    assert_place("own/x");
    assert_int_equal(weft__place_in_cache(out, sizeof out, NULL), 1);
    assert_string_equal(out, "own");
    set("", "/xdg", "/home");
    assert_place("/xdg/weft/x");
    set(NULL, "xdg", "/home"); /* relative ones do not count */
    assert_place("/home/.cache/weft/x");
    set(NULL, NULL, "home");
    assert_place(NULL);
    set(NULL, NULL, NULL);
    assert_place(NULL);
    set("12345", NULL, NULL);
    assert_int_equal(weft__place_in_cache(out, 8, "x"), 1);
    assert_int_equal(weft__place_in_cache(out, 7, "x"), -1);
}

static void a_file_appears_as_a_whole(void **state)
{
    (void)state;
    char folder[] = "/tmp/weft-place-XXXXXX", path[128], below[160], text[8], command[128];
    struct stat s;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a/b/file", folder);
    assert_int_equal(weft__place_put(path, "first", 5), 1);
    assert_int_equal(weft__place_put(path, "2nd", 3), 1);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(text, 1, sizeof text, f), 3);
    fclose(f);
    assert_memory_equal(text, "2nd", 3);
    snprintf(below, sizeof below, "%s/a", folder);
    assert_int_equal(stat(below, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0700);
    snprintf(below, sizeof below, "%s/below/file", path);
    assert_int_equal(weft__place_put(below, "x", 1), 0);
    assert_int_equal(weft__place_folders(below), -1);
    assert_int_equal(errno, ENOTDIR);
    snprintf(below, sizeof below, "%s/a/b", folder); /* a folder stands there: nothing is left beside it */
    assert_int_equal(weft__place_put(below, "x", 1), 0);
    snprintf(below, sizeof below, "%s/a/b.%ld", folder, (long)getpid());
    assert_int_equal(access(below, F_OK), -1);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_place_that_is_named_counts),
        cmocka_unit_test(a_file_appears_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
