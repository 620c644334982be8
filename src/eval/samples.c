// SPDX-License-Identifier: Apache-2.0
/* samples.c: files of samples and predictions (samples.h). */
#include "eval/samples.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "eval/score.h"
#include "format/out_file.h"

void weft__eval_head(const weft__eval_task *t, const weft__eval_params *p, weft__strbuf *out)
{
    char model[33] = "";
    weft_engine_stats stats = {.size = sizeof stats};
    weft_model_fingerprint(p->model, model);
    weft_engine_get_stats(p->engine, &stats);
    weft__strbuf_printf(out, "{\"weft\": \"samples 1\", \"task\": ");
    weft__json_write_string(out, t->name, strlen(t->name));
    weft__strbuf_puts(out, ", \"version\": ");
    weft__json_write_string(out, t->version, strlen(t->version));
    weft__strbuf_printf(out, ", \"task_hash\": \"%s\", \"model\": \"%s\", \"adapters\": ", t->data_hash, model);
    weft__json_write_string(out, p->adapters_id, strlen(p->adapters_id));
    weft__strbuf_printf(out,
                        ", \"num_fewshot\": %lld, \"fewshot_seed\": %llu, \"repeats\": %lld, \"seed\": %llu, "
                        "\"max_tokens\": %lld, \"temperature\": %.9g, \"chat\": %s, \"multiturn\": %s, \"bos\": %s, "
                        "\"n_ctx\": %d, \"system\": ",
                        (long long)t->n_fewshot, (unsigned long long)p->fewshot_seed, (long long)t->repeats,
                        (unsigned long long)p->seed, (long long)t->generation.max_tokens, t->generation.temperature,
                        p->style.chat ? "true" : "false", p->style.multiturn ? "true" : "false",
                        p->no_bos ? "false" : "true", stats.n_ctx);
    if (p->style.system) weft__json_write_string(out, p->style.system, strlen(p->style.system));
    else weft__strbuf_puts(out, "null");
    weft__strbuf_puts(out, "}\n");
}

/* ---- predictions ---- */

static const char *find(const char *s, size_t n, const char *word)
{
    return memmem(s, n, word, strlen(word));
}

const char *weft__eval_patch_of(const char *s, size_t n, size_t *n_patch)
{
    static const char *const begins[] = {"<patch>\n", "<patch>", "```diff\n", "```patch\n"};
    static const char *const ends[] = {"</patch>", "</patch>", "```", "```"};
    for (int i = 0; i < 4; i++) {
        const char *from = find(s, n, begins[i]);
        if (!from) continue;
        from += strlen(begins[i]);
        const char *end = find(from, n - (size_t)(from - s), ends[i]);
        *n_patch = end ? (size_t)(end - from) : n - (size_t)(from - s);
        return from;
    }
    *n_patch = n;
    return s;
}

static void put_doc_member(weft__strbuf *out, const char *key, const weft__json *v)
{
    weft__strbuf_printf(out, "\"%s\": ", key);
    weft__json_write(out, v, WEFT__JSON_SPACED);
}

static void predict(weft__eval_samples *s, const weft__json *sample)
{
    const weft__json *responses = weft__json_get(sample, "resps");
    weft__strbuf *out = &s->predictions;
    int64_t at = 0;
    weft__json_int(weft__json_get(sample, "doc_id"), &at);
    const weft__json *doc = (size_t)at < s->task->docs.n ? s->task->docs.items[at] : NULL;
    for (size_t i = 0; i < weft__json_size(responses); i++) {
        const char *text = "", *patch;
        size_t n = 0;
        weft__json_string(weft__json_at(responses, i), &text, &n);
        weft__strbuf_puts(out, "{");
        if (s->task->predictions == WEFT__EVAL_COMPLETIONS) {
            put_doc_member(out, "task_id", weft__json_get(doc, "task_id"));
            weft__strbuf_puts(out, ", \"completion\": ");
            weft__json_write_string(out, text, n);
        } else {
            put_doc_member(out, "instance_id", weft__json_get(doc, "instance_id"));
            weft__strbuf_puts(out, ", \"model_name_or_path\": ");
            weft__json_write_string(out, s->params->label, strlen(s->params->label));
            weft__strbuf_puts(out, ", \"model_patch\": ");
            patch = weft__eval_patch_of(text, n, &n);
            weft__json_write_string(out, patch, n);
        }
        weft__strbuf_puts(out, "}\n");
    }
}

/* ---- samples ---- */

