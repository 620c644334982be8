// SPDX-License-Identifier: Apache-2.0
/* gguf_split.c: split models: opened from the first part, and every way in which the parts may not belong together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "format/gguf_parts.h"
#include "gguf_build.h"

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/weft-split-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static void save_part(const char *name, uint32_t no, uint32_t count, int64_t n_tensors, const char *tensor)
{
    bytes b = part_build(no, count, n_tensors, tensor, (float)no + 1);
    assert_int_equal(bytes_save(&b, in_folder(name)), 1);
    free(b.p);
}

/* The three sound parts of the model "m". */
static void save_model(void)
{
    save_part("m-00001-of-00003.gguf", 0, 3, 3, "one");
    save_part("m-00002-of-00003.gguf", 1, 3, 3, "two");
    save_part("m-00003-of-00003.gguf", 2, 3, 3, "three");
}

static void three_parts(void **state)
{
    (void)state;
    static const char *const names[] = {"one", "two", "three"};
    save_model();
    weft__gguf *g;
    weft_error err = {0};
    size_t live = weft__alloc_live();
    if (weft__gguf_open(in_folder("m-00001-of-00003.gguf"), &g, &err) != WEFT_OK) fail_msg("%s", err.message);
    assert_int_equal(g->n_parts, 3);
    assert_int_equal(weft__gguf_n_meta(g), 4);
    assert_int_equal(weft__gguf_tensors(g)->n, 3);
    for (size_t i = 0; i < 3; i++) {
        const weft__tensor_desc *t;
        assert_int_equal(weft__gguf_tensor(g, names[i], &t, NULL), WEFT_OK);
        assert_ptr_equal(t->buffer, g->parts[i]);
        assert_true(*(const float *)weft__tensor_data(t) == (float)i + 1);
    }
    weft__gguf_close(&g);
    assert_int_equal(weft__alloc_live(), live);
}

static void single_part(void **state)
{
    (void)state;
    save_part("s-00001-of-00001.gguf", 0, 1, 1, "t");
    save_part("plain.gguf", 0, 1, 1, "t");
    static const char *const names[] = {"s-00001-of-00001.gguf", "plain.gguf"};
    for (size_t i = 0; i < 2; i++) {
        weft__gguf *g;
        weft_error err = {0};
        if (weft__gguf_open(in_folder(names[i]), &g, &err) != WEFT_OK) fail_msg("%s", err.message);
        assert_int_equal(g->n_parts, 1);
        weft__gguf_close(&g);
    }
}

