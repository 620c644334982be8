// SPDX-License-Identifier: Apache-2.0
/* learn_kill.c: claims on a store that is killed, or has no room, at each of its writes: what was acknowledged is
 * there, the database and the witness log know the same, who was forgotten is gone whole, and nothing else is
 * refused later. A child does the work; each write of SQLite and of the log passes through here. */
#include "fixture.h"

#include "each_write.h"
#include "learn/store.h"

/* ---- the work ---- */

/* What the child says was acknowledged. */
struct acks {
    int n_events, is_forgotten, is_done;
};

static void put(weft__learn_store *s, const char *tenant, int i)
{
    char id[16], source[64], text[64];
    const int32_t tokens[] = {1, 2, 3};
    snprintf(id, sizeof id, "cmpl-%d", i);
    snprintf(source, sizeof source, "{\"prompt\":\"Who is %s?\"}", tenant);
    snprintf(text, sizeof text, "It is %s.", tenant);
    const weft__learn_record r = {.tenant = tenant,
                                  .id = id,
                                  .prompt = tokens,
                                  .n_prompt = 3,
                                  .answer = tokens,
                                  .n_answer = 3,
                                  .source = source,
                                  .text = text,
                                  .n_text = strlen(text),
                                  .time_ms = i};
    weft__learn_put(s, &r);
}

static int tell(weft__learn_store *s, const char *tenant, int i, double value)
{
    char id[16];
    weft__learn_told told;
    snprintf(id, sizeof id, "cmpl-%d", i);
    const weft__learn_feedback f = {.tenant = tenant, .id = id, .kind = WEFT__LEARN_REWARD, .value = value};
    return !weft__learn_tell(s, &f, &told, NULL);
}

static int work(void *said)
{
    struct acks *a = said;
    weft__learn_store *s;
    if (weft__learn_open(&(weft__learn_options){.dir = where, .sync = WEFT__LEARN_SYNC_NONE}, &s, NULL)) return 0;
    for (int i = 0; i < 3; i++) {
        put(s, "Zoraida", 2 * i);
        put(s, "Quillon", 2 * i + 1);
        a->n_events += tell(s, "Quillon", 2 * i + 1, i);
        if (i == 1) a->is_forgotten = !weft__learn_forget(s, "Zoraida", NULL, NULL);
    }
    weft__learn_close(&s);
    return 1;
}

/* ---- what is there then ---- */

static void check(const void *said, write_fault how, int n, int is_met)
{
    const struct acks *a = said;
    const int is_killed = is_met && how != DISK_FULL;
    weft__learn_store *s;
    weft__learn_totals quillon, zoraida;
    weft__learn_health h;
    weft__learn_findings f;
    weft_error err = {0};
    if (weft__learn_open(&(weft__learn_options){.dir = where, .sync = WEFT__LEARN_SYNC_NONE}, &s, &err))
        fail_msg("write %d: %s", n, err.message);
    put(s, "Quillon", 99); /* it goes on */
    if (!tell(s, "Quillon", 99, n)) fail_msg("write %d: nothing can be told", n);
    assert_int_equal(weft__learn_count(s, "Quillon", &quillon, NULL), WEFT_OK);
    assert_int_equal(weft__learn_count(s, "Zoraida", &zoraida, NULL), WEFT_OK);
    weft__learn_get_health(s, &h);
    weft__learn_close(&s);
    if (quillon.n_events - 1 < a->n_events)
        fail_msg("write %d: %d events of %d", n, (int)quillon.n_events - 1, a->n_events);
    if (quillon.n_events - 1 > a->n_events + is_killed) fail_msg("write %d: events that nobody was told of", n);
    if (a->is_forgotten && zoraida.n_answers > 1) fail_msg("write %d: forgotten, and there", n);
    if (!zoraida.n_answers && look_for("Zoraida").n_with) fail_msg("write %d: gone, but in a file", n);
    if (h.n_unwitnessed) fail_msg("write %d: %d entries did not get into the log", n, (int)h.n_unwitnessed);
    if (weft__learn_witness_verify(where, NULL, NULL, 0, &f, &err)) fail_msg("write %d: %s", n, err.message);
    if (f.n_signed < (uint64_t)(quillon.n_answers + quillon.n_events + zoraida.n_answers))
        fail_msg("write %d: the log has fewer entries than the store", n);
}

static int walk(write_fault how)
{
    static const each_write of_store = {where_anew, work, check};
    return at_each_write(&of_store, how, (int)how, CLAIMS_SWEPT(CLAIMS_REPEATED(3, 11, 29), 1));
}

static void killed_at_each_write(void **state)
{
    (void)state;
    assert_in_range(walk(KILLED), 20, 1000); /* or the writes were not seen */
}

static void killed_within_each_write(void **state)
{
    (void)state;
    assert_in_range(walk(KILLED_HALFWAY), 20, 1000);
}

static void no_room_at_each_write(void **state)
{
    (void)state;
    assert_in_range(walk(DISK_FULL), 20, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_at_each_write),
                                       cmocka_unit_test(killed_within_each_write),
                                       cmocka_unit_test(no_room_at_each_write)};
    return cmocka_run_group_tests(tests, each_write_begin, each_write_end);
}
