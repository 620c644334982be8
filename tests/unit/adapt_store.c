/* adapt_store.c: claims about stacks of adapters as one change of a matrix, against plain arithmetic in double, and about the store: versions,
 * leases, eviction, and what is refused. */
#include "unit/fixture.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "adapt/store.h"
#include "base/clock.h"
#include "claims.h"
#include "unit/adapt_files.h"
#include "unit/own_nice.h"

static char folder[64];
static float base_q[N * K];

static const char *place(const char *name)
{
    static _Thread_local char paths[8][512];
    static _Thread_local int next;
    char *p = paths[next++ % 8];
    snprintf(p, sizeof paths[0], "%s/%s", folder, name);
    return p;
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/weft-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') unlink(place(e->d_name));
    if (d) closedir(d);
    return rmdir(folder);
}

/* An adapter of attn_q whose values depend on `seed`; DoRA with magnitudes. */
static const char *write_adapter(const char *name, uint64_t seed, uint32_t rank, float alpha, int dora)
{
    float *a = made_values(seed, K * rank), *b = made_values(seed + 1, N * rank), *m = made_values(seed + 2, N);
    for (int i = 0; i < N; i++) m[i] += 2;
    const made t[] = {{"blk.0.attn_q.weight.lora_a", 2, {K, rank}, a},
                      {"blk.0.attn_q.weight.lora_b", 2, {rank, N}, b},
                      {"blk.0.attn_q.weight.lora_magnitude", 1, {N}, m}};
    recipe r = {"adapter", "lora", "llama", alpha, t, dora ? 3 : 2};
    const char *path = place(name);
    assert_true(made_gguf(path, &r));
    free(a);
    free(b);
    free(m);
    return path;
}

static weft__adapt *open_adapter(const char *path)
{
    weft__adapt *a;
    weft_error err = {0};
    if (weft__adapt_open(path, NULL, UINT64_MAX, &a, &err)) fail_msg("%s", err.message);
    return a;
}

static weft__adapt_base base_with_weights(void)
{
    weft__adapt_base base = made_base();
    for (int i = 0; i < N * K; i++) base_q[i] = made_value(99, (size_t)i);
    base.targets[0].data = base_q;
    return base;
}

/* ---- weaving ---- */

/* What the definition says: W + sum weight (g (W + s B A) - W), by row of the pair. */
static void by_definition(const weft__adapt_use *uses, int n, double *w)
{
    double out[N * K];
    for (int i = 0; i < N * K; i++) out[i] = (double)base_q[i];
    for (int u = 0; u < n; u++) {
        const weft__adapt_pair *p = &uses[u].adapter->pairs[0];
        for (int r = 0; r < N; r++) {
            double row[K], norm = 0, g = 1;
            for (int c = 0; c < K; c++) {
                row[c] = (double)base_q[r * K + c];
                for (int j = 0; j < p->rank; j++)
                    row[c] += (double)p->scale * (double)p->b[r * p->rank + j] * (double)p->a[j * K + c];
                norm += row[c] * row[c];
            }
            if (p->magnitude) g = (double)p->magnitude[r] / sqrt(norm);
            for (int c = 0; c < K; c++) out[r * K + c] += (double)uses[u].scale * (g * row[c] - (double)base_q[r * K + c]);
        }
    }
    memcpy(w, out, sizeof out);
}

/* The matrix that a woven change stands for. */
static double changed(const weft_lora *x, int r, int c)
{
    double v = (double)base_q[r * K + c] * (x->gain ? (double)x->gain[r] : 1);
    const float *a = x->a, *b = x->b;
    for (int j = 0; j < x->rank; j++) v += (double)x->scale * (double)b[r * x->rank + j] * (double)a[j * K + c];
    return v;
}

static void stacks_are_their_definition(void **state)
{
    (void)state;
    weft__adapt_base base = base_with_weights();
    weft__adapt *plain = open_adapter(write_adapter("plain", 3, 4, 8, 0)),
                *dora = open_adapter(write_adapter("dora", 11, 2, 3, 1)),
                *other = open_adapter(write_adapter("other", 29, 3, 1, 0));
    const weft__adapt_use all[] = {{plain, 1}, {dora, 0.5f}, {other, -1.25f}};
    double want[N * K];
    weft_error err = {0};
    for (int first = 0; first < 3; first++)
        for (int n = 1; first + n <= 3; n++) {
            weft__adapt_woven w;
            by_definition(all + first, n, want);
            if (weft__adapt_weave(all + first, n, &base, &w, &err)) fail_msg("%s", err.message);
            for (int i = 0; i < N * K; i++) {
                double got = changed(&w.lora[0], i / K, i % K);
                if (!(fabs(got - want[i]) <= 2e-6))
                    fail_msg("stack of %d from %d: element %d is %.9g, not %.9g", n, first, i, got, want[i]);
            }
            for (int i = 1; i < w.n; i++) assert_true(w.lora[i].rank == 0 && !w.lora[i].gain);
            weft__adapt_woven_free(&w);
        }
    weft__adapt_close(&plain);
    weft__adapt_close(&dora);
    weft__adapt_close(&other);
}

