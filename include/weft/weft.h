// SPDX-License-Identifier: Apache-2.0
/* weft.h: the engine, for programs that embed it: all headers of the library but those of training (train.h), of
 * measuring (eval.h), of the server (server.h) and of plugins (backend.h, graph.h). Each may be included alone.
 *
 * Parameter structs begin with `size`: fill them with the ..._default function, then change fields. A program that
 * was built with the headers of an earlier version runs on this library: what its structs do not have is taken as
 * the default, and structs that are filled are filled as far as they go. A struct that is larger than the library's
 * is taken where all beyond is zero; otherwise, as where `size` is no struct's, WEFT_ABI. Where a function takes
 * parameters, NULL stands for the defaults, but where it says otherwise. Thread safety: a model may be shared by
 * threads: they read its description and tokenizer at once, and steps of its sessions and engines take turns with
 * the model's threads; a model of one thread has none, and its steps run at once, each on the thread that asks. A
 * session belongs to one thread at a time, those of a group together. Processors with AMX: when the first model is
 * loaded, the process asks Linux for the tile registers, and from then on no thread may set an alternate signal
 * stack below 12 KB (sysconf(_SC_MINSIGSTKSZ)); WEFT_CPU=avx512bf16 does without them. Whether AMX or VNNI is faster
 * is then measured for some 15 ms, once for a start of the system: the figures are kept in amx.txt of the cache's
 * folder (WEFT_CACHE); where WEFT_CPU is set nothing is measured. Strings are UTF-8. Token ids are int32. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include "weft/adapter.h"
#include "weft/common.h"
#include "weft/engine.h"
#include "weft/hub.h"
#include "weft/model.h"
#include "weft/session.h"
#include "weft/text.h"
#include "weft/tools.h"

#endif
