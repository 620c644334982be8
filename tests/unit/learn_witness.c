// SPDX-License-Identifier: Apache-2.0
/* learn_witness.c: claims on the witness log: whatever is changed in it is found out, by place; a log that was
 * killed or had no room goes on; proofs hold on their own, and only as they were made. */
#include "fixture.h"

#include <sys/resource.h>

#include "learn_world.h"
#include "learn/witness.h"

enum { ENTRIES = 23 };

static void entry_of(int i, char out[64])
{
    snprintf(out, 64, "{\"kind\":\"request\",\"id\":\"cmpl-%03d\",\"time\":%d}", i, 1700000000 + i);
}

/* Entries [from, to) in batches of `at_once`. */
static void append(weft__learn_witness *w, int from, int to, int at_once)
{
    char texts[ENTRIES][64];
    weft__learn_entry e[ENTRIES];
    weft_error err = {0};
    for (int i = from; i < to; i += at_once) {
        int n = 0;
        for (; n < at_once && i + n < to; n++) {
            entry_of(i + n, texts[n]);
            e[n] = (weft__learn_entry){texts[n], strlen(texts[n])};
        }
        assert_int_equal(weft__learn_witness_append(w, e, (size_t)n, &err), WEFT_OK);
    }
}

static weft__learn_witness *open_log(void)
{
    weft__learn_witness *w;
    weft_error err = {0};
    if (weft__learn_witness_open(folder, WEFT__LEARN_SYNC_NONE, &w, &err)) fail_msg("%s", err.message);
    return w;
}

static weft_status look(weft__learn_findings *f, weft_error *err)
{
    return weft__learn_witness_verify(folder, NULL, NULL, 0, f, err);
}

static void make_log(void)
{
    weft__learn_witness *w = open_log();
    append(w, 0, ENTRIES, 4);
    weft__learn_witness_close(&w);
}

static void goes_on_where_it_was(void **state)
{
    weft__learn_findings f;
    weft_error err = {0};
    (void)state;
    for (int i = 0; i < ENTRIES; i += 5) {
        weft__learn_witness *w = open_log();
        assert_int_equal(weft__learn_witness_size(w), i);
        append(w, i, i + 5 < ENTRIES ? i + 5 : ENTRIES, 3);
        weft__learn_witness_close(&w);
        assert_int_equal(look(&f, &err), WEFT_OK);
    }
    assert_int_equal(f.n_entries, ENTRIES);
    assert_int_equal(f.n_signed, ENTRIES);
    assert_int_equal(f.n_checkpoints, 9); /* two for each five, and for the last three one */
    assert_int_equal(f.last.size, ENTRIES);
}

static char *find_line(char *text, int i)
{
    while (i--) text = strchr(text, '\n') + 1;
    return text;
}

/* Which entry is no longer what it was. */
static void expect_bad(const char *what, int64_t first)
{
    weft__learn_findings f;
    weft_error err = {0};
    if (look(&f, &err) != WEFT_FORMAT || f.first_bad != first)
        fail_msg("%s %d: first bad %d, %s", what, (int)first, (int)f.first_bad, err.message);
}

static void every_change_is_found_by_place(void **state)
{
    char *text, *copy;
    weft__learn_findings f;
    (void)state;
    make_log();
    const size_t n = load("log/entries.jsonl", &text);
    copy = malloc(n + 100);
    text[n] = 0;
    for (size_t i = 0; i < n; i = text[i + 1] == '\n' ? i + 1 : i + 9) { /* a bit; those that end lines among them */
        int64_t entry = 0;
        for (size_t k = 0; k < i; k++) entry += text[k] == '\n';
        memcpy(copy, text, n);
        copy[i] = (char)(copy[i] ^ 1 << i % 8);
        save("log/entries.jsonl", copy, n);
        expect_bad("bit", entry);
    }
    for (int i = 0; i < ENTRIES; i++) {
        char *line = find_line(text, i), *next = find_line(text, i + 1);
        const size_t before = (size_t)(line - text), len = (size_t)(next - line);
        memcpy(copy, text, before); /* dropped */
        memcpy(copy + before, next, n - before - len);
        save("log/entries.jsonl", copy, n - len);
        expect_bad("drop", i);
        memcpy(copy, text, before + len); /* twice */
        memcpy(copy + before + len, line, n - before);
        save("log/entries.jsonl", copy, n + len);
        if (i + 1 < ENTRIES) expect_bad("twice", i + 1);
        save("log/entries.jsonl", text, before); /* cut */
        expect_bad("cut", i);
        if (i + 1 == ENTRIES) continue;
        char *third = find_line(text, i + 2); /* swapped */
        const size_t len2 = (size_t)(third - next);
        memcpy(copy, text, n);
        memcpy(copy + before, next, len2);
        memcpy(copy + before + len2, line, len);
        save("log/entries.jsonl", copy, n);
        expect_bad("swap", i);
    }
    save("log/entries.jsonl", text, n);
    assert_int_equal(look(&f, NULL), WEFT_OK);
    free(text);
    free(copy);
}

