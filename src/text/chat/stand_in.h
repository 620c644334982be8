// SPDX-License-Identifier: Apache-2.0
/* stand_in.h: the template of a model that has none: ChatML, as llama.cpp has it, for serving and training alike. */
#ifndef WEFT_TEXT_CHAT_STAND_IN_H
#define WEFT_TEXT_CHAT_STAND_IN_H

#include "base/text.h"

/* Its source, which is static, and how long that is. */
const char *weft__chat_stand_in(size_t *n);
/* Tells the log that the model `label` gets it. */
void weft__chat_tell_stand_in(const char *label);

#endif
