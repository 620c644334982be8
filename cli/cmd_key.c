// SPDX-License-Identifier: Apache-2.0
/* cmd_key.c: weft key new, weft key hash: keys of a server, and what weft.yaml and key files keep of them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/sha256.h"
#include "commands.h"
#include "kinds.h"
#include "options.h"
#include "terminal.h"

enum { KEY_BYTES = 24, KEY_MAX = 1000 };

static weft_status hash_of(const char *key, char hex[65], weft_error *err)
{
    weft__sha256 h = {0};
    weft_status st = weft__sha256_begin(&h, err);
    if (!st) st = weft__sha256_add(&h, key, strlen(key), err);
    if (!st) weft__sha256_end(&h, hex);
    else weft__sha256_free(&h);
    return st;
}

/* ---- new ---- */

static const char *name, *role = "user";

static const option_spec NEW_OPTIONS[] = {
    {"name", 0, OPT_TEXT, &name, "NAME", "whose it is, in /metrics and messages", 0, 0, NULL},
    {"role", 0, OPT_TEXT, &role, "ROLE", "user or admin (user)", 0, 0, NULL, "user admin"},
    {0},
};

static const command_spec NEW_SPEC = {
    "key new",
    "[options]",
    "Makes a key of 192 random bits and prints it, which nothing keeps, and behind it the lines that `keys` of\n"
    "weft.yaml wants: they hold its SHA-256.",
    "  weft key new --name anna\n",
    NEW_OPTIONS,
    0,
    0};

static int run_new(int argc, char **argv)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    unsigned char bytes[KEY_BYTES];
    char key[8 + 2 * KEY_BYTES], hex[65];
    weft_error err = {0};
    int first, n = 0;
    const int rc = options_parse(&NEW_SPEC, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (name && (!*name || strlen(name) > 31 || strspn(name, allowed) != strlen(name))) {
        fprintf(stderr, "weft key new: --name %s: must have 1 to 31 letters, digits, '.', '_' and '-'\n", name);
        return EXIT_USAGE;
    }
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        weft_fail(&err, WEFT_IO, "no random bytes: %s", strerror(errno));
        return report("key new", &err);
    }
    n = snprintf(key, sizeof key, "weft-");
    for (int i = 0; i < KEY_BYTES; i++) n += snprintf(key + n, sizeof key - (size_t)n, "%02x", bytes[i]);
    if (hash_of(key, hex, &err)) return report("key new", &err);
    printf("%s\n\n  - name: %s\n    hash: sha256:%s\n    role: %s\n", key, name ? name : "NAME", hex, role);
    return EXIT_DONE;
}

/* ---- hash ---- */

static const option_spec HASH_OPTIONS[] = {{0}};

static const command_spec HASH_SPEC = {
    "key hash",
    "< FILE",
    "Reads a key, the first line of standard input, and prints sha256: and the digits of its SHA-256.",
    "  printf '%s' \"$KEY\" | weft key hash\n",
    HASH_OPTIONS,
    0,
    0};

static int run_hash(int argc, char **argv)
{
    char key[KEY_MAX + 2], hex[65];
    weft_error err = {0};
    int first;
    const int rc = options_parse(&HASH_SPEC, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    key[0] = 0;
    if (fgets(key, sizeof key, stdin)) key[strcspn(key, "\r\n")] = 0;
    const size_t n = strlen(key);
    if (n < 8 || n > KEY_MAX) {
        fprintf(stderr, "weft key hash: a key has 8 to %d characters, in the first line of standard input\n", KEY_MAX);
        return EXIT_USAGE;
    }
    if (hash_of(key, hex, &err)) return report("key hash", &err);
    printf("sha256:%s\n", hex);
    return EXIT_DONE;
}

static const command_kind KINDS[] = {
    {"new", "a key, and the lines of it for weft.yaml", run_new, NULL, 0},
    {"hash", "what weft.yaml keeps of a key", run_hash, NULL, 0},
};
const kind_list KEY_KINDS = {"key", "KIND [options]", "Keys of a server.", KINDS, sizeof KINDS / sizeof *KINDS};

int cmd_key(int argc, char **argv)
{
    return kinds_run(&KEY_KINDS, argc, argv);
}
