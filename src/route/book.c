// SPDX-License-Identifier: Apache-2.0
/* book.c: the routers of all tenants, and their logs (book.h). One lock holds all of it. */
#include "route/book.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

/* An answer that may be rewarded. */
typedef struct book_answer {
    char id[WEFT__ROUTE_ID];
    int arm, is_rewarded;
    float x[WEFT__ROUTE_DIMS];
} book_answer;

typedef struct book_tenant {
    char name[WEFT__ROUTE_ID];
    weft__route *route;
    book_answer *answers; /* [n_answers], the newest at (at - 1) */
    size_t n_answers, cap_answers, at;
    uint64_t used, log_bytes;
    char *path;  /* of its log; NULL: none */
    int log;     /* below 0: none, or it could not be opened */
    int is_torn; /* its last line has no end: the next one begins with that */
    struct book_tenant *next;
} book_tenant;

struct weft__route_book {
    pthread_mutex_t lock;
    weft__route_params params;
    char (*arms)[WEFT__ROUTE_NAME]; /* [params.n_arms] */
    weft__route_path *path;
    void *path_arg;
    book_tenant *tenants;
    uint64_t uses;
    weft__route_book_stats stats;
};

/* ---- the book ---- */

weft_status weft__route_book_new(const weft__route_params *route, const char *const *arms, weft__route_path *path,
                                 void *arg, weft__route_book **out, weft_error *err)
{
    weft__route *one = NULL; /* looks at the parameters */
    *out = NULL;
    const weft_status st = weft__route_new(route, &one, err);
    if (st) return st;
    weft__route_free(&one);
    for (int i = 0; i < route->n_arms; i++)
        if (!*arms[i] || strlen(arms[i]) >= WEFT__ROUTE_NAME)
            return weft_fail(err, WEFT_ARGUMENT, "an arm of a router must be a name of 1 to %d bytes",
                             WEFT__ROUTE_NAME - 1);
    weft__route_book *b = weft__alloc_zero(1, sizeof *b);
    if (!b) return weft_fail(err, WEFT_NO_MEMORY, "no memory for routers");
    pthread_mutex_init(&b->lock, NULL);
    b->params = *route;
    b->arms = weft__alloc_zero((size_t)route->n_arms, sizeof *b->arms);
    b->path = path;
    b->path_arg = arg;
    if (!b->arms) {
        weft__route_book_free(&b);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for routers");
    }
    for (int i = 0; i < route->n_arms; i++) snprintf(b->arms[i], WEFT__ROUTE_NAME, "%s", arms[i]);
    *out = b;
    return WEFT_OK;
}

static void tenant_free(book_tenant *t)
{
    if (t->log >= 0) close(t->log);
    weft__route_free(&t->route);
    weft__free(t->answers);
    weft__free(t->path);
    weft__free(t);
}

void weft__route_book_free(weft__route_book **p)
{
    weft__route_book *b = *p;
    if (!b) return;
    *p = NULL;
    while (b->tenants) {
        book_tenant *t = b->tenants;
        b->tenants = t->next;
        tenant_free(t);
    }
    pthread_mutex_destroy(&b->lock);
    weft__free(b->arms);
    weft__free(b);
}

/* ---- what a line says ---- */

static book_answer *answer_of(book_tenant *t, const char *id)
{
    for (size_t i = 0; i < t->n_answers; i++)
        if (!strcmp(t->answers[i].id, id)) return &t->answers[i];
    return NULL;
}

/* A place for an answer, the oldest's where there are many; NULL: no memory. */
static book_answer *place_of(book_tenant *t)
{
    if (t->n_answers < WEFT__ROUTE_PENDING) {
        if (!weft__grow(&t->answers, &t->cap_answers, t->n_answers + 1, sizeof *t->answers)) return NULL;
        return &t->answers[t->n_answers++];
    }
    return &t->answers[t->at++ % WEFT__ROUTE_PENDING];
}

static int keep_answer(book_tenant *t, const char *id, int arm, const float *x)
{
    book_answer *a = place_of(t);
    if (!a) return 0;
    *a = (book_answer){.arm = arm};
    snprintf(a->id, sizeof a->id, "%s", id);
    memcpy(a->x, x, sizeof a->x);
    return 1;
}

