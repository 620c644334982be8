/* cmd_top.c: weft top: what a running server does, read from its /metrics and /slots; redrawn on a terminal, else once as text. */
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "commands.h"
#include "options.h"
#include "terminal.h"

enum { ANSWER_MAX = 4 << 20 };

struct target {
    char host[256], port[16]; /* port "": host is the path of a unix socket */
    const char *key;
};

struct sample {
    uint64_t at_ns;
    double prompt_tokens, cached_tokens, generated_tokens, steps;
};

/* What is shown was flushed, and there is nothing else to lose: also while a server that hangs is waited for. */
static void on_interrupt(int number)
{
    (void)number;
    _exit(EXIT_DONE);
}

/* ---- HTTP ---- */

static weft_status read_unix(const char *path, struct target *t, weft_error *err)
{
    struct sockaddr_un un;
    size_t n = strlen(path);
    if (!n || n >= sizeof un.sun_path)
        return weft_fail(err, WEFT_ARGUMENT, "unix:%.50s: the path of a socket has 1 to %zu bytes", path, sizeof un.sun_path - 1);
    memcpy(t->host, path, n + 1);
    return WEFT_OK;
}

/* [http://]HOST[:PORT][/...], HOST maybe [IPv6]; or unix:PATH. */
static weft_status read_address(const char *address, struct target *t, weft_error *err)
{
    if (!strncmp(address, "unix:", 5)) return read_unix(address + 5, t, err);
    if (!strncmp(address, "https://", 8))
        return weft_fail(err, WEFT_UNSUPPORTED, "%.80s: weft top speaks plain HTTP only", address);
    const char *host = address + (strncmp(address, "http://", 7) ? 0 : 7), *all_end = host + strcspn(host, "/"), *host_end, *rest,
               *port = "8080";
    size_t n_port = 4;
    if (*host == '[') {
        host++;
        host_end = memchr(host, ']', (size_t)(all_end - host));
        rest = host_end ? host_end + 1 : NULL;
    } else {
        host_end = memchr(host, ':', (size_t)(all_end - host));
        rest = host_end = host_end ? host_end : all_end;
    }
    if (rest && rest < all_end) {
        port = *rest == ':' ? rest + 1 : all_end;
        n_port = (size_t)(all_end - port);
    }
    if (!rest || host_end == host || (size_t)(host_end - host) >= sizeof t->host || !n_port || n_port > 5 ||
        strspn(port, "0123456789") < n_port)
        return weft_fail(err, WEFT_ARGUMENT, "%.80s: must be http://HOST:PORT or unix:PATH", address);
    snprintf(t->host, sizeof t->host, "%.*s", (int)(host_end - host), host);
    snprintf(t->port, sizeof t->port, "%.*s", (int)n_port, port);
    return WEFT_OK;
}

