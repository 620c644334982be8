// SPDX-License-Identifier: Apache-2.0
/* fill.h: a session as deep as wanted without reading so much: for measurements of what a step takes at a depth. */
#ifndef WEFT_ENGINE_FILL_H
#define WEFT_ENGINE_FILL_H

#include "weft/session.h"

/* The session, which is empty, has tokens [n] from here on, of which only the first n_read are read: what follows has
 * copies of their keys and values, which is no text, but what steps take time for. n_read is a multiple of 512. Fails
 * as weft_session_eval does, and may then hold fewer. */
weft_status weft__engine_session_fill(weft_session *session, const int32_t *tokens, int32_t n, int32_t n_read,
                                      weft_error *err);

#endif
