// SPDX-License-Identifier: Apache-2.0
/* curve.c: see curve.h: the points and their lines. The picture is drawn in curve_svg.c. */
#include "train/curve.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "format/out_file.h"
#include "mem/mem.h"

static weft_status curve_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the loss curve");
}

static weft_status curve_put(weft__curve *c, const weft__curve_point *p, weft_error *err)
{
    if (!weft__grow(&c->points, &c->capacity, c->n + 1, sizeof *c->points)) return curve_no_memory(err);
    c->points[c->n++] = *p;
    return WEFT_OK;
}

/* ---- lines ---- */

static void put_number(weft__strbuf *t, const char *name, double v)
{
    if (isnan(v)) return;
    weft__strbuf_printf(t, ", \"%s\": ", name);
    weft__json_write_double(t, v);
}

static void put_line(weft__strbuf *t, const weft__curve_point *p)
{
    weft__strbuf_printf(t, "{\"step\": %lld, \"tokens\": %lld", (long long)p->step, (long long)p->tokens);
    put_number(t, "loss", p->loss);
    put_number(t, "heldout", p->heldout);
    put_number(t, "better", p->better);
    put_number(t, "heldout_better", p->heldout_better);
    put_number(t, "chosen", p->chosen);
    put_number(t, "rejected", p->rejected);
    put_number(t, "anchor", p->anchor);
    put_number(t, "reward", p->reward);
    put_number(t, "heldout_reward", p->heldout_reward);
    put_number(t, "apart", p->apart);
    put_number(t, "lr", p->lr);
    put_number(t, "grad_norm", p->grad_norm);
    put_number(t, "answers", p->answers);
    put_number(t, "keep", p->keep);
    put_number(t, "seconds", p->seconds);
    weft__strbuf_puts(t, "}\n");
}

static double number_of(const weft__json *v, const char *name)
{
    double d = NAN;
    weft__json_double(weft__json_get(v, name), &d);
    return d;
}

/* *ok: line[0..n) is a point. */
static weft_status read_line(const char *line, size_t n, weft__curve_point *p, int *ok, weft_error *err)
{
    weft__json *v = NULL;
    *ok = 0;
    if (weft__json_parse(line, n, &v, NULL) == WEFT_NO_MEMORY) return curve_no_memory(err);
    *ok =
        weft__json_int(weft__json_get(v, "step"), &p->step) && weft__json_int(weft__json_get(v, "tokens"), &p->tokens);
    p->loss = number_of(v, "loss");
    p->heldout = number_of(v, "heldout");
    p->better = number_of(v, "better");
    p->heldout_better = number_of(v, "heldout_better");
    p->chosen = number_of(v, "chosen");
    p->rejected = number_of(v, "rejected");
    p->anchor = number_of(v, "anchor");
    p->reward = number_of(v, "reward");
    p->heldout_reward = number_of(v, "heldout_reward");
    p->apart = number_of(v, "apart");
    p->lr = number_of(v, "lr");
    p->grad_norm = number_of(v, "grad_norm");
    p->seconds = number_of(v, "seconds");
    p->answers = number_of(v, "answers");
    p->keep = number_of(v, "keep");
    weft__json_free(&v);
    return WEFT_OK;
}

static weft_status take_over(weft__curve *c, int64_t step, weft_error *err)
{
    weft_buffer *file = NULL;
    weft_status st = weft__mem_map(c->lines_path, &file, err);
    if (st == WEFT_NOT_FOUND || st == WEFT_FORMAT) return WEFT_OK; /* none, or empty: the curve begins here */
    if (st) return st;
    const char *at = file->data, *end = at + file->n_bytes, *nl;
    for (int ok = 1; !st && ok && at < end && (nl = memchr(at, '\n', (size_t)(end - at))); at = nl + 1) {
        weft__curve_point p;
        st = read_line(at, (size_t)(nl - at), &p, &ok, err);
        if (!st && ok && p.step > step) break;
        if (!st && ok) st = curve_put(c, &p, err);
    }
    weft_buffer_release(&file);
    return st;
}

/* Writes the points that are there as a new file, and opens it for more. */
static weft_status begin_lines(weft__curve *c, weft_error *err)
{
    weft__out_file out;
    weft__strbuf text = {0};
    weft_status st = weft__out_file_open(&out, c->lines_path, err);
    if (st) return st;
    for (size_t i = 0; i < c->n; i++) put_line(&text, &c->points[i]);
    st = text.failed ? curve_no_memory(err) : WEFT_OK;
    if (!st && text.len) st = weft__out_file_write(&out, text.data, text.len, err);
    if (!st) st = weft__out_file_commit(&out, err);
    weft__out_file_close(&out);
    weft__strbuf_free(&text);
    if (st) return st;
    weft_error why = {0};
    if (!(c->lines = weft__out_file_grow(c->lines_path, 1, &why)))
        st = weft_fail(err, (weft_status)why.status, "%s", why.message);
    return st;
}

weft_status weft__curve_open(weft__curve *c, const char *lines_path, const char *picture_path, const char *title,
                             int64_t step, weft_error *err)
{
    c->lines_path = weft__strdup(lines_path);
    c->picture_path = weft__strdup(picture_path);
    c->title = weft__strdup(title);
    weft_status st = c->lines_path && c->picture_path && c->title ? WEFT_OK : curve_no_memory(err);
    if (!st && step) st = take_over(c, step, err);
    return st ? st : begin_lines(c, err);
}

weft_status weft__curve_add(weft__curve *c, const weft__curve_point *p, weft_error *err)
{
    weft__strbuf line = {0};
    weft_status st = curve_put(c, p, err);
    if (st) return st;
    put_line(&line, p);
    if (line.failed) st = curve_no_memory(err);
    else if (fwrite(line.data, 1, line.len, c->lines) != line.len || fflush(c->lines))
        st = weft_fail(err, WEFT_IO, "%s: %s", c->lines_path, strerror(errno));
    weft__strbuf_free(&line);
    return st;
}

void weft__curve_close(weft__curve *c)
{
    if (c->lines) fclose(c->lines);
    weft__free(c->title);
    weft__free(c->picture_path);
    weft__free(c->lines_path);
    weft__free(c->points);
    *c = (weft__curve){0};
}
