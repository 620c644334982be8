/* open.c: an adapter from a path: a GGUF file, or the two files of a PEFT folder.
 *
 * Files are read, not mapped: they may be replaced or cut while a server has them (a mapped file that is cut kills the process). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapt/parts.h"
#include "base/alloc.h"

#define MAX_BYTES ((uint64_t)16 << 30)
#define MAX_CONFIG_BYTES ((uint64_t)16 << 20)

static weft_status read_all(int fd, uint64_t n, void *out, const char *shown, weft_error *err)
{
    uint64_t at = 0;
    while (at < n) {
        ssize_t got = read(fd, (char *)out + at, n - at < (1u << 30) ? (size_t)(n - at) : 1u << 30);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return weft_fail(err, WEFT_IO, "%s: %s", shown, strerror(errno));
        if (got == 0) return weft_fail(err, WEFT_IO, "%s: it became shorter while it was read", shown);
        at += (uint64_t)got;
    }
    return WEFT_OK;
}

/* The bytes of a regular file, aligned as tensor data want; weft__free. */
static weft_status read_file(const char *path, uint64_t max, void **out, size_t *n, weft_error *err)
{
    char shown[WEFT__SHOW * 2];
    struct stat info;
    weft_status st = WEFT_OK;
    weft__show_path(shown, path);
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return weft_fail(err, errno == ENOENT ? WEFT_NOT_FOUND : WEFT_IO, "%s: %s", shown, strerror(errno));
    if (fstat(fd, &info)) st = weft_fail(err, WEFT_IO, "%s: %s", shown, strerror(errno));
    else if (!S_ISREG(info.st_mode)) st = weft_fail(err, WEFT_UNSUPPORTED, "%s: it is no regular file", shown);
    else if (info.st_size == 0) st = weft_fail(err, WEFT_FORMAT, "%s: it is empty", shown);
    else if ((uint64_t)info.st_size > max)
        st = weft_fail(err, WEFT_LIMIT, "%s: %lld bytes; at most %llu", shown, (long long)info.st_size, (unsigned long long)max);
    else if (!(*out = weft__alloc_aligned(64, (size_t)info.st_size)))
        st = weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to read it", shown);
    else st = read_all(fd, (uint64_t)info.st_size, *out, shown, err);
    close(fd);
    *n = (size_t)info.st_size;
    if (!st) return WEFT_OK;
    weft__free(*out);
    *out = NULL;
    return st;
}

static weft_status read_member(const char *folder, const char *name, uint64_t max, void **out, size_t *n, weft_error *err)
{
    size_t room = strlen(folder) + strlen(name) + 2;
    char *path = weft__alloc(room);
    *out = NULL;
    if (!path) return weft_fail(err, WEFT_NO_MEMORY, "no memory to read %s", name);
    snprintf(path, room, "%s/%s", folder, name);
    weft_status st = read_file(path, max, out, n, err);
    weft__free(path);
    return st;
}

static weft_status read_folder(weft__adapt *a, const char *path, const weft__adapt_names *names, weft_error *err)
{
    void *config = NULL, *weights = NULL;
    size_t n_config, n_weights;
    weft_status st;
    if (!names)
        return weft_fail(err, WEFT_ARGUMENT,
                         "it is a PEFT folder: its names are those of the base model's folder; give the base, too");
    if ((st = read_member(path, "adapter_config.json", MAX_CONFIG_BYTES, &config, &n_config, err))) return st;
    st = read_member(path, "adapter_model.safetensors", MAX_BYTES, &weights, &n_weights, err);
    if (!st) st = weft__adapt_read_peft(a, config, n_config, weights, n_weights, names, err);
    weft__free(weights);
    weft__free(config);
    return st;
}

weft_status weft__adapt_open(const char *path, const weft__adapt_names *names, uint64_t max_bytes, weft__adapt **out,
                             weft_error *err)
{
    char shown[WEFT__SHOW * 2];
    struct stat info;
    void *bytes = NULL;
    size_t n;
    weft_status st;
    *out = NULL;
    weft__adapt *a = weft__alloc_zero(1, sizeof *a);
    if (!a || !(a->label = weft__strdup(path))) {
        weft__free(a);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory to open an adapter");
    }
    a->max_bytes = max_bytes;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        a->peft = 1;
        st = read_folder(a, path, names, err);
    } else if (!(st = read_file(path, MAX_BYTES, &bytes, &n, err))) {
        st = weft__adapt_read_gguf(a, bytes, n, err);
        weft__free(bytes);
    }
    if (!st) {
        *out = a;
        return WEFT_OK;
    }
    weft__adapt_close(&a);
    return weft_fail_within(err, st, "adapter %s", weft__show_path(shown, path));
}

void weft__adapt_close(weft__adapt **p)
{
    weft__adapt *a = p ? *p : NULL;
    if (!a) return;
    weft__arena_free(&a->arena);
    weft__free(a->label);
    weft__free(a);
    *p = NULL;
}
