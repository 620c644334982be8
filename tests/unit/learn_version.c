// SPDX-License-Identifier: Apache-2.0
/* learn_version.c: versions of adapters that learn (learn/version.h): what a name stands for follows from rows. */
#include <string.h>

#include "unit/fixture.h"

#include "learn/version.h"

typedef struct noted {
    weft__version_row row[32];
    int n, fails;
} noted;

static weft_status note(void *arg, const weft__version_row *row, weft_error *err)
{
    noted *t = arg;
    if (t->fails) return weft_fail(err, WEFT_IO, "the disk is full");
    t->row[t->n++] = *row;
    return WEFT_OK;
}

static weft_status add(weft__versions *v, const char *tenant, const char *name, weft__version_what what)
{
    weft__version_row r = {.what = what};
    snprintf(r.tenant, sizeof r.tenant, "%s", tenant);
    snprintf(r.name, sizeof r.name, "%s", name);
    r.parent = weft__versions_current(v, tenant, name, NULL);
    snprintf(r.content, sizeof r.content, "%032llx", (unsigned long long)weft__versions_next(v, tenant, name));
    return weft__versions_add(v, &r, NULL);
}

static int64_t now(weft__versions *v, const char *tenant)
{
    return weft__versions_current(v, tenant, "mine", NULL);
}

/* Compressing learns nothing: whether it went on from another is what it was of what was compressed. */
static void what_is_compressed_went_on_from_no_other(void **state)
{
    (void)state;
    weft__versions *v = NULL;
    const struct {
        int64_t parent, last_event;
        int goes_on;
    } rows[] = {{0, 1, 0}, {1, 0, 0}, {2, 0, 0}, {3, 2, 1}, {4, 0, 1}};
    assert_int_equal(weft__versions_create(NULL, NULL, &v, NULL), WEFT_OK);
    for (int i = 0; i < 5; i++) {
        weft__version_row r = {.what = WEFT__VERSION_PUBLISHED,
                               .tenant = "a",
                               .name = "mine",
                               .parent = rows[i].parent,
                               .last_event = rows[i].last_event};
        assert_int_equal(weft__versions_add(v, &r, NULL), WEFT_OK);
        assert_int_equal(weft__versions_goes_on(v, "a", "mine", i + 1), rows[i].goes_on);
    }
    assert_int_equal(weft__versions_goes_on(v, "a", "mine", 9), 0);
    weft__versions_destroy(&v);
}

static void names_stand_for_what_was_published_last(void **state)
{
    (void)state;
    noted told = {0};
    weft__versions *v = NULL, *again = NULL;
    int64_t at;
    char content[WEFT__VERSION_CONTENT];
    assert_int_equal(weft__versions_create(note, &told, &v, NULL), WEFT_OK);
    assert_int_equal(now(v, "a"), 0);
    assert_int_equal(weft__versions_roll_back(v, "a", "mine", -1, &at, NULL), WEFT_NOT_FOUND);
    assert_int_equal(add(v, "a", "mine", WEFT__VERSION_PUBLISHED), WEFT_OK); /* 1 */
    assert_int_equal(add(v, "a", "mine", WEFT__VERSION_REJECTED), WEFT_OK);  /* 2 */
    assert_int_equal(now(v, "a"), 1);
    assert_int_equal(add(v, "a", "mine", WEFT__VERSION_PUBLISHED), WEFT_OK); /* 3 */
    assert_int_equal(now(v, "a"), 3);
    assert_int_equal(now(v, "b"), 0); /* another's */
    assert_int_equal(weft__versions_roll_back(v, "b", "mine", 1, &at, NULL), WEFT_NOT_FOUND);
    assert_int_equal(weft__versions_roll_back(v, "a", "mine", 2, &at, NULL), WEFT_NOT_FOUND); /* never published */
    assert_int_equal(weft__versions_roll_back(v, "a", "mine", -1, &at, NULL), WEFT_OK);
    assert_true(at == 1 && now(v, "a") == 1);
    weft__versions_current(v, "a", "mine", content);
    assert_string_equal(content, "00000000000000000000000000000001");
    assert_int_equal(add(v, "a", "mine", WEFT__VERSION_PUBLISHED), WEFT_OK); /* 4, that goes on from 1 */
    assert_int_equal(weft__versions_roll_back(v, "a", "mine", -1, &at, NULL), WEFT_OK);
    assert_int_equal(at, 1);
    assert_int_equal(weft__versions_roll_back(v, "a", "mine", -1, &at, NULL), WEFT_OK);
    assert_int_equal(at, 0); /* the base alone */
    assert_int_equal(weft__versions_roll_back(v, "a", "mine", -1, &at, NULL), WEFT_STATE);
    assert_int_equal(weft__versions_roll_back(v, "a", "mine", 3, &at, NULL), WEFT_OK);
    /* One that was learned from the base once more, as consolidation does, came after the one that it replaced. */
    weft__version_row anew = {.what = WEFT__VERSION_PUBLISHED, .tenant = "c", .name = "mine"};
    assert_int_equal(add(v, "c", "mine", WEFT__VERSION_PUBLISHED), WEFT_OK);
    assert_int_equal(weft__versions_add(v, &anew, NULL), WEFT_OK);
    assert_int_equal(weft__versions_roll_back(v, "c", "mine", -1, &at, NULL), WEFT_OK);
    assert_int_equal(at, 1);
    /* What was noted tells another one the same. */
    assert_int_equal(weft__versions_create(NULL, NULL, &again, NULL), WEFT_OK);
    for (int i = 0; i < told.n; i++) assert_int_equal(weft__versions_read(again, &told.row[i], NULL), WEFT_OK);
    assert_int_equal(now(again, "a"), 3);
    assert_int_equal(weft__versions_next(again, "a", "mine"), 5);
    assert_int_equal(weft__versions_read(again, &told.row[0], NULL), WEFT_FORMAT); /* its number is taken */
    weft__versions_destroy(&again);
    weft__versions_destroy(&v);
}

