// SPDX-License-Identifier: Apache-2.0
/* cmd_train_tokenizer.c: weft train-tokenizer: a vocabulary from text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "options.h"
#include "outputs.h"
#include "prompt.h"
#include "terminal.h"
#include "weft/train.h"

struct vocab_options {
    const char *out, *chat_template;
    struct text_list specials, words;
    int json;
    weft_vocab_params params;
};

static const char ABOUT[] = "Learns a byte-level BPE vocabulary from text FILEs: the commonest pair of neighbours "
                            "becomes a token, again and again. Every text can\n"
                            "be spelled with it and comes back byte for byte. Writes a GGUF file without weights, "
                            "which 'weft train --tokenizer' puts into\n"
                            "the model and 'weft tokenize' reads. The same texts give the same vocabulary.\n"
                            "\n"
                            "Ids 0 to 4 are <|startoftext|>, <|endoftext|>, <|pad|>, <|im_start|> and <|im_end|>. "
                            "Where they are spelled in a FILE they are taken\n"
                            "for what they mean: <|endoftext|> separates documents.\n" OUTPUT_RULE("F");

static weft_status learn(struct vocab_options *o, char **files, int n_files, weft_vocab_result *r, weft_error *err)
{
    progress bar = {0};
    char *source = NULL;
    size_t n = 0;
    weft_status st = o->chat_template ? read_text(o->chat_template, &source, &n, err) : WEFT_OK;
    o->params.chat_template = source;
    o->params.specials = o->specials.items;
    o->params.words = o->words.items;
    o->params.progress = progress_update;
    o->params.progress_arg = &bar;
    if (!st) st = weft_train_tokenizer((const char *const *)files, n_files, o->out, &o->params, r, err);
    progress_end(&bar);
    free(source);
    return st;
}

int cmd_train_tokenizer(int argc, char **argv)
{
    struct vocab_options o = {.out = NULL};
    weft_vocab_result r;
    int first;
    weft_vocab_params_default(&o.params);
    const option_spec options[] = {
        {"output", 'o', OPT_TEXT, &o.out, "F", "the vocabulary, a GGUF file", 0, 0, NULL},
        {"vocab", 'v', OPT_INT, &o.params.n_vocab, "N", "tokens, special ones and the 256 bytes included (2048)", 262,
         1 << 20, NULL},
        {"min-count", 0, OPT_INT, &o.params.min_count, "N", "a pair that occurs less often becomes no token (2)", 1,
         1 << 30, NULL},
        {"pre", 0, OPT_TEXT, &o.params.pre, "NAME",
         "how texts are cut into words: a pre-tokenizer's name in GGUF (qwen2)", 0, 0, NULL},
        {"special", 0, OPT_LIST, &o.specials, "TEXT", "another control token; may be given several times", 0, 0, NULL},
        {"word", 0, OPT_LIST, &o.words, "TEXT",
         "a token that answers show, such as <tool_call>; may be given several times", 0, 0, NULL},
        {"chat-template", 0, OPT_TEXT, &o.chat_template, "F", "the model's chat template (Jinja)", 0, 0, NULL},
        {"json", 0, OPT_FLAG, &o.json, NULL, "one JSON object: counts", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {"train-tokenizer",
                               "FILE... -o F [options]",
                               ABOUT,
                               "  weft train-tokenizer corpus.txt -o vocab.gguf --vocab 4096\n"
                               "  weft train-tokenizer corpus/*.txt -o vocab.gguf --word '<tool_call>' --word "
                               "'</tool_call>' --chat-template chat.jinja\n"
                               "  weft tokenize vocab.gguf 'Once upon a time' --pieces\n",
                               options,
                               1,
                               -1};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!o.out) {
        fprintf(stderr, "weft train-tokenizer: -o is missing\n");
        return EXIT_USAGE;
    }
    if (o.specials.n >= LIST_MAX || o.words.n >= LIST_MAX) {
        fprintf(stderr, "weft train-tokenizer: at most %d of --special and of --word\n", LIST_MAX - 1);
        return EXIT_USAGE;
    }
    for (int i = first; i < argc; i++)
        if (output_is_input("train-tokenizer", o.out, argv[i])) return EXIT_FAILED;
    if (output_refused("train-tokenizer", o.out) || output_is_input("train-tokenizer", o.out, o.chat_template))
        return EXIT_FAILED;
    weft_error err = {0};
    if (learn(&o, argv + first, argc - first, &r, &err)) return report("train-tokenizer", &err);
    if (o.json)
        printf("{\"tokens\": %d, \"merges\": %d, \"bytes\": %llu}\n", r.n_tokens, r.n_merges,
               (unsigned long long)r.n_bytes);
    else
        fprintf(stderr, "%s: %d tokens, %d merges, from %.2f MB of text\n", o.out, r.n_tokens, r.n_merges,
                (double)r.n_bytes / 1e6);
    if (r.n_tokens < o.params.n_vocab)
        fprintf(stderr, "weft train-tokenizer: the texts have no more pairs: %d tokens of %d\n", r.n_tokens,
                o.params.n_vocab);
    return EXIT_DONE;
}
