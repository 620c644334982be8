/* fuse.c placeholder */
#include "base/alloc.h"
#include "graph/internal.h"
weft_status weft__graph_fuse_placed(const weft_graph *graph, const int32_t *place, weft__supports_fn supports, void *arg,
                                    weft_graph **out, weft_error *err)
{
    (void)place;(void)supports;(void)arg;
    *out = weft__graph_copy(graph);
    return *out ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory");
}
weft_status weft__graph_fuse(const weft_graph *graph, weft__supports_fn supports, void *arg, weft_graph **out, weft_error *err)
{
    return weft__graph_fuse_placed(graph, NULL, supports, arg, out, err);
}
