// SPDX-License-Identifier: Apache-2.0
/* config.c: a file of settings is read whole or not at all: what stands there arrives, all that is wrong is told by its
 * place, and no text takes more than its bounds. */
#include "unit/fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"

static weft__config *config;
static weft__config_faults faults;

/* A setting "port" of numbers, and a flag; in a model's options, "ctx". */
static int known_setting(void *arg, const weft__config_setting *s, int of_model, char *why, size_t room)
{
    (void)arg;
    const char *const name = s->name;
    if (of_model ? !strcmp(name, "ctx") : !strcmp(name, "port") || !strcmp(name, "quiet") || !strcmp(name, "alias")) {
        if (strcmp(name, "port") || s->kind == WEFT__CONFIG_INT) return 1;
        snprintf(why, room, "%s is no port", s->values[0]);
        return 0;
    }
    snprintf(why, room, "no setting '%s'", name);
    return 0;
}

static const weft__config_known known = {.setting = known_setting};

static weft_status read_n(const char *text, size_t n)
{
    weft_error err = {0};
    weft__config_free(&config);
    weft__config_faults_free(&faults);
    const weft_status st = weft__config_parse("f", text, n, &known, &config, &faults, &err);
    assert_int_equal(!st, config != NULL);
    assert_int_equal(st == WEFT_FORMAT, faults.n > 0);
    assert_true(!st || err.message[0]);
    return st;
}

static void end(void)
{
    weft__config_free(&config);
    weft__config_faults_free(&faults);
}

static void reads(const char *text)
{
    const weft_status st = read_n(text, strlen(text));
    if (st)
        fail_msg("%s\n%d:%d: %s", text, faults.n ? faults.items[0].line : 0, faults.n ? faults.items[0].column : 0,
                 faults.n ? faults.items[0].message : "");
}

/* All that is told of it, a line each. */
static void told(const char *text, const char *want)
{
    weft__strbuf out = {0};
    assert_int_equal(read_n(text, strlen(text)), WEFT_FORMAT);
    weft__config_faults_write(&faults, "f", &out);
    assert_string_equal(out.data, want);
    weft__strbuf_free(&out);
}

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HASH_2 "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char whole[] = "server:\n"
                            "  port: 8080\n"
                            "  quiet: true\n"
                            "  alias: [a, 7]\n"
                            "models:\n"
                            "  one: one.gguf\n"
                            "  org/two:\n"
                            "    path: two.gguf\n"
                            "    pinned: true\n"
                            "    adapters: {law: law.gguf, med: {path: med.gguf, scale: 0.5}}\n"
                            "    options: {ctx: 512}\n"
                            "presets:\n"
                            "  tale:\n"
                            "    base: one\n"
                            "    system: |\n"
                            "      You tell tales.\n"
                            "    sampling: {temperature: 0.7, top_k: 40, stop: [\"#\"], max_tokens: 100}\n"
                            "    adapters: {law: 2, med: }\n"
                            "    chat-template: t.jinja\n"
                            "keys:\n"
                            "  - name: anna\n"
                            "    hash: sha256:" HASH "\n"
                            "    role: admin\n"
                            "  - name: bert\n"
                            "    hash: " HASH_2 "\n"
                            "    organisation: acme\n"
                            "    team: lab\n"
                            "    limits: {concurrent: 2}\n"
                            "organisations:\n"
                            "  acme:\n"
                            "    limits: {tokens-per-minute: 100000, models: [one, tale]}\n"
                            "    teams:\n"
                            "      lab:\n"
                            "        limits: {requests-per-minute: 60, adapters: []}\n"
                            "      shop:\n";