static void changed_hashes_and_checkpoints_are_found(void **state)
{
    static const char *const names[] = {"log/hashes", "log/checkpoints"};
    weft__learn_findings f;
    (void)state;
    make_log();
    for (int k = 0; k < 2; k++) {
        char *bytes;
        const size_t n = load(names[k], &bytes);
        for (size_t i = 0; i < n; i += k ? 13 : 37) {
            bytes[i] ^= 4;
            save(names[k], bytes, n);
            /* of the last checkpoint what is no longer whole is none, as after a kill */
            const int is_end = k && i + 200 > n;
            if (look(&f, NULL) != WEFT_FORMAT && !(is_end && f.n_signed < ENTRIES)) fail_msg("%s %zu", names[k], i);
            bytes[i] ^= 4;
        }
        save(names[k], bytes, n);
        free(bytes);
    }
}

/* Entries and hashes changed together, by who has no key: the checkpoint says between which. */
static void a_new_tree_is_not_signed(void **state)
{
    char *hashes, *text, entry[64];
    weft__learn_findings f;
    weft__learn_witness *w = open_log(); /* of another key, with another entry 9 */
    (void)state;
    for (int i = 0; i < ENTRIES; i++) {
        entry_of(i == 9 ? 99 : i, entry);
        assert_int_equal(weft__learn_witness_append(w, &(weft__learn_entry){entry, strlen(entry)}, 1, NULL), WEFT_OK);
    }
    weft__learn_witness_close(&w);
    const size_t n_hashes = load("log/hashes", &hashes), n_text = load("log/entries.jsonl", &text);
    clear_folder();
    assert_int_equal(mkdir(folder, 0700), 0);
    make_log();
    save("log/hashes", hashes, n_hashes);
    save("log/entries.jsonl", text, n_text);
    assert_int_equal(look(&f, NULL), WEFT_FORMAT);
    assert_int_equal(f.first_bad, 8);
    assert_int_equal(f.last_bad, 11);
    free(hashes);
    free(text);
}

static void a_cut_log_is_found_by_who_kept_a_checkpoint(void **state)
{
    char *notes, *text, *hashes;
    weft__strbuf kept = {0};
    weft__learn_findings f;
    weft_error err = {0};
    weft__learn_witness *w = open_log();
    (void)state;
    append(w, 0, 8, 8);
    const size_t n_notes = load("log/checkpoints", &notes), n_text = load("log/entries.jsonl", &text),
                 n_hashes = load("log/hashes", &hashes);
    append(w, 8, ENTRIES, 50);
    weft__learn_witness_close(&w);
    assert_int_equal(weft__learn_witness_checkpoint(folder, &kept, NULL), WEFT_OK);
    assert_int_equal(weft__learn_witness_verify(folder, NULL, kept.data, kept.len, &f, NULL), WEFT_OK);
    assert_int_equal(weft__learn_witness_verify(folder, NULL, notes, n_notes, &f, NULL), WEFT_OK);
    save("log/checkpoints", notes, n_notes);
    save("log/entries.jsonl", text, n_text);
    save("log/hashes", hashes, n_hashes);
    assert_int_equal(look(&f, NULL), WEFT_OK); /* nobody else can know */
    assert_int_equal(weft__learn_witness_verify(folder, NULL, kept.data, kept.len, &f, &err), WEFT_FORMAT);
    assert_non_null(strstr(err.message, "was cut"));
    w = open_log(); /* and what goes on from there is another log */
    append(w, 0, 1, 1);
    append(w, 9, ENTRIES, 50);
    weft__learn_witness_close(&w);
    assert_int_equal(look(&f, NULL), WEFT_OK);
    assert_int_equal(weft__learn_witness_verify(folder, NULL, kept.data, kept.len, &f, &err), WEFT_FORMAT);
    assert_non_null(strstr(err.message, "another one"));
    weft__strbuf_free(&kept);
    free(notes);
    free(text);
    free(hashes);
}

