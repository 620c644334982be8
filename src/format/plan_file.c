// SPDX-License-Identifier: Apache-2.0
/* plan_file.c: opens and checks a compiled plan (plan_file.h). One thread until open returns, then read-only. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hash.h"
#include "format/arena.h"
#include "format/plan_parts.h"
#include "mem/mem.h"

#define AGAIN "compile the model again (weft compile)"

enum { CHECK_PIECE = 16 << 20 };

struct weft__plan_file {
    weft_buffer *map;
    weft_buffer nowhere; /* of tensors without bytes */
    weft__gguf *meta;
    weft__tensor_set tensors; /* names in `arena` */
    weft__arena arena;
    weft__plan_file_header header;
    uint64_t data, image; /* where they begin */
    weft__plan_file_summary info;
    char label[WEFT__NAME_SHOW * 2];
};

/* ---- the header ---- */

/* is_old: an earlier version will do. */
static weft_status read_header(weft__plan_file *f, int is_old, weft_error *err)
{
    weft__plan_file_header *h = &f->header;
    uint64_t n = f->map->n_bytes, end;
    if (n < sizeof *h || memcmp(f->map->data, WEFT__PLAN_FILE_MAGIC, sizeof h->magic) != 0)
        return weft_fail(err, WEFT_FORMAT, "%s: is no compiled plan, or only the beginning of one; " AGAIN, f->label);
    memcpy(h, f->map->data, sizeof *h);
    if (h->order != WEFT__PLAN_FILE_ORDER)
        return weft_fail(err, WEFT_UNSUPPORTED, "%s: the plan was compiled on a machine of another byte order; " AGAIN,
                         f->label);
    if (is_old ? h->version > WEFT__PLAN_FILE_VERSION : h->version != WEFT__PLAN_FILE_VERSION)
        return weft_fail(err, WEFT_UNSUPPORTED, "%s: is a plan of version %u, this program reads version %d; " AGAIN,
                         f->label, h->version, WEFT__PLAN_FILE_VERSION);
    if (h->hash != weft__hash(h, offsetof(weft__plan_file_header, hash)))
        return weft_fail(err, WEFT_FORMAT, "%s: the plan is damaged: the checksum of its header differs; " AGAIN,
                         f->label);
    if (!weft__plan_file_places(h, &f->data, &f->image, &end) || end != h->file_bytes)
        return weft_fail(err, WEFT_FORMAT, "%s: the plan is damaged: its sizes do not add up; " AGAIN, f->label);
    if (n != end)
        return weft_fail(err, WEFT_FORMAT, "%s: the plan %s: it has %llu bytes and should have %llu; " AGAIN, f->label,
                         n < end ? "is cut off" : "goes on behind its end", (unsigned long long)n,
                         (unsigned long long)end);
    if (h->meta_hash != weft__hash((const char *)f->map->data + sizeof *h, (size_t)h->meta_bytes))
        return weft_fail(err, WEFT_FORMAT, "%s: the plan is damaged: the checksum of its metadata differs; " AGAIN,
                         f->label);
    return WEFT_OK;
}

/* ---- the tables ---- */

/* What a table says although its checksum is right: this program did not write it. */
static weft_status malformed(const weft__plan_file *f, const char *what, weft_error *err)
{
    return weft_fail(err, WEFT_FORMAT, "%s: the plan is malformed: %s; " AGAIN, f->label, what);
}

/* A printable text of the metadata, copied. */
static weft_status read_text(weft__plan_file *f, const char *key, const char **out, weft_error *err)
{
    weft__gguf_str s;
    weft_status st = weft__gguf_string(f->meta, key, &s, err);
    if (st) return malformed(f, key, err);
    for (size_t i = 0; i < s.len; i++)
        if (s.data[i] < ' ' || s.data[i] > '~') return malformed(f, key, err);
    *out = weft__arena_string(&f->arena, s.data, s.len);
    return *out ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to open it", f->label);
}