static int take_reward(book_tenant *t, const char *id, double reward)
{
    book_answer *a = answer_of(t, id);
    if (!a || a->is_rewarded) return a != NULL;
    if (weft__route_reward(t->route, a->x, a->arm, reward, NULL)) return 0;
    a->is_rewarded = 1;
    return 1;
}

/* ---- the log ---- */

static void replay_line(weft__route_book *b, book_tenant *t, const char *text, size_t n)
{
    weft__route_line line;
    weft__route_choice c;
    if (weft__route_line_read(text, n, &line, NULL)) return; /* torn by a crash, which costs this line */
    if (line.is_reward) {
        take_reward(t, line.id, line.reward);
        return;
    }
    int arm = 0;
    while (arm < b->params.n_arms && strcmp(b->arms[arm], line.arm)) arm++;
    weft__route_choose(t->route, line.x, ~0u, &c); /* that its number is used */
    if (arm < b->params.n_arms) keep_answer(t, line.id, arm, line.x);
}

/* Without a buffer of its own: what a full disk did not take must not come later. 0: not all of it. */
static int write_all(int fd, const char *bytes, size_t n)
{
    while (n) {
        const ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return 0;
        bytes += done;
        n -= (size_t)done;
    }
    return 1;
}

static void open_log(book_tenant *t)
{
    t->log = open(t->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* All of it, on the disk; or nothing is there, and 0. */
static int write_file(const char *path, const weft__strbuf *bytes)
{
    const int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return 0;
    int ok = write_all(fd, bytes->data, bytes->len) && !fsync(fd);
    ok = !close(fd) && ok;
    if (!ok) unlink(path);
    return ok;
}

/* Leaves the younger half of a log, in whole lines; what fails leaves all of it. */
static void shorten(book_tenant *t)
{
    weft__strbuf rest = {0}, fresh = {0};
    char line[WEFT__ROUTE_LINE];
    FILE *f = fopen(t->path, "re");
    if (!f) return;
    if (!fseek(f, (long)(t->log_bytes / 2), SEEK_SET) && fgets(line, sizeof line, f))
        while (fgets(line, sizeof line, f)) weft__strbuf_puts(&rest, line);
    fclose(f);
    weft__strbuf_printf(&fresh, "%s.new", t->path);
    if (!rest.failed && !fresh.failed && write_file(fresh.data, &rest) && !rename(fresh.data, t->path)) {
        if (t->log >= 0) close(t->log);
        t->log_bytes = rest.len;
        open_log(t);
    }
    weft__strbuf_free(&fresh);
    weft__strbuf_free(&rest);
}

static void replay(weft__route_book *b, book_tenant *t)
{
    char line[WEFT__ROUTE_LINE];
    FILE *f = fopen(t->path, "re");
    while (f && fgets(line, sizeof line, f)) {
        const size_t n = strlen(line);
        t->is_torn = !n || line[n - 1] != '\n';
        t->log_bytes += n;
        replay_line(b, t, line, n);
    }
    if (f) fclose(f);
    open_log(t);
    if (t->log_bytes > WEFT__ROUTE_LOG_MOST) shorten(t);
}

static void put_line(weft__route_book *b, book_tenant *t, const weft__route_line *line)
{
    weft__strbuf text = {0};
    if (!b->path) return;
    if (t->is_torn) weft__strbuf_putc(&text, '\n');
    weft__route_line_write(line, &text);
    if (t->path && t->log < 0) open_log(t);
    if (text.failed || t->log < 0) {
        b->stats.lost_lines++;
    } else if (!write_all(t->log, text.data, text.len)) {
        b->stats.lost_lines++;
        t->is_torn = 1; /* as far as can be told */
    } else {
        t->is_torn = 0;
        t->log_bytes += text.len;
    }
    weft__strbuf_free(&text);
    if (t->log >= 0 && t->log_bytes > WEFT__ROUTE_LOG_MOST) shorten(t);
}

/* ---- tenants ---- */

static book_tenant **place_by_name(weft__route_book *b, const char *name)
{
    book_tenant **at = &b->tenants;
    while (*at && strcmp((*at)->name, name)) at = &(*at)->next;
    return at;
}

static void drop_tenant(weft__route_book *b, book_tenant **at)
{
    book_tenant *t = *at;
    *at = t->next;
    tenant_free(t);
    b->stats.tenants--;
}

static void drop_oldest_tenant(weft__route_book *b)
{
    book_tenant **oldest = &b->tenants;
    if (b->stats.tenants < WEFT__ROUTE_TENANTS) return;
    for (book_tenant **at = &b->tenants; *at; at = &(*at)->next)
        if ((*at)->used < (*oldest)->used) oldest = at;
    drop_tenant(b, oldest);
}

/* NULL: no memory, or the name is too long, or (makes 0) it has no log. */
static book_tenant *tenant_of(weft__route_book *b, const char *name, int makes)
{
    char path[1024];
    book_tenant **at = place_by_name(b, name), *t = *at;
    if (strlen(name) >= sizeof t->name) return NULL;
    const int has_path = b->path && (!t || !t->path) && b->path(b->path_arg, name, makes, path, sizeof path);
    if (t && !has_path) {
        t->used = ++b->uses;
        return t;
    }
    if (!t && b->path && !has_path && !makes) return NULL;
    if (t) drop_tenant(b, at); /* its log could not be had before, and says more than what came since */
    drop_oldest_tenant(b);
    if (!(t = weft__alloc_zero(1, sizeof *t))) return NULL;
    t->log = -1;
    snprintf(t->name, sizeof t->name, "%s", name);
    if (weft__route_new(&b->params, &t->route, NULL) || (has_path && !(t->path = weft__strdup(path)))) {
        tenant_free(t);
        return NULL;
    }
    if (t->path) replay(b, t);
    t->used = ++b->uses;
    t->next = b->tenants;
    b->tenants = t;
    b->stats.tenants++;
    return t;
}

/* ---- what callers ask ---- */

void weft__route_book_choose(weft__route_book *b, const char *tenant, const char *id, const float *x, uint32_t allowed,
                             weft__route_choice *out)
{
    const uint32_t there = allowed & (uint32_t)((1u << b->params.n_arms) - 1);
    *out = (weft__route_choice){.arm = there ? __builtin_ctz(there) : 0, .propensity = 1};
    pthread_mutex_lock(&b->lock);
    book_tenant *t = tenant_of(b, tenant, 1);
    if (t) {
        weft__route_choose(t->route, x, allowed, out);
        if (keep_answer(t, id, out->arm, x)) {
            weft__route_line line = {.n = out->n, .propensity = out->propensity};
            snprintf(line.id, sizeof line.id, "%s", id);
            snprintf(line.arm, sizeof line.arm, "%s", b->arms[out->arm]);
            memcpy(line.x, x, sizeof line.x);
            put_line(b, t, &line);
        }
    }
    b->stats.choices++;
    b->stats.of_arm[out->arm]++;
    pthread_mutex_unlock(&b->lock);
}

int weft__route_book_reward(weft__route_book *b, const char *tenant, const char *id, double reward)
{
    weft__route_line line = {.is_reward = 1, .reward = reward < 0 ? 0 : reward > 1 ? 1 : reward};
    pthread_mutex_lock(&b->lock);
    book_tenant *t = tenant_of(b, tenant, 0);
    const book_answer *a = t ? answer_of(t, id) : NULL;
    const int is_new = a && !a->is_rewarded, known = a && take_reward(t, id, line.reward);
    if (known && is_new) {
        snprintf(line.id, sizeof line.id, "%s", id);
        put_line(b, t, &line);
        b->stats.rewards++;
    }
    b->stats.unknown_rewards += !known;
    pthread_mutex_unlock(&b->lock);
    return known;
}

uint64_t weft__route_book_mark(weft__route_book *b, const char *tenant)
{
    pthread_mutex_lock(&b->lock);
    const book_tenant *t = *place_by_name(b, tenant);
    const uint64_t mark = t ? weft__route_mark(t->route) : 0;
    pthread_mutex_unlock(&b->lock);
    return mark;
}

void weft__route_book_forget(weft__route_book *b, const char *tenant)
{
    pthread_mutex_lock(&b->lock);
    book_tenant **at = place_by_name(b, tenant);
    if (*at) drop_tenant(b, at);
    pthread_mutex_unlock(&b->lock);
}

void weft__route_book_stats_get(weft__route_book *b, weft__route_book_stats *out)
{
    pthread_mutex_lock(&b->lock);
    *out = b->stats;
    pthread_mutex_unlock(&b->lock);
}
