// SPDX-License-Identifier: Apache-2.0
/* batcher_same.c: the same answer, always: whatever runs beside a request, however its prompt is cut, wherever its
 * prefix comes from. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"

#include "base/random.h"
#include "batcher/batcher.h"
#include "format/gguf_write.h"

#define N_MANY CLAIMS_REPEATED(CLAIMS_SWEPT(60, 200), 60, 12)
#define N_WINDOWS CLAIMS_REPEATED(CLAIMS_SWEPT(60, 200), 60, 8)  /* of models with windows */
#define N_CODED CLAIMS_REPEATED(CLAIMS_SWEPT(60, 200), 40, 12)   /* with keys and values as whole numbers */
#define MANY_PREEMPTED CLAIMS_REPEATED(CLAIMS_SWEPT(2, 4), 1, 0) /* so few requests may never meet */
#define MANY_PUT_OFF                                                                                                   \
    CLAIMS_REPEATED(CLAIMS_SWEPT(120, 200), 60,                                                                        \
                    0) /* grammars among so few may never be put off (in_turn has some that are) */

enum {
    MUCH_LONGER = CLAIMS_REPEATED(100, 100, 20), /* tokens; where nobody need give way, enough for another page */
    N_CHUNKS = CLAIMS_REPEATED(3, 2, 1),
    SHARED_STEP = CLAIMS_REPEATED(50, 50, 34), /* tokens of a beginning in common are a multiple of it */
    OWN_MOST = CLAIMS_REPEATED(60, 60, 16),    /* tokens that follow it */
    RACE_TOKENS = CLAIMS_REPEATED(60, 60, 40)
};

static uint32_t kv_type = WEFT_F16; /* of the engines' pages */

static weft_engine_params of_type(void)
{
    weft_engine_params p = small();
    p.kv_dtype = kv_type;
    return p;
}

/* Mixed prompts, half of them with beginnings in common; lengths (the answers of the last quarter are long), seeds,
 * temperatures, penalties; a few with log-probabilities of the prompt, a few embeddings. */
static void make_many(ask *all, int n, const weft_grammar *grammar)
{
    weft__rng rng;
    weft__rng_seed(&rng, 99);
    for (int i = 0; i < n; i++) {
        ask *q = &all[i];
        int shared = (int)weft__rng_below(&rng, 4) * SHARED_STEP, family = (int)weft__rng_below(&rng, 3);
        simple(q, 1 + shared + (int32_t)weft__rng_below(&rng, OWN_MOST), (int32_t)weft__rng_below(&rng, 24));
        if (i >= n - n / 4) { /* they come together, and outgrow by a page what they were let in with */
            q->p.n_tokens = 30 + q->p.n_tokens % 30;
            q->p.max_tokens += MUCH_LONGER;
        }
        for (int32_t k = 0; k < q->p.n_tokens; k++)
            q->tokens[k] = k < shared ? 3 + (k * 17 + family * 111) % 500 : 3 + (int32_t)weft__rng_below(&rng, 500);
        q->p.sampler.seed = weft__rng_below(&rng, 1000);
        q->p.sampler.temperature = (float)weft__rng_below(&rng, 5) * 0.3f;
        q->p.sampler.repeat_penalty = i % 5 == 0 ? 1.3f : 1.0f;
        q->p.sampler.presence_penalty = i % 7 == 0 ? 0.5f : 0;
        q->bias[0] = (weft_logit_bias){5 + i % 100, 2.5f};
        q->bias[1] = (weft_logit_bias){6 + i % 100, -INFINITY};
        q->p.sampler.n_bias = i % 3 == 0 ? 2 : 0;
        q->p.ignore_end = i % 2;
        q->p.n_top = i % 4 == 0 ? i % 8 : -1;
        q->p.prompt_logprobs = i % 16 == 4;
        q->p.priority = i % 3 - 1;
        q->p.tenant = i % 2 ? "one" : "two";
        if (i % 20 == 9) q->p.embedding = WEFT_POOLING_MODEL + i / 20 % 3, q->p.max_tokens = 0;
        else if (grammar && i % 6 == 1) q->p.grammar = grammar;
    }
}

static void check_answers(const ask *all, const answer *a, int n)
{
    int n_tokens = 0, n_ends = 0;
    for (int i = 0; i < n; i++) {
        if (a[i].status) fail_msg("request %d failed: %s", i, a[i].message);
        assert_int_equal(a[i].n_began, 1);
        assert_int_equal(a[i].n_finished, 1);
        assert_true(a[i].finish == WEFT_FINISH_LENGTH ? a[i].n == all[i].p.max_tokens : a[i].finish == WEFT_FINISH_END);
        assert_int_equal(a[i].n_prompt_tokens, all[i].p.prompt_logprobs ? all[i].p.n_tokens : 0);
        assert_int_equal(a[i].n_embedding > 0, all[i].p.embedding != WEFT_POOLING_NONE);
        n_tokens += a[i].n;
        n_ends += a[i].finish == WEFT_FINISH_END;
    }
    print_message("%d requests: %d tokens, %d of them ended by themselves\n", n, n_tokens, n_ends);
    assert_true(n_tokens > n);
}

