/* outputs.c: see outputs.h. */
#include "outputs.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "format/out_file.h"
#include "terminal.h"

int output_refused(const char *command, const char *out)
{
    weft_error err = {0};
    return out && weft__out_check(out, &err) && report(command, &err);
}

int output_adapter_refused(const char *command, const char *out)
{
    size_t n = strlen(out);
    struct stat s;
    char inside[4096];
    if ((n > 5 && !strcasecmp(out + n - 5, ".gguf")) || stat(out, &s)) return output_refused(command, out);
    if (!S_ISDIR(s.st_mode)) {
        fprintf(stderr, "weft %s: %s is no folder; give one for a PEFT adapter, or a name that ends in .gguf\n", command, out);
        return 1;
    }
    return snprintf(inside, sizeof inside, "%s/adapter_config.json", out) < (int)sizeof inside && output_refused(command, inside);
}

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

void output_saturated(const char *command, uint64_t n)
{
    if (n)
        fprintf(stderr, "weft %s: %llu values were beyond what their type can hold, and are the nearest that it has\n", command,
                (unsigned long long)n);
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
