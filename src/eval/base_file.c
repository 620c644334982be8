// SPDX-License-Identifier: Apache-2.0
/* base_file.c: reading base files (base_file.h). */
#include "eval/base_file.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/divergence.h"

static const char MAGIC[8] = {'_', 'l', 'o', 'g', 'i', 't', 's', '_'};

/* Log-probabilities end at 0; what rounding adds stays far below this. */
static const float ABOVE_ONE = 0.01f;

static weft_status read_exactly(weft__eval_base *b, void *out, size_t size, size_t n, weft_error *err)
{
    if (fread(out, size, n, b->f) == n) return WEFT_OK;
    if (ferror(b->f)) return weft_fail(err, WEFT_IO, "%s: %s", b->path, strerror(errno));
    return weft_fail(err, WEFT_FORMAT, "%s: the file ends early", b->path);
}

/* Whether the file is as long as its head says, so that nothing is allocated for what is not there. */
static weft_status check_size(weft__eval_base *b, weft_error *err)
{
    int64_t scored = (int64_t)b->n_chunks * (b->n_ctx - 1 - b->n_ctx / 2); /* below 2^31 */
    int64_t at = ftello(b->f),
            needed = (int64_t)b->n_ctx * b->n_chunks * 4 + scored * weft__eval_record_size(b->n_vocab) * 2;
    if (at < 0 || fseeko(b->f, 0, SEEK_END)) return weft_fail(err, WEFT_IO, "%s: %s", b->path, strerror(errno));
    int64_t end = ftello(b->f);
    if (fseeko(b->f, at, SEEK_SET)) return weft_fail(err, WEFT_IO, "%s: %s", b->path, strerror(errno));
    if (end - at < needed) return weft_fail(err, WEFT_FORMAT, "%s: the file ends early", b->path);
    return WEFT_OK;
}

weft_status weft__eval_base_read(weft__eval_base *b, FILE *f, const char *path, int32_t n_vocab, weft_error *err)
{
    char magic[sizeof MAGIC];
    int32_t head[3];
    weft_status st;
    *b = (weft__eval_base){.f = f, .path = path, .n_vocab = n_vocab};
    if ((st = read_exactly(b, magic, 1, sizeof magic, err))) return st;
    if (memcmp(magic, MAGIC, sizeof magic))
        return weft_fail(err, WEFT_FORMAT, "%s: not a base file (--kl-base writes one)", path);
    if ((st = read_exactly(b, head, sizeof *head, 3, err))) return st;
    if (head[0] < 4 || head[0] > 1 << 24 || head[2] < 1 || head[2] > INT32_MAX / head[0])
        return weft_fail(err, WEFT_FORMAT, "%s: %d chunks of %d tokens", path, head[2], head[0]);
    if (head[1] != n_vocab)
        return weft_fail(err, WEFT_ARGUMENT, "%s: made with a vocabulary of %d; this model has %d", path, head[1],
                         n_vocab);
    b->n_ctx = head[0];
    b->n_chunks = head[2];
    if ((st = check_size(b, err))) return st;
    size_t n = (size_t)b->n_ctx * (size_t)b->n_chunks;
    if (!(b->tokens = weft__alloc_array(n, sizeof *b->tokens)))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for %zu tokens", n);
    if ((st = read_exactly(b, b->tokens, sizeof *b->tokens, n, err))) return st;
    for (size_t i = 0; i < n; i++)
        if (b->tokens[i] < 0 || b->tokens[i] >= n_vocab)
            return weft_fail(err, WEFT_FORMAT, "%s: token %d is not in the vocabulary", path, b->tokens[i]);
    return WEFT_OK;
}

weft_status weft__eval_base_open(weft__eval_base *b, const char *path, int32_t n_vocab, weft_error *err)
{
    FILE *f = fopen(path, "rb");
    if (!f) return weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno));
    return weft__eval_base_read(b, f, path, n_vocab, err);
}

weft_status weft__eval_base_next(weft__eval_base *b, uint16_t *record, weft_error *err)
{
    float scale, min;
    weft_status st = read_exactly(b, record, sizeof *record, (size_t)weft__eval_record_size(b->n_vocab), err);
    if (st) return st;
    memcpy(&scale, record, sizeof scale);
    memcpy(&min, record + 2, sizeof min);
    if (!(scale >= 0) || !isfinite(min) || !(scale * 65535.0f + min <= ABOVE_ONE))
        return weft_fail(err, WEFT_FORMAT,
                         "%s: record %lld holds no probabilities (scale %g, least %g): write the file again", b->path,
                         (long long)b->n_read, (double)scale, (double)min);
    b->n_read++;
    return WEFT_OK;
}

void weft__eval_base_close(weft__eval_base *b)
{
    if (b->f) fclose(b->f);
    weft__free(b->tokens);
    *b = (weft__eval_base){0};
}

weft_status weft__eval_base_begin(weft__out_file *o, const char *path, int32_t n_ctx, int32_t n_vocab, int32_t n_chunks,
                                  const int32_t *tokens, weft_error *err)
{
    const int32_t head[3] = {n_ctx, n_vocab, n_chunks};
    const size_t n = (size_t)n_ctx * (size_t)n_chunks;
    weft_status st = weft__out_file_open(o, path, err);
    if (st) return st;
    st = weft__out_file_write(o, MAGIC, sizeof MAGIC, err);
    if (!st) st = weft__out_file_write(o, head, sizeof head, err);
    if (!st) st = weft__out_file_write(o, tokens, n * sizeof *tokens, err);
    if (st) weft__out_file_close(o);
    return st;
}