static void what_stands_there_arrives(void **state)
{
    (void)state;
    reads(whole);
    const weft__config *c = config;
    assert_int_equal(c->server.n, 3);
    assert_string_equal(c->server.items[1].values[0], "true");
    assert_int_equal(c->server.items[2].n, 2);
    assert_string_equal(c->server.items[2].values[1], "7");
    assert_int_equal(c->n_models, 2);
    assert_string_equal(c->models[0].path, "one.gguf");
    assert_int_equal(c->models[0].pinned, 0);
    const weft__config_model *two = &c->models[1];
    assert_string_equal(two->name, "org/two");
    assert_int_equal(two->pinned, 1);
    assert_string_equal(two->adapters[1].path, "med.gguf");
    assert_true(isnan(two->adapters[0].scale) && two->adapters[1].scale == 0.5);
    assert_string_equal(two->options.items[0].values[0], "512");
    const weft__config_preset *p = &c->presets[0];
    assert_string_equal(p->base, "one");
    assert_string_equal(p->system, "You tell tales.\n");
    weft__strbuf out = {0};
    weft__json_write(&out, p->sampling, WEFT__JSON_COMPACT);
    assert_string_equal(out.data, "{\"temperature\":0.7,\"top_k\":40,\"stop\":[\"#\"],\"max_tokens\":100}");
    weft__strbuf_free(&out);
    assert_int_equal(p->n_adapters, 2);
    assert_true(p->adapters[0].scale == 2 && isnan(p->adapters[1].scale));
    const weft__config_key *anna = &c->keys[0], *bert = &c->keys[1];
    assert_string_equal(anna->hash, HASH);
    assert_true(anna->is_admin && !bert->is_admin && !anna->organisation);
    assert_string_equal(bert->organisation->name, "acme");
    assert_string_equal(bert->team->name, "lab");
    assert_int_equal(bert->limits.concurrent, 2);
    assert_int_equal(bert->limits.models.given, 0);
    assert_int_equal(bert->team->limits.requests_per_minute, 60);
    assert_true(bert->team->limits.adapters.given && !bert->team->limits.adapters.n);
    assert_int_equal(bert->organisation->limits.tokens_per_minute, 100000);
    assert_string_equal(bert->organisation->limits.models.items[1], "tale");
    assert_int_equal(c->organisations[0].n_teams, 2);
    end();
}

static void nothing_is_something(void **state)
{
    (void)state;
    for (const char *const *t = (const char *const[]){"", "# c\n", "---\n", "{}", "keys:\nserver: ~\nmodels:\n", NULL};
         *t; t++) {
        reads(*t);
        assert_int_equal(config->server.n + config->n_keys + config->n_models, 0);
    }
    end();
}

/* Each of them, with its place, in the order of the file. */
static void all_that_is_wrong_is_told(void **state)
{
    (void)state;
    told("servre: 1\n"
         "server:\n"
         "  port: x\n"
         "  prot: 1\n"
         "  quiet: {a: 1}\n"
         "keys:\n"
         "  - name: a b\n"
         "    hash: 12\n"
         "    role: root\n"
         "    tem: lab\n"
         "  - limits: {concurrent: 0, requests-per-minute: 1.5}\n",
         "f:1:1: there is no 'servre' here; did you mean 'server'?\n"
         "f:3:3: server: x is no port\n"
         "f:4:3: server: no setting 'prot'\n"
         "f:5:10: server.quiet: must be a value, not a map\n"
         "f:7:11: keys[0].name: 'a b' is no name; one has 1 to 31 letters, digits and ._-\n"
         "f:8:11: keys[0].hash: must be sha256: and 64 hexadecimal digits; `weft key hash` makes them of a key\n"
         "f:9:11: keys[0].role: must be admin or user, not 'root'\n"
         "f:10:5: keys[0]: there is no 'tem' here; did you mean 'team'?\n"
         "f:11:5: keys[1]: 'name' is missing\n"
         "f:11:5: keys[1]: 'hash' is missing\n"
         "f:11:26: keys[1].limits.concurrent: must be a whole number from 1 to 1000000000000, not 0\n"
         "f:11:50: keys[1].limits.requests-per-minute: must be a whole number from 1 to 1000000000000, not 1.5\n");
    end();
}

