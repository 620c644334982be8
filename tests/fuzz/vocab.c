// SPDX-License-Identifier: Apache-2.0
/* vocab.c: any bytes as a GGUF file with a tokenizer, of the keys tokenizer.weft.* too. What loads encodes the end of
 * the input without harm, decodes it as UTF-8, and is the same tokenizer when the keys are read again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "model/vocab.h"
#include "text/tokenizer/json.h"
#include "use_tokenizer.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { TEXT = 200, KEYS_MOST = 1 << 16 };

#define MARK "\\u2581"
#define ADDED                                                                                                          \
    "\"added_tokens\":[{\"id\":9,\"content\":\"<X>\",\"normalized\":true,\"single_word\":true},"                       \
    "{\"id\":10,\"content\":\"<s>\",\"special\":true,\"lstrip\":true}],"
#define BPE(rest)                                                                                                      \
    "\"model\":{\"type\":\"BPE\"," rest                                                                                \
    "\"unk_token\":\"?\",\"merges\":[\"a b\"],\"vocab\":{\"?\":0,\"a\":1,\"b\":2,\"ab\":3,\"" MARK                     \
    "\":4,\"\\u0120\":5,\"A\":6}}"

/* A file of each kind of steps. */
static const char *const seeds[] = {
    "{" ADDED "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"Lowercase\"},{"
    "\"type\":\"Replace\","
    "\"pattern\":{\"Regex\":\"x+\"},\"content\":\"a\"}]},\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":"
    "\"" MARK "\",\"prepend_scheme\":\"first\"}," BPE("\"byte_fallback\":true,") "}",
    "{" ADDED
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\"},{\"type\":\"Digits\"}]}," BPE(
        "") "}",
    "{\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"normalizer\":{\"type\":\"BertNormalizer\"},\"model\":{"
    "\"type\":\"WordPiece\","
    "\"vocab\":{\"[UNK]\":0,\"a\":1,\"##b\":2}}}",
    "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" MARK
    "\"},\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],"
    "[\"a\",-1],[\"" MARK "a\",-1.5],[\"" MARK "\",-2]]}}",
};

static void save_seed(const char *folder, size_t i)
{
    weft__tok_json_vocab *v;
    weft__gguf_writer *w;
    weft__strbuf bytes = {0};
    char path[4096];
    const weft__tok_json_files files = {.tokenizer = {seeds[i], strlen(seeds[i])}};
    if (weft__tok_json_vocab_read(&files, &v, NULL) || weft__gguf_writer_memory("seed", &w, NULL)) abort();
    const weft__tok_spec *spec = weft__tok_json_vocab_spec(v);
    if (weft__vocab_put(spec, spec->n_tokens, "gpt-2", w, NULL) || weft__gguf_writer_bytes(w, &bytes, NULL)) abort();
    snprintf(path, sizeof path, "%s/seed-vocab-%zu", folder, i);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes.data, 1, bytes.len, f) != bytes.len || fclose(f)) abort();
    weft__strbuf_free(&bytes);
    weft__gguf_writer_destroy(&w);
    weft__tok_json_vocab_free(&v);
}

/* Valid inputs, into the first corpus folder named on the command line. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct stat st;
    const char *folder = NULL;
    setenv("WEFT_LOG", "error", 1);
    for (int i = 1; i < *argc && !folder; i++)
        if (stat((*argv)[i], &st) == 0 && S_ISDIR(st.st_mode)) folder = (*argv)[i];
    for (size_t i = 0; folder && i < sizeof seeds / sizeof *seeds; i++) save_seed(folder, i);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t before = weft__alloc_live(), tail = n < TEXT ? n : TEXT;
    weft__gguf *g;
    weft__tok *tok = NULL, *again = NULL;
    weft_error err = {0};
    if (n > KEYS_MOST || weft__gguf_parse(data, n, "fuzz", &g, &err)) return 0;
    if (weft__vocab_tokenizer(g, &tok, &err)) {
        if (tok || !*err.message) abort();
    } else {
        if (weft__vocab_tokenizer(g, &again, &err) || weft__tok_compare(tok, again)) abort();
        use_tokenizer(tok, (const char *)data + n - tail, tail);
    }
    weft__tok_destroy(&again);
    weft__tok_destroy(&tok);
    weft__gguf_close(&g);
    if (weft__alloc_live() != before) abort();
    return 0;
}
