// SPDX-License-Identifier: Apache-2.0
/* cmd_push.c: weft push: a model or an adapter to a Hugging Face server, with a model card. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "commands.h"
#include "options.h"
#include "terminal.h"

enum { PUSH_FILES = 256 };

typedef struct push_command {
    weft_push_params params;
    const char *licence, *base, *card;
    int no_card;
    weft_push_file files[PUSH_FILES];
    int n;
    weft__strbuf text; /* of the card */
    progress bar;
} push_command;

/* ---- which files ---- */

static weft_status push_add(push_command *p, const char *path, const char *name, weft_error *err)
{
    if (p->n == PUSH_FILES) return weft_fail(err, WEFT_LIMIT, "more than %d files", PUSH_FILES);
    char *copy = strdup(path), *called = strdup(name);
    p->files[p->n++] = (weft_push_file){.path = copy, .name = called};
    return copy && called ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for %s", path);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The files of a folder, but for hidden ones and folders in it. */
static weft_status push_add_folder(push_command *p, const char *folder, weft_error *err)
{
    struct dirent **entries;
    const int n = scandir(folder, &entries, NULL, by_name);
    weft_status st = n < 0 ? weft_fail(err, WEFT_IO, "%s cannot be read", folder) : WEFT_OK;
    for (int i = 0; i < n; i++) {
        char path[4096];
        struct stat s;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (!st && entries[i]->d_name[0] != '.' && !stat(path, &s) && S_ISREG(s.st_mode))
            st = push_add(p, path, entries[i]->d_name, err);
        free(entries[i]);
    }
    if (n >= 0) free(entries);
    return st;
}

static weft_status push_gather(push_command *p, char **paths, int n, weft_error *err)
{
    for (int i = 0; i < n; i++) {
        struct stat s;
        const char *slash = strrchr(paths[i], '/');
        if (stat(paths[i], &s)) return weft_fail(err, WEFT_NOT_FOUND, "%s: no such file or folder", paths[i]);
        weft_status st = S_ISDIR(s.st_mode) ? push_add_folder(p, paths[i], err)
                                            : push_add(p, paths[i], slash ? slash + 1 : paths[i], err);
        if (st) return st;
    }
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(p->files[i].name, p->files[k].name))
                return weft_fail(err, WEFT_ARGUMENT, "two files would be called %s", p->files[i].name);
    return p->n ? WEFT_OK : weft_fail(err, WEFT_ARGUMENT, "there is nothing to push");
}

/* ---- the card ---- */

static const char *suffix_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot : "";
}

/* "key: value" of YAML; the value as JSON writes it, which YAML reads. */
static void put_yaml(weft__strbuf *t, const char *key, const char *value)
{
    weft__strbuf_printf(t, "%s: ", key);
    weft__json_write_string(t, value, strlen(value));
    weft__strbuf_puts(t, "\n");
}

static void put_described(weft__strbuf *t, const weft_push_file *f)
{
    weft_file *file;
    if (strcmp(suffix_of(f->name), ".gguf") || weft_file_open(f->path, &file, NULL)) return;
    uint64_t n_params = 0;
    for (int64_t i = 0; i < weft_file_n_tensors(file); i++) {
        weft_tensor_info info;
        if (!weft_file_tensor(file, i, &info, NULL))
            n_params += (uint64_t)(info.d[0] * info.d[1] * info.d[2] * info.d[3]);
    }
    weft__strbuf_printf(t, "| `%s` | %.2f M |\n", f->name, (double)n_params / 1e6);
    weft_file_close(&file);
}