static weft_status read_u64s(const weft__plan_file *f, const char *key, const weft__gguf_list **out, weft_error *err)
{
    return weft__gguf_array(f->meta, key, out, err) || (*out)->type != WEFT__GGUF_U64 ? malformed(f, key, err)
                                                                                      : WEFT_OK;
}

static uint64_t u64_at(const weft__gguf_list *list, uint64_t i)
{
    uint64_t value;
    memcpy(&value, list->data + i * sizeof value, sizeof value);
    return value;
}

/* A text that the plan need not have: of a path, which may have any letters; *out is NULL where it is not there. */
static weft_status read_own_text(weft__plan_file *f, const char *key, const char **out, weft_error *err)
{
    weft__gguf_str s;
    *out = NULL;
    if (weft__gguf_string(f->meta, key, &s, NULL)) return WEFT_OK;
    if (s.len < 1 || memchr(s.data, 0, s.len)) return malformed(f, key, err);
    *out = weft__arena_string(&f->arena, s.data, s.len);
    return *out ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to open it", f->label);
}

static weft_status read_origin(weft__plan_file *f, weft_error *err)
{
    weft__plan_file_origin *o = &f->info.origin;
    weft_status st = read_own_text(f, WEFT__PLAN_FILE_SOURCE, &o->path, err);
    if (st || !o->path) return st;
    if (*o->path != '/' || weft__gguf_u64(f->meta, WEFT__PLAN_FILE_SOURCE_BYTES, &o->bytes, NULL) ||
        weft__gguf_u64(f->meta, WEFT__PLAN_FILE_SOURCE_TIME, &o->time_ns, NULL) ||
        weft__gguf_u64(f->meta, WEFT__PLAN_FILE_KEEPS, &o->keep_weights, NULL))
        return malformed(f, WEFT__PLAN_FILE_SOURCE, err);
    return read_own_text(f, WEFT__PLAN_FILE_SOURCE_PRE, &o->pre_tokenizer, err);
}

static weft_status read_image(weft__plan_file *f, weft_error *err)
{
    weft__plan_file_summary *info = &f->info;
    const weft__gguf_list *offsets;
    weft_status st;
    if ((st = read_text(f, WEFT__PLAN_FILE_PROVIDER, &info->provider, err)) ||
        (st = read_text(f, WEFT__PLAN_FILE_MADE_BY, &info->made_by, err)) ||
        (st = read_text(f, WEFT__PLAN_FILE_LAYOUT, &info->image.layout, err)) ||
        (st = read_u64s(f, WEFT__PLAN_FILE_OFFSETS, &offsets, err)))
        return st;
    if (weft__gguf_u64(f->meta, WEFT__PLAN_FILE_WEIGHTS, &info->weights, err))
        return malformed(f, WEFT__PLAN_FILE_WEIGHTS, err);
    if (offsets->n > INT32_MAX) return malformed(f, WEFT__PLAN_FILE_OFFSETS, err);
    uint64_t *copy = weft__arena_array(&f->arena, (size_t)offsets->n, sizeof *copy);
    if (!copy) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to open it", f->label);
    for (uint64_t i = 0; i < offsets->n; i++) copy[i] = u64_at(offsets, i);
    info->image.size = sizeof info->image;
    info->image.n_weights = (int32_t)offsets->n;
    info->image.offset = copy;
    info->image.data = (const char *)f->map->data + f->image;
    info->image.n_bytes = f->header.image_bytes;
    return WEFT_OK;
}

