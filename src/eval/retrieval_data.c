// SPDX-License-Identifier: Apache-2.0
/* retrieval_data.c: records and BEIR's files to queries, texts and links (retrieval.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "eval/retrieval.h"
#include "eval/task.h"

static weft_status no_memory(const char *name, weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for its texts", name);
}

/* Where texts stand, by their bytes or names: open addressing, 0 is empty. */
typedef struct text_index {
    uint32_t *slots;
    size_t room, n;
} text_index;

static uint32_t *index_slot(const text_index *x, const weft__eval_retrieval_text *all, const char *s, size_t n)
{
    size_t at = (size_t)weft__hash(s, n) & (x->room - 1);
    while (x->slots[at] && (all[x->slots[at] - 1].n != n || memcmp(all[x->slots[at] - 1].text, s, n)))
        at = (at + 1) & (x->room - 1);
    return &x->slots[at];
}

static int index_grow(text_index *x, const weft__eval_retrieval_text *all)
{
    if (x->room && x->n < x->room / 2) return 1;
    text_index larger = {NULL, x->room ? 2 * x->room : 64, x->n};
    if (!(larger.slots = weft__alloc_zero(larger.room, sizeof *larger.slots))) return 0;
    for (size_t i = 0; i < x->n; i++) *index_slot(&larger, all, all[i].text, all[i].n) = (uint32_t)i + 1;
    weft__free(x->slots);
    *x = larger;
    return 1;
}

/* A list of texts with the way to find one. */
typedef struct retrieval_list {
    weft__eval_retrieval_text **items;
    size_t *n, *room;
    text_index index;
} retrieval_list;

/* The text's number; it is appended where it is not there yet. 0: no memory. */
static int list_put(retrieval_list *l, const char *s, size_t n, uint32_t *number)
{
    if (!index_grow(&l->index, *l->items)) return 0;
    uint32_t *slot = index_slot(&l->index, *l->items, s, n);
    if (!*slot) {
        char *copy = *l->n < UINT32_MAX - 1 ? weft__strndup(s, n) : NULL;
        if (!copy || !weft__grow(l->items, l->room, *l->n + 1, sizeof **l->items)) {
            weft__free(copy);
            return 0;
        }
        (*l->items)[(*l->n)++] = (weft__eval_retrieval_text){copy, n};
        l->index.n++;
        *slot = (uint32_t)*l->n;
    }
    *number = *slot - 1;
    return 1;
}

static int list_find(const retrieval_list *l, const char *s, size_t n, uint32_t *number)
{
    if (!l->index.room) return 0;
    const uint32_t *slot = index_slot(&l->index, *l->items, s, n);
    if (*slot) *number = *slot - 1;
    return *slot != 0;
}

/* Of the set's own lists; what stands there already is found, too. 0: no memory. */
static int begin(retrieval_list *l, weft__eval_retrieval_text **items, size_t *n, size_t *room)
{
    *l = (retrieval_list){items, n, room, {NULL, 0, 0}};
    for (size_t i = 0; i < *n; i++) {
        l->index.n = i;
        if (!index_grow(&l->index, *items)) return 0;
        *index_slot(&l->index, *items, (*items)[i].text, (*items)[i].n) = (uint32_t)i + 1;
    }
    l->index.n = *n;
    return 1;
}

static int put_link(weft__eval_retrieval_set *s, uint32_t query, uint32_t text, double grade)
{
    if (!weft__grow(&s->links, &s->links_room, s->n_links + 1, sizeof *s->links)) return 0;
    s->links[s->n_links++] = (weft__eval_retrieval_link){query, text, grade};
    return 1;
}

static int compare_links(const void *a, const void *b)
{
    const weft__eval_retrieval_link *x = a, *y = b;
    if (x->query != y->query) return x->query < y->query ? -1 : 1;
    return x->text < y->text ? -1 : x->text > y->text;
}

