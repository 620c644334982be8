// SPDX-License-Identifier: Apache-2.0
/* bytes.c: weft_model_count_bytes. Any thread. */
#include "engine/handles.h"

weft_status weft_model_count_bytes(const weft_model *m, weft_model_bytes *out, weft_error *err)
{
    weft_program_bytes p;
    weft_status st = weft__plan_bytes(m->plan, &p, err);
    if (st) return st;
    const weft_model_bytes own = {.size = sizeof own,
                                  .packed = p.packed,
                                  .own = p.own,
                                  .steps = p.run + weft__graph_batch_bytes(m->max_rows, m->hp.d_model)};
    return weft__params_write(WEFT__PARAMS_TYPE(weft_model_bytes), out, &own, err);
}
