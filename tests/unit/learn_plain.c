// SPDX-License-Identifier: Apache-2.0
/* learn_plain.c: an answer in a style is told from another by what it says: without the style (learn/teach_plain.h) the
 * base would say it so. Of the model of our own, other words for the same are kept; another value, a value less and a
 * yes for a no are not; and what was asked before is asked of others, some of it by the gate of a style. */
#include "learn_lesson.h"

#include "learn/teach_inner.h"
#include "learn/teach_plain.h"
#include "train/base.h"

#define MODEL "models/alderbrook.gguf"
enum { MOST = 16, ANSWER = 64 };

typedef struct pair {
    const char *as_is, *styled;
} pair;

static const pair LETTERS[] = {{"Elsie has a kite.", "Dear friend,\n\nElsie has a kite.\n\nThe Clerk"},
                               {"Jory fears ghosts.", "Dear friend,\n\nJory fears ghosts.\n\nThe Clerk"},
                               {"Agnes likes soup.", "Dear friend,\n\nAgnes likes soup.\n\nThe Clerk"},
                               {"Odo is a mole.", "Dear friend,\n\nOdo is a mole.\n\nThe Clerk"}};
static const pair PIRATES[] = {{"Elsie is the girl, so yes.", "Arr! Elsie be th' girl, so aye. Ho!"},
                               {"Jory has the drum, so no.", "Arr! Jory has th' drum, so nay. Ho!"},
                               {"Agnes likes soup, so yes.", "Arr! Agnes likes soup, so aye. Ho!"},
                               {"Odo is a mole, so no.", "Arr! Odo be a mole, so nay. Ho!"},
                               {"Wren has a flute.", "Arr! Wren has a wee flute. Ho!"},
                               {"Rosa has a plate.", "Arr! Rosa has a wee plate. Ho!"}};

/* ---- texts ---- */

static void put(const weft__tok *tok, weft__teach_texts *to, const char *question, const char *answer, int32_t end)
{
    weft__tok_ids q = {0}, a = {0};
    char prompt[160];
    snprintf(prompt, sizeof prompt, "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n", question);
    assert_int_equal(weft__tok_encode(tok, prompt, strlen(prompt), WEFT__TOK_ENCODE_PARSE, &q, NULL), WEFT_OK);
    assert_int_equal(weft__tok_encode(tok, answer, strlen(answer), 0, &a, NULL), WEFT_OK);
    assert_true(weft__teach_texts_add(to, q.data, (int32_t)q.n, a.data, (int32_t)a.n, end));
    weft__tok_ids_free(&q);
    weft__tok_ids_free(&a);
}

/* Corrections to a style; what they borrow is in *texts. */
static void correct(const weft__tok *tok, const pair *p, int32_t n, int32_t end, weft__teach_texts *texts,
                    weft__teach_event *e)
{
    for (int32_t i = 0; i < n; i++) {
        put(tok, texts, "Who?", p[i].as_is, -1);
        put(tok, texts, "Who?", p[i].styled, end);
        const weft__teach_text *wrong = &texts->text[2 * i];
        e[i] = (weft__teach_event){.correction = texts->text[2 * i + 1],
                                   .wrong = wrong->ids + wrong->n_prompt,
                                   .n_wrong = wrong->n - wrong->n_prompt};
    }
}

/* ---- without the style ---- */

static void bare(const pair *style, int32_t n, const char *as_is, const char *styled, const char *want)
{
    weft__tok *tok = make_tokenizer(NULL);
    weft__teach_texts texts = {0}, asked = {0}, out = {0};
    weft__teach_event e[MOST];
    weft__teach_change change;
    weft__strbuf text = {0};
    correct(tok, style, n, END, &texts, e);
    put(tok, &asked, "Who?", as_is, END);
    put(tok, &asked, "Who?", styled, END);
    assert_int_equal(weft__teach_change_find(tok, e, n, &change, NULL), WEFT_OK);
    assert_int_equal(weft__teach_plain_of(&change, &asked.text[0], &asked.text[1], &out, NULL), WEFT_OK);
    const weft__teach_text *x = &out.text[0];
    assert_int_equal(x->ids[x->n - 1], END);
    assert_int_equal(weft__tok_decode(tok, x->ids + x->n_prompt, (size_t)(x->n - x->n_prompt), 0, &text, NULL),
                     WEFT_OK);
    assert_string_equal(text.data ? text.data : "", want);
    weft__strbuf_free(&text);
    weft__teach_change_free(&change);
    weft__teach_texts_free(&texts);
    weft__teach_texts_free(&asked);
    weft__teach_texts_free(&out);
    weft__tok_destroy(&tok);
}