/* In the order of queries, each pair once, with its largest grade. */
static void sort_links(weft__eval_retrieval_set *s)
{
    size_t n = 0;
    if (s->n_links) qsort(s->links, s->n_links, sizeof *s->links, compare_links);
    for (size_t i = 0; i < s->n_links; i++) {
        if (n && !compare_links(&s->links[n - 1], &s->links[i])) {
            if (s->links[i].grade > s->links[n - 1].grade) s->links[n - 1].grade = s->links[i].grade;
        } else {
            s->links[n++] = s->links[i];
        }
    }
    s->n_links = n;
}

void weft__eval_retrieval_free(weft__eval_retrieval_set *s)
{
    for (size_t i = 0; i < s->n_queries; i++) weft__free(s->queries[i].text);
    for (size_t i = 0; i < s->n_texts; i++) weft__free(s->texts[i].text);
    weft__free(s->queries);
    weft__free(s->texts);
    weft__free(s->links);
    *s = (weft__eval_retrieval_set){0};
}

/* ---- records ---- */

static const weft__json *member(const weft__json *doc, const char *key, const char *other)
{
    const weft__json *v = weft__json_get(doc, key);
    if (weft__json_is_null(v)) v = NULL;
    return v || !other ? v : member(doc, other, NULL);
}

/* Puts the string v; WEFT_FORMAT: it is none, or empty. */
static weft_status list_string(retrieval_list *l, const weft__json *v, const char *what, uint32_t *number,
                               weft_error *err)
{
    const char *s;
    size_t n;
    if (!weft__json_string(v, &s, &n) || !n) return weft_fail(err, WEFT_FORMAT, "\"%s\" is no text", what);
    return list_put(l, s, n, number) ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for texts");
}

static weft_status put_record(weft__eval_retrieval_set *s, retrieval_list *queries, retrieval_list *texts,
                              const weft__json *doc, weft_error *err)
{
    const weft__json *negatives = member(doc, "negatives", "negative");
    const int one = weft__json_kind_of(negatives) == WEFT__JSON_STRING;
    uint32_t query = 0, text = 0, other;
    weft_status st = list_string(queries, member(doc, "query", "anchor"), "query", &query, err);
    if (!st) st = list_string(texts, member(doc, "positive", NULL), "positive", &text, err);
    if (!st && negatives && !one && weft__json_kind_of(negatives) != WEFT__JSON_ARRAY)
        st = weft_fail(err, WEFT_FORMAT, "\"negatives\" is no list of texts");
    if (!st && one) st = list_string(texts, negatives, "negative", &other, err);
    for (size_t i = 0; !st && !one && i < weft__json_size(negatives); i++)
        st = list_string(texts, weft__json_at(negatives, i), "negatives", &other, err);
    if (!st && !put_link(s, query, text, 1)) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for texts");
    return st;
}

weft_status weft__eval_retrieval_parse(weft__eval_retrieval_set *s, const char *name, const char *text, size_t n,
                                       weft_error *err)
{
    weft__eval_docs docs = {0};
    weft_error why = {0};
    retrieval_list queries = {0}, texts = {0};
    weft_status st = weft__eval_docs_parse(name, text, n, &docs, err);
    if (!st && (!begin(&queries, &s->queries, &s->n_queries, &s->queries_room) ||
                !begin(&texts, &s->texts, &s->n_texts, &s->texts_room)))
        st = no_memory(name, err);
    for (size_t i = 0; !st && i < docs.n; i++) {
        st = put_record(s, &queries, &texts, docs.items[i], &why);
        if (st) weft_fail(err, st, "%s: record %zu: %s", name, i + 1, why.message);
    }
    if (!st) sort_links(s);
    weft__free(queries.index.slots);
    weft__free(texts.index.slots);
    weft__eval_docs_free(&docs);
    return st;
}

