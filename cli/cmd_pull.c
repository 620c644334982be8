// SPDX-License-Identifier: Apache-2.0
/* cmd_pull.c: weft pull: fetches a model, with a bar, speed and time left. Ctrl-C stops; what was fetched stays. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "options.h"
#include "terminal.h"

enum { BAR = 24 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    interrupted = 1;
    signal(signal_number, SIG_DFL); /* a second one ends at once */
}

/* What is shown. The speed is that of the last seconds: each new measurement, a fifth of a second long, counts a
 * tenth. */
struct display {
    uint64_t drawn_ns, measured_ns, measured_bytes;
    double bytes_per_s;
    int shown, announced; /* announced: 1 + index of the file that was named, where stderr is no terminal */
    int32_t index;
    char what[16];
};

static void print_bytes(char out[16], double n)
{
    static const char units[] = "kMGTPE";
    int unit = -1;
    while (n >= 1000 && unit < 5) n /= 1000, unit++;
    if (unit < 0) snprintf(out, 16, "%.0f B", n);
    else snprintf(out, 16, n < 10 ? "%.2f %cB" : "%.1f %cB", n, units[unit]);
}

static void measure(struct display *d, const weft_pull_state *s, uint64_t now)
{
    if (strcmp(d->what, s->what) || s->done < d->measured_bytes || !d->measured_ns) {
        snprintf(d->what, sizeof d->what, "%s", s->what);
        d->bytes_per_s = 0;
    } else if (s->index != d->index) {
        /* Files that were there are passed over: no measure of the network. */
    } else if (now - d->measured_ns < 200000000u) {
        return;
    } else {
        double speed = (double)(s->done - d->measured_bytes) / ((double)(now - d->measured_ns) / 1e9);
        d->bytes_per_s = d->bytes_per_s > 0 ? 0.9 * d->bytes_per_s + 0.1 * speed : speed;
    }
    d->index = s->index;
    d->measured_ns = now;
    d->measured_bytes = s->done;
}

static void draw(struct display *d, const weft_pull_state *s)
{
    char done[16], bytes[16], speed[16];
    if (!s->bytes || s->done == 0) {
        fprintf(stderr, "\r%s ...\x1b[K",
                !strcmp(s->what, "waiting") ? "another process is pulling this model: waiting" : s->what);
        return;
    }
    double fraction = s->done < s->bytes ? (double)s->done / (double)s->bytes : 1;
    int full = (int)(fraction * BAR);
    print_bytes(done, (double)s->done);
    print_bytes(bytes, (double)s->bytes);
    print_bytes(speed, d->bytes_per_s);
    fprintf(stderr, "\r%s %d/%d [%.*s%*s] %3.0f %%  %s of %s", s->what, s->index + 1, s->n_files, full,
            "########################", BAR - full, "", 100 * fraction, done, bytes);
    if (d->bytes_per_s > 0) {
        double left = (double)(s->bytes - (s->done < s->bytes ? s->done : s->bytes)) / d->bytes_per_s;
        fprintf(stderr, "  %s/s", speed);
        if (left < 360000)
            fprintf(stderr, "  %d:%02d:%02d left", (int)left / 3600, (int)left / 60 % 60, (int)left % 60);
    }
    fprintf(stderr, "\x1b[K");
}

/* A weft_pull_fn; arg is a struct display. */
static int show(void *arg, const weft_pull_state *s)
{
    struct display *d = arg;
    uint64_t now = now_ns();
    if (!isatty(STDERR_FILENO)) {
        char bytes[16];
        print_bytes(bytes, (double)s->bytes);
        if (s->file && d->announced != s->index + 1)
            fprintf(stderr, "fetching file %d of %d (%s in all)\n", s->index + 1, s->n_files, bytes);
        if (s->file) d->announced = s->index + 1;
        return interrupted;
    }
    measure(d, s, now);
    if (now - d->drawn_ns < 100000000u) return interrupted;
    d->drawn_ns = now;
    d->shown = 1;
    draw(d, s);
    fflush(stderr);
    return interrupted;
}

static int finish(const char *name, const weft_pull_result *r)
{
    char bytes[16];
    print_bytes(bytes, (double)r->n_bytes);
    fprintf(stderr, "%s: %d file%s, %s, %s\n", name, r->n_files, r->n_files == 1 ? "" : "s", bytes,
            r->n_fetched ? "complete" : "was complete");
    if (r->n_unverified)
        fprintf(stderr, "%d of them: the server gives no SHA-256 to check against (small files have none)\n",
                r->n_unverified);
    printf("%s\n", r->path);
    return EXIT_DONE;
}

int cmd_pull(int argc, char **argv)
{
    const option_spec options[] = {{0}};
    const command_spec spec = {"pull",
                               "OWNER/NAME[:FILE-OR-QUANTIZATION]",
                               "Fetches a model from Hugging Face into the cache and prints its path. Every command "
                               "takes the same name as its MODEL\n"
                               "afterwards. Without a file or quantization: the GGUF with Q4_K_M, else the first there "
                               "is of Q4_K_S, Q4_0, IQ4_XS, "
                               "IQ4_NL,\n"
                               "Q4_1, Q5_K_M, Q5_K_S, Q5_0, Q5_1, Q6_K, Q8_0, Q3_K_M, Q3_K_L, Q3_K_S, Q2_K, BF16, F16, "
                               "F32; of a repository without "
                               "GGUF\n"
                               "files the configuration, tokenizer and safetensors. Files that were begun are "
                               "continued; sizes and SHA-256 are "
                               "checked.\n\n"
                               "Environment: HF_TOKEN (for private and gated models), HF_ENDPOINT (another server), "
                               "WEFT_CACHE (where models are kept;\n"
                               "by default weft in $XDG_CACHE_HOME or ~/.cache), WEFT_PULL_TIMEOUT (seconds without "
                               "data, 30), WEFT_PULL_RETRIES (5),\n"
                               "https_proxy, no_proxy, SSL_CERT_FILE.",
                               "  weft pull Qwen/Qwen2.5-0.5B-Instruct-GGUF\n"
                               "  weft pull Qwen/Qwen2.5-0.5B-Instruct-GGUF:q8_0\n"
                               "  weft run Qwen/Qwen2.5-0.5B-Instruct-GGUF:q8_0 \"Hello\"\n",
                               options,
                               1,
                               1};
    int first, rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    weft_error err = {0};
    weft_pull_result result;
    struct display d = {0};
    weft_pull_params params;
    weft_pull_params_default(&params);
    params.progress = show;
    params.progress_arg = &d;
    struct sigaction action = {0};
    action.sa_handler = on_interrupt;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    weft_status st = weft_pull(argv[first], &params, &result, &err);
    if (d.shown) fprintf(stderr, "\r\x1b[K");
    if (st == WEFT_CANCELLED) fprintf(stderr, "weft pull: stopped; the same command continues where it was\n");
    else if (st) report("pull", &err);
    return st ? EXIT_FAILED : finish(argv[first], &result);
}