/* Each file with each of its ends missing, but for what the last checkpoint says: as a kill leaves them. */
static void opens_after_a_kill_anywhere(void **state)
{
    static const char *const names[] = {"log/entries.jsonl", "log/hashes", "log/checkpoints"};
    char *old[3], *now[3];
    size_t n_old[3], n_now[3];
    weft__learn_findings f;
    (void)state;
    weft__learn_witness *w = open_log();
    append(w, 0, 9, 3);
    for (int k = 0; k < 3; k++) n_old[k] = load(names[k], &old[k]);
    append(w, 9, 12, 3);
    weft__learn_witness_close(&w);
    for (int k = 0; k < 3; k++) n_now[k] = load(names[k], &now[k]);
    for (int k = 0; k < 3; k++) /* those before it are whole, those behind it as they were */
        for (size_t n = n_old[k]; n < n_now[k]; n += k ? 41 : 23) {
            for (int j = 0; j < 3; j++) save(names[j], now[j], j < k ? n_now[j] : j > k ? n_old[j] : n);
            w = open_log();
            assert_int_equal(weft__learn_witness_size(w), 9);
            append(w, 9, 11, 1);
            weft__learn_witness_close(&w);
            assert_int_equal(look(&f, NULL), WEFT_OK);
            assert_int_equal(f.n_entries, 11);
        }
    for (int k = 0; k < 3; k++) free(old[k]), free(now[k]);
}

static void what_is_missing_is_not_passed_over(void **state)
{
    static const char *const names[] = {"log/entries.jsonl", "log/hashes", "log/key", "log/public"};
    weft__learn_witness *w;
    weft_error err = {0};
    (void)state;
    make_log();
    for (int k = 0; k < 4; k++) {
        char *bytes;
        const size_t n = load(names[k], &bytes);
        save(names[k], bytes, n - 40);
        assert_int_equal(weft__learn_witness_open(folder, WEFT__LEARN_SYNC_NONE, &w, &err), WEFT_FORMAT);
        assert_null(w);
        assert_int_equal(unlink(path_of(names[k])), 0);
        assert_int_not_equal(weft__learn_witness_open(folder, WEFT__LEARN_SYNC_NONE, &w, &err), WEFT_OK);
        save(names[k], bytes, n);
        free(bytes);
    }
    w = open_log();
    weft__learn_witness_close(&w);
}

