// SPDX-License-Identifier: Apache-2.0
/* adapter_tiers.c: where an adapter is kept, and what it costs to make it ready from there: the time of a load by its
 * parts, and whether a tier of files in memory, inside the budget of those that are packed, would pay.
 *
 * bench_adapter_tiers [--shape S] [--type T] [--kept T] [-t THREADS] [-r ROUNDS] [--adapters N] [--room N] [--json]. An
 * adapter of rank 16 on all linears, as F16 and as F32; --kept: the type that it is packed in. Parts of a load: its
 * bytes from the disk (the system is asked to forget the file; where it does not, that is said), the same from the page
 * cache, the digest of its values, the rest of opening (parsed, decoded, checked), weaving and packing. All are medians
 * of the rounds. Then N adapters, asked for by Zipf's law, with bytes for `room` packed ones, of which a share goes to
 * another tier: the mean time of a request's load where each tier holds those most asked for, as it does at best. One
 * thread. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "adapt/adapt.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "engine/handles.h"
#include "random_adapter.h"

enum { RANK = 16, AT_ONCE = 128 << 10, ROUNDS_MAX = 100 };

typedef struct bench {
    weft_model *model;
    const char *shape, *file;
    uint32_t dtype, kept;
    int32_t threads, rounds, n_adapters, room, json;
    char path[128];
} bench;

enum part { DISK, CACHE, DIGEST, REST, WEAVE, PACK, N_PARTS };
static const char *const names[] = {"from the disk", "from the page cache", "digest", "rest of opening", "weave",
                                    "pack"};

typedef struct load {
    double ms[N_PARTS]; /* CACHE to PACK are one load */
    uint64_t file_bytes, float_bytes, packed_bytes;
    int forgotten; /* by the system, when it was read from the disk */
} load;

static void die(const char *what, const weft_error *err)
{
    fprintf(stderr, "bench_adapter_tiers: %s%s%s\n", what, err ? ": " : "", err ? err->message : "");
    exit(1);
}

static void *need(void *p)
{
    if (!p) die("out of memory", NULL);
    return p;
}

static void write_adapter(const bench *b, uint32_t stored)
{
    weft_error err = {0};
    if (random_adapter_write(&b->model->base, RANK, stored, 1, b->path, &err)) die("adapter", &err);
}

static double since(uint64_t begin)
{
    return (double)(weft__clock_ns() - begin) * 1e-6;
}

/* All of it into fresh memory, as a load does. */
static double read_all(const bench *b, uint64_t *n_bytes)
{
    const int fd = open(b->path, O_RDONLY | O_CLOEXEC);
    const uint64_t begin = weft__clock_ns();
    const off_t n = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    char *to = need(weft__alloc((size_t)n + 1));
    lseek(fd, 0, SEEK_SET);
    for (off_t at = 0; at < n;) {
        const ssize_t got = read(fd, to + at, n - at < AT_ONCE ? (size_t)(n - at) : AT_ONCE);
        if (got <= 0) die("the adapter's file cannot be read", NULL);
        at += got;
    }
    const double ms = since(begin);
    *n_bytes = (uint64_t)n;
    weft__free(to);
    close(fd);
    return ms;
}

/* Is the page cache without the file now? */
static int forget(const bench *b)
{
    const int fd = open(b->path, O_RDONLY | O_CLOEXEC);
    char byte;
    int gone = 0;
    if (fd < 0) die("the adapter's file cannot be opened", NULL);
    (void)!fsync(fd);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
#ifdef RWF_NOWAIT
    gone = preadv2(fd, &(struct iovec){&byte, 1}, 1, 0, RWF_NOWAIT) < 0;
#endif
    close(fd);
    return gone;
}

static double digest(uint64_t n_bytes)
{
    weft__sha256 h = {0};
    uint64_t words[2];
    weft_error err = {0};
    char *bytes = need(weft__alloc_zero(1, AT_ONCE));
    const uint64_t begin = weft__clock_ns();
    if (weft__sha256_begin(&h, &err)) die("digest", &err);
    for (uint64_t at = 0; at < n_bytes; at += AT_ONCE)
        if (weft__sha256_add(&h, bytes, n_bytes - at < AT_ONCE ? n_bytes - at : AT_ONCE, &err)) die("digest", &err);
    weft__sha256_end_words(&h, words);
    const double ms = since(begin);
    weft__free(bytes);
    return ms;
}

