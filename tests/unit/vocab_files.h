// SPDX-License-Identifier: Apache-2.0
/* vocab_files.h: for tests of vocabularies: tokenizer.json files put together from parts, and the keys made of them as
 * files in memory. */
#ifndef WEFT_TESTS_VOCAB_FILES_H
#define WEFT_TESTS_VOCAB_FILES_H

#include <stdio.h>

#include "unit/fixture.h"

#include "base/json.h"
#include "model/vocab.h"
#include "text/tokenizer/json.h"
#include "text/tokenizer/parts.h"

#define MARK "\\u2581"
#define FILLED 3 /* rows of the embedding beyond the vocabulary */

static inline void put_bytes(weft__strbuf *out, int alphabet, int *id)
{
    for (int b = 0; b < 256; b++) {
        char spelled[8];
        size_t n = alphabet ? weft__utf8_encode(weft__tok_byte_alphabet((unsigned char)b), spelled)
                            : (size_t)snprintf(spelled, sizeof spelled, "<0x%02X>", (unsigned)b);
        weft__strbuf_puts(out, *id ? "," : "");
        weft__json_write_string(out, spelled, n);
        weft__strbuf_printf(out, ":%d", (*id)++);
    }
}

/* <unk>, bytes, letters, what the merges make: as SentencePiece's vocabularies are. */
static const char spm_pieces[] =
    "\"" MARK "\":257,\"H\":258,\"i\":259,\"a\":260,\"b\":261,\"ab\":262,\"" MARK "a\":263,\"" MARK
    "Hi\":264,\"Hi\":265,\"é\":266,\"e\":267,\"" MARK MARK "\":268,\"t\":269,\"\\u0301\":270";
static const char spm_merges[] =
    "[\"a\",\"b\"],[\"H\",\"i\"],[\"" MARK "\",\"Hi\"],[\"" MARK "\",\"a\"],[\"" MARK "\",\"" MARK "\"]";
#define SPM_END 271

static inline void compose_spm(weft__strbuf *out, const char *added, const char *rest, const char *model)
{
    int id = 0;
    weft__strbuf_printf(
        out,
        "{\"added_tokens\":[%s]%s,\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",%s\"merges\":[%s],\"vocab\":{",
        added, rest, model, spm_merges);
    put_bytes(out, 0, &id);
    weft__strbuf_printf(out, ",\"<unk>\":256,%s}}}", spm_pieces);
}

static inline void compose_bytes(weft__strbuf *out, const char *added, const char *rest, const char *merges)
{
    int id = 0;
    weft__strbuf_printf(out, "{\"added_tokens\":[%s]%s,\"model\":{\"type\":\"BPE\",\"merges\":[%s],\"vocab\":{", added,
                        rest, merges);
    put_bytes(out, 1, &id);
    weft__strbuf_puts(out, ",\"ab\":256,\"abab\":257}}}");
}

#define FALLBACK "\"byte_fallback\":true,\"fuse_unk\":true,"
#define TOKEN(id, text, rest) "{\"id\":" id ",\"content\":\"" text "\"" rest "}"
#define INST TOKEN("271", "[INST]", "") "," TOKEN("272", "[/INST]", "")
#define METASPACE(scheme, rest)                                                                                        \
    "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\",\"prepend_scheme\":\"" scheme "\"" rest "}"
#define PRE(text) ",\"pre_tokenizer\":" text
#define NORM(text) ",\"normalizer\":" text
#define ESCAPED(first)                                                                                                 \
    NORM("{\"type\":\"Sequence\",\"normalizers\":[" first "{\"type\":\"Prepend\",\"prepend\":\"" MARK                  \
         "\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" MARK "\"}]}")
#define STRIP                                                                                                          \
    ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"" MARK          \
    "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" "       \
    "\",\"start\":1,"                                                                                                  \
    "\"stop\":0}]}"
#define QWEN2                                                                                                          \
    "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^"           \
    "\\\\r\\\\n\\\\p{L}"                                                                                               \
    "\\\\p{N}]?\\\\p{L}+|\\\\p{N}| "                                                                                   \
    "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}}"
#define BYTES(prefix, regex) "{\"type\":\"ByteLevel\",\"add_prefix_space\":" prefix ",\"use_regex\":" regex "}"
#define LIKE_QWEN PRE("{\"type\":\"Sequence\",\"pretokenizers\":[" QWEN2 "," BYTES("false", "false") "]}")

enum kind { SPM, BYTE_LEVEL, WHOLE };

typedef struct file_case {
    enum kind kind;
    const char *added, *rest, *model; /* BYTE_LEVEL: merges; WHOLE: the file itself is `rest` */
    const char *config, *pre;
    const char *text;
    int32_t ids[12]; /* of that text, from the file as from the folder; empty: whatever they are */
    int usual;       /* the usual keys say all */
} file_case;

static inline weft__tok_json_vocab *read_case(const file_case *c)
{
    weft__strbuf json = {0};
    weft__tok_json_vocab *v;
    weft_error err = {0};
    if (c->kind == SPM) compose_spm(&json, c->added, c->rest, c->model);
    else if (c->kind == BYTE_LEVEL) compose_bytes(&json, c->added, c->rest, c->model);
    else weft__strbuf_puts(&json, c->rest);
    const weft__tok_json_files files = {.tokenizer = {json.data, json.len},
                                        .config = {c->config, c->config ? strlen(c->config) : 0}};
    if (weft__tok_json_vocab_read(&files, &v, &err)) fail_msg("%s\n%s", json.data, err.message);
    weft__strbuf_free(&json);
    return v;
}

/* Keys as a file in memory. */
typedef struct memory_file {
    weft__strbuf bytes;
    weft__gguf *g;
} memory_file;

static inline void open_file(memory_file *f, weft__gguf_writer *w)
{
    weft_error err = {0};
    memset(f, 0, sizeof *f);
    assert_int_equal(weft__gguf_writer_bytes(w, &f->bytes, &err), WEFT_OK);
    if (weft__gguf_parse(f->bytes.data, f->bytes.len, "keys", &f->g, &err)) fail_msg("%s", err.message);
    weft__gguf_writer_destroy(&w);
}

static inline void close_file(memory_file *f)
{
    weft__gguf_close(&f->g);
    weft__strbuf_free(&f->bytes);
}

static inline weft__gguf_writer *new_keys(void)
{
    weft__gguf_writer *w;
    assert_int_equal(weft__gguf_writer_memory("keys", &w, NULL), WEFT_OK);
    return w;
}

static inline void make_file(memory_file *f, const weft__tok_spec *spec, const char *pre)
{
    weft__gguf_writer *w = new_keys();
    weft_error err = {0};
    if (weft__vocab_put(spec, spec->n_tokens + FILLED, pre, w, &err)) fail_msg("%s", err.message);
    open_file(f, w);
}

static inline weft__tok *tokenizer_of(const memory_file *f)
{
    weft__tok *tok;
    weft_error err = {0};
    if (weft__vocab_tokenizer(f->g, &tok, &err)) fail_msg("%s", err.message);
    return tok;
}

static inline int has(const memory_file *f, const char *key)
{
    return weft__gguf_find(f->g, key) >= 0;
}

#endif