static void cached_and_stored(weft_model *model, const ask *all, const answer *first, answer *again, int n)
{
    char folder[] = "/tmp/weft-serve-XXXXXX", store[64];
    weft_engine_params p = of_type();
    assert_non_null(mkdtemp(folder));
    snprintf(store, sizeof store, "%s/store", folder);
    p.store_dir = store;
    weft_engine *e = open_engine(model, &p);
    run_together(e, all, again, n);
    compare("with a store", all, first, again, n);
    uint64_t before = stats_of(e).cached_tokens;
    run_together(e, all, again, n);
    compare("after prefix hits", all, first, again, n);
    assert_true(stats_of(e).cached_tokens > before + (uint64_t)n * 10);
    close_engine(&e);
    e = open_engine(model, &p);
    run_alone(e, all, again, n);
    compare("after a restart", all, first, again, n);
    int n_cached = 0; /* of prompts that have little in common with those before them in this process */
    for (int i = 0; i < 8; i++) n_cached += again[i].n_cached;
    print_message("after the restart: %d tokens of the first 8 prompts came from the store\n", n_cached);
    assert_true(n_cached >= 64);
    close_engine(&e);
    remove_folder(folder);
}

/* What a model is asked; n_kv_tokens: the pool in which requests of up to 323 tokens, 16 at once, must give way to each
 * other at least `preempted` times. */
typedef struct course {
    weft_model *model;
    const weft_grammar *grammar;
    int n;
    int64_t n_kv_tokens;
    uint64_t preempted;
    int takes_turns; /* as grammars do, whatever the model */
} course;

static void in_chunks(const course *c, const ask *all, const answer *first, answer *again)
{
    static const int chunks[] = {16, 3, 512};
    for (size_t i = 0; i < N_CHUNKS; i++) {
        weft_engine_params p = of_type();
        p.chunk = chunks[i];
        weft_engine *e = open_engine(c->model, &p);
        run_together(e, all, again, c->n);
        compare("16 at once", all, first, again, c->n);
        close_engine(&e);
    }
}

/* swapped: what they gave up is kept on a disk. */
static void preempted(const course *c, const ask *all, const answer *first, answer *again, int swapped)
{
    char place[] = "/tmp/weft-serve-XXXXXX";
    weft_engine_params p = of_type();
    p.n_kv_tokens = c->n_kv_tokens;
    if (swapped) assert_non_null(p.store_dir = mkdtemp(place));
    p.swap = WEFT_SWAP_ALWAYS;
    weft_engine *e = open_engine(c->model, &p);
    for (int round = 0; round < 8 && (round == 0 || stats_of(e).n_preempted < c->preempted);
         round++) { /* who meets whom is chance */
        run_together(e, all, again, c->n);
        compare(swapped ? "after swapping" : "after preemption", all, first, again, c->n);
    }
    const weft_engine_stats s = stats_of(e);
    print_message("%llu preemptions, %llu came back from what was kept\n", (unsigned long long)s.n_preempted,
                  (unsigned long long)s.swap.n_restored);
    assert_true(s.n_preempted >= c->preempted);
    assert_true(swapped ? s.swap.n_swapped >= c->preempted : !s.swap.n_swapped);
    close_engine(&e);
    if (swapped) remove_folder(place);
}

/* Where one mask is all that a step has time for, the others wait for theirs, each in its turn. */
static void put_off(const course *c, const ask *all, const answer *first, answer *again)
{
    weft_engine_params p = of_type();
    weft_engine *e = open_engine(c->model, &p);
    pthread_mutex_lock(&e->lock);
    e->mask_most_ns = 1;
    pthread_mutex_unlock(&e->lock);
    run_together(e, all, again, c->n);
    compare("put off", all, first, again, c->n);
    uint64_t n = stats_of(e).n_put_off;
    print_message("%llu tokens put off\n", (unsigned long long)n);
    assert_true(c->grammar ? (int64_t)n * N_MANY >= MANY_PUT_OFF * c->n : n == 0);
    close_engine(&e);
}