static weft_status use_line(weft__eval_samples *s, const char *line, size_t n, weft__eval_report *report,
                            weft_error *err)
{
    weft__json *sample = NULL;
    weft_error why = {0};
    char hash[17];
    const size_t at = report->n;
    weft_status st = weft__json_parse(line, n, &sample, &why);
    if (!st && at >= s->task->docs.n) st = weft_fail(&why, WEFT_FORMAT, "there are no more documents");
    if (!st) weft__eval_doc_hash(s->task->docs.items[at], hash);
    if (!st && !weft__json_is(weft__json_get(sample, "doc_hash"), hash))
        st = weft_fail(&why, WEFT_FORMAT, "it is of another document");
    if (!st) st = weft__eval_report_add(report, sample, 0, &why);
    if (!st && s->params->predictions) predict(s, sample);
    if (!st && s->predictions.failed) st = weft_fail(&why, WEFT_NO_MEMORY, "no memory for predictions");
    weft__json_free(&sample);
    return st ? weft_fail(err, st, "sample %zu: %s", at + 1, why.message) : WEFT_OK;
}

/* Adds the whole lines of an earlier run; *kept: the bytes of them. */
static weft_status take_over(weft__eval_samples *s, const char *head, weft__eval_report *report, size_t *kept,
                             weft_error *err)
{
    char *text = NULL;
    const char *path = s->params->samples;
    size_t n = 0, n_head = strlen(head);
    const size_t most = s->params->limit ? s->params->limit : SIZE_MAX;
    weft_error why = {0};
    weft_status st = weft__eval_read_file(path, &text, &n, err);
    if (st) return st;
    if (n < n_head || memcmp(text, head, n_head)) {
        weft__free(text);
        return weft_fail(err, WEFT_EXISTS,
                         "%s: holds samples of another run, or something else; give another file, or remove it", path);
    }
    *kept = n_head;
    for (const char *end; !st && report->n < most && (end = memchr(text + *kept, '\n', n - *kept));
         *kept = (size_t)(end - text) + 1) {
        st = use_line(s, text + *kept, (size_t)(end - (text + *kept)), report, &why);
        if (st) weft_fail(err, st, "%s: %s; remove the file to begin anew", path, why.message);
    }
    report->n_resumed = report->n;
    weft__free(text);
    return st;
}

weft_status weft__eval_samples_open(weft__eval_samples *s, const weft__eval_params *params, const weft__eval_task *task,
                                    const char *head, weft__eval_report *report, weft_error *err)
{
    struct stat is;
    size_t kept = 0;
    weft_status st = WEFT_OK;
    *s = (weft__eval_samples){.task = task, .params = params};
    if (!params->samples) return WEFT_OK;
    const int is_file = !stat(params->samples, &is) && S_ISREG(is.st_mode);
    if (is_file && is.st_size > 0) st = take_over(s, head, report, &kept, err);
    const int more = !params->limit || report->n < params->limit; /* what is beyond a limit stays */
    if (!st && kept && more && truncate(params->samples, (off_t)kept))
        st = weft_fail(err, WEFT_IO, "%s: %s", params->samples, strerror(errno));
    if (st) return st;
    s->lines = weft__out_file_grow(params->samples, kept > 0, err);
    if (!s->lines) return err ? err->status : WEFT_IO;
    if (!kept && (fputs(head, s->lines) == EOF || fflush(s->lines)))
        return weft_fail(err, WEFT_IO, "%s: %s", params->samples, strerror(errno));
    return WEFT_OK;
}

weft_status weft__eval_samples_put(weft__eval_samples *s, weft__strbuf *line, weft__eval_report *report,
                                   weft_error *err)
{
    weft_status st = use_line(s, line->data, line->len, report, err);
    weft__strbuf_puts(line, "\n");
    if (st || !s->lines) return st;
    if (line->failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a line of samples");
    if (fwrite(line->data, 1, line->len, s->lines) != line->len || fflush(s->lines))
        return weft_fail(err, WEFT_IO, "%s: %s", s->params->samples, strerror(errno));
    return WEFT_OK;
}

weft_status weft__eval_samples_close(weft__eval_samples *s, int complete, weft_error *err)
{
    weft_status st = WEFT_OK;
    if (s->lines && fclose(s->lines)) st = weft_fail(err, WEFT_IO, "%s: %s", s->params->samples, strerror(errno));
    if (!st && complete && s->params && s->params->predictions)
        st = weft__out_file_put(s->params->predictions, s->predictions.data ? s->predictions.data : "",
                                s->predictions.len, err);
    weft__strbuf_free(&s->predictions);
    s->lines = NULL;
    return st;
}