/* README.md with the front matter that the server reads, where there is none among the files. */
static weft_status push_card(push_command *p, const char *repo, weft_error *err)
{
    weft__strbuf *t = &p->text;
    int gguf = 0, adapter = 0;
    for (int i = 0; i < p->n; i++) {
        if (!strcmp(p->files[i].name, "README.md")) return WEFT_OK;
        gguf |= !strcmp(suffix_of(p->files[i].name), ".gguf");
        adapter |= !strcmp(p->files[i].name, "adapter_config.json");
    }
    if (p->no_card) return WEFT_OK;
    if (p->card) return push_add(p, p->card, "README.md", err);
    if (p->n == PUSH_FILES) return weft_fail(err, WEFT_LIMIT, "more than %d files", PUSH_FILES);
    weft__strbuf_puts(t, "---\n");
    if (p->licence) put_yaml(t, "license", p->licence);
    if (p->base) put_yaml(t, "base_model", p->base);
    weft__strbuf_puts(t, "pipeline_tag: text-generation\n");
    if (adapter) weft__strbuf_puts(t, "library_name: peft\n");
    if (gguf) weft__strbuf_puts(t, "tags:\n- gguf\n");
    weft__strbuf_printf(t, "---\n\n# %s\n\n", repo);
    if (gguf) {
        weft__strbuf_puts(t, "| file | parameters |\n| --- | ---: |\n");
        for (int i = 0; i < p->n; i++) put_described(t, &p->files[i]);
        weft__strbuf_puts(t, "\n");
    }
    weft__strbuf_puts(t, "Uploaded with `weft push`.\n");
    if (t->failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the model card");
    p->files[p->n++] = (weft_push_file){.name = strdup("README.md"), .text = t->data};
    return p->files[p->n - 1].name ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for the model card");
}

/* ---- the command ---- */

static int push_show(void *arg, const weft_pull_state *s)
{
    return progress_update(arg, s->what, s->bytes ? (double)s->done / (double)s->bytes : 0);
}

static weft_status push_all(push_command *p, const char *name, char **paths, int n, weft_push_result *result,
                            weft_error *err)
{
    const char *slash = strchr(name, '/');
    weft_status st = push_gather(p, paths, n, err);
    if (!st) st = push_card(p, slash ? slash + 1 : name, err);
    p->params.progress = push_show;
    p->params.progress_arg = &p->bar;
    progress_stops_on_signals();
    if (!st) st = weft_push(name, p->files, p->n, &p->params, result, err);
    progress_end(&p->bar);
    for (int i = 0; i < p->n; i++) {
        free((char *)p->files[i].path);
        free((char *)p->files[i].name);
    }
    weft__strbuf_free(&p->text);
    return st;
}

int cmd_push(int argc, char **argv)
{
    static push_command p;
    weft_push_params_default(&p.params);
    const option_spec options[] = {
        {"create", 0, OPT_FLAG, &p.params.create, NULL, "make the repository where there is none", 0, 0, NULL},
        {"private", 0, OPT_FLAG, &p.params.is_private, NULL, "with --create: not for everyone", 0, 0, NULL},
        {"message", 'm', OPT_TEXT, &p.params.message, "TEXT", "of the commit (Upload with weft)", 0, 0, NULL},
        {"license", 0, OPT_TEXT, &p.licence, "NAME", "for the model card (apache-2.0)", 0, 0, NULL},
        {"base-model", 0, OPT_TEXT, &p.base, "OWNER/NAME", "for the model card: what it was made from", 0, 0, NULL},
        {"card", 0, OPT_TEXT, &p.card, "FILE", "the model card itself", 0, 0, NULL},
        {"no-card", 0, OPT_FLAG, &p.no_card, NULL, "no model card", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "push",
        "OWNER/NAME FILE|FOLDER ... [options]",
        "Sends files, or those of a folder, to a repository of Hugging Face, in one commit, and prints its address.\n"
        "Large files go by Git LFS; what the server has already is not sent again. Where there is no README.md among\n"
        "them, one is made: a model card with licence, base and files.\n\n"
        "Environment: HF_TOKEN (one that may write), HF_ENDPOINT (another server).",
        "  weft push me/my-model-GGUF model-q4_k_m.gguf --create --license apache-2.0\n"
        "  weft push me/my-adapter adapter/ --base-model Qwen/Qwen2.5-0.5B-Instruct\n",
        options,
        2,
        -1};
    int first, rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    weft_error err = {0};
    weft_push_result r;
    if (push_all(&p, argv[first], argv + first + 1, argc - first - 1, &r, &err)) return report("push", &err);
    fprintf(stderr, "%s: %.2f MB, %.2f MB of them sent\n", argv[first], (double)r.n_bytes / 1e6,
            (double)r.n_sent / 1e6);
    printf("%s\n", r.url);
    return EXIT_DONE;
}
