// SPDX-License-Identifier: Apache-2.0
/* page.h: the web page, as files that the build put into the program (web/, cmake/embed_folder.cmake). */
#ifndef WEFT_SERVER_PAGE_H
#define WEFT_SERVER_PAGE_H

#include <stddef.h>

typedef struct weft__server_page_file {
    const char *name, *type;        /* "app.js", its content type */
    const char *etag, *packed_etag; /* with their quotes */
    const char *bytes;              /* [n] */
    size_t n;
    const char *packed; /* [n_packed], gzip; NULL: there is none */
    size_t n_packed;
} weft__server_page_file;

/* Ends with a row without a name. */
extern const weft__server_page_file weft__server_page_files[];

#endif