static int connect_to(const struct target *t, weft_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all = NULL;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = 10};
    int fd = -1, rc;
    if (!t->port[0]) {
        memcpy(un.sun_path, t->host, strlen(t->host) + 1); /* read_address has seen to its length */
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        rc = fd < 0 || connect(fd, (struct sockaddr *)&un, sizeof un);
    } else {
        rc = getaddrinfo(t->host, t->port, &hints, &all);
        if (rc) return weft_fail(err, WEFT_IO, "%s: %s", t->host, gai_strerror(rc)), -1;
        for (struct addrinfo *a = all; a; a = a->ai_next) {
            if (fd >= 0) close(fd);
            fd = socket(a->ai_family, a->ai_socktype, 0);
            rc = fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen);
            if (!rc) break;
        }
        freeaddrinfo(all);
    }
    if (rc) {
        weft_fail(err, WEFT_IO, "%s%s%s: %s", t->host, t->port[0] ? " port " : "", t->port, strerror(errno));
        if (fd >= 0) close(fd);
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

/* The body of GET path, NUL-terminated; the caller frees *out. */
static weft_status get(const struct target *t, const char *path, char **out, weft_error *err)
{
    char head[4096];
    size_t n = 0;
    ssize_t got = 1;
    *out = NULL;
    int n_head = snprintf(head, sizeof head, "GET %s HTTP/1.0\r\nHost: %s\r\n%s%s%s\r\n", path,
                          t->port[0] && !strchr(t->host, ':') ? t->host : "localhost", t->key ? "Authorization: Bearer " : "",
                          t->key ? t->key : "", t->key ? "\r\n" : "");
    if (n_head < 0 || (size_t)n_head >= sizeof head) return weft_fail(err, WEFT_ARGUMENT, "--api-key: longer than a head holds");
    int fd = connect_to(t, err);
    if (fd < 0) return err->status;
    char *text = malloc(ANSWER_MAX + 1);
    if (text && send(fd, head, strlen(head), MSG_NOSIGNAL) >= 0)
        while (n < ANSWER_MAX && (got = recv(fd, text + n, ANSWER_MAX - n, 0)) > 0) n += (size_t)got;
    close(fd);
    if (!text) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the server's answer");
    text[n] = 0;
    char *body = strstr(text, "\r\n\r\n");
    int status = 0;
    if (got < 0 || !body || sscanf(text, "HTTP/1.%*d %d", &status) != 1 || status != 200) {
        free(text);
        if (status == 401) return weft_fail(err, WEFT_IO, "the server wants a key: --api-key");
        return weft_fail(err, WEFT_IO, "%s: %s%d", path, status ? "the server answers " : "no answer; status ", status);
    }
    memmove(text, body + 4, strlen(body + 4) + 1);
    *out = text;
    return WEFT_OK;
}

/* ---- numbers ---- */

/* The value in a line "NAME VALUE"; 0 when there is none. */
static double value(const char *metrics, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = metrics; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (!strncmp(line, name, n) && line[n] == ' ') return strtod(line + n, NULL);
    return 0;
}

/* The bound below which a share q of a histogram lies, in ms; 0 when it is empty. */
static double quantile(const char *metrics, const char *name, double q)
{
    char prefix[128], count[128];
    snprintf(prefix, sizeof prefix, "%s_bucket{le=\"", name);
    snprintf(count, sizeof count, "%s_count", name);
    double total = value(metrics, count), bound = 0;
    for (const char *line = strstr(metrics, prefix); line && total > 0; line = strstr(line + 1, prefix)) {
        char *end;
        double upper = strtod(line + strlen(prefix), &end);
        const char *number = strchr(end, ' ');
        if (strncmp(end, "\"}", 2) || !number) break;
        if (upper < 1e9) bound = upper;
        if (strtod(number, NULL) >= q * total) break;
    }
    return bound * 1000;
}

static struct sample take(const char *m)
{
    return (struct sample){now_ns(), value(m, "weft_prompt_tokens_total"), value(m, "weft_cached_tokens_total"),
                           value(m, "weft_generated_tokens_total"), value(m, "weft_steps_total")};
}

static void print_rates(const struct sample *now, const struct sample *before)
{
    double s = (double)(now->at_ns - before->at_ns) / 1e9;
    if (before->at_ns && s > 0)
        printf("now      %.1f generated t/s, %.1f prompt t/s, %.1f steps/s\n",
               (now->generated_tokens - before->generated_tokens) / s, (now->prompt_tokens - before->prompt_tokens) / s,
               (now->steps - before->steps) / s);
    printf("total    %.0f generated, %.0f of prompts, %.1f %% of them cached, %.0f steps\n", now->generated_tokens,
           now->prompt_tokens, now->prompt_tokens > 0 ? 100 * now->cached_tokens / now->prompt_tokens : 0.0, now->steps);
}

static void print_slots(const char *text)
{
    weft__json *all = NULL;
    if (weft__json_parse(text, strlen(text), &all, NULL)) return;
    printf("slot  state    prompt  generated  of tokens\n");
    for (size_t i = 0; i < weft__json_size(all); i++) {
        const weft__json *s = weft__json_at(all, i), *next = weft__json_at(weft__json_get(s, "next_token"), 0);
        int64_t id = 0, prompt = 0, decoded = 0, n_ctx = 0;
        int busy = 0;
        weft__json_int(weft__json_get(s, "id"), &id);
        weft__json_int(weft__json_get(s, "n_prompt_tokens"), &prompt);
        weft__json_int(weft__json_get(next, "n_decoded"), &decoded);
        weft__json_int(weft__json_get(s, "n_ctx"), &n_ctx);
        weft__json_bool(weft__json_get(s, "is_processing"), &busy);
        printf("%4lld  %-7s  %6lld  %9lld  %9lld\n", (long long)id, busy ? "runs" : "idle", (long long)prompt, (long long)decoded,
               (long long)n_ctx);
    }
    weft__json_free(&all);
}

static void print_all(const char *address, const char *m, const char *slots, const struct sample *now,
                      const struct sample *before)
{
    printf("%s  |  %.0f run of %.0f, %.0f wait  |  %.0f connections\n", address, value(m, "weft_running"), value(m, "weft_slots"),
           value(m, "weft_waiting"), value(m, "weft_http_connections"));
    print_rates(now, before);
    printf("first token   half within %.0f ms, 99 %% within %.0f ms\n", quantile(m, "weft_time_to_first_token_seconds", 0.5),
           quantile(m, "weft_time_to_first_token_seconds", 0.99));
    printf("between them  half within %.0f ms, 99 %% within %.0f ms\n", quantile(m, "weft_time_between_tokens_seconds", 0.5),
           quantile(m, "weft_time_between_tokens_seconds", 0.99));
    printf("KV pages      %.0f of %.0f in use, %.0f hold prefixes\n", value(m, "weft_kv_pages_used"), value(m, "weft_kv_pages"),
           value(m, "weft_kv_pages_cached"));
    printf("trouble       %.0f refused, %.0f preempted, %.0f failed, %.0f cut for not reading, %.0f gone\n\n",
           value(m, "weft_refused_total"), value(m, "weft_preempted_total"), value(m, "weft_requests_total{finish=\"failed\"}"),
           value(m, "weft_http_cut_slow_total"), value(m, "weft_http_gone_total"));
    print_slots(slots);
}

static weft_status poll_once(const struct target *t, const char *address, int clear, struct sample *before, weft_error *err)
{
    char *metrics = NULL, *slots = NULL;
    weft_status st = get(t, "/metrics", &metrics, err);
    if (!st) st = get(t, "/slots", &slots, err);
    if (!st) {
        struct sample now = take(metrics);
        if (clear) printf("\033[H\033[2J");
        print_all(address, metrics, slots, &now, before);
        fflush(stdout);
        *before = now;
    }
    free(metrics);
    free(slots);
    return st;
}

int cmd_top(int argc, char **argv)
{
    int32_t every = 1;
    struct target target = {0};
    const option_spec options[] = {
        {"api-key", 0, OPT_TEXT, &target.key, "K", "the server's key", 0, 0, NULL},
        {"every", 0, OPT_INT, &every, "S", "seconds between looks (1)", 1, 3600, NULL},
        {0},
    };
    const command_spec spec = {"top",
                               "[ADDRESS] [options]",
                               "Shows what a server does: rates, waiting times, pages and slots. ADDRESS is http://HOST:PORT or\n"
                               "unix:PATH (http://127.0.0.1:8080). Where standard output is no terminal, once.",
                               "  weft top http://127.0.0.1:8080\n",
                               options,
                               0,
                               1};
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    const char *address = argc > first ? argv[first] : "http://127.0.0.1:8080";
    struct sample before = {0};
    weft_error err = {0};
    int live = isatty(STDOUT_FILENO);
    signal(SIGINT, on_interrupt);
    weft_status st = read_address(address, &target, &err);
    if (!st) st = poll_once(&target, address, live, &before, &err);
    while (!st && live) {
        sleep((unsigned)every);
        st = poll_once(&target, address, live, &before, &err);
    }
    return st ? report("top", &err) : EXIT_DONE;
}
