// SPDX-License-Identifier: Apache-2.0
/* main.c: weft COMMAND ...: finds the command and hands over. Results go to stdout, everything else to stderr. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "faults.h"
#include "near.h"
#include "options.h"
#include "terminal.h"
#include "weft/weft.h"

static const struct {
    const char *name, *about;
    int (*run)(int argc, char **argv);
} COMMANDS[] = {
    {"run", "continue a text with a model", cmd_run},
    {"chat", "a conversation with a model", cmd_chat},
    {"compare", "one prompt under several adapters, in one batch", cmd_compare},
    {"serve", "a model over HTTP, for many at once", cmd_serve},
    {"top", "what a running server does", cmd_top},
    {"info", "what a model file holds: metadata, tensors, sizes", cmd_info},
    {"tokenize", "text to token ids", cmd_tokenize},
    {"eval", "numbers for researchers: logits, perplexity", cmd_eval},
    {"bench", "how fast, and how near to the hardware's limit", cmd_bench},
    {"convert", "a Hugging Face folder to a GGUF file", cmd_convert},
    {"compile", "a model packed for this machine: it starts at once", cmd_compile},
    {"adapter", "adapters: what they hold, learning, other formats, merging", cmd_adapter},
    {"quantize", "a model file in fewer bits", cmd_quantize},
    {"imatrix", "which inputs of a model's matrices matter", cmd_imatrix},
    {"train", "a model from text", cmd_train},
    {"train-tokenizer", "a vocabulary from text", cmd_train_tokenizer},
    {"pull", "fetch a model from Hugging Face", cmd_pull},
    {"list", "the models that were pulled", cmd_list},
    {"rm", "remove pulled models", cmd_rm},
    {"devices", "what can compute here", cmd_devices},
};
enum { N_COMMANDS = sizeof COMMANDS / sizeof *COMMANDS };

static void usage(FILE *f)
{
    fprintf(f, "weft %s: runs large language models on the machine you have\n\nusage: weft COMMAND [options]\n\n",
            weft_version());
    for (int i = 0; i < N_COMMANDS; i++) fprintf(f, "  %-16s %s\n", COMMANDS[i].name, COMMANDS[i].about);
    if (!WEFT_WITH_HUB)
        fprintf(f, "\nnot in this build: pull, list, rm and top (-DWEFT_HUB=ON, which needs libcurl)\n");
    if (!WEFT_WITH_SERVER) fprintf(f, "\nnot in this build: serve (-DWEFT_SERVER=ON)\n");
    fprintf(f, "\n'weft COMMAND --help' and 'weft help COMMAND' explain each.\n"
               "\nEnvironment: WEFT_THREADS (as --threads), WEFT_CPU (ref, avx2, avx512, ...: no more than this tier), "
               "WEFT_TUNE (generic,\n"
               "zen4: as that microarchitecture), WEFT_EXACT (1: BF16 weights in float32), WEFT_LOG (error, warn, info "
               "or debug),\n"
               "WEFT_PLUGIN_PATH (folders of plugins for --provider), WEFT_CACHE (of pulled models), and\n"
               "those of 'weft pull'; docs/howto/environment.md has all.\n");
}

static const char *command_name(const void *arg, size_t i)
{
    (void)arg;
    return i < N_COMMANDS ? COMMANDS[i].name : NULL;
}

static int unknown(const char *word)
{
    const char *foreign = near_foreign_command(word), *meant = near_match(word, command_name, NULL);
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
    for (int i = 0; i < N_COMMANDS; i++)
        if (!strcmp(argv[0], COMMANDS[i].name)) return COMMANDS[i].run(argc > 1 ? 3 : 2, asked);
    return unknown(argv[0]);
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
    if (!strcmp(argv[1], "--version")) {
        printf("weft %s\n", weft_version());
        return EXIT_DONE;
    }
    for (int i = 0; i < N_COMMANDS; i++)
        if (!strcmp(argv[1], COMMANDS[i].name)) return COMMANDS[i].run(argc - 1, argv + 1);
    return unknown(argv[1]);
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
