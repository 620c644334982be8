// SPDX-License-Identifier: Apache-2.0
/* team.c: leaving out threads whose cores are taken away (team.h).
 *
 * Invariant: decisions are made once per window of at least WINDOW_NS of jobs, all of them with the same n. */
#include "base/team.h"

#define MS 1000000ull
#define PATIENCE_MIN_NS (100 * MS)
#define PATIENCE_MAX_NS (3200 * MS)
#define WINDOW_NS (30 * MS) /* several time slices of the system's scheduler */

void weft__team_init(weft__team *t, int size)
{
    *t = (weft__team){.size = size, .n = size, .patience_ns = PATIENCE_MIN_NS};
}

static void change(weft__team *t, int n, int trial)
{
    t->n = n;
    t->trial = trial;
    t->settled_ns = 0;
    t->proven = 0;
}

/* Would n - 1 threads have been faster? What one thread more brings is between 1 / (n - 1), when multiplying is the
 * limit, and nothing, when memory is; a middle value is assumed. */
static int too_many(const weft__team *t)
{
    double kept = (double)(t->wall_ns - t->lost_ns) / (double)t->wall_ns;
    return t->n > 1 && kept < 0.92 && kept * (1 + 0.8 / (t->n - 1)) < 1;
}

/* Was a job shorter than without the thread on trial? -1: not known. */
static int faster(const weft__team *t)
{
    if (t->n_jobs == 0 || t->small_job_ns == 0 || t->small_kind != t->kind) return -1;
    return (double)t->wall_ns / (double)t->n_jobs < t->small_job_ns;
}

static void end_trial(weft__team *t)
{
    int known = faster(t);
    if (known < 0 ? !too_many(t) : known) {
        change(t, t->n, 0);
        t->proven = known > 0;
        t->patience_ns = PATIENCE_MIN_NS;
        return;
    }
    change(t, t->n - 1, 0);
    t->patience_ns *= 2;
    if (t->patience_ns > PATIENCE_MAX_NS) t->patience_ns = PATIENCE_MAX_NS;
}

static void end_window(weft__team *t)
{
    t->settled_ns += t->wall_ns;
    if (t->trial) {
        end_trial(t);
    } else if (too_many(t) && !(t->proven && t->settled_ns < PATIENCE_MAX_NS)) {
        change(t, t->n - 1, 0);
    } else if (t->n < t->size && t->settled_ns >= t->patience_ns) {
        t->small_kind = t->kind;
        t->small_job_ns = t->n_jobs ? (double)t->wall_ns / (double)t->n_jobs : 0;
        change(t, t->n + 1, 1);
    }
    t->wall_ns = t->lost_ns = t->n_jobs = 0;
}

void weft__team_job(weft__team *t, int64_t kind, uint64_t wall_ns, uint64_t lost_ns)
{
    if (t->size == 1 || wall_ns == 0) return;
    int mixed = t->wall_ns > 0 && (t->n_jobs == 0 || t->kind != kind);
    t->kind = kind;
    t->n_jobs = mixed ? 0 : t->n_jobs + 1;
    t->wall_ns += wall_ns;
    t->lost_ns += lost_ns < wall_ns ? lost_ns : wall_ns;
    if (t->wall_ns >= WINDOW_NS) end_window(t);
}
