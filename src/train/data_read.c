// SPDX-License-Identifier: Apache-2.0
/* data_read.c: files to documents, documents to segments (data.h). */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "mem/mem.h"
#include "train/data_parts.h"
#include "train/text_file.h"

static weft_status data_read_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for training data");
}

/* ---- documents: d->all from `from` on is new ---- */

static void learn_everything(weft__dataset *d, size_t from)
{
    if (d->all.ids.n > from) memset(d->all.learn + from, 1, d->all.ids.n - from);
}

/* A text: cut into segments that share one token, so that each is predicted once. */
static weft_status take_text(weft__dataset *d, size_t from, weft_error *err)
{
    size_t n_ctx = (size_t)d->options.n_ctx;
    weft_status st = WEFT_OK;
    d->counts.n_documents++;
    for (size_t at = from; !st && at + 1 < d->all.ids.n; at += n_ctx) {
        size_t left = d->all.ids.n - at;
        st = weft__dataset_put_segment(d, at, left < n_ctx + 1 ? left : n_ctx + 1, err);
    }
    return st;
}

/* Tokens of a conversation that teach something: a row predicts the one behind it. */
static size_t room_of(const weft__dataset *d)
{
    return (size_t)d->options.n_ctx + 1;
}

/* A conversation: what does not fit is left out. */
static weft_status take_conversation(weft__dataset *d, size_t from, weft_error *err)
{
    size_t n = d->all.ids.n - from, room = room_of(d);
    if (n > room) {
        n = room;
        d->all.ids.n = from + room;
        d->counts.n_cut++;
    }
    return weft__dataset_put_segment(d, from, n, err);
}

/* What the model sees and what it learns of two segments is the same to the last token. */
static int same_segments(const weft__dataset *d, const weft__dataset_segment *a, const weft__dataset_segment *b)
{
    const size_t n = (size_t)a->n_rows + 1;
    return a->n_rows == b->n_rows &&
           !memcmp(d->all.ids.data + a->at, d->all.ids.data + b->at, n * sizeof *d->all.ids.data) &&
           !memcmp(d->all.learn + a->at, d->all.learn + b->at, n);
}

/* A pair from whose texts something can be learned: answers that are the same, or became so when they lost their ends,
 * have no margin. */
static int prefers(const weft__dataset *d, const weft__dataset_segment *pair)
{
    return pair[0].n_rows && pair[1].n_rows && !same_segments(d, &pair[0], &pair[1]);
}

/* Both texts of a pair, or neither. */
static weft_status take_pair(weft__dataset *d, const weft__train_record *record, weft_error *err)
{
    size_t n_segments = d->n_segments, from = d->all.ids.n;
    weft__dataset_totals counts = d->counts;
    weft_status st = WEFT_OK;
    for (int rejected = 0; !st && rejected < 2; rejected++) {
        size_t at = d->all.ids.n;
        st = weft__train_render(d->renderer, record, rejected, room_of(d), &d->all, err);
        if (!st) st = take_conversation(d, at, err);
    }
    if (st) return st;
    d->counts.n_cut = counts.n_cut + (d->counts.n_cut > counts.n_cut); /* of a record, not of each of its texts */
    if (!prefers(d, &d->segments[n_segments])) {
        int64_t n_cut = d->counts.n_cut;
        d->n_segments = n_segments;
        d->all.ids.n = from;
        d->counts = counts;
        d->counts.n_cut = n_cut;
        d->counts.n_dropped++;
    }
    return WEFT_OK;
}

static weft_status take_embedded(weft__dataset *d, const weft__json *text, int *cut, int64_t *rows, weft_error *err)
{
    const char *s;
    size_t n, from = d->all.ids.n, most = (size_t)d->options.n_ctx;
    if (!text || !weft__json_string(text, &s, &n)) return WEFT_OK;
    weft_status st = weft__train_render_embedded(d->renderer, s, n, &d->all, err);
    if (st) return st;
    if (d->all.ids.n == from) return weft_fail(err, WEFT_FORMAT, "a text of the record has no tokens");
    if (d->all.ids.n - from > most) {
        d->all.ids.n = from + most;
        *cut = 1;
    }
    *rows += (int64_t)(d->all.ids.n - from);
    return weft__dataset_put_segment(d, from, d->all.ids.n - from, err);
}