static weft_status read_tensor(weft__plan_file *f, weft__gguf_str name, const weft__gguf_list *numbers, uint64_t at,
                               weft_error *err)
{
    uint64_t n[WEFT__PLAN_FILE_NUMBERS], end;
    char shown[WEFT__NAME_SHOW];
    for (int i = 0; i < WEFT__PLAN_FILE_NUMBERS; i++) n[i] = u64_at(numbers, at + (uint64_t)i);
    weft__name_show(shown, name.data, name.len);
    if (n[0] > UINT32_MAX || n[1] < 1 || n[1] > WEFT__TENSOR_DIMS || name.len < 1 || memchr(name.data, 0, name.len))
        return malformed(f, shown, err);
    weft__tensor_desc t = {
        .dtype = (uint32_t)n[0], .n_dims = (uint32_t)n[1], .d = {n[2], n[3], n[4], n[5]}, .buffer = &f->nowhere};
    for (uint32_t i = t.n_dims; i < WEFT__TENSOR_DIMS; i++)
        if (t.d[i] != 1) return malformed(f, shown, err);
    weft_status st = weft__tensor_measure(t.dtype, t.n_dims, t.d, &t.n_elems, &t.n_bytes, err);
    if (st) return weft_fail_within(err, st, "%s: tensor '%s'", f->label, shown);
    if (n[6] != UINT64_MAX) {
        if (n[6] % WEFT__PLAN_FILE_TENSOR_ALIGN || !weft__checked_add(n[6], t.n_bytes, &end) ||
            end > f->header.data_bytes)
            return malformed(f, shown, err);
        t.buffer = f->map;
        t.offset = f->data + n[6];
    } else if (t.n_bytes > f->nowhere.n_bytes) {
        f->nowhere.n_bytes = t.n_bytes;
    }
    t.name = weft__arena_string(&f->arena, name.data, name.len);
    int added = t.name ? weft__tensor_set_add(&f->tensors, &t, &(uint32_t){0}) : -1;
    if (added < 0) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for the list of tensors", f->label);
    return added ? WEFT_OK : malformed(f, shown, err);
}

static weft_status read_tensors(weft__plan_file *f, weft_error *err)
{
    const weft__gguf_list *names, *numbers;
    weft_status st = read_u64s(f, WEFT__PLAN_FILE_TENSORS, &numbers, err);
    if (st) return st;
    if (weft__gguf_array(f->meta, WEFT__PLAN_FILE_NAMES, &names, err) || names->type != WEFT__GGUF_STRING ||
        numbers->n % WEFT__PLAN_FILE_NUMBERS || numbers->n / WEFT__PLAN_FILE_NUMBERS != names->n)
        return malformed(f, WEFT__PLAN_FILE_NAMES, err);
    for (uint64_t i = 0; i < names->n && !st; i++)
        st = read_tensor(f, weft__gguf_list_string(names, i), numbers, i * WEFT__PLAN_FILE_NUMBERS, err);
    return st;
}

/* ---- the whole ---- */

static weft_status create(const char *name, weft__plan_file **out, weft_error *err)
{
    weft__plan_file *f = *out = weft__alloc_zero(1, sizeof *f);
    if (!f) return weft_fail(err, WEFT_NO_MEMORY, "no memory to open a plan");
    weft__name_show_path(f->label, name);
    f->nowhere = (weft_buffer){.size = sizeof f->nowhere, .domain = WEFT_DOMAIN_MAPPED, .flags = WEFT_BUFFER_READONLY};
    return WEFT_OK;
}

/* for_origin: that alone, of an earlier version, too. */
static weft_status plan_file_read_all(weft__plan_file *f, int for_origin, weft_error *err)
{
    weft_status st = read_header(f, for_origin, err);
    if (!st)
        st = weft__gguf_parse((const char *)f->map->data + sizeof f->header, (size_t)f->header.meta_bytes, f->label,
                              &f->meta, err);
    if (!st && weft__gguf_tensors(f->meta)->n) st = malformed(f, "tensors among its metadata", err);
    if (!st) st = read_origin(f, err);
    if (st || for_origin) return st;
    st = read_image(f, err);
    return st ? st : read_tensors(f, err);
}

