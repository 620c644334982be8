// SPDX-License-Identifier: Apache-2.0
/* A witness log of anybody's bytes: entries, hashes and checkpoints, each with its length in front (two bytes): whoever
 * looks at it, or opens it, has findings within it or is told what is wrong. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "learn/witness.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static char dir[64];

static void remove_all(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    if (system(command)) return;
}

static void save(const char *name, const unsigned char *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/log/%s", dir, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n) abort();
    close(fd);
}

static void make_dir(void)
{
    weft__learn_witness *w;
    snprintf(dir, sizeof dir, "/tmp/weft-fuzz-log-XXXXXX");
    if (!mkdtemp(dir)) abort();
    atexit(remove_all);
    if (weft__learn_witness_open(dir, WEFT__LEARN_SYNC_NONE, &w, NULL)) abort(); /* with a key */
    weft__learn_witness_close(&w);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    static const char *const names[] = {"entries.jsonl", "hashes", "checkpoints"};
    weft__learn_findings f;
    weft__learn_witness *w;
    weft__strbuf out = {0};
    weft_error err = {0};
    if (!*dir) make_dir();
    for (int i = 0; i < 3; i++) {
        size_t some = n < 2 ? 0 : (size_t)data[0] | (size_t)data[1] << 8;
        const size_t head = n < 2 ? n : 2;
        data += head;
        n -= head;
        if (some > n || i == 2) some = n;
        save(names[i], data, some);
        data += some;
        n -= some;
    }
    weft_status st = weft__learn_witness_verify(dir, NULL, NULL, 0, &f, &err);
    if (f.last_bad < f.first_bad || (!st && (f.first_bad >= 0 || f.n_signed > f.n_entries))) abort();
    if (st && !*err.message) abort();
    weft__learn_witness_prove(dir, 0, NULL, &out, NULL);
    weft__learn_witness_prove(dir, 0, "cmpl-1", &out, NULL);
    weft__strbuf_free(&out);
    if (!weft__learn_witness_open(dir, WEFT__LEARN_SYNC_NONE, &w, NULL)) {
        if (weft__learn_witness_append(w, &(weft__learn_entry){"{}", 2}, 1, NULL)) abort();
        weft__learn_witness_close(&w);
        if (weft__learn_witness_verify(dir, NULL, NULL, 0, &f, NULL)) abort(); /* what was opened is whole */
    }
    return 0;
}