/* How far the quickest of some is ahead of the slowest, from when all have begun to when the first has ended. */
enum { N_RACE = 3 };
static struct race {
    pthread_mutex_t lock;
    answer answers[N_RACE];
    int n_began, over, n[N_RACE], lead;
} race = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int in_race(void *arg, const weft_event *e)
{
    int i = (int)((answer *)arg - race.answers), most = 0, least = MAX_ANSWER;
    pthread_mutex_lock(&race.lock);
    if (e->kind == WEFT_EVENT_BEGAN) race.n_began++;
    if (e->kind == WEFT_EVENT_FINISHED) race.over = 1;
    if (e->kind == WEFT_EVENT_TOKEN && race.n_began == N_RACE && !race.over) {
        race.n[i]++;
        for (int k = 0; k < N_RACE; k++) {
            most = race.n[k] > most ? race.n[k] : most;
            least = race.n[k] < least ? race.n[k] : least;
        }
        race.lead = most - least > race.lead ? most - least : race.lead;
    }
    pthread_mutex_unlock(&race.lock);
    return on_event(arg, e);
}

/* Room for one mask in each step: three grammars take turns. */
static void in_turn(const course *c)
{
    weft_engine_params p = of_type();
    weft_engine *e = open_engine(c->model, &p);
    static ask all[N_RACE];
    int together = 0;
    pthread_mutex_lock(&e->lock);
    e->mask_most_ns = 1;
    pthread_mutex_unlock(&e->lock);
    for (int i = 0; i < N_RACE; i++) {
        simple(&all[i], 4, RACE_TOKENS);
        all[i].p.grammar = c->grammar;
        all[i].p.ignore_end = 1;
        all[i].p.event = in_race;
    }
    for (int round = 0; round < 8 && together <= RACE_TOKENS;
         round++) { /* the first may be done before the last has come */
        race.n_began = race.over = race.lead = 0;
        memset(race.n, 0, sizeof race.n);
        run_together(e, all, race.answers, N_RACE);
        print_message("%d, %d and %d tokens in turn, %d apart at most\n", race.n[0], race.n[1], race.n[2], race.lead);
        assert_true(race.lead <= 3);
        together = race.n[0] + race.n[1] + race.n[2];
    }
    assert_true(together > RACE_TOKENS);
    assert_true(stats_of(e).n_put_off > RACE_TOKENS);
    close_engine(&e);
}

static void same_answers(const course *c)
{
    int n = c->n;
    ask *all = calloc((size_t)n, sizeof *all);
    answer *first = calloc((size_t)n, sizeof *first), *again = calloc((size_t)n, sizeof *again);
    make_many(all, n, c->grammar);
    weft_engine_params p = of_type();
    p.n_slots = 1;
    for (int i = 0; i < n; i++) all[i].p.no_cache = 1;
    weft_engine *e = open_engine(c->model, &p);
    run_alone(e, all, first, n);
    check_answers(all, first, n);
    assert_int_equal(stats_of(e).cached_tokens, 0);
    close_engine(&e);
    for (int i = 0; i < n; i++) all[i].p.no_cache = i % 10 == 3;
    in_chunks(c, all, first, again);
    preempted(c, all, first, again, 0);
    preempted(c, all, first, again, 1);
    put_off(c, all, first, again);
    if (c->takes_turns) in_turn(c);
    cached_and_stored(c->model, all, first, again, n);
    free(all);
    free(first);
    free(again);
}

static void same_answer_always(void **state)
{
    (void)state;
    course c = {.model = tiny(0), .n = N_MANY, .n_kv_tokens = 384, .preempted = MANY_PREEMPTED};
    same_answers(&c);
    weft_model_close(&c.model);
}

/* Every format as keys and as values. */
static void same_answer_in_every_type(void **state)
{
    static const uint32_t types[] = {
        WEFT_KV_TYPE(WEFT_KV_Q8, WEFT_KV_Q4, 1, 0), WEFT_KV_TYPE(WEFT_KV_Q4, WEFT_KV_F8, 0, 0),
        WEFT_KV_TYPE(WEFT_KV_F8, WEFT_BF16, 0, 0), WEFT_KV_TYPE(WEFT_BF16, WEFT_KV_Q8, 0, 0)};
    (void)state;
    course c = {.model = tiny(0), .n = N_CODED, .n_kv_tokens = 384, .preempted = MANY_PREEMPTED};
    for (size_t i = 0; i < (claims_sweeps() ? sizeof types / sizeof *types : 2); i++) {
        kv_type = types[i];
        same_answers(&c);
    }
    kv_type = WEFT_F16;
    weft_model_close(&c.model);
}

/* Takes the model. */
static void same_answer_of(weft_model *model, int n, int64_t n_kv_tokens, uint64_t preempted, int takes_turns)
{
    static const char source[] = "root ::= [a-zA-Z ,.']+ \".\"\n";
    weft_error err = {0};
    weft_grammar *grammar = NULL;
    if (weft_grammar_new(weft_model_tokenizer(model), WEFT_GRAMMAR_GBNF, source, sizeof source - 1, &grammar, &err))
        fail_msg("%s", err.message);
    course c = {model, grammar, n, n_kv_tokens, preempted, takes_turns};
    same_answers(&c);
    weft_grammar_free(&grammar);
    weft_model_close(&model);
}

