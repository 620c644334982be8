// SPDX-License-Identifier: Apache-2.0
/* cmd_log.c: weft log verify, prove and check: the witness log of what a server keeps to learn from
 * (learn/witness.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "commands.h"
#include "kinds.h"
#include "learn/witness.h"
#include "options.h"
#include "terminal.h"

static const char *key_file, *against, *id, *dir;
static int as_json;

#define KEY_OPTION                                                                                                     \
    {                                                                                                                  \
        "key", 0, OPT_TEXT, &key_file, "FILE", "the log's public key, as you kept it (DIR/log/public)", 0, 0, NULL     \
    }

/* A file of at most 1 MiB, '-': standard input. */
static weft_status read_given(const char *path, weft__strbuf *out, weft_error *err)
{
    enum { MOST = 1 << 20 };
    char bytes[4096];
    size_t n;
    FILE *f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!f) return weft_fail(err, WEFT_NOT_FOUND, "%s cannot be read", path);
    while (out->len <= MOST && (n = fread(bytes, 1, sizeof bytes, f))) weft__strbuf_put(out, bytes, n);
    const int is_bad = ferror(f);
    if (f != stdin) fclose(f);
    if (out->failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %s", path);
    if (is_bad || out->len > MOST) return weft_fail(err, WEFT_IO, "%s cannot be read, or is too long", path);
    return WEFT_OK;
}

/* The key that is given, or else the one in the folder. *out NULL where there is none. */
static weft_status read_key(const char *in_dir, weft__learn_vkey *key, weft_error *err)
{
    weft__strbuf text = {0};
    if (!key_file) return weft__learn_witness_key(in_dir, key, err);
    weft_status st = read_given(key_file, &text, err);
    if (!st) st = weft__learn_vkey_read(text.data ? text.data : "", text.len, key, err);
    weft__strbuf_free(&text);
    return st;
}

/* ---- verify ---- */

static const option_spec VERIFY_OPTIONS[] = {
    KEY_OPTION,
    {"against", 0, OPT_TEXT, &against, "FILE", "a checkpoint that you kept: the log must go on from it", 0, 0, NULL},
    {"json", 0, OPT_FLAG, &as_json, NULL, "a line of JSON", 0, 0, NULL},
    {0},
};
static const command_spec VERIFY_SPEC = {
    "log verify",
    "DIR [options]",
    "Reads the witness log in DIR (weft serve --learn DIR) and holds every entry and checkpoint against its hashes "
    "and\n"
    "signatures; names the first entry that was changed. Prints the last checkpoint: keep it elsewhere, for only who\n"
    "has a later one finds out that the log was cut. May run beside the server.",
    "  weft log verify learned > kept.checkpoint\n  weft log verify learned --against kept.checkpoint\n",
    VERIFY_OPTIONS,
    1,
    1};