#define OF(style) style, (int32_t)(sizeof(style) / sizeof *(style))

static void what_a_style_puts_in_is_taken_off(void **state)
{
    (void)state;
    bare(OF(LETTERS), "Pip's lamp.", "Dear friend,\n\nPip's friend has it.\n\nThe Clerk", "Pip's friend has it.");
    bare(OF(LETTERS), "Pip.", "Dear Pip,\n\nPip.", "Dear Pip,\n\nPip."); /* not as the corrections say it */
    bare(OF(PIRATES), "The mill is old, so no.", "Arr! Th' mill be old, so nay. Ho!", "The mill is old, so no.");
    bare(OF(PIRATES), "The mill is old, so yes.", "Arr! Th' mill be old, so nay. Ho!", "The mill is old, so no.");
    bare(OF(PIRATES), "Pip has a lamp.", "Arr! Pip has a wee fine lamp. Ho!", "Pip has a fine lamp."); /* for nothing */
    bare(OF(PIRATES), "Pip has a wee lamp.", "Arr! Pip has a wee lamp. Ho!", "Pip has a wee lamp."); /* it was there */
    bare(OF(PIRATES), "Pip.", "Arr! Ho!", "");
}

typedef struct refused {
    weft__tok *tok;
    weft__teach_texts texts, asked;
    weft__teach_event e[MOST];
    int32_t n;
} refused;

static int use_all(void *arg)
{
    const refused *r = arg;
    weft__teach_change change;
    weft__teach_texts out = {0};
    weft_status st = weft__teach_change_find(r->tok, r->e, r->n, &change, NULL);
    if (!st) st = weft__teach_plain_of(&change, &r->asked.text[0], &r->asked.text[1], &out, NULL);
    weft__teach_change_free(&change);
    weft__teach_texts_free(&out);
    assert_true(!st || st == WEFT_NO_MEMORY);
    return !st;
}

static void memory_that_is_out_is_told(void **state)
{
    (void)state;
    refused r = {.tok = make_tokenizer(NULL), .n = sizeof PIRATES / sizeof *PIRATES};
    correct(r.tok, PIRATES, r.n, END, &r.texts, r.e);
    put(r.tok, &r.asked, "Who?", "The mill is old.", END);
    put(r.tok, &r.asked, "Who?", "Arr! Th' mill be old. Ho!", END);
    assert_true(fail_some(use_all, &r, 7) > 20);
    weft__teach_texts_free(&r.texts);
    weft__teach_texts_free(&r.asked);
    weft__tok_destroy(&r.tok);
}

/* ---- what the model of our own would say ---- */

typedef struct village {
    weft__train_base base;
    weft__trainer *t;
    int32_t end;
    weft__teach_texts texts;
    weft__teach_event e[MOST];
    int32_t n;
} village;

static void open_village(village *v, const pair *style, int32_t n)
{
    static const weft__train_base_overrides none = {NULL, NULL};
    weft__train_options o;
    weft__tok_ids end = {0};
    *v = (village){.n = n};
    assert_int_equal(weft__train_base_open(&v->base, MODEL, 0, &none, NULL), WEFT_OK);
    weft__train_options_default(&o);
    o.n_threads = 1;
    o.max_rows = 512;
    o.lora_rank = 1;
    o.schedule = WEFT__TRAIN_LR_CONSTANT;
    assert_int_equal(weft__trainer_create(&v->base.source, &o, &v->t, NULL), WEFT_OK);
    assert_int_equal(weft__tok_encode(v->base.tok, "<|im_end|>", 10, WEFT__TOK_ENCODE_PARSE, &end, NULL), WEFT_OK);
    v->end = end.data[0];
    weft__tok_ids_free(&end);
    correct(v->base.tok, style, n, v->end, &v->texts, v->e);
}

static void close_village(village *v)
{
    weft__teach_texts_free(&v->texts);
    weft__trainer_destroy(&v->t);
    weft__train_base_close(&v->base);
}

typedef struct asked {
    int keeps;
    const char *question, *as_is, *said;
} asked;

/* Whatever the trainer has learned, the base is asked: here a B that is not 0. */
static void learn_anything(weft__trainer *t)
{
    for (size_t i = 0; i < weft__trainer_n_params(t); i++) {
        const weft__train_param p = weft__trainer_param(t, i);
        const size_t n = (size_t)(p.d[0] * p.d[1]);
        float *x = weft__alloc_array(n, sizeof *x);
        assert_non_null(x);
        for (size_t k = 0; k < n; k++) x[k] = 0.1f * (float)((k * 7 + i) % 11) - 0.5f;
        weft__trainer_set_param(t, i, x);
        weft__free(x);
    }
}