static void same_answer_of_stories(void **state)
{
    (void)state;
    same_answer_of(from_shared("stories260K"), N_MANY, 384, MANY_PREEMPTED, 1);
}

/* Layer l >= 3 of the taller model is layer l % 3 of the file. */
static void put_taller(weft__gguf_writer *w, const weft__gguf *g, uint32_t n_layers)
{
    const weft__tensor_set *set = weft__gguf_tensors(g);
    weft_error err = {0};
    weft_status st = weft__gguf_put_u32(w, "gemma3.block_count", n_layers, &err);
    for (size_t i = 0; i < weft__gguf_n_meta(g) && !st; i++) {
        const weft__gguf_entry *m = weft__gguf_meta(g, i);
        if (strcmp(m->key, "gemma3.block_count") && strcmp(m->key, "general.alignment"))
            st = weft__gguf_put_raw(w, m->key, m->type, m->raw, (size_t)m->raw_bytes, &err);
    }
    for (int writing = 0; writing < 2; writing++) {
        if (writing && !st) st = weft__gguf_begin(w, &err);
        for (uint32_t l = 0; l <= n_layers; l++) /* the last round: what belongs to no layer */
            for (size_t i = 0; i < set->n && !st; i++) {
                const weft__tensor_desc *t = &set->items[i];
                char name[64];
                uint32_t of;
                int rest = 0, in_layer = sscanf(t->name, "blk.%u.%n", &of, &rest) == 1;
                if (in_layer ? l == n_layers || of != l % 3 : l < n_layers) continue;
                snprintf(name, sizeof name, in_layer ? "blk.%u.%s" : "%.0u%s", in_layer ? l : 0, t->name + rest);
                st = writing ? weft__gguf_write(w, weft__tensor_data(t), (size_t)t->n_bytes, &err)
                             : weft__gguf_declare(w, name, t->dtype, t->n_dims, t->d, &err);
            }
    }
    if (!st) st = weft__gguf_finish(w, &err);
    if (st) fail_msg("%s", err.message);
}

/* Products of floats take most of the time where each access is checked; those of whole numbers take few
 * instructions. */
static void quantize(char *path)
{
    char out[64];
    weft_quantize_params params;
    weft_quantize_result result;
    weft_error err = {0};
    weft_quantize_params_default(&params);
    snprintf(out, sizeof out, "%s-q8", path);
    if (weft_quantize(path, out, "Q8_0", &params, &result, &err)) fail_msg("%s", err.message);
    assert_int_equal(rename(out, path), 0);
}

/* The file of three layers has windows in all of them; one of seven sees everything in its sixth. */
static weft_model *taller_gemma3(void)
{
    char path[] = "/tmp/weft-gemma3-XXXXXX";
    const char *from = shared_path("models/%s.gguf", "tiny-gemma3.f16");
    weft__gguf *g = NULL;
    weft__gguf_writer *w = NULL;
    weft_error err = {0};
    if (!from) skip_material("tiny-gemma3.f16");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    if (weft__gguf_open(from, &g, &err) || weft__gguf_writer_create(path, 0, &w, &err)) fail_msg("%s", err.message);
    put_taller(w, g, 7);
    weft__gguf_writer_destroy(&w);
    weft__gguf_close(&g);
    if (CLAIMS_REPEATED(0, 1, 1)) quantize(path);
    weft_model *model = open_model(path);
    unlink(path);
    return model;
}

/* Windows alone never need more pages than a request was let in with: nobody has to give way. What the taller model
 * runs through has all of their branches, and takes longer. */
static void same_answer_with_windows(void **state)
{
    (void)state;
    if (CLAIMS_REPEATED(1, 0, 1))
        same_answer_of(from_shared("tiny-gemma3.f16"), N_WINDOWS, 384, 0, CLAIMS_REPEATED(1, 0, 0));
    if (CLAIMS_REPEATED(1, 1, 0))
        same_answer_of(taller_gemma3(), N_WINDOWS, 384, MANY_PREEMPTED, CLAIMS_REPEATED(1, 0, 0));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_answer_always),
        cmocka_unit_test(same_answer_in_every_type),
    };
    const struct CMUnitTest material[] = {
        cmocka_unit_test(same_answer_of_stories),
        cmocka_unit_test(same_answer_with_windows),
    };
    return claims_status(claims_material(argc, argv) ? cmocka_run_group_tests(material, NULL, NULL)
                                                     : cmocka_run_group_tests(tests, NULL, NULL));
}
