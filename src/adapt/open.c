// SPDX-License-Identifier: Apache-2.0
/* open.c: an adapter from a path: a GGUF file, or the two files of a PEFT folder.
 *
 * Files are read, not mapped: they may be replaced or cut while a server has them (a mapped file that is cut kills the
 * process). What does not begin as an adapter is not read further, and memory that nothing was read into is none
 * yet. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "adapt/parts.h"
#include "base/alloc.h"
#include "base/background.h"
#include "format/safetensors.h"

#define MAX_BYTES ((uint64_t)16 << 30)
#define MAX_CONFIG_BYTES ((uint64_t)16 << 20)
#define MAX_HEADER_BYTES ((uint64_t)64 << 20) /* of GGUF; also what a file may have beside its values */
#define FIRST_BYTES ((uint64_t)64 << 10)
#define READ_BYTES ((uint64_t)128 << 10) /* at once: some ten microseconds */
#define CONFIG "adapter_config.json"     /* the two files of a folder */
#define WEIGHTS "adapter_model.safetensors"

/* A regular file, of which the first n_read bytes are there. */
typedef struct input {
    int fd;
    uint64_t n, n_read;
    int from_disk;        /* some of them were not in memory before */
    unsigned char *bytes; /* [n], aligned as tensor data want */
    char shown[WEFT__NAME_SHOW * 2];
} input;

static void close_input(input *in)
{
    if (in->fd >= 0) close(in->fd);
    weft__free(in->bytes);
}