/* Those that were published, the newest first, and how many are not named. */
static void what_there_is_to_go_back_to_is_named(void **state)
{
    (void)state;
    weft__versions *v = NULL;
    weft_error err = {0};
    int64_t at;
    assert_int_equal(weft__versions_create(NULL, NULL, &v, NULL), WEFT_OK);
    assert_int_equal(add(v, "a", "mine", WEFT__VERSION_REJECTED), WEFT_OK);
    assert_int_equal(weft__versions_roll_back(v, "a", "mine", 1, &at, &err), WEFT_NOT_FOUND);
    assert_string_equal(err.message, "'mine' has no version 1 that was published; there is 0, the base alone");
    for (int i = 2; i < 8; i++) assert_int_equal(add(v, "a", "mine", WEFT__VERSION_PUBLISHED), WEFT_OK);
    assert_int_equal(add(v, "b", "mine", WEFT__VERSION_PUBLISHED), WEFT_OK);
    assert_int_equal(weft__versions_roll_back(v, "a", "mine", 3, &at, NULL), WEFT_OK); /* it is not named twice */
    assert_int_equal(weft__versions_roll_back(v, "a", "mine", 1, &at, &err), WEFT_NOT_FOUND);
    assert_string_equal(err.message, "'mine' has no version 1 that was published; there are 7, 6, 5, 4, 3, 2 and 0, "
                                     "the base alone");
    for (int i = 8; i < 10; i++) assert_int_equal(add(v, "a", "mine", WEFT__VERSION_PUBLISHED), WEFT_OK);
    assert_int_equal(weft__versions_roll_back(v, "a", "mine", 1, &at, &err), WEFT_NOT_FOUND);
    assert_string_equal(err.message, "'mine' has no version 1 that was published; there are 9, 8, 7, 6, 5, 4, 2 older "
                                     "ones and 0, the base alone");
    weft__versions_destroy(&v);
}

/* What could not be written does not hold. */
static void nothing_holds_that_was_not_noted(void **state)
{
    (void)state;
    noted told = {0};
    weft__versions *v = NULL;
    int64_t at;
    assert_int_equal(weft__versions_create(note, &told, &v, NULL), WEFT_OK);
    assert_int_equal(add(v, "a", "mine", WEFT__VERSION_PUBLISHED), WEFT_OK);
    told.fails = 1;
    assert_int_equal(add(v, "a", "mine", WEFT__VERSION_PUBLISHED), WEFT_IO);
    assert_int_equal(weft__versions_roll_back(v, "a", "mine", 0, &at, NULL), WEFT_IO);
    assert_int_equal(now(v, "a"), 1);
    assert_int_equal(weft__versions_next(v, "a", "mine"), 2);
    told.fails = 0;
    assert_int_equal(add(v, "a", "no/name", WEFT__VERSION_PUBLISHED), WEFT_ARGUMENT);
    assert_int_equal(add(v, "a", "mine@2", WEFT__VERSION_PUBLISHED), WEFT_ARGUMENT);
    assert_int_equal(add(v, "b", "mine", WEFT__VERSION_PUBLISHED), WEFT_OK);
    weft__versions_forget(v, "a");
    assert_true(now(v, "a") == 0 && now(v, "b") == 1 && weft__versions_next(v, "a", "mine") == 1);
    weft__versions_destroy(&v);
}

static void full_names_are_read_as_they_are_written(void **state)
{
    static const char *const none[] = {
        "mine", "mine@", "@3", "mine@0", "mine@-1", "mine@1x", "mine@1234567890123456789"};
    (void)state;
    char full[WEFT__VERSION_FULL_NAME], name[WEFT__VERSION_NAME];
    int64_t version;
    weft__version_write_name("mine", 7, full);
    assert_string_equal(full, "mine@7");
    assert_true(weft__version_read_name(full, name, &version) && version == 7 && !strcmp(name, "mine"));
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (weft__version_read_name(none[i], name, &version)) fail_msg("'%s'", none[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_stand_for_what_was_published_last),
        cmocka_unit_test(what_is_compressed_went_on_from_no_other),
        cmocka_unit_test(what_there_is_to_go_back_to_is_named),
        cmocka_unit_test(nothing_holds_that_was_not_noted),
        cmocka_unit_test(full_names_are_read_as_they_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
