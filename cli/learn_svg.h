// SPDX-License-Identifier: Apache-2.0
/* learn_svg.h: the picture of weft learn status: for each tenant, over time, its answers, what was said of them, what
 * became of versions of its adapter, and the KL to the base of those that were published. One thread. */
#ifndef WEFT_CLI_LEARN_SVG_H
#define WEFT_CLI_LEARN_SVG_H

#include "learn/store.h"

/* Draws the tenants names[0..n) into the file `path`: the first LEARN_SVG_MOST of them, and how many are left. Fails as
 * the store's readers and weft__out_file_put do, and with WEFT_NO_MEMORY. */
enum { LEARN_SVG_MOST = 16 };
weft_status learn_draw(weft__learn_store *store, const char (*names)[WEFT__LEARN_TENANT], size_t n, const char *path,
                       weft_error *err);

#endif