static void last_part_missing(void)
{
    unlink(in_folder("m-00003-of-00003.gguf"));
}
static void second_part_missing(void)
{
    unlink(in_folder("m-00002-of-00003.gguf"));
}
static void part_twice(void)
{
    save_part("m-00003-of-00003.gguf", 1, 3, 3, "three");
}
static void part_from_other_model(void)
{
    save_part("m-00002-of-00003.gguf", 1, 4, 4, "two");
}
static void part_is_first(void)
{
    char first[256];
    strcpy(first, in_folder("m-00001-of-00003.gguf"));
    unlink(in_folder("m-00002-of-00003.gguf"));
    assert_int_equal(symlink(first, in_folder("m-00002-of-00003.gguf")), 0); /* a cycle */
}
static void link_to_itself(void)
{
    unlink(in_folder("m-00002-of-00003.gguf"));
    assert_int_equal(symlink("m-00002-of-00003.gguf", in_folder("m-00002-of-00003.gguf")), 0);
}
static void tensor_twice(void)
{
    save_part("m-00003-of-00003.gguf", 2, 3, 3, "one");
}
static void total_too_high(void)
{
    save_part("m-00001-of-00003.gguf", 0, 3, 4, "one");
}
static void total_negative(void)
{
    save_part("m-00001-of-00003.gguf", 0, 3, -3, "one");
}
static void name_says_other_count(void)
{
    save_part("m-00001-of-00003.gguf", 0, 2, 3, "one");
}
static void count_zero(void)
{
    save_part("m-00001-of-00003.gguf", 0, 0, 3, "one");
}
static void number_beyond_count(void)
{
    save_part("m-00001-of-00003.gguf", 3, 3, 3, "one");
}
static void first_is_second(void)
{
    save_part("m-00001-of-00003.gguf", 1, 3, 3, "one");
}
static void part_malformed(void)
{
    bytes b = {0};
    put_text(&b, "nonsense");
    assert_int_equal(bytes_save(&b, in_folder("m-00002-of-00003.gguf")), 1);
    free(b.p);
}
static void part_cut(void)
{
    assert_int_equal(truncate(in_folder("m-00003-of-00003.gguf"), 170), 0);
}
static void save_without(const char *name, int with_no, int with_count, int with_total)
{
    bytes b = {0};
    put_head(&b, 3, 0, (uint64_t)(with_no + with_count + with_total));
    if (with_no) put_key(&b, "split.no", 0), put_u8(&b, 0);
    if (with_count) put_key(&b, "split.count", 0), put_u8(&b, 3);
    if (with_total) put_key(&b, "split.tensors.count", 0), put_u8(&b, 2);
    assert_int_equal(bytes_save(&b, in_folder(name)), 1);
    free(b.p);
}
static void keys_missing_first(void)
{
    save_without("m-00001-of-00003.gguf", 0, 0, 0);
}
static void number_missing_first(void)
{
    save_without("m-00001-of-00003.gguf", 0, 1, 1);
}
static void count_missing_first(void)
{
    save_without("m-00001-of-00003.gguf", 1, 0, 1);
}
static void total_missing_first(void)
{
    save_without("m-00001-of-00003.gguf", 1, 1, 0);
}
static void keys_missing_second(void)
{
    save_without("m-00002-of-00003.gguf", 0, 0, 0);
}
static void nothing(void)
{
}
static void renamed(void)
{
    save_part("renamed.gguf", 0, 3, 3, "one");
}