/* A folder's base has its rows in halves, and a fused tensor's ranges are graph weights of their own. */
static void rows_go_where_the_base_has_them(void **state)
{
    (void)state;
    weft__adapt_base base = base_with_weights();
    weft__adapt *a = open_adapter(write_adapter("plain", 3, 4, 8, 0));
    const weft__adapt_use use = {a, 1};
    const float *b = a->pairs[0].b;
    weft__adapt_woven w;
    base.targets[0].heads = HEADS;
    assert_int_equal(weft__adapt_weave(&use, 1, &base, &w, NULL), WEFT_OK);
    for (int r = 0; r < N; r++) {
        int half = N / HEADS, head = r / half, i = r % half, from = head * half + (i < half / 2 ? 2 * i : 2 * (i - half / 2) + 1);
        for (int j = 0; j < 4; j++) assert_true(((const float *)w.lora[0].b)[r * 4 + j] == 2 * b[from * 4 + j]);
    }
    weft__adapt_woven_free(&w);
    base.targets[0].heads = 0;
    base.targets[0].first = 5;
    base.targets[0].n = 3;
    assert_int_equal(weft__adapt_weave(&use, 1, &base, &w, NULL), WEFT_OK);
    for (int i = 0; i < 12; i++) assert_true(((const float *)w.lora[0].b)[i] == 2 * b[20 + i]);
    weft__adapt_woven_free(&w);
    weft__adapt_close(&a);
}

static void weaving_says_what_it_cannot(void **state)
{
    (void)state;
    weft__adapt_base base = made_base(); /* without bytes: a compiled plan */
    weft__adapt *dora = open_adapter(write_adapter("dora", 11, 2, 3, 1)),
                *wide = open_adapter(write_adapter("wide", 5, 1024, 1, 0));
    const weft__adapt_use one = {dora, 1}, two[] = {{wide, 1}, {wide, 1}};
    weft__adapt_woven w;
    weft_error err = {0};
    assert_int_equal(weft__adapt_weave(&one, 1, &base, &w, &err), WEFT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "compiled plan"));
    assert_int_equal(weft__adapt_weave(two, 1, &base, &w, &err), WEFT_OK);
    weft__adapt_woven_free(&w);
    assert_int_equal(weft__adapt_weave(two, 2, &base, &w, &err), WEFT_LIMIT);
    assert_non_null(strstr(err.message, "2048 together"));
    weft__adapt_close(&dora);
    weft__adapt_close(&wide);
}

/* ---- the store ---- */

/* What is packed: the first numbers of what was woven, 1000 bytes each. */
typedef struct packed {
    float b0;
    int32_t rank;
} packed;
static _Atomic int n_packs, n_unpacks, pack_nice;

static weft_status pack(void *arg, const weft__adapt_woven *w, void **out, uint64_t *n_bytes, weft_error *err)
{
    (void)arg;
    packed *p = weft__alloc(sizeof *p);
    if (!p) return weft_fail(err, WEFT_NO_MEMORY, "no memory");
    *p = (packed){w->lora[0].rank ? ((const float *)w->lora[0].b)[0] * w->lora[0].scale : 0, w->lora[0].rank};
    *out = p;
    *n_bytes = 1000;
    pack_nice = own_nice();
    n_packs++;
    return WEFT_OK;
}

static void unpack(void *arg, void *p)
{
    (void)arg;
    ((packed *)p)->rank = -1;
    weft__free(p);
    n_unpacks++;
}

static weft__adapt_base store_base;
static weft__adapt_store *new_store(uint64_t n_bytes)
{
    static const weft__adapt_packer packer = {NULL, pack, unpack};
    weft__adapt_store *s;
    store_base = base_with_weights();
    n_packs = n_unpacks = 0;
    assert_int_equal(weft__adapt_store_create(&store_base, &made_names, &packer, n_bytes, &s, NULL), WEFT_OK);
    return s;
}