weft_status weft__eval_retrieval_add(weft__eval_retrieval_set *s, const char *path, weft_error *err)
{
    char *text = NULL;
    size_t n = 0;
    weft_status st = weft__eval_read_file(path, &text, &n, err);
    if (!st) st = weft__eval_retrieval_parse(s, path, text, n, err);
    weft__free(text);
    return st;
}

/* ---- BEIR ---- */

/* Documents of a file by their "_id": names and texts have the same numbers. */
typedef struct named {
    weft__eval_retrieval_text *names, *texts;
    size_t n_names, names_room, n_texts, texts_room;
    retrieval_list by_name;
} named;

static void named_free(named *d)
{
    for (size_t i = 0; i < d->n_names; i++) weft__free(d->names[i].text);
    for (size_t i = 0; i < d->n_texts; i++) weft__free(d->texts[i].text);
    weft__free(d->names);
    weft__free(d->texts);
    weft__free(d->by_name.index.slots);
}

/* Title and text, with a blank between, as BEIR's own models read them. */
static weft_status titled_text(const weft__json *doc, weft__strbuf *out, weft_error *err)
{
    const char *title = "", *text;
    size_t n_title = 0, n;
    weft__json_string(member(doc, "title", NULL), &title, &n_title);
    if (!weft__json_string(member(doc, "text", NULL), &text, &n))
        return weft_fail(err, WEFT_FORMAT, "\"text\" is no string");
    weft__strbuf_put(out, title, n_title);
    if (n_title && n) weft__strbuf_puts(out, " ");
    weft__strbuf_put(out, text, n);
    weft__strbuf_put(out, "", 0);
    if (out->failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for texts");
    return out->len ? WEFT_OK : weft_fail(err, WEFT_FORMAT, "the text is empty");
}

static weft_status put_named(named *d, const weft__json *doc, weft_error *err)
{
    weft__strbuf t = {0};
    uint32_t number = 0;
    const size_t before = d->n_names;
    weft_status st = list_string(&d->by_name, member(doc, "_id", NULL), "_id", &number, err);
    if (!st && d->n_names == before) st = weft_fail(err, WEFT_FORMAT, "its \"_id\" stands there already");
    if (!st) st = titled_text(doc, &t, err);
    char *copy = st ? NULL : weft__strndup(t.data, t.len);
    if (!st && (!copy || !weft__grow(&d->texts, &d->texts_room, d->n_texts + 1, sizeof *d->texts)))
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for texts");
    if (!st) d->texts[d->n_texts++] = (weft__eval_retrieval_text){copy, t.len};
    else weft__free(copy);
    weft__strbuf_free(&t);
    return st;
}

static weft_status read_named(named *d, const weft__eval_retrieval_file *f, weft_error *err)
{
    weft__eval_docs docs = {0};
    weft_error why = {0};
    weft_status st = weft__eval_docs_parse(f->name, f->text, f->n, &docs, err);
    if (!st && !begin(&d->by_name, &d->names, &d->n_names, &d->names_room)) st = no_memory(f->name, err);
    for (size_t i = 0; !st && i < docs.n; i++) {
        st = put_named(d, docs.items[i], &why);
        if (st) weft_fail(err, st, "%s: record %zu: %s", f->name, i + 1, why.message);
    }
    weft__eval_docs_free(&docs);
    return st;
}

/* Three fields of a line with tabs between; 0: it has others. */
static int fields_of(char *line, char *out[3])
{
    for (int i = 0; i < 3; i++) {
        out[i] = line;
        char *tab = strchr(line, '\t');
        if ((i < 2) != (tab != NULL)) return 0;
        if (tab) *tab = 0, line = tab + 1;
    }
    return 1;
}

/* What a line says: a query with text and number, which are taken over where the query is the first time one. */
static weft_status put_grade(weft__eval_retrieval_set *s, named *texts, named *queries, uint32_t *taken, char *line,
                             weft_error *err)
{
    char *field[3], *end;
    uint32_t query = 0, text = 0;
    if (!fields_of(line, field)) return weft_fail(err, WEFT_FORMAT, "it is no query, text and grade with tabs between");
    const double grade = strtod(field[2], &end);
    if (end == field[2] || *end || !isfinite(grade))
        return weft_fail(err, WEFT_FORMAT, "'%.40s' is no grade", field[2]);
    if (!list_find(&queries->by_name, field[0], strlen(field[0]), &query))
        return weft_fail(err, WEFT_FORMAT, "there is no query '%.60s'", field[0]);
    if (!list_find(&texts->by_name, field[1], strlen(field[1]), &text))
        return weft_fail(err, WEFT_FORMAT, "there is no text '%.60s'", field[1]);
    if (!(grade > 0)) return WEFT_OK; /* it was looked at, and does not belong */
    if (!taken[query]) {
        if (!weft__grow(&s->queries, &s->queries_room, s->n_queries + 1, sizeof *s->queries))
            return weft_fail(err, WEFT_NO_MEMORY, "no memory for texts");
        s->queries[s->n_queries++] = queries->texts[query];
        queries->texts[query].text = NULL;
        taken[query] = (uint32_t)s->n_queries;
    }
    return put_link(s, taken[query] - 1, text, grade) ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for texts");
}

static weft_status read_grades(weft__eval_retrieval_set *s, named *texts, named *queries,
                               const weft__eval_retrieval_file *f, weft_error *err)
{
    char *text = weft__strndup(f->text, f->n); /* cut into fields */
    size_t number = 1;
    weft_error why = {0};
    uint32_t *taken = weft__alloc_zero(queries->n_texts + 1, sizeof *taken);
    weft_status st = taken && text ? WEFT_OK : no_memory(f->name, err);
    if (!st && memchr(f->text, 0, f->n)) st = weft_fail(err, WEFT_FORMAT, "%s: it has a NUL", f->name);
    for (char *line = text, *next; !st && line && *line; line = next, number++) {
        next = line + strcspn(line, "\n");
        if (*next) *next++ = 0;
        const size_t len = strlen(line);
        if (len && line[len - 1] == '\r') line[len - 1] = 0;
        if (number == 1 || !*line) continue; /* the heading */
        st = put_grade(s, texts, queries, taken, line, &why);
        if (st) weft_fail(err, st, "%s:%zu: %s", f->name, number, why.message);
    }
    weft__free(text);
    weft__free(taken);
    return st;
}

weft_status weft__eval_retrieval_beir_parse(weft__eval_retrieval_set *s, const weft__eval_retrieval_file files[3],
                                            weft_error *err)
{
    named t = {0}, q = {0};
    weft_status st = read_named(&t, &files[0], err);
    if (!st) st = read_named(&q, &files[1], err);
    if (!st) st = read_grades(s, &t, &q, &files[2], err);
    if (!st && !s->n_links) st = weft_fail(err, WEFT_FORMAT, "%s: no text belongs to any query", files[2].name);
    if (!st) {
        s->texts = t.texts;
        s->n_texts = t.n_texts;
        s->texts_room = t.texts_room;
        t.texts = NULL;
        t.n_texts = 0;
        sort_links(s);
    }
    named_free(&t);
    named_free(&q);
    return st;
}

weft_status weft__eval_retrieval_beir(weft__eval_retrieval_set *s, const char *texts, const char *queries,
                                      const char *grades, weft_error *err)
{
    const char *const paths[3] = {texts, queries, grades};
    char *text[3] = {NULL};
    weft__eval_retrieval_file files[3] = {{0}};
    weft_status st = WEFT_OK;
    for (int i = 0; i < 3 && !st; i++) {
        st = weft__eval_read_file(paths[i], &text[i], &files[i].n, err);
        files[i].name = paths[i];
        files[i].text = text[i];
    }
    if (!st) st = weft__eval_retrieval_beir_parse(s, files, err);
    for (int i = 0; i < 3; i++) weft__free(text[i]);
    return st;
}
