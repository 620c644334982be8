// SPDX-License-Identifier: Apache-2.0
/* grammar.c: what grammars cost over a large vocabulary, for bench/grammar: compiling, the first mask, masks along
 * texts.
 *
 * bench_grammar [-n TOKENS] [-r ROUNDS] [--dump | --takes] VOCABULARY.gguf FOLDER NAME...
 * For each NAME the folder has NAME.json (a JSON Schema) or NAME.gbnf, and NAME.texts, valid texts with a byte 0x1E
 * behind each; `json_object` needs none of the first. A line of JSON for each NAME. Times are medians over the rounds,
 * each of which compiles anew and follows all texts twice: "mask" is the first time, when tables are made as they are
 * needed, "again" the second. Every token of a text must be allowed by its mask: else the exit status is 1. --dump
 * writes the vocabulary to FOLDER/vocabulary (a line of hexadecimal digits for each token, empty where it is no text;
 * the first line is the end token's number) and the tokens of the texts to FOLDER/NAME.ids, and measures nothing.
 * --takes says of each NAME which of its texts it takes, or why it is refused, as JSON, and measures nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/taken.h"
#include "base/text.h"
#include "grammar_vocabulary.h"
#include "sample/mask.h"
#include "text/grammar/matcher.h"
#include "text/grammar/run.h"

enum { MAX_ROUNDS = 64, SEPARATOR = 0x1E, APPLIED = 50 };

/* Of one round, in milliseconds and microseconds. */
enum {
    READ_MS,
    COMPILE_MS,
    PROBE_MS,
    TABLES_MS,
    TOTAL_MS,
    FIRST_US,
    MEAN_US,
    P99_US,
    MOST_US,
    AGAIN_US,
    AGAIN_P99_US,
    ACCEPT_US,
    N_FIGURES
};
static const char *const figure_names[N_FIGURES] = {"read_ms",      "automaton_ms", "probe_ms",     "tables_ms",
                                                    "compile_ms",   "first_us",     "mask_mean_us", "mask_p99_us",
                                                    "mask_most_us", "again_us",     "again_p99_us", "accept_us"};

typedef struct bench {
    vocabulary v;
    const char *folder, *name;
    char *source, *texts;
    size_t n_source, n_texts, n_words;
    uint64_t *bits;
    double figures[N_FIGURES][MAX_ROUNDS];
    double *masks; /* of a pass */
    size_t n_masks, masks_capacity;
    int gbnf;
    size_t n_states, n_edges, n_rules, n_bytes;
} bench;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_grammar: %s: %s\n", what, why);
    exit(1);
}

static double us_since(uint64_t begin)
{
    return (double)(weft__clock_ns() - begin) * 1e-3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double share_of(double *x, size_t n, double share)
{
    qsort(x, n, sizeof *x, compare);
    return n ? x[(size_t)((double)(n - 1) * share)] : 0;
}

/* ---- files ---- */

static char *read_file(const bench *b, const char *extension, size_t *n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", b->folder, b->name, extension);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    size_t capacity = 0, room = 1 << 16;
    char *out = NULL;
    for (*n = 0;; room = 2 * capacity) {
        if (!weft__grow(&out, &capacity, room, 1)) die(path, "no memory");
        size_t got = fread(out + *n, 1, capacity - *n, f);
        if (!got) break;
        *n += got;
    }
    fclose(f);
    return out;
}

static FILE *write_file(const bench *b, const char *name, const char *extension)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s", b->folder, name, extension);
    FILE *f = fopen(path, "w");
    if (!f) die(path, "cannot be written");
    return f;
}

static void load(bench *b)
{
    b->gbnf = 0;
    b->source = read_file(b, "json", &b->n_source);
    if (!b->source) b->gbnf = (b->source = read_file(b, "gbnf", &b->n_source)) != NULL;
    if (!b->source && strcmp(b->name, "json_object")) die(b->name, "neither a schema nor a grammar");
    if (!(b->texts = read_file(b, "texts", &b->n_texts))) die(b->name, "no texts");
}

/* ---- a round ---- */

static weft_status compile(bench *b, int round, weft__gram_tables **out, weft_error *err)
{
    weft__gram_automaton *a = NULL;
    uint64_t begin = weft__clock_ns(), at = begin;
    weft__gram *rules = weft__gram_create();
    if (!rules) die(b->name, "no memory");
    int32_t root = !b->source ? weft__gram_json_object(rules)
                   : b->gbnf  ? weft__gram_read_gbnf(rules, b->source, b->n_source)
                              : weft__gram_read_schema(rules, b->source, b->n_source);
    b->figures[READ_MS][round] = us_since(at) * 1e-3;
    at = weft__clock_ns();
    weft_status st = weft__gram_compile(rules, root, b->gbnf ? WEFT__GRAM_DEPTH : WEFT__GRAM_JSON_DEPTH - 1, &a, err);
    b->n_rules = weft__gram_n_rules(rules);
    weft__gram_destroy(&rules);
    b->figures[COMPILE_MS][round] = us_since(at) * 1e-3;
    at = weft__clock_ns();
    if (!st && b->source && (st = weft__gram_probe(a, err))) weft__gram_automaton_destroy(&a);
    if (st) return st;
    b->figures[PROBE_MS][round] = us_since(at) * 1e-3;
    b->n_states = a->n_states;
    b->n_edges = a->n_edges;
    at = weft__clock_ns();
    st = weft__gram_tables_create(a, b->v.trie, out, err);
    b->figures[TABLES_MS][round] = us_since(at) * 1e-3;
    b->figures[TOTAL_MS][round] = us_since(begin) * 1e-3;
    return st;
}