/* All texts of a record: its query, what belongs to it, what does not. A batch holds all of them. */
static weft_status take_contrast(weft__dataset *d, const weft__train_record *r, weft_error *err)
{
    const weft__json *others = r->rejected;
    const int one = others && weft__json_kind_of(others) == WEFT__JSON_STRING;
    int cut = 0;
    int64_t rows = 0;
    if (!weft__grow(&d->groups, &d->groups_capacity, d->n_groups + 1, sizeof *d->groups))
        return data_read_no_memory(err);
    d->groups[d->n_groups++] = d->n_segments;
    d->counts.n_documents++;
    weft_status st = take_embedded(d, r->prompt, &cut, &rows, err);
    if (!st) st = take_embedded(d, r->answer, &cut, &rows, err);
    if (!st && one) st = take_embedded(d, others, &cut, &rows, err);
    for (size_t i = 0; !st && !one && i < weft__json_size(others); i++)
        st = take_embedded(d, weft__json_at(others, i), &cut, &rows, err);
    d->counts.n_cut += cut;
    if (!st && rows > d->options.max_rows)
        return weft_fail(err, WEFT_ARGUMENT,
                         "the record's texts have %lld tokens together, more than a batch of %d (-b) holds",
                         (long long)rows, d->options.max_rows);
    if (rows > d->counts.n_largest) d->counts.n_largest = rows;
    return st;
}

static weft_status take_record(weft__dataset *d, const weft__train_record *record, weft_error *err)
{
    size_t from = d->all.ids.n;
    if ((record->kind == WEFT__TRAIN_RECORD_PAIR) != (d->options.pairs != 0))
        return weft_fail(err, WEFT_FORMAT, "the record is a %s; %s", weft__train_record_name(record->kind),
                         d->options.pairs ? "pairs are wanted: {\"prompt\", \"chosen\", \"rejected\"}"
                                          : "pairs are for preference training alone");
    if ((record->kind == WEFT__TRAIN_RECORD_CONTRAST) != (d->options.contrasts != 0))
        return weft_fail(err, WEFT_FORMAT, "the record is a %s; %s", weft__train_record_name(record->kind),
                         d->options.contrasts ? "texts to tell apart are wanted: {\"query\", \"positive\", "
                                                "\"negatives\"}"
                                              : "texts to tell apart are for --loss infonce alone");
    d->record_weight = (float)record->weight;
    d->record_reward = (float)record->reward;
    if (d->options.rewards && isnan(record->reward))
        return weft_fail(err, WEFT_FORMAT,
                         "the record has no \"reward\", and this loss learns from how good answers were");
    if (d->options.rewards && record->reward < d->options.least) {
        d->counts.n_documents++;
        d->counts.n_filtered++;
        return WEFT_OK;
    }
    d->counts.n_empty += weft__train_says_nothing(record);
    if (record->kind == WEFT__TRAIN_RECORD_CONTRAST) return take_contrast(d, record, err);
    if (record->kind == WEFT__TRAIN_RECORD_PAIR) {
        d->counts.n_documents++;
        return take_pair(d, record, err);
    }
    weft_status st = weft__train_render(d->renderer, record, 0, room_of(d), &d->all, err);
    if (st) return st;
    if (d->options.learn_all) learn_everything(d, from);
    if (record->kind == WEFT__TRAIN_RECORD_TEXT) return take_text(d, from, err);
    d->counts.n_documents++;
    return take_conversation(d, from, err);
}

/* ---- the forms ---- */

static int is_blank(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && (s[i] == ' ' || s[i] == '\t')) i++;
    return i == n;
}

/* One value, or a list of them; frees it. */
static weft_status read_values(weft__dataset *d, const char *name, weft__json **root, weft_error *err)
{
    weft__train_record record;
    weft_status st = WEFT_OK;
    const int many = weft__json_kind_of(*root) == WEFT__JSON_ARRAY && !weft__train_is_conversation(*root);
    const size_t n = many ? weft__json_size(*root) : 1;
    for (size_t i = 0; !st && i < n; i++) {
        weft__json *one = many ? weft__json_copy(weft__json_at(*root, i)) : *root;
        if (!many) *root = NULL;
        st = one ? weft__train_record_of(&one, &record, err) : data_read_no_memory(err);
        if (!st) {
            st = take_record(d, &record, err);
            weft__train_record_free(&record);
        }
        if (st && many) weft_fail_within(err, st, "%s: record %zu", name, i + 1);
        else if (st) weft_fail_within(err, st, "%s", name);
    }
    weft__json_free(root);
    return st;
}