static void add(weft__adapt_store *s, const char *name, const char *path, uint32_t flags)
{
    weft_error err = {0};
    if (weft__adapt_store_add(s, name, path, 1, flags, &err)) fail_msg("%s", err.message);
}

static weft__adapt_lease *lease(weft__adapt_store *s, const char *name, float scale)
{
    weft__adapt_ask ask = {name, scale, 0};
    weft__adapt_lease *l;
    weft_error err = {0};
    if (weft__adapt_store_lease(s, &ask, 1, &l, &err)) fail_msg("%s", err.message);
    return l;
}

static weft_status no_lease(weft__adapt_store *s, const char *name, const char *says)
{
    weft__adapt_ask ask = {name, 1, 0};
    weft__adapt_lease *l;
    weft_error err = {0};
    weft_status st = weft__adapt_store_lease(s, &ask, 1, &l, &err);
    assert_null(l);
    if (!strstr(err.message, says)) fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    return st;
}

static void leases_share_what_is_the_same(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(10000);
    const char *path = write_adapter("a", 3, 4, 8, 0);
    add(s, "a", path, 0);
    add(s, "b", path, WEFT__ADAPT_LAZY);
    weft__adapt_lease *x = lease(s, "a", NAN), *y = lease(s, "b", 1), *z = lease(s, "a", 0.5f), *none = lease(s, "a", 0);
    assert_ptr_equal(x, y);
    assert_ptr_not_equal(x, z);
    assert_null(none);
    assert_int_equal(n_packs, 2);
    weft__adapt_id ids[] = {weft__adapt_lease_id(x), weft__adapt_lease_id(z)};
    assert_memory_not_equal(&ids[0], &ids[1], sizeof *ids);
    weft__adapt_store_release(s, &x);
    weft__adapt_store_release(s, &y);
    weft__adapt_store_release(s, &z);
    weft__adapt_store_destroy(&s);
    assert_int_equal(n_unpacks, 2);
}

static void what_must_be_read_is_not_ready(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(10000);
    weft__adapt_ask asks[] = {{"a", 1, 0}, {"b", 1, 0}};
    weft__adapt_lease *l, *held;
    int ready = 1;
    add(s, "a", write_adapter("a", 3, 4, 8, 0), 0);
    add(s, "b", write_adapter("b", 5, 4, 8, 0), WEFT__ADAPT_LAZY);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weft__adapt_store_lease_ready(s, asks, 1 + i, &ready, &l, NULL), WEFT_OK);
        assert_true(!ready && !l && n_packs == 0);
    }
    held = lease(s, "a", 1);
    assert_int_equal(weft__adapt_store_lease_ready(s, asks, 1, &ready, &l, NULL), WEFT_OK);
    assert_true(ready && l == held);
    weft__adapt_store_release(s, &l);
    assert_int_equal(weft__adapt_store_lease_ready(s, asks, 2, &ready, &l, NULL), WEFT_OK);
    assert_true(!ready && !l);
    asks[0].scale = asks[1].scale = 0;
    assert_int_equal(weft__adapt_store_lease_ready(s, asks, 2, &ready, &l, NULL), WEFT_OK);
    assert_true(ready && !l);
    assert_int_equal(weft__adapt_store_lease_ready(s, &(weft__adapt_ask){"c", 1, 0}, 1, &ready, &l, NULL), WEFT_NOT_FOUND);
    assert_true(!ready && !l);
    weft__adapt_store_release(s, &held);
    weft__adapt_store_destroy(&s);
}

/* Packing leaves the cores to the steps; who asked goes on as before. */
static void packing_gives_way(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(10000);
    int before = own_nice();
    add(s, "a", write_adapter("a", 3, 4, 8, 0), 0);
    weft__adapt_lease *x = lease(s, "a", 1);
#ifdef __linux__
    assert_true(pack_nice > before || before == 19);
#endif
    assert_int_equal(own_nice(), before);
    weft__adapt_store_release(s, &x);
    weft__adapt_store_destroy(&s);
}

