// SPDX-License-Identifier: Apache-2.0
/* cmd_train.c: weft train: a model from text, or the further training of one. */
#include <stdio.h>

#include "commands.h"
#include "training.h"

static const char ABOUT[] =
    "Trains all weights of a model: of a fresh one (architecture llama, of the shape that the options say, with the "
    "vocabulary of\n"
    "--tokenizer), or of --base. Data are files of\n"
    "  text        documents, separated by <|endoftext|> as the vocabulary spells it; every token is learned\n"
    "  .jsonl      a record per line: {\"text\"}, {\"messages\", \"tools\"} or {\"prompt\", \"completion\"}; "
    "conversations go through the chat\n"
    "              template, and what the assistant says is learned; also ShareGPT's {\"conversations\": [{\"from\", "
    "\"value\"}]} and Alpaca's\n"
    "              {\"instruction\", \"input\", \"output\"}\n"
    "  .json       a list of such records, or one; a chat that /save of 'weft chat' saved is one\n"
    "  .u16 .u32   token ids, little-endian; the end-of-text id ends a document\n"
    "Texts are packed into batches and never see each other. In DIR appear model.gguf (F32; 'weft quantize' makes it "
    "small), checkpoint.gguf,\n"
    "loss.jsonl (a line per step) and loss.svg. The same data, options and seed give the same model on the same\n"
    "kind of processor, whatever the number of threads. Ctrl-C saves and stops; --resume goes on.\n"
    "Before the first step there is nothing to save: it stops at once.";

/* The table, its command's and what all trainings have. */
static void train_table(training *t, option_spec *table)
{
    weft_train_params *p = &t->p;
    const option_spec own[] = {
        {"data", 'd', OPT_LIST, &t->data, "F", "the same as DATA; may be given several times", 0, 0, NULL},
        {"tokenizer", 0, OPT_TEXT, &p->tokenizer, "F", "for a fresh model: a GGUF file with a vocabulary", 0, 0, NULL},
        {"base", 0, OPT_TEXT, &p->base, "MODEL", "train this model further, instead of a fresh one", 0, 0, NULL},
        {"layers", 0, OPT_INT, &p->n_layers, "N", "(6)", 1, 512, &t->shape},
        {"width", 0, OPT_INT, &p->d_model, "N",
         "numbers per token (256); multiples of 256 suit every type of 'weft quantize'", 8, 16384, &t->shape},
        {"ff", 0, OPT_INT, &p->d_ff, "N", "numbers inside a feed-forward layer (768)", 8, 65536, &t->shape},
        {"heads", 0, OPT_INT, &p->n_heads, "N", "attention heads (4)", 1, 1024, &t->shape},
        {"kv-heads", 0, OPT_INT, &p->n_kv_heads, "N", "heads of keys and values (2); a divisor of --heads", 1, 1024,
         &t->shape},
        {"head-dim", 0, OPT_INT, &p->head_dim, "N", "numbers per head (width / heads)", 2, 1024, &t->shape},
        {"rope-base", 0, OPT_FLOAT, &p->rope_base, "X", "of the positions (10000)", OPTION_ABOVE_0, 1e9, &t->shape},
        {"untied", 0, OPT_FLAG, &t->untied, NULL, "an output matrix of its own, instead of the embedding", 0, 0,
         &t->shape},
    };
    const int n = sizeof own / sizeof *own;
    for (int i = 0; i < n; i++) table[i] = own[i];
    training_options(t, table, n);
}

static int train_finish(training *t)
{
    weft_train_params *p = &t->p;
    if (!p->base == !p->tokenizer) {
        fprintf(stderr, "weft train: give --tokenizer F for a fresh model, or --base MODEL\n");
        return EXIT_USAGE;
    }
    if (p->base && t->shape) {
        fprintf(stderr, "weft train: the shape of --base is what it is: --layers, --width, --ff, --heads, --kv-heads, "
                        "--head-dim, --rope-base "
                        "and --untied are for a fresh model; leave them out\n");
        return EXIT_USAGE;
    }
    p->tied = !t->untied;
    return EXIT_DONE;
}

const training_kind training_of_models = {"train", training_init, train_table, train_finish};

int cmd_train(int argc, char **argv)
{
    training t;
    option_spec options[TRAINING_OPTIONS];
    int first;
    training_init(&t);
    train_table(&t, options);
    const option_spec of_stages = {
        "config",
        0,
        OPT_TEXT,
        &t.config,
        "F.yaml",
        "a file of stages that go on from each other, each this command or 'adapter train' with its options; beside it "
        "only --out, --resume, --threads and --json",
        0,
        0,
        NULL,
        NULL};
    int end = 0;
    while (options[end].name) end++;
    options[end] = of_stages;
    options[end + 1] = (option_spec){0};
    const command_spec spec = {
        "train",
        "DATA... --out DIR [options]\n  weft train --config F.yaml --out DIR [--resume]",
        ABOUT,
        "  weft train-tokenizer stories.txt -o vocab.gguf\n"
        "  weft train stories.txt --tokenizer vocab.gguf --out run --layers 6 --width 256 --heldout more.txt\n"
        "  weft train --resume stories.txt --tokenizer vocab.gguf --out run --layers 6 --width 256 --heldout more.txt\n"
        "  weft run run/model.gguf \"Once upon a time\"\n",
        options,
        0,
        LIST_MAX - 1};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (t.config) return training_stages(&t, &spec, argc - first);
    for (; first < argc && t.data.n < LIST_MAX; first++) t.data.items[t.data.n++] = argv[first];
    if ((rc = train_finish(&t))) return rc;
    return training_run(&t, "train");
}