static void load_once(const bench *b, load *l)
{
    weft_error err = {0};
    weft__adapt *a;
    weft__adapt_woven woven;
    weft_adapter *packed = NULL;
    l->forgotten = forget(b);
    l->ms[DISK] = read_all(b, &l->file_bytes);
    l->ms[CACHE] = read_all(b, &l->file_bytes);
    uint64_t begin = weft__clock_ns();
    if (weft__adapt_open(b->path, NULL, UINT64_MAX, &a, &err)) die("opening", &err);
    if (weft__adapt_check(a, &b->model->base, &err) || weft__adapt_check_values(a, 1, &err)) die("checking", &err);
    const double opened = since(begin);
    l->float_bytes = a->n_bytes;
    l->ms[DIGEST] = digest(a->n_bytes);
    l->ms[REST] = opened - l->ms[CACHE] - l->ms[DIGEST];
    begin = weft__clock_ns();
    if (weft__adapt_weave(&(weft__adapt_use){a, 1}, 1, &b->model->base, &woven, &err)) die("weaving", &err);
    l->ms[WEAVE] = since(begin);
    const weft_adapter_spec spec = {.size = sizeof spec, .n_weights = woven.n, .lora = woven.lora, .dtype = b->kept};
    begin = weft__clock_ns();
    if (weft__plan_adapter_new(b->model->plan, &spec, &packed, &err)) die("packing", &err);
    l->ms[PACK] = since(begin);
    l->packed_bytes = weft__plan_adapter_bytes(packed);
    weft__plan_adapter_free(&packed);
    weft__adapt_woven_free(&woven);
    weft__adapt_close(&a);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static load measure(const bench *b)
{
    load all[ROUNDS_MAX], l = {.forgotten = 1};
    double x[ROUNDS_MAX];
    const size_t n = (size_t)b->rounds;
    for (size_t i = 0; i < n; i++) {
        all[i] = (load){0};
        load_once(b, &all[i]);
    }
    for (int part = 0; part < N_PARTS; part++) {
        for (size_t i = 0; i < n; i++) x[i] = all[i].ms[part];
        qsort(x, n, sizeof *x, compare);
        l.ms[part] = x[n / 2];
    }
    for (size_t i = 0; i < n; i++) l.forgotten &= all[i].forgotten;
    l.file_bytes = all[0].file_bytes;
    l.float_bytes = all[0].float_bytes;
    l.packed_bytes = all[0].packed_bytes;
    return l;
}

/* Milliseconds of a request's load in the mean: the packed ones are the most asked for, then come those of the tier. */
static double mean_ms(const bench *b, double n_packed, double n_tier, double ms_tier, double ms_else)
{
    double sum = 0, all = 0;
    for (int32_t k = 1; k <= b->n_adapters; k++) {
        const double p = 1.0 / k,
                     packed = n_packed > k       ? 1
                              : n_packed > k - 1 ? n_packed - (k - 1)
                                                 : 0,
                     both = n_packed + n_tier > k       ? 1
                            : n_packed + n_tier > k - 1 ? n_packed + n_tier - (k - 1)
                                                        : 0;
        all += p;
        sum += p * ((both - packed) * ms_tier + (1 - both) * ms_else);
    }
    return sum / all;
}

/* A tier whose adapters have so many bytes and are ready after so many milliseconds, on shares of the budget. */
static void print_tier(const bench *b, const load *l, const char *name, uint64_t bytes, double ms, double total)
{
    static const double shares[] = {0, 0.1, 0.25, 0.5};
    const double ratio = (double)bytes / (double)l->packed_bytes, saved = 1 - ms / total;
    if (b->json)
        printf("{\"file\":\"%s\",\"tier\":\"%s\",\"bytes\":%llu,\"of_packed\":%.3f,\"ms\":%.2f,\"saved\":%.3f", b->file,
               name, (unsigned long long)bytes, ratio, ms, saved);
    else
        printf("  %s: %.2f times the bytes of a packed one, saves %.0f %% of a load; a request's load in the mean with "
               "this "
               "share of the budget:",
               name, ratio, 100 * saved);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        const double mean = mean_ms(b, b->room * (1 - shares[i]), b->room * shares[i] / ratio, ms, total);
        printf(b->json ? ",\"mean_ms_%.0f\":%.3f" : " %.0f %% %.2f ms;", 100 * shares[i], mean);
    }
    printf(b->json ? "}\n" : "\n");
}