static void a_reload_is_for_those_who_come_later(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(10000);
    const char *path = write_adapter("a", 3, 4, 8, 0);
    add(s, "a", path, 0);
    weft__adapt_lease *old = lease(s, "a", 1);
    const packed *was = weft__adapt_lease_packed(old);
    assert_int_equal(was->rank, 4);
    write_adapter("a", 3, 2, 8, 0);
    weft__adapt_lease *same = lease(s, "a", 1); /* nobody has loaded it again */
    assert_ptr_equal(same, old);
    assert_int_equal(weft__adapt_store_add(s, "a", path, 1, 0, NULL), WEFT_EXISTS);
    add(s, "a", path, WEFT__ADAPT_REPLACE);
    weft__adapt_lease *fresh = lease(s, "a", 1);
    assert_int_equal(((const packed *)weft__adapt_lease_packed(fresh))->rank, 2);
    assert_int_equal(was->rank, 4);
    assert_int_equal(n_unpacks, 0);
    weft__adapt_store_release(s, &old);
    assert_int_equal(n_unpacks, 0);
    weft__adapt_store_release(s, &same);
    assert_int_equal(n_unpacks, 1); /* with its last lease */
    assert_int_equal(weft__adapt_store_remove(s, "a", NULL), WEFT_OK);
    assert_int_equal(weft__adapt_store_remove(s, "a", NULL), WEFT_NOT_FOUND);
    assert_int_equal(no_lease(s, "a", "no adapter 'a'"), WEFT_NOT_FOUND);
    assert_int_equal(((const packed *)weft__adapt_lease_packed(fresh))->rank, 2);
    weft__adapt_store_release(s, &fresh);
    assert_int_equal(n_unpacks, 2);
    weft__adapt_store_destroy(&s);
}

static void what_is_least_used_goes(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(3000);
    weft__adapt_store_stats stats;
    char name[16];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "a%d", i);
        add(s, name, write_adapter(name, (uint64_t)i * 10 + 3, 2, 8, 0), WEFT__ADAPT_LAZY);
    }
    weft__adapt_lease *held = lease(s, "a0", 1), *l;
    for (int i = 1; i < 3; i++) {
        snprintf(name, sizeof name, "a%d", i);
        l = lease(s, name, 1);
        weft__adapt_store_release(s, &l);
    }
    l = lease(s, "a1", 1); /* a2 is now the least used that nobody holds */
    weft__adapt_store_release(s, &l);
    assert_int_equal(n_packs, 3);
    l = lease(s, "a3", 1);
    weft__adapt_store_get_stats(s, &stats);
    assert_true(stats.n_packed == 3 && stats.n_bytes == 3000 && stats.n_evictions == 1 && stats.n_leases == 2);
    weft__adapt_lease *one = lease(s, "a1", 1);
    assert_int_equal(n_packs, 4); /* was still there */
    assert_int_equal(no_lease(s, "a2", "in use fill their budget"), WEFT_BUSY);
    weft__adapt_store_release(s, &one);
    one = lease(s, "a2", 1);
    weft__adapt_store_release(s, &one);
    weft__adapt_store_release(s, &l);
    weft__adapt_store_release(s, &held);
    weft__adapt_store_destroy(&s);
    assert_true(n_packs == 5 && n_unpacks == 5); /* what was refused its place had not been packed for that */
}

/* Gives a lease back after a while. */
typedef struct holder {
    weft__adapt_store *s;
    weft__adapt_lease *l;
} holder;

static void *give_back(void *arg)
{
    holder *h = arg;
    usleep(50000);
    weft__adapt_store_release(h->s, &h->l);
    return NULL;
}

static void room_is_waited_for(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(1500);
    weft__adapt_store_stats stats;
    pthread_t thread;
    add(s, "a", write_adapter("a", 3, 4, 8, 0), 0);
    add(s, "b", write_adapter("b", 5, 4, 8, 0), WEFT__ADAPT_LAZY);
    assert_true(weft__adapt_store_wait(s, PATIENCE_MS)); /* nobody was refused */
    for (int round = 0; round < 2; round++) {
        holder h = {s, lease(s, "a", 1)};
        weft__adapt_store_get_stats(s, &stats);
        uint64_t n_loads = stats.n_loads;
        for (int i = 0; i < 3; i++) assert_int_equal(no_lease(s, "b", "in use fill their budget"), WEFT_BUSY);
        weft__adapt_store_get_stats(s, &stats);
        assert_int_equal(stats.n_loads - n_loads, round ? 0 : 1); /* its size is known after the first */
        uint64_t began = weft__clock_ns();
        assert_false(weft__adapt_store_wait(s, 20));
        assert_true(weft__clock_ns() - began >= 20000000);
        assert_int_equal(pthread_create(&thread, NULL, give_back, &h), 0);
        assert_true(weft__adapt_store_wait(s, PATIENCE_MS)); /* woken: it would say if the time had passed */
        weft__adapt_lease *l = lease(s, "b", 1);
        weft__adapt_store_release(s, &l);
        pthread_join(thread, NULL);
    }
    weft__adapt_store_destroy(&s);
}

