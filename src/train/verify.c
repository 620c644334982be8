// SPDX-License-Identifier: Apache-2.0
/* verify.c: see verify.h. */
#include "train/verify.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"

enum { ANSWER_MS = 60000, END_MS = 1000, LINE_MAX_BYTES = 4096 };

typedef struct verify_text {
    const char *s;
    size_t n;
} verify_text;

typedef double (*rule_fn)(verify_text answer, verify_text reference);

struct weft__train_verifier {
    rule_fn rule; /* or NULL: the program */
    pid_t child;
    int fd; /* both ways */
    char line[LINE_MAX_BYTES + 1];
};

/* ---- rules ---- */

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static verify_text trimmed(verify_text t)
{
    while (t.n && is_blank(t.s[0])) t.s++, t.n--;
    while (t.n && is_blank(t.s[t.n - 1])) t.n--;
    return t;
}

static double rule_exact(verify_text answer, verify_text reference)
{
    answer = trimmed(answer);
    reference = trimmed(reference);
    return answer.n == reference.n && (!answer.n || !memcmp(answer.s, reference.s, answer.n));
}

static double rule_contains(verify_text answer, verify_text reference)
{
    reference = trimmed(reference);
    return reference.n && answer.n && memmem(answer.s, answer.n, reference.s, reference.n) != NULL;
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The last number of the text, commas between its digits left out; NAN: none. */
static double last_number(verify_text t)
{
    char digits[64];
    size_t end = t.n, n = 0;
    while (end && !is_digit(t.s[end - 1])) end--;
    if (!end) return NAN;
    size_t from = end;
    while (from && (is_digit(t.s[from - 1]) ||
                    ((t.s[from - 1] == '.' || t.s[from - 1] == ',') && from > 1 && is_digit(t.s[from - 2]))))
        from--;
    if (from && t.s[from - 1] == '-') digits[n++] = '-';
    for (size_t i = from; i < end && n + 1 < sizeof digits; i++)
        if (t.s[i] != ',') digits[n++] = t.s[i];
    digits[n] = 0;
    return strtod(digits, NULL);
}

static double rule_number(verify_text answer, verify_text reference)
{
    return last_number(answer) == last_number(reference); /* NAN is equal to nothing */
}

static double rule_json(verify_text answer, verify_text reference)
{
    weft__json *a = NULL, *r = NULL;
    answer = trimmed(answer);
    reference = trimmed(reference);
    weft__json_parse(answer.s, answer.n, &a, NULL);
    weft__json_parse(reference.s, reference.n, &r, NULL);
    const double same = a && (!r || weft__json_equal(a, r));
    weft__json_free(&r);
    weft__json_free(&a);
    return same;
}

static const struct {
    const char *name;
    rule_fn fn;
} RULES[] = {{"exact", rule_exact}, {"contains", rule_contains}, {"number", rule_number}, {"json", rule_json}};

/* ---- the program ---- */

static weft_status start_program(weft__train_verifier *v, const char *command, weft_error *err)
{
    int ends[2];
    char *const args[] = {"sh", "-c", (char *)command, NULL};
    posix_spawn_file_actions_t files;
    extern char **environ;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return weft_fail(err, WEFT_IO, "the verifier cannot be started: %s", strerror(errno));
    int rc = posix_spawn_file_actions_init(&files);
    if (!rc) rc = posix_spawn_file_actions_adddup2(&files, ends[1], 0);
    if (!rc) rc = posix_spawn_file_actions_adddup2(&files, ends[1], 1);
    if (!rc) rc = posix_spawn(&v->child, "/bin/sh", &files, NULL, args, environ);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    v->fd = ends[0];
    if (!rc) return WEFT_OK;
    v->child = 0;
    return weft_fail(err, WEFT_IO, "the verifier cannot be started: %s", strerror(rc));
}

static weft_status program_failed(const weft__train_verifier *v, weft_error *err)
{
    (void)v;
    return weft_fail(err, WEFT_IO,
                     "the verifier ended before it had judged every answer; its own messages stand above");
}

static weft_status send_line(weft__train_verifier *v, const char *s, size_t n, weft_error *err)
{
    while (n) {
        const ssize_t sent = send(v->fd, s, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return program_failed(v, err);
        s += sent;
        n -= (size_t)sent;
    }
    return WEFT_OK;
}

/* A line into v->line, without its end. */
static weft_status receive_line(weft__train_verifier *v, weft_error *err)
{
    for (size_t n = 0;;) {
        struct pollfd p = {v->fd, POLLIN, 0};
        const int ready = poll(&p, 1, ANSWER_MS);
        if (ready < 0 && errno == EINTR) continue;
        if (!ready) return weft_fail(err, WEFT_TIMEOUT, "the verifier said nothing of an answer for a minute");
        const ssize_t got = recv(v->fd, v->line + n, 1, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return program_failed(v, err);
        v->line[n + 1] = 0;
        if (v->line[n] == '\n') {
            v->line[n] = 0;
            return WEFT_OK;
        }
        if (++n == LINE_MAX_BYTES)
            return weft_fail(err, WEFT_FORMAT, "the verifier's line is longer than %d bytes", LINE_MAX_BYTES);
    }
}

static weft_status reward_of_line(const weft__train_verifier *v, double *reward, weft_error *err)
{
    weft__json *root = NULL;
    *reward = NAN;
    weft_status st = weft__json_parse(v->line, strlen(v->line), &root, NULL);
    const weft__json *number = weft__json_kind_of(root) == WEFT__JSON_OBJECT ? weft__json_get(root, "reward") : root;
    if (!st && !weft__json_double(number, reward)) *reward = NAN;
    weft__json_free(&root);
    if (st == WEFT_NO_MEMORY) return weft_fail(err, st, "no memory for a verifier's line");
    if (isfinite(*reward)) return WEFT_OK;
    return weft_fail(err, WEFT_FORMAT,
                     "the verifier said \"%.80s\" of an answer; it must be a number, or {\"reward\": number}", v->line);
}

static weft_status ask_program(weft__train_verifier *v, const verify_text texts[3], double *reward, weft_error *err)
{
    static const char *const names[] = {"prompt", "answer", "reference"};
    weft__strbuf line = {0};
    for (int i = 0; i < 3; i++) {
        weft__strbuf_printf(&line, "%s\"%s\": ", i ? ", " : "{", names[i]);
        weft__json_write_string(&line, texts[i].s, texts[i].n);
    }
    weft__strbuf_puts(&line, "}\n");
    weft_status st = line.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a verifier's line")
                                 : send_line(v, line.data, line.len, err);
    weft__strbuf_free(&line);
    if (!st) st = receive_line(v, err);
    return st ? st : reward_of_line(v, reward, err);
}

/* ---- both ---- */

weft_status weft__train_verifier_open(const char *rule, const char *command, weft__train_verifier **out,
                                      weft_error *err)
{
    *out = NULL;
    if (!rule == !command)
        return weft_fail(err, WEFT_ARGUMENT,
                         "answers are judged by a rule (exact, contains, number, json) or by a "
                         "command: give one of them");
    weft__train_verifier *v = weft__alloc_zero(1, sizeof *v);
    if (!v) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a verifier");
    v->fd = -1;
    for (size_t i = 0; rule && i < sizeof RULES / sizeof *RULES; i++)
        if (!strcmp(RULES[i].name, rule)) v->rule = RULES[i].fn;
    weft_status st = WEFT_OK;
    if (rule && !v->rule)
        st =
            weft_fail(err, WEFT_ARGUMENT, "there is no rule '%.64s'; there are exact, contains, number and json", rule);
    if (!st && command) st = start_program(v, command, err);
    if (st) weft__train_verifier_close(&v);
    *out = v;
    return st;
}

void weft__train_verifier_close(weft__train_verifier **pv)
{
    weft__train_verifier *v = pv ? *pv : NULL;
    if (!v) return;
    if (v->fd >= 0) close(v->fd);
    for (int ms = 0; v->child > 0 && waitpid(v->child, NULL, WNOHANG) == 0; ms += 10) {
        if (ms == END_MS) kill(v->child, SIGKILL);
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    weft__free(v);
    *pv = NULL;
}

weft_status weft__train_verify(weft__train_verifier *v, const char *prompt, size_t n_prompt, const char *answer,
                               size_t n_answer, const char *reference, size_t n_reference, double *reward,
                               weft_error *err)
{
    const verify_text texts[] = {{prompt, n_prompt}, {answer, n_answer}, {reference, n_reference}};
    if (!v->rule) return ask_program(v, texts, reward, err);
    *reward = v->rule(texts[1], texts[2]);
    return WEFT_OK;
}
