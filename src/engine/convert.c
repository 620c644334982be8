/* convert.c: weft_convert: a Hugging Face folder to a GGUF file. */
#include "engine/handles.h"

void weft_convert_params_default(weft_convert_params *p)
{
    *p = (weft_convert_params){.size = sizeof *p, .dtype = -1};
}

weft_status weft_convert(const char *in, const char *out, const weft_convert_params *p, weft_error *err)
{
    weft_file *f;
    if (p->size != sizeof *p)
        return weft_fail(err, WEFT_ABI, "weft_convert_params has %u bytes; this build has %zu", p->size, sizeof *p);
    weft_status st = weft_file_open(in, &f, err);
    if (st) return st;
    weft__hf_convert_options options = {
        .dtype = p->dtype, .pre = p->pre_tokenizer, .progress = p->progress, .arg = p->progress_arg, .saturate = p->saturate};
    st = f->hf ? weft__hf_convert(f->hf, out, &options, err)
               : weft_fail(err, WEFT_ARGUMENT,
                           "%s: is a %s; only folders are converted, weft quantize changes the types of GGUF files", f->path,
                           f->plan ? "compiled plan" : "GGUF file already");
    weft_file_close(&f);
    return st;
}