/* A file may grow no further: the log stays as it was, and goes on when it may. */
static void no_room_changes_nothing(void **state)
{
    struct rlimit limit;
    struct stat s;
    weft__learn_findings f;
    weft__learn_witness *w = open_log();
    char entry[64];
    (void)state;
    append(w, 0, 10, 2);
    assert_int_equal(stat(path_of("log/checkpoints"), &s), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlim_t was = limit.rlim_cur;
    entry_of(10, entry);
    for (off_t most = 100; most < s.st_size + 100; most += 97) {
        limit.rlim_cur = (rlim_t)most;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        weft_status st = weft__learn_witness_append(w, &(weft__learn_entry){entry, strlen(entry)}, 1, NULL);
        limit.rlim_cur = was;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_int_equal(st, WEFT_IO);
        assert_int_equal(look(&f, NULL), WEFT_OK);
        assert_int_equal(f.n_signed, 10);
    }
    append(w, 10, ENTRIES, 2);
    weft__learn_witness_close(&w);
    assert_int_equal(look(&f, NULL), WEFT_OK);
    assert_int_equal(f.n_signed, ENTRIES);
}

static void proofs_hold_as_they_were_made(void **state)
{
    weft__learn_vkey key;
    weft__learn_proven proven;
    weft_error err = {0};
    (void)state;
    make_log();
    assert_int_equal(weft__learn_witness_key(folder, &key, NULL), WEFT_OK);
    for (int i = 0; i < ENTRIES; i += 11) {
        weft__strbuf proof = {0};
        char entry[64], id[16];
        entry_of(i, entry);
        snprintf(id, sizeof id, "cmpl-%03d", i);
        assert_int_equal(weft__learn_witness_prove(folder, (uint64_t)i, i % 2 ? id : NULL, &proof, &err), WEFT_OK);
        assert_int_equal(weft__learn_proof_check(proof.data, proof.len, &key, &proven, &err), WEFT_OK);
        assert_string_equal(proven.entry.data, entry);
        assert_int_equal(proven.index, i);
        weft__strbuf_free(&proven.entry);
        for (size_t k = 0; k < proof.len; k += 5) {
            proof.data[k] ^= 1;
            if (weft__learn_proof_check(proof.data, proof.len, &key, &proven, &err) != WEFT_FORMAT)
                fail_msg("entry %d, byte %zu of\n%s", i, k, proof.data);
            proof.data[k] ^= 1;
        }
        for (size_t k = 0; k < proof.len; k += 31)
            assert_int_equal(weft__learn_proof_check(proof.data, k, &key, &proven, &err), WEFT_FORMAT);
        weft__strbuf_free(&proof);
    }
    weft__strbuf none = {0};
    assert_int_equal(weft__learn_witness_prove(folder, ENTRIES, NULL, &none, &err), WEFT_NOT_FOUND);
    assert_int_equal(weft__learn_witness_prove(folder, 0, "cmpl", &none, &err), WEFT_NOT_FOUND);
}

static void a_key_reads_as_it_is_written(void **state)
{
    weft__learn_pair pair;
    weft__learn_vkey key, back;
    weft__strbuf text = {0};
    (void)state;
    assert_int_equal(weft__learn_pair_new(&pair, NULL), WEFT_OK);
    assert_int_equal(weft__learn_vkey_of("example.org/log", pair.public_key, &key, NULL), WEFT_OK);
    weft__learn_vkey_write(&key, &text);
    assert_int_equal(weft__learn_vkey_read(text.data, text.len, &back, NULL), WEFT_OK);
    assert_string_equal(back.name, key.name);
    assert_memory_equal(back.public_key, key.public_key, 32);
    for (size_t i = 0; i < text.len; i += 3) {
        text.data[i] ^= 1;
        assert_int_equal(weft__learn_vkey_read(text.data, text.len, &back, NULL), WEFT_FORMAT);
        text.data[i] ^= 1;
        assert_int_equal(weft__learn_vkey_read(text.data, i, &back, NULL), WEFT_FORMAT);
    }
    weft__strbuf_free(&text);
}

static int use_log(void *arg)
{
    (void)arg;
    weft__learn_witness *w;
    weft__strbuf proof = {0};
    weft__learn_findings f;
    weft_error err = {0};
    weft_status st = weft__learn_witness_open(folder, WEFT__LEARN_SYNC_NONE, &w, &err);
    if (!st) st = weft__learn_witness_append(w, &(weft__learn_entry){"{}", 2}, 1, &err);
    weft__learn_witness_close(&w);
    if (!st) st = weft__learn_witness_verify(folder, NULL, NULL, 0, &f, &err);
    if (!st) st = weft__learn_witness_prove(folder, 0, NULL, &proof, &err);
    weft__strbuf_free(&proof);
    if (st && st != WEFT_NO_MEMORY) fail_msg("%s", err.message);
    return !st;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    make_log();
    fail_each(use_log, NULL);
}

#define ON_FOLDER(claim) cmocka_unit_test_setup_teardown(claim, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FOLDER(goes_on_where_it_was),
        ON_FOLDER(every_change_is_found_by_place),
        ON_FOLDER(changed_hashes_and_checkpoints_are_found),
        ON_FOLDER(a_new_tree_is_not_signed),
        ON_FOLDER(a_cut_log_is_found_by_who_kept_a_checkpoint),
        ON_FOLDER(opens_after_a_kill_anywhere),
        ON_FOLDER(what_is_missing_is_not_passed_over),
        ON_FOLDER(no_room_changes_nothing),
        ON_FOLDER(proofs_hold_as_they_were_made),
        cmocka_unit_test(a_key_reads_as_it_is_written),
        ON_FOLDER(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
