// SPDX-License-Identifier: Apache-2.0
/* public_text.h: a text that is nobody's, on which what is learned for one tenant should change nothing: by its first
 * half the gate measures KL to the base, its second half is learned beside, held to what the model says (teach.h). */
#ifndef WEFT_LEARN_PUBLIC_TEXT_H
#define WEFT_LEARN_PUBLIC_TEXT_H

#include "learn/teach_texts.h"

enum { WEFT__TEACH_PUBLIC = 64 /* tokens of a text of the second half */ };

/* `probe`: one text; `publics`: as many as there are. WEFT_NO_MEMORY, and as encoding does. */
weft_status weft__teach_public_text(const weft__tok *tok, weft__teach_texts *probe, weft__teach_texts *publics,
                                    weft_error *err);

#endif