static void a_file_that_changed_is_not_read_in_silence(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(1000);
    const char *path = write_adapter("a", 3, 4, 8, 0);
    add(s, "a", path, 0);
    write_adapter("a", 4, 4, 8, 0);
    assert_int_equal(no_lease(s, "a", "load it again"), WEFT_STATE);
    add(s, "a", path, WEFT__ADAPT_REPLACE);
    weft__adapt_lease *l = lease(s, "a", 1);
    weft__adapt_store_release(s, &l);
    weft__adapt_store_destroy(&s);
    s = new_store(999);
    add(s, "a", path, 0);
    assert_int_equal(no_lease(s, "a", "needs 1000 bytes"), WEFT_LIMIT);
    weft__adapt_store_destroy(&s);
    s = new_store(4 * (K + N) * sizeof(float) / 8 - 1); /* not even in 4 bits: it is not read */
    assert_int_equal(weft__adapt_store_add(s, "a", path, 1, 0, NULL), WEFT_LIMIT);
    weft__adapt_store_destroy(&s);
}

static void speaks_of_the_name(const weft_error *err)
{
    assert_non_null(strstr(err->message, "adapter terse: "));
    assert_null(strstr(err->message, folder));
    assert_true(strlen(err->message) > strlen("adapter terse: "));
    assert_null(strstr(err->message, "terse: terse")); /* and says it once */
}

/* A file that is read when it is asked for, or for a client: what is wrong with it is told by its name; where it lies is the operator's. */
static void who_asks_for_a_name_learns_no_path(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(1000);
    weft__adapt_ask ask = {"terse", 1};
    weft__adapt_lease *l;
    weft_error err = {0};
    FILE *f = fopen(place("bad"), "w");
    assert_non_null(f);
    fputs("malformed", f);
    fclose(f);
    add(s, "terse", place("bad"), WEFT__ADAPT_LAZY);
    for (int gone = 0; gone < 2; gone++) {
        assert_true(weft__adapt_store_lease(s, &ask, 1, &l, &err) != WEFT_OK);
        speaks_of_the_name(&err);
        assert_true(weft__adapt_store_add(s, "terse", place("bad"), 1, WEFT__ADAPT_DISCREET | WEFT__ADAPT_REPLACE, &err) !=
                    WEFT_OK);
        speaks_of_the_name(&err);
        assert_true(weft__adapt_store_add(s, "terse", place("bad"), 1, WEFT__ADAPT_REPLACE, &err) != WEFT_OK);
        assert_non_null(strstr(err.message, place("bad"))); /* who gave the path is told of it */
        unlink(place("bad"));
    }
    weft__adapt_store_destroy(&s);
}

/* Nor does he learn where the base lies, which an adapter of another base is held against. */
static void who_asks_for_a_name_learns_nothing_of_the_base_s_folders(void **state)
{
    (void)state;
    static const weft__adapt_packer packer = {NULL, pack, unpack};
    static const struct {
        const char *label, *says;
    } bases[] = {{"/home/operator/models/base.gguf", "; base.gguf is of 'qwen2'"},
                 {"../models/folder//", "; folder is of 'qwen2'"},
                 {"base.gguf", "; base.gguf is of 'qwen2'"}};
    const char *path = write_adapter("other", 3, 4, 8, 0);
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        weft__adapt_base base = base_with_weights();
        weft__adapt_store *s;
        weft_error err = {0};
        base.label = bases[i].label;
        base.arch = "qwen2";
        assert_int_equal(weft__adapt_store_create(&base, &made_names, &packer, 1000, &s, NULL), WEFT_OK);
        assert_int_equal(weft__adapt_store_add(s, "terse", path, 1, WEFT__ADAPT_DISCREET, &err), WEFT_ARGUMENT);
        if (!strstr(err.message, bases[i].says)) fail_msg("\"%s\" does not say \"%s\"", err.message, bases[i].says);
        assert_null(strstr(err.message, "models"));
        add(s, "lazy", path, WEFT__ADAPT_LAZY);
        assert_int_equal(no_lease(s, "lazy", bases[i].says), WEFT_ARGUMENT);
        weft__adapt_store_destroy(&s);
    }
}