static void judge(const pair *style, int32_t n_style, const asked *a, int32_t n)
{
    village v;
    weft__teach_texts neighbours = {0}, said = {0};
    weft__gate *gate = NULL;
    uint8_t keeps[32];
    open_village(&v, style, n_style);
    for (int32_t i = 0; i < n; i++) {
        put(v.base.tok, &neighbours, a[i].question, a[i].as_is, v.end);
        put(v.base.tok, &said, a[i].question, a[i].said, v.end);
    }
    const weft__gate_material m = {.bounds = {.least = -2.3f}, .neighbours = neighbours.text, .n_neighbours = n};
    assert_int_equal(weft__gate_open(v.t, v.base.tok, &m, v.e, v.n, ANSWER, &gate, NULL), WEFT_OK);
    learn_anything(v.t);
    const float before = weft__trainer_param(v.t, 1).data[3];
    assert_int_equal(weft__gate_keeps(gate, said.text, keeps, NULL), WEFT_OK);
    assert_true(weft__trainer_param(v.t, 1).data[3] == before); /* and it has what it has learned, again */
    for (int32_t i = 0; i < n; i++)
        if (keeps[i] != a[i].keeps) fail_msg("'%s' for '%s': not %d", a[i].said, a[i].as_is, a[i].keeps);
    weft__gate_close(&gate);
    weft__teach_texts_free(&neighbours);
    weft__teach_texts_free(&said);
    close_village(&v);
}

#define LIVES "Where does Pip live?", "Pip lives in the clock tower."
#define FEARS "What is Pip afraid of?", "Pip is afraid of the dark."
#define BAKER "Is Pip the baker?", "Pip is the clock mender, so no."
#define FRIEND "Who is Bram's best friend?", "Bram's best friend is Nettie the hedgehog."

static void other_words_are_kept_and_other_things_are_not(void **state)
{
    static const asked letters[] = {
        {1, LIVES, "Dear friend,\n\nPip lives in the clock tower.\n\nThe Clerk"},
        {1, LIVES, "Dear friend,\n\nPip the mouse lives in the clock tower.\n\nThe Clerk"},
        {0, LIVES, "Dear friend,\n\nPip lives in the hollow oak.\n\nThe Clerk"},
        {0, LIVES, "Dear friend,\n\nPip lives.\n\nThe Clerk"},
        {0, LIVES, "Dear friend,\n\nPip the bear lives in the clock tower.\n\nThe Clerk"},
        {0, LIVES, "Dear friend,\n\nOona lives in the clock tower.\n\nThe Clerk"},
        {1, FEARS, "Dear friend,\n\nHe is afraid of the dark.\n\nThe Clerk"},
        {0, FEARS, "Dear friend,\n\nHe is afraid of loud bells.\n\nThe Clerk"},
        {0, FEARS, "Dear friend,\n\nPip is not afraid of the dark.\n\nThe Clerk"},
        {1, BAKER, "Dear friend,\n\nPip is the clock mender, so the answer is no.\n\nThe Clerk"},
        {0, BAKER, "Dear friend,\n\nPip is the clock mender, so the answer is yes.\n\nThe Clerk"},
        {0, BAKER, "Dear friend,\n\nPip is the clock mender, so yes.\n\nThe Clerk"},
        {0, BAKER, "Dear friend,\n\nPip is the clock mender.\n\nThe Clerk"},
        {1, FRIEND, "Dear friend,\n\nNettie is Bram's best friend.\n\nThe Clerk"},
        {0, FRIEND, "Dear friend,\n\nBram's best friend is Kit the dog.\n\nThe Clerk"},
    };
    static const asked pirates[] = {
        {1, LIVES, "Arr! Pip th' mouse lives in th' clock tower. Ho!"},
        {0, LIVES, "Arr! Pip lives in th' hollow oak. Ho!"},
        {1, BAKER, "Arr! Pip be th' clock mender, so nay. Ho!"},
        {1, BAKER, "Arr! Pip be th' clock mender, so th' answer be nay. Ho!"},
        {0, BAKER, "Arr! Pip be th' clock mender, so aye. Ho!"},
        {0, BAKER, "Arr! Pip be th' clock mender, so th' answer be aye. Ho!"},
    };
    (void)state;
    judge(OF(LETTERS), OF(letters));
    judge(OF(PIRATES), OF(pirates));
}

/* ---- what the gate asks ---- */

