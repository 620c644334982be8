/* outputs.c: see outputs.h. */
#include "outputs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "weft/weft.h"

int output_is_input(const char *command, const char *out, const char *in)
{
    char place[4096];
    struct stat a, b;
    if (!in || stat(out, &a)) return 0;
    if (stat(in, &b) && (weft_resolve_model(in, place, sizeof place, NULL) || stat(place, &b)))
        return 0; /* its reader will say so */
    if (a.st_dev != b.st_dev || a.st_ino != b.st_ino) return 0;
    fprintf(stderr, "weft %s: %s is what is read (%s), and would be written over; give another name\n", command, out, in);
    return 1;
}

static int is_adapter(const weft_file *file)
{
    char type[16];
    size_t n;
    weft_meta_info m;
    for (int64_t i = 0; i < weft_file_n_meta(file); i++)
        if (!weft_file_meta(file, i, &m, NULL) && !strcmp(m.key, "general.type"))
            return !weft_file_meta_json(file, i, 1, type, sizeof type, &n, NULL) && !strcmp(type, "\"adapter\"");
    return 0;
}

int output_is_another(const char *command, const char *out, int adapter)
{
    struct stat s;
    weft_file *file = NULL;
    if (stat(out, &s) || !S_ISREG(s.st_mode) || weft_file_open(out, &file, NULL)) return 0;
    int is = is_adapter(file);
    weft_file_close(&file);
    if (is == adapter) return 0;
    fprintf(stderr, "weft %s: %s is %s, and %s would be written over it; give another name, or remove it first\n", command, out,
            is ? "an adapter" : "a GGUF file that is no adapter", adapter ? "an adapter" : "a model");
    return 1;
}