/* name: in messages. Where it fails, there is nothing to close. */
static weft_status open_input(input *in, const char *path, const char *name, uint64_t max, weft_error *err)
{
    struct stat info;
    weft_status st = WEFT_OK;
    *in = (input){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    weft__name_show_path(in->shown, name);
    if (in->fd < 0)
        return weft_fail(err, errno == ENOENT ? WEFT_NOT_FOUND : WEFT_IO, "%s: %s", in->shown, strerror(errno));
    if (fstat(in->fd, &info)) st = weft_fail(err, WEFT_IO, "%s: %s", in->shown, strerror(errno));
    else if (!S_ISREG(info.st_mode)) st = weft_fail(err, WEFT_UNSUPPORTED, "%s: it is no regular file", in->shown);
    else if (info.st_size == 0) st = weft_fail(err, WEFT_FORMAT, "%s: it is empty", in->shown);
    else if ((uint64_t)info.st_size > max)
        st = weft_fail(err, WEFT_LIMIT, "%s: %lld bytes; at most %llu", in->shown, (long long)info.st_size,
                       (unsigned long long)max);
    else if (!(in->bytes = weft__alloc_aligned(64, (size_t)info.st_size)))
        st = weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to read it", in->shown);
    in->n = (uint64_t)info.st_size;
    if (st) close_input(in);
    return st;
}

/* As read, and notes whether the system had the bytes in memory, since they were read or written before or were asked
 * for in time. Where it does not tell, they count as the disk's. */
static ssize_t read_some(input *in, void *to, size_t n)
{
#ifdef RWF_NOWAIT
    const ssize_t got = preadv2(in->fd, &(struct iovec){to, n}, 1, -1 /* where the file stands */, RWF_NOWAIT);
    if (got >= 0) return got;
#endif
    in->from_disk = 1;
    return read(in->fd, to, n);
}

/* The first n bytes, or all. */
static weft_status read_to(input *in, uint64_t n, weft_error *err)
{
    if (n > in->n) n = in->n;
    while (in->n_read < n) {
        uint64_t left = n - in->n_read;
        ssize_t got = read_some(in, in->bytes + in->n_read, left < READ_BYTES ? (size_t)left : READ_BYTES);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return weft_fail(err, WEFT_IO, "%s: %s", in->shown, strerror(errno));
        if (got == 0) return weft_fail(err, WEFT_IO, "%s: it became shorter while it was read", in->shown);
        in->n_read += (uint64_t)got;
        weft__background_did((uint64_t)got);
    }
    return WEFT_OK;
}

/* What a file of so many bytes of values may have. */
static uint64_t file_bytes(uint64_t max_bytes)
{
    return max_bytes < MAX_BYTES - MAX_HEADER_BYTES ? max_bytes + MAX_HEADER_BYTES : MAX_BYTES;
}

/* Reads on until its keys are there; where they are of no adapter, no further. */
static weft_status check_gguf(weft__adapt *a, input *in, weft_error *err)
{
    for (uint64_t n = FIRST_BYTES;; n *= 4) {
        weft_status st = read_to(in, n, err);
        if (!st) st = weft__adapt_check_gguf(a, in->bytes, (size_t)in->n_read, err);
        if (st != WEFT_FORMAT || in->n_read == in->n || n >= MAX_HEADER_BYTES || memcmp(in->bytes, "GGUF", 4) != 0)
            return st;
    }
}

static weft_status read_file(weft__adapt *a, const char *path, weft_error *err)
{
    input in;
    weft_status st = open_input(&in, path, path, file_bytes(a->max_bytes), err);
    if (st) return st;
    st = check_gguf(a, &in, err);
    if (!st) st = read_to(&in, in.n, err);
    if (!st) st = weft__adapt_read_gguf(a, in.bytes, (size_t)in.n, err);
    a->from_disk = in.from_disk;
    close_input(&in);
    return st;
}

/* The header alone. */
static weft_status check_safetensors(input *in, const char *name, weft_error *err)
{
    weft__safetensors *file = NULL;
    uint64_t n_header = 0;
    weft_status st =
        read_to(in, sizeof n_header + 1, err); /* the parser wants to see the header's first byte as well */
    if (st) return st;
    if (in->n > sizeof n_header) memcpy(&n_header, in->bytes, sizeof n_header);
    if (n_header <= WEFT__SAFETENSORS_HEADER_BYTES) st = read_to(in, sizeof n_header + n_header, err);
    if (!st) st = weft__safetensors_parse(in->bytes, (size_t)in->n, name, &file, err);
    weft__safetensors_close(&file);
    return st;
}

static char *path_of(const char *folder, const char *name)
{
    size_t room = strlen(folder) + strlen(name) + 2;
    char *path = weft__alloc(room);
    if (path) snprintf(path, room, "%s/%s", folder, name);
    return path;
}

static weft_status open_member(input *in, const char *folder, const char *name, uint64_t max, weft_error *err)
{
    char *path = path_of(folder, name);
    if (!path) return weft_fail(err, WEFT_NO_MEMORY, "no memory to read %s", name);
    weft_status st = open_input(in, path, name, max, err);
    weft__free(path);
    return st;
}

/* A writer takes a folder's configuration away before it replaces the weights (write.c): so what was read
 * belongs together if the configuration still has its name. */
static weft_status check_in_place(const input *in, const char *folder, const char *name, weft_error *err)
{
    struct stat now, then;
    char *path = path_of(folder, name);
    if (!path) return weft_fail(err, WEFT_NO_MEMORY, "no memory to read %s", name);
    int same = !stat(path, &now) && !fstat(in->fd, &then) && now.st_dev == then.st_dev && now.st_ino == then.st_ino;
    weft__free(path);
    return same ? WEFT_OK
                : weft_fail(err, WEFT_IO, "%s: the adapter was replaced while it was read; try again", in->shown);
}

/* No weights that are read here: PEFT wrote them as a pickle until 0.7, and does so still when it is told to. */
static weft_status fail_without_weights(weft_status st, const char *folder, weft_error *err)
{
    char *pickle = path_of(folder, "adapter_model.bin");
    int there = pickle && !access(pickle, F_OK);
    weft__free(pickle);
    if (!there) return st;
    return weft_fail(err, WEFT_UNSUPPORTED,
                     "its weights are in adapter_model.bin, a Python pickle, which is not read: loading one runs its "
                     "code; load it with PEFT "
                     "and save it as safetensors: model.save_pretrained(folder, safe_serialization=True)");
}

static weft_status read_weights(weft__adapt *a, const char *path, weft__adapt_peft_config *config,
                                const weft__adapt_names *names, weft_error *err)
{
    static const char name[] = WEIGHTS;
    input in;
    weft_status st = open_member(&in, path, name, file_bytes(a->max_bytes), err);
    if (st) return st == WEFT_NOT_FOUND ? fail_without_weights(st, path, err) : st;
    st = check_safetensors(&in, name, err);
    if (!st) st = read_to(&in, in.n, err);
    if (!st) st = weft__adapt_read_peft(a, config, in.bytes, (size_t)in.n, names, err);
    a->from_disk = in.from_disk;
    close_input(&in);
    return st;
}

static weft_status read_folder(weft__adapt *a, const char *path, const weft__adapt_names *names, weft_error *err)
{
    static const char name[] = CONFIG;
    input config;
    weft__adapt_peft_config *said = NULL;
    weft_status st;
    if (!names)
        return weft_fail(err, WEFT_ARGUMENT,
                         "it is a PEFT folder: its names are those of the base model's folder; give the base, too");
    if ((st = open_member(&config, path, name, MAX_CONFIG_BYTES, err))) return st;
    st = read_to(&config, config.n, err);
    if (!st) st = weft__adapt_peft_config_read((const char *)config.bytes, (size_t)config.n, &said, err);
    if (!st) st = read_weights(a, path, said, names, err);
    weft__adapt_peft_config_free(&said);
    if (!st) st = check_in_place(&config, path, name, err);
    close_input(&config);
    return st;
}

/* Says which adapter it is, once. */
static weft_status fail_with_path(weft_error *err, weft_status st, const char *path)
{
    char shown[WEFT__NAME_SHOW * 2];
    size_t n = strlen(weft__name_show_path(shown, path));
    if (!err || strncmp(err->message, shown, n) != 0 || strncmp(err->message + n, ": ", 2) != 0)
        return weft_fail_within(err, st, "adapter %s", shown);
    const weft_error why = *err;
    return weft_fail(err, st, "adapter %s", why.message);
}

weft_status weft__adapt_open(const char *path, const weft__adapt_names *names, uint64_t max_bytes, weft__adapt **out,
                             weft_error *err)
{
    struct stat info;
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
    } else {
        st = read_file(a, path, err);
    }
    if (!st) {
        *out = a;
        return WEFT_OK;
    }
    weft__adapt_close(&a);
    return fail_with_path(err, st, path);
}

/* The system reads no more at a time than it would by itself, whatever it is asked for: so it is asked for pieces. */
static int ask_for(const char *path, uint64_t max)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return 0;
    const int fits = !fstat(fd, &info) && S_ISREG(info.st_mode) && (uint64_t)info.st_size <= max;
    int asked = fits;
    for (off_t at = 0; asked && at < info.st_size; at += (off_t)READ_BYTES)
        asked = !posix_fadvise(fd, at, (off_t)READ_BYTES, POSIX_FADV_WILLNEED);
    close(fd);
    return asked;
}

int weft__adapt_ask_ahead(const char *path, uint64_t max_bytes)
{
    struct stat info;
    if (stat(path, &info)) return 0;
    if (!S_ISDIR(info.st_mode)) return ask_for(path, file_bytes(max_bytes));
    char *config = path_of(path, CONFIG), *weights = path_of(path, WEIGHTS);
    const int asked = config && weights && ask_for(config, MAX_CONFIG_BYTES) && ask_for(weights, file_bytes(max_bytes));
    weft__free(config);
    weft__free(weights);
    return asked;
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