static int32_t next_token(const bench *b, size_t at, size_t end, size_t *n)
{
    int32_t token = vocabulary_longest(&b->v, b->texts + at, end - at, n);
    if (token < 0) die(b->name, "a text that no token begins");
    return token;
}

static size_t end_of_text(const bench *b, size_t at)
{
    const char *end = memchr(b->texts + at, SEPARATOR, b->n_texts - at);
    if (!end) die(b->name, "a text without an end");
    return (size_t)(end - b->texts);
}

static void mask(bench *b, weft__gram_matcher *m)
{
    weft_error err = {0};
    uint64_t begin = weft__clock_ns();
    if (weft__gram_matcher_mask(m, b->bits, &err)) die(b->name, err.message);
    double us = us_since(begin);
    if (!weft__grow(&b->masks, &b->masks_capacity, b->n_masks + 1, sizeof *b->masks)) die(b->name, "no memory");
    b->masks[b->n_masks++] = us;
}

static int allows(const bench *b, int32_t token)
{
    return (int)(b->bits[token / 64] >> (token % 64) & 1);
}

/* Follows all texts; returns the mean of what accepting a token takes. */
static double follow(bench *b, weft__gram_tables *g)
{
    double accepting = 0;
    size_t n_accepted = 0;
    b->n_masks = 0;
    for (size_t at = 0, end; at < b->n_texts; at = end + 1) {
        weft__gram_matcher *m;
        weft_error err = {0};
        end = end_of_text(b, at);
        if (weft__gram_matcher_create(g, &m, &err)) die(b->name, err.message);
        for (size_t n; at < end; at += n) {
            int32_t token = next_token(b, at, end, &n);
            mask(b, m);
            if (!allows(b, token)) {
                fprintf(stderr, "...%.*s\n", (int)(end - at < 60 ? end - at : 60), b->texts + at);
                die(b->name, "a valid text is not allowed there");
            }
            uint64_t begin = weft__clock_ns();
            if (weft__gram_matcher_accept(m, token, &err)) die(b->name, err.message);
            accepting += us_since(begin);
            n_accepted++;
        }
        if (!weft__gram_matcher_complete(m)) die(b->name, "a valid text may not end");
        mask(b, m);
        if (!allows(b, b->v.end)) die(b->name, "a text is not allowed to end");
        weft__gram_matcher_destroy(&m);
    }
    return accepting / (double)n_accepted;
}

static void mean_and_p99(bench *b, int mean, int p99, int round)
{
    double sum = 0;
    for (size_t i = 0; i < b->n_masks; i++) sum += b->masks[i];
    b->figures[mean][round] = sum / (double)b->n_masks;
    b->figures[p99][round] = share_of(b->masks, b->n_masks, 0.99);
}

static void run_round(bench *b, int round)
{
    weft__gram_tables *g;
    weft__gram_matcher *m;
    weft_error err = {0};
    if (compile(b, round, &g, &err)) die(b->name, err.message);
    uint64_t begin = weft__clock_ns();
    if (weft__gram_matcher_create(g, &m, &err) || weft__gram_matcher_mask(m, b->bits, &err)) die(b->name, err.message);
    b->figures[FIRST_US][round] = us_since(begin);
    weft__gram_matcher_destroy(&m);
    b->figures[ACCEPT_US][round] = follow(b, g);
    mean_and_p99(b, MEAN_US, P99_US, round);
    b->figures[MOST_US][round] = b->masks[b->n_masks - 1];
    follow(b, g);
    mean_and_p99(b, AGAIN_US, AGAIN_P99_US, round);
    b->n_bytes = weft__gram_tables_bytes(g);
    weft__gram_tables_release(&g);
}

/* Microseconds in which the last mask forbids what it does among as many logits. */
static double apply(const bench *b)
{
    double us[APPLIED];
    float *logits = weft__alloc_zero(b->v.n, sizeof *logits);
    if (!logits) die(b->name, "no memory");
    for (int i = 0; i < APPLIED; i++) {
        uint64_t begin = weft__clock_ns();
        weft__sample_mask_apply(b->bits, (int32_t)b->v.n, logits, (int32_t)b->v.n);
        us[i] = us_since(begin);
    }
    weft__free(logits);
    return share_of(us, APPLIED, 0.5);
}

