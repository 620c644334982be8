/* cmd_tokenize.c: weft tokenize: ids separated by spaces. Works on files that hold a vocabulary only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "options.h"
#include "prompt.h"
#include "terminal.h"

struct tokenize_options {
    int no_bos, no_special, pieces, json;
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

static void print_json(const weft_tokenizer *t, const int32_t *ids, size_t n)
{
    weft__text out = {0};
    weft__text_puts(&out, "{\"tokens\": [");
    for (size_t i = 0; i < n; i++) weft__text_printf(&out, "%s%d", i ? ", " : "", ids[i]);
    weft__text_puts(&out, "], \"pieces\": [");
    for (size_t i = 0; i < n; i++) {
        size_t length;
        const char *piece = weft_token_piece(t, ids[i], &length);
        if (i) weft__text_puts(&out, ", ");
        weft__json_write_string(&out, piece, length);
    }
    weft__text_puts(&out, "]}\n");
    if (!out.failed) fwrite(out.data, 1, out.len, stdout);
    weft__text_free(&out);
}

static weft_status tokenize_file(const struct tokenize_options *o, const char *path, const char *text, size_t n, weft_error *err)
{
    weft_file *file = NULL;
    weft_tokenizer *tokenizer = NULL;
    int32_t *ids = NULL;
    size_t n_ids = 0;
    uint32_t flags = (o->no_bos ? 0u : (uint32_t)WEFT_TOKENIZE_BOS) | (o->no_special ? 0u : (uint32_t)WEFT_TOKENIZE_SPECIAL);
    weft_status st = weft_file_open(path, &file, err);
    if (!st) st = weft_tokenizer_open(file, &tokenizer, err);
    if (!st) st = tokenize_text(tokenizer, text, n, flags, &ids, &n_ids, err);
    if (!st && o->json) print_json(tokenizer, ids, n_ids);
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
        {0},
    };
    const command_spec spec = {"tokenize", "MODEL [TEXT|-] [options]",
                               "Prints the token ids of TEXT, separated by spaces. Without TEXT, or with '-', reads standard input.",
                               "  weft tokenize model.gguf \"Hello world\" --pieces\n", options, 1, 2};
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    weft_error err = {0};
    const char *argument = argc - first == 2 ? argv[first + 1] : "-";
    char *text = NULL;
    size_t n = strlen(argument);
    if (!strcmp(argument, "-") && read_text("-", &text, &n, &err)) return report("tokenize", &err);
    weft_status st = tokenize_file(&o, argv[first], text ? text : argument, n, &err);
    free(text);
    return st ? report("tokenize", &err) : EXIT_DONE;
}
