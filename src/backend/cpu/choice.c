// SPDX-License-Identifier: Apache-2.0
/* choice.c: see choice.h. Which of the two is faster differs between machines that name the same processor. State: the
 * rates, once they are known, under a lock. */
#include "backend/choice.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/place.h"
#include "kernels/kernels.h"
#include "weft/version.h"

uint32_t weft__cpu_without_slower(uint32_t tiers, const weft__cpu_rates *rates)
{
    const int64_t margin = rates->amx / 20;
    return rates->below - margin > rates->amx ? tiers & ~(1u << WEFT__TIER_AMX) : tiers;
}

/* ---- what is kept ---- */

enum { DIGITS = 12 }; /* of a rate, at most */

/* The number at *at, which then stands behind it and `end`; 0: there is none above 0. */
static int64_t rate_at(const char **at, char end)
{
    int64_t rate = 0;
    int n = 0;
    for (; n < DIGITS && (*at)[n] >= '0' && (*at)[n] <= '9'; n++) rate = 10 * rate + ((*at)[n] - '0');
    if (!n || (*at)[n] != end) return 0;
    *at += n + 1;
    return rate;
}

int weft__cpu_rates_read(const char *path, const char *key, weft__cpu_rates *out)
{
    char text[WEFT__CPU_RATES_KEY + 2 * DIGITS + 8];
    const size_t n_key = strlen(key);
    FILE *f = fopen(path, "rbe");
    if (!f) return 0;
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    if (n < n_key + 2 || memcmp(text, key, n_key) != 0 || memcmp(text + n_key, ": ", 2) != 0) return 0;
    const char *at = text + n_key + 2;
    const int64_t amx = rate_at(&at, ' '), below = amx ? rate_at(&at, '\n') : 0;
    if (!below || at != text + n) return 0;
    out->amx = amx;
    out->below = below;
    return 1;
}

int weft__cpu_rates_keep(const char *path, const char *key, const weft__cpu_rates *rates)
{
    char text[WEFT__CPU_RATES_KEY + 2 * DIGITS + 8];
    const int n = snprintf(text, sizeof text, "%s: %lld %lld\n", key, (long long)rates->amx, (long long)rates->below);
    return n > 0 && (size_t)n < sizeof text && weft__place_put(path, text, (size_t)n);
}

/* What rates hold for. An identity that the system makes when it starts: it is another on each machine, also where
 * disks are copies or a folder is shared. 0: the system has none. */
static int choice_key(const weft__matmul *const mm[2], char key[WEFT__CPU_RATES_KEY])
{
    char boot[40] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    const int known = f && fgets(boot, sizeof boot, f) && boot[0] != '\n';
    if (f) fclose(f);
    boot[strcspn(boot, "\n")] = 0;
    const int n = snprintf(key, WEFT__CPU_RATES_KEY, "weft %s, %s, %s, %s, %s", WEFT_VERSION, boot,
                           weft__machine_processor(), mm[0]->name, mm[1]->name);
    return known && n > 0 && n < WEFT__CPU_RATES_KEY;
}

/* ---- measuring ---- */

/* Between the types that gain the most by AMX and those that gain the least. */
#define CHOSEN_BY WEFT_Q4_K

/* Panels and rows stay in a second-level cache, and a call takes a tenth of a millisecond. */
enum { K = 1024, ROWS = 64, PANELS = 28, LINE = 64, ROUNDS = 4, ROUND_NS = 1500000 };

typedef struct trial {
    const weft__matmul *mm;
    weft__product call;
    uint8_t *memory;
    uint64_t least_ns; /* that a call took */
} trial;

static size_t lines(size_t n_bytes)
{
    return (n_bytes + LINE - 1) / LINE * LINE;
}