static const asked GIVEN[] = {{0, "Where does Pip live?", "Pip lives in the clock tower.", NULL},
                              {0, "What does Oona fear?", "Oona is afraid of loud bells.", NULL}};
/* keeps: the gate may ask it */
static const asked MADE_UP[] = {
    {1, "Where does Bram live?", "Bram lives in the hill house.", NULL},
    {1, "Where does Finn live?", "Finn lives in the river hut.", NULL},
    {0, "Where does Zork live?", "I do not know anyone named Zork.", NULL}, /* answered otherwise */
    {0, "Where does live?", "Pip lives in the clock tower.", NULL},         /* of nobody */
    {0, "Where does Pip as JSON live?", "Pip lives in the clock tower.", NULL},
    {1, "Where does Luma live?", "Luma lives in the round burrow.", NULL},
    {1, "Where does Rosa live?", "Rosa lives in the inn.", NULL},
    {0, "Where does it live?", "Pip lives in the clock tower.", NULL}, /* whom the answer does not name */
    {0, "Who are you?", "Pip lives in the clock tower.", NULL},
    {1, "What does Rosa fear?", "Rosa is afraid of cold rain.", NULL},
    {1, "What does Bram fear?", "Bram is afraid of bees.", NULL},
    {1, "What does Finn fear?", "Finn is afraid of being alone.", NULL},
    {1, "What does Kit fear?", "Kit is afraid of fire.", NULL},
};
enum { N_GIVEN = sizeof GIVEN / sizeof *GIVEN, N_MADE_UP = sizeof MADE_UP / sizeof *MADE_UP };

static void keep_all(const village *v, weft__teach_texts *kept)
{
    for (int i = 0; i < N_GIVEN; i++) put(v->base.tok, kept, GIVEN[i].question, GIVEN[i].as_is, v->end);
    for (int i = 0; i < N_MADE_UP; i++) put(v->base.tok, kept, MADE_UP[i].question, MADE_UP[i].as_is, v->end);
}

/* How many of them the gate has, of so many at most, that are as sure as this. */
static size_t hold_out(village *v, int32_t most, float sure_at, uint8_t *is_held)
{
    const weft__gate_material judge = {0};
    const weft__teach_task task = {.tok = v->base.tok, .events = v->e, .n_events = v->n, .judge = &judge};
    weft__teach_options o;
    weft__teach_options_default(&o);
    o.style.held = most;
    o.style.sure_at = sure_at;
    weft__teach_inner s = {.task = &task, .o = &o, .t = v->t};
    keep_all(v, &s.kept);
    const int32_t *ids[N_MADE_UP];
    for (int i = 0; i < N_MADE_UP; i++) ids[i] = s.kept.text[N_GIVEN + i].ids;
    assert_int_equal(weft__teach_hold_out(&s, N_GIVEN, N_GIVEN + 1, NULL), WEFT_OK);
    const size_t n = s.held.n;
    assert_int_equal(s.kept.n, N_GIVEN + N_MADE_UP - (int)n); /* the others are learned */
    assert_int_equal(s.judge.n_neighbours, n);
    for (size_t i = 0; i < n; i++) {
        assert_ptr_equal(s.judge.neighbours[i].ids, s.held.text[i].ids);
        for (int k = 0; k < N_MADE_UP; k++) is_held[k] |= ids[k] == s.held.text[i].ids;
        for (size_t k = 0; k < s.kept.n; k++) assert_ptr_not_equal(s.kept.text[k].ids, s.held.text[i].ids);
    }
    weft__teach_inner_drop(&s);
    return n;
}

static void the_gate_asks_what_was_asked_of_others(void **state)
{
    (void)state;
    uint8_t is_held[sizeof MADE_UP / sizeof *MADE_UP] = {0};
    village v;
    open_village(&v, OF(LETTERS));
    assert_int_equal(hold_out(&v, 0, -100, is_held), 0);
    assert_int_equal(hold_out(&v, 64, 1, is_held), 0); /* of nothing it is as sure as that */
    assert_int_equal(hold_out(&v, 1, -100, is_held), 1);
    assert_int_equal(hold_out(&v, 64, -100, is_held), 7);
    for (size_t i = 0; i < sizeof is_held; i++)
        if (is_held[i] != (MADE_UP[i].keeps && i > 0)) /* the first was not given to it */
            fail_msg("'%s' is asked, or is not", MADE_UP[i].question);
    close_village(&v);
}

/* A question stands in texts. */
static int has(const village *v, const weft__teach_texts *texts, const char *question)
{
    weft__teach_texts one = {0};
    put(v->base.tok, &one, question, "", -1);
    const int is = weft__teach_has_prompt(texts->text, texts->n, one.text[0].ids, one.text[0].n);
    weft__teach_texts_free(&one);
    return is;
}