static void measure(bench *b, int rounds)
{
    weft__taken_mark begin, end;
    char text[WEFT__TAKEN_ROOM];
    weft__taken_now(&begin);
    for (int i = 0; i < rounds; i++) run_round(b, i);
    double apply_us = apply(b);
    weft__taken_now(&end);
    weft__taken taken = weft__taken_between(&begin, &end, 1);
    printf("{\"test\": \"%s\", \"source_bytes\": %zu, \"rules\": %zu, \"states\": %zu, \"edges\": %zu, \"bytes\": %zu, "
           "\"masks\": %zu, \"apply_us\": %.2f",
           b->name, b->n_source, b->n_rules, b->n_states, b->n_edges, b->n_bytes, b->n_masks, apply_us);
    for (int i = 0; i < N_FIGURES; i++)
        printf(", \"%s\": %.3f", figure_names[i], share_of(b->figures[i], (size_t)rounds, 0.5));
    printf(", %s, \"above\": %s, \"vocabulary\": %zu, \"real\": %zu}\n", weft__taken_json(&taken, text),
           weft__taken_above(&taken) ? "true" : "false", b->v.n, b->v.n_real);
    fflush(stdout);
}

/* ---- for other engines ---- */

static void dump_vocabulary(const bench *b)
{
    FILE *f = write_file(b, "vocabulary", "");
    const weft__gram_trie *t = b->v.trie;
    fprintf(f, "%d\n", (int)b->v.end);
    for (int32_t id = 0; id < t->n_tokens; id++) {
        weft__tok_slice piece = weft__tok_piece_of(b->v.tok, id);
        for (size_t i = 0; t->node_of[id] != WEFT__GRAM_TRIE_NONE && i < piece.len; i++)
            fprintf(f, "%02x", (unsigned char)piece.data[i]);
        fputc('\n', f);
    }
    fclose(f);
}

static void dump_ids(const bench *b)
{
    FILE *f = write_file(b, b->name, ".ids");
    for (size_t at = 0, end; at < b->n_texts; at = end + 1) {
        end = end_of_text(b, at);
        for (size_t n; at < end; at += n) fprintf(f, "%d ", (int)next_token(b, at, end, &n));
        fputc('\n', f);
    }
    fclose(f);
}

static int takes(const bench *b, weft__gram_tables *g, size_t at, size_t end)
{
    weft__gram_matcher *m;
    if (weft__gram_matcher_create(g, &m, NULL)) die(b->name, "no memory");
    for (size_t n; at < end; at += n)
        if (weft__gram_matcher_accept(m, next_token(b, at, end, &n), NULL)) break;
    int whole = at == end && weft__gram_matcher_complete(m);
    weft__gram_matcher_destroy(&m);
    return whole;
}

static void say_takes(bench *b)
{
    weft__gram_tables *g = NULL;
    weft_error err = {0};
    weft__strbuf out = {0};
    weft__strbuf_printf(&out, "{\"test\": \"%s\", ", b->name);
    if (compile(b, 0, &g, &err)) {
        weft__strbuf_puts(&out, "\"refused\": ");
        weft__json_write_string(&out, err.message, strlen(err.message));
    } else {
        weft__strbuf_puts(&out, "\"takes\": [");
        for (size_t at = 0, end; at < b->n_texts; at = end + 1) {
            end = end_of_text(b, at);
            weft__strbuf_printf(&out, "%s%d", at ? ", " : "", takes(b, g, at, end));
        }
        weft__strbuf_puts(&out, "]");
    }
    if (out.failed) die(b->name, "no memory");
    printf("%.*s}\n", (int)out.len, out.data);
    weft__strbuf_free(&out);
    weft__gram_tables_release(&g);
}

int main(int argc, char **argv)
{
    static bench b;
    long n_tokens = 128000, rounds = 5;
    int dump = 0, take = 0, i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "--dump")) dump = 1;
        else if (!strcmp(argv[i], "--takes")) take = 1;
        else if (i + 1 < argc && !strcmp(argv[i], "-n")) n_tokens = strtol(argv[++i], NULL, 10);
        else if (i + 1 < argc && !strcmp(argv[i], "-r")) rounds = strtol(argv[++i], NULL, 10);
        else break;
    }
    if (argc - i < 3 || rounds < 1 || rounds > MAX_ROUNDS || n_tokens < 1 || argv[i][0] == '-') {
        fprintf(stderr,
                "usage: bench_grammar [-n TOKENS] [-r ROUNDS] [--dump | --takes] VOCABULARY.gguf FOLDER NAME...\n");
        return 2;
    }
    weft_error err = {0};
    if (vocabulary_open(&b.v, argv[i], (size_t)n_tokens, &err)) die(argv[i], err.message);
    b.folder = argv[i + 1];
    b.n_words = (b.v.n + 63) / 64;
    if (!(b.bits = weft__alloc_array(b.n_words, sizeof *b.bits))) die("masks", "no memory");
    if (dump) dump_vocabulary(&b);
    for (i += 2; i < argc; i++) {
        b.name = argv[i];
        b.source = NULL;
        b.n_source = 0;
        load(&b);
        if (dump) dump_ids(&b);
        else if (take) say_takes(&b);
        else measure(&b, (int)rounds);
        weft__free(b.source);
        weft__free(b.texts);
    }
    weft__free(b.masks);
    weft__free(b.bits);
    vocabulary_close(&b.v);
    return 0;
}
