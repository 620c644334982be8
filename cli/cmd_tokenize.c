// SPDX-License-Identifier: Apache-2.0
/* cmd_tokenize.c: weft tokenize: ids separated by spaces. Works on files that hold a vocabulary only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "format/out_file.h"
#include "options.h"
#include "outputs.h"
#include "prompt.h"
#include "terminal.h"

struct tokenize_options {
    int no_bos, no_special, pieces, json;
    const char *output;
};

static void print_pieces(const weft_tokenizer *t, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t length;
        const char *piece = weft_token_piece(t, ids[i], &length);
        printf("%6d  ", ids[i]);
        print_clean(stdout, piece, length, 0);
        putchar('\n');
    }
}

static weft_status print_json(const weft_tokenizer *t, const int32_t *ids, size_t n, weft_error *err)
{
    weft__strbuf out = {0};
    weft__strbuf_puts(&out, "{\"tokens\": [");
    for (size_t i = 0; i < n; i++) weft__strbuf_printf(&out, "%s%d", i ? ", " : "", ids[i]);
    weft__strbuf_puts(&out, "], \"pieces\": [");
    for (size_t i = 0; i < n; i++) {
        size_t length;
        const char *piece = weft_token_piece(t, ids[i], &length);
        if (i) weft__strbuf_puts(&out, ", ");
        weft__json_write_string(&out, piece, length);
    }
    weft__strbuf_puts(&out, "]}\n");
    return print_whole(&out, err);
}

static int ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

/* Little-endian numbers of 16 or 32 bits, as 'weft train' reads them. */
static weft_status write_ids(const char *path, const int32_t *ids, size_t n, weft_error *err)
{
    weft__out_file out;
    size_t width = ends_with(path, ".u32") ? 4 : 2;
    weft_status st = weft__out_file_open(&out, path, err);
    if (st) return st;
    for (size_t i = 0; !st && i < n; i++) {
        uint32_t id = (uint32_t)ids[i];
        const unsigned char bytes[4] = {(unsigned char)id, (unsigned char)(id >> 8), (unsigned char)(id >> 16),
                                        (unsigned char)(id >> 24)};
        if (width == 2 && id > 0xFFFF)
            st = weft_fail(err, WEFT_ARGUMENT, "%s: id %u needs 32 bits; call the file .u32", path, id);
        else st = weft__out_file_write(&out, bytes, width, err);
    }
    if (!st) st = weft__out_file_commit(&out, err);
    weft__out_file_close(&out);
    return st;
}

static weft_status tokenize_file(const struct tokenize_options *o, const char *path, const char *text, size_t n,
                                 weft_error *err)
{
    weft_file *file = NULL;
    weft_tokenizer *tokenizer = NULL;
    int32_t *ids = NULL;
    size_t n_ids = 0;
    uint32_t flags =
        (o->no_bos ? 0u : (uint32_t)WEFT_TOKENIZE_BOS) | (o->no_special ? 0u : (uint32_t)WEFT_TOKENIZE_SPECIAL);
    weft_status st = weft_file_open(path, &file, err);
    if (!st) st = weft_tokenizer_open(file, &tokenizer, err);
    if (!st) st = tokenize_text(tokenizer, text, n, flags, &ids, &n_ids, err);
    if (!st && o->output) st = write_ids(o->output, ids, n_ids, err);
    else if (!st && o->json) st = print_json(tokenizer, ids, n_ids, err);
    else if (!st && o->pieces) print_pieces(tokenizer, ids, n_ids);
    else if (!st) {
        for (size_t i = 0; i < n_ids; i++) printf("%s%d", i ? " " : "", ids[i]);
        putchar('\n');
    }
    free(ids);
    weft_tokenizer_close(&tokenizer);
    weft_file_close(&file);
    return st;
}

int cmd_tokenize(int argc, char **argv)
{
    struct tokenize_options o = {0};
    const option_spec options[] = {
        {"no-bos", 0, OPT_FLAG, &o.no_bos, NULL, "without the model's BOS and EOS", 0, 0, NULL},
        {"no-special", 0, OPT_FLAG, &o.no_special, NULL, "special tokens spelled in the text stay text", 0, 0, NULL},
        {"pieces", 0, OPT_FLAG, &o.pieces, NULL, "a line per token: id and text", 0, 0, NULL},
        {"json", 0, OPT_FLAG, &o.json, NULL, "one JSON object: tokens and pieces", 0, 0, NULL},
        {"output", 'o', OPT_TEXT, &o.output, "F", "write the ids to F.u16 or F.u32 (little-endian), for 'weft train'",
         0, 0, NULL},
        {0},
    };
    const command_spec spec = {"tokenize",
                               "MODEL [TEXT|-] [options]",
                               "Prints the token ids of TEXT, separated by spaces. Without TEXT, or with '-', reads "
                               "standard input.\n" OUTPUT_RULE("F"),
                               "  weft tokenize model.gguf \"Hello world\" --pieces\n"
                               "  weft tokenize vocab.gguf - -o texts.u16 < texts.txt\n",
                               options,
                               1,
                               2};
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    weft_error err = {0};
    if (o.output && !ends_with(o.output, ".u16") && !ends_with(o.output, ".u32")) {
        fprintf(stderr, "weft tokenize: -o F: the name ends in .u16 or .u32\n");
        return EXIT_USAGE;
    }
    if (output_refused("tokenize", o.output) || (o.output && output_is_input("tokenize", o.output, argv[first])))
        return EXIT_FAILED;
    const char *argument = argc - first == 2 ? argv[first + 1] : "-";
    char *text = NULL;
    size_t n = strlen(argument);
    if (!strcmp(argument, "-") && read_text("-", &text, &n, &err)) return report("tokenize", &err);
    weft_status st = tokenize_file(&o, argv[first], text ? text : argument, n, &err);
    free(text);
    return st ? report("tokenize", &err) : EXIT_DONE;
}
