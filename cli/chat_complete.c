// SPDX-License-Identifier: Apache-2.0
/* chat_complete.c: what Tab makes of a line at the prompt of weft chat (chat.h): commands, adapters, files. */
#include "chat.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

enum { ENTRIES_MAX = 100000 }; /* of a folder that are looked at */

int chat_expand(const char *path, char out[PATH_MAX])
{
    const char *home = getenv("HOME");
    const int at_home = path[0] == '~' && path[1] == '/' && home && home[0];
    const int n = snprintf(out, PATH_MAX, "%s%s", at_home ? home : "", at_home ? path + 1 : path);
    return n >= 0 && n < PATH_MAX;
}

static int is_folder(const char *folder, const struct dirent *entry)
{
    char path[PATH_MAX];
    struct stat s;
    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK) return entry->d_type == DT_DIR;
    const int n = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    return n > 0 && (size_t)n < sizeof path && !stat(path, &s) && S_ISDIR(s.st_mode);
}

/* Files whose path begins with what was typed, spelled as it was typed; names that no line can hold are left out. */
static void complete_files(const char *typed, size_t n, completions *out)
{
    char begun[PATH_MAX], folder[PATH_MAX], item[2 * PATH_MAX];
    if (n >= sizeof begun) return;
    memcpy(begun, typed, n);
    begun[n] = 0;
    const char *slash = strrchr(begun, '/'), *name = slash ? slash + 1 : begun;
    const size_t n_name = strlen(name);
    char place[PATH_MAX];
    snprintf(place, sizeof place, "%.*s", slash ? (int)(slash + 1 - begun) : 2, slash ? begun : "./");
    DIR *d = chat_expand(place, folder) ? opendir(folder) : NULL;
    if (!d) return;
    const struct dirent *entry;
    for (int i = 0; i < ENTRIES_MAX && (entry = readdir(d)); i++) {
        const char *e = entry->d_name;
        if (strncmp(e, name, n_name) || (e[0] == '.' && name[0] != '.') || !strcmp(e, ".") || !strcmp(e, ".."))
            continue;
        if (!weft__utf8_valid(e, strlen(e)) || strchr(e, '\n')) continue;
        snprintf(item, sizeof item, "%.*s%s%s", (int)(name - begun), begun, e, is_folder(folder, entry) ? "/" : "");
        completions_add(out, item);
    }
    closedir(d);
}

static void complete_adapters(const chat *c, const char *word, size_t n, completions *out)
{
    for (int i = 0; i < c->n_adapters; i++)
        if (!strncmp(c->adapters[i].option.name, word, n)) completions_add(out, c->adapters[i].option.name);
    if (n <= 4 && !strncmp("none", word, n)) completions_add(out, "none");
}

static void complete_commands(const char *word, size_t n, completions *out)
{
    char item[32];
    const char *name;
    for (int i = 0; (name = chat_command_name(i)); i++)
        if (!strncmp(name, word, n)) {
            snprintf(item, sizeof item, "%s ", name);
            completions_add(out, item);
        }
}

static int is_word(const char *line, size_t n, const char *word)
{
    return n == strlen(word) && !memcmp(line, word, n);
}

void chat_complete(void *arg, const char *line, size_t at, completions *out)
{
    const chat *c = arg;
    const char *space = memchr(line, ' ', at);
    if (at == 0 || line[0] != '/') return;
    if (!space) {
        complete_commands(line, at, out);
        return;
    }
    const size_t n_command = (size_t)(space - line);
    out->from = n_command + strspn(space, " ");
    if (out->from > at) out->from = at;
    if (is_word(line, n_command, "/save") || is_word(line, n_command, "/load"))
        complete_files(line + out->from, at - out->from, out);
    if (!is_word(line, n_command, "/adapter")) return;
    const char *equals = memchr(line + out->from, '=', at - out->from), *last = memrchr(line, ' ', at);
    out->from = (size_t)((equals ? equals : last) + 1 - line);
    if (equals) complete_files(line + out->from, at - out->from, out);
    else complete_adapters(c, line + out->from, at - out->from, out);
}