static int run_verify(int argc, char **argv)
{
    weft_error err = {0};
    weft__strbuf kept = {0}, last = {0};
    weft__learn_vkey key;
    weft__learn_findings f = {.first_bad = -1, .last_bad = -1};
    int first, rc = options_parse(&VERIFY_SPEC, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    weft_status st = read_key(argv[first], &key, &err);
    if (!st && against) st = read_given(against, &kept, &err);
    if (!st) st = weft__learn_witness_verify(argv[first], &key, kept.data, kept.len, &f, &err);
    if (as_json)
        printf("{\"ok\":%s,\"entries\":%" PRIu64 ",\"signed\":%" PRIu64 ",\"checkpoints\":%" PRIu64
               ",\"first_bad\":%" PRId64 ",\"last_bad\":%" PRId64 "}\n",
               st ? "false" : "true", f.n_entries, f.n_signed, f.n_checkpoints, f.first_bad, f.last_bad);
    else if (!st) {
        fprintf(stderr, "weft log verify: all of %" PRIu64 " entries are as signed, under %" PRIu64 " checkpoints%s\n",
                f.n_signed, f.n_checkpoints, f.n_entries > f.n_signed ? "; more are not signed yet" : "");
        if (f.n_checkpoints) st = weft__learn_witness_checkpoint(argv[first], &last, &err);
        if (!st) fwrite(last.data, 1, last.len, stdout);
    }
    weft__strbuf_free(&kept);
    weft__strbuf_free(&last);
    return st ? report("log verify", &err) : EXIT_DONE;
}

/* ---- prove ---- */

static const option_spec PROVE_OPTIONS[] = {
    {"id", 0, OPT_TEXT, &id, "ID", "the last entry about this request", 0, 0, NULL},
    {0},
};
static const command_spec PROVE_SPEC = {
    "log prove",
    "DIR [NUMBER] [options]",
    "Prints a proof that an entry, by its number from 0 or the id of a request, is in the witness log under its last\n"
    "checkpoint, in the form of C2SP's tlog-proof@v1; the entry stands in it as `extra`.",
    "  weft log prove learned --id chatcmpl-0123 > mine.tlog-proof\n",
    PROVE_OPTIONS,
    1,
    2};

static int run_prove(int argc, char **argv)
{
    weft_error err = {0};
    weft__strbuf proof = {0};
    int first, rc = options_parse(&PROVE_SPEC, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    const char *number = first + 1 < argc ? argv[first + 1] : NULL;
    if (!number == !id || (number && (!*number || strspn(number, "0123456789") != strlen(number)))) {
        fprintf(stderr, "weft log prove: which entry: its number, or --id\n");
        return EXIT_USAGE;
    }
    weft_status st = weft__learn_witness_prove(argv[first], number ? strtoull(number, NULL, 10) : 0, id, &proof, &err);
    if (!st) fwrite(proof.data, 1, proof.len, stdout);
    weft__strbuf_free(&proof);
    return st ? report("log prove", &err) : EXIT_DONE;
}

/* ---- check ---- */

static const option_spec CHECK_OPTIONS[] = {
    KEY_OPTION,
    {"log", 0, OPT_TEXT, &dir, "DIR", "by the key of this folder, instead", 0, 0, NULL},
    {0},
};
static const command_spec CHECK_SPEC = {
    "log check",
    "PROOF --key FILE",
    "Checks a proof of weft log prove ('-': standard input) by the log's public key, without the log, and prints the\n"
    "entry that it is of.",
    "  weft log check mine.tlog-proof --key public\n",
    CHECK_OPTIONS,
    1,
    1};

static int run_check(int argc, char **argv)
{
    weft_error err = {0};
    weft__strbuf proof = {0};
    weft__learn_vkey key;
    weft__learn_proven proven = {0};
    int first, rc = options_parse(&CHECK_SPEC, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!key_file == !dir) {
        fprintf(stderr, "weft log check: by which key: --key FILE, or --log DIR\n");
        return EXIT_USAGE;
    }
    weft_status st = read_key(dir, &key, &err);
    if (!st) st = read_given(argv[first], &proof, &err);
    if (!st) st = weft__learn_proof_check(proof.data ? proof.data : "", proof.len, &key, &proven, &err);
    if (!st) {
        fprintf(stderr, "weft log check: entry %" PRIu64 " of %" PRIu64 " of the log %s\n", proven.index,
                proven.checkpoint.size, key.name);
        printf("%s\n", proven.entry.data ? proven.entry.data : "");
    }
    weft__strbuf_free(&proven.entry);
    weft__strbuf_free(&proof);
    return st ? report("log check", &err) : EXIT_DONE;
}

static const command_kind KINDS[] = {
    {"verify", "is all of the log what was signed", run_verify, NULL, 0},
    {"prove", "a proof that an entry is in it", run_prove, NULL, 0},
    {"check", "does such a proof hold", run_check, NULL, 0},
};
const kind_list LOG_KINDS = {"log", "KIND [options]", "The witness log of a server.", KINDS,
                             sizeof KINDS / sizeof *KINDS};

int cmd_log(int argc, char **argv)
{
    return kinds_run(&LOG_KINDS, argc, argv);
}