static void what_must_fit_together(void **state)
{
    (void)state;
    told("models: {alder: a.gguf}\n"
         "presets:\n"
         "  alder: {}\n"
         "  x: {base: aldr, sampling: {temperature: 3, temprature: 1, stop: 7, messages: []}}\n"
         "  y: {adapters: [a, b, a]}\n"
         "  \"z z\": {system: ''}\n"
         "organisations: {acme: {teams: {lab: }}}\n"
         "keys:\n"
         "  - {name: a, hash: " HASH ", organisation: acne}\n"
         "  - {name: a, hash: " HASH_2 ", team: lab}\n"
         "  - {name: c, hash: " HASH ", organisation: acme, team: lap, limits: {models: [alder, q]}}\n",
         "f:3:3: presets.alder: a model has that name; give the preset another\n"
         "f:4:3: presets.x: its base 'aldr' is none of models; did you mean 'alder'?\n"
         "f:4:43: presets.x.sampling.temperature: 'temperature' must be from 0 to 2, not 3\n"
         "f:4:46: presets.x.sampling: there is no 'temprature' here; did you mean 'temperature'?\n"
         "f:4:67: presets.x.sampling.stop: 'stop' must be a string or an array of strings\n"
         "f:4:70: presets.x.sampling: there is no 'messages' here\n"
         "f:5:17: presets.y.adapters: names the adapter 'a' twice\n"
         "f:6:3: presets.z z: 'z z' is no name; one has 1 to 63 letters, digits and ._-/\n"
         "f:6:19: presets.z z.system: must be a text, not an empty one\n"
         "f:9:101: keys[0].organisation: there is no organisation 'acne'; did you mean 'acme'?\n"
         "f:10:5: keys: the key of line 9 is called 'a', too; give it another name\n"
         "f:10:93: keys[1].team: names a team of no organisation; name that, too\n"
         "f:11:5: keys: the key of line 9 stands here again\n"
         "f:11:113: keys[2].team: there is no team 'lap'; did you mean 'lab'?\n"
         "f:11:143: keys[2].limits.models: 'q' is none of models and presets\n");
    end();
}

static void what_is_no_yaml(void **state)
{
    (void)state;
    told("server:\n  port: [1\n", "f:3:1: not YAML: did not find expected ',' or ']' while parsing a flow sequence\n");
    told("a: \xff\n", "f:1:4: not YAML: invalid leading UTF-8 octet\n");
    told("server: {port: 1, port: 2}\n", "f:1:19: 'port' stands here twice, first in line 1\n");
    told("server: !x {}\n", "f:1:9: tags are not read; leave it out\n");
    told("server: {port: !!int 1}\n", "f:1:16: tags are not read; leave it out\n");
    told("{}\n---\n{}\n", "f:2:1: a second document; one file holds one\n");
    told("? [a]\n: 1\n", "f:1:3: a key must be a word\n");
    told("server: \"a\\0b\"\n", "f:1:9: a text with a NUL character in it\n");
    told("[1]\n", "f:1:1: must be a map, not a list\n");
    told("7\n", "f:1:1: must be a map, not a whole number\n");
    told("server: &s {quiet: *s}\n", "f:1:20: an alias of no anchor that ended before it\n");
    told("server: {quiet: yes, port: *p}\n", "f:1:28: an alias of no anchor that ended before it\n");
    end();
}

static void kinds_of_words(void **state)
{
    static const struct {
        const char *text;
        int kind;
    } all[] = {{"1", WEFT__CONFIG_INT},      {"-7", WEFT__CONFIG_INT},       {"+7", WEFT__CONFIG_NUMBER},
               {"1.", WEFT__CONFIG_NUMBER},  {".5", WEFT__CONFIG_NUMBER},    {"1e3", WEFT__CONFIG_NUMBER},
               {"1e", WEFT__CONFIG_TEXT},    {"1_0", WEFT__CONFIG_TEXT},     {"0x10", WEFT__CONFIG_TEXT},
               {"1.5.2", WEFT__CONFIG_TEXT}, {".", WEFT__CONFIG_TEXT},       {"-", WEFT__CONFIG_TEXT},
               {"yes", WEFT__CONFIG_TEXT},   {"True", WEFT__CONFIG_BOOL},    {"'1'", WEFT__CONFIG_TEXT},
               {".inf", WEFT__CONFIG_TEXT},  {"\"true\"", WEFT__CONFIG_TEXT}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[64];
        if (!strcmp(all[i].text, "-")) continue; /* begins a list */
        snprintf(text, sizeof text, "server: {alias: %s}", all[i].text);
        reads(text);
        if ((int)config->server.items[0].kind != all[i].kind) fail_msg("%s: %d", text, config->server.items[0].kind);
    }
    end();
}

static void anchors_repeat(void **state)
{
    (void)state;
    reads("presets:\n  a: &a {sampling: &s {top_k: 3}}\n  b: *a\n  c: {sampling: *s}\n");
    assert_int_equal(config->n_presets, 3);
    for (int i = 0; i < 3; i++) {
        int64_t k = 0;
        assert_true(weft__json_int(weft__json_get(config->presets[i].sampling, "top_k"), &k) && k == 3);
    }
    assert_string_equal(config->presets[1].name, "b");
    told("presets:\n  a: &a {sampling: {top_k: -9}}\n  b: *a\n",
         "f:2:28: presets.a.sampling.top_k: 'top_k' must be from -1 to 2147483647, not -9\n"
         "f:2:28: presets.b.sampling.top_k: 'top_k' must be from -1 to 2147483647, not -9\n");
    end();
}

