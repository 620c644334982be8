// SPDX-License-Identifier: Apache-2.0
/* arch.h: the architectures of this folder: one line here for each file. */
#ifndef WEFT_MODEL_ARCH_ARCH_H
#define WEFT_MODEL_ARCH_ARCH_H

#include "model/build.h"

/* X(name): general.architecture, and the file name.c */
#define WEFT__ARCH_LIST(X) X(llama) X(qwen2) X(qwen3) X(qwen3moe) X(phi3) X(gemma2) X(gemma3)

#define WEFT__ARCH_DECLARE(name) extern const weft__arch weft__arch_##name;
WEFT__ARCH_LIST(WEFT__ARCH_DECLARE)
#undef WEFT__ARCH_DECLARE

#endif
