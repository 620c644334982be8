// SPDX-License-Identifier: Apache-2.0
/* faults.c: see faults.h. The handler runs on the thread that read, and calls only what a handler may: no memory is
 * asked for, and files are read by their descriptors. Threads that share a product fault together, so each has its own
 * line. */
#include "faults.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "format/out_file.h"
#include "options.h"
#include "tty.h"

/* What a line of /proc/self/maps needs: "7f1c2a000000-7f1c4f114000 r--s 00000000 fe:00 9977859    /path". */
enum { LINE = PATH_MAX + 128 };

/* The hexadecimal number at *s, which then stands behind it. */
static uintptr_t number(const char **s)
{
    uintptr_t n = 0;
    for (;; ++*s) {
        const char c = **s;
        if (c >= '0' && c <= '9') n = n << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f') n = n << 4 | (uintptr_t)(c - 'a' + 10);
        else return n;
    }
}

/* The path in a line whose mapping holds `at`; else NULL. */
static char *path_of(const char *line, uintptr_t at)
{
    const char *s = line;
    const uintptr_t first = number(&s);
    if (*s++ != '-') return NULL;
    const uintptr_t last = number(&s);
    return at >= first && at < last ? strchr(s, '/') : NULL;
}

/* The file that is mapped at `at`, in `line`, or NULL. */
static char *mapped_file(uintptr_t at, char line[LINE])
{
    char piece[4096], *path = NULL;
    size_t n = 0;
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t got; fd >= 0 && !path && (got = read(fd, piece, sizeof piece)) > 0;)
        for (ssize_t i = 0; i < got && !path; i++) {
            if (piece[i] != '\n') {
                if (n + 1 < LINE) line[n++] = piece[i];
                continue;
            }
            line[n] = 0;
            n = 0;
            path = path_of(line, at);
        }
    if (fd >= 0) close(fd);
    return path;
}

static void faults_put(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) return; /* there is no one left to tell */
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    char line[LINE], *path = info->si_code == BUS_ADRERR ? mapped_file((uintptr_t)info->si_addr, line) : NULL;
    (void)context;
    if (!path) {
        signal(signal_number, SIG_DFL); /* returning reads once more, and ends the program */
        return;
    }
    while (atomic_flag_test_and_set(&said)) pause(); /* all threads read the file; one says so, and ends the program */
    weft__out_file_abandon_all();
    tty_give_back();
    for (char *c = path; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 127) *c = '?';
    faults_put("\nweft: ");
    faults_put(path);
    faults_put(": cannot be read any more: it was made shorter while it was in use, or its disk failed; restore the "
               "file and start again\n");
    _exit(EXIT_FAILED);
}

void faults_explain(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}