/* Rows of ones, and a matrix of zeros, which integers multiply as quickly as others. 0: no memory. */
static int trial_new(const weft__matmul *mm, trial *p)
{
    const size_t stride = mm->panel_bytes(K), act = lines(mm->act->bytes(K, ROWS)), panels = lines(PANELS * stride);
    const int64_t n_out = (int64_t)PANELS * mm->panel_rows;
    const size_t n = panels + act + (size_t)n_out * ROWS * sizeof(float);
    float x[K];
    *p = (trial){.mm = mm, .memory = weft__alloc_aligned(LINE, n), .least_ns = UINT64_MAX};
    if (!p->memory) return 0;
    memset(p->memory, 0, n);
    for (int i = 0; i < K; i++) x[i] = 1;
    for (int r = 0; r < ROWS; r++) weft__act_put_row(mm->act, x, K, r, ROWS, p->memory + panels);
    p->call = (weft__product){.panels = p->memory,
                              .stride = stride,
                              .n_out = n_out,
                              .k = K,
                              .act = p->memory + panels,
                              .m = ROWS,
                              .out = (float *)(p->memory + panels + act),
                              .ldo = n_out};
    return 1;
}

static void trial_round(trial *p)
{
    const uint64_t begin = weft__clock_ns();
    for (uint64_t before = begin, now; before - begin < ROUND_NS; before = now) {
        p->mm->run(&p->call, NULL);
        now = weft__clock_ns();
        if (now - before < p->least_ns) p->least_ns = now - before;
    }
}

static int64_t trial_rate(const trial *p)
{
    return (int64_t)(2e3 * K * ROWS * (double)p->call.n_out / (double)(p->least_ns ? p->least_ns : 1));
}

/* The best call of several rounds in turns: others who take the processor for a while slow down calls of both. Rounds
 * are longer than a frequency stays behind what asked for it. */
static int choice_measure(const weft__matmul *const mm[2], weft__cpu_rates *out)
{
    trial p[2] = {{0}, {0}};
    const int made = trial_new(mm[0], &p[0]) && trial_new(mm[1], &p[1]);
    for (int i = 0; made && i < 2 * ROUNDS; i++) trial_round(&p[i % 2]);
    if (made) {
        out->amx = trial_rate(&p[0]);
        out->below = trial_rate(&p[1]);
    }
    weft__free(p[0].memory);
    weft__free(p[1].memory);
    return made;
}

/* ---- this machine ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static weft__cpu_rates own; /* under the lock; amx 0: not known yet */

/* The kernels to choose from, AMX's first. 0: there is no choice. */
static int candidates(uint32_t tiers, const weft__matmul *mm[2])
{
#ifdef WEFT_EMULATED /* how fast instructions are that are functions says nothing */
    return 0;
#endif
    if (!(tiers >> WEFT__TIER_AMX & 1)) return 0;
    mm[0] = weft__matmul_find(CHOSEN_BY, tiers);
    mm[1] = weft__matmul_find(CHOSEN_BY, tiers & ~(1u << WEFT__TIER_AMX));
    return mm[0]->tier == WEFT__TIER_AMX && mm[1]->tier == WEFT__TIER_AVX512VNNI;
}

/* Under the lock: reads what is kept, else, if that is wanted, measures and keeps it. */
static int find_rates(const weft__matmul *const mm[2], int measured)
{
    char path[PATH_MAX], key[WEFT__CPU_RATES_KEY];
    if (own.amx) return 1;
    own.tier_below = mm[1]->tier;
    const int place = choice_key(mm, key) && weft__place_in_cache(path, sizeof path, "amx.txt") == 1;
    if (place && weft__cpu_rates_read(path, key, &own)) return 1;
    if (!measured || !choice_measure(mm, &own)) return 0;
    weft__log(WEFT__LOG_INFO, "products of quantized weights: %s %.0f GOPS, %s %.0f GOPS", mm[0]->name,
              (double)own.amx * 1e-3, mm[1]->name, (double)own.below * 1e-3);
    if (!place || !weft__cpu_rates_keep(path, key, &own))
        weft__log(WEFT__LOG_INFO, "that can not be kept: the next process measures again");
    return 1;
}

static int rates_of(uint32_t tiers, int measured, weft__cpu_rates *out)
{
    const weft__matmul *mm[2];
    if (!candidates(tiers, mm)) return 0;
    pthread_mutex_lock(&lock);
    const int known = find_rates(mm, measured);
    *out = own;
    pthread_mutex_unlock(&lock);
    return known;
}

int weft__cpu_known_rates(uint32_t tiers, weft__cpu_rates *out)
{
    return rates_of(tiers, 0, out);
}

uint32_t weft__cpu_choose(uint32_t tiers)
{
    weft__cpu_rates rates;
    return rates_of(tiers, 1, &rates) ? weft__cpu_without_slower(tiers, &rates) : tiers;
}
