// SPDX-License-Identifier: Apache-2.0
/* auth.c: API keys. Only their SHA-256 is kept; a comparison looks at every byte of every hash, whatever it finds. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sha256.h"
#include "server/server.h"

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* 64 hexadecimal digits and nothing after them. */
static int read_hex(const char *text, unsigned char out[32])
{
    if (strlen(text) != 64) return 0;
    for (int i = 0; i < 32; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) return 0;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return 1;
}

static weft_status hash(const char *key, unsigned char out[32], weft_error *err)
{
    weft__sha256 h = {0};
    char hex[65];
    weft_status st = weft__sha256_begin(&h, err);
    if (!st) st = weft__sha256_add(&h, key, strlen(key), err);
    if (st) {
        weft__sha256_free(&h);
        return st;
    }
    weft__sha256_end(&h, hex);
    read_hex(hex, out);
    return WEFT_OK;
}

/* Appends it, by its hash. */
static weft_status auth_add(weft__server_keys *keys, const char *key, weft__server_key *one, weft_error *err)
{
    static const char prefix[] = "sha256:";
    if (!strncmp(key, prefix, sizeof prefix - 1)) {
        if (!read_hex(key + sizeof prefix - 1, one->hash))
            return weft_fail(err, WEFT_ARGUMENT, "API key: sha256: wants 64 hexadecimal digits");
    } else {
        if (strlen(key) < 8) return weft_fail(err, WEFT_ARGUMENT, "API key: shorter than 8 characters");
        weft_status st = hash(key, one->hash, err);
        if (st) return st;
    }
    if (!weft__grow(&keys->items, &keys->capacity, keys->n + 1, sizeof *keys->items))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for API keys");
    keys->items[keys->n++] = *one;
    return WEFT_OK;
}

weft_status weft__server_keys_add_hash(weft__server_keys *keys, const char *hex, weft__server_key *one, weft_error *err)
{
    if (!read_hex(hex, one->hash)) return weft_fail(err, WEFT_ARGUMENT, "a hash wants 64 hexadecimal digits");
    if (!weft__grow(&keys->items, &keys->capacity, keys->n + 1, sizeof *keys->items))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for API keys");
    keys->items[keys->n++] = *one;
    return WEFT_OK;
}

weft_status weft__server_keys_add(weft__server_keys *keys, const char *key, int is_admin, weft_error *err)
{
    return auth_add(keys, key, &(weft__server_key){.is_admin = is_admin}, err);
}

/* What stands behind a key in its line: "admin", "name=NAME". */
static weft_status read_word(const char *word, weft__server_key *one, weft_error *err)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (!strcmp(word, "admin")) {
        one->is_admin = 1;
        return WEFT_OK;
    }
    if (strncmp(word, "name=", 5))
        return weft_fail(err, WEFT_ARGUMENT, "behind a key stand 'admin', 'name=NAME' or a comment, not '%.40s'", word);
    size_t n = strlen(word += 5);
    if (!n || n >= sizeof one->name || strspn(word, allowed) != n)
        return weft_fail(err, WEFT_ARGUMENT, "name=%.40s: must have 1 to %zu letters, digits, '.', '_' and '-'", word,
                         sizeof one->name - 1);
    memcpy(one->name, word, n + 1);
    return WEFT_OK;
}

static weft_status read_line(weft__server_keys *keys, char *line, weft_error *err)
{
    static const char blanks[] = " \t\r\v\f";
    weft__server_key one = {0};
    weft_status st = WEFT_OK;
    char *rest, *key = strtok_r(line, blanks, &rest);
    for (char *word; !st && (word = strtok_r(NULL, blanks, &rest));) st = read_word(word, &one, err);
    return st ? st : auth_add(keys, key, &one, err);
}

/* A line without its comment and the space around it. A comment begins where a word could: a key may have '#' within
 * it. */
static char *trim(char *line)
{
    char *p = line;
    while (*p && !(*p == '#' && (p == line || isspace((unsigned char)p[-1])))) p++;
    *p = 0;
    while (isspace((unsigned char)*line)) line++;
    for (size_t n = strlen(line); n && isspace((unsigned char)line[n - 1]); n--) line[n - 1] = 0;
    return line;
}

weft_status weft__server_keys_read(weft__server_keys *keys, const char *path, weft_error *err)
{
    char line[1024];
    weft_status st = WEFT_OK;
    size_t before = keys->n;
    FILE *f = fopen(path, "r");
    if (!f) return weft_fail(err, WEFT_IO, "API key file %s: %s", path, strerror(errno));
    for (int number = 1; !st && fgets(line, sizeof line, f); number++) {
        if (!strchr(line, '\n') && !feof(f)) { /* its rest would be read as a line: a key that was not chosen */
            st = weft_fail(err, WEFT_ARGUMENT, "%s, line %d: longer than %zu bytes, or with a NUL byte", path, number,
                           sizeof line - 2);
            break;
        }
        char *text = trim(line);
        if (!*text) continue;
        st = read_line(keys, text, err);
        if (st) weft_fail_within(err, st, "%s, line %d", path, number);
    }
    if (!st && ferror(f)) st = weft_fail(err, WEFT_IO, "API key file %s: %s", path, strerror(errno));
    fclose(f);
    if (!st && keys->n == before) st = weft_fail(err, WEFT_ARGUMENT, "API key file %s: no key in it", path);
    return st;
}

weft_status weft__server_tenant_of_user(const char *user, char tenant[64], weft_error *err)
{
    unsigned char h[32];
    if (strlen(user) <= 50) {
        snprintf(tenant, 64, "user-%s", user);
        return WEFT_OK;
    }
    weft_status st = hash(user, h, err);
    if (st) return st;
    int n = snprintf(tenant, 64, "user-sha256:");
    for (int i = 0; i < 20; i++) n += snprintf(tenant + n, 64 - (size_t)n, "%02x", h[i]);
    return WEFT_OK;
}

void weft__server_keys_free(weft__server_keys *keys)
{
    weft__free(keys->items);
    *keys = (weft__server_keys){0};
}

static void name_tenant(const unsigned char h[32], char tenant[32])
{
    snprintf(tenant, 32, "key-%02x%02x%02x%02x%02x%02x", h[0], h[1], h[2], h[3], h[4], h[5]);
}

int weft__server_keys_check(const weft__server_keys *keys, const char *key, weft__server_caller *who)
{
    unsigned char given[32];
    unsigned found = 0;
    *who = (weft__server_caller){0};
    if (hash(key, given, NULL)) return 0;
    for (size_t i = 0; i < keys->n; i++) {
        const weft__server_key *one = &keys->items[i];
        volatile unsigned char differs = 0;
        for (int k = 0; k < 32; k++) differs = (unsigned char)(differs | (one->hash[k] ^ given[k]));
        if (differs) continue; /* the same key may stand there twice: it has what any of them has */
        found = 1;
        who->is_admin |= one->is_admin;
        if (one->name[0]) memcpy(who->label, one->name, sizeof one->name);
        if (one->member) who->member = one->member;
    }
    name_tenant(given, who->tenant);
    if (!who->label[0]) memcpy(who->label, who->tenant, sizeof who->tenant);
    return (int)found;
}

int weft__server_keys_have(const weft__server_keys *keys, const char *tenant)
{
    char one[32];
    for (size_t i = 0; i < keys->n; i++) {
        name_tenant(keys->items[i].hash, one);
        if (!strcmp(one, tenant)) return 1;
    }
    return 0;
}
