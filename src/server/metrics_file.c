// SPDX-License-Identifier: Apache-2.0
/* metrics_file.c: a row of numbers per interval, as CSV, for those who want them without a server that scrapes. By a
 * thread of its own, which writes each row with one call: a reader that takes nothing loses whole rows, and holds up
 * nobody. The file goes on behind what is there; only an empty one gets the names of the columns. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "format/out_file.h"
#include "server/models.h"

static const char header[] =
    "time,requests,prompt_tokens,cached_tokens,generated_tokens,running,waiting,refused,preempted,steps,model_seconds,"
    "kv_pages,kv_pages_used,kv_pages_cached,adapters_ready,weights_bytes,pages_bytes,adapters_bytes,scratch_bytes,"
    "resident_bytes\n";

/* Of this process; 0: not known. */
static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%*u %llu", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What all models have counted, and hold now. */
typedef struct metrics_sums {
    uint64_t numbers[9];
    uint64_t model_ns;
    uint64_t more[8];
} metrics_sums;

static void add_model(metrics_sums *to, weft__server_model *m)
{
    weft_engine_stats e = {.size = sizeof e};
    weft__server_models_stats(m, &e);
    const uint64_t numbers[] = {e.n_finished,
                                m->metrics.prompt_tokens,
                                m->metrics.cached_tokens,
                                m->metrics.generated_tokens,
                                (uint64_t)e.n_running,
                                (uint64_t)e.n_waiting,
                                e.n_refused,
                                e.n_preempted,
                                e.n_steps},
                   more[] = {(uint64_t)e.kv_pages,         (uint64_t)e.kv_pages_used, (uint64_t)e.kv_pages_cached,
                             (uint64_t)e.n_adapters_ready, e.memory.weights.bytes,    e.memory.pages.bytes,
                             e.memory.adapters.bytes,      e.memory.scratch.bytes};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) to->numbers[i] += numbers[i];
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) to->more[i] += more[i];
    to->model_ns += e.model_ns;
}

static void put_row(weft_server *s, weft__strbuf *out)
{
    metrics_sums sums = {0};
    char stamp[40];
    struct tm utc;
    const time_t now = time(NULL);
    pthread_mutex_lock(&s->models.lock);
    for (size_t i = 0; i < s->models.n; i++) add_model(&sums, s->models.items[i]);
    pthread_mutex_unlock(&s->models.lock);
    gmtime_r(&now, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &utc);
    weft__strbuf_puts(out, stamp);
    for (size_t i = 0; i < sizeof sums.numbers / sizeof *sums.numbers; i++)
        weft__strbuf_printf(out, ",%llu", (unsigned long long)sums.numbers[i]);
    weft__strbuf_printf(out, ",%.6f", (double)sums.model_ns / 1e9);
    for (size_t i = 0; i < sizeof sums.more / sizeof *sums.more; i++)
        weft__strbuf_printf(out, ",%llu", (unsigned long long)sums.more[i]);
    weft__strbuf_printf(out, ",%llu\n", (unsigned long long)resident_bytes());
}

/* A row, or nothing of it. */
static void write_row(weft_server *s, const char *text, size_t n)
{
    weft__server_metrics_file *f = &s->metrics_file;
    const ssize_t got = n ? write(fileno(f->file), text, n) : -1;
    if (got == (ssize_t)n || f->told) return;
    weft__log(WEFT__LOG_WARN, "--metrics-file: a row is lost: %s",
              !n        ? "no memory"
              : got < 0 ? strerror(errno)
                        : "there was no room for all of it");
    f->told = 1;
}

static void *write_rows(void *arg)
{
    weft_server *s = arg;
    weft__server_metrics_file *f = &s->metrics_file;
    for (int stop = 0; !stop;) {
        weft__strbuf row = {0};
        put_row(s, &row);
        write_row(s, row.data, row.failed ? 0 : row.len);
        weft__strbuf_free(&row);
        const uint64_t until = weft__clock_ns() + (uint64_t)f->every_s * 1000000000u;
        pthread_mutex_lock(&f->lock);
        while (!f->stop && !weft__clock_wait(&f->end, &f->lock, until)) continue;
        stop = f->stop;
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

weft_status weft__server_metrics_file_begin(weft_server *s, const char *path, int every_s, weft_error *err)
{
    weft__server_metrics_file *f = &s->metrics_file;
    struct stat there;
    f->file = weft__out_file_grow(path, 1, err);
    if (!f->file) return err ? err->status : WEFT_IO;
    f->every_s = every_s;
    pthread_mutex_init(&f->lock, NULL);
    weft__clock_cond_init(&f->end);
    const int fd = fileno(f->file), is_empty = fstat(fd, &there) || !there.st_size;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (is_empty) write_row(s, header, sizeof header - 1);
    f->has_thread = !weft__thread_start(&f->thread, write_rows, s);
    return f->has_thread ? WEFT_OK : weft_fail(err, WEFT_LIMIT, "the system refuses threads");
}

void weft__server_metrics_file_end(weft_server *s)
{
    weft__server_metrics_file *f = &s->metrics_file;
    if (!f->file) return;
    pthread_mutex_lock(&f->lock);
    f->stop = 1;
    pthread_cond_signal(&f->end);
    pthread_mutex_unlock(&f->lock);
    if (f->has_thread) pthread_join(f->thread, NULL);
    weft__strbuf last = {0}; /* what there was at the end */
    put_row(s, &last);
    write_row(s, last.data, last.failed ? 0 : last.len);
    weft__strbuf_free(&last);
    fclose(f->file);
    pthread_cond_destroy(&f->end);
    pthread_mutex_destroy(&f->lock);
}