/* The first line that is not blank, where it is a JSON value by itself and there is more; else NULL. */
static weft__json *first_line(const char *s, size_t n)
{
    weft__json *v = NULL;
    const char *end = s + n, *nl;
    for (; s < end && (nl = memchr(s, '\n', (size_t)(end - s))) && is_blank(s, (size_t)(nl - s)); s = nl + 1) continue;
    nl = s < end ? memchr(s, '\n', (size_t)(end - s)) : NULL;
    if (nl) weft__json_parse(s, (size_t)(nl - s), &v, NULL);
    return v;
}

static int begins_line(const char *s, size_t n)
{
    weft__json *v = first_line(s, n);
    const int is = v != NULL;
    weft__json_free(&v);
    return is;
}

/* Is it one JSON value over several lines, as editors write a list, and as chats were saved once? It is parsed then. */
static weft__json *one_value(const char *s, size_t n)
{
    weft__json *v = NULL;
    size_t i = 0;
    while (i < n && s[i] && strchr(" \t\r\n", s[i])) i++;
    if (i < n && (s[i] == '[' || s[i] == '{') && memchr(s + i, '\n', n - i) && !begins_line(s + i, n - i))
        weft__json_parse(s, n, &v, NULL);
    return v;
}

static weft_status read_jsonl(weft__dataset *d, const char *name, const char *s, size_t n, weft_error *err)
{
    size_t line = 0, skip;
    weft_status st = weft__train_text_begin(s, n, &skip, err);
    if (st) return weft_fail_within(err, st, "%s", name);
    weft__json *root = one_value(s + skip, n - skip);
    if (root) return read_values(d, name, &root, err);
    for (const char *at = s + skip, *end = s + n, *next; !st && at < end; at = next) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((nl ? nl : end) - at);
        weft__train_record record;
        next = nl ? nl + 1 : end;
        line++;
        if (len && at[len - 1] == '\r') len--;
        if (is_blank(at, len)) continue;
        st = weft__train_record_read(at, len, &record, err);
        if (!st) {
            st = take_record(d, &record, err);
            weft__train_record_free(&record);
        }
        if (st) weft_fail_within(err, st, "%s:%zu", name, line);
    }
    return st;
}

static weft_status read_json(weft__dataset *d, const char *name, const char *s, size_t n, weft_error *err)
{
    weft__json *root = NULL;
    size_t skip;
    weft_status st = weft__train_text_begin(s, n, &skip, err);
    if (!st) st = weft__json_parse(s + skip, n - skip, &root, err);
    if (st == WEFT_FORMAT && begins_line(s + skip, n - skip))
        return read_jsonl(d, name, s, n, err); /* a record per line under this name */
    return st ? weft_fail_within(err, st, "%s", name) : read_values(d, name, &root, err);
}

static int is_break(char c)
{
    return c == '\n' || c == '\r';
}

static weft_status read_document(weft__dataset *d, const char *s, size_t n, weft_error *err)
{
    size_t from = d->all.ids.n;
    while (n && is_break(s[0])) s++, n--;
    while (n && is_break(s[n - 1])) n--;
    if (!n) return WEFT_OK;
    weft_status st = weft__train_render_text(d->renderer, s, n, &d->all, err);
    return st ? st : take_text(d, from, err);
}

static weft_status read_text(weft__dataset *d, const char *name, const char *s, size_t n, weft_error *err)
{
    const weft__tok *tok = d->renderer->tok;
    weft__tok_slice end = weft__tok_text(tok, weft__tok_id_of_role(tok, WEFT__TOK_ROLE_EOS));
    size_t skip;
    weft_status st = weft__train_text_begin(s, n, &skip, err);
    if (st) return weft_fail_within(err, st, "%s", name);
    for (size_t at = skip, len; !st && at < n; at += len + end.len) {
        const char *stop = end.len ? memmem(s + at, n - at, end.data, end.len) : NULL;
        len = stop ? (size_t)(stop - s) - at : n - at;
        st = read_document(d, s + at, len, err);
        if (st) weft_fail_within(err, st, "%s: document at byte %zu", name, at);
    }
    return st;
}

static uint32_t id_at(const unsigned char *p, size_t width)
{
    uint32_t id = p[0] | (uint32_t)p[1] << 8;
    return width == 4 ? id | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24 : id;
}