weft_status weft__plan_file_open(const char *path, weft__plan_file **out, weft_error *err)
{
    weft_status st = create(path, out, err);
    if (!st) st = weft__mem_map(path, &(*out)->map, err);
    if (!st) st = plan_file_read_all(*out, 0, err);
    if (st) weft__plan_file_close(out);
    else
        (void)weft__mem_advise((*out)->map, (*out)->image, (*out)->header.image_bytes, WEFT__MEM_ADVICE_HUGE,
                               NULL); /* a wish */
    return st;
}

weft_status weft__plan_file_open_origin(const char *path, weft__plan_file **out, weft_error *err)
{
    weft_status st = create(path, out, err);
    if (!st) st = weft__mem_map(path, &(*out)->map, err);
    if (!st) st = plan_file_read_all(*out, 1, err);
    if (st) weft__plan_file_close(out);
    return st;
}

weft_status weft__plan_file_parse(const void *bytes, size_t n, const char *name, weft__plan_file **out, weft_error *err)
{
    weft_status st = create(name, out, err);
    if (!st) st = weft__mem_borrow(bytes, n, WEFT_BUFFER_READONLY, &(*out)->map, err);
    if (!st) st = plan_file_read_all(*out, 0, err);
    if (st) weft__plan_file_close(out);
    return st;
}

void weft__plan_file_close(weft__plan_file **pf)
{
    weft__plan_file *f = pf ? *pf : NULL;
    if (!f) return;
    *pf = NULL;
    weft__tensor_set_free(&f->tensors);
    weft__gguf_close(&f->meta);
    weft__arena_free(&f->arena);
    weft_buffer_release(&f->map);
    weft__free(f);
}

int weft__plan_file_is(const char *path)
{
    char magic[sizeof WEFT__PLAN_FILE_MAGIC - 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return 0;
    ssize_t n = read(fd, magic, sizeof magic);
    close(fd);
    return n == (ssize_t)sizeof magic && !memcmp(magic, WEFT__PLAN_FILE_MAGIC, sizeof magic);
}

weft__gguf *weft__plan_file_meta(const weft__plan_file *f)
{
    return f->meta;
}

const weft__tensor_set *weft__plan_file_tensors(const weft__plan_file *f)
{
    return &f->tensors;
}

const weft__plan_file_summary *weft__plan_file_info(const weft__plan_file *f)
{
    return &f->info;
}

/* ---- checking the weights ---- */

static weft_status check_section(const weft__plan_file *f, uint64_t at, uint64_t n, uint64_t want, const char *what,
                                 weft_progress_fn progress, void *arg, weft_error *err)
{
    weft__hash_state h;
    weft__hash_begin(&h);
    for (uint64_t done = 0, piece; done < n; done += piece) {
        piece = n - done < CHECK_PIECE ? n - done : CHECK_PIECE;
        weft__hash_add(&h, (const char *)f->map->data + at + done, (size_t)piece);
        (void)weft__mem_advise(f->map, at + done, piece, WEFT__MEM_ADVICE_DONTNEED,
                               NULL); /* a wish: it was read once */
        if (progress && progress(arg, "checking", (double)(at + done + piece) / (double)f->map->n_bytes))
            return weft_fail(err, WEFT_CANCELLED, "%s: cancelled while checking", f->label);
    }
    if (weft__hash_end(&h) == want) return WEFT_OK;
    return weft_fail(err, WEFT_FORMAT, "%s: the plan is damaged: the checksum of its %s differs; " AGAIN, f->label,
                     what);
}

weft_status weft__plan_file_check(const weft__plan_file *f, weft_progress_fn progress, void *arg, weft_error *err)
{
    const weft__plan_file_header *h = &f->header;
    weft_status st = check_section(f, f->data, h->data_bytes, h->data_hash, "tensors", progress, arg, err);
    return st ? st : check_section(f, f->image, h->image_bytes, h->image_hash, "packed weights", progress, arg, err);
}