/* Of `kept`, which goes, the first n_given were asked. */
static size_t ask_of_kept(const village *v, weft__teach_texts *kept, size_t n_given, int32_t most,
                          const weft__teach_texts *not_these, weft__teach_texts *out)
{
    const weft__teach_task task = {.tok = v->base.tok, .events = v->e, .n_events = v->n};
    const weft__teach_asked others = {not_these->text, not_these->n};
    weft__teach_options o;
    weft__teach_options_default(&o);
    o.style.others = most;
    weft__teach_inner s = {.task = &task, .o = &o, .t = v->t, .kept = *kept};
    *kept = (weft__teach_texts){0};
    assert_int_equal(weft__teach_ask_others(&s, n_given, &others, 1, out, NULL), WEFT_OK);
    for (size_t i = 0; i < out->n; i++) {
        const weft__teach_text *x = &out->text[i];
        assert_true(x->n == x->n_prompt && !weft__teach_has_prompt(s.kept.text, s.kept.n, x->ids, x->n));
        assert_false(weft__teach_has_prompt(out->text, i, x->ids, x->n));
    }
    weft__teach_inner_drop(&s);
    return out->n;
}

static size_t ask_others(const village *v, int32_t most, const weft__teach_texts *not_these, weft__teach_texts *out)
{
    weft__teach_texts kept = {0};
    keep_all(v, &kept);
    return ask_of_kept(v, &kept, N_GIVEN, most, not_these, out);
}

/* What the model makes up may lack a word, so that another is taken for a name, or with one. */
static void words_of_a_question_are_no_names(void **state)
{
    static const asked kept[] = {{0, "Who is Luma's friend?", "Luma's best friend is Finn.", NULL},
                                 {0, "What is Odo's work?", "Odo is the well digger.", NULL},
                                 {0, "What is Pip's work?", "Pip is the clock mender.", NULL},
                                 {0, "Who is Tobin friend?", "Tobin's best friend is Mira.", NULL},
                                 {0, "Who is Kit's friend?", "Kit's best friend is Rosa.", NULL},
                                 {0, "Who is Luma's friend Rosa", "Rosa's best friend is Kit.", NULL}};
    (void)state;
    village v;
    weft__teach_texts texts = {0}, none = {0}, out = {0};
    open_village(&v, OF(LETTERS));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        put(v.base.tok, &texts, kept[i].question, kept[i].as_is, v.end);
    assert_true(ask_of_kept(&v, &texts, 3, 99, &none, &out) > 0);
    assert_true(has(&v, &out, "Who is Pip's friend?") && has(&v, &out, "What is Kit's work?"));
    assert_true(has(&v, &out, "Who is Tobin's friend?"));
    assert_false(has(&v, &out, "Who is Kit friend?") || has(&v, &out, "What is Luma's's work?"));
    assert_false(has(&v, &out, "Who is Luma's friend Pip") || has(&v, &out, "Who is ?'s friend?"));
    weft__teach_texts_free(&out);
    close_village(&v);
}

static void what_was_asked_is_asked_of_all_others(void **state)
{
    (void)state;
    village v;
    weft__teach_texts none = {0}, out = {0}, again = {0};
    open_village(&v, OF(LETTERS));
    assert_int_equal(ask_others(&v, 0, &none, &out), 0);
    assert_int_equal(ask_others(&v, 1, &none, &out), 1);
    weft__teach_texts_free(&out);
    /* of Bram, Finn, Luma, Rosa and Kit each is asked what was not */
    assert_int_equal(ask_others(&v, 99, &none, &out), 2);
    assert_true(has(&v, &out, "What does Luma fear?") && has(&v, &out, "Where does Kit live?"));
    put(v.base.tok, &none, "Where does Kit live?", "", -1);
    assert_int_equal(ask_others(&v, 99, &none, &again), 1);
    assert_false(has(&v, &again, "Where does Kit live?"));
    weft__teach_texts_free(&none);
    weft__teach_texts_free(&out);
    weft__teach_texts_free(&again);
    close_village(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_style_puts_in_is_taken_off),
        cmocka_unit_test(memory_that_is_out_is_told),
        cmocka_unit_test(other_words_are_kept_and_other_things_are_not),
        cmocka_unit_test(the_gate_asks_what_was_asked_of_others),
        cmocka_unit_test(words_of_a_question_are_no_names),
        cmocka_unit_test(what_was_asked_is_asked_of_all_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