static const struct {
    const char *name;
    void (*damage)(void); /* done to the sound model */
    const char *open;
    weft_status status;
    const char *expected, *file; /* in the message */
} cases[] = {
    {"last part missing", last_part_missing, "m-00001-of-00003.gguf", WEFT_NOT_FOUND, "part 3 of 3 cannot be read",
     "m-00003-of"},
    {"second part missing", second_part_missing, "m-00001-of-00003.gguf", WEFT_NOT_FOUND, "part 2 of 3 cannot be read",
     "m-00002-of"},
    {"a part twice", part_twice, "m-00001-of-00003.gguf", WEFT_FORMAT, "should be part 3 of 3, but its keys",
     "m-00003-of"},
    {"a part of another model", part_from_other_model, "m-00001-of-00003.gguf", WEFT_FORMAT, "say 2 of 4",
     "m-00002-of"},
    {"a cycle", part_is_first, "m-00001-of-00003.gguf", WEFT_FORMAT,
     "should be part 2 of 3, but its keys split.no and split.count say 1 of 3", "m-00002-of"},
    {"a link to itself", link_to_itself, "m-00001-of-00003.gguf", WEFT_IO, "cannot be opened: Too many levels",
     "m-00002-of"},
    {"a tensor in two parts", tensor_twice, "m-00001-of-00003.gguf", WEFT_FORMAT,
     "tensor 'one' is there twice, here and in an", "m-00003-of"},
    {"tensor count too high", total_too_high, "m-00001-of-00003.gguf", WEFT_FORMAT,
     "key 'split.tensors.count' says 4 tensors, but the parts hold 3", "m-00001-of"},
    {"tensor count negative", total_negative, "m-00001-of-00003.gguf", WEFT_FORMAT,
     "key 'split.tensors.count' (type i32) holds -3", "m-00001-of"},
    {"name and keys differ", name_says_other_count, "m-00001-of-00003.gguf", WEFT_FORMAT,
     "its name says part 1 of 3, its keys", "m-00001-of"},
    {"count 0", count_zero, "m-00001-of-00003.gguf", WEFT_FORMAT, "say part 0 of 0", "m-00001-of"},
    {"number beyond the count", number_beyond_count, "m-00001-of-00003.gguf", WEFT_FORMAT,
     "say part 3 of 3 (counted from 0)", "m-00001-of"},
    {"first part is the second", first_is_second, "m-00001-of-00003.gguf", WEFT_FORMAT, "is part 2 of 3", "m-00001-of"},
    {"opened at the second", nothing, "m-00002-of-00003.gguf", WEFT_FORMAT, "open the first part", "m-00002-of"},
    {"a malformed part", part_malformed, "m-00001-of-00003.gguf", WEFT_FORMAT, "is not a GGUF file", "m-00002-of"},
    {"a part cut short", part_cut, "m-00001-of-00003.gguf", WEFT_FORMAT, "tensor 'three': ", "m-00003-of"},
    {"no keys in the first", keys_missing_first, "m-00001-of-00003.gguf", WEFT_FORMAT, "key 'split.count' is missing",
     "m-00001-of"},
    {"no number in the first", number_missing_first, "m-00001-of-00003.gguf", WEFT_FORMAT, "key 'split.no' is missing",
     "m-00001-of"},
    {"no count in the first", count_missing_first, "m-00001-of-00003.gguf", WEFT_FORMAT, "key 'split.count' is missing",
     "m-00001-of"},
    {"no total in the first", total_missing_first, "m-00001-of-00003.gguf", WEFT_FORMAT,
     "key 'split.tensors.count' is missing", "m-00001-of"},
    {"no keys in the second", keys_missing_second, "m-00001-of-00003.gguf", WEFT_FORMAT, "key 'split.count' is missing",
     "m-00002-of"},
    {"renamed", renamed, "renamed.gguf", WEFT_FORMAT, "its name must end in -00001-of-00003.gguf", "renamed.gguf"},
};

#define N_CASES (sizeof cases / sizeof *cases)

static void unsound_models(void **state)
{
    (void)state;
    size_t live = weft__alloc_live();
    for (size_t i = 0; i < N_CASES; i++) {
        weft__gguf *g;
        weft_error err = {0};
        unlink(in_folder("m-00002-of-00003.gguf"));
        save_model();
        cases[i].damage();
        weft_status status = weft__gguf_open(in_folder(cases[i].open), &g, &err);
        if (status != cases[i].status || !strstr(err.message, cases[i].expected) || !strstr(err.message, cases[i].file))
            fail_msg("%s: status %d, \"%s\" lacks \"%s\" or \"%s\"", cases[i].name, status, err.message,
                     cases[i].expected, cases[i].file);
        assert_null(g);
        assert_int_equal(weft__alloc_live(), live);
    }
    print_message("%zu unsound split models refused\n", N_CASES);
}

static int gate(void *arg, size_t n_bytes)
{
    (void)n_bytes;
    return (*(int *)arg)-- > 0;
}

static void failing_allocations(void **state)
{
    (void)state;
    save_model();
    size_t live = weft__alloc_live();
    weft_status status = WEFT_NO_MEMORY;
    int n = 0;
    for (; status != WEFT_OK; n++) {
        int left = n;
        weft__gguf *g;
        weft__alloc_set_gate(gate, &left);
        status = weft__gguf_open(in_folder("m-00001-of-00003.gguf"), &g, NULL);
        weft__alloc_set_gate(NULL, NULL);
        if (status != WEFT_OK) assert_int_equal(status, WEFT_NO_MEMORY);
        weft__gguf_close(&g);
        assert_int_equal(weft__alloc_live(), live);
    }
    print_message("opening three parts failed cleanly at each of %d allocations\n", n - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_parts),
        cmocka_unit_test(single_part),
        cmocka_unit_test(unsound_models),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
