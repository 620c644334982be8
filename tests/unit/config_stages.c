// SPDX-License-Identifier: Apache-2.0
/* config_stages.c: a file of stages is read as it stands, or refused with every fault, its place and its path. */
#include <stdio.h>
#include <string.h>

#include "unit/fixture.h"

#include "config/stages.h"

static int known_command(void *arg, const char *command, char *why, size_t room)
{
    (void)arg;
    if (!strcmp(command, "train") || !strcmp(command, "adapter train")) return 1;
    return snprintf(why, room, "no such command"), 0;
}

static int known_setting(void *arg, const char *command, const weft__config_setting *s, char *why, size_t room)
{
    (void)arg;
    if (strcmp(s->name, "loss") != 0 || !command || !strcmp(command, "adapter train")) return s->name[0] != 'x';
    return snprintf(why, room, "no loss of models"), 0;
}

static const weft__config_stages_known known = {known_command, known_setting, NULL};

static const char whole[] = "defaults: {seed: 3}\n"
                            "stages:\n"
                            "  words:\n"
                            "    command: train\n"
                            "    data: [a.txt, b.txt]\n"
                            "    best: yes\n"
                            "    resume: True\n"
                            "  taste: {loss: dpo, command: adapter train, lr: 1e-3}\n";

static void stages_stand_in_their_order(void **state)
{
    (void)state;
    weft__config_stages *c;
    weft__config_faults faults = {0};
    weft_error err = {0};
    if (weft__config_stages_parse("f", whole, strlen(whole), &known, &c, &faults, &err)) fail_msg("%s", err.message);
    assert_int_equal(c->n, 2);
    assert_int_equal(c->defaults.n, 1);
    assert_string_equal(c->defaults.items[0].values[0], "3");
    assert_string_equal(c->items[0].name, "words");
    assert_string_equal(c->items[0].command, "train");
    assert_int_equal(c->items[0].settings.n, 3);
    assert_string_equal(c->items[0].settings.items[0].name, "data");
    assert_int_equal(c->items[0].settings.items[0].n, 2);
    assert_string_equal(c->items[0].settings.items[0].values[1], "b.txt");
    assert_string_equal(c->items[0].settings.items[2].values[0], "true");
    assert_string_equal(c->items[1].command, "adapter train");
    assert_int_equal(c->items[1].settings.n, 2);
    assert_string_equal(c->items[1].settings.items[0].name, "loss");
    assert_int_equal(c->items[1].line, 8);
    weft__config_stages_free(&c);
}

static const struct {
    const char *text, *words;
} faulty[] = {
    {"", "f:1:1: 'stages' is missing"},
    {"defaults: {}\n", "f:1:1: 'stages' is missing"},
    {"stages: {}\n", "f:1:9: stages: must be 1 to 64 stages"},
    {"stages: []\n", "f:1:9: stages: must be a map, not a list"},
    {"stage: {}\n", "f:1:1: there is no 'stage' here; did you mean 'stages'?"},
    {"stages:\n  a: {}\n", "f:2:3: stages.a: 'command' is missing"},
    {"stages:\n  a: 5\n", "f:2:6: stages.a: must be a map, not a whole number"},
    {"stages:\n  a: {command: tain}\n", "f:2:16: stages.a.command: no such command"},
    {"stages:\n  a b: {command: train}\n", "f:2:3: stages.a b: 'a b' is no name"},
    {"stages:\n  a:\n    command: train\n    loss: dpo\n", "f:4:5: stages.a.loss: no loss of models"},
    {"stages:\n  a:\n    command: train\n    lr: {b: c}\n", "f:4:9: stages.a.lr: must be a value, not a map"},
    {"stages:\n  a:\n    command: train\n    lr:\n", "stages.a.lr: must be a value, not nothing"},
    {"stages:\n  a:\n    command: train\n  a:\n    command: train\n", "f:4:3: 'a' stands here twice"},
    {"stages:\n  a: {command: train}\ndefaults: [1]\n", "f:3:11: defaults: must be a map"},
    {"stages: {a: {command: train}\n", "not YAML"},
};

static void faults_have_a_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++) {
        weft__config_stages *c;
        weft__config_faults faults = {0};
        weft_error err = {0};
        assert_int_equal(
            weft__config_stages_parse("f", faulty[i].text, strlen(faulty[i].text), &known, &c, &faults, &err),
            WEFT_FORMAT);
        assert_null(c);
        if (!strstr(err.message, faulty[i].words)) fail_msg("'%s', not '%s'", err.message, faulty[i].words);
        weft__config_faults_free(&faults);
    }
}

static int parse_once(void *arg)
{
    weft__config_stages *c = NULL;
    weft__config_faults faults = {0};
    (void)arg;
    const weft_status st = weft__config_stages_parse("f", whole, strlen(whole), &known, &c, &faults, NULL);
    if (st && st != WEFT_NO_MEMORY) fail_msg("status %d", (int)st);
    weft__config_stages_free(&c);
    weft__config_faults_free(&faults);
    return !st;
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    assert_true(fail_some(parse_once, NULL, 1) > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_stand_in_their_order),
        cmocka_unit_test(faults_have_a_place),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests_name("config_stages", tests, NULL, NULL);
}