static void names_are_plain(void **state)
{
    (void)state;
    static const char *const bad[] = {"", ".", "..", "../a", "a/b", "a:b", "a b", ".a", "a\n", "\xc3\xa4"};
    weft__adapt_store *s = new_store(1000);
    const char *path = write_adapter("a", 3, 4, 8, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(weft__adapt_store_add(s, bad[i], path, 1, 0, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__adapt_store_add(s, "a", path, NAN, 0, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__adapt_store_add(s, "a", place("absent"), 1, 0, NULL), WEFT_NOT_FOUND);
    assert_int_equal(weft__adapt_store_remove(s, "a", NULL), WEFT_NOT_FOUND);
    add(s, "a-1.2_Z", path, 0);
    weft__adapt_store_destroy(&s);
}

/* A name's own scale is looked at with the values that it multiplies, when they are read: here, not in a request that gives none. */
static void a_scale_too_large_is_found_when_it_is_set(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(1000);
    const char *path = write_adapter("a", 3, 4, 8, 0);
    weft__adapt_lease *l;
    weft__adapt_ask ask = {"a", NAN, 0};
    weft_error err = {0};
    for (int discreet = 0; discreet < 2; discreet++) {
        uint32_t flags = discreet ? WEFT__ADAPT_DISCREET : 0;
        assert_int_equal(weft__adapt_store_add(s, "a", path, -1e30f, flags, &err), WEFT_ARGUMENT);
        assert_non_null(strstr(err.message, discreet ? "adapter a: blk.0.attn_q.weight: at a scale of -1e+30" : path));
        assert_non_null(strstr(err.message, "give a smaller scale"));
        assert_int_equal(weft__adapt_store_lease(s, &ask, 1, &l, &err), WEFT_NOT_FOUND); /* nothing has changed */
    }
    assert_int_equal(weft__adapt_store_add(s, "a", path, 2, 0, &err), WEFT_OK);
    assert_int_equal(weft__adapt_store_add(s, "a", path, 1e30f, WEFT__ADAPT_REPLACE, &err), WEFT_ARGUMENT);
    l = lease(s, "a", NAN); /* what was there serves on */
    assert_true(((packed *)weft__adapt_lease_packed(l))->b0 == 2 * 2 * made_value(4, 0));
    weft__adapt_store_release(s, &l);
    assert_int_equal(weft__adapt_store_add(s, "lazy", path, 1e30f, WEFT__ADAPT_LAZY, &err), WEFT_OK); /* nobody has read it */
    ask.name = "lazy";
    assert_int_equal(weft__adapt_store_lease(s, &ask, 1, &l, &err), WEFT_ARGUMENT);
    weft__adapt_store_destroy(&s);
}

/* ---- many at once ---- */

enum { N_READERS = 3, N_NAMES = 6, ROUNDS = CLAIMS_OF_SPEED ? 400 : 60, ABSENT = -1, EITHER = 2 };

/* What a name stands for, 0 or 1 of its contents: exactly so while the generation stays the same and even. */
typedef struct truth {
    _Atomic unsigned generation;
    _Atomic int loaded;
} truth;
static truth truths[N_NAMES];
static _Atomic int rewritten; /* the last round was */
static weft__adapt_id content_ids[N_NAMES][2];

/* The contents of name i: rank 1 + i % 3, and the first number of B tells it from all others. */
static const char *write_content(int i, int content)
{
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    return write_adapter(name, (uint64_t)(2 * i + content), 1 + (uint32_t)i % 3, 1 + (float)(i % 3), 0);
}

static float content_b0(int i, int content)
{
    return made_value((uint64_t)(2 * i + content) + 1, 0);
}

typedef struct worker {
    weft__adapt_store *s;
    uint64_t seed;
    int wrong, right;
} worker;

/* The only one that changes files and what the names stand for. */
static void *rewrite(void *arg)
{
    worker *w = arg;
    weft__rng rng;
    int lazy[N_NAMES] = {0};
    weft__rng_seed(&rng, w->seed);
    for (int i = 0; i < ROUNDS; i++) {
        char name[16];
        int which = (int)weft__rng_below(&rng, N_NAMES), act = (int)weft__rng_below(&rng, 5),
            content = (int)weft__rng_below(&rng, 2);
        truth *t = &truths[which];
        snprintf(name, sizeof name, "n%d", which);
        atomic_fetch_add(&t->generation, 1);
        const char *path = write_content(which, content);
        if (act == 0) {
            weft__adapt_store_remove(w->s, name, NULL);
            t->loaded = ABSENT;
        } else if (act < 4) {
            lazy[which] = act == 1;
            if (weft__adapt_store_add(w->s, name, path, 1, WEFT__ADAPT_REPLACE | (lazy[which] ? (uint32_t)WEFT__ADAPT_LAZY : 0),
                                      NULL))
                w->wrong++;
            t->loaded = content;
        } else if (lazy[which] && t->loaded != ABSENT) {
            t->loaded = EITHER; /* whether it was read before, nobody says */
        }
        atomic_fetch_add(&t->generation, 1);
        sched_yield();
    }
    rewritten = 1;
    return NULL;
}

/* One lease, which must be of what the name stood for, if that stayed the same. */
static void look(worker *w, int which)
{
    char name[16];
    weft__adapt_lease *l;
    const truth *t = &truths[which];
    snprintf(name, sizeof name, "n%d", which);
    weft__adapt_ask ask = {name, 1, 0};
    unsigned generation = t->generation;
    int loaded = t->loaded;
    weft_status st = weft__adapt_store_lease(w->s, &ask, 1, &l, NULL);
    int stayed = generation % 2 == 0 && t->generation == generation;
    if (st && st != WEFT_NOT_FOUND && st != WEFT_BUSY && st != WEFT_STATE) w->wrong++;
    if (stayed && (st == WEFT_NOT_FOUND) != (loaded == ABSENT)) w->wrong++;
    if (st) return;
    const packed *p = weft__adapt_lease_packed(l);
    const weft__adapt_id id = weft__adapt_lease_id(l);
    float b0 = p->b0;
    int content = b0 == content_b0(which, 1);
    if (b0 != content_b0(which, content) || memcmp(&id, &content_ids[which][content], sizeof id)) w->wrong++;
    if (stayed && loaded != EITHER && content != loaded) w->wrong++;
    sched_yield();
    if (p->b0 != b0 || p->rank != 1 + which % 3) w->wrong++;
    w->right += stayed;
    weft__adapt_store_release(w->s, &l);
}

/* Leases while there are changes, and a name of its own that comes and goes. */
static void *work(void *arg)
{
    worker *w = arg;
    weft__rng rng;
    char own[16], name[16];
    weft__rng_seed(&rng, w->seed);
    snprintf(own, sizeof own, "own%d", (int)w->seed);
    while (!rewritten) {
        int which = (int)weft__rng_below(&rng, N_NAMES), act = (int)weft__rng_below(&rng, 10);
        snprintf(name, sizeof name, "n%d", which);
        if (act == 0) weft__adapt_store_remove(w->s, own, NULL);
        else if (act == 1) w->wrong += weft__adapt_store_add(w->s, own, place(name), 1, WEFT__ADAPT_REPLACE, NULL) != WEFT_OK;
        else look(w, which);
    }
    return NULL;
}

/* Files of all names, and the ids of their contents. */
static void learn_contents(void)
{
    weft__adapt_store *s = new_store(3000);
    for (int i = 0; i < N_NAMES; i++)
        for (int content = 0; content < 2; content++) {
            add(s, "a", write_content(i, content), WEFT__ADAPT_REPLACE);
            weft__adapt_lease *l = lease(s, "a", 1);
            assert_true(((const packed *)weft__adapt_lease_packed(l))->b0 == content_b0(i, content));
            content_ids[i][content] = weft__adapt_lease_id(l);
            weft__adapt_store_release(s, &l);
            truths[i].loaded = ABSENT;
        }
    weft__adapt_store_destroy(&s);
}

static void threads_get_what_they_ask_for(void **state)
{
    (void)state;
    pthread_t threads[1 + N_READERS];
    worker workers[1 + N_READERS];
    int right = 0;
    learn_contents();
    weft__adapt_store *s = new_store(3000);
    for (int i = 0; i <= N_READERS; i++) workers[i] = (worker){.s = s, .seed = (uint64_t)i + 1};
    for (int i = 0; i <= N_READERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, i ? work : rewrite, &workers[i]), 0);
    for (int i = 0; i <= N_READERS; i++) {
        pthread_join(threads[i], NULL);
        right += workers[i].right;
    }
    for (int i = 0; i <= N_READERS; i++) assert_int_equal(workers[i].wrong, 0);
    assert_true(right > 0);
    weft__adapt_store_destroy(&s);
}

/* ---- by number ---- */

/* Takes n0 away and loads it again, with the other content each time: under another number. */
static void *come_and_go(void *arg)
{
    worker *w = arg;
    for (int i = 0; i < ROUNDS; i++) {
        const char *path = write_content(0, i % 2);
        weft__adapt_store_remove(w->s, "n0", NULL);
        if (weft__adapt_store_add(w->s, "n0", path, 1, 0, NULL)) w->wrong++;
        sched_yield();
    }
    rewritten = 1;
    return NULL;
}

static void keep_info(void *arg, const weft__adapt_entry_info *info)
{
    *(weft__adapt_entry_info *)arg = *info;
}

/* What a number stood for when it was looked up is what is leased by it, or nothing is. */
static void *lease_by_number(void *arg)
{
    worker *w = arg;
    weft__adapt_id seen[2];
    for (int c = 0; c < 2; c++) { /* the ids of adapters, not of stacks */
        weft__adapt *a = open_adapter(place(c ? "c1" : "c0"));
        seen[c] = a->id;
        weft__adapt_close(&a);
    }
    while (!rewritten) {
        weft__adapt_entry_info info;
        weft__adapt_lease *l;
        if (!weft__adapt_store_find(w->s, "n0", keep_info, &info)) continue;
        int content = !memcmp(&info.id, &seen[1], sizeof info.id);
        if (!content && memcmp(&info.id, &seen[0], sizeof info.id)) w->wrong++;
        sched_yield();
        weft__adapt_ask ask = {NULL, 1, info.index};
        weft_status st = weft__adapt_store_lease(w->s, &ask, 1, &l, NULL);
        if (st && st != WEFT_NOT_FOUND && st != WEFT_STATE) w->wrong++;
        if (st) continue;
        weft__adapt_lease *again = weft__adapt_store_share(w->s, l);
        const weft__adapt_id id = weft__adapt_lease_id(l);
        weft__adapt_store_release(w->s, &l);
        if (memcmp(&id, &content_ids[0][content], sizeof id) ||
            ((const packed *)weft__adapt_lease_packed(again))->b0 != content_b0(0, content))
            w->wrong++;
        weft__adapt_store_release(w->s, &again);
        w->right++;
    }
    return NULL;
}

static void a_number_never_means_another(void **state)
{
    (void)state;
    pthread_t threads[3];
    worker workers[3];
    weft__adapt_ask ask = {NULL, 1, 7};
    weft__adapt_lease *l;
    weft_error err = {0};
    learn_contents();
    for (int c = 0; c < 2; c++) write_adapter(c ? "c1" : "c0", (uint64_t)c, 1, 1, 0);
    weft__adapt_store *s = new_store(3000);
    assert_int_equal(weft__adapt_store_lease(s, &ask, 1, &l, &err), WEFT_NOT_FOUND);
    assert_string_equal(err.message, "there is no adapter with number 7");
    rewritten = 0;
    for (int i = 0; i < 3; i++) workers[i] = (worker){.s = s};
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i ? lease_by_number : come_and_go, &workers[i]), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].wrong, 0);
    }
    assert_true(workers[1].right + workers[2].right > 0);
    weft__adapt_store_destroy(&s);
}

