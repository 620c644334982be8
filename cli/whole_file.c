/* whole_file.c: see whole_file.h. */
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

weft_status whole_file_failed(const whole_file *w, weft_error *err)
{
    return weft_fail(err, WEFT_IO, "%s: %s", w->path, strerror(errno));
}

weft_status whole_file_open(whole_file *w, const char *path, weft_error *err)
{
    size_t room = strlen(path) + 32;
    *w = (whole_file){.path = strdup(path), .temporary = malloc(room)};
    weft_status st = w->path && w->temporary ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to write it", path);
    if (!st) {
        snprintf(w->temporary, room, "%s.tmp-%ld", path, (long)getpid());
        int fd = open(w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd >= 0 && !(w->f = fdopen(fd, "wb"))) close(fd);
        if (!w->f) st = whole_file_failed(w, err);
    }
    if (st) whole_file_abandon(w);
    return st;
}

weft_status whole_file_finish(whole_file *w, weft_error *err)
{
    weft_status st = fflush(w->f) || fsync(fileno(w->f)) || rename(w->temporary, w->path) ? whole_file_failed(w, err) : WEFT_OK;
    if (!st) {
        fclose(w->f); /* all of it is on the disk */
        w->f = NULL;
    }
    whole_file_abandon(w);
    return st;
}

void whole_file_abandon(whole_file *w)
{
    if (w->f) {
        fclose(w->f);
        unlink(w->temporary);
    }
    free(w->temporary);
    free(w->path);
    *w = (whole_file){0};
}