static weft_status read_ids(weft__dataset *d, const char *name, size_t width, const char *s, size_t n, weft_error *err)
{
    const weft__tok *tok = d->renderer->tok;
    int32_t n_vocab = weft__tok_n(tok), eos = weft__tok_id_of_role(tok, WEFT__TOK_ROLE_EOS);
    size_t n_ids = n / width, begin = d->all.ids.n;
    weft_status st = WEFT_OK;
    if (n % width)
        return weft_fail(err, WEFT_FORMAT, "%s: %zu bytes are no whole number of %zu-byte ids", name, n, width);
    if (!weft__grow(&d->all.ids.data, &d->all.ids.capacity, begin + n_ids, sizeof *d->all.ids.data) ||
        !weft__grow(&d->all.learn, &d->all.learn_capacity, begin + n_ids, 1))
        return data_read_no_memory(err);
    for (size_t i = 0; !st && i < n_ids; i++) {
        uint32_t id = id_at((const unsigned char *)s + i * width, width);
        if (id >= (uint32_t)n_vocab)
            return weft_fail(err, WEFT_FORMAT, "%s: id %zu is %u, and the vocabulary has %d tokens", name, i + 1, id,
                             n_vocab);
        d->all.learn[d->all.ids.n] = 1;
        d->all.ids.data[d->all.ids.n++] = (int32_t)id;
        if ((int32_t)id == eos || i + 1 == n_ids) {
            st = take_text(d, begin, err);
            begin = d->all.ids.n;
        }
    }
    return st;
}

/* ---- files ---- */

weft__dataset_form weft__dataset_form_of(const char *path)
{
    static const struct {
        const char *end;
        weft__dataset_form form;
    } forms[] = {{".jsonl", WEFT__DATASET_JSONL},
                 {".json", WEFT__DATASET_JSON},
                 {".u16", WEFT__DATASET_U16},
                 {".u32", WEFT__DATASET_U32}};
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t k = strlen(forms[i].end);
        if (n >= k && !strcasecmp(path + n - k, forms[i].end)) return forms[i].form;
    }
    return WEFT__DATASET_TEXT;
}

/* A chat that was saved: a list of messages, or a record of them in a line. */
static int is_chat(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && s[i] && strchr(" \t\r\n", s[i])) i++;
    if (i == n || (s[i] != '[' && s[i] != '{')) return 0;
    weft__json *v = first_line(s, n);
    if (!v) v = one_value(s, n);
    const int is =
        weft__train_is_conversation(v) || weft__json_kind_of(weft__json_get(v, "messages")) == WEFT__JSON_ARRAY;
    weft__json_free(&v);
    return is;
}

weft_status weft__dataset_add_bytes(weft__dataset *d, const char *name, weft__dataset_form form, const char *bytes,
                                    size_t n, weft_error *err)
{
    if (form != WEFT__DATASET_JSONL && form != WEFT__DATASET_JSON && d->options.pairs)
        return weft_fail(err, WEFT_FORMAT,
                         "%s: preference pairs come as .jsonl, a record {\"prompt\", \"chosen\", \"rejected\"} per "
                         "line, or as .json",
                         name);
    if (form != WEFT__DATASET_JSONL && form != WEFT__DATASET_JSON && d->options.contrasts)
        return weft_fail(
            err, WEFT_FORMAT,
            "%s: texts to tell apart come as .jsonl, a record {\"query\", \"positive\", \"negatives\"} per "
            "line, or as .json",
            name);
    if (form != WEFT__DATASET_JSONL && form != WEFT__DATASET_JSON && d->options.rewards)
        return weft_fail(err, WEFT_FORMAT, "%s: records with rewards come as .jsonl or .json", name);
    d->record_weight = 1; /* of texts and ids; records have their own */
    if (form == WEFT__DATASET_TEXT && is_chat(bytes, n)) form = WEFT__DATASET_JSONL; /* under whatever name */
    switch (form) {
    case WEFT__DATASET_JSONL: return read_jsonl(d, name, bytes, n, err);
    case WEFT__DATASET_JSON: return read_json(d, name, bytes, n, err);
    case WEFT__DATASET_U16: return read_ids(d, name, 2, bytes, n, err);
    case WEFT__DATASET_U32: return read_ids(d, name, 4, bytes, n, err);
    default: return read_text(d, name, bytes, n, err);
    }
}

weft_status weft__dataset_add(weft__dataset *d, const char *path, weft_error *err)
{
    weft_buffer *file = NULL;
    weft_status st = weft__mem_map(path, &file, err);
    if (!st) st = weft__dataset_add_bytes(d, path, weft__dataset_form_of(path), file->data, (size_t)file->n_bytes, err);
    weft_buffer_release(&file);
    return st;
}
