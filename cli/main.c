// SPDX-License-Identifier: Apache-2.0
/* main.c: weft COMMAND ...: finds the command and hands over. Results go to stdout, everything else to stderr. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "about.h"
#include "commands.h"
#include "faults.h"
#include "kinds.h"
#include "near.h"
#include "options.h"
#include "terminal.h"
#include "weft/weft.h"

static const command_kind ITEMS[] = {
    {"run", "continue a text with a model", cmd_run, NULL, 0},
    {"chat", "a conversation with a model", cmd_chat, NULL, 0},
    {"compare", "one prompt under several adapters, in one batch", cmd_compare, NULL, 0},
    {"serve", "a model over HTTP, for many at once", cmd_serve, NULL, !WEFT_WITH_SERVER},
    {"learn", "what a server keeps to learn from", cmd_learn, &LEARN_KINDS, !WEFT_WITH_LEARN},
    {"log", "the witness log of it", cmd_log, &LOG_KINDS, 0},
    {"key", "keys of a server, and what it keeps of them", cmd_key, &KEY_KINDS, 0},
    {"top", "what a running server does", cmd_top, NULL, !WEFT_WITH_HUB},
    {"info", "what a model file holds: metadata, tensors, sizes", cmd_info, NULL, 0},
    {"tokenize", "text to token ids", cmd_tokenize, NULL, 0},
    {"eval", "numbers for researchers: logits, perplexity", cmd_eval, &EVAL_KINDS, 0},
    {"bench", "how fast, and how near to the hardware's limit", cmd_bench, NULL, 0},
    {"convert", "a Hugging Face folder to a GGUF file", cmd_convert, NULL, 0},
    {"compile", "a model packed for this machine: it starts at once", cmd_compile, NULL, 0},
    {"adapter", "adapters: what they hold, learning, other formats, merging", cmd_adapter, &ADAPTER_KINDS, 0},
    {"quantize", "a model file in fewer bits", cmd_quantize, NULL, 0},
    {"imatrix", "which inputs of a model's matrices matter", cmd_imatrix, NULL, 0},
    {"train", "a model from text", cmd_train, NULL, 0},
    {"train-tokenizer", "a vocabulary from text", cmd_train_tokenizer, NULL, 0},
    {"pull", "fetch a model from Hugging Face", cmd_pull, NULL, !WEFT_WITH_HUB},
    {"push", "a model or an adapter to Hugging Face", cmd_push, NULL, !WEFT_WITH_HUB},
    {"list", "the models that were pulled", cmd_list, NULL, !WEFT_WITH_HUB},
    {"rm", "remove pulled models", cmd_rm, NULL, !WEFT_WITH_HUB},
    {"doctor", "what this machine has, what helps, what is missing", cmd_doctor, NULL, 0},
    {"fit", "which quantization, context and slots fit here", cmd_fit, NULL, 0},
    {"devices", "what can compute here", cmd_devices, NULL, 0},
    {"completion", "what a shell completes behind weft", cmd_completion, NULL, 0},
    {"manual", "the manual pages, as files", cmd_manual, NULL, 0},
};
const kind_list COMMANDS = {"", "COMMAND [options]", "runs large language models on the machine you have", ITEMS,
                            sizeof ITEMS / sizeof *ITEMS};

const char ENVIRONMENT[] =
    "WEFT_THREADS (as --threads), WEFT_CPU (ref, avx2, avx512, ...: no more than this tier), WEFT_TUNE (generic,\n"
    "zen4: as that microarchitecture), WEFT_EXACT (1: BF16 weights in float32), WEFT_LOG (error, warn, info or "
    "debug),\n"
    "WEFT_PLUGIN_PATH (folders of plugins for --provider), WEFT_CACHE (of pulled models), and\n"
    "those of 'weft pull'; docs/howto/environment.md has all.\n";

static void usage(FILE *f)
{
    fprintf(f, "weft %s: %s\n\nusage: weft %s\n\n", weft_version(), COMMANDS.about, COMMANDS.synopsis);
    for (int i = 0; i < COMMANDS.n; i++) fprintf(f, "  %-16s %s\n", ITEMS[i].name, ITEMS[i].about);
    if (!WEFT_WITH_HUB)
        fprintf(f, "\nnot in this build: pull, push, list, rm and top (-DWEFT_HUB=ON, which needs libcurl)\n");
    if (!WEFT_WITH_SERVER) fprintf(f, "\nnot in this build: serve (-DWEFT_SERVER=ON)\n");
    else if (!WEFT_WITH_CONFIG)
        fprintf(f, "\nnot in this build: weft.yaml of weft serve, stages of weft train, task files of weft eval in "
                   "YAML (-DWEFT_CONFIG=ON, which needs libyaml)\n");
    if (!WEFT_WITH_LEARN) fprintf(f, "\nnot in this build: learn (-DWEFT_LEARN=ON, which needs libsqlite3)\n");
    fprintf(f, "\n'weft COMMAND --help' and 'weft help COMMAND' explain each.\n\nEnvironment: %s", ENVIRONMENT);
}

static int unknown(const char *word)
{
    const char *foreign = near_foreign_command(word), *meant = kind_near(&COMMANDS, word);
    if (foreign) fprintf(stderr, "weft: there is no command '%s': %s\n", word, foreign);
    else if (meant) fprintf(stderr, "weft: there is no command '%s'; did you mean 'weft %s'?\n", word, meant);
    else fprintf(stderr, "weft: there is no command '%s'\n", word);
    if (foreign || meant) fprintf(stderr, "'weft --help' lists all.\n");
    else usage(stderr);
    return EXIT_USAGE;
}

/* COMMAND [KIND], as if --help stood behind it. */
static int help(int argc, char **argv)
{
    static char option[] = "--help";
    char *asked[] = {argv[0], argc > 1 ? argv[1] : option, argc > 1 ? option : NULL, NULL};
    const command_kind *command = kind_find(&COMMANDS, argv[0]);
    return command ? command->run(argc > 1 ? 3 : 2, asked) : unknown(argv[0]);
}

/* A file that is opened would take the place of a standard stream that is closed, and what is printed would go into it.
 * What takes its place here can be neither read nor written. */
static void keep_standard_streams(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) (void)!open("/dev/null", fd ? O_RDONLY : O_WRONLY);
}

static int run_command(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "help") && argc > 2 && argv[2][0] != '-') return help(argc - 2, argv + 2);
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return EXIT_DONE;
    }
    if (!strcmp(argv[1], "--version")) return about_version();
    const command_kind *command = kind_find(&COMMANDS, argv[1]);
    return command ? command->run(argc - 1, argv + 1) : unknown(argv[1]);
}

int main(int argc, char **argv)
{
    keep_standard_streams();
    faults_explain();
    signals_clean_up();
    signal(SIGXFSZ, SIG_IGN); /* a file that becomes too large is an error that names it */
    const char *command = argc > 1 ? argv[1] : "";
    int rc = run_command(argc, argv);
    if (!fflush(stdout) && !ferror(stdout)) return rc;
    fprintf(stderr, "weft%s%s: writing to standard output failed\n", command[0] && command[0] != '-' ? " " : "",
            command[0] != '-' ? command : "");
    return EXIT_FAILED;
}
