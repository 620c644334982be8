// SPDX-License-Identifier: Apache-2.0
/* teach_model.c: learning over a model that is served (teach_store.h): its weights are read as they are loaded. */
#include "engine/handles.h"
#include "learn/teach_store.h"
#include "learn/teach_trainer.h"

/* Whether a trainer takes it, is what making a small one says. */
static weft_status try_to_train(const weft_model *model, weft_error *err)
{
    weft__train_options o;
    weft__trainer *t = NULL;
    weft__train_options_default(&o);
    o.n_threads = 1;
    o.max_rows = 2;
    o.lora_rank = 1;
    o.schedule = WEFT__TRAIN_LR_CONSTANT;
    weft_status st = weft__trainer_create(&model->source, &o, &t, err);
    weft__trainer_destroy(&t);
    return st;
}

/* By making it: what is not written takes no memory yet. A style's recipe changes more matrices than one of facts. */
weft_status weft__teach_store_bytes(const weft__teach_store_params *params, uint64_t *out, weft_error *err)
{
    const weft__teach_options *o = &params->loop.options;
    const weft__teach_lora lora = {.rank = o->rank > o->style.rank ? o->rank : o->style.rank,
                                   .alpha = (float)o->style.rank,
                                   .targets = o->style.targets,
                                   .lr = o->style.lr,
                                   .max_rows = WEFT__TEACH_ROWS};
    weft__trainer *t = NULL;
    weft__trainer_info info;
    const weft_status st = weft__teach_trainer_open(params->loop.base, o, &lora, &t, err);
    if (st) return st;
    weft__trainer_describe(t, &info);
    *out = info.n_bytes + 2 * info.n_params * sizeof(float);
    weft__trainer_destroy(&t);
    return WEFT_OK;
}

weft_status weft__teach_store_of_model(const weft_model *model, weft__teach_store_params *params, weft_error *err)
{
    const char *label = model->source.label;
    if (model->file && model->file->plan)
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "%s: a compiled plan has its weights packed, and is not learned over; serve the model that it "
                         "was made of",
                         label);
    if (!model->tokenizer) return weft_fail(err, WEFT_UNSUPPORTED, "%s: a model without a tokenizer", label);
    if (model->hp.n_experts > 0)
        return weft_fail(err, WEFT_UNSUPPORTED, "%s: a mixture of experts is not learned over; choose a dense model",
                         label);
    params->loop.base = &model->source;
    params->loop.tok = model->tokenizer->t;
    return model->outline ? WEFT_OK : try_to_train(model, err); /* nothing is learned over one */
}
