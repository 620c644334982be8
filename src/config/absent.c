// SPDX-License-Identifier: Apache-2.0
/* absent.c: in a library that was configured with -DWEFT_CONFIG=OFF no YAML is read: no weft.yaml, no stages, no task
 * file. */
#include "config/node.h"

weft_status weft__config_yaml(const char *text, size_t n, weft__arena *arena, weft__config_faults *faults,
                              weft__config_node **root, weft_error *err)
{
    (void)text, (void)n, (void)arena, (void)faults;
    *root = NULL;
    return weft_fail(err, WEFT_UNSUPPORTED,
                     "this build reads no YAML (-DWEFT_CONFIG=OFF): build with -DWEFT_CONFIG=ON, which needs libyaml");
}
