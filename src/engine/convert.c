// SPDX-License-Identifier: Apache-2.0
/* convert.c: weft_convert: a Hugging Face folder to a GGUF file. */
#include "engine/handles.h"

void(weft_convert_params_default)(weft_convert_params *p)
{
    *p = (weft_convert_params){.size = sizeof *p, .dtype = -1};
}

void weft_convert_params_init(weft_convert_params *params, uint32_t size)
{
    weft_convert_params own;
    (weft_convert_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_convert_params), params, size, &own);
}

weft_status weft_convert(const char *in, const char *out, const weft_convert_params *params, weft_error *err)
{
    weft_file *f;
    weft_convert_params own, *p = &own;
    weft_convert_params_default(p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_convert_params), p, params, err);
    if (!st) st = weft_file_open(in, &f, err);
    if (st) return st;
    weft__hf_convert_options options = {.dtype = p->dtype,
                                        .pre = p->pre_tokenizer,
                                        .progress = p->progress,
                                        .arg = p->progress_arg,
                                        .saturate = p->saturate};
    st = f->hf ? weft__hf_convert(f->hf, out, &options, err)
               : weft_fail(err, WEFT_ARGUMENT,
                           "%s: is a %s; only folders are converted, weft quantize changes the types of GGUF files",
                           f->path, f->plan ? "compiled plan" : "GGUF file already");
    weft_file_close(&f);
    return st;
}