/* Ten in each of nine levels would be a thousand million. */
static void no_text_takes_more_than_its_bounds(void **state)
{
    weft__strbuf t = {0};
    (void)state;
    weft__strbuf_puts(&t, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 9; i++) {
        weft__strbuf_printf(&t, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++) weft__strbuf_printf(&t, "%s*a%d", k ? "," : "", i - 1);
        weft__strbuf_puts(&t, "]\n");
    }
    assert_int_equal(read_n(t.data, t.len), WEFT_FORMAT);
    assert_string_equal(faults.items[0].message, "too many values, those that aliases repeat included; write fewer");
    t.len = 0;
    for (int i = 0; i < 5000; i++) weft__strbuf_puts(&t, "[");
    assert_int_equal(read_n(t.data, t.len), WEFT_FORMAT);
    assert_string_equal(faults.items[0].message, "nested too deep");
    t.len = 0;
    weft__strbuf_puts(&t, "a0: &a0 [x]\n"); /* by aliases */
    for (int i = 1; i < 40; i++) weft__strbuf_printf(&t, "a%d: &a%d [*a%d]\n", i, i, i - 1);
    assert_int_equal(read_n(t.data, t.len), WEFT_FORMAT);
    assert_string_equal(faults.items[0].message, "nested too deep");
    t.len = 0;
    for (int i = 0; i < 300; i++) weft__strbuf_printf(&t, "a%d: &a%d x\n", i, i);
    assert_int_equal(read_n(t.data, t.len), WEFT_FORMAT);
    t.len = 0;
    weft__strbuf_puts(&t, "server: {alias: [");
    for (int i = 0; i < 5000; i++) weft__strbuf_puts(&t, "x,");
    weft__strbuf_puts(&t, "]}");
    assert_int_equal(read_n(t.data, t.len), WEFT_FORMAT);
    assert_string_equal(faults.items[0].message, "too many members here; write fewer");
    t.len = 0;
    for (int i = 0; i < 500; i++) weft__strbuf_printf(&t, "a%d: x\n", i);
    assert_int_equal(read_n(t.data, t.len), WEFT_FORMAT);
    assert_int_equal(faults.n, WEFT__CONFIG_FAULTS);
    assert_int_equal(faults.n_more, 500 - WEFT__CONFIG_FAULTS);
    t.len = 0;
    weft__strbuf_puts(&t, "#");
    for (int i = 0; i < WEFT__CONFIG_BYTES; i++) weft__strbuf_putc(&t, 'x');
    assert_int_equal(read_n(t.data, t.len), WEFT_FORMAT);
    weft__strbuf_free(&t);
    end();
}

static int read_whole(void *arg)
{
    weft__config *c = NULL;
    weft__config_faults f = {0};
    weft_error err = {0};
    const weft_status st = weft__config_parse("f", arg, strlen(arg), &known, &c, &f, &err);
    const int memory = st == WEFT_NO_MEMORY;
    weft__config_free(&c);
    weft__config_faults_free(&f);
    return !memory;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    static char good[sizeof whole],
        bad[] = "server: {port: x}\nkeys: [{name: a}]\npresets: {a: {sampling: {top_k: -9}}}\n";
    memcpy(good, whole, sizeof whole);
    assert_true(fail_each(read_whole, good) > 10);
    assert_true(fail_each(read_whole, bad) > 10);
}

static void a_file_that_is_none(void **state)
{
    weft_error err = {0};
    (void)state;
    assert_int_equal(weft__config_read("/nonexistent/weft.yaml", NULL, &config, &faults, &err), WEFT_NOT_FOUND);
    assert_non_null(strstr(err.message, "/nonexistent/weft.yaml"));
    assert_int_equal(weft__config_read("/", NULL, &config, &faults, &err), WEFT_IO);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_stands_there_arrives),
                                       cmocka_unit_test(nothing_is_something),
                                       cmocka_unit_test(all_that_is_wrong_is_told),
                                       cmocka_unit_test(what_must_fit_together),
                                       cmocka_unit_test(what_is_no_yaml),
                                       cmocka_unit_test(kinds_of_words),
                                       cmocka_unit_test(anchors_repeat),
                                       cmocka_unit_test(no_text_takes_more_than_its_bounds),
                                       cmocka_unit_test(each_allocation_may_fail),
                                       cmocka_unit_test(a_file_that_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