static void print(const bench *b, const load *l)
{
    double total = 0;
    for (int part = CACHE; part < N_PARTS; part++) total += l->ms[part];
    if (b->json) {
        printf("{\"file\":\"%s\",\"file_bytes\":%llu,\"packed_bytes\":%llu,\"forgotten\":%d,\"load_ms\":%.2f", b->file,
               (unsigned long long)l->file_bytes, (unsigned long long)l->packed_bytes, l->forgotten, total);
        for (int part = 0; part < N_PARTS; part++) printf(",\"%s\":%.2f", names[part], l->ms[part]);
        printf("}\n");
    } else {
        printf("%s, %.1f MB, packed %.1f MB: a load from the page cache takes %.1f ms\n", b->file,
               (double)l->file_bytes / 1e6, (double)l->packed_bytes / 1e6, total);
        for (int part = 0; part < N_PARTS; part++)
            printf("  %-20s %8.2f ms%s\n", names[part], l->ms[part],
                   part == DISK && !l->forgotten ? " (the system kept it in memory)" : "");
    }
    print_tier(b, l, "its file's bytes", l->file_bytes, total - l->ms[CACHE] - l->ms[DIGEST], total);
    print_tier(b, l, "its values in F32", l->float_bytes, l->ms[WEAVE] + l->ms[PACK], total);
}

static int32_t number(const char *text, int32_t least, int32_t most)
{
    const int32_t n = atoi(text);
    return n < least ? least : n > most ? most : n;
}

int main(int argc, char **argv)
{
    bench b = {.shape = "tinyllama-1.1b",
               .dtype = WEFT_Q4_0,
               .kept = WEFT_ADAPTER_AUTO,
               .rounds = 9,
               .n_adapters = 1000,
               .room = 50};
    weft_error err = {0};
    weft_model_params mp;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--json")) b.json = 1;
        else if (!strcmp(argv[i], "--shape")) b.shape = value, i++;
        else if (!strcmp(argv[i], "--type")) b.dtype = (uint32_t)weft_dtype_from_name(value), i++;
        else if (!strcmp(argv[i], "--kept")) b.kept = (uint32_t)weft_dtype_from_name(value), i++;
        else if (!strcmp(argv[i], "-t")) b.threads = number(value, 1, 4096), i++;
        else if (!strcmp(argv[i], "-r")) b.rounds = number(value, 1, ROUNDS_MAX), i++;
        else if (!strcmp(argv[i], "--adapters")) b.n_adapters = number(value, 1, 1 << 20), i++;
        else if (!strcmp(argv[i], "--room")) b.room = number(value, 1, 1 << 20), i++;
        else die("unknown option", NULL);
    }
    weft_model_params_default(&mp);
    mp.n_threads = b.threads;
    if (weft_model_synthetic(b.shape, b.dtype, &mp, &b.model, &err)) die("model", &err);
    const char *tmp = getenv("TMPDIR");
    snprintf(b.path, sizeof b.path, "%.40s/weft-bench-XXXXXX", tmp && strlen(tmp) <= 40 ? tmp : "/tmp");
    const int fd = mkstemp(b.path);
    if (fd < 0) die("no file for an adapter", NULL);
    close(fd);
    for (int i = 0; i < 2; i++) {
        b.file = i ? "F32" : "F16";
        write_adapter(&b, i ? WEFT_F32 : WEFT_F16);
        const load l = measure(&b);
        print(&b, &l);
    }
    unlink(b.path);
    weft_model_close(&b.model);
    return 0;
}