/* ---- allocations ---- */

static int use_all(void *arg)
{
    static const weft__adapt_packer packer = {NULL, pack, unpack};
    weft__adapt_store *s;
    weft__adapt_lease *l = NULL;
    const weft__adapt_ask asks[] = {{"a", 1, 0}, {"d", 0.5f, 0}};
    (void)arg;
    if (weft__adapt_store_create(&store_base, &made_names, &packer, 5000, &s, NULL)) return 0;
    int ok = !weft__adapt_store_add(s, "a", place("a"), 1, 0, NULL) &&
             !weft__adapt_store_add(s, "d", place("d"), 1, WEFT__ADAPT_LAZY, NULL) &&
             !weft__adapt_store_lease(s, asks, 2, &l, NULL);
    weft__adapt_store_release(s, &l);
    weft__adapt_store_destroy(&s);
    return ok;
}

static void refused_allocations_leave_nothing(void **state)
{
    (void)state;
    write_adapter("a", 3, 4, 8, 0);
    write_adapter("d", 11, 2, 3, 1);
    store_base = base_with_weights();
    assert_true(fail_each(use_all, NULL) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_are_their_definition),
        cmocka_unit_test(rows_go_where_the_base_has_them),
        cmocka_unit_test(weaving_says_what_it_cannot),
        cmocka_unit_test(leases_share_what_is_the_same),
        cmocka_unit_test(what_must_be_read_is_not_ready),
        cmocka_unit_test(packing_gives_way),
        cmocka_unit_test(a_reload_is_for_those_who_come_later),
        cmocka_unit_test(what_is_least_used_goes),
        cmocka_unit_test(room_is_waited_for),
        cmocka_unit_test(a_file_that_changed_is_not_read_in_silence),
        cmocka_unit_test(who_asks_for_a_name_learns_no_path),
        cmocka_unit_test(who_asks_for_a_name_learns_nothing_of_the_base_s_folders),
        cmocka_unit_test(names_are_plain),
        cmocka_unit_test(a_scale_too_large_is_found_when_it_is_set),
        cmocka_unit_test(threads_get_what_they_ask_for),
        cmocka_unit_test(a_number_never_means_another),
        cmocka_unit_test(refused_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
